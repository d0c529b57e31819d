/* dot on CUDA cores: any types, any layouts.
 *
 *   fma          acc[slot] += a * b of the thread's own slots, k unrolled
 *
 *   fma.shared   scratch = a[m, k], b[k, n]      every thread its slots, all matrices
 *                barrier
 *                for k: acc[slot] += scratch.a[i, k] * scratch.b[k, j]
 *                barrier                         the scratch may be used again
 *
 * Accumulators are f32 or f64, i32 or i64 (dot_numbers). */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/dot.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"

#include <string.h>

typedef struct FmaDot {
    Codegen *cg;
    const Op *op;
    const Plan *planned;
    const DotPlan *plan;        /* of `planned` */
    DotNumbers numbers;
    LLVMTypeRef type;           /* of an accumulator */
    int64_t count;              /* of accumulators: slots of c */
    LLVMValueRef *acc;
    LLVMValueRef base[2];       /* of a and b in the scratch */
} FmaDot;

/* ---- values ------------------------------------------------------------ */

/* The element in `slot` of operand `i`, as accumulators are. */
static LLVMValueRef element(const FmaDot *d, unsigned i, int64_t slot)
{
    LLVMBuilderRef b = d->cg->builder;
    const Value *operand = d->op->operands[i];
    DType t = operand->type->dtype;
    unsigned bits = dtype_bits(t);
    LLVMValueRef code = emit_get_bits(d->cg, lowered_words(operand), slot * bits, bits);
    if (d->numbers.is_float)
        return d->numbers.bytes == 8 ? convert_decode_f64(b, t, code)
                                     : convert_decode_f32(b, t, code);
    return LLVMBuildIntCast2(b, emit_integer_value(d->cg, t, code), d->type,
                             dtype_info[t].kind == DKIND_INT, "");
}

/* The code of c's type for an accumulator. */
static LLVMValueRef code_of(const FmaDot *d, LLVMValueRef v)
{
    LLVMBuilderRef b = d->cg->builder;
    DType t = d->op->results[0]->type->dtype;
    if (d->numbers.is_float)
        return d->numbers.bytes == 8 ? convert_encode_f64(b, t, v) : convert_encode_f32(b, t, v);
    return emit_integer_code(d->cg, t, v);
}

static LLVMValueRef multiply_add(const FmaDot *d, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    LLVMBuilderRef b = d->cg->builder;
    LLVMTypeRef type = d->type;
    if (!d->numbers.is_float)
        return LLVMBuildAdd(b, LLVMBuildMul(b, x, y, ""), z, "");
    return build_overloaded(b, "llvm.fma", &type, 1, (LLVMValueRef[]){x, y, z}, 3);
}

/* ---- own elements --------------------------------------------------------- */

static LLVMValueRef *all_elements(const FmaDot *d, unsigned i)
{
    int64_t slots = d->op->operands[i]->type->layout->slots;
    LLVMValueRef *values = arena_array(&d->cg->module->scratch, LLVMValueRef, (size_t)slots);
    for (int64_t slot = 0; slot < slots; slot++)
        values[slot] = element(d, i, slot);
    return values;
}

static void multiply_own(FmaDot *d)
{
    LLVMValueRef *a = all_elements(d, MMA_A), *b = all_elements(d, MMA_B);
    for (int64_t k = 0; k < d->plan->depth; k++)
        for (int64_t slot = 0; slot < d->count; slot++) {
            int64_t of_a = *dot_slots(d->plan, MMA_A, slot, k);
            int64_t of_b = *dot_slots(d->plan, MMA_B, slot, k);
            d->acc[slot] = multiply_add(d, a[of_a], b[of_b], d->acc[slot]);
        }
}

/* ---- through shared memory -------------------------------------------------- */

static LLVMValueRef bytes_past(const FmaDot *d, LLVMValueRef base, LLVMValueRef elements)
{
    LLVMValueRef bytes = mul_i64(d->cg, elements, const_i64_of(d->cg, d->numbers.bytes));
    return LLVMBuildGEP2(d->cg->builder, d->cg->i8, base, &bytes, 1, "");
}

/* The element of operand `i` in the scratch at `index`, i64s. */
static LLVMValueRef scratch_at(const FmaDot *d, unsigned i, LLVMValueRef *index)
{
    const Layout *l = d->op->operands[i]->type->layout;
    LLVMValueRef at = index[0];
    for (unsigned dim = 1; dim < l->rank; dim++) {
        at = mul_i64(d->cg, at, const_i64_of(d->cg, l->shape[dim]));
        at = add_i64(d->cg, at, index[dim]);
    }
    return bytes_past(d, d->base[i], at);
}

/* The indices of the thread's slot 0 of a layout. */
static void thread_indices(const FmaDot *d, const Layout *l, LLVMValueRef *index)
{
    for (unsigned dim = 0; dim < l->rank; dim++)
        index[dim] = emit_thread_index(d->cg, l, dim, d->cg->thread);
}

