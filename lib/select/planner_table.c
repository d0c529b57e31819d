/* The planner of lookup_shared, and its remarks. */
#include "memory/tensor_map.h"
#include "select/plan.h"

#include "support/remark.h"

/* ---- loads ------------------------------------------------------------------ */

/* Returns the reason why loads of `width` elements are not aligned in every row, or not
 * inside it; NULL when they are. */
static const char *reason_for_width(Module *m, const Value *memory, const TablePlan *p,
                                    unsigned width)
{
    int64_t bytes = width * p->bits / 8;
    if (access_base_alignment(memory) % (8 * bytes) || memory_first_alignment(m, memory) % width)
        return "the table does not begin at a multiple of these";
    for (unsigned d = 0; d < memory->type->rank; d++) {
        bool in_row = p->table.has_row && d + 1 == memory->type->rank;
        if (in_row ? p->stride[d] * 8 != p->bits : p->stride[d] % bytes != 0)
            return in_row ? "elements of a row are not neighbors"
                          : arena_printf(&m->arena, "the stride of dimension %u is %lld bytes", d,
                                         (long long)p->stride[d]);
    }
    return NULL;
}

/* ---- rows -------------------------------------------------------------------- */

static bool is_power_of_two(int64_t n)
{
    return n > 0 && !(n & (n - 1));
}

/* Returns true when a group's codes, taken as one number, count rows at equal distances. */
static bool counts_rows(const TablePlan *p)
{
    unsigned last = p->table.group - 1;
    for (unsigned d = 0; d < last; d++)
        if (p->stride[d] != p->stride[last] << (last - d) * p->code_bits)
            return false;
    return true;
}

static RowAddress choose_address(const TablePlan *p)
{
    enum { PERMUTED_BYTES = 256, BYTE = 8 };
    int64_t apart = table_row_bytes(p), copies = p->table.copies;
    int64_t copy_end = copies == 1 ? 1 : (copies - 1) * p->stride[p->table.group] + 1;
    if (!counts_rows(p) || !is_power_of_two(apart) || copy_end > apart)
        return ROW_BY_SUM;
    return apart == PERMUTED_BYTES && p->table.group * p->code_bits == BYTE ? ROW_BY_PRMT
                                                                           : ROW_BY_LOP3;
}

/* ---- plans ------------------------------------------------------------------- */

TablePlan table_plan(Module *m, const Op *op)
{
    const Value *memory = op->operands[1];
    TablePlan p = {.code_bits = dtype_bits(op->operands[0]->type->dtype),
                   .bits = dtype_bits(memory->type->dtype), .width = 1};
    lookup_table(memory->type, &p.table);
    for (unsigned d = 0; d < memory->type->rank; d++)
        p.stride[d] = type_stride(m, memory->type, d)->constant * p.bits / 8;
    while (2 * p.width <= p.table.group && !reason_for_width(m, memory, &p, 2 * p.width))
        p.width *= 2;
    p.address = choose_address(&p);
    return p;
}

static bool plan_table(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    plan->table = table_plan(m, op);
    return true;
}

static const char *reason_for_loads(Module *m, const Op *op, const Plan *plan)
{
    const TablePlan *p = &plan->table;
    return p->width == p->table.group
               ? NULL : reason_for_width(m, op->operands[1], p, 2 * p->width);
}

static void remark_table(Module *m, const Op *op, const Plan *plan)
{
    static const char *const by[] = {[ROW_BY_SUM] = "products and sums", [ROW_BY_LOP3] = "lop3",
                                     [ROW_BY_PRMT] = "prmt"};
    const TablePlan *p = &plan->table;
    unsigned bytes = p->width * p->bits / 8, loads = p->table.group / p->width;
    const char *why = plan_reason(m, op, plan), *name = op_info[op->code].name;
    REMARK(m, op, LookupChosen, R(name), R(bytes), R(loads), R(p->table.group), R(by[p->address]));
    if (why)
        REMARK(m, op, LookupNarrow, R(name), R(bytes), R(2 * bytes), R(why));
    if (p->address == ROW_BY_SUM)
        REMARK(m, op, LookupMultiplies, R(name), R(table_row_bytes(p)));
}

const Planner planner_table = {
    .family = PLAN_table, .plan = plan_table, .remark = remark_table,
    .reason = reason_for_loads,
};
