/* Storage orders and residual exponents. */
#include "gen.h"

#include "cast/plan.h"
#include "types/storage.h"

/* The parts of a register tensor in a storage order. */
typedef struct Packed {
    const char *name;
    DType dtype, order;
    const Layout *layout;
    bool along;             /* a thread's slots run along dimension 1 */
} Packed;

static bool choose_types(Gen *g, Packed *p)
{
    p->order = choose(g->choices, 2) ? DTYPE_f16 : DTYPE_bf16;
    for (unsigned i = 0; i < 12; i++) {
        p->dtype = gen_dtype(g);
        if (cast_has_storage(p->dtype, p->order))
            return true;
    }
    return false;
}

/* "u3 packed(f16)[64, 32] @ .." */
static const char *packed_type(Gen *g, const Packed *p)
{
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s packed(%s)[", dtype_name(p->dtype), dtype_name(p->order));
    gen_numbers(&text, p->layout->rank, p->layout->shape);
    text_add(&text, "] @ ");
    layout_print(&text, p->layout);
    return text_string(&text);
}

/* The bits as words, and back. */
static void pass_words(Gen *g, Packed *p)
{
    int64_t words = p->layout->slots * dtype_bits(p->dtype) / 32;
    const Layout *l = gen_layout(g, 1 + (unsigned)choose(g->choices, 2), words, false);
    unsigned reg = gen_define(g, DTYPE_u32, l, true,
                              arena_printf(g->arena, "view %s : %s", p->name,
                                           gen_type_text(g, DTYPE_u32, l)));
    p->name = gen_name(g, "v");
    gen_line(g, "%s = view %s : %s", p->name, gen_use(g, reg), packed_type(g, p));
}

/* Codes that are no numbers have no decoded value. */
static void decode(Gen *g, const Packed *p)
{
    int16_t exponents[CAST_GROUP_MAX];
    const char *name = gen_name(g, "v");
    if (!p->along || !cast_exponents(g->arena, p->dtype, p->order, exponents) ||
        dtype_info[p->dtype].special != SPECIAL_FINITE)
        return;
    gen_line(g, "%s = decode %s", name, p->name);
    gen_define(g, p->order, p->layout, true,
               arena_printf(g->arena, "rescale %s : %s", name, dtype_name(p->order)));
}

void gen_form(Gen *g)
{
    Packed p = {0};
    if (g->is_open || !choose_types(g, &p))
        return;
    int64_t slots = cast_group(p.dtype) * choose_between(g->choices, 1, 2);
    p.along = choose(g->choices, 2);
    p.layout = p.along ? gen_product(g, gen_primitive(g, GEN_SPATIAL, 2,
                                                      (int64_t[]){gen_threads(g), 1}),
                                     GEN_LOCAL, 1, slots)
                       : gen_layout(g, 1 + (unsigned)choose(g->choices, 3), slots, false);
    unsigned reg = gen_value_of(g, p.dtype, p.layout);
    p.name = gen_name(g, "v");
    gen_line(g, "%s = cast %s : %s", p.name, gen_use(g, reg), packed_type(g, &p));
    gen_spend(g, p.layout);
    if (choose(g->choices, 2))
        pass_words(g, &p);
    decode(g, &p);
    DType to = choose(g->choices, 2) ? p.order : gen_dtype(g);
    gen_define(g, to, p.layout, true,
               arena_printf(g->arena, "cast %s : %s", p.name, dtype_name(to)));
}
