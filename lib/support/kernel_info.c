/* Checks of a launch against the facts that its program states. */
#include "support/kernel_info.h"

#include "support/limits.h"
#include "support/real.h"
#include "support/report.h"
#include "support/scalar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a CUDA grid (CUDA programming guide, 16.2). */
static const int64_t grid_limit[3] = {LIMIT_GRID_X, LIMIT_GRID_YZ, LIMIT_GRID_YZ};

const char *tilus_status_name(tilus_status status)
{
    switch (status) {
    case TILUS_OK: return "TILUS_OK";
    case TILUS_ERROR_ARGUMENT: return "TILUS_ERROR_ARGUMENT";
    case TILUS_ERROR_PROGRAM: return "TILUS_ERROR_PROGRAM";
    case TILUS_ERROR_MEMORY: return "TILUS_ERROR_MEMORY";
    case TILUS_ERROR_NO_DRIVER: return "TILUS_ERROR_NO_DRIVER";
    case TILUS_ERROR_NO_DEVICE: return "TILUS_ERROR_NO_DEVICE";
    case TILUS_ERROR_DRIVER: return "TILUS_ERROR_DRIVER";
    case TILUS_ERROR_UNSUPPORTED: return "TILUS_ERROR_UNSUPPORTED";
    case TILUS_ERROR_ARTEFACT: return "TILUS_ERROR_ARTEFACT";
    case TILUS_ERROR_DEVICE_MEMORY: return "TILUS_ERROR_DEVICE_MEMORY";
    case TILUS_ERROR_LOST: return "TILUS_ERROR_LOST";
    case TILUS_ERROR_STATE: return "TILUS_ERROR_STATE";
    case TILUS_ERROR_INTERNAL: return "TILUS_ERROR_INTERNAL";
    case TILUS_ERROR_NO_KERNEL: return "TILUS_ERROR_NO_KERNEL";
    case TILUS_ERROR_CHILD: return "TILUS_ERROR_CHILD";
    }
    return "unknown status";
}

void tilus_free(void *memory)
{
    free(memory);
}

/* ---- arguments ------------------------------------------------------ */

uint32_t kernel_float_code(tilus_arg_kind kind, double value)
{
    unsigned exponent = kind == TILUS_ARG_F16 ? 5 : 8;
    unsigned mantissa = kind == TILUS_ARG_F16 ? 10 : kind == TILUS_ARG_BF16 ? 7 : 23;
    uint64_t bits, infinity = ((UINT64_C(1) << exponent) - 1) << mantissa;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint32_t)(infinity | UINT64_C(1) << (mantissa - 1));
    uint64_t magnitude = real_magnitude(bits & (UINT64_MAX >> 1), exponent, mantissa);
    magnitude = magnitude < infinity ? magnitude : infinity;
    return (uint32_t)(magnitude | bits >> 63 << (exponent + mantissa));
}

static bool check_pointer(const tilus_arg_info *info, uint64_t address, Report r)
{
    if (address & ((uint64_t)info->align - 1))
        return report_fault(r, "argument %%%s = 0x%" PRIx64 " is not aligned to %" PRId64 " bytes",
                            info->name, address, info->align);
    return true;
}

/* The values that the argument's type holds, whatever the program states. */
static bool check_type(const tilus_arg_info *info, int64_t value, Report r)
{
    int64_t min = info->kind == TILUS_ARG_I32 ? INT32_MIN
                : info->kind == TILUS_ARG_U32 ? 0 : INT64_MIN;
    int64_t max = info->kind == TILUS_ARG_I32 ? INT32_MAX
                : info->kind == TILUS_ARG_U32 ? UINT32_MAX : INT64_MAX;
    if (value < min || value > max)
        return report_fault(r, "argument %%%s = %" PRId64 " does not fit in %s",
                            info->name, value, info->dtype);
    return true;
}

