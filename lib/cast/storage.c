/* Storage orders, by construction.
 *
 * The two halves of a word of codes are treated alike, for casts do the same to both:
 * elements 2r and 2r + 1, a pair, have their bits at equal places of the low and of the
 * high half. So only pairs are placed, in the 16 places of each of the group's words:
 *
 *     integers   as many whole codes as fit, from place 0 on
 *     floats     the first code where the target's half wants it, its sign at 15 and its
 *                magnitude across the border of exponent and mantissa; then codes that
 *                one shift to the left brings there; then those whose magnitude is
 *                whole, with the sign anywhere; or, if that places more of them,
 *                magnitudes side by side and signs in what they leave
 *
 * What is left of each word takes the bits of the other pairs, as few pieces each as
 * there are. */
#include "cast/storage.h"

#include "cast/plan.h"

#include <string.h>

enum { PLACES = 16, WORDS_MAX = CAST_GROUP_BITS_MAX / 32, BITS_MAX = 8 };

unsigned cast_group(DType from)
{
    unsigned bits = dtype_bits(from), elements = 1;
    while (elements * bits % 32)
        elements *= 2;
    return elements;
}

bool cast_has_storage(DType from, DType to)
{
    const DTypeInfo *f = &dtype_info[from];
    return f->bits <= 8 && (dtype_is_integer(from) || f->kind == DKIND_FLOAT) &&
           (to == DTYPE_f16 || to == DTYPE_bf16);
}

/* ---- placing ------------------------------------------------------------------ */

/* An order being made. */
typedef struct Placement {
    CastStorage *storage;
    unsigned bits, pairs;       /* of a code; of a group */
    unsigned placed;            /* pairs that have their places */
    uint32_t free[WORDS_MAX];   /* places of each word that hold no bit yet */
} Placement;

/* Puts a bit of pair `pair` at a place of a word. */
static void place_bit(Placement *p, unsigned pair, unsigned bit, unsigned word, unsigned at)
{
    for (unsigned half = 0; half < 2; half++)
        p->storage->order[(2 * pair + half) * p->bits + bit] =
            (uint16_t)(32 * word + PLACES * half + at);
    p->free[word] &= ~(UINT32_C(1) << at);
}

/* The lowest place from which `count` places are free; PLACES if there is none. */
static unsigned find_run(uint32_t free, unsigned count)
{
    uint32_t run = (UINT32_C(1) << count) - 1;
    for (unsigned at = 0; at + count <= PLACES; at++)
        if ((free >> at & run) == run)
            return at;
    return PLACES;
}

static void place_run(Placement *p, unsigned first_bit, unsigned count, unsigned word,
                      unsigned at)
{
    for (unsigned b = 0; b < count; b++)
        place_bit(p, p->placed, first_bit + b, word, at + b);
}

static void place_integers(Placement *p, unsigned word)
{
    for (unsigned at = 0; at + p->bits <= PLACES; at += p->bits, p->placed++)
        place_run(p, 0, p->bits, word, at);
}

/* Where a half of the target has a code: its magnitude from `low` on, its sign on top. */
typedef struct Pattern {
    unsigned low, magnitude;
    bool sign;
} Pattern;

static uint32_t pattern_places(const Pattern *f)
{
    uint32_t magnitude = ((UINT32_C(1) << f->magnitude) - 1) << f->low;
    return magnitude | (uint32_t)f->sign << (PLACES - 1);
}

/* A code that a shift by `left` brings to its places; false where these are taken. */
static bool place_shifted(Placement *p, const Pattern *f, unsigned word, unsigned left)
{
    uint32_t places = pattern_places(f);
    if (left > f->low || (places >> left & ~p->free[word]))
        return false;
    place_run(p, 0, f->magnitude, word, f->low - left);
    if (f->sign)
        place_bit(p, p->placed, f->magnitude, word, PLACES - 1 - left);
    p->placed++;
    return true;
}

static bool place_parted(Placement *p, const Pattern *f, unsigned word)
{
    unsigned at = find_run(p->free[word], f->magnitude);
    if (at == PLACES)
        return false;
    uint32_t run = ((UINT32_C(1) << f->magnitude) - 1) << at, rest = p->free[word] & ~run;
    if (f->sign && !rest)
        return false;
    place_run(p, 0, f->magnitude, word, at);
    if (f->sign)
        place_bit(p, p->placed, f->magnitude, word, 31 - (unsigned)__builtin_clz(rest));
    p->placed++;
    return true;
}

/* A sign goes where the shift that brings its magnitude in place brings it, too, or
 * anywhere. */
