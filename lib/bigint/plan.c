/* Plans: how products of a size are computed, by estimates of the time, and text about that. */
#define _GNU_SOURCE
#include "bigint/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SCHOOLBOOK_MAX = 65536,         /* bytes of the shorter factor: 255^2 * 66051 < 2^32 */
    SQUARE_MIN = 4096,              /* bytes from which on half of the digits' products pays */
    GROUP_POINTS_LOG = 27           /* of the points of pairs that go together, two each */
};

/* ---- the problem -------------------------------------------------------- */

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static tilus_status check_range(const char *field, int64_t value, int64_t max)
{
    if (value >= 1 && value <= max)
        return TILUS_OK;
    return library_refuse("problem: %s is %lld, not 1 to %lld", field, (long long)value,
                          (long long)max);
}

static tilus_status check_square(tilus_bigint_problem *p)
{
    if (!p->square || p->b_bytes == p->a_bytes)
        return TILUS_OK;
    if (p->b_bytes)
        return library_refuse("problem: b_bytes of a square is %lld, not 0 or a_bytes, %lld",
                              (long long)p->b_bytes, (long long)p->a_bytes);
    p->b_bytes = p->a_bytes;
    return TILUS_OK;
}

static tilus_status check_method(const tilus_bigint_problem *p)
{
    if ((unsigned)p->method > TILUS_BIGINT_TRANSFORM)
        return library_refuse("problem: method is %d, not 0 to %d", (int)p->method,
                              TILUS_BIGINT_TRANSFORM);
    if (p->method == TILUS_BIGINT_SCHOOLBOOK && least(p->a_bytes, p->b_bytes) > SCHOOLBOOK_MAX)
        return library_refuse("problem: the schoolbook method is for a factor of at most %d bytes, "
                              "the shorter one has %lld", SCHOOLBOOK_MAX,
                              (long long)least(p->a_bytes, p->b_bytes));
    return TILUS_OK;
}

/* Copies the problem and fills in defaults. */
static tilus_status take_problem(const tilus_bigint_problem *problem, tilus_bigint_problem *p)
{
    tilus_status status = LIBRARY_TAKE(tilus_bigint_problem, p, problem, "problem");
    if (status != TILUS_OK)
        return status;
    p->batch = p->batch ? p->batch : 1;
    if ((status = check_square(p)) != TILUS_OK ||
        (status = check_range("a_bytes", p->a_bytes, TILUS_BIGINT_BYTES_MAX)) != TILUS_OK ||
        (status = check_range("b_bytes", p->b_bytes, TILUS_BIGINT_BYTES_MAX)) != TILUS_OK ||
        (status = check_range("batch", p->batch, TILUS_BIGINT_BATCH_MAX)) != TILUS_OK)
        return status;
    return check_method(p);
}

static int64_t result_bytes(const tilus_bigint_plan *plan)
{
    return plan->problem.a_bytes + plan->problem.b_bytes;
}

/* ---- the choice --------------------------------------------------------- */

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static size_t aligned(size_t size)
{
    return (size + BIGINT_ALIGN - 1) & ~(size_t)(BIGINT_ALIGN - 1);
}

/* Returns the least tile that holds a product, else the largest. */
static int tile_for(int64_t bytes)
{
    int tile = 0;
    while (tile < BIGINT_TILES - 1 && bigint_tile_bytes(tile) < bytes)
        tile++;
    return tile;
}

/* Returns the log of the points that hold the digits of both factors. */
static int log_for(const tilus_bigint_problem *p)
{
    int64_t digits = ceil_div(p->a_bytes, 2) + ceil_div(p->b_bytes, 2);
    int log = BIGINT_LOG_MIN;
    while ((int64_t)1 << log < digits)
        log++;
    return log;
}

/* Estimates microseconds of squares with half of the digits' products on an H200, from
 * measurements (docs/bigint.md). */
static double squares_us(const tilus_bigint_plan *plan)
{
    double n = (double)plan->problem.a_bytes;
    double terms = (double)plan->problem.batch * n * (n / 2 + 2.7 * bigint_tile_bytes(plan->tile));
    double block = n * 0.0019, all = terms * 3.5e-9;
    return 8 + (all > block ? all : block);
}

/* Estimates microseconds on an H200, from measurements (docs/bigint.md). A block of small tiles
 * goes through a byte of the shorter factor in 1.3 ns, one of the largest in 2.6; all blocks
 * together multiply 480 bytes by a byte in a ps. */
