/* Compiles: module -> LLVM module -> optimized -> PTX.
 *
 *     options ──▶ Target, PTX version ──┐
 *     module ──▶ LLVM functions, calls of @tilus.* ──▶ bodies ──▶ passes ──▶ PTX
 */
#include "codegen/internal.h"

#include "codegen/bulk.h"
#include "codegen/product.h"
#include "ir/op_access.h"
#include "ir/verify.h"
#include "support/clock.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_types(Codegen *cg)
{
    LLVMContextRef c = cg->context;
    cg->i1 = LLVMInt1TypeInContext(c);
    cg->i8 = LLVMInt8TypeInContext(c);
    cg->i16 = LLVMInt16TypeInContext(c);
    cg->i32 = LLVMInt32TypeInContext(c);
    cg->i64 = LLVMInt64TypeInContext(c);
    cg->f16 = LLVMHalfTypeInContext(c);
    cg->bf16 = LLVMBFloatTypeInContext(c);
    cg->f32 = LLVMFloatTypeInContext(c);
    cg->f64 = LLVMDoubleTypeInContext(c);
    cg->global_ptr = LLVMPointerTypeInContext(c, SPACE_GLOBAL);
    cg->any_ptr = LLVMPointerTypeInContext(c, SPACE_ANY);
    cg->cluster_ptr = LLVMPointerTypeInContext(c, SPACE_CLUSTER);
    cg->shared_ptr = LLVMPointerTypeInContext(c, SPACE_SHARED);
}

Codegen *codegen_new(Module *m)
{
    Codegen *cg = calloc(1, sizeof *cg);
    if (!cg)
        return NULL;
    cg->module = m;
    cg->diag = m->diag;
    cg->mark = arena_mark(&m->scratch);
    cg->context = LLVMContextCreate();
    cg->llvm = LLVMModuleCreateWithNameInContext("tilus", cg->context);
    cg->builder = LLVMCreateBuilderInContext(cg->context);
    name_types(cg);
    return cg;
}

void codegen_free(Codegen *cg)
{
    if (!cg)
        return;
    for (Program *p = cg->module->programs; p; p = p->next)
        program_clear_data(p);
    arena_reset(&cg->module->scratch, cg->mark);
    if (cg->machine)
        LLVMDisposeTargetMachine(cg->machine);
    if (cg->lines)
        LLVMDisposeDIBuilder(cg->lines);
    LLVMDisposeBuilder(cg->builder);
    LLVMDisposeModule(cg->llvm);
    LLVMContextDispose(cg->context);
    free(cg->failure);
    free(cg);
}

/* ---- options --------------------------------------------------------------- */

/* Reads one "+ptxNN" of the len characters at `s`: the version, or 0. */
static unsigned read_feature(const char *s, size_t len)
{
    static const unsigned known[] = {70, 71, 72, 73, 74, 75, 76, 77, 78, 80,
                                     81, 82, 83, 84, 85, 86, 87, 88, 90};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char spelling[] = {'+', 'p', 't', 'x', (char)('0' + known[i] / 10),
                           (char)('0' + known[i] % 10)};
        if (len == sizeof spelling && !memcmp(s, spelling, len))
            return known[i];
    }
    return 0;
}

/* The lowest PTX version that the target, the intrinsics in use and the
 * features asked for need. LLVM prints about a feature that it does not know,
 * and exits for a version that is too low: neither reaches it. */
static bool select_ptx(Codegen *cg, const char *features, unsigned *ptx)
{
    *ptx = cg->target->ptx;
    if (lines_have_calls(cg) && *ptx < INLINED_AT_PTX)
        *ptx = INLINED_AT_PTX;
    for (IntrinsicId id = 0; id < INTR_COUNT; id++)
        if (cg->intrinsics[id] && intrinsic_info[id].ptx > *ptx)
            *ptx = intrinsic_info[id].ptx;
    if (product_ptx(cg) > *ptx)
        *ptx = product_ptx(cg);
    for (const char *s = features ? features : ""; *s;) {
        size_t len = strcspn(s, ",");
        unsigned version = read_feature(s, len);
        if (!version)
            return diag_error(cg->diag, (Loc){0},
                              "unknown feature %.*s; known are +ptx70 .. +ptx78, "
                              "+ptx80 .. +ptx88 and +ptx90", (int)len, s);
        *ptx = version > *ptx ? version : *ptx;
        s += len + (s[len] == ',');
    }
    return true;
}

/* ---- programs ---------------------------------------------------------------- */

