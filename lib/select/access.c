/* Access analysis: the unit and width of memory accesses.
 *
 * The address of slot s of thread t in bits is
 *
 *     base + (first + sum over dimensions d of (offset[d] + T[d](t) + S[d](s)) * stride[d])
 *            * bits
 *
 * where T and S are sums of the layout's spatial and local modes and `first` is the
 * number of a part's first element (ir/part.h), 0 of a whole tensor. A power of
 * two that divides every term divides the address. A swizzle permutes the
 * element numbers before they count bits. */
#include "select/access.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "memory/tensor_map.h"
#include "scalar/bounds.h"
#include "scalar/facts.h"
#include "tilus/kernel.h"

/* Alignments are bits, powers of two, at most this: 16 bytes is the widest. */
enum { ALIGN_LIMIT = 128, SHARED_BASE_BYTES = 16 };

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The greatest power of two, at most ALIGN_LIMIT, that divides `v`. */
static int64_t power_in(int64_t v)
{
    return v ? min_i64(v & -v, ALIGN_LIMIT) : ALIGN_LIMIT;
}

/* Elements of its dimension that a step of mode `m` moves. */
static int64_t mode_weight(const Layout *l, unsigned m)
{
    int64_t weight = 1;
    for (unsigned i = m + 1; i < l->mode_count && l->modes[i].dim == l->modes[m].dim; i++)
        weight *= l->modes[i].extent;
    return weight;
}

static int64_t digits_step(const Layout *l, const LayoutDigit *digits, unsigned count,
                           unsigned dim)
{
    int64_t step = 0;
    for (unsigned i = 0; i < count; i++)
        if (digits[i].mode >= 0 && l->modes[digits[i].mode].dim == dim)
            step = gcd_i64(step, mode_weight(l, (unsigned)digits[i].mode));
    return step;
}

int64_t access_thread_step(const Layout *l, unsigned dim)
{
    return digits_step(l, l->spatial, l->spatial_count, dim);
}

int64_t access_base_alignment(const Value *memory)
{
    if (memory->type->kind == TYPE_SHARED)
        return 8 * SHARED_BASE_BYTES;
    const Op *root = memory_root(memory)->def;
    if (root->code == OP_allocate_global)
        return min_i64(8 * TILUS_WORKSPACE_ALIGN, ALIGN_LIMIT);
    const Value *pointer = root->operands[0];
    return min_i64(pointer->facts.align, ALIGN_LIMIT / 8) * 8;
}

/* Returns true where elements that follow each other along dimension `d` of the tile do so in memory. */
static bool has_neighbors(Module *m, const Op *op, unsigned d)
{
    MemoryTile t = op_memory_tile(op);
    unsigned of = op_tile_dim(op, d);
    const Expr *stride = type_stride(m, op_memory_operand(op)->type, of);
    return expr_is_constant(stride) && stride->constant == 1 && !memory_tile_is_indexed(&t, of) &&
           memory_tile_is_uniform(&t, d);
}

/* The tile's dimension with stride 1 in memory and the longest run of slots;
 * its run, or 1 when there is none. */
static int64_t longest_run(Module *m, const Op *op, unsigned *dim)
{
    const Type *tile = op_tile_type(op);
    int64_t longest = 1;
    *dim = 0;
    for (unsigned d = 0; d < tile->rank; d++) {
        if (!has_neighbors(m, op, d))
            continue;
        int64_t run = layout_run(tile->layout, d);
        if (run > longest) {
            longest = run;
            *dim = d;
        }
    }
    return longest;
}

int64_t access_step(const Op *op, unsigned d)
{
    const Layout *l = op_tile_type(op)->layout;
    MemoryTile t = op_memory_tile(op);
    int dim = memory_tile_find(&t, d);
    if (dim < 0)
        return memory_tile_is_indexed(&t, d);
    return gcd_i64(access_thread_step(l, (unsigned)dim),
                   digits_step(l, l->local, l->local_count, (unsigned)dim));
}

/* The steps from unit to unit of `unit` slots along tile dimension `along`. */
static void unit_steps(const Op *op, unsigned along, int64_t unit, int64_t *steps)
{
    for (unsigned d = 0; d < op_memory_operand(op)->type->rank; d++)
        steps[d] = unit > 1 && op_tile_dim(op, along) == d ? unit : access_step(op, d);
}

/* The proved alignments, in bits, of what dimension `d` adds to an address:
 * the offset's part and that of the steps. */
static void dim_alignment(Module *m, const Op *op, unsigned d, int64_t step,
                          int64_t *of_offset, int64_t *of_steps)
{
    const Type *memory = op_memory_operand(op)->type;
    int64_t scale = facts_alignment(type_stride(m, memory, d), ALIGN_LIMIT) *
                    power_in(dtype_bits(memory->dtype));
    *of_offset = scale * facts_alignment(op_attr(op, ATTR_OFFSETS)->exprs[d], ALIGN_LIMIT);
    *of_steps = scale * power_in(step);
}

