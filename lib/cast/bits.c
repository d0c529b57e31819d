/* Finds which bits of which codes the bits of a plan's words depend on. */
#include "cast/bits.h"

#include "types/storage.h"

#include <assert.h>
#include <string.h>

/* Values of the other bits for which one is changed. */
enum { SAMPLES = 6, INPUTS_MAX = 1024 };

typedef struct Search {
    const CastPlan *plan;
    uint32_t inputs;            /* words of the source, of zero points and tables */
    uint32_t in[INPUTS_MAX];
    uint32_t *values, *changed; /* of operations */
    uint32_t *constant;         /* values in the first sample */
    CastWord *words;
} Search;

/* A bit of the source: of an element, or of none. */
typedef struct Source {
    unsigned element, bit;
    bool is_code, is_other;
} Source;

static void run(const Search *s, uint32_t *values)
{
    for (uint32_t i = 0; i < s->plan->count; i++) {
        const CastOp *op = &s->plan->ops[i];
        values[i] = op->code == CAST_input      ? s->in[op->imm]
                    : op->code == CAST_constant ? op->imm
                    : cast_run_op(op, values[op->in[0]], values[op->in[1]], values[op->in[2]]);
    }
}

/* ---- the source ---------------------------------------------------------------- */

/* The bit of a group in storage order, by element and bit. */
static bool find_stored(const CastStorage *storage, unsigned width, unsigned place, Source *source)
{
    for (unsigned i = 0; i < storage->elements * width; i++)
        if (storage->order[i] == place) {
            source->element += i / width;
            source->bit = i % width;
            return true;
        }
    return false;
}

static Source source_of(const CastPlan *plan, unsigned word, unsigned bit)
{
    const CastQuery *q = &plan->query;
    unsigned width = dtype_bits(q->from), place = 32 * word + bit;
    Source source = {.is_other = word >= cast_source_words(q)};
    if (q->packed != DTYPE_none) {
        CastStorage storage;
        cast_storage(q->from, q->packed, &storage);
        unsigned group = 32 * storage.words;
        source.element = place / group * storage.elements;
        source.is_code = find_stored(&storage, width, place % group, &source);
    } else {
        source = (Source){place / width, place % width, true, source.is_other};
    }
    source.is_code &= !source.is_other && source.element < q->elements;
    return source;
}

/* ---- merging --------------------------------------------------------------------- */

/* Adds a source to those that a bit depends on. */
static void add_source(CastBit *b, const Source *s)
{
    CastBit one = {CAST_BIT_CODE, (uint8_t)s->element, (uint8_t)s->bit};
    if (s->is_other || b->kind == CAST_BIT_OTHER)
        b->kind = CAST_BIT_OTHER;
    else if (b->kind == CAST_BIT_CONSTANT)
        *b = one;
    else if (b->kind == CAST_BIT_MIXED || b->element != one.element)
        b->kind = CAST_BIT_MIXED;
    else if (b->bit != one.bit)
        b->kind = CAST_BIT_ELEMENT;
}

static void compare(Search *s, const Source *source)
{
    for (uint32_t i = 0; i < s->plan->count; i++)
        for (uint32_t rest = s->values[i] ^ s->changed[i]; rest; rest &= rest - 1)
            add_source(&s->words[i].bits[__builtin_ctz(rest)], source);
}

static void change_each_bit(Search *s)
{
    for (unsigned i = 0; i < 32 * s->inputs; i++) {
        Source source = source_of(s->plan, i / 32, i % 32);
        if (!source.is_code && !source.is_other)
            continue;
        s->in[i / 32] ^= 1u << i % 32;
        run(s, s->changed);
        s->in[i / 32] ^= 1u << i % 32;
        compare(s, &source);
    }
}

static uint32_t count_inputs(const CastPlan *plan)
{
    uint32_t count = cast_source_words(&plan->query);
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->ops[i].code == CAST_input && plan->ops[i].imm >= count)
            count = plan->ops[i].imm + 1;
    assert(count <= INPUTS_MAX);
    return count;
}

/* Fills the inputs by a linear congruential generator; the first sample is all zeros, and the
 * second all ones. */
static void fill_inputs(Search *s, unsigned sample)
{
    uint32_t state = sample * 2654435761u;
    for (uint32_t i = 0; i < s->inputs; i++) {
        state = state * 1664525u + 1013904223u;
        s->in[i] = sample == 0 ? 0 : sample == 1 ? UINT32_MAX : state ^ state >> 16;
    }
}

static void keep_constants(Search *s)
{
    for (uint32_t i = 0; i < s->plan->count; i++)
        for (unsigned b = 0; b < 32; b++) {
            CastBit *bit = &s->words[i].bits[b];
            if (bit->kind == CAST_BIT_CONSTANT)
                bit->bit = s->constant[i] >> b & 1;
        }
}

CastWord *cast_bits(Arena *arena, const CastPlan *plan)
{
    CastWord *words = arena_array(arena, CastWord, plan->count);
    ArenaMark mark = arena_mark(arena);
    Search *s = arena_new(arena, Search);
    *s = (Search){.plan = plan, .inputs = count_inputs(plan), .words = words};
    memset(words, 0, plan->count * sizeof *words);
    s->values = arena_array(arena, uint32_t, plan->count);
    s->changed = arena_array(arena, uint32_t, plan->count);
    s->constant = arena_array(arena, uint32_t, plan->count);
    for (unsigned sample = 0; sample < SAMPLES; sample++) {
        fill_inputs(s, sample);
        run(s, s->values);
        if (sample == 0)
            memcpy(s->constant, s->values, plan->count * sizeof *s->constant);
        change_each_bit(s);
    }
    keep_constants(s);
    arena_reset(arena, mark);
    return words;
}
