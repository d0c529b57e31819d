/* Configurations of the template kernels/matmul.tilus: its parameters, the names of its
 * kernels, the space that is searched, and what a configuration is thought to cost. Shared
 * by the library, the tuner and the benchmarks; pure functions, thread safe. */
#ifndef TILUS_MATMUL_CONFIG_H
#define TILUS_MATMUL_CONFIG_H

#include "tilus/matmul.h"
#include "types/dtype.h"

enum {
    MATMUL_UNIT_K = 128,        /* of k, in a unit of packed weights */
    MATMUL_TEXT_MAX = 512,      /* bytes of parameters, with the NUL */
    MATMUL_CONFIG_MAX = 256,    /* of a configuration as text */
    MATMUL_NAME_MAX = 160,      /* of an artefact's name */
};

/* The programs of the template. */
typedef enum MatmulProgram {
    MATMUL_PACK,                /* codes to units: of plain [n, k] ... */
    MATMUL_PACK_ACROSS,         /* ... and of plain [k, n] */
    MATMUL_PREPARE,             /* A to columns of mma */
    MATMUL_PRODUCT,             /* @matmul */
    MATMUL_DECODE,              /* units to a plain f16 or bf16 matrix, for large m */
    MATMUL_PROGRAMS
} MatmulProgram;

/* A problem with its defaults filled in, and what follows from its types. */
typedef struct MatmulSpec {
    DType weights;              /* as the user says */
    DType stored, codes;        /* W: as what they are packed; U: as what that is decoded */
    DType product;              /* T: what tensor cores multiply; bf16 where f16 does not hold
                                   the weights */
    DType activations, scales, result;
    int offset;                 /* OFFSET: half of the range of signed integers, else 0 */
    int fraction;               /* FRACTION: what is stored is weights times 2^this */
    int residual_exponent;      /* RS: of sums; A is multiplied by at most 2^3 for it */
    int group;                  /* GROUP: 0, 32, 64 or 128 */
    int64_t repeats;            /* units that share scales: a group of 512 is 4 units */
    tilus_zeros zeros;
    tilus_epilogue function;
    bool bias, residual;
    int64_t n, k;
} MatmulSpec;

/* How it is computed: the template's parameters of these names. Tunings in C, JSON and the
 * tuner's database have them in this order. */
#define MATMUL_CONFIG(FIELD)                                                                   \
    FIELD(rows)         /* of a unit: 32, 64, 128; one for all m of a plan, as it decides how  \
                           weights lie */                                                      \
    FIELD(rwarps)       /* side by side in rows */                                             \
    FIELD(kwarps)       /* along k */                                                          \
    FIELD(deep)         /* units that a warp takes in a round: 1, 2, 4, 8 */                   \
    FIELD(stages)       /* of the ring in shared memory; 0: none */                            \
    FIELD(columns)      /* of 8 that are there */                                              \
    FIELD(tiles)        /* of 8 columns */                                                     \
    FIELD(prepared)     /* A comes as it is; 1: from @prepare; 2: from there, and through the  \
                           ring */                                                             \
    FIELD(scaled)       /* scales act on sums; 1: on weights, for large m */                   \
    FIELD(per_sm)       /* BLOCKS for each multiprocessor, which share the rounds out evenly;  \
                           0: one block a tile */                                              \
    FIELD(lifted)       /* integer zero points: an fma for each sum; 1: an mma for 16 rows */  \
    FIELD(lending)      /* all warps have as many registers; 1: those that copy lend theirs */

typedef struct MatmulConfig {
#define MATMUL_FIELD(name) int name;
    MATMUL_CONFIG(MATMUL_FIELD)
#undef MATMUL_FIELD
} MatmulConfig;

enum {
#define MATMUL_FIELD(name) + 1
    MATMUL_FIELDS = 0 MATMUL_CONFIG(MATMUL_FIELD)
#undef MATMUL_FIELD
};

/* Its fields by number, 0 to MATMUL_FIELDS - 1, for who reads, writes and lists them. */
const char *matmul_field_name(int field);
int *matmul_field(MatmulConfig *config, int field);
int matmul_field_value(const MatmulConfig *config, int field);

/* "rows 64, rwarps 2, ..", all of them; returns `text`. */
const char *matmul_config_print(const MatmulConfig *config,
                                char text[static MATMUL_CONFIG_MAX]);

/* Checks the problem and fills in `spec`. False: message[0..size) names the field and its
 * value. */
bool matmul_spec(const tilus_matmul_problem *problem, MatmulSpec *spec, char *message,
                 size_t size);

/* What a code of the weights is packed as, a code of `stored`: itself, but for floats with one
 * exponent bit the integer, 0 of both zeros. */
