/* Operators on terms: scalars fold into expressions, tensors become ops. */
#include "syntax/term.h"

#include "ir/text.h"
#include "ir/verify.h"

#include <math.h>

/* ---- making and showing ---------------------------------------------- */

Term term_of_expr(Loc loc, const Expr *e)
{
    return (Term){.kind = TERM_INTEGER, .loc = loc, .expr = e};
}

Term term_of_number(Loc loc, Constant n)
{
    return (Term){.kind = TERM_NUMBER, .loc = loc, .number = n};
}

Term term_of_whole(Loc loc, Constant n)
{
    return (Term){.kind = TERM_NUMBER, .loc = loc, .number = n, .whole = true};
}

Term term_of_value(Loc loc, Value *v)
{
    return (Term){.kind = TERM_VALUE, .loc = loc, .value = v};
}

Term term_of_any(Parser *p, Loc loc, Value *v)
{
    if (v->type->kind != TYPE_SCALAR)
        return term_of_value(loc, v);
    return dtype_is_float(v->type->dtype) ? term_of_float(p, loc, v)
                                          : term_of_expr(loc, expr_value(&p->m->exprs, v));
}

bool term_constant(const Term *t, Constant *out)
{
    if (t->kind == TERM_NUMBER)
        *out = t->number;
    else if (t->kind == TERM_INTEGER && expr_is_constant(t->expr))
        *out = constant_of_integer(t->expr->constant);
    else
        return false;
    return true;
}

static bool is_register(const Term *t)
{
    return t->kind == TERM_VALUE && t->value->type->kind == TYPE_REG;
}

const char *term_text(Parser *p, const Term *t)
{
    Text text;
    Constant n;
    text_init(&text, &p->m->arena);
    if (term_constant(t, &n)) {
        text_add(&text, t->dtype ? "" : "the number ");
        constant_print(&text, n, t->dtype ? dtype_is_float(t->dtype)
                                          : t->kind == TERM_NUMBER && !t->whole);
        if (t->dtype)
            text_printf(&text, " of %s", dtype_name(t->dtype));
    } else if (t->kind == TERM_INTEGER) {
        text_printf(&text, "the scalar %s", expr_text(p->m, t->expr));
    } else if (t->kind == TERM_REAL) {
        text_printf(&text, "a scalar of %s", dtype_name(real_dtype(t->real)));
    } else {
        text_printf(&text, "a %s, %s", verify_kind_text(t->value->type->kind),
                    type_text(p->m, t->value->type));
    }
    return text_string(&text);
}

/* ---- operators -------------------------------------------------------- */

static const Operator operators[] = {
    {"or", SCALAR_or, OP_or, PREDICATE_NONE, false},
    {"and", SCALAR_and, OP_and, PREDICATE_NONE, false},
    {"==", SCALAR_eq, OP_compare, PREDICATE_EQ, false},
    {"!=", SCALAR_ne, OP_compare, PREDICATE_NE, false},
    {"<", SCALAR_lt, OP_compare, PREDICATE_LT, false},
    {"<=", SCALAR_le, OP_compare, PREDICATE_LE, false},
    {">", SCALAR_gt, OP_compare, PREDICATE_GT, false},
    {">=", SCALAR_ge, OP_compare, PREDICATE_GE, false},
    {"+", SCALAR_add, OP_add, PREDICATE_NONE, false},
    {"-", SCALAR_sub, OP_sub, PREDICATE_NONE, false},
    {"*", SCALAR_mul, OP_mul, PREDICATE_NONE, false},
    {"/", SCALAR_div, OP_div, PREDICATE_NONE, false},
    {"mod", SCALAR_mod, OP_mod, PREDICATE_NONE, false},
    {"<<", SCALAR_mul, OP_shl, PREDICATE_NONE, true},
    {">>", SCALAR_div, OP_shr, PREDICATE_NONE, true},
};

static const Operator call_operators[] = {
    {"ceil_div", SCALAR_ceil_div, OP_COUNT, PREDICATE_NONE, false},
    {"min", SCALAR_min, OP_min, PREDICATE_NONE, false},
    {"max", SCALAR_max, OP_max, PREDICATE_NONE, false},
};

static const Operator *find_operator(const Parser *p, const Operator *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parser_at(p, rows[i].spelling))
            return &rows[i];
    return NULL;
}

const Operator *term_operator(const Parser *p)
{
    return find_operator(p, operators, sizeof operators / sizeof *operators);
}

