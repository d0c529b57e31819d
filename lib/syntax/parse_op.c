/* Parsing of ops by their rows in ops.def: names of results, operands, attributes,
 * types. */
#include "ir/part.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support/nearest.h"
#include "syntax/statement.h"
#include "syntax/term.h"

#include <stdio.h>
#include <string.h>

static const Attr *find_attr(const Statement *s, AttrKind kind)
{
    for (unsigned i = 0; i < s->attr_count; i++)
        if (s->attrs[i].kind == kind)
            return &s->attrs[i];
    return NULL;
}

static const void *keep(Parser *p, const void *items, size_t count, size_t size)
{
    return arena_copy(&p->m->arena, items, count * size);
}

/* ---- names and results ---------------------------------------------- */

bool parse_result_names(Parser *p, Statement *s)
{
    while (p->token.kind == TOKEN_VALUE) {
        if (s->name_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d results", LIMIT_NAMES);
        for (unsigned i = 0; i < s->name_count; i++)
            if (token_equal(&s->names[i], &p->token))
                return diag_error(p->diag, p->token.loc, "%s is defined twice",
                                  token_text(p, &p->token));
        s->names[s->name_count++] = p->token;
        parser_advance(p);
        if (!parser_accept(p, ","))
            return parser_expect(p, "=", "after the results");
    }
    return s->name_count == 0 || parser_expected(p, "the name of a result");
}

void define_broken(Parser *p, const Token *name)
{
    if (symbol_value(p, parser_symbol(p, name)))
        return;
    Value *v = arena_new(&p->m->arena, Value);
    v->loc = name->loc;
    parser_define(p, name, v, p->region, REBIND_REGION);
}

void define_broken_results(Parser *p, const Statement *s)
{
    for (unsigned i = 0; i < s->name_count; i++)
        define_broken(p, &s->names[i]);
}

/* Gives a value that an expression made the name; another one gets it as well. */
static bool bind_value(Parser *p, const Token *name, Value *v)
{
    if (!v->name) {
        v->name = parser_symbol(p, name)->name;
        v->loc = name->loc;
    }
    return parser_define(p, name, v, p->region, REBIND_REGION);
}

bool bind_term(Parser *p, Statement *s, const Term *t)
{
    const Type *type = NULL;
    if (s->name_count != 1)
        return diag_error(p->diag, s->loc, "an expression gives 1 result, %u names are bound",
                          s->name_count);
    if (parser_accept(p, ":") && !(type = parse_term_type(p, t)))
        return false;
    Value *v = term_value(p, t, type);
    return v && term_check_type(p, t, v, type) && bind_value(p, &s->names[0], v);
}

bool bind_terms(Parser *p, const Statement *s, const Sink *sink)
{
    if (s->name_count != sink->count)
        return diag_error(p->diag, s->loc, "%s gives %u result%s, %u name%s bound", sink->word,
                          sink->count, sink->count == 1 ? "" : "s", s->name_count,
                          s->name_count == 1 ? " is" : "s are");
    for (unsigned i = 0; i < sink->count; i++) {
        Value *v = term_value(p, &sink->terms[i], NULL);
        if (!v || !bind_value(p, &s->names[i], v))
            return false;
    }
    return true;
}

bool define_results(Parser *p, const Statement *s, Op *op)
{
    if (s->name_count != s->type_count)
        return diag_error(p->diag, s->loc, "%s gives %u result%s, %u name%s bound",
                          op_info[op->code].name, s->type_count, s->type_count == 1 ? "" : "s",
                          s->name_count, s->name_count == 1 ? " is" : "s are");
    bool ok = true;
    for (unsigned i = 0; i < s->type_count; i++) {
        const char *name = parser_symbol(p, &s->names[i])->name;
        Value *v = build_result(p->m, op, name, s->names[i].loc, s->types[i]);
        ok &= parser_define(p, &s->names[i], v, p->region, REBIND_REGION);
    }
    return ok;
}

/* ---- operands and attributes ---------------------------------------- */

/* A number of any kind, also a constant expression: 0.5, -inf, 0xffffffffffffffff, N - 1. */
static bool parse_number(Parser *p, Statement *s)
{
    Term t;
    Attr attr = {.kind = ATTR_INIT};
    if (!parse_term(p, PRECEDENCE_ANY, &t))
        return false;
    if (!term_constant(&t, &attr.number))
        return diag_error(p->diag, t.loc, "the number of allocate_register must be a constant, "
                          "got %s", term_text(p, &t));
    statement_add(s, attr);
    return true;
}

/* A text in quotes, as the attribute `kind`; `what` it is. */
static bool parse_text(Parser *p, Statement *s, AttrKind kind, const char *what)
{
    if (p->token.kind != TOKEN_TEXT)
        return parser_expected(p, what);
    statement_add(s, (Attr){.kind = kind, .text = arena_strndup(&p->m->arena, p->token.start,
                                                           p->token.len)});
    parser_advance(p);
    return true;
}

/* COND, or COND, "message" */
static bool parse_condition(Parser *p, Statement *s, uint64_t allowed)
{
    const Expr *cond = parse_expr(p, PRECEDENCE_ANY);
    if (!cond)
        return false;
    statement_add_expr(s, ATTR_COND, cond);
    if (!(allowed & op_attr_bit(ATTR_MESSAGE)) || !parser_accept(p, ","))
        return true;
    return parse_text(p, s, ATTR_MESSAGE, "a message in quotes");
}

/* Returns true when the token names a value that is no scalar, or none at all. */
static bool at_operand(Parser *p)
{
    if (p->token.kind != TOKEN_VALUE)
        return false;
    const Value *v = symbol_value(p, parser_symbol(p, &p->token));
    return !v || !v->type || v->type->kind != TYPE_SCALAR;
}

/* The scalar expression that `t` is, or an argument of floats, which stands alone. */
static const Expr *any_scalar(Parser *p, const Term *t)
{
    Value *v = t->kind == TERM_REAL ? real_argument(t->real) : NULL;
    return v ? expr_value(&p->m->exprs, v) : term_scalar(p, t);
}

static const Expr *parse_any_scalar(Parser *p)
{
    Term t;
    return parse_term(p, PRECEDENCE_ANY, &t) ? any_scalar(p, &t) : NULL;
}

/* "label", and what is printed: a scalar or a tensor that an expression gives, or an operand that
 * follows. */
static bool parse_label(Parser *p, Statement *s)
{
    Term t;
    if (!parse_text(p, s, ATTR_LABEL, "a label in quotes") ||
        !parser_expect(p, ",", "after the label"))
        return false;
    if (at_operand(p))
        return true;
    if (!parse_term(p, PRECEDENCE_ANY, &t))
        return false;
    if (t.kind == TERM_VALUE) {
        s->terms[s->operand_count++] = t;
        return true;
    }
    const Expr *value = any_scalar(p, &t);
    if (value)
        statement_add_expr(s, ATTR_VALUE, value);
    return value;
}

/* The number of `random`'s first element, after the seed. */
static bool parse_counter(Parser *p, Statement *s)
{
    const Expr *e = parser_expect(p, ",", "after the seed") ? parse_expr(p, PRECEDENCE_ANY) : NULL;
    if (e)
        statement_add_expr(s, ATTR_COUNTER, e);
    return e;
}

/* The expression of `scalar` and of ops that make tensors of scalars; `iota` may lack it. */
static bool parse_value(Parser *p, Statement *s, OpCode code)
{
    if (code == OP_iota && (parser_at(p, ":") || parser_at(p, "{")))
        return true;
    if (parser_at_statement(p))
        return parser_expected(p, "a scalar expression");
    const Expr *value = code == OP_splat ? parse_any_scalar(p) : parse_expr(p, PRECEDENCE_ANY);
    if (!value)
        return false;
    statement_add_expr(s, ATTR_VALUE, value);
    return !(op_info[code].attrs & op_attr_bit(ATTR_COUNTER)) || parse_counter(p, s);
}

/* The constant of copy_async_wait_group or setmaxnreg. */
static bool parse_count(Parser *p, Statement *s, OpCode code)
{
    if (parser_at_statement(p))
        return parser_expected(p, code == OP_setmaxnreg
                                      ? "the number of registers of a thread"
                                      : "the number of groups that may stay in flight");
    const Expr *number = parse_expr(p, PRECEDENCE_ANY);
    if (number)
        statement_add_expr(s, ATTR_NUMBER, number);
    return number;
}

/* The register tensor that says where elements lie in dimension `d`. */
static bool add_indexed(Parser *p, Statement *s, const Term *t, unsigned d)
{
    if (s->place)
        return diag_error(p->diag, t->loc, "one register tensor says where elements lie, got "
                          "%s and %s", value_text(p->m, s->place), term_text(p, t));
    s->place = t->value;
    statement_add(s, (Attr){.kind = ATTR_INDEXED, .integer = d});
    return true;
}

/* An offset: an expression or, where the op takes one, a register tensor, for which 0
 * stands. NULL after an error. */
static const Expr *parse_offset(Parser *p, Statement *s, bool indexed, unsigned d)
{
    Term t;
    if (!parse_term(p, PRECEDENCE_ANY, &t))
        return NULL;
    if (!indexed || t.kind != TERM_VALUE || t.value->type->kind != TYPE_REG)
        return term_scalar(p, &t);
    return add_indexed(p, s, &t, d) ? expr_constant(&p->m->exprs, 0) : NULL;
}

/* [offset, ..]. Of two tensors in memory, the first one's may hold a register tensor. */
static bool parse_offsets(Parser *p, Statement *s, AttrKind kind, uint64_t allowed)
{
    const Expr *offsets[LIMIT_RANK];
    unsigned count = 0;
    bool indexed = allowed & op_attr_bit(ATTR_INDEXED) &&
                   (kind == ATTR_SOURCE_OFFSETS || !find_attr(s, ATTR_SOURCE_OFFSETS));
    parser_advance(p);
    bool more = !parser_at(p, "]");
    while (more) {
        if (count == LIMIT_RANK)
            return diag_error(p->diag, p->token.loc, "a list of more than %d entries", LIMIT_RANK);
        if (!(offsets[count] = parse_offset(p, s, indexed, count)))
            return false;
        count++;
        more = parser_accept(p, ",");
    }
    statement_add(s, (Attr){.kind = kind, .count = count,
                       .exprs = keep(p, offsets, count, sizeof *offsets)});
    return parser_expect(p, "]", "after the list");
}

/* Returns true where a term can begin. */
static bool at_term(const Parser *p)
{
    const Token *t = &p->token;
    return t->kind == TOKEN_VALUE || t->kind == TOKEN_NAME || t->kind == TOKEN_INTEGER ||
           t->kind == TOKEN_NUMBER || token_is(t, "-") || token_is(t, "(") || token_is(t, "@");
}

/* The value of a semaphore, the phase of an mbarrier, or a pace's number, after the comma. */
static bool parse_state(Parser *p, Statement *s, const char *what)
{
    if (parser_at_statement(p))
        return parser_expected(p, what);
    const Expr *value = parse_expr(p, PRECEDENCE_ANY);
    if (value)
        statement_add_expr(s, ATTR_STATE, value);
    return value;
}

/* The index of an mbarrier, in brackets. */
static bool parse_element(Parser *p, Statement *s)
{
    parser_advance(p);
    const Expr *element = parse_expr(p, PRECEDENCE_ANY);
    if (element)
        statement_add_expr(s, ATTR_ELEMENT, element);
    return element && parser_expect(p, "]", "after the index of an mbarrier");
}

/* The offsets that may follow the operand just read. */
static AttrKind offsets_kind(const Statement *s, uint64_t allowed)
{
    return s->operand_count == 1 && allowed & op_attr_bit(ATTR_SOURCE_OFFSETS) ? ATTR_SOURCE_OFFSETS
                                                                        : ATTR_OFFSETS;
}

/* Reads brackets after an operand: offsets or the index of an mbarrier, each once. */
static bool parse_operand_place(Parser *p, Statement *s, uint64_t *allowed)
{
    AttrKind kinds[] = {offsets_kind(s, *allowed), ATTR_ELEMENT};
    for (unsigned i = 0; i < 2; i++) {
        if (!parser_at(p, "[") || !(*allowed & op_attr_bit(kinds[i])))
            continue;
        *allowed &= ~op_attr_bit(kinds[i]);
        return i ? parse_element(p, s) : parse_offsets(p, s, kinds[i], *allowed);
    }
    return true;
}

/* Takes an operand alone whose definition was broken, so that the others are still read. One with an
 * operator behind it is left: its expression stays silent. */
static bool take_broken_operand(Parser *p, Statement *s)
{
    Bookmark here = parser_bookmark(p);
    const Symbol *name = p->token.kind == TOKEN_VALUE ? parser_symbol(p, &p->token) : NULL;
    const Value *v = name ? symbol_value(p, name) : NULL;
    if (!v || v->type)
        return false;
    parser_advance(p);
    s->broken = true;
    if (!parser_at_infix(p))
        return true;
    parser_go_to(p, here);
    return false;
}

/* Operands, each a term, separated by commas; `close` ends a call, else NULL. Terms may say their
 * types in a call, and in an op like store_global, which has none of its own. */
static bool parse_operands(Parser *p, Statement *s, OpCode code, const char *close)
{
    uint64_t allowed = op_info[code].attrs;
    const char *state = allowed & op_attr_bit(ATTR_ELEMENT) ? "the phase"
                        : allowed & op_attr_bit(ATTR_PACES) ? "the number of the pace"
                                                            : "the semaphore's value";
    bool fixed = op_info[code].operand_count != OPERANDS_ANY || code == OP_yield;
    bool typed = close || (op_info[code].rule == RULE_NONE && fixed);
    bool ends = p->token.begins_line && (!op_info[code].operand_least || parser_at_statement(p));
    if (close ? parser_at(p, close) : ends || !at_term(p))
        return true;
    do {
        if (allowed & op_attr_bit(ATTR_STATE) && s->operand_count)
            return parse_state(p, s, state);
        if (s->operand_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d operands", LIMIT_NAMES);
        if (!at_term(p))
            return parser_expected(p, "an operand");
        if (take_broken_operand(p, s))
            continue;
        Term *t = &s->terms[s->operand_count];
        if (typed ? !parse_typed_term(p, t) : !parse_term(p, PRECEDENCE_ANY, t))
            return false;
        s->operand_count++;
        if (!parse_operand_place(p, s, &allowed))
            return false;
    } while (parser_accept(p, ","));
    return true;
}

/* The type of c where a dot gets a constant: the sums of a and b. */
static const Type *dot_sum_type(Parser *p, const Statement *s)
{
    if (s->terms[0].kind != TERM_VALUE || s->terms[1].kind != TERM_VALUE)
        return NULL;
    const Type *a = s->terms[0].value->type, *b = s->terms[1].value->type;
    const Expr *extents[LIMIT_RANK];
    if (a->kind != TYPE_REG || b->kind != TYPE_REG || a->rank != b->rank || a->rank < 2)
        return NULL;
    for (unsigned d = 0; d < a->rank; d++)
        extents[d] = d + 1 < a->rank ? a->extents[d] : b->extents[d];
    return type_reg_open(p->m, dtype_is_integer(a->dtype) ? DTYPE_i32 : DTYPE_f32, a->rank,
                         extents);
}

/* The type that a constant has as operand `i` of an op that is not element-wise, or NULL. */
static const Type *constant_type(Parser *p, const Statement *s, OpCode code, unsigned i)
{
    const Op *parent = p->region ? p->region->parent : NULL;
    if (code == OP_dot && i == 2)
        return dot_sum_type(p, s);
    if (code == OP_yield && parent && i < parent->operand_count)
        return parent->operands[i]->type;
    return NULL;
}

/* Returns true when the operands are not tensors of one shape yet, but may become some. The
 * verifier reports the others. */
static bool must_unify(const Statement *s, OpCode code)
{
    const Type *first = NULL;
    bool constants = false, repeats = false;
    for (unsigned i = 0; i < s->operand_count; i++) {
        const Type *t = s->terms[i].kind == TERM_VALUE ? s->terms[i].value->type : NULL;
        constants |= !t;
        if (!t)
            continue;
        first = first ? first : t;
        if (t->kind != TYPE_REG || t->rank != first->rank)
            return false;
        for (unsigned d = 0; d < t->rank; d++) {
            bool differ = t->extents[d] != first->extents[d];
            if (differ && type_extent(t, d) != 1 && type_extent(first, d) != 1)
                return false;
            repeats |= differ;
        }
    }
    return first && (constants || repeats) &&
           s->operand_count == (unsigned)op_info[code].operand_count;
}

/* Makes values of the terms. */
static bool resolve_operands(Parser *p, Statement *s, OpCode code)
{
    Constant n;
    if (op_is_elementwise(code) && must_unify(s, code))
        return term_unify(p, code, s->loc, s->terms, s->operand_count, s->operands);
    for (unsigned i = 0; i < s->operand_count; i++) {
        const Term *t = &s->terms[i];
        bool bare = (t->kind == TERM_INTEGER && t->expr->kind == EXPR_VALUE) ||
                    (t->kind == TERM_REAL && real_argument(t->real));
        const Type *like = bare ? NULL : constant_type(p, s, code, i);
        if (term_constant(t, &n) && !like && op_info[code].operand_count != OPERANDS_ANY)
            return diag_error(p->diag, t->loc, "operand %u of %s is a tensor, got %s", i + 1,
                              op_info[code].name, term_text(p, t));
        if (!(s->operands[i] = term_value(p, t, like)))
            return false;
    }
    return true;
}

/* Puts the register tensor among the offsets after the other operands. */
static bool add_place(Parser *p, Statement *s)
{
    if (s->place && s->operand_count == LIMIT_NAMES)
        return diag_error(p->diag, s->loc, "more than %d operands", LIMIT_NAMES);
    if (s->place)
        s->operands[s->operand_count++] = s->place;
    return true;
}

static AttrKind find_named_attr(const Token *t, uint64_t allowed)
{
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++)
        if (attr_in_dictionary(kind) && allowed & op_attr_bit(kind) &&
            token_is(t, attr_info[kind].spelling))
            return kind;
    return ATTR_COUNT;
}

static const char *nearest_text(Parser *p, const Nearest *n)
{
    return n->found ? arena_printf(&p->m->arena, ", did you mean `%s`?", n->found) : "";
}

const char *nearest_op_text(Parser *p, const Token *t)
{
    Nearest n = {.name = t->start, .len = t->len};
    for (OpCode code = 0; code < OP_COUNT; code++)
        nearest_try(&n, op_info[code].name);
    return nearest_text(p, &n);
}

/* Returns what to write in place of an attribute that the op's dictionary lacks. */
static const char *nearest_attr_text(Parser *p, const Token *t, uint64_t allowed)
{
    Nearest n = {.name = t->start, .len = t->len};
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++) {
        if (!(allowed & op_attr_bit(kind)))
            continue;
        if (attr_in_dictionary(kind))
            nearest_try(&n, attr_info[kind].spelling);
        else if (token_is(t, attr_name(kind)))
            return " in braces: it has a place of its own in the op's text";
    }
    return nearest_text(p, &n);
}

