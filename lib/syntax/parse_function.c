/* Functions. A call reads the function's body in its place, with the parameters bound, so that
 * a program consists of ops alone:
 *
 *     function @silu<M, N>(%x: f32[M, N]) -> f32[M, N] {
 *       return %x / (exp(-%x) + 1)
 *     }
 *
 * Parameters in angle brackets are constants, types and layouts; what a call leaves out follows
 * from the types of the arguments, else from a default. A body sees the file's names and the
 * function's, none of the caller's. */
#include "ir/text.h"
#include "syntax/term.h"

#include <string.h>

/* A parameter in angle brackets. */
typedef struct Parameter {
    Symbol *symbol;
    BindingKind kind;           /* INTEGER stands for NUMBER, too */
    bool has_default;
    Bookmark value;             /* of the default */
    const char *from;           /* the argument that it follows from in the call, or NULL */
} Parameter;

/* A parameter in parentheses; its type may be missing. */
typedef struct Argument {
    Token name;
    bool has_type;
    Bookmark type;
} Argument;

struct Function {
    const char *name;
    Loc loc;
    Parameter parameters[LIMIT_NAMES];
    unsigned parameter_count;
    Argument arguments[LIMIT_NAMES];
    unsigned argument_count;
    bool has_results;
    Bookmark results;           /* types after -> */
    Bookmark body;
    bool broken;                /* an error was reported: calls are silent */
    bool active;                /* being read for a call */
    uint32_t frame;             /* of the first call; 0: none yet */
};

bool function_note(Parser *p, const Function *f)
{
    return diag_note(p->diag, f->loc, "@%s is defined here", f->name);
}

/* ---- definitions ------------------------------------------------------------ */

/* Skips a type or a default: up to the comma or bracket that ends it. Between parentheses and
 * brackets `<` compares, else it opens ptr<T>. */
static void skip_part(Parser *p, const char *close)
{
    unsigned depth = 0, angles = 0;
    while (p->token.kind != TOKEN_END && !parser_at(p, "{") && !parser_at(p, "}")) {
        if (!depth && !angles && (parser_at(p, ",") || parser_at(p, close) || parser_at(p, "=") ||
                                  p->token.kind == TOKEN_VALUE))
            return;
        angles += !depth && parser_at(p, "<");
        angles -= !depth && angles && parser_at(p, ">");
        depth += parser_at(p, "(") || parser_at(p, "[");
        depth -= depth && (parser_at(p, ")") || parser_at(p, "]"));
        parser_advance(p);
    }
}

/* Checks that a default ends at the token. */
static bool check_default_ends(Parser *p, const Parameter *q)
{
    return parser_at(p, ",") || parser_at(p, ">") ||
           parser_expected(p, arena_printf(&p->m->arena, "`,` or `>` after the default of %s (a "
                                           "comparison needs parentheses)", q->symbol->name));
}

/* : type, : layout; a constant without one. */
static bool parse_parameter_kind(Parser *p, BindingKind *kind)
{
    *kind = BINDING_INTEGER;
    if (!parser_accept(p, ":"))
        return true;
    *kind = parser_at(p, "type") ? BINDING_TYPE : BINDING_LAYOUT;
    return parser_accept(p, "type") || parser_expect(p, "layout", "or `type` after the colon");
}

static bool check_parameter_name(Parser *p, const Function *f)
{
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "the name of a parameter");
    if (parser_is_word(&p->token))
        return diag_error(p->diag, p->token.loc, "%s is a word of the language",
                          token_text(p, &p->token));
    const Symbol *s = parser_symbol(p, &p->token);
    bool twice = false;
    for (unsigned i = 0; i < f->parameter_count; i++)
        twice |= f->parameters[i].symbol == s;
    if (s->binding == BINDING_NONE && !twice)
        return true;
    diag_error(p->diag, p->token.loc, "%s is defined twice", s->name);
    return !twice && diag_note(p->diag, s->loc, "%s is defined here", s->name);
}