/* Floats come as their codes. */
static LLVMTypeRef parameter_type(Codegen *cg, const Type *t)
{
    if (t->kind == TYPE_PTR)
        return cg->global_ptr;
    unsigned bits = dtype_bits(t->dtype);
    return bits == 64 ? cg->i64 : bits == 16 ? cg->i16 : cg->i32;
}

static LLVMAttributeRef enum_attribute(Codegen *cg, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMCreateEnumAttribute(cg->context, kind, value);
}

/* The arguments, the tensor maps, then the workspace where there is one. */
static LLVMTypeRef program_type(Codegen *cg, Program *p)
{
    Arena *scratch = &cg->module->scratch;
    unsigned maps = bulk_maps(p, scratch).count, count = 0;
    LLVMTypeRef *types = arena_array(scratch, LLVMTypeRef, p->arg_count + maps + 1);
    for (unsigned i = 0; i < p->arg_count; i++)
        types[count++] = parameter_type(cg, p->args[i]->type);
    for (unsigned i = 0; i < maps; i++)
        types[count++] = cg->any_ptr;
    if (workspace_of(p, scratch).count)
        types[count++] = cg->global_ptr;
    return LLVMFunctionType(LLVMVoidTypeInContext(cg->context), types, count, 0);
}

static void align_parameter(Codegen *cg, LLVMValueRef f, unsigned i, int64_t align)
{
    LLVMAddAttributeAtIndex(f, i + 1, enum_attribute(cg, "align", (uint64_t)align));
}

static void add_text_attribute(Codegen *cg, LLVMValueRef f, LLVMAttributeIndex at,
                               const char *name, const char *text)
{
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(
        cg->context, name, (unsigned)strlen(name), text, (unsigned)strlen(text));
    LLVMAddAttributeAtIndex(f, at, attribute);
}

/* Parameter `i` is an encoded tensor map, in the constant bank (PTX ISA, 5.5.8). */
static void declare_map(Codegen *cg, LLVMValueRef f, unsigned i)
{
    enum { MAP_ALIGN = 64 };
    LLVMTypeRef bytes = LLVMArrayType2(cg->i8, TILUS_MAP_BYTES);
    unsigned kind = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
    LLVMAddAttributeAtIndex(f, i + 1, LLVMCreateTypeAttribute(cg->context, kind, bytes));
    align_parameter(cg, f, i, MAP_ALIGN);
    add_text_attribute(cg, f, i + 1, "nvvm.grid_constant", "");
}

/* The exact number of threads, and how many blocks must fit (PTX .reqntid and
 * .minnctapersm). */
static void declare_block(Codegen *cg, const Program *p, LLVMValueRef f)
{
    char text[32];
    snprintf(text, sizeof text, "%lld,1,1", (long long)program_threads(p));
    add_text_attribute(cg, f, LLVMAttributeFunctionIndex, "nvvm.reqntid", text);
    snprintf(text, sizeof text, "%u", p->min_blocks);
    if (p->min_blocks)
        add_text_attribute(cg, f, LLVMAttributeFunctionIndex, "nvvm.minctasm", text);
    snprintf(text, sizeof text, "%u,%u,%u", p->cluster[0], p->cluster[1], p->cluster[2]);
    if (p->cluster_rank)
        add_text_attribute(cg, f, LLVMAttributeFunctionIndex, "nvvm.cluster_dim", text);
}

/* The kernel's declaration: calling convention, what its blocks are, and what the
 * launcher has checked of its pointers. */
static LLVMValueRef declare_program(Codegen *cg, Program *p)
{
    LLVMValueRef f = LLVMAddFunction(cg->llvm, p->name, program_type(cg, p));
    LLVMSetFunctionCallConv(f, LLVMPTXKernelCallConv);
    declare_block(cg, p, f);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, enum_attribute(cg, "nounwind", 0));
    for (unsigned i = 0; i < p->arg_count; i++) {
        const Value *v = p->args[i];
        LLVMSetValueName2(LLVMGetParam(f, i), v->name, strlen(v->name));
        if (v->type->kind == TYPE_PTR)
            align_parameter(cg, f, i, v->facts.align);
    }
    unsigned maps = bulk_maps(p, &cg->module->scratch).count;
    for (unsigned i = 0; i < maps; i++)
        declare_map(cg, f, p->arg_count + i);
    if (LLVMCountParams(f) > p->arg_count + maps)
        align_parameter(cg, f, p->arg_count + maps, TILUS_WORKSPACE_ALIGN);
    return f;
}

