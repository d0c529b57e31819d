/* Matrices to packed weights: quantized, packed and written one after the other, so that memory
 * holds one matrix's codes and packed form beside the pages that are read. */
#define _GNU_SOURCE
#include "tilus-matmul/codes.h"
#include "tilus-matmul/identity.h"

#include "common/file.h"
#include "support/clock.h"
#include "tilus/types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a, of words instead of bytes; the last one is filled up with zeros. */
void checksum(const unsigned char *bytes, size_t size, char text[static CHECKSUM])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    snprintf(text, CHECKSUM, "%016" PRIx64, hash);
}

/* One file that is packed. */
typedef struct Job {
    Library *library;
    const Settings *settings;
    Source source;
    Matrix *matrices;
    size_t count;
    tilus_matmul_problem *problems;
    tilus_matmul_plan **plans;
    SafeTensor *tensors;        /* of the output */
    char (*sums)[CHECKSUM];
    const char *output;
    FileOutput file;
} Job;

/* ---- one matrix ------------------------------------------------------------------ */

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        fail("out of memory: %zu bytes", size);
    return memory;
}

static CodesJob codes_job(const Job *job, size_t i)
{
    return (CodesJob){.settings = job->settings, .source = &job->source,
                      .matrix = &job->matrices[i], .problem = &job->problems[i]};
}

static bool write_at(const Job *job, const void *data, size_t size, size_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(job->file.file, (const char *)data + done, size - done,
                           (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return fail("cannot write '%s': %s", job->output, strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool pack_codes(Job *job, size_t i, const Codes *codes, size_t offset)
{
    unsigned char *packed = allocate(job->tensors[i].size);
    if (!packed)
        return false;
    bool ok = tilus_matmul_pack(job->plans[i], &codes->weights, packed) == TILUS_OK ||
              fail("'%s': tensor '%s': %s", job->source.path, job->matrices[i].name,
                   tilus_rt_error());
    if (ok) {
        checksum(packed, job->tensors[i].size, job->sums[i]);
        ok = write_at(job, packed, job->tensors[i].size, offset);
    }
    free(packed);
    return ok;
}

static bool pack_matrix(Job *job, size_t i, size_t offset)
{
    const tilus_matmul_problem *p = &job->problems[i];
    const CodesJob from = codes_job(job, i);
    Codes codes;
    double start = clock_seconds();
    bool ok = codes_make(&from, &codes);
    double middle = clock_seconds();
    ok = ok && pack_codes(job, i, &codes, offset);
    codes_free(&codes);
    if (ok)
        printf("%s: %" PRId64 " x %" PRId64 " %s to %s, %zu bytes; %s in %.2f s, packed in "
               "%.2f s\n", job->matrices[i].name, p->n, p->k, job->matrices[i].type, p->weights,
               job->tensors[i].size, job->settings->codes ? "read" : "quantized", middle - start,
               clock_seconds() - middle);
    return ok;
}

/* ---- the file ------------------------------------------------------------------------ */

/* Makes the header with the checksums that are known, of the same size at any time. */
static char *make_header(const Job *job, size_t *size)
{
    SafeMetadata *metadata = calloc(job->count, sizeof *metadata);
    char (*keys)[IDENTITY_KEY] = calloc(job->count, sizeof *keys), *header = NULL;
    bool ok = metadata && keys;
    for (size_t i = 0; ok && i < job->count; i++) {
        identity_key(job->tensors[i].name, keys[i]);
        metadata[i].key = keys[i];
        metadata[i].value = identity_write(&job->problems[i], job->plans[i],
                                           job->library->device->key, job->sums[i]);
        ok = metadata[i].value != NULL;
    }
    if (ok)
        header = safetensors_header(job->tensors, job->count, metadata, job->count, size);
    for (size_t i = 0; metadata && i < job->count; i++)
        free((void *)(uintptr_t)metadata[i].value);
    free(metadata);
    free(keys);
    if (!header)
        fail("out of memory");
    return header;
}

static bool plan_matrix(Job *job, size_t i)
{
    const Settings *s = job->settings;
    const Matrix *m = &job->matrices[i];
    const CodesJob from = codes_job(job, i);
    int64_t extents[2];
    if (!codes_extents(&from, s->weights, extents))
        return false;
    job->problems[i] = problem_of(s, extents[0], extents[1]);
    job->plans[i] = library_plan(job->library, &job->problems[i]);
    if (!job->plans[i])
        return false;
    size_t size = tilus_matmul_packed_size(job->plans[i]);
    job->tensors[i] = (SafeTensor){.name = m->name, .dtype = "U8", .rank = 1,
                                   .extents = {(int64_t)size}, .size = size};
    memset(job->sums[i], '0', CHECKSUM - 1);
    return true;
}

static bool plan_all(Job *job)
{
    if (!source_matrices(&job->source, job->settings, &job->matrices, &job->count))
        return false;
    job->problems = calloc(job->count, sizeof *job->problems);
    job->plans = calloc(job->count, sizeof *job->plans);
    job->tensors = calloc(job->count, sizeof *job->tensors);
    job->sums = calloc(job->count, sizeof *job->sums);
    if (!job->problems || !job->plans || !job->tensors || !job->sums)
        return fail("out of memory");
    for (size_t i = 0; i < job->count; i++)
        if (!plan_matrix(job, i))
            return false;
    return true;
}

static bool pack_all(Job *job)
{
    size_t size;
    char *header = make_header(job, &size);
    size_t offset = size;
    bool ok = header && file_output_open(TOOL, job->output, &job->file);
    for (size_t i = 0; ok && i < job->count; offset += job->tensors[i++].size)
        ok = pack_matrix(job, i, offset);
    free(header);
    header = ok ? make_header(job, &size) : NULL;
    ok = header && write_at(job, header, size, 0) &&
         file_output_close(TOOL, job->output, &job->file);
    free(header);
    return ok;
}

static void job_close(Job *job)
{
    file_output_cancel(&job->file);
    for (size_t i = 0; job->plans && i < job->count; i++)
        tilus_matmul_plan_free(job->plans[i]);
    free(job->matrices);
    free(job->problems);
    free(job->plans);
    free(job->tensors);
    free(job->sums);
    source_close(&job->source);
}

bool pack_file(Library *l, const Settings *s, const char *input, const char *output,
               KernelSet *set)
{
    Job job = {.library = l, .settings = s, .output = output, .file = {.file = -1}};
    bool ok = source_open(&job.source, input) && plan_all(&job) && pack_all(&job);
    for (size_t i = 0; ok && set && i < job.count; i++)
        ok = kernels_add(set, job.plans[i], most_rows(s));
    job_close(&job);
    return ok;
}

int command_pack(const Settings *s)
{
    Library l;
    bool ok = library_open(&l, s, false) &&
              pack_file(&l, s, s->words.items[1], s->output, NULL);
    library_close(&l);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