/* <M, N = 4, T: type, L: layout> */
static bool parse_parameters(Parser *p, Function *f)
{
    if (!parser_accept(p, "<"))
        return true;
    do {
        Parameter *q = &f->parameters[f->parameter_count];
        if (f->parameter_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d parameters", LIMIT_NAMES);
        if (!check_parameter_name(p, f))
            return false;
        q->symbol = parser_symbol(p, &p->token);
        f->parameter_count++;
        parser_advance(p);
        if (!parse_parameter_kind(p, &q->kind))
            return false;
        if (parser_accept(p, "=")) {
            q->has_default = true;
            q->value = parser_bookmark(p);
            skip_part(p, ">");
            if (!check_default_ends(p, q))
                return false;
        }
    } while (parser_accept(p, ","));
    return parser_expect(p, ">", "after the parameters");
}

/* (%x: f32[M, N], %y) */
static bool parse_function_arguments(Parser *p, Function *f)
{
    if (!parser_expect(p, "(", "before the arguments"))
        return false;
    if (parser_accept(p, ")"))
        return true;
    do {
        Argument *a = &f->arguments[f->argument_count];
        if (f->argument_count == LIMIT_NAMES)
            return diag_error(p->diag, p->token.loc, "more than %d arguments", LIMIT_NAMES);
        if (p->token.kind != TOKEN_VALUE)
            return parser_expected(p, "an argument");
        for (unsigned i = 0; i < f->argument_count; i++)
            if (token_equal(&f->arguments[i].name, &p->token))
                return diag_error(p->diag, p->token.loc, "%s is defined twice",
                                  token_text(p, &p->token));
        a->name = p->token;
        f->argument_count++;
        parser_advance(p);
        a->has_type = parser_accept(p, ":");
        a->type = parser_bookmark(p);
        if (a->has_type)
            skip_part(p, ")");
    } while (parser_accept(p, ","));
    return parser_expect(p, ")", "after the arguments");
}

static bool parse_signature(Parser *p, Function *f)
{
    if (!parse_parameters(p, f) || !parse_function_arguments(p, f))
        return false;
    f->has_results = parser_accept(p, "->");
    f->results = parser_bookmark(p);
    while (f->has_results && !parser_at(p, "{") && p->token.kind != TOKEN_END)
        parser_advance(p);
    f->body = parser_bookmark(p);
    return parser_at(p, "{") ? parser_skip_braces(p) : parser_expected(p, "the function's body");
}

bool parse_function(Parser *p)
{
    parser_advance(p);
    if (!parser_expect(p, "@", "before the function's name"))
        return false;
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "the name of a function");
    Symbol *s = parser_symbol(p, &p->token);
    Loc loc = p->token.loc;
    if (s->function) {
        diag_error(p->diag, loc, "@%s is defined twice", s->name);
        return function_note(p, s->function);
    }
    if (s->program) {
        diag_error(p->diag, loc, "@%s is a program, too", s->name);
        return diag_note(p->diag, s->program->loc, "@%s is defined here", s->name);
    }
    Function *f = arena_new(&p->m->arena, Function);
    f->name = s->name;
    f->loc = loc;
    parser_advance(p);
    f->broken = !parse_signature(p, f);
    s->function = f;
    return !f->broken;
}

/* ---- constants of a call ------------------------------------------------------ */

/* One call, on the module's scratch arena. */
typedef struct Call {
    Function *f;
    Loc loc;
    Term terms[LIMIT_NAMES];        /* of the arguments */
    unsigned count;
    const char *part;               /* "%x", the argument whose type is read */
    Symbol given[LIMIT_NAMES];      /* of parameters, in angle brackets; NONE: left out */
    Symbol before[LIMIT_NAMES];     /* the parameters' symbols in their file */
} Call;

static bool set_number(Symbol *s, const Term *t)
{
    s->binding = t->kind == TERM_INTEGER ? BINDING_INTEGER : BINDING_NUMBER;
    if (t->kind == TERM_INTEGER)
        s->integer = t->expr->constant;
    s->whole = t->whole;
    s->dtype = t->dtype;
    return term_constant(t, &s->number);
}

