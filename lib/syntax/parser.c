/* The parser's frame: tokens, names, recovery, module items, programs. */
#include "syntax/term.h"

#include "support/ascii.h"
#include "support/limits.h"
#include "support/numeral.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens --------------------------------------------------------- */

void parser_advance(Parser *p)
{
    int64_t most = diag_limit(p->diag, LIMIT_ID_IDENTIFIER);
    p->token = lexer_next(&p->lexer);
    Token *t = &p->token;
    if ((t->kind != TOKEN_NAME && t->kind != TOKEN_VALUE) || t->len <= most)
        return;
    t->kind = TOKEN_BAD;
    t->problem = arena_printf(&p->m->arena, "a name of %u bytes, the limit is %lld", t->len,
                              (long long)most);
}

bool parser_before(const Parser *p, const char *text)
{
    Lexer ahead = p->lexer;
    Token next = lexer_next(&ahead);
    return token_is(&next, text);
}

bool parser_at_call(const Parser *p)
{
    return p->token.kind == TOKEN_NAME && parser_before(p, "(");
}

bool parser_touches(const Parser *p)
{
    char before = p->token.start[-1];
    return before == '_' || ascii_is_alphanumeric(before);
}

bool parser_accept(Parser *p, const char *text)
{
    if (!parser_at(p, text))
        return false;
    parser_advance(p);
    return true;
}

const char *token_text(Parser *p, const Token *t)
{
    if (t->kind == TOKEN_END)
        return "the end of the text";
    return arena_printf(&p->m->arena, "`%s%.*s`", t->kind == TOKEN_VALUE ? "%" : "",
                        (int)(t->len < 64 ? t->len : 64), t->start);
}

bool parser_expected(Parser *p, const char *what)
{
    if (p->token.kind == TOKEN_END) {
        if (p->end_reported)
            return false;
        p->end_reported = true;
    }
    if (p->token.kind == TOKEN_BAD)
        return diag_error(p->diag, p->token.loc, "expected %s, got %s, %s", what,
                          token_text(p, &p->token), p->token.problem);
    return diag_error(p->diag, p->token.loc, "expected %s, got %s", what,
                      token_text(p, &p->token));
}

bool parser_expect(Parser *p, const char *text, const char *where)
{
    if (parser_accept(p, text))
        return true;
    return parser_expected(p, arena_printf(&p->m->arena, "`%s` %s", text, where));
}

bool parser_expect_end(Parser *p, const char *where, const char *what, Loc begin)
{
    bool ends = p->token.kind == TOKEN_END && !p->end_reported;
    if (parser_expect(p, "}", where))
        return true;
    return ends && diag_note(p->diag, begin, "%s begins here", what);
}

bool parser_enter(Parser *p, unsigned *levels)
{
    int64_t most = diag_limit(p->diag, LIMIT_ID_NESTING);
    if (*levels >= most)
        return diag_error(p->diag, p->token.loc, "nested deeper than %lld", (long long)most);
    ++*levels;
    return true;
}

bool parser_skip_braces(Parser *p)
{
    size_t depth = 0;
    Loc begin = p->token.loc;
    do {
        depth += parser_at(p, "{");
        depth -= parser_at(p, "}");
        if (p->token.kind == TOKEN_END && p->end_reported)
            return false;
        if (p->token.kind == TOKEN_END)
            return parser_expected(p, "`}`") || diag_note(p->diag, begin, "the `{` is here");
        parser_advance(p);
    } while (depth);
    return true;
}

static bool at_item(const Parser *p)
{
    return parser_at(p, "param") || parser_at(p, "layout") || parser_at(p, "when") ||
           parser_at(p, "program") || parser_at(p, "function") || parser_at(p, "import");
}

/* Returns true when reading can go on at the token after an error. */
static bool can_resume(const Parser *p)
{
    if (p->region)
        return p->token.begins_line || parser_at(p, "}");
    return (p->token.begins_line && at_item(p)) || (p->regions && parser_at(p, "}"));
}

