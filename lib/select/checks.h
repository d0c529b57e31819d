/* Bounds checks of accesses to global memory, in words: what is checked, the fact that would
 * remove a check, and where it costs time. */
#ifndef TILUS_SELECT_CHECKS_H
#define TILUS_SELECT_CHECKS_H

#include "ir/tile.h"

/* Returns the innermost loop around the op; NULL outside of loops. */
const Op *loop_around(const Op *op);

/* Reports each dimension of the tile `t` of `op` that is `checked`, as remarks of
 * select-instructions. */
void remark_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked);

/* Warns of a load or store in an innermost loop along whose iterations a dimension of `checked`
 * moves, where a fact about an argument would remove the check and make accesses wider: it is
 * made anew in each iteration. A copy_async has its check for free, as an operand. */
void warn_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked);

#endif
