/* Running generated IR on this machine, for unit tests: a JIT, a Codegen without
 * a target, register words in memory. Include after cmocka. */
#ifndef TILUS_TEST_JIT_H
#define TILUS_TEST_JIT_H

#include "cast/plan.h"
#include "codegen/internal.h"
#include "cpu/bf16.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <math.h>
#include <string.h>

/* What x86 without AVX512-BF16 calls for fptrunc to bfloat, and libgcc 12
 * lacks. The result travels in the low bits of a vector register. */
static inline float truncate_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (uint32_t)dtype_cast(DTYPE_bf16, DTYPE_f32, bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What operations of cast plans that are @tilus.* functions do: their meaning is
 * that of a plan of one. */
static inline uint32_t run_one(CastOpCode code, uint32_t a, uint32_t b, uint32_t c,
                               uint32_t imm)
{
    CastOp ops[] = {{CAST_input, 0, {0}}, {CAST_input, 1, {0}}, {CAST_input, 2, {0}},
                    {code, imm, {0, 1, 2}}};
    CastPlan plan = {.ops = ops, .count = 4, .out = {3}, .out_words = 1};
    uint32_t result;
    cast_run(&plan, (uint32_t[]){a, b, c}, &result);
    return result;
}

static inline uint32_t host_prmt(uint32_t a, uint32_t b, uint32_t c)
{
    return run_one(CAST_prmt, a, b, c, 0);
}

static inline uint32_t host_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    return run_one(CAST_lop3, a, b, c, table);
}

static inline uint32_t host_mad(uint32_t a, uint32_t b, uint32_t c)
{
    return run_one(CAST_mad, a, b, c, 0);
}

static inline uint32_t host_pair_e4m3(uint32_t a, uint32_t b, uint32_t c)
{
    return run_one(CAST_pair_e4m3, a, b, c, 0);
}

static inline uint32_t host_from_e4m3(uint32_t a)
{
    return run_one(CAST_from_e4m3, a, 0, 0, 0);
}

static inline uint32_t host_to_e4m3(uint32_t a)
{
    return run_one(CAST_to_e4m3, a, 0, 0, 0);
}

static inline uint32_t host_to_e5m2(uint32_t a)
{
    return run_one(CAST_to_e5m2, a, 0, 0, 0);
}

static inline void require(LLVMErrorRef error)
{
    if (error)
        fail_msg("%s", LLVMGetErrorMessage(error));
}

/* A machine with F16C but not AVX512-BF16, whose conversion to bf16 takes
 * subnormals for zero. */
static inline LLVMTargetMachineRef host_machine(void)
{
    char *triple = LLVMGetDefaultTargetTriple(), *message = NULL;
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(triple, &target, &message))
        fail_msg("%s", message);
    const char *cpu = strncmp(triple, "x86_64", 6) == 0 ? "x86-64-v3" : "generic";
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, cpu, "", LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelJITDefault);
    LLVMDisposeMessage(triple);
    return machine;
}

static inline LLVMOrcLLJITRef jit_new(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(host_machine()));
    LLVMOrcLLJITRef jit;
    require(LLVMOrcCreateLLJIT(&jit, builder));
    LLVMOrcJITDylibRef main = LLVMOrcLLJITGetMainJITDylib(jit);
    LLVMOrcDefinitionGeneratorRef process;
    require(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
        &process, LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL));
    LLVMOrcJITDylibAddGenerator(main, process);
    const struct {
        const char *name;
        uintptr_t address;
    } functions[] = {
        {"__truncsfbf2", (uintptr_t)truncate_to_bf16},
        {intrinsic_info[INTR_prmt].name, (uintptr_t)host_prmt},
        {intrinsic_info[INTR_lop3].name, (uintptr_t)host_lop3},
        {intrinsic_info[INTR_mad].name, (uintptr_t)host_mad},
        {intrinsic_info[INTR_pair_e4m3].name, (uintptr_t)host_pair_e4m3},
        {intrinsic_info[INTR_from_e4m3].name, (uintptr_t)host_from_e4m3},
        {intrinsic_info[INTR_to_e4m3].name, (uintptr_t)host_to_e4m3},
        {intrinsic_info[INTR_to_e5m2].name, (uintptr_t)host_to_e5m2},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        LLVMOrcCSymbolMapPair symbol = {
            .Name = LLVMOrcLLJITMangleAndIntern(jit, functions[i].name),
            .Sym = {.Address = (LLVMOrcExecutorAddress)functions[i].address,
                    .Flags = {LLVMJITSymbolGenericFlagsExported |
                              LLVMJITSymbolGenericFlagsCallable, 0}}};
        require(LLVMOrcJITDylibDefine(main, LLVMOrcAbsoluteSymbols(&symbol, 1)));
    }
    return jit;
}

