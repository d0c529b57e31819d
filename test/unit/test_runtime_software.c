/* Software devices: descriptions in place of a driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

static int set_up_nothing(void **state)
{
    (void)state;
    setenv("TILUS_LIBCUDA", "/nowhere/libcuda.so", 1);
    return 0;
}

static tilus_rt *open_devices(const tilus_device_description *devices, size_t count)
{
    const tilus_rt_options options = {.struct_size = sizeof options, .devices = devices,
                                      .device_count = count};
    char message[256];
    tilus_rt *rt;
    if (tilus_rt_open(&options, &rt, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    return rt;
}

static void knows_devices(void **state)
{
    (void)state;
    size_t count = 0;
    for (const tilus_device_description *d; (d = tilus_known_device(count)); count++) {
        assert_int_equal(d->struct_size, sizeof *d);
        assert_ptr_equal(tilus_find_device(d->key), d);
        assert_ptr_equal(tilus_find_device(d->name), d);
        tilus_rt *rt = open_devices(d, 1);
        assert_int_equal(tilus_rt_device_count(rt), 1);
        tilus_rt_close(rt);
    }
    assert_true(count >= 8);
    assert_ptr_equal(tilus_find_device("H200"), tilus_known_device(0));
    assert_null(tilus_find_device("h2000"));
    assert_null(tilus_find_device(""));
    assert_null(tilus_find_device(NULL));
}

static void describes_what_it_was_given(void **state)
{
    (void)state;
    tilus_device_description both[] = {*tilus_find_device("l40s"), *tilus_find_device("h200")};
    char name[] = "Mine";
    both[0].name = name;
    both[0].key = NULL;
    tilus_rt *rt = open_devices(both, COUNT(both));
    memset(name, 'x', sizeof name - 1);
    memset(both, 0xff, sizeof both);    /* they are needed no more */
    assert_int_equal(tilus_rt_device_count(rt), 2);
    assert_int_equal(tilus_rt_driver_version(rt), 0);
    assert_string_equal(tilus_rt_device_name(rt, 0), "Mine");
    assert_string_equal(tilus_rt_device_name(rt, 1), "NVIDIA H200");
    assert_int_equal(tilus_rt_compute_capability(rt, 0), 89);
    assert_int_equal(tilus_rt_multiprocessors(rt, 1), 132);
    assert_int_equal(tilus_rt_shared_memory(rt, 1), 227 * 1024);
    assert_true(tilus_rt_device_memory(rt, 1) == 141000000000);
    tilus_rt_close(rt);
}

/* A caller of a later version, whose descriptions are longer. */
static void takes_longer_descriptions(void **state)
{
    (void)state;
    struct {
        tilus_device_description base;
        size_t more;
    } both[2] = {{*tilus_find_device("a100"), 0}, {*tilus_find_device("h200"), 0}};
    both[0].base.struct_size = both[1].base.struct_size = sizeof *both;
    tilus_rt *rt = open_devices(&both[0].base, COUNT(both));
    assert_string_equal(tilus_rt_device_name(rt, 1), "NVIDIA H200");
    tilus_rt_close(rt);
}

static void assert_refused(const tilus_device_description *devices, size_t count,
                           const char *part)
{
    const tilus_rt_options options = {.struct_size = sizeof options, .devices = devices,
                                      .device_count = count};
    char message[512];
    tilus_rt *rt = (tilus_rt *)message;
    assert_int_equal(tilus_rt_open(&options, &rt, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_null(rt);
    assert_contains(message, part);
}

static void refuses_what_is_no_device(void **state)
{
    (void)state;
    char longer[256];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    tilus_device_description d = *tilus_find_device("h200"), bad = d, two[] = {d, d};
    assert_refused(NULL, 1, "options: devices is NULL and device_count 1");
    assert_refused(&d, 0, "options: devices is given and device_count 0");
    bad.struct_size = 0;
    assert_refused(&bad, 1, "devices[0]: struct_size is 0, not sizeof(tilus_device_description)");
    two[1].struct_size = 8;
    assert_refused(two, 2, "devices[1]: struct_size is 8");
    bad = d, bad.name = NULL;
    assert_refused(&bad, 1, "devices[0]: name is NULL");
    bad.name = "";
    assert_refused(&bad, 1, "name is empty");
    bad.name = longer;
    assert_refused(&bad, 1, "name is longer, not 1 to 127 bytes");
    bad = d, bad.capability = 0;
    assert_refused(&bad, 1, "capability is 0");
    bad = d, bad.multiprocessors = -1;
    assert_refused(&bad, 1, "multiprocessors is -1, not 1 to");
    bad = d, bad.shared_memory = SIZE_MAX;
    assert_refused(&bad, 1, "shared_memory is 18446744073709551615, not 1 to");
}

static void refuses_options_without_a_size(void **state)
{
    (void)state;
    tilus_rt_options none = {.struct_size = 0};
    char message[256];
    tilus_rt *rt;
    assert_int_equal(tilus_rt_open(&none, &rt, message, sizeof message), TILUS_ERROR_ARGUMENT);
    assert_contains(message, "options: struct_size is 0, not sizeof(tilus_rt_options)");
    none.struct_size = 12;      /* half of a field */
    assert_int_equal(tilus_rt_open(&none, &rt, message, sizeof message), TILUS_ERROR_ARGUMENT);
    assert_contains(message, "options: struct_size is 12");
}

/* Whatever needs a driver says that there is none. */
static void says_that_there_is_no_driver(void **state)
{
    (void)state;
    static const char part[] = "device 0 (NVIDIA H200, sm_90): a software device";
    tilus_rt *rt = open_devices(tilus_find_device("h200"), 1);
    tilus_kernel *kernel = create(rt, &scale, ptx);
    uint64_t address;
    size_t size;
    bool entered;
    assert_fails(tilus_rt_allocate(rt, 0, 1, &address), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_release(rt, 0, 0x1000), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_upload(rt, 0, 0x1000, &size, 8), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_download(rt, 0, &size, 0x1000, 8), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_fill(rt, 0, 0x1000, 0, 8), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_synchronize(rt, 0), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_rt_enter(rt, 0, &entered), TILUS_ERROR_NO_DRIVER, part);
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_NO_DRIVER, part + 9);
    assert_fails(launch(kernel, NULL), TILUS_ERROR_NO_DRIVER, "a software device");
    assert_fails(tilus_rt_synchronize(rt, 1), TILUS_ERROR_NO_DEVICE, "the process has 1");
    assert_ok(tilus_workspace_size(kernel, good_args, COUNT(good_args), &size));
    assert_int_equal(tilus_kernel_registers(kernel, 0), -1);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void has_a_version(void **state)
{
    (void)state;
    int major, minor, patch;
    assert_int_equal(sscanf(tilus_rt_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(knows_devices, set_up_nothing),
        cmocka_unit_test_setup(describes_what_it_was_given, set_up_nothing),
        cmocka_unit_test_setup(takes_longer_descriptions, set_up_nothing),
        cmocka_unit_test_setup(refuses_what_is_no_device, set_up_nothing),
        cmocka_unit_test_setup(refuses_options_without_a_size, set_up_nothing),
        cmocka_unit_test_setup(says_that_there_is_no_driver, set_up_nothing),
        cmocka_unit_test(has_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
