/* Splits the modes of a scan's dimension into levels. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "select/plan.h"
#include "support/remark.h"

enum { WORD_BYTES = 4 };

/* ---- scan ------------------------------------------------------------------ */

static void push_level(ScanPlan *plan, ScanLevel level)
{
    if (level.extent > 1)
        plan->levels[plan->level_count++] = level;
}

/* Appends the levels of a digit of the thread's number: lanes, and what is left of it. */
static void push_threads(ScanPlan *plan, int64_t weight, int64_t extent)
{
    int64_t lanes = lanes_of_digit(weight, extent);
    push_level(plan, (ScanLevel){.step = SCAN_LANES, .extent = lanes, .weight = weight});
    push_level(plan, (ScanLevel){.step = SCAN_SHARED, .extent = extent / lanes,
                                 .weight = weight * lanes});
}

static void push_modes(ScanPlan *plan, const Layout *l, unsigned dim)
{
    for (unsigned mode = l->mode_count; mode-- > 0;) {
        bool spatial;
        int64_t weight = layout_mode_weight(l, mode, &spatial), extent = l->modes[mode].extent;
        if (l->modes[mode].dim != dim)
            continue;
        if (spatial)
            push_threads(plan, weight, extent);
        else
            push_level(plan, (ScanLevel){.step = SCAN_SLOTS, .extent = extent, .weight = weight});
    }
}

static void count_totals(ScanPlan *plan, int64_t slots)
{
    for (unsigned i = 0; i < plan->level_count; i++) {
        plan->levels[i].totals = slots;
        if (plan->levels[i].step == SCAN_SLOTS)
            slots /= plan->levels[i].extent;
    }
}

/* Divides the digits of the thread's number among those of levels below level `at`, which have
 * its totals together, and others, which have their own. */
static void find_places(ScanPlan *plan, unsigned at, const Layout *l, unsigned dim)
{
    ScanLevel *level = &plan->levels[at];
    int64_t weight = l->threads;
    level->inner.size = level->places.size = 1;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *d = &l->spatial[i];
        weight /= d->extent;
        if (d->mode < 0 || l->modes[d->mode].dim != dim)
            thread_digits_push(&level->places, weight, d->extent);
    }
    for (unsigned i = 0; i < plan->level_count; i++) {
        const ScanLevel *other = &plan->levels[i];
        if (i != at && other->step != SCAN_SLOTS)
            thread_digits_push(i < at ? &level->inner : &level->places, other->weight,
                               other->extent);
    }
}

enum { LANES = 32 };

/* Chooses whether the lanes of a warp share the totals: each lane of the warp must have the same
 * ones, and more than one run of them. */
static void group_totals(ScanLevel *level)
{
    bool same = level->totals > 1 && level->extent <= LANES && LANES % level->extent == 0 &&
                level->weight % LANES == 0;
    for (unsigned i = 0; i < level->places.count; i++)
        same &= level->places.digit[i].weight % LANES == 0;
    level->group = same ? LANES / level->extent : 0;
}

/* Counts the shuffles of a level: steps, one for the carry unless it is a difference and, below
 * other levels, one for the total. The innermost level of an inclusive scan gives its own results. */
static int64_t count_level(const ScanPlan *plan, unsigned at, bool exclusive)
{
    const ScanLevel *level = &plan->levels[at];
    int64_t steps = __builtin_ctzll((uint64_t)level->extent);
    bool carry = !plan->subtracts && (at > 0 || exclusive), total = at + 1 < plan->level_count;
    if (level->step == SCAN_LANES)
        return level->totals * (steps + carry + total);
    if (level->step == SCAN_SLOTS || !level->group)
        return 0;
    return (level->totals + level->group - 1) / level->group * steps + level->totals * (1 + total);
}

static int64_t count_shuffles(const ScanPlan *plan, const Op *op)
{
    int64_t count = 0;
    for (unsigned i = 0; i < plan->level_count; i++)
        count += count_level(plan, i, scan_is_exclusive(op));
    return count * reduce_bytes(op->operands[0]->type->dtype) / WORD_BYTES;
}

