/* Tensor maps of launches: what the driver is asked for, and when, on a fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

/* @f(%x: ptr, %m: i32, %n: i32) over f16[%m, 3, %n] in boxes of [8, 1, 64], and bytes of %x */
static const tilus_arg_info args_info[] = {
    {"x", TILUS_ARG_POINTER, "f16", 1, 0, 0, 1},
    {"m", TILUS_ARG_I32, "i32", 1, INT32_MIN, INT32_MAX, 1},
    {"n", TILUS_ARG_I32, "i32", 1, INT32_MIN, INT32_MAX, 1},
};
static const tilus_code m[] = {A(1)}, n[] = {A(2)}, three[] = {C(3)};
static const tilus_code outer[] = {C(6), A(2), OP(mul)}, inner[] = {A(2), C(2), OP(mul)};
static const tilus_code *const extents[] = {m, three, n}, *const strides[] = {outer, inner};
static const size_t extent_lengths[] = {1, 1, 1}, stride_lengths[] = {3, 3};
static const tilus_tensor_map maps[] = {
    {.argument = 0, .type = TILUS_MAP_F16, .rank = 3, .extent_length = extent_lengths,
     .extents = extents, .stride_length = stride_lengths, .strides = strides,
     .box = {8, 1, 64}, .swizzle = 128, .promotion = 256},
    {.argument = 0, .type = TILUS_MAP_U8, .rank = 1, .extent_length = extent_lengths,
     .extents = &extents[2], .box = {32}, .swizzle = 32, .promotion = 64},
};
static const tilus_kernel_info info = {
    .name = "f", .arg_count = 3, .args = args_info, .grid_rank = 1, .grid_length = {1},
    .grid = {m}, .threads = 32, .map_count = 2, .maps = maps};
static const char text[] = ".entry f(.param .u64 x, .param .u32 m, .param .u32 n, "
                           ".param .align 64 .b8 a[128], .param .align 64 .b8 b[128])";

static int set_up_hopper(void **state)
{
    int result = set_up(state);
    fake->capability = 90;
    return result;
}

static tilus_artefact hopper_artefact(const tilus_kernel_info *of)
{
    tilus_artefact artefact = artefact_of(of, text);
    artefact.target = "sm_90";
    return artefact;
}

static tilus_kernel *create_ready(tilus_rt *rt)
{
    const tilus_artefact artefact = hopper_artefact(&info);
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_ok(tilus_kernel_prepare(kernel, 0));
    set_current(0);
    return kernel;
}

static tilus_status launch_at(tilus_kernel *kernel, uint64_t x, int64_t rows, int64_t columns)
{
    const tilus_arg args[] = {{.pointer = x}, {.integer = rows}, {.integer = columns}};
    return tilus_launch(kernel, NULL, args, 3, 0, 0);
}

