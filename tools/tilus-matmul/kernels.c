/* Artefacts of kernels: listed from plans, compiled in child processes. */
#define _GNU_SOURCE
#include "tilus-matmul/tool.h"

#include "common/file.h"
#include "common/ptxas.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- sets ---------------------------------------------------------------------- */

static bool has_kernel(const KernelSet *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].name, name) == 0)
            return true;
    return false;
}

/* Adds a kernel from "NAME\tprogram\tparameters". */
static bool add_line(KernelSet *set, char *line)
{
    char *name = strsep(&line, "\t"), *program = strsep(&line, "\t");
    if (!line || has_kernel(set, name))
        return line || fail("the library lists no kernels");
    struct KernelItem *items = realloc(set->items, (set->count + 1) * sizeof *items);
    if (!items)
        return fail("out of memory");
    set->items = items;
    items[set->count] = (struct KernelItem){strdup(name), strdup(program), strdup(line)};
    const struct KernelItem *k = &items[set->count++];
    return (k->name && k->program && k->parameters) || fail("out of memory");
}

bool kernels_add(KernelSet *set, const tilus_matmul_plan *plan, int64_t m)
{
    char *text = tilus_matmul_kernels(plan, m), *rest = text;
    bool ok = text || fail("out of memory");
    while (ok && *rest)
        ok = add_line(set, strsep(&rest, "\n"));
    tilus_free(text);
    return ok;
}

void kernels_free(KernelSet *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->items[i].name);
        free(set->items[i].program);
        free(set->items[i].parameters);
    }
    free(set->items);
    *set = (KernelSet){0};
}

/* ---- machine code ---------------------------------------------------------------- */

/* Runs ptxas on the file `in`. Without output of its own, as in a build. */
static bool run_ptxas(const char *ptxas, const char *target, const char *in, const char *out)
{
    char arch[64];
    pid_t child;
    int status;
    snprintf(arch, sizeof arch, "-arch=%s", target);
    char *const argv[] = {(char *)(uintptr_t)ptxas, arch, "-o", (char *)(uintptr_t)out,
                          (char *)(uintptr_t)in, NULL};
    int failed = posix_spawn(&child, ptxas, NULL, NULL, argv, environ);
    if (failed)
        return fail("cannot run '%s': %s", ptxas, strerror(failed));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail("lost '%s': %s", ptxas, strerror(errno));
    return status == 0 || fail("'%s' failed on a kernel for %s", ptxas, target);
}

/* Writes the artefact again, with machine code. */
static bool add_cubin(const char *ptxas, const tilus_artefact *artefact, const char *folder,
                      void **bytes, size_t *size)
{
    char in[PATH + 16], out[PATH + 16], *cubin = NULL;
    size_t cubin_size;
    snprintf(in, sizeof in, "%s/in.ptx", folder);
    snprintf(out, sizeof out, "%s/out.cubin", folder);
    bool ok = file_write(TOOL, in, artefact->ptx, strlen(artefact->ptx)) &&
              run_ptxas(ptxas, artefact->target, in, out) &&
              file_read(TOOL, out, TILUS_ARTEFACT_MAX, &cubin, &cubin_size);
    if (ok) {
        tilus_artefact whole = *artefact;
        whole.cubin = cubin;
        whole.cubin_size = cubin_size;
        tilus_free(*bytes);
        ok = tilus_artefact_write(&whole, bytes, size) == TILUS_OK || fail("out of memory");
    }
    free(cubin);
    unlink(in);
    unlink(out);
    return ok;
}

