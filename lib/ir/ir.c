/* Modules, attributes of ops, regions, and basic surgery. */
#include "ir/ir.h"

#include "support/register_share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- modules -------------------------------------------------------- */

Module *module_new(Diag *diag)
{
    Module *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->diag = diag;
    arena_init(&m->arena, &diag->oom);
    arena_init(&m->scratch, &diag->oom);
    expr_table_init(&m->exprs, &m->arena);
    layout_table_init(&m->layouts, &m->arena);
    intern_init(&m->types, &m->arena, type_equal);
    return m;
}

void module_free(Module *m)
{
    if (!m)
        return;
    arena_free(&m->scratch);
    arena_free(&m->arena);
    free(m);
}

Loc module_loc(const Module *m)
{
    return m->programs ? m->programs->loc : (Loc){0};
}

Program *module_find_program(const Module *m, const char *name)
{
    Program *p = m->programs;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

/* ---- ops ------------------------------------------------------------ */

const Attr *op_attr(const Op *op, AttrKind kind)
{
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind == kind)
            return &op->attrs[i];
    return NULL;
}

void op_set_attr(Module *m, Op *op, Attr attr)
{
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind == attr.kind) {
            op->attrs[i] = attr;
            return;
        }
    Attr *longer = arena_array(&m->arena, Attr, op->attr_count + 1);
    for (unsigned i = 0; i < op->attr_count; i++)
        longer[i] = op->attrs[i];
    longer[op->attr_count++] = attr;
    op->attrs = longer;
}

void op_remove_attr(Op *op, AttrKind kind)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind != kind)
            op->attrs[kept++] = op->attrs[i];
    op->attr_count = kept;
}

const Expr *op_expr(const Op *op, AttrKind kind)
{
    const Attr *a = op_attr(op, kind);
    return a ? a->expr : NULL;
}

Op *region_yield(const Region *r)
{
    return r->last && r->last->code == OP_yield ? r->last : NULL;
}

const Op *region_thread_group(const Region *r)
{
    const Op *op = r->parent;
    while (op && op->code != OP_thread_group)
        op = op->parent->parent;
    return op;
}

int64_t program_registers(const Program *p)
{
    enum { MOST = 256 };
    if (!p->min_blocks)
        return 0;
    int64_t share = register_share(p->min_blocks * p->warps);
    return share < MOST ? share : MOST;
}

/* A group counts from the first thread of the one around it. */
ThreadRange region_threads(const Region *r)
{
    const Op *group = region_thread_group(r);
    if (!group)
        return (ThreadRange){0, program_threads(r->program)};
    int64_t begin = op_expr(group, ATTR_BEGIN)->constant;
    for (const Op *outer = region_thread_group(group->parent); outer;
         outer = region_thread_group(outer->parent))
        begin += op_expr(outer, ATTR_BEGIN)->constant;
    return (ThreadRange){begin, op_expr(group, ATTR_THREADS)->constant};
}

unsigned region_depth(const Region *r)
{
    unsigned depth = 1;
    for (; r->parent; r = r->parent->parent)
        depth++;
    return depth;
}

static bool find_deepest(Op *op, void *data)
{
    unsigned depth = op->region_count ? region_depth(op->regions[0]) : 0;
    unsigned *most = data;
    *most = depth > *most ? depth : *most;
    return true;
}

unsigned op_depth(Op *op)
{
    unsigned most = region_depth(op->parent);
    find_deepest(op, &most);
    for (unsigned i = 0; i < op->region_count; i++)
        region_walk(op->regions[i], find_deepest, &most);
    return most;
}

bool region_walk(Region *r, bool (*visit)(Op *op, void *data), void *data)
{
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        if (!visit(op, data))
            return false;
        for (unsigned i = 0; op->parent && i < op->region_count; i++)
            if (!region_walk(op->regions[i], visit, data))
                return false;
    }
    return true;
}

static void clear_values(Value **values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = NULL;
}

static bool clear_op(Op *op, void *data)
{
    (void)data;
    op->mark = 0;
    clear_values(op->results, op->result_count);
    for (unsigned i = 0; i < op->region_count; i++)
        clear_values(op->regions[i]->args, op->regions[i]->arg_count);
    return true;
}

void program_clear_data(Program *p)
{
    clear_values(p->args, p->arg_count);
    region_walk(p->body, clear_op, NULL);
}

/* Makes walks that are at `op` go on after it. */
static void move_cursors(const Op *op)
{
    for (WalkCursor *c = op->parent->program->module->cursors; c; c = c->outer)
        if ((c->gone ? c->next : c->op) == op) {
            c->gone = true;
            c->next = op->next;
        }
}

void op_remove(Op *op)
{
    Region *r = op->parent;
    move_cursors(op);
    *(op->prev ? &op->prev->next : &r->first) = op->next;
    *(op->next ? &op->next->prev : &r->last) = op->prev;
    op->parent = NULL;
    op->prev = op->next = NULL;
}

void op_insert(Region *r, Op *op, Op *before)
{
    assert(!op->parent);
    op->parent = r;
    op->next = before;
    op->prev = before ? before->prev : r->last;
    *(op->prev ? &op->prev->next : &r->first) = op;
    *(before ? &before->prev : &r->last) = op;
}
