/* Three answers, the cheapest first. Tiles whose indices in one dimension never
 * meet have nothing in common:
 *
 *     index d     |-- a --|        |--- b ---|
 *
 * Otherwise, where all offsets of b less a's are known, the bytes of `a` are
 * written down with the thread that touches them, and those of `b` looked up.
 * The rest is unknown. Places count elements before the swizzle, which is a
 * permutation of them. */
#include "memory/overlap.h"

#include "ir/tile.h"
#include "scalar/facts.h"

#include <string.h>

enum { BITS_A_BYTE = 8, PLACINGS = 16 };
#define TABLE_LIMIT (INT64_C(1) << 22)     /* bytes, and elements */

/* ---- tensors ----------------------------------------------------------- */

static const Expr *make_product(Module *m, const Expr *a, const Expr *b)
{
    const char *why;
    if (expr_is_constant(a) && a->constant == 1)
        return b;
    return expr_make(&m->exprs, SCALAR_mul, a, b, &why);
}

/* Returns true when the strides are the products of the extents in some order of the
 * dimensions, as those of a transposed row-major view are. */
static bool strides_are_nested(Module *m, const Type *t)
{
    const Expr *span = expr_constant(&m->exprs, 1);
    uint32_t used = 0;
    for (unsigned n = 0; n < t->rank; n++) {
        unsigned d = 0;
        while (d < t->rank && (used >> d & 1 || t->strides[d] != span))
            d++;
        if (d == t->rank)
            return false;
        used |= UINT32_C(1) << d;
        span = make_product(m, span, t->extents[d]);
        if (!span)
            return n + 1 == t->rank;
    }
    return true;
}

/* The dimension of the least stride that was not used. */
static unsigned next_stride(const Type *t, const int64_t *stride, uint32_t used)
{
    unsigned next = t->rank;
    for (unsigned d = 0; d < t->rank; d++)
        if (!(used >> d & 1) && (next == t->rank || stride[d] < stride[next]))
            next = d;
    return next;
}

/* Returns true when each constant stride steps over all that the lesser ones reach. */
static bool strides_step_over(const Type *t)
{
    int64_t stride[LIMIT_RANK], reach = 0, span;
    for (unsigned d = 0; d < t->rank; d++) {
        if (!expr_is_constant(t->strides[d]) || t->strides[d]->constant < 0)
            return false;
        stride[d] = t->strides[d]->constant;
    }
    uint32_t used = 0;
    for (unsigned n = 0; n < t->rank; n++) {
        unsigned d = next_stride(t, stride, used);
        const Expr *extent = t->extents[d];
        used |= UINT32_C(1) << d;
        if (expr_is_constant(extent) && extent->constant == 1)
            continue;
        if (stride[d] <= reach)
            return false;
        if (!expr_is_constant(extent))
            return n + 1 == t->rank;
        if (__builtin_mul_overflow(extent->constant - 1, stride[d], &span) ||
            __builtin_add_overflow(reach, span, &reach))
            return false;
    }
    return true;
}

bool memory_is_injective(Module *m, const Value *memory)
{
    const Type *t = memory->type;
    return !t->strides || strides_step_over(t) || strides_are_nested(m, t);
}

static bool value_is_argument(Value *v, void *data)
{
    (void)data;
    return v->program != NULL;
}

/* Returns true when each making of a global view has equal extents and strides. */
static bool view_is_fixed(const Type *t)
{
    for (unsigned d = 0; d < t->rank; d++)
        if (!expr_visit_values(t->extents[d], value_is_argument, NULL) ||
            (t->strides && !expr_visit_values(t->strides[d], value_is_argument, NULL)))
            return false;
    return true;
}

/* Returns true when equal indices of the two name one place. */
static bool same_view(const Value *a, const Value *b)
{
    const Op *x = a->def, *y = b->def;
    if (!x || !y || a->type != b->type)
        return false;
    if (x->code == OP_allocate_shared)
        return x == y;
    return x->code == OP_view_global && y->code == OP_view_global && view_is_fixed(a->type);
}

