/* The interpreter: the definition of every op.
 *
 * Runs a verified program block by block. All threads of a block execute one
 * op together, so an op's meaning is a function from register tensors and
 * memory to register tensors and memory. Undefined behavior is detected, not
 * modelled: out-of-bounds access, reads of undefined registers and shared
 * bytes, and races, each an error that names both lines.
 *
 * Results are exact: integers and storage bit for bit, floats by the one
 * rounding of types/dtype.h. `dot` of floats multiplies and sums one call's k in
 * f64 in ascending order, adds the accumulator last and rounds once; of
 * integers it wraps. Tensor cores may differ for floats: the PTX manual
 * (mma, "Semantics") promises products and sums of at least single precision
 * in an unspecified order, and hardware truncates where it aligns addends.
 * Another engine agrees with this one when
 *
 *     ||other - interp|| / ||interp||  <=  1e-3      (Frobenius norms)
 *
 * for f16 operands and an f32 accumulator (1e-2 for bf16), and equals it when
 * the accumulator is an integer or every partial sum is exact in f32. */
#ifndef TILUS_INTERP_INTERP_H
#define TILUS_INTERP_INTERP_H

#include "ir/ir.h"
#include "tilus/tilus.h"

typedef struct Interp Interp;

/* Runs `p` over `grid`, blocks in order, the first dimension fastest. `args`
 * were checked with tilus_kernel_check; args[i].pointer is an index below
 * `buffer_count`. False after an error, which the module's diag holds; the
 * first one ends the run, and buffers keep what was written until then.
 * Memory comes from the module's scratch arena; each byte that is touched
 * costs 88 bytes there, which remember who read and wrote it. `options` may be
 * NULL. */
bool interp_program(Program *p, const int64_t grid[3], const tilus_arg *args,
                    const tilus_buffer *buffers, size_t buffer_count,
                    const tilus_interpret_options *options);

/* Clears what a run that memory ended left in `p` and the scratch arena. */
void interp_discard(Program *p);

/* A function for each op, found by name from ops.def. */
#define OP(id, ...) bool interp_##id(Interp *in, const Op *op);
#include "ir/ops.def"

#endif
