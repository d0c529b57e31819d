/* Workspaces: what a launcher computes of them, against the offsets that code
 * generation uses; launches with one on a fake driver. */
#define _GNU_SOURCE
#include "fake_cuda.h"
#include "ir/op_attrs.h"
#include "memory/workspace.h"
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- plans ---------------------------------------------------------------- */

static tilus_module *parse(tilus_diag *diag, const char *text)
{
    tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, NULL, 0);
    if (!m)
        tilus_diag_write(diag, NULL, NULL);
    assert_non_null(m);
    return m;
}

static int64_t argument(const Value *v, void *data)
{
    const tilus_arg *args = data;
    return args[v->index].integer;
}

static int64_t evaluate(const Expr *e, tilus_arg *args)
{
    int64_t value;
    assert_null(expr_evaluate(e, argument, args, &value));
    return value;
}

/* The bytes of the tensor of `op`, by its definition. */
static int64_t tensor_bytes(const Op *op, tilus_arg *args)
{
    const Type *t = op->results[0]->type;
    int64_t bits = dtype_bits(t->dtype);
    for (unsigned d = 0; d < t->rank; d++)
        bits *= evaluate(t->extents[d], args);
    return (bits + 7) / 8;
}

/* The tensors lie apart, aligned, the zeroed ones first, and the launcher knows how
 * much that is. */
static void check_plan(tilus_module *m, tilus_arg *args)
{
    Program *p = m->programs;
    Workspace w = workspace_of(p, &m->arena);
    assert_true(workspace_place(m, &w, &m->arena));
    int64_t end = 0, zeroed = 0;
    for (unsigned i = 0; i < w.count; i++) {
        int64_t offset = evaluate(w.offsets[i], args);
        assert_int_equal(offset % TILUS_WORKSPACE_ALIGN, 0);
        assert_true(offset >= end);
        end = offset + tensor_bytes(w.ops[i], args);
        assert_true(evaluate(w.offsets[i + 1], args) - end < TILUS_WORKSPACE_ALIGN);
        if (workspace_is_zeroed(w.ops[i])) {
            assert_int_equal(offset, zeroed);
            zeroed = evaluate(w.offsets[i + 1], args);
        }
    }
    size_t size, filled;
    char message[128];
    assert_int_equal(tilus_kernel_workspace_size(tilus_module_kernel_info(m, p->name), args,
                                                 &size, &filled, message, sizeof message),
                     TILUS_OK);
    assert_int_equal(size, evaluate(w.offsets[w.count], args));
    assert_int_equal(filled, zeroed);
    assert_int_equal(filled, evaluate(w.zeroed, args));
}

static unsigned draw(uint64_t *seed, unsigned below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % below;
}

/* Writes an allocate_global of any type, extents, zeroed or not, placed or not. */
static int write_tensor(char *text, size_t size, unsigned number, uint64_t *seed)
{
    static const char *const types[] = {"f32", "u1", "i5", "f16", "f64", "i32", "f6e3m2"};
    static const char *const extents[] = {"%m", "3", "%n / 2", "%m * %n", "1", "64", "0"};
    static const char *const words[] = {"", "{zeroed = true}", "{zeroed = false, place = 1}",
                                        "{place = 0}", "{zeroed = true, place = 5}"};
    return snprintf(text, size, "  %%t%u = allocate_global %s : %s[%s, %s]\n", number,
                    words[draw(seed, COUNT(words))], types[draw(seed, COUNT(types))],
                    extents[draw(seed, COUNT(extents))], extents[draw(seed, COUNT(extents))]);
}

static void launchers_know_the_plan(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (unsigned program = 0; program < 300; program++) {
        char text[2048];
        size_t used = (size_t)snprintf(text, sizeof text,
                                       "program @p<1>(%%m: i32, %%n: i32) warps(1) {\n");
        for (unsigned i = draw(&seed, 9); i > 0; i--)
            used += (size_t)write_tensor(text + used, sizeof text - used, i, &seed);
        snprintf(text + used, sizeof text - used, "}\n");
        tilus_diag *diag = tilus_diag_new();
        tilus_module *m = parse(diag, text);
        for (unsigned i = 0; i < 4; i++)
            check_plan(m, (tilus_arg[]){{.integer = draw(&seed, 1000)},
                                        {.integer = draw(&seed, 50)}});
        tilus_module_free(m);
        tilus_diag_free(diag);
    }
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n;
        const char *message;
    } cases[] = {
        {-1, 1, "the extent of dimension 0 of workspace tensor %b is -1"},
        {INT64_C(1) << 40, INT64_C(1) << 40, "workspace tensor %b: 1099511627776 times extent 1, "
                                             "which is 1099511627776, is over 63 bits"},
        {INT64_C(1) << 40, INT64_C(1) << 20, "workspace tensor %b: 1152921504606846976 elements "
                                             "of 8 bits are over 63 bits"},
        {1, -2, "the extent of dimension 1 of workspace tensor %b is -2"},
        {INT64_C(1) << 40, 0, "the extent of dimension 0 of workspace tensor %a: overflow of 64 bits"},
    };
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, "program @p<1>(%m: i64, %n: i64) warps(1) {\n"
                                  "  %b = allocate_global {zeroed = true} : u8[%m, %n]\n"
                                  "  %a = allocate_global : u8[%m * %m]\n}\n");
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t size = 1, zeroed = 1;
        char message[128];
        tilus_arg args[] = {{.integer = cases[i].m}, {.integer = cases[i].n}};
        assert_int_equal(tilus_kernel_workspace_size(tilus_module_kernel_info(m, "p"), args,
                                                     &size, &zeroed, message, sizeof message),
                         TILUS_ERROR_ARGUMENT);
        assert_string_equal(message, cases[i].message);
        assert_true(size == 0 && zeroed == 0);
    }
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* ---- launches ------------------------------------------------------------- */

