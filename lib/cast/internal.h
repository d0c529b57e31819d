/* Shared by the files of lib/cast: a plan that is being made, and the search
 * for the cheapest way to bring fields of bits to their places. */
#ifndef TILUS_CAST_INTERNAL_H
#define TILUS_CAST_INTERNAL_H

#include "cast/plan.h"
#include "types/storage.h"

enum { LOP3_AND_XOR = 0x6a, LOP3_AND_NOT = 0x30, LOP3_OR_AND = 0xa8, LOP3_SELECT = 0xca };

/* A plan being made. Numbers of operations are called nodes. */
typedef struct Planner {
    Arena *arena;
    const CastQuery *query;
    const DTypeInfo *from;
    const CastZeros *zeros;         /* to take off, or NULL */
    CastOp *ops;
    uint32_t count, capacity;
    CastStorage storage;            /* of the source, where the query has one */
    bool packed;                    /* it has */
    unsigned in_words;
    uint16_t source[CAST_WORDS_MAX];    /* nodes that stand for the source's words */
    struct Turns *turns;            /* of its words, see turn.c; NULL: not listed yet */
    struct Window *windows;         /* those in use, see arrange.c */
    uint32_t window_count, window_capacity;
    uint16_t words[CAST_WORDS_MAX]; /* what the family decoded */
    unsigned word_count;
    int16_t exponents[CAST_ELEMENTS_MAX];   /* of deferred scales */
} Planner;

/* ---- nodes (node.c) -------------------------------------------------- */

/* A node that computes `op`: one that is there, or a new one. */
unsigned node_of(Planner *p, CastOp op);
unsigned node_constant(Planner *p, uint32_t value);
/* A word with `value`, encoded as `t`, in every lane. */
unsigned node_number(Planner *p, DType t, double value);
unsigned node_op(Planner *p, CastOpCode code, unsigned a, unsigned b, unsigned c);
unsigned node_shift(Planner *p, CastOpCode code, unsigned a, unsigned by);
unsigned node_prmt(Planner *p, unsigned a, unsigned b, uint32_t selector);
unsigned node_lop3(Planner *p, unsigned table, unsigned a, unsigned b, unsigned c);

/* The op that adds, multiplies, ... in type f16, bf16 or f32. */
typedef enum Arithmetic {
    ARITH_ADD, ARITH_SUB, ARITH_MUL, ARITH_FMA, ARITH_MAX, ARITH_MIN, ARITH_MAX_NAN, ARITH_MIN_NAN
} Arithmetic;
CastOpCode arithmetic_op(DType t, Arithmetic what);

/* ---- fields to their places (arrange.c) -------------------------------- */

/* Some bits of the source that lie side by side, and where they shall lie. */
typedef struct Field {
    unsigned from, width;       /* bits [from, from + width) of the source */
    unsigned lane;              /* first bit of the lane, 0 .. 31 */
    unsigned low, high;         /* the places in the lane that will do ... */
    unsigned at;                /* ... and the one that was chosen */
} Field;

/* A window is 32 bits of the source from any bit on. A leaf puts some fields in
 * place: by one window, or by bytes of two. */
typedef struct Leaf {
    uint32_t fields;            /* a bit each */
    bool permute;
    int window[2];
} Leaf;

enum { LEAVES_MAX = 32 };

typedef struct Arrangement {
    Field *fields;
    Leaf leaves[LEAVES_MAX];
    unsigned count, cost;
} Arrangement;

/* Chooses the cheapest arrangement of fields, at most 32, and sets their
 * places. */
Arrangement arrange_fields(Planner *p, Field *fields, unsigned count);
/* Builds it: the fields in place, exclusive-or'ed with `flip`; zeros elsewhere
 * are flipped, too. */
unsigned build_arrangement(Planner *p, const Arrangement *a, uint32_t flip);
/* Builds as build_arrangement does, but leaves arbitrary bits outside of the fields; only
 * for arrangements of one leaf. */
