/* Register tensors: what makes them and what becomes of them. */
#include "gen.h"

#include "types/constant.h"

#include <stdlib.h>
#include <string.h>

/* ---- definitions and uses ----------------------------------------------- */

unsigned gen_define(Gen *g, DType dtype, const Layout *layout, bool pure, const char *op)
{
    Reg r = {.name = gen_name(g, "v"), .op = pure ? op : NULL, .dtype = dtype,
             .layout = layout};
    gen_line(g, "%s = %s", r.name, op);
    gen_spend(g, layout);
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, r);
    return g->reg_count - 1;
}

unsigned gen_pick(Gen *g)
{
    unsigned reg = 0;
    for (unsigned i = 0; i < 3; i++) {
        reg = g->reg_first + (unsigned)choose(g->choices, g->reg_count - g->reg_first);
        if (!g->regs[reg].used)
            break;
    }
    return reg;
}

const char *gen_use(Gen *g, unsigned reg)
{
    g->regs[reg].used = true;
    return g->regs[reg].name;
}

/* A visible value with this layout, and this type unless it is DTYPE_none; or
 * reg_count. */
static unsigned find(Gen *g, DType dtype, const Layout *layout)
{
    unsigned count = g->reg_count - g->reg_first;
    unsigned first = (unsigned)choose(g->choices, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned reg = g->reg_first + (first + i) % count;
        const Reg *r = &g->regs[reg];
        if (r->layout == layout && (dtype == DTYPE_none || r->dtype == dtype))
            return reg;
    }
    return g->reg_count;
}

/* ---- makers ------------------------------------------------------------- */

static unsigned make_constant(Gen *g, DType dtype, const Layout *layout)
{
    static const char *const numbers[] = {"0", "1", "-1", "2", "3", "-0.0", "1.5", "100",
                                          "1e9"};
    uint64_t at = choose(g->choices, sizeof numbers / sizeof *numbers);
    while (at && !constant_fits(dtype, constant_of_real(strtod(numbers[at], NULL))))
        at--;
    const char *number = numbers[at];
    if (dtype_has_nan(dtype) && choose_rarely(g->choices, 10))
        number = "nan";
    if (dtype_has_infinity(dtype) && choose_rarely(g->choices, 10))
        number = "inf";
    return gen_define(g, dtype, layout, true,
                      arena_printf(g->arena, "allocate_register %s : %s", number,
                                   gen_type_text(g, dtype, layout)));
}

unsigned gen_load(Gen *g, DType dtype, const Layout *layout)
{
    Source s = gen_source(g, dtype, layout->rank, layout->shape);
    const char *type = gen_type_text(g, dtype, layout);
    const char *words = gen_words(g, s.dims, GEN_PREFETCH | GEN_EVICT);
    return gen_define(g, dtype, layout, true,
                      arena_printf(g->arena, "load_global %s%s : %s", s.place, words, type));
}

/* The numbers of a type, as far as scalars of the generator go; bool has 0 and 1. */
static void scalar_range(DType t, int64_t *least, int64_t *most)
{
    static const int64_t limit = INT64_C(1) << 30;
    *least = 0;
    *most = t == DTYPE_bool ? 1 : limit;
    if (!dtype_integer_range(t, least, most))
        return;
    *least = *least < -limit ? -limit : *least;
    *most = *most > limit ? limit : *most;
}

/* Counts a dimension; NULL where the type has too few numbers. */
static const char *iota_text(Gen *g, DType dtype, const Layout *layout)
{
    unsigned dim = (unsigned)choose(g->choices, layout->rank);
    int64_t least, most;
    scalar_range(dtype, &least, &most);
    most -= layout->shape[dim] - 1;
    if (most < least)
        return NULL;
    const char *first = least > 0 || most < 0 || choose(g->choices, 3)
                            ? arena_printf(g->arena, " %s",
                                           gen_scalar_within(g, least, most).text)
                            : "";
    const char *which = layout->rank == 1 && choose(g->choices, 2)
                            ? "" : arena_printf(g->arena, " {dim = %u}", dim);
    return arena_printf(g->arena, "iota%s%s : %s", first, which, gen_type_text(g, dtype, layout));
}

