/* Dead code elimination: marks backwards from ops with effects, then removes
 * the rest. Counting uses would miss cycles through a loop: a carried value
 * that only feeds itself is dead.
 *
 *   %1 = cast %0
 *   store_global %0, %g[0]    =>    store_global %0, %g[0]
 */
#include "ir/loop.h"
#include "passes/report.h"

/* Op.mark of a live op; Value.data of a live value points here. */
enum { LIVE = 1 };
static char live;

typedef struct Dce {
    Module *m;
    Value **work;           /* live values whose definitions wait to be marked */
    uint32_t work_count, work_capacity;
    PassResult result;
} Dce;

static bool mark_value(Value *v, void *data)
{
    Dce *dce = data;
    if (v->data != &live) {
        v->data = &live;
        arena_push(&dce->m->scratch, dce->work, dce->work_count, dce->work_capacity, v);
    }
    return true;
}

static void mark_type(Dce *dce, const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++) {
        expr_visit_values(t->extents[d], mark_value, dce);
        if (t->strides)
            expr_visit_values(t->strides[d], mark_value, dce);
    }
}

/* An op is needed: its operands (of loops and yield, only those asked for
 * one by one), its expressions, and the ops around it. */
static void mark_op(Dce *dce, Op *op)
{
    for (; op && op->mark != LIVE; op = op->parent->parent) {
        op->mark = LIVE;
        for (unsigned i = 0; op_info[op->code].effect != EFFECT_CONTROL && i < op->operand_count;
             i++)
            mark_value(op->operands[i], dce);
        for (unsigned i = 0; i < op->attr_count; i++) {
            const Attr *a = &op->attrs[i];
            if (a->expr)
                expr_visit_values(a->expr, mark_value, dce);
            for (unsigned j = 0; a->exprs && j < a->count; j++)
                expr_visit_values(a->exprs[j], mark_value, dce);
        }
        for (unsigned i = 0; i < op->result_count; i++)
            mark_type(dce, op->results[i]->type);
    }
}

/* The i-th carried value of `op` is needed, inside and after. */
static void mark_carried(Dce *dce, Op *op, unsigned i)
{
    mark_value(op->results[i], dce);
    if (op_is_loop(op)) {
        mark_value(op->operands[i], dce);
        mark_value(loop_carried(op, i), dce);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        mark_value(region_yield(op->regions[r])->operands[i], dce);
}

static void mark_definition(Dce *dce, const Value *v)
{
    if (v->region) {
        mark_op(dce, v->region->parent);
        if (loop_carried_number(v) >= 0)
            mark_carried(dce, v->region->parent, (unsigned)loop_carried_number(v));
    } else if (v->def) {
        mark_op(dce, v->def);
        if (v->def->region_count)
            mark_carried(dce, v->def, v->index);
    }
}

static bool mark_roots(Op *op, void *data)
{
    Effect effect = op_info[op->code].effect;
    if (effect == EFFECT_WRITES || effect == EFFECT_BARRIER || effect == EFFECT_EXITS)
        mark_op(data, op);
    return true;
}

static void drop_dead_carried(Dce *dce, Op *op)
{
    for (unsigned i = op->result_count; i-- > 0;)
        if (op->results[i]->data != &live) {
            op_drop_carried(op, i);
            stat_add(dce->m, STAT_dce_carried, 1);
            dce->result = PASS_CHANGED;
        }
}

/* An op that acts all the same is cheaper without its result. */
static void drop_dead_optional(Dce *dce, Op *op)
{
    if (!op->result_count || op->results[0]->data == &live)
        return;
    op->result_count = 0;
    stat_add(dce->m, STAT_dce_results, 1);
    dce->result = PASS_CHANGED;
}

static bool sweep(Op *op, void *data)
{
    Dce *dce = data;
    if (op->code == OP_yield)
        return true;
    if (op->mark != LIVE) {
        op_remove(op);
        stat_add(dce->m, STAT_dce_ops, 1);
        dce->result = PASS_CHANGED;
    } else if (op->region_count) {
        drop_dead_carried(dce, op);
    } else if (op_info[op->code].result == RESULT_OPTIONAL) {
        drop_dead_optional(dce, op);
    }
    return true;
}

PassResult pass_dce(Program *p)
{
    Dce dce = {.m = p->module, .result = PASS_UNCHANGED};
    ArenaMark mark = arena_mark(&p->module->scratch);
    region_walk(p->body, mark_roots, &dce);
    while (dce.work_count)
        mark_definition(&dce, dce.work[--dce.work_count]);
    region_walk(p->body, sweep, &dce);
    program_clear_data(p);
    arena_reset(&p->module->scratch, mark);
    return dce.result;
}