/* ---- one comparison ---------------------------------------------------- */

typedef struct Comparison {
    Module *m;
    const Footprint *a, *b;
    const Difference *apart;
    const Expr *const *offsets;     /* of a */
    const Type *type;               /* of both memories */
    unsigned bits;                  /* of an element */
    bool injective, blocks;
} Comparison;

/* The tile's extent in the memory's dimension `d`. */
static int64_t tile_extent(const MemoryTile *t, unsigned d)
{
    int i = memory_tile_find(t, d);
    return i < 0 ? 1 : t->extents[i];
}

/* Returns true when the swizzle moves whole bytes. */
static bool swizzle_keeps_bytes(const Comparison *c)
{
    Swizzle s = c->type->swizzle;
    return c->bits % BITS_A_BYTE == 0 || s.bits == 0 || (c->bits << s.base) % BITS_A_BYTE == 0;
}

/* Returns true when rows of the dimension `d` of a row-major tensor begin at whole bytes. */
static bool rows_are_bytes(const Comparison *c, unsigned d)
{
    if (c->bits % BITS_A_BYTE == 0)
        return true;
    const Expr *stride = c->type->strides ? NULL : type_stride(c->m, c->type, d);
    int64_t unit = BITS_A_BYTE / gcd_i64(BITS_A_BYTE, c->bits);
    return stride && facts_of_expr(stride).divisor % unit == 0;
}

/* Returns true when both tiles begin and end at whole bytes of a row in the last
 * dimension, `d`. */
static bool tiles_are_bytes(const Comparison *c, unsigned d)
{
    int64_t unit = BITS_A_BYTE / gcd_i64(BITS_A_BYTE, c->bits);
    const Difference *apart = &c->apart[d];
    bool whole = facts_of_expr(c->offsets[d]).divisor % unit == 0 &&
                 tile_extent(&c->a->tile, d) % unit == 0 &&
                 tile_extent(&c->b->tile, d) % unit == 0 && apart->rest_divisor % unit == 0;
    for (unsigned i = 0; i < apart->count; i++)
        whole = whole && apart->values[i] % unit == 0;
    return whole;
}

/* How many elements the tiles must at least be apart in the dimension `d` to have
 * no byte in common, beyond their extents; -1: that does not tell. */
static int64_t least_gap(const Comparison *c, unsigned d)
{
    bool rows = c->injective;
    for (unsigned i = 0; i < c->type->rank; i++)
        rows = rows && (i + 1 == c->type->rank || rows_are_bytes(c, i));
    if (c->injective && rows_are_bytes(c, d))
        return 0;
    if (!rows || d + 1 < c->type->rank || c->type->strides)
        return -1;
    return tiles_are_bytes(c, d) ? 0 : BITS_A_BYTE / c->bits + 1;
}

/* Leaves of the differences in dimension `d` those for which the tiles may meet. */
static bool narrow(const Comparison *c, unsigned d, Difference *apart)
{
    int64_t gap = least_gap(c, d);
    return gap >= 0 && difference_narrow(apart, tile_extent(&c->b->tile, d) + gap,
                                         tile_extent(&c->a->tile, d) + gap);
}

uint32_t footprints_grid(Module *m, const Footprint *a, const Footprint *b,
                         const Expr *const *offsets)
{
    Comparison c = {.m = m, .a = a, .b = b, .type = a->tile.memory->type};
    uint32_t dims = 0;
    if (!same_view(a->tile.memory, b->tile.memory))
        return 0;
    c.bits = dtype_bits(c.type->dtype);
    c.injective = memory_is_injective(m, a->tile.memory);
    for (unsigned d = 0; d < c.type->rank; d++) {
        int64_t extent = tile_extent(&a->tile, d);
        bool grid = c.injective && rows_are_bytes(&c, d) && extent == tile_extent(&b->tile, d) &&
                    facts_of_expr(offsets[d]).divisor % extent == 0;
        dims |= (uint32_t)grid << d;
    }
    return dims;
}

