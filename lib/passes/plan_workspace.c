/* Writes the order of workspace tensors: zeroed ones first, then those of constant
 * size, so that the offsets of most are constants. Places that the text has are
 * kept in their order. Code generation takes the same order without the pass.
 *
 *   %a = allocate_global : f32[%m, %n]
 *   %s = allocate_global {zeroed = true} : i32[%m / 16]
 *     =>  %a = allocate_global {place = 1} : f32[%m, %n] global
 *         %s = allocate_global {zeroed = true, place = 0} : i32[%m / 16] global
 *
 * Remarks say where each lies, in bytes. No two share any: see
 * memory/workspace.h. */
#include "passes/pass.h"

#include "ir/text.h"
#include "memory/workspace.h"
#include "passes/report.h"

#define SAY(m, loc, name, ...) REMARK_AT((m)->remarks, (m)->diag, loc, name, __VA_ARGS__)

static bool write_places(Module *m, const Workspace *w)
{
    bool changed = false;
    for (unsigned i = 0; i < w->count; i++) {
        const Attr *place = op_attr(w->ops[i], ATTR_PLACE);
        if (place && place->integer == i)
            continue;
        op_set_attr(m, w->ops[i], (Attr){.kind = ATTR_PLACE, .integer = i});
        stat_add(m, STAT_plan_workspace_tensors, 1);
        changed = true;
    }
    return changed;
}

static const char *tensor_name(Module *m, const Op *op)
{
    const char *name = op->results[0]->name;
    return name ? arena_printf(&m->scratch, "%%%s", name) : "a tensor";
}

static void say(Module *m, const Program *p, const Workspace *w)
{
    for (unsigned i = 0; i < w->count; i++)
        SAY(m, w->ops[i]->loc, WorkspacePlaced, R(tensor_name(m, w->ops[i])),
            R(expr_text(m, w->offsets[i])), R(expr_text(m, w->offsets[i + 1])));
    if (w->count > 1)
        SAY(m, p->loc, WorkspaceNotShared, R(w->count));
    SAY(m, p->loc, WorkspacePlanned, R(expr_text(m, w->offsets[w->count])),
        R(expr_text(m, w->zeroed)));
}

PassResult pass_plan_workspace(Program *p)
{
    Module *m = p->module;
    ArenaMark mark = arena_mark(&m->scratch);
    Workspace w = workspace_of(p, &m->scratch);
    PassResult result = PASS_UNCHANGED;
    if (w.count && !workspace_place(m, &w, &m->scratch)) {
        result = PASS_FAILED;
    } else if (w.count) {
        if (remarks_wanted(m->remarks))
            say(m, p, &w);
        result = write_places(m, &w) ? PASS_CHANGED : PASS_UNCHANGED;
    }
    arena_reset(&m->scratch, mark);
    return result;
}
