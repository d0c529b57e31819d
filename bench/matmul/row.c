/* Rows of CSV: a problem, how it was computed, how long it took. */
#define _GNU_SOURCE
#include "bench.h"

#include "matmul/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Microseconds that reading so many bytes takes at least in a graph, as measured on an H200;
 * NAN for devices that nobody has measured. */
static double least_time(const char *device, double bytes)
{
    const double start = 2.50, rate = 4.57e6;       /* us; bytes a us */
    return strstr(device, "H200") ? start + bytes / rate : NAN;
}

void row_print_header(void)
{
    puts("date,device,driver,revision,weights,activations,k,n,group,zeros,m,configuration,us,"
         "us_kernel_only,us_flush,us_chain,bytes,floor_us,fraction,cublas_us,cublas_layout,speedup,"
         "relative_error");
}

double row_bytes(const MatmulSpec *s, int64_t m)
{
    double n = (double)s->n, k = (double)s->k, rows = (double)m;
    double group = s->group ? (double)(s->group * s->repeats) : k;
    double zero_bits = s->zeros == TILUS_ZEROS_NONE      ? 0
                       : s->zeros == TILUS_ZEROS_INTEGER ? 8
                                                         : dtype_bits(s->scales);
    double bits = n * k * dtype_bits(s->weights) +
                  n * ceil(k / group) * (dtype_bits(s->scales) + zero_bits) +
                  rows * k * dtype_bits(s->activations) +
                  rows * (double)matmul_columns_of_c(s, s->n) * dtype_bits(s->result);
    return ceil(bits / 8);
}

void row_configuration(const tilus_matmul_plan *plan, int64_t m, char text[CONFIGURATION_MAX])
{
    const Choice *choice = plan_choice(plan, m);
    if (dense_serves(plan, m))
        snprintf(text, CONFIGURATION_MAX, "%s and cuBLAS", unpack_kernel(plan, plan->spec.product)->name);
    else
        snprintf(text, CONFIGURATION_MAX, "%s per_sm=%d", choice->product->name,
                 choice->config.per_sm);
}

static void print_date(void)
{
    char text[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf("%s", text);
}

/* Nothing stands where nothing was measured. */
static void print_number(const char *format, double number)
{
    putchar(',');
    if (!isnan(number))
        printf(format, number);
}

void row_print(const Settings *settings, const MatmulSpec *s, const Row *row)
{
    static const char *const zeros[] = {"none", "integer", "float"};
    double bytes = row_bytes(s, row->m), least = least_time(row->device, bytes);
    if (!settings->dry_run)
        print_date();
    printf(",%s,%s,%s,%s,%s,%lld,%lld,%lld,%s,%lld,%s", row->device, row->driver,
           settings->revision, dtype_name(s->weights), dtype_name(s->activations),
           (long long)s->k, (long long)s->n, (long long)settings->problem.group,
           zeros[s->zeros], (long long)row->m, row->configuration);
    print_number("%.3f", row->us);
    print_number("%.3f", row->kernel_us);
    print_number("%.3f", row->flush_us);
    print_number("%.3f", row->chain_us);
    print_number("%.0f", bytes);
    print_number("%.3f", least);
    print_number("%.4f", least / row->us);
    print_number("%.3f", row->cublas_us);
    printf(",%s", row->cublas_layout);
    print_number("%.3f", row->cublas_us / row->us);
    print_number("%.2e", row->error);
    putchar('\n');
    fflush(stdout);
}
