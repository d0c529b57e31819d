/* Launching.
 *
 * A warm launch, of a kernel that is prepared on the one device that it is used on, with
 * the device's context current, makes two driver calls:
 *
 *     cuCtxGetCurrent     is it the context of a device that has the kernel?
 *     (cuTensorMapEncodeTiled of each tensor map that no recent launch had)
 *     cuLaunchKernel      (after cuMemsetD8Async where a workspace wants zeros;
 *                         cuLaunchKernelEx where it may begin early, has clusters or is
 *                         cooperative)
 *
 * A kernel that is prepared on several devices must also ask which one a stream is of. For
 * one that is prepared on the current device only, the driver does: it refuses a function
 * of one context in a stream of another, and only then do we ask. */
#include "launch.h"

#include <assert.h>
#include "support/kernel_info.h"

static ErrorContext error_context(const tilus_kernel *kernel)
{
    return (ErrorContext){.rt = kernel->rt, .kernel = kernel};
}

/* ---- checks --------------------------------------------------------- */

static tilus_status check_arguments(const tilus_kernel *kernel, const tilus_arg *args,
                                    size_t count, Launch *l)
{
    const tilus_kernel_info *info = kernel->artefact->info;
    const ErrorContext at = error_context(kernel);
    char message[RT_LINE / 2];
    tilus_status status = tilus_kernel_check(info, args, count, l->grid, message,
                                             sizeof message);
    if (status == TILUS_OK)
        status = tilus_kernel_workspace_size(info, args, &l->needed, &l->zeroed, message,
                                             sizeof message);
    return status == TILUS_OK ? status : rt_fail_at(&at, status, "%s", message);
}

static tilus_status check_workspace(const Launch *l, size_t size)
{
    const ErrorContext at = error_context(l->kernel);
    if (size < l->needed)
        return rt_fail_at(&at, TILUS_ERROR_ARGUMENT, "a workspace of %zu bytes, this launch "
                          "needs %zu", size, l->needed);
    if (l->needed && !l->workspace)
        return rt_fail_at(&at, TILUS_ERROR_ARGUMENT, "no workspace, this launch needs %zu bytes",
                          l->needed);
    if (l->needed && l->workspace % TILUS_WORKSPACE_ALIGN)
        return rt_fail_at(&at, TILUS_ERROR_ARGUMENT, "the workspace at 0x%llx is not aligned to "
                          "%d bytes", (unsigned long long)l->workspace, TILUS_WORKSPACE_ALIGN);
    return TILUS_OK;
}

tilus_status tilus_workspace_size(const tilus_kernel *kernel, const tilus_arg *args,
                                  size_t count, size_t *size)
{
    Launch l = {0};
    if (!size)
        return RT_FAIL_NULL(size);
    *size = 0;
    if (!kernel)
        return RT_FAIL_NULL(kernel);
    tilus_status status = check_arguments(kernel, args, count, &l);
    *size = status == TILUS_OK ? l.needed : 0;
    return status;
}

/* Lays out the arguments, the tensor maps, then the workspace. */
void launch_pack(LaunchFrame *frame)
{
    const Launch *l = &frame->launch;
    Parameter *parameters = frame->values;
    const tilus_arg *args = l->args;
    const tilus_kernel_info *info = l->kernel->artefact->info;
    for (size_t i = 0; i < info->arg_count; i++) {
        Parameter *p = &parameters[i];
        switch (info->args[i].kind) {
        case TILUS_ARG_POINTER: p->u64 = args[i].pointer; break;
        case TILUS_ARG_I32: p->s32 = (int32_t)args[i].integer; break;
        case TILUS_ARG_U32: p->u32 = (uint32_t)args[i].integer; break;
        case TILUS_ARG_I64: p->s64 = args[i].integer; break;
        case TILUS_ARG_F16:
        case TILUS_ARG_BF16:
            p->u16 = (uint16_t)kernel_float_code(info->args[i].kind, args[i].real);
            break;
        case TILUS_ARG_F32: p->u32 = kernel_float_code(TILUS_ARG_F32, args[i].real); break;
        }
        l->parameters[i] = p;
    }
    for (size_t i = 0; i < info->map_count; i++)
        l->parameters[info->arg_count + i] = &l->maps[i];
    parameters[info->arg_count].u64 = l->workspace;
    l->parameters[info->arg_count + info->map_count] = &parameters[info->arg_count];
}

/* ---- the device ----------------------------------------------------- */

bool stream_is_special(CUstream stream)
{
    return (uintptr_t)stream <= 2;
}

