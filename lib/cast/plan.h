/* Cast plans: how a thread's packed codes become elements of another type, as a
 * short list of operations on 32-bit words.
 *
 *     u4 -> f16:   %1 = prmt %in0, ...     two codes to two halves
 *                  %2 = lop3 ...           each becomes 1024 + code * 2^p
 *                  %3 = fma.f16x2 ...      minus 1024, times 2^-p
 *
 * A plan is data: it is printed (`tilus-llc --print-cast-plans`), run on the
 * host word by word (`cast_run`), counted (`cast_count`), and only then emitted
 * (lib/codegen/emit_cast_plan.c). Nothing here knows LLVM. Pure functions of
 * their arguments; thread safe for different arenas. */
#ifndef TILUS_CAST_PLAN_H
#define TILUS_CAST_PLAN_H

#include "support/text.h"
#include "types/dtype.h"
#include "types/layout.h"

enum {
    CAST_ELEMENTS_MAX = 32,     /* of a plan: they fill whole words in every type */
    CAST_WORDS_MAX = 32,        /* of its result */
};

typedef enum CastOpCode {
#define CAST_OP(id, spelling, unit, inputs) CAST_##id,
#include "cast/ops.def"
    CAST_OP_COUNT
} CastOpCode;

/* The pipes of a multiprocessor that operations occupy. */
typedef enum CastUnit {
    CAST_UNIT_NONE, CAST_UNIT_INT, CAST_UNIT_HALF, CAST_UNIT_F32, CAST_UNIT_CVT,
    CAST_UNIT_COUNT
} CastUnit;

typedef struct CastOpInfo {
    const char *name;
    CastUnit unit;
    unsigned inputs;
} CastOpInfo;

extern const CastOpInfo cast_op_info[CAST_OP_COUNT];

/* An operation: its result is the word that has its number in the plan. */
typedef struct CastOp {
    CastOpCode code;
    uint32_t imm;
    uint16_t in[3];             /* numbers of earlier operations; unused ones are 0 */
} CastOp;

/* Families of plans, which decode codes and, from linear on, round wide floats to codes;
 * docs/casts.md describes each. */
typedef enum CastFamily {
    CAST_FAMILY_magic, CAST_FAMILY_subnormal, CAST_FAMILY_realign, CAST_FAMILY_lookup,
    CAST_FAMILY_hardware, CAST_FAMILY_bytes, CAST_FAMILY_bare,
    CAST_FAMILY_linear, CAST_FAMILY_quantum, CAST_FAMILY_carry, CAST_FAMILY_convert,
    CAST_FAMILY_codebook,
    CAST_FAMILY_COUNT
} CastFamily;

/* A cast to plan. */
typedef struct CastQuery {
    DType from, to;
    unsigned elements;          /* 1 .. CAST_ELEMENTS_MAX */
    unsigned sm;                /* 90 for sm_90a: what exists, and what it costs */
    DType packed;               /* the source is in storage order packed(packed), see
                                   types/storage.h, and elements fill whole groups;
                                   DTYPE_none: in plain order */
    unsigned families;          /* bit f: family f may do it; 0: any */
    bool finite;                /* codes that are no numbers may become anything */
    bool deferred;              /* results keep a deferred power-of-two scale, that of
                                   cast_exponents: no arithmetic; only from packed(to) */
} CastQuery;

typedef struct CastPlan {
    CastQuery query;
    CastFamily family;
    DType via;                  /* what the family decodes to: `to`, or a type from which
                                   few operations lead there; from f16, bf16 and f32, what
                                   it computes in */
    DType less;                 /* of the zero points that it takes off, or none */
    CastOp *ops;                /* each after those that it reads */
    uint32_t count;
    unsigned table_ops;         /* those of a codebook that read the table alone: once for
                                   all codes, where a loop repeats the rest */
    uint16_t out[CAST_WORDS_MAX];   /* numbers of the operations that give the result,
                                       element slot s of width w in bits
                                       [s * w, (s + 1) * w) of these words; bits past the
                                       last element are unspecified */
    unsigned out_words;
    int16_t exponents[CAST_ELEMENTS_MAX];   /* of deferred scales, one an element */
} CastPlan;

