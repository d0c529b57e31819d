/* The table of kernels; artefacts found by their names, in memory, in a directory or by a
 * compiler, and loaded once for all plans. */
#define _GNU_SOURCE
#include "bigint/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[BIGINT_TARGETS] = {"sm_80", "sm_90a"};

/* ---- the table ---------------------------------------------------------- */

static const struct {
    const char *name;
    size_t count;
    const char *arguments[BIGINT_ARGUMENTS_MAX];    /* that launches give it, in order */
} programs[] = {
    [BIGINT_PRODUCT] = {"product", 8,
                        {"a", "b", "c", "overflows", "firsts", "batch", "na", "nb"}},
    [BIGINT_CARRY] = {"carry", 5, {"c", "overflows", "firsts", "batch", "nc"}},
    [BIGINT_SPREAD] = {"spread", 5, {"a", "x", "batch", "n", "l"}},
    [BIGINT_FORWARD] = {"forward", 5, {"x", "table", "points", "inner", "unit"}},
    [BIGINT_BACKWARD] = {"backward", 7,
                         {"x", "y", "table", "points", "inner", "unit", "scale"}},
    [BIGINT_GATHER] = {"gather", 7, {"x", "c", "overflows", "firsts", "batch", "n", "l"}},
};

static const char *const tiles[BIGINT_TILES] = {
    "M=16 B=32 CHUNKS=17", "M=16 B=64", "M=32 B=64 WARPS_M=2 CHUNKS=17",
    "M=64 B=64 WARPS_M=4 CHUNKS=33", "M=64 B=128 WARPS_M=2 WARPS_N=2 CHUNKS=17"
};

static const char *const radices[BIGINT_RADICES] = {
    "R1=8 R2=8", "R1=8 R2=16", "R1=16 R2=16", "R1=16 R2=32"
};

const char *bigint_program_name(BigintProgram program)
{
    return programs[program].name;
}

static void pass_row(int i, BigintRow *row)
{
    int radix = i / 2, last = i % 2;
    snprintf(row->name, sizeof row->name, "bigint_%s_%d%s", programs[row->program].name,
             1 << (BIGINT_RADIX_MIN + radix), last ? "_last" : "");
    snprintf(row->parameters, sizeof row->parameters, "%s LAST=%d", radices[radix], last);
}

static void byte_row(int i, int first, BigintProgram program, BigintRow *row)
{
    int loose = (i - first) % 2, small = (i - first) / 2;
    row->program = program;
    snprintf(row->name, sizeof row->name, "bigint_%s%s%s", programs[program].name,
             small ? "_small" : "", loose ? "_loose" : "");
    snprintf(row->parameters, sizeof row->parameters, "PART=%d DIVISOR=%d",
             small ? BIGINT_SMALL : BIGINT_PART, loose ? 1 : 16);
}

static void product_row(int i, BigintRow *row)
{
    int tile = i / 2, loose = i % 2;
    row->program = BIGINT_PRODUCT;
    snprintf(row->name, sizeof row->name, "bigint_product_%d%s", 512 << tile,
             loose ? "_loose" : "");
    snprintf(row->parameters, sizeof row->parameters, "%s DIVISOR=%d", tiles[tile],
             loose ? 1 : 16);
}

void bigint_row(int i, BigintRow *row)
{
    if (i < BIGINT_K_CARRY) {
        product_row(i, row);
    } else if (i < BIGINT_K_SPREAD) {
        byte_row(i, BIGINT_K_CARRY, BIGINT_CARRY, row);
    } else if (i < BIGINT_K_GATHER) {
        byte_row(i, BIGINT_K_SPREAD, BIGINT_SPREAD, row);
    } else if (i < BIGINT_K_FORWARD) {
        byte_row(i, BIGINT_K_GATHER, BIGINT_GATHER, row);
    } else {
        bool back = i >= BIGINT_K_BACKWARD;
        row->program = back ? BIGINT_BACKWARD : BIGINT_FORWARD;
        pass_row(i - (back ? BIGINT_K_BACKWARD : BIGINT_K_FORWARD), row);
    }
}

/* ---- loading ------------------------------------------------------------ */

/* Checks that the artefact is of the program, compiled with the very parameters, and takes the
 * arguments that launches give: one of another version would compute something else. */
static tilus_status check_artefact(const BigintRow *row, const tilus_artefact *a)
{
    const char *program = programs[row->program].name;
    const tilus_kernel_info *info = a->info;
    const char *parameters = a->parameters ? a->parameters : "";
    if (strcmp(info->name, program))
        return bigint_fail(TILUS_ERROR_ARTEFACT, "the artefact %s is of @%s, not of @%s",
                           row->name, info->name, program);
    if (strcmp(parameters, row->parameters))
        return bigint_fail(TILUS_ERROR_ARTEFACT, "the artefact %s was compiled with \"%s\", not "
                           "with \"%s\"", row->name, parameters, row->parameters);
    bool same = info->arg_count == programs[row->program].count;
    for (size_t i = 0; same && i < info->arg_count; i++)
        same = !strcmp(info->args[i].name, programs[row->program].arguments[i]);
    if (!same)
        return bigint_fail(TILUS_ERROR_ARTEFACT, "the artefact %s takes other arguments than this "
                           "library gives: it is of another version", row->name);
    return TILUS_OK;
}

