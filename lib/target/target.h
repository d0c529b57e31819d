/* The targets that can be compiled for, and the choice of one for a device. Depends on
 * nothing but the table, so the matmul library shares it. Pure functions; thread safe. */
#ifndef TILUS_TARGET_TARGET_H
#define TILUS_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of targets.def. */
typedef struct Target {
    const char *name;       /* LLVM's and ptxas's, "sm_90a" */
    unsigned sm;            /* 90 */
    unsigned ptx;           /* the least PTX version that has it, 80 for 8.0 */
    int64_t shared_bytes;   /* a block's shared memory, opt-in limit */
    unsigned warps;         /* that a multiprocessor holds */
    bool own;               /* it has instructions of single architectures, as sm_90a */
} Target;

/* The i-th target; NULL past the last. */
const Target *target_at(size_t i);
/* The target called `name`, or NULL. */
const Target *target_find(const char *name);
/* The name of the first target with that number, static storage: "sm_90" of 90, "sm_100a" of 100; NULL:
 * there is none. */
const char *target_name_of(unsigned sm);
/* The best target whose code runs on a device of that compute capability (90 for 9.0): the
 * newest, with the architecture's own features where the device has exactly these. NULL for
 * devices older than every target. */
const Target *target_for(int capability);
/* The name of that target, static storage, or NULL. */
const char *target_name_for(int capability);

#endif
