/* The constraint graph: which ops make layouts depend on each other, and how a choice
 * spreads. */
#include "passes/layout_graph.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"

/* ---- building ------------------------------------------------------------------ */

Node *graph_node(const Value *v)
{
    return v->type->kind == TYPE_REG ? v->data : NULL;
}

bool node_is_given(const Node *node)
{
    return node->root && node->root->given;
}

/* Returns the op that defines the value or, of a region's argument, the region's op. */
static const Op *definition(const Value *v)
{
    return v->def ? v->def : v->region->parent;
}

static void add_node(Graph *g, Value *v)
{
    if (v->type->kind != TYPE_REG)
        return;
    Node *node = arena_new(&g->m->scratch, Node);
    *node = (Node){.value = v, .number = g->count};
    v->data = node;
    arena_push(&g->m->scratch, g->nodes, g->count, g->capacity, node);
}

static void add_edge(Graph *g, EdgeKind kind, const Op *op, const Value *a, const Value *b)
{
    Node *ends[2] = {graph_node(a), graph_node(b)};
    if (!ends[0] || !ends[1] || ends[0] == ends[1])
        return;
    Edge *edge = arena_new(&g->m->scratch, Edge);
    *edge = (Edge){.kind = kind, .op = op, .ends = {ends[0], ends[1]},
                   .next = {ends[0]->edges, ends[1]->edges}};
    ends[0]->edges = ends[1]->edges = edge;
}

/* Connects carried values: initial ones, region arguments, yielded ones, and results. */
static void connect_carried(Graph *g, const Op *op)
{
    for (unsigned r = 0; r < op->region_count; r++) {
        const Region *region = op->regions[r];
        const Op *yield = region_yield(region);
        unsigned first = region->arg_count - op->operand_count;     /* after an index */
        for (unsigned i = 0; i < op->result_count; i++)
            add_edge(g, EDGE_SAME, yield, yield->operands[i], op->results[i]);
        for (unsigned i = 0; i < op->operand_count; i++)
            add_edge(g, EDGE_SAME, op, op->operands[i], region->args[first + i]);
    }
    for (unsigned i = 0; i < op->operand_count; i++)
        add_edge(g, EDGE_SAME, op, op->operands[i], op->results[i]);
}

/* Connects all register tensors of an op that works element by element. */
static void connect_elements(Graph *g, const Op *op)
{
    const Value *first = op->operands[0];
    unsigned count = op->operand_count - (op_index(op) ? 1 : 0);
    for (unsigned i = 1; i < count; i++)
        add_edge(g, EDGE_SAME, op, first, op->operands[i]);
    for (unsigned i = 0; i < op->result_count; i++)
        add_edge(g, EDGE_SAME, op, first, op->results[i]);
}

static bool same_extents(const Type *from, const Type *to)
{
    bool same = from->rank == to->rank;
    for (unsigned d = 0; same && d < from->rank; d++)
        same = from->extents[d] == to->extents[d];
    return same;
}

/* Returns the first dimension from `d` on whose extent is not 1, or the rank. */
static unsigned skip_units(const Type *t, unsigned d)
{
    while (d < t->rank && type_extent(t, d) == 1)
        d++;
    return d;
}

/* Returns true when extents are equal, ignoring those of 1. */
static bool same_but_units(const Type *from, const Type *to)
{
    unsigned i = skip_units(from, 0), j = skip_units(to, 0);
    while (i < from->rank && j < to->rank && from->extents[i] == to->extents[j]) {
        i = skip_units(from, i + 1);
        j = skip_units(to, j + 1);
    }
    return i == from->rank && j == to->rank;
}

bool view_keeps_places(const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    return dtype_bits(from->dtype) == dtype_bits(to->dtype) && from->packed == to->packed &&
           same_but_units(from, to);
}

/* Connects the ends of a view, unless the text gives both layouts: they may differ. */
static void connect_view(Graph *g, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if ((type_is_open(from) || type_is_open(to)) && view_keeps_places(op))
        add_edge(g, same_extents(from, to) ? EDGE_SAME : EDGE_RESHAPE, op, op->operands[0],
                 op->results[0]);
}

