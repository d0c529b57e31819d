/* load_scalar: one element that all threads load, as an i64.
 *
 *     if (inside) v = load        only checked dimensions
 *     phi(v, 0)                                                              */
#include "codegen/memory.h"
#include "ir/tile.h"

/* The code of an element of less than a byte, which may begin at any bit. */
static LLVMValueRef load_bits_code(MemoryAccess *a)
{
    LLVMValueRef element = access_swizzle(a, a->linear);
    return load_bits_at(a, mul_i64(a->cg, element, const_i64_of(a->cg, a->bits)));
}

static LLVMValueRef load_bytes_code(MemoryAccess *a)
{
    Codegen *cg = a->cg;
    LLVMValueRef element = access_swizzle(a, a->linear);
    LLVMValueRef byte = mul_i64(cg, element, const_i64_of(cg, a->bits / 8));
    LLVMTypeRef type = LLVMIntTypeInContext(cg->context, a->bits);
    LLVMValueRef v = LLVMBuildLoad2(cg->builder, type, access_pointer(a, byte), "");
    LLVMSetAlignment(v, a->bits / 8);
    return a->bits < 32 ? LLVMBuildZExt(cg->builder, v, cg->i32, "") : v;
}

/* The element's value. */
static LLVMValueRef load_value(MemoryAccess *a)
{
    Codegen *cg = a->cg;
    DType t = a->op->results[0]->type->dtype;
    LLVMValueRef code = a->bits < 8 ? load_bits_code(a) : load_bytes_code(a);
    LLVMValueRef v = emit_integer_value(cg, t, code);
    return dtype_info[t].kind == DKIND_INT ? LLVMBuildSExt(cg->builder, v, cg->i64, "")
                                           : LLVMBuildZExt(cg->builder, v, cg->i64, "");
}

/* Builds the predicate that the element is inside the view, by the dimensions `checked`, of
 * which there is one at least. */
static LLVMValueRef element_inside(const MemoryAccess *a, uint32_t checked)
{
    LLVMValueRef all = NULL;
    for (unsigned d = 0; checked >> d; d++) {
        if (!(checked >> d & 1))
            continue;
        LLVMValueRef one = index_inside(a->cg, a->index[d], a->memory->extents[d]);
        all = all ? LLVMBuildAnd(a->cg->builder, all, one, "") : one;
    }
    return all;
}

static LLVMValueRef load_checked(MemoryAccess *a, uint32_t checked)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef inside = element_inside(a, checked), values[2] = {const_i64_of(cg, 0)};
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(b)};
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(cg->context, cg->function, "inside");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "loaded");
    LLVMBuildCondBr(b, inside, then, done);
    LLVMPositionBuilderAtEnd(b, then);
    values[1] = load_value(a);
    from[1] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMValueRef phi = LLVMBuildPhi(b, cg->i64, "");
    LLVMAddIncoming(phi, values, from, 2);
    return phi;
}

bool emit_load_scalar(Codegen *cg, const Op *op)
{
    MemoryTile place = op_memory_tile(op);
    uint32_t checked = access_checked_dims(op, &place);
    MemoryAccess a;
    access_open(cg, op, NULL, NULL, &a);
    access_locate(&a, NULL);
    lower_value(cg, op->results[0])->value = checked ? load_checked(&a, checked)
                                                     : load_value(&a);
    return true;
}
