/* Layouts of dots. c is cut into units, fragments of an mma or elements, which are shared
 * out among the workers, warps or threads; the parts of a and b of each worker follow:
 *
 *     c = over . unit of c
 *     a = over without n, times all of k . unit of a
 *     b = all of k times over without m . unit of b
 *
 * where `over` is replicate(r).spatial(wm, wn).local(..): each worker has a block.
 * With batch dimensions it is replicate(r).spatial(wb.., wm, wn).local(..); workers
 * of different indices there share no operand, so as many as can be are laid there. */
#include "ir/op_attrs.h"
#include "select/fit.h"
#include "select/trial.h"

#include "support/scalar.h"

enum { LEAST_TARGET = 80, WARP = 32 };

/* Shares of the workers in c: wb * wm * wn of them, each share `repeats` times. */
typedef struct Arrangement {
    int64_t wb, wm, wn, repeats;
    int64_t loads;          /* elements of a and b that a worker needs, for one k and
                               one index of the batch */
} Arrangement;

typedef struct Fitter {
    Module *m;
    const Op *op;
    unsigned sm;
    DotPreference preference;
    const Mma *mma;         /* NULL: by fma */
    const Layout *const *known;
    const Layout *units[MMA_OPERANDS];
    int64_t workers;
    unsigned rank;
    int64_t counts[LIMIT_RANK];     /* units of c in each dimension */
    int64_t depth;                  /* units along k */
} Fitter;

/* ---- layouts from an arrangement -------------------------------------------- */

static const Layout *product(Fitter *f, const Layout *a, const Layout *b)
{
    const char *why;
    return a && b ? layout_product(&f->m->layouts, a, b, &why) : NULL;
}

/* Slots over the last two dimensions. */
static const Layout *make_local(Fitter *f, int64_t rows, int64_t columns)
{
    int64_t shape[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d + 2 < f->rank; d++)
        shape[d] = 1;
    shape[f->rank - 2] = rows;
    shape[f->rank - 1] = columns;
    return layout_local(&f->m->layouts, f->rank, shape, &why);
}

/* Shares `workers` out over the batch dimensions, the first one first. False if
 * they do not divide evenly. */
static bool share_batch(const Fitter *f, int64_t workers, int64_t *shape)
{
    for (unsigned d = 0; d + 2 < f->rank; d++) {
        shape[d] = gcd_i64(f->counts[d], workers);
        workers /= shape[d];
    }
    return workers == 1;
}

/* `over` of an arrangement, of c's units. */
static const Layout *arrange(Fitter *f, const Arrangement *a)
{
    LayoutTable *t = &f->m->layouts;
    int64_t shares[LIMIT_RANK], left[LIMIT_RANK];
    const char *why;
    share_batch(f, a->wb, shares);
    shares[f->rank - 2] = a->wm;
    shares[f->rank - 1] = a->wn;
    for (unsigned d = 0; d < f->rank; d++)
        left[d] = f->counts[d] / shares[d];
    const Layout *repeats = layout_replicate(t, f->rank, a->repeats, &why);
    const Layout *workers = product(f, repeats, layout_spatial(t, f->rank, shares, &why));
    return product(f, workers, layout_local(t, f->rank, left, &why));
}

/* The layout of side a or b that belongs to c's `over`. */
static const Layout *derive(Fitter *f, unsigned side, const Layout *over)
{
    unsigned without = side == MMA_A ? f->rank - 1 : f->rank - 2;
    const char *why;
    const Layout *part = layout_reduce(&f->m->layouts, over, UINT32_C(1) << without, &why);
    const Layout *l = side == MMA_A ? product(f, part, make_local(f, 1, f->depth))
                                    : product(f, make_local(f, f->depth, 1), part);
    return product(f, l, f->units[side]);
}

/* Returns true when one value has one layout in `layouts`. */
static bool agree(const Op *op, const Layout *const layouts[MMA_OPERANDS])
{
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        for (unsigned j = 0; j < i; j++)
            if (op->operands[i] == op->operands[j] && layouts[i] != layouts[j])
                return false;
    return true;
}

