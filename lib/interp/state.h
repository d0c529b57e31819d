/* The interpreter's state, shared by its op families.
 *
 * Every SSA value has one Binding for the whole run, found through
 * Value.data: values are redefined by each block and iteration, never needed
 * twice at once, so a long loop allocates nothing. Where blocks run together it has one
 * for each, and Value.data leads to that of the block whose task runs.
 *
 * Blocks run together that belong to one cluster; of a cooperative program all blocks
 * of the grid do, as if they were one cluster. */
#ifndef TILUS_INTERP_STATE_H
#define TILUS_INTERP_STATE_H

#include "interp/interp.h"

/* ---- register tensors ----------------------------------------------- */

typedef struct Place {
    uint16_t thread, slot;
} Place;

/* A layout as tables, one for each layout of the program. */
typedef struct LayoutMap {
    const Layout *layout;
    int64_t elements;
    int32_t *index;     /* [threads][slots][rank]: where an element lies */
    uint32_t *linear;   /* [threads][slots]: its row-major number */
    Place *place;       /* [elements]: the least thread that holds it */
    struct LayoutMap *next;
} LayoutMap;

/* A thread's elements are packed: slot s has bits [s * bits, (s + 1) * bits)
 * of its words, least significant first. */
typedef struct Tensor {
    DType dtype;
    unsigned bits;          /* of an element */
    int64_t threads, slots;
    int64_t words;          /* a thread's 32-bit words */
    uint32_t *data;         /* [threads][words] */
    const LayoutMap *map;

    /* The allocate_register that left all of it undefined, or NULL. One flag
     * serves all bits: only allocate_register makes undefined ones, in whole
     * tensors, and only view, slice, permute, reshape and carrying pass them on. */
    const Op *undefined;
    uint64_t product;       /* of sums: the number of the last dot_async; 0: there is none */
} Tensor;

uint64_t words_get(const uint32_t *words, uint64_t bit, unsigned width);
void words_set(uint32_t *words, uint64_t bit, unsigned width, uint64_t code);

static inline uint64_t tensor_get(const Tensor *t, int64_t thread, int64_t slot)
{
    return words_get(t->data + thread * t->words, (uint64_t)slot * t->bits, t->bits);
}

static inline void tensor_set(Tensor *t, int64_t thread, int64_t slot, uint64_t code)
{
    words_set(t->data + thread * t->words, (uint64_t)slot * t->bits, t->bits, code);
}

/* ---- memory --------------------------------------------------------- */

enum { RANK_BITS = 13 };
_Static_assert(LIMIT_TOGETHER <= 1 << RANK_BITS && LIMIT_CLUSTER <= 1 << RANK_BITS,
               "each rank has a number");

/* Accesses of threads to a byte that no barrier tells apart: the first one and
 * another thread's, which is `thread` again if there was none. Two are enough to
 * decide whether some thread other than a given one was there. Of warps, all that
 * were there are known. */
typedef struct Access {
    uint64_t time : 35;     /* of the memory op's execution; 0: never; TIME_IN_FLIGHT:
                               of a copy_async whose wait is still to come */
    uint64_t mask : 8;      /* writes: the bits written at that time */
    uint64_t thread : 10;
    uint64_t other : 10;
    uint64_t is_bulk : 1;   /* of a copy_async_bulk */
    uint32_t op : 32 - RANK_BITS;   /* numbers in Interp.ops */
    uint32_t rank : RANK_BITS;      /* of the block among those that run together */
    uint32_t other_op;      /* TIME_IN_FLIGHT: how many elements of copies read the byte */
    uint32_t warps;         /* a bit each; is_bulk: the owner's number, an mbarrier's */
    uint32_t more;          /* another Access of this byte, Interp.extra[more - 1]; 0: none */
} Access;

enum { TIME_BITS = 35 };
#define TIME_IN_FLIGHT ((UINT64_C(1) << TIME_BITS) - 1)

