/* Copies of ops with their regions. */
#include "passes/ops_copy.h"

#include "ir/builder.h"
#include "passes/pass.h"

static void copy_regions(Module *m, const Op *op, Op *copy, Program *p)
{
    for (unsigned i = 0; i < op->region_count; i++) {
        const Region *from = op->regions[i];
        Region *to = build_region(p, copy);
        build_op_region(m, copy, to);
        for (unsigned j = 0; j < from->arg_count; j++) {
            Value *v = from->args[j];
            value_forward(v, build_region_argument(to, v->name, v->loc, v->type));
        }
        ops_copy(m, from, to, NULL, true);
    }
}

/* The copies of a shared tensor need places of their own. */
static void drop_offset(Op *op)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind != ATTR_OFFSET)
            op->attrs[kept++] = op->attrs[i];
    op->attr_count = kept;
}

void op_copy(Module *m, const Op *op, Region *to, Op *before)
{
    diag_check_time(m->diag, op->loc);
    Op *copy = build_op(m, op->code, op->loc, op->operands, op->operand_count, op->attrs,
                        op->attr_count);
    copy->shifted = op->shifted;
    copy->fitted = op->fitted;
    drop_offset(copy);
    copy_regions(m, op, copy, to->program);
    for (unsigned i = 0; i < op->result_count; i++) {
        Value *v = op->results[i];
        build_result(m, copy, v->name, v->loc, v->type);
    }
    op_resolve(m, copy);
    for (unsigned i = 0; i < op->result_count; i++)
        value_forward(op->results[i], copy->results[i]);
    op_insert(to, copy, before);
}

void ops_copy(Module *m, const Region *from, Region *to, Op *before, bool yields)
{
    for (const Op *op = from->first; op; op = op->next)
        if (yields || op->next)
            op_copy(m, op, to, before);
}
