/* Scalar expressions. Each carries the range of its values, by intervals, so
 * that divisors are never 0, nothing leaves 64 bits, and offsets stay where they
 * must. */
#include "gen.h"

/* Beyond it an expression grows no more: products of two stay in 64 bits. */
#define SCALAR_LIMIT (INT64_C(1) << 30)

static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ceil_quotient(int64_t a, int64_t b)
{
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

void gen_scalar_add(Gen *g, const char *text, int64_t min, int64_t max)
{
    Scalar s = {text, min, max};
    arena_push(g->arena, g->scalars, g->scalar_count, g->scalar_capacity, s);
}

static Scalar constant(Gen *g, int64_t value)
{
    const char *format = value < 0 ? "(%lld)" : "%lld";
    return (Scalar){arena_printf(g->arena, format, (long long)value), value, value};
}

static Scalar leaf(Gen *g)
{
    if (!g->scalar_count || choose_rarely(g->choices, 4))
        return constant(g, choose_between(g->choices, -3, 20));
    return g->scalars[choose(g->choices, g->scalar_count)];
}

static Scalar combine(Gen *g, const char *format, Scalar a, Scalar b, int64_t min, int64_t max)
{
    Text text;
    text_init(&text, g->arena);
    for (; *format; format++)
        if (*format == '$')
            text_add(&text, format[1] == '0' ? a.text : b.text), format++;
        else
            text_char(&text, *format);
    return (Scalar){text_string(&text), min, max};
}

static Scalar least(Gen *g, Scalar a, Scalar b)
{
    return combine(g, "min($0, $1)", a, b, lesser(a.min, b.min), lesser(a.max, b.max));
}

static Scalar greatest(Gen *g, Scalar a, Scalar b)
{
    return combine(g, "max($0, $1)", a, b, greater(a.min, b.min), greater(a.max, b.max));
}

static Scalar product(Gen *g, Scalar a, Scalar b)
{
    int64_t p[4] = {a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max};
    int64_t min = lesser(lesser(p[0], p[1]), lesser(p[2], p[3]));
    int64_t max = greater(greater(p[0], p[1]), greater(p[2], p[3]));
    return combine(g, "($0 * $1)", a, b, min, max);
}

/* Division and remainder by a constant of either sign, or a positive value. */
static Scalar quotient(Gen *g, Scalar a, Scalar b)
{
    if (b.min <= 0 && b.max >= 0)
        b = constant(g, choose_rarely(g->choices, 4) ? -3 : choose_between(g->choices, 1, 9));
    int64_t most = b.min > 0 ? b.max - 1 : 0, least = b.min > 0 ? 0 : b.min + 1;
    if (choose(g->choices, 2))
        return combine(g, "($0 mod $1)", a, b, least, most);
    bool up = choose(g->choices, 2);
    int64_t (*divide)(int64_t, int64_t) = up ? ceil_quotient : floor_quotient;
    int64_t q[4] = {divide(a.min, b.min), divide(a.min, b.max), divide(a.max, b.min),
                    divide(a.max, b.max)};
    return combine(g, up ? "ceil_div($0, $1)" : "($0 / $1)", a, b,
                   lesser(lesser(q[0], q[1]), lesser(q[2], q[3])),
                   greater(greater(q[0], q[1]), greater(q[2], q[3])));
}

static Scalar truth(Gen *g, Scalar a, Scalar b)
{
    static const char *const formats[] = {
        "($0 == $1)", "($0 != $1)", "($0 < $1)", "($0 <= $1)", "($0 > $1)", "($0 >= $1)",
        "($0 and $1)", "($0 or $1)", "(not ($0 < $1))"};
    return combine(g, formats[choose(g->choices, 9)], a, b, 0, 1);
}

Scalar gen_scalar(Gen *g, unsigned depth)
{
    if (!depth || choose_rarely(g->choices, 3))
        return leaf(g);
    Scalar a = gen_scalar(g, depth - 1), b = gen_scalar(g, depth - 1), r = a;
    switch (choose(g->choices, 9)) {
    case 0: r = combine(g, "($0 + $1)", a, b, a.min + b.min, a.max + b.max); break;
    case 1: r = combine(g, "($0 - $1)", a, b, a.min - b.max, a.max - b.min); break;
    case 2: r = product(g, a, b); break;
    case 3:
    case 4: r = quotient(g, a, b); break;
    case 5: r = least(g, a, b); break;
    case 6: r = greatest(g, a, b); break;
    case 7: r = combine(g, "(-$0)", a, b, -a.max, -a.min); break;
    default: r = truth(g, a, b); break;
    }
    return r.min < -SCALAR_LIMIT || r.max > SCALAR_LIMIT ? leaf(g) : r;
}

/* `s`, or an expression of it that stays within [min, max]. */
static Scalar fit(Gen *g, Scalar s, int64_t min, int64_t max)
{
    if (s.min >= min && s.max <= max)
        return s;
    Scalar low = constant(g, min), high = constant(g, max);
    if (choose_rarely(g->choices, 3))
        return greatest(g, least(g, s, high), low);
    s = combine(g, "($0 mod $1)", s, constant(g, max - min + 1), 0, max - min);
    return min ? combine(g, "($0 + $1)", s, low, min, max) : s;
}

Scalar gen_scalar_within(Gen *g, int64_t min, int64_t max)
{
    Scalar s = gen_scalar(g, (unsigned)choose(g->choices, 3));
    if (min >= max || choose_rarely(g->choices, 4))
        return constant(g, choose_between(g->choices, min, min > max ? min : max));
    return fit(g, s, min, max);
}

/* ---- offsets ------------------------------------------------------------ */

static Scalar sum(Gen *g, Scalar a, Scalar b)
{
    return combine(g, "($0 + $1)", a, b, a.min + b.min, a.max + b.max);
}

/* A remainder, or a quotient, by a positive constant. */
static Scalar remainder_by(Gen *g, Scalar a, int64_t c)
{
    return combine(g, "($0 mod $1)", a, constant(g, c), 0, c - 1);
}

static Scalar quotient_by(Gen *g, Scalar a, int64_t c)
{
    return combine(g, "($0 / $1)", a, constant(g, c), floor_quotient(a.min, c),
                   floor_quotient(a.max, c));
}

/* The tile after tile `i` in a ring of as many as lie in [0, last]. */
static Scalar ring_offset(Gen *g, Scalar i, int64_t tile, int64_t last)
{
    return product(g, remainder_by(g, i, last / tile + 1), constant(g, tile));
}

Scalar gen_offset(Gen *g, Scalar i, int64_t tile, int64_t last)
{
    Scalar k = constant(g, choose_between(g->choices, 0, 8));
    int64_t c = choose_between(g->choices, 2, 4);
    Scalar s = i;
    switch (choose(g->choices, 10)) {
    case 0:
    case 1:
    case 2: s = sum(g, i, k); break;
    case 3: s = sum(g, product(g, i, constant(g, c)), k); break;
    case 4: s = ring_offset(g, sum(g, i, k), tile, last); break;
    case 5: s = ring_offset(g, quotient_by(g, i, c), tile, last); break;
    case 6: s = sum(g, quotient_by(g, i, c), k); break;
    case 7: s = combine(g, "($0 - $1)", constant(g, last), i, last - i.max, last - i.min); break;
    case 8: s = sum(g, i, leaf(g)); break;
    default: s = constant(g, choose_between(g->choices, 0, last)); break;
    }
    return fit(g, s, 0, last);
}

/* ---- named scalars ------------------------------------------------------ */

const char *gen_scalar_type(Gen *g, int64_t min)
{
    static const char *const types[] = {"i64", "i32", "u32"};
    return types[choose(g->choices, min < 0 ? 2 : 3)];
}

const char *gen_scalar_named(Gen *g, const char *text, const char *type)
{
    const char *name = gen_name(g, "j");
    gen_line(g, "%s = scalar %s : %s", name, text, type);
    return name;
}

void gen_scalar_statement(Gen *g)
{
    Scalar s = gen_scalar(g, 3);
    gen_scalar_add(g, gen_scalar_named(g, s.text, gen_scalar_type(g, s.min)), s.min, s.max);
}

/* A tile of one element: of an object, or of memory that nobody writes. */
static const char *scalar_place(Gen *g, DType *t)
{
    static const int64_t one[LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    Object *o = choose(g->choices, 2) ? gen_pick_object(g) : NULL;
    if (o && dtype_is_integer(o->dtype) && o->dtype != DTYPE_u64) {
        *t = o->dtype;
        gen_order(g, o, DIRTY_READ);
        return arena_printf(g->arena, "%s%s", o->name, gen_offsets(g, o, one));
    }
    do
        *t = gen_dtype(g);
    while (!dtype_is_integer(*t) || *t == DTYPE_u64);
    return gen_source(g, *t, 1 + (unsigned)choose(g->choices, 3), one).place;
}

/* Memory's numbers are used as they are when they are small. */
void gen_load_scalar(Gen *g)
{
    DType t = DTYPE_none;
    const char *place = scalar_place(g, &t), *name = gen_name(g, "j");
    int64_t least = 0, most = 0, modulus = choose_between(g->choices, 2, 40);
    dtype_integer_range(t, &least, &most);
    gen_line(g, "%s = load_scalar %s", name, place);
    if (dtype_bits(t) <= 16)
        gen_scalar_add(g, name, least, most);
    name = gen_scalar_named(g, arena_printf(g->arena, "%s mod %d", name, (int)modulus), "i64");
    gen_scalar_add(g, name, 0, modulus - 1);
}

/* ---- exact values ------------------------------------------------------- */

/* An expression over argument `s` that has `value`, or NULL. */
static const char *derive(Gen *g, Scalar s, int64_t value)
{
    int64_t k = choose_between(g->choices, 2, 9), x = s.min;
    Scalar c = constant(g, k);
    if (x == value)
        return s.text;
    if (x / k == value && x >= 0)
        return combine(g, "$0 / $1", s, c, 0, 0).text;
    if (ceil_quotient(x, k) == value)
        return combine(g, "ceil_div($0, $1)", s, c, 0, 0).text;
    if (x * k == value)
        return combine(g, "$0 * $1", s, c, 0, 0).text;
    if (x > value && choose(g->choices, 2))
        return combine(g, "min($0, $1)", s, constant(g, value), 0, 0).text;
    if (choose(g->choices, 2))
        return combine(g, "$0 + $1", s, constant(g, value - x), 0, 0).text;
    return NULL;
}

const char *gen_exact(Gen *g, int64_t value)
{
    const char *text = NULL;
    for (unsigned i = 0; i < g->argument_scalars && !text; i++)
        if (choose(g->choices, 2))
            text = derive(g, g->scalars[i], value);
    return text && choose(g->choices, 4) ? text : constant(g, value).text;
}

const char *gen_extent(Gen *g, int64_t value)
{
    return g->is_tight ? constant(g, value).text : gen_exact(g, value);
}
