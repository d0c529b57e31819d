/* Common subexpressions: of two pure ops with equal operands, attributes and
 * type, where the first is visible from the second, the second goes.
 *
 *   %a = cast %x : f16              %a = cast %x : f16
 *   %b = cast %x : f16        =>    %c = add %a, %a
 *   %c = add %a, %b
 */
#include "passes/report.h"

#include <string.h>

/* Found through the set: the last op of its kind. */
typedef struct Known {
    Op *op;
} Known;

typedef struct Cse {
    Module *m;
    InternSet ops;
    PassResult result;
} Cse;

static bool attr_equal(const Attr *a, const Attr *b)
{
    if (a->kind != b->kind || a->count != b->count || a->expr != b->expr ||
        a->integer != b->integer || a->word != b->word)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if ((a->exprs && a->exprs[i] != b->exprs[i]) || (a->ints && a->ints[i] != b->ints[i]))
            return false;
    if (a->text && strcmp(a->text, b->text) != 0)
        return false;
    return constant_equal(a->number, b->number);
}

static bool op_equal(const void *x, const void *y)
{
    const Op *a = ((const Known *)x)->op, *b = ((const Known *)y)->op;
    if (a->code != b->code || a->operand_count != b->operand_count ||
        a->attr_count != b->attr_count || a->result_count != b->result_count)
        return false;
    for (unsigned i = 0; i < a->operand_count; i++)
        if (a->operands[i] != b->operands[i])
            return false;
    for (unsigned i = 0; i < a->result_count; i++)
        if (a->results[i]->type != b->results[i]->type)
            return false;
    for (unsigned i = 0; i < a->attr_count; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

static uint64_t op_hash(const Op *op)
{
    uint64_t hash = hash_u64(op->code, op->operand_count);
    for (unsigned i = 0; i < op->operand_count; i++)
        hash = hash_u64(hash, (uint64_t)(uintptr_t)op->operands[i]);
    for (unsigned i = 0; i < op->result_count; i++)
        hash = hash_u64(hash, (uint64_t)(uintptr_t)op->results[i]->type);
    for (unsigned i = 0; i < op->attr_count; i++)
        hash = hash_u64(hash, op->attrs[i].expr ? op->attrs[i].expr->hash : 0);
    return hash;
}

/* Returns true when `outer` is `inner` or a region around it. */
static bool encloses(const Region *outer, const Region *inner)
{
    while (inner && inner != outer)
        inner = inner->parent ? inner->parent->parent : NULL;
    return inner == outer;
}

static bool visit(Op *op, void *data)
{
    Cse *cse = data;
    op_resolve(cse->m, op);
    if (op_info[op->code].effect != EFFECT_PURE)
        return true;
    Known key = {op};
    uint64_t hash = op_hash(op);
    Known *known = (Known *)intern_find(&cse->ops, hash, &key);
    if (!known) {
        intern_add(&cse->ops, hash, arena_copy(&cse->m->scratch, &key, sizeof key));
    } else if (!encloses(known->op->parent, op->parent)) {
        known->op = op;
    } else {
        for (unsigned i = 0; i < op->result_count; i++)
            value_forward(op->results[i], known->op->results[i]);
        op_remove(op);
        stat_add(cse->m, STAT_cse_merged, 1);
        cse->result = PASS_CHANGED;
    }
    return true;
}

PassResult pass_cse(Program *p)
{
    Cse cse = {.m = p->module, .result = PASS_UNCHANGED};
    ArenaMark mark = arena_mark(&p->module->scratch);
    intern_init(&cse.ops, &p->module->scratch, op_equal);
    region_walk(p->body, visit, &cse);
    program_clear_data(p);
    arena_reset(&p->module->scratch, mark);
    return cse.result;
}
