/* Parsing of statements: ops by their rows in ops.def, for, while, if,
 * thread_group, when. */
#include "ir/parser.h"
#include "ir/part.h"
#include "ir/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 64 };    /* results, carried values or operands of one op */

/* What is read of one statement before its op can be built. */
typedef struct Statement {
    Loc loc;
    Token names[NAMES_MAX];         /* to the left of `=` */
    unsigned name_count;
    Value *operands[NAMES_MAX];
    unsigned operand_count;
    Attr attrs[ATTR_COUNT];
    unsigned attr_count;
    const Type *types[NAMES_MAX];   /* after the colon, or following from the op */
    unsigned type_count;
    bool broken;                    /* uses a value whose definition was broken */
} Statement;

static void add_attr(Statement *s, Attr attr)
{
    s->attrs[s->attr_count++] = attr;
}

static const Attr *find_attr(const Statement *s, AttrKind kind)
{
    for (unsigned i = 0; i < s->attr_count; i++)
        if (s->attrs[i].kind == kind)
            return &s->attrs[i];
    return NULL;
}

static void add_expr_attr(Statement *s, AttrKind kind, const Expr *e)
{
    add_attr(s, (Attr){.kind = kind, .expr = e});
}

static const void *keep(Parser *p, const void *items, size_t count, size_t size)
{
    return arena_copy(&p->m->arena, items, count * size);
}

/* ---- names and results ---------------------------------------------- */

/* %a, %b = */
static bool parse_result_names(Parser *p, Statement *s)
{
    while (p->token.kind == TOKEN_VALUE) {
        if (s->name_count == NAMES_MAX)
            return diag_error(p->diag, p->token.loc, "more than %d results", NAMES_MAX);
        s->names[s->name_count++] = p->token;
        parser_advance(p);
        if (!parser_accept(p, ","))
            return parser_expect(p, "=", "after the results");
    }
    return s->name_count == 0 || parser_expected(p, "the name of a result");
}

/* Keeps the names of a broken statement from giving errors where used. */
static void define_broken_results(Parser *p, const Statement *s)
{
    for (unsigned i = 0; i < s->name_count; i++) {
        if (parser_symbol(p, &s->names[i])->value)
            continue;
        Value *v = arena_new(&p->m->arena, Value);
        v->loc = s->names[i].loc;
        parser_define(p, &s->names[i], v);
    }
}

static bool define_results(Parser *p, const Statement *s, Op *op)
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

static bool parse_number(Parser *p, Statement *s)
{
    bool negative = parser_accept(p, "-");
    Attr attr = {.kind = ATTR_INIT};
    Symbol *name = p->token.kind == TOKEN_NAME ? parser_symbol(p, &p->token) : NULL;
    if (p->token.kind == TOKEN_INTEGER)
        attr.number = (double)p->token.integer;
    else if (p->token.kind == TOKEN_NUMBER)
        attr.number = p->token.number;
    else if (parser_at(p, "inf"))
        attr.number = INFINITY;
    else if (parser_at(p, "nan"))
        attr.number = NAN;
    else if (name && name->binding == BINDING_INTEGER)
        attr.number = (double)name->integer;
    else
        return parser_expected(p, "a number");
    parser_advance(p);
    attr.number = negative ? -attr.number : attr.number;
    add_attr(s, attr);
    return true;
}

