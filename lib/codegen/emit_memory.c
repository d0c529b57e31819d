/* Loads and stores of register tiles: select/access.h decides units, width
 * and checks; here they become instructions.
 *
 *     if (units with one predicate are inside) {      only checked dimensions
 *         one wide access after another
 *     }                                               loads: phi with zeros
 *
 * An element's address splits into the thread's part, computed once, and the
 * slot's part, which is constant when strides are. A swizzle mixes the two, except
 * what the slot adds above the swizzle's bits. */
#include "codegen/hints.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "scalar/facts.h"

#include <stdlib.h>

/* ---- addresses ------------------------------------------------------- */

static bool is_constant(LLVMValueRef v, int64_t value)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetSExtValue(v) == value;
}

LLVMValueRef add_i64(Codegen *cg, LLVMValueRef a, LLVMValueRef b)
{
    return is_constant(a, 0)   ? b
           : is_constant(b, 0) ? a
                               : LLVMBuildNSWAdd(cg->builder, a, b, "");
}

LLVMValueRef mul_i64(Codegen *cg, LLVMValueRef a, LLVMValueRef b)
{
    return is_constant(a, 1)   ? b
           : is_constant(b, 1) ? a
                               : LLVMBuildNSWMul(cg->builder, a, b, "");
}

uint32_t tile_wrapping_dims(const MemoryTile *t)
{
    static const int64_t most = INT64_C(1) << 62;
    uint32_t dims = 0;
    for (unsigned d = 0; d < t->memory->type->rank; d++)
        if (facts_of_expr(t->offsets->exprs[d]).max > most)
            dims |= UINT32_C(1) << d;
    return dims;
}

LLVMValueRef add_offset(Codegen *cg, uint32_t wrapping, unsigned d, LLVMValueRef offset,
                        LLVMValueRef add)
{
    return wrapping >> d & 1 ? LLVMBuildAdd(cg->builder, offset, add, "")
                             : add_i64(cg, offset, add);
}

LLVMValueRef emit_index(Codegen *cg, const Value *index, int64_t slot)
{
    unsigned bits = dtype_bits(index->type->dtype);
    LLVMValueRef code = emit_get_bits(cg, lowered_words(index), slot * bits, bits);
    bool is_signed = dtype_info[index->type->dtype].kind == DKIND_INT;
    return bits == 64  ? code
           : is_signed ? LLVMBuildSExt(cg->builder, code, cg->i64, "")
                       : LLVMBuildZExt(cg->builder, code, cg->i64, "");
}

LLVMValueRef add_row(Codegen *cg, LLVMValueRef linear, LLVMValueRef row, LLVMValueRef stride)
{
    row = is_constant(stride, 1) ? row : LLVMBuildMul(cg->builder, row, stride, "");
    return is_constant(linear, 0) ? row : LLVMBuildAdd(cg->builder, linear, row, "");
}

/* Returns the tensor of the block with the rank that `op` names; NULL after an error. */
static const Lowered *lowered_remote(Codegen *cg, const Op *op, const Value *memory)
{
    const Lowered *own = lowered(memory);
    Lowered *remote = arena_new(&cg->module->scratch, Lowered);
    LLVMValueRef rank = emit_expr(cg, op_expr(op, ATTR_RANK));
    LLVMValueRef args[] = {own->value, LLVMBuildTrunc(cg->builder, rank, cg->i32, "")};
    *remote = *own;
    remote->value = call_intrinsic(cg, INTR_cluster_address, op->loc, args, 2);
    return remote->value ? remote : NULL;
}

void access_open(Codegen *cg, const Op *op, const Access *plan, UnitMover *move,
                 MemoryAccess *a)
{
    const Value *memory = op_memory_operand(op);
    MemoryTile tile = op_memory_tile(op);
    *a = (MemoryAccess){.cg = cg, .op = op, .plan = plan, .move = move,
                        .tile = op_tile_type(op),
                        .memory = op_attr(op, ATTR_RANK) ? lowered_remote(cg, op, memory)
                                                         : lowered(memory),
                        .swizzle = memory->type->swizzle,
                        .bits = dtype_bits(memory->type->dtype),
                        .global = memory->type->kind == TYPE_GLOBAL, .place = tile};
    for (unsigned d = 0; d < memory->type->rank; d++)
        a->index[d] = emit_expr(cg, tile.offsets->exprs[d]);
    a->wrapping = tile_wrapping_dims(&tile);
}

