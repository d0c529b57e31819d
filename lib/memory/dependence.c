/* Accesses are listed by one walk of the body, then compared pair by pair; values
 * are followed from each use back to its definition. */
#include "memory/dependence.h"

#include "ir/loop.h"
#include "ir/op_access.h"

typedef struct Graph {
    LoopDependences d;
    Arena *arena;
    const Region *body;
    uint32_t op_capacity, access_capacity, edge_capacity;
    const Op *user;         /* whose uses are being followed */
    unsigned top;           /* the number of the op of the body around it */
} Graph;

/* ---- memory --------------------------------------------------------------- */

Value *memory_source(Value *v)
{
    while (v->def && v->def->operand_count)
        v = v->def->operands[0];
    return v;
}

bool accesses_conflict(const BodyAccess *a, const BodyAccess *b)
{
    bool a_shared = a->memory->type->kind == TYPE_SHARED;
    bool b_shared = b->memory->type->kind == TYPE_SHARED;
    return (a->writes || b->writes) && a_shared == b_shared &&
           (!a_shared || a->memory == b->memory);
}

static void add_accesses(Graph *g, const Op *op)
{
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++) {
        BodyAccess a = {op, g->top, memory_source(accesses[i].tile.memory),
                        accesses[i].mode != MODE_READ};
        arena_push(g->arena, g->d.accesses, g->d.access_count, g->access_capacity, a);
    }
}

static void add_edge(Graph *g, const BodyAccess *from, const BodyAccess *to, unsigned distance)
{
    DependenceKind kind = !from->writes  ? DEPENDENCE_WAR
                          : !to->writes ? DEPENDENCE_RAW
                                        : DEPENDENCE_WAW;
    Dependence e = {kind, from->op, to->op, from->top, to->top, from->memory, distance};
    arena_push(g->arena, g->d.edges, g->d.edge_count, g->edge_capacity, e);
}

/* The later op follows the earlier one in this iteration, and the earlier one of the
 * next iterations follows the later one. */
static void compare_accesses(Graph *g)
{
    for (uint32_t i = 0; i < g->d.access_count; i++)
        for (uint32_t j = i + 1; j < g->d.access_count; j++) {
            const BodyAccess *a = &g->d.accesses[i], *b = &g->d.accesses[j];
            if (a->top == b->top || !accesses_conflict(a, b))
                continue;
            add_edge(g, a, b, 0);
            add_edge(g, b, a, 1);
        }
}

/* ---- values ----------------------------------------------------------------- */

/* The op of the body that is `op` or holds it; NULL outside. */
static const Op *top_around(const Graph *g, const Op *op)
{
    while (op && op->parent != g->body)
        op = op->parent->parent;
    return op;
}

/* Returns the value that the iteration before gave a carried value; NULL for others. */
static Value *carried_source(const Graph *g, const Value *v)
{
    int i = v->region == g->body ? loop_carried_number(v) : -1;
    return i >= 0 ? region_yield(g->body)->operands[i] : NULL;
}

static bool follow_use(Value *v, void *data)
{
    Graph *g = data;
    Value *carried = carried_source(g, v), *source = carried ? carried : v;
    const Op *from = source->def, *top = top_around(g, from);
    if (carried && !top)    /* the yield hands on what no op of the body gives */
        from = top = region_yield(g->body);
    if (!top || (!carried && top->mark == g->top))
        return true;
    Dependence e = {DEPENDENCE_VALUE, from, g->user, top->mark, g->top, v,
                    carried != NULL};
    arena_push(g->arena, g->d.edges, g->d.edge_count, g->edge_capacity, e);
    return true;
}

static void follow_type(Graph *g, const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++) {
        expr_visit_values(t->extents[d], follow_use, g);
        if (t->strides)
            expr_visit_values(t->strides[d], follow_use, g);
    }
}

static void follow_uses(Graph *g, const Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        follow_use(op->operands[i], g);
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (a->expr)
            expr_visit_values(a->expr, follow_use, g);
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            expr_visit_values(a->exprs[j], follow_use, g);
    }
    for (unsigned i = 0; i < op->result_count; i++)
        follow_type(g, op->results[i]->type);
}

/* ---- the graph ---------------------------------------------------------------- */

static bool visit_nested(Op *op, void *data)
{
    Graph *g = data;
    g->user = op;
    add_accesses(g, op);
    follow_uses(g, op);
    return true;
}

static void visit_op(Graph *g, Op *op)
{
    g->top = op->mark;
    visit_nested(op, g);
    for (unsigned i = 0; i < op->region_count; i++)
        region_walk(op->regions[i], visit_nested, g);
}

LoopDependences loop_dependences(const Op *loop)
{
    Region *body = loop->regions[0];
    Graph g = {.arena = &body->program->module->scratch, .body = body};
    for (Op *op = body->first; op; op = op->next) {
        op->mark = g.d.op_count;
        arena_push(g.arena, g.d.ops, g.d.op_count, g.op_capacity, op);
    }
    for (unsigned i = 0; i < g.d.op_count; i++)
        visit_op(&g, g.d.ops[i]);
    compare_accesses(&g);
    return g.d;
}
