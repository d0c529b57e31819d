/* The verifier. The rows of ops.def are checked for every op alike; then each
 * op's own rules, in `verify_<op>`. */
#include "ir/verify.h"

#include "ir/text.h"

#include <math.h>
#include <string.h>

/* ---- helpers ---------------------------------------------------------- */

static const char *operand_kind_text(OperandKind kind)
{
    static const char *const names[] = {"register tensor", "shared tensor", "global tensor",
                                        "pointer", "shared or global tensor",
                                        "register, shared or global tensor"};
    return names[kind];
}

static const char *type_kind_text(TypeKind kind)
{
    static const char *const names[] = {"scalar", "pointer", "register tensor", "shared tensor",
                                        "global tensor"};
    return names[kind];
}

static bool kind_matches(OperandKind kind, TypeKind type)
{
    return (kind == OPERAND_REG && type == TYPE_REG) ||
           (kind == OPERAND_SHARED && type == TYPE_SHARED) ||
           (kind == OPERAND_GLOBAL && type == TYPE_GLOBAL) ||
           (kind == OPERAND_PTR && type == TYPE_PTR) ||
           (kind == OPERAND_MEMORY && (type == TYPE_SHARED || type == TYPE_GLOBAL)) ||
           (kind == OPERAND_TENSOR && type != TYPE_SCALAR && type != TYPE_PTR);
}

static bool note_definition(Module *m, const Value *v)
{
    return diag_note(m->diag, v->loc, "%%%s is defined here", v->name ? v->name : "?");
}

/* ---- what every op obeys ------------------------------------------------ */

bool verify_operands(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    bool ok = true;
    if (info->operand_count == OPERANDS_ANY)
        return true;
    if (op->operand_count != (unsigned)info->operand_count)
        return diag_error(m->diag, op->loc, "%s takes %d operand%s, got %u", info->name,
                          info->operand_count, info->operand_count == 1 ? "" : "s",
                          op->operand_count);
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Value *v = op->operands[i];
        if (kind_matches(info->operands[i], v->type->kind))
            continue;
        diag_error(m->diag, op->loc, "operand %u of %s is a %s, %%%s is a %s: %s", i + 1,
                   info->name, operand_kind_text(info->operands[i]), v->name ? v->name : "?",
                   type_kind_text(v->type->kind), type_text(m, v->type));
        ok = note_definition(m, v);
    }
    return ok;
}

static bool verify_attrs(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    for (unsigned i = 0; i < op->attr_count; i++)
        if (!(info->attrs & op_attr_bit(op->attrs[i].kind)))
            return diag_error(m->diag, op->loc, "%s has no attribute %s", info->name,
                              attr_info[op->attrs[i].kind].spelling);
    return true;
}

static bool verify_result_count(Module *m, const Op *op)
{
    unsigned expected[] = {
        [RESULT_NONE] = 0, [RESULT_REG] = 1, [RESULT_SHARED] = 1, [RESULT_GLOBAL] = 1,
        [RESULT_SCALAR] = 1, [RESULT_INDICES] = op->parent->program->grid_rank,
        [RESULT_CARRIED] = op->result_count, [RESULT_OPTIONAL] = op->result_count ? 1 : 0,
        [RESULT_TENSOR] = 1};
    unsigned count = expected[op_info[op->code].result];
    if (op->result_count == count)
        return true;
    return diag_error(m->diag, op->loc, "%s gives %u results here, got %u",
                      op_info[op->code].name, count, op->result_count);
}

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
    if (!t->dims)
        return true;
    if (t->dims->count != t->rank)
        return diag_error(m->diag, op->loc, "%s names %u dimensions, the tile has rank %u",
                          attr_info[t->dims->kind].spelling, t->dims->count, t->rank);
    return verify_dims(m, op, t->dims, memory->rank);
}

bool verify_constant_bounds(Module *m, const Op *op, const MemoryTile *t)
{
    const Type *memory = t->memory->type;
    for (unsigned d = 0; d < memory->rank; d++) {
        const Expr *offset = t->offsets->exprs[d];
        int dim = memory_tile_find(t, d);
        int64_t span = dim < 0 ? 0 : t->extents[dim] - 1;
        int64_t last, extent = type_extent(memory, d);
        if (!expr_is_constant(offset))
            continue;
        if (offset->constant < 0 || __builtin_add_overflow(offset->constant, span, &last) ||
            last >= extent)
            return diag_error(m->diag, op->loc, "the tile covers %lld .. %lld of dimension %u, "
                              "the %s has extent %lld", (long long)offset->constant,
                              (long long)(offset->constant + span), d,
                              type_kind_text(memory->kind), (long long)extent);
    }
    return true;
}