void access_locate(MemoryAccess *a, LLVMValueRef *index)
{
    Codegen *cg = a->cg;
    for (unsigned d = 0; d < a->tile->rank; d++) {
        unsigned of = op_tile_dim(a->op, d);
        if (memory_tile_is_indexed(&a->place, of))
            continue;
        a->index[of] = add_offset(cg, a->wrapping, of, a->index[of], index[d]);
    }
    a->linear = a->memory->first;
    for (unsigned d = 0; d < a->memory->type->rank; d++)
        a->linear = add_i64(cg, a->linear,
                                 mul_i64(cg, a->index[d], a->memory->strides[d]));
}

void access_locate_thread(MemoryAccess *a)
{
    LLVMValueRef index[LIMIT_RANK];
    for (unsigned d = 0; d < a->tile->rank; d++)
        index[d] = emit_thread_index(a->cg, a->tile->layout, d, a->cg->thread);
    access_locate(a, index);
}

/* The slot of the index that belongs to a slot of the tile. */
static int64_t index_slot(const MemoryAccess *a, int64_t slot)
{
    return layout_broadcast_slot(a->place.index->type->layout, a->tile->layout, slot);
}

/* The index of the element in `slot` in the indexed dimension, an i64. */
static LLVMValueRef slot_row(const MemoryAccess *a, int64_t slot)
{
    return emit_index(a->cg, a->place.index, index_slot(a, slot));
}

/* The thread's share of the element's number and, of an indexed tile, the row's. */
static LLVMValueRef slot_begin(const MemoryAccess *a, int64_t slot)
{
    return a->place.index ? add_row(a->cg, a->linear, slot_row(a, slot),
                                    a->memory->strides[a->place.indexed])
                          : a->linear;
}

/* The slot's own share of the element's number, an i64, often constant. */
static LLVMValueRef slot_linear(const MemoryAccess *a, int64_t slot)
{
    Codegen *cg = a->cg;
    int64_t index[LIMIT_RANK];
    layout_index(a->tile->layout, 0, slot, index);
    LLVMValueRef sum = const_i64_of(cg, 0);
    for (unsigned d = 0; d < a->tile->rank; d++) {
        unsigned of = op_tile_dim(a->op, d);
        LLVMValueRef stride = a->memory->strides[of];
        if (index[d] && !memory_tile_is_indexed(&a->place, of))
            sum = add_i64(cg, sum, mul_i64(cg, const_i64_of(cg, index[d]), stride));
    }
    return sum;
}

LLVMValueRef access_swizzle(const MemoryAccess *a, LLVMValueRef linear)
{
    LLVMBuilderRef b = a->cg->builder;
    Swizzle s = a->swizzle;
    if (!s.bits)
        return linear;
    int64_t mask = ((INT64_C(1) << s.bits) - 1) << s.base;
    LLVMValueRef by = LLVMBuildLShr(b, linear, const_i64_of(a->cg, s.shift), "");
    by = LLVMBuildAnd(b, by, const_i64_of(a->cg, mask), "");
    return LLVMBuildXor(b, linear, by, "");
}

LLVMValueRef access_slot_bit(const MemoryAccess *a, int64_t slot)
{
    LLVMValueRef linear = add_i64(a->cg, slot_begin(a, slot), slot_linear(a, slot));
    linear = access_swizzle(a, linear);
    return mul_i64(a->cg, linear, const_i64_of(a->cg, a->bits));
}

/* `bytes` past `base`. */
static LLVMValueRef advance(const MemoryAccess *a, LLVMValueRef base, LLVMValueRef bytes)
{
    return is_constant(bytes, 0) ? base
                                 : LLVMBuildGEP2(a->cg->builder, a->cg->i8, base, &bytes, 1, "");
}

LLVMValueRef access_pointer(const MemoryAccess *a, LLVMValueRef byte)
{
    return advance(a, a->memory->value, byte);
}

