/* Inside of the attention library: plans and launches. Its frame, which finds and loads kernels, is
 * support/kernel_library.h.
 *
 *     attention.c  opens the library
 *     problem.c    checks problems and shapes
 *     kernels.c    kernels by their names and parameters
 *     choose.c     the choice for a shape, by estimates of the time
 *     plan.c       plans, and text about them
 *     run.c        the launches of a call
 *     backward.c   those of gradients */
#ifndef TILUS_ATTENTION_INTERNAL_H
#define TILUS_ATTENTION_INTERNAL_H

#include "support/kernel_library.h"
#include "tilus/attention.h"

enum {
    ATTENTION_ALIGN = 256,          /* bytes, of parts of the workspace */
    ATTENTION_ROWS = 128,           /* of q that a block of the forward kernel has at a time .. */
    ATTENTION_WIDE_ROWS = 192,      /* .. and with three warpgroups */
    ATTENTION_LATENT = 512,         /* columns of a latent head that are also values .. */
    ATTENTION_ROPE = 64,            /* .. and those that carry positions */
    ATTENTION_LATENT_HEADS = 64,    /* of a block */
    ATTENTION_ROWS_MAX = 1 << 24,
    ATTENTION_LENGTH_MAX = 1 << 30,
    ATTENTION_GRID_MAX = 65535,
    ATTENTION_SPLITS_MAX = 1024,
    ATTENTION_FEW = 8,              /* splits, whose parts need few registers of @combine .. */
    ATTENTION_SOME = 32             /* .. or half of what it takes for more */
};

/* ---- kernels ------------------------------------------------------------ */

/* The arguments of the programs, of these names in the templates. */
#define ATTENTION_ARGUMENT_NAMES(ARGUMENT)                                                    \
    ARGUMENT(q) ARGUMENT(k) ARGUMENT(v) ARGUMENT(o) ARGUMENT(lse) ARGUMENT(sinks)             \
    ARGUMENT(mask) ARGUMENT(q_starts) ARGUMENT(k_starts) ARGUMENT(batch) ARGUMENT(heads)      \
    ARGUMENT(kv_heads) ARGUMENT(n) ARGUMENT(nk) ARGUMENT(longest) ARGUMENT(masks)             \
    ARGUMENT(left) ARGUMENT(right) ARGUMENT(scale) ARGUMENT(cap) ARGUMENT(scales)             \
    ARGUMENT(table) ARGUMENT(lengths) ARGUMENT(parts) ARGUMENT(sums) ARGUMENT(pages)          \
    ARGUMENT(columns) ARGUMENT(splits) ARGUMENT(cache) ARGUMENT(rows) ARGUMENT(x_k)           \
    ARGUMENT(x_v) ARGUMENT(slots) ARGUMENT(tokens) ARGUMENT(do) ARGUMENT(logs)                \
    ARGUMENT(delta) ARGUMENT(dq) ARGUMENT(dk) ARGUMENT(dv) ARGUMENT(arranged)

typedef enum AttentionArgument {
#define ARGUMENT(name) ATTENTION_ARGUMENT_##name,
    ATTENTION_ARGUMENT_NAMES(ARGUMENT)
#undef ARGUMENT
    ATTENTION_ARGUMENTS
} AttentionArgument;

/* Kernels of a plan: of forward problems the schedules but AUTO, then those of gradients, and of
 * 8-bit floats the one that arranges v, and both for three warpgroups. Others have four. */
enum {
    ATTENTION_K_SCHEDULE = 0,       /* + schedule - 1 */
    ATTENTION_K_ATTEND = 0,
    ATTENTION_K_COMBINE,
    ATTENTION_K_APPEND,             /* decode */
    ATTENTION_K_COMBINE_FEW,        /* of at most ATTENTION_FEW splits */
    ATTENTION_K_COMBINE_SOME,       /* decode: of at most ATTENTION_SOME */
    ATTENTION_K_DELTA = ATTENTION_K_COMBINE_FEW,    /* in the order of their launches */
    ATTENTION_K_BACKWARD,
    ATTENTION_K_DQ,
    ATTENTION_K_ARRANGE,
    ATTENTION_K_WIDE,
    ATTENTION_K_WIDE_ARRANGE,
    ATTENTION_KERNELS
};