/* A word of the attribute's list: name.name. ... The verifier reports another one. */
static bool parse_word(Parser *p, Attr *attr)
{
    Text text;
    text_init(&text, &p->m->arena);
    do {
        if (p->token.kind != TOKEN_NAME)
            return parser_expected(p, "a word");
        text_printf(&text, "%s%.*s", text.len ? "." : "", (int)p->token.len, p->token.start);
        parser_advance(p);
    } while (parser_accept(p, "."));
    attr->word = attr_word_find(attr->kind, text_string(&text));
    if (attr->word == attr_info[attr->kind].word_count)
        attr->text = text_string(&text);
    return true;
}

/* The attributes that are words before the operands. */
static bool parse_words(Parser *p, Statement *s, uint64_t allowed)
{
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++) {
        Attr attr = {.kind = kind};
        if (!attr_is_leading_word(kind) || !(allowed & op_attr_bit(kind)))
            continue;
        if (!parse_word(p, &attr))
            return false;
        statement_add(s, attr);
    }
    return true;
}

static bool parse_attr_value(Parser *p, Statement *s, AttrKind kind)
{
    const char *name = attr_info[kind].spelling;
    Attr attr = {.kind = kind};
    if (attr_info[kind].value == ATTR_VALUE_INT) {
        if (!parse_constant(p, name, &attr.integer))
            return false;
    } else if (attr_info[kind].value == ATTR_VALUE_WORD) {
        if (!parse_word(p, &attr))
            return false;
    } else if (attr_info[kind].value == ATTR_VALUE_SCALAR) {
        attr.expr = parse_expr(p, PRECEDENCE_ANY);
        if (!attr.expr)
            return false;
    } else {
        int64_t ints[LIMIT_RANK];
        if (!parse_constant_list(p, "[", "]", name, ints, LIMIT_RANK, &attr.count))
            return false;
        attr.ints = keep(p, ints, attr.count, sizeof *ints);
    }
    statement_add(s, attr);
    return true;
}

