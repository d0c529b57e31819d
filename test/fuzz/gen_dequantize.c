/* dequantize, of any codes and groups. */
#include "gen.h"

#include "types/storage.h"

static bool is_code(DType t)
{
    return dtype_bits(t) <= 8 && t != DTYPE_bool;
}

static DType code_type(Gen *g)
{
    enum { TRIES = 8 };
    for (unsigned i = 0; i < TRIES; i++) {
        DType t = gen_dtype(g);
        if (is_code(t))
            return t;
    }
    return DTYPE_u4;
}

/* A layout of groups in which threads hold those of their elements. */
static const Layout *groups_of(Gen *g, const Layout *codes)
{
    int64_t shape[LIMIT_RANK];
    const char *why = NULL;
    for (unsigned d = 0; d < codes->rank; d++) {
        shape[d] = choose_between(g->choices, 1, codes->shape[d]);
        while (codes->shape[d] % shape[d])
            shape[d]++;
    }
    const Layout *l = layout_group(&g->layouts, codes, shape, &why);
    return l ? l : codes;
}

static DType zero_type(Gen *g, DType codes)
{
    static const DType types[] = {DTYPE_u8, DTYPE_i8, DTYPE_u3, DTYPE_f16, DTYPE_bf16, DTYPE_f32};
    return dtype_is_integer(codes) && choose(g->choices, 2)
               ? codes : types[choose(g->choices, sizeof types / sizeof *types)];
}

/* The codes, sometimes in a storage order. */
static const char *codes_in_order(Gen *g, unsigned reg)
{
    const Reg *r = &g->regs[reg];
    const char *plain = gen_use(g, reg), *name;
    DType order = choose(g->choices, 2) ? DTYPE_f16 : DTYPE_bf16;
    if (g->is_open || !cast_has_storage(r->dtype, order) ||
        r->layout->slots % cast_group(r->dtype) || choose(g->choices, 2))
        return plain;
    name = gen_name(g, "v");
    gen_line(g, "%s = cast %s : %s packed(%s)", name, plain, dtype_name(r->dtype),
             dtype_name(order));
    gen_spend(g, r->layout);
    return name;
}

void gen_dequantize(Gen *g)
{
    static const DType scales[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32, DTYPE_f8e4m3, DTYPE_ue8m0};
    static const DType results[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32};
    unsigned reg = gen_pick(g);
    const Layout *layout = g->regs[reg].layout;
    unsigned codes = is_code(g->regs[reg].dtype) ? reg : gen_value_of(g, code_type(g), layout);
    DType from = g->regs[codes].dtype, to = results[choose(g->choices, 3)];
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "dequantize %s", codes_in_order(g, codes));
    DType scale_type = scales[choose(g->choices, 5)];
    unsigned scale = gen_value_of(g, scale_type, groups_of(g, layout));
    text_printf(&text, ", %s", gen_use(g, scale));
    if (choose(g->choices, 2)) {
        DType type = zero_type(g, from);
        unsigned zero = gen_value_of(g, type, groups_of(g, layout));
        text_printf(&text, ", %s", gen_use(g, zero));
    }
    text_printf(&text, " : %s", dtype_name(to));
    gen_define(g, to, layout, true, text_string(&text));
}
