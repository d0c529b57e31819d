/* Asynchronous copies: started in groups, waited for when their tile is needed
 * or their region ends. */
#include "gen.h"

#include <string.h>

/* "{shape = [4, 8], source_dims = [0, 2]}" */
static const char *copy_words(Gen *g, unsigned rank, const int64_t *tile,
                              const char *source_dims)
{
    Text text;
    text_init(&text, g->arena);
    text_add(&text, " {shape = [");
    gen_numbers(&text, rank, tile);
    text_char(&text, ']');
    if (*source_dims)
        text_printf(&text, ", source_dims = %s", source_dims);
    const char *hint = gen_hint(g, GEN_PREFETCH);
    text_printf(&text, "%s%s}", *hint ? ", " : "", hint);
    return text_string(&text);
}

static void start_copy(Gen *g, Object *o, const int64_t *tile)
{
    uint32_t number = (uint32_t)(o - g->objects);
    const char *rows = choose_rarely(g->choices, 4) ? gen_copied_rows(g, o->rank, tile) : NULL;
    o = &g->objects[number];
    gen_order(g, o, DIRTY_WRITE);
    Source source = gen_source_at(g, o->dtype, o->rank, tile, rows);
    const char *words = copy_words(g, o->rank, tile, source.dims);
    gen_line(g, "copy_async %s, %s%s%s", source.place, o->name, gen_offsets(g, o, tile),
             words);
    Object *base = gen_base(g, o);
    base->pending = true;
    base->dirty = 0;
    base->group = g->groups;
    for (unsigned d = 0, elements = 1; d < o->rank; d++) {
        elements *= (unsigned)tile[d];
        g->budget -= d + 1 == o->rank ? elements * g->repeat : 0;
    }
}

/* A part of a tensor that holds something already. */
static void copy_part(Gen *g, Object *o)
{
    int64_t tile[LIMIT_RANK];
    for (unsigned d = 0; d < o->rank; d++)
        tile[d] = choose_between(g->choices, 1, o->shape[d]);
    start_copy(g, o, tile);
}

/* The whole of a new tensor, rather with rows that make whole chunks. */
static void copy_new(Gen *g)
{
    int64_t shape[LIMIT_RANK];
    unsigned rank = 1 + (unsigned)choose(g->choices, 3);
    for (unsigned d = 0; d < rank; d++)
        shape[d] = d + 1 == rank && choose(g->choices, 2) ? INT64_C(8) << choose(g->choices, 3)
                                                          : choose_between(g->choices, 1, 9);
    unsigned object = gen_allocate_shared(g, gen_dtype(g), rank, shape);
    start_copy(g, &g->objects[object], shape);
}

static Object *find_copied(Gen *g)
{
    uint32_t first = (uint32_t)choose(g->choices, g->object_count + 1);
    for (uint32_t i = 0; i < g->object_count; i++) {
        Object *o = &g->objects[(first + i) % g->object_count];
        if (o->shared && o->rank && !gen_base(g, o)->pending && !gen_base(g, o)->hidden)
            return o;
    }
    return NULL;
}

void gen_copy(Gen *g)
{
    for (uint64_t n = 1 + choose(g->choices, 2); n-- > 0;) {
        Object *o = choose_rarely(g->choices, 3) ? find_copied(g) : NULL;
        if (o)
            copy_part(g, o);
        else
            copy_new(g);
    }
    gen_line(g, "copy_async_commit_group");
    g->groups++;
}

/* ---- waits -------------------------------------------------------------- */

static void wait_groups(Gen *g, unsigned pending)
{
    if (!gen_drops(g))
        gen_line(g, "copy_async_wait_group %u", pending);
    for (uint32_t i = 0; i < g->object_count; i++) {
        Object *o = &g->objects[i];
        if (!o->pending || (pending && o->group + pending >= g->groups))
            continue;
        o->pending = false;
        o->dirty = DIRTY_WRITE;
    }
    g->groups_exact |= pending == 0;
}

void gen_wait(Gen *g, Object *o)
{
    wait_groups(g, g->groups_exact && choose(g->choices, 4) ? g->groups - o->group - 1 : 0);
}

