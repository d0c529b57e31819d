/* Inlay hints: types and layouts that the text leaves to the compiler. */
#include "lsp.h"

#include "ir/ir.h"

#include <string.h>

enum { HINT_MOST = 64, KIND_TYPE = 1 };

/* The part of a result's type that the statement's first line has. */
typedef enum Written { WRITTEN_NOTHING, WRITTEN_TYPE, WRITTEN_ALL } Written;

static Written written_type(const Names *n, size_t token)
{
    Written found = WRITTEN_NOTHING;
    unsigned depth = 0;
    for (size_t i = token + 1; i < n->token_count && !n->tokens[i].t.begins_line; i++) {
        const Token *t = &n->tokens[i].t;
        depth += token_is(t, "(") || token_is(t, "[");
        depth -= depth && (token_is(t, ")") || token_is(t, "]"));
        if (!depth && token_is(t, ":"))
            found = WRITTEN_TYPE;
        if (!depth && found && (token_is(t, "@") || token_is(t, "swizzle")))
            return WRITTEN_ALL;
    }
    return found;
}

/* Returns true when all instances of a value have one type. */
static bool agree(const ValueNote *v, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(v[i].type, v[0].type))
            return false;
    return true;
}

/* The hint's text; NULL: the text says it all. */
static json_t *hint_text(const ValueNote *v, Written written, Buffer *whole)
{
    bool results = v->value->def != NULL && v->value->type->kind != TYPE_SCALAR;
    if (!results || written == WRITTEN_ALL || (written == WRITTEN_TYPE && !v->layout))
        return NULL;
    if (written == WRITTEN_TYPE)
        buffer_printf(whole, " @ %s", v->layout);
    else
        buffer_printf(whole, ": %s", v->type);
    Buffer b = {0};
    buffer_add_n(&b, whole->data, whole->len < HINT_MOST ? whole->len : HINT_MOST);
    buffer_add(&b, whole->len > HINT_MOST ? "…" : "");
    return buffer_json(&b);
}

static void add_hint(json_t *all, const Request *r, const Analysis *a, size_t token)
{
    const Names *n = &r->document->names;
    const NamedToken *t = &n->tokens[token];
    size_t count;
    const ValueNote *v = analysis_values(a, t->offset, &count);
    Buffer whole = {0};
    json_t *label = v && agree(v, count) ? hint_text(v, written_type(n, token), &whole) : NULL;
    if (!label)
        return;
    json_array_append_new(all, json_pack("{s:o,s:o,s:i,s:o}", "position",
                                         document_position(r->document, named_token_end(t)),
                                         "label", label, "kind", KIND_TYPE, "tooltip",
                                         buffer_json(&whole)));
}

json_t *request_hints(Request *r)
{
    const Document *d = r->document;
    const json_t *range = json_object_get(r->params, "range");
    size_t begin = 0, end = d->len;
    if (range && (!document_offset(d, json_object_get(range, "start"), &begin) ||
                  !document_offset(d, json_object_get(range, "end"), &end))) {
        r->error = "the range does not lie in the document";
        return NULL;
    }
    const Analysis *a = analysis_of(r->server, r->document);
    json_t *all = json_array();
    for (size_t i = 0; i < d->names.token_count; i++) {
        const NamedToken *t = &d->names.tokens[i];
        if (t->defines && t->t.kind == TOKEN_VALUE && t->offset >= begin && t->offset <= end)
            add_hint(all, r, a, i);
    }
    return all;
}
