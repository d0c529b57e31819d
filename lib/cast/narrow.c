/* The families that round: f16, bf16 and f32 to types of up to 8 bits. They
 * compute in lanes of their `via`, two in a word or one, and leave whole words of
 * codes; docs/casts.md says why each rounds once. */
#include "cast/internal.h"

#include <math.h>

/* Emits an operation with a number in every lane. */
static unsigned with_number(Planner *p, DType t, Arithmetic what, unsigned v, double number)
{
    return node_op(p, arithmetic_op(t, what), v, node_number(p, t, number), 0);
}

static unsigned masked(Planner *p, unsigned v, uint32_t mask)
{
    return node_lop3(p, LOP3_AND_XOR, v, node_constant(p, mask), node_constant(p, 0));
}

/* A mask of 16 bits in both halves. */
static uint32_t in_halves(uint32_t mask)
{
    return mask * 0x10001;
}

/* A mask of a lane of type `t`, in all lanes. */
static uint32_t in_lanes(DType t, uint32_t mask)
{
    return dtype_bits(t) == 16 ? in_halves(mask) : mask;
}

/* An f16 or bf16 of the source as an f32. */
static unsigned widen(Planner *p, unsigned element)
{
    unsigned word = p->source[element / 2], half = element % 2;
    if (p->query->from == DTYPE_f16)
        return node_op(p, CAST_widen_f16, node_shift(p, CAST_shr, word, 16 * half), 0, 0);
    return half ? masked(p, word, 0xffff0000) : node_shift(p, CAST_shl, word, 16);
}

/* Puts the source's elements, as lanes of its type or of f32, into p->words. */
static bool load_lanes(Planner *p, DType t)
{
    bool same = p->query->from == t;
    if (!same && t != DTYPE_f32)
        return false;
    p->word_count = same ? p->in_words : p->query->elements;
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)(same ? p->source[i] : widen(p, i));
    return true;
}

/* Two bytes of each of two words, of the last one alone, become a word's halves. */
static unsigned pair_words(Planner *p, uint16_t *words, unsigned count, uint32_t selector)
{
    unsigned pairs = (count + 1) / 2;
    for (unsigned i = 0; i < pairs; i++) {
        unsigned low = words[2 * i], high = 2 * i + 1 < count ? words[2 * i + 1] : low;
        words[i] = (uint16_t)node_prmt(p, low, high, selector);
    }
    return pairs;
}

/* Brings v between `least` and `most`; NaN becomes `nan`, which is `most` or
 * larger. */
static unsigned clamp(Planner *p, DType t, unsigned v, double least, double most, double nan)
{
    if (nan == most)
        return with_number(p, t, ARITH_MAX, with_number(p, t, ARITH_MIN, v, most), least);
    v = with_number(p, t, ARITH_MIN_NAN, v, most);
    v = with_number(p, t, ARITH_MAX_NAN, v, least);
    return with_number(p, t, ARITH_MIN, v, nan);
}

/* ---- linear: a product among the subnormals ---------------------------------- */

/* The least positive number: a product by it is a count of it, in the low bits of
 * the lane, rounded to nearest even like any other. */
static double least_number(DType t)
{
    const DTypeInfo *info = &dtype_info[t];
    return ldexp(1, 1 - float_bias(info) - (int)info->mantissa);
}

/* Returns true when integers lie unchanged in the low bits of lanes, after a sum instead
 * of a product: bytes may have other bits above them. */
static bool is_magic(DType to, DType t)
{
    return to == DTYPE_i8 && dtype_info[t].mantissa > 8;
}

/* Codes in the low bits of lanes; those of signed types as differences from the
 * least integer, but -1 and 0 of i1 as 1 and 0. A quarter above 1 rounds to 1: of
 * a clamp to [0, 1] ptxas makes one that turns NaN into 0. */
static unsigned linear_integer(Planner *p, DType t, unsigned v)
{
    DType to = p->query->to;
    double most = dtype_max(to), least = dtype_min(to), unit = least_number(t);
    most += to == DTYPE_u1 ? 0.25 : 0;
    v = clamp(p, t, v, least, most, most);
    if (is_magic(to, t))
        return with_number(p, t, ARITH_ADD, v, 1.5 * ldexp(1, (int)dtype_info[t].mantissa));
    if (least == 0)
        return with_number(p, t, ARITH_MUL, v, unit);
    bool negated = to == DTYPE_i1;
    return node_op(p, arithmetic_op(t, ARITH_FMA), v,
                   node_number(p, t, negated ? -unit : unit),
                   node_number(p, t, negated ? 0 : -least * unit));
}

