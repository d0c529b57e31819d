/* The families: how codes become f16, bf16, f32 or bytes. Each handles one word
 * of the result after another; docs/casts.md has the arithmetic and why it is
 * exact. */
#include "cast/internal.h"

#include "support/integer.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { FIELDS_MAX = 32, LANES_MAX = 4 };

/* The elements of one word, from `first` on. */
typedef struct Lanes {
    unsigned first, count, bits;
} Lanes;

static Lanes lanes_at(const Planner *p, DType to, unsigned w)
{
    unsigned each = lanes_of(to), left = p->query->elements - w * each;
    return (Lanes){w * each, left < each ? left : each, dtype_bits(to)};
}

static unsigned word_count(const Planner *p, DType to)
{
    return (unsigned)ceil_div_size(p->query->elements, lanes_of(to));
}

static bool is_signed_integer(const DTypeInfo *t)
{
    return t->kind == DKIND_INT;
}

/* Flips the signs of codes of 8 bits in the source's words, one operation for
 * four codes; false when there are no such codes. */
static bool flip_source(Planner *p)
{
    if (!is_signed_integer(p->from) || p->from->bits != 8 || p->packed)
        return false;
    unsigned signs = node_constant(p, 0x80808080), ones = node_constant(p, UINT32_MAX);
    for (unsigned i = 0; i < p->in_words; i++)
        p->source[i] = (uint16_t)node_lop3(p, LOP3_AND_XOR, p->source[i], ones, signs);
    return true;
}

/* The sign bit of a code, where it is still to be flipped. */
static uint32_t sign_to_flip(const Planner *p, bool flipped)
{
    bool flips = is_signed_integer(p->from) && !flipped && !p->storage.flips;
    return flips ? UINT32_C(1) << (p->from->bits - 1) : 0;
}

/* Appends bits [bit, bit + width) of the elements of a word, from place `low` to
 * `high` of their lanes; where they are in pieces, first the first ones of all lanes,
 * so that halves of the list go together. */
static unsigned add_lanes(const Planner *p, Field *fields, unsigned count, Lanes lanes,
                          unsigned bit, unsigned width, unsigned low, unsigned high)
{
    Field each[LANES_MAX][FIELDS_MAX];
    unsigned counts[LANES_MAX] = {0}, most = 0;
    for (unsigned i = 0; i < lanes.count; i++) {
        counts[i] = add_fields(p, each[i], 0, lanes.first + i, bit, width, i * lanes.bits, low,
                               high);
        most = counts[i] > most ? counts[i] : most;
    }
    for (unsigned piece = 0; piece < most; piece++)
        for (unsigned i = 0; i < lanes.count; i++)
            if (piece < counts[i])
                fields[count++] = each[i][piece];
    return count;
}

/* Returns true when a code of the word lies in pieces, whose places must fit each other. */
static bool has_pieces(const Planner *p, Lanes lanes)
{
    Field fields[FIELDS_MAX];
    return add_lanes(p, fields, 0, lanes, 0, p->from->bits, 0, 0) > lanes.count;
}

/* The codes of a word at places up to `high`, the same in all lanes where one lies in
 * pieces; places[i] is that of lane i. */
static Arrangement arrange_lanes(Planner *p, Field *fields, Lanes lanes, unsigned high,
                                 unsigned *places)
{
    unsigned bits = p->from->bits, best = 0;
    bool pieces = has_pieces(p, lanes);
    Arrangement a = {.cost = UINT_MAX};
    for (unsigned at = 0; pieces && at <= high; at++) {
        unsigned count = add_lanes(p, fields, 0, lanes, 0, bits, at, at);
        Arrangement one = arrange_fields(p, fields, count);
        best = one.cost < a.cost ? at : best;
        a.cost = one.cost < a.cost ? one.cost : a.cost;
    }
    unsigned count = add_lanes(p, fields, 0, lanes, 0, bits, best, pieces ? best : high);
    a = arrange_fields(p, fields, count);
    for (unsigned i = 0; i < lanes.count; i++)
        places[i] = pieces ? best : fields[i].at;
    return a;
}

/* Codes that are to be placed: by the order that they are in, or as arranged. */
typedef struct Placing {
    bool placed;
    Lanes lanes;
    unsigned places[LANES_MAX];     /* of the codes in their lanes */
    Field fields[FIELDS_MAX];
    Arrangement arrangement;
} Placing;

