/* How a load or store of a register tile reaches memory: in which units, how
 * wide, and with which bounds checks. */
#ifndef TILUS_ANALYSIS_ACCESS_H
#define TILUS_ANALYSIS_ACCESS_H

#include "ir/ir.h"

/* A unit is a run of `unit` slots (starting at multiples of `unit`) whose
 * elements follow each other in memory too, all inside the view or all
 * outside. It is moved by accesses of `bytes` bytes, a power of two up to 16,
 * each aligned to its size. bytes = 0: an element's bits start anywhere, and
 * unit is 1. */
typedef struct Access {
    int64_t unit;
    unsigned bytes;
    uint32_t checked;   /* bit d: the index in dimension d of the view needs a check */
} Access;

/* For load_global, store_global, load_shared and store_shared. */
Access access_plan(Module *m, const Op *op);

/* Proved alignment, in bits, of a memory tensor's first bit. */
int64_t access_base_alignment(const Value *memory);

/* Bit d: the tile may reach outside dimension d of its global view; none of a
 * shared tensor. */
uint32_t access_checked_dims(const MemoryTile *t);

/* The largest step that every thread's share of the index in `dim` of the tile
 * is a multiple of; 0 when that share is always 0. */
int64_t access_thread_step(const Layout *l, unsigned dim);

#endif
