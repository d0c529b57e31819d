/* Parsing of layouts. Every expression is folded at once:
 *
 *     layout  = product { "/" product }
 *     product = factor { "." factor }
 *     factor  = primitive | function | name | "(" layout ")"               */
#include "syntax/parser.h"

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

typedef const Layout *(*ListMaker)(LayoutTable *, const Layout *, unsigned, const int64_t *,
                                   const char **);

/* Functions of a layout and a list. */
static const struct LayoutFunction {
    const char *name, *attribute, *what;    /* attribute: what stands before the list */
    ListMaker apply;
} functions[] = {
    {"reduce", "dims", "a dimension", layout_drop},
    {"permute", NULL, "a dimension", layout_permute},
    {"reshape", NULL, "an extent of the shape", layout_reshape},
    {"slice", NULL, "an extent of the slice", layout_slice},
};

typedef const Layout *(*PairMaker)(LayoutTable *, const Layout *, const Layout *, const char **);

/* Functions of two layouts. */
static const struct PairFunction {
    const char *name;
    bool equal_ranks;       /* replicate(n) alone as the second takes the first's */
    PairMaker apply;
} pair_functions[] = {
    {"concat", false, layout_concat},
    {"left_divide", true, layout_divide_left},
};

bool parse_is_layout_word(const Token *t)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (token_is(t, primitives[i].name))
            return true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (token_is(t, functions[i].name))
            return true;
    for (size_t i = 0; i < sizeof pair_functions / sizeof *pair_functions; i++)
        if (token_is(t, pair_functions[i].name))
            return true;
    return token_is(t, "replicate") || token_is(t, "register_layout");
}

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

/* A function's name, its layout and the comma after that. */
static const Layout *parse_first_argument(Parser *p)
{
    parser_advance(p);
    if (!parser_expect(p, "(", "after the function's name"))
        return NULL;
    const Layout *l = parse_layout(p, 1);
    return l && parser_expect(p, ",", "after the layout") ? l : NULL;
}

/* "name =" before a list, or nothing where `name` is NULL. */
static bool parse_attribute_name(Parser *p, const char *name)
{
    return !name || (parser_expect(p, name, "in a function") &&
                     parser_expect(p, "=", "after the attribute's name"));
}

/* function(L, [..]), reduce(L, dims = [..]). */
static const Layout *parse_layout_function(Parser *p, const struct LayoutFunction *function)
{
    Loc loc = p->token.loc;
    int64_t list[LIMIT_RANK];
    unsigned count;
    const char *why = NULL;
    const Layout *l = parse_first_argument(p);
    if (!l || !parse_attribute_name(p, function->attribute) ||
        !parse_constant_list(p, "[", "]", function->what, list, LIMIT_RANK, &count) ||
        !parser_expect(p, ")", "after the list"))
        return NULL;
    return checked(p, loc, function->apply(&p->m->layouts, l, count, list, &why), &why);
}

/* concat(F, G), left_divide(H, F). */
static const Layout *parse_pair_function(Parser *p, const struct PairFunction *function)
{
    Loc loc = p->token.loc;
    const char *why = NULL;
    const Layout *f = parse_first_argument(p);
    const Layout *g = f ? parse_layout(p, function->equal_ranks ? f->rank : 1) : NULL;
    if (!g || !parser_expect(p, ")", "after the second layout"))
        return NULL;
    return checked(p, loc, function->apply(&p->m->layouts, f, g, &why), &why);
}

static const Layout *parse_parenthesised(Parser *p, unsigned rank)
{
    parser_advance(p);
    const Layout *l = parse_layout(p, rank);
    return l && parser_expect(p, ")", "after the layout") ? l : NULL;
}

static const Layout *parse_named(Parser *p)
{
    Symbol *s = p->token.kind == TOKEN_NAME ? parser_symbol(p, &p->token) : NULL;
    if (!s || symbol_binding(p, s) != BINDING_LAYOUT) {
        parser_expected(p, "a layout");
        return NULL;
    }
    parser_advance(p);
    return s->layout;
}

static const Layout *parse_factor(Parser *p, unsigned rank)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (parser_at(p, primitives[i].name))
            return parse_primitive(p, primitives[i].make);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (parser_at(p, functions[i].name))
            return parse_layout_function(p, &functions[i]);
    if (parser_at(p, "replicate")) {
        Loc loc = p->token.loc;
        int64_t n;
        return parse_replicate(p, &n) ? make_replicate(p, loc, rank, n) : NULL;
    }
    if (parser_at(p, "register_layout"))
        return parse_register_layout(p);
    for (size_t i = 0; i < sizeof pair_functions / sizeof *pair_functions; i++)
        if (parser_at(p, pair_functions[i].name))
            return parse_pair_function(p, &pair_functions[i]);
    return parser_at(p, "(") ? parse_parenthesised(p, rank) : parse_named(p);
}

static const Layout *parse_product(Parser *p, unsigned rank);

/* f.g, both of one rank. */
static const Layout *multiply(Parser *p, Loc loc, const Layout *f, const Layout *g)
{
    const char *why = NULL;
    if (!f || !g)
        return NULL;
    if (f->rank != g->rank) {
        diag_error(p->diag, loc, "a product of layouts of rank %u and rank %u", f->rank,
                   g->rank);
        return NULL;
    }
    return checked(p, loc, layout_product(&p->m->layouts, f, g, &why), &why);
}

/* replicate(n). ... at the start waits for the rank of the factor after it;
 * alone it has the rank of the tensor, and 1 as a function's argument. */
static const Layout *parse_replicated(Parser *p, unsigned rank)
{
    Loc loc = p->token.loc;
    int64_t n;
    if (!parse_replicate(p, &n))
        return NULL;
    if (!parser_accept(p, "."))
        return make_replicate(p, loc, rank, n);
    const Layout *rest = parse_product(p, rank);
    return rest ? multiply(p, loc, make_replicate(p, loc, rest->rank, n), rest) : NULL;
}

static const Layout *parse_product(Parser *p, unsigned rank)
{
    if (!parser_enter(p, &p->nesting))
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
    p->nesting--;
    return product;
}

const Layout *parse_layout(Parser *p, unsigned rank)
{
    const Layout *l = parse_product(p, rank);
    while (l && parser_at(p, "/")) {
        Loc loc = p->token.loc;
        const char *why = NULL;
        parser_advance(p);
        const Layout *g = parse_product(p, l->rank);
        l = g ? checked(p, loc, layout_divide(&p->m->layouts, l, g, &why), &why) : NULL;
    }
    return l;
}
