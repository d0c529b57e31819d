/* The verifier's rules of mbarriers: their number, and the index of an op's mbarrier. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/verify.h"

/* The mbarrier operand is the last one. */
bool verify_mbarrier_element(Module *m, const Op *op)
{
    const Value *v = op->operands[op->operand_count - 1];
    const Expr *element = op_expr(op, ATTR_ELEMENT);
    int64_t count = type_extent(v->type, 0);
    if (!element)
        return diag_error(m->diag, op->loc, "%s takes the index of an mbarrier in brackets "
                          "after %s", op_info[op->code].name, value_text(m, v));
    if (expr_is_constant(element) && !mbarrier_has(op, element->constant))
        return diag_error(m->diag, op->loc, "mbarrier %lld of %s, which has %lld",
                          (long long)element->constant, value_text(m, v), (long long)count);
    return true;
}

/* Counts the mbarriers of the program up to `op`, which are all in its body. */
static int64_t count_mbarriers(const Op *op)
{
    int64_t count = 0;
    for (; op; op = op->prev)
        if (op->code == OP_allocate_mbarrier)
            count += type_extent(op->results[0]->type, 0);
    return count;
}

bool verify_allocate_mbarrier(Module *m, const Op *op)
{
    const Attr *arrivals = op_attr(op, ATTR_ARRIVALS);
    int64_t count = type_extent(op->results[0]->type, 0);
    if (op->parent->parent)
        return diag_error(m->diag, op->loc, "allocate_mbarrier inside of a region: mbarriers are "
                          "the program's, for all of its threads");
    if (!arrivals)
        return diag_error(m->diag, op->loc, "allocate_mbarrier needs the number of arrivals that "
                          "complete a phase, as {count = 1}");
    if (arrivals->integer < 1 || arrivals->integer > LIMIT_ARRIVALS)
        return diag_error(m->diag, op->loc, "%lld arrivals complete a phase, it must be 1 to %d",
                          (long long)arrivals->integer, LIMIT_ARRIVALS);
    if (count < 1 || count > LIMIT_MBARRIERS)
        return diag_error(m->diag, op->loc, "%lld mbarriers, it must be 1 to %d",
                          (long long)count, LIMIT_MBARRIERS);
    count = count_mbarriers(op);
    return count <= LIMIT_MBARRIERS ||
           diag_error(m->diag, op->loc, "%lld mbarriers up to here, a program has at most %d",
                      (long long)count, LIMIT_MBARRIERS);
}

bool verify_mbarrier_arrive(Module *m, const Op *op)
{
    return verify_mbarrier_element(m, op);
}

bool verify_mbarrier_wait(Module *m, const Op *op)
{
    return verify_mbarrier_element(m, op) &&
           (op_expr(op, ATTR_STATE) ||
            diag_error(m->diag, op->loc, "mbarrier_wait takes the phase after a comma"));
}