/* {dims = [2], kind = max, ...} */
static bool parse_attr_dictionary(Parser *p, Statement *s, OpCode code)
{
    if (parser_accept(p, "}"))
        return true;
    do {
        if (p->token.kind != TOKEN_NAME)
            return parser_expected(p, "the name of an attribute");
        AttrKind kind = find_named_attr(&p->token, op_info[code].attrs);
        if (kind == ATTR_COUNT)
            return diag_error(p->diag, p->token.loc, "%s has no attribute %s%s",
                              op_info[code].name, token_text(p, &p->token),
                              nearest_attr_text(p, &p->token, op_info[code].attrs));
        for (unsigned i = 0; i < s->attr_count; i++)
            if (s->attrs[i].kind == kind)
                return diag_error(p->diag, p->token.loc, "attribute %s is given twice",
                                  token_text(p, &p->token));
        parser_advance(p);
        if (!parser_expect(p, "=", "after the attribute's name") ||
            !parse_attr_value(p, s, kind))
            return false;
    } while (parser_accept(p, ","));
    return parser_expect(p, "}", "after the attributes");
}

/* Skips, after an error inside, past the closing brace, which is not the region's. */
static void skip_attr_dictionary(Parser *p)
{
    while (p->token.kind != TOKEN_END && !p->token.begins_line && !parser_at(p, "}"))
        parser_advance(p);
    if (!p->token.begins_line)
        parser_accept(p, "}");
}

