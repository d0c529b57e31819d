/* Plans of dots. With 16-bit elements, a side's layout over fragments is
 *
 *     a[m, k] = qa . column_local(2,2).spatial(8,4).local(1,2)    4 words a fragment
 *     b[k, n] = qb . local(2,1).column_spatial(4,8).local(2,1)    2 words
 *     c[m, n] = qc . local(2,1).spatial(8,4).local(1,2)           4 words f32, 2 f16
 *
 * with ones before in batch dimensions. */
#include "analysis/dot.h"

#include "ir/text.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_TARGET = 80 };

static const char operand_name[] = "abc";

/* A plan being made. */
typedef struct Planner {
    Module *m;
    const Op *op;
    unsigned sm;
    DotPlan plan;
    int64_t *slot_of[2];        /* of each unit of a and b, row-major, in one thread; -1 */
    DotObstacle obstacle;
} Planner;

#define SCRATCH(p, ...) arena_printf(&(p)->m->scratch, __VA_ARGS__)

static const char *layout_text(Module *m, const Layout *l)
{
    Text text;
    text_init(&text, &m->scratch);
    layout_print(&text, l);
    return text_string(&text);
}

/* "1, 0, 2" */
static const char *numbers_text(Module *m, unsigned count, const int64_t *numbers)
{
    Text text;
    text_init(&text, &m->scratch);
    for (unsigned i = 0; i < count; i++)
        text_printf(&text, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    return text_string(&text);
}

static bool obstruct(Planner *p, int operand, const char *why, const char *fits)
{
    p->obstacle = (DotObstacle){operand, why, fits};
    return false;
}

/* ---- types --------------------------------------------------------------- */

DotNumbers dot_numbers(const Op *op)
{
    DotNumbers n = {.bytes = 4};
    bool exact_in_f32 = true;
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        DType t = op->operands[i]->type->dtype;
        n.is_float |= dtype_is_float(t);
        exact_in_f32 &= dtype_is_float(t) ? t != DTYPE_f64 : dtype_bits(t) <= 16;
    }
    if (n.is_float ? !exact_in_f32 : dtype_bits(op->operands[MMA_C]->type->dtype) == 64)
        n.bytes = 8;
    return n;
}

/* Which types (a, b, c) have an instruction on the target. */
static const char *fitting_types(const Planner *p)
{
    Text text;
    text_init(&text, &p->m->scratch);
    text_printf(&text, "types (a, b, c) that fit on sm_%u are", p->sm);
    unsigned count = 0;
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        if (mma->from <= p->sm && p->sm <= mma->to)
            text_printf(&text, "%s (%s, %s, %s)", count++ ? "," : "",
                        dtype_name(mma->types[MMA_A]), dtype_name(mma->types[MMA_B]),
                        dtype_name(mma->types[MMA_C]));
    return text_string(&text);
}

/* ---- fragments ----------------------------------------------------------- */

static const Layout *fragment_of(const Planner *p, unsigned i)
{
    return mma_fragment_of_rank(&p->m->layouts, p->plan.mma, i, p->plan.rank);
}

/* What an operand made of fragments `atom` looks like, in words. */
static const char *fitting_layout(Planner *p, const Layout *l, const Layout *atom)
{
    const char *text = layout_text(p->m, atom);
    int64_t units[LIMIT_RANK];
    bool whole = true;
    for (unsigned d = 0; d < l->rank; d++) {
        units[d] = l->shape[d] / atom->shape[d];
        whole &= l->shape[d] % atom->shape[d] == 0;
    }
    if (whole)
        return SCRATCH(p, "a layout that fits is L.%s, L a layout of [%s] over the warps", text,
                       numbers_text(p->m, l->rank, units));
    return SCRATCH(p, "tiles that fit have extents that are multiples of [%s], and a layout L.%s, "
                   "L over the warps", numbers_text(p->m, l->rank, atom->shape), text);
}

static bool refuse_fragments(Planner *p, unsigned i, const Layout *atom, const char *why)
{
    const DotSide *s = &p->plan.sides[i];
    const Mma *mma = p->plan.mma;
    const Layout *l = s->type->layout;
    const char *text = layout_text(p->m, atom);
    return obstruct(p, (int)i,
                    SCRATCH(p, "operand %c of dot, %s @ %s, is not made of fragments %s of "
                            "mma.m%lldn%lldk%lld: %s", operand_name[i], dtype_name(s->type->dtype),
                            layout_text(p->m, l), text, (long long)mma->m, (long long)mma->n,
                            (long long)mma->k, why), fitting_layout(p, l, atom));
}

