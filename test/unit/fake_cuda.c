/* A shared library that passes for libcuda, for tests without a driver: host
 * memory as device memory, launches that are only recorded, and any call made
 * to fail on demand. A call that ends something (free, unload, release, pop)
 * does so even when it is told to fail, so that a leak is the caller's. Any
 * number of threads may call it. Built with FAKE_OLD it lacks what came with
 * CUDA 11.8 and later. */
#include "fake_cuda.h"

#include "cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INVALID_VALUE = 1,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    MAX_DEPTH = 8,
    MAP_BYTES = 128
};

_Static_assert(sizeof(FakeMap) <= MAP_BYTES, "a fake map fits in a map's bytes");

/* Opaque handles. */
struct CUctx_st { int device; };
struct CUfunc_st {
    CUcontext context;
    char name[32];
    int parameter_count;
    int parameter_bytes[FAKE_PARAMETERS];
};
struct CUmod_st {
    char *image;
    struct CUfunc_st function;
};
struct CUlib_st {
    char *image;
    struct CUfunc_st functions[FAKE_DEVICES];
};

FakeCuda fake_cuda = {.device_count = 1, .driver_version = 13000};

static struct CUctx_st primary[FAKE_DEVICES] = {{0}, {1}, {2}, {3}};
static struct CUctx_st other = {0};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* of what a launch records */
static _Thread_local CUcontext stack[MAX_DEPTH];
static _Thread_local int depth, capture_mode;

#define CUDA_API(name, symbol, parameters) CUresult symbol parameters;
#include "cuda_api.def"

FakeSetCurrent fake_set_current;

static void trace(const char *symbol)
{
    size_t used = strlen(fake_cuda.trace);
    snprintf(fake_cuda.trace + used, FAKE_TRACE - used, "%s%s", used ? " " : "", symbol);
}

/* Counts, without ordering the threads that do: their order is the runtime's to make. */
static int add(atomic_int *counter, int n)
{
    return atomic_fetch_add_explicit(counter, n, memory_order_relaxed) + n;
}

/* For programs, which cannot set fields: a number of the environment, before `value`. */
static int setting(const char *name, int value)
{
    const char *text = getenv(name);
    return text ? atoi(text) : value;
}

/* Counts a call; returns the error that it is to fail with, or 0. */
static CUresult called(const char *symbol)
{
    const char *spec = fake_cuda.fail ? fake_cuda.fail : getenv("TILUS_FAKE_FAIL");
    const char *colon = spec ? strchr(spec, ':') : NULL;
    int number = add(&fake_cuda.calls, 1);
    if (fake_cuda.trace)
        trace(symbol);
    if (!colon)
        return CUDA_SUCCESS;
    size_t len = (size_t)(colon - spec);
    if (spec[0] >= '0' && spec[0] <= '9' ? atoi(spec) == number
                                         : strlen(symbol) == len && !memcmp(spec, symbol, len))
        return atoi(colon + 1);
    return CUDA_SUCCESS;
}

static CUcontext current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static CUresult sticky_error(void)
{
    return current() ? atomic_load_explicit(&fake_cuda.sticky[current()->device],
                                            memory_order_relaxed)
                     : CUDA_ERROR_INVALID_CONTEXT;
}

/* What any capture forbids all threads but relaxed ones. */
static CUresult check_captures(void)
{
    for (int i = 0; i < FAKE_STREAMS; i++)
        if (fake_cuda.streams[i].capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
            fake_cuda.refused++;
            return CAPTURE_UNSUPPORTED;
        }
    return CUDA_SUCCESS;
}

/* Ends the calling function when it is to fail. */
#define RETURN_IF(error)                                                      \
    do {                                                                      \
        CUresult error_ = (error);                                            \
        if (error_)                                                           \
            return error_;                                                    \
    } while (0)
#define CALLED() RETURN_IF(called(__func__))

/* The same for what needs a current context. */
#define CALLED_IN_CONTEXT()                                                   \
    do {                                                                      \
        CALLED();                                                             \
        RETURN_IF(sticky_error());                                            \
    } while (0)

