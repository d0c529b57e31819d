/* A constant of the program text, exact: any integer of 64 bits with its sign, any double.
 *
 * The form is canonical, so that equal constants are equal member by member: an integral
 * value below 2^64 in magnitude is an integer, which keeps the sign of -0; fractions, larger
 * values, infinities and NaN, without sign or payload, are a double. All zeros are the number 0. */
#ifndef TILUS_TYPES_CONSTANT_H
#define TILUS_TYPES_CONSTANT_H

#include "support/text.h"
#include "types/dtype.h"

typedef struct Constant {
    bool is_real;           /* `real` counts, else `negative` and `magnitude` */
    bool negative;
    uint64_t magnitude;
    double real;
} Constant;

Constant constant_of_integer(int64_t value);
Constant constant_of_magnitude(bool negative, uint64_t magnitude);
Constant constant_of_real(double value);
Constant constant_negate(Constant n);

/* Returns true for the same value and sign; a NaN equals itself. */
bool constant_equal(Constant a, Constant b);
/* Returns true for 0 and for -0. */
bool constant_is_zero(Constant n);

/* The value of a code of `t`, also of 64-bit integers. */
Constant constant_decode(DType t, uint64_t code);
/* The code that a cast of the number to `t` gives, rounded once. */
uint64_t constant_encode(DType t, Constant n);

/* Returns true when a tensor of `t` may be filled with `n`: an integer type has the number itself,
 * a float type one that it rounds to without overflow. Infinity and NaN fit types that have them;
 * bool has 0 and 1. */
bool constant_fits(DType t, Constant n);
/* "300 does not fit i8, whose numbers are -128 to 127": why it does not. */
const char *constant_misfit(Arena *arena, DType t, Constant n);
/* Adds the numbers that fit `t`, "-8 to 7", for messages. */
void constant_print_range(Text *out, DType t);

/* Adds the shortest decimal that reads back as the number, "2.0" where floats are meant. */
void constant_print(Text *out, Constant n, bool is_float);

#endif