const Operator *term_call_operator(const Parser *p)
{
    return find_operator(p, call_operators, sizeof call_operators / sizeof *call_operators);
}

unsigned operator_precedence(const Operator *o)
{
    return scalar_op_info[o->scalar].precedence;
}

/* ---- scalars ------------------------------------------------------------ */

bool term_undefined(Parser *p, Loc loc, Term *a, const char *why)
{
    *a = term_of_expr(a->loc, expr_constant(&p->m->exprs, 0));
    return p->untaken || diag_error(p->diag, loc, "%s", why);
}

static bool combine_expr(Parser *p, ScalarOp op, const char *spelling, Loc loc, Term *a,
                         const Expr *b)
{
    const char *why;
    const Expr *e = expr_make(&p->m->exprs, op, a->expr, b, &why);
    if (!e)
        return term_undefined(p, loc, a, arena_printf(&p->m->arena, "`%s` gives %s", spelling, why));
    a->expr = e;
    return true;
}

/* a << b and a >> b are a * 2^b and a / 2^b. */
static bool shift_expr(Parser *p, const Operator *o, Loc loc, Term *a, const Expr *b)
{
    if (!expr_is_constant(b) || b->constant < 0 || b->constant > 62) {
        const char *why = arena_printf(&p->m->arena, "`%s` of a scalar is by a constant from 0 to "
                                       "62, got %s", o->spelling, expr_text(p->m, b));
        return expr_is_constant(b) ? term_undefined(p, loc, a, why)
                                   : diag_error(p->diag, loc, "%s", why);
    }
    return combine_expr(p, o->scalar, o->spelling, loc, a,
                        expr_constant(&p->m->exprs, INT64_C(1) << b->constant));
}

static double constant_double(Constant n)
{
    double magnitude = n.is_real ? n.real : (double)n.magnitude;
    return !n.is_real && n.negative ? -magnitude : magnitude;
}

/* Reports the one of two constants that is an integer which i64 does not hold, nor every double. */
static bool report_large(Parser *p, const Operator *o, Loc loc, const Term *a, const Term *b)
{
    const Term *terms[] = {a, b};
    for (unsigned i = 0; i < 2 && !p->untaken; i++)
        if (terms[i]->whole && terms[i]->number.magnitude > INT64_MAX)
            return diag_error(p->diag, loc, "integer %s%llu is over 63 bits: `%s` is exact only "
                              "below", terms[i]->number.negative ? "-" : "",
                              (unsigned long long)terms[i]->number.magnitude, o->spelling);
    return true;
}

/* u compared with v; of a NaN only `!=` is true. */
static bool compare_numbers(Predicate predicate, double u, double v)
{
    switch (predicate) {
    case PREDICATE_EQ: return u == v;
    case PREDICATE_NE: return u != v;
    case PREDICATE_LT: return u < v;
    case PREDICATE_LE: return u <= v;
    case PREDICATE_GT: return u > v;
    default: return u >= v;
    }
}

/* a op b of constants of which one has a fraction, in double. */
static bool combine_numbers(Parser *p, const Operator *o, Loc loc, Term *a, const Term *b,
                            double u, double v)
{
    double r;
    if (!report_large(p, o, loc, a, b))
        return false;
    if (o->predicate != PREDICATE_NONE) {
        *a = term_of_expr(a->loc, expr_constant(&p->m->exprs, compare_numbers(o->predicate, u, v)));
        return true;
    }
    if (o->shift)
        return diag_error(p->diag, loc, "`%s` takes integers", o->spelling);
    switch (o->scalar) {
    case SCALAR_add: r = u + v; break;
    case SCALAR_sub: r = u - v; break;
    case SCALAR_mul: r = u * v; break;
    case SCALAR_div: r = u / v; break;
    case SCALAR_min: r = fmin(u, v); break;
    case SCALAR_max: r = fmax(u, v); break;
    default:
        return diag_error(p->diag, loc, "`%s` takes integers or tensors, got two numbers",
                          o->spelling);
    }
    if (isnan(r) && !isnan(u) && !isnan(v))
        return term_undefined(p, loc, a, arena_printf(&p->m->arena, "`%s` of these numbers is "
                                                      "undefined", o->spelling));
    *a = term_of_number(a->loc, constant_of_real(r));
    return true;
}

/* ---- tensors ------------------------------------------------------------- */

