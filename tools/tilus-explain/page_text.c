/* The program's text on the page, with what each line became; and what was missed. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Notes of one file: for each line, from 1, what is written beside it. */
typedef struct Notes {
    FILE **lines;
    char **texts;
    size_t *sizes, count;
} Notes;

/* ---- notes --------------------------------------------------------------------------- */

static bool notes_open(Notes *n, size_t lines)
{
    *n = (Notes){.count = lines + 1};
    n->lines = calloc(n->count, sizeof *n->lines);
    n->texts = calloc(n->count, sizeof *n->texts);
    n->sizes = calloc(n->count, sizeof *n->sizes);
    return n->lines && n->texts && n->sizes;
}

static void notes_close(Notes *n)
{
    for (size_t i = 0; n->texts && i < n->count; i++)
        free(n->texts[i]);
    free(n->lines);
    free(n->texts);
    free(n->sizes);
}

/* The stream of a line's notes; NULL where there is no such line. */
static FILE *note(Notes *n, const json_t *entry)
{
    json_int_t line = doc_integer(entry, "line");
    if (line < 1 || (size_t)line >= n->count)
        return NULL;
    if (!n->lines[line])
        n->lines[line] = open_memstream(&n->texts[line], &n->sizes[line]);
    return n->lines[line];
}

static bool is_of(const json_t *entry, const char *file)
{
    return !strcmp(doc_string(entry, "file"), file);
}

/* ---- what a line has ------------------------------------------------------------------- */

static void add_op(Notes *n, const json_t *op)
{
    const json_t *attributes = json_object_get(op, "attributes");
    const char *via = doc_string(attributes, "via");
    FILE *out = *via ? note(n, op) : NULL;
    if (!out)
        return;
    fputs("<div><b>", out);
    page_escape(out, doc_string(op, "op"));
    fputs("</b> by <code>", out);
    page_escape(out, via);
    fputs("</code>", out);
    if (doc_integer(op, "copies") > 1)
        fprintf(out, ", %lld copies", (long long)doc_integer(op, "copies"));
    fputs("</div>", out);
}

/* Returns true when the line's notes have this one already, as of another op of the line. */
static bool has_note(const Notes *n, json_int_t line, const char *text)
{
    if (!n->lines[line])
        return true;
    fflush(n->lines[line]);
    return strstr(n->texts[line], text) != NULL;
}

/* Writes the note of a remark. */
static void write_remark(FILE *out, const json_t *remark)
{
    bool missed = !strcmp(doc_string(remark, "kind"), "missed");
    fprintf(out, "<div class=\"%s\" title=\"", missed ? "missed" : "passed");
    page_escape(out, doc_string(remark, "name"));
    fprintf(out, "\">%s ", missed ? "&#9651;" : "&#10003;");
    page_escape(out, doc_string(remark, "text"));
    fputs("</div>", out);
}

static void add_remark(Notes *n, const json_t *remark)
{
    FILE *out = note(n, remark);
    char *text = NULL;
    size_t size;
    FILE *one = out ? open_memstream(&text, &size) : NULL;
    if (!one)
        return;
    write_remark(one, remark);
    if (fclose(one) == 0 && !has_note(n, doc_integer(remark, "line"), text))
        fputs(text, out);
    free(text);
}

/* Writes how often each opcode of a line stands in PTX, or in SASS. */
static void write_opcodes(FILE *out, const json_t *line, const char *member, const char *name)
{
    const char *opcode, *comma = "";
    json_t *count;
    json_int_t sum = 0;
    json_object_foreach(json_object_get(line, member), opcode, count)
        sum += json_integer_value(count);
    if (!sum)
        return;
    fprintf(out, "<details><summary class=\"faint\">%s of @", name);
    page_escape(out, doc_string(line, "program"));
    fprintf(out, ", %lld instruction%s</summary>", (long long)sum, sum == 1 ? "" : "s");
    json_object_foreach(json_object_get(line, member), opcode, count) {
        fprintf(out, "%s%lld <code>", comma, (long long)json_integer_value(count));
        page_escape(out, opcode);
        fputs("</code>", out);
        comma = ", ";
    }
    fputs("</details>", out);
}

static void add_code(Notes *n, const json_t *line)
{
    FILE *out = note(n, line);
    if (!out)
        return;
    write_opcodes(out, line, "ptx", "PTX");
    write_opcodes(out, line, "sass", "SASS");
}

/* ", 32768 bytes read of global memory"; nothing for 0. */
static void write_moved(FILE *out, const json_t *line, const char *member, const char *words)
{
    if (doc_integer(line, member))
        fprintf(out, ", %lld bytes %s", (long long)doc_integer(line, member), words);
}

/* Writes what a line did in a run, if it moved bytes. */
static void add_moved(Notes *n, const json_t *line)
{
    bool moved = doc_integer(line, "global_read") || doc_integer(line, "global_written") ||
                 doc_integer(line, "shared_read") || doc_integer(line, "shared_written");
    FILE *out = moved ? note(n, line) : NULL;
    if (!out)
        return;
    fprintf(out, "<div class=\"faint\">in a run: %lld ops", (long long)doc_integer(line, "ops"));
    write_moved(out, line, "global_read", "read of global memory");
    write_moved(out, line, "global_written", "written to global memory");
    write_moved(out, line, "shared_read", "read of shared memory");
    write_moved(out, line, "shared_written", "written to shared memory");
    fputs("</div>", out);
}

