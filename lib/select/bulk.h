/* Plans of copy_async_bulk, and proofs beyond its op's own rules: its bytes follow each
 * other in both memories and begin at multiples of BULK_ALIGN there. */
#ifndef TILUS_SELECT_BULK_H
#define TILUS_SELECT_BULK_H

#include "ir/ir.h"

typedef struct BulkPlan {
    int64_t bytes;
    uint32_t checked;   /* bit d: the kernel traps unless the tile lies inside dimension d of
                           the source: cp.async.bulk fills no zeros in */
    bool fence;         /* fence.proxy.async before the copy */
} BulkPlan;

/* Plans the copy; false after an error that says what is missing. */
bool bulk_plan(Module *m, const Op *op, BulkPlan *plan);

#endif
