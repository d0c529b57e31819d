/* Inside the runtime: the driver, its devices, kernels on them, and the report of
 * failures. */
#ifndef TILUS_RUNTIME_RT_H
#define TILUS_RUNTIME_RT_H

#include "cuda_api.h"
#include "fork_mark.h"
#include "tilus/runtime.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    RT_MESSAGE = 16384,     /* bytes of the last failure's text */
    RT_LINE = 1024,         /* of a text without a log */
    RT_JIT_LOG = 8192       /* bytes that the JIT compiler may write */
};

typedef struct Loaded Loaded;

/* Locks are taken in this order: a kernel's, a device's. A launch that finds its kernel
 * prepared takes none: what it reads is written before the flag that it looks at. */
typedef struct Device {
    int ordinal;
    CUdevice handle;
    char name[128];
    int capability;             /* 90 for 9.0 */
    int multiprocessors;
    size_t memory, shared;      /* bytes; shared: a block's at most */

    pthread_mutex_t lock;       /* of writing what follows */
    _Atomic(CUcontext) context; /* the primary one; NULL until retained, then as it is */
    atomic_bool lost;           /* a sticky error came; set after `why` */
    char why[RT_LINE];
    _Atomic(Loaded *) last;     /* launched; NULL: none, or its kernel is unloaded ... */
    char unloaded[RT_LINE];     /* ... and this is its text */
    tilus_memory *allocations;  /* of a software device */
    size_t memory_count, memory_capacity;
    size_t allocated;           /* bytes of them */
    pthread_mutex_t turn;       /* of launches on an engine and of copies, taken before `lock` */
} Device;

struct tilus_rt {
    CudaApi api;
    bool has_libraries;         /* the driver has cuLibrary... */
    bool is_software;           /* the devices are descriptions; `api` is empty */
    bool has_engine;            /* ... which `engine` runs kernels of */
    tilus_engine engine;
    ForkMark mark;
    tilus_rt_options options;
    int driver_version;
    int device_count;
    Device *devices;
};

/* A kernel on one device. */
struct Loaded {
    tilus_kernel *kernel;
    Device *device;
    atomic_bool ready;          /* prepared; set after what follows */
    void *program;              /* of an engine; the next ones are of a driver */
    CUcontext context;
    CUmodule module;            /* NULL where a library holds the code */
    CUfunction function;
    int registers, local_bytes;
    int occupancy;              /* of a cooperative program: blocks on a multiprocessor */
    bool overlaps;              /* launches may begin before those before them end */
    _Atomic uint64_t grid;      /* of its last launch, packed */
};

/* The two forms of the code. */
typedef enum Image { IMAGE_CUBIN, IMAGE_PTX, IMAGE_COUNT } Image;

/* The JIT compiler's options and log, to which the driver writes. A library may be compiled
 * as late as for its last device, so this lives as long as the kernel. */
typedef struct Jit {
    int options[2];
    void *values[2];
    char log[RT_JIT_LOG];
} Jit;

/* Encoded tensor maps of a kernel's latest launches. */
typedef struct MapCache MapCache;

struct tilus_kernel {
    tilus_rt *rt;
    tilus_artefact *artefact;
    MapCache *maps;             /* NULL: the kernel takes none */
    pthread_mutex_t lock;       /* of preparing: of `libraries` and `jit` */
    CUlibrary libraries[IMAGE_COUNT];
    Jit jit;
    Loaded on[];                /* one a device */
};

/* ---- failures ------------------------------------------------------- */

/* The subject of a driver call, for the text of its failure; device and kernel may be
 * NULL. */
typedef struct ErrorContext {
    tilus_rt *rt;
    Device *device;
    const tilus_kernel *kernel;
} ErrorContext;

/* Keep a failure's text for tilus_rt_error; return the status to hand on. `rt_fail_driver`
 * marks the device as lost when the error says so. */