/* Connects the parts, which have one layout, with each other and with the result. */
static void connect_join(Graph *g, const Op *op)
{
    for (unsigned i = 1; i < op->operand_count; i++)
        add_edge(g, EDGE_SAME, op, op->operands[0], op->operands[i]);
    add_edge(g, EDGE_JOIN, op, op->operands[0], op->results[0]);
}

/* Connects the result with the codes, whose layout gives that of scales and zero points. */
static void connect_dequantize(Graph *g, const Op *op)
{
    add_edge(g, EDGE_SAME, op, op->operands[0], op->results[0]);
    for (unsigned i = 1; i < op->operand_count; i++)
        add_edge(g, EDGE_GROUP, op, op->operands[0], op->operands[i]);
}

/* Connects a register tile with the tensor that says where its elements lie. */
static void connect_index(Graph *g, const Op *op)
{
    const Value *index = op_index(op);
    if (index && !op_attr(op, ATTR_SHAPE))
        add_edge(g, EDGE_REPEAT, op, index, op->result_count ? op->results[0] : op->operands[0]);
}

/* Connects what dot_wait takes with what it gives, one by one. */
static void connect_waited(Graph *g, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++)
        add_edge(g, EDGE_SAME, op, op->operands[i], op->results[i]);
}

/* Connects the accumulator, operand 2, with the result. */
static void connect_sum(Graph *g, const Op *op)
{
    add_edge(g, EDGE_SAME, op, op->operands[2], op->results[0]);
}

/* Connects an op that computes element by element, except products and codes with groups. */
static void connect_computed(Graph *g, const Op *op)
{
    if (op->code == OP_dot)
        connect_sum(g, op);
    else if (op->code == OP_dequantize)
        connect_dequantize(g, op);
    else
        connect_elements(g, op);
}

/* Finds the kind of edge between operand 0 and the result that the op's rule gives by itself. */
static bool find_edge(const Op *op, EdgeKind *kind)
{
    switch (op_info[op->code].rule) {
    case RULE_REDUCE: *kind = EDGE_REDUCE; return true;
    case RULE_PERMUTE: *kind = EDGE_PERMUTE; return true;
    case RULE_SLICE: *kind = EDGE_SLICE; return true;
    case RULE_RESHAPE: *kind = EDGE_RESHAPE; return true;
    case RULE_ENTRY: *kind = EDGE_SAME; return true;    /* the table's is chosen by itself */
    default: *kind = EDGE_REPEAT; return op->code == OP_broadcast;
    }
}

static void connect_op(Graph *g, const Op *op)
{
    EdgeKind kind;
    connect_index(g, op);
    if (find_edge(op, &kind))
        add_edge(g, kind, op, op->operands[0], op->results[0]);
    switch (op_info[op->code].rule) {
    case RULE_CARRIED: connect_carried(g, op); break;
    case RULE_JOIN: connect_join(g, op); break;
    case RULE_WAITED: connect_waited(g, op); break;
    case RULE_PENDING:
        if (op->operand_count == 3)
            connect_sum(g, op);
        break;
    case RULE_SAME: case RULE_ELEMENT: case RULE_BOOL: case RULE_LAST:
        connect_computed(g, op);
        break;
    default:
        if (op->code == OP_view)
            connect_view(g, op);
    }
}

static bool add_op_nodes(Op *op, void *data)
{
    for (unsigned i = 0; i < op->result_count; i++)
        add_node(data, op->results[i]);
    for (unsigned r = 0; r < op->region_count; r++)
        for (unsigned i = 0; i < op->regions[r]->arg_count; i++)
            add_node(data, op->regions[r]->args[i]);
    return true;
}

enum { COPIED_ROWS = 3 };   /* the weight of a copy of rows for the layout of their index */

/* Weighs an op that moves a tile as the one to decide its layout. Atomic ops on pairs
 * of 16-bit elements have no other layout; accesses of global memory gain the most. */
static int access_weight(const Op *op)
{
    bool atomic = op_info[op->code].attrs & op_attr_bit(ATTR_ORDER);
    if (atomic && dtype_bits(op_tile_type(op)->dtype) < 32)
        return 3;
    return op_memory_operand(op)->type->kind == TYPE_GLOBAL ? 2 : 1;
}

