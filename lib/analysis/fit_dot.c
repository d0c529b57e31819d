/* Layouts of dots. c is cut into units, fragments of an mma or elements, and these
 * among the workers, warps or threads; what each worker needs of a and b follows:
 *
 *     c = over . unit of c
 *     a = over without n, times all of k . unit of a
 *     b = all of k times over without m . unit of b
 *
 * where `over` is replicate(r).spatial(wm, wn).local(..): each worker has a block. */
#include "analysis/fit.h"

enum { LEAST_TARGET = 80, WARP = 32 };

/* How the workers share c: wm * wn of them, each share `repeats` times. */
typedef struct Arrangement {
    int64_t wm, wn, repeats;
    int64_t loads;          /* elements of a and b that a worker needs, for one k */
} Arrangement;

typedef struct Fitter {
    Module *m;
    Op *op;
    unsigned sm;
    DotTaste taste;
    const Mma *mma;         /* NULL: by fma */
    const Layout *const *known;
    const Layout *units[MMA_OPERANDS];
    int64_t workers;
    int64_t counts[3];      /* units along m, n and k */
} Fitter;

/* ---- layouts from an arrangement -------------------------------------------- */

static const Layout *product(Fitter *f, const Layout *a, const Layout *b)
{
    const char *why;
    return a && b ? layout_product(&f->m->layouts, a, b, &why) : NULL;
}

static const Layout *make_2d(Fitter *f, bool spatial, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    const char *why;
    return spatial ? layout_spatial(&f->m->layouts, 2, shape, &why)
                   : layout_local(&f->m->layouts, 2, shape, &why);
}

/* `over` of an arrangement, of c's units. */
static const Layout *arrange(Fitter *f, const Arrangement *a)
{
    const char *why;
    const Layout *repeats = layout_replicate(&f->m->layouts, 2, a->repeats, &why);
    const Layout *workers = product(f, repeats, make_2d(f, true, a->wm, a->wn));
    return product(f, workers, make_2d(f, false, f->counts[0] / a->wm, f->counts[1] / a->wn));
}

/* The layout of side a or b that belongs to c's `over`. */
static const Layout *derive(Fitter *f, unsigned side, const Layout *over)
{
    const char *why;
    const Layout *part = layout_reduce(&f->m->layouts, over, side == MMA_A ? 2 : 1, &why);
    const Layout *l = side == MMA_A ? product(f, part, make_2d(f, false, 1, f->counts[2]))
                                    : product(f, make_2d(f, false, f->counts[2], 1), part);
    return product(f, l, f->units[side]);
}

/* Whether the dot goes the wanted way with these layouts. */
static bool goes(Fitter *f, const Layout *const layouts[MMA_OPERANDS], Via *via)
{
    const Type *types[MMA_OPERANDS];
    DotObstacle no_mma, no_fma;
    Op *op = f->op;
    bool same = true;       /* one value has one layout */
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = op->operands[i]->type;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        for (unsigned j = 0; j < i; j++)
            same &= op->operands[i] != op->operands[j] || layouts[i] == layouts[j];
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        op->operands[i]->type = type_with_layout(f->m, types[i], layouts[i]);
    *via = same ? dot_plan(f->m, op, f->sm, &no_mma, &no_fma).via : VIA_COUNT;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        op->operands[i]->type = types[i];
    return same && (f->mma ? via_info[*via].op == OP_dot && *via != VIA_fma &&
                                 *via != VIA_fma_shared
                           : *via == VIA_fma);
}

/* Completes what is known by the layouts that belong to `over`. */
static bool complete(Fitter *f, const Layout *over, DotFit *fit)
{
    if (!over)
        return false;
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        fit->layouts[i] = f->known[i]   ? f->known[i]
                          : i == MMA_C  ? product(f, over, f->units[MMA_C])
                                        : derive(f, i, over);
        if (!fit->layouts[i])
            return false;
    }
    ArenaMark mark = arena_mark(&f->m->scratch);
    bool ok = goes(f, fit->layouts, &fit->via);
    arena_reset(&f->m->scratch, mark);
    return ok;
}

