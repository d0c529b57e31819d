/* Parsing of statements one after another: regions, and parts of them under `when`. */
#include "syntax/statement.h"

/* Returns true where an expression begins, and no op in its own form: `not` is an operator, too, which binds more tightly
 * than what may follow its operand. */
static bool at_expression(Parser *p)
{
    if (p->token.kind != TOKEN_NAME)
        return !parser_at(p, "{") && !parser_at(p, "}");
    OpCode code = op_find(p->token.start, p->token.len);
    if (code != OP_COUNT)
        return code == OP_not || (op_is_callable(code) && parser_at_call(p));
    return symbol_binding(p, parser_symbol(p, &p->token)) != BINDING_NONE || parser_at_call(p) ||
           parser_at(p, "inf") || parser_at(p, "nan");
}

/* Returns true at %a, %b = */
static bool at_binding(Parser *p)
{
    Bookmark here = parser_bookmark(p);
    bool more = p->token.kind == TOKEN_VALUE;
    while (more) {
        parser_advance(p);
        more = parser_accept(p, ",") && p->token.kind == TOKEN_VALUE;
    }
    bool binds = here.token.kind == TOKEN_VALUE && parser_at(p, "=");
    parser_go_to(p, here);
    return binds;
}

bool parser_at_statement(Parser *p)
{
    bool op = p->token.kind == TOKEN_NAME && op_find(p->token.start, p->token.len) != OP_COUNT;
    return p->token.begins_line &&
           (op || at_binding(p) || parser_at(p, "@") || parser_at(p, "}") || parser_at(p, "when") ||
            parser_at(p, "return"));
}

