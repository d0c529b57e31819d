/* Parsing of expressions, of scalars and of tensors, by precedence climbing. */
#include "syntax/term.h"

#include "ir/text.h"
#include "ir/verify.h"

#include <math.h>
#include <string.h>

enum { CALL_TERMS = 1 + LIMIT_RANK };    /* of an operator, cast or reduction in call form */

/* ---- leaves ------------------------------------------------------------- */

/* bits(T): the width of a type. */
static bool parse_bits(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    parser_advance(p);
    if (!parser_expect(p, "(", "after `bits`"))
        return false;
    DType t = parse_dtype(p);
    if (!t || !parser_expect(p, ")", "after the type"))
        return false;
    *out = term_of_expr(loc, expr_constant(&p->m->exprs, dtype_bits(t)));
    return true;
}

/* Reads on after a parenthesis that held the first operand alone: add (%a), %b. */
static bool parse_more_terms(Parser *p, unsigned wanted, Term *terms, unsigned *count)
{
    if (*count != 1 || wanted == 1 || !parser_at_more(p))
        return true;
    if (!parse_term_rest(p, PRECEDENCE_ANY, &terms[0]))
        return false;
    while (*count < wanted && parser_accept(p, ","))
        if (!parse_term(p, PRECEDENCE_ANY, &terms[(*count)++]))
            return false;
    return true;
}

/* Takes the name and the operands of a call, `wanted` of them. */
static bool parse_call_terms(Parser *p, unsigned wanted, Term *terms)
{
    Token name = p->token;
    unsigned count;
    parser_advance(p);
    bool touches = parser_touches(p);
    if (!parse_terms(p, terms, CALL_TERMS, &count) ||
        (!touches && !parse_more_terms(p, wanted, terms, &count)))
        return false;
    return count == wanted || diag_error(p->diag, name.loc, "%s takes %u operand%s, got %u",
                                         token_text(p, &name), wanted, wanted == 1 ? "" : "s",
                                         count);
}

/* min(a, b), max(a, b) and ceil_div(a, b). */
static bool parse_operator_call(Parser *p, const Operator *o, Term *out)
{
    Loc loc = p->token.loc;
    Term terms[CALL_TERMS];
    if (!parse_call_terms(p, 2, terms))
        return false;
    *out = terms[0];
    return term_combine(p, o, loc, out, &terms[1]);
}

/* An element-wise op in call form, of a tensor or of scalars of floats. */
static bool parse_elementwise_call(Parser *p, OpCode code, Term *out)
{
    Loc loc = p->token.loc;
    Term terms[CALL_TERMS];
    unsigned count = (unsigned)op_info[code].operand_count;
    return parse_call_terms(p, count, terms) &&
           term_elementwise(p, code, loc, terms, count, out);
}

/* log2(N) of a constant power of two, or the op. */
static bool parse_log2(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    Term terms[CALL_TERMS];
    if (!parse_call_terms(p, 1, terms))
        return false;
    if (terms[0].kind >= TERM_REAL)
        return term_elementwise(p, OP_log2, loc, terms, 1, out);
    int64_t n = terms[0].kind == TERM_INTEGER && expr_is_constant(terms[0].expr)
                    ? terms[0].expr->constant : 0;
    *out = terms[0];
    if (n < 1 || n & (n - 1))
        return term_undefined(p, loc, out, arena_printf(&p->m->arena, "`log2` takes a tensor or a "
                                                        "constant power of 2, got %s",
                                                        term_text(p, out)));
    *out = term_of_expr(loc, expr_constant(&p->m->exprs, __builtin_ctzll((uint64_t)n)));
    return true;
}

static bool parse_value_leaf(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    Value *v = parse_value_use(p);
    if (!v || !v->type)
        return false;
    *out = term_of_any(p, loc, v);
    return true;
}

/* T(n): a constant gives one of that type. */
static bool cast_scalar(Parser *p, Loc loc, const Term *n, DType t, Term *out)
{
    Constant constant;
    if (term_constant(n, &constant)) {
        *out = term_of_typed(loc, t, constant);
        return true;
    }
    if (!dtype_is_float(t))
        return diag_error(p->diag, loc, "a scalar is cast to floats, got %s", dtype_name(t));
    *out = term_of_cast(p, loc, n->expr, t);
    return true;
}