/* The instructions that a load or store asks for by a word. */
static bool verify_via(Module *m, const Op *op, const char *word)
{
    enum { MATRIX_ROW_BYTES = 16 };
    const Attr *width = op_attr(op, ATTR_WIDTH), *unit = op_attr(op, ATTR_UNIT);
    Via via = via_find(word);
    if (via == VIA_COUNT || (via_info[via].op != OP_ANY && via_info[via].op != op->code))
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

/* Attributes that say how the tile is moved: their form; analysis/select.h
 * checks what they promise. */
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
    if (access_evict(op) == EVICT_NONE)
        return diag_error(m->diag, op->loc, "evict is normal, first or last, got %s",
                          op_attr(op, ATTR_EVICT)->word);
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

/* ---- each op's own rules ------------------------------------------------ */

bool verify_block_indices(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++)
        if (op->results[i]->type != type_scalar(m, DTYPE_i32))
            return diag_error(m->diag, op->loc, "a block index is i32, got %s",
                              type_text(m, op->results[i]->type));
    return true;
}

bool verify_extents(Module *m, const Op *op, const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++)
        if (expr_is_constant(t->extents[d]) && t->extents[d]->constant < 0)
            return diag_error(m->diag, op->loc, "extent %u of the view is %lld", d,
                              (long long)t->extents[d]->constant);
    for (unsigned d = 0; d < t->rank; d++)
        if (!type_stride(m, t, d))
            return diag_error(m->diag, op->loc, "the product of the extents after dimension %u "
                              "is over 63 bits", d);
    return true;
}

bool verify_scalar(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Expr *value = op_expr(op, ATTR_VALUE);
    int64_t least, most;
    if (!value)
        return diag_error(m->diag, op->loc, "scalar needs an expression");
    if (t->kind != TYPE_SCALAR || (t->dtype != DTYPE_i32 && t->dtype != DTYPE_u32 &&
                                   t->dtype != DTYPE_i64))
        return diag_error(m->diag, op->loc, "scalar gives i32, u32 or i64, got %s",
                          type_text(m, t));
    dtype_integer_range(t->dtype, &least, &most);
    if (expr_is_constant(value) && (value->constant < least || value->constant > most))
        return diag_error(m->diag, op->loc, "scalar gives %lld, which %s does not hold",
                          (long long)value->constant, dtype_name(t->dtype));
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

/* Where the tensor lies; analysis/lifetimes.h checks that it may. */
static bool verify_offset(Module *m, const Op *op, const Type *t)
{
    const Attr *offset = op_attr(op, ATTR_OFFSET);
    if (!offset)
        return true;
    if (offset->integer < 0 || offset->integer % SHARED_ALIGN)
        return diag_error(m->diag, op->loc, "offset is %lld, it must be a multiple of %d from 0",
                          (long long)offset->integer, SHARED_ALIGN);
    if (offset->integer > SHARED_LIMIT ||
        type_shared_bits(t) > 8 * (SHARED_LIMIT - offset->integer))
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
    if (type_shared_bits(t) < 0)
        return diag_error(m->diag, op->loc, "the size of %s is over 63 bits", type_text(m, t));
    return verify_swizzle(m, op, t) && verify_offset(m, op, t);
}

bool verify_allocate_register(Module *m, const Op *op)
{
    const Attr *init = op_attr(op, ATTR_INIT);
    DType t = op->results[0]->type->dtype;
    if (init && ((isnan(init->number) && !dtype_has_nan(t)) ||
                 (isinf(init->number) && !dtype_has_infinity(t))))
        return diag_error(m->diag, op->loc, "%s has no code for %f", dtype_name(t), init->number);
    return true;
}

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
            return diag_error(m->diag, op->loc, "extent %u of the tile is %lld, it must be at "
                              "least 1", d, (long long)shape->ints[d]);
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
            return diag_error(m->diag, op->loc, "extent %u of the tile is %lld, the shared tensor "
                              "has %lld", d, (long long)t->extents[d], (long long)extent);
    }
    return verify_constant_bounds(m, op, t);
}

