/* The runtime library: loads compiled programs through the CUDA driver and launches them
 * with checked arguments. It needs no LLVM, and libcuda only when tilus_rt_open is called
 * (it is loaded then, not linked). docs/runtime.md shows how a server uses it.
 *
 * Any number of threads may use one tilus_rt and its kernels at once; what a function
 * asks beyond that stands with it. No function exits, aborts, prints, installs handlers
 * or waits for the device unless it says so. Devices are ordinals from 0, as the driver
 * counts them. Code runs in their primary contexts, the ones that the CUDA runtime and
 * the frameworks on it use; what was current for the calling thread is so afterwards.
 *
 * A function that fails returns one of these, beside what it names itself, and
 * tilus_rt_error() says why:
 *
 *     TILUS_ERROR_DRIVER          a driver call failed
 *     TILUS_ERROR_DEVICE_MEMORY   because device memory ran out
 *     TILUS_ERROR_LOST            because the device's context is lost, now or before:
 *                                 all that concerns the device fails from here on, and
 *                                 a new process is the only cure
 *     TILUS_ERROR_STATE           this process was forked from one that called
 *                                 tilus_rt_open, or used CUDA otherwise; a driver does
 *                                 not survive that, so fork before, or start a new
 *                                 program
 *
 * Pointers are not NULL unless a comment says that they may be. Where a handle or the place of a
 * result is NULL nevertheless, nothing happens: functions with a status name it
 * (TILUS_ERROR_ARGUMENT), others return what they do of a device that there is not;
 * tilus_rt_close ignores it. */
#ifndef TILUS_RUNTIME_H
#define TILUS_RUNTIME_H

#include "tilus/artefact.h"
#include "tilus/export.h"
#include "tilus/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of this library, "0.2.0"; static storage. Thread safe. */
TILUS_API const char *tilus_rt_version(void);

typedef struct tilus_rt tilus_rt;           /* the driver and all devices of the process */
typedef struct tilus_kernel tilus_kernel;   /* one program, for any of the devices */
typedef void *tilus_stream;                 /* a CUstream, or cudaStream_t; NULL, too */

/* ---- the driver and its devices ------------------------------------------- */

/* Describes a device, in the driver's words where they are known. */
typedef struct tilus_device_description {
    size_t struct_size;         /* sizeof(tilus_device_description) */
    const char *key;            /* a short name, "h200"; may be NULL */
    const char *name;           /* as drivers report it, "NVIDIA H200" */
    int capability;             /* compute capability, 90 for 9.0 */
    int multiprocessors;
    size_t memory;              /* bytes */
    size_t shared_memory;       /* bytes that a block can have */
} tilus_device_description;

/* Describe devices that need not be there, by NVIDIA's public figures: the i-th, NULL past the
 * last; the one whose key or name this is, in letters of either case, NULL for others. Static
 * storage. Thread safe. */
TILUS_API const tilus_device_description *tilus_known_device(size_t i);
TILUS_API const tilus_device_description *tilus_find_device(const char *name);

/* Memory of a software device, on the host. */
typedef struct tilus_memory {
    void *data;
    size_t size;                /* bytes */
} tilus_memory;

/* A launch on an engine, as tilus_launch has checked it. */
typedef struct tilus_engine_launch {
    size_t struct_size;         /* sizeof(tilus_engine_launch) */
    const tilus_arg *args;      /* pointers are addresses in `memory`, or of its ends, or 0 */
    size_t arg_count;
    int64_t grid[3];            /* blocks, none of them 0 */
    const tilus_memory *memory; /* the allocations that pointers lie in, each once */
    size_t memory_count;
    size_t workspace_size;      /* bytes of the workspace, which the engine has of its own ... */
    size_t workspace_zeroed;    /* ... and of its beginning, which is 0 */
} tilus_engine_launch;

/* Runs programs on this machine, in place of a device. The functions are called by any thread,
 * several at once; on failure they write why to message[0..size). */
