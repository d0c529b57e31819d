/* Checks an artefact. The writer checks as the reader does, so every artefact that can be
 * written can be read. */
#include "artefact_format.h"

#include "support/kernel_info.h"
#include "support/limits.h"
#include "support/report.h"
#include "support/utf8.h"

#include <inttypes.h>
#include <string.h>

/* ---- words ---------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_small(char c) { return c >= 'a' && c <= 'z'; }

/* Returns true when the language could spell the name, which is shown, and names files. */
static bool is_name(const char *s)
{
    size_t n = 0;
    for (; s && (is_digit(s[n]) || is_small((char)(s[n] | 32)) || s[n] == '_'); n++)
        ;
    return n > 0 && !s[n];
}

/* "f6e3m2", "bf16": a small letter, then letters and digits. */
static bool is_dtype(const char *s)
{
    enum { LONGEST = 15 };
    size_t n = 0;
    for (; s && (is_small(s[n]) || (n > 0 && is_digit(s[n]))); n++)
        ;
    return n > 0 && n <= LONGEST && !s[n];
}

/* "sm_90a": digits, and perhaps a letter. */
static bool is_target(const char *s)
{
    size_t n = 3;
    if (!s || strncmp(s, "sm_", 3) != 0)
        return false;
    for (; n < 6 && is_digit(s[n]); n++)
        ;
    return n >= 5 && !s[n + is_small(s[n])];
}

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* ---- arguments ------------------------------------------------------ */

/* The element type of each kind of scalar argument, and its range. */
static const struct {
    const char *dtype;
    int64_t min, max;
} scalar_kind[] = {
    [TILUS_ARG_I32] = {"i32", INT32_MIN, INT32_MAX},
    [TILUS_ARG_U32] = {"u32", 0, UINT32_MAX},
    [TILUS_ARG_I64] = {"i64", INT64_MIN, INT64_MAX},
    [TILUS_ARG_F16] = {"f16", INT64_MIN, INT64_MAX},
    [TILUS_ARG_BF16] = {"bf16", INT64_MIN, INT64_MAX},
    [TILUS_ARG_F32] = {"f32", INT64_MIN, INT64_MAX},
};

static bool check_type(const tilus_arg_info *a, size_t i, Report r)
{
    if ((unsigned)a->kind > TILUS_ARG_F32)
        return report_fault(r, "argument %zu is of kind %u, the last is %u", i, (unsigned)a->kind,
                            (unsigned)TILUS_ARG_F32);
    if (!is_name(a->name) || !is_dtype(a->dtype))
        return report_fault(r, "argument %zu has no proper %s", i,
                            is_name(a->name) ? "type" : "name");
    if (a->kind != TILUS_ARG_POINTER && strcmp(a->dtype, scalar_kind[a->kind].dtype) != 0)
        return report_fault(r, "argument %%%s is of kind %s and of type %s", a->name,
                            scalar_kind[a->kind].dtype, a->dtype);
    return true;
}

static bool check_facts(const tilus_arg_info *a, Report r)
{
    int64_t least = INT64_MIN, most = INT64_MAX;
    if (a->kind != TILUS_ARG_POINTER) {
        least = scalar_kind[a->kind].min;
        most = scalar_kind[a->kind].max;
    }
    if (a->divisible < 1)
        return report_fault(r, "argument %%%s is divisible by %" PRId64 ", the least is 1", a->name,
                            a->divisible);
    if (a->min > a->max || a->min < least || a->max > most)
        return report_fault(r, "the range [%" PRId64 ", %" PRId64 "] of argument %%%s is empty or "
                            "leaves %s", a->min, a->max, a->name, a->dtype);
    if (!is_power_of_two(a->align))
        return report_fault(r, "argument %%%s is aligned to %" PRId64 ", no power of two", a->name,
                            a->align);
    return true;
}

static bool check_args(const tilus_kernel_info *info, Report r)
{
    if (info->arg_count > LIMIT_ARGUMENTS)
        return report_fault(r, "%zu arguments, the limit is %d", info->arg_count, LIMIT_ARGUMENTS);
    if (info->arg_count && !info->args)
        return report_fault(r, "%zu arguments at NULL", info->arg_count);
    for (size_t i = 0; i < info->arg_count; i++)
        if (!check_type(&info->args[i], i, r) || !check_facts(&info->args[i], r))
            return false;
    return true;
}

/* ---- the launch ----------------------------------------------------- */

