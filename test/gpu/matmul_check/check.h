/* matmul_check: the matmul library against sums in f64, for every type that it takes.
 *
 *     main.c      the command line, and verdicts
 *     trials.c    what is computed            shapes.c   and how: sizes, configurations
 *     data.c      operands and the sums       trial.c    packs, runs and compares
 *     gpu.c, cpu.c    what runs it: a GPU, or the CPU engine */
#ifndef TILUS_TEST_MATMUL_CHECK_H
#define TILUS_TEST_MATMUL_CHECK_H

#include "matmul/internal.h"

#define TOOL "matmul_check"
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { SIZES = 5, NAME_MAX_BYTES = 160 };

/* ---- engines ------------------------------------------------------------------ */

/* The engine that runs products, with addresses of its memory. Functions return a status when
 * the work is done; tilus_rt_error() says why they failed. */
typedef struct Engine Engine;
struct Engine {
    MatmulDevice device;
    tilus_matmul *matmul;       /* NULL before `start` */

    /* Opens the library with these tunings, whose text may go away. */
    tilus_status (*start)(Engine *e, const char *tunings);
    void (*close)(Engine *e);

    tilus_status (*allocate)(Engine *e, size_t size, uint64_t *address);
    void (*release)(Engine *e, uint64_t address);   /* 0 is ignored */
    tilus_status (*upload)(Engine *e, uint64_t to, const void *from, size_t size);
    tilus_status (*download)(Engine *e, void *to, uint64_t from, size_t size);
    tilus_status (*fill)(Engine *e, uint64_t to, unsigned char byte, size_t size);

    tilus_status (*plan)(Engine *e, const tilus_matmul_problem *problem,
                         tilus_matmul_plan **out);
    tilus_status (*pack)(Engine *e, tilus_matmul_plan *plan,
                         const tilus_matmul_weights *weights, uint64_t packed);
    /* Calls of one m, each right behind the one before it. */
    tilus_status (*run)(Engine *e, tilus_matmul_plan *plan, const tilus_matmul_call *calls,
                        size_t count);
    bool overlaps;              /* they may begin before the one before them has ended */
};

/* The first GPU; the CPU engine, as if it were a small H200. NULL after a message on stderr;
 * e->close frees it. */
Engine *engine_open_gpu(void);
Engine *engine_open_cpu(void);

/* ---- trials ------------------------------------------------------------------- */

/* Sizes of weights, and what computes a product of each m: a ROWS of 0 leaves it to the
 * library, and so does a configuration that does not fit the type or the device. */
typedef struct Shape {
    int64_t n, k;
    MatmulConfig configs[SIZES];
} Shape;

extern const int64_t shape_sizes[SIZES];    /* m */
extern const Shape shapes[];
extern const size_t shape_count;

typedef enum Packing {
    PACK_HOST,
    PACK_DEVICE,        /* and on the host: both give the same bytes */
    PACK_PART           /* a part of larger weights, cut out of those when they are packed */
} Packing;

/* Products of one plan; each of its sizes is a case. */
typedef struct Trial {
    char name[NAME_MAX_BYTES];
    tilus_matmul_problem problem;
    const MatmulConfig *configs;        /* of each size; NULL: as the library chooses */
    int64_t sizes[SIZES];               /* m, growing; size_count of them */
    size_t size_count;
    int64_t a_stride;                   /* 0: k */
    bool transposed;                    /* plain weights are [n, k] */
    Packing packing;
    int64_t n_first, k_first;           /* PACK_PART: where they begin ... */
    int64_t n_whole, k_whole;           /* ... in weights of these sizes */
    bool dense;                         /* cuBLAS is what shall compute it */
} Trial;

typedef struct Trials {
    Trial *items;
    size_t count, capacity;
} Trials;

/* All of them, in the same order always; the items are freed with free(). False: out of
 * memory. */
bool trials_make(Trials *trials);

/* "u4 x f16, group 128, no zeros, m = 16". */
void trial_case_name(const Trial *trial, size_t size, char name[static NAME_MAX_BYTES]);

