/* Splits a program whose marked loop copies by an mbarrier into two roles: a producer warp
 * after the block's warps, and these, the consumers.
 *
 *   warps(8)                                     warps(9)
 *   %full = allocate_mbarrier {count = 8}        %full = allocate_mbarrier {count = 1}   [S]
 *                                                %empty = allocate_mbarrier {count = 8}  [S]
 *   for %i in 0 .. %n pipelined(S) {       =>    thread_group(256, 32) {
 *     copy_async_bulk .., %s[..], %full[0]         for %i in 0 .. %n {
 *     mbarrier_arrive %full[0]                       mbarrier_wait %empty[%i mod S], %i / S - 1
 *     mbarrier_wait %full[0], %i                     copy_async_bulk .., %s[%i mod S, ..], ..
 *     A(%s)                                          mbarrier_arrive %full[%i mod S]
 *     synchronize                                  }
 *   }                                            }
 *   B                                            thread_group(0, 256) {
 *                                                  for %i in 0 .. %n {
 *                                                    mbarrier_wait %full[%i mod S], %i / S
 *                                                    A(%s[%i mod S])
 *                                                    mbarrier_arrive %empty[%i mod S]
 *                                                  }
 *                                                  B
 *                                                }
 *
 * Products in flight (dot_async) go one iteration further: pipeline_products.c.
 *
 * The producer runs as far ahead as the ring allows. A slot is free for iteration i when every
 * consumer warp has arrived S iterations before. Barriers inside of A stay where its ops access
 * other memory than the ring: there they are of the consumers. Where they go, one after the loop
 * orders accesses before it and after it that they ordered. */
#include "passes/pipeline_rewrite.h"

#include "ir/loop.h"
#include "ir/op_access.h"

enum { PRODUCER_THREADS = 32 };

typedef struct Ring {
    Value *full, *empty;    /* mbarriers, one a slot */
    bool behind;            /* a slot is released one iteration after its use */
    bool ordered;           /* barriers of the loop order accesses before it and after it */
} Ring;

static const Expr *index_of_loop(const Op *loop, Module *m)
{
    return expr_value(&m->exprs, for_index(loop));
}

/* The phase of its slot's mbarriers in the iteration of index `i`. */
static const Expr *phase_of(const Rewrite *r, const Expr *i)
{
    return rewrite_apply(r, SCALAR_div, iteration_of(r, i), rewrite_constant(r, r->stages));
}

/* ---- mbarriers ---------------------------------------------------------------------- */

static Value *build_mbarriers(const Rewrite *r, const char *name, int64_t arrivals)
{
    Op *old = r->plan.mbarrier->def;
    Attr count = {.kind = ATTR_ARRIVALS, .integer = arrivals};
    Op *op = build_op(r->m, OP_allocate_mbarrier, old->loc, NULL, 0, &count, 1);
    op_insert(old->parent, op, old);
    return build_result(r->m, op, name, old->loc, type_mbarrier(r->m, r->stages));
}

static Op *build_mbarrier_op(const Rewrite *r, OpCode code, Loc loc, Value *mbarriers,
                             const Expr *slot)
{
    Attr element = {.kind = ATTR_ELEMENT, .expr = slot};
    return build_op(r->m, code, loc, &mbarriers, 1, &element, 1);
}

static void insert_arrival(const Rewrite *r, Value *mbarriers, const Expr *slot, Region *into)
{
    op_insert(into, build_mbarrier_op(r, OP_mbarrier_arrive, r->plan.arrive->loc, mbarriers, slot),
              region_yield(into));
}

static void insert_wait(const Rewrite *r, Value *mbarriers, const Expr *slot, const Expr *phase,
                        Region *into)
{
    Op *op = build_mbarrier_op(r, OP_mbarrier_wait, r->plan.wait->loc, mbarriers, slot);
    op_set_attr(r->m, op, (Attr){.kind = ATTR_STATE, .expr = phase});
    op_insert(into, op, into->first);
}

/* ---- the producer -------------------------------------------------------------------- */

static Region *build_group(const Rewrite *r, int64_t begin, int64_t threads)
{
    Attr range[] = {{.kind = ATTR_BEGIN, .expr = rewrite_constant(r, begin)},
                    {.kind = ATTR_THREADS, .expr = rewrite_constant(r, threads)}};
    Op *op = build_op(r->m, OP_thread_group, r->loop->loc, NULL, 0, range, 2);
    Region *body = build_region(r->program, op);
    build_op_region(r->m, op, body);
    op_insert(r->loop->parent, op, r->loop);
    insert_plain(r, OP_yield, body, NULL);
    return body;
}

/* A loop over the indices of the marked one, which carries nothing. */
static Op *build_loop(const Rewrite *r, Region *into)
{
    Value *old = for_index(r->loop);
    Attr bounds[] = {{.kind = ATTR_LOWER, .expr = r->lower},
                     {.kind = ATTR_UPPER, .expr = r->upper},
                     {.kind = ATTR_STEP, .expr = r->step}};
    unsigned count = op_expr(r->loop, ATTR_STEP) ? 3 : 2;
    Op *op = build_op(r->m, OP_for, r->loop->loc, NULL, 0, bounds, count);
    Region *body = build_region(r->program, op);
    build_op_region(r->m, op, body);
    build_region_argument(body, old->name, old->loc, old->type);
    insert_plain(r, OP_yield, body, NULL);
    op_insert(into, op, into->first);
    return op;
}

