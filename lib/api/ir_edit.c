/* Changing ops and values in place, and moving, copying and erasing ops. */
#include "api/ir_edit.h"

#include "ir/structure.h"
#include "ir/text.h"
#include "ir/uses.h"
#include "passes/ops_copy.h"
#include "passes/pass.h"
#include "support/ascii.h"

#include <string.h>

/* ---- checks ------------------------------------------------------------- */

bool ir_check_live(Module *m, const Op *op)
{
    return ir_op_program(op) ||
           diag_error(m->diag, op->loc, "%s was erased with the op around it",
                      op_info[op->code].name);
}

bool ir_check_value(Program *p, Loc loc, const Value *v)
{
    return (v && ir_value_program(v) == p) ||
           diag_error(p->module->diag, loc, "%s is no value of @%s",
                      !v ? "NULL" : v->name ? v->name : "an operand", p->name);
}

unsigned ir_levels(Op *op)
{
    return op->region_count ? op_depth(op) - region_depth(op->regions[0]) + 1 : 0;
}

bool ir_check_place(Loc loc, Place *place, unsigned levels)
{
    Diag *diag = place->r->program->module->diag;
    if (!place->before)
        place->before = region_yield(place->r);
    if (region_depth(place->r) + levels > LIMIT_NESTING)
        return diag_error(diag, loc, "nested deeper than %d", LIMIT_NESTING);
    bool behind_yield = !place->before && place->r->parent && region_yield(place->r);
    return !behind_yield || diag_error(diag, loc, "a place behind a yield");
}

/* ---- operands -------------------------------------------------------------- */

static bool try_operands(Module *m, Op *op, Value **operands, unsigned count)
{
    Op changed = *op;
    changed.operands = operands;
    changed.operand_count = count;
    if (!verify_op_structure(op->parent->program, &changed))
        return false;
    op->operands = operands;
    op->operand_count = count;
    m->edits++;
    return true;
}

static bool set_operand(Module *m, Op *op, size_t i, Value *v)
{
    if (!ir_check_live(m, op) || !ir_check_value(op->parent->program, op->loc, v))
        return false;
    if (i >= op->operand_count)
        return diag_error(m->diag, op->loc, "operand %zu of %s, which has %u", i,
                          op_info[op->code].name, op->operand_count);
    Value **operands = arena_copy(&m->arena, op->operands, op->operand_count * sizeof *operands);
    operands[i] = v;
    return try_operands(m, op, operands, op->operand_count);
}

bool tilus_op_set_operand(tilus_op *op, size_t i, tilus_value *value)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m)
        IR_CALL(m, ok, false, set_operand(m, op_of(op), i, value_of(value)));
    return ok;
}

static bool set_operands(Module *m, Op *op, Value *const *values, size_t count)
{
    if (!ir_check_live(m, op))
        return false;
    if (op->code != OP_yield || count > LIMIT_NAMES)
        return diag_error(m->diag, op->loc, "%zu operands of %s: of a yield alone all operands "
                          "are set, at most %d", count, op_info[op->code].name, LIMIT_NAMES);
    for (size_t i = 0; i < count; i++)
        if (!ir_check_value(op->parent->program, op->loc, values[i]))
            return false;
    return try_operands(m, op, arena_copy(&m->arena, values, count * sizeof *values),
                        (unsigned)count);
}

bool tilus_op_set_operands(tilus_op *op, tilus_value *const *operands, size_t count)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && (operands || !count))
        IR_CALL(m, ok, false, set_operands(m, op_of(op), (Value *const *)operands, count));
    return ok;
}

/* ---- values ------------------------------------------------------------------ */

static bool set_type(Program *p, Value *v, const Type *t)
{
    Module *m = p->module;
    if (!ir_has_type(m, t))
        return diag_error(m->diag, v->loc, "a type that is not of this module");
    if (v->program || v->type->kind != t->kind)
        return diag_error(m->diag, v->loc, "%s keeps its type, %s, got %s",
                          v->program ? "a parameter" : "a value of another kind",
                          type_text(m, v->type), type_text(m, t));
    if (t->kind == TYPE_SCALAR && dtype_is_float(t->dtype))
        return diag_error(m->diag, v->loc, "only parameters are scalars of floats, got %s",
                          type_text(m, t));
    v->type = t;
    m->edits++;
    return true;
}

bool tilus_value_set_type(tilus_value *value, const tilus_type *type)
{
    Program *p = ir_value_program(value_of(value));
    bool ok = false;
    if (p && type)
        IR_CALL(p->module, ok, false, set_type(p, value_of(value), type_of(type)));
    return ok;
}

static bool is_name(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!ascii_is_alphanumeric(name[i]) && name[i] != '_')
            return false;
    return len > 0 && len <= LIMIT_IDENTIFIER && !ascii_is_digit(name[0]);
}

static bool set_name(Program *p, Value *v, const char *name)
{
    Module *m = p->module;
    if (name && !is_name(name))
        return diag_error(m->diag, v->loc, "a value is named by letters, digits and _");
    if (!name && v->program)
        return diag_error(m->diag, v->loc, "a parameter has a name");
    v->name = name ? arena_strdup(&m->arena, name) : NULL;
    m->edits++;
    return true;
}

bool tilus_value_set_name(tilus_value *value, const char *name)
{
    Program *p = ir_value_program(value_of(value));
    bool ok = false;
    if (p)
        IR_CALL(p->module, ok, false, set_name(p, value_of(value), name));
    return ok;
}

typedef struct Replacement {
    Module *m;
    const Op *except;
} Replacement;

