/* The matmul library's interface on a software device, without kernels: options, devices,
 * problems, calls, weights and identities of packed weights are mutated. Each is refused with a
 * reason, or right: what is said of a call is compared with rules of our own, what is packed and
 * cut with its identity. Blocks have exactly their sizes, so that AddressSanitizer sees who
 * reads or writes beside them. */
#include "target.h"

#include "tilus/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { STRUCT_MOST = 4096 };

/* ---- values -------------------------------------------------------------------- */

/* Numbers at which something changes. */
static int64_t choose_number(Choices *c)
{
    static const int64_t numbers[] = {
        0, 1, -1, 2, 7, 8, 16, 31, 32, 33, 40, 48, 64, 96, 100, 127, 128, 129, 160, 192, 200, 256, 257,
        384, 1024,
        65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 1 << 23, (1 << 23) + 1, INT32_MAX,
        INT32_MIN, INT64_MAX, INT64_MIN};
    return numbers[choose(c, COUNT(numbers))];
}

static const char *choose_name(Choices *c)
{
    static const char *const names[] = {
        NULL, "", "u4", "u1", "i3", "i8", "u9", "f6e3m2", "f8e8m0", "f4e1m2", "f16", "bf16", "f8e4m3",
        "f32", "i32", "bool", "u", "a type that nobody has, with more letters than any has"};
    return names[choose(c, COUNT(names))];
}

/* A struct of a caller of some version: its size changes, and bytes behind it. */
typedef union Sized {
    size_t struct_size;
    unsigned char bytes[STRUCT_MOST + 64];
} Sized;

static void put_sized(Choices *c, Sized *to, const void *from, size_t size)
{
    memset(to->bytes, 0, sizeof to->bytes);
    memcpy(to->bytes, from, size);
    switch (choose(c, 24)) {
    case 0: to->struct_size = choose(c, STRUCT_MOST + 64); break;
    case 1: to->struct_size = SIZE_MAX; break;
    case 2: to->struct_size = size + 8 * choose(c, 16); break;
    case 3: to->bytes[size + choose(c, 64)] = 1; to->struct_size = size + 64; break;
    default: break;
    }
}

/* The struct is taken as it is. */
static bool is_sized(const Sized *s, size_t size)
{
    return s->struct_size == size;
}

static void expect_reason(tilus_status status)
{
    if (status != TILUS_OK && !*tilus_rt_error())
        target_fail("%s without a reason", tilus_status_name(status));
}

static bool allowed(tilus_status status, tilus_status other)
{
    return status == TILUS_OK || status == TILUS_ERROR_ARGUMENT || status == other;
}

/* ---- what inputs begin with -------------------------------------------------------- */

/* Problems whose plans are made once. */
static const tilus_matmul_problem bases[] = {
    {.weights = "u4", .n = 40, .k = 256, .group = 128, .n_tile = 32},
    {.weights = "i3", .n = 33, .k = 136, .zeros = TILUS_ZEROS_INTEGER, .n_tile = 64},
    {.weights = "f6e3m2", .activations = "bf16", .n = 64, .k = 200, .group = 32,
     .zeros = TILUS_ZEROS_FLOAT, .bias = true, .n_tile = 32},
    {.weights = "u4", .n = 32, .k = 128, .group = 128, .residual = true, .n_tile = 32,
     .wide_range = true},
    {.weights = "f4e1m2", .activations = "i8", .result = "f32", .n = 1, .k = 1, .n_tile = 128},
    {.weights = "u3", .n = 33, .k = 136, .group = 64, .n_tile = 32, .product = "f8e4m3"},
    {.weights = "u2", .n = 7, .k = 250, .group = 96, .zeros = TILUS_ZEROS_INTEGER, .n_tile = 32},
    {.weights = "i8", .activations = "i8", .n = 40, .k = 256, .n_tile = 64, .product = "i8"},
    {.weights = "u4", .n = 48, .k = 256, .group = 128, .n_tile = 32, .gated = true},
};

static tilus_rt *rt;
static tilus_matmul *matmul;
static tilus_matmul_plan *plans[COUNT(bases)];
static unsigned char *packed[COUNT(bases)];

