/* How long a launch takes on a device, in two ways.
 *
 * graph: a CUDA graph of many launches, which take one copy of the buffers after the
 *     other. Where the copies are much larger than the L2 cache, each launch finds its
 *     data in memory, and what it costs to launch is hidden, as it is in a server.
 * events: between two events on a stream, after the L2 cache was filled with something
 *     else by reading it. (Writing would leave lines that are written back in the
 *     meantime.) What it costs to launch is in it.
 */
#ifndef TILUS_RUN_BENCH_H
#define TILUS_RUN_BENCH_H

#include "driver.h"
#include "run.h"

enum { BENCH_REPLAYS = 50 };

/* Fills the L2 cache by reading: a program of ours, and its arguments. */
typedef struct Flush {
    tilus_diag *diag;
    tilus_module *module;
    tilus_kernel *kernel;
    tilus_arg args[3];
    CUdeviceptr memory;
} Flush;

typedef struct Bench {
    Run *run;
    Driver driver;
    CUdevice device;
    CUcontext context;          /* NULL until it is current */
    CUstream stream;
    CUevent start, end;
    size_t l2;                  /* bytes of the cache */
    tilus_kernel *kernel;
    CUdeviceptr workspace;
    size_t workspace_size;
    Flush flush;

    /* Copies of the buffers: of each argument, one after the other. */
    tilus_arg *args;            /* of one launch */
    CUdeviceptr *memory;        /* 0: a scalar */
    size_t *stride;             /* bytes from one copy to the next */
    size_t copy_bytes;          /* of all arguments, with what lies between */
    size_t bytes;               /* of all arguments */
    unsigned copies;

    CUgraph graph;
    CUgraphExec exec;
    unsigned launches;          /* in it */
    double graph_us[BENCH_REPLAYS], events_us[BENCH_REPLAYS];   /* of a launch */
} Bench;

/* bench.c: measures and prints. Returns an exit code. */
int bench_run(Run *run);

/* Code for the device; a failure stands on stderr. */
tilus_kernel *bench_load(Run *run, const char *ptx, const tilus_kernel_info *info);
/* Enqueues a launch. False after a failure, which stands on stderr. */
bool bench_launch(Bench *b, tilus_kernel *kernel, const tilus_arg *args, size_t count,
                  CUdeviceptr workspace, size_t workspace_size);

/* bench_copies.c: allocates and fills copies; puts those of number `copy` into b->args. */
bool copies_open(Bench *b);
void copies_choose(Bench *b, unsigned copy);
void copies_close(Bench *b);

/* bench_flush.c */
bool flush_open(Bench *b);
bool flush_l2(Bench *b);
void flush_close(Bench *b);

/* bench_report.c: sorts the times, and prints to stdout. */
void bench_report(Bench *b);

#endif
