/* Chooses among the families by cost. */
#include "cast/internal.h"

#include <string.h>

const CastOpInfo cast_op_info[CAST_OP_COUNT] = {
#define CAST_OP(id, spelling, unit, inputs) {spelling, CAST_UNIT_##unit, inputs},
#include "cast/ops.def"
};

static FamilyBuilder *const builders[CAST_FAMILY_COUNT] = {
    [CAST_FAMILY_magic] = family_magic,
    [CAST_FAMILY_subnormal] = family_subnormal,
    [CAST_FAMILY_realign] = family_realign,
    [CAST_FAMILY_lookup] = family_lookup,
    [CAST_FAMILY_hardware] = family_hardware,
    [CAST_FAMILY_bytes] = family_bytes,
    [CAST_FAMILY_bare] = family_bare,
    [CAST_FAMILY_linear] = family_linear,
    [CAST_FAMILY_quantum] = family_quantum,
    [CAST_FAMILY_carry] = family_carry,
    [CAST_FAMILY_convert] = family_convert,
    [CAST_FAMILY_codebook] = family_codebook,
};

/* ---- costs --------------------------------------------------------------- */

enum { CAST_OPS_MAX = 4095 };       /* of a plan */

typedef struct Costs {
    unsigned sm, unit[CAST_UNIT_COUNT];
} Costs;

static const Costs costs[] = {
#define CAST_COSTS(sm, integer, half, f32, cvt) {sm, {0, integer, half, f32, cvt}},
#include "cast/costs.def"
};

static const Costs *costs_of(unsigned sm)
{
    size_t i = sizeof costs / sizeof *costs - 1;
    while (i > 0 && costs[i].sm > sm)
        i--;
    return &costs[i];
}

CastCount cast_count(const CastPlan *plan)
{
    const Costs *c = costs_of(plan->query.sm);
    CastCount count = {0};
    for (uint32_t i = 0; i < plan->count; i++) {
        CastUnit unit = cast_op_info[plan->ops[i].code].unit;
        count.unit[unit]++;
        count.total += unit != CAST_UNIT_NONE;
        count.cost += c->unit[unit];
    }
    count.unit[CAST_UNIT_INT] -= plan->table_ops;
    count.total -= plan->table_ops;
    count.cost -= plan->table_ops * c->unit[CAST_UNIT_INT];
    return count;
}

/* ---- plans ----------------------------------------------------------------- */

static bool is_source(DType t)
{
    const DTypeInfo *info = &dtype_info[t];
    return info->bits <= 8 && (dtype_is_integer(t) || info->kind == DKIND_FLOAT);
}

bool is_narrowing(const CastQuery *query)
{
    DType from = query->from;
    return (from == DTYPE_f16 || from == DTYPE_bf16 || from == DTYPE_f32) &&
           is_source(query->to) && !query->packed && !query->deferred;
}

unsigned cast_source_words(const CastQuery *query)
{
    return (query->elements * dtype_bits(query->from) + 31) / 32;
}

static Planner planner_of(Arena *arena, const CastQuery *query, const CastZeros *zeros)
{
    Planner p = {.arena = arena, .query = query, .from = &dtype_info[query->from],
                 .packed = query->packed != DTYPE_none, .zeros = zeros,
                 .in_words = cast_source_words(query)};
    if (p.packed)
        cast_storage(query->from, query->packed, &p.storage);
    for (unsigned i = 0; i < p.in_words; i++)
        p.source[i] = (uint16_t)node_of(&p, (CastOp){.code = CAST_input, .imm = i});
    return p;
}

/* Keeps the operations that the result needs, in their order. */
static void keep_used(Planner *p)
{
    bool *used = arena_array(p->arena, bool, p->count);
    uint16_t *number = arena_array(p->arena, uint16_t, p->count);
    uint32_t count = 0;
    for (unsigned i = 0; i < p->word_count; i++)
        used[p->words[i]] = true;
    for (uint32_t i = p->count; i-- > 0;)
        for (unsigned k = 0; used[i] && k < cast_op_info[p->ops[i].code].inputs; k++)
            used[p->ops[i].in[k]] = true;
    for (uint32_t i = 0; i < p->count; i++) {
        if (!used[i])
            continue;
        CastOp op = p->ops[i];
        for (unsigned k = 0; k < cast_op_info[op.code].inputs; k++)
            op.in[k] = number[op.in[k]];
        number[i] = (uint16_t)count;
        p->ops[count++] = op;
    }
    p->count = count;
    for (unsigned i = 0; i < p->word_count; i++)
        p->words[i] = number[p->words[i]];
}

/* Returns true when the family serves the query, and subtracts zero points if there are
 * any. */
static bool does_family(const CastQuery *query, const CastZeros *zeros, CastFamily family)
{
    if (zeros && family != CAST_FAMILY_magic && family != CAST_FAMILY_subnormal)
        return false;
    if (query->families && !(query->families >> family & 1))
        return false;
    return query->deferred == (family == CAST_FAMILY_bare) &&
           is_narrowing(query) == (family >= CAST_FAMILY_linear);
}

