/* Tensor maps: boxes of global tensors that the hardware copies by itself (PTX ISA, "Tensors",
 * cp.async.bulk.tensor). A copy_async_bulk, or copy_async_bulk_store,
 * can go by one where
 *
 *     view       of a pointer argument; its extents and strides are over arguments alone;
 *                at most MAP_RANK dimensions, one element next to the other in the last
 *     box        extents from 1 to MAP_BOX_MAX; the innermost one's bytes are a multiple of 16
 *     corner     the innermost offset is a multiple of 16 bytes; of a store, which writes the
 *                box, no offset is negative: proved, because the copy unit takes no other
 *     tile       row-major in shared memory, or in a swizzle of 32, 64 or 128 bytes whose rows
 *                are so long; it begins where the hardware wants (map_target_alignment)
 *
 * The dimensions of a map are the view's: first the ones that the tile does not span, in
 * order, then the tile's. The launcher encodes it (tilus_tensor_map). Elements of the box
 * outside of the view are zeros in shared memory, and none are stored. */
#ifndef TILUS_MEMORY_TENSOR_MAP_H
#define TILUS_MEMORY_TENSOR_MAP_H

#include "ir/ir.h"
#include "tilus/kernel.h"

enum { MAP_RANK = TILUS_MAP_RANK, MAP_BOX_MAX = TILUS_MAP_BOX_MAX };

typedef struct TensorMap {
    const Value *pointer;       /* an argument */
    DType dtype;
    unsigned rank;
    unsigned dims[MAP_RANK];    /* of the view, outermost first */
    const Expr *extents[MAP_RANK], *strides[MAP_RANK];  /* in elements; the last stride is 1 */
    int64_t box[MAP_RANK];
    unsigned swizzle;           /* bytes of a row that it permutes within: 32, 64, 128; or 0 */
} TensorMap;

/* Finds the map by which the bulk copy `op` can go; false with the reason, on the
 * module's scratch arena. */
bool tensor_map_find(Module *m, const Op *op, TensorMap *map, const char **why);

/* Returns true when two maps are one parameter of a kernel. */
bool tensor_map_equal(const TensorMap *a, const TensorMap *b);

/* Bytes that a box in shared memory begins at a multiple of: 128, or as many as the pattern
 * of the swizzle of `swizzle` bytes has. */
int64_t map_target_alignment(unsigned swizzle);

/* The launcher's number of the elements' type; false for one that maps cannot have. */
bool tensor_map_type(DType dtype, tilus_map_type *type);

/* A power of two, at most 2^31, that divides the number of the tensor's first element in its
 * memory. */
int64_t memory_first_alignment(Module *m, const Value *memory);

#endif
