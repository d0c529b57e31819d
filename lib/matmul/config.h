/* Configurations of the template kernels/matmul.tilus: its parameters, the names of its
 * kernels, the space that is searched, and what a configuration is thought to cost. Shared
 * by the library, the tuner and the benchmarks; pure functions, thread safe. */
#ifndef TILUS_MATMUL_CONFIG_H
#define TILUS_MATMUL_CONFIG_H

#include "tilus/matmul.h"
#include "types/dtype.h"

enum {
    MATMUL_PACKED_K = 128,      /* of k, in a packed block of weights */
    MATMUL_UNPACKS = 3,         /* types that packed blocks are unpacked to */
    MATMUL_FEW_ROWS = 32,       /* of experts, up to which blocks find them: FEW */
    MATMUL_SORT_ROWS = 512,     /* that a block sorts by expert, or ... */
    MATMUL_SORT_ROWS_FEW = 64,  /* ... where there are no more, a smaller one */
    MATMUL_GATED_ROWS = 8,      /* of a gate side by side in packed blocks, before as many others */
    MATMUL_COPIER_REGISTERS = 40,   /* of threads that copy, under register reallocation */
    MATMUL_TEXT_MAX = 512,      /* bytes of parameters, with the NUL */
    MATMUL_CONFIG_MAX = 256,    /* of a configuration as text */
    MATMUL_NAME_MAX = 192,      /* of an artefact's name */
    MATMUL_STRIDE_MAX = 1 << 23,    /* elements between rows of A */
};

/* The programs of the template. */
typedef enum MatmulProgram {
    MATMUL_PACK,                /* codes to packed blocks: of plain [n, k] ... */
    MATMUL_PACK_ACROSS,         /* ... and of plain [k, n] */
    MATMUL_PREPARE,             /* A to columns of mma */
    MATMUL_NORM,                /* an RMS norm of A alone */
    MATMUL_PREPARE_NORMED,      /* that and @prepare in one ... */
    MATMUL_ARRANGE_NORMED,      /* ... or that and @arrange */
    MATMUL_PRODUCT,             /* @matmul */
    MATMUL_ARRANGE,             /* A to rows as @matmul_wgmma reads them, where they are not yet */
    MATMUL_WGMMA,               /* @matmul_wgmma, by products of warpgroups */
    MATMUL_PARTS,               /* @matmul_parts, the same of small matrices */
    MATMUL_UNPACK_F16,          /* packed blocks to a plain matrix of f16 ... */
    MATMUL_UNPACK_BF16,         /* ... of bf16 ... */
    MATMUL_UNPACK_F32,          /* ... and of f32 */
    MATMUL_PREPARE_EXPERTS,     /* @prepare for rows of several experts ... */
    MATMUL_PRODUCT_EXPERTS,     /* ... and @matmul */
    MATMUL_PRODUCT_COMBINED,    /* the product of few tokens, whose rows are combined in it */
    MATMUL_FIND_TILES,          /* the tiles of experts' rows, listed for @matmul_wgmma */
    MATMUL_ARRANGE_EXPERTS,     /* @arrange for rows of several experts ... */
    MATMUL_WGMMA_EXPERTS,       /* ... and @matmul_wgmma ... */
    MATMUL_WGMMA_LAST,          /* ... of the last rows of experts, beside that */
    MATMUL_COMBINE,             /* weighted sums of the rows of a token */
    MATMUL_SORT_FEW,            /* rows by expert: up to 64 ... */
    MATMUL_SORT,                /* ... up to 512 ... */
    MATMUL_COUNT_ROWS,          /* ... and more, of which those of each expert are counted first */
    MATMUL_SORT_MANY,           /* the last of those that sort */
    MATMUL_QUANTIZE,            /* A to 8 bits, with scales of rows ... */
    MATMUL_COPY_ROWS,           /* ... or aligned rows of A that has 8 bits, for ... */
    MATMUL_A8,                  /* ... @matmul_a8, by products of warpgroups */
    MATMUL_PROGRAMS
} MatmulProgram;