static const char *splat_text(Gen *g, DType dtype, const Layout *layout)
{
    int64_t least, most;
    const char *value = g->float_name;
    scalar_range(dtype, &least, &most);
    if (!dtype_is_float(dtype))
        value = gen_scalar_within(g, least, most).text;
    return value ? arena_printf(g->arena, "splat %s : %s", value,
                                gen_type_text(g, dtype, layout)) : NULL;
}

static const char *random_text(Gen *g, const Layout *layout)
{
    const char *seed = gen_scalar(g, 2).text, *first = gen_scalar(g, 2).text;
    if (choose(g->choices, 2))
        first = arena_printf(g->arena, "%s * 4", first);
    return arena_printf(g->arena, "random %s, %s : %s", seed, first,
                        gen_type_text(g, DTYPE_u32, layout));
}

/* A value made of scalars, or a number. */
static unsigned make_fill(Gen *g, DType dtype, const Layout *layout)
{
    const char *op = NULL;
    if (dtype == DTYPE_u32 && choose(g->choices, 2))
        op = random_text(g, layout);
    else if (dtype_is_integer(dtype) && choose(g->choices, 2))
        op = iota_text(g, dtype, layout);
    else
        op = splat_text(g, dtype, layout);
    return op ? gen_define(g, dtype, layout, true, op) : make_constant(g, dtype, layout);
}

/* Makes one of a new layout: random bits once in three times. */
void gen_fill(Gen *g)
{
    DType t = choose(g->choices, 3) ? gen_dtype(g) : DTYPE_u32;
    make_fill(g, t, gen_small_layout(g));
}

static unsigned make_cast(Gen *g, unsigned reg, DType dtype)
{
    const Layout *layout = g->regs[reg].layout;
    const char *type = choose(g->choices, 4) ? dtype_name(dtype)
                                             : gen_type_text(g, dtype, layout);
    return gen_define(g, dtype, layout, true,
                      arena_printf(g->arena, "cast %s : %s", gen_use(g, reg), type));
}

unsigned gen_value_of(Gen *g, DType dtype, const Layout *layout)
{
    unsigned reg;
    switch (choose(g->choices, 6)) {
    case 0:
    case 1:
    case 2:
        reg = find(g, dtype, layout);
        if (reg < g->reg_count)
            return reg;
        break;
    case 3:
        reg = find(g, DTYPE_none, layout);
        if (reg < g->reg_count)
            return make_cast(g, reg, dtype);
        break;
    case 4:
        return choose(g->choices, 2) ? make_fill(g, dtype, layout)
                                     : make_constant(g, dtype, layout);
    default:
        break;
    }
    return gen_load(g, dtype, layout);
}

/* ---- element-wise ops --------------------------------------------------- */

typedef bool (*Domain)(DType t);

static bool has_functions(DType t)
{
    return t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32;
}

static bool has_fractions(DType t)
{
    return dtype_is_float(t) && gen_has_arithmetic(t);
}

static bool has_bits(DType t)
{
    return dtype_is_integer(t) || t == DTYPE_bool;
}

static bool never(DType t)
{
    (void)t;
    return false;
}

static const struct ElementwiseOp {
    const char *name;
    unsigned operands;
    Domain is_defined, is_exact;    /* NULL: where it is defined */
} elementwise_ops[] = {
    {"add", 2, gen_has_arithmetic, NULL},
    {"sub", 2, gen_has_arithmetic, NULL},
    {"mul", 2, gen_has_arithmetic, NULL},
    {"neg", 1, gen_has_arithmetic, NULL},
    {"div", 2, gen_has_arithmetic, NULL},
    {"mod", 2, gen_has_arithmetic, dtype_is_integer},
    {"abs", 1, gen_has_arithmetic, NULL},
    {"min", 2, gen_has_arithmetic, NULL},
    {"max", 2, gen_has_arithmetic, NULL},
    {"fma", 3, gen_has_arithmetic, NULL},
    {"exp2", 1, has_functions, never},
    {"exp", 1, has_functions, never},
    {"log2", 1, has_functions, never},
    {"rcp", 1, has_functions, never},
    {"rsqrt", 1, has_functions, never},
    {"sqrt", 1, has_functions, never},
    {"tanh", 1, has_functions, never},
    {"floor", 1, has_fractions, NULL},
    {"ceil", 1, has_fractions, NULL},
    {"round", 1, has_fractions, NULL},
    {"sin", 1, has_functions, never},
    {"cos", 1, has_functions, never},
    {"erf", 1, has_functions, never},
    {"and", 2, has_bits, NULL},
    {"or", 2, has_bits, NULL},
    {"xor", 2, has_bits, NULL},
    {"not", 1, has_bits, NULL},
    {"shl", 2, dtype_is_integer, NULL},
    {"shr", 2, dtype_is_integer, NULL},
};