/* A text in quotes, as the attribute `kind`; `what` it is. */
static bool parse_text(Parser *p, Statement *s, AttrKind kind, const char *what)
{
    if (p->token.kind != TOKEN_TEXT)
        return parser_expected(p, what);
    add_attr(s, (Attr){.kind = kind, .text = arena_strndup(&p->m->arena, p->token.start,
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
    add_expr_attr(s, ATTR_COND, cond);
    if (!(allowed & op_attr_bit(ATTR_MESSAGE)) || !parser_accept(p, ","))
        return true;
    return parse_text(p, s, ATTR_MESSAGE, "a message in quotes");
}

/* Whether the token names a value that is no scalar, or none at all. */
static bool at_operand(Parser *p)
{
    if (p->token.kind != TOKEN_VALUE)
        return false;
    const Value *v = parser_symbol(p, &p->token)->value;
    return !v || !v->type || v->type->kind != TYPE_SCALAR;
}

/* "label", and what is printed: an expression, or an operand that follows. */
static bool parse_label(Parser *p, Statement *s)
{
    if (!parse_text(p, s, ATTR_LABEL, "a label in quotes") ||
        !parser_expect(p, ",", "after the label"))
        return false;
    if (at_operand(p))
        return true;
    const Expr *value = parse_expr(p, PRECEDENCE_ANY);
    if (value)
        add_expr_attr(s, ATTR_VALUE, value);
    return value;
}

/* The expression of `scalar`. */
static bool parse_value(Parser *p, Statement *s)
{
    const Expr *value = p->token.begins_line ? NULL : parse_expr(p, PRECEDENCE_ANY);
    if (!value)
        return p->token.begins_line ? parser_expected(p, "a scalar expression") : false;
    add_expr_attr(s, ATTR_VALUE, value);
    return true;
}

/* The constant of copy_async_wait_group. */
static bool parse_pending(Parser *p, Statement *s)
{
    if (p->token.begins_line)
        return parser_expected(p, "the number of groups that may stay under way");
    const Expr *pending = parse_expr(p, PRECEDENCE_ANY);
    if (pending)
        add_expr_attr(s, ATTR_PENDING, pending);
    return pending;
}

static bool parse_offsets(Parser *p, Statement *s, AttrKind kind)
{
    const Expr *offsets[LIMIT_RANK];
    unsigned count;
    if (!parse_expr_list(p, "[", "]", offsets, &count))
        return false;
    add_attr(s, (Attr){.kind = kind, .count = count,
                       .exprs = keep(p, offsets, count, sizeof *offsets)});
    return true;
}

/* The value of a semaphore, behind the comma. */
static bool parse_semaphore_value(Parser *p, Statement *s)
{
    if (p->token.begins_line)
        return parser_expected(p, "the semaphore's value");
    const Expr *value = parse_expr(p, PRECEDENCE_ANY);
    if (value)
        add_expr_attr(s, ATTR_STATE, value);
    return value;
}

/* The offsets that may follow the operand just read. */
static AttrKind offsets_kind(const Statement *s, uint64_t allowed)
{
    return s->operand_count == 1 && allowed & op_attr_bit(ATTR_SOURCE_OFFSETS) ? ATTR_SOURCE_OFFSETS
                                                                        : ATTR_OFFSETS;
}

static bool parse_operands(Parser *p, Statement *s, uint64_t allowed)
{
    while (p->token.kind == TOKEN_VALUE && (s->operand_count || !p->token.begins_line)) {
        if (s->operand_count == NAMES_MAX)
            return diag_error(p->diag, p->token.loc, "more than %d operands", NAMES_MAX);
        Value *v = parse_value_use(p);
        if (!v)
            return false;
        s->broken |= !v->type;
        s->operands[s->operand_count++] = v;
        AttrKind offsets = offsets_kind(s, allowed);
        if (parser_at(p, "[") && allowed & op_attr_bit(offsets)) {
            allowed &= ~op_attr_bit(offsets);
            if (!parse_offsets(p, s, offsets))
                return false;
        }
        if (!parser_accept(p, ","))
            return true;
        if (allowed & op_attr_bit(ATTR_STATE))
            return parse_semaphore_value(p, s);
    }
    return s->operand_count == 0 || parser_expected(p, "an operand");
}

static AttrKind find_named_attr(const Token *t, uint64_t allowed)
{
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++)
        if (attr_in_dictionary(kind) && allowed & op_attr_bit(kind) &&
            token_is(t, attr_info[kind].spelling))
            return kind;
    return ATTR_COUNT;
}

/* The attributes that are words before the operands. */
static bool parse_words(Parser *p, Statement *s, uint64_t allowed)
{
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++) {
        if (!attr_is_leading_word(kind) || !(allowed & op_attr_bit(kind)))
            continue;
        if (p->token.kind != TOKEN_NAME)
            return parser_expected(p, "a word");
        add_attr(s, (Attr){.kind = kind, .word = parser_symbol(p, &p->token)->name});
        parser_advance(p);
    }
    return true;
}

/* name.name. ... */
static bool parse_word(Parser *p, const char **word)
{
    Text text;
    text_init(&text, &p->m->arena);
    do {
        if (p->token.kind != TOKEN_NAME)
            return parser_expected(p, "a word");
        text_printf(&text, "%s%.*s", text.len ? "." : "", (int)p->token.len, p->token.start);
        parser_advance(p);
    } while (parser_accept(p, "."));
    *word = text_string(&text);
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
        if (!parse_word(p, &attr.word))
            return false;
    } else {
        int64_t ints[LIMIT_RANK];
        if (!parse_constant_list(p, "[", "]", name, ints, LIMIT_RANK, &attr.count))
            return false;
        attr.ints = keep(p, ints, attr.count, sizeof *ints);
    }
    add_attr(s, attr);
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

/* After an error inside: past the closing brace, which is not the region's. */
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
           : kind == RESULT_INDICES || kind == RESULT_SCALAR ? TYPE_SCALAR
                                                             : TYPE_REG;
}

