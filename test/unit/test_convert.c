/* Casts against dtype_cast: convert_code for every pair of element types, and
 * emit_cast on packed words. The IR runs on this machine through ORC, and also
 * passes NVPTX's selection, which aborts on what it does not know. */
#include "codegen/convert.h"
#include "select/plan.h"
#include "codegen/internal.h"
#include "ir/builder.h"
#include "support/bits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "jit.h"

enum {
    CODES_MAX = 1 << 17,
    RANDOM_CODES = 300,
    WRONG_MAX = 20,         /* pairs, then the test gives up */
    SLOTS = 37,             /* of packed words: a whole plan, and an odd rest */
    WORDS_MAX = 2 * SLOTS,
    TILES = 200
};

typedef void PairFunction(const uint64_t *in, uint64_t *out, uint64_t count);

typedef void WordsFunction(const uint32_t *in, uint32_t *out);

typedef struct Codes {
    uint64_t *at;
    size_t count;
} Codes;

/* ---- the functions under test --------------------------------------- */

static void pair_name(char name[32], DType to, DType from)
{
    snprintf(name, 32, "%s_%s", dtype_name(from), dtype_name(to));
}

/* out[i] = cast(in[i]) for i in 0..count, count > 0. */
static void build_pair(LLVMModuleRef m, DType to, DType from)
{
    LLVMContextRef cx = LLVMGetModuleContext(m);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(cx), i32 = LLVMInt32TypeInContext(cx);
    LLVMTypeRef ptr = LLVMPointerTypeInContext(cx, 0);
    LLVMTypeRef params[] = {ptr, ptr, i64};
    char name[32];
    pair_name(name, to, from);
    LLVMValueRef f = LLVMAddFunction(
        m, name, LLVMFunctionType(LLVMVoidTypeInContext(cx), params, 3, 0));
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(cx, f, "");
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(cx, f, "");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(cx, f, "");
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMPositionBuilderAtEnd(b, entry);
    LLVMBuildBr(b, loop);

    LLVMPositionBuilderAtEnd(b, loop);
    LLVMValueRef i = LLVMBuildPhi(b, i64, "");
    LLVMValueRef in = LLVMBuildGEP2(b, i64, LLVMGetParam(f, 0), &i, 1, "");
    LLVMValueRef out = LLVMBuildGEP2(b, i64, LLVMGetParam(f, 1), &i, 1, "");
    LLVMValueRef code = LLVMBuildLoad2(b, i64, in, "");
    if (dtype_bits(from) <= 32)
        code = LLVMBuildTrunc(b, code, i32, "");
    code = convert_code(b, to, from, code);
    assert_ptr_equal(LLVMTypeOf(code), dtype_bits(to) <= 32 ? i32 : i64);
    LLVMBuildStore(b, LLVMBuildZExt(b, code, i64, ""), out);
    LLVMValueRef next = LLVMBuildAdd(b, i, LLVMConstInt(i64, 1, 0), "");
    LLVMAddIncoming(i, (LLVMValueRef[]){LLVMConstInt(i64, 0, 0), next},
                    (LLVMBasicBlockRef[]){entry, loop}, 2);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, LLVMGetParam(f, 2), ""), loop, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
}

static LLVMModuleRef build_pairs_from(LLVMContextRef cx, DType from)
{
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext(dtype_name(from), cx);
    for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++)
        build_pair(m, to, from);
    return m;
}

/* ---- codes to try --------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void add_code(Codes *codes, DType t, uint64_t code)
{
    if (codes->count < CODES_MAX)
        codes->at[codes->count++] = code & bits_mask(dtype_bits(t));
}

/* The codes of `from` next to a value: its own, its neighbors, and for wide types
 * also codes that differ in the last bits of an f32. */
static void add_around(Codes *codes, DType from, double value)
{
    uint64_t code = dtype_encode(from, value);
    for (int step = -1; step <= 1; step++)
        add_code(codes, from, code + (uint64_t)step);
    if (dtype_bits(from) == 64) {
        add_code(codes, from, code + (1u << 29));
        add_code(codes, from, code - (1u << 29));
    }
}

/* Adds the codes where casts to `to` change their result: its values, and ties between. */
static void add_boundaries(Codes *codes, DType from, DType to)
{
    uint64_t stride = dtype_bits(to) <= 8 ? 1 : 509;
    if (dtype_bits(to) > 16)
        return;
    for (uint64_t code = 0; code <= bits_mask(dtype_bits(to)); code += stride) {
        double value = dtype_decode(to, code);
        double above = dtype_decode(to, (code + 1) & bits_mask(dtype_bits(to)));
        add_around(codes, from, value);
        add_around(codes, from, (value + above) / 2);
    }
    add_around(codes, from, dtype_max(to) * (1 + 0x1p-8));
    add_around(codes, from, dtype_max(to) * 1.25);
}

