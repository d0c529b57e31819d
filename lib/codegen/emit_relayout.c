/* convert_layout, as lib/select/relayout.h plans it: slots are renamed, words of groups go
 * from lane to lane, or elements go through shared memory:
 *
 *   scratch[place] = slots        each element by the first thread that holds it
 *   barrier
 *   slots = scratch[place]
 *   barrier                       the scratch may be used again */
#include "codegen/convert_build.h"
#include "codegen/memory.h"

typedef struct Relayout {
    Codegen *cg;
    const Op *op;
    const ExchangePlan *shuffle;
    const ScratchPlan *scratch;
    unsigned bits;              /* of an element */
    const Layout *from, *to;
} Relayout;

/* ---- slots ------------------------------------------------------------------- */

/* Returns the source bytes of a whole word of 8-bit elements that begins with slot `i`; false: it is no
 * such word. */
static bool find_bytes(const Relayout *r, const int64_t *to_slots, const int64_t *from_slots, int64_t i,
                       int64_t count, int64_t bytes[4])
{
    enum { BYTE = 8, WORD_BYTES = 4 };
    if (r->bits != BYTE || i + WORD_BYTES > count || to_slots[i] % WORD_BYTES != 0)
        return false;
    for (int j = 0; j < WORD_BYTES; j++) {
        if (to_slots[i + j] != to_slots[i] + j)
            return false;
        bytes[j] = from_slots[i + j];
    }
    return true;
}

/* Copies elements from slots[i] of `from` to slots[i] of `to`: whole words of bytes by prmt, else runs of
 * slots at once that follow each other on both sides. */
static void copy_slots(const Relayout *r, LLVMValueRef *to, const int64_t *to_slots,
                       LLVMValueRef *from, const int64_t *from_slots, int64_t count)
{
    int64_t bytes[4];
    for (int64_t i = 0, n; i < count; i += n) {
        if (find_bytes(r, to_slots, from_slots, i, count, bytes)) {
            LLVMValueRef word = emit_gather_bytes(r->cg, r->op->loc, from, bytes);
            n = 4;
            to[to_slots[i] / n] = word ? word : to[to_slots[i] / n];
            continue;
        }
        for (n = 1; i + n < count && (n + 1) * r->bits <= 32; n++)
            if (to_slots[i + n] != to_slots[i] + n || from_slots[i + n] != from_slots[i] + n)
                break;
        unsigned bits = (unsigned)n * r->bits;
        emit_set_bits(r->cg, to, to_slots[i] * r->bits, bits,
                      emit_get_bits(r->cg, from, from_slots[i] * r->bits, bits));
    }
}

static int64_t *slot_array(const Relayout *r, int64_t count)
{
    return arena_array(&r->cg->module->scratch, int64_t, (size_t)count);
}

static LLVMValueRef *zero_words(Codegen *cg, int64_t count)
{
    LLVMValueRef *words = arena_array(&cg->module->scratch, LLVMValueRef, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        words[i] = const_i32_of(cg, 0);
    return words;
}

static void rename_slots(const Relayout *r, LLVMValueRef *words)
{
    int64_t *to = slot_array(r, r->to->slots), *from = slot_array(r, r->to->slots);
    for (int64_t slot = 0; slot < r->to->slots; slot++) {
        to[slot] = slot;
        from[slot] = layout_broadcast_slot(r->from, r->to, slot);
    }
    copy_slots(r, words, to, lowered_words(r->op->operands[0]), from, r->to->slots);
}

/* ---- shuffles ------------------------------------------------------------------ */

/* `count` groups of words, of which those that are NULL hold nothing. */
typedef struct Groups {
    int64_t count, words;
    LLVMValueRef **of;
} Groups;

static Groups groups_new(const Relayout *r)
{
    Groups g = {r->shuffle->rounds, r->shuffle->words, NULL};
    g.of = arena_array(&r->cg->module->scratch, LLVMValueRef *, (size_t)g.count);
    for (int64_t i = 0; i < g.count; i++)
        g.of[i] = NULL;
    return g;
}

/* The number that digits of `number` make, an i32, by their weights on one side. */
static LLVMValueRef read_number(const Relayout *r, const DigitMoves *moves, LLVMValueRef number,
                                bool to, bool as_from)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef sum = const_i32_of(cg, 0);
    int64_t radix = 1;
    for (unsigned i = 0; i < moves->count; i++) {
        const DigitMove *m = &moves->move[i];
        LLVMValueRef weight = const_i32_of(cg, (uint32_t)(to ? m->to : m->from));
        LLVMValueRef v = LLVMBuildUDiv(b, number, weight, "");
        v = LLVMBuildURem(b, v, const_i32_of(cg, (uint32_t)m->extent), "");
        v = LLVMBuildNUWMul(b, v, const_i32_of(cg, (uint32_t)(as_from ? m->from : radix)), "");
        sum = LLVMBuildNUWAdd(b, sum, v, "");
        radix *= m->extent;
    }
    return sum;
}

