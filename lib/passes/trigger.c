/* Passes that fail, for tests of what tools do then; --list-passes does not
 * show them. */
#include "ir/builder.h"
#include "passes/pass.h"

PassResult pass_trigger_failure(Program *p)
{
    diag_error(p->module->diag, p->loc, "trigger_failure refuses every program");
    return PASS_FAILED;
}

/* Ends the body with a yield, which only a region of an op may have. */
PassResult pass_trigger_invalid(Program *p)
{
    op_insert(p->body, build_op(p->module, OP_yield, p->loc, NULL, 0, NULL, 0), NULL);
    return PASS_CHANGED;
}