/* ---- result types ---------------------------------------------------- */

static TypeKind result_type_kind(ResultKind kind)
{
    return kind == RESULT_SHARED   ? TYPE_SHARED
           : kind == RESULT_GLOBAL ? TYPE_GLOBAL
           : kind == RESULT_MBARRIER ? TYPE_MBARRIER
           : kind == RESULT_INDICES || kind == RESULT_SCALAR ? TYPE_SCALAR
                                                             : TYPE_REG;
}

/* Reads a type after the colon, which operand 0 (NULL: a broken one) may complete. */
static const Type *parse_result_type(Parser *p, const Statement *s, const OpInfo *info)
{
    const Type *operand = s->operand_count ? s->operands[0]->type : NULL;
    if (info->result == RESULT_CARRIED)
        return parse_element_type(p, NULL);
    bool like = info->rule == RULE_ELEMENT || info->rule == RULE_ENTRY ||
                info->rule == RULE_BOOL;
    if (s->operand_count && like)
        return parse_element_type(p, operand);
    if (info->rule == RULE_RESHAPE)
        return parse_reshape_type(p, operand && operand->kind == TYPE_REG ? operand : NULL);
    if (info->result != RESULT_TENSOR)
        return parse_type(p, result_type_kind(info->result));
    bool tensor = operand && operand->kind != TYPE_SCALAR && operand->kind != TYPE_PTR &&
                  operand->kind != TYPE_MBARRIER;
    if (info->rule == RULE_SLICE || !tensor)
        return parse_slice_type(p, tensor ? operand : NULL, find_attr(s, ATTR_DIMS));
    return parse_type(p, operand->kind);
}

