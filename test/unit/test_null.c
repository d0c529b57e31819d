/* Public functions that get NULL for a handle, a struct or the place of a result: they name it, and
 * nothing happens. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_fixture.h"

#include "tilus/artefact.h"
#include "tilus/attention.h"
#include "tilus/bigint.h"
#include "tilus/child.h"
#include "tilus/matmul.h"
#include "tilus/tilus.h"

static int set_up(void **state)
{
    (void)state;
    open_rt();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tilus_rt_close(rt);
    return 0;
}

/* The call refuses the pointer of that name. */
#define REFUSES(name, call)                                                                   \
    do {                                                                                      \
        tilus_rt_fail(TILUS_OK, "");                                                          \
        assert_int_equal(call, TILUS_ERROR_ARGUMENT);                                         \
        assert_string_equal(tilus_rt_error(), name " is NULL");                               \
    } while (0)

static void the_runtime(void **state)
{
    (void)state;
    char message[64];
    REFUSES("out", tilus_rt_open(NULL, NULL, message, sizeof message));
    assert_string_equal(message, "out is NULL");
    REFUSES("out", tilus_rt_open(NULL, NULL, NULL, 9));
    assert_int_equal(tilus_rt_driver_version(NULL), 0);
    assert_int_equal(tilus_rt_device_count(NULL), 0);
    assert_string_equal(tilus_rt_device_name(NULL, 0), "");
    assert_int_equal(tilus_rt_compute_capability(NULL, 0), 0);
    assert_int_equal(tilus_rt_device_memory(NULL, 0), 0);
    assert_int_equal(tilus_rt_multiprocessors(NULL, 0), 0);
    assert_int_equal(tilus_rt_shared_memory(NULL, 0), 0);
    tilus_rt_close(NULL);
}

static void memory(void **state)
{
    (void)state;
    uint64_t address = 1;
    bool entered = true;
    REFUSES("rt", tilus_rt_allocate(NULL, 0, 16, &address));
    assert_int_equal(address, 0);
    REFUSES("address", tilus_rt_allocate(rt, 0, 16, NULL));
    REFUSES("rt", tilus_rt_release(NULL, 0, 256));
    REFUSES("rt", tilus_rt_upload(NULL, 0, 256, &address, 8));
    REFUSES("rt", tilus_rt_download(NULL, 0, &address, 256, 8));
    REFUSES("from", tilus_rt_upload(rt, 0, 256, NULL, 8));
    REFUSES("from", tilus_rt_enqueue_upload(rt, 0, NULL, 256, NULL, 8));
    REFUSES("to", tilus_rt_download(rt, 0, NULL, 256, 8));
    REFUSES("rt", tilus_rt_fill(NULL, 0, 256, 0, 8));
    REFUSES("rt", tilus_rt_synchronize(NULL, 0));
    REFUSES("rt", tilus_rt_enqueue_upload(NULL, 0, NULL, 256, &address, 8));
    REFUSES("rt", tilus_rt_enter(NULL, 0, &entered));
    assert_false(entered);
    REFUSES("entered", tilus_rt_enter(rt, 0, NULL));
    REFUSES("rt", tilus_rt_leave(NULL, 0, false));
}

static void kernels(void **state)
{
    (void)state;
    tilus_kernel *kernel = NULL, *const none[] = {NULL};
    tilus_sequence *sequence;
    size_t size = 1;
    REFUSES("rt", tilus_kernel_load(NULL, "", 1, &kernel));
    REFUSES("artefact", tilus_kernel_load(rt, NULL, 1, &kernel));
    REFUSES("out", tilus_kernel_load(rt, "", 1, NULL));
    REFUSES("rt", tilus_kernel_create(NULL, &(tilus_artefact){0}, &kernel));
    REFUSES("out", tilus_kernel_create(rt, &(tilus_artefact){0}, NULL));
    assert_null(tilus_kernel_artefact(NULL));
    assert_int_equal(tilus_kernel_registers(NULL, 0), -1);
    assert_int_equal(tilus_kernel_local_bytes(NULL, 0), -1);
    REFUSES("kernel", tilus_kernel_prepare(NULL, 0));
    REFUSES("kernel", tilus_workspace_size(NULL, NULL, 0, &size));
    assert_int_equal(size, 0);
    REFUSES("size", tilus_workspace_size(NULL, NULL, 0, NULL));
    REFUSES("kernel", tilus_launch(NULL, NULL, NULL, 0, 0, 0));
    REFUSES("out", tilus_sequence_create(none, 1, NULL));
    REFUSES("kernels", tilus_sequence_create(NULL, 1, &sequence));
    REFUSES("kernels[0]", tilus_sequence_create(none, 1, &sequence));
    REFUSES("sequence", tilus_sequence_run(NULL, NULL, NULL));
    tilus_kernel_unload(NULL);
    tilus_sequence_free(NULL);
}

