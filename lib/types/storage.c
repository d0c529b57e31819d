/* Storage orders: those of orders.def, and the plain ones of integers whose codes fill
 * halves.
 *
 * The two halves of a word of codes are treated alike, for casts do the same to both:
 * elements 2r and 2r + 1, a pair, have their bits at equal places of the low and of the
 * high half, or crosswise where a cast turns the word. */
#include "types/storage.h"

#include <assert.h>
#include <string.h>

enum { PLACES = 16, WORDS_MAX = 7 };

/* Floats of 8 bits share two words, in which more of them lie as casts want them. */
unsigned cast_group(DType from)
{
    unsigned bits = dtype_bits(from), elements = 1;
    while (elements * bits % 32)
        elements *= 2;
    return bits == 8 && dtype_is_float(from) ? 2 * elements : elements;
}

bool cast_has_storage(DType from, DType to)
{
    const DTypeInfo *f = &dtype_info[from];
    return f->bits <= 8 && (dtype_is_integer(from) || f->kind == DKIND_FLOAT) &&
           (to == DTYPE_f16 || to == DTYPE_bf16);
}

/* ---- orders --------------------------------------------------------------------- */

/* A row of orders.def. */
typedef struct Order {
    uint8_t bits, low;
    DType to;                   /* of integers */
    const char *lows, *words[WORDS_MAX];
} Order;

static const Order float_orders[] = {
#define FLOAT_ORDER(bits, low, ints, lefts, ...) {bits, low, DTYPE_none, NULL, {__VA_ARGS__}},
#define INTEGER_ORDER(bits, to, ints, lefts, lows, ...)
#include "types/orders.def"
};

static const Order integer_orders[] = {
#define FLOAT_ORDER(bits, low, ints, lefts, ...)
#define INTEGER_ORDER(bits, to, ints, lefts, lows, ...) \
    {bits, 0, DTYPE_##to, lows, {__VA_ARGS__}},
#include "types/orders.def"
};

/* The order of integers of `bits` bits, or NULL. */
static const Order *integer_order(unsigned bits, DType to)
{
    for (size_t i = 0; i < sizeof integer_orders / sizeof *integer_orders; i++)
        if (integer_orders[i].bits == bits && integer_orders[i].to == to)
            return &integer_orders[i];
    return NULL;
}

/* The order of floats with a sign whose magnitudes go to place `low`, or NULL. */
static const Order *float_order(unsigned bits, unsigned low)
{
    for (size_t i = 0; i < sizeof float_orders / sizeof *float_orders; i++)
        if (float_orders[i].bits == bits && float_orders[i].low == low)
            return &float_orders[i];
    return NULL;
}

/* Bits as the words of a row say, from the places 15 to 0 of the low halves: two letters
 * each, the pair, in capitals for its odd element, and the bit. */
static void place_words(CastStorage *s, unsigned bits, const Order *order)
{
    assert(order && "orders.def has a row for every float");
    for (unsigned w = 0; w < s->words; w++)
        for (unsigned place = 0; place < PLACES; place++) {
            const char *at = order->words[w] + 2 * (PLACES - 1 - place);
            bool is_odd = at[0] < 'a';
            unsigned e = 2 * (unsigned)(at[0] - (is_odd ? 'A' : 'a')) + is_odd;
            unsigned bit = (unsigned)(at[1] - '0'), low = 32 * w + place;
            s->order[e * bits + bit] = (uint16_t)low;
            s->order[(e ^ 1) * bits + bit] = (uint16_t)(low + PLACES);
        }
}

/* Codes side by side in each half. */
static void place_halves(CastStorage *s, unsigned bits)
{
    unsigned each = PLACES / bits;
    for (unsigned e = 0; e < s->elements; e++)
        for (unsigned b = 0; b < bits; b++)
            s->order[e * bits + b] = (uint16_t)(e / 2 / each * 32 + e % 2 * PLACES +
                                                e / 2 % each * bits + b);
}

/* Returns true when halves of type `to` hold the codes of a float, and none of its numbers
 * would be infinity. */
static bool fits_half(const DTypeInfo *from, const DTypeInfo *to)
{
    return from->exponent < to->exponent ||
           (from->exponent == to->exponent &&
            (from->special != SPECIAL_FINITE || !from->mantissa));
}

/* Orders the bits of floats for casts to `to`, or by bf16 where no half of `to` holds the
 * codes. */
static void order_floats(const DTypeInfo *f, DType to, CastStorage *s)
{
    s->to = fits_half(f, &dtype_info[to]) ? to : DTYPE_bf16;
    unsigned low = (unsigned)dtype_info[s->to].mantissa - f->mantissa;
    memset(s->low, (int)low, sizeof s->low);
    if (f->special == SPECIAL_E8M0)
        place_halves(s, f->bits);
    else
        place_words(s, f->bits, float_order(f->bits, low));
}

static void order_integers(unsigned bits, DType to, CastStorage *s)
{
    const Order *order = integer_order(bits, to);
    if (!order) {
        place_halves(s, bits);
        return;
    }
    s->to = to;
    for (unsigned e = 0; e < s->elements; e++)
        s->low[e] = (uint8_t)(order->lows[e / 2] - '0');
    place_words(s, bits, order);
}

void cast_storage(DType from, DType to, CastStorage *storage)
{
    assert(cast_has_storage(from, to));
    const DTypeInfo *f = &dtype_info[from];
    *storage = (CastStorage){.elements = cast_group(from), .flips = f->kind == DKIND_INT};
    storage->words = storage->elements * f->bits / 32;
    if (dtype_is_integer(from))
        order_integers(f->bits, to, storage);
    else
        order_floats(f, to, storage);
}

/* ---- packing -------------------------------------------------------------------- */

static unsigned bit_of(const uint32_t *words, unsigned i)
{
    return words[i / 32] >> i % 32 & 1;
}

/* Returns true when bit `i` of a group in plain order is stored inverted. */
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
