/* Products on a software device with the CPU engine, by public calls alone, against sums of
 * f64; and what the runtime and the engine refuse. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include <cmocka.h>

#include "matmul_device.h"
#include "tilus/types.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- memory ---------------------------------------------------------------------- */

static uint64_t place(const void *bytes, size_t size)
{
    uint64_t address;
    assert_ok(tilus_rt_allocate(rt, 0, size, &address));
    assert_int_equal(address % 256, 0);
    if (bytes)
        assert_ok(tilus_rt_upload(rt, 0, address, bytes, size));
    return address;
}

static void release(uint64_t address)
{
    assert_ok(tilus_rt_release(rt, 0, address));
}

/* ---- products -------------------------------------------------------------------- */

static double uniform(void)
{
    static uint32_t seed = 12345;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) / 8388608.0 - 1;
}

/* Elements of `type`, and their values. */
static void *make(const char *type, size_t count, double scale, double *values)
{
    unsigned bits = tilus_type_bits(type);
    void *bytes = calloc((count * bits + 7) / 8 + 1, 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t code = tilus_encode(type, scale * uniform());
        values[i] = tilus_decode(type, code);
        tilus_set_bits(bytes, i, bits, code);
    }
    return bytes;
}

typedef struct Case {
    tilus_matmul_problem problem;
    int64_t m, a_stride;
    double scale;               /* of codes */
} Case;

typedef struct Operands {
    const Case *c;
    int64_t stride;
    tilus_matmul_weights weights;
    double *b, *a, *bias;       /* b: [n, k], dequantized */
    void *a_bytes, *bias_bytes;
} Operands;

static double *numbers(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

static Operands make_operands(const Case *c)
{
    const tilus_matmul_problem *p = &c->problem;
    int64_t group = p->group ? p->group : p->k, groups = (p->k - 1) / group + 1;
    const char *activations = p->activations ? p->activations : "f16";
    Operands o = {.c = c, .stride = c->a_stride ? c->a_stride : p->k,
                  .b = numbers(p->n * p->k), .bias = numbers(p->n)};
    o.a = numbers(c->m * o.stride);
    double *scales = numbers(p->n * groups), *zeros = numbers(p->n * groups);
    o.a_bytes = make(activations, (size_t)(c->m * o.stride), 1, o.a);
    o.bias_bytes = make("f16", (size_t)p->n, 1, o.bias);
    o.weights = (tilus_matmul_weights){.struct_size = sizeof o.weights, .transposed = true};
    o.weights.codes = make(p->weights, (size_t)(p->n * p->k), c->scale, o.b);
    o.weights.scales = make("f16", (size_t)(p->n * groups), 0.01, scales);
    if (p->zeros == TILUS_ZEROS_INTEGER)
        o.weights.zeros = make("u8", (size_t)(p->n * groups), 3, zeros);
    else if (p->zeros == TILUS_ZEROS_FLOAT)
        o.weights.zeros = make("f16", (size_t)(p->n * groups), 1, zeros);
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < p->k; k++) {
            int64_t g = n * groups + k / group;
            o.b[n * p->k + k] = (o.b[n * p->k + k] - zeros[g]) * scales[g];
        }
    free(scales);
    free(zeros);
    return o;
}

static void free_operands(Operands *o)
{
    free((void *)o->weights.codes);
    free((void *)o->weights.scales);
    free((void *)o->weights.zeros);
    free(o->b);
    free(o->a);
    free(o->bias);
    free(o->a_bytes);
    free(o->bias_bytes);
}

static double function_of(tilus_epilogue function, double x)
{
    return function == TILUS_EPILOGUE_SILU ? x / (1 + exp(-x)) : x;
}

/* Compares C, of f16, with sums of f64: the norm of the difference, of the norm. */
static double find_error(const Operands *o, const void *c)
{
    const tilus_matmul_problem *p = &o->c->problem;
    double error = 0, norm = 0;
    for (int64_t m = 0; m < o->c->m; m++)
        for (int64_t n = 0; n < p->n; n++) {
            double sum = p->bias ? o->bias[n] : 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += o->a[m * o->stride + k] * o->b[n * p->k + k];
            double want = function_of(p->function, sum);
            uint64_t code = tilus_get_bits(c, (size_t)(m * p->n + n), 16);
            error += pow(tilus_decode("f16", code) - want, 2);
            norm += want * want;
        }
    return sqrt(error / norm);
}