LLVMValueRef access_swizzled_pointer(const MemoryAccess *a, LLVMValueRef linear, int64_t rest)
{
    Codegen *cg = a->cg;
    int bits = a->swizzle.base + a->swizzle.bits + a->swizzle.shift;
    int64_t period = INT64_C(1) << (bits < 3 ? 3 : bits > 62 ? 62 : bits);
    int64_t low = rest % period, high = rest - low;
    linear = access_swizzle(a, add_i64(cg, linear, const_i64_of(cg, low)));
    LLVMValueRef bit = mul_i64(cg, linear, const_i64_of(cg, a->bits));
    LLVMValueRef byte = LLVMBuildExactSDiv(cg->builder, bit, const_i64_of(cg, 8), "");
    return advance(a, access_pointer(a, byte), const_i64_of(cg, high * a->bits / 8));
}

/* Adds the two parts of the address, of types below a byte too: each is a whole number of
 * bytes when the slot's part is a constant number of bytes. */
LLVMValueRef access_unit_pointer(const MemoryAccess *a, int64_t slot)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef begin = slot_begin(a, slot);
    LLVMValueRef rest = slot_linear(a, slot), eight = const_i64_of(cg, 8);
    if (a->swizzle.bits)
        return access_swizzled_pointer(a, begin, LLVMConstIntGetSExtValue(rest));
    if (a->bits % 8 == 0) {
        LLVMValueRef width = const_i64_of(cg, a->bits / 8);
        LLVMValueRef base = access_pointer(a, mul_i64(cg, begin, width));
        return advance(a, base, mul_i64(cg, rest, width));
    }
    if (!LLVMIsAConstantInt(rest) || LLVMConstIntGetSExtValue(rest) * a->bits % 8)
        return access_pointer(a, LLVMBuildExactSDiv(b, access_slot_bit(a, slot), eight, ""));
    LLVMValueRef first = mul_i64(cg, begin, const_i64_of(cg, a->bits));
    LLVMValueRef base = access_pointer(a, LLVMBuildExactSDiv(b, first, eight, ""));
    return advance(a, base, const_i64_of(cg, LLVMConstIntGetSExtValue(rest) * a->bits / 8));
}

/* ---- predicates ------------------------------------------------------ */

LLVMValueRef index_inside(Codegen *cg, LLVMValueRef index, LLVMValueRef extent)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef low = LLVMBuildICmp(b, LLVMIntSGE, index, const_i64_of(cg, 0), "");
    LLVMValueRef high = LLVMBuildICmp(b, LLVMIntSLT, index, extent, "");
    return LLVMBuildAnd(b, low, high, "");
}

/* Builds the predicate that the element in `slot` is inside the view, by the checked
 * dimensions; NULL when none is checked. */
static LLVMValueRef slot_inside(const MemoryAccess *a, int64_t slot)
{
    Codegen *cg = a->cg;
    int64_t of_tile[LIMIT_RANK], of_view[LIMIT_RANK] = {0};
    layout_index(a->tile->layout, 0, slot, of_tile);
    for (unsigned d = 0; d < a->tile->rank; d++)
        of_view[op_tile_dim(a->op, d)] = of_tile[d];
    LLVMValueRef all = NULL;
    for (unsigned d = 0; d < a->memory->type->rank; d++) {
        if (!(a->plan->checked >> d & 1))
            continue;
        LLVMValueRef index = memory_tile_is_indexed(&a->place, d)
                                 ? slot_row(a, slot)
                                 : add_offset(cg, a->wrapping, d, a->index[d],
                                              const_i64_of(cg, of_view[d]));
        LLVMValueRef one = index_inside(cg, index, a->memory->extents[d]);
        all = all ? LLVMBuildAnd(cg->builder, all, one, "") : one;
    }
    return all;
}

/* A unit, a run of slots, and the key of its predicate: units with equal keys share it. */
typedef struct Unit {
    int64_t key, slot;
} Unit;

