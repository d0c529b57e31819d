/* The IR: modules, programs, structured regions, ops, values, types.
 *
 *   Module ── Program ── Region (body) ── Op ── Value (results)
 *                                          └── Region (for, if) ── ...
 *
 * SSA with structured control flow: a value is used only after its definition
 * in the same region or in an enclosing one. Everything lives in the module's
 * arena until `module_free`; an op taken out of its region stays allocated.
 * A module belongs to one thread at a time. */
#ifndef TILUS_IR_IR_H
#define TILUS_IR_IR_H

#include "support/diag.h"
#include "support/remark.h"
#include "types/dtype.h"
#include "types/expr.h"
#include "types/layout.h"
#include "types/constant.h"

/* ---- types ---------------------------------------------------------- */

typedef enum TypeKind {
    TYPE_SCALAR,    /* an integer of at most 64 bits that i64 holds */
    TYPE_PTR,       /* ptr<dtype>, into global memory */
    TYPE_REG,       /* dtype[extents] [@ layout] */
    TYPE_SHARED,    /* dtype[extents] shared [strides(..)] [swizzle(..)] */
    TYPE_GLOBAL,    /* dtype[extents] global [strides(..)] */
    TYPE_MBARRIER   /* mbarrier[extents], of rank 1, in shared memory */
} TypeKind;

/* A permutation of element numbers (CuTe's Swizzle<B, M, S>, in elements): the
 * `bits` bits from `base` on are xored with those `shift` above them. Runs of
 * 2^base elements stay together, aligned; as shift >= bits, the bits that are
 * read stay themselves. bits = 0: none, as are base and shift then.
 *
 *     element number   ...  s s s  ...  d d d  m m m       swizzle(3, 3, shift)
 *                           |_____ xor ___^    `------ base
 */
typedef struct Swizzle {
    uint8_t bits, base, shift;      /* each at most LIMIT_SWIZZLE */
} Swizzle;

static inline int64_t swizzle_element(Swizzle s, int64_t element)
{
    int64_t mask = ((INT64_C(1) << s.bits) - 1) << s.base;
    return element ^ ((element >> s.shift) & mask);
}

/* Residual exponents of a REG type: an element of value v is stored as v * 2^e, and
 * e is exponents[i mod count] for the index i along dimension `dim`. `count` is
 * the least period, a divisor of the extent; 1 where all are equal, and dim is 0
 * then. Not all are 0. */
typedef struct Scaling {
    unsigned dim, count;
    int16_t exponents[];
} Scaling;

enum { SCALING_COUNT_LIMIT = 1024, SCALING_EXPONENT_LIMIT = 1000 };

/* Interned: equal types are equal pointers. Extents of REG and SHARED, and
 * strides of SHARED, are constants. Strides count elements; NULL: row-major. */
typedef struct Type {
    TypeKind kind;
    DType dtype;
    unsigned rank;
    const Expr *extents[LIMIT_RANK];
    const Expr *const *strides;
    const Layout *layout;           /* TYPE_REG only; NULL: open, infer-layouts chooses */
    DType packed;                   /* TYPE_REG only: codes lie in storage order packed(T)
                                       (types/storage.h); DTYPE_none: in plain order */
    const Scaling *scaling;         /* TYPE_REG only; NULL: elements are their values */
    Swizzle swizzle;                /* TYPE_SHARED only */
    bool swizzle_open;              /* swizzle(auto): infer-layouts chooses; none until then */
} Type;

/* ---- ops ------------------------------------------------------------ */

typedef enum OpCode {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
    OP_COUNT,
    OP_ANY = OP_COUNT
} OpCode;

typedef enum AttrKind {
#define ATTR(id, spelling, value) ATTR_##id,
#include "ir/attrs.def"
    ATTR_COUNT
} AttrKind;

typedef enum AttrValueKind {
    ATTR_VALUE_EXPR, ATTR_VALUE_EXPRS, ATTR_VALUE_NUMBER, ATTR_VALUE_TEXT,
    /* these are written {name = value}: */
    ATTR_VALUE_INT, ATTR_VALUE_INTS, ATTR_VALUE_WORD
} AttrValueKind;

typedef struct AttrInfo {
    const char *spelling;
    AttrValueKind value;
} AttrInfo;

extern const AttrInfo attr_info[ATTR_COUNT];