/* Packs on the host and on the device, which give the same bytes; the device's address. */
static uint64_t pack(tilus_matmul_plan *plan, const Operands *o)
{
    const tilus_matmul_problem *p = &o->c->problem;
    int64_t group = p->group ? p->group : p->k;
    size_t size = tilus_matmul_packed_size(plan);
    size_t groups = (size_t)(p->n * ((p->k - 1) / group + 1));
    size_t codes = ((size_t)(p->n * p->k) * tilus_type_bits(p->weights) + 7) / 8;
    void *host = malloc(size), *device = calloc(1, size);
    tilus_matmul_weights there = o->weights;
    uint64_t packed = place(device, size), addresses[3] = {
        place(o->weights.codes, codes), place(o->weights.scales, 2 * groups),
        p->zeros ? place(o->weights.zeros, p->zeros == TILUS_ZEROS_FLOAT ? 2 * groups : groups)
                 : 0};
    there.codes = (const void *)(uintptr_t)addresses[0];
    there.scales = (const void *)(uintptr_t)addresses[1];
    there.zeros = (const void *)(uintptr_t)addresses[2];
    assert_ok(tilus_matmul_pack(plan, &o->weights, host));
    assert_ok(tilus_matmul_pack_device(plan, NULL, &there, packed));
    assert_ok(tilus_rt_download(rt, 0, device, packed, size));
    assert_ok(tilus_matmul_packed_check(plan, device, size));
    assert_memory_equal(host, device, size);
    for (size_t i = 0; i < COUNT(addresses); i++)
        release(addresses[i]);
    free(host);
    free(device);
    return packed;
}

static void check_product(const Case *c)
{
    tilus_matmul_problem problem = c->problem;
    tilus_matmul_plan *plan;
    problem.struct_size = sizeof problem;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    Operands o = make_operands(c);
    size_t c_size = (size_t)(c->m * problem.n) * 2, room = tilus_matmul_workspace_size(plan, c->m);
    unsigned a_bits = tilus_type_bits(problem.activations ? problem.activations : "f16");
    const tilus_matmul_call call = {
        .struct_size = sizeof call, .m = c->m, .a_stride = c->a_stride,
        .a = place(o.a_bytes, (size_t)(c->m * o.stride) * a_bits / 8),
        .weights = pack(plan, &o), .bias = problem.bias ? place(o.bias_bytes, 2 * problem.n) : 0,
        .c = place(NULL, c_size), .workspace = place(NULL, room), .workspace_size = room,
        .weights_identity = tilus_matmul_packed_identity(plan)};
    void *result = malloc(c_size);
    assert_ok(tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES));
    assert_ok(tilus_matmul_prepare(plan, c->m));
    for (int pass = 0; pass < 2; pass++) {      /* the workspace serves again */
        assert_ok(tilus_rt_fill(rt, 0, call.c, 0xff, c_size));
        assert_ok(tilus_matmul_run(plan, (tilus_stream)0x1000, &call));
        assert_ok(tilus_rt_download(rt, 0, result, call.c, c_size));
        double error = find_error(&o, result);
        if (!(error < 0.002))
            fail_msg("%s, m = %d: %g of the norm", problem.weights, (int)c->m, error);
    }
    const uint64_t all[] = {call.a, call.weights, call.bias, call.c, call.workspace};
    for (size_t i = 0; i < COUNT(all); i++)
        release(all[i]);
    free(result);
    free_operands(&o);
    tilus_matmul_plan_free(plan);
}