void parser_skip_statement(Parser *p, const char *start)
{
    while (p->token.kind != TOKEN_END) {
        if (p->token.start != start && can_resume(p))
            return;
        if (parser_at(p, "{"))
            parser_skip_braces(p);
        else
            parser_advance(p);
    }
}

/* ---- names ---------------------------------------------------------- */

static bool symbol_equal(const void *x, const void *y)
{
    const Symbol *a = x, *b = y;
    return a->len == b->len && !memcmp(a->name, b->name, a->len);
}

Symbol *parser_symbol(Parser *p, const Token *t)
{
    Symbol key = {.name = t->start, .len = t->len};
    uint64_t hash = hash_bytes(0, t->start, t->len);
    const Symbol *known = intern_find(&p->symbols, hash, &key);
    if (known)
        return (Symbol *)known;
    Symbol *s = arena_new(&p->m->arena, Symbol);
    s->name = arena_strndup(&p->m->arena, t->start, t->len);
    s->len = t->len;
    intern_add(&p->symbols, hash, s);
    return s;
}

/* Returns true when `s`, which is visible, may be bound again in `region`. */
static bool can_rebind(const Symbol *s, const Region *region, Rebinding how)
{
    bool program_body = region && !region->parent;
    if (how == REBIND_REGION)
        return s->region == region || (!s->region && program_body);
    return how == REBIND_OUTER && s->region != region;
}

static bool report_rebinding(Parser *p, const Token *name, const Symbol *s, Rebinding how)
{
    if (how == REBIND_REGION)
        diag_error(p->diag, name->loc, "%%%s would hide the value of an outer region, which only "
                   "iter and yield change", s->name);
    else
        diag_error(p->diag, name->loc, "%%%s is defined twice", s->name);
    return diag_note(p->diag, s->value->loc, "%%%s is defined here", s->name);
}

bool parser_define(Parser *p, const Token *name, Value *v, const Region *region, Rebinding how)
{
    Symbol *s = parser_symbol(p, name);
    bool ok = !symbol_value(p, s) || can_rebind(s, region, how) ||
              report_rebinding(p, name, s, how);
    int64_t most = diag_limit(p->diag, LIMIT_ID_VALUES);
    if (p->m->value_count > most) {
        if (!p->values_reported)
            diag_error(p->diag, name->loc, "more than %lld values", (long long)most);
        p->values_reported = true;
        return false;
    }
    arena_push(&p->m->arena, p->scope, p->scope_count, p->scope_capacity,
               ((Shadow){s, s->value, s->region, s->scope}));
    s->value = v;
    s->region = region;
    s->scope = p->scope_id;
    return ok;
}

Value *parse_value_use(Parser *p)
{
    Symbol *s = parser_symbol(p, &p->token);
    Value *v = symbol_value(p, s);
    if (!v)
        diag_error(p->diag, p->token.loc, "%%%s is not defined", s->name);
    parser_advance(p);
    return v;
}

uint32_t scope_mark(const Parser *p)
{
    return p->scope_count;
}

void scope_reset(Parser *p, uint32_t mark)
{
    assert(mark <= p->scope_count);
    while (p->scope_count > mark) {
        Shadow shadow = p->scope[--p->scope_count];
        shadow.symbol->value = shadow.before;
        shadow.symbol->region = shadow.region;
        shadow.symbol->scope = shadow.scope;
    }
}

/* ---- parameters and layouts ------------------------------------------ */

bool parser_is_reserved(const Token *t)
{
    static const char *const words[] = {"bits", "ptr", "when", "log2", "inf", "nan"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (token_is(t, words[i]))
            return true;
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++)
        if (token_is(t, scalar_op_info[op].spelling))
            return true;
    return parse_is_layout_word(t) || dtype_find(t->start, t->len) != DTYPE_none;
}

