/* Chooses the layouts and swizzles that the text leaves open. What the text gives
 * spreads first, to whatever must have the same layout, and tables of `lookup` get
 * the one that does; then
 *
 *   1. dots get fragments, the warps shared out over m and n;
 *   2. of what is still open, the largest tile first, a tile that memory gives or
 *      takes gets the widest accesses, lanes side by side;
 *   3. shared tensors get the swizzle with the fewest bank conflicts.
 *
 * Each choice spreads before the next is made. Where two ops want different
 * layouts of one value, nothing is converted: that is an error.
 *
 *   %s = allocate_shared : f16[16, 64] shared swizzle(auto)
 *   %x = load_global %g[0, 0] : f16[16, 64]
 *     =>  %s = allocate_shared : f16[16, 64] shared swizzle(3, 3, 3)
 *         %x = load_global %g[0, 0] : f16[16, 64] @ local(4, 1).spatial(4, 8).local(1, 8)
 *
 * Remarks say for each what decided it. */
#include "passes/pass.h"

#include "ir/lookup.h"
#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/layout_web.h"
#include "passes/report.h"
#include "select/fit.h"

#include <stdlib.h>

typedef struct Infer {
    Module *m;
    Program *p;
    Web web;
    DotTaste taste;
    bool failed;            /* with an error that is no conflict, reported already */
} Infer;

#define SAY(s, loc, kind, ...)                                                \
    remark_emit((s)->m->remarks, REMARK_##kind, "infer-layouts", (s)->m->diag, loc, __VA_ARGS__)

/* ---- views ------------------------------------------------------------------- */

/* Where elements change their places the layouts are the meaning, and not ours to
 * choose. */
static bool check_view(Op *op, void *data)
{
    Infer *s = data;
    if (op->code != OP_view || view_keeps_places(op))
        return true;
    const Value *from = op->operands[0], *to = op->results[0];
    const Value *open = !cell_is_given(web_cell(from)) ? from
                        : !cell_is_given(web_cell(to)) ? to
                                                       : NULL;
    if (!open)
        return true;
    diag_error(s->m->diag, op->loc, "the layouts of %s and %s say what this view means: the "
               "layout of %s must be written", web_value_text(s->m, from),
               web_value_text(s->m, to), web_value_text(s->m, open));
    s->failed = true;
    return true;
}

/* ---- tables -------------------------------------------------------------------- */

/* A table in registers has one layout that does. */
static bool choose_table(Op *op, void *data)
{
    Infer *s = data;
    const char *why;
    if (op->code != OP_lookup)
        return true;
    const Value *table = op->operands[1];
    const Layout *l = lookup_layout(s->m, region_threads(op->parent).count,
                                    type_extent(table->type, 0), &why);
    if (l)
        return web_choose(&s->web, web_cell(table), l, op, "every entry in every thread");
    diag_error(s->m->diag, op->loc, "no layout of %s: %s", type_text(s->m, table->type), why);
    s->failed = true;
    return false;
}

/* ---- dots -------------------------------------------------------------------- */

/* Gives the dot's operands their layouts. */
static bool choose_operands(Infer *s, const Op *op, const DotFit *fit)
{
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        const char *why = arena_printf(&s->m->scratch, "%s %c of %s",
                                       fit->via == VIA_fma ? "operand" : "fragments", "abc"[i],
                                       via_info[fit->via].spelling);
        if (!web_choose(&s->web, web_cell(op->operands[i]), fit->layouts[i], op, why))
            return false;
    }
    return true;
}

/* Tensor cores if what is known allows them. What the text gives may rule them out;
 * another op's wish that does is a conflict. */
static bool choose_dot(Op *op, void *data)
{
    Infer *s = data;
    const Layout *known[MMA_OPERANDS] = {0}, *given[MMA_OPERANDS] = {0};
    bool all_given = true;
    DotFit fit;
    if (op->code != OP_dot)
        return true;
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        const Cell *c = web_cell(op->operands[i]);
        known[i] = c->layout;
        given[i] = cell_is_given(c) ? c->layout : NULL;
        all_given &= cell_is_given(c);
    }
    if (all_given)
        return true;
    unsigned sm = s->m->target_sm;
    if (!dot_check_given(s->m, op, sm, given)) {
        s->failed = true;
        return false;
    }
    if (fit_dot_mma(s->m, op, sm, s->taste, known, &fit) ||
        fit_dot_mma(s->m, op, sm, s->taste, given, &fit) ||
        fit_dot_fma(s->m, op, sm, known, &fit))
        return choose_operands(s, op, &fit);
    return true;
}

/* ---- tiles ------------------------------------------------------------------- */

static int64_t cell_elements(const Cell *c)
{
    int64_t n = 1;
    for (unsigned d = 0; d < c->value->type->rank; d++)
        n *= type_extent(c->value->type, d);
    return n;
}

