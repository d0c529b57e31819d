/* Shared memory: each op that needs some has its own bytes in one array. */
#include "codegen/internal.h"

#include "analysis/reduce.h"

/* Bytes that `op` needs itself; INT64_MAX past 2^63. */
static int64_t op_shared_bytes(const Op *op)
{
    if (op->code == OP_reduce)
        return reduce_plan(op).scratch;
    if (op->code != OP_allocate_shared)
        return 0;
    int64_t bits = type_shared_bits(op->results[0]->type);
    return bits < 0 ? INT64_MAX : bits / 8 + (bits % 8 != 0);
}

/* Places `bytes` after the first `used`, at `*offset`; returns their end. */
static int64_t shared_end(int64_t used, int64_t bytes, int64_t *offset)
{
    int64_t end;
    if (used > INT64_MAX - SHARED_ALIGN)
        return INT64_MAX;
    *offset = (used + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    return __builtin_add_overflow(*offset, bytes, &end) ? INT64_MAX : end;
}

LLVMValueRef shared_reserve(Codegen *cg, const Op *op)
{
    int64_t offset = 0;
    cg->shared_used = shared_end(cg->shared_used, op_shared_bytes(op), &offset);
    if (cg->shared_used > cg->target->shared_bytes) {
        diag_error(cg->diag, op->loc,
                   "shared memory up to this %s is %lld bytes, a block on %s has %lld",
                   op_info[op->code].name, (long long)cg->shared_used, cg->target->name,
                   (long long)cg->target->shared_bytes);
        return NULL;
    }
    LLVMValueRef at = const_i64_of(cg, offset);
    return LLVMBuildGEP2(cg->builder, cg->i8, cg->shared, &at, 1, "");
}

static bool add_op(Op *op, void *data)
{
    int64_t *used = data, offset, bytes = op_shared_bytes(op);
    if (bytes)
        *used = shared_end(*used, bytes, &offset);
    return true;
}

int64_t codegen_shared_bytes(const Program *p)
{
    int64_t used = 0;
    region_walk(p->body, add_op, &used);
    return used;
}
