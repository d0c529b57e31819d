/* Gives tokens their names, by tokens alone: what binds them, where they are visible, and what uses
 * them. A text with errors has names too, so the parser is not asked; scopes are those of parser.c:
 *
 *   param, layout, function, program      the file, from there on
 *   parameters and arguments              their function or program
 *   results                               the region where they stand; again there: the same name
 *   an index, carried values              the loop's region; a name of their own
 *
 * Regions of `when` are part of the region around them. */
#include "lsp.h"

#include "ir/op_info.h"

#include <stdlib.h>
#include <string.h>

/* A region or a brace that is open. */
typedef struct Open {
    bool transparent;           /* of `when` */
    size_t visible;             /* names that were visible before it */
    size_t pending;             /* results that were pending before it */
    size_t scope;               /* outside of it */
} Open;

typedef struct Reader {
    Names *n;
    size_t *visible;            /* names, the innermost last */
    size_t visible_count, visible_capacity;
    size_t buckets[NAME_BUCKETS];
    size_t *pending;            /* tokens of results whose statement has not ended */
    size_t pending_count, pending_capacity;
    size_t *carried;            /* tokens that bind names of the next region */
    size_t carried_count, carried_capacity;
    Open *opens;
    size_t open_count, open_capacity;
    size_t scope, scopes;
    bool next_transparent, closed_transparent;
    size_t text_len;
    size_t at;
} Reader;

/* ---- tokens ---------------------------------------------------------------------- */

static const Token *token_at(const Reader *r, size_t i)
{
    static const Token end = {.kind = TOKEN_END};
    return i < r->n->token_count ? &r->n->tokens[i].t : &end;
}

static bool is(const Reader *r, size_t i, const char *text)
{
    return token_is(token_at(r, i), text);
}

static bool is_value(const Reader *r, size_t i) { return token_at(r, i)->kind == TOKEN_VALUE; }
static bool is_name(const Reader *r, size_t i) { return token_at(r, i)->kind == TOKEN_NAME; }

static bool opens(const Reader *r, size_t i) { return is(r, i, "(") || is(r, i, "["); }
static bool closes(const Reader *r, size_t i) { return is(r, i, ")") || is(r, i, "]"); }

static bool begins_item(const Reader *r, size_t i)
{
    static const char *const words[] = {"param", "layout", "when", "program", "function", "import"};
    bool found = false;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        found |= is(r, i, words[k]);
    return found && token_at(r, i)->begins_line;
}

/* ---- scopes ---------------------------------------------------------------------- */

static size_t bucket_of(const char *text, size_t len)
{
    size_t hash = 5381;
    for (size_t i = 0; i < len; i++)
        hash = hash * 33 ^ (unsigned char)text[i];
    return hash % NAME_BUCKETS;
}

static void show(Reader *r, size_t name)
{
    Name *x = &r->n->names[name];
    size_t *bucket = &r->buckets[bucket_of(x->text, x->len)];
    x->next = *bucket;
    *bucket = name;
    LSP_PUSH(r->visible, r->visible_count, r->visible_capacity, name);
}

/* Hides the names that became visible after the first `count`, at byte `end`. */
static void hide(Reader *r, size_t count, size_t end)
{
    while (r->visible_count > count) {
        Name *x = &r->n->names[r->visible[--r->visible_count]];
        r->buckets[bucket_of(x->text, x->len)] = x->next;
        x->to = end;
    }
}

static size_t find(const Reader *r, const Token *t, NameKind kind)
{
    size_t i = r->buckets[bucket_of(t->start, t->len)];
    for (; i != NO_NAME; i = r->n->names[i].next) {
        const Name *x = &r->n->names[i];
        if (name_class(x->kind) == name_class(kind) && x->len == t->len &&
            !memcmp(x->text, t->start, t->len))
            return i;
    }
    return NO_NAME;
}

static size_t make_name(Reader *r, size_t token, NameKind kind)
{
    Names *n = r->n;
    NamedToken *t = &n->tokens[token];
    const Name made = {.kind = kind, .text = t->t.start, .len = t->t.len, .definition = token,
                       .from = t->offset, .to = r->text_len, .scope = r->scope, .next = NO_NAME};
    t->name = n->count;
    t->defines = true;
    LSP_PUSH(n->names, n->count, n->capacity, made);
    return t->name;
}