/* Weights of zeros; freed by the caller, as blocks of exactly their sizes. */
static tilus_matmul_weights make_weights(const tilus_matmul_problem *p)
{
    size_t groups = (size_t)(p->group ? (p->k - 1) / p->group + 1 : 1) * (size_t)p->n;
    unsigned bits = (unsigned)(p->weights[1] - '0');
    size_t zeros = p->zeros == TILUS_ZEROS_FLOAT ? 2 * groups : groups;
    return (tilus_matmul_weights){
        .struct_size = sizeof(tilus_matmul_weights),
        .codes = calloc(((size_t)(p->n * p->k) * bits + 7) / 8, 1), .scales = calloc(groups, 2),
        .zeros = p->zeros ? calloc(zeros, 1) : NULL};
}

static void free_weights(const tilus_matmul_weights *w)
{
    free((void *)w->codes);
    free((void *)w->scales);
    free((void *)w->zeros);
}

static void open_base(size_t i)
{
    tilus_matmul_problem problem = bases[i];
    problem.struct_size = sizeof problem;
    if (tilus_matmul_plan_create(matmul, &problem, 0, &plans[i]) != TILUS_OK)
        target_fail("problem %zu: %s", i, tilus_rt_error());
    const tilus_matmul_weights weights = make_weights(&problem);
    packed[i] = malloc(tilus_matmul_packed_size(plans[i]));
    if (tilus_matmul_pack(plans[i], &weights, packed[i]) != TILUS_OK)
        target_fail("packing %zu: %s", i, tilus_rt_error());
    free_weights(&weights);
}

static void open_bases(void)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device("h200"), .device_count = 1};
    char message[256];
    if (rt)
        return;
    if (tilus_rt_open(&options, &rt, message, sizeof message) != TILUS_OK ||
        tilus_matmul_open(rt, NULL, &matmul) != TILUS_OK)
        target_fail("%s", tilus_rt_error());
    for (size_t i = 0; i < COUNT(bases); i++)
        open_base(i);
}

/* ---- devices and options ------------------------------------------------------------ */

static void mutate_device(Choices *c, tilus_device_description *d)
{
    switch (choose(c, 6)) {
    case 0: d->name = choose_name(c); break;
    case 1: d->capability = (int)choose_number(c); break;
    case 2: d->multiprocessors = (int)choose_number(c); break;
    case 3: d->shared_memory = (size_t)choose_number(c); break;
    case 4: d->struct_size = (size_t)choose_number(c); break;
    default: d->memory = (size_t)choose_number(c); break;
    }
}

static void try_devices(Choices *c)
{
    union {
        tilus_device_description devices[2];
        Sized room[2];          /* what a larger struct_size reaches */
    } all = {.room = {{0}}};
    all.devices[0] = *tilus_known_device(choose(c, 8));
    all.devices[1] = *tilus_known_device(choose(c, 8));
    tilus_rt_options options = {.struct_size = sizeof options, .devices = all.devices,
                                .device_count = choose_between(c, 0, 2)};
    char message[512] = "";
    tilus_rt *opened;
    Sized sized;
    mutate_device(c, &all.devices[choose(c, 2)]);
    put_sized(c, &sized, &options, sizeof options);
    /* Shorter structs have no devices, and would ask for a driver. */
    if (sized.struct_size < sizeof options)
        sized.struct_size = 0;
    tilus_status status = tilus_rt_open((const tilus_rt_options *)&sized, &opened, message,
                                        sizeof message);
    if (!allowed(status, TILUS_OK) || (status != TILUS_OK) != !opened || !!*message != !opened)
        target_fail("opening: %s, \"%s\"", tilus_status_name(status), message);
    tilus_rt_close(opened);
}

static void try_options(Choices *c)
{
    const tilus_matmul_kernel kernels[] = {{"a", "bytes", 5}, {NULL, "bytes", 5}, {"b", NULL, 1}};
    static const char *const tunings[] = {NULL, "", "{}", "[", "{\"tilus-tune\": 1}",
                                          "{\"tilus-tune\": 1, \"tunings\": []}"};
    const tilus_matmul_options options = {
        .struct_size = sizeof options, .kernels = choose(c, 2) ? kernels : NULL,
        .kernel_count = choose(c, COUNT(kernels) + 1), .directory = choose(c, 2) ? "/none" : NULL,
        .tunings = tunings[choose(c, COUNT(tunings))]};
    Sized sized;
    tilus_matmul *opened;
    put_sized(c, &sized, &options, sizeof options);
    tilus_status status = tilus_matmul_open(rt, (const tilus_matmul_options *)&sized, &opened);
    expect_reason(status);
    if (!allowed(status, TILUS_OK) || (status != TILUS_OK) != !opened)
        target_fail("options: %s", tilus_status_name(status));
    tilus_matmul_close(opened);
}

