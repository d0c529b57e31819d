/* Splits thread numbers into what butterflies, shared memory and the result's
 * own layout take care of. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "select/plan.h"
#include "support/remark.h"

enum { WARP = 32, WORD_BYTES = 4 };

unsigned reduce_bytes(DType t)
{
    return dtype_bits(t) > 32 ? 8 : 4;
}

static bool is_power_of_two(int64_t v)
{
    return (v & (v - 1)) == 0;
}

void thread_digits_push(ThreadDigits *digits, int64_t weight, int64_t extent)
{
    if (extent == 1)
        return;
    digits->digit[digits->count++] = (ThreadDigit){weight, extent};
    digits->size *= extent;
}

ThreadDigits replica_digits(const Layout *l)
{
    ThreadDigits digits = {.size = 1};
    int64_t weight = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        weight /= l->spatial[i].extent;
        if (l->spatial[i].mode < 0)
            thread_digits_push(&digits, weight, l->spatial[i].extent);
    }
    return digits;
}

int64_t lanes_of_digit(int64_t weight, int64_t extent)
{
    int64_t joined = 1;
    if (is_power_of_two(weight))
        while (extent % (2 * joined) == 0 && weight * joined < WARP)
            joined *= 2;
    return joined;
}

/* Max and min of 16-bit floats are those of f16x2 and bf16x2. */
static bool reduces_pairs(const Op *op)
{
    ReduceKind kind = reduce_kind(op);
    DType t = op->operands[0]->type->dtype;
    return (kind == REDUCE_MAX || kind == REDUCE_MIN) && (t == DTYPE_f16 || t == DTYPE_bf16);
}

/* Integers of a word, of all lanes of a warp. */
static bool reduces_by_redux(const Op *op, uint32_t lanes)
{
    ReduceKind kind = reduce_kind(op);
    DType t = op->operands[0]->type->dtype;
    return lanes == WARP - 1 && !dtype_is_float(t) && reduce_bytes(t) == WORD_BYTES &&
           kind != REDUCE_PRODUCT && !reduce_gives_index(kind);
}

/* Counts the bytes of shared memory for partial results, and after them for indices. */
static void plan_scratch_bytes(ReducePlan *plan, const Op *op)
{
    int64_t entries = plan->count * plan->partials.size * plan->places.size;
    if (plan->partials.size == 1)
        return;
    plan->indices = entries * reduce_bytes(op->operands[0]->type->dtype);
    plan->scratch = plan->indices;
    if (reduce_gives_index(reduce_kind(op)))
        plan->scratch += entries * REDUCE_INDEX_BYTES;
}

ReducePlan reduce_plan(const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    const Layout *l = from->layout;
    uint32_t dims = reduce_dims(op);
    ReducePlan plan = {.pairs = reduces_pairs(op), .result_slots = to->layout->slots,
                       .partials = {.size = 1}, .places = {.size = 1}};
    plan.count = plan.pairs ? (plan.result_slots + 1) / 2 : plan.result_slots;
    int64_t weight = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *d = &l->spatial[i];
        weight /= d->extent;
        if (d->mode < 0 || !(dims >> l->modes[d->mode].dim & 1)) {
            thread_digits_push(&plan.places, weight, d->extent);
            continue;
        }
        int64_t joined = lanes_of_digit(weight, d->extent);
        plan.lanes |= (uint32_t)(weight * (joined - 1));
        thread_digits_push(&plan.partials, weight * joined, d->extent / joined);
    }
    plan.redux = reduces_by_redux(op, plan.lanes);
    plan_scratch_bytes(&plan, op);
    return plan;
}

static bool plan_reduce(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)m;
    (void)sm;
    plan->reduce = reduce_plan(op);
    plan->scratch = plan->reduce.scratch;
    return true;
}

static int64_t reduce_scratch(Module *m, const Op *op)
{
    (void)m;
    return reduce_plan(op).scratch;
}

/* Counts shfl.sync, or redux.sync, of one thread. */
static int64_t count_exchanges(const ReducePlan *plan, const Op *op)
{
    unsigned words = reduce_bytes(op->operands[0]->type->dtype) / WORD_BYTES;
    int64_t steps = plan->redux ? 1 : __builtin_popcount(plan->lanes);
    return steps * plan->count * (words + reduce_gives_index(reduce_kind(op)));
}

/* Appends "8 lanes", unless it is one alone. */
static void add_step(Text *text, int64_t count, const char *step)
{
    if (count > 1)
        text_printf(text, "%s%lld %s", text->len ? ", " : "", (long long)count, step);
}

static void remark_reduce(Module *m, const Op *op, const Plan *plan)
{
    const ReducePlan *p = &plan->reduce;
    Text text;
    text_init(&text, &m->arena);
    add_step(&text, op->operands[0]->type->layout->slots / p->result_slots,
             p->pairs ? "slots in pairs" : "slots");
    add_step(&text, INT64_C(1) << __builtin_popcount(p->lanes), "lanes");
    add_step(&text, p->partials.size, "groups by shared memory");
    REMARK(m, op, ReduceChosen, R(op_info[op->code].name),
           R(text.len ? text_string(&text) : "single elements"), R(count_exchanges(p, op)),
           R(p->redux ? "redux.sync" : "shuffles"), R(p->scratch));
}

const Planner planner_reduce = {
    .family = PLAN_reduce, .plan = plan_reduce, .remark = remark_reduce,
    .scratch = reduce_scratch,
};