/* Accesses by threads to a byte that many blocks access alike: the last one of each warp of the
 * blocks that run together. */
typedef struct Crowd {
    Access **of;            /* by owner; NULL: it made none */
    uint64_t latest;        /* the time of the last one */
} Crowd;

typedef struct Release Release;     /* one execution of a `release` (order.c) */

typedef struct ByteHistory {
    Access write;           /* the last one; more: those before it, while its op runs */
    Access read, atomic;    /* more: those that barriers tell apart */
    Access *reduced;        /* by bulk stores; NULL: never */
    Crowd *crowds;          /* of reads and of atomic ops, beside those above; NULL: of few */
    Release *release;       /* the last one of the semaphore that begins here, or NULL */
} ByteHistory;

/* A buffer, or a shared tensor's bytes (one for each allocate_shared and rank in a
 * cluster, used by every cluster in turn). */
typedef struct Memory {
    unsigned char *data;
    int64_t size;               /* bytes */
    bool shared;
    unsigned char *defined;     /* a bit for each of data's; NULL: all defined */
    ByteHistory **pages;        /* HISTORY_PAGE bytes each, made when touched */
    struct Memory **of_rank;    /* shared: that of each block that runs together */
    uint32_t allocated_in;      /* shared: Interp.block_count when its block last allocated it; 0: never */
} Memory;

enum { HISTORY_PAGE = 1024 };

/* Makes memory of `size` bytes at `data`, all defined. */
Memory *memory_new(Interp *in, void *data, int64_t size);

/* A global view or a shared tensor. The bits that its elements can span are
 * less than 2^63, so addresses inside it never overflow. */
typedef struct View {
    Memory *memory;
    const char *name;           /* of the memory or of a part of it, for messages */
    const Op *origin;           /* view_global or an allocation; of a part, its op */
    int64_t first;              /* the number of the tensor's first element */
    unsigned rank;
    unsigned bits;              /* of an element */
    int64_t extent[LIMIT_RANK];
    int64_t stride[LIMIT_RANK]; /* elements */
    Swizzle swizzle;            /* of element numbers */
} View;

typedef struct Copy Copy;   /* one that is in flight (copy.c) */
typedef struct Product Product;     /* one that is in flight (product.c) */
typedef struct Mbarrier Mbarrier;   /* mbarrier.c */

/* A barrier of the blocks that run together. */
typedef struct Meeting {
    uint64_t met;           /* how often all of them have met ... */
    unsigned meeting;       /* ... and how many wait for the next time */
    uint64_t *waits;        /* of each rank: met + 1 when it began to wait; 0: it does not */
} Meeting;

/* ---- values --------------------------------------------------------- */

/* Which member counts follows from the value's type. */
typedef struct Binding {
    int64_t integer;        /* TYPE_SCALAR; of floats the code */
    Tensor tensor;          /* TYPE_REG; owns its words */
    View view;              /* TYPE_SHARED, TYPE_GLOBAL; TYPE_PTR: memory and name */
    Meeting *meeting;       /* TYPE_GLOBAL, TYPE_PTR: whose state it is, once it is used */
    Mbarrier *mbarriers;    /* TYPE_MBARRIER */
} Binding;

static inline Binding *value_binding(const Value *v)
{
    return v->data;
}

static inline Tensor *value_tensor(const Value *v)
{
    return &value_binding(v)->tensor;
}

/* The value `from` as the value `to` of the same type. */
void value_assign(const Value *to, const Value *from);

/* ---- the machine ---------------------------------------------------- */

enum { WARP = 32, WARPS = 1024 / WARP };    /* threads of a warp, warps of a block */

/* A region that is being run. */
typedef struct Frame {
    const Region *region;
    const Op *next;                 /* NULL: the region has ended */
    int64_t upper, step;            /* of a `for` around it */
    struct Frame *outer;
} Frame;

