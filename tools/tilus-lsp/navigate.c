/* Definition, references, highlights, symbols. */
#include "lsp.h"

#include <stdlib.h>
#include <string.h>

/* ---- definition -------------------------------------------------------------------------- */

static json_t *location_of(const Document *d, const NamedToken *t)
{
    return json_pack("{s:o,s:o}", "uri", text_json(d->uri, strlen(d->uri)), "range",
                     document_token_range(d, t));
}

/* The binding that a use sees: the last one of its name before it, or the first one. */
static const NamedToken *binding_of(const Names *n, const NamedToken *use)
{
    for (const NamedToken *t = use; t-- > n->tokens;)
        if (t->name == use->name && t->defines)
            return t;
    return &n->tokens[n->names[use->name].definition];
}

/* The place where another file defines what a token uses. */
static json_t *find_elsewhere(const Request *r)
{
    Files f;
    Global g;
    files_read(&f, r->server);
    json_t *place = json_null();
    if (files_resolve(&f, r, &g)) {
        const File *file = &f.items[g.file];
        place = file_location(file, &file_names(file)->tokens[files_name(&f, &g)->definition]);
    }
    files_free(&f);
    return place;
}

json_t *request_definition(Request *r)
{
    const Names *n = &r->document->names;
    if (!request_name(r))
        return find_elsewhere(r);
    return location_of(r->document, r->token->defines ? r->token : binding_of(n, r->token));
}

/* ---- references ---------------------------------------------------------------------------- */

/* Appends the places of a file that mean the name. */
static void add_uses(json_t *all, const File *file, const Global *g, bool definitions)
{
    const Names *n = file_names(file);
    for (size_t i = 0; i < n->token_count; i++)
        if (file_uses(file, g, &n->tokens[i]) && (definitions || !n->tokens[i].defines))
            json_array_append_new(all, file_location(file, &n->tokens[i]));
}

/* The places of a name in the files that see it; NULL where it is of one file alone. */
static json_t *references_in_files(const Request *r, bool definitions)
{
    Files f;
    Global g;
    json_t *all = NULL;
    files_read(&f, r->server);
    if (files_resolve(&f, r, &g)) {
        all = json_array();
        bool *marked = files_with(&f, g.file);
        for (size_t i = 0; i < f.count; i++)
            if (marked[i])
                add_uses(all, &f.items[i], &g, definitions);
        free(marked);
    }
    files_free(&f);
    return all;
}

json_t *request_references(Request *r)
{
    const Names *n = &r->document->names;
    bool definitions = json_is_true(
        json_object_get(json_object_get(r->params, "context"), "includeDeclaration"));
    json_t *all = references_in_files(r, definitions);
    if (all)
        return all;
    all = json_array();
    for (size_t i = 0; request_name(r) && i < n->token_count; i++)
        if (n->tokens[i].name == r->token->name && (definitions || !n->tokens[i].defines))
            json_array_append_new(all, location_of(r->document, &n->tokens[i]));
    return all;
}

json_t *request_highlight(Request *r)
{
    enum { READ = 2, WRITE = 3 };
    const Names *n = &r->document->names;
    json_t *all = json_array();
    for (size_t i = 0; request_name(r) && i < n->token_count; i++)
        if (n->tokens[i].name == r->token->name)
            json_array_append_new(all, json_pack("{s:o,s:i}", "range",
                                                 document_token_range(r->document, &n->tokens[i]),
                                                 "kind", n->tokens[i].defines ? WRITE : READ));
    return all;
}

/* ---- symbols ----------------------------------------------------------------------------- */

json_t *request_symbols(Request *r)
{
    static const int kinds[] = {[NAME_PARAM] = 14, [NAME_LAYOUT] = 23, [NAME_FUNCTION] = 12,
                                [NAME_PROGRAM] = 12};       /* Constant, Struct, Function */
    const Names *n = &r->document->names;
    json_t *all = json_array();
    for (size_t i = 0; i < n->item_count; i++) {
        const Item *item = &n->items[i];
        const NamedToken *name = &n->tokens[item->name_token];
        size_t begin = n->tokens[item->first].offset;
        size_t end = named_token_end(&n->tokens[item->end - 1]);
        json_array_append_new(
            all, json_pack("{s:o,s:i,s:o,s:o}", "name", text_json(name->t.start, name->t.len),
                           "kind", kinds[item->kind], "range",
                           document_range(r->document, begin, end), "selectionRange",
                           document_token_range(r->document, name)));
    }
    return all;
}
