/* Regions: loops and branches that carry values, ends of blocks, conditions. */
#include "gen.h"

#include <string.h>

enum { CARRIED_MAX = 2, VALUES_MAX = CARRIED_MAX + 2, DEPTH_MAX = 3 };

/* Values that a region takes or hands on: register tensors, then scalars. */
typedef struct Carried {
    unsigned count, regs;
    DType dtype[VALUES_MAX];            /* of the tensors */
    const Layout *layout[VALUES_MAX];
    bool undefined[VALUES_MAX];         /* at first */
    const char *type[VALUES_MAX];       /* of the scalars */
    int64_t min[VALUES_MAX], max[VALUES_MAX];
    const char *initial[VALUES_MAX], *inside[VALUES_MAX], *result[VALUES_MAX];
    const char *next;       /* the last scalar's value in the next iteration; NULL: anything */
} Carried;

Scope gen_scope_begin(Gen *g)
{
    Scope s = {g->scalar_count, g->reg_count, g->object_count, g->loop, g->groups,
               g->groups_exact, NULL};
    s.before = arena_copy(g->arena, g->objects, g->object_count * sizeof *g->objects);
    g->indent++;
    g->depth++;
    return s;
}

/* The region may have run, or not: what either left stays, and groups that were
 * made in it, or waited for, count no more. */
void gen_scope_end(Gen *g, const Scope *s)
{
    for (uint32_t i = s->objects; i < g->object_count; i++)
        g->objects[0].dirty |= g->objects[i].dirty;
    g->scalar_count = s->scalars;
    g->reg_count = s->regs;
    g->object_count = s->objects;
    g->loop = s->loop;
    g->groups_exact = s->groups_exact && g->groups == s->groups;
    for (uint32_t i = 0; i < s->objects; i++) {
        g->objects[i].dirty |= s->before[i].dirty;
        g->objects[i].pending |= s->before[i].pending;
    }
    g->indent--;
    g->depth--;
}

static void add_reg(Gen *g, const char *name, DType dtype, const Layout *layout)
{
    Reg r = {.name = name, .dtype = dtype, .layout = layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, r);
}

static void add_results(Gen *g, const Carried *c)
{
    for (unsigned i = 0; i < c->regs; i++)
        add_reg(g, c->result[i], c->dtype[i], c->layout[i]);
    for (unsigned i = c->regs; i < c->count; i++)
        gen_scalar_add(g, c->result[i], c->min[i], c->max[i]);
}

/* "%v1, %v2" and `end`, or nothing at all. */
static const char *join_names(Gen *g, const char *const *names, unsigned count,
                              const char *end)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned i = 0; i < count; i++)
        text_printf(&text, "%s%s", i ? ", " : "", names[i]);
    text_add(&text, count ? end : "");
    return text_string(&text);
}

bool gen_any_dirty(const Gen *g)
{
    for (uint32_t i = 0; i < g->object_count; i++)
        if (g->objects[i].dirty)
            return true;
    return false;
}

bool gen_may_nest(const Gen *g)
{
    return g->depth < DEPTH_MAX && g->budget > 0;
}

void gen_end_region(Gen *g, uint32_t first)
{
    gen_wait_all(g);
    for (uint32_t i = first; i < g->reg_count; i++)
        if (!g->regs[i].used)
            gen_store_result(g, i);
}

/* The values that a region hands on: new ones, or those that it was given, changed. */
static void make_yields(Gen *g, const Carried *c, const char **yields)
{
    for (unsigned i = 0; i < c->regs; i++) {
        unsigned reg = gen_value_of(g, c->dtype[i], c->layout[i]);
        if (choose(g->choices, 4))
            reg = gen_elementwise(g, reg);
        yields[i] = gen_use(g, reg);
    }
    for (unsigned i = c->regs; i < c->count; i++) {
        Scalar s = gen_scalar_within(g, c->min[i], c->max[i]);
        if (c->next && i + 1 == c->count)
            s.text = c->next;
        yields[i] = gen_scalar_named(g, s.text, c->type[i]);
    }
}

static void region_body(Gen *g, const Scope *s, const Carried *c, bool loops)
{
    const char *yields[VALUES_MAX];
    for (uint64_t n = choose_between(g->choices, 1, 4); n-- > 0;)
        gen_statement(g);
    make_yields(g, c, yields);
    gen_end_region(g, s->regs);
    if (loops && gen_any_dirty(g))
        gen_synchronize(g);
    if (c->count)
        gen_line(g, "yield %s", join_names(g, yields, c->count, ""));
}

