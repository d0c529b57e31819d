/* The runtime on a fake driver: devices, kernels, launches, memory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

/* ---- opening -------------------------------------------------------- */

static void describes_devices(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    assert_int_equal(tilus_rt_device_count(rt), 2);
    assert_int_equal(tilus_rt_driver_version(rt), 13000);
    assert_string_equal(tilus_rt_device_name(rt, 1), "Fake 101");
    assert_int_equal(tilus_rt_compute_capability(rt, 1), 86);
    assert_int_equal(tilus_rt_device_memory(rt, 1), (size_t)2 << 30);
    assert_int_equal(tilus_rt_multiprocessors(rt, 1), 132);
    assert_int_equal(tilus_rt_shared_memory(rt, 1), 101376);
    for (int none = -1; none <= 2; none += 3) {
        assert_string_equal(tilus_rt_device_name(rt, none), "");
        assert_true(tilus_rt_compute_capability(rt, none) == 0 &&
                    tilus_rt_device_memory(rt, none) == 0 &&
                    tilus_rt_multiprocessors(rt, none) == 0 &&
                    tilus_rt_shared_memory(rt, none) == 0);
        assert_fails(tilus_rt_synchronize(rt, none), TILUS_ERROR_NO_DEVICE,
                     "the process has 2");
    }
    assert_int_equal(fake->retained, 0);    /* not before somebody needs it */
    tilus_rt_close(rt);
    tilus_rt_close(NULL);
    assert_nothing_left();
}

static void assert_open_fails(const char *library, tilus_status status, const char *part)
{
    const tilus_rt_options options = {.struct_size = sizeof options, .library = library};
    char message[512];
    tilus_rt *rt = (tilus_rt *)message;
    assert_int_equal(tilus_rt_open(&options, &rt, message, sizeof message), status);
    assert_null(rt);
    assert_contains(message, part);
    assert_nothing_left();
}

