/* Parsing of ops with regions: for, while, if, thread_group. */
#include "syntax/statement.h"

#include "ir/op_attrs.h"

/* iter(%x = %init, ...): operands are the initial values, `carried` the names. */
static bool parse_iter(Parser *p, Statement *s, Token *carried)
{
    if (!parser_expect(p, "(", "after `iter`"))
        return false;
    if (parser_accept(p, ")"))
        return true;
    do {
        if (p->token.kind != TOKEN_VALUE)
            return parser_expected(p, "the name of a carried value");
        if (s->operand_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d carried values",
                              LIMIT_NAMES);
        carried[s->operand_count] = p->token;
        parser_advance(p);
        if (!parser_expect(p, "=", "after the carried value's name"))
            return false;
        Term t;
        if (!parse_typed_term(p, &t) ||
            !(s->operands[s->operand_count] = term_value(p, &t, NULL)))
            return false;
        s->operand_count++;
    } while (parser_accept(p, ","));
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
    statement_add_expr(s, ATTR_PIPELINED, stages);
    return parser_expect(p, ")", "after the number of stages");
}

/* unroll [(ITERATIONS)] */
static bool parse_unroll(Parser *p, Statement *s)
{
    const Expr *rounds = NULL;
    if (parser_accept(p, "(")) {
        rounds = parse_expr(p, PRECEDENCE_ANY);
        if (!rounds || !parser_expect(p, ")", "after the number of rounds"))
            return false;
    }
    statement_add_expr(s, ATTR_UNROLL, rounds);
    return true;
}

/* [drain(WORD)] */
static bool parse_drain(Parser *p, Statement *s)
{
    if (!parser_accept(p, "drain"))
        return true;
    if (!parser_expect(p, "(", "after `drain`"))
        return false;
    const char *word = arena_strndup(&p->m->arena, p->token.start, p->token.len);
    unsigned number = attr_word_find(ATTR_DRAIN, word);
    if (number == DRAIN_NONE)
        return parser_expected(p, attr_words_text(&p->m->scratch, ATTR_DRAIN));
    statement_add(s, (Attr){.kind = ATTR_DRAIN, .word = number});
    parser_advance(p);
    return parser_expect(p, ")", "after where products are waited for");
}

/* for %i in LOWER .. UPPER [step STEP] [pipelined(STAGES)] [unroll(N)] [drain(WORD)]
 * [iter(...)] [: types] */
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
    statement_add_expr(s, ATTR_LOWER, lower);
    statement_add_expr(s, ATTR_UPPER, upper);
    if (parser_accept(p, "step")) {
        const Expr *step = parse_expr(p, PRECEDENCE_ANY);
        if (!step)
            return false;
        statement_add_expr(s, ATTR_STEP, step);
    }
    if (parser_accept(p, "pipelined") && !parse_pipelined(p, s))
        return false;
    if (parser_accept(p, "unroll") && !parse_unroll(p, s))
        return false;
    if (!parse_drain(p, s) || (parser_accept(p, "iter") && !parse_iter(p, s, carried)))
        return false;
    return !parser_accept(p, ":") || parse_result_types(p, s, OP_for);
}

static bool define_region_argument(Parser *p, Region *r, const Token *name, const Type *t,
                                   Rebinding how)
{
    Value *v = build_region_argument(r, parser_symbol(p, name)->name, name->loc, t);
    return parser_define(p, name, v, r, how);
}

static bool define_index(Parser *p, const Statement *s, Region *body)
{
    return define_region_argument(p, body, &s->index, type_scalar(p->m, DTYPE_i64), REBIND_NOT);
}

static bool define_carried(Parser *p, const Statement *s, Region *body)
{
    bool ok = true;
    for (unsigned i = 0; i < s->operand_count; i++)
        ok &= define_region_argument(p, body, &s->carried[i], s->operands[i]->type, REBIND_OUTER);
    return ok;
}

/* ---- errors ---------------------------------------------------------------------------
 *
 * An op with an error in its header or in a region is inserted, too, and the rest of its regions is
 * read: their errors are reported together, and an editor knows their values. No pass sees it. */

/* Inserts the op and defines its results, of a broken one those whose types are known. */
static bool end_control(Parser *p, const Statement *s, Op *op, bool ok)
{
    op_insert(p->region, op, NULL);
    return ok ? define_results(p, s, op)
              : s->name_count == s->type_count && define_results(p, s, op) && ok;
}

/* Returns true at a token that goes on with a header of a loop, though it begins a line. */
static bool continues_header(const Parser *p, unsigned depth)
{
    bool op = p->token.kind == TOKEN_NAME && op_find(p->token.start, p->token.len) != OP_COUNT;
    return !p->token.begins_line || (!op && (depth || p->token.kind != TOKEN_VALUE));
}