bool parser_is_word(const Token *t)
{
    static const char *const words[] = {
        "tilus", "import", "param", "layout", "program", "function", "type", "mbarrier", "else",
        "return", "in", "step", "pipelined", "unroll", "drain", "iter"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (token_is(t, words[i]))
            return true;
    return parser_is_reserved(t) || op_find(t->start, t->len) != OP_COUNT;
}

/* Takes a fresh name; NULL after an error. */
static Symbol *parse_binding_name(Parser *p, const char *what)
{
    if (p->token.kind != TOKEN_NAME) {
        parser_expected(p, what);
        return NULL;
    }
    if (parser_is_word(&p->token)) {
        diag_error(p->diag, p->token.loc, "%s is a word of the language",
                   token_text(p, &p->token));
        return NULL;
    }
    Symbol *s = parser_symbol(p, &p->token);
    if (s->binding != BINDING_NONE) {
        diag_error(p->diag, p->token.loc, "%s is defined twice", s->name);
        diag_note(p->diag, s->loc, "%s is defined here", s->name);
        return NULL;
    }
    s->loc = p->token.loc;
    parser_advance(p);
    return s;
}

/* The value that -D gives a parameter, or NULL. The last one counts. */
static const char *find_define(Parser *p, const Symbol *s)
{
    const char *value = NULL;
    for (size_t i = 0; i < p->define_count; i++)
        if (!strcmp(p->defines[i].name, s->name)) {
            p->define_used[i] = true;
            value = p->defines[i].value;
        }
    return value;
}

/* Reports a value of -D outside of the type that T(..) gave the default. */
static bool check_define(Parser *p, const Symbol *s, DType t, Constant n, const char *text)
{
    Text range;
    if (!t || constant_fits(t, n))
        return true;
    text_init(&range, &p->m->arena);
    constant_print_range(&range, t);
    return diag_error(p->diag, s->loc, "parameter %s is of %s, whose numbers are %s, -D gives it "
                      "`%s`", s->name, dtype_name(t), text_string(&range), text);
}

static bool define_integer(Parser *p, Symbol *s, DType type, const char *text)
{
    Lexer lx;
    lexer_init(&lx, &(SourceText){NULL, text, strlen(text), 1}, 0);
    Token t = lexer_next(&lx);
    bool negative = token_is(&t, "-");
    if (negative)
        t = lexer_next(&lx);
    uint64_t most = (uint64_t)INT64_MAX + negative;
    if (t.kind != TOKEN_INTEGER || t.integer > most || lexer_next(&lx).kind != TOKEN_END)
        return diag_error(p->diag, s->loc, "parameter %s is an integer, -D gives it `%s`",
                          s->name, text);
    if (!check_define(p, s, type, constant_of_magnitude(negative, t.integer), text))
        return false;
    s->integer = (int64_t)(negative ? 0 - t.integer : t.integer);
    return true;
}

/* Takes a number with a fraction, as -D gives it; of a parameter that T(..) made, one of that type. */
static bool define_number(Parser *p, Symbol *s, DType type, const char *text)
{
    char *end;
    double value = numeral_read(text, &end);
    if (end == text || *end)
        return diag_error(p->diag, s->loc, "parameter %s is a number, -D gives it `%s`", s->name,
                          text);
    if (isinf(value) && !strpbrk(text, "iI"))
        return diag_error(p->diag, s->loc, "parameter %s is a number of f64, whose numbers end at "
                          "1.8e+308, -D gives it `%s`", s->name, text);
    if (!check_define(p, s, type, constant_of_real(value), text))
        return false;
    s->number = constant_of_real(value);
    if (type)
        s->number = term_of_typed(s->loc, type, s->number).number;
    return true;
}

/* Reports a type where a number is expected, and binds it for the text that follows. */
static bool take_type(Parser *p, Symbol *s)
{
    diag_error(p->diag, p->token.loc, "%s is a type: a parameter of types is `%s: type = %.*s`",
               token_text(p, &p->token), s->name, (int)p->token.len, p->token.start);
    find_define(p, s);
    s->dtype = parse_dtype(p);
    s->binding = BINDING_TYPE;
    return false;
}

/* NAME = 128 or NAME = 0.5: the kind of the default is the parameter's. */
static bool parse_number_param(Parser *p, Symbol *s)
{
    Term t;
    if (parser_at_bare_type(p))
        return take_type(p, s);
    if (!parse_term(p, PRECEDENCE_ANY, &t))
        return false;
    DType type = t.dtype;
    t = term_as_scalar(p, &t);
    if (t.whole || (t.dtype && !dtype_is_float(t.dtype)))
        return diag_error(p->diag, t.loc, "integer %s%llu is over 64 bits",
                          t.number.negative ? "-" : "", (unsigned long long)t.number.magnitude);
    if (!term_constant(&t, &s->number))
        return diag_error(p->diag, t.loc, "a parameter must be a constant, got %s",
                          term_text(p, &t));
    bool integer = t.kind == TERM_INTEGER;
    if (integer)
        s->integer = t.expr->constant;
    s->dtype = t.dtype;
    s->binding = integer ? BINDING_INTEGER : BINDING_NUMBER;
    const char *given = find_define(p, s);
    return !given || (integer ? define_integer : define_number)(p, s, type, given);
}

/* Returns true when a constant condition can begin with the token: a type's name cannot, nor
 * can an unknown name. */
static bool at_condition(Parser *p)
{
    const Token *t = &p->token;
    if (t->kind != TOKEN_NAME)
        return t->kind != TOKEN_END;
    if (dtype_find(t->start, t->len) != DTYPE_none)
        return false;
    BindingKind kind = symbol_binding(p, parser_symbol(p, t));
    return parser_is_reserved(t) || kind == BINDING_INTEGER || kind == BINDING_NUMBER;
}

/* T, or COND ? T : T with a constant condition. */
static DType parse_dtype_choice(Parser *p)
{
    if (!at_condition(p))
        return parse_dtype(p);
    Loc loc = p->token.loc;
    const Expr *condition = parse_expr(p, PRECEDENCE_OR);
    if (!condition)
        return DTYPE_none;
    if (!expr_is_constant(condition) || !parser_accept(p, "?")) {
        diag_error(p->diag, loc, "expected a type, got `%s`", expr_text(p->m, condition));
        return DTYPE_none;
    }
    DType yes = parse_dtype_choice(p);
    if (!yes || !parser_expect(p, ":", "between the types of a choice"))
        return DTYPE_none;
    DType no = parse_dtype_choice(p);
    return no ? (condition->constant ? yes : no) : DTYPE_none;
}

static bool parse_type_param(Parser *p, Symbol *s)
{
    if (!parser_expect(p, "type", "after the colon of a parameter") ||
        !parser_expect(p, "=", "after `type`"))
        return false;
    s->dtype = parse_dtype_choice(p);
    if (!s->dtype)
        return false;
    s->binding = BINDING_TYPE;
    const char *text = find_define(p, s);
    if (!text)
        return true;
    DType given = dtype_find(text, strlen(text));
    if (!given)
        return diag_error(p->diag, s->loc, "parameter %s is a type, -D gives it `%s`", s->name,
                          text);
    s->dtype = given;
    return true;
}

/* param NAME = integer, NAME: type = type, ... A wrong -D leaves the default,
 * so that the text after it is still checked. */
static bool parse_params(Parser *p)
{
    bool ok = true;
    parser_advance(p);
    do {
        Symbol *s = parse_binding_name(p, "the name of a parameter");
        if (!s)
            return false;
        ok &= parser_accept(p, ":") ? parse_type_param(p, s)
                                    : parser_expect(p, "=", "after the parameter's name") &&
                                          parse_number_param(p, s);
    } while (parser_accept(p, ","));
    return ok;
}

static bool parse_layout_binding(Parser *p)
{
    parser_advance(p);
    Symbol *s = parse_binding_name(p, "the name of a layout");
    if (!s || !parser_expect(p, "=", "after the layout's name"))
        return false;
    s->layout = parse_layout(p, 1);
    s->binding = s->layout ? BINDING_LAYOUT : BINDING_NONE;
    return s->layout != NULL;
}

/* ---- programs -------------------------------------------------------- */

static bool parse_fact(Parser *p, Value *v)
{
    Facts *f = &v->facts;
    bool scalar = v->type->kind == TYPE_SCALAR;
    if (scalar && dtype_is_float(v->type->dtype))
        return diag_error(p->diag, p->token.loc, "%%%s is %s, facts are of integers and pointers",
                          v->name, dtype_name(v->type->dtype));
    if (scalar && !f->has_divisible && parser_accept(p, "divisible")) {
        f->has_divisible = true;
        return parser_expect(p, "=", "after `divisible`") &&
               parse_constant(p, "a fact", &f->divisible);
    }
    if (scalar && !f->has_range && parser_accept(p, "range")) {
        f->has_range = true;
        return parser_expect(p, "=", "after `range`") && parser_expect(p, "[", "before the range") &&
               parse_constant(p, "a fact", &f->min) && parser_expect(p, ",", "in the range") &&
               parse_constant(p, "a fact", &f->max) && parser_expect(p, "]", "after the range");
    }
    if (!scalar && !f->has_align && parser_accept(p, "align")) {
        f->has_align = true;
        return parser_expect(p, "=", "after `align`") && parse_constant(p, "a fact", &f->align);
    }
    return parser_expected(p, scalar ? "`divisible` or `range`, once each" : "`align`, once");
}

/* Sets the facts that follow from the type alone. */
static void set_default_facts(Value *v)
{
    Facts *f = &v->facts;
    if (v->type->kind == TYPE_PTR)
        f->align = dtype_align(v->type->dtype);
    if (v->type->dtype == DTYPE_i32)
        f->min = INT32_MIN, f->max = INT32_MAX;
    if (v->type->dtype == DTYPE_u32)
        f->min = 0, f->max = UINT32_MAX;
}

/* %a: ptr<f16> {align = 16} */
static bool parse_argument(Parser *p)
{
    Token name = p->token;
    if (name.kind != TOKEN_VALUE)
        return parser_expected(p, "an argument");
    parser_advance(p);
    if (!parser_expect(p, ":", "after the argument's name"))
        return false;
    const Type *type = parse_type(p, TYPE_SCALAR);
    if (!type)
        return false;
    Value *v = build_argument(p->program, parser_symbol(p, &name)->name, name.loc, type);
    set_default_facts(v);
    if (!parser_define(p, &name, v, NULL, REBIND_NOT))
        return false;
    if (!parser_accept(p, "{"))
        return true;
    do {
        if (!parse_fact(p, v))
            return false;
    } while (parser_accept(p, ","));
    return parser_expect(p, "}", "after the facts");
}

/* Arguments, and those of `when`, up to the bracket that ends them. */
static bool parse_argument_list(Parser *p)
{
    if (parser_at(p, ")") || parser_at(p, "}"))
        return true;
    do {
        if (parser_at(p, "when")) {
            if (!parse_when(p, parse_argument_list))
                return false;
        } else if (p->program->arg_count == LIMIT_ARGUMENTS) {
            return diag_error(p->diag, p->token.loc, "more than %d arguments", LIMIT_ARGUMENTS);
        } else if (!parse_argument(p)) {
            return false;
        }
    } while (parser_accept(p, ","));
    return true;
}

static bool parse_arguments(Parser *p)
{
    return parser_expect(p, "(", "before the arguments") && parse_argument_list(p) &&
           parser_expect(p, ")", "after the arguments");
}

/* The grid stands before the arguments that it uses: it is skipped at first,
 * and read when they are known. */
static bool skip_grid(Parser *p)
{
    if (!parser_expect(p, "<", "before the grid"))
        return false;
    for (unsigned depth = 0; depth || !parser_at(p, ">"); parser_advance(p)) {
        if (p->token.kind == TOKEN_END || parser_at(p, "{"))
            return parser_expected(p, "`>` after the grid");
        depth += parser_at(p, "(");
        depth -= depth && parser_at(p, ")");
    }
    parser_advance(p);
    return true;
}

static bool parse_grid(Parser *p)
{
    Program *program = p->program;
    parser_advance(p);
    do {
        if (program->grid_rank == 3)
            return diag_error(p->diag, p->token.loc, "a grid of more than 3 dimensions");
        p->no_ops = "in a grid";
        const Expr *e = parser_check_angle(p) ? parse_expr(p, PRECEDENCE_SUM) : NULL;
        p->no_ops = NULL;
        if (!e)
            return false;
        program->grid[program->grid_rank++] = e;
    } while (parser_accept(p, ","));
    return parser_expect(p, ">", "after the grid");
}

static bool parse_grid_again(Parser *p, Parser at_grid)
{
    Lexer lexer = p->lexer;
    Token token = p->token;
    p->lexer = at_grid.lexer;
    p->token = at_grid.token;
    bool ok = parse_grid(p);
    p->lexer = lexer;
    p->token = token;
    return ok;
}

/* WORD(4), where it stands: a number from 1 to `most`, or `wrong` is the error. */
static bool parse_block_number(Parser *p, const char *word, unsigned most, const char *wrong,
                               unsigned *number)
{
    int64_t value;
    Loc loc = p->token.loc;
    if (!parser_accept(p, word))
        return true;
    if (!parser_expect(p, "(", "before the number") ||
        !parse_constant(p, "the number", &value) || !parser_expect(p, ")", "after the number"))
        return false;
    if (value < 1 || value > most)
        return diag_error(p->diag, loc, wrong, (long long)value, most);
    *number = (unsigned)value;
    return true;
}

/* Blocks of a cluster: as many as every device of sm_90 runs together. */
static bool check_cluster(Parser *p, Loc loc)
{
    const Program *program = p->program;
    if (program->cluster_rank > program->grid_rank)
        return diag_error(p->diag, loc, "a cluster of %u dimensions, the grid has %u",
                          program->cluster_rank, program->grid_rank);
    if (program_blocks(program) > LIMIT_CLUSTER)
        return diag_error(p->diag, loc, "a cluster of %u blocks, it has at most %d",
                          program_blocks(program), LIMIT_CLUSTER);
    for (unsigned d = 0; d < program->cluster_rank; d++)
        if (expr_is_constant(program->grid[d]) &&
            program->grid[d]->constant % program->cluster[d])
            return diag_error(p->diag, loc, "the grid's extent of dimension %u is %lld, not a "
                              "multiple of the cluster's %u", d,
                              (long long)program->grid[d]->constant,
                              program->cluster[d]);
    return true;
}

/* cluster(2, 1), where it stands. */
static bool parse_cluster(Parser *p)
{
    Program *program = p->program;
    Loc loc = p->token.loc;
    if (!parser_accept(p, "cluster"))
        return true;
    if (!parser_expect(p, "(", "before the cluster's extents"))
        return false;
    do {
        int64_t extent;
        Loc at = p->token.loc;
        if (program->cluster_rank == 3)
            return diag_error(p->diag, at, "a cluster of more than 3 dimensions");
        if (!parse_constant(p, "the cluster's extent", &extent))
            return false;
        if (extent < 1 || extent > LIMIT_CLUSTER)
            return diag_error(p->diag, at, "a cluster of %lld blocks in dimension %u, it has 1 "
                              "to %d", (long long)extent, program->cluster_rank, LIMIT_CLUSTER);
        program->cluster[program->cluster_rank++] = (unsigned)extent;
    } while (parser_accept(p, ","));
    return parser_expect(p, ")", "after the cluster's extents") && check_cluster(p, loc);
}

/* cooperative, where it stands: not beside a cluster. */
static bool parse_cooperative(Parser *p)
{
    Loc loc = p->token.loc;
    p->program->cooperative = parser_accept(p, "cooperative");
    return !p->program->cooperative || !p->program->cluster_rank ||
           diag_error(p->diag, loc, "a cooperative program with cluster(..): it has one of them");
}

/* warps(4) min_blocks(2) cluster(2, 1) contract, or cooperative in place of the cluster */
static bool parse_block(Parser *p)
{
    Loc loc = p->token.loc;
    bool ok = parse_block_number(p, "warps", LIMIT_THREADS / 32,
                                 "a block of %lld warps, it has 1 to %u", &p->program->warps) &&
              parse_block_number(p, "min_blocks", LIMIT_MIN_BLOCKS,
                                 "%lld blocks in a multiprocessor, it has 1 to %u",
                                 &p->program->min_blocks) &&
              parse_cluster(p) && parse_cooperative(p);
    p->program->contract = ok && parser_accept(p, "contract");
    if (ok && p->program->min_blocks * p->program->warps > LIMIT_RESIDENT_WARPS)
        return diag_error(p->diag, loc, "%u blocks of %u warps, a multiprocessor has room for %d "
                          "warps", p->program->min_blocks, p->program->warps,
                          LIMIT_RESIDENT_WARPS);
    return ok;
}

/* Behind the @ any name is free that no other program has. */
static bool parse_program_name(Parser *p)
{
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "the name of a program");
    Symbol *s = parser_symbol(p, &p->token);
    if (s->program) {
        diag_error(p->diag, p->token.loc, "@%s is defined twice", s->name);
        return diag_note(p->diag, s->program->loc, "@%s is defined here", s->name);
    }
    if (s->function) {
        diag_error(p->diag, p->token.loc, "@%s is a function, too", s->name);
        return function_note(p, s->function);
    }
    p->program = build_program(p->m, s->name, p->token.loc);
    s->program = p->program;
    parser_advance(p);
    return true;
}

