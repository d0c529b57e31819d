/* Shared memory, one array: first the tensors that have an offset, then all
 * other tensors and mbarriers in order, then scratch.
 *
 *     0        planned        tensors
 *     | planned   | in order     | of one op at a time     | of a group's | ..
 *
 * All ops of the same threads that need scratch have the same: each one ends with a
 * barrier, after which no thread reads it. Other threads may use theirs meanwhile. */
#include "codegen/internal.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "memory/lifetimes.h"
#include "select/plan.h"

typedef struct SharedUse {
    Arena *arena;
    int64_t planned, tensors;   /* their ends; INT64_MAX past 2^63 */
    SharedScratch scratch;
    int64_t end;                /* of all */
} SharedUse;

static bool is_allocation(const Op *op)
{
    return op->code == OP_allocate_shared || op->code == OP_allocate_mbarrier;
}

/* Bytes of the tensor of `op`. */
static int64_t tensor_bytes(const Op *op)
{
    enum { MBARRIER_BYTES = 8 };
    if (op->code == OP_allocate_mbarrier)
        return MBARRIER_BYTES * type_extent(op->results[0]->type, 0);
    int64_t bits = type_shared_bits(op->results[0]->type);
    return bits < 0 ? INT64_MAX : bits / 8 + (bits % 8 != 0);
}

/* Places `bytes` after the first `used`, at `*offset`, a multiple of `align`; returns their
 * end. */
static int64_t aligned_end(int64_t used, int64_t bytes, int64_t align, int64_t *offset)
{
    int64_t end;
    *offset = 0;
    if (used > INT64_MAX - align)
        return INT64_MAX;
    *offset = (used + align - 1) / align * align;
    return __builtin_add_overflow(*offset, bytes, &end) ? INT64_MAX : end;
}

static int64_t shared_end(int64_t used, int64_t bytes, int64_t *offset)
{
    return aligned_end(used, bytes, SHARED_ALIGN, offset);
}

/* Places the bytes of `op`, which may have an offset already, aligned as the verifier found. */
static int64_t tensor_end(const Op *op, int64_t used, int64_t *offset)
{
    const Attr *planned = op_attr(op, ATTR_OFFSET);
    int64_t align = op->code == OP_allocate_shared && !planned ? shared_alignment(op->results[0])
                                                               : SHARED_ALIGN;
    return aligned_end(planned ? planned->integer : used, tensor_bytes(op), align, offset);
}

/* ---- scratch --------------------------------------------------------------- */

static ThreadScratch *find_scratch(const SharedScratch *scratch, ThreadRange threads)
{
    for (uint32_t i = 0; i < scratch->count; i++)
        if (thread_range_equal(scratch->of[i].threads, threads))
            return &scratch->of[i];
    return NULL;
}

static void add_scratch(SharedUse *use, ThreadRange threads, int64_t bytes)
{
    ThreadScratch *known = find_scratch(&use->scratch, threads);
    if (known)
        known->bytes = known->bytes > bytes ? known->bytes : bytes;
    else if (bytes)
        arena_push(use->arena, use->scratch.of, use->scratch.count, use->scratch.capacity,
                   ((ThreadScratch){.threads = threads, .bytes = bytes}));
}

/* ---- a program's bytes ------------------------------------------------------ */

static bool add_planned(Op *op, void *data)
{
    SharedUse *use = data;
    int64_t offset, end;
    add_scratch(use, region_threads(op->parent),
                plan_scratch(op->parent->program->module, op));
    if (op->code == OP_allocate_shared && op_attr(op, ATTR_OFFSET)) {
        end = tensor_end(op, 0, &offset);
        use->planned = use->planned > end ? use->planned : end;
    }
    return true;
}

static bool add_other(Op *op, void *data)
{
    SharedUse *use = data;
    int64_t offset;
    if (is_allocation(op) && !op_attr(op, ATTR_OFFSET))
        use->tensors = tensor_end(op, use->tensors, &offset);
    return true;
}

