/* Interning and making of types. */
#include "ir/ir.h"

#include <assert.h>
#include <string.h>

static bool scaling_equal(const Scaling *a, const Scaling *b)
{
    return a == b || (a && b && a->dim == b->dim && a->count == b->count &&
                      !memcmp(a->exponents, b->exponents, a->count * sizeof *a->exponents));
}

bool type_equal(const void *x, const void *y)
{
    const Type *a = x, *b = y;
    if (a->packed != b->packed || a->pending != b->pending ||
        !scaling_equal(a->scaling, b->scaling))
        return false;
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->layout != b->layout || !a->strides != !b->strides ||
        a->swizzle.bits != b->swizzle.bits || a->swizzle.base != b->swizzle.base ||
        a->swizzle.shift != b->swizzle.shift || a->swizzle_open != b->swizzle_open)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->extents[d] != b->extents[d] || (a->strides && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

static const Type *intern_type(Module *m, const Type *key)
{
    uint64_t hash = hash_u64((uint64_t)key->kind, (uint64_t)key->dtype);
    hash = hash_u64(hash, (uint64_t)(uintptr_t)key->layout);
    hash = hash_bytes(hash, &key->swizzle, sizeof key->swizzle);
    hash = hash_u64(hash, (uint64_t)key->packed << 2 | (uint64_t)key->pending << 1 |
                              key->swizzle_open);
    if (key->scaling)
        hash = hash_bytes(hash, key->scaling->exponents,
                          key->scaling->count * sizeof *key->scaling->exponents);
    for (unsigned d = 0; d < key->rank; d++) {
        hash = hash_u64(hash, key->extents[d]->hash);
        hash = hash_u64(hash, key->strides ? key->strides[d]->hash : 1);
    }
    const Type *known = intern_find(&m->types, hash, key);
    if (known)
        return known;
    Type *fresh = arena_copy(&m->arena, key, sizeof *key);
    if (key->strides)
        fresh->strides = arena_copy(&m->arena, key->strides, key->rank * sizeof *key->strides);
    intern_add(&m->types, hash, fresh);
    return fresh;
}

const Type *type_scalar(Module *m, DType dtype)
{
    return intern_type(m, &(Type){.kind = TYPE_SCALAR, .dtype = dtype});
}

const Type *type_ptr(Module *m, DType dtype)
{
    return intern_type(m, &(Type){.kind = TYPE_PTR, .dtype = dtype});
}

const Type *type_reg(Module *m, DType dtype, const Layout *layout)
{
    Type t = {.kind = TYPE_REG, .dtype = dtype, .rank = layout->rank, .layout = layout};
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = expr_constant(&m->exprs, layout->shape[d]);
    return intern_type(m, &t);
}

const Type *type_reg_open(Module *m, DType dtype, unsigned rank, const Expr *const *extents)
{
    Type t = {.kind = TYPE_REG, .dtype = dtype, .rank = rank};
    memcpy(t.extents, extents, rank * sizeof *extents);
    return intern_type(m, &t);
}

const Type *type_like(Module *m, const Type *t, DType dtype)
{
    Type like = *t;
    assert(t->kind == TYPE_REG);
    like.dtype = dtype;
    like.packed = DTYPE_none;
    like.scaling = NULL;
    like.pending = false;
    return intern_type(m, &like);
}

const Type *type_with_layout(Module *m, const Type *t, const Layout *layout)
{
    Type other = *t;
    assert(t->kind == TYPE_REG);
    other.layout = layout;
    return intern_type(m, &other);
}

const Type *type_packed(Module *m, const Type *t, DType to)
{
    Type packed = *t;
    assert(t->kind == TYPE_REG);
    packed.packed = to;
    return intern_type(m, &packed);
}

const Type *type_pending(Module *m, const Type *t, bool pending)
{
    Type other = *t;
    assert(t->kind == TYPE_REG);
    other.pending = pending;
    return intern_type(m, &other);
}

/* The least divisor of `count` that is a period of the exponents. */
static unsigned least_period(unsigned count, const int16_t *exponents)
{
    for (unsigned period = 1; period < count; period++) {
        unsigned i = period;
        while (count % period == 0 && i < count && exponents[i] == exponents[i - period])
            i++;
        if (i == count)
            return period;
    }
    return count;
}

const Type *type_scaled(Module *m, const Type *t, unsigned dim, unsigned count,
                        const int16_t *exponents)
{
    Type scaled = *t;
    assert(t->kind == TYPE_REG && count >= 1 && count <= SCALING_COUNT_LIMIT);
    unsigned period = least_period(count, exponents);
    size_t bytes = period * sizeof *exponents;
    scaled.scaling = NULL;
    if (period == 1 && exponents[0] == 0)
        return intern_type(m, &scaled);
    Scaling *s = arena_alloc(&m->arena, sizeof *s + bytes);
    *s = (Scaling){.dim = period == 1 ? 0 : dim, .count = period};
    memcpy(s->exponents, exponents, bytes);
    scaled.scaling = s;
    return intern_type(m, &scaled);
}

/* The row-major stride of dimension `d`; NULL if a constant overflows. */
static const Expr *row_major_stride(Module *m, const Type *t, unsigned d)
{
    const Expr *stride = expr_constant(&m->exprs, 1);
    for (unsigned i = t->rank; stride && --i > d;) {
        const char *why;
        stride = expr_is_constant(stride) && stride->constant == 1
                     ? t->extents[i]
                     : expr_make(&m->exprs, SCALAR_mul, t->extents[i], stride, &why);
    }
    return stride;
}

const Type *type_memory(Module *m, TypeKind kind, DType dtype, unsigned rank,
                        const Expr *const *extents, const Expr *const *strides)
{
    Type t = {.kind = kind, .dtype = dtype, .rank = rank};
    memcpy(t.extents, extents, rank * sizeof *extents);
    bool row_major = true;
    for (unsigned d = 0; strides && d < rank && row_major; d++)
        row_major = strides[d] == row_major_stride(m, &t, d);
    t.strides = row_major ? NULL : strides;
    return intern_type(m, &t);
}

const Type *type_swizzled(Module *m, const Type *t, Swizzle swizzle)
{
    Type swizzled = *t;
    assert(t->kind == TYPE_SHARED);
    swizzled.swizzle = swizzle.bits ? swizzle : (Swizzle){0};
    swizzled.swizzle_open = false;
    return intern_type(m, &swizzled);
}

const Type *type_swizzle_open(Module *m, const Type *t)
{
    Type open = *t;
    assert(t->kind == TYPE_SHARED);
    open.swizzle = (Swizzle){0};
    open.swizzle_open = true;
    return intern_type(m, &open);
}

const Type *type_mbarrier(Module *m, int64_t count)
{
    return intern_type(m, &(Type){.kind = TYPE_MBARRIER, .dtype = DTYPE_u64, .rank = 1,
                                  .extents = {expr_constant(&m->exprs, count)}});
}

const Expr *type_stride(Module *m, const Type *t, unsigned d)
{
    return t->strides ? t->strides[d] : row_major_stride(m, t, d);
}

int64_t type_extent(const Type *t, unsigned d)
{
    assert(d < t->rank && expr_is_constant(t->extents[d]));
    return t->extents[d]->constant;
}

int64_t type_thread_bits(const Type *t)
{
    return t->layout->slots * dtype_bits(t->dtype);
}

int64_t type_thread_words(const Type *t)
{
    return (type_thread_bits(t) + 31) / 32;
}

int64_t type_shared_bits(const Type *t)
{
    int64_t last = 0, row_major = 1, bits;
    for (unsigned d = t->rank; d-- > 0;) {
        int64_t extent = type_extent(t, d), reach;
        int64_t stride = t->strides ? t->strides[d]->constant : row_major;
        if (__builtin_mul_overflow(extent - 1, stride, &reach) ||
            __builtin_add_overflow(last, reach, &last) ||
            __builtin_mul_overflow(row_major, extent, &row_major))
            return -1;
    }
    if (__builtin_add_overflow(last, 1, &last) ||
        __builtin_mul_overflow(last, (int64_t)dtype_bits(t->dtype), &bits))
        return -1;
    return bits;
}