static void artefacts(void **state)
{
    (void)state;
    char message[64];
    tilus_artefact *read;
    void *bytes;
    size_t size;
    assert_int_equal(tilus_artefact_read(NULL, 9, &read, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_null(read);
    assert_string_equal(message, "bytes is NULL");
    assert_int_equal(tilus_artefact_read("", 1, NULL, NULL, 0), TILUS_ERROR_ARGUMENT);
    REFUSES("artefact", tilus_artefact_write(NULL, &bytes, &size));
    REFUSES("bytes", tilus_artefact_write(&(tilus_artefact){0}, NULL, &size));
    REFUSES("size", tilus_artefact_write(&(tilus_artefact){0}, &bytes, NULL));
}

static void matmul(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .n = 64, .k = 64,
                                          .weights = "u4"};
    tilus_matmul *library;
    tilus_matmul_plan *plan;
    tilus_matmul_packed packed = {.struct_size = sizeof packed};
    int64_t n_tile = 1, k_tile = 1;
    REFUSES("rt", tilus_matmul_open(NULL, NULL, &library));
    assert_null(library);
    REFUSES("out", tilus_matmul_open(rt, NULL, NULL));
    REFUSES("matmul", tilus_matmul_plan_create(NULL, &problem, 0, &plan));
    assert_null(plan);
    assert_ok(tilus_matmul_open(rt, NULL, &library));
    REFUSES("problem", tilus_matmul_plan_create(library, NULL, 0, &plan));
    REFUSES("out", tilus_matmul_plan_create(library, &problem, 0, NULL));
    assert_ok(tilus_matmul_plan_create(library, &problem, 0, &plan));
    REFUSES("plan", tilus_matmul_prepare(NULL, 1));
    assert_null(tilus_matmul_describe(NULL, 1));
    assert_null(tilus_matmul_kernels(NULL, 1));
    assert_int_equal(tilus_matmul_packed_size(NULL), 0);
    assert_int_equal(tilus_matmul_packed_identity(NULL), 0);
    assert_int_equal(tilus_matmul_workspace_size(NULL, 1), 0);
    tilus_matmul_tile(NULL, &n_tile, &k_tile);
    assert_true(n_tile == 0 && k_tile == 0);
    REFUSES("plan", tilus_matmul_pack(NULL, NULL, &packed));
    REFUSES("packed", tilus_matmul_pack(plan, NULL, NULL));
    REFUSES("plan", tilus_matmul_pack_device(NULL, NULL, NULL, 256));
    REFUSES("packed", tilus_matmul_packed_describe(NULL, 256, &packed));
    REFUSES("out", tilus_matmul_packed_describe(&packed, sizeof packed, NULL));
    REFUSES("plan", tilus_matmul_packed_check(NULL, &packed, sizeof packed));
    REFUSES("whole", tilus_matmul_shard(NULL, &packed, plan, 0, 0, &packed));
    REFUSES("part", tilus_matmul_shard(plan, &packed, NULL, 0, 0, &packed));
    REFUSES("plan", tilus_matmul_run(NULL, NULL, NULL));
    REFUSES("call", tilus_matmul_run(plan, NULL, NULL));
    REFUSES("plan", tilus_matmul_sort_rows(NULL, NULL, NULL));
    REFUSES("sort", tilus_matmul_sort_rows(plan, NULL, NULL));
    tilus_matmul_plan_free(plan);
    tilus_matmul_plan_free(NULL);
    tilus_matmul_close(library);
    tilus_matmul_close(NULL);
}

static void attention(void **state)
{
    (void)state;
    const tilus_attention_problem problem = {.struct_size = sizeof problem, .heads = 1};
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = 1, .queries = 1,
                                         .tokens = 1};
    tilus_attention *library;
    tilus_attention_plan *plan;
    size_t size = 1;
    REFUSES("rt", tilus_attention_open(NULL, NULL, &library));
    assert_null(library);
    REFUSES("out", tilus_attention_open(rt, NULL, NULL));
    REFUSES("attention", tilus_attention_plan_create(NULL, &problem, 0, &plan));
    assert_ok(tilus_attention_open(rt, NULL, &library));
    REFUSES("problem", tilus_attention_plan_create(library, NULL, 0, &plan));
    REFUSES("out", tilus_attention_plan_create(library, &problem, 0, NULL));
    assert_ok(tilus_attention_plan_create(library, &problem, 0, &plan));
    assert_null(tilus_attention_describe(NULL, &shape));
    assert_null(tilus_attention_kernels(NULL, &shape));
    REFUSES("plan", tilus_attention_workspace_size(NULL, &shape, &size));
    assert_int_equal(size, 0);
    REFUSES("shape", tilus_attention_workspace_size(plan, NULL, &size));
    REFUSES("out", tilus_attention_workspace_size(plan, &shape, NULL));
    REFUSES("plan", tilus_attention_backward_workspace_size(NULL, &shape, &size));
    REFUSES("out", tilus_attention_backward_workspace_size(plan, &shape, NULL));
    REFUSES("plan", tilus_attention_prepare(NULL, &shape));
    REFUSES("plan", tilus_attention_run(NULL, NULL, NULL));
    REFUSES("call", tilus_attention_run(plan, NULL, NULL));
    REFUSES("plan", tilus_attention_backward(NULL, NULL, NULL));
    REFUSES("plan", tilus_attention_append(NULL, NULL, NULL));
    tilus_attention_plan_free(plan);
    tilus_attention_plan_free(NULL);
    tilus_attention_close(library);
    tilus_attention_close(NULL);
}