/* Attributes that say how the chunks of a copy are moved: their form;
 * analysis/copy.h checks what they promise. */
static bool verify_copy_selection(Module *m, const Op *op)
{
    const Attr *via = op_attr(op, ATTR_VIA), *width = op_attr(op, ATTR_WIDTH);
    const Attr *checked = op_attr(op, ATTR_CHECKED);
    const Type *source = op->operands[0]->type;
    if (via && (via_find(via->word) != VIA_bits || dtype_bits(source->dtype) >= 8))
        return diag_error(m->diag, op->loc, "copy_async of %s elements cannot go via %s",
                          dtype_name(source->dtype), via->word);
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

/* The extents of a memory tensor of which all is printed. */
static bool verify_whole(Module *m, const Op *op, const Value *v)
{
    int64_t elements = 1;
    for (unsigned d = 0; d < v->type->rank; d++) {
        const Expr *extent = v->type->extents[d];
        if (!expr_is_constant(extent))
            return diag_error(m->diag, op->loc, "extent %u of %%%s is not constant: print a "
                              "tile of it, as %%%s[0] {shape = [16]}", d, v->name ? v->name : "?",
                              v->name ? v->name : "?");
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
        return diag_error(m->diag, op->loc, "print shows all of a register tensor, %%%s has "
                          "no offsets, dims or shape", v->name ? v->name : "?");
    if (!verify_shape(m, op))
        return false;
    MemoryTile t = op_memory_tile(op);
    return verify_tile(m, op, &t) &&
           (v->type->kind != TYPE_SHARED || verify_tile_fits(m, op, &t));
}

bool verify_print(Module *m, const Op *op)
{
    const Attr *blocks = op_attr(op, ATTR_BLOCKS);
    unsigned things = op->operand_count + (op_expr(op, ATTR_VALUE) != NULL);
    if (!op_attr(op, ATTR_LABEL) || things != 1)
        return diag_error(m->diag, op->loc, "print takes a label and one tensor or number, got "
                          "%u", things);
    if (blocks && strcmp(blocks->word, "first") && strcmp(blocks->word, "all"))
        return diag_error(m->diag, op->loc, "blocks is first or all, got %s", blocks->word);
    if (!op->operand_count)
        return true;
    const Value *v = op->operands[0];
    if (v->type->kind == TYPE_PTR)
        return diag_error(m->diag, op->loc, "print of the pointer %%%s: print a view of it",
                          v->name ? v->name : "?");
    return verify_printed_tile(m, op);
}

bool verify_copy_async_commit_group(Module *m, const Op *op)
{
    (void)m, (void)op;
    return true;
}

bool verify_copy_async_wait_group(Module *m, const Op *op)
{
    const Expr *pending = op_expr(op, ATTR_PENDING);
    if (!expr_is_constant(pending))
        return diag_error(m->diag, op->loc, "the number of groups that may stay under way must "
                          "be a constant");
    if (pending->constant < 0 || pending->constant > INT32_MAX)
        return diag_error(m->diag, op->loc, "%lld groups that may stay under way, it must be 0 to "
                          "%d", (long long)pending->constant, INT32_MAX);
    return true;
}

/* The register tensors of an atomic op, results too. */
static bool verify_atomic_types(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    if (op->operands[op->operand_count - 2]->type != t)
        return diag_error(m->diag, op->loc, "%s takes elements of one type, got %s and %s",
                          op_info[op->code].name, type_text(m, t),
                          type_text(m, op->operands[1]->type));
    if (op->result_count && op->results[0]->type != t)
        return diag_error(m->diag, op->loc, "%s of %s gives that type, got %s",
                          op_info[op->code].name, type_text(m, t),
                          type_text(m, op->results[0]->type));
    return true;
}

/* Atomic ops: i32, u32 and the `count` types of `others`, which `names` lists. */
static bool verify_atomic(Module *m, const Op *op, const DType *others, unsigned count,
                          const char *names)
{
    DType t = op->operands[0]->type->dtype;
    const Attr *order = op_attr(op, ATTR_ORDER), *scope = op_attr(op, ATTR_SCOPE);
    bool defined = t == DTYPE_i32 || t == DTYPE_u32;
    if (!verify_atomic_types(m, op) || !verify_place(m, op))
        return false;
    for (unsigned i = 0; i < count; i++)
        defined |= t == others[i];
    if (!defined)
        return diag_error(m->diag, op->loc, "%s is defined for %s, got %s",
                          op_info[op->code].name, names, dtype_name(t));
    if (atomic_order(op) == ORDER_NONE)
        return diag_error(m->diag, op->loc, "order is relaxed, acquire, release or acq_rel, "
                          "got %s", order->word);
    if (atomic_scope(op) == SCOPE_NONE)
        return diag_error(m->diag, op->loc, "scope is block, gpu or system, got %s",
                          scope->word);
    return true;
}

bool verify_atomic_add(Module *m, const Op *op)
{
    static const DType floats[] = {DTYPE_f32, DTYPE_f16, DTYPE_bf16};
    return verify_atomic(m, op, floats, 3, "i32, u32, f32, f16 and bf16");
}

bool verify_atomic_exch(Module *m, const Op *op)
{
    static const DType floats[] = {DTYPE_f32};
    return verify_atomic(m, op, floats, 1, "i32, u32 and f32");
}

static bool verify_atomic_integers(Module *m, const Op *op)
{
    return verify_atomic(m, op, NULL, 0, "i32 and u32");
}

bool verify_atomic_max(Module *m, const Op *op) { return verify_atomic_integers(m, op); }
bool verify_atomic_min(Module *m, const Op *op) { return verify_atomic_integers(m, op); }
bool verify_atomic_cas(Module *m, const Op *op) { return verify_atomic_integers(m, op); }

bool verify_synchronize(Module *m, const Op *op)
{
    (void)m, (void)op;
    return true;
}

bool verify_view(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (type_is_open(from))
        return true;
    if (from->layout->threads != to->layout->threads)
        return diag_error(m->diag, op->loc, "view from %lld threads to %lld: %s as %s",
                          (long long)from->layout->threads, (long long)to->layout->threads,
                          type_text(m, from), type_text(m, to));
    if (type_thread_bits(from) != type_thread_bits(to))
        return diag_error(m->diag, op->loc, "view of %lld bits a thread as %lld: %s as %s",
                          (long long)type_thread_bits(from), (long long)type_thread_bits(to),
                          type_text(m, from), type_text(m, to));
    return true;
}

bool verify_cast(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (type_like(m, from, to->dtype) == to)
        return true;
    return diag_error(m->diag, op->loc, "cast keeps the %s, got %s from %s",
                      type_is_open(to) ? "shape" : "layout", type_text(m, to),
                      type_text(m, from));
}

bool verify_dot(Module *m, const Op *op)
{
    const Type *a = op->operands[0]->type, *b = op->operands[1]->type, *c = op->operands[2]->type;
    const Type *d = op->results[0]->type;
    if (a->rank != 2 || b->rank != 2 || c->rank != 2)
        return diag_error(m->diag, op->loc, "dot takes tiles of rank 2, got ranks %u, %u and %u",
                          a->rank, b->rank, c->rank);
    if (a->extents[1] != b->extents[0] || a->extents[0] != c->extents[0] ||
        b->extents[1] != c->extents[1])
        return diag_error(m->diag, op->loc, "dot of [%lld, %lld] and [%lld, %lld] onto [%lld, "
                          "%lld]", (long long)type_extent(a, 0), (long long)type_extent(a, 1),
                          (long long)type_extent(b, 0), (long long)type_extent(b, 1),
                          (long long)type_extent(c, 0), (long long)type_extent(c, 1));
    const Attr *via = op_attr(op, ATTR_VIA);
    if (via && (via_find(via->word) == VIA_COUNT || via_info[via_find(via->word)].op != OP_dot))
        return diag_error(m->diag, op->loc, "dot cannot go via %s", via->word);
    if (c != d)
        return diag_error(m->diag, op->loc, "dot onto %s gives that type, got %s",
                          type_text(m, c), type_text(m, d));
    return true;
}

/* Text has no way to carry anything else: memory is named where it is used. */
static bool verify_carried_kinds(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        if (t->kind != TYPE_REG && t->kind != TYPE_SCALAR)
            return diag_error(m->diag, op->loc, "%s carries register tensors and scalars, got a "
                              "%s: %s", op_info[op->code].name, type_kind_text(t->kind), type_text(m, t));
    }
    return true;
}

/* Values that a region hands on have the types of the op's results. */
static bool verify_yield_types(Module *m, const Op *op, const Region *r)
{
    const Op *yield = region_yield(r);
    if (!yield)
        return diag_error(m->diag, op->loc, "a region of %s without a yield",
                          op_info[op->code].name);
    if (yield->operand_count != op->result_count)
        return diag_error(m->diag, yield->loc, "yield of %u values in a %s that carries %u",
                          yield->operand_count, op_info[op->code].name, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++)
        if (!verify_types_agree(m, yield->operands[i]->type, op->results[i]->type))
            return diag_error(m->diag, yield->loc, "yield of %s where %s carries %s",
                              type_text(m, yield->operands[i]->type), op_info[op->code].name,
                              type_text(m, op->results[i]->type));
    return true;
}

static bool verify_stages(Module *m, const Op *op)
{
    const Expr *stages = op_expr(op, ATTR_PIPELINED);
    if (stages && !expr_is_constant(stages))
        return diag_error(m->diag, op->loc, "the number of stages is not constant: %s",
                          expr_text(m, stages));
    if (stages && (stages->constant < 1 || stages->constant > PIPELINE_STAGES_LIMIT))
        return diag_error(m->diag, op->loc, "a loop of %lld stages, it has 1 to %d",
                          (long long)stages->constant, PIPELINE_STAGES_LIMIT);
    return true;
}

/* Initial values, results and what the body hands on, one by one. */
static bool verify_loop(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name;
    if (op->operand_count != op->result_count)
        return diag_error(m->diag, op->loc, "%s carries %u values and gives %u results", name,
                          op->operand_count, op->result_count);
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!verify_types_agree(m, op->operands[i]->type, op->results[i]->type))
            return diag_error(m->diag, op->loc, "%s carries %s from %s", name,
                              type_text(m, op->results[i]->type),
                              type_text(m, op->operands[i]->type));
    return verify_carried_kinds(m, op) && verify_yield_types(m, op, op->regions[0]);
}