/* Reads a parameter's value into `s`. */
static bool parse_parameter_value(Parser *p, const Parameter *q, Symbol *s)
{
    Term t;
    s->loc = p->token.loc;
    if (q->kind == BINDING_TYPE) {
        s->dtype = parse_dtype(p);
        s->binding = s->dtype ? BINDING_TYPE : BINDING_NONE;
        return s->dtype;
    }
    if (q->kind == BINDING_LAYOUT) {
        s->layout = parse_layout(p, 1);
        s->binding = s->layout ? BINDING_LAYOUT : BINDING_NONE;
        return s->layout;
    }
    if (parser_at_bare_type(p))
        return diag_error(p->diag, p->token.loc, "parameter %s is a constant, got the type %.*s",
                          q->symbol->name, (int)p->token.len, p->token.start);
    if (!parser_check_angle(p) || !parse_term(p, PRECEDENCE_SUM, &t))
        return false;
    t = term_as_scalar(p, &t);
    return set_number(s, &t) || diag_error(p->diag, t.loc, "parameter %s is a constant, got %s",
                                           q->symbol->name, term_text(p, &t));
}

/* <128, f16> */
static bool parse_given(Parser *p, Call *c)
{
    unsigned count = 0;
    if (!parser_accept(p, "<"))
        return true;
    do {
        if (count == c->f->parameter_count) {
            diag_error(p->diag, p->token.loc, "@%s has %u parameter%s", c->f->name, count,
                       count == 1 ? "" : "s");
            return function_note(p, c->f);
        }
        if (!parse_parameter_value(p, &c->f->parameters[count], &c->given[count]))
            return false;
        count++;
    } while (parser_accept(p, ","));
    return parser_expect(p, ">", "after the parameters");
}

/* Binds the parameter for the body. */
static void bind_parameter(Parser *p, const Parameter *q, const Symbol *value)
{
    Symbol *s = q->symbol;
    s->binding = value->binding;
    s->integer = value->integer;
    s->number = value->number;
    s->whole = value->whole;
    s->dtype = value->dtype;
    s->layout = value->layout;
    s->binding_scope = p->scope_id;
}

/* Binds the parameter to what it meets in the type of an argument. */
static void bind_open(Parser *p, const Call *c, const Parameter *q, const Symbol *value)
{
    c->f->parameters[q - c->f->parameters].from = c->part;
    bind_parameter(p, q, value);
}

/* The parameter that the token names, which has no value yet, or NULL. */
static const Parameter *find_open_parameter(Parser *p, const Call *c, BindingKind kind)
{
    const Symbol *s = p->token.kind == TOKEN_NAME ? parser_symbol(p, &p->token) : NULL;
    if (!s || symbol_binding(p, s) != BINDING_NONE)
        return NULL;
    for (unsigned i = 0; i < c->f->parameter_count; i++)
        if (c->f->parameters[i].symbol == s && c->f->parameters[i].kind == kind)
            return &c->f->parameters[i];
    return NULL;
}

/* ---- types of arguments --------------------------------------------------------- */

/* Reads an element type that must be `t`. */
static bool match_dtype(Parser *p, const Call *c, DType t, bool *fits)
{
    if (parser_accept(p, "?"))
        return true;
    const Parameter *q = find_open_parameter(p, c, BINDING_TYPE);
    if (q) {
        bind_open(p, c, q, &(Symbol){.binding = BINDING_TYPE, .dtype = t});
        parser_advance(p);
        return true;
    }
    DType given = parse_dtype(p);
    *fits &= given == t;
    return given;
}

static bool match_extent(Parser *p, const Call *c, const Expr *extent, bool *fits)
{
    if (parser_accept(p, "?"))
        return true;
    const Parameter *q = find_open_parameter(p, c, BINDING_INTEGER);
    if (q && (parser_before(p, ",") || parser_before(p, "]"))) {
        if (!extent || !expr_is_constant(extent)) {
            *fits = false;
        } else {
            Constant n = constant_of_integer(extent->constant);
            bind_open(p, c, q, &(Symbol){.binding = BINDING_INTEGER,
                                         .integer = extent->constant, .number = n});
        }
        parser_advance(p);
        return true;
    }
    const Expr *e = parse_expr(p, PRECEDENCE_ANY);
    *fits &= e == extent;
    return e;
}

/* [M, ?, 16] */
static bool match_extents(Parser *p, const Call *c, const Type *t, bool *fits)
{
    unsigned d = 0;
    parser_advance(p);
    do {
        const Expr *extent = d < t->rank ? t->extents[d] : NULL;
        if (!match_extent(p, c, extent, fits))
            return false;
        d++;
    } while (parser_accept(p, ","));
    *fits &= d == t->rank;
    return parser_expect(p, "]", "after the extents");
}