/* Whether the attribute is a word that stands before the operands. */
static inline bool attr_is_leading_word(AttrKind kind)
{
    return attr_info[kind].value == ATTR_VALUE_WORD && !*attr_info[kind].spelling;
}

/* Whether it is written {name = value}. */
static inline bool attr_in_dictionary(AttrKind kind)
{
    return attr_info[kind].value >= ATTR_VALUE_INT && !attr_is_leading_word(kind);
}

/* One attribute's value; which members count is attr_info[kind].value. */
typedef struct Attr {
    AttrKind kind;
    unsigned count;                 /* EXPRS, INTS */
    const Expr *expr;               /* EXPR */
    const Expr *const *exprs;       /* EXPRS */
    const int64_t *ints;            /* INTS */
    int64_t integer;                /* INT */
    const char *word;               /* WORD: names joined by dots */
    Constant number;                /* NUMBER */
    const char *text;               /* TEXT: without quotes, on one line */
} Attr;

/* The bit of OpInfo.attrs that allows the attribute. */
static inline uint64_t op_attr_bit(AttrKind kind)
{
    return UINT64_C(1) << kind;
}

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
    RESULT_MBARRIER
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
    RULE_SLICE, RULE_PERMUTE, RULE_DECODE, RULE_SCALAR, RULE_INDICES, RULE_CARRIED, RULE_NONE
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
    COMPLETION_GROUP,       /* when its group has been waited for (PTX ISA, cp.async.wait_group) */
    COMPLETION_MBARRIER     /* when the phase of an mbarrier ends that counts its bytes */
} Completion;

/* Where an access finds the place of its tile. */
typedef enum AccessPlace {
    ACCESS_AT_OFFSETS,      /* attributes OFFSETS and DIMS */
    ACCESS_AT_SOURCE,       /* attributes SOURCE_OFFSETS and SOURCE_DIMS */
    ACCESS_AT_DATA          /* somewhere in the tensor, as register operands say */
} AccessPlace;

enum { ACCESSES_MAX = 2 };  /* of one op */

typedef struct AccessRow {
    AccessMode mode;
    AccessPlace place;
    unsigned operand;
} AccessRow;

/* All accesses of an op. */
typedef struct MemoryRow {
    AccessThreads threads;
    Completion completion;
    unsigned counter;       /* COMPLETION_MBARRIER: the operand that counts */
    unsigned count;
    AccessRow accesses[ACCESSES_MAX];
} MemoryRow;

/* What an op does to the order of accesses. */
typedef enum SyncKind {
    SYNC_NONE,
    SYNC_BARRIER,           /* of all threads of the block or thread_group */
    SYNC_COMMIT,            /* makes a group of accesses in flight */
    SYNC_WAIT,              /* waits for accesses in flight, and what came before their end */
    SYNC_INIT,              /* makes mbarriers */
    SYNC_ARRIVE,            /* orders what came before ahead of the end of a phase */
    SYNC_ACQUIRE,           /* of a semaphore; a barrier behind it */
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
    int operand_count;              /* or OPERANDS_ANY */
    OperandKind operands[OPERANDS_MAX];
    uint64_t attrs;                 /* op_attr_bit(ATTR_x) of each allowed one */
    Effect effect;
    MemoryRow memory;
    Sync sync;
    TypeRule rule;
    const char *summary;
} OpInfo;

extern const OpInfo op_info[OP_COUNT];

/* The op spelled name[0..len), or OP_COUNT. */
OpCode op_find(const char *name, size_t len);

/* ---- how loads and stores are compiled --------------------------------- */

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

/* The one spelled `word`, or VIA_COUNT. */
Via via_find(const char *word);

/* ---- values, regions, programs -------------------------------------- */

typedef struct Op Op;
typedef struct Region Region;
typedef struct Program Program;
typedef struct tilus_module Module;     /* public, opaque name: tilus_module */

/* What an argument promises; the launcher checks each. Of scalars: divisible
 * and [min, max]. Of pointers: align, in bytes. */
typedef struct Facts {
    int64_t divisible;      /* >= 1 */
    int64_t min, max;
    int64_t align;          /* a power of two */
    bool has_range, has_divisible, has_align;   /* written in the text */
} Facts;

