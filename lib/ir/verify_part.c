/* Verification of slices, and of tensors under other dimensions. */
#include "ir/tile.h"
#include "ir/verify.h"

#include "ir/loop.h"
#include "ir/part.h"
#include "ir/text.h"

/* ---- slice ------------------------------------------------------------------ */

/* A search through an offset's values for one that no pass makes a constant. */
typedef struct Constants {
    unsigned left;          /* values to visit: chains of definitions are as long as the text */
    const Op *loop;         /* whose index is no constant after unrolling, or NULL */
} Constants;

/* Returns true for the index of a loop whose iterations all become copies, and for a
 * `scalar` of such. */
static bool becomes_constant(Value *v, void *data)
{
    Constants *c = data;
    const Op *loop = v->region ? v->region->parent : NULL;
    if (!c->left)
        return false;
    c->left--;
    if (v->def && v->def->code == OP_scalar)
        return expr_visit_values(op_expr(v->def, ATTR_VALUE), becomes_constant, c);
    if (!loop || loop->code != OP_for || v != for_index(loop))
        return false;
    if (!for_unrolls_all(loop))
        c->loop = loop;
    return !c->loop;
}

static const char *unroll_advice(const Op *loop)
{
    return !op_attr(loop, ATTR_UNROLL) ? "mark the loop unroll"
           : for_iterations(loop) < 0  ? "mark the loop unroll, with constants as bounds and step"
                                       : "mark the loop unroll, without a number, so that each "
                                         "iteration has a copy";
}

static bool report_offset(Module *m, const Op *op, unsigned d, const Expr *offset,
                          const Op *loop)
{
    diag_error(m->diag, op->loc, "offset %u of a slice of registers must be a constant, got %s%s%s",
               d, expr_text(m, offset), loop ? ": " : "", loop ? unroll_advice(loop) : "");
    return loop && diag_note(m->diag, loop->loc, "the loop begins here");
}

/* Checks that a slice of registers begins at constants, or at what unroll-loops makes
 * constants. */
static bool verify_register_offsets(Module *m, const Op *op, const MemoryTile *t)
{
    enum { VALUES = 64 };
    for (unsigned d = 0; d < t->memory->type->rank; d++) {
        const Expr *offset = t->offsets->exprs[d];
        Constants c = {.left = VALUES};
        if (!expr_visit_values(offset, becomes_constant, &c))
            return report_offset(m, op, d, offset, c.loop);
        if (expr_is_constant(offset) &&
            !slice_check_offset(m->diag, op, d, offset->constant))
            return false;
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
    if (to->kind == TYPE_REG)
        return verify_register_offsets(m, op, &t);
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

/* ---- reshape ------------------------------------------------------------------- */

bool verify_reshape(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type;
    const char *why = NULL;
    const Type *t = reshape_type(m, op->operands[0]->type, given->rank, given->extents, &why);
    if (!t)
        return diag_error(m->diag, op->loc, "%s", why);
    return t == given || diag_error(m->diag, op->loc, "reshape gives %s here, got %s",
                                    type_text(m, t), type_text(m, given));
}

/* ---- concat and interleave --------------------------------------------------------- */

/* Checks that the operands, register tensors, have one type. */
static bool verify_parts(Module *m, const Op *op)
{
    const Type *first = op->operands[0]->type;
    for (unsigned i = 1; i < op->operand_count; i++)
        if (!verify_types_agree(m, first, op->operands[i]->type))
            return diag_error(m->diag, op->loc, "%s takes tensors of one type and layout, got "
                              "%s and %s", op_info[op->code].name, type_text(m, first),
                              type_text(m, op->operands[i]->type));
    return true;
}

/* The type of the operands, open if one of them is. */
static const Type *part_type(const Op *op)
{
    for (unsigned i = 1; i < op->operand_count; i++)
        if (type_is_open(op->operands[i]->type))
            return op->operands[i]->type;
    return op->operands[0]->type;
}

const Type *verify_join_type(Module *m, const Op *op)
{
    const char *name = op_info[op->code].name, *why = NULL;
    const Attr *dim = op_attr(op, ATTR_DIM);
    unsigned rank = op->operands[0]->type->rank;
    if (!dim)
        diag_error(m->diag, op->loc, "%s needs its dimension: {dim = 0}", name);
    else if (dim->integer < 0 || dim->integer >= rank)
        diag_error(m->diag, op->loc, "dim is %lld, it must be below the rank %u",
                   (long long)dim->integer, rank);
    if (!dim || dim->integer < 0 || dim->integer >= rank || !verify_parts(m, op))
        return NULL;
    const Type *t = join_type(m, op->code, part_type(op), op->operand_count,
                              (unsigned)dim->integer, &why);
    if (!t)
        diag_error(m->diag, op->loc, "%s", why);
    return t;
}

static bool verify_join(Module *m, const Op *op)
{
    const Type *given = op->results[0]->type, *t = verify_join_type(m, op);
    if (!t)
        return false;
    return t == given || diag_error(m->diag, op->loc, "%s gives %s here, got %s",
                                    op_info[op->code].name, type_text(m, t),
                                    type_text(m, given));
}

bool verify_concat(Module *m, const Op *op)
{
    return verify_join(m, op);
}

bool verify_interleave(Module *m, const Op *op)
{
    return verify_join(m, op);
}
