/* Cast plans in generated code. */
#ifndef TILUS_CODEGEN_CAST_H
#define TILUS_CODEGEN_CAST_H

#include "cast/plan.h"
#include "codegen/internal.h"

/* Emits a plan that reads the words `in` and writes its result's words to `out`.
 * False after an error, located at `at`. */
bool emit_cast_plan(Codegen *cg, Loc at, const CastPlan *plan, LLVMValueRef *in,
                    LLVMValueRef *out);

/* Groups of codes of `dtype`, `words` words in all, from plain order to the storage
 * order packed(packed), or back. */
void emit_reorder(Codegen *cg, DType dtype, DType packed, bool to_packed, int64_t words,
                  LLVMValueRef *in, LLVMValueRef *out);

/* The words of `v`, a register tensor in any storage order, cast to `to`, in plain
 * order: by a plan or element by element; `finite` promises that codes are numbers.
 * They may be v's own. NULL after an error. */
LLVMValueRef *emit_cast_words(Codegen *cg, Loc at, DType to, const Value *v, bool finite);

#endif