/* `scratch` lies on the module's scratch arena. */
static SharedUse shared_use(const Program *p)
{
    SharedUse use = {.arena = &p->module->scratch};
    region_walk(p->body, add_planned, &use);
    use.tensors = use.planned;
    region_walk(p->body, add_other, &use);
    use.end = use.tensors;
    for (uint32_t i = 0; i < use.scratch.count; i++) {
        ThreadScratch *s = &use.scratch.of[i];
        use.end = shared_end(use.end, s->bytes, &s->offset);
    }
    return use;
}

int64_t codegen_shared_bytes(const Program *p)
{
    ArenaMark mark = arena_mark(&p->module->scratch);
    int64_t end = shared_use(p).end;
    arena_reset(&p->module->scratch, mark);
    return end;
}

/* ---- emitting ---------------------------------------------------------------- */

bool shared_open(Codegen *cg, Program *p)
{
    SharedUse use = shared_use(p);
    ArenaMark mark = arena_mark(&p->module->scratch);
    Lifetimes l = lifetimes_of(p);
    bool ok = lifetimes_check_offsets(p->module, &l);
    arena_reset(&p->module->scratch, mark);
    cg->shared_used = use.planned;
    cg->scratch = use.scratch;
    return ok;
}

/* The address of the bytes of `op` from `offset` up to `end`. */
static LLVMValueRef shared_address(Codegen *cg, const Op *op, int64_t offset, int64_t end)
{
    if (end > cg->target->shared_bytes) {
        diag_error(cg->diag, op->loc,
                   "shared memory up to this %s is %lld bytes, a block on %s has %lld",
                   op_info[op->code].name, (long long)end, cg->target->name,
                   (long long)cg->target->shared_bytes);
        return NULL;
    }
    LLVMValueRef at = const_i64_of(cg, offset);
    return LLVMBuildGEP2(cg->builder, cg->i8, cg->shared, &at, 1, "");
}

LLVMValueRef shared_reserve(Codegen *cg, const Op *op)
{
    int64_t offset, end = tensor_end(op, cg->shared_used, &offset);
    if (!op_attr(op, ATTR_OFFSET))
        cg->shared_used = end;
    return shared_address(cg, op, offset, end);
}

LLVMValueRef shared_scratch(Codegen *cg, const Op *op, const Plan *plan)
{
    const ThreadScratch *s = find_scratch(&cg->scratch, cg->threads);
    int64_t offset, end = shared_end(s->offset, plan->scratch, &offset);
    return shared_address(cg, op, offset, end);
}

/* ---- ranges ------------------------------------------------------------------ */

typedef struct RangeList {
    Arena *arena;
    const SharedUse *use;
    int64_t used;               /* end of the tensors so far */
    SharedRange *tensors, *ranges;
    uint32_t tensor_count, tensor_capacity, count, capacity;
} RangeList;

static void add_range(RangeList *list, SharedRange range)
{
    arena_push(list->arena, list->ranges, list->count, list->capacity, range);
}

static void add_tensor(RangeList *list, const Op *op)
{
    int64_t offset, end = tensor_end(op, list->used, &offset);
    if (!op_attr(op, ATTR_OFFSET))
        list->used = end;
    arena_push(list->arena, list->tensors, list->tensor_count, list->tensor_capacity,
               ((SharedRange){.tensor = op->results[0], .begin = offset, .end = end}));
}

static void add_operand(RangeList *list, const Op *op, const Value *operand)
{
    const Value *root = memory_root(operand);
    for (uint32_t i = 0; i < list->tensor_count; i++) {
        SharedRange range = list->tensors[i];
        range.op = op;
        if (range.tensor == root)
            add_range(list, range);
    }
}

static bool add_ranges(Op *op, void *data)
{
    RangeList *list = data;
    if (is_allocation(op))
        add_tensor(list, op);
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == TYPE_SHARED)
            add_operand(list, op, op->operands[i]);
    if (plan_scratch(op->parent->program->module, op)) {
        const ThreadScratch *s = find_scratch(&list->use->scratch, region_threads(op->parent));
        add_range(list, (SharedRange){op, NULL, s->offset, s->offset + s->bytes});
    }
    return true;
}

SharedRange *shared_ranges(const Program *p, uint32_t *count)
{
    SharedUse use = shared_use(p);
    RangeList list = {.arena = use.arena, .use = &use, .used = use.planned};
    region_walk(p->body, add_ranges, &list);
    *count = list.count;
    return list.ranges;
}