/* ---- for ---------------------------------------------------------------- */

/* One more scalar, from `initial` on, within [min, max] from then on. */
static void carry_scalar(Gen *g, Carried *c, Scalar initial, int64_t min, int64_t max)
{
    unsigned i = c->count++;
    c->min[i] = initial.min < min ? initial.min : min;
    c->max[i] = initial.max > max ? initial.max : max;
    c->type[i] = gen_scalar_type(g, c->min[i]);
    c->initial[i] = gen_scalar_named(g, initial.text, c->type[i]);
    c->inside[i] = gen_name(g, "j");
    c->result[i] = gen_name(g, "j");
}

static Carried choose_carried(Gen *g, bool certain)
{
    Carried c = {.regs = (unsigned)choose(g->choices, CARRIED_MAX + 1)};
    c.count = c.regs;
    for (unsigned i = 0; i < c.regs; i++) {
        unsigned reg = gen_pick(g);
        c.dtype[i] = g->regs[reg].dtype;
        c.layout[i] = g->regs[reg].layout;
        c.undefined[i] = certain && choose_rarely(g->choices, 6);
        c.initial[i] = c.undefined[i] ? gen_name(g, "u") : gen_use(g, reg);
        c.inside[i] = gen_name(g, "v");
        c.result[i] = gen_name(g, "v");
        if (c.undefined[i])
            gen_line(g, "%s = allocate_register : %s", c.initial[i],
                     gen_type_text(g, c.dtype[i], c.layout[i]));
    }
    if (choose_rarely(g->choices, 3))
        carry_scalar(g, &c, gen_scalar(g, 2), -2, 6);
    return c;
}

static const char *iter_text(Gen *g, const Carried *c)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned i = 0; i < c->count; i++)
        text_printf(&text, "%s%s = %s", i ? ", " : " iter(", c->inside[i], c->initial[i]);
    text_add(&text, c->count ? ")" : "");
    return text_string(&text);
}

int64_t gen_trips(Scalar lower, Scalar upper, int64_t step)
{
    return upper.max > lower.min ? (upper.max - lower.min + step - 1) / step : 1;
}

/* `index` goes from lower to below upper. */
static void loop_body(Gen *g, const Carried *c, const char *index, Scalar lower, Scalar upper)
{
    Scope s = gen_scope_begin(g);
    for (unsigned i = c->regs; i < c->count; i++)
        if (!c->next || i + 1 < c->count)
            gen_scalar_add(g, c->inside[i], c->min[i], c->max[i]);
    gen_scalar_add(g, index, lower.min, upper.max > lower.min ? upper.max - 1 : lower.min);
    g->loop = g->scalar_count;
    for (unsigned i = 0; i < c->regs; i++)
        if (!c->undefined[i])
            add_reg(g, c->inside[i], c->dtype[i], c->layout[i]);
    region_body(g, &s, c, true);
    gen_scope_end(g, &s);
}

/* " pipelined(3) unroll", which change no result. */
static const char *loop_words(Gen *g)
{
    Text text;
    text_init(&text, g->arena);
    if (choose_rarely(g->choices, 8))
        text_printf(&text, " pipelined(%d)", (int)choose_between(g->choices, 1, 4));
    if (choose_rarely(g->choices, 6))
        text_add(&text, " unroll");
    else if (choose_rarely(g->choices, 3))
        text_printf(&text, " unroll(%d)", (int)choose_between(g->choices, 2, 4));
    return text_string(&text);
}

/* Few iterations between any two expressions. */
static Steps narrow_steps(Gen *g)
{
    Steps s = {.step = choose(g->choices, 3) ? 1 : choose_between(g->choices, 2, 3),
               .step_text = ""};
    s.lower = gen_scalar_within(g, -1, 2);
    int64_t span = choose_between(g->choices, 0, 3);
    s.upper = gen_scalar_within(g, s.lower.min, s.lower.max + span);
    if (s.step != 1)
        s.step_text = arena_printf(g->arena, " step %d", (int)s.step);
    return s;
}

