/* Drawing layouts: a grid of cells that name thread and slot, as text or SVG.
 *
 * Text and SVG show slices of two dimensions, below each other. A layout of
 * rank 1 is one slice, broken into rows. */
#include "types/layout.h"

#include <inttypes.h>
#include <string.h>

enum { LINE = 16, SHOWN_HOLDERS = 4 };

/* Sizes and holders that the cells share. A slice is `rows` x `columns` cells. */
typedef struct Drawing {
    Text *out;
    const Layout *l;
    int64_t rows, columns, slices, elements;
    int64_t holder[LIMIT_THREADS];  /* the threads that share thread 0's elements */
    int64_t holders;
} Drawing;

/* Replicas are digits of the thread number, so every element's holders are its
 * least one plus the same numbers. */
static void find_holders(Drawing *g)
{
    int64_t index[LIMIT_RANK], thread, slot;
    for (int64_t t = 0; t < g->l->threads; t++) {
        layout_index(g->l, t, 0, index);
        layout_place(g->l, index, &thread, &slot);
        if (thread == 0)
            g->holder[g->holders++] = t;
    }
}

static Drawing drawing_of(Text *out, const Layout *l)
{
    Drawing g = {.out = out, .l = l, .slices = 1, .elements = 1};
    for (unsigned d = 0; d < l->rank; d++) {
        g.elements *= l->shape[d];
        g.slices *= d + 2 < l->rank ? l->shape[d] : 1;
    }
    if (l->rank == 1) {
        g.columns = g.elements < LINE ? g.elements : LINE;
        g.rows = (g.elements + g.columns - 1) / g.columns;
    } else {
        g.columns = l->shape[l->rank - 1];
        g.rows = l->shape[l->rank - 2];
    }
    find_holders(&g);
    return g;
}

/* ---- cells ------------------------------------------------------------------ */

/* The index of a cell; false past the end of the last line of a rank of 1. */
static bool cell_index(const Drawing *g, int64_t slice, int64_t row, int64_t column,
                       int64_t *index)
{
    unsigned rank = g->l->rank;
    if (rank == 1) {
        index[0] = row * g->columns + column;
        return index[0] < g->elements;
    }
    for (unsigned d = rank - 2; d--; slice /= g->l->shape[d])
        index[d] = slice % g->l->shape[d];
    index[rank - 2] = row;
    index[rank - 1] = column;
    return true;
}

/* "3:0", with replicas "3,7:0"; of many "0,1,..,31:0". */
static void print_cell(Text *out, const Drawing *g, int64_t thread, int64_t slot)
{
    for (int64_t i = 0; i < g->holders; i++) {
        if (g->holders > SHOWN_HOLDERS && i == 2) {
            text_add(out, ",..");
            i = g->holders - 1;
        }
        text_printf(out, "%s%" PRId64, i ? "," : "", thread + g->holder[i]);
    }
    text_printf(out, ":%" PRId64, slot);
}

/* The text of a cell, on the arena, and its thread. */
static const char *cell_text(const Drawing *g, const int64_t *index, int64_t *thread)
{
    Text cell;
    int64_t slot;
    text_init(&cell, g->out->arena);
    layout_place(g->l, index, thread, &slot);
    print_cell(&cell, g, *thread, slot);
    return text_string(&cell);
}

/* Characters of the widest cell, which has the greatest threads and slot. */
static int cell_width(const Drawing *g)
{
    Text cell;
    text_init(&cell, g->out->arena);
    print_cell(&cell, g, g->l->threads - 1 - g->holder[g->holders - 1], g->l->slots - 1);
    return (int)cell.len;
}

static int digits_of(int64_t number)
{
    int digits = 1;
    for (; number > 9; number /= 10)
        digits++;
    return digits;
}

/* The label of a row: its index, or its first element's where the rank is 1. */
static int64_t row_label(const Drawing *g, int64_t row)
{
    return g->l->rank == 1 ? row * g->columns : row;
}

/* "local(2, 1)  [2, 1], 1 thread, 2 slots". */
static void print_title(const Drawing *g)
{
    const Layout *l = g->l;
    layout_print(g->out, l);
    for (unsigned d = 0; d < l->rank; d++)
        text_printf(g->out, "%s%" PRId64, d ? ", " : "  [", l->shape[d]);
    text_printf(g->out, "], %" PRId64 " thread%s, %" PRId64 " slot%s", l->threads,
                l->threads == 1 ? "" : "s", l->slots, l->slots == 1 ? "" : "s");
}

/* "[0, 1, *, *]" before a slice of a rank above 2. */
static void print_slice_name(const Drawing *g, int64_t slice)
{
    int64_t index[LIMIT_RANK];
    cell_index(g, slice, 0, 0, index);
    text_char(g->out, '[');
    for (unsigned d = 0; d + 2 < g->l->rank; d++)
        text_printf(g->out, "%" PRId64 ", ", index[d]);
    text_add(g->out, "*, *]");
}

/* ---- text ------------------------------------------------------------------- */

static void text_row(const Drawing *g, int64_t slice, int64_t row, int label, int width)
{
    int64_t index[LIMIT_RANK], thread;
    text_printf(g->out, "%*" PRId64, label, row_label(g, row));
    for (int64_t column = 0; column < g->columns; column++)
        if (cell_index(g, slice, row, column, index))
            text_printf(g->out, "  %*s", width, cell_text(g, index, &thread));
    text_char(g->out, '\n');
}