bool parse_result_types(Parser *p, Statement *s, OpCode code)
{
    do {
        if (s->type_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d types", LIMIT_NAMES);
        const Type *t = parse_result_type(p, s, &op_info[code]);
        if (!t)
            return false;
        s->types[s->type_count++] = t;
    } while (!s->nested && parser_accept(p, ","));
    return true;
}

/* The type that a rule of one result gives, from `op` or the operands; NULL after an error. */
static const Type *inferred_type(Parser *p, const Statement *s, TypeRule rule, const Op *op)
{
    const Type *first = s->operand_count ? s->operands[0]->type : NULL;
    switch (rule) {
    case RULE_REDUCE: return verify_reduce_type(p->m, op);
    case RULE_PERMUTE: return verify_permute_type(p->m, op);
    case RULE_JOIN: return verify_join_type(p->m, op);
    case RULE_DECODE: return verify_decode_type(p->m, op);
    case RULE_LAST: return s->operands[2]->type;
    case RULE_OPEN: return type_with_layout(p->m, first, NULL);
    case RULE_ENTRY: return type_like(p->m, first, s->operands[1]->type->dtype);
    case RULE_BOOL: return type_like(p->m, first, DTYPE_bool);
    case RULE_SCALAR: return type_scalar(p->m, first ? first->dtype : DTYPE_i64);
    case RULE_RANK: return type_scalar(p->m, DTYPE_i32);
    default: return first;      /* RULE_SAME */
    }
}

/* The type of sums that a dot_async or dot_wait of `operand` gives. */
static const Type *waited_type(Parser *p, const Statement *s, const Type *operand)
{
    const Attr *pending = find_attr(s, ATTR_PENDING);
    return type_pending(p->m, operand, operand->pending && pending && pending->integer > 0);
}

bool infer_result_types(Parser *p, Statement *s, OpCode code, const Op *op)
{
    const OpInfo *info = &op_info[code];
    if (info->rule == RULE_NONE ||
        (info->result == RESULT_OPTIONAL && !s->name_count && !s->nested))
        return true;
    switch (info->rule) {
    case RULE_INDICES:
        while (s->type_count < p->program->grid_rank)
            s->types[s->type_count++] = type_scalar(p->m, DTYPE_i32);
        return true;
    case RULE_CARRIED:
        for (; s->type_count < s->operand_count; s->type_count++)
            s->types[s->type_count] = s->operands[s->type_count]->type;
        return true;
    case RULE_WAITED:
        for (; s->type_count < s->operand_count; s->type_count++)
            s->types[s->type_count] = waited_type(p, s, s->operands[s->type_count]->type);
        return true;
    case RULE_PENDING:
        if (s->operand_count == 3)
            return (s->types[s->type_count++] = type_pending(p->m, s->operands[2]->type, true));
        return diag_error(p->diag, s->loc, "%s without sums needs the type of its result",
                          info->name);
    case RULE_GIVEN:
    case RULE_ELEMENT:
    case RULE_SLICE:
    case RULE_RESHAPE:
        return diag_error(p->diag, s->loc, "%s needs the type of its result", info->name);
    default:
        return (s->types[s->type_count++] = inferred_type(p, s, info->rule, op)) != NULL;
    }
}

/* ---- ops ------------------------------------------------------------- */

/* The words, numbers and texts that stand before the operands. */
static bool parse_op_head(Parser *p, Statement *s, OpCode code)
{
    uint64_t attrs = op_info[code].attrs;
    if (attrs & op_attr_bit(ATTR_INIT) && !parser_at(p, ":") && !parser_at(p, "{") &&
        !parse_number(p, s))
        return false;
    if (attrs & op_attr_bit(ATTR_COND) && !parse_condition(p, s, attrs))
        return false;
    if (attrs & op_attr_bit(ATTR_LABEL)) {
        if (!parse_label(p, s))
            return false;
    } else if (attrs & op_attr_bit(ATTR_VALUE) && !parse_value(p, s, code)) {
        return false;
    }
    if (attrs & op_attr_bit(ATTR_NUMBER) && !parse_count(p, s, code))
        return false;
    return parse_words(p, s, attrs);
}

/* Reads on after a parenthesis that held the first operand alone: dot (%a), %b, %c. */
static bool parse_more_operands(Parser *p, Statement *s, OpCode code)
{
    if (s->operand_count != 1 || op_info[code].operand_count == 1 || !parser_at_more(p))
        return true;
    s->call = false;
    return parse_term_rest(p, PRECEDENCE_ANY, &s->terms[0]) &&
           (!parser_accept(p, ",") || parse_operands(p, s, code, NULL));
}

static bool parse_op_operands(Parser *p, Statement *s, OpCode code)
{
    bool call = op_is_callable(code) && parser_at(p, "("), touches = call && parser_touches(p);
    if (!op_info[code].operand_count && p->token.kind != TOKEN_VALUE)
        return true;
    if (!call)
        return parse_operands(p, s, code, NULL);
    s->call = true;
    parser_advance(p);
    return parse_operands(p, s, code, ")") && parser_expect(p, ")", "after the operands") &&
           (touches || parse_more_operands(p, s, code));
}

/* Returns true when a type after the op is that of the text around it: permute(%b) : T. */
static bool leaves_type(const Statement *s, OpCode code)
{
    TypeRule rule = op_info[code].rule;
    return s->nested && s->call && rule != RULE_GIVEN && rule != RULE_ELEMENT &&
           rule != RULE_SLICE && rule != RULE_RESHAPE && rule != RULE_OPEN;
}

/* Returns true where a brace opens attributes, not a region after an op that has none of them:
 * if load_scalar %g[0] { .. */
static bool at_attributes(const Parser *p, const Statement *s, OpCode code)
{
    if (!parser_at(p, "{") || !s->nested)
        return parser_at(p, "{");
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++)
        if (attr_in_dictionary(kind) && op_info[code].attrs & op_attr_bit(kind))
            return true;
    return false;
}