static void bigint(void **state)
{
    (void)state;
    const tilus_bigint_problem problem = {.struct_size = sizeof problem, .a_bytes = 9,
                                          .b_bytes = 9};
    tilus_bigint *library;
    tilus_bigint_plan *plan;
    REFUSES("rt", tilus_bigint_open(NULL, NULL, &library));
    assert_null(library);
    REFUSES("out", tilus_bigint_open(rt, NULL, NULL));
    REFUSES("bigint", tilus_bigint_plan_create(NULL, &problem, 0, &plan));
    assert_ok(tilus_bigint_open(rt, NULL, &library));
    REFUSES("problem", tilus_bigint_plan_create(library, NULL, 0, &plan));
    REFUSES("out", tilus_bigint_plan_create(library, &problem, 0, NULL));
    assert_ok(tilus_bigint_plan_create(library, &problem, 0, &plan));
    assert_null(tilus_bigint_describe(NULL));
    assert_int_equal(tilus_bigint_workspace_size(NULL), 0);
    REFUSES("plan", tilus_bigint_prepare(NULL));
    REFUSES("plan", tilus_bigint_mul(NULL, NULL, NULL));
    REFUSES("call", tilus_bigint_mul(plan, NULL, NULL));
    tilus_bigint_plan_free(plan);
    tilus_bigint_plan_free(NULL);
    tilus_bigint_close(library);
    tilus_bigint_close(NULL);
}

