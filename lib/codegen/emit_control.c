/* Control flow, barriers, and the ops that name things: indices, scalars, views,
 * allocations. Structured regions become blocks; each scalar and each word of a
 * tensor that is carried becomes a phi.
 *
 *          before                     before
 *            |                        /    \
 *   +---> header (phis) --+        then    else
 *   |      body           |           \    /
 *   +---- latch         after          merge (phis)                        */
#include "codegen/product.h"
#include "codegen/convert_build.h"
#include "codegen/recurrence.h"
#include "ir/loop.h"
#include "scalar/facts.h"
#include "select/plan.h"

static int64_t elements_a_thread(const Value *v)
{
    return v->type->kind == TYPE_REG ? v->type->layout->slots : 1;
}

/* Counts the op once for each element that a thread has of its largest tensor, or for each of
 * `planned` operations where these are more: about as much becomes of it. */
static bool count_operations(Codegen *cg, const Op *op, int64_t planned)
{
    int64_t most = planned > 1 ? planned : 1, limit = diag_limit(cg->diag, LIMIT_ID_OPERATIONS);
    for (unsigned i = 0; i < op->operand_count + op->result_count; i++) {
        const Value *v = i < op->operand_count ? op->operands[i]
                                               : op->results[i - op->operand_count];
        int64_t elements = elements_a_thread(v);
        most = elements > most ? elements : most;
    }
    cg->operations += most;
    return cg->operations <= limit ||
           diag_error(cg->diag, op->loc, "%s makes %lld unrolled operations, the limit is "
                      "%lld", op_info[op->code].name, (long long)cg->operations,
                      (long long)limit);
}

typedef bool PlainEmitter(Codegen *cg, const Op *op);
typedef bool PlannedEmitter(Codegen *cg, const Op *op, const Plan *plan);

/* Lowers an op by the plan that is chosen for it. */
static bool emit_planned(Codegen *cg, const Op *op, Plan *plan)
{
    static PlannedEmitter *const planned[OP_COUNT] = {
#define PLANNED(id, family) [OP_##id] = emit_##id,
#include "select/planners.def"
    };
    return select_plan(cg->module, op, cg->target->sm, plan) &&
           count_operations(cg, op, plan_operations(op, plan)) &&
           planned[op->code](cg, op, plan);
}

/* Lowers an op without regions. Not inlined: its plan of 5 KB would be in the frame of every loop around
 * the op, and nested loops would overflow a stack of 1 MB. */
__attribute__((noinline)) static bool emit_planned_leaf(Codegen *cg, const Op *op)
{
    Plan plan;
    return emit_planned(cg, op, &plan);
}

static bool emit_by_row(Codegen *cg, const Op *op)
{
    static PlainEmitter *const plain[OP_COUNT] = {
#define PLAIN(id) [OP_##id] = emit_##id,
#include "select/planners.def"
    };
    if (plain[op->code])
        return count_operations(cg, op, 0) && plain[op->code](cg, op);
    return op->region_count ? emit_planned(cg, op, arena_new(&cg->module->scratch, Plan))
                            : emit_planned_leaf(cg, op);
}

static bool emit_op(Codegen *cg, const Op *op)
{
    const Op *outer = cg->op;
    cg->op = op;
    bool ok = emit_by_row(cg, op);
    cg->op = outer;
    return ok;
}

bool emit_region(Codegen *cg, const Region *r)
{
    LLVMValueRef thread = cg->thread;
    for (const Op *op = r->first; op; op = op->next) {
        lines_op(cg, op);
        diag_check_time(cg->diag, op->loc);
        if (!emit_op(cg, op))
            return false;
    }
    cg->thread = thread;
    return true;
}

static LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

/* The condition of `op` as an i1. */
static LLVMValueRef emit_condition(Codegen *cg, const Op *op)
{
    return LLVMBuildICmp(cg->builder, LLVMIntNE, emit_expr(cg, op_expr(op, ATTR_COND)),
                         const_i64_of(cg, 0), "");
}

/* ---- carried values --------------------------------------------------- */

/* The phi of the scalar `v`, or one for each word of the register tensor. */
static void begin_phis(Codegen *cg, Value *v)
{
    if (v->type->kind == TYPE_SCALAR) {
        lower_value(cg, v)->value = LLVMBuildPhi(cg->builder, cg->i64, "");
        return;
    }
    LLVMValueRef *words = words_new(cg, v->type);
    for (int64_t i = 0; i < type_thread_words(v->type); i++)
        words[i] = LLVMBuildPhi(cg->builder, cg->i32, "");
    lower_words(cg, v, words);
}

