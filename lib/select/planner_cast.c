/* The planner of casts, dequantize, decode and lookup, and its remarks. Every query for a
 * cast plan about an op is made here. */
#include "select/plan.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "support/remark.h"

#include <string.h>

/* The query for the runs of one operand. */
typedef struct Conversion {
    Module *m;
    CastQuery query;            /* without the number of elements */
    const Layout *layout;       /* of what is converted */
    const Type *zeros;          /* that come off, or NULL */
    bool codebook;
} Conversion;

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

unsigned cast_run_length(const CastRuns *runs, unsigned i)
{
    return (unsigned)min_i64(runs->slots - (int64_t)i * CAST_ELEMENTS_MAX, CAST_ELEMENTS_MAX);
}

unsigned cast_runs_total(const CastRuns *runs)
{
    unsigned total = 0;
    for (unsigned i = 0; runs->planned && i < runs->count; i++)
        total += cast_count(runs->plans[i]).total;
    return total;
}

/* ---- runs ----------------------------------------------------------------- */

static CastZeros zeros_of_run(const Conversion *c, const CastRuns *runs, unsigned i)
{
    if (!c->zeros)
        return (CastZeros){0};
    return cast_zeros_of(c->zeros->dtype, c->zeros->layout, c->layout,
                         (int64_t)i * CAST_ELEMENTS_MAX, cast_run_length(runs, i));
}

/* The plan of run `i`, or NULL. */
static const CastPlan *make_plan(const Conversion *c, const CastRuns *runs, unsigned i,
                                 const CastZeros *zeros)
{
    CastPlan *plan = arena_new(&c->m->scratch, CastPlan);
    CastQuery query = c->query;
    query.elements = cast_run_length(runs, i);
    bool planned = c->codebook ? cast_plan_codebook(&c->m->scratch, &query, plan)
                   : c->zeros  ? cast_plan_zeros(&c->m->scratch, &query, zeros, plan)
                               : cast_plan(&c->m->scratch, &query, plan);
    return planned ? plan : NULL;
}

/* Plans all runs; one of the same length, and the same zero points, as the one before has
 * its plan. */
static CastRuns plan_runs(const Conversion *c)
{
    CastRuns runs = {.from = c->query.from, .to = c->query.to, .packed = c->query.packed,
                     .slots = c->layout->slots};
    CastZeros before = {0};
    runs.count = (unsigned)((runs.slots + CAST_ELEMENTS_MAX - 1) / CAST_ELEMENTS_MAX);
    runs.plans = arena_array(&c->m->scratch, const CastPlan *, runs.count);
    if (runs.from == runs.to && !c->codebook)
        return runs;
    for (unsigned i = 0; i < runs.count; i++) {
        CastZeros zeros = zeros_of_run(c, &runs, i);
        bool same = i > 0 && cast_run_length(&runs, i) == cast_run_length(&runs, i - 1) &&
                    !memcmp(zeros.of, before.of, sizeof zeros.of);
        runs.plans[i] = same ? runs.plans[i - 1] : make_plan(c, &runs, i, &zeros);
        if (!runs.plans[i])
            return runs;
        before = zeros;
    }
    runs.planned = true;
    return runs;
}

/* ---- ops ------------------------------------------------------------------- */

/* The families that the op's text names; 0: all. */
static unsigned named_families(const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    return via ? cast_families_named(via_info[via->word].spelling) : 0;
}

static bool is_by_elements(const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    return via && via->word == VIA_cast_elements;
}

static Conversion conversion_of(Module *m, const Op *op, unsigned operand, unsigned sm)
{
    const Type *from = op->operands[operand]->type;
    return (Conversion){.m = m, .layout = from->layout,
                        .query = {.from = from->dtype, .to = op->results[0]->type->dtype,
                                  .packed = from->packed, .sm = sm}};
}

static CastRuns plan_codes(const Conversion *codes, const Op *op)
{
    if (!is_by_elements(op))
        return plan_runs(codes);
    return (CastRuns){.from = codes->query.from, .to = codes->query.to,
                      .packed = codes->query.packed, .slots = codes->layout->slots};
}

/* Plans the codes with the zero points subtracted, if plans can: no plan then tells codes
 * that are numbers from other codes. */
static bool plan_folded(Conversion codes, const Op *op, CastRuns *runs)
{
    codes.zeros = op->operands[2]->type;
    codes.query.finite = false;
    *runs = plan_runs(&codes);
    return runs->planned;
}

static void plan_dequantize(Module *m, const Op *op, unsigned sm, const Conversion *codes,
                            CastChoice *c)
{
    Conversion scales = conversion_of(m, op, 1, sm);
    c->scales = plan_runs(&scales);
    if (op->operand_count > 2) {
        Conversion zeros = conversion_of(m, op, 2, sm);
        c->zeros = plan_runs(&zeros);
        c->folded = !is_by_elements(op) && plan_folded(*codes, op, &c->codes);
    }
}

