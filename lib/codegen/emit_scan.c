/* scan. It goes over its plan's levels (lib/select/scan.h) twice:
 *
 *   outwards    totals[block] of each level, and carry[block] = totals of the blocks before it
 *   inwards     before[block] = before[outer block] + carry[block]
 *   result      before[block] + prefix, which the innermost level gives
 *
 * Arrays are indexed by slot; a block goes by its first slot. NULL stands for nothing before. Lanes
 * and warps without a block before them take the neutral element instead. */
#include "codegen/convert_build.h"
#include "codegen/fold.h"
#include "codegen/memory.h"

typedef struct Scan {
    Fold fold;
    const ScanPlan *plan;
    LLVMValueRef scratch;       /* NULL: none */
    bool exclusive;
    int64_t slots;
    LLVMValueRef *totals;
    LLVMValueRef *prefix;       /* of each slot, inside its innermost block */
    LLVMValueRef **carry;       /* by level */
} Scan;

/* ---- blocks --------------------------------------------------------------- */

static int64_t slot_digit(const ScanLevel *level, int64_t slot)
{
    return level->step == SCAN_SLOTS ? slot / level->weight % level->extent : 0;
}

/* Returns the first slot of the block of `slot` that level `at` counts. */
static int64_t block_of(const Scan *s, unsigned at, int64_t slot)
{
    int64_t first = slot;
    for (unsigned i = 0; i < at; i++)
        first -= slot_digit(&s->plan->levels[i], slot) * s->plan->levels[i].weight;
    return first;
}

static bool needs_total(const Scan *s, unsigned at)
{
    return at + 1 < s->plan->level_count;
}

/* Combines what is there of two values. */
static LLVMValueRef combine(const Scan *s, LLVMValueRef x, LLVMValueRef y)
{
    return !x ? y : !y ? x : fold_combine(&s->fold, x, y);
}

/* Records what level `at` knows of a block: of the innermost level its prefix. */
static void set_carry(Scan *s, unsigned at, int64_t slot, LLVMValueRef before, LLVMValueRef with)
{
    if (at > 0)
        s->carry[at][slot] = before;
    else
        s->prefix[slot] = s->exclusive ? before : with;
}

/* ---- levels --------------------------------------------------------------- */

/* Goes over blocks that follow each other in the thread, from the first one's slot on. */
static void scan_slots(Scan *s, unsigned at, int64_t first)
{
    const ScanLevel *level = &s->plan->levels[at];
    LLVMValueRef sum = NULL;
    for (int64_t i = 0; i < level->extent; i++) {
        int64_t slot = first + i * level->weight;
        LLVMValueRef before = sum;
        bool last = i + 1 == level->extent;
        if (!last || needs_total(s, at) || (at == 0 && !s->exclusive))
            sum = combine(s, sum, s->totals[slot]);
        set_carry(s, at, slot, before, sum);
    }
    s->totals[first] = sum;
}

/* Builds `v` of the lane `distance` blocks below, where there is one; else `otherwise`. */
static LLVMValueRef shuffle_up(const Scan *s, const ScanLevel *level, LLVMValueRef v,
                               int64_t distance)
{
    Codegen *cg = s->fold.cg;
    LLVMValueRef lanes = const_i32_of(cg, (uint32_t)(distance * level->weight));
    return fold_shuffle(cg, s->fold.op, INTR_shuffle_up, v, lanes);
}

/* Builds the test that at least `distance` blocks come before the thread's. */
static LLVMValueRef has_before(const Scan *s, const ScanLevel *level, int64_t distance)
{
    LLVMValueRef digit = emit_thread_digit(s->fold.cg, (ThreadDigit){level->weight, level->extent});
    return build_test(s->fold.cg->builder, LLVMIntUGE, digit, (uint64_t)distance);
}

/* Moves the value of the last lane to all. */
static LLVMValueRef of_last_lane(const Scan *s, const ScanLevel *level, LLVMValueRef v)
{
    enum { LAST_LANE = 31 };
    Codegen *cg = s->fold.cg;
    uint32_t digit = (uint32_t)((level->extent - 1) * level->weight);
    LLVMValueRef lane = build_or(cg->builder, build_and(cg->builder, cg->thread, LAST_LANE),
                                 const_i32_of(cg, digit));
    return fold_shuffle(cg, s->fold.op, INTR_shuffle_index, v, lane);
}

/* Builds what comes before a lane's own total, of which `sum` is the sum with it. */
static LLVMValueRef before_own(const Scan *s, const ScanLevel *level, LLVMValueRef sum,
                               LLVMValueRef own)
{
    LLVMBuilderRef b = s->fold.cg->builder;
    if (s->plan->subtracts)
        return LLVMBuildSub(b, sum, own, "");
    return build_select(b, has_before(s, level, 1), shuffle_up(s, level, sum, 1),
                        fold_neutral(&s->fold));
}

