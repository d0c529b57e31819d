/* Parsing of statements one after another: regions, and parts of them under `when`. */
#include "syntax/statement.h"

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

/* Requires that an op stands alone on its line: the rest would not have been understood. */
static bool check_statement_end(Parser *p)
{
    if (p->token.begins_line || p->token.kind == TOKEN_END || parser_at(p, "}"))
        return true;
    return parser_expected(p, "the end of the line");
}

static bool parse_statement(Parser *p)
{
    ArenaMark mark = arena_mark(&p->m->scratch);
    Statement *s = arena_new(&p->m->scratch, Statement);
    const char *start = p->token.start;
    s->loc = p->token.loc;
    bool parsed = parse_result_names(p, s) && parse_named_op(p, s) && check_statement_end(p);
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
        diag_check_time(p->diag, p->token.loc);
        ok &= parse_statement(p);
    }
    return ok;
}

bool parse_region_body(Parser *p, Region *region)
{
    Region *outer = p->region;
    if (!parser_enter(p, &p->regions))
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
    p->regions--;
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
            if (!parser_enter(p, &p->regions))
                return false;
            parser_advance(p);
            ok = items(p);
            ok = parser_expect(p, "}", "after `when`") && ok;
            p->regions--;
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