/* Gives the JIT a module and its context, with bf16 as the CPU engine has it. */
static inline void jit_add(LLVMOrcLLJITRef jit, LLVMContextRef cx, LLVMModuleRef m)
{
    bf16_legalize(m);
    assert_false(LLVMVerifyModule(m, LLVMPrintMessageAction, NULL));
    LLVMOrcThreadSafeContextRef shared = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(cx);
    LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(m, shared);
    LLVMOrcDisposeThreadSafeContext(shared);
    require(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), safe));
}

/* The address of a function of an added module. */
static inline uintptr_t jit_address(LLVMOrcLLJITRef jit, const char *name)
{
    LLVMOrcExecutorAddress address;
    require(LLVMOrcLLJITLookup(jit, &address, name));
    return (uintptr_t)address;
}

/* ---- emitters without a target --------------------------------------- */

/* A Codegen with a fresh context and LLVM module, which jit_add takes: it makes
 * what sm_90 gets, of which the JIT knows the functions of cast plans. The caller
 * disposes of the builder. */
static inline Codegen codegen_for_host(Module *m)
{
    LLVMContextRef cx = LLVMContextCreate();
    return (Codegen){
        .module = m, .diag = m->diag, .context = cx,
        .target = target_find("sm_90"),
        .llvm = LLVMModuleCreateWithNameInContext("words", cx),
        .builder = LLVMCreateBuilderInContext(cx),
        .i32 = LLVMInt32TypeInContext(cx), .i64 = LLVMInt64TypeInContext(cx),
        .f16 = LLVMHalfTypeInContext(cx), .bf16 = LLVMBFloatTypeInContext(cx),
        .f32 = LLVMFloatTypeInContext(cx), .f64 = LLVMDoubleTypeInContext(cx),
    };
}

/* The words of a REG value: loaded from and stored to consecutive i32. */
static inline void load_words(Codegen *cg, Value *v, LLVMValueRef from)
{
    LLVMValueRef *words = words_new(cg, v->type);
    for (int64_t i = 0; i < type_thread_words(v->type); i++) {
        LLVMValueRef index = const_i64_of(cg, i);
        LLVMValueRef at = LLVMBuildGEP2(cg->builder, cg->i32, from, &index, 1, "");
        words[i] = LLVMBuildLoad2(cg->builder, cg->i32, at, "");
    }
    lower_words(cg, v, words);
}

static inline void store_words(Codegen *cg, Value *v, LLVMValueRef to)
{
    for (int64_t i = 0; i < type_thread_words(v->type); i++) {
        LLVMValueRef index = const_i64_of(cg, i);
        LLVMValueRef at = LLVMBuildGEP2(cg->builder, cg->i32, to, &index, 1, "");
        LLVMBuildStore(cg->builder, lowered_words(v)[i], at);
    }
}

/* Takes any NaN of f16 and wider types for any other. */
static inline bool is_same(DType t, uint64_t a, uint64_t b)
{
    bool is_free = dtype_has_nan(t) && dtype_bits(t) > 8;
    return a == b || (is_free && isnan(dtype_decode(t, a)) && isnan(dtype_decode(t, b)));
}

#endif
