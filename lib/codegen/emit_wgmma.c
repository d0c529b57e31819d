/* dot_async and dot_wait as wgmma (select/wgmma.h plans them):
 *
 *     fence.proxy.async            where threads write the shared operands
 *     ties of a and c              where these are registers of other instructions
 *     wgmma.fence                  unless sums alone go on from the product before
 *     wgmma.mma_async ..           for each step of k all units
 *     wgmma.commit_group           unless the group stays open
 *
 * A wait ties all sums that it names: ptxas would read others too early, or serialize. */
#include "codegen/memory.h"
#include "codegen/product.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"

typedef struct Emit {
    Codegen *cg;
    const Op *op;
    const WgmmaPlan *plan;
    LLVMValueRef *sums;         /* of the result; c's at first, where there is a c */
    LLVMValueRef *a;            /* words of a in registers */
    LLVMValueRef descriptors[2];    /* low words, of the warpgroup's first tile, step 0 */
    ProductForm form;
} Emit;

/* ---- descriptors ---------------------------------------------------------------- */

/* The byte address in shared memory of the operand's first element, an i32. */
static LLVMValueRef first_address(Codegen *cg, const Value *v)
{
    const Lowered *l = lowered(v);
    LLVMBuilderRef b = cg->builder;
    int64_t bytes = dtype_bits(v->type->dtype) / 8;
    LLVMValueRef first = LLVMBuildTrunc(b, mul_i64(cg, l->first, const_i64_of(cg, bytes)), cg->i32,
                                        "");
    return LLVMBuildAdd(b, LLVMBuildPtrToInt(b, l->value, cg->i32, ""), first, "");
}

/* The address as a uniform word, made where it is computed: once for all products, and ahead of
 * them, as redux.sync takes its time. */
static LLVMValueRef uniform_address(Codegen *cg, Lowered *l, const Value *v)
{
    LLVMBasicBlockRef block = LLVMGetInsertBlock(cg->builder);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(cg->builder);
    LLVMValueRef next = LLVMGetNextInstruction(l->value);
    if (l->uniform)
        return l->uniform;
    if (next)
        LLVMPositionBuilderBefore(cg->builder, next);
    else
        LLVMPositionBuilderAtEnd(cg->builder, LLVMGetInstructionParent(l->value));
    l->uniform = product_uniform(cg, first_address(cg, v));
    LLVMPositionBuilderAtEnd(cg->builder, block);
    LLVMSetCurrentDebugLocation2(cg->builder, line);      /* which a place before `next` changes */
    return l->uniform;
}

/* Returns true for the address of a part of memory whose place varies. */
static bool varies(const Lowered *l)
{
    LLVMValueRef at = l->value;
    return LLVMIsConstant(l->first) && LLVMIsAGetElementPtrInst(at) &&
           LLVMGetNumOperands(at) == 2 && !LLVMIsConstant(LLVMGetOperand(at, 1));
}

/* Returns true where `v` is computed ahead of the fence of its group: between its products stands
 * nothing else that ptxas might take for their operands. */
static bool is_ahead(const Value *v, const Op *fence)
{
    const Op *op = fence;
    while (op && op != v->def)
        op = op->prev;
    return op || (v->def && v->def->parent != fence->parent);
}

/* Returns true where another product of the region has the same b. */
static bool shares_b(const Op *product)
{
    const Op *op = product;
    while (op->prev)
        op = op->prev;
    while (op && (op == product || op->code != OP_dot_async ||
                  op->operands[1] != product->operands[1]))
        op = op->next;
    return op;
}

/* The address of operand i's first element: where it varies, and several a in registers meet it, a
 * uniform word. (One product alone gains nothing; with both operands in shared memory slots are
 * mostly constants, and warpgroups differ in a's.) */
static LLVMValueRef operand_address(Emit *e, unsigned i)
{
    const Value *v = e->op->operands[i];
    Lowered *l = v->data;
    return e->plan->in_registers && shares_b(e->op) && varies(l) &&
                   is_ahead(v, wgmma_fence_op(e->op))
               ? uniform_address(e->cg, l, v)
               : first_address(e->cg, v);
}

/* Bytes from the operand's start to the part that the warpgroup's first tile needs, an i32. */
static LLVMValueRef warpgroup_offset(Emit *e, unsigned i, LLVMValueRef warpgroup)
{
    Codegen *cg = e->cg;
    int64_t bytes = (i ? WGMMA_N : WGMMA_M) * e->plan->matrices[i].mn_bytes;
    LLVMValueRef tile = emit_thread_index(cg, e->plan->tiles, i, warpgroup);
    return LLVMBuildTrunc(cg->builder, mul_i64(cg, tile, const_i64_of(cg, bytes)), cg->i32, "");
}

