/* print: the driver's vprintf, called by thread 0 with what lib/ir/print_op.h
 * spells. A register tensor goes through shared memory, a chunk of its elements in
 * row-major order at a time:
 *
 *     for each chunk
 *         the threads that hold its elements store their codes
 *         barrier
 *         thread 0: for each element: what stands before it, its value
 *         barrier                              the scratch may be used again
 *
 * Its host part formats, as the interpreter does, with the printf of the C library;
 * integers are handed over as 64 bits and floats as doubles. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/print_op.h"
#include "ir/tile.h"

enum { ARGUMENTS_MAX = 4 };     /* of one call: a number and the block's indices */

typedef struct Print {
    Codegen *cg;
    const Op *op;
    const Plan *plan;
    PrintShape shape;               /* of a tensor */
    LLVMValueRef arguments;         /* where a call's lie, in local memory */
    LLVMValueRef block[3];          /* i64 */
} Print;

/* ---- structure ----------------------------------------------------------- */

static LLVMBasicBlockRef new_block(const Print *p, const char *name)
{
    return LLVMAppendBasicBlockInContext(p->cg->context, p->cg->function, name);
}

/* Begins code that runs where `condition` holds, up to end_if with the result. */
static LLVMBasicBlockRef begin_if(const Print *p, LLVMValueRef condition)
{
    LLVMBasicBlockRef then = new_block(p, "then"), done = new_block(p, "done");
    LLVMBuildCondBr(p->cg->builder, condition, then, done);
    LLVMPositionBuilderAtEnd(p->cg->builder, then);
    return done;
}

static void end_if(const Print *p, LLVMBasicBlockRef done)
{
    LLVMBuildBr(p->cg->builder, done);
    LLVMPositionBuilderAtEnd(p->cg->builder, done);
}

typedef struct Loop {
    LLVMValueRef index;         /* i64 */
    int64_t step;
    LLVMBasicBlockRef header, after;
} Loop;

/* Begins code that runs for index = from, from + step, .. below `to`, up to end_for. */
static Loop begin_for(const Print *p, LLVMValueRef from, LLVMValueRef to, int64_t step)
{
    LLVMBuilderRef b = p->cg->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = new_block(p, "body");
    Loop loop = {.step = step, .header = new_block(p, "for"), .after = new_block(p, "after")};
    LLVMBuildBr(b, loop.header);
    LLVMPositionBuilderAtEnd(b, loop.header);
    loop.index = LLVMBuildPhi(b, p->cg->i64, "");
    LLVMAddIncoming(loop.index, &from, &before, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, loop.index, to, ""), body, loop.after);
    LLVMPositionBuilderAtEnd(b, body);
    return loop;
}

static void end_for(const Print *p, const Loop *loop)
{
    LLVMBuilderRef b = p->cg->builder;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMValueRef next = LLVMBuildNSWAdd(b, loop->index, const_i64_of(p->cg, loop->step), "");
    LLVMAddIncoming(loop->index, &next, &latch, 1);
    LLVMBuildBr(b, loop->header);
    LLVMPositionBuilderAtEnd(b, loop->after);
}

static LLVMValueRef is_thread_0(const Print *p)
{
    return build_test(p->cg->builder, LLVMIntEQ, p->cg->thread, 0);
}

/* ---- calls of vprintf ------------------------------------------------------ */

/* Local memory belongs to the function's entry, so that loops do not add to it. */
static LLVMValueRef reserve_arguments(Codegen *cg)
{
    enum { ALIGN = 8 };
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(b);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(cg->function);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    LLVMValueRef v = LLVMBuildAlloca(b, LLVMArrayType2(cg->i64, ARGUMENTS_MAX), "");
    LLVMSetAlignment(v, ALIGN);
    LLVMPositionBuilderAtEnd(b, here);
    LLVMSetCurrentDebugLocation2(b, line);      /* which a place in the entry changes */
    return v;
}

/* The address of a constant text, in global memory. */
static LLVMValueRef text_constant(Codegen *cg, const char *text)
{
    LLVMValueRef v = LLVMConstStringInContext2(cg->context, text, strlen(text), 0);
    LLVMValueRef global = LLVMAddGlobalInAddressSpace(cg->llvm, LLVMTypeOf(v), "tilus$text",
                                                      SPACE_GLOBAL);
    LLVMSetInitializer(global, v);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
    return LLVMConstAddrSpaceCast(global, cg->any_ptr);
}

