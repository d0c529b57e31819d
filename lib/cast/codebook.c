/* Codebooks: codes of up to 4 bits choose among 16 elements that are known only when
 * the plan runs. A *plane* is one byte of each entry; eight bytes lie in two registers,
 * from which `prmt` takes four by the nibbles of a *selector*. The planes of the upper
 * and the lower bytes are put together for each pair of elements:
 *
 *     selector   .3 .1 .2 .0        nibbles, from codes 3, 1, 2, 0
 *     low        l3 l1 l2 l0        prmt low plane          high  h3 h1 h2 h0
 *     words      h1 l1 h0 l0        prmt low, high          h3 l3 h2 l2
 *
 * The last step brings bytes to any place, so a selector may have its codes in any
 * order; but the two of a word must come from one selector. Codes of one bit that
 * choose halves need no planes: masks choose. */
#include "cast/internal.h"

enum { PLANES_MAX = 2, PAIRS_MAX = CAST_ELEMENTS_MAX / 2, LOP3_AND_OR = 0xea };

/* Two elements side by side, and where their bytes are. */
typedef struct Pair {
    unsigned plane[PLANES_MAX];     /* nodes with the bytes of four elements */
    unsigned byte[2];
} Pair;

typedef struct Book {
    Planner *p;
    unsigned bits, planes, pairs;   /* of a code; bytes of an element; pairs of elements */
    unsigned table[PLANES_MAX][4];  /* nodes: entries 0-3, 4-7, 8-11, 12-15 */
    Pair pair[PAIRS_MAX];
} Book;

/* ---- the table ------------------------------------------------------------- */

static unsigned table_word(Book *b, unsigned i)
{
    return node_of(b->p, (CastOp){.code = CAST_input, .imm = b->p->in_words + i});
}

/* Makes the table of two entries of a byte: entry 1 wherever a nibble is not 0, so that a code of one
 * bit may stand at any of the nibble's places but the upper one. */
static void split_two(Book *b)
{
    unsigned word = table_word(b, 0);
    b->table[0][0] = node_prmt(b->p, word, word, 0x1110);
    b->table[0][1] = node_prmt(b->p, word, word, 0x1111);
}

/* Byte `plane` of entries 4 i to 4 i + 3. */
static unsigned split_four(Book *b, unsigned plane, unsigned i)
{
    if (b->planes == 1)
        return table_word(b, i);
    return node_prmt(b->p, table_word(b, 2 * i), table_word(b, 2 * i + 1),
                     plane ? 0x7531 : 0x6420);
}

static void split_table(Book *b)
{
    if (b->bits == 1) {
        split_two(b);
        return;
    }
    for (unsigned plane = 0; plane < b->planes; plane++) {
        for (unsigned i = 0; i < 1u << (b->bits - 2); i++)
            b->table[plane][i] = split_four(b, plane, i);
        if (b->bits == 2)
            b->table[plane][1] = b->table[plane][0];
    }
}

/* ---- looking up --------------------------------------------------------------- */

static unsigned mask(Book *b, unsigned word, uint32_t bits)
{
    return node_lop3(b->p, LOP3_AND_XOR, word, node_constant(b->p, bits),
                     node_constant(b->p, 0));
}

/* word & bits | other */
static unsigned mask_or(Book *b, unsigned word, uint32_t bits, unsigned other)
{
    return node_lop3(b->p, LOP3_AND_OR, word, node_constant(b->p, bits), other);
}

/* Bits of `low` where `bits` has them, else of `high`. */
static unsigned choose_bits(Book *b, uint32_t bits, unsigned low, unsigned high)
{
    return node_lop3(b->p, LOP3_SELECT, node_constant(b->p, bits), low, high);
}

/* Looks up the four codes of a selector: those of pairs `first` and `second`, at the
 * nibbles whose numbers are those of `places`, from the lowest on. `upper` has all bits
 * of a byte set where the code is past entry 7. */