static bool verify_unroll(Module *m, const Op *op)
{
    const Expr *rounds = op_expr(op, ATTR_UNROLL);
    if (!rounds)
        return true;
    if (!expr_is_constant(rounds))
        return diag_error(m->diag, op->loc, "the rounds to unroll must be a constant, got %s",
                          expr_text(m, rounds));
    if (rounds->constant < 2 || rounds->constant > UNROLL_LIMIT)
        return diag_error(m->diag, op->loc, "unroll of %lld rounds, it must be 2 to %d",
                          (long long)rounds->constant, UNROLL_LIMIT);
    return true;
}

bool verify_for(Module *m, const Op *op)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    if (step && expr_is_constant(step) && step->constant < 1)
        return diag_error(m->diag, op->loc, "the step is %lld, it must be at least 1",
                          (long long)step->constant);
    return verify_stages(m, op) && verify_unroll(m, op) && verify_loop(m, op);
}

bool verify_if(Module *m, const Op *op)
{
    return verify_carried_kinds(m, op) && verify_yield_types(m, op, op->regions[0]) &&
           verify_yield_types(m, op, op->regions[1]);
}

static bool verify_reduced_dims(Module *m, const Op *op)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    unsigned rank = op->operands[0]->type->rank;
    if (!dims || !dims->count)
        return diag_error(m->diag, op->loc, "reduce needs its dimensions: {dims = [0]}");
    for (unsigned i = 0; i < dims->count; i++)
        if (dims->ints[i] < 0 || dims->ints[i] >= rank ||
            (i && dims->ints[i] <= dims->ints[i - 1]))
            return diag_error(m->diag, op->loc, "dims entry %u is %lld, it must grow and be below "
                              "the rank %u", i, (long long)dims->ints[i], rank);
    return true;
}