/* A problem with its defaults filled in, and what follows from its types. */
typedef struct MatmulSpec {
    DType weights;              /* as the user says */
    DType stored, codes;        /* W: as what they are packed; U: as what that is decoded */
    DType product;              /* T: what tensor cores multiply; bf16 where f16 does not hold
                                   the weights; f8e4m3 or i8 where the user asks for it */
    DType activations, scales, result;
    int offset;                 /* OFFSET: half of the range of signed integers, else 0 */
    int fraction;               /* FRACTION: what is stored is weights times 2^this */
    int deferred_scale;         /* DEFERRED_SCALE: the exponent of two that sums lack;
                                   A is multiplied by at most 2^3 for it, 1 with wide_range */
    int place, down;            /* PLACE, DOWN: where bytes of weights have codes */
    int group;                  /* GROUP: 0, 16, 32, 64 or 128 */
    int64_t repeats;            /* packed groups that share a scale: 4 of 128 for one of 512, 3 of
                                   32 for one of 96, 5 of 16 for one of 80 */
    tilus_zeros zeros;
    tilus_epilogue function;
    bool bias, residual, multiply;  /* multiply: by the residual */
    bool gated;                 /* C has n / 2 columns: function(A x gate) * (A x up) */
    int64_t n, k;
    int64_t a_stride;           /* of A's rows, that kernels are for; 0: k */
    int64_t experts, top;       /* experts: 0 for one matrix */
    bool gather, scatter, combine;  /* scatter: also with combine, to the workspace */
    bool early_routing;         /* what tells rows of experts is older than the launch in front */
    bool batch_invariant;       /* sums have one order for all m */
    bool wide_range;            /* f16 is multiplied, and A is made no larger for it */
    tilus_prologue prologue;
    double eps;                 /* of the RMS norm */
} MatmulSpec;

/* How it is computed: the template's parameters of these names. Tunings in C, JSON and the
 * tuner's database have them in this order. `was` is the name in tunings of earlier programs,
 * which are still read. */
#define MATMUL_CONFIG(FIELD)                                                                   \
    FIELD(rows, rows)           /* of a packed block: 32, 64, 128; one for all m of a plan, as \
                                   it decides how weights lie */                               \
    FIELD(warps_n, rwarps)      /* warps of a block along n ... */                             \
    FIELD(warps_k, kwarps)      /* ... and along k; of @matmul_parts PARTS, blocks along k */  \
    FIELD(stage_k_tiles, deep)  /* k-tiles of a stage: 1, 2, 4, 8 */                           \
    FIELD(stages, stages)       /* of the ring in shared memory; 0: none */                    \
    FIELD(columns, columns)     /* of a tile's 8 columns, those that are there */              \
    FIELD(tiles, tiles)         /* of 8 columns */                                             \
    FIELD(prearranged_a, prepared)  /* A comes from @prepare, 1: directly, 2: through the      \
                                       ring; 3: to @matmul_wgmma, in the rows of @arrange;     \
                                       4: arranged by each block, not in tunings; 5 to 8: so,  \
                                       of rows that the product combines, in clusters of 1, 2, \
                                       4 or 8 blocks, which share the rows of a token */       \
    FIELD(scale_weights, scaled)    /* scales multiply sums; 1: weights, for large m */        \
    FIELD(per_sm, per_sm)       /* BLOCKS of a multiprocessor, which share the iterations out  \
                                   evenly; 0: one block a tile */                              \
    FIELD(zeros_by_mma, lifted) /* integer zero points: an fma for each sum; 1: an mma for 16  \
                                   rows, by wgmma 16 of k more */                              \
    FIELD(register_reallocation, lending)   /* all warps keep their registers; 1: warps that   \
                                               copy give theirs up (setmaxnreg) */

/* Values of prearranged_a that no tuning has: A arranged by each block, and rows that are combined, too. */
enum { MATMUL_ARRANGED_IN_BLOCKS = 4, MATMUL_COMBINED = 5, MATMUL_COMBINED_LAST = 8 };

typedef struct MatmulConfig {
#define MATMUL_FIELD(name, was) int name;
    MATMUL_CONFIG(MATMUL_FIELD)
#undef MATMUL_FIELD
} MatmulConfig;

enum {
#define MATMUL_FIELD(name, was) + 1
    MATMUL_FIELDS = 0 MATMUL_CONFIG(MATMUL_FIELD)
#undef MATMUL_FIELD
};

/* The fields by number, 0 to MATMUL_FIELDS - 1, with their names: of today, and in tunings of
 * earlier programs. */