static unsigned make_compare(Gen *g, unsigned a, unsigned b)
{
    static const char *const predicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const Layout *layout = g->regs[a].layout;
    return gen_define(g, DTYPE_bool, layout, true,
                      arena_printf(g->arena, "compare %s %s, %s",
                                   predicates[choose(g->choices, 6)], gen_use(g, a),
                                   gen_use(g, b)));
}

static unsigned make_select(Gen *g, unsigned reg)
{
    DType t = g->regs[reg].dtype;
    const Layout *layout = g->regs[reg].layout;
    unsigned other = gen_value_of(g, t, layout);
    unsigned condition = choose(g->choices, 2) ? make_compare(g, reg, other)
                                               : gen_value_of(g, DTYPE_bool, layout);
    return gen_define(g, t, layout, true,
                      arena_printf(g->arena, "select %s, %s, %s", gen_use(g, condition),
                                   gen_use(g, reg), gen_use(g, other)));
}

/* A sum or difference of a product, which `contract` makes an fma. */
static unsigned make_contracted(Gen *g, unsigned reg)
{
    static const char *const signs[][2] = {{"*", "+"}, {"+", "*"}, {"*", "-"}, {"-", "*"}};
    DType t = g->regs[reg].dtype;
    const Layout *layout = g->regs[reg].layout;
    const char *const *sign = signs[choose(g->choices, sizeof signs / sizeof *signs)];
    unsigned second = gen_value_of(g, t, layout), third = gen_value_of(g, t, layout);
    return gen_define(g, t, layout, true,
                      arena_printf(g->arena, "%s %s %s %s %s", gen_use(g, reg), sign[0],
                                   gen_use(g, second), sign[1], gen_use(g, third)));
}

static bool is_wanted(const Gen *g, const struct ElementwiseOp *op, DType t)
{
    return op->is_defined(t) && (!g->options.exact || !op->is_exact || op->is_exact(t));
}

unsigned gen_elementwise(Gen *g, unsigned reg)
{
    enum { OPS = sizeof elementwise_ops / sizeof *elementwise_ops };
    DType t = g->regs[reg].dtype;
    const Layout *layout = g->regs[reg].layout;
    const struct ElementwiseOp *op = &elementwise_ops[choose(g->choices, OPS)];
    for (unsigned i = 0; i < 4 && !is_wanted(g, op, t); i++)
        op = &elementwise_ops[choose(g->choices, OPS)];
    if (!is_wanted(g, op, t))
        return make_select(g, reg);
    if (!strcmp(op->name, "fma") && choose(g->choices, 2))
        return make_contracted(g, reg);
    unsigned place = (unsigned)choose(g->choices, op->operands);
    Text text;
    text_init(&text, g->arena);
    text_add(&text, op->name);
    for (unsigned i = 0; i < op->operands; i++) {
        unsigned operand = i == place ? reg : gen_value_of(g, t, layout);
        text_printf(&text, "%s %s", i ? "," : "", gen_use(g, operand));
    }
    return gen_define(g, t, layout, true, text_string(&text));
}

/* ---- ops that change the type ------------------------------------------- */

void gen_cast(Gen *g)
{
    DType t = gen_dtype(g);
    make_cast(g, gen_pick(g), t);
}

void gen_compare(Gen *g)
{
    unsigned a = gen_pick(g);
    make_compare(g, a, gen_value_of(g, g->regs[a].dtype, g->regs[a].layout));
}

