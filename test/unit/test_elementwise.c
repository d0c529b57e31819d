/* Element-wise emitters against the functions of dtype.h: what they build runs
 * on this machine, on packed words of random codes. The machine's approximate
 * functions are not here: only a GPU has them. */
#include "codegen/internal.h"
#include "ir/builder.h"
#include "ir/op_attrs.h"
#include "support/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jit.h"

enum {
    SLOTS = 5,              /* odd, for the end of pairs */
    WORDS_MAX = 2 * SLOTS,
    TILES = 300
};

typedef void TileFunction(const uint32_t *a, const uint32_t *b, const uint32_t *c,
                          uint32_t *out);
typedef bool Emitter(Codegen *cg, const Op *op);

/* An op on a type. */
typedef struct Case {
    OpCode code;
    DType type;             /* of the operands, but for select's first */
    Predicate predicate;    /* compare */
} Case;

static Emitter *const emitters[OP_COUNT] = {
#define PLAIN(id) [OP_##id] = emit_##id,
#include "select/planners.def"
};

static DType operand_type(Case c, unsigned i)
{
    return c.code == OP_select && i == 0 ? DTYPE_bool : c.type;
}

static DType result_type(Case c)
{
    return c.code == OP_compare ? DTYPE_bool : c.type;
}

static void case_name(char name[64], Case c)
{
    snprintf(name, 64, "%s_%s_%u", op_info[c.code].name, dtype_name(c.type), c.predicate);
}

/* ---- what is expected ------------------------------------------------ */

static uint64_t compare_codes(Case c, const uint64_t *v)
{
    static const char holds[][4] = {    /* less, equal, greater, none */
        [PREDICATE_EQ] = {0, 1, 0, 0}, [PREDICATE_NE] = {1, 0, 1, 1},
        [PREDICATE_LT] = {1, 0, 0, 0}, [PREDICATE_LE] = {1, 1, 0, 0},
        [PREDICATE_GT] = {0, 0, 1, 0}, [PREDICATE_GE] = {0, 1, 1, 0}};
    return (uint64_t)holds[c.predicate][dtype_order(c.type, v[0], v[1])];
}

static uint64_t expected_code(Case c, const uint64_t *v)
{
    switch (c.code) {
    case OP_add: return dtype_add(c.type, v[0], v[1]);
    case OP_sub: return dtype_sub(c.type, v[0], v[1]);
    case OP_mul: return dtype_mul(c.type, v[0], v[1]);
    case OP_neg: return dtype_neg(c.type, v[0]);
    case OP_div: return dtype_div(c.type, v[0], v[1]);
    case OP_mod: return dtype_mod(c.type, v[0], v[1]);
    case OP_abs: return dtype_abs(c.type, v[0]);
    case OP_min: return dtype_lesser(c.type, v[0], v[1]);
    case OP_max: return dtype_greater(c.type, v[0], v[1]);
    case OP_fma: return dtype_fma(c.type, v[0], v[1], v[2]);
    case OP_floor: return dtype_floor(c.type, v[0]);
    case OP_ceil: return dtype_ceil(c.type, v[0]);
    case OP_round: return dtype_round(c.type, v[0]);
    case OP_compare: return compare_codes(c, v);
    case OP_select: return v[0] ? v[1] : v[2];
    case OP_and: return dtype_and(c.type, v[0], v[1]);
    case OP_or: return dtype_or(c.type, v[0], v[1]);
    case OP_xor: return dtype_xor(c.type, v[0], v[1]);
    case OP_not: return dtype_not(c.type, v[0]);
    case OP_shl: return dtype_shl(c.type, v[0], v[1]);
    case OP_shr: return dtype_shr(c.type, v[0], v[1]);
    default: fail_msg("no definition of %s", op_info[c.code].name);
    }
    return 0;
}

/* ---- building and running -------------------------------------------- */

/* void name(ptr a, ptr b, ptr c, ptr out) for one op. */
static void build_case(Codegen *cg, Program *p, Case c)
{
    Module *m = cg->module;
    const char *why;
    Loc loc = {0};
    const Layout *layout = layout_local(&m->layouts, 1, (int64_t[]){SLOTS}, &why);
    unsigned count = (unsigned)op_info[c.code].operand_count;
    Value *operands[OPERANDS_MAX];
    for (unsigned i = 0; i < count; i++)
        operands[i] = build_argument(p, "x", loc, type_reg(m, operand_type(c, i), layout));
    Attr predicate = {.kind = ATTR_PREDICATE, .word = c.predicate};
    Op *op = build_op(m, c.code, loc, operands, count, &predicate, c.code == OP_compare);
    Value *out = build_result(m, op, "out", loc, type_reg(m, result_type(c), layout));

    LLVMTypeRef ptr = LLVMPointerTypeInContext(cg->context, 0);
    LLVMTypeRef params[] = {ptr, ptr, ptr, ptr};
    char name[64];
    case_name(name, c);
    LLVMValueRef f = LLVMAddFunction(
        cg->llvm, name, LLVMFunctionType(LLVMVoidTypeInContext(cg->context), params, 4, 0));
    LLVMPositionBuilderAtEnd(cg->builder, LLVMAppendBasicBlockInContext(cg->context, f, ""));
    for (unsigned i = 0; i < count; i++)
        load_words(cg, operands[i], LLVMGetParam(f, i));
    assert_true(emitters[c.code](cg, op));
    store_words(cg, out, LLVMGetParam(f, 3));
    LLVMBuildRetVoid(cg->builder);
}

