/* The verifier's rules of views and allocations, loads, stores and copies, prints
 * and atomic ops: tiles and their places in memory. */
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/reduction.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "ir/verify.h"

#include <math.h>
#include <string.h>

/* ---- tiles --------------------------------------------------------------- */

/* An attribute that lists dimensions of a memory tensor of rank `rank`. */
static bool verify_dims(Module *m, const Op *op, const Attr *dims, unsigned rank)
{
    for (unsigned i = 0; i < dims->count; i++)
        if (dims->ints[i] < 0 || dims->ints[i] >= rank ||
            (i && dims->ints[i] <= dims->ints[i - 1]))
            return diag_error(m->diag, op->loc, "%s entry %u is %lld, it must grow and be below "
                              "the rank %u", attr_info[dims->kind].spelling, i,
                              (long long)dims->ints[i], rank);
    return true;
}

static const char *index_text(Module *m, const MemoryTile *t)
{
    return value_text(m, t->index);
}

/* "[2, 0]": the element of the index that `thread` holds in slot 0. */
static const char *held_text(Module *m, const Layout *l, int64_t thread)
{
    Text text;
    int64_t index[LIMIT_RANK];
    text_init(&text, &m->arena);
    layout_index(l, thread, 0, index);
    for (unsigned d = 0; d < l->rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "[", (long long)index[d]);
    text_char(&text, ']');
    return text_string(&text);
}

/* Each thread that moves elements of a register tile must hold where they lie. The threads
 * that copy a tile are those that hold its index. */
static bool verify_index_threads(Module *m, const Op *op, const MemoryTile *t)
{
    bool copies = op_info[op->code].attrs & op_attr_bit(ATTR_SHAPE);
    const Layout *from = t->index->type->layout, *to = copies ? NULL : op_tile_type(op)->layout;
    int64_t thread;
    if (!from || !to || from->threads != to->threads || layout_broadcasts(from, to, &thread))
        return true;
    return diag_error(m->diag, op->loc, "the index %s has no element for what thread %lld "
                      "holds of the tile at %s: the thread holds element %s there; the layouts "
                      "are %s and %s", index_text(m, t), (long long)thread,
                      held_text(m, to, thread), held_text(m, from, thread),
                      type_text(m, t->index->type), type_text(m, op_tile_type(op)));
}

/* The register tensor among the offsets. */
static bool verify_index(Module *m, const Op *op, const MemoryTile *t)
{
    const Type *index = t->index ? t->index->type : NULL;
    if (!index)
        return true;
    if (index->dtype != DTYPE_i32 && index->dtype != DTYPE_u32 && index->dtype != DTYPE_i64)
        return diag_error(m->diag, op->loc, "an index is i32, u32 or i64, %s is %s",
                          index_text(m, t), dtype_name(index->dtype));
    if (index->rank != t->rank)
        return diag_error(m->diag, op->loc, "the index %s has rank %u, the tile has rank %u",
                          index_text(m, t), index->rank, t->rank);
    for (unsigned d = 0; d < t->rank; d++)
        if (type_extent(index, d) != 1 && type_extent(index, d) != t->extents[d])
            return diag_error(m->diag, op->loc, "the extent of dimension %u of the index %s is "
                              "%lld, it must be 1 or the tile's, %lld", d, index_text(m, t),
                              (long long)type_extent(index, d), (long long)t->extents[d]);
    return verify_index_threads(m, op, t);
}

/* The dimensions that the tile spans. */
static bool verify_tile_dims(Module *m, const Op *op, const MemoryTile *t)
{
    if (!t->dims)
        return true;
    if (t->dims->count != t->rank)
        return diag_error(m->diag, op->loc, "%s names %u dimensions, the tile has rank %u",
                          attr_info[t->dims->kind].spelling, t->dims->count, t->rank);
    return verify_dims(m, op, t->dims, t->memory->type->rank);
}

bool verify_tile(Module *m, const Op *op, const MemoryTile *t)
{
    const char *name = op_info[op->code].name;
    const Type *memory = t->memory->type;
    if (!t->offsets || t->offsets->count != memory->rank)
        return diag_error(m->diag, op->loc, "%s takes %u offsets for %s, got %u", name,
                          memory->rank, type_text(m, memory), t->offsets ? t->offsets->count : 0);
    if (t->rank > memory->rank)
        return diag_error(m->diag, op->loc, "%s of a tile of rank %u in a tensor of rank %u",
                          name, t->rank, memory->rank);
    return verify_tile_dims(m, op, t) && verify_index(m, op, t);
}

