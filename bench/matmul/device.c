/* A problem on the GPU: packed, checked, measured. */
#include "bench.h"

#include "matmul/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDINAL = 0 };

typedef struct Device {
    const Settings *settings;
    const MatmulSpec *spec;
    tilus_rt *rt;
    Measure measure;
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
    Data data;
    Reference reference;
    Cublas *cublas;
    Flush *flush;
    tilus_kernel *neighbor;
    char driver[64];

    uint64_t packed;            /* copies of the weights, one after the other */
    size_t stride;              /* bytes of each */
    unsigned copies;
    tilus_matmul_call call;     /* of the m that is measured */
    uint64_t a_source;          /* what the neighbor copies to A */
} Device;

static bool check(tilus_status status)
{
    if (status != TILUS_OK)
        fprintf(stderr, BENCH_USER ": %s\n", tilus_rt_error());
    return status == TILUS_OK;
}

/* ---- memory ------------------------------------------------------------------ */

/* Device memory with the bytes in it, or with none; *address is 0 after a failure. */
static bool upload(Device *d, const void *bytes, size_t size, uint64_t *address)
{
    *address = 0;
    return check(tilus_rt_allocate(d->rt, ORDINAL, size, address)) &&
           (!bytes || check(tilus_rt_upload(d->rt, ORDINAL, *address, bytes, size)));
}

static void release(Device *d, uint64_t *address)
{
    if (*address)
        tilus_rt_release(d->rt, ORDINAL, *address);
    *address = 0;
}

/* ---- weights ------------------------------------------------------------------ */

unsigned device_copies(const Settings *settings, size_t bytes)
{
    enum { LEAST = 2, MEGABYTE = 1000000 };
    size_t copies = (size_t)settings->rotate_mb * MEGABYTE / bytes;
    return copies < LEAST ? LEAST : (unsigned)copies;
}

static bool pack_copies(Device *d, const tilus_matmul_weights *plain)
{
    bool ok = upload(d, NULL, d->stride * d->copies, &d->packed);
    for (unsigned i = 0; ok && i < d->copies; i++)
        ok = check(tilus_matmul_pack_device(d->plan, d->measure.stream, plain,
                                            d->packed + i * d->stride));
    return ok && check(tilus_rt_synchronize(d->rt, ORDINAL));
}

/* The plain weights go up, and away again when they are packed. */
static bool pack(Device *d)
{
    const Data *data = &d->data;
    uint64_t codes = 0, scales = 0, zeros = 0, factor = 0;
    bool factored = matmul_has_factor(data->spec);
    d->stride = tilus_matmul_packed_size(d->plan);
    d->copies = device_copies(d->settings, d->stride);
    bool ok = upload(d, data->codes, data->code_bytes, &codes) &&
              upload(d, data->scales, data->scale_bytes, &scales) &&
              (!data->zeros || upload(d, data->zeros, data->zero_bytes, &zeros)) &&
              (!factored || upload(d, &data->factor, sizeof data->factor, &factor));
    const tilus_matmul_weights plain = {sizeof plain, (const void *)(uintptr_t)codes,
                                        (const void *)(uintptr_t)scales,
                                        (const void *)(uintptr_t)zeros, .transposed = true,
                                        .factor = (const float *)(uintptr_t)factor};
    ok = ok && pack_copies(d, &plain);
    release(d, &codes);
    release(d, &scales);
    release(d, &zeros);
    release(d, &factor);
    return ok;
}

/* ---- one m --------------------------------------------------------------------- */

static bool launch(void *device, unsigned copy)
{
    Device *d = device;
    d->call.weights = d->packed + copy * d->stride;
    return check(tilus_matmul_run(d->plan, d->measure.stream, &d->call));
}

/* @matmul alone: of each piece of m the last launch, whose prepared A is there from the last
 * whole product. */
static bool launch_last(void *device, unsigned copy)
{
    Device *d = device;
    const Product p = product_of(d->plan, plan_choice(d->plan, d->call.m), d->call.m);
    bool ok = true;
    d->call.weights = d->packed + copy * d->stride;
    for (int64_t first = 0; ok && first < d->call.m; first += p.rows) {
        KernelLaunch launches[MATMUL_LAUNCHES];
        size_t count = product_launches(d->plan, &d->call, &p, first, launches);
        ok = check(launches_run(d->plan, &launches[count - 1], 1, d->measure.stream,
                                KERNEL_FIRST_EARLY));
    }
    return ok;
}

