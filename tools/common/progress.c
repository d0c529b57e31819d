/* A thread draws, so that a line comes also while one step takes long. */
#define _DEFAULT_SOURCE
#include "common/progress.h"

#include <stdbool.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 2000, REDRAW_MS = 250 };

struct Progress {
    const char *tool, *what, *steps;
    struct timespec start;
    _Atomic int64_t done, total;        /* steps; a total of 0: none has begun */
    thrd_t thread;
    mtx_t mutex;                        /* of what follows, and of drawing */
    cnd_t ended;
    bool end, drawn;
};

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static struct timespec after(struct timespec t, long ms)
{
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* ---- drawing -------------------------------------------------------- */

static void print_seconds(double seconds)
{
    unsigned long long whole = (unsigned long long)(seconds + 0.5);
    if (whole >= 3600)
        fprintf(stderr, "%llu h %llu min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        fprintf(stderr, "%llu min %llu s", whole / 60, whole % 60);
    else
        fprintf(stderr, "%llu s", whole);
}

/* Columns past the 79th would begin another line, which is not drawn over. */
static void draw(Progress *p)
{
    int64_t done = atomic_load(&p->done), total = atomic_load(&p->total);
    double seconds = seconds_since(&p->start), rate = (double)done / seconds;
    fprintf(stderr, "\r\033[K%s: %s: ", p->tool, p->what);
    if (total > 0)
        fprintf(stderr, "%lld of %lld %s, ", (long long)done, (long long)total,
                p->steps);
    if (done > 0) {
        fprintf(stderr, rate < 10 ? "%.2g %s/s, " : "%.0f %s/s, ", rate, p->steps);
        print_seconds((double)(total - done) / rate);
        fputs(" left", stderr);
    } else {
        print_seconds(seconds);
        fputs(" so far", stderr);
    }
    fflush(stderr);
    p->drawn = true;
}

static void erase(Progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

static int draw_until_end(void *data)
{
    Progress *p = data;
    struct timespec next = after(p->start, QUIET_MS);
    mtx_lock(&p->mutex);
    while (!p->end)
        if (cnd_timedwait(&p->ended, &p->mutex, &next) == thrd_timedout && !p->end) {
            draw(p);
            timespec_get(&next, TIME_UTC);
            next = after(next, REDRAW_MS);
        }
    mtx_unlock(&p->mutex);
    return 0;
}

/* ---- the interface -------------------------------------------------- */

Progress *progress_begin(const char *tool, const char *what, const char *steps)
{
    if (!isatty(STDERR_FILENO))
        return NULL;
    Progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->tool = tool;
    p->what = what;
    p->steps = steps;
    timespec_get(&p->start, TIME_UTC);
    bool has_mutex = mtx_init(&p->mutex, mtx_plain) == thrd_success;
    bool has_condition = has_mutex && cnd_init(&p->ended) == thrd_success;
    if (has_condition && thrd_create(&p->thread, draw_until_end, p) == thrd_success)
        return p;
    if (has_condition)
        cnd_destroy(&p->ended);
    if (has_mutex)
        mtx_destroy(&p->mutex);
    free(p);
    return NULL;
}

void progress_update(void *progress, int64_t done, int64_t total)
{
    Progress *p = progress;
    if (!p)
        return;
    atomic_store(&p->total, total);
    atomic_store(&p->done, done);
}

void progress_hide(Progress *p)
{
    if (!p)
        return;
    mtx_lock(&p->mutex);
    erase(p);
    mtx_unlock(&p->mutex);
}

void progress_end(Progress *p)
{
    if (!p)
        return;
    mtx_lock(&p->mutex);
    p->end = true;
    cnd_signal(&p->ended);
    mtx_unlock(&p->mutex);
    thrd_join(p->thread, NULL);
    erase(p);
    cnd_destroy(&p->ended);
    mtx_destroy(&p->mutex);
    free(p);
}