/* Makes the low word: that of the address and all that instructions differ in. */
static bool make_descriptor(Emit *e, unsigned i)
{
    enum { MASK = (1 << WGMMA_ADDRESS_BITS) - 1, WARPS_BITS = 2 };
    Codegen *cg = e->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef at = operand_address(e, i);
    if (e->plan->tiles->threads > 1) {
        LLVMValueRef warp = uniform_warp(cg, e->op->loc);
        if (!warp)
            return false;
        LLVMValueRef warpgroup = LLVMBuildLShr(b, warp, const_i32_of(cg, WARPS_BITS), "");
        at = LLVMBuildAdd(b, at, warpgroup_offset(e, i, warpgroup), "");
    }
    at = LLVMBuildAnd(b, at, const_i32_of(cg, MASK), "");
    at = LLVMBuildLShr(b, at, const_i32_of(cg, WGMMA_ADDRESS_SHIFT), "");
    uint64_t rest = wgmma_descriptor(&e->plan->matrices[i]);
    e->descriptors[i] = LLVMBuildOr(b, at, const_i32_of(cg, (uint32_t)rest), "");
    return true;
}

/* The descriptor, an i64, of operand i for element `mn` along m or n, and step `k`. Addresses
 * are so small that the sum stays in their field. */
static LLVMValueRef descriptor_at(const Emit *e, unsigned i, int64_t mn, int64_t k)
{
    enum { WORD_BITS = 32 };
    Codegen *cg = e->cg;
    LLVMBuilderRef b = cg->builder;
    const WgmmaMatrix *x = &e->plan->matrices[i];
    int64_t bytes = wgmma_offset(x, mn, k);
    LLVMValueRef step = const_i32_of(cg, (uint32_t)(bytes >> WGMMA_ADDRESS_SHIFT));
    LLVMValueRef low = LLVMBuildNUWAdd(b, e->descriptors[i], step, "");
    uint64_t high = wgmma_descriptor(x) >> WORD_BITS << WORD_BITS;
    return LLVMBuildOr(b, LLVMBuildZExt(b, low, cg->i64, ""), const_i64_of(cg, (int64_t)high), "");
}

/* ---- one instruction ---------------------------------------------------------------- */

static unsigned tile_words(const Emit *e)
{
    return e->form.words / (unsigned)(e->plan->n / WGMMA_N);
}

static unsigned gather_sums(const Emit *e, const WgmmaUnit *u, LLVMValueRef *args)
{
    unsigned count = 0, words = tile_words(e);
    for (int64_t tile = 0; tile < e->plan->n / WGMMA_N; tile++)
        for (unsigned w = 0; w < words; w++)
            args[count++] = e->sums[u->slots[tile] * words + w];
    return count;
}

static void scatter_sums(const Emit *e, const WgmmaUnit *u, LLVMValueRef product)
{
    unsigned count = 0, words = tile_words(e);
    for (int64_t tile = 0; tile < e->plan->n / WGMMA_N; tile++)
        for (unsigned w = 0; w < words; w++)
            e->sums[u->slots[tile] * words + w] =
                LLVMBuildExtractValue(e->cg->builder, product, count++, "");
}

static void multiply(Emit *e, const WgmmaUnit *u, int64_t k, LLVMValueRef *args)
{
    unsigned count = 0;
    e->form.has_sums = e->op->operand_count == 3 || k > 0;
    if (e->form.has_sums)
        count = gather_sums(e, u, args);
    for (unsigned w = 0; e->form.in_registers && w < PRODUCT_A_WORDS; w++)
        args[count++] = e->a[u->a_slots[k * WGMMA_A_PIECES + w]];
    if (!e->form.in_registers)
        args[count++] = descriptor_at(e, 0, u->row, k);
    args[count++] = descriptor_at(e, 1, u->column, k);
    scatter_sums(e, u, call_product(e->cg, &e->form, args, count));
}

/* ---- dot_async -------------------------------------------------------------------------- */

static bool is_negated(const Op *op)
{
    const Attr *negate = op_attr(op, ATTR_NEGATE);
    return negate && negate->word == FLAG_TRUE;
}