/* Records the access that decides a tile's layout: the first of the greatest weight. */
static void note_access(const Op *op)
{
    bool copies_rows = op_index(op) && op_attr(op, ATTR_SHAPE);
    if (!copies_rows &&
        !(op_info[op->code].attrs & (op_attr_bit(ATTR_UNIT) | op_attr_bit(ATTR_ORDER))))
        return;
    Node *node = graph_node(copies_rows        ? op_index(op)
                            : op->result_count ? op->results[0]
                                               : op->operands[0]);
    int weight = copies_rows ? COPIED_ROWS : access_weight(op);
    if (weight <= node->weight)
        return;
    node->access = op;
    node->weight = weight;
}

static bool connect_visited(Op *op, void *data)
{
    connect_op(data, op);
    note_access(op);
    return true;
}

/* ---- spreading ------------------------------------------------------------------ */

/* Returns the mask of dimensions that a broadcast repeats. */
static uint32_t repeated_dims(const Type *from, const Type *to)
{
    uint32_t dims = 0;
    for (unsigned d = 0; d < to->rank; d++)
        if (from->extents[d] != to->extents[d])
            dims |= UINT32_C(1) << d;
    return dims;
}

/* Returns the layout of a permute's other end. */
static const Layout *permuted(Graph *g, const Edge *edge, unsigned end)
{
    const Attr *dims = op_attr(edge->op, ATTR_DIMS);
    int64_t inverse[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d < dims->count; d++)
        inverse[dims->ints[d]] = d;
    return layout_permute(&g->m->layouts, edge->ends[end]->layout, dims->count,
                          end ? inverse : dims->ints, &why);
}

/* Returns the layout of a slice of the operand; NULL if its threads hold unequal parts. */
static const Layout *sliced(Graph *g, const Edge *edge)
{
    const Type *from = edge->ends[0]->value->type, *to = edge->ends[1]->value->type;
    const char *why;
    const Type *t = slice_type(g->m, type_reg(g->m, from->dtype, edge->ends[0]->layout),
                               op_attr(edge->op, ATTR_DIMS), from->dtype, to->rank,
                               to->extents, &why);
    return t ? t->layout : NULL;
}

/* Returns the layout of the groups of the codes; NULL if there is none. */
static const Layout *grouped(Graph *g, const Edge *edge)
{
    const Type *groups = edge->ends[1]->value->type;
    int64_t shape[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d < groups->rank; d++)
        shape[d] = type_extent(groups, d);
    return layout_group(&g->m->layouts, edge->ends[0]->layout, shape, &why);
}

/* Returns the layout of a reshape's other end; NULL with the reason. */
static const Layout *reshaped(Graph *g, const Edge *edge, unsigned end, const char **none)
{
    const Type *to = edge->ends[!end]->value->type;
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < to->rank; d++)
        shape[d] = type_extent(to, d);
    return layout_reshape(&g->m->layouts, edge->ends[end]->layout, to->rank, shape, none);
}

/* Returns the layout of the whole from its parts', or theirs from its; NULL with the
 * reason. */
static const Layout *joined(Graph *g, const Edge *edge, unsigned end, const char **none)
{
    const Op *op = edge->op;
    const Layout *l = edge->ends[end]->layout;
    unsigned dim = (unsigned)op_attr(op, ATTR_DIM)->integer;
    if (end)
        return join_part(g->m, op->code, l, op->operand_count, dim, none);
    DType dtype = edge->ends[0]->value->type->dtype;
    const Type *t = join_type(g->m, op->code, type_reg(g->m, dtype, l), op->operand_count, dim,
                              none);
    return t ? t->layout : NULL;
}

/* Returns the layout of the edge's other end that follows from `end`; NULL: several
 * layouts satisfy the edge, or none, for the reason `*none`. */
