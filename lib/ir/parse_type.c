/* Parsing of types and layouts. */
#include "ir/parser.h"

#include <string.h>

DType parse_dtype(Parser *p)
{
    if (p->token.kind != TOKEN_NAME) {
        parser_expected(p, "a type");
        return DTYPE_none;
    }
    DType t = dtype_find(p->token.start, p->token.len);
    Symbol *s = t ? NULL : parser_symbol(p, &p->token);
    if (s && s->binding == BINDING_TYPE)
        t = s->dtype;
    if (t)
        parser_advance(p);
    else
        diag_error(p->diag, p->token.loc, "unknown type %s", token_text(p, &p->token));
    return t;
}

/* ---- layouts -------------------------------------------------------- */

typedef const Layout *(*ShapeMaker)(LayoutTable *, unsigned, const int64_t *, const char **);

static const struct Primitive {
    const char *name;
    ShapeMaker make;
} primitives[] = {
    {"local", layout_local},
    {"spatial", layout_spatial},
    {"column_local", layout_column_local},
    {"column_spatial", layout_column_spatial},
};

/* Reports the reason of a maker that failed. */
static const Layout *checked(Parser *p, Loc loc, const Layout *l, const char *const *why)
{
    if (!l)
        diag_error(p->diag, loc, "%s", *why);
    return l;
}

static const Layout *parse_primitive(Parser *p, ShapeMaker make)
{
    Loc loc = p->token.loc;
    int64_t shape[LIMIT_RANK];
    unsigned rank;
    const char *why = NULL;
    parser_advance(p);
    if (!parse_constant_list(p, "(", ")", "an extent of a layout", shape, LIMIT_RANK, &rank))
        return NULL;
    return checked(p, loc, make(&p->m->layouts, rank, shape, &why), &why);
}

/* replicate(n): only the count; its rank is that of the factors around it. */
static bool parse_replicate(Parser *p, int64_t *n)
{
    parser_advance(p);
    return parser_expect(p, "(", "after `replicate`") &&
           parse_constant(p, "the number of replicas", n) &&
           parser_expect(p, ")", "after the number of replicas");
}

static const Layout *make_replicate(Parser *p, Loc loc, unsigned rank, int64_t n)
{
    const char *why = NULL;
    return checked(p, loc, layout_replicate(&p->m->layouts, rank, n, &why), &why);
}

/* register_layout(shape = [..], mode_shape = [..], spatial_modes = [..],
 * local_modes = [..]). */
static const Layout *parse_register_layout(Parser *p)
{
    static const char *const names[] = {"shape", "mode_shape", "spatial_modes", "local_modes"};
    Loc loc = p->token.loc;
    int64_t lists[4][LAYOUT_MODES];
    unsigned counts[4];
    const char *why = NULL;
    parser_advance(p);
    if (!parser_expect(p, "(", "after `register_layout`"))
        return NULL;
    for (unsigned i = 0; i < 4; i++)
        if ((i && !parser_expect(p, ",", "between the attributes of a layout")) ||
            !parser_expect(p, names[i], "in register_layout") ||
            !parser_expect(p, "=", "after the attribute's name") ||
            !parse_constant_list(p, "[", "]", names[i], lists[i],
                                 i ? LAYOUT_MODES : LIMIT_RANK, &counts[i]))
            return NULL;
    if (!parser_expect(p, ")", "after the last attribute"))
        return NULL;
    return checked(p, loc,
                   layout_from_modes(&p->m->layouts, counts[0], lists[0], counts[1], lists[1],
                                     counts[2], lists[2], counts[3], lists[3], &why), &why);
}

static const Layout *parse_factor(Parser *p, unsigned rank)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (parser_at(p, primitives[i].name))
            return parse_primitive(p, primitives[i].make);
    if (parser_at(p, "replicate")) {
        Loc loc = p->token.loc;
        int64_t n;
        return parse_replicate(p, &n) ? make_replicate(p, loc, rank, n) : NULL;
    }
    if (parser_at(p, "register_layout"))
        return parse_register_layout(p);
    Symbol *s = p->token.kind == TOKEN_NAME ? parser_symbol(p, &p->token) : NULL;
    if (!s || s->binding != BINDING_LAYOUT) {
        parser_expected(p, "a layout");
        return NULL;
    }
    parser_advance(p);
    return s->layout;
}

/* f.g, both of one rank. */
static const Layout *multiply(Parser *p, Loc loc, const Layout *f, const Layout *g)
{
    const char *why = NULL;
    if (!f || !g)
        return NULL;
    if (f->rank != g->rank) {
        diag_error(p->diag, loc, "a product of layouts of rank %u and rank %u", f->rank, g->rank);
        return NULL;
    }
    return checked(p, loc, layout_product(&p->m->layouts, f, g, &why), &why);
}

