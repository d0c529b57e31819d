/* Instruction selection for loads, stores, copies and dots: writes which instructions move
 * the tile, as attributes that a reader can see and that code generation obeys.
 * What the text says already is proved and kept. Meanings do not change.
 *
 *   %a = load_shared %s[0, 0] : f16[16, 16] @ A
 *     =>  %a = load_shared %s[0, 0] {via = ldmatrix.x4, width = 16} : f16[16, 16] @ A
 *
 * Remarks say what each access costs, and what keeps it from costing less. */
#include "passes/pass.h"

#include "cast/plan.h"
#include "ir/text.h"
#include "passes/report.h"
#include "select/plan.h"
#include "support/remark.h"

typedef struct Select {
    Module *m;
    bool changed, failed;
} Select;

/* ---- casts, dequantize and lookups ------------------------------------------- */

/* What the zero points of a dequantize, if it has some, will come to. */
static void remark_zeros(Select *s, const Op *op, const CastQuery *query)
{
    if (op->operand_count < 3)
        return;
    const Type *codes = op->operands[0]->type, *zero = op->operands[2]->type;
    CastZeros zeros = cast_zeros_of(zero->dtype, zero->layout, codes->layout, 0,
                                    query->elements);
    CastPlan plan;
    if (cast_plan_zeros(&s->m->scratch, query, &zeros, &plan))
        REMARK(s->m, op, PASSED, "zero points of %s come off in the cast", dtype_name(zero->dtype));
    else
        REMARK(s->m, op, MISSED, "zero points of %s take a difference in %s: the cast from %s adds no "
            "constant that holds them", dtype_name(zero->dtype), dtype_name(query->to),
            dtype_name(query->from));
}

static bool is_decoding(OpCode code)
{
    return code == OP_cast || code == OP_dequantize || code == OP_lookup;
}

/* Code generation plans by the same query; here is only what it will come to. */
static void remark_cast(Select *s, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    int64_t slots = type_thread_bits(to) / dtype_bits(to->dtype);
    CastPlan plan;
    CastQuery query = {.from = from->dtype, .to = to->dtype, .packed = from->packed,
                       .finite = cast_is_finite(op), .sm = s->m->target_sm,
                       .elements = slots < CAST_ELEMENTS_MAX ? (unsigned)slots
                                                             : CAST_ELEMENTS_MAX};
    ArenaMark mark = arena_mark(&s->m->scratch);
    bool lookup = op->code == OP_lookup;
    const char *source = dtype_name(from->dtype), *name = op_info[op->code].name;
    if (from->packed)
        source = arena_printf(&s->m->scratch, "%s packed(%s)", source, dtype_name(from->packed));
    if (!lookup && from->dtype == to->dtype)
        REMARK(s->m, op, PASSED, "%s from %s to %s moves bits, if any, and changes no value", name,
            source, type_text(s->m, to));
    else if ((lookup ? cast_plan_codebook : cast_plan)(&s->m->scratch, &query, &plan))
        REMARK(s->m, op, PASSED, "%s from %s to %s goes by %s, %.3f operations an element", name,
            source, dtype_name(query.to), cast_family_name(&s->m->scratch, &plan),
            cast_count(&plan).total / (double)query.elements);
    else
        REMARK(s->m, op, MISSED, "%s from %s to %s goes element by element: it has no plan", name,
            source, dtype_name(query.to));
    remark_zeros(s, op, &query);
    arena_reset(&s->m->scratch, mark);
}

/* ---- the pass --------------------------------------------------------------- */

static void count_choice(Module *m, const Plan *plan)
{
    static const Stat stats[PLAN_FAMILY_COUNT] = {
        [PLAN_access] = STAT_select_instructions_accesses,
        [PLAN_copy] = STAT_select_instructions_copies,
        [PLAN_dot] = STAT_select_instructions_dots,
    };
    PlanFamily family = plan->planner->family;
    stat_add(m, stats[family], 1);
    if (family == PLAN_access)
        stat_add(m, STAT_select_instructions_matrices, via_info[plan->access.via].matrices > 0);
}

/* Plans an op, reports the plan, and writes it where the text has none. */
static bool select_planned(Select *s, Op *op)
{
    Plan plan;
    if (!select_plan(s->m, op, s->m->target_sm, &plan))
        return false;
    if (remarks_wanted(s->m->remarks))
        plan_remark(s->m, op, &plan);
    if (!plan.planner->write || plan_is_written(op))
        return true;
    plan_write(s->m, op, &plan);
    count_choice(s->m, &plan);
    s->changed = true;
    return true;
}

/* Returns true when there is something to write, or to report. */
static bool wants_plan(const Select *s, const Op *op)
{
    const Planner *planner = planner_of(op->code);
    return planner && (planner->write || (planner->remark && remarks_wanted(s->m->remarks)));
}

static bool select_op(Op *op, void *data)
{
    Select *s = data;
    ArenaMark mark = arena_mark(&s->m->scratch);
    if (is_decoding(op->code) && remarks_wanted(s->m->remarks))
        remark_cast(s, op);
    if (wants_plan(s, op))
        s->failed |= !select_planned(s, op);
    arena_reset(&s->m->scratch, mark);
    return true;
}

PassResult pass_select_instructions(Program *p)
{
    Select s = {.m = p->module};
    region_walk(p->body, select_op, &s);
    return s.failed ? PASS_FAILED : s.changed ? PASS_CHANGED : PASS_UNCHANGED;
}