Loaded *kernel_find_loaded(tilus_kernel *kernel, CUcontext context, int *others)
{
    Loaded *found = NULL;
    *others = 0;
    for (int i = 0; i < kernel->rt->device_count; i++) {
        Loaded *l = &kernel->on[i];
        if (!atomic_load_explicit(&l->ready, memory_order_acquire))
            continue;
        if (l->context == context)
            found = l;
        else
            ++*others;
    }
    return found;
}

/* A special stream without a current context: the only place there is. */
static tilus_status find_only(const Launch *l, Loaded **loaded)
{
    const ErrorContext at = error_context(l->kernel);
    int others;
    kernel_find_loaded(l->kernel, NULL, &others);
    if (others != 1)
        return rt_fail_at(&at, TILUS_ERROR_STATE, "no CUDA context is current, and the kernel is "
                          "prepared on %d devices: call tilus_kernel_prepare for one, make its "
                          "context current, or launch on a stream of it", others);
    *loaded = l->kernel->on;
    while (!atomic_load_explicit(&(*loaded)->ready, memory_order_acquire))
        ++*loaded;
    return TILUS_OK;
}

/* The device whose primary context this is, if we have retained it. */
static Device *find_device(tilus_rt *rt, CUcontext context)
{
    for (int i = 0; context && i < rt->device_count; i++)
        if (atomic_load_explicit(&rt->devices[i].context, memory_order_acquire) == context)
            return &rt->devices[i];
    return NULL;
}

/* A call failed that asked where to launch. An error that ends a context is that of
 * `device`, where one is known. */
static tilus_status fail_to_ask(const Launch *l, Device *device, const char *call,
                                CUresult result)
{
    ErrorContext at = error_context(l->kernel);
    if (rt_error_is_sticky(result))
        at.device = device;
    return rt_fail_driver(&at, call, result);
}

/* The device that a context is of, primary or not, and whether the stream is captured. */
typedef struct Place {
    Device *device;
    bool capturing;
} Place;

static CUresult ask_place(const CudaApi *api, CUstream stream, CUdevice *handle,
                          int *capturing, const char **failed)
{
    *failed = "cuCtxGetDevice";
    CUresult result = api->cuCtxGetDevice(handle);
    if (result != CUDA_SUCCESS)
        return result;
    *failed = "cuStreamIsCapturing";
    result = api->cuStreamIsCapturing(stream, capturing);
    *capturing |= result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return *capturing ? CUDA_SUCCESS : result;
}

static tilus_status find_place(const Launch *l, CUcontext context, Place *place)
{
    const ErrorContext at = error_context(l->kernel);
    const char *failed;
    CUdevice handle = -1;
    CUcontext popped;
    int capturing = 0;
    tilus_status status = TILUS_OK;
    CHECK(&at, cuCtxPushCurrent(context));
    CUresult result = ask_place(&at.rt->api, l->stream, &handle, &capturing, &failed);
    CALL_AND_LOG(&at, cuCtxPopCurrent(&popped));
    if (result != CUDA_SUCCESS)
        return fail_to_ask(l, find_device(at.rt, context), failed, result);
    place->capturing = capturing;
    for (int i = 0; i < at.rt->device_count; i++)
        if (at.rt->devices[i].handle == handle) {
            place->device = &at.rt->devices[i];
            return TILUS_OK;
        }
    return rt_fail_at(&at, TILUS_ERROR_NO_DEVICE, "the stream is of a device that the process "
                      "did not have when tilus_rt_open was called");
done:
    return status;
}

static tilus_status prepare_now(const ErrorContext *at, const Launch *l, bool capturing)
{
    if (capturing)
        return rt_fail_at(at, TILUS_ERROR_STATE, "the kernel is not prepared there and the "
                          "stream is being captured, when nothing can be loaded: call "
                          "tilus_kernel_prepare(kernel, %d) before the capture begins",
                          at->device->ordinal);
    return tilus_kernel_prepare(l->kernel, at->device->ordinal);
}

/* The first launch in a context: prepares the kernel there. */
static tilus_status load_now(const Launch *l, CUcontext context, Loaded **loaded)
{
    Place place = {0};
    tilus_status status = find_place(l, context, &place);
    if (status != TILUS_OK)
        return status;
    const ErrorContext at = {l->kernel->rt, place.device, l->kernel};
    Loaded *there = &l->kernel->on[place.device->ordinal];
    if (!atomic_load_explicit(&there->ready, memory_order_acquire))
        status = prepare_now(&at, l, place.capturing);
    if (status != TILUS_OK)
        return status;
    if (there->context != context)
        return rt_fail_at(&at, TILUS_ERROR_ARGUMENT, "the stream is of a context that is not the "
                          "device's primary one; kernels run in primary contexts only");
    *loaded = there;
    return TILUS_OK;
}

