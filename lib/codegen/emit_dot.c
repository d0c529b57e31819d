/* dot: tiles cut into the fragments of a tensor core instruction (mma.def).
 *
 * Each operand's layout is divided by the instruction's fragment layout (the
 * atom). The quotient numbers atoms: its thread is a warp, its slot tells where
 * in the thread's words the atom's fragment lies. With 16-bit elements:
 *
 *     a[m, k] = qa . column_local(2,2).spatial(8,4).local(1,2)    4 words an atom
 *     b[k, n] = qb . local(2,1).column_spatial(4,8).local(2,1)    2 words
 *     c[m, n] = qc . local(2,1).spatial(8,4).local(1,2)           4 words f32, 2 f16
 *
 * All warps run the same instructions on the same word numbers, so for atom
 * (i, j) of c in some slot, the slots of a (i, k) and b (k, j) must be the same
 * in every warp. */
#include "codegen/mma.h"

#include "ir/text.h"

#include <string.h>

static const char operand_name[] = "abc";

/* An operand cut into atoms. */
typedef struct Side {
    const Type *type;
    const Layout *atom, *quotient;
    int64_t words;              /* of an atom, in a thread */
    int64_t *slots;             /* slot of each atom (row-major) in one warp; -1 */
} Side;

typedef struct Dot {
    Codegen *cg;
    const Op *op;
    const Mma *mma;
    Side sides[MMA_OPERANDS];
} Dot;

/* ---- selection ---------------------------------------------------------- */

/* Says which types dot takes on the target; returns false. */
static bool note_types(const Dot *dot)
{
    const Target *target = dot->cg->target;
    Text text;
    text_init(&text, &dot->cg->module->scratch);
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        if (intrinsic_info[mma->intrinsic].sm <= target->sm)
            text_printf(&text, "%s (%s, %s, %s)", text.len ? "," : "",
                        dtype_name(mma->types[MMA_A]), dtype_name(mma->types[MMA_B]),
                        dtype_name(mma->types[MMA_C]));
    return diag_note(dot->cg->diag, dot->op->loc, "types (a, b, c) that fit on %s are%s",
                     target->name, text_string(&text));
}

static bool select_mma(Dot *dot)
{
    DType types[MMA_OPERANDS];
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        types[i] = dot->sides[i].type->dtype;
    dot->mma = mma_find(types);
    if (dot->mma)
        return true;
    diag_error(dot->cg->diag, dot->op->loc, "dot of %s, %s, %s has no instruction on %s",
               dtype_name(types[MMA_A]), dtype_name(types[MMA_B]), dtype_name(types[MMA_C]),
               dot->cg->target->name);
    return note_types(dot);
}

static const char *layout_text(Module *m, const Layout *l)
{
    Text text;
    text_init(&text, &m->scratch);
    layout_print(&text, l);
    return text_string(&text);
}

/* Refuses operand `i` because of `why`, and says what would fit. */
static bool refuse(const Dot *dot, unsigned i, const char *why)
{
    Module *m = dot->cg->module;
    const Side *s = &dot->sides[i];
    const Mma *mma = dot->mma;
    const Layout *l = s->type->layout;
    Loc at = dot->op->operands[i]->loc;
    const char *atom = layout_text(m, s->atom);
    int64_t shape[2];
    mma_shape(mma, i, shape);
    diag_error(m->diag, dot->op->loc, "operand %c of dot, %s @ %s, is not made of fragments "
               "%s of mma.m%lldn%lldk%lld: %s", operand_name[i], dtype_name(s->type->dtype),
               layout_text(m, l), atom, (long long)mma->m, (long long)mma->n,
               (long long)mma->k, why);
    if (l->shape[0] % shape[0] || l->shape[1] % shape[1])
        return diag_note(m->diag, at, "tiles that fit have extents that are multiples of "
                         "[%lld, %lld], and a layout L.%s, L over the warps",
                         (long long)shape[0], (long long)shape[1], atom);
    return diag_note(m->diag, at,
                     "a layout that fits is L.%s, L a layout of [%lld, %lld] over the warps",
                     atom, (long long)(l->shape[0] / shape[0]),
                     (long long)(l->shape[1] / shape[1]));
}

static bool open_side(Dot *dot, unsigned i)
{
    Module *m = dot->cg->module;
    Side *s = &dot->sides[i];
    const char *why;
    s->atom = mma_fragment(&m->layouts, dot->mma, i);
    s->quotient = layout_divide(&m->layouts, s->type->layout, s->atom, &why);
    if (!s->quotient)
        return refuse(dot, i, why);
    s->words = s->atom->slots * dtype_bits(s->type->dtype) / 32;
    s->slots = arena_array(&m->scratch, int64_t,
                           (size_t)(s->quotient->shape[0] * s->quotient->shape[1]));
    return true;
}

/* ---- which atoms a warp holds, and where ---------------------------------- */

static int64_t atom_number(const Side *s, int64_t i, int64_t j)
{
    return i * s->quotient->shape[1] + j;
}

