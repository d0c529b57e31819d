/* Layouts, shared memory and passes on the page. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layouts ----------------------------------------------------------------------------- */

/* The columns of a layout; of a shared tensor they are empty. */
static void write_counts(FILE *out, const json_t *layout)
{
    page_number_cell(out, json_object_get(layout, "threads"));
    page_number_cell(out, json_object_get(layout, "slots"));
}

static void write_value(FILE *out, const json_t *doc, const json_t *value, size_t program,
                        size_t number)
{
    const json_t *layout = json_object_get(value, "layout");
    const char *name = doc_string(value, "name");
    if (!json_is_integer(layout) && strcmp(doc_string(value, "kind"), "shared") != 0)
        return;
    fputs("<tr>", out);
    page_number_cell(out, json_object_get(value, "line"));
    page_code_cell(out, *name ? "%" : "", name);
    page_code_cell(out, "", doc_string(value, "type"));
    write_counts(out, json_is_integer(layout)
                          ? json_array_get(json_object_get(doc, "layouts"),
                                           (size_t)json_integer_value(layout)) : NULL);
    fprintf(out, "<td class=\"interactive\"><button type=\"button\" data-program=\"%zu\" "
            "data-value=\"%zu\">draw</button></td></tr>\n", program, number);
}

void page_layouts(FILE *out, const json_t *doc)
{
    size_t p, i;
    const json_t *program, *value;
    fputs("<section id=\"layouts\">\n<h2>Layouts</h2>\n<div id=\"drawing\" class=\"interactive\" "
          "aria-live=\"polite\"></div>\n<div class=\"scroll\"><table>\n<tr><th>line</th>"
          "<th>value</th><th>type</th><th>threads</th><th>slots</th><th></th></tr>\n", out);
    json_array_foreach(json_object_get(doc, "programs"), p, program)
        json_array_foreach(json_object_get(program, "values"), i, value)
            write_value(out, doc, value, p, i);
    fputs("</table></div>\n</section>\n", out);
}

/* ---- shared memory ------------------------------------------------------------------------- */

/* Picture: ops from left to right, bytes from top to bottom. */
enum { PICTURE_WIDTH = 900, PICTURE_HEIGHT = 320 };

static double scale(json_int_t x, json_int_t all, int size)
{
    return all > 0 ? (double)x * size / (double)all : 0;
}

/* A tensor from its first access to its last one; allocated and never used, it has no life. */
static void draw_tensor(FILE *out, const json_t *t, json_int_t ops, json_int_t bytes)
{
    json_int_t first = doc_integer(t, "first"), offset = doc_integer(t, "offset");
    if (!json_is_true(json_object_get(t, "accessed")) ||
        !json_is_integer(json_object_get(t, "offset")))
        return;
    double x = scale(first - 1, ops, PICTURE_WIDTH), y = scale(offset, bytes, PICTURE_HEIGHT);
    double width = scale(doc_integer(t, "last") - first + 1, ops, PICTURE_WIDTH);
    fprintf(out, "<rect class=\"life\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
            "<title>", x, y, width, scale(doc_integer(t, "bytes"), bytes, PICTURE_HEIGHT));
    page_escape(out, doc_string(t, "name"));
    fprintf(out, ": bytes %lld to %lld</title></rect>\n<text x=\"%.1f\" y=\"%.1f\">",
            (long long)offset, (long long)(offset + doc_integer(t, "bytes") - 1), x + 3, y + 12);
    page_escape(out, doc_string(t, "name"));
    fputs("</text>\n", out);
}

static void draw_memory(FILE *out, const json_t *program, const json_t *tensors, json_int_t ops)
{
    size_t i;
    const json_t *t;
    fprintf(out, "<div class=\"scroll\"><svg role=\"img\" aria-label=\"lives of shared tensors\" "
            "viewBox=\"0 0 %d %d\" width=\"%d\"><rect class=\"axis\" fill=\"none\" width=\"%d\" "
            "height=\"%d\"/>\n", PICTURE_WIDTH, PICTURE_HEIGHT, PICTURE_WIDTH, PICTURE_WIDTH,
            PICTURE_HEIGHT);
    json_array_foreach((json_t *)tensors, i, t)
        draw_tensor(out, t, ops, doc_integer(program, "shared_bytes"));
    fputs("</svg></div>\n", out);
}

