/* Random programs: texts that the verifier accepts, with arguments and memory
 * for one launch. They are small (some thousand elements in all), read what is
 * defined only, and are free of races by construction: each block writes bytes
 * of its own or waits for its turn, and what threads exchange is ordered by barriers.
 * What they compute ends in their buffers.
 *
 * Equal decisions give equal programs. */
#ifndef TILUS_FUZZ_PROGRAM_GEN_H
#define TILUS_FUZZ_PROGRAM_GEN_H

#include "choices.h"

#include "support/arena.h"
#include "tilus/tilus.h"
#include "types/dtype.h"

typedef struct GenOptions {
    bool races;         /* leave out some barriers and waits */
    bool tight;         /* rather programs that check-hazards may prove safe */
    bool rings;         /* only mbarriers and bulk copies */
    bool failures;      /* some assertions do not hold */
    bool bulk;          /* mbarriers and bulk copies, of sm_90 and later */
    bool wgmma;         /* asynchronous products, of sm_90a */
    bool exact;         /* no op whose result is approximate, or depends on an order that
                           a machine is free to choose; no bits of a NaN as a number */
} GenOptions;

/* Everything on the arena it was made with. */
typedef struct GenProgram {
    const char *text;           /* one program, @random */
    const char *open_text;      /* the same with some layouts left out, or NULL */
    const tilus_arg *args;      /* of pointers: indices into `buffers` */
    size_t arg_count;
    const tilus_buffer *buffers;    /* what memory holds before the launch */
    const DType *dtypes;        /* what their elements are */
    size_t buffer_count;
    bool may_race;      /* a barrier or a wait was left out */
    bool may_fail;      /* an assertion does not hold */
} GenProgram;

#define GEN_PROGRAM_NAME "random"

/* The next program that `choices` describes. Memory that runs out jumps to the
 * arena's guard. */
GenProgram program_generate(Choices *choices, const GenOptions *options, Arena *arena);

#endif
