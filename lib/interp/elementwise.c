/* Element-wise ops: each is a function of codes, applied to each slot of each
 * thread. Replicas are computed like any other element, so they stay equal. */
#include "interp/state.h"
#include "ir/op_attrs.h"

#include <math.h>

/* The result's code from the operands' codes in one slot. */
typedef uint64_t (*SlotFunction)(const Op *op, const uint64_t *codes);

static bool apply(Interp *in, const Op *op, SlotFunction f)
{
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++) {
            uint64_t codes[OPERANDS_MAX];
            for (unsigned i = 0; i < op->operand_count; i++)
                codes[i] = tensor_get(value_tensor(op->operands[i]), thread, slot);
            tensor_set(to, thread, slot, f(op, codes));
        }
    return true;
}

static DType operand_type(const Op *op)
{
    return op->operands[0]->type->dtype;
}

/* ---- ops that dtype.h defines ------------------------------------------ */

#define UNARY(id, f)                                                          \
    static uint64_t slot_##id(const Op *op, const uint64_t *codes)            \
    {                                                                         \
        return f(operand_type(op), codes[0]);                                 \
    }                                                                         \
    bool interp_##id(Interp *in, const Op *op) { return apply(in, op, slot_##id); }

#define BINARY(id, f)                                                         \
    static uint64_t slot_##id(const Op *op, const uint64_t *codes)            \
    {                                                                         \
        return f(operand_type(op), codes[0], codes[1]);                       \
    }                                                                         \
    bool interp_##id(Interp *in, const Op *op) { return apply(in, op, slot_##id); }

BINARY(add, dtype_add)
BINARY(sub, dtype_sub)
BINARY(mul, dtype_mul)
UNARY(neg, dtype_neg)
BINARY(div, dtype_div)
BINARY(mod, dtype_mod)
UNARY(abs, dtype_abs)
UNARY(floor, dtype_floor)
UNARY(ceil, dtype_ceil)
UNARY(round, dtype_round)
BINARY(min, dtype_lesser)
BINARY(max, dtype_greater)
BINARY(and, dtype_and)
BINARY(or, dtype_or)
BINARY(xor, dtype_xor)
UNARY(not, dtype_not)
BINARY(shl, dtype_shl)
BINARY(shr, dtype_shr)

static uint64_t slot_fma(const Op *op, const uint64_t *codes)
{
    return dtype_fma(operand_type(op), codes[0], codes[1], codes[2]);
}

bool interp_fma(Interp *in, const Op *op)
{
    return apply(in, op, slot_fma);
}

static uint64_t slot_cast(const Op *op, const uint64_t *codes)
{
    return dtype_cast(op->results[0]->type->dtype, operand_type(op), codes[0]);
}

bool interp_cast(Interp *in, const Op *op)
{
    return apply(in, op, slot_cast);
}

/* ---- functions --------------------------------------------------------- */

static double reciprocal(double x)
{
    return 1 / x;
}

static double reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

/* Computed in f64 and rounded to the type. */
#define FUNCTION(id, f)                                                       \
    static uint64_t slot_##id(const Op *op, const uint64_t *codes)            \
    {                                                                         \
        DType t = operand_type(op);                                           \
        return dtype_encode(t, f(dtype_decode(t, codes[0])));                 \
    }                                                                         \
    bool interp_##id(Interp *in, const Op *op) { return apply(in, op, slot_##id); }

FUNCTION(exp2, exp2)
FUNCTION(exp, exp)
FUNCTION(log2, log2)
FUNCTION(rcp, reciprocal)
FUNCTION(rsqrt, reciprocal_root)
FUNCTION(sqrt, sqrt)
FUNCTION(tanh, tanh)
FUNCTION(sin, sin)
FUNCTION(cos, cos)
FUNCTION(erf, erf)

/* ---- comparison and choice --------------------------------------------- */

static uint64_t slot_compare(const Op *op, const uint64_t *codes)
{
    DOrder order = dtype_order(operand_type(op), codes[0], codes[1]);
    switch (compare_predicate(op)) {
    case PREDICATE_EQ: return order == DORDER_EQUAL;
    case PREDICATE_NE: return order != DORDER_EQUAL;
    case PREDICATE_LT: return order == DORDER_LESS;
    case PREDICATE_LE: return order == DORDER_LESS || order == DORDER_EQUAL;
    case PREDICATE_GT: return order == DORDER_GREATER;
    case PREDICATE_GE:
    case PREDICATE_NONE: break;
    }
    return order == DORDER_GREATER || order == DORDER_EQUAL;
}

bool interp_compare(Interp *in, const Op *op)
{
    return apply(in, op, slot_compare);
}

static uint64_t slot_select(const Op *op, const uint64_t *codes)
{
    (void)op;
    return codes[0] ? codes[1] : codes[2];
}

bool interp_select(Interp *in, const Op *op)
{
    return apply(in, op, slot_select);
}
