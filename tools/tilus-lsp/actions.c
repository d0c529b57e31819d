/* Code actions: facts that remarks and messages ask for ("{divisible = 8} of %n"), and the op that
 * a misspelled one is like. */
#include "lsp.h"

#include "ir/op_info.h"
#include "support/nearest.h"

#include <stdlib.h>
#include <string.h>

/* "{divisible = 64} of %n" in a text. */
typedef struct Fact {
    const char *text;           /* divisible = 64 */
    size_t len, key_len;
    const char *name;
    size_t name_len;
} Fact;

static bool find_fact(const char *text, Fact *f)
{
    static const char *const keys[] = {"{divisible = ", "{range = ", "{align = "};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *begin = strstr(text, keys[i]), *end = begin ? strstr(begin, "} of %") : NULL;
        if (!end)
            continue;
        f->text = begin + 1;
        f->len = (size_t)(end - f->text);
        f->key_len = strcspn(f->text, " ");
        f->name = end + strlen("} of %");
        f->name_len = strspn(f->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_");
        return true;
    }
    return false;
}

/* The token that binds an argument in a program's head, or NO_NAME. */
static size_t find_argument(const Names *n, const Item *item, const Fact *f)
{
    for (size_t i = item->first; i + 1 < item->end; i++) {
        const NamedToken *t = &n->tokens[i];
        if (t->t.kind == TOKEN_VALUE && t->defines && t->t.len == f->name_len &&
            !memcmp(t->t.start, f->name, f->name_len) && token_is(&t[1].t, ":"))
            return i;
    }
    return NO_NAME;
}

/* The end of the argument at token `i`: the comma or parenthesis after it. */
static size_t argument_end(const Names *n, const Item *item, size_t i)
{
    unsigned depth = 0;
    for (; i < item->end; i++) {
        const Token *t = &n->tokens[i].t;
        bool closes = token_is(t, ")") || token_is(t, "]") || token_is(t, "}") || token_is(t, ">");
        if (!depth && (closes || token_is(t, ",")))
            break;
        depth += token_is(t, "(") || token_is(t, "[") || token_is(t, "{") || token_is(t, "<");
        depth -= depth && closes;
    }
    return i;
}

/* The last token of a fact that begins at token `key`; token `last` is that of the last one. */
static size_t fact_end(const Names *n, size_t key, size_t last)
{
    unsigned depth = 0;
    for (; key < last; key++) {
        const Token *next = &n->tokens[key + 1].t;
        depth += token_is(next, "[");
        depth -= depth && token_is(next, "]");
        if (!depth && token_is(next, ","))
            break;
    }
    return key;
}

/* The edit that gives an argument the fact: in braces of its own, beside others, or in the place of
 * the weaker one. */
static json_t *fact_edit(const Document *d, const Item *item, size_t argument, const Fact *f)
{
    const Names *n = &d->names;
    size_t end = argument_end(n, item, argument), begin = argument, key = NO_NAME;
    while (begin < end && !token_is(&n->tokens[begin].t, "{"))
        begin++;
    for (size_t i = begin; i + 2 < end; i++)
        if (n->tokens[i].t.len == f->key_len && !memcmp(n->tokens[i].t.start, f->text, f->key_len))
            key = i;
    Buffer b = {0};
    const char *before = begin == end ? " {" : key == NO_NAME ? ", " : "";
    buffer_printf(&b, "%s%.*s%s", before, (int)f->len, f->text, begin == end ? "}" : "");
    size_t last = begin == end ? end - 1 : end - 2;      /* before the brace that closes */
    size_t from = named_token_end(&n->tokens[last]), to = from;
    if (key != NO_NAME) {
        from = n->tokens[key].offset;
        to = named_token_end(&n->tokens[fact_end(n, key, end - 2)]);
    }
    return json_pack("{s:o,s:o}", "range", document_range(d, from, to), "newText", buffer_json(&b));
}

