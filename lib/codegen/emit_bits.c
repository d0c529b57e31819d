/* The bitwise fallback (Tilus VM paper, section 6.1): elements of less than a
 * byte that may begin at any bit.
 *
 * Load: the byte where the element begins and the byte where it ends, which may
 * be the same one; no byte outside the element is touched.
 *
 *       byte n+1   byte n
 *      |......ee|eeee....|     (both >> first bit) & mask
 *
 * Store: a byte, and so a word, may belong to several threads, and plain
 * read-modify-write would lose a neighbor's write in between. An atomic
 * `and` clears and an atomic `or` sets the element's own bits in the aligned
 * 32-bit word that holds them, and in the next one if the element crosses into
 * it. Neighbors' bits pass through both unchanged, so the order of threads does
 * not matter. Storing one element twice gives the same bits. The aligned word
 * may reach up to 3 bytes past the tensor, whose bits stay as they are;
 * allocations of device memory are multiples of a word. */
#include "codegen/memory.h"

static LLVMValueRef load_byte(const MemoryAccess *a, LLVMValueRef bit)
{
    LLVMBuilderRef b = a->cg->builder;
    LLVMValueRef byte = LLVMBuildAShr(b, bit, const_i64_of(a->cg, 3), "");
    LLVMValueRef v = LLVMBuildLoad2(b, a->cg->i8, access_pointer(a, byte), "");
    LLVMSetAlignment(v, 1);
    return LLVMBuildZExt(b, v, a->cg->i32, "");
}

LLVMValueRef load_bits_at(const MemoryAccess *a, LLVMValueRef bit)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef low = LLVMBuildTrunc(b, bit, cg->i32, "");
    LLVMValueRef shift = LLVMBuildAnd(b, low, const_i32_of(cg, 7), "");
    LLVMValueRef v = load_byte(a, bit);
    if (8 % a->bits) {      /* 1, 2 and 4 bits never cross a byte */
        LLVMValueRef last = LLVMBuildNSWAdd(b, bit, const_i64_of(cg, a->bits - 1), "");
        LLVMValueRef high = LLVMBuildShl(b, load_byte(a, last), const_i32_of(cg, 8), "");
        v = LLVMBuildOr(b, v, high, "");
    }
    v = LLVMBuildLShr(b, v, shift, "");
    return LLVMBuildAnd(b, v, const_i32_of(cg, (1u << a->bits) - 1), "");
}

void load_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words)
{
    LLVMValueRef v = load_bits_at(a, access_slot_bit(a, slot));
    emit_set_bits(a->cg, words, slot * a->bits, a->bits, v);
}

/* Clears the bits of `mask` and sets those of `v` in the word at `address`. */
static void merge_word(const MemoryAccess *a, LLVMValueRef address, LLVMValueRef mask,
                       LLVMValueRef v)
{
    Codegen *cg = a->cg;
    LLVMTypeRef type = a->global ? cg->global_ptr : cg->shared_ptr;
    LLVMValueRef pointer = LLVMBuildIntToPtr(cg->builder, address, type, "");
    LLVMValueRef keep = LLVMBuildNot(cg->builder, mask, "");
    IntrinsicId clear = a->global ? INTR_atomic_and_global : INTR_atomic_and_shared;
    IntrinsicId set = a->global ? INTR_atomic_or_global : INTR_atomic_or_shared;
    call_intrinsic(cg, clear, a->op->loc, (LLVMValueRef[]){pointer, keep}, 2);
    call_intrinsic(cg, set, a->op->loc, (LLVMValueRef[]){pointer, v}, 2);
}

/* The part of an element that crosses into the word after `address`. */
static void store_crossing(const MemoryAccess *a, LLVMValueRef address, LLVMValueRef position,
                           LLVMValueRef mask, LLVMValueRef v)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef more = LLVMAppendBasicBlockInContext(cg->context, cg->function, "cross");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "stored");
    LLVMValueRef fits = const_i32_of(cg, 32 - a->bits);
    LLVMValueRef crosses = LLVMBuildICmp(b, LLVMIntUGT, position, fits, "");
    LLVMBuildCondBr(b, crosses, more, done);
    LLVMPositionBuilderAtEnd(b, more);
    LLVMValueRef by = LLVMBuildSub(b, const_i32_of(cg, 32), position, "");
    LLVMValueRef next = LLVMBuildAdd(b, address, const_i64_of(cg, 4), "");
    merge_word(a, next, LLVMBuildLShr(b, mask, by, ""), LLVMBuildLShr(b, v, by, ""));
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, done);
}

void store_bits_at(const MemoryAccess *a, LLVMValueRef bit, LLVMValueRef v)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef mask = const_i32_of(cg, (1u << a->bits) - 1);
    LLVMValueRef byte = LLVMBuildAShr(b, bit, const_i64_of(cg, 3), "");
    LLVMValueRef address = LLVMBuildPtrToInt(b, access_pointer(a, byte), cg->i64, "");
    LLVMValueRef word = LLVMBuildAnd(b, address, const_i64_of(cg, -4), "");
    /* The bit's place in the word: 8 * (address mod 4) + bit mod 8. */
    LLVMValueRef odd = LLVMBuildTrunc(b, LLVMBuildAnd(b, address, const_i64_of(cg, 3), ""),
                                      cg->i32, "");
    LLVMValueRef rest = LLVMBuildAnd(b, LLVMBuildTrunc(b, bit, cg->i32, ""),
                                     const_i32_of(cg, 7), "");
    LLVMValueRef position = LLVMBuildOr(b, LLVMBuildShl(b, odd, const_i32_of(cg, 3), ""),
                                        rest, "");
    merge_word(a, word, LLVMBuildShl(b, mask, position, ""), LLVMBuildShl(b, v, position, ""));
    if (32 % a->bits)
        store_crossing(a, word, position, mask, v);
}

void store_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words)
{
    LLVMValueRef v = emit_get_bits(a->cg, words, slot * a->bits, a->bits);
    store_bits_at(a, access_slot_bit(a, slot), v);
}
