/* The page: page.html, in which the document's parts stand as text, tables and data. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char page_html[], page_css[], page_js[];

/* ---- escaping --------------------------------------------------------------------- */

void page_escape(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default:
            /* Control characters are none of HTML's. */
            fputc((unsigned char)*text < ' ' && !strchr("\t\n", *text) ? '?' : *text, out);
        }
}

/* ---- cells of tables ---------------------------------------------------------------- */

void page_number_cell(FILE *out, const json_t *number)
{
    if (json_is_integer(number))
        fprintf(out, "<td class=\"number\">%lld</td>", (long long)json_integer_value(number));
    else
        fputs("<td></td>", out);
}

void page_code_cell(FILE *out, const char *sigil, const char *text)
{
    fprintf(out, "<td><code>%s", sigil);
    page_escape(out, text);
    fputs("</code></td>", out);
}

/* Writes JSON into a script element. Its characters that HTML knows stand in strings alone, where
 * \u spells them. */
static void write_data(FILE *out, const char *json)
{
    for (; *json; json++)
        if (strchr("<>&", *json))
            fprintf(out, "\\u%04x", (unsigned)*json);
        else
            fputc(*json, out);
}

/* ---- the head ------------------------------------------------------------------------ */

static void write_defines(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *define;
    json_array_foreach(json_object_get(doc, "defines"), i, define) {
        fputs(", ", out);
        page_escape(out, doc_string(define, "name"));
        fputs(" = ", out);
        page_escape(out, doc_string(define, "value"));
    }
}

static void write_head(FILE *out, const json_t *doc)
{
    const json_t *compiler = json_object_get(doc, "compiler");
    fputs("<header>\n<h1>", out);
    page_escape(out, doc_string(doc, "file"));
    fputs("</h1>\n<p>for ", out);
    page_escape(out, doc_string(doc, "target"));
    write_defines(out, doc);
    fprintf(out, "<span class=\"faint\"> &middot; tilus %s, LLVM %s</span></p>\n",
            doc_string(compiler, "version"), doc_string(compiler, "llvm"));
    fputs("<nav aria-label=\"Sections\"><a href=\"#programs\">Programs</a>"
          "<a href=\"#text\">Text</a><a href=\"#missed\">Missed</a><a href=\"#layouts\">Layouts</a>"
          "<a href=\"#shared\">Shared memory</a><a href=\"#registers\">Registers</a>"
          "<a href=\"#sync\">Synchronization</a>"
          "<a href=\"#passes\">Passes</a>"
          "<a href=\"#casts\">Cast plans</a><a href=\"#ptx\">PTX</a>"
          "<a href=\"#sass\">SASS</a></nav>\n</header>\n", out);
}

/* ---- programs ------------------------------------------------------------------------ */

