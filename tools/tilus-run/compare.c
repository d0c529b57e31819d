/* What a run left in its buffers: written, and compared with what is right. */
#include "run.h"

#include "common/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far a buffer is from its reference. Sums leave NaN and infinity out. */
typedef struct Difference {
    size_t unequal;         /* codes, of which one at least is no NaN */
    size_t mismatches;      /* NaN or infinity, in one of the two only */
    size_t nans;            /* in both */
    double largest;         /* absolute difference */
    double norm;            /* Frobenius, of the reference */
    double relative;        /* Frobenius norm of the difference / norm */
} Difference;

int outputs_write(const Run *run)
{
    const StringList *list = &run->options.outs;
    for (size_t i = 0; i < list->count; i++) {
        const char *path;
        size_t arg = argument_find(run, list->items[i], &path);
        if (arg == SIZE_MAX)
            return EXIT_USAGE;
        if (!run->buffers[arg].data) {
            fprintf(stderr, "%s: error: --out %s: a scalar\n", TOOL, list->items[i]);
            return EXIT_USAGE;
        }
        if (!file_write(TOOL, path, run->buffers[arg].data, run->buffers[arg].size))
            return EXIT_DIAGNOSTICS;
    }
    return EXIT_OK;
}

/* ---- measuring ------------------------------------------------------ */

/* Of two numbers whose codes differ. */
static bool is_mismatch(double a, double b)
{
    bool both_nan = isnan(a) && isnan(b);
    return !both_nan && a != b && (!isfinite(a) || !isfinite(b));
}

static Difference measure(const char *type, const void *got, const void *reference,
                          size_t count)
{
    Difference d = {0};
    unsigned bits = tilus_type_bits(type);
    double difference = 0, norm = 0;        /* squared */
    for (size_t i = 0; i < count; i++) {
        uint64_t x = tilus_get_bits(got, i, bits), y = tilus_get_bits(reference, i, bits);
        double a = tilus_decode(type, x), b = tilus_decode(type, y);
        d.unequal += x != y && !(isnan(a) && isnan(b));
        d.mismatches += x != y && is_mismatch(a, b);
        d.nans += isnan(a) && isnan(b);
        if (isfinite(a) && isfinite(b)) {
            difference += (a - b) * (a - b);
            d.largest = fmax(d.largest, fabs(a - b));
        }
        if (isfinite(b))
            norm += b * b;
    }
    d.norm = sqrt(norm);
    d.relative = difference == 0 ? 0 : sqrt(difference) / d.norm;
    return d;
}

static void print_difference(const char *name, size_t count, const Difference *d)
{
    printf("%s: %zu elements, ", name, count);
    if (d->unequal == 0)
        printf("bitwise equal");
    else
        printf("%zu unequal, max error %.3g, relative error %.3g", d->unequal, d->largest,
               d->relative);
    if (d->mismatches)
        printf(", %zu of NaN or infinity", d->mismatches);
    if (d->nans)
        printf(", NaN in both %zu", d->nans);
    printf(", reference norm %.6g\n", d->norm);
}

/* ---- deciding ------------------------------------------------------- */

/* Compares one buffer, prints how it is, and decides. */
static bool check_buffer(const Run *run, size_t arg, const void *reference)
{
    const Options *o = &run->options;
    const tilus_arg_info *info = &run->info->args[arg];
    Difference d = measure(info->dtype, run->buffers[arg].data, reference, run->counts[arg]);
    print_difference(info->name, run->counts[arg], &d);
    const char *failure = NULL;
    if (d.mismatches)
        failure = "NaN or infinity differ";
    else if (o->tolerance == 0 && d.unequal)
        failure = "not bitwise equal";
    else if (!(d.relative <= o->tolerance))
        failure = "relative error above the tolerance";
    else if (d.norm == 0 && !o->allow_zero)
        failure = "the reference is all zero (--allow-zero accepts it)";
    if (failure)
        printf("%s: FAILED: %s\n", info->name, failure);
    return !failure;
}

static bool check_reference(const Run *run)
{
    bool ok = true;
    for (size_t i = 0; i < run->info->arg_count; i++)
        if (run->buffers[i].data)
            ok &= check_buffer(run, i, run->reference[i].data);
    return ok;
}

static int check_expectation(const Run *run, const char *text)
{
    const char *value;
    size_t count, arg = argument_find(run, text, &value);
    tilus_buffer expected = {0};
    if (arg == SIZE_MAX)
        return EXIT_USAGE;
    const tilus_buffer *buffer = &run->buffers[arg];
    if (!buffer->data) {
        fprintf(stderr, "%s: error: --expect %s: a scalar\n", TOOL, text);
        return EXIT_USAGE;
    }
    int status = data_make(run, arg, value, &expected, &count);
    if (status != EXIT_OK)
        return status;
    bool ok = expected.size == buffer->size;
    if (ok)
        ok = check_buffer(run, arg, expected.data);
    else
        printf("%s: FAILED: %zu bytes, %zu are expected\n", run->info->args[arg].name,
               buffer->size, expected.size);
    free(expected.data);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int outputs_compare(const Run *run)
{
    const StringList *list = &run->options.expects;
    int status = EXIT_OK;
    if (run->options.compare && !check_reference(run))
        status = EXIT_DIAGNOSTICS;
    for (size_t i = 0; i < list->count && status != EXIT_USAGE; i++) {
        int one = check_expectation(run, list->items[i]);
        status = one == EXIT_OK ? status : one;
    }
    return status;
}
