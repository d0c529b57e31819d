/* Plain accesses, which compiled code makes itself:
 *
 *     %v = load %p     =>     check_read(%p, bytes, align);              %v = load %p
 *     store %v, %p     =>     check_write(%p, bytes, align, &copy of %v);  store %v, %p
 *
 * The helpers of all others check their accesses themselves. Stacks are the threads'
 * own: their address space is none of a GPU's. */
#define _GNU_SOURCE
#include "cpu/instrument.h"

#include "cpu/machine.h"
#include "cpu/shadow.h"

#include <llvm-c/Target.h>

enum { WIDEST = 16 };           /* bytes of an access */

static void check_read(uint64_t address, uint64_t bytes, uint64_t align)
{
    shadow_access(ACCESS_READ, helper_address(address, (unsigned)align), bytes, NULL);
}

static void check_write(uint64_t address, uint64_t bytes, uint64_t align, const void *value)
{
    shadow_access(ACCESS_WRITE, helper_address(address, (unsigned)align), bytes, value);
}

/* State that both checks share. */
typedef struct Instrument {
    Codegen *cg;
    LLVMTargetDataRef layout;
    LLVMValueRef copy;          /* room on the stack for what a store stores */
} Instrument;

/* The address of what a load or store accesses, or NULL: it is nobody else's. */
static LLVMValueRef memory_pointer(LLVMValueRef instruction)
{
    LLVMOpcode code = LLVMGetInstructionOpcode(instruction);
    if (code != LLVMLoad && code != LLVMStore)
        return NULL;
    LLVMValueRef pointer = LLVMGetOperand(instruction, code == LLVMStore);
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
    return space == SPACE_GLOBAL || space == SPACE_SHARED || space == SPACE_CLUSTER
               ? pointer : NULL;
}

static void check_access(const Instrument *in, LLVMValueRef instruction, LLVMValueRef pointer)
{
    Codegen *cg = in->cg;
    bool is_store = LLVMGetInstructionOpcode(instruction) == LLVMStore;
    LLVMTypeRef types[] = {cg->i64, cg->i64, cg->i64, cg->any_ptr};
    LLVMTypeRef none = LLVMVoidTypeInContext(cg->context);
    LLVMTypeRef type = LLVMFunctionType(none, types, is_store ? 4 : 3, 0);
    LLVMTypeRef value = LLVMTypeOf(is_store ? LLVMGetOperand(instruction, 0) : instruction);
    uintptr_t callee = is_store ? (uintptr_t)check_write : (uintptr_t)check_read;
    LLVMPositionBuilderBefore(cg->builder, instruction);
    LLVMValueRef args[] = {
        LLVMBuildPtrToInt(cg->builder, pointer, cg->i64, ""),
        LLVMConstInt(cg->i64, LLVMStoreSizeOfType(in->layout, value), 0),
        const_i64_of(cg, LLVMGetAlignment(instruction)), in->copy};
    if (is_store)
        LLVMBuildStore(cg->builder, LLVMGetOperand(instruction, 0), in->copy);
    LLVMValueRef function = LLVMConstIntToPtr(const_i64_of(cg, (int64_t)callee), cg->any_ptr);
    LLVMBuildCall2(cg->builder, type, function, args, is_store ? 4 : 3, "");
}

void instrument_accesses(Codegen *cg, LLVMValueRef f)
{
    LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(f);
    Instrument in = {.cg = cg, .layout = LLVMGetModuleDataLayout(cg->llvm)};
    LLVMPositionBuilderBefore(cg->builder, LLVMGetFirstInstruction(first));
    in.copy = LLVMBuildAlloca(cg->builder, LLVMArrayType2(cg->i8, WIDEST), "");
    LLVMSetAlignment(in.copy, WIDEST);
    for (LLVMBasicBlockRef b = first; b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef pointer = memory_pointer(i);
            if (pointer)
                check_access(&in, i, pointer);
        }
}