/* The most elements of a swizzled tensor that surely follow each other: aligned
 * runs of 2^base. Without a swizzle: no limit. */
static int64_t swizzle_run(const Op *op)
{
    Swizzle s = op_memory_operand(op)->type->swizzle;
    return s.bits ? INT64_C(1) << s.base : INT64_MAX;
}

/* Proved alignment, in bits, of every unit's first bit; 0 when a swizzle may
 * tear a unit apart. */
static int64_t unit_alignment(Module *m, const Op *op, unsigned along, int64_t unit)
{
    const Value *memory = op_memory_operand(op);
    int64_t steps[LIMIT_RANK], of_offset, of_steps, index = memory_first_alignment(m, memory);
    int64_t width = power_in(dtype_bits(memory->type->dtype));
    unit_steps(op, along, unit, steps);
    for (unsigned d = 0; d < memory->type->rank; d++) {
        dim_alignment(m, op, d, steps[d], &of_offset, &of_steps);
        index = min_i64(index, min_i64(of_offset, of_steps) / width);
    }
    index = min_i64(index, swizzle_run(op));
    if (memory->type->swizzle.bits && unit > index)
        return 0;
    return min_i64(access_base_alignment(memory), index * width);
}

uint32_t access_checked_dims(const Op *op, const MemoryTile *t)
{
    const Type *memory = t->memory->type;
    uint32_t dims = 0;
    for (unsigned d = 0; memory->kind == TYPE_GLOBAL && d < memory->rank; d++) {
        int dim = memory_tile_find(t, d);
        int64_t span = dim < 0 ? 1 : t->extents[dim];
        if (memory_tile_is_indexed(t, d) ||
            !bounds_proved(op, t->offsets->exprs[d], span, memory->extents[d]))
            dims |= UINT32_C(1) << d;
    }
    return dims;
}

static bool is_multiple(const Expr *e, int64_t of)
{
    return facts_of_expr(e).divisor % of == 0;
}

static uint32_t unproved_dims(const Op *op)
{
    MemoryTile tile = op_memory_tile(op);
    return access_checked_dims(op, &tile);
}

/* Returns true when no unit of `unit` slots is part inside the view and part outside. */
static bool unit_is_whole(const Op *op, uint32_t unproved, unsigned along, int64_t unit)
{
    unsigned d = op_tile_dim(op, along);
    if (unit == 1 || !(unproved >> d & 1))
        return true;
    return is_multiple(op_attr(op, ATTR_OFFSETS)->exprs[d], unit) &&
           is_multiple(op_memory_operand(op)->type->extents[d], unit);
}

/* Bytes of the widest access for units of `unit` slots; 0: not whole bytes. */
static int64_t unit_width(Module *m, const Op *op, unsigned along, int64_t unit)
{
    int64_t bits = unit * dtype_bits(op_tile_type(op)->dtype);
    return min_i64(power_in(bits), unit_alignment(m, op, along, unit)) / 8;
}

unsigned access_unit_width(Module *m, const Op *op, int64_t unit)
{
    unsigned along;
    int64_t run = longest_run(m, op, &along);
    if (run % unit || !unit_is_whole(op, unproved_dims(op), along, unit))
        return 0;
    return (unsigned)unit_width(m, op, along, unit);
}

int64_t access_run(Module *m, const Op *op)
{
    unsigned along;
    return longest_run(m, op, &along);
}

Access access_plan(Module *m, const Op *op)
{
    unsigned along;
    int64_t run = longest_run(m, op, &along);
    Access a = {.unit = 1, .checked = unproved_dims(op)};
    for (int64_t unit = run; unit >= 1; unit--) {
        if (run % unit || !unit_is_whole(op, a.checked, along, unit))
            continue;
        int64_t bytes = unit_width(m, op, along, unit);
        if (bytes > a.bytes) {
            a.bytes = (unsigned)bytes;
            a.unit = unit;
        }
    }
    a.via = a.bytes ? VIA_units : VIA_bits;
    return a;
}

/* ---- reasons --------------------------------------------------------------- */

/* The stride of dimension `d` is no multiple of `bytes` bytes. */
static const char *stride_reason(Module *m, const Op *op, unsigned d, unsigned bytes)
{
    const Type *memory = op_memory_operand(op)->type;
    const Expr *stride = type_stride(m, memory, d);
    int64_t bits = dtype_bits(memory->dtype), stride_bits;
    const char *name = arena_printf(&m->arena, "in dimension %u, stride", d);
    if (d + 2 >= memory->rank)
        name = d + 2 == memory->rank ? "row stride" : "column stride";
    if (!expr_is_constant(stride) ||
        __builtin_mul_overflow(stride->constant, bits, &stride_bits))
        return arena_printf(&m->arena, "%s %s elements is not known to be a multiple of %u "
                            "bytes", name, expr_text(m, stride), bytes);
    if (stride_bits % 8)
        return arena_printf(&m->arena, "%s %lld bits is not a multiple of %u bytes", name,
                            (long long)stride_bits, bytes);
    return arena_printf(&m->arena, "%s %lld bytes is not a multiple of %u", name,
                        (long long)(stride_bits / 8), bytes);
}