/* Calls vprintf with arguments of 64 bits each. */
static void call_print(const Print *p, const char *format, LLVMValueRef *args, unsigned count)
{
    enum { BYTES = 8 };
    Codegen *cg = p->cg;
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef at = const_i64_of(cg, i * BYTES);
        LLVMValueRef place = LLVMBuildGEP2(cg->builder, cg->i8, p->arguments, &at, 1, "");
        LLVMSetAlignment(LLVMBuildStore(cg->builder, args[i], place), BYTES);
    }
    LLVMValueRef all[] = {text_constant(cg, format), p->arguments};
    call_intrinsic(cg, INTR_print, p->op->loc, all, 2);
}

/* The head, `rest`, a format, after it, and the block. */
static void call_head(const Print *p, const char *rest, LLVMValueRef number)
{
    Arena *arena = &p->cg->module->scratch;
    LLVMValueRef args[ARGUMENTS_MAX] = {number};
    unsigned count = number != NULL, rank = p->cg->program->grid_rank;
    Text head, format;
    text_init(&head, arena);
    text_init(&format, arena);
    print_head(&head, p->op);
    for (const char *s = text_string(&head); *s; s++) {
        text_char(&format, *s);
        if (*s == '%')
            text_char(&format, *s);
    }
    text_printf(&format, "%s, block (", rest);
    for (unsigned d = 0; d < rank; d++) {
        text_add(&format, d ? ", %lld" : "%lld");
        args[count++] = p->block[d];
    }
    text_add(&format, ")\n");
    call_print(p, text_string(&format), args, count);
}

/* ---- elements ---------------------------------------------------------------- */

/* Before element number `e`, an i64: the first text whose dimensions begin there. */
static void call_separator(const Print *p, LLVMValueRef e)
{
    Codegen *cg = p->cg;
    LLVMBuilderRef b = cg->builder;
    const PrintShape *s = &p->shape;
    LLVMBasicBlockRef done = new_block(p, "separated");
    char text[PRINT_TEXT_SIZE];
    for (unsigned d = 0; d < s->rank; d++) {
        LLVMValueRef at = LLVMBuildURem(b, e, const_i64_of(cg, s->span[d]), "");
        LLVMValueRef begins = build_test(b, LLVMIntEQ, d ? at : e, 0);
        LLVMBasicBlockRef other = begin_if(p, begins);
        if (d)
            print_separator(text, s, s->rank - d);
        else
            print_open(text, s);
        call_print(p, text, NULL, 0);
        LLVMBuildBr(b, done);
        LLVMPositionBuilderAtEnd(b, other);
    }
    print_separator(text, s, 0);
    call_print(p, text, NULL, 0);
    end_if(p, done);
}

/* The value of a code as vprintf takes it. */
static LLVMValueRef code_argument(const Print *p, DType t, LLVMValueRef code)
{
    LLVMBuilderRef b = p->cg->builder;
    if (dtype_is_float(t)) {
        LLVMValueRef v = convert_decode_f64(b, t, code);
        LLVMValueRef nan = build_bitcast(b, const_i64_of(p->cg, INT64_C(0x7FF8) << 48),
                                         p->cg->f64);
        return build_select(b, build_is_nan(b, v), nan, v);
    }
    if (dtype_info[t].kind == DKIND_BOOL)
        return LLVMBuildZExt(b, build_test(b, LLVMIntNE, code, 0), p->cg->i64, "");
    LLVMValueRef v = emit_integer_value(p->cg, t, code);
    return dtype_info[t].kind == DKIND_INT ? LLVMBuildSExtOrBitCast(b, v, p->cg->i64, "")
                                           : LLVMBuildZExtOrBitCast(b, v, p->cg->i64, "");
}

static void call_element(const Print *p, LLVMValueRef e, LLVMValueRef code)
{
    LLVMValueRef argument = code_argument(p, p->shape.dtype, code);
    call_separator(p, e);
    call_print(p, print_format(p->shape.dtype), &argument, 1);
}

static void call_close(const Print *p)
{
    char text[PRINT_TEXT_SIZE];
    print_close(text, &p->shape);
    call_print(p, text, NULL, 0);
}

/* ---- register tensors ---------------------------------------------------------- */

static LLVMTypeRef code_type(const Print *p)
{
    return print_bytes(p->shape.dtype) == 8 ? p->cg->i64 : p->cg->i32;
}

/* The address of entry `i`, an i64, of the scratch at `base`. */
static LLVMValueRef scratch_at(const Print *p, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildGEP2(p->cg->builder, code_type(p), base, &i, 1, "");
}