static int unit_order(const void *x, const void *y)
{
    const Unit *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* The slot's index in the checked dimensions as one number, after its row's. */
static int64_t predicate_key(const MemoryAccess *a, int64_t slot)
{
    int64_t index[LIMIT_RANK], key = a->place.index && a->plan->checked ? index_slot(a, slot) : 0;
    layout_index(a->tile->layout, 0, slot, index);
    for (unsigned d = 0; d < a->tile->rank; d++)
        if (a->plan->checked >> op_tile_dim(a->op, d) & 1 &&
            !memory_tile_is_indexed(&a->place, op_tile_dim(a->op, d)))
            key = key * a->tile->layout->shape[d] + index[d];
    return key;
}

static Unit *list_units(const MemoryAccess *a, int64_t *count)
{
    *count = a->tile->layout->slots / a->plan->unit;
    Unit *units = arena_array(&a->cg->module->scratch, Unit, (size_t)*count);
    for (int64_t i = 0; i < *count; i++)
        units[i] = (Unit){predicate_key(a, i * a->plan->unit), i * a->plan->unit};
    qsort(units, (size_t)*count, sizeof *units, unit_order);
    return units;
}

/* ---- units ----------------------------------------------------------- */

LLVMTypeRef chunk_type(Codegen *cg, unsigned bytes)
{
    return bytes == 1   ? cg->i8
           : bytes == 2 ? cg->i16
           : bytes == 4 ? cg->i32
                        : LLVMVectorType(cg->i32, bytes / 4);
}

static void load_chunk(const MemoryAccess *a, LLVMValueRef pointer, int64_t bit,
                       LLVMValueRef *words)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = a->plan->bytes;
    if (bytes >= HINT_LEAST && hint_is_given(a->op)) {
        hint_load(cg, a->op, bytes, pointer, words + bit / 32);
        return;
    }
    LLVMValueRef v = LLVMBuildLoad2(b, chunk_type(cg, bytes), pointer, "");
    LLVMSetAlignment(v, bytes);
    if (bytes < 4)
        emit_set_bits(cg, words, bit, bytes * 8, LLVMBuildZExt(b, v, cg->i32, ""));
    else if (bytes == 4)
        words[bit / 32] = v;
    for (unsigned i = 0; bytes > 4 && i < bytes / 4; i++)
        words[bit / 32 + i] = LLVMBuildExtractElement(b, v, const_i32_of(cg, i), "");
}

/* Takes one or two bytes of the words, from `bit` on. They pass through a 16-bit
 * register: LLVM would store from the 32-bit register that holds them, and when
 * a float instruction wrote that one, ptxas (13.0, and the driver's) takes the
 * narrow store for a conversion of the float to an integer. */
static LLVMValueRef narrow_chunk(const MemoryAccess *a, int64_t bit, LLVMValueRef *words)
{
    Codegen *cg = a->cg;
    unsigned bytes = a->plan->bytes;
    LLVMValueRef bits = emit_get_bits(cg, words, bit, bytes * 8);
    LLVMValueRef half = call_intrinsic(cg, INTR_low_half, a->op->loc, &bits, 1);
    return bytes == 2 ? half : LLVMBuildTrunc(cg->builder, half, cg->i8, "");
}

static void store_chunk(const MemoryAccess *a, LLVMValueRef pointer, int64_t bit,
                        LLVMValueRef *words)
{
    Codegen *cg = a->cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = a->plan->bytes;
    LLVMTypeRef type = chunk_type(cg, bytes);
    LLVMValueRef v;
    if (bytes >= HINT_LEAST && hint_is_given(a->op)) {
        hint_store(cg, a->op, bytes, pointer, words + bit / 32);
        return;
    }
    if (bytes < 4) {
        v = narrow_chunk(a, bit, words);
    } else if (bytes == 4) {
        v = words[bit / 32];
    } else {
        v = LLVMGetPoison(type);
        for (unsigned i = 0; i < bytes / 4; i++)
            v = LLVMBuildInsertElement(b, v, words[bit / 32 + i], const_i32_of(cg, i), "");
    }
    LLVMSetAlignment(LLVMBuildStore(b, v, pointer), bytes);
}

