/* Types. */
#define _GNU_SOURCE
#include "api/ir_handles.h"

#include "ir/text.h"
#include "syntax/syntax.h"

#include <string.h>

static const TypeKind kinds[] = {
    [TILUS_KIND_SCALAR] = TYPE_SCALAR, [TILUS_KIND_POINTER] = TYPE_PTR,
    [TILUS_KIND_REGISTER] = TYPE_REG, [TILUS_KIND_SHARED] = TYPE_SHARED,
    [TILUS_KIND_GLOBAL] = TYPE_GLOBAL, [TILUS_KIND_MBARRIER] = TYPE_MBARRIER};
enum { KINDS = sizeof kinds / sizeof *kinds };

tilus_kind tilus_type_kind(const tilus_type *type)
{
    tilus_kind kind = TILUS_KIND_SCALAR;
    while (type && kinds[kind] != type_of(type)->kind)
        kind++;
    return kind;
}

const char *tilus_type_element(const tilus_type *type)
{
    return type ? dtype_name(type_of(type)->dtype) : NULL;
}

size_t tilus_type_rank(const tilus_type *type) { return type ? type_of(type)->rank : 0; }

const tilus_expr *tilus_type_extent_expr(const tilus_type *type, size_t dimension)
{
    return dimension < tilus_type_rank(type) ? expr_handle(type_of(type)->extents[dimension])
                                             : NULL;
}

int64_t tilus_type_extent(const tilus_type *type, size_t dimension)
{
    const Expr *e = expr_of(tilus_type_extent_expr(type, dimension));
    return e && expr_is_constant(e) ? e->constant : -1;
}

const tilus_expr *tilus_type_stride_expr(const tilus_type *type, size_t dimension)
{
    bool strided = dimension < tilus_type_rank(type) && type_of(type)->strides;
    return strided ? expr_handle(type_of(type)->strides[dimension]) : NULL;
}

int64_t tilus_type_elements(const tilus_type *type)
{
    int64_t product = 1;
    for (size_t d = 0; d < tilus_type_rank(type); d++) {
        int64_t extent = tilus_type_extent(type, d);
        if (extent < 0 || __builtin_mul_overflow(product, extent, &product))
            return -1;
    }
    return product;
}

const tilus_layout *tilus_type_layout(const tilus_type *type)
{
    return type ? layout_handle(type_of(type)->layout) : NULL;
}

bool tilus_type_is_open(const tilus_type *type) { return type && type_is_open(type_of(type)); }

const char *tilus_type_storage_order(const tilus_type *type)
{
    DType packed = type ? type_of(type)->packed : DTYPE_none;
    return packed == DTYPE_none ? NULL : dtype_name(packed);
}

bool tilus_type_is_pending(const tilus_type *type) { return type && type_of(type)->pending; }

/* Takes indices below 0 as others modulo the period. */
int tilus_type_exponent(const tilus_type *type, const int64_t *index)
{
    const Scaling *s = type ? type_of(type)->scaling : NULL;
    return s ? s->exponents[(uint64_t)index[s->dim] % s->count] : 0;
}

bool tilus_type_swizzle(const tilus_type *type, unsigned *bits, unsigned *base, unsigned *shift)
{
    if (!type || !type_of(type)->swizzle.bits)
        return false;
    *bits = type_of(type)->swizzle.bits;
    *base = type_of(type)->swizzle.base;
    *shift = type_of(type)->swizzle.shift;
    return true;
}

/* ---- making ------------------------------------------------------------- */

const tilus_type *tilus_type_parse(tilus_module *module, tilus_kind kind, const char *text)
{
    const Type *t = NULL;
    if (module && text && (size_t)kind < KINDS)
        IR_CALL(module, t, NULL, parse_type_text(module, kinds[kind], text));
    return type_handle(t);
}

static DType find_element(Module *m, const char *element)
{
    DType t = element ? dtype_find(element, strlen(element)) : DTYPE_none;
    if (t == DTYPE_none)
        diag_error(m->diag, (Loc){0}, "no element type %s", element ? element : "(none)");
    return t;
}

static bool check_constant(Module *m, const char *what, const Expr *e, int64_t least)
{
    return (expr_is_constant(e) && e->constant >= least) ||
           diag_error(m->diag, (Loc){0}, "%s of a shared tensor is %s, not a constant from %lld",
                      what, expr_text(m, e), (long long)least);
}

