/* copy_async: the plan (select/copy.h) cuts the tile into chunks, which the threads of
 * the block take in turn.
 *
 *     number      0    1    2  ..  T-1 | T   T+1 ..          in row-major order
 *     thread      0    1    2  ..  T-1 | 0    1  ..
 *     iteration           0            |      1
 *
 * Where a register tensor says which rows to copy, those of a thread are the rows that it
 * holds, slot by slot; the threads that hold the same row take its chunks in turn.
 *
 * A chunk of 4 bytes or more is one cp.async, which writes zeros for bytes past
 * the end of the source. Narrower chunks pass through registers at once, which
 * the language allows: no thread may look between the start of a copy and its wait. */
#include "codegen/convert_build.h"
#include "codegen/hints.h"
#include "codegen/memory.h"
#include "ir/tile.h"
#include "scalar/facts.h"
#include "select/copy.h"

/* The source or the target: its tensor, and the tile's offset in each dimension. */
typedef struct Side {
    MemoryTile tile;
    MemoryAccess access;                /* for elements of bits */
    LLVMValueRef offset[LIMIT_RANK];    /* i64 */
} Side;

typedef struct AsyncCopy {
    Codegen *cg;
    const Op *op;
    CopyPlan plan;
    unsigned bits;                      /* of an element */
    int64_t chunks;                     /* that the workers share */
    LLVMValueRef worker;                /* i32: which of them the thread is */
    int64_t workers;
    int64_t slot;                       /* an indexed source: of the index, */
    LLVMValueRef row;                   /* and what it holds there, an i64 */
    Side source, target;
} AsyncCopy;

/* ---- numbers of chunks ------------------------------------------------- */

/* The number first + add, where `first` (an i32) is below `limit`. */
typedef struct Number {
    LLVMValueRef first;
    int64_t limit, add;
} Number;

/* Divides a number. Where no carry goes from one part to the other, both are divided
 * alone, and all iterations share the variable part. */
static Number number_divide(Codegen *cg, Number n, int64_t by)
{
    int64_t rest = n.add % by;
    LLVMValueRef divisor = const_i32_of(cg, (uint32_t)by);
    if (rest + n.limit <= by)
        return (Number){const_i32_of(cg, 0), 1, n.add / by};
    if (rest) {
        LLVMValueRef add = const_i32_of(cg, (uint32_t)n.add);
        n = (Number){LLVMBuildNUWAdd(cg->builder, n.first, add, ""), n.limit + n.add, 0};
    }
    return (Number){LLVMBuildUDiv(cg->builder, n.first, divisor, ""), (n.limit + by - 1) / by,
                    n.add / by};
}

static Number number_modulo(Codegen *cg, Number n, int64_t by)
{
    LLVMBuilderRef b = cg->builder;
    int64_t rest = n.add % by;
    if (rest + n.limit <= by)
        return (Number){n.first, n.limit, rest};
    LLVMValueRef sum = LLVMBuildNUWAdd(b, n.first, const_i32_of(cg, (uint32_t)rest), "");
    return (Number){LLVMBuildURem(b, sum, const_i32_of(cg, (uint32_t)by), ""), by, 0};
}

/* The step to the row that the thread holds in its slot of the index. */
static Number row_step(const AsyncCopy *c, unsigned d)
{
    const Layout *l = c->source.tile.index->type->layout;
    int64_t index[LIMIT_RANK];
    layout_index(l, 0, c->slot, index);
    LLVMValueRef first = emit_thread_index(c->cg, l, d, c->cg->thread);
    return (Number){LLVMBuildTrunc(c->cg->builder, first, c->cg->i32, ""), l->shape[d], index[d]};
}

/* The chunk's step in each dimension of the tile. */
static void chunk_steps(const AsyncCopy *c, Number n, Number *steps)
{
    for (unsigned i = c->source.tile.rank; i-- > 0;) {
        unsigned d = c->plan.order[i];
        if (!memory_tile_is_uniform(&c->source.tile, d)) {
            steps[d] = row_step(c, d);
            continue;
        }
        steps[d] = i ? number_modulo(c->cg, n, c->plan.grid[d]) : n;
        n = number_divide(c->cg, n, c->plan.grid[d]);
    }
}

