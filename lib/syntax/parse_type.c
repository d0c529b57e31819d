/* Parsing of types. */
#include "ir/part.h"
#include "syntax/parser.h"

#include <string.h>

DType parse_dtype(Parser *p)
{
    if (p->token.kind != TOKEN_NAME) {
        parser_expected(p, "a type");
        return DTYPE_none;
    }
    DType t = dtype_find(p->token.start, p->token.len);
    Symbol *s = t ? NULL : parser_symbol(p, &p->token);
    if (s && symbol_binding(p, s) == BINDING_TYPE)
        t = s->dtype;
    if (t)
        parser_advance(p);
    else
        diag_error(p->diag, p->token.loc, "unknown type %s", token_text(p, &p->token));
    return t;
}

bool parser_at_bare_type(Parser *p)
{
    const Token *t = &p->token;
    bool type = t->kind == TOKEN_NAME &&
                (dtype_find(t->start, t->len) ||
                 symbol_binding(p, parser_symbol(p, t)) == BINDING_TYPE);
    return type && !parser_at_call(p);
}

static const Type *parse_ptr(Parser *p)
{
    parser_advance(p);
    if (!parser_expect(p, "<", "after `ptr`"))
        return NULL;
    DType t = parse_dtype(p);
    return t && parser_expect(p, ">", "after the pointer's element type") ? type_ptr(p->m, t)
                                                                          : NULL;
}

/* The shape of a tensor that is not in global memory: constants from 1, whose
 * product fits 63 bits. */
static bool check_constant_shape(Parser *p, Loc loc, const Expr *const *extents, unsigned rank)
{
    int64_t product = 1;
    for (unsigned d = 0; d < rank; d++) {
        if (!expr_is_constant(extents[d]))
            return diag_error(p->diag, loc, "the extent of dimension %u of a register or shared "
                              "tensor must be a constant", d);
        if (extents[d]->constant < 1)
            return diag_error(p->diag, loc, "the extent of dimension %u is %lld, it must be at "
                              "least 1", d, (long long)extents[d]->constant);
        if (__builtin_mul_overflow(product, extents[d]->constant, &product))
            return diag_error(p->diag, loc, "the product of the extents is over 63 bits at "
                              "extent %u, %lld", d, (long long)extents[d]->constant);
    }
    return true;
}

/* Returns true at the `@` of a layout; one that begins a line before a function's name calls
 * it, as the next statement. */
static bool at_layout(Parser *p)
{
    if (!parser_at(p, "@") || !p->token.begins_line)
        return parser_at(p, "@");
    Bookmark here = parser_bookmark(p);
    parser_advance(p);
    bool calls = p->token.kind == TOKEN_NAME && parser_symbol(p, &p->token)->function;
    parser_go_to(p, here);
    return !calls;
}

/* Without a layout the type is open. */
static const Type *parse_reg_layout(Parser *p, Loc loc, DType dtype, const Expr *const *extents,
                                  unsigned rank)
{
    if (!check_constant_shape(p, loc, extents, rank))
        return NULL;
    if (!at_layout(p))
        return type_reg_open(p->m, dtype, rank, extents);
    parser_advance(p);
    Loc layout_loc = p->token.loc;
    const Layout *layout = parse_layout(p, rank);
    if (!layout)
        return NULL;
    bool equal = layout->rank == rank;
    for (unsigned d = 0; equal && d < rank; d++)
        equal = layout->shape[d] == extents[d]->constant;
    if (equal)
        return type_reg(p->m, dtype, layout);
    Text shapes;
    text_init(&shapes, &p->m->arena);
    for (unsigned d = 0; d < rank; d++)
        text_printf(&shapes, "%s%lld", d ? ", " : "[", (long long)extents[d]->constant);
    text_add(&shapes, "], the layout's [");
    for (unsigned d = 0; d < layout->rank; d++)
        text_printf(&shapes, "%s%lld", d ? ", " : "", (long long)layout->shape[d]);
    diag_error(p->diag, layout_loc, "the tensor's shape is %s]", text_string(&shapes));
    return NULL;
}

