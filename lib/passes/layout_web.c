/* The web: which ops make layouts depend on each other, and how a choice spreads. */
#include "passes/layout_web.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"

/* ---- building ------------------------------------------------------------------ */

Cell *web_cell(const Value *v)
{
    return v->type->kind == TYPE_REG ? v->data : NULL;
}

bool cell_is_given(const Cell *c)
{
    return c->root && c->root->given;
}

/* The op that gives the value, or brings it into its region. */
static const Op *definition(const Value *v)
{
    return v->def ? v->def : v->region->parent;
}

static void add_cell(Web *w, Value *v)
{
    if (v->type->kind != TYPE_REG)
        return;
    Cell *c = arena_new(&w->m->scratch, Cell);
    *c = (Cell){.value = v, .number = w->count};
    v->data = c;
    arena_push(&w->m->scratch, w->cells, w->count, w->capacity, c);
}

static void add_link(Web *w, LinkKind kind, const Op *op, const Value *a, const Value *b)
{
    Cell *ends[2] = {web_cell(a), web_cell(b)};
    if (!ends[0] || !ends[1] || ends[0] == ends[1])
        return;
    Link *link = arena_new(&w->m->scratch, Link);
    *link = (Link){.kind = kind, .op = op, .ends = {ends[0], ends[1]},
                   .next = {ends[0]->links, ends[1]->links}};
    ends[0]->links = ends[1]->links = link;
}

/* Carried values: initial ones, those inside, those handed on, and results. */
static void link_carried(Web *w, const Op *op)
{
    for (unsigned r = 0; r < op->region_count; r++) {
        const Region *region = op->regions[r];
        const Op *yield = region_yield(region);
        unsigned first = region->arg_count - op->operand_count;     /* behind an index */
        for (unsigned i = 0; i < op->result_count; i++)
            add_link(w, LINK_SAME, yield, yield->operands[i], op->results[i]);
        for (unsigned i = 0; i < op->operand_count; i++)
            add_link(w, LINK_SAME, op, op->operands[i], region->args[first + i]);
    }
    for (unsigned i = 0; i < op->operand_count; i++)
        add_link(w, LINK_SAME, op, op->operands[i], op->results[i]);
}

/* All register tensors of an op that works element by element. */
static void link_elements(Web *w, const Op *op)
{
    const Value *first = op->operands[0];
    for (unsigned i = 1; i < op->operand_count; i++)
        add_link(w, LINK_SAME, op, first, op->operands[i]);
    for (unsigned i = 0; i < op->result_count; i++)
        add_link(w, LINK_SAME, op, first, op->results[i]);
}

bool view_keeps_places(const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    bool same = dtype_bits(from->dtype) == dtype_bits(to->dtype) &&
                from->packed == to->packed && from->rank == to->rank;
    for (unsigned d = 0; same && d < from->rank; d++)
        same = from->extents[d] == to->extents[d];
    return same;
}

/* Where the text gives both layouts they may differ: that is the view's meaning. */
static void link_view(Web *w, const Op *op)
{
    bool open = type_is_open(op->operands[0]->type) || type_is_open(op->results[0]->type);
    if (open && view_keeps_places(op))
        add_link(w, LINK_SAME, op, op->operands[0], op->results[0]);
}

/* The result has the codes' layout, scales and zero points one that it gives. */
static void link_dequantize(Web *w, const Op *op)
{
    add_link(w, LINK_SAME, op, op->operands[0], op->results[0]);
    for (unsigned i = 1; i < op->operand_count; i++)
        add_link(w, LINK_GROUP, op, op->operands[0], op->operands[i]);
}

static void link_op(Web *w, const Op *op)
{
    switch (op_info[op->code].rule) {
    case RULE_CARRIED:
        link_carried(w, op);
        break;
    case RULE_REDUCE:
        add_link(w, LINK_REDUCE, op, op->operands[0], op->results[0]);
        break;
    case RULE_PERMUTE:
        add_link(w, LINK_PERMUTE, op, op->operands[0], op->results[0]);
        break;
    case RULE_SLICE:
        add_link(w, LINK_SLICE, op, op->operands[0], op->results[0]);
        break;
    case RULE_ENTRY:    /* the table's layout is a matter of its own */
        add_link(w, LINK_SAME, op, op->operands[0], op->results[0]);
        break;
    case RULE_SAME:
    case RULE_ELEMENT:
    case RULE_BOOL:
    case RULE_LAST:
        if (op->code == OP_dot)
            add_link(w, LINK_SAME, op, op->operands[2], op->results[0]);
        else if (op->code == OP_dequantize)
            link_dequantize(w, op);
        else
            link_elements(w, op);
        break;
    default:
        if (op->code == OP_view)
            link_view(w, op);
        else if (op->code == OP_broadcast)
            add_link(w, LINK_REPEAT, op, op->operands[0], op->results[0]);
    }
}

