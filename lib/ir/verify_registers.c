/* The verifier's rules of setmaxnreg. By the PTX ISA a warpgroup runs it as one, knows whether
 * it takes or gives, and synchronizes before the next one: so no loop and no branch is around
 * it, and the text shows the registers of each warpgroup. Registers that one gives up, others of
 * the block may take; a warpgroup that asks for more than come free would wait forever. */
#include "ir/verify.h"

enum { LEAST = 24, MOST = 256, STEP = 8 };

static int64_t wanted_registers(const Op *op)
{
    return op_expr(op, ATTR_NUMBER)->constant;
}

/* ---- one op ---------------------------------------------------------------- */

static bool verify_number(Module *m, const Op *op)
{
    if (!expr_is_constant(op_expr(op, ATTR_NUMBER)))
        return diag_error(m->diag, op->loc, "the number of registers must be a constant");
    int64_t n = wanted_registers(op);
    return (n >= LEAST && n <= MOST && n % STEP == 0) ||
           diag_error(m->diag, op->loc, "the number of registers is %lld, it must be a "
                      "multiple of %d from %d to %d", (long long)n, STEP, LEAST, MOST);
}

/* The loop or branch around `op`, or NULL: each run of the program runs it once. */
static const Op *repeated_by(const Op *op)
{
    const Op *around = op->parent->parent;
    while (around && around->code == OP_thread_group)
        around = around->parent->parent;
    return around;
}

bool verify_setmaxnreg(Module *m, const Op *op)
{
    ThreadRange threads = region_threads(op->parent);
    const Op *around = repeated_by(op);
    if (!verify_number(m, op))
        return false;
    if (!op->parent->program->min_blocks)
        return diag_error(m->diag, op->loc, "setmaxnreg in a program without min_blocks(N), "
                          "which says how many registers a thread begins with");
    if (threads.begin % WARPGROUP || threads.count % WARPGROUP)
        return diag_error(m->diag, op->loc, "setmaxnreg runs on %lld threads from thread %lld "
                          "on, both must be multiples of %d", (long long)threads.count,
                          (long long)threads.begin, WARPGROUP);
    if (!around)
        return true;
    diag_error(m->diag, op->loc, "setmaxnreg inside of %s: every run of the program runs it "
               "once", op_info[around->code].name);
    return diag_note(m->diag, around->loc, "the %s begins here", op_info[around->code].name);
}

/* ---- all ops of a program --------------------------------------------------- */

typedef struct Warpgroup {
    int64_t registers;      /* of each thread, as far as the text is read */
    int64_t most;           /* that it asks for; 0: it keeps what it begins with */
    const Op *unsettled;    /* its last setmaxnreg, if it has not synchronized since */
} Warpgroup;

typedef struct Registers {
    Module *m;
    Warpgroup groups[WARPGROUPS];
    const Op *last;         /* setmaxnreg of the program */
} Registers;

static bool has_warpgroup(ThreadRange threads, int64_t group)
{
    return threads.begin <= group * WARPGROUP &&
           threads.begin + threads.count >= (group + 1) * WARPGROUP;
}

/* Checks that `group`, which has `before` registers a thread, may run `op` now. */
static bool verify_change(Module *m, const Op *op, const Warpgroup *group, int64_t before)
{
    if (group->registers != before)
        return diag_error(m->diag, op->loc, "threads with %lld and with %lld registers run "
                          "one setmaxnreg, all must have as many before it",
                          (long long)before, (long long)group->registers);
    if (!group->unsettled)
        return true;
    diag_error(m->diag, op->loc, "setmaxnreg twice without a synchronize of the warpgroup "
               "between");
    return diag_note(m->diag, group->unsettled->loc, "the first one is here");
}

static bool change_registers(Registers *r, const Op *op)
{
    ThreadRange threads = region_threads(op->parent);
    int64_t first = threads.begin / WARPGROUP, wanted = wanted_registers(op);
    int64_t before = r->groups[first].registers;
    for (int64_t i = first; has_warpgroup(threads, i); i++) {
        Warpgroup *group = &r->groups[i];
        if (!verify_change(r->m, op, group, before))
            return false;
        group->most = group->most > wanted ? group->most : wanted;
        group->registers = wanted;
        group->unsettled = op;
    }
    r->last = op;
    return true;
}

static bool follow_op(Op *op, void *data)
{
    Registers *r = data;
    diag_check_time(r->m->diag, op->loc);
    if (op->code == OP_setmaxnreg)
        return change_registers(r, op);
    if (op->code == OP_synchronize && !repeated_by(op))
        for (int64_t i = 0; i < WARPGROUPS; i++)
            if (has_warpgroup(region_threads(op->parent), i))
                r->groups[i].unsettled = NULL;
    return true;
}

/* Checks that all warpgroups can have the most they ask for at one time: so each gets that,
 * once the others have given up the registers that they do not ask for. */
static bool verify_sum(Module *m, const Program *p, const Registers *r)
{
    int64_t begin = program_registers(p), had = begin * program_threads(p), sum = had;
    for (int64_t i = 0; i < WARPGROUPS; i++)
        if (r->groups[i].most)
            sum += WARPGROUP * (r->groups[i].most - begin);
    return sum <= had ||
           diag_error(m->diag, r->last->loc, "the threads of a block come to %lld registers, "
                      "it begins with %lld, %lld for each of %lld threads", (long long)sum,
                      (long long)had, (long long)begin, (long long)program_threads(p));
}

bool verify_registers(Module *m, Program *p)
{
    Registers r = {.m = m};
    for (int64_t i = 0; i < WARPGROUPS; i++)
        r.groups[i].registers = program_registers(p);
    return region_walk(p->body, follow_op, &r) && (!r.last || verify_sum(m, p, &r));
}