static void write_row(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a row of a table of two columns; the value's text is escaped. */
static void write_row(FILE *out, const char *name, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>", name);
    page_escape(out, text);
    fputs("</td></tr>\n", out);
    free(text);
}

static void write_figures(FILE *out, const json_t *program)
{
    const json_t *p = json_object_get(program, "ptxas"), *o = json_object_get(program, "occupancy");
    if (!json_is_object(p)) {
        write_row(out, "registers", "unknown: no ptxas");
        return;
    }
    write_row(out, "registers", "%lld a thread", (long long)doc_integer(p, "registers"));
    write_row(out, "spills", "%lld bytes stored, %lld bytes loaded",
              (long long)doc_integer(p, "spill_stores"), (long long)doc_integer(p, "spill_loads"));
    write_row(out, "occupancy",
              "%lld blocks of a multiprocessor, %lld of %lld warps, limited by %s",
              (long long)doc_integer(o, "blocks"), (long long)doc_integer(o, "warps"),
              (long long)doc_integer(o, "most_warps"), doc_string(o, "limited_by"));
}

/* The operations of products by type, and the floor. */
static void write_floor(FILE *out, const json_t *launch)
{
    const json_t *floor_us = json_object_get(launch, "floor_us");
    const char *type;
    json_t *count;
    json_object_foreach(json_object_get(launch, "operations"), type, count)
        write_row(out, "operations", "%.0f of products of %s", json_real_value(count), type);
    if (json_is_real(floor_us))
        write_row(out, "floor", "%.3f us, the time of the %s; %.3f TB/s",
                  json_real_value(floor_us), doc_string(launch, "floor_by"),
                  json_real_value(json_object_get(launch, "bandwidth")));
}

static void write_launch(FILE *out, const json_t *launch)
{
    const json_t *grid = json_object_get(launch, "grid"), *bytes = json_object_get(launch, "bytes");
    if (json_is_array(grid))
        write_row(out, "launch", "%lld x %lld x %lld blocks",
                  (long long)json_integer_value(json_array_get(grid, 0)),
                  (long long)json_integer_value(json_array_get(grid, 1)),
                  (long long)json_integer_value(json_array_get(grid, 2)));
    else
        write_row(out, "launch", "%s", doc_string(launch, "refused"));
    if (json_is_real(json_object_get(launch, "waves")))
        write_row(out, "waves", "%.0f of %s", json_real_value(json_object_get(launch, "waves")),
                  doc_string(launch, "device"));
    if (json_is_integer(bytes))
        write_row(out, "bytes", "%lld, each tensor once", (long long)json_integer_value(bytes));
    write_floor(out, launch);
}

/* ---- measured times --------------------------------------------------------------------- */

/* "m = 16, n = 64" */
static char *arguments_text(const json_t *arguments)
{
    char *text = NULL;
    size_t size;
    const char *name, *comma = "";
    json_t *value;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    json_object_foreach((json_t *)arguments, name, value) {
        fprintf(out, "%s%s = %lld", comma, name, (long long)json_integer_value(value));
        comma = ", ";
    }
    fclose(out);
    return text;
}

static void write_summary(FILE *out, const json_t *measured, const char *way, const char *words)
{
    const json_t *s = json_object_get(json_object_get(measured, "times"), way);
    char *arguments = arguments_text(json_object_get(measured, "arguments"));
    write_row(out, "measured", "%.3f us (%.3f to %.3f) %s, on %s, %s",
              json_number_value(json_object_get(s, "median_us")),
              json_number_value(json_object_get(s, "low_us")),
              json_number_value(json_object_get(s, "high_us")), words,
              doc_string(measured, "device"), arguments ? arguments : "");
    free(arguments);
}

/* Says which share of the time the floor is, where both are of the same arguments. */
static void write_share(FILE *out, const json_t *launch, const json_t *measured)
{
    const json_t *floor_us = json_object_get(launch, "floor_us");
    const json_t *graph = json_object_get(json_object_get(measured, "times"), "graph");
    double median = json_number_value(json_object_get(graph, "median_us"));
    if (json_real_value(floor_us) > 0 && median > 0 &&
        json_equal(json_object_get(launch, "arguments"), json_object_get(measured, "arguments")))
        write_row(out, "of the floor", "%.2f times, in a graph",
                  median / json_real_value(floor_us));
}

static void write_measured(FILE *out, const json_t *program)
{
    size_t i;
    const json_t *m;
    json_array_foreach(json_object_get(program, "measured"), i, m) {
        if (!json_is_object(json_object_get(m, "times")))
            continue;
        write_summary(out, m, "graph", "a launch in a graph");
        write_summary(out, m, "events", "a launch alone, after a flush of the L2 cache");
        write_share(out, json_object_get(program, "launch"), m);
    }
}

static void write_program(FILE *out, const json_t *program)
{
    const json_t *launch = json_object_get(program, "launch");
    fputs("<h3>@", out);
    page_escape(out, doc_string(program, "name"));
    fputs("</h3>\n<table>\n", out);
    write_row(out, "threads", "%lld a block", (long long)doc_integer(program, "threads"));
    write_row(out, "shared memory", "%lld bytes a block",
              (long long)doc_integer(program, "shared_bytes"));
    write_figures(out, program);
    if (launch)
        write_launch(out, launch);
    write_measured(out, program);
    fputs("</table>\n", out);
}

/* Sums up what check-hazards says of all programs. */
static void write_hazards(FILE *out, const json_t *hazards)
{
    size_t i, found = 0;
    long long pairs = 0;
    const json_t *program;
    json_array_foreach((json_t *)hazards, i, program) {
        pairs += doc_integer(program, "pairs");
        found += json_array_size(json_object_get(program, "found"));
    }
    if (!hazards)
        return;
    fprintf(out, "<p>Races: %lld pairs of conflicting accesses compared, ", pairs);
    if (found)
        fprintf(out, "<a class=\"missed\" href=\"#sync\">%zu not proved to be free of races</a>."
                "</p>\n", found);
    else
        fputs("<a href=\"#sync\">all proved</a> to be free of races.</p>\n", out);
}

static void write_programs(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *program;
    fputs("<section id=\"programs\">\n<h2>Programs</h2>\n", out);
    json_array_foreach(json_object_get(doc, "programs"), i, program)
        write_program(out, program);
    write_hazards(out, json_object_get(doc, "hazards"));
    fputs("</section>\n", out);
}

static void write_code(FILE *out, const char *id, const char *title, const json_t *text)
{
    fprintf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
    if (json_is_string(text)) {
        fputs("<details><summary>All of it</summary><pre>", out);
        page_escape(out, json_string_value(text));
        fputs("</pre></details>\n", out);
    } else {
        fputs("<p class=\"faint\">Not here: it takes ptxas and nvdisasm of a CUDA toolkit.</p>\n",
              out);
    }
    fputs("</section>\n", out);
}

static void write_body(FILE *out, const json_t *doc)
{
    write_head(out, doc);
    fputs("<main>\n", out);
    write_programs(out, doc);
    page_text(out, doc);
    page_missed(out, doc);
    page_layouts(out, doc);
    page_shared(out, doc);
    page_registers(out, doc);
    page_sync(out, doc);
    page_passes(out, doc);
    page_casts(out, doc);
    write_code(out, "ptx", "PTX", json_object_get(doc, "ptx"));
    write_code(out, "sass", "SASS", json_object_get(doc, "sass"));
    fputs("</main>\n", out);
}

/* ---- the script's data ------------------------------------------------------------------ */

/* Takes one member of each pass away; the pass's object is shared with the document. */
static json_t *strip_passes(const json_t *passes)
{
    size_t i;
    const json_t *pass;
    json_t *list = json_array();
    json_array_foreach((json_t *)passes, i, pass) {
        json_t *copy = json_copy((json_t *)pass);
        json_object_del(copy, "text");
        json_array_append_new(list, copy);
    }
    return list;
}

/* The parts of the document that the script draws: what stands in the HTML is left out, and the
 * text after each pass follows from the differences. */
static char *script_data(const json_t *doc)
{
    json_t *data = json_object();
    static const char *const members[] = {"layouts", "programs", "input"};
    for (size_t i = 0; i < COUNT(members); i++)
        json_object_set(data, members[i], json_object_get(doc, members[i]));
    json_object_set_new(data, "passes", strip_passes(json_object_get(doc, "passes")));
    char *text = json_dumps(data, JSON_COMPACT);
    json_decref(data);
    return text;
}

static bool write_part(FILE *out, const json_t *doc, const char *name, size_t n)
{
    if (n == 5 && !memcmp(name, "TITLE", n)) {
        page_escape(out, doc_string(doc, "file"));
    } else if (n == 5 && !memcmp(name, "STYLE", n)) {
        fputs(page_css, out);
    } else if (n == 6 && !memcmp(name, "SCRIPT", n)) {
        fputs(page_js, out);
    } else if (n == 4 && !memcmp(name, "BODY", n)) {
        write_body(out, doc);
    } else {
        char *data = script_data(doc);
        if (data)
            write_data(out, data);
        free(data);
        return data != NULL;
    }
    return true;
}

char *page_make(const json_t *doc, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    bool ok = out != NULL;
    const char *at = page_html;
    for (const char *mark; ok && (mark = strchr(at, '@')); at = strchr(mark + 1, '@') + 1) {
        fwrite(at, 1, (size_t)(mark - at), out);
        ok = write_part(out, doc, mark + 1, strcspn(mark + 1, "@"));
    }
    if (out && ok)
        fputs(at, out);
    if (out && (fclose(out) != 0 || !ok)) {
        free(text);
        text = NULL;
    }
    return text;
}