const char *matmul_field_name(int field);
const char *matmul_field_earlier_name(int field);
int *matmul_field(MatmulConfig *config, int field);
int matmul_field_value(const MatmulConfig *config, int field);

/* Prints "rows 64, warps_n 2, ..", all fields; returns `text`. */
const char *matmul_config_print(const MatmulConfig *config,
                                char text[static MATMUL_CONFIG_MAX]);

/* Checks the problem and fills in `spec`. False: message[0..size) names the field and its
 * value. */
bool matmul_spec(const tilus_matmul_problem *problem, MatmulSpec *spec, char *message,
                 size_t size);

/* Returns true where the product's type has 8 bits. */
bool matmul_is_a8(const MatmulSpec *spec);

/* Returns EXPERTS, the threads' share of offsets: a power of two, few of which there are. */
int matmul_experts_room(const MatmulSpec *spec);

/* Returns true where scales act on weights whatever m is: of groups of 16, as an mma adds up products
 * of two of them. */
bool matmul_scales_weights_only(const MatmulSpec *spec);

/* Returns the most rows of packed blocks that a plan chooses by itself: fewer where scales of 8 groups of
 * 128 of k act on weights, for which registers do not suffice otherwise. */
int matmul_rows_most(const MatmulSpec *spec);

/* Returns true where sums are multiplied by a factor for all of C: with scales of f8e4m3. */
bool matmul_has_factor(const MatmulSpec *spec);

/* Returns true where A is of the product's 8 bits already, and brings scales of its rows. */
bool matmul_has_a_scales(const MatmulSpec *spec);

/* Returns the code of `stored` as which a code of the weights is packed: the code itself, or
 * for floats with one exponent bit the integer, which is 0 for both zeros. */
unsigned matmul_stored_code(const MatmulSpec *spec, unsigned code);

/* Returns true when any weight less any zero point of the weights' range is a number of the
 * product's type. Otherwise zero points are taken off sums, not off weights. */
bool matmul_centred_fits(const MatmulSpec *spec);

/* Writes the values of -D that a program depends on: "W=u4 U=u4 ..". */
void matmul_parameters(const MatmulSpec *spec, const MatmulConfig *config,
                       MatmulProgram program, char text[static MATMUL_TEXT_MAX]);

/* Returns the program's name in the template; both kinds of packing are "pack". */
const char *matmul_program_name(MatmulProgram program);

/* Returns the program that unpacks to a type, f16, bf16 or f32; MATMUL_PROGRAMS: there is none. */
MatmulProgram matmul_unpack_program(DType type);

/* Writes the artefact's name, without a folder or an ending: "matmul-u4-f16-..", from the
 * parameters alone. */
void matmul_name(const MatmulSpec *spec, const MatmulConfig *config, MatmulProgram program,
                 const char *target, char name[static MATMUL_NAME_MAX]);

/* Returns the elements of A that have 16 bytes. */
int matmul_vector(const MatmulSpec *spec);

/* Returns DIVISOR, which divides k and the stride of A's rows, 0 being k: 128, else
 * matmul_vector, else 1. */
int matmul_divisor(const MatmulSpec *spec, int64_t a_stride);

/* Sizes of a packed block of some rows, and of a panel: 8 columns of pre-arranged A, of which
 * `columns` are there, x 128 k. */
typedef struct PackedForm {
    int64_t codes, scales, zeros;       /* bytes of each, 0 where they lie in tables ... */
    int64_t block;              /* ... and of all three */
    int64_t panel;              /* bytes */
} PackedForm;

/* Computes them by the definitions of kernels/matmul/common.tilus. */
PackedForm matmul_packed_form(const MatmulSpec *spec, int rows, int columns);

/* Count slices of 128 of k, and packed blocks. Slices are ceil(k / 128), rounded up to 8 where
 * that adds at most 1/16, else to 4 on that condition, else to 2; in configurations that fit,
 * WARPS_K * STAGE_K_TILES divides them. n is padded to 256. */
int64_t matmul_slices(const MatmulSpec *spec);
int64_t matmul_packed_blocks(const MatmulSpec *spec, int rows);

/* Count the mainloop iterations of all tiles of a launch, and its blocks: `per_sm` for each
 * multiprocessor, at most the iterations. */
int64_t matmul_iterations(const MatmulSpec *spec, const MatmulConfig *config);
int64_t matmul_blocks(const MatmulSpec *spec, const MatmulConfig *config, int multiprocessors);

