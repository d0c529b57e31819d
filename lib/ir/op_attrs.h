/* Attributes of op families, as values: words as enums, numbers. */
#ifndef TILUS_IR_OP_ATTRS_H
#define TILUS_IR_OP_ATTRS_H

#include "ir/ir.h"

/* ---- words ------------------------------------------------------------- */

/* Enumerators follow the rows of words.def. *_NONE, their number, stands for a word that
 * is missing or, before the verifier has run, in no row. */
typedef enum ReduceKind {
#define REDUCE(id, spelling) REDUCE_##id,
#include "ir/words.def"
    REDUCE_NONE
} ReduceKind;

typedef enum Predicate {
#define PREDICATE(id, spelling) PREDICATE_##id,
#include "ir/words.def"
    PREDICATE_NONE
} Predicate;

typedef enum AtomicOrder {
#define ORDER(id, spelling) ORDER_##id,
#include "ir/words.def"
    ORDER_NONE
} AtomicOrder;

typedef enum AtomicScope {
#define SCOPE(id, spelling) SCOPE_##id,
#include "ir/words.def"
    SCOPE_NONE
} AtomicScope;

typedef enum Evict {
#define EVICT(id, spelling) EVICT_##id,
#include "ir/words.def"
    EVICT_NONE
} Evict;

typedef enum Blocks {
#define BLOCKS(id, spelling) BLOCKS_##id,
#include "ir/words.def"
    BLOCKS_NONE
} Blocks;

typedef enum Reduction {
#define REDUCTION(id, spelling) REDUCTION_##id,
#include "ir/words.def"
    REDUCTION_NONE
} Reduction;

typedef enum Flag {
#define FLAG(id, spelling) FLAG_##id,
#include "ir/words.def"
    FLAG_NONE
} Flag;

typedef enum Drain {
#define DRAIN(id, spelling) DRAIN_##id,
#include "ir/words.def"
    DRAIN_NONE
} Drain;

/* How a load, store or dot is compiled: the words of `via`. */
typedef enum Via {
    VIA_units,      /* plain accesses; no word */
#define VIA(id, spelling, op, matrices, transposed) VIA_##id,
#include "ir/via.def"
    VIA_COUNT
} Via;

typedef struct ViaInfo {
    const char *spelling;
    OpCode op;              /* the op that it is for; OP_ANY: any load or store */
    unsigned matrices;      /* that one instruction moves, or 0 */
    bool transposed;
} ViaInfo;

extern const ViaInfo via_info[VIA_COUNT];

/* The row spelled `word`, or VIA_COUNT. */
Via via_find(const char *word);

/* The word of attribute VIA; VIA_units without one. */
Via op_via(const Op *op);

/* How a WORD is spelled, and the words that it may be: "sum, max or min". */
const char *attr_word_text(const Attr *attr);
const char *attr_words_text(Arena *arena, AttrKind kind);

/* For `reduce` and `scan`: the function, REDUCE_NONE without one. For `reduce`: a bit for
 * each dimension that it reduces. */
ReduceKind reduce_kind(const Op *op);
uint32_t reduce_dims(const Op *op);

/* Returns true when a reduction gives the index of an element; when it takes bools. */
static inline bool reduce_gives_index(ReduceKind kind)
{
    return kind == REDUCE_ARGMAX || kind == REDUCE_ARGMIN;
}

static inline bool reduce_takes_bools(ReduceKind kind)
{
    return kind == REDUCE_ANY || kind == REDUCE_ALL;
}

/* Returns true when the greater element counts. */
static inline bool reduce_prefers_greater(ReduceKind kind)
{
    return kind == REDUCE_MAX || kind == REDUCE_ARGMAX;
}

/* For `scan` and `shuffle`: the dimension along which they work. For `scan`: whether each
 * element is left out of its own result. */
unsigned op_dim(const Op *op);
bool scan_is_exclusive(const Op *op);

/* For `print`: the blocks that do; the first one when the text says nothing. */
Blocks print_blocks(const Op *op);

/* For `compare`; PREDICATE_NONE without one. */
Predicate compare_predicate(const Op *op);

/* For the atomic ops: the accesses that they order, and of these, `lock` and `release` for
 * whom; relaxed and gpu when the text says nothing. */
AtomicOrder atomic_order(const Op *op);
AtomicScope op_scope(const Op *op);

/* For loads, stores and copies of global memory: when the caches should give up what is
 * accessed, and how many bytes the L2 cache should fetch with what is read, 0: no more
 * than that. */
Evict access_evict(const Op *op);
unsigned access_prefetch(const Op *op);

/* For ops with regions: where they wait for products; NONE when the text says nothing. */
Drain op_drain(const Op *op);

/* ---- numbers and flags --------------------------------------------------- */

/* For `copy_async_bulk_store`: what becomes of a place; NONE: the element. */
Reduction store_reduction(const Op *op);

/* For `copy_async_bulk_wait_group`: it waits for reads alone; false of other ops. */
bool bulk_wait_reads(const Op *op);
/* For `allocate_mbarrier`: the arrivals that complete a phase. */
int64_t mbarrier_arrivals(const Op *op);

/* For `allocate_global`: whether its tensor starts as zeros. */
bool workspace_is_zeroed(const Op *op);

/* The value that stands for the state of barriers of the grid in the global tensor `v`: that itself,
 * of a zeroed allocate_global, or the argument under a view_global; else NULL. */
const Value *grid_state(const Value *v);

/* For `cast` and `dequantize`: whether its codes are promised to be numbers. */
bool cast_is_finite(const Op *op);

/* For `iota`: the dimension that it counts. */
unsigned iota_dim(const Op *op);

/* For `scalar`, `iota` and `splat` of an integer: whether the type of the result holds each
 * element when VALUE is `value`. */
bool value_holds(const Op *op, int64_t value);
/* Says, on `arena`, why the result of an iota or splat does not hold `value`. */
const char *value_misfit_text(Arena *arena, const Op *op, int64_t value);

/* For `splat` and `print`: the scalar of floats that VALUE is, or NULL. */
const Value *value_float_scalar(const Op *op);

/* For `lock` and `release`: whether the semaphore's type holds the value. */
bool semaphore_holds(const Op *op, int64_t value);

/* Returns true when the last operand of `op`, which acts on an mbarrier, has the mbarrier `element`. */
bool mbarrier_has(const Op *op, int64_t element);

/* Return true when the program's clusters have a block of rank `rank`, and when the ranks of `mask` are those
 * of one block or more, and of no others. */
bool cluster_has_rank(const Program *p, int64_t rank);
bool cluster_has_ranks(const Program *p, int64_t mask);

#endif
