/* What the fake driver lets a test see and set. The library exports one
 * `fake_cuda`. */
#ifndef TILUS_TEST_FAKE_CUDA_H
#define TILUS_TEST_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_PARAMETERS = 8 };

typedef struct FakeCuda {
    /* Set by a test. */
    int device_count;
    const char *fail;       /* "cuX:code" or "N:code": the call that fails, by name or
                               number from 1, and its error; NULL: TILUS_FAKE_FAIL */

    /* Alive at this moment; all 0 after a clean close. */
    int retained, current, modules, allocations;

    /* Counters and the last launch. */
    int calls, launches;
    size_t fill_bytes;      /* of the last fill on a stream ... */
    int filled_after;       /* ... and the launches before it */
    int function_shared;    /* set by cuFuncSetAttribute, bytes */
    unsigned grid[3], block[3], shared;
    uint64_t parameters[FAKE_PARAMETERS];   /* zero-extended */
} FakeCuda;

#endif
