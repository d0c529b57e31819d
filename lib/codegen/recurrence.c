/* Quotients and rests that loops carry. */
#include "codegen/recurrence.h"

#include "ir/loop.h"
#include "ir/uses.h"
#include "scalar/linear.h"

struct Recurrence {
    Recurrence *next;
    const Expr *dividend, *divisor;
    LLVMValueRef rest, quotient;        /* phis of one type */
};

void open_loop(Codegen *cg, OpenLoop *l)
{
    l->outer = cg->loops;
    cg->loops = l;
}

/* Adds to `phi` what it becomes in the next iteration. */
static void add_next(Codegen *cg, LLVMValueRef phi, LLVMValueRef next)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(cg->builder);
    LLVMAddIncoming(phi, &next, &latch, 1);
}

/* Takes the step: a rest that reaches the divisor becomes 0, and the quotient one more. */
static void build_step(Codegen *cg, const Recurrence *r)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef type = LLVMTypeOf(r->rest);
    LLVMValueRef divisor = LLVMConstInt(type, (uint64_t)r->divisor->constant, 0);
    LLVMValueRef more = LLVMBuildAdd(b, r->rest, LLVMConstInt(type, 1, 0), "");
    LLVMValueRef wraps = LLVMBuildICmp(b, LLVMIntEQ, more, divisor, "");
    add_next(cg, r->rest, LLVMBuildSelect(b, wraps, LLVMConstNull(type), more, ""));
    add_next(cg, r->quotient, LLVMBuildAdd(b, r->quotient, LLVMBuildZExt(b, wraps, type, ""), ""));
}

void close_loop(Codegen *cg)
{
    for (const Recurrence *r = cg->loops->recurrences; r; r = r->next)
        build_step(cg, r);
    cg->loops = cg->loops->outer;
}

/* ---- which loop ------------------------------------------------------------ */

static bool is_outside(Value *v, void *data)
{
    const OpenLoop *l = data;
    return !op_defines(l->op, v);
}

/* Counts the terms of `s` that change in the loop. */
static unsigned count_varying(const LinearSum *s, OpenLoop *l)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->count; i++)
        count += s->terms[i].factor != 0 && !expr_visit_values(s->terms[i].leaf, is_outside, l);
    return count;
}

static bool steps_by_one(const Op *loop)
{
    const Expr *step = op_expr(loop, ATTR_STEP);
    return !step || (expr_is_constant(step) && step->constant == 1);
}

static const Expr *index_of(Codegen *cg, const OpenLoop *l)
{
    return expr_value(&cg->module->exprs, for_index(l->op));
}

/* Returns the innermost loop in which `s` changes, if it grows by one there. */
static OpenLoop *find_loop(Codegen *cg, const LinearSum *s)
{
    OpenLoop *l = cg->loops;
    while (l && count_varying(s, l) == 0)
        l = l->outer;
    bool found = l && count_varying(s, l) == 1 && steps_by_one(l->op) &&
                 linear_factor(s, index_of(cg, l)) == 1;
    return found ? l : NULL;
}

/* Finds `f` for the value of `s`, the dividend `a`, in the first iteration: a guard may keep `a` itself from it. Returns
 * false where it cannot be computed in front of `l`, or may leave 64 bits and come back, which takes 2^62 iterations
 * where `a` is not as low. */
static bool find_first(Codegen *cg, const LinearSum *s, const OpenLoop *l, const Expr *a, ScalarFacts *f)
{
    LinearSum first = {.constant = s->constant};
    bool known = true;
    *f = (ScalarFacts){1, INT64_MIN, INT64_MAX};
    for (unsigned i = 0; i < s->count; i++) {
        const LinearTerm *t = &s->terms[i];
        bool is_index = t->leaf == index_of(cg, l);
        if (!is_index && !expr_never_fails(t->leaf))
            return false;
        known = known && linear_add(&first, is_index ? op_expr(l->op, ATTR_LOWER) : t->leaf, t->factor);
    }
    int64_t min, max;
    if (!known || !linear_range(&first, LINEAR_TERMS, &min, &max))
        return facts_of_expr(a).min >= INT64_MIN / 2;
    f->min = min;
    f->max = max;
    return true;
}

/* ---- phis -------------------------------------------------------------------- */