/* replicate(n). ... at the start waits for the rank of the factor after it;
 * alone it has the rank of the tensor. */
static const Layout *parse_replicated(Parser *p, unsigned rank)
{
    Loc loc = p->token.loc;
    int64_t n;
    if (!parse_replicate(p, &n))
        return NULL;
    if (!parser_accept(p, "."))
        return make_replicate(p, loc, rank, n);
    const Layout *rest = parse_layout(p, rank);
    return rest ? multiply(p, loc, make_replicate(p, loc, rest->rank, n), rest) : NULL;
}

const Layout *parse_layout(Parser *p, unsigned rank)
{
    if (!parser_enter(p))
        return NULL;
    const Layout *product;
    if (parser_at(p, "replicate")) {
        product = parse_replicated(p, rank);
    } else {
        product = parse_factor(p, rank);
        while (product && parser_at(p, ".")) {
            Loc loc = p->token.loc;
            parser_advance(p);
            product = multiply(p, loc, product, parse_factor(p, product->rank));
        }
    }
    parser_leave(p);
    return product;
}

/* ---- types ---------------------------------------------------------- */

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
            return diag_error(p->diag, loc, "extent %u of a register or shared tensor must be "
                              "a constant", d);
        if (extents[d]->constant < 1)
            return diag_error(p->diag, loc, "extent %u is %lld, it must be at least 1", d,
                              (long long)extents[d]->constant);
        if (__builtin_mul_overflow(product, extents[d]->constant, &product))
            return diag_error(p->diag, loc, "the product of the extents is over 63 bits at "
                              "extent %u, %lld", d, (long long)extents[d]->constant);
    }
    return true;
}

static const Type *parse_reg_tail(Parser *p, Loc loc, DType dtype, const Expr *const *extents,
                                  unsigned rank)
{
    if (!check_constant_shape(p, loc, extents, rank) ||
        !parser_expect(p, "@", "before the layout of a register tensor"))
        return NULL;
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

/* `shared` and `global` may be left out where they are implied. */
static const Type *parse_memory_tail(Parser *p, Loc loc, TypeKind kind, DType dtype,
                                     const Expr *const *extents, unsigned rank)
{
    parser_accept(p, kind == TYPE_SHARED ? "shared" : "global");
    if (kind == TYPE_SHARED && !check_constant_shape(p, loc, extents, rank))
        return NULL;
    if (!parser_at(p, "strides"))
        return type_memory(p->m, kind, dtype, rank, extents, NULL);
    const Expr *strides[LIMIT_RANK];
    unsigned count;
    Loc strides_loc = p->token.loc;
    parser_advance(p);
    if (!parse_expr_list(p, "(", ")", strides, &count))
        return NULL;
    if (count != rank) {
        diag_error(p->diag, strides_loc, "%u strides for a tensor of rank %u", count, rank);
        return NULL;
    }
    return type_memory(p->m, kind, dtype, rank, extents, strides);
}

/* [extents] and what follows, after the element type. */
static const Type *parse_tensor_tail(Parser *p, Loc loc, TypeKind kind, DType dtype)
{
    const Expr *extents[LIMIT_RANK];
    unsigned rank;
    if (!parse_expr_list(p, "[", "]", extents, &rank))
        return NULL;
    if (rank == 0) {
        diag_error(p->diag, loc, "a tensor of rank 0");
        return NULL;
    }
    return kind == TYPE_REG ? parse_reg_tail(p, loc, dtype, extents, rank)
                            : parse_memory_tail(p, loc, kind, dtype, extents, rank);
}

const Type *parse_type(Parser *p, TypeKind kind)
{
    Loc loc = p->token.loc;
    if (kind == TYPE_SCALAR && parser_at(p, "ptr"))
        return parse_ptr(p);
    DType dtype = parse_dtype(p);
    if (!dtype)
        return NULL;
    return kind == TYPE_SCALAR ? type_scalar(p->m, dtype)
                               : parse_tensor_tail(p, loc, kind, dtype);
}

const Type *parse_element_type(Parser *p, const Type *operand)
{
    Loc loc = p->token.loc;
    DType dtype = parse_dtype(p);
    if (!dtype)
        return NULL;
    if (parser_at(p, "["))
        return parse_tensor_tail(p, loc, TYPE_REG, dtype);
    return operand && operand->kind == TYPE_REG ? type_reg(p->m, dtype, operand->layout)
                                                : type_scalar(p->m, dtype);
}
