/* Numbers of scalars at one place of a program's run. */
#include "launch.h"

#include "ir/loop.h"

enum { KEPT = 64, DEEPEST = 256, SCALARS_MOST = 1 << 16 };

/* An evaluation. Numbers of scalars are kept, so that a chain of them, each of which uses the one
 * before twice, is walked once. */
typedef struct Evaluation {
    const Place *place;
    struct {
        const Value *value;
        int64_t number;
        bool known;
    } kept[KEPT];               /* by address */
    unsigned depth, scalars;    /* that are in evaluation; that were evaluated */
    bool given_up;              /* too deep, or too many */
} Evaluation;

static bool value_number(Evaluation *v, const Value *value, int64_t *number);

static bool is_known(Value *value, void *evaluation)
{
    int64_t number;
    return value_number(evaluation, value, &number);
}

static int64_t look_up(const Value *value, void *evaluation)
{
    int64_t number = 0;
    value_number(evaluation, value, &number);
    return number;
}

static bool evaluate(Evaluation *v, const Expr *e, int64_t *number)
{
    return e && expr_visit_values(e, is_known, v) && !expr_evaluate(e, look_up, v, number) &&
           !v->given_up;
}

bool place_evaluate(const Place *p, const Expr *e, int64_t *number)
{
    Evaluation v = {.place = p};
    return evaluate(&v, e, number);
}

static bool scalar_number(Evaluation *v, const Value *value, int64_t *number)
{
    size_t at = (uintptr_t)value / sizeof *value % KEPT;
    if (v->kept[at].value != value) {
        v->given_up |= v->depth == DEEPEST || v->scalars++ == SCALARS_MOST;
        if (v->given_up)
            return false;
        int64_t evaluated = 0;
        v->depth++;
        bool known = evaluate(v, op_expr(value->def, ATTR_VALUE), &evaluated);
        v->depth--;
        v->kept[at].value = value;
        v->kept[at].number = evaluated;
        v->kept[at].known = known;
    }
    *number = v->kept[at].number;
    return v->kept[at].known;
}

static bool argument_number(const Arguments *a, const Value *v, int64_t *number)
{
    *number = a->values[v->index].integer;
    return a->known[v->index];
}

static bool index_number(const Place *p, const Value *v, int64_t *number)
{
    for (unsigned i = 0; i < p->depth; i++)
        if (p->loops[i].index == v) {
            *number = p->loops[i].number;
            return true;
        }
    return false;
}

static bool value_number(Evaluation *v, const Value *value, int64_t *number)
{
    const Place *p = v->place;
    if (value->program)
        return argument_number(p->arguments, value, number);
    if (!value->def)
        return index_number(p, value, number);
    if (value->def->code == OP_scalar)
        return scalar_number(v, value, number);
    if (value->def->code != OP_block_indices || !p->block)
        return false;
    *number = p->block[value->index];
    return true;
}