static void lower_arguments(Codegen *cg, const Program *p)
{
    for (unsigned i = 0; i < p->arg_count; i++) {
        LLVMValueRef v = LLVMGetParam(cg->function, i);
        const Type *t = p->args[i]->type;
        if (t->kind == TYPE_SCALAR && dtype_is_float(t->dtype))
            v = dtype_bits(t->dtype) < 32 ? LLVMBuildZExt(cg->builder, v, cg->i32, "") : v;
        else if (t->kind == TYPE_SCALAR && dtype_bits(t->dtype) < 64)
            v = dtype_info[t->dtype].kind == DKIND_UINT
                    ? LLVMBuildZExt(cg->builder, v, cg->i64, "")
                    : LLVMBuildSExt(cg->builder, v, cg->i64, "");
        lower_value(cg, p->args[i])->value = v;
    }
}

/* Rejects names that programs can have and PTX cannot: two that PTX reserves (PTX ISA,
 * 4.4), and the driver's function that `print` calls. */
static bool check_name(Codegen *cg, const Program *p)
{
    if (!strcmp(p->name, "vprintf"))
        return diag_error(cg->diag, p->loc, "the driver has a function called vprintf");
    if (strcmp(p->name, "_") && strcmp(p->name, "WARP_SZ"))
        return true;
    return diag_error(cg->diag, p->loc, "PTX has no function called %s", p->name);
}

/* Generates code as at -O0 where NaryReassociate would take more than seconds. False after an error. */
static bool limit_reassociation(Codegen *cg, const Program *p, LLVMValueRef f)
{
    int64_t chain = llvm_long_chain(cg, f);
    cg->chained |= chain > 0;
    return !chain || diag_warning(cg->diag, WARNING_LIMITS, p->loc,
                                  "@%s has chains of up to %lld dependent integer operations, which LLVM would "
                                  "reassociate in cubic time: code is generated as at -O0, and may be slower",
                                  p->name, (long long)chain);
}

/* Has LLVM optimize a program of very many instructions little: it would take minutes. False
 * after an error. */
static bool limit_optimizations(Codegen *cg, const Program *p, LLVMValueRef f)
{
    int64_t count = llvm_count_instructions(f);
    int64_t most = diag_limit(cg->diag, LIMIT_ID_OPTIMIZED);
    if (cg->opt_level == 0)
        return true;
    if (count <= most)
        return limit_reassociation(cg, p, f);
    llvm_mark_large(cg, f);
    return diag_warning(cg->diag, WARNING_LIMITS, p->loc,
                        "@%s has %lld LLVM instructions, of which at most %lld are optimized "
                        "fully: its code is slower (--limit optimized=N)", p->name,
                        (long long)count, (long long)most);
}

static bool check_maps(Codegen *cg, const Program *p, uint32_t count)
{
    return count <= LIMIT_TENSOR_MAPS ||
           diag_error(cg->diag, p->loc, "@%s copies by %u tensor maps, a program has at most %d",
                      p->name, count, LIMIT_TENSOR_MAPS);
}

static bool check_cluster(Codegen *cg, const Program *p)
{
    enum { FIRST_TARGET = 90 };
    return !p->cluster_rank || cg->target->sm >= FIRST_TARGET ||
           diag_error(cg->diag, p->loc, "@%s has a cluster, which %s lacks: it needs sm_%d or "
                      "later", p->name, cg->target->name, FIRST_TARGET);
}

/* Ends the program. A block whose shared memory others access ends with them. */
static bool emit_end(Codegen *cg, const Program *p)
{
    if (program_meets_at_end(p) && !emit_cluster_barrier(cg, p->loc))
        return false;
    LLVMBuildRetVoid(cg->builder);
    return true;
}

static bool is_other_op(Op *op, void *unused)
{
    (void)unused;
    return op_completion(op) != COMPLETION_PRODUCT || op->operands[0]->type->kind != TYPE_REG;
}

/* Products with a in registers leave few for anything else. */
static bool has_scarce_registers(const Program *p)
{
    return !region_walk(p->body, is_other_op, NULL);
}

