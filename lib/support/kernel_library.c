/* Kernels: artefacts found by their names, in memory, in a directory or by a compiler, and loaded
 * once for all plans of a library. */
#define _GNU_SOURCE
#include "support/kernel_library.h"

#include "support/numeral.h"
#include "support/sized.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- failures ----------------------------------------------------------- */

tilus_status library_fail(tilus_status status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    numeral_vformat(message, sizeof message, format, args);
    va_end(args);
    return tilus_rt_fail(status, message);
}

tilus_status library_fail_memory(void)
{
    return tilus_rt_fail(TILUS_ERROR_MEMORY, "out of memory");
}

tilus_status library_take(void *to, size_t size, const void *from, const char *object,
                          const char *name)
{
    char message[256];
    if (!from)
        return library_refuse("%s is NULL", object);
    if (sized_copy(to, size, from, object, name, (Report){message, sizeof message}))
        return TILUS_OK;
    return library_refuse("%s", message);
}

tilus_status library_check_address(const char *name, uint64_t address, unsigned align)
{
    if (!address)
        return library_refuse("%s is 0", name);
    if (address % align)
        return library_refuse("%s is 0x%llx, not a multiple of %u", name,
                              (unsigned long long)address, align);
    return TILUS_OK;
}

tilus_status library_check_addresses(const Address all[], size_t count)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        if (all[i].wanted)
            status = library_check_address(all[i].field, all[i].address, all[i].align);
        else if (all[i].address)
            status = library_refuse("%s is given, but the problem has none: give 0",
                                    all[i].field);
    return status;
}

tilus_status library_check_memory(const CallMemory *m, size_t size, const char *reason, ...)
{
    char text[64];
    va_list args;
    tilus_status status = library_check_addresses(m->tensors, m->count);
    if (status != TILUS_OK || size == 0)
        return status;
    if (m->workspace_size >= size)
        return library_check_address(m->field, m->workspace, TILUS_WORKSPACE_ALIGN);
    va_start(args, reason);
    numeral_vformat(text, sizeof text, reason, args);
    va_end(args);
    return library_refuse("%s_size is %zu%s %zu", m->field, m->workspace_size, text, size);
}

/* ---- open and close ----------------------------------------------------- */

/* Returns the i-th artefact in memory. */
static KernelBytes bytes_at(const KernelOptions *o, size_t i)
{
    KernelBytes kernel = {0};
    if (o->kernels)
        memcpy(&kernel, (const char *)o->kernels + i * sizeof kernel, sizeof kernel);
    return kernel;
}

static tilus_status check_kernels(const KernelOptions *o)
{
    for (size_t i = 0; i < o->kernel_count; i++) {
        const KernelBytes kernel = bytes_at(o, i);
        if (!kernel.name || !kernel.bytes)
            return library_refuse("kernels[%zu] of %zu has no %s", i, o->kernel_count,
                                  kernel.name ? "bytes" : "name");
    }
    return TILUS_OK;
}

static tilus_status copy_directory(KernelLibrary *library, const char *directory)
{
    if (directory && !(library->directory = strdup(directory)))
        return library_fail_memory();
    return TILUS_OK;
}

void *kernel_library_open(size_t size, tilus_rt *rt, const KernelOptions *options,
                          KernelCheck *check, tilus_status *status)
{
    KernelLibrary *library = calloc(1, size);
    if (!library) {
        *status = library_fail_memory();
        return NULL;
    }
    *library = (KernelLibrary){.rt = rt, .options = *options, .check = check};
    library->options.directory = NULL;
    pthread_mutex_init(&library->lock, NULL);
    *status = check_kernels(options);
    if (*status == TILUS_OK)
        *status = copy_directory(library, options->directory);
    if (*status == TILUS_OK)
        return library;
    kernel_library_close(library);
    return NULL;
}

/* Kernels of a library that are launched in this order. */
typedef struct KernelSequence {
    struct KernelSequence *next;
    tilus_sequence *sequence;
    size_t count;
    Kernel *kernels[TILUS_SEQUENCE_KERNELS];
} KernelSequence;

static void free_sequences(KernelSequence *list)
{
    while (list) {
        KernelSequence *next = list->next;
        tilus_sequence_free(list->sequence);
        free(list);
        list = next;
    }
}