/* Packs the groups that a lane supplies: group x has its slots with x-digits x. */
static Groups pack_groups(const Relayout *r)
{
    const ExchangePlan *p = r->shuffle;
    Groups g = groups_new(r);
    int64_t *to = slot_array(r, p->z.size), *from = slot_array(r, p->z.size);
    for (int64_t x = 0; x < p->x.size; x++) {
        for (int64_t z = 0; z < p->z.size; z++) {
            to[z] = z;
            from[z] = digits_from(&p->x, x) + digits_from(&p->z, z);
        }
        g.of[x] = zero_words(r->cg, g.words);
        copy_slots(r, g.of[x], to, lowered_words(r->op->operands[0]), from, p->z.size);
    }
    return g;
}

static void unpack_groups(const Relayout *r, const Groups *g, LLVMValueRef *words)
{
    const ExchangePlan *p = r->shuffle;
    int64_t *to = slot_array(r, p->z.size), *from = slot_array(r, p->z.size);
    for (int64_t y = 0; y < p->y.size; y++) {
        for (int64_t z = 0; z < p->z.size; z++) {
            from[z] = z;
            to[z] = digits_to(&p->y, y) + digits_to(&p->z, z);
        }
        copy_slots(r, words, to, g->of[y], from, p->z.size);
    }
}

/* Chooses between two groups word by word; one that holds nothing gives way. */
static LLVMValueRef *select_group(const Relayout *r, LLVMValueRef bit, LLVMValueRef *a,
                                  LLVMValueRef *b, int64_t words)
{
    if (!a || !b)
        return a ? a : b;
    LLVMValueRef *v = zero_words(r->cg, words);
    for (int64_t i = 0; i < words; i++)
        v[i] = LLVMBuildSelect(r->cg->builder, bit, a[i], b[i], "");
    return v;
}

/* Group i becomes group i ^ number, where the number is below `size`, a power of two; one bit
 * of the number after another. */
static void exchange_groups(const Relayout *r, Groups *g, LLVMValueRef number, int64_t size)
{
    for (int64_t bit = 1; bit < size; bit *= 2) {
        LLVMValueRef is_set = build_and(r->cg->builder, number, (uint32_t)bit);
        is_set = build_test(r->cg->builder, LLVMIntNE, is_set, 0);
        Groups before = *g;
        *g = groups_new(r);
        for (int64_t i = 0; i < g->count; i++)
            g->of[i] = select_group(r, is_set, before.of[i ^ bit], before.of[i], g->words);
    }
}

/* Returns the words of a group that each lane reads; NULL after an error. */
static LLVMValueRef *shuffle_group(const Relayout *r, LLVMValueRef *words, LLVMValueRef lane,
                                   int64_t mask)
{
    Codegen *cg = r->cg;
    enum { LAST_LANE = 31 };
    bool in_place = r->shuffle->in_place;
    LLVMValueRef from = const_i32_of(cg, (uint32_t)mask);
    if (in_place && !mask)
        return words;
    if (!in_place)
        from = LLVMBuildXor(cg->builder, lane, from, "");
    LLVMValueRef *read = zero_words(cg, r->shuffle->words);
    for (int64_t i = 0; i < r->shuffle->words; i++) {
        LLVMValueRef args[] = {const_i32_of(cg, UINT32_MAX), words[i], from,
                               const_i32_of(cg, LAST_LANE)};
        read[i] = call_intrinsic(cg, in_place ? INTR_shuffle_xor : INTR_shuffle_index, r->op->loc,
                                 args, 4);
        if (!read[i])
            return NULL;
    }
    return read;
}

