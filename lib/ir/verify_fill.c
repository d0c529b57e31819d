/* The verifier's rules of ops that make register tensors of scalars: iota, splat and random. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/verify.h"

/* Checks a constant VALUE against the type of the result. */
static bool verify_value(Module *m, const Op *op)
{
    const Expr *value = op_expr(op, ATTR_VALUE);
    int64_t constant = value && expr_is_constant(value) ? value->constant : 0;
    if ((value && !expr_is_constant(value)) || value_holds(op, constant))
        return true;
    return diag_error(m->diag, op->loc, "%s", value_misfit_text(&m->arena, op, constant));
}

/* Checks that some first number fits: the type has as many numbers as the dimension elements. */
static bool verify_count(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    int64_t count = type_extent(t, iota_dim(op));
    unsigned bits = dtype_bits(t->dtype);
    if (bits >= 63 || count <= INT64_C(1) << bits)
        return true;
    return diag_error(m->diag, op->loc, "iota counts %lld elements, %s has %lld numbers",
                      (long long)count, dtype_name(t->dtype), (long long)(INT64_C(1) << bits));
}

bool verify_iota(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Attr *dim = op_attr(op, ATTR_DIM);
    if (!dtype_is_integer(t->dtype))
        return diag_error(m->diag, op->loc, "iota gives integers, got %s", type_text(m, t));
    if (!dim && t->rank > 1)
        return diag_error(m->diag, op->loc, "iota of a tensor of rank %u needs the dimension that "
                          "it counts, as {dim = %u}", t->rank, t->rank - 1);
    if (dim && (dim->integer < 0 || dim->integer >= t->rank))
        return diag_error(m->diag, op->loc, "iota counts dimension %lld of a tensor of rank %u",
                          (long long)dim->integer, t->rank);
    return verify_count(m, op) && verify_value(m, op);
}

bool verify_splat(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Value *v = value_float_scalar(op);
    if (!op_expr(op, ATTR_VALUE))
        return diag_error(m->diag, op->loc, "splat needs a scalar");
    if (v && !dtype_is_float(t->dtype))
        return diag_error(m->diag, op->loc, "splat of %%%s, %s, gives floats, got %s", v->name,
                          dtype_name(v->type->dtype), type_text(m, t));
    if (!v && dtype_is_float(t->dtype))
        return diag_error(m->diag, op->loc, "splat of an integer gives integers or bool, got %s: "
                          "cast an i64 tensor", type_text(m, t));
    return v || verify_value(m, op);
}

bool verify_random(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    if (!op_expr(op, ATTR_VALUE) || !op_expr(op, ATTR_COUNTER))
        return diag_error(m->diag, op->loc, "random needs a seed and a number");
    return t->dtype == DTYPE_u32 ||
           diag_error(m->diag, op->loc, "random gives u32, got %s", type_text(m, t));
}