unsigned build_unmasked(Planner *p, const Arrangement *a);

/* Appends the bits [bit, bit + width) of element `e`, to lie from place `low`
 * of the lane on, or up to `high`: one field, or several that are fixed at `low`
 * where the storage order parts them. Returns the new count. */
unsigned add_fields(const Planner *p, Field *fields, unsigned count, unsigned e, unsigned bit,
                    unsigned width, unsigned lane, unsigned low, unsigned high);

/* The place of a bit of the source: that of bit `bit` of element `e`. */
unsigned source_bit(const Planner *p, unsigned e, unsigned bit);

/* Makes windows that serve many codes of `width` bits, those of which no place from
 * 0 to `high` of a half will do, in a storage order. */
void share_windows(Planner *p, unsigned width, unsigned high);

/* ---- orders that say the places (turn.c) --------------------------------- */

/* Returns true when the source's order fixes where its codes go in halves of type `to`. */
bool is_placed(const Planner *p, DType to);
/* Builds the halves of the elements from `first` on, one or two: their codes where the order
 * says, exclusive-or'ed with `rest`. */
unsigned build_placed(Planner *p, unsigned first, unsigned count, uint32_t rest);

/* ---- zero points (zeros.c) ----------------------------------------------- */

/* Returns true when a family that subtracts an integer from 0 to `most` from codes in type
 * `to` may subtract the planner's zero points with it: each sum is a number of `to`. */
bool zeros_fit(const Planner *p, DType to, double most);
/* The constant, encoded in each lane, that is added to result word `word`; less the
 * zero points of the word's elements, where there are some to take off. */
unsigned node_offset(Planner *p, DType to, unsigned word, uint32_t constant);

/* ---- families ---------------------------------------------------------- */

/* Each fills p->words with the elements in `to`, or returns false. */
typedef bool FamilyBuilder(Planner *p, DType to);
FamilyBuilder family_magic, family_subnormal, family_realign, family_lookup, family_hardware,
    family_bytes, family_bare, family_codebook;
/* Families that round wide floats (narrow.c): they compute in `to` and fill p->words with
 * codes of the query's type. */
FamilyBuilder family_linear, family_quantum, family_carry, family_convert;

/* Returns true when a query is from f16, bf16 or f32 to a type of up to 8 bits. */
bool is_narrowing(const CastQuery *query);

/* ---- codes into words (narrow_pack.c) ------------------------------------ */

/* p->words are halves with codes of `bits` bits from place `at` on and zeros
 * elsewhere; bytes may lie at 0 or 8, among anything. They become whole words. */
void pack_halves(Planner *p, unsigned bits, unsigned at);
/* As above, of words whose lowest bits, fewer than 8, are codes. */
void pack_singles(Planner *p, unsigned bits);
/* Flips the uppermost bit of each code of whole words. */
void flip_signs(Planner *p, unsigned bits);
/* Replaces the words by `count` others (finish.c). */
void set_words(Planner *p, const uint16_t *words, unsigned count);
/* A byte of each half of two words, or of one, by `selector` (finish.c). */
void pack_words(Planner *p, uint32_t selector);

/* Turns p->words, elements in `via`, into the query's type (finish.c); false
 * where some code would become another one than cast says. */
bool finish_words(Planner *p, DType via);

/* Exponent bias of a float. */
static inline int float_bias(const DTypeInfo *t)
{
    return t->special == SPECIAL_E8M0 ? 127 : (1 << (t->exponent - 1)) - 1;
}

/* The `width` low bits set; width <= 32. */
static inline uint32_t low_bits(unsigned width)
{
    return width ? UINT32_MAX >> (32 - width) : 0;
}

/* Elements in a word of type `t`. */
static inline unsigned lanes_of(DType t)
{
    return 32 / dtype_bits(t);
}

#endif
