/* The verifier's rules of launches that overlap. Whoever waits for a launch relies on all
 * of its blocks having waited for the launches before it, so none may end without. */
#include "ir/verify.h"

bool verify_launch_dependents(Module *m, const Op *op)
{
    (void)m, (void)op;
    return true;
}

static bool find_exit(Op *op, void *data)
{
    const Op **exit = data;
    if (op->code == OP_exit)
        *exit = op;
    return !*exit;
}

/* An `exit` between the last wait_dependencies and this one, or NULL: ops before the last
 * one have been looked at. */
static const Op *exit_before(const Op *op)
{
    const Op *exit = NULL;
    for (Op *at = op->prev; at && at->code != OP_wait_dependencies && !exit; at = at->prev) {
        bool goes_on = find_exit(at, &exit);
        for (unsigned i = 0; goes_on && i < at->region_count; i++)
            goes_on = region_walk(at->regions[i], find_exit, &exit);
    }
    return exit;
}

bool verify_wait_dependencies(Module *m, const Op *op)
{
    if (op->parent->parent)
        return diag_error(m->diag, op->loc, "wait_dependencies inside of a region: every "
                          "thread of every block waits");
    const Op *exit = exit_before(op);
    if (!exit)
        return true;
    diag_error(m->diag, op->loc, "wait_dependencies after an exit: every block waits, so "
               "those that end do it after this");
    return diag_note(m->diag, exit->loc, "a block may end here");
}
