/* Tensors that are parts of others, `slice` and `permute`; and register tensors whose
 * elements stay in their registers under other dimensions: `reshape`, `concat`,
 * `interleave`.
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

/* The type of an `operand` register tensor's elements, in row-major order, under other
 * extents. NULL with the reason: there are more elements or fewer, or a mode of the layout
 * would lie across dimensions. */
const Type *reshape_type(Module *m, const Type *operand, unsigned rank,
                         const Expr *const *extents, const char **why);

/* The type that `count` register tensors of type `part` make, along dimension `dim` one
 * after another (OP_concat) or taking turns (OP_interleave). The parts are the most
 * significant digit of the slots, or the least:
 *
 *     concat       slot = part * slots + s         interleave    slot = s * parts + part
 *
 * NULL with the reason. */
const Type *join_type(Module *m, OpCode code, const Type *part, unsigned count, unsigned dim,
                      const char **why);
/* The layout of the parts of a `whole` that join_type gives; NULL: there is none. */
const Layout *join_part(Module *m, OpCode code, const Layout *whole, unsigned count,
                        unsigned dim, const char **why);
/* The part of the `op`, a concat or interleave, that has what `slot` of the result holds,
 * and its slot there. */
typedef struct PartSlot {
    unsigned part;
    int64_t slot;
} PartSlot;
PartSlot join_slot(const Op *op, int64_t slot);

/* For `slice` of a register tensor at `offsets`: the operand's slot that has what `slot`
 * of the result holds, in each thread. */
int64_t slice_slot(const Op *op, const int64_t *offsets, int64_t slot);
/* Returns true when a slice of registers may have the offset: it is a multiple of the slice's
 * extent, as all such slices lie alike in the threads, and keeps the slice inside the operand. */
bool slice_has_offset(const Op *op, unsigned d, int64_t offset);
/* Says so if it may not. */
bool slice_check_offset(Diag *diag, const Op *op, unsigned d, int64_t offset);

#endif
