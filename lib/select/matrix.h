/* Matrices: tiles that ldmatrix and stmatrix can move.
 *
 * Such an instruction moves 1, 2 or 4 matrices of 8 rows of 16 bytes. A row is
 * contiguous and 16-byte aligned in shared memory. Thread t of the warp holds
 * the t mod 4-th word of row t / 4:
 *
 *     spatial(8, 4).local(1, 2)               16-bit elements
 *
 * and with .trans elements 2 * (t mod 4) and the next of column t / 4. So a
 * tile fits whose layout ends in that atom, over any two of its dimensions. */
#ifndef TILUS_SELECT_MATRIX_H
#define TILUS_SELECT_MATRIX_H

#include "ir/ir.h"
#include "ir/op_attrs.h"

enum { MATRIX_ROWS = 8, MATRIX_ROW_BYTES = 16 };

typedef struct MatrixPlan {
    Via via;                /* the most matrices an instruction */
    unsigned row, column;   /* dimensions of the tile: from row to row, and along one */
    const Layout *outer;    /* the tile's layout over the atom's: a thread for each
                               warp, a slot for each of its matrices */
    int64_t extents[LIMIT_RANK];    /* the atom's: what a step of `outer` moves */
    bool barrier_before, barrier_after;     /* bar.warp.sync beside the instructions */
} MatrixPlan;

/* Plans a load_shared or store_shared by matrices, for targets that have the
 * instruction. False if it cannot, with the reason in `*why`. */
bool matrix_plan(Module *m, const Op *op, MatrixPlan *plan, const char **why);

/* Decides the plan's barriers. Lanes of ldmatrix and stmatrix touch rows that other lanes
 * hold, while the language orders a thread's own accesses to an element without any
 * `synchronize`: where such an access may be near, a barrier of the warp stands between. */
void matrix_order(const Op *op, MatrixPlan *plan);

/* Returns the steps between matrices m = 0, 1, .. of one instruction: the tile's index of matrix
 * n * g + m is that of n * g plus (m & 1) * low[d] + (m >> 1) * high[d]. */
void matrix_steps(const MatrixPlan *plan, int64_t *low, int64_t *high);

#endif