tilus_status rt_fail(tilus_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Refuses a handle, or where a result goes, that the caller has not given. */
#define RT_FAIL_NULL(pointer) rt_fail(TILUS_ERROR_ARGUMENT, "%s is NULL", #pointer)
tilus_status rt_fail_at(const ErrorContext *at, tilus_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
tilus_status rt_fail_driver(const ErrorContext *at, const char *call, CUresult result);

/* Returns true when the error ends the context that it came in. */
bool rt_error_is_sticky(CUresult error);

/* The newest PTX version that a driver takes, 84 for 8.4, by the newest CUDA version that
 * it has (12040 for 12.4). 0 when it is older or newer than those that are known. */
unsigned rt_newest_ptx(int driver_version);

/* Adds what the JIT compiler said to the kept failure. */
void rt_fail_add_log(const char *log);

/* Write to the log only. */
void rt_log_driver_failure(const ErrorContext *at, const char *call, CUresult result);
void rt_log(const tilus_rt *rt, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes a driver call. A failure sets the caller's `status`, keeps its text, and goes to
 * the caller's `done`. */
#define CHECK(at, call)                                                       \
    do {                                                                      \
        CUresult result_ = (at)->rt->api.call;                                \
        if (result_ != CUDA_SUCCESS) {                                        \
            status = rt_fail_driver((at), #call, result_);                       \
            goto done;                                                        \
        }                                                                     \
    } while (0)

/* Makes a driver call whose failure goes to the log only. */
#define CALL_AND_LOG(at, call)                                                       \
    do {                                                                      \
        CUresult result_ = (at)->rt->api.call;                                \
        if (result_ != CUDA_SUCCESS)                                          \
            rt_log_driver_failure((at), #call, result_);                         \
    } while (0)

/* ---- devices -------------------------------------------------------- */

/* Makes room for the devices, all zero but their locks. */
tilus_status devices_allocate(tilus_rt *rt, int count);

/* Takes the software devices of rt->options. */
tilus_status software_open(tilus_rt *rt);

/* Finds what tilus_rt tells of device `ordinal`. */
tilus_status device_describe(tilus_rt *rt, Device *device, int ordinal);

/* Sets `*at` to device `ordinal`, or fails with TILUS_ERROR_NO_DEVICE. */
tilus_status device_find(ErrorContext *at, tilus_rt *rt, int ordinal);

/* Fails when the process was forked since tilus_rt_open, the device's context is lost, or there
 * is no driver. */
tilus_status device_check(const ErrorContext *at);

/* Makes the device's primary context, which it retains at first, current for this thread;
 * and what was current before. device_leave returns `status`, or its own failure when
 * `status` is TILUS_OK. After a failed device_enter there is nothing to leave. */
tilus_status device_enter(const ErrorContext *at, bool *pushed);
tilus_status device_leave(const ErrorContext *at, bool pushed, tilus_status status);

/* Remembers that the context is lost by `error`. */
void device_lose(Device *device, const char *error);

/* Notes a launch, for device_lose. */
void device_note_launch(Device *device, Loaded *loaded, const int64_t grid[3]);

/* Forgets a kernel that is unloaded, except its name. */
void device_forget(Device *device, Loaded *loaded);

/* ---- engines (engine.c) --------------------------------------------- */

/* Memory of a software device, whose runtime has an engine. Bytes at an address are all in one
 * allocation. */
tilus_status engine_allocate(const ErrorContext *at, size_t size, uint64_t *address);
tilus_status engine_release(const ErrorContext *at, uint64_t address);
tilus_status engine_upload(const ErrorContext *at, uint64_t to, const void *from, size_t size);
tilus_status engine_download(const ErrorContext *at, void *to, uint64_t from, size_t size);
tilus_status engine_fill(const ErrorContext *at, uint64_t to, unsigned char byte, size_t size);
void engine_free_memory(Device *device);

/* Prepare a kernel, with its lock held; unload it everywhere. */
tilus_status engine_prepare(Loaded *l);
void engine_unload(tilus_kernel *kernel);

/* Runs a launch whose arguments, grid and bytes of workspace are set, and were checked. */
tilus_status engine_launch(tilus_kernel *kernel, const tilus_engine_launch *launch,
                           uint64_t workspace);

/* ---- tensor maps (maps.c) ------------------------------------------- */

/* A tensor map's parameter: 128 bytes that only the driver understands. */
typedef struct EncodedMap {
    _Alignas(64) unsigned char bytes[TILUS_MAP_BYTES];
} EncodedMap;

/* A cache for kernels of `info`, which takes maps. NULL when memory runs out. */
MapCache *maps_open(const tilus_kernel_info *info);
void maps_close(MapCache *maps);

/* Fills the map parameters of a launch of the kernel `at` with `args`, which
 * tilus_kernel_check has accepted, in the device's current context. Thread safe; waits for
 * nobody. */
tilus_status maps_encode(const ErrorContext *at, const tilus_arg *args, EncodedMap *out);

/* ---- kernels -------------------------------------------------------- */

/* A copy of `artefact` in one block, freed with free(). NULL when memory runs out. */
tilus_artefact *artefact_copy(const tilus_artefact *artefact);

#endif
