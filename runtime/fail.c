/* Names failures and writes their texts. */
#include "rt.h"

#include "support/numeral.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_failure[RT_MESSAGE];

/* A driver's error, as the caller gets it: a status, and advice. A sticky error ends its
 * context (driver API reference, CUresult). */
typedef struct Fault {
    CUresult error;
    tilus_status status;
    const char *advice;
} Fault;

static const Fault faults[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, TILUS_ERROR_DEVICE_MEMORY,
     "free device memory, or give the other users of the device less"},
    {CUDA_ERROR_NOT_INITIALIZED, TILUS_ERROR_STATE,
     "the process that this one was forked from has used CUDA already: fork before that, or "
     "start a new program (in Python, multiprocessing's method \"spawn\")"},
    {CUDA_ERROR_STUB_LIBRARY, TILUS_ERROR_NO_DRIVER,
     "this libcuda is a toolkit's stub, for linking only: have the directory of the "
     "driver's libcuda.so.1 searched before it"},
    {CUDA_ERROR_NO_DEVICE, TILUS_ERROR_NO_DEVICE,
     "see whether nvidia-smi lists one, and what CUDA_VISIBLE_DEVICES hides"},
    {CUDA_ERROR_INVALID_PTX, TILUS_ERROR_DRIVER, "the PTX is damaged, or of another compiler"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, TILUS_ERROR_UNSUPPORTED,
     "compile for this device (tilus-llc -mcpu)"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, TILUS_ERROR_UNSUPPORTED,
     "unset CUDA_DISABLE_PTX_JIT, or give the artefact machine code for this device"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, TILUS_ERROR_ARGUMENT,
     "all blocks of a cooperative program run at the same time, and the device, or the part of it "
     "that this context may use, has no room for so many: launch a smaller grid"},
    {CUDA_ERROR_SYSTEM_NOT_READY, TILUS_ERROR_NO_DRIVER,
     "the system is starting, or its fabric manager is not running"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, TILUS_ERROR_NO_DRIVER,
     "libcuda and the kernel's driver are of two versions: restart the machine, or load the "
     "other libcuda"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, TILUS_ERROR_NO_DRIVER,
     "this libcuda is a compatibility package that the device does not allow: remove it from "
     "the search path"},
};

static const CUresult sticky[] = {
    CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
    CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ASSERT, CUDA_ERROR_TENSOR_MEMORY_LEAK, CUDA_ERROR_EXTERNAL_DEVICE,
};

/* Sticky are the listed errors and a range: bad stacks, instructions, addresses and
 * counters. */
bool rt_error_is_sticky(CUresult error)
{
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (sticky[i] == error)
            return true;
    return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED;
}

static const Fault *find_fault(CUresult error)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].error == error)
            return &faults[i];
    return NULL;
}

/* ---- texts ---------------------------------------------------------- */

/* A text that is cut where its room ends. */
typedef struct Text {
    char *bytes;
    size_t size, used;
} Text;

__attribute__((format(printf, 2, 0)))
static void text_add_list(Text *t, const char *format, va_list args)
{
    int len = numeral_vformat(t->bytes + t->used, t->size - t->used, format, args);
    if (len > 0)
        t->used += (size_t)len < t->size - t->used ? (size_t)len : t->size - t->used - 1;
}

__attribute__((format(printf, 2, 3)))
static void text_add(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_add_list(t, format, args);
    va_end(args);
}

/* "kernel @scale (sm_90a) on device 0 (NVIDIA H200, sm_90): " */
static void add_context(Text *t, const ErrorContext *at)
{
    if (at->kernel)
        text_add(t, "kernel @%s (%s)%s", at->kernel->artefact->info->name,
                 at->kernel->artefact->target, at->device ? " on " : ": ");
    if (at->device)
        text_add(t, "device %d (%s, sm_%d): ", at->device->ordinal, at->device->name,
                 at->device->capability);
}

