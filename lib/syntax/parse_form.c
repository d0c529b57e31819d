/* Parsing of the forms of register tensors, between element type and extents:
 *
 *     form    = [ "packed" "(" TYPE ")" ] [ "scaled" "(" scaling ")" ]
 *     scaling = INT | DIM ":" INT { "," INT } | DIM ":" against
 *     against = "against" "(" TYPE "@" LAYOUT "," DIM "," TOTAL ")"           */
#include "ir/form.h"
#include "syntax/parser.h"
#include "types/storage.h"

#include <string.h>

static bool parse_exponent(Parser *p, Form *f)
{
    Loc loc = p->token.loc;
    int64_t e;
    if (f->count == SCALING_COUNT_LIMIT)
        return diag_error(p->diag, loc, "more than %d deferred scales",
                          SCALING_COUNT_LIMIT);
    if (!parse_constant(p, "the exponent of a deferred scale", &e))
        return false;
    if (e < -SCALING_EXPONENT_LIMIT || e > SCALING_EXPONENT_LIMIT)
        return diag_error(p->diag, loc, "the exponent of a deferred scale is %d to %d, got %lld",
                          -SCALING_EXPONENT_LIMIT, SCALING_EXPONENT_LIMIT, (long long)e);
    f->exponents[f->count++] = (int16_t)e;
    return true;
}

/* `against(W @ LAYOUT, DIM, TOTAL)`: TOTAL less the exponents of decoded elements of W. */
static bool parse_against(Parser *p, DType dtype, Form *f)
{
    Loc loc = p->token.loc;
    const char *why = NULL;
    int64_t dim, total;
    parser_advance(p);
    if (!parser_expect(p, "(", "after `against`"))
        return false;
    DType from = parse_dtype(p);
    if (!from || !parser_expect(p, "@", "before the layout of decoded elements"))
        return false;
    const Layout *l = parse_layout(p, 2);
    if (!l || !parser_expect(p, ",", "before the dimension") ||
        !parse_constant(p, "a dimension", &dim) || !parser_expect(p, ",", "before the sum") ||
        !parse_constant(p, "the sum of exponents", &total) ||
        !parser_expect(p, ")", "after the sum"))
        return false;
    if (dim < 0 || dim >= l->rank)
        return diag_error(p->diag, loc, "dimension %lld of a layout of rank %u", (long long)dim,
                          l->rank);
    if (total < -SCALING_EXPONENT_LIMIT || total > SCALING_EXPONENT_LIMIT)
        return diag_error(p->diag, loc, "a sum of exponents is %d to %d, got %lld",
                          -SCALING_EXPONENT_LIMIT, SCALING_EXPONENT_LIMIT, (long long)total);
    const Type *t = type_reg(p->m, from, l);
    t = form_allows_packed(p->m, t, dtype, &why) ? type_packed(p->m, t, dtype) : NULL;
    t = t ? form_decoded(p->m, t, &why) : NULL;
    if (!t)
        return diag_error(p->diag, loc, "%s", why);
    if (t->scaling && t->scaling->count > 1 && t->scaling->dim != dim)
        return diag_error(p->diag, loc, "the deferred scales of %s are along dimension %u, "
                          "not %lld", dtype_name(from), t->scaling->dim, (long long)dim);
    f->count = t->scaling ? t->scaling->count : 1;
    for (unsigned i = 0; i < f->count; i++)
        f->exponents[i] = (int16_t)(total - (t->scaling ? t->scaling->exponents[i] : 0));
    return true;
}

static bool parse_scaling(Parser *p, DType dtype, Form *f)
{
    f->loc = p->token.loc;
    if (!parser_expect(p, "(", "after `scaled`") || !parse_exponent(p, f))
        return false;
    if (parser_accept(p, ":")) {
        f->along = true;
        f->dim = f->exponents[0];
        f->count = 0;
        if (parser_at(p, "against")) {
            if (!parse_against(p, dtype, f))
                return false;
        } else {
            do
                if (!parse_exponent(p, f))
                    return false;
            while (parser_accept(p, ","));
        }
    }
    return parser_expect(p, ")", "after the exponents of deferred scales");
}

bool parse_form(Parser *p, DType dtype, Form *f)
{
    *f = (Form){.loc = p->token.loc};
    if (parser_accept(p, "packed")) {
        if (!parser_expect(p, "(", "after `packed`"))
            return false;
        f->packed = parse_dtype(p);
        if (!f->packed || !parser_expect(p, ")", "after the type that casts aim at"))
            return false;
    }
    return !parser_accept(p, "scaled") || parse_scaling(p, dtype, f);
}

const Type *apply_form(Parser *p, const Type *t, const Form *f)
{
    if (f->packed)
        t = type_packed(p->m, t, f->packed);
    if (!f->count)
        return t;
    int64_t extent = f->dim >= 0 && f->dim < (int64_t)t->rank ? type_extent(t, (unsigned)f->dim)
                                                                : 0;
    if (f->along && !extent) {
        diag_error(p->diag, f->loc, "deferred scales along dimension %lld of a tensor of "
                   "rank %u", (long long)f->dim, t->rank);
        return NULL;
    }
    if (f->count > 1 && extent % f->count) {
        diag_error(p->diag, f->loc, "%u deferred scales along a dimension of extent %lld, "
                   "which they do not divide", f->count, (long long)extent);
        return NULL;
    }
    return type_scaled(p->m, t, (unsigned)f->dim, f->count, f->exponents);
}
