/* Races, before the program runs: pairs of accesses that conflict as the
 * language defines it (docs/language.md, Memory), that no `synchronize` and no mbarrier
 * (rings.h) orders on some path, and whose bytes may meet. No pair: no run has a race. */
#ifndef TILUS_MEMORY_HAZARDS_H
#define TILUS_MEMORY_HAZARDS_H

#include "memory/overlap.h"

typedef enum HazardKind {
    HAZARD_ORDER,       /* no synchronize between `first` and `second` */
    HAZARD_COPY,        /* `first` is a copy that may be in flight at `second` */
    HAZARD_VALUES,      /* threads of `first` may store different values to a byte */
    HAZARD_BLOCKS,      /* the two are of different blocks */
    HAZARD_UNFINISHED,  /* `first` is a copy that nothing waits for before `second`
                           (an exit, an allocate_shared; NULL: the end) */
    HAZARD_PHASE,       /* `first` may mean another phase of its mbarrier */
    HAZARD_REMOTE,      /* `first` accesses shared memory of another block */
    HAZARD_UNKNOWN      /* loops are nested too deep, or too much is unordered */
} HazardKind;

enum { HAZARD_KINDS = HAZARD_UNKNOWN + 1 };

/* `proved`: in every run that comes from `first` to `second` this way there is a
 * race. Otherwise there may be one. */
typedef struct Hazard {
    HazardKind kind;
    bool proved;
    const Op *first, *second;
    AccessMode first_mode, second_mode;
    const Value *memory;        /* in which `second` touches the bytes */
} Hazard;

/* Reasons why two conflicting accesses do not race. */
typedef enum ProofKind {
    PROOF_APART,        /* no byte is touched by both, except in one thread */
    PROOF_ITERATIONS,   /* tiles that meet tell the iteration, which is one: of one thread */
    PROOF_MBARRIERS,    /* phases of mbarriers order them, where they meet */
    PROOF_ORDER,        /* on every path from `first` to `second` ops of `orders` lie */
    PROOF_BLOCKS        /* of different blocks, which touch different bytes */
} ProofKind;

typedef struct Proof {
    ProofKind kind;
    const Op *first, *second;
    AccessMode first_mode, second_mode;
    const Value *memory;        /* in which `second` touches the bytes */
} Proof;

/* On some path `by` (a wait, a barrier) ends `access`, or orders it before all that follows; of
 * barriers of a thread_group, which order it before later accesses of its threads, the first. */
typedef struct HazardOrder {
    const Op *access, *by;
} HazardOrder;

typedef struct Hazards {
    Hazard *found;              /* one for each kind and pair of ops, as they were met */
    unsigned count;
    uint32_t capacity;
    unsigned pairs;             /* of conflicting accesses that were compared */
    Proof *proofs;              /* one for each kind and pair of ops; of a pair that is found, too,
                                   where some of its iterations are proved */
    unsigned proof_count;
    uint32_t proof_capacity;
    HazardOrder *orders;        /* each once */
    unsigned order_count;
    uint32_t order_capacity;
    const struct Rings *rings;  /* the phases of mbarriers, or NULL: there are none */
} Hazards;

/* In the scratch arena. Pointers that different arguments pass are taken to
 * lead to different memory. Leaves Value.data and Op.mark clear. */
Hazards hazards_of(Program *p);

/* Returns true when blocks of a cluster are proved to write different bytes of global memory by
 * `op`. May allocate in the scratch arena. */
bool hazards_apart_in_cluster(const Op *op);

/* Bounds the proofs of a program. */
enum { HAZARD_PROOFS = 4096 };

/* Finds `proofs`, `orders` and `rings`, too, which hazards_of leaves out. */
Hazards hazards_explained(Program *p);

#endif