/* Tries the dot with these layouts: true when it goes by mma, or fma, as requested. */
static bool goes(Fitter *f, const Layout *const layouts[MMA_OPERANDS], Via *via)
{
    OpTrial t;
    *via = VIA_COUNT;
    if (!agree(f->op, layouts))
        return false;
    op_trial_open(&t, f->op);
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        t.values[i].type = type_with_layout(f->m, t.values[i].type, layouts[i]);
    DotPlan plan = dot_plan(f->m, &t.op, f->sm);
    *via = plan.via;
    return f->mma ? plan.mma != NULL : plan.via == VIA_fma;
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

/* Returns true when `a` is to be tried before `b`. */
static bool is_better(const Fitter *f, const Arrangement *a, const Arrangement *b)
{
    if (a->repeats != b->repeats)
        return a->repeats < b->repeats;
    if (a->wb != b->wb)
        return a->wb > b->wb;
    if (f->preference == DOT_ROWS && a->wm != b->wm)
        return a->wm > b->wm;
    return a->loads < b->loads || (a->loads == b->loads && a->wm > b->wm);
}

/* Arrangement (wb, wm, wn), if it exists; wb is a share of the batch. */
static bool arrangement_of(const Fitter *f, int64_t wb, int64_t wm, int64_t wn, Arrangement *a)
{
    unsigned row = f->rank - 2, column = f->rank - 1;
    int64_t workers = wb * wm * wn;
    if (f->workers % workers || f->counts[row] % wm || f->counts[column] % wn)
        return false;
    int64_t rows = f->units[MMA_C]->shape[row], columns = f->units[MMA_C]->shape[column];
    *a = (Arrangement){wb, wm, wn, f->workers / workers,
                       f->counts[row] / wm * rows + f->counts[column] / wn * columns};
    return true;
}

/* Puts the best one of `wb` workers over the batch after `last` into `*next` if it
 * is better than what is there. */
static void next_of_share(const Fitter *f, int64_t wb, const Arrangement *last,
                          Arrangement *next)
{
    int64_t most = f->workers / wb;
    for (int64_t wm = 1; wm <= most; wm++)
        for (int64_t wn = 1; wm * wn <= most; wn++) {
            Arrangement a;
            if (!arrangement_of(f, wb, wm, wn, &a) || (last && !is_better(f, last, &a)) ||
                (next->repeats && !is_better(f, &a, next)))
                continue;
            *next = a;
        }
}

/* The best one after `last` (NULL: of all). */
static bool next_arrangement(const Fitter *f, const Arrangement *last, Arrangement *next)
{
    int64_t shares[LIMIT_RANK];
    *next = (Arrangement){0};
    for (int64_t wb = 1; wb <= f->workers; wb++)
        if (share_batch(f, wb, shares))
            next_of_share(f, wb, last, next);
    return next->repeats > 0;
}

/* Returns true when c, though not laid out over fragments, is made of their pieces. */
static bool is_of_pieces(const Fitter *f, const Layout *c)
{
    LayoutTable *t = &f->m->layouts;
    const char *why;
    return f->mma &&
           layout_divide(t, c, mma_with_batch(t, mma_piece(t, f->mma, MMA_C), f->rank), &why);
}

/* Divides the layout of c, where it is known, by that of a unit; tries arrangements where
 * it is open, or where pieces of its fragments lie apart. On CUDA cores more repeats than
 * necessary are worse than fma.shared. */
static bool fit(Fitter *f, DotFit *fit)
{
    const Layout *c = f->known[MMA_C];
    const char *why;
    const Layout *over = c ? layout_divide(&f->m->layouts, c, f->units[MMA_C], &why) : NULL;
    if (c && (over || !is_of_pieces(f, c)))
        return complete(f, over, fit);
    Arrangement a = {0}, last;
    bool more = next_arrangement(f, NULL, &a);
    int64_t least = a.repeats;
    for (; more && (f->mma || a.repeats == least);
         last = a, more = next_arrangement(f, &last, &a))
        if (complete(f, arrange(f, &a), fit))
            return true;
    return false;
}

/* ---- mma and fma ---------------------------------------------------------------- */

/* Counts the units; false if the tiles are no multiples of them. */
static bool count_units(Fitter *f)
{
    const Type *a = f->op->operands[MMA_A]->type, *c = f->op->operands[MMA_C]->type;
    const Layout *of_a = f->units[MMA_A], *of_c = f->units[MMA_C];
    unsigned last = f->rank - 1;
    for (unsigned d = 0; d < f->rank; d++) {
        if (type_extent(c, d) % of_c->shape[d])
            return false;
        f->counts[d] = type_extent(c, d) / of_c->shape[d];
    }
    f->depth = type_extent(a, last) / of_a->shape[last];
    return type_extent(a, last) % of_a->shape[last] == 0;
}

bool fit_dot_mma(Module *m, const Op *op, unsigned sm, DotPreference preference,
                 const Layout *const known[MMA_OPERANDS], DotFit *dot_fit)
{
    Fitter f = {.m = m, .op = op, .sm = sm, .preference = preference, .known = known,
                .rank = op->operands[MMA_C]->type->rank,
                .workers = region_threads(op->parent).count / WARP};
    DType types[MMA_OPERANDS];
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = op->operands[i]->type->dtype;
    f.mma = mma_find(types, sm ? sm : LEAST_TARGET,
                     type_extent(op->operands[MMA_A]->type, f.rank - 1));
    if (!f.mma)
        return false;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        f.units[i] = mma_with_batch(&m->layouts, mma_fragment(&m->layouts, f.mma, i), f.rank);
    return count_units(&f) && fit(&f, dot_fit);
}

bool fit_dot_fma(Module *m, const Op *op, unsigned sm, const Layout *const known[MMA_OPERANDS],
                 DotFit *dot_fit)
{
    Fitter f = {.m = m, .op = op, .sm = sm, .known = known,
                .rank = op->operands[MMA_C]->type->rank,
                .workers = region_threads(op->parent).count};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        f.units[i] = make_local(&f, 1, 1);
    return count_units(&f) && fit(&f, dot_fit);
}
