/* Rules of tensor maps (CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, 5.5). */
#include "memory/tensor_map.h"

#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "scalar/bounds.h"
#include "scalar/facts.h"
#include "scalar/missing.h"

enum {
    ROW_ALIGN = 16,         /* bytes of the innermost extent of a box are a multiple, and of
                               its innermost coordinate */
    CHUNK = 16,             /* bytes that a swizzle keeps together */
    SWIZZLE_LEAST = 32,
    TARGET_ALIGN = 128
};

/* A copy under inspection: its tiles in global and in shared memory. */
typedef struct Inspection {
    Module *m;
    const Op *op;
    MemoryTile source, target;
    TensorMap *map;
    const char *why;
} Inspection;

#define REFUSE(i, ...) \
    ((i)->why = arena_printf(&(i)->m->scratch, __VA_ARGS__), false)

/* ---- element types --------------------------------------------------------- */

bool tensor_map_type(DType dtype, tilus_map_type *type)
{
    bool is_unsigned = dtype_info[dtype].kind == DKIND_UINT;
    switch (dtype_bits(dtype)) {
    case 8: *type = TILUS_MAP_U8; return true;
    case 16:
        *type = dtype == DTYPE_f16    ? TILUS_MAP_F16
                : dtype == DTYPE_bf16 ? TILUS_MAP_BF16
                                      : TILUS_MAP_U16;
        return true;
    case 32:
        *type = dtype == DTYPE_f32 ? TILUS_MAP_F32 : is_unsigned ? TILUS_MAP_U32 : TILUS_MAP_I32;
        return true;
    case 64:
        *type = is_unsigned ? TILUS_MAP_U64 : TILUS_MAP_I64;
        return true;
    default: return false;
    }
}

/* Returns the type that the copy unit takes the elements for: it adds no s64, but u64s of the
 * same bits. */
static DType map_dtype(const Op *op, DType t)
{
    Reduction r = store_reduction(op);
    bool by_order = r == REDUCTION_NONE || r == REDUCTION_min || r == REDUCTION_max;
    return t == DTYPE_i64 && !by_order ? DTYPE_u64 : t;
}

/* ---- the view ---------------------------------------------------------------- */

static bool is_argument(Value *v, void *data)
{
    (void)data;
    return v->program != NULL;
}

static bool check_launch_value(Inspection *i, const char *what, unsigned d, const Expr *e)
{
    return (e && expr_visit_values(e, is_argument, NULL)) ||
           REFUSE(i, "%s %u of %s is %s, which is not over arguments of the program alone", what,
                  d, value_text(i->m, i->source.memory), e ? expr_text(i->m, e) : "over 63 bits");
}

/* Follows permuted views to their pointer. */
static bool find_pointer(Inspection *i)
{
    const Value *memory = i->source.memory;
    for (const Op *op; (op = part_op(memory)); memory = op->operands[0])
        if (op->code != OP_permute)
            return REFUSE(i, "%s is a slice of a view, a map is of a whole one",
                          value_text(i->m, i->source.memory));
    if (!memory->def || memory->def->code != OP_view_global)
        return REFUSE(i, "%s lies in the workspace, a map is of a view of a pointer argument",
                      value_text(i->m, i->source.memory));
    i->map->pointer = memory->def->operands[0];
    return i->map->pointer->program ||
           REFUSE(i, "%s, which %s views, is no argument of the program",
                  value_text(i->m, i->map->pointer), value_text(i->m, memory));
}

/* Puts the dimensions that the tile leaves out before the tile's. */
static void order_dims(Inspection *i)
{
    unsigned count = 0;
    for (unsigned d = 0; d < i->map->rank; d++)
        if (memory_tile_find(&i->source, d) < 0)
            i->map->dims[count++] = d;
    for (unsigned d = 0; d < i->source.rank; d++)
        i->map->dims[count++] = memory_tile_dim(&i->source, d);
}

static bool check_view(Inspection *i)
{
    const Type *type = i->source.memory->type;
    TensorMap *map = i->map;
    map->dtype = map_dtype(i->op, type->dtype);
    map->rank = type->rank;
    if (type->rank > MAP_RANK)
        return REFUSE(i, "%s has %u dimensions, a map has at most %d",
                      value_text(i->m, i->source.memory), type->rank, MAP_RANK);
    order_dims(i);
    for (unsigned d = 0; d < map->rank; d++) {
        unsigned of = map->dims[d];
        map->extents[d] = type->extents[of];
        map->strides[d] = type_stride(i->m, type, of);
        if (!check_launch_value(i, "extent", of, map->extents[d]) ||
            !check_launch_value(i, "stride", of, map->strides[d]))
            return false;
    }
    const Expr *inner = map->strides[map->rank - 1];
    return (expr_is_constant(inner) && inner->constant == 1) ||
           REFUSE(i, "in dimension %u of %s, the tile's innermost one, the stride is %s, it "
                  "must be 1", map->dims[map->rank - 1], value_text(i->m, i->source.memory),
                  expr_text(i->m, inner));
}

