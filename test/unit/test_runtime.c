/* The runtime on a fake driver, and the checks of launch arguments. */
#define _GNU_SOURCE
#include "cuda_api.h"
#include "fake_cuda.h"
#include "support/scalar.h"
#include "tilus/runtime.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define C(n) {TILUS_CODE_CONSTANT, n}
#define A(n) {TILUS_CODE_ARGUMENT, n}
#define OP(id) {TILUS_CODE_OPERATOR, SCALAR_##id}

/* The state of the fake driver, which stays loaded. */
static FakeCuda *fake;

static const char ptx[] =
    ".entry scale(.param .u64 p, .param .u32 m, .param .u32 n, .param .u64 k)";

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
    .grid = {grid_x, grid_y, grid_z}, .threads = 64, .shared_bytes = 100 * 1024,
};

/* The same with a workspace of 256 bytes, all zeroed. */
static const size_t one_code = 1;
static const tilus_code *const sixteen[] = {(const tilus_code[]){C(16)}};
static const tilus_workspace_tensor tensor = {"w", 32, true, 1, &one_code, sixteen};

static tilus_kernel_info scale_with_workspace(void)
{
    tilus_kernel_info info = scale;
    info.workspace_count = 1;
    info.workspace = &tensor;
    return info;
}

static int set_up(void **state)
{
    (void)state;
    setenv("TILUS_LIBCUDA", TILUS_FAKE_CUDA, 1);
    unsetenv("TILUS_FAKE_FAIL");
    if (!fake) {
        void *library = dlopen(TILUS_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
        fake = library ? dlsym(library, "fake_cuda") : NULL;
    }
    if (!fake)
        return -1;
    memset(fake, 0, sizeof *fake);
    fake->device_count = 1;
    return 0;
}

static void assert_nothing_left(void)
{
    assert_int_equal(fake->retained, 0);
    assert_int_equal(fake->current, 0);
    assert_int_equal(fake->modules, 0);
    assert_int_equal(fake->allocations, 0);
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static tilus_rt *open_fake(void)
{
    char message[256];
    tilus_rt *rt;
    assert_int_equal(tilus_rt_open(0, &rt, message, sizeof message), TILUS_OK);
    return rt;
}

/* ---- opening -------------------------------------------------------- */

static void opens_and_closes(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    assert_string_equal(tilus_rt_device_name(rt), "Fake 100");
    assert_int_equal(tilus_rt_compute_capability(rt), 86);
    assert_int_equal(tilus_rt_driver_version(rt), 13000);
    assert_int_equal(fake->retained, 1);
    assert_int_equal(fake->current, 0);
    assert_int_equal(tilus_rt_synchronize(rt), TILUS_OK);
    tilus_rt_close(rt);
    tilus_rt_close(NULL);
    assert_nothing_left();
}

static void assert_open_fails(int device, tilus_status status, const char *part)
{
    char message[512];
    tilus_rt *rt = (tilus_rt *)message;
    assert_int_equal(tilus_rt_open(device, &rt, message, sizeof message), status);
    assert_null(rt);
    assert_contains(message, part);
    assert_nothing_left();
}

static void says_why_it_cannot_open(void **state)
{
    (void)state;
    assert_open_fails(1, TILUS_ERROR_NO_DEVICE, "no CUDA device 1, the machine has 1");
    assert_open_fails(-1, TILUS_ERROR_NO_DEVICE, "no CUDA device -1");
    fake->device_count = 0;
    assert_open_fails(0, TILUS_ERROR_NO_DEVICE, "no CUDA device");
    setenv("TILUS_FAKE_FAIL", "cuInit:100", 1);
    assert_open_fails(0, TILUS_ERROR_NO_DEVICE, "cuInit(0): CUDA_ERROR_NO_DEVICE");
    setenv("TILUS_FAKE_FAIL", "cuInit:34", 1);
    assert_open_fails(0, TILUS_ERROR_NO_DRIVER, "CUDA_ERROR_STUB_LIBRARY");
    setenv("TILUS_FAKE_FAIL", "cuInit:12345", 1);
    assert_open_fails(0, TILUS_ERROR_DRIVER, "unknown error (12345");
    setenv("TILUS_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    assert_open_fails(0, TILUS_ERROR_NO_DRIVER, "no CUDA driver: /nonexistent/libcuda.so.1");
    setenv("TILUS_LIBCUDA", "libm.so.6", 1);
    assert_open_fails(0, TILUS_ERROR_NO_DRIVER, "libm.so.6 is too old: it has no cu");
}

static void cuts_a_long_message(void **state)
{
    (void)state;
    char message[8] = "-------";
    tilus_rt *rt;
    fake->device_count = 0;
    assert_int_equal(tilus_rt_open(0, &rt, message, 6), TILUS_ERROR_NO_DEVICE);
    assert_string_equal(message, "no CU");
    assert_int_equal(message[6], '-');
    assert_int_equal(tilus_rt_open(0, &rt, NULL, 0), TILUS_ERROR_NO_DEVICE);
}

/* ---- failures of the driver ----------------------------------------- */

/* Everything the runtime does, up to the first failure, which is described in
 * message[0..size). */
static tilus_status use_everything(char *message, size_t size)
{
    tilus_rt *rt;
    tilus_status status = tilus_rt_open(0, &rt, message, size);
    if (status != TILUS_OK)
        return status;
    enum { WORKSPACE = 256 };
    uint64_t address = 0;
    tilus_kernel *kernel = NULL;
    tilus_kernel_info info = scale_with_workspace();
    char bytes[64] = "data", back[64];
    tilus_arg args[] = {{.integer = 0}, {.integer = 32}, {.integer = 3}, {.integer = 1}};
    status = tilus_rt_allocate(rt, WORKSPACE, &address);
    if (status == TILUS_OK)
        status = tilus_rt_fill(rt, address, 0, sizeof bytes);
    if (status == TILUS_OK)
        status = tilus_rt_upload(rt, address, bytes, sizeof bytes);
    if (status == TILUS_OK)
        status = tilus_kernel_load(rt, ptx, &info, &kernel);
    args[0].pointer = address;
    if (status == TILUS_OK)
        status = tilus_launch(kernel, NULL, args, COUNT(args), address, WORKSPACE);
    if (status == TILUS_OK)
        status = tilus_rt_synchronize(rt);
    if (status == TILUS_OK)
        status = tilus_rt_download(rt, back, address, sizeof back);
    snprintf(message, size, "%s", tilus_rt_error(rt));
    tilus_kernel_unload(kernel);
    if (address && tilus_rt_release(rt, address) != TILUS_OK && status == TILUS_OK) {
        status = TILUS_ERROR_DRIVER;
        snprintf(message, size, "%s", tilus_rt_error(rt));
    }
    tilus_rt_close(rt);
    return status;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *name, *symbol;
    } calls[] = {
#define CUDA_API(name, symbol, parameters) {#name "(", #symbol},
#include "cuda_api.def"
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        char spec[64], message[1024] = "";
        snprintf(spec, sizeof spec, "%s:719", calls[i].symbol);
        set_up(NULL);
        fake->fail = spec;
        tilus_status status = use_everything(message, sizeof message);
        assert_nothing_left();
        /* These are not told to fail (errors), or have nobody to tell. */
        if (strstr(calls[i].name, "cuGetError") || strstr(calls[i].name, "cuModuleUnload") ||
            strstr(calls[i].name, "cuDevicePrimaryCtxRelease"))
            continue;
        assert_int_equal(status, TILUS_ERROR_DRIVER);
        assert_contains(message, calls[i].name);
        assert_contains(message, "CUDA_ERROR_LAUNCH_FAILED (719: unspecified launch failure)");
    }
}

static void fails_cleanly_at_any_moment(void **state)
{
    (void)state;
    char message[1024];
    assert_int_equal(use_everything(message, sizeof message), TILUS_OK);
    enum { CLEANING_UP = 7 };   /* push unload pop, push free pop, release */
    int calls = fake->calls - CLEANING_UP;
    assert_true(calls > 20);
    for (int i = 1; i <= calls; i++) {
        char spec[64];
        snprintf(spec, sizeof spec, "%d:719", i);
        set_up(NULL);
        fake->fail = spec;
        assert_int_equal(use_everything(message, sizeof message), TILUS_ERROR_DRIVER);
        assert_contains(message, "CUDA_ERROR_LAUNCH_FAILED");
        assert_nothing_left();
    }
}

/* ---- loading -------------------------------------------------------- */

static void reports_the_jit_log(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    assert_int_equal(tilus_kernel_load(rt, "bad", &scale, &kernel), TILUS_ERROR_DRIVER);
    assert_null(kernel);
    assert_contains(tilus_rt_error(rt), "cuModuleLoadDataEx(");
    assert_contains(tilus_rt_error(rt), "CUDA_ERROR_INVALID_PTX");
    assert_contains(tilus_rt_error(rt), ")\nptxas application ptx input, line 9; fatal");
    assert_int_equal(tilus_kernel_load(rt, "other", &scale, &kernel), TILUS_ERROR_DRIVER);
    assert_contains(tilus_rt_error(rt), "CUDA_ERROR_NOT_FOUND");
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void describes_a_kernel(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    tilus_kernel_info info = scale;
    assert_int_equal(tilus_kernel_load(rt, ptx, &info, &kernel), TILUS_OK);
    assert_int_equal(tilus_kernel_registers(kernel), 40);
    assert_int_equal(tilus_kernel_local_bytes(kernel), 16);
    assert_int_equal(fake->function_shared, 100 * 1024);
    tilus_kernel_unload(kernel);

    fake->function_shared = 0;
    info.shared_bytes = 48 * 1024;
    assert_int_equal(tilus_kernel_load(rt, ptx, &info, &kernel), TILUS_OK);
    assert_int_equal(fake->function_shared, 0);
    tilus_kernel_unload(kernel);

    info.shared_bytes = (size_t)1 << 32;
    assert_int_equal(tilus_kernel_load(rt, ptx, &info, &kernel), TILUS_ERROR_UNSUPPORTED);
    assert_contains(tilus_rt_error(rt), "program needs 4294967296 bytes of shared memory");
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* The kernel keeps nothing of the info that it was loaded with. */
static void copies_the_info(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    tilus_arg_info *args = malloc(sizeof scale_args);
    tilus_code *code = malloc(sizeof grid_x);
    char *name = strdup("scale"), *m = strdup("m");
    memcpy(args, scale_args, sizeof scale_args);
    memcpy(code, grid_x, sizeof grid_x);
    args[1].name = m;
    tilus_kernel_info info = scale;
    info.name = name;
    info.args = args;
    info.grid[0] = code;
    assert_int_equal(tilus_kernel_load(rt, ptx, &info, &kernel), TILUS_OK);
    free(args);
    free(code);
    free(name);
    free(m);
    tilus_arg wrong[] = {{.pointer = 0}, {.integer = 33}, {.integer = 3}, {.integer = 1}};
    assert_int_equal(tilus_launch(kernel, NULL, wrong, 4, 0, 0), TILUS_ERROR_ARGUMENT);
    assert_contains(tilus_rt_error(rt), "argument %m = 33 is not divisible by 16");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

/* ---- launching ------------------------------------------------------ */

static void packs_arguments(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    assert_int_equal(tilus_kernel_load(rt, ptx, &scale, &kernel), TILUS_OK);
    tilus_arg args[] = {{.pointer = 0x7f0123456780}, {.integer = 48}, {.integer = 10},
                        {.integer = 0x123456789abc}};
    assert_int_equal(tilus_launch(kernel, NULL, args, 4, 0, 0), TILUS_OK);
    assert_int_equal(fake->launches, 1);
    assert_memory_equal(fake->grid, ((unsigned[]){3, 4, 7}), sizeof fake->grid);
    assert_memory_equal(fake->block, ((unsigned[]){64, 1, 1}), sizeof fake->block);
    assert_int_equal(fake->shared, 100 * 1024);
    assert_memory_equal(fake->parameters,
                        ((uint64_t[]){0x7f0123456780, 48, 10, 0x123456789abc}),
                        4 * sizeof(uint64_t));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void an_empty_grid_runs_nothing(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    assert_int_equal(tilus_kernel_load(rt, ptx, &scale, &kernel), TILUS_OK);
    tilus_arg args[] = {{.pointer = 0}, {.integer = 32}, {.integer = 0}, {.integer = 1}};
    assert_int_equal(tilus_launch(kernel, NULL, args, 4, 0, 0), TILUS_OK);
    assert_int_equal(fake->launches, 0);
    args[2].integer = 1;
    assert_int_equal(tilus_launch(kernel, NULL, args, 4, 0, 0), TILUS_OK);
    assert_int_equal(fake->launches, 1);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void moves_memory(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    uint64_t address;
    char back[8];
    assert_int_equal(tilus_rt_allocate(rt, 0, &address), TILUS_OK);
    assert_int_equal(tilus_rt_release(rt, address), TILUS_OK);
    assert_int_equal(tilus_rt_allocate(rt, 8, &address), TILUS_OK);
    assert_int_equal(tilus_rt_fill(rt, address, 'x', 8), TILUS_OK);
    assert_int_equal(tilus_rt_upload(rt, address + 2, "abc", 3), TILUS_OK);
    assert_int_equal(tilus_rt_download(rt, back, address, 8), TILUS_OK);
    assert_memory_equal(back, "xxabcxxx", 8);
    assert_int_equal(tilus_rt_release(rt, address), TILUS_OK);
    setenv("TILUS_FAKE_FAIL", "cuMemAlloc_v2:2", 1);
    address = 1;
    assert_int_equal(tilus_rt_allocate(rt, 8, &address), TILUS_ERROR_DRIVER);
    assert_int_equal(address, 0);
    assert_contains(tilus_rt_error(rt),
                    "cuMemAlloc(&pointer, size): CUDA_ERROR_OUT_OF_MEMORY");
    unsetenv("TILUS_FAKE_FAIL");
    assert_int_equal(tilus_rt_synchronize(rt), TILUS_OK);
    assert_string_equal(tilus_rt_error(rt), "");
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- checks without a driver ---------------------------------------- */

/* Checks (p, m, n, k); NULL expects success. */
static void assert_check(uint64_t p, int64_t m, int64_t n, int64_t k, const char *expected)
{
    int64_t grid[3];
    char message[256] = "stale";
    tilus_arg args[] = {{.pointer = p}, {.integer = m}, {.integer = n}, {.integer = k}};
    tilus_status status = tilus_kernel_check(&scale, args, 4, grid, message, sizeof message);
    assert_int_equal(status, expected ? TILUS_ERROR_ARGUMENT : TILUS_OK);
    assert_string_equal(message, expected ? expected : "");
}

static void names_the_broken_fact(void **state)
{
    (void)state;
    assert_check(32, 64, 5, 6, NULL);
    assert_check(0x7f0008, 64, 5, 6, "argument %p = 0x7f0008 is not aligned to 16 bytes");
    assert_check(0, 100, 5, 6, "argument %m = 100 is not divisible by 16");
    assert_check(0, 4112, 5, 6, "argument %m = 4112 is outside [-64, 4096]");
    assert_check(0, -80, 5, 6, "argument %m = -80 is outside [-64, 4096]");
    assert_check(0, INT64_C(1) << 31, 5, 6, "argument %m = 2147483648 does not fit in i32");
    assert_check(0, 64, -1, 6, "argument %n = -1 does not fit in u32");
    assert_check(0, 64, INT64_C(1) << 32, 6, "argument %n = 4294967296 does not fit in u32");
}

static void limits_the_grid(void **state)
{
    (void)state;
    assert_check(0, -64, 5, 6, "grid extent 0 is -4");
    assert_check(0, 64, 3 * 65535, 6, NULL);
    assert_check(0, 64, 3 * 65535 + 1, 6, "grid extent 1 is 65536, more than 65535");
    assert_check(0, 64, 5, INT64_MIN, "grid extent 2 is -9223372036854775808");
}

static void counts_arguments(void **state)
{
    (void)state;
    int64_t grid[3];
    char message[64];
    tilus_arg args[5] = {{0}};
    assert_int_equal(tilus_kernel_check(&scale, args, 5, grid, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_string_equal(message, "program takes 4 arguments, got 5");
    assert_int_equal(tilus_kernel_check(&scale, NULL, 0, grid, NULL, 0), TILUS_ERROR_ARGUMENT);
}

/* Evaluates one code as the first extent of a program with (p, m, n, k). */
static void assert_extent(const tilus_code *code, size_t length, int64_t expected,
                          const char *error)
{
    int64_t grid[3];
    char message[128];
    tilus_arg args[] = {{.pointer = 0}, {.integer = 64}, {.integer = 10}, {.integer = 23}};
    tilus_kernel_info info = scale;
    info.grid_rank = 1;
    info.grid[0] = code;
    info.grid_length[0] = length;
    tilus_status status = tilus_kernel_check(&info, args, 4, grid, message, sizeof message);
    assert_string_equal(message, error ? error : "");
    assert_int_equal(status, error ? TILUS_ERROR_ARGUMENT : TILUS_OK);
    if (!error)
        assert_int_equal(grid[0], expected);
    if (!error)
        assert_true(grid[1] == 1 && grid[2] == 1);
}

#define EXTENT(expected, error, ...)                                          \
    assert_extent((const tilus_code[]){__VA_ARGS__},                          \
                  COUNT(((const tilus_code[]){__VA_ARGS__})), expected, error)

static void evaluates_grids(void **state)
{
    (void)state;
    EXTENT(8, NULL, A(3), C(3), OP(ceil_div));
    EXTENT(7, NULL, A(3), C(3), OP(div));
    EXTENT(2, NULL, A(3), C(3), OP(mod));
    EXTENT(10, NULL, A(2), A(1), OP(min));
    EXTENT(64, NULL, A(2), A(1), OP(max));
    EXTENT(13, NULL, A(2), OP(neg), A(3), OP(add));
    EXTENT(54 * 2, NULL, A(1), A(2), OP(sub), C(2), OP(mul));
    EXTENT(INT32_MAX, NULL, C(INT32_MAX));
    EXTENT(0, "grid extent 0 is 2147483648, more than 2147483647", C(INT64_C(1) << 31));
    EXTENT(0, "grid extent 0: division by zero", A(1), C(0), OP(div));
    EXTENT(0, "grid extent 0: overflow of 64 bits", C(INT64_MAX), C(2), OP(mul));
}

static void refuses_malformed_code(void **state)
{
    (void)state;
    EXTENT(0, "grid extent 0: malformed code", A(4));
    EXTENT(0, "grid extent 0: malformed code", C(1), OP(add));
    EXTENT(0, "grid extent 0: malformed code", OP(neg));
    EXTENT(0, "grid extent 0: malformed code", C(1), C(2));
    EXTENT(0, "grid extent 0: malformed code", C(1), OP(OP_COUNT));
    assert_extent(NULL, 0, 0, "grid extent 0: malformed code");
    tilus_code *many = calloc(100000, sizeof *many);
    assert_extent(many, 100000, 0, "grid extent 0: malformed code");
    free(many);
}

static void names_every_status(void **state)
{
    (void)state;
    assert_string_equal(tilus_status_name(TILUS_OK), "TILUS_OK");
    for (int i = 0; i <= TILUS_ERROR_INTERNAL; i++)
        assert_int_equal(strncmp(tilus_status_name((tilus_status)i), "TILUS_", 6), 0);
    assert_string_equal(tilus_status_name((tilus_status)99), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opens_and_closes, set_up),
        cmocka_unit_test_setup(says_why_it_cannot_open, set_up),
        cmocka_unit_test_setup(cuts_a_long_message, set_up),
        cmocka_unit_test_setup(every_call_may_fail, set_up),
        cmocka_unit_test_setup(fails_cleanly_at_any_moment, set_up),
        cmocka_unit_test_setup(reports_the_jit_log, set_up),
        cmocka_unit_test_setup(describes_a_kernel, set_up),
        cmocka_unit_test_setup(copies_the_info, set_up),
        cmocka_unit_test_setup(packs_arguments, set_up),
        cmocka_unit_test_setup(an_empty_grid_runs_nothing, set_up),
        cmocka_unit_test_setup(moves_memory, set_up),
        cmocka_unit_test(names_the_broken_fact),
        cmocka_unit_test(limits_the_grid),
        cmocka_unit_test(counts_arguments),
        cmocka_unit_test(evaluates_grids),
        cmocka_unit_test(refuses_malformed_code),
        cmocka_unit_test(names_every_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
