/* Public API: the CPU engine as the engine of software devices (tilus/runtime.h). A program is
 * parsed from the text that its artefact carries when it is loaded, compiled for this machine
 * at its first launch, and kept. After a fault it is made anew. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "api/launch.h"
#include "cpu/cpu.h"
#include "support/limits.h"
#include "tilus/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

enum { HOST_THREADS_MOST = 64 };

typedef struct Engine {
    mtx_t lock;                 /* of all that follows: launches of a program take turns */
    const tilus_artefact *artefact;
    tilus_diag *diag;
    tilus_module *module;       /* NULL: to be made again */
    CpuRun *run;
} Engine;

/* ---- messages ------------------------------------------------------------- */

static tilus_status describe(tilus_status status, char *message, size_t size, const char *text)
{
    snprintf(message, size, "%s", text);
    return status;
}

/* Writes the first error, "matmul:12:8: ..". */
static tilus_status describe_error(const Engine *e, tilus_status status, char *message,
                                   size_t size)
{
    for (size_t i = 0; e->diag && i < tilus_diag_count(e->diag); i++)
        if (tilus_diag_severity(e->diag, i) == TILUS_SEVERITY_ERROR) {
            snprintf(message, size, "%s:%u:%u: %s", tilus_diag_file(e->diag, i),
                     tilus_diag_line(e->diag, i), tilus_diag_column(e->diag, i),
                     tilus_diag_text(e->diag, i));
            return status;
        }
    return describe(TILUS_ERROR_MEMORY, message, size, "out of memory");
}

/* ---- programs --------------------------------------------------------------- */

static void close_program(Engine *e)
{
    cpu_free(e->run);
    tilus_module_free(e->module);
    tilus_diag_free(e->diag);
    e->run = NULL;
    e->module = NULL;
    e->diag = NULL;
}

static tilus_module *parse(Engine *e, const tilus_define *defines, size_t count)
{
    const tilus_artefact *a = e->artefact;
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = a->target};
    tilus_module *module = tilus_parse(e->diag, a->info->name, a->source, strlen(a->source), 1,
                                       defines, count);
    if (module && tilus_run_passes(module, NULL, &passes))
        return module;
    tilus_module_free(module);
    return NULL;
}

/* Makes the module and what runs it; a failure leaves the diag. */
static tilus_status open_program(Engine *e, char *message, size_t size)
{
    const tilus_artefact *a = e->artefact;
    tilus_define defines[DEFINES_MAX];
    char *parameters = strdup(a->parameters ? a->parameters : "");
    int count = parameters ? defines_split(parameters, defines) : 0;
    e->diag = tilus_diag_new();
    if (parameters && e->diag && count >= 0)
        e->module = parse(e, defines, (size_t)count);
    free(parameters);
    if (count < 0)
        return describe(TILUS_ERROR_ARTEFACT, message, size,
                        "the artefact's parameters are not NAME=VALUE ..");
    if (!e->module)
        return describe_error(e, TILUS_ERROR_PROGRAM, message, size);
    e->run = tilus_module_kernel_info(e->module, a->info->name) ? cpu_new(e->module) : NULL;
    return e->run ? TILUS_OK : describe_error(e, TILUS_ERROR_PROGRAM, message, size);
}

static void unload(void *program)
{
    Engine *e = program;
    close_program(e);
    mtx_destroy(&e->lock);
    free(e);
}

static tilus_status load(void *data, const tilus_artefact *artefact, void **program,
                         char *message, size_t size)
{
    (void)data;
    *program = NULL;
    if (!artefact->source || !*artefact->source)
        return describe(TILUS_ERROR_UNSUPPORTED, message, size,
                        "the artefact has no program text, which the CPU engine compiles");
    Engine *e = calloc(1, sizeof *e);
    if (!e || mtx_init(&e->lock, mtx_plain) != thrd_success) {
        free(e);
        return describe(TILUS_ERROR_MEMORY, message, size, "out of memory");
    }
    e->artefact = artefact;
    tilus_status status = open_program(e, message, size);
    if (status == TILUS_OK)
        *program = e;
    else
        unload(e);
    return status;
}

/* ---- launches ---------------------------------------------------------------- */

