/* Which module, and which program, a handle belongs to. */
#include "api/ir_handles.h"

#include "syntax/syntax.h"

Program *ir_region_program(const Region *r)
{
    while (r && r->parent)
        r = r->parent->parent;
    return r && r == r->program->body ? r->program : NULL;
}

Program *ir_op_program(const Op *op)
{
    return op ? ir_region_program(op->parent) : NULL;
}

Program *ir_value_program(const Value *v)
{
    if (!v)
        return NULL;
    return v->program ? v->program : v->def ? ir_op_program(v->def) : ir_region_program(v->region);
}

Module *ir_op_module(const Op *op)
{
    return op && op->parent ? op->parent->program->module : NULL;
}

/* Compares pointers only: `item` may be anything. */
static bool set_has(const InternSet *set, const void *item)
{
    for (uint32_t i = 0; item && i < set->capacity; i++)
        if (set->slots[i].item == item)
            return true;
    return false;
}

bool ir_has_type(const Module *m, const Type *t) { return set_has(&m->types, t); }
bool ir_has_layout(const Module *m, const Layout *l) { return set_has(&m->layouts.set, l); }

static bool check_leaf(Value *v, void *module)
{
    const Program *p = ir_value_program(v);
    return p && p->module == module;
}

bool ir_check_exprs(Module *m, Loc loc, const char *what, const Expr *const *exprs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!exprs[i] || intern_find(&m->exprs.set, exprs[i]->hash, exprs[i]) != exprs[i])
            return diag_error(m->diag, loc, "%s: expression %zu is not of this module", what, i);
        if (!expr_visit_values(exprs[i], check_leaf, m))
            return diag_error(m->diag, loc, "%s: expression %zu has a value that was erased",
                              what, i);
    }
    return true;
}

void ir_abandon(Module *m)
{
    print_forget_names(m);
    for (Program *p = m->programs; p; p = p->next)
        program_clear_data(p);
    arena_reset(&m->scratch, (ArenaMark){0});
}