static void add_wide(Codes *codes, DType from)
{
    for (unsigned bit = 0; bit < dtype_bits(from); bit++) {
        add_around(codes, from, ldexp(1, (int)bit));
        add_around(codes, from, -ldexp(1, (int)bit));
        add_around(codes, from, ldexp(1, (int)bit) - 0.5);
        add_around(codes, from, 0.5 - ldexp(1, (int)bit));
        for (int step = -1; step <= 1; step++)
            add_code(codes, from, ((uint64_t)1 << bit) + (uint64_t)step);
        add_code(codes, from, ~((uint64_t)1 << bit));
    }
    static const double special[] = {
        0.0, -0.0, 0.5, 1.5, 2.5, INFINITY, -INFINITY, NAN,
        0x1p-127, 0x1.8p-127, 0x1.cp-127,               /* ue8m0's least codes */
        0x1p-149, 0x1p-150, 0x1.000002p-150, 0x1.8p-134,  /* f32's and bf16's */
        0x1.fffffep127, 0x1.ffffffp127, 0x1.ffp127, 0x1.fep127, 0x1.ffep127,
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        add_around(codes, from, special[i]);
    for (unsigned i = 0; i < RANDOM_CODES; i++) {
        int scale = (int)(random_u64() % 80) - 100;
        add_code(codes, from, random_u64());
        add_code(codes, from, random_u64() >> random_u64() % 64);
        add_around(codes, from, ldexp((double)(int64_t)random_u64(), scale));
    }
}

/* Targets for which all 65536 codes of 16-bit sources are tried. */
static bool is_tried_fully(DType to)
{
    return to == DTYPE_f16 || to == DTYPE_bf16 || to == DTYPE_f32 || to == DTYPE_f8e4m3 ||
           to == DTYPE_f8e5m2 || to == DTYPE_f6e3m2 || to == DTYPE_ue8m0 || to == DTYPE_i8 ||
           to == DTYPE_u4;
}

static void choose_codes(Codes *codes, DType to, DType from)
{
    codes->count = 0;
    if (dtype_bits(from) <= 16) {
        uint64_t stride = dtype_bits(from) <= 8 || is_tried_fully(to) ? 1 : 127;
        for (uint64_t code = 0; code <= bits_mask(dtype_bits(from)); code += stride)
            add_code(codes, from, code);
        return;
    }
    add_wide(codes, from);
    add_boundaries(codes, from, to);
}

/* ---- comparing ------------------------------------------------------ */

static unsigned compare_pair(PairFunction *run, DType to, DType from, Codes *in, uint64_t *out)
{
    unsigned wrong = 0;
    choose_codes(in, to, from);
    run(in->at, out, in->count);
    for (size_t i = 0; i < in->count; i++) {
        uint64_t expected = dtype_cast(to, from, in->at[i]);
        if (is_same(to, out[i], expected))
            continue;
        if (wrong++ < 3)
            print_error("cast %s -> %s of %#llx: %#llx, expected %#llx\n", dtype_name(from),
                        dtype_name(to), (unsigned long long)in->at[i],
                        (unsigned long long)out[i], (unsigned long long)expected);
    }
    return wrong;
}

static uintptr_t find_pair(LLVMOrcLLJITRef jit, DType to, DType from)
{
    char name[32];
    pair_name(name, to, from);
    return jit_address(jit, name);
}

/* ---- tests of codes -------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    LLVMOrcLLJITRef jit = jit_new();
    Codes in = {.at = malloc(CODES_MAX * sizeof(uint64_t))};
    uint64_t *out = malloc(CODES_MAX * sizeof(uint64_t));
    unsigned wrong_pairs = 0;
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT && wrong_pairs < WRONG_MAX; from++) {
        LLVMContextRef cx = LLVMContextCreate();
        jit_add(jit, cx, build_pairs_from(cx, from));
        for (DType to = DTYPE_none + 1; to < DTYPE_COUNT && wrong_pairs < WRONG_MAX; to++) {
            PairFunction *run = (PairFunction *)find_pair(jit, to, from);
            wrong_pairs += compare_pair(run, to, from, &in, out) > 0;
        }
    }
    free(in.at);
    free(out);
    require(LLVMOrcDisposeLLJIT(jit));
    assert_int_equal(wrong_pairs, 0);
}

/* ---- words ---------------------------------------------------------- */

/* Widths that divide a word, that straddle words, and wider ones. */
static const DType word_types[] = {
    DTYPE_u1, DTYPE_i3, DTYPE_u4, DTYPE_f4e2m1, DTYPE_f6e3m2, DTYPE_i7, DTYPE_u8, DTYPE_ue8m0,
    DTYPE_f8e4m3, DTYPE_f8e5m2,
    DTYPE_f16, DTYPE_bf16, DTYPE_i16, DTYPE_tf32, DTYPE_f32, DTYPE_f64, DTYPE_u64,
};
enum { WORD_TYPES = sizeof word_types / sizeof *word_types };

/* Builds a function of (ptr in, ptr out) for one cast op. */
static void build_words_cast(Codegen *cg, Program *p, DType to, DType from)
{
    Module *m = cg->module;
    const char *why;
    const Layout *layout = layout_local(&m->layouts, 1, (int64_t[]){SLOTS}, &why);
    Loc loc = {0};
    Value *in = build_argument(p, "in", loc, type_reg(m, from, layout));
    Op *op = build_op(m, OP_cast, loc, &in, 1, NULL, 0);
    Value *out = build_result(m, op, "out", loc, type_reg(m, to, layout));

    LLVMTypeRef ptr = LLVMPointerTypeInContext(cg->context, 0), params[] = {ptr, ptr};
    char name[32];
    pair_name(name, to, from);
    LLVMValueRef f = LLVMAddFunction(
        cg->llvm, name, LLVMFunctionType(LLVMVoidTypeInContext(cg->context), params, 2, 0));
    LLVMPositionBuilderAtEnd(cg->builder, LLVMAppendBasicBlockInContext(cg->context, f, ""));
    load_words(cg, in, LLVMGetParam(f, 0));
    Plan plan;
    assert_true(select_plan(m, op, cg->target->sm, &plan) && emit_cast(cg, op, &plan));
    store_words(cg, out, LLVMGetParam(f, 1));
    LLVMBuildRetVoid(cg->builder);
}

static void jit_add_words_casts(LLVMOrcLLJITRef jit, Module *m)
{
    Codegen cg = codegen_for_host(m);
    Program *p = build_program(m, "casts", (Loc){0});
    for (size_t from = 0; from < WORD_TYPES; from++)
        for (size_t to = 0; to < WORD_TYPES; to++)
            build_words_cast(&cg, p, word_types[to], word_types[from]);
    LLVMDisposeBuilder(cg.builder);
    jit_add(jit, cg.context, cg.llvm);
}

static void check_words(WordsFunction *run, DType to, DType from)
{
    for (unsigned tile = 0; tile < TILES; tile++) {
        uint32_t in[WORDS_MAX], out[WORDS_MAX] = {0};
        for (unsigned i = 0; i < WORDS_MAX; i++)
            in[i] = (uint32_t)random_u64();
        run(in, out);
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            uint64_t code = bits_get(in, slot, dtype_bits(from));
            uint64_t got = bits_get(out, slot, dtype_bits(to));
            uint64_t expected = dtype_cast(to, from, code);
            if (!is_same(to, got, expected))
                fail_msg("slot %u, %s -> %s of %#llx: %#llx, expected %#llx", slot,
                         dtype_name(from), dtype_name(to), (unsigned long long)code,
                         (unsigned long long)got, (unsigned long long)expected);
        }
    }
}