/* Appends an action that makes one edit, unless it is there. */
static void add_action(json_t *all, const Document *d, Buffer *title, json_t *edit)
{
    json_t *changes = json_object();
    json_object_set_new(changes, d->uri, json_pack("[o]", edit));
    json_t *action = json_pack("{s:o,s:s,s:{s:o}}", "title", buffer_json(title), "kind", "quickfix",
                               "edit", "changes", changes);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_equal(json_array_get(all, i), action)) {
            json_decref(action);
            return;
        }
    json_array_append_new(all, action);
}

/* The program called `name`, or the one around the byte. */
static const Item *find_program(const Names *n, const char *name, size_t offset)
{
    for (size_t i = 0; *name && i < n->item_count; i++) {
        const Token *t = &n->tokens[n->items[i].name_token].t;
        if (n->items[i].kind == NAME_PROGRAM && t->len == strlen(name) &&
            !memcmp(t->start, name, t->len))
            return &n->items[i];
    }
    const Item *around = *name ? NULL : names_item_at(n, offset);
    return around && around->kind == NAME_PROGRAM ? around : NULL;
}

static void add_fact(json_t *all, const Document *d, const char *text, const char *program,
                     size_t offset)
{
    Fact f;
    const Item *item = find_fact(text, &f) ? find_program(&d->names, program, offset) : NULL;
    size_t argument = item ? find_argument(&d->names, item, &f) : NO_NAME;
    if (argument == NO_NAME)
        return;
    Buffer title = {0};
    buffer_printf(&title, "Add {%.*s} to %%%.*s", (int)f.len, f.text, (int)f.name_len, f.name);
    add_action(all, d, &title, fact_edit(d, item, argument, &f));
}

/* unknown op `dots`: the op that is like it. */
static void add_spelling(json_t *all, const Document *d, const Message *m, size_t offset)
{
    const NamedToken *t = names_token_at(&d->names, offset);
    if (strncmp(m->text, "unknown op `", strlen("unknown op `")) || !t)
        return;
    Nearest n = {.name = t->t.start, .len = t->t.len};
    for (OpCode op = 0; op < OP_COUNT; op++)
        nearest_try(&n, op_info[op].name);
    if (!n.found)
        return;
    Buffer title = {0};
    buffer_printf(&title, "Change to %s", n.found);
    json_t *edit = json_pack("{s:o,s:s}", "range", document_token_range(d, t), "newText", n.found);
    add_action(all, d, &title, edit);
}

static void add_message_actions(json_t *all, const Analysis *a, size_t first, size_t last)
{
    const Document *d = a->document;
    for (uint32_t i = 0; i < a->diag->count; i++) {
        const Message *m = &a->diag->messages[i];
        const Loc loc = diag_root(a->diag, m->loc);
        size_t offset = document_loc_offset(d, loc);
        if (!loc.line || loc.line < first + 1 || loc.line > last + 1)
            continue;
        add_fact(all, d, m->text, "", offset);
        if (!m->loc.frame)
            add_spelling(all, d, m, offset);
    }
}

json_t *request_actions(Request *r)
{
    const Document *d = r->document;
    const json_t *range = json_object_get(r->params, "range");
    size_t begin, end;
    if (!document_offset(d, json_object_get(range, "start"), &begin) ||
        !document_offset(d, json_object_get(range, "end"), &end)) {
        r->error = "the range does not lie in the document";
        return NULL;
    }
    size_t first = document_line_of(d, begin), last = document_line_of(d, end);
    const Analysis *a = analysis_of(r->server, r->document);
    json_t *all = json_array();
    add_message_actions(all, a, first, last);
    for (size_t i = 0; i < a->remark_count; i++)
        if (a->remarks[i].line >= first + 1 && a->remarks[i].line <= last + 1)
            add_fact(all, d, a->remarks[i].text, a->remarks[i].program, begin);
    return all;
}