/* @ L */
static bool match_layout(Parser *p, const Call *c, const Type *t, bool *fits)
{
    if (!parser_accept(p, "@"))
        return true;
    const Parameter *q = find_open_parameter(p, c, BINDING_LAYOUT);
    if (q) {
        bind_open(p, c, q, &(Symbol){.binding = t->layout ? BINDING_LAYOUT : BINDING_NONE,
                                     .layout = t->layout});
        *fits &= t->layout != NULL;
        parser_advance(p);
        return true;
    }
    const Layout *l = parse_layout(p, t->rank);
    *fits &= l == t->layout;
    return l;
}

static TypeKind pattern_kind(Parser *p, bool tensor)
{
    if (parser_accept(p, "shared"))
        return TYPE_SHARED;
    if (parser_accept(p, "global"))
        return TYPE_GLOBAL;
    return tensor ? TYPE_REG : TYPE_SCALAR;
}

/* ptr<T> or mbarrier[N] */
static bool match_special(Parser *p, const Call *c, const Type *t, bool *fits)
{
    bool pointer = parser_at(p, "ptr");
    parser_advance(p);
    *fits &= t->kind == (pointer ? TYPE_PTR : TYPE_MBARRIER);
    if (!pointer)
        return parser_at(p, "[") ? match_extents(p, c, t, fits)
                                 : parser_expected(p, "`[` after `mbarrier`");
    return parser_expect(p, "<", "after `ptr`") && match_dtype(p, c, t->dtype, fits) &&
           parser_expect(p, ">", "after the pointer's element type");
}

/* Reads the pattern of a type; `fits`: whether `t` matches it. */
static bool match_type(Parser *p, const Call *c, const Type *t, bool *fits)
{
    *fits = true;
    if (parser_at(p, "?") && !parser_before(p, "["))
        return parser_accept(p, "?");
    if (parser_at(p, "ptr") || parser_at(p, "mbarrier"))
        return match_special(p, c, t, fits);
    if (!match_dtype(p, c, t->dtype, fits))
        return false;
    bool tensor = parser_at(p, "[");
    if (tensor && !match_extents(p, c, t, fits))
        return false;
    *fits &= pattern_kind(p, tensor) == t->kind;
    return match_layout(p, c, t, fits);
}

/* Adds what a parameter of the function is, which the token names: ", N is 64, from %a". */
static void add_parameter(Parser *p, const Call *c, const Token *token, Text *text)
{
    const Symbol *s = token->kind == TOKEN_NAME ? parser_symbol(p, token) : NULL;
    const Parameter *q = NULL;
    for (unsigned i = 0; s && i < c->f->parameter_count; i++)
        q = c->f->parameters[i].symbol == s ? &c->f->parameters[i] : q;
    bool foreign = !q || (q->from && q->from == c->part);
    if (foreign || (s->binding != BINDING_INTEGER && s->binding != BINDING_TYPE))
        return;
    text_add(text, text->len ? ", " : ": ");
    if (s->binding == BINDING_TYPE)
        text_printf(text, "%s is %s", s->name, dtype_name(s->dtype));
    else
        text_printf(text, "%s is %lld", s->name, (long long)s->integer);
    if (q->from)
        text_printf(text, ", from %s", q->from);
}

/* Describes the parameters that stand in the pattern from `first` up to the token. */
static const char *parameters_text(Parser *p, const Call *c, Bookmark first)
{
    Text text;
    text_init(&text, &p->m->arena);
    for (; first.token.start < p->token.start && first.token.kind != TOKEN_END;
         first.token = lexer_next(&first.lexer))
        add_parameter(p, c, &first.token, &text);
    return text_string(&text);
}

/* Requires that the pattern of a type ends at the token: the rest would not have been matched. */
static bool check_pattern_end(Parser *p)
{
    return parser_at(p, ",") || parser_at(p, ")") || parser_at(p, "{") ||
           parser_expected(p, "the end of the type");
}

