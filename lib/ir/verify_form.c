/* The verifier's rules of storage orders and deferred power-of-two scales. */
#include "ir/form.h"
#include "ir/text.h"
#include "ir/verify.h"

/* ---- which ops take such tensors ------------------------------------------- */

static bool hands_on(OpCode code)
{
    return code == OP_view || code == OP_yield || op_info[code].rule == RULE_CARRIED;
}

static bool takes_packed(OpCode code)
{
    return hands_on(code) || code == OP_cast || code == OP_decode || code == OP_dequantize;
}

static bool takes_scaled(OpCode code)
{
    return hands_on(code) || code == OP_rescale || code == OP_dot;
}

/* A tensor that is allocated is undefined, or 0. */
static bool gives_packed(const Op *op)
{
    return hands_on(op->code) || op->code == OP_cast ||
           (op->code == OP_allocate_register && !op_attr(op, ATTR_INIT));
}

static bool gives_scaled(const Op *op)
{
    const Attr *init = op_attr(op, ATTR_INIT);
    return takes_scaled(op->code) || op->code == OP_decode ||
           (op->code == OP_allocate_register && (!init || constant_is_zero(init->number)));
}

/* Sums of products in flight: dot_async adds to them, dot_wait waits for them, control
 * carries them. */
static bool takes_pending(const Op *op, unsigned operand)
{
    return op_info[op->code].rule == RULE_CARRIED || op->code == OP_yield ||
           op->code == OP_dot_wait || (op->code == OP_dot_async && operand == 2);
}

static bool gives_pending(const Op *op)
{
    return op_info[op->code].rule == RULE_CARRIED || op->code == OP_dot_wait ||
           op->code == OP_dot_async ||
           (op->code == OP_allocate_register && op_attr(op, ATTR_INIT));
}

static bool verify_operand_pending(Module *m, const Op *op, unsigned i)
{
    const Value *v = op->operands[i];
    const char *name = value_text(m, v);
    if (!v->type->pending || takes_pending(op, i))
        return true;
    diag_error(m->diag, op->loc, "%s takes complete tensors, %s may be in flight: %s",
               op_info[op->code].name, name, type_text(m, v->type));
    return diag_note(m->diag, v->loc, "%s is defined here; dot_wait completes it", name);
}

static bool verify_result_pending(Module *m, const Op *op, const Type *t)
{
    if (t->pending && !gives_pending(op))
        return diag_error(m->diag, op->loc, "%s%s does not give a tensor in flight, got %s",
                          op_info[op->code].name,
                          op->code == OP_allocate_register ? " without a number" : "",
                          type_text(m, t));
    return !t->pending || (!t->packed && !t->scaling) ||
           diag_error(m->diag, op->loc, "a tensor in flight is in plain order and has no "
                      "deferred scales, got %s", type_text(m, t));
}

static bool verify_operand_form(Module *m, const Op *op, unsigned i)
{
    const Value *v = op->operands[i];
    const Type *t = v->type;
    const char *name = value_text(m, v);
    if (!verify_operand_pending(m, op, i))
        return false;
    if (t->packed && !takes_packed(op->code))
        return diag_error(m->diag, op->loc, "%s takes elements in plain order, %s is in order "
                          "packed(%s): cast or view it first", op_info[op->code].name, name,
                          dtype_name(t->packed));
    if (t->scaling && !takes_scaled(op->code))
        return diag_error(m->diag, op->loc, "%s takes values as they are, %s has deferred "
                          "scales: rescale it first: %s", op_info[op->code].name, name,
                          type_text(m, t));
    return true;
}

static bool verify_result_form(Module *m, const Op *op, const Type *t)
{
    const char *why = NULL;
    if (!verify_result_pending(m, op, t))
        return false;
    if ((t->packed && !gives_packed(op)) || (t->scaling && !gives_scaled(op)))
        return diag_error(m->diag, op->loc, "%s%s does not give a tensor in a storage order or "
                          "with deferred scales, got %s", op_info[op->code].name,
                          op_attr(op, ATTR_INIT) ? " with a number" : "", type_text(m, t));
    if (t->scaling && !dtype_is_float(t->dtype))
        return diag_error(m->diag, op->loc, "only floats have deferred scales, got %s",
                          type_text(m, t));
    if (t->packed && t->scaling)
        return diag_error(m->diag, op->loc, "a tensor in a storage order has no deferred "
                          "scales, got %s", type_text(m, t));
    if (!t->packed || type_is_open(t))
        return true;
    return form_allows_packed(m, t, t->packed, &why) || diag_error(m->diag, op->loc, "%s", why);
}

