/* PTX to cubin, by the ptxas of a CUDA toolkit in a process of its own. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"
#include "common/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The files of one run, in a folder of their own. */
typedef struct Files {
    char folder[PTXAS_PATH], in[PTXAS_PATH + 16], out[PTXAS_PATH + 16], log[PTXAS_PATH + 16];
} Files;

static bool files_open(Files *f)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%s/tilus-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(f->folder)) {
        fprintf(stderr, "tilus-llc: error: cannot make '%s': %s\n", f->folder, strerror(errno));
        return false;
    }
    snprintf(f->in, sizeof f->in, "%s/in.ptx", f->folder);
    snprintf(f->out, sizeof f->out, "%s/out.cubin", f->folder);
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    return true;
}

static void files_close(const Files *f)
{
    unlink(f->in);
    unlink(f->out);
    unlink(f->log);
    rmdir(f->folder);
}

/* ---- running ptxas ------------------------------------------------------------ */

/* Starts ptxas, which writes its messages to a file. */
static int start_ptxas(const char *ptxas, const char *cpu, const Files *f, pid_t *child)
{
    char arch[64];
    posix_spawn_file_actions_t actions;
    snprintf(arch, sizeof arch, "-arch=%s", cpu);
    char *const argv[] = {(char *)ptxas, "-v", arch, "-o", (char *)f->out, (char *)f->in, NULL};
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, f->log,
                                              O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!failed)
        failed = posix_spawn(child, ptxas, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static bool run_ptxas(const char *ptxas, const char *cpu, const Files *f)
{
    pid_t child;
    int status, failed = start_ptxas(ptxas, cpu, f, &child);
    if (failed) {
        fprintf(stderr, "tilus-llc: error: cannot run '%s': %s\n", ptxas, strerror(failed));
        return false;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            fprintf(stderr, "tilus-llc: error: lost '%s': %s\n", ptxas, strerror(errno));
            return false;
        }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "tilus-llc: error: '%s' %s %d\n", ptxas,
            WIFSIGNALED(status) ? "died of signal" : "failed with exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* Prints the messages of ptxas but for its figures, which -v asks for: "ptxas info : .." and
 * lines that begin with spaces. */
static void print_messages(const char *log)
{
    static const char info[] = "ptxas info";
    for (size_t len; *log; log += len) {
        len = strcspn(log, "\n");
        len += log[len] == '\n';
        if (*log != ' ' && strncmp(log, info, sizeof info - 1) != 0)
            fwrite(log, 1, len, stderr);
    }
}

/* ---- the interface -------------------------------------------------------------- */

bool assembler_wanted(const LlcSettings *s)
{
    const char *given = getenv("TILUS_PTXAS");
    char path[PTXAS_PATH], why[PTXAS_PATH + 128];
    return s->ptxas || (given && *given) || ptxas_find(path, why, sizeof why);
}

static char *assemble_by(const char *ptxas, const char *cpu, const char *ptx, size_t *size,
                         char **log)
{
    Files f;
    char *cubin = NULL;
    size_t log_size;
    if (!files_open(&f))
        return NULL;
    bool ok = file_write("tilus-llc", f.in, ptx, strlen(ptx)) && run_ptxas(ptxas, cpu, &f);
    if (access(f.log, R_OK) == 0 && file_read("tilus-llc", f.log, TEXT_SIZE_MAX, log, &log_size))
        print_messages(*log);
    if (ok)
        file_read("tilus-llc", f.out, FILE_SIZE_MAX, &cubin, size);
    files_close(&f);
    return cubin;
}

char *assemble(const LlcSettings *s, const char *ptx, size_t *size, char **log)
{
    char path[PTXAS_PATH], why[PTXAS_PATH + 128];
    *log = NULL;
    if (s->ptxas || ptxas_find(path, why, sizeof why))
        return assemble_by(s->ptxas ? s->ptxas : path, s->cpu, ptx, size, log);
    fprintf(stderr, "tilus-llc: error: %s\n", why);
    return NULL;
}
