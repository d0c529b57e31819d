/* The verifier's rules of element-wise ops: which types must be equal, and for
 * which element types each op is defined. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/verify.h"

static bool extents_differ(const Type *a, const Type *b)
{
    for (unsigned d = 0; a->rank == b->rank && d < a->rank; d++)
        if (a->extents[d] != b->extents[d])
            return true;
    return a->rank != b->rank;
}

/* Names the op that makes one type of two. */
static const char *find_cure(const Type *a, const Type *b)
{
    bool layouts = a->layout && b->layout && a->layout != b->layout;
    return extents_differ(a, b)    ? "their extents must be equal"
           : a->dtype == b->dtype ? "convert_layout one"
           : layouts              ? "cast one, and convert_layout"
                                  : "cast one";
}

/* Reports that two operands from `first` on differ, or all from the type that the result has. */
static bool report_types(Module *m, const Op *op, unsigned first)
{
    const char *name = op_info[op->code].name;
    const Type *a = op->operands[first]->type;
    for (unsigned i = first + 1; i < op->operand_count; i++) {
        const Type *b = op->operands[i]->type;
        if (a != b)
            return diag_error(m->diag, op->loc, "operands of %s differ, %s and %s: %s", name,
                              type_text(m, a), type_text(m, b), find_cure(a, b));
    }
    return diag_error(m->diag, op->loc, "%s of %s gives that type, got %s", name, type_text(m, a),
                      type_text(m, op->results[0]->type));
}

/* Operands from `first` on have the result's type. */
static bool verify_same(Module *m, const Op *op, unsigned first)
{
    for (unsigned i = first; i < op->operand_count; i++)
        if (op->operands[i]->type != op->results[0]->type)
            return report_types(m, op, first);
    return true;
}

typedef bool (*Domain)(DType t);

static bool has_arithmetic(DType t)
{
    return t != DTYPE_bool && t != DTYPE_ue8m0;
}

/* Types whose functions the machine has. */
static bool has_functions(DType t)
{
    return t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32;
}

static bool has_fractions(DType t)
{
    return dtype_is_float(t) && has_arithmetic(t);
}

static bool has_bits(DType t)
{
    return dtype_is_integer(t) || t == DTYPE_bool;
}

static bool verify_elementwise(Module *m, const Op *op, Domain is_defined)
{
    DType t = op->results[0]->type->dtype;
    if (!verify_same(m, op, 0))
        return false;
    return is_defined(t) || diag_error(m->diag, op->loc, "%s is not defined for %s",
                                       op_info[op->code].name, dtype_name(t));
}

/* For which types each op is defined. */
#define DOMAINS(ROW)                                                         \
    ROW(add, has_arithmetic) ROW(sub, has_arithmetic)                        \
    ROW(mul, has_arithmetic) ROW(neg, has_arithmetic)                        \
    ROW(div, has_arithmetic) ROW(mod, has_arithmetic)                        \
    ROW(abs, has_arithmetic) ROW(min, has_arithmetic)                        \
    ROW(max, has_arithmetic) ROW(fma, has_arithmetic)                        \
    ROW(exp2, has_functions) ROW(exp, has_functions)                         \
    ROW(log2, has_functions) ROW(rcp, has_functions)                         \
    ROW(rsqrt, has_functions) ROW(sqrt, has_functions)                       \
    ROW(tanh, has_functions) ROW(floor, has_fractions)                       \
    ROW(ceil, has_fractions) ROW(round, has_fractions)                       \
    ROW(sin, has_functions) ROW(cos, has_functions)                          \
    ROW(erf, has_functions) ROW(and, has_bits)                               \
    ROW(or, has_bits) ROW(xor, has_bits)                                     \
    ROW(not, has_bits) ROW(shl, dtype_is_integer)                            \
    ROW(shr, dtype_is_integer)

#define VERIFY(id, domain)                                                    \
    bool verify_##id(Module *m, const Op *op) { return verify_elementwise(m, op, domain); }
DOMAINS(VERIFY)

#define DOMAIN(id, domain) [OP_##id] = domain,
static const Domain domains[OP_COUNT] = {DOMAINS(DOMAIN)};

bool verify_op_defined(OpCode code, DType t)
{
    return domains[code] && domains[code](t);
}

/* A register tensor of bool with the shape and layout of `like`. */
static bool verify_bool(Module *m, const Op *op, const Type *t, const Type *like,
                        const char *what)
{
    const Type *expected = type_like(m, like, DTYPE_bool);
    if (t == expected)
        return true;
    return diag_error(m->diag, op->loc, "the %s of %s is %s here, got %s", what,
                      op_info[op->code].name, type_text(m, expected), type_text(m, t));
}

bool verify_compare(Module *m, const Op *op)
{
    const Type *a = op->operands[0]->type, *b = op->operands[1]->type;
    const Attr *predicate = op_attr(op, ATTR_PREDICATE);
    if (compare_predicate(op) == PREDICATE_NONE)
        return diag_error(m->diag, op->loc, "compare needs %s, got %s",
                          attr_words_text(&m->arena, ATTR_PREDICATE),
                          predicate ? attr_word_text(predicate) : "none");
    if (a != b)
        return diag_error(m->diag, op->loc, "compare of %s and %s", type_text(m, a),
                          type_text(m, b));
    return verify_bool(m, op, op->results[0]->type, a, "result");
}

bool verify_select(Module *m, const Op *op)
{
    return verify_same(m, op, 1) &&
           verify_bool(m, op, op->operands[0]->type, op->results[0]->type, "condition");
}