/* Reads {attributes} : types. */
static bool parse_op_tail(Parser *p, Statement *s, OpCode code)
{
    if (at_attributes(p, s, code) && parser_accept(p, "{") && !parse_attr_dictionary(p, s, code)) {
        skip_attr_dictionary(p);
        return false;
    }
    if (!parser_at(p, ":") || leaves_type(s, code))
        return true;
    if (op_info[code].rule == RULE_NONE)
        return diag_error(p->diag, p->token.loc, "%s has no result to give a type to",
                          op_info[code].name);
    parser_advance(p);
    return parse_result_types(p, s, code);
}

/* Returns true of an op whose type does not follow from its operands. */
static bool needs_type(const Statement *s, OpCode code)
{
    TypeRule rule = op_info[code].rule;
    return rule == RULE_GIVEN || rule == RULE_ELEMENT || rule == RULE_SLICE ||
           rule == RULE_RESHAPE || (rule == RULE_PENDING && s->operand_count < 3);
}

/* Checks that no token stands in the way of the type that an op still needs, nor on its line after
 * one that stands alone. */
static bool check_op_end(Parser *p, const Statement *s, OpCode code)
{
    bool ends = p->token.begins_line || p->token.kind == TOKEN_END || parser_at(p, "}") ||
                parser_at_infix(p);
    bool given = needs_type(s, code);
    bool lacks = op_info[code].operand_count > (int)s->operand_count;   /* the verifier says so */
    if (s->type_count || ends || lacks ||
        (s->nested && (!given || parser_at(p, ")") || parser_at(p, ",") || parser_at(p, "]"))))
        return true;
    if (find_named_attr(&p->token, op_info[code].attrs) != ATTR_COUNT)
        return diag_error(p->diag, p->token.loc, "%s is an attribute: attributes stand in braces, "
                          "{%.*s = ..}", token_text(p, &p->token), (int)p->token.len,
                          p->token.start);
    if (parser_at(p, "{") && s->attr_count)
        return diag_error(p->diag, p->token.loc, "the attributes of an op stand in one pair of "
                          "braces, before its type");
    if (!given)
        return parser_expected(p, "the end of the line");
    return parser_expected(p, arena_printf(&p->m->arena, "`:` and the type of the result of %s",
                                           op_info[code].name));
}