static bool cut_fragments(Planner *p)
{
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        DotSide *s = &p->plan.sides[i];
        const Layout *atom = fragment_of(p, i);
        const char *why;
        s->quotient = layout_divide(&p->m->layouts, s->type->layout, atom, &why);
        if (!s->quotient)
            return refuse_fragments(p, i, atom, why);
        s->words = atom->slots * dtype_bits(s->type->dtype) / 32;
    }
    return true;
}

/* ---- which units a thread holds, and where -------------------------------- */

static int64_t element_count(const Layout *l)
{
    int64_t count = 1;
    for (unsigned d = 0; d < l->rank; d++)
        count *= l->shape[d];
    return count;
}

static int64_t linear_index(const Layout *l, const int64_t *index)
{
    int64_t linear = 0;
    for (unsigned d = 0; d < l->rank; d++)
        linear = linear * l->shape[d] + index[d];
    return linear;
}

/* Fills p->slot_of[side] for `thread`. */
static void place_units(Planner *p, unsigned side, int64_t thread)
{
    const Layout *q = p->plan.sides[side].quotient;
    int64_t *slot_of = p->slot_of[side], count = element_count(q), index[LIMIT_RANK];
    for (int64_t i = 0; i < count; i++)
        slot_of[i] = -1;
    for (int64_t slot = 0; slot < q->slots; slot++) {
        layout_index(q, thread, slot, index);
        slot_of[linear_index(q, index)] = slot;
    }
}

/* Whether `thread` finds the unit `index` of side `side` in a slot: the one in
 * `*slot`, or any when that is -1, which is then set. */
static bool agree(Planner *p, unsigned side, int64_t thread, const int64_t *index, int64_t *slot)
{
    int64_t found = p->slot_of[side][linear_index(p->plan.sides[side].quotient, index)];
    const char *holder = p->plan.mma ? "warp" : "thread", *unit = p->plan.mma ? "fragment"
                                                                              : "element";
    if (found >= 0 && (*slot < 0 || *slot == found)) {
        *slot = found;
        return true;
    }
    const char *at = numbers_text(p->m, p->plan.rank, index), *why = found < 0
        ? SCRATCH(p, "%s %lld does not hold %s (%s), which its part of c needs", holder,
                  (long long)thread, unit, at)
        : SCRATCH(p, "%s %lld holds %s (%s) in slot %lld, %s 0 its counterpart in slot %lld",
                  holder, (long long)thread, unit, at, (long long)found, holder,
                  (long long)*slot);
    if (p->plan.mma)
        return refuse_fragments(p, side, fragment_of(p, side), why);
    return obstruct(p, (int)side, SCRATCH(p, "operand %c of dot: %s", operand_name[side], why),
                    p->plan.rank > 2
                        ? "a thread that holds element (.., i, j) of c needs row (.., i) of a "
                          "and column (.., j) of b"
                        : "a thread that holds element (i, j) of c needs row i of a and column j "
                          "of b");
}

/* The slots of a and b for the unit in `slot` of c, which are to be the same in
 * `thread` as in those before. */
static bool match_unit(Planner *p, int64_t thread, int64_t slot)
{
    int64_t a[LIMIT_RANK], b[LIMIT_RANK], first = slot * p->plan.depth;
    unsigned row = p->plan.rank - 2, column = row + 1;
    layout_index(p->plan.sides[MMA_C].quotient, thread, slot, a);
    memcpy(b, a, sizeof b);
    for (int64_t k = 0; k < p->plan.depth; k++) {
        a[column] = b[row] = k;
        if (!agree(p, MMA_A, thread, a, &p->plan.slots[MMA_A][first + k]) ||
            !agree(p, MMA_B, thread, b, &p->plan.slots[MMA_B][first + k]))
            return false;
    }
    return true;
}

static bool match_slots(Planner *p)
{
    const Layout *c = p->plan.sides[MMA_C].quotient;
    int64_t depth = p->plan.sides[MMA_A].quotient->shape[p->plan.rank - 1];
    int64_t pairs = c->slots * depth;
    p->plan.depth = depth;
    for (unsigned side = MMA_A; side <= MMA_B; side++) {
        const Layout *q = p->plan.sides[side].quotient;
        p->slot_of[side] = arena_array(&p->m->scratch, int64_t, (size_t)element_count(q));
        p->plan.slots[side] = arena_array(&p->m->scratch, int64_t, (size_t)pairs);
        for (int64_t i = 0; i < pairs; i++)
            p->plan.slots[side][i] = -1;
    }
    for (int64_t thread = 0; thread < c->threads; thread++) {
        place_units(p, MMA_A, thread);
        place_units(p, MMA_B, thread);
        for (int64_t slot = 0; slot < c->slots; slot++)
            if (!match_unit(p, thread, slot))
                return false;
    }
    return true;
}