/* ---- addresses ---------------------------------------------------------- */

static LLVMValueRef variable_part(Codegen *cg, const Number *n)
{
    return LLVMBuildZExt(cg->builder, n->first, cg->i64, "");
}

/* Whole bytes of a number of elements. */
static LLVMValueRef element_bytes(const AsyncCopy *c, LLVMValueRef elements)
{
    Codegen *cg = c->cg;
    if (c->bits % 8 == 0)
        return mul_i64(cg, elements, const_i64_of(cg, c->bits / 8));
    LLVMValueRef bits = mul_i64(cg, elements, const_i64_of(cg, c->bits));
    return LLVMBuildExactSDiv(cg->builder, bits, const_i64_of(cg, 8), "");
}

/* The index, an i64, of the tile's first element in dimension `d` of one of the memories, or
 * of the row. */
static LLVMValueRef side_index(const AsyncCopy *c, const Side *s, unsigned d)
{
    return memory_tile_is_indexed(&s->tile, d) ? c->row : s->offset[d];
}

/* The number of the element at `steps`, or the parts of it that vary with the
 * thread and do not; chunks along the contiguous dimension left out. */
static void side_elements(const AsyncCopy *c, const Side *s, const Number *steps,
                          LLVMValueRef *variable, LLVMValueRef *constant)
{
    Codegen *cg = c->cg;
    *variable = s->access.memory->first;
    *constant = const_i64_of(cg, 0);
    for (unsigned d = 0; d < s->tile.memory->type->rank; d++) {
        LLVMValueRef stride = s->access.memory->strides[d], index = s->offset[d];
        int dim = memory_tile_find(&s->tile, d);
        if (memory_tile_is_indexed(&s->tile, d)) {
            *variable = add_row(cg, *variable, c->row, stride);
            continue;
        }
        if (dim >= 0 && dim != c->plan.along) {
            LLVMValueRef add = const_i64_of(cg, steps[dim].add);
            index = add_i64(cg, index, variable_part(cg, &steps[dim]));
            if (steps[dim].add)
                *constant = add_i64(cg, *constant, mul_i64(cg, add, stride));
        }
        *variable = add_i64(cg, *variable, mul_i64(cg, index, stride));
    }
}

/* The address of a chunk of whole elements in a swizzled tensor, whose strides
 * are constants. */
static LLVMValueRef swizzled_chunk(const AsyncCopy *c, const Side *s, const Number *steps)
{
    Codegen *cg = c->cg;
    LLVMValueRef variable, constant;
    side_elements(c, s, steps, &variable, &constant);
    int64_t rest = LLVMConstIntGetSExtValue(constant), length = 8 * c->plan.bytes / c->bits;
    if (c->plan.along >= 0) {
        const Number *along = &steps[c->plan.along];
        LLVMValueRef step = mul_i64(cg, variable_part(cg, along), const_i64_of(cg, length));
        variable = add_i64(cg, variable, step);
        rest += along->add * length;
    }
    return access_swizzled_pointer(&s->access, variable, rest);
}

/* The address of a chunk of whole bytes. */
static LLVMValueRef chunk_pointer(const AsyncCopy *c, const Side *s, const Number *steps)
{
    Codegen *cg = c->cg;
    LLVMValueRef variable, constant, bytes = const_i64_of(cg, c->plan.bytes);
    if (s->access.swizzle.bits)
        return swizzled_chunk(c, s, steps);
    side_elements(c, s, steps, &variable, &constant);
    variable = element_bytes(c, variable);
    constant = element_bytes(c, constant);
    if (c->plan.along >= 0) {
        const Number *along = &steps[c->plan.along];
        LLVMValueRef add = const_i64_of(cg, along->add * c->plan.bytes);
        variable = add_i64(cg, variable, mul_i64(cg, variable_part(cg, along), bytes));
        constant = add_i64(cg, constant, add);
    }
    LLVMValueRef base = access_pointer(&s->access, variable);
    return LLVMBuildGEP2(cg->builder, cg->i8, base, &constant, 1, "");
}

