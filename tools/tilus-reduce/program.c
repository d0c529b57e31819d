/* Reduction of a valid program: each edit at each place, large ones first. */
#include "reduce.h"

/* An edit, or NULL: `ops` ops are removed. */
typedef struct Step {
    Edit *edit;
    unsigned ops;
} Step;

/* The text of the best program after the step at `site`; `*there` says whether there is
 * such a place. NULL when it could not be made. */
static char *edited(const Reduction *r, Step s, unsigned site, bool *there)
{
    Module *m = text_parse(r->best);
    char *text = NULL;
    *there = false;
    if (!m)
        return NULL;
    /* Memory that runs out ends only this edit. */
    if (!setjmp(m->diag->oom.jump))
        *there = s.edit ? s.edit(m, site) : edit_drop_ops(m, site, s.ops);
    if (*there)
        text = tilus_print(m);
    text_release(m);
    return text;
}

/* Tries a step at each place. After a step is kept, the next place has the same number. */
static bool try_step(Reduction *r, Step s)
{
    bool any = false, there = true;
    for (unsigned site = 0; !r->stopped;) {
        char *text = edited(r, s, site, &there);
        if (!there)
            break;
        if (reduction_try(r, text))
            any = true;
        else
            site += s.edit ? 1 : s.ops;
    }
    return any;
}

/* Many ops at once, then single ones, then all else. */
bool reduce_program(Reduction *r)
{
    enum { MOST = 64 };
    static Edit *const edits[] = {edit_run_once, edit_take_branch, edit_forward,
                                  edit_drop_carried, edit_drop_argument, edit_zero_expression};
    bool any = false;
    for (unsigned chunk = MOST; chunk > 0; chunk /= 4)
        any |= try_step(r, (Step){NULL, chunk});
    for (unsigned i = 0; i < COUNT(edits); i++)
        any |= try_step(r, (Step){edits[i], 0});
    return any;
}
