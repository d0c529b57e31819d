/* Plans of `dot`: its instructions, and the elements of a thread or the fragments of a
 * warp that are their operands.
 *
 *     %d = dot %a, %b, %c {via = mma.m16n8k16}
 *
 *     via          a unit is       of          needs
 *     mma.mMnNkK   a fragment      a warp      operands made of pieces of fragments
 *     mma.mMnNkK.f16   the same, converted to f16
 *     fma          an element      a thread    a thread to hold the rows of a and the
 *                                              columns of b that its part of c needs
 *     fma.shared   an element      the block   room for a and b in shared memory
 *
 * A unit of a dot is thus a fragment or an element, no run of slots as in access plans. A
 * fragment is pieces (select/mma.h), each of whole words, which may lie in any slots:
 * code generation gathers their words. An element is its own piece.
 *
 * All threads, or warps, run the same code on the same slots, so for unit (i, j) of c,
 * the slots of its pieces and of those of a (i, k) and b (k, j) must be the same in all
 * of them. Batch dimensions stand before these indices, the same in all three; a
 * fragment has one index there, so lanes of a warp never differ in it. */
#ifndef TILUS_SELECT_DOT_H
#define TILUS_SELECT_DOT_H

#include "cast/plan.h"
#include "ir/op_attrs.h"
#include "select/mma.h"

/* An operand cut into pieces. */
typedef struct DotSide {
    const Type *type;
    const Layout *quotient;     /* its layout over pieces: a thread for each warp or thread */
    int64_t rows, columns;      /* pieces of a unit */
    int64_t words;              /* of a piece, in a thread; 0 for fma */
    int64_t *slots;             /* see dot_slots; NULL for fma.shared */
} DotSide;

/* The reason that keeps a dot from an instruction. */
typedef struct DotReason {
    int operand;                /* 0 .. 2: the operand at fault, or -1: the types */
    const char *why;            /* in words; NULL: nothing; scratch memory, as is `fits` */
    const char *fits;           /* what would fit, in words */
} DotReason;

typedef struct DotPlan {
    Via via;
    const Mma *mma;             /* NULL: by fma */
    unsigned rank;
    DotSide sides[MMA_OPERANDS];
    const CastPlan *convert[2]; /* of a word of a and b to words of f16, or NULL */
    int64_t units;              /* of c, in a warp or thread */
    int64_t depth;              /* units along k */
    int64_t scratch;            /* bytes of shared memory, of a and then b in row-major order */
    int64_t scratch_b;          /* where b begins there */
    DotReason no_mma, no_fma;   /* what keeps it from tensor cores, and from registers */
} DotPlan;

/* The least extent of m, n and k that a row of mma.def has. */
enum { DOT_LEAST_EXTENT = 8 };

/* Pieces of a unit. */
int64_t dot_pieces(const DotSide *s);

/* Returns the slots of `quotient` where the pieces of a unit lie, column by column: of c's
 * unit `unit`, or of the unit of a or b that is multiplied into it in step `k`. */
int64_t *dot_slots(const DotPlan *plan, unsigned side, int64_t unit, int64_t k);

/* Accumulators of fma: f64 or f32, i64 or i32, by the operands' types. */
typedef struct DotNumbers {
    bool is_float;
    unsigned bytes;             /* 4 or 8 */
} DotNumbers;
DotNumbers dot_numbers(const Op *op);

/* The best plan for targets from number `sm` on; 0: for every target. On the module's
 * scratch arena. */
DotPlan dot_plan(Module *m, const Op *op, unsigned sm);

/* Returns true when a dot by `plan`, which tensor cores do not compute, is work for them: each
 * extent is DOT_LEAST_EXTENT at least. */
bool dot_suits_tensor_cores(const Op *op);

/* The plan that the attribute `via` names, after a proof that it fits, or else the
 * best. False after an error. */
bool dot_follow(Module *m, const Op *op, unsigned sm, DotPlan *plan);

/* Checks operands whose layouts the text gives, while others are open (NULL): where `via` names
 * an instruction, each must be made of its pieces. False after an error, which blames a layout
 * that was written and none that was inferred from it. */
bool dot_check_given(Module *m, const Op *op, unsigned sm, const Layout *const *given);

/* Bytes of shared memory that a dot may need on any target. */
int64_t dot_scratch(Module *m, const Op *op);

#endif