static double products_us(const tilus_bigint_plan *plan)
{
    const tilus_bigint_problem *p = &plan->problem;
    double tile = bigint_tile_bytes(plan->tile), shorter = (double)least(p->a_bytes, p->b_bytes);
    double terms = (double)p->batch * ((double)p->a_bytes * (double)p->b_bytes + shorter * tile);
    double block = (shorter + tile) * (plan->tile == BIGINT_TILES - 1 ? 0.0026 : 0.0013);
    double all = terms * 2.1e-9;
    return 5 + (result_bytes(plan) > tile ? 3 : 0) + (all > block ? all : block);
}

static double schoolbook_us(const tilus_bigint_plan *plan)
{
    return plan->tile == BIGINT_SQUARE ? squares_us(plan) : products_us(plan);
}

static double transform_us(const tilus_bigint_plan *plan)
{
    double points = (double)plan->problem.batch * (double)((int64_t)1 << plan->log);
    double numbers = plan->problem.square ? 2 : 3;
    return 6 * (2 * plan->passes + 4) + points * numbers * plan->passes * 1.6e-5;
}

/* Chooses the tile of the schoolbook method: one holds a product, or many small ones run where
 * large ones would be few, and for squares, which leave out more of the products the less a tile
 * holds. */
static void choose_tile(tilus_bigint_plan *plan)
{
    int64_t large = plan->problem.batch * ceil_div(result_bytes(plan), BIGINT_PART);
    plan->tile = tile_for(result_bytes(plan));
    bool halves = plan->problem.square && plan->problem.a_bytes >= SQUARE_MIN;
    plan->small = halves || (result_bytes(plan) > 4096 && large < 66);
    if (plan->small)
        plan->tile = halves ? BIGINT_SQUARE : 1;
}

static void choose_passes(tilus_bigint_plan *plan)
{
    plan->log = log_for(&plan->problem);
    plan->passes = (plan->log + BIGINT_RADIX_MAX - 1) / BIGINT_RADIX_MAX;
    for (int i = 0; i < plan->passes; i++)
        plan->radix[i] = plan->log / plan->passes + (i < plan->log % plan->passes);
}

static void choose(tilus_bigint_plan *plan)
{
    tilus_bigint_problem *p = &plan->problem;
    plan->loose = p->a_bytes % 16 || p->b_bytes % 16;
    choose_tile(plan);
    choose_passes(plan);
    if (p->method == TILUS_BIGINT_AUTO) {
        bool may = least(p->a_bytes, p->b_bytes) <= SCHOOLBOOK_MAX;
        p->method = may && schoolbook_us(plan) <= transform_us(plan) ? TILUS_BIGINT_SCHOOLBOOK
                                                                     : TILUS_BIGINT_TRANSFORM;
    }
    plan->small = plan->small && p->method == TILUS_BIGINT_SCHOOLBOOK;
}

/* ---- the workspace ------------------------------------------------------ */

static void lay_out(tilus_bigint_plan *plan)
{
    const tilus_bigint_problem *p = &plan->problem;
    bool transform = p->method == TILUS_BIGINT_TRANSFORM;
    size_t points = 0;
    plan->group = p->batch;
    if (transform) {
        plan->group = least(p->batch, (int64_t)1 << (GROUP_POINTS_LOG - 1 - plan->log));
        points = ((size_t)plan->group << plan->log) * sizeof(uint64_t);
    }
    plan->parts = ceil_div(result_bytes(plan),
                           transform ? BIGINT_PART : bigint_tile_bytes(plan->tile));
    size_t summary = transform || plan->parts > 1
        ? aligned((size_t)(plan->group * plan->parts) * sizeof(uint32_t)) : 0;
    plan->space.y = p->square ? 0 : points;
    plan->space.overflows = plan->space.y + points;
    plan->space.firsts = plan->space.overflows + summary;
    plan->space.size = plan->space.firsts + summary;
}

size_t tilus_bigint_workspace_size(const tilus_bigint_plan *plan)
{
    return plan ? plan->space.size : 0;
}

/* ---- plans -------------------------------------------------------------- */

static tilus_status check_device(tilus_bigint_plan *plan)
{
    tilus_rt *rt = plan->bigint->library.rt;
    int count = tilus_rt_device_count(rt), device = plan->device;
    if (device < 0 || device >= count || device >= BIGINT_DEVICES_MAX)
        return library_fail(TILUS_ERROR_NO_DEVICE, "no device %d, there are %d", device, count);
    int capability = tilus_rt_compute_capability(rt, device);
    if (capability < 80)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "device %d, %s, has compute capability %d.%d, "
                            "and products need 8.0", device, tilus_rt_device_name(rt, device),
                            capability / 10, capability % 10);
    return TILUS_OK;
}