/* Binds a name of this scope, which may be bound in it already. */
static void bind(Reader *r, size_t token, NameKind kind)
{
    size_t known = find(r, token_at(r, token), kind);
    if (known == NO_NAME || r->n->names[known].scope != r->scope) {
        show(r, make_name(r, token, kind));
        return;
    }
    r->n->tokens[token].name = known;
    r->n->tokens[token].defines = true;
}

/* Binds the results of the statements that began in the innermost region. */
static void bind_pending(Reader *r)
{
    size_t first = r->open_count ? r->opens[r->open_count - 1].pending : 0;
    for (size_t i = first; i < r->pending_count; i++) {
        bind(r, r->pending[i], NAME_VALUE);
        Name *x = &r->n->names[r->n->tokens[r->pending[i]].name];
        if (x->definition == r->pending[i])
            x->from = named_token_end(&r->n->tokens[r->at - 1]);    /* after the statement */
    }
    r->pending_count = first;
}

static void open_scope(Reader *r, bool transparent)
{
    const Open o = {transparent, r->visible_count, r->pending_count, r->scope};
    LSP_PUSH(r->opens, r->open_count, r->open_capacity, o);
    if (!transparent)
        r->scope = ++r->scopes;
}

static void close_scope(Reader *r, size_t end)
{
    bind_pending(r);
    const Open o = r->opens[--r->open_count];
    r->closed_transparent = o.transparent;
    if (o.transparent)
        return;
    hide(r, o.visible, end);
    r->scope = o.scope;
}

/* ---- uses ------------------------------------------------------------------------- */

/* Finds the name that a token uses. */
static void use(Reader *r, size_t i)
{
    NamedToken *t = &r->n->tokens[i];
    if (t->name != NO_NAME || t->defines)
        return;
    if (t->t.kind == TOKEN_VALUE)
        t->name = find(r, &t->t, NAME_VALUE);
    if (t->t.kind != TOKEN_NAME)
        return;
    bool called = i && is(r, i - 1, "@") && (is(r, i + 1, "(") || is(r, i + 1, "<"));
    NameKind kind = called ? NAME_FUNCTION : NAME_PARAM;
    if (!called && is(r, i + 1, "(") && op_find(t->t.start, t->t.len) != OP_COUNT)
        return;
    t->name = find(r, &t->t, kind);
    t->unbound = t->name == NO_NAME ? (unsigned char)name_class(kind) : 0;
}

static void use_range(Reader *r, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        use(r, i);
}

/* Returns true when the brace opens attributes or facts, {name = value}. */
static bool opens_dictionary(const Reader *r, size_t i)
{
    return is(r, i, "{") && is_name(r, i + 1) && is(r, i + 2, "=") &&
           !token_at(r, i + 1)->begins_line;
}

static bool takes_word(const Token *key)
{
    for (AttrKind a = 0; a < ATTR_COUNT; a++)
        if (attr_info[a].value == ATTR_VALUE_WORD && token_is(key, attr_info[a].spelling))
            return true;
    return false;
}

/* Passes {name = value, ..}: keys and words are no names. */
static void read_dictionary(Reader *r)
{
    bool word = false;
    for (r->at++; r->at < r->n->token_count && !is(r, r->at, "}") && !is(r, r->at, "{"); r->at++) {
        if (is_name(r, r->at) && is(r, r->at + 1, "="))
            word = takes_word(token_at(r, r->at));
        else if (!word)
            use(r, r->at);
    }
    r->at += is(r, r->at, "}");
}

/* ---- statements ---------------------------------------------------------------------- */

/* Returns true when the token begins the next statement, not a line that goes on with a head. */
static bool begins_next(const Reader *r, size_t i)
{
    const Token *t = token_at(r, i);
    return t->begins_line && ((is_value(r, i) && (is(r, i + 1, "=") || is(r, i + 1, ","))) ||
                              (is_name(r, i) && op_find(t->start, t->len) != OP_COUNT));
}

/* The first token past the statement's head: at the brace of its region, or the next statement. */
static size_t head_end(const Reader *r, size_t i)
{
    unsigned depth = 0;
    for (size_t first = i; i < r->n->token_count; i++) {
        if (is(r, i, "}") || (!depth && is(r, i, "{")) ||
            (!depth && i > first && begins_next(r, i)))
            return i;
        depth += opens(r, i);
        depth -= depth && closes(r, i);
    }
    return i;
}

