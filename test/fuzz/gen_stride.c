/* Loops by steps between bounds that arguments give, and tiles of a shared tensor at
 * offsets that follow their indices: what check-hazards proves by arithmetic. */
#include "gen.h"

enum { ROWS_MAX = 4, TRIPS_MAX = 4 };

/* ---- bounds ------------------------------------------------------------- */

/* An argument, or an expression of it, that has one value; or a constant. */
static Scalar choose_end(Gen *g)
{
    int64_t value = choose_between(g->choices, 0, 40);
    Scalar s = g->scalars[choose(g->choices, g->argument_scalars)];
    if (s.min >= 0 && choose(g->choices, 3))
        return s;
    const char *text = gen_exact(g, value);
    return (Scalar){text, value, value};
}

/* Steps that lead through the span in so many iterations at most; both bounds are
 * rarely multiples of one. */
Steps gen_steps(Gen *g, int64_t trips)
{
    int64_t first = choose(g->choices, 2) ? 0 : choose_between(g->choices, 1, 5);
    Steps s = {.upper = choose_end(g)};
    s.lower = (Scalar){gen_exact(g, first), first, first};
    int64_t span = s.upper.max - s.lower.min, least = span > 0 ? (span + trips - 1) / trips : 1;
    s.step = least + (int64_t)choose(g->choices, 4);
    const char *text = choose_rarely(g->choices, 6)
                           ? gen_exact(g, s.step)
                           : arena_printf(g->arena, "%d", (int)s.step);
    s.step_text = s.step == 1 ? "" : arena_printf(g->arena, " step %s", text);
    return s;
}

/* ---- accesses ----------------------------------------------------------- */

/* An index of a loop, rather the innermost one's. */
static Scalar choose_index(Gen *g)
{
    if (g->loop && choose(g->choices, 3))
        return g->scalars[g->loop - 1];
    return g->scalars[choose(g->choices, g->scalar_count)];
}

/* "[%i + 3, 0]" */
static const char *choose_place(Gen *g, const Object *o, const int64_t *tile)
{
    Scalar at = gen_offset(g, choose_index(g), tile[0], o->shape[0] - tile[0]);
    return arena_printf(g->arena, "%s[%s%s]", o->name, at.text, o->rank == 2 ? ", 0" : "");
}

static void load_tile(Gen *g, Object *o, const int64_t *tile)
{
    const Layout *l = gen_layout_of(g, o->rank, tile);
    DType dtype = o->dtype;
    gen_order(g, o, DIRTY_READ);
    const char *place = choose_place(g, o, tile);
    unsigned reg = gen_define(g, dtype, l, false,
                              arena_printf(g->arena, "load_shared %s : %s", place,
                                           gen_type_text(g, dtype, l)));
    g->regs[reg].used = choose(g->choices, 2);
}

static void store_tile(Gen *g, unsigned object, const int64_t *tile)
{
    const Layout *l = gen_layout_of(g, g->objects[object].rank, tile);
    unsigned reg = gen_value_of(g, g->objects[object].dtype, l);
    Object *o = &g->objects[object];
    gen_order(g, o, DIRTY_WRITE);
    gen_spend(g, l);
    gen_line(g, "store_shared %s, %s", gen_use(g, reg), choose_place(g, o, tile));
}

/* A tile of some of the tensor's first dimension. */
static void access_tile(Gen *g, unsigned object)
{
    const Object *o = &g->objects[object];
    int64_t tile[LIMIT_RANK] = {1 + (int64_t)choose(g->choices, (uint64_t)o->shape[0] / 2),
                                o->shape[1]};
    if (tile[0] > gen_threads(g))
        tile[0] = gen_threads(g);
    if (choose(g->choices, 2))
        load_tile(g, &g->objects[object], tile);
    else
        store_tile(g, object, tile);
}

/* ---- loops -------------------------------------------------------------- */

static void emit_loop(Gen *g, unsigned object);

static void loop_statement(Gen *g, unsigned object)
{
    switch (choose(g->choices, 8)) {
    case 0: gen_statement(g); break;
    case 1: emit_loop(g, object); break;
    case 2: gen_synchronize(g); break;
    default: access_tile(g, object); break;
    }
}

static void loop_body(Gen *g, unsigned object, const char *index, const Steps *s)
{
    Scope scope = gen_scope_begin(g);
    int64_t last = s->upper.max > s->lower.min ? s->upper.max - 1 : s->lower.min;
    gen_scalar_add(g, index, s->lower.min, last);
    g->loop = g->scalar_count;
    for (uint64_t n = choose_between(g->choices, 2, 5); n-- > 0;)
        loop_statement(g, object);
    gen_end_region(g, scope.regs);
    if (gen_any_dirty(g))
        gen_synchronize(g);
    gen_scope_end(g, &scope);
}

static void emit_loop(Gen *g, unsigned object)
{
    Steps s = gen_steps(g, TRIPS_MAX);
    int64_t trips = gen_trips(s.lower, s.upper, s.step);
    if (!gen_may_nest(g) || g->budget < 4 * g->repeat * trips * gen_threads(g))
        return;
    const char *index = gen_name(g, "i");
    gen_line(g, "for %s in %s .. %s%s {", index, s.lower.text, s.upper.text, s.step_text);
    g->repeat *= trips;
    loop_body(g, object, index, &s);
    g->repeat /= trips;
    gen_line(g, "}");
}

/* A tensor of many tiles, written as a whole. */
static unsigned new_tensor(Gen *g)
{
    bool rows = choose_rarely(g->choices, 3);
    int64_t elements = gen_threads(g) * choose_between(g->choices, 2, ROWS_MAX);
    int64_t shape[2] = {rows ? elements / 8 : elements, 8};
    DType dtype = gen_dtype(g);
    unsigned object = gen_allocate_shared(g, dtype, 1 + rows, shape);
    const Layout *l = gen_layout_of(g, 1 + rows, shape);
    unsigned reg = gen_load(g, dtype, l);
    gen_order(g, &g->objects[object], DIRTY_WRITE);
    gen_line(g, "store_shared %s, %s[%s]", gen_use(g, reg), g->objects[object].name,
             gen_zeros(g, 1 + rows));
    gen_spend(g, l);
    return object;
}

void gen_stride(Gen *g)
{
    if (!gen_may_nest(g) || g->shared_bytes > GEN_SHARED_LIMIT)
        return;
    emit_loop(g, new_tensor(g));
}