static void count_in_slot(const Rewrite *r, Region *copies, const Expr *slot)
{
    for (Op *op = copies->first; op; op = op->next)
        if (op_completion(op) == COMPLETION_MBARRIER)
            op_set_attr(r->m, op, (Attr){.kind = ATTR_ELEMENT, .expr = slot});
}

/* Value.data of the old mbarriers points to the full ones, so that copies take these. Returns the
 * region of the copies. */
static Region *build_producer(const Rewrite *r, const Ring *ring, Region *group)
{
    Op *loop = build_loop(r, group);
    Region *body = loop->regions[0];
    const Expr *index = index_of_loop(loop, r->m), *slot = slot_after(r, index, 0);
    const Expr *last = rewrite_apply(r, SCALAR_sub, phase_of(r, index), rewrite_constant(r, 1));
    r->plan.mbarrier->data = ring->full;
    insert_early(&(Ahead){r, index, slot}, body, region_yield(body));
    count_in_slot(r, body, slot);
    insert_wait(r, ring->empty, slot, last, body);
    insert_arrival(r, ring->full, slot, body);
    return body;
}

/* ---- the consumers ------------------------------------------------------------------- */

/* Returns true when an op of the body accesses memory that is not of the ring. */
static bool accesses_others(const PipelinePlan *plan)
{
    for (uint32_t i = 0; i < plan->d.access_count; i++) {
        const BodyAccess *a = &plan->d.accesses[i];
        if (!plan->early[a->top] && !(a->memory->type->kind == TYPE_SHARED && a->memory->data))
            return true;
    }
    return false;
}

/* Returns false for an op that accesses memory. */
static bool leaves_memory(Op *op, void *data)
{
    OpAccess accesses[ACCESSES_MAX];
    (void)data;
    return op_accesses(op, accesses) == 0;
}

/* Returns true when an op from `op` on, forward or back in its region, accesses memory before a
 * barrier comes. */
static bool meets_access(Op *op, bool back)
{
    for (; op && op_sync(op) != SYNC_BARRIER; op = back ? op->prev : op->next) {
        bool leaves = leaves_memory(op, NULL);
        for (unsigned i = 0; leaves && i < op->region_count; i++)
            leaves = region_walk(op->regions[i], leaves_memory, NULL);
        if (!leaves)
            return true;
    }
    return false;
}

static void drop_copies(const Rewrite *r, const Ring *ring)
{
    bool keeps_barriers = accesses_others(&r->plan), dropped = false;
    for (uint32_t i = 0; i < r->plan.d.op_count; i++) {
        Op *op = r->plan.d.ops[i];
        bool replaced = op == r->plan.arrive || op == r->plan.wait ||
                        op_completion(op) == COMPLETION_MBARRIER;
        bool drops = op_sync(op) == SYNC_BARRIER && !keeps_barriers;
        if (replaced || drops)
            op_remove(op);
        dropped |= drops;
    }
    if (dropped && ring->ordered)
        insert_plain(r, OP_synchronize, r->loop->parent, r->loop->next);
}

/* Releases the slot of the iteration before, if there is one. */
static void release_last(const Rewrite *r, const Ring *ring, const Expr *index, Region *body)
{
    Attr cond = {.kind = ATTR_COND, .expr = rewrite_apply(r, SCALAR_gt, index, r->lower)};
    Op *op = build_op(r->m, OP_if, r->loop->loc, NULL, 0, &cond, 1);
    for (int i = 0; i < 2; i++) {
        Region *branch = build_region(r->program, op);
        build_op_region(r->m, op, branch);
        insert_plain(r, OP_yield, branch, NULL);
    }
    insert_arrival(r, ring->empty, slot_after(r, index, -1), op->regions[0]);
    op_insert(body, op, region_yield(body));
}

static void build_consumers(const Rewrite *r, const Ring *ring)
{
    Region *body = r->loop->regions[0];
    const Expr *index = index_of_loop(r->loop, r->m), *slot = slot_after(r, index, 0);
    drop_copies(r, ring);
    enter_rings(r, body, slot);
    insert_wait(r, ring->full, slot, phase_of(r, index), body);
    if (ring->behind)
        release_last(r, ring, index, body);
    else
        insert_arrival(r, ring->empty, slot, body);
}

/* Moves the loop and what follows it, and the marked ops before it, into the consumers. */
static void move_consumers(const Rewrite *r, Region *group)
{
    Region *from = r->loop->parent;
    bool after = false;
    for (Op *op = from->first, *next; op; op = next) {
        next = op->next;
        after |= op == r->loop;
        if (!after && !op->mark)
            continue;
        op_remove(op);
        op_insert(group, op, region_yield(group));
    }
}

void rewrite_roles(Rewrite *r)
{
    int64_t threads = program_threads(r->program);
    const char *name = r->plan.mbarrier->name;
    Op *products = products_behind(r);
    Ring ring = {.full = build_mbarriers(r, name, 1), .behind = products != NULL,
                 .empty = build_mbarriers(r, "empty", r->program->warps),
                 .ordered = meets_access(r->loop->prev, true) &&
                            meets_access(r->loop->next, false)};
    build_rings(r);
    Region *copies = build_producer(r, &ring, build_group(r, threads, PRODUCER_THREADS));
    build_consumers(r, &ring);
    op_remove(r->plan.mbarrier->def);
    move_consumers(r, build_group(r, 0, threads));
    space_rings(r, copies);
    r->program->warps++;
    program_clear_data(r->program);
    if (products)
        put_products_behind(r, products);
}