bool verify_constant_bounds(Module *m, const Op *op, const MemoryTile *t)
{
    const Type *memory = t->memory->type;
    for (unsigned d = 0; d < memory->rank; d++) {
        const Expr *offset = t->offsets->exprs[d];
        int dim = memory_tile_find(t, d);
        int64_t span = dim < 0 ? 0 : t->extents[dim] - 1;
        int64_t last, extent = type_extent(memory, d);
        if (!expr_is_constant(offset) || memory_tile_is_indexed(t, d))
            continue;
        if (__builtin_add_overflow(offset->constant, span, &last))
            last = INT64_MAX;
        if (offset->constant < 0 || last >= extent)
            return diag_error(m->diag, op->loc, "the tile covers %lld .. %lld of dimension %u, "
                              "the %s has extent %lld", (long long)offset->constant,
                              (long long)last, d,
                              verify_kind_text(memory->kind), (long long)extent);
    }
    return true;
}

/* The instructions that a load or store asks for by a word. */
static bool verify_via(Module *m, const Op *op, Via via)
{
    enum { MATRIX_ROW_BYTES = 16 };
    const Attr *width = op_attr(op, ATTR_WIDTH), *unit = op_attr(op, ATTR_UNIT);
    const char *word = via_info[via].spelling;
    if (via_info[via].op != OP_ANY && via_info[via].op != op->code)
        return diag_error(m->diag, op->loc, "%s cannot go via %s", op_info[op->code].name, word);
    if (via == VIA_bits && dtype_bits(op_tile_type(op)->dtype) >= 8)
        return diag_error(m->diag, op->loc, "via = bits is for elements below a byte, got %s",
                          dtype_name(op_tile_type(op)->dtype));
    if (unit || (width && !via_info[via].matrices))
        return diag_error(m->diag, op->loc, "%s stands beside via = %s, which fixes it",
                          unit ? "unit" : "width", word);
    if (width && width->integer != MATRIX_ROW_BYTES)
        return diag_error(m->diag, op->loc, "via = %s moves rows of %d bytes, width is %lld",
                          word, MATRIX_ROW_BYTES, (long long)width->integer);
    return true;
}

/* Bytes that one access moves. */
static bool verify_width(Module *m, const Op *op, int64_t width)
{
    enum { WIDEST = 16 };
    if (width >= 1 && width <= WIDEST && !(width & (width - 1)))
        return true;
    return diag_error(m->diag, op->loc, "width is %lld, it must be a power of two from 1 to %d",
                      (long long)width, WIDEST);
}

/* Checks the form of the attributes that say how the tile is moved; select/select.h
 * checks their meaning. */
static bool verify_selection(Module *m, const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA), *checked = op_attr(op, ATTR_CHECKED);
    const Attr *width = op_attr(op, ATTR_WIDTH), *unit = op_attr(op, ATTR_UNIT);
    const Layout *layout = op_tile_type(op)->layout;
    if (checked && !verify_dims(m, op, checked, op_memory_operand(op)->type->rank))
        return false;
    if (via)
        return verify_via(m, op, via->word);
    if (!width != !unit || (checked && !width))
        return diag_error(m->diag, op->loc, "%s needs %s beside it",
                          width ? "width" : unit ? "unit" : "checked",
                          width ? "unit" : unit ? "width" : "width and unit, or via");
    if (width && !verify_width(m, op, width->integer))
        return false;
    if (unit && layout && (unit->integer < 1 || layout->slots % unit->integer))
        return diag_error(m->diag, op->loc, "unit is %lld, it must divide the %lld slots of a "
                          "thread", (long long)unit->integer, (long long)layout->slots);
    return true;
}

/* Hints for the caches. */
static bool verify_hints(Module *m, const Op *op)
{
    const Attr *prefetch = op_attr(op, ATTR_PREFETCH);
    int64_t bytes = prefetch ? prefetch->integer : 64;
    if (bytes != 64 && bytes != 128 && bytes != 256)
        return diag_error(m->diag, op->loc, "prefetch is %lld bytes, it must be 64, 128 or 256",
                          (long long)bytes);
    return true;
}