/* The codes of a word at places up to `high`. */
static void choose_places(Planner *p, DType to, Lanes lanes, unsigned high, Placing *c)
{
    c->placed = is_placed(p, to);
    c->lanes = lanes;
    memset(c->places, 0, sizeof c->places);
    if (!c->placed)
        c->arrangement = arrange_lanes(p, c->fields, lanes, high, c->places);
    for (unsigned i = 0; c->placed && i < lanes.count; i++)
        c->places[i] = p->storage.low[(lanes.first + i) % p->storage.elements];
}

static unsigned build_places(Planner *p, const Placing *c, uint32_t flip)
{
    return c->placed ? build_placed(p, c->lanes.first, c->lanes.count, flip)
                     : build_arrangement(p, &c->arrangement, flip);
}

/* Returns the sum that a flipped sign bit adds to a code: c becomes c + 2^(bits - 1). */
static double sign_value(const Planner *p)
{
    return is_signed_integer(p->from) ? ldexp(1, (int)p->from->bits - 1) : 0;
}

/* ---- integers in a mantissa ------------------------------------------------ */

/* 2^M + code * 2^at, minus 2^M, times 2^-at: exact, for the code lies within the
 * M bits of the mantissa. A sign bit that is flipped adds 2^(bits - 1). */
static unsigned subtract_magic(Planner *p, DType to, unsigned word, Lanes lanes,
                               const unsigned *places)
{
    unsigned mantissa = dtype_info[to].mantissa, lane_bits = dtype_bits(to);
    double sign = sign_value(p);
    uint32_t scale = 0, offset = 0;
    bool scaled = false;
    for (unsigned i = 0; i < lanes_of(to); i++) {
        double power = ldexp(1, -(int)places[i]), minus = -ldexp(power, (int)mantissa) - sign;
        scale |= (uint32_t)dtype_encode(to, power) << i * lane_bits;
        offset |= (uint32_t)dtype_encode(to, minus) << i * lane_bits;
        scaled |= places[i] != 0;
    }
    unsigned constant = node_offset(p, to, lanes.first / lanes_of(to), offset);
    if (!scaled)
        return node_op(p, arithmetic_op(to, ARITH_ADD), word, constant, 0);
    return node_op(p, arithmetic_op(to, ARITH_FMA), word, node_constant(p, scale), constant);
}

static unsigned magic_word(Planner *p, DType to, Lanes lanes, bool flipped)
{
    const DTypeInfo *t = &dtype_info[to];
    uint32_t power = (uint32_t)dtype_encode(to, ldexp(1, (int)t->mantissa)), magic = 0;
    Placing c;
    choose_places(p, to, lanes, t->mantissa - p->from->bits, &c);
    for (unsigned i = 0; i < lanes.count; i++)
        magic |= (power ^ sign_to_flip(p, flipped) << c.places[i]) << i * lanes.bits;
    return subtract_magic(p, to, build_places(p, &c, magic), lanes, c.places);
}

bool family_magic(Planner *p, DType to)
{
    const DTypeInfo *t = &dtype_info[to];
    if (!dtype_is_integer(p->query->from) || t->kind != DKIND_FLOAT || t->bits < 16 ||
        p->from->bits > t->mantissa ||
        !zeros_fit(p, to, ldexp(1, (int)t->mantissa) + sign_value(p)))
        return false;
    bool flipped = flip_source(p);
    p->word_count = word_count(p, to);
    if (t->bits == 16 && !is_placed(p, to))
        share_windows(p, p->from->bits, t->mantissa - p->from->bits);
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)magic_word(p, to, lanes_at(p, to, w), flipped);
    return true;
}

/* Bits of a half that are linear where its exponent is 0 or 1, and what the lowest of
 * them stands for. */
typedef struct LinearBits {
    unsigned count;
    int exponent;
} LinearBits;

static LinearBits linear_bits(DType to)
{
    return to == DTYPE_f16 ? (LinearBits){11, -24} : (LinearBits){8, -133};
}

/* The codes of a word as they are, times powers of 2: those of places[i]. */
static unsigned linear_word(Planner *p, DType to, Lanes lanes, bool flipped, unsigned *places)
{
    uint32_t flips = 0;
    Placing c;
    choose_places(p, to, lanes, linear_bits(to).count - p->from->bits, &c);
    memcpy(places, c.places, sizeof c.places);
    for (unsigned i = 0; i < lanes.count; i++)
        flips |= sign_to_flip(p, flipped) << places[i] << i * lanes.bits;
    return build_places(p, &c, flips);
}