static size_t a_bytes(const Device *d)
{
    return (size_t)(d->call.m * d->spec->k) * dtype_bits(d->spec->activations) / 8;
}

static bool launch_neighbor(void *device, unsigned copy)
{
    Device *d = device;
    const tilus_arg args[] = {{.pointer = d->a_source}, {.pointer = d->call.a},
                              {.integer = (int64_t)(a_bytes(d) / 4)}};
    (void)copy;
    return helper_launch(d->neighbor, &d->measure, args, COUNT(args));
}

static bool launch_chain(void *device, unsigned copy)
{
    return launch_neighbor(device, copy) && launch(device, copy);
}

static bool open_call(Device *d, int64_t m)
{
    const MatmulSpec *s = d->spec;
    size_t c = (size_t)(m * matmul_columns_of_c(s, s->n)) * dtype_bits(s->result) / 8;
    d->call = (tilus_matmul_call){.struct_size = sizeof d->call, .m = m,
                                  .workspace_size = tilus_matmul_workspace_size(d->plan, m)};
    return check(tilus_matmul_prepare(d->plan, m)) &&
           upload(d, d->data.a, a_bytes(d), &d->call.a) &&
           upload(d, d->data.a, a_bytes(d), &d->a_source) &&
           upload(d, NULL, c, &d->call.c) &&
           upload(d, NULL, d->call.workspace_size, &d->call.workspace) &&
           check(tilus_rt_fill(d->rt, ORDINAL, d->call.workspace, 0, TILUS_MATMUL_SEMAPHORES)) &&
           check(tilus_rt_synchronize(d->rt, ORDINAL));
}

static void close_call(Device *d)
{
    release(d, &d->call.a);
    release(d, &d->a_source);
    release(d, &d->call.c);
    release(d, &d->call.workspace);
}

/* Before the run C is full of NaNs, of any of its types: what is not written is wrong. Each
 * copy of the weights has its run, the last of which is compared, too. */
static bool run_checked(Device *d, unsigned copy, void *c, size_t size, double *error)
{
    enum { NANS = 0xff };
    const double most = reference_tolerance(d->spec);
    if (!check(tilus_rt_fill(d->rt, ORDINAL, d->call.c, NANS, size)) ||
        !check(tilus_rt_synchronize(d->rt, ORDINAL)) || !launch(d, copy) ||
        !check(tilus_rt_synchronize(d->rt, ORDINAL)) ||
        !check(tilus_rt_download(d->rt, ORDINAL, c, d->call.c, size)))
        return false;
    *error = reference_error(&d->reference, d->call.m, c);
    if (*error <= most)
        return true;
    fprintf(stderr, BENCH_USER ": the product is wrong: relative error %.3g, at most %.3g, m "
            "= %lld, copy %u of the weights\n", *error, most, (long long)d->call.m, copy);
    return false;
}

static bool check_product(Device *d, double *error)
{
    int64_t columns = matmul_columns_of_c(d->spec, d->spec->n);
    size_t size = (size_t)(d->call.m * columns) * dtype_bits(d->spec->result) / 8;
    void *c = malloc(size);
    bool ok = c && run_checked(d, 0, c, size, error) &&
              run_checked(d, d->copies - 1, c, size, error);
    if (!c)
        fprintf(stderr, BENCH_USER ": out of memory for C\n");
    free(c);
    return ok;
}

static bool median(Device *d, const MeasureWork *work, const MeasureWork *flush, double *us)
{
    MeasureTimes times;
    bool ok = flush ? measure_events(&d->measure, work, flush, &times)
                    : measure_graph(&d->measure, work, d->settings->state, &times);
    *us = ok ? measure_summary(&times).median : NAN;
    return ok;
}

/* A product behind another kernel, less that kernel alone: overlap of products with each other
 * is not in it. */
static bool measure_chain(Device *d, double *us)
{
    const MeasureWork chain = {launch_chain, d, d->copies}, alone = {launch_neighbor, d, 1};
    double neighbor;
    bool ok = median(d, &chain, NULL, us) && median(d, &alone, NULL, &neighbor);
    *us -= ok ? neighbor : 0;
    return ok;
}

