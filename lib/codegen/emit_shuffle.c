/* shuffle: each index becomes a lane and a slot there, by the modes of the dimension. As a lane
 * gives one register for all readers, each slot that may have an element moves, and the reader
 * chooses:
 *
 *     %x on spatial(8).local(2), index i      lane i / 2, of two candidates the one in slot i mod 2
 */
#include "codegen/convert_build.h"
#include "codegen/fold.h"

typedef struct Shuffle {
    Codegen *cg;
    const Op *op;
    const Layout *layout;
    unsigned dim;
    bool moves;                 /* some mode is in the thread's number */
    LLVMValueRef own_lane;      /* without the dimension's digits, i32 */
    int64_t candidates;
    int64_t *offsets;           /* of each candidate, from the first slot of the line */
} Shuffle;

/* A mode of the dimension: its digit of an index is index / stride mod extent. */
typedef struct Mode {
    int64_t extent, stride, weight;
    bool spatial;
} Mode;

/* Lists the dimension's modes, innermost first; returns how many there are. */
static unsigned list_modes(const Shuffle *s, Mode *modes)
{
    unsigned count = 0;
    int64_t stride = 1;
    for (unsigned i = s->layout->mode_count; i-- > 0;) {
        if (s->layout->modes[i].dim != s->dim)
            continue;
        Mode *mode = &modes[count++];
        *mode = (Mode){.extent = s->layout->modes[i].extent, .stride = stride};
        mode->weight = layout_mode_weight(s->layout, i, &mode->spatial);
        stride *= mode->extent;
    }
    return count;
}

static void add_candidates(Shuffle *s, const Mode *mode)
{
    for (int64_t digit = 1; digit < mode->extent; digit++)
        for (int64_t i = 0; i < s->candidates; i++)
            s->offsets[digit * s->candidates + i] = s->offsets[i] + digit * mode->weight;
    s->candidates *= mode->extent;
}

static Shuffle shuffle_open(Codegen *cg, const Op *op)
{
    enum { LAST_LANE = 31 };
    Shuffle s = {.cg = cg, .op = op, .layout = op->operands[0]->type->layout, .dim = op_dim(op),
                 .candidates = 1};
    Mode modes[LAYOUT_MODES];
    unsigned count = list_modes(&s, modes);
    uint32_t lanes = LAST_LANE;
    s.offsets = arena_array(&cg->module->scratch, int64_t, (size_t)s.layout->slots);
    s.offsets[0] = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!modes[i].spatial)
            add_candidates(&s, &modes[i]);
        else
            lanes &= ~(uint32_t)((modes[i].extent - 1) * modes[i].weight);
        s.moves |= modes[i].spatial;
    }
    s.own_lane = build_and(cg->builder, cg->thread, lanes);
    return s;
}

/* Returns the first slot of the line along the dimension that `slot` is in. */
static int64_t line_of(const Shuffle *s, int64_t slot)
{
    Mode modes[LAYOUT_MODES];
    unsigned count = list_modes(s, modes);
    int64_t first = slot;
    for (unsigned i = 0; i < count; i++)
        if (!modes[i].spatial)
            first -= slot / modes[i].weight % modes[i].extent * modes[i].weight;
    return first;
}

/* Builds the lane and the number of the candidate that an index names. */
static void locate(const Shuffle *s, LLVMValueRef index, LLVMValueRef *lane,
                   LLVMValueRef *candidate)
{
    LLVMBuilderRef b = s->cg->builder;
    Mode modes[LAYOUT_MODES];
    unsigned count = list_modes(s, modes);
    uint32_t weight = 1;
    *lane = s->own_lane;
    *candidate = const_i32_of(s->cg, 0);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef digit = LLVMBuildUDiv(b, index, const_i32_of(s->cg,
                                                                  (uint32_t)modes[i].stride), "");
        digit = LLVMBuildURem(b, digit, const_i32_of(s->cg, (uint32_t)modes[i].extent), "");
        LLVMValueRef *sum = modes[i].spatial ? lane : candidate;
        uint32_t by = modes[i].spatial ? (uint32_t)modes[i].weight : weight;
        *sum = LLVMBuildAdd(b, *sum, LLVMBuildMul(b, digit, const_i32_of(s->cg, by), ""), "");
        weight *= modes[i].spatial ? 1 : (uint32_t)modes[i].extent;
    }
}

/* Builds the code of the element that index `index`, an i32, names in the line of `slot`. */
static LLVMValueRef shuffle_slot(const Shuffle *s, int64_t slot, LLVMValueRef index)
{
    LLVMBuilderRef b = s->cg->builder;
    unsigned bits = dtype_bits(s->op->operands[0]->type->dtype);
    LLVMValueRef lane, candidate, result = NULL;
    int64_t line = line_of(s, slot);
    locate(s, index, &lane, &candidate);
    for (int64_t i = 0; i < s->candidates; i++) {
        LLVMValueRef code = emit_get_bits(s->cg, lowered_words(s->op->operands[0]),
                                          (line + s->offsets[i]) * bits, bits);
        if (s->moves)
            code = fold_shuffle(s->cg, s->op, INTR_shuffle_index, code, lane);
        LLVMValueRef chosen = build_test(b, LLVMIntEQ, candidate, (uint64_t)i);
        result = result ? build_select(b, chosen, code, result) : code;
    }
    LLVMValueRef inside = build_test(b, LLVMIntULT, index, (uint64_t)s->layout->shape[s->dim]);
    return build_select(b, inside, result, const_int(result, 0));
}

bool emit_shuffle(Codegen *cg, const Op *op, const Plan *plan)
{
    (void)plan;
    const Type *t = op->results[0]->type, *index = op->operands[1]->type;
    unsigned bits = dtype_bits(t->dtype), index_bits = dtype_bits(index->dtype);
    LLVMValueRef *words = words_new(cg, t);
    Shuffle s = shuffle_open(cg, op);
    for (int64_t slot = 0; slot < t->layout->slots; slot++) {
        LLVMValueRef code = emit_get_bits(cg, lowered_words(op->operands[1]), slot * index_bits,
                                          index_bits);
        code = shuffle_slot(&s, slot, emit_integer_value(cg, index->dtype, code));
        emit_set_bits(cg, words, slot * bits, bits, code);
    }
    lower_words(cg, op->results[0], words);
    return true;
}
