/* NumPy's file format .npy: an array after a header that says what it is. Whatever the
 * bytes are, nothing outside of them is read. */
#ifndef TILUS_TOOLS_NPY_H
#define TILUS_TOOLS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NPY_RANK = 8,               /* dimensions of the arrays that are read */
    NPY_HEADER = 512,           /* bytes of the longest header that is written */
    NPY_DESCR = 8               /* bytes of a type's name, with NUL */
};

/* Elements lie in C order, little-endian, without gaps. */
typedef struct NpyArray {
    char kind;                  /* NumPy's: f, i, u, b (bool), V (any bytes) */
    unsigned bytes;             /* of an element: 1, 2, 4 or 8 */
    unsigned rank;
    int64_t extents[NPY_RANK];
    size_t count;               /* of elements */
    const unsigned char *data;  /* count * bytes of them */
} NpyArray;

/* Reads versions 1 to 3 of the format; out->data points into `file`, which has `size`
 * bytes. On failure returns false, and message[0..message_size) says what is wrong. */
bool npy_read(const void *file, size_t size, NpyArray *out, char *message,
              size_t message_size);

/* Writes the header that goes before the array's data, returns its bytes, a multiple of
 * 64. Of `array`, only kind, bytes, rank and extents matter. */
size_t npy_write_header(const NpyArray *array, char header[NPY_HEADER]);

/* The type's name in NumPy, "<f2". */
void npy_descr(const NpyArray *array, char descr[NPY_DESCR]);

#endif