static bool measure_product(Device *d, Row *row)
{
    const MeasureWork work = {launch, d, d->copies}, last = {launch_last, d, d->copies};
    const MeasureWork flush = {flush_launch, d->flush, 1};
    bool by_cublas = dense_serves(d->plan, row->m);
    return median(d, &work, NULL, &row->us) && median(d, &work, &flush, &row->flush_us) &&
           measure_chain(d, &row->chain_us) &&
           (by_cublas || median(d, &last, NULL, &row->kernel_us));
}

static bool measure_row(Device *d, int64_t m)
{
    Row row = {.device = tilus_rt_device_name(d->rt, ORDINAL), .driver = d->driver, .m = m,
               .kernel_us = NAN, .cublas_us = NAN, .cublas_layout = ""};
    char configuration[CONFIGURATION_MAX];
    row_configuration(d->plan, m, configuration);
    row.configuration = configuration;
    bool ok = open_call(d, m) && check_product(d, &row.error) && measure_product(d, &row) &&
              (!d->cublas || cublas_measure(d->cublas, m, &row.cublas_us, &row.cublas_layout));
    if (ok)
        row_print(d->settings, d->spec, &row);
    close_call(d);
    return ok;
}

/* ---- all ------------------------------------------------------------------------ */

/* The version of the driver's kernel module, "580.159.04"; without it, of its CUDA. */
static void find_driver(Device *d)
{
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    const char *format = "%63[0-9.]";
    if (file && fgets(line, sizeof line, file))
        for (const char *at = strchr(line, ' '); at; at = strchr(at + 1, ' '))
            if (sscanf(at + strspn(at, " "), format, d->driver) == 1 && strchr(d->driver, '.'))
                break;
    if (file)
        fclose(file);
    int cuda = tilus_rt_driver_version(d->rt);
    if (!strchr(d->driver, '.'))
        snprintf(d->driver, sizeof d->driver, "CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
}

static bool open_runtime(Device *d)
{
    char message[1024];
    if (tilus_rt_open(NULL, &d->rt, message, sizeof message) != TILUS_OK) {
        fprintf(stderr, BENCH_USER ": %s\n", message);
        return false;
    }
    find_driver(d);
    return true;
}

static bool open_library(Device *d)
{
    const Settings *s = d->settings;
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .directory = s->kernels, .tunings = s->tunings_text};
    return open_runtime(d) && measure_open(&d->measure, BENCH_USER, ORDINAL) &&
           check(tilus_matmul_open(d->rt, &options, &d->matmul)) &&
           check(tilus_matmul_plan_create(d->matmul, &s->problem, ORDINAL, &d->plan));
}

static bool open_operands(Device *d)
{
    const Settings *s = d->settings;
    int64_t m_max = 0;
    for (size_t i = 0; i < s->size_count; i++)
        m_max = s->sizes[i] > m_max ? s->sizes[i] : m_max;
    if (!data_make(&d->data, d->spec, m_max, s->seed) ||
        !reference_make(&d->reference, &d->data, s->seed) || !pack(d))
        return false;
    d->flush = flush_open(&d->measure, d->rt, s->kernels);
    d->neighbor = d->flush ? helper_load(d->rt, s->kernels, "neighbor") : NULL;
    return d->neighbor && (s->no_cublas || s->problem.gated || cublas_open(&d->measure, s, &d->cublas));
}

static void device_close(Device *d)
{
    cublas_close(d->cublas);
    flush_close(d->flush);
    tilus_kernel_unload(d->neighbor);
    if (d->rt)
        release(d, &d->packed);
    tilus_matmul_plan_free(d->plan);
    tilus_matmul_close(d->matmul);
    measure_close(&d->measure);
    tilus_rt_close(d->rt);
    reference_free(&d->reference);
    data_free(&d->data);
}

int device_measure(const Settings *settings, const MatmulSpec *spec)
{
    Device d = {.settings = settings, .spec = spec};
    bool ok = open_library(&d) && open_operands(&d);
    for (size_t i = 0; ok && i < settings->size_count; i++)
        ok = measure_row(&d, settings->sizes[i]);
    device_close(&d);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int device_print(void)
{
    Device d = {0};
    bool ok = open_runtime(&d);
    if (ok)
        printf("%s,%s\n", tilus_rt_device_name(d.rt, ORDINAL), d.driver);
    tilus_rt_close(d.rt);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
