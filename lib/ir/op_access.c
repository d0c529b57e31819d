/* Rows of ops.def, applied to an op's operands and attributes. */
#include "ir/op_access.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/tile.h"

#include <assert.h>

static bool is_memory(const Value *v)
{
    return v->type->kind == TYPE_SHARED || v->type->kind == TYPE_GLOBAL;
}

/* The whole of a tensor; an extent that is no constant counts as all there can be. */
static MemoryTile whole_tensor(Value *memory)
{
    static const int64_t most = INT64_C(1) << 62;
    MemoryTile t = {.memory = memory, .rank = memory->type->rank};
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = expr_is_constant(memory->type->extents[d]) ? type_extent(memory->type, d)
                                                                  : most;
    return t;
}

/* Where the op's access of a row is: at data, too, when a register tensor indexes the tile. */
static AccessPlace access_place(const Op *op, const AccessRow *row)
{
    bool has_source = op_info[op->code].attrs & op_attr_bit(ATTR_SOURCE_OFFSETS);
    AccessPlace indexed = has_source ? ACCESS_AT_SOURCE : ACCESS_AT_OFFSETS;
    return op_index(op) && row->place == indexed ? ACCESS_AT_DATA : row->place;
}

static MemoryTile access_tile(const Op *op, const AccessRow *row)
{
    AccessPlace place = access_place(op, row);
    MemoryTile t = place == ACCESS_AT_OFFSETS  ? op_memory_tile(op)
                   : place == ACCESS_AT_SOURCE ? op_source_tile(op)
                                               : whole_tensor(op->operands[row->operand]);
    assert(t.memory == op->operands[row->operand]);
    return t;
}

/* A store that reduces changes its places as an atomic op does. */
static AccessMode access_mode(const Op *op, const AccessRow *row)
{
    return row->mode == MODE_WRITE && op_attr(op, ATTR_REDUCE) ? MODE_ATOMIC : row->mode;
}

static OpAccess access_of(const Op *op, const MemoryRow *memory, const AccessRow *row)
{
    bool counted = memory->completion == COMPLETION_MBARRIER;
    assert(!counted || op->operands[memory->counter]->type->kind == TYPE_MBARRIER);
    return (OpAccess){.operand = row->operand,
                      .mode = access_mode(op, row),
                      .threads = memory->threads,
                      .completion = memory->completion,
                      .counter = counted ? op->operands[memory->counter] : NULL,
                      .tile = access_tile(op, row),
                      .data_dependent = access_place(op, row) == ACCESS_AT_DATA};
}

unsigned op_accesses(const Op *op, OpAccess out[ACCESSES_MAX])
{
    const MemoryRow *memory = &op_info[op->code].memory;
    unsigned count = 0;
    for (unsigned i = 0; i < memory->count; i++) {
        const AccessRow *row = &memory->accesses[i];
        if (row->operand < op->operand_count && is_memory(op->operands[row->operand]))
            out[count++] = access_of(op, memory, row);
    }
    return count;
}

bool op_access_written(const Op *op, OpAccess *out)
{
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode != MODE_READ) {
            *out = accesses[i];
            return true;
        }
    return false;
}

/* ---- alignment ------------------------------------------------------------- */

bool op_needs_swizzle_alignment(const Op *op)
{
    return op_completion(op) == COMPLETION_PRODUCT || op_via(op) == VIA_tensor;
}

/* Returns false when `op` needs the allocation `data` aligned. */
static bool leaves_unaligned(Op *op, void *data)
{
    if (!op_needs_swizzle_alignment(op))
        return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == TYPE_SHARED && memory_root(op->operands[i]) == data)
            return false;
    return true;
}

int64_t swizzle_alignment(const Type *t)
{
    enum { UNSWIZZLED = 128 };
    return (int64_t)UNSWIZZLED << t->swizzle.bits;
}

int64_t shared_alignment(const Value *allocation)
{
    Region *body = allocation->def->parent->program->body;
    return region_walk(body, leaves_unaligned, (void *)allocation)
               ? SHARED_ALIGN : swizzle_alignment(allocation->type);
}

/* ---- clusters -------------------------------------------------------------- */

bool op_is_remote(const Op *op)
{
    return op_attr(op, ATTR_RANK) || op_attr(op, ATTR_MULTICAST);
}

static bool is_local(Op *op, void *data)
{
    (void)data;
    return !op_is_remote(op);
}

bool program_has_remote(const Program *p)
{
    return program_blocks(p) > 1 && !region_walk(p->body, is_local, NULL);
}

bool program_meets_at_end(const Program *p)
{
    if (program_blocks(p) == 1)
        return false;
    for (Op *op = p->body->last; op && op_sync(op) != SYNC_CLUSTER; op = op->prev) {
        if (op_is_remote(op))
            return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (!region_walk(op->regions[i], is_local, NULL))
                return true;
    }
    return false;
}

static bool is_no_lock(Op *op, void *data)
{
    (void)data;
    return op_sync(op) != SYNC_ACQUIRE;
}

bool program_has_locks(const Program *p)
{
    return !region_walk(p->body, is_no_lock, NULL);
}

/* ---- groups ------------------------------------------------------------------ */

bool op_commits_product(const Op *op)
{
    const Attr *commit = op_attr(op, ATTR_COMMIT);
    return op_completion(op) == COMPLETION_PRODUCT && (!commit || commit->word != FLAG_FALSE);
}

int64_t op_wait_pending(const Op *op)
{
    const Attr *pending = op_attr(op, ATTR_PENDING);
    return pending                     ? pending->integer
           : op_expr(op, ATTR_NUMBER) ? op_expr(op, ATTR_NUMBER)->constant
                                      : 0;
}

/* Returns the name of the op that does `kind` to accesses of completion `c`; NULL: there is none. */
static const char *sync_name(SyncKind kind, Completion c)
{
    for (OpCode code = 0; code < OP_COUNT; code++)
        if (op_info[code].sync.kind == kind && op_info[code].sync.completion == c)
            return op_info[code].name;
    return NULL;
}

const char *completion_wait_name(Completion c)
{
    const char *name = sync_name(SYNC_WAIT, c);
    assert(name);
    return name;
}

/* GroupSearch walks from a copy to where its bytes are used. */
typedef struct GroupSearch {
    const Op *copy, *use;
    bool begun, committed;
    bool early;             /* a wait came before the commit, and none after it */
} GroupSearch;

static bool search_group(Op *op, void *data)
{
    GroupSearch *s = data;
    Completion c = op_completion(s->copy);
    if (op == s->use)
        return false;
    if (op == s->copy)
        s->begun = true;
    else if (s->begun && op_syncs(op, SYNC_COMMIT, c))
        s->committed = true;
    else if (s->begun && op_syncs(op, SYNC_WAIT, c))
        s->early = !s->committed;
    return true;
}

const char *completion_missing(Arena *arena, const Op *copy, const Op *use)
{
    Completion c = op_completion(copy);
    const char *wait = completion_wait_name(c), *commit = sync_name(SYNC_COMMIT, c);
    GroupSearch s = {.copy = copy, .use = use};
    if (commit)
        region_walk(copy->parent->program->body, search_group, &s);
    return s.begun && s.early ? arena_printf(arena, "the copy is in no group: no %s lies between "
                                             "it and the %s", commit, wait)
                              : arena_printf(arena, "no %s lies between", wait);
}