/* Checks `t` against the pattern at `place`; `part` names what has the type. */
static bool check_type(Parser *p, const Call *c, Loc loc, const Type *t, const char *part)
{
    bool fits;
    Bookmark begin = parser_bookmark(p);
    Token first = p->token;
    if (!match_type(p, c, t, &fits) || !check_pattern_end(p))
        return false;
    if (fits)
        return true;
    int len = (int)(p->token.start - first.start);
    while (len > 0 && strchr(" \t\r\n", first.start[len - 1]))
        len--;
    diag_error(p->diag, loc, "%s of @%s is %.*s, got %s%s", part, c->f->name, len, first.start,
               type_text(p->m, t), parameters_text(p, c, begin));
    return function_note(p, c->f);
}

/* ---- calls ------------------------------------------------------------------------ */

static bool bind_argument(Parser *p, Call *c, unsigned i)
{
    const Argument *a = &c->f->arguments[i];
    const char *part = arena_printf(&p->m->arena, "%%%.*s", (int)a->name.len, a->name.start);
    Value *v = term_value(p, &c->terms[i], NULL);
    if (!v)
        return false;
    c->part = part;
    if (a->has_type) {
        parser_go_to(p, a->type);
        if (!check_type(p, c, c->terms[i].loc, v->type, part))
            return false;
    }
    return parser_define(p, &a->name, v, p->region, REBIND_REGION);
}

/* Gives the parameters that are open their defaults. */
static bool bind_defaults(Parser *p, Call *c)
{
    for (unsigned i = 0; i < c->f->parameter_count; i++) {
        const Parameter *q = &c->f->parameters[i];
        Symbol value = {0};
        if (symbol_binding(p, q->symbol) != BINDING_NONE)
            continue;
        if (!q->has_default) {
            diag_error(p->diag, c->loc, "parameter %s of @%s follows from no argument: call "
                       "@%s<..>(..)", q->symbol->name, c->f->name, c->f->name);
            return function_note(p, c->f);
        }
        parser_go_to(p, q->value);
        if (!parse_parameter_value(p, q, &value) || !check_default_ends(p, q))
            return false;
        bind_parameter(p, q, &value);
    }
    return true;
}

/* Checks a result against the type where the parser stands. */
static bool check_result(Parser *p, Call *c, Sink *results, unsigned i)
{
    Term *t = &results->terms[i];
    Value *v = term_value(p, t, NULL);
    if (!v)
        return false;
    *t = term_of_any(p, t->loc, v);
    return check_type(p, c, t->loc, v->type, arena_printf(&p->m->arena, "result %u", i + 1));
}

static bool check_results(Parser *p, Call *c, Sink *results)
{
    unsigned declared = 0;
    if (!c->f->has_results)
        return true;
    parser_go_to(p, c->f->results);
    do {
        if (declared == results->count)
            return diag_error(p->diag, results->filled ? results->loc : c->loc,
                              "@%s gives %u result%s, more are declared", c->f->name, declared,
                              declared == 1 ? "" : "s");
        if (!check_result(p, c, results, declared++))
            return false;
    } while (parser_accept(p, ","));
    return declared == results->count ||
           diag_error(p->diag, results->loc, "@%s gives %u results, %u %s declared", c->f->name,
                      results->count, declared, declared == 1 ? "is" : "are");
}

static bool read_body(Parser *p, Call *c, Sink *results)
{
    for (unsigned i = 0; i < c->f->parameter_count; i++)
        if (c->given[i].binding != BINDING_NONE)
            bind_parameter(p, &c->f->parameters[i], &c->given[i]);
    for (unsigned i = 0; i < c->count; i++)
        if (!bind_argument(p, c, i))
            return false;
    if (!bind_defaults(p, c))
        return false;
    parser_go_to(p, c->f->body);
    *results = (Sink){.word = "return", .loc = c->loc};
    return parse_sink_text(p, results, parse_sink_body) && check_results(p, c, results);
}

/* Sets the frame of places in the function's text. */
static void set_frame(Function *f, uint32_t frame)
{
    Bookmark *marks[2] = {&f->results, &f->body};
    for (unsigned i = 0; i < 2; i++)
        marks[i]->lexer.frame = marks[i]->token.loc.frame = frame;
    for (unsigned i = 0; i < f->argument_count; i++)
        f->arguments[i].type.lexer.frame = f->arguments[i].type.token.loc.frame = frame;
    for (unsigned i = 0; i < f->parameter_count; i++)
        f->parameters[i].value.lexer.frame = f->parameters[i].value.token.loc.frame = frame;
}