bool op_is_elementwise(OpCode code)
{
    const OpInfo *info = &op_info[code];
    bool typed = info->rule == RULE_SAME || info->rule == RULE_LAST || info->rule == RULE_BOOL;
    if (info->effect != EFFECT_PURE || !typed || info->operand_count < 1 || code == OP_dot ||
        info->attrs & ~op_attr_bit(ATTR_PREDICATE))
        return false;
    for (int i = 0; i < info->operand_count; i++)
        if (info->operands[i] != OPERAND_REG)
            return false;
    return true;
}

bool op_is_callable(OpCode code)
{
    const OpInfo *info = &op_info[code];
    bool any = info->operand_count == OPERANDS_ANY && info->operand_least;
    int count = any ? 1 : info->operand_count;      /* of kinds */
    if (info->effect != EFFECT_PURE || count < 1)
        return false;
    for (int i = 0; i < count; i++)
        if (info->operands[i] != OPERAND_REG && info->operands[i] != OPERAND_TENSOR)
            return false;
    return true;
}

bool term_can_build(Parser *p, Loc loc, const char *what)
{
    if (p->region && !p->no_ops)
        return true;
    return diag_error(p->diag, loc, "%s cannot stand %s", what,
                      p->no_ops ? p->no_ops : "outside of a program");
}

bool term_build(Parser *p, OpCode code, Loc loc, Value *const *operands, unsigned count,
                const Attr *attrs, unsigned attr_count, const Type *type, Term *out)
{
    if (!term_can_build(p, loc, "an op on tensors"))
        return false;
    Op *op = build_op(p->m, code, loc, operands, count, attrs, attr_count);
    op_insert(p->region, op, NULL);
    *out = term_of_value(loc, build_result(p->m, op, NULL, loc, type));
    return true;
}

/* A register tensor of `number`. */
static bool build_constant(Parser *p, Loc loc, Constant number, const Type *type, Term *out)
{
    Attr attr = {.kind = ATTR_INIT, .number = number};
    if (dtype_is_integer(type->dtype) && !number.is_real && !number.magnitude)
        attr.number.negative = false;
    return term_build(p, OP_allocate_register, loc, NULL, 0, &attr, 1, type, out);
}

static Value *build_scalar(Parser *p, const Term *t, const Type *like)
{
    Attr attr = {.kind = ATTR_VALUE, .expr = t->expr};
    Term out;
    const Type *type = like ? like : type_scalar(p->m, DTYPE_i64);
    if (t->expr->kind == EXPR_VALUE && (!like || t->expr->value->type == like))
        return t->expr->value;
    return term_build(p, OP_scalar, t->loc, NULL, 0, &attr, 1, type, &out) ? out.value : NULL;
}

/* Reports that a term, which is no tensor, is no value of type `like` either. */
static void report_no_value(Parser *p, const Term *t, const Type *like)
{
    if (!like)
        diag_error(p->diag, t->loc, "%s needs a type here, as in `0.0 : f32[16, 8]`",
                   term_text(p, t));
    else if (like->kind == TYPE_REG && like->dtype == DTYPE_bool && t->kind == TERM_INTEGER)
        diag_error(p->diag, t->loc, "%s beside a tensor of bool: compare it, as in %s != 0",
                   term_text(p, t), expr_text(p->m, t->expr));
    else if (like->kind == TYPE_REG)
        diag_error(p->diag, t->loc, "%s beside a tensor of %s: convert it, as in %s(..)",
                   term_text(p, t), dtype_name(like->dtype), dtype_name(like->dtype));
    else
        diag_error(p->diag, t->loc, "expected a %s, %s, got %s", verify_kind_text(like->kind),
                   type_text(p->m, like), term_text(p, t));
}

/* Returns true of an expression that is 0 or 1: a comparison, or what joins some. */
static bool is_condition(const Expr *e)
{
    if (e->kind != EXPR_OP)
        return false;
    switch (e->op) {
    case SCALAR_or: case SCALAR_and: case SCALAR_not:
    case SCALAR_eq: case SCALAR_ne: case SCALAR_lt: case SCALAR_le: case SCALAR_gt: case SCALAR_ge:
        return true;
    default:
        return false;
    }
}

/* Returns true of a scalar that a tensor of `t` may be filled with. */
static bool fills(const Term *term, DType t)
{
    return dtype_is_integer(t) || (t == DTYPE_bool && term->kind == TERM_INTEGER &&
                                   is_condition(term->expr));
}

