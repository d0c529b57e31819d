/* Preparing a kernel for a device: all that is slow. */
#include "rt.h"

#include "support/clock.h"

#include <stdlib.h>
#include <string.h>

/* Dynamic shared memory that every kernel may use without asking (CUDA
 * programming guide, 16.4), bytes. */
enum { SHARED_WITHOUT_ASKING = 48 * 1024 };

/* ---- whether it can run --------------------------------------------- */

enum { HOPPER = 90 };       /* the first target with tensor maps and clusters */

static int target_number(const char *target)
{
    return strncmp(target, "sm_", 3) == 0 ? atoi(target + 3) : 0;
}

/* "sm_90a" has what only 9.0 has; "sm_120f" what the family of 12.x has; "sm_80" runs on
 * all that is newer (PTX ISA, .target). A target that is spelt otherwise is left to the
 * driver to judge. */
static bool device_runs(const Device *device, const char *target)
{
    int number = target_number(target);
    char last = target[0] ? target[strlen(target) - 1] : 0;
    if (last == 'a' && device->capability != number)
        return false;
    if (last == 'f' && device->capability / 10 != number / 10)
        return false;
    return device->capability >= number;
}

/* Returns a part of the launch that its code, of an older target, cannot take; or NULL. */
static const char *too_new(const tilus_artefact *a)
{
    int number = target_number(a->target);
    if (number == 0 || number >= HOPPER)
        return NULL;
    return a->info->map_count ? "tensor maps" : a->info->cluster[0] ? "clusters" : NULL;
}

static tilus_status check_fits(const ErrorContext *at)
{
    const tilus_artefact *a = at->kernel->artefact;
    if (too_new(a))
        return rt_fail_at(at, TILUS_ERROR_UNSUPPORTED, "%s need sm_90 or newer, the code is for %s; "
                          "compile with tilus-llc -mcpu for the device", too_new(a), a->target);
    if (a->info->cooperative && !at->rt->is_software && !at->rt->api.cuLaunchKernelEx)
        return rt_fail_at(at, TILUS_ERROR_UNSUPPORTED, "cooperative programs need a driver of CUDA "
                          "11.8 or newer");
    if (!device_runs(at->device, a->target))
        return rt_fail_at(at, TILUS_ERROR_UNSUPPORTED, "the device does not run code for %s; "
                          "compile with tilus-llc -mcpu for it", a->target);
    if (a->info->shared_bytes > at->device->shared)
        return rt_fail_at(at, TILUS_ERROR_UNSUPPORTED, "a block needs %zu bytes of shared "
                          "memory, the device has %zu; compile with smaller tiles or fewer "
                          "stages", a->info->shared_bytes, at->device->shared);
    return TILUS_OK;
}

/* ---- the code ------------------------------------------------------- */

/* Makes a driver call of several; the first failure's text goes to the caller's `*failed`. */
#define TRY(call)                                                             \
    do {                                                                      \
        CUresult result_ = (call);                                            \
        *failed = &#call[sizeof "api->" - 1];                                 \
        if (result_ != CUDA_SUCCESS)                                          \
            return result_;                                                   \
    } while (0)

static const void *image_bytes(const tilus_kernel *kernel, Image image)
{
    return image == IMAGE_CUBIN ? kernel->artefact->cubin : kernel->artefact->ptx;
}

static void jit_reset(Jit *jit)
{
    jit->options[0] = CU_JIT_ERROR_LOG_BUFFER;
    jit->values[0] = jit->log;
    jit->options[1] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    jit->values[1] = (void *)(uintptr_t)sizeof jit->log;
    jit->log[0] = 0;
}

static CUresult load_library(Loaded *l, Image image, const char **failed)
{
    tilus_kernel *kernel = l->kernel;
    const CudaApi *api = &kernel->rt->api;
    CUlibrary *library = &kernel->libraries[image];
    CUkernel handle;
    if (!*library)
        TRY(api->cuLibraryLoadData(library, image_bytes(kernel, image), kernel->jit.options,
                                   kernel->jit.values, 2, NULL, NULL, 0));
    TRY(api->cuLibraryGetKernel(&handle, *library, kernel->artefact->info->name));
    TRY(api->cuKernelGetFunction(&l->function, handle));
    return CUDA_SUCCESS;
}

static CUresult load_module(Loaded *l, Image image, const char **failed)
{
    tilus_kernel *kernel = l->kernel;
    const CudaApi *api = &kernel->rt->api;
    TRY(api->cuModuleLoadDataEx(&l->module, image_bytes(kernel, image), 2, kernel->jit.options,
                                kernel->jit.values));
    TRY(api->cuModuleGetFunction(&l->function, l->module, kernel->artefact->info->name));
    return CUDA_SUCCESS;
}

/* Unloads a module that an earlier, failed preparation left. */
static void drop_module(Loaded *l)
{
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    if (l->module)
        CALL_AND_LOG(&at, cuModuleUnload(l->module));
    l->module = NULL;
}

/* A driver that compiles a library late may have no log of it; a module has. */
static void fetch_log(Loaded *l, CUresult result)
{
    const char *failed;
    Jit *jit = &l->kernel->jit;
    if (result != CUDA_ERROR_INVALID_PTX || jit->log[0] || !l->kernel->rt->has_libraries)
        return;
    jit_reset(jit);
    if (load_module(l, IMAGE_PTX, &failed) == CUDA_SUCCESS)
        jit->log[0] = 0;
    drop_module(l);
}

static CUresult load_image(Loaded *l, Image image, const char **failed)
{
    jit_reset(&l->kernel->jit);
    return l->kernel->rt->has_libraries ? load_library(l, image, failed)
                                        : load_module(l, image, failed);
}

