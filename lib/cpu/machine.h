/* The machine that compiled programs run on: host threads, each of which runs one
 * block at a time, whose threads are fibers.
 *
 *     Machine ──▶ Worker (a host thread, a block) ──▶ Thread (a fiber) .. warps of 32
 *
 * Blocks of a cluster run together: their host thread has an array of workers, one for
 * each rank, and `cpu_worker` is that of the fiber that runs. The first of them has what
 * they share: the queue of threads that can run, the scheduler, the fault. The blocks of a
 * cooperative program's grid are one cluster here.
 *
 * Threads of a block run one after the other, each until it must wait: a warp's
 * lanes wait at collectives, where the last one acts for all; a barrier's threads
 * wait there. When no thread can run and some have not ended, that is a deadlock, which
 * is reported. */
#ifndef TILUS_CPU_MACHINE_H
#define TILUS_CPU_MACHINE_H

#include "codegen/internal.h"
#include "cpu/fiber.h"
#include "cpu/memory.h"
#include "select/mma.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <threads.h>

enum { LANES = 32, NAMED_BARRIERS = 16 };

/* ---- faults (fault.c) ---------------------------------------------------- */

/* A place in the program text as compiled code stores it: frame, line and column. */
typedef uint64_t Place;

enum { PLACE_FRAME = 20, PLACE_LINE = 28, PLACE_COLUMN = 16 };  /* bits */

/* The place of `at`, without a part that takes more bits than it has. */
static inline Place place_of(Loc at)
{
    Place frame = at.frame >> PLACE_FRAME ? 0 : at.frame;
    Place line = at.line >> PLACE_LINE ? 0 : at.line;
    return (frame << PLACE_LINE | line) << PLACE_COLUMN |
           (at.column >> PLACE_COLUMN ? 0 : at.column);
}

enum { FAULT_NOTES = 4, FAULT_TEXT = 320 };

typedef struct FaultLine {
    Place place;
    char text[FAULT_TEXT];
} FaultLine;

/* The fault that ended a run: a message and notes. Filled while a fiber runs, reported by
 * the thread that owns the diag. */
typedef struct Fault {
    bool found, no_memory, is_race;
    int64_t block;              /* which block it is in, by number */
    FaultLine message, notes[FAULT_NOTES];
    unsigned note_count;
} Fault;

/* ---- threads ------------------------------------------------------------- */

/* A cp.async whose wait has not come: its bytes, read when it was issued. */
typedef struct Copy {
    unsigned char *to;
    const unsigned char *from;
    Place place;
    uint32_t group;             /* by number of commits before it */
    uint32_t waits;             /* of the thread, before it */
    uint32_t bytes, wanted;     /* written, read */
    unsigned char data[16];
} Copy;

typedef struct Copies {
    Copy *items;                /* those of [begin, end) are pending, in order */
    size_t begin, end, capacity;
    uint32_t committed;         /* groups */
    uint32_t waits;
} Copies;

/* A cp.async.bulk of a phase that nobody has waited for: its bytes, read when it was
 * issued. */
typedef struct BulkCopy {
    unsigned char *to, *data;       /* data: malloc'ed */
    Place place;
    uint32_t bytes, thread;
    struct Mbarrier *counter;
    unsigned mbarrier;              /* the counter's number in the cluster */
    uint64_t phase;                 /* of that */
    struct BulkCopy *next;
} BulkCopy;

/* A tensor map, as the launcher of this engine makes it: dimensions as in
 * tilus_tensor_map. Its bytes are the parameter of compiled code. */
typedef struct CpuMap {
    unsigned char *base;
    int64_t extents[TILUS_MAP_RANK], strides[TILUS_MAP_RANK];   /* strides: bytes */
    uint32_t box[TILUS_MAP_RANK];
    uint16_t rank, element;         /* element: bytes */
    uint32_t swizzle;               /* bytes */
    uint32_t type;                  /* a tilus_map_type */
} CpuMap;

_Static_assert(sizeof(CpuMap) <= TILUS_MAP_BYTES, "a map is a parameter of TILUS_MAP_BYTES");

typedef struct BulkStore BulkStore;     /* helpers_tensor.c */

typedef struct Mbarrier {
    const void *at;                 /* in shared memory */
    uint32_t arrivals, pending;     /* of a phase, and still to come */
    int64_t bytes;                  /* expected and not copied yet */
    uint64_t phase;                 /* how many have ended */
    unsigned number;                /* in the cluster */
} Mbarrier;

/* The mbarriers of a block. */
typedef struct Mbarriers {
    Mbarrier of[LIMIT_MBARRIERS];
    unsigned count;
    BulkCopy *copies;
} Mbarriers;

