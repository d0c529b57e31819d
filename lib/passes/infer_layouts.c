/* Chooses the layouts and swizzles that the text leaves open. Layouts in the text
 * spread first, along the edges of the constraint graph, and tables of `lookup` get
 * the one layout that their op takes; then
 *
 *   1. products of dot_async and dots get fragments, the warps shared out over m and n;
 *   2. of what is still open, the largest tile first, a tile that is loaded or
 *      stored gets the widest accesses, lanes side by side;
 *   3. shared tensors get the swizzle with the fewest bank conflicts.
 *
 * Each choice spreads before the next is made. Where two ops want different
 * layouts of one value, that is an error: convert_layout alone converts.
 *
 *   %s = allocate_shared : f16[16, 64] shared swizzle(auto)
 *   %x = load_global %g[0, 0] : f16[16, 64]
 *     =>  %s = allocate_shared : f16[16, 64] shared swizzle(3, 3, 3)
 *         %x = load_global %g[0, 0] : f16[16, 64] @ local(4, 1).spatial(4, 8).local(1, 8)
 *
 * A remark names what decided each. */
#include "passes/pass.h"

#include "ir/lookup.h"
#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "ir/verify.h"
#include "passes/layout_graph.h"
#include "passes/report.h"
#include "select/fit.h"
#include "select/wgmma.h"

#include <stdlib.h>

typedef struct Infer {
    Module *m;
    Program *p;
    Graph graph;
    DotPreference preference;
    bool failed;            /* with an error that is no conflict, reported already */
} Infer;

#define SAY(s, loc, name, ...) \
    REMARK_AT((s)->m->remarks, (s)->m->diag, loc, name, __VA_ARGS__)

/* ---- views ------------------------------------------------------------------- */

/* Rejects open layouts of a view that moves elements: there the layouts are the
 * meaning, which no pass may choose. */
static bool check_view(Op *op, void *data)
{
    Infer *s = data;
    if (op->code != OP_view || view_keeps_places(op))
        return true;
    const Value *from = op->operands[0], *to = op->results[0];
    const Value *open = !node_is_given(graph_node(from)) ? from
                        : !node_is_given(graph_node(to)) ? to
                                                       : NULL;
    if (!open)
        return true;
    diag_error(s->m->diag, op->loc, "the layouts of %s and %s say what this view means: the "
               "layout of %s must be written", graph_value_text(s->m, from),
               graph_value_text(s->m, to), graph_value_text(s->m, open));
    s->failed = true;
    return true;
}

/* ---- tables -------------------------------------------------------------------- */

/* Gives a table in registers the one layout that `lookup` takes. */
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
        return graph_choose(&s->graph, graph_node(table), l, op, "every entry in every thread");
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
        if (!graph_choose(&s->graph, graph_node(op->operands[i]), fit->layouts[i], op, why))
            return false;
    }
    return true;
}

/* Chooses tensor cores if the known layouts allow them. A layout in the text may rule
 * them out; another op's request that does is a conflict. */
static bool choose_dot(Op *op, void *data)
{
    Infer *s = data;
    const Layout *known[MMA_OPERANDS] = {0}, *given[MMA_OPERANDS] = {0};
    bool all_given = true;
    DotFit fit;
    if (op->code != OP_dot)
        return true;
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        const Node *node = graph_node(op->operands[i]);
        known[i] = node->layout;
        given[i] = node_is_given(node) ? node->layout : NULL;
        all_given &= node_is_given(node);
    }
    if (all_given)
        return true;
    unsigned sm = s->m->target_sm;
    if (!dot_check_given(s->m, op, sm, given)) {
        s->failed = true;
        return false;
    }
    if (fit_dot_mma(s->m, op, sm, s->preference, known, &fit) ||
        fit_dot_mma(s->m, op, sm, s->preference, given, &fit) ||
        fit_dot_fma(s->m, op, sm, known, &fit))
        return choose_operands(s, op, &fit);
    return true;
}

/* ---- products -------------------------------------------------------------- */

static const Layout *known_layout(const Value *v)
{
    return v->type->kind == TYPE_REG ? graph_node(v)->layout : NULL;
}

/* Gives sums of a dot_async, and a in registers, the fragments of wgmma; warpgroups over m
 * first. */
static bool choose_product(Op *op, void *data)
{
    Infer *s = data;
    if (op->code != OP_dot_async)
        return true;
    const Layout *sums = known_layout(op->results[0]), *a = known_layout(op->operands[0]);
    if (!fit_wgmma(s->m, op, &sums, &a))
        return true;
    return graph_choose(&s->graph, graph_node(op->results[0]), sums, op, "sums of wgmma") &&
           (!a || graph_choose(&s->graph, graph_node(op->operands[0]), a, op,
                               "fragments a of wgmma"));
}

/* ---- tiles ------------------------------------------------------------------- */

static int64_t node_elements(const Node *node)
{
    int64_t n = 1;
    for (unsigned d = 0; d < node->value->type->rank; d++)
        n *= type_extent(node->value->type, d);
    return n;
}

/* Returns true for the result of a join, whose layout follows from its parts'. */
static bool is_joined(const Node *node)
{
    const Op *op = node->value->def;
    return op && op_info[op->code].rule == RULE_JOIN;
}

/* Orders the largest first, so that reductions and sources of broadcasts follow. Joins come
 * last: few layouts of a whole can be parted. */
