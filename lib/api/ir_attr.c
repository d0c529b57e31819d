/* Attributes of ops: reading, checking and setting them. */
#include "api/ir_edit.h"

#include "ir/op_attrs.h"
#include "ir/structure.h"
#include "support/utf8.h"

#include <ctype.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------ */

static double number_of(Constant n)
{
    double magnitude = (double)n.magnitude;
    return n.is_real ? n.real : n.negative ? -magnitude : magnitude;
}

static tilus_attr_kind kind_of(AttrKind kind)
{
    static const tilus_attr_kind kinds[] = {
        [ATTR_VALUE_EXPR] = TILUS_ATTR_EXPR,      [ATTR_VALUE_EXPRS] = TILUS_ATTR_EXPRS,
        [ATTR_VALUE_NUMBER] = TILUS_ATTR_NUMBER,  [ATTR_VALUE_TEXT] = TILUS_ATTR_TEXT,
        [ATTR_VALUE_INT] = TILUS_ATTR_INTEGER,    [ATTR_VALUE_INTS] = TILUS_ATTR_INTEGERS,
        [ATTR_VALUE_WORD] = TILUS_ATTR_WORD,      [ATTR_VALUE_SCALAR] = TILUS_ATTR_EXPR};
    return kinds[attr_info[kind].value];
}

static void read_attr(const Attr *a, tilus_attr *out)
{
    *out = (tilus_attr){.name = attr_name(a->kind), .kind = kind_of(a->kind)};
    switch (out->kind) {
    case TILUS_ATTR_INTEGER: out->integer = a->integer; break;
    case TILUS_ATTR_INTEGERS:
        out->integers = a->ints;
        out->count = a->count;
        break;
    case TILUS_ATTR_EXPR: out->expr = expr_handle(a->expr); break;
    case TILUS_ATTR_EXPRS:
        out->exprs = (const tilus_expr *const *)a->exprs;
        out->count = a->count;
        break;
    case TILUS_ATTR_NUMBER: out->number = number_of(a->number); break;
    case TILUS_ATTR_WORD: out->text = attr_word_text(a); break;
    case TILUS_ATTR_TEXT: out->text = a->text; break;
    }
}

size_t tilus_op_attr_count(const tilus_op *op) { return op ? op_of(op)->attr_count : 0; }

bool tilus_op_attr_at(const tilus_op *op, size_t i, tilus_attr *attr)
{
    if (i >= tilus_op_attr_count(op))
        return false;
    read_attr(&op_of(op)->attrs[i], attr);
    return true;
}

bool tilus_op_attr(const tilus_op *op, const char *name, tilus_attr *attr)
{
    AttrKind kind = op && name ? attr_find(name) : ATTR_COUNT;
    const Attr *a = kind == ATTR_COUNT ? NULL : op_attr(op_of(op), kind);
    if (a)
        read_attr(a, attr);
    return a;
}

/* ---- making ---------------------------------------------------------------- */

static bool take_text(Module *m, Loc loc, const char *text, Attr *out)
{
    bool line = utf8_valid(text, strlen(text));
    for (const char *c = text; *c; c++)
        line = line && *c != '"' && !iscntrl((unsigned char)*c);
    if (!line)
        return diag_error(m->diag, loc, "attribute %s is one line of UTF-8 without quotes",
                          attr_name(out->kind));
    out->text = arena_strdup(&m->arena, text);
    return true;
}

static bool take_word(Module *m, Loc loc, const char *text, Attr *out)
{
    out->word = attr_word_find(out->kind, text);
    return out->word < attr_info[out->kind].word_count ||
           diag_error(m->diag, loc, "attribute %s is %s, got %s", attr_name(out->kind),
                      attr_words_text(&m->arena, out->kind), text);
}

static bool take_list(Module *m, Loc loc, const tilus_attr *a, Attr *out)
{
    if (a->count > LIMIT_RANK)
        return diag_error(m->diag, loc, "attribute %s of %zu entries, it has at most %d", a->name,
                          a->count, LIMIT_RANK);
    out->count = (unsigned)a->count;
    if (a->kind == TILUS_ATTR_INTEGERS) {
        out->ints = arena_copy(&m->arena, a->integers, a->count * sizeof *a->integers);
        return true;
    }
    out->exprs = arena_copy(&m->arena, a->exprs, a->count * sizeof *a->exprs);
    return ir_check_exprs(m, loc, a->name, out->exprs, a->count);
}