static bool add_op_cells(Op *op, void *data)
{
    for (unsigned i = 0; i < op->result_count; i++)
        add_cell(data, op->results[i]);
    for (unsigned r = 0; r < op->region_count; r++)
        for (unsigned i = 0; i < op->regions[r]->arg_count; i++)
            add_cell(data, op->regions[r]->args[i]);
    return true;
}

/* How much an op that moves a tile should decide its layout. Atomic ops on pairs
 * of 16-bit elements cannot do otherwise; global memory gains the most. */
static int access_weight(const Op *op)
{
    bool atomic = op_info[op->code].attrs & op_attr_bit(ATTR_ORDER);
    if (atomic && dtype_bits(op_tile_type(op)->dtype) < 32)
        return 3;
    return op_memory_operand(op)->type->kind == TYPE_GLOBAL ? 2 : 1;
}

/* Notes which op should decide about a tile that it moves: of equals, the first. */
static void note_access(const Op *op)
{
    if (!(op_info[op->code].attrs & (op_attr_bit(ATTR_UNIT) | op_attr_bit(ATTR_ORDER))))
        return;
    Cell *c = web_cell(op->result_count ? op->results[0] : op->operands[0]);
    int weight = access_weight(op);
    if (weight <= c->weight)
        return;
    c->access = op;
    c->weight = weight;
}

static bool link_visited(Op *op, void *data)
{
    link_op(data, op);
    note_access(op);
    return true;
}

/* ---- spreading ------------------------------------------------------------------ */

/* Dimensions that a broadcast repeats. */
static uint32_t repeated_dims(const Type *from, const Type *to)
{
    uint32_t dims = 0;
    for (unsigned d = 0; d < to->rank; d++)
        if (from->extents[d] != to->extents[d])
            dims |= UINT32_C(1) << d;
    return dims;
}

/* The layout of a permute's other end. */
static const Layout *permuted(Web *w, const Link *link, unsigned end)
{
    const Attr *dims = op_attr(link->op, ATTR_DIMS);
    int64_t inverse[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d < dims->count; d++)
        inverse[dims->ints[d]] = d;
    return layout_permute(&w->m->layouts, link->ends[end]->layout, dims->count,
                          end ? inverse : dims->ints, &why);
}

/* The layout of a slice of the operand; NULL if its threads hold unequal parts. */
static const Layout *sliced(Web *w, const Link *link)
{
    const Type *from = link->ends[0]->value->type, *to = link->ends[1]->value->type;
    const char *why;
    const Type *t = slice_type(w->m, type_reg(w->m, from->dtype, link->ends[0]->layout),
                               op_attr(link->op, ATTR_DIMS), from->dtype, to->rank,
                               to->extents, &why);
    return t ? t->layout : NULL;
}

/* The layout of the groups of the codes; NULL if none does. */
static const Layout *grouped(Web *w, const Link *link)
{
    const Type *groups = link->ends[1]->value->type;
    int64_t shape[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d < groups->rank; d++)
        shape[d] = type_extent(groups, d);
    return layout_group(&w->m->layouts, link->ends[0]->layout, shape, &why);
}

/* The layout of the link's other end that follows from `end`; NULL: many may, or
 * none does. */
static const Layout *follows(Web *w, const Link *link, unsigned end)
{
    const Cell *c = link->ends[end], *other = link->ends[!end];
    LayoutTable *t = &w->m->layouts;
    const char *why;
    switch (link->kind) {
    case LINK_SAME:
        return c->layout;
    case LINK_PERMUTE:
        return permuted(w, link, end);
    case LINK_SLICE:
        return end ? NULL : sliced(w, link);
    case LINK_REDUCE:
        return end ? NULL : layout_reduce(t, c->layout, reduce_dims(link->op), &why);
    case LINK_GROUP:
        return end ? NULL : grouped(w, link);
    case LINK_REPEAT:
        break;
    }
    return end ? layout_reduce(t, c->layout, repeated_dims(other->value->type, c->value->type),
                               &why)
               : NULL;
}

/* Whether both ends, which have layouts, may have them. */
static bool agree(Web *w, const Link *link)
{
    const Layout *first = link->ends[0]->layout, *second = link->ends[1]->layout;
    int64_t thread;
    if (link->kind == LINK_REPEAT)
        return first->threads == second->threads && layout_broadcasts(first, second, &thread);
    if (link->kind == LINK_GROUP)
        return first->threads == second->threads && grouped(w, link) &&
               layout_broadcasts(second, first, &thread);
    return follows(w, link, 0) == second;
}