/* Returns true where `iter` or `drain` and `(` follow, which no expression holds. */
static bool at_clause(Parser *p)
{
    Bookmark here = parser_bookmark(p);
    bool found = (parser_accept(p, "iter") || parser_accept(p, "drain")) && parser_at(p, "(");
    parser_go_to(p, here);
    return found;
}

/* Reads iter(..) of a header with an error. The name of the value that cannot be read becomes a broken
 * one. */
static void parse_broken_iter(Parser *p, Statement *s)
{
    bool ok = parse_iter(p, s, s->carried);
    const Token *name = &s->carried[s->operand_count];
    if (!ok && s->operand_count < LIMIT_NAMES && name->kind == TOKEN_VALUE)
        define_broken(p, name);
}

/* Goes from the word of a loop, over a header that cannot be read at `wrong`, to the brace of its
 * region; reads iter(..) after that place. Other names that the header binds, and that are not
 * visible, become broken values. False where no region follows. */
static bool skip_header(Parser *p, Statement *s, const char *wrong)
{
    unsigned depth = 0;
    for (parser_advance(p); !parser_at(p, "{") && continues_header(p, depth);) {
        if (p->token.kind == TOKEN_END || parser_at(p, "}"))
            break;
        if (p->token.start >= wrong && at_clause(p) && parser_accept(p, "iter")) {
            parse_broken_iter(p, s);
            continue;
        }
        depth += parser_at(p, "(");
        depth -= depth && parser_at(p, ")");
        if (p->token.kind == TOKEN_VALUE && parser_before(p, "="))
            define_broken(p, &p->token);
        parser_advance(p);
    }
    return parser_at(p, "{");
}

/* Reads the region of a loop whose header has an error; false. The index and the carried values
 * that could be read are known there. */
static bool parse_broken_loop(Parser *p, Statement *s, OpCode code, Bookmark head)
{
    Op *op = build_op(p->m, code, s->loc, NULL, 0, NULL, 0);
    Region *body = build_region(p->program, op);
    build_op_region(p->m, op, body);
    Bookmark here = parser_bookmark(p);
    uint32_t mark = scope_mark(p);
    parser_go_to(p, head);
    if (s->index.kind == TOKEN_VALUE)
        define_index(p, s, body);
    if (skip_header(p, s, here.token.start) && define_carried(p, s, body))
        parse_region_body(p, body);
    else
        parser_go_to(p, here);
    scope_reset(p, mark);
    op_insert(p->region, op, NULL);
    return false;
}

/* ---- ops -------------------------------------------------------------------------------- */

bool parse_for(Parser *p, Statement *s)
{
    Bookmark head = parser_bookmark(p);
    if (!parse_for_header(p, s, &s->index, s->carried) ||
        (!s->type_count && !infer_result_types(p, s, OP_for, NULL)))
        return parse_broken_loop(p, s, OP_for, head);
    Op *op = build_op(p->m, OP_for, s->loc, s->operands, s->operand_count, s->attrs,
                      s->attr_count);
    Region *body = build_region(p->program, op);
    build_op_region(p->m, op, body);
    uint32_t mark = scope_mark(p);
    bool ok = define_index(p, s, body);
    ok = define_carried(p, s, body) && ok;
    ok = parse_region_body(p, body) && ok;
    scope_reset(p, mark);
    return end_control(p, s, op, ok);
}

/* Reports a `=` after a condition that is meant to compare. */
static bool check_no_binding(Parser *p)
{
    return !parser_at(p, "=") || diag_error(p->diag, p->token.loc, "`=` binds a name: a condition "
                                            "compares by `==`");
}

/* Passes the condition of a while: up to `drain`, `iter`, the region, or a colon that belongs to no
 * `?` of the condition and stands in no brackets. */
static void skip_condition(Parser *p)
{
    unsigned depth = 0, choices = 0;
    while (!at_clause(p) && !parser_at(p, "{") && !parser_at(p, "}") &&
           p->token.kind != TOKEN_END) {
        bool colon = parser_at(p, ":") && !depth;
        if (colon && !choices)
            return;
        choices -= colon;
        choices += parser_at(p, "?") && !depth;
        depth += parser_at(p, "(") || parser_at(p, "[");
        depth -= depth && (parser_at(p, ")") || parser_at(p, "]"));
        parser_advance(p);
    }
}

/* Reads COND [drain(WORD)] [iter(...)] [: types]. The condition may use the carried values, which
 * are named after it, so it is only passed here. */
static bool parse_while_header(Parser *p, Statement *s, Token *carried, Bookmark *cond,
                               const char **cond_end)
{
    parser_advance(p);
    *cond = parser_bookmark(p);
    skip_condition(p);
    *cond_end = p->token.start;
    if (!parse_drain(p, s) || (parser_accept(p, "iter") && !parse_iter(p, s, carried)))
        return false;
    if (parser_accept(p, ":") && !parse_result_types(p, s, OP_while))
        return false;
    return s->type_count || infer_result_types(p, s, OP_while, NULL);
}

