/* The runtime when things fail: each call of the driver in turn, code that it does not
 * take, devices that are lost, processes that fork. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda_api.h"
#include "fork_mark.h"
#include "rt_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

enum { WORKSPACE = 256 };

static const char *const drivers[] = {TILUS_FAKE_CUDA, TILUS_FAKE_CUDA_OLD};

/* ---- each call in turn ---------------------------------------------- */

/* Handles of a session, so that it can be ended from any point. */
typedef struct Session {
    tilus_rt *rt;
    tilus_kernel *kernel;
    uint64_t address;
    int calls;                  /* of the driver until it begins to clean up */
} Session;

static tilus_status work(Session *s)
{
    const tilus_kernel_info info = scale_with_workspace();
    const tilus_artefact artefact = artefact_of(&info, ptx);
    char bytes[64] = "data", back[64];
    tilus_arg args[COUNT(good_args)];
    memcpy(args, good_args, sizeof args);
    tilus_status status = tilus_rt_allocate(s->rt, 0, WORKSPACE, &s->address);
    if (status == TILUS_OK)
        status = tilus_rt_fill(s->rt, 0, s->address, 0, sizeof bytes);
    if (status == TILUS_OK)
        status = tilus_rt_upload(s->rt, 0, s->address, bytes, sizeof bytes);
    if (status == TILUS_OK)
        status = tilus_kernel_create(s->rt, &artefact, &s->kernel);
    for (int device = 0; device < 2 && status == TILUS_OK; device++)
        status = tilus_kernel_prepare(s->kernel, device);
    for (int stream = 0; stream < 2 && status == TILUS_OK; stream++)
        status = tilus_launch(s->kernel, &fake->streams[stream], args, COUNT(args), s->address,
                              WORKSPACE);
    if (status == TILUS_OK)
        status = tilus_rt_synchronize(s->rt, 0);
    return status == TILUS_OK ? tilus_rt_download(s->rt, 0, back, s->address, sizeof back)
                              : status;
}

/* Everything the runtime does, up to the first failure, which is described in
 * message[0..size). Returns the driver calls up to the end of the work. */
static tilus_status use_everything(char *message, size_t size, int *calls)
{
    Session s = {0};
    tilus_status status = tilus_rt_open(NULL, &s.rt, message, size);
    if (status != TILUS_OK)
        return status;
    status = work(&s);
    snprintf(message, size, "%s", tilus_rt_error());
    *calls = fake->calls;
    tilus_kernel_unload(s.kernel);
    if (s.address) {
        tilus_status released = tilus_rt_release(s.rt, 0, s.address);
        if (released != TILUS_OK && status == TILUS_OK) {
            status = released;
            snprintf(message, size, "%s", tilus_rt_error());
        }
        if (fake->allocations) {        /* lost with its context, and nobody's to free */
            free((void *)(uintptr_t)s.address);
            fake->allocations--;
        }
    }
    tilus_rt_close(s.rt);
    return status;
}

static void prepare_session(const char *driver, const char *fail)
{
    use_driver(driver);
    fake->device_count = 2;
    fake->streams[1].device = 1;
    fake->fail = fail;
}

/* The name of call number `number` of a session that goes well. */
static void name_of_call(const char *driver, int number, char name[64])
{
    char message[1024], trace[FAKE_TRACE] = "";
    int calls;
    prepare_session(driver, NULL);
    fake->trace = trace;
    assert_int_equal(use_everything(message, sizeof message, &calls), TILUS_OK);
    fake->trace = NULL;
    char *rest = trace, *word = NULL;
    for (int i = 0; i < number; i++)
        word = strsep(&rest, " ");
    assert_non_null(word);
    snprintf(name, 64, "%.*s:", (int)(strstr(word, "_v2") ? strlen(word) - 3 : strlen(word)),
             word);
}

static void any_call_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(drivers); i++) {
        char message[1024], name[64], spec[32];
        int calls, unused;
        prepare_session(drivers[i], NULL);
        assert_int_equal(use_everything(message, sizeof message, &calls), TILUS_OK);
        assert_nothing_left();
        assert_true(calls > 50);
        for (int number = 1; number <= calls; number++) {
            name_of_call(drivers[i], number, name);
            snprintf(spec, sizeof spec, "%d:1", number);
            prepare_session(drivers[i], spec);
            tilus_status status = use_everything(message, sizeof message, &unused);
            assert_nothing_left();
            if (strstr(name, "cuThreadExchange") && status == TILUS_OK)
                continue;       /* after the load, which went well */
            if (status != TILUS_ERROR_DRIVER)
                fail_msg("call %d, %s gave %s", number, name, tilus_status_name(status));
            assert_contains(message, name);
            assert_contains(message, "CUDA_ERROR_INVALID_VALUE (1: invalid argument)");
        }
    }
}