/* ---- places ------------------------------------------------------------ */

/* For one value of each difference: what a step in each dimension counts, in
 * elements, and where `b` begins relative to `a`. */
typedef struct Placing {
    int64_t step[LIMIT_RANK];
    int64_t shift[LIMIT_RANK];
    int64_t origin;             /* of b, in elements */
    unsigned phase;             /* the bit of a byte where a begins */
} Placing;

/* The extent of dimension `d` that holds both tiles, rounded up to 8. Returns false
 * when it exceeds TABLE_LIMIT. */
static bool packed_extent(const Comparison *c, const Placing *p, unsigned d, int64_t *extent)
{
    int64_t begin = p->shift[d] < 0 ? p->shift[d] : 0, a = tile_extent(&c->a->tile, d), end;
    if (__builtin_add_overflow(p->shift[d], tile_extent(&c->b->tile, d), &end) ||
        __builtin_sub_overflow(end > a ? end : a, begin, &end) || end > TABLE_LIMIT)
        return false;
    *extent = (end + 7) / 8 * 8;
    return true;
}

/* Global views are packed anew, around the two tiles: their strides may not be
 * known. */
static bool place_packed(const Comparison *c, Placing *p)
{
    int64_t span = 1, extent;
    for (unsigned d = c->type->rank; d-- > 0;) {
        if (!c->injective || (d + 1 < c->type->rank && !rows_are_bytes(c, d)))
            return false;
        p->step[d] = span;
        if (!packed_extent(c, p, d, &extent) || __builtin_mul_overflow(span, extent, &span) ||
            span > TABLE_LIMIT)
            return false;
    }
    return true;
}

/* Shared tensors have their own strides. */
static bool place_steps(const Comparison *c, Placing *p)
{
    if (c->type->kind != TYPE_SHARED)
        return place_packed(c, p);
    for (unsigned d = 0; d < c->type->rank; d++)
        p->step[d] = type_stride(c->m, c->type, d)->constant;
    return true;
}

/* Where `b` begins, as a number of elements. Returns false beyond TABLE_LIMIT. */
static bool place_origin(const Comparison *c, Placing *p)
{
    int64_t part;
    for (unsigned d = 0; d < c->type->rank; d++)
        if (__builtin_mul_overflow(p->shift[d], p->step[d], &part) ||
            __builtin_add_overflow(p->origin, part, &p->origin))
            return false;
    return p->origin >= -TABLE_LIMIT && p->origin <= TABLE_LIMIT;
}

/* Bit n: `a` may begin at bit n of a byte. */
static unsigned possible_phases(const Comparison *c, const Placing *p)
{
    int64_t known = 0, unit = BITS_A_BYTE;
    if (c->bits % BITS_A_BYTE == 0)
        return 1;
    for (unsigned d = 0; d < c->type->rank; d++) {
        ScalarFacts f = facts_of_expr(c->offsets[d]);
        int64_t step = p->step[d] % BITS_A_BYTE * c->bits;
        if (f.min == f.max)
            known += floor_mod(f.min, BITS_A_BYTE) * step;
        else
            unit = gcd_i64(unit, floor_mod(f.divisor, BITS_A_BYTE) * step);
    }
    unsigned phases = 0;
    for (int64_t n = 0; n < BITS_A_BYTE; n += unit)
        phases |= 1u << floor_mod(known + n, BITS_A_BYTE);
    return phases;
}

/* Who touches a byte: nobody (0), thread n (n + 1), or more than one. */
enum { MANY = UINT16_MAX };

typedef struct Bytes {
    uint16_t *toucher;
    int64_t count;
    bool enter;                 /* else look up, and note in `met` */
    bool met;
} Bytes;

