/* Facts are tried one after the other: an argument has each for the time of a proof. What to
 * try is read off the expressions that proofs look at. */
#include "scalar/missing.h"

#include "ir/loop.h"
#include "ir/text.h"
#include "scalar/bounds.h"
#include "scalar/facts.h"
#include "scalar/linear.h"

enum {
    ARGUMENTS = 8,          /* that are tried */
    NUMBERS = 8,            /* divisors and ends of ranges */
    READ = 256              /* expressions that are read */
};

typedef struct Search Search;

/* Returns true when the proof that is searched for is found. */
typedef bool Proof(const Search *s);

struct Search {
    const Op *op;
    const Expr *offset, *extent;    /* extent: NULL where the proof has none */
    int64_t span;                   /* or the divisor that the offset needs */
    Proof *proof;
    Value *arguments[ARGUMENTS];
    int64_t numbers[NUMBERS];       /* ascending */
    unsigned argument_count, number_count, read;
};

/* ---- what to try --------------------------------------------------------------- */

static void add_argument(Search *s, Value *v)
{
    for (unsigned i = 0; i < s->argument_count; i++)
        if (s->arguments[i] == v)
            return;
    if (s->argument_count < ARGUMENTS)
        s->arguments[s->argument_count++] = v;
}

/* Inserts a number above 1; of too many the greatest are left out. */
static void add_number(Search *s, int64_t number)
{
    unsigned at = 0;
    while (at < s->number_count && s->numbers[at] < number)
        at++;
    if (number < 2 || at == NUMBERS || (at < s->number_count && s->numbers[at] == number))
        return;
    s->number_count += s->number_count < NUMBERS;
    for (unsigned i = s->number_count - 1; i > at; i--)
        s->numbers[i] = s->numbers[i - 1];
    s->numbers[at] = number;
}

static void read_expr(Search *s, const Expr *e)
{
    if (!e || s->read++ >= READ)
        return;
    if (e->kind == EXPR_CONSTANT)
        add_number(s, e->constant);
    if (e->kind == EXPR_OP) {
        read_expr(s, e->a);
        read_expr(s, e->b);
    }
    if (e->kind != EXPR_VALUE)
        return;
    if (e->value->program && dtype_is_integer(e->value->type->dtype))
        add_argument(s, e->value);
    else if (e->value->def && e->value->def->code == OP_scalar)
        read_expr(s, op_expr(e->value->def, ATTR_VALUE));
}

/* Reads the access, the bounds of the loops around it, and the grid. */
static void read_all(Search *s)
{
    const Program *p = s->op->parent->program;
    add_number(s, s->span);
    read_expr(s, s->extent);
    read_expr(s, s->offset);
    for (const Op *loop = s->op->parent->parent; loop; loop = loop->parent->parent)
        if (loop->code == OP_for) {
            read_expr(s, op_expr(loop, ATTR_UPPER));
            read_expr(s, op_expr(loop, ATTR_LOWER));
            read_expr(s, op_expr(loop, ATTR_STEP));
        }
    for (unsigned d = 0; d < p->grid_rank; d++)
        read_expr(s, p->grid[d]);
}

/* ---- trying ---------------------------------------------------------------------- */

/* Returns true when the proof is found with these facts of `v`. */
static bool is_proved_with(const Search *s, Value *v, Facts facts)
{
    Facts before = v->facts;
    v->facts = facts;
    bool proved = s->proof(s);
    v->facts = before;
    return proved;
}

/* Returns true when a multiple of the divisor, other than 0, is in the range. */
static bool has_values(const Facts *f)
{
    return f->max >= f->divisible || f->min <= -f->divisible;
}

static bool try_divisor(const Search *s, Value *v, int64_t number, MissingFact *found)
{
    Facts facts = v->facts;
    int64_t factor = number / gcd_i64(number, facts.divisible);
    if (factor == 1 || __builtin_mul_overflow(facts.divisible, factor, &facts.divisible) ||
        !has_values(&facts) || !is_proved_with(s, v, facts))
        return false;
    *found = (MissingFact){v, facts, false};
    return true;
}

/* Bounds what a program's arguments are meant to be. */
enum { PLAUSIBLE = 1 << 28 };

static bool try_range(const Search *s, Value *v, int64_t min, int64_t max, MissingFact *found)
{
    Facts facts = v->facts;
    facts.min = min > facts.min ? min : facts.min;
    facts.max = max < facts.max ? max : facts.max;
    if (facts.min > facts.max || facts.min > PLAUSIBLE || !is_proved_with(s, v, facts))
        return false;
    *found = (MissingFact){v, facts, true};
    return true;
}

