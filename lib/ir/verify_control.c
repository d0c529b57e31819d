/* The verifier's rules of loops and branches, and of the ops that end or condition them. */
#include "ir/loop.h"
#include "ir/text.h"
#include "ir/verify.h"

/* Text has no way to carry anything else: memory is named where it is used. */
static bool verify_carried_kinds(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        if (t->kind != TYPE_REG && t->kind != TYPE_SCALAR)
            return diag_error(m->diag, op->loc, "%s carries register tensors and scalars, got a "
                              "%s: %s", op_info[op->code].name, verify_kind_text(t->kind),
                              type_text(m, t));
        if (t->kind == TYPE_SCALAR && dtype_is_float(t->dtype))
            return diag_error(m->diag, op->loc, "%s carries scalars of integers, got %s: carry a "
                              "`splat` of it", op_info[op->code].name, dtype_name(t->dtype));
    }
    return true;
}

/* Reports value `i` of a yield, by its number where there are several. */
static bool report_yield(Module *m, const Op *op, const Op *yield, unsigned i)
{
    const Type *yielded = yield->operands[i]->type, *carried = op->results[i]->type;
    const char *number = op->result_count > 1 ? arena_printf(&m->scratch, " as value %u", i + 1)
                                              : "";
    diag_error(m->diag, yield->loc, "yield of %s%s where %s carries %s", type_text(m, yielded), number,
               op_info[op->code].name, type_text(m, carried));
    bool differs = op_is_loop(op) && yielded->kind == TYPE_REG && carried->kind == TYPE_REG &&
                   carried->pending != yielded->pending &&
                   verify_types_agree(m, yielded, type_pending(m, carried, yielded->pending));
    if (differs)
        diag_note(m->diag, op->loc, carried->pending
                      ? "leave `pending` out of its type in iter to carry complete sums, or yield what dot_wait "
                        "leaves in flight, with {pending = N}"
                      : "write `pending` behind its type in iter to carry sums in flight, or wait for all of them by "
                        "dot_wait");
    return false;
}

/* Values that a region hands on have the types of the op's results. */
static bool verify_yield_types(Module *m, const Op *op, const Region *r)
{
    const Op *yield = region_yield(r);
    if (!yield)
        return diag_error(m->diag, op->loc, "a region of %s without a yield",
                          op_info[op->code].name);
    if (yield->operand_count != op->result_count)
        return diag_error(m->diag, yield->loc, "yield of %u values in a %s that carries %u",
                          yield->operand_count, op_info[op->code].name, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++)
        if (!verify_types_agree(m, yield->operands[i]->type, op->results[i]->type))
            return report_yield(m, op, yield, i);
    return true;
}

static bool verify_stages(Module *m, const Op *op)
{
    const Expr *stages = op_expr(op, ATTR_PIPELINED);
    if (stages && !expr_is_constant(stages))
        return diag_error(m->diag, op->loc, "the number of stages is not constant: %s",
                          expr_text(m, stages));
    if (stages && (stages->constant < 1 || stages->constant > LIMIT_STAGES))
        return diag_error(m->diag, op->loc, "a loop of %lld stages, it has 1 to %d",
                          (long long)stages->constant, LIMIT_STAGES);
    return true;
}

/* Checks initial values, results and the values that the body hands on, one by one. */
static bool verify_loop(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name;
    if (op->operand_count != op->result_count)
        return diag_error(m->diag, op->loc, "%s carries %u values and gives %u results", name,
                          op->operand_count, op->result_count);
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!verify_types_agree(m, op->operands[i]->type, op->results[i]->type))
            return diag_error(m->diag, op->loc, "%s carries %s from %s", name,
                              type_text(m, op->results[i]->type),
                              type_text(m, op->operands[i]->type));
    return verify_carried_kinds(m, op) && verify_yield_types(m, op, op->regions[0]);
}

static bool verify_unroll(Module *m, const Op *op)
{
    const Expr *iterations = op_expr(op, ATTR_UNROLL);
    if (!iterations)
        return true;
    if (!expr_is_constant(iterations))
        return diag_error(m->diag, op->loc, "the iterations to unroll must be a constant, got %s",
                          expr_text(m, iterations));
    if (iterations->constant < 1 || iterations->constant > LIMIT_UNROLL)
        return diag_error(m->diag, op->loc, "unroll of %lld iterations, it must be 1 to %d",
                          (long long)iterations->constant, LIMIT_UNROLL);
    return true;
}

bool verify_for(Module *m, const Op *op)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    if (step && expr_is_constant(step) && step->constant < 1)
        return diag_error(m->diag, op->loc, "the step is %lld, it must be at least 1",
                          (long long)step->constant);
    return verify_stages(m, op) && verify_unroll(m, op) && verify_loop(m, op);
}

bool verify_if(Module *m, const Op *op)
{
    return verify_carried_kinds(m, op) && verify_yield_types(m, op, op->regions[0]) &&
           verify_yield_types(m, op, op->regions[1]);
}

static bool verify_condition(Module *m, const Op *op)
{
    return op_expr(op, ATTR_COND) ||
           diag_error(m->diag, op->loc, "%s needs a condition", op_info[op->code].name);
}

bool verify_while(Module *m, const Op *op)
{
    return verify_condition(m, op) && verify_loop(m, op);
}

bool verify_assert(Module *m, const Op *op) { return verify_condition(m, op); }
bool verify_assume(Module *m, const Op *op) { return verify_condition(m, op); }

bool verify_yield(Module *m, const Op *op)
{
    if (!op->parent->parent)
        return diag_error(m->diag, op->loc, "yield outside of for, while and if");
    if (op->next)
        return diag_error(m->diag, op->loc, "an op after yield: %s", op_info[op->next->code].name);
    return true;
}
