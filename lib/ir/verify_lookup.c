/* The verifier's rules of lookup and lookup_shared: codes, tables, and that no code
 * is past its table. */
#include "ir/lookup.h"
#include "ir/text.h"
#include "ir/verify.h"

static bool verify_codes(Module *m, const Op *op)
{
    const Type *codes = op->operands[0]->type, *given = op->results[0]->type;
    const Type *t = type_like(m, codes, op->operands[1]->type->dtype);
    if (dtype_info[codes->dtype].kind != DKIND_UINT ||
        dtype_bits(codes->dtype) > LOOKUP_BITS_MAX)
        return diag_error(m->diag, op->loc, "%s takes codes of u1 to u8, got %s",
                          op_info[op->code].name, dtype_name(codes->dtype));
    return t == given || diag_error(m->diag, op->loc, "%s gives %s here, got %s",
                                    op_info[op->code].name, type_text(m, t),
                                    type_text(m, given));
}

/* Elements that whole bytes hold, up to `most` bits. */
static bool verify_entries(Module *m, const Op *op, unsigned most)
{
    DType t = op->operands[1]->type->dtype;
    unsigned bits = dtype_bits(t);
    if (bits >= 8 && bits <= most)
        return true;
    return diag_error(m->diag, op->loc, "a table of %s has elements of 8 to %u bits, %s has "
                      "%u", op_info[op->code].name, most, dtype_name(t), bits);
}

/* Dimension `d` of the table has an entry for each code. */
static bool verify_reach(Module *m, const Op *op, unsigned d)
{
    const Type *codes = op->operands[0]->type, *table = op->operands[1]->type;
    int64_t needed = INT64_C(1) << dtype_bits(codes->dtype), extent = type_extent(table, d);
    if (extent >= needed)
        return true;
    return diag_error(m->diag, op->loc, "codes of %s choose among %lld entries, dimension %u "
                      "of the table has %lld", dtype_name(codes->dtype), (long long)needed, d,
                      (long long)extent);
}

/* ---- in registers ---------------------------------------------------------- */

static bool verify_table_layout(Module *m, const Op *op)
{
    const Type *t = op->operands[1]->type;
    const char *why;
    if (type_is_open(t))
        return true;
    const Layout *l = lookup_layout(m, t->layout->threads, type_extent(t, 0), &why);
    if (!l)
        return diag_error(m->diag, op->loc, "%s", why);
    if (t->layout == l)
        return true;
    return diag_error(m->diag, op->loc, "every thread must hold the whole table: %s, got %s",
                      type_text(m, type_reg(m, t->dtype, l)), type_text(m, t));
}

bool verify_lookup(Module *m, const Op *op)
{
    const Type *codes = op->operands[0]->type, *table = op->operands[1]->type;
    unsigned bits = dtype_bits(codes->dtype);
    if (!verify_codes(m, op) || !verify_entries(m, op, 16))
        return false;
    if (table->rank != 1)
        return diag_error(m->diag, op->loc, "a table in registers has rank 1, got %s",
                          type_text(m, table));
    if (bits > LOOKUP_REGISTER_BITS_MAX)
        return diag_error(m->diag, op->loc, "a table in registers serves codes of up to %d "
                          "bits, %s has %u: lookup_shared serves 8", LOOKUP_REGISTER_BITS_MAX,
                          dtype_name(codes->dtype), bits);
    return verify_reach(m, op, 0) && verify_table_layout(m, op);
}

/* ---- in shared memory -------------------------------------------------------- */

static bool verify_row(Module *m, const Op *op, const LookupTable *table)
{
    const Type *t = op->operands[1]->type;
    int64_t row = table->has_row ? type_extent(t, t->rank - 1) : 1;
    return row == table->group ||
           diag_error(m->diag, op->loc, "%u codes choose a row of %s together, it has %lld "
                      "elements", table->group, type_text(m, t), (long long)row);
}

/* A thread's codes are whole groups. */
static bool verify_groups(Module *m, const Op *op, const LookupTable *table)
{
    const Type *codes = op->operands[0]->type;
    if (type_is_open(codes) || codes->layout->slots % table->group == 0)
        return true;
    return diag_error(m->diag, op->loc, "the table is for groups of %u codes, a thread has "
                      "%lld of %s", table->group, (long long)codes->layout->slots,
                      type_text(m, codes));
}

bool verify_lookup_shared(Module *m, const Op *op)
{
    const Type *t = op->operands[1]->type;
    LookupTable table;
    if (!verify_codes(m, op) || !verify_entries(m, op, 32))
        return false;
    if (!lookup_table(t, &table))
        return diag_error(m->diag, op->loc, "a table in shared memory has rank 1 to 6, got %s",
                          type_text(m, t));
    if (t->swizzle.bits || t->swizzle_open)
        return diag_error(m->diag, op->loc, "a table in shared memory has no swizzle, got %s",
                          type_text(m, t));
    for (unsigned d = 0; d < table.group; d++)
        if (!verify_reach(m, op, d))
            return false;
    return verify_row(m, op, &table) && verify_groups(m, op, &table);
}
