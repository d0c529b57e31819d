/* The verifier's rules of workspace tensors, and of semaphores and grid barriers, which lie
 * there. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "ir/uses.h"
#include "ir/verify.h"

#include <string.h>

/* ---- workspace tensors ------------------------------------------------ */

typedef struct ExtentCheck {
    Module *m;
    const Op *op;
    unsigned dim;
} ExtentCheck;

/* Blocks and the launcher must agree about the extents. */
static bool check_leaf(Value *v, void *data)
{
    const ExtentCheck *c = data;
    if (v->program)
        return true;
    diag_error(c->m->diag, c->op->loc, "the extent of dimension %u of a workspace tensor depends "
               "on %%%s, which is no argument of the program", c->dim, v->name ? v->name : "?");
    return diag_note(c->m->diag, v->loc, "%%%s is defined here", v->name ? v->name : "?");
}

static bool verify_workspace_extents(Module *m, const Op *op, const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++) {
        const Expr *e = t->extents[d];
        if (expr_is_constant(e) && e->constant < 0)
            return diag_error(m->diag, op->loc, "the extent of dimension %u of the workspace "
                              "tensor is %lld", d, (long long)e->constant);
        if (!expr_visit_values(e, check_leaf, &(ExtentCheck){m, op, d}))
            return false;
    }
    if (!type_stride(m, t, 0))
        return diag_error(m->diag, op->loc, "the product of the extents after dimension 0 is "
                          "over 63 bits");
    return true;
}

bool verify_allocate_global(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Attr *place = op_attr(op, ATTR_PLACE);
    if (t->strides)
        return diag_error(m->diag, op->loc, "a workspace tensor is row-major, got %s",
                          type_text(m, t));
    if (place && place->integer < 0)
        return diag_error(m->diag, op->loc, "place is %lld, it must be at least 0",
                          (long long)place->integer);
    return verify_workspace_extents(m, op, t);
}

/* ---- semaphores ------------------------------------------------------- */

static bool verify_semaphore(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name;
    const Type *t = op_memory_operand(op)->type;
    const Attr *offsets = op_attr(op, ATTR_OFFSETS);
    const Expr *value = op_expr(op, ATTR_STATE);
    if (t->dtype != DTYPE_i32 && t->dtype != DTYPE_u32)
        return diag_error(m->diag, op->loc, "a semaphore is i32 or u32, got %s",
                          dtype_name(t->dtype));
    if (!offsets || offsets->count != t->rank)
        return diag_error(m->diag, op->loc, "%s takes %u offsets for %s, got %u", name, t->rank,
                          type_text(m, t), offsets ? offsets->count : 0);
    if (!value)
        return diag_error(m->diag, op->loc, "%s takes the semaphore's value after a comma", name);
    if (expr_is_constant(value) && !semaphore_holds(op, value->constant))
        return diag_error(m->diag, op->loc, "the semaphore's value %lld does not fit in %s",
                          (long long)value->constant, dtype_name(t->dtype));
    if (op_scope(op) == SCOPE_BLOCK)
        return diag_error(m->diag, op->loc, "a semaphore's scope is gpu or system, got block");
    return true;
}

bool verify_lock(Module *m, const Op *op) { return verify_semaphore(m, op); }

bool verify_release(Module *m, const Op *op) { return verify_semaphore(m, op); }

/* ---- barriers of the grid ----------------------------------------------- */

/* A search for an op that may not use the state of the grid_synchronize `op`. */
typedef struct StateUse {
    const Op *op, *other;
} StateUse;

/* Blocks count in the state how many threads of each have come, so it is for the same ones. */
static bool shares_state(Op *user, void *data)
{
    StateUse *u = data;
    if (op_uses(user, u->op->operands[0]) &&
        (user->code != u->op->code ||
         !thread_range_equal(region_threads(user->parent), region_threads(u->op->parent))))
        u->other = user;
    return !u->other;
}

static bool verify_state_uses(Module *m, const Op *op)
{
    StateUse u = {.op = op};
    if (region_walk(op->parent->program->body, shares_state, &u))
        return true;
    diag_error(m->diag, op->loc, "the state of grid_synchronize, %s, is for ops of that kind by the "
               "same threads alone", value_text(m, op->operands[0]));
    return diag_note(m->diag, u.other->loc, "this %s uses it", op_info[u.other->code].name);
}

static bool is_one_word(const Type *t)
{
    return t->dtype == DTYPE_u32 && t->rank == 1 && expr_is_constant(t->extents[0]) &&
           t->extents[0]->constant == 1;
}

bool verify_grid_synchronize(Module *m, const Op *op)
{
    const Value *state = op->operands[0];
    const Op *def = state->def;
    if (!op->parent->program->cooperative)
        return diag_error(m->diag, op->loc, "grid_synchronize in a program that is not "
                          "cooperative");
    if (!is_one_word(state->type) || !def || def->code != OP_allocate_global ||
        !workspace_is_zeroed(def))
        return diag_error(m->diag, op->loc, "the state of grid_synchronize is an allocate_global of "
                          "u32[1] with zeroed = true, got %s: %s", value_text(m, state),
                          type_text(m, state->type));
    return verify_state_uses(m, op);
}