static bool parse_program_header(Parser *p)
{
    parser_advance(p);
    if (!parser_expect(p, "@", "before the program's name"))
        return false;
    if (!parse_program_name(p))
        return false;
    Parser at_grid = *p;
    return skip_grid(p) && parse_arguments(p) && parse_grid_again(p, at_grid) &&
           parse_block(p);
}

static bool parse_program(Parser *p)
{
    uint32_t mark = scope_mark(p);
    unsigned nesting = p->nesting;      /* of imports */
    bool ok = parse_program_header(p) && parse_region_body(p, p->program->body);
    scope_reset(p, mark);
    assert(p->scope_count == mark && p->nesting == nesting);
    (void)nesting;
    p->program = NULL;
    p->region = NULL;
    return ok;
}

/* ---- modules --------------------------------------------------------- */

static bool parse_item(Parser *p)
{
    if (parser_at(p, "param"))
        return parse_params(p);
    if (parser_at(p, "layout"))
        return parse_layout_binding(p);
    if (parser_at(p, "program"))
        return parse_program(p);
    if (parser_at(p, "function"))
        return parse_function(p);
    if (parser_at(p, "import"))
        return parse_import(p);
    return parser_expected(p, "`import`, `param`, `layout`, `when`, `function` or `program`");
}

bool parse_items(Parser *p)
{
    bool ok = true;
    while (p->token.kind != TOKEN_END && !(p->regions && parser_at(p, "}"))) {
        const char *start = p->token.start;
        diag_check_time(p->diag, p->token.loc);
        bool parsed = parser_at(p, "when") ? parse_when(p, parse_items) : parse_item(p);
        if (!parsed)
            parser_skip_statement(p, start);
        ok &= parsed;
    }
    return ok;
}

