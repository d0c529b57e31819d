/* Control: the grid, loops, conditions, barriers. A region's yield assigns to
 * the results of the op around it; a loop's next iteration takes them up. */
#include "interp/state.h"

#include "ir/loop.h"
#include "ir/op_attrs.h"
#include "ir/text.h"

#include <string.h>

bool interp_block_indices(Interp *in, const Op *op)
{
    for (unsigned d = 0; d < op->result_count; d++)
        value_binding(op->results[d])->integer = in->block[d];
    return true;
}

bool interp_cluster_rank(Interp *in, const Op *op)
{
    value_binding(op->results[0])->integer = in->rank;
    return true;
}

bool interp_scalar(Interp *in, const Op *op)
{
    DType t = op->results[0]->type->dtype;
    int64_t *value = &value_binding(op->results[0])->integer, least, most;
    if (!interp_evaluate(in, op, op_expr(op, ATTR_VALUE), value))
        return false;
    if (dtype_integer_range(t, &least, &most) && *value >= least && *value <= most)
        return true;
    return diag_error(in->diag, op->loc, "scalar gives %lld, which %s does not hold",
                      (long long)*value, dtype_name(t));
}

/* Threads run together, so none waits: accesses before are ordered. */
bool interp_synchronize(Interp *in, const Op *op)
{
    (void)op;
    race_barrier(in);
    return true;
}

bool interp_cluster_synchronize(Interp *in, const Op *op)
{
    (void)op;
    interp_meet(in, in->meeting);
    return true;
}

Meeting *grid_meeting(Interp *in, const Op *op)
{
    Binding *state = value_binding(grid_state(op->operands[0]));
    if (!state->meeting)
        state->meeting = meeting_new(in);
    return state->meeting;
}

/* Returns the state's bytes, NULL after an error. */
static unsigned char *grid_state_bytes(Interp *in, const Op *op)
{
    const View *state = &value_binding(op->operands[0])->view;
    if (state->memory->size >= (int64_t)sizeof(uint32_t))
        return state->memory->data;
    diag_error(in->diag, op->loc, "the state of %s, %s, has %lld bytes", op_info[op->code].name,
               state->name, (long long)state->memory->size);
    return NULL;
}

/* Blocks that come to different states do not meet, as in compiled code; nor does the state tell
 * another value than there. The last block to come changes it. */
bool interp_grid_synchronize(Interp *in, const Op *op)
{
    enum { LAST_BYTE = 3, TOP_BIT = 0x80 };
    unsigned char *state = grid_state_bytes(in, op);
    if (!state)
        return false;
    Meeting *m = grid_meeting(in, op);
    uint64_t met = m->met;
    interp_meet(in, m);
    if (m->met != met)
        state[LAST_BYTE] ^= TOP_BIT;
    return true;
}

/* Nobody waits. Blocks count all their paces, and the last one begins again at 0. */
bool interp_grid_pace(Interp *in, const Op *op)
{
    int64_t number, paces, blocks = in->grid[0] * in->grid[1] * in->grid[2];
    unsigned char *state = grid_state_bytes(in, op);
    uint32_t count;
    if (!state || !interp_evaluate(in, op, op_expr(op, ATTR_STATE), &number) ||
        !interp_evaluate(in, op, op_expr(op, ATTR_PACES), &paces))
        return false;
    if (number < 0 || number >= paces || paces > UINT32_MAX / blocks)
        return diag_error(in->diag, op->loc, "grid_pace %lld of %lld by each of %lld blocks: they count "
                          "from 0, to 2^32 - 1 in all", (long long)number, (long long)paces,
                          (long long)blocks);
    memcpy(&count, state, sizeof count);
    count = count + 1 == (uint32_t)(paces * blocks) ? 0 : count + 1;
    memcpy(state, &count, sizeof count);
    return true;
}

/* Threads have what registers they need here. */
bool interp_setmaxnreg(Interp *in, const Op *op)
{
    (void)in, (void)op;
    return true;
}

/* Launches run one after the other here. */
bool interp_launch_dependents(Interp *in, const Op *op)
{
    (void)in, (void)op;
    return true;
}

bool interp_wait_dependencies(Interp *in, const Op *op)
{
    (void)in, (void)op;
    return true;
}