/* One type after the colon, which operand 0 (NULL: a broken one) may complete. */
static const Type *parse_result_type(Parser *p, const Statement *s, const OpInfo *info)
{
    const Type *operand = s->operand_count ? s->operands[0]->type : NULL;
    if (info->result == RESULT_CARRIED)
        return parse_element_type(p, NULL);
    if (s->operand_count && (info->rule == RULE_ELEMENT || info->rule == RULE_BOOL))
        return parse_element_type(p, operand);
    if (info->result != RESULT_TENSOR)
        return parse_type(p, result_type_kind(info->result));
    bool tensor = operand && operand->kind != TYPE_SCALAR && operand->kind != TYPE_PTR;
    if (info->rule == RULE_SLICE || !tensor)
        return parse_slice_type(p, tensor ? operand : NULL, find_attr(s, ATTR_DIMS));
    return parse_type(p, operand->kind);
}

/* : T, T */
static bool parse_result_types(Parser *p, Statement *s, OpCode code)
{
    do {
        if (s->type_count == NAMES_MAX)
            return diag_error(p->diag, p->token.loc, "more than %d types", NAMES_MAX);
        const Type *t = parse_result_type(p, s, &op_info[code]);
        if (!t)
            return false;
        s->types[s->type_count++] = t;
    } while (parser_accept(p, ","));
    return true;
}

/* Types that follow when none were written. Operands are checked already. `op`
 * is NULL for structured ops, whose types follow from the operands alone. */
static bool infer_result_types(Parser *p, Statement *s, OpCode code, const Op *op)
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
    case RULE_SAME:
        s->types[s->type_count++] = s->operands[0]->type;
        return true;
    case RULE_LAST:
        s->types[s->type_count++] = s->operands[2]->type;
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
        return diag_error(p->diag, s->loc, "%s needs the type of its result", info->name);
    case RULE_NONE:
        break;
    }
    return true;
}

/* ---- ops ------------------------------------------------------------- */

static bool parse_plain_op(Parser *p, Statement *s, OpCode code)
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
    } else if (info->attrs & op_attr_bit(ATTR_VALUE) && !parse_value(p, s))
        return false;
    if (info->attrs & op_attr_bit(ATTR_PENDING) && !parse_pending(p, s))
        return false;
    if (!parse_words(p, s, info->attrs) || !parse_operands(p, s, info->attrs))
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

/* iter(%x = %init, ...): operands are the initial values, `carried` the names. */
static bool parse_iter(Parser *p, Statement *s, Token *carried)
{
    if (!parser_expect(p, "(", "after `iter`"))
        return false;
    while (p->token.kind == TOKEN_VALUE) {
        if (s->operand_count == NAMES_MAX)
            return diag_error(p->diag, p->token.loc, "more than %d carried values", NAMES_MAX);
        carried[s->operand_count] = p->token;
        parser_advance(p);
        if (!parser_expect(p, "=", "after the carried value's name"))
            return false;
        if (p->token.kind != TOKEN_VALUE)
            return parser_expected(p, "a value");
        Value *v = parse_value_use(p);
        if (!v)
            return false;
        s->broken |= !v->type;
        s->operands[s->operand_count++] = v;
        if (!parser_accept(p, ","))
            break;
    }
    return parser_expect(p, ")", "after the carried values");
}

