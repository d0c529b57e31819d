/* The verifier's rules of asynchronous products, as far as every target has them; the
 * planner (select/wgmma.h) knows types and layouts. */
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/product.h"
#include "ir/text.h"
#include "ir/verify.h"

static bool verify_warpgroups(Module *m, const Op *op)
{
    ThreadRange threads = region_threads(op->parent);
    return (threads.begin % WARPGROUP == 0 && threads.count % WARPGROUP == 0) ||
           diag_error(m->diag, op->loc, "%s is executed by whole warpgroups of %d threads, here "
                      "%lld threads from thread %lld on run it", op_info[op->code].name, WARPGROUP,
                      (long long)threads.count, (long long)threads.begin);
}

static bool may_be_matrix(const Type *t)
{
    return t->rank == 2 || (t->rank == 3 && t->kind == TYPE_SHARED);
}

static int64_t extent_along(const Op *op, const Type *sum, unsigned i, bool k)
{
    return side_extent(op->operands[i]->type, product_side(op, sum, i, k));
}

/* a[m, k], b[k, n] and the sums [m, n]. */
static bool verify_product_shapes(Module *m, const Op *op, const Type *sum)
{
    const Type *a = op->operands[0]->type, *b = op->operands[1]->type;
    if (may_be_matrix(a) && may_be_matrix(b) && sum->rank == 2 &&
        extent_along(op, sum, 0, true) == extent_along(op, sum, 1, true) &&
        extent_along(op, sum, 0, false) == type_extent(sum, 0) &&
        extent_along(op, sum, 1, false) == type_extent(sum, 1))
        return true;
    return diag_error(m->diag, op->loc, "dot_async takes matrices [m, k] and [k, n] and gives "
                      "[m, n], got %s and %s onto %s", type_text(m, a), type_text(m, b),
                      type_text(m, sum));
}

/* Operands that shared memory holds are chosen by then: a swizzle is part of a descriptor. */
static bool verify_product_operands(Module *m, const Op *op)
{
    const Value *a = op->operands[0];
    if (a->type->kind == TYPE_GLOBAL)
        return diag_error(m->diag, op->loc, "operand 1 of dot_async is a register or shared "
                          "tensor, %s is a global tensor: %s", value_text(m, a),
                          type_text(m, a->type));
    for (unsigned i = 0; i < 2; i++)
        if (op->operands[i]->type->kind == TYPE_SHARED && type_is_open(op->operands[i]->type))
            return diag_error(m->diag, op->loc, "the swizzle of %s must be written, dot_async "
                              "takes those of 32, 64 and 128 bytes: %s",
                              value_text(m, op->operands[i]),
                              type_text(m, op->operands[i]->type));
    return true;
}

bool verify_dot_async(Module *m, const Op *op)
{
    const Type *d = op->results[0]->type, *c = op->operand_count == 3 ? op->operands[2]->type : d;
    const Attr *negate = op_attr(op, ATTR_NEGATE);
    if (!verify_warpgroups(m, op) || !verify_product_operands(m, op) ||
        !verify_product_shapes(m, op, d))
        return false;
    if (op_via(op) != VIA_units && via_info[op_via(op)].op != OP_dot_async)
        return diag_error(m->diag, op->loc, "dot_async cannot go via %s",
                          via_info[op_via(op)].spelling);
    if (type_pending(m, c, true) != d)
        return diag_error(m->diag, op->loc, "dot_async gives %s, got %s",
                          type_text(m, type_pending(m, c, true)), type_text(m, d));
    if (negate && negate->word == FLAG_TRUE && !dtype_is_float(d->dtype))
        return diag_error(m->diag, op->loc, "dot_async subtracts products of floats, got sums of "
                          "%s", dtype_name(d->dtype));
    return true;
}

/* ---- waits ----------------------------------------------------------------------- */

/* Returns false for an op that makes or ends groups of products. */
static bool leaves_groups(Op *op, void *data)
{
    (void)data;
    return op->code != OP_dot_async && op->code != OP_dot_wait;
}

/* Counts the groups made between `from` and `to`, ops of one region: -1 where some may have been ended, or a region makes
 * some. */
static int64_t groups_between(const Op *from, const Op *to)
{
    int64_t count = 0;
    for (const Op *op = from->next; op != to; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++)
            if (!region_walk(op->regions[i], leaves_groups, NULL))
                return -1;
        if (op->code == OP_dot_wait)
            return -1;
        count += op->code == OP_dot_async && op_commits_product(op);
    }
    return count;
}

/* Follows the sums `v` that `at` takes to the last product in them, from the end of a loop also into its last iteration.
 * Counts the groups made after the product's: -1 where that is not known. */
static int64_t groups_behind(const Value *v, const Op *at, const Op **product)
{
    int64_t count = 0;
    for (;;) {
        const Op *def = v->def;
        int64_t between = def && def->parent == at->parent ? groups_between(def, at) : -1;
        unsigned i = 0;
        if (between < 0)
            return -1;
        count += between;
        *product = def;
        if (def->code == OP_dot_async)
            return op_commits_product(def) ? count : -1;
        if (def->code != OP_dot_wait && def->code != OP_for)
            return -1;
        while (def->results[i] != v)
            i++;
        at = def->code == OP_for ? region_yield(def->regions[0]) : def;
        if (!at || i >= at->operand_count)
            return -1;
        v = at->operands[i];
    }
}

/* Refuses complete sums of a product that is in one of the `pending` newest groups. */
static bool verify_complete(Module *m, const Op *op, unsigned i, int64_t pending)
{
    const Op *product;
    if (op->results[i]->type->pending)
        return true;
    int64_t behind = groups_behind(op->operands[i], op, &product);
    if (behind < 0 || behind >= pending)
        return true;
    diag_error(m->diag, op->loc, "dot_wait gives %s as complete while a product of it is in flight: pending = %lld "
               "waits for older groups only", value_text(m, op->operands[i]), (long long)pending);
    return diag_note(m->diag, product->loc, "the product begins here");
}

bool verify_dot_wait(Module *m, const Op *op)
{
    enum { GROUPS_MOST = 7 };
    const Attr *pending = op_attr(op, ATTR_PENDING);
    if (!verify_warpgroups(m, op))
        return false;
    if (pending && (pending->integer < 0 || pending->integer > GROUPS_MOST))
        return diag_error(m->diag, op->loc, "pending is %lld, it must be 0 to %d",
                          (long long)pending->integer, GROUPS_MOST);
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Type *from = op->operands[i]->type, *to = op->results[i]->type;
        if (!from->pending)
            return diag_error(m->diag, op->loc, "dot_wait takes tensors in flight, %s is "
                              "complete: %s", value_text(m, op->operands[i]),
                              type_text(m, from));
        if (from != type_pending(m, to, true))
            return diag_error(m->diag, op->loc, "dot_wait keeps type and layout, got %s from %s",
                              type_text(m, to), type_text(m, from));
        if (to->pending && (!pending || !pending->integer))
            return diag_error(m->diag, op->loc, "no group stays in flight where pending is 0, "
                              "result %u is %s", i, type_text(m, to));
        if (pending && !verify_complete(m, op, i, pending->integer))
            return false;
    }
    return true;
}