typedef struct tilus_engine {
    size_t struct_size;         /* sizeof(tilus_engine) */
    const char *name;           /* for messages */
    void *data;

    /* Makes `*program` of an artefact, which lives as long as it. */
    tilus_status (*load)(void *data, const tilus_artefact *artefact, void **program,
                         char *message, size_t size);

    /* Runs all blocks of a launch to their end. TILUS_ERROR_PROGRAM: the program did what it
       must not, as an access outside of `memory`. */
    tilus_status (*run)(void *program, const tilus_engine_launch *launch, char *message,
                        size_t size);
    void (*unload)(void *program);
} tilus_engine;

/* All zero but struct_size, or a NULL in its place, is the default. */
typedef struct tilus_rt_options {
    size_t struct_size;         /* sizeof(tilus_rt_options) */

    /* The path of libcuda. NULL: what the environment variable TILUS_LIBCUDA says, else
       libcuda.so.1 where the system finds it. */
    const char *library;

    /* Gets a line (without its end) for what is worth a server's log: a kernel that
       was prepared, machine code that the driver refused so that its PTX was compiled,
       a lost context, registers that spill, a failure to release something. Failures that a
       function returns are not among them. Any thread that is inside of this library calls it,
       several at once, and may hold locks then: it must not call the library, nor wait for a
       thread that does. NULL: nobody. */
    void (*log)(void *data, const char *message);
    void *log_data;

    /* Software devices, in place of a driver and its devices: libcuda is not loaded, and the
       process has these. Libraries plan, pack and check for them as on such devices; what
       needs a driver is TILUS_ERROR_NO_DRIVER, unless there is an engine. The elements are as far apart as the first
       one's struct_size says; all is copied. NULL and 0: the driver's devices. */
    const tilus_device_description *devices;
    size_t device_count;

    /* Runs kernels of the software devices, on host memory that tilus_rt_allocate gives, as many
       bytes as the description says. Copied; tilus_cpu_engine() of the compiler library is one.
       tilus_launch runs the kernel before it returns, whatever the stream, on the device whose
       memory its arguments are of; pointers into no allocation are refused. NULL: they run
       nothing. */
    const tilus_engine *engine;
} tilus_rt_options;

/* Loads libcuda, initializes it and describes the devices; makes no context yet. With software
 * devices it takes these instead. `options` may be NULL. On failure `*out` is NULL and
 * message[0..size) says why: TILUS_ERROR_NO_DRIVER, TILUS_ERROR_NO_DEVICE, TILUS_ERROR_MEMORY;
 * TILUS_ERROR_ARGUMENT, of the options, names the field and its value. The caller closes the
 * result, when all kernels are unloaded and no other thread uses it. libcuda stays
 * loaded. In a forked child tilus_rt_close frees host memory only. */
TILUS_API tilus_status tilus_rt_open(const tilus_rt_options *options, tilus_rt **out,
                                     char *message, size_t size);
TILUS_API void tilus_rt_close(tilus_rt *rt);

/* Why the last function of this thread that failed did so: kernel, device, target, the
 * driver call with its error's name, what to do and, for loading, the JIT log. "" when
 * none failed. Valid until the thread's next call. */
TILUS_API const char *tilus_rt_error(void);

/* The newest CUDA version that the driver has (13000 for 13.0), 0 of software devices; how many
 * devices. */
TILUS_API int tilus_rt_driver_version(const tilus_rt *rt);
TILUS_API int tilus_rt_device_count(const tilus_rt *rt);

/* A device's name ("NVIDIA H200"), compute capability (90 for 9.0), bytes of
 * memory, streaming multiprocessors, and bytes of shared memory that a block can have.
 * "" or 0 when there is no such device. The name lives as long as `rt`. They call no driver. */
TILUS_API const char *tilus_rt_device_name(const tilus_rt *rt, int device);
TILUS_API int tilus_rt_compute_capability(const tilus_rt *rt, int device);
TILUS_API size_t tilus_rt_device_memory(const tilus_rt *rt, int device);
TILUS_API int tilus_rt_multiprocessors(const tilus_rt *rt, int device);
TILUS_API size_t tilus_rt_shared_memory(const tilus_rt *rt, int device);

/* ---- kernels -------------------------------------------------------------- */