static void touch(Bytes *t, int64_t first, int64_t last, unsigned who)
{
    for (int64_t byte = first < 0 ? 0 : first; byte <= last && byte < t->count; byte++) {
        uint16_t *toucher = &t->toucher[byte];
        if (t->enter)
            *toucher = (uint16_t)(*toucher && *toucher != who ? MANY : who);
        else
            t->met = t->met || (*toucher && (*toucher != who || who == MANY));
    }
}

/* The element number, from the tile's first, of an index of the tile. */
static int64_t index_number(const Placing *p, const MemoryTile *t, const int64_t *index)
{
    int64_t number = 0;
    for (unsigned i = 0; i < t->rank; i++)
        number += index[i] * p->step[memory_tile_dim(t, i)];
    return number;
}

static void touch_element(const Comparison *c, const Placing *p, Bytes *bytes, int64_t element,
                          unsigned who)
{
    int64_t bit = element * c->bits + p->phase;
    touch(bytes, floor_div(bit, BITS_A_BYTE), floor_div(bit + c->bits - 1, BITS_A_BYTE), who);
}

/* All elements of a copy's or a print's tile, in row-major order. */
static void touch_tile(const Comparison *c, const Placing *p, const Footprint *f,
                       int64_t origin, Bytes *bytes)
{
    int64_t index[LIMIT_RANK] = {0};
    unsigned d, who = f->op->code == OP_print && !c->blocks ? 1 : MANY;
    do {
        int64_t element = origin + index_number(p, &f->tile, index);
        touch_element(c, p, bytes, element, who);
        for (d = f->tile.rank; d-- > 0 && ++index[d] == f->tile.extents[d];)
            index[d] = 0;
    } while (d != (unsigned)-1);
}

static bool thread_acts(const Footprint *f, int64_t thread)
{
    int64_t index[LIMIT_RANK], least, slot;
    if (f->mode != MODE_ATOMIC)
        return true;
    layout_index(f->layout, thread, 0, index);
    layout_place(f->layout, index, &least, &slot);
    return least == thread;
}

/* An index is the sum of the thread's part and the slot's. */
static void touch_threads(const Comparison *c, const Placing *p, const Footprint *f,
                          int64_t origin, Bytes *bytes)
{
    const Layout *l = f->layout;
    int64_t index[LIMIT_RANK];
    int64_t *slots = arena_array(&c->m->scratch, int64_t, (size_t)l->slots);
    for (int64_t s = 0; s < l->slots; s++) {
        layout_index(l, 0, s, index);
        slots[s] = index_number(p, &f->tile, index);
    }
    for (int64_t t = 0; t < l->threads; t++) {
        if (!thread_acts(f, t))
            continue;
        layout_index(l, t, 0, index);
        int64_t first = origin + index_number(p, &f->tile, index);
        for (int64_t s = 0; s < l->slots; s++)
            touch_element(c, p, bytes, first + slots[s], c->blocks ? MANY : (unsigned)t + 1);
    }
}

static void touch_all(const Comparison *c, const Placing *p, const Footprint *f,
                      int64_t origin, Bytes *bytes)
{
    if (f->layout)
        touch_threads(c, p, f, origin, bytes);
    else
        touch_tile(c, p, f, origin, bytes);
}

/* The elements from the tile's first to its last. Returns false beyond TABLE_LIMIT. */
static bool tile_span(const Comparison *c, const Placing *p, const MemoryTile *t, int64_t *span)
{
    int64_t reach;
    *span = 1;
    for (unsigned d = 0; d < c->type->rank; d++)
        if (__builtin_mul_overflow(p->step[d], tile_extent(t, d) - 1, &reach) ||
            __builtin_add_overflow(*span, reach, span))
            return false;
    return *span <= TABLE_LIMIT;
}

/* The places of both tiles, and the bytes that `a` spans. Returns false where they
 * are unknown or more than a table holds. */
