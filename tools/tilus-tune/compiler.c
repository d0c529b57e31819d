/* A thread for each process: it hands out requests, reads answers and has kernels loaded. */
#define _GNU_SOURCE
#include "compiler.h"

#include "tilus/artefact.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

typedef struct Worker {
    Compiler *compiler;
    pthread_t thread;
    pid_t pid;                  /* 0: none runs */
    int to, from;
} Worker;

enum { BUCKETS = 4096 };

struct Compiler {
    const char *target;
    double seconds;
    Loader loader;
    unsigned jobs;              /* whose threads run */
    Worker *workers;
    pthread_mutex_t lock;       /* of what follows */
    pthread_cond_t wanted, done;
    Kernel *first, **last;      /* in the order in which they were asked for */
    Kernel *fresh;              /* no kernel before it is KERNEL_WANTED */
    Kernel *named[BUCKETS];     /* by hashes of names */
    size_t finished;
    bool end;
};

/* ---- processes -------------------------------------------------------- */

/* Ctrl-C, and signals to the whole group, are for the process that asks. */
static bool spawn(Worker *w, const posix_spawn_file_actions_t *actions)
{
    char *const argv[] = {(char *)TOOL, (char *)"worker", NULL};
    posix_spawnattr_t attributes;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    bool ok = posix_spawn(&w->pid, "/proc/self/exe", actions, &attributes, argv, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    return ok;
}

static bool start(Worker *w)
{
    int in[2], out[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    bool ok = spawn(w, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    w->to = in[1];
    w->from = out[0];
    if (!ok) {
        close(w->to);
        close(w->from);
        w->pid = 0;
    }
    return ok;
}

/* Describes how the process ended. */
static void stop(Worker *w, bool by_force, char *message, size_t size)
{
    int status = 0;
    if (by_force)
        kill(w->pid, SIGKILL);
    close(w->to);
    close(w->from);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    w->pid = 0;
    if (WIFSIGNALED(status))
        snprintf(message, size, "the compiler's process died: %s",
                 strsignal(WTERMSIG(status)));
    else
        snprintf(message, size, "the compiler's process ended, status %d",
                 WEXITSTATUS(status));
}

/* ---- one request ------------------------------------------------------ */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_ending(Compiler *c)
{
    pthread_mutex_lock(&c->lock);
    bool end = c->end;
    pthread_mutex_unlock(&c->lock);
    return end;
}

/* Reads exactly `size` bytes. Returns KERNEL_READY, or the end of the process. */
static KernelState read_all(Worker *w, char *to, size_t size, int64_t deadline)
{
    enum { SLICE_MS = 100 };
    while (size > 0) {
        struct pollfd p = {.fd = w->from, .events = POLLIN};
        int ready = poll(&p, 1, SLICE_MS);
        if (ready == 0 && (now_ms() > deadline || is_ending(w->compiler)))
            return KERNEL_LATE;
        if (ready <= 0)
            continue;
        ssize_t n = read(w->from, to, size);
        if (n == 0 || (n < 0 && errno != EINTR))
            return KERNEL_CRASHED;
        to += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return KERNEL_READY;
}

/* "ok 1234\n" */
static KernelState read_head(Worker *w, char *line, size_t size, int64_t deadline)
{
    KernelState state = KERNEL_READY;
    size_t n = 0;
    do {
        state = read_all(w, line + n, 1, deadline);
    } while (state == KERNEL_READY && line[n++] != '\n' && n < size - 1);
    line[n] = '\0';
    return state;
}

static KernelState read_answer(Worker *w, Kernel *k, int64_t deadline)
{
    char line[64], word[16];
    size_t size;
    KernelState state = read_head(w, line, sizeof line, deadline);
    if (state != KERNEL_READY)
        return state;
    if (sscanf(line, "%15s %zu", word, &size) != 2 || size > TILUS_ARTEFACT_MAX)
        return KERNEL_CRASHED;
    char *bytes = malloc(size + 1);
    if (!bytes)
        return KERNEL_CRASHED;
    state = read_all(w, bytes, size, deadline);
    bytes[size] = '\0';
    if (state == KERNEL_READY && strcmp(word, "ok") == 0) {
        k->bytes = bytes;
        k->size = size;
        return KERNEL_READY;
    }
    snprintf(k->message, sizeof k->message, "%s", bytes);
    free(bytes);
    return state == KERNEL_READY ? KERNEL_FAILED : state;
}

static bool ask(const Worker *w, const Kernel *k)
{
    char line[MATMUL_NAME_MAX + MATMUL_TEXT_MAX + 64];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\t%s\n", k->name,
                     matmul_program_name(k->program), w->compiler->target, k->parameters);
    return write(w->to, line, (size_t)n) == n;
}

static KernelState compile(Worker *w, Kernel *k)
{
    int64_t deadline = now_ms() + (int64_t)(1e3 * w->compiler->seconds);
    if (!w->pid && !start(w)) {
        snprintf(k->message, sizeof k->message, "cannot start a process: %s", strerror(errno));
        return KERNEL_FAILED;
    }
    KernelState state = ask(w, k) ? read_answer(w, k, deadline) : KERNEL_CRASHED;
    if (state == KERNEL_CRASHED)
        stop(w, true, k->message, sizeof k->message);
    else if (state == KERNEL_LATE) {
        stop(w, true, k->message, sizeof k->message);
        snprintf(k->message, sizeof k->message, "not compiled within %g s",
                 w->compiler->seconds);
    }
    return state;
}

/* ---- threads ---------------------------------------------------------- */

/* Takes the next kernel to compile, with the lock held. NULL: the compiler closes. */
static Kernel *take(Compiler *c)
{
    while (!c->end && !c->fresh)
        pthread_cond_wait(&c->wanted, &c->lock);
    if (c->end)
        return NULL;
    Kernel *k = c->fresh;
    c->fresh = k->next;
    k->state = KERNEL_COMPILING;
    return k;
}

static void *work(void *data)
{
    Worker *w = data;
    Compiler *c = w->compiler;
    char unused[128];
    pthread_mutex_lock(&c->lock);
    for (Kernel *k; (k = take(c));) {
        pthread_mutex_unlock(&c->lock);
        KernelState state = compile(w, k);
        if (state == KERNEL_READY && c->loader.load && !c->loader.load(c->loader.data, k))
            state = KERNEL_FAILED;
        pthread_mutex_lock(&c->lock);
        k->state = state;
        c->finished++;
        pthread_cond_broadcast(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    if (w->pid)
        stop(w, false, unused, sizeof unused);
    return NULL;
}

/* ---- the interface ---------------------------------------------------- */

Compiler *compiler_open(unsigned jobs, const char *target, double seconds, Loader loader)
{
    Compiler *c = calloc(1, sizeof *c);
    if (c)
        c->workers = calloc(jobs, sizeof *c->workers);
    if (!c || !c->workers) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        free(c);
        return NULL;
    }
    c->target = target;
    c->seconds = seconds;
    c->loader = loader;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wanted, NULL);
    pthread_cond_init(&c->done, NULL);
    for (; c->jobs < jobs; c->jobs++) {
        Worker *w = &c->workers[c->jobs];
        w->compiler = c;
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            break;
    }
    if (c->jobs > 0)
        return c;
    fprintf(stderr, "%s: error: cannot start a thread\n", TOOL);
    compiler_close(c);
    return NULL;
}

static void unload(Compiler *c, Kernel *k)
{
    if (k->loaded)
        c->loader.unload(c->loader.data, k);
    k->loaded = NULL;
}

void compiler_close(Compiler *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->end = true;
    pthread_cond_broadcast(&c->wanted);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->jobs; i++)
        pthread_join(c->workers[i].thread, NULL);
    for (Kernel *k = c->first, *next; k; k = next) {
        next = k->next;
        unload(c, k);
        free(k->bytes);
        free(k);
    }
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->wanted);
    pthread_mutex_destroy(&c->lock);
    free(c->workers);
    free(c);
}

/* Hashes a name by FNV-1a. */
static Kernel **find_bucket(Compiler *c, const char *name)
{
    uint32_t hash = 2166136261;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619;
    return &c->named[hash % BUCKETS];
}

/* Makes a kernel, with the lock held. NULL: out of memory. */
static Kernel *add(Compiler *c, Kernel **bucket, const char *name)
{
    Kernel *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    snprintf(k->name, sizeof k->name, "%s", name);
    k->alike = *bucket;
    *bucket = k;
    *c->last = k;
    c->last = &k->next;
    if (!c->fresh)
        c->fresh = k;
    return k;
}

Kernel *compiler_want(Compiler *c, const MatmulSpec *spec, const MatmulConfig *config,
                      MatmulProgram program)
{
    char name[MATMUL_NAME_MAX];
    matmul_name(spec, config, program, c->target, name);
    pthread_mutex_lock(&c->lock);
    Kernel **bucket = find_bucket(c, name), *k = *bucket;
    while (k && strcmp(k->name, name) != 0)
        k = k->alike;
    if (!k && (k = add(c, bucket, name))) {
        matmul_parameters(spec, config, program, k->parameters);
        k->program = program;
        pthread_cond_signal(&c->wanted);
    }
    if (k)
        k->users++;
    pthread_mutex_unlock(&c->lock);
    if (!k)
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
    return k;
}

void compiler_drop(Compiler *c, Kernel *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&c->lock);
    bool over = --k->users == 0 && kernel_is_settled(k->state);
    pthread_mutex_unlock(&c->lock);
    if (over)
        unload(c, k);
}

Kernel *compiler_first(Compiler *c)
{
    pthread_mutex_lock(&c->lock);
    Kernel *first = c->first;
    pthread_mutex_unlock(&c->lock);
    return first;
}

KernelState compiler_state(Compiler *c, const Kernel *kernel)
{
    pthread_mutex_lock(&c->lock);
    KernelState state = kernel->state;
    pthread_mutex_unlock(&c->lock);
    return state;
}

size_t compiler_wait(Compiler *c, size_t seen)
{
    enum { WAIT_NS = 100000000, SECOND_NS = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    pthread_mutex_lock(&c->lock);
    int error = 0;
    while (c->finished <= seen && error == 0)
        error = pthread_cond_timedwait(&c->done, &c->lock, &until);
    size_t finished = c->finished;
    pthread_mutex_unlock(&c->lock);
    return finished;
}
