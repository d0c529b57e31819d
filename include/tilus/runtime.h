/* The runtime library: loads PTX through the CUDA driver and launches it with
 * checked arguments. Needs no LLVM, and libcuda only when tilus_rt_open is
 * called (it is loaded then, not linked).
 *
 * A tilus_rt may be used from one thread at a time; several may exist. No
 * function exits, aborts or prints. Device memory sizes are bytes. */
#ifndef TILUS_RUNTIME_H
#define TILUS_RUNTIME_H

#include "tilus/export.h"
#include "tilus/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tilus_rt tilus_rt;           /* one device's primary context */
typedef struct tilus_kernel tilus_kernel;   /* a loaded program */
typedef void *tilus_stream;                 /* a CUstream; NULL: the default stream */

/* Loads libcuda, initialises it and retains the primary context of `device`
 * (an ordinal, from 0). On failure `*out` is NULL and message[0..size) says
 * why. The caller closes the result. */
TILUS_API tilus_status tilus_rt_open(int device, tilus_rt **out, char *message, size_t size);
TILUS_API void tilus_rt_close(tilus_rt *rt);

/* The text of the last failure on `rt`: the driver call, its error's name and,
 * for loading, the JIT log. Valid until the next call on `rt`. */
TILUS_API const char *tilus_rt_error(const tilus_rt *rt);

/* Device name ("NVIDIA H200"); compute capability (90 for 9.0); driver version
 * as the driver counts it (13000 for 13.0). */
TILUS_API const char *tilus_rt_device_name(const tilus_rt *rt);
TILUS_API int tilus_rt_compute_capability(const tilus_rt *rt);
TILUS_API int tilus_rt_driver_version(const tilus_rt *rt);

/* Loads `ptx` (NUL-terminated) and looks up info->name; copies `info`. The
 * caller unloads the kernel before closing `rt`. */
TILUS_API tilus_status tilus_kernel_load(tilus_rt *rt, const char *ptx,
                                         const tilus_kernel_info *info, tilus_kernel **out);
TILUS_API void tilus_kernel_unload(tilus_kernel *kernel);

/* Registers a thread and bytes of local memory a thread (0 means no spill), as
 * the driver reports them. */
TILUS_API int tilus_kernel_registers(const tilus_kernel *kernel);
TILUS_API int tilus_kernel_local_bytes(const tilus_kernel *kernel);

/* Bytes of workspace that a launch with these arguments needs; 0 for programs that
 * have none. The arguments are checked as tilus_launch does. */
TILUS_API tilus_status tilus_workspace_size(tilus_kernel *kernel, const tilus_arg *args,
                                            size_t count, size_t *size);

/* Checks the arguments against the program's facts and enqueues the launch.
 * TILUS_ERROR_ARGUMENT names the broken fact in tilus_rt_error.
 *
 * `workspace` is the address of `size` bytes of device memory, as many as
 * tilus_workspace_size says or more, aligned to TILUS_WORKSPACE_ALIGN; 0 and 0 when
 * that says 0. Its contents do not matter: what the program wants zeroed is filled
 * on `stream` before each launch. The caller owns it and leaves it alone until the
 * launch has ended; launches that may overlap need one each. */
TILUS_API tilus_status tilus_launch(tilus_kernel *kernel, tilus_stream stream,
                                    const tilus_arg *args, size_t count, uint64_t workspace,
                                    size_t size);

/* Device memory: allocate (aligned to 256 bytes), free, copy, fill with a
 * byte. Copies are synchronous. */
TILUS_API tilus_status tilus_rt_allocate(tilus_rt *rt, size_t size, uint64_t *address);
TILUS_API tilus_status tilus_rt_release(tilus_rt *rt, uint64_t address);
TILUS_API tilus_status tilus_rt_upload(tilus_rt *rt, uint64_t to, const void *from, size_t size);
TILUS_API tilus_status tilus_rt_download(tilus_rt *rt, void *to, uint64_t from, size_t size);
TILUS_API tilus_status tilus_rt_fill(tilus_rt *rt, uint64_t to, unsigned char byte, size_t size);

/* Waits for everything enqueued on the context; reports its errors. */
TILUS_API tilus_status tilus_rt_synchronize(tilus_rt *rt);

#ifdef __cplusplus
}
#endif

#endif