/* Plans a cast; the operations lie in `arena`. False when no family fits: such
 * a cast goes element by element (lib/codegen/convert.h). Sources are never
 * changed, and bits of the source past the last element are not looked at in
 * a way that matters. */
bool cast_plan(Arena *arena, const CastQuery *query, CastPlan *plan);

/* Plans a look-up of codes u1 .. u4, `query->from`, in a table of as many elements of
 * `query->to`, 8 or 16 bits each, that is known only when the plan runs: its words, one
 * entry after another, are inputs after those of the source. */
bool cast_plan_codebook(Arena *arena, const CastQuery *query, CastPlan *plan);

/* Words of the source, before those of a table. */
unsigned cast_source_words(const CastQuery *query);

/* Zero points that a plan takes off: integers of `type`, at most 8 bits wide. Equal
 * numbers in `of` say that elements share one. */
typedef struct CastZeros {
    DType type;
    uint16_t of[CAST_ELEMENTS_MAX];
} CastZeros;

/* Returns the zero points of `elements` elements of a thread, from slot `first` of `codes`
 * on, where slots of `groups` hold them, as layout_broadcasts says. */
CastZeros cast_zeros_of(DType type, const Layout *groups, const Layout *codes, int64_t first,
                        unsigned elements);

/* Plans, to f16, bf16 or f32, codes less zero points: exactly what a cast and a
 * difference give, but taken off by a constant that the cast adds anyway. The zero
 * points are inputs after the source's words: one word for each word of the result,
 * with those of its elements in type `to`, of which a plan reads the first of equal
 * ones. False where no family can. */
bool cast_plan_zeros(Arena *arena, const CastQuery *query, const CastZeros *zeros,
                     CastPlan *plan);

/* The meaning of one operation that has inputs, the words a, b and c. */
uint32_t cast_run_op(const CastOp *op, uint32_t a, uint32_t b, uint32_t c);

/* Runs a plan: `in` holds the source's words, `out` gets the result's. */
void cast_run(const CastPlan *plan, const uint32_t *in, uint32_t *out);

/* Operations of a plan by unit; constants and inputs are none, nor is what only
 * prepares a table. */
typedef struct CastCount {
    unsigned unit[CAST_UNIT_COUNT], total;
    unsigned cost;              /* by the table of costs of the target */
} CastCount;

CastCount cast_count(const CastPlan *plan);

/* The word of a family, which families of other casts may share: "hardware"; and bits of
 * the families of a word, 0 if there are none. */
const char *cast_family_word(CastFamily family);
unsigned cast_families_named(const char *word);

/* "magic", "realign via bf16", "magic less u4"; in `arena`. */
const char *cast_family_name(Arena *arena, const CastPlan *plan);

/* A row of the table of plans, of which the query are the first columns; the operations, one a
 * line; one operation, `node` of the plan, alone. */
void cast_print_heading(Text *out);
void cast_print_query(Text *out, const CastQuery *query);
void cast_print_row(Text *out, const CastPlan *plan);
void cast_print_ops(Text *out, const CastPlan *plan);
void cast_print_op(Text *out, const CastPlan *plan, unsigned node);

/* Deferred scales: `decode` of elements of `from` in packed(to) gives their
 * values times 2^exponents[slot % cast_group(from)], exactly, without arithmetic.
 * False where there is no such decode: `from` is a signed integer (view it as an
 * unsigned one: its codes are offset binary), or `to` is not f16 or bf16, or does
 * not hold the scaled values. `exponents` has room for CAST_GROUP_MAX; `arena` for
 * what is worked with. */
bool cast_exponents(Arena *arena, DType from, DType to, int16_t *exponents);

#endif
