/* Access analysis: the unit and width of memory accesses.
 *
 * The address of slot s of thread t in bits is
 *
 *     base + sum over dimensions d of (offset[d] + T[d](t) + S[d](s)) * stride[d] * bits
 *
 * where T and S are sums of the layout's spatial and local modes. A power of
 * two that divides every term divides the address. A swizzle permutes the
 * element numbers before they count bits. */
#include "analysis/access.h"

#include "analysis/bounds.h"
#include "analysis/facts.h"

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
    const Value *pointer = memory->def->operands[0];
    return min_i64(pointer->facts.align, ALIGN_LIMIT / 8) * 8;
}

/* The tile's dimension with stride 1 in memory and the longest run of slots;
 * its run, or 1 when there is none. */
static int64_t longest_run(Module *m, const Op *op, unsigned *dim)
{
    const Type *tile = op_tile_type(op), *memory = op_memory_operand(op)->type;
    int64_t longest = 1;
    *dim = 0;
    for (unsigned d = 0; d < tile->rank; d++) {
        const Expr *stride = type_stride(m, memory, op_tile_dim(op, d));
        if (!expr_is_constant(stride) || stride->constant != 1)
            continue;
        int64_t run = layout_run(tile->layout, d);
        if (run > longest) {
            longest = run;
            *dim = d;
        }
    }
    return longest;
}

/* The steps in which the tile's index in dimension `d` of the view moves
 * between units of `unit` slots along tile dimension `along`. */
static int64_t tile_step(const Op *op, unsigned d, unsigned along, int64_t unit)
{
    const Layout *l = op_tile_type(op)->layout;
    MemoryTile t = op_memory_tile(op);
    int dim = memory_tile_find(&t, d);
    if (dim < 0)
        return 0;
    if ((unsigned)dim == along && unit > 1)
        return unit;
    return gcd_i64(access_thread_step(l, (unsigned)dim),
                   digits_step(l, l->local, l->local_count, (unsigned)dim));
}

/* A power of two that proves to divide the number of every unit's first element. */
static int64_t element_alignment(Module *m, const Op *op, unsigned along, int64_t unit)
{
    const Type *memory = op_memory_operand(op)->type;
    const Attr *offsets = op_attr(op, ATTR_OFFSETS);
    int64_t least = ALIGN_LIMIT;
    for (unsigned d = 0; d < memory->rank; d++) {
        int64_t scale = facts_alignment(type_stride(m, memory, d), ALIGN_LIMIT);
        int64_t index = min_i64(facts_alignment(offsets->exprs[d], ALIGN_LIMIT),
                                power_in(tile_step(op, d, along, unit)));
        least = min_i64(least, scale * index);
    }
    return least;
}

/* A swizzle keeps aligned runs of 2^base elements, and no more than those. */
static int64_t swizzled_alignment(const Op *op, int64_t elements)
{
    Swizzle s = op_memory_operand(op)->type->swizzle;
    return s.bits ? min_i64(elements, INT64_C(1) << s.base) : elements;
}

/* Proved alignment, in bits, of every unit's first bit; 0 when a swizzle may
 * tear a unit apart. */
static int64_t unit_alignment(Module *m, const Op *op, unsigned along, int64_t unit)
{
    const Value *memory = op_memory_operand(op);
    int64_t elements = swizzled_alignment(op, element_alignment(m, op, along, unit));
    if (memory->type->swizzle.bits && unit > elements)
        return 0;
    return min_i64(access_base_alignment(memory),
                   elements * power_in(dtype_bits(memory->type->dtype)));
}

uint32_t access_checked_dims(const MemoryTile *t)
{
    const Type *memory = t->memory->type;
    uint32_t dims = 0;
    for (unsigned d = 0; memory->kind == TYPE_GLOBAL && d < memory->rank; d++) {
        int dim = memory_tile_find(t, d);
        int64_t span = dim < 0 ? 1 : t->extents[dim];
        if (!bounds_proved(t->offsets->exprs[d], span, memory->extents[d]))
            dims |= UINT32_C(1) << d;
    }
    return dims;
}

static bool is_multiple(const Expr *e, int64_t of)
{
    return facts_of_expr(e).divisor % of == 0;
}

/* Whether units of `unit` slots lie inside the view or outside as a whole. */
static bool unit_is_whole(const Op *op, const Access *a, unsigned along, int64_t unit)
{
    unsigned d = op_tile_dim(op, along);
    if (unit == 1 || !(a->checked >> d & 1))
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

Access access_plan(Module *m, const Op *op)
{
    unsigned along;
    int64_t run = longest_run(m, op, &along);
    MemoryTile tile = op_memory_tile(op);
    Access a = {.unit = 1, .checked = access_checked_dims(&tile)};
    for (int64_t unit = run; unit >= 1; unit--) {
        if (run % unit || !unit_is_whole(op, &a, along, unit))
            continue;
        int64_t bytes = unit_width(m, op, along, unit);
        if (bytes > a.bytes) {
            a.bytes = (unsigned)bytes;
            a.unit = unit;
        }
    }
    return a;
}
