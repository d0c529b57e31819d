/* The launches of a product. */
#include "bigint/internal.h"

/* ---- arguments ---------------------------------------------------------- */

/* Adds a launch; its arguments follow by put_address and put_number. */
static Launch *add(Launch launches[], size_t *count, int kernel)
{
    Launch *l = &launches[(*count)++];
    l->kernel = kernel;
    l->count = 0;
    return l;
}

static void put_address(Launch *l, uint64_t address)
{
    l->args[l->count++].pointer = address;
}

static void put_number(Launch *l, int64_t number)
{
    l->args[l->count++].integer = number;
}

static void put_summary(Launch *l, const tilus_bigint_plan *plan, const tilus_bigint_call *call)
{
    put_address(l, call->workspace + plan->space.overflows);
    put_address(l, call->workspace + plan->space.firsts);
}

static int64_t result_bytes(const tilus_bigint_plan *plan)
{
    return plan->problem.a_bytes + plan->problem.b_bytes;
}

static void add_carry(const tilus_bigint_plan *plan, const tilus_bigint_call *call, int64_t pairs,
                      Launch launches[], size_t *count)
{
    if (plan->parts == 1)
        return;
    Launch *l = add(launches, count, BIGINT_K_CARRY + 2 * plan->small + plan->loose);
    put_address(l, call->c);
    put_summary(l, plan, call);
    put_number(l, pairs);
    put_number(l, result_bytes(plan));
}

/* ---- schoolbook --------------------------------------------------------- */

static size_t schoolbook(const tilus_bigint_plan *plan, const tilus_bigint_call *call,
                         int64_t pairs, Launch launches[])
{
    size_t count = 0;
    Launch *l = add(launches, &count, BIGINT_K_PRODUCT + 2 * plan->tile + plan->loose);
    put_address(l, call->a);
    put_address(l, call->b);
    put_address(l, call->c);
    put_summary(l, plan, call);
    put_number(l, pairs);
    put_number(l, plan->problem.a_bytes);
    put_number(l, plan->problem.b_bytes);
    add_carry(plan, call, pairs, launches, &count);
    return count;
}

/* ---- transforms --------------------------------------------------------- */

static void add_spread(const tilus_bigint_plan *plan, uint64_t from, int64_t bytes, uint64_t to,
                       int64_t pairs, Launch launches[], size_t *count)
{
    Launch *l = add(launches, count, BIGINT_K_SPREAD + plan->loose);
    put_address(l, from);
    put_address(l, to);
    put_number(l, pairs);
    put_number(l, bytes);
    put_number(l, (int64_t)1 << plan->log);
}

/* Adds what passes of both directions take: subproblems of 2^log points, columns of 2^inner. */
static void put_pass(Launch *l, const tilus_bigint_plan *plan, int64_t points, int log, int inner)
{
    put_address(l, atomic_load(&plan->roots));
    put_number(l, points);
    put_number(l, (int64_t)1 << inner);
    put_number(l, (int64_t)1 << (BIGINT_LOG_MAX - log));
}

static int pass_kernel(const tilus_bigint_plan *plan, int first, int i)
{
    return first + 2 * (plan->radix[i] - BIGINT_RADIX_MIN) + (i == plan->passes - 1);
}

static void add_passes(const tilus_bigint_plan *plan, const tilus_bigint_call *call,
                       int64_t pairs, Launch launches[], size_t *count)
{
    int64_t points = pairs << plan->log;
    int64_t numbers = plan->problem.square ? 1 : 2;
    int log = plan->log;
    for (int i = 0; i < plan->passes; log -= plan->radix[i++]) {
        Launch *l = add(launches, count, pass_kernel(plan, BIGINT_K_FORWARD, i));
        put_address(l, call->workspace);
        put_pass(l, plan, points * numbers, log, log - plan->radix[i]);
    }
    for (int i = plan->passes - 1; i >= 0; i--) {
        Launch *l = add(launches, count, pass_kernel(plan, BIGINT_K_BACKWARD, i));
        put_address(l, call->workspace);
        put_address(l, call->workspace + (plan->problem.square ? 0 : (uint64_t)points * 8));
        log += plan->radix[i];
        put_pass(l, plan, points, log, log - plan->radix[i]);
        put_number(l, plan->log);
    }
}

