/* Element types: their names, the meaning of their codes, compact storage; arrays of them, and
 * matrices of weights quantized. Exported by libtilus_rt, which needs neither LLVM nor a GPU.
 *
 * All functions are thread safe where no two threads write the same byte. Pointers are not NULL
 * unless a comment says that they may be, or are of 0 elements or bytes. */
#ifndef TILUS_TYPES_H
#define TILUS_TYPES_H

#include "tilus/kernel.h"

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
 * decode gives them; NaN for an unknown name. True for floats; false for an unknown name. */
TILUS_API unsigned tilus_type_bits(const char *type);
TILUS_API double tilus_type_max(const char *type);
TILUS_API double tilus_type_min(const char *type);
TILUS_API bool tilus_type_is_float(const char *type);

/* The i-th type's name, in static storage; NULL past the last. */
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

/* ---- arrays ------------------------------------------------------------ */

/* The functions below use `threads` threads, 0: as many as the process may run on; results are
 * the same for any number. On failure message[0..message_size) says why; it may be of 0 bytes. */

/* Encodes `count` elements at `values` of the type `from` (f16, bf16, f32, f64), as tilus_encode
 * does one, to compact `codes` of `type`: tilus_packed_bytes(type, count) bytes, whose last bits
 * are 0. The two do not overlap. TILUS_ERROR_ARGUMENT: a type is unknown, a pointer NULL though
 * `count` is not 0, or codes_size another; `codes` is untouched then. */
TILUS_API tilus_status tilus_encode_array(const char *type, const char *from, const void *values,
                                          size_t count, void *codes, size_t codes_size,
                                          unsigned threads, char *message, size_t message_size);

/* Decodes compact `codes` of `type` to `count` elements of the type `to` (f16, bf16, f32, f64) at
 * `values`: each is tilus_encode(to, tilus_decode(type, code)). Failures as above. */
TILUS_API tilus_status tilus_decode_array(const char *type, const void *codes, size_t codes_size,
                                          size_t count, const char *to, void *values,
                                          unsigned threads, char *message, size_t message_size);

/* Bytes of `count` elements of `type`, stored compactly; 0 for an unknown type, and where they
 * are more than SIZE_MAX. */
TILUS_API size_t tilus_packed_bytes(const char *type, size_t count);

/* ---- quantizing weights ------------------------------------------------ */

typedef enum tilus_zeros {
    TILUS_ZEROS_NONE,
    TILUS_ZEROS_INTEGER,    /* in bytes: of uN weights 0 to 2^N - 1, of iN -2^(N-1) to
                               2^(N-1) - 1; floats have none */
    TILUS_ZEROS_FLOAT       /* of the scales' type */
} tilus_zeros;

/* The range of a group's values that the type's range stands for. */
typedef enum tilus_range {
    TILUS_RANGE_MINMAX,     /* from the least, or 0 if that is less, to the largest, or 0 */
    TILUS_RANGE_ABSMAX      /* from -a to a, the largest magnitude */
} tilus_range;

/* Describes how weights are quantized, in groups along k:
 *
 *     (low, high) is the range of a group's values, MIN and MAX the type's least and largest
 *     finite value.
 *     scale   without zero points the larger of high / MAX, if MAX > 0, and low / MIN, if
 *             MIN < 0; else (high - low) / (MAX - MIN). It is rounded to the scales' type: to
 *             its least positive number rather than to 0, to its largest rather than to
 *             infinity. A scale of 0 becomes 1, so a group of zeros has scale 1.
 *     zero    MIN - low / scale, of the rounded scale; rounded to an integer of the weights'
 *             type or to the scales' type. Both saturate.
 *     code    q = x / scale, rounded to f32; with zero points q + zero, rounded to f32; then
 *             brought into MIN .. MAX, and the code nearest to it, as tilus_encode finds it.
 *
 * Ranges, scales and zero points are computed in double, ties go to even everywhere. The weight
 * that a code stands for is (code - zero) * scale.
 *
 * With clip_steps S > 0 the group is quantized S + 1 times, with low and high multiplied by
 * 1 - j * (1 - clip_least) / S (double) for j = 0 .. S, and the j of the least sum of squared
 * errors is kept, the first one among equals. An error is x - (code - zero) * scale, each of the
 * three operations rounded to f32; squares are summed in double in eight sums, those of elements
 * e, e + 8, .. of the group, which are added in order.
 *
 * Values must be finite. */
typedef struct tilus_quantization {
    size_t struct_size;
    const char *values;         /* type of the values: f16, bf16 or f32 */
    const char *weights;        /* of codes: u1 .. u8, i1 .. i8, f3e1m1 .. f8e7m0 */
    const char *scales;         /* f16 or bf16; NULL: f16 */
    int64_t n, k;               /* 1 to 2^20, 1 to 2^23 */
    int64_t group;              /* of k with one scale, a multiple of 16; 0: all of k. The last
                                   one may be shorter. */
    tilus_zeros zeros;
    tilus_range range;
    double clip_least;          /* above 0, below 1; 0: 0.5 */
    unsigned clip_steps;        /* at most 1000; 0: nothing is clipped */
    unsigned threads;           /* as above */
    int64_t transposed;         /* 1: values, codes, scales and zero points are [n, k], as PyTorch
                                   keeps them, and [n, groups]; 0: [k, n] and [groups, n] */
} tilus_quantization;

/* A quantized matrix, as tilus_matmul_weights (tilus/matmul.h) takes it: codes are compact. */
typedef struct tilus_quantized {
    size_t struct_size;
    void *codes;
    size_t codes_size;          /* bytes */
    void *scales;
    size_t scales_size;
    void *zeros;                /* NULL where there are none */
    size_t zeros_size;
} tilus_quantized;

/* Sets the sizes of `out`, and nothing else of it. TILUS_ERROR_ARGUMENT: `message` names the
 * field that is wrong, with its value. */
TILUS_API tilus_status tilus_quantized_sizes(const tilus_quantization *how, tilus_quantized *out,
                                             char *message, size_t message_size);

/* Quantizes the matrix at `values` of values_size bytes to the memory that `out` points to, whose
 * sizes must be those of tilus_quantized_sizes. None of it overlaps. TILUS_ERROR_ARGUMENT names
 * the field that is wrong and writes nothing, or the first element that is not finite; then, as
 * after TILUS_ERROR_MEMORY, the output is undefined. */
TILUS_API tilus_status tilus_quantize(const tilus_quantization *how, const void *values,
                                      size_t values_size, const tilus_quantized *out,
                                      char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
