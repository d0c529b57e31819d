/* Rows of ops.def, applied to an op's operands and attributes. */
#include "ir/op_access.h"

#include "ir/tile.h"

#include <assert.h>

static bool is_memory(const Value *v)
{
    return v->type->kind == TYPE_SHARED || v->type->kind == TYPE_GLOBAL;
}

/* The whole of a shared tensor. */
static MemoryTile whole_tensor(Value *memory)
{
    MemoryTile t = {.memory = memory, .rank = memory->type->rank};
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = type_extent(memory->type, d);
    return t;
}

static MemoryTile access_tile(const Op *op, const AccessRow *row)
{
    MemoryTile t = row->place == ACCESS_AT_OFFSETS  ? op_memory_tile(op)
                   : row->place == ACCESS_AT_SOURCE ? op_source_tile(op)
                                                    : whole_tensor(op->operands[row->operand]);
    assert(t.memory == op->operands[row->operand]);
    return t;
}

static OpAccess access_of(const Op *op, const MemoryRow *memory, const AccessRow *row)
{
    bool counted = memory->completion == COMPLETION_MBARRIER;
    assert(!counted || op->operands[memory->counter]->type->kind == TYPE_MBARRIER);
    return (OpAccess){.operand = row->operand,
                      .mode = row->mode,
                      .threads = memory->threads,
                      .completion = memory->completion,
                      .counter = counted ? op->operands[memory->counter] : NULL,
                      .tile = access_tile(op, row),
                      .data_dependent = row->place == ACCESS_AT_DATA};
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

const char *completion_wait_name(Completion c)
{
    OpCode code = 0;
    while (op_info[code].sync.kind != SYNC_WAIT || op_info[code].sync.completion != c)
        code++;
    assert(code < OP_COUNT);
    return op_info[code].name;
}
