/* The state of shadow memory, and what an access that is checked is: for shadow.c, which keeps
 * records of accesses, and shadow_report.c, which says what is wrong with two of them. */
#ifndef TILUS_CPU_SHADOW_STATE_H
#define TILUS_CPU_SHADOW_STATE_H

#include "cpu/clocks.h"
#include "cpu/shadow.h"

enum { CELL = 4 };

/* The epoch of copies whose wait is still to come. */
#define IN_FLIGHT UINT64_MAX

typedef struct Record {
    uint64_t epoch;                 /* of its owner */
    Place place, other_place;       /* of the ops that `lane` and `other` ran */
    uint32_t next;                  /* in the cell's list; 0: none */
    uint32_t warp, owner;           /* owner: its warp, or of a bulk copy the mbarrier */
    unsigned lane : 5, other : 5;               /* other = lane: no other */
    unsigned kind : 3, mask : CELL;             /* mask: which bytes of the cell */
    unsigned is_copy : 1, is_store : 1;     /* is_store: a bulk store, is_copy, too */
    unsigned is_product : 1;        /* is_copy, too: a dot_async reads it */
    unsigned is_bulk : 1;           /* is_copy, too: its owner is an mbarrier */
} Record;

/* A list that another block made is empty. */
typedef struct Cell {
    uint32_t block, records;        /* records: the first one; 0: none */
    uint32_t crowd;                 /* its number; 0: none */
} Cell;

/* Accesses of one kind to a cell, READ or ATOMIC, the last one of each warp. */
typedef struct Crowd {
    uint32_t *of;                   /* by warp: the record's number; 0: none */
    unsigned count;                 /* how many there are */
    AccessKind kind;
    uint32_t next;                  /* of no cell: the next one of these; 0: none */
} Crowd;

/* The cells of a region of memory. */
typedef struct Cells {
    const Guarded *memory;
    const unsigned char *origin;    /* of cell 0: a multiple of CELL */
    Cell *cells;
    unsigned char *defined;         /* shared memory: of each byte, that it was written */
} Cells;

/* The first read of a byte that nobody has written. It may be a race with a write that
 * is still to come, which is the better thing to say. */
typedef struct Undefined {
    bool found;
    uint64_t epoch;
    Place place;
    Worker *worker;                 /* of whose block the thread is */
    uint32_t thread;
    unsigned warp;                  /* in the cluster */
    ptrdiff_t byte;
} Undefined;

struct Shadow {
    Clocks clocks;
    uint32_t block;
    Cells *regions;                 /* shared memory of each block first */
    size_t region_count;
    Record *records;                /* [0] is none */
    uint32_t record_count, record_capacity, free_record;
    Crowd *crowds;                  /* [0] is none; each with a table, malloc'ed */
    uint32_t crowd_count, crowd_capacity, free_crowd;
    Undefined undefined;
};

/* An access that is checked. */
typedef struct Access {
    Worker *worker;
    AccessKind kind;
    uint32_t thread;
    unsigned warp, lane;
    bool all_lanes, is_copy, is_product, is_store;
    bool is_bulk;                   /* is_copy, too: of the owner's `epoch` */
    unsigned owner;
    uint64_t epoch;
    Place place;
    const unsigned char *at, *value;    /* what is written there, or NULL */
} Access;

static inline unsigned block_warps(const Worker *w)
{
    return w->machine->thread_count / LANES;
}

/* The number of the thread's warp among those of the cluster. */
static inline unsigned cluster_warp(const Worker *w, const Thread *t)
{
    return w->rank * block_warps(w) + t->number / LANES;
}

/* The worker of the block that made `r`. */
static inline const Worker *record_worker(const Access *a, const Record *r)
{
    return a->worker->cluster + r->warp / block_warps(a->worker);
}

/* Returns true where nothing orders the blocks of a cluster: in global memory, when the program has
 * locks. */
static inline bool is_unordered(const Machine *m, const Cells *c)
{
    return m->has_locks && m->cluster > 1 && !c->defined;
}

/* Returns true when nothing can order `r` before `a`. */
static inline bool is_apart(const Cells *c, const Record *r, const Access *a)
{
    return is_unordered(a->worker->machine, c) && record_worker(a, r) != a->worker;
}

/* ---- reports (shadow_report.c) --------------------------------------------- */

/* Reports the race of `a` with `r` at a byte of the memory; ends the run. */
void shadow_report_race(const Access *a, const Record *r, const Cells *c, ptrdiff_t byte);
/* Sets the fault of the read that s->undefined holds. */
void shadow_report_undefined(Worker *w);

#endif
