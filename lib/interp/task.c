/* Tasks: the block's, and one for each thread_group that it comes to. A group runs as far
 * as it can, and the task around it goes on then with what the group's threads need not
 * do too: other groups, control and pure ops. A task that waits at an mbarrier is tried
 * again when the others have gone on; when nobody can, they wait for each other.
 *
 *     block   thread_group A   thread_group B   ........   synchronize
 *     A       ..wait           ........          ...end    |
 *     B                        ..arrive .........wait      end
 */
#include "interp/state.h"

#include "ir/loop.h"
#include "ir/op_access.h"

/* ---- frames ------------------------------------------------------------------ */

Frame *task_enter(Interp *in, const Region *r)
{
    Task *t = in->task;
    Frame *f = in->free_frames;
    if (f)
        in->free_frames = f->outer;
    else
        f = arena_new(in->arena, Frame);
    *f = (Frame){.region = r, .next = r->first, .outer = t->top};
    t->top = f;
    t->depth++;
    return f;
}

void task_repeat(Interp *in)
{
    Frame *f = in->task->top;
    f->next = f->region->first;
}

/* Groups that still run count as begun in the region around. */
void task_leave(Interp *in)
{
    Task *t = in->task;
    Frame *f = t->top;
    t->top = f->outer;
    t->depth--;
    f->outer = in->free_frames;
    in->free_frames = f;
    for (Task *group = in->tasks; group; group = group->next)
        if (group->around == t && group->around_depth > t->depth)
            group->around_depth = t->depth;
}

/* ---- who must wait ------------------------------------------------------------- */

/* Returns true when all threads of the task run `op`, its groups' threads last. To name memory
 * takes none. */
static bool needs_all(const Op *op)
{
    Effect effect = op_info[op->code].effect;
    return effect != EFFECT_PURE && effect != EFFECT_CONTROL && op->code != OP_assert &&
           op->code != OP_assume && op->code != OP_allocate_global &&
           op->code != OP_allocate_shared;
}

static bool share_threads(ThreadRange a, ThreadRange b)
{
    return a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

/* Returns true when `op` of the task `t`, NULL for the end of its innermost region, must
 * follow `group`, which runs. A loop's next iteration redefines values that `group` uses. */
static bool must_follow(const Task *t, const Op *op, const Task *group)
{
    if (!op && t->top->region->parent && t->top->region->parent->code == OP_if)
        return false;
    if (!op)
        return group->around_depth >= t->depth;
    return op->code == OP_thread_group
               ? share_threads(group->threads, region_threads(op->regions[0]))
               : needs_all(op);
}

static bool must_wait(const Interp *in, const Task *t, const Op *op)
{
    for (const Task *group = in->tasks; group; group = group->next)
        if (group->around == t && group->top && must_follow(t, op, group))
            return true;
    return false;
}

/* ---- running ------------------------------------------------------------------- */

/* The innermost region of the running task has ended. */
static bool end_region(Interp *in)
{
    const Op *around = in->task->top->region->parent;
    if (around && op_is_loop(around))
        return loop_next(in, around);
    task_leave(in);
    return true;
}

/* Runs the task as far as it can. */
static bool run_task(Interp *in, Task *t)
{
    if (in->rank != t->rank)
        interp_turn_to(in, t->rank);
    in->task = t;
    in->threads = t->threads;
    while (t->top) {
        Frame *f = t->top;
        const Op *op = f->next;
        if (must_wait(in, t, op))
            return true;
        if (op)
            f->next = op->next;
        if (op && !t->waits)
            profile_op(in, op);
        in->blocked = false;
        if (!(op ? interp_op(in, op) : end_region(in)))
            return false;
        t->waits = in->blocked;
        if (in->blocked) {
            f->next = op;
            return true;
        }
        in->steps++;
        while (in->exited && t->top)
            task_leave(in);
    }
    in->exited = false;
    return true;
}

static Task *add_task(Interp *in, ThreadRange threads)
{
    Task *t = in->free_tasks, **end = &in->tasks;
    if (t)
        in->free_tasks = t->next;
    else
        t = arena_new(in->arena, Task);
    while (*end)
        end = &(*end)->next;
    *t = (Task){.threads = threads, .rank = in->rank};
    return *end = t;
}

/* Removes ended tasks from the list. */
static void drop_ended(Interp *in)
{
    for (Task **at = &in->tasks; *at;) {
        Task *t = *at;
        if (t->top) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->next = in->free_tasks;
        in->free_tasks = t;
    }
}

bool task_begin(Interp *in, const Op *group)
{
    Task *around = in->task;
    Task *t = add_task(in, region_threads(group->regions[0]));
    t->around = around;
    t->around_depth = around->depth;
    in->task = t;
    task_enter(in, group->regions[0]);
    bool ok = run_task(in, t);
    in->task = around;
    in->threads = around->threads;
    in->blocked = false;
    return ok;
}

static const char *threads_text(Interp *in, ThreadRange threads)
{
    return arena_printf(in->arena, "threads %lld..%lld", (long long)threads.begin,
                        (long long)(threads.begin + threads.count - 1));
}

/* Returns true when the task `t` has come to `op`, its next one, which waits for others. */
static bool is_waiting(const Task *t, const Op *op)
{
    return op_syncs(op, SYNC_WAIT, COMPLETION_MBARRIER) || t->waits;
}

static const char *meeting_text(Interp *in, const Meeting *m, const char *whose)
{
    return arena_printf(in->arena, "waits for %u of the %s's %u blocks", in->blocks - m->meeting,
                        whose, in->blocks);
}

static const char *waits_text(Interp *in, const Op *op)
{
    switch (op_sync(op)) {
    case SYNC_WAIT: return mbarrier_wait_text(in, op);
    case SYNC_ACQUIRE: return lock_wait_text(in, op);
    case SYNC_GRID: return meeting_text(in, grid_meeting(in, op), "grid");
    default: return meeting_text(in, in->meeting, "cluster");
    }
}

/* Nobody can go on. Of many tasks the first ones tell enough. */
static bool report_deadlock(Interp *in)
{
    enum { NOTES_MOST = 16 };
    unsigned told = 0;
    for (const Task *t = in->tasks; t && told <= NOTES_MOST; t = t->next) {
        const Op *op = t->top ? t->top->next : NULL;
        if (!op || !is_waiting(t, op))
            continue;
        interp_turn_to(in, t->rank);
        in->threads = t->threads;
        const char *what = waits_text(in, op), *name = interp_running_name(in);
        if (!told++)
            diag_error(in->diag, op->loc, "nothing can go on in %s: this %s of %s %s", name,
                       op_info[op->code].name, threads_text(in, t->threads), what);
        else if (in->blocks > 1)
            diag_note(in->diag, op->loc, "this %s of %s of %s %s", op_info[op->code].name,
                      threads_text(in, t->threads), name, what);
        else
            diag_note(in->diag, op->loc, "this one of %s %s", threads_text(in, t->threads),
                      what);
    }
    return false;
}

bool task_run_cluster(Interp *in)
{
    uint64_t before = 0;
    in->tasks = NULL;
    in->steps = 1;
    for (unsigned rank = 0; rank < in->blocks; rank++) {
        interp_turn_to(in, rank);
        in->task = add_task(in, (ThreadRange){0, program_threads(in->program)});
        task_enter(in, in->program->body);
    }
    while (in->tasks && in->steps != before) {
        before = in->steps;
        for (Task *t = in->tasks; t; t = t->next)
            if (!run_task(in, t))
                return false;
        drop_ended(in);
    }
    return !in->tasks || report_deadlock(in);
}
