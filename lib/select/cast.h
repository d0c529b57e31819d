/* The cast plans (cast/plan.h) by which a cast, dequantize, decode or lookup converts the
 * elements of a thread.
 *
 *     %y = cast %x {via = magic} : f16
 *
 *     via          a family of cast plans, or `elements`: one after another
 *
 * Plans are made for runs of CAST_ELEMENTS_MAX slots, which fill whole words of all types,
 * and for the slots that are left. */
#ifndef TILUS_SELECT_CAST_H
#define TILUS_SELECT_CAST_H

#include "cast/plan.h"
#include "ir/ir.h"

typedef struct CastRuns {
    DType from, to;
    DType packed;               /* the storage order of what is converted */
    int64_t slots;
    bool planned;               /* else bits are moved, where the types are equal, or
                                   elements are converted one after another */
    unsigned count;
    const CastPlan **plans;     /* of each run; equal ones are shared; scratch memory */
} CastRuns;

typedef struct CastChoice {
    CastRuns codes;             /* less zero points where these are `folded` */
    bool folded;                /* zero points come off in the cast of the codes */
    CastRuns scales, zeros;     /* of dequantize: to the result's type, to be spread */
} CastChoice;

/* Slots of run `i`: CAST_ELEMENTS_MAX, or what is left. */
unsigned cast_run_length(const CastRuns *runs, unsigned i);

/* Operations of all runs; constants and preparing a table are none. */
unsigned cast_runs_total(const CastRuns *runs);

/* The plan of `op`, one of those, for targets from number `sm` on. False after an error. */
bool cast_choose(Module *m, const Op *op, unsigned sm, CastChoice *choice);

#endif
