/* The structure of ops. */
#include "ir/structure.h"

#include "ir/text.h"
#include "ir/uses.h"
#include "ir/verify.h"

/* ---- attributes --------------------------------------------------------- */

/* Attributes that the parser reads wherever an op may have them. */
static uint64_t always_needed(void)
{
    return op_attr_bit(ATTR_COND) | op_attr_bit(ATTR_LABEL) | op_attr_bit(ATTR_COUNTER) |
           op_attr_bit(ATTR_NUMBER) | op_attr_bit(ATTR_PREDICATE) | op_attr_bit(ATTR_LOWER) |
           op_attr_bit(ATTR_UPPER) | op_attr_bit(ATTR_BEGIN) | op_attr_bit(ATTR_THREADS);
}

bool op_needs_attr(OpCode code, AttrKind kind)
{
    if (!(op_info[code].attrs & op_attr_bit(kind)))
        return false;
    bool value = kind == ATTR_VALUE && code != OP_iota && code != OP_print;
    return value || always_needed() & op_attr_bit(kind);
}

static bool check_attrs(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name;
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++)
        if (op_needs_attr(op->code, kind) && !op_attr(op, kind))
            return diag_error(m->diag, op->loc, "%s needs attribute %s", name, attr_name(kind));
    const Attr *indexed = op_attr(op, ATTR_INDEXED);
    const Attr *offsets = op_attr(op, ATTR_SOURCE_OFFSETS);
    offsets = offsets ? offsets : op_attr(op, ATTR_OFFSETS);
    if (indexed && (!offsets || indexed->integer < 0 || indexed->integer >= offsets->count))
        return diag_error(m->diag, op->loc, "%s: indexed is %lld, of %u offsets", name,
                          (long long)indexed->integer, offsets ? offsets->count : 0);
    return op->code != OP_print || op->operand_count + (op_expr(op, ATTR_VALUE) != NULL) == 1 ||
           diag_error(m->diag, op->loc, "print takes a label and one tensor or number");
}

/* ---- values ---------------------------------------------------------------- */

static bool is_integer_scalar(const Type *t)
{
    return t->kind == TYPE_SCALAR && !dtype_is_float(t->dtype);
}

static bool is_carried(const Type *t)
{
    return t->kind == TYPE_REG || is_integer_scalar(t);
}

/* Operands of ops whose row does not name their kinds. */
static bool check_any_operands(Module *m, const Op *op)
{
    bool prints = op->code == OP_print;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Type *t = op->operands[i]->type;
        bool tensor = t->kind == TYPE_REG || t->kind == TYPE_SHARED || t->kind == TYPE_GLOBAL;
        if (prints ? !tensor : !is_carried(t))
            return diag_error(m->diag, op->loc, "operand %u of %s is a %s: %s", i + 1,
                              op_info[op->code].name, verify_kind_text(t->kind), type_text(m, t));
    }
    return true;
}

static bool check_operands(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    bool any = info->operand_count == OPERANDS_ANY && !info->operand_least;
    if (op->operand_count > LIMIT_NAMES)
        return diag_error(m->diag, op->loc, "more than %d operands", LIMIT_NAMES);
    return any ? check_any_operands(m, op) : verify_operands(m, op);
}

/* How many results an op has, as far as its row says. */
static bool count_fits(const Program *p, const Op *op)
{
    unsigned n = op->result_count;
    switch (op_info[op->code].result) {
    case RESULT_NONE: return n == 0;
    case RESULT_OPTIONAL: return n <= 1;
    case RESULT_INDICES: return n == p->grid_rank;
    case RESULT_EACH: return n == op->operand_count;
    case RESULT_CARRIED: return n <= LIMIT_NAMES && (op->code == OP_if || n == op->operand_count);
    default: return n == 1;
    }
}

static bool result_fits(const Op *op, const Type *t)
{
    switch (op_info[op->code].result) {
    case RESULT_SHARED: return t->kind == TYPE_SHARED;
    case RESULT_GLOBAL: return t->kind == TYPE_GLOBAL;
    case RESULT_MBARRIER: return t->kind == TYPE_MBARRIER;
    case RESULT_INDICES:
    case RESULT_SCALAR: return is_integer_scalar(t);
    case RESULT_CARRIED: return is_carried(t);
    case RESULT_TENSOR: return t->kind == op->operands[0]->type->kind;
    default: return t->kind == TYPE_REG;
    }
}

