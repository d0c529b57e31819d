/* The instructions that move a load's or store's tile: those that the attributes of the
 * op say, or else the best.
 *
 *     load_shared %s[0, 0] {via = ldmatrix.x4, width = 16}
 *     load_global %g[%i, 0] {width = 16, unit = 8, checked = [0]}
 *     store_global %x, %g[%i] {via = bits, checked = [0]}
 *
 * Without `checked`, no dimension is checked. */
#ifndef TILUS_SELECT_SELECT_H
#define TILUS_SELECT_SELECT_H

#include "ir/tile.h"
#include "select/access.h"

enum { SM_STMATRIX = 90 };      /* the least target that has it; all have ldmatrix */

/* Returns true when the op's attributes name a plan. */
bool plan_is_written(const Op *op);

/* Takes the plan out of the op's attributes: the next select_plan chooses anew. */
void plan_drop(Op *op);

/* The best choice for targets from number `sm` on (90 for sm_90a); 0: for every
 * target. */
Access select_access(Module *m, const Op *op, unsigned sm);

/* Why a shared access does not go by matrices, in words; NULL when it can. */
const char *select_matrix_reason(Module *m, const Op *op, unsigned sm);

/* Follows the choice that is written, after its proof, or else calls
 * select_access. False after an error. */
bool select_follow(Module *m, const Op *op, unsigned sm, Access *a);

/* Writes the choice into the op's attributes. */
void select_write(Module *m, Op *op, const Access *a);

/* The attribute CHECKED alone, as a bit for each dimension: read, written, and
 * whether it has what keeps tile `t` of `op` inside; false after an error. */
uint32_t select_read_checked(const Op *op);
void select_write_checked(Module *m, Op *op, uint32_t checked);
bool select_check_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked);
/* The dimensions that `op`, a load, store or copy, must check where it stands. */
uint32_t select_needed_checks(const Op *op);

/* Returns true when units of a written choice are proved to exist. */
bool select_has_units(Module *m, const Op *op);

#endif