static const Layout *follows(Graph *g, const Edge *edge, unsigned end, const char **none)
{
    const Node *node = edge->ends[end], *other = edge->ends[!end];
    LayoutTable *t = &g->m->layouts;
    const char *why;
    *none = NULL;
    switch (edge->kind) {
    case EDGE_SAME:
        return node->layout;
    case EDGE_PERMUTE:
        return permuted(g, edge, end);
    case EDGE_SLICE:
        return end ? NULL : sliced(g, edge);
    case EDGE_REDUCE:
        return end ? NULL : layout_reduce(t, node->layout, reduce_dims(edge->op), &why);
    case EDGE_GROUP:
        return end ? NULL : grouped(g, edge);
    case EDGE_RESHAPE:
        return reshaped(g, edge, end, none);
    case EDGE_JOIN:
        return joined(g, edge, end, none);
    case EDGE_REPEAT:
        break;
    }
    return end ? layout_reduce(t, node->layout,
                               repeated_dims(other->value->type, node->value->type), &why)
               : NULL;
}

/* Returns true when the layouts that both ends have satisfy the edge. */
static bool agree(Graph *g, const Edge *edge)
{
    const Layout *first = edge->ends[0]->layout, *second = edge->ends[1]->layout;
    const char *none;
    int64_t thread;
    if (edge->kind == EDGE_REPEAT)
        return first->threads == second->threads && layout_broadcasts(first, second, &thread);
    if (edge->kind == EDGE_GROUP)
        return first->threads == second->threads && grouped(g, edge) &&
               layout_broadcasts(second, first, &thread);
    return follows(g, edge, 0, &none) == second;
}

static bool conflict(Graph *g, Conflict c)
{
    g->conflict = c;
    g->failed = true;
    return false;
}

static bool spread_over(Graph *g, const Edge *edge, unsigned end)
{
    Node *node = edge->ends[end], *other = edge->ends[!end];
    const char *none;
    if (other->layout)
        return agree(g, edge) ||
               conflict(g, (Conflict){.edge = edge, .node = other, .layout = other->layout,
                                      .by = other->root->by, .why = other->root->why});
    other->layout = follows(g, edge, end, &none);
    if (!other->layout)
        return !none || conflict(g, (Conflict){.edge = edge, .node = node, .why = none});
    other->root = node->root;
    other->from = node;
    arena_push(&g->m->scratch, g->spreading, g->spreading_count, g->spreading_capacity, other);
    return true;
}

static bool spread(Graph *g)
{
    while (g->spreading_count && !g->failed) {
        Node *node = g->spreading[--g->spreading_count];
        for (const Edge *edge = node->edges; edge && !g->failed;) {
            unsigned end = edge->ends[1] == node;
            spread_over(g, edge, end);
            edge = edge->next[end];
        }
    }
    return !g->failed;
}

/* Lays out the open neighbors that have the same layout; false at a known one that disagrees. */
static bool try_neighbors(Graph *g, Node *node, Node ***tried, uint32_t *count, uint32_t *capacity)
{
    bool fits = true;
    for (const Edge *edge = node->edges; fits && edge;
         edge = edge->next[edge->ends[1] == node]) {
        Node *other = edge->ends[edge->ends[0] == node];
        if (other->layout) {
            fits = agree(g, edge);
        } else if (edge->kind == EDGE_SAME) {
            other->layout = node->layout;
            arena_push(&g->m->scratch, *tried, *count, *capacity, other);
        }
    }
    return fits;
}

bool graph_fits(Graph *g, Node *node, const Layout *l)
{
    Node **tried = NULL;
    uint32_t count = 0, capacity = 0;
    bool fits = true;
    node->layout = l;
    arena_push(&g->m->scratch, tried, count, capacity, node);
    for (uint32_t i = 0; fits && i < count; i++)
        fits = try_neighbors(g, tried[i], &tried, &count, &capacity);
    for (uint32_t i = 0; i < count; i++)
        tried[i]->layout = NULL;
    return fits;
}

bool graph_choose(Graph *g, Node *node, const Layout *l, const Op *by, const char *why)
{
    if (node->layout)
        return node->layout == l ||
               conflict(g, (Conflict){.node = node, .layout = l, .by = by, .why = why});
    node->layout = l;
    node->root = node;
    node->by = by;
    node->why = why;
    arena_push(&g->m->scratch, g->spreading, g->spreading_count, g->spreading_capacity, node);
    return spread(g);
}

