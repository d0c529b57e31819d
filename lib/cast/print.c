/* Plans as text. */
#include "cast/plan.h"

#include <string.h>

static const char *const family_names[CAST_FAMILY_COUNT] = {
    [CAST_FAMILY_magic] = "magic",       [CAST_FAMILY_subnormal] = "subnormal",
    [CAST_FAMILY_realign] = "realign",   [CAST_FAMILY_lookup] = "lookup",
    [CAST_FAMILY_hardware] = "hardware", [CAST_FAMILY_bytes] = "bytes",
    [CAST_FAMILY_bare] = "bare",
    [CAST_FAMILY_linear] = "linear",     [CAST_FAMILY_quantum] = "quantum",
    [CAST_FAMILY_carry] = "carry",       [CAST_FAMILY_convert] = "hardware",
    [CAST_FAMILY_codebook] = "codebook",
};

const char *cast_family_word(CastFamily family)
{
    return family_names[family];
}

unsigned cast_families_named(const char *word)
{
    unsigned families = 0;
    for (CastFamily f = 0; f < CAST_FAMILY_COUNT; f++)
        if (!strcmp(family_names[f], word))
            families |= 1u << f;
    return families;
}

const char *cast_family_name(Arena *arena, const CastPlan *plan)
{
    const char *name = family_names[plan->family];
    if (plan->less != DTYPE_none)
        return arena_printf(arena, "%s less %s", name, dtype_name(plan->less));
    if (plan->via == plan->query.to || plan->via == plan->query.from ||
        (plan->via == DTYPE_f32 && plan->query.to == DTYPE_tf32))
        return name;
    return arena_printf(arena, "%s via %s", name, dtype_name(plan->via));
}

void cast_print_heading(Text *out)
{
    text_printf(out, "%-7s %-7s %8s  %-20s %6s %6s %6s %6s %6s\n", "from", "to", "elements",
                "family", "int", "half", "f32", "cvt", "total");
}

void cast_print_query(Text *out, const CastQuery *query)
{
    text_printf(out, "%-7s ", dtype_name(query->from));
    if (query->packed)
        text_printf(out, "packed(%s) ", dtype_name(query->packed));
    if (query->finite)
        text_printf(out, "finite ");
    text_printf(out, "%-7s %8u  ", dtype_name(query->to), query->elements);
}

void cast_print_row(Text *out, const CastPlan *plan)
{
    CastCount count = cast_count(plan);
    double elements = plan->query.elements;
    cast_print_query(out, &plan->query);
    text_printf(out, "%-20s", cast_family_name(out->arena, plan));
    for (CastUnit unit = CAST_UNIT_INT; unit < CAST_UNIT_COUNT; unit++)
        text_printf(out, " %6.3f", count.unit[unit] / elements);
    text_printf(out, " %6.3f\n", count.total / elements);
}

/* Prints an operand of an operation: the number of an earlier one, or a constant. */
static void print_input(Text *out, const CastPlan *plan, unsigned node)
{
    const CastOp *op = &plan->ops[node];
    if (op->code == CAST_constant)
        text_printf(out, "0x%x", op->imm);
    else if (op->code == CAST_input && op->imm >= cast_source_words(&plan->query))
        text_printf(out, "%%%s%u", plan->less == DTYPE_none ? "table" : "zero",
                    op->imm - cast_source_words(&plan->query));
    else if (op->code == CAST_input)
        text_printf(out, "%%in%u", op->imm);
    else
        text_printf(out, "%%%u", node);
}

void cast_print_op(Text *out, const CastPlan *plan, unsigned node)
{
    const CastOp *op = &plan->ops[node];
    const CastOpInfo *info = &cast_op_info[op->code];
    text_printf(out, "%%%u = %s", node, info->name);
    for (unsigned i = 0; i < info->inputs; i++) {
        text_add(out, i ? ", " : " ");
        print_input(out, plan, op->in[i]);
    }
    if (op->code == CAST_lop3)
        text_printf(out, ", 0x%x", op->imm);
    else if (op->code == CAST_shl || op->code == CAST_shr || op->code == CAST_shf)
        text_printf(out, ", %u", op->imm);
}

void cast_print_ops(Text *out, const CastPlan *plan)
{
    for (unsigned i = 0; i < plan->count; i++)
        if (cast_op_info[plan->ops[i].code].unit != CAST_UNIT_NONE) {
            text_add(out, "    ");
            cast_print_op(out, plan, i);
            text_char(out, '\n');
        }
    text_add(out, "    out");
    for (unsigned i = 0; i < plan->out_words; i++) {
        text_add(out, i ? ", " : " ");
        print_input(out, plan, plan->out[i]);
    }
    text_char(out, '\n');
}