/* The lane that has y-digits a, for a reader with x-digits a. */
static LLVMValueRef first_lane(const Relayout *r, LLVMValueRef a)
{
    const ExchangePlan *p = r->shuffle;
    LLVMBuilderRef b = r->cg->builder;
    LLVMValueRef thread = r->cg->thread;
    LLVMValueRef lane = read_number(r, &p->own, thread, true, true);
    lane = LLVMBuildOr(b, lane, read_number(r, &p->l, thread, true, true), "");
    int64_t radix = 1;
    for (unsigned i = 0; i < p->y.count; i++) {
        const DigitMove *m = &p->y.move[i];
        LLVMValueRef v = LLVMBuildUDiv(b, a, const_i32_of(r->cg, (uint32_t)radix), "");
        v = LLVMBuildURem(b, v, const_i32_of(r->cg, (uint32_t)m->extent), "");
        v = LLVMBuildNUWMul(b, v, const_i32_of(r->cg, (uint32_t)m->from), "");
        lane = LLVMBuildOr(b, lane, v, "");
        radix *= m->extent;
    }
    return lane;
}

static bool shuffle_slots(const Relayout *r, LLVMValueRef *words)
{
    const ExchangePlan *p = r->shuffle;
    LLVMValueRef b = read_number(r, &p->y, r->cg->thread, false, false);
    LLVMValueRef a = read_number(r, &p->x, r->cg->thread, true, false);
    LLVMValueRef lane = p->in_place ? NULL : first_lane(r, a);
    Groups g = pack_groups(r);
    exchange_groups(r, &g, b, p->y.size);
    for (int64_t round = 0; round < p->rounds; round++)
        if (!(g.of[round] = shuffle_group(r, g.of[round], lane,
                                          digits_from(&p->y, round % p->y.size))))
            return false;
    exchange_groups(r, &g, a, p->x.size);
    unpack_groups(r, &g, words);
    return true;
}

/* ---- shared memory -------------------------------------------------------------- */

/* The address of a thread's slot 0. */
static LLVMValueRef thread_address(const Relayout *r, const Layout *l, LLVMValueRef base)
{
    Codegen *cg = r->cg;
    LLVMValueRef bit = const_i64_of(cg, 0);
    for (unsigned d = 0; d < l->rank; d++)
        bit = add_i64(cg, bit, mul_i64(cg, emit_thread_index(cg, l, d, cg->thread),
                                       const_i64_of(cg, r->scratch->strides[d] *
                                                            r->scratch->bits)));
    LLVMValueRef byte = LLVMBuildExactSDiv(cg->builder, bit, const_i64_of(cg, 8), "");
    return LLVMBuildGEP2(cg->builder, cg->i8, base, &byte, 1, "");
}

static LLVMValueRef slot_address(const Relayout *r, const Layout *l, LLVMValueRef base,
                                 int64_t slot)
{
    int64_t index[LIMIT_RANK], element = 0;
    layout_index(l, 0, slot, index);
    for (unsigned d = 0; d < l->rank; d++)
        element += index[d] * r->scratch->strides[d];
    LLVMValueRef byte = const_i64_of(r->cg, element * r->scratch->bits / 8);
    return LLVMBuildGEP2(r->cg->builder, r->cg->i8, base, &byte, 1, "");
}

/* Copies `count` elements from bits of `from` on, `from_step` bits apart, to bits of `to`. */
static void copy_elements(const Relayout *r, LLVMValueRef *to, int64_t to_bit, unsigned to_step,
                          LLVMValueRef *from, int64_t from_bit, unsigned from_step,
                          int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        emit_set_bits(r->cg, to, to_bit + i * to_step, r->bits,
                      emit_get_bits(r->cg, from, from_bit + i * from_step, r->bits));
}

/* One or two bytes pass through a 16-bit register, as narrow_chunk of emit_memory.c says. */
static LLVMValueRef chunk_of(const Relayout *r, LLVMValueRef *words, unsigned bytes)
{
    Codegen *cg = r->cg;
    if (bytes == 4)
        return words[0];
    if (bytes < 4) {
        LLVMValueRef half = call_intrinsic(cg, INTR_low_half, r->op->loc, words, 1);
        return bytes == 2 ? half : LLVMBuildTrunc(cg->builder, half, cg->i8, "");
    }
    LLVMValueRef v = LLVMGetPoison(chunk_type(cg, bytes));
    for (unsigned i = 0; i < bytes / 4; i++)
        v = LLVMBuildInsertElement(cg->builder, v, words[i], const_i32_of(cg, i), "");
    return v;
}

