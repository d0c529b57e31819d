/* Synchronization on the page: a graph of accesses and of what orders them, and each pair of
 * accesses with its proof. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The graph: nodes from top to bottom, indented by their group of threads; to the left what orders
 * accesses and which arrivals end the phases of waits, to the right pairs and proofs. */
enum { ROW = 20, NODES_X = 160, INDENT = 8, NODES_END = 560, WIDTH = 720, BULGE_MOST = 145 };

static const json_t *node_at(const json_t *program, const json_t *number)
{
    return json_array_get(json_object_get(program, "nodes"),
                          (size_t)json_integer_value(number));
}

/* ---- words --------------------------------------------------------------------------------- */

/* "load_shared %sa"; of several tensors, all of them. */
static void write_node_name(FILE *out, const json_t *node)
{
    size_t i;
    const json_t *access;
    fputs(doc_string(node, "op"), out);
    json_array_foreach(json_object_get(node, "accesses"), i, access) {
        fputs(i ? ", %" : " %", out);
        page_escape(out, doc_string(access, "memory"));
    }
}

static void write_place(FILE *out, const json_t *doc, const json_t *node)
{
    fprintf(out, "<td><a href=\"#f%zu-%lld\">%lld</a> <code>",
            page_file_number(doc, doc_string(node, "file")), (long long)doc_integer(node, "line"),
            (long long)doc_integer(node, "line"));
    write_node_name(out, node);
    fputs("</code></td>", out);
}

static const char *proof_words(const char *proof)
{
    static const char *const words[][2] = {
        {"apart", "no byte is touched by both, except in one thread"},
        {"iterations", "tiles that meet are of one iteration, which their offsets tell"},
        {"mbarriers", "phases of mbarriers order them wherever they meet"},
        {"order", "on every path from one to the other lies"},
        {"blocks", "other blocks touch other bytes"}};
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(words[i][0], proof))
            return words[i][1];
    return proof;
}

/* The ops that order an access, by their lines. */
static void write_orders(FILE *out, const json_t *program, const json_t *access)
{
    size_t i;
    const json_t *order;
    const char *comma = " ";
    json_array_foreach(json_object_get(program, "orders"), i, order) {
        const json_t *by = node_at(program, json_object_get(order, "by"));
        if (!json_equal(json_object_get(order, "access"), access))
            continue;
        fprintf(out, "%s%s (line %lld)", comma, doc_string(by, "op"),
                (long long)doc_integer(by, "line"));
        comma = ", ";
    }
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* An arc between two rows, to the left (-1) or right (1), with a title that the caller closes. */
static void begin_arc(FILE *out, const char *kind, json_int_t from, json_int_t to, int side)
{
    json_int_t apart = from < to ? to - from : from - to;
    json_int_t bulge = 14 + 5 * apart < BULGE_MOST ? 14 + 5 * apart : BULGE_MOST;
    long long x = side < 0 ? NODES_X - 8 : NODES_END, y1 = from * ROW + ROW / 2;
    long long y2 = to * ROW + ROW / 2, bent = x + side * bulge;
    fprintf(out, "<path class=\"%s\" d=\"M%lld %lldC%lld %lld %lld %lld %lld %lld\"><title>", kind, x,
            y1, bent, y1, bent, y2, x, y2);
}

static void end_arc(FILE *out)
{
    fputs("</title></path>\n", out);
}

static void draw_orders(FILE *out, const json_t *program)
{
    size_t i;
    const json_t *order;
    json_array_foreach(json_object_get(program, "orders"), i, order) {
        begin_arc(out, "orders", doc_integer(order, "access"), doc_integer(order, "by"), -1);
        fputs(doc_string(node_at(program, json_object_get(order, "by")), "op"), out);
        fputs(" ends or orders ", out);
        write_node_name(out, node_at(program, json_object_get(order, "access")));
        end_arc(out);
    }
}

/* Returns true when `a` counts at mbarriers for which `b` waits. */
static bool is_signal(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "phase"), *y = json_object_get(b, "phase");
    return json_is_object(x) && json_is_object(y) && strcmp(doc_string(a, "kind"), "wait") != 0 &&
           !strcmp(doc_string(b, "kind"), "wait") &&
           json_equal(json_object_get(x, "array"), json_object_get(y, "array"));
}

