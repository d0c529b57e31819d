/* The files of open texts: these, and what they import, in the texts of the editor where they are
 * open. A name that a file uses and does not bind is one of a file that it imports, or of one that
 * imports it: an import stands for the text of its file. */
#define _GNU_SOURCE
#include "lsp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MOST = 256, FILE_MOST = 1 << 20 };

/* ---- reading ------------------------------------------------------------------------- */

/* The first FILE_MOST bytes of a file, or NULL. */
static char *read_text(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = lsp_alloc(FILE_MOST + 1);
    *len = fread(text, 1, FILE_MOST, file);
    fclose(file);
    return text;
}

/* Adds a file of the disk; NO_FILE where it cannot be read. Takes over the path. */
static size_t add_file(Files *f, char *path)
{
    size_t len;
    char *text = f->count < FILES_MOST ? read_text(path, &len) : NULL;
    File added = {.path = path, .text = text};
    if (!text) {
        free(path);
        return NO_FILE;
    }
    names_read(&added.own, text, len);
    LSP_PUSH(f->items, f->count, f->capacity, added);
    return f->count - 1;
}

/* The file with this canonical path, which it takes over. */
static size_t find_or_add(Files *f, char *path)
{
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->items[i].path, path)) {
            free(path);
            return i;
        }
    return add_file(f, path);
}

/* DIRECTORY/NAME in canonical form where that is a regular file; else NULL. */
static char *try_path(const char *directory, size_t len, const Token *name)
{
    struct stat status;
    Buffer b = {0};
    buffer_add_n(&b, directory, len);
    buffer_add(&b, len && directory[len - 1] != '/' ? "/" : "");
    buffer_add_n(&b, name->start, name->len);
    char *found = stat(b.data, &status) == 0 && S_ISREG(status.st_mode) ? realpath(b.data, NULL)
                                                                         : NULL;
    free(b.data);
    return found;
}

/* The file that `path` imports by that name: beside it, or in a directory of the configuration. */
static char *find_import(const Configuration *c, const char *path, const Token *name)
{
    const char *slash = strrchr(path, '/');
    bool absolute = name->len && *name->start == '/';
    size_t len = absolute || !slash ? 0 : (size_t)(slash - path) + 1;
    char *found = try_path(path, len, name);
    for (size_t i = 0; !found && !absolute && i < c->import_path_count; i++)
        found = try_path(c->import_paths[i], strlen(c->import_paths[i]), name);
    return found;
}

/* Notes the files that file `i` imports. */
static void read_imports(Files *f, const Configuration *c, size_t i)
{
    const Names *n = file_names(&f->items[i]);
    for (size_t k = 0; k + 1 < n->token_count; k++) {
        const Token *name = &n->tokens[k + 1].t;
        bool imports = token_is(&n->tokens[k].t, "import") && name->kind == TOKEN_TEXT;
        char *path = imports ? find_import(c, f->items[i].path, name) : NULL;
        size_t found = path ? find_or_add(f, path) : NO_FILE;
        File *file = &f->items[i];
        n = file_names(file);       /* adding may have moved it */
        if (found != NO_FILE)
            LSP_PUSH(file->imports, file->import_count, file->import_capacity, found);
    }
}

void files_read(Files *f, const Server *s)
{
    *f = (Files){0};
    for (const Document *d = s->documents; d; d = d->next) {
        const char *path = d->canonical ? d->canonical : d->path;
        const File open = {.document = d, .path = lsp_strndup(path, strlen(path))};
        LSP_PUSH(f->items, f->count, f->capacity, open);
    }
    for (size_t i = 0; i < f->count; i++)
        read_imports(f, &s->configuration, i);
}

void files_free(Files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].path);
        free(f->items[i].text);
        free(f->items[i].imports);
        names_free(&f->items[i].own);
    }
    free(f->items);
}

/* ---- questions ------------------------------------------------------------------------- */

size_t files_find(const Files *f, const Document *d)
{
    size_t i = 0;
    while (f->items[i].document != d)
        i++;
    return i;
}

