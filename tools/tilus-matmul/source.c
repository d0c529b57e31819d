/* Files of weights: mapped, and looked through for matrices. */
#define _GNU_SOURCE
#include "tilus-matmul/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map(Source *source, int file)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return fail("cannot read '%s': %s", source->path, strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size == 0)
        return fail("'%s' is %s", source->path, info.st_size == 0 ? "empty" : "no regular file");
    source->size = (size_t)info.st_size;
    void *memory = mmap(NULL, source->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED)
        return fail("cannot map '%s': %s", source->path, strerror(errno));
    source->file = memory;
    madvise(memory, source->size, MADV_SEQUENTIAL);
    return true;
}

bool source_open(Source *source, const char *path)
{
    char message[MESSAGE];
    *source = (Source){.path = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail("cannot read '%s': %s", path, strerror(errno));
    bool ok = map(source, file);
    close(file);
    if (!ok)
        return false;
    source->is_npy = source->size > 6 && memcmp(source->file, "\x93NUMPY", 6) == 0;
    ok = source->is_npy
       ? npy_read(source->file, source->size, &source->npy, message, sizeof message)
       : safetensors_read(source->file, source->size, &source->safe, message, sizeof message);
    if (!ok) {
        fail("cannot read '%s' as %s: %s", path, source->is_npy ? ".npy" : ".safetensors",
             message);
        source_close(source);
    }
    return ok;
}

void source_close(Source *source)
{
    if (source->file)
        munmap((void *)(uintptr_t)source->file, source->size);
    safetensors_free(&source->safe);
    *source = (Source){0};
}

void source_forget(const unsigned char *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + size) / page * page;
    if (end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

/* ---- matrices ---------------------------------------------------------------- */

/* The type by which tilus knows a .npy array's or a tensor's elements; NULL: none. bfloat16 of
 * NumPy's ml_dtypes is V2. */
static const char *npy_type(const NpyArray *a)
{
    switch (a->kind) {
    case 'f': return a->bytes == 2 ? "f16" : a->bytes == 4 ? "f32" : NULL;
    case 'V': return a->bytes == 2 ? "bf16" : NULL;
    case 'u': return a->bytes == 1 ? "u8" : a->bytes == 4 ? "u32" : NULL;
    case 'i': return a->bytes == 1 ? "i8" : a->bytes == 4 ? "i32" : NULL;
    default: return NULL;
    }
}

static const char *tensor_type(const SafeTensor *t)
{
    static const char *const names[][2] = {{"F16", "f16"}, {"BF16", "bf16"}, {"F32", "f32"},
                                           {"U8", "u8"}, {"I8", "i8"},
                                           {"U32", "u32"}, {"I32", "i32"}};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(t->dtype, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static bool is_float(const char *type)
{
    return type && (type[0] == 'f' || type[0] == 'b');
}

static bool npy_matrix(const Source *source, Matrix *out)
{
    const NpyArray *a = &source->npy;
    char descr[NPY_DESCR];
    npy_descr(a, descr);
    const char *type = npy_type(a);
    if (a->rank != 2 || a->count == 0 || !type)
        return fail("'%s' has %u dimensions of '%s', %zu elements in all; a matrix of f2, f4, V2 "
                    "(bfloat16) or, of codes, u1, i1, u4 or i4 is packed", source->path, a->rank,
                    descr, a->count);
    *out = (Matrix){.name = "weight", .type = type, .extents = {a->extents[0], a->extents[1]},
                    .data = a->data, .size = a->count * a->bytes};
    return true;
}

bool source_find(const Source *source, const char *name, Matrix *matrix)
{
    const SafeTensor *t = source->is_npy ? NULL : safetensors_find(&source->safe, name);
    if (!t || t->rank != 2 || t->size == 0 || !tensor_type(t))
        return false;
    *matrix = (Matrix){.name = t->name, .type = tensor_type(t),
                       .extents = {t->extents[0], t->extents[1]},
                       .data = source->safe.data + t->begin, .size = t->size};
    return true;
}

static bool matches(const char *name, const StringList *patterns)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (fnmatch(patterns->items[i], name, 0) == 0)
            return true;
    return false;
}

/* Chosen by name, a tensor must be a matrix; by default those that are one are chosen. */
static bool add_tensor(const Source *source, const SafeTensor *t, const StringList *patterns,
                       Matrix *matrices, size_t *count)
{
    const char *type = tensor_type(t);
    bool fits = t->rank == 2 && t->size > 0 && type;
    if (patterns->count ? !matches(t->name, patterns) : !fits || !is_float(type))
        return true;
    if (!fits)
        return fail("'%s': tensor '%s' has %u dimensions of %s, %zu bytes in all; a matrix of "
                    "F16, BF16, F32 or, of codes, U8, I8, U32 or I32 is packed", source->path,
                    t->name, t->rank, t->dtype, t->size);
    source_find(source, t->name, &matrices[(*count)++]);
    return true;
}

static bool check_patterns(const Source *source, const StringList *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        bool found = false;
        for (size_t t = 0; t < source->safe.count; t++)
            found |= fnmatch(patterns->items[i], source->safe.tensors[t].name, 0) == 0;
        if (!found)
            return fail("'%s' has no tensor '%s'; it has %zu%s%s%s", source->path,
                        patterns->items[i], source->safe.count,
                        source->safe.count ? ", the first is '" : "",
                        source->safe.count ? source->safe.tensors[0].name : "",
                        source->safe.count ? "'" : "");
    }
    return true;
}

bool source_matrices(const Source *source, const Settings *s, Matrix **matrices, size_t *count)
{
    const StringList *patterns = &s->tensors;
    *count = 0;
    *matrices = calloc(source->safe.count + 1, sizeof **matrices);
    if (!*matrices)
        return fail("out of memory");
    bool ok = source->is_npy ? npy_matrix(source, *matrices) : check_patterns(source, patterns);
    *count = ok && source->is_npy;
    for (size_t i = 0; ok && i < source->safe.count; i++)
        ok = add_tensor(source, &source->safe.tensors[i], patterns, *matrices, count);
    if (ok && *count == 0)
        ok = fail("'%s' has no matrix of F16, BF16 or F32 among its %zu tensors", source->path,
                  source->safe.count);
    if (ok)
        return true;
    free(*matrices);
    *matrices = NULL;
    return false;
}
