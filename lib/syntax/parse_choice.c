/* COND ? A : B. A constant condition takes one side while the text is read, as `when` does; a
 * scalar one becomes an `if`, a tensor of bool a `select`. */
#include "syntax/term.h"

#include "ir/text.h"
#include "ir/verify.h"

/* Reads ? A : B, each into a region of its own; `untaken`: the side that a constant condition does
 * not take, or 2. */
static bool parse_sides(Parser *p, Region *const *regions, unsigned untaken, Term *sides)
{
    Region *outer = p->region;
    bool ok = parser_enter(p, &p->regions);
    for (unsigned i = 0; ok && i < 2; i++) {
        p->region = regions[i];
        p->untaken += i == untaken;
        ok = parser_expect(p, i ? ":" : "?", "between the sides of a choice") &&
             parse_term(p, PRECEDENCE_ANY, &sides[i]);
        p->untaken -= i == untaken;
        p->region = outer;
    }
    p->regions--;
    return ok;
}

/* The ops of the side that is not taken go to a region that nothing refers to. The condition may
 * guard it, as in `N == 0 ? 1 : K / N`: only its grammar is checked. */
static bool choose_constant(Parser *p, bool taken, Term *t)
{
    Term sides[2];
    Region *unused = p->region ? build_region(p->program, p->region->parent) : NULL;
    Region *regions[] = {taken ? p->region : unused, taken ? unused : p->region};
    if (!parse_sides(p, regions, taken, sides))
        return false;
    *t = sides[!taken];
    return true;
}

/* Element by element. */
static bool choose_elements(Parser *p, Loc loc, Term *t)
{
    Term terms[3] = {*t};
    Region *regions[] = {p->region, p->region};
    return parse_sides(p, regions, 2, &terms[1]) &&
           term_elementwise(p, OP_select, loc, terms, 3, t);
}

/* The type of both sides; NULL: of scalars, which agree. */
static const Type *side_type(const Term *sides)
{
    for (unsigned i = 0; i < 2; i++)
        if (sides[i].kind == TERM_VALUE)
            return sides[i].value->type;
    return NULL;
}

/* Ends each region with its side's value. */
static bool yield_sides(Parser *p, Loc loc, Region *const *regions, const Term *sides,
                        const Type **type)
{
    Region *outer = p->region;
    Value *values[2] = {0};
    *type = side_type(sides);
    if (!*type)
        *type = type_scalar(p->m, DTYPE_i64);
    for (unsigned i = 0; i < 2; i++) {
        p->region = regions[i];
        values[i] = term_value(p, &sides[i], *type);
        if (values[i])
            op_insert(regions[i], build_op(p->m, OP_yield, loc, &values[i], 1, NULL, 0), NULL);
    }
    p->region = outer;
    if (!values[0] || !values[1])
        return false;
    return verify_types_agree(p->m, values[0]->type, values[1]->type) ||
           diag_error(p->diag, loc, "the sides of a choice have one type, got %s and %s",
                      type_text(p->m, values[0]->type), type_text(p->m, values[1]->type));
}

static bool choose_branch(Parser *p, Loc loc, Term *t)
{
    const Type *type;
    Term sides[2];
    Region *regions[2];
    Attr cond = {.kind = ATTR_COND, .expr = t->expr};
    if (!term_can_build(p, loc, "a `? :` whose condition is no constant"))
        return false;
    Op *op = build_op(p->m, OP_if, loc, NULL, 0, &cond, 1);
    for (unsigned i = 0; i < 2; i++) {
        regions[i] = build_region(p->program, op);
        build_op_region(p->m, op, regions[i]);
    }
    if (!parse_sides(p, regions, 2, sides) || !yield_sides(p, loc, regions, sides, &type))
        return false;
    op_insert(p->region, op, NULL);
    *t = term_of_any(p, loc, build_result(p->m, op, NULL, loc, type));
    return true;
}

bool parse_choice(Parser *p, Term *t)
{
    Loc loc = p->token.loc;
    if (t->kind == TERM_VALUE)
        return choose_elements(p, loc, t);
    *t = term_as_scalar(p, t);
    if (t->kind == TERM_NUMBER)
        return diag_error(p->diag, t->loc, "the condition of a choice is an integer or a tensor of "
                          "bool, got %s", term_text(p, t));
    if (expr_is_constant(t->expr))
        return choose_constant(p, t->expr->constant != 0, t);
    return choose_branch(p, loc, t);
}
