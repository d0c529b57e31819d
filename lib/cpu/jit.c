/* LLVM's ORC JIT, and what compiled code may call beside the helpers. */
#include "cpu/jit.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct HostCode {
    LLVMOrcLLJITRef jit;
};

/* ---- the machine --------------------------------------------------------- */

static void initialize(void)
{
    nvptx_initialize();     /* options of the process come before any target machine */
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
}

#if defined(__x86_64__)
/* Asked of the processor: clang 14 has no __builtin_cpu_supports("f16c"). */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

/* Not all that this computer can do: instructions that convert to bf16 take
 * subnormals for zero. */
static const char *machine_name(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi2") && has_f16c()
               ? "x86-64-v3" : "x86-64";
#else
    return "generic";
#endif
}

LLVMTargetMachineRef jit_machine(Codegen *cg, unsigned opt_level)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, initialize);
    LLVMTargetRef target;
    LLVMTargetMachineRef machine = NULL;
    char *triple = LLVMGetDefaultTargetTriple(), *why = NULL;
    if (!LLVMGetTargetFromTriple(triple, &target, &why))
        machine = LLVMCreateTargetMachine(target, triple, machine_name(), "",
                                          (LLVMCodeGenOptLevel)opt_level, LLVMRelocPIC,
                                          LLVMCodeModelJITDefault);
    LLVMDisposeMessage(triple);
    if (!machine)
        diag_error(cg->diag, (Loc){0}, "this LLVM does not compile for this machine: %s",
                   why ? why : "no target machine");
    LLVMDisposeMessage(why);
    return machine;
}

/* ---- the runtime of conversions ------------------------------------------ */

/* Functions that LLVM calls where a machine lacks the instruction; C libraries may lack
 * them too. Values of 16 bits travel in the low bits of a vector register, as floats do. */
static float in_register(uint64_t code)
{
    uint32_t bits = (uint32_t)code;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t float_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint64_t double_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float bf16_of_f32(float v)
{
    return in_register(dtype_cast(DTYPE_bf16, DTYPE_f32, float_bits(v)));
}

static float bf16_of_f64(double v)
{
    return in_register(dtype_cast(DTYPE_bf16, DTYPE_f64, double_bits(v)));
}

static float f16_of_f32(float v)
{
    return in_register(dtype_cast(DTYPE_f16, DTYPE_f32, float_bits(v)));
}

static float f16_of_f64(double v)
{
    return in_register(dtype_cast(DTYPE_f16, DTYPE_f64, double_bits(v)));
}

static float f32_of_f16(float v)
{
    return in_register(dtype_cast(DTYPE_f32, DTYPE_f16, float_bits(v) & 0xFFFF));
}

typedef struct Symbol {
    const char *name;
    uintptr_t address;
} Symbol;

static LLVMErrorRef define_symbols(LLVMOrcLLJITRef jit)
{
    const Symbol symbols[] = {
        {"__truncsfbf2", (uintptr_t)bf16_of_f32}, {"__truncdfbf2", (uintptr_t)bf16_of_f64},
        {"__truncsfhf2", (uintptr_t)f16_of_f32},  {"__truncdfhf2", (uintptr_t)f16_of_f64},
        {"__extendhfsf2", (uintptr_t)f32_of_f16}, {"fma", (uintptr_t)fma},
        {"fmaf", (uintptr_t)fmaf},                {"floor", (uintptr_t)floor},
        {"floorf", (uintptr_t)floorf},            {"rint", (uintptr_t)rint},
        {"rintf", (uintptr_t)rintf},              {"trunc", (uintptr_t)trunc},
        {"truncf", (uintptr_t)truncf},            {"ceil", (uintptr_t)ceil},
        {"ceilf", (uintptr_t)ceilf},              {"roundeven", (uintptr_t)rint},
        {"roundevenf", (uintptr_t)rintf},         {"fmod", (uintptr_t)fmod},
        {"fmodf", (uintptr_t)fmodf},              {"memcpy", (uintptr_t)memcpy},
        {"memmove", (uintptr_t)memmove},          {"memset", (uintptr_t)memset},
    };
    enum { COUNT = sizeof symbols / sizeof *symbols };
    LLVMOrcCSymbolMapPair pairs[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        pairs[i] = (LLVMOrcCSymbolMapPair){
            .Name = LLVMOrcLLJITMangleAndIntern(jit, symbols[i].name),
            .Sym = {.Address = symbols[i].address,
                    .Flags = {LLVMJITSymbolGenericFlagsExported |
                              LLVMJITSymbolGenericFlagsCallable, 0}}};
    return LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit),
                                 LLVMOrcAbsoluteSymbols(pairs, COUNT));
}

/* ---- loading ------------------------------------------------------------- */

/* Errors come back from the lookup, too. */
static void ignore_error(void *context, LLVMErrorRef error)
{
    (void)context;
    LLVMConsumeError(error);
}

static LLVMErrorRef make_jit(LLVMOrcLLJITRef *jit, LLVMTargetMachineRef machine)
{
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    LLVMErrorRef error = LLVMOrcCreateLLJIT(jit, builder);
    if (error)
        return error;
    LLVMOrcExecutionSessionRef session = LLVMOrcLLJITGetExecutionSession(*jit);
    LLVMOrcExecutionSessionSetErrorReporter(session, ignore_error, NULL);
    return define_symbols(*jit);
}

/* The JIT owns the module and its context from here on. */
static LLVMErrorRef give_module(Codegen *cg, LLVMOrcLLJITRef jit)
{
    LLVMDisposeDIBuilder(cg->lines);
    LLVMDisposeBuilder(cg->builder);
    LLVMOrcThreadSafeContextRef context =
        LLVMOrcCreateNewThreadSafeContextFromLLVMContext(cg->context);
    LLVMOrcThreadSafeModuleRef module = LLVMOrcCreateNewThreadSafeModule(cg->llvm, context);
    LLVMOrcDisposeThreadSafeContext(context);
    cg->lines = NULL;
    cg->builder = NULL;
    cg->llvm = NULL;
    cg->context = NULL;
    return LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), module);
}

HostCode *jit_load(Codegen *cg, unsigned opt_level, const char *name, uintptr_t *address)
{
    LLVMOrcExecutorAddress found = 0;
    HostCode *code = calloc(1, sizeof *code);
    LLVMTargetMachineRef machine = code ? jit_machine(cg, opt_level) : NULL;
    if (!machine) {
        free(code);
        return NULL;
    }
    LLVMErrorRef error = make_jit(&code->jit, machine);
    if (!error)
        error = give_module(cg, code->jit);
    if (!error)
        error = LLVMOrcLLJITLookup(code->jit, &found, name);
    *address = (uintptr_t)found;
    if (!error && !cg->failed)
        return code;
    jit_unload(code);
    if (llvm_succeeded(cg, "compiling for this machine", error))
        llvm_check(cg, "compiling for this machine");
    return NULL;
}

void jit_unload(HostCode *code)
{
    LLVMErrorRef error = code && code->jit ? LLVMOrcDisposeLLJIT(code->jit) : NULL;
    if (error)
        LLVMConsumeError(error);
    free(code);
}
