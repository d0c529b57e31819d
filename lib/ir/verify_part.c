/* Verification of slices and permutations. */
#include "ir/tile.h"
#include "ir/verify.h"

#include "ir/part.h"
#include "ir/text.h"

/* ---- slice ------------------------------------------------------------------ */

/* Checks that a slice of registers begins at constants, and multiples of its extents, as
 * all such slices lie alike in the threads. */
static bool verify_register_offsets(Module *m, const Op *op, const MemoryTile *t)
{
    for (unsigned d = 0; d < t->memory->type->rank; d++) {
        const Expr *offset = t->offsets->exprs[d];
        int dim = memory_tile_find(t, d);
        int64_t extent = dim < 0 ? 1 : t->extents[dim];
        if (!expr_is_constant(offset))
            return diag_error(m->diag, op->loc, "offset %u of a slice of registers must be a "
                              "constant, got %s", d, expr_text(m, offset));
        if (offset->constant % extent)
            return diag_error(m->diag, op->loc, "offset %u is %lld, a slice of registers begins "
                              "at a multiple of its extent %lld", d, (long long)offset->constant,
                              (long long)extent);
    }
    return true;
}

/* The type must be the one that follows from the operand's. */
static bool verify_slice_type(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *given = op->results[0]->type;
    const char *why = NULL;
    const Type *t = slice_type(m, from, op_attr(op, ATTR_DIMS), from->dtype, given->rank,
                               given->extents, &why);
    if (!t)
        return diag_error(m->diag, op->loc, "%s", why);
    return t == given || diag_error(m->diag, op->loc, "slice gives %s here, got %s",
                                    type_text(m, t), type_text(m, given));
}

bool verify_slice(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (to->kind != from->kind)
        return diag_error(m->diag, op->loc, "slice of %s cannot give %s", type_text(m, from),
                          type_text(m, to));
    if (to->kind == TYPE_GLOBAL && !verify_extents(m, op, to))
        return false;
    MemoryTile t = op_memory_tile(op);
    if (!verify_tile(m, op, &t) || !verify_slice_type(m, op))
        return false;
    if (to->kind == TYPE_REG && !verify_register_offsets(m, op, &t))
        return false;
    return to->kind == TYPE_GLOBAL || verify_constant_bounds(m, op, &t);
}

/* ---- permute ----------------------------------------------------------------- */

static bool verify_order(Module *m, const Op *op)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    unsigned rank = op->operands[0]->type->rank;
    uint32_t seen = 0;
    if (!dims || dims->count != rank)
        return diag_error(m->diag, op->loc, "permute needs the order of all %u dimensions, as "
                          "{dims = [1, 0]}, got %u", rank, dims ? dims->count : 0);
    for (unsigned i = 0; i < rank; i++) {
        if (dims->ints[i] < 0 || dims->ints[i] >= rank)
            return diag_error(m->diag, op->loc, "dims entry %u is %lld, it must be below the "
                              "rank %u", i, (long long)dims->ints[i], rank);
        if (seen >> dims->ints[i] & 1)
            return diag_error(m->diag, op->loc, "dimension %lld stands twice in dims",
                              (long long)dims->ints[i]);
        seen |= UINT32_C(1) << dims->ints[i];
    }
    return true;
}

const Type *verify_permute_type(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type;
    const Attr *dims = op_attr(op, ATTR_DIMS);
    const char *why = NULL;
    if (!verify_order(m, op))
        return NULL;
    const Type *t = permute_type(m, from, dims->ints, &why);
    if (!t)
        diag_error(m->diag, op->loc, "%s", why);
    return t;
}

bool verify_permute(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type, *t = verify_permute_type(m, op);
    if (!t)
        return false;
    return t == given || diag_error(m->diag, op->loc, "permute gives %s here, got %s",
                                    type_text(m, t), type_text(m, given));
}
