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
