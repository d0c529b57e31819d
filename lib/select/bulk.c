/* Proofs for bulk copies. The address of the first element is, in bits,
 *
 *     base + (first + sum over dimensions d of offset[d] * stride[d]) * bits
 *
 * and it is aligned when every term is. */
#include "select/bulk.h"

#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "scalar/facts.h"
#include "select/checks.h"
#include "select/order.h"
#include "select/plan.h"
#include "support/remark.h"

enum { ALIGN_BITS = 8 * BULK_ALIGN };

/* Returns the reason why the elements of the tile do not follow each other in row-major
 * order; NULL when they do. */
static const char *scattered_reason(Module *m, const MemoryTile *t)
{
    int64_t expected = 1;
    if (t->memory->type->swizzle.bits)
        return arena_printf(&m->scratch, "copies bytes as they lie, %s has a swizzle: %s",
                            value_text(m, t->memory), type_text(m, t->memory->type));
    for (unsigned i = t->rank; i-- > 0;) {
        unsigned d = memory_tile_dim(t, i);
        const Expr *stride = type_stride(m, t->memory->type, d);
        if (t->extents[i] == 1)
            continue;
        if (!expr_is_constant(stride) || stride->constant != expected)
            return arena_printf(&m->scratch, "copies elements that follow each other: in "
                                "dimension %u of %s the stride is %s, it must be %lld", d,
                                value_text(m, t->memory), expr_text(m, stride),
                                (long long)expected);
        expected *= t->extents[i];
    }
    return NULL;
}

/* Returns the reason why the tile may begin off multiples of BULK_ALIGN bytes, or NULL. */
static const char *misaligned_reason(Module *m, const MemoryTile *t)
{
    const Type *type = t->memory->type;
    int64_t bits = dtype_bits(type->dtype), whole = bits & -bits;
    int64_t base = access_base_alignment(t->memory);
    int64_t first = memory_first_alignment(m, t->memory) * whole;
    if (base < ALIGN_BITS || first < ALIGN_BITS)
        return arena_printf(&m->scratch, "needs addresses that are multiples of %d bytes, %s is "
                            "known to begin at one of %lld bits", BULK_ALIGN,
                            value_text(m, t->memory), (long long)(base < first ? base : first));
    for (unsigned d = 0; d < type->rank; d++) {
        const Expr *offset = t->offsets->exprs[d], *stride = type_stride(m, type, d);
        int64_t known = facts_alignment(offset, ALIGN_BITS) *
                        facts_alignment(stride, ALIGN_BITS) * whole;
        if (known < ALIGN_BITS)
            return arena_printf(&m->scratch, "needs addresses that are multiples of %d bytes: in "
                                "dimension %u of %s, offset %s and stride %s of %lld-bit "
                                "elements give multiples of %lld bits", BULK_ALIGN, d,
                                value_text(m, t->memory), expr_text(m, offset), expr_text(m, stride),
                                (long long)bits, (long long)known);
    }
    return NULL;
}

/* Returns true for a tile that is no run of bytes in both tensors, which a tensor map is for. */
static bool is_box(Module *m, const Op *op, const MemoryTile *source)
{
    MemoryTile target = bulk_shared_tile(op);
    return scattered_reason(m, source) || scattered_reason(m, &target);
}

/* Returns the reason why one cp.async.bulk does not do, or NULL. */
static const char *bulk_reason(Module *m, const Op *op, const MemoryTile *source)
{
    MemoryTile target = bulk_shared_tile(op);
    const char *why = scattered_reason(m, source);
    why = why ? why : scattered_reason(m, &target);
    why = why ? why : misaligned_reason(m, source);
    return why ? why : misaligned_reason(m, &target);
}

/* ---- fences -------------------------------------------------------------- */

/* Returns the value that stands for a tensor's memory: its allocation, or the pointer. */
static const Value *memory_origin(const Value *memory)
{
    const Value *root = memory_root(memory);
    return root->def && root->def->code == OP_view_global ? root->def->operands[0] : root;
}

/* The bytes of shared memory from `*first` up to `*end` that a tensor was given. */
static bool find_place(const Value *tensor, int64_t *first, int64_t *end)
{
    const Attr *offset = tensor->def ? op_attr(tensor->def, ATTR_OFFSET) : NULL;
    if (!offset)
        return false;
    *first = offset->integer;
    *end = *first + (type_shared_bits(tensor->type) + 7) / 8;
    return true;
}

