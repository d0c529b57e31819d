/* Verifying, and messages of passes at ops. */
#include "api/ir_handles.h"

#include "ir/structure.h"
#include "passes/own.h"

static bool verify(Module *m)
{
    m->verified_edits = m->edits - 1;       /* to be looked at again */
    return verify_edited(m);
}

bool tilus_verify(tilus_module *module)
{
    bool ok = false;
    if (module)
        IR_CALL(module, ok, false, verify(module));
    return ok;
}

static bool add_error(Module *m, const Op *op, const char *text)
{
    return diag_error(m->diag, op->loc, "%s", text);
}

static bool add_note(Module *m, const Op *op, const char *text)
{
    return diag_note(m->diag, op->loc, "%s", text);
}

static bool add_remark(Module *m, const Op *op, tilus_remark_kind kind, const char *text)
{
    const Program *p = ir_op_program(op);
    if (!m->own_pass || !m->remarks)
        return false;
    m->remarks->program = p ? p->name : NULL;
    remark_emit_own(m->remarks, own_pass_name(m->own_pass), kind, m->diag, op->loc, text);
    return true;
}

void tilus_op_error(tilus_op *op, const char *text)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && text)
        IR_CALL(m, ok, false, add_error(m, op_of(op), text));
    (void)ok;
}

void tilus_op_note(tilus_op *op, const char *text)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && text && m->diag->count)
        IR_CALL(m, ok, false, add_note(m, op_of(op), text));
    (void)ok;
}

static void remark(tilus_op *op, tilus_remark_kind kind, const char *text)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && text)
        IR_CALL(m, ok, false, add_remark(m, op_of(op), kind, text));
    (void)ok;
}

void tilus_op_remark(tilus_op *op, const char *text) { remark(op, TILUS_REMARK_PASSED, text); }
void tilus_op_remark_missed(tilus_op *op, const char *text)
{
    remark(op, TILUS_REMARK_MISSED, text);
}
