/* The workspace of a program: the tensors of its `allocate_global`s, one after
 * another, in memory that the caller lends to each launch.
 *
 *     0          zeroed                        bytes
 *     | zeroed ..   | constant sizes .. | other sizes .. |
 *
 * Zeroed tensors come first, so that one range is filled before a launch. Then
 * counts the attribute `place`, where tensors have it; those without one follow,
 * constant sizes before others, so that most offsets are constants. Each begins at
 * a multiple of TILUS_WORKSPACE_ALIGN bytes. None share bytes: nothing orders all
 * blocks of a launch, so that one may still use a tensor that another is done with.
 *
 * A launcher computes the same plan from what tilus_module_kernel_info says
 * (support/kernel_info.c), with checks against overflow: here sums of symbolic
 * sizes are exact because they have been checked. */
#ifndef TILUS_MEMORY_WORKSPACE_H
#define TILUS_MEMORY_WORKSPACE_H

#include "ir/ir.h"
#include "tilus/kernel.h"

typedef struct Workspace {
    unsigned count;
    Op **ops;                   /* allocate_global, in the order of their tensors */

    /* Set by workspace_place; in bytes, over the program's arguments. */
    const Expr **offsets;       /* count + 1 of them: the last is the size of all */
    const Expr *zeroed;         /* where the zeroed tensors end */
} Workspace;

/* Returns the workspace of `p`, without offsets; the arrays are on `arena`. */
Workspace workspace_of(Program *p, Arena *arena);

/* Computes the offsets. False after an error: a constant is over 63 bits. */
bool workspace_place(Module *m, Workspace *w, Arena *arena);

#endif