/* Of these a device is known, which is lost from then on. */
static bool names_the_device(const char *call)
{
    static const char *const calls[] = {"cuMemAlloc:", "cuModuleLoadDataEx:", "cuLaunchKernel:",
                                        "cuLibraryLoadData:", "cuCtxSynchronize:"};
    for (size_t i = 0; i < COUNT(calls); i++)
        if (strcmp(calls[i], call) == 0)
            return true;
    return false;
}

static void any_call_may_lose_the_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(drivers); i++) {
        char message[1024] = "", name[64], spec[32];
        int calls, unused, named = 0;
        prepare_session(drivers[i], NULL);
        assert_int_equal(use_everything(message, sizeof message, &calls), TILUS_OK);
        for (int number = 1; number <= calls; number++) {
            name_of_call(drivers[i], number, name);
            snprintf(spec, sizeof spec, "%d:700", number);
            prepare_session(drivers[i], spec);
            tilus_status status = use_everything(message, sizeof message, &unused);
            assert_nothing_left();
            if (strstr(name, "cuThreadExchange") && status == TILUS_OK)
                continue;       /* after the load, which went well */
            if (status != TILUS_ERROR_LOST)
                fail_msg("call %d, %s gave %s", number, name, tilus_status_name(status));
            assert_contains(message, "CUDA_ERROR_ILLEGAL_ADDRESS (700");
            if (names_the_device(name)) {
                assert_contains(message, "context lost: ");
                named++;
            }
        }
        assert_true(named >= 5);
    }
}

/* Failures during a release go to the log. */
static int logged;
static char log_text[1024];

static void log_here(void *data, const char *message)
{
    assert_ptr_equal(data, &logged);
    logged++;
    snprintf(log_text, sizeof log_text, "%s", message);
}

static tilus_rt *open_with_log(void)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .log = log_here, .log_data = &logged};
    char message[256];
    tilus_rt *rt;
    assert_int_equal(tilus_rt_open(&options, &rt, message, sizeof message), TILUS_OK);
    logged = 0;
    return rt;
}

static void logs_what_it_cannot_return(void **state)
{
    (void)state;
    fake->without_local = 1;
    tilus_rt *rt = open_with_log();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_int_equal(logged, 1);
    assert_contains(log_text, "kernel @scale (sm_80) is prepared on device 0 (Fake 100) in ");
    assert_contains(log_text, " ms: PTX, 40 registers and 0 bytes");
    fake->fail = "cuLibraryUnload:1";
    tilus_kernel_unload(kernel);
    assert_int_equal(logged, 2);
    assert_contains(log_text, "cuLibraryUnload: CUDA_ERROR_INVALID_VALUE");
    fake->fail = "cuDevicePrimaryCtxRelease_v2:1";
    tilus_rt_close(rt);
    assert_int_equal(logged, 3);
    assert_nothing_left();
}

/* Local memory that the PTX does not declare itself is for registers. */
static void logs_spills(void **state)
{
    (void)state;
    tilus_rt *rt = open_with_log();
    tilus_kernel *spilling = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(spilling, 0));
    assert_int_equal(logged, 2);
    assert_contains(log_text, "kernel @scale (sm_80) on device 0 (Fake 100): warning: registers "
                              "spill: a thread keeps 16 bytes in local memory");
    assert_contains(log_text, "[-Wspills]");
    static const char printing[] = ".entry scale" SCALE_PARAMETERS " .local .b8 depot[16];";
    tilus_kernel *kernel = create(rt, &scale, printing);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_int_equal(logged, 3);
    tilus_kernel_unload(spilling);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- code that cannot run ------------------------------------------- */