static void multiplies(void **state)
{
    (void)state;
    static const Case cases[] = {
        {{.weights = "u4", .n = 64, .k = 256, .group = 128, .zeros = TILUS_ZEROS_INTEGER}, 1, 0,
         15},
        {{.weights = "f6e3m2", .n = 40, .k = 136, .bias = true,
          .function = TILUS_EPILOGUE_SILU}, 3, 0, 10},
        {{.weights = "i3", .activations = "i8", .scales = "f16", .n = 48, .k = 256, .group = 64},
         5, 0, 3},
        {{.weights = "u1", .n = 32, .k = 128, .group = 32, .zeros = TILUS_ZEROS_FLOAT}, 9, 137,
         1},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_product(&cases[i]);
}

/* ---- low-rank terms ---------------------------------------------------------------- */

/* Multiplies A at an address by the operands' weights into C at another one, which is its own
 * residual where the problem has one. */
static void multiply(const Operands *o, uint64_t a, uint64_t c)
{
    tilus_matmul_problem problem = o->c->problem;
    tilus_matmul_plan *plan;
    problem.struct_size = sizeof problem;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    size_t room = tilus_matmul_workspace_size(plan, o->c->m);
    const tilus_matmul_call call = {
        .struct_size = sizeof call, .m = o->c->m, .a = a, .weights = pack(plan, o), .c = c,
        .residual = problem.residual ? c : 0, .workspace = place(NULL, room),
        .workspace_size = room};
    assert_ok(tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES));
    assert_ok(tilus_matmul_run(plan, (tilus_stream)0x1000, &call));
    release(call.weights);
    release(call.workspace);
    tilus_matmul_plan_free(plan);
}

/* Returns A x B + (A x U) x V for an element, in f64. */
static double low_rank_sum(const Operands *base, const Operands *down, const Operands *up,
                           int64_t m, int64_t n)
{
    int64_t k = base->c->problem.k, rank = up->c->problem.k;
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += base->a[m * k + i] * base->b[n * k + i];
    for (int64_t r = 0; r < rank; r++)
        for (int64_t i = 0; i < k; i++)
            sum += base->a[m * k + i] * down->b[r * k + i] * up->b[n * rank + r];
    return sum;
}

static void check_low_rank(int64_t rank, const char *weights)
{
    enum { M = 3, N = 40, K = 200 };
    const Case base = {{.weights = weights, .n = N, .k = K, .group = 96, .result = "f16"}, M, 0, 5};
    const Case down = {{.weights = "i8", .n = rank, .k = K}, M, 0, 100};
    const Case up = {{.weights = "i8", .n = N, .k = rank, .group = 32, .residual = true}, M, 0,
                     40};
    Operands all[] = {make_operands(&base), make_operands(&down), make_operands(&up)};
    uint64_t a = place(all[0].a_bytes, 2 * M * K), c = place(NULL, 2 * M * N);
    uint64_t low = place(NULL, (size_t)(2 * M * rank));
    uint16_t result[M * N];
    double error = 0, norm = 0;
    multiply(&all[0], a, c);
    multiply(&all[1], a, low);
    multiply(&all[2], low, c);
    assert_ok(tilus_rt_download(rt, 0, result, c, sizeof result));
    for (int64_t i = 0; i < M * N; i++) {
        double want = low_rank_sum(&all[0], &all[1], &all[2], i / N, i % N);
        error += pow(tilus_decode("f16", result[i]) - want, 2);
        norm += want * want;
    }
    if (!(sqrt(error / norm) < 0.002))
        fail_msg("rank %d: %g of the norm", (int)rank, sqrt(error / norm));
    release(a);
    release(c);
    release(low);
    for (size_t i = 0; i < COUNT(all); i++)
        free_operands(&all[i]);
}

/* C += (A x U) x V by two products, of which the second one's residual is C. */
static void adds_low_rank_terms(void **state)
{
    (void)state;
    check_low_rank(8, "i4");
    check_low_rank(100, "f6e3m2");
}

/* ---- memory of software devices ---------------------------------------------------- */