/* "cuInit: CUDA_ERROR_NO_DEVICE (100: no CUDA-capable device is detected)" */
static void add_error(Text *t, const ErrorContext *at, const char *call, CUresult error)
{
    const char *name = NULL, *text = NULL;
    if (at->rt->api.cuGetErrorName(error, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    if (at->rt->api.cuGetErrorString(error, &text) != CUDA_SUCCESS || !text)
        text = "the driver has no description";
    text_add(t, "%.*s: %s (%d: %s)", (int)strcspn(call, "("), call, name, error, text);
}

/* The versions of PTX that came with those of CUDA are as the PTX ISA's release notes list
 * them. */
unsigned rt_newest_ptx(int driver_version)
{
    static const struct {
        int driver;
        unsigned ptx;
    } versions[] = {
        {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
        {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78},
        {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74}, {11030, 73}, {11020, 72},
        {11010, 71}, {11000, 70},
    };
    if (driver_version >= versions[0].driver + 10)
        return 0;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (driver_version >= versions[i].driver)
            return versions[i].ptx;
    return 0;
}

/* "; the PTX is of version 8.7, the driver (CUDA 12.4) takes 8.4 at most: ..." */
static void add_ptx_advice(Text *t, const ErrorContext *at)
{
    unsigned has = at->kernel ? at->kernel->artefact->ptx_version : 0;
    int driver = at->rt->driver_version;
    unsigned takes = rt_newest_ptx(driver);
    text_add(t, "; ");
    if (has)
        text_add(t, "the PTX is of version %u.%u, ", has / 10, has % 10);
    text_add(t, "the driver (CUDA %d.%d) takes ", driver / 1000, driver % 1000 / 10);
    if (takes)
        text_add(t, "%u.%u at most", takes / 10, takes % 10);
    else
        text_add(t, "only older ones");
    text_add(t, ": compile without -mattr of tilus-llc, which raises the version, or for an "
             "older target (-mcpu), or update the driver");
}

static tilus_status describe(Text *t, const ErrorContext *at, const char *call, CUresult error)
{
    const Fault *fault = find_fault(error);
    add_context(t, at);
    add_error(t, at, call, error);
    if (fault)
        text_add(t, "; %s", fault->advice);
    if (error != CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        return fault ? fault->status
             : rt_error_is_sticky(error) ? TILUS_ERROR_LOST : TILUS_ERROR_DRIVER;
    add_ptx_advice(t, at);
    return TILUS_ERROR_UNSUPPORTED;
}

/* ---- failures ------------------------------------------------------- */

const char *tilus_rt_error(void)
{
    return last_failure;
}

/* The arguments may be the last failure's text itself, so it is replaced at last. */
__attribute__((format(printf, 2, 0)))
static void keep(const ErrorContext *at, const char *format, va_list args)
{
    char line[RT_LINE];
    Text t = {line, sizeof line, 0};
    line[0] = 0;
    if (at)
        add_context(&t, at);
    text_add_list(&t, format, args);
    memcpy(last_failure, line, t.used + 1);
}

tilus_status rt_fail(tilus_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep(NULL, format, args);
    va_end(args);
    return status;
}

tilus_status rt_fail_at(const ErrorContext *at, tilus_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep(at, format, args);
    va_end(args);
    return status;
}

/* Marks the device as lost, and logs that, if the error ends its context; true then. */
static bool lose(const ErrorContext *at, const char *call, CUresult result)
{
    char error[RT_LINE / 2] = "";
    if (!at->device || !rt_error_is_sticky(result))
        return false;
    add_error(&(Text){error, sizeof error, 0}, at, call, result);
    device_lose(at->device, error);
    rt_log(at->rt, "%s", at->device->why);
    return true;
}

tilus_status rt_fail_driver(const ErrorContext *at, const char *call, CUresult result)
{
    Text t = {last_failure, RT_LINE, 0};
    return lose(at, call, result) ? rt_fail(TILUS_ERROR_LOST, "%s", at->device->why)
                                  : describe(&t, at, call, result);
}

void rt_fail_add_log(const char *log)
{
    size_t len = strlen(log), used = strlen(last_failure);
    while (len > 0 && (log[len - 1] == '\n' || log[len - 1] == ' '))
        len--;
    if (len > 0)
        snprintf(last_failure + used, sizeof last_failure - used, "\n%.*s", (int)len, log);
}

/* ---- the log -------------------------------------------------------- */

void rt_log(const tilus_rt *rt, const char *format, ...)
{
    if (!rt->options.log)
        return;
    char line[RT_LINE];
    va_list args;
    va_start(args, format);
    numeral_vformat(line, sizeof line, format, args);
    va_end(args);
    rt->options.log(rt->options.log_data, line);
}

void rt_log_driver_failure(const ErrorContext *at, const char *call, CUresult result)
{
    char line[RT_LINE];
    if (lose(at, call, result))
        return;
    describe(&(Text){line, sizeof line, 0}, at, call, result);
    rt_log(at->rt, "%s", line);
}
