/* Reading values and their users. */
#include "api/ir_handles.h"

#include "ir/uses.h"

const tilus_type *tilus_value_type(const tilus_value *value)
{
    return value ? type_handle(value_of(value)->type) : NULL;
}

const char *tilus_value_name(const tilus_value *value)
{
    return value ? value_of(value)->name : NULL;
}

size_t tilus_value_index(const tilus_value *value)
{
    return value ? value_of(value)->index : 0;
}

tilus_op *tilus_value_definition(const tilus_value *value)
{
    return value ? op_handle(value_of(value)->def) : NULL;
}

tilus_block *tilus_value_block(const tilus_value *value)
{
    return value ? region_handle(value_of(value)->region) : NULL;
}

tilus_program *tilus_value_program(const tilus_value *value)
{
    return value ? program_handle(value_of(value)->program) : NULL;
}

/* ---- facts ----------------------------------------------------------------- */

/* Facts of a parameter; others hold any number of their type. */
static const Facts *parameter_facts(const tilus_value *value)
{
    const Value *v = value_of(value);
    return v && v->program ? &v->facts : NULL;
}

static void type_range(const tilus_value *value, int64_t *least, int64_t *most)
{
    *least = INT64_MIN;
    *most = INT64_MAX;
    if (value && value_of(value)->type->kind == TYPE_SCALAR)
        dtype_integer_range(value_of(value)->type->dtype, least, most);
}

int64_t tilus_value_least(const tilus_value *value)
{
    const Facts *f = parameter_facts(value);
    int64_t least, most;
    type_range(value, &least, &most);
    return f && f->has_range && f->min > least ? f->min : least;
}

int64_t tilus_value_most(const tilus_value *value)
{
    const Facts *f = parameter_facts(value);
    int64_t least, most;
    type_range(value, &least, &most);
    return f && f->has_range && f->max < most ? f->max : most;
}

int64_t tilus_value_divisor(const tilus_value *value)
{
    const Facts *f = parameter_facts(value);
    return f ? f->divisible : 1;
}

int64_t tilus_value_alignment(const tilus_value *value)
{
    const Facts *f = parameter_facts(value);
    return f ? f->align : 1;
}

bool tilus_value_constant(const tilus_value *value, double *number)
{
    const Op *op = value ? value_of(value)->def : NULL;
    const Attr *init = op && op->code == OP_allocate_register ? op_attr(op, ATTR_INIT) : NULL;
    if (!init)
        return false;
    double magnitude = (double)init->number.magnitude;
    *number = init->number.is_real ? init->number.real : init->number.negative ? -magnitude
                                                                               : magnitude;
    return true;
}

/* ---- users ------------------------------------------------------------------- */

typedef struct Users {
    const Value *value;
    bool (*visit)(tilus_op *user, void *data);
    void *data;
    size_t count;
} Users;

static tilus_walk visit_user(tilus_op *op, void *data)
{
    Users *u = data;
    if (!op_uses(op_of(op), u->value))
        return TILUS_WALK_ON;
    u->count++;
    return !u->visit || u->visit(op, u->data) ? TILUS_WALK_ON : TILUS_WALK_STOP;
}

size_t tilus_value_user_count(const tilus_value *value)
{
    Users u = {.value = value_of(value)};
    const Program *p = ir_value_program(value_of(value));
    if (p)
        tilus_block_walk(region_handle(p->body), visit_user, &u);
    return u.count;
}

bool tilus_value_walk_users(tilus_value *value, bool (*visit)(tilus_op *user, void *data),
                            void *data)
{
    Users u = {value_of(value), visit, data, 0};
    const Program *p = ir_value_program(value_of(value));
    return !p || tilus_block_walk(region_handle(p->body), visit_user, &u);
}