static void knows_its_allocations(void **state)
{
    (void)state;
    unsigned char bytes[64] = {1, 2, 3};
    uint64_t a = place(bytes, 64), none = place(NULL, 0);
    assert_ok(tilus_rt_upload(rt, 0, a + 60, bytes, 4));
    assert_fails(tilus_rt_upload(rt, 0, a + 61, bytes, 4), TILUS_ERROR_ARGUMENT,
                 "4 bytes at 0x");
    assert_fails(tilus_rt_download(rt, 0, bytes, a, 65), TILUS_ERROR_ARGUMENT,
                 "are in no allocation");
    assert_fails(tilus_rt_fill(rt, 0, 0x10, 0, 1), TILUS_ERROR_ARGUMENT, "1 bytes at 0x10");
    assert_ok(tilus_rt_upload(rt, 0, none, bytes, 0));
    assert_fails(tilus_rt_release(rt, 0, a + 1), TILUS_ERROR_ARGUMENT, "begins no allocation");
    release(a);
    assert_fails(tilus_rt_release(rt, 0, a), TILUS_ERROR_ARGUMENT, "begins no allocation");
    release(none);
    assert_ok(tilus_rt_release(rt, 0, 0));
    assert_fails(tilus_rt_allocate(rt, 0, (size_t)150e9, &a), TILUS_ERROR_DEVICE_MEMORY,
                 "of its memory 141000000000 are left");
    assert_ok(tilus_rt_synchronize(rt, 0));
}

/* A description may say more memory than addresses have. */
static void refuses_allocations_of_all_memory(void **state)
{
    (void)state;
    tilus_device_description large = *tilus_find_device("h200");
    large.memory = SIZE_MAX;
    const tilus_rt_options options = {.struct_size = sizeof options, .devices = &large,
                                      .device_count = 1, .engine = tilus_cpu_engine()};
    uint64_t address = 1;
    tilus_rt *opened;
    char message[256];
    assert_int_equal(tilus_rt_open(&options, &opened, message, sizeof message), TILUS_OK);
    assert_fails(tilus_rt_allocate(opened, 0, SIZE_MAX, &address), TILUS_ERROR_DEVICE_MEMORY,
                 "out of host memory");
    assert_int_equal(address, 0);
    tilus_rt_close(opened);
}

/* ---- faults ------------------------------------------------------------------------ */

static const char text[] =
    "tilus 1\n"
    "program @store<(ceil_div(%n, 32))>(%p: ptr<i32>, %n: i32) warps(1) {\n"
    "  %b = block_indices\n"
    "  %g = view_global %p : i32[1048576]\n"
    "  %x = iota 0 {dim = 0} : i32[32] @ spatial(32)\n"
    "  store_global %x, %g[%b * 32]\n"
    "}\n";

static void *compile(const char *target, size_t *size)
{
    tilus_diag *diag = tilus_diag_new();
    void *bytes;
    const tilus_jit_options options = {.struct_size = sizeof options, .target = target,
                                       .opt_level = 1};
    tilus_status status = tilus_jit(diag, text, strlen(text), &options, &bytes, size);
    if (status != TILUS_OK)
        fail_msg("%s", tilus_diag_count(diag) ? tilus_diag_text(diag, 0) : "no message");
    tilus_diag_free(diag);
    return bytes;
}

static tilus_kernel *load_on(tilus_rt *opened, const char *target)
{
    size_t size;
    void *bytes = compile(target, &size);
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_load(opened, bytes, size, &kernel));
    tilus_free(bytes);
    return kernel;
}

static tilus_kernel *load(const char *target)
{
    return load_on(rt, target);
}