/* Adds to each sum that of the lanes below, one distance after another: a step's shuffles do not
 * wait for each other. */
static void sum_lanes(const Scan *s, const ScanLevel *level, LLVMValueRef *sums, int64_t count)
{
    for (int64_t distance = 1; distance < level->extent; distance *= 2) {
        LLVMValueRef has = has_before(s, level, distance);
        for (int64_t i = 0; i < count; i++) {
            LLVMValueRef below = shuffle_up(s, level, sums[i], distance);
            LLVMValueRef more = fold_combine(&s->fold, below, sums[i]);
            sums[i] = build_select(s->fold.cg->builder, has, more, sums[i]);
        }
    }
}

static void scan_lanes(Scan *s, unsigned at, const int64_t *slots, int64_t count)
{
    const ScanLevel *level = &s->plan->levels[at];
    LLVMValueRef *sums = arena_array(&s->fold.cg->module->scratch, LLVMValueRef, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        sums[i] = s->totals[slots[i]];
    sum_lanes(s, level, sums, count);
    for (int64_t i = 0; i < count; i++) {
        LLVMValueRef before = NULL;
        if (at > 0 || s->exclusive)
            before = before_own(s, level, sums[i], s->totals[slots[i]]);
        set_carry(s, at, slots[i], before, sums[i]);
        if (needs_total(s, at))
            s->totals[slots[i]] = of_last_lane(s, level, sums[i]);
    }
}

/* ---- shared memory ---------------------------------------------------------- */

/* Returns the alignment of entry `at` of rows of `row` bytes each. */
static unsigned alignment(int64_t row, int64_t at)
{
    int64_t bits = row | at | SHARED_ALIGN;
    return (unsigned)(bits & -bits);
}

/* Builds the address of the thread's row of totals: entry(number, place, digit) of the scratch is
 * that of block `digit`, so that a row lies side by side. */
static LLVMValueRef row_of(const Scan *s, const ScanLevel *level, LLVMValueRef place,
                           int64_t number)
{
    Codegen *cg = s->fold.cg;
    int64_t row = level->extent * reduce_bytes(s->fold.dtype);
    LLVMValueRef first = const_i64_of(cg, number * level->places.size * row);
    LLVMValueRef at = LLVMBuildNUWMul(cg->builder, place, const_i32_of(cg, (uint32_t)row), "");
    LLVMValueRef base = LLVMBuildGEP2(cg->builder, cg->i8, s->scratch, &first, 1, "");
    return LLVMBuildGEP2(cg->builder, cg->i8, base, &at, 1, "");
}

static LLVMValueRef entry_of(const Scan *s, LLVMValueRef row, int64_t block)
{
    LLVMValueRef at = const_i64_of(s->fold.cg, block * reduce_bytes(s->fold.dtype));
    return LLVMBuildGEP2(s->fold.cg->builder, s->fold.cg->i8, row, &at, 1, "");
}

/* Stores the totals, by one of the threads that have the same. */
static void store_totals(const Scan *s, const ScanLevel *level, const int64_t *slots,
                         LLVMValueRef place, LLVMValueRef digit)
{
    Codegen *cg = s->fold.cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = reduce_bytes(s->fold.dtype);
    LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(cg->context, cg->function, "first");
    LLVMBasicBlockRef stored = LLVMAppendBasicBlockInContext(cg->context, cg->function, "stored");
    LLVMValueRef inner = emit_thread_number(cg, &level->inner);
    LLVMValueRef at = LLVMBuildNUWMul(b, digit, const_i32_of(cg, bytes), "");
    LLVMBuildCondBr(b, build_test(b, LLVMIntEQ, inner, 0), first, stored);
    LLVMPositionBuilderAtEnd(b, first);
    for (int64_t i = 0; i < level->totals; i++) {
        LLVMValueRef row = row_of(s, level, place, i);
        LLVMValueRef to = LLVMBuildGEP2(b, cg->i8, row, &at, 1, "");
        LLVMSetAlignment(LLVMBuildStore(b, s->totals[slots[i]], to), bytes);
    }
    LLVMBuildBr(b, stored);
    LLVMPositionBuilderAtEnd(b, stored);
}

/* Reads the totals of all blocks of a row; those before the thread's own are its carry. */
static void read_row(Scan *s, unsigned at, int64_t slot, LLVMValueRef row, LLVMValueRef digit)
{
    const ScanLevel *level = &s->plan->levels[at];
    LLVMBuilderRef b = s->fold.cg->builder;
    int64_t bytes = reduce_bytes(s->fold.dtype);
    LLVMTypeRef type = LLVMTypeOf(s->totals[slot]);
    LLVMValueRef own = s->totals[slot], before = fold_neutral(&s->fold), sum = NULL;
    for (int64_t i = 0; i < level->extent; i++) {
        LLVMValueRef v = LLVMBuildLoad2(b, type, entry_of(s, row, i), "");
        LLVMSetAlignment(v, alignment(level->extent * bytes, i * bytes));
        sum = combine(s, sum, v);
        if (i + 1 < level->extent)
            before = build_select(b, build_test(b, LLVMIntUGT, digit, (uint64_t)i), sum, before);
    }
    set_carry(s, at, slot, before, fold_combine(&s->fold, before, own));
    s->totals[slot] = sum;
}

/* Builds the offset of the lane's total: of row lane / extent, at most `last`, and digit
 * lane mod extent. */
static LLVMValueRef lane_offset(const Scan *s, const ScanLevel *level, int64_t last)
{
    enum { WARP_LANES = 32 };
    Codegen *cg = s->fold.cg;
    LLVMBuilderRef b = cg->builder;
    uint32_t bytes = reduce_bytes(s->fold.dtype), extent = (uint32_t)level->extent;
    LLVMValueRef lane = emit_thread_digit(cg, (ThreadDigit){1, WARP_LANES});
    LLVMValueRef row = LLVMBuildUDiv(b, lane, const_i32_of(cg, extent), "");
    LLVMValueRef digit = emit_thread_digit(cg, (ThreadDigit){1, extent});
    LLVMValueRef stride = const_i32_of(cg, (uint32_t)level->places.size * extent * bytes);
    if (last + 1 < level->group)
        row = build_binary(b, "llvm.umin", row, const_i32_of(cg, (uint32_t)last));
    return LLVMBuildNUWAdd(b, LLVMBuildNUWMul(b, row, stride, ""),
                           LLVMBuildNUWMul(b, digit, const_i32_of(cg, bytes), ""), "");
}

/* Reads the totals of a group of rows from row `first` on, one in each lane, and scans each row.
 * The last row repeats where there are fewer. */
static LLVMValueRef read_group(const Scan *s, const ScanLevel *level, LLVMTypeRef type,
                               LLVMValueRef place, int64_t first)
{
    Codegen *cg = s->fold.cg;
    LLVMBuilderRef b = cg->builder;
    int64_t last = level->totals - first - 1;
    LLVMValueRef at = lane_offset(s, level, last);
    LLVMValueRef from = LLVMBuildGEP2(b, cg->i8, row_of(s, level, place, first), &at, 1, "");
    LLVMValueRef sum = LLVMBuildLoad2(b, type, from, "");
    LLVMSetAlignment(sum, reduce_bytes(s->fold.dtype));
    sum_lanes(s, &(ScanLevel){.extent = level->extent, .weight = 1}, &sum, 1);
    return sum;
}

/* Moves what comes before the thread's block of row `i`, and the row's total, from the lanes that
 * have them in `sums`. */
static void set_row(Scan *s, unsigned at, int64_t slot, int64_t i, LLVMValueRef sums,
                    LLVMValueRef digit)
{
    const ScanLevel *level = &s->plan->levels[at];
    Codegen *cg = s->fold.cg;
    LLVMBuilderRef b = cg->builder;
    uint32_t first = (uint32_t)(i % level->group * level->extent);
    uint32_t last = first + (uint32_t)level->extent - 1;
    LLVMValueRef own = s->totals[slot], lane = build_add(b, digit, (uint32_t)(first - 1));
    LLVMValueRef before = fold_shuffle(cg, s->fold.op, INTR_shuffle_index, sums, lane);
    before = build_select(b, build_test(b, LLVMIntEQ, digit, 0), fold_neutral(&s->fold), before);
    set_carry(s, at, slot, before, fold_combine(&s->fold, before, own));
    if (needs_total(s, at))
        s->totals[slot] = fold_shuffle(cg, s->fold.op, INTR_shuffle_index, sums,
                                       const_i32_of(cg, last));
}

static void read_groups(Scan *s, unsigned at, const int64_t *slots, LLVMValueRef place,
                        LLVMValueRef digit)
{
    const ScanLevel *level = &s->plan->levels[at];
    LLVMValueRef sums = NULL;
    for (int64_t i = 0; i < level->totals; i++) {
        if (i % level->group == 0)
            sums = read_group(s, level, LLVMTypeOf(s->totals[slots[i]]), place, i);
        set_row(s, at, slots[i], i, sums, digit);
    }
}

static bool scan_shared(Scan *s, unsigned at, const int64_t *slots)
{
    Codegen *cg = s->fold.cg;
    const ScanLevel *level = &s->plan->levels[at];
    LLVMValueRef place = emit_thread_number(cg, &level->places);
    LLVMValueRef digit = emit_thread_digit(cg, (ThreadDigit){level->weight, level->extent});
    store_totals(s, level, slots, place, digit);
    if (!emit_barrier(cg, s->fold.op))
        return false;
    if (level->group)
        read_groups(s, at, slots, place, digit);
    for (int64_t i = 0; !level->group && i < level->totals; i++)
        read_row(s, at, slots[i], row_of(s, level, place, i), digit);
    return emit_barrier(cg, s->fold.op);
}

/* ---- outwards and inwards ------------------------------------------------------ */

/* Lists the first slots of blocks that level `at` counts; returns how many there are. */
static int64_t list_blocks(const Scan *s, unsigned at, int64_t *slots)
{
    int64_t count = 0;
    for (int64_t slot = 0; slot < s->slots; slot++)
        if (block_of(s, at, slot) == slot)
            slots[count++] = slot;
    return count;
}

static bool scan_level(Scan *s, unsigned at, int64_t *slots)
{
    const ScanLevel *level = &s->plan->levels[at];
    int64_t count = list_blocks(s, at, slots);
    if (level->step == SCAN_SHARED)
        return scan_shared(s, at, slots);
    if (level->step == SCAN_LANES)
        scan_lanes(s, at, slots, count);
    for (int64_t i = 0; level->step == SCAN_SLOTS && i < count; i++)
        if (slot_digit(level, slots[i]) == 0)
            scan_slots(s, at, slots[i]);
    return true;
}

/* Turns the carries of each level into all that comes before a block. */
static void add_carries(Scan *s)
{
    LLVMValueRef start = s->exclusive ? fold_start(&s->fold) : NULL;
    for (unsigned at = s->plan->level_count; at-- > 1;)
        for (int64_t slot = 0; slot < s->slots; slot++) {
            bool outermost = at + 1 == s->plan->level_count;
            LLVMValueRef before = outermost ? start
                                            : s->carry[at + 1][block_of(s, at + 1, slot)];
            if (block_of(s, at, slot) == slot)
                s->carry[at][slot] = combine(s, before, s->carry[at][slot]);
        }
    for (int64_t slot = 0; slot < s->slots; slot++) {
        LLVMValueRef before = s->plan->level_count > 1 ? s->carry[1][block_of(s, 1, slot)] : start;
        s->prefix[slot] = combine(s, before, s->prefix[slot]);
    }
}

static Scan scan_open(Codegen *cg, const Op *op, const ScanPlan *plan)
{
    Arena *arena = &cg->module->scratch;
    int64_t slots = op->operands[0]->type->layout->slots;
    Scan s = {.fold = fold_open(cg, op), .plan = plan, .exclusive = scan_is_exclusive(op),
              .slots = slots};
    unsigned bits = dtype_bits(s.fold.dtype);
    s.totals = arena_array(arena, LLVMValueRef, (size_t)slots);
    s.prefix = arena_array(arena, LLVMValueRef, (size_t)slots);
    s.carry = arena_array(arena, LLVMValueRef *, (size_t)plan->level_count + 1);
    for (unsigned i = 0; i < plan->level_count; i++)
        s.carry[i] = arena_array(arena, LLVMValueRef, (size_t)slots);
    for (int64_t slot = 0; slot < slots; slot++) {
        LLVMValueRef code = emit_get_bits(cg, lowered_words(op->operands[0]), slot * bits, bits);
        s.totals[slot] = fold_decode(&s.fold, code);
        s.prefix[slot] = s.exclusive ? NULL : s.totals[slot];
    }
    return s;
}

bool emit_scan(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *t = op->results[0]->type;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *words = words_new(cg, t);
    Scan s = scan_open(cg, op, &plan->scan);
    int64_t *slots = arena_array(&cg->module->scratch, int64_t, (size_t)s.slots);
    if (plan->scratch && !(s.scratch = shared_scratch(cg, op, plan)))
        return false;
    for (unsigned at = 0; at < plan->scan.level_count; at++)
        if (!scan_level(&s, at, slots))
            return false;
    add_carries(&s);
    for (int64_t slot = 0; slot < s.slots; slot++)
        emit_set_bits(cg, words, slot * bits, bits, fold_encode(&s.fold, s.prefix[slot]));
    lower_words(cg, op->results[0], words);
    return true;
}