/* The number of the element at `index` of the tile, an i64. */
static LLVMValueRef number_of(const Print *p, LLVMValueRef *index)
{
    LLVMValueRef sum = const_i64_of(p->cg, 0);
    for (unsigned d = 0; d < p->shape.rank; d++) {
        int64_t below = p->shape.span[d] / p->shape.extents[d];
        sum = add_i64(p->cg, sum, mul_i64(p->cg, index[d], const_i64_of(p->cg, below)));
    }
    return sum;
}

/* Stores the codes of this thread's elements that the chunk from number `first` on
 * has. Holders of the same element store the same. */
static void store_chunk(const Print *p, LLVMValueRef base, LLVMValueRef first)
{
    Codegen *cg = p->cg;
    const Value *v = p->op->operands[0];
    const Layout *l = v->type->layout;
    unsigned bits = dtype_bits(v->type->dtype);
    LLVMValueRef index[LIMIT_RANK];
    for (unsigned d = 0; d < l->rank; d++)
        index[d] = emit_thread_index(cg, l, d, cg->thread);
    LLVMValueRef mine = LLVMBuildSub(cg->builder, number_of(p, index), first, "");
    for (int64_t slot = 0; slot < l->slots; slot++) {
        int64_t place[LIMIT_RANK];
        layout_index(l, 0, slot, place);
        for (unsigned d = 0; d < l->rank; d++)
            index[d] = const_i64_of(cg, place[d]);
        LLVMValueRef at = add_i64(cg, mine, number_of(p, index));
        LLVMBasicBlockRef done = begin_if(p, build_test(cg->builder, LLVMIntULT, at,
                                                        PRINT_CHUNK));
        LLVMValueRef code = emit_get_bits(cg, lowered_words(v), slot * bits, bits);
        LLVMSetAlignment(LLVMBuildStore(cg->builder, code, scratch_at(p, base, at)),
                         print_bytes(p->shape.dtype));
        end_if(p, done);
    }
}

/* Thread 0 prints the elements from number `first` up to `end`. */
static void print_chunk(const Print *p, LLVMValueRef base, LLVMValueRef first,
                        LLVMValueRef end)
{
    LLVMBuilderRef b = p->cg->builder;
    LLVMBasicBlockRef done = begin_if(p, is_thread_0(p));
    Loop loop = begin_for(p, first, end, 1);
    LLVMValueRef at = scratch_at(p, base, LLVMBuildSub(b, loop.index, first, ""));
    LLVMValueRef code = LLVMBuildLoad2(b, code_type(p), at, "");
    LLVMSetAlignment(code, print_bytes(p->shape.dtype));
    call_element(p, loop.index, code);
    end_for(p, &loop);
    end_if(p, done);
}

static bool print_register(const Print *p)
{
    Codegen *cg = p->cg;
    LLVMValueRef base = shared_scratch(cg, p->op, p->plan);
    LLVMValueRef count = const_i64_of(cg, p->shape.count);
    if (!base)
        return false;
    LLVMBasicBlockRef done = begin_if(p, is_thread_0(p));
    call_head(p, "", NULL);
    end_if(p, done);
    Loop chunks = begin_for(p, const_i64_of(cg, 0), count, PRINT_CHUNK);
    LLVMValueRef end = LLVMBuildNSWAdd(cg->builder, chunks.index,
                                       const_i64_of(cg, PRINT_CHUNK), "");
    end = build_binary(cg->builder, "llvm.smin", end, count);
    store_chunk(p, base, chunks.index);
    if (!emit_barrier(p->cg, p->op))
        return false;
    print_chunk(p, base, chunks.index, end);
    if (!emit_barrier(p->cg, p->op))
        return false;
    end_for(p, &chunks);
    done = begin_if(p, is_thread_0(p));
    call_close(p);
    end_if(p, done);
    return true;
}

/* ---- memory ------------------------------------------------------------------------ */

/* The code of the element with number `linear`, an i64, of the memory tensor. */
static LLVMValueRef load_element(const MemoryAccess *a, LLVMValueRef linear)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef bit = mul_i64(cg, access_swizzle(a, linear), const_i64_of(cg, a->bits));
    if (a->bits < 8)
        return load_bits_at(a, bit);
    LLVMValueRef byte = LLVMBuildExactSDiv(b, bit, const_i64_of(cg, 8), "");
    LLVMTypeRef type = LLVMIntTypeInContext(cg->context, a->bits);
    LLVMValueRef v = LLVMBuildLoad2(b, type, access_pointer(a, byte), "");
    LLVMSetAlignment(v, a->bits / 8);
    return LLVMBuildZExtOrBitCast(b, v, a->bits > 32 ? cg->i64 : cg->i32, "");
}