/* An access outside of an allocation is an error, after which the kernel still works. */
static void finds_faults(void **state)
{
    (void)state;
    int32_t got[64];
    uint64_t p = place(NULL, sizeof got);
    tilus_kernel *kernel = load("sm_90a");
    tilus_arg args[] = {{.pointer = p}, {.integer = 64}};
    for (int pass = 0; pass < 2; pass++) {
        args[1].integer = 64;
        assert_ok(tilus_launch(kernel, NULL, args, 2, 0, 0));
        assert_ok(tilus_rt_download(rt, 0, got, p, sizeof got));
        for (int i = 0; i < 64; i++)
            assert_int_equal(got[i], i % 32);
        args[1].integer = 65;
        assert_fails(tilus_launch(kernel, NULL, args, 2, 0, 0), TILUS_ERROR_PROGRAM,
                     "CPU engine: store:6:3: ");
    }
    args[1].integer = 0;
    assert_ok(tilus_launch(kernel, NULL, args, 2, 0, 0));
    args[1].integer = 32;
    args[0].pointer = p + 128;      /* the second half */
    assert_ok(tilus_launch(kernel, NULL, args, 2, 0, 0));
    args[0].pointer = p + 256;      /* the end */
    assert_fails(tilus_launch(kernel, NULL, args, 2, 0, 0), TILUS_ERROR_PROGRAM, "store:6:3: ");
    release(p);
    args[0].pointer = p;
    assert_fails(tilus_launch(kernel, NULL, args, 2, 0, 0), TILUS_ERROR_ARGUMENT,
                 "is in no allocation of the device");
    assert_int_equal(tilus_kernel_registers(kernel, 0), -1);
    tilus_kernel_unload(kernel);
}

/* An artefact whose description takes an integer for a pointer, which the text has there. */
static void checks_arguments_by_the_text(void **state)
{
    (void)state;
    size_t size;
    void *bytes = compile("sm_90a", &size);
    tilus_artefact *artefact;
    tilus_kernel *kernel;
    assert_ok(tilus_artefact_read(bytes, size, &artefact, NULL, 0));
    tilus_kernel_info info = *artefact->info;
    tilus_arg_info integers[] = {info.args[1], info.args[1]};
    tilus_artefact other = *artefact;
    info.args = integers;
    other.info = &info;
    assert_ok(tilus_kernel_create(rt, &other, &kernel));
    const tilus_arg args[] = {{.integer = 1 << 30}, {.integer = 64}};
    assert_fails(tilus_launch(kernel, NULL, args, 2, 0, 0), TILUS_ERROR_ARGUMENT,
                 "argument %p is buffer 1073741824, but there are 1 buffers");
    tilus_kernel_unload(kernel);
    tilus_free(artefact);
    tilus_free(bytes);
}

/* ---- turns ------------------------------------------------------------------------- */

static atomic_int running, together;