static void assert_prepare_fails(const tilus_artefact *artefact, tilus_status status,
                                 const char *part)
{
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, artefact, &kernel));
    assert_fails(tilus_kernel_prepare(kernel, 0), status, part);
    assert_fails(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0), status, part);
    assert_int_equal(fake->current, 0);
    assert_int_equal(fake->modules, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void reports_the_jit_log(void **state)
{
    (void)state;
    tilus_artefact bad = artefact_of(&scale, "bad scale");
    tilus_artefact other = artefact_of(&scale, "other");
    for (size_t i = 0; i < COUNT(drivers); i++) {
        use_driver(drivers[i]);
        for (int late = 0; late < 2; late++) {
            fake->late = late;
            assert_prepare_fails(&bad, TILUS_ERROR_DRIVER,
                                 "kernel @scale (sm_80) on device 0 (Fake 100, sm_86): cu");
            assert_contains(tilus_rt_error(), ": CUDA_ERROR_INVALID_PTX (218");
            assert_contains(tilus_rt_error(), "\nptxas application ptx input, line 9; fatal");
        }
        fake->late = 0;
        assert_prepare_fails(&other, TILUS_ERROR_DRIVER, "CUDA_ERROR_NOT_FOUND");
    }
}

static void says_which_ptx_the_driver_takes(void **state)
{
    (void)state;
    static const struct {
        int driver;
        const char *text;
    } cases[] = {
        {12040, "the PTX is of version 8.7, the driver (CUDA 12.4) takes 8.4 at most"},
        {12060, "the driver (CUDA 12.6) takes 8.5 at most"},
        {10020, "the driver (CUDA 10.2) takes only older ones"},
        {14000, "the driver (CUDA 14.0) takes only older ones"},
    };
    tilus_artefact artefact = artefact_of(&scale, "too new");
    artefact.ptx_version = 87;
    for (size_t i = 0; i < COUNT(cases); i++) {
        fake->driver_version = cases[i].driver;
        assert_prepare_fails(&artefact, TILUS_ERROR_UNSUPPORTED, cases[i].text);
        assert_contains(tilus_rt_error(), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222");
        assert_contains(tilus_rt_error(), "compile without -mattr of tilus-llc");
    }
}

static void says_what_the_device_lacks(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        size_t shared;
        const char *text;
    } cases[] = {
        {"sm_90", 0, "on device 0 (Fake 100, sm_86): the device does not run code for sm_90;"},
        {"sm_80a", 0, "does not run code for sm_80a"},
        {"sm_90f", 0, "does not run code for sm_90f"},
        {"sm_80", 101377, "needs 101377 bytes of shared memory, the device has 101376"},
        {"sm_80", INT32_MAX, "a block needs 2147483647 bytes"},     /* kernels have no more */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_kernel_info info = scale;
        info.shared_bytes = cases[i].shared;
        tilus_artefact artefact = artefact_of(&info, ptx);
        artefact.target = cases[i].target;
        assert_prepare_fails(&artefact, TILUS_ERROR_UNSUPPORTED, cases[i].text);
        assert_int_equal(fake->loads, 0);
    }
}

static void tells_memory_from_other_failures(void **state)
{
    (void)state;
    tilus_artefact artefact = artefact_of(&scale, ptx);
    fake->fail = "cuLibraryLoadData:2";
    assert_prepare_fails(&artefact, TILUS_ERROR_DEVICE_MEMORY,
                         "cuLibraryLoadData: CUDA_ERROR_OUT_OF_MEMORY");
    assert_contains(tilus_rt_error(), "free device memory");
}

/* ---- lost devices --------------------------------------------------- */

static void remembers_a_lost_device(void **state)
{
    (void)state;
    fake->device_count = 2;
    tilus_rt *rt = open_with_log();
    tilus_kernel *kernel = create(rt, &scale, ptx), *other = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    fake->streams[1].device = 1;
    assert_ok(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0));
    fake->sticky[0] = CUDA_ERROR_ILLEGAL_ADDRESS;
    static const char text[] =
        "context lost: kernel @scale, grid [2, 1, 1] (the last launch), device 0 (Fake 100): "
        "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700";
    assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_LOST, text);
    assert_contains(log_text, text);
    fake->sticky[0] = 0;        /* nobody asks the driver again */
    int calls = fake->calls;
    uint64_t address;
    assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_LOST, text);
    assert_fails(tilus_rt_allocate(rt, 0, 1, &address), TILUS_ERROR_LOST, text);
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_LOST, text);
    assert_fails(tilus_kernel_prepare(other, 0), TILUS_ERROR_LOST, text);
    assert_int_equal(fake->calls, calls);
    assert_fails(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0), TILUS_ERROR_LOST,
                 text);
    assert_int_equal(fake->launches, 1);
    assert_ok(tilus_launch(kernel, &fake->streams[1], good_args, 4, 0, 0));
    tilus_kernel_unload(kernel);
    tilus_kernel_unload(other);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* With one device there is no doubt whose the error is, though the call asks for that. */
static void asking_for_a_context_may_lose_the_device(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        fake->strict = strict;
        tilus_rt *rt = open_fake();
        tilus_kernel *kernel = create(rt, &scale, ptx);
        assert_ok(tilus_kernel_prepare(kernel, 0));
        assert_ok(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0));
        fake->fail = "cuStreamGetCtx:700";
        static const char text[] = "context lost: kernel @scale, grid [2, 1, 1]";
        assert_fails(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0),
                     TILUS_ERROR_LOST, text);
        fake->fail = NULL;
        assert_fails(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0),
                     TILUS_ERROR_LOST, text);
        assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_LOST, text);
        tilus_kernel_unload(kernel);
        tilus_rt_close(rt);
        assert_nothing_left();
    }
}

