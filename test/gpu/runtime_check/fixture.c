/* Reports, kernels and memory of the checks. */
#include "check.h"

#include <stdarg.h>
#include <string.h>

/* ---- programs.tilus ---------------------------------------------------- */

static const tilus_arg_info args_info[] = {
    {"x", TILUS_ARG_POINTER, "i32", 1, 0, 0, 16},
    {"y", TILUS_ARG_POINTER, "i32", 1, 0, 0, 16},
    {"n", TILUS_ARG_I32, "i32", 128, INT32_MIN, INT32_MAX, 1},
};
static const tilus_code count_code[] = {{TILUS_CODE_ARGUMENT, 2}};
static const size_t count_length = 1;
static const tilus_code *const extents[] = {count_code};
static const tilus_workspace_tensor tensor = {"w", 32, true, 1, &count_length, extents};

/* %n / 128, of the one n that there is: operators have no public numbers. */
static const tilus_code grid_code[] = {{TILUS_CODE_CONSTANT, N / BLOCK}};

const tilus_kernel_info accumulate = {
    .name = "accumulate", .arg_count = 3, .args = args_info, .grid_rank = 1,
    .grid_length = {1}, .grid = {grid_code}, .threads = 32};
const tilus_kernel_info accumulate_in_workspace = {
    .name = "accumulate_in_workspace", .arg_count = 3, .args = args_info, .grid_rank = 1,
    .grid_length = {1}, .grid = {grid_code}, .threads = 32, .workspace_count = 1,
    .workspace = &tensor};
const tilus_kernel_info accumulate_early = {
    .name = "accumulate_early", .arg_count = 3, .args = args_info, .grid_rank = 1,
    .grid_length = {1}, .grid = {grid_code}, .threads = 32, .overlaps = true};

/* ---- reports -------------------------------------------------------------- */

void fail_check(Check *c, const char *name, const char *format, ...)
{
    char text[4096];
    va_list args;
    if (c->failed)
        return;
    c->failed = true;
    c->failures++;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *end = text; (end = strchr(end, '\n'));)
        *end = '|';
    printf("FAIL %s: %s\n", name, text);
}

void skip_check(Check *c, const char *name, const char *why)
{
    c->skipped = true;
    printf("SKIP %s: %s\n", name, why);
}

void expect_ok(Check *c, const char *name, tilus_status status)
{
    if (status != TILUS_OK)
        fail_check(c, name, "%s: %s", tilus_status_name(status), tilus_rt_error());
}

void expect_raw(Check *c, const char *name, int result)
{
    if (result != 0)
        fail_check(c, name, "a driver call of the check gives %d", result);
}

void expect_error(Check *c, const char *name, tilus_status got, tilus_status status,
                  const char *part, const char *other)
{
    if (got != status)
        fail_check(c, name, "%s, not %s: %s", tilus_status_name(got),
                   tilus_status_name(status), tilus_rt_error());
    else if (!strstr(tilus_rt_error(), part) || !strstr(tilus_rt_error(), other))
        fail_check(c, name, "the text lacks \"%s\" or \"%s\": %s", part, other,
                   tilus_rt_error());
}

/* ---- kernels and buffers -------------------------------------------------- */

tilus_artefact make_artefact(const Check *c, const tilus_kernel_info *info, bool with_cubin)
{
    const char *line = strstr(c->ptx, "\n.version ");
    unsigned major = 0, minor = 0;
    if (line)
        sscanf(line, "\n.version %u.%u", &major, &minor);
    return (tilus_artefact){
        .info = info, .target = c->target, .ptx_version = 10 * major + minor, .ptx = c->ptx,
        .cubin = with_cubin ? c->cubin : NULL, .cubin_size = with_cubin ? c->cubin_size : 0};
}

tilus_kernel *make_kernel(Check *c, const char *name, const tilus_kernel_info *info,
                          bool with_cubin)
{
    const tilus_artefact artefact = make_artefact(c, info, with_cubin);
    tilus_kernel *kernel = NULL;
    expect_ok(c, name, tilus_kernel_create(c->rt, &artefact, &kernel));
    return kernel;
}

tilus_kernel *prepare_kernel(Check *c, const char *name, const tilus_kernel_info *info,
                             int device)
{
    tilus_kernel *kernel = make_kernel(c, name, info, false);
    if (kernel)
        expect_ok(c, name, tilus_kernel_prepare(kernel, device));
    return kernel;
}

Buffers make_buffers(Check *c, const char *name, int device)
{
    Buffers b = {.device = device};
    static int32_t x[N];
    for (int i = 0; i < N; i++)
        x[i] = i;
    expect_ok(c, name, tilus_rt_allocate(c->rt, device, sizeof x, &b.x));
    expect_ok(c, name, tilus_rt_allocate(c->rt, device, sizeof x, &b.y));
    expect_ok(c, name, tilus_rt_allocate(c->rt, device, sizeof x, &b.workspace));
    expect_ok(c, name, tilus_rt_upload(c->rt, device, b.x, x, sizeof x));
    expect_ok(c, name, tilus_rt_fill(c->rt, device, b.y, 0, sizeof x));
    expect_ok(c, name, tilus_rt_fill(c->rt, device, b.workspace, 0xa5, sizeof x));
    expect_ok(c, name, tilus_rt_synchronize(c->rt, device));
    return b;
}

void free_buffers(Check *c, const Buffers *b)
{
    tilus_rt_release(c->rt, b->device, b->x);
    tilus_rt_release(c->rt, b->device, b->y);
    tilus_rt_release(c->rt, b->device, b->workspace);
}

tilus_status launch(tilus_kernel *kernel, void *stream, const Buffers *b)
{
    const tilus_arg args[] = {{.pointer = b->x}, {.pointer = b->y}, {.integer = N}};
    bool works = tilus_kernel_artefact(kernel)->info->workspace_count > 0;
    return tilus_launch(kernel, stream, args, 3, works ? b->workspace : 0, works ? 4 * N : 0);
}

void expect_sums(Check *c, const char *name, const Buffers *b, int launches)
{
    static int32_t y[N];
    expect_ok(c, name, tilus_rt_synchronize(c->rt, b->device));
    expect_ok(c, name, tilus_rt_download(c->rt, b->device, y, b->y, sizeof y));
    for (int i = 0; i < N && !c->failed; i++)
        if (y[i] != launches * i)
            fail_check(c, name, "element %d is %d after %d launches, not %d", i, y[i],
                       launches, launches * i);
}
