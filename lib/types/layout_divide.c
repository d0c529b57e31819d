/* Division of layouts, from both sides, on digits (see layout.c).
 *
 * A product's lists are the left factor's digits, scaled, and then the right
 * one's, and joined where the two meet:
 *
 *     local(2, 3) = local(2, 1).local(1, 3)     2@0 3@1           nothing joins
 *     spatial(8)  = spatial(2).spatial(4)       8@0 = 2@0 4@0     one digit
 *
 * So dividing takes the known factor's digits off one end of each list, where
 * at most one digit has to be cut. */
#include "types/layout_digits.h"

#include <assert.h>

static bool refuse_division(LayoutTable *t, const Layout *h, const char *relation,
                            const Layout *factor, const char *unit, const char **why)
{
    Text dividend, divisor;
    text_init(&dividend, t->arena);
    text_init(&divisor, t->arena);
    layout_print(&dividend, h);
    layout_print(&divisor, factor);
    return refuse(t, why, "%s does not %s %s: its %s lie differently",
                  text_string(&dividend), relation, text_string(&divisor), unit);
}

static bool check_extents_divide(LayoutTable *t, const char *unit, int64_t h, int64_t g,
                                 const char **why)
{
    if (h % g == 0)
        return true;
    return refuse(t, why, "%" PRId64 " %s are not a multiple of the divisor's %" PRId64, h,
                  unit, g);
}

static bool check_division(LayoutTable *t, const Layout *h, const Layout *factor,
                           const char **why)
{
    return check_ranks(t, h, factor, why) &&
           check_extents_divide(t, "threads", h->threads, factor->threads, why) &&
           check_extents_divide(t, "slots", h->slots, factor->slots, why);
}

/* ---- from the right --------------------------------------------------------- */

/* Takes the digits of `tail` off the end of `list`. Its canonical digits are
 * the list's own last ones, except the first, which may be the inner part of
 * a digit that stays: the product had joined it to the one before it. */
static bool list_remove_tail(DigitList *list, const DigitList *tail)
{
    if (tail->count > list->count)
        return false;
    list->count -= tail->count;
    for (unsigned i = 0; i < tail->count; i++) {
        Digit *d = &list->digit[list->count + i];
        const Digit *wanted = &tail->digit[i];
        bool same = d->extent == wanted->extent;
        bool split = i == 0 && d->extent % wanted->extent == 0;
        if (d->dim != wanted->dim || d->stride != wanted->stride || !(same || split))
            return false;
    }
    if (!tail->count || list->digit[list->count].extent == tail->digit[0].extent)
        return true;
    Digit *rest = &list->digit[list->count++];
    rest->extent /= tail->digit[0].extent;
    rest->stride *= tail->digit[0].extent;
    return true;
}

static void list_unscale(DigitList *list, const int64_t *scale)
{
    for (unsigned i = 0; i < list->count; i++) {
        Digit *d = &list->digit[i];
        if (d->dim == REPLICA)
            continue;
        assert(d->stride % scale[d->dim] == 0);
        d->stride /= scale[d->dim];
    }
}

/* With both tails equal to g's digits, which cover a tile of g's shape, the rest of each
 * dimension's tower begins at g's extent: every stride is a multiple of that. */
const Layout *layout_divide(LayoutTable *t, const Layout *h, const Layout *g,
                            const char **why)
{
    if (!check_division(t, h, g, why))
        return NULL;
    Strided s = layout_expand(h), tail = layout_expand(g);
    if (!list_remove_tail(&s.spatial, &tail.spatial)) {
        refuse_division(t, h, "end in", g, "threads", why);
        return NULL;
    }
    if (!list_remove_tail(&s.local, &tail.local)) {
        refuse_division(t, h, "end in", g, "slots", why);
        return NULL;
    }
    for (unsigned d = 0; d < s.rank; d++)
        s.shape[d] /= g->shape[d];
    list_unscale(&s.spatial, g->shape);
    list_unscale(&s.local, g->shape);
    return layout_intern(t, &s);
}

/* ---- from the left ---------------------------------------------------------- */

/* Takes the digits of `head`, each stride times its dimension's scale, off the
 * front of `list`. The last of them may be the outer part of a digit, whose
 * inner part stays. */
static bool list_remove_head(DigitList *list, const DigitList *head, const int64_t *scale)
{
    DigitList rest = {0};
    if (head->count > list->count)
        return false;
    for (unsigned i = 0; i < list->count; i++) {
        Digit d = list->digit[i];
        if (i < head->count) {
            const Digit *wanted = &head->digit[i];
            int64_t stride = d.dim == REPLICA ? 0 : wanted->stride * scale[d.dim];
            bool split = i + 1 == head->count && d.extent % wanted->extent == 0;
            if (d.dim != wanted->dim || d.stride * d.extent != stride * wanted->extent ||
                !(d.extent == wanted->extent || split))
                return false;
            d.extent /= wanted->extent;
        }
        digit_push(&rest, d);
    }
    *list = rest;
    return true;
}

/* With both heads equal to f's digits, the rest of each dimension's tower covers a tile of
 * g's shape exactly. */
const Layout *layout_divide_left(LayoutTable *t, const Layout *h, const Layout *f,
                                 const char **why)
{
    if (!check_division(t, h, f, why))
        return NULL;
    Strided s = layout_expand(h), head = layout_expand(f);
    for (unsigned d = 0; d < s.rank; d++) {
        if (!check_extents_divide(t, "elements of a dimension", h->shape[d], f->shape[d], why))
            return NULL;
        s.shape[d] /= f->shape[d];
    }
    if (!list_remove_head(&s.spatial, &head.spatial, s.shape)) {
        refuse_division(t, h, "begin with", f, "threads", why);
        return NULL;
    }
    if (!list_remove_head(&s.local, &head.local, s.shape)) {
        refuse_division(t, h, "begin with", f, "slots", why);
        return NULL;
    }
    return layout_intern(t, &s);
}