static bool lower_program(Codegen *cg, Program *p, LLVMValueRef f)
{
    cg->program = p;
    cg->narrow = has_scarce_registers(p);
    cg->function = f;
    cg->threads = cg->barriers[0] = (ThreadRange){0, program_threads(p)};
    cg->barrier_count = 1;
    for (int64_t i = 0; i < WARPGROUPS; i++)
        cg->registers[i] = program_registers(p);
    cg->maps = bulk_maps(p, &cg->module->scratch);
    if (!check_name(cg, p) || !check_cluster(cg, p) || !check_maps(cg, p, cg->maps.count))
        return false;
    cg->workspace = workspace_of(p, &cg->module->scratch);
    if (!shared_open(cg, p) ||
        !workspace_place(cg->module, &cg->workspace, &cg->module->scratch))
        return false;
    LLVMPositionBuilderAtEnd(cg->builder, LLVMAppendBasicBlockInContext(cg->context, f, "entry"));
    lines_program(cg, p);
    lower_arguments(cg, p);
    cg->shared = codegen_shared_bytes(p) == 0
                     ? NULL : call_intrinsic(cg, INTR_shared_memory, p->loc, NULL, 0);
    cg->thread = cg->first_thread = call_intrinsic(cg, INTR_thread_index, p->loc, NULL, 0);
    cg->warp = NULL;
    cg->loops = NULL;
    cg->begin = LLVMGetInsertBlock(cg->builder);
    if (!cg->thread || !emit_map_prefetches(cg) || !emit_region(cg, p->body) || !emit_end(cg, p))
        return false;
    return limit_optimizations(cg, p, f);
}

/* "sm_80, sm_86, ..." */
static const char *known_targets(Module *m)
{
    Text text;
    text_init(&text, &m->arena);
    for (size_t i = 0; target_at(i); i++)
        text_printf(&text, "%s%s", i ? ", " : "", target_at(i)->name);
    return text_string(&text);
}

const Target *target_require(Module *m, const char *name)
{
    const Target *target = target_find(name);
    if (!target)
        diag_error(m->diag, (Loc){0}, "unknown target %s; known are %s", name, known_targets(m));
    return target;
}

unsigned codegen_target_sm(Module *m, const char *name)
{
    const Target *target = target_require(m, name);
    return target ? target->sm : 0;
}

/* Declares all kernels first, so that nothing else can take their names. */
bool codegen_lower(Codegen *cg, const char *cpu, const Program *only)
{
    bool ok = true;
    cg->target = target_require(cg->module, cpu);
    if (!cg->target)
        return false;
    for (Program *p = cg->module->programs; p; p = p->next)
        if ((!only || p == only) && !verify_chosen(p, "code generation"))
            return false;
    for (Program *p = cg->module->programs; p; p = p->next)
        if (!only || p == only) {
            bulk_settle(p);
            declare_program(cg, p);
        }
    for (Program *p = cg->module->programs; p; p = p->next)
        if (!only || p == only)
            ok = lower_program(cg, p, LLVMGetNamedFunction(cg->llvm, p->name)) && ok;
    lines_close(cg);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------ */

static char *copy_ir(Codegen *cg)
{
    char *printed = LLVMPrintModuleToString(cg->llvm);
    size_t size = strlen(printed) + 1;
    char *copy = malloc(size);
    if (copy)
        memcpy(copy, printed, size);
    LLVMDisposeMessage(printed);
    return copy;
}

/* Lowers and optimizes. The intrinsics in use decide the PTX version, so the target
 * machine comes after lowering; nothing before it asks for the data layout. */
static bool build_llvm(Codegen *cg, const tilus_compile_options *options)
{
    unsigned ptx;
    cg->opt_level = options->opt_level;
    nvptx_initialize();
    const Program *only = options->program
                              ? module_find_program(cg->module, options->program) : NULL;
    if (options->program && !only)
        return diag_error(cg->diag, (Loc){0}, "the module has no program @%s", options->program);
    if (options->debug_lines)
        lines_open(cg, options->output == TILUS_OUTPUT_PTX ? LINES_NUMBERED : LINES_INLINED);
    if (!codegen_lower(cg, options->cpu, only) || !select_ptx(cg, options->features, &ptx) ||
        !nvptx_open(cg, ptx))
        return false;
    nvptx_fill_intrinsics(cg);
    diag_check_time(cg->diag, module_loc(cg->module));
    bool ok = nvptx_optimize(cg);
    diag_check_time(cg->diag, module_loc(cg->module));
    return ok;
}

char *codegen_module(Codegen *cg, const tilus_compile_options *options,
                     tilus_compile_times *times)
{
    double start = clock_seconds();
    bool ok = build_llvm(cg, options);
    double middle = clock_seconds();
    char *text = !ok                                          ? NULL
                 : options->output == TILUS_OUTPUT_LLVM_IR ? copy_ir(cg)
                                                           : nvptx_print(cg);
    if (times)
        *times = (tilus_compile_times){sizeof *times, middle - start, clock_seconds() - middle};
    return text;
}