/* The first bit of a chunk that is an element. */
static LLVMValueRef chunk_bit(const AsyncCopy *c, const Side *s, const Number *steps)
{
    LLVMValueRef variable, constant;
    side_elements(c, s, steps, &variable, &constant);
    LLVMValueRef place = access_swizzle(&s->access, add_i64(c->cg, variable, constant));
    return mul_i64(c->cg, place, const_i64_of(c->cg, c->bits));
}

/* ---- bounds -------------------------------------------------------------- */

/* Whole bytes of an offset of `elements`, the value of `e`. Offsets so far that their bits would
 * wrap are taken for 2^59, as no row of a view, which spans less than 2^63 bits, is so long. */
static LLVMValueRef offset_bytes(const AsyncCopy *c, const Expr *e, LLVMValueRef elements)
{
    static const int64_t most = INT64_C(1) << 59;
    Codegen *cg = c->cg;
    ScalarFacts known = facts_of_expr(e);
    if (known.max > most)
        elements = build_binary(cg->builder, "llvm.smin", elements, const_i64_of(cg, most));
    if (known.min < -most)
        elements = build_binary(cg->builder, "llvm.smax", elements, const_i64_of(cg, -most));
    return element_bytes(c, elements);
}

/* The bytes of the source from the start of its row to the chunk, and to the
 * row's end. */
static void chunk_in_row(const AsyncCopy *c, const Number *steps, LLVMValueRef *begin,
                         LLVMValueRef *end)
{
    Codegen *cg = c->cg;
    const Number *along = &steps[c->plan.along];
    unsigned d = memory_tile_dim(&c->source.tile, (unsigned)c->plan.along);
    LLVMValueRef step = add_i64(cg, variable_part(cg, along), const_i64_of(cg, along->add));
    *begin = add_i64(cg, offset_bytes(c, c->source.tile.offsets->exprs[d],
                                       c->source.offset[d]),
                     mul_i64(cg, step, const_i64_of(cg, c->plan.bytes)));
    *end = element_bytes(c, c->source.access.memory->extents[d]);
}

/* Builds the predicate that the chunk, at least its first byte, is inside the source; NULL
 * when nothing is checked. */
static LLVMValueRef chunk_inside(const AsyncCopy *c, const Number *steps)
{
    Codegen *cg = c->cg;
    LLVMValueRef all = NULL;
    for (unsigned d = 0; d < c->source.tile.memory->type->rank; d++) {
        if (!(c->plan.checked >> d & 1))
            continue;
        int dim = memory_tile_find(&c->source.tile, d);
        LLVMValueRef index = side_index(c, &c->source, d);
        LLVMValueRef end = c->source.access.memory->extents[d];
        if (dim >= 0 && dim == c->plan.along)
            chunk_in_row(c, steps, &index, &end);
        else if (dim >= 0)
            index = add_offset(cg, c->source.access.wrapping, d, index,
                               add_i64(cg, variable_part(cg, &steps[dim]),
                                       const_i64_of(cg, steps[dim].add)));
        LLVMValueRef one = index_inside(cg, index, end);
        all = all ? LLVMBuildAnd(cg->builder, all, one, "") : one;
    }
    return all;
}

/* The bytes to copy, an i32, of a chunk that is `inside` or not. */
static LLVMValueRef source_bytes(const AsyncCopy *c, const Number *steps, LLVMValueRef inside)
{
    Codegen *cg = c->cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = c->plan.bytes;
    LLVMValueRef most = const_i32_of(cg, bytes), begin, end;
    if (c->plan.partial) {
        chunk_in_row(c, steps, &begin, &end);
        LLVMValueRef rest = LLVMBuildNSWSub(b, end, begin, "");
        LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, rest, const_i64_of(cg, bytes), "");
        most = LLVMBuildSelect(b, less, LLVMBuildTrunc(b, rest, cg->i32, ""), most, "");
    }
    return LLVMBuildSelect(b, inside, most, const_i32_of(cg, 0), "");
}