static bool assemble(const char *ptxas, void **bytes, size_t *size)
{
    char folder[PATH], message[MESSAGE];
    const char *temporary = getenv("TMPDIR");
    tilus_artefact *artefact;
    if (tilus_artefact_read(*bytes, *size, &artefact, message, sizeof message) != TILUS_OK)
        return fail("%s", message);
    snprintf(folder, sizeof folder, "%s/tilus-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    bool ok = mkdtemp(folder) || fail("cannot make '%s': %s", folder, strerror(errno));
    if (ok) {
        ok = add_cubin(ptxas, artefact, folder, bytes, size);
        rmdir(folder);
    }
    tilus_free(artefact);
    return ok;
}

/* ---- compiling ---------------------------------------------------------------------- */

static bool make_kernel(const struct KernelItem *kernel, const char *target, bool cubin,
                        void **bytes, size_t *size)
{
    char message[MESSAGE], ptxas[PTXAS_PATH], why[PTXAS_PATH + 128];
    tilus_cache *cache = tilus_cache_open(NULL);
    tilus_status status = tilus_matmul_compile(cache, kernel->program, kernel->parameters, target,
                                               bytes, size, message, sizeof message);
    tilus_cache_close(cache);
    if (status != TILUS_OK)
        return fail("%s: %s: %s", kernel->name, tilus_status_name(status), message);
    if (!cubin || !ptxas_find(ptxas, why, sizeof why) || assemble(ptxas, bytes, size))
        return true;
    tilus_free(*bytes);
    *bytes = NULL;
    return false;
}

static bool write_kernel(const struct KernelItem *kernel, const char *target, bool cubin,
                         const char *folder)
{
    void *bytes;
    size_t size;
    char path[PATH];
    if (!make_kernel(kernel, target, cubin, &bytes, &size))
        return false;
    snprintf(path, sizeof path, "%s/%s.tilusk", folder, kernel->name);
    bool ok = file_write(TOOL, path, bytes, size);
    tilus_free(bytes);
    return ok;
}

/* Waits for a child; false when it failed. */
static bool collect(void)
{
    int status;
    pid_t child;
    while ((child = wait(&status)) < 0 && errno == EINTR)
        continue;
    if (child >= 0 && WIFSIGNALED(status))
        return fail("a process that compiled a kernel died of signal %d", WTERMSIG(status));
    return child >= 0 && status == 0;
}

static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

bool kernels_compile(const KernelSet *set, const Settings *s, const char *target,
                     const char *folder)
{
    unsigned jobs = s->jobs ? s->jobs : processors(), running = 0;
    bool ok = mkdir(folder, 0777) == 0 || errno == EEXIST ||
              fail("cannot make '%s': %s", folder, strerror(errno));
    fflush(NULL);
    for (size_t i = 0; ok && i < set->count; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(write_kernel(&set->items[i], target, !s->no_cubin, folder) ? EXIT_OK
                                                                             : EXIT_DIAGNOSTICS);
        ok = child > 0 || fail("cannot start a process: %s", strerror(errno));
        running += child > 0;
        if (running == jobs) {
            ok = collect() && ok;
            running--;
        }
    }
    while (running-- > 0)
        ok = collect() && ok;
    return ok;
}

/* ---- the command ------------------------------------------------------------------------ */

static const char *target_of(const Library *l, const Settings *s)
{
    return s->target ? s->target : tilus_target_for(l->device->capability);
}

static bool list_or_compile(const KernelSet *set, const Library *l, const Settings *s)
{
    for (size_t i = 0; s->list && i < set->count; i++)
        printf("%s\t%s\t%s\n", set->items[i].name, set->items[i].program,
               set->items[i].parameters);
    if (s->list)
        return true;
    if (!kernels_compile(set, s, target_of(l, s), s->output))
        return false;
    printf("%zu kernels for %s in '%s'\n", set->count, target_of(l, s), s->output);
    return true;
}

int command_kernels(const Settings *s)
{
    Library l = {0};
    KernelSet set = {0};
    const tilus_matmul_problem problem = problem_of(s, s->n, s->k);
    if (!s->output && !s->list) {
        fail("kernels wants -o, the folder that gets them, or --list");
        return EXIT_USAGE;
    }
    tilus_matmul_plan *plan = library_open(&l, s, false) ? library_plan(&l, &problem) : NULL;
    bool ok = plan && kernels_add(&set, plan, most_rows(s)) && list_or_compile(&set, &l, s);
    tilus_matmul_plan_free(plan);
    library_close(&l);
    kernels_free(&set);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