/* The tile of registers, its place in memory and its element type. */
static bool verify_place(Module *m, const Op *op)
{
    const Type *memory = op_memory_operand(op)->type, *tile = op_tile_type(op);
    MemoryTile t = op_memory_tile(op);
    if (!verify_tile(m, op, &t))
        return false;
    if (tile->dtype != memory->dtype)
        return diag_error(m->diag, op->loc, "%s moves %s elements between registers and %s "
                          "elements in memory", op_info[op->code].name, dtype_name(tile->dtype),
                          dtype_name(memory->dtype));
    return memory->kind != TYPE_SHARED || verify_constant_bounds(m, op, &t);
}

/* Loads and stores. */
static bool verify_access(Module *m, const Op *op)
{
    return verify_place(m, op) && verify_selection(m, op) && verify_hints(m, op);
}

/* ---- views and allocations ------------------------------------------------ */

bool verify_extents(Module *m, const Op *op, const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++)
        if (expr_is_constant(t->extents[d]) && t->extents[d]->constant < 0)
            return diag_error(m->diag, op->loc, "the extent of dimension %u of the view is %lld", d,
                              (long long)t->extents[d]->constant);
    for (unsigned d = 0; d < t->rank; d++)
        if (!type_stride(m, t, d))
            return diag_error(m->diag, op->loc, "the product of the extents after dimension %u "
                              "is over 63 bits", d);
    return true;
}

bool verify_view_global(Module *m, const Op *op)
{
    const Value *ptr = op->operands[0];
    const Type *t = op->results[0]->type;
    int64_t needed = dtype_align(t->dtype);
    if (ptr->facts.align < needed)
        return diag_error(m->diag, op->loc, "a view of %s needs a pointer aligned to %lld bytes, "
                          "%%%s promises %lld", dtype_name(t->dtype), (long long)needed, ptr->name,
                          (long long)ptr->facts.align);
    return verify_extents(m, op, t);
}

/* A swizzle permutes blocks of 2^(base + bits) elements: only whole ones keep
 * the elements inside the tensor. */
static bool verify_swizzle(Module *m, const Op *op, const Type *t)
{
    const Swizzle *s = &t->swizzle;
    int64_t block = INT64_C(1) << (s->base + s->bits);
    int64_t elements = type_shared_bits(t) / dtype_bits(t->dtype);
    if (!s->bits)
        return true;
    if (s->shift < s->bits)
        return diag_error(m->diag, op->loc, "SHIFT of a swizzle is at least BITS, got "
                          "swizzle(%d, %d, %d)", s->bits, s->base, s->shift);
    if (elements % block)
        return diag_error(m->diag, op->loc, "swizzle(%d, %d, %d) permutes blocks of %lld "
                          "elements, the tensor spans %lld", s->bits, s->base, s->shift,
                          (long long)block, (long long)elements);
    return true;
}

/* Checks that the tensor alone is no larger than shared memory may be. */
static bool verify_size(Module *m, const Op *op, const Type *t)
{
    int64_t bits = type_shared_bits(t), bytes = bits / 8 + (bits % 8 != 0);
    if (bits < 0)
        return diag_error(m->diag, op->loc, "the size of %s is over 63 bits", type_text(m, t));
    return bytes <= LIMIT_SHARED_BYTES ||
           diag_error(m->diag, op->loc, "%s takes %lld bytes of shared memory, the limit is %d",
                      type_text(m, t), (long long)bytes, LIMIT_SHARED_BYTES);
}

/* Checks the tensor's offset by itself; memory/lifetimes.h checks it against others. */
static bool verify_offset(Module *m, const Op *op, const Type *t)
{
    const Attr *offset = op_attr(op, ATTR_OFFSET);
    if (!offset)
        return true;
    int64_t most = swizzle_alignment(t);    /* which needs no look at the ops that use the tensor */
    int64_t align = offset->integer % most == 0 ? most : shared_alignment(op->results[0]);
    if (offset->integer < 0 || offset->integer % align)
        return diag_error(m->diag, op->loc, "offset is %lld, it must be a multiple of %lld from 0",
                          (long long)offset->integer, (long long)align);
    if (offset->integer > LIMIT_SHARED_BYTES ||
        type_shared_bits(t) > 8 * ((int64_t)LIMIT_SHARED_BYTES - offset->integer))
        return diag_error(m->diag, op->loc, "a tensor at offset %lld ends after byte 2^31",
                          (long long)offset->integer);
    return true;
}