static bool check_shared(Module *m, unsigned rank, const Expr *const *extents,
                         const Expr *const *strides)
{
    int64_t product = 1;
    for (unsigned d = 0; d < rank; d++) {
        if (!check_constant(m, "an extent", extents[d], 1) ||
            (strides && !check_constant(m, "a stride", strides[d], 0)))
            return false;
        if (__builtin_mul_overflow(product, extents[d]->constant, &product))
            return diag_error(m->diag, (Loc){0}, "the product of the extents is over 63 bits");
    }
    return true;
}

static const Type *make_memory(Module *m, tilus_kind kind, const char *element, size_t rank,
                               const Expr *const *extents, const Expr *const *strides)
{
    DType dtype = find_element(m, element);
    if (dtype == DTYPE_none)
        return NULL;
    if (rank < 1 || rank > LIMIT_RANK || !extents) {
        diag_error(m->diag, (Loc){0}, "a tensor of rank %zu, it is 1 to %d", rank, LIMIT_RANK);
        return NULL;
    }
    if (!ir_check_exprs(m, (Loc){0}, "extents", extents, rank) ||
        (strides && !ir_check_exprs(m, (Loc){0}, "strides", strides, rank)))
        return NULL;
    if (kind == TILUS_KIND_SHARED && !check_shared(m, (unsigned)rank, extents, strides))
        return NULL;
    return type_memory(m, kinds[kind], dtype, (unsigned)rank, extents, strides);
}

const tilus_type *tilus_type_memory(tilus_module *module, tilus_kind kind, const char *element,
                                    size_t rank, const tilus_expr *const *extents,
                                    const tilus_expr *const *strides)
{
    const Type *t = NULL;
    if (module && (kind == TILUS_KIND_SHARED || kind == TILUS_KIND_GLOBAL))
        IR_CALL(module, t, NULL, make_memory(module, kind, element, rank,
                                             (const Expr *const *)extents,
                                             (const Expr *const *)strides));
    return type_handle(t);
}

static bool check_register(Module *m, const Type *t)
{
    return (ir_has_type(m, t) && t->kind == TYPE_REG) ||
           diag_error(m->diag, (Loc){0}, "the type is no register tensor's of this module");
}

static const Type *make_like(Module *m, const Type *t, const char *element)
{
    DType dtype = check_register(m, t) ? find_element(m, element) : DTYPE_none;
    return dtype == DTYPE_none ? NULL : type_like(m, t, dtype);
}

const tilus_type *tilus_type_with_element(tilus_module *module, const tilus_type *type,
                                          const char *element)
{
    const Type *t = NULL;
    if (module && type)
        IR_CALL(module, t, NULL, make_like(module, type_of(type), element));
    return type_handle(t);
}

static bool check_shape(Module *m, const Type *t, const Layout *l)
{
    if (!ir_has_layout(m, l))
        return diag_error(m->diag, (Loc){0}, "the layout is not of this module");
    bool fits = l->rank == t->rank;
    for (unsigned d = 0; fits && d < l->rank; d++)
        fits = l->shape[d] == type_extent(t, d);
    return fits || diag_error(m->diag, (Loc){0}, "a layout of another shape than %s",
                              type_text(m, t));
}

static const Type *make_with_layout(Module *m, const Type *t, const Layout *l)
{
    return check_register(m, t) && (!l || check_shape(m, t, l)) ? type_with_layout(m, t, l)
                                                                : NULL;
}

const tilus_type *tilus_type_with_layout(tilus_module *module, const tilus_type *type,
                                         const tilus_layout *layout)
{
    const Type *t = NULL;
    if (module && type)
        IR_CALL(module, t, NULL, make_with_layout(module, type_of(type), layout_of(layout)));
    return type_handle(t);
}

static char *print_text(Module *m, const Type *t)
{
    ArenaMark mark = arena_mark(&m->arena);
    char *copy = strdup(type_text(m, t));
    arena_reset(&m->arena, mark);
    return copy;
}

char *tilus_type_print(tilus_module *module, const tilus_type *type)
{
    char *text = NULL;
    if (module && type)
        IR_CALL(module, text, NULL, print_text(module, type_of(type)));
    return text;
}