/* The driver's dimensions begin with the innermost; strides are bytes, without its own. */
static void maps_are_encoded_as_the_driver_wants(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_ready(rt);
    assert_calls(launch_at(kernel, 0x10000, 7, 40),
                 "cuCtxGetCurrent cuTensorMapEncodeTiled cuTensorMapEncodeTiled cuLaunchKernel");
    assert_int_equal(fake->parameters[0], 0x10000);
    assert_int_equal(fake->parameters[1], 7);
    assert_int_equal(fake->parameters[2], 40);
    const FakeMap *a = &fake->maps[3], *b = &fake->maps[4];
    assert_int_equal(a->magic, FAKE_MAP_MAGIC);
    assert_int_equal(a->address, 0x10000);
    assert_int_equal(a->type, 6);       /* CU_TENSOR_MAP_DATA_TYPE_FLOAT16 */
    assert_int_equal(a->rank, 3);
    assert_memory_equal(a->extents, ((uint32_t[5]){40, 3, 7}), sizeof a->extents);
    assert_memory_equal(a->strides, ((uint32_t[5]){80, 240}), sizeof a->strides);
    assert_memory_equal(a->box, ((uint16_t[5]){64, 1, 8}), sizeof a->box);
    assert_int_equal(a->steps, 1);
    assert_int_equal(a->interleave, 0);
    assert_int_equal(a->swizzle, 3);    /* CU_TENSOR_MAP_SWIZZLE_128B */
    assert_int_equal(a->promotion, 3);  /* CU_TENSOR_MAP_L2_PROMOTION_L2_256B */
    assert_int_equal(a->fill, 0);       /* zeros */
    assert_int_equal(b->magic, FAKE_MAP_MAGIC);
    assert_int_equal(b->type, 0);
    assert_int_equal(b->rank, 1);
    assert_int_equal(b->extents[0], 40);
    assert_int_equal(b->box[0], 32);
    assert_int_equal(b->swizzle, 1);
    assert_int_equal(b->promotion, 1);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* Buffers that take turns are encoded once each; one too many pushes the oldest out. */
static void maps_are_kept(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_ready(rt);
    for (int i = 0; i < 12; i++) {
        assert_ok(launch_at(kernel, 0x10000 + 0x1000 * (uint64_t)(i % 4), 7, 40));
        assert_int_equal(fake->maps[3].address, 0x10000 + 0x1000 * (i % 4));
    }
    assert_int_equal(fake->encoded, 8);
    assert_calls(launch_at(kernel, 0x12000, 7, 40), "cuCtxGetCurrent cuLaunchKernel");
    assert_ok(launch_at(kernel, 0x12000, 8, 40));       /* one map has another extent */
    assert_int_equal(fake->encoded, 9);
    assert_int_equal(fake->maps[3].extents[2], 8);
    assert_ok(launch_at(kernel, 0x10000, 7, 40));       /* whose first map went */
    assert_int_equal(fake->encoded, 10);
    assert_int_equal(fake->maps[3].extents[2], 7);
    fake->streams[1].capturing = 1;
    const tilus_arg args[] = {{.pointer = 0x20000}, {.integer = 1}, {.integer = 8}};
    assert_ok(tilus_launch(kernel, &fake->streams[1], args, 3, 0, 0));
    fake->streams[1].capturing = 0;
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* A launch without blocks is none: its tensors may be empty. */
static void launches_that_a_map_cannot_serve_are_refused(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_ready(rt);
    assert_fails(launch_at(kernel, 0x10008, 7, 40), TILUS_ERROR_ARGUMENT,
                 "tensor map of argument %x: the address 0x10008 is not aligned to 16 bytes");
    assert_fails(launch_at(kernel, 0x10000, 7, 36), TILUS_ERROR_ARGUMENT,
                 "tensor map of argument %x: stride 0 is 216 bytes, it must be a multiple of 16 "
                 "from 16, below 2^40");
    assert_fails(launch_at(kernel, 0x10000, 7, 0), TILUS_ERROR_ARGUMENT,
                 "tensor map of argument %x: the extent of dimension 2 is 0, it must be 1 to 2147483392");
    assert_fails(launch_at(kernel, 0x10000, 7, INT32_MAX), TILUS_ERROR_ARGUMENT,
                 "the extent of dimension 2 is 2147483647, it must be 1 to 2147483392");
    assert_int_equal(fake->encoded, 0);
    assert_ok(launch_at(kernel, 0x10008, 0, 0));
    assert_int_equal(fake->launches, 0);
    fake->fail = "cuTensorMapEncodeTiled:1";
    assert_fails(launch_at(kernel, 0x10000, 7, 40), TILUS_ERROR_DRIVER,
                 "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
    fake->fail = NULL;
    assert_ok(launch_at(kernel, 0x10000, 7, 40));
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void old_drivers_have_no_maps(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA_OLD);
    fake->capability = 90;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create_ready(rt);
    assert_fails(launch_at(kernel, 0x10000, 7, 40), TILUS_ERROR_UNSUPPORTED,
                 "the driver has no cuTensorMapEncodeTiled");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

/* Maps that no driver could encode are refused when the kernel is made. */
static void maps_beyond_the_hardware_are_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned rank, box, swizzle;
        const char *why;
    } cases[] = {
        {6, 8, 128, "kernel @f: tensor map 0 has 6 dimensions, there are 1 to 5"},
        {0, 8, 128, "tensor map 0 has 0 dimensions, there are 1 to 5"},
        {3, 257, 128, "tensor map 0 has a box of 257 in dimension 0, there are 1 to 256"},
        {3, 8, 64, "tensor map 0 has a row of 128 bytes, no multiple of 16, or past its swizzle of 64"},
    };
    tilus_rt *rt = open_fake();
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_tensor_map map = maps[0];
        map.rank = cases[i].rank;
        map.box[0] = cases[i].box;
        map.swizzle = cases[i].swizzle;
        tilus_kernel_info one = info;
        one.map_count = 1;
        one.maps = &map;
        const tilus_artefact artefact = hopper_artefact(&one);
        tilus_kernel *kernel;
        assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_ARGUMENT,
                     cases[i].why);
        assert_null(kernel);
    }
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void maps_for_old_targets_are_refused(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel *kernel = create(rt, &info, text);
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_UNSUPPORTED,
                 "kernel @f (sm_80) on device 0 (Fake 100, sm_90): tensor maps need sm_90 or newer, the code "
                 "is for sm_80");
    tilus_kernel_unload(kernel);
    tilus_kernel_info clusters = info;
    clusters.map_count = 0;
    clusters.cluster[0] = clusters.cluster[1] = clusters.cluster[2] = 1;
    kernel = create(rt, &clusters, text);
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_UNSUPPORTED,
                 "clusters need sm_90 or newer, the code is for sm_80");
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void too_many_maps_are_refused(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_kernel_info many = info;
    many.map_count = 17;
    const tilus_artefact artefact = hopper_artefact(&many);
    tilus_kernel *kernel;
    assert_fails(tilus_kernel_create(rt, &artefact, &kernel), TILUS_ERROR_UNSUPPORTED,
                 "kernel @f takes 17 tensor maps, more than 16");
    tilus_rt_close(rt);
}

