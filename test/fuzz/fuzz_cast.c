/* Casts and packing: plans run on the host against dtype_cast, for any pair of types,
 * number of elements, storage order and data; packed elements against single bits. */
#include "target.h"

#include "cast/plan.h"
#include "support/bits.h"
#include "types/dtype.h"
#include "types/storage.h"

#include <math.h>
#include <string.h>

enum { BITS_MAX = 64 * CAST_ELEMENTS_MAX, IN_WORDS = BITS_MAX / 32 };

static DType choose_type(Choices *choices)
{
    return (DType)choose_between(choices, DTYPE_none + 1, DTYPE_COUNT - 1);
}

/* ---- queries ------------------------------------------------------------------- */

/* The plain order, or the source is in one of the storage orders that it has; then
 * elements are whole groups, and may be left times powers of 2. */
static CastQuery choose_query(Choices *choices, Arena *arena)
{
    static const unsigned machines[] = {80, 86, 89, 90, 100, 120};
    enum { MACHINES = sizeof machines / sizeof *machines };
    int16_t exponents[CAST_GROUP_MAX];
    CastQuery q = {.from = choose_type(choices)};
    q.to = choose_type(choices);
    q.elements = (unsigned)choose_between(choices, 1, CAST_ELEMENTS_MAX);
    q.sm = machines[choose(choices, MACHINES)];
    q.finite = choose(choices, 2);
    DType packed = choose(choices, 2) ? DTYPE_f16 : DTYPE_bf16;
    if (choose(choices, 2) && cast_has_storage(q.from, packed)) {
        unsigned group = cast_group(q.from);
        q.packed = packed;
        q.elements = q.elements < group ? group : q.elements / group * group;
        q.deferred = q.to == packed && choose(choices, 2) &&
                     cast_exponents(arena, q.from, packed, exponents);
    }
    return q;
}

static void store(const CastQuery *q, const uint64_t *codes, uint32_t *words)
{
    CastStorage storage;
    uint32_t plain[IN_WORDS] = {0};
    unsigned bits = dtype_bits(q->from);
    for (unsigned e = 0; e < q->elements; e++)
        bits_set(q->packed ? plain : words, e, bits, codes[e]);
    if (!q->packed)
        return;
    cast_storage(q->from, q->packed, &storage);
    for (unsigned w = 0; w < q->elements * bits / 32; w += storage.words)
        cast_pack_group(&storage, plain + w, words + w);
}

/* ---- plans ------------------------------------------------------------------- */

/* Any code, one near an end, or one near zero. */
static uint64_t choose_code(Choices *choices, DType t)
{
    uint64_t mask = bits_mask(dtype_bits(t)), small = choose(choices, 4);
    switch (choose(choices, 4)) {
    case 0: return (mask - small) & mask;
    case 1: return ((mask >> 1) + small) & mask;
    case 2: return small & mask;
    default: return choices_random(choices) & mask;
    }
}

/* Compiled code may give another NaN where there are many. */
static bool is_same(DType t, uint64_t a, uint64_t b)
{
    bool is_free = dtype_bits(t) > 8;
    return a == b || (is_free && isnan(dtype_decode(t, a)) && isnan(dtype_decode(t, b)));
}

/* Whether element `e` of code `code` became `got`. */
static bool is_right(const CastPlan *plan, unsigned e, uint64_t code, uint64_t got)
{
    const CastQuery *q = &plan->query;
    double value = dtype_decode(q->from, code);
    if ((q->finite || q->deferred) && !isfinite(value))
        return true;
    if (!q->deferred)
        return is_same(q->to, got, dtype_cast(q->to, q->from, code));
    return dtype_decode(q->to, got) == ldexp(value, plan->exponents[e]);
}

static void check_plan(const CastPlan *plan, Choices *choices)
{
    const CastQuery *q = &plan->query;
    uint64_t codes[CAST_ELEMENTS_MAX];
    uint32_t in[IN_WORDS], before[IN_WORDS], out[CAST_WORDS_MAX];
    for (unsigned i = 0; i < IN_WORDS; i++)
        in[i] = (uint32_t)choices_random(choices);
    for (unsigned e = 0; e < q->elements; e++)
        codes[e] = choose_code(choices, q->from);
    store(q, codes, in);
    memcpy(before, in, sizeof in);
    cast_run(plan, in, out);
    if (memcmp(before, in, sizeof in) != 0)
        target_fail("a plan writes its source");
    for (unsigned e = 0; e < q->elements; e++) {
        uint64_t got = bits_get(out, e, dtype_bits(q->to));
        if (!is_right(plan, e, codes[e], got))
            target_fail("%s %s(%s) to %s%s on sm_%u, element %u of %u, code 0x%llx: 0x%llx",
                        dtype_name(q->from), q->packed ? "packed" : "plain",
                        q->packed ? dtype_name(q->packed) : "", dtype_name(q->to),
                        q->deferred ? ", residual" : q->finite ? ", finite" : "", q->sm, e,
                        q->elements, (unsigned long long)codes[e], (unsigned long long)got);
    }
}

