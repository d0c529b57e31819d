/* The CPU engine. It compiles the program text that artefacts carry. */
#define _GNU_SOURCE
#include "engine.h"

#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS_MAX = 64 };

/* An address is one more than the number of a buffer. */
typedef struct Cpu {
    Engine base;
    tilus_buffer buffers[BUFFERS_MAX];
    double run_seconds;         /* of launches so far */
} Cpu;

typedef struct CpuKernel {
    EngineKernel base;
    tilus_artefact *artefact;
    tilus_diag *diag;
    tilus_module *module;
} CpuKernel;

static bool fail(Engine *e, const char *why)
{
    snprintf(e->message, sizeof e->message, "%s", why);
    return false;
}

/* Why the compiler or the engine failed. */
static const char *find_reason(const tilus_diag *diag, tilus_status status)
{
    for (size_t i = 0; diag && i < tilus_diag_count(diag); i++)
        if (tilus_diag_severity(diag, i) == TILUS_SEVERITY_ERROR)
            return tilus_diag_text(diag, i);
    return tilus_status_name(status);
}

/* ---- memory ----------------------------------------------------------- */

static bool cpu_allocate(Engine *e, size_t size, uint64_t *address)
{
    Cpu *c = (Cpu *)e;
    size_t i = 0;
    while (i < BUFFERS_MAX && c->buffers[i].data)
        i++;
    if (i < BUFFERS_MAX)
        c->buffers[i] = (tilus_buffer){calloc(1, size + 1), size};
    if (i == BUFFERS_MAX || !c->buffers[i].data)
        return fail(e, "out of memory");
    *address = i + 1;
    return true;
}

static void cpu_release(Engine *e, uint64_t address)
{
    Cpu *c = (Cpu *)e;
    if (!address)
        return;
    free(c->buffers[address - 1].data);
    c->buffers[address - 1] = (tilus_buffer){0};
}

static bool cpu_upload(Engine *e, uint64_t to, const void *from, size_t size)
{
    memcpy(((Cpu *)e)->buffers[to - 1].data, from, size);
    return true;
}

static bool cpu_download(Engine *e, void *to, uint64_t from, size_t size)
{
    memcpy(to, ((Cpu *)e)->buffers[from - 1].data, size);
    return true;
}

/* ---- kernels ---------------------------------------------------------- */

enum { DEFINES_MAX = 64 };

/* Cuts "A=1 B=2" in place. */
static size_t split(char *text, tilus_define defines[static DEFINES_MAX])
{
    size_t count = 0;
    for (char *word; count < DEFINES_MAX && (word = strsep(&text, " "));) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value = '\0';
        defines[count++] = (tilus_define){word, value + 1};
    }
    return count;
}

static bool parse(CpuKernel *k)
{
    const tilus_artefact *a = k->artefact;
    tilus_define defines[DEFINES_MAX];
    char *parameters = strdup(a->parameters);
    k->diag = tilus_diag_new();
    if (parameters && k->diag) {
        const tilus_pass_options passes = {.target = a->target};
        size_t count = split(parameters, defines);
        k->module = tilus_parse(k->diag, "matmul.tilus", a->source, strlen(a->source), 1,
                                defines, count);
        if (k->module && tilus_run_passes(k->module, NULL, &passes))
            k->base.info = tilus_module_kernel_info(k->module, a->info->name);
    }
    free(parameters);
    return k->base.info;
}

static void cpu_unload(Engine *e, EngineKernel *kernel)
{
    CpuKernel *k = (CpuKernel *)kernel;
    (void)e;
    if (!k)
        return;
    tilus_module_free(k->module);
    tilus_diag_free(k->diag);
    free(k->artefact);
    free(k);
}

static EngineKernel *cpu_load(Engine *e, const void *artefact, size_t size, char *message,
                              size_t message_size)
{
    CpuKernel *k = calloc(1, sizeof *k);
    if (!k) {
        snprintf(message, message_size, "out of memory");
        return NULL;
    }
    if (tilus_artefact_read(artefact, size, &k->artefact, message, message_size) == TILUS_OK) {
        if (parse(k))
            return &k->base;
        snprintf(message, message_size, "%s", find_reason(k->diag, TILUS_ERROR_MEMORY));
    }
    cpu_unload(e, &k->base);
    return NULL;
}

static bool cpu_launch(Engine *e, EngineKernel *kernel, const tilus_arg *args)
{
    Cpu *c = (Cpu *)e;
    CpuKernel *k = (CpuKernel *)kernel;
    const tilus_kernel_info *info = kernel->info;
    const tilus_cpu_options options = {.cpu = k->artefact->target, .host_threads = 1};
    tilus_cpu_times times = {0};
    tilus_arg *numbers = calloc(info->arg_count + 1, sizeof *numbers);
    if (!numbers)
        return fail(e, "out of memory");
    for (size_t i = 0; i < info->arg_count; i++) {
        numbers[i] = args[i];
        if (info->args[i].kind == TILUS_ARG_POINTER)
            numbers[i].pointer = args[i].pointer - 1;
    }
    tilus_status status = tilus_run_on_cpu(k->module, info->name, numbers, info->arg_count,
                                           c->buffers, BUFFERS_MAX, &options, &times);
    free(numbers);
    c->run_seconds += times.run_seconds;
    return status == TILUS_OK || fail(e, find_reason(k->diag, status));
}

static bool cpu_wait(Engine *e)
{
    (void)e;
    return true;
}

static bool cpu_time(Engine *e, const EngineWork *work, double limit, double *us, bool *whole)
{
    Cpu *c = (Cpu *)e;
    double before = c->run_seconds;
    (void)limit;
    bool ok = work->launch(work->data, 0);
    *us = 1e6 * (c->run_seconds - before);
    *whole = true;
    return ok;
}

static void cpu_close(Engine *e)
{
    Cpu *c = (Cpu *)e;
    for (size_t i = 0; i < BUFFERS_MAX; i++)
        free(c->buffers[i].data);
    free(c);
}

/* As if it were a small GPU. */
Engine *engine_open_cpu(void)
{
    enum { CAPABILITY = 90, MULTIPROCESSORS = 4, SHARED_BYTES = 232448 };
    Cpu *c = calloc(1, sizeof *c);
    if (!c) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return NULL;
    }
    c->base = (Engine){
        .device_name = "CPU engine", .target = "sm_90a", .close = cpu_close,
        .allocate = cpu_allocate, .release = cpu_release, .upload = cpu_upload,
        .download = cpu_download, .load = cpu_load, .unload = cpu_unload,
        .launch = cpu_launch, .wait = cpu_wait, .time = cpu_time};
    c->base.device = matmul_device(c->base.device_name, CAPABILITY, MULTIPROCESSORS,
                                   SHARED_BYTES);
    return &c->base;
}