static void mark_imports(const Files *f, size_t i, bool *reached)
{
    if (reached[i])
        return;
    reached[i] = true;
    for (size_t k = 0; k < f->items[i].import_count; k++)
        mark_imports(f, f->items[i].imports[k], reached);
}

bool *files_of_program(const Files *f, size_t root)
{
    bool *reached = lsp_alloc(f->count * sizeof *reached);
    mark_imports(f, root, reached);
    return reached;
}

/* The marked file that defines the name, or NO_FILE. */
static size_t find_definer(const Files *f, const bool *marked, const char *text, size_t len,
                           unsigned class)
{
    for (size_t i = 0; i < f->count; i++)
        if (marked[i] && names_find_global(file_names(&f->items[i]), text, len, class))
            return i;
    return NO_FILE;
}

/* Defines the name in the programs of `root`, of which the file is one; NO_FILE: none does. */
static size_t definer_for(const Files *f, size_t root, size_t file, const NamedToken *t)
{
    bool *marked = files_of_program(f, root);
    size_t found = marked[file] ? find_definer(f, marked, t->t.start, t->t.len, t->unbound)
                                : NO_FILE;
    free(marked);
    return found;
}

bool files_resolve(const Files *f, const Request *r, Global *g)
{
    size_t own = files_find(f, r->document);
    const Name *n = request_name(r);
    *g = (Global){.file = NO_FILE};
    if (n && (n->kind == NAME_VALUE || n->scope))
        return false;
    if (n) {
        *g = (Global){own, n->text, n->len, name_class(n->kind)};
    } else if (r->token && r->token->unbound) {
        const NamedToken *t = r->token;
        *g = (Global){definer_for(f, own, own, t), t->t.start, t->t.len, t->unbound};
        for (size_t i = 0; i < f->count && g->file == NO_FILE && f->items[i].document; i++)
            g->file = definer_for(f, i, own, t);
    }
    return g->file != NO_FILE;
}

const Name *files_name(const Files *f, const Global *g)
{
    return names_find_global(file_names(&f->items[g->file]), g->text, g->len, g->class);
}

bool file_uses(const File *file, const Global *g, const NamedToken *t)
{
    const Names *n = file_names(file);
    bool same = t->t.kind == TOKEN_NAME && t->t.len == g->len &&
                !memcmp(t->t.start, g->text, g->len);
    return same && (t->name != NO_NAME ? &n->names[t->name] ==
                                             names_find_global(n, g->text, g->len, g->class)
                                       : t->unbound == g->class);
}

bool *files_with(const Files *f, size_t file)
{
    bool *all = lsp_alloc(f->count * sizeof *all);
    for (size_t root = 0; root < f->count && f->items[root].document; root++) {
        bool *marked = files_of_program(f, root);
        for (size_t i = 0; marked[file] && i < f->count; i++)
            all[i] |= marked[i];
        free(marked);
    }
    return all;
}

bool files_other_definition(const Files *f, const Global *g, size_t file)
{
    bool other = false;
    for (size_t root = 0; !other && root < f->count && f->items[root].document; root++) {
        bool *marked = files_of_program(f, root);
        other = marked[file] && !marked[g->file] &&
                find_definer(f, marked, g->text, g->len, g->class) != NO_FILE;
        free(marked);
    }
    return other;
}

/* ---- places ------------------------------------------------------------------------------ */

json_t *file_location(const File *file, const NamedToken *t)
{
    if (file->document)
        return json_pack("{s:o,s:o}", "uri",
                         text_json(file->document->uri, strlen(file->document->uri)), "range",
                         document_token_range(file->document, t));
    /* Columns are of ASCII where nothing else is before a name. */
    char *uri = path_to_uri(file->path);
    int line = (int)t->t.loc.line - 1, column = (int)t->t.loc.column - 1;
    json_t *location = json_pack("{s:o,s:{s:{s:i,s:i},s:{s:i,s:i}}}", "uri",
                                 text_json(uri, strlen(uri)), "range", "start", "line", line,
                                 "character", column, "end", "line", line, "character",
                                 column + (int)t->t.loc.length);
    free(uri);
    return location;
}