/* ---- the three ways --------------------------------------------------------- */

static Planner planner_open(Module *m, const Op *op, unsigned sm)
{
    Planner p = {.m = m, .op = op, .sm = sm ? sm : LEAST_TARGET,
                 .plan.rank = op->operands[MMA_C]->type->rank};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        p.plan.sides[i] = (DotSide){.type = op->operands[i]->type,
                                    .quotient = op->operands[i]->type->layout};
    return p;
}

static bool plan_mma(Planner *p)
{
    DType types[MMA_OPERANDS];
    char spelling[32];
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = p->plan.sides[i].type->dtype;
    const Mma *mma = p->plan.mma = mma_find(types, p->sm);
    if (!mma)
        return obstruct(p, -1, SCRATCH(p, "dot of %s, %s, %s has no instruction on sm_%u",
                                       dtype_name(types[MMA_A]), dtype_name(types[MMA_B]),
                                       dtype_name(types[MMA_C]), p->sm), fitting_types(p));
    snprintf(spelling, sizeof spelling, "mma.m%lldn%lldk%lld", (long long)mma->m,
             (long long)mma->n, (long long)mma->k);
    p->plan.via = via_find(spelling);
    return cut_fragments(p) && match_slots(p);
}

static bool plan_fma(Planner *p)
{
    p->plan.via = VIA_fma;
    return match_slots(p);
}

static void plan_fma_shared(Planner *p)
{
    const Layout *a = p->plan.sides[MMA_A].type->layout;
    int64_t bytes = dot_numbers(p->op).bytes;
    p->plan.via = VIA_fma_shared;
    p->plan.depth = a->shape[a->rank - 1];
    p->plan.scratch_b = element_count(a) * bytes;
    p->plan.scratch = p->plan.scratch_b +
                      element_count(p->plan.sides[MMA_B].type->layout) * bytes;
}

DotPlan dot_plan(Module *m, const Op *op, unsigned sm, DotObstacle *no_mma, DotObstacle *no_fma)
{
    Planner mma = planner_open(m, op, sm), fma = mma, shared = mma;
    *no_mma = *no_fma = (DotObstacle){0};
    if (plan_mma(&mma))
        return mma.plan;
    *no_mma = mma.obstacle;
    if (plan_fma(&fma))
        return fma.plan;
    *no_fma = fma.obstacle;
    plan_fma_shared(&shared);
    return shared.plan;
}

/* ---- what is written ------------------------------------------------------- */

/* Reports why the dot does not go the way that `via` names. */
static bool refuse(const Planner *p, const char *via)
{
    const DotObstacle *o = &p->obstacle;
    diag_error(p->m->diag, p->op->loc, "via = %s does not fit: %s", via, o->why);
    return diag_note(p->m->diag, o->operand < 0 ? p->op->loc : p->op->operands[o->operand]->loc,
                     "%s", o->fits);
}

bool dot_follow(Module *m, const Op *op, unsigned sm, DotPlan *plan)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    DotObstacle no_mma, no_fma;
    Planner p = planner_open(m, op, sm);
    if (!via) {
        *plan = dot_plan(m, op, sm, &no_mma, &no_fma);
        return true;
    }
    Via wanted = via_find(via->word);
    if (wanted == VIA_fma_shared)
        plan_fma_shared(&p);
    else if (!(wanted == VIA_fma ? plan_fma(&p) : plan_mma(&p)))
        return refuse(&p, via->word);
    if (p.plan.via != wanted)
        return diag_error(m->diag, op->loc, "via = %s does not fit, the types make it %s",
                          via->word, via_info[p.plan.via].spelling);
    *plan = p.plan;
    return true;
}

int64_t dot_scratch(Module *m, const Op *op)
{
    DotObstacle no_mma, no_fma;
    ArenaMark mark = arena_mark(&m->scratch);
    const Attr *via = op_attr(op, ATTR_VIA);
    Planner p = planner_open(m, op, 0);
    if (via && via_find(via->word) == VIA_fma_shared)
        plan_fma_shared(&p);
    else if (!via)
        p.plan = dot_plan(m, op, 0, &no_mma, &no_fma);
    arena_reset(&m->scratch, mark);
    return p.plan.scratch;
}
