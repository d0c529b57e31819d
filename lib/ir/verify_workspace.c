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
               "on %s, which is no argument of the program", c->dim, value_text(c->m, v));
    return diag_note(c->m->diag, v->loc, "%s is defined here", value_text(c->m, v));
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

/* ---- barriers and paces of the grid -------------------------------------- */

/* A search for an op that may not use the state of the grid_synchronize or grid_pace `op`, which is
 * at `at`: a workspace tensor, or the argument under its view. */
typedef struct StateUse {
    const Op *op, *other;
    const Value *at;
} StateUse;

/* Returns true for an op of this kind by the same threads, as many of each block as it counts. */
static bool may_share_state(const Op *user, const Op *op)
{
    return user->code == op->code && thread_range_equal(region_threads(user->parent),
                                                        region_threads(op->parent));
}

/* Returns true for a view of the state's argument that is another one's state. */
static bool is_state_view(const Op *user, const StateUse *u)
{
    return user->code == OP_view_global && user->operands[0] == u->at &&
           user->results[0]->type == u->op->operands[0]->type;
}

static bool find_other_user(Op *user, void *data)
{
    StateUse *u = data;
    bool uses = op_uses(user, u->at);
    for (unsigned i = 0; i < user->operand_count; i++)
        uses |= grid_state(user->operands[i]) == u->at;
    if (uses && !may_share_state(user, u->op) && !is_state_view(user, u))
        u->other = user;
    return !u->other;
}

static bool verify_state_uses(Module *m, const Op *op)
{
    StateUse u = {.op = op, .at = grid_state(op->operands[0])};
    if (region_walk(op->parent->program->body, find_other_user, &u))
        return true;
    diag_error(m->diag, op->loc, "the state of %s, %s, is for ops of that kind by the same threads "
               "alone", op_info[op->code].name, value_text(m, u.at));
    return diag_note(m->diag, u.other->loc, "this %s uses it", op_info[u.other->code].name);
}

static bool is_one_word(const Type *t)
{
    return t->dtype == DTYPE_u32 && t->rank == 1 && expr_is_constant(t->extents[0]) &&
           t->extents[0]->constant == 1;
}

static bool verify_grid_state(Module *m, const Op *op)
{
    const Value *state = op->operands[0];
    if (!is_one_word(state->type) || !grid_state(state))
        return diag_error(m->diag, op->loc, "the state of %s is u32[1], of an allocate_global with "
                          "zeroed = true or a view_global, got %s: %s", op_info[op->code].name,
                          value_text(m, state), type_text(m, state->type));
    return verify_state_uses(m, op);
}

bool verify_grid_synchronize(Module *m, const Op *op)
{
    if (!op->parent->program->cooperative)
        return diag_error(m->diag, op->loc, "grid_synchronize in a program that is not "
                          "cooperative");
    return verify_grid_state(m, op);
}

bool verify_grid_pace(Module *m, const Op *op)
{
    const Expr *number = op_expr(op, ATTR_STATE), *paces = op_expr(op, ATTR_PACES);
    if (!number || !paces)
        return diag_error(m->diag, op->loc, "grid_pace takes its number after a comma, and {of = ..}, "
                          "how many a block has in a launch");
    if (expr_is_constant(number) && expr_is_constant(paces) &&
        (number->constant < 0 || number->constant >= paces->constant))
        return diag_error(m->diag, op->loc, "grid_pace %lld of %lld: they count from 0",
                          (long long)number->constant, (long long)paces->constant);
    return verify_grid_state(m, op);
}