/* tilus 1 */
bool parse_version(Parser *p)
{
    if (!parser_accept(p, "tilus"))
        return true;
    if (p->token.kind != TOKEN_INTEGER)
        return parser_expected(p, "the version of the language");
    if (p->token.integer != 1)
        return diag_error(p->diag, p->token.loc, "version %llu of the language, this is a reader "
                          "of version 1", (unsigned long long)p->token.integer);
    parser_advance(p);
    return true;
}

static bool check_defines_used(const Parser *p)
{
    bool ok = true;
    for (size_t i = 0; i < p->define_count; i++)
        if (!p->define_used[i])
            ok = diag_error(p->diag, (Loc){0}, "-D %s=%s: there is no parameter %s",
                            p->defines[i].name, p->defines[i].value, p->defines[i].name);
    return ok;
}

/* Makes the first token of the main text the current one. */
static bool parser_start(Parser *p)
{
    intern_init(&p->symbols, &p->m->arena, symbol_equal);
    if (!source_check(p->diag, &p->diag->source, (Loc){0}))
        return false;
    parser_enter_source(p, &p->diag->source, 0);
    return true;
}

/* Reads the main text to its end. */
static bool parse_main_text(Parser *p)
{
    p->define_used = arena_array(&p->m->arena, bool, p->define_count + 1);
    return parser_start(p) && parse_version(p) && parse_items(p) && check_defines_used(p);
}

