/* Atomic ops: one relaxed instruction for each element, or pair of 16-bit ones,
 * between fences. What the machine has no instruction for is a loop around
 * atom.cas of the word.
 *
 *     fence.acq_rel.gpu                       order release, acq_rel
 *     if (the thread is the least holder of its elements)     replicas only
 *         for each slot: if (inside) red.relaxed.gpu ...   or atom, or the loop
 *     fence.acq_rel.gpu                       order acquire, acq_rel
 *     barrier, result of the least holder, barrier            replicas with a result
 *
 * A fence before or after relaxed accesses orders as a releasing or acquiring
 * access would, and one does for all slots. */
#include "codegen/convert_build.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"

/* ---- one instruction ------------------------------------------------------ */

enum { FAMILY_ROWS = 4 };       /* one for each AtomicScope, shared memory */

static IntrinsicId add_family(DType t)
{
    switch (t) {
    case DTYPE_f32: return INTR_atomic_add_f32_block;
    case DTYPE_f16: return INTR_atomic_add_f16_block;
    case DTYPE_bf16: return INTR_atomic_add_bf16_block;
    default: return INTR_atomic_add_u32_block;
    }
}

/* The first row of the family of intrinsics that does what the op does, where
 * one does. */
static IntrinsicId family(const Op *op)
{
    DType t = op_tile_type(op)->dtype;
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    switch (op->code) {
    case OP_atomic_add:
        return add_family(t);
    case OP_atomic_max:
        return is_signed ? INTR_atomic_max_s32_block : INTR_atomic_max_u32_block;
    case OP_atomic_min:
        return is_signed ? INTR_atomic_min_s32_block : INTR_atomic_min_u32_block;
    case OP_atomic_exch:
        return INTR_atomic_exch_b32_block;
    default:
        return INTR_atomic_cas_b32_block;
    }
}

/* Returns true when a family follows that returns the old value. */
static bool has_fetch(IntrinsicId first)
{
    return *intrinsic_info[first].signature == ':';
}

/* Calls the row of a family that has the op's scope. `args` is the address and words
 * of operands. The result is the old value where the family returns it. */
static LLVMValueRef call_row(const MemoryAccess *a, IntrinsicId first, LLVMValueRef *args,
                             unsigned count)
{
    unsigned row = a->global ? (unsigned)op_scope(a->op) : SCOPE_NONE;
    if (a->op->result_count && has_fetch(first))
        row += FAMILY_ROWS;
    return call_intrinsic(a->cg, (IntrinsicId)(first + row), a->op->loc, args, count);
}

/* ---- the loop --------------------------------------------------------------- */

/* Returns true when the target has no instruction for the op. */
static bool needs_loop(const Codegen *cg, const Op *op)
{
    DType t = op_tile_type(op)->dtype;
    switch (op->code) {
    case OP_atomic_add:
        return t == DTYPE_bf16 &&
               cg->target->sm < intrinsic_info[INTR_atomic_add_bf16_block].sm;
    case OP_atomic_max:
    case OP_atomic_min:
        return dtype_is_float(t);
    case OP_atomic_cas:
        return dtype_bits(t) < 32;      /* atom.cas.b32 would compare pairs as one */
    default:
        return false;
    }
}

/* An f32, or a pair of 16-bit floats, made of two. */
static LLVMValueRef combine_floats(Codegen *cg, const Op *op, LLVMValueRef old,
                                   LLVMValueRef word)
{
    LLVMBuilderRef b = cg->builder;
    DType t = op_tile_type(op)->dtype;
    LLVMTypeRef type = t == DTYPE_f32 ? cg->f32
                                      : LLVMVectorType(t == DTYPE_f16 ? cg->f16 : cg->bf16, 2);
    LLVMValueRef x = build_bitcast(b, old, type), y = build_bitcast(b, word, type);
    LLVMValueRef next = op->code == OP_atomic_add   ? LLVMBuildFAdd(b, x, y, "")
                        : op->code == OP_atomic_max ? build_binary(b, "llvm.maximumnum", x, y)
                                                    : build_binary(b, "llvm.minimumnum", x, y);
    return build_bitcast(b, next, cg->i32);
}

/* `old` with those of its two elements replaced by those of `word` that have the bits
 * of `compare`. */
