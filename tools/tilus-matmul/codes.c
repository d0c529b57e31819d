/* Codes, scales and zero points of a matrix: quantized, or taken from the file as they are. */
#include "tilus-matmul/codes.h"

#include "support/integer.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        fail("out of memory: %zu bytes", size);
    return memory;
}

const char *scales_of(const tilus_matmul_problem *p)
{
    bool bf16 = p->activations && strcmp(p->activations, "bf16") == 0;
    return p->scales ? p->scales : bf16 ? "bf16" : "f16";
}

/* ---- quantized -------------------------------------------------------------- */

static tilus_quantization quantization_of(const CodesJob *job)
{
    const Settings *s = job->settings;
    const tilus_matmul_problem *p = job->problem;
    return (tilus_quantization){
        .struct_size = sizeof(tilus_quantization), .values = job->matrix->type,
        .weights = p->weights, .scales = scales_of(p), .n = p->n, .k = p->k, .group = p->group,
        .zeros = p->zeros, .range = (tilus_range)s->range, .clip_steps = s->clip_steps,
        .threads = s->threads, .transposed = s->layout == LAYOUT_NK};
}

/* Returns how many rows of the file are quantized at once: 8 MB of them, so that few of the pages
 * that were read are held. Codes of each part begin at a byte, scales at a group. */
static int64_t rows_at_once(const CodesJob *job, int64_t all)
{
    enum { BYTES = 8 << 20 };
    const tilus_matmul_problem *p = job->problem;
    int64_t step = job->settings->layout == LAYOUT_NK ? 8 : p->group ? p->group : all;
    int64_t bytes = (int64_t)job->matrix->size / all * step;
    return bytes < BYTES ? BYTES / bytes * step : step;
}

/* Quantizes the file's rows from `first` on to `next`, and moves that on. */
static bool quantize_rows(const CodesJob *job, int64_t first, int64_t rows, int64_t all,
                          tilus_quantized *next)
{
    tilus_quantization how = quantization_of(job);
    char message[MESSAGE];
    size_t row = job->matrix->size / (size_t)all, size = row * (size_t)rows;
    const unsigned char *values = job->matrix->data + row * (size_t)first;
    *(how.transposed ? &how.n : &how.k) = rows;
    tilus_status status = tilus_quantized_sizes(&how, next, message, sizeof message);
    if (status == TILUS_OK)
        status = tilus_quantize(&how, values, size, next, message, sizeof message);
    if (status != TILUS_OK)
        return fail("'%s': tensor '%s', rows from %" PRId64 " on: %s", job->source->path,
                    job->matrix->name, first, message);
    source_forget(values, size);
    next->codes = (char *)next->codes + next->codes_size;
    next->scales = (char *)next->scales + next->scales_size;
    next->zeros = next->zeros ? (char *)next->zeros + next->zeros_size : NULL;
    return true;
}

static bool quantize(const CodesJob *job, Codes *out)
{
    const tilus_quantization how = quantization_of(job);
    int64_t all = how.transposed ? how.n : how.k, step = rows_at_once(job, all);
    tilus_quantized q = {.struct_size = sizeof q};
    char message[MESSAGE];
    if (tilus_quantized_sizes(&how, &q, message, sizeof message) != TILUS_OK)
        return fail("'%s': tensor '%s': %s", job->source->path, job->matrix->name, message);
    out->weights.codes = out->owned[0] = q.codes = allocate(q.codes_size);
    out->weights.scales = out->owned[1] = q.scales = allocate(q.scales_size);
    out->weights.zeros = out->owned[2] = q.zeros = q.zeros_size ? allocate(q.zeros_size) : NULL;
    bool ok = q.codes && q.scales && (!q.zeros_size || q.zeros);
    for (int64_t first = 0; ok && first < all; first += step)
        ok = quantize_rows(job, first, all - first < step ? all - first : step, all, &q);
    return ok;
}

/* ---- given ------------------------------------------------------------------- */

/* The numbers of codes of a byte each are those that the type holds. */
static bool pack_bytes(const CodesJob *job, Codes *out)
{
    const char *type = job->problem->weights;
    const Matrix *m = job->matrix;
    unsigned bits = tilus_type_bits(type);
    bool is_signed = type[0] == 'i', is_float = tilus_type_is_float(type);
    int least = is_signed ? -(1 << (bits - 1)) : 0;
    int most = (1 << (is_signed ? bits - 1 : bits)) - 1;
    unsigned char *codes = out->owned[0] = allocate(tilus_packed_bytes(type, m->size));
    for (size_t i = 0; codes && i < m->size; i++) {
        int code = is_signed && !is_float ? (int8_t)m->data[i] : m->data[i];
        if (code < least || code > most)
            return fail("'%s': tensor '%s': code [%" PRId64 ", %" PRId64 "] is %d; %s has %d to "
                        "%d", job->source->path, m->name, (int64_t)i / m->extents[1],
                        (int64_t)i % m->extents[1], code, type, least, most);
        tilus_set_bits(codes, i, bits, (uint64_t)(int64_t)code);
    }
    out->weights.codes = codes;
    return codes != NULL;
}