const Type *verify_reduce_type(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    const Attr *kind = op_attr(op, ATTR_KIND);
    const char *why = NULL;
    const Expr *extents[LIMIT_RANK];
    if (reduce_kind(op) == REDUCE_NONE) {
        diag_error(m->diag, op->loc, "reduce needs a kind, sum, max or min, got %s",
                   kind ? kind->word : "none");
        return NULL;
    }
    if (!verify_reduced_dims(m, op))
        return NULL;
    for (unsigned d = 0; d < t->rank; d++)
        extents[d] = reduce_dims(op) >> d & 1 ? expr_constant(&m->exprs, 1) : t->extents[d];
    if (type_is_open(t))
        return type_reg_open(m, t->dtype, t->rank, extents);
    const Layout *layout = layout_reduce(&m->layouts, t->layout, reduce_dims(op), &why);
    if (!layout)
        diag_error(m->diag, op->loc, "%s", why);
    return layout ? type_reg(m, t->dtype, layout) : NULL;
}

bool verify_reduce(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type, *t = verify_reduce_type(m, op);
    if (!t)
        return false;
    if (t != given)
        return diag_error(m->diag, op->loc, "reduce gives %s here, got %s", type_text(m, t),
                          type_text(m, given));
    if (t->dtype == DTYPE_bool || t->dtype == DTYPE_ue8m0)
        return diag_error(m->diag, op->loc, "reduce is not defined for %s",
                          dtype_name(t->dtype));
    return true;
}

