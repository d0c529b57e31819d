/* The bits of a plan's words: which bits of which codes each one is made of. */
#ifndef TILUS_CAST_BITS_H
#define TILUS_CAST_BITS_H

#include "cast/plan.h"

typedef enum CastBitKind {
    CAST_BIT_CONSTANT,          /* of no code */
    CAST_BIT_CODE,              /* depends on one bit of one element alone */
    CAST_BIT_ELEMENT,           /* on several bits of one element */
    CAST_BIT_MIXED,             /* on several elements */
    CAST_BIT_OTHER              /* on zero points or a table, and perhaps on codes, too */
} CastBitKind;

typedef struct CastBit {
    uint8_t kind;               /* CastBitKind */
    uint8_t element;            /* CODE, ELEMENT */
    uint8_t bit;                /* CODE: of the element, from the lowest one; CONSTANT: the value */
} CastBit;

/* The bits of a word, from the lowest one. */
typedef struct CastWord {
    CastBit bits[32];
} CastWord;

/* Gives the bits of each operation's result: plan->count words, in `arena`. Found by running the
 * plan on words that differ in one bit, for some values of the others. */
CastWord *cast_bits(Arena *arena, const CastPlan *plan);

#endif
