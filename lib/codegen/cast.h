/* Cast plans in generated code. */
#ifndef TILUS_CODEGEN_CAST_H
#define TILUS_CODEGEN_CAST_H

#include "cast/plan.h"
#include "codegen/internal.h"
#include "select/plan.h"

/* Emits a plan that reads the words `in` and writes its result's words to `out`.
 * False after an error, located at `at`. */
bool emit_cast_plan(Codegen *cg, Loc at, const CastPlan *plan, LLVMValueRef *in,
                    LLVMValueRef *out);

/* Groups of codes of `dtype`, `words` words in all, from plain order to the storage
 * order packed(packed), or back. */
void emit_reorder(Codegen *cg, DType dtype, DType packed, bool to_packed, int64_t words,
                  LLVMValueRef *in, LLVMValueRef *out);

/* Emits the runs of words `in` by their plans, to `out`. False after an error. */
bool emit_cast_runs(Codegen *cg, Loc at, const CastRuns *runs, LLVMValueRef *in,
                    LLVMValueRef *out);

/* The words of `v`, a register tensor in any storage order, converted as planned, in plain
 * order. They may be v's own. NULL after an error. */
LLVMValueRef *emit_cast_words(Codegen *cg, Loc at, const CastRuns *runs, const Value *v);

#endif