static tilus_status load_bytes(tilus_bigint *bigint, const BigintRow *row, const void *bytes,
                               size_t size, tilus_kernel **out)
{
    tilus_kernel *loaded;
    tilus_status status = tilus_kernel_load(bigint->rt, bytes, size, &loaded);
    if (status != TILUS_OK)
        return bigint_fail(status, "%s: %s", row->name, tilus_rt_error());
    status = check_artefact(row, tilus_kernel_artefact(loaded));
    if (status == TILUS_OK)
        *out = loaded;
    else
        tilus_kernel_unload(loaded);
    return status;
}

/* Returns true when the artefact is among those in memory; *status tells if it loads. */
static bool try_memory(tilus_bigint *bigint, const BigintRow *row, tilus_kernel **out,
                       tilus_status *status)
{
    const tilus_bigint_options *o = &bigint->options;
    for (size_t i = 0; i < o->kernel_count; i++)
        if (!strcmp(o->kernels[i].name, row->name)) {
            *status = load_bytes(bigint, row, o->kernels[i].bytes, o->kernels[i].size, out);
            return true;
        }
    return false;
}

/* Reads a whole file, as NULL fails, and *status tells why. */
static void *read_file(FILE *in, const char *path, size_t *size, tilus_status *status)
{
    char *bytes = NULL;
    long end = fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    *status = TILUS_OK;
    if (end > TILUS_ARTEFACT_MAX)
        *status = bigint_fail(TILUS_ERROR_ARTEFACT, "%s has %ld bytes, more than %d", path, end,
                              TILUS_ARTEFACT_MAX);
    else if (end >= 0 && !(bytes = malloc((size_t)end + 1)))
        *status = bigint_fail_memory();
    else if (end < 0 || fseek(in, 0, SEEK_SET) != 0 ||
             fread(bytes, 1, (size_t)end, in) != (size_t)end)
        *status = bigint_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path, strerror(errno));
    *size = (size_t)end;
    if (*status == TILUS_OK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Returns true when the artefact is in the directory; *status tells if it loads. */
static bool try_directory(tilus_bigint *bigint, const BigintRow *row, tilus_kernel **out,
                          tilus_status *status)
{
    char *path, *bytes;
    size_t size;
    if (!bigint->directory)
        return false;
    *status = bigint_fail_memory();
    if (asprintf(&path, "%s/%s.tilusk", bigint->directory, row->name) < 0)
        return true;
    FILE *in = fopen(path, "rb");
    bool found = in || errno != ENOENT;
    if (in) {
        bytes = read_file(in, path, &size, status);
        if (bytes)
            *status = load_bytes(bigint, row, bytes, size, out);
        free(bytes);
        fclose(in);
    } else if (found) {
        *status = bigint_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path, strerror(errno));
    }
    free(path);
    return found;
}

/* Returns true when there is a compiler; *status tells if its artefact loads. */
static bool try_compiler(tilus_bigint *bigint, const BigintRow *row, const char *target,
                         tilus_kernel **out, tilus_status *status)
{
    const tilus_bigint_options *o = &bigint->options;
    char message[512] = "";
    void *bytes = NULL;
    size_t size = 0;
    if (!o->compile)
        return false;
    *status = o->compile(o->compile_data, programs[row->program].name, row->parameters, target,
                         &bytes, &size, message, sizeof message);
    if (*status == TILUS_OK)
        *status = load_bytes(bigint, row, bytes, size, out);
    else
        bigint_fail(*status, "compiling %s: %s", row->name, message);
    free(bytes);
    return true;
}

static tilus_status find_and_load(tilus_bigint *bigint, int i, const char *target,
                                  tilus_kernel **out)
{
    BigintRow row;
    tilus_status status;
    bigint_row(i, &row);
    if (try_memory(bigint, &row, out, &status) || try_directory(bigint, &row, out, &status) ||
        try_compiler(bigint, &row, target, out, &status))
        return status;
    return bigint_fail(TILUS_ERROR_NO_KERNEL, "no kernel %s (@%s of %s for %s): not among the %zu "
                       "in memory, %s%s, and there is no compiler", row.name,
                       programs[row.program].name, row.parameters, target,
                       bigint->options.kernel_count,
                       bigint->directory ? "not in the directory " : "no directory",
                       bigint->directory ? bigint->directory : "");
}

tilus_status bigint_kernel_prepare(tilus_bigint *bigint, int i, int target, int device)
{
    Kernel *kernel = &bigint->kernels[target][i];
    tilus_status status = TILUS_OK;
    pthread_mutex_lock(&kernel->lock);
    tilus_kernel *loaded = atomic_load_explicit(&kernel->loaded, memory_order_relaxed);
    if (!loaded)
        status = find_and_load(bigint, i, targets[target], &loaded);
    if (status == TILUS_OK)
        atomic_store_explicit(&kernel->loaded, loaded, memory_order_release);
    pthread_mutex_unlock(&kernel->lock);
    return status == TILUS_OK ? tilus_kernel_prepare(loaded, device) : status;
}