void kernel_library_close(KernelLibrary *library)
{
    for (Kernel *k = library->kernels; k; k = k->next)
        free_sequences(atomic_load(&k->sequences));
    while (library->kernels) {
        Kernel *kernel = library->kernels;
        library->kernels = kernel->next;
        tilus_kernel_unload(atomic_load(&kernel->loaded));
        pthread_mutex_destroy(&kernel->lock);
        free(kernel);
    }
    pthread_mutex_destroy(&library->lock);
    free(library->directory);
    free(library);
}

/* ---- the table ---------------------------------------------------------- */

/* Returns the kernel, with the library's lock held; NULL: out of memory. */
static Kernel *find_or_add(KernelLibrary *library, const Kernel *wanted)
{
    for (Kernel *k = library->kernels; k; k = k->next)
        if (!strcmp(k->name, wanted->name) && !strcmp(k->target, wanted->target)) {
            assert(!strcmp(k->parameters, wanted->parameters));
            return k;
        }
    Kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->library = library;
    kernel->program = wanted->program;
    kernel->target = wanted->target;
    kernel->number = wanted->number;
    memcpy(kernel->name, wanted->name, sizeof kernel->name);
    memcpy(kernel->parameters, wanted->parameters, sizeof kernel->parameters);
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->next = library->kernels;
    library->kernels = kernel;
    return kernel;
}

Kernel *kernel_library_find(KernelLibrary *library, const Kernel *wanted)
{
    pthread_mutex_lock(&library->lock);
    Kernel *kernel = find_or_add(library, wanted);
    pthread_mutex_unlock(&library->lock);
    return kernel;
}

/* ---- arguments ---------------------------------------------------------- */

bool argument_order_find(const char *const names[], size_t count, const tilus_kernel_info *info,
                         ArgumentOrder *order)
{
    assert(count <= KERNEL_ARGUMENTS_MAX);
    order->count = 0;
    while (order->count < info->arg_count) {
        unsigned char number = 0;
        while (number < count && strcmp(names[number], info->args[order->count].name))
            number++;
        if (number == count || order->count == count)
            return false;
        order->numbers[order->count++] = number;
    }
    return true;
}

tilus_status argument_order_refuse(const char *kernel, const tilus_kernel_info *info,
                                   const ArgumentOrder *order)
{
    return library_fail(TILUS_ERROR_ARTEFACT, "the artefact %s takes %%%s, which this library "
                        "does not know: it is of another version", kernel,
                        info->args[order->count].name);
}

void argument_order_apply(const ArgumentOrder *order, const tilus_arg values[], tilus_arg args[])
{
    for (size_t i = 0; i < order->count; i++)
        args[i] = values[order->numbers[i]];
}

/* ---- loading ------------------------------------------------------------ */

/* Checks that the artefact is of the program, compiled with the very parameters: one of another
 * version of the template, under the same name, would compute something else. */
static tilus_status check_artefact(Kernel *kernel, const tilus_artefact *a)
{
    const char *parameters = a->parameters ? a->parameters : "";
    if (strcmp(a->info->name, kernel->program))
        return library_fail(TILUS_ERROR_ARTEFACT, "the artefact %s is of @%s, not of @%s",
                            kernel->name, a->info->name, kernel->program);
    if (strcmp(parameters, kernel->parameters))
        return library_fail(TILUS_ERROR_ARTEFACT, "the artefact %s was compiled with \"%s\", not "
                            "with \"%s\"", kernel->name, parameters, kernel->parameters);
    return kernel->library->check(kernel, a->info);
}

static tilus_status load_bytes(Kernel *kernel, const void *bytes, size_t size)
{
    tilus_kernel *loaded;
    tilus_status status = tilus_kernel_load(kernel->library->rt, bytes, size, &loaded);
    if (status != TILUS_OK)
        return library_fail(status, "%s: %s", kernel->name, tilus_rt_error());
    status = check_artefact(kernel, tilus_kernel_artefact(loaded));
    if (status == TILUS_OK)
        atomic_store_explicit(&kernel->loaded, loaded, memory_order_release);
    else
        tilus_kernel_unload(loaded);
    return status;
}