/* The layout of a view has no replicas: threads that held different bits would
 * have to agree. Where layouts are left out, a view that depends on them means
 * nothing certain. */
void gen_reinterpret(Gen *g)
{
    enum { TRIES = 12, SLOTS = 32 };
    unsigned reg = gen_pick(g);
    const Layout *from = g->regs[reg].layout;
    int64_t bits = from->slots * dtype_bits(g->regs[reg].dtype);
    if (g->options.exact && gen_has_free_nan(g->regs[reg].dtype))
        return;
    for (unsigned i = 0; i < TRIES; i++) {
        DType t = gen_dtype(g);
        int64_t slots = bits / dtype_bits(t);
        if (bits % dtype_bits(t) || slots > SLOTS)
            continue;
        bool same = slots == from->slots && (g->is_open || choose(g->choices, 2));
        if (g->is_open && !same)
            continue;
        unsigned rank = 1 + (unsigned)choose(g->choices, 3);
        const Layout *to = same ? from : gen_layout(g, rank, slots, false);
        gen_define(g, t, to, true, arena_printf(g->arena, "view %s : %s", gen_use(g, reg),
                                                gen_type_text(g, t, to)));
        return;
    }
}

/* A part, where each thread holds some of it. */
static void make_slice(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    int64_t shape[LIMIT_RANK], offsets[LIMIT_RANK];
    const char *why = NULL;
    for (unsigned d = 0; d < from->rank; d++) {
        shape[d] = choose_between(g->choices, 1, from->shape[d]);
        while (from->shape[d] % shape[d])
            shape[d]++;
        offsets[d] = shape[d] * choose_between(g->choices, 0, from->shape[d] / shape[d] - 1);
    }
    const Layout *to = layout_slice(&g->layouts, from, from->rank, shape, &why);
    if (!to)
        return;
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "slice %s[", gen_use(g, reg));
    gen_numbers(&text, from->rank, offsets);
    text_printf(&text, "] : %s[", dtype_name(g->regs[reg].dtype));
    gen_numbers(&text, from->rank, shape);
    text_char(&text, ']');
    gen_define(g, g->regs[reg].dtype, to, true, text_string(&text));
}

static void make_permute(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    int64_t order[LIMIT_RANK];
    const char *why = NULL;
    gen_order_of_dims(g, from->rank, order);
    const Layout *to = layout_permute(&g->layouts, from, from->rank, order, &why);
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "permute %s {dims = [", gen_use(g, reg));
    gen_numbers(&text, from->rank, order);
    text_add(&text, "]}");
    gen_define(g, g->regs[reg].dtype, to, true, text_string(&text));
}

/* Other dimensions for the same elements: factors of their number, in any order. */
static void make_reshape(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    int64_t shape[LIMIT_RANK], left = 1;
    unsigned rank = 1 + (unsigned)choose(g->choices, 4);
    const char *why = NULL;
    for (unsigned d = 0; d < from->rank; d++)
        left *= from->shape[d];
    for (unsigned d = rank - 1; d > 0; d--) {
        shape[d] = choose_between(g->choices, 1, left < 8 ? left : 8);
        while (left % shape[d])
            shape[d]--;
        left /= shape[d];
    }
    shape[0] = left;
    const Layout *to = layout_reshape(&g->layouts, from, rank, shape, &why);
    if (!to)
        return;
    const char *op = "reshape";
    if (rank == 1 && from->rank == 2 && from->shape[0] == 1 && choose(g->choices, 2))
        op = "view";
    gen_define(g, g->regs[reg].dtype, to, true,
               arena_printf(g->arena, "%s %s : %s", op, gen_use(g, reg),
                            gen_type_text(g, g->regs[reg].dtype, to)));
}

/* Another layout of the same shape. */
static void make_conversion(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    const Layout *to = gen_layout_of(g, from->rank, from->shape);
    if (to->slots > 64)
        return;
    gen_define(g, g->regs[reg].dtype, to, true,
               arena_printf(g->arena, "convert_layout %s : %s", gen_use(g, reg),
                            gen_type_text(g, g->regs[reg].dtype, to)));
}