/* Moves the unit that begins at `slot`, without any check. */
static void move_unit(const MemoryAccess *a, int64_t slot, LLVMValueRef *words)
{
    bool load = a->op->result_count > 0;
    if (a->plan->bytes == 0) {
        if (load)
            load_bits(a, slot, words);
        else
            store_bits(a, slot, words);
        return;
    }
    LLVMValueRef unit = access_unit_pointer(a, slot);
    int64_t first = slot * a->bits, bits = a->plan->unit * a->bits;
    for (int64_t at = 0; at < bits; at += 8 * a->plan->bytes) {
        LLVMValueRef pointer = advance(a, unit, const_i64_of(a->cg, at / 8));
        if (load)
            load_chunk(a, pointer, first + at, words);
        else
            store_chunk(a, pointer, first + at, words);
    }
}

/* ---- groups of units ------------------------------------------------- */

/* After a conditional load: each word that the group changed is a phi of the
 * loaded bits and what stood there before. */
static void join_words(Codegen *cg, LLVMValueRef *words, LLVMValueRef *before, int64_t count,
                       LLVMBasicBlockRef from, LLVMBasicBlockRef loaded)
{
    for (int64_t i = 0; i < count; i++) {
        if (words[i] == before[i])
            continue;
        LLVMValueRef phi = LLVMBuildPhi(cg->builder, cg->i32, "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){words[i], before[i]},
                        (LLVMBasicBlockRef[]){loaded, from}, 2);
        words[i] = phi;
    }
}

static void move_group(const MemoryAccess *a, const Unit *units, int64_t count,
                       LLVMValueRef *words)
{
    for (int64_t i = 0; i < count; i++)
        a->move(a, units[i].slot, words);
}

/* Moves units that share one predicate, if it holds. */
static void move_group_checked(const MemoryAccess *a, const Unit *units, int64_t count,
                               LLVMValueRef *words, LLVMValueRef *before)
{
    Codegen *cg = a->cg;
    int64_t word_count = type_thread_words(a->tile);
    LLVMValueRef predicate = slot_inside(a, units[0].slot);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(cg->builder);
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(cg->context, cg->function, "inside");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "moved");
    LLVMBuildCondBr(cg->builder, predicate, then, done);
    LLVMPositionBuilderAtEnd(cg->builder, then);
    memcpy(before, words, (size_t)word_count * sizeof *words);
    move_group(a, units, count, words);
    LLVMBasicBlockRef loaded = LLVMGetInsertBlock(cg->builder);
    LLVMBuildBr(cg->builder, done);
    LLVMPositionBuilderAtEnd(cg->builder, done);
    if (a->op->result_count > 0)
        join_words(cg, words, before, word_count, from, loaded);
}

void access_move_units(const MemoryAccess *a, LLVMValueRef *words)
{
    int64_t count;
    Unit *units = list_units(a, &count);
    size_t word_count = (size_t)type_thread_words(a->tile);
    LLVMValueRef *before = arena_array(&a->cg->module->scratch, LLVMValueRef, word_count);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && units[end].key == units[i].key;)
            end++;
        if (a->plan->checked)
            move_group_checked(a, units + i, end - i, words, before);
        else
            move_group(a, units + i, end - i, words);
    }
}

/* Moves the tile as planned. */
static bool move_planned(MemoryAccess *a, LLVMValueRef *words)
{
    if (via_info[a->plan->via].matrices)
        return move_matrices(a, words);
    access_locate_thread(a);
    access_move_units(a, words);
    return true;
}

static bool emit_load(Codegen *cg, const Op *op, const Plan *plan)
{
    MemoryAccess a;
    access_open(cg, op, &plan->access, move_unit, &a);
    LLVMValueRef *words = words_new(cg, a.tile);
    lower_words(cg, op->results[0], words);
    return a.memory && move_planned(&a, words);
}

static bool emit_store(Codegen *cg, const Op *op, const Plan *plan)
{
    MemoryAccess a;
    access_open(cg, op, &plan->access, move_unit, &a);
    if (op_attr(op, ATTR_RANK) && !plan->access.bytes)
        return diag_error(cg->diag, op->loc, "store_shared with a rank of parts of bytes: each thread must "
                          "have whole ones, got %s", type_text(cg->module, a.tile));
    return a.memory && move_planned(&a, lowered_words(op->operands[0]));
}

bool emit_load_global(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_load(cg, op, plan);
}

bool emit_store_global(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_store(cg, op, plan);
}

bool emit_load_shared(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_load(cg, op, plan);
}

bool emit_store_shared(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_store(cg, op, plan);
}