static void says_why_it_cannot_open(void **state)
{
    (void)state;
    static const struct {
        const char *fail;
        tilus_status status;
        const char *text;
    } cases[] = {
        {"cuInit:100", TILUS_ERROR_NO_DEVICE, "cuInit: CUDA_ERROR_NO_DEVICE"},
        {"cuInit:100", TILUS_ERROR_NO_DEVICE, "CUDA_VISIBLE_DEVICES"},
        {"cuInit:34", TILUS_ERROR_NO_DRIVER, "CUDA_ERROR_STUB_LIBRARY"},
        {"cuInit:34", TILUS_ERROR_NO_DRIVER, "a toolkit's stub, for linking only"},
        {"cuInit:3", TILUS_ERROR_STATE, "was forked from has used CUDA already: fork before"},
        {"cuInit:803", TILUS_ERROR_NO_DRIVER, "of two versions"},
        {"cuInit:12345", TILUS_ERROR_DRIVER, "unknown error (12345"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fake->fail = cases[i].fail;
        assert_open_fails(NULL, cases[i].status, cases[i].text);
    }
    fake->fail = NULL;
    fake->device_count = 0;
    assert_open_fails(NULL, TILUS_ERROR_NO_DEVICE, "no CUDA device");
    setenv("TILUS_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    assert_open_fails(NULL, TILUS_ERROR_NO_DRIVER,
                      "no CUDA driver: /nonexistent/libcuda.so.1");
    assert_open_fails("/elsewhere/libcuda.so.1", TILUS_ERROR_NO_DRIVER, "/elsewhere/libcuda");
    assert_open_fails("libm.so.6", TILUS_ERROR_NO_DRIVER,
                      "libm.so.6 is too old: it has no cu");
}

static void cuts_a_long_message(void **state)
{
    (void)state;
    char message[8] = "-------";
    tilus_rt *rt;
    fake->device_count = 0;
    assert_int_equal(tilus_rt_open(NULL, &rt, message, 6), TILUS_ERROR_NO_DEVICE);
    assert_string_equal(message, "no CU");
    assert_int_equal(message[6], '-');
    assert_int_equal(tilus_rt_open(NULL, &rt, NULL, 0), TILUS_ERROR_NO_DEVICE);
}

/* ---- kernels -------------------------------------------------------- */

static void prepares_a_kernel(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_int_equal(fake->loads, 0);
    assert_int_equal(tilus_kernel_registers(kernel, 0), -1);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_int_equal(tilus_kernel_registers(kernel, 0), 40);
    assert_int_equal(tilus_kernel_local_bytes(kernel, 0), 16);
    assert_int_equal(tilus_kernel_local_bytes(kernel, 1), -1);
    assert_int_equal(fake->function_shared, 96 * 1024);
    assert_int_equal(fake->loaded_now, 1);
    assert_int_equal(fake->current, 0);
    assert_calls(tilus_kernel_prepare(kernel, 0), "");
    assert_fails(tilus_kernel_prepare(kernel, 1), TILUS_ERROR_NO_DEVICE, "no CUDA device 1");
    assert_string_equal(tilus_kernel_artefact(kernel)->target, "sm_80");
    tilus_kernel_unload(kernel);

    fake->function_shared = 0;
    tilus_kernel_info info = scale;
    info.shared_bytes = 48 * 1024;
    kernel = create(rt, &info, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_int_equal(fake->function_shared, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Returns true when the code loaded for a device of 8.6 begins with `image`. */
static void assert_loads(const char *driver, const char *target, const char *cubin,
                         const char *image)
{
    use_driver(driver);
    tilus_rt *rt = open_fake();
    tilus_artefact artefact = artefact_of(&scale, ptx);
    artefact.target = target;
    artefact.cubin = cubin;
    artefact.cubin_size = cubin ? strlen(cubin) + 1 : 0;
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_int_equal(strncmp(fake->image, image, strlen(image)), 0);
    assert_ok(launch(kernel, NULL));
    assert_int_equal(fake->modules + fake->libraries, 1);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void takes_machine_code_that_fits(void **state)
{
    (void)state;
    static const char *const drivers[] = {TILUS_FAKE_CUDA, TILUS_FAKE_CUDA_OLD};
    for (size_t i = 0; i < COUNT(drivers); i++) {
        assert_loads(drivers[i], "sm_86", "SASS scale" SCALE_PARAMETERS, "SASS");
        assert_loads(drivers[i], "sm_86", "refused", ".entry");
        assert_loads(drivers[i], "sm_80", "SASS scale" SCALE_PARAMETERS, ".entry");
        assert_loads(drivers[i], "sm_86", NULL, ".entry");
        assert_loads(drivers[i], "sm_80f", NULL, ".entry");
    }
}

/* Newer drivers keep one library for all devices, older ones a module for each. */
static void loads_by_what_the_driver_has(void **state)
{
    (void)state;
    static const char *const drivers[] = {TILUS_FAKE_CUDA, TILUS_FAKE_CUDA_OLD};
    for (int old = 0; old < 2; old++) {
        use_driver(drivers[old]);
        fake->device_count = 2;
        tilus_rt *rt = open_fake();
        tilus_kernel *kernel = create(rt, &scale, ptx);
        assert_ok(tilus_kernel_prepare(kernel, 0));
        assert_ok(tilus_kernel_prepare(kernel, 1));
        assert_int_equal(fake->libraries, old ? 0 : 1);
        assert_int_equal(fake->modules, old ? 2 : 0);
        tilus_kernel_unload(kernel);
        tilus_rt_close(rt);
        assert_nothing_left();
    }
}

static void refuses_a_bad_artefact(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = (tilus_kernel *)rt;
    tilus_kernel_info info = scale;
    tilus_artefact artefact = artefact_of(NULL, ptx);
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT,
                 "description");
    assert_null(kernel);
    artefact = artefact_of(&info, NULL);
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT, "PTX");
    artefact = artefact_of(&info, ptx);
    artefact.target = NULL;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT, "target");
    artefact = artefact_of(&info, ptx);
    info.arg_count = 257;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_UNSUPPORTED,
                 "kernel @scale takes 257 arguments, more than 256");
    info = scale;
    info.args = NULL;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT,
                 "arguments at NULL");
    info = scale;
    info.threads = 33;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT,
                 "kernel @scale: a block of 33 threads, no multiple of 32");
    info = scale;
    info.shared_bytes = (size_t)1 << 32;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT,
                 "4294967296 bytes of shared memory, the limit is 2147483647");
    tilus_rt_close(rt);
}