ScanPlan scan_plan(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    size_t most = 2 * t->layout->mode_count + 1;    /* lanes and the rest, of each mode */
    ScanPlan plan = {.levels = arena_array(&m->scratch, ScanLevel, most)};
    plan.subtracts = reduce_kind(op) == REDUCE_SUM && !dtype_is_float(t->dtype);
    push_modes(&plan, t->layout, op_dim(op));
    count_totals(&plan, t->layout->slots);
    for (unsigned i = 0; i < plan.level_count; i++) {
        ScanLevel *level = &plan.levels[i];
        if (level->step != SCAN_SHARED)
            continue;
        find_places(&plan, i, t->layout, op_dim(op));
        group_totals(level);
        int64_t bytes = level->totals * level->extent * level->places.size *
                        reduce_bytes(t->dtype);
        plan.scratch = plan.scratch > bytes ? plan.scratch : bytes;
    }
    plan.shuffles = count_shuffles(&plan, op);
    return plan;
}

static bool plan_scan(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    plan->scan = scan_plan(m, op);
    plan->scratch = plan->scan.scratch;
    return true;
}

static int64_t scan_scratch(Module *m, const Op *op)
{
    ArenaMark mark = arena_mark(&m->scratch);
    int64_t bytes = scan_plan(m, op).scratch;
    arena_reset(&m->scratch, mark);
    return bytes;
}

/* "slots 4, lanes 32, 8 warps", from the innermost level outwards. */
static const char *levels_text(Module *m, const ScanPlan *plan)
{
    Text text;
    text_init(&text, &m->arena);
    for (unsigned i = 0; i < plan->level_count; i++) {
        const ScanLevel *level = &plan->levels[i];
        const char *step = level->step == SCAN_SLOTS   ? "slots"
                           : level->step == SCAN_LANES ? "lanes"
                                                       : "groups by shared memory";
        text_printf(&text, "%s%lld %s", i ? ", " : "", (long long)level->extent, step);
    }
    return plan->level_count ? text_string(&text) : "single elements";
}

static void remark_scan(Module *m, const Op *op, const Plan *plan)
{
    REMARK(m, op, ScanChosen, R(op_info[op->code].name), R(levels_text(m, &plan->scan)),
           R(plan->scan.shuffles), R(plan->scratch));
}

static int64_t scan_operations(const Op *op, const Plan *plan)
{
    (void)op;
    return plan->scan.shuffles;
}

const Planner planner_scan = {
    .family = PLAN_scan, .plan = plan_scan, .remark = remark_scan, .scratch = scan_scratch,
    .operations = scan_operations,
};

/* ---- shuffle ----------------------------------------------------------------- */

ShufflePlan shuffle_plan(const Op *op)
{
    const Type *t = op->operands[0]->type;
    const Layout *l = t->layout;
    ShufflePlan plan = {.candidates = 1};
    bool moves = false;
    for (unsigned mode = 0; mode < l->mode_count; mode++) {
        bool spatial;
        layout_mode_weight(l, mode, &spatial);
        if (l->modes[mode].dim != op_dim(op))
            continue;
        plan.candidates *= spatial ? 1 : l->modes[mode].extent;
        moves |= spatial;
    }
    if (moves)
        plan.shuffles = l->slots * plan.candidates * reduce_bytes(t->dtype) / WORD_BYTES;
    return plan;
}

static bool plan_shuffle(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)m;
    (void)sm;
    plan->shuffle = shuffle_plan(op);
    return true;
}

static void remark_shuffle(Module *m, const Op *op, const Plan *plan)
{
    REMARK(m, op, ShuffleChosen, R(op_info[op->code].name), R(plan->shuffle.shuffles),
           R(plan->shuffle.candidates));
}

/* Each slot takes every candidate, also where no lane gives it to another. */
static int64_t shuffle_operations(const Op *op, const Plan *plan)
{
    int64_t chosen = op->results[0]->type->layout->slots * plan->shuffle.candidates;
    return chosen > plan->shuffle.shuffles ? chosen : plan->shuffle.shuffles;
}

const Planner planner_shuffle = {
    .family = PLAN_shuffle, .plan = plan_shuffle, .remark = remark_shuffle,
    .operations = shuffle_operations,
};
