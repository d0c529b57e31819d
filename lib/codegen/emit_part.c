/* slice and permute. Of memory both are other numbers for the same bytes; the words
 * of registers are chosen, or stay as they are. reshape, concat, interleave. */
#include "codegen/memory.h"

#include "ir/part.h"
#include "ir/text.h"
#include "memory/tensor_map.h"
#include "scalar/facts.h"
#include "select/access.h"

/* Returns true when the part can begin at a base of its own, with number 0: its elements are
 * whole bytes, and a swizzle treats its numbers alike from there, as
 *
 *     swizzle(first + n) = first + swizzle(n)
 *
 * when `first` is a multiple of the swizzle's period. */
static bool has_own_base(Module *m, const Value *part)
{
    Swizzle s = part->type->swizzle;
    int period = s.bits ? s.base + s.bits + s.shift : 0;
    return dtype_bits(part->type->dtype) % 8 == 0 && period < 32 &&
           memory_first_alignment(m, part) >> period > 0;
}

static bool slice_memory(Codegen *cg, const Op *op)
{
    const Lowered *from = lowered(op->operands[0]);
    const Attr *offsets = op_attr(op, ATTR_OFFSETS);
    LLVMValueRef first = from->first;
    for (unsigned d = 0; d < offsets->count; d++)
        first = add_i64(cg, first,
                        mul_i64(cg, emit_expr(cg, offsets->exprs[d]), from->strides[d]));
    if (!has_own_base(cg->module, op->results[0]))
        return lower_memory(cg, op, from->value, first);
    LLVMValueRef bytes = const_i64_of(cg, dtype_bits(op->results[0]->type->dtype) / 8);
    LLVMValueRef offset = mul_i64(cg, first, bytes);
    LLVMValueRef base = LLVMBuildGEP2(cg->builder, cg->i8, from->value, &offset, 1, "");
    return lower_memory(cg, op, base, const_i64_of(cg, 0));
}

/* Offsets of a slice of registers are constants, once the loops around it are unrolled. Sets `*inside`
 * to false for a slice that leaves its operand: it never runs. */
static bool constant_offsets(Codegen *cg, const Op *op, int64_t *offsets, bool *inside)
{
    const Attr *written = op_attr(op, ATTR_OFFSETS);
    *inside = true;
    for (unsigned d = 0; d < written->count; d++) {
        ScalarFacts f = facts_of_expr(written->exprs[d]);
        if (f.min != f.max)
            return diag_error(cg->diag, op->loc, "offset %u of a slice of registers is %s, which "
                              "is no constant yet: unroll-loops did not unroll the loop around it",
                              d, expr_text(cg->module, written->exprs[d]));
        offsets[d] = f.min;
        *inside = *inside && slice_has_offset(op, d, f.min);
    }
    return true;
}

bool emit_slice(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    int64_t offsets[LIMIT_RANK];
    bool inside;
    if (t->kind != TYPE_REG)
        return slice_memory(cg, op);
    if (!constant_offsets(cg, op, offsets, &inside))
        return false;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t slot = 0; inside && slot < t->layout->slots; slot++)
        emit_set_bits(cg, words, slot * bits, bits,
                      emit_get_bits(cg, lowered_words(op->operands[0]),
                                    slice_slot(op, offsets, slot) * bits, bits));
    lower_words(cg, op->results[0], words);
    return true;
}

bool emit_permute(Codegen *cg, const Op *op)
{
    const Lowered *from = lowered(op->operands[0]);
    if (op->results[0]->type->kind != TYPE_REG)
        return lower_memory(cg, op, from->value, from->first);
    lower_words(cg, op->results[0], from->words);
    return true;
}

bool emit_reshape(Codegen *cg, const Op *op)
{
    lower_words(cg, op->results[0], lowered_words(op->operands[0]));
    return true;
}

static bool emit_join(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t slot = 0; slot < t->layout->slots; slot++) {
        PartSlot from = join_slot(op, slot);
        emit_set_bits(cg, words, slot * bits, bits,
                      emit_get_bits(cg, lowered_words(op->operands[from.part]),
                                    from.slot * bits, bits));
    }
    lower_words(cg, op->results[0], words);
    return true;
}

bool emit_concat(Codegen *cg, const Op *op)
{
    return emit_join(cg, op);
}

bool emit_interleave(Codegen *cg, const Op *op)
{
    return emit_join(cg, op);
}
