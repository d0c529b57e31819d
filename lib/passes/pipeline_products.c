/* Products of a split loop that run one iteration behind: the loop's dot_wait 0 becomes a wait
 * for all but the newest group, and the tensor cores go from one iteration's product to the
 * next one's without a gap. The slot that an iteration releases is that of the one before it.
 *
 *     %p = dot_async %a, %b, %acc               %p = dot_async %a, %b, %acc
 *     %s = dot_wait %p                    =>    %q = dot_wait %p {pending = 1}
 *     yield %s                                  if %i > 0 {
 *   }                                             mbarrier_arrive %empty[(%i - 1) mod S]
 *                                               }
 *                                               yield %q
 *                                             }
 *                                             %s = dot_wait %acc */
#include "passes/pipeline_rewrite.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "passes/pass.h"

static bool is_product(const Op *op)
{
    return op_completion(op) == COMPLETION_PRODUCT;
}

/* ---- finding --------------------------------------------------------------------------- */

/* Returns the one wait for products of the loop's body, or NULL. */
static Op *find_wait(const PipelinePlan *plan)
{
    Op *found = NULL;
    for (uint32_t i = 0; i < plan->d.op_count; i++) {
        if (!op_syncs(plan->d.ops[i], SYNC_WAIT, COMPLETION_PRODUCT))
            continue;
        if (found || op_wait_pending(plan->d.ops[i]))
            return NULL;
        found = plan->d.ops[i];
    }
    return found;
}

static bool is_of_ring(const PipelinePlan *plan, const Value *memory)
{
    for (uint32_t i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i] == memory)
            return true;
    return false;
}

/* Returns true when products that the wait retires are all that reads the ring: nothing else
 * does, and none is issued after it. */
static bool products_read_ring(const PipelinePlan *plan, const Op *wait)
{
    for (uint32_t i = 0; i < plan->d.access_count; i++) {
        const BodyAccess *a = &plan->d.accesses[i];
        if (plan->early[a->top] || !is_of_ring(plan, a->memory))
            continue;
        if (!is_product(a->op) || plan->d.ops[a->top] != a->op || a->top > wait->mark)
            return false;
    }
    return true;
}

/* Returns the number of the carried value that is `v` in the next iteration, or -1. */
static int carried_as(const Op *loop, const Value *v)
{
    const Op *yield = region_yield(loop->regions[0]);
    int found = -1;
    for (unsigned i = 0; i < yield->operand_count; i++)
        if (yield->operands[i] == v)
            found = found < 0 ? (int)i : -2;
    return found;
}

typedef struct UseCount {
    const Value *value;
    const Op *allowed;      /* beside products */
    bool others;
} UseCount;

static bool count_uses(Op *op, void *data)
{
    UseCount *c = data;
    for (unsigned i = 0; i < op->operand_count; i++)
        c->others |= op->operands[i] == c->value && op != c->allowed && !is_product(op);
    return true;
}

/* Returns true when, in the loop, only products (and `allowed`) use `v`. */
static bool products_use(const Op *loop, const Value *v, const Op *allowed)
{
    UseCount c = {.value = v, .allowed = allowed};
    region_walk(loop->regions[0], count_uses, &c);
    return !c.others;
}

/* Returns true when each sum that the wait gives is carried to a product of the next iteration
 * and nothing else, and begins as a constant. */
static bool sums_are_carried(const Op *loop, const Op *wait)
{
    const Op *yield = region_yield(loop->regions[0]);
    for (unsigned i = 0; i < wait->result_count; i++) {
        int number = carried_as(loop, wait->results[i]);
        const Op *initial = number < 0 ? NULL : loop->operands[number]->def;
        if (!initial || initial->code != OP_allocate_register || !op_attr(initial, ATTR_INIT) ||
            !products_use(loop, for_carried(loop, (unsigned)number), NULL) ||
            !products_use(loop, wait->results[i], yield))
            return false;
    }
    return true;
}

Op *products_behind(const Rewrite *r)
{
    Op *wait = find_wait(&r->plan);
    if (!wait || !products_read_ring(&r->plan, wait) || !sums_are_carried(r->loop, wait))
        return NULL;
    return wait;
}

/* ---- rewriting ---------------------------------------------------------------------------- */

/* A sum of 0, say, of which nothing is in flight. */
static Value *build_initial(const Rewrite *r, const Value *complete)
{
    const Op *from = complete->def;
    Op *op = build_op(r->m, from->code, from->loc, NULL, 0, from->attrs, from->attr_count);
    op_insert(r->loop->parent, op, r->loop);
    return build_result(r->m, op, NULL, from->loc, type_pending(r->m, complete->type, true));
}

/* Lets carried value `number` be in flight; the value after the loop is `complete`. */
static void keep_in_flight(const Rewrite *r, Op *last, unsigned number)
{
    Value *out = r->loop->results[number];
    Value *complete = build_result(r->m, last, out->name, out->loc, out->type);
    value_forward(out, complete);
    r->loop->operands[number] = build_initial(r, r->loop->operands[number]);
    for_carried(r->loop, number)->type = out->type = type_pending(r->m, out->type, true);
}

static bool resolve(Op *op, void *data)
{
    op_resolve(data, op);
    return true;
}

/* Inserts the wait after the loop. What uses the loop's sums takes its results. */
static void build_last_wait(const Rewrite *r, const Op *wait)
{
    Value **sums = arena_array(&r->m->arena, Value *, wait->result_count);
    unsigned *numbers = arena_array(&r->m->scratch, unsigned, wait->result_count);
    for (unsigned i = 0; i < wait->result_count; i++) {
        numbers[i] = (unsigned)carried_as(r->loop, wait->results[i]);
        sums[i] = r->loop->results[numbers[i]];
    }
    Op *last = build_op(r->m, wait->code, wait->loc, sums, wait->result_count, NULL, 0);
    for (unsigned i = 0; i < wait->result_count; i++)
        keep_in_flight(r, last, numbers[i]);
    for (Op *op = r->loop->next; op; op = op->next) {
        op_resolve(r->m, op);
        for (unsigned i = 0; i < op->region_count; i++)
            region_walk(op->regions[i], resolve, r->m);
    }
    op_insert(r->loop->parent, last, r->loop->next);
}

void put_products_behind(const Rewrite *r, Op *wait)
{
    build_last_wait(r, wait);
    op_set_attr(r->m, wait, (Attr){.kind = ATTR_PENDING, .integer = 1});
    for (unsigned i = 0; i < wait->result_count; i++)
        wait->results[i]->type = type_pending(r->m, wait->results[i]->type, true);
}
