/* Plans: the instructions that compute an op, and its pieces. Each op that leaves a choice
 * has a planner, a row of planners.def:
 *
 *     choose    select_plan     the best plan for a target, where the text names none
 *     write     plan_write      the plan as attributes: {via = ldmatrix.x4, width = 16}
 *     prove     select_plan     that the plan which the text names is possible
 *     follow    lib/codegen     the emitter gets the plan, and decides nothing
 *
 * The pass select-instructions writes plans and reports them as remarks. To add a family:
 * its planner, a member of the union, rows in planners.def. */
#ifndef TILUS_SELECT_PLAN_H
#define TILUS_SELECT_PLAN_H

#include "select/bulk.h"
#include "select/cast.h"
#include "select/cluster.h"
#include "select/copy.h"
#include "select/dot.h"
#include "select/drain.h"
#include "select/reduce.h"
#include "select/relayout.h"
#include "select/scan.h"
#include "select/select.h"
#include "select/table.h"
#include "select/wgmma.h"

typedef enum PlanFamily {
#define FAMILY(id) PLAN_##id,
#include "select/planners.def"
    PLAN_FAMILY_COUNT
} PlanFamily;

typedef struct Plan Plan;
typedef struct Planner Planner;

/* The pointers of a plan lead to the module's scratch arena. */
struct Plan {
    const Planner *planner;     /* NULL: the op leaves no choice */
    int64_t scratch;            /* bytes of shared memory, while the op runs */
    union {
        Access access;
        Access atomic;
        CopyPlan copy;
        BulkPlan bulk;
        SyncPlan sync;
        DotPlan dot;
        WgmmaPlan wgmma;
        DrainPlan drain;
        ReducePlan reduce;
        RelayoutPlan relayout;
        ScanPlan scan;
        ShufflePlan shuffle;
        CastChoice cast;
        TablePlan table;
    };
};

struct Planner {
    PlanFamily family;
    /* The plan that the op's attributes name, after a proof, or else the best. False
     * after an error. */
    bool (*plan)(Module *m, const Op *op, unsigned sm, Plan *plan);
    /* Writes the plan into the op's attributes. NULL: plans of the family follow from
     * types and targets alone. */
    void (*write)(Module *m, Op *op, const Plan *plan);
    /* Reports the plan, and what keeps it from being better. NULL: no remarks. */
    void (*remark)(Module *m, const Op *op, const Plan *plan);
    /* Warns of a plan that was chosen and that the text can hardly mean. NULL: there is none. */
    void (*warn)(Module *m, const Op *op, const Plan *plan);
    /* Returns the reason why no better plan is possible; NULL when there is none better. */
    const char *(*reason)(Module *m, const Op *op, const Plan *plan);
    /* Bytes of shared memory that the op may need on any target, without an error where
     * it has no plan. NULL: none. */
    int64_t (*scratch)(Module *m, const Op *op);
    /* Operations that the plan makes of the op in one thread, where these are more than elements:
     * shuffles. NULL: they are not. */
    int64_t (*operations)(const Op *op, const Plan *plan);
    /* Tells whether a written choice is proved where the op stands. NULL: its proof
     * depends on nothing that passes change. */
    bool (*holds)(Module *m, const Op *op);
};

#define FAMILY(id) extern const Planner planner_##id;
#include "select/planners.def"

/* Returns the planner of ops of this code, or NULL. */
const Planner *planner_of(OpCode code);

/* Chooses for targets from number `sm` on (90 for sm_90a; 0: for every target), or proves
 * and follows what the text says. False after an error. */
bool select_plan(Module *m, const Op *op, unsigned sm, Plan *plan);

/* Writes the plan into the op's attributes, where the family has some. */
void plan_write(Module *m, Op *op, const Plan *plan);

/* Returns the reason why no better plan is possible; NULL when there is none better. */
const char *plan_reason(Module *m, const Op *op, const Plan *plan);

/* Reports the plan as remarks of select-instructions. */
void plan_remark(Module *m, const Op *op, const Plan *plan);

/* Warns of a plan that select_plan chose, where no text asks for it, and the text can hardly
 * mean it. */
void plan_warn(Module *m, const Op *op, const Plan *plan);

/* Returns the bytes of shared memory that the op may need while it runs, on any target. */
int64_t plan_scratch(Module *m, const Op *op);

/* Returns the operations of one thread that the plan makes of the op, 0: no more than elements. */
int64_t plan_operations(const Op *op, const Plan *plan);

/* Emits one remark about `op`. */
#define REMARK(m, op, name, ...)                                              \
    REMARK_AT((m)->remarks, (m)->diag, (op)->loc, name, __VA_ARGS__)

#endif