struct Value {
    const Type *type;
    const char *name;       /* without %, unique in its scope; NULL: numbered when printed */
    Loc loc;
    Op *def;                /* the op whose result it is, or NULL */
    Region *region;         /* the region whose argument it is, or NULL */
    Program *program;       /* the program whose argument it is, or NULL */
    unsigned index;         /* among results, region arguments or arguments */
    Facts facts;            /* arguments of programs only */
    const char *printed;    /* the printer's own: the name while it prints */
    void *data;             /* a pass's own, NULL between passes */
};

struct Region {
    Op *parent;             /* NULL for a program's body */
    Program *program;
    Value **args;           /* for: the index, then the carried values; while: these */
    unsigned arg_count;
    Op *first, *last;
};

struct Op {
    OpCode code;
    Loc loc;
    Value **operands;
    unsigned operand_count;
    Value **results;
    unsigned result_count;
    Attr *attrs;
    unsigned attr_count;
    Region **regions;       /* for, while, thread_group: 1; if: 2 (then, else) */
    unsigned region_count;
    Region *parent;         /* NULL once removed */
    Op *prev, *next;
    unsigned mark;          /* a pass's own, 0 between passes */
};

struct Program {
    const char *name;       /* without @ */
    Loc loc;
    Module *module;
    const Expr *grid[3];
    unsigned grid_rank;
    Value **args;
    unsigned arg_count;
    unsigned warps;
    unsigned min_blocks;    /* of which registers suffice in a multiprocessor; 0: any */
    Region *body;
    Program *next;
};

struct tilus_module {
    Arena arena;            /* both jump to diag->oom when memory runs out */
    Arena scratch;          /* released by mark, empty between passes */
    ExprTable exprs;
    LayoutTable layouts;
    InternSet types;
    Diag *diag;             /* where located errors go; not owned */
    Program *programs, *last_program;
    uint32_t value_count;
    uint64_t *pass_stats;   /* counters of lib/passes/report.h; NULL: not wanted */
    /* While passes run: */
    unsigned target_sm;     /* the target's number, 90 for sm_90a; 0: any target */
    const Remarks *remarks; /* where passes say what they chose, or NULL */
    bool strict_hazards;    /* check-hazards: what is not proved is an error */
};

/* ---- modules -------------------------------------------------------- */

/* NULL when memory runs out. `diag` must outlive the module. */
Module *module_new(Diag *diag);
void module_free(Module *m);
Program *module_find_program(const Module *m, const char *name);
/* Where its first program begins: for what concerns all of it. */
Loc module_loc(const Module *m);

/* Threads of a block. */
static inline int64_t program_threads(const Program *p) { return 32 * (int64_t)p->warps; }

/* Threads of four warps, of which the first has a number divisible by four. */
enum { WARPGROUP = 128, WARPGROUPS = LIMIT_THREADS / WARPGROUP };

/* Registers that are set aside for a thread when its block begins: as many as `min_blocks`
 * blocks leave it, in eights. 0 without `min_blocks`, as ptxas decides then. */
int64_t program_registers(const Program *p);

/* ---- types ---------------------------------------------------------- */

const Type *type_scalar(Module *m, DType dtype);
const Type *type_ptr(Module *m, DType dtype);
const Type *type_reg(Module *m, DType dtype, const Layout *layout);
/* A REG type whose layout is left open. Extents are constants. */
const Type *type_reg_open(Module *m, DType dtype, unsigned rank, const Expr *const *extents);
/* The REG type `t` with another element type, in plain order and not scaled. */
const Type *type_like(Module *m, const Type *t, DType dtype);
/* The REG type `t` with a layout of its shape; NULL leaves it open. */
const Type *type_with_layout(Module *m, const Type *t, const Layout *layout);
/* The REG type `t` in storage order packed(to); DTYPE_none: in plain order. */
const Type *type_packed(Module *m, const Type *t, DType to);
/* The REG type `t` with residual exponents, `count` of them, a divisor of the
 * extent of `dim`, from 1 to SCALING_COUNT_LIMIT. */
const Type *type_scaled(Module *m, const Type *t, unsigned dim, unsigned count,
                        const int16_t *exponents);
/* The residual exponent at `index`, whose entry for the scaling's dimension is
 * what matters; 0 where there are none. */
static inline int type_exponent(const Type *t, const int64_t *index)
{
    const Scaling *s = t->scaling;
    return s ? s->exponents[index[s->dim] % s->count] : 0;
}
/* Whether infer-layouts has yet to choose the layout or the swizzle. Only the
 * parser, the printer, the verifier and that pass meet such types. */
