/* Files as data: raw bytes, or NumPy's .npy, whose type is held against the argument's. */
#include "run.h"

#include "common/file.h"
#include "common/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool path_is_npy(const char *path)
{
    static const char suffix[] = ".npy";
    size_t len = strlen(path);
    return len >= strlen(suffix) && strcmp(path + len - strlen(suffix), suffix) == 0;
}

/* Returns the form of `type` in a .npy file: kind and bytes. Types that NumPy lacks are
 * unsigned integers of their width; types below a byte are the bytes they are packed in. */
static NpyArray npy_type(const char *type)
{
    unsigned bits = tilus_type_bits(type);
    bool numpy_has = strcmp(type, "f16") == 0 || strcmp(type, "f32") == 0 ||
                     strcmp(type, "f64") == 0;
    char kind = numpy_has ? 'f' : strcmp(type, "bool") == 0 ? 'b'
              : type[0] == 'i' && bits >= 8 ? 'i' : 'u';
    return (NpyArray){.kind = kind, .bytes = bits < 8 ? 1 : bits / 8};
}

/* ml_dtypes writes bfloat16 and its like as bytes without a kind, which fit, too. */
static bool npy_fits(const NpyArray *array, const NpyArray *wanted, const char *type)
{
    bool is_foreign = wanted->kind == 'u' && type[0] != 'u';
    bool any = is_foreign && array->kind == 'V' && tilus_type_bits(type) >= 8;
    return array->bytes == wanted->bytes && (any || array->kind == wanted->kind);
}

/* ---- reading -------------------------------------------------------- */

/* Whole elements in `size` bytes. */
static size_t elements_in(size_t size, unsigned bits)
{
    return size / bits * 8 + size % bits * 8 / bits;
}

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "%s: error: '%s': %s\n", TOOL, path, why);
    return EXIT_DIAGNOSTICS;
}

/* Takes `bytes` apart into the array's elements, and moves them to the front. */
static int take_array(const char *path, const char *type, tilus_buffer *bytes, size_t *count,
                      Shape *shape)
{
    char why[256], is[NPY_DESCR], must_be[NPY_DESCR];
    NpyArray array, wanted = npy_type(type);
    if (!npy_read(bytes->data, bytes->size, &array, why, sizeof why))
        return fail(path, why);
    npy_descr(&array, is);
    npy_descr(&wanted, must_be);
    if (!npy_fits(&array, &wanted, type)) {
        snprintf(why, sizeof why, "its elements are '%s', an argument ptr<%s> takes '%s'", is,
                 type, must_be);
        return fail(path, why);
    }
    bytes->size = array.count * array.bytes;
    memmove(bytes->data, array.data, bytes->size);
    *count = elements_in(bytes->size, tilus_type_bits(type));
    if (*count == array.count)
        *shape = (Shape){.rank = array.rank};
    memcpy(shape->extents, array.extents, shape->rank * sizeof *shape->extents);
    return EXIT_OK;
}

int data_read(const char *path, const char *type, tilus_buffer *buffer, size_t *count,
              Shape *shape)
{
    char *bytes;
    *shape = (Shape){0};
    if (!file_read(TOOL, path, FILE_SIZE_MAX, &bytes, &buffer->size))
        return EXIT_DIAGNOSTICS;
    buffer->data = bytes;
    if (path_is_npy(path)) {
        int status = take_array(path, type, buffer, count, shape);
        if (status != EXIT_OK) {
            free(buffer->data);
            *buffer = (tilus_buffer){0};
        }
        return status;
    }
    *count = elements_in(buffer->size, tilus_type_bits(type));
    return EXIT_OK;
}

/* ---- writing -------------------------------------------------------- */

static bool write_npy(const char *path, const char *type, const tilus_buffer *buffer,
                      const Shape *shape)
{
    char header[NPY_HEADER];
    NpyArray array = npy_type(type);
    array.rank = shape->rank;
    memcpy(array.extents, shape->extents, shape->rank * sizeof *shape->extents);
    if (shape->rank == 0 || tilus_type_bits(type) < 8) {
        array.rank = 1;
        array.extents[0] = (int64_t)(buffer->size / array.bytes);
    }
    size_t begin = npy_write_header(&array, header);
    size_t size = begin + buffer->size / array.bytes * array.bytes;
    char *file = malloc(size);
    if (!file) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    memcpy(file, header, begin);
    memcpy(file + begin, buffer->data, size - begin);
    bool ok = file_write(TOOL, path, file, size);
    free(file);
    return ok;
}

int data_write(const char *path, const char *type, const tilus_buffer *buffer,
               const Shape *shape)
{
    bool ok = path_is_npy(path) ? write_npy(path, type, buffer, shape)
                                : file_write(TOOL, path, buffer->data, buffer->size);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
