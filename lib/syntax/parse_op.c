/* Parsing of ops by their rows in ops.def: names of results, operands, attributes,
 * types. */
#include "ir/part.h"
#include "ir/verify.h"
#include "syntax/statement.h"

#include <math.h>
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
        s->names[s->name_count++] = p->token;
        parser_advance(p);
        if (!parser_accept(p, ","))
            return parser_expect(p, "=", "after the results");
    }
    return s->name_count == 0 || parser_expected(p, "the name of a result");
}

void define_broken_results(Parser *p, const Statement *s)
{
    for (unsigned i = 0; i < s->name_count; i++) {
        if (parser_symbol(p, &s->names[i])->value)
            continue;
        Value *v = arena_new(&p->m->arena, Value);
        v->loc = s->names[i].loc;
        parser_define(p, &s->names[i], v);
    }
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
        ok &= parser_define(p, &s->names[i],
                            build_result(p->m, op, name, s->names[i].loc, s->types[i]));
    }
    return ok;
}

/* ---- operands and attributes ---------------------------------------- */

/* A single number or parameter; false, without an error, where there is none. */
static bool take_single_number(Parser *p, Constant *n)
{
    const Symbol *name = p->token.kind == TOKEN_NAME ? parser_symbol(p, &p->token) : NULL;
    if (p->token.kind == TOKEN_INTEGER)
        *n = constant_of_magnitude(false, p->token.integer);
    else if (p->token.kind == TOKEN_NUMBER)
        *n = constant_of_real(p->token.number);
    else if (parser_at(p, "inf"))
        *n = constant_of_real(INFINITY);
    else if (parser_at(p, "nan"))
        *n = constant_of_real(NAN);
    else if (name && name->binding == BINDING_INTEGER)
        *n = constant_of_integer(name->integer);
    else
        return false;
    parser_advance(p);
    return true;
}

/* A number, of integers also a constant expression: 0.5, -inf, 0xffffffffffffffff, N - 1.
 * A number alone is read first: expressions have neither fractions nor -0, and hold i64 only. */
static bool parse_number(Parser *p, Statement *s)
{
    Lexer lexer = p->lexer;
    Token token = p->token;
    Attr attr = {.kind = ATTR_INIT};
    bool negative = parser_accept(p, "-"), fraction = p->token.kind == TOKEN_NUMBER;
    bool single = take_single_number(p, &attr.number);
    if (fraction && parser_at_infix(p))
        return diag_error(p->diag, p->token.loc, "%s takes integers, a number with a fraction "
                          "stands alone", token_text(p, &p->token));
    if (single && !parser_at_infix(p)) {
        attr.number = negative ? constant_negate(attr.number) : attr.number;
    } else {
        int64_t value;
        p->lexer = lexer;
        p->token = token;
        if (!parse_constant(p, "the number of allocate_register", &value))
            return false;
        attr.number = constant_of_integer(value);
    }
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
    const Value *v = parser_symbol(p, &p->token)->value;
    return !v || !v->type || v->type->kind != TYPE_SCALAR;
}

/* A scalar expression, or a scalar of floats, which stands alone. */
static const Expr *parse_any_scalar(Parser *p)
{
    Value *v = p->token.kind == TOKEN_VALUE ? parser_symbol(p, &p->token)->value : NULL;
    if (!v || !v->type || v->type->kind != TYPE_SCALAR || !dtype_is_float(v->type->dtype))
        return parse_expr(p, PRECEDENCE_ANY);
    parser_advance(p);
    if (!parser_at_infix(p))
        return expr_value(&p->m->exprs, v);
    diag_error(p->diag, p->token.loc, "%s takes integers, %%%s is %s: `splat` makes a tensor of "
               "it", token_text(p, &p->token), v->name, dtype_name(v->type->dtype));
    return NULL;
}

/* "label", and the printed expression, or an operand that follows. */
static bool parse_label(Parser *p, Statement *s)
{
    if (!parse_text(p, s, ATTR_LABEL, "a label in quotes") ||
        !parser_expect(p, ",", "after the label"))
        return false;
    if (at_operand(p))
        return true;
    const Expr *value = parse_any_scalar(p);
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
    if (p->token.begins_line)
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
    if (p->token.begins_line)
        return parser_expected(p, code == OP_setmaxnreg
                                      ? "the number of registers of a thread"
                                      : "the number of groups that may stay in flight");
    const Expr *number = parse_expr(p, PRECEDENCE_ANY);
    if (number)
        statement_add_expr(s, ATTR_NUMBER, number);
    return number;
}

