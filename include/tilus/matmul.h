/* Matrix products with packed weights of 1 to 8 bits: C[m, n] = A[m, k] x B[k, n], where
 * B[k, n] = (code[k, n] - zero[group, n]) * scale[group, n]. One template,
 * kernels/matmul.tilus, serves all types; this library chooses its parameters, finds the
 * compiled kernels, packs the weights and launches. It links the runtime and no LLVM.
 *
 *     tilus_matmul_open ─▶ tilus_matmul_plan ─▶ pack, once ─▶ run, run, ..
 *
 * Kernels are artefacts (tilus/artefact.h), found by their names (tilus_matmul_kernels):
 * in memory, in a directory, or made by a callback, as tilus_matmul_compile of the
 * compiler library is one (tilus/tilus.h). docs/matmul.md is for users.
 *
 * Functions that fail return a status, and tilus_rt_error() (tilus/runtime.h) says why;
 * TILUS_ERROR_MEMORY is host memory that ran out. Functions of one plan may be called by
 * several threads at once, unless they say otherwise.
 *
 * Pointers are not NULL unless a comment says that they may be. Where a handle, a struct or the
 * place of a result is NULL nevertheless, nothing happens: functions with a status name it
 * (TILUS_ERROR_ARGUMENT), others return 0 or NULL; tilus_matmul_close and
 * tilus_matmul_plan_free ignore it. */
#ifndef TILUS_MATMUL_H
#define TILUS_MATMUL_H

#include "tilus/runtime.h"
#include "tilus/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of this library, "0.2.0"; static storage. Thread safe. */
TILUS_API const char *tilus_matmul_version(void);

typedef struct tilus_matmul tilus_matmul;               /* where kernels come from */
typedef struct tilus_matmul_plan tilus_matmul_plan;     /* one problem on one device */

/* ---- problems --------------------------------------------------------------- */

typedef enum tilus_epilogue {
    TILUS_EPILOGUE_NONE,
    TILUS_EPILOGUE_SILU,    /* x / (1 + exp(-x)) */
    TILUS_EPILOGUE_GELU     /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
} tilus_epilogue;

/* Names what the product does to the rows that it takes before it multiplies them. */
typedef enum tilus_prologue {
    TILUS_PROLOGUE_NONE,
    TILUS_PROLOGUE_RMS_NORM     /* A = a * rsqrt(mean of the row's a^2 + eps) * norm */
} tilus_prologue;

/* C = function(A x B + bias) + residual, except with gated or multiply. All zero except struct_size,
 * or a NULL in its place, is the default. */
