/* Kernels: making them from artefacts, describing them, unloading them. */
#include "rt.h"

#include "artefact_format.h"
#include "support/limits.h"

#include <stdlib.h>
#include <string.h>

/* ---- making --------------------------------------------------------- */

static tilus_status check_artefact(const tilus_artefact *a)
{
    char message[RT_LINE / 2];
    if (!a || !a->info || !a->info->name || !a->target || !a->ptx)
        return rt_fail(TILUS_ERROR_ARGUMENT, "an artefact without %s",
                       !a || !a->info || !a->info->name ? "the description of its kernel"
                       : !a->target ? "a target" : "PTX");
    if (a->info->arg_count > LIMIT_ARGUMENTS)
        return rt_fail(TILUS_ERROR_UNSUPPORTED, "kernel @%s takes %zu arguments, more than %d",
                       a->info->name, a->info->arg_count, LIMIT_ARGUMENTS);
    if (a->info->map_count > LIMIT_TENSOR_MAPS)
        return rt_fail(TILUS_ERROR_UNSUPPORTED, "kernel @%s takes %zu tensor maps, more than %d",
                       a->info->name, a->info->map_count, LIMIT_TENSOR_MAPS);
    if (!artefact_check_info(a->info, message, sizeof message))
        return rt_fail(TILUS_ERROR_ARGUMENT, "kernel @%s: %s", a->info->name, message);
    return TILUS_OK;
}

/* Takes the artefact, also when it fails. */
static tilus_status make_kernel(tilus_rt *rt, tilus_artefact *artefact, tilus_kernel **out)
{
    size_t count = (size_t)rt->device_count;
    tilus_kernel *kernel = artefact ? calloc(1, sizeof *kernel + count * sizeof *kernel->on)
                                    : NULL;
    if (!kernel) {
        free(artefact);
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    }
    kernel->rt = rt;
    kernel->artefact = artefact;
    if (artefact->info->map_count && !(kernel->maps = maps_open(artefact->info))) {
        free(artefact);
        free(kernel);
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    }
    pthread_mutex_init(&kernel->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        kernel->on[i].kernel = kernel;
        kernel->on[i].device = &rt->devices[i];
    }
    *out = kernel;
    return TILUS_OK;
}

tilus_status tilus_kernel_create(tilus_rt *rt, const tilus_artefact *artefact,
                                 tilus_kernel **out)
{
    if (!out)
        return RT_FAIL_NULL(out);
    *out = NULL;
    tilus_status status = rt ? check_artefact(artefact) : RT_FAIL_NULL(rt);
    return status == TILUS_OK ? make_kernel(rt, artefact_copy(artefact), out) : status;
}

tilus_status tilus_kernel_load(tilus_rt *rt, const void *artefact, size_t size,
                               tilus_kernel **out)
{
    char message[RT_LINE / 2];
    tilus_artefact *read;
    if (!out)
        return RT_FAIL_NULL(out);
    *out = NULL;
    if (!rt)
        return RT_FAIL_NULL(rt);
    if (!artefact && size)
        return RT_FAIL_NULL(artefact);
    tilus_status status = tilus_artefact_read(artefact, size, &read, message, sizeof message);
    return status == TILUS_OK ? make_kernel(rt, read, out)
                              : rt_fail(status, "artefact of %zu bytes: %s", size, message);
}

/* ---- unloading ------------------------------------------------------ */

static void unload_from(Loaded *l)
{
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    CUcontext popped;
    device_forget(l->device, l);
    if (!l->module)
        return;
    CUresult result = at.rt->api.cuCtxPushCurrent(l->context);
    if (result != CUDA_SUCCESS) {
        rt_log_driver_failure(&at, "cuCtxPushCurrent", result);
        return;
    }
    CALL_AND_LOG(&at, cuModuleUnload(l->module));
    CALL_AND_LOG(&at, cuCtxPopCurrent(&popped));
}

/* Unloads in relaxed capture mode, so that the captures of other threads go on. */
static void unload_everywhere(tilus_kernel *kernel)
{
    const ErrorContext at = {.rt = kernel->rt, .kernel = kernel};
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CALL_AND_LOG(&at, cuThreadExchangeStreamCaptureMode(&mode));
    for (int i = 0; i < kernel->rt->device_count; i++)
        if (atomic_load_explicit(&kernel->on[i].ready, memory_order_acquire))
            unload_from(&kernel->on[i]);
    for (int i = 0; i < IMAGE_COUNT; i++)
        if (kernel->libraries[i])
            CALL_AND_LOG(&at, cuLibraryUnload(kernel->libraries[i]));
    CALL_AND_LOG(&at, cuThreadExchangeStreamCaptureMode(&mode));
}

void tilus_kernel_unload(tilus_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->rt->is_software)
        engine_unload(kernel);
    else if (fork_mark_is_mine(&kernel->rt->mark))
        unload_everywhere(kernel);
    pthread_mutex_destroy(&kernel->lock);
    maps_close(kernel->maps);
    free(kernel->artefact);
    free(kernel);
}

/* ---- describing ----------------------------------------------------- */

const tilus_artefact *tilus_kernel_artefact(const tilus_kernel *kernel)
{
    return kernel ? kernel->artefact : NULL;
}

/* NULL where the kernel is not prepared. */
static const Loaded *find(const tilus_kernel *kernel, int device)
{
    if (!kernel || device < 0 || device >= kernel->rt->device_count)
        return NULL;
    const Loaded *l = &kernel->on[device];
    return atomic_load_explicit(&l->ready, memory_order_acquire) ? l : NULL;
}

int tilus_kernel_registers(const tilus_kernel *kernel, int device)
{
    const Loaded *l = find(kernel, device);
    return l ? l->registers : -1;
}

int tilus_kernel_local_bytes(const tilus_kernel *kernel, int device)
{
    const Loaded *l = find(kernel, device);
    return l ? l->local_bytes : -1;
}