/* A task runs the ops of the block, or of a thread_group (task.c). */
typedef struct Task {
    ThreadRange threads;
    Frame *top;                     /* NULL: it has ended */
    unsigned depth;                 /* how many frames there are */
    bool waits;                     /* its next op could not run yet */
    unsigned rank;                  /* of its block */
    struct Task *around;            /* that came to the thread_group; NULL: the block's */
    unsigned around_depth;          /* in which of its regions it did */
    struct Task *next;
} Task;

struct Interp {
    Program *program;
    Arena *arena;
    Diag *diag;
    const tilus_interpret_options *options;     /* or NULL */
    int64_t grid[3], block[3];      /* unused dimensions: 1, 0; block: the running one's */
    unsigned together[3];           /* extents of the blocks that run together, a cluster's */
    unsigned blocks, rank;          /* how many these are; the running one's number there */
    Value **values;                 /* that have a binding for each rank */
    uint32_t value_count, value_capacity;
    Meeting *meeting;               /* of the cluster's blocks */
    bool exited;                    /* the block came to an exit */
    Task *tasks, *task;             /* all, the block's first; the one that runs */
    Task *free_tasks;               /* to be used again, as free_frames */
    Frame *free_frames;
    bool blocked;                   /* the op could not run yet */
    uint64_t steps;                 /* ops that ran */
    ThreadRange threads;            /* those that run the ops */
    LayoutMap *maps;
    double *decoded[DTYPE_COUNT];   /* every code's value, of narrow types */

    /* Time counts executions of memory ops. An access is of another cluster when its
     * time is below block_start; what warp u did before ordered[w][u] is ordered
     * before what warp w does now, and all_ordered[w] is the least of that row: both
     * numbers are those of owners. */
    uint64_t time, block_start;
    uint64_t **ordered, *all_ordered;
    unsigned first_owner;           /* of the running block's warps */
    unsigned warp_count;            /* of all blocks that run together, rank by rank */
    unsigned owner_count;           /* these, and after them the mbarriers */
    uint64_t *joined;               /* a clock, of use while clocks are joined */
    uint64_t op_ordered;            /* the least of all_ordered of the warps that run the op */
    Access **extra;                 /* accesses beyond the first of their byte */
    uint32_t extra_count, extra_capacity;
    uint64_t *block_starts;         /* of each cluster so far, or block without them */
    uint32_t block_count, block_capacity;

    /* Accesses that this block's locks have ordered before it; see order.c. */
    bool has_locks;                 /* the program does, and is not cooperative */
    struct Acquired **acquired;     /* releases, the latest first, by rank */
    struct KnownBlock *known;       /* of each block so far, for each rank, when has_locks */
    uint32_t known_count, known_capacity;

    /* Memory ops executed so far, numbered; op_numbers finds an op's. */
    const Op **ops;
    uint32_t op_count, op_capacity;
    InternSet op_numbers;
    uint32_t op;                    /* the memory op being executed */
    bool op_indexed;                /* its index may name a place twice, in one thread, too */

    tilus_line_profile *lines;      /* by number; NULL: nobody counts */
    size_t line_count;

    Copy *copies;                   /* in flight, the oldest first ... */
    Copy *free_copies;              /* ... and those to be used again */
    Copy *stores;                   /* bulk stores in flight, the oldest first */
    Product *products, *free_products;  /* the same of dot_async */
    uint64_t product_count;             /* that were issued */
    int64_t (*groups)[COMPLETION_COUNT][WARPS]; /* of each rank: what each warp has committed */
    Mbarrier *mbarriers;            /* all of the program */
};

/* The warps of the threads that run the ops. */
static inline unsigned first_warp(const Interp *in)
{
    return (unsigned)(in->threads.begin / WARP);
}

static inline unsigned end_warp(const Interp *in)
{
    return (unsigned)((in->threads.begin + in->threads.count) / WARP);
}

/* Turns to the block with this rank: values are its own. */
void interp_turn_to(Interp *in, unsigned rank);

/* Evaluates the attribute `kind` of `op`, a rank in the cluster or, with `mask`, a mask of
 * such. Without one it is the running block's. */
