/* Sharing of bytes between shared tensors of a program: two may share when no data
 * of the one must survive accesses of the other, and a `synchronize` lies on every
 * path between their accesses.
 *
 *     %a = allocate_shared        position 1
 *     store_shared .., %a         2   |
 *     synchronize                 3   | %a
 *     load_shared %a              4   |
 *     synchronize                 5         without it, they may not
 *     %b = allocate_shared        6
 *     store_shared .., %b         7   | %b
 *
 * An access of a part of a tensor is one of the tensor; to make a part is none.
 * A tensor that a loop accesses, but does not allocate, lives as long as the
 * loop. Copies count as accesses until a `copy_async_wait_group 0` has waited
 * for them; the scratch of a `reduce` is no tensor. In a `thread_group` of a part of
 * the block, `synchronize` and the ends of copies count between tensors that this group
 * alone accesses. */
#ifndef TILUS_MEMORY_LIFETIMES_H
#define TILUS_MEMORY_LIFETIMES_H

#include "ir/ir.h"

typedef struct SharedTensor {
    Op *op;                 /* allocate_shared */
    int64_t bytes;          /* that it takes, a multiple of SHARED_ALIGN */
    int64_t align;          /* its offset is a multiple of it: shared_alignment */
    unsigned position;      /* of `op`; ops count from 1, in program order */
    unsigned first, last;   /* it lives between these; first > last: never accessed */
    ThreadRange threads;    /* of the one group that accesses it, else of the block */
    bool remote;            /* other blocks of the cluster access it: it shares no bytes */
} SharedTensor;

typedef struct Lifetimes {
    unsigned count;
    SharedTensor *tensors;      /* in program order */
    const Op **unordered;       /* [a * count + b]: see lifetimes_unordered */
} Lifetimes;

/* Returns the lifetimes of `p`, on the module's scratch arena. */
Lifetimes lifetimes_of(Program *p);

/* Returns true when the lives of tensors `a` and `b` have no position in common. */
bool lifetimes_disjoint(const Lifetimes *l, unsigned a, unsigned b);

/* An access of `b` that may follow one of `a` with no `synchronize` between
 * them, or NULL. */
const Op *lifetimes_unordered(const Lifetimes *l, unsigned a, unsigned b);

/* Returns true when `a` and `b` may use the same bytes. */
bool lifetimes_may_share(const Lifetimes *l, unsigned a, unsigned b);

/* Returns true when the tensors that have an attribute `offset` may all lie there; false
 * after an error. */
bool lifetimes_check_offsets(Module *m, const Lifetimes *l);

#endif
