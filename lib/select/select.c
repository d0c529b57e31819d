/* Choosing, writing and following the instructions of loads and stores. */
#include "select/select.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "select/plan.h"

/* ---- attributes ----------------------------------------------------------- */

bool plan_is_written(const Op *op)
{
    return op_attr(op, ATTR_VIA) || op_attr(op, ATTR_WIDTH) || op_attr(op, ATTR_DRAIN);
}

void plan_drop(Op *op)
{
    op_remove_attr(op, ATTR_VIA);
    op_remove_attr(op, ATTR_WIDTH);
    op_remove_attr(op, ATTR_UNIT);
    op_remove_attr(op, ATTR_CHECKED);
    op_remove_attr(op, ATTR_DRAIN);
}

/* ---- choosing ----------------------------------------------------------- */

static bool plan_matrices(Module *m, const Op *op, unsigned sm, MatrixPlan *plan,
                          const char **why)
{
    bool shared = op_memory_operand(op)->type->kind == TYPE_SHARED, load = op->result_count > 0;
    *why = op_index(op) ? "a register tensor says where its elements lie"
                        : "only shared memory has matrices";
    if (!shared || op_index(op) || !matrix_plan(m, op, plan, why))
        return false;
    *why = "stmatrix needs sm_90 or later";
    return load || sm >= SM_STMATRIX;
}

const char *select_matrix_reason(Module *m, const Op *op, unsigned sm)
{
    MatrixPlan plan;
    const char *why;
    return plan_matrices(m, op, sm, &plan, &why) ? NULL : why;
}

/* Prefers matrices: a tile that they fit has plain accesses of 4 bytes at most. */
Access select_access(Module *m, const Op *op, unsigned sm)
{
    Access a = {.unit = 1, .bytes = MATRIX_ROW_BYTES};
    const char *why;
    if (!plan_matrices(m, op, sm, &a.matrix, &why))
        return access_plan(m, op);
    a.via = a.matrix.via;
    return a;
}

/* ---- following ---------------------------------------------------------- */

uint32_t select_read_checked(const Op *op)
{
    const Attr *checked = op_attr(op, ATTR_CHECKED);
    uint32_t dims = 0;
    for (unsigned i = 0; checked && i < checked->count; i++)
        dims |= UINT32_C(1) << checked->ints[i];
    return dims;
}

/* The verifier has seen the form of the attributes. */
static Access read_attributes(const Op *op)
{
    const Attr *width = op_attr(op, ATTR_WIDTH);
    const Attr *unit = op_attr(op, ATTR_UNIT);
    Access a = {.via = op_via(op), .unit = 1,
                .checked = select_read_checked(op)};
    if (via_info[a.via].matrices)
        a.bytes = MATRIX_ROW_BYTES;
    else if (width)
        a.bytes = (unsigned)width->integer;
    if (unit)
        a.unit = unit->integer;
    return a;
}

static bool check_matrices(Module *m, const Op *op, Access *a)
{
    const ViaInfo *info = &via_info[a->via];
    const char *why = "a register tensor says where its elements lie";
    if (op_index(op) || !matrix_plan(m, op, &a->matrix, &why))
        return diag_error(m->diag, op->loc, "via = %s cannot be proved: %s",
                          info->spelling, why);
    const ViaInfo *proved = &via_info[a->matrix.via];
    if (proved->transposed != info->transposed || proved->matrices % info->matrices)
        return diag_error(m->diag, op->loc, "via = %s does not fit this tile, the layout and the "
                          "strides make it %s", info->spelling, proved->spelling);
    a->matrix.via = a->via;
    return true;
}

static bool check_units(Module *m, const Op *op, const Access *a)
{
    unsigned proved = access_unit_width(m, op, a->unit);
    if (a->bytes <= proved)
        return true;
    const char *why = access_reason(m, op, a->unit, a->bytes);
    if (!proved)
        return diag_error(m->diag, op->loc, "unit = %lld promises more than can be proved, as "
                          "unit = 1: %s", (long long)a->unit, why);
    return diag_error(m->diag, op->loc, "width = %u promises more than can be proved, width = %u: "
                      "%s", a->bytes, proved, why);
}

bool select_check_checked(Module *m, const Op *op, const MemoryTile *t, uint32_t checked)
{
    uint32_t lacking = access_checked_dims(op, t) & ~checked;
    for (unsigned d = 0; lacking >> d; d++)
        if (lacking >> d & 1 && memory_tile_is_indexed(t, d))
            return diag_error(m->diag, op->loc, "dimension %u is not in checked, and nothing "
                              "proves that the indices %s stay inside extent %s", d,
                              value_text(m, t->index),
                              expr_text(m, t->memory->type->extents[d]));
        else if (lacking >> d & 1)
            return diag_error(m->diag, op->loc, "dimension %u is not in checked, and nothing proves "
                              "that the tile at offset %s stays inside extent %s", d,
                              expr_text(m, t->offsets->exprs[d]),
                              expr_text(m, t->memory->type->extents[d]));
    return true;
}

uint32_t select_needed_checks(const Op *op)
{
    MemoryTile tile = op->code == OP_copy_async ? op_source_tile(op) : op_memory_tile(op);
    return access_checked_dims(op, &tile);
}

bool select_follow(Module *m, const Op *op, unsigned sm, Access *a)
{
    *a = plan_is_written(op) ? read_attributes(op) : select_access(m, op, sm);
    if (!plan_is_written(op))
        return true;
    if (via_info[a->via].matrices)
        return check_matrices(m, op, a);
    MemoryTile tile = op_memory_tile(op);
    return select_check_checked(m, op, &tile, a->checked) &&
           (a->via == VIA_bits || check_units(m, op, a));
}

bool select_has_units(Module *m, const Op *op)
{
    Access a = read_attributes(op);
    return a.via != VIA_units || a.bytes <= access_unit_width(m, op, a.unit);
}

/* ---- writing -------------------------------------------------------------- */

void select_write_checked(Module *m, Op *op, uint32_t checked)
{
    int64_t dims[LIMIT_RANK];
    unsigned count = 0;
    for (unsigned d = 0; d < LIMIT_RANK; d++)
        if (checked >> d & 1)
            dims[count++] = d;
    if (count)
        op_set_attr(m, op, (Attr){.kind = ATTR_CHECKED, .count = count,
                                  .ints = arena_copy(&m->arena, dims, count * sizeof *dims)});
}

void select_write(Module *m, Op *op, const Access *a)
{
    if (a->via != VIA_units)
        op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = a->via});
    if (a->via != VIA_bits)
        op_set_attr(m, op, (Attr){.kind = ATTR_WIDTH, .integer = a->bytes});
    if (a->via == VIA_units)
        op_set_attr(m, op, (Attr){.kind = ATTR_UNIT, .integer = a->unit});
    select_write_checked(m, op, a->checked);
}
