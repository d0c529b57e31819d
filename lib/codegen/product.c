/* Functions of wgmma, and their PTX (PTX ISA, 9.7.15.5). */
#include "codegen/product.h"

#include <string.h>

/* ---- forms -------------------------------------------------------------------- */

enum {
    ROW_BITS = 8, N_BITS = 6, KIND_AT = ROW_BITS + N_BITS, PENDING_AT = KIND_AT + 2,
    FLAGS_AT = PENDING_AT + 4
};

uint32_t product_pack(const ProductForm *f)
{
    uint32_t row = f->row ? (uint32_t)(f->row - wgmma_table) : 0;
    uint32_t flags = (uint32_t)f->in_registers | (uint32_t)f->has_sums << 1 |
                     (uint32_t)f->negate << 2 | (uint32_t)f->mn_major[0] << 3 |
                     (uint32_t)f->mn_major[1] << 4;
    return row | (uint32_t)(f->n / WGMMA_N) << ROW_BITS | (uint32_t)f->kind << KIND_AT |
           f->pending << PENDING_AT | flags << FLAGS_AT;
}

/* 64 n elements over 128 threads. */
static unsigned sum_words(const Wgmma *row, int64_t n)
{
    return (unsigned)(WGMMA_M * n / WARPGROUP * dtype_bits(row->types[MMA_C]) / 32);
}

ProductForm product_unpack(uint32_t form)
{
    uint32_t flags = form >> FLAGS_AT;
    ProductForm f = {.kind = form >> KIND_AT & 3, .pending = form >> PENDING_AT & 15,
                     .row = &wgmma_table[form & ((1u << ROW_BITS) - 1)],
                     .n = WGMMA_N * (int64_t)(form >> ROW_BITS & ((1u << N_BITS) - 1)),
                     .in_registers = flags & 1, .has_sums = flags >> 1 & 1,
                     .negate = flags >> 2 & 1, .mn_major = {flags >> 3 & 1, flags >> 4 & 1}};
    f.words = f.kind == PRODUCT_MULTIPLY ? sum_words(f.row, f.n) : 0;
    return f;
}

/* ---- declarations --------------------------------------------------------------- */

static const char *function_name(Codegen *cg, const ProductForm *f)
{
    Arena *a = &cg->module->scratch;
    if (f->kind == PRODUCT_TIE)
        return arena_printf(a, "tilus.wgmma.tie.%u", f->words);
    if (f->kind == PRODUCT_UNIFORM)
        return "tilus.wgmma.uniform";
    if (f->kind == PRODUCT_WAIT)
        return arena_printf(a, "tilus.wgmma.wait.%u.%u", f->pending, f->words);
    return arena_printf(a, "tilus.wgmma.m64n%lldk%lld.%s.%x", (long long)f->n,
                        (long long)f->row->k, f->row->text, product_pack(f) >> FLAGS_AT);
}

/* The types after the sums: a and b. */
static unsigned operand_types(Codegen *cg, const ProductForm *f, LLVMTypeRef *types)
{
    unsigned count = 0;
    if (f->kind != PRODUCT_MULTIPLY)
        return 0;
    for (unsigned i = 0; f->in_registers && i < PRODUCT_A_WORDS; i++)
        types[count++] = cg->i32;
    if (!f->in_registers)
        types[count++] = cg->i64;
    types[count++] = cg->i64;
    return count;
}

static bool passes_sums(const ProductForm *f)
{
    return f->kind != PRODUCT_MULTIPLY || f->has_sums;
}

static LLVMTypeRef words_type(Codegen *cg, unsigned count)
{
    LLVMTypeRef *types = arena_array(&cg->module->scratch, LLVMTypeRef, count);
    for (unsigned i = 0; i < count; i++)
        types[i] = cg->i32;
    return LLVMStructTypeInContext(cg->context, types, count, 0);
}

static LLVMTypeRef function_type(Codegen *cg, const ProductForm *f)
{
    LLVMTypeRef *types = arena_array(&cg->module->scratch, LLVMTypeRef,
                                     f->words + PRODUCT_A_WORDS + 2);
    unsigned count = 0;
    types[count++] = cg->i32;
    for (unsigned i = 0; passes_sums(f) && i < f->words; i++)
        types[count++] = cg->i32;
    count += operand_types(cg, f, types + count);
    return LLVMFunctionType(words_type(cg, f->words), types, count, 0);
}

static LLVMAttributeRef attribute(Codegen *cg, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMCreateEnumAttribute(cg->context, kind, 0);
}

static LLVMValueRef declare(Codegen *cg, const ProductForm *f, const char *name)
{
    ProductFunction *made = arena_new(&cg->module->scratch, ProductFunction);
    *made = (ProductFunction){.form = *f, .next = cg->products};
    made->function = LLVMAddFunction(cg->llvm, name, function_type(cg, f));
    LLVMAddAttributeAtIndex(made->function, LLVMAttributeFunctionIndex,
                            attribute(cg, "nounwind"));
    LLVMAddAttributeAtIndex(made->function, LLVMAttributeFunctionIndex,
                            attribute(cg, "convergent"));
    cg->products = made;
    return made->function;
}

LLVMValueRef call_product(Codegen *cg, const ProductForm *form, LLVMValueRef *args,
                          unsigned count)
{
    const char *name = function_name(cg, form);
    LLVMValueRef f = LLVMGetNamedFunction(cg->llvm, name);
    LLVMValueRef *all = arena_array(&cg->module->scratch, LLVMValueRef, count + 1);
    f = f ? f : declare(cg, form, name);
    all[0] = const_i32_of(cg, product_pack(form));
    memcpy(all + 1, args, count * sizeof *args);
    return LLVMBuildCall2(cg->builder, LLVMGlobalGetValueType(f), f, all, count + 1, "");
}