bool memory_may_meet(const Value *a, const Value *b)
{
    int64_t first[2], end[2];
    return a == b || (find_place(a, &first[0], &end[0]) && find_place(b, &first[1], &end[1]) &&
                      first[0] < end[1] && first[1] < end[0]);
}

static bool is_by_async_proxy(const Op *op)
{
    return completion_is_async_proxy(op_completion(op));
}

static bool is_memory(const Type *t)
{
    return t->kind == TYPE_SHARED || t->kind == TYPE_GLOBAL;
}

typedef struct FenceSearch {
    const Op *copy;
    BulkFence fence;
} FenceSearch;

/* Looks for writes of the threads, by `op`, to memory that the copy accesses; false ends the
 * search. */
static bool find_fence(Op *op, void *data)
{
    FenceSearch *s = data;
    if (op_info[op->code].effect != EFFECT_WRITES || is_by_async_proxy(op) || op_always_follows(op, s->copy) ||
        !op->operand_count || !is_memory(op_memory_operand(op)->type))
        return true;
    const Value *written = memory_origin(op_memory_operand(op));
    if (!memory_may_meet(written, memory_origin(op_memory_operand(s->copy))) &&
        !memory_may_meet(written, memory_origin(s->copy->operands[0])))
        return true;
    bool own = op_memory_operand(op)->type->kind == TYPE_SHARED && !op_is_remote(s->copy);
    s->fence = own && s->fence != BULK_FENCE ? BULK_FENCE_SHARED : BULK_FENCE;
    return s->fence != BULK_FENCE;
}

/* The async proxy must come after writes of the program's threads: where some op other
 * than a bulk copy, and not always behind it, writes the copy's source or target, or bytes that may be theirs. Reads
 * of the threads are kept before it where they say that they have ended (select/reads.h).
 * Programs write a copy's source through the copy's own pointer only (docs/language.md). */
static BulkFence fence_of(const Op *op)
{
    FenceSearch s = {op, BULK_NO_FENCE};
    region_walk(op->parent->program->body, find_fence, &s);
    return s.fence;
}

static bool is_load(const Op *op)
{
    return op->code == OP_copy_async_bulk;
}

/* Returns true when a bulk copy right before `op`, ignoring pure ops, has had the `fence` of
 * both. A store is fenced by all threads that run it, a load by the one that starts it. */
static bool is_fenced(const Op *op, BulkFence fence)
{
    const Op *copy = op;
    do
        op = op->prev;
    while (op && (op_info[op->code].effect == EFFECT_PURE ||
                  (op_is_bulk_copy(op) && fence_of(op) < fence)));
    return op && op_is_bulk_copy(op) && (is_load(copy) || !is_load(op));
}

/* ---- plans -------------------------------------------------------------------- */

/* Reports a copy that neither goes by one cp.async.bulk nor by a map: first the reason against what its tile is for. */
static bool report_neither(Module *m, const Op *op, const MemoryTile *source, const char *no_bulk,
                           const char *no_map)
{
    const char *name = op_info[op->code].name;
    if (is_box(m, op, source)) {
        diag_error(m->diag, op->loc, "%s needs a tensor map, which is not possible: %s", name, no_map);
        return diag_note(m->diag, op->loc, "cp.async.bulk, which needs none, %s", no_bulk);
    }
    diag_error(m->diag, op->loc, "%s %s", name, no_bulk);
    return diag_note(m->diag, op->loc, "a tensor map is not possible either: %s", no_map);
}

/* Chooses between one cp.async.bulk, which `plan` describes, and a map: false after an error. A tile that bulk has to
 * check goes by a map where it can, unless the text says `via = bulk`. */
static bool choose(Module *m, const Op *op, const MemoryTile *source, BulkPlan *plan)
{
    const char *no_map, *why = bulk_reason(m, op, source);
    bool asked = op_via(op) == VIA_tensor;
    if (op_via(op) == VIA_bulk) {
        plan->why = "the text says via = bulk";
        return !why || diag_error(m->diag, op->loc, "via = bulk is not possible: %s %s",
                                  op_info[op->code].name, why);
    }
    if (!why && !plan->checked && !asked)
        return true;
    plan->tensor = tensor_map_find(m, op, &plan->map, &no_map);
    plan->why = plan->tensor ? why : no_map;
    if (plan->tensor)
        plan->checked = 0;
    else if (asked)
        return diag_error(m->diag, op->loc, "via = tensor is not possible: %s", no_map);
    if (plan->tensor || !why)
        return true;
    return report_neither(m, op, source, why, no_map);
}