static inline bool type_is_open(const Type *t)
{
    return t->kind == TYPE_REG ? !t->layout : t->swizzle_open;
}
/* `strides` may be NULL; strides equal to row-major ones become NULL. */
const Type *type_memory(Module *m, TypeKind kind, DType dtype, unsigned rank,
                        const Expr *const *extents, const Expr *const *strides);
/* A SHARED type with another swizzle; of 0 bits, without one. */
const Type *type_swizzled(Module *m, const Type *t, Swizzle swizzle);
/* A SHARED type whose swizzle is left open. */
const Type *type_swizzle_open(Module *m, const Type *t);
/* `count` mbarriers; of no element type. */
const Type *type_mbarrier(Module *m, int64_t count);
/* The stride of dimension `d` in elements, computed when row-major. NULL if a
 * constant product overflows. */
const Expr *type_stride(Module *m, const Type *t, unsigned d);
/* The constant extent of a REG or SHARED type. */
int64_t type_extent(const Type *t, unsigned d);
/* Bits that one thread holds of a REG type, and the 32-bit words they fill. */
int64_t type_thread_bits(const Type *t);
int64_t type_thread_words(const Type *t);
/* Bits that a SHARED tensor spans, from its first to its last element; -1 if
 * that overflows. A legal swizzle keeps elements in that span. */
int64_t type_shared_bits(const Type *t);

/* Shared tensors start at multiples of SHARED_ALIGN bytes, and an attribute
 * OFFSET keeps one within LIMIT_SHARED_BYTES. */
#define SHARED_ALIGN 16

/* Copies of copy_async_bulk begin at multiples of so many bytes, and have so many
 * (PTX ISA, cp.async.bulk). */
#define BULK_ALIGN 16

/* ---- ops ------------------------------------------------------------ */

const Attr *op_attr(const Op *op, AttrKind kind);
/* Adds `attr`, or replaces the one of its kind. */
void op_set_attr(Module *m, Op *op, Attr attr);
/* Takes away the one of that kind, if there is one. */
void op_remove_attr(Op *op, AttrKind kind);
/* The expression of an EXPR attribute, or NULL. */
const Expr *op_expr(const Op *op, AttrKind kind);

/* For loads and stores: the view's dimension that dimension `d` of the register
 * tile spans (attribute DIMS or the last ones). */
unsigned op_tile_dim(const Op *op, unsigned d);
/* The memory operand that attribute OFFSETS is of, of a copy its target, and the register
 * tile's type of a load or store. */
Value *op_memory_operand(const Op *op);
/* The number of that operand: the last one that the row gives a tensor's kind, or the last. */
unsigned op_memory_number(const Op *op);
const Type *op_tile_type(const Op *op);

/* For `reduce`: what it computes (REDUCE_NONE: no such word), and a bit for
 * each dimension that it reduces. */
typedef enum ReduceKind { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_NONE } ReduceKind;
ReduceKind reduce_kind(const Op *op);
uint32_t reduce_dims(const Op *op);
/* The tile of a memory tensor that an op reads or writes; of rank 0, one element,
 * for a semaphore. */
typedef struct MemoryTile {
    Value *memory;
    const Attr *offsets;        /* one for each dimension of the memory; NULL: missing */
    const Attr *dims;           /* those that the tile spans; NULL: the last ones */
    unsigned rank;              /* of the tile */
    int64_t extents[LIMIT_RANK];    /* 0: no constant, of a slice of a global tensor */
} MemoryTile;

/* That at OFFSETS of the memory operand; of a copy, the one it writes. */
MemoryTile op_memory_tile(const Op *op);
/* That at SOURCE_OFFSETS of the first operand: the one a copy reads. */
MemoryTile op_source_tile(const Op *op);
/* The memory's dimension that dimension `d` of the tile spans. */
unsigned memory_tile_dim(const MemoryTile *t, unsigned d);
/* The dimension of the tile that spans the memory's dimension `d`, or -1. */
int memory_tile_find(const MemoryTile *t, unsigned d);

/* For `copy_async_bulk`: the bytes of its tile, and the number of elements; -1 if that
 * is no whole number of bytes. */
