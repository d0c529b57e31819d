/* Codes of a storage order that says where they go: every bit comes to its place by the
 * distance between, so which turns of which words a plan needs is known beforehand. A turn
 * is the word itself, or a shift where all its bits go one way, or a rotation. A word of the
 * result takes one lop3 for each turn that has bits of it. */
#include "cast/internal.h"

#include <assert.h>

enum { SOURCE_WORDS_MAX = 8 };

/* Directions that bits take in the words rotated right by 0 .. 31. */
typedef struct Turns {
    uint32_t up[SOURCE_WORDS_MAX], down[SOURCE_WORDS_MAX];
} Turns;

bool is_placed(const Planner *p, DType to)
{
    return p->packed && p->storage.to == to;
}

/* The place in a word of the result where a bit of an element goes. */
static unsigned target_bit(const Planner *p, unsigned e, unsigned bit)
{
    const DTypeInfo *f = p->from;
    bool is_sign = f->kind == DKIND_FLOAT && bit == f->exponent + (unsigned)f->mantissa;
    return e % 2 * 16 + (is_sign ? 15 : p->storage.low[e % p->storage.elements] + bit);
}

static void list_turns(Planner *p)
{
    p->turns = arena_array(p->arena, Turns, 1);
    for (unsigned e = 0; e < p->query->elements; e++)
        for (unsigned b = 0; b < p->from->bits; b++) {
            unsigned from = source_bit(p, e, b), to = target_bit(p, e, b), at = from % 32;
            uint32_t turn = UINT32_C(1) << ((at - to) & 31);
            p->turns->up[from / 32] |= at < to ? turn : 0;
            p->turns->down[from / 32] |= at > to ? turn : 0;
        }
}

static unsigned build_turn(Planner *p, unsigned word, unsigned by)
{
    uint16_t source = p->source[word];
    bool up = p->turns->up[word] >> by & 1, down = p->turns->down[word] >> by & 1;
    if (up && down)
        return node_of(p, (CastOp){CAST_shf, by, {source, source}});
    return up ? node_shift(p, CAST_shl, source, 32 - by) : node_shift(p, CAST_shr, source, by);
}

unsigned build_placed(Planner *p, unsigned first, unsigned count, uint32_t rest)
{
    uint32_t masks[SOURCE_WORDS_MAX][32] = {{0}};
    unsigned result = node_constant(p, rest);
    assert(p->in_words <= SOURCE_WORDS_MAX && first + count <= p->query->elements);
    if (!p->turns)
        list_turns(p);
    for (unsigned e = first; e < first + count; e++)
        for (unsigned b = 0; b < p->from->bits; b++) {
            unsigned from = source_bit(p, e, b), to = target_bit(p, e, b);
            masks[from / 32][(from - to) & 31] |= UINT32_C(1) << to;
        }
    for (unsigned word = 0; word < p->in_words; word++)
        for (unsigned by = 0; by < 32; by++)
            if (masks[word][by])
                result = node_lop3(p, LOP3_AND_XOR, build_turn(p, word, by),
                                   node_constant(p, masks[word][by]), result);
    return result;
}