/* A permute of a matrix without dims transposes it. */
static void add_default_dims(Parser *p, Statement *s, OpCode code)
{
    const Type *t = s->operand_count ? s->operands[0]->type : NULL;
    if (code != OP_permute || !t || t->rank != 2 || find_attr(s, ATTR_DIMS))
        return;
    int64_t *dims = arena_array(&p->m->arena, int64_t, t->rank);
    for (unsigned d = 0; d < t->rank; d++)
        dims[d] = t->rank - 1 - d;
    statement_add(s, (Attr){.kind = ATTR_DIMS, .count = t->rank, .ints = dims});
}

/* The state of a grid_synchronize without operand: a word of its own in the workspace, which the
 * program's body begins with. */
static void add_default_state(Parser *p, Statement *s, OpCode code)
{
    if (code != OP_grid_synchronize || s->operand_count)
        return;
    const Expr *one = expr_constant(&p->m->exprs, 1);
    const Attr zeroed = {.kind = ATTR_ZEROED, .word = FLAG_TRUE};
    Region *body = p->program->body;
    Op *op = build_op(p->m, OP_allocate_global, s->loc, NULL, 0, &zeroed, 1);
    const Type *t = type_memory(p->m, TYPE_GLOBAL, DTYPE_u32, 1, &one, NULL);
    s->operands[s->operand_count++] = build_result(p->m, op, NULL, s->loc, t);
    Op *before = body->first;
    while (before && before->code == OP_allocate_global && !before->results[0]->name)
        before = before->next;
    op_insert(body, op, before);
}

