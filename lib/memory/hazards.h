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

/* `proved`: in every run that comes from `first` to `second` this way there is a
 * race. Otherwise there may be one. */
typedef struct Hazard {
    HazardKind kind;
    bool proved;
    const Op *first, *second;
    AccessMode first_mode, second_mode;
    const Value *memory;        /* in which `second` touches the bytes */
} Hazard;

typedef struct Hazards {
    Hazard *found;              /* one for each kind and pair of ops, as they were met */
    unsigned count;
    uint32_t capacity;
    unsigned pairs;             /* of conflicting accesses that were compared */
} Hazards;

/* In the scratch arena. Pointers that different arguments pass are taken to
 * lead to different memory. Leaves Value.data and Op.mark clear. */
Hazards hazards_of(Program *p);

#endif