/* A kernel from the `size` bytes of a .tilusk file, or from an artefact as it is; either
 * may go away afterwards. Calls no driver. TILUS_ERROR_ARTEFACT (of the first, with the
 * reason); TILUS_ERROR_ARGUMENT (it has no info, target or PTX, or an info that no reader
 * takes) and TILUS_ERROR_UNSUPPORTED (over 256 arguments, or 16 tensor maps) of the
 * second; TILUS_ERROR_MEMORY; `*out` is NULL then. The caller unloads the kernel before
 * closing `rt`. */
TILUS_API tilus_status tilus_kernel_load(tilus_rt *rt, const void *artefact, size_t size,
                                         tilus_kernel **out);
TILUS_API tilus_status tilus_kernel_create(tilus_rt *rt, const tilus_artefact *artefact,
                                           tilus_kernel **out);

/* Releases the kernel on all devices; NULL is ignored. Its launches have ended, no other
 * thread uses it, and no graph that will run contains it. The driver may wait for the
 * device. */
TILUS_API void tilus_kernel_unload(tilus_kernel *kernel);

/* Returns the artefact that the kernel was made from; it lives as long as the kernel. NULL for a
 * kernel of NULL. */
TILUS_API const tilus_artefact *tilus_kernel_artefact(const tilus_kernel *kernel);

/* Does all that is slow, so that launches on `device` do nothing that is: retains the
 * primary context, loads the machine code when it is for exactly this device, else has
 * the driver compile the PTX, and reserves the shared memory. May take seconds. Does
 * nothing when it was done before; threads that ask for the same kernel wait for each
 * other. Captures of this thread and others go on.
 *
 * TILUS_ERROR_NO_DEVICE; TILUS_ERROR_UNSUPPORTED when the device cannot run the target, the
 * target is too old for the kernel's tensor maps or clusters, the device has too little shared
 * memory, or the driver does not take the PTX version. */
TILUS_API tilus_status tilus_kernel_prepare(tilus_kernel *kernel, int device);

/* Registers a thread and bytes of local memory a thread (0 means no spill), as the
 * driver reports them; -1 where the kernel is not prepared, or there is none. */
TILUS_API int tilus_kernel_registers(const tilus_kernel *kernel, int device);
TILUS_API int tilus_kernel_local_bytes(const tilus_kernel *kernel, int device);

/* Bytes of workspace that a launch with these arguments needs; 0 for programs that have
 * none. The arguments are checked as tilus_launch does. Calls no driver. */
TILUS_API tilus_status tilus_workspace_size(const tilus_kernel *kernel, const tilus_arg *args,
                                            size_t count, size_t *size);

/* Checks the arguments against the program's facts and enqueues the launch: no waiting,
 * no allocation, no file, no lock. It may be captured into a graph. TILUS_ERROR_ARGUMENT
 * comes with the broken fact. A grid with an extent of 0 runs nothing, and asks no device.
 *
 * The kernel runs on the device of the stream's context; of NULL and the driver's special
 * streams (1 legacy, 2 per thread) that is the current one and, where there is none, the
 * only device that the kernel is prepared on (else TILUS_ERROR_STATE). A kernel that is not
 * prepared there is so now, as by tilus_kernel_prepare; but while `stream` is captured
 * that is TILUS_ERROR_STATE. Contexts that are not primary are TILUS_ERROR_ARGUMENT.
 *
 * `workspace` is the address of `size` bytes of device memory, as many as
 * tilus_workspace_size says or more, aligned to TILUS_WORKSPACE_ALIGN; 0 and 0 when that
 * says 0. Its contents do not matter: what the program wants zeroed is filled on `stream`
 * before each launch. The caller owns it and leaves it alone until the launch has ended;
 * launches that may overlap need one each.
 *
 * A program whose info says `overlaps` waits by itself for the launches before it in the
 * stream: of an artefact for sm_90 or newer, whose workspace wants no zeros, it may begin
 * when the launch before it lets it, with a driver of CUDA 12.3 or newer. Until its
 * wait_dependencies it must not read what those launches write, nor write what they access;
 * the workspace is its own again after the wait (docs/runtime.md). */