/* ---- the box ----------------------------------------------------------------- */

static bool check_box(Inspection *i)
{
    TensorMap *map = i->map;
    tilus_map_type type;
    for (unsigned d = 0; d < map->rank; d++) {
        int dim = memory_tile_find(&i->source, map->dims[d]);
        map->box[d] = dim < 0 ? 1 : i->source.extents[dim];
        if (map->box[d] > MAP_BOX_MAX)
            return REFUSE(i, "the tile has %lld elements in dimension %u of %s, a box has at "
                          "most %d", (long long)map->box[d], map->dims[d],
                          value_text(i->m, i->source.memory), MAP_BOX_MAX);
    }
    if (!tensor_map_type(map->dtype, &type))
        return REFUSE(i, "elements of %u bits, a map has some of 8, 16, 32 or 64",
                      dtype_bits(map->dtype));
    int64_t row = map->box[map->rank - 1] * dtype_bits(map->dtype) / 8;
    return row % ROW_ALIGN == 0 ||
           REFUSE(i, "a row of the tile has %lld bytes, of a box they are a multiple of %d",
                  (long long)row, ROW_ALIGN);
}

/* ---- the corner ---------------------------------------------------------------- */

/* "; {divisible = 8} of %n would prove it", or nothing. */
static const char *help_text(Inspection *i, const MissingFact *fact)
{
    return fact->argument ? arena_printf(&i->m->scratch, "; %s would prove it",
                                         missing_fact_text(i->m, fact))
                          : "";
}

/* The innermost coordinate is a multiple of ROW_ALIGN bytes: the copy unit takes no other. */
static bool check_inner_offset(Inspection *i)
{
    unsigned d = i->map->dims[i->map->rank - 1];
    const Expr *offset = i->source.offsets->exprs[d];
    int64_t bytes = dtype_bits(i->map->dtype) / 8;
    int64_t known = facts_alignment(offset, ROW_ALIGN / bytes) * bytes;
    if (known == ROW_ALIGN)
        return true;
    MissingFact fact = missing_divisor(i->op, offset, ROW_ALIGN / bytes);
    return REFUSE(i, "in dimension %u of %s, the tile's innermost one, offset %s is known to be "
                  "a multiple of %lld bytes, a box's is one of %d%s", d,
                  value_text(i->m, i->source.memory), expr_text(i->m, offset), (long long)known,
                  ROW_ALIGN, help_text(i, &fact));
}

/* "; `assume %i >= 4` would prove it", where it can hold. */
static const char *sign_help(Inspection *i, const Expr *offset)
{
    MissingFact fact = missing_sign(i->op, offset);
    if (fact.argument || facts_of_expr(offset).max < 0)
        return help_text(i, &fact);
    return arena_printf(&i->m->scratch, "; `assume %s >= 0` would prove it",
                        expr_text(i->m, offset));
}

/* A box that is written begins at no negative coordinate; one that is read may. */
static bool check_signs(Inspection *i)
{
    OpAccess written;
    if (!op_access_written(i->op, &written) || written.tile.memory != i->source.memory)
        return true;
    for (unsigned d = 0; d < i->map->rank; d++) {
        const Expr *offset = i->source.offsets->exprs[d];
        int64_t least = facts_of_expr(offset).min;
        if (bounds_from_zero(i->op, offset))
            continue;
        const char *known = least == INT64_MIN ? "may be negative"
                                               : arena_printf(&i->m->scratch, "may be %lld",
                                                              (long long)least);
        return REFUSE(i, "in dimension %u of %s, offset %s %s, a box that is written begins at "
                      "0 or above%s", d, value_text(i->m, i->source.memory), expr_text(i->m, offset),
                      known, sign_help(i, offset));
    }
    return true;
}

/* ---- the target -------------------------------------------------------------- */

int64_t map_target_alignment(unsigned swizzle)
{
    enum { ROWS_OF_A_CHUNK = 8 };
    return swizzle ? ROWS_OF_A_CHUNK * swizzle : TARGET_ALIGN;
}

/* The elements of the box follow each other in shared memory, apart from a swizzle. */
static bool check_rows(Inspection *i)
{
    const MemoryTile *t = &i->target;
    int64_t expected = 1;
    for (unsigned d = t->rank; d-- > 0;) {
        unsigned of = memory_tile_dim(t, d);
        const Expr *stride = type_stride(i->m, t->memory->type, of);
        if (t->extents[d] != 1 && stride->constant != expected)
            return REFUSE(i, "a box's elements follow each other in shared memory: in dimension "
                          "%u of %s the stride is %lld, it must be %lld", of,
                          value_text(i->m, t->memory), (long long)stride->constant,
                          (long long)expected);
        expected *= t->extents[d];
    }
    return true;
}

