/* Parts of which both forms of a pipelined loop are built: indices of iterations, rings of shared
 * tensors, and copies of the ops that run ahead.
 *
 *     pipeline_loops.c   copies that groups end: the block starts them stages - 1 ahead
 *     pipeline_roles.c   copies that an mbarrier counts: a warp of their own starts them */
#ifndef TILUS_PASSES_PIPELINE_REWRITE_H
#define TILUS_PASSES_PIPELINE_REWRITE_H

#include "ir/builder.h"
#include "passes/pipeline_plan.h"

typedef struct Rewrite {
    Module *m;
    Program *program;
    Op *loop;
    int64_t stages;
    const Expr *lower, *upper, *step;
    PipelinePlan plan;
    Value **rings;          /* of the plan's tensors, by build_rings; on the scratch arena */
} Rewrite;

/* A rewrite of `loop`, which is marked, without a plan yet. */
Rewrite rewrite_of(Op *loop);

/* ---- expressions ---------------------------------------------------------------- */

const Expr *rewrite_constant(const Rewrite *r, int64_t value);
/* `e` op `by`, or `e` where that is equal; NULL where there is no such number, or for one of
 * NULL. */
const Expr *rewrite_apply(const Rewrite *r, ScalarOp op, const Expr *e, const Expr *by);
/* The iteration of index `i`: 0, 1, .. */
const Expr *iteration_of(const Rewrite *r, const Expr *i);
/* The index `iterations` iterations after `i`. */
const Expr *index_after(const Rewrite *r, const Expr *i, int64_t iterations);
/* The place in the ring of the iteration `iterations` after that of index `i`, or before it
 * for a negative number. */
const Expr *slot_after(const Rewrite *r, const Expr *i, int64_t iterations);

/* ---- rings ---------------------------------------------------------------------- */

/* Puts a ring in the place of each tensor of the plan, to which Value.data of the tensor
 * points from then on. Parts of the tensors that stand before the loop move into it. */
void build_rings(Rewrite *r);
/* Moves the tensors of a ring apart, as far as tensor maps need, where a copy of `copies` goes
 * into it by one: for copies that stand where they will run, on whose bounds the choice depends. */
void space_rings(const Rewrite *r, const Region *copies);
/* Returns true when the rings are no larger than shared memory may be. */
bool rings_fit(const Rewrite *r);
/* Bytes from the tensors of all rings to the next ones. */
int64_t rings_bytes(const Rewrite *r);
/* Gives each op of `region`, or `op` alone, tensor `slot` of the rings in place of the
 * tensor. */
void enter_rings(const Rewrite *r, Region *region, const Expr *slot);
void enter_rings_of(const Rewrite *r, Op *op, const Expr *slot);

/* ---- ops that run ahead ---------------------------------------------------------- */

/* Early ops for the iteration of index `index`, into `slot`; Value.data of results points to the
 * copies' results. */
typedef struct Ahead {
    const Rewrite *r;
    const Expr *index, *slot;
} Ahead;

/* Inserts copies of the plan's early ops into `region` before `before`. */
void insert_early(const Ahead *a, Region *region, Op *before);

/* Inserts an op of that code without operands. */
void insert_plain(const Rewrite *r, OpCode code, Region *into, Op *before);

/* ---- products (pipeline_products.c) ----------------------------------------------- */

/* Returns the dot_wait of the loop's body that may wait for all but the newest group, or NULL. */
Op *products_behind(const Rewrite *r);
/* Makes it do so, and inserts one for the rest after the loop. No Value.data may be set. */
void put_products_behind(const Rewrite *r, Op *wait);

/* ---- roles (pipeline_roles.c) ----------------------------------------------------- */

/* Splits the program into a producer warp and the consumers, for a plan whose copies an
 * mbarrier counts. */
void rewrite_roles(Rewrite *r);

#endif
