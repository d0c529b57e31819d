/* Regions: loops and branches that carry values, ends of blocks, conditions. */
#include "gen.h"

#include <string.h>

enum { CARRIED_MAX = 3, DEPTH_MAX = 3 };

/* Values that a region takes or hands on. */
typedef struct Carried {
    unsigned count;
    DType dtype[CARRIED_MAX];
    const Layout *layout[CARRIED_MAX];
    const char *initial[CARRIED_MAX], *inside[CARRIED_MAX], *result[CARRIED_MAX];
    bool undefined[CARRIED_MAX];    /* at first */
} Carried;

/* What a region restores when it ends. */
typedef struct Scope {
    uint32_t scalars, regs, objects;
    unsigned loop, groups;
    bool groups_exact;
    Object *before;         /* the objects as they were at its begin */
} Scope;

static Scope scope_begin(Gen *g)
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
static void scope_end(Gen *g, const Scope *s)
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
    for (unsigned i = 0; i < c->count; i++)
        add_reg(g, c->result[i], c->dtype[i], c->layout[i]);
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

static bool any_dirty(const Gen *g)
{
    for (uint32_t i = 0; i < g->object_count; i++)
        if (g->objects[i].dirty)
            return true;
    return false;
}

void gen_end_region(Gen *g, uint32_t first)
{
    gen_wait_all(g);
    for (uint32_t i = first; i < g->reg_count; i++)
        if (!g->regs[i].used)
            gen_store_result(g, i);
}

/* Statements, then the values that the region hands on: new ones, or those that
 * it was given (from value `given` on), changed. */
static void region_body(Gen *g, const Scope *s, const Carried *c, bool loops)
{
    const char *yields[CARRIED_MAX];
    for (uint64_t n = choose_between(g->choices, 1, 4); n-- > 0;)
        gen_statement(g);
    for (unsigned i = 0; i < c->count; i++) {
        unsigned reg = gen_value_of(g, c->dtype[i], c->layout[i]);
        if (choose(g->choices, 4))
            reg = gen_elementwise(g, reg);
        yields[i] = gen_use(g, reg);
    }
    gen_end_region(g, s->regs);
    if (loops && any_dirty(g))
        gen_synchronize(g);
    if (c->count)
        gen_line(g, "yield %s", join_names(g, yields, c->count, ""));
}

/* ---- for ---------------------------------------------------------------- */

static Carried choose_carried(Gen *g, bool certain)
{
    Carried c = {.count = (unsigned)choose(g->choices, CARRIED_MAX)};
    for (unsigned i = 0; i < c.count; i++) {
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

static void loop_body(Gen *g, const Carried *c, const char *index, Scalar lower, Scalar upper)
{
    Scope s = scope_begin(g);
    gen_scalar_add(g, index, lower.min, upper.max > lower.min ? upper.max - 1 : lower.min);
    g->loop = g->scalar_count;
    for (unsigned i = 0; i < c->count; i++)
        if (!c->undefined[i])
            add_reg(g, c->inside[i], c->dtype[i], c->layout[i]);
    region_body(g, &s, c, true);
    scope_end(g, &s);
}

void gen_for(Gen *g)
{
    int64_t step = choose(g->choices, 3) ? 1 : choose_between(g->choices, 2, 3);
    Scalar lower = gen_scalar_within(g, -1, 2);
    Scalar upper = gen_scalar_within(g, lower.min,
                                     lower.max + choose_between(g->choices, 0, 3));
    int64_t trips = upper.max > lower.min ? (upper.max - lower.min + step - 1) / step : 1;
    const char *index = gen_name(g, "i");
    if (g->depth >= DEPTH_MAX || g->budget < 4 * g->repeat * trips * gen_threads(g))
        return;
    Carried c = choose_carried(g, lower.max < upper.min);
    const char *step_text = step == 1 ? "" : arena_printf(g->arena, " step %d", (int)step);
    gen_line(g, "%sfor %s in %s .. %s%s%s {", join_names(g, c.result, c.count, " = "), index,
             lower.text, upper.text, step_text, iter_text(g, &c));
    g->repeat *= trips;
    loop_body(g, &c, index, lower, upper);
    g->repeat /= trips;
    gen_line(g, "}");
    add_results(g, &c);
}

/* ---- if ----------------------------------------------------------------- */

static void branch_body(Gen *g, const Carried *c)
{
    Scope s = scope_begin(g);
    region_body(g, &s, c, false);
    scope_end(g, &s);
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
    gen_wait_all(g);
    gen_line(g, "if %s {", gen_scalar(g, 2).text);
    Scope s = scope_begin(g);
    gen_store_result(g, gen_pick(g));
    gen_line(g, "exit");
    scope_end(g, &s);
    gen_line(g, "}");
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