static bool conflict(Web *w, Conflict c)
{
    w->conflict = c;
    w->failed = true;
    return false;
}

static bool spread_over(Web *w, const Link *link, unsigned end)
{
    Cell *c = link->ends[end], *other = link->ends[!end];
    if (other->layout)
        return agree(w, link) ||
               conflict(w, (Conflict){.link = link, .cell = other, .layout = other->layout,
                                      .by = other->root->by, .why = other->root->why});
    other->layout = follows(w, link, end);
    if (!other->layout)
        return true;
    other->root = c->root;
    other->from = c;
    arena_push(&w->m->scratch, w->spreading, w->spreading_count, w->spreading_capacity, other);
    return true;
}

static bool spread(Web *w)
{
    while (w->spreading_count && !w->failed) {
        Cell *c = w->spreading[--w->spreading_count];
        for (const Link *link = c->links; link && !w->failed;) {
            unsigned end = link->ends[1] == c;
            spread_over(w, link, end);
            link = link->next[end];
        }
    }
    return !w->failed;
}

bool web_choose(Web *w, Cell *c, const Layout *l, const Op *by, const char *why)
{
    if (c->layout)
        return c->layout == l ||
               conflict(w, (Conflict){.cell = c, .layout = l, .by = by, .why = why});
    c->layout = l;
    c->root = c;
    c->by = by;
    c->why = why;
    arena_push(&w->m->scratch, w->spreading, w->spreading_count, w->spreading_capacity, c);
    return spread(w);
}

/* All that the text gives is known before any of it spreads, so that a remark
 * names the nearest. */
static bool spread_given(Web *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        Cell *c = w->cells[i];
        if (type_is_open(c->value->type))
            continue;
        c->layout = c->value->type->layout;
        c->root = c;
        c->by = definition(c->value);
        c->why = "as written";
        c->given = true;
        arena_push(&w->m->scratch, w->spreading, w->spreading_count, w->spreading_capacity, c);
    }
    return spread(w);
}

bool web_build(Web *w, Program *p)
{
    *w = (Web){.m = p->module, .p = p};
    region_walk(p->body, add_op_cells, w);
    region_walk(p->body, link_visited, w);
    return spread_given(w);
}

/* ---- words ------------------------------------------------------------------------ */

const char *web_value_text(Module *m, const Value *v)
{
    return arena_printf(&m->scratch, "%%%s", v->name ? v->name : "?");
}

const char *web_layout_text(Module *m, const Layout *l)
{
    Text text;
    text_init(&text, &m->scratch);
    layout_print(&text, l);
    return text_string(&text);
}

/* "load_global wants %x @ local(2).spatial(32) (16 bytes a lane, coalesced)" */
static const char *wish(Module *m, const Op *by, const Value *v, const Layout *l,
                        const char *why)
{
    return arena_printf(&m->scratch, "%s wants %s @ %s (%s)", op_info[by->code].name,
                        web_value_text(m, v), web_layout_text(m, l), why);
}

static const char *root_wish(Module *m, const Cell *root)
{
    return wish(m, root->by, root->value, root->layout, root->why);
}

/* Two wishes for one value. */
static void report_apart(const Web *w)
{
    const Conflict *c = &w->conflict;
    const Cell *root = c->cell->root;
    diag_error(w->m->diag, c->by->loc, "%s, but it is already @ %s",
               wish(w->m, c->by, c->cell->value, c->layout, c->why),
               web_layout_text(w->m, c->cell->layout));
    diag_note(w->m->diag, root->by->loc, "%s", root_wish(w->m, root));
}

/* Two wishes that meet in a third op. */
static void report_meeting(const Web *w)
{
    const Link *link = w->conflict.link;
    const Cell *a = link->ends[0], *b = link->ends[1];
    Module *m = w->m;
    const char *name = op_info[link->op->code].name;
    if (link->kind == LINK_SAME)
        diag_error(m->diag, link->op->loc, "%s needs one layout for %s and %s, which %s and "
                   "%s want to differ", name, web_value_text(m, a->value),
                   web_value_text(m, b->value), op_info[a->root->by->code].name,
                   op_info[b->root->by->code].name);
    else
        diag_error(m->diag, link->op->loc, "%s has no way from %s @ %s to %s @ %s", name,
                   web_value_text(m, a->value), web_layout_text(m, a->layout),
                   web_value_text(m, b->value), web_layout_text(m, b->layout));
    diag_note(m->diag, a->root->by->loc, "%s", root_wish(m, a->root));
    diag_note(m->diag, b->root->by->loc, "%s", root_wish(m, b->root));
}

void web_report(const Web *w)
{
    if (w->conflict.link)
        report_meeting(w);
    else
        report_apart(w);
}
