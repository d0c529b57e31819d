/* The constraint graph of layouts: a node is a register tensor of a program, an edge
 * an op that makes one layout depend on another. The pass infer-layouts chooses one
 * layout after another; each spreads along the edges at once, as far as nodes are open,
 * and fails with a conflict where a node has another layout.
 *
 *     %a ──same── %s ──same── %b          %s = add %a, %b
 *     %s ──reduce── %r                    %r = reduce %s      of %s follows %r
 *     %r ──repeat── %w                    %w = broadcast %r   of %w follows %r
 *     %s ──permute── %t                   %t = permute %s     each of the other
 *     %s ──slice── %u                     %u = slice %s[..]   of %s follows %u
 *     %i ──repeat── %x                    %x = load_global %v[%i, 0]  of %x follows %i
 *     %w ──group── %g                     dequantize %w, %g   of %w follows %g
 *     %s ──reshape── %v                   %v = reshape %s     each of the other
 *     %a ──join── %c                      %c = concat %a, %b  each of the other
 */
#ifndef TILUS_PASSES_LAYOUT_GRAPH_H
#define TILUS_PASSES_LAYOUT_GRAPH_H

#include "ir/ir.h"

typedef enum EdgeKind {
    EDGE_SAME, EDGE_REDUCE, EDGE_REPEAT, EDGE_PERMUTE, EDGE_SLICE, EDGE_GROUP,
    EDGE_RESHAPE, EDGE_JOIN
} EdgeKind;

typedef struct Node Node;

/* An op's constraint on two tensors: how its result's layout, of ends[1], depends on
 * its operand's, of ends[0]; of an EDGE_GROUP, that of scales or zero points on the
 * codes'. */
typedef struct Edge {
    EdgeKind kind;
    const Op *op;
    Node *ends[2];
    struct Edge *next[2];       /* of each end's node */
} Edge;

/* A register tensor. Value.data of `value` points here. */
struct Node {
    Value *value;
    unsigned number;            /* in program order */
    const Layout *layout;       /* NULL: not chosen yet */
    Node *root;                 /* whose choice it follows; itself, or NULL */
    Node *from;                 /* the neighbor that it was spread from, or NULL */
    const Op *by;               /* of a root: the op that requested the layout */
    const char *why;            /* of a root: in words */
    bool given;                 /* of a root: the text says it */
    Edge *edges;
    const Op *access;           /* the load, store or atomic op that should decide, or NULL */
    bool fitted;                /* the layout is that of the widest accesses of `access` */
    int weight;                 /* of `access`, for its choice; 0 without one */
};

/* Two ops' requests for different layouts of one value, or a layout of `node` for which the
 * other end of the edge has none. */
typedef struct Conflict {
    const Edge *edge;           /* between the two layouts; NULL: both are of `node` */
    const Node *node;           /* the subject of `by`'s request for `layout` */
    const Layout *layout;       /* NULL: the other end has none, `why` */
    const Op *by;
    const char *why;
} Conflict;

typedef struct Graph {
    Module *m;
    Program *p;
    Node **nodes;               /* in program order */
    uint32_t count, capacity;
    Node **spreading;           /* chosen, edges not followed yet */
    uint32_t spreading_count, spreading_capacity;
    Conflict conflict;          /* the first, when `failed` */
    bool failed;
} Graph;

/* Builds the graph of `p` on the module's scratch arena, and spreads what the text
 * gives. False after a conflict, as all functions below. */
bool graph_build(Graph *g, Program *p);

/* Chooses an open node's layout, which `by` requests for the reason `why`, and spreads
 * it. Fails at a node that has another layout already. */
bool graph_choose(Graph *g, Node *node, const Layout *l, const Op *by, const char *why);

/* Returns true when `l` for the open `node`, and for those that have its layout, agrees with all
 * neighbors whose layouts are known. */
bool graph_fits(Graph *g, Node *node, const Layout *l);

/* Returns the node of a value, or NULL of one that is no register tensor. */
Node *graph_node(const Value *v);

/* Returns true when the node's layout is in the text, or follows from one that is. */
bool node_is_given(const Node *node);

/* Returns true when a `view` keeps the shape, ignoring dimensions of extent 1, and the width
 * of elements, and so each element in its place. */
bool view_keeps_places(const Op *op);

/* Reports the conflict, with both ops. */
void graph_report(const Graph *g);

/* Returns "%x", of a value without a name "%?". */
const char *graph_value_text(Module *m, const Value *v);
const char *graph_layout_text(Module *m, const Layout *l);

#endif