typedef struct tilus_matmul_problem {
    size_t struct_size;         /* sizeof(tilus_matmul_problem) */
    const char *weights;        /* u1 .. u8, i1 .. i8, f3e1m1 .. f8e7m0 */
    const char *activations;    /* of A: f16 (default), bf16, f8e4m3, f8e5m2, i8 */
    const char *scales;         /* f16, bf16, or with groups and without zero points f8e4m3, beside
                                   which weights have a factor; default: bf16 where A is,
                                   else f16 */
    const char *result;         /* of C, bias and residual: f16, bf16, f32; default: the
                                   scales' type, of f8e4m3 the default of scales */
    int64_t n, k;               /* 1 to 2^20, 1 to 2^23 */
    int64_t group;              /* of k with one scale: a multiple of 16 up to 2^23, which need not
                                   divide k; 0: all of k */
    tilus_zeros zeros;
    tilus_epilogue function;
    bool bias;                  /* [n] */
    bool residual;              /* [m, n] */
    int64_t n_tile;             /* of the packed form, as tilus_matmul_tile gives it for another
                                   plan whose packed weights this one reads; 0: the best */
    int64_t a_stride;           /* that tilus_matmul_prepare and tilus_matmul_kernels are for, as
                                   of tilus_matmul_call; 0: k */
    int64_t experts;            /* matrices of weights, 1 to 1024, and biases [experts, n]: each row
                                   of A goes to one, as tilus_matmul_call.offsets say; 0: there is
                                   one matrix for all rows, and `top` to `combine` are 0 */
    int64_t top;                /* rows of a token, 1 to 65536; 0: 1 */
    bool gather;                /* A is [m / top, k]: row r is ids[r] / top of it */
    bool scatter;               /* row r is stored as row ids[r] of C, and has that residual */
    bool combine;               /* C is [m / top, n]: row t is the sum of `route` times the rows
                                   whose ids are t * top to t * top + top - 1, in this order, and
                                   of residual [m / top, n] */
    bool multiply;              /* with residual, without combine and gated: C = function(A x B + bias)
                                   * residual */
    bool batch_invariant;       /* a row of C has the same bits whatever m and the other rows of A
                                   are; tilus_matmul_describe says what that costs. Never by
                                   cuBLAS; with experts on Hopper only */
    bool wide_range;            /* A may have any finite values where f16 is multiplied, not only
                                   magnitudes below 8188; small ones are less exact
                                   (docs/matmul.md), and zero points do not act by mma */
    bool gated;                 /* C is [m, n / 2], and residual: C = function(A x gate + bias of gate) *
                                   (A x up + bias of up) + residual, where B's first n / 2 columns
                                   are gate, the others up, as biases are; n is a multiple of 16.
                                   Without combine and multiply */
    unsigned char reserved[1];  /* 0: nothing reads it yet, and others are refused */
    const char *product;        /* that tensor cores multiply: f8e4m3 or i8, on compute capability
                                   9.0 alone, for A of f16, bf16 or the product's type, without
                                   experts, multiply and batch_invariant, for groups of multiples
                                   of 32 with scales of f16 or bf16, and integer zero points of
                                   up to 7 bits (i8) or u1 to u4 (f8e4m3); NULL: f16 or bf16 */
    tilus_prologue prologue;    /* f32 inside, rounded to A's type, f16 or bf16; not of experts */
    double eps;                 /* of the RMS norm: 0 or more */
    bool early_routing;         /* with combine: offsets, ids and route, and the weights that they
                                   choose, are read before the launch in front has ended. What wrote
                                   them ended before that one let others start
                                   (griddepcontrol.launch_dependents), if it does, as it has when a
                                   product of these experts, such as that of gate and up, lies between
                                   the two. Of few rows this is faster */
} tilus_matmul_problem;

/* ---- where kernels come from --------------------------------------------------- */

/* An artefact in memory, under its name. */
typedef struct tilus_matmul_kernel {
    const char *name;
    const void *bytes;
    size_t size;
} tilus_matmul_kernel;

/* Makes the artefact of the program `program` of the template for `target` ("sm_90a"), with
 * `parameters`: "W=u4 GROUP=128 ..", values of -D. *bytes are freed with free(), as tilus_free does.
 * On failure message[0..message_size) says why. Called by any thread that prepares or runs a
 * plan, several at once. */
typedef tilus_status tilus_matmul_compiler(void *data, const char *program,
                                           const char *parameters, const char *target,
                                           void **bytes, size_t *size, char *message,
                                           size_t message_size);

typedef struct tilus_matmul_options {
    size_t struct_size;                 /* sizeof(tilus_matmul_options) */
    const tilus_matmul_kernel *kernels; /* that are looked at first; they outlive the library */
    size_t kernel_count;
    const char *directory;              /* of NAME.tilusk files; looked at next */
    tilus_matmul_compiler *compile;     /* asked last; NULL: a miss is TILUS_ERROR_NO_KERNEL */
    void *compile_data;
    const char *tunings;                /* JSON as tilus-tune exports it, which comes before the
                                           table that is built in; NULL: none */
} tilus_matmul_options;

/* `options` may be NULL; its texts are copied, except `kernels`. TILUS_ERROR_ARGUMENT when
 * the tunings are not what tilus-tune writes. The caller closes the result after its plans,
 * and before `rt`. */
TILUS_API tilus_status tilus_matmul_open(tilus_rt *rt, const tilus_matmul_options *options,
                                         tilus_matmul **out);
TILUS_API void tilus_matmul_close(tilus_matmul *matmul);

/* ---- plans -------------------------------------------------------------------- */

/* Chooses how the problem is computed on the device: by tunings, else by the cost model; both
 * give the same answer each time. Takes tens of milliseconds, and microseconds for one of the
 * last 64 problems of this library. Loads no kernel yet. TILUS_ERROR_ARGUMENT names the field
 * of the problem that is wrong, with its value; TILUS_ERROR_UNSUPPORTED: the device. The
 * caller frees the plan when nothing that it launched runs any more. */
TILUS_API tilus_status tilus_matmul_plan_create(tilus_matmul *matmul,
                                                const tilus_matmul_problem *problem, int device,
                                                tilus_matmul_plan **out);
