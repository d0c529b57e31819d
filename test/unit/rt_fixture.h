/* A runtime on the fake driver, and a kernel for it. Include after cmocka. */
#ifndef TILUS_TEST_RT_FIXTURE_H
#define TILUS_TEST_RT_FIXTURE_H

#include "fake_cuda.h"
#include "support/scalar.h"
#include "tilus/runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define C(n) {TILUS_CODE_CONSTANT, n}
#define A(n) {TILUS_CODE_ARGUMENT, n}
#define OP(id) {TILUS_CODE_OPERATOR, SCALAR_##id}

/* The state of the fake driver, which stays loaded. */
static FakeCuda *fake;
static FakeSetCurrent *set_current;

#define SCALE_PARAMETERS "(.param .u64 p, .param .u32 m, .param .u32 n, .param .u64 k)"
static const char ptx[] = ".entry scale" SCALE_PARAMETERS;

static const tilus_arg_info scale_args[] = {
    {"p", TILUS_ARG_POINTER, "f16", 1, 0, 0, 16},
    {"m", TILUS_ARG_I32, "i32", 16, -64, 4096, 1},
    {"n", TILUS_ARG_U32, "u32", 1, 0, UINT32_MAX, 1},
    {"k", TILUS_ARG_I64, "i64", 1, INT64_MIN, INT64_MAX, 1},
};

/* m / 16 by ceil_div(n, 3) by min(k, 7) */
static const tilus_code grid_x[] = {A(1), C(16), OP(div)};
static const tilus_code grid_y[] = {A(2), C(3), OP(ceil_div)};
static const tilus_code grid_z[] = {A(3), C(7), OP(min)};

static const tilus_kernel_info scale = {
    .name = "scale", .arg_count = COUNT(scale_args), .args = scale_args, .grid_rank = 3,
    .grid_length = {COUNT(grid_x), COUNT(grid_y), COUNT(grid_z)},
    .grid = {grid_x, grid_y, grid_z}, .threads = 64, .shared_bytes = 96 * 1024,
};

/* A fixture with a workspace of 256 bytes, all zeroed. */
static const size_t one_code = 1;
static const tilus_code *const sixteen[] = {(const tilus_code[]){C(16)}};
static const tilus_workspace_tensor tensor = {"w", 32, true, 1, &one_code, sixteen};

static inline tilus_kernel_info scale_with_workspace(void)
{
    tilus_kernel_info info = scale;
    info.workspace_count = 1;
    info.workspace = &tensor;
    return info;
}

/* Arguments that are good, for a grid of [2, 1, 1]. */
static const tilus_arg good_args[] = {
    {.pointer = 0x1000}, {.integer = 32}, {.integer = 3}, {.integer = 1}};

static inline void use_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    setenv("TILUS_LIBCUDA", path, 1);
    unsetenv("TILUS_FAKE_FAIL");
    fake = dlsym(library, "fake_cuda");
    *(void **)&set_current = dlsym(library, "fake_set_current");
    memset(fake, 0, sizeof *fake);
    fake->device_count = 1;
    fake->driver_version = 13000;
    set_current(FAKE_NO_CONTEXT);
}

static inline int set_up(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA);
    return 0;
}

static inline void assert_nothing_left(void)
{
    assert_int_equal(fake->retained, 0);
    assert_int_equal(fake->current, 0);
    assert_int_equal(fake->modules, 0);
    assert_int_equal(fake->libraries, 0);
    assert_int_equal(fake->allocations, 0);
    assert_int_equal(fake->graphs, 0);
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Checks that a call failed like this, with this in its text. */
static inline void assert_fails(tilus_status got, tilus_status status, const char *part)
{
    if (got != status)
        fail_msg("%s, not %s: %s", tilus_status_name(got), tilus_status_name(status),
                 tilus_rt_error());
    assert_contains(tilus_rt_error(), part);
}

#define assert_ok(call)                                                       \
    do {                                                                      \
        tilus_status status_ = (call);                                        \
        if (status_ != TILUS_OK)                                              \
            fail_msg("%s: %s", tilus_status_name(status_), tilus_rt_error()); \
    } while (0)

/* Names of the driver calls that a function makes, in order. */
#define assert_calls(call, expected)                                          \
    do {                                                                      \
        char trace_[FAKE_TRACE] = "";                                         \
        fake->trace = trace_;                                                 \
        assert_ok(call);                                                      \
        fake->trace = NULL;                                                   \
        assert_string_equal(trace_, expected);                                \
    } while (0)

static inline tilus_rt *open_fake(void)
{
    char message[256];
    tilus_rt *rt;
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    return rt;
}

static inline tilus_artefact artefact_of(const tilus_kernel_info *info, const char *text)
{
    return (tilus_artefact){.info = info, .target = "sm_80", .ptx_version = 70, .ptx = text};
}

static inline tilus_kernel *create(tilus_rt *rt, const tilus_kernel_info *info,
                                   const char *text)
{
    const tilus_artefact artefact = artefact_of(info, text);
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    return kernel;
}

static inline tilus_status launch(tilus_kernel *kernel, tilus_stream stream)
{
    return tilus_launch(kernel, stream, good_args, COUNT(good_args), 0, 0);
}

#endif