/* T(x): a cast of a tensor or of a scalar. */
static bool parse_cast_call(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    Term terms[CALL_TERMS];
    unsigned count;
    bool bare = parser_at_bare_type(p);
    DType t = parse_dtype(p);
    if (t && bare)
        return diag_error(p->diag, loc, "%s is a type: an expression has a cast, %s(..)",
                          dtype_name(t), dtype_name(t));
    if (!t || !parse_terms(p, terms, CALL_TERMS, &count))
        return false;
    if (count != 1)
        return diag_error(p->diag, loc, "a cast takes 1 operand, got %u", count);
    Value *v = terms[0].value;
    if (terms[0].kind == TERM_NUMBER || terms[0].kind == TERM_INTEGER)
        return cast_scalar(p, loc, &terms[0], t, out);
    if (terms[0].kind != TERM_VALUE || v->type->kind != TYPE_REG)
        return diag_error(p->diag, loc, "a cast takes a register tensor, got %s",
                          term_text(p, &terms[0]));
    return term_build(p, OP_cast, loc, &v, 1, NULL, 0, type_like(p->m, v->type, t), out);
}

/* The kind that sum(..) or reduce_max(..) names at the token, or the number of kinds. */
static unsigned reduction_kind(Parser *p)
{
    static const char prefix[] = "reduce_";
    size_t skip = sizeof prefix - 1;
    if (!parser_at_call(p) || parser_at(p, "sum"))
        return parser_at(p, "sum") && parser_at_call(p) ? attr_word_find(ATTR_KIND, "sum")
                                                       : attr_info[ATTR_KIND].word_count;
    if (p->token.len <= skip || memcmp(p->token.start, prefix, skip))
        return attr_info[ATTR_KIND].word_count;
    return attr_word_find(ATTR_KIND, arena_strndup(&p->m->arena, p->token.start + skip,
                                                   p->token.len - skip));
}

/* The dimensions after the tensor; without any, all of them. */
static bool reduction_dims(Parser *p, const Term *terms, unsigned count, unsigned rank,
                           int64_t *dims, unsigned *dim_count)
{
    *dim_count = count > 1 ? count - 1 : rank;
    for (unsigned i = 0; i < *dim_count; i++) {
        dims[i] = i;
        if (count == 1)
            continue;
        const Term *t = &terms[i + 1];
        if (t->kind != TERM_INTEGER || !expr_is_constant(t->expr))
            return diag_error(p->diag, t->loc, "a dimension is a constant, got %s",
                              term_text(p, t));
        dims[i] = t->expr->constant;
    }
    return true;
}

/* sum(x, 1) is reduce x {kind = sum, dims = [1]}. */
static bool parse_reduction(Parser *p, unsigned kind, Term *out)
{
    Loc loc = p->token.loc;
    Term terms[CALL_TERMS];
    int64_t dims[LIMIT_RANK];
    unsigned count, dim_count;
    parser_advance(p);
    if (!parse_terms(p, terms, CALL_TERMS, &count))
        return false;
    Value *v = count ? terms[0].value : NULL;
    if (!count || terms[0].kind != TERM_VALUE || v->type->kind != TYPE_REG)
        return diag_error(p->diag, loc, "a reduction takes a register tensor, got %s",
                          count ? term_text(p, &terms[0]) : "nothing");
    if (!reduction_dims(p, terms, count, v->type->rank, dims, &dim_count))
        return false;
    Attr attrs[] = {{.kind = ATTR_KIND, .word = kind},
                    {.kind = ATTR_DIMS, .count = dim_count,
                     .ints = arena_copy(&p->m->arena, dims, dim_count * sizeof *dims)}};
    const Type *t = verify_reduce_type(p->m, build_op(p->m, OP_reduce, loc, &v, 1, attrs, 2));
    return t && term_build(p, OP_reduce, loc, &v, 1, attrs, 2, t, out);
}