TILUS_API void tilus_matmul_plan_free(tilus_matmul_plan *plan);

/* Loads and prepares what runs of `m` rows need, so that tilus_matmul_run only launches. Call
 * it before a stream is captured. TILUS_ERROR_NO_KERNEL names the artefact that is nowhere,
 * and its parameters. */
TILUS_API tilus_status tilus_matmul_prepare(tilus_matmul_plan *plan, int64_t m);

/* Describes the choice for `m` rows and its source as text; the caller frees it with tilus_free().
 * NULL: out of memory. */
TILUS_API char *tilus_matmul_describe(const tilus_matmul_plan *plan, int64_t m);

/* Lists the artefacts that runs of 1 to `m` rows need, or for 0 those of tilus_matmul_pack_device and
 * tilus_matmul_unpack_device, a line each: NAME, a tab, program, a tab, parameters. Freed with tilus_free(); NULL: out of
 * memory. */
TILUS_API char *tilus_matmul_kernels(const tilus_matmul_plan *plan, int64_t m);

/* ---- weights ------------------------------------------------------------------- */

/* Plain weights. Codes are packed without gaps, element e in the bits from e * bits on, lowest
 * bits first; scales and zero points are [groups, n] beside [k, n] codes and [n, groups] beside
 * [n, k]. Addresses are of host memory for tilus_matmul_pack, else of the device. */
typedef struct tilus_matmul_weights {
    size_t struct_size;         /* sizeof(tilus_matmul_weights) */
    const void *codes, *scales;
    const void *zeros;          /* NULL where the problem has none */
    bool transposed;            /* all are [n, k], as PyTorch keeps them; else [k, n] */
    uint64_t threads;           /* that tilus_matmul_pack uses; 0: as many as the process may run
                                   on */
    const float *factor;        /* one number, with scales of f8e4m3: A x B is multiplied by it before
                                   bias and function; else NULL */
} tilus_matmul_weights;

/* Bytes of the packed weights, a multiple of 256; with experts, of each. Experts are packed one
 * by one, as matrices of their own, and lie one after the other. */
TILUS_API size_t tilus_matmul_packed_size(const tilus_matmul_plan *plan);

/* Packs on the host: `packed` has tilus_matmul_packed_size bytes, which are all written. Both
 * functions write the same bytes, the identity at their end too, but that packing on a device
 * leaves padding alone. TILUS_ERROR_ARGUMENT names the first scale or zero point that is infinite or
 * NaN, or the first integer zero point that is no number of the weights' type, by its row and
 * column, and nothing is written. */
TILUS_API tilus_status tilus_matmul_pack(const tilus_matmul_plan *plan,
                                         const tilus_matmul_weights *weights, void *packed);

/* Packs on the device, enqueued on `stream`, which may be NULL as for tilus_matmul_run; loads
 * the kernel at the first call, which cannot be while the stream is captured. Nobody checks
 * scales and zero points, as tilus_matmul_pack does. `packed` is
 * aligned to 256 bytes. The plan lives until the packing has ended, also in graphs. A product
 * reads weights before the kernels ahead of it have ended, so
 * something else comes between packing and the first one: a synchronization, or a copy or a
 * fill on the same stream, of the workspace, say. */
TILUS_API tilus_status tilus_matmul_pack_device(tilus_matmul_plan *plan, tilus_stream stream,
                                                const tilus_matmul_weights *weights,
                                                uint64_t packed);

/* Unpacks on the device: row n of B^T, or of it the k_count columns from k_first on, becomes row n of `to`, [n, k_count] of
 * `type`, "f16", "bf16" or "f32": (code - zero) * scale, with scales of f8e4m3 times the factor, computed in f32 and rounded
 * once. Rows are those of the weights that were packed, with gated all of gate above all of up. `packed` is one matrix; of
 * experts, one expert's. k_first is a multiple of 128, and so is k_count, unless it reaches the end of k: parts of k bound
 * the memory. `packed` is aligned to 256 bytes, `to` to 16; the caller owns both, and they live until the unpacking has
 * ended. Enqueued on `stream`, which may be NULL as for tilus_matmul_run; loads the kernel at the first call, which cannot
 * be while the stream is captured. The identity of the weights is not checked. Thread safe. TILUS_ERROR_ARGUMENT names what is
 * wrong; products of 8 bits, whose weights lie in bit planes, are refused. TILUS_ERROR_NO_KERNEL: there is no artefact and no
 * compiler. */
