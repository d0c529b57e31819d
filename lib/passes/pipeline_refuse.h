/* How a plan of a pipelined loop is refused: where, why in words, and what would cure it. */
#ifndef TILUS_PASSES_PIPELINE_REFUSE_H
#define TILUS_PASSES_PIPELINE_REFUSE_H

#include "passes/pipeline_plan.h"

typedef struct Planner {
    Module *m;
    const Op *loop;
    PipelinePlan *plan;
} Planner;

#define REFUSE(p, op, ...)                                                    \
    ((p)->plan->at = (op), (p)->plan->why = arena_printf(&(p)->m->scratch, __VA_ARGS__), false)

#define CURE(p, text) ((p)->plan->cure = (text))

/* "load_shared at 12:8" */
const char *planner_op_text(const Planner *p, const Op *op);
/* "%tile", or "the tensor" where it has no name. */
const char *planner_value_text(const Planner *p, const Value *v);

/* Returns true when `op` copies into a tensor and may run ahead: its copy is complete as the
 * plan's copies are. */
bool planner_is_copy(const Planner *p, const Op *op);

/* Checks that a loop whose copies an mbarrier counts can be split into a producer warp and
 * the consumers; finds `arrive` and `wait`, and sets Op.mark of the ops before the loop that
 * the consumers alone run. */
bool plan_roles(Planner *p);

/* Checks that the early ops take no values of these. */
bool plan_producer_values(Planner *p);

#endif
