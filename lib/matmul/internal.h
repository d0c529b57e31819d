/* Inside of the matmul library: plans, what a run consists of. Its frame, which finds and loads
 * kernels, is support/kernel_library.h.
 *
 *     matmul.c    opens the library
 *     kernels.c   kernels by their names
 *     plan.c      plans: chooses by table.h, and says what was chosen
 *     plan_cache.c    keeps the latest plans
 *     packed.c    where things lie in packed weights; parts of them
 *     identity.c  the last bytes of packed weights, which say what they are
 *     pack.c      packs on the host
 *     unpack.c    unpacks on the device
 *     run.c       the launches of a product, from a plan and a call
 *     experts.c   the choice for products of several experts
 *     sort.c      sorts rows by the experts that they chose
 *     invariant.c     the choice for batch invariant products
 *     dense.c     products of many rows, by cuBLAS, which cublas.c finds */
#ifndef TILUS_MATMUL_INTERNAL_H
#define TILUS_MATMUL_INTERNAL_H

#include "matmul/table.h"
#include "support/kernel_library.h"

enum {
    MATMUL_ALIGN = 256,         /* bytes, of what lies in packed weights and workspaces */
    MATMUL_M_MAX = 65536,
    MATMUL_BUCKETS = 17,        /* of m: 1, 2, 4, .. 65536 */
    MATMUL_LAUNCHES = 5,        /* of the rows that are computed at once */
    MATMUL_SORTS = MATMUL_SORT_MANY - MATMUL_SORT_FEW + 1,      /* programs that sort rows by expert */
    MATMUL_SORT_LAUNCHES = 2,
    MATMUL_LOOSER = 2,          /* kernels for other strides of A than the plan's */
    MATMUL_DENSE_M = 257,       /* rows from which unpacked weights and cuBLAS are faster than mma */
};

/* ---- kernels ------------------------------------------------------------ */

/* The arguments of the programs, of these names in kernels/matmul. */
#define MATMUL_ARGUMENT_NAMES(ARGUMENT)                                                        \
    ARGUMENT(weights) ARGUMENT(scales) ARGUMENT(zeros) ARGUMENT(plain) ARGUMENT(plain_scales)  \
    ARGUMENT(plain_zeros) ARGUMENT(to) ARGUMENT(a) ARGUMENT(prearranged) ARGUMENT(flags)       \
    ARGUMENT(partials) ARGUMENT(bias) ARGUMENT(residual) ARGUMENT(c) ARGUMENT(m) ARGUMENT(n)   \
    ARGUMENT(k) ARGUMENT(stride) ARGUMENT(slices) ARGUMENT(blocks) ARGUMENT(whole)             \
    ARGUMENT(share) ARGUMENT(extra) ARGUMENT(offsets) ARGUMENT(ids) ARGUMENT(experts)         \
    ARGUMENT(packed) ARGUMENT(top) ARGUMENT(tiles) ARGUMENT(rows) ARGUMENT(route)             \
    ARGUMENT(tokens) ARGUMENT(list) ARGUMENT(row_scales) ARGUMENT(norm) ARGUMENT(eps)       \
    ARGUMENT(chosen) ARGUMENT(kinds) ARGUMENT(rest)

typedef enum MatmulArgument {
#define ARGUMENT(name) MATMUL_ARGUMENT_##name,
    MATMUL_ARGUMENT_NAMES(ARGUMENT)
#undef ARGUMENT
    MATMUL_ARGUMENTS
} MatmulArgument;

/* Finds a kernel's arguments by their names, as argument_order_find does. */
bool argument_order(const tilus_kernel_info *info, ArgumentOrder *order);

/* Finds argument_order of a kernel that is loaded. */
tilus_status kernel_check(Kernel *kernel, const tilus_kernel_info *info);

/* Returns the library's kernel of that name, which is made when there is none; loads nothing.
 * NULL: out of memory. */
Kernel *kernel_find(tilus_matmul *matmul, const MatmulSpec *spec, const MatmulConfig *config,
                    MatmulProgram program, const char *target);

