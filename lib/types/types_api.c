/* Public API of libtilus_rt: element types and compact storage. */
#include "tilus/types.h"

#include "support/bits.h"
#include "types/dtype.h"

#include <math.h>
#include <string.h>

static DType find(const char *type)
{
    return type ? dtype_find(type, strlen(type)) : DTYPE_none;
}

/* The code as the library keeps it: nothing above the type's bits. */
static uint64_t code_of(DType t, uint64_t code)
{
    return code & bits_mask(dtype_bits(t));
}

unsigned tilus_type_bits(const char *type)
{
    return dtype_bits(find(type));
}

double tilus_type_max(const char *type)
{
    return dtype_max(find(type));
}

double tilus_type_min(const char *type)
{
    return dtype_min(find(type));
}

bool tilus_type_is_float(const char *type)
{
    return dtype_is_float(find(type));
}

const char *tilus_type_name(size_t i)
{
    return i < DTYPE_COUNT - 1 ? dtype_name((DType)(i + 1)) : NULL;
}

double tilus_decode(const char *type, uint64_t code)
{
    DType t = find(type);
    return t == DTYPE_none ? (double)NAN : dtype_decode(t, code_of(t, code));
}

uint64_t tilus_encode(const char *type, double value)
{
    return dtype_encode(find(type), value);
}

uint64_t tilus_get_bits(const void *data, size_t i, unsigned bits)
{
    return bits_get(data, i, bits);
}

void tilus_set_bits(void *data, size_t i, unsigned bits, uint64_t code)
{
    bits_set(data, i, bits, code);
}
