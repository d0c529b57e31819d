/* Dependences between the ops of a loop's body: which must come after which, and in
 * which iteration.
 *
 *     for %i in .. {                     iteration    i      i + 1
 *       a: copy_async %g[%i], %s[0]               a        a        RAW  a -> b   0
 *       b: %x = load_shared %s[0]                 b        b        WAR  b -> a   1
 *       c: %t = add %sum, %x                      c        c        VALUE b -> c  0
 *     }                                                             VALUE c -> c  1
 *
 * A distance of 0 is the same iteration, 1 stands for every later one: offsets are not
 * compared. Shared tensors are distinct; any two views of global memory may be
 * the same bytes, for pointers may be equal. */
#ifndef TILUS_MEMORY_DEPENDENCE_H
#define TILUS_MEMORY_DEPENDENCE_H

#include "ir/ir.h"

typedef enum DependenceKind {
    DEPENDENCE_VALUE,       /* `to` uses a value that `from` defines */
    DEPENDENCE_RAW,         /* reads what was written */
    DEPENDENCE_WAR,         /* overwrites what was read */
    DEPENDENCE_WAW          /* overwrites what was written */
} DependenceKind;

/* An access to memory by an op of the body or inside one. */
typedef struct BodyAccess {
    const Op *op;
    unsigned top;           /* the number of the body's op that it is, or is inside of */
    Value *memory;          /* a shared tensor, or the pointer of a view */
    bool writes;
} BodyAccess;

typedef struct Dependence {
    DependenceKind kind;
    const Op *from, *to;    /* `to` must come after `from` */
    unsigned from_top, to_top;
    const Value *through;   /* a BodyAccess's memory, or the value */
    unsigned distance;      /* 0 or 1, as above */
} Dependence;

/* Everything lies on the module's scratch arena. */
typedef struct LoopDependences {
    Op **ops;               /* the body's, in order */
    BodyAccess *accesses;   /* in order */
    Dependence *edges;      /* between different ops of the body, and of one to itself
                               through a carried value */
    uint32_t op_count, access_count, edge_count;
} LoopDependences;

/* Returns the dependences of a `for`. Its ops' numbers are in Op.mark until
 * program_clear_data. */
LoopDependences loop_dependences(const Op *loop);

/* The tensor or the pointer that a shared or global value stands for. */
Value *memory_source(Value *v);

/* Returns true when two accesses may touch the same bytes and one of them writes. */
bool accesses_conflict(const BodyAccess *a, const BodyAccess *b);

#endif