static bool check_scalar(const tilus_arg_info *info, int64_t value, Report r)
{
    if (!check_type(info, value, r))
        return false;
    if (value < info->min || value > info->max)
        return report_fault(r, "argument %%%s = %" PRId64 " is outside [%" PRId64 ", %" PRId64 "]",
                            info->name, value, info->min, info->max);
    if (info->divisible > 1 && value % info->divisible != 0)
        return report_fault(r, "argument %%%s = %" PRId64 " is not divisible by %" PRId64,
                            info->name, value, info->divisible);
    return true;
}

static bool check_args(const tilus_kernel_info *info, const tilus_arg *args, size_t count,
                       Report r)
{
    if (count != info->arg_count)
        return report_fault(r, "program takes %zu argument%s, got %zu", info->arg_count,
                            info->arg_count == 1 ? "" : "s", count);
    if (!args && count)
        return report_fault(r, "args is NULL, the program takes %zu", count);
    for (size_t i = 0; i < count; i++) {
        const tilus_arg_info *arg = &info->args[i];
        if ((arg->kind == TILUS_ARG_POINTER && !check_pointer(arg, args[i].pointer, r)) ||
            (kernel_arg_is_integer(arg->kind) && !check_scalar(arg, args[i].integer, r)))
            return false;
    }
    return true;
}

/* ---- the grid ------------------------------------------------------- */

/* The operands that one code takes off the stack; -1 when it cannot be run. */
static int code_operands(const tilus_kernel_info *info, tilus_code code)
{
    switch (code.kind) {
    case TILUS_CODE_CONSTANT:
        return 0;
    case TILUS_CODE_ARGUMENT:
        return code.value >= 0 && (uint64_t)code.value < info->arg_count &&
               kernel_arg_is_integer(info->args[code.value].kind) ? 0 : -1;
    case TILUS_CODE_OPERATOR:
        return code.value >= 0 && code.value < SCALAR_OP_COUNT
                   ? (int)scalar_op_info[code.value].operands : -1;
    }
    return -1;
}

const char *kernel_codes_fault(const tilus_kernel_info *info, const tilus_code *code,
                               size_t length)
{
    unsigned nested[KERNEL_STACK];     /* operators one in the other, of each operand */
    size_t depth = 0;
    if (length && !code)
        return "codes at NULL";
    for (size_t i = 0; i < length; i++) {
        int operands = code_operands(info, code[i]);
        if (operands < 0)
            return "a code that does not exist";
        if (depth < (size_t)operands)
            return "an operator without operands";
        depth += 1 - (size_t)operands;
        if (depth > KERNEL_STACK)
            return "too many operands at once";
        unsigned *top = &nested[depth - 1];
        if (operands == 2 && top[1] > top[0])
            top[0] = top[1];
        top[0] = operands ? top[0] + 1 : 0;
        if (top[0] > LIMIT_DEPTH)
            return "too many operators one in the other";
    }
    return depth == 1 ? NULL : "codes that do not leave one number";
}

static bool check_extent(const tilus_kernel_info *info, unsigned i, const tilus_arg *args,
                         int64_t *extent, Report r)
{
    const char *error = kernel_codes_run(info->grid[i], info->grid_length[i], args,
                                  info->arg_count, extent);
    if (error)
        return report_fault(r, "the grid's extent of dimension %u: %s", i, error);
    if (*extent < 0)
        return report_fault(r, "the grid's extent of dimension %u is %" PRId64, i, *extent);
    if (*extent > grid_limit[i])
        return report_fault(r, "the grid's extent of dimension %u is %" PRId64 ", more than %"
                            PRId64, i, *extent, grid_limit[i]);
    return true;
}

static bool check_cluster(const tilus_kernel_info *info, const int64_t grid[3], Report r)
{
    for (unsigned i = 0; i < 3; i++)
        if (info->cluster[i] && grid[i] % info->cluster[i])
            return report_fault(r, "the grid's extent of dimension %u is %" PRId64 ", not a "
                                "multiple of the cluster's %u", i, grid[i], info->cluster[i]);
    return true;
}

/* ---- tensor maps ----------------------------------------------------- */