/* ---- the library -------------------------------------------------------- */

typedef struct DenseApi DenseApi;      /* cublas.h */
typedef struct PlanCache PlanCache;    /* plan_cache.c */

struct tilus_matmul {
    KernelLibrary library;
    MatmulTable *table;         /* of tunings */
    pthread_mutex_t lock;       /* of `plans` and `dense` */
    PlanCache *plans;           /* the latest ones that were made */
    bool dense_known;           /* `dense` was looked for */
    DenseApi *dense;            /* NULL: there is no cuBLAS */
};

/* ---- plans -------------------------------------------------------------- */

/* The configuration of products of one bucket of m. */
typedef struct Choice {
    MatmulConfig config;
    MatmulSource source;
    bool exact;                 /* measured for this very problem and bucket */
    double us, floor;           /* measured or expected, and of reading alone */
    double usual_us;            /* where it is batch invariant: without that; else 0 */
    Kernel *prologue;           /* in front of these; NULL: none, or the product does it */
    Kernel *prepare, *product;  /* prepare: NULL where A is read as it is */
    Kernel *find_tiles;         /* of experts' rows, by wgmma; else NULL */
    MatmulConfig rest;          /* of the last rows of experts, where they are few; tiles 0: `config` */
    Kernel *last;               /* the product of these, beside that of the others; NULL: none */
    Kernel *combine;            /* behind these; NULL: nothing is combined, or the product does it */
    struct {
        Kernel *prologue, *prepare, *product;
    } looser[MATMUL_LOOSER];    /* for strides of A that are multiples of 16 bytes; for any */
} Choice;

/* Offsets in packed weights, bytes: packed blocks [tiles, slices], each of codes, scales and
 * zero points; where all of k has one scale, scales and zero points are tables after them, and
 * where scales are f8e4m3, the factor. */
typedef struct Packed {
    int rows;                   /* of a tile */
    int64_t tiles, slices;
    size_t block;
    size_t block_scales, block_zeros;   /* within a packed block */
    size_t scales, zeros;               /* tables; 0: in packed blocks, or none */
    size_t factor;                      /* f32, of all of C; 0: none */
    size_t size;
    uint64_t identity;
    unsigned char bytes[TILUS_MATMUL_IDENTITY];     /* the last ones of `size` */
} Packed;

/* Unpacked weights for cuBLAS. */
typedef struct Dense {
    bool possible;              /* of the problem: cuBLAS can compute it */
    const DenseApi *api;        /* NULL: this plan does without */
    pthread_mutex_t lock;       /* of the handle's stream and workspace */
    _Atomic(void *) handle;     /* a cublasHandle_t; NULL until prepared */
} Dense;

struct tilus_matmul_plan {
    tilus_matmul *matmul;
    MatmulSpec spec;
    MatmulDevice device;
    int ordinal;
    const char *target;
    Packed packed;
    Choice choices[MATMUL_BUCKETS];
    Choice narrow[MATMUL_BUCKETS];      /* for up to 3/4 of a bucket, by wgmma; us 0: as others */
    size_t largest[MATMUL_BUCKETS];     /* workspace of a bucket's or fewer rows, in bytes */
    Kernel *pack[2];            /* from [k, n], from [n, k] */
    Kernel *unpack[MATMUL_UNPACKS];     /* to f16, bf16 and f32; NULL of products of 8 bits */
    Kernel *sort[MATMUL_SORTS]; /* from MATMUL_SORT_FEW on; NULL without experts */
    Dense dense;
};

/* Opens a library without a runtime, for plans of devices that are not there. */
tilus_status matmul_open_absent(const tilus_matmul_options *options, tilus_matmul **out);

/* Creates a plan for a device that need not be there, of a compute capability that target_for
 * knows. It tells which configurations and kernels tilus_matmul_plan_create would choose, and
 * runs nothing. Products of many rows are not left to cuBLAS. `matmul` may have no runtime. */