static void store_slots(const Relayout *r, LLVMValueRef base)
{
    Codegen *cg = r->cg;
    const ScratchAccess *a = &r->scratch->store;
    LLVMValueRef address = thread_address(r, r->from, base);
    for (int64_t slot = 0; slot < r->from->slots; slot += a->slots) {
        LLVMValueRef *words = zero_words(cg, (a->bytes + 3) / 4);
        copy_elements(r, words, 0, r->scratch->bits, lowered_words(r->op->operands[0]),
                      slot * r->bits, r->bits, a->slots);
        LLVMValueRef to = slot_address(r, r->from, address, slot);
        LLVMSetAlignment(LLVMBuildStore(cg->builder, chunk_of(r, words, a->bytes), to), a->bytes);
    }
}

/* Builds the predicate that this thread is the first one that holds its elements. */
static LLVMValueRef is_first_holder(const Relayout *r)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef all = const_i32_of(cg, 0);
    ThreadDigits replicas = replica_digits(r->from);
    for (unsigned i = 0; i < replicas.count; i++)
        all = LLVMBuildOr(b, all, emit_thread_digit(cg, replicas.digit[i]), "");
    return build_test(b, LLVMIntEQ, all, 0);
}

static void store_by_first(const Relayout *r, LLVMValueRef base)
{
    Codegen *cg = r->cg;
    LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(cg->context, cg->function, "first");
    LLVMBasicBlockRef stored = LLVMAppendBasicBlockInContext(cg->context, cg->function, "stored");
    LLVMBuildCondBr(cg->builder, is_first_holder(r), first, stored);
    LLVMPositionBuilderAtEnd(cg->builder, first);
    store_slots(r, base);
    LLVMBuildBr(cg->builder, stored);
    LLVMPositionBuilderAtEnd(cg->builder, stored);
}

static void load_slots(const Relayout *r, LLVMValueRef base, LLVMValueRef *result)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    const ScratchAccess *a = &r->scratch->load;
    LLVMValueRef address = thread_address(r, r->to, base);
    for (int64_t slot = 0; slot < r->to->slots; slot += a->slots) {
        LLVMValueRef words[4];
        LLVMValueRef v = LLVMBuildLoad2(b, chunk_type(cg, a->bytes),
                                        slot_address(r, r->to, address, slot), "");
        LLVMSetAlignment(v, a->bytes);
        words[0] = a->bytes < 4 ? LLVMBuildZExt(b, v, cg->i32, "") : v;
        for (unsigned i = 0; a->bytes > 4 && i < a->bytes / 4; i++)
            words[i] = LLVMBuildExtractElement(b, v, const_i32_of(cg, i), "");
        copy_elements(r, result, slot * r->bits, r->bits, words, 0, r->scratch->bits, a->slots);
    }
}

static bool move_by_scratch(const Relayout *r, const Plan *plan, LLVMValueRef *words)
{
    LLVMValueRef base = shared_scratch(r->cg, r->op, plan);
    if (!base)
        return false;
    if (layout_replicas(r->from) > 1)
        store_by_first(r, base);
    else
        store_slots(r, base);
    if (!emit_barrier(r->cg, r->op))
        return false;
    load_slots(r, base, words);
    return emit_barrier(r->cg, r->op);
}

/* ---- the op ------------------------------------------------------------------------ */

bool emit_convert_layout(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    const RelayoutPlan *p = &plan->relayout;
    Relayout r = {.cg = cg, .op = op, .shuffle = &p->shuffle, .scratch = &p->scratch,
                  .bits = dtype_bits(to->dtype), .from = from->layout, .to = to->layout};
    LLVMValueRef *words = words_new(cg, to);
    if (p->way == RELAYOUT_RENAME)
        rename_slots(&r, words);
    else if (!(p->way == RELAYOUT_SHUFFLE ? shuffle_slots(&r, words)
                                          : move_by_scratch(&r, plan, words)))
        return false;
    lower_words(cg, op->results[0], words);
    return true;
}
