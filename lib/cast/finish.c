/* Finishes a plan: the family decoded to one type, the query asks for another. f32 comes
 * from bf16, f16 from bf16 by way of f32, bytes from f16. */
#include "cast/internal.h"

#include <math.h>

void set_words(Planner *p, const uint16_t *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        p->words[i] = words[i];
    p->word_count = count;
}

/* A bf16 is the upper half of an f32. */
static unsigned build_f32(Planner *p, unsigned word, unsigned half)
{
    if (half == 0)
        return node_shift(p, CAST_shl, word, 16);
    return node_lop3(p, LOP3_AND_XOR, word, node_constant(p, 0xffff0000),
                      node_constant(p, 0));
}

static void widen_words(Planner *p)
{
    uint16_t words[CAST_WORDS_MAX];
    for (unsigned e = 0; e < p->query->elements; e++)
        words[e] = (uint16_t)build_f32(p, p->words[e / 2], e % 2);
    set_words(p, words, p->query->elements);
}

/* Rounds to f16, the only step that does. */
static void narrow_words(Planner *p)
{
    for (unsigned i = 0; i < p->word_count; i++) {
        unsigned low = build_f32(p, p->words[i], 0), high = build_f32(p, p->words[i], 1);
        p->words[i] = (uint16_t)node_op(p, CAST_narrow_f16, low, high, 0);
    }
}

void pack_words(Planner *p, uint32_t selector)
{
    uint16_t words[CAST_WORDS_MAX];
    unsigned count = (p->word_count + 1) / 2;
    for (unsigned i = 0; i < count; i++) {
        unsigned low = p->words[2 * i];
        unsigned high = 2 * i + 1 < p->word_count ? p->words[2 * i + 1] : low;
        words[i] = (uint16_t)node_prmt(p, low, high, selector);
    }
    set_words(p, words, count);
}

/* Clamps where values of the source lie outside, NaN to the largest value, then
 * adds 1.5 * 2^10, whose last place is 1: the low byte is the integer. */
static void round_words(Planner *p)
{
    DType to = p->query->to, from = p->query->from;
    double max = dtype_max(to), min = dtype_min(to);
    bool above = dtype_max(from) > max || dtype_has_nan(from), below = dtype_min(from) < min;
    for (unsigned i = 0; i < p->word_count; i++) {
        unsigned v = p->words[i];
        if (above)
            v = node_op(p, CAST_f16_min, v, node_number(p, DTYPE_f16, max), 0);
        if (below)
            v = node_op(p, CAST_f16_max, v, node_number(p, DTYPE_f16, min), 0);
        v = node_op(p, CAST_f16_add, v, node_number(p, DTYPE_f16, 1536), 0);
        p->words[i] = (uint16_t)v;
    }
    pack_words(p, 0x6420);
}

/* ---- 8-bit floats ------------------------------------------------------------- */

/* Returns true when casts to f16 and from f16 equal a single cast. */
static bool passes_f16(DType to, DType from)
{
    for (unsigned code = 0; code < 1u << dtype_bits(from); code++) {
        uint64_t half = dtype_cast(DTYPE_f16, from, code);
        if (dtype_cast(to, DTYPE_f16, half) != dtype_cast(to, from, code))
            return false;
    }
    return true;
}

/* Returns true when every code's f8e5m2 is the upper byte of its f16, and the lower is 0. */
static bool is_top_byte(DType from)
{
    for (unsigned code = 0; code < 1u << dtype_bits(from); code++)
        if (dtype_cast(DTYPE_f16, from, code) != dtype_cast(DTYPE_f8e5m2, from, code) << 8)
            return false;
    return true;
}

/* Returns true when no code becomes infinity or NaN, for which cvt has other codes of
 * f8e5m2 than ours. */
static bool stays_finite(DType to, DType from)
{
    for (unsigned code = 0; code < 1u << dtype_bits(from); code++)
        if (!isfinite(dtype_decode(to, dtype_cast(to, from, code))))
            return false;
    return true;
}

static bool convert_words(Planner *p)
{
    DType to = p->query->to, from = p->query->from;
    if (to == DTYPE_f8e5m2 && is_top_byte(from)) {
        pack_words(p, 0x7531);
        return true;
    }
    if (p->query->sm < 89 || (to == DTYPE_f8e5m2 && !stays_finite(to, from)))
        return false;
    CastOpCode code = to == DTYPE_f8e4m3 ? CAST_to_e4m3 : CAST_to_e5m2;
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)node_op(p, code, p->words[i], 0, 0);
    pack_words(p, 0x5410);
    return true;
}

bool finish_words(Planner *p, DType via)
{
    DType to = p->query->to;
    if (via == to || (via == DTYPE_f32 && to == DTYPE_tf32))
        return true;
    if (to == DTYPE_f32 || to == DTYPE_tf32) {
        widen_words(p);
        return true;
    }
    if (via == DTYPE_bf16)
        narrow_words(p);
    if (to == DTYPE_f16)
        return true;
    if (!passes_f16(to, p->query->from))
        return false;
    if (dtype_is_float(to))
        return convert_words(p);
    round_words(p);
    return true;
}
