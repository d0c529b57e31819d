/* The verifier's rules of dequantize. */
#include "ir/text.h"
#include "ir/verify.h"

static const char *operand_text(Module *m, const Op *op, unsigned i)
{
    return value_text(m, op->operands[i]);
}

/* ---- element types --------------------------------------------------------- */

static bool is_code(DType t)
{
    return dtype_bits(t) <= 8 && t != DTYPE_bool;
}

static bool is_result(DType t)
{
    return t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32;
}

static bool is_scale(DType t)
{
    return is_result(t) || t == DTYPE_f8e4m3 || t == DTYPE_ue8m0;
}

static bool is_zero_point(DType t)
{
    return is_result(t) || (dtype_is_integer(t) && dtype_bits(t) <= 8);
}

static bool verify_element_types(Module *m, const Op *op)
{
    DType codes = op->operands[0]->type->dtype, scale = op->operands[1]->type->dtype;
    DType to = op->results[0]->type->dtype;
    if (!is_code(codes))
        return diag_error(m->diag, op->loc, "dequantize takes integers or floats of at most 8 "
                          "bits, got %s", dtype_name(codes));
    if (!is_result(to))
        return diag_error(m->diag, op->loc, "dequantize gives f16, bf16 or f32, got %s",
                          dtype_name(to));
    if (!is_scale(scale))
        return diag_error(m->diag, op->loc, "scales are f16, bf16, f32, f8e4m3 or ue8m0, got %s",
                          dtype_name(scale));
    if (op->operand_count < 3 || is_zero_point(op->operands[2]->type->dtype))
        return true;
    return diag_error(m->diag, op->loc, "zero points are integers of at most 8 bits, f16, bf16 "
                      "or f32, got %s", dtype_name(op->operands[2]->type->dtype));
}

/* ---- groups ------------------------------------------------------------------ */

static bool verify_groups_divide(Module *m, const Op *op, unsigned i)
{
    const Type *codes = op->operands[0]->type, *groups = op->operands[i]->type;
    bool fits = codes->rank == groups->rank;
    for (unsigned d = 0; fits && d < codes->rank; d++)
        fits = type_extent(codes, d) % type_extent(groups, d) == 0;
    if (fits)
        return true;
    return diag_error(m->diag, op->loc, "the extents of %s divide those of %s, got %s for %s",
                      operand_text(m, op, i), operand_text(m, op, 0), type_text(m, groups),
                      type_text(m, codes));
}

static const char *index_text(Module *m, unsigned rank, const int64_t *index)
{
    Text text;
    text_init(&text, &m->arena);
    for (unsigned d = 0; d < rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "[", (long long)index[d]);
    text_char(&text, ']');
    return text_string(&text);
}

/* Reports the element that `thread` lacks, and the layout in which it would have that. */
static bool report_lacking(Module *m, const Op *op, unsigned i, int64_t thread,
                           const Layout *suits)
{
    const Layout *codes = op->operands[0]->type->layout;
    int64_t element[LIMIT_RANK], needed[LIMIT_RANK], held[LIMIT_RANK];
    layout_index(codes, thread, 0, element);
    layout_index(suits, thread, 0, needed);
    layout_index(op->operands[i]->type->layout, thread, 0, held);
    Text would;
    text_init(&would, &m->arena);
    layout_print(&would, suits);
    return diag_error(m->diag, op->loc, "thread %lld has element %s of %s in slot 0 and needs "
                      "%s of %s there, but has %s; %s @ %s would do", (long long)thread,
                      index_text(m, codes->rank, element), operand_text(m, op, 0),
                      index_text(m, codes->rank, needed), operand_text(m, op, i),
                      index_text(m, codes->rank, held), operand_text(m, op, i),
                      text_string(&would));
}

/* Checks that each thread has the elements of operand `i` that its codes need. */
static bool verify_groups_held(Module *m, const Op *op, unsigned i)
{
    const Layout *codes = op->operands[0]->type->layout, *groups = op->operands[i]->type->layout;
    int64_t thread;
    const char *why;
    const Layout *suits = layout_group(&m->layouts, codes, groups->shape, &why);
    if (!suits)
        return diag_error(m->diag, op->loc, "no layout of %s gives each thread what it needs "
                          "for its part of %s: %s", operand_text(m, op, i), operand_text(m, op, 0),
                          why);
    return layout_broadcasts(groups, codes, &thread) ||
           report_lacking(m, op, i, thread, suits);
}

bool verify_dequantize(Module *m, const Op *op)
{
    const Type *codes = op->operands[0]->type, *to = op->results[0]->type;
    if (!verify_element_types(m, op) || !verify_conversion(m, op))
        return false;
    if (type_like(m, codes, to->dtype) != to)
        return diag_error(m->diag, op->loc, "dequantize keeps the %s, got %s from %s",
                          type_is_open(to) ? "shape" : "layout", type_text(m, to),
                          type_text(m, codes));
    for (unsigned i = 1; i < op->operand_count; i++)
        if (!verify_groups_divide(m, op, i) ||
            (!type_is_open(codes) && !verify_groups_held(m, op, i)))
            return false;
    return true;
}