/* The kernel keeps nothing of what it was made from. */
static void copies_the_artefact(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_arg_info *args = malloc(sizeof scale_args);
    tilus_code *code = malloc(sizeof grid_x);
    char *name = strdup("scale"), *m = strdup("m"), *text = strdup(ptx);
    char *source = strdup("the text");
    memcpy(args, scale_args, sizeof scale_args);
    memcpy(code, grid_x, sizeof grid_x);
    args[1].name = m;
    tilus_kernel_info info = scale_with_workspace();
    info.name = name;
    info.args = args;
    info.grid[0] = code;
    tilus_artefact artefact = artefact_of(&info, text);
    artefact.source = artefact.parameters = artefact.compiler = source;
    artefact.cubin = source;
    artefact.cubin_size = 4;
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    free(args);
    free(code);
    free(name);
    free(m);
    free(text);
    free(source);
    const tilus_artefact *copy = tilus_kernel_artefact(kernel);
    assert_string_equal(copy->source, "the text");
    assert_string_equal(copy->compiler, "the text");
    assert_memory_equal(copy->cubin, "the ", 4);
    assert_string_equal(copy->info->workspace[0].name, "w");
    assert_ok(tilus_kernel_prepare(kernel, 0));
    tilus_arg wrong[] = {{.pointer = 0}, {.integer = 33}, {.integer = 3}, {.integer = 1}};
    assert_fails(tilus_launch(kernel, NULL, wrong, 4, 0, 0), TILUS_ERROR_ARGUMENT,
                 "kernel @scale (sm_80): argument %m = 33 is not divisible by 16");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void loads_an_artefacts_bytes(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    const tilus_artefact artefact = artefact_of(&scale, ptx);
    tilus_kernel *kernel;
    void *bytes;
    size_t size;
    assert_ok(tilus_artefact_write(&artefact, &bytes, &size));
    assert_fails(tilus_kernel_load(rt, bytes, size - 1, &kernel), TILUS_ERROR_ARTEFACT,
                 "artefact of ");
    assert_null(kernel);
    assert_ok(tilus_kernel_load(rt, bytes, size, &kernel));
    free(bytes);
    assert_string_equal(tilus_kernel_artefact(kernel)->ptx, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_ok(launch(kernel, NULL));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- launching ------------------------------------------------------ */

static void packs_arguments(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    tilus_arg args[] = {{.pointer = 0x7f0123456780}, {.integer = 48}, {.integer = 10},
                        {.integer = 0x123456789abc}};
    assert_ok(tilus_launch(kernel, NULL, args, 4, 0, 0));
    assert_int_equal(fake->launches, 1);
    assert_memory_equal(fake->grid, ((unsigned[]){3, 4, 7}), sizeof fake->grid);
    assert_memory_equal(fake->block, ((unsigned[]){64, 1, 1}), sizeof fake->block);
    assert_int_equal(fake->shared, 96 * 1024);
    assert_memory_equal(fake->parameters,
                        ((uint64_t[]){0x7f0123456780, 48, 10, 0x123456789abc}),
                        4 * sizeof(uint64_t));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Each float is rounded to its type, and its code passed in as many bytes. */
static void packs_floats(void **state)
{
    (void)state;
    static const tilus_arg_info args_info[] = {{"h", TILUS_ARG_F16, "f16", 1, 0, 0, 1},
                                               {"b", TILUS_ARG_BF16, "bf16", 1, 0, 0, 1},
                                               {"f", TILUS_ARG_F32, "f32", 1, 0, 0, 1}};
    static const tilus_code one[] = {C(1)};
    const tilus_kernel_info info = {.name = "scale", .arg_count = COUNT(args_info),
                                    .args = args_info, .grid_rank = 1, .grid_length = {1},
                                    .grid = {one}, .threads = 32};
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(
        rt, &info, ".entry scale(.param .u16 h, .param .u16 b, .param .u32 f)");
    assert_ok(tilus_kernel_prepare(kernel, 0));
    tilus_arg args[] = {{.real = 0.1}, {.real = -1e-5}, {.real = 1e-5}};
    assert_ok(tilus_launch(kernel, NULL, args, 3, 0, 0));
    assert_memory_equal(fake->parameters, ((uint64_t[]){0x2e66, 0xb728, 0x3727c5ac}),
                        3 * sizeof(uint64_t));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void names_the_misaligned_pointer(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    tilus_arg args[] = {{.pointer = 0x1004}, {.integer = 32}, {.integer = 3}, {.integer = 1}};
    assert_fails(tilus_launch(kernel, NULL, args, 4, 0, 0), TILUS_ERROR_ARGUMENT,
                 "kernel @scale (sm_80): argument %p = 0x1004 is not aligned to 16 bytes");
    size_t size = 1;
    assert_fails(tilus_workspace_size(kernel, args, 4, &size), TILUS_ERROR_ARGUMENT,
                 "aligned");
    assert_int_equal(size, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void an_empty_grid_runs_nothing(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    tilus_arg args[] = {{.pointer = 0}, {.integer = 32}, {.integer = 0}, {.integer = 1}};
    assert_calls(tilus_launch(kernel, NULL, args, 4, 0, 0), "");
    assert_int_equal(fake->launches, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void a_warm_launch_makes_two_calls(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    tilus_kernel_info info = scale_with_workspace();
    _Alignas(TILUS_WORKSPACE_ALIGN) char memory[256];
    tilus_kernel *kernel = create(rt, &scale, ptx), *filled = create(rt, &info, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_ok(tilus_kernel_prepare(filled, 0));
    set_current(0);
    assert_calls(launch(kernel, &fake->streams[0]), "cuCtxGetCurrent cuLaunchKernel");
    assert_calls(launch(kernel, NULL), "cuCtxGetCurrent cuLaunchKernel");
    assert_calls(tilus_launch(filled, &fake->streams[0], good_args, 4, (uintptr_t)memory, 256),
                 "cuCtxGetCurrent cuMemsetD8Async cuLaunchKernel");
    set_current(FAKE_NO_CONTEXT);
    assert_calls(launch(kernel, &fake->streams[0]),
                 "cuCtxGetCurrent cuStreamGetCtx cuCtxPushCurrent_v2 cuLaunchKernel "
                 "cuCtxPopCurrent_v2");
    assert_ok(tilus_kernel_prepare(kernel, 1));
    set_current(0);
    assert_calls(launch(kernel, NULL), "cuCtxGetCurrent cuLaunchKernel");
    assert_calls(launch(kernel, &fake->streams[0]),
                 "cuCtxGetCurrent cuStreamGetCtx cuLaunchKernel");
    tilus_kernel_unload(kernel);
    tilus_kernel_unload(filled);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Whichever context is current, the stream's device runs it. */
static void runs_on_the_streams_device(void **state)
{
    (void)state;
    fake->device_count = 2;
    for (int i = 0; i < 4; i++)
        fake->streams[i].device = i / 2;
    for (int prepared = 0; prepared < 8; prepared++)
        for (int now = FAKE_NO_CONTEXT; now < 2; now++) {
            fake->strict = prepared > 4;    /* then some context is needed */
            tilus_rt *rt = open_fake();
            tilus_kernel *kernel = create(rt, &scale, ptx);
            for (int d = 0; d < 2; d++)
                if (prepared >> d & 1)
                    assert_ok(tilus_kernel_prepare(kernel, d));
            fake->launches_on[0] = fake->launches_on[1] = 0;
            set_current(now);
            for (int i = 0; i < 4; i++) {
                assert_ok(launch(kernel, &fake->streams[i]));
                assert_int_equal(fake->launches_on[i / 2], i % 2 + 1);
            }
            tilus_kernel_unload(kernel);
            tilus_rt_close(rt);
            assert_nothing_left();
        }
}

static void a_special_stream_is_of_the_current_context(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_fails(launch(kernel, NULL), TILUS_ERROR_STATE, "is prepared on 0 devices");
    assert_ok(tilus_kernel_prepare(kernel, 1));
    for (uintptr_t special = 0; special <= 2; special++) {
        assert_ok(launch(kernel, (tilus_stream)special));
        assert_int_equal(fake->launches_on[1], special + 1);
    }
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_fails(launch(kernel, NULL), TILUS_ERROR_STATE,
                 "no CUDA context is current, and the kernel is prepared on 2 devices");
    set_current(0);
    assert_ok(launch(kernel, (tilus_stream)2));
    assert_int_equal(fake->launches_on[0], 1);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void refuses_other_contexts(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    fake->streams[0].device = FAKE_OTHER_CONTEXT;
    for (int prepared = 0; prepared < 2; prepared++) {
        assert_fails(launch(kernel, &fake->streams[0]), TILUS_ERROR_ARGUMENT,
                     "kernel @scale (sm_80) on device 0 (Fake 100, sm_86): the stream is of a "
                     "context that is not the device's primary one");
        set_current(FAKE_OTHER_CONTEXT);
        assert_fails(launch(kernel, NULL), TILUS_ERROR_ARGUMENT, "primary");
        set_current(0);     /* the driver refuses it first */
        assert_fails(launch(kernel, &fake->streams[0]), TILUS_ERROR_ARGUMENT, "primary");
        set_current(FAKE_NO_CONTEXT);
    }
    assert_int_equal(fake->launches, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- captures ------------------------------------------------------- */

static void loads_nothing_during_a_capture(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    for (int i = 0; i < 2; i++)
        fake->streams[i] = (FakeStream){.device = i, .capturing = 1};
    static const char *const errors[] = {
        "on device 0 (Fake 100, sm_86): the kernel is not prepared there and the stream is "
        "being captured, when nothing can be loaded: call tilus_kernel_prepare(kernel, 0) "
        "before",
        "tilus_kernel_prepare(kernel, 1) before"};
    for (int i = 0; i < 2; i++)
        assert_fails(launch(kernel, &fake->streams[i]), TILUS_ERROR_STATE, errors[i]);
    set_current(0);
    assert_fails(launch(kernel, NULL), TILUS_ERROR_STATE, errors[0]);
    assert_int_equal(fake->loads, 0);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_calls(launch(kernel, &fake->streams[0]), "cuCtxGetCurrent cuLaunchKernel");
    assert_fails(launch(kernel, &fake->streams[1]), TILUS_ERROR_STATE, errors[1]);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Another thread captures, which forbids loading to all that do not say otherwise. */
static void prepares_beside_a_capture(void **state)
{
    (void)state;
    static const char *const drivers[] = {TILUS_FAKE_CUDA, TILUS_FAKE_CUDA_OLD};
    for (size_t i = 0; i < COUNT(drivers); i++) {
        use_driver(drivers[i]);
        tilus_rt *rt = open_fake();
        tilus_kernel *kernel = create(rt, &scale, ptx);
        fake->streams[7].capturing = 1;
        assert_ok(tilus_kernel_prepare(kernel, 0));
        assert_int_equal(fake->relaxed_loads, 1);
        assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_DRIVER, "(900");
        tilus_kernel_unload(kernel);
        assert_int_equal(fake->refused, 1);
        tilus_rt_close(rt);
        assert_nothing_left();
    }
}

/* ---- memory --------------------------------------------------------- */

static void serves_libraries(void **state)
{
    (void)state;
    bool entered;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    assert_fails(tilus_rt_fail(TILUS_ERROR_NO_KERNEL, "none of 100%"), TILUS_ERROR_NO_KERNEL,
                 "none of 100%");
    assert_fails(tilus_rt_enter(rt, 2, &entered), TILUS_ERROR_NO_DEVICE, "no CUDA device 2");
    assert_ok(tilus_rt_enter(rt, 1, &entered));
    assert_true(entered);
    assert_int_equal(fake->current, 1);
    assert_ok(tilus_rt_leave(rt, 1, entered));
    set_current(1);
    assert_ok(tilus_rt_enter(rt, 1, &entered));
    assert_false(entered);
    assert_ok(tilus_rt_leave(rt, 1, entered));
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void moves_memory(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_fake();
    uint64_t address;
    char back[8];
    assert_ok(tilus_rt_allocate(rt, 1, 0, &address));
    assert_ok(tilus_rt_release(rt, 1, address));
    assert_ok(tilus_rt_allocate(rt, 1, 8, &address));
    assert_ok(tilus_rt_fill(rt, 1, address, 'x', 8));
    assert_ok(tilus_rt_upload(rt, 1, address + 2, "abc", 3));
    assert_ok(tilus_rt_download(rt, 1, back, address, 8));
    assert_memory_equal(back, "xxabcxxx", 8);
    assert_ok(tilus_rt_release(rt, 1, address));
    fake->fail = "cuMemAlloc_v2:2";
    address = 1;
    assert_fails(tilus_rt_allocate(rt, 1, 8, &address), TILUS_ERROR_DEVICE_MEMORY,
                 "device 1 (Fake 101, sm_86): cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(address, 0);
    fake->fail = NULL;
    assert_ok(tilus_rt_synchronize(rt, 1));
    assert_int_equal(fake->retained, 1);
    tilus_rt_close(rt);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(describes_devices, set_up),
        cmocka_unit_test_setup(says_why_it_cannot_open, set_up),
        cmocka_unit_test_setup(cuts_a_long_message, set_up),
        cmocka_unit_test_setup(prepares_a_kernel, set_up),
        cmocka_unit_test_setup(takes_machine_code_that_fits, set_up),
        cmocka_unit_test_setup(loads_by_what_the_driver_has, set_up),
        cmocka_unit_test_setup(refuses_a_bad_artefact, set_up),
        cmocka_unit_test_setup(copies_the_artefact, set_up),
        cmocka_unit_test_setup(loads_an_artefacts_bytes, set_up),
        cmocka_unit_test_setup(packs_arguments, set_up),
        cmocka_unit_test_setup(packs_floats, set_up),
        cmocka_unit_test_setup(names_the_misaligned_pointer, set_up),
        cmocka_unit_test_setup(an_empty_grid_runs_nothing, set_up),
        cmocka_unit_test_setup(a_warm_launch_makes_two_calls, set_up),
        cmocka_unit_test_setup(runs_on_the_streams_device, set_up),
        cmocka_unit_test_setup(a_special_stream_is_of_the_current_context, set_up),
        cmocka_unit_test_setup(refuses_other_contexts, set_up),
        cmocka_unit_test_setup(loads_nothing_during_a_capture, set_up),
        cmocka_unit_test_setup(prepares_beside_a_capture, set_up),
        cmocka_unit_test_setup(moves_memory, set_up),
        cmocka_unit_test_setup(serves_libraries, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
