/* Kernels: artefacts found by their names, in memory, in a directory or by a compiler, and
 * loaded once for all plans. */
#define _GNU_SOURCE
#include "matmul/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---------------------------------------------------------- */

/* Returns the kernel of that name, with the library's lock held; NULL: out of memory. */
static Kernel *find_or_add(tilus_matmul *matmul, const Kernel *wanted)
{
    for (Kernel *k = matmul->kernels; k; k = k->next)
        if (!strcmp(k->name, wanted->name))
            return k;
    Kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->matmul = matmul;
    kernel->program = wanted->program;
    kernel->target = wanted->target;
    memcpy(kernel->name, wanted->name, sizeof kernel->name);
    memcpy(kernel->parameters, wanted->parameters, sizeof kernel->parameters);
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->next = matmul->kernels;
    matmul->kernels = kernel;
    return kernel;
}

Kernel *kernel_find(tilus_matmul *matmul, const MatmulSpec *spec, const MatmulConfig *config,
                    MatmulProgram program, const char *target)
{
    Kernel wanted = {.program = program, .target = target};
    matmul_name(spec, config, program, target, wanted.name);
    matmul_parameters(spec, config, program, wanted.parameters);
    pthread_mutex_lock(&matmul->lock);
    Kernel *kernel = find_or_add(matmul, &wanted);
    pthread_mutex_unlock(&matmul->lock);
    return kernel;
}

void kernels_free(Kernel *kernels)
{
    while (kernels) {
        Kernel *next = kernels->next;
        tilus_kernel_unload(atomic_load(&kernels->loaded));
        pthread_mutex_destroy(&kernels->lock);
        free(kernels);
        kernels = next;
    }
}

/* ---- loading ------------------------------------------------------------ */

/* Checks that the artefact is of the program, compiled with the very parameters: one of another
 * version of the template, under the same name, would compute something else. */
static tilus_status check_artefact(const Kernel *kernel, const tilus_artefact *a)
{
    const char *program = matmul_program_name(kernel->program);
    if (strcmp(a->info->name, program))
        return matmul_fail(TILUS_ERROR_ARTEFACT, "the artefact %s is of @%s, not of @%s",
                           kernel->name, a->info->name, program);
    if (strcmp(a->parameters ? a->parameters : "", kernel->parameters))
        return matmul_fail(TILUS_ERROR_ARTEFACT, "the artefact %s was compiled with \"%s\", "
                           "not with \"%s\"", kernel->name,
                           a->parameters ? a->parameters : "", kernel->parameters);
    return TILUS_OK;
}

static tilus_status check_arguments(Kernel *kernel, const tilus_kernel_info *info)
{
    if (argument_order(info, &kernel->order))
        return TILUS_OK;
    return matmul_fail(TILUS_ERROR_ARTEFACT, "the artefact %s takes %%%s, which this library "
                       "does not know: it is of another version", kernel->name,
                       info->args[kernel->order.count].name);
}

static tilus_status load_bytes(Kernel *kernel, const void *bytes, size_t size)
{
    tilus_kernel *loaded;
    tilus_status status = tilus_kernel_load(kernel->matmul->rt, bytes, size, &loaded);
    if (status != TILUS_OK)
        return matmul_fail(status, "%s: %s", kernel->name, tilus_rt_error());
    status = check_artefact(kernel, tilus_kernel_artefact(loaded));
    if (status == TILUS_OK)
        status = check_arguments(kernel, tilus_kernel_artefact(loaded)->info);
    if (status == TILUS_OK)
        atomic_store_explicit(&kernel->loaded, loaded, memory_order_release);
    else
        tilus_kernel_unload(loaded);
    return status;
}

/* Returns true when the artefact is among those in memory; *status tells if it loads. */
static bool try_memory(Kernel *kernel, tilus_status *status)
{
    const tilus_matmul_options *o = &kernel->matmul->options;
    for (size_t i = 0; i < o->kernel_count; i++)
        if (!strcmp(o->kernels[i].name, kernel->name)) {
            *status = load_bytes(kernel, o->kernels[i].bytes, o->kernels[i].size);
            return true;
        }
    return false;
}

