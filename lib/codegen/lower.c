/* Lowered values: kept on the IR's values while a program is lowered. */
#include "codegen/internal.h"

const Lowered *lowered(const Value *v)
{
    return v->data;
}

Lowered *lower_value(Codegen *cg, Value *v)
{
    Lowered *l = arena_new(&cg->module->scratch, Lowered);
    l->type = v->type;
    v->data = l;
    return l;
}

LLVMValueRef *lowered_words(const Value *v)
{
    return lowered(v)->words;
}

void lower_words(Codegen *cg, Value *v, LLVMValueRef *words)
{
    lower_value(cg, v)->words = words;
}

static void clear_all(Value **values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = NULL;
}

static bool clear_op(Op *op, void *data)
{
    (void)data;
    clear_all(op->results, op->result_count);
    for (unsigned i = 0; i < op->region_count; i++)
        clear_all(op->regions[i]->args, op->regions[i]->arg_count);
    return true;
}

void lowered_clear(Program *p)
{
    clear_all(p->args, p->arg_count);
    region_walk(p->body, clear_op, NULL);
}