/* (STAGES), after `pipelined` */
static bool parse_pipelined(Parser *p, Statement *s)
{
    if (!parser_expect(p, "(", "after `pipelined`"))
        return false;
    const Expr *stages = parse_expr(p, PRECEDENCE_ANY);
    if (!stages)
        return false;
    add_expr_attr(s, ATTR_PIPELINED, stages);
    return parser_expect(p, ")", "after the number of stages");
}

/* unroll [(ROUNDS)] */
static bool parse_unroll(Parser *p, Statement *s)
{
    const Expr *rounds = NULL;
    if (parser_accept(p, "(")) {
        rounds = parse_expr(p, PRECEDENCE_ANY);
        if (!rounds || !parser_expect(p, ")", "after the number of rounds"))
            return false;
    }
    add_expr_attr(s, ATTR_UNROLL, rounds);
    return true;
}

/* for %i in LOWER .. UPPER [step STEP] [pipelined(STAGES)] [unroll(N)] [iter(...)]
 * [: types] */
static bool parse_for_header(Parser *p, Statement *s, Token *index, Token *carried)
{
    parser_advance(p);
    *index = p->token;
    if (index->kind != TOKEN_VALUE)
        return parser_expected(p, "the name of the loop's index");
    parser_advance(p);
    if (!parser_expect(p, "in", "after the loop's index"))
        return false;
    const Expr *lower = parse_expr(p, PRECEDENCE_ANY);
    if (!lower || !parser_expect(p, "..", "between the loop's bounds"))
        return false;
    const Expr *upper = parse_expr(p, PRECEDENCE_ANY);
    if (!upper)
        return false;
    add_expr_attr(s, ATTR_LOWER, lower);
    add_expr_attr(s, ATTR_UPPER, upper);
    if (parser_accept(p, "step")) {
        const Expr *step = parse_expr(p, PRECEDENCE_ANY);
        if (!step)
            return false;
        add_expr_attr(s, ATTR_STEP, step);
    }
    if (parser_accept(p, "pipelined") && !parse_pipelined(p, s))
        return false;
    if (parser_accept(p, "unroll") && !parse_unroll(p, s))
        return false;
    if (parser_accept(p, "iter") && !parse_iter(p, s, carried))
        return false;
    return !parser_accept(p, ":") || parse_result_types(p, s, OP_for);
}

static bool define_region_argument(Parser *p, Region *r, const Token *name, const Type *t)
{
    return parser_define(p, name, build_region_argument(r, parser_symbol(p, name)->name,
                                                        name->loc, t));
}

static bool define_carried(Parser *p, const Statement *s, Region *body, const Token *carried)
{
    for (unsigned i = 0; i < s->operand_count; i++)
        if (!define_region_argument(p, body, &carried[i], s->operands[i]->type))
            return false;
    return true;
}

static bool parse_for(Parser *p, Statement *s)
{
    Token index, carried[NAMES_MAX];
    if (!parse_for_header(p, s, &index, carried) || s->broken ||
        (!s->type_count && !infer_result_types(p, s, OP_for, NULL)))
        return false;
    Op *op = build_op(p->m, OP_for, s->loc, s->operands, s->operand_count, s->attrs,
                      s->attr_count);
    Region *body = build_region(p->program, op);
    build_op_region(p->m, op, body);
    uint32_t mark = scope_mark(p);
    const Type *i64 = type_scalar(p->m, DTYPE_i64);
    bool ok = define_region_argument(p, body, &index, i64) &&
              define_carried(p, s, body, carried) && parse_region_body(p, body);
    scope_reset(p, mark);
    if (!ok)
        return false;
    op_insert(p->region, op, NULL);
    return define_results(p, s, op);
}

/* A place in the text to come back to. */
typedef struct Bookmark {
    Lexer lexer;
    Token token;
} Bookmark;