/* A launch without blocks needs no maps: its tensors may be empty. */
static bool check_maps(const tilus_kernel_info *info, const tilus_arg *args,
                       const int64_t grid[3], Report r)
{
    KernelMapValues values;
    for (size_t i = 0; i < info->map_count && grid[0] && grid[1] && grid[2]; i++)
        if (!kernel_map_values(info, i, args, &values, r))
            return false;
    return true;
}

tilus_status tilus_kernel_check(const tilus_kernel_info *info, const tilus_arg *args,
                                size_t count, int64_t grid[3], char *message, size_t size)
{
    Report r = {message, size};
    grid[0] = grid[1] = grid[2] = 1;
    if (size > 0)
        message[0] = 0;
    if (!check_args(info, args, count, r))
        return TILUS_ERROR_ARGUMENT;
    for (unsigned i = 0; i < info->grid_rank && i < 3; i++)
        if (!check_extent(info, i, args, &grid[i], r))
            return TILUS_ERROR_ARGUMENT;
    return check_cluster(info, grid, r) && check_maps(info, args, grid, r)
               ? TILUS_OK : TILUS_ERROR_ARGUMENT;
}

/* ---- the workspace -------------------------------------------------- */

/* Multiplies `*count` by the extents of `t`, which are rank many. */
static bool count_elements(const tilus_workspace_tensor *t, const tilus_arg *args,
                           size_t arg_count, int64_t *count, Report r)
{
    const char *name = t->name ? t->name : "?";
    *count = 1;
    for (unsigned d = 0; d < t->rank; d++) {
        int64_t extent, before = *count;
        const char *error = kernel_codes_run(t->extents[d], t->extent_length[d], args, arg_count,
                                      &extent);
        if (error)
            return report_fault(r, "the extent of dimension %u of workspace tensor %%%s: %s", d,
                                name, error);
        if (extent < 0)
            return report_fault(r, "the extent of dimension %u of workspace tensor %%%s is %"
                                PRId64, d, name, extent);
        if (__builtin_mul_overflow(before, extent, count))
            return report_fault(r, "workspace tensor %%%s: %" PRId64 " times extent %u, which is %"
                                PRId64 ", is over 63 bits", name, before, d, extent);
    }
    return true;
}

/* Adds the bytes of `t`, up to the next tensor's first, to `*end`. */
static bool add_tensor(const tilus_workspace_tensor *t, const tilus_arg *args,
                       size_t arg_count, int64_t *end, Report r)
{
    enum { ALIGN = TILUS_WORKSPACE_ALIGN };
    int64_t count, bits, bytes, before = *end;
    const char *name = t->name ? t->name : "?";
    if (!count_elements(t, args, arg_count, &count, r))
        return false;
    if (__builtin_mul_overflow(count, (int64_t)t->bits, &bits))
        return report_fault(r, "workspace tensor %%%s: %" PRId64 " elements of %u bits are over 63 "
                            "bits", name, count, t->bits);
    bytes = bits / 8 + (bits % 8 != 0);
    bytes = (bytes / ALIGN + (bytes % ALIGN != 0)) * ALIGN;
    if (__builtin_add_overflow(before, bytes, end))
        return report_fault(r, "workspace tensor %%%s: its %" PRId64 " bytes after %" PRId64
                            " are over 63 bits", name, bytes, before);
    return true;
}

tilus_status tilus_kernel_workspace_size(const tilus_kernel_info *info, const tilus_arg *args,
                                         size_t *size, size_t *zeroed, char *message,
                                         size_t message_size)
{
    Report r = {message, message_size};
    int64_t end = 0;
    *size = *zeroed = 0;
    if (message_size > 0)
        message[0] = 0;
    for (size_t i = 0; i < info->workspace_count; i++) {
        if (!add_tensor(&info->workspace[i], args, info->arg_count, &end, r)) {
            *zeroed = 0;
            return TILUS_ERROR_ARGUMENT;
        }
        if (info->workspace[i].zeroed)
            *zeroed = (size_t)end;
    }
    *size = (size_t)end;
    return TILUS_OK;
}