/* Notes the names of iter(%x = .., %y = ..), whose word is at `i`. */
static void read_carried(Reader *r, size_t i, size_t end)
{
    unsigned depth = 0;
    for (i++; i < end; i++) {
        if (depth == 1 && is_value(r, i) && is(r, i + 1, "=") &&
            (is(r, i - 1, "(") || is(r, i - 1, ",")))
            LSP_PUSH(r->carried, r->carried_count, r->carried_capacity, i);
        depth += opens(r, i);
        depth -= depth && closes(r, i);
        if (!depth)
            return;
    }
}

static size_t find_iter(const Reader *r, size_t i, size_t end)
{
    while (i < end && !(is(r, i, "iter") && is(r, i + 1, "(")))
        i++;
    return i;
}

/* Reads the head of a loop: its index and carried values are names of its region. A condition of
 * `while` sees these, too. */
static void read_loop(Reader *r)
{
    size_t end = head_end(r, r->at), iter = find_iter(r, r->at, end), begin = r->at + 1;
    bool is_while = is(r, r->at, "while");
    r->carried_count = 0;
    if (!is_while && is_value(r, begin))
        LSP_PUSH(r->carried, r->carried_count, r->carried_capacity, begin);
    read_carried(r, iter, end);
    size_t outer = r->visible_count, scope = r->scope;
    r->scope = r->scopes + 1;       /* that open_scope gives the region */
    for (size_t i = 0; i < r->carried_count; i++)
        make_name(r, r->carried[i], NAME_VALUE);
    r->scope = scope;
    for (size_t i = 0; is_while && i < r->carried_count; i++)
        show(r, r->n->tokens[r->carried[i]].name);
    use_range(r, begin, is_while ? iter : begin);
    hide(r, outer, r->text_len);
    use_range(r, begin, end);
    r->at = end;
}

/* Reads %a, %b = at the beginning of a statement. */
static void read_results(Reader *r)
{
    size_t i = r->at;
    while (is_value(r, i) && is(r, i + 1, ","))
        i += 2;
    if (!is_value(r, i) || !is(r, i + 1, "="))
        return;
    for (; r->at <= i; r->at += 2) {
        LSP_PUSH(r->pending, r->pending_count, r->pending_capacity, r->at);
        r->n->tokens[r->at].defines = true;
    }
}

/* Reads the beginning of a statement: results, the op's name. */
static void read_statement(Reader *r)
{
    if (is(r, r->at, "else")) {
        r->next_transparent = r->closed_transparent;
        r->at++;
        r->at += is(r, r->at, "when");
        return;
    }
    bind_pending(r);
    read_results(r);
    r->next_transparent = is(r, r->at, "when");
    r->carried_count = 0;
    const Token *t = token_at(r, r->at);
    if (is(r, r->at, "for") || is(r, r->at, "while"))
        read_loop(r);
    else if (r->next_transparent || (is_name(r, r->at) && op_find(t->start, t->len) != OP_COUNT))
        r->at++;
}

static void open_region(Reader *r)
{
    open_scope(r, r->next_transparent);
    for (size_t i = 0; i < r->carried_count; i++)
        show(r, r->n->tokens[r->carried[i]].name);
    r->carried_count = 0;
    r->next_transparent = false;
    r->at++;
}

/* Reads a body from its brace to the end of the last region. */
static void read_body(Reader *r, size_t outer)
{
    bool fresh = false;
    unsigned depth = 0;
    while (r->at < r->n->token_count) {
        if (opens_dictionary(r, r->at)) {
            read_dictionary(r);
            fresh = false;
        } else if (is(r, r->at, "{")) {
            open_region(r);
            fresh = true;
            depth = 0;
        } else if (is(r, r->at, "}")) {
            close_scope(r, r->n->tokens[r->at++].offset);
            fresh = true;
            depth = 0;
            if (r->open_count <= outer)
                return;
        } else if (fresh || (!depth && token_at(r, r->at)->begins_line)) {
            size_t before = r->at;
            fresh = false;
            read_statement(r);
            if (r->at == before)
                use(r, r->at), depth += opens(r, r->at), r->at++;
        } else {
            depth += opens(r, r->at);
            depth -= depth && closes(r, r->at);
            use(r, r->at++);
        }
    }
}

/* ---- items --------------------------------------------------------------------------- */