/* "[2, 0]": what slot 0 of `thread` holds in `l`; 0 where `operand` has extent 1. */
static const char *element_text(Module *m, const Layout *l, const Layout *operand,
                                int64_t thread)
{
    Text text;
    int64_t index[LIMIT_RANK];
    text_init(&text, &m->arena);
    layout_index(l, thread, 0, index);
    for (unsigned d = 0; d < l->rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "[",
                    operand->shape[d] == 1 ? 0 : (long long)index[d]);
    text_char(&text, ']');
    return text_string(&text);
}

static bool verify_broadcast_threads(Module *m, const Op *op)
{
    const Value *operand = op->operands[0];
    const Layout *from = operand->type->layout, *to = op->results[0]->type->layout;
    int64_t thread;
    if (layout_broadcasts(from, to, &thread))
        return true;
    return diag_error(m->diag, op->loc, "thread %lld needs element %s of %%%s in slot 0 and has "
                      "element %s there", (long long)thread, element_text(m, to, from, thread),
                      operand->name ? operand->name : "?", element_text(m, from, from, thread));
}

bool verify_broadcast(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    bool fits = from->rank == to->rank;
    for (unsigned d = 0; fits && d < to->rank; d++)
        fits = from->extents[d] == to->extents[d] || type_extent(from, d) == 1;
    if (!fits)
        return diag_error(m->diag, op->loc, "broadcast repeats dimensions of extent 1, got %s "
                          "from %s", type_text(m, to), type_text(m, from));
    if (from->dtype != to->dtype)
        return diag_error(m->diag, op->loc, "broadcast keeps the element type, got %s from %s",
                          dtype_name(to->dtype), dtype_name(from->dtype));
    if (type_is_open(to))
        return true;
    if (from->layout->threads != to->layout->threads)
        return diag_error(m->diag, op->loc, "broadcast from %lld threads to %lld",
                          (long long)from->layout->threads, (long long)to->layout->threads);
    return verify_broadcast_threads(m, op);
}

static bool verify_condition(Module *m, const Op *op)
{
    return op_expr(op, ATTR_COND) ||
           diag_error(m->diag, op->loc, "%s needs a condition", op_info[op->code].name);
}

bool verify_while(Module *m, const Op *op)
{
    return verify_condition(m, op) && verify_loop(m, op);
}

bool verify_assert(Module *m, const Op *op) { return verify_condition(m, op); }
bool verify_assume(Module *m, const Op *op) { return verify_condition(m, op); }

bool verify_yield(Module *m, const Op *op)
{
    if (!op->parent->parent)
        return diag_error(m->diag, op->loc, "yield outside of for, while and if");
    if (op->next)
        return diag_error(m->diag, op->loc, "an op after yield: %s", op_info[op->next->code].name);
    return true;
}

static const OpVerifier verifiers[OP_COUNT] = {
#define OP(id, out, operands, attrs, effect, type, summary) [OP_##id] = verify_##id,
#include "ir/ops.def"
};

/* ---- definitions before uses -------------------------------------------- */

/* While a program is verified, Value.data of each visible value points here. */
static char visible;

static bool check_visible(Value *v, void *data)
{
    const Op *op = data;
    if (v->data == &visible)
        return true;
    Diag *diag = op->parent->program->module->diag;
    diag_error(diag, op->loc, "%s uses %%%s, which is not defined before it",
               op_info[op->code].name, v->name ? v->name : "?");
    return diag_note(diag, v->loc, "it is defined here");
}

static bool check_expr_uses(Op *op, const Expr *e)
{
    return !e || expr_visit_values(e, check_visible, op);
}

static void make_visible(Value *const *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = &visible;
}