static bool take_expr(Module *m, Loc loc, const tilus_attr *a, Attr *out)
{
    out->expr = expr_of(a->expr);
    return (!a->expr && out->kind == ATTR_UNROLL) ||
           ir_check_exprs(m, loc, a->name, &out->expr, 1);
}

static bool take_value(Module *m, Loc loc, const tilus_attr *a, Attr *out)
{
    bool given = a->kind == TILUS_ATTR_TEXT || a->kind == TILUS_ATTR_WORD ? a->text != NULL
                 : a->kind == TILUS_ATTR_INTEGERS ? a->integers || !a->count
                 : a->kind == TILUS_ATTR_EXPRS    ? a->exprs || !a->count
                                                  : true;
    if (!given)
        return diag_error(m->diag, loc, "attribute %s is missing its value", a->name);
    switch (a->kind) {
    case TILUS_ATTR_INTEGER: out->integer = a->integer; return true;
    case TILUS_ATTR_NUMBER: out->number = constant_of_real(a->number); return true;
    case TILUS_ATTR_WORD: return take_word(m, loc, a->text, out);
    case TILUS_ATTR_TEXT: return take_text(m, loc, a->text, out);
    case TILUS_ATTR_EXPR: return take_expr(m, loc, a, out);
    default: return take_list(m, loc, a, out);
    }
}

bool ir_take_attr(Module *m, OpCode code, Loc loc, const tilus_attr *a, Attr *out)
{
    AttrKind kind = a->name ? attr_find(a->name) : ATTR_COUNT;
    if (kind == ATTR_COUNT || !(op_info[code].attrs & op_attr_bit(kind)))
        return diag_error(m->diag, loc, "%s has no attribute %s", op_info[code].name,
                          a->name ? a->name : "(none)");
    if (a->kind != kind_of(kind))
        return diag_error(m->diag, loc, "attribute %s is of another kind, %d, got %d", a->name,
                          (int)kind_of(kind), (int)a->kind);
    *out = (Attr){.kind = kind};
    return take_value(m, loc, a, out);
}

/* ---- setting ------------------------------------------------------------------ */

/* Changes a copy first, which has to be of the op's structure as well. */
static bool try_attrs(Module *m, Op *op, const Op *changed)
{
    if (!verify_op_structure(op->parent->program, changed))
        return false;
    op->attrs = changed->attrs;
    op->attr_count = changed->attr_count;
    m->edits++;
    return true;
}

static Op copy_with_attrs(Module *m, const Op *op)
{
    Op copy = *op;
    copy.attrs = arena_array(&m->arena, Attr, op->attr_count + 1);
    for (unsigned i = 0; i < op->attr_count; i++)
        copy.attrs[i] = op->attrs[i];
    return copy;
}

static bool set_attr(Module *m, Op *op, const tilus_attr *a)
{
    Attr attr;
    if (!ir_check_live(m, op) || !ir_take_attr(m, op->code, op->loc, a, &attr))
        return false;
    Op changed = copy_with_attrs(m, op);
    op_set_attr(m, &changed, attr);
    return try_attrs(m, op, &changed);
}

bool tilus_op_set_attr(tilus_op *op, const tilus_attr *attr)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && attr)
        IR_CALL(m, ok, false, set_attr(m, op_of(op), attr));
    return ok;
}

static bool remove_attr(Module *m, Op *op, const char *name)
{
    AttrKind kind = attr_find(name);
    if (!ir_check_live(m, op))
        return false;
    if (kind == ATTR_COUNT || !op_attr(op, kind))
        return true;
    Op changed = copy_with_attrs(m, op);
    op_remove_attr(&changed, kind);
    return try_attrs(m, op, &changed);
}

bool tilus_op_remove_attr(tilus_op *op, const char *name)
{
    Module *m = ir_op_module(op_of(op));
    bool ok = false;
    if (m && name)
        IR_CALL(m, ok, false, remove_attr(m, op_of(op), name));
    return ok;
}
