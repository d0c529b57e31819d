/* Writing reproducers, also from a signal handler. */
#define _GNU_SOURCE
#include "common/reproducer.h"

#include "support/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The reproducer that the signal handler writes; NULL while it is being changed. */
static _Atomic(const Reproducer *) armed;

/* ---- writing: async-signal-safe calls only ------------------------------------- */

static bool write_file(const Reproducer *r)
{
    int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = file_write_all(fd, r->bytes, r->size);
    ok = close(fd) == 0 && ok && rename(r->temporary, r->path) == 0;
    if (!ok)
        unlink(r->temporary);
    return ok;
}

static void write_and_announce(const Reproducer *r)
{
    const char *text = write_file(r) ? r->announcement : r->failure;
    file_write_all(STDERR_FILENO, text, strlen(text));
}

/* ---- signals -------------------------------------------------------------------- */

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
static struct sigaction old_actions[COUNT(signals)];

/* Leaves the end of the process to whoever handled the signal before us. */
static void on_signal(int number)
{
    const Reproducer *r = atomic_exchange(&armed, NULL);
    if (r)
        write_and_announce(r);
    for (size_t i = 0; i < COUNT(signals); i++)
        if (signals[i] == number)
            sigaction(number, &old_actions[i], NULL);
    raise(number);      /* arrives when this handler returns */
}

/* A stack that overflowed has no room for the handler. */
static void give_handler_a_stack(void)
{
    static char memory[1 << 16];
    stack_t old, ours = {.ss_sp = memory, .ss_size = sizeof memory};
    if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
        sigaltstack(&ours, NULL);
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    give_handler_a_stack();
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaction(signals[i], &action, &old_actions[i]);
}

static void restore_signals(void)
{
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaction(signals[i], &old_actions[i], NULL);
}

/* ---- opening ---------------------------------------------------------------------- */

/* A reproducer takes the place of what has its name: never of a device. */
static bool check_path(const char *tool, const char *path)
{
    struct stat info;
    if (!path || stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return true;
    fprintf(stderr, "%s: error: --reproducer: '%s' is not a regular file\n", tool, path);
    return false;
}

static bool name_files(Reproducer *r)
{
    const char *directory = getenv("TMPDIR"), *given = r->settings->reproducer;
    long id = (long)getpid();
    int n = given ? asprintf(&r->path, "%s", given)
                  : asprintf(&r->path, "%s/%s-%ld.tilus",
                             directory && *directory ? directory : "/tmp", r->tool, id);
    if (n < 0) {
        r->path = NULL;
        return false;
    }
    if (asprintf(&r->temporary, "%s.%ld.tmp", r->path, id) < 0) {
        r->temporary = NULL;
        return false;
    }
    if (asprintf(&r->announcement, "note: %s --run-reproducer '%s' reproduces this\n", r->tool,
                 r->path) < 0) {
        r->announcement = NULL;
        return false;
    }
    if (asprintf(&r->failure, "note: no reproducer could be written to '%s'\n", r->path) < 0) {
        r->failure = NULL;
        return false;
    }
    return true;
}

static void free_parts(Reproducer *r)
{
    free(r->path);
    free(r->temporary);
    free(r->announcement);
    free(r->failure);
    free(r->bytes);
}

bool reproducer_open(Reproducer *r, const char *tool, const char *input,
                     const PassSettings *settings, const StringList *defines,
                     const char *flags)
{
    *r = (Reproducer){.tool = tool, .input = input, .settings = settings, .defines = defines,
                      .flags = flags};
    if (!check_path(tool, settings->reproducer))
        return false;
    if (!name_files(r)) {
        fprintf(stderr, "%s: error: out of memory\n", tool);
        free_parts(r);
        return false;
    }
    handle_signals();
    return true;
}

void reproducer_close(Reproducer *r)
{
    atomic_store(&armed, NULL);
    if (r->wanted && r->bytes)
        write_and_announce(r);
    restore_signals();
    free_parts(r);
}

/* ---- staging ---------------------------------------------------------------------- */

/* A word as a shell reads it. The header is one line, so what would end it
 * becomes a space; no value of an option has such a character. */
static void add_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";
    bool quote = word[strspn(word, plain)] != '\0';
    if (quote)
        fputc('\'', out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word == '\n' || *word == '\r' ? ' ' : *word, out);
    }
    if (quote)
        fputc('\'', out);
}

void reproducer_add_option(FILE *out, const char *name, const char *value)
{
    fprintf(out, " --%s=", name);
    add_word(out, value);
}

static void add_defines(FILE *out, const StringList *defines)
{
    for (size_t i = 0; i < defines->count; i++) {
        fputs(" -D ", out);
        add_word(out, defines->items[i]);
    }
}

/* `runs` of passes lie before; those count toward the limit of bisecting. */
static void add_settings(FILE *out, const PassSettings *s, unsigned runs)
{
    const tilus_pass_options *o = &s->options;
    if (!o->verify_each)
        fputs(" --verify-each=false", out);
    if (o->skip)
        reproducer_add_option(out, "skip", o->skip);
    if (o->opt_bisect && o->opt_bisect_limit >= 0) {
        unsigned limit = (unsigned)o->opt_bisect_limit;
        fprintf(out, " --opt-bisect-limit=%u", limit > runs ? limit - runs : 0);
    }
    if (o->target)
        reproducer_add_option(out, "mcpu", o->target);
    for (size_t i = 0; i < s->limits.count; i++)
        reproducer_add_option(out, "limit", s->limits.items[i]);
    for (size_t i = 0; i < s->import_paths.count; i++)
        reproducer_add_option(out, "I", s->import_paths.items[i]);
    for (size_t i = 0; i < s->warnings.count; i++)
        reproducer_add_option(out, "W", s->warnings.items[i]);
    for (size_t i = 0; i < s->plugins.count; i++)
        reproducer_add_option(out, "load-pass-plugin", s->plugins.items[i]);
}

/* Makes header and text what is written. Without memory for that there is no
 * reproducer of this step. */
static void stage(Reproducer *r, const char *pipeline, unsigned runs, bool instantiated,
                  const char *text, size_t len)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    atomic_store(&armed, NULL);
    free(r->bytes);
    r->bytes = NULL;
    if (!out)
        return;
    fprintf(out, "// %s", r->tool);
    reproducer_add_option(out, "passes", pipeline);
    if (!instantiated)
        add_defines(out, r->defines);
    add_settings(out, r->settings, runs);
    fprintf(out, "%s\n// made from ", r->flags);
    add_word(out, r->input);
    add_defines(out, r->defines);
    fputc('\n', out);
    fwrite(text, 1, len, out);
    bool ok = !ferror(out);
    if (fclose(out) != 0 || !ok) {
        free(bytes);
        return;
    }
    r->bytes = bytes;
    r->size = size;
    atomic_store(&armed, r);
}

void reproducer_stage_input(Reproducer *r, const char *pipeline, const char *text, size_t len)
{
    stage(r, pipeline, 0, false, text, len);
}

void reproducer_stage_module(Reproducer *r, const char *text)
{
    stage(r, "", 0, true, text, strlen(text));
}

void reproducer_note_failure(Reproducer *r)
{
    r->wanted |= r->settings->reproducer != NULL;
}

void reproducer_observe(void *reproducer, const tilus_pass_event *event)
{
    Reproducer *r = reproducer;
    if (event->kind == TILUS_PASS_BEGINS)
        stage(r, event->pipeline, event->runs, true, event->text, strlen(event->text));
    else if (event->kind == TILUS_PASS_BROKE)
        r->wanted = true;
    else
        reproducer_note_failure(r);
}
