/* Parsing of scalar expressions, by precedence climbing over scalar_ops.def. */
#include "syntax/parser.h"

#include <string.h>

static const Expr *combine(Parser *p, ScalarOp op, Loc loc, const Expr *a, const Expr *b)
{
    const char *why;
    const Expr *e = expr_make(&p->m->exprs, op, a, b, &why);
    if (!e)
        diag_error(p->diag, loc, "`%s` gives %s", scalar_op_info[op].spelling, why);
    return e;
}

/* bits(T): the width of a type. */
static const Expr *parse_bits(Parser *p)
{
    parser_advance(p);
    if (!parser_expect(p, "(", "after `bits`"))
        return NULL;
    DType t = parse_dtype(p);
    if (!t || !parser_expect(p, ")", "after the type"))
        return NULL;
    return expr_constant(&p->m->exprs, dtype_bits(t));
}

/* ceil_div(a, b) and the other operators in call form. */
static const Expr *parse_call(Parser *p, ScalarOp op)
{
    Loc loc = p->token.loc;
    const Expr *args[LIMIT_RANK];
    unsigned count;
    parser_advance(p);
    if (!parse_expr_list(p, "(", ")", args, &count))
        return NULL;
    if (count != 2) {
        diag_error(p->diag, loc, "`%s` takes 2 operands, got %u", scalar_op_info[op].spelling,
                   count);
        return NULL;
    }
    return combine(p, op, loc, args[0], args[1]);
}

/* A scalar of integers: expressions have no others. */
static const Expr *integer_leaf(Parser *p, Loc loc, Value *v)
{
    if (!dtype_is_float(v->type->dtype))
        return expr_value(&p->m->exprs, v);
    diag_error(p->diag, loc, "%%%s is %s, expressions are of integers: `splat` makes a tensor "
               "of it", v->name, dtype_name(v->type->dtype));
    return NULL;
}

static const Expr *parse_value_leaf(Parser *p)
{
    Loc loc = p->token.loc;
    Value *v = parse_value_use(p);
    if (!v || !v->type)
        return NULL;
    if (v->type->kind == TYPE_SCALAR)
        return integer_leaf(p, loc, v);
    diag_error(p->diag, loc, "%%%s is %s, not a scalar", v->name, type_text(p->m, v->type));
    return NULL;
}

static const Expr *parse_name_leaf(Parser *p)
{
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++)
        if (!scalar_op_info[op].precedence && parser_at(p, scalar_op_info[op].spelling))
            return parse_call(p, op);
    if (parser_at(p, "bits"))
        return parse_bits(p);
    Symbol *s = parser_symbol(p, &p->token);
    if (s->binding != BINDING_INTEGER) {
        diag_error(p->diag, p->token.loc, "%s is not an integer parameter",
                   token_text(p, &p->token));
        return NULL;
    }
    parser_advance(p);
    return expr_constant(&p->m->exprs, s->integer);
}

static const Expr *parse_integer(Parser *p, bool negative)
{
    uint64_t magnitude = p->token.integer, limit = (uint64_t)INT64_MAX + negative;
    if (magnitude > limit) {
        diag_error(p->diag, p->token.loc, "integer %s%llu is over 64 bits", negative ? "-" : "",
                   (unsigned long long)magnitude);
        return NULL;
    }
    parser_advance(p);
    return expr_constant(&p->m->exprs, (int64_t)(negative ? 0 - magnitude : magnitude));
}

static const Expr *parse_unary(Parser *p)
{
    Loc loc = p->token.loc;
    ScalarOp op = parser_at(p, "-") ? SCALAR_neg : SCALAR_not;
    parser_advance(p);
    if (op == SCALAR_neg && p->token.kind == TOKEN_INTEGER)
        return parse_integer(p, true);
    const Expr *a = parse_expr(p, scalar_op_info[op].precedence);
    return a ? combine(p, op, loc, a, NULL) : NULL;
}