/* A device whose context is retained, one that is not lost if there is any; NULL when there
 * is none. `*count`: how many there are. */
static Device *find_retained(tilus_rt *rt, int *count)
{
    Device *found = NULL;
    *count = 0;
    for (int i = 0; i < rt->device_count; i++) {
        Device *d = &rt->devices[i];
        if (!atomic_load_explicit(&d->context, memory_order_acquire))
            continue;
        ++*count;
        if (!found || atomic_load_explicit(&found->lost, memory_order_acquire))
            found = d;
    }
    return found;
}

/* The context of a stream that is not special. A driver that wants some context current
 * before it says which, gets one. */
static tilus_status find_context(const Launch *l, CUcontext current, CUcontext *context)
{
    tilus_rt *rt = l->kernel->rt;
    bool pushed;
    int count;
    CUresult result = rt->api.cuStreamGetCtx(l->stream, context);
    if (result == CUDA_SUCCESS)
        return TILUS_OK;
    const ErrorContext any = {rt, find_retained(rt, &count), l->kernel};
    Device *only = count == 1 ? any.device : NULL;
    if (result != CUDA_ERROR_INVALID_CONTEXT || current || !any.device)
        return fail_to_ask(l, only, "cuStreamGetCtx", result);
    tilus_status status = device_enter(&any, &pushed);
    if (status != TILUS_OK)
        return status;
    result = rt->api.cuStreamGetCtx(l->stream, context);
    if (result != CUDA_SUCCESS)
        status = fail_to_ask(l, only, "cuStreamGetCtx", result);
    return device_leave(&any, pushed, status);
}

/* ---- launching ------------------------------------------------------ */

/* A launch with attributes. An early one may begin when the launch before it in the stream
 * lets it, or its blocks have ended; the program then waits by itself (PTX ISA,
 * griddepcontrol). */
static tilus_status enqueue_with(const Launch *l, Loaded *loaded, bool early)
{
    const tilus_kernel_info *info = l->kernel->artefact->info;
    const ErrorContext at = {l->kernel->rt, loaded->device, l->kernel};
    tilus_status status = TILUS_OK;
    CUlaunchAttribute attributes[3];
    unsigned count = 0;
    if (info->cooperative)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                  .value.cooperative = 1};
    if (early)
        attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            .value.programmatic_stream_serialization = 1};
    if (info->cluster[0])
        attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value.cluster = {info->cluster[0], info->cluster[1], info->cluster[2]}};
    const CUlaunchConfig config = {
        .grid_x = (unsigned)l->grid[0], .grid_y = (unsigned)l->grid[1],
        .grid_z = (unsigned)l->grid[2], .block_x = info->threads, .block_y = 1, .block_z = 1,
        .shared_bytes = (unsigned)info->shared_bytes, .stream = l->stream,
        .attributes = attributes, .attribute_count = count};
    CHECK(&at, cuLaunchKernelEx(&config, loaded->function, l->parameters, NULL));
    device_note_launch(loaded->device, loaded, l->grid);
done:
    return status;
}

/* The blocks of a cooperative program's grid must all run at the same time. */
static tilus_status check_room(const ErrorContext *at, const Launch *l, const Loaded *loaded)
{
    int64_t room = (int64_t)at->device->multiprocessors * loaded->occupancy, blocks = 1;
    for (unsigned d = 0; d < 3; d++)
        blocks = blocks <= room ? blocks * l->grid[d] : blocks;
    return blocks <= room ? TILUS_OK
                          : rt_fail_at(at, TILUS_ERROR_ARGUMENT, "a cooperative grid of %lld x "
                                       "%lld x %lld blocks, the device has room for %lld at once: %d "
                                       "on each of %d multiprocessors", (long long)l->grid[0],
                                       (long long)l->grid[1], (long long)l->grid[2],
                                       (long long)room, loaded->occupancy,
                                       at->device->multiprocessors);
}