/* Two or three tensors of one type, side by side. */
static void make_join(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    int64_t shape[LIMIT_RANK];
    unsigned dim = (unsigned)choose(g->choices, from->rank);
    unsigned parts = 2 + (unsigned)choose_rarely(g->choices, 3);
    bool concat = choose(g->choices, 2);
    const char *why = NULL;
    for (unsigned d = 0; d < from->rank; d++)
        shape[d] = d == dim ? parts : 1;
    const Layout *outer = layout_local(&g->layouts, from->rank, shape, &why);
    const Layout *to = from->slots * parts > 24 ? NULL
                       : concat ? layout_product(&g->layouts, outer, from, &why)
                                : layout_product(&g->layouts, from, outer, &why);
    if (!to)
        return;
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s %s", concat ? "concat" : "interleave", gen_use(g, reg));
    for (unsigned i = 1; i < parts; i++)
        text_printf(&text, ", %s", gen_use(g, gen_value_of(g, g->regs[reg].dtype, from)));
    text_printf(&text, " {dim = %u}", dim);
    gen_define(g, g->regs[reg].dtype, to, true, text_string(&text));
}

/* A slice by the index of a loop that is unrolled, stored in each iteration. */
static void make_unrolled_slice(Gen *g, unsigned reg)
{
    const Layout *from = g->regs[reg].layout;
    int64_t shape[LIMIT_RANK];
    unsigned dim = (unsigned)choose(g->choices, from->rank);
    const char *why = NULL, *index = gen_name(g, "i");
    for (unsigned d = 0; d < from->rank; d++)
        shape[d] = from->shape[d];
    int64_t trips = choose_between(g->choices, 1, 4);
    while (shape[dim] % trips)
        trips--;
    shape[dim] /= trips;
    const Layout *to = layout_slice(&g->layouts, from, from->rank, shape, &why);
    if (!to || !gen_may_nest(g) || g->budget < 2 * g->repeat * to->slots * to->threads * trips)
        return;
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "slice %s[", gen_use(g, reg));
    for (unsigned d = 0; d < from->rank; d++)
        text_printf(&text, d == dim ? "%s%s * %lld" : "%s0", d ? ", " : "", index,
                    (long long)shape[d]);
    text_printf(&text, "] : %s[", dtype_name(g->regs[reg].dtype));
    gen_numbers(&text, from->rank, shape);
    text_char(&text, ']');
    gen_line(g, "for %s in 0 .. %lld unroll%s {", index, (long long)trips,
             choose(g->choices, 2) ? "" : "(4)");
    Scope s = gen_scope_begin(g);
    gen_scalar_add(g, index, 0, trips - 1);
    g->loop = g->scalar_count;
    g->repeat *= trips;
    unsigned part = gen_define(g, g->regs[reg].dtype, to, false, text_string(&text));
    gen_store_result(g, part);
    if (gen_any_dirty(g))
        gen_synchronize(g);
    g->repeat /= trips;
    gen_scope_end(g, &s);
    gen_line(g, "}");
}

void gen_rearrange(Gen *g)
{
    static void (*const makers[])(Gen *g, unsigned reg) = {
        make_slice, make_permute, make_reshape, make_join, make_unrolled_slice,
        make_conversion, make_conversion};
    unsigned reg = gen_pick(g);
    makers[choose(g->choices, sizeof makers / sizeof *makers)](g, reg);
}

/* ---- ops along dimensions ---------------------------------------------- */

/* A kind of reduction of elements of type `t`; sums and products of floats depend on an order. */
static const char *reduce_kind_of(Gen *g, DType t)
{
    static const char *const kinds[] = {"sum", "product", "max", "min", "argmax", "argmin"};
    static const char *const of_bools[] = {"any", "all"};
    if (t == DTYPE_bool)
        return of_bools[choose(g->choices, 2)];
    return kinds[choose_between(g->choices, g->options.exact && dtype_is_float(t) ? 2 : 0, 5)];
}