/* Machine code that is too new for the driver is refused like this; PTX may do. */
static bool is_refusal(CUresult result)
{
    return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static tilus_status load_code(Loaded *l, Image *image)
{
    const tilus_artefact *a = l->kernel->artefact;
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    const char *failed = "";
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    *image = IMAGE_CUBIN;
    if (a->cubin && target_number(a->target) == l->device->capability)
        result = load_image(l, IMAGE_CUBIN, &failed);
    if (is_refusal(result)) {
        if (failed[0])
            rt_log_driver_failure(&at, failed, result);
        drop_module(l);
        *image = IMAGE_PTX;
        result = load_image(l, IMAGE_PTX, &failed);
    }
    if (result == CUDA_SUCCESS)
        return TILUS_OK;
    fetch_log(l, result);
    tilus_status status = rt_fail_driver(&at, failed, result);
    l->kernel->jit.log[RT_JIT_LOG - 1] = 0;
    if (status != TILUS_ERROR_LOST)
        rt_fail_add_log(l->kernel->jit.log);
    return status;
}

/* The code must wait for the launches before it, which is so where its target has the
 * instruction, and the driver must know such launches in graphs: since CUDA 12.3. */
static bool may_overlap(const Loaded *l)
{
    enum { FIRST_TARGET = 90, FIRST_DRIVER = 12030 };
    const tilus_rt *rt = l->kernel->rt;
    const tilus_artefact *a = l->kernel->artefact;
    return a->info->overlaps && target_number(a->target) >= FIRST_TARGET &&
           rt->driver_version >= FIRST_DRIVER && rt->api.cuLaunchKernelEx;
}

/* A driver that loads functions when they are first launched is told to do it now. */
static tilus_status finish_function(Loaded *l)
{
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    size_t shared = l->kernel->artefact->info->shared_bytes;
    tilus_status status = TILUS_OK;
    if (at.rt->api.cuFuncLoad)
        CHECK(&at, cuFuncLoad(l->function));
    CHECK(&at, cuFuncGetAttribute(&l->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, l->function));
    CHECK(&at, cuFuncGetAttribute(&l->local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                  l->function));
    if (shared > SHARED_WITHOUT_ASKING)
        CHECK(&at, cuFuncSetAttribute(l->function,
                                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      (int)shared));
    if (l->kernel->artefact->info->cooperative)
        CHECK(&at, cuOccupancyMaxActiveBlocksPerMultiprocessor(
                       &l->occupancy, l->function, (int)l->kernel->artefact->info->threads, shared));
done:
    return status;
}

/* ---- preparing ------------------------------------------------------ */

/* Logs that registers spill (the group "spills" of the compiler's warnings): the function has
 * local memory, although its PTX declares none, as that of `print` does. */
static void log_spills(const Loaded *l)
{
    const tilus_artefact *a = l->kernel->artefact;
    if (l->local_bytes > 0 && !strstr(a->ptx, ".local"))
        rt_log(l->kernel->rt, "kernel @%s (%s) on device %d (%s): warning: registers spill: a "
               "thread keeps %d bytes in local memory; smaller tiles or more warps need fewer "
               "registers a thread [-Wspills]", a->info->name, a->target, l->device->ordinal,
               l->device->name, l->local_bytes);
}

static tilus_status prepare_in_context(Loaded *l)
{
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    bool pushed;
    Image image;
    double start = clock_seconds();
    tilus_status status = device_enter(&at, &pushed);
    if (status != TILUS_OK)
        return status;
    status = load_code(l, &image);
    if (status == TILUS_OK)
        status = finish_function(l);
    if (status != TILUS_OK) {
        drop_module(l);
        return device_leave(&at, pushed, status);
    }
    l->overlaps = may_overlap(l);
    l->context = atomic_load_explicit(&l->device->context, memory_order_acquire);
    atomic_store_explicit(&l->ready, true, memory_order_release);
    rt_log(at.rt, "kernel @%s (%s) is prepared on device %d (%s) in %.1f ms: %s, %d "
           "registers and %d bytes of local memory a thread",
           l->kernel->artefact->info->name, l->kernel->artefact->target, l->device->ordinal,
           l->device->name, 1e3 * (clock_seconds() - start),
           image == IMAGE_CUBIN ? "machine code" : "PTX", l->registers, l->local_bytes);
    log_spills(l);
    return device_leave(&at, pushed, TILUS_OK);
}

/* Loading is among what a capture forbids, to all threads unless they say otherwise. */
static tilus_status prepare(Loaded *l)
{
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tilus_status status = check_fits(&at);
    if (status != TILUS_OK || at.rt->is_software)
        return status == TILUS_OK ? engine_prepare(l) : status;
    CHECK(&at, cuThreadExchangeStreamCaptureMode(&mode));
    status = prepare_in_context(l);
    CALL_AND_LOG(&at, cuThreadExchangeStreamCaptureMode(&mode));
done:
    return status;
}

tilus_status tilus_kernel_prepare(tilus_kernel *kernel, int device)
{
    if (!kernel)
        return RT_FAIL_NULL(kernel);
    ErrorContext at = {.rt = kernel->rt, .kernel = kernel};
    if (device < 0 || device >= kernel->rt->device_count)
        return rt_fail_at(&at, TILUS_ERROR_NO_DEVICE, "no CUDA device %d, the process has %d",
                          device, kernel->rt->device_count);
    Loaded *l = &kernel->on[device];
    at.device = l->device;
    tilus_status status = device_check(&at);
    if (status != TILUS_OK || atomic_load_explicit(&l->ready, memory_order_acquire))
        return status;
    pthread_mutex_lock(&kernel->lock);
    if (!atomic_load_explicit(&l->ready, memory_order_relaxed))
        status = prepare(l);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}