/* The line of the op at a position, from 1. */
static const json_t *line_at(const json_t *lines, json_int_t position)
{
    return json_array_get(lines, (size_t)(position - 1));
}

static void write_tensor(FILE *out, const json_t *t, const json_t *lines)
{
    bool accessed = json_is_true(json_object_get(t, "accessed"));
    fputs("<tr>", out);
    page_number_cell(out, json_object_get(t, "line"));
    page_code_cell(out, "%", doc_string(t, "name"));
    page_number_cell(out, json_object_get(t, "offset"));
    page_number_cell(out, json_object_get(t, "bytes"));
    page_number_cell(out, accessed ? line_at(lines, doc_integer(t, "first")) : NULL);
    page_number_cell(out, accessed ? line_at(lines, doc_integer(t, "last")) : NULL);
    fputs("</tr>\n", out);
}

static void write_shared(FILE *out, const json_t *program)
{
    const json_t *shared = json_object_get(program, "shared"), *t;
    const json_t *lines = json_object_get(shared, "lines");
    const json_t *tensors = json_object_get(shared, "tensors");
    size_t i;
    fputs("<h3>@", out);
    page_escape(out, doc_string(program, "name"));
    fprintf(out, ": %lld bytes</h3>\n", (long long)doc_integer(program, "shared_bytes"));
    if (!json_array_size(tensors))
        return;
    draw_memory(out, program, tensors, (json_int_t)json_array_size(lines));
    fputs("<div class=\"scroll\"><table>\n<tr><th>line</th><th>tensor</th><th>offset</th>"
          "<th>bytes</th><th>lives from line</th><th>to line</th></tr>\n", out);
    json_array_foreach((json_t *)tensors, i, t)
        write_tensor(out, t, lines);
    fputs("</table></div>\n", out);
}

void page_shared(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *program;
    fputs("<section id=\"shared\">\n<h2>Shared memory</h2>\n<p class=\"faint\">Bytes go down, the "
          "program's ops to the right. Tensors beside each other use the same bytes.</p>\n", out);
    json_array_foreach(json_object_get(doc, "programs"), i, program)
        write_shared(out, program);
    fputs("</section>\n", out);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Writes a difference, each line in an element of its kind. */
static void write_difference(FILE *out, const char *diff)
{
    while (*diff) {
        size_t n = strcspn(diff, "\n");
        char *line = strndup(diff, n);
        const char *kind = *diff == '+' ? "plus" : *diff == '-' ? "minus"
                           : *diff == '@' ? "hunk" : "same";
        fprintf(out, "<span class=\"%s\">", kind);
        page_escape(out, line ? line : "");
        fputs("</span>", out);
        free(line);
        diff += n + (diff[n] == '\n');
    }
}

static void write_pass(FILE *out, size_t number, const json_t *pass)
{
    double ms = 1e3 * json_real_value(json_object_get(pass, "seconds"));
    bool changed = json_is_true(json_object_get(pass, "changed"));
    fprintf(out, "<details class=\"pass\" id=\"pass-%zu\"><summary><code>", number);
    page_escape(out, doc_string(pass, "pass"));
    fprintf(out, "</code> <span class=\"faint\">%.3f ms%s</span></summary>\n", ms,
            changed ? "" : ", no change");
    if (changed) {
        fputs("<pre>", out);
        write_difference(out, doc_string(pass, "diff"));
        fputs("</pre>", out);
    }
    fputs("</details>\n", out);
}

void page_passes(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *pass;
    fputs("<section id=\"passes\">\n<h2>Passes</h2>\n<div id=\"slider\" class=\"interactive\">"
          "</div>\n", out);
    json_array_foreach(json_object_get(doc, "passes"), i, pass)
        write_pass(out, i, pass);
    fputs("</section>\n", out);
}