/* ---- driver and device ---------------------------------------------- */

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY"
          : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
          : error == CUDA_ERROR_INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
          : error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : error == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
              ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
          : error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : NULL;
    return *name ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == INVALID_VALUE ? "invalid argument" : NULL;
    return *text ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuInit(unsigned flags)
{
    CALLED();
    return flags ? INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    CALLED();
    *version = setting("TILUS_FAKE_VERSION", fake_cuda.driver_version);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CALLED();
    *count = fake_cuda.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CALLED();
    *device = 100 + ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    CALLED();
    if (fake_cuda.device_name)
        snprintf(name, (size_t)size, "%s", fake_cuda.device_name);
    else
        snprintf(name, (size_t)size, "Fake %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CALLED();
    *bytes = (size_t)(device - 99) << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    int capability = setting("TILUS_FAKE_CAPABILITY",
                             fake_cuda.capability ? fake_cuda.capability : 86);
    CALLED();
    (void)device;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = fake_cuda.multiprocessors ? fake_cuda.multiprocessors : 132;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = fake_cuda.shared_memory ? fake_cuda.shared_memory : 101376;
        break;
    default: return INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* ---- contexts and streams ------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CALLED();
    fake_cuda.retained++;
    *context = &primary[device - 100];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    fake_cuda.retained--;
    return called(__func__);
}

void fake_set_current(int device)
{
    depth = device != FAKE_NO_CONTEXT;
    stack[0] = device == FAKE_OTHER_CONTEXT ? &other : &primary[depth ? device : 0];
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CALLED();
    *context = current();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CALLED();
    if (!current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = 100 + current()->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CALLED();
    if (!context || depth == MAX_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    add(&fake_cuda.current, 1);
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    add(&fake_cuda.current, -1);
    *context = stack[--depth];
    return called(__func__);
}

CUresult cuCtxSynchronize(void)
{
    CALLED_IN_CONTEXT();
    return check_captures();
}

static bool is_special(CUstream stream)
{
    return (uintptr_t)stream <= 2;
}

static CUcontext stream_context(CUstream stream)
{
    const FakeStream *s = (const FakeStream *)stream;
    return is_special(stream) ? current()
         : s->device == FAKE_OTHER_CONTEXT ? &other : &primary[s->device];
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CALLED();
    if (fake_cuda.strict && !current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stream_context(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    CALLED();
    if (fake_cuda.strict && !current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *status = !is_special(stream) && ((FakeStream *)stream)->capturing;
    return is_special(stream) && check_captures() ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                  : CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    CUresult error = called(__func__);
    if (error)
        capture_mode = before;
    return error;
}

/* ---- memory --------------------------------------------------------- */

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    CALLED_IN_CONTEXT();
    if (size == 0)
        return INVALID_VALUE;
    void *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_cuda.allocations++;
    *address = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    free((void *)(uintptr_t)address);
    fake_cuda.allocations--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    CALLED_IN_CONTEXT();
    memcpy((void *)(uintptr_t)to, from, size);
    return CUDA_SUCCESS;
}

/* Keeps the copy: launches of tests have addresses of no memory. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    pthread_mutex_lock(&lock);
    fake_cuda.uploaded_to = to;
    fake_cuda.uploaded_bytes = size;
    memcpy(fake_cuda.uploaded, from, size < FAKE_UPLOADED ? size : FAKE_UPLOADED);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    CALLED_IN_CONTEXT();
    memcpy(to, (void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char byte, size_t size)
{
    CALLED_IN_CONTEXT();
    memset((void *)(uintptr_t)to, byte, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    pthread_mutex_lock(&lock);
    fake_cuda.fill_bytes = size;
    fake_cuda.filled_after = fake_cuda.launches;
    pthread_mutex_unlock(&lock);
    memset((void *)(uintptr_t)to, byte, size);
    return CUDA_SUCCESS;
}

/* ---- code ----------------------------------------------------------- */

static void write_log(unsigned count, const int *options, void **values)
{
    char *buffer = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (buffer)
        snprintf(buffer, size, "ptxas application ptx input, line 9; fatal: syntax error\n");
}

/* An image is text. Words in it say what is wrong with it. */
static CUresult image_error(const char *image)
{
    return strstr(image, "bad") ? CUDA_ERROR_INVALID_PTX
         : strstr(image, "refused") ? CUDA_ERROR_INVALID_IMAGE
         : strstr(image, "too new") ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS;
}

static char *load(const char *image)
{
    char *copy = malloc(strlen(image) + 1);
    strcpy(copy, image);
    pthread_mutex_lock(&lock);
    fake_cuda.loads++;
    fake_cuda.relaxed_loads += capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    snprintf(fake_cuda.image, sizeof fake_cuda.image, "%s", image);
    pthread_mutex_unlock(&lock);
    return copy;
}

/* Reads only the parameters' widths of an image; a tensor map is an array of bytes. */
static void read_function(struct CUfunc_st *f, const char *image)
{
    static const char declaration[] = ".param .", map[] = "align 64 .b8";
    f->context = current();
    f->parameter_count = 0;
    for (const char *p = strstr(image, declaration); p; p = strstr(p + 1, declaration)) {
        const char *type = p + strlen(declaration);
        int bytes = strncmp(type, map, strlen(map)) ? atoi(type + 1) / 8 : MAP_BYTES;
        if (f->parameter_count < FAKE_PARAMETERS)
            f->parameter_bytes[f->parameter_count++] = bytes;
    }
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned option_count,
                            int *options, void **option_values)
{
    CALLED_IN_CONTEXT();
    RETURN_IF(check_captures());
    CUresult error = image_error(image);
    if (error == CUDA_ERROR_INVALID_PTX)
        write_log(option_count, options, option_values);
    RETURN_IF(error);
    *module = calloc(1, sizeof **module);
    (*module)->image = load(image);
    read_function(&(*module)->function, image);
    fake_cuda.modules++;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module->image);
    free(module);
    fake_cuda.modules--;
    CALLED_IN_CONTEXT();
    return check_captures();
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CALLED_IN_CONTEXT();
    *function = &module->function;
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    return strstr(module->image, name) ? CUDA_SUCCESS : NOT_FOUND;
}

#ifndef FAKE_OLD
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit_options,
                           void **jit_values, unsigned jit_count, int *options, void **values,
                           unsigned count)
{
    CALLED();
    RETURN_IF(check_captures());
    if (options || values || count)
        return INVALID_VALUE;
    CUresult error = fake_cuda.late ? CUDA_SUCCESS : image_error(code);
    if (error == CUDA_ERROR_INVALID_PTX)
        write_log(jit_count, jit_options, jit_values);
    RETURN_IF(error);
    *library = calloc(1, sizeof **library);
    (*library)->image = load(code);
    fake_cuda.libraries++;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    free(library->image);
    free(library);
    fake_cuda.libraries--;
    CALLED();
    return check_captures();
}

/* The library stands for its only kernel. */
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CALLED();
    *kernel = (CUkernel)library;
    for (int i = 0; i < FAKE_DEVICES; i++)
        snprintf(library->functions[i].name, sizeof library->functions[i].name, "%s", name);
    return strstr(library->image, name) ? CUDA_SUCCESS : NOT_FOUND;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUlibrary library = (CUlibrary)kernel;
    CALLED_IN_CONTEXT();
    RETURN_IF(check_captures());
    RETURN_IF(image_error(library->image));
    *function = &library->functions[current()->device];
    read_function(*function, library->image);
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    CALLED_IN_CONTEXT();
    RETURN_IF(check_captures());
    pthread_mutex_lock(&lock);
    fake_cuda.loaded_now++;
    pthread_mutex_unlock(&lock);
    return function->context == current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
#endif

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    CALLED_IN_CONTEXT();
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 40
           : attribute != CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? -1
           : fake_cuda.without_local                         ? 0
                                                             : 16;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared_bytes)
{
    CALLED_IN_CONTEXT();
    (void)function;
    (void)shared_bytes;
    *blocks = fake_cuda.occupancy ? fake_cuda.occupancy : 2048 / threads;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    CALLED_IN_CONTEXT();
    (void)function;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return INVALID_VALUE;
    atomic_store_explicit(&fake_cuda.function_shared, value, memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* ---- launching ------------------------------------------------------ */

static void record(CUfunction f, const unsigned grid[3], const unsigned block[3],
                   unsigned shared, CUstream stream, void **params)
{
    pthread_mutex_lock(&lock);
    FakeLaunch *l = &fake_cuda.log[fake_cuda.launches % FAKE_LAUNCHES];
    fake_cuda.launches++;
    fake_cuda.launches_on[f->context->device]++;
    if (!is_special(stream))
        ((FakeStream *)stream)->launches++;
    memcpy(fake_cuda.grid, grid, sizeof fake_cuda.grid);
    memcpy(fake_cuda.block, block, sizeof fake_cuda.block);
    fake_cuda.shared = shared;
    memset(fake_cuda.parameters, 0, sizeof fake_cuda.parameters);
    for (int i = 0; i < f->parameter_count; i++) {
        bool is_map = f->parameter_bytes[i] == MAP_BYTES;
        memcpy(&fake_cuda.parameters[i], params[i],
               is_map ? sizeof(uint64_t) : (size_t)f->parameter_bytes[i]);
        if (is_map)
            memcpy(&fake_cuda.maps[i], params[i], sizeof fake_cuda.maps[i]);
    }
    *l = (FakeLaunch){.shared = shared, .stream = stream};
    memcpy(l->name, f->name, sizeof l->name);
    memcpy(l->grid, fake_cuda.grid, sizeof l->grid);
    memcpy(l->block, fake_cuda.block, sizeof l->block);
    memcpy(l->parameters, fake_cuda.parameters, sizeof l->parameters);
    pthread_mutex_unlock(&lock);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream stream, void **params, void **extra)
{
    CALLED_IN_CONTEXT();
    if (extra || !grid_x || !grid_y || !grid_z)
        return INVALID_VALUE;
    if (function->context != stream_context(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (function->context != current())
        return CUDA_ERROR_INVALID_CONTEXT;
    record(function, (unsigned[]){grid_x, grid_y, grid_z},
           (unsigned[]){block_x, block_y, block_z}, shared_bytes, stream, params);
    return CUDA_SUCCESS;
}

#ifndef FAKE_OLD
/* Refuses what the driver would. */
CUresult cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                                const uint64_t *extents, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill)
{
    CALLED_IN_CONTEXT();
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || rank < 1 || rank > FAKE_MAP_RANK)
        return INVALID_VALUE;
    FakeMap out = {.magic = FAKE_MAP_MAGIC, .address = (uintptr_t)address, .type = (uint8_t)type,
                   .rank = (uint8_t)rank, .steps = 1, .interleave = (uint8_t)interleave,
                   .swizzle = (uint8_t)swizzle, .promotion = (uint8_t)promotion,
                   .fill = (uint8_t)fill};
    for (unsigned d = 0; d < rank; d++) {
        if (extents[d] == 0 || box[d] == 0 || box[d] > 256 || (d + 1 < rank && strides[d] % 16))
            return INVALID_VALUE;
        out.extents[d] = (uint32_t)extents[d];
        out.strides[d] = d + 1 < rank ? (uint32_t)strides[d] : 0;
        out.box[d] = (uint16_t)box[d];
        out.steps = out.steps == 1 && steps[d] == 1;
    }
    memset(map, 0, MAP_BYTES);
    memcpy(map, &out, sizeof out);
    add(&fake_cuda.encoded, 1);
    return CUDA_SUCCESS;
}

/* Takes the attribute that lets a launch begin early, behind a kernel, the one that has all its
 * blocks run together, or the one that gives it clusters. */
static bool take_attribute(const CUlaunchAttribute *a, const CUlaunchConfig *c)
{
    if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        fake_cuda.cooperative++;
        return a->value.cooperative == 1;
    }
    if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
        fake_cuda.early++;
        return a->value.programmatic_stream_serialization == 1;
    }
    fake_cuda.cluster[0] = a->value.cluster.x;
    fake_cuda.cluster[1] = a->value.cluster.y;
    fake_cuda.cluster[2] = a->value.cluster.z;
    return a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && a->value.cluster.x &&
           a->value.cluster.y && a->value.cluster.z && c->grid_x % a->value.cluster.x == 0 &&
           c->grid_y % a->value.cluster.y == 0 && c->grid_z % a->value.cluster.z == 0;
}

static bool take_attributes(const CUlaunchConfig *c)
{
    bool ok = c->attribute_count > 0;
    pthread_mutex_lock(&lock);
    memset(fake_cuda.cluster, 0, sizeof fake_cuda.cluster);
    for (unsigned i = 0; i < c->attribute_count; i++)
        ok = take_attribute(&c->attributes[i], c) && ok;
    pthread_mutex_unlock(&lock);
    return ok;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params,
                          void **extra)
{
    CALLED_IN_CONTEXT();
    if (extra)
        return INVALID_VALUE;
    if (function->context != stream_context(c->stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (function->context != current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!take_attributes(c))
        return INVALID_VALUE;
    record(function, (unsigned[]){c->grid_x, c->grid_y, c->grid_z},
           (unsigned[]){c->block_x, c->block_y, c->block_z}, c->shared_bytes, c->stream,
           params);
    return CUDA_SUCCESS;
}
#endif

#ifdef FAKE_GRAPHS
/* ---- graphs of kernels, one behind the other ------------------------- */

enum { NODES_MAX = 5 };

struct CUgraphNode_st {
    CUkernelNodeParams params;
    unsigned char values[FAKE_PARAMETERS][MAP_BYTES];
    void *pointers[FAKE_PARAMETERS];
    int behind, early;      /* has an edge from the node before it, which is programmatic */
};
struct CUgraph_st {
    int count;
    struct CUgraphNode_st nodes[NODES_MAX];
};
struct CUgraphExec_st {
    CUcontext context;
    CUgraph graph;
};

/* Copies the values of parameters, as the driver does. */
static void set_node(CUgraphNode node, const CUkernelNodeParams *params)
{
    const struct CUfunc_st *f = params->function;
    node->params = *params;
    for (int i = 0; i < f->parameter_count; i++) {
        memcpy(node->values[i], params->params[i], (size_t)f->parameter_bytes[i]);
        node->pointers[i] = node->values[i];
    }
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    CALLED_IN_CONTEXT();
    if (flags || !(*graph = calloc(1, sizeof **graph)))
        return INVALID_VALUE;
    add(&fake_cuda.graphs, 1);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    add(&fake_cuda.graphs, -1);
    free(graph);
    CALLED();
    return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                 size_t count, const CUkernelNodeParams *params)
{
    CALLED_IN_CONTEXT();
    if (behind || count || graph->count == NODES_MAX)
        return INVALID_VALUE;
    *node = &graph->nodes[graph->count++];
    set_node(*node, params);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    CALLED_IN_CONTEXT();
    if (count != 1 || *from < graph->nodes || *to != *from + 1 ||
        (edges && (edges->from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
                   edges->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)))
        return INVALID_VALUE;
    (*to)->behind = 1;
    (*to)->early = edges != NULL;
    return CUDA_SUCCESS;
}

/* The nodes of the graph are those of what is made of it, as it is made once. */
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CALLED_IN_CONTEXT();
    RETURN_IF(check_captures());
    if (flags || !(*exec = malloc(sizeof **exec)))
        return INVALID_VALUE;
    **exec = (struct CUgraphExec_st){current(), graph};
    add(&fake_cuda.graphs, 1);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    add(&fake_cuda.graphs, -1);
    free(exec);
    CALLED();
    return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUkernelNodeParams *params)
{
    CALLED_IN_CONTEXT();
    if (node < exec->graph->nodes || node >= exec->graph->nodes + exec->graph->count ||
        params->function->context != exec->context)
        return INVALID_VALUE;
    set_node(node, params);
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CALLED_IN_CONTEXT();
    if (stream_context(stream) != exec->context)
        return CUDA_ERROR_INVALID_CONTEXT;
    for (int i = 0; i < exec->graph->count; i++) {
        struct CUgraphNode_st *n = &exec->graph->nodes[i];
        const CUkernelNodeParams *p = &n->params;
        if (n->behind != (i > 0))
            return INVALID_VALUE;
        record(p->function, (unsigned[]){p->grid_x, p->grid_y, p->grid_z},
               (unsigned[]){p->block_x, p->block_y, p->block_z}, p->shared_bytes, stream,
               n->pointers);
        pthread_mutex_lock(&lock);
        fake_cuda.early += n->early;
        pthread_mutex_unlock(&lock);
    }
    return CUDA_SUCCESS;
}
#endif
