/* The verifier's rules of asynchronous products, as far as every target has them; the
 * planner (select/wgmma.h) knows types and layouts. */
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
    }
    return true;
}