static void place_sign(Placement *p, const Pattern *f, unsigned pair, unsigned word,
                       unsigned magnitude_at)
{
    unsigned at = PLACES - 1 - (f->low - magnitude_at);
    if (at >= PLACES || !(p->free[word] >> at & 1))
        at = 31 - (unsigned)__builtin_clz(p->free[word]);
    place_bit(p, pair, f->magnitude, word, at);
}

/* Magnitudes side by side, one of them at place `first`, as many codes as fit; then
 * their signs. */
static void place_side_by_side(Placement *p, const Pattern *f, unsigned word, unsigned first)
{
    unsigned begin = p->placed, count = PLACES / p->bits, at[PLACES];
    for (unsigned low = first % f->magnitude; low + f->magnitude < PLACES; low += f->magnitude)
        if (p->placed - begin < count) {
            at[p->placed - begin] = low;
            place_run(p, 0, f->magnitude, word, low);
            p->placed++;
        }
    for (unsigned i = 0; begin + i < p->placed; i++)
        place_sign(p, f, begin + i, word, at[i]);
}

/* The first of the ways that places the most codes. */
static void place_floats(Placement *p, const Pattern *f, unsigned word)
{
    enum { WAYS = 3 };
    Placement best = *p;
    CastStorage before = *p->storage, kept = before;
    for (unsigned way = 0; way < (f->sign ? WAYS : 1); way++) {
        Placement tried = *p;
        *p->storage = before;
        for (unsigned left = 0; way == 0 && left < PLACES; left++)
            place_shifted(&tried, f, word, left);
        while (way == 0 && place_parted(&tried, f, word))
            ;
        if (way > 0)
            place_side_by_side(&tried, f, word, way == 1 ? f->low : 0);
        if (tried.placed > best.placed) {
            best = tried;
            kept = *p->storage;
        }
    }
    *p = best;
    *p->storage = kept;
}

/* The pairs that are left, in what is free. */
static void place_rest(Placement *p)
{
    unsigned word = 0;
    for (; p->placed < p->pairs; p->placed++)
        for (unsigned b = 0; b < p->bits; b++) {
            while (!p->free[word])
                word++;
            place_bit(p, p->placed, b, word, (unsigned)__builtin_ctz(p->free[word]));
        }
}

void cast_storage(DType from, DType to, CastStorage *storage)
{
    const DTypeInfo *f = &dtype_info[from], *t = &dtype_info[to];
    *storage = (CastStorage){.elements = cast_group(from), .flips = f->kind == DKIND_INT};
    Placement p = {.storage = storage, .bits = f->bits, .pairs = storage->elements / 2};
    Pattern pattern = {(unsigned)t->mantissa - f->mantissa, f->exponent + (unsigned)f->mantissa,
                       f->bits > f->exponent + f->mantissa};
    bool fits = dtype_is_integer(from) ||
                (f->exponent <= t->exponent && f->mantissa <= t->mantissa);
    storage->words = storage->elements * f->bits / 32;
    for (unsigned w = 0; w < storage->words; w++)
        p.free[w] = (UINT32_C(1) << PLACES) - 1;
    for (unsigned w = 0; fits && w < storage->words; w++)
        if (dtype_is_integer(from))
            place_integers(&p, w);
        else
            place_floats(&p, &pattern, w);
    place_rest(&p);
}

/* ---- packing -------------------------------------------------------------------- */

static unsigned bit_of(const uint32_t *words, unsigned i)
{
    return words[i / 32] >> i % 32 & 1;
}

/* Whether bit `i` of a group in plain order is stored inverted. */
static bool is_flipped(const CastStorage *s, unsigned i)
{
    unsigned bits = 32 * s->words / s->elements;
    return s->flips && i % bits == bits - 1;
}

void cast_pack_group(const CastStorage *s, const uint32_t *in, uint32_t *out)
{
    memset(out, 0, s->words * sizeof *out);
    for (unsigned i = 0; i < 32 * s->words; i++)
        out[s->order[i] / 32] |= (bit_of(in, i) ^ is_flipped(s, i)) << s->order[i] % 32;
}

void cast_unpack_group(const CastStorage *s, const uint32_t *in, uint32_t *out)
{
    memset(out, 0, s->words * sizeof *out);
    for (unsigned i = 0; i < 32 * s->words; i++)
        out[i / 32] |= (bit_of(in, s->order[i]) ^ is_flipped(s, i)) << i % 32;
}

/* ---- residual exponents ----------------------------------------------------------- */

bool cast_exponents(Arena *arena, DType from, DType to, int16_t *exponents)
{
    CastPlan plan;
    CastQuery query = {.from = from, .to = to, .elements = cast_group(from), .sm = 80,
                       .packed = to, .residual = true};
    if (!cast_has_storage(from, to) || !cast_plan(arena, &query, &plan))
        return false;
    for (unsigned e = 0; e < query.elements; e++)
        exponents[e] = plan.exponents[e];
    return true;
}
