/* The tables of ops and attributes: the rows of ops.def and attrs.def. */
#ifndef TILUS_IR_OP_INFO_H
#define TILUS_IR_OP_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- attributes ----------------------------------------------------- */

typedef enum AttrKind {
#define ATTR(id, spelling, value) ATTR_##id,
#include "ir/attrs.def"
    ATTR_COUNT
} AttrKind;

typedef enum AttrValueKind {
    ATTR_VALUE_EXPR, ATTR_VALUE_EXPRS, ATTR_VALUE_NUMBER, ATTR_VALUE_TEXT,
    /* these are written {name = value}: */
    ATTR_VALUE_INT, ATTR_VALUE_INTS, ATTR_VALUE_WORD, ATTR_VALUE_SCALAR
} AttrValueKind;

typedef struct AttrInfo {
    const char *spelling;
    AttrValueKind value;
    const char *const *words;       /* WORD: by number; "" where a number has no word */
    unsigned word_count;
} AttrInfo;

extern const AttrInfo attr_info[ATTR_COUNT];

/* Returns true when the attribute is a word that stands before the operands. */
static inline bool attr_is_leading_word(AttrKind kind)
{
    return attr_info[kind].value == ATTR_VALUE_WORD && !*attr_info[kind].spelling;
}

/* Returns true when the attribute is written {name = value}. */
static inline bool attr_in_dictionary(AttrKind kind)
{
    return attr_info[kind].value >= ATTR_VALUE_INT && *attr_info[kind].spelling;
}

/* The bit of OpInfo.attrs that allows the attribute. */
static inline uint64_t op_attr_bit(AttrKind kind)
{
    return UINT64_C(1) << kind;
}

/* ---- ops ------------------------------------------------------------ */

typedef enum OpCode {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
    OP_COUNT,
    OP_ANY = OP_COUNT
} OpCode;

typedef enum OperandKind {
    OPERAND_REG, OPERAND_SHARED, OPERAND_GLOBAL, OPERAND_PTR,
    OPERAND_MEMORY, /* SHARED or GLOBAL */
    OPERAND_TENSOR, /* REG, SHARED or GLOBAL */
    OPERAND_MBARRIER
} OperandKind;

typedef enum ResultKind {
    RESULT_NONE, RESULT_REG, RESULT_SHARED, RESULT_GLOBAL, RESULT_SCALAR, RESULT_INDICES,
    RESULT_CARRIED,
    RESULT_OPTIONAL,    /* a REG, or none when nothing uses it */
    RESULT_TENSOR,      /* of operand 0's kind */
    RESULT_MBARRIER,
    RESULT_EACH         /* a REG for each operand */
} ResultKind;

typedef enum Effect {
    EFFECT_PURE,    /* may be duplicated, merged, removed */
    EFFECT_ALLOC,   /* may be removed, never merged */
    EFFECT_READS,   /* may be removed, not moved across WRITES or BARRIER */
    EFFECT_WRITES,
    EFFECT_BARRIER,
    EFFECT_EXITS,   /* may end the block: keeps its place, WRITES too */
    EFFECT_CONTROL
} Effect;

typedef enum TypeRule {
    RULE_GIVEN, RULE_SAME, RULE_LAST, RULE_ELEMENT, RULE_ENTRY, RULE_BOOL, RULE_REDUCE,
    RULE_SLICE, RULE_PERMUTE, RULE_OPEN, RULE_RESHAPE, RULE_JOIN, RULE_DECODE, RULE_PENDING,
    RULE_WAITED, RULE_SCALAR, RULE_RANK, RULE_INDICES, RULE_CARRIED, RULE_NONE
} TypeRule;

enum { OPERANDS_ANY = -1, OPERANDS_MAX = 3 };

/* How an op accesses the tile of a memory operand (lib/ir/op_access.h). */
typedef enum AccessMode { MODE_READ, MODE_WRITE, MODE_ATOMIC } AccessMode;

