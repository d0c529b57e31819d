/* --bench: a program measured as common/measure.h says, on copies of its buffers. */
#ifndef TILUS_RUN_BENCH_H
#define TILUS_RUN_BENCH_H

#include "common/measure.h"
#include "run.h"

#define BENCH_USER TOOL ": error: --bench"     /* begins messages */

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
    Measure measure;
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

    MeasureTimes graph, events;
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
bool flush_l2(void *bench, unsigned copy);
void flush_close(Bench *b);

/* bench_report.c: sorts the times, and prints to stdout. */
void bench_report(Bench *b);

#endif