/* A driver that wants some context current gets one that works. */
static void a_lost_device_leaves_others_alone(void **state)
{
    (void)state;
    fake->device_count = 2;
    fake->strict = 1;
    fake->streams[1].device = 1;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_ok(tilus_kernel_prepare(kernel, 1));
    fake->sticky[0] = CUDA_ERROR_TENSOR_MEMORY_LEAK;
    assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_LOST, "context lost: ");
    assert_ok(tilus_launch(kernel, &fake->streams[1], good_args, 4, 0, 0));
    assert_fails(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0), TILUS_ERROR_LOST,
                 "context lost: ");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* The launch that gets the error is not the one that made it. */
static void names_the_launch_before(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel_info later = scale;
    later.name = "later";
    tilus_kernel *kernel = create(rt, &scale, ptx);
    tilus_kernel *after = create(rt, &later, ".entry later" SCALE_PARAMETERS);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    assert_ok(tilus_kernel_prepare(after, 0));
    assert_ok(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0));
    tilus_kernel_unload(kernel);
    fake->sticky[0] = 719;
    assert_fails(tilus_launch(after, &fake->streams[0], good_args, 4, 0, 0), TILUS_ERROR_LOST,
                 "context lost: kernel @scale, grid [2, 1, 1]");
    assert_contains(tilus_rt_error(), "cuLaunchKernel: ");
    tilus_kernel_unload(after);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void keeps_a_wide_grid(void **state)
{
    (void)state;
    static const tilus_code extents[] = {C(INT32_MAX), C(65535), C(65534)};
    tilus_rt *rt = open_fake();
    tilus_kernel_info info = scale;
    for (int i = 0; i < 3; i++) {
        info.grid[i] = &extents[i];
        info.grid_length[i] = 1;
    }
    tilus_kernel *kernel = create(rt, &info, ptx);
    assert_ok(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0));
    fake->sticky[0] = 719;
    assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_LOST,
                 "kernel @scale, grid [2147483647, 65535, 65534]");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

/* ---- forks ---------------------------------------------------------- */

/* In a child. Returns what is wrong there, or NULL. */
static const char *use_after_fork(tilus_rt *rt, tilus_kernel *kernel, int calls)
{
    uint64_t address;
    static const char part[] = "this process was forked after tilus_rt_open";
    if (tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0) != TILUS_ERROR_STATE ||
        !strstr(tilus_rt_error(), part))
        return "launched";
    if (tilus_kernel_prepare(kernel, 0) != TILUS_ERROR_STATE ||
        tilus_rt_allocate(rt, 0, 1, &address) != TILUS_ERROR_STATE ||
        tilus_rt_synchronize(rt, 0) != TILUS_ERROR_STATE)
        return "used the device";
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    return fake->calls == calls ? NULL : "called the driver";
}

/* Returns false where madvise(2) only says that it empties the page, as qemu-user 7.2. */
static bool empties_pages(void)
{
    ForkMark mark;
    fork_mark_make(&mark);
    pid_t child = fork();
    if (child == 0)
        _exit(fork_mark_is_mine(&mark));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    fork_mark_free(&mark);
    return status == 0;
}

static void a_forked_child_gets_an_error(void **state)
{
    (void)state;
    if (!empties_pages())
        skip();
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &scale, ptx);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    pid_t child = fork();
    if (child == 0) {
        const char *wrong = use_after_fork(rt, kernel, fake->calls);
        if (wrong)
            fprintf(stderr, "the child %s\n", wrong);
        _exit(wrong != NULL);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(tilus_launch(kernel, &fake->streams[0], good_args, 4, 0, 0));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Where the system cannot empty a page, the process's number tells. */
static void knows_a_child_by_its_number(void **state)
{
    (void)state;
    const ForkMark here = {.pid = getpid()}, elsewhere = {.pid = getppid()};
    assert_true(fork_mark_is_mine(&here));
    assert_false(fork_mark_is_mine(&elsewhere));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_call_may_fail, set_up),
        cmocka_unit_test_setup(any_call_may_lose_the_device, set_up),
        cmocka_unit_test_setup(logs_what_it_cannot_return, set_up),
        cmocka_unit_test_setup(logs_spills, set_up),
        cmocka_unit_test_setup(reports_the_jit_log, set_up),
        cmocka_unit_test_setup(says_which_ptx_the_driver_takes, set_up),
        cmocka_unit_test_setup(says_what_the_device_lacks, set_up),
        cmocka_unit_test_setup(tells_memory_from_other_failures, set_up),
        cmocka_unit_test_setup(remembers_a_lost_device, set_up),
        cmocka_unit_test_setup(asking_for_a_context_may_lose_the_device, set_up),
        cmocka_unit_test_setup(a_lost_device_leaves_others_alone, set_up),
        cmocka_unit_test_setup(names_the_launch_before, set_up),
        cmocka_unit_test_setup(keeps_a_wide_grid, set_up),
        cmocka_unit_test_setup(a_forked_child_gets_an_error, set_up),
        cmocka_unit_test(knows_a_child_by_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