/* 2^-exponent / 2^place is no bf16, so two products follow. */
static unsigned subnormal_word(Planner *p, Lanes lanes, bool flipped)
{
    unsigned places[LANES_MAX] = {0};
    unsigned word = linear_word(p, DTYPE_bf16, lanes, flipped, places);
    uint32_t scales = 0;
    for (unsigned i = 0; i < LANES_MAX / 2; i++)
        scales |= (uint32_t)dtype_encode(DTYPE_bf16, ldexp(1, 6 - (int)places[i])) << 16 * i;
    word = node_op(p, CAST_bf16_mul, word, node_number(p, DTYPE_bf16, 0x1p127), 0);
    unsigned scale = node_constant(p, scales);
    if (!is_signed_integer(p->from) && !p->zeros)
        return node_op(p, CAST_bf16_mul, word, scale, 0);
    uint32_t minus = (uint32_t)dtype_encode(DTYPE_bf16, -sign_value(p)) * 0x10001;
    return node_op(p, CAST_bf16_fma, word, scale,
                   node_offset(p, DTYPE_bf16, lanes.first / 2, minus));
}

bool family_subnormal(Planner *p, DType to)
{
    if (to != DTYPE_bf16 || !dtype_is_integer(p->query->from) ||
        (p->from->bits != 8 && !p->packed) || !zeros_fit(p, to, sign_value(p)))
        return false;
    bool flipped = flip_source(p);
    p->word_count = word_count(p, to);
    if (!is_placed(p, to))
        share_windows(p, p->from->bits, linear_bits(to).count - p->from->bits);
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)subnormal_word(p, lanes_at(p, to, w), flipped);
    return true;
}

/* ---- floats ---------------------------------------------------------------- */

/* A value v of a format whose largest numbers stand for NaN or infinity. v * c
 * overflows for exactly those that become NaN, and infinity * 0 is NaN, which
 * the sum carries over; others add a zero of their own sign. */
static unsigned mark_nan(Planner *p, DType to, unsigned marked, unsigned v, double c)
{
    unsigned huge = node_op(p, arithmetic_op(to, ARITH_MUL), marked, node_number(p, to, c), 0);
    return node_op(p, arithmetic_op(to, ARITH_FMA), huge, node_number(p, to, 0), v);
}

/* Codes of 8-bit types that are not numbers, after their exponents were taken
 * for those of numbers. */
static unsigned restore_specials(Planner *p, DType to, unsigned v)
{
    CastOpCode multiply = arithmetic_op(to, ARITH_MUL);
    bool finite = p->query->finite;
    switch (finite && p->from->special != SPECIAL_E8M0 ? SPECIAL_FINITE : p->from->special) {
    case SPECIAL_FINITE:
        return v;
    case SPECIAL_FN:        /* 448 is the largest number, 480 stands for NaN */
        return mark_nan(p, to, v, v, to == DTYPE_f16 ? 140 : 0x1.1ap119);
    case SPECIAL_E8M0:      /* 0 stands for 2^-127; infinity for NaN */
        v = node_op(p, arithmetic_op(to, ARITH_MAX), v, node_number(p, to, 0x1p-127), 0);
        return finite ? v : node_op(p, arithmetic_op(to, ARITH_FMA), v, node_number(p, to, 0), v);
    case SPECIAL_IEEE: {    /* 57344 is the largest number, 65536 infinity, 81920 NaN */
        unsigned up = node_op(p, multiply, v, node_number(p, to, 0x1p112), 0);
        unsigned down = node_op(p, multiply, up, node_number(p, to, 0x1p-112), 0);
        return mark_nan(p, to, v, down, 0x1.e6p111);
    }
    }
    return v;
}

/* Returns true when codes of `from` are the upper bits of codes of `to`. */
static bool has_same_exponent(const DTypeInfo *from, const DTypeInfo *to)
{
    return from->exponent == to->exponent;
}

/* Brings a code's sign to the top and its magnitude to its place, from a word
 * where one of them is there already:
 *
 *     s eee mm ..........  >> 2      or      .. s eee mm ........  << 2
 *     s .. eee mm ........
 */
