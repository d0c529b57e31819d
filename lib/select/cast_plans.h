/* The cast plans of a module's ops. */
#ifndef TILUS_SELECT_CAST_PLANS_H
#define TILUS_SELECT_CAST_PLANS_H

#include "cast/plan.h"
#include "ir/ir.h"

/* Gets a cast of `op` and its plan, in scratch memory; NULL: element by element. */
typedef void TakeCastPlan(void *data, const Op *op, const CastQuery *query, const CastPlan *plan);

/* Calls `take` on the plans of all ops, on targets from number `sm` on: of each op the first run
 * and, where it is shorter, the last one; of equal queries one, unless zero points come off, whose
 * cost depends on those who share them. False after an error. */
bool cast_plans_visit(Module *m, unsigned sm, TakeCastPlan *take, void *data);

#endif
