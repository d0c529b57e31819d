/* Arrays of NumPy's for tilus-run: any bytes are read or refused with a message, and what
 * is read can be written. */
#include "target.h"

#include "common/npy.h"

#include <stdlib.h>
#include <string.h>

/* The same array once more, from a file that we write. */
static void check_written(const NpyArray *array)
{
    char header[NPY_HEADER], message[256];
    size_t begin = npy_write_header(array, header), size = array->count * array->bytes;
    char *file = malloc(begin + size);
    NpyArray again;
    if (!file)
        return;
    memcpy(file, header, begin);
    memcpy(file + begin, array->data, size);
    if (!npy_read(file, begin + size, &again, message, sizeof message))
        target_fail("what was written is refused: %s", message);
    bool equal = again.kind == array->kind && again.bytes == array->bytes &&
                 again.rank == array->rank && again.count == array->count &&
                 memcmp(again.extents, array->extents, sizeof again.extents) == 0 &&
                 memcmp(again.data, array->data, size) == 0;
    if (!equal)
        target_fail("what was written is read as something else");
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    NpyArray array;
    char message[256] = "";
    if (npy_read(data, size, &array, message, sizeof message))
        check_written(&array);
    else if (!*message)
        target_fail("refused without a reason");
    return 0;
}