int64_t bulk_bytes(const Op *op);
int64_t bulk_elements(const Op *op);

/* For `allocate_mbarrier`: the arrivals that complete a phase. */
int64_t mbarrier_arrivals(const Op *op);

/* For `allocate_global`: whether its tensor starts as zeros. */
bool workspace_is_zeroed(const Op *op);

/* For `cast` and `dequantize`: whether its codes are promised to be numbers. */
bool cast_is_finite(const Op *op);

/* For `lock` and `release`: whether the semaphore's type holds the value. */
bool semaphore_holds(const Op *op, int64_t value);

/* For `compare`: what it tests (PREDICATE_NONE: no such word). */
typedef enum Predicate {
    PREDICATE_EQ, PREDICATE_NE, PREDICATE_LT, PREDICATE_LE, PREDICATE_GT, PREDICATE_GE,
    PREDICATE_NONE
} Predicate;
Predicate compare_predicate(const Op *op);

/* For the atomic ops: what they order, and for whom; relaxed and gpu when the
 * text says nothing (ORDER_NONE, SCOPE_NONE: no such word). */
typedef enum AtomicOrder {
    ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL, ORDER_NONE
} AtomicOrder;
typedef enum AtomicScope { SCOPE_BLOCK, SCOPE_GPU, SCOPE_SYSTEM, SCOPE_NONE } AtomicScope;
AtomicOrder atomic_order(const Op *op);
AtomicScope atomic_scope(const Op *op);

/* For loads, stores and copies of global memory: when the caches should give up
 * what is accessed (EVICT_NONE: no such word), and how many bytes the L2 cache
 * should fetch with what is read, 0: no more than that. */
typedef enum Evict { EVICT_NORMAL, EVICT_FIRST, EVICT_LAST, EVICT_NONE } Evict;
Evict access_evict(const Op *op);
unsigned access_prefetch(const Op *op);

/* For `for`: the stages of attribute PIPELINED, from 1 to LIMIT_STAGES; 0 without
 * it. */
int64_t for_stages(const Op *op);

/* For `for`: its index value, and the i-th carried value inside the body.
 * A missing STEP attribute means 1. */
Value *for_index(const Op *op);
Value *for_carried(const Op *op, unsigned i);
/* Whether the op is a `for` or `while`, and the i-th carried value inside its body. */
bool op_is_loop(const Op *op);
Value *loop_carried(const Op *op, unsigned i);
/* Which carried value of the loop around it an argument of its body is; -1: the index. */
int loop_carried_number(const Value *argument);
/* The yield that ends a region, or NULL for a program's body. */
Op *region_yield(const Region *r);

/* Threads of a block: `count` ones from `begin` on, whole warps. */
typedef struct ThreadRange {
    int64_t begin, count;
} ThreadRange;

static inline bool thread_range_equal(ThreadRange a, ThreadRange b)
{
    return a.begin == b.begin && a.count == b.count;
}

/* Those that run the ops of `r`: the block's, or those of the thread_group around
 * them. In a register tensor they count from 0. */
ThreadRange region_threads(const Region *r);
/* The thread_group around the ops of `r`, the innermost one, or NULL. */
const Op *region_thread_group(const Region *r);

/* How many regions there are from the program's body to `r`, with both: at most
 * LIMIT_NESTING. The same for the innermost region in `op`. */
unsigned region_depth(const Region *r);
unsigned op_depth(Op *op);

/* ---- walking -------------------------------------------------------- */

/* Calls visit(op, data) on each op of `r` in order, parents before their
 * regions; the visitor may remove the op it is given. Stops when it returns
 * false, and returns false then. Depth is bounded by LIMIT_NESTING. */
bool region_walk(Region *r, bool (*visit)(Op *op, void *data), void *data);

/* Forgets what a pass, the interpreter or code generation kept in Value.data
 * and Op.mark: whoever uses them ends with this. */
void program_clear_data(Program *p);

/* ---- changing ------------------------------------------------------- */

/* Takes `op` out of its region. */
void op_remove(Op *op);
/* Inserts `op` into `r` before `before`, or at the end when NULL. */
void op_insert(Region *r, Op *op, Op *before);
/* Takes the i-th carried value out of a `for`, `while` or `if`: its result, initial
 * value, region argument and yielded values. Nothing may use them any more. */
void op_drop_carried(Op *op, unsigned i);

#endif