/* Returns true when the token names a register tensor. */
static bool at_register(Parser *p)
{
    const Value *v = p->token.kind == TOKEN_VALUE ? parser_symbol(p, &p->token)->value : NULL;
    return v && v->type && v->type->kind == TYPE_REG;
}

/* The register tensor that says where elements lie in dimension `d`. */
static bool parse_place(Parser *p, Statement *s, unsigned d)
{
    if (s->place)
        return diag_error(p->diag, p->token.loc, "one register tensor says where elements lie, "
                          "got %%%s and %s", s->place->name, token_text(p, &p->token));
    s->place = parse_value_use(p);
    statement_add(s, (Attr){.kind = ATTR_INDEXED, .integer = d});
    return true;
}

/* An offset: an expression or, where the op takes one, a register tensor, for which 0
 * stands. NULL after an error. */
static const Expr *parse_offset(Parser *p, Statement *s, bool indexed, unsigned d)
{
    if (!indexed || !at_register(p))
        return parse_expr(p, PRECEDENCE_ANY);
    return parse_place(p, s, d) ? expr_constant(&p->m->exprs, 0) : NULL;
}

/* [offset, ..]. Of two tensors in memory, the first one's may hold a register tensor. */
static bool parse_offsets(Parser *p, Statement *s, AttrKind kind, uint64_t allowed)
{
    const Expr *offsets[LIMIT_RANK];
    unsigned count = 0;
    bool indexed = allowed & op_attr_bit(ATTR_INDEXED) &&
                   (kind == ATTR_SOURCE_OFFSETS || !find_attr(s, ATTR_SOURCE_OFFSETS));
    parser_advance(p);
    while (!parser_at(p, "]")) {
        if (count == LIMIT_RANK)
            return diag_error(p->diag, p->token.loc, "a list of more than %d entries", LIMIT_RANK);
        if (!(offsets[count] = parse_offset(p, s, indexed, count)))
            return false;
        count++;
        if (!parser_accept(p, ","))
            break;
    }
    statement_add(s, (Attr){.kind = kind, .count = count,
                       .exprs = keep(p, offsets, count, sizeof *offsets)});
    return parser_expect(p, "]", "after the list");
}

/* The value of a semaphore, or the phase of an mbarrier, behind the comma. */
static bool parse_state(Parser *p, Statement *s, const char *what)
{
    if (p->token.begins_line)
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

static bool parse_operands(Parser *p, Statement *s, uint64_t allowed)
{
    bool is_phase = allowed & op_attr_bit(ATTR_ELEMENT);
    while (p->token.kind == TOKEN_VALUE && (s->operand_count || !p->token.begins_line)) {
        if (s->operand_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d operands", LIMIT_NAMES);
        Value *v = parse_value_use(p);
        if (!v)
            return false;
        s->broken |= !v->type;
        s->operands[s->operand_count++] = v;
        AttrKind offsets = offsets_kind(s, allowed);
        if (parser_at(p, "[") && allowed & op_attr_bit(offsets)) {
            allowed &= ~op_attr_bit(offsets);
            if (!parse_offsets(p, s, offsets, allowed))
                return false;
        } else if (parser_at(p, "[") && allowed & op_attr_bit(ATTR_ELEMENT)) {
            allowed &= ~op_attr_bit(ATTR_ELEMENT);
            if (!parse_element(p, s))
                return false;
        }
        if (!parser_accept(p, ","))
            return true;
        if (allowed & op_attr_bit(ATTR_STATE))
            return parse_state(p, s, is_phase ? "the phase" : "the semaphore's value");
    }
    return s->operand_count == 0 || parser_expected(p, "an operand");
}

/* Puts the register tensor among the offsets behind the other operands. */
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
    while (!parser_at(p, "}")) {
        AttrKind kind = find_named_attr(&p->token, op_info[code].attrs);
        if (kind == ATTR_COUNT)
            return diag_error(p->diag, p->token.loc, "%s has no attribute %s",
                              op_info[code].name, token_text(p, &p->token));
        for (unsigned i = 0; i < s->attr_count; i++)
            if (s->attrs[i].kind == kind)
                return diag_error(p->diag, p->token.loc, "attribute %s is given twice",
                                  token_text(p, &p->token));
        parser_advance(p);
        if (!parser_expect(p, "=", "after the attribute's name") ||
            !parse_attr_value(p, s, kind))
            return false;
        if (!parser_accept(p, ","))
            break;
    }
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

/* One type after the colon, which operand 0 (NULL: a broken one) may complete. */
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
    } while (parser_accept(p, ","));
    return true;
}