static LLVMValueRef *copy_words(Codegen *cg, const Value *v)
{
    return arena_copy(&cg->module->scratch, lowered_words(v),
                      (size_t)type_thread_words(v->type) * sizeof(LLVMValueRef));
}

static Emit emit_open(Codegen *cg, const Op *op, const WgmmaPlan *plan)
{
    Emit e = {.cg = cg, .op = op, .plan = plan};
    e.form = (ProductForm){.kind = PRODUCT_MULTIPLY, .row = plan->row, .n = plan->n,
                           .in_registers = plan->in_registers, .negate = is_negated(op),
                           .mn_major = {plan->matrices[0].mn_major, plan->matrices[1].mn_major}};
    e.form.words = product_unpack(product_pack(&e.form)).words;
    e.sums = op->operand_count == 3 ? copy_words(cg, op->operands[2])
                                    : words_new(cg, op->results[0]->type);
    e.a = plan->in_registers ? copy_words(cg, op->operands[0]) : NULL;
    return e;
}

/* Ties registers of other instructions, also those of the group's next products, which have no
 * fence of their own. Sums that may be in flight must not be named. */
static void tie_registers(Emit *e)
{
    const Value *c = e->op->operand_count == 3 ? e->op->operands[2] : NULL;
    bool is_filled = c && c->def && c->def->code == OP_allocate_register;
    if (e->a)
        product_tie(e->cg, e->a, (unsigned)type_thread_words(e->op->operands[0]->type));
    if (c && (!c->type->pending || is_filled))
        product_tie(e->cg, e->sums, (unsigned)type_thread_words(c->type));
    for (const Op *op = e->op; (op = wgmma_fence_user(e->op, op));)
        product_tie(e->cg, lowered_words(op->operands[0]),
                    (unsigned)type_thread_words(op->operands[0]->type));
}

static bool emit_fences(Emit *e)
{
    Codegen *cg = e->cg;
    bool alone = program_blocks(cg->program) == 1;
    IntrinsicId id = alone ? INTR_async_fence_shared : INTR_async_fence;
    if (e->plan->async_fence && !call_intrinsic(cg, id, e->op->loc, NULL, 0))
        return false;
    if (!e->plan->fence)
        return true;
    tie_registers(e);
    return call_intrinsic(cg, INTR_wgmma_fence, e->op->loc, NULL, 0);
}

bool emit_dot_async(Codegen *cg, const Op *op, const Plan *plan)
{
    Emit e = emit_open(cg, op, &plan->wgmma);
    LLVMValueRef *args = arena_array(&cg->module->scratch, LLVMValueRef,
                                     e.form.words + PRODUCT_A_WORDS + 1);
    if (!cg->target->own)
        return diag_error(cg->diag, op->loc, "dot_async needs sm_%da, the target is %s", WGMMA_SM,
                          cg->target->name);
    if (!make_descriptor(&e, 1) || (!e.form.in_registers && !make_descriptor(&e, 0)) ||
        !emit_fences(&e))
        return false;
    for (int64_t k = 0; k < plan->wgmma.steps; k++)
        for (int64_t i = 0; i < plan->wgmma.unit_count; i++)
            multiply(&e, &plan->wgmma.units[i], k, args);
    lower_words(cg, op->results[0], e.sums);
    return !op_commits_product(op) || call_intrinsic(cg, INTR_wgmma_commit, op->loc, NULL, 0);
}

/* ---- dot_wait ------------------------------------------------------------------------------ */

bool emit_dot_wait(Codegen *cg, const Op *op)
{
    unsigned count = 0;
    for (unsigned i = 0; i < op->operand_count; i++)
        count += (unsigned)type_thread_words(op->operands[i]->type);
    LLVMValueRef *all = arena_array(&cg->module->scratch, LLVMValueRef, count), *at = all;
    for (unsigned i = 0; i < op->operand_count; i++) {
        int64_t words = type_thread_words(op->operands[i]->type);
        memcpy(at, lowered_words(op->operands[i]), (size_t)words * sizeof *at);
        at += words;
    }
    ProductForm wait = {.kind = PRODUCT_WAIT, .words = count,
                        .pending = (unsigned)op_wait_pending(op)};
    LLVMValueRef waited = call_product(cg, &wait, all, count);
    for (unsigned i = 0; i < count; i++)
        all[i] = LLVMBuildExtractValue(cg->builder, waited, i, "");
    for (unsigned i = 0; i < op->operand_count; i++) {
        lower_words(cg, op->results[i], all);
        all += type_thread_words(op->operands[i]->type);
    }
    return true;
}