/* The condition at `cond`, which ends where the header was read on; then stands there again. */
static bool parse_while_condition(Parser *p, Op *op, Bookmark cond, const char *cond_end)
{
    Bookmark body = parser_bookmark(p);
    parser_go_to(p, cond);
    p->no_ops = "in the condition of a while, which is computed again and again";
    const Expr *e = parse_expr(p, PRECEDENCE_ANY);
    p->no_ops = NULL;
    bool ok = e && check_no_binding(p) &&
              (p->token.start == cond_end ||
                    parser_expected(p, "`iter` or a region after the condition"));
    if (ok)
        op_set_attr(p->m, op, (Attr){.kind = ATTR_COND, .expr = e});
    parser_go_to(p, body);
    return ok;
}

/* while COND [drain(WORD)] [iter(...)] [: types] { .. } */
bool parse_while(Parser *p, Statement *s)
{
    Bookmark cond;
    const char *cond_end;
    Bookmark head = parser_bookmark(p);
    if (!parse_while_header(p, s, s->carried, &cond, &cond_end))
        return parse_broken_loop(p, s, OP_while, head);
    Op *op = build_op(p->m, OP_while, s->loc, s->operands, s->operand_count, s->attrs,
                      s->attr_count);
    Region *body = build_region(p->program, op);
    build_op_region(p->m, op, body);
    uint32_t mark = scope_mark(p);
    bool ok = define_carried(p, s, body);
    ok = parse_while_condition(p, op, cond, cond_end) && ok;
    ok = parse_region_body(p, body) && ok;
    scope_reset(p, mark);
    return end_control(p, s, op, ok);
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

/* Reads `else` and its branch, or makes an empty one. */
static bool parse_else(Parser *p, const Statement *s, Op *op)
{
    if (parser_at(p, "elif"))
        return diag_error(p->diag, p->token.loc, "there is no `elif`: an `if` nests, as in "
                          "`else { if .. }`");
    if (parser_accept(p, "else"))
        return parser_at(p, "if")
                   ? diag_error(p->diag, p->token.loc, "`else` takes a region: an `if` nests, as "
                                "in `else { if .. }`")
                   : parse_branch(p, op);
    Region *r = build_region(p->program, op);
    build_op_region(p->m, op, r);
    op_insert(r, build_op(p->m, OP_yield, s->loc, NULL, 0, NULL, 0), NULL);
    return true;
}

/* Takes the types of the first branch's values, where the text has none. */
static void infer_if_types(Statement *s, const Op *op)
{
    const Op *yield = region_yield(op->regions[0]);
    for (; yield && s->type_count < yield->operand_count; s->type_count++)
        s->types[s->type_count] = yield->operands[s->type_count]->type;
}

/* if COND [drain(WORD)] [: types] { .. } [else { .. }] */
bool parse_if(Parser *p, Statement *s)
{
    parser_advance(p);
    const Expr *cond = parse_expr(p, PRECEDENCE_ANY);
    if (!cond || !check_no_binding(p) || !parse_drain(p, s) ||
        (parser_accept(p, ":") && !parse_result_types(p, s, OP_if)))
        return false;
    statement_add_expr(s, ATTR_COND, cond);
    Op *op = build_op(p->m, OP_if, s->loc, NULL, 0, s->attrs, s->attr_count);
    bool ok = parse_branch(p, op);
    ok = parse_else(p, s, op) && ok;
    if (!s->type_count)
        infer_if_types(s, op);
    return end_control(p, s, op, ok);
}

/* (BEGIN, COUNT) [drain(WORD)] */
static bool parse_group_header(Parser *p, Statement *s)
{
    int64_t begin, count;
    if (!parser_expect(p, "(", "after `thread_group`") ||
        !parse_constant(p, "the first thread of a thread_group", &begin) ||
        !parser_expect(p, ",", "between the first thread and the number of threads") ||
        !parse_constant(p, "the number of threads of a thread_group", &count) ||
        !parser_expect(p, ")", "after the number of threads") || !parse_drain(p, s))
        return false;
    statement_add_expr(s, ATTR_BEGIN, expr_constant(&p->m->exprs, begin));
    statement_add_expr(s, ATTR_THREADS, expr_constant(&p->m->exprs, count));
    return true;
}

/* thread_group(BEGIN, COUNT) [drain(WORD)] { .. } */
bool parse_thread_group(Parser *p, Statement *s)
{
    parser_advance(p);
    if (!parse_group_header(p, s))
        return false;
    Op *op = build_op(p->m, OP_thread_group, s->loc, NULL, 0, s->attrs, s->attr_count);
    bool ok = parse_branch(p, op);
    return end_control(p, s, op, ok);
}
