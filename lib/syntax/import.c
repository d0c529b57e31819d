/* import "file": the items of another file, once, as if they stood here. */
#define _GNU_SOURCE
#include "syntax/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is read, or was. The main file is one too. */
typedef struct Import {
    struct Import *next;
    char *path;             /* canonical */
    bool open;
} Import;

/* ---- finding ---------------------------------------------------------------- */

static size_t directory_length(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? (size_t)(slash - file) + 1 : 0;
}

/* DIRECTORY/NAME where that is a regular file; else NULL. */
static const char *try_path(Parser *p, const char *directory, size_t len, const char *name)
{
    const char *sep = len && directory[len - 1] != '/' ? "/" : "";
    const char *path = arena_printf(&p->m->arena, "%.*s%s%s", (int)len, directory, sep, name);
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? path : NULL;
}

/* Beside the file that imports, then in the directories of -I, in their order. */
static const char *find_file(Parser *p, Loc loc, const char *name)
{
    const SourceText *from = diag_source(p->diag, loc);
    const char *path = try_path(p, from->file ? from->file : "",
                                *name == '/' ? 0 : directory_length(from->file), name);
    for (uint32_t i = 0; !path && *name != '/' && i < p->diag->import_path_count; i++) {
        const char *directory = p->diag->import_paths[i];
        path = try_path(p, directory, strlen(directory), name);
    }
    return path;
}

/* ---- reading ---------------------------------------------------------------- */

/* Keeps a copy of a file's text. */
static const SourceText *keep_text(Parser *p, const char *path, const char *text, size_t len)
{
    SourceText *s = arena_new(&p->diag->arena, SourceText);
    *s = source_keep(&p->diag->arena, path, text, len, 1);
    return s;
}

/* The bytes of a file, up to one more than the limit; NULL when it cannot be read. */
static const SourceText *read_file(Parser *p, const char *path)
{
    size_t len = 0, capacity = 4096, most = (size_t)diag_limit(p->diag, LIMIT_ID_INPUT);
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(capacity) : NULL;
    for (size_t n; text && len <= most && (n = fread(text + len, 1, capacity - len, file)) > 0;) {
        len += n;
        if (len < capacity)
            continue;
        char *longer = realloc(text, capacity *= 2);
        if (!longer)
            free(text);
        text = longer;
    }
    bool ok = text && !ferror(file);
    if (file)
        fclose(file);
    const SourceText *s = ok ? keep_text(p, path, text, len) : NULL;
    free(text);
    return s;
}

static char *canonical_path(Parser *p, const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = arena_strdup(&p->m->arena, real ? real : path);
    free(real);
    return copy;
}

/* The text of the file, in an editor or on the disk; NULL when it cannot be read. */
static const SourceText *file_text(Parser *p, const char *path, const char *real)
{
    const DiagHost *host = &p->diag->host;
    size_t len;
    const char *open = host->open_text ? host->open_text(host->data, real, &len) : NULL;
    return open ? keep_text(p, path, open, len) : read_file(p, path);
}

static Import *find_import(Parser *p, const char *path)
{
    for (Import *i = p->imports; i; i = i->next)
        if (!strcmp(i->path, path))
            return i;
    return NULL;
}

static Import *add_import(Parser *p, char *path)
{
    Import *import = arena_new(&p->m->arena, Import);
    *import = (Import){p->imports, path, true};
    p->imports = import;
    return import;
}

/* The main file, which another one may name. */
static void add_main_file(Parser *p)
{
    if (!p->imports && p->diag->source.file)
        add_import(p, canonical_path(p, p->diag->source.file));
}

/* Reads the items of `s` to its end. */
static bool read_items(Parser *p, const SourceText *s, Loc loc)
{
    Bookmark after = parser_bookmark(p);
    unsigned regions = p->regions;
    uint32_t frame = diag_add_frame(p->diag, &(SourceFrame){.source = s, .from = loc,
                                                            .what = "in the file imported here"});
    bool ok = source_check(p->diag, s, (Loc){.frame = frame});
    if (ok) {
        p->regions = 0;
        parser_enter_source(p, s, frame);
        ok = parse_version(p) && parse_items(p);
    }
    p->regions = regions;
    parser_go_to(p, after);
    return ok;
}

static bool import_file(Parser *p, Loc loc, const char *name)
{
    add_main_file(p);
    const char *path = find_file(p, loc, name);
    char *real = path ? canonical_path(p, path) : NULL;
    const SourceText *s = real ? file_text(p, path, real) : NULL;
    if (!s)
        return diag_error(p->diag, loc, "cannot read `%s`, beside this file or by -I", name);
    Import *known = find_import(p, real);
    if (known)
        return !known->open || diag_error(p->diag, loc, "%s imports itself", path);
    Import *import = add_import(p, real);
    bool ok = parser_enter(p, &p->nesting);
    if (ok) {
        ok = read_items(p, s, loc);
        p->nesting--;
    }
    import->open = false;
    return ok;
}

bool parse_import(Parser *p)
{
    parser_advance(p);
    if (p->token.kind != TOKEN_TEXT)
        return parser_expected(p, "the name of a file in quotes");
    const char *name = arena_strndup(&p->m->arena, p->token.start, p->token.len);
    Loc loc = p->token.loc;
    parser_advance(p);
    return import_file(p, loc, name);
}