static void look_up(Book *b, unsigned selector, unsigned upper, unsigned first,
                    unsigned second, uint32_t places)
{
    unsigned number[2] = {first, second};
    for (unsigned plane = 0; plane < b->planes; plane++) {
        const unsigned *t = b->table[plane];
        unsigned found = node_op(b->p, CAST_prmt, t[0], t[1], selector);
        if (b->bits == 4)
            found = node_lop3(b->p, LOP3_SELECT, upper,
                              node_op(b->p, CAST_prmt, t[2], t[3], selector), found);
        for (unsigned i = 0; i < 2; i++)
            if (number[i] < b->pairs)
                b->pair[number[i]].plane[plane] = found;
    }
    for (unsigned i = 0; i < 4; i++)
        if (number[i / 2] < b->pairs)
            b->pair[number[i / 2]].byte[i % 2] = places >> 4 * i & 15;
}

/* Looks up both halves of a word of selectors; the pairs of the upper half lie `apart`
 * further on. */
static void look_up_halves(Book *b, unsigned selectors, unsigned first, unsigned second,
                           unsigned apart, uint32_t places)
{
    look_up(b, selectors, 0, first, second, places);
    if (first + apart < b->pairs)
        look_up(b, node_shift(b->p, CAST_shr, selectors, 16), 0, first + apart,
                second + apart, places);
}

/* ---- selectors ------------------------------------------------------------------ */

/* 16 codes of one bit, from byte 2 `half` of a word on. In a byte twice, code c is in
 * nibbles c / 4 and c / 4 + 2:
 *
 *     7654 3210 7654 3210      bits 0 0 1 1 of them, from the lowest nibble on, are
 *       ^    ^     ^    ^      codes 0, 4, 1, 5; of the same one further on, bits
 *       5    1     4    0      1 1 2 2 are 2, 6, 3, 7                              */
static void select_bits(Book *b, unsigned word, unsigned half)
{
    unsigned source = b->p->source[word], first = 16 * word + 8 * half;
    unsigned twice = node_prmt(b->p, source, source, half ? 0x3322 : 0x1100);
    look_up_halves(b, mask(b, twice, 0x22112211), first, first + 2, 4, 0x3120);
    look_up_halves(b, mask(b, node_shift(b->p, CAST_shr, twice, 1), 0x44224422), first + 1,
                   first + 3, 4, 0x3120);
}

/* 16 codes of two bits. The even ones are in nibbles already; the odd ones of a byte go
 * to the other byte of its half. */
static void select_twos(Book *b, unsigned word)
{
    unsigned source = b->p->source[word], first = 8 * word;
    unsigned up = mask(b, node_shift(b->p, CAST_shl, source, 6), 0x33003300);
    unsigned down = mask(b, node_shift(b->p, CAST_shr, source, 10), 0x00330033);
    look_up_halves(b, mask_or(b, source, 0x00330033, up), first, first + 1, 4, 0x3120);
    look_up_halves(b, mask_or(b, source, 0x33003300, down), first + 2, first + 3, 4, 0x1302);
}

/* 32 bits of the source from bit `at` on, as far as there are any. */
static unsigned window(Book *b, unsigned at)
{
    Planner *p = b->p;
    unsigned word = at / 32, shift = at % 32;
    if (shift == 0 || shift + 24 <= 32 || word + 1 == p->in_words)
        return node_shift(p, CAST_shr, p->source[word], shift);
    return node_of(p, (CastOp){CAST_shf, shift, {p->source[word], p->source[word + 1]}});
}

/* 8 codes of three bits, spread over nibbles: 12 bits to each half, 6 to each byte. */
static void select_threes(Book *b, unsigned group)
{
    Planner *p = b->p;
    unsigned w = window(b, 24 * group);
    w = choose_bits(b, 0x0000ffff, w, node_shift(p, CAST_shl, w, 4));
    w = choose_bits(b, 0x00ff00ff, w, node_shift(p, CAST_shl, w, 2));
    unsigned odd = mask(b, node_shift(p, CAST_shl, w, 1), 0x70707070);
    look_up_halves(b, mask_or(b, w, 0x07070707, odd), 4 * group, 4 * group + 1, 2, 0x3210);
}