/* Checks that the family in the text is possible; false after an error. */
static bool check_named(Module *m, const Op *op, const CastChoice *c)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    bool moves = c->codes.from == c->codes.to;
    if (!via || (is_by_elements(op) ? !moves : c->codes.planned))
        return true;
    return diag_error(m->diag, op->loc, "via = %s does not fit: %s", via_info[via->word].spelling,
                      moves ? "types are equal, and nothing is converted"
                            : arena_printf(&m->arena, "this family has no plan from %s to %s",
                                           dtype_name(c->codes.from), dtype_name(c->codes.to)));
}

bool cast_choose(Module *m, const Op *op, unsigned sm, CastChoice *choice)
{
    Conversion codes = conversion_of(m, op, 0, sm);
    *choice = (CastChoice){0};
    codes.codebook = op->code == OP_lookup;
    codes.query.deferred = op->code == OP_decode;
    codes.query.finite = (op->code == OP_cast || op->code == OP_dequantize) && cast_is_finite(op);
    codes.query.families = named_families(op);
    if (op->code == OP_dequantize)
        plan_dequantize(m, op, sm, &codes, choice);
    if (!choice->folded)
        choice->codes = plan_codes(&codes, op);
    if (op->code == OP_decode && !choice->codes.planned)
        return diag_error(m->diag, op->loc, "no plan decodes %s to %s",
                          dtype_name(codes.query.from), dtype_name(codes.query.to));
    return check_named(m, op, choice);
}

static bool plan_cast(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    return cast_choose(m, op, sm, &plan->cast);
}

/* The word of the way that all runs go; NULL where they go different ones. */
static const char *common_word(const CastRuns *runs)
{
    if (!runs->planned)
        return via_info[VIA_cast_elements].spelling;
    for (unsigned i = 1; i < runs->count; i++)
        if (runs->plans[i]->family != runs->plans[0]->family)
            return NULL;
    return cast_family_word(runs->plans[0]->family);
}

/* Writes the family; decode and lookup have one only, equal types none. */
static void write_cast(Module *m, Op *op, const Plan *plan)
{
    const CastRuns *codes = &plan->cast.codes;
    const char *word = common_word(codes);
    if (word && codes->from != codes->to && op_info[op->code].attrs & op_attr_bit(ATTR_VIA))
        op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = via_find(word)});
}

/* ---- remarks ----------------------------------------------------------------- */

/* "u4 packed(f16)" */
static const char *source_text(Module *m, const CastRuns *runs)
{
    const char *name = dtype_name(runs->from);
    return runs->packed ? arena_printf(&m->scratch, "%s packed(%s)", name,
                                       dtype_name(runs->packed)) : name;
}

static double operations_each(const CastRuns *runs)
{
    return cast_runs_total(runs) / (double)runs->slots;
}

static void remark_codes(Module *m, const Op *op, const CastRuns *codes)
{
    const char *name = op_info[op->code].name, *source = source_text(m, codes);
    if (codes->planned)
        REMARK(m, op, CastPlanned, R(name), R(source), R(dtype_name(codes->to)),
               R(cast_family_name(&m->scratch, codes->plans[0])), R(operations_each(codes)));
    else if (codes->from == codes->to)
        REMARK(m, op, CastKeepsValues, R(name), R(source), R(type_text(m, op->results[0]->type)));
    else
        REMARK(m, op, CastByElements, R(name), R(source), R(dtype_name(codes->to)),
               R(is_by_elements(op) ? "the text wants it" : "it has no plan"));
}

/* Reports the conversion of a dequantize's zero points. */
static void remark_zeros(Module *m, const Op *op, const CastChoice *c)
{
    const char *zero = dtype_name(c->zeros.from);
    if (c->folded)
        REMARK(m, op, ZerosInCast, R(zero), R(operations_each(&c->zeros)));
    else
        REMARK(m, op, ZerosSubtracted, R(zero), R(dtype_name(c->codes.to)),
               R(dtype_name(c->codes.from)));
}

static void remark_cast(Module *m, const Op *op, const Plan *plan)
{
    remark_codes(m, op, &plan->cast.codes);
    if (op->operand_count > 2)
        remark_zeros(m, op, &plan->cast);
}

static const char *reason_for_elements(Module *m, const Op *op, const Plan *plan)
{
    (void)m;
    (void)op;
    const CastRuns *codes = &plan->cast.codes;
    return codes->planned || codes->from == codes->to ? NULL : "it has no plan";
}

const Planner planner_cast = {
    .family = PLAN_cast, .plan = plan_cast, .write = write_cast, .remark = remark_cast,
    .reason = reason_for_elements,
};
