#include "cast/storage.h"

#include <string.h>

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
    bool source = f->bits <= 8 && (dtype_is_integer(from) || f->kind == DKIND_FLOAT);
    return source && from != to &&
           (to == DTYPE_f16 || to == DTYPE_bf16 || to == DTYPE_f8e4m3 || to == DTYPE_f8e5m2 ||
            to == DTYPE_i8 || to == DTYPE_u8);
}

void cast_storage(DType from, DType to, CastStorage *storage)
{
    (void)to;
    *storage = (CastStorage){.elements = cast_group(from),
                             .flips = dtype_info[from].kind == DKIND_INT};
    unsigned bits = storage->elements * dtype_bits(from);
    storage->words = bits / 32;
    for (unsigned i = 0; i < bits; i++)
        storage->order[i] = (uint16_t)i;
}

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

bool cast_exponents(DType from, DType to, int8_t *exponents)
{
    if (from != DTYPE_u8 || to != DTYPE_f16)
        return false;
    memset(exponents, -24, cast_group(from));
    return true;
}