static bool check_results(Module *m, const Program *p, const Op *op)
{
    if (!count_fits(p, op))
        return diag_error(m->diag, op->loc, "%s gives another number of results, got %u",
                          op_info[op->code].name, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++)
        if (!result_fits(op, op->results[i]->type))
            return diag_error(m->diag, op->loc, "%s does not give %s", op_info[op->code].name,
                              type_text(m, op->results[i]->type));
    return true;
}

/* ---- expressions ------------------------------------------------------------ */

static bool is_integer(Value *v, void *data)
{
    (void)data;
    return is_integer_scalar(v->type);
}

static bool check_expr(Module *m, const Op *op, const Attr *a, const Expr *e)
{
    bool may_float = a->kind == ATTR_VALUE && (op->code == OP_splat || op->code == OP_print);
    if ((may_float && e->kind == EXPR_VALUE) || expr_visit_values(e, is_integer, NULL))
        return true;
    return diag_error(m->diag, op->loc, "%s: attribute %s has a value that is no integer: %s",
                      op_info[op->code].name, attr_name(a->kind), expr_text(m, e));
}

static bool check_exprs(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (a->expr && !check_expr(m, op, a, a->expr))
            return false;
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            if (!check_expr(m, op, a, a->exprs[j]))
                return false;
    }
    return true;
}

/* ---- regions ------------------------------------------------------------------ */

static unsigned count_regions(OpCode code)
{
    return code == OP_if ? 2 : code == OP_for || code == OP_while || code == OP_thread_group;
}

/* The arguments of a loop's body: the index of a `for`, then the carried values. */
static bool check_arguments(Module *m, const Op *op, const Region *r)
{
    unsigned first = op->code == OP_for;
    bool loops = first || op->code == OP_while;
    bool fits = r->arg_count == (loops ? op->operand_count + first : 0);
    fits = fits && (!first || r->args[0]->type == type_scalar(m, DTYPE_i64));
    for (unsigned i = 0; fits && loops && i < op->operand_count; i++)
        fits = verify_types_agree(m, r->args[i + first]->type, op->operands[i]->type);
    return fits || diag_error(m->diag, op->loc, "the region of %s does not take the values that "
                              "it carries", op_info[op->code].name);
}

static bool check_yield(Module *m, const Op *op, const Region *r)
{
    for (const Op *inner = r->first; inner; inner = inner->next)
        if ((inner->code == OP_yield) != !inner->next)
            return diag_error(m->diag, op->loc, "a region of %s does not end with its only yield",
                              op_info[op->code].name);
    return r->first || diag_error(m->diag, op->loc, "a region of %s without a yield",
                                  op_info[op->code].name);
}

static bool check_regions(Module *m, const Op *op)
{
    if (op->region_count != count_regions(op->code))
        return diag_error(m->diag, op->loc, "%s has %u regions, got %u", op_info[op->code].name,
                          count_regions(op->code), op->region_count);
    for (unsigned i = 0; i < op->region_count; i++)
        if (!check_arguments(m, op, op->regions[i]) || !check_yield(m, op, op->regions[i]))
            return false;
    return true;
}

/* ---- all of it ------------------------------------------------------------------ */

bool verify_op_structure(Program *p, const Op *op)
{
    Module *m = p->module;
    return check_attrs(m, op) && check_operands(m, op) && check_results(m, p, op) &&
           check_exprs(m, op) && check_regions(m, op);
}

static bool check_op(Op *op, void *data)
{
    bool *ok = data;
    *ok = verify_op_structure(op->parent->program, op) && *ok;
    return true;
}

bool verify_structure(Module *m)
{
    bool ok = true;
    for (Program *p = m->programs; p; p = p->next)
        region_walk(p->body, check_op, &ok);
    return ok;
}

bool verify_edited(Module *m)
{
    if (m->edits == m->verified_edits)
        return true;
    if (!verify_structure(m) || !verify_module(m))
        return false;
    m->verified_edits = m->edits;
    return true;
}