/* The value of `s` in the first iteration. */
static LLVMValueRef build_first(Codegen *cg, const LinearSum *s, const OpenLoop *l)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef sum = const_i64_of(cg, s->constant);
    for (unsigned i = 0; i < s->count; i++) {
        const LinearTerm *t = &s->terms[i];
        bool is_index = t->leaf == index_of(cg, l);
        LLVMValueRef v = emit_expr(cg, is_index ? op_expr(l->op, ATTR_LOWER) : t->leaf);
        sum = LLVMBuildAdd(b, sum, LLVMBuildMul(b, v, const_i64_of(cg, t->factor), ""), "");
    }
    return sum;
}

/* Returns a phi of the loop, as wide as `type`, whose first value is `e` where its dividend is `a`, with facts `f`. */
static LLVMValueRef begin_phi(Codegen *cg, OpenLoop *l, const Expr *e, LLVMValueRef a,
                              ScalarFacts f, LLVMTypeRef type)
{
    LLVMBuilderRef b = cg->builder;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(l->before));
    LLVMValueRef first = emit_division(cg, e, a, f, const_i64_of(cg, e->b->constant));
    first = LLVMBuildIntCast2(b, first, type, 1, "");
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(l->header));
    LLVMValueRef phi = LLVMBuildPhi(b, type, "");
    LLVMAddIncoming(phi, &first, &l->before, 1);
    return phi;
}

static bool fits_i32(const Expr *e)
{
    ScalarFacts f = facts_of_expr(e);
    return f.min >= INT32_MIN && f.max <= INT32_MAX;
}

/* Begins to carry a quotient and its rest. A quotient that i32 does not hold before the division is needed is
 * right again there, but no rest is. */
static Recurrence *begin_recurrence(Codegen *cg, OpenLoop *l, const LinearSum *s, ScalarFacts f,
                                    const Expr *e)
{
    const char *why;
    const Expr *rest = expr_make(&cg->module->exprs, SCALAR_mod, e->a, e->b, &why);
    const Expr *quotient = expr_make(&cg->module->exprs, SCALAR_div, e->a, e->b, &why);
    LLVMTypeRef type = fits_i32(e->b) && fits_i32(quotient) ? cg->i32 : cg->i64;
    LLVMPositionBuilderBefore(cg->builder, LLVMGetBasicBlockTerminator(l->before));
    LLVMValueRef first = build_first(cg, s, l);
    Recurrence *r = arena_new(&cg->module->scratch, Recurrence);
    r->dividend = e->a;
    r->divisor = e->b;
    r->rest = begin_phi(cg, l, rest, first, f, type);
    r->quotient = begin_phi(cg, l, quotient, first, f, type);
    r->next = l->recurrences;
    l->recurrences = r;
    return r;
}

/* Does so without moving the builder, which stands at the end of a block. */
static Recurrence *add_recurrence(Codegen *cg, OpenLoop *l, const LinearSum *s, ScalarFacts f,
                                  const Expr *e)
{
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(b);
    Recurrence *r = begin_recurrence(cg, l, s, f, e);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(here);
    if (end)
        LLVMPositionBuilderBefore(b, end);
    else
        LLVMPositionBuilderAtEnd(b, here);
    LLVMSetCurrentDebugLocation2(b, place);
    return r;
}

static Recurrence *find_recurrence(const OpenLoop *l, const Expr *e)
{
    Recurrence *r = l->recurrences;
    while (r && (r->dividend != e->a || r->divisor != e->b))
        r = r->next;
    return r;
}

/* Returns true where a shift, a mask or a constant is not all that `e` needs. */
static bool is_costly(const Expr *e)
{
    if ((e->op != SCALAR_mod && e->op != SCALAR_div) || !expr_is_constant(e->b))
        return false;
    int64_t c = e->b->constant;
    return c > 0 && (c & (c - 1)) != 0 && facts_of_expr(e->a).divisor % c != 0;
}

LLVMValueRef carried_division(Codegen *cg, const Expr *e)
{
    LinearSum s = {.count = 0};
    if (!cg->loops || !is_costly(e) || !linear_add(&s, e->a, 1))
        return NULL;
    OpenLoop *l = find_loop(cg, &s);
    if (!l)
        return NULL;
    ScalarFacts first;
    const Recurrence *r = find_recurrence(l, e);
    if (!r && !find_first(cg, &s, l, e->a, &first))
        return NULL;
    if (!r)
        r = add_recurrence(cg, l, &s, first, e);
    return e->op == SCALAR_mod ? LLVMBuildZExt(cg->builder, r->rest, cg->i64, "")
                               : LLVMBuildSExt(cg->builder, r->quotient, cg->i64, "");
}