static bool check_grid(const tilus_kernel_info *info, Report r)
{
    if (info->grid_rank < 1 || info->grid_rank > 3)
        return report_fault(r, "a grid of %u dimensions, there are 1 to 3", info->grid_rank);
    for (unsigned d = 0; d < info->grid_rank; d++) {
        const char *fault = kernel_codes_fault(info, info->grid[d], info->grid_length[d]);
        if (fault)
            return report_fault(r, "the grid's extent of dimension %u has %s", d, fault);
    }
    return true;
}

static bool check_block(const tilus_kernel_info *info, Report r)
{
    enum { WARP = 32 };
    if (info->threads < 1 || info->threads > LIMIT_THREADS || info->threads % WARP)
        return report_fault(r, "a block of %u threads, no multiple of %d up to %d", info->threads,
                            WARP, LIMIT_THREADS);
    if (info->shared_bytes > LIMIT_SHARED_BYTES)
        return report_fault(r, "%zu bytes of shared memory, the limit is %d", info->shared_bytes,
                            LIMIT_SHARED_BYTES);
    return true;
}

/* All extents of a cluster are 0, or none, and dimensions that the grid lacks have 1. */
static bool check_cluster(const tilus_kernel_info *info, Report r)
{
    uint64_t blocks = 1;
    const unsigned *extent = info->cluster;
    if (!extent[0] && !extent[1] && !extent[2])
        return true;
    if (info->cooperative)
        return report_fault(r, "a cooperative program with a cluster, it has one of them");
    for (unsigned d = 0; d < 3; d++) {
        if (extent[d] < 1 || extent[d] > LIMIT_CLUSTER)
            return report_fault(r, "a cluster of %u blocks in dimension %u, it has 1 to %d",
                                extent[d], d, LIMIT_CLUSTER);
        if (d >= info->grid_rank && extent[d] > 1)
            return report_fault(r, "a cluster of %u blocks in dimension %u, the grid has %u "
                                "dimensions", extent[d], d, info->grid_rank);
        blocks *= extent[d];
    }
    return blocks <= LIMIT_CLUSTER ||
           report_fault(r, "a cluster of %u blocks, it has at most %d", (unsigned)blocks,
                        LIMIT_CLUSTER);
}

static bool check_tensor(const tilus_kernel_info *info, size_t i, Report r)
{
    enum { WIDEST = 64 };
    const tilus_workspace_tensor *t = &info->workspace[i];
    if (t->name && !is_name(t->name))
        return report_fault(r, "workspace tensor %zu has no proper name", i);
    if (t->bits < 1 || t->bits > WIDEST)
        return report_fault(r, "workspace tensor %zu has elements of %u bits, there are 1 to %d", i,
                            t->bits, WIDEST);
    if (t->rank < 1 || t->rank > LIMIT_RANK)
        return report_fault(r, "workspace tensor %zu has %u dimensions, there are 1 to %d", i,
                            t->rank, LIMIT_RANK);
    if (!t->extents || !t->extent_length)
        return report_fault(r, "workspace tensor %zu has extents at NULL", i);
    for (unsigned d = 0; d < t->rank; d++) {
        const char *fault = kernel_codes_fault(info, t->extents[d], t->extent_length[d]);
        if (fault)
            return report_fault(r, "the extent of dimension %u of workspace tensor %zu has %s", d, i,
                                fault);
    }
    return true;
}

/* Checks that zeroed tensors come first, so that one fill reaches them. */
static bool check_workspace(const tilus_kernel_info *info, Report r)
{
    if (info->workspace_count && !info->workspace)
        return report_fault(r, "%zu workspace tensors at NULL", info->workspace_count);
    for (size_t i = 0; i < info->workspace_count; i++) {
        if (!check_tensor(info, i, r))
            return false;
        if (i > 0 && info->workspace[i].zeroed && !info->workspace[i - 1].zeroed)
            return report_fault(r, "workspace tensor %zu is zeroed, the one before is not", i);
    }
    return true;
}

/* ---- tensor maps ------------------------------------------------------ */

static bool is_one_of(unsigned value, unsigned a, unsigned b, unsigned c)
{
    return value == 0 || value == a || value == b || value == c;
}