/* Threads that find the cache taken encode for themselves. */
static tilus_kernel *shared_kernel;

static void *launch_often(void *data)
{
    uint64_t x = 0x10000 + 0x1000 * (uint64_t)(uintptr_t)data;
    set_current(0);
    for (int i = 0; i < 200; i++)
        if (launch_at(shared_kernel, x + 0x100 * (uint64_t)(i % 3), 7, 40) != TILUS_OK)
            return "a launch failed";
    return NULL;
}

static void threads_share_the_cache(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tilus_rt *rt = open_fake();
    shared_kernel = create_ready(rt);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *why;
        pthread_join(threads[i], &why);
        assert_null(why);
    }
    assert_int_equal(fake->launches, THREADS * 200);
    assert_ok(launch_at(shared_kernel, 0x40000, 7, 40));
    assert_int_equal(fake->maps[3].address, 0x40000);
    tilus_kernel_unload(shared_kernel);
    tilus_rt_close(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(maps_are_encoded_as_the_driver_wants, set_up_hopper),
        cmocka_unit_test_setup(maps_are_kept, set_up_hopper),
        cmocka_unit_test_setup(launches_that_a_map_cannot_serve_are_refused, set_up_hopper),
        cmocka_unit_test_setup(old_drivers_have_no_maps, set_up_hopper),
        cmocka_unit_test_setup(maps_beyond_the_hardware_are_refused, set_up_hopper),
        cmocka_unit_test_setup(maps_for_old_targets_are_refused, set_up_hopper),
        cmocka_unit_test_setup(too_many_maps_are_refused, set_up_hopper),
        cmocka_unit_test_setup(threads_share_the_cache, set_up_hopper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