static tilus_status enqueue(const Launch *l, Loaded *loaded)
{
    const tilus_kernel_info *info = l->kernel->artefact->info;
    const ErrorContext at = {l->kernel->rt, loaded->device, l->kernel};
    tilus_status status = info->cooperative ? check_room(&at, l, loaded) : TILUS_OK;
    if (status == TILUS_OK)
        status = maps_encode(&at, l->args, l->maps);
    if (status != TILUS_OK)
        return status;
    /* Behind a fill a launch cannot begin early: only kernels let others begin, and in a
       graph the edge between the two must be of the usual kind. */
    bool early = loaded->overlaps && !l->zeroed;
    if (l->zeroed)
        CHECK(&at, cuMemsetD8Async(l->workspace, 0, l->zeroed, l->stream));
    /* Its PTX names the cluster too, for drivers without the call. */
    if (early || info->cooperative || (info->cluster[0] && at.rt->api.cuLaunchKernelEx))
        return enqueue_with(l, loaded, early);
    CHECK(&at, cuLaunchKernel(loaded->function, (unsigned)l->grid[0], (unsigned)l->grid[1],
                              (unsigned)l->grid[2], info->threads, 1, 1,
                              (unsigned)info->shared_bytes, l->stream, l->parameters, NULL));
    device_note_launch(loaded->device, loaded, l->grid);
done:
    return status;
}

static tilus_status enqueue_in(const Launch *l, Loaded *loaded, CUcontext current)
{
    const ErrorContext at = {l->kernel->rt, loaded->device, l->kernel};
    assert(atomic_load_explicit(&loaded->ready, memory_order_relaxed));
    tilus_status status = device_check(&at);
    if (status != TILUS_OK)
        return status;
    if (loaded->context == current)
        return enqueue(l, loaded);
    CHECK(&at, cuCtxPushCurrent(loaded->context));
    return device_leave(&at, true, enqueue(l, loaded));
done:
    return status;
}

/* Returns true when the stream is of another context than the current one. */
static bool is_elsewhere(const Launch *l, CUcontext current)
{
    CUcontext context;
    return !stream_is_special(l->stream) &&
           l->kernel->rt->api.cuStreamGetCtx(l->stream, &context) == CUDA_SUCCESS &&
           context != current;
}

/* Launches in the stream's context. */
static tilus_status launch_anywhere(const Launch *l, CUcontext current)
{
    CUcontext context = current;
    int others;
    tilus_status status = TILUS_OK;
    if (!stream_is_special(l->stream))
        status = find_context(l, current, &context);
    if (status != TILUS_OK)
        return status;
    Loaded *loaded = kernel_find_loaded(l->kernel, context, &others);
    if (!loaded)
        status = context ? load_now(l, context, &loaded) : find_only(l, &loaded);
    return status == TILUS_OK ? enqueue_in(l, loaded, current) : status;
}

static tilus_status launch_checked(const Launch *l)
{
    const ErrorContext at = error_context(l->kernel);
    CUcontext current;
    int others;
    tilus_status status = device_check(&at);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuCtxGetCurrent(&current));
    Loaded *loaded = kernel_find_loaded(l->kernel, current, &others);
    if (loaded && (others == 0 || stream_is_special(l->stream))) {
        status = enqueue_in(l, loaded, current);
        if (status != TILUS_ERROR_DRIVER || !is_elsewhere(l, current))
            return status;
    }
    status = launch_anywhere(l, current);
done:
    return status;
}

static tilus_status launch_on_engine(const Launch *l, size_t count)
{
    tilus_engine_launch launch = {
        .struct_size = sizeof launch, .args = l->args, .arg_count = count,
        .grid = {l->grid[0], l->grid[1], l->grid[2]}, .workspace_size = l->needed,
        .workspace_zeroed = l->zeroed};
    return engine_launch(l->kernel, &launch, l->workspace);
}

tilus_status launch_begin(LaunchFrame *frame, tilus_kernel *kernel, CUstream stream,
                          const tilus_arg *args, size_t count, uint64_t workspace, size_t size)
{
    frame->launch = (Launch){.kernel = kernel, .stream = stream, .workspace = workspace,
                             .args = args, .maps = frame->maps, .parameters = frame->pointers};
    tilus_status status = check_arguments(kernel, args, count, &frame->launch);
    return status == TILUS_OK && !launch_is_empty(&frame->launch)
               ? check_workspace(&frame->launch, size)
               : status;
}

bool launch_is_empty(const Launch *l)
{
    return l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0;
}

tilus_status tilus_launch(tilus_kernel *kernel, tilus_stream stream, const tilus_arg *args,
                          size_t count, uint64_t workspace, size_t size)
{
    LaunchFrame frame;
    const Launch *l = &frame.launch;
    if (!kernel)
        return RT_FAIL_NULL(kernel);
    tilus_status status = launch_begin(&frame, kernel, stream, args, count, workspace, size);
    if (status != TILUS_OK || launch_is_empty(l))
        return status;      /* an empty grid runs nothing; the driver would refuse it */
    if (kernel->rt->has_engine)
        return launch_on_engine(l, count);
    launch_pack(&frame);
    return launch_checked(l);
}