static const Type *parse_reg_tail(Parser *p, Loc loc, DType dtype, const Expr *const *extents,
                                  unsigned rank)
{
    const Type *t = parse_reg_layout(p, loc, dtype, extents, rank);
    bool pending = t && !p->token.begins_line && parser_accept(p, "pending");
    return pending ? type_pending(p->m, t, true) : t;
}

/* strides(..), in front of which the parser stands. */
static bool parse_strides(Parser *p, unsigned rank, const Expr **strides)
{
    unsigned count;
    Loc loc = p->token.loc;
    parser_advance(p);
    if (!parse_expr_list(p, "(", ")", strides, &count))
        return false;
    return count == rank ||
           diag_error(p->diag, loc, "%u strides for a tensor of rank %u", count, rank);
}

/* BITS, BASE, SHIFT) */
static bool parse_swizzle_numbers(Parser *p, Swizzle *swizzle)
{
    static const char *const names[] = {"BITS", "BASE", "SHIFT"};
    int64_t n[3];
    unsigned count = 0;
    Loc loc = p->token.loc;
    do {
        if (count == 3)
            return parser_expected(p, "`)` after the swizzle's 3 numbers");
        if (!parse_constant(p, "a number of a swizzle", &n[count++]))
            return false;
    } while (parser_accept(p, ","));
    if (!parser_expect(p, ")", "after the swizzle"))
        return false;
    if (count != 3)
        return diag_error(p->diag, loc, "swizzle takes 3 numbers, got %u", count);
    for (unsigned i = 0; i < 3; i++)
        if (n[i] < 0 || n[i] > LIMIT_SWIZZLE)
            return diag_error(p->diag, loc, "%s of a swizzle is 0 to %d, got %lld", names[i],
                              LIMIT_SWIZZLE, (long long)n[i]);
    *swizzle = (Swizzle){(uint8_t)n[0], (uint8_t)n[1], (uint8_t)n[2]};
    return true;
}

/* The tensor `t` with swizzle(BITS, BASE, SHIFT) or swizzle(auto), in front of which
 * the parser stands. */
static const Type *parse_swizzle(Parser *p, const Type *t)
{
    Swizzle swizzle;
    parser_advance(p);
    if (!parser_expect(p, "(", "after `swizzle`"))
        return NULL;
    if (parser_accept(p, "auto"))
        return parser_expect(p, ")", "after `auto`") ? type_swizzle_open(p->m, t) : NULL;
    return parse_swizzle_numbers(p, &swizzle) ? type_swizzled(p->m, t, swizzle) : NULL;
}

/* `shared` and `global` may be left out where they are implied. */
static const Type *parse_memory_tail(Parser *p, Loc loc, TypeKind kind, DType dtype,
                                     const Expr *const *extents, unsigned rank)
{
    const Expr *strides[LIMIT_RANK];
    parser_accept(p, kind == TYPE_SHARED ? "shared" : "global");
    if (kind == TYPE_SHARED && !check_constant_shape(p, loc, extents, rank))
        return NULL;
    bool strided = parser_at(p, "strides");
    if (strided && !parse_strides(p, rank, strides))
        return NULL;
    const Type *t = type_memory(p->m, kind, dtype, rank, extents, strided ? strides : NULL);
    return kind == TYPE_SHARED && parser_at(p, "swizzle") ? parse_swizzle(p, t) : t;
}

static const Type *parse_tail(Parser *p, Loc loc, TypeKind kind, DType dtype,
                              const Expr *const *extents, unsigned rank)
{
    return kind == TYPE_REG ? parse_reg_tail(p, loc, dtype, extents, rank)
                            : parse_memory_tail(p, loc, kind, dtype, extents, rank);
}

static bool parse_extents(Parser *p, Loc loc, const Expr **extents, unsigned *rank)
{
    if (!parser_at(p, "[") && (p->token.begins_line || p->token.kind == TOKEN_END))
        return diag_error(p->diag, loc, "a tensor's type has extents, as in f32[16, 8]");
    return parse_expr_list(p, "[", "]", extents, rank) &&
           (*rank || diag_error(p->diag, loc, "a tensor of rank 0"));
}

/* [extents] and the rest of a type, after the element type. */
static const Type *parse_tensor_tail(Parser *p, Loc loc, TypeKind kind, DType dtype)
{
    const Expr *extents[LIMIT_RANK];
    unsigned rank;
    return parse_extents(p, loc, extents, &rank)
               ? parse_tail(p, loc, kind, dtype, extents, rank)
               : NULL;
}