bool interp_rank(Interp *in, const Op *op, AttrKind kind, bool mask, int64_t *out);

/* Nobody has come to it yet. */
Meeting *meeting_new(Interp *in);
/* The meeting of a grid_synchronize, which belongs to its state. */
Meeting *grid_meeting(Interp *in, const Op *op);

/* The running threads wait for the same ones of the other blocks that run together. Returns true
 * when all have come, and their accesses are ordered; else the op is blocked. */
bool interp_meet(Interp *in, Meeting *m);

/* Evaluates `e` for `op`; errors are located there. */
bool interp_evaluate(Interp *in, const Op *op, const Expr *e, int64_t *out);

/* ---- tasks (task.c) ---------------------------------------------------- */

/* Runs the op, of any kind. */
bool interp_op(Interp *in, const Op *op);

/* Runs the program's body in each block of the cluster, up to the block's exit. */
bool task_run_cluster(Interp *in);

/* For messages: what `op`, a lock, waits for. */
const char *lock_wait_text(Interp *in, const Op *op);

/* The running task goes on in the region `r`, and then after the op around it; the
 * new frame. It goes there once more; it is done with it. */
Frame *task_enter(Interp *in, const Region *r);
void task_repeat(Interp *in);
void task_leave(Interp *in);

/* A task of its own for a thread_group: it runs as far as it can, or to its end. */
bool task_begin(Interp *in, const Op *group);

/* At the end of the region of a `for` or `while`: the next round, or none. */
bool loop_next(Interp *in, const Op *op);

/* Reports operands of `op` that hold undefined elements. */
bool interp_operands_defined(Interp *in, const Op *op);

/* Fills the register tensor that `op` gives, whose operands must be defined: `code` tells the
 * code of each slot of each thread. */
typedef uint64_t SlotCode(Interp *in, const Op *op, int64_t thread, int64_t slot);
bool interp_fill_slots(Interp *in, const Op *op, SlotCode *code);

/* The value of a code, from a table when the type is narrow. */
double interp_value(Interp *in, DType t, uint64_t code);

/* "block (1, 2)" for the block with number `block` in execution order. */
const char *interp_block_name(Interp *in, uint64_t block);
/* Does so for the running block. */
const char *interp_running_name(Interp *in);
/* The number in the grid of the block with this rank in cluster number `cluster`. */
uint64_t interp_block_number(const Interp *in, uint64_t cluster, unsigned rank);

/* ---- profile (profile.c) -------------------------------------------- */

/* Begins to count, if the options want it, an execution of an op, and elements of `view`
 * that threads moved for it. The report comes after the last block. */
void profile_open(Interp *in);
void profile_op(Interp *in, const Op *op);
void profile_moved(Interp *in, const Op *op, const View *view, bool write, int64_t elements);
void profile_report(Interp *in);

/* ---- races (race.c, clocks.c) ------------------------------------------- */

/* Starts an execution of a memory op: a new time, the op's number. */
bool race_begin(Interp *in, const Op *op);

/* Begins a block for all warps; nothing orders it with the blocks before it. */
void race_block(Interp *in);

/* The threads that run the ops wait for each other: what any of them has done, or
 * knows to be ordered before, is ordered before what they do from now on. */
void race_barrier(Interp *in);

/* Does so for these threads of all blocks that run together. */
void race_meeting(Interp *in);

/* Makes the clocks, once the mbarriers are known. */
void race_open(Interp *in);

/* Joins the clock of `warp` into `clock`; joins `clock` into that of `warp`. Both
 * order the accesses of the warp's own threads. */
void race_arrive(Interp *in, unsigned warp, uint64_t *clock);
void race_acquire(Interp *in, unsigned warp, const uint64_t *clock);

/* `thread`, counted from the first of those that run the op, reads bytes
 * [first, last] of `view`, or writes the bits `mask` of `byte`, which hold
 * `before`, as `after`. False after reporting a race. */