TILUS_API tilus_status tilus_matmul_unpack_device(tilus_matmul_plan *plan, tilus_stream stream, uint64_t packed,
                                                  int64_t k_first, int64_t k_count, const char *type, uint64_t to);

/* The last bytes of packed weights, their identity: version, problem, form. */
enum { TILUS_MATMUL_IDENTITY = 256 };

/* Describes packed weights, as their identity does. Equal identities are of equal problems,
 * packed in equal forms. */
typedef struct tilus_matmul_packed {
    size_t struct_size;         /* sizeof(tilus_matmul_packed) */
    uint64_t identity;          /* of what follows; never 0 */
    uint64_t form;              /* tells where bits lie: plans of another one read them wrong */
    size_t size;                /* bytes, as of tilus_matmul_packed_size */
    int64_t n, k, group, n_tile;
    int version;                /* of the identity, 1 */
    tilus_zeros zeros;
    char weights[16], product[16], scales[16];  /* types; product: that is multiplied */
    bool gated;                 /* as of the problem */
} tilus_matmul_packed;

/* Reads the identity of `size` packed bytes of host memory into `out`, whose struct_size is
 * set. TILUS_ERROR_ARGUMENT: they have none, or it is damaged, or of a newer version. The
 * weights themselves are not checked. Thread safe. */
TILUS_API tilus_status tilus_matmul_packed_describe(const void *packed, size_t size,
                                                    tilus_matmul_packed *out);

/* Checks that the plan reads such weights, of `size` bytes of host memory: TILUS_ERROR_ARGUMENT
 * names what differs, with both values. */
TILUS_API tilus_status tilus_matmul_packed_check(const tilus_matmul_plan *plan,
                                                 const void *packed, size_t size);

/* Returns the identity of weights that the plan reads, for tilus_matmul_call. */
TILUS_API uint64_t tilus_matmul_packed_identity(const tilus_matmul_plan *plan);

/* Tiles of the packed form: where n is cut at multiples of `n_tile`, or k at multiples of
 * `k_tile` and of the group, the packed part is the part packed; that is, plans of the parts,
 * with this n_tile in their problem, read what tilus_matmul_shard cuts out of the packed
 * whole. */
TILUS_API void tilus_matmul_tile(const tilus_matmul_plan *plan, int64_t *n_tile,
                                 int64_t *k_tile);

/* Copies out the packed weights of the plan `part`, which begin at row k_first and column
 * n_first of those of `whole`; host memory of as many bytes as tilus_matmul_packed_size says of
 * the two plans. TILUS_ERROR_ARGUMENT where `packed` is not of the
 * plan `whole`, where they are not cut at tiles, lie
 * outside, or the plans pack differently. */
TILUS_API tilus_status tilus_matmul_shard(const tilus_matmul_plan *whole, const void *packed,
                                          const tilus_matmul_plan *part, int64_t n_first,
                                          int64_t k_first, void *packed_part);

/* ---- products ------------------------------------------------------------------ */

/* The first bytes of a workspace, where the blocks of a product wait for each other. The caller
 * fills them with zeros once, before the workspace's first use; each run leaves them so, and
 * any plan may use the workspace next. */
enum { TILUS_MATMUL_SEMAPHORES = 256 << 10 };

/* Addresses of the device; those of weights and workspace are multiples of 256, of offsets, ids
 * and route of 4, the others of 16. */
