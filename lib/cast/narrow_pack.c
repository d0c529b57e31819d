/* Codes in lanes of 16 or 32 bits become whole words: side by side in groups,
 * groups side by side in words. docs/casts.md draws it. */
#include "cast/internal.h"

#include <math.h>

/* Groups of `bits` bits each, side by side in the low bits of words or, `high`, in
 * the high bits; the other bits of those are anything. */
typedef struct Groups {
    uint16_t words[CAST_WORDS_MAX];
    unsigned count, bits;
    bool high;
} Groups;

/* The groups that word `w` has bits of. */
static unsigned first_group(const Groups *g, unsigned w)
{
    return 32 * w / g->bits;
}

static unsigned last_group(const Groups *g, unsigned w)
{
    unsigned last = (32 * w + 31) / g->bits;
    return last < g->count ? last : g->count - 1;
}

/* Returns the number of bits of group `i` before word `w`. */
static unsigned bits_before(const Groups *g, unsigned i, unsigned w)
{
    return i * g->bits < 32 * w ? 32 * w - i * g->bits : 0;
}

static unsigned join_pair(Planner *p, const Groups *g, unsigned w)
{
    unsigned low = g->words[2 * w];
    unsigned high = 2 * w + 1 < g->count ? g->words[2 * w + 1] : low;
    return node_prmt(p, low, high, g->high ? 0x7632 : 0x5410);
}

/* Joins groups from the last one on: each shift brings the next one in from below. */
static unsigned join_high(Planner *p, const Groups *g, unsigned w)
{
    unsigned i = last_group(g, w), first = first_group(g, w);
    unsigned word = node_shift(p, CAST_shr, g->words[i], 32 - g->bits + bits_before(g, i, w));
    while (i-- > first) {
        unsigned drop = 32 - g->bits + bits_before(g, i, w);
        word = node_of(p, (CastOp){CAST_shf, drop, {g->words[i], (uint16_t)word}});
    }
    return word;
}

/* Joins groups from the first one on: each shift brings the next one in from above. */
static unsigned join_low(Planner *p, const Groups *g, unsigned w)
{
    unsigned i = first_group(g, w), last = last_group(g, w), end = (i + 1) * g->bits;
    unsigned word = node_shift(p, CAST_shl, g->words[i], 32 - g->bits);
    while (i++ < last) {
        unsigned left = 32 * (w + 1) - end, take = g->bits < left ? g->bits : left;
        word = node_of(p, (CastOp){CAST_shf, take, {(uint16_t)word, g->words[i]}});
        end += take;
    }
    return node_shift(p, CAST_shr, word, 32 * (w + 1) - end);
}

static void join_groups(Planner *p, const Groups *g)
{
    p->word_count = (p->query->elements * dtype_bits(p->query->to) + 31) / 32;
    for (unsigned w = 0; w < p->word_count; w++)
        p->words[w] = (uint16_t)(g->bits == 16 ? join_pair(p, g, w)
                                 : g->high     ? join_high(p, g, w)
                                               : join_low(p, g, w));
}

/* ---- halves ------------------------------------------------------------------ */

/* Returns the number of words in a group: each half of it leaves room for the codes of the
 * other, and all codes must lie in 16 bits. */
static unsigned words_together(unsigned bits, unsigned at)
{
    unsigned n = 1;
    while (2 * (n + 1) * bits <= 16 && at + 2 * (n + 1) * bits - bits <= 16)
        n++;
    return n;
}

static unsigned multiply_add(Planner *p, unsigned a, uint32_t factor, unsigned c)
{
    return node_op(p, CAST_mad, a, node_constant(p, factor), c);
}

/* The words [first, first + count), each of whose halves has a code at place `at`,
 * as a group in the high bits of a word: their codes side by side with gaps, then
 * one product that brings the lower half below the top and the upper one's codes
 * between. */
static unsigned fold_halves(Planner *p, unsigned first, unsigned count, unsigned size,
                            unsigned bits, unsigned at)
{
    unsigned word = p->words[first + count - 1], low = 32 - 2 * size * bits;
    for (unsigned i = count - 1; i-- > 0;)
        word = multiply_add(p, word, UINT32_C(1) << 2 * bits, p->words[first + i]);
    uint32_t factor = (UINT32_C(1) << (low - at)) + (UINT32_C(1) << (low + bits - 16 - at));
    return multiply_add(p, word, factor, node_constant(p, 0));
}

void pack_halves(Planner *p, unsigned bits, unsigned at)
{
    if (bits == 8) {
        pack_words(p, at ? 0x7531 : 0x6420);
        return;
    }
    unsigned size = words_together(bits, at);
    Groups g = {.bits = 2 * size * bits, .high = true};
    for (unsigned i = 0; i < p->word_count; i += size) {
        unsigned left = p->word_count - i, count = left < size ? left : size;
        g.words[g.count++] = (uint16_t)fold_halves(p, i, count, size, bits, at);
    }
    join_groups(p, &g);
}

/* ---- singles ----------------------------------------------------------------- */

/* Codes in low bits are subnormal numbers: an fma puts one below another, up to 24
 * bits. */
static unsigned fold_singles(Planner *p, unsigned first, unsigned count, unsigned bits)
{
    unsigned word = p->words[first + count - 1];
    unsigned factor = node_number(p, DTYPE_f32, ldexp(1, (int)bits));
    for (unsigned i = count - 1; i-- > 0;)
        word = node_op(p, CAST_f32_fma, word, factor, p->words[first + i]);
    return word;
}

void pack_singles(Planner *p, unsigned bits)
{
    unsigned size = 16 % bits ? 24 / bits : 16 / bits;
    Groups g = {.bits = size * bits};
    for (unsigned i = 0; i < p->word_count; i += size) {
        unsigned left = p->word_count - i;
        g.words[g.count++] = (uint16_t)fold_singles(p, i, left < size ? left : size, bits);
    }
    join_groups(p, &g);
}

/* ---- signs ------------------------------------------------------------------- */

void flip_signs(Planner *p, unsigned bits)
{
    unsigned ones = node_constant(p, UINT32_MAX);
    for (unsigned w = 0; w < p->word_count; w++) {
        uint32_t signs = 0;
        for (unsigned i = 0; i < 32; i++)
            if ((32 * w + i) % bits == bits - 1)
                signs |= UINT32_C(1) << i;
        p->words[w] = (uint16_t)node_lop3(p, LOP3_AND_XOR, p->words[w], ones,
                                          node_constant(p, signs));
    }
}
