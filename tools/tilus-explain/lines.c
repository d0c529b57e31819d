/* PTX and SASS, and which of their instructions each line of the text became: .loc says so, and
 * the marks of nvdisasm. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk over PTX. */
typedef struct Walk {
    Explain *e;
    json_t *names;              /* of files, by number as text */
    json_t *lines;              /* the result */
    json_t *by_place;           /* its entries by program, file and line */
    char program[256];
    const char *member;         /* of an entry: "ptx" or "sass" */
    char file[1024];            /* its name; "": of no line, as line 0 */
    unsigned line;
} Walk;

/* ---- files ---------------------------------------------------------------------------- */

/* Reads `.file 1 "name"`, where the name is percent-encoded. */
static void take_file(Walk *w, const char *text, size_t size)
{
    unsigned number;
    char key[16], *copy = strndup(text, size), *name = copy ? strchr(copy, '"') : NULL;
    char *end = name ? strchr(name + 1, '"') : NULL;
    if (end && sscanf(copy, " .file %u", &number) == 1) {
        *end = '\0';
        text_percent_decode(name + 1);
        snprintf(key, sizeof key, "%u", number);
        doc_put(w->e, w->names, key, doc_text(name + 1));
    }
    free(copy);
}

/* ---- instructions ----------------------------------------------------------------------- */

/* The opcode of a line of PTX, without its predicate; 0 where it is no instruction. */
static size_t find_opcode(const char **text, size_t size)
{
    const char *at = *text, *end = *text + size;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (at < end && *at == '@') {
        while (at < end && *at != ' ' && *at != '\t')
            at++;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
    }
    *text = at;
    size_t n = 0;
    while (at + n < end && ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= '0' && at[n] <= '9') ||
                            at[n] == '.' || at[n] == '_' || at[n] == ':'))
        n++;
    bool is_word = n && at[0] >= 'a' && at[0] <= 'z';
    return is_word && (at + n == end || strchr(" \t;", at[n])) ? n : 0;
}

/* The entry of the place where the walk is. */
static json_t *entry_here(Walk *w)
{
    char place[1400];
    snprintf(place, sizeof place, "%s:%u:%s", w->program, w->line, w->file);
    json_t *entry = json_object_get(w->by_place, place);
    if (entry)
        return entry;
    entry = json_object();
    doc_put(w->e, entry, "program", doc_text(w->program));
    doc_put(w->e, entry, "file", doc_text(w->file));
    doc_put(w->e, entry, "line", json_integer(w->line));
    doc_put(w->e, entry, "ptx", json_object());
    doc_put(w->e, entry, "sass", json_object());
    doc_add(w->e, w->lines, entry);
    w->e->no_memory |= json_object_set_nocheck(w->by_place, place, entry) != 0;
    return entry;
}

/* Counts an instruction of this opcode there. */
static void count_opcode(Walk *w, const char *opcode)
{
    json_t *counts = json_object_get(entry_here(w), w->member);
    if (counts)
        doc_put(w->e, counts, opcode, json_integer(doc_integer(counts, opcode) + 1));
}

static void take_instruction(Walk *w, const char *text, size_t size)
{
    char opcode[128];
    size_t n = find_opcode(&text, size);
    if (!n || !*w->program)
        return;
    snprintf(opcode, sizeof opcode, "%.*s", (int)n, text);
    count_opcode(w, opcode);
}

/* ---- places ------------------------------------------------------------------------------- */

static const char *file_name(const Walk *w, unsigned number)
{
    char key[16];
    snprintf(key, sizeof key, "%u", number);
    return doc_string(w->names, key);
}

static void go_to(Walk *w, const char *file, unsigned line)
{
    snprintf(w->file, sizeof w->file, "%.*s", (int)sizeof w->file - 1, file);
    w->line = line;
}

/* ---- SASS ----------------------------------------------------------------------------------- */

/* Reads `//## File "name", line 7`, where the name is that of the PTX, three characters a byte at
 * most. */
static bool take_mark(Walk *w, const char *text)
{
    char name[3 * sizeof w->file];
    unsigned line;
    const char *at = strstr(text, "//## File \"");
    if (!at || sscanf(at, "//## File \"%3071[^\"]\", line %u", name, &line) != 2)
        return false;
    text_percent_decode(name);
    go_to(w, line ? name : "", line);
    return true;
}

/* Reads `.text.softmax:`, and instructions: an address in a comment, then
 * `@P0 LDG.E R2, [R4.64] ;`. */
static void take_sass_line(Walk *w, const char *text, size_t size)
{
    char copy[4096], opcode[128];
    int at = 0;
    unsigned address;
    snprintf(copy, sizeof copy, "%.*s", (int)(size < sizeof copy ? size : sizeof copy - 1), text);
    if (sscanf(copy, ".text.%255[A-Za-z0-9_$]:", w->program) == 1) {
        go_to(w, "", 0);
        return;
    }
    if (take_mark(w, copy) || sscanf(copy, " /*%x*/ %n", &address, &at) != 1 || !at || !*w->program)
        return;
    const char *instruction = copy + at;
    if (*instruction == '@')
        instruction += strcspn(instruction, " ");
    if (sscanf(instruction, " %127[A-Z0-9a-z._]", opcode) == 1)
        count_opcode(w, opcode);
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void take_line(Walk *w, const char *text, size_t size)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)(size < sizeof copy ? size : sizeof copy - 1), text);
    const char *entry = strstr(copy, ".entry ");
    unsigned file, line;
    if (entry)
        sscanf(entry, ".entry %255[A-Za-z0-9_$]", w->program);
    else if (sscanf(copy, " .loc %u %u", &file, &line) == 2)
        go_to(w, line ? file_name(w, file) : "", line);
    else
        take_instruction(w, text, size);
}

/* Calls take(walk, line) on each line of a text. */
static void walk_lines(Walk *w, const char *text,
                       void (*take)(Walk *w, const char *text, size_t size))
{
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n");
        take(w, at, n);
        at += n + (at[n] == '\n');
    }
}

static void take_file_line(Walk *w, const char *text, size_t size)
{
    if (size > 6 && memmem(text, size < 16 ? size : 16, ".file", 5))
        take_file(w, text, size);
}

static void walk_texts(Walk *w)
{
    w->member = "ptx";
    walk_lines(w, w->e->ptx, take_file_line);
    walk_lines(w, w->e->ptx, take_line);
    w->member = "sass";
    *w->program = 0;
    if (w->e->sass)
        walk_lines(w, w->e->sass, take_sass_line);
}

bool explain_lines(Explain *e)
{
    Walk w = {.e = e, .names = json_object(), .by_place = json_object()};
    doc_put(e, e->doc, "ptx", doc_text(e->ptx));
    doc_put(e, e->doc, "sass", doc_text_or_null(e->sass));
    w.lines = doc_put(e, e->doc, "lines", json_array());
    if (w.lines && w.names && w.by_place)
        walk_texts(&w);
    json_decref(w.names);
    json_decref(w.by_place);
    return !e->no_memory;
}

bool explain_compile(Explain *e)
{
    const tilus_compile_options options = {.struct_size = sizeof options, .cpu = e->settings->cpu,
                                           .opt_level = 3, .debug_lines = true};
    e->ptx = tilus_compile(e->module, &options, NULL);
    return e->ptx != NULL;
}
