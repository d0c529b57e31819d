/* Layouts and swizzles that suit an op: what infer-layouts chooses from. */
#ifndef TILUS_SELECT_FIT_H
#define TILUS_SELECT_FIT_H

#include "ir/op_attrs.h"
#include "select/dot.h"

/* ---- tiles that move ------------------------------------------------------- */

/* Returns the layout in which `threads` threads move `tile`, the register tensor of the
 * load, store or atomic `op`, in the widest accesses that are proved: neighboring
 * lanes along the dimension that is contiguous in memory, warps over the rest.
 * `*bytes` is the width of a lane's access. NULL with the reason in `*why`: a
 * thread would hold too many elements, or no layout found gives each thread what it holds of
 * the op's index, whose layout is `index` (NULL: open, or there is none). */
const Layout *fit_access(Module *m, const Op *op, const Value *tile, const Layout *index,
                         int64_t threads, unsigned *bytes, const char **why);

/* Returns such a layout of a tensor that no op moves: along its last dimension. */
const Layout *fit_plain(Module *m, const Type *t, int64_t threads, const char **why);

/* Returns the layout of shape `to` in which a thread holds what it holds in `from`, as
 * often as dimensions of extent 1 repeat: a broadcast of `from`, and `from` is its
 * reduction. */
const Layout *fit_repeat(Module *m, const Layout *from, const Type *to, const char **why);

/* ---- dots ------------------------------------------------------------------- */

/* The preferred arrangement of a dot's warps where there are several. */
typedef enum DotPreference {
    DOT_SQUARE,     /* the fewest elements to load: warps over m and n */
    DOT_ROWS        /* as many warps over m as there are rows: the result is then
                       made of fragments a of a following dot */
} DotPreference;

typedef struct DotFit {
    Via via;
    const Layout *layouts[MMA_OPERANDS];    /* of the result too: that of c */
} DotFit;

/* Chooses layouts of a dot's operands, of which `known` are fixed (NULL: free), so that
 * it goes by an mma of target `sm` (0: of every target), or by fma. False if there are
 * none. */
bool fit_dot_mma(Module *m, const Op *op, unsigned sm, DotPreference preference,
                 const Layout *const known[MMA_OPERANDS], DotFit *fit);
bool fit_dot_fma(Module *m, const Op *op, unsigned sm, const Layout *const known[MMA_OPERANDS],
                 DotFit *fit);

/* ---- swizzles ---------------------------------------------------------------- */

/* Returns the swizzle with which the accesses of `shared`, the result of an allocate_shared with
 * swizzle(auto), take the fewest turns; `*ways` is the worst bank conflict that is left. */
Swizzle fit_swizzle(Program *p, const Value *shared, unsigned *ways);

#endif
