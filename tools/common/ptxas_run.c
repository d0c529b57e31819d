/* Running ptxas and nvdisasm, each in a process of its own. */
#define _GNU_SOURCE
#include "common/ptxas.h"

#include "common/file.h"

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

static bool files_open(const char *tool, Files *f)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%s/tilus-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(f->folder)) {
        fprintf(stderr, "%s: error: cannot make '%s': %s\n", tool, f->folder,
                strerror(errno));
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

/* Starts a program, which prints to a file, and its messages to the same or another one. */
static int start(char *const argv[], const char *out, const char *log, pid_t *child)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND, MODE = 0600 };
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, FLAGS, MODE);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, FLAGS, MODE);
    if (!failed)
        failed = posix_spawn(child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static bool run(const char *tool, char *const argv[], const char *out, const char *log)
{
    pid_t child;
    int status, failed = start(argv, out, log, &child);
    if (failed) {
        fprintf(stderr, "%s: error: cannot run '%s': %s\n", tool, argv[0], strerror(failed));
        return false;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            fprintf(stderr, "%s: error: lost '%s': %s\n", tool, argv[0], strerror(errno));
            return false;
        }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "%s: error: '%s' %s %d\n", tool, argv[0],
            WIFSIGNALED(status) ? "died of signal" : "failed with exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* Prints the messages of ptxas except its figures, which -v asks for: "ptxas info : .." and
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

char *ptxas_assemble(const char *tool, const char *ptxas, const char *cpu, const char *ptx,
                     bool lines, size_t *size, char **log)
{
    Files f;
    char *cubin = NULL, arch[64];
    size_t log_size;
    *log = NULL;
    if (!files_open(tool, &f))
        return NULL;
    snprintf(arch, sizeof arch, "-arch=%s", cpu);
    char *const argv[] = {(char *)ptxas, "-v", arch, "-o", f.out, f.in,
                          lines ? "-lineinfo" : NULL, NULL};
    bool ok = file_write(tool, f.in, ptx, strlen(ptx)) && run(tool, argv, f.log, f.log);
    if (access(f.log, R_OK) == 0 && file_read(tool, f.log, TEXT_SIZE_MAX, log, &log_size))
        print_messages(*log);
    if (ok)
        file_read(tool, f.out, FILE_SIZE_MAX, &cubin, size);
    files_close(&f);
    return cubin;
}

char *nvdisasm_print(const char *tool, const char *nvdisasm, const char *cubin, size_t size)
{
    Files f;
    char *text = NULL;
    size_t text_size;
    if (!files_open(tool, &f))
        return NULL;
    char *const argv[] = {(char *)nvdisasm, "-g", "-c", f.in, NULL};
    if (file_write(tool, f.in, cubin, size) && run(tool, argv, f.out, f.log))
        file_read(tool, f.out, TEXT_SIZE_MAX, &text, &text_size);
    files_close(&f);
    return text;
}