/* Which of the threads that run the op access an element. */
typedef enum AccessThreads {
    ACCESS_BY_HOLDERS,      /* those that hold it in the register tensor; an atomic op: the
                               first of these */
    ACCESS_BY_FIRST,        /* the first thread */
    ACCESS_BY_ANY           /* any thread, or the copy unit */
} AccessThreads;

/* When the accesses of an op are over. */
typedef enum Completion {
    COMPLETION_NOW,         /* when the op is */
    COMPLETION_PRODUCT,     /* when its group has been waited for (wgmma.wait_group) */
    COMPLETION_GROUP,       /* when its group has been waited for (PTX ISA, cp.async.wait_group) */
    COMPLETION_BULK_GROUP,  /* likewise (cp.async.bulk.wait_group), first the reads */
    COMPLETION_MBARRIER,    /* when the phase of an mbarrier ends that counts its bytes */
    COMPLETION_COUNT
} Completion;

/* Where an access finds the place of its tile. */
typedef enum AccessPlace {
    ACCESS_AT_OFFSETS,      /* attributes OFFSETS and DIMS */
    ACCESS_AT_SOURCE,       /* attributes SOURCE_OFFSETS and SOURCE_DIMS */
    ACCESS_AT_ALL,          /* the whole tensor */
    ACCESS_AT_DATA          /* somewhere in the tensor, as register operands say */
} AccessPlace;

enum { ACCESSES_MAX = 2 };  /* of one op */

typedef struct AccessRow {
    AccessMode mode;
    AccessPlace place;
    unsigned operand;
} AccessRow;

/* The accesses of an op to memory. */
typedef struct MemoryRow {
    AccessThreads threads;
    Completion completion;
    unsigned counter;       /* COMPLETION_MBARRIER: the operand that counts */
    unsigned count;
    AccessRow accesses[ACCESSES_MAX];
} MemoryRow;

/* An op's effect on the order of accesses. */
typedef enum SyncKind {
    SYNC_NONE,
    SYNC_BARRIER,           /* of all threads of the block or thread_group */
    SYNC_CLUSTER,           /* the same of all threads of the cluster's blocks */
    SYNC_GRID,              /* of those of the block or thread_group, in all blocks of the grid */
    SYNC_COMMIT,            /* makes a group of accesses in flight */
    SYNC_WAIT,              /* waits for accesses in flight, and what came before their end */
    SYNC_INIT,              /* makes mbarriers */
    SYNC_ARRIVE,            /* orders what came before ahead of the end of a phase */
    SYNC_ACQUIRE,           /* of a semaphore; a barrier after it */
    SYNC_RELEASE,           /* of a semaphore; a barrier before it */
    SYNC_LAUNCH,            /* lets the next launch begin */
    SYNC_LAUNCH_WAIT        /* waits for the launches before */
} SyncKind;

typedef struct Sync {
    SyncKind kind;
    Completion completion;  /* of COMMIT, WAIT, INIT and ARRIVE */
} Sync;

typedef struct OpInfo {
    const char *name;
    ResultKind result;
    int operand_least;              /* how many of them must be there */
    int operand_count;              /* or OPERANDS_ANY, of kind operands[0] if `operand_least`
                                       are needed, else of any kind */
    OperandKind operands[OPERANDS_MAX];
    uint64_t attrs;                 /* op_attr_bit(ATTR_x) of each allowed one */
    Effect effect;
    MemoryRow memory;
    Sync sync;
    TypeRule rule;
    const char *summary;
} OpInfo;

extern const OpInfo op_info[OP_COUNT];

/* The attribute's name, its spelling or its row's identifier in small letters: "offsets"; and the attribute of
 * a name, ATTR_COUNT for none. Thread safe. */
const char *attr_name(AttrKind kind);
AttrKind attr_find(const char *name);

/* The number of the attribute's word spelled `word`, or AttrInfo.word_count. */
unsigned attr_word_find(AttrKind kind, const char *word);

/* The op spelled name[0..len), or OP_COUNT. */
OpCode op_find(const char *name, size_t len);

#endif