/* A parameter, an operator or op in call form, a cast, or an op with its operands. */
static bool parse_name_leaf(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    const Operator *o = term_call_operator(p);
    if (o)
        return parse_operator_call(p, o, out);
    if (parser_at(p, "bits"))
        return parse_bits(p, out);
    if (parser_at(p, "log2") && parser_at_call(p))
        return parse_log2(p, out);
    OpCode code = op_find(p->token.start, p->token.len);
    if (code != OP_COUNT && code != OP_compare && op_is_elementwise(code) && parser_at_call(p))
        return parse_elementwise_call(p, code, out);
    const Symbol *s = parser_symbol(p, &p->token);
    BindingKind binding = symbol_binding(p, s);
    if (binding == BINDING_TYPE || dtype_find(p->token.start, p->token.len) != DTYPE_none)
        return parse_cast_call(p, out);
    if (binding == BINDING_INTEGER)
        *out = term_of_expr(loc, expr_constant(&p->m->exprs, s->integer));
    else if (binding == BINDING_NUMBER)
        *out = (Term){.kind = TERM_NUMBER, .loc = loc, .number = s->number, .whole = s->whole,
                      .dtype = s->dtype};
    else if (reduction_kind(p) < attr_info[ATTR_KIND].word_count)
        return parse_reduction(p, reduction_kind(p), out);
    else if (parser_at(p, "inf") || parser_at(p, "nan"))
        *out = term_of_number(loc, constant_of_real(parser_at(p, "inf") ? INFINITY : NAN));
    else
        return parse_op_leaf(p, out);
    parser_advance(p);
    return true;
}

static bool parse_integer(Parser *p, Term *out)
{
    uint64_t magnitude = p->token.integer;
    *out = magnitude > INT64_MAX
               ? term_of_whole(p->token.loc, constant_of_magnitude(false, magnitude))
               : term_of_expr(p->token.loc, expr_constant(&p->m->exprs, (int64_t)magnitude));
    parser_advance(p);
    return true;
}

/* -N, of which -2^63 and -0 have no positive scalar. */
static bool parse_negative_integer(Parser *p, Loc loc, Term *out)
{
    Constant n = constant_negate(constant_of_magnitude(false, p->token.integer));
    bool scalar = n.magnitude && n.magnitude <= (uint64_t)INT64_MAX + 1;
    *out = scalar ? term_of_expr(loc, expr_constant(&p->m->exprs, (int64_t)(0 - n.magnitude)))
                  : term_of_whole(loc, n);
    parser_advance(p);
    return true;
}

static bool parse_unary(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    bool negates = parser_at(p, "-");
    parser_advance(p);
    if (negates && p->token.kind == TOKEN_INTEGER)
        return parse_negative_integer(p, loc, out);
    if (!parse_term(p, scalar_op_info[negates ? SCALAR_neg : SCALAR_not].precedence, out))
        return false;
    return negates ? term_negate(p, loc, out) : term_not(p, loc, out);
}

/* An operand of an operator of `precedence`, or of none. */
static bool parse_leaf(Parser *p, unsigned precedence, Term *out)
{
    if (p->token.kind == TOKEN_INTEGER)
        return parse_integer(p, out);
    if (p->token.kind == TOKEN_VALUE)
        return parse_value_leaf(p, out);
    if (p->token.kind == TOKEN_NUMBER) {
        *out = term_of_number(p->token.loc, constant_of_real(p->token.number));
        parser_advance(p);
        return true;
    }
    if (parser_at(p, "not") && precedence > scalar_op_info[SCALAR_not].precedence)
        return diag_error(p->diag, p->token.loc, "`not` needs parentheses after an operator that "
                          "binds more tightly");
    if (parser_at(p, "-") || parser_at(p, "not"))
        return parse_unary(p, out);
    if (p->token.kind == TOKEN_NAME)
        return parse_name_leaf(p, out);
    if (parser_at(p, "@"))
        return parse_call_leaf(p, out);
    if (parser_accept(p, "("))
        return parse_typed_term(p, out) && parser_expect(p, ")", "after the expression");
    return parser_expected(p, "an expression");
}

/* ---- operators ------------------------------------------------------------ */

bool parser_check_angle(Parser *p)
{
    return !parser_at(p, "not") ||
           diag_error(p->diag, p->token.loc, "`not` needs parentheses between `<` and `>`");
}

bool parser_at_infix(const Parser *p)
{
    return term_operator(p) || parser_at(p, "?");
}

bool parser_at_more(const Parser *p)
{
    return parser_at(p, ",") || parser_at_infix(p);
}

/* A leaf that is in parentheses or has an operator before it nests. Operands to the
 * right of operators do not: each binds more tightly than the one before. */