bool race_read(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last);
bool race_write(Interp *in, const View *view, int64_t thread, int64_t byte, unsigned mask,
                unsigned before, unsigned after);

/* An atomic op of `thread` changes bytes [first, last] of `view`. */
bool race_atomic(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last);

/* A copy_async reads or writes bytes [first, last] of `view`, from its start
 * to its wait, by any of the threads that run it: the accesses
 * conflict with those of every thread, from the last synchronize before the
 * start to the first one after the wait. The start is checked, for all bytes
 * of the copy, before it is noted; the end notes that the bits `mask` of
 * `byte`, which held `before`, now hold `after`. */
bool race_copy_check(Interp *in, const View *view, bool write, int64_t first, int64_t last);
void race_copy_start(Interp *in, const View *view, bool write, int64_t first, int64_t last);
void race_copy_read_ends(Interp *in, const View *view, int64_t first, int64_t last);
bool race_copy_write_ends(Interp *in, const View *view, int64_t byte, unsigned mask,
                          unsigned before, unsigned after);

/* A bulk store of `warp` that reduces changes them so. */
bool race_reduce_check(Interp *in, const View *view, int64_t first, int64_t last);
void race_reduce_start(Interp *in, const View *view, int64_t first, int64_t last);
void race_reduce_ends(Interp *in, const View *view, int64_t warp, int64_t first, int64_t last);

/* A copy_async_bulk of mbarrier `owner` begins to read or write bytes [first, last] of
 * `view`, after race_copy_check. Of its accesses each mbarrier that counts it has one. */
void race_bulk_start(Interp *in, const View *view, bool write, int64_t first, int64_t last,
                     unsigned owner);

/* The history of `byte` of `memory`. */
ByteHistory *byte_history(Interp *in, Memory *memory, int64_t byte);

/* The number of the cluster (without them, the block) that ran at `time`. */
uint32_t block_at(const Interp *in, uint64_t time);

/* ---- order of blocks (order.c) -------------------------------------- */

/* Begins a program; begins a cluster, which nothing is ordered before. In a cooperative program
 * blocks know by their warps' clocks what semaphores have ordered. */
void order_open(Interp *in);
void order_begin_cluster(Interp *in);

/* The block releases, or acquires, the semaphore of `memory` at `byte`: accesses
 * before the one are ordered before those after the other, and so is what was
 * ordered before them. */
void order_release(Interp *in, Memory *memory, int64_t byte);
void order_acquire(Interp *in, Memory *memory, int64_t byte);

/* Returns true when an access that the block with this rank in an earlier cluster made at
 * `time` is ordered before this block's next one. */
bool order_holds(const Interp *in, uint64_t time, unsigned rank);

/* ---- copies (copy.c) -------------------------------------------------- */

/* Returns true when no copy is in flight into `memory` (any memory when NULL); else
 * reports one, for `op` (NULL: the end of the program). */
bool copies_ended(Interp *in, const Memory *memory, const Op *op);
/* As copies_ended, of what bulk stores read (store.c). */
bool stores_ended(Interp *in, const Memory *memory, const Op *op);
/* Ends the writes of bulk stores, which nothing has to wait for, as the cluster does. */
bool stores_end_cluster(Interp *in);

/* ---- products (product.c) ---------------------------------------------- */

/* As copies_ended, of products that read `memory`. */
bool products_ended(Interp *in, const Memory *memory, const Op *op);

/* ---- mbarriers (mbarrier.c) -------------------------------------------- */

/* Makes the clocks of all mbarriers, whose number is known. */
void mbarriers_open(Interp *in);
/* Makes the mbarriers, of each rank, of the result of an allocate_mbarrier. */
void mbarriers_bind(Interp *in, const Value *v);
/* As copies_ended, of bulk copies. */
bool mbarriers_ended(Interp *in, const Memory *memory, const Op *op);
/* For messages: which phase of what `op`, an mbarrier_wait, waits for. */
const char *mbarrier_wait_text(Interp *in, const Op *op);

#endif