bool verify_allocate_shared(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    for (unsigned d = 0; t->strides && d < t->rank; d++)
        if (!expr_is_constant(t->strides[d]) || t->strides[d]->constant < 0)
            return diag_error(m->diag, op->loc, "stride %u of a shared tensor must be a constant "
                              "from 0", d);
    return verify_size(m, op, t) && verify_swizzle(m, op, t) && verify_offset(m, op, t);
}

bool verify_allocate_register(Module *m, const Op *op)
{
    const Attr *init = op_attr(op, ATTR_INIT);
    DType t = op->results[0]->type->dtype;
    return !init || constant_fits(t, init->number) ||
           diag_error(m->diag, op->loc, "%s", constant_misfit(&m->arena, t, init->number));
}

/* ---- loads, stores and copies ---------------------------------------------- */

bool verify_load_global(Module *m, const Op *op) { return verify_access(m, op); }
bool verify_store_global(Module *m, const Op *op) { return verify_access(m, op); }
bool verify_load_shared(Module *m, const Op *op) { return verify_access(m, op); }
bool verify_store_shared(Module *m, const Op *op) { return verify_access(m, op); }

bool verify_load_scalar(Module *m, const Op *op)
{
    const Type *memory = op_memory_operand(op)->type, *given = op->results[0]->type;
    MemoryTile t = op_memory_tile(op);
    int64_t least, most;
    if (!dtype_integer_range(memory->dtype, &least, &most))
        return diag_error(m->diag, op->loc, "load_scalar takes integers that i64 holds, got %s",
                          dtype_name(memory->dtype));
    if (given != type_scalar(m, memory->dtype))
        return diag_error(m->diag, op->loc, "load_scalar gives %s here, got %s",
                          dtype_name(memory->dtype), type_text(m, given));
    return verify_tile(m, op, &t) &&
           (memory->kind != TYPE_SHARED || verify_constant_bounds(m, op, &t));
}

/* The tile's shape, whose extents the shared tensor limits. */
static bool verify_shape(Module *m, const Op *op)
{
    const Attr *shape = op_attr(op, ATTR_SHAPE);
    int64_t elements = 1;
    if (!shape || !shape->count)
        return diag_error(m->diag, op->loc, "%s needs the shape of its tile, as {shape = [16, 64]}",
                          op_info[op->code].name);
    for (unsigned d = 0; d < shape->count; d++) {
        if (shape->ints[d] < 1)
            return diag_error(m->diag, op->loc, "the extent of dimension %u of the tile is %lld, "
                              "it must be at least 1", d, (long long)shape->ints[d]);
        if (__builtin_mul_overflow(elements, shape->ints[d], &elements) || elements > INT32_MAX)
            return diag_error(m->diag, op->loc, "a tile of more than %d elements", INT32_MAX);
    }
    return true;
}

static bool verify_tile_fits(Module *m, const Op *op, const MemoryTile *t)
{
    for (unsigned d = 0; d < t->rank; d++) {
        int64_t extent = type_extent(t->memory->type, memory_tile_dim(t, d));
        if (t->extents[d] > extent)
            return diag_error(m->diag, op->loc, "the extent of dimension %u of the tile is %lld, "
                              "the shared tensor has %lld", d, (long long)t->extents[d],
                              (long long)extent);
    }
    return verify_constant_bounds(m, op, t);
}

/* Checks the form of the attributes that say how the chunks of a copy are moved;
 * select/copy.h checks their meaning. */