tilus_status plan_create_absent(tilus_matmul *matmul, const tilus_matmul_problem *problem,
                                const MatmulDevice *device, tilus_matmul_plan **out);

/* Creates a plan for such a device that computes with `config`, without tunings and the model:
 * right for calls of as many rows as the configuration was enumerated for, or any in whose
 * launches all columns are there. The tuner measures its launches, or runs them elsewhere.
 * TILUS_ERROR_UNSUPPORTED: the configuration does not fit the device. */
tilus_status plan_create_fixed(tilus_matmul *matmul, const MatmulSpec *spec,
                               const MatmulConfig *config, const MatmulDevice *device,
                               tilus_matmul_plan **out);

/* Finds the kernels that sort rows of experts. False: out of memory. */
bool sort_find(tilus_matmul_plan *plan);

/* Puts the kernels that sort `m` rows into `kernels`, in the order of their launches, and returns how many. */
size_t sort_kernels(const tilus_matmul_plan *plan, int64_t m, Kernel *kernels[static MATMUL_SORT_LAUNCHES]);

/* Finds the kernels of a choice's configuration, for other strides of A than the plan's, too. False:
 * out of memory. */
bool choice_find(const tilus_matmul_plan *plan, Choice *choice);

/* plan_find fills in a plan with a spec and an ordinal like an equal one that was kept; false
 * where there is none. plan_keep keeps a copy of a plan. Thread safe. */
bool plan_find(tilus_matmul_plan *plan, int64_t n_tile);
tilus_status plan_keep(const tilus_matmul_plan *plan, int64_t n_tile);
void plans_free(PlanCache *plans);

/* Return the number of the bucket of `m` rows, and the choice for them: from a bucket's least rows
 * up to 3/4 of it the narrow one, if there is one. */
int bucket_number(int64_t m);
const Choice *plan_choice(const tilus_matmul_plan *plan, int64_t m);

/* ---- packed weights ----------------------------------------------------- */

void packed_place(Packed *packed, const MatmulSpec *spec, int rows);

/* Writes the identity of weights that are packed so, at last. */
void packed_identify(Packed *packed, const MatmulSpec *spec);

/* Puts the identity after the packed bytes of the plan. */
void packed_put_identity(const tilus_matmul_plan *plan, unsigned char *packed);

/* Returns the bytes of a scale. */
size_t packed_scale_bytes(const MatmulSpec *spec);

/* Returns the bytes of a zero point, 0 where there are none. */
size_t packed_zero_bytes(const MatmulSpec *spec);

/* Returns the byte of a zero point beyond the edges, which is 0: integers are stored larger by
 * the codes' offset. */
int packed_zero_nothing(const MatmulSpec *spec);

/* Counts the groups of k that have scales in plain weights. */
int64_t packed_groups(const MatmulSpec *spec);

/* Returns the index of row `row` of a tile among the scales of group `q` of a packed block. */
size_t packed_scale_index(int rows, int q, int row);

/* Copies the caller's weights, and refuses fields that are NULL though the problem needs them,
 * or given though it does not. */
tilus_status weights_take(const tilus_matmul_plan *plan, const tilus_matmul_weights *weights,
                          tilus_matmul_weights *own);

/* Writes a packed block that lies outside of k, as tilus_matmul_pack does. */
tilus_status pack_empty_block(const tilus_matmul_plan *plan, unsigned char *block);

/* ---- runs --------------------------------------------------------------- */

/* The launches of a product of many rows: blocks, mainloop iterations of each (`share`, and one
 * more for the first `extra`, beside those of `whole` tiles), and offsets of buffers in the
 * workspace, bytes. */
typedef struct Product {
    const Choice *choice;
    int64_t rows;               /* of A at once; those that are left come next */
    int64_t blocks, whole, share, extra;    /* whole: by wgmma, tiles of a block's own */
    bool shares_tiles;          /* blocks share tiles, and need flags and partial sums */
    int64_t tiles;              /* of rows, with experts, as many as any offsets make */
    size_t prearranged_a, partials, list, results, size;    /* list: of tiles; results: rows that
                                                               are combined */
    size_t row_scales;          /* of products of 8 bits */
    size_t plain_a;             /* A after a prologue of its own */
} Product;

