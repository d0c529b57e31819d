/* PTX to cubin, by the ptxas of a CUDA toolkit in a process of its own. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"
#include "common/ptxas.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Runs ptxas, whose messages go where ours go. */
static bool run_ptxas(const char *ptxas, const char *cpu, const char *in, const char *out)
{
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", cpu);
    char *const argv[] = {(char *)ptxas, arch, "-o", (char *)out, (char *)in, NULL};
    pid_t child;
    int status, failed = posix_spawn(&child, ptxas, NULL, NULL, argv, environ);
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

bool assembler_wanted(void)
{
    const char *given = getenv("TILUS_PTXAS");
    char path[PTXAS_PATH], why[PTXAS_PATH + 128];
    return (given && *given) || ptxas_find(path, why, sizeof why);
}

char *assemble(const char *cpu, const char *ptx, size_t *size)
{
    char ptxas[PTXAS_PATH], dir[PTXAS_PATH], in[PTXAS_PATH + 16], out[PTXAS_PATH + 16];
    char why[PTXAS_PATH + 128];
    const char *temporary = getenv("TMPDIR");
    char *cubin = NULL;
    if (!ptxas_find(ptxas, why, sizeof why)) {
        fprintf(stderr, "tilus-llc: error: %s\n", why);
        return NULL;
    }
    snprintf(dir, sizeof dir, "%s/tilus-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(dir)) {
        fprintf(stderr, "tilus-llc: error: cannot make '%s': %s\n", dir, strerror(errno));
        return NULL;
    }
    snprintf(in, sizeof in, "%s/in.ptx", dir);
    snprintf(out, sizeof out, "%s/out.cubin", dir);
    if (file_write("tilus-llc", in, ptx, strlen(ptx)) && run_ptxas(ptxas, cpu, in, out))
        file_read("tilus-llc", out, FILE_SIZE_MAX, &cubin, size);
    unlink(in);
    unlink(out);
    rmdir(dir);
    return cubin;
}