static bool verify_copy_selection(Module *m, const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA), *width = op_attr(op, ATTR_WIDTH);
    const Attr *checked = op_attr(op, ATTR_CHECKED);
    const Type *source = op->operands[0]->type;
    if (via && (via->word != VIA_bits || dtype_bits(source->dtype) >= 8))
        return diag_error(m->diag, op->loc, "copy_async of %s elements cannot go via %s",
                          dtype_name(source->dtype), via_info[via->word].spelling);
    if (via && width)
        return diag_error(m->diag, op->loc, "width stands beside via = bits, which fixes it");
    if (checked && !via && !width)
        return diag_error(m->diag, op->loc, "checked needs width, or via beside it");
    return (!width || verify_width(m, op, width->integer)) &&
           (!checked || verify_dims(m, op, checked, source->rank));
}

bool verify_copy_async(Module *m, const Op *op)
{
    DType from = op->operands[0]->type->dtype, to = op->operands[1]->type->dtype;
    if (!verify_shape(m, op))
        return false;
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    if (!verify_tile(m, op, &source) || !verify_tile(m, op, &target))
        return false;
    if (from != to)
        return diag_error(m->diag, op->loc, "copy_async of %s elements onto %s elements",
                          dtype_name(from), dtype_name(to));
    return verify_tile_fits(m, op, &target) && verify_copy_selection(m, op) &&
           verify_hints(m, op);
}

static bool verify_bulk_selection(Module *m, const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA);
    return !via || via->word == VIA_tensor || via->word == VIA_bulk ||
           diag_error(m->diag, op->loc, "%s cannot go via %s", op_info[op->code].name,
                      via_info[via->word].spelling);
}

/* Leaves the place of the bytes, and their alignment, to select/bulk.h. */
static bool verify_bulk_copy(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name;
    DType from = op->operands[0]->type->dtype, to = op->operands[1]->type->dtype;
    if (!verify_shape(m, op))
        return false;
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    MemoryTile shared = bulk_shared_tile(op);
    int64_t bytes = bulk_bytes(op);
    if (!verify_tile(m, op, &source) || !verify_tile(m, op, &target))
        return false;
    if (from != to)
        return diag_error(m->diag, op->loc, "%s of %s elements onto %s elements", name,
                          dtype_name(from), dtype_name(to));
    if (bytes < 0 || bytes % BULK_ALIGN || bytes > LIMIT_ARRIVALS)
        return diag_error(m->diag, op->loc, "%s copies multiples of %d bytes up to %d, %lld "
                          "elements of %u bits are %lld bits", name, BULK_ALIGN, LIMIT_ARRIVALS,
                          (long long)bulk_elements(op), dtype_bits(from),
                          (long long)(bulk_elements(op) * dtype_bits(from)));
    return verify_tile_fits(m, op, &shared) && verify_hints(m, op) && verify_bulk_selection(m, op);
}

bool verify_copy_async_bulk(Module *m, const Op *op)
{
    return verify_bulk_copy(m, op) && verify_mbarrier_element(m, op);
}

bool verify_copy_async_bulk_store(Module *m, const Op *op)
{
    Reduction r = store_reduction(op);
    DType t = op->operands[0]->type->dtype;
    if (!verify_bulk_copy(m, op))
        return false;
    return r == REDUCTION_NONE || reduction_takes(r, t) ||
           diag_error(m->diag, op->loc, "%s {reduce = %s} of %s elements: the copy unit combines "
                      "%s so", op_info[op->code].name, attr_word_text(op_attr(op, ATTR_REDUCE)),
                      dtype_name(t), reduction_types_text(&m->arena, r));
}

/* The extents of a memory tensor of which all is printed. */
static bool verify_whole(Module *m, const Op *op, const Value *v)
{
    int64_t elements = 1;
    for (unsigned d = 0; d < v->type->rank; d++) {
        const Expr *extent = v->type->extents[d];
        if (!expr_is_constant(extent))
            return diag_error(m->diag, op->loc, "the extent of dimension %u of %s is not "
                              "constant: print a tile of it, as %s[0] {shape = [16]}", d,
                              value_text(m, v), value_text(m, v));
        if (extent->constant < 1 ||
            __builtin_mul_overflow(elements, extent->constant, &elements) ||
            elements > INT32_MAX)
            return diag_error(m->diag, op->loc, "print of %s: it must have 1 to %d elements",
                              type_text(m, v->type), INT32_MAX);
    }
    return true;
}

