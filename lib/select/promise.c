/* Promises of loads, stores and asynchronous copies. */
#include "select/promise.h"

#include "select/copy.h"
#include "select/select.h"

static bool has_choice(const Op *op)
{
    return op_info[op->code].attrs & op_attr_bit(ATTR_CHECKED) && plan_is_written(op);
}

static bool has_width(Module *m, const Op *op)
{
    if (op->code != OP_copy_async)
        return select_has_units(m, op);
    const Attr *width = op_attr(op, ATTR_WIDTH);
    return !width || width->integer <= copy_plan(m, op).bytes;
}

static bool is_proved(Module *m, const Op *op)
{
    return !(select_needed_checks(op) & ~select_read_checked(op)) && has_width(m, op);
}

static bool op_holds(Op *op, void *data)
{
    return !has_choice(op) || is_proved(data, op);
}

bool promises_hold(Program *p)
{
    return region_walk(p->body, op_holds, p->module);
}

/* Chooses anew; checks that were there stay. */
static void choose_again(Module *m, Op *op, uint32_t checked)
{
    op_remove_attr(op, ATTR_VIA);
    op_remove_attr(op, ATTR_WIDTH);
    op_remove_attr(op, ATTR_UNIT);
    if (op->code == OP_copy_async) {
        CopyPlan plan = copy_plan(m, op);
        plan.checked |= checked;
        copy_write(m, op, &plan);
    } else {
        Access a = select_access(m, op, m->target_sm);
        a.checked |= checked;
        select_write(m, op, &a);
    }
}

static bool repair(Op *op, void *data)
{
    Module *m = data;
    if (!has_choice(op) || is_proved(m, op))
        return true;
    uint32_t checked = select_read_checked(op) | select_needed_checks(op);
    if (has_width(m, op))
        select_write_checked(m, op, checked);
    else
        choose_again(m, op, checked);
    return true;
}

void promises_repair(Program *p)
{
    region_walk(p->body, repair, p->module);
}