static bool place_tiles(const Comparison *c, Placing *p, int64_t *bytes)
{
    int64_t a, b;
    if (!place_steps(c, p) || !place_origin(c, p) || !tile_span(c, p, &c->a->tile, &a) ||
        !tile_span(c, p, &c->b->tile, &b))
        return false;
    *bytes = a * c->bits / BITS_A_BYTE + 2;
    return *bytes <= TABLE_LIMIT;
}

static bool bytes_meet(const Comparison *c, const Placing *p, int64_t count)
{
    ArenaMark mark = arena_mark(&c->m->scratch);
    Bytes bytes = {arena_array(&c->m->scratch, uint16_t, (size_t)count), count, true, false};
    touch_all(c, p, c->a, 0, &bytes);
    bytes.enter = false;
    touch_all(c, p, c->b, p->origin, &bytes);
    arena_reset(&c->m->scratch, mark);
    return bytes.met;
}

/* For one value of each difference. */
static Overlap overlap_placed(const Comparison *c, Placing *p)
{
    bool all = true, some = false;
    int64_t count;
    if (!place_tiles(c, p, &count))
        return OVERLAP_UNKNOWN;
    for (unsigned phases = possible_phases(c, p); phases; phases &= phases - 1) {
        p->phase = (unsigned)__builtin_ctz(phases);
        bool meet = bytes_meet(c, p, count);
        all = all && meet;
        some = some || meet;
    }
    return all ? OVERLAP_SURE : some ? OVERLAP_UNKNOWN : OVERLAP_NEVER;
}

/* Over all values of all differences, which are exact. */
static Overlap overlap_of_values(const Comparison *c)
{
    unsigned placings = 1, never = 0, sure = 0;
    for (unsigned d = 0; d < c->type->rank; d++)
        placings *= placings <= PLACINGS ? c->apart[d].count : 1;
    if (placings > PLACINGS)
        return OVERLAP_UNKNOWN;
    for (unsigned n = 0; n < placings; n++) {
        Placing p = {.origin = 0};
        unsigned rest = n;
        for (unsigned d = 0; d < c->type->rank; d++) {
            p.shift[d] = c->apart[d].values[rest % c->apart[d].count];
            rest /= c->apart[d].count;
        }
        Overlap one = overlap_placed(c, &p);
        never += one == OVERLAP_NEVER;
        sure += one == OVERLAP_SURE;
    }
    return never == placings  ? OVERLAP_NEVER
           : sure == placings ? OVERLAP_SURE
                              : OVERLAP_UNKNOWN;
}

Overlap footprints_overlap(Module *m, const Footprint *a, const Footprint *b,
                           const Difference *apart, const Expr *const *offsets, bool blocks)
{
    Comparison c = {m, a, b, apart, offsets, a->tile.memory->type, 0, false, blocks};
    Difference near[LIMIT_RANK];
    bool all = true, exact = true;
    if (!same_view(a->tile.memory, b->tile.memory))
        return OVERLAP_UNKNOWN;
    c.bits = dtype_bits(c.type->dtype);
    if (!swizzle_keeps_bytes(&c))
        return OVERLAP_UNKNOWN;
    c.injective = memory_is_injective(m, a->tile.memory);
    for (unsigned d = 0; d < c.type->rank; d++) {
        near[d] = apart[d];
        if (narrow(&c, d, &near[d]) && !near[d].count)
            return OVERLAP_NEVER;
        all = all && difference_is_exact(&apart[d]) && near[d].count == apart[d].count;
        exact = exact && difference_is_exact(&near[d]);
    }
    if (!exact)
        return OVERLAP_UNKNOWN;
    c.apart = near;
    Overlap o = overlap_of_values(&c);
    all = all && !a->some && !b->some;
    return o == OVERLAP_SURE && !all ? OVERLAP_UNKNOWN : o;
}