/* Bytes in shared memory that a wgmma reads until the wait of its group. */
typedef struct ProductRead {
    const unsigned char *at;
    Place place;
    uint32_t group, bytes;
} ProductRead;

/* The reads of a warp's products in flight. */
typedef struct ProductReads {
    ProductRead *items;
    size_t count, capacity;
    uint32_t committed;         /* groups */
} ProductReads;

typedef enum ThreadState { THREAD_READY, THREAD_WAITS, THREAD_ENDED } ThreadState;

typedef struct Thread {
    Fiber fiber;                /* while it does not run */
    Place place;                /* of the op that it runs */
    uint32_t number;            /* in its block */
    ThreadState state;
    IntrinsicId at;             /* where it waits ... */
    const Mbarrier *mbarrier;   /* ... for a phase of this ... */
    uint64_t state_at;          /* ... or at the barrier of the grid with its state here ... */
    const uint64_t *args;       /* ... and with what, at a collective */
    uint64_t *results;
    Copies copies;
    uint32_t stores_committed;  /* groups of bulk stores */
} Thread;

/* The lanes of a warp that wait at a collective, or threads at a barrier. */
typedef struct Barrier {
    IntrinsicId at;             /* of the first that came */
    Place place;
    unsigned arrived, expected;
} Barrier;

/* The number in row-major order of each element of an mma's operand: of slot s of
 * lane l at [l * slots + s]. */
typedef struct MmaPlaces {
    unsigned slots[MMA_OPERANDS];
    const uint16_t *of[MMA_OPERANDS];
} MmaPlaces;

typedef struct Machine Machine;
typedef struct Shadow Shadow;       /* shadow.h */

typedef struct Worker {
    Machine *machine;
    struct Worker *cluster;     /* the first of its cluster's workers */
    unsigned rank;              /* its number after that */
    int64_t block, index[3];    /* of the block that runs, and in each dimension */
    Thread *threads;
    Thread *running;
    Barrier *warps, barriers[NAMED_BARRIERS];
    Guarded shared, stacks;
    Mbarriers mbarriers;
    ProductReads products[LIMIT_THREADS / LANES];       /* of each warp, with a shadow */
    Shadow *shadow;             /* the cluster's; NULL: accesses are not checked */
    /* Members of a cluster's first worker, for all of its workers: */
    Barrier meeting;            /* all threads of all blocks */
    unsigned mbarrier_count;
    uint32_t *ready;            /* a ring of threads that can run, `mask` + 1 of them */
    unsigned mask, ready_begin, ready_count;
    unsigned ended;
    unsigned polls;             /* of semaphores, since anything else happened */
    Fiber scheduler;
    BulkStore *stores;          /* in flight, the oldest first */
    Fault fault;
    sigjmp_buf escape;          /* where a signal's handler goes */
    void *signal_address;
    int signal_number;
    void *signal_stack;         /* of the handler, malloc'ed ... */
    stack_t stack_before;       /* ... and who had one before */
    sigset_t mask_before;       /* the host thread's blocked signals */
} Worker;

struct Machine {
    const Program *program;
    void (*entry)(const uint64_t *args);        /* the compiled program */
    const uint64_t *args;
    int64_t grid[3], blocks;
    unsigned together[3];       /* extents of the blocks that run together */
    unsigned cluster;           /* how many these are */
    bool has_locks;             /* the program does, and is not cooperative */
    unsigned thread_count, mbarriers;   /* of a block */
    size_t shared_bytes;
    Guarded *regions;            /* of buffers and the workspace */
    size_t region_count;
    SharedRange *ranges;        /* of shared memory, of each op (tensors.h) */
    uint32_t range_count;
    const tilus_cpu_options *options;
    const MmaPlaces *mma;       /* of each row of mma.def */
    mtx_t printing;
    atomic_llong next_cluster, done_blocks;
    atomic_bool stop;
};

/* The worker of this host thread; NULL outside a run. */
extern _Thread_local Worker *cpu_worker;

/* ---- running (schedule.c) ------------------------------------------------ */

/* Memory for the blocks of a cluster: of the workers from `w` on, one for each. False: it
 * ran out; worker_close takes any. */
bool worker_open(Worker *w, Machine *machine);
void worker_close(Worker *w);
/* Runs the blocks of cluster number `cluster`; false after a fault. */
bool worker_run_cluster(Worker *w, int64_t cluster);
/* Returns where compiled code is to say what it is doing. A program calls it first, when it has all
 * of its frame; a fault when the thread's stack has not enough left below that. */
