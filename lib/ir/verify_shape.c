/* The verifier's rules of reduce, scan, broadcast, shuffle and convert_layout. */
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/verify.h"

static bool verify_reduced_dims(Module *m, const Op *op)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    unsigned rank = op->operands[0]->type->rank;
    if (!dims || !dims->count)
        return diag_error(m->diag, op->loc, "reduce needs its dimensions: {dims = [0]}");
    for (unsigned i = 0; i < dims->count; i++)
        if (dims->ints[i] < 0 || dims->ints[i] >= rank ||
            (i && dims->ints[i] <= dims->ints[i - 1]))
            return diag_error(m->diag, op->loc, "dims entry %u is %lld, it must grow and be below "
                              "the rank %u", i, (long long)dims->ints[i], rank);
    return true;
}

/* Checks that the kind takes elements of `t` and as many dimensions. */
static bool verify_reduce_kind(Module *m, const Op *op, DType t)
{
    ReduceKind kind = reduce_kind(op);
    const char *word = attr_word_text(op_attr(op, ATTR_KIND));
    bool bools = reduce_takes_bools(kind);
    if (bools && t != DTYPE_bool)
        return diag_error(m->diag, op->loc, "%s {kind = %s} takes bool, got %s",
                          op_info[op->code].name, word, dtype_name(t));
    if (!bools && (t == DTYPE_bool || t == DTYPE_ue8m0))
        return diag_error(m->diag, op->loc, "%s {kind = %s} is not defined for %s",
                          op_info[op->code].name, word, dtype_name(t));
    if (reduce_gives_index(kind) && op_attr(op, ATTR_DIMS)->count != 1)
        return diag_error(m->diag, op->loc, "reduce {kind = %s} takes one dimension, got %u",
                          word, op_attr(op, ATTR_DIMS)->count);
    return true;
}

const Type *verify_reduce_type(Module *m, const Op *op)
{
    const Type *t = op->operands[0]->type;
    const char *why = NULL;
    const Expr *extents[LIMIT_RANK];
    const Attr *kind = op_attr(op, ATTR_KIND);
    if (reduce_kind(op) == REDUCE_NONE) {
        diag_error(m->diag, op->loc, "reduce needs a kind, %s, got %s",
                   attr_words_text(&m->arena, ATTR_KIND), kind ? attr_word_text(kind) : "none");
        return NULL;
    }
    if (!verify_reduced_dims(m, op))
        return NULL;
    DType dtype = reduce_gives_index(reduce_kind(op)) ? DTYPE_i32 : t->dtype;
    for (unsigned d = 0; d < t->rank; d++)
        extents[d] = reduce_dims(op) >> d & 1 ? expr_constant(&m->exprs, 1) : t->extents[d];
    if (type_is_open(t))
        return type_reg_open(m, dtype, t->rank, extents);
    const Layout *layout = layout_reduce(&m->layouts, t->layout, reduce_dims(op), &why);
    if (!layout)
        diag_error(m->diag, op->loc, "%s", why);
    return layout ? type_reg(m, dtype, layout) : NULL;
}

bool verify_reduce(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type, *t = verify_reduce_type(m, op);
    if (!t)
        return false;
    if (t != given)
        return diag_error(m->diag, op->loc, "reduce gives %s here, got %s", type_text(m, t),
                          type_text(m, given));
    return verify_reduce_kind(m, op, op->operands[0]->type->dtype);
}

/* ---- scan and shuffle ------------------------------------------------------- */

/* Checks the dimension along which the op works, and that it keeps its operand's type. */
static bool verify_along(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    const Attr *dim = op_attr(op, ATTR_DIM);
    const char *name = op_info[op->code].name;
    if (!dim)
        return diag_error(m->diag, op->loc, "%s needs its dimension: {dim = 0}", name);
    if (dim->integer < 0 || dim->integer >= from->rank)
        return diag_error(m->diag, op->loc, "dim is %lld, it must be below the rank %u",
                          (long long)dim->integer, from->rank);
    if (from != to)
        return diag_error(m->diag, op->loc, "%s of %s gives that type, got %s", name,
                          type_text(m, from), type_text(m, to));
    return true;
}