/* A device, as far as it decides which configurations run, and how well. */
typedef struct MatmulDevice {
    const char *name;           /* "NVIDIA H200" */
    int capability;             /* compute capability, 90 for 9.0: stages want 9.0 */
    int multiprocessors;
    int64_t shared_block, shared_sm;    /* bytes that a block, and all blocks of one, have */
    double bandwidth;           /* bytes a microsecond */
} MatmulDevice;

/* Describes a device by figures of the runtime: its name (to which the result points), compute
 * capability, multiprocessors and the bytes of shared memory of a block. The read rate is
 * measured for devices that space.c lists, and a guess for others. */
MatmulDevice matmul_device(const char *name, int capability, int multiprocessors,
                           int64_t shared_block);

/* Returns true where @matmul_wgmma multiplies: tiles of 256 of n and up to 128 rows of A, in 8 warps of
 * 32 rows each, or of 128 of n, in warps of one fragment of 16 rows. */
bool matmul_by_wgmma(const MatmulConfig *config);

/* Returns true for the latter. */
bool matmul_has_single_fragments(const MatmulConfig *config);

/* Returns A_STAGES of @matmul_wgmma: slots of 128 of k of A. */
int matmul_a_stages(const MatmulConfig *config);

/* Returns how many blocks a cluster of @matmul_wgmma has, which get A by multicast: 2 with single
 * fragments, except of few columns of tiles, an odd number, and with experts, where each block has its
 * own tile; else 1. */
