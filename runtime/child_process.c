/* Runs a child by posix_spawn. The input is a file in memory, so that writing it cannot block or
 * raise SIGPIPE; both outputs are pipes that one poll reads, so that neither fills up while the
 * other is waited for. The child leads a process group: its end is that of all it started. */
#define _GNU_SOURCE
#include "child_process.h"

#include "support/clock.h"
#include "support/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    FIRST_FD = 3,               /* below are the standard streams, also where a server closed them */
    READ_SIZE = 1 << 14,        /* a pipe holds 64 KiB, a large one 1 MiB, .. */
    READS_MOST = 1 << 7,        /* .. and a child that never pauses has its time, too */
    POLL_MILLISECONDS = 50,     /* how late an end is seen while a grandchild holds the pipes ... */
    WAIT_MILLISECONDS = 1       /* ... and when no pipe is open */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- starting ------------------------------------------------------------ */

/* Gives a descriptor a number that no standard stream has. */
static bool move_up(int *fd)
{
    if (*fd < 0 || *fd >= FIRST_FD)
        return *fd >= 0;
    int higher = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FD);
    close(*fd);
    *fd = higher;
    return higher >= 0;
}

/* Returns true where a file may be so large: a write beyond the process's limit would raise
 * SIGXFSZ. */
static bool may_write(size_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        size <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

/* Opens the child's standard input. */
static int open_input(const ChildRun *run)
{
    int fd = run->input ? memfd_create("tilus", MFD_CLOEXEC)
                        : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!move_up(&fd))
        return -1;
    if (run->input && (!may_write(run->input_size) ||
                       !file_write_all(fd, run->input, run->input_size) ||
                       lseek(fd, 0, SEEK_SET) != 0))
        close_fd(&fd);
    return fd;
}

/* Opens a pipe that `output` reads without waiting; returns the end to write to. */
static int open_output(ChildOutput *output)
{
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    if (!move_up(&ends[0]) || !move_up(&ends[1]) || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        close_fd(&ends[0]);
        close_fd(&ends[1]);
    }
    output->fd = ends[0];
    return ends[1];
}

/* Signals as a program expects them, whatever the server blocks or ignores. */
static int set_signals(posix_spawnattr_t *attributes)
{
    static const int usual[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGXCPU,
                                SIGXFSZ, SIGALRM};
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        sigaddset(&defaults, usual[i]);
    int error = posix_spawnattr_setsigmask(attributes, &none);
    error = error ? error : posix_spawnattr_setsigdefault(attributes, &defaults);
    error = error ? error : posix_spawnattr_setpgroup(attributes, 0);
    return error ? error : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* The standard streams and nothing else. */
static int set_files(posix_spawn_file_actions_t *actions, const int fds[3])
{
    int error = 0;
    for (int i = 0; !error && i < 3; i++)
        error = posix_spawn_file_actions_adddup2(actions, fds[i], i);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    error = error ? error : posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FD);
#endif
#endif
    return error;
}

