/* Writes the buffers of a run, and compares them with references. */
#define _DEFAULT_SOURCE
#include "run.h"

#include "common/file.h"
#include "difference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reference of a buffer. */
typedef struct Reference {
    tilus_buffer buffer;
    Shape shape;
} Reference;

/* The pointer that "NAME=..." of an option is of, or SIZE_MAX after saying why not. */
static size_t find_pointer(const Run *run, const char *option, const char *text,
                           const char **value)
{
    size_t arg = argument_find(run, text, value);
    if (arg == SIZE_MAX || run->buffers[arg].data)
        return arg;
    fprintf(stderr, "%s: error: --%s %s: a scalar\n", TOOL, option, text);
    return SIZE_MAX;
}

int outputs_write(const Run *run)
{
    const StringList *list = &run->options.outs;
    for (size_t i = 0; i < list->count; i++) {
        const char *path;
        size_t arg = find_pointer(run, "out", list->items[i], &path);
        if (arg == SIZE_MAX)
            return EXIT_USAGE;
        if (!file_check_output(TOOL, run->options.inputs.items[0], path))
            return EXIT_DIAGNOSTICS;
        int status = data_write(path, run->info->args[arg].dtype, &run->buffers[arg],
                                &run->shapes[arg]);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

/* ---- deciding ------------------------------------------------------- */

/* Says why the difference is too large; NULL if it is not. Zeros say nothing of an output. */
static const char *find_failure(const Options *o, const Difference *d, bool output)
{
    if (d->mismatches)
        return "NaN or infinity differ";
    if (o->tolerance == 0 && d->unequal)
        return "not bitwise equal";
    if (!(d->relative <= o->tolerance))
        return "relative error above the tolerance";
    if (output && d->norm == 0 && !o->allow_zero)
        return "the reference is all zero (--allow-zero accepts it)";
    return NULL;
}

/* Compares one buffer with as many elements, prints how it is, and decides. */
static bool check_elements(const Run *run, size_t arg, const void *reference,
                           const Shape *shape, bool output)
{
    const tilus_arg_info *info = &run->info->args[arg];
    const Pair pair = {info->name, info->dtype, run->buffers[arg].data, reference,
                       run->counts[arg], shape};
    Difference d = difference_measure(&pair);
    difference_print(&pair, &d);
    const char *failure = find_failure(&run->options, &d, output);
    if (failure) {
        printf("%s: FAILED: %s\n", info->name, failure);
        difference_print_elements(&pair, &d);
    }
    return !failure;
}

/* Compares all buffers; an input that nobody writes may be all zero. */
static bool check_run(const Run *run)
{
    bool ok = true;
    for (size_t i = 0; i < run->info->arg_count; i++)
        if (run->buffers[i].data)
            ok &= check_elements(run, i, run->reference[i].data, &run->shapes[i],
                                 run->changed[i]);
    return ok;
}

static void print_shape(const Shape *shape)
{
    for (unsigned d = 0; d < shape->rank; d++)
        printf("%s%lld", d ? ", " : "[", (long long)shape->extents[d]);
    putchar(']');
}

/* Two matrices of as many elements may still be different ones. */
static bool shapes_fit(const Shape *a, const Shape *b)
{
    size_t size = a->rank * sizeof *a->extents;
    return a->rank <= 1 || b->rank <= 1 ||
           (a->rank == b->rank && memcmp(a->extents, b->extents, size) == 0);
}

static bool check_buffer(const Run *run, size_t arg, const Reference *reference)
{
    const tilus_buffer *buffer = &run->buffers[arg];
    const Shape *shape = &run->shapes[arg];
    const char *name = run->info->args[arg].name;
    if (reference->buffer.size != buffer->size) {
        printf("%s: FAILED: %zu bytes, %zu are expected\n", name, buffer->size,
               reference->buffer.size);
        return false;
    }
    if (!shapes_fit(shape, &reference->shape)) {
        printf("%s: FAILED: the shape is ", name);
        print_shape(shape);
        printf(", the reference's ");
        print_shape(&reference->shape);
        putchar('\n');
        return false;
    }
    if (reference->shape.rank > shape->rank)
        shape = &reference->shape;
    return check_elements(run, arg, reference->buffer.data, shape, true);
}

/* ---- with data, and with files ---------------------------------------- */

static int check_expectation(const Run *run, const char *text)
{
    const char *value;
    size_t count, arg = find_pointer(run, "expect", text, &value);
    Reference reference = {0};
    if (arg == SIZE_MAX)
        return EXIT_USAGE;
    int status = data_make(run, arg, value, &reference.buffer, &count, &reference.shape);
    if (status != EXIT_OK)
        return status;
    bool ok = check_buffer(run, arg, &reference);
    free(reference.buffer.data);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* The one argument that was given as undef(...); SIZE_MAX if there is not one. */
static size_t find_output(const Run *run)
{
    const StringList *list = &run->options.args;
    static const char undefined[] = "undef(";
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const char *value = strchr(list->items[i], '=');
        if (!value || strncmp(value + 1, undefined, strlen(undefined)) != 0)
            continue;
        if (found != SIZE_MAX)
            return SIZE_MAX;
        found = argument_find(run, list->items[i], &value);
    }
    return found;
}

/* The argument that "NAME=FILE" or "FILE" is of, or SIZE_MAX after saying why there is
 * none; `*path` is the file. */
static size_t find_compared(const Run *run, const char *text, const char **path)
{
    size_t len = strcspn(text, "=");
    *path = text[len] ? text + len + 1 : text;
    for (size_t i = 0; text[len] && i < run->info->arg_count; i++) {
        const char *name = run->info->args[i].name;
        if (run->buffers[i].data && strlen(name) == len && memcmp(name, text, len) == 0)
            return i;
    }
    *path = text;
    size_t arg = find_output(run);
    if (arg == SIZE_MAX)
        fprintf(stderr, "%s: error: --compare=%s: give NAME=FILE with the name of a pointer; "
                "without a name, one argument must be undef(...)\n", TOOL, text);
    return arg;
}

static int check_file(const Run *run, const char *text)
{
    const char *path;
    size_t count, arg = find_compared(run, text, &path);
    Reference reference = {0};
    if (arg == SIZE_MAX)
        return EXIT_USAGE;
    int status = data_read(path, run->info->args[arg].dtype, &reference.buffer, &count,
                           &reference.shape);
    if (status != EXIT_OK)
        return status;
    bool ok = check_buffer(run, arg, &reference);
    free(reference.buffer.data);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* Goes through `list` until its text is wrong; a comparison that fails does not end it. */
static int check_list(const Run *run, const StringList *list,
                      int (*check)(const Run *run, const char *text), int status)
{
    for (size_t i = 0; i < list->count && status != EXIT_USAGE; i++) {
        int one = check(run, list->items[i]);
        status = one == EXIT_OK ? status : one;
    }
    return status;
}

/* Checks names and readable files before a run that may take long. */
static int preview_file(const Run *run, const char *text)
{
    const char *path;
    if (find_compared(run, text, &path) == SIZE_MAX)
        return EXIT_USAGE;
    if (access(path, R_OK) == 0)
        return EXIT_OK;
    fprintf(stderr, "%s: error: cannot read '%s': %s\n", TOOL, path, strerror(errno));
    return EXIT_DIAGNOSTICS;
}

static int preview_out(const Run *run, const char *text)
{
    const char *path;
    return find_pointer(run, "out", text, &path) == SIZE_MAX ? EXIT_USAGE : EXIT_OK;
}

static int preview_expectation(const Run *run, const char *text)
{
    const char *value;
    return find_pointer(run, "expect", text, &value) == SIZE_MAX ? EXIT_USAGE : EXIT_OK;
}

int outputs_check(Run *run)
{
    const Options *o = &run->options;
    int status = check_list(run, &o->compare_files, preview_file, EXIT_OK);
    status = check_list(run, &o->outs, preview_out, status);
    return check_list(run, &o->expects, preview_expectation, status);
}

int outputs_compare(const Run *run)
{
    const Options *o = &run->options;
    bool ok = o->reference == REFERENCE_NONE || check_run(run);
    int status = check_list(run, &o->compare_files, check_file,
                            ok ? EXIT_OK : EXIT_DIAGNOSTICS);
    return check_list(run, &o->expects, check_expectation, status);
}