static const char *offset_reason(Module *m, const Op *op, unsigned d, unsigned bytes)
{
    const Type *memory = op_memory_operand(op)->type;
    int64_t scale = facts_alignment(type_stride(m, memory, d), ALIGN_LIMIT) *
                    power_in(dtype_bits(memory->dtype));
    return arena_printf(&m->arena, "offset %s in dimension %u is not known to be a multiple of "
                        "%lld, a width of %u needs that",
                        expr_text(m, op_attr(op, ATTR_OFFSETS)->exprs[d]), d,
                        (long long)(8 * bytes / scale), bytes);
}

static const char *swizzle_reason(Module *m, const Op *op, int64_t elements)
{
    return arena_printf(&m->arena, "the swizzle keeps %lld elements together, this needs %lld",
                        (long long)swizzle_run(op), (long long)elements);
}

const char *access_misalignment(Module *m, const Op *op, const int64_t *steps, unsigned bytes)
{
    const Value *memory = op_memory_operand(op);
    int64_t elements = 8 * bytes / dtype_bits(memory->type->dtype);
    if (elements > swizzle_run(op))
        return swizzle_reason(m, op, elements);
    if (access_base_alignment(memory) < 8 * bytes) {
        const Value *pointer = memory_root(memory)->def->operands[0];
        return arena_printf(&m->arena, "%%%s promises alignment %lld, %u bytes need %u",
                            pointer->name, (long long)pointer->facts.align, bytes, bytes);
    }
    int64_t width = power_in(dtype_bits(memory->type->dtype));
    if (memory_first_alignment(m, memory) * width < 8 * bytes)
        return arena_printf(&m->arena, "%s is not known to begin at a multiple of %lld "
                            "elements, a width of %u needs that", value_text(m, memory),
                            (long long)(8 * bytes / width), bytes);
    for (unsigned d = 0; d < memory->type->rank; d++) {
        int64_t of_offset, of_steps;
        dim_alignment(m, op, d, steps[d], &of_offset, &of_steps);
        if (of_steps < 8 * bytes)
            return stride_reason(m, op, d, bytes);
        if (of_offset < 8 * bytes)
            return offset_reason(m, op, d, bytes);
    }
    return NULL;
}

/* Returns why units of `unit` elements along dimension `along` of the tile may lie half outside the view; NULL: they
 * do not. */
static const char *partial_reason(Module *m, const Op *op, unsigned along, int64_t unit)
{
    unsigned d = op_tile_dim(op, along);
    if (unit_is_whole(op, unproved_dims(op), along, unit))
        return NULL;
    return arena_printf(&m->arena, "the tile may leave dimension %u, and offset %s and extent %s are "
                        "not known to be multiples of %lld", d,
                        expr_text(m, op_attr(op, ATTR_OFFSETS)->exprs[d]),
                        expr_text(m, op_memory_operand(op)->type->extents[d]), (long long)unit);
}

/* Says that no two slots of a lane follow each other in memory, and why no layout may have them do so, where that is so: a fact is the
 * cure then, not a layout. */
static const char *apart_reason(Module *m, const Op *op, int64_t unit, unsigned bytes)
{
    const Type *tile = op_tile_type(op);
    const char *partial = NULL;
    for (unsigned d = 0; d < tile->rank && !partial; d++)
        if (has_neighbors(m, op, d) && tile->extents[d]->constant % unit == 0)
            partial = partial_reason(m, op, d, unit);
    return arena_printf(&m->arena, "no two slots of a lane follow each other in memory, a width of %u "
                        "needs %lld%s%s", bytes, (long long)unit, partial ? "; " : "",
                        partial ? partial : "");
}

const char *access_reason(Module *m, const Op *op, int64_t unit, unsigned bytes)
{
    const Type *tile = op_tile_type(op);
    unsigned along, bits = dtype_bits(tile->dtype);
    int64_t run = longest_run(m, op, &along), steps[LIMIT_RANK];
    if (unit * bits % (8 * bytes))
        return arena_printf(&m->arena, "units of %lld x %u bits are not made of %u bytes",
                            (long long)unit, bits, bytes);
    if (run == 1 && unit > 1)
        return apart_reason(m, op, unit, bytes);
    if (run % unit)
        return arena_printf(&m->arena, "a lane holds runs of %lld elements that follow each "
                            "other in memory, a width of %u needs %lld", (long long)run, bytes,
                            (long long)unit);
    const char *partial = partial_reason(m, op, along, unit);
    if (partial)
        return partial;
    if (unit > swizzle_run(op))
        return swizzle_reason(m, op, unit);
    unit_steps(op, along, unit, steps);
    return access_misalignment(m, op, steps, bytes);
}