void gen_wait_all(Gen *g)
{
    bool any = false;
    for (uint32_t i = 0; i < g->object_count; i++)
        any |= g->objects[i].pending;
    if (any)
        wait_groups(g, 0);
}

/* ---- rings -------------------------------------------------------------- */

/* A ring of `stages` tiles that a loop fills ahead of its use. */
typedef struct Ring {
    const char *name;
    DType dtype;
    const Layout *layout;
    int64_t stages;
} Ring;

static void ring_copy(Gen *g, const Ring *r, const char *slot)
{
    const Layout *l = r->layout;
    Source source = gen_source(g, r->dtype, l->rank, l->shape);
    gen_line(g, "copy_async %s, %s[%s%s]%s", source.place, r->name, slot,
             l->rank == 1 ? ", 0" : ", 0, 0", copy_words(g, l->rank, l->shape, source.dims));
    gen_line(g, "copy_async_commit_group");
    gen_spend(g, l);
}

static void ring_fill(Gen *g, const Ring *r)
{
    const char *i = gen_name(g, "i");
    uint32_t scalars = g->scalar_count;
    gen_line(g, "for %s in 0 .. %lld {", i, (long long)r->stages - 1);
    g->indent++;
    gen_scalar_add(g, i, 0, r->stages - 2);
    ring_copy(g, r, i);
    g->indent--;
    gen_line(g, "}");
    g->scalar_count = scalars;
}

static void ring_use(Gen *g, const Ring *r, int64_t iterations, unsigned initial)
{
    const char *i = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    const char *tile = gen_name(g, "v"), *next = gen_name(g, "v");
    uint32_t scalars = g->scalar_count;
    gen_line(g, "%s = for %s in 0 .. %s iter(%s = %s) {", sum, i, gen_exact(g, iterations),
             carried, gen_use(g, initial));
    g->indent++;
    gen_scalar_add(g, i, 0, iterations - 1);
    if (!gen_drops(g))
        gen_line(g, "copy_async_wait_group %lld", (long long)r->stages - 2);
    gen_synchronize(g);
    gen_line(g, "%s = load_shared %s[%s mod %lld%s] : %s", tile, r->name, i,
             (long long)r->stages, r->layout->rank == 1 ? ", 0" : ", 0, 0",
             gen_type_text(g, r->dtype, r->layout));
    ring_copy(g, r, arena_printf(g->arena, "(%s + %lld) mod %lld", i, (long long)r->stages - 1,
                                 (long long)r->stages));
    gen_line(g, "%s = sub %s, %s", next, tile, carried);
    gen_line(g, "yield %s", next);
    g->indent--;
    gen_line(g, "}");
    g->scalar_count = scalars;
    Reg result = {.name = sum, .dtype = r->dtype, .layout = r->layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, result);
}

void gen_copy_ring(Gen *g)
{
    DType t = gen_dtype(g);
    unsigned rank = 1 + (unsigned)choose(g->choices, 2);
    int64_t shape[LIMIT_RANK], iterations = choose_between(g->choices, 1, 4);
    if (!gen_has_arithmetic(t) || dtype_bits(t) % 8)
        t = DTYPE_f16;
    Ring r = {.dtype = t, .stages = choose_between(g->choices, 2, 4)};
    r.layout = gen_layout(g, rank, choose_between(g->choices, 1, 2), true);
    unsigned initial = gen_value_of(g, t, r.layout);
    gen_wait_all(g);
    shape[0] = r.stages;
    memcpy(shape + 1, r.layout->shape, rank * sizeof *shape);
    unsigned ring = gen_allocate_shared(g, t, rank + 1, shape);
    r.name = g->objects[ring].name;
    ring_fill(g, &r);
    g->repeat *= iterations;
    ring_use(g, &r, iterations, initial);
    g->repeat /= iterations;
    gen_line(g, "copy_async_wait_group 0");
    g->objects[ring].dirty = DIRTY_WRITE | DIRTY_READ;
}

/* ---- pipelined loops ---------------------------------------------------- */

/* A loop of this kind. */
typedef struct Pipelined {
    DType dtype;
    const Layout *layout;
    int64_t step, iterations;       /* the most iterations are `iterations` + 1 */
    Scalar from;
    unsigned tile;              /* the tensor that is copied to */
    const char *index, *carried;
    bool has_rows;
    BulkRows rows;              /* bulk copies in the same loop */
} Pipelined;