bool bulk_plan(Module *m, const Op *op, BulkPlan *plan)
{
    MemoryTile source = bulk_global_tile(op);
    BulkFence fence = fence_of(op);
    *plan = (BulkPlan){.bytes = bulk_bytes(op), .checked = access_checked_dims(op, &source),
                       .fence = fence && is_fenced(op, fence) ? BULK_NO_FENCE : fence};
    return choose(m, op, &source, plan);
}

bool bulk_goes_by_map(Module *m, const Op *op, TensorMap *map)
{
    const char *why;
    MemoryTile source = bulk_global_tile(op);
    bool wanted = access_checked_dims(op, &source) || bulk_reason(m, op, &source);
    return wanted && tensor_map_find(m, op, map, &why);
}

static void write_via(Module *m, Op *op)
{
    op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = VIA_tensor});
}

static bool settle(Op *op, void *changed)
{
    Module *m = op->parent->program->module;
    ArenaMark mark = arena_mark(&m->scratch);
    TensorMap map;
    if (op_is_bulk_copy(op) && !op_attr(op, ATTR_VIA) && bulk_goes_by_map(m, op, &map)) {
        write_via(m, op);
        *(bool *)changed = true;
    }
    arena_reset(&m->scratch, mark);
    return true;
}

bool bulk_settle(Program *p)
{
    bool changed = false;
    region_walk(p->body, settle, &changed);
    return changed;
}

typedef struct MapSearch {
    TensorMaps maps;
    Arena *arena;
} MapSearch;

static bool add_map(Op *op, void *data)
{
    MapSearch *s = data;
    TensorMap map;
    const char *why;
    if (op_via(op) != VIA_tensor ||
        !tensor_map_find(op->parent->program->module, op, &map, &why))
        return true;
    for (uint32_t i = 0; i < s->maps.count; i++)
        if (tensor_map_equal(&s->maps.of[i], &map))
            return true;
    arena_push(s->arena, s->maps.of, s->maps.count, s->maps.capacity, map);
    return true;
}

TensorMaps bulk_maps(Program *p, Arena *arena)
{
    MapSearch s = {.arena = arena};
    region_walk(p->body, add_map, &s);
    return s.maps;
}

/* ---- the planner ---------------------------------------------------------------- */

static bool plan_bulk(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    return bulk_plan(m, op, &plan->bulk);
}

static void write_bulk(Module *m, Op *op, const Plan *plan)
{
    if (plan->bulk.tensor)
        write_via(m, op);
}

static const char *fence_text(const BulkPlan *plan)
{
    return plan->fence ? ", behind a fence: threads write its source or target too" : "";
}

/* "64 x 128 elements" */
static const char *box_text(Module *m, const TensorMap *map)
{
    Text text;
    text_init(&text, &m->scratch);
    for (unsigned d = 0; d < map->rank; d++)
        text_printf(&text, "%s%lld", d ? " x " : "", (long long)map->box[d]);
    return text_string(&text);
}

/* "moves", or "combines by add" of a store that reduces. */
static const char *action_text(Module *m, const Op *op)
{
    const Attr *reduce = op_attr(op, ATTR_REDUCE);
    return reduce ? arena_printf(&m->scratch, "combines by %s", attr_word_text(reduce)) : "moves";
}

static void remark_bulk(Module *m, const Op *op, const Plan *p)
{
    const BulkPlan *plan = &p->bulk;
    const char *name = op_info[op->code].name;
    if (plan->tensor) {
        REMARK(m, op, TensorCopyChosen, R(name), R(action_text(m, op)), R(box_text(m, &plan->map)),
               R(plan->map.pointer->name), R(fence_text(plan)));
        return;
    }
    REMARK(m, op, BulkCopyChosen, R(name), R(action_text(m, op)), R(plan->bytes),
           R(fence_text(plan)));
    MemoryTile source = bulk_global_tile(op);
    remark_checked(m, op, &source, plan->checked);
    if (plan->checked)
        REMARK(m, op, BulkCopyTraps, R(name), R(plan->why));
}

static bool bulk_holds(Module *m, const Op *op)
{
    TensorMap map;
    const char *why;
    MemoryTile source = bulk_global_tile(op);
    return op_via(op) == VIA_bulk ? !bulk_reason(m, op, &source)
                                  : tensor_map_find(m, op, &map, &why);
}

const Planner planner_bulk = {
    .family = PLAN_bulk, .plan = plan_bulk, .write = write_bulk, .remark = remark_bulk,
    .holds = bulk_holds,
};