/* Adds what `from` holds, coming from `block`, to the phis of `v`. */
static void add_incoming(const Value *v, const Value *from, LLVMBasicBlockRef block)
{
    LLVMValueRef *phis = lowered_words(v), *words = lowered_words(from);
    if (v->type->kind == TYPE_SCALAR) {
        LLVMValueRef value = lowered(from)->value;
        LLVMAddIncoming(lowered(v)->value, &value, &block, 1);
        return;
    }
    for (int64_t i = 0; i < type_thread_words(v->type); i++)
        LLVMAddIncoming(phis[i], &words[i], &block, 1);
}

/* Begins the phis of carried values at the top of a loop, from `before`. The loop ends
 * there, so they are its results too. */
static void begin_carried(Codegen *cg, const Op *op, LLVMBasicBlockRef before)
{
    for (unsigned i = 0; i < op->result_count; i++) {
        begin_phis(cg, loop_carried(op, i));
        add_incoming(loop_carried(op, i), op->operands[i], before);
        op->results[i]->data = loop_carried(op, i)->data;
    }
}

/* Adds the yielded values, at the end of the body, to the phis of the next iteration. */
static void end_carried(Codegen *cg, const Op *op)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(cg->builder);
    for (unsigned i = 0; i < op->result_count; i++)
        add_incoming(loop_carried(op, i), region_yield(op->regions[0])->operands[i], latch);
}

/* ---- products in flight -------------------------------------------------- */

/* Waits for all products, where the plan says so (select/drain.h). */
static bool emit_drain(Codegen *cg, const Op *op, bool wanted)
{
    return !wanted || call_intrinsic(cg, INTR_wgmma_drain, op->loc, NULL, 0);
}

bool emit_drained_region(Codegen *cg, const Op *op, unsigned i, const DrainPlan *plan)
{
    return emit_region(cg, op->regions[i]) && emit_drain(cg, op, plan->end);
}

bool emit_drain_before(Codegen *cg, const Op *op, const DrainPlan *plan)
{
    return emit_drain(cg, op, plan->before);
}

/* ---- for --------------------------------------------------------------- */

/* Returns true when the index becomes no more than `limit` in the last iteration. */
static bool index_ends_within(const Op *op, int64_t limit)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    int64_t most = step ? facts_of_expr(step).max : 1;
    most = most < 1 ? 1 : most;
    return most <= limit && facts_of_expr(op_expr(op, ATTR_UPPER)).max <= limit - most + 1;
}

/* Returns true when i32 holds the index and what it becomes in the last iteration. */
static bool has_narrow_index(const Op *op)
{
    ScalarFacts lower = facts_of_expr(op_expr(op, ATTR_LOWER));
    return lower.min >= INT32_MIN && lower.max <= INT32_MAX && index_ends_within(op, INT32_MAX);
}

/* The index of the next iteration. One past 64 bits ends the loop as the largest number does. */
static LLVMValueRef next_index(Codegen *cg, const Op *op, LLVMValueRef index, LLVMValueRef by)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef next = LLVMBuildNSWAdd(b, index, by, "");
    if (index_ends_within(op, INT64_MAX))
        return next;
    LLVMValueRef most = const_i64_of(cg, INT64_MAX);
    LLVMValueRef over = LLVMBuildICmp(b, LLVMIntSGT, index, LLVMBuildNSWSub(b, most, by, ""), "");
    return LLVMBuildSelect(b, over, most, next, "");
}

bool emit_for(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMBuilderRef b = cg->builder;
    const Expr *step = op_expr(op, ATTR_STEP);
    LLVMTypeRef type = cg->narrow && has_narrow_index(op) ? cg->i32 : cg->i64;
    if (!emit_drain_before(cg, op, &plan->drain))
        return false;
    LLVMValueRef lower = emit_expr(cg, op_expr(op, ATTR_LOWER));
    LLVMValueRef upper = emit_expr(cg, op_expr(op, ATTR_UPPER));
    LLVMValueRef by = step ? emit_expr(cg, step) : const_i64_of(cg, 1);
    lower = LLVMBuildIntCast2(b, lower, type, 1, "");
    by = LLVMBuildIntCast2(b, by, type, 1, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), header = new_block(cg, "for");
    LLVMBasicBlockRef inner = new_block(cg, "body"), after = new_block(cg, "after");
    LLVMBuildBr(b, header);

    LLVMPositionBuilderAtEnd(b, header);
    LLVMValueRef index = LLVMBuildPhi(b, type, "index");
    LLVMAddIncoming(index, &lower, &before, 1);
    begin_carried(cg, op, before);
    LLVMValueRef wide = LLVMBuildIntCast2(b, index, cg->i64, 1, "");
    lower_value(cg, for_index(op))->value = wide;
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, wide, upper, ""), inner, after);

    LLVMPositionBuilderAtEnd(b, inner);
    OpenLoop loop = {.op = op, .before = before, .header = header};
    open_loop(cg, &loop);
    if (!emit_drained_region(cg, op, 0, &plan->drain))
        return false;
    close_loop(cg);
    LLVMValueRef next = next_index(cg, op, index, by);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(index, &next, &latch, 1);
    end_carried(cg, op);
    LLVMBuildBr(b, header);
    LLVMPositionBuilderAtEnd(b, after);
    return true;
}