struct tilus_attention {
    KernelLibrary library;
};

/* Finds kernel->order, as KernelCheck. */
tilus_status attention_check(Kernel *kernel, const tilus_kernel_info *info);

/* Finds the plan's kernels in its library. */
tilus_status attention_find_kernels(tilus_attention_plan *plan);

/* ---- problems ----------------------------------------------------------- */

/* A type of caches, as kernels read it. */
typedef struct CacheType {
    const char *name;
    int bits;
    bool zeros;                     /* codes have zero points */
    int most;                       /* of a float's values */
} CacheType;

/* Copies the problem, checks it and fills in its defaults; *cache is NULL where it is of numbers
 * of the problem's type. */
tilus_status attention_take_problem(const tilus_attention_problem *given,
                                    tilus_attention_problem *own, const CacheType **cache);

/* Copies the shape and checks that the plan can compute it. */
tilus_status attention_take_shape(const tilus_attention_plan *plan,
                                  const tilus_attention_shape *given, tilus_attention_shape *own);

/* ---- plans -------------------------------------------------------------- */

struct tilus_attention_plan {
    tilus_attention *attention;
    tilus_attention_problem problem;    /* with defaults */
    const CacheType *cache;             /* NULL: not of codes */
    int device, multiprocessors;
    bool hopper;                        /* sm_90a, else sm_80 */
    bool eight;                         /* forward of 8-bit floats */
    bool bulk;                          /* a warp copies whole pages of the cache */
    int tile;                           /* columns of a tile: tokens of an iteration */
    int wide;                           /* those of three warpgroups; 0: there is no such kernel */
    int64_t shared;                     /* bytes of shared memory of a block of decoding; else 0 */
    int blocks;                         /* of decoding on a multiprocessor, at most .. */
    int resident;                       /* .. and that have shared memory there */
    Kernel *kernels[ATTENTION_KERNELS]; /* NULL: there is none */
};

/* A schedule or a number of splits, and its estimate. */
typedef struct AttentionChoice {
    tilus_attention_schedule schedule;  /* forward .. */
    bool wide;                          /* .. by three warpgroups */
    int64_t splits;                     /* else */
    double us;
} AttentionChoice;

/* Chooses for a checked shape. */
AttentionChoice attention_choose(const tilus_attention_plan *plan,
                                 const tilus_attention_shape *shape);

/* Return the numbers of the kernels of a forward choice: the one of attention, and of 8-bit floats
 * the one that arranges v. */
int attention_forward_kernel(const AttentionChoice *choice);
int attention_arrange_kernel(const AttentionChoice *choice);

/* Returns the number of the kernel that adds up the parts of more than one split. */
int attention_combine_kernel(const tilus_attention_plan *plan, int64_t splits);

/* Returns the columns of a tile of the choice. */
int attention_tile(const tilus_attention_plan *plan, const AttentionChoice *choice);

/* Offsets in the workspace, bytes: f32 parts [rows of o, splits, columns], then sums [rows of o,
 * splits]. Of 8-bit floats forward: v in tiles of tokens, and no sums. */
typedef struct Space {
    size_t sums, size;
} Space;

Space attention_space(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                      const AttentionChoice *choice);

/* ---- launches ----------------------------------------------------------- */

enum { ATTENTION_LAUNCHES_MAX = 3 };

/* Loads the kernels, where they are not, and enqueues the launches, whose values are numbered by
 * AttentionArgument. */
tilus_status attention_launch(const tilus_attention_plan *plan, tilus_stream stream,
                              const KernelLaunch launches[], size_t count);

/* Marks the kernels that calls of a choice launch, also those of gradients. */
void attention_mark(const tilus_attention_plan *plan, const AttentionChoice *choice,
                    bool used[static ATTENTION_KERNELS]);

#endif