typedef struct tilus_matmul_call {
    size_t struct_size;         /* sizeof(tilus_matmul_call) */
    int64_t m;                  /* 0 to 65536; with 0 nothing is launched */
    uint64_t a;                 /* [m, k]. Where f16 is multiplied (docs/matmul.md) and the problem
                                   has no wide_range, magnitudes are below 8188, and of sums of A
                                   over 32 to 128 elements with one scale below 32752 where zero
                                   points act by mma; what is larger makes infinities or NaN of
                                   C's row */
    int64_t a_stride;           /* elements between rows, 0: k; k to 2^23. Multiples of 128
                                   elements are fastest, then those of 16 bytes. Where it is no
                                   such multiple and the problem's is, kernels of their own
                                   compute it, which the first such run loads */
    uint64_t weights;           /* as packed */
    uint64_t bias, residual;    /* where the problem has them, else 0 */
    uint64_t c;                 /* [m, n], of gated products [m, n / 2], which may be the
                                   residual, not a */
    uint64_t workspace;         /* its TILUS_MATMUL_SEMAPHORES bytes are 0 */
    size_t workspace_size;      /* at least tilus_matmul_workspace_size */
    uint64_t weights_identity;  /* tilus_matmul_packed.identity of the weights, which the run
                                   refuses where it is not the plan's; 0: not given */
    uint64_t offsets;           /* with experts, i32 [experts + 1]: expert e has rows offsets[e] to
                                   offsets[e + 1] - 1. They ascend from 0 or more to m or less,
                                   which nobody checks; rows before and after belong to no expert,
                                   and are not touched */
    uint64_t ids;               /* with gather, scatter or combine, i32 [m]: of the rows of experts
                                   0 to m - 1, all different except for gather */
    uint64_t route;             /* with combine, f32 [m], by ids; rows of weight 0 count nothing
                                   whatever they are, as those that no expert has must */
    uint64_t a_scales;          /* where A is of the problem's product: f32 [m], scales of A's
                                   rows */
    uint64_t norm;              /* with TILUS_PROLOGUE_RMS_NORM, [k] of A's type, which no launch
                                   that may still run writes */
} tilus_matmul_call;

/* Bytes of device memory that runs of `m` rows need, the semaphores among them; grows with m,
 * never shrinks. */
TILUS_API size_t tilus_matmul_workspace_size(const tilus_matmul_plan *plan, int64_t m);

/* Enqueues the product: no waiting, no allocation, and no lock that is waited for, once
 * tilus_matmul_prepare was called for `m`; but the first run on a stream may make a graph, as
 * tilus_sequence_run does. It may be captured into a graph. Results are the same in every run. Runs
 * that may overlap need a workspace each. TILUS_ERROR_ARGUMENT names the field that is
 * wrong. `stream` is of the plan's device; NULL and the driver's special streams (1 legacy,
 * 2 per thread) are those of its primary context, whichever is current.
 *
 * From 257 rows on the weights are decoded and multiplied by cuBLAS, where libcublas is found
 * (TILUS_LIBCUBLAS is its path; an empty one stands for none), A is of the type that is
 * multiplied, C is so too or f32, nothing else is to be computed, and the weights are not
 * f8e5m2 with zero points, whose differences f16 may not hold. Then tilus_matmul_prepare must
 * come first, else it is TILUS_ERROR_STATE, and threads that enqueue products of one plan take
 * turns. */
TILUS_API tilus_status tilus_matmul_run(tilus_matmul_plan *plan, tilus_stream stream,
                                        const tilus_matmul_call *call);

/* Rows that are to be sorted by expert. Addresses of the device, of the workspace a multiple of 256, of the
 * others of 4. */
typedef struct tilus_matmul_sort {
    size_t struct_size;         /* sizeof(tilus_matmul_sort) */
    int64_t m;                  /* 0 to 65536; with 0 nothing is launched, and offsets stay as they are */
    uint64_t chosen;            /* i32 [m]: each row's expert. Another number is no expert's: rows with one come
                                   before all others where it is negative, else behind them */
    int64_t chosen_stride;      /* words of 4 bytes from one to the next, 1 or 2; 0: 1; 2 for numbers of 64
                                   bits, whose upper halves are not read */
    uint64_t offsets;           /* i32 [experts + 1], as tilus_matmul_call has them */
    uint64_t ids;               /* i32 [m], all different: of an expert's rows in order */
    uint64_t workspace;         /* its first TILUS_MATMUL_SEMAPHORES bytes are left as they are */
    size_t workspace_size;      /* at least tilus_matmul_workspace_size of m */
} tilus_matmul_sort;

/* Enqueues the sorting of rows for products of a problem with experts: one launch up to 512 rows, else two. As
 * tilus_matmul_run: tilus_matmul_prepare prepares it, too, and it may be captured into a graph. A mixture's products
 * have equal offsets and ids, so that one call serves them. TILUS_ERROR_ARGUMENT: the problem has no experts, or
 * names the field that is wrong. */
TILUS_API tilus_status tilus_matmul_sort_rows(tilus_matmul_plan *plan, tilus_stream stream,
                                              const tilus_matmul_sort *sort);

#ifdef __cplusplus
}
#endif

#endif