/* ---- while ------------------------------------------------------------- */

bool emit_while(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMBuilderRef b = cg->builder;
    if (!emit_drain_before(cg, op, &plan->drain))
        return false;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), header = new_block(cg, "while");
    LLVMBasicBlockRef inner = new_block(cg, "body"), after = new_block(cg, "after");
    LLVMBuildBr(b, header);
    LLVMPositionBuilderAtEnd(b, header);
    begin_carried(cg, op, before);
    LLVMBuildCondBr(b, emit_condition(cg, op), inner, after);

    LLVMPositionBuilderAtEnd(b, inner);
    if (!emit_drained_region(cg, op, 0, &plan->drain))
        return false;
    end_carried(cg, op);
    LLVMBuildBr(b, header);
    LLVMPositionBuilderAtEnd(b, after);
    return true;
}

/* ---- if ---------------------------------------------------------------- */

/* Lowers side `i` into `block`; `*end` is where it ends. */
static bool emit_side(Codegen *cg, const Op *op, unsigned i, const DrainPlan *plan,
                      LLVMBasicBlockRef block, LLVMBasicBlockRef merge, LLVMBasicBlockRef *end)
{
    LLVMPositionBuilderAtEnd(cg->builder, block);
    if (!emit_drained_region(cg, op, i, plan))
        return false;
    *end = LLVMGetInsertBlock(cg->builder);
    LLVMBuildBr(cg->builder, merge);
    return true;
}

bool emit_if(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMBuilderRef b = cg->builder;
    if (!emit_drain_before(cg, op, &plan->drain))
        return false;
    LLVMBasicBlockRef blocks[2] = {new_block(cg, "then"), new_block(cg, "else")}, ends[2];
    LLVMBasicBlockRef merge = new_block(cg, "merge");
    LLVMBuildCondBr(b, emit_condition(cg, op), blocks[0], blocks[1]);
    for (unsigned i = 0; i < 2; i++)
        if (!emit_side(cg, op, i, &plan->drain, blocks[i], merge, &ends[i]))
            return false;
    LLVMPositionBuilderAtEnd(b, merge);
    for (unsigned r = 0; r < op->result_count; r++) {
        begin_phis(cg, op->results[r]);
        for (unsigned i = 0; i < 2; i++)
            add_incoming(op->results[r], region_yield(op->regions[i])->operands[r], ends[i]);
    }
    return true;
}

/* The op around it takes the operands. */
bool emit_yield(Codegen *cg, const Op *op)
{
    (void)cg;
    (void)op;
    return true;
}

/* ---- checks and exits ---------------------------------------------------- */

bool emit_assert(Codegen *cg, const Op *op)
{
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef failed = new_block(cg, "failed"), holds = new_block(cg, "holds");
    LLVMBuildCondBr(b, emit_condition(cg, op), holds, failed);
    LLVMPositionBuilderAtEnd(b, failed);
    if (!call_intrinsic(cg, INTR_trap, op->loc, NULL, 0))
        return false;
    LLVMBuildUnreachable(b);
    LLVMPositionBuilderAtEnd(b, holds);
    return true;
}

bool emit_assume(Codegen *cg, const Op *op)
{
    LLVMValueRef condition = emit_condition(cg, op);
    build_overloaded(cg->builder, "llvm.assume", NULL, 0, &condition, 1);
    return true;
}

/* Lowers ops after it, which never run, into a block that nothing enters, so that
 * regions and their phis are the same as ever. */
bool emit_exit(Codegen *cg, const Op *op)
{
    (void)op;
    LLVMBuildRetVoid(cg->builder);
    LLVMPositionBuilderAtEnd(cg->builder, new_block(cg, "unreachable"));
    return true;
}