/* Returns 0 or an errno. */
static int spawn(const ChildRun *run, const int fds[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_files(&actions, fds);
        error = error ? error : set_signals(&attributes);
        error = error ? error : posix_spawnp(pid, run->arguments[0], &actions, &attributes,
                                             run->arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Returns 0 or an errno; the pipes are open then. */
static int start(ChildRun *run, pid_t *pid)
{
    run->out.fd = run->err.fd = -1;
    errno = 0;
    int fds[3] = {open_input(run), -1, -1};
    fds[1] = fds[0] < 0 ? -1 : open_output(&run->out);
    fds[2] = fds[1] < 0 ? -1 : open_output(&run->err);
    int error = fds[2] >= 0 ? spawn(run, fds, pid) : errno ? errno : EMFILE;
    for (int i = 0; i < 3; i++)
        close_fd(&fds[i]);
    return error;
}

/* ---- reading --------------------------------------------------------------- */

/* Makes room for `size` more bytes and a NUL. */
static bool reserve(ChildOutput *o, size_t size)
{
    size_t needed = o->size + size + 1, capacity = 2 * o->capacity;
    if (needed <= o->capacity)
        return true;
    capacity = capacity > needed ? capacity : needed;
    char *bytes = realloc(o->bytes, capacity);
    if (!bytes)
        return false;
    o->bytes = bytes;
    o->capacity = capacity;
    return true;
}

/* Keeps what there is room for. */
static bool keep(ChildOutput *o, const char *bytes, size_t size)
{
    size_t room = o->most - o->size, kept = size < room ? size : room;
    o->dropped += size - kept;
    if (!reserve(o, kept))
        return false;
    memcpy(o->bytes + o->size, bytes, kept);
    o->size += kept;
    o->bytes[o->size] = 0;
    return true;
}

/* Reads what is there now, all that a pipe holds. False: memory ran out. */
static bool read_output(ChildOutput *o)
{
    char buffer[READ_SIZE];
    for (int reads = 0; o->fd >= 0 && reads < READS_MOST; reads++) {
        ssize_t n = read(o->fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            close_fd(&o->fd);
        else if (!keep(o, buffer, (size_t)n))
            return false;
    }
    return true;
}

/* Reads both; false where the child must not go on, and why. */
static bool read_outputs(ChildRun *run, ChildEnd *why)
{
    *why = CHILD_NO_MEMORY;
    if (!read_output(&run->out) || !read_output(&run->err))
        return false;
    *why = CHILD_LOUD;
    return run->out.dropped == 0;
}

static void wait_for_output(const ChildRun *run, int64_t milliseconds)
{
    struct pollfd fds[] = {{run->out.fd, POLLIN, 0}, {run->err.fd, POLLIN, 0}};
    bool is_open = run->out.fd >= 0 || run->err.fd >= 0;
    int most = is_open ? POLL_MILLISECONDS : WAIT_MILLISECONDS;
    poll(fds, 2, milliseconds < most ? (int)milliseconds : most);
}

/* ---- the end ---------------------------------------------------------------- */

/* Returns true when the child has ended; it stays a zombie, and so its group has no other
 * number. */
static bool has_ended(pid_t pid, bool *is_reaped)
{
    siginfo_t info = {0};
    int status;
    do
        status = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (status != 0 && errno == EINTR);
    *is_reaped = status != 0;
    return *is_reaped || info.si_pid == pid;
}

/* Ends the child's group, and waits for the child. */
static ChildResult reap(pid_t pid)
{
    int status;
    pid_t got;
    kill(-pid, SIGKILL);
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return (ChildResult){CHILD_REAPED, 0};
    if (WIFSIGNALED(status))
        return (ChildResult){CHILD_SIGNALED, WTERMSIG(status)};
    return (ChildResult){CHILD_EXITED, WEXITSTATUS(status)};
}

/* Reads until the child ends or must end. */
static ChildResult follow(ChildRun *run, pid_t pid)
{
    const int64_t start = clock_nanoseconds();
    ChildEnd why = CHILD_LATE;
    for (;;) {
        uint64_t passed = (uint64_t)(clock_nanoseconds() - start) / 1000000;
        bool is_reaped, ended = has_ended(pid, &is_reaped);
        bool reads = read_outputs(run, &why);
        if (ended && reads)
            return is_reaped ? (ChildResult){CHILD_REAPED, 0} : reap(pid);
        if (!reads)
            break;
        why = CHILD_LATE;
        if (passed >= run->milliseconds)
            break;
        uint64_t left = run->milliseconds - passed;
        wait_for_output(run, left < INT32_MAX ? (int64_t)left : INT32_MAX);
    }
    reap(pid);
    return (ChildResult){why, 0};
}

ChildResult child_run(ChildRun *run)
{
    pid_t pid;
    int error = start(run, &pid);
    ChildResult result = {CHILD_NOT_STARTED, error};
    if (!error)
        result = follow(run, pid);
    close_fd(&run->out.fd);
    close_fd(&run->err.fd);
    return result;
}
