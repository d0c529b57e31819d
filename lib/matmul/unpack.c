/* Unpacking: packed weights become a plain matrix on the device, for products by cuBLAS and for callers. */
#include "matmul/internal.h"

#include "support/integer.h"

#include <inttypes.h>
#include <string.h>

bool unpack_find(tilus_matmul_plan *plan)
{
    bool ok = true;
    for (int i = 0; i < MATMUL_UNPACKS && !matmul_is_a8(&plan->spec); i++) {
        plan->unpack[i] = kernel_find(plan->matmul, &plan->spec, &plan->choices->config,
                                      (MatmulProgram)(MATMUL_UNPACK_F16 + i), plan->target);
        ok = ok && plan->unpack[i];
    }
    return ok;
}

Kernel *unpack_kernel(const tilus_matmul_plan *plan, DType type)
{
    MatmulProgram program = matmul_unpack_program(type);
    return program == MATMUL_PROGRAMS ? NULL : plan->unpack[program - MATMUL_UNPACK_F16];
}

KernelLaunch unpack_launch(const tilus_matmul_plan *plan, DType type, uint64_t weights, int64_t first,
                           int64_t slices, int64_t columns, uint64_t to)
{
    KernelLaunch l = {.kernel = unpack_kernel(plan, type)};
    uint64_t skipped = (uint64_t)first * plan->packed.block;
    set_weights(&l, plan, weights);
    l.args[MATMUL_ARGUMENT_weights].pointer += skipped;
    if (plan->spec.group) {         /* scales and zero points lie in packed blocks */
        l.args[MATMUL_ARGUMENT_scales].pointer += skipped;
        l.args[MATMUL_ARGUMENT_zeros].pointer += plan->packed.factor ? 0 : skipped;
    }
    l.args[MATMUL_ARGUMENT_to].pointer = to;
    l.args[MATMUL_ARGUMENT_k].integer = columns;
    l.args[MATMUL_ARGUMENT_blocks].integer = slices;
    return l;
}

/* Checks the rows of B that a caller wants. */
static tilus_status check_rows(const tilus_matmul_plan *plan, int64_t first, int64_t count)
{
    int64_t k = plan->spec.k;
    if (first < 0 || first >= k || first % MATMUL_PACKED_K)
        return library_refuse("k_first is %" PRId64 ", not a multiple of %d from 0 to %" PRId64, first,
                              MATMUL_PACKED_K, k - 1);
    if (count < 1 || count > k - first)
        return library_refuse("k_count is %" PRId64 ", not 1 to %" PRId64 " from %" PRId64 " on", count, k - first,
                              first);
    if (count % MATMUL_PACKED_K && first + count != k)
        return library_refuse("k_count is %" PRId64 ", no multiple of %d, and does not reach the end of k, %" PRId64,
                              count, MATMUL_PACKED_K, k);
    return TILUS_OK;
}

tilus_status tilus_matmul_unpack_device(tilus_matmul_plan *plan, tilus_stream stream, uint64_t packed,
                                        int64_t k_first, int64_t k_count, const char *type, uint64_t to)
{
    if (!plan)
        return library_refuse_null(plan);
    if (matmul_is_a8(&plan->spec))
        return library_refuse("products of %s have bit planes, which are not unpacked",
                              dtype_name(plan->spec.product));
    DType known = type ? dtype_find(type, strlen(type)) : DTYPE_none;
    if (matmul_unpack_program(known) == MATMUL_PROGRAMS)
        return library_refuse("type is %s%s%s, not f16, bf16 or f32", type ? "\"" : "", type ? type : "NULL",
                              type ? "\"" : "");
    tilus_status status = check_rows(plan, k_first, k_count);
    const Address all[] = {{"packed", packed, MATMUL_ALIGN, true}, {"to", to, 16, true}};
    if (status == TILUS_OK)
        status = library_check_addresses(all, sizeof all / sizeof *all);
    if (status != TILUS_OK)
        return status;
    int64_t slices = ceil_div_i64(k_count, MATMUL_PACKED_K);
    const KernelLaunch l = unpack_launch(plan, known, packed, k_first / MATMUL_PACKED_K, slices, k_count, to);
    return launches_run(plan, &l, 1, stream, KERNEL_FIRST_EARLY);
}