bool parse_module(Module *m, const Define *defines, size_t define_count)
{
    Parser p = {.m = m, .diag = m->diag, .defines = defines, .define_count = define_count};
    return parse_main_text(&p);
}

/* A layout, after which the text ends. */
static const Layout *parse_layout_alone(Parser *p)
{
    const Layout *l = parse_layout(p, 1);
    if (!l || p->token.kind == TOKEN_END)
        return l;
    parser_expected(p, "the end of the layout");
    return NULL;
}

const Layout *parse_layout_text(Module *m)
{
    Parser p = {.m = m, .diag = m->diag};
    return parser_start(&p) ? parse_layout_alone(&p) : NULL;
}

const Layout *parse_layout_of_text(Module *m, const Define *defines, size_t define_count,
                                   const char *layout)
{
    Parser p = {.m = m, .diag = m->diag, .defines = defines, .define_count = define_count};
    const SourceText s = {"<layout>", layout, strlen(layout), 1};
    const SourceText *kept = arena_copy(&m->diag->arena, &s, sizeof s);
    if (!parse_main_text(&p))
        return NULL;
    uint32_t frame = diag_add_frame(m->diag, &(SourceFrame){
        .source = kept, .what = "in a layout of the names of this file"});
    if (!source_check(m->diag, kept, (Loc){.frame = frame}))
        return NULL;
    p.end_reported = false;
    parser_enter_source(&p, kept, frame);
    return parse_layout_alone(&p);
}