/* The largest first, so that reductions and what is broadcast follow them. */
static int compare_cells(const void *x, const void *y)
{
    const Cell *a = *(const Cell *const *)x, *b = *(const Cell *const *)y;
    int64_t na = cell_elements(a), nb = cell_elements(b);
    if (na != nb)
        return na < nb ? 1 : -1;
    if (a->weight != b->weight)
        return b->weight - a->weight;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* A link over which the layout of `c` is one of many that suit the other end. */
static const Cell *find_smaller(const Cell *c)
{
    for (const Link *link = c->links; link; link = link->next[link->ends[1] == c]) {
        unsigned end = link->ends[1] == c;
        if (link->ends[!end]->layout && link->kind == (end ? LINK_REPEAT : LINK_REDUCE))
            return link->ends[!end];
    }
    return NULL;
}

static bool choose_tile(Infer *s, Cell *c)
{
    Module *m = s->m;
    const Cell *smaller = find_smaller(c);
    const Value *v = c->value;
    int64_t threads = region_threads(v->def ? v->def->parent : v->region).count;
    const char *reason = "no op decides", *why = "";
    const Op *by = v->def ? v->def : v->region->parent;
    const Layout *l;
    if (smaller) {
        l = fit_repeat(m, smaller->layout, v->type, &why);
        reason = arena_printf(&m->scratch, "repeats %s", web_value_text(m, smaller->value));
    } else if (c->access) {
        unsigned bytes;
        by = c->access;
        l = fit_access(m, by, c->value, threads, &bytes, &why);
        reason = arena_printf(&m->scratch, "%u byte%s a lane, coalesced", bytes,
                              bytes == 1 ? "" : "s");
    } else {
        l = fit_plain(m, v->type, threads, &why);
    }
    if (l)
        return web_choose(&s->web, c, l, by, reason);
    diag_error(m->diag, v->loc, "no layout of %s: %s", type_text(m, v->type), why);
    s->failed = true;
    return false;
}

static bool choose_tiles(Infer *s)
{
    Web *w = &s->web;
    Cell **order = arena_copy(&s->m->scratch, w->cells, w->count * sizeof *order);
    qsort(order, w->count, sizeof *order, compare_cells);
    for (uint32_t i = 0; i < w->count; i++)
        if (!order[i]->layout && !choose_tile(s, order[i]))
            return false;
    return true;
}

/* ---- the whole ---------------------------------------------------------------- */

static bool choose(Infer *s)
{
    return web_build(&s->web, s->p) && region_walk(s->p->body, check_view, s) && !s->failed &&
           region_walk(s->p->body, choose_table, s) &&
           region_walk(s->p->body, choose_dot, s) && choose_tiles(s);
}

/* Dots that feed dots may need their warps over the rows: that is the second try.
 * The first one's conflict is the one to report. */
static bool choose_or_report(Infer *s)
{
    Infer second = *s;
    second.taste = DOT_ROWS;
    if (choose(s))
        return true;
    if (!s->failed && choose(&second)) {
        *s = second;
        return true;
    }
    if (!s->failed)
        web_report(&s->web);
    return false;
}

static void say_layout(const Infer *s, const Cell *c)
{
    const char *as = c->from ? arena_printf(&s->m->scratch, "as %s",
                                            web_value_text(s->m, c->from->value)) : c->why;
    SAY(s, c->value->loc, PASSED, "%s @ %s: %s", web_value_text(s->m, c->value),
        web_layout_text(s->m, c->layout), as);
}

static void write_layouts(const Infer *s)
{
    for (uint32_t i = 0; i < s->web.count; i++) {
        const Cell *c = s->web.cells[i];
        const Type *t = c->value->type;
        if (!type_is_open(t))
            continue;
        if (remarks_wanted(s->m->remarks))
            say_layout(s, c);
        c->value->type = type_with_layout(s->m, t, c->layout);
        stat_add(s->m, STAT_infer_layouts_layouts, 1);
    }
}

static bool swizzle_part(Op *op, void *data)
{
    const Value *shared = data;
    Module *m = op->parent->program->module;
    if (op->result_count && part_op(op->results[0]) && memory_root(op->results[0]) == shared)
        op->results[0]->type = type_swizzled(m, op->results[0]->type, shared->type->swizzle);
    return true;
}

/* Gives the tensor and its parts the swizzle. */
static void write_swizzle(const Infer *s, Value *shared, Swizzle w)
{
    shared->type = type_swizzled(s->m, shared->type, w);
    region_walk(s->p->body, swizzle_part, shared);
}

static bool choose_swizzle(Op *op, void *data)
{
    const Infer *s = data;
    unsigned ways;
    if (op->code != OP_allocate_shared || !type_is_open(op->results[0]->type))
        return true;
    Value *v = op->results[0];
    Swizzle w = fit_swizzle(s->p, v, &ways);
    write_swizzle(s, v, w);
    stat_add(s->m, STAT_infer_layouts_swizzles, 1);
    const char *name = web_value_text(s->m, v);
    const char *word = w.bits ? arena_printf(&s->m->scratch, "swizzle(%d, %d, %d)", w.bits,
                                             w.base, w.shift) : "no swizzle";
    if (ways == 1) {
        SAY(s, v->loc, PASSED, "%s gets %s: no bank conflicts", name, word);
        return true;
    }
    SAY(s, v->loc, PASSED, "%s gets %s: %u-way bank conflicts at worst", name, word, ways);
    SAY(s, v->loc, MISSED, "no swizzle of %s avoids %u-way bank conflicts", name, ways);
    return true;
}

static bool has_none_open(Op *op, void *data)
{
    (void)data;
    for (unsigned i = 0; i < op->result_count; i++)
        if (type_is_open(op->results[i]->type))
            return false;
    return true;
}

PassResult pass_infer_layouts(Program *p)
{
    Infer s = {.m = p->module, .p = p};
    if (region_walk(p->body, has_none_open, NULL))
        return PASS_UNCHANGED;
    ArenaMark mark = arena_mark(&s.m->scratch);
    bool ok = choose_or_report(&s);
    program_clear_data(p);
    if (ok) {
        write_layouts(&s);
        region_walk(p->body, choose_swizzle, &s);
    }
    arena_reset(&s.m->scratch, mark);
    return ok && verify_module(s.m) ? PASS_CHANGED : PASS_FAILED;
}