static Bookmark bookmark(const Parser *p)
{
    return (Bookmark){p->lexer, p->token};
}

static void go_to(Parser *p, Bookmark place)
{
    p->lexer = place.lexer;
    p->token = place.token;
}

/* Whether `iter` `(` follow, which no expression holds. */
static bool at_iter(Parser *p)
{
    Bookmark here = bookmark(p);
    bool found = parser_accept(p, "iter") && parser_at(p, "(");
    go_to(p, here);
    return found;
}

/* COND [iter(...)] [: types]. The condition may use what the loop carries, which
 * is named after it, so it is only passed here. */
static bool parse_while_header(Parser *p, Statement *s, Token *carried, Bookmark *cond,
                               const char **cond_end)
{
    parser_advance(p);
    *cond = bookmark(p);
    while (!at_iter(p) && !parser_at(p, ":") && !parser_at(p, "{") && !parser_at(p, "}") &&
           p->token.kind != TOKEN_END)
        parser_advance(p);
    *cond_end = p->token.start;
    if (parser_accept(p, "iter") && !parse_iter(p, s, carried))
        return false;
    if (parser_accept(p, ":") && !parse_result_types(p, s, OP_while))
        return false;
    return s->type_count || infer_result_types(p, s, OP_while, NULL);
}

/* The condition at `cond`, which ends where the header was read on. */
static bool parse_while_condition(Parser *p, Op *op, Bookmark cond, const char *cond_end)
{
    Bookmark body = bookmark(p);
    go_to(p, cond);
    const Expr *e = parse_expr(p, PRECEDENCE_ANY);
    if (!e)
        return false;
    if (p->token.start != cond_end)
        return parser_expected(p, "`iter` or a region after the condition");
    op_set_attr(p->m, op, (Attr){.kind = ATTR_COND, .expr = e});
    go_to(p, body);
    return true;
}

/* while COND [iter(...)] [: types] { .. } */
static bool parse_while(Parser *p, Statement *s)
{
    Token carried[NAMES_MAX];
    Bookmark cond;
    const char *cond_end;
    if (!parse_while_header(p, s, carried, &cond, &cond_end) || s->broken)
        return false;
    Op *op = build_op(p->m, OP_while, s->loc, s->operands, s->operand_count, NULL, 0);
    Region *body = build_region(p->program, op);
    build_op_region(p->m, op, body);
    uint32_t mark = scope_mark(p);
    bool ok = define_carried(p, s, body, carried) &&
              parse_while_condition(p, op, cond, cond_end) && parse_region_body(p, body);
    scope_reset(p, mark);
    if (!ok)
        return false;
    op_insert(p->region, op, NULL);
    return define_results(p, s, op);
}

static bool parse_branch(Parser *p, Op *op)
{
    Region *r = build_region(p->program, op);
    build_op_region(p->m, op, r);
    uint32_t mark = scope_mark(p);
    bool ok = parse_region_body(p, r);
    scope_reset(p, mark);
    return ok;
}

/* if COND [: types] { .. } [else { .. }] */
static bool parse_if(Parser *p, Statement *s)
{
    parser_advance(p);
    const Expr *cond = parse_expr(p, PRECEDENCE_ANY);
    if (!cond || (parser_accept(p, ":") && !parse_result_types(p, s, OP_if)))
        return false;
    add_expr_attr(s, ATTR_COND, cond);
    Op *op = build_op(p->m, OP_if, s->loc, NULL, 0, s->attrs, s->attr_count);
    if (!parse_branch(p, op))
        return false;
    if (parser_accept(p, "else")) {
        if (!parse_branch(p, op))
            return false;
    } else {
        Region *r = build_region(p->program, op);
        build_op_region(p->m, op, r);
        op_insert(r, build_op(p->m, OP_yield, s->loc, NULL, 0, NULL, 0), NULL);
    }
    const Op *yield = region_yield(op->regions[0]);
    if (!s->type_count)
        for (; s->type_count < yield->operand_count; s->type_count++)
            s->types[s->type_count] = yield->operands[s->type_count]->type;
    op_insert(p->region, op, NULL);
    return define_results(p, s, op);
}

