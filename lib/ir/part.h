/* Tensors that are parts of others: what `slice` and `permute` give.
 *
 *     %ring = allocate_shared : f16[3, 16, 64] shared swizzle(3, 3, 3)      the root
 *     %tile = slice %ring[%i mod 3, 0, 0] : f16[16, 64] shared swizzle(3, 3, 3)
 *     %turn = permute %tile {dims = [1, 0]} : f16[64, 16] shared strides(1, 64) ..
 *
 * Parts of memory have the bytes of their root. Their strides and swizzle count
 * its element numbers: an element lies at
 *
 *     swizzle(first + sum over d of index[d] * stride[d])
 *
 * where `first`, the number of the part's first element, is the sum over the
 * slices on the way to the root of their offsets times the strides. Parts of
 * registers are register tensors of their own. */
#ifndef TILUS_IR_PART_H
#define TILUS_IR_PART_H

#include "ir/ir.h"

/* The slice or permute that made `v`, or NULL. */
const Op *part_op(const Value *v);

/* The tensor of allocate_shared or view_global whose memory a shared or global
 * tensor has. */
const Value *memory_root(const Value *memory);

/* The type of the part of an `operand` tensor that has these extents. It keeps
 * the dimensions `dims`, which ascend (NULL: the last ones). NULL with the reason:
 * the dimensions do not exist, or the threads of a register tensor do not hold
 * equal shares of the part. */
const Type *slice_type(Module *m, const Type *operand, const Attr *dims, DType dtype,
                       unsigned rank, const Expr *const *extents, const char **why);

/* The type of an `operand` tensor whose dimension d is its dimension order[d]; each
 * stands there once. NULL with the reason. */
const Type *permute_type(Module *m, const Type *operand, const int64_t *order,
                         const char **why);

/* For `slice` of a register tensor: the operand's slot that has what `slot` of the
 * result holds, in each thread. */
int64_t slice_slot(const Op *op, int64_t slot);

#endif