/* Adds the lines of runs of a program; they are of the input, not of imported files. */
static void add_runs(Notes *n, const json_t *program)
{
    size_t i, j;
    const json_t *run, *line;
    json_array_foreach(json_object_get(program, "measured"), i, run)
        json_array_foreach(json_object_get(run, "lines"), j, line)
            add_moved(n, line);
}

static void add_all(Notes *n, const json_t *list, const char *file,
                    void (*add)(Notes *n, const json_t *entry))
{
    size_t i;
    const json_t *entry;
    json_array_foreach((json_t *)list, i, entry)
        if (is_of(entry, file))
            add(n, entry);
}

static void collect_notes(Notes *n, const json_t *doc, const char *file)
{
    size_t i;
    const json_t *program;
    json_array_foreach(json_object_get(doc, "programs"), i, program) {
        add_all(n, json_object_get(program, "ops"), file, add_op);
        if (!strcmp(file, doc_string(doc, "file")))
            add_runs(n, program);
    }
    add_all(n, json_object_get(doc, "remarks"), file, add_remark);
    add_all(n, json_object_get(doc, "lines"), file, add_code);
    for (i = 0; i < n->count; i++)
        if (n->lines[i])
            fclose(n->lines[i]);
}

/* ---- the section ------------------------------------------------------------------------- */

/* A line, and its notes below it. */
static void write_line(FILE *out, size_t file, size_t number, const char *text, const char *notes)
{
    fprintf(out, "<tr id=\"f%zu-%zu\"%s><td>%zu</td><td>", file, number,
            notes ? " class=\"noted\"" : "", number);
    page_escape(out, text);
    if (notes)
        fprintf(out, "<div class=\"note\">%s</div>", notes);
    fputs("</td></tr>\n", out);
}

static void write_file(FILE *out, const json_t *doc, size_t number, const json_t *file)
{
    size_t i;
    const json_t *line, *lines = json_object_get(file, "lines");
    Notes n;
    if (notes_open(&n, json_array_size(lines))) {
        collect_notes(&n, doc, doc_string(file, "name"));
        fputs("<details open><summary><code>", out);
        page_escape(out, doc_string(file, "name"));
        fputs("</code></summary>\n<div class=\"scroll\"><table class=\"code\">\n", out);
        json_array_foreach((json_t *)lines, i, line)
            write_line(out, number, i + 1, json_string_value(line), n.texts[i + 1]);
        fputs("</table></div></details>\n", out);
    }
    notes_close(&n);
}

void page_text(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *file;
    fputs("<section id=\"text\">\n<h2>Text</h2>\n<p class=\"interactive faint\">n and p go to the "
          "next and previous line with notes.</p>\n", out);
    json_array_foreach(json_object_get(doc, "files"), i, file)
        write_file(out, doc, i, file);
    fputs("</section>\n", out);
}

/* ---- what was missed --------------------------------------------------------------------- */

size_t page_file_number(const json_t *doc, const char *name)
{
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(doc, "files"), i, file)
        if (!strcmp(doc_string(file, "name"), name))
            return i;
    return i;
}

/* The cure: the fact or cure that the remark itself names, else that of its kind. */
static const char *cure_of(const json_t *doc, const json_t *remark)
{
    const json_t *arguments = json_object_get(remark, "args");
    const char *own = doc_string(arguments, "Cure"), *fact = doc_string(arguments, "Fact");
    const json_t *kind = json_object_get(json_object_get(doc, "kinds"), doc_string(remark, "name"));
    return *own ? own : *fact ? fact : doc_string(kind, "cure");
}

static void write_missed(FILE *out, const json_t *doc, const json_t *remark)
{
    fprintf(out, "<tr><td><a href=\"#f%zu-%lld\">%lld</a></td><td><code>",
            page_file_number(doc, doc_string(remark, "file")), (long long)doc_integer(remark, "line"),
            (long long)doc_integer(remark, "line"));
    page_escape(out, doc_string(remark, "name"));
    fputs("</code></td><td>", out);
    page_escape(out, doc_string(remark, "text"));
    fputs("</td><td>", out);
    page_escape(out, cure_of(doc, remark));
    fputs("</td></tr>\n", out);
}

void page_missed(FILE *out, const json_t *doc)
{
    size_t i, count = 0;
    const json_t *remark;
    fputs("<section id=\"missed\">\n<h2>Missed</h2>\n<div class=\"scroll\"><table>\n<tr><th>line"
          "</th><th>remark</th><th>reason</th><th>cure</th></tr>\n", out);
    json_array_foreach(json_object_get(doc, "remarks"), i, remark)
        if (!strcmp(doc_string(remark, "kind"), "missed") && ++count)
            write_missed(out, doc, remark);
    fprintf(out, "</table></div>\n%s</section>\n", count ? "" : "<p>Nothing.</p>\n");
}
