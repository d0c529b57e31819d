/* Words about bounds checks. */
#include "select/checks.h"

#include "ir/loop.h"
#include "ir/text.h"
#include "scalar/facts.h"
#include "scalar/missing.h"
#include "select/access.h"
#include "select/fit.h"
#include "select/plan.h"
#include "support/remark.h"

enum {
    FEW_ITERATIONS = 16,    /* whose checks cost little */
    SCALARS = 16            /* ops that an offset is followed through */
};

static int64_t span_of(const MemoryTile *t, unsigned d)
{
    int dim = memory_tile_find(t, d);
    return dim < 0 ? 1 : t->extents[dim];
}

/* ---- the missing fact ------------------------------------------------------------ */

/* "assume %i * 16 <= %n - 16", of which the proof follows. */
static const char *condition_text(Module *m, const MemoryTile *t, unsigned d)
{
    const char *why;
    const Expr *offset = t->offsets->exprs[d], *extent = t->memory->type->extents[d];
    const Expr *last = expr_make(&m->exprs, SCALAR_sub, extent,
                                 expr_constant(&m->exprs, span_of(t, d)), &why);
    const char *from = facts_of_expr(offset).min >= 0
                           ? "" : arena_printf(&m->scratch, "%s >= 0 and ", expr_text(m, offset));
    return arena_printf(&m->scratch, "`assume %s%s <= %s`", from, expr_text(m, offset),
                        last ? expr_text(m, last) : "the last place");
}

static MissingFact find_fact(const Op *op, const MemoryTile *t, unsigned d)
{
    return missing_fact(op, t->offsets->exprs[d], span_of(t, d), t->memory->type->extents[d]);
}

static void remark_dimension(Module *m, const Op *op, const MemoryTile *t, unsigned d)
{
    const char *name = op_info[op->code].name;
    if (memory_tile_is_indexed(t, d)) {
        REMARK(m, op, BoundsByData, R(name), R(d));
        return;
    }
    const MissingFact fact = find_fact(op, t, d);
    if (fact.argument)
        REMARK(m, op, BoundsUnproved, R(name), R(d), R(missing_fact_text(m, &fact)));
    else if (op->shifted)       /* the condition would be false where the text has the op */
        REMARK(m, op, BoundsShifted, R(name), R(d));
    else
        REMARK(m, op, BoundsUnproved, R(name), R(d), R(condition_text(m, t, d)));
}

void remark_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked)
{
    for (unsigned d = 0; checked >> d; d++)
        if (checked >> d & 1)
            remark_dimension(m, op, t, d);
}

/* ---- checks in loops --------------------------------------------------------------- */

const Op *loop_around(const Op *op)
{
    const Op *around = op->parent->parent;
    while (around && !op_is_loop(around))
        around = around->parent->parent;
    return around;
}

static bool is_no_loop(Op *op, void *data)
{
    (void)data;
    return !op_is_loop(op);
}

static bool has_few_iterations(const Op *loop)
{
    if (loop->code != OP_for)
        return false;
    const Expr *lower = op_expr(loop, ATTR_LOWER), *upper = op_expr(loop, ATTR_UPPER);
    int64_t length;
    return expr_is_constant(lower) && expr_is_constant(upper) &&
           !__builtin_sub_overflow(upper->constant, lower->constant, &length) &&
           length <= FEW_ITERATIONS;
}

typedef struct Motion {
    const Op *loop;
    unsigned scalars;       /* ops that were followed */
} Motion;

/* Returns true when `v` is the same in all iterations of the loop. */
static bool is_fixed(Value *v, void *data)
{
    Motion *motion = data;
    const Region *r = v->def ? v->def->parent : v->region;
    while (r && r->parent && r->parent != motion->loop)
        r = r->parent->parent;
    if (!r || !r->parent)
        return true;
    return v->def && v->def->code == OP_scalar && motion->scalars++ < SCALARS &&
           expr_visit_values(op_expr(v->def, ATTR_VALUE), is_fixed, motion);
}

/* The bytes of the accesses in the layout that infer-layouts would choose. */
static unsigned fitted_width(Module *m, const Op *op)
{
    const char *why;
    unsigned bytes = 0;
    const Value *tile = op->result_count ? op->results[0] : op->operands[0], *index = op_index(op);
    fit_access(m, op, tile, index ? index->type->layout : NULL, region_threads(op->parent).count,
               &bytes, &why);
    return bytes;
}

/* The bytes of the accesses that would be chosen with the fact. */
static unsigned width_with(Module *m, const Op *op, const MissingFact *fact)
{
    Value *argument = (Value *)fact->argument;
    const Facts before = argument->facts;
    argument->facts = fact->facts;
    unsigned bytes = access_plan(m, op).bytes, fitted = op->fitted ? fitted_width(m, op) : 0;
    argument->facts = before;
    return fitted > bytes ? fitted : bytes;
}

/* A check that makes no access narrower costs little, and the text may well mean it. One
 * warning for each argument is enough. */
static void warn_dimension(Module *m, const Op *op, const MemoryTile *t, unsigned d)
{
    const MissingFact fact = find_fact(op, t, d);
    if (!fact.argument || diag_is_noted(m->diag, WARNING_BOUNDS, fact.argument->loc))
        return;
    const Access access = access_plan(m, op);
    unsigned bytes = access.bytes, wider = width_with(m, op, &fact);
    if (wider <= bytes)
        return;
    diag_warning(m->diag, WARNING_BOUNDS, op->loc, "%s checks dimension %u of its tile in every "
                 "iteration of the loop, in accesses of %u bytes%s, not %u; %s would prove that the "
                 "tile lies inside", op_info[op->code].name, d, bytes,
                 op->fitted ? ", for which its layout was chosen" : "", wider,
                 missing_fact_text(m, &fact));
    diag_note(m->diag, fact.argument->loc, "the fact would stand here; {width = %u, unit = %lld, "
              "checked = [%u]} of the %s keeps the check without a warning", bytes,
              (long long)access.unit, d, op_info[op->code].name);
}

void warn_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked)
{
    Motion motion = {.loop = checked && diag_warns(m->diag, WARNING_BOUNDS) ? loop_around(op)
                                                                            : NULL};
    if (!motion.loop || has_few_iterations(motion.loop) ||
        !region_walk(motion.loop->regions[0], is_no_loop, NULL))
        return;
    for (unsigned d = 0; checked >> d; d++)
        if (checked >> d & 1 && !memory_tile_is_indexed(t, d) &&
            !expr_visit_values(t->offsets->exprs[d], is_fixed, &motion))
            warn_dimension(m, op, t, d);
}
