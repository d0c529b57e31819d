/* Element-wise add, sub, mul, neg: what dtype_add and its kin define, in the
 * machine's arithmetic that rounds alike.
 *
 *   f16, bf16        in their own type, two slots of a word at once
 *   f32, f64         in their own type
 *   i32, i64, ...    wrapping: in i32 or i64, cut to the type's width
 *   other floats     decoded to f32 or f64, which is rounded once more
 *
 * Why f32 does no harm to floats of at most 8 bits and 6 exponent bits: their
 * products have at most 14 bits, so f32 holds them exactly. A sum that f32
 * cannot hold is far above the type's smallest numbers, has at most 7 bits of
 * precision to keep, and rounding to p bits through 24 >= 2p + 2 bits equals
 * rounding once. Wider exponents would leave f32's range. */
#include "codegen/convert.h"
#include "codegen/internal.h"

typedef enum Arith { ARITH_ADD, ARITH_SUB, ARITH_MUL, ARITH_NEG } Arith;

static LLVMValueRef apply_float(LLVMBuilderRef b, Arith f, LLVMValueRef x, LLVMValueRef y)
{
    switch (f) {
    case ARITH_ADD: return LLVMBuildFAdd(b, x, y, "");
    case ARITH_SUB: return LLVMBuildFSub(b, x, y, "");
    case ARITH_MUL: return LLVMBuildFMul(b, x, y, "");
    case ARITH_NEG: break;
    }
    return LLVMBuildFNeg(b, x, "");
}

static LLVMValueRef apply_integer(LLVMBuilderRef b, Arith f, LLVMValueRef x, LLVMValueRef y)
{
    switch (f) {
    case ARITH_ADD: return LLVMBuildAdd(b, x, y, "");
    case ARITH_SUB: return LLVMBuildSub(b, x, y, "");
    case ARITH_MUL: return LLVMBuildMul(b, x, y, "");
    case ARITH_NEG: break;
    }
    return LLVMBuildNeg(b, x, "");
}

/* The LLVM type whose arithmetic is that of `t`, or NULL. */
static LLVMTypeRef native_type(Codegen *cg, DType t)
{
    switch (t) {
    case DTYPE_f16: return cg->f16;
    case DTYPE_bf16: return cg->bf16;
    case DTYPE_f32: return cg->f32;
    case DTYPE_f64: return cg->f64;
    default: return NULL;
    }
}

/* The code of the result for two codes, each an i32 or i64 (emit_get_bits). */
static LLVMValueRef apply_code(Codegen *cg, Arith f, DType t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = cg->builder;
    unsigned bits = dtype_bits(t);
    if (dtype_is_integer(t)) {
        LLVMValueRef v = apply_integer(b, f, x, y);
        return bits >= 32 ? v : LLVMBuildAnd(b, v, const_i32_of(cg, (1u << bits) - 1), "");
    }
    if (t == DTYPE_f32 || t == DTYPE_f64) {
        LLVMTypeRef type = native_type(cg, t), code = LLVMTypeOf(x);
        x = LLVMBuildBitCast(b, x, type, "");
        y = LLVMBuildBitCast(b, y, type, "");
        return LLVMBuildBitCast(b, apply_float(b, f, x, y), code, "");
    }
    if (bits <= 8 && dtype_is_float(t) && dtype_info[t].exponent <= 6)
        return convert_encode_f32(b, t, apply_float(b, f, convert_decode_f32(b, t, x),
                                                    convert_decode_f32(b, t, y)));
    return convert_encode_f64(b, t, apply_float(b, f, convert_decode_f64(b, t, x),
                                                convert_decode_f64(b, t, y)));
}

/* Two f16 or bf16 slots a word; past an odd last slot the result is unspecified. */
static void apply_halves(Codegen *cg, Arith f, const Type *t, LLVMValueRef *x, LLVMValueRef *y,
                         LLVMValueRef *out)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef pair = LLVMVectorType(native_type(cg, t->dtype), 2);
    for (int64_t i = 0; i < type_thread_words(t); i++) {
        LLVMValueRef v = LLVMBuildBitCast(b, x[i], pair, "");
        LLVMValueRef w = LLVMBuildBitCast(b, y[i], pair, "");
        out[i] = LLVMBuildBitCast(b, apply_float(b, f, v, w), cg->i32, "");
    }
}

static bool emit_arith(Codegen *cg, const Op *op, Arith f)
{
    const Type *t = op->results[0]->type;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *x = lowered_words(op->operands[0]);
    LLVMValueRef *y = lowered_words(op->operands[op->operand_count - 1]);
    LLVMValueRef *out = words_new(cg, t);
    if (bits == 16 && dtype_is_float(t->dtype)) {
        apply_halves(cg, f, t, x, y, out);
    } else {
        for (int64_t slot = 0; slot < t->layout->slots; slot++) {
            LLVMValueRef v = emit_get_bits(cg, x, slot * bits, bits);
            LLVMValueRef w = emit_get_bits(cg, y, slot * bits, bits);
            emit_set_bits(cg, out, slot * bits, bits, apply_code(cg, f, t->dtype, v, w));
        }
    }
    lower_words(cg, op->results[0], out);
    return true;
}

bool emit_add(Codegen *cg, const Op *op) { return emit_arith(cg, op, ARITH_ADD); }
bool emit_sub(Codegen *cg, const Op *op) { return emit_arith(cg, op, ARITH_SUB); }
bool emit_mul(Codegen *cg, const Op *op) { return emit_arith(cg, op, ARITH_MUL); }
bool emit_neg(Codegen *cg, const Op *op) { return emit_arith(cg, op, ARITH_NEG); }
