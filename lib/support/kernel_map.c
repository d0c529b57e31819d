/* The numbers of a launch: expressions over its arguments, and tensor maps of them. */
#include "support/kernel_map.h"

#include "support/scalar.h"

#include <inttypes.h>

/* ---- expressions ------------------------------------------------------ */

/* Pops the operands of one operator and pushes its result; returns NULL, or
 * what is wrong. */
static const char *apply_operator(int64_t op, int64_t *stack, size_t *depth)
{
    if (op < 0 || op >= SCALAR_OP_COUNT || *depth < scalar_op_info[op].operands)
        return "malformed code";
    int64_t b = scalar_op_info[op].operands == 2 ? stack[--*depth] : 0;
    int64_t a = stack[*depth - 1];
    return scalar_apply((ScalarOp)op, a, b, &stack[*depth - 1]);
}

const char *kernel_codes_run(const tilus_code *code, size_t length, const tilus_arg *args,
                             size_t arg_count, int64_t *out)
{
    int64_t stack[KERNEL_STACK];
    size_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        int64_t value = code[i].value;
        if (code[i].kind == TILUS_CODE_OPERATOR) {
            const char *error = apply_operator(value, stack, &depth);
            if (error)
                return error;
            continue;
        }
        bool is_argument = code[i].kind == TILUS_CODE_ARGUMENT;
        if (depth == KERNEL_STACK || (is_argument && (value < 0 || (uint64_t)value >= arg_count)))
            return "malformed code";
        stack[depth++] = is_argument ? args[value].integer : value;
    }
    if (depth != 1)
        return "malformed code";
    *out = stack[0];
    return NULL;
}

/* ---- tensor maps ------------------------------------------------------- */

unsigned kernel_map_element(tilus_map_type type)
{
    static const unsigned char bytes[] = {
        [TILUS_MAP_U8] = 1, [TILUS_MAP_U16] = 2, [TILUS_MAP_U32] = 4, [TILUS_MAP_I32] = 4,
        [TILUS_MAP_U64] = 8, [TILUS_MAP_I64] = 8, [TILUS_MAP_F16] = 2, [TILUS_MAP_F32] = 4,
        [TILUS_MAP_F64] = 8, [TILUS_MAP_BF16] = 2};
    return bytes[type];
}

/* A map whose numbers are computed. */
typedef struct MapCheck {
    const tilus_kernel_info *info;
    const tilus_tensor_map *map;
    const tilus_arg *args;
    Report report;
} MapCheck;

#define MAP_FAULT(c, format, ...)                                                               \
    report_fault((c)->report, "tensor map of argument %%%s: " format,                         \
                 (c)->info->args[(c)->map->argument].name, __VA_ARGS__)

static bool check_map_extent(const MapCheck *c, unsigned d, int64_t *extent)
{
    const char *error = kernel_codes_run(c->map->extents[d], c->map->extent_length[d], c->args,
                                  c->info->arg_count, extent);
    if (error)
        return MAP_FAULT(c, "the extent of dimension %u: %s", d, error);
    return (*extent >= 1 && *extent <= TILUS_MAP_EXTENT_MAX) ||
           MAP_FAULT(c, "the extent of dimension %u is %" PRId64 ", it must be 1 to %d", d, *extent,
                     TILUS_MAP_EXTENT_MAX);
}

static bool check_map_stride(const MapCheck *c, unsigned d, int64_t *stride)
{
    const int64_t limit = INT64_C(1) << 40;     /* cuTensorMapEncodeTiled, globalStrides */
    const char *error = kernel_codes_run(c->map->strides[d], c->map->stride_length[d], c->args,
                                  c->info->arg_count, stride);
    if (error)
        return MAP_FAULT(c, "stride %u: %s", d, error);
    return (*stride >= TILUS_MAP_ALIGN && *stride < limit && *stride % TILUS_MAP_ALIGN == 0) ||
           MAP_FAULT(c, "stride %u is %" PRId64 " bytes, it must be a multiple of %d from %d, "
                     "below 2^40", d, *stride, TILUS_MAP_ALIGN, TILUS_MAP_ALIGN);
}

bool kernel_map_values(const tilus_kernel_info *info, size_t number, const tilus_arg *args,
                       KernelMapValues *values, Report r)
{
    const tilus_tensor_map *map = &info->maps[number];
    const MapCheck c = {info, map, args, r};
    *values = (KernelMapValues){.address = args[map->argument].pointer};
    if (values->address % TILUS_MAP_ALIGN)
        return MAP_FAULT(&c, "the address 0x%" PRIx64 " is not aligned to %d bytes",
                         values->address, TILUS_MAP_ALIGN);
    for (unsigned d = 0; d < map->rank; d++)
        if (!check_map_extent(&c, d, &values->extents[d]))
            return false;
    for (unsigned d = 0; d + 1 < map->rank; d++)
        if (!check_map_stride(&c, d, &values->strides[d]))
            return false;
    values->strides[map->rank - 1] = kernel_map_element(map->type);
    return true;
}