static uint64_t random_u64(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Any code, or one of those where definitions have corners: zero, small numbers,
 * all ones, the sign alone. */
static uint64_t random_code(DType t)
{
    uint64_t pick = random_u64(), code = random_u64();
    uint64_t corners[] = {0, 1, 2, UINT64_MAX, UINT64_C(1) << (dtype_bits(t) - 1),
                          dtype_encode(t, 1), dtype_encode(t, -2), pick >> 8 & 63};
    return (pick & 3 ? code : corners[pick >> 2 & 7]) & bits_mask(dtype_bits(t));
}

static void check_slot(Case c, const uint64_t *v, uint64_t got)
{
    uint64_t expected = expected_code(c, v);
    char name[64];
    case_name(name, c);
    if (!is_same(result_type(c), got, expected))
        fail_msg("%s of %#llx, %#llx, %#llx: %#llx, expected %#llx", name,
                 (unsigned long long)v[0], (unsigned long long)v[1], (unsigned long long)v[2],
                 (unsigned long long)got, (unsigned long long)expected);
}

static void check_case(TileFunction *run, Case c)
{
    for (unsigned tile = 0; tile < TILES; tile++) {
        uint32_t in[OPERANDS_MAX][WORDS_MAX] = {0}, out[WORDS_MAX] = {0};
        uint64_t v[SLOTS][OPERANDS_MAX];
        for (unsigned i = 0; i < OPERANDS_MAX; i++)
            for (unsigned slot = 0; slot < SLOTS; slot++) {
                v[slot][i] = random_code(operand_type(c, i));
                bits_set(in[i], slot, dtype_bits(operand_type(c, i)), v[slot][i]);
            }
        run(in[0], in[1], in[2], out);
        for (unsigned slot = 0; slot < SLOTS; slot++)
            check_slot(c, v[slot], bits_get(out, slot, dtype_bits(result_type(c))));
    }
}

static void check_cases(const Case *cases, size_t count)
{
    LLVMOrcLLJITRef jit = jit_new();
    Diag diag;
    diag_init(&diag);
    Module *m = module_new(&diag);
    assert_non_null(m);
    Codegen cg = codegen_for_host(m);
    Program *p = build_program(m, "cases", (Loc){0});
    cg.program = p;
    for (size_t i = 0; i < count; i++)
        build_case(&cg, p, cases[i]);
    LLVMDisposeBuilder(cg.builder);
    jit_add(jit, cg.context, cg.llvm);
    module_free(m);
    diag_free(&diag);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        case_name(name, cases[i]);
        check_case((TileFunction *)jit_address(jit, name), cases[i]);
    }
    require(LLVMOrcDisposeLLJIT(jit));
}

/* ---- tests ----------------------------------------------------------- */

static const DType integers[] = {DTYPE_i1, DTYPE_u1, DTYPE_i3, DTYPE_u4, DTYPE_i7, DTYPE_i8,
                                 DTYPE_u8, DTYPE_i16, DTYPE_u16, DTYPE_i32, DTYPE_u32,
                                 DTYPE_i64, DTYPE_u64};
static const DType floats[] = {DTYPE_f3e1m1, DTYPE_f4e2m1, DTYPE_f6e3m2, DTYPE_f7e5m1,
                               DTYPE_f8e4m3, DTYPE_f8e5m2, DTYPE_f8e6m1, DTYPE_f8e7m0,
                               DTYPE_f16, DTYPE_bf16, DTYPE_tf32, DTYPE_f32, DTYPE_f64};
static const DType others[] = {DTYPE_bool, DTYPE_ue8m0};

enum { CASES_MAX = 1024 };

static size_t add_cases(Case *cases, size_t count, OpCode code, const DType *types, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cases[count++] = (Case){.code = code, .type = types[i]};
    return count;
}

#define ADD(code, types)                                                      \
    count = add_cases(cases, count, code, types, sizeof types / sizeof *types)

static void arithmetic_of_integers(void **state)
{
    (void)state;
    static const OpCode ops[] = {OP_add, OP_sub, OP_mul, OP_neg, OP_div, OP_mod,
                                 OP_abs, OP_min, OP_max, OP_fma, OP_and, OP_or,
                                 OP_xor, OP_not, OP_shl, OP_shr};
    Case cases[CASES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ADD(ops[i], integers);
    check_cases(cases, count);
}

/* Without fma of halves, which this machine rounds twice. */
static void arithmetic_of_floats(void **state)
{
    (void)state;
    static const OpCode ops[] = {OP_add, OP_sub, OP_mul, OP_neg, OP_div, OP_mod,
                                 OP_abs, OP_min, OP_max, OP_floor, OP_ceil, OP_round};
    Case cases[CASES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ADD(ops[i], floats);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (dtype_bits(floats[i]) != 16)
            cases[count++] = (Case){.code = OP_fma, .type = floats[i]};
    check_cases(cases, count);
}

static void comparison_and_choice(void **state)
{
    (void)state;
    Case cases[CASES_MAX];
    size_t count = 0;
    for (Predicate p = PREDICATE_EQ; p <= PREDICATE_GE; p++) {
        size_t first = count;
        ADD(OP_compare, integers);
        ADD(OP_compare, floats);
        ADD(OP_compare, others);
        for (; first < count; first++)
            cases[first].predicate = p;
    }
    ADD(OP_select, integers);
    ADD(OP_select, floats);
    ADD(OP_select, others);
    check_cases(cases, count);
}

static void logic_of_bools(void **state)
{
    (void)state;
    const Case cases[] = {
        {.code = OP_and, .type = DTYPE_bool}, {.code = OP_or, .type = DTYPE_bool},
        {.code = OP_xor, .type = DTYPE_bool}, {.code = OP_not, .type = DTYPE_bool}};
    check_cases(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_of_integers),
        cmocka_unit_test(arithmetic_of_floats),
        cmocka_unit_test(comparison_and_choice),
        cmocka_unit_test(logic_of_bools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