/* Splits `e` into factor * v + rest; false where that is not known with a factor above 0. */
static bool split_expr(const Expr *e, const Value *v, int64_t *factor, int64_t *min, int64_t *max)
{
    LinearSum sum = {.count = 0};
    unsigned at = 0;
    if (!linear_add(&sum, e, 1))
        return false;
    while (at < sum.count && (sum.terms[at].leaf->kind != EXPR_VALUE ||
                              sum.terms[at].leaf->value != v))
        at++;
    if (at == sum.count || sum.terms[at].factor < 1)
        return false;
    *factor = sum.terms[at].factor;
    return linear_range(&sum, at, min, max);
}

/* Tries the least value of `v`, part of the extent, that holds the tile wherever it lies. */
static bool try_extent(const Search *s, Value *v, MissingFact *found)
{
    int64_t factor, min, max, least;
    ScalarFacts offset = facts_of_expr(s->offset);
    return offset.max != INT64_MAX && split_expr(s->extent, v, &factor, &min, &max) &&
           !__builtin_add_overflow(offset.max, s->span, &least) &&
           !__builtin_sub_overflow(least, min, &least) &&
           try_range(s, v, floor_div(least, factor) + (floor_mod(least, factor) != 0),
                     INT64_MAX, found);
}

/* Tries the values of `v`, part of the offset, at which the tile lies inside: without an end
 * below, with it, and without one above. */
static bool try_offset(const Search *s, Value *v, MissingFact *found)
{
    int64_t factor, min, max, least, most;
    ScalarFacts extent = facts_of_expr(s->extent);
    if (!split_expr(s->offset, v, &factor, &min, &max) || min == INT64_MIN ||
        __builtin_sub_overflow(extent.min, s->span, &most) ||
        __builtin_sub_overflow(most, max, &most))
        return false;
    least = -floor_div(min, factor);
    most = floor_div(most, factor);
    return try_range(s, v, INT64_MIN, most, found) || try_range(s, v, least, most, found) ||
           try_range(s, v, least, INT64_MAX, found);
}

static bool lies_inside(const Search *s)
{
    return bounds_proved(s->op, s->offset, s->span, s->extent);
}

MissingFact missing_fact(const Op *op, const Expr *offset, int64_t span, const Expr *extent)
{
    MissingFact found = {0};
    Search s = {.op = op, .offset = offset, .extent = extent, .span = span, .proof = lies_inside};
    read_all(&s);
    for (unsigned i = 0; i < s.argument_count * s.number_count; i++)
        if (try_divisor(&s, s.arguments[i % s.argument_count], s.numbers[i / s.argument_count],
                        &found))
            return found;
    for (unsigned i = 0; i < s.argument_count; i++)
        if (try_extent(&s, s.arguments[i], &found) || try_offset(&s, s.arguments[i], &found))
            return found;
    return found;
}

/* ---- offsets ----------------------------------------------------------------------- */

static bool is_multiple(const Search *s)
{
    return facts_of_expr(s->offset).divisor % s->span == 0;
}

MissingFact missing_divisor(const Op *op, const Expr *offset, int64_t divisor)
{
    MissingFact found = {0};
    Search s = {.op = op, .offset = offset, .span = divisor, .proof = is_multiple};
    read_all(&s);
    for (int64_t number = 2; number <= divisor; number *= 2)
        for (unsigned i = 0; i < s.argument_count; i++)
            if (try_divisor(&s, s.arguments[i], number, &found))
                return found;
    return found;
}

static bool is_from_zero(const Search *s)
{
    return bounds_from_zero(s->op, s->offset);
}

MissingFact missing_sign(const Op *op, const Expr *offset)
{
    MissingFact found = {0};
    Search s = {.op = op, .offset = offset, .span = 1, .proof = is_from_zero};
    read_all(&s);
    for (int64_t least = 0; least < 2; least++)
        for (unsigned i = 0; i < s.argument_count; i++)
            if (try_range(&s, s.arguments[i], least, INT64_MAX, &found))
                return found;
    return found;
}

/* ---- words ------------------------------------------------------------------------- */

const char *missing_fact_text(Module *m, const MissingFact *fact)
{
    const char *name = value_text(m, fact->argument);
    if (!fact->range)
        return arena_printf(&m->scratch, "{divisible = %lld} of %s",
                            (long long)fact->facts.divisible, name);
    return arena_printf(&m->scratch, "{range = [%lld, %lld]} of %s", (long long)fact->facts.min,
                        (long long)fact->facts.max, name);
}