static void pack_integers(Planner *p, DType t)
{
    DType to = p->query->to;
    unsigned bits = dtype_bits(to);
    if (t == DTYPE_f32 && bits == 8)
        p->word_count = pair_words(p, p->words, p->word_count, 0x5410);
    if (t == DTYPE_f32 && bits < 8)
        pack_singles(p, bits);
    else
        pack_halves(p, bits, 0);
    if (dtype_info[to].kind == DKIND_INT && bits > 1 && !is_magic(to, t))
        flip_signs(p, bits);
}

/* A code in each half: the magnitude, `bits` bits from place `at` on, and above it
 * the sign, which is the uppermost bit of the half of `signs`. */
static unsigned place_sign(Planner *p, unsigned word, unsigned signs, unsigned at,
                           unsigned bits)
{
    uint32_t magnitude = in_halves(low_bits(bits) << at);
    unsigned moved = node_shift(p, CAST_shr, signs, 15 - at - bits);
    moved = masked(p, moved, in_halves(UINT32_C(1) << (at + bits)));
    return node_lop3(p, LOP3_AND_XOR, word, node_constant(p, magnitude), moved);
}

/* Floats of one exponent bit are the sign and the magnitude of a count. Of an f32,
 * the lowest byte and the one with the sign make a half. */
static void pack_counts(Planner *p, DType t)
{
    unsigned bits = dtype_bits(p->query->to);
    if (t == DTYPE_f32)
        p->word_count = pair_words(p, p->words, p->word_count, 0x7430);
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)place_sign(p, p->words[i], p->words[i], 0, bits - 1);
    pack_halves(p, bits, 0);
}

static unsigned linear_float(Planner *p, DType t, unsigned v)
{
    double most = dtype_max(p->query->to);
    int power = (int)dtype_info[p->query->to].mantissa - 1;
    v = clamp(p, t, v, -most, most, most);
    return with_number(p, t, ARITH_MUL, v, ldexp(least_number(t), power));
}

bool family_linear(Planner *p, DType t)
{
    DType to = p->query->to;
    bool is_float = dtype_is_float(to);
    if ((is_float && dtype_info[to].exponent > 1) || !load_lanes(p, t))
        return false;
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)(is_float ? linear_float(p, t, p->words[i])
                                          : linear_integer(p, t, p->words[i]));
    if (is_float)
        pack_counts(p, t);
    else
        pack_integers(p, t);
    return true;
}

/* ---- quantum: a sum that rounds at the wanted bit ------------------------------ */

/* The target's values as numbers of a lane's type. */
typedef struct Quantum {
    DType lane, half;           /* computed in, and left in: two in a word */
    int scale;                  /* the value is multiplied by 2^-scale ... */
    int least;                  /* ... so that its least exponent is this */
    unsigned cut;               /* bits of the lane's mantissa that are rounded away */
    double most, nan;           /* what infinity or the largest value, and NaN, become */
} Quantum;

/* The largest finite value, or 2^e where that stands for infinity; and the value
 * whose code is NaN. */
static void set_extremes(Quantum *q, DType to)
{
    const DTypeInfo *info = &dtype_info[to];
    q->most = q->nan = dtype_max(to);
    if (info->special == SPECIAL_FN)
        q->nan = 480;               /* all ones */
    if (info->special == SPECIAL_IEEE) {
        q->most = ldexp(1, float_bias(info) + 1);
        q->nan = 1.5 * q->most;     /* quiet */
    }
}

/* The sum that rounds must not overflow, so values are made smaller first; by an
 * even exponent, for round_power. */
static Quantum quantum_of(DType to, DType lane)
{
    const DTypeInfo *info = &dtype_info[to], *t = &dtype_info[lane];
    Quantum q = {.lane = lane, .half = lane == DTYPE_f32 ? DTYPE_bf16 : lane,
                 .cut = t->mantissa - info->mantissa};
    set_extremes(&q, to);
    int exponent = ilogb(q.nan) + (int)q.cut;
    while (exponent - q.scale > float_bias(t))
        q.scale += 2;
    q.least = 1 - float_bias(info) - q.scale;
    return q;
}