/* Checks that a constant of a type stands beside a tensor of that type. */
static bool check_dtype(Parser *p, const Term *t, const Type *like)
{
    return !t->dtype || t->dtype == like->dtype ||
           diag_error(p->diag, t->loc, "%s beside a tensor of %s: cast one, as in %s(..)",
                      term_text(p, t), dtype_name(like->dtype), dtype_name(like->dtype));
}

/* The scalar that stands where one is wanted, or where no type is: 0 for -0, and 5 for i8(5) beside a
 * scalar. */
static Term as_scalar_of(Parser *p, const Term *t, const Type *like)
{
    bool scalar = like ? like->kind == TYPE_SCALAR : !t->dtype;
    return scalar ? term_as_scalar(p, t) : *t;
}

Value *term_value(Parser *p, const Term *t, const Type *like)
{
    Constant n;
    Term out;
    if (t->kind == TERM_VALUE)
        return t->value;
    if (like && like->kind == TYPE_REG && term_constant(t, &n))
        return check_dtype(p, t, like) && build_constant(p, t->loc, n, like, &out) ? out.value
                                                                                   : NULL;
    if (like && like->kind == TYPE_REG && t->kind == TERM_REAL)
        return real_value(p, t->loc, t->real, like);
    if (!like && t->kind == TERM_REAL && real_argument(t->real))
        return real_argument(t->real);
    if (like && like->kind == TYPE_REG && fills(t, like->dtype))
        return integer_value(p, t->loc, t->expr, like);
    Term scalar = as_scalar_of(p, t, like);
    if (scalar.kind == TERM_INTEGER && (!like || like->kind == TYPE_SCALAR))
        return build_scalar(p, &scalar, like);
    report_no_value(p, t, like);
    return NULL;
}

const Type *parse_term_type(Parser *p, const Term *t)
{
    bool integer = as_scalar_of(p, t, NULL).kind == TERM_INTEGER;
    bool scalar = integer && (parser_at(p, "i32") || parser_at(p, "u32") || parser_at(p, "i64")) &&
                  !parser_before(p, "[");
    return parse_type(p, scalar ? TYPE_SCALAR : TYPE_REG);
}

bool term_check_type(Parser *p, const Term *t, Value *v, const Type *type)
{
    if (!type || v->type == type)
        return true;
    const Type *open = v->type->kind == TYPE_REG && type->kind == TYPE_REG && type->layout
                           ? type_with_layout(p->m, type, NULL) : NULL;
    if (open != v->type || v->name)
        return diag_error(p->diag, t->loc, "the expression is %s, not %s",
                          type_text(p->m, v->type), type_text(p->m, type));
    v->type = type;
    return true;
}

bool parse_typed_term(Parser *p, Term *out)
{
    const Type *type;
    if (!parse_term(p, PRECEDENCE_ANY, out))
        return false;
    if (!parser_accept(p, ":"))
        return true;
    if (!(type = parse_term_type(p, out)))
        return false;
    Value *v = term_value(p, out, type);
    if (!v || !term_check_type(p, out, v, type))
        return false;
    *out = term_of_any(p, out->loc, v);
    return true;
}

/* The shape that operands have together, and a type that has all of it, or NULL. */
typedef struct Shape {
    unsigned rank;
    const Expr *extents[LIMIT_RANK];
    const Type *first;      /* of the first operand that is a tensor */
    const Type *typed;      /* of the first one of the element type of all; NULL: none yet */
    const Type *full;
} Shape;

static bool extents_equal(const Shape *s, const Type *t)
{
    for (unsigned d = 0; d < s->rank; d++)
        if (s->extents[d] != t->extents[d])
            return false;
    return true;
}

static bool grow_shape(Parser *p, Loc loc, OpCode code, Shape *s, const Type *t)
{
    bool fits = t->rank == s->rank;
    for (unsigned d = 0; fits && d < s->rank; d++) {
        if (type_extent(t, d) != 1 && s->extents[d]->constant != 1)
            fits = t->extents[d] == s->extents[d];
        else if (s->extents[d]->constant == 1)
            s->extents[d] = t->extents[d];
    }
    return fits || diag_error(p->diag, loc, "%s of %s and %s: extents must be equal, or 1",
                              op_info[code].name, type_text(p->m, s->first), type_text(p->m, t));
}