bool infer_result_types(Parser *p, Statement *s, OpCode code, const Op *op)
{
    const OpInfo *info = &op_info[code];
    if (info->result == RESULT_OPTIONAL && !s->name_count)
        return true;
    switch (info->rule) {
    case RULE_REDUCE:
        s->types[s->type_count] = verify_reduce_type(p->m, op);
        return s->types[s->type_count++];
    case RULE_PERMUTE:
        s->types[s->type_count] = verify_permute_type(p->m, op);
        return s->types[s->type_count++];
    case RULE_JOIN:
        s->types[s->type_count] = verify_join_type(p->m, op);
        return s->types[s->type_count++];
    case RULE_DECODE:
        s->types[s->type_count] = verify_decode_type(p->m, op);
        return s->types[s->type_count++];
    case RULE_SAME:
        s->types[s->type_count++] = s->operands[0]->type;
        return true;
    case RULE_LAST:
        s->types[s->type_count++] = s->operands[2]->type;
        return true;
    case RULE_OPEN:
        s->types[s->type_count++] = type_with_layout(p->m, s->operands[0]->type, NULL);
        return true;
    case RULE_ENTRY:
        s->types[s->type_count++] = type_like(p->m, s->operands[0]->type,
                                              s->operands[1]->type->dtype);
        return true;
    case RULE_BOOL:
        s->types[s->type_count++] = type_like(p->m, s->operands[0]->type, DTYPE_bool);
        return true;
    case RULE_SCALAR:
        s->types[s->type_count++] =
            type_scalar(p->m, s->operand_count ? s->operands[0]->type->dtype : DTYPE_i64);
        return true;
    case RULE_INDICES:
        while (s->type_count < p->program->grid_rank)
            s->types[s->type_count++] = type_scalar(p->m, DTYPE_i32);
        return true;
    case RULE_CARRIED:
        for (; s->type_count < s->operand_count; s->type_count++)
            s->types[s->type_count] = s->operands[s->type_count]->type;
        return true;
    case RULE_GIVEN:
    case RULE_ELEMENT:
    case RULE_SLICE:
    case RULE_RESHAPE:
        return diag_error(p->diag, s->loc, "%s needs the type of its result", info->name);
    case RULE_NONE:
        break;
    }
    return true;
}

/* ---- ops ------------------------------------------------------------- */

bool parse_plain_op(Parser *p, Statement *s, OpCode code)
{
    const OpInfo *info = &op_info[code];
    parser_advance(p);
    if (info->attrs & op_attr_bit(ATTR_INIT) && !parser_at(p, ":") && !parser_at(p, "{") &&
        !parse_number(p, s))
        return false;
    if (info->attrs & op_attr_bit(ATTR_COND) && !parse_condition(p, s, info->attrs))
        return false;
    if (info->attrs & op_attr_bit(ATTR_LABEL)) {
        if (!parse_label(p, s))
            return false;
    } else if (info->attrs & op_attr_bit(ATTR_VALUE) && !parse_value(p, s, code))
        return false;
    if (info->attrs & op_attr_bit(ATTR_NUMBER) && !parse_count(p, s, code))
        return false;
    if (!parse_words(p, s, info->attrs) || !parse_operands(p, s, info->attrs) ||
        !add_place(p, s))
        return false;
    if (parser_accept(p, "{") && !parse_attr_dictionary(p, s, code)) {
        skip_attr_dictionary(p);
        return false;
    }
    if (parser_at(p, ":")) {
        if (info->rule == RULE_NONE)
            return diag_error(p->diag, p->token.loc, "%s has no result to give a type to",
                              info->name);
        parser_advance(p);
        if (!parse_result_types(p, s, code))
            return false;
    }
    if (s->broken)
        return false;
    Op *op = build_op(p->m, code, s->loc, s->operands, s->operand_count, s->attrs, s->attr_count);
    if (!verify_operands(p->m, op) || (!s->type_count && !infer_result_types(p, s, code, op)))
        return false;
    op_insert(p->region, op, NULL);
    return define_results(p, s, op);
}
