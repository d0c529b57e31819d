/* Scalars of floats: %eps, f32(%n), rsqrt(%eps) * 2. The machine has no scalars of floats, so
 * a term of them is kept as a tree, and becomes ops on tensors of the shape that it meets. All
 * elements are equal then, and LLVM computes one. */
#include "syntax/term.h"

#include "ir/text.h"

struct Real {
    OpCode code;            /* splat of a scalar of floats, cast of one of integers, else an
                               element-wise op of `operands` */
    DType dtype;
    const Expr *expr;       /* splat, cast */
    Term operands[OPERANDS_MAX];
    unsigned count;
};

static Term term_of_real(Parser *p, Loc loc, Real real)
{
    return (Term){.kind = TERM_REAL, .loc = loc,
                  .real = arena_copy(&p->m->arena, &real, sizeof real)};
}

Term term_of_float(Parser *p, Loc loc, Value *v)
{
    return term_of_real(p, loc, (Real){.code = OP_splat, .dtype = v->type->dtype,
                                       .expr = expr_value(&p->m->exprs, v)});
}

Term term_of_cast(Parser *p, Loc loc, const Expr *e, DType t)
{
    return term_of_real(p, loc, (Real){.code = OP_cast, .dtype = t, .expr = e});
}

Value *real_argument(const Real *real)
{
    return real->code == OP_splat ? real->expr->value : NULL;
}

const char *real_text(Parser *p, const Real *real)
{
    const Value *v = real_argument(real);
    return v ? arena_printf(&p->m->arena, "%%%s", v->name) : "the expression";
}

DType real_dtype(const Real *real)
{
    return real->dtype;
}

bool real_combine(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count, Term *out)
{
    Real real = {.code = code, .count = count};
    Constant n;
    for (unsigned i = 0; i < count; i++) {
        real.operands[i] = terms[i];
        if (term_constant(&terms[i], &n) && !terms[i].dtype)
            continue;
        if (terms[i].kind == TERM_INTEGER)
            return diag_error(p->diag, loc, "%s of %s and a scalar of floats: convert it, as in "
                              "f32(..)", op_info[code].name, term_text(p, &terms[i]));
        DType t = terms[i].kind == TERM_REAL ? terms[i].real->dtype : terms[i].dtype;
        if (real.dtype && real.dtype != t)
            return diag_error(p->diag, loc, "%s of %s and %s: cast one, as in %s(..)",
                              op_info[code].name, dtype_name(real.dtype), dtype_name(t),
                              dtype_name(real.dtype));
        real.dtype = t;
    }
    if (!dtype_is_float(real.dtype))
        return diag_error(p->diag, loc, "%s needs a tensor, got %s", op_info[code].name,
                          term_text(p, &terms[0]));
    if (code == OP_compare || code == OP_select)
        return diag_error(p->diag, loc, "%s of scalars of floats needs a tensor",
                          op_info[code].name);
    *out = term_of_real(p, loc, real);
    return true;
}

/* A tensor of the type's shape filled with `e`. */
static bool build_splat(Parser *p, Loc loc, const Expr *e, const Type *type, Term *out)
{
    Attr attr = {.kind = ATTR_VALUE, .expr = e};
    return term_build(p, OP_splat, loc, NULL, 0, &attr, 1, type, out);
}

Value *integer_value(Parser *p, Loc loc, const Expr *e, const Type *type)
{
    Term out;
    return build_splat(p, loc, e, type, &out) ? out.value : NULL;
}

/* An integer scalar as floats: i32 where it is one, else i64. */
static Value *build_cast(Parser *p, Loc loc, const Expr *e, const Type *type)
{
    Term out;
    bool narrow = e->kind == EXPR_VALUE && e->value->type->dtype == DTYPE_i32;
    const Type *from = type_like(p->m, type, narrow ? DTYPE_i32 : DTYPE_i64);
    return build_splat(p, loc, e, from, &out) &&
                   term_build(p, OP_cast, loc, &out.value, 1, NULL, 0, type, &out)
               ? out.value
               : NULL;
}

Value *real_value(Parser *p, Loc loc, const Real *real, const Type *type)
{
    Value *operands[OPERANDS_MAX];
    Term out;
    if (real->dtype != type->dtype) {
        diag_error(p->diag, loc, "a scalar of %s beside a tensor of %s", dtype_name(real->dtype),
                   dtype_name(type->dtype));
        return NULL;
    }
    if (real->code == OP_splat)
        return build_splat(p, loc, real->expr, type, &out) ? out.value : NULL;
    if (real->code == OP_cast)
        return build_cast(p, loc, real->expr, type);
    for (unsigned i = 0; i < real->count; i++)
        if (!(operands[i] = term_value(p, &real->operands[i], type)))
            return NULL;
    return term_build(p, real->code, loc, operands, real->count, NULL, 0, type, &out) ? out.value
                                                                                      : NULL;
}