void product_tie(Codegen *cg, LLVMValueRef *words, unsigned count)
{
    if (!count)
        return;
    ProductForm tie = {.kind = PRODUCT_TIE, .words = count};
    LLVMValueRef kept = call_product(cg, &tie, words, count);
    for (unsigned i = 0; i < count; i++)
        words[i] = LLVMBuildExtractValue(cg->builder, kept, i, "");
}

LLVMValueRef product_uniform(Codegen *cg, LLVMValueRef word)
{
    ProductForm uniform = {.kind = PRODUCT_UNIFORM, .words = 1};
    return LLVMBuildExtractValue(cg->builder, call_product(cg, &uniform, &word, 1), 0, "");
}

unsigned product_ptx(const Codegen *cg)
{
    unsigned most = 0;
    for (const ProductFunction *p = cg->products; p; p = p->next)
        if (p->form.kind == PRODUCT_MULTIPLY && p->form.row->ptx > most)
            most = p->form.row->ptx;
    return most;
}

/* ---- PTX -------------------------------------------------------------------------- */

/* {$first, ..} */
static void print_registers(Text *out, unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        text_printf(out, "%s$%u", i ? ", " : "{", first + i);
    text_add(out, "}");
}

/* Operands of the text: the sums, their ties, a, b and the predicate scale-d. */
static const char *multiply_text(Codegen *cg, const ProductForm *f)
{
    Text out;
    unsigned at = 2 * f->words;
    text_init(&out, &cg->module->scratch);
    text_printf(&out, "wgmma.mma_async.sync.aligned.m64n%lldk%lld.%s ", (long long)f->n,
                (long long)f->row->k, f->row->text);
    print_registers(&out, 0, f->words);
    text_add(&out, ", ");
    if (f->in_registers)
        print_registers(&out, at, PRODUCT_A_WORDS);
    else
        text_printf(&out, "$%u", at);
    at += f->in_registers ? PRODUCT_A_WORDS : 1;
    text_printf(&out, ", $%u, $%u", at, at + 1);
    if (f->row->scales)
        text_printf(&out, ", %d, 1", f->negate ? -1 : 1);
    if (f->row->major && !f->in_registers)
        text_printf(&out, ", %d", f->mn_major[0]);
    if (f->row->major)
        text_printf(&out, ", %d", f->mn_major[1]);
    text_add(&out, ";");
    return text_string(&out);
}

/* Outputs, the same registers as inputs, and what follows. */
static const char *constraints_text(Codegen *cg, const ProductForm *f)
{
    Text out;
    text_init(&out, &cg->module->scratch);
    for (unsigned i = 0; i < f->words; i++)
        text_printf(&out, "%s=r", i ? "," : "");
    for (unsigned i = 0; i < f->words; i++)
        text_printf(&out, ",%u", i);
    if (f->kind == PRODUCT_MULTIPLY)
        text_add(&out, f->in_registers ? ",r,r,r,r,l,b" : ",l,l,b");
    if (f->kind == PRODUCT_WAIT)
        text_add(&out, ",~{memory}");
    return text_string(&out);
}

static const char *body_text(Codegen *cg, const ProductForm *f)
{
    return f->kind == PRODUCT_MULTIPLY  ? multiply_text(cg, f)
           : f->kind == PRODUCT_UNIFORM ? "redux.sync.or.b32 $0, $1, -1;"
           : f->kind == PRODUCT_WAIT
               ? arena_printf(&cg->module->scratch, "wgmma.wait_group.sync.aligned %u;",
                              f->pending)
               : "";
}

/* The operands of the text from the function's parameters after the form. */
static unsigned body_operands(Codegen *cg, const ProductFunction *p, LLVMValueRef *args)
{
    unsigned count = 0, parameter = 1, parameters = LLVMCountParams(p->function);
    for (unsigned i = 0; i < p->form.words; i++)
        args[count++] = passes_sums(&p->form) ? LLVMGetParam(p->function, parameter++)
                                              : LLVMGetUndef(cg->i32);
    while (parameter < parameters)
        args[count++] = LLVMGetParam(p->function, parameter++);
    if (p->form.kind == PRODUCT_MULTIPLY)
        args[count++] = LLVMConstInt(LLVMInt1TypeInContext(cg->context), p->form.has_sums, 0);
    return count;
}

static void fill(Codegen *cg, const ProductFunction *p)
{
    LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(p->function));
    LLVMValueRef *args = arena_array(&cg->module->scratch, LLVMValueRef, p->form.words + 8);
    LLVMTypeRef *types = arena_array(&cg->module->scratch, LLVMTypeRef, p->form.words + 8);
    const char *text = body_text(cg, &p->form), *constraints = constraints_text(cg, &p->form);
    LLVMPositionBuilderAtEnd(cg->builder,
                             LLVMAppendBasicBlockInContext(cg->context, p->function, ""));
    unsigned count = body_operands(cg, p, args);
    for (unsigned i = 0; i < count; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, 0);
    LLVMValueRef callee = LLVMGetInlineAsm(type, text, strlen(text), constraints,
                                           strlen(constraints), 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef call = LLVMBuildCall2(cg->builder, type, callee, args, count, "");
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(cg, "nounwind"));
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(cg, "convergent"));
    LLVMBuildRet(cg->builder, call);
}

void product_fill(Codegen *cg)
{
    for (const ProductFunction *p = cg->products; p; p = p->next) {
        LLVMSetLinkage(p->function, LLVMInternalLinkage);
        LLVMAddAttributeAtIndex(p->function, LLVMAttributeFunctionIndex,
                                attribute(cg, "alwaysinline"));
        fill(cg, p);
    }
}