/* Finds the tensor beside the codes, NAME + suffix, of this type and of [n, groups], or
 * [groups, n]. */
static bool find_beside(const CodesJob *job, const char *option, const char *suffix,
                        const char *type, const void **data)
{
    char name[MESSAGE];
    const tilus_matmul_problem *p = job->problem;
    int64_t group = p->group ? p->group : p->k, groups = ceil_div_i64(p->k, group);
    int64_t rows = job->settings->layout == LAYOUT_NK ? p->n : groups;
    int64_t columns = job->settings->layout == LAYOUT_NK ? groups : p->n;
    Matrix found;
    snprintf(name, sizeof name, "%s%s", job->matrix->name, suffix ? suffix : "");
    if (!suffix)
        return fail("--codes wants --%s, which added to a tensor's name is that of another",
                    option);
    if (!source_find(job->source, name, &found))
        return fail("'%s' has no matrix '%s', which --%s=%s asks for", job->source->path, name,
                    option, suffix);
    if (strcmp(found.type, type) != 0 || found.extents[0] != rows || found.extents[1] != columns)
        return fail("'%s': tensor '%s' is %s[%" PRId64 ", %" PRId64 "], not %s[%" PRId64
                    ", %" PRId64 "]", job->source->path, name, found.type, found.extents[0],
                    found.extents[1], type, rows, columns);
    *data = found.data;
    return true;
}

static bool take(const CodesJob *job, Codes *out)
{
    const Settings *s = job->settings;
    const tilus_matmul_problem *p = job->problem;
    const char *zeros = p->zeros == TILUS_ZEROS_FLOAT ? scales_of(p)
                      : p->weights[0] == 'i' ? "i8" : "u8";
    out->weights.codes = job->matrix->data;
    return find_beside(job, "scales-suffix", s->scales_suffix, scales_of(p),
                       &out->weights.scales) &&
           (p->zeros == TILUS_ZEROS_NONE ||
            find_beside(job, "zeros-suffix", s->zeros_suffix, zeros, &out->weights.zeros)) &&
           (s->codes == CODES_COMPACT || pack_bytes(job, out));
}

/* ---- all ------------------------------------------------------------------------ */

bool codes_extents(const CodesJob *job, const char *type, int64_t extents[static 2])
{
    const Settings *s = job->settings;
    const Matrix *m = job->matrix;
    unsigned bits = tilus_type_bits(type), each = tilus_type_bits(m->type);
    bool is_float = m->type[0] == 'f' || m->type[0] == 'b', compact = s->codes == CODES_COMPACT;
    int64_t columns = m->extents[1];
    if (is_float != (s->codes == CODES_NONE) || (s->codes == CODES_BYTES && each != 8))
        return fail("'%s': tensor '%s' is of %s; %s", job->source->path, m->name, m->type,
                    s->codes == CODES_NONE ? "f16, bf16 and f32 are quantized, and --codes takes "
                                             "codes as they are"
                                           : compact ? "--codes=compact takes integers"
                                                     : "--codes=bytes takes u8 and i8");
    if (compact && (bits == 0 || columns * each % bits))
        return fail("'%s': tensor '%s' has %" PRId64 " bits a row, which is no multiple of those "
                    "of %s", job->source->path, m->name, columns * each, type);
    columns = compact ? columns * each / bits : columns;
    extents[0] = s->layout == LAYOUT_NK ? m->extents[0] : columns;
    extents[1] = s->layout == LAYOUT_NK ? columns : m->extents[0];
    return true;
}

bool codes_make(const CodesJob *job, Codes *out)
{
    *out = (Codes){.weights = {.struct_size = sizeof out->weights,
                               .transposed = job->settings->layout == LAYOUT_NK,
                               .threads = job->settings->threads}};
    return job->settings->codes == CODES_NONE ? quantize(job, out) : take(job, out);
}

void codes_free(Codes *codes)
{
    for (size_t i = 0; i < COUNT(codes->owned); i++)
        free(codes->owned[i]);
    *codes = (Codes){0};
}