/* 8 codes of four bits: three choose, the upper one tells between two tables. */
static void select_fours(Book *b, unsigned word)
{
    Planner *p = b->p;
    unsigned odd = p->source[word], even = node_shift(p, CAST_shl, odd, 4);
    unsigned low = mask(b, odd, 0x77777777);
    for (unsigned half = 0; half < 2 && 4 * word + 2 * half < b->pairs; half++)
        look_up(b, node_shift(p, CAST_shr, low, 16 * half),
                node_prmt(p, even, odd, half ? 0xfbea : 0xd9c8), 4 * word + 2 * half,
                4 * word + 2 * half + 1, 0x3210);
}

static void select_codes(Book *b)
{
    unsigned elements = b->p->query->elements;
    switch (b->bits) {
    case 1:
        for (unsigned half = 0; 16 * half < elements; half++)
            select_bits(b, half / 2, half % 2);
        break;
    case 2:
        for (unsigned word = 0; word < b->p->in_words; word++)
            select_twos(b, word);
        break;
    case 3:
        for (unsigned group = 0; 8 * group < elements; group++)
            select_threes(b, group);
        break;
    default:
        for (unsigned word = 0; word < b->p->in_words; word++)
            select_fours(b, word);
    }
}

/* ---- the result ------------------------------------------------------------------ */

/* The upper and the lower bytes of a pair become halves. */
static unsigned build_halves(Book *b, const Pair *pair)
{
    unsigned x = pair->byte[0], y = pair->byte[1];
    return node_prmt(b->p, pair->plane[0], pair->plane[1],
                     x | (x + 4) << 4 | y << 8 | (y + 4) << 12);
}

/* Two pairs of bytes become a word, often one that is there. */
static unsigned build_bytes(Book *b, unsigned pair)
{
    const Pair *low = &b->pair[pair], *high = pair + 1 < b->pairs ? low + 1 : low;
    unsigned from = low->plane[0] == high->plane[0] ? 0 : 4;
    uint32_t selector = low->byte[0] | low->byte[1] << 4 | (high->byte[0] + from) << 8 |
                        (high->byte[1] + from) << 12;
    return selector == 0x3210 ? low->plane[0]
                              : node_prmt(b->p, low->plane[0], high->plane[0], selector);
}

/* Two halves, and codes of one bit: `prmt` spreads a bit that a shift brought to the top
 * of its byte over a half, to choose by. */
static void choose_halves(Book *b)
{
    Planner *p = b->p;
    unsigned table = table_word(b, 0);
    unsigned zero = node_prmt(p, table, table, 0x1010);
    unsigned one = node_prmt(p, table, table, 0x3232);
    for (unsigned i = 0; i < b->pairs; i++) {
        unsigned source = p->source[i / 16], byte = i % 16 / 4, up = 7 - 2 * i % 8;
        unsigned spread = node_prmt(p, node_shift(p, CAST_shl, source, up),
                                    node_shift(p, CAST_shl, source, up - 1),
                                    (8 + byte) * 0x11 | (12 + byte) * 0x1100);
        p->words[i] = (uint16_t)node_lop3(p, LOP3_SELECT, spread, one, zero);
    }
}

static void look_up_all(Book *b)
{
    Planner *p = b->p;
    split_table(b);
    select_codes(b);
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)(b->planes == 2 ? build_halves(b, &b->pair[i])
                                                : build_bytes(b, 2 * i));
}

bool family_codebook(Planner *p, DType to)
{
    unsigned bits = dtype_bits(to);
    Book b = {.p = p, .bits = p->from->bits, .planes = bits / 8,
              .pairs = (p->query->elements + 1) / 2};
    if (b.bits > 4 || p->from->kind != DKIND_UINT || (bits != 8 && bits != 16) ||
        p->packed)
        return false;
    p->word_count = (p->query->elements * bits + 31) / 32;
    if (b.bits == 1 && b.planes == 2)
        choose_halves(&b);
    else
        look_up_all(&b);
    return true;
}