/* ---- problems ------------------------------------------------------------------------ */

static void mutate_problem(Choices *c, tilus_matmul_problem *p)
{
    switch (choose(c, 16)) {
    case 15: p->gated = !p->gated; break;
    case 14: p->wide_range = !p->wide_range; break;
    case 13: p->product = choose_name(c); break;
    case 0: p->weights = choose_name(c); break;
    case 1: p->activations = choose_name(c); break;
    case 2: p->scales = choose_name(c); break;
    case 3: p->result = choose_name(c); break;
    case 4: p->n = choose_number(c); break;
    case 5: p->k = choose_number(c); break;
    case 6: p->group = choose_number(c); break;
    case 7: p->zeros = (tilus_zeros)choose_number(c); break;
    case 8: p->function = (tilus_epilogue)choose_number(c); break;
    case 9: p->n_tile = choose_number(c); break;
    case 10: p->a_stride = choose_number(c); break;
    case 11: p->bias = !p->bias; break;
    default: p->residual = !p->residual; break;
    }
}

/* Checks what is said of a plan, whatever it is of. */
static void check_plan(Choices *c, const tilus_matmul_plan *plan)
{
    int64_t n_tile, k_tile, m = choose_number(c);
    tilus_matmul_tile(plan, &n_tile, &k_tile);
    size_t size = tilus_matmul_packed_size(plan), less = tilus_matmul_workspace_size(plan, 1);
    if (size % 256 || size < TILUS_MATMUL_IDENTITY || n_tile % 32 || k_tile != 128 ||
        less < TILUS_MATMUL_SEMAPHORES || tilus_matmul_workspace_size(plan, 65536) < less ||
        !tilus_matmul_packed_identity(plan))
        target_fail("a plan of %zu bytes in tiles of %lld", size, (long long)n_tile);
    char *text = tilus_matmul_describe(plan, m), *kernels = tilus_matmul_kernels(plan, 1);
    if (text && kernels && (!*text || !*kernels))
        target_fail("a plan without a description");
    free(text);
    free(kernels);
}

/* New plans take milliseconds, so valid problems go on rarely. */
static void try_problem(Choices *c)
{
    tilus_matmul_problem p = bases[choose(c, COUNT(bases))];
    tilus_matmul_plan *plan;
    Sized sized;
    p.struct_size = sizeof p;
    mutate_problem(c, &p);
    if (choose_rarely(c, 3))
        mutate_problem(c, &p);
    put_sized(c, &sized, &p, sizeof p);
    int device = choose_rarely(c, 8) ? (int)choose_number(c) : choose_rarely(c, 200) ? 0 : 1;
    tilus_status status = tilus_matmul_plan_create(
        matmul, (const tilus_matmul_problem *)&sized, device, &plan);
    expect_reason(status);
    if (!allowed(status, device ? TILUS_ERROR_NO_DEVICE : TILUS_ERROR_UNSUPPORTED) ||
        (status != TILUS_OK) != !plan)
        target_fail("a problem: %s: %s", tilus_status_name(status), tilus_rt_error());
    if (plan)
        check_plan(c, plan);
    tilus_matmul_plan_free(plan);
}

/* ---- calls ---------------------------------------------------------------------------- */

static void mutate_call(Choices *c, tilus_matmul_call *call)
{
    uint64_t number = (uint64_t)choose_number(c);
    switch (choose(c, 12)) {
    case 11: call->a_scales = number; break;
    case 0: call->m = (int64_t)number; break;
    case 1: call->a = number; break;
    case 2: call->a_stride = (int64_t)number; break;
    case 3: call->weights = number; break;
    case 4: call->bias = number; break;
    case 5: call->residual = number; break;
    case 6: call->c = number; break;
    case 7: call->workspace = number; break;
    case 8: call->workspace_size = (size_t)number; break;
    case 9: call->weights_identity = number; break;
    default: break;
    }
}

static bool is_address(uint64_t address, uint64_t align)
{
    return address && address % align == 0;
}