static bool resolve_op(Op *op, void *data)
{
    const Replacement *r = data;
    if (op != r->except)
        op_resolve(r->m, op);
    return true;
}

/* Substitutes in copies of lists, which ops may share. */
static bool replace_uses(Program *p, Value *from, Value *to, const Op *except)
{
    Replacement r = {p->module, except};
    if (!ir_check_value(p, from->loc, to))
        return false;
    if (from->type != to->type)
        return diag_error(p->module->diag, from->loc, "a %s in place of a %s",
                          type_text(p->module, to->type), type_text(p->module, from->type));
    if (from == to)
        return true;
    p->module->edits++;
    value_forward(from, to);
    region_walk(p->body, resolve_op, &r);
    from->data = NULL;
    return true;
}

bool tilus_value_replace_uses(tilus_value *from, tilus_value *to, const tilus_op *except)
{
    Program *p = ir_value_program(value_of(from));
    bool ok = false;
    if (!p || !to)
        return false;
    IR_CALL(p->module, ok, false, replace_uses(p, value_of(from), value_of(to), op_of(except)));
    value_of(from)->data = NULL;
    return ok;
}

/* ---- erasing -------------------------------------------------------------------- */

static bool check_unused(Module *m, const Op *op, bool results)
{
    Value *v;
    const Op *user = op_find_outer_user(op, results, &v);
    if (!user)
        return true;
    diag_error(m->diag, op->loc, "%s cannot be erased: %s is used", op_info[op->code].name,
               value_text(m, v));
    return diag_note(m->diag, user->loc, "%s uses it", op_info[user->code].name);
}

static bool check_movable(Module *m, const Op *op)
{
    return ir_check_live(m, op) &&
           (op->code != OP_yield ||
            diag_error(m->diag, op->loc, "a yield stays at the end of its region"));
}

static bool erase(Module *m, Op *op)
{
    if (!check_movable(m, op) || !check_unused(m, op, true))
        return false;
    op_remove(op);
    m->edits++;
    return true;
}

bool tilus_op_erase(tilus_op *op)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m)
        IR_CALL(m, ok, false, erase(m, op_of(op)));
    return ok;
}

static bool check_replacement(Module *m, const Op *op, Value *const *values, size_t count)
{
    if (!check_movable(m, op) || !check_unused(m, op, false))
        return false;
    if (count != op->result_count)
        return diag_error(m->diag, op->loc, "%zu values in place of %u results of %s", count,
                          op->result_count, op_info[op->code].name);
    for (size_t i = 0; i < count; i++) {
        const Value *from = op->results[i], *to = values[i];
        if (!ir_check_value(op->parent->program, op->loc, to))
            return false;
        if (op_defines(op, to) || to->type != from->type)
            return diag_error(m->diag, op->loc, "result %zu of %s in place of itself, or a value "
                              "of another type", i, op_info[op->code].name);
    }
    return true;
}

static bool replace(Module *m, Op *op, Value *const *values, size_t count)
{
    if (!check_replacement(m, op, values, count))
        return false;
    for (size_t i = 0; i < count; i++)
        replace_uses(op->parent->program, op->results[i], values[i], op);
    return erase(m, op);
}

bool tilus_op_replace(tilus_op *op, tilus_value *const *values, size_t count)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && (values || !count))
        IR_CALL(m, ok, false, replace(m, op_of(op), (Value *const *)values, count));
    return ok;
}

/* ---- moving and copying ------------------------------------------------------------- */

static bool check_target(Module *m, Op *op, Op *beside, Place *place)
{
    if (!check_movable(m, op) || !ir_check_live(m, beside))
        return false;
    if (ir_op_program(op) != ir_op_program(beside))
        return diag_error(m->diag, op->loc, "%s goes to another program", op_info[op->code].name);
    return ir_check_place(op->loc, place, ir_levels(op));
}

static bool move(Module *m, Op *op, Op *beside, bool after)
{
    Place place = {beside->parent, after ? beside->next : beside};
    if (after && beside->code == OP_yield)
        return diag_error(m->diag, op->loc, "a place behind a yield");
    if (!check_target(m, op, beside, &place))
        return false;
    if (op_is_within(beside, op))
        return beside == op || diag_error(m->diag, op->loc, "%s goes into itself",
                                          op_info[op->code].name);
    if (place.before == op)
        return true;
    op_remove(op);
    op_insert(place.r, op, place.before);
    m->edits++;
    return true;
}

static bool move_checked(tilus_op *op, tilus_op *place, bool after)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && place && ir_op_module(op_of(place)) == m)
        IR_CALL(m, ok, false, move(m, op_of(op), op_of(place), after));
    return ok;
}

bool tilus_op_move_before(tilus_op *op, tilus_op *place) { return move_checked(op, place, false); }
bool tilus_op_move_after(tilus_op *op, tilus_op *place) { return move_checked(op, place, true); }

static Op *clone(Module *m, Op *op, Op *before)
{
    Place place = {before->parent, before};
    if (!check_target(m, op, before, &place))
        return NULL;
    m->edits++;
    op_copy(m, op, place.r, place.before);
    return place.before ? place.before->prev : place.r->last;
}

tilus_op *tilus_op_clone(tilus_op *op, tilus_op *before)
{
    Module *m = ir_op_module(op_of(op));
    Op *copy = NULL;
    if (!m || !before || ir_op_module(op_of(before)) != m)
        return NULL;
    IR_CALL(m, copy, NULL, clone(m, op_of(op), op_of(before)));
    Program *p = ir_op_program(op_of(op));
    if (p)
        program_clear_data(p);
    return op_handle(copy);
}
