/* A launch with given arguments: numbers of scalars at one place of a program's run. */
#ifndef TILUS_EXPLAIN_LAUNCH_H
#define TILUS_EXPLAIN_LAUNCH_H

#include "tool.h"

#include "ir/ir.h"
#include "tilus/runtime.h"

/* Arguments of one program: integers by their numbers. */
typedef struct Arguments {
    const tilus_kernel_info *info;
    tilus_arg *values;
    bool *known;
} Arguments;

/* Reads those of --arg that the program has; false after a message. Closed in each case. */
bool arguments_open(Explain *e, const char *program, Arguments *a);
void arguments_close(Arguments *a);

enum { PLACE_LOOPS = 32 };

/* A place of a run: a block, and an iteration of each loop around. */
typedef struct Place {
    const Arguments *arguments;
    const int64_t *block;       /* its indices, or NULL: of any block */
    struct {
        const Value *index;
        int64_t number;
    } loops[PLACE_LOOPS];
    unsigned depth;
} Place;

/* Gives the number of an expression there; false where it does not follow from the place, or is
 * undefined. */
bool place_evaluate(const Place *p, const Expr *e, int64_t *number);

/* Adds "operations" to a launch: those of products by the type of their factors, a
 * multiplication and an addition each; null where loops and conditions do not follow from the
 * arguments. `grid` is NULL when the launch is refused. */
void launch_operations(Explain *e, json_t *launch, const Arguments *a, const int64_t *grid);

/* Adds "bandwidth", "floor_us" and "floor_by" to a launch that has bytes and operations. */
void launch_floor(Explain *e, json_t *launch);

#endif
