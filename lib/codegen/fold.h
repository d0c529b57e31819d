/* Combining elements, in a thread and across lanes: shared by the emitters of reduce, scan and
 * shuffle.
 *
 * Values are f32, or f64 for f64; i32, or i64 for 64-bit integers; 0 or 1 in i32 for bool. */
#ifndef TILUS_CODEGEN_FOLD_H
#define TILUS_CODEGEN_FOLD_H

#include "codegen/internal.h"
#include "ir/op_attrs.h"
#include "select/plan.h"

typedef struct Fold {
    Codegen *cg;
    const Op *op;
    ReduceKind kind;
    DType dtype;        /* of the operand's elements */
} Fold;

Fold fold_open(Codegen *cg, const Op *op);

/* Builds the value of an element's code, and the code of a value. */
LLVMValueRef fold_decode(const Fold *f, LLVMValueRef code);
LLVMValueRef fold_encode(const Fold *f, LLVMValueRef v);

/* Builds the combination of two values, or pairs of f16 or bf16, as fold_float and fold_integer
 * of the interpreter define it; llvm.maximumnum lets a number win over a NaN. */
LLVMValueRef fold_combine(const Fold *f, LLVMValueRef x, LLVMValueRef y);

/* The value that leaves every other one as it is, and the value before the first of an exclusive
 * scan. */
LLVMValueRef fold_neutral(const Fold *f);
LLVMValueRef fold_start(const Fold *f);

/* Moves a value of 32 or 64 bits between lanes, by shfl.sync `id`; `lane` is its operand b. */
LLVMValueRef fold_shuffle(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef v,
                          LLVMValueRef lane);

/* Combines an integer of 32 bits with those of all lanes, by redux.sync. */
LLVMValueRef fold_lanes(const Fold *f, LLVMValueRef v);

#endif