/* ---- chunks ---------------------------------------------------------------- */

static LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

static bool copy_async(const AsyncCopy *c, const Number *steps)
{
    bool checked = c->plan.checked;
    LLVMValueRef args[3] = {chunk_pointer(c, &c->target, steps),
                            chunk_pointer(c, &c->source, steps)};
    args[2] = checked ? source_bytes(c, steps, chunk_inside(c, steps))
                      : const_i32_of(c->cg, c->plan.bytes);
    if (hint_is_given(c->op)) {
        hint_copy(c->cg, c->op, c->plan.bytes, args[0], args[1], args[2]);
        return true;
    }
    IntrinsicId id = c->plan.bytes == 4   ? checked ? INTR_copy_4_of : INTR_copy_4
                     : c->plan.bytes == 8 ? checked ? INTR_copy_8_of : INTR_copy_8
                                          : checked ? INTR_copy_16_of : INTR_copy_16;
    return call_intrinsic(c->cg, id, c->op->loc, args, checked ? 3 : 2);
}

static LLVMValueRef load_chunk(const AsyncCopy *c, const Number *steps)
{
    if (!c->plan.bytes)
        return load_bits_at(&c->source.access, chunk_bit(c, &c->source, steps));
    LLVMValueRef v = LLVMBuildLoad2(c->cg->builder, chunk_type(c->cg, c->plan.bytes),
                                    chunk_pointer(c, &c->source, steps), "");
    LLVMSetAlignment(v, c->plan.bytes);
    return v;
}

/* The chunk, or zero where it is outside. */
static LLVMValueRef load_checked(const AsyncCopy *c, const Number *steps)
{
    Codegen *cg = c->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef inside = chunk_inside(c, steps);
    if (!inside)
        return load_chunk(c, steps);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(b), then = new_block(cg, "inside");
    LLVMBasicBlockRef done = new_block(cg, "loaded");
    LLVMBuildCondBr(b, inside, then, done);
    LLVMPositionBuilderAtEnd(b, then);
    LLVMValueRef v = load_chunk(c, steps);
    LLVMBasicBlockRef loaded = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(v), "");
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v));
    LLVMAddIncoming(phi, (LLVMValueRef[]){v, zero}, (LLVMBasicBlockRef[]){loaded, from}, 2);
    return phi;
}

static bool copy_chunk(const AsyncCopy *c, Number n)
{
    Number steps[LIMIT_RANK];
    chunk_steps(c, n, steps);
    if (c->plan.bytes >= CP_ASYNC_LEAST)
        return copy_async(c, steps);
    LLVMValueRef v = load_checked(c, steps);
    if (!c->plan.bytes) {
        store_bits_at(&c->target.access, chunk_bit(c, &c->target, steps), v);
        return true;
    }
    v = LLVMBuildStore(c->cg->builder, v, chunk_pointer(c, &c->target, steps));
    LLVMSetAlignment(v, c->plan.bytes);
    return true;
}

/* ---- iterations ------------------------------------------------------------ */

/* Copies a chunk by each worker: the last iteration may have fewer chunks. */
static bool copy_iteration(const AsyncCopy *c, int64_t begin)
{
    Codegen *cg = c->cg;
    LLVMBuilderRef b = cg->builder;
    Number n = {c->worker, c->workers, begin};
    if (begin + c->workers <= c->chunks)
        return copy_chunk(c, n);
    LLVMBasicBlockRef then = new_block(cg, "copy"), done = new_block(cg, "copied");
    LLVMValueRef rest = const_i32_of(cg, (uint32_t)(c->chunks - begin));
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, c->worker, rest, ""), then, done);
    LLVMPositionBuilderAtEnd(b, then);
    bool ok = copy_chunk(c, n);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, done);
    return ok;
}