static bool check_map_dim(const tilus_kernel_info *info, size_t i, unsigned d, Report r)
{
    const tilus_tensor_map *t = &info->maps[i];
    const char *fault = kernel_codes_fault(info, t->extents[d], t->extent_length[d]);
    if (fault)
        return report_fault(r, "the extent of dimension %u of tensor map %zu has %s", d, i, fault);
    fault = d + 1 < t->rank ? kernel_codes_fault(info, t->strides[d], t->stride_length[d]) : NULL;
    if (fault)
        return report_fault(r, "stride %u of tensor map %zu has %s", d, i, fault);
    if (t->box[d] < 1 || t->box[d] > TILUS_MAP_BOX_MAX)
        return report_fault(r, "tensor map %zu has a box of %u in dimension %u, there are 1 to %d",
                            i, t->box[d], d, TILUS_MAP_BOX_MAX);
    return true;
}

static bool check_map(const tilus_kernel_info *info, size_t i, Report r)
{
    const tilus_tensor_map *t = &info->maps[i];
    if (t->argument >= info->arg_count || info->args[t->argument].kind != TILUS_ARG_POINTER)
        return report_fault(r, "tensor map %zu is of argument %u, which is no pointer", i,
                            t->argument);
    if ((unsigned)t->type > TILUS_MAP_BF16)
        return report_fault(r, "tensor map %zu has elements of kind %u, the last is %u", i,
                            (unsigned)t->type, (unsigned)TILUS_MAP_BF16);
    if (t->rank < 1 || t->rank > TILUS_MAP_RANK)
        return report_fault(r, "tensor map %zu has %u dimensions, there are 1 to %d", i, t->rank,
                            TILUS_MAP_RANK);
    if (!t->extents || !t->extent_length || (t->rank > 1 && (!t->strides || !t->stride_length)))
        return report_fault(r, "tensor map %zu has extents or strides at NULL", i);
    if (!is_one_of(t->swizzle, 32, 64, 128))
        return report_fault(r, "tensor map %zu has a swizzle of %u bytes", i, t->swizzle);
    if (!is_one_of(t->promotion, 64, 128, 256))
        return report_fault(r, "tensor map %zu has a promotion of %u bytes", i, t->promotion);
    for (unsigned d = 0; d < t->rank; d++)
        if (!check_map_dim(info, i, d, r))
            return false;
    unsigned row = t->box[t->rank - 1] * kernel_map_element(t->type);
    if (row % TILUS_MAP_ALIGN || (t->swizzle && row > t->swizzle))
        return report_fault(r, "tensor map %zu has a row of %u bytes, no multiple of %d, or past "
                            "its swizzle of %u", i, row, TILUS_MAP_ALIGN, t->swizzle);
    return true;
}

static bool check_maps(const tilus_kernel_info *info, Report r)
{
    if (info->map_count > LIMIT_TENSOR_MAPS)
        return report_fault(r, "%zu tensor maps, the limit is %d", info->map_count,
                            LIMIT_TENSOR_MAPS);
    if (info->map_count && !info->maps)
        return report_fault(r, "%zu tensor maps at NULL", info->map_count);
    for (size_t i = 0; i < info->map_count; i++)
        if (!check_map(info, i, r))
            return false;
    return true;
}

static bool check_info(const tilus_kernel_info *info, Report r)
{
    if (!info || !is_name(info->name))
        return report_fault(r, "the program has no proper name");
    return check_args(info, r) && check_grid(info, r) && check_block(info, r) &&
           check_cluster(info, r) && check_workspace(info, r) && check_maps(info, r);
}

bool artefact_check_info(const tilus_kernel_info *info, char *message, size_t size)
{
    return check_info(info, (Report){message, size});
}

/* ---- the whole ------------------------------------------------------ */

static bool check_text(const char *text, const char *what, Report r)
{
    return (text && utf8_valid(text, strlen(text))) || report_fault(r, "the %s is not UTF-8", what);
}

static bool check_ptx(const tilus_artefact *a, Report r)
{
    enum { OLDEST = 10, NEWEST = 999 };
    if (!is_target(a->target))
        return report_fault(r, "the target is not like sm_90a");
    if (a->ptx_version < OLDEST || a->ptx_version > NEWEST)
        return report_fault(r, "PTX version %u, there are %d to %d", a->ptx_version, OLDEST,
                            NEWEST);
    if (!a->ptx || !*a->ptx)
        return report_fault(r, "there is no PTX");
    return true;
}

bool artefact_check(const tilus_artefact *a, char *message, size_t size)
{
    Report r = {message, size};
    return check_info(a->info, r) && check_ptx(a, r) && check_text(a->ptx, "PTX", r) &&
           check_text(a->source, "source", r) && check_text(a->parameters, "parameters", r) &&
           check_text(a->compiler, "name of the compiler", r);
}