/* Joins the extents of the register tensor `term` with those before it. */
static bool add_extents(Parser *p, OpCode code, Loc loc, const Term *term, Shape *s)
{
    const Type *t = term->value->type;
    if (t->kind != TYPE_REG)
        return diag_error(p->diag, term->loc, "%s takes register tensors, got %s",
                          op_info[code].name, term_text(p, term));
    if (s->first)
        return grow_shape(p, loc, code, s, t);
    s->first = t;
    s->rank = t->rank;
    for (unsigned d = 0; d < t->rank; d++)
        s->extents[d] = t->extents[d];
    return true;
}

/* Checks the element type of an operand against those before it. */
static bool add_dtype(Parser *p, OpCode code, Loc loc, const Type *t, Shape *s)
{
    if (!s->typed)
        s->typed = t;
    return s->typed->dtype == t->dtype ||
           diag_error(p->diag, loc, "%s of %s and %s: cast one, as in %s(..)", op_info[code].name,
                      dtype_name(s->typed->dtype), dtype_name(t->dtype),
                      dtype_name(s->typed->dtype));
}

/* Finds the shape of the register tensors among `terms`. */
static bool find_shape(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count,
                       Shape *s)
{
    unsigned values = code == OP_select;    /* the first operand of the result's type */
    *s = (Shape){0};
    for (unsigned i = 0; i < count; i++)
        if (terms[i].kind == TERM_VALUE &&
            (!add_extents(p, code, loc, &terms[i], s) ||
             (i >= values && !add_dtype(p, code, loc, terms[i].value->type, s))))
            return false;
    if (!s->typed)
        return diag_error(p->diag, loc, "%s needs a tensor, got %s", op_info[code].name,
                          term_text(p, &terms[count - 1]));
    for (unsigned i = 0; i < count && !s->full; i++)
        if (is_register(&terms[i]) && extents_equal(s, terms[i].value->type))
            s->full = terms[i].value->type;
    return true;
}

/* The type of an operand of the whole shape. */
static const Type *shape_type(Parser *p, const Shape *s, DType dtype)
{
    return s->full && s->full->layout ? type_reg(p->m, dtype, s->full->layout)
                                      : type_reg_open(p->m, dtype, s->rank, s->extents);
}

static Value *unify_operand(Parser *p, const Term *t, const Shape *s, DType dtype)
{
    Term out;
    if (t->kind != TERM_VALUE)
        return term_value(p, t, shape_type(p, s, dtype));
    if (extents_equal(s, t->value->type))
        return t->value;
    return term_build(p, OP_broadcast, t->loc, &t->value, 1, NULL, 0,
                      shape_type(p, s, t->value->type->dtype), &out)
               ? out.value
               : NULL;
}

bool term_unify(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count,
                Value **operands)
{
    Shape s;
    if (!find_shape(p, code, loc, terms, count, &s))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!(operands[i] = unify_operand(p, &terms[i], &s,
                                          code == OP_select && !i ? DTYPE_bool : s.typed->dtype)))
            return false;
    return true;
}

/* ---- contraction ------------------------------------------------------------ */

static bool has_fma(DType t)
{
    return t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32 || t == DTYPE_f64;
}

/* Returns the one of two operands of a sum or difference that is a product of the whole shape,
 * where the program allows contraction; of two products the first. 2: none. */
static unsigned contracted_operand(const Parser *p, OpCode code, const Term *terms,
                                   Value *const *operands)
{
    unsigned i = 0;
    bool sums = code == OP_add || code == OP_sub;
    if (!sums || !p->program || !p->program->contract || !has_fma(operands[0]->type->dtype))
        return 2;
    while (i < 2 && !(terms[i].product && operands[i] == terms[i].value))
        i++;
    return i;
}

static bool negate_operand(Parser *p, Loc loc, Value **v)
{
    Term out;
    if (!term_build(p, OP_neg, loc, v, 1, NULL, 0, (*v)->type, &out))
        return false;
    *v = out.value;
    return true;
}

/* Builds the fma of a sum or difference whose operand `at` is a product, which goes:
 *
 *     a * b + c, c + a * b    fma(a, b, c)
 *     a * b - c               fma(a, b, -c)
 *     c - a * b               fma(-a, b, c)          */
static bool build_contracted(Parser *p, OpCode code, Loc loc, unsigned at, Value *const *operands,
                             Term *out)
{
    Op *mul = operands[at]->def;
    Value *factors[] = {mul->operands[0], mul->operands[1], operands[1 - at]};
    op_remove(mul);
    return (code == OP_add || negate_operand(p, loc, &factors[at ? 0 : 2])) &&
           term_build(p, OP_fma, loc, factors, 3, NULL, 0, factors[2]->type, out);
}