static void check_cast(Choices *choices, Arena *arena)
{
    enum { ROUNDS = 8 };
    CastQuery q = choose_query(choices, arena);
    CastPlan plan;
    if (cast_plan(arena, &q, &plan))
        for (unsigned i = 0; i < ROUNDS; i++)
            check_plan(&plan, choices);
}

/* ---- storage orders of files ---------------------------------------------------- */

/* A group in packed(to) holds the bits of the plain one where the order says. */
static void check_group(DType from, DType to, Choices *choices)
{
    CastStorage storage;
    uint32_t plain[CAST_GROUP_BITS_MAX / 32] = {0}, packed[CAST_GROUP_BITS_MAX / 32] = {0};
    uint32_t back[CAST_GROUP_BITS_MAX / 32] = {0};
    cast_storage(from, to, &storage);
    unsigned bits = dtype_bits(from), count = storage.elements * bits;
    for (unsigned i = 0; i < storage.words; i++)
        plain[i] = (uint32_t)choices_random(choices);
    cast_pack_group(&storage, plain, packed);
    cast_unpack_group(&storage, packed, back);
    if (count != 32 * storage.words || memcmp(plain, back, sizeof plain) != 0)
        target_fail("%s in packed(%s) does not come back", dtype_name(from), dtype_name(to));
    for (unsigned i = 0; i < count; i++) {
        uint64_t flip = storage.flips && i % bits == bits - 1;
        if ((bits_get(plain, i, 1) ^ flip) != bits_get(packed, storage.order[i], 1))
            target_fail("%s in packed(%s): bit %u is not at %u", dtype_name(from),
                        dtype_name(to), i, storage.order[i]);
    }
}

static void check_storage(Choices *choices)
{
    DType from = choose_type(choices), to = choose_type(choices);
    if (cast_has_storage(from, to))
        check_group(from, to, choices);
}

/* ---- packing ----------------------------------------------------------------- */

/* One element is written, and nothing else. */
static void check_packing(Choices *choices)
{
    enum { BYTES = 40 };
    uint8_t data[BYTES], before[BYTES];
    for (unsigned i = 0; i < BYTES; i++)
        before[i] = data[i] = (uint8_t)choices_random(choices);
    unsigned bits = (unsigned)choose_between(choices, 1, 64);
    size_t at = choose(choices, BYTES * 8 / bits), first = at * bits;
    uint64_t code = choices_random(choices);
    bits_set(data, at, bits, code);
    if (bits_get(data, at, bits) != (code & bits_mask(bits)))
        target_fail("%u bits at %zu are not what was written", bits, at);
    for (size_t i = 0; i < BYTES * 8; i++) {
        unsigned was = before[i / 8] >> i % 8 & 1, is = data[i / 8] >> i % 8 & 1;
        unsigned expected = i >= first && i < first + bits ? code >> (i - first) & 1 : was;
        if (is != expected)
            target_fail("%u bits written at %zu: bit %zu is %u", bits, at, i, is);
    }
}

/* A code means a number, and the code of that number means it, too. */
static void check_code(Choices *choices)
{
    DType t = choose_type(choices);
    uint64_t code = choose_code(choices, t);
    double value = dtype_decode(t, code);
    uint64_t again = dtype_encode(t, value);
    double same = dtype_decode(t, again);
    bool exact = dtype_bits(t) < 64 || dtype_is_float(t);
    if (exact && !isnan(value) && (same != value || signbit(same) != signbit(value)))
        target_fail("0x%llx of %s is %g, which is 0x%llx", (unsigned long long)code,
                    dtype_name(t), value, (unsigned long long)again);
}

static void check(Choices *choices, Arena *arena)
{
    check_cast(choices, arena);
    check_storage(choices);
    check_packing(choices);
    check_code(choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check, data, size);
}