static unsigned place_signs(Planner *p, const Arrangement *a, DType to, Lanes lanes,
                            bool at_top)
{
    const DTypeInfo *t = &dtype_info[to], *from = p->from;
    unsigned shift = t->exponent - from->exponent, zero = node_constant(p, 0);
    uint32_t signs = 0, magnitudes = 0;
    unsigned word = a->count == 1 ? build_unmasked(p, a) : build_arrangement(p, a, 0);
    for (unsigned i = 0; i < lanes.count; i++) {
        signs |= UINT32_C(1) << (i * lanes.bits + t->bits - 1);
        magnitudes |= low_bits(from->bits - 1)
                      << (i * lanes.bits + t->mantissa - from->mantissa);
    }
    unsigned moved = node_shift(p, at_top ? CAST_shr : CAST_shl, word, shift);
    unsigned magnitude = node_lop3(p, LOP3_AND_XOR, at_top ? moved : word,
                                    node_constant(p, magnitudes), zero);
    return node_lop3(p, LOP3_AND_XOR, at_top ? word : moved, node_constant(p, signs),
                     magnitude);
}

/* The codes of a word's elements, from place `low` of their lanes on. */
static Arrangement arrange_codes(Planner *p, Field *fields, Lanes lanes, unsigned low)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lanes.count; i++)
        count = add_fields(p, fields, count, lanes.first + i, 0, p->from->bits, i * lanes.bits,
                           low, low);
    return arrange_fields(p, fields, count);
}

/* Codes in a storage order: signs and magnitudes are fields of their own, which may
 * lie as the result wants them. */
static unsigned place_parts(Planner *p, DType to, Lanes lanes)
{
    if (is_placed(p, to))
        return build_placed(p, lanes.first, lanes.count, 0);
    const DTypeInfo *t = &dtype_info[to], *from = p->from;
    unsigned magnitude = from->exponent + from->mantissa, low = t->mantissa - from->mantissa;
    Field fields[FIELDS_MAX];
    unsigned count = add_lanes(p, fields, 0, lanes, 0, magnitude, low, low);
    if (from->bits > magnitude)
        count = add_lanes(p, fields, count, lanes, magnitude, 1, t->bits - 1, t->bits - 1);
    Arrangement a = arrange_fields(p, fields, count);
    return build_arrangement(p, &a, 0);
}

/* Codes in plain order. */
static unsigned place_codes(Planner *p, DType to, Lanes lanes)
{
    const DTypeInfo *t = &dtype_info[to], *from = p->from;
    Field fields[FIELDS_MAX], top_fields[FIELDS_MAX];
    Arrangement a = arrange_codes(p, fields, lanes, t->mantissa - from->mantissa);
    if (has_same_exponent(from, t))
        return build_arrangement(p, &a, 0);
    Arrangement top = arrange_codes(p, top_fields, lanes, t->bits - from->bits);
    bool at_top = top.cost < a.cost;
    return place_signs(p, at_top ? &top : &a, to, lanes, at_top);
}

static unsigned realign_word(Planner *p, DType to, Lanes lanes)
{
    const DTypeInfo *t = &dtype_info[to], *from = p->from;
    bool same = has_same_exponent(from, t);
    unsigned word = p->packed ? place_parts(p, to, lanes) : place_codes(p, to, lanes);
    int power = float_bias(t) - float_bias(from);
    if (power)
        word = node_op(p, arithmetic_op(to, ARITH_MUL), word,
                        node_number(p, to, ldexp(1, power)), 0);
    return same && from->special == t->special ? word : restore_specials(p, to, word);
}

/* Returns true when the exponent fits, and infinity of `to` is no number of `from`. */
static bool can_realign(const DTypeInfo *from, const DTypeInfo *t)
{
    if (from->kind != DKIND_FLOAT || t->kind != DKIND_FLOAT || t->bits < 16 ||
        from->exponent > t->exponent || from->mantissa > t->mantissa)
        return false;
    return !has_same_exponent(from, t) || from->special != SPECIAL_FINITE || !from->mantissa;
}

bool family_realign(Planner *p, DType to)
{
    if (!can_realign(p->from, &dtype_info[to]))
        return false;
    p->word_count = word_count(p, to);
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)realign_word(p, to, lanes_at(p, to, w));
    return true;
}

/* ---- without arithmetic ------------------------------------------------------- */