/* Reads a whole file. NULL: it cannot be read, and *status tells why. */
static void *read_file(FILE *in, const char *path, size_t *size, tilus_status *status)
{
    char *bytes = NULL;
    long end = fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    *status = TILUS_OK;
    if (end > TILUS_ARTEFACT_MAX)
        *status = matmul_fail(TILUS_ERROR_ARTEFACT, "%s has %ld bytes, more than %d", path,
                              end, TILUS_ARTEFACT_MAX);
    else if (end >= 0 && !(bytes = malloc((size_t)end + 1)))
        *status = matmul_fail_memory();
    else if (end < 0 || fseek(in, 0, SEEK_SET) != 0 ||
             fread(bytes, 1, (size_t)end, in) != (size_t)end)
        *status = matmul_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path, strerror(errno));
    *size = (size_t)end;
    if (*status == TILUS_OK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Returns true when the artefact is in the directory; *status tells if it loads. */
static bool try_directory(Kernel *kernel, tilus_status *status)
{
    char *path, *bytes;
    size_t size;
    if (!kernel->matmul->directory)
        return false;
    *status = matmul_fail_memory();
    if (asprintf(&path, "%s/%s.tilusk", kernel->matmul->directory, kernel->name) < 0)
        return true;
    FILE *in = fopen(path, "rb");
    bool found = in || errno != ENOENT;
    if (in) {
        bytes = read_file(in, path, &size, status);
        if (bytes)
            *status = load_bytes(kernel, bytes, size);
        free(bytes);
        fclose(in);
    } else if (found) {
        *status = matmul_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path, strerror(errno));
    }
    free(path);
    return found;
}

/* Returns true when there is a compiler; *status tells if its artefact loads. */
static bool try_compiler(Kernel *kernel, tilus_status *status)
{
    const tilus_matmul_options *o = &kernel->matmul->options;
    char message[512] = "";
    void *bytes = NULL;
    size_t size = 0;
    if (!o->compile)
        return false;
    *status = o->compile(o->compile_data, matmul_program_name(kernel->program),
                         kernel->parameters, kernel->target, &bytes, &size, message,
                         sizeof message);
    if (*status == TILUS_OK)
        *status = load_bytes(kernel, bytes, size);
    else
        matmul_fail(*status, "compiling %s: %s", kernel->name, message);
    free(bytes);
    return true;
}

static tilus_status find_and_load(Kernel *kernel)
{
    const tilus_matmul *matmul = kernel->matmul;
    tilus_status status;
    if (try_memory(kernel, &status) || try_directory(kernel, &status) ||
        try_compiler(kernel, &status))
        return status;
    return matmul_fail(TILUS_ERROR_NO_KERNEL, "no kernel %s (@%s of %s for %s): not among the "
                       "%zu in memory, %s%s, and there is no compiler", kernel->name,
                       matmul_program_name(kernel->program), kernel->parameters,
                       kernel->target, matmul->options.kernel_count,
                       matmul->directory ? "not in the directory " : "no directory",
                       matmul->directory ? matmul->directory : "");
}

tilus_status kernel_load(Kernel *kernel)
{
    if (atomic_load_explicit(&kernel->loaded, memory_order_acquire))
        return TILUS_OK;
    tilus_status status = TILUS_OK;
    pthread_mutex_lock(&kernel->lock);
    if (!atomic_load_explicit(&kernel->loaded, memory_order_relaxed))
        status = find_and_load(kernel);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

tilus_status kernel_prepare(Kernel *kernel, int device)
{
    tilus_status status = kernel_load(kernel);
    if (status != TILUS_OK)
        return status;
    return tilus_kernel_prepare(atomic_load_explicit(&kernel->loaded, memory_order_acquire),
                                device);
}
