/* The planner of arrivals, waits, barriers and semaphores. An arrival in its plain form
 * releases for the threads of its own block. It says that a ring's slot may be written again, and
 * their reads of the slot are kept before it (select/reads.h): that is all that most programs need.
 * Where a block may see what another one's threads wrote, or write over it, arrivals release and
 * waits acquire for the cluster, which costs a fence of the whole device. */
#include "select/cluster.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "memory/hazards.h"
#include "select/plan.h"
#include "select/reads.h"
#include "support/remark.h"

/* The global memory that the program writes: arguments and workspace tensors. */
typedef struct Written {
    Arena *arena;
    const Value **origins;
    const Op **ops;             /* the first that writes there */
    uint32_t count, capacity, op_capacity;
    bool shared;                /* another op accesses some of it */
    bool has_locks;             /* these order it, and nothing else does */
} Written;

/* Returns the value that stands for a global tensor's memory, or NULL for a shared one. */
static const Value *global_origin(const Value *memory)
{
    const Value *root = memory_root(memory);
    if (memory->type->kind != TYPE_GLOBAL)
        return NULL;
    return root->def && root->def->code == OP_view_global ? root->def->operands[0] : root;
}

static bool find_origin(const Written *w, const Value *origin, uint32_t *at)
{
    for (*at = 0; *at < w->count; ++*at)
        if (w->origins[*at] == origin)
            return true;
    return false;
}

static bool add_written(Op *op, void *data)
{
    Written *w = data;
    OpAccess access;
    uint32_t at, count = w->count;
    if (!op_access_written(op, &access))
        return true;
    const Value *origin = global_origin(access.tile.memory);
    if (!origin || find_origin(w, origin, &at))
        return true;
    arena_push(w->arena, w->origins, w->count, w->capacity, origin);
    arena_push(w->arena, w->ops, count, w->op_capacity, (const Op *)op);
    return true;
}

/* Tiles that the copy unit writes are no news to other blocks before they have waited for them by
 * other means: an arrival does not order them. */
static bool is_by_copy_unit(const Op *op, const OpAccess *access)
{
    return access->mode == MODE_WRITE && completion_is_async_proxy(op_completion(op));
}

/* Returns true when blocks may see, or write over, by this access what another one's threads
 * wrote by the first writer. */
static bool sees(const Op *op, const OpAccess *access, const Op *writer)
{
    OpAccess written;
    if (access->mode == MODE_ATOMIC)
        return true;
    if (is_by_copy_unit(op, access) && op_access_written(writer, &written) &&
        is_by_copy_unit(writer, &written))
        return false;
    return op != writer || !hazards_apart_in_cluster(op);
}

static bool find_shared(Op *op, void *data)
{
    Written *w = data;
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    w->shared |= count > 0 && op_attr(op, ATTR_RANK);
    for (unsigned i = 0; i < count && !w->has_locks; i++) {
        uint32_t at;
        const Value *origin = global_origin(accesses[i].tile.memory);
        if (!origin || !find_origin(w, origin, &at))
            continue;
        w->shared |= sees(op, &accesses[i], w->ops[at]);
    }
    return !w->shared;
}

bool cluster_publishes(const Program *p)
{
    Written w = {.arena = &p->module->scratch, .has_locks = program_has_locks(p)};
    if (program_blocks(p) == 1)
        return false;
    ArenaMark mark = arena_mark(w.arena);
    region_walk(p->body, add_written, &w);
    region_walk(p->body, find_shared, &w);
    arena_reset(w.arena, mark);
    return w.shared;
}

/* An mbarrier array, while the program is searched for an arrival by rank. */
static bool arrives_elsewhere(Op *op, void *data)
{
    return op->code != OP_mbarrier_arrive || !op_attr(op, ATTR_RANK) || op->operands[0] != data;
}

/* Returns true where threads of other blocks arrive at the mbarriers of an arrival or a wait. Where only the block's own do,
 * they order enough for the block: what one of its threads then tells other blocks is all that it knows (PTX ISA, memory
 * consistency model: causality order is transitive). */
static bool is_told_by_others(const Op *op)
{
    return op->operand_count > 0 &&
           !region_walk(op->parent->program->body, arrives_elsewhere, op->operands[0]);
}

static bool plan_sync(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)m, (void)sm;
    const Program *p = op->parent->program;
    bool reads = reads_may_be_in_flight(op);
    plan->sync = (SyncPlan){.remote = op_attr(op, ATTR_RANK) && program_blocks(p) > 1,
                            .publishes = program_has_remote(p) && is_told_by_others(op) &&
                                         cluster_publishes(p),
                            .reads = reads,
                            .reads_others = reads && program_blocks(p) > 1 && remote_reads_may_be_in_flight(op)};
    return true;
}

static void remark_sync(Module *m, const Op *op, const Plan *plan)
{
    if (plan->sync.remote && plan->sync.publishes)
        REMARK(m, op, ArriveFenced, R(op_info[op->code].name));
    else if (plan->sync.remote)
        REMARK(m, op, ArriveUnfenced, R(op_info[op->code].name));
    if (plan->sync.reads)
        REMARK(m, op, ReadsFenced, R(op_info[op->code].name));
}

const Planner planner_sync = {
    .family = PLAN_sync, .plan = plan_sync, .remark = remark_sync,
};