static LLVMValueRef replace_equal(Codegen *cg, LLVMValueRef old, LLVMValueRef compare,
                                  LLVMValueRef word)
{
    enum { BITS = 16 };
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef next = const_i32_of(cg, 0);
    for (unsigned bit = 0; bit < 2 * BITS; bit += BITS) {
        LLVMValueRef is = emit_get_bits(cg, &old, bit, BITS);
        LLVMValueRef expected = emit_get_bits(cg, &compare, bit, BITS);
        LLVMValueRef equal = LLVMBuildICmp(b, LLVMIntEQ, is, expected, "");
        LLVMValueRef v = emit_get_bits(cg, &word, bit, BITS);
        emit_set_bits(cg, &next, bit, BITS, build_select(b, equal, v, is));
    }
    return next;
}

/* Computes the word that the op stores over `old`; `words` are its operands'. */
static LLVMValueRef next_word(Codegen *cg, const Op *op, LLVMValueRef old,
                              const LLVMValueRef *words)
{
    return op->code == OP_atomic_cas ? replace_equal(cg, old, words[0], words[1])
                                     : combine_floats(cg, op, old, words[0]);
}

/* Changes a word by exchanges, the first of which expects what a compare hopes for,
 * or zero. Gives what was there.
 *
 *     old = guess, next = f(old)
 *     do {
 *         expected = old;   old = atom.cas(p, expected, next);   next = f(old)
 *     } while (old != expected && next != old)
 *
 * A word that would stay as it is need not be written: to have read it is enough. */
static LLVMValueRef change_in_loop(const MemoryAccess *a, const LLVMValueRef *args)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(cg->context, cg->function, "retry");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "done");
    LLVMValueRef guess = a->op->code == OP_atomic_cas ? args[1] : const_i32_of(cg, 0);
    LLVMValueRef first = next_word(cg, a->op, guess, args + 1);
    LLVMBuildBr(b, loop);
    LLVMPositionBuilderAtEnd(b, loop);
    LLVMValueRef expected = LLVMBuildPhi(b, cg->i32, ""), write = LLVMBuildPhi(b, cg->i32, "");
    LLVMValueRef exchange[] = {args[0], expected, write};
    LLVMValueRef old = call_row(a, INTR_atomic_cas_b32_block, exchange, 3);
    LLVMValueRef next = next_word(cg, a->op, old, args + 1);
    LLVMValueRef changed = LLVMBuildICmp(b, LLVMIntEQ, old, expected, "");
    LLVMValueRef stays = LLVMBuildICmp(b, LLVMIntEQ, next, old, "");
    LLVMBuildCondBr(b, build_or(b, changed, stays), done, loop);
    LLVMBasicBlockRef from[] = {before, loop};
    LLVMAddIncoming(expected, (LLVMValueRef[]){guess, old}, from, 2);
    LLVMAddIncoming(write, (LLVMValueRef[]){first, next}, from, 2);
    LLVMPositionBuilderAtEnd(b, done);
    return old;
}

/* Changes the word of memory that begins with the element in `slot`. Words of the
 * result, if there is one, become what was there. */
static void change_word(const MemoryAccess *a, int64_t slot, LLVMValueRef *words)
{
    const Op *op = a->op;
    int64_t word = slot / a->plan->unit;
    LLVMValueRef args[3] = {access_unit_pointer(a, slot)};
    unsigned count = 1;
    for (unsigned i = 0; i < op_memory_number(op); i++)
        args[count++] = lowered_words(op->operands[i])[word];
    LLVMValueRef before = needs_loop(a->cg, op) ? change_in_loop(a, args)
                                                : call_row(a, family(op), args, count);
    if (op->result_count)
        words[word] = before;
}

/* Fences: only the block sees its shared memory. */
static void fence(Codegen *cg, const Op *op)
{
    bool global = op_memory_operand(op)->type->kind == TYPE_GLOBAL;
    AtomicScope scope = global ? op_scope(op) : SCOPE_BLOCK;
    call_intrinsic(cg, (IntrinsicId)(INTR_fence_block + (unsigned)scope), op->loc, NULL, 0);
}

/* ---- replicas ----------------------------------------------------------- */

/* The part of the thread's number that tells replicas of its elements apart, an
 * i32: 0 in the least holder. NULL without replicas. */