/* Reads the terms of `yield` or `return` that end the text of the sink. */
static bool parse_sink(Parser *p, Sink *sink)
{
    sink->filled = true;
    sink->loc = p->token.loc;
    parser_advance(p);
    if (p->token.begins_line || parser_at(p, "}"))
        return true;
    do {
        if (sink->count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d results", LIMIT_NAMES);
        if (!parse_typed_term(p, &sink->terms[sink->count]))
            return false;
        sink->count++;
    } while (parser_accept(p, ","));
    return true;
}

/* Returns true where the text ends that gives its values to p->sink. */
static bool at_sink(const Parser *p)
{
    return p->sink && p->sink->region == p->region && parser_at(p, p->sink->word);
}

/* Reports, once, a statement in the sink's region after a `when` whose branch held its word. */
static bool check_not_passed(Parser *p)
{
    Sink *sink = p->sink;
    if (!sink || !sink->filled || sink->passed || sink->region != p->region)
        return true;
    sink->passed = true;
    diag_error(p->diag, p->token.loc, "`%s` stands above, in a branch that is taken: what follows "
               "belongs into `else`", sink->word);
    return diag_note(p->diag, sink->loc, "`%s` is here", sink->word);
}

/* %x = EXPRESSION */
static bool parse_binding(Parser *p, Statement *s)
{
    Term t;
    return parse_term(p, PRECEDENCE_ANY, &t) && bind_term(p, s, &t);
}

/* @f(%x), or %a, %b = @f(%x) */
static bool parse_call_statement(Parser *p, Statement *s)
{
    Sink *sink = arena_new(&p->m->scratch, Sink);
    return parse_call(p, sink) && bind_terms(p, s, sink);
}

/* Reports `return` where no function's body ends. */
static bool report_return(Parser *p)
{
    return diag_error(p->diag, p->token.loc, p->call ? "`return` stands at the end of a function's body, "
                      "not inside of a loop or branch" : "`return` gives the values of a function: a "
                      "program stores its own, and ends early by `exit`");
}

/* Reports a name that is no op's; for jumps out of a loop's body, how to do without. */
static bool report_unknown_op(Parser *p)
{
    Loc loc = p->token.loc;
    if (parser_at(p, "break"))
        return diag_error(p->diag, loc, "a loop has no `break`: it ends where its condition does, "
                          "as in `while %%i < 8 and not %%found iter(%%i = 0, %%found = 0)`");
    if (parser_at(p, "continue"))
        return diag_error(p->diag, loc, "a loop has no `continue`: put the statements that it "
                          "would pass over into `if`, which may give values to `yield`");
    if (parser_at(p, "return"))
        return report_return(p);
    return diag_error(p->diag, loc, "unknown op %s%s", token_text(p, &p->token),
                      nearest_op_text(p, &p->token));
}

/* Reports `yield` in the body of a function, outside of its loops and branches. */
static bool check_yield(Parser *p, OpCode code)
{
    return code != OP_yield || !p->sink || p->sink->region != p->region ||
           diag_error(p->diag, p->token.loc, "`yield` would end a region of what calls: a function "
                      "gives its values by `return`");
}

static bool parse_named_op(Parser *p, Statement *s)
{
    s->loc = p->token.loc;
    if (parser_at(p, "@") && s->name_count != 1)
        return parse_call_statement(p, s);
    if (s->name_count && at_expression(p))
        return parse_binding(p, s);
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
    return code == OP_COUNT ? report_unknown_op(p)
                            : check_yield(p, code) && parse_plain_op(p, s, code);
}

/* Requires that an op stands alone on its line: the rest would not have been understood. */
static bool check_statement_end(Parser *p)
{
    if (p->token.begins_line || p->token.kind == TOKEN_END || parser_at(p, "}"))
        return true;
    return parser_expected(p, "the end of the line");
}

bool parse_sink_text(Parser *p, Sink *sink, bool (*read)(Parser *p))
{
    Sink *outer = p->sink;
    uint32_t mark = scope_mark(p);
    sink->region = p->region;
    p->sink = sink;
    bool ok = read(p);
    p->sink = outer;
    scope_reset(p, mark);
    return ok;
}

static bool parse_statements(Parser *p);

static bool parse_when_statements(Parser *p)
{
    return parse_when(p, parse_statements);
}

/* %a, %b = when COND { .. yield %p, %q } else { .. }: the branch is read as part of the
 * region around it. */
static bool parse_when_value(Parser *p, Statement *s)
{
    Sink *sink = arena_new(&p->m->scratch, Sink);
    *sink = (Sink){.word = "yield"};
    s->loc = p->token.loc;
    return parse_sink_text(p, sink, parse_when_statements) && bind_terms(p, s, sink);
}

static bool parse_statement_text(Parser *p, Statement *s)
{
    if (!parse_result_names(p, s))
        return false;
    if (s->name_count && parser_at(p, "when"))
        return parse_when_value(p, s);
    return parse_named_op(p, s);
}

static bool parse_statement(Parser *p)
{
    ArenaMark mark = arena_mark(&p->m->scratch);
    Statement *s = arena_new(&p->m->scratch, Statement);
    const char *start = p->token.start;
    s->loc = p->token.loc;
    bool parsed = parse_statement_text(p, s) && check_statement_end(p);
    if (!parsed) {
        define_broken_results(p, s);
        parser_skip_statement(p, start);
    }
    arena_reset(&p->m->scratch, mark);
    return parsed;
}

static bool parse_statements(Parser *p)
{
    bool ok = true;
    while (!parser_at(p, "}") && p->token.kind != TOKEN_END) {
        if (parser_at(p, "when")) {
            ok &= parse_when(p, parse_statements);
            continue;
        }
        ok &= check_not_passed(p);
        if (at_sink(p)) {
            ok &= parse_sink(p, p->sink) && check_statement_end(p);
            return ok;
        }
        diag_check_time(p->diag, p->token.loc);
        ok &= parse_statement(p);
    }
    return ok;
}

bool parse_sink_body(Parser *p)
{
    if (!parser_enter(p, &p->regions))
        return false;
    Loc begin = p->token.loc;
    bool ok = parser_expect(p, "{", "before a function's body") && parse_statements(p) &&
              parser_expect_end(p, "after a function's body", "the body", begin);
    p->regions--;
    return ok;
}

bool parse_region_body(Parser *p, Region *region)
{
    Region *outer = p->region;
    Loc begin = p->token.loc;
    if (!parser_enter(p, &p->regions))
        return false;
    bool ok = parser_expect(p, "{", "before a region");
    if (ok) {
        p->region = region;
        ok = parse_statements(p);
        p->region = outer;
        Loc end = p->token.loc;
        ok = parser_expect_end(p, "after a region", "the region", begin) && ok;
        if (region->parent && !region_yield(region))
            op_insert(region, build_op(p->m, OP_yield, end, NULL, 0, NULL, 0), NULL);
    }
    p->regions--;
    return ok;
}

/* The condition after `else when`, which is passed unread where a branch above was taken: that one
 * may guard it, as in `when K == 0 { .. } else when N / K > 2 { .. }`. */
static bool parse_next_condition(Parser *p, bool taken, int64_t *cond)
{
    if (!taken)
        return parse_constant(p, "the condition of `when`", cond);
    while (!parser_at(p, "{") && !parser_at(p, "}") && p->token.kind != TOKEN_END)
        parser_advance(p);
    return true;
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
            if (!parser_enter(p, &p->regions))
                return false;
            Loc begin = p->token.loc;
            parser_advance(p);
            ok = items(p);
            p->regions--;
            if (!ok && !parser_at(p, "}") && p->token.kind != TOKEN_END)
                return false;       /* in the middle of an argument */
            ok = parser_expect_end(p, "after `when`", "what `when` takes", begin) && ok;
            taken = true;
        } else if (!parser_skip_braces(p)) {
            return false;
        }
        if (!parser_accept(p, "else"))
            return ok;
        cond = !taken;
        if (parser_accept(p, "when") && !parse_next_condition(p, taken, &cond))
            return false;
    }
}