/* Pointers as the engine has them: buffers, and offsets in them. The last buffer is that of
 * pointers to nothing. */
typedef struct Pointers {
    tilus_arg args[LIMIT_ARGUMENTS];
    size_t offsets[LIMIT_ARGUMENTS];
    tilus_buffer buffers[LIMIT_ARGUMENTS + 1];
} Pointers;

static size_t find_buffer(const tilus_engine_launch *l, uint64_t address, size_t *offset)
{
    for (size_t i = 0; i < l->memory_count; i++) {
        uint64_t first = (uint64_t)(uintptr_t)l->memory[i].data;
        *offset = (size_t)(address - first);
        if (address >= first && *offset <= l->memory[i].size)
            return i;
    }
    *offset = 0;
    return l->memory_count;
}

static void place_pointers(const tilus_kernel_info *info, const tilus_engine_launch *l,
                           Pointers *p)
{
    static unsigned char nothing;
    for (size_t i = 0; i < l->memory_count; i++)
        p->buffers[i] = (tilus_buffer){l->memory[i].data, l->memory[i].size};
    p->buffers[l->memory_count] = (tilus_buffer){&nothing, 0};
    for (size_t i = 0; i < l->arg_count; i++) {
        p->args[i] = l->args[i];
        p->offsets[i] = 0;
        if (info->args[i].kind == TILUS_ARG_POINTER)
            p->args[i].pointer = find_buffer(l, l->args[i].pointer, &p->offsets[i]);
    }
}

static unsigned host_threads(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > HOST_THREADS_MOST ? HOST_THREADS_MOST : (unsigned)count;
}

/* Runs under a guard of its own. tilus_launch has checked the arguments by what the artefact
 * says of the kernel; here its text says it, which may be another's. */
static tilus_status run_guarded(Engine *e, CpuLaunch *launch, size_t arg_count)
{
    const tilus_cpu_options options = {
        .struct_size = sizeof options, .cpu = e->artefact->target, .opt_level = 0,
        .host_threads = host_threads()};
    tilus_diag *diag = e->module->diag;
    LaunchSizes sizes;
    if (setjmp(diag->oom.jump))
        return diag->errors ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
    if (!launch_check(launch->program, launch->info, launch->args, arg_count, launch->buffers,
                      launch->buffer_count, &sizes))
        return TILUS_ERROR_ARGUMENT;
    memcpy(launch->grid, sizes.grid, sizeof launch->grid);
    launch->workspace_bytes = sizes.workspace;
    launch->workspace_zeroed = sizes.zeroed;
    return cpu_run(e->run, launch, &options, NULL);
}

static tilus_status run_program(Engine *e, const tilus_engine_launch *l, const Pointers *p,
                                char *message, size_t size)
{
    const char *name = e->artefact->info->name;
    CpuLaunch launch = {
        .program = module_find_program(e->module, name),
        .info = tilus_module_kernel_info(e->module, name), .args = p->args,
        .offsets = p->offsets, .buffers = p->buffers, .buffer_count = l->memory_count + 1};
    tilus_status status = launch.info ? run_guarded(e, &launch, l->arg_count)
                                      : TILUS_ERROR_MEMORY;
    if (status != TILUS_OK)
        describe_error(e, status, message, size);
    return status;
}

static tilus_status run(void *program, const tilus_engine_launch *launch, char *message,
                        size_t size)
{
    Engine *e = program;
    Pointers *p = malloc(sizeof *p);
    if (!p)
        return describe(TILUS_ERROR_MEMORY, message, size, "out of memory");
    place_pointers(e->artefact->info, launch, p);
    mtx_lock(&e->lock);
    tilus_status status = e->module ? TILUS_OK : open_program(e, message, size);
    if (status == TILUS_OK)
        status = run_program(e, launch, p, message, size);
    if (status != TILUS_OK)
        close_program(e);
    mtx_unlock(&e->lock);
    free(p);
    return status;
}

const tilus_engine *tilus_cpu_engine(void)
{
    static const tilus_engine engine = {.struct_size = sizeof engine, .name = "CPU engine",
                                        .load = load, .run = run, .unload = unload};
    return &engine;
}