static void compiler(void **state)
{
    (void)state;
    static const char text[] = "tilus 1\nprogram @p<1>() warps(1) {\n}\n";
    const tilus_compile_options options = {.struct_size = sizeof options, .cpu = "sm_80"};
    const tilus_cpu_options cpu = {.struct_size = sizeof cpu, .cpu = "sm_80"};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "p", text, strlen(text), 1, NULL, 0);
    void *bytes;
    size_t size;
    assert_non_null(m);
    assert_int_equal(tilus_interpret(NULL, "p", NULL, 0, NULL, 0, NULL), TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_interpret(m, NULL, NULL, 0, NULL, 0, NULL), TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_run_on_cpu(NULL, "p", NULL, 0, NULL, 0, &cpu, NULL),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_run_on_cpu(m, NULL, NULL, 0, NULL, 0, &cpu, NULL),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_compile_artefact(NULL, &options, NULL, NULL, &bytes, &size),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_compile_artefact(m, &options, NULL, NULL, NULL, &size),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_jit(NULL, text, strlen(text), NULL, &bytes, &size),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_jit(diag, text, strlen(text), NULL, NULL, &size),
                     TILUS_ERROR_ARGUMENT);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* The compiler refuses the pointer of that name, and says so where there is room. */
#define REFUSES_REQUEST(name, call)                                                           \
    do {                                                                                      \
        snprintf(message, sizeof message, "untouched");                                       \
        assert_int_equal(call, TILUS_ERROR_ARGUMENT);                                         \
        assert_string_equal(message, name " is NULL");                                        \
    } while (0)

/* Compilers that libraries ask for kernels; those in a child process start none. */
static void compilers_of_templates(void **state)
{
    static const struct {
        tilus_matmul_compiler *compile;
        const char *program;
        bool takes_no_parameters;
    } rows[] = {{tilus_matmul_compile, "matmul", false}, {tilus_bigint_compile, "product", false},
                {tilus_attention_compile, "append", false},
                {tilus_compile_in_child, "matmul", true},
                {tilus_attention_compile_in_child, "append", true}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tilus_matmul_compiler *compile = rows[i].compile;
        const char *program = rows[i].program;
        char message[64];
        void *bytes = &bytes;
        size_t size = 1, room = sizeof message;
        REFUSES_REQUEST("bytes", compile(NULL, program, "", "sm_80", NULL, &size, message, room));
        assert_int_equal(size, 0);
        REFUSES_REQUEST("size", compile(NULL, program, "", "sm_80", &bytes, NULL, message, room));
        assert_null(bytes);
        REFUSES_REQUEST("program", compile(NULL, NULL, "", "sm_80", &bytes, &size, message, room));
        REFUSES_REQUEST("target", compile(NULL, program, "", NULL, &bytes, &size, message, room));
        if (!rows[i].takes_no_parameters)
            REFUSES_REQUEST("parameters",
                            compile(NULL, program, NULL, "sm_80", &bytes, &size, message, room));
        assert_int_equal(compile(NULL, program, "", "sm_80", NULL, NULL, NULL, room),
                         TILUS_ERROR_ARGUMENT);
    }
    assert_int_equal(tilus_matmul_compile(NULL, "matmul", "W", "sm_80", &(void *){0}, &(size_t){0},
                                          NULL, 9), TILUS_ERROR_ARGUMENT);
}

static void children(void **state)
{
    const tilus_child_source source = {.struct_size = sizeof source, .text = "", .target = "sm_80"};
    void *bytes = &bytes;
    size_t size = 1;
    char *text;
    (void)state;
    assert_int_equal(tilus_child_compile(NULL, &source, NULL, &size, &text), TILUS_ERROR_ARGUMENT);
    assert_string_equal(text, "error: bytes is NULL\n");
    assert_int_equal(size, 0);
    tilus_free(text);
    assert_int_equal(tilus_child_compile(NULL, &source, &bytes, NULL, &text), TILUS_ERROR_ARGUMENT);
    assert_string_equal(text, "error: size is NULL\n");
    assert_null(bytes);
    tilus_free(text);
    assert_int_equal(tilus_child_compile(NULL, NULL, NULL, NULL, NULL), TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_child_compile(NULL, NULL, &bytes, &size, NULL), TILUS_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime), cmocka_unit_test(memory), cmocka_unit_test(kernels),
        cmocka_unit_test(artefacts), cmocka_unit_test(matmul), cmocka_unit_test(attention),
        cmocka_unit_test(bigint), cmocka_unit_test(compiler),
        cmocka_unit_test(compilers_of_templates), cmocka_unit_test(children),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