static void draw_signals(FILE *out, const json_t *nodes)
{
    size_t i, j;
    const json_t *a, *b;
    json_array_foreach((json_t *)nodes, i, a)
        json_array_foreach((json_t *)nodes, j, b) {
            if (!is_signal(a, b))
                continue;
            begin_arc(out, "signal", (json_int_t)i, (json_int_t)j, -1);
            write_node_name(out, a);
            fputs(" counts at %", out);
            page_escape(out, doc_string(json_object_get(b, "phase"), "array"));
            fputs(", for which this waits", out);
            end_arc(out);
        }
}

/* Draws pairs of two ops; one with itself is in the table alone. */
static void draw_pairs(FILE *out, const json_t *pairs, const char *kind)
{
    size_t i;
    const json_t *pair;
    json_array_foreach((json_t *)pairs, i, pair) {
        const json_t *first = json_object_get(pair, "first");
        const json_t *second = json_object_get(pair, "second");
        const char *proof = doc_string(pair, "proof");
        if (!json_is_integer(first) || !json_is_integer(second) || json_equal(first, second))
            continue;
        begin_arc(out, !strcmp(proof, "apart") ? "apart" : kind, json_integer_value(first),
                  json_integer_value(second), 1);
        page_escape(out, *proof ? proof_words(proof) : doc_string(pair, "text"));
        end_arc(out);
    }
}

/* Nodes of thread groups are indented by their first warp. */
static long long node_x(const json_t *node)
{
    enum { MOST = 120 };
    long long indent = doc_integer(node, "first_thread") / 32 * INDENT;
    return NODES_X + (indent < MOST ? indent : MOST);
}

static void draw_node(FILE *out, const json_t *doc, const json_t *nodes, size_t number)
{
    const json_t *node = json_array_get(nodes, number);
    long long x = node_x(node), y = (long long)number * ROW + 14;
    fprintf(out, "<a href=\"#f%zu-%lld\"><text class=\"%s\" x=\"%lld\" y=\"%lld\">%lld ",
            page_file_number(doc, doc_string(node, "file")), (long long)doc_integer(node, "line"),
            strcmp(doc_string(node, "kind"), "access") ? "sync" : "access", x, y,
            (long long)doc_integer(node, "line"));
    write_node_name(out, node);
    fputs("</text></a>\n", out);
}

static void draw_graph(FILE *out, const json_t *doc, const json_t *program)
{
    const json_t *nodes = json_object_get(program, "nodes");
    size_t count = json_array_size(nodes);
    fprintf(out, "<div class=\"scroll\"><svg role=\"img\" class=\"graph\" aria-label=\"accesses and "
            "what orders them\" viewBox=\"0 0 %d %zu\" width=\"%d\">\n", WIDTH, count * ROW, WIDTH);
    draw_orders(out, program);
    draw_signals(out, nodes);
    draw_pairs(out, json_object_get(program, "proofs"), "proof");
    draw_pairs(out, json_object_get(program, "found"), "race");
    for (size_t i = 0; i < count; i++)
        draw_node(out, doc, nodes, i);
    fputs("</svg></div>\n", out);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void write_pair(FILE *out, const json_t *doc, const json_t *program, const json_t *pair)
{
    const json_t *second = json_object_get(pair, "second");
    fputs("<tr>", out);
    write_place(out, doc, node_at(program, json_object_get(pair, "first")));
    if (json_is_integer(second))
        write_place(out, doc, node_at(program, second));
    else
        fputs("<td></td>", out);
    page_code_cell(out, "%", doc_string(pair, "memory"));
}

/* Pairs that race, or may; a hazard that no op stands for is left to its text. */
static void write_found(FILE *out, const json_t *doc, const json_t *program)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(json_object_get(program, "found"), i, pair) {
        if (json_is_integer(json_object_get(pair, "first")))
            write_pair(out, doc, program, pair);
        else
            fputs("<tr><td></td><td></td><td></td>", out);
        fprintf(out, "<td class=\"missed\">%s: ",
                json_is_true(json_object_get(pair, "race")) ? "a race" : "not proved");
        page_escape(out, doc_string(pair, "text"));
        fputs("</td></tr>\n", out);
    }
}