/* Integers as subnormals, floats with the bias of the target: what `decode` gives. */
static unsigned bare_word(Planner *p, DType to, Lanes lanes)
{
    unsigned places[LANES_MAX] = {0};
    if (dtype_is_float(p->query->from)) {
        int exponent = float_bias(p->from) - float_bias(&dtype_info[to]);
        for (unsigned i = 0; i < lanes.count; i++)
            p->exponents[lanes.first + i] = (int16_t)exponent;
        return place_parts(p, to, lanes);
    }
    unsigned word = linear_word(p, to, lanes, true, places);
    for (unsigned i = 0; i < lanes.count; i++)
        p->exponents[lanes.first + i] = (int16_t)(linear_bits(to).exponent + (int)places[i]);
    return word;
}

bool family_bare(Planner *p, DType to)
{
    DType from = p->query->from;
    if ((to != DTYPE_f16 && to != DTYPE_bf16) || !p->packed || is_signed_integer(p->from) ||
        p->from->special == SPECIAL_E8M0 ||
        (dtype_is_float(from) && !can_realign(p->from, &dtype_info[to])))
        return false;
    if (has_same_exponent(p->from, &dtype_info[to]) && p->from->special == SPECIAL_FINITE)
        return false;       /* its largest numbers would be infinity */
    p->word_count = word_count(p, to);
    if (dtype_is_integer(from) && !is_placed(p, to))
        share_windows(p, p->from->bits, linear_bits(to).count - p->from->bits);
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)bare_word(p, to, lanes_at(p, to, w));
    return true;
}

/* Two codes to two halves by one instruction, which knows NaN. */
bool family_hardware(Planner *p, DType to)
{
    if (p->query->from != DTYPE_f8e4m3 || to != DTYPE_f16 || p->query->sm < 89)
        return false;
    p->word_count = word_count(p, to);
    for (unsigned w = 0; w < p->word_count; w++) {
        Lanes lanes = lanes_at(p, to, w);
        Field fields[FIELDS_MAX];
        unsigned count = 0;
        for (unsigned i = 0; i < lanes.count; i++)
            count = add_fields(p, fields, count, lanes.first + i, 0, 8, 8 * i, 0, 0);
        Arrangement a = arrange_fields(p, fields, count);
        bool plain = a.count == 1 && !p->packed;
        unsigned pair = plain ? node_shift(p, CAST_shr, p->source[w / 2], 16 * (w % 2))
                              : build_arrangement(p, &a, 0);
        p->words[w] = (uint16_t)node_op(p, CAST_from_e4m3, pair, 0, 0);
    }
    return true;
}

/* ---- tables ------------------------------------------------------------------ */

/* Byte `byte` of the eight codes from `first` on, cast: the table's two words. */
static unsigned build_table(Planner *p, DType to, unsigned first, unsigned byte, unsigned half)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t code = dtype_cast(to, p->query->from, first + 4 * half + i);
        word |= (uint32_t)(code >> 8 * byte & 0xff) << 8 * i;
    }
    return node_constant(p, word);
}

static unsigned look_up(Planner *p, DType to, unsigned first, unsigned byte, unsigned selector)
{
    return node_op(p, CAST_prmt, build_table(p, to, first, byte, 0),
                    build_table(p, to, first, byte, 1), selector);
}

/* Four codes of 4 bits from word `w`, as the low half of a selector without
 * their upper bits. */
static unsigned build_selector(Planner *p, unsigned group)
{
    unsigned word = node_lop3(p, LOP3_AND_XOR, p->source[group / 2],
                               node_constant(p, 0x77777777), node_constant(p, 0));
    return node_shift(p, CAST_shr, word, 16 * (group % 2));
}

/* The upper bits of four codes: in bit 7 of each byte, or all over it. */
static unsigned build_upper_bits(Planner *p, unsigned group, bool spread)
{
    unsigned odd = p->source[group / 2], even = node_shift(p, CAST_shl, odd, 4);
    uint32_t selector = group % 2 ? 0x7362 : 0x5140;
    return node_prmt(p, even, odd, selector | (spread ? 0x8888 : 0));
}

static unsigned look_up_group(Planner *p, DType to, unsigned group, unsigned byte)
{
    unsigned selector = build_selector(p, group), low = look_up(p, to, 0, byte, selector);
    if (dtype_is_float(p->query->from) && dtype_is_float(to)) {
        if (byte + 1 < dtype_bits(to) / 8)
            return low;
        return node_lop3(p, LOP3_AND_XOR, build_upper_bits(p, group, false),
                          node_constant(p, 0x80808080), low);
    }
    unsigned high = look_up(p, to, 8, byte, selector);
    return node_lop3(p, LOP3_SELECT, build_upper_bits(p, group, true), high, low);
}