static bool verify_printed_tile(Module *m, const Op *op)
{
    const Value *v = op->operands[0];
    bool tile = op_attr(op, ATTR_OFFSETS) || op_attr(op, ATTR_SHAPE) || op_attr(op, ATTR_DIMS);
    if (!tile)
        return v->type->kind == TYPE_REG || verify_whole(m, op, v);
    if (v->type->kind == TYPE_REG)
        return diag_error(m->diag, op->loc, "print shows all of a register tensor, %s has "
                          "no offsets, dims or shape", value_text(m, v));
    if (!verify_shape(m, op))
        return false;
    MemoryTile t = op_memory_tile(op);
    return verify_tile(m, op, &t) &&
           (v->type->kind != TYPE_SHARED || verify_tile_fits(m, op, &t));
}

bool verify_print(Module *m, const Op *op)
{
    unsigned things = op->operand_count + (op_expr(op, ATTR_VALUE) != NULL);
    if (!op_attr(op, ATTR_LABEL) || things != 1)
        return diag_error(m->diag, op->loc, "print takes a label and one tensor or number, got "
                          "%u", things);
    if (!op->operand_count)
        return (!op_attr(op, ATTR_DIMS) && !op_attr(op, ATTR_SHAPE)) ||
               diag_error(m->diag, op->loc, "print of a number, which has no dims or shape");
    const Value *v = op->operands[0];
    if (v->type->kind == TYPE_PTR)
        return diag_error(m->diag, op->loc, "print of the pointer %s: print a view of it",
                          value_text(m, v));
    if (v->type->kind == TYPE_MBARRIER)
        return diag_error(m->diag, op->loc, "print of %s, %s: it has no value",
                          value_text(m, v), type_text(m, v->type));
    return verify_printed_tile(m, op);
}

bool verify_copy_async_commit_group(Module *m, const Op *op)
{
    (void)m, (void)op;
    return true;
}

bool verify_copy_async_wait_group(Module *m, const Op *op)
{
    const Expr *pending = op_expr(op, ATTR_NUMBER);
    if (!expr_is_constant(pending))
        return diag_error(m->diag, op->loc, "the number of groups that may stay in flight must "
                          "be a constant");
    if (pending->constant < 0 || pending->constant > INT32_MAX)
        return diag_error(m->diag, op->loc, "%lld groups that may stay in flight, it must be 0 to "
                          "%d", (long long)pending->constant, INT32_MAX);
    return true;
}

bool verify_copy_async_bulk_commit_group(Module *m, const Op *op)
{
    return verify_copy_async_commit_group(m, op);
}

bool verify_copy_async_bulk_wait_group(Module *m, const Op *op)
{
    return verify_copy_async_wait_group(m, op);
}

/* The register tensors of an atomic op, results too. */
static bool verify_atomic_types(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    if (op->operands[op_memory_number(op) - 1]->type != t)
        return diag_error(m->diag, op->loc, "%s takes elements of one type, got %s and %s",
                          op_info[op->code].name, type_text(m, t),
                          type_text(m, op->operands[1]->type));
    if (op->result_count && op->results[0]->type != t)
        return diag_error(m->diag, op->loc, "%s of %s gives that type, got %s",
                          op_info[op->code].name, type_text(m, t),
                          type_text(m, op->results[0]->type));
    return true;
}

static bool has_atomics(DType t)
{
    return t == DTYPE_i32 || t == DTYPE_u32 || t == DTYPE_f32 || t == DTYPE_f16 ||
           t == DTYPE_bf16;
}

static bool verify_atomic(Module *m, const Op *op)
{
    DType t = op->operands[0]->type->dtype;
    if (!verify_atomic_types(m, op) || !verify_place(m, op))
        return false;
    if (!has_atomics(t))
        return diag_error(m->diag, op->loc, "%s is defined for i32, u32, f32, f16 and bf16, got "
                          "%s", op_info[op->code].name, dtype_name(t));
    return true;
}

bool verify_atomic_add(Module *m, const Op *op) { return verify_atomic(m, op); }
bool verify_atomic_max(Module *m, const Op *op) { return verify_atomic(m, op); }
bool verify_atomic_min(Module *m, const Op *op) { return verify_atomic(m, op); }
bool verify_atomic_exch(Module *m, const Op *op) { return verify_atomic(m, op); }
bool verify_atomic_cas(Module *m, const Op *op) { return verify_atomic(m, op); }