static void write_proofs(FILE *out, const json_t *doc, const json_t *program)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(json_object_get(program, "proofs"), i, pair) {
        const char *proof = doc_string(pair, "proof");
        write_pair(out, doc, program, pair);
        fprintf(out, "<td class=\"passed\">%s", proof_words(proof));
        if (!strcmp(proof, "order"))
            write_orders(out, program, json_object_get(pair, "first"));
        fputs("</td></tr>\n", out);
    }
}

static void write_pairs(FILE *out, const json_t *doc, const json_t *program)
{
    size_t proved = json_array_size(json_object_get(program, "proofs"));
    size_t found = json_array_size(json_object_get(program, "found"));
    fprintf(out, "<details%s><summary>%zu proofs, %zu pairs without</summary><div class=\"scroll\">"
            "<table>\n<tr><th>first</th><th>second</th><th>memory</th><th>why</th></tr>\n",
            found ? " open" : "", proved, found);
    write_found(out, doc, program);
    write_proofs(out, doc, program);
    fputs("</table></div></details>\n", out);
}

static void write_phase(FILE *out, const json_t *doc, const json_t *node)
{
    const json_t *phase = json_object_get(node, "phase");
    bool is_known = json_is_integer(json_object_get(phase, "lag"));
    long long count = (long long)doc_integer(phase, "count");
    long long lag = (long long)doc_integer(phase, "lag");
    fputs("<tr>", out);
    write_place(out, doc, node);
    page_code_cell(out, "%", doc_string(phase, "array"));
    page_number_cell(out, json_object_get(phase, "count"));
    page_number_cell(out, json_object_get(phase, "arrivals"));
    fputs("<td>", out);
    if (is_known)
        fprintf(out, "(i %+lld) / %lld of element (i %+lld) mod %lld</td></tr>\n", lag, count, lag,
                count);
    else
        fputs("not known</td></tr>\n", out);
}

/* The phase that each op on mbarriers means, i being the iteration around it. */
static void write_phases(FILE *out, const json_t *doc, const json_t *program)
{
    size_t i, count = 0;
    const json_t *node;
    json_array_foreach(json_object_get(program, "nodes"), i, node) {
        if (!json_is_object(json_object_get(node, "phase")))
            continue;
        if (!count++)
            fputs("<details><summary>Phases of mbarriers in iteration i</summary><div "
                  "class=\"scroll\"><table>\n<tr><th>op</th><th>mbarriers</th><th>how many</th>"
                  "<th>arrivals</th><th>phase</th></tr>\n", out);
        write_phase(out, doc, node);
    }
    fputs(count ? "</table></div></details>\n" : "", out);
}

static void write_program(FILE *out, const json_t *doc, const json_t *program)
{
    fputs("<h3>@", out);
    page_escape(out, doc_string(program, "name"));
    fputs("</h3>\n", out);
    if (json_array_size(json_object_get(program, "nodes")))
        draw_graph(out, doc, program);
    write_phases(out, doc, program);
    write_pairs(out, doc, program);
}

void page_sync(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *program;
    fputs("<section id=\"sync\">\n<h2>Synchronization</h2>\n<p class=\"faint\">Accesses and what "
          "orders them, of the text as it is written. To the left lead lines from accesses to the "
          "ops that end or order them, dashed ones from arrivals and copies to the waits for their "
          "mbarriers; to the right, pairs that conflict: proved, faint where they touch no common "
          "byte, or not proved.</p>\n", out);
    json_array_foreach(json_object_get(doc, "hazards"), i, program)
        write_program(out, doc, program);
    fputs("</section>\n", out);
}