/* Fills s->slots for `warp`. */
static void place_atoms(Side *s, int64_t warp)
{
    int64_t count = s->quotient->shape[0] * s->quotient->shape[1], index[2];
    for (int64_t i = 0; i < count; i++)
        s->slots[i] = -1;
    for (int64_t slot = 0; slot < s->quotient->slots; slot++) {
        layout_index(s->quotient, warp, slot, index);
        s->slots[atom_number(s, index[0], index[1])] = slot;
    }
}

/* Whether `warp` finds atom (i, j) of side `side` in a slot: the one in
 * `*slot`, or any when that is -1, which is then set. */
static bool agree(const Dot *dot, unsigned side, int64_t warp, int64_t i, int64_t j,
                  int64_t *slot)
{
    const Side *s = &dot->sides[side];
    int64_t found = s->slots[atom_number(s, i, j)];
    if (found >= 0 && (*slot < 0 || *slot == found)) {
        *slot = found;
        return true;
    }
    Arena *scratch = &dot->cg->module->scratch;
    return refuse(dot, side, found < 0
        ? arena_printf(scratch, "warp %lld does not hold fragment (%lld, %lld), which its part "
                       "of c needs", (long long)warp, (long long)i, (long long)j)
        : arena_printf(scratch, "warp %lld holds fragment (%lld, %lld) in slot %lld, warp 0 its "
                       "counterpart in slot %lld", (long long)warp, (long long)i, (long long)j,
                       (long long)found, (long long)*slot));
}

/* The slots of a and b for every (slot of c, k), the same in all warps. */
static bool match_slots(Dot *dot, int64_t *slots_a, int64_t *slots_b)
{
    Side *a = &dot->sides[MMA_A], *b = &dot->sides[MMA_B], *c = &dot->sides[MMA_C];
    int64_t depth = a->quotient->shape[1], at[2];
    for (int64_t i = 0; i < c->quotient->slots * depth; i++)
        slots_a[i] = slots_b[i] = -1;
    for (int64_t warp = 0; warp < c->quotient->threads; warp++) {
        place_atoms(a, warp);
        place_atoms(b, warp);
        for (int64_t slot = 0; slot < c->quotient->slots; slot++) {
            layout_index(c->quotient, warp, slot, at);
            for (int64_t k = 0; k < depth; k++)
                if (!agree(dot, MMA_A, warp, at[0], k, &slots_a[slot * depth + k]) ||
                    !agree(dot, MMA_B, warp, k, at[1], &slots_b[slot * depth + k]))
                    return false;
        }
    }
    return true;
}

/* ---- emission -------------------------------------------------------------- */

/* out[0..n) = the atom's words after one mma; c's words on entry. */
static bool emit_mma(Dot *dot, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
    Codegen *cg = dot->cg;
    LLVMValueRef args[10];
    unsigned count = 0;
    LLVMValueRef *words[MMA_OPERANDS] = {a, b, out};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        for (int64_t w = 0; w < dot->sides[i].words; w++)
            args[count++] = words[i][w];
    LLVMValueRef d = call_intrinsic(cg, dot->mma->intrinsic, dot->op->loc, args, count);
    if (!d)
        return note_types(dot);
    for (int64_t w = 0; w < dot->sides[MMA_C].words; w++)
        out[w] = LLVMBuildExtractValue(cg->builder, d, (unsigned)w, "");
    return true;
}

/* Every atom of c, k ascending in each. The k loop is outside so that
 * neighbouring instructions do not wait for each other. */
static bool emit_atoms(Dot *dot, const int64_t *slots_a, const int64_t *slots_b,
                       LLVMValueRef *out)
{
    const Side *a = &dot->sides[MMA_A], *b = &dot->sides[MMA_B];
    const Side *c = &dot->sides[MMA_C];
    LLVMValueRef *words_a = lowered_words(dot->op->operands[MMA_A]);
    LLVMValueRef *words_b = lowered_words(dot->op->operands[MMA_B]);
    int64_t depth = a->quotient->shape[1];
    for (int64_t k = 0; k < depth; k++)
        for (int64_t slot = 0; slot < c->quotient->slots; slot++)
            if (!emit_mma(dot, words_a + slots_a[slot * depth + k] * a->words,
                          words_b + slots_b[slot * depth + k] * b->words, out + slot * c->words))
                return false;
    return true;
}

bool emit_dot(Codegen *cg, const Op *op)
{
    Dot dot = {.cg = cg, .op = op};
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        dot.sides[i].type = op->operands[i]->type;
    if (!select_mma(&dot))
        return false;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        if (!open_side(&dot, i))
            return false;
    Arena *scratch = &cg->module->scratch;
    const Layout *c = dot.sides[MMA_C].quotient;
    size_t pairs = (size_t)(c->slots * dot.sides[MMA_A].quotient->shape[1]);
    int64_t *slots_a = arena_array(scratch, int64_t, pairs);
    int64_t *slots_b = arena_array(scratch, int64_t, pairs);
    if (!match_slots(&dot, slots_a, slots_b))
        return false;
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    LLVMValueRef *start = lowered_words(op->operands[MMA_C]);
    memcpy(out, start, (size_t)type_thread_words(op->results[0]->type) * sizeof *out);
    if (!emit_atoms(&dot, slots_a, slots_b, out))
        return false;
    lower_words(cg, op->results[0], out);
    return true;
}
