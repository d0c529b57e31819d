/* Chains of integer operations, each of the one before. NaryReassociate, a pass of NVPTX's code
 * generation, compares sums, products, minima and maxima with earlier ones as ScalarEvolution sees
 * them, down to the leaves. So its time grows with the cube of a chain's length: the 512 sums of a
 * `scan` took 22 s.
 *
 *   %1 = add i32 %0, %a     length 1
 *   %2 = add i32 %1, %b            2
 *   %3 = xor i32 %2, %c            0: ScalarEvolution does not see through it
 *   %4 = add i32 %3, %d            1 */
#include "codegen/internal.h"

/* WORK bounds the pass's time, as a sum of squares of lengths, to one or two seconds. Chains of kernels
 * that ship have up to 22 operations. */
enum { SHORT = 32, WORK = 1 << 21 };

/* Chains maps an instruction's address to its place in a chain. */
typedef struct Chains {
    LLVMValueRef *values;
    int64_t *lengths;
    size_t mask;                /* of indices; as many slots are free as are taken */
} Chains;

/* Returns the slot of `v`, or the free one where it belongs. */
static size_t find_slot(const Chains *c, LLVMValueRef v)
{
    size_t slot = ((uintptr_t)v >> 4) * 0x9e3779b97f4a7c15 >> 20 & c->mask;
    while (c->values[slot] && c->values[slot] != v)
        slot = (slot + 1) & c->mask;
    return slot;
}

static void open_chains(Chains *c, Arena *arena, int64_t count)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)count)
        slots *= 2;
    *c = (Chains){arena_array(arena, LLVMValueRef, slots), arena_array(arena, int64_t, slots),
                  slots - 1};
}

/* Returns true for a select of the smaller or larger of the two numbers that it compares. */
static bool is_extreme(LLVMValueRef i)
{
    LLVMValueRef cond = LLVMGetOperand(i, 0), a = LLVMGetOperand(i, 1), b = LLVMGetOperand(i, 2);
    if (!LLVMIsAICmpInst(cond))
        return false;
    LLVMValueRef x = LLVMGetOperand(cond, 0), y = LLVMGetOperand(cond, 1);
    return (x == a && y == b) || (x == b && y == a);
}

static bool is_transparent(LLVMValueRef i)
{
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAdd: case LLVMSub: case LLVMMul: case LLVMUDiv: case LLVMURem: case LLVMShl:
    case LLVMLShr: case LLVMZExt: case LLVMSExt: case LLVMTrunc: case LLVMGetElementPtr:
        return true;
    case LLVMSelect:
        return is_extreme(i);
    default:
        return false;
    }
}

/* Adds an instruction behind those of its operands; returns its place in their longest chain. */
static int64_t add_instruction(Chains *c, LLVMValueRef i)
{
    int64_t before = 0;
    if (!is_transparent(i))
        return 0;
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        size_t slot = find_slot(c, LLVMGetOperand(i, (unsigned)o));
        before = c->lengths[slot] > before ? c->lengths[slot] : before;
    }
    size_t slot = find_slot(c, i);
    c->values[slot] = i;
    return c->lengths[slot] = before + 1;
}

int64_t llvm_long_chain(Codegen *cg, LLVMValueRef f)
{
    Arena *scratch = &cg->module->scratch;
    ArenaMark mark = arena_mark(scratch);
    int64_t longest = 0, work = 0;
    Chains c;
    open_chains(&c, scratch, llvm_count_instructions(f));
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            int64_t length = add_instruction(&c, i);
            longest = length > longest ? length : longest;
            work += length > SHORT ? length * length : 0;
        }
    arena_reset(scratch, mark);
    return work > WORK ? longest : 0;
}