/* Passes <..>, binding the parameters of a function; the token is the bracket. */
static void read_angles(Reader *r, bool function)
{
    unsigned depth = 0;
    bool first = true;
    for (r->at++; r->at < r->n->token_count && !is(r, r->at, "{"); r->at++) {
        if (!depth && is(r, r->at, ">"))
            break;
        if (function && first && is_name(r, r->at))
            bind(r, r->at, NAME_PARAM);
        first = !depth && is(r, r->at, ",");
        depth += opens(r, r->at);
        depth -= depth && closes(r, r->at);
    }
    r->at += is(r, r->at, ">");
}

/* Passes (..), binding the arguments. */
static void read_arguments(Reader *r)
{
    unsigned depth = 0;
    bool first = false;
    for (; r->at < r->n->token_count; r->at++) {
        if (first && is_value(r, r->at))
            bind(r, r->at, NAME_VALUE);
        bool brace = is(r, r->at, "{");
        if (brace && !opens_dictionary(r, r->at))
            return;
        depth += opens(r, r->at) || brace || is(r, r->at, "<");
        first = depth == 1 && (is(r, r->at, "(") || is(r, r->at, ","));
        depth -= depth && (closes(r, r->at) || is(r, r->at, "}") || is(r, r->at, ">"));
        if (!depth) {
            r->at++;
            return;
        }
    }
}

static void add_item(Reader *r, NameKind kind, size_t first, size_t end, size_t name_token)
{
    const Item item = {kind, first, end, name_token};
    LSP_PUSH(r->n->items, r->n->item_count, r->n->item_capacity, item);
}

/* Reads program @name<grid>(arguments) .. { body }, or function likewise. */
static void read_code(Reader *r, NameKind kind)
{
    size_t first = r->at, outer = r->open_count, name = r->at + 2;
    r->at++;
    if (!is(r, r->at, "@") || !is_name(r, name))
        return;
    bind(r, name, kind);
    r->at = name + 1;
    open_scope(r, false);
    size_t head = r->at;
    if (is(r, r->at, "<"))
        read_angles(r, kind == NAME_FUNCTION);
    if (is(r, r->at, "("))
        read_arguments(r);
    while (r->at < r->n->token_count && !is(r, r->at, "{") && !begins_item(r, r->at))
        r->at++;
    use_range(r, head, r->at);
    if (is(r, r->at, "{")) {
        r->next_transparent = true;     /* the body's scope is that of the arguments */
        read_body(r, outer + 1);
    }
    while (r->open_count > outer)
        close_scope(r, r->at < r->n->token_count ? r->n->tokens[r->at].offset : r->text_len);
    add_item(r, kind, first, r->at, name);
}

/* The end of a param or layout: where the next item begins. */
static size_t item_end(const Reader *r)
{
    size_t i = r->at;
    while (i < r->n->token_count && !begins_item(r, i) && !is(r, i, "}") && !is(r, i, "{"))
        i++;
    return i;
}

/* Reads param A = .., B: type = .., or layout L = ... */
static void read_binding(Reader *r, NameKind kind)
{
    size_t first = r->at++, end = item_end(r);
    unsigned depth = 0;
    for (bool fresh = true; r->at < end; r->at++) {
        bool binds = fresh && is_name(r, r->at) &&
                     (is(r, r->at + 1, "=") || is(r, r->at + 1, ":"));
        if (binds) {
            bind(r, r->at, kind);
            add_item(r, kind, first, end, r->at);
        } else {
            use(r, r->at);
        }
        depth += opens(r, r->at);
        depth -= depth && closes(r, r->at);
        fresh = kind == NAME_PARAM && !depth && is(r, r->at, ",");
    }
}

static void read_items(Reader *r)
{
    while (r->at < r->n->token_count) {
        if (is(r, r->at, "program") && token_at(r, r->at)->begins_line)
            read_code(r, NAME_PROGRAM);
        else if (is(r, r->at, "function") && token_at(r, r->at)->begins_line)
            read_code(r, NAME_FUNCTION);
        else if (is(r, r->at, "param") && token_at(r, r->at)->begins_line)
            read_binding(r, NAME_PARAM);
        else if (is(r, r->at, "layout") && token_at(r, r->at)->begins_line)
            read_binding(r, NAME_LAYOUT);
        else
            use(r, r->at++);
    }
}

void names_bind(Names *n, size_t text_len)
{
    Reader *r = lsp_alloc(sizeof *r);
    r->n = n;
    r->text_len = text_len;
    for (size_t i = 0; i < NAME_BUCKETS; i++)
        r->buckets[i] = NO_NAME;
    read_items(r);
    free(r->visible);
    free(r->pending);
    free(r->carried);
    free(r->opens);
    free(r);
}
