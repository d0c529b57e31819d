/* The engines that run a program: the interpreter, the CPU engine, a GPU. */
#include "run.h"

#include "bench.h"
#include "common/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- choosing ------------------------------------------------------- */

int engine_choose(Run *run)
{
    Options *o = &run->options;
    char message[1024];
    if (o->engine == ENGINE_INTERP || o->engine == ENGINE_CPU)
        return EXIT_OK;
    tilus_status status = tilus_rt_open(NULL, &run->rt, message, sizeof message);
    if (status == TILUS_OK) {
        o->engine = ENGINE_GPU;
        return EXIT_OK;
    }
    bool absent = status == TILUS_ERROR_NO_DRIVER || status == TILUS_ERROR_NO_DEVICE;
    if (absent && o->require_gpu) {
        fprintf(stderr, "%s: no GPU: %s\n", TOOL, message);
        return EXIT_NO_GPU;
    }
    if (!absent || o->engine == ENGINE_GPU) {
        fprintf(stderr, "%s: error: %s\n", TOOL, message);
        return EXIT_DIAGNOSTICS;
    }
    fprintf(stderr, "%s: no GPU: %s\n", TOOL, message);
    o->engine = ENGINE_CPU;
    return EXIT_OK;
}

/* ---- output ----------------------------------------------------------- */

/* The stream that a program prints to. */
typedef struct Printer {
    FILE *out;                  /* NULL: nowhere */
    Progress *progress;
} Printer;

static void print(void *printer, const char *text, size_t len)
{
    const Printer *p = printer;
    progress_hide(p->progress);
    if (p->out)
        fwrite(text, 1, len, p->out);
}

static Progress *watch(const char *what)
{
    return progress_begin(TOOL, what, "blocks");
}

/* ---- the interpreter ------------------------------------------------ */

/* `out` gets what the program prints; NULL: nobody. */
static int interpret(Run *run, const tilus_buffer *buffers, FILE *out)
{
    size_t count = run->info->arg_count;
    Printer printer = {out, watch(out ? "engine interp" : "reference interp")};
    const tilus_interpret_options options = {.struct_size = sizeof options,
        .print = print, .printer = &printer,
        .profile = out && run->options.profile ? profile_print : NULL, .profiler = run,
        .progress = printer.progress ? progress_update : NULL, .watcher = printer.progress};
    tilus_status status = tilus_interpret(run->plain.module, run->program, run->args, count,
                                          buffers, count, &options);
    progress_end(printer.progress);
    if (status == TILUS_OK)
        return EXIT_OK;
    tilus_diag_write(run->plain.diag, NULL, NULL);
    if (tilus_diag_errors(run->plain.diag) == 0)
        fprintf(stderr, "%s: error: interpreter: %s\n", TOOL, tilus_status_name(status));
    return EXIT_DIAGNOSTICS;
}

/* ---- the CPU engine --------------------------------------------------- */

/* Runs the program as `interpret` does, on the CPU engine. */
static int run_on_cpu(Run *run, const tilus_buffer *buffers, FILE *out)
{
    enum { LEVEL = 0 };
    unsigned level = run->options.opt_level;
    Printer printer = {out, watch(out ? "engine cpu" : "reference cpu")};
    const tilus_cpu_options options = {.struct_size = sizeof options,
        .cpu = run->target, .opt_level = level == OPT_BY_ENGINE ? LEVEL : level,
        .host_threads = run->options.host_threads, .check_races = run->options.check_races,
        .print = print, .printer = &printer,
        .progress = printer.progress ? progress_update : NULL, .watcher = printer.progress};
    tilus_cpu_times times = {.struct_size = sizeof times};
    size_t count = run->info->arg_count;
    const Source *source = &run->compiled;
    tilus_status status = tilus_run_on_cpu(source->module, run->program, run->args, count,
                                           buffers, count, &options, &times);
    progress_end(printer.progress);
    tilus_diag_write(source->diag, NULL, NULL);
    if (status != TILUS_OK && tilus_diag_errors(source->diag) == 0)
        fprintf(stderr, "%s: error: CPU engine: %s\n", TOOL, tilus_status_name(status));
    if (status != TILUS_OK)
        return EXIT_DIAGNOSTICS;
    fprintf(stderr, "%s: %scompiled in %.1f ms, ran for %.3f ms\n", TOOL,
            out ? "" : "reference: ", 1e3 * times.compile_seconds, 1e3 * times.run_seconds);
    return EXIT_OK;
}

/* ---- the reference ---------------------------------------------------- */

/* The buffers, for the reference to run on. */
static int copy_buffers(Run *run)
{
    for (size_t i = 0; i < run->info->arg_count; i++) {
        const tilus_buffer *from = &run->buffers[i];
        if (!from->data)
            continue;
        run->reference[i] = (tilus_buffer){malloc(from->size + 1), from->size};
        if (!run->reference[i].data) {
            fprintf(stderr, "%s: error: out of memory\n", TOOL);
            return EXIT_DIAGNOSTICS;
        }
        memcpy(run->reference[i].data, from->data, from->size);
    }
    return EXIT_OK;
}

/* Finds which buffers the reference's run has changed; false: none. */
static bool find_changed(Run *run)
{
    bool any = false;
    for (size_t i = 0; i < run->info->arg_count; i++) {
        const tilus_buffer *before = &run->buffers[i];
        run->changed[i] = before->data && memcmp(before->data, run->reference[i].data,
                                                 before->size) != 0;
        any |= run->changed[i];
    }
    return any;
}