/* `value` less the row of this iteration. */
static unsigned use_row(Gen *g, const Pipelined *p, unsigned value)
{
    const char *number = arena_printf(g->arena, "(%s - %s) / %d", p->index, p->from.text,
                                      (int)p->step);
    unsigned row = gen_bulk_row(g, &p->rows, p->dtype, p->layout, number);
    const char *a = gen_use(g, value), *b = gen_use(g, row);
    return gen_define(g, p->dtype, p->layout, false, arena_printf(g->arena, "sub %s, %s", a, b));
}

static void pipelined_body(Gen *g, const Pipelined *p)
{
    const Layout *layout = p->layout;
    start_copy(g, &g->objects[p->tile], layout->shape);
    gen_line(g, "copy_async_commit_group");
    g->groups++;
    gen_wait_all(g);
    gen_synchronize(g);
    unsigned value = gen_define(g, p->dtype, layout, false,
                                arena_printf(g->arena, "load_shared %s[%s] : %s",
                                             g->objects[p->tile].name,
                                             gen_zeros(g, layout->rank),
                                             gen_type_text(g, p->dtype, layout)));
    g->objects[p->tile].dirty = DIRTY_READ;
    if (p->has_rows)
        value = use_row(g, p, value);
    for (uint64_t n = choose(g->choices, 3); n-- > 0;)
        value = gen_elementwise(g, value);
    if (choose_rarely(g->choices, 3))
        gen_statement(g);
    gen_wait_all(g);
    gen_synchronize(g);
    const char *next = gen_name(g, "v");
    gen_line(g, "%s = sub %s, %s", next, g->regs[value].name, p->carried);
    gen_line(g, "yield %s", next);
}

/* The loop's head and body. */
static void pipelined_loop(Gen *g, const Pipelined *p, const char *sum, unsigned initial)
{
    int64_t end = p->iterations * p->step - (int64_t)choose(g->choices, (uint64_t)p->step);
    int64_t last = p->from.min > end ? p->from.min : end;
    const char *upper = gen_exact(g, end);
    bool may_exit = g->may_exit;
    gen_line(g, "%s = for %s in %s .. %s step %d pipelined(%d) iter(%s = %s) {", sum, p->index,
             p->from.text, upper, (int)p->step, (int)choose_between(g->choices, 1, 4),
             p->carried, gen_use(g, initial));
    Scope s = gen_scope_begin(g);
    g->repeat *= p->iterations + 1;
    g->may_exit = may_exit && !p->has_rows;
    gen_scalar_add(g, p->index, p->from.min, last);
    pipelined_body(g, p);
    g->may_exit = may_exit;
    g->repeat /= p->iterations + 1;
    g->objects[p->tile].rank = 0;   /* perhaps no iteration wrote it */
    gen_scope_end(g, &s);
    gen_line(g, "}");
}

/* A loop that pipeline-loops takes: an iteration copies a tile and computes with it. */
void gen_pipelined(Gen *g)
{
    Pipelined p = {.dtype = gen_dtype(g)};
    p.iterations = choose_between(g->choices, 0, 5);
    p.step = choose_between(g->choices, 1, 3);
    if (!gen_may_nest(g))
        return;
    if (!gen_has_arithmetic(p.dtype))
        p.dtype = DTYPE_i32;
    p.layout = gen_small_layout(g);
    unsigned initial = gen_value_of(g, p.dtype, p.layout);
    gen_wait_all(g);
    p.tile = gen_allocate_shared(g, p.dtype, p.layout->rank, p.layout->shape);
    p.index = gen_name(g, "i");
    p.carried = gen_name(g, "v");
    p.from = gen_scalar_within(g, -1, 3);
    p.has_rows = choose(g->choices, 2) &&
                 gen_bulk_rows(g, &p.rows, p.dtype, p.layout, p.iterations + 1);
    const char *sum = gen_name(g, "v");
    pipelined_loop(g, &p, sum, initial);
    Reg result = {.name = sum, .dtype = p.dtype, .layout = p.layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, result);
    if (p.has_rows)
        gen_bulk_rows_end(g, &p.rows, p.dtype, p.layout);
}