/* The condition of a `while` may use what the loop carries. */
static bool verify_uses(Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!check_visible(op->operands[i], op))
            return false;
    if (op->code == OP_while)
        make_visible(op->regions[0]->args, op->regions[0]->arg_count);
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (!check_expr_uses(op, a->expr))
            return false;
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            if (!check_expr_uses(op, a->exprs[j]))
                return false;
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        for (unsigned d = 0; d < t->rank; d++)
            if (!check_expr_uses(op, t->extents[d]) ||
                !check_expr_uses(op, t->strides ? t->strides[d] : NULL))
                return false;
    }
    return true;
}

static bool verify_region(Module *m, Region *r);

static bool verify_op(Module *m, Op *op)
{
    bool ok = verify_uses(op) && verify_operands(m, op) && verify_operand_threads(m, op) &&
              verify_attrs(m, op) && verify_result_count(m, op) &&
              verify_rules(m, op, verifiers[op->code]);
    ok = verify_result_threads(m, op) && ok;
    for (unsigned i = 0; (ok || op->code != OP_thread_group) && i < op->region_count; i++)
        ok = verify_region(m, op->regions[i]) && ok;
    make_visible(op->results, op->result_count);
    return ok;
}

static bool verify_region(Module *m, Region *r)
{
    bool ok = true;
    make_visible(r->args, r->arg_count);
    for (Op *op = r->first; op; op = op->next)
        ok = verify_op(m, op) && ok;
    for (Op *op = r->first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            op->results[i]->data = NULL;
    for (unsigned i = 0; i < r->arg_count; i++)
        r->args[i]->data = NULL;
    return ok;
}

/* ---- programs ------------------------------------------------------------ */

static bool verify_scalar_facts(Module *m, const Value *v)
{
    const Facts *f = &v->facts;
    int64_t least = v->type->dtype == DTYPE_i32 ? INT32_MIN : v->type->dtype == DTYPE_u32 ? 0
                                                                                     : INT64_MIN;
    int64_t most = v->type->dtype == DTYPE_i32   ? INT32_MAX
                   : v->type->dtype == DTYPE_u32 ? (int64_t)UINT32_MAX
                                                 : INT64_MAX;
    if (f->divisible < 1)
        return diag_error(m->diag, v->loc, "%%%s is divisible by %lld, it must be at least 1",
                          v->name, (long long)f->divisible);
    if (f->min > f->max || f->min < least || f->max > most)
        return diag_error(m->diag, v->loc, "the range [%lld, %lld] of %%%s is empty or leaves %s",
                          (long long)f->min, (long long)f->max, v->name,
                          dtype_name(v->type->dtype));
    return true;
}

static bool verify_argument(Module *m, const Value *v)
{
    DType t = v->type->dtype;
    if (v->type->kind == TYPE_SCALAR)
        return t == DTYPE_i32 || t == DTYPE_u32 || t == DTYPE_i64
                   ? verify_scalar_facts(m, v)
                   : diag_error(m->diag, v->loc, "%%%s is %s, a scalar argument is i32, u32 or "
                                "i64", v->name, dtype_name(t));
    int64_t align = v->facts.align;
    if (align < dtype_align(t) || align & (align - 1))
        return diag_error(m->diag, v->loc, "%%%s is aligned to %lld, it must be a power of two "
                          "from %u", v->name, (long long)align, dtype_align(t));
    return true;
}

static bool verify_grid(Module *m, const Program *p)
{
    static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
    for (unsigned d = 0; d < p->grid_rank; d++) {
        const Expr *e = p->grid[d];
        if (expr_is_constant(e) && (e->constant < 0 || e->constant > limits[d]))
            return diag_error(m->diag, p->loc, "grid extent %u is %lld, it must be 0 to %lld", d,
                              (long long)e->constant, (long long)limits[d]);
    }
    return true;
}

static bool verify_program(Module *m, Program *p)
{
    bool ok = verify_grid(m, p);
    for (unsigned i = 0; i < p->arg_count; i++) {
        ok = verify_argument(m, p->args[i]) && ok;
        p->args[i]->data = &visible;
    }
    ok = verify_region(m, p->body) && ok;
    for (unsigned i = 0; i < p->arg_count; i++)
        p->args[i]->data = NULL;
    return ok;
}

bool verify_module(Module *m)
{
    bool ok = true;
    for (Program *p = m->programs; p; p = p->next)
        ok = verify_program(m, p) && ok;
    return ok;
}
