/* Casts of single codes, as plain LLVM IR.
 *
 * A code is an i32 for types of at most 32 bits and an i64 for 64-bit types;
 * bits above the type's width are zero, on input and in results. The IR built
 * here consists of ordinary instructions and generic llvm.* intrinsics that
 * every target of this compiler selects, so that GPU and CPU agree:
 *
 *     code --decode--> f32 or f64 --encode--> code       (floats)
 *     code --sign-extend, clamp-->  code                 (integers)
 *
 * Functions whose float environment flushes denormals would change results:
 * no function may carry "denormal-fp-math" attributes. A builder belongs to
 * one thread; nothing here has state of its own. */
#ifndef TILUS_CODEGEN_CONVERT_H
#define TILUS_CODEGEN_CONVERT_H

#include <llvm-c/Core.h>

#include "types/dtype.h"

/* The code of `to` for the code `code` of `from`: dtype_cast, bit for bit but
 * for the payload of NaNs of f16, bf16, tf32, f32 and f64. */
LLVMValueRef convert_code(LLVMBuilderRef b, DType to, DType from, LLVMValueRef code);

/* Returns true when every value of `t` is exact in f32. */
bool convert_fits_f32(DType t);

/* The value of a code as a float. Requires convert_fits_f32(from). */
LLVMValueRef convert_decode_f32(LLVMBuilderRef b, DType from, LLVMValueRef code);

/* The value of a code of any type as a double. Magnitudes of i64 and u64 from
 * 2^53 are rounded to odd at bit 11, so that one later rounding to at most 40
 * bits of precision is right. */
LLVMValueRef convert_decode_f64(LLVMBuilderRef b, DType from, LLVMValueRef code);

/* The code of `to` nearest to a value of LLVM type float or double. */
LLVMValueRef convert_encode_f32(LLVMBuilderRef b, DType to, LLVMValueRef value);
LLVMValueRef convert_encode_f64(LLVMBuilderRef b, DType to, LLVMValueRef value);

#endif