void gen_reduce(Gen *g)
{
    unsigned reg = gen_pick(g);
    const Layout *from = g->regs[reg].layout, *to;
    DType t = g->regs[reg].dtype;
    const char *why = NULL;
    if (!gen_has_arithmetic(t) && t != DTYPE_bool)
        return;
    const char *kind = reduce_kind_of(g, t);
    bool index = !strncmp(kind, "arg", 3);
    uint32_t dims = index ? UINT32_C(1) << choose(g->choices, from->rank)
                          : (uint32_t)choose_between(g->choices, 1, (1 << from->rank) - 1);
    if (!(to = layout_reduce(&g->layouts, from, dims, &why)))
        return;
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "reduce %s {kind = %s, dims = [", gen_use(g, reg), kind);
    for (unsigned d = 0, n = 0; d < from->rank; d++)
        if (dims >> d & 1)
            text_printf(&text, "%s%u", n++ ? ", " : "", d);
    text_add(&text, "]}");
    t = index ? DTYPE_i32 : t;
    unsigned reduced = gen_define(g, t, to, true, text_string(&text));
    if (choose(g->choices, 2))
        gen_define(g, t, from, true,
                   arena_printf(g->arena, "broadcast %s : %s", gen_use(g, reduced),
                                gen_type_text(g, t, from)));
}

static void make_scan(Gen *g, unsigned reg)
{
    static const char *const kinds[] = {"sum", "product", "max", "min"};
    const Layout *layout = g->regs[reg].layout;
    DType t = g->regs[reg].dtype;
    if (!gen_has_arithmetic(t))
        return;
    bool ordered = g->options.exact && dtype_is_float(t);
    const char *kind = kinds[choose_between(g->choices, ordered ? 2 : 0, 3)];
    unsigned dim = (unsigned)choose(g->choices, layout->rank);
    const char *exclusive = choose(g->choices, 2) ? ", exclusive = true" : "";
    gen_define(g, t, layout, true,
               arena_printf(g->arena, "scan %s {kind = %s, dim = %u%s}", gen_use(g, reg), kind,
                            dim, exclusive));
}

/* Returns true when a dimension's elements lie within each warp. */
static bool is_in_warp(const Layout *l, unsigned dim)
{
    enum { WARP = 32 };
    bool inside = true, spatial;
    for (unsigned i = 0; i < l->mode_count; i++) {
        int64_t end = layout_mode_weight(l, i, &spatial) * l->modes[i].extent;
        inside &= l->modes[i].dim != dim || !spatial || WARP % end == 0;
    }
    return inside;
}

/* Indices of which most are inside, or any. */
static unsigned make_indices(Gen *g, const Layout *layout, int64_t extent)
{
    DType t = choose(g->choices, 2) ? DTYPE_i32 : DTYPE_u8;
    unsigned any = gen_value_of(g, t, layout);
    if (choose_rarely(g->choices, 4))
        return any;
    unsigned divisor = gen_define(g, t, layout, true,
                                  arena_printf(g->arena, "allocate_register %d : %s",
                                               (int)extent, gen_type_text(g, t, layout)));
    return gen_define(g, t, layout, true,
                      arena_printf(g->arena, "mod %s, %s", gen_use(g, any),
                                   gen_use(g, divisor)));
}

/* Where the text leaves layouts out, others may be chosen, whose warps lack elements. */
static void make_shuffle(Gen *g, unsigned reg)
{
    const Layout *layout = g->regs[reg].layout;
    unsigned dim = (unsigned)choose(g->choices, layout->rank);
    if (g->is_open || !is_in_warp(layout, dim) || layout->shape[dim] > 255)
        return;
    unsigned index = make_indices(g, layout, layout->shape[dim]);
    gen_define(g, g->regs[reg].dtype, layout, true,
               arena_printf(g->arena, "shuffle %s, %s {dim = %u}", gen_use(g, reg),
                            gen_use(g, index), dim));
}

void gen_along(Gen *g)
{
    unsigned reg = gen_pick(g);
    if (choose(g->choices, 3))
        make_scan(g, reg);
    else
        make_shuffle(g, reg);
}

void gen_repeat(Gen *g)
{
    const Reg r = g->regs[gen_pick(g)];
    if (r.op)
        gen_define(g, r.dtype, r.layout, true, r.op);
}
