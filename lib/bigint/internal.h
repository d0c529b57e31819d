/* Inside of the library of big integers: plans and launches. Its frame, which finds and loads
 * kernels, is support/kernel_library.h.
 *
 *     bigint.c    opens the library
 *     kernels.c   the table of kernels
 *     roots.c     the table of roots of unity, on each device that transforms
 *     plan.c      plans: chooses by sizes, says what was chosen
 *     mul.c       the launches of a product */
#ifndef TILUS_BIGINT_INTERNAL_H
#define TILUS_BIGINT_INTERNAL_H

#include "support/kernel_library.h"
#include "tilus/bigint.h"

enum {
    BIGINT_ALIGN = 256,             /* bytes, of parts of the workspace */
    BIGINT_PART = 8192,             /* bytes of a product of which a block resolves the carries */
    BIGINT_SMALL = 1024,            /* likewise, where larger parts would be few */
    BIGINT_PASSES_MAX = 4,          /* of a transform */
    BIGINT_LOG_MIN = 12,            /* of the points of the shortest transform */
    BIGINT_LOG_MAX = 26,            /* of the longest */
    BIGINT_RADIX_MIN = 6,           /* logs of a pass's radix */
    BIGINT_RADIX_MAX = 9,
    BIGINT_LAUNCHES_MAX = 5 + 2 * BIGINT_PASSES_MAX,
    BIGINT_ARGUMENTS_MAX = 8,
    BIGINT_DEVICES_MAX = 64
};

/* ---- kernels ------------------------------------------------------------ */

typedef enum BigintProgram {
    BIGINT_PRODUCT, BIGINT_CARRY, BIGINT_SPREAD, BIGINT_FORWARD, BIGINT_BACKWARD, BIGINT_GATHER
} BigintProgram;

/* Rows of the table of kernels: products by tiles, passes by radix. Of `LOOSE`
 * ones addresses and lengths are any; of `INNER` passes columns have more than one point. */
enum {
    BIGINT_TILES = 5,
    BIGINT_SQUARE = BIGINT_TILES,                           /* the tile of squares */
    BIGINT_RADICES = BIGINT_RADIX_MAX - BIGINT_RADIX_MIN + 1,
    BIGINT_K_PRODUCT = 0,                                   /* + 2 * tile + loose */
    BIGINT_K_CARRY = BIGINT_K_PRODUCT + 2 * (BIGINT_TILES + 1),
                                                            /* + 2 * small + loose; then + loose */
    BIGINT_K_SPREAD = BIGINT_K_CARRY + 4,
    BIGINT_K_GATHER = BIGINT_K_SPREAD + 2,
    BIGINT_K_FORWARD = BIGINT_K_GATHER + 2,                 /* + 2 * (radix - 6) + last */
    BIGINT_K_BACKWARD = BIGINT_K_FORWARD + 2 * BIGINT_RADICES,
    BIGINT_KERNELS = BIGINT_K_BACKWARD + 2 * BIGINT_RADICES
};

/* Returns how many bytes of a product a block of the tile has. */
int bigint_tile_bytes(int tile);

/* Targets that kernels are compiled for. */
enum { BIGINT_TARGETS = 2 };
extern const char *const bigint_targets[BIGINT_TARGETS];

/* Returns the target for a device of that compute capability, 90 for 9.0. */
const char *bigint_target(int capability);

/* Writes the i-th row, as kernel_library_find takes it; its name ends with that of the target. */
void bigint_kernel(int i, const char *target, Kernel *kernel);

/* Checks that a loaded kernel takes the arguments that launches give, in their order. */
tilus_status bigint_check(Kernel *kernel, const tilus_kernel_info *info);

/* ---- the library -------------------------------------------------------- */

struct tilus_bigint {
    KernelLibrary library;
    pthread_mutex_t lock;                   /* of `roots` */
    uint64_t roots[BIGINT_DEVICES_MAX];     /* 0: not yet there */
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
    int device;
    Kernel *kernels[BIGINT_KERNELS];            /* NULL: not needed */
    bool loose;                     /* lengths are not multiples of 16 */
    int tile;                       /* schoolbook, of BIGINT_TILES or BIGINT_SQUARE */
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