/* Begins to read `text`, of which `name` is the file, beside the text of the module. */
static bool parser_start_piece(Parser *p, const char *name, const char *text)
{
    Diag *d = p->diag;
    const SourceText s = {name, arena_strdup(&d->arena, text), strlen(text), 1};
    const SourceText *kept = arena_copy(&d->arena, &s, sizeof s);
    uint32_t frame = diag_add_frame(d, &(SourceFrame){.source = kept, .is_piece = true});
    intern_init(&p->symbols, &p->m->arena, symbol_equal);
    if (!source_check(d, kept, (Loc){.frame = frame}))
        return false;
    p->no_ops = "in a type or layout";
    parser_enter_source(p, kept, frame);
    return true;
}

/* Forgets the piece unless messages point into it. */
static void parser_end_piece(Parser *p, bool ok)
{
    p->diag->frame_count -= ok;
}

const Layout *parse_layout_piece(Module *m, const char *text)
{
    Parser p = {.m = m, .diag = m->diag};
    const Layout *l = parser_start_piece(&p, "<layout>", text) ? parse_layout_alone(&p) : NULL;
    parser_end_piece(&p, l);
    return l;
}

/* A type of this kind, after which the text ends. */
static const Type *parse_type_alone(Parser *p, TypeKind kind)
{
    const Type *t = parse_type(p, kind == TYPE_PTR ? TYPE_SCALAR : kind);
    if (t && p->token.kind == TOKEN_END && t->kind == kind)
        return t;
    if (t)
        parser_expected(p, t->kind == kind ? "the end of the type" : "a type of another kind");
    return NULL;
}

const Type *parse_type_text(Module *m, TypeKind kind, const char *text)
{
    Parser p = {.m = m, .diag = m->diag};
    const Type *t = parser_start_piece(&p, "<type>", text) ? parse_type_alone(&p, kind) : NULL;
    parser_end_piece(&p, t);
    return t;
}
