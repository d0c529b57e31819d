/* Rename: of names that open texts bind, to a name that nothing near them has. */
#include "lsp.h"

#include "syntax/parser.h"

#include <stdlib.h>
#include <string.h>

static json_t *refuse(Request *r, const char *format, const char *name)
{
    snprintf(r->error_text, sizeof r->error_text, format, name);
    r->error = r->error_text;
    return NULL;
}

/* The token's name without its %. */
static json_t *bare_range(const Document *d, const NamedToken *t)
{
    return document_range(d, t->offset + (t->t.kind == TOKEN_VALUE), named_token_end(t));
}

/* Returns true when another file that is known binds what the token uses. */
static bool is_bound_elsewhere(const Request *r)
{
    Files f;
    Global g;
    files_read(&f, r->server);
    bool found = files_resolve(&f, r, &g);
    files_free(&f);
    return found;
}

json_t *request_prepare_rename(Request *r)
{
    if (!request_name(r) && !is_bound_elsewhere(r))
        return json_null();
    return json_pack("{s:o,s:o}", "range", bare_range(r->document, r->token), "placeholder",
                     text_json(r->token->t.start, r->token->t.len));
}

enum { NAME_LONGEST = 128 };

/* Returns true when the whole text is one token of that kind, which is then in *t. */
static bool is_token(const char *text, TokenKind kind, Token *t)
{
    Lexer lx;
    size_t len = strlen(text);
    lexer_init(&lx, &(SourceText){NULL, text, len, 1}, 0);
    *t = lexer_next(&lx);
    return t->kind == kind && t->loc.length == len && len <= NAME_LONGEST;
}

/* Returns true when the text names what `kind` is. */
static bool is_right_name(const char *text, NameKind kind)
{
    Token t;
    if (kind == NAME_VALUE) {
        char marked[NAME_LONGEST];
        int len = snprintf(marked, sizeof marked, "%%%s", text);
        return len < (int)sizeof marked && is_token(marked, TOKEN_VALUE, &t);
    }
    bool any = kind == NAME_FUNCTION || kind == NAME_PROGRAM;
    return is_token(text, TOKEN_NAME, &t) && (any || !parser_is_word(&t));
}

/* Returns true when a token spells the new name where the old one is visible. */
static bool is_taken(const Names *n, const Name *old, const char *text)
{
    size_t len = strlen(text);
    TokenKind kind = old->kind == NAME_VALUE ? TOKEN_VALUE : TOKEN_NAME;
    for (size_t i = 0; i < n->token_count; i++) {
        const NamedToken *t = &n->tokens[i];
        if (t->t.kind != kind || t->t.len != len || memcmp(t->t.start, text, len))
            continue;
        const Name *other = t->name != NO_NAME ? &n->names[t->name] : NULL;
        if (other ? other->from <= old->to && old->from <= other->to
                  : old->from <= t->offset && t->offset <= old->to)
            return true;
    }
    return false;
}

static json_t *edit_of(const Document *d, const NamedToken *t, const char *text)
{
    return json_pack("{s:o,s:s}", "range", bare_range(d, t), "newText", text);
}

/* The edits of a name that one text alone has. */
static json_t *rename_here(Request *r, const Name *n, const char *text)
{
    const Document *d = r->document;
    if (is_taken(&d->names, n, text))
        return refuse(r, "`%.64s` is in use already", text);
    json_t *edits = json_array();
    for (size_t i = 0; i < d->names.token_count; i++)
        if (d->names.tokens[i].name == r->token->name)
            json_array_append_new(edits, edit_of(d, &d->names.tokens[i], text));
    return json_pack("{s:{s:o}}", "changes", d->uri, edits);
}

/* ---- files ------------------------------------------------------------------------------- */

/* Returns true when a token of the file spells the name. */
static bool spells(const Names *n, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < n->token_count; i++) {
        const NamedToken *t = &n->tokens[i];
        if (t->t.kind == TOKEN_NAME && (t->name != NO_NAME || t->unbound) && t->t.len == len &&
            !memcmp(t->t.start, text, len))
            return true;
    }
    return false;
}

/* The edits of a file. */
static json_t *edits_of_file(const File *file, const Global *g, const char *text)
{
    json_t *edits = json_array();
    for (size_t i = 0; i < file_names(file)->token_count; i++) {
        const NamedToken *t = &file_names(file)->tokens[i];
        if (!file_uses(file, g, t))
            continue;
        if (!file->document) {
            json_decref(edits);
            return NULL;
        }
        json_array_append_new(edits, edit_of(file->document, t, text));
    }
    return edits;
}

/* Returns true where the file forbids the name, which *error says. */
static bool is_refused(Request *r, const Files *f, size_t i, const Global *g, const char *text)
{
    const File *file = &f->items[i];
    bool taken = i == g->file ? is_taken(file_names(file), files_name(f, g), text)
                              : spells(file_names(file), text);
    if (taken)
        refuse(r, "`%.64s` is in use already", text);
    return taken;
}

/* Adds a file's edits; false where there can be none, which *error says. */
static bool rename_in_file(Request *r, const Files *f, size_t i, const Global *g, const char *text,
                           json_t *changes)
{
    const File *file = &f->items[i];
    json_t *edits = edits_of_file(file, g, text);
    bool ok = edits && (!json_array_size(edits) || !files_other_definition(f, g, i));
    if (!edits)
        refuse(r, "%.120s, which is not open, has the name, too", file->path);
    else if (!ok)
        refuse(r, "%.120s uses another definition of the name, too", file->path);
    else if (json_array_size(edits))
        json_object_set(changes, file->document->uri, edits);
    json_decref(edits);
    return ok;
}

/* The edits of a name that other files may use, in all of them. */
static json_t *rename_in_files(Request *r, const Files *f, const Global *g, const char *text)
{
    const NameKind kind = files_name(f, g)->kind;
    if (!is_right_name(text, kind))
        return refuse(r, "`%.64s` is no name, or a word of the language", text);
    bool *marked = files_with(f, g->file), ok = true;
    json_t *changes = json_object();
    for (size_t i = 0; ok && i < f->count; i++)
        ok = !marked[i] || (!is_refused(r, f, i, g, text) &&
                            rename_in_file(r, f, i, g, text, changes));
    free(marked);
    if (ok)
        return json_pack("{s:o}", "changes", changes);
    json_decref(changes);
    return NULL;
}

json_t *request_rename(Request *r)
{
    Files f;
    Global g;
    const Name *n = request_name(r);
    const char *text = json_string_value(json_object_get(r->params, "newName"));
    files_read(&f, r->server);
    bool of_files = files_resolve(&f, r, &g);
    json_t *result = NULL;
    if (!text || (!n && !of_files)) {
        refuse(r, "there is no name here that a file binds%s", "");
    } else {
        text += *text == (n && n->kind == NAME_VALUE ? '%' : '@');
        if (of_files)
            result = rename_in_files(r, &f, &g, text);
        else if (is_right_name(text, n->kind))
            result = rename_here(r, n, text);
        else
            refuse(r, "`%.64s` is no name, or a word of the language", text);
    }
    files_free(&f);
    return result;
}