static void wait_a_little(void)
{
    thrd_sleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static tilus_status load_nothing(void *data, const tilus_artefact *artefact, void **program,
                                 char *message, size_t size)
{
    (void)artefact, (void)message, (void)size;
    *program = data;
    return TILUS_OK;
}

/* Copies the first allocation, and copies it back, as the CPU engine does. */
static tilus_status copy_twice(void *program, const tilus_engine_launch *launch, char *message,
                               size_t size)
{
    (void)program, (void)message, (void)size;
    const tilus_memory *memory = &launch->memory[0];
    unsigned char *copy = malloc(memory->size);
    if (atomic_fetch_add(&running, 1) > 0)
        atomic_store(&together, 1);
    memcpy(copy, memory->data, memory->size);
    wait_a_little();
    memcpy(memory->data, copy, memory->size);
    atomic_fetch_sub(&running, 1);
    free(copy);
    return TILUS_OK;
}

static void unload_nothing(void *program)
{
    (void)program;
}

typedef struct Turn {
    tilus_kernel *kernel;
    uint64_t address;
    tilus_status status;
} Turn;

static int launch_once(void *data)
{
    Turn *turn = data;
    const tilus_arg args[] = {{.pointer = turn->address}, {.integer = 32}};
    turn->status = tilus_launch(turn->kernel, NULL, args, 2, 0, 0);
    return 0;
}

static void launches_and_copies_take_turns(void **state)
{
    (void)state;
    const tilus_engine engine = {.struct_size = sizeof engine, .name = "copies", .data = &running,
                                 .load = load_nothing, .run = copy_twice,
                                 .unload = unload_nothing};
    tilus_rt *opened = open_device("h200", &engine);
    Turn turns[2];
    thrd_t threads[2];
    uint64_t address;
    unsigned char bytes[2] = {1, 2}, got[2] = {0};
    assert_ok(tilus_rt_allocate(opened, 0, 256, &address));
    for (size_t i = 0; i < 2; i++) {
        turns[i] = (Turn){load_on(opened, "sm_90a"), address, TILUS_ERROR_INTERNAL};
        assert_int_equal(thrd_create(&threads[i], launch_once, &turns[i]), thrd_success);
    }
    while (!atomic_load(&running))
        thrd_yield();
    assert_ok(tilus_rt_upload(opened, 0, address, bytes, 1));
    assert_ok(tilus_rt_fill(opened, 0, address + 1, bytes[1], 1));
    for (size_t i = 0; i < 2; i++) {
        thrd_join(threads[i], NULL);
        assert_ok(turns[i].status);
        tilus_kernel_unload(turns[i].kernel);
    }
    assert_ok(tilus_rt_download(opened, 0, got, address, 2));
    assert_memory_equal(got, bytes, 2);
    assert_int_equal(atomic_load(&together), 0);
    assert_ok(tilus_rt_release(opened, 0, address));
    tilus_rt_close(opened);
}

/* ---- refusals ---------------------------------------------------------------------- */

/* A wrong address is told of its own argument, not of one that the problem has not. */
static void names_arguments(void **state)
{
    (void)state;
    enum { WRONG = 0x1000, TENSORS = 3 };
    static const char *const names[TENSORS] = {"weights", "a", "c"};
    const tilus_matmul_problem p = {.struct_size = sizeof p, .n = 64, .k = 128, .weights = "u4",
                                    .group = 128};
    tilus_matmul_plan *plan;
    assert_ok(tilus_matmul_plan_create(matmul, &p, 0, &plan));
    size_t size = tilus_matmul_packed_size(plan), space = tilus_matmul_workspace_size(plan, 1);
    uint64_t all = place(NULL, size > space ? size : space);
    for (int i = 0; i < TENSORS; i++) {
        char message[64];
        const tilus_matmul_call call = {.struct_size = sizeof call, .m = 1,
                                        .weights = i == 0 ? WRONG : all, .a = i == 1 ? WRONG : all,
                                        .c = i == 2 ? WRONG : all, .workspace = all,
                                        .workspace_size = space};
        snprintf(message, sizeof message, "argument %%%s = 0x1000 is in no allocation", names[i]);
        assert_fails(tilus_matmul_run(plan, NULL, &call), TILUS_ERROR_ARGUMENT, message);
    }
    release(all);
    tilus_matmul_plan_free(plan);
}

static void refuses_what_the_device_cannot_run(void **state)
{
    (void)state;
    tilus_kernel *kernel = load("sm_100a");
    assert_fails(tilus_kernel_prepare(kernel, 0), TILUS_ERROR_UNSUPPORTED,
                 "the device does not run code for sm_100a");
    tilus_kernel_unload(kernel);
}

static void refuses_engines_that_are_none(void **state)
{
    (void)state;
    tilus_engine bad = *tilus_cpu_engine();
    tilus_rt_options options = {.struct_size = sizeof options, .engine = &bad,
                                .devices = tilus_find_device("h200"), .device_count = 1};
    char message[256];
    tilus_rt *none;
    bad.run = NULL;
    assert_int_equal(tilus_rt_open(&options, &none, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_string_equal(message, "engine: run is NULL");
    bad.struct_size = 3;
    assert_int_equal(tilus_rt_open(&options, &none, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    options.devices = NULL;
    options.device_count = 0;
    assert_int_equal(tilus_rt_open(&options, &none, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_non_null(strstr(message, "devices is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplies),
        cmocka_unit_test(adds_low_rank_terms),
        cmocka_unit_test(knows_its_allocations),
        cmocka_unit_test(refuses_allocations_of_all_memory),
        cmocka_unit_test(finds_faults),
        cmocka_unit_test(checks_arguments_by_the_text),
        cmocka_unit_test(launches_and_copies_take_turns),
        cmocka_unit_test(names_arguments),
        cmocka_unit_test(refuses_what_the_device_cannot_run),
        cmocka_unit_test(refuses_engines_that_are_none),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