TILUS_API tilus_status tilus_launch(tilus_kernel *kernel, tilus_stream stream,
                                    const tilus_arg *args, size_t count, uint64_t workspace,
                                    size_t size);

/* ---- sequences ------------------------------------------------------------- */

/* Kernels without workspaces that are launched one after the other, again and again. Where the
 * driver has graphs (CUDA 12.3), a run takes the host one call for all launches, about as long
 * as one of them; but none of them begins before the launch in front of all has ended. */
typedef struct tilus_sequence tilus_sequence;
enum { TILUS_SEQUENCE_KERNELS = 5 };

/* The arguments of a kernel, as of tilus_launch. */
typedef struct tilus_sequence_launch {
    const tilus_arg *args;
    size_t count;
} tilus_sequence_launch;

/* Makes a sequence of 1 to TILUS_SEQUENCE_KERNELS kernels of one runtime, to be freed before
 * they are unloaded, when no thread runs it. */
TILUS_API tilus_status tilus_sequence_create(tilus_kernel *const kernels[], size_t count,
                                             tilus_sequence **out);
TILUS_API void tilus_sequence_free(tilus_sequence *sequence);

/* Does what tilus_launch does for each kernel in turn, without workspaces, with as many
 * `launches` as there are kernels; after an error some may have been enqueued. The first runs on
 * a stream allocate a graph, for a few streams of each sequence. Any thread may run it at any
 * time; only one at a time takes the short way, which captured streams never do. */
TILUS_API tilus_status tilus_sequence_run(tilus_sequence *sequence, tilus_stream stream,
                                          const tilus_sequence_launch launches[]);

/* ---- device memory, for tools and tests ------------------------------------ */

/* Allocates (aligned to 256 bytes; 0 bytes are allowed), frees, copies and fills with a
 * byte. Sizes are bytes. Copies wait until they are done, and the driver may wait for the
 * device when memory is freed. The device may be any that there is, else
 * TILUS_ERROR_NO_DEVICE. */
TILUS_API tilus_status tilus_rt_allocate(tilus_rt *rt, int device, size_t size,
                                         uint64_t *address);
TILUS_API tilus_status tilus_rt_release(tilus_rt *rt, int device, uint64_t address);
TILUS_API tilus_status tilus_rt_upload(tilus_rt *rt, int device, uint64_t to,
                                       const void *from, size_t size);
TILUS_API tilus_status tilus_rt_download(tilus_rt *rt, int device, void *to, uint64_t from,
                                         size_t size);
TILUS_API tilus_status tilus_rt_fill(tilus_rt *rt, int device, uint64_t to,
                                     unsigned char byte, size_t size);

/* Waits for everything enqueued on the device; reports its errors. */
TILUS_API tilus_status tilus_rt_synchronize(tilus_rt *rt, int device);

/* ---- for libraries on this one ----------------------------------------------- */

/* Makes `message` what tilus_rt_error() says, and returns `status`. */
TILUS_API tilus_status tilus_rt_fail(tilus_status status, const char *message);

/* Enqueues a copy of `size` bytes of host memory to the device, on a stream of it or, of the
 * driver's special ones, of its primary context. The bytes stay as they are until the copy has
 * ended, also in graphs. */
TILUS_API tilus_status tilus_rt_enqueue_upload(tilus_rt *rt, int device, tilus_stream stream,
                                               uint64_t to, const void *from, size_t size);

/* tilus_rt_enter makes the device's primary context current for this thread, as libraries
 * of the CUDA runtime require; tilus_rt_leave makes the earlier one current again. It takes
 * the value that tilus_rt_enter set; after a tilus_rt_enter that failed there is nothing to
 * leave. Both fail with TILUS_ERROR_NO_DEVICE, too. */
TILUS_API tilus_status tilus_rt_enter(tilus_rt *rt, int device, bool *entered);
TILUS_API tilus_status tilus_rt_leave(tilus_rt *rt, int device, bool entered);

#ifdef __cplusplus
}
#endif

#endif