int matmul_cluster(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns PARTS of @matmul_parts: the blocks of a cluster that have parts of k of one tile; 1 of all others. */
int matmul_parts(const MatmulConfig *config);

/* Returns how many clusters of `parts` blocks, 1 to 8, each of which has a multiprocessor, run at once: clusters lie within a
 * GPC, as cuOccupancyMaxActiveClusters says of an H200; of other devices as large a share, at least one. */
int64_t matmul_clusters_at_once(int64_t parts, const MatmulDevice *device);

/* Returns true where blocks of @matmul_wgmma, as many as multiprocessors, would put their few tiles together for longer
 * than some of them have nothing to do if each tile has one block. */
bool matmul_leaves_blocks_idle(const MatmulSpec *spec, const MatmulConfig *config, int64_t all_tiles, int multiprocessors);

/* Returns M_STEP of @matmul_wgmma: 32 rows of C that are stored at a time where two times as many
 * fit into shared memory, else 16. */
int matmul_stored_rows(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns SPLIT of @matmul_wgmma: the parts of k whose sums a batch invariant product adds up, as
 * many as let the tiles of few rows of A keep a device busy; it divides the slices. 0 of other
 * products. */
int matmul_split(const MatmulSpec *spec);

/* Returns the programs that compute a configuration: the product's, and of A's other order. */
MatmulProgram matmul_product_program(const MatmulConfig *config);
MatmulProgram matmul_prepare_program(const MatmulConfig *config);

/* Returns that of an RMS norm of A. */
MatmulProgram matmul_normed_program(const MatmulConfig *config);

/* Returns the program that does for several experts, or for products of 8 bits, what `program` does
 * for other products; that itself where the problem has neither. */
MatmulProgram matmul_program_of(const MatmulSpec *spec, MatmulProgram program);

/* Has each block of the product arrange A in its shared memory, in place of a launch in front, where
 * A is one row and fits there beside the ring; if need be, two blocks of a multiprocessor become one. */
void matmul_arrange_in_blocks(const MatmulSpec *spec, MatmulConfig *config,
                              const MatmulDevice *device);

/* Has the product combine the rows of a token itself, for up to `tokens` of them, where a block arranges those
 * that it has beside the ring; false: it does not. */
bool matmul_combine_in_blocks(const MatmulSpec *spec, MatmulConfig *config, int64_t tokens,
                              const MatmulDevice *device);

/* Returns true where the product does that, the blocks of a cluster then, the rows of a token that each has, and
 * the blocks of a launch for so many tokens. */
bool matmul_combines(const MatmulConfig *config);
int matmul_splits(const MatmulConfig *config);
int matmul_choices(const MatmulSpec *spec, const MatmulConfig *config);
int64_t matmul_combined_blocks(const MatmulSpec *spec, const MatmulConfig *config, int64_t tokens);

/* Returns the bytes of shared memory that such a product takes. */
int64_t matmul_combined_bytes(const MatmulSpec *spec, const MatmulConfig *config);

/* Has A come from @prepare, through the ring where there is one, in configurations of earlier
 * programs that read it as it is: prearranged_a 0. */
void matmul_config_renew(MatmulConfig *config);

/* Returns the slices of A that a block arranges: rounded up, so that its threads share them evenly. */
int64_t matmul_arranged_slices(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns true where each block arranges A. */
bool matmul_arranges_in_blocks(const MatmulConfig *config);

/* Returns true where blocks arrange their row of A as digits of 8 bits, which tensor cores multiply with
 * codes as bytes. */
bool matmul_has_digits(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns true where the product does the problem's prologue. */
bool matmul_fuses_prologue(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns true where one program does the prologue and writes A anew. */
bool matmul_prepares_normed(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns the warps of that program, and the slices that these hold, at least those of a row. */
int matmul_normed_warps(const MatmulSpec *spec);
int matmul_normed_slices(const MatmulSpec *spec);

/* Returns true where a program writes A anew before the product reads it. */
bool matmul_prepares(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns true where lanes have eight neighbors in k of packed codes, not two as wgmma has them: where
 * groups are of 16, so that each has scales of one. */
bool matmul_reorders_k(const MatmulSpec *spec);

/* Returns the columns of C, of `columns` of B: half as many of gated products. */
int64_t matmul_columns_of_c(const MatmulSpec *spec, int64_t columns);

/* Returns the row of B, as [n, k], that is row `row` of the packed form: of gated products rows lie in
 * turns of 8 of the gate and 8 of what it multiplies, which one thread has as neighbors of mma's and
 * wgmma's results. */
int64_t matmul_row_of_b(const MatmulSpec *spec, int64_t row);

/* Returns true where C's rows are multiples of 16 bytes, as tensor copies store them. */
bool matmul_stores_by_copies(const MatmulSpec *spec);

/* Returns true where zero points are added by mma: they are integers, as `zeros_by_mma` asks; sums of
 * A are in the range of the product's type. */
bool matmul_zeros_by_mma(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns the elements that @arrange makes of 128 of k: with zero points by mma also sums of A. */
int matmul_arranged_k(const MatmulSpec *spec, const MatmulConfig *config);

/* Returns REGISTERS, those of a thread that multiplies after setmaxnreg; 0: none are
 * reallocated. */
int matmul_registers_reallocated(const MatmulConfig *config);

/* Count what @matmul takes: bytes of shared memory, exactly as the compiler reports them;
 * registers a thread that it needs so as not to spill much, and those that let its blocks run;
 * the blocks that one multiprocessor holds, 0 when it holds none. */
int64_t matmul_shared_bytes(const MatmulSpec *spec, const MatmulConfig *config);
int matmul_registers(const MatmulSpec *spec, const MatmulConfig *config);
int matmul_registers_limit(const MatmulConfig *config);
int matmul_resident(const MatmulSpec *spec, const MatmulConfig *config,
                    const MatmulDevice *device);

/* Returns true when the configuration runs: k-tiles of a stage divide the slices, and the
 * device has room. */
bool matmul_config_fits(const MatmulSpec *spec, const MatmulConfig *config,
                        const MatmulDevice *device);

/* Calls `visit` for each configuration of the space for `m` rows of A that fits, of weights packed in
 * `rows`; 0: in any. */
void matmul_enumerate(const MatmulSpec *spec, int rows, int64_t m, const MatmulDevice *device,
                      void (*visit)(void *data, const MatmulConfig *config), void *data);

/* Return the microseconds that the model expects, and the read floor: 2.50 us + bytes /
 * bandwidth. */
double matmul_cost(const MatmulSpec *spec, const MatmulConfig *config, int64_t m,
                   const MatmulDevice *device);
double matmul_floor(const MatmulSpec *spec, int64_t m, const MatmulDevice *device);

/* Returns the read floor where the rows belong to `experts` experts. */
double matmul_floor_experts(const MatmulSpec *spec, int64_t experts, int64_t m,
                            const MatmulDevice *device);

/* Returns the bucket of m, the least power of two that holds it. Tunings are for buckets. */
int64_t matmul_bucket(int64_t m);

#endif