Place *thread_begins(void);
/* The worker of the running cluster whose shared memory has the address; NULL: none. */
Worker *worker_of(const void *at);
/* Returns the worker of the block with this rank; a fault when there is none. */
Worker *worker_of_rank(uint64_t rank);
/* The address `word` of the running block's shared memory, in that of `w`. */
uint64_t address_in(const Worker *w, uint64_t word);

/* An action of the last lane of a warp for all: lanes[i].args and .results. */
typedef void WarpAction(Thread *lanes, IntrinsicId id);

/* The lanes of the running thread's warp wait for each other; the last one acts. */
void wait_warp(IntrinsicId id, const uint64_t *args, uint64_t *results, WarpAction *act);

/* The helper of an intrinsic that the lanes of a warp execute together. */
#define WARP_HELPER(id, act)                                                  \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        wait_warp(INTR_##id, args, results, act);                             \
    }

/* The running thread waits at a barrier for `count` threads. */
void wait_barrier(IntrinsicId id, uint64_t number, uint64_t count);
/* The running thread waits for all threads of all blocks of the cluster. */
void wait_cluster(IntrinsicId id);
/* The running thread waits until a phase of `b` has ended; one of a block `owner` has: who
 * waits can run. */
void wait_for_phase(IntrinsicId id, const Mbarrier *b);
void end_wait_for_phase(Worker *owner, const Mbarrier *b);
/* The running thread waits at the barrier of the grid with its state at this address, until another
 * one ends all waits there, and joins their order. */
void wait_for_grid(IntrinsicId id, uint64_t state);
void end_wait_for_grid(uint64_t state);
/* Returns how many threads wait there. */
unsigned count_at_grid(const Worker *w, uint64_t state);
/* Another thread's turn: the running one has seen a semaphore that it waits for. */
void poll_again(IntrinsicId id);

/* Ends the run: the running thread did something wrong, host memory ran out. They do
 * not return, but are not declared so: AddressSanitizer would look for the end of a
 * stack that it does not know. */
void fault_now(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fault_memory(void);
/* Ends the run likewise for a fault that is set. */
void fault_leave(void);

/* ---- mbarriers (helpers_mbarrier.c) --------------------------------------- */

/* A block begins without any; all of its threads have ended: so must its copies have, or
 * its fault is set. */
void mbarriers_begin_block(Worker *w);
void mbarriers_end_block(Worker *w);

/* Bulk stores: a block begins without any; its threads have ended: what they read must
 * have been waited for, or the block's fault is set, and what they write is there. */
void bulk_stores_begin_block(Worker *w);
void bulk_stores_end_block(Worker *w);

/* The running thread begins a copy of `bytes` bytes, which the mbarrier at the address
 * `mbarrier` counts; its `data` is to be filled, and then bulk_end called. */
BulkCopy *bulk_begin(uint64_t mbarrier, unsigned char *to, uint64_t bytes);
void bulk_end(BulkCopy *copy);

/* ---- signals (signals.c) ------------------------------------------------- */

/* From here on signals that this host thread's fibers cause end the block of `w`;
 * until signals_leave, after which they are again who had them before. */
bool signals_enter(Worker *w);
void signals_leave(Worker *w);

/* ---- reporting (fault.c) ------------------------------------------------- */

/* Sets the message; `place` is where. */
void fault_set(Worker *w, Place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void fault_note(Worker *w, Place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "block (0, 3)", of the worker's block. */
const char *fault_block(const Worker *w, char text[FAULT_TEXT]);
/* Nobody can run: says who waits, where, and who has ended. */
void fault_deadlock(Worker *w);
/* A signal ended the running thread. */
void fault_signal(Worker *w);
/* Hands the fault over; false. */
bool fault_report(const Fault *f, Diag *diag);

/* ---- helpers (helpers.c) ------------------------------------------------- */

/* The host's @tilus.* function: its parameters and results, each in 64 bits. */
typedef void Helper(const uint64_t *args, uint64_t *results);
extern Helper *const cpu_helpers[INTR_COUNT];

#define INTRINSIC(id, name, signature, sm, ptx, convergent, ...) Helper cpu_##id;
#include "codegen/intrinsics.def"

/* The functions of wgmma (codegen/product.h), of which `words` come back. */
void cpu_product(const uint64_t *args, uint64_t *results, unsigned words);

/* The running thread. */
static inline Thread *this_thread(void)
{
    return cpu_worker->running;
}

/* The memory at the address `word`, which must be a multiple of `align`, a power of
 * two. */
void *helper_address(uint64_t word, unsigned align);

/* The places of each row of mma.def, on the module's scratch arena. */
const MmaPlaces *mma_places(Module *m);

#endif