static void test_words(void **state)
{
    (void)state;
    LLVMOrcLLJITRef jit = jit_new();
    Diag diag;
    diag_init(&diag);
    Module *m = module_new(&diag);
    assert_non_null(m);
    jit_add_words_casts(jit, m);
    module_free(m);
    diag_free(&diag);
    for (size_t from = 0; from < WORD_TYPES; from++)
        for (size_t to = 0; to < WORD_TYPES; to++) {
            DType x = word_types[to], y = word_types[from];
            check_words((WordsFunction *)find_pair(jit, x, y), x, y);
        }
    require(LLVMOrcDisposeLLJIT(jit));
}

/* ---- NVPTX ---------------------------------------------------------- */

static void select_all(const char *cpu)
{
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &target, &message))
        fail_msg("%s", message);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, "nvptx64-nvidia-cuda", cpu, "+ptx80",
                                LLVMCodeGenLevelLess, LLVMRelocDefault, LLVMCodeModelDefault);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++) {
        LLVMContextRef cx = LLVMContextCreate();
        LLVMModuleRef m = build_pairs_from(cx, from);
        assert_false(LLVMVerifyModule(m, LLVMPrintMessageAction, NULL));
        LLVMSetTarget(m, "nvptx64-nvidia-cuda");
        LLVMSetModuleDataLayout(m, layout);
        LLVMMemoryBufferRef ptx;
        if (LLVMTargetMachineEmitToMemoryBuffer(machine, m, LLVMAssemblyFile, &message, &ptx))
            fail_msg("%s", message);
        /* A libcall would show as an undefined function of the module. */
        assert_null(strstr(LLVMGetBufferStart(ptx), ".extern"));
        LLVMDisposeMemoryBuffer(ptx);
        LLVMDisposeModule(m);
        LLVMContextDispose(cx);
    }
    LLVMDisposeTargetData(layout);
    LLVMDisposeTargetMachine(machine);
}

static void test_nvptx_selects(void **state)
{
    (void)state;
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    select_all("sm_80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_nvptx_selects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