static size_t transform(const tilus_bigint_plan *plan, const tilus_bigint_call *call,
                        int64_t pairs, Launch launches[])
{
    const tilus_bigint_problem *p = &plan->problem;
    size_t count = 0;
    /* y lies right after x, also where a group is not full, so that one launch passes over both */
    uint64_t y = call->workspace + ((uint64_t)pairs << plan->log) * 8;
    add_spread(plan, call->a, p->a_bytes, call->workspace, pairs, launches, &count);
    if (!p->square)
        add_spread(plan, call->b, p->b_bytes, y, pairs, launches, &count);
    add_passes(plan, call, pairs, launches, &count);
    Launch *l = add(launches, &count, BIGINT_K_GATHER + plan->loose);
    put_address(l, call->workspace);
    put_address(l, call->c);
    put_summary(l, plan, call);
    put_number(l, pairs);
    put_number(l, result_bytes(plan));
    put_number(l, (int64_t)1 << plan->log);
    add_carry(plan, call, pairs, launches, &count);
    return count;
}

size_t bigint_launches(const tilus_bigint_plan *plan, const tilus_bigint_call *call, int64_t pairs,
                   Launch launches[static BIGINT_LAUNCHES_MAX])
{
    return plan->problem.method == TILUS_BIGINT_TRANSFORM
        ? transform(plan, call, pairs, launches) : schoolbook(plan, call, pairs, launches);
}

/* ---- calls -------------------------------------------------------------- */

static tilus_status check_memory(const tilus_bigint_plan *plan, const tilus_bigint_call *call)
{
    const Address all[] = {{"call: a", call->a, 16, true}, {"call: b", call->b, 16, true},
                           {"call: c", call->c, 16, true}};
    const CallMemory memory = {all, sizeof all / sizeof *all, "call: workspace", call->workspace,
                               call->workspace_size};
    return library_check_memory(&memory, plan->space.size, ", and the plan needs");
}

static tilus_status check_call(const tilus_bigint_plan *plan, tilus_bigint_call *call)
{
    if (!atomic_load(&plan->prepared))
        return library_fail(TILUS_ERROR_STATE, "the plan is not prepared: call "
                            "tilus_bigint_prepare first");
    if (plan->problem.square && call->b && call->b != call->a)
        return library_refuse("call: b of a square is 0x%llx, not 0 or a",
                              (unsigned long long)call->b);
    if (plan->problem.square)
        call->b = call->a;
    return check_memory(plan, call);
}

/* A checked call of a plan. */
typedef struct Work {
    const tilus_bigint_plan *plan;
    tilus_bigint_call call;
} Work;

static tilus_status enqueue(const void *data, tilus_stream stream)
{
    const Work *work = data;
    const tilus_bigint_plan *plan = work->plan;
    const tilus_bigint_problem *p = &plan->problem;
    tilus_bigint_call call = work->call;
    tilus_status status = TILUS_OK;
    for (int64_t done = 0; done < p->batch && status == TILUS_OK; done += plan->group) {
        int64_t pairs = p->batch - done < plan->group ? p->batch - done : plan->group;
        Launch launches[BIGINT_LAUNCHES_MAX];
        size_t count = bigint_launches(plan, &call, pairs, launches);
        for (size_t i = 0; i < count && status == TILUS_OK; i++)
            status = kernel_launch(plan->kernels[launches[i].kernel], stream, launches[i].args);
        call.a += (uint64_t)(pairs * p->a_bytes);
        call.b += (uint64_t)(pairs * p->b_bytes);
        call.c += (uint64_t)(pairs * result_bytes(plan));
    }
    return status;
}

tilus_status tilus_bigint_mul(tilus_bigint_plan *plan, tilus_stream stream,
                              const tilus_bigint_call *call)
{
    Work work = {.plan = plan};
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = LIBRARY_TAKE(tilus_bigint_call, &work.call, call, "call");
    if (status == TILUS_OK)
        status = check_call(plan, &work.call);
    if (status != TILUS_OK)
        return status;
    return kernel_library_enqueue(plan->bigint->library.rt, plan->device, stream, enqueue, &work);
}