/* The code of the tile's element number `e`; outside of a global view zero. */
static LLVMValueRef load_inside(const Print *p, const MemoryAccess *a, const MemoryTile *t,
                                LLVMValueRef e)
{
    Codegen *cg = p->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef linear = a->memory->first;
    uint32_t wrapping = tile_wrapping_dims(t);
    LLVMValueRef inside = LLVMConstInt(LLVMInt1TypeInContext(cg->context), 1, 0);
    for (unsigned d = 0; d < t->memory->type->rank; d++) {
        LLVMValueRef index = emit_expr(cg, t->offsets->exprs[d]);
        int of = memory_tile_find(t, d);
        if (of >= 0) {
            int64_t span = p->shape.span[of], below = span / p->shape.extents[of];
            LLVMValueRef v = LLVMBuildURem(b, e, const_i64_of(cg, span), "");
            v = LLVMBuildUDiv(b, v, const_i64_of(cg, below), "");
            index = add_offset(cg, wrapping, d, index, v);
        }
        LLVMValueRef extent = a->memory->extents[d];
        if (a->global)
            inside = LLVMBuildAnd(b, inside, index_inside(cg, index, extent), "");
        linear = add_i64(cg, linear, mul_i64(cg, index, a->memory->strides[d]));
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), done = begin_if(p, inside);
    LLVMValueRef code = load_element(a, linear), zero = LLVMConstNull(LLVMTypeOf(code));
    LLVMBasicBlockRef loaded = LLVMGetInsertBlock(b);
    end_if(p, done);
    LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(code), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){zero, code}, (LLVMBasicBlockRef[]){before, loaded},
                    2);
    return phi;
}

/* Prints a tensor in memory, all of it by thread 0. */
static bool print_memory(const Print *p)
{
    Codegen *cg = p->cg;
    const Value *v = p->op->operands[0];
    MemoryTile t = print_tile(cg->module, p->op);
    MemoryAccess a = {.cg = cg, .op = p->op, .bits = dtype_bits(v->type->dtype),
                      .memory = lowered(v), .swizzle = v->type->swizzle,
                      .global = v->type->kind == TYPE_GLOBAL};
    LLVMBasicBlockRef done = begin_if(p, is_thread_0(p));
    call_head(p, "", NULL);
    Loop loop = begin_for(p, const_i64_of(cg, 0), const_i64_of(cg, p->shape.count), 1);
    call_element(p, loop.index, load_inside(p, &a, &t, loop.index));
    end_for(p, &loop);
    call_close(p);
    end_if(p, done);
    return true;
}

static bool print_number(const Print *p)
{
    const Value *v = value_float_scalar(p->op);
    LLVMBasicBlockRef done = begin_if(p, is_thread_0(p));
    if (v)
        call_head(p, print_format(v->type->dtype),
                  code_argument(p, v->type->dtype, lowered(v)->value));
    else
        call_head(p, "%lld", emit_expr(p->cg, op_expr(p->op, ATTR_VALUE)));
    end_if(p, done);
    return true;
}

/* ---- the op ---------------------------------------------------------------------------- */

static bool print_all(Print *p)
{
    if (!p->op->operand_count)
        return print_number(p);
    p->shape = print_shape(p->op);
    return p->op->operands[0]->type->kind == TYPE_REG ? print_register(p) : print_memory(p);
}

bool emit_print(Codegen *cg, const Op *op, const Plan *plan)
{
    static const IntrinsicId ids[] = {INTR_block_index_x, INTR_block_index_y,
                                      INTR_block_index_z};
    LLVMBuilderRef b = cg->builder;
    Print p = {.cg = cg, .op = op, .plan = plan, .arguments = reserve_arguments(cg)};
    LLVMValueRef any = const_i64_of(cg, 0);
    for (unsigned d = 0; d < cg->program->grid_rank; d++) {
        LLVMValueRef v = call_intrinsic(cg, ids[d], op->loc, NULL, 0);
        if (!v)
            return false;
        p.block[d] = LLVMBuildZExt(b, v, cg->i64, "");
        any = LLVMBuildOr(b, any, p.block[d], "");
    }
    if (!print_first_block(op))
        return print_all(&p);
    LLVMBasicBlockRef done = begin_if(&p, build_test(b, LLVMIntEQ, any, 0));
    if (!print_all(&p))
        return false;
    end_if(&p, done);
    return true;
}