bool verify_forms(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == TYPE_REG &&
            !verify_operand_form(m, op, i))
            return false;
    for (unsigned i = 0; i < op->result_count; i++)
        if (op->results[i]->type->kind == TYPE_REG &&
            !verify_result_form(m, op, op->results[i]->type))
            return false;
    return true;
}

/* ---- decode and rescale -------------------------------------------------------- */

const Type *verify_decode_type(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    const char *why = NULL;
    if (type_is_open(t))
        diag_error(m->diag, op->loc, "decode needs a layout that the text gives, got %s",
                   type_text(m, t));
    else if (!t->packed)
        diag_error(m->diag, op->loc, "decode takes codes in a storage order, packed(f16) or "
                   "packed(bf16), got %s", type_text(m, t));
    else if (!form_allows_packed(m, t, t->packed, &why))
        diag_error(m->diag, op->loc, "%s", why);
    else if ((t = form_decoded(m, t, &why)))
        return t;
    else
        diag_error(m->diag, op->loc, "%s", why);
    return NULL;
}

bool verify_decode(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type, *t = verify_decode_type(m, op);
    return t && (t == given ||
                 diag_error(m->diag, op->loc, "decode of %s gives %s, got %s",
                            type_text(m, op->operands[0]->type), type_text(m, t),
                            type_text(m, given)));
}

/* The factors are products of two numbers of f32. */
enum { RESCALE_LIMIT = 252 };

bool verify_rescale(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    int from_least, from_most, to_least, to_most;
    if (type_like(m, from, from->dtype) != type_like(m, to, to->dtype))
        return diag_error(m->diag, op->loc, "rescale keeps element type and layout, got %s from "
                          "%s", type_text(m, to), type_text(m, from));
    if (from->dtype != DTYPE_f16 && from->dtype != DTYPE_bf16 && from->dtype != DTYPE_f32)
        return diag_error(m->diag, op->loc, "rescale takes f16, bf16 or f32, got %s",
                          dtype_name(from->dtype));
    if (from->scaling && to->scaling && from->scaling->count > 1 && to->scaling->count > 1 &&
        from->scaling->dim != to->scaling->dim)
        return diag_error(m->diag, op->loc, "rescale between deferred scales along dimension "
                          "%u and along dimension %u", from->scaling->dim, to->scaling->dim);
    form_exponent_range(from, &from_least, &from_most);
    form_exponent_range(to, &to_least, &to_most);
    if (to_most - from_least > RESCALE_LIMIT || from_most - to_least > RESCALE_LIMIT)
        return diag_error(m->diag, op->loc, "rescale multiplies by 2^-%d to 2^%d, the exponents "
                          "are %d to %d and become %d to %d", RESCALE_LIMIT, RESCALE_LIMIT,
                          from_least, from_most, to_least, to_most);
    return true;
}

/* ---- dot ------------------------------------------------------------------------- */

/* Returns true when all exponents are equal, or follow from dimension `dim`. */
static bool runs_along(const Type *t, unsigned dim)
{
    return !t->scaling || t->scaling->count == 1 || t->scaling->dim == dim;
}

/* The exponent where the index along k is `k`. */
static int exponent_at(const Type *t, unsigned dim, int64_t k)
{
    int64_t index[LIMIT_RANK] = {0};
    index[dim] = k;
    return type_exponent(t, index);
}

bool verify_dot_forms(Module *m, const Op *op)
{
    const Type *a = op->operands[0]->type, *b = op->operands[1]->type, *c = op->operands[2]->type;
    unsigned of_a = a->rank - 1, of_b = b->rank - 2;    /* the dimensions k */
    if (!a->scaling && !b->scaling && !c->scaling)
        return true;
    if (!runs_along(a, of_a) || !runs_along(b, of_b) || !runs_along(c, 0) ||
        (c->scaling && c->scaling->count > 1))
        return diag_error(m->diag, op->loc, "dot needs deferred scales that depend on k only, "
                          "and equal ones of its sums: %s, %s and %s", type_text(m, a),
                          type_text(m, b), type_text(m, c));
    int sum = exponent_at(c, 0, 0);
    for (int64_t k = 0; k < type_extent(a, of_a); k++) {
        int e = exponent_at(a, of_a, k), f = exponent_at(b, of_b, k);
        if (e + f != sum)
            return diag_error(m->diag, op->loc, "at k = %lld the deferred scales of dot's operands "
                              "are 2^%d and 2^%d, 2^%d in all, but that of its sums is 2^%d",
                              (long long)k, e, f, e + f, sum);
    }
    return true;
}
