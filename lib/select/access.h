/* Accesses of a register tile by loads and stores: their units (runs of slots), their
 * width, and their bounds checks. */
#ifndef TILUS_SELECT_ACCESS_H
#define TILUS_SELECT_ACCESS_H

#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "select/matrix.h"

/* The plan of an access. A unit, here and in the attribute of that name, is a run of `unit`
 * slots (starting at multiples of `unit`) whose elements follow each other in memory too,
 * all inside the view or all outside. A unit is moved by accesses of `bytes` bytes,
 * a power of two up to 16, each aligned to its size. bytes = 0: an element's bits start
 * anywhere, and unit is 1. By matrices, bytes is 16, the length of a matrix's row, and unit
 * is 1. */
typedef struct Access {
    Via via;
    int64_t unit;
    unsigned bytes;
    uint32_t checked;   /* bit d: the index in dimension d of the view needs a check */
    MatrixPlan matrix;  /* of ldmatrix and stmatrix */
} Access;

/* The least bytes of an access that carries the hints `prefetch` and `evict`;
 * narrower ones go without. */
enum { HINT_LEAST = 4 };

/* Returns the best plain accesses for load_global, store_global, load_shared and
 * store_shared: via units or bits. */
Access access_plan(Module *m, const Op *op);

/* Proved alignment, in bits, of the first bit of a tensor's memory. */
int64_t access_base_alignment(const Value *memory);

/* Bit d: the tile of `op` may reach outside dimension d of its global view; none of a
 * shared tensor. */
uint32_t access_checked_dims(const Op *op, const MemoryTile *t);

/* Returns the most slots that a unit can have: elements that follow each other in a lane
 * and in memory. */
int64_t access_run(Module *m, const Op *op);

/* Returns the widest accesses, in bytes, that are proved for units of `unit` slots; 0:
 * no such units exist. */
unsigned access_unit_width(Module *m, const Op *op, int64_t unit);

/* Why units of `unit` slots cannot be moved `bytes` bytes at a time, in words
 * on the module's arena; NULL when they can. */
const char *access_reason(Module *m, const Op *op, int64_t unit, unsigned bytes);

/* The part of that which is about addresses: why the element at the op's
 * offsets plus multiples of steps[d] in each dimension d of the tensor (0: no
 * step) is not aligned to `bytes` bytes; NULL when it is. */
const char *access_misalignment(Module *m, const Op *op, const int64_t *steps, unsigned bytes);

/* The least step between the tile's indices in dimension `d` of the tensor, of
 * all lanes and slots; 0 when there is one index only, 1 where data choose. */
int64_t access_step(const Op *op, unsigned d);

/* The largest step that every thread's share of the index in `dim` of the tile
 * is a multiple of; 0 when that share is always 0. */
int64_t access_thread_step(const Layout *l, unsigned dim);

#endif