static bool combine_tensors(Parser *p, OpCode code, Predicate predicate, Loc loc,
                            const Term *terms, unsigned count, Term *out)
{
    Value *operands[OPERANDS_MAX];
    Attr attr = {.kind = ATTR_PREDICATE, .word = predicate};
    bool compares = code == OP_compare, tensors = false;
    for (unsigned i = 0; i < count; i++)
        tensors |= terms[i].kind == TERM_VALUE;
    if (!tensors)
        return real_combine(p, code, loc, terms, count, out);
    if (!term_unify(p, code, loc, terms, count, operands))
        return false;
    unsigned at = contracted_operand(p, code, terms, operands);
    if (at < 2)
        return build_contracted(p, code, loc, at, operands, out);
    const Type *t = operands[count - 1]->type;
    bool ok = term_build(p, code, loc, operands, count, &attr, compares,
                         compares ? type_like(p->m, t, DTYPE_bool) : t, out);
    out->product = ok && code == OP_mul;
    return ok;
}

bool term_elementwise(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count,
                      Term *out)
{
    return combine_tensors(p, code, PREDICATE_NONE, loc, terms, count, out);
}

/* ---- operators of both --------------------------------------------------- */

Term term_as_scalar(Parser *p, const Term *t)
{
    const Constant *n = &t->number;
    uint64_t most = (uint64_t)INT64_MAX + n->negative;
    bool integer = t->kind == TERM_NUMBER &&
                   (t->dtype ? !dtype_is_float(t->dtype) && n->magnitude <= most
                             : t->whole && !n->magnitude);
    if (!integer)
        return *t;
    uint64_t value = n->negative ? 0 - n->magnitude : n->magnitude;
    return term_of_expr(t->loc, expr_constant(&p->m->exprs, (int64_t)value));
}

/* Returns true of a scalar of floats, a constant too. */
static bool is_real(const Term *t)
{
    return t->kind == TERM_REAL || (t->kind == TERM_NUMBER && dtype_is_float(t->dtype));
}

bool term_combine(Parser *p, const Operator *o, Loc loc, Term *a, const Term *b)
{
    Constant x = {0}, y = {0};
    bool constant = term_constant(a, &x) && term_constant(b, &y);
    if (constant && (a->dtype || b->dtype))
        return typed_combine(p, o, loc, a, b);
    Term left = term_as_scalar(p, a), scalar = term_as_scalar(p, b);
    if (left.kind == TERM_INTEGER && scalar.kind == TERM_INTEGER) {
        *a = left;
        return o->shift ? shift_expr(p, o, loc, a, scalar.expr)
                        : combine_expr(p, o->scalar, o->spelling, loc, a, scalar.expr);
    }
    if (constant)
        return combine_numbers(p, o, loc, a, b, constant_double(x), constant_double(y));
    bool scalars = a->kind < TERM_REAL && b->kind < TERM_REAL && !is_real(a) && !is_real(b);
    if (o->tensor == OP_COUNT || scalars)
        return diag_error(p->diag, loc, "`%s` of %s and %s", o->spelling, term_text(p, a),
                          term_text(p, b));
    return combine_tensors(p, o->tensor, o->predicate, loc, (Term[]){*a, *b}, 2, a);
}

bool term_negate(Parser *p, Loc loc, Term *a)
{
    if (a->kind == TERM_INTEGER)
        return combine_expr(p, SCALAR_neg, "-", loc, a, NULL);
    if (a->kind >= TERM_REAL)
        return combine_tensors(p, OP_neg, PREDICATE_NONE, loc, a, 1, a);
    if (a->dtype)
        return typed_negate(p, loc, a);
    a->number = constant_negate(a->number);
    return true;
}

bool term_not(Parser *p, Loc loc, Term *a)
{
    *a = term_as_scalar(p, a);
    if (a->kind == TERM_INTEGER)
        return combine_expr(p, SCALAR_not, "not", loc, a, NULL);
    if (a->kind == TERM_VALUE)
        return combine_tensors(p, OP_not, PREDICATE_NONE, loc, a, 1, a);
    return diag_error(p->diag, loc, "`not` takes integers or tensors, got %s", term_text(p, a));
}