/* An operand of an operator of `precedence`, or of none. */
static const Expr *parse_leaf(Parser *p, unsigned precedence)
{
    if (p->token.kind == TOKEN_INTEGER)
        return parse_integer(p, false);
    if (p->token.kind == TOKEN_VALUE)
        return parse_value_leaf(p);
    if (parser_at(p, "not") && precedence > scalar_op_info[SCALAR_not].precedence) {
        diag_error(p->diag, p->token.loc, "`not` needs parentheses after an operator that "
                   "binds more tightly");
        return NULL;
    }
    if (parser_at(p, "-") || parser_at(p, "not"))
        return parse_unary(p);
    if (p->token.kind == TOKEN_NAME)
        return parse_name_leaf(p);
    if (parser_accept(p, "(")) {
        const Expr *e = parse_expr(p, PRECEDENCE_ANY);
        return e && parser_expect(p, ")", "after the expression") ? e : NULL;
    }
    parser_expected(p, "an expression");
    return NULL;
}

/* The infix operator at the token, or SCALAR_OP_COUNT. */
static ScalarOp infix_operator(const Parser *p)
{
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++) {
        const ScalarOpInfo *info = &scalar_op_info[op];
        if (info->precedence && info->operands == 2 && parser_at(p, info->spelling))
            return op;
    }
    return SCALAR_OP_COUNT;
}

bool parser_at_infix(const Parser *p)
{
    return infix_operator(p) != SCALAR_OP_COUNT;
}

/* A leaf that is in parentheses or has an operator before it nests. Operands to the
 * right of operators do not: each binds more tightly than the one before. */
static const Expr *parse_nested_leaf(Parser *p, unsigned precedence)
{
    if (!parser_enter(p, &p->nesting))
        return NULL;
    const Expr *e = parse_leaf(p, precedence);
    p->nesting--;
    return e;
}

const Expr *parse_expr(Parser *p, unsigned precedence)
{
    const Expr *a = parse_nested_leaf(p, precedence);
    for (ScalarOp op; a && (op = infix_operator(p)) != SCALAR_OP_COUNT;) {
        if (scalar_op_info[op].precedence < precedence)
            break;
        Loc loc = p->token.loc;
        parser_advance(p);
        const Expr *b = parse_expr(p, scalar_op_info[op].precedence + 1);
        a = b ? combine(p, op, loc, a, b) : NULL;
    }
    return a;
}

bool parse_constant(Parser *p, const char *what, int64_t *out)
{
    Loc loc = p->token.loc;
    const Expr *e = parse_expr(p, PRECEDENCE_ANY);
    if (!e)
        return false;
    if (!expr_is_constant(e))
        return diag_error(p->diag, loc, "%s must be a constant, got %s", what,
                          expr_text(p->m, e));
    *out = e->constant;
    return true;
}

bool parse_expr_list(Parser *p, const char *open, const char *close,
                     const Expr **exprs, unsigned *count)
{
    *count = 0;
    if (!parser_expect(p, open, "before the list"))
        return false;
    while (!parser_at(p, close)) {
        if (*count == LIMIT_RANK)
            return diag_error(p->diag, p->token.loc, "a list of more than %d entries", LIMIT_RANK);
        if (!(exprs[*count] = parse_expr(p, PRECEDENCE_ANY)))
            return false;
        ++*count;
        if (!parser_accept(p, ","))
            break;
    }
    return parser_expect(p, close, "after the list");
}

bool parse_constant_list(Parser *p, const char *open, const char *close, const char *what,
                         int64_t *values, unsigned capacity, unsigned *count)
{
    *count = 0;
    if (!parser_expect(p, open, "before the list"))
        return false;
    while (!parser_at(p, close)) {
        if (*count == capacity)
            return diag_error(p->diag, p->token.loc, "a list of more than %u entries", capacity);
        if (!parse_constant(p, what, &values[*count]))
            return false;
        ++*count;
        if (!parser_accept(p, ","))
            break;
    }
    return parser_expect(p, close, "after the list");
}
