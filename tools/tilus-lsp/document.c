/* Open texts: positions, which count units of UTF-16, and edits. */
#define _GNU_SOURCE
#include "lsp.h"

#include "common/text.h"
#include "support/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------- */

static _Noreturn void end_without_memory(void)
{
    fputs("tilus-lsp: error: out of memory\n", stderr);
    exit(1);
}

void *lsp_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        end_without_memory();
    return p;
}

char *lsp_strndup(const char *s, size_t len)
{
    char *copy = lsp_alloc(len + 1);
    memcpy(copy, s, len);
    return copy;
}

void lsp_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    void **array = items;
    if (count < *capacity)
        return;
    *capacity = *capacity ? 2 * *capacity : 16;
    *array = reallocarray(*array, *capacity, size);
    if (!*array)
        end_without_memory();
}

void buffer_add_n(Buffer *b, const char *s, size_t len)
{
    if (b->len + len + 1 > b->capacity) {
        b->capacity = 2 * (b->len + len + 1);
        b->data = realloc(b->data, b->capacity);
        if (!b->data)
            end_without_memory();
    }
    memcpy(b->data + b->len, s, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buffer_add(Buffer *b, const char *s) { buffer_add_n(b, s, strlen(s)); }

void buffer_printf(Buffer *b, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        end_without_memory();
    buffer_add_n(b, text, (size_t)len);
    free(text);
}

json_t *text_json(const char *s, size_t len)
{
    json_t *right = json_stringn(s, len);
    if (right)
        return right;
    char *copy = lsp_strndup(s, len);
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_length(copy + i, len - i);
        if (!n) {
            copy[i] = '?';
            n = 1;
        }
    }
    right = json_stringn(copy, len);
    free(copy);
    return right;
}

json_t *buffer_json(Buffer *b)
{
    json_t *text = text_json(b->data ? b->data : "", b->len);
    free(b->data);
    *b = (Buffer){0};
    return text;
}

/* ---- URIs ----------------------------------------------------------------------- */

char *uri_to_path(const char *uri)
{
    static const char scheme[] = "file://";
    bool file = !strncmp(uri, scheme, sizeof scheme - 1);
    const char *from = file ? uri + sizeof scheme - 1 : uri;
    char *path = lsp_strndup(from, strlen(from));
    if (file)
        text_percent_decode(path);
    return path;
}

char *path_to_uri(const char *path)
{
    static const char plain[] = "/-._~ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789";
    Buffer b = {0};
    char *full = realpath(path, NULL);
    buffer_add(&b, "file://");
    for (const char *p = full ? full : path; *p; p++)
        if (strchr(plain, *p))
            buffer_add_n(&b, p, 1);
        else
            buffer_printf(&b, "%%%02X", (unsigned char)*p);
    free(full);
    return b.data;
}

/* ---- texts ------------------------------------------------------------------------ */

static void document_read_again(Document *d)
{
    d->line_count = 0;
    LSP_PUSH(d->lines, d->line_count, d->line_capacity, 0);
    for (size_t i = 0; i < d->len; i++)
        if (d->text[i] == '\n')
            LSP_PUSH(d->lines, d->line_count, d->line_capacity, i + 1);
    names_free(&d->names);
    names_read(&d->names, d->text, d->len);
    analysis_free(d->analysis);
    d->analysis = NULL;
    d->changed = true;
}

Document *document_new(const char *uri, const char *text, size_t len, json_int_t version)
{
    Document *d = lsp_alloc(sizeof *d);
    d->uri = lsp_strndup(uri, strlen(uri));
    d->path = uri_to_path(uri);
    d->canonical = realpath(d->path, NULL);
    d->text = lsp_strndup(text, len);
    d->len = len;
    d->version = version;
    document_read_again(d);
    return d;
}

void document_free(Document *d)
{
    analysis_free(d->analysis);
    names_free(&d->names);
    free(d->lines);
    free(d->text);
    free(d->path);
    free(d->canonical);
    free(d->uri);
    free(d);
}

void document_replace(Document *d, size_t begin, size_t end, const char *text, size_t len)
{
    Buffer b = {0};
    buffer_add_n(&b, d->text, begin);
    buffer_add_n(&b, text, len);
    buffer_add_n(&b, d->text + end, d->len - end);
    free(d->text);
    d->text = b.data;
    d->len = b.len;
    document_read_again(d);
}

/* ---- positions ---------------------------------------------------------------------- */

size_t document_line_of(const Document *d, size_t offset)
{
    size_t least = 0, most = d->line_count;
    while (most - least > 1) {
        size_t middle = least + (most - least) / 2;
        if (d->lines[middle] <= offset)
            least = middle;
        else
            most = middle;
    }
    return least;
}

size_t document_line_end(const Document *d, size_t line)
{
    size_t end = line + 1 < d->line_count ? d->lines[line + 1] - 1 : d->len;
    return end > d->lines[line] && d->text[end - 1] == '\r' ? end - 1 : end;
}

size_t document_loc_offset(const Document *d, Loc loc)
{
    if (!loc.line || loc.line > d->line_count)
        return loc.line ? d->len : 0;
    size_t offset = d->lines[loc.line - 1] + loc.column - 1;
    return offset < d->len ? offset : d->len;
}

/* Bytes of the character at text[0], at least 1. */
static size_t character_length(const Document *d, size_t at)
{
    size_t n = utf8_length(d->text + at, d->len - at);
    return n ? n : 1;
}

bool document_offset(const Document *d, const json_t *position, size_t *offset)
{
    const json_t *line = json_object_get(position, "line");
    const json_t *column = json_object_get(position, "character");
    if (!json_is_integer(line) || !json_is_integer(column) || json_integer_value(line) < 0 ||
        json_integer_value(column) < 0)
        return false;
    *offset = d->len;
    if ((unsigned long long)json_integer_value(line) >= d->line_count)
        return true;
    size_t number = (size_t)json_integer_value(line), end = document_line_end(d, number);
    json_int_t left = json_integer_value(column);
    size_t at = d->lines[number];
    while (left > 0 && at < end) {
        size_t n = character_length(d, at);
        left -= n == 4 ? 2 : 1;
        if (left < 0)       /* within a pair of surrogates: before it */
            break;
        at += n;
    }
    *offset = at;
    return true;
}

json_t *document_position(const Document *d, size_t offset)
{
    size_t line = document_line_of(d, offset), column = 0;
    for (size_t at = d->lines[line]; at < offset;) {
        size_t n = character_length(d, at);
        column += n == 4 ? 2 : 1;
        at += n;
    }
    return json_pack("{s:I,s:I}", "line", (json_int_t)line, "character", (json_int_t)column);
}

json_t *document_range(const Document *d, size_t begin, size_t end)
{
    return json_pack("{s:o,s:o}", "start", document_position(d, begin), "end",
                     document_position(d, end));
}

json_t *document_token_range(const Document *d, const NamedToken *t)
{
    return document_range(d, t->offset, named_token_end(t));
}