bool verify_scan(Module *m, const Op *op)
{
    const Attr *kind = op_attr(op, ATTR_KIND);
    if (reduce_kind(op) > REDUCE_PRODUCT)
        return diag_error(m->diag, op->loc, "scan needs a kind, sum, max, min or product, got %s",
                          kind ? attr_word_text(kind) : "none");
    return verify_along(m, op) && verify_reduce_kind(m, op, op->operands[0]->type->dtype);
}

/* Checks that the threads that hold a dimension's elements are lanes of one warp: digits
 * below 32 in the thread's number. */
static bool verify_in_warp(Module *m, const Op *op)
{
    enum { WARP = 32 };
    const Layout *l = op->operands[0]->type->layout;
    for (unsigned i = 0; i < l->mode_count; i++) {
        bool spatial;
        int64_t weight = layout_mode_weight(l, i, &spatial), extent = l->modes[i].extent;
        if (l->modes[i].dim == op_dim(op) && spatial && WARP % (weight * extent))
            return diag_error(m->diag, op->loc, "shuffle moves elements within a warp of %d "
                              "threads, dimension %u spreads over %lld threads %lld apart", WARP,
                              op_dim(op), (long long)extent, (long long)weight);
    }
    return true;
}

bool verify_shuffle(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *index = op->operands[1]->type;
    if (!verify_along(m, op))
        return false;
    if (!dtype_is_integer(index->dtype) || dtype_bits(index->dtype) > 32)
        return diag_error(m->diag, op->loc, "shuffle takes indices of integers of at most 32 "
                          "bits, got %s", dtype_name(index->dtype));
    if (index != type_like(m, from, index->dtype))
        return diag_error(m->diag, op->loc, "shuffle of %s takes as many indices in the same "
                          "layout, got %s", type_text(m, from), type_text(m, index));
    return type_is_open(from) || verify_in_warp(m, op);
}

/* ---- broadcast ---------------------------------------------------------------- */

/* "[2, 0]": the index in slot 0 of `thread` in `l`; 0 where `operand` has extent 1. */
static const char *element_text(Module *m, const Layout *l, const Layout *operand,
                                int64_t thread)
{
    Text text;
    int64_t index[LIMIT_RANK];
    text_init(&text, &m->arena);
    layout_index(l, thread, 0, index);
    for (unsigned d = 0; d < l->rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "[",
                    operand->shape[d] == 1 ? 0 : (long long)index[d]);
    text_char(&text, ']');
    return text_string(&text);
}

static bool verify_broadcast_threads(Module *m, const Op *op)
{
    const Value *operand = op->operands[0];
    const Layout *from = operand->type->layout, *to = op->results[0]->type->layout;
    int64_t thread;
    if (layout_broadcasts(from, to, &thread))
        return true;
    return diag_error(m->diag, op->loc, "thread %lld needs element %s of %s in slot 0 and has "
                      "element %s there", (long long)thread, element_text(m, to, from, thread),
                      value_text(m, operand), element_text(m, from, from, thread));
}

bool verify_broadcast(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    bool fits = from->rank == to->rank;
    for (unsigned d = 0; fits && d < to->rank; d++)
        fits = from->extents[d] == to->extents[d] || type_extent(from, d) == 1;
    if (!fits)
        return diag_error(m->diag, op->loc, "broadcast repeats dimensions of extent 1, got %s "
                          "from %s", type_text(m, to), type_text(m, from));
    if (from->dtype != to->dtype)
        return diag_error(m->diag, op->loc, "broadcast keeps the element type, got %s from %s",
                          dtype_name(to->dtype), dtype_name(from->dtype));
    if (type_is_open(to))
        return true;
    if (from->layout->threads != to->layout->threads)
        return diag_error(m->diag, op->loc, "broadcast from %lld threads to %lld",
                          (long long)from->layout->threads, (long long)to->layout->threads);
    return verify_broadcast_threads(m, op);
}

bool verify_convert_layout(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (type_with_layout(m, from, NULL) != type_with_layout(m, to, NULL))
        return diag_error(m->diag, op->loc, "convert_layout keeps the shape and the element "
                          "type, got %s from %s", type_text(m, to), type_text(m, from));
    if (type_is_open(to) || from->layout->threads == to->layout->threads)
        return true;
    return diag_error(m->diag, op->loc, "convert_layout from %lld threads to %lld",
                      (long long)from->layout->threads, (long long)to->layout->threads);
}
