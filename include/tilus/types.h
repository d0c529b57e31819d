/* Element types: their names, the meaning of their codes, compact storage. Exported by
 * libtilus_rt, which needs neither LLVM nor a GPU.
 *
 * All functions are thread safe where no two threads write the same byte. */
#ifndef TILUS_TYPES_H
#define TILUS_TYPES_H

#include "tilus/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types and codes --------------------------------------------------- */

/* Types are named as in program text ("i6", "f6e3m2", "bf16").
 *
 * Bits of a type; 0 for an unknown name. Largest and least finite value, as
 * decode gives them; NaN for an unknown name. */
TILUS_API unsigned tilus_type_bits(const char *type);
TILUS_API double tilus_type_max(const char *type);
TILUS_API double tilus_type_min(const char *type);
TILUS_API bool tilus_type_is_float(const char *type);

/* The i-th type's name; NULL past the last. */
TILUS_API const char *tilus_type_name(size_t i);

/* The definition of every type: the value of a code; the code nearest to a value, ties to
 * the even code. Types without infinity saturate; NaN becomes the largest value of a type
 * without NaN (docs/language.md, "Element types"). For an unknown type decode gives NaN and
 * encode 0. */
TILUS_API double tilus_decode(const char *type, uint64_t code);
TILUS_API uint64_t tilus_encode(const char *type, double value);

/* Element `i` of compactly stored elements of `bits` (1 to 64) bits each, least
 * significant bit first: bits [i * bits, (i + 1) * bits) of `data`. Bits of
 * `code` above the lowest `bits` are ignored. Thread safe where no two threads touch the
 * same byte. */
TILUS_API uint64_t tilus_get_bits(const void *data, size_t i, unsigned bits);
TILUS_API void tilus_set_bits(void *data, size_t i, unsigned bits, uint64_t code);

#ifdef __cplusplus
}
#endif

#endif
