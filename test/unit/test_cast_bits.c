/* Bits that cast_bits finds in a plan written by hand, each of which is known. */
#include "cast/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { LOP3_AND = 0xc0 };   /* of a and b */

enum { CODES, CONSTANT, HIGHER, NEXT, SUM, PAIR, TABLE, WITH_TABLE, COUNT };

static const CastOp ops[] = {
    [CODES] = {CAST_input, 0, {0}},
    [CONSTANT] = {CAST_constant, 0x80000006, {0}},
    [HIGHER] = {CAST_shl, 3, {CODES}},
    [NEXT] = {CAST_shr, 1, {CODES}},
    [SUM] = {CAST_add, 0, {CODES, HIGHER}},
    [PAIR] = {CAST_lop3, LOP3_AND, {CODES, NEXT, CODES}},
    [TABLE] = {CAST_input, 1, {0}},
    [WITH_TABLE] = {CAST_sub, 0, {CODES, TABLE}},
};

static void expect_bit(const CastWord *words, int word, unsigned place, CastBitKind kind,
                       unsigned element, unsigned bit)
{
    const CastBit *b = &words[word].bits[place];
    bool in_element = kind == CAST_BIT_CODE || kind == CAST_BIT_ELEMENT;
    bool has_bit = kind == CAST_BIT_CODE || kind == CAST_BIT_CONSTANT;
    if (b->kind != kind || (in_element && b->element != element) || (has_bit && b->bit != bit))
        fail_msg("bit %u of word %d: kind %d, element %d, bit %d", place, word, b->kind,
                 b->element, b->bit);
}

static void follows_bits(void **state)
{
    (void)state;
    Arena arena;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    const CastPlan plan = {.query = {.from = DTYPE_u4, .to = DTYPE_u8, .elements = 8,
                                     .packed = DTYPE_none},
                           .ops = (CastOp *)ops, .count = COUNT};
    const CastWord *words = cast_bits(&arena, &plan);
    for (unsigned i = 0; i < 32; i++) {
        expect_bit(words, CODES, i, CAST_BIT_CODE, i / 4, i % 4);
        expect_bit(words, CONSTANT, i, CAST_BIT_CONSTANT, 0, 0x80000006 >> i & 1);
        expect_bit(words, TABLE, i, CAST_BIT_OTHER, 0, 0);
        expect_bit(words, WITH_TABLE, i, CAST_BIT_OTHER, 0, 0);
        if (i < 3)
            expect_bit(words, HIGHER, i, CAST_BIT_CONSTANT, 0, 0);
        else
            expect_bit(words, HIGHER, i, CAST_BIT_CODE, (i - 3) / 4, (i - 3) % 4);
        if (i % 4 == 3 && i < 31)
            expect_bit(words, PAIR, i, CAST_BIT_MIXED, 0, 0);
        else if (i < 31)
            expect_bit(words, PAIR, i, CAST_BIT_ELEMENT, i / 4, 0);
    }
    expect_bit(words, SUM, 2, CAST_BIT_CODE, 0, 2);
    expect_bit(words, SUM, 3, CAST_BIT_ELEMENT, 0, 0);
    expect_bit(words, SUM, 4, CAST_BIT_MIXED, 0, 0);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(follows_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