/* A register tensor's type after its element type: form, extents and layout. The
 * last two may be left out where `operand` has them; without one (NULL) it is a
 * scalar then. */
static const Type *parse_reg_type(Parser *p, Loc loc, DType dtype, const Type *operand,
                                  bool complete)
{
    Form form;
    if (!parse_form(p, dtype, &form))
        return NULL;
    if (!complete && !parser_at(p, "[") && (!operand || operand->kind != TYPE_REG))
        return type_scalar(p->m, dtype);
    const Type *t = complete || parser_at(p, "[") ? parse_tensor_tail(p, loc, TYPE_REG, dtype)
                                                  : type_like(p->m, operand, dtype);
    return t ? apply_form(p, t, &form) : NULL;
}

/* mbarrier[N] */
static const Type *parse_mbarrier(Parser *p)
{
    Loc loc = p->token.loc;
    const Expr *extents[LIMIT_RANK];
    unsigned rank;
    if (!parser_expect(p, "mbarrier", "as the type of mbarriers, mbarrier[N]") ||
        !parse_expr_list(p, "[", "]", extents, &rank))
        return NULL;
    if (rank != 1 || !expr_is_constant(extents[0])) {
        diag_error(p->diag, loc, "mbarriers have one extent, a constant, got %u", rank);
        return NULL;
    }
    return type_mbarrier(p->m, extents[0]->constant);
}

const Type *parse_type(Parser *p, TypeKind kind)
{
    Loc loc = p->token.loc;
    if (kind == TYPE_MBARRIER)
        return parse_mbarrier(p);
    if (kind == TYPE_SCALAR && parser_at(p, "ptr"))
        return parse_ptr(p);
    DType dtype = parse_dtype(p);
    if (!dtype)
        return NULL;
    if (kind == TYPE_REG)
        return parse_reg_type(p, loc, dtype, NULL, true);
    return kind == TYPE_SCALAR ? type_scalar(p->m, dtype)
                               : parse_tensor_tail(p, loc, kind, dtype);
}

const Type *parse_element_type(Parser *p, const Type *operand)
{
    Loc loc = p->token.loc;
    DType dtype = parse_dtype(p);
    return dtype ? parse_reg_type(p, loc, dtype, operand, false) : NULL;
}

/* Returns true when the type goes on after its extents. */
static bool at_tail(Parser *p)
{
    static const char *const words[] = {"shared", "global", "strides", "swizzle"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (parser_at(p, words[i]))
            return true;
    return at_layout(p);
}

/* The kind that the tail names. */
static TypeKind tail_kind(Parser *p)
{
    return at_layout(p) ? TYPE_REG : parser_at(p, "global") ? TYPE_GLOBAL : TYPE_SHARED;
}

const Type *parse_slice_type(Parser *p, const Type *operand, const Attr *dims)
{
    Loc loc = p->token.loc;
    const Expr *extents[LIMIT_RANK];
    unsigned rank;
    const char *why = NULL;
    DType dtype = parse_dtype(p);
    if (!dtype || !parse_extents(p, loc, extents, &rank))
        return NULL;
    TypeKind kind = operand ? operand->kind : tail_kind(p);
    if (at_tail(p))
        return parse_tail(p, loc, kind, dtype, extents, rank);
    if (!operand)
        return type_scalar(p->m, dtype);
    if (kind != TYPE_GLOBAL && !check_constant_shape(p, loc, extents, rank))
        return NULL;
    const Type *t = slice_type(p->m, operand, dims, dtype, rank, extents, &why);
    if (!t)
        diag_error(p->diag, loc, "%s", why);
    return t;
}

const Type *parse_reshape_type(Parser *p, const Type *operand)
{
    Loc loc = p->token.loc;
    const char *why = NULL;
    const Type *t = parse_type(p, TYPE_REG);
    if (!t || !operand || t->layout || type_is_open(operand))
        return t;
    const Type *follows = reshape_type(p->m, operand, t->rank, t->extents, &why);
    if (follows)
        return type_with_layout(p->m, t, follows->layout);
    diag_error(p->diag, loc, "%s", why);
    return NULL;
}
