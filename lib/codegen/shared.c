/* Shared memory: every allocate_shared has its own bytes in one array. */
#include "codegen/internal.h"

int64_t shared_tensor_end(int64_t used, const Type *t, int64_t *offset)
{
    int64_t bits = type_shared_bits(t), end;
    if (bits < 0 || used > INT64_MAX - SHARED_ALIGN)
        return INT64_MAX;
    *offset = (used + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    return __builtin_add_overflow(*offset, bits / 8 + (bits % 8 != 0), &end) ? INT64_MAX : end;
}

static bool add_tensor(Op *op, void *data)
{
    int64_t *used = data, offset;
    if (op->code == OP_allocate_shared)
        *used = shared_tensor_end(*used, op->results[0]->type, &offset);
    return true;
}

int64_t codegen_shared_bytes(const Program *p)
{
    int64_t used = 0;
    region_walk(p->body, add_tensor, &used);
    return used;
}