/* Sets all layouts that the text gives before any of them spreads, so that a remark
 * names the nearest. */
static bool spread_given(Graph *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        Node *node = g->nodes[i];
        if (type_is_open(node->value->type))
            continue;
        node->layout = node->value->type->layout;
        node->root = node;
        node->by = definition(node->value);
        node->why = "as written";
        node->given = true;
        arena_push(&g->m->scratch, g->spreading, g->spreading_count, g->spreading_capacity, node);
    }
    return spread(g);
}

bool graph_build(Graph *g, Program *p)
{
    *g = (Graph){.m = p->module, .p = p};
    region_walk(p->body, add_op_nodes, g);
    region_walk(p->body, connect_visited, g);
    return spread_given(g);
}

/* ---- words ------------------------------------------------------------------------ */

const char *graph_value_text(Module *m, const Value *v)
{
    return value_text(m, v);
}

const char *graph_layout_text(Module *m, const Layout *l)
{
    Text text;
    text_init(&text, &m->scratch);
    layout_print(&text, l);
    return text_string(&text);
}

/* Returns "load_global wants %x @ local(2).spatial(32) (16 bytes a lane, coalesced)" */
static const char *request_text(Module *m, const Op *by, const Value *v, const Layout *l,
                        const char *why)
{
    return arena_printf(&m->scratch, "%s wants %s @ %s (%s)", op_info[by->code].name,
                        graph_value_text(m, v), graph_layout_text(m, l), why);
}

static const char *root_request(Module *m, const Node *root)
{
    return request_text(m, root->by, root->value, root->layout, root->why);
}

/* Reports two requests for one value. */
static void report_apart(const Graph *g)
{
    const Conflict *c = &g->conflict;
    const Node *root = c->node->root;
    diag_error(g->m->diag, c->by->loc, "%s, but it is already @ %s: a `convert_layout` of it "
               "there serves both",
               request_text(g->m, c->by, c->node->value, c->layout, c->why),
               graph_layout_text(g->m, c->node->layout));
    diag_note(g->m->diag, root->by->loc, "%s", root_request(g->m, root));
}

/* Reports two requests that meet in a third op. */
static void report_meeting(const Graph *g)
{
    const Edge *edge = g->conflict.edge;
    const Node *a = edge->ends[0], *b = edge->ends[1];
    Module *m = g->m;
    const char *name = op_info[edge->op->code].name;
    if (edge->kind == EDGE_SAME)
        diag_error(m->diag, edge->op->loc, "%s needs one layout for %s and %s, which %s and "
                   "%s want to differ: `convert_layout` one of them", name, graph_value_text(m, a->value),
                   graph_value_text(m, b->value), op_info[a->root->by->code].name,
                   op_info[b->root->by->code].name);
    else
        diag_error(m->diag, edge->op->loc, "%s has no way from %s @ %s to %s @ %s: `convert_layout` "
                   "one of them", name,
                   graph_value_text(m, a->value), graph_layout_text(m, a->layout),
                   graph_value_text(m, b->value), graph_layout_text(m, b->layout));
    diag_note(m->diag, a->root->by->loc, "%s", root_request(m, a->root));
    diag_note(m->diag, b->root->by->loc, "%s", root_request(m, b->root));
}

/* Reports a layout for which the other end of an edge has none. */
static void report_none(const Graph *g)
{
    const Conflict *c = &g->conflict;
    const Node *root = c->node->root;
    Module *m = g->m;
    diag_error(m->diag, c->edge->op->loc, "%s has no layout for %s, as %s has %s: %s",
               op_info[c->edge->op->code].name,
               graph_value_text(m, c->edge->ends[c->edge->ends[0] == c->node]->value),
               graph_value_text(m, c->node->value), graph_layout_text(m, c->node->layout),
               c->why);
    diag_note(m->diag, root->by->loc, "%s", root_request(m, root));
}

void graph_report(const Graph *g)
{
    if (g->conflict.edge && !g->conflict.layout)
        report_none(g);
    else if (g->conflict.edge)
        report_meeting(g);
    else
        report_apart(g);
}