Product product_of(const tilus_matmul_plan *plan, const Choice *choice, int64_t m);

/* Chooses the rows of packed blocks, unless `rows` are not 0, and the configurations of products
 * of several experts, by the cost model. Returns the rows; 0: nothing fits. */
int experts_choose(tilus_matmul_plan *plan, int rows);

/* Makes the choices of a plan, which are those of the usual product, batch invariant. False:
 * nothing fits. */
bool invariant_choose(tilus_matmul_plan *plan);

/* Returns the most tiles of `tile` rows that `m` rows of the plan's experts can make. */
int64_t experts_tiles(const tilus_matmul_plan *plan, int64_t m, int64_t tile);

/* Finds plan->largest, from all choices and from what cuBLAS serves. */
void products_measure(tilus_matmul_plan *plan);

/* Returns the choice for a call's rows, with kernels that take its stride of A. */
Choice call_choice(const tilus_matmul_plan *plan, const tilus_matmul_call *call);

/* Makes the launches of the template's programs, in order, for the rows from `first` on;
 * returns their count. The call was checked. */
size_t product_launches(const tilus_matmul_plan *plan, const tilus_matmul_call *call,
                        const Product *p, int64_t first, KernelLaunch launches[MATMUL_LAUNCHES]);

/* Sets packed weights, and the tables of scales and zero points: without these, the packed blocks,
 * and the factor in the place of zero points. */
void set_weights(KernelLaunch *l, const tilus_matmul_plan *plan, uint64_t weights);

/* Makes the launch of @pack; the weights are on the device. */
KernelLaunch pack_launch(const tilus_matmul_plan *plan, const tilus_matmul_weights *weights,
                         uint64_t packed);

/* Tells what launches of a choice are to save: the host's time where the device has done the product
 * before the host could launch its kernels one by one, else the device's. */
KernelHaste choice_haste(const Choice *choice);

/* Enqueues launches, whose values are numbered by MatmulArgument, on the plan's device where the
 * stream is NULL or another special one. */
tilus_status launches_run(const tilus_matmul_plan *plan, const KernelLaunch *launches, size_t count,
                          tilus_stream stream, KernelHaste haste);

/* ---- dense products ----------------------------------------------------- */

/* Decides if the plan uses cuBLAS, which the first plan looks for; none of a software device
 * does. */
tilus_status dense_plan(tilus_matmul_plan *plan);

/* Returns true when a device with cuBLAS unpacks weights for `m` rows of the plan. */
bool dense_may_serve(const tilus_matmul_plan *plan, int64_t m);
void dense_free(tilus_matmul_plan *plan);
void dense_close(DenseApi *api);

/* dense_serves returns true when cuBLAS multiplies `m` rows, all of a bucket; such products take
 * dense_workspace bytes. */
bool dense_serves(const tilus_matmul_plan *plan, int64_t m);
size_t dense_workspace(const tilus_matmul_plan *plan);

tilus_status dense_prepare(tilus_matmul_plan *plan);
tilus_status dense_run(tilus_matmul_plan *plan, tilus_stream stream,
                       const tilus_matmul_call *call);

/* ---- unpacking ---------------------------------------------------------- */

/* Finds the kernels that unpack, but of products of 8 bits, whose weights lie in bit planes. False: out of
 * memory. */
bool unpack_find(tilus_matmul_plan *plan);

/* Returns the kernel that unpacks to a type; NULL: there is none. */
Kernel *unpack_kernel(const tilus_matmul_plan *plan, DType type);

/* Makes the launch that unpacks `slices` slices of k from `first` on to a matrix of `columns` columns. */
KernelLaunch unpack_launch(const tilus_matmul_plan *plan, DType type, uint64_t weights, int64_t first,
                           int64_t slices, int64_t columns, uint64_t to);

#endif
