/* Costs of accesses in memory traffic, for remarks. Each query looks at one
 * instruction of a warp: the one that moves the lanes' first slots (those of
 * later slots lie a constant further). Offsets that are not constant count as
 * 0, so a tile is taken to begin where the tensor does. The worst warp of the
 * block counts. */
#ifndef TILUS_SELECT_TRAFFIC_H
#define TILUS_SELECT_TRAFFIC_H

#include "select/access.h"
#include "select/copy.h"

/* Bytes that one instruction moves for a lane. */
unsigned access_lane_bytes(const Op *op, const Access *a);

/* Ways of bank conflicts of a shared access, 1: none. There are 32 banks of 4
 * bytes; accesses of 8 bytes go in halves of a warp, those of 16 bytes and
 * matrices in quarters. */
unsigned access_conflict_ways(Module *m, const Op *op, const Access *a);

/* Sectors of 32 bytes that a global access touches; `*least`: how many would
 * hold its bytes. Where a stride is not constant, no two of its steps share a
 * sector. */
unsigned access_sectors(Module *m, const Op *op, const Access *a, unsigned *least);

/* Returns bank conflicts and sectors of a copy_async: of its writes into the shared tensor,
 * and of its reads. The lanes of a warp take neighboring chunks. */
unsigned copy_conflict_ways(Module *m, const Op *op, const CopyPlan *plan);
unsigned copy_sectors(Module *m, const Op *op, const CopyPlan *plan, unsigned *least);

/* Reports that accesses of `bytes` bytes drop the op's hints, if it has some. */
const char *conflicts_text(Module *m, unsigned ways);
void remark_hints(Module *m, const Op *op, unsigned bytes);

#endif