/* ---- indices ---------------------------------------------------------- */

bool emit_block_indices(Codegen *cg, const Op *op)
{
    static const IntrinsicId ids[] = {INTR_block_index_x, INTR_block_index_y,
                                      INTR_block_index_z};
    for (unsigned i = 0; i < op->result_count; i++) {
        LLVMValueRef v = call_intrinsic(cg, ids[i], op->loc, NULL, 0);
        if (!v)
            return false;
        lower_value(cg, op->results[i])->value = LLVMBuildZExt(cg->builder, v, cg->i64, "");
    }
    return true;
}

bool emit_cluster_rank(Codegen *cg, const Op *op)
{
    LLVMValueRef v = call_intrinsic(cg, INTR_cluster_rank, op->loc, NULL, 0);
    if (!v)
        return false;
    lower_value(cg, op->results[0])->value = LLVMBuildZExt(cg->builder, v, cg->i64, "");
    return true;
}

bool emit_cluster_barrier(Codegen *cg, Loc at)
{
    return call_intrinsic(cg, INTR_cluster_arrive, at, NULL, 0) &&
           call_intrinsic(cg, INTR_cluster_wait, at, NULL, 0);
}

bool emit_cluster_synchronize(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_reads_fence(cg, op, plan) && emit_cluster_barrier(cg, op->loc);
}

/* The expression is computed here, once. */
bool emit_scalar(Codegen *cg, const Op *op)
{
    LLVMValueRef v = emit_expr(cg, op_expr(op, ATTR_VALUE));
    if (cg->narrow && op->results[0]->type->dtype == DTYPE_i32)
        v = LLVMBuildSExt(cg->builder, LLVMBuildTrunc(cg->builder, v, cg->i32, ""), cg->i64, "");
    lower_value(cg, op->results[0])->value = v;
    return true;
}

/* ---- tensors ------------------------------------------------------------ */

bool lower_memory(Codegen *cg, const Op *op, LLVMValueRef base, LLVMValueRef first)
{
    Value *v = op->results[0];
    Lowered *l = lower_value(cg, v);
    l->value = base;
    l->first = first;
    for (unsigned d = 0; d < v->type->rank; d++) {
        const Expr *stride = type_stride(cg->module, v->type, d);
        if (!stride)
            return diag_error(cg->diag, op->loc, "the stride of dimension %u overflows", d);
        l->extents[d] = emit_expr(cg, v->type->extents[d]);
        l->strides[d] = emit_expr(cg, stride);
    }
    return true;
}

bool emit_view_global(Codegen *cg, const Op *op)
{
    return lower_memory(cg, op, lowered(op->operands[0])->value, const_i64_of(cg, 0));
}

bool emit_allocate_global(Codegen *cg, const Op *op)
{
    unsigned i = 0;
    while (cg->workspace.ops[i] != op)
        i++;
    LLVMValueRef offset = emit_expr(cg, cg->workspace.offsets[i]);
    LLVMValueRef workspace = LLVMGetParam(cg->function,
                                          cg->program->arg_count + cg->maps.count);
    LLVMValueRef base = LLVMBuildGEP2(cg->builder, cg->i8, workspace, &offset, 1, "");
    return lower_memory(cg, op, base, const_i64_of(cg, 0));
}

bool emit_allocate_shared(Codegen *cg, const Op *op)
{
    LLVMValueRef base = shared_reserve(cg, op);
    return base && lower_memory(cg, op, base, const_i64_of(cg, 0));
}

/* Every element the same number; undefined without one. */
bool emit_allocate_register(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Attr *init = op_attr(op, ATTR_INIT);
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t i = 0; !init && i < type_thread_words(t); i++)
        words[i] = LLVMGetUndef(cg->i32);
    if (init) {
        unsigned bits = dtype_bits(t->dtype);
        uint64_t code = constant_encode(t->dtype, init->number);
        LLVMValueRef v = LLVMConstInt(bits > 32 ? cg->i64 : cg->i32, code, 0);
        for (int64_t slot = 0; slot < t->layout->slots; slot++)
            emit_set_bits(cg, words, slot * bits, bits, v);
    }
    if (t->pending)     /* one set of registers on all paths to a wait, else ptxas serializes */
        product_tie(cg, words, (unsigned)type_thread_words(t));
    lower_words(cg, op->results[0], words);
    return true;
}

/* Gives the operand's words another name. */
bool emit_view(Codegen *cg, const Op *op)
{
    lower_words(cg, op->results[0], lowered_words(op->operands[0]));
    return true;
}
