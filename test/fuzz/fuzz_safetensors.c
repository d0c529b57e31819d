/* Headers of .safetensors for tilus-matmul: any bytes are read or refused with a message, and
 * a header that is read can be written and read again. */
#include "target.h"

#include "tilus-matmul/safetensors.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const SafeTensor *a, const SafeTensor *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->extents, b->extents, sizeof a->extents) == 0 && a->size == b->size;
}

/* Compares as sets: tensors without data may stand in another order. */
static void check_written(const Safetensors *s)
{
    size_t begin;
    char message[256] = "", *header = safetensors_header(s->tensors, s->count, NULL, 0, &begin);
    char *file = header ? realloc(header, begin + s->size) : NULL;
    Safetensors again;
    if (!file)
        return;
    memcpy(file + begin, s->data, s->size);
    if (!safetensors_read(file, begin + s->size, &again, message, sizeof message))
        target_fail("what was written is refused: %s", message);
    for (size_t i = 0; i < s->count; i++) {
        const SafeTensor *t = safetensors_find(&again, s->tensors[i].name);
        if (!t || !is_same(t, &s->tensors[i]))
            target_fail("tensor %zu is read as something else", i);
    }
    safetensors_free(&again);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Safetensors s;
    char message[256] = "";
    if (safetensors_read(data, size, &s, message, sizeof message)) {
        check_written(&s);
        safetensors_free(&s);
    } else if (!*message) {
        target_fail("refused without a reason");
    }
    return 0;
}