/* The indices of the thread's `slot`, from those of its slot 0. */
static void slot_indices(const FmaDot *d, const Layout *l, LLVMValueRef *of_thread, int64_t slot,
                         LLVMValueRef *index)
{
    int64_t of_slot[LIMIT_RANK];
    layout_index(l, 0, slot, of_slot);
    for (unsigned dim = 0; dim < l->rank; dim++)
        index[dim] = add_i64(d->cg, of_thread[dim], const_i64_of(d->cg, of_slot[dim]));
}

/* Replicas of an element store the same. */
static void store_operand(const FmaDot *d, unsigned i)
{
    const Layout *l = d->op->operands[i]->type->layout;
    LLVMValueRef of_thread[LIMIT_RANK], index[LIMIT_RANK];
    thread_indices(d, l, of_thread);
    for (int64_t slot = 0; slot < l->slots; slot++) {
        slot_indices(d, l, of_thread, slot, index);
        LLVMValueRef at = scratch_at(d, i, index);
        LLVMSetAlignment(LLVMBuildStore(d->cg->builder, element(d, i, slot), at),
                         d->numbers.bytes);
    }
}

static LLVMValueRef load(const FmaDot *d, LLVMValueRef at)
{
    LLVMValueRef v = LLVMBuildLoad2(d->cg->builder, d->type, at, "");
    LLVMSetAlignment(v, d->numbers.bytes);
    return v;
}

/* Multiplies one step of k into all of the thread's elements of c. */
static void multiply_step(const FmaDot *d, LLVMValueRef k)
{
    const Layout *c = d->op->operands[MMA_C]->type->layout;
    LLVMValueRef of_thread[LIMIT_RANK], of_a[LIMIT_RANK], of_b[LIMIT_RANK];
    thread_indices(d, c, of_thread);
    for (int64_t slot = 0; slot < d->count; slot++) {
        slot_indices(d, c, of_thread, slot, of_a);
        memcpy(of_b, of_a, sizeof of_b);
        of_a[c->rank - 1] = of_b[c->rank - 2] = k;
        LLVMValueRef a = scratch_at(d, MMA_A, of_a), b = scratch_at(d, MMA_B, of_b);
        d->acc[slot] = multiply_add(d, load(d, a), load(d, b), d->acc[slot]);
    }
}

/* for (k = 0; k < depth; k++), with the accumulators as phis. */
static void multiply_loop(FmaDot *d)
{
    Codegen *cg = d->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(cg->context, cg->function, "depth");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(cg->context, cg->function, "summed");
    LLVMValueRef *phis = arena_array(&cg->module->scratch, LLVMValueRef, (size_t)d->count);
    LLVMBuildBr(b, body);
    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef zero = const_i64_of(cg, 0), k = LLVMBuildPhi(b, cg->i64, "");
    for (int64_t slot = 0; slot < d->count; slot++) {
        phis[slot] = LLVMBuildPhi(b, d->type, "");
        LLVMAddIncoming(phis[slot], &d->acc[slot], &before, 1);
        d->acc[slot] = phis[slot];
    }
    multiply_step(d, k);
    LLVMValueRef next = LLVMBuildNSWAdd(b, k, const_i64_of(cg, 1), "");
    LLVMAddIncoming(k, (LLVMValueRef[]){zero, next}, (LLVMBasicBlockRef[]){before, body}, 2);
    for (int64_t slot = 0; slot < d->count; slot++)
        LLVMAddIncoming(phis[slot], &d->acc[slot], &body, 1);
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntSLT, next, const_i64_of(cg, d->plan->depth), "");
    LLVMBuildCondBr(b, more, body, after);
    LLVMPositionBuilderAtEnd(b, after);
}

static bool multiply_shared(FmaDot *d)
{
    d->base[MMA_A] = shared_scratch(d->cg, d->op, d->planned);
    if (!d->base[MMA_A])
        return false;
    LLVMValueRef before_b = const_i64_of(d->cg, d->plan->scratch_b);
    d->base[MMA_B] = LLVMBuildGEP2(d->cg->builder, d->cg->i8, d->base[MMA_A], &before_b, 1, "");
    store_operand(d, MMA_A);
    store_operand(d, MMA_B);
    if (!emit_barrier(d->cg, d->op))
        return false;
    multiply_loop(d);
    return emit_barrier(d->cg, d->op);
}

/* ---- op ------------------------------------------------------------------------ */

static LLVMTypeRef accumulator_type(Codegen *cg, DotNumbers n)
{
    if (n.is_float)
        return n.bytes == 8 ? LLVMDoubleTypeInContext(cg->context)
                            : LLVMFloatTypeInContext(cg->context);
    return n.bytes == 8 ? cg->i64 : cg->i32;
}

bool emit_dot_fma(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *t = op->results[0]->type;
    unsigned bits = dtype_bits(t->dtype);
    FmaDot d = {.cg = cg, .op = op, .planned = plan, .plan = &plan->dot,
                .numbers = dot_numbers(op),
                .count = t->layout->slots};
    d.type = accumulator_type(cg, d.numbers);
    d.acc = all_elements(&d, MMA_C);
    if (plan->dot.via == VIA_fma)
        multiply_own(&d);
    else if (!multiply_shared(&d))
        return false;
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t i = 0; i < d.count; i++)
        emit_set_bits(cg, words, i * bits, bits, code_of(&d, d.acc[i]));
    lower_words(cg, op->results[0], words);
    return true;
}