/* A group runs before what follows, as far as it can: accesses are in no order for
 * races, so no other order gives another result. */
bool interp_thread_group(Interp *in, const Op *op)
{
    return task_begin(in, op);
}

/* An assertion names its message, if it has one, and its condition. */
static bool check_condition(Interp *in, const Op *op, const char *what)
{
    const Expr *cond = op_expr(op, ATTR_COND);
    const Attr *message = op_attr(op, ATTR_MESSAGE);
    int64_t holds;
    if (!interp_evaluate(in, op, cond, &holds))
        return false;
    if (holds)
        return true;
    return diag_error(in->diag, op->loc, "%s does not hold in %s: %s%s%s", what,
                      interp_running_name(in), message ? message->text : "",
                      message ? ": " : "", expr_text(op->parent->program->module, cond));
}

bool interp_assert(Interp *in, const Op *op)
{
    return check_condition(in, op, "an assertion");
}

bool interp_assume(Interp *in, const Op *op)
{
    return check_condition(in, op, "an assumption");
}

bool interp_exit(Interp *in, const Op *op)
{
    (void)op;
    in->exited = true;
    return true;
}

bool interp_yield(Interp *in, const Op *op)
{
    (void)in;
    const Op *around = op->parent->parent;
    for (unsigned i = 0; i < op->operand_count; i++)
        value_assign(around->results[i], op->operands[i]);
    return true;
}

bool interp_if(Interp *in, const Op *op)
{
    int64_t condition;
    if (!interp_evaluate(in, op, op_expr(op, ATTR_COND), &condition))
        return false;
    task_enter(in, op->regions[condition ? 0 : 1]);
    return true;
}

static bool loop_bounds(Interp *in, const Op *op, int64_t *lower, int64_t *upper,
                        int64_t *step)
{
    const Expr *by = op_expr(op, ATTR_STEP);
    *step = 1;
    if (!interp_evaluate(in, op, op_expr(op, ATTR_LOWER), lower) ||
        !interp_evaluate(in, op, op_expr(op, ATTR_UPPER), upper) ||
        (by && !interp_evaluate(in, op, by, step)))
        return false;
    if (*step > 0)
        return true;
    return diag_error(in->diag, op->loc, "the step of a loop is %lld, not positive",
                      (long long)*step);
}

/* Carries the last iteration's values, or the initial ones, into the next one. */
static void carry(const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++)
        value_assign(loop_carried(op, i), op->results[i]);
}

bool interp_for(Interp *in, const Op *op)
{
    int64_t index, upper, step;
    if (!loop_bounds(in, op, &index, &upper, &step))
        return false;
    for (unsigned i = 0; i < op->result_count; i++)
        value_assign(op->results[i], op->operands[i]);
    if (index >= upper)
        return true;
    Frame *f = task_enter(in, op->regions[0]);
    f->upper = upper;
    f->step = step;
    value_binding(for_index(op))->integer = index;
    carry(op);
    return true;
}

static void for_next(Interp *in, const Op *op)
{
    const Frame *f = in->task->top;
    int64_t *index = &value_binding(for_index(op))->integer;
    if (__builtin_add_overflow(*index, f->step, index) || *index >= f->upper) {
        task_leave(in);
        return;
    }
    carry(op);
    task_repeat(in);
}

/* Carries values in, then evaluates the condition. */
static bool while_holds(Interp *in, const Op *op, int64_t *condition)
{
    carry(op);
    return interp_evaluate(in, op, op_expr(op, ATTR_COND), condition);
}

bool interp_while(Interp *in, const Op *op)
{
    int64_t condition;
    for (unsigned i = 0; i < op->result_count; i++)
        value_assign(op->results[i], op->operands[i]);
    if (!while_holds(in, op, &condition))
        return false;
    if (condition)
        task_enter(in, op->regions[0]);
    return true;
}

static bool while_next(Interp *in, const Op *op)
{
    int64_t condition;
    if (!while_holds(in, op, &condition))
        return false;
    if (condition)
        task_repeat(in);
    else
        task_leave(in);
    return true;
}

bool loop_next(Interp *in, const Op *op)
{
    if (op->code == OP_while)
        return while_next(in, op);
    for_next(in, op);
    return true;
}