void layout_draw_text(Text *out, const Layout *l)
{
    Drawing g = drawing_of(out, l);
    int label = digits_of(row_label(&g, g.rows - 1)), width = cell_width(&g);
    int number = digits_of(g.columns - 1);
    width = width > number ? width : number;
    print_title(&g);
    text_char(out, '\n');
    for (int64_t slice = 0; slice < g.slices; slice++) {
        text_char(out, '\n');
        if (l->rank > 2) {
            print_slice_name(&g, slice);
            text_char(out, '\n');
        }
        text_printf(out, "%*s", label, "");
        for (int64_t column = 0; column < g.columns; column++)
            text_printf(out, "  %*" PRId64, width, column);
        text_char(out, '\n');
        for (int64_t row = 0; row < g.rows; row++)
            text_row(&g, slice, row, label, width);
    }
}

/* ---- SVG -------------------------------------------------------------------- */

/* Sizes in pixels. A character of the font is at most CHARACTER wide. */
enum { CHARACTER = 8, CELL_HEIGHT = 24, MARGIN = 16, BASELINE = 16 };

typedef struct Sheet {
    const Drawing *g;
    int64_t left, cell;     /* of the row labels, and of a cell: widths */
} Sheet;

static void svg_text(const Sheet *s, int64_t x, int64_t y, const char *anchor,
                     const char *text)
{
    text_printf(s->g->out, "<text x=\"%" PRId64 "\" y=\"%" PRId64 "\" text-anchor=\"%s\">%s"
                "</text>\n", x, y + BASELINE, anchor, text);
}

static void svg_number(const Sheet *s, int64_t x, int64_t y, const char *anchor,
                       int64_t number)
{
    svg_text(s, x, y, anchor, arena_printf(s->g->out->arena, "%" PRId64, number));
}

/* Neighboring threads differ most in hue when it steps by the golden angle;
 * the lightness lets black text be read on every color. */
static void svg_cell(const Sheet *s, int64_t x, int64_t y, const int64_t *index)
{
    int64_t thread;
    const char *text = cell_text(s->g, index, &thread);
    text_printf(s->g->out, "<rect x=\"%" PRId64 "\" y=\"%" PRId64 "\" width=\"%" PRId64
                "\" height=\"%d\" fill=\"hsl(%" PRId64 ", 70%%, 80%%)\" stroke=\"white\"/>\n",
                x, y, s->cell, CELL_HEIGHT, thread * 1375 / 10 % 360);
    svg_text(s, x + s->cell / 2, y, "middle", text);
}

static void svg_slice(const Sheet *s, int64_t slice, int64_t top)
{
    const Drawing *g = s->g;
    int64_t index[LIMIT_RANK];
    for (int64_t column = 0; column < g->columns; column++)
        svg_number(s, s->left + column * s->cell + s->cell / 2, top, "middle", column);
    for (int64_t row = 0; row < g->rows; row++) {
        int64_t y = top + (row + 1) * CELL_HEIGHT;
        svg_number(s, s->left - CHARACTER, y, "end", row_label(g, row));
        for (int64_t column = 0; column < g->columns; column++)
            if (cell_index(g, slice, row, column, index))
                svg_cell(s, s->left + column * s->cell, y, index);
    }
}

/* The title, and before each slice of a rank above 2 its name. */
static void svg_slices(const Sheet *s, int64_t height)
{
    const Drawing *g = s->g;
    text_printf(g->out, "<text x=\"%d\" y=\"%d\">", MARGIN, MARGIN + BASELINE);
    print_title(g);
    text_add(g->out, "</text>\n");
    for (int64_t slice = 0; slice < g->slices; slice++) {
        int64_t top = MARGIN + CELL_HEIGHT + slice * height;
        if (g->l->rank > 2) {
            text_printf(g->out, "<text x=\"%d\" y=\"%" PRId64 "\">", MARGIN, top + BASELINE);
            print_slice_name(g, slice);
            text_add(g->out, "</text>\n");
            top += CELL_HEIGHT;
        }
        svg_slice(s, slice, top);
    }
}

void layout_draw_svg(Text *out, const Layout *l)
{
    Drawing g = drawing_of(out, l);
    Sheet s = {&g, MARGIN + CHARACTER * (1 + digits_of(row_label(&g, g.rows - 1))),
               CHARACTER * (1 + cell_width(&g))};
    Text title;
    text_init(&title, out->arena);
    g.out = &title;
    print_title(&g);
    g.out = out;
    int64_t grid = s.left + g.columns * s.cell, caption = MARGIN + CHARACTER * title.len;
    int64_t width = (grid > caption ? grid : caption) + MARGIN;
    int64_t slice = CELL_HEIGHT * (g.rows + 1 + (l->rank > 2));
    int64_t height = 2 * MARGIN + CELL_HEIGHT + g.slices * slice;
    text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRId64 "\" "
                "height=\"%" PRId64 "\" viewBox=\"0 0 %" PRId64 " %" PRId64 "\" ", width,
                height, width, height);
    text_add(out, "font-family=\"monospace\" font-size=\"12\">\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    svg_slices(&s, slice);
    text_add(out, "</svg>\n");
}