unsigned matmul_stored_code(const MatmulSpec *spec, unsigned code);

/* Whether any weight less any zero point of the weights' range is a number of the product's
 * type: zero points are not taken off weights else, but off sums. */
bool matmul_centred_fits(const MatmulSpec *spec);

/* Values of -D for a program, only those that it depends on: "W=u4 U=u4 ..". */
void matmul_parameters(const MatmulSpec *spec, const MatmulConfig *config,
                       MatmulProgram program, char text[static MATMUL_TEXT_MAX]);

/* "pack" or "matmul", as the template calls it; both kinds of packing are "pack". */
const char *matmul_program_name(MatmulProgram program);

/* The artefact's name, without a folder or an ending: "matmul-u4-f16-..", from the
 * parameters alone. */
void matmul_name(const MatmulSpec *spec, const MatmulConfig *config, MatmulProgram program,
                 const char *target, char name[static MATMUL_NAME_MAX]);

/* DIVISOR: what divides k, and with it the stride of A's rows unless that is another: 128,
 * else as many elements as have 16 bytes, else 1. */
int matmul_divisor(const MatmulSpec *spec);

/* Slices of 128 of k in the packed weights: ceil(k / 128), rounded up to 8 where that adds
 * at most 1/16, else to 4 on that condition, else to 2. KWARPS * DEEP divides it in
 * configurations that fit. The bytes are those of one slice of `rows` rows. n is padded to
 * 256: there are matmul_units of them, of all slices. */
int64_t matmul_slices(const MatmulSpec *spec);
int64_t matmul_unit_bytes(const MatmulSpec *spec, int rows);
int64_t matmul_units(const MatmulSpec *spec, int rows);

/* Words of 32 bits of 8 prepared columns of A x 128 k. */
int64_t matmul_panel_words(const MatmulSpec *spec, const MatmulConfig *config);

/* Rounds of all tiles of a launch, and its blocks: as `per_sm` says, at most the rounds. */
int64_t matmul_rounds(const MatmulSpec *spec, const MatmulConfig *config);
int64_t matmul_blocks(const MatmulSpec *spec, const MatmulConfig *config, int multiprocessors);

/* What decides whether a configuration runs, and how well. */
typedef struct MatmulDevice {
    const char *name;           /* "NVIDIA H200" */
    int capability;             /* compute capability, 90 for 9.0: stages want 9.0 */
    int multiprocessors;
    int64_t shared_block, shared_sm;    /* bytes that a block, and all blocks of one, have */
    double bandwidth;           /* bytes a microsecond */
} MatmulDevice;

/* A device of what the runtime says of it: its name (which the result keeps), its compute
 * capability, its multiprocessors and the shared memory of a block, bytes. The
 * read rate is measured for devices that space.c lists, and a guess for others. */
MatmulDevice matmul_device(const char *name, int capability, int multiprocessors,
                           int64_t shared_block);

/* Whether zero points are added by mma: `lifted`, where there are integers to lift, in what
 * @prepare hands on. */
bool matmul_lifts(const MatmulSpec *spec, const MatmulConfig *config);

/* REGISTERS: what a thread that multiplies has, with those that the warpgroup that copies
 * lends; 0: it lends none. */
int matmul_registers_lent(const MatmulConfig *config);

/* Of @matmul: what the compiler reports, exactly; registers a thread that it needs so as not
 * to spill much, and those that let its blocks run; the blocks that one multiprocessor holds,
 * 0 when it holds none. */
int64_t matmul_shared_bytes(const MatmulSpec *spec, const MatmulConfig *config);
int matmul_registers(const MatmulSpec *spec, const MatmulConfig *config);
int matmul_registers_limit(const MatmulConfig *config);
int matmul_resident(const MatmulSpec *spec, const MatmulConfig *config,
                    const MatmulDevice *device);

/* Whether it runs: warps divide the slices, the device has what it takes. */
bool matmul_config_fits(const MatmulSpec *spec, const MatmulConfig *config,
                        const MatmulDevice *device);

/* The space for `m` rows: calls `visit` for each configuration that fits. */
void matmul_enumerate(const MatmulSpec *spec, int64_t m, const MatmulDevice *device,
                      void (*visit)(void *data, const MatmulConfig *config), void *data);

/* Microseconds that the model expects, and the read floor: 2.50 us + bytes / bandwidth. */
double matmul_cost(const MatmulSpec *spec, const MatmulConfig *config, int64_t m,
                   const MatmulDevice *device);
double matmul_floor(const MatmulSpec *spec, int64_t m, const MatmulDevice *device);

/* Buckets of m that tunings are for: 1, 2, 4, 8, 16, .. The least that holds m. */
int64_t matmul_bucket(int64_t m);

#endif