static bool check_swizzle(Inspection *i)
{
    const Type *type = i->target.memory->type;
    const TensorMap *map = i->map;
    Swizzle s = type->swizzle;
    if (!s.bits)
        return true;
    int64_t bytes = dtype_bits(map->dtype) / 8, row = map->box[map->rank - 1] * bytes;
    int64_t span = (int64_t)SWIZZLE_LEAST << (s.bits - 1);
    if (s.bits > 3 || s.shift != 3 || bytes << s.base != CHUNK)
        return REFUSE(i, "%s has swizzle(%u, %u, %u), of %u-bit elements a box has swizzle(1, 2 "
                      "or 3, %u, 3)", value_text(i->m, i->target.memory), s.bits, s.base, s.shift,
                      dtype_bits(map->dtype), (unsigned)__builtin_ctzll((uint64_t)(CHUNK / bytes)));
    if (row != span)
        return REFUSE(i, "a row of the tile has %lld bytes, swizzle(%u, %u, %u) is of rows of "
                      "%lld", (long long)row, s.bits, s.base, s.shift, (long long)span);
    i->map->swizzle = (unsigned)span;
    return true;
}

int64_t memory_first_alignment(Module *m, const Value *memory)
{
    int64_t limit = INT64_C(1) << 31, alignment = limit;
    for (const Op *op; (op = part_op(memory)); memory = op->operands[0]) {
        const Attr *offsets = op_attr(op, ATTR_OFFSETS);
        for (unsigned d = 0; offsets && d < offsets->count; d++) {
            const Expr *stride = type_stride(m, op->operands[0]->type, d);
            int64_t of_stride = facts_alignment(stride, limit);
            int64_t of_offset = facts_alignment(offsets->exprs[d], limit / of_stride);
            alignment = of_stride * of_offset < alignment ? of_stride * of_offset : alignment;
        }
    }
    return alignment;
}

/* The tensor begins at a multiple of `needed` bytes, if it is placed already. */
static bool check_place(Inspection *i, int64_t needed)
{
    const Value *root = memory_root(i->target.memory);
    const Attr *place = root->def ? op_attr(root->def, ATTR_OFFSET) : NULL;
    return !place || place->integer % needed == 0 ||
           REFUSE(i, "%s has offset %lld, one for a box is a multiple of %lld",
                  value_text(i->m, root), (long long)place->integer, (long long)needed);
}

/* The box begins at a multiple of the alignment, counted from the tensor's start. */
static bool check_begin(Inspection *i)
{
    const Value *memory = i->target.memory;
    int64_t bytes = dtype_bits(i->map->dtype) / 8, needed = map_target_alignment(i->map->swizzle);
    if (!check_place(i, needed))
        return false;
    int64_t known = memory_first_alignment(i->m, memory) * bytes;
    if (known < needed)
        return REFUSE(i, "%s is known to begin at a multiple of %lld bytes of its tensor, a box "
                      "of it at one of %lld", value_text(i->m, memory), (long long)known,
                      (long long)needed);
    for (unsigned d = 0; d < memory->type->rank; d++) {
        const Expr *offset = i->target.offsets->exprs[d];
        const Expr *stride = type_stride(i->m, memory->type, d);
        known = facts_alignment(offset, needed) * facts_alignment(stride, needed) * bytes;
        if (known < needed)
            return REFUSE(i, "in dimension %u of %s, offset %s and stride %s give multiples of "
                          "%lld bytes, a box begins at one of %lld", d, value_text(i->m, memory),
                          expr_text(i->m, offset), expr_text(i->m, stride), (long long)known,
                          (long long)needed);
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------- */

bool tensor_map_find(Module *m, const Op *op, TensorMap *map, const char **why)
{
    Inspection i = {.m = m, .op = op, .source = bulk_global_tile(op),
                    .target = bulk_shared_tile(op),
                    .map = map};
    *map = (TensorMap){0};
    bool found = find_pointer(&i) && check_view(&i) && check_box(&i) && check_inner_offset(&i) &&
                 check_signs(&i) && check_rows(&i) && check_swizzle(&i) && check_begin(&i);
    *why = i.why;
    return found;
}

bool tensor_map_equal(const TensorMap *a, const TensorMap *b)
{
    bool equal = a->pointer == b->pointer && a->dtype == b->dtype && a->rank == b->rank &&
                 a->swizzle == b->swizzle;
    for (unsigned d = 0; equal && d < a->rank; d++)
        equal = a->extents[d] == b->extents[d] && a->strides[d] == b->strides[d] &&
                a->box[d] == b->box[d];
    return equal;
}