static const char text[] = "program @p<%n>(%n: i32) warps(1) {\n"
                           "  %i = block_indices\n"
                           "  %t = allocate_global : f32[%n, 100]\n"
                           "  %s = allocate_global {zeroed = true} : i32[%n]\n"
                           "  lock %s[%i], 0\n}\n";
static const char ptx[] = ".entry p(.param .u32 n, .param .u64 workspace)";

static FakeCuda *fake;

/* A kernel on the fake driver, whose module is gone already. */
static tilus_kernel *load(tilus_rt **rt)
{
    char message[256];
    tilus_kernel *kernel;
    setenv("TILUS_LIBCUDA", TILUS_FAKE_CUDA, 1);
    fake = dlsym(dlopen(TILUS_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL), "fake_cuda");
    assert_non_null(fake);
    memset(fake, 0, sizeof *fake);
    fake->device_count = 1;
    assert_int_equal(tilus_rt_open(NULL, rt, message, sizeof message), TILUS_OK);
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, text);
    const tilus_artefact artefact = {
        .info = tilus_module_kernel_info(m, "p"), .target = "sm_80", .ptx = ptx};
    assert_int_equal(tilus_kernel_create(*rt, &artefact, &kernel), TILUS_OK);
    assert_int_equal(tilus_kernel_prepare(kernel, 0), TILUS_OK);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return kernel;
}

static void fills_before_each_launch(void **state)
{
    (void)state;
    enum { ZEROED = 256, SIZE = ZEROED + 3 * 400 + 80 };
    static _Alignas(TILUS_WORKSPACE_ALIGN) unsigned char memory[SIZE + 1];
    tilus_rt *rt;
    tilus_kernel *kernel = load(&rt);
    tilus_arg args[] = {{.integer = 3}};
    size_t size;
    assert_int_equal(tilus_workspace_size(kernel, args, 1, &size), TILUS_OK);
    assert_int_equal(size, SIZE);
    for (int launch = 0; launch < 2; launch++) {
        memset(memory, 0xAB, sizeof memory);
        assert_int_equal(tilus_launch(kernel, NULL, args, 1, (uintptr_t)memory, size), TILUS_OK);
        assert_int_equal(fake->launches, launch + 1);
        assert_int_equal(fake->filled_after, launch);
        assert_int_equal(fake->fill_bytes, ZEROED);
        assert_true(memory[0] == 0 && memory[ZEROED - 1] == 0 && memory[ZEROED] == 0xAB);
        assert_memory_equal(fake->parameters, ((uint64_t[]){3, (uintptr_t)memory}), 16);
    }
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void refuses_a_bad_workspace(void **state)
{
    (void)state;
    tilus_rt *rt;
    tilus_kernel *kernel = load(&rt);
    tilus_arg args[] = {{.integer = 3}}, none[] = {{.integer = 0}};
    assert_int_equal(tilus_launch(kernel, NULL, args, 1, 0, 0), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "kernel @p (sm_80): a workspace of 0 bytes, this "
                                          "launch needs 1536");
    assert_int_equal(tilus_launch(kernel, NULL, args, 1, 0x180, 4096), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "kernel @p (sm_80): the workspace at 0x180 is not "
                                          "aligned to 256 bytes");
    assert_int_equal(tilus_launch(kernel, NULL, none, 1, 0, 0), TILUS_OK);
    size_t size = 1;
    assert_int_equal(tilus_workspace_size(kernel, NULL, 0, &size), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "kernel @p (sm_80): program takes 1 argument, got 0");
    assert_int_equal(size, 0);
    assert_int_equal(fake->launches, 0);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

static void a_failed_fill_is_reported(void **state)
{
    (void)state;
    static _Alignas(TILUS_WORKSPACE_ALIGN) unsigned char memory[1024];
    tilus_rt *rt;
    tilus_kernel *kernel = load(&rt);
    tilus_arg args[] = {{.integer = 1}};
    fake->fail = "cuMemsetD8Async:1";
    assert_int_equal(tilus_launch(kernel, NULL, args, 1, (uintptr_t)memory, sizeof memory),
                     TILUS_ERROR_DRIVER);
    assert_non_null(strstr(tilus_rt_error(), "cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE"));
    assert_int_equal(fake->launches, 0);
    assert_int_equal(fake->current, 0);
    fake->fail = NULL;
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_know_the_plan),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(fills_before_each_launch),
        cmocka_unit_test(refuses_a_bad_workspace),
        cmocka_unit_test(a_failed_fill_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