static int compare_nodes(const void *x, const void *y)
{
    const Node *a = *(const Node *const *)x, *b = *(const Node *const *)y;
    int64_t na = node_elements(a), nb = node_elements(b);
    if (is_joined(a) != is_joined(b))
        return is_joined(a) ? 1 : -1;
    if (na != nb)
        return na < nb ? 1 : -1;
    if (a->weight != b->weight)
        return b->weight - a->weight;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Returns a neighbor of which `node` is a broadcast, or the operand of its reduction. */
static const Node *find_smaller(const Node *node)
{
    for (const Edge *edge = node->edges; edge; edge = edge->next[edge->ends[1] == node]) {
        unsigned end = edge->ends[1] == node;
        if (edge->ends[!end]->layout && edge->kind == (end ? EDGE_REPEAT : EDGE_REDUCE))
            return edge->ends[!end];
    }
    return NULL;
}

/* Returns the layout of the index of the access that decides about a tile, if it is known. */
static const Layout *known_index(const Node *node)
{
    const Value *index = node->access ? op_index(node->access) : NULL;
    return index && index != node->value ? graph_node(index)->layout : NULL;
}

static const Region *value_region(const Value *v)
{
    return v->def ? v->def->parent : v->region;
}

/* Returns the layout that the access of a tile decides, NULL if none does: beside a smaller tensor
 * that is known it must fit, unless an index decides anyway. */
static const Layout *fit_moved(Infer *s, Node *node, bool has_smaller, const char **reason,
                               const char **why)
{
    const Layout *index = known_index(node);
    int64_t threads = region_threads(value_region(node->value)).count;
    unsigned bytes = 0;
    const Layout *l = fit_access(s->m, node->access, node->value, index, threads, &bytes, why);
    if (l && has_smaller && !index && !graph_fits(&s->graph, node, l))
        return NULL;
    *reason = arena_printf(&s->m->scratch, "%u byte%s a lane, %s", bytes, bytes == 1 ? "" : "s",
                           index ? "as the index allows" : "coalesced");
    return l;
}

static bool choose_tile(Infer *s, Node *node)
{
    Module *m = s->m;
    const Node *smaller = find_smaller(node);
    const Value *v = node->value;
    const char *reason = "no op decides", *why = "";
    const Op *by = v->def ? v->def : v->region->parent;
    const Layout *l = node->access ? fit_moved(s, node, smaller, &reason, &why) : NULL;
    node->fitted = l && !smaller;
    if (l) {
        by = node->access;
    } else if (smaller) {
        l = fit_repeat(m, smaller->layout, v->type, &why);
        reason = arena_printf(&m->scratch, "repeats %s", graph_value_text(m, smaller->value));
    } else if (!node->access) {
        l = fit_plain(m, v->type, region_threads(value_region(v)).count, &why);
    }
    if (l)
        return graph_choose(&s->graph, node, l, by, reason);
    diag_error(m->diag, v->loc, "no layout of %s: %s", type_text(m, v->type), why);
    s->failed = true;
    return false;
}

static bool choose_tiles(Infer *s)
{
    Graph *g = &s->graph;
    Node **order = arena_copy(&s->m->scratch, g->nodes, g->count * sizeof *order);
    qsort(order, g->count, sizeof *order, compare_nodes);
    for (uint32_t i = 0; i < g->count; i++)
        if (!order[i]->layout && !choose_tile(s, order[i]))
            return false;
    return true;
}

/* ---- the pass ----------------------------------------------------------------- */

static bool choose(Infer *s)
{
    return graph_build(&s->graph, s->p) && region_walk(s->p->body, check_view, s) &&
           !s->failed &&
           region_walk(s->p->body, choose_table, s) &&
           region_walk(s->p->body, choose_product, s) &&
           region_walk(s->p->body, choose_dot, s) && choose_tiles(s);
}

/* Tries twice: dots that feed dots may need their warps over the rows. Reports the
 * conflict of the first try. */
static bool choose_or_report(Infer *s)
{
    Infer second = *s;
    second.preference = DOT_ROWS;
    if (choose(s))
        return true;
    if (!s->failed && choose(&second)) {
        *s = second;
        return true;
    }
    if (!s->failed)
        graph_report(&s->graph);
    return false;
}

static void remark_layout(const Infer *s, const Node *node)
{
    const char *as = node->from ? arena_printf(&s->m->scratch, "as %s",
                                               graph_value_text(s->m, node->from->value))
                                : node->why;
    SAY(s, node->value->loc, LayoutChosen, R(graph_value_text(s->m, node->value)),
        R(graph_layout_text(s->m, node->layout)), R(as));
}

static void write_layouts(const Infer *s)
{
    for (uint32_t i = 0; i < s->graph.count; i++) {
        const Node *node = s->graph.nodes[i];
        const Type *t = node->value->type;
        if (!type_is_open(t))
            continue;
        if (remarks_wanted(s->m->remarks))
            remark_layout(s, node);
        node->value->type = type_with_layout(s->m, t, node->layout);
        if (node->fitted)
            ((Op *)node->access)->fitted = true;
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
    const char *name = graph_value_text(s->m, v);
    const char *word = w.bits ? arena_printf(&s->m->scratch, "swizzle(%d, %d, %d)", w.bits,
                                             w.base, w.shift) : "no swizzle";
    const char *conflicts = "no bank conflicts";
    if (ways > 1)
        conflicts = arena_printf(&s->m->scratch, "%u-way bank conflicts at worst", ways);
    SAY(s, v->loc, SwizzleChosen, R(name), R(word), R(conflicts), R(ways));
    if (ways > 1)
        SAY(s, v->loc, SwizzleMissed, R(name), R(ways));
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
