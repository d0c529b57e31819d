/* The file format .safetensors: tensors after a header in JSON that says what and where they
 * are. Whatever the bytes are, nothing outside of them is read, and a header of more than
 * SAFETENSORS_HEADER bytes is refused, so that reading takes bounded memory. */
#ifndef TILUS_MATMUL_SAFETENSORS_H
#define TILUS_MATMUL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_RANK = 8,               /* dimensions of the tensors that are read */
    SAFETENSORS_HEADER = 16 << 20,
    SAFETENSORS_ALIGN = 256,            /* of the data in a file that is written */
};

typedef struct SafeTensor {
    const char *name;
    const char *dtype;          /* the format's: "F16", static storage */
    unsigned rank;
    int64_t extents[SAFETENSORS_RANK];
    size_t begin, size;         /* bytes, in the data */
} SafeTensor;

/* A header that was read; freed with safetensors_free. */
typedef struct Safetensors {
    SafeTensor *tensors;        /* in the order of their data */
    size_t count;
    const unsigned char *data;  /* in the file */
    size_t size;                /* bytes of it */
    void *root;                 /* the JSON, which owns all texts */
} Safetensors;

/* Reads the file of `size` bytes at `file`, into which the result points. On failure returns
 * false, with nothing to free, and message[0..message_size) says what is wrong. */
bool safetensors_read(const void *file, size_t size, Safetensors *out, char *message,
                      size_t message_size);
void safetensors_free(Safetensors *s);

/* The tensor of that name, and the text that the metadata have under `key`; NULL: none. */
const SafeTensor *safetensors_find(const Safetensors *s, const char *name);
const char *safetensors_metadata(const Safetensors *s, const char *key);

typedef struct SafeMetadata {
    const char *key, *value;
} SafeMetadata;

/* Makes the header of a file of `count` tensors, whose data follow each other in this order:
 * `begin` is ignored. Returns NULL when memory runs out, or a text is no UTF-8. *size bytes, a
 * multiple of SAFETENSORS_ALIGN, which the caller frees with free(). */
char *safetensors_header(const SafeTensor *tensors, size_t count, const SafeMetadata *metadata,
                         size_t metadata_count, size_t *size);

#endif