/* The power of two at or below each |v|, but at least the target's least. */
static unsigned power_below(Planner *p, const Quantum *q, unsigned v)
{
    const DTypeInfo *t = &dtype_info[q->lane];
    uint32_t exponent = low_bits(t->exponent) << t->mantissa;
    v = masked(p, v, in_lanes(q->lane, exponent));
    return with_number(p, q->lane, ARITH_MAX, v, ldexp(1, q->least));
}

/* v to a multiple of 2^(e - m), with m bits of mantissa, by the sum of v and
 * 1.5 * 2^(e + cut), in whose last place that is 1. */
static unsigned round_value(Planner *p, const Quantum *q, unsigned v)
{
    double magic = ldexp(1.5, (int)q->cut);
    CastOpCode fma = arithmetic_op(q->lane, ARITH_FMA);
    unsigned power = power_below(p, q, v);
    unsigned sum = node_op(p, fma, power, node_number(p, q->lane, magic), v);
    return node_op(p, fma, power, node_number(p, q->lane, -magic), sum);
}

/* Rounds to a type without mantissa: a tie between 2^e and 2^(e + 1) goes to the even
 * exponent field. The sum's multiple of 2^e is odd where 2^e's code is even. With g = 2^e
 * or 2^(e - 1), whose field is even, it is (magic - 1) * 2^e + 2 * g. */
static unsigned round_power(Planner *p, const Quantum *q, unsigned v)
{
    const DTypeInfo *t = &dtype_info[q->lane];
    double magic = ldexp(1.5, (int)q->cut) - 1;
    CastOpCode fma = arithmetic_op(q->lane, ARITH_FMA);
    unsigned power = power_below(p, q, v);
    uint32_t even = low_bits(t->exponent - 1) << (t->mantissa + 1);
    unsigned g = masked(p, power, in_lanes(q->lane, even));
    unsigned addend = with_number(p, q->lane, ARITH_MUL, power, magic);
    addend = node_op(p, fma, g, node_number(p, q->lane, 2), addend);
    unsigned sum = node_op(p, arithmetic_op(q->lane, ARITH_ADD), addend, v, 0);
    return node_op(p, fma, addend, node_number(p, q->lane, -1), sum);
}

/* Rounds p->words; `signs` gets words that have the signs of their lanes, which a
 * difference that is zero has not. */
static void round_lanes(Planner *p, const Quantum *q, uint16_t *signs)
{
    double most = ldexp(q->most, -q->scale), nan = ldexp(q->nan, -q->scale);
    bool has_mantissa = dtype_info[p->query->to].mantissa;
    for (unsigned i = 0; i < p->word_count; i++) {
        unsigned v = p->words[i];
        if (q->scale)
            v = with_number(p, q->lane, ARITH_MUL, v, ldexp(1, -q->scale));
        v = clamp(p, q->lane, v, -most, most, nan);
        signs[i] = (uint16_t)v;
        p->words[i] = (uint16_t)(has_mantissa ? round_value(p, q, v) : round_power(p, q, v));
    }
}

/* Halves that hold values of the target become its codes: its exponents are made
 * those of the half's type, its subnormals the subnormals. */
static void pack_values(Planner *p, const Quantum *q, const uint16_t *signs)
{
    const DTypeInfo *to = &dtype_info[p->query->to], *t = &dtype_info[q->half];
    unsigned at = t->mantissa - to->mantissa, magnitude = to->exponent + to->mantissa;
    int bias = 1 - float_bias(t) - q->least;
    for (unsigned i = 0; i < p->word_count; i++) {
        unsigned v = with_number(p, q->half, ARITH_MUL, p->words[i], ldexp(1, bias));
        if (to->bits < 8)
            v = place_sign(p, v, signs[i], at, magnitude);
        else                        /* the upper byte of each half */
            v = node_lop3(p, LOP3_SELECT, node_constant(p, 0x80008000), signs[i],
                          node_shift(p, CAST_shl, v, t->exponent - to->exponent));
        p->words[i] = (uint16_t)v;
    }
    pack_halves(p, to->bits, to->bits < 8 ? at : 8);
}

/* The lane's type has more exponents, and at least two bits of mantissa more. An
 * f32 that has at most six bits is a bf16. */
bool family_quantum(Planner *p, DType t)
{
    const DTypeInfo *to = &dtype_info[p->query->to];
    uint16_t signs[CAST_WORDS_MAX];
    if (to->kind != DKIND_FLOAT || to->exponent < 2 ||
        to->exponent >= dtype_info[t].exponent || !load_lanes(p, t))
        return false;
    Quantum q = quantum_of(p->query->to, t);
    round_lanes(p, &q, signs);
    if (t == DTYPE_f32) {
        pair_words(p, signs, p->word_count, 0x7632);
        p->word_count = pair_words(p, p->words, p->word_count, 0x7632);
    }
    pack_values(p, &q, signs);
    return true;
}