/* The frame of the call in diagnostics and debug info. */
static uint32_t add_frame(Parser *p, const Call *c)
{
    Function *f = c->f;
    uint32_t frame = diag_add_frame(p->diag, &(SourceFrame){
        .source = diag_source(p->diag, f->loc), .from = c->loc,
        .what = arena_printf(&p->diag->arena, "in the call of @%s", f->name),
        .function = f->name, .line = f->loc.line, .first = f->frame});
    f->frame = f->frame ? f->frame : frame;
    return frame;
}

/* Exchanges what parameters' names mean with what they meant before. */
static void swap_parameters(Call *c)
{
    for (unsigned i = 0; c && i < c->f->parameter_count; i++) {
        Symbol *s = c->f->parameters[i].symbol, now = *s;
        *s = c->before[i];      /* except its value, which scope_reset puts back */
        s->value = now.value, s->region = now.region, s->scope = now.scope;
        c->before[i] = now;
    }
}

/* Keeps what parameters' names mean in their file, and opens them. */
static void open_parameters(Call *c)
{
    for (unsigned i = 0; i < c->f->parameter_count; i++) {
        c->before[i] = *c->f->parameters[i].symbol;
        c->f->parameters[i].symbol->binding = BINDING_NONE;
        c->f->parameters[i].from = NULL;
    }
}

/* Reads the body in a scope of its own, which sees no parameters of the function that calls; the
 * parser then stands where it stood. */
static bool expand_call(Parser *p, Call *c, Sink *results)
{
    Function *f = c->f;
    Call *caller = p->call;
    Bookmark after = parser_bookmark(p);
    uint32_t scope = p->scope_id, mark = scope_mark(p), home = f->body.lexer.frame;
    unsigned regions = p->regions, nesting = p->nesting;
    swap_parameters(caller);
    open_parameters(c);
    p->call = c;
    p->scope_id = ++p->call_count;
    f->active = true;
    set_frame(f, add_frame(p, c));
    bool ok = read_body(p, c, results);
    set_frame(f, home);
    f->active = false;
    scope_reset(p, mark);
    swap_parameters(c);
    swap_parameters(caller);
    p->call = caller;
    p->scope_id = scope;
    p->regions = regions, p->nesting = nesting;
    parser_go_to(p, after);
    return ok;
}

static bool check_call(Parser *p, const Call *c)
{
    int64_t most = diag_limit(p->diag, LIMIT_ID_CALLS);
    if (c->f->active) {
        diag_error(p->diag, c->loc, "@%s calls itself", c->f->name);
        return function_note(p, c->f);
    }
    if (p->call_count >= most)
        return diag_error(p->diag, c->loc, "more than %lld calls", (long long)most);
    if (c->count == c->f->argument_count)
        return true;
    diag_error(p->diag, c->loc, "@%s takes %u argument%s, got %u", c->f->name,
               c->f->argument_count, c->f->argument_count == 1 ? "" : "s", c->count);
    return function_note(p, c->f);
}

bool parse_call(Parser *p, Sink *results)
{
    Call *c = arena_new(&p->m->scratch, Call);
    c->loc = p->token.loc;
    parser_advance(p);
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "the name of a function");
    c->f = parser_symbol(p, &p->token)->function;
    if (!c->f)
        return diag_error(p->diag, p->token.loc, "@%.*s is not a function that is defined above",
                          (int)p->token.len, p->token.start);
    if (c->f->broken || !term_can_build(p, c->loc, "a call"))
        return false;
    parser_advance(p);
    return parse_given(p, c) && parse_terms(p, c->terms, LIMIT_NAMES, &c->count) &&
           check_call(p, c) && expand_call(p, c, results);
}

bool parse_call_leaf(Parser *p, Term *out)
{
    Loc loc = p->token.loc;
    ArenaMark mark = arena_mark(&p->m->scratch);
    Sink *results = arena_new(&p->m->scratch, Sink);
    bool ok = parse_call(p, results);
    if (ok && results->count != 1)
        ok = diag_error(p->diag, loc, "a call in an expression gives 1 result, this one gives %u",
                        results->count);
    if (ok) {
        *out = results->terms[0];
        out->loc = loc;
        out->product = false;
    }
    arena_reset(&p->m->scratch, mark);
    return ok;
}