/* ---- the best arrangement ------------------------------------------------------ */

/* Whether `a` is to be tried before `b`. */
static bool is_better(const Fitter *f, const Arrangement *a, const Arrangement *b)
{
    if (a->repeats != b->repeats)
        return a->repeats < b->repeats;
    if (f->taste == DOT_ROWS && a->wm != b->wm)
        return a->wm > b->wm;
    return a->loads < b->loads || (a->loads == b->loads && a->wm > b->wm);
}

/* Arrangement (wm, wn), if it exists. */
static bool arrangement_of(const Fitter *f, int64_t wm, int64_t wn, Arrangement *a)
{
    if (f->workers % (wm * wn) || f->counts[0] % wm || f->counts[1] % wn)
        return false;
    int64_t rows = f->units[MMA_C]->shape[0], columns = f->units[MMA_C]->shape[1];
    *a = (Arrangement){wm, wn, f->workers / (wm * wn),
                       f->counts[0] / wm * rows + f->counts[1] / wn * columns};
    return true;
}

/* The best one after `last` (NULL: of all). */
static bool next_arrangement(const Fitter *f, const Arrangement *last, Arrangement *next)
{
    bool found = false;
    for (int64_t wm = 1; wm <= f->workers; wm++)
        for (int64_t wn = 1; wm * wn <= f->workers; wn++) {
            Arrangement a;
            if (!arrangement_of(f, wm, wn, &a) || (last && !is_better(f, last, &a)) ||
                (found && !is_better(f, &a, next)))
                continue;
            *next = a;
            found = true;
        }
    return found;
}

/* On CUDA cores more repeats than necessary are worse than a way through shared
 * memory. */
static bool fit(Fitter *f, DotFit *fit)
{
    const Layout *c = f->known[MMA_C];
    const char *why;
    if (c)
        return complete(f, layout_divide(&f->m->layouts, c, f->units[MMA_C], &why), fit);
    Arrangement a = {0}, last;
    bool more = next_arrangement(f, NULL, &a);
    int64_t least = a.repeats;
    for (; more && (f->mma || a.repeats == least);
         last = a, more = next_arrangement(f, &last, &a))
        if (complete(f, arrange(f, &a), fit))
            return true;
    return false;
}

/* ---- the two ways --------------------------------------------------------------- */

/* Counts the units; false if the tiles are no multiples of them. */
static bool count_units(Fitter *f)
{
    const Type *a = f->op->operands[MMA_A]->type, *b = f->op->operands[MMA_B]->type;
    const int64_t extents[3] = {type_extent(a, 0), type_extent(b, 1), type_extent(a, 1)};
    const int64_t sizes[3] = {f->units[MMA_A]->shape[0], f->units[MMA_B]->shape[1],
                              f->units[MMA_A]->shape[1]};
    for (unsigned i = 0; i < 3; i++) {
        if (extents[i] % sizes[i])
            return false;
        f->counts[i] = extents[i] / sizes[i];
    }
    return true;
}

bool fit_dot_mma(Module *m, Op *op, unsigned sm, DotTaste taste,
                 const Layout *const known[MMA_OPERANDS], DotFit *dot_fit)
{
    Fitter f = {.m = m, .op = op, .sm = sm, .taste = taste, .known = known,
                .workers = region_threads(op->parent).count / WARP};
    DType types[MMA_OPERANDS];
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = op->operands[i]->type->dtype;
    f.mma = mma_find(types, sm ? sm : LEAST_TARGET);
    if (!f.mma)
        return false;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        f.units[i] = mma_fragment(&m->layouts, f.mma, i);
    return count_units(&f) && fit(&f, dot_fit);
}

bool fit_dot_fma(Module *m, Op *op, unsigned sm, const Layout *const known[MMA_OPERANDS],
                 DotFit *dot_fit)
{
    Fitter f = {.m = m, .op = op, .sm = sm, .known = known,
                .workers = region_threads(op->parent).count};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        f.units[i] = make_2d(&f, false, 1, 1);
    return count_units(&f) && fit(&f, dot_fit);
}