/* The plan by one family, decoding to `via`; false when it does not do. */
static bool plan_family(Arena *arena, const CastQuery *query, const CastZeros *zeros,
                        CastFamily family, DType via, CastPlan *plan)
{
    Planner p = planner_of(arena, query, zeros);
    if (!builders[family](&p, via) || (!is_narrowing(query) && !finish_words(&p, via)))
        return false;
    keep_used(&p);
    *plan = (CastPlan){.query = *query, .family = family, .via = via,
                       .less = zeros ? zeros->type : DTYPE_none, .ops = p.ops,
                       .count = p.count, .out_words = p.word_count};
    memcpy(plan->out, p.words, p.word_count * sizeof *p.words);
    memcpy(plan->exponents, p.exponents, sizeof p.exponents);
    return true;
}

/* Types that families may decode to on the way to another; the last one, `resort`, only
 * when the others have no plan. */
typedef struct Ways {
    DType first, second, resort;
} Ways;

static Ways ways_of(const CastQuery *query)
{
    if (is_narrowing(query))
        return (Ways){query->from, query->from == DTYPE_f32 ? DTYPE_none : DTYPE_f32,
                      DTYPE_none};
    if (query->deferred)
        return (Ways){.first = query->to};
    switch (query->to) {
    case DTYPE_bf16:
        return (Ways){.first = DTYPE_bf16};
    case DTYPE_f16:
        return (Ways){.first = DTYPE_f16, .resort = DTYPE_bf16};
    case DTYPE_f32:
    case DTYPE_tf32:
        return (Ways){DTYPE_f32, DTYPE_bf16, DTYPE_none};
    case DTYPE_i8:
    case DTYPE_u8:
    case DTYPE_f8e4m3:
    case DTYPE_f8e5m2:
        return (Ways){query->to, DTYPE_f16, DTYPE_bf16};
    default:
        return (Ways){DTYPE_none, DTYPE_none, DTYPE_none};
    }
}

/* Returns the rank of a plan, less is better: its cost, and among equal costs the
 * operations of the integer pipe, which tends to be the busiest. */
static unsigned rank_of(const CastPlan *plan)
{
    CastCount count = cast_count(plan);
    return count.cost * (CAST_OPS_MAX + 1) + count.unit[CAST_UNIT_INT];
}

/* Puts the best of `plan`, of rank `best`, and the plans that decode to `via` into
 * `plan`; its rank. */
static unsigned choose(Arena *arena, const CastQuery *query, const CastZeros *zeros,
                       DType via, CastPlan *plan, unsigned best)
{
    CastPlan candidate;
    for (CastFamily f = 0; via != DTYPE_none && f < CAST_FAMILY_COUNT; f++) {
        if (f == CAST_FAMILY_codebook || !does_family(query, zeros, f) ||
            !plan_family(arena, query, zeros, f, via, &candidate))
            continue;
        unsigned rank = rank_of(&candidate);
        if (rank < best) {
            *plan = candidate;
            best = rank;
        }
    }
    return best;
}

bool cast_plan(Arena *arena, const CastQuery *query, CastPlan *plan)
{
    Ways ways = ways_of(query);
    bool known = is_source(query->from) || is_narrowing(query);
    if (!known || query->from == query->to || (query->deferred && query->packed != query->to))
        return false;
    unsigned best = choose(arena, query, NULL, ways.first, plan, UINT32_MAX);
    best = choose(arena, query, NULL, ways.second, plan, best);
    if (best == UINT32_MAX)
        best = choose(arena, query, NULL, ways.resort, plan, best);
    return best != UINT32_MAX;
}

/* ---- codebooks --------------------------------------------------------------- */

/* Operations that read no code: they and what they read come from the table. */
static unsigned count_table_ops(Arena *arena, const CastPlan *plan)
{
    bool *reads = arena_array(arena, bool, plan->count);
    unsigned count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        const CastOp *op = &plan->ops[i];
        reads[i] = op->code == CAST_input && op->imm < cast_source_words(&plan->query);
        for (unsigned k = 0; k < cast_op_info[op->code].inputs; k++)
            reads[i] |= reads[op->in[k]];
        count += !reads[i] && cast_op_info[op->code].unit != CAST_UNIT_NONE;
    }
    return count;
}

bool cast_plan_codebook(Arena *arena, const CastQuery *query, CastPlan *plan)
{
    if (!plan_family(arena, query, NULL, CAST_FAMILY_codebook, query->to, plan))
        return false;
    plan->table_ops = count_table_ops(arena, plan);
    return true;
}

bool cast_plan_zeros(Arena *arena, const CastQuery *query, const CastZeros *zeros,
                     CastPlan *plan)
{
    DType to = query->to;
    if (!is_source(query->from) || !dtype_is_integer(zeros->type) ||
        (to != DTYPE_f16 && to != DTYPE_bf16 && to != DTYPE_f32))
        return false;
    return choose(arena, query, zeros, to, plan, UINT32_MAX) != UINT32_MAX;
}