/* Finds the kernels that launches name. */
static tilus_status find_kernels(tilus_bigint_plan *plan)
{
    const tilus_bigint_call call = {0};
    Launch launches[BIGINT_LAUNCHES_MAX];
    tilus_bigint *bigint = plan->bigint;
    const char *target =
        bigint_target(tilus_rt_compute_capability(bigint->library.rt, plan->device));
    size_t count = bigint_launches(plan, &call, 1, launches);
    for (size_t i = 0; i < count; i++) {
        Kernel wanted, **kernel = &plan->kernels[launches[i].kernel];
        bigint_kernel(launches[i].kernel, target, &wanted);
        if (!*kernel && !(*kernel = kernel_library_find(&bigint->library, &wanted)))
            return library_fail_memory();
    }
    return TILUS_OK;
}

tilus_status tilus_bigint_plan_create(tilus_bigint *bigint, const tilus_bigint_problem *problem,
                                      int device, tilus_bigint_plan **out)
{
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    if (!bigint)
        return library_refuse_null(bigint);
    tilus_bigint_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return library_fail_memory();
    plan->bigint = bigint;
    plan->device = device;
    tilus_status status = take_problem(problem, &plan->problem);
    if (status == TILUS_OK)
        status = check_device(plan);
    if (status == TILUS_OK) {
        choose(plan);
        lay_out(plan);
        status = find_kernels(plan);
    }
    if (status == TILUS_OK)
        *out = plan;
    else
        free(plan);
    return status;
}

void tilus_bigint_plan_free(tilus_bigint_plan *plan)
{
    free(plan);
}

tilus_status tilus_bigint_prepare(tilus_bigint_plan *plan)
{
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = TILUS_OK;
    for (int i = 0; i < BIGINT_KERNELS && status == TILUS_OK; i++)
        if (plan->kernels[i])
            status = kernel_prepare(plan->kernels[i], plan->device);
    uint64_t roots = 0;
    if (status == TILUS_OK && plan->problem.method == TILUS_BIGINT_TRANSFORM)
        status = bigint_roots_prepare(plan->bigint, plan->device, &roots);
    if (status == TILUS_OK) {
        atomic_store(&plan->roots, roots);
        atomic_store(&plan->prepared, true);
    }
    return status;
}

/* ---- text --------------------------------------------------------------- */

static void write_kernel(FILE *out, const Kernel *k)
{
    fprintf(out, "%s\t%s\t%s\n", k->name, k->program, k->parameters);
}

static void write_table(FILE *out, const char *target)
{
    for (int i = 0; i < BIGINT_KERNELS; i++) {
        Kernel kernel;
        bigint_kernel(i, target, &kernel);
        write_kernel(out, &kernel);
    }
}

char *tilus_bigint_kernels(const tilus_bigint_plan *plan)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; plan && i < BIGINT_KERNELS; i++)
        if (plan->kernels[i])
            write_kernel(out, plan->kernels[i]);
    for (int i = 0; !plan && i < BIGINT_TARGETS; i++)
        write_table(out, bigint_targets[i]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void describe_schoolbook(FILE *out, const tilus_bigint_plan *plan)
{
    int64_t blocks = plan->problem.batch * plan->parts;
    fprintf(out, "schoolbook by tensor cores, %s%lld block%s of %d bytes of the product%s, %s\n",
            plan->tile == BIGINT_SQUARE ? "half of the digits' products, " : "", (long long)blocks,
            blocks == 1 ? "" : "s", bigint_tile_bytes(plan->tile), blocks == 1 ? "" : "s",
            plan->parts > 1 ? "carries between blocks in a second launch" : "one launch");
}

static void describe_transform(FILE *out, const tilus_bigint_plan *plan)
{
    fprintf(out, "number-theoretic transforms of 2^%d points of 16 bits, %d of them a product, in "
            "passes of ", plan->log, plan->problem.square ? 2 : 3);
    for (int i = 0; i < plan->passes; i++)
        fprintf(out, "%s%d", i ? " x " : "", 1 << plan->radix[i]);
    if (plan->group < plan->problem.batch)
        fprintf(out, ", %lld pairs at a time", (long long)plan->group);
    fputc('\n', out);
}

char *tilus_bigint_describe(const tilus_bigint_plan *plan)
{
    char *text = NULL;
    size_t size;
    FILE *out = plan ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const tilus_bigint_problem *p = &plan->problem;
    fprintf(out, "%lld %s of %lld", (long long)p->batch,
            p->square ? p->batch == 1 ? "square" : "squares"
                      : p->batch == 1 ? "product" : "products", (long long)p->a_bytes);
    if (!p->square)
        fprintf(out, " x %lld", (long long)p->b_bytes);
    fprintf(out, " bytes: ");
    (p->method == TILUS_BIGINT_TRANSFORM ? describe_transform : describe_schoolbook)(out, plan);
    fprintf(out, "workspace %zu bytes; %s\n", plan->space.size,
            plan->loose ? "bytes one by one, as a length is no multiple of 16"
                        : "16 bytes at a time");
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