/* ---- carry: rounding the bits --------------------------------------------------- */

/* The bits of numbers plus half of place `cut`, less where that place is even: a
 * carry leads to the next exponent. */
static unsigned add_half(Planner *p, DType t, unsigned v, unsigned cut)
{
    unsigned odd = masked(p, node_shift(p, CAST_shr, v, cut), in_lanes(t, 1));
    unsigned sum = node_op(p, CAST_add, v, odd, 0);
    return node_op(p, CAST_add, sum, node_constant(p, in_lanes(t, low_bits(cut - 1))), 0);
}

/* f8e5m2 is the upper byte of an f16. NaN goes along as infinity and gets its
 * mantissa back from the bit that a sum with its magnitude carries into the sign. */
static unsigned carry_half(Planner *p, unsigned word)
{
    unsigned number = with_number(p, DTYPE_f16, ARITH_MIN, word, (double)INFINITY);
    unsigned nan = node_op(p, CAST_add, masked(p, word, in_halves(0x7fff)),
                           node_constant(p, in_halves(0x3ff)), 0);
    return node_lop3(p, LOP3_AND_XOR, node_shift(p, CAST_shr, nan, 6),
                     node_constant(p, in_halves(0x200)), add_half(p, DTYPE_f16, number, 8));
}

/* ue8m0 is the exponent of a bf16 or f32; infinity's stands for NaN. Between its two
 * least codes, 2^-127 and 2^-126, are subnormals, which are linear: twice as far from
 * 2^-126 they lie as mantissas do between other powers of two. */
static unsigned carry_exponent(Planner *p, DType t, unsigned v)
{
    CastOpCode fma = arithmetic_op(t, ARITH_FMA);
    unsigned minus = node_number(p, t, -1);
    v = clamp(p, t, v, 0x1p-127, 0x1p127, (double)INFINITY);
    unsigned below = node_op(p, fma, v, minus, node_number(p, t, 0x1p-126));
    below = with_number(p, t, ARITH_MAX, below, 0);
    v = node_op(p, fma, below, minus, v);
    return node_shift(p, CAST_shl, add_half(p, t, v, dtype_info[t].mantissa), 1);
}

/* Codes in the upper bytes of lanes. */
bool family_carry(Planner *p, DType t)
{
    DType to = p->query->to;
    bool fits = t == DTYPE_f16 ? to == DTYPE_f8e5m2 : to == DTYPE_ue8m0;
    if (!fits || !load_lanes(p, t))
        return false;
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)(t == DTYPE_f16 ? carry_half(p, p->words[i])
                                                : carry_exponent(p, t, p->words[i]));
    if (t == DTYPE_f32)
        p->word_count = pair_words(p, p->words, p->word_count, 0x7632);
    pack_halves(p, 8, 8);
    return true;
}

/* ---- hardware ---------------------------------------------------------------- */

/* Two values to two codes by one instruction, which saturates: f8e5m2 does not. */
static void convert_halves(Planner *p)
{
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = (uint16_t)node_op(p, CAST_to_e4m3, p->words[i], 0, 0);
}

/* Two singles from `low` on below the low half of `top`; past the last one nothing. */
static unsigned convert_pair(Planner *p, unsigned low, unsigned top)
{
    const unsigned last = p->word_count - 1;
    if (low > last)
        return top;
    return node_op(p, CAST_pair_e4m3, p->words[low], p->words[low < last ? low + 1 : low], top);
}

static void convert_singles(Planner *p)
{
    uint16_t words[CAST_WORDS_MAX];
    const unsigned count = (p->word_count + 3) / 4, zero = node_constant(p, 0);
    for (unsigned i = 0; i < count; i++)
        words[i] = (uint16_t)convert_pair(p, 4 * i, convert_pair(p, 4 * i + 2, zero));
    set_words(p, words, count);
}

bool family_convert(Planner *p, DType t)
{
    if (p->query->to != DTYPE_f8e4m3 || p->query->sm < 89 || t == DTYPE_bf16 ||
        !load_lanes(p, t))
        return false;
    if (t == DTYPE_f32) {
        convert_singles(p);
    } else {
        convert_halves(p);
        pack_words(p, 0x5410);
    }
    return true;
}
