/* Forms of register tensors: storage orders (types/storage.h) and deferred
 * power-of-two scales (Scaling in ir.h), and what ops make of them. */
#ifndef TILUS_IR_FORM_H
#define TILUS_IR_FORM_H

#include "ir/ir.h"

/* Returns true when a thread's elements of REG type `t`, whose layout is chosen,
 * may lie in storage order packed(to): the order exists and they fill whole groups. Else
 * `why` says what is wrong, in m->scratch. */
bool form_allows_packed(Module *m, const Type *t, DType to, const char **why);

/* The type that `decode` gives for an operand of REG type `t` in order packed(T): elements
 * of T, scaled by the exponents of cast_exponents. NULL where there is no such
 * decode, or where the exponents are no function of the index along one
 * dimension; `why` says what is wrong, in m->scratch. */
const Type *form_decoded(Module *m, const Type *t, const char **why);

/* The least and the largest exponent of a deferred scale; 0 and 0 without a scaling. */
void form_exponent_range(const Type *t, int *least, int *most);

#endif