static LLVMValueRef replica_part(Codegen *cg, const Layout *l)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef sum = NULL;
    ThreadDigits replicas = replica_digits(l);
    for (unsigned i = 0; i < replicas.count; i++) {
        ThreadDigit digit = replicas.digit[i];
        LLVMValueRef weight = const_i32_of(cg, (uint32_t)digit.weight);
        LLVMValueRef v = LLVMBuildNUWMul(b, emit_thread_digit(cg, digit), weight, "");
        sum = sum ? LLVMBuildNUWAdd(b, sum, v, "") : v;
    }
    return sum;
}

/* The address of a word of thread `thread` in the scratch. */
static LLVMValueRef scratch_at(Codegen *cg, LLVMValueRef base, LLVMValueRef thread)
{
    return LLVMBuildGEP2(cg->builder, cg->i32, base, &thread, 1, "");
}

/* Replaces each word of the result by that of its least holder. */
static bool share_words(Codegen *cg, const Op *op, const Plan *plan, LLVMValueRef replica,
                        LLVMValueRef *words)
{
    enum { WORD_BYTES = 4 };
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef base = shared_scratch(cg, op, plan);
    if (!base)
        return false;
    LLVMValueRef mine = scratch_at(cg, base, cg->thread);
    LLVMValueRef least = scratch_at(cg, base, LLVMBuildNUWSub(b, cg->thread, replica, ""));
    for (int64_t i = 0; i < type_thread_words(op->results[0]->type); i++) {
        LLVMSetAlignment(LLVMBuildStore(b, words[i], mine), WORD_BYTES);
        if (!emit_barrier(cg, op))
            return false;
        words[i] = LLVMBuildLoad2(b, cg->i32, least, "");
        LLVMSetAlignment(words[i], WORD_BYTES);
        if (!emit_barrier(cg, op))
            return false;
    }
    return true;
}

/* ---- the ops -------------------------------------------------------------- */

/* Words of the result are those in `words` where a thread acted, else zero. */
static void join_words(Codegen *cg, const Op *op, LLVMValueRef *words,
                       LLVMBasicBlockRef before, LLVMBasicBlockRef acted)
{
    LLVMValueRef zero = const_i32_of(cg, 0);
    for (int64_t i = 0; i < type_thread_words(op->results[0]->type); i++) {
        LLVMValueRef phi = LLVMBuildPhi(cg->builder, cg->i32, "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){zero, words[i]},
                        (LLVMBasicBlockRef[]){before, acted}, 2);
        words[i] = phi;
    }
}

/* Changes the tile, in one thread of those that hold the same elements. */
static void change_tile(MemoryAccess *a, LLVMValueRef replica, LLVMValueRef *words)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), done = NULL;
    if (replica) {
        LLVMBasicBlockRef then =
            LLVMAppendBasicBlockInContext(cg->context, cg->function, "holder");
        done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "changed");
        LLVMValueRef acts = LLVMBuildICmp(b, LLVMIntEQ, replica, const_i32_of(cg, 0), "");
        LLVMBuildCondBr(b, acts, then, done);
        LLVMPositionBuilderAtEnd(b, then);
    }
    access_locate_thread(a);
    access_move_units(a, words);
    if (done) {
        LLVMBasicBlockRef acted = LLVMGetInsertBlock(b);
        LLVMBuildBr(b, done);
        LLVMPositionBuilderAtEnd(b, done);
        if (a->op->result_count)
            join_words(cg, a->op, words, before, acted);
    }
}

static bool emit_atomic(Codegen *cg, const Op *op, const Plan *plan)
{
    AtomicOrder order = atomic_order(op);
    LLVMValueRef *words = words_new(cg, op->operands[0]->type);
    MemoryAccess a;
    access_open(cg, op, &plan->atomic, change_word, &a);
    if (order == ORDER_RELEASE || order == ORDER_ACQ_REL)
        fence(cg, op);
    LLVMValueRef replica = replica_part(cg, a.tile->layout);
    change_tile(&a, replica, words);
    if (order == ORDER_ACQUIRE || order == ORDER_ACQ_REL)
        fence(cg, op);
    if (!op->result_count)
        return true;
    if (replica && !share_words(cg, op, plan, replica, words))
        return false;
    lower_words(cg, op->results[0], words);
    return true;
}

bool emit_atomic_add(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_atomic(cg, op, plan);
}

bool emit_atomic_max(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_atomic(cg, op, plan);
}

bool emit_atomic_min(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_atomic(cg, op, plan);
}

bool emit_atomic_exch(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_atomic(cg, op, plan);
}

bool emit_atomic_cas(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_atomic(cg, op, plan);
}