int engine_run_reference(Run *run)
{
    const Options *o = &run->options;
    if (o->reference == REFERENCE_NONE)
        return EXIT_OK;
    int status = copy_buffers(run);
    if (status == EXIT_OK)
        status = o->reference == REFERENCE_CPU ? run_on_cpu(run, run->reference, NULL)
                                               : interpret(run, run->reference, NULL);
    if (status != EXIT_OK || find_changed(run) || o->allow_zero)
        return status;
    fprintf(stderr, "%s: error: the reference run changed nothing (--allow-zero accepts it)\n",
            TOOL);
    return EXIT_DIAGNOSTICS;
}

/* ---- the GPU -------------------------------------------------------- */

/* Addresses of the buffers on the device; of a scalar, its value. */
static tilus_status upload(Run *run, tilus_arg *args)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < run->info->arg_count && status == TILUS_OK; i++) {
        const tilus_buffer *buffer = &run->buffers[i];
        args[i] = run->args[i];
        if (run->info->args[i].kind != TILUS_ARG_POINTER)
            continue;
        status = tilus_rt_allocate(run->rt, DEVICE, buffer->size, &args[i].pointer);
        if (status == TILUS_OK)
            status = tilus_rt_upload(run->rt, DEVICE, args[i].pointer, buffer->data,
                                     buffer->size);
    }
    return status;
}

/* Launches with a workspace of its own, and waits. Its bytes are no numbers that a
 * program could take for its own. */
static tilus_status launch_kernel(Run *run, tilus_kernel *kernel, const tilus_arg *args)
{
    enum { NOBODY_WROTE = 0xa5 };
    size_t count = run->info->arg_count, size;
    tilus_status status = tilus_workspace_size(kernel, args, count, &size);
    if (status == TILUS_OK && size > 0)
        status = tilus_rt_allocate(run->rt, DEVICE, size, &run->workspace);
    if (status == TILUS_OK && size > 0)
        status = tilus_rt_fill(run->rt, DEVICE, run->workspace, NOBODY_WROTE, size);
    if (status == TILUS_OK)
        status = tilus_launch(kernel, NULL, args, count, run->workspace, size);
    if (status == TILUS_OK)
        status = tilus_rt_synchronize(run->rt, DEVICE);
    return status;
}

static tilus_status launch(Run *run, const tilus_arg *args)
{
    const tilus_artefact artefact = {
        .info = run->info, .target = run->target, .ptx = run->ptx};
    tilus_kernel *kernel;
    tilus_status status = tilus_kernel_create(run->rt, &artefact, &kernel);
    if (status == TILUS_OK)
        status = tilus_kernel_prepare(kernel, DEVICE);
    if (status == TILUS_OK) {
        fprintf(stderr, "%s: %d registers and %d bytes of local memory a thread\n", TOOL,
                tilus_kernel_registers(kernel, DEVICE),
                tilus_kernel_local_bytes(kernel, DEVICE));
        status = launch_kernel(run, kernel, args);
    }
    tilus_kernel_unload(kernel);
    return status;
}

static tilus_status download(Run *run, const tilus_arg *args)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < run->info->arg_count && status == TILUS_OK; i++)
        if (run->buffers[i].data)
            status = tilus_rt_download(run->rt, DEVICE, run->buffers[i].data,
                                       args[i].pointer, run->buffers[i].size);
    return status;
}

/* Closing the device releases its memory, but it is still ours to free. */
static void release(Run *run, const tilus_arg *args)
{
    for (size_t i = 0; i < run->info->arg_count; i++)
        if (run->info->args[i].kind == TILUS_ARG_POINTER && args[i].pointer)
            tilus_rt_release(run->rt, DEVICE, args[i].pointer);
    if (run->workspace)
        tilus_rt_release(run->rt, DEVICE, run->workspace);
}

static int run_on_gpu(Run *run)
{
    int version = tilus_rt_driver_version(run->rt);
    fprintf(stderr, "%s: engine gpu: %s, driver %d.%d\n", TOOL,
            tilus_rt_device_name(run->rt, DEVICE), version / 1000, version % 1000 / 10);
    tilus_arg *args = calloc(run->info->arg_count + 1, sizeof *args);
    if (!args) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return EXIT_DIAGNOSTICS;
    }
    tilus_status status = upload(run, args);
    if (status == TILUS_OK)
        status = launch(run, args);
    if (status == TILUS_OK)
        status = download(run, args);
    if (status != TILUS_OK)
        fprintf(stderr, "%s: error: %s\n", TOOL, tilus_rt_error());
    release(run, args);
    free(args);
    return status == TILUS_OK ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int engine_run(Run *run)
{
    if (run->rt) {
        int status = run_on_gpu(run);
        if (status == EXIT_OK && run->options.profile)
            profile_print_command(run);
        return status == EXIT_OK && run->options.bench ? bench_run(run) : status;
    }
    if (run->options.engine == ENGINE_CPU) {
        fprintf(stderr, "%s: engine cpu: code for %s on this machine\n", TOOL, run->target);
        return run_on_cpu(run, run->buffers, stdout);
    }
    fprintf(stderr, "%s: engine interp: the CPU interpreter\n", TOOL);
    return interpret(run, run->buffers, stdout);
}