static bool is_operand(bool has, uint64_t address)
{
    return has ? is_address(address, 16) : address == 0;
}

/* Tells whether A is of the product's type, and has scales. */
static bool has_a_scales(const tilus_matmul_problem *p)
{
    return p->product && p->activations && strcmp(p->product, p->activations) == 0;
}

/* Tells whether a call keeps the rules of docs and headers, written once more. */
static bool is_good(const tilus_matmul_plan *plan, const tilus_matmul_problem *p,
                    const tilus_matmul_call *call)
{
    return call->m >= 1 && call->m <= 65536 && is_address(call->a, 16) &&
           (call->a_stride == 0 || (call->a_stride >= p->k && call->a_stride <= 1 << 23)) &&
           is_address(call->weights, 256) && is_operand(p->bias, call->bias) &&
           is_operand(p->residual, call->residual) && is_address(call->c, 16) &&
           (has_a_scales(p) ? is_address(call->a_scales, 4) : call->a_scales == 0) &&
           is_address(call->workspace, 256) &&
           call->workspace_size >= tilus_matmul_workspace_size(plan, call->m) &&
           (!call->weights_identity ||
            call->weights_identity == tilus_matmul_packed_identity(plan));
}

/* Returns what a call without kernels must give: with no rows nothing else is looked at. */
static tilus_status expected_status(const tilus_matmul_plan *plan, const tilus_matmul_problem *p,
                                    const tilus_matmul_call *call)
{
    if (call->m == 0)
        return TILUS_OK;
    return is_good(plan, p, call) ? TILUS_ERROR_NO_KERNEL : TILUS_ERROR_ARGUMENT;
}

static void try_call(Choices *c)
{
    size_t i = choose(c, COUNT(bases));
    tilus_matmul_call call = {
        .struct_size = sizeof call, .m = choose_between(c, 1, 300), .a = 4096, .weights = 8192,
        .bias = bases[i].bias ? 4096 : 0, .residual = bases[i].residual ? 4096 : 0, .c = 4096,
        .a_scales = has_a_scales(&bases[i]) ? 4096 : 0,
        .workspace = 8192, .workspace_size = (size_t)1 << 40,
        .weights_identity = tilus_matmul_packed_identity(plans[i])};
    Sized sized;
    for (uint64_t n = choose(c, 3); n > 0; n--)
        mutate_call(c, &call);
    put_sized(c, &sized, &call, sizeof call);
    tilus_status status = tilus_matmul_run(plans[i], NULL, (const tilus_matmul_call *)&sized);
    if (!is_sized(&sized, sizeof call))
        expect_reason(status);
    else if (status != expected_status(plans[i], &bases[i], &call))
        target_fail("a call: %s: %s", tilus_status_name(status), tilus_rt_error());
}

/* ---- weights ---------------------------------------------------------------------------- */

static void try_weights(Choices *c)
{
    size_t i = choose(c, COUNT(bases)), size = tilus_matmul_packed_size(plans[i]);
    const tilus_matmul_weights all = make_weights(&bases[i]);
    tilus_matmul_weights some = all;
    unsigned char *to = malloc(size);
    Sized sized;
    switch (choose(c, 8)) {
    case 0: some.codes = NULL; break;
    case 1: some.scales = NULL; break;
    case 2: some.zeros = some.zeros ? NULL : some.scales; break;
    default: some.transposed = choose(c, 2); break;
    }
    put_sized(c, &sized, &some, sizeof some);
    bool good = some.codes && some.scales && !some.zeros == !all.zeros;
    tilus_status status = tilus_matmul_pack(plans[i], (const tilus_matmul_weights *)&sized, to);
    expect_reason(status);
    if (is_sized(&sized, sizeof some) && status != (good ? TILUS_OK : TILUS_ERROR_ARGUMENT))
        target_fail("weights: %s", tilus_status_name(status));
    if (status == TILUS_OK && tilus_matmul_packed_check(plans[i], to, size) != TILUS_OK)
        target_fail("packed: %s", tilus_rt_error());
    free(to);
    free_weights(&all);
}

/* ---- packed weights ------------------------------------------------------------------------ */

enum { AT_IDENTITY = 16, AT_FIELDS = 24, AT_END = 128 };

