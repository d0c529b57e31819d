/* The tables of `lookup` and `lookup_shared`.
 *
 * A table of `lookup` is a register tensor of rank 1: every thread has all entries
 * in its slots, in order. One of `lookup_shared` has rows of as many elements as
 * codes choose together, and each row may be there several times:
 *
 *     f16[256]             code -> element
 *     f16[256, 32]         code, copy -> element
 *     f16[16, 16, 2]       codes c1, c0 -> elements of c0, c1
 *     f16[16, 16, 32, 2]   codes c1, c0, copy -> elements of c0, c1
 *
 * Codes of a group are the digits of a number, the thread's first one the lowest. */
#ifndef TILUS_IR_LOOKUP_H
#define TILUS_IR_LOOKUP_H

#include "ir/ir.h"

enum {
    LOOKUP_BITS_MAX = 8,                /* of a code */
    LOOKUP_REGISTER_BITS_MAX = 4,       /* of a code that chooses in registers */
};

/* Which dimension of a shared table means what. */
typedef struct LookupTable {
    unsigned group;     /* codes that choose together; dimensions 0 .. group - 1 are theirs,
                           the last code's first */
    bool has_copies;    /* then dimension `group` counts them */
    int64_t copies;     /* a thread, counted as in its layout, reads the one with its
                           number modulo this; 1 without */
    bool has_row;       /* then the last dimension has `group` elements of a row */
} LookupTable;

/* Reads the shape of `t`, a SHARED type; false if its rank is that of no
 * table. */
bool lookup_table(const Type *t, LookupTable *table);

/* The layout of a table of `entries` in the registers of `threads` threads. NULL
 * with the reason. */
const Layout *lookup_layout(Module *m, int64_t threads, int64_t entries, const char **why);

#endif