/* Returns true when the low byte of every result is zero. */
static bool has_high_bytes_only(const Planner *p, DType to)
{
    for (unsigned code = 0; code < 16; code++)
        if (dtype_cast(to, p->query->from, code) & 0xff)
            return false;
    return true;
}

/* Joins upper and lower bytes of each group of four elements to halves. */
static void look_up_halves(Planner *p, DType to, unsigned group)
{
    unsigned high = look_up_group(p, to, group, 1);
    unsigned low = has_high_bytes_only(p, to) ? node_constant(p, 0)
                                              : look_up_group(p, to, group, 0);
    p->words[2 * group] = (uint16_t)node_prmt(p, low, high, 0x5140);
    if (2 * group + 1 < p->word_count)
        p->words[2 * group + 1] = (uint16_t)node_prmt(p, low, high, 0x7362);
}

/* Codes of 4 bits: three of them choose among eight bytes in two registers, and
 * the fourth is the sign or chooses between two tables. */
bool family_lookup(Planner *p, DType to)
{
    unsigned bits = dtype_bits(to);
    if (p->from->bits != 4 || p->packed || to == DTYPE_f32 || to == DTYPE_tf32)
        return false;
    p->word_count = word_count(p, to);
    unsigned groups = (p->query->elements + 3) / 4;
    for (unsigned group = 0; group < groups; group++)
        if (bits == 8)
            p->words[group] = (uint16_t)look_up_group(p, to, group, 0);
        else
            look_up_halves(p, to, group);
    return true;
}

/* ---- integers to bytes --------------------------------------------------------- */

static uint32_t in_bytes(uint32_t byte)
{
    return byte * 0x01010101;
}

/* Negative codes become 0: their signs, in bit 7, spread over a mask. */
static unsigned clear_negative(Planner *p, unsigned word, unsigned shift)
{
    unsigned mask = node_prmt(p, word, word, 0xba98);
    word = node_shift(p, CAST_shr, word, shift);
    return node_lop3(p, LOP3_AND_NOT, word, mask, node_constant(p, 0));
}

/* c ^ s is offset binary, c + s of the signed value; minus s, with a bit above
 * set so that nothing is borrowed from the next byte. */
static unsigned extend_sign(Planner *p, unsigned word, uint32_t sign)
{
    word = node_op(p, CAST_sub, word, node_constant(p, in_bytes(sign)), 0);
    return node_lop3(p, LOP3_AND_XOR, word, node_constant(p, UINT32_MAX),
                      node_constant(p, in_bytes(0x80)));
}

static unsigned bytes_word(Planner *p, DType to, Lanes lanes)
{
    unsigned bits = p->from->bits, count = 0;
    bool negative = is_signed_integer(p->from), flips = p->storage.flips;
    unsigned at = negative && to == DTYPE_u8 ? 8 - bits : 0;
    uint32_t sign = UINT32_C(1) << (bits - 1);
    Field fields[FIELDS_MAX];
    for (unsigned i = 0; i < lanes.count; i++)
        count = add_fields(p, fields, count, lanes.first + i, 0, bits, 8 * i, at, at);
    Arrangement a = arrange_fields(p, fields, count);
    if (negative && to == DTYPE_i8)
        return extend_sign(p, build_arrangement(p, &a, in_bytes(flips ? 0x80 : sign | 0x80)),
                           sign);
    unsigned word = build_arrangement(p, &a, flips ? in_bytes(sign << at) : 0);
    if (negative)
        return clear_negative(p, word, at);
    if (to == DTYPE_u8 || bits < 8)
        return word;
    /* 128 .. 255 become 127. */
    return node_lop3(p, LOP3_OR_AND, word, node_prmt(p, word, word, 0xba98),
                      node_constant(p, in_bytes(0x7f)));
}

bool family_bytes(Planner *p, DType to)
{
    if (!dtype_is_integer(p->query->from) || (to != DTYPE_i8 && to != DTYPE_u8))
        return false;
    p->word_count = word_count(p, to);
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)bytes_word(p, to, lanes_at(p, to, w));
    return true;
}
