/* A program's register tensors and how their layouts depend on each other. The
 * pass infer-layouts chooses one layout after another; each spreads from neighbour
 * to neighbour at once, until it meets its kind or a conflict.
 *
 *     %a ──same── %s ──same── %b          %s = add %a, %b
 *     %s ──reduce── %r                    %r = reduce %s      of %s follows %r
 *     %r ──repeat── %w                    %w = broadcast %r   of %w follows %r
 *     %s ──permute── %t                   %t = permute %s     each of the other
 *     %s ──slice── %u                     %u = slice %s[..]   of %s follows %u
 *     %w ──group── %g                     dequantize %w, %g   of %w follows %g
 */
#ifndef TILUS_PASSES_LAYOUT_WEB_H
#define TILUS_PASSES_LAYOUT_WEB_H

#include "ir/ir.h"

typedef enum LinkKind {
    LINK_SAME, LINK_REDUCE, LINK_REPEAT, LINK_PERMUTE, LINK_SLICE, LINK_GROUP
} LinkKind;

typedef struct Cell Cell;

/* What an op says of two tensors: how its result's layout, of ends[1], depends on
 * its operand's, of ends[0]; of a LINK_GROUP, that of scales or zero points on the
 * codes'. */
typedef struct Link {
    LinkKind kind;
    const Op *op;
    Cell *ends[2];
    struct Link *next[2];       /* of each end's cell */
} Link;

/* A register tensor. Value.data of `value` points here. */
struct Cell {
    Value *value;
    unsigned number;            /* in program order */
    const Layout *layout;       /* NULL: not chosen yet */
    Cell *root;                 /* whose choice it follows; itself, or NULL */
    Cell *from;                 /* the neighbour that it was spread from, or NULL */
    const Op *by;               /* of a root: the op that wanted the layout */
    const char *why;            /* of a root: in words */
    bool given;                 /* of a root: the text says it */
    Link *links;
    const Op *access;           /* the load, store or atomic op that should decide, or NULL */
    int weight;                 /* of `access`: how much it should, 0 without one */
};

/* Two ops that want different layouts of one value. */
typedef struct Conflict {
    const Link *link;           /* where they meet, or NULL: at `cell` itself */
    const Cell *cell;           /* what the wish `layout` of op `by` is for */
    const Layout *layout;
    const Op *by;
    const char *why;
} Conflict;

typedef struct Web {
    Module *m;
    Program *p;
    Cell **cells;               /* in program order */
    uint32_t count, capacity;
    Cell **spreading;           /* chosen, neighbours not told yet */
    uint32_t spreading_count, spreading_capacity;
    Conflict conflict;          /* the first, when `failed` */
    bool failed;
} Web;

/* Builds the web of `p` on the module's scratch arena, and spreads what the text
 * gives. False after a conflict, as all functions below. */
bool web_build(Web *w, Program *p);

/* Chooses an open cell's layout, which `by` wants for the reason `why`, and
 * spreads it. Of a cell that has one already, the wish must be the same. */
bool web_choose(Web *w, Cell *c, const Layout *l, const Op *by, const char *why);

/* The cell of a value, or NULL of one that is no register tensor. */
Cell *web_cell(const Value *v);

/* Whether the cell's layout is in the text, or follows from such. */
bool cell_is_given(const Cell *c);

/* Whether a `view` keeps the shape and the width of elements, and so each element
 * in its place. */
bool view_keeps_places(const Op *op);

/* Reports the conflict, with both ops. */
void web_report(const Web *w);

/* "%x", of a value without a name "?". */
const char *web_value_text(Module *m, const Value *v);
const char *web_layout_text(Module *m, const Layout *l);

#endif