/* Returns true when the artefact is among those in memory; *status tells if it loads. */
static bool try_memory(Kernel *kernel, tilus_status *status)
{
    const KernelOptions *o = &kernel->library->options;
    for (size_t i = 0; i < o->kernel_count; i++) {
        const KernelBytes given = bytes_at(o, i);
        if (!strcmp(given.name, kernel->name)) {
            *status = load_bytes(kernel, given.bytes, given.size);
            return true;
        }
    }
    return false;
}

/* Opens a regular file for reading; NULL when it cannot be read, and *status tells why. `*found`:
 * there is such a file, whatever it is. A pipe, which may have no writer, must not block. */
static FILE *open_file(const char *path, bool *found, size_t *size, tilus_status *status)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *found = file >= 0 || errno != ENOENT;
    bool regular = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    FILE *in = regular ? fdopen(file, "rb") : NULL;
    if (in) {
        *size = (size_t)info.st_size;
        return in;
    }
    if (file >= 0 && !regular)
        *status = library_fail(TILUS_ERROR_ARTEFACT, "%s is no regular file", path);
    else if (errno == ENOMEM)
        *status = library_fail_memory();
    else if (*found)
        *status = library_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    return NULL;
}

/* Reads a file of `size` bytes. NULL: it cannot be read, and *status tells why. */
static void *read_file(FILE *in, const char *path, size_t size, tilus_status *status)
{
    char *bytes = NULL;
    *status = TILUS_OK;
    if (size > TILUS_ARTEFACT_MAX)
        *status = library_fail(TILUS_ERROR_ARTEFACT, "%s has %zu bytes, more than %d", path, size,
                               TILUS_ARTEFACT_MAX);
    else if (!(bytes = malloc(size + 1)))
        *status = library_fail_memory();
    else if (fread(bytes, 1, size, in) != size)
        *status = library_fail(TILUS_ERROR_ARTEFACT, "%s: %s", path,
                               ferror(in) ? strerror(errno) : "it became shorter while it was read");
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
    bool found;
    if (!kernel->library->directory)
        return false;
    if (asprintf(&path, "%s/%s.tilusk", kernel->library->directory, kernel->name) < 0) {
        *status = library_fail_memory();
        return true;
    }
    FILE *in = open_file(path, &found, &size, status);
    if (in) {
        bytes = read_file(in, path, size, status);
        if (bytes)
            *status = load_bytes(kernel, bytes, size);
        free(bytes);
        fclose(in);
    }
    free(path);
    return found;
}

/* Returns true when there is a compiler; *status tells if its artefact loads. */
static bool try_compiler(Kernel *kernel, tilus_status *status)
{
    const KernelOptions *o = &kernel->library->options;
    char message[512] = "";
    void *bytes = NULL;
    size_t size = 0;
    if (!o->compile)
        return false;
    *status = o->compile(o->compile_data, kernel->program, kernel->parameters, kernel->target,
                         &bytes, &size, message, sizeof message);
    if (*status == TILUS_OK)
        *status = load_bytes(kernel, bytes, size);
    else
        library_fail(*status, "compiling %s: %s", kernel->name, message);
    free(bytes);
    return true;
}

