/* Compiles by tilus-llc in a child process: finds the program, writes its command line and says
 * how it ended. */
#define _GNU_SOURCE
#include "tilus/child.h"

#include "child_process.h"
#include "support/sized.h"
#include "support/templates.h"
#include "tilus/artefact.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MILLISECONDS = 600000,      /* unless the caller says otherwise */
    TEXT_MOST = 1 << 20,        /* bytes of diagnostics that are kept */
    REPORT_MOST = 1024          /* of a sentence about the child */
};

/* A call. */
typedef struct Call {
    tilus_child_options options;
    tilus_child_source source;
    const char *template;       /* built into the program, in place of a text; or NULL */
    char *compiler;
    char *parameters;           /* cut into words, to which arguments point */
    char **arguments;
    size_t argument_count, argument_room;
    char report[REPORT_MOST];   /* "" or why the call failed */
} Call;

/* ---- the program ----------------------------------------------------------- */

/* Returns a path if there is a program, malloc'ed. */
static char *try_program(const char *folder, size_t length, const char *name)
{
    char *path;
    if (asprintf(&path, "%.*s%s", (int)length, folder, name) < 0)
        return NULL;
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Returns the program beside the library, or beside the program that this is linked into. */
static char *find_beside(void)
{
    static const char here;
    Dl_info info;
    const char *slash = dladdr(&here, &info) && info.dli_fname ? strrchr(info.dli_fname, '/')
                                                               : NULL;
    if (!slash)
        return NULL;
    size_t length = (size_t)(slash - info.dli_fname) + 1;
    char *path = try_program(info.dli_fname, length, "tilus-llc");
    return path ? path : try_program(info.dli_fname, length, TILUS_BINDIR "/tilus-llc");
}

/* Returns the compiler's path, or its name for PATH; malloc'ed. */
static char *find_compiler(const tilus_child_options *options)
{
    const char *variable = getenv("TILUS_LLC");
    if (options->compiler)
        return strdup(options->compiler);
    if (variable && *variable)
        return strdup(variable);
    char *beside = find_beside();
    return beside ? beside : strdup("tilus-llc");
}

/* ---- the command line -------------------------------------------------------- */

/* Adds an argument, which is malloc'ed or NULL: memory ran out. */
static bool add(Call *c, char *argument)
{
    if (argument && c->argument_count + 1 < c->argument_room) {
        c->arguments[c->argument_count++] = argument;
        return true;
    }
    free(argument);
    return false;
}

__attribute__((format(printf, 2, 3)))
static bool add_format(Call *c, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    return add(c, n < 0 ? NULL : text);
}

/* Adds -D for each word of the parameters. */
static bool add_parameters(Call *c)
{
    char *rest = c->parameters;
    for (char *word = strsep(&rest, " "); word; word = strsep(&rest, " "))
        if (*word && !add_format(c, "-D%s", word))
            return false;
    return true;
}

static bool add_paths(Call *c)
{
    for (size_t i = 0; i < c->source.import_path_count; i++)
        if (!add_format(c, "-I%s", c->source.import_paths[i]))
            return false;
    return true;
}

/* Adds what is compiled, which comes last. */
static bool add_input(Call *c)
{
    const tilus_child_source *s = &c->source;
    if (c->template)
        return add_format(c, "--template=%s", c->template);
    if (s->text)
        return (!s->file || add_format(c, "--input-name=%s", s->file)) && add_format(c, "-");
    return add_format(c, "--") && add_format(c, "%s", s->file);
}

static bool add_all(Call *c)
{
    const tilus_child_source *s = &c->source;
    return add_format(c, "%s", c->compiler) && add_format(c, "--filetype=artefact") &&
           add_format(c, "--cubin=never") && add_format(c, "-o") && add_format(c, "-") &&
           add_format(c, "-mcpu=%s", s->target) &&
           (!s->program || add_format(c, "--program=%s", s->program)) &&
           (!c->options.cache_directory ||
            add_format(c, "--cache=%s", c->options.cache_directory)) &&
           add_parameters(c) && add_paths(c) && add_input(c);
}

/* Writes the command line; false: memory ran out. */
static bool make_arguments(Call *c)
{
    enum { FIXED = 12 };
    const char *parameters = c->source.parameters ? c->source.parameters : "";
    c->argument_room = FIXED + strlen(parameters) / 2 + 1 + c->source.import_path_count;
    c->arguments = calloc(c->argument_room, sizeof *c->arguments);
    c->parameters = strdup(parameters);
    c->compiler = find_compiler(&c->options);
    return c->arguments && c->parameters && c->compiler && add_all(c);
}

static void free_call(Call *c)
{
    for (size_t i = 0; i < c->argument_count; i++)
        free(c->arguments[i]);
    free(c->arguments);
    free(c->parameters);
    free(c->compiler);
}

/* ---- how it ended ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4)))
static tilus_status fail(Call *c, tilus_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->report, sizeof c->report, format, args);
    va_end(args);
    return status;
}

/* Names why there is no child: the program, or what the process lacks to start one. */
static tilus_status name_start(Call *c, int error)
{
    bool is_program = error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR;
    if (error == ENOMEM)
        return TILUS_ERROR_MEMORY;
    if (is_program)
        return fail(c, TILUS_ERROR_CHILD, "%s: %s; TILUS_LLC or the options name the compiler",
                    c->compiler, strerror(error));
    return fail(c, TILUS_ERROR_CHILD, "%s was not started: %s%s", c->compiler, strerror(error),
                error == EFBIG ? ": the text is over the process's limit, RLIMIT_FSIZE" : "");
}

static tilus_status name_signal(Call *c, int number)
{
    const char *name = NULL;
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
    name = sigabbrev_np(number);
#endif
#endif
    return fail(c, TILUS_ERROR_CHILD, "%s was ended by signal %d (%s%s: %s)", c->compiler, number,
                name ? "SIG" : "", name ? name : "", strsignal(number));
}

/* An exit code that is not 0; diagnostics say why where it is 1 or 2. */
static tilus_status name_exit(Call *c, int code, const ChildOutput *err)
{
    enum { WRONG_INPUT = 1, WRONG_USAGE = 2 };
    if (err->size && code == WRONG_INPUT)
        return TILUS_ERROR_PROGRAM;
    if (err->size && code == WRONG_USAGE)
        return TILUS_ERROR_ARGUMENT;
    return fail(c, TILUS_ERROR_CHILD, "%s ended with exit code %d", c->compiler, code);
}

/* Checks that the output is an artefact, also where the exit code is unknown. */
static tilus_status check_output(Call *c, const ChildOutput *out)
{
    char message[REPORT_MOST / 2] = "out of memory";
    tilus_artefact *artefact;
    tilus_status status = tilus_artefact_read(out->bytes ? out->bytes : "", out->size, &artefact,
                                              message, sizeof message);
    free(artefact);
    if (status == TILUS_ERROR_ARTEFACT)
        return fail(c, TILUS_ERROR_CHILD, "%s wrote no artefact, but %zu bytes: %s", c->compiler,
                    out->size, message);
    return status;
}

static tilus_status name_end(Call *c, const ChildRun *run, ChildResult result)
{
    switch (result.end) {
    case CHILD_EXITED:
        return result.number ? name_exit(c, result.number, &run->err) : check_output(c, &run->out);
    case CHILD_REAPED: return check_output(c, &run->out);
    case CHILD_SIGNALED: return name_signal(c, result.number);
    case CHILD_NOT_STARTED: return name_start(c, result.number);
    case CHILD_NO_MEMORY: return TILUS_ERROR_MEMORY;
    case CHILD_LOUD:
        return fail(c, TILUS_ERROR_CHILD, "%s wrote more than %d bytes, and was ended", c->compiler,
                    TILUS_ARTEFACT_MAX);
    case CHILD_LATE:
        return fail(c, TILUS_ERROR_CHILD, "%s took more than %llu ms, and was ended", c->compiler,
                    (unsigned long long)run->milliseconds);
    }
    return TILUS_ERROR_INTERNAL;
}

/* Returns what the child wrote, and the report after it; malloc'ed. */
static char *join_texts(const Call *c, const ChildOutput *err)
{
    const char *text = err->bytes ? err->bytes : "", *end = err->size ? text + err->size - 1 : "\n";
    char *all, dropped[64] = "";
    if (err->dropped)
        snprintf(dropped, sizeof dropped, "\n(%llu bytes more)",
                 (unsigned long long)err->dropped);
    int n = asprintf(&all, "%s%s%s%s%s%s", text, dropped, *c->report && *end != '\n' ? "\n" : "",
                     *c->report ? "error: " : "", c->report, *c->report ? "\n" : "");
    return n < 0 ? NULL : all;
}

/* ---- calls ------------------------------------------------------------------- */

/* Runs a call whose structs are read. */
static tilus_status run_call(Call *c, void **bytes, size_t *size, char **diagnostics)
{
    ChildRun run = {.input = c->template ? NULL : c->source.text, .input_size = c->source.text_size,
                    .milliseconds = c->options.milliseconds ? c->options.milliseconds : MILLISECONDS,
                    .out.most = TILUS_ARTEFACT_MAX, .err.most = TEXT_MOST};
    tilus_status status = TILUS_ERROR_MEMORY;
    if (make_arguments(c)) {
        run.arguments = c->arguments;
        status = name_end(c, &run, child_run(&run));
    }
    *diagnostics = status == TILUS_ERROR_MEMORY ? NULL : join_texts(c, &run.err);
    if (status == TILUS_OK) {
        *bytes = run.out.bytes;
        *size = run.out.size;
        run.out.bytes = NULL;
    }
    free(run.out.bytes);
    free(run.err.bytes);
    free_call(c);
    return status;
}

/* An empty path would make the next word of the command line its -I's. */
static bool check_paths(const tilus_child_source *s, Report why)
{
    for (size_t i = 0; i < s->import_path_count; i++)
        if (!s->import_paths || !s->import_paths[i] || !*s->import_paths[i])
            return report_fault(why, "source: import_paths[%zu] of %zu is %s, not a path", i,
                                s->import_path_count,
                                s->import_paths && s->import_paths[i] ? "empty" : "NULL");
    return true;
}

/* Clears the places of a result. Returns false, after a report, where one of them is NULL. */
static bool check_places(void **bytes, size_t *size, Report why)
{
    if (bytes)
        *bytes = NULL;
    if (size)
        *size = 0;
    return (bytes || report_fault(why, "bytes is NULL")) &&
           (size || report_fault(why, "size is NULL"));
}

/* Copies the caller's structs; false after a report. */
static bool read_structs(Call *c, const tilus_child_options *options,
                         const tilus_child_source *source)
{
    const Report why = {c->report, sizeof c->report};
    return SIZED_COPY(tilus_child_options, &c->options, options, "options", why) &&
           SIZED_COPY(tilus_child_source, &c->source, source, "source", why) &&
           (c->source.target || report_fault(why, "source: target is NULL, not a target's name")) &&
           (c->source.text || c->source.file ||
            report_fault(why, "source: text and file are NULL, and one is compiled")) &&
           check_paths(&c->source, why);
}

tilus_status tilus_child_compile(const tilus_child_options *options,
                                 const tilus_child_source *source, void **bytes, size_t *size,
                                 char **diagnostics)
{
    Call c = {0};
    char *text;
    tilus_status status = TILUS_ERROR_ARGUMENT;
    if (check_places(bytes, size, (Report){c.report, sizeof c.report}) &&
        read_structs(&c, options, source))
        status = run_call(&c, bytes, size, &text);
    else
        text = join_texts(&c, &(ChildOutput){0});
    if (diagnostics)
        *diagnostics = text;
    else
        free(text);
    return status;
}

/* Returns the line of the first error, else the text's first. */
static const char *first_error(const char *text)
{
    static const char mark[] = "error: ";
    const char *found = strstr(text, mark);
    while (found && found > text && found[-1] != '\n')
        found--;
    return found ? found : text;
}

/* Tells whether a program of a template is named, and its target; false after a report. */
static bool check_names(const tilus_child_source *s, Report why)
{
    return (s->program || report_fault(why, "program is NULL")) &&
           (s->target || report_fault(why, "target is NULL"));
}

/* Compiles a program of a library's template, which the compiler has built in. */
static tilus_status compile_template(const char *library, const tilus_child_options *options,
                                     const tilus_child_source *source, void **bytes, size_t *size,
                                     char *message, size_t message_size)
{
    Call c = {.source = *source};
    char *text = NULL;
    tilus_status status = TILUS_ERROR_ARGUMENT;
    message_size = message ? message_size : 0;
    const Report why = {message, message_size};
    if (check_places(bytes, size, why) && check_names(source, why) &&
        SIZED_COPY(tilus_child_options, &c.options, options, "options", why)) {
        c.template = template_of(library, source->program);
        status = run_call(&c, bytes, size, &text);
        if (status != TILUS_OK) {
            const char *error = first_error(text ? text : "out of memory");
            snprintf(message, message_size, "%.*s", (int)strcspn(error, "\n"), error);
        }
    }
    free(text);
    return status;
}

tilus_status tilus_compile_in_child(void *data, const char *program, const char *parameters,
                                    const char *target, void **bytes, size_t *size,
                                    char *message, size_t message_size)
{
    const tilus_child_source source = {.program = program, .parameters = parameters,
                                       .target = target};
    return compile_template("matmul", data, &source, bytes, size, message, message_size);
}

tilus_status tilus_attention_compile_in_child(void *data, const char *program,
                                              const char *parameters, const char *target,
                                              void **bytes, size_t *size, char *message,
                                              size_t message_size)
{
    const tilus_child_source source = {.program = program, .parameters = parameters,
                                       .target = target};
    return compile_template("attention", data, &source, bytes, size, message, message_size);
}