/* Hashes the fields as the library does, so that mutated ones look undamaged. */
static void seal(unsigned char *identity)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = AT_FIELDS; i < AT_END; i++)
        hash = (hash ^ identity[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 8; i++)
        identity[AT_IDENTITY + i] = (unsigned char)(hash >> 8 * i);
}

static void try_identity(Choices *c)
{
    size_t i = choose(c, COUNT(bases)), j = choose(c, COUNT(bases));
    size_t size = tilus_matmul_packed_size(plans[i]);
    const unsigned char *original = packed[i] + size - TILUS_MATMUL_IDENTITY;
    size_t kept = choose_rarely(c, 8) ? choose(c, 600) : TILUS_MATMUL_IDENTITY;
    unsigned char *bytes = calloc(kept + !kept, 1);
    if (kept >= TILUS_MATMUL_IDENTITY)
        memcpy(bytes + kept - TILUS_MATMUL_IDENTITY, original, TILUS_MATMUL_IDENTITY);
    for (uint64_t n = choose(c, 4); n > 0 && kept >= TILUS_MATMUL_IDENTITY; n--)
        bytes[kept - TILUS_MATMUL_IDENTITY + choose(c, AT_END)] = (unsigned char)choose(c, 256);
    if (kept >= TILUS_MATMUL_IDENTITY && choose(c, 2))
        seal(bytes + kept - TILUS_MATMUL_IDENTITY);
    tilus_matmul_packed is = {.struct_size = sizeof is};
    Sized sized;
    put_sized(c, &sized, &is, sizeof is);
    expect_reason(tilus_matmul_packed_describe(bytes, kept, (tilus_matmul_packed *)&sized));
    /* The bytes are fewer than the plan's: none of them is right, whatever they say. */
    tilus_status status = tilus_matmul_packed_check(plans[j], bytes, kept);
    if (status != TILUS_ERROR_ARGUMENT && kept != tilus_matmul_packed_size(plans[j]))
        target_fail("%zu bytes passed as packed weights of %zu", kept,
                    tilus_matmul_packed_size(plans[j]));
    free(bytes);
}

/* Changes bytes of the identity of whole packed weights: any of its fields matters. */
static void try_packed(Choices *c)
{
    size_t i = choose(c, COUNT(bases)), size = tilus_matmul_packed_size(plans[i]);
    unsigned char *identity = packed[i] + size - TILUS_MATMUL_IDENTITY, before[AT_END];
    memcpy(before, identity, AT_END);
    for (uint64_t n = choose(c, 3); n > 0; n--)
        identity[choose(c, AT_END)] = (unsigned char)choose(c, 256);
    if (choose(c, 2))
        seal(identity);
    bool same = memcmp(before, identity, AT_END) == 0;
    tilus_status status = tilus_matmul_packed_check(plans[i], packed[i], size);
    bool only_padding = memcmp(before, identity, AT_IDENTITY) == 0;
    memcpy(identity, before, AT_END);
    expect_reason(status);
    if ((same && status != TILUS_OK) || (!same && status == TILUS_OK && !only_padding))
        target_fail("an identity: %s", tilus_status_name(status));
}

static void try_shard(Choices *c)
{
    size_t i = choose(c, COUNT(bases)), j = choose(c, COUNT(bases));
    size_t size = tilus_matmul_packed_size(plans[j]);
    unsigned char *part = malloc(size);
    tilus_status status = tilus_matmul_shard(plans[i], packed[i], plans[j], choose_number(c),
                                             choose_number(c), part);
    expect_reason(status);
    if (!allowed(status, TILUS_OK) ||
        (status == TILUS_OK && tilus_matmul_packed_check(plans[j], part, size) != TILUS_OK))
        target_fail("a part: %s", tilus_rt_error());
    free(part);
}

/* ---- one input ----------------------------------------------------------------------------- */

static void body(Choices *c, Arena *arena)
{
    (void)arena;
    open_bases();
    switch (choose(c, 64)) {
    case 0: try_options(c); break;          /* a library has thousands of tunings to read */
    case 1: try_weights(c); break;
    case 2: try_shard(c); break;
    case 3: case 4: case 5: case 6: try_devices(c); break;
    default:
        for (int i = 0; i < 8; i++) {
            try_problem(c);
            try_call(c);
            try_identity(c);
            try_packed(c);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(body, data, size);
}