/* thread_group(BEGIN, COUNT) { .. } */
static bool parse_thread_group(Parser *p, Statement *s)
{
    int64_t begin, count;
    parser_advance(p);
    if (!parser_expect(p, "(", "after `thread_group`") ||
        !parse_constant(p, "the first thread of a thread_group", &begin) ||
        !parser_expect(p, ",", "between the first thread and the number of threads") ||
        !parse_constant(p, "the number of threads of a thread_group", &count) ||
        !parser_expect(p, ")", "after the number of threads"))
        return false;
    add_expr_attr(s, ATTR_BEGIN, expr_constant(&p->m->exprs, begin));
    add_expr_attr(s, ATTR_THREADS, expr_constant(&p->m->exprs, count));
    Op *op = build_op(p->m, OP_thread_group, s->loc, NULL, 0, s->attrs, s->attr_count);
    if (!parse_branch(p, op))
        return false;
    op_insert(p->region, op, NULL);
    return define_results(p, s, op);
}

static bool parse_named_op(Parser *p, Statement *s)
{
    s->loc = p->token.loc;
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "an op");
    OpCode code = op_find(p->token.start, p->token.len);
    if (code == OP_for)
        return parse_for(p, s);
    if (code == OP_while)
        return parse_while(p, s);
    if (code == OP_if)
        return parse_if(p, s);
    if (code == OP_thread_group)
        return parse_thread_group(p, s);
    if (code == OP_COUNT)
        return diag_error(p->diag, p->token.loc, "unknown op %s", token_text(p, &p->token));
    return parse_plain_op(p, s, code);
}

/* ---- regions --------------------------------------------------------- */

/* An op must stand alone on its line: what is left over was not understood. */
static bool check_statement_end(Parser *p)
{
    if (p->token.begins_line || p->token.kind == TOKEN_END || parser_at(p, "}"))
        return true;
    return parser_expected(p, "the end of the line");
}

static bool parse_statements(Parser *p)
{
    bool ok = true;
    while (!parser_at(p, "}") && p->token.kind != TOKEN_END) {
        if (parser_at(p, "when")) {
            ok &= parse_when(p, parse_statements);
            continue;
        }
        Statement s = {.loc = p->token.loc};
        const char *start = p->token.start;
        bool parsed = parse_result_names(p, &s) && parse_named_op(p, &s) && check_statement_end(p);
        if (!parsed) {
            define_broken_results(p, &s);
            parser_skip_statement(p, start);
        }
        ok &= parsed;
    }
    return ok;
}

bool parse_region_body(Parser *p, Region *region)
{
    Region *outer = p->region;
    if (!parser_enter(p))
        return false;
    bool ok = parser_expect(p, "{", "before a region");
    if (ok) {
        p->region = region;
        ok = parse_statements(p);
        p->region = outer;
        Loc end = p->token.loc;
        ok = parser_expect(p, "}", "after a region") && ok;
        if (region->parent && !region_yield(region))
            op_insert(region, build_op(p->m, OP_yield, end, NULL, 0, NULL, 0), NULL);
    }
    parser_leave(p);
    return ok;
}

bool parse_when(Parser *p, bool (*items)(Parser *p))
{
    int64_t cond;
    const char *start = p->token.start;
    parser_advance(p);
    if (!parse_constant(p, "the condition of `when`", &cond)) {
        parser_skip_statement(p, start);
        return false;
    }
    bool taken = false, ok = true;
    for (;;) {
        if (!parser_at(p, "{"))
            return parser_expect(p, "{", "after `when`");
        if (cond && !taken) {
            if (!parser_enter(p))
                return false;
            parser_advance(p);
            ok = items(p);
            ok = parser_expect(p, "}", "after `when`") && ok;
            parser_leave(p);
            taken = true;
        } else if (!parser_skip_braces(p)) {
            return false;
        }
        if (!parser_accept(p, "else"))
            return ok;
        cond = !taken;
        if (parser_accept(p, "when") && !parse_constant(p, "the condition of `when`", &cond))
            return false;
    }
}