/* Reads an op without regions from its name on, and inserts it; s->types are those of its
 * results. NULL after an error. */
static Op *parse_op_text(Parser *p, Statement *s, OpCode code)
{
    parser_advance(p);
    if (!parse_op_head(p, s, code) || !parse_op_operands(p, s, code) || s->broken ||
        !resolve_operands(p, s, code) || !add_place(p, s) || !parse_op_tail(p, s, code) ||
        !check_op_end(p, s, code))
        return NULL;
    add_default_dims(p, s, code);
    add_default_state(p, s, code);
    Op *op = build_op(p->m, code, s->loc, s->operands, s->operand_count, s->attrs, s->attr_count);
    if (!verify_operands(p->m, op) || (!s->type_count && !infer_result_types(p, s, code, op)))
        return NULL;
    op_insert(p->region, op, NULL);
    return op;
}

bool parse_plain_op(Parser *p, Statement *s, OpCode code)
{
    Op *op = parse_op_text(p, s, code);
    if (!op)
        return false;
    if (s->type_count != 1 || s->name_count != 1 || p->token.begins_line ||
        !parser_at_infix(p))
        return define_results(p, s, op);
    Term t = term_of_any(p, s->loc, build_result(p->m, op, NULL, s->loc, s->types[0]));
    return parse_term_rest(p, PRECEDENCE_ANY, &t) && bind_term(p, s, &t);
}

/* The op at the token; OP_COUNT after an error. */
static OpCode find_leaf_op(Parser *p)
{
    OpCode code = op_find(p->token.start, p->token.len);
    if (code == OP_COUNT)
        diag_error(p->diag, p->token.loc, "%s is not an integer parameter, an op or a type%s",
                   token_text(p, &p->token), nearest_op_text(p, &p->token));
    else if (op_info[code].effect == EFFECT_CONTROL || op_info[code].result == RESULT_NONE ||
             op_info[code].result == RESULT_INDICES || op_info[code].result == RESULT_EACH)
        diag_error(p->diag, p->token.loc, "%s cannot stand in an expression",
                   op_info[code].name);
    else
        return term_can_build(p, p->token.loc, op_info[code].name) ? code : OP_COUNT;
    return OP_COUNT;
}

bool parse_op_leaf(Parser *p, Term *out)
{
    OpCode code = find_leaf_op(p);
    if (code == OP_COUNT)
        return false;
    ArenaMark mark = arena_mark(&p->m->scratch);
    Statement *s = arena_new(&p->m->scratch, Statement);
    s->loc = p->token.loc;
    s->nested = true;
    Op *op = parse_op_text(p, s, code);
    if (op)
        *out = term_of_any(p, s->loc, build_result(p->m, op, NULL, s->loc, s->types[0]));
    arena_reset(&p->m->scratch, mark);
    return op;
}