static bool parse_nested_leaf(Parser *p, unsigned precedence, Term *out)
{
    if (!parser_enter(p, &p->nesting))
        return false;
    bool ok = parse_leaf(p, precedence, out);
    p->nesting--;
    return ok;
}

/* Reports 0 <= %i < %n, which would compare the 0 or 1 of the first comparison. */
static bool check_no_chain(Parser *p, const Operator *before, const Operator *o)
{
    return !before || before->predicate == PREDICATE_NONE || o->predicate == PREDICATE_NONE ||
           diag_error(p->diag, p->token.loc, "comparisons do not chain: `and` joins two, as in "
                      "`0 <= %%i and %%i < 8`; the 0 or 1 of one is compared in parentheses");
}

static bool parse_infix(Parser *p, unsigned precedence, Term *a)
{
    const Operator *before = NULL;
    for (const Operator *o; (o = term_operator(p)) != NULL; before = o) {
        Term b;
        if (operator_precedence(o) < precedence)
            break;
        if (!check_no_chain(p, before, o))
            return false;
        Loc loc = p->token.loc;
        parser_advance(p);
        if (!parse_term(p, operator_precedence(o) + 1, &b) || !term_combine(p, o, loc, a, &b))
            return false;
    }
    return true;
}

bool parse_term_rest(Parser *p, unsigned precedence, Term *a)
{
    if (!parse_infix(p, precedence, a))
        return false;
    return precedence != PRECEDENCE_ANY || !parser_at(p, "?") || parse_choice(p, a);
}

bool parse_term(Parser *p, unsigned precedence, Term *out)
{
    return parse_nested_leaf(p, precedence, out) && parse_term_rest(p, precedence, out);
}

bool parse_terms(Parser *p, Term *terms, unsigned capacity, unsigned *count)
{
    *count = 0;
    if (!parser_expect(p, "(", "before the operands"))
        return false;
    if (parser_accept(p, ")"))
        return true;
    do {
        if (*count == capacity)
            return diag_error(p->diag, p->token.loc, "more than %u operands", capacity);
        if (!parse_typed_term(p, &terms[*count]))
            return false;
        ++*count;
    } while (parser_accept(p, ","));
    return parser_expect(p, ")", "after the operands");
}

/* ---- scalars ---------------------------------------------------------------- */

const Expr *term_scalar(Parser *p, const Term *t)
{
    Term scalar = term_as_scalar(p, t);
    if (scalar.kind == TERM_INTEGER)
        return scalar.expr;
    if (t->whole)
        diag_error(p->diag, t->loc, "integer %s%llu is over 64 bits", t->number.negative ? "-" : "",
                   (unsigned long long)t->number.magnitude);
    else if (t->kind == TERM_REAL)
        diag_error(p->diag, t->loc, "%s is %s, expressions are of integers: `splat` makes a "
                   "tensor of it", real_text(p, t->real), dtype_name(real_dtype(t->real)));
    else if (t->kind == TERM_VALUE && t->value->name)
        diag_error(p->diag, t->loc, "%%%s is %s, not a scalar", t->value->name,
                   type_text(p->m, t->value->type));
    else
        diag_error(p->diag, t->loc, "expected an integer, got %s", term_text(p, t));
    return NULL;
}

const Expr *parse_expr(Parser *p, unsigned precedence)
{
    Term t;
    return parse_term(p, precedence, &t) ? term_scalar(p, &t) : NULL;
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
    if (parser_accept(p, close))
        return true;
    do {
        if (*count == LIMIT_RANK)
            return diag_error(p->diag, p->token.loc, "a list of more than %d entries", LIMIT_RANK);
        if (!(exprs[*count] = parse_expr(p, PRECEDENCE_ANY)))
            return false;
        ++*count;
    } while (parser_accept(p, ","));
    return parser_expect(p, close, "after the list");
}

bool parse_constant_list(Parser *p, const char *open, const char *close, const char *what,
                         int64_t *values, unsigned capacity, unsigned *count)
{
    *count = 0;
    if (!parser_expect(p, open, "before the list"))
        return false;
    if (parser_accept(p, close))
        return true;
    do {
        if (*count == capacity)
            return diag_error(p->diag, p->token.loc, "a list of more than %u entries", capacity);
        if (!parse_constant(p, what, &values[*count]))
            return false;
        ++*count;
    } while (parser_accept(p, ","));
    return parser_expect(p, close, "after the list");
}
