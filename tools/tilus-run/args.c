/* The arguments' values, from --arg. */
#include "run.h"

#include "support/kernel_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t argument_find(const Run *run, const char *text, const char **value)
{
    const char *name = text + (*text == '%');
    size_t len = strcspn(name, "=");
    *value = name[len] ? name + len + 1 : NULL;
    for (size_t i = 0; *value && i < run->info->arg_count; i++) {
        const char *argument = run->info->args[i].name;
        if (strlen(argument) == len && memcmp(argument, name, len) == 0)
            return i;
    }
    if (*value)
        fprintf(stderr, "%s: error: program @%s has no argument %%%.*s, see --list\n", TOOL,
                run->program, (int)len, name);
    else
        fprintf(stderr, "%s: error: expected NAME=VALUE, got '%s'\n", TOOL, text);
    return SIZE_MAX;
}

static int allocate(Run *run)
{
    size_t count = run->info->arg_count + 1;    /* calloc(0) may be NULL */
    run->known = calloc(count, sizeof *run->known);
    run->args = calloc(count, sizeof *run->args);
    run->counts = calloc(count, sizeof *run->counts);
    run->shapes = calloc(count, sizeof *run->shapes);
    run->buffers = calloc(count, sizeof *run->buffers);
    run->reference = calloc(count, sizeof *run->reference);
    run->changed = calloc(count, sizeof *run->changed);
    if (run->known && run->args && run->counts && run->shapes && run->buffers &&
        run->reference && run->changed)
        return EXIT_OK;
    fprintf(stderr, "%s: error: out of memory\n", TOOL);
    return EXIT_DIAGNOSTICS;
}

/* Reads a number with or without a fraction, inf or nan. */
static const char *read_real(const char **text, double *value)
{
    char *end;
    *value = strtod(*text, &end);
    const char *error = end == *text ? "a number is missing" : NULL;
    *text = end;
    return error;
}

static int make_scalar(Run *run, size_t arg, const char *text)
{
    const char *at = text;
    const char *error = kernel_arg_is_float(run->info->args[arg].kind)
                            ? read_real(&at, &run->args[arg].real)
                            : run_evaluate(run, &at, &run->args[arg].integer);
    if (!error && *at)
        error = "something follows the number";
    if (!error)
        return EXIT_OK;
    fprintf(stderr, "%s: error: --arg %s=%s: %s\n", TOOL, run->info->args[arg].name, text,
            error);
    return EXIT_USAGE;
}

static int make_argument(Run *run, size_t arg, const char *text)
{
    const tilus_arg_info *info = &run->info->args[arg];
    if (run->known[arg]) {
        fprintf(stderr, "%s: error: argument %%%s is given twice\n", TOOL, info->name);
        return EXIT_USAGE;
    }
    bool is_pointer = info->kind == TILUS_ARG_POINTER;
    int status = is_pointer ? data_make(run, arg, text, &run->buffers[arg], &run->counts[arg],
                                        &run->shapes[arg])
                            : make_scalar(run, arg, text);
    if (is_pointer)
        run->args[arg].pointer = arg;
    run->known[arg] = status == EXIT_OK;
    return status;
}

/* Makes the scalars, or the pointers, in the order of the command line. */
static int make_kind(Run *run, bool pointers)
{
    const StringList *list = &run->options.args;
    for (size_t i = 0; i < list->count; i++) {
        const char *text;
        size_t arg = argument_find(run, list->items[i], &text);
        if (arg == SIZE_MAX)
            return EXIT_USAGE;
        if ((run->info->args[arg].kind == TILUS_ARG_POINTER) != pointers)
            continue;
        int status = make_argument(run, arg, text);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

/* Checks that all scalars, or all pointers, have values. */
static int check_known(const Run *run, bool pointers)
{
    for (size_t i = 0; i < run->info->arg_count; i++) {
        const tilus_arg_info *info = &run->info->args[i];
        if (run->known[i] || (info->kind == TILUS_ARG_POINTER) != pointers)
            continue;
        fprintf(stderr, "%s: error: argument %%%s has no value, give --arg %s=VALUE\n", TOOL,
                info->name, info->name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* Checks the scalars before data are made by them: pointers are still NULL, which fits any program. */
static int check_scalars(const Run *run)
{
    int64_t grid[3];
    char message[512];
    if (tilus_kernel_check(run->info, run->args, run->info->arg_count, grid, message,
                           sizeof message) == TILUS_OK)
        return EXIT_OK;
    fprintf(stderr, "%s: error: %s\n", TOOL, message);
    return EXIT_DIAGNOSTICS;
}

int arguments_make(Run *run)
{
    int status = allocate(run);
    for (int pointers = 0; pointers < 2 && status == EXIT_OK; pointers++) {
        status = make_kind(run, pointers);
        if (status == EXIT_OK)
            status = check_known(run, pointers);
        if (status == EXIT_OK && !pointers)
            status = check_scalars(run);
    }
    return status;
}
