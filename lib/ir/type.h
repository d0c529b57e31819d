/* Types of values: scalars, pointers, register tensors, tensors in memory, mbarriers. */
#ifndef TILUS_IR_TYPE_H
#define TILUS_IR_TYPE_H

#include "types/dtype.h"
#include "types/expr.h"
#include "types/layout.h"

typedef struct tilus_module Module;     /* public, opaque name: tilus_module */

typedef enum TypeKind {
    TYPE_SCALAR,    /* an integer of at most 64 bits that i64 holds */
    TYPE_PTR,       /* ptr<dtype>, into global memory */
    TYPE_REG,       /* dtype[extents] [@ layout] */
    TYPE_SHARED,    /* dtype[extents] shared [strides(..)] [swizzle(..)] */
    TYPE_GLOBAL,    /* dtype[extents] global [strides(..)] */
    TYPE_MBARRIER   /* mbarrier[extents], of rank 1, in shared memory */
} TypeKind;

/* A permutation of element numbers (CuTe's Swizzle<B, M, S>, in elements): the
 * `bits` bits from `base` on are xored with those `shift` above them. Runs of
 * 2^base elements stay together, aligned; as shift >= bits, the bits that are
 * read stay themselves. bits = 0: none, as are base and shift then.
 *
 *     element number   ...  s s s  ...  d d d  m m m       swizzle(3, 3, shift)
 *                           |_____ xor ___^    `------ base
 */
typedef struct Swizzle {
    uint8_t bits, base, shift;      /* each at most LIMIT_SWIZZLE */
} Swizzle;

static inline int64_t swizzle_element(Swizzle s, int64_t element)
{
    int64_t mask = ((INT64_C(1) << s.bits) - 1) << s.base;
    return element ^ ((element >> s.shift) & mask);
}

/* Deferred scales of a REG type: an element of value v is stored as v * 2^e, and
 * e is exponents[i mod count] for the index i along dimension `dim`. `count` is
 * the least period, a divisor of the extent; 1 where all are equal, and dim is 0
 * then. Not all are 0. */
typedef struct Scaling {
    unsigned dim, count;
    int16_t exponents[];
} Scaling;

enum { SCALING_COUNT_LIMIT = 1024, SCALING_EXPONENT_LIMIT = 1000 };

/* Interned: equal types are equal pointers. Extents of REG and SHARED, and
 * strides of SHARED, are constants. Strides count elements; NULL: row-major. */
typedef struct Type {
    TypeKind kind;
    DType dtype;
    unsigned rank;
    const Expr *extents[LIMIT_RANK];
    const Expr *const *strides;
    const Layout *layout;           /* TYPE_REG only; NULL: open, infer-layouts chooses */
    DType packed;                   /* TYPE_REG only: codes lie in storage order packed(T)
                                       (types/storage.h); DTYPE_none: in plain order */
    bool pending;                   /* TYPE_REG only: sums of products that may be in flight */
    const Scaling *scaling;         /* TYPE_REG only; NULL: elements are their values */
    Swizzle swizzle;                /* TYPE_SHARED only */
    bool swizzle_open;              /* swizzle(auto): infer-layouts chooses; none until then */
} Type;

/* ---- making and asking ----------------------------------------------- */

/* Tells two types apart, for the module's set of types. */
bool type_equal(const void *x, const void *y);

const Type *type_scalar(Module *m, DType dtype);
const Type *type_ptr(Module *m, DType dtype);
const Type *type_reg(Module *m, DType dtype, const Layout *layout);
/* A REG type whose layout is left open. Extents are constants. */
const Type *type_reg_open(Module *m, DType dtype, unsigned rank, const Expr *const *extents);
/* The REG type `t` with another element type, in plain order, complete and not
 * scaled. */
const Type *type_like(Module *m, const Type *t, DType dtype);
/* The REG type `t` with a layout of its shape; NULL leaves it open. */
const Type *type_with_layout(Module *m, const Type *t, const Layout *layout);
/* The REG type `t` in storage order packed(to); DTYPE_none: in plain order. */
const Type *type_packed(Module *m, const Type *t, DType to);
/* The REG type `t` with exponents of deferred scales, `count` of them, a divisor of the
 * extent of `dim`, from 1 to SCALING_COUNT_LIMIT. */
const Type *type_scaled(Module *m, const Type *t, unsigned dim, unsigned count,
                        const int16_t *exponents);
/* The REG type `t` of sums of products in flight, or of complete ones. */
const Type *type_pending(Module *m, const Type *t, bool pending);
/* The exponent of the deferred scale at `index`, whose entry for the scaling's dimension is
 * what matters; 0 where there are none. */
static inline int type_exponent(const Type *t, const int64_t *index)
{
    const Scaling *s = t->scaling;
    return s ? s->exponents[index[s->dim] % s->count] : 0;
}
/* Returns true when infer-layouts has yet to choose the layout or the swizzle. Only the
 * parser, the printer, the verifier and that pass see such types. */
static inline bool type_is_open(const Type *t)
{
    return t->kind == TYPE_REG ? !t->layout : t->swizzle_open;
}
/* `strides` may be NULL; strides equal to row-major ones become NULL. */
const Type *type_memory(Module *m, TypeKind kind, DType dtype, unsigned rank,
                        const Expr *const *extents, const Expr *const *strides);
/* A SHARED type with another swizzle; of 0 bits, without one. */
const Type *type_swizzled(Module *m, const Type *t, Swizzle swizzle);
/* A SHARED type whose swizzle is left open. */
const Type *type_swizzle_open(Module *m, const Type *t);
/* `count` mbarriers; of no element type. */
const Type *type_mbarrier(Module *m, int64_t count);
/* The stride of dimension `d` in elements, computed when row-major. NULL if a
 * constant product overflows. */
const Expr *type_stride(Module *m, const Type *t, unsigned d);
/* The constant extent of a REG or SHARED type. */
int64_t type_extent(const Type *t, unsigned d);
/* Bits that one thread holds of a REG type, and the 32-bit words they fill. */
int64_t type_thread_bits(const Type *t);
int64_t type_thread_words(const Type *t);
/* Bits that a SHARED tensor spans, from its first to its last element; -1 if
 * that overflows. A legal swizzle keeps elements in that span. */
int64_t type_shared_bits(const Type *t);

/* Shared tensors start at multiples of SHARED_ALIGN bytes at least (shared_alignment), and
 * an attribute OFFSET keeps one within LIMIT_SHARED_BYTES. */
#define SHARED_ALIGN 16

#endif
