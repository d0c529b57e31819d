/* Inside of the library of big integers: kernels by name, plans, launches.
 *
 *     bigint.c    opens the library, keeps its options, reports failures
 *     kernels.c   the table of kernels; finds artefacts and loads them, each once
 *     roots.c     the table of roots of unity, on each device that transforms
 *     plan.c      plans: chooses by sizes, says what was chosen
 *     mul.c       the launches of a product */
#ifndef TILUS_BIGINT_INTERNAL_H
#define TILUS_BIGINT_INTERNAL_H

#include "tilus/bigint.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    BIGINT_ALIGN = 256,             /* bytes, of parts of the workspace */
    BIGINT_PART = 8192,             /* bytes of a product of which a block resolves the carries */
    BIGINT_SMALL = 1024,            /* likewise, where larger parts would be few */
    BIGINT_TILE = 4096,             /* points of a block of a transform */
    BIGINT_PASSES_MAX = 4,          /* of a transform */
    BIGINT_LOG_MIN = 12,            /* of the points of the shortest transform */
    BIGINT_LOG_MAX = 26,            /* of the longest */
    BIGINT_RADIX_MIN = 6,           /* logs of a pass's radix */
    BIGINT_RADIX_MAX = 9,
    BIGINT_LAUNCHES_MAX = 5 + 2 * BIGINT_PASSES_MAX,
    BIGINT_ARGUMENTS_MAX = 8,
    BIGINT_DEVICES_MAX = 64
};

/* ---- failures ----------------------------------------------------------- */

/* Keeps the text for tilus_rt_error, and returns the status. */
tilus_status bigint_fail(tilus_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define bigint_refuse(...) bigint_fail(TILUS_ERROR_ARGUMENT, __VA_ARGS__)
tilus_status bigint_fail_memory(void);

/* Copies the caller's struct, an `object` ("problem"), to `to`, of `type`; NULL is refused. */
#define BIGINT_TAKE(type, to, from, object) \
    bigint_take((type *){(to)}, sizeof(type), (const type *){(from)}, object, #type)
tilus_status bigint_take(void *to, size_t size, const void *from, const char *object,
                         const char *name);

/* ---- kernels ------------------------------------------------------------ */

typedef enum BigintProgram {
    BIGINT_PRODUCT, BIGINT_CARRY, BIGINT_SPREAD, BIGINT_FORWARD, BIGINT_BACKWARD, BIGINT_GATHER
} BigintProgram;

/* Rows of the table of kernels: products by tiles of 512 << i bytes, passes by radix. Of `LOOSE`
 * ones addresses and lengths are any; of `INNER` passes columns have more than one point. */
enum {
    BIGINT_TILES = 5,
    BIGINT_RADICES = BIGINT_RADIX_MAX - BIGINT_RADIX_MIN + 1,
    BIGINT_K_PRODUCT = 0,                                   /* + 2 * tile + loose */
    BIGINT_K_CARRY = BIGINT_K_PRODUCT + 2 * BIGINT_TILES,
                                                            /* + 2 * small + loose; then + loose */
    BIGINT_K_SPREAD = BIGINT_K_CARRY + 4,
    BIGINT_K_GATHER = BIGINT_K_SPREAD + 2,
    BIGINT_K_FORWARD = BIGINT_K_GATHER + 2,                 /* + 2 * (radix - 6) + last */
    BIGINT_K_BACKWARD = BIGINT_K_FORWARD + 2 * BIGINT_RADICES,
    BIGINT_KERNELS = BIGINT_K_BACKWARD + 2 * BIGINT_RADICES
};

/* A row of the table: its texts are static. */
typedef struct BigintRow {
    BigintProgram program;
    char name[32], parameters[64];
} BigintRow;

/* Writes the i-th row. */
void bigint_row(int i, BigintRow *row);

/* Returns the name of a program. */
const char *bigint_program_name(BigintProgram program);

/* A kernel for one target. */
typedef struct Kernel {
    pthread_mutex_t lock;               /* of loading */
    _Atomic(tilus_kernel *) loaded;     /* NULL: not yet; then as it is */
} Kernel;

enum { BIGINT_TARGETS = 2 };            /* "sm_80", "sm_90a" */

/* Loads kernel i for a target, unless it was, and makes it ready on the device. */
tilus_status bigint_kernel_prepare(tilus_bigint *bigint, int i, int target, int device);

/* ---- the library -------------------------------------------------------- */

struct tilus_bigint {
    tilus_rt *rt;
    tilus_bigint_options options;
    char *directory;                                /* options.directory, a copy */
    Kernel kernels[BIGINT_TARGETS][BIGINT_KERNELS];
    pthread_mutex_t lock;                           /* of what follows */
    uint64_t roots[BIGINT_DEVICES_MAX];             /* 0: not yet there */
};

/* Returns the address of the table of roots on the device, made at the first call, in *out. */
tilus_status bigint_roots_prepare(tilus_bigint *bigint, int device, uint64_t *out);

/* Writes the table, as kernels/bigint_ntt.tilus describes it. */
enum { BIGINT_ROOTS = 2 * 8192 + 32 };
void bigint_roots_write(uint64_t roots[static BIGINT_ROOTS]);

/* ---- plans -------------------------------------------------------------- */

/* Offsets in the workspace, bytes. */
typedef struct Space {
    size_t y, overflows, firsts, size;      /* x begins at 0 */
} Space;

struct tilus_bigint_plan {
    tilus_bigint *bigint;
    tilus_bigint_problem problem;   /* batch and b_bytes are not 0, method is not AUTO */
    int device, target;
    bool loose;                     /* lengths are not multiples of 16 */
    int tile;                       /* schoolbook: a block has 512 << tile bytes of a product */
    bool small;                     /* parts have BIGINT_SMALL bytes, not BIGINT_PART */
    int log;                        /* transform: of 2^log points .. */
    int passes, radix[BIGINT_PASSES_MAX];       /* .. by passes of 2^radix */
    int64_t group;                  /* pairs that go together */
    int64_t parts;                  /* of a product, a block of @carry each; 1: needs none */
    Space space;
    _Atomic uint64_t roots;         /* of transforms, once prepared */
    atomic_bool prepared;
};

/* ---- launches ----------------------------------------------------------- */

/* A launch of kernel `kernel` of the table. */
typedef struct Launch {
    int kernel;
    size_t count;
    tilus_arg args[BIGINT_ARGUMENTS_MAX];
} Launch;

/* Writes the launches for `pairs` pairs, whose numbers are at the addresses of the call; returns
 * how many. */
size_t bigint_launches(const tilus_bigint_plan *plan, const tilus_bigint_call *call, int64_t pairs,
                   Launch launches[static BIGINT_LAUNCHES_MAX]);

#endif
