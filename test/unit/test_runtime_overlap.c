/* Launches with attributes, on a fake driver: those that may begin before those before them
 * have ended, those in clusters, and cooperative ones. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

/* A kernel that waits by itself for the launches before it, on a device of 9.0. */
static tilus_kernel *create_waiting(tilus_rt *rt, const tilus_kernel_info *like,
                                    const char *target)
{
    tilus_kernel_info info = *like;
    info.overlaps = true;
    tilus_artefact artefact = artefact_of(&info, ptx);
    artefact.target = target;
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_true(tilus_kernel_artefact(kernel)->info->overlaps);
    assert_ok(tilus_kernel_prepare(kernel, 0));
    return kernel;
}

static void a_launch_that_waits_may_begin_early(void **state)
{
    (void)state;
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_waiting(rt, &scale, "sm_90a");
    set_current(0);
    assert_calls(launch(kernel, &fake->streams[0]), "cuCtxGetCurrent cuLaunchKernelEx");
    assert_int_equal(fake->early, 1);
    assert_int_equal(fake->launches, 1);
    assert_int_equal(fake->streams[0].launches, 1);
    assert_memory_equal(fake->grid, ((unsigned[]){2, 1, 1}), sizeof fake->grid);
    assert_memory_equal(fake->block, ((unsigned[]){64, 1, 1}), sizeof fake->block);
    assert_int_equal(fake->shared, 96 * 1024);
    assert_memory_equal(fake->parameters, ((uint64_t[]){0x1000, 32, 3, 1}),
                        4 * sizeof(uint64_t));
    fake->streams[1].capturing = 1;
    assert_calls(launch(kernel, &fake->streams[1]), "cuCtxGetCurrent cuLaunchKernelEx");
    fake->streams[1].capturing = 0;
    fake->fail = "cuLaunchKernelEx:1";
    assert_fails(launch(kernel, NULL), TILUS_ERROR_DRIVER,
                 "kernel @scale (sm_90a) on device 0 (Fake 100, sm_90): cuLaunchKernelEx: "
                 "CUDA_ERROR_INVALID_VALUE");
    fake->fail = "cuLaunchKernelEx:700";
    assert_fails(launch(kernel, NULL), TILUS_ERROR_LOST, "context lost: ");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Fills are no kernels, which could let others begin. */
static void a_launch_behind_its_fill_is_plain(void **state)
{
    (void)state;
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel_info info = scale_with_workspace();
    tilus_workspace_tensor kept = tensor;
    _Alignas(TILUS_WORKSPACE_ALIGN) char memory[256];
    tilus_kernel *filled = create_waiting(rt, &info, "sm_90");
    kept.zeroed = false;
    info.workspace = &kept;
    tilus_kernel *unfilled = create_waiting(rt, &info, "sm_90");
    set_current(0);
    assert_calls(tilus_launch(filled, NULL, good_args, 4, (uintptr_t)memory, 256),
                 "cuCtxGetCurrent cuMemsetD8Async cuLaunchKernel");
    assert_calls(tilus_launch(unfilled, NULL, good_args, 4, (uintptr_t)memory, 256),
                 "cuCtxGetCurrent cuLaunchKernelEx");
    tilus_kernel_unload(filled);
    tilus_kernel_unload(unfilled);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Code that does not wait, and drivers that would not, get plain launches. */
static void a_launch_is_plain_where_nobody_waits(void **state)
{
    (void)state;
    static const struct {
        const char *driver;
        int version;
        const char *target;
        int early;
    } cases[] = {
        {TILUS_FAKE_CUDA, 13000, "sm_90", 1}, {TILUS_FAKE_CUDA, 12030, "sm_90a", 1},
        {TILUS_FAKE_CUDA, 12020, "sm_90a", 0}, {TILUS_FAKE_CUDA, 13000, "sm_89", 0},
        {TILUS_FAKE_CUDA_OLD, 13000, "sm_90", 0}, {TILUS_FAKE_CUDA, 13000, "compute_90", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        use_driver(cases[i].driver);
        fake->capability = 90;
        fake->driver_version = cases[i].version;
        tilus_rt *rt = open_fake();
        tilus_kernel *kernel = create_waiting(rt, &scale, cases[i].target);
        assert_ok(launch(kernel, NULL));
        assert_int_equal(fake->launches, 1);
        assert_int_equal(fake->early, cases[i].early);
        tilus_kernel_unload(kernel);
        tilus_rt_close(rt);
        assert_nothing_left();
    }
}

/* The grid of `scale` has 2 blocks. */
static tilus_kernel *create_clusters(tilus_rt *rt, unsigned blocks, bool waits)
{
    tilus_kernel_info info = scale;
    info.overlaps = waits;
    info.cluster[0] = blocks;
    info.cluster[1] = info.cluster[2] = 1;
    tilus_artefact artefact = artefact_of(&info, ptx);
    artefact.target = "sm_90a";
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_ok(tilus_kernel_prepare(kernel, 0));
    return kernel;
}

static void a_launch_says_its_clusters(void **state)
{
    (void)state;
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *pairs = create_clusters(rt, 2, false), *early = create_clusters(rt, 2, true);
    tilus_kernel *threes = create_clusters(rt, 3, false);
    set_current(0);
    assert_calls(launch(pairs, NULL), "cuCtxGetCurrent cuLaunchKernelEx");
    assert_memory_equal(fake->cluster, ((unsigned[]){2, 1, 1}), sizeof fake->cluster);
    assert_memory_equal(fake->grid, ((unsigned[]){2, 1, 1}), sizeof fake->grid);
    assert_int_equal(fake->early, 0);
    assert_calls(launch(early, NULL), "cuCtxGetCurrent cuLaunchKernelEx");
    assert_memory_equal(fake->cluster, ((unsigned[]){2, 1, 1}), sizeof fake->cluster);
    assert_int_equal(fake->early, 1);
    assert_fails(launch(threes, NULL), TILUS_ERROR_ARGUMENT,
                 "the grid's extent of dimension 0 is 2, not a multiple of the cluster's 3");
    assert_int_equal(fake->launches, 2);
    tilus_kernel_unload(pairs);
    tilus_kernel_unload(early);
    tilus_kernel_unload(threes);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* The PTX has the cluster, too. */
static void an_old_driver_finds_clusters_itself(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA_OLD);
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_clusters(rt, 2, false);
    set_current(0);
    assert_calls(launch(kernel, NULL), "cuCtxGetCurrent cuLaunchKernel");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Threads are 64, of which the fake device has room for 32 blocks on a multiprocessor. */
static tilus_kernel *create_cooperative(tilus_rt *rt, bool waits)
{
    tilus_kernel_info info = scale;
    info.overlaps = waits;
    info.cooperative = true;
    tilus_artefact artefact = artefact_of(&info, ptx);
    artefact.target = waits ? "sm_90a" : "sm_80";
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_ok(tilus_kernel_prepare(kernel, 0));
    return kernel;
}

static void a_cooperative_launch_says_so(void **state)
{
    (void)state;
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *plain = create_cooperative(rt, false), *early = create_cooperative(rt, true);
    set_current(0);
    assert_calls(launch(plain, NULL), "cuCtxGetCurrent cuLaunchKernelEx");
    assert_int_equal(fake->cooperative, 1);
    assert_int_equal(fake->early, 0);
    assert_memory_equal(fake->grid, ((unsigned[]){2, 1, 1}), sizeof fake->grid);
    assert_calls(launch(early, NULL), "cuCtxGetCurrent cuLaunchKernelEx");
    assert_int_equal(fake->cooperative, 2);
    assert_int_equal(fake->early, 1);
    fake->fail = "cuLaunchKernelEx:720";
    assert_fails(launch(plain, NULL), TILUS_ERROR_ARGUMENT,
                 "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    assert_non_null(strstr(tilus_rt_error(), "has no room for so many: launch a smaller grid"));
    tilus_kernel_unload(plain);
    tilus_kernel_unload(early);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void a_cooperative_grid_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    fake->capability = 90;
    fake->multiprocessors = 1;
    fake->occupancy = 1;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_cooperative(rt, false);
    set_current(0);
    assert_fails(launch(kernel, NULL), TILUS_ERROR_ARGUMENT,
                 "kernel @scale (sm_80) on device 0 (Fake 100, sm_90): a cooperative grid of 2 x 1 x 1 "
                 "blocks, the device has room for 1 at once: 1 on each of 1 multiprocessors");
    assert_int_equal(fake->launches, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void an_old_driver_has_no_cooperative_launches(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA_OLD);
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel_info info = scale;
    info.cooperative = true;
    tilus_artefact artefact = artefact_of(&info, ptx);
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_UNSUPPORTED,
                 "cooperative programs need a driver of CUDA 11.8 or newer");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* A graph of kernels would not say that they are cooperative. */
static void a_sequence_launches_cooperative_kernels_one_by_one(void **state)
{
    (void)state;
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernels[] = {create_cooperative(rt, false), create_cooperative(rt, false)};
    tilus_sequence *sequence;
    set_current(0);
    assert_ok(tilus_sequence_create(kernels, 2, &sequence));
    const tilus_sequence_launch launches[] = {{good_args, COUNT(good_args)},
                                               {good_args, COUNT(good_args)}};
    assert_ok(tilus_sequence_run(sequence, NULL, launches));
    assert_int_equal(fake->launches, 2);
    assert_int_equal(fake->cooperative, 2);
    tilus_sequence_free(sequence);
    tilus_kernel_unload(kernels[0]);
    tilus_kernel_unload(kernels[1]);
    tilus_rt_close(rt);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_launch_that_waits_may_begin_early, set_up),
        cmocka_unit_test_setup(a_launch_behind_its_fill_is_plain, set_up),
        cmocka_unit_test_setup(a_launch_is_plain_where_nobody_waits, set_up),
        cmocka_unit_test_setup(a_launch_says_its_clusters, set_up),
        cmocka_unit_test_setup(an_old_driver_finds_clusters_itself, set_up),
        cmocka_unit_test_setup(a_cooperative_launch_says_so, set_up),
        cmocka_unit_test_setup(a_cooperative_grid_that_does_not_fit_is_refused, set_up),
        cmocka_unit_test_setup(an_old_driver_has_no_cooperative_launches, set_up),
        cmocka_unit_test_setup(a_sequence_launches_cooperative_kernels_one_by_one, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