static tilus_status find_and_load(Kernel *kernel)
{
    const KernelLibrary *library = kernel->library;
    tilus_status status;
    if (try_memory(kernel, &status) || try_directory(kernel, &status) ||
        try_compiler(kernel, &status))
        return status;
    return library_fail(TILUS_ERROR_NO_KERNEL, "no kernel %s (@%s of %s for %s): not among the "
                        "%zu in memory, %s%s, and there is no compiler", kernel->name,
                        kernel->program, kernel->parameters, kernel->target,
                        library->options.kernel_count,
                        library->directory ? "not in the directory " : "no directory",
                        library->directory ? library->directory : "");
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

/* ---- launches ----------------------------------------------------------- */

tilus_status kernel_launch(Kernel *kernel, tilus_stream stream, const tilus_arg values[])
{
    tilus_kernel *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
    tilus_arg args[KERNEL_ARGUMENTS_MAX];
    argument_order_apply(&kernel->order, values, args);
    return tilus_launch(loaded, stream, args, kernel->order.count, 0, 0);
}

/* Returns true for NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, which are streams of the
 * current context. */
static bool is_special(tilus_stream stream)
{
    return (uintptr_t)stream <= 2;
}

tilus_status kernel_library_enqueue(tilus_rt *rt, int device, tilus_stream stream,
                                    KernelEnqueue *enqueue, const void *data)
{
    bool entered;
    if (!is_special(stream))
        return enqueue(data, stream);
    tilus_status status = tilus_rt_enter(rt, device, &entered);
    if (status != TILUS_OK)
        return status;
    status = enqueue(data, stream);
    tilus_status left = tilus_rt_leave(rt, device, entered);
    return status == TILUS_OK ? left : status;
}

/* ---- several launches ---------------------------------------------------- */

static KernelSequence *find_sequence(Kernel *const kernels[], size_t count)
{
    KernelSequence *s = atomic_load_explicit(&kernels[count - 1]->sequences, memory_order_acquire);
    while (s && (s->count != count || memcmp(s->kernels, kernels, count * sizeof *kernels)))
        s = s->next;
    return s;
}

/* Makes a sequence of loaded kernels. */
static tilus_status make_sequence(Kernel *const kernels[], size_t count, KernelSequence **out)
{
    tilus_kernel *loaded[TILUS_SEQUENCE_KERNELS];
    KernelSequence *made = *out = calloc(1, sizeof *made);
    if (!made)
        return library_fail_memory();
    made->count = count;
    memcpy(made->kernels, kernels, count * sizeof *kernels);
    for (size_t i = 0; i < count; i++)
        loaded[i] = atomic_load_explicit(&kernels[i]->loaded, memory_order_acquire);
    tilus_status status = tilus_sequence_create(loaded, count, &made->sequence);
    if (status != TILUS_OK)
        free(made);
    return status;
}

tilus_status kernels_join(Kernel *const kernels[], size_t count)
{
    Kernel *last = kernels[count - 1];
    KernelSequence *made = NULL;
    tilus_status status = TILUS_OK;
    pthread_mutex_lock(&last->lock);
    if (!find_sequence(kernels, count))
        status = make_sequence(kernels, count, &made);
    if (status == TILUS_OK && made) {
        made->next = atomic_load_explicit(&last->sequences, memory_order_relaxed);
        atomic_store_explicit(&last->sequences, made, memory_order_release);
    }
    pthread_mutex_unlock(&last->lock);
    return status;
}

typedef struct LaunchList {
    const KernelLaunch *launches;
    size_t count;
    tilus_sequence *sequence;       /* NULL: they are launched one by one */
} LaunchList;

static tilus_status enqueue_list(const void *data, tilus_stream stream)
{
    const LaunchList *list = data;
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < list->count && status == TILUS_OK; i++)
        status = kernel_launch(list->launches[i].kernel, stream, list->launches[i].args);
    return status;
}

static tilus_status enqueue_sequence(const void *data, tilus_stream stream)
{
    const LaunchList *list = data;
    tilus_arg args[TILUS_SEQUENCE_KERNELS][KERNEL_ARGUMENTS_MAX];
    tilus_sequence_launch launches[TILUS_SEQUENCE_KERNELS];
    for (size_t i = 0; i < list->count; i++) {
        const ArgumentOrder *order = &list->launches[i].kernel->order;
        argument_order_apply(order, list->launches[i].args, args[i]);
        launches[i] = (tilus_sequence_launch){args[i], order->count};
    }
    return tilus_sequence_run(list->sequence, stream, launches);
}

static KernelSequence *sequence_of(const KernelLaunch launches[], size_t count)
{
    Kernel *kernels[TILUS_SEQUENCE_KERNELS];
    if (count < 2 || count > TILUS_SEQUENCE_KERNELS)
        return NULL;
    for (size_t i = 0; i < count; i++)
        kernels[i] = launches[i].kernel;
    return find_sequence(kernels, count);
}

tilus_status kernel_library_launch(const KernelLibrary *library, int device, tilus_stream stream,
                                   const KernelLaunch launches[], size_t count, KernelHaste haste)
{
    LaunchList list = {launches, count, NULL};
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        status = kernel_load(launches[i].kernel);
    if (status != TILUS_OK)
        return status;
    const KernelSequence *sequence =
        haste == KERNEL_HOST_FAST ? sequence_of(launches, count) : NULL;
    list.sequence = sequence ? sequence->sequence : NULL;
    return kernel_library_enqueue(library->rt, device, stream,
                                  sequence ? enqueue_sequence : enqueue_list, &list);
}
