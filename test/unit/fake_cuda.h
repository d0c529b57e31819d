/* State of the fake driver that a test sees and sets. The library exports one
 * `fake_cuda`. */
#ifndef TILUS_TEST_FAKE_CUDA_H
#define TILUS_TEST_FAKE_CUDA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_PARAMETERS = 24,
    FAKE_DEVICES = 4,
    FAKE_STREAMS = 8,
    FAKE_TRACE = 4096,
    FAKE_LAUNCHES = 8,      /* the last ones, which are kept */
    FAKE_MAP_RANK = 5,
    FAKE_UPLOADED = 256     /* bytes of a copy on a stream that are kept */
};

/* An encoded tensor map, and so the first bytes of its parameter: what it was made of. */
typedef struct FakeMap {
    uint64_t magic;         /* FAKE_MAP_MAGIC */
    uint64_t address;
    uint32_t extents[FAKE_MAP_RANK];
    uint32_t strides[FAKE_MAP_RANK];    /* rank - 1 of them, then 0 */
    uint16_t box[FAKE_MAP_RANK];
    uint8_t type, rank, steps, interleave, swizzle, promotion, fill;
} FakeMap;

#define FAKE_MAP_MAGIC UINT64_C(0x70616d20656b6166)

/* A stream: its address is the handle. */
typedef struct FakeStream {
    int device;             /* whose primary context it is of; or FAKE_OTHER_CONTEXT */
    int capturing;
    atomic_int launches;
} FakeStream;

enum { FAKE_OTHER_CONTEXT = -1 };   /* a context of device 0, beside the primary one */

/* A launch. */
typedef struct FakeLaunch {
    char name[32];          /* of the kernel */
    unsigned grid[3], block[3], shared;
    uint64_t parameters[FAKE_PARAMETERS];   /* zero-extended */
    void *stream;
} FakeLaunch;

typedef struct FakeCuda {
    /* Set by a test. */
    int device_count;
    int driver_version;
    int capability;         /* of every device; 0: 86 */
    const char *device_name;    /* of every device; NULL: "Fake 100", "Fake 101", .. */
    int multiprocessors;    /* of every device; 0: 132 */
    int shared_memory;      /* of a block, bytes; 0: 99 KiB */
    const char *fail;       /* "cuX:code" or "N:code": the call that fails, by name or
                               number from 1, and its error; NULL: TILUS_FAKE_FAIL */
    int without_local;      /* functions have no local memory; else 16 bytes a thread */
    int strict;             /* streams are asked about only where a context is current */
    int late;               /* a library is compiled when its function is asked for, and
                               then has no log */
    atomic_int sticky[FAKE_DEVICES];    /* the error of whatever waits for the device, and
                                           of its launches */
    FakeStream streams[FAKE_STREAMS];
    char *trace;            /* gets the names of calls; FAKE_TRACE bytes */

    /* Alive at this moment; all 0 after a clean close. */
    atomic_int retained, current, modules, libraries, allocations, graphs;

    /* Counters and the last launch, which are of one thread. */
    atomic_int calls, launches, loads;
    atomic_int launches_on[FAKE_DEVICES];
    uint64_t uploaded_to;   /* of the last copy on a stream: where, how many bytes, which */
    size_t uploaded_bytes;
    unsigned char uploaded[FAKE_UPLOADED];
    size_t fill_bytes;      /* of the last fill on a stream ... */
    int filled_after;       /* ... and the launches before it */
    atomic_int function_shared;         /* set by cuFuncSetAttribute, bytes */
    int relaxed_loads;      /* of `loads`, in the relaxed mode of captures */
    int loaded_now;         /* calls of cuFuncLoad */
    int early;              /* launches that might begin before others ended */
    int occupancy;          /* blocks on a multiprocessor; 0: 2048 threads */
    int cooperative;        /* launches whose blocks all run at the same time */
    unsigned cluster[3];    /* of the last launch with attributes; 0: none */
    int refused;            /* calls that a capture forbade */
    char image[16];         /* how the last one began that was loaded */
    unsigned grid[3], block[3], shared;
    uint64_t parameters[FAKE_PARAMETERS];   /* zero-extended; of a tensor map, its magic */
    FakeMap maps[FAKE_PARAMETERS];          /* those that are tensor maps */
    atomic_int encoded;     /* calls of cuTensorMapEncodeTiled */
    FakeLaunch log[FAKE_LAUNCHES];          /* launch i at i mod FAKE_LAUNCHES, from 0 */
} FakeCuda;

/* Exported too: makes a device's primary context, FAKE_OTHER_CONTEXT or FAKE_NO_CONTEXT the
 * only one of the calling thread, as its owner would have done. */
enum { FAKE_NO_CONTEXT = -2 };
typedef void FakeSetCurrent(int device);

#endif