/* The trials' configurations as tunings for the device, as far as they fit it; freed with
 * free(). NULL: out of memory. */
char *trials_tunings(const Trials *trials, const MatmulDevice *device);

/* ---- data --------------------------------------------------------------------- */

/* Operands as bytes, and as what they mean; of a part the weights are the whole's. */
typedef struct Data {
    MatmulSpec spec;
    int64_t matrices;                   /* of weights: experts, or 1 */
    int64_t rows;                       /* of A: the largest m */
    int64_t stride;                     /* elements between A's rows */
    int64_t groups;
    size_t code_bytes, scale_bytes, zero_bytes;     /* of one matrix */
    size_t a_bytes, bias_bytes, residual_bytes;
    unsigned char *codes, *scales, *zeros, *a, *bias, *residual;
    float factor;                       /* of all of C, where the problem has one; else 1 */
    float *a_scales;                    /* of rows, where the problem's A has them */
    double *weights;                    /* [matrices, n, k], less zero points, times scales */
    double *a_values, *bias_values, *residual_values;
    double *c;                          /* [matrices, rows, columns of C]: products of A's rows, without the residual */
} Data;

/* False: out of memory, or the problem is none, which `message` says. data_free takes what
 * there is, and {0}. */
bool data_make(Data *data, const Trial *trial, char *message, size_t size);
void data_free(Data *data);

/* Returns the first row of expert `expert` among `m` rows of A, and behind the last expert the number
 * of the rows that experts have: some rows before and behind these are nobody's. */
int32_t data_offset(const Data *data, int64_t expert, int64_t m);

/* Returns the number of row `row` of m that experts' rows have, for problems with ids: a permutation. */
int32_t data_id(int64_t row, int64_t m);

/* Fills in ids[m] and route[m], the weights of rows by their ids: 0 for rows that are nobody's, and for some others. */
void data_route(const Data *data, int64_t m, int32_t *ids, float *route);

/* Counts the rows of C. */
int64_t data_result_rows(const Data *data, int64_t m);

/* The byte around results and workspaces, and in them before: a NaN of any result's type. */
enum { DATA_MARK = 0xff };

/* Order in which a product has the rows of A and of the residual; backwards comes first. */
typedef enum Order { BACKWARDS, FORWARDS, ORDERS } Order;

/* The distance of C from the product. */
typedef struct Difference {
    double norm;                /* as a part of the product's; NAN where C has one */
    double largest;             /* of one element, as a part of their root mean square */
} Difference;

/* Compares C[m, n] with the product. Rows of no expert are as they were, full of DATA_MARK, or the
 * difference is infinite. */
Difference data_compare(const Data *data, const Trial *trial, int64_t m, Order order,
                        const void *c);

/* Returns the bounds of differences. The norm: 1e-2 where anything is bf16, else 2e-3,
 * which is also the norm of one wrong element among 250000. The largest: 16 times that; on the
 * CPU engine it is 3.4 times that at most, in a third of all cases. */
Difference data_bounds(const MatmulSpec *spec);

/* ---- running ------------------------------------------------------------------ */

typedef enum Verdict { VERDICT_RIGHT, VERDICT_WRONG, VERDICT_SKIPPED, VERDICTS } Verdict;

typedef struct Outcome {
    Verdict verdict;
    bool lost;                          /* of the device: nothing works any more */
    char text[1400];                    /* error and configuration; or why */
} Outcome;

/* A plan with its operands on the device. */
typedef struct Run Run;

/* NULL: `outcome` says why. run_close takes NULL. */
Run *run_open(Engine *engine, const Trial *trial, Outcome *outcome);
void run_close(Run *run);

/* Checks one of the trial's sizes. Where products may overlap, one with A's rows backwards goes
 * ahead of it, into the same workspace, and must be right, too. `spoil` makes one element 0 before
 * it is compared. */
void run_product(Run *run, size_t size, bool spoil, Outcome *outcome);

/* Describes how products of `m` rows are computed: "stages 2, prearranged_a 2, .. of
 * matmul-u4-..". */
void run_describe(const tilus_matmul_plan *plan, int64_t m, char *text, size_t size);

#endif
