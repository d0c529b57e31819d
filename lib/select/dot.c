/* Plans of dots. With 16-bit elements, a side's layout over pieces is
 *
 *     a[m, k] = qa . spatial(8,4).local(1,2)           2 x 2 pieces a fragment, of one word
 *     b[k, n] = qb . column_spatial(4,8).local(2,1)    2 x 1, of one word
 *     c[m, n] = qc . spatial(8,4).local(1,2)           2 x 1, of two words in f32, one in f16
 *
 * with ones before in batch dimensions. All that is asked of qa, qb and qc is that the
 * pieces that meet in an instruction are in one warp, and in the same slots of each. */
#include "select/dot.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "target/target.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_TARGET = 80 };

static const char operand_name[] = "abc";

/* A plan being made. */
typedef struct DotPlanner {
    Module *m;
    const Op *op;
    unsigned sm;
    DotPlan plan;
    int64_t *slot_of[MMA_OPERANDS]; /* of each piece, row-major, in one thread; -1 */
    DotReason reason;
} DotPlanner;

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

static bool refuse_plan(DotPlanner *p, int operand, const char *why, const char *fits)
{
    p->reason = (DotReason){operand, why, fits};
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

/* Lists the types (a, b, c) that have an instruction on the target, each triple once. */
static const char *fitting_types(const DotPlanner *p)
{
    Text text;
    text_init(&text, &p->m->scratch);
    text_printf(&text, "types (a, b, c) that fit on %s are", target_name_of(p->sm));
    unsigned count = 0;
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        if (mma_find(mma->types, p->sm, 1) == mma)
            text_printf(&text, "%s (%s, %s, %s)", count++ ? "," : "",
                        dtype_name(mma->types[MMA_A]), dtype_name(mma->types[MMA_B]),
                        dtype_name(mma->types[MMA_C]));
    return text_string(&text);
}

/* ---- pieces --------------------------------------------------------------- */

static const Layout *piece_of(const DotPlanner *p, unsigned i)
{
    LayoutTable *t = &p->m->layouts;
    return mma_with_batch(t, mma_piece(t, p->plan.mma, i), p->plan.rank);
}

static const Layout *fragment_of(const DotPlanner *p, unsigned i)
{
    LayoutTable *t = &p->m->layouts;
    return mma_with_batch(t, mma_fragment(t, p->plan.mma, i), p->plan.rank);
}

/* Describes a layout of operand i that fits. */
static const char *fitting_layout(DotPlanner *p, unsigned i)
{
    const Layout *l = p->plan.sides[i].type->layout, *atom = fragment_of(p, i);
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

static bool refuse_pieces(DotPlanner *p, unsigned i, const char *why)
{
    const Type *t = p->plan.sides[i].type;
    const char *type = dtype_name(t->dtype), *layout = layout_text(p->m, t->layout);
    return refuse_plan(p, (int)i,
                    SCRATCH(p, "operand %c of dot, %s @ %s, does not fit pieces %s of %s: %s",
                            operand_name[i], type, layout, layout_text(p->m, piece_of(p, i)),
                            via_info[p->plan.via].spelling, why),
                    fitting_layout(p, i));
}

/* Cuts operand i into pieces. */
static bool cut_operand(DotPlanner *p, unsigned i)
{
    DotSide *s = &p->plan.sides[i];
    const Layout *l = s->type->layout, *piece = piece_of(p, i), *fragment = fragment_of(p, i);
    unsigned row = p->plan.rank - 2, column = row + 1;
    const char *why;
    s->quotient = layout_divide(&p->m->layouts, l, piece, &why);
    if (!s->quotient)
        return refuse_pieces(p, i, why);
    for (unsigned d = row; d <= column; d++)
        if (l->shape[d] % fragment->shape[d])
            return refuse_pieces(p, i, SCRATCH(p, "extent %lld in dimension %u is no multiple "
                                               "of %lld", (long long)l->shape[d], d,
                                               (long long)fragment->shape[d]));
    s->rows = fragment->shape[row] / piece->shape[row];
    s->columns = fragment->shape[column] / piece->shape[column];
    s->words = piece->slots * dtype_bits(s->type->dtype) / 32;
    return true;
}

/* ---- which pieces a thread holds, and where -------------------------------- */

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
static void place_pieces(DotPlanner *p, unsigned side, int64_t thread)
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

/* Reports that `thread` has the piece `index` of side `side` in slot `found`, or
 * nowhere (-1), while the threads before have its counterpart in `slot`. */
static bool refuse_slot(DotPlanner *p, unsigned side, int64_t thread, const int64_t *index,
                        int64_t found, int64_t slot)
{
    bool mma = p->plan.mma != NULL;
    const char *holder = mma ? "warp" : "thread", *piece = mma ? "piece" : "element";
    const char *at = numbers_text(p->m, p->plan.rank, index), *why = found < 0
        ? SCRATCH(p, "%s %lld does not hold %s (%s), which %s needs", holder,
                  (long long)thread, piece, at,
                  side == MMA_C ? "one of its fragments" : "its part of c")
        : SCRATCH(p, "%s %lld holds %s (%s) in slot %lld, %s 0 its counterpart in slot %lld",
                  holder, (long long)thread, piece, at, (long long)found, holder,
                  (long long)slot);
    if (mma)
        return refuse_pieces(p, side, why);
    return refuse_plan(p, (int)side, SCRATCH(p, "operand %c of dot: %s", operand_name[side], why),
                    p->plan.rank > 2
                        ? "a thread that holds element (.., i, j) of c needs row (.., i) of a "
                          "and column (.., j) of b"
                        : "a thread that holds element (i, j) of c needs row i of a and column j "
                          "of b");
}

/* ---- which pieces meet ------------------------------------------------------- */

int64_t dot_pieces(const DotSide *s)
{
    return s->rows * s->columns;
}

int64_t *dot_slots(const DotPlan *plan, unsigned side, int64_t unit, int64_t k)
{
    const DotSide *s = &plan->sides[side];
    return s->slots + (side == MMA_C ? unit : unit * plan->depth + k) * dot_pieces(s);
}

/* Finds the slots of the unit of side `side` whose first piece is `first`. Records the
 * slots of the first thread in `slots`; all other threads must have the same. */
static bool match_pieces(DotPlanner *p, unsigned side, int64_t thread, const int64_t *first,
                         int64_t *slots)
{
    const DotSide *s = &p->plan.sides[side];
    unsigned row = p->plan.rank - 2, column = row + 1;
    int64_t index[LIMIT_RANK];
    memcpy(index, first, sizeof index);
    for (int64_t i = 0; i < dot_pieces(s); i++) {
        index[row] = first[row] + i % s->rows;
        index[column] = first[column] + i / s->rows;
        int64_t found = p->slot_of[side][linear_index(s->quotient, index)];
        if (found < 0 || (slots[i] >= 0 && slots[i] != found))
            return refuse_slot(p, side, thread, index, found, slots[i]);
        slots[i] = found;
    }
    return true;
}

/* The unit of c whose first piece is `c`, the unit-th of each thread, and what it needs
 * of a and b. */
static bool match_unit(DotPlanner *p, int64_t thread, const int64_t *c, int64_t unit)
{
    const DotPlan *plan = &p->plan;
    const DotSide *sides = plan->sides;
    unsigned row = plan->rank - 2, column = row + 1;
    int64_t a[LIMIT_RANK], b[LIMIT_RANK];
    memcpy(a, c, sizeof a);
    memcpy(b, c, sizeof b);
    a[row] = c[row] / sides[MMA_C].rows * sides[MMA_A].rows;
    b[column] = c[column] / sides[MMA_C].columns * sides[MMA_B].columns;
    if (!match_pieces(p, MMA_C, thread, c, dot_slots(plan, MMA_C, unit, 0)))
        return false;
    for (int64_t k = 0; k < plan->depth; k++) {
        a[column] = k * sides[MMA_A].columns;
        b[row] = k * sides[MMA_B].rows;
        if (!match_pieces(p, MMA_A, thread, a, dot_slots(plan, MMA_A, unit, k)) ||
            !match_pieces(p, MMA_B, thread, b, dot_slots(plan, MMA_B, unit, k)))
            return false;
    }
    return true;
}

static bool match_thread(DotPlanner *p, int64_t thread)
{
    const DotSide *c = &p->plan.sides[MMA_C];
    unsigned row = p->plan.rank - 2, column = row + 1;
    int64_t index[LIMIT_RANK], unit = 0;
    for (unsigned side = MMA_A; side < MMA_OPERANDS; side++)
        place_pieces(p, side, thread);
    for (int64_t slot = 0; slot < c->quotient->slots; slot++) {
        layout_index(c->quotient, thread, slot, index);
        if (index[row] % c->rows == 0 && index[column] % c->columns == 0 &&
            !match_unit(p, thread, index, unit++))
            return false;
    }
    return true;
}

/* Room for the slots of all units of a side, none of which is known. */
static void open_slots(DotPlanner *p, unsigned side)
{
    DotSide *s = &p->plan.sides[side];
    int64_t steps = side == MMA_C ? 1 : p->plan.depth;
    int64_t pieces = element_count(s->quotient), count = p->plan.units * steps * dot_pieces(s);
    p->slot_of[side] = arena_array(&p->m->scratch, int64_t, (size_t)pieces);
    s->slots = arena_array(&p->m->scratch, int64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        s->slots[i] = -1;
}

/* Threads that hold one piece hold the same pieces. So if all that hold the first piece
 * of a unit have the rest of it, no thread has part of one; until that is shown, the units
 * of a thread are rounded up. */
static bool match_slots(DotPlanner *p)
{
    const DotSide *a = &p->plan.sides[MMA_A], *c = &p->plan.sides[MMA_C];
    p->plan.depth = a->quotient->shape[p->plan.rank - 1] / a->columns;
    p->plan.units = (c->quotient->slots + dot_pieces(c) - 1) / dot_pieces(c);
    for (unsigned side = MMA_A; side < MMA_OPERANDS; side++)
        open_slots(p, side);
    for (int64_t thread = 0; thread < c->quotient->threads; thread++)
        if (!match_thread(p, thread))
            return false;
    return true;
}

/* ---- the three ways --------------------------------------------------------- */

static DotPlanner planner_open(Module *m, const Op *op, unsigned sm)
{
    DotPlanner p = {.m = m, .op = op, .sm = sm ? sm : LEAST_TARGET,
                 .plan.rank = op->operands[MMA_C]->type->rank};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        p.plan.sides[i] = (DotSide){.type = op->operands[i]->type, .rows = 1, .columns = 1,
                                    .quotient = op->operands[i]->type->layout};
    return p;
}

/* The dot's k. */
static int64_t depth_of(const DotPlanner *p)
{
    return type_extent(p->plan.sides[MMA_A].type, p->plan.rank - 1);
}

static Via via_of_mma(const Mma *mma)
{
    char spelling[32];
    snprintf(spelling, sizeof spelling, "mma.m%lldn%lldk%lld%s", (long long)mma->m,
             (long long)mma->n, (long long)mma->k, mma_is_converted(mma) ? ".f16" : "");
    return via_find(spelling);
}

/* The row for the types and k: of equal fragments, that of `wanted`, if there is one. */
static const Mma *choose_mma(const DotPlanner *p, const DType types[MMA_OPERANDS], Via wanted)
{
    const Mma *best = mma_find(types, p->sm, depth_of(p));
    for (const Mma *mma = mma_table; best && mma < mma_table + MMA_COUNT; mma++)
        if (!memcmp(mma->types, types, sizeof mma->types) && mma->k == best->k &&
            mma->from <= p->sm && p->sm <= mma->to && via_of_mma(mma) == wanted)
            return mma;
    return best;
}

/* The row for the operands, whose types it fills in; NULL: there is none. */
static const Mma *find_mma(const DotPlanner *p, DType types[MMA_OPERANDS], Via wanted)
{
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = p->plan.sides[i].type->dtype;
    return choose_mma(p, types, wanted);
}

/* Plans how words of a and b become words of f16. */
static void plan_converted(DotPlanner *p)
{
    for (unsigned i = MMA_A; i <= MMA_B; i++) {
        DType t = p->plan.mma->types[i];
        CastQuery query = {.from = t, .to = DTYPE_f16, .elements = 32 / dtype_bits(t),
                           .sm = p->sm};
        CastPlan *plan = arena_new(&p->m->scratch, CastPlan);
        bool planned = cast_plan(&p->m->scratch, &query, plan);
        assert(planned);
        (void)planned;
        p->plan.convert[i] = plan;
    }
}

static bool plan_mma(DotPlanner *p, Via wanted)
{
    DType types[MMA_OPERANDS];
    const Mma *mma = p->plan.mma = find_mma(p, types, wanted);
    if (!mma)
        return refuse_plan(p, -1, SCRATCH(p, "dot of %s, %s, %s has no instruction on %s",
                                       dtype_name(types[MMA_A]), dtype_name(types[MMA_B]),
                                       dtype_name(types[MMA_C]), target_name_of(p->sm)),
                           fitting_types(p));
    p->plan.via = via_of_mma(mma);
    if (mma_is_converted(mma))
        plan_converted(p);
    return cut_operand(p, MMA_A) && cut_operand(p, MMA_B) && cut_operand(p, MMA_C) &&
           match_slots(p);
}

static bool plan_fma(DotPlanner *p)
{
    p->plan.via = VIA_fma;
    return match_slots(p);
}

static void plan_fma_shared(DotPlanner *p)
{
    const Layout *a = p->plan.sides[MMA_A].type->layout;
    int64_t bytes = dot_numbers(p->op).bytes;
    p->plan.via = VIA_fma_shared;
    p->plan.units = p->plan.sides[MMA_C].type->layout->slots;
    p->plan.depth = depth_of(p);
    p->plan.scratch_b = element_count(a) * bytes;
    p->plan.scratch = p->plan.scratch_b +
                      element_count(p->plan.sides[MMA_B].type->layout) * bytes;
}

DotPlan dot_plan(Module *m, const Op *op, unsigned sm)
{
    DotPlanner mma = planner_open(m, op, sm), fma = mma, shared = mma;
    if (plan_mma(&mma, VIA_COUNT))
        return mma.plan;
    fma.plan.no_mma = shared.plan.no_mma = mma.reason;
    if (plan_fma(&fma))
        return fma.plan;
    shared.plan.no_fma = fma.reason;
    plan_fma_shared(&shared);
    return shared.plan;
}

bool dot_suits_tensor_cores(const Op *op)
{
    for (unsigned i = MMA_A; i < MMA_OPERANDS; i++) {
        const Type *t = op->operands[i]->type;
        if (type_extent(t, t->rank - 2) < DOT_LEAST_EXTENT ||
            type_extent(t, t->rank - 1) < DOT_LEAST_EXTENT)
            return false;
    }
    return true;
}

/* ---- what is written ------------------------------------------------------- */

/* Reports why the dot does not go the way that `via` names. */
static bool refuse(const DotPlanner *p, Via wanted)
{
    const char *via = via_info[wanted].spelling;
    const DotReason *o = &p->reason;
    if (p->plan.via != VIA_units && p->plan.via != wanted)
        return diag_error(p->m->diag, p->op->loc, "via = %s does not fit, types and k = %lld "
                          "make it %s", via, (long long)depth_of(p),
                          via_info[p->plan.via].spelling);
    diag_error(p->m->diag, p->op->loc, "via = %s does not fit: %s", via, o->why);
    return diag_note(p->m->diag, o->operand < 0 ? p->op->loc : p->op->operands[o->operand]->loc,
                     "%s", o->fits);
}

bool dot_follow(Module *m, const Op *op, unsigned sm, DotPlan *plan)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    DotPlanner p = planner_open(m, op, sm);
    if (!via) {
        *plan = dot_plan(m, op, sm);
        return true;
    }
    Via wanted = via->word;
    if (wanted == VIA_fma_shared)
        plan_fma_shared(&p);
    else if (!(wanted == VIA_fma ? plan_fma(&p) : plan_mma(&p, wanted)) || p.plan.via != wanted)
        return refuse(&p, wanted);
    *plan = p.plan;
    return true;
}

bool dot_check_given(Module *m, const Op *op, unsigned sm, const Layout *const *given)
{
    DotPlanner p = planner_open(m, op, sm);
    DType types[MMA_OPERANDS];
    p.plan.mma = find_mma(&p, types, op_via(op));
    if (!p.plan.mma || op_via(op) != via_of_mma(p.plan.mma))
        return true;
    p.plan.via = op_via(op);
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        if (!given[i])
            continue;
        p.plan.sides[i].type = type_with_layout(m, p.plan.sides[i].type, given[i]);
        if (!cut_operand(&p, i))
            return refuse(&p, op_via(op));
    }
    return true;
}

int64_t dot_scratch(Module *m, const Op *op)
{
    ArenaMark mark = arena_mark(&m->scratch);
    const Attr *via = op_attr(op, ATTR_VIA);
    DotPlanner p = planner_open(m, op, 0);
    if (via && via->word == VIA_fma_shared)
        plan_fma_shared(&p);
    else if (!via)
        p.plan = dot_plan(m, op, 0);
    arena_reset(&m->scratch, mark);
    return p.plan.scratch;
}
