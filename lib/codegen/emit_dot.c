/* dot: tiles cut into the fragments of mma.m16n8k16 (PTX ISA, 9.7.14.5.8).
 *
 * Each operand's layout is divided by the instruction's fragment layout (the
 * atom). The quotient numbers atoms: its thread is a warp, its slot tells where
 * in the thread's words the atom's fragment lies.
 *
 *     a[m, k] = qa . column_local(2,2).spatial(8,4).local(1,2)    4 words an atom
 *     b[k, n] = qb . local(2,1).column_spatial(4,8).local(2,1)    2 words
 *     c[m, n] = qc . local(2,1).spatial(8,4).local(1,2)           4 words f32, 2 f16
 *
 * All warps run the same instructions on the same word numbers, so for atom
 * (i, j) of c in some slot, the slots of a (i, k) and b (k, j) must be the same
 * in every warp. */
#include "codegen/internal.h"

#include "ir/text.h"

#include <string.h>

enum { OPERAND_A, OPERAND_B, OPERAND_C, DOT_OPERANDS };

static const char operand_name[] = "abc";
static const int64_t atom_shape[DOT_OPERANDS][2] = {{16, 16}, {16, 8}, {16, 8}};

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
    IntrinsicId mma;
    Side sides[DOT_OPERANDS];
} Dot;

/* ---- selection ---------------------------------------------------------- */

static bool select_mma(Dot *dot)
{
    static const struct {
        DType a, b, c;
        IntrinsicId mma;
    } table[] = {
        {DTYPE_f16, DTYPE_f16, DTYPE_f32, INTR_mma_f32_f16},
        {DTYPE_bf16, DTYPE_bf16, DTYPE_f32, INTR_mma_f32_bf16},
        {DTYPE_f16, DTYPE_f16, DTYPE_f16, INTR_mma_f16_f16},
    };
    DType a = dot->sides[OPERAND_A].type->dtype, b = dot->sides[OPERAND_B].type->dtype;
    DType c = dot->sides[OPERAND_C].type->dtype;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].a != a || table[i].b != b || table[i].c != c)
            continue;
        dot->mma = table[i].mma;
        return true;
    }
    return diag_error(dot->cg->diag, dot->op->loc, "dot of %s, %s, %s has no instruction on %s",
                      dtype_name(a), dtype_name(b), dtype_name(c), dot->cg->target->name);
}

/* column_local(2,2).spatial(8,4).local(1,2) and the like. The parts are small
 * constants: the makers do not fail. */
static const Layout *make_atom(Module *m, unsigned operand)
{
    static const int64_t by_2_2[] = {2, 2}, by_2_1[] = {2, 1}, by_1_2[] = {1, 2};
    static const int64_t by_8_4[] = {8, 4}, by_4_8[] = {4, 8};
    LayoutTable *t = &m->layouts;
    const char *why;
    const Layout *outer = operand == OPERAND_A ? layout_column_local(t, 2, by_2_2, &why)
                                               : layout_local(t, 2, by_2_1, &why);
    const Layout *threads = operand == OPERAND_B ? layout_column_spatial(t, 2, by_4_8, &why)
                                                 : layout_spatial(t, 2, by_8_4, &why);
    const Layout *inner = layout_local(t, 2, operand == OPERAND_B ? by_2_1 : by_1_2, &why);
    return layout_product(t, layout_product(t, outer, threads, &why), inner, &why);
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
    const char *atom = layout_text(m, s->atom);
    diag_error(m->diag, dot->op->loc, "operand %c of dot, %s @ %s, is not made of fragments %s "
               "of mma.m16n8k16: %s", operand_name[i], dtype_name(s->type->dtype),
               layout_text(m, s->type->layout), atom, why);
    return diag_note(m->diag, dot->op->operands[i]->loc,
                     "a layout that fits is L.%s, L a layout of [%lld, %lld] over the warps",
                     atom, (long long)(s->type->layout->shape[0] / atom_shape[i][0]),
                     (long long)(s->type->layout->shape[1] / atom_shape[i][1]));
}

static bool open_side(Dot *dot, unsigned i)
{
    Module *m = dot->cg->module;
    Side *s = &dot->sides[i];
    const char *why;
    s->atom = make_atom(m, i);
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
    Side *a = &dot->sides[OPERAND_A], *b = &dot->sides[OPERAND_B], *c = &dot->sides[OPERAND_C];
    int64_t depth = a->quotient->shape[1], at[2];
    for (int64_t i = 0; i < c->quotient->slots * depth; i++)
        slots_a[i] = slots_b[i] = -1;
    for (int64_t warp = 0; warp < c->quotient->threads; warp++) {
        place_atoms(a, warp);
        place_atoms(b, warp);
        for (int64_t slot = 0; slot < c->quotient->slots; slot++) {
            layout_index(c->quotient, warp, slot, at);
            for (int64_t k = 0; k < depth; k++)
                if (!agree(dot, OPERAND_A, warp, at[0], k, &slots_a[slot * depth + k]) ||
                    !agree(dot, OPERAND_B, warp, k, at[1], &slots_b[slot * depth + k]))
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
    LLVMValueRef *words[DOT_OPERANDS] = {a, b, out};
    for (unsigned i = 0; i < DOT_OPERANDS; i++)
        for (int64_t w = 0; w < dot->sides[i].words; w++)
            args[count++] = words[i][w];
    LLVMValueRef d = call_intrinsic(cg, dot->mma, dot->op->loc, args, count);
    if (!d)
        return false;
    for (int64_t w = 0; w < dot->sides[OPERAND_C].words; w++)
        out[w] = LLVMBuildExtractValue(cg->builder, d, (unsigned)w, "");
    return true;
}

/* Every atom of c, k ascending in each. The k loop is outside so that
 * neighbouring instructions do not wait for each other. */
static bool emit_atoms(Dot *dot, const int64_t *slots_a, const int64_t *slots_b,
                       LLVMValueRef *out)
{
    const Side *a = &dot->sides[OPERAND_A], *b = &dot->sides[OPERAND_B];
    const Side *c = &dot->sides[OPERAND_C];
    LLVMValueRef *words_a = lowered_words(dot->op->operands[OPERAND_A]);
    LLVMValueRef *words_b = lowered_words(dot->op->operands[OPERAND_B]);
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
    for (unsigned i = 0; i < DOT_OPERANDS; i++)
        dot.sides[i].type = op->operands[i]->type;
    if (!select_mma(&dot))
        return false;
    for (unsigned i = 0; i < DOT_OPERANDS; i++)
        if (!open_side(&dot, i))
            return false;
    Arena *scratch = &cg->module->scratch;
    const Layout *c = dot.sides[OPERAND_C].quotient;
    size_t pairs = (size_t)(c->slots * dot.sides[OPERAND_A].quotient->shape[1]);
    int64_t *slots_a = arena_array(scratch, int64_t, pairs);
    int64_t *slots_b = arena_array(scratch, int64_t, pairs);
    if (!match_slots(&dot, slots_a, slots_b))
        return false;
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    LLVMValueRef *start = lowered_words(op->operands[OPERAND_C]);
    memcpy(out, start, (size_t)type_thread_words(op->results[0]->type) * sizeof *out);
    if (!emit_atoms(&dot, slots_a, slots_b, out))
        return false;
    lower_words(cg, op->results[0], out);
    return true;
}
