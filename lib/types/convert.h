/* Conversions of many elements at once: loops that compilers vectorize, for lib/types/array.c
 * and quantize.c. Each gives what dtype_encode and dtype_decode give one by one.
 *
 * Codes of at most 8 bits lie in bytes here, compact ones in memory as support/bits.h has them.
 * Pure functions except store_codes, thread safe where no two threads write the same byte. */
#ifndef TILUS_TYPES_CONVERT_H
#define TILUS_TYPES_CONVERT_H

#include "types/dtype.h"

/* Converts f16, bf16 or f32 to f32, exactly. */
void convert_to_f32(DType from, const void *values, size_t count, float *to);

/* The least and the largest of some values and 0; the largest magnitude as the bits of a float,
 * which are those of an infinity or more where a value is not finite. */
typedef struct Extremes {
    float low, high;
    uint32_t magnitude;
} Extremes;

enum { F32_INFINITY_BITS = 0x7f800000 };

Extremes find_extremes(const float *values, size_t count);

/* How numbers become codes of an integer type of at most 8 bits, or of a float with a sign and
 * without padding, of at most 16 bits. */
typedef struct Encoder {
    bool is_float;
    uint32_t mask;              /* of a code */
    float least, most;          /* finite values, into which numbers are brought */
    unsigned drop, sign;        /* bits of f32's mantissa that go; places that the sign moves */
    uint32_t normal, rebias;    /* bits of the least normal number; between the exponents */
    float subnormal;            /* a number whose last bit is the least positive one's place */
} Encoder;

/* Returns false where the type is another one. */
bool encoder_of(DType type, Encoder *encoder);

/* Encode finite numbers: brought into the type's range, ties to the even code. Of quantize_codes,
 * values[i] / scale + zero, each rounded to f32; `add` says that there is a zero point. */
void encode_codes(const Encoder *e, const float *values, size_t count, uint8_t *codes);
void encode_halves(const Encoder *e, const float *values, size_t count, uint16_t *codes);
void quantize_codes(const Encoder *e, const float *values, size_t count, float scale, bool add,
                    float zero, uint8_t *codes);

/* Stores codes of `bits` bits as elements `first` and on of `to`. Bytes that also hold other
 * elements are combined by an atomic OR, so that threads may store elements beside each other
 * to memory that was zero. */
void store_codes(const uint8_t *codes, size_t count, unsigned bits, void *to, size_t first);

/* Loads elements `first` and on of `from`. */
void load_codes(const void *from, size_t first, size_t count, unsigned bits, uint8_t *codes);

#endif
