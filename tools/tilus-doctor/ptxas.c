/* ptxas: which, and its version. Only cubins need it. */
#define _GNU_SOURCE
#include "doctor.h"

#include "common/ptxas.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts `path --version`, which writes to a pipe; its reading end, or -1. */
static int start(const char *path, pid_t *child)
{
    char *const argv[] = {(char *)path, "--version", NULL};
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) ||
                 posix_spawn_file_actions_addclose(&actions, ends[0]) ||
                 posix_spawn_file_actions_addclose(&actions, ends[1]) ||
                 posix_spawn(child, path, &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (!failed)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* The number after "release ", which ptxas says; false if it does not run or says none. */
static bool read_version(const char *path, char *version, size_t size)
{
    pid_t child;
    char line[256], *at;
    bool found = false;
    int status, pipe_end = start(path, &child);
    FILE *in = pipe_end >= 0 ? fdopen(pipe_end, "r") : NULL;
    while (in && fgets(line, sizeof line, in))
        if ((at = strstr(line, "release ")) && !found) {
            at += strlen("release ");
            snprintf(version, size, "%.*s", (int)strcspn(at, ",\n"), at);
            found = true;
        }
    if (in)
        fclose(in);
    else if (pipe_end >= 0)
        close(pipe_end);
    if (pipe_end >= 0)
        waitpid(child, &status, 0);
    return found;
}

void doctor_check_ptxas(void)
{
    char path[PTXAS_PATH], why[PTXAS_PATH + 128], version[64];
    if (!ptxas_find(path, why, sizeof why))
        doctor_row("ptxas", "%s", why);
    else if (read_version(path, version, sizeof version))
        doctor_row("ptxas", "%s, CUDA %s", path, version);
    else
        doctor_row("ptxas", "%s, which does not tell its version", path);
}
