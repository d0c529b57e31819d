/* Shared by the parts of the search for races: the walk (hazards.c), which knows the
 * pending accesses, and the comparison of two accesses (hazards_pairs.c). */
#ifndef TILUS_MEMORY_HAZARDS_WALK_H
#define TILUS_MEMORY_HAZARDS_WALK_H

#include "memory/hazards.h"
#include "memory/rings.h"
#include "support/intern.h"

enum {
    HAZARD_LOOPS = 8,       /* nested; more are not understood */
    HAZARD_ITERATIONS = 8   /* stands for this number or more */
};

/* The progress of an access: it is over; it is in flight and in no group; or its group
 * is the n-th newest (n = age - AGE_STARTED). An access that an mbarrier counts stays at
 * AGE_STARTED: rings.h knows phases. */
enum { AGE_DONE = 0, AGE_STARTED = 1 };

/* A pending access: no barrier has ordered it yet, on some path. */
typedef struct Pending {
    const Footprint *footprint;
    const Expr *const *offsets;
    uint8_t age;
    uint8_t shared;             /* loops around the walk that it was in, in this run */
    uint8_t iterations[HAZARD_LOOPS];   /* of each loop around the walk: since the access in
                                           the first `shared`, since their start in the
                                           others */
    bool certain;               /* on every path that leads from the access to here */
    bool grouped;               /* of a thread_group, whose own synchronize lies between */
    ThreadRange threads;        /* that ran the op */
} Pending;

typedef struct State {
    Pending *items;
    unsigned count;
    uint32_t capacity;
    bool dead;                  /* no path leads here */
} State;

/* A loop around the walk. */
typedef struct Loop {
    const Op *op;
    const Expr *lower, *step;   /* step NULL: 1 */
} Loop;

/* A fresh symbol for an index, or another scalar, of an earlier time; `far`: for the
 * number of index steps that lie between. */
typedef struct FreshSymbol {
    const Value *of;
    bool far;
    const Expr *expr;
} FreshSymbol;

/* OpPair is what is known of two ops: at_found[k] - 1 is the place in Hazards.found of what is found of
 * kind k, 0: nothing; bit k of `proofs` is set when Hazards.proofs has one of kind k. */
typedef struct OpPair {
    const Op *first, *second;
    unsigned at_found[HAZARD_KINDS];
    unsigned proofs;
} OpPair;

typedef struct Walk {
    Program *p;
    Module *m;
    Arena *arena;
    Footprint *footprints;
    unsigned footprint_count;
    Loop loops[HAZARD_LOOPS];
    unsigned depth;
    int64_t unrolled;           /* iterations of unrolled loops around the walk */
    bool certain;               /* what is met now is met by the whole block */
    ThreadRange threads;        /* that run what is met now */
    State *entries;             /* of each loop met, what reaches the top of its body */
    unsigned loop, loop_count;
    uint32_t loop_capacity;
    bool grown, comparing;
    bool proving;               /* keeps proofs and orders */
    Rings *rings;               /* NULL: the program has no mbarriers */
    FreshSymbol *symbols;
    unsigned symbol_count;
    uint32_t symbol_capacity;
    Hazards found;
    InternSet pairs;            /* of OpPair: those that `found` has something of */
} Walk;

/* Returns what is known of the two ops, nothing yet if they are new. */
OpPair *hazards_pair(Walk *w, const Op *first, const Op *second);
/* Returns the same, NULL where nothing is known. */
const OpPair *hazards_find_pair(const Walk *w, const Op *first, const Op *second);

/* Adds what was found, unless it is known. */
void hazards_report(Walk *w, Hazard h);

/* ---- hazards_proofs.c: why others do not race -------------------------------------- */

void hazards_proved(Walk *w, ProofKind kind, const Footprint *first, const Footprint *second);
/* Notes that `by` ends an access or orders it, while the walk compares. */
void hazards_ordered(Walk *w, const Footprint *access, const Op *by);
/* Adds proofs by PROOF_ORDER: of pairs that the walk has not met unordered. */
void hazards_prove_ordered(Walk *w);
/* Returns true when the two access one memory, and their order counts. */
bool hazards_conflict(const Footprint *a, const Footprint *b);

/* ---- hazards_pairs.c ------------------------------------------------------------------ */

/* Compares an access with a pending one, which nothing orders before it; `offsets` are
 * those of `now`. */
void hazards_compare(Walk *w, const Pending *pending, const Footprint *now,
                     const Expr *const *offsets);

/* Compares threads of one store, or parts of one copy, at the same place. */
void hazards_compare_with_itself(Walk *w, const Footprint *f);

/* Compares all accesses of different blocks. */
void hazards_compare_blocks(Walk *w);

/* Compares copies to all blocks of a cluster with the accesses of other blocks there. */
void hazards_compare_cluster(Walk *w);

/* Maps the values of each expression, as expr_substitute does. */
void hazards_substitute(Walk *w, const Expr *const *exprs, unsigned count, ExprMap map,
                        void *data, const Expr **made);

#endif
