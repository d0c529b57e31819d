/* Rows sorted by the experts that they chose: one launch of one block, or of many rows two, the first of
 * which counts each block's rows of each expert. These counts lie behind the workspace's semaphores. */
#include "matmul/internal.h"

#include "support/integer.h"

#include <inttypes.h>

enum { COUNT = 4, STRIDE_MAX = 2 };

static int64_t blocks_of(int64_t m)
{
    return ceil_div_i64(m, MATMUL_SORT_ROWS);
}

static size_t workspace_size(const tilus_matmul_plan *plan, int64_t m)
{
    int64_t buckets = 2 * (int64_t)matmul_experts_room(&plan->spec);
    int64_t counts = blocks_of(m) > 1 ? blocks_of(m) * buckets * COUNT : 0;
    return TILUS_MATMUL_SEMAPHORES + (size_t)counts;
}

bool sort_find(tilus_matmul_plan *plan)
{
    bool ok = true;
    for (int i = 0; i < MATMUL_SORTS && plan->spec.experts; i++) {
        plan->sort[i] = kernel_find(plan->matmul, &plan->spec, &plan->choices->config,
                                    (MatmulProgram)(MATMUL_SORT_FEW + i), plan->target);
        ok = ok && plan->sort[i];
    }
    return ok;
}

static Kernel *sort_kernel(const tilus_matmul_plan *plan, MatmulProgram program)
{
    return plan->sort[program - MATMUL_SORT_FEW];
}

size_t sort_kernels(const tilus_matmul_plan *plan, int64_t m, Kernel *kernels[static MATMUL_SORT_LAUNCHES])
{
    if (!plan->spec.experts)
        return 0;
    if (m <= MATMUL_SORT_ROWS) {
        kernels[0] = sort_kernel(plan, m <= MATMUL_SORT_ROWS_FEW ? MATMUL_SORT_FEW : MATMUL_SORT);
        return 1;
    }
    kernels[0] = sort_kernel(plan, MATMUL_COUNT_ROWS);
    kernels[1] = sort_kernel(plan, MATMUL_SORT_MANY);
    return 2;
}

static tilus_status check(const tilus_matmul_plan *plan, const tilus_matmul_sort *sort)
{
    if (plan->spec.experts == 0)
        return library_refuse("sort: the problem has no experts");
    if (sort->m < 0 || sort->m > MATMUL_M_MAX)
        return library_refuse("sort: m is %" PRId64 ", not 0 to %d", sort->m, MATMUL_M_MAX);
    if (sort->chosen_stride < 0 || sort->chosen_stride > STRIDE_MAX)
        return library_refuse("sort: chosen_stride is %" PRId64 ", not 0 to %d", sort->chosen_stride, STRIDE_MAX);
    const Address all[] = {
        {"sort: chosen", sort->chosen, 4, sort->m > 0},
        {"sort: offsets", sort->offsets, 4, true},
        {"sort: ids", sort->ids, 4, sort->m > 0},
    };
    const CallMemory memory = {all, sizeof all / sizeof *all, "sort: workspace", sort->workspace,
                               sort->workspace_size};
    return library_check_memory(&memory, workspace_size(plan, sort->m), "; %" PRId64 " rows need", sort->m);
}

static KernelLaunch launch_of(const tilus_matmul_plan *plan, const tilus_matmul_sort *sort, Kernel *kernel)
{
    KernelLaunch l = {.kernel = kernel};
    l.args[MATMUL_ARGUMENT_chosen].pointer = sort->chosen;
    l.args[MATMUL_ARGUMENT_list].pointer = sort->workspace + TILUS_MATMUL_SEMAPHORES;
    l.args[MATMUL_ARGUMENT_offsets].pointer = sort->offsets;
    l.args[MATMUL_ARGUMENT_ids].pointer = sort->ids;
    l.args[MATMUL_ARGUMENT_m].integer = sort->m;
    l.args[MATMUL_ARGUMENT_stride].integer = sort->chosen_stride ? sort->chosen_stride : 1;
    l.args[MATMUL_ARGUMENT_experts].integer = plan->spec.experts;
    return l;
}

tilus_status tilus_matmul_sort_rows(tilus_matmul_plan *plan, tilus_stream stream, const tilus_matmul_sort *sort)
{
    tilus_matmul_sort own;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = LIBRARY_TAKE(tilus_matmul_sort, &own, sort, "sort");
    if (status == TILUS_OK)
        status = check(plan, &own);
    if (status != TILUS_OK || own.m == 0)
        return status;
    Kernel *kernels[MATMUL_SORT_LAUNCHES];
    KernelLaunch launches[MATMUL_SORT_LAUNCHES];
    size_t count = sort_kernels(plan, own.m, kernels);
    for (size_t i = 0; i < count; i++)
        launches[i] = launch_of(plan, &own, kernels[i]);
    return launches_run(plan, launches, count, stream, KERNEL_FIRST_EARLY);
}