/* for (number = worker; number < chunks; number += workers) */
static bool copy_loop(const AsyncCopy *c)
{
    Codegen *cg = c->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), header = new_block(cg, "copies");
    LLVMBasicBlockRef body = new_block(cg, "copy"), after = new_block(cg, "copied");
    LLVMBuildBr(b, header);
    LLVMPositionBuilderAtEnd(b, header);
    LLVMValueRef number = LLVMBuildPhi(b, cg->i32, "");
    LLVMValueRef worker = c->worker;
    LLVMAddIncoming(number, &worker, &before, 1);
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntULT, number,
                                      const_i32_of(cg, (uint32_t)c->chunks), "");
    LLVMBuildCondBr(b, more, body, after);
    LLVMPositionBuilderAtEnd(b, body);
    bool ok = copy_chunk(c, (Number){number, c->chunks, 0});
    LLVMValueRef next = LLVMBuildNUWAdd(b, number, const_i32_of(cg, (uint32_t)c->workers), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(number, &next, &latch, 1);
    LLVMBuildBr(b, header);
    LLVMPositionBuilderAtEnd(b, after);
    return ok;
}

/* ---- ops ------------------------------------------------------------------- */

static Side side_open(Codegen *cg, const Op *op, MemoryTile tile)
{
    const Value *memory = tile.memory;
    Side s = {.tile = tile,
              .access = {.cg = cg, .op = op, .memory = lowered(memory),
                         .bits = dtype_bits(memory->type->dtype),
                         .swizzle = memory->type->swizzle,
                         .global = memory->type->kind == TYPE_GLOBAL,
                         .wrapping = tile_wrapping_dims(&tile)}};
    for (unsigned d = 0; d < memory->type->rank; d++)
        s.offset[d] = emit_expr(cg, tile.offsets->exprs[d]);
    return s;
}

/* Copies the chunks that the workers share. */
static bool copy_shared_chunks(const AsyncCopy *c)
{
    bool ok = true;
    if (c->plan.loop && c->chunks > c->workers)
        return copy_loop(c);
    for (int64_t begin = 0; ok && begin < c->chunks; begin += c->workers)
        ok = copy_iteration(c, begin);
    return ok;
}

/* Copies the rows that the thread holds in the index. */
static bool copy_rows(AsyncCopy *c)
{
    const Value *index = c->source.tile.index;
    const Layout *l = index->type->layout;
    bool ok = true;
    c->chunks = copy_row_chunks(&c->plan, &c->source.tile);
    ThreadDigits replicas = replica_digits(l);
    c->worker = emit_thread_number(c->cg, &replicas);
    c->workers = replicas.size;
    for (c->slot = 0; ok && c->slot < l->slots; c->slot++) {
        c->row = emit_index(c->cg, index, c->slot);
        ok = copy_shared_chunks(c);
    }
    return ok;
}

bool emit_copy_async(Codegen *cg, const Op *op, const Plan *plan)
{
    AsyncCopy c = {.cg = cg, .op = op, .plan = plan->copy, .worker = cg->thread,
                   .workers = cg->threads.count,
                   .source = side_open(cg, op, op_source_tile(op)),
                   .target = side_open(cg, op, op_memory_tile(op))};
    c.bits = c.source.access.bits;
    c.chunks = copy_chunks(&c.plan, c.source.tile.rank);
    return c.source.tile.index ? copy_rows(&c) : copy_shared_chunks(&c);
}

bool emit_copy_async_commit_group(Codegen *cg, const Op *op)
{
    return call_intrinsic(cg, INTR_copy_commit, op->loc, NULL, 0);
}

bool emit_copy_async_wait_group(Codegen *cg, const Op *op)
{
    LLVMValueRef pending = const_i32_of(cg, (uint32_t)op_expr(op, ATTR_NUMBER)->constant);
    return call_intrinsic(cg, INTR_copy_wait, op->loc, &pending, 1);
}