void gen_for(Gen *g)
{
    Steps s = choose(g->choices, 3) ? narrow_steps(g) : gen_steps(g, 4);
    Scalar lower = s.lower, upper = s.upper;
    int64_t trips = gen_trips(lower, upper, s.step);
    const char *index = gen_name(g, "i");
    if (g->depth >= DEPTH_MAX || g->budget < 4 * g->repeat * trips * gen_threads(g))
        return;
    Carried c = choose_carried(g, lower.max < upper.min);
    gen_line(g, "%sfor %s in %s .. %s%s%s%s {", join_names(g, c.result, c.count, " = "), index,
             lower.text, upper.text, s.step_text, loop_words(g), iter_text(g, &c));
    g->repeat *= trips;
    loop_body(g, &c, index, lower, upper);
    g->repeat /= trips;
    gen_line(g, "}");
    add_results(g, &c);
}

/* ---- while -------------------------------------------------------------- */

/* A scalar counts the iterations, and another condition may end the loop before. */
void gen_while(Gen *g)
{
    int64_t step = choose_between(g->choices, 1, 3);
    Scalar start = gen_scalar_within(g, -2, 2);
    Scalar limit = gen_scalar_within(g, start.min, start.max + choose_between(g->choices, 0, 4));
    int64_t trips = gen_trips(start, limit, step);
    if (g->depth >= DEPTH_MAX || g->budget < 4 * g->repeat * trips * gen_threads(g))
        return;
    Carried c = choose_carried(g, false);
    carry_scalar(g, &c, start, start.min, limit.max - 1 + step);
    const char *index = c.inside[c.count - 1];
    c.next = arena_printf(g->arena, "%s + %d", index, (int)step);
    const char *also = choose(g->choices, 2)
                           ? ""
                           : arena_printf(g->arena, " and %s", gen_scalar(g, 2).text);
    gen_line(g, "%swhile %s < %s%s%s {", join_names(g, c.result, c.count, " = "), index,
             limit.text, also, iter_text(g, &c));
    g->repeat *= trips;
    loop_body(g, &c, index, start, limit);
    g->repeat /= trips;
    gen_line(g, "}");
    add_results(g, &c);
}

/* ---- if ----------------------------------------------------------------- */

static void branch_body(Gen *g, const Carried *c)
{
    Scope s = gen_scope_begin(g);
    region_body(g, &s, c, false);
    gen_scope_end(g, &s);
}

/* Each branch begins with what was before both. */
void gen_if(Gen *g)
{
    if (g->depth >= DEPTH_MAX)
        return;
    Carried c = choose_carried(g, false);
    gen_line(g, "%sif %s {", join_names(g, c.result, c.count, " = "), gen_scalar(g, 3).text);
    uint32_t count = g->object_count;
    Object *before = arena_copy(g->arena, g->objects, count * sizeof *before);
    branch_body(g, &c);
    if (c.count || choose(g->choices, 2)) {
        Object *after = arena_copy(g->arena, g->objects, count * sizeof *after);
        if (count)
            memcpy(g->objects, before, count * sizeof *before);
        gen_line(g, "} else {");
        branch_body(g, &c);
        for (uint32_t i = 0; i < count; i++) {
            g->objects[i].dirty |= after[i].dirty;
            g->objects[i].pending |= after[i].pending;
        }
    }
    gen_line(g, "}");
    add_results(g, &c);
}

/* Some blocks end here. */
void gen_exit(Gen *g)
{
    if (!g->may_exit)
        return;
    g->exits = true;
    gen_wait_all(g);
    gen_line(g, "if %s {", gen_scalar(g, 2).text);
    Scope s = gen_scope_begin(g);
    gen_store_result(g, gen_pick(g));
    gen_line(g, "exit");
    gen_scope_end(g, &s);
    gen_line(g, "}");
}

/* Any thread may do it, anywhere. */
void gen_launch_dependents(Gen *g)
{
    gen_line(g, "launch_dependents");
}

/* Blocks that have ended have not waited. */
void gen_wait_dependencies(Gen *g)
{
    if (!g->depth && !g->exits)
        gen_line(g, "wait_dependencies");
}

/* ---- conditions --------------------------------------------------------- */

void gen_assert(Gen *g)
{
    Scalar s = gen_scalar(g, 3);
    bool fails = g->options.failures && choose_rarely(g->choices, 4);
    bool above = choose(g->choices, 2);
    g->out->may_fail |= fails;
    const char *op = fails || choose(g->choices, 2) ? "assert" : "assume";
    const char *relation = fails ? above ? ">" : "<" : above ? "<=" : ">=";
    gen_line(g, "%s %s %s %lld%s", op, s.text, relation, (long long)(above ? s.max : s.min),
             fails ? ", \"this does not hold\"" : "");
}
