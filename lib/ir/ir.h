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

#include "ir/op_info.h"
#include "ir/type.h"
#include "support/diag.h"
#include "support/remark.h"
#include "types/constant.h"

/* ---- values, regions, programs -------------------------------------- */

typedef struct Op Op;
typedef struct Region Region;
typedef struct Program Program;

/* An attribute's value; which members count is attr_info[kind].value. */
typedef struct Attr {
    AttrKind kind;
    unsigned count;                 /* EXPRS, INTS */
    const Expr *expr;               /* EXPR */
    const Expr *const *exprs;       /* EXPRS */
    const int64_t *ints;            /* INTS */
    int64_t integer;                /* INT */
    unsigned word;                  /* WORD: its number in AttrInfo.words */
    Constant number;                /* NUMBER */
    const char *text;               /* TEXT: without quotes, on one line; WORD: the spelling
                                       of a word that is not in the list */
} Attr;

/* Facts of an argument; the launcher checks each. Scalars have divisible and
 * [min, max], pointers align, in bytes. */
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
    bool shifted;           /* runs for another iteration than its loop's index tells in the text */
    bool fitted;            /* infer-layouts gave its tile the layout of the widest accesses proved */
    uint64_t walk;          /* the number of the last callers' walk that came here */
};

/* Where a callers' walk (tilus_block_walk) is in a region; op_remove keeps it right. */
typedef struct WalkCursor {
    const Op *op;               /* that is visited */
    bool gone;                  /* it was removed from the place where the walk met it ... */
    Op *next;                   /* ... and this one stood after it */
    struct WalkCursor *outer;
} WalkCursor;

struct Program {
    const char *name;       /* without @ */
    Loc loc;
    Module *module;
    const Expr *grid[3];
    unsigned grid_rank;
    Value **args;
    unsigned arg_count;
    unsigned warps;
    unsigned min_blocks;    /* whose registers must fit on a multiprocessor; 0: any */
    unsigned cluster[3];    /* blocks of a cluster in each dimension ... */
    unsigned cluster_rank;  /* ... and how many dimensions the text gives; 0: no cluster */
    bool cooperative;       /* all blocks of a launch run at the same time */
    bool contract;          /* a product and the sum that uses it may round once */
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
    uint64_t edits;         /* by callers of the library (tilus/ir.h), so far ... */
    uint64_t verified_edits;    /* ... and those that the verifier has seen */
    /* While passes run: */
    const struct OwnPass *own_pass;     /* the caller's pass that runs (passes/own.h), or NULL */
    struct OwnStat *own_stats;          /* what such passes counted */
    unsigned target_sm;     /* the target's number, 90 for sm_90a; 0: any target */
    Remarks *remarks;       /* where passes say what they chose, or NULL */
    const int64_t *pass_options;    /* of the pass that runs, by PassOption; NULL: defaults */
    /* While callers walk: */
    WalkCursor *cursors;    /* the innermost first */
    uint64_t walks;         /* so far */
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

/* Blocks of a cluster, which run at the same time. 1 where the text names none. */
static inline unsigned program_blocks(const Program *p)
{
    return p->cluster[0] * p->cluster[1] * p->cluster[2];
}

/* Threads of four warps, of which the first has a number divisible by four. */
enum { WARPGROUP = 128, WARPGROUPS = LIMIT_THREADS / WARPGROUP };

/* Registers that are set aside for a thread when its block begins: as many as `min_blocks`
 * blocks leave it, in eights. 0 without `min_blocks`, as ptxas decides then. */
int64_t program_registers(const Program *p);

/* ---- ops ------------------------------------------------------------ */

const Attr *op_attr(const Op *op, AttrKind kind);
/* Adds `attr`, or replaces the one of its kind. */
void op_set_attr(Module *m, Op *op, Attr attr);
/* Takes away the one of that kind, if there is one. */
void op_remove_attr(Op *op, AttrKind kind);
/* The expression of an EXPR attribute, or NULL. */
const Expr *op_expr(const Op *op, AttrKind kind);

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

/* The threads that run the ops of `r`: the block's, or those of the thread_group around
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
#endif
