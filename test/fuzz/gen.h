/* The generator's state and its parts.
 *
 *   program_gen.c   programs: arguments, grid, the order of statements
 *   gen_scalar.c    scalar expressions, whose ranges are known
 *   gen_layout.c    element types and layouts
 *   gen_view.c      views of global memory and what they hold
 *   gen_memory.c    what the program writes: results, shared tensors, barriers
 *   gen_atomic.c    counters, which atomic ops change
 *   gen_workspace.c the workspace and its semaphores
 *   gen_copy.c      asynchronous copies
 *   gen_bulk.c      mbarriers and bulk copies
 *   gen_value.c     register tensors and their ops
 *   gen_form.c      storage orders, decode, rescale
 *   gen_dot.c       dot
 *   gen_wgmma.c     dot_async, dot_wait
 *   gen_lookup.c    look-ups in tables
 *   gen_dequantize.c  dequantize
 *   gen_stride.c    loops over one shared tensor, by steps
 *   gen_control.c   for, while, if, exit, assert, assume, launches that overlap
 *   gen_group.c     thread_group
 *   gen_registers.c   min_blocks, setmaxnreg
 *   gen_cluster.c     clusters, and accesses of other blocks
 *
 * Emitting functions append lines to `body`; what is named there may be used
 * from then on. */
#ifndef TILUS_FUZZ_GEN_H
#define TILUS_FUZZ_GEN_H

#include "program_gen.h"

#include "support/text.h"
#include "types/dtype.h"
#include "types/layout.h"

/* A scalar expression and what its value may be. */
typedef struct Scalar {
    const char *text;
    int64_t min, max;
} Scalar;

/* A register tensor that may be used. */
typedef struct Reg {
    const char *name;       /* with % */
    const char *op;         /* the pure op that made it, to be repeated; or NULL */
    DType dtype;
    const Layout *layout;
    bool used;
} Reg;

/* A view of memory that nobody writes. */
typedef struct View {
    const char *name;
    DType dtype;
    unsigned rank;
    int64_t shape[LIMIT_RANK];      /* the values of its extents */
} View;

/* Accesses since the last barrier; atomic ops of one kind do not conflict. */
enum { DIRTY_READ = 1, DIRTY_WRITE = 2, DIRTY_ATOMIC = 4 };

/* A tensor that the program writes: its own shared tensor, or this block's part
 * of a result or of the workspace, which `lead` selects. Another name for an object
 * has its `base`, the index of the object, which alone has the state from `hidden`
 * on. */
typedef struct Object {
    const char *name;
    const char *lead;       /* offsets before the object's own, "%b0, %b1, ", or "" */
    DType dtype;
    unsigned rank;
    int64_t shape[LIMIT_RANK];      /* without the leading dimensions */
    bool shared;
    uint32_t base;          /* its own index, if it is no other name */
    bool hidden;            /* not of this group of threads */
    unsigned dirty;
    unsigned atomic;        /* the op behind DIRTY_ATOMIC */
    bool pending;           /* a copy_async into the object is in flight */
    unsigned group;         /* of that copy */
} Object;

/* The contents of a buffer before the launch. */
typedef struct Buffer {
    DType dtype;
    int64_t bytes;
} Buffer;

/* Registers of each thread of a warpgroup; the most that it has asked for, 0 before. */
typedef struct GenRegisters {
    int64_t now, most;
} GenRegisters;

/* Bytes of shared tensors after which most statements allocate no more. */
enum { GEN_WARPGROUPS = 2, GEN_SHARED_LIMIT = 32 << 10 };

typedef struct Gen {
    Arena *arena;
    Choices *choices;
    GenOptions options;
    GenProgram *out;
    LayoutTable layouts;
    Text arguments, views, body;
    unsigned indent, names;
    bool is_open;           /* some layouts are left out */
    bool is_tight;          /* one block, most often, that shares much: provable */
    unsigned drops_one_in;  /* of so many barriers and waits, with `races` */

    tilus_arg *args;
    uint32_t arg_count, arg_capacity;
    Buffer *buffers;
    uint32_t buffer_count, buffer_capacity;
    View *inputs;
    uint32_t input_count, input_capacity;

    const char *float_name; /* an argument, or NULL */
    Scalar *scalars;        /* leaves: arguments, block indices, then the others */
    uint32_t scalar_count, scalar_capacity, argument_scalars;
    Reg *regs;
    uint32_t reg_first, reg_count, reg_capacity;    /* those before the first are hidden */
    Object *objects;        /* the first, of rank 0, stands for those of regions that ended */
    uint32_t object_count, object_capacity;

    unsigned warps;         /* that run this region */
    unsigned first_warp;    /* of these, in the block */
    unsigned block_warps, grid_rank;
    int64_t grid[3];
    unsigned min_blocks;    /* 0: not said */
    unsigned cluster[3], cluster_blocks;    /* cluster_blocks: of a cluster; 0: there are none */
    bool contract, cooperative;
    bool turns_back;        /* chains of blocks begin with the last one */
    bool chained;           /* between a block's lock and its release */
    GenRegisters registers[GEN_WARPGROUPS];
    int64_t spare_registers;    /* of a thread in each, which nobody asks for any more */
    unsigned depth;         /* of regions */
    unsigned group_depth;   /* of these, groups of threads */
    unsigned loop;          /* index + 1 of the innermost loop's scalar, or 0 */
    int64_t repeat;         /* how often the ops of this region run, in all blocks */
    int64_t budget;         /* elements that may still be computed */
    int64_t shared_bytes;   /* allocated so far */
    unsigned mbarriers;     /* allocated so far */
    unsigned groups;        /* of copies, made so far */
    bool groups_exact;      /* on all paths alike */
    bool may_exit, exits;   /* blocks may end here; some may have ended before */
} Gen;

/* The state that a region restores when it ends. */
typedef struct Scope {
    uint32_t scalars, regs, objects;
    unsigned loop, groups;
    bool groups_exact;
    Object *before;         /* the objects as they were at its begin */
} Scope;

/* ---- text (program_gen.c) ----------------------------------------------- */

/* A line of the body. */
void gen_line(Gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "%v12": a name that is not in use. */
const char *gen_name(Gen *g, const char *prefix);
/* `given` in the text, and `left_open` in the one that leaves some layouts out. */
const char *gen_either(Gen *g, const char *given, const char *left_open);
/* Counts the elements of an op of `layout` against the budget. */
void gen_spend(Gen *g, const Layout *layout);
/* Emits one random statement, or several that belong together. */
void gen_statement(Gen *g);
/* "3, 4" */
void gen_numbers(Text *text, unsigned count, const int64_t *numbers);

static inline unsigned gen_threads(const Gen *g) { return g->warps * 32; }
static inline Object *gen_base(Gen *g, const Object *o) { return &g->objects[o->base]; }

/* ---- scalars (gen_scalar.c) --------------------------------------------- */

/* Any expression over what is visible; one within [min, max]. */
Scalar gen_scalar(Gen *g, unsigned depth);
Scalar gen_scalar_within(Gen *g, int64_t min, int64_t max);
/* An expression of the index `i` within [0, last]: where a tile begins. */
Scalar gen_offset(Gen *g, Scalar i, int64_t tile, int64_t last);
/* An expression over arguments that has this value. */
const char *gen_exact(Gen *g, int64_t value);
/* An extent or a stride of a tensor that is written: a number in tight programs, whose
 * elements are then known to differ. */
const char *gen_extent(Gen *g, int64_t value);
void gen_scalar_add(Gen *g, const char *text, int64_t min, int64_t max);
/* A type for scalars from `min` on, none of which are large; the name of an
 * expression. */
const char *gen_scalar_type(Gen *g, int64_t min);
const char *gen_scalar_named(Gen *g, const char *text, const char *type);
void gen_scalar_statement(Gen *g);
void gen_load_scalar(Gen *g);

/* ---- types and layouts (gen_layout.c) ----------------------------------- */

DType gen_dtype(Gen *g);
bool gen_has_arithmetic(DType t);
/* Returns true when compiled code may choose the bits of its NaNs. */
bool gen_has_free_nan(DType t);
/* A layout of the block's threads, with so many slots. */
const Layout *gen_layout(Gen *g, unsigned rank, int64_t slots, bool replicas);
/* One of one or two dimensions, and as many slots. */
const Layout *gen_small_layout(Gen *g);
/* One of this shape. */
const Layout *gen_layout_of(Gen *g, unsigned rank, const int64_t *shape);
/* Products of primitives of rank 2, as the language's text has them. */
typedef enum GenPrimitive {
    GEN_LOCAL, GEN_COLUMN_LOCAL, GEN_SPATIAL, GEN_COLUMN_SPATIAL, GEN_REPLICATE
} GenPrimitive;
const Layout *gen_product(Gen *g, const Layout *f, GenPrimitive kind, int64_t a, int64_t b);
const Layout *gen_primitive(Gen *g, GenPrimitive kind, unsigned rank, const int64_t *shape);
/* "f16[16, 8] @ spatial(8, 4).local(2, 2)" */
const char *gen_type_text(Gen *g, DType dtype, const Layout *layout);
/* A permutation of `rank` dimensions. */
void gen_order_of_dims(Gen *g, unsigned rank, int64_t *order);

/* ---- global memory (gen_view.c) ----------------------------------------- */

/* An argument for a buffer of `elements` elements: its name. */
const char *gen_pointer(Gen *g, DType dtype, int64_t elements);
/* The same, which begins at a multiple of `least` bytes, a power of two. */
const char *gen_pointer_aligned(Gen *g, DType dtype, int64_t elements, unsigned least);
/* A tile of memory that nobody writes, "%g0[%b0, 3]", and what its attribute of
 * dimensions needs, "" or "[0, 2]". */
typedef struct Source {
    const char *place, *dims;
} Source;
Source gen_source(Gen *g, DType dtype, unsigned rank, const int64_t *shape);
/* The same where a register tensor `index` names the places in one dimension. */
Source gen_source_at(Gen *g, DType dtype, unsigned rank, const int64_t *shape,
                     const char *index);
/* A slice of one, or one permuted, is one more. */
void gen_part_of_input(Gen *g);
/* "prefetch = 128", "evict = first" or "", and " {dims = [0, 2], evict = first}" or "":
 * dimensions with such a hint. */
enum { GEN_PREFETCH = 1, GEN_EVICT = 2 };
const char *gen_hint(Gen *g, unsigned hints);
const char *gen_words(Gen *g, const char *dims, unsigned hints);

/* ---- written memory (gen_memory.c) -------------------------------------- */

/* Stores the value to a result of its own. */
void gen_store_result(Gen *g, unsigned reg);
/* A view for the value, with a part for each block, which is not read again. */
Object gen_result(Gen *g, unsigned reg);
/* A shared tensor that holds the value. */
void gen_new_shared(Gen *g, unsigned reg);
/* A shared tensor of this shape, undefined; its index. */
unsigned gen_allocate_shared(Gen *g, DType dtype, unsigned rank, const int64_t *shape);
/* Makes it an object with a state of its own. */
Object *gen_add_object(Gen *g, Object o);
/* One that may be accessed, or NULL; a tile of it: all, or a divisor of each extent. */
Object *gen_pick_object(Gen *g);
void gen_tile(Gen *g, const Object *o, int64_t *tile);
/* Another name for a part of a shared tensor. */
void gen_alias(Gen *g);
/* Some access of what was written. */
void gen_load_object(Gen *g);
void gen_store_object(Gen *g);
void gen_print(Gen *g);
/* Orders what comes before an access of the kinds DIRTY_*, which it notes. */
void gen_order(Gen *g, Object *o, unsigned access);
void gen_synchronize(Gen *g);
/* "[0, %i mod 3]": offsets of a tile inside the object. */
const char *gen_offsets(Gen *g, const Object *o, const int64_t *tile);
/* "0, 0" */
const char *gen_zeros(Gen *g, unsigned rank);
/* Decides whether to leave out a barrier or a wait. */
bool gen_drops(Gen *g);
bool gen_any_dirty(const Gen *g);

/* ---- counters (gen_atomic.c) -------------------------------------------- */

void gen_atomic_shared(Gen *g);
void gen_atomic_global(Gen *g);

/* ---- indices (gen_index.c) ----------------------------------------------- */

/* Loads of rows; stores of ones; a shared tensor's elements; counters. */
void gen_gather(Gen *g);
void gen_scatter(Gen *g);
void gen_index_shared(Gen *g);
void gen_histogram(Gen *g);
/* Indices for the rows of a copy of this tile: a name. */
const char *gen_copied_rows(Gen *g, unsigned rank, const int64_t *tile);

/* ---- workspace (gen_workspace.c) ---------------------------------------- */

void gen_workspace(Gen *g);
void gen_chain(Gen *g);

/* Decides whether the program is cooperative, once the cluster is known. Its blocks read what others
 * have stored before a barrier of the grid. */
void gen_choose_cooperative(Gen *g);
void gen_grid(Gen *g);
void gen_grid_pace(Gen *g);

/* ---- copies (gen_copy.c) ------------------------------------------------ */

void gen_copy(Gen *g);
/* A loop that copies some iterations ahead. */
void gen_copy_ring(Gen *g);
/* A loop marked pipelined. */
void gen_pipelined(Gen *g);
/* Waits for the copy into `o`; for all. */
void gen_wait(Gen *g, Object *o);
void gen_wait_all(Gen *g);

/* ---- bulk copies (gen_bulk.c) ------------------------------------------- */

/* A stream of tiles, where the target has them and no region is around. */
void gen_bulk(Gen *g);
/* Tiles that the copy unit stores, likewise. */
void gen_bulk_store(Gen *g);

/* Rows that a marked loop copies beside its own tile: a ring's, each copied in its iteration
 * after it is read. One mbarrier counts all iterations, or each has a phase. */
typedef struct BulkRows {
    const char *view, *tensor, *mbarrier, *zeros, *places, *words, *type;
    bool phased;
} BulkRows;
/* Returns false where the target or the place has none, or the tile is no whole chunks. */
bool gen_bulk_rows(Gen *g, BulkRows *b, DType dtype, const Layout *layout, int64_t rows);
/* In the loop, for iteration `row`: the value that the row had, or has. */
unsigned gen_bulk_row(Gen *g, const BulkRows *b, DType dtype, const Layout *layout,
                      const char *row);
/* After the loop. */
void gen_bulk_rows_end(Gen *g, const BulkRows *b, DType dtype, const Layout *layout);

/* Mbarriers, of which each phase has so many arrivals: a name. */
const char *gen_mbarriers(Gen *g, unsigned arrivals, int64_t count);
/* Each block copies a row to all blocks of its cluster. */
void gen_multicast(Gen *g);

/* ---- clusters (gen_cluster.c) ------------------------------------------- */

/* Decides whether there are some, once the grid is known; " cluster(2, 1)" or "". */
void gen_choose_cluster(Gen *g);
const char *gen_cluster_text(Gen *g);
/* Blocks wait for each other, use each other's memory. */
void gen_cluster(Gen *g);
void gen_cluster_synchronize(Gen *g);
/* An arrival at the first of these mbarriers of each block of the cluster. */
void gen_arrive_everywhere(Gen *g, const char *mbarriers);

/* ---- register tensors (gen_value.c) ------------------------------------- */

/* Emits "%v = `op`" and makes it visible; its index. `pure`: it may be said
 * again. */
unsigned gen_define(Gen *g, DType dtype, const Layout *layout, bool pure, const char *op);
/* A visible value, rather one that nothing uses yet; there is always one. */
unsigned gen_pick(Gen *g);
/* A value of this type, found or made. */
unsigned gen_value_of(Gen *g, DType dtype, const Layout *layout);
/* The name of a value that is used now. */
const char *gen_use(Gen *g, unsigned reg);
void gen_fill(Gen *g);
unsigned gen_load(Gen *g, DType dtype, const Layout *layout);
/* An element-wise op on the value, of its type. */
unsigned gen_elementwise(Gen *g, unsigned reg);
/* Ops that change the type, and an op said again. */
void gen_cast(Gen *g);
void gen_reinterpret(Gen *g);
void gen_reduce(Gen *g);
/* A scan, or a shuffle. */
void gen_along(Gen *g);
void gen_rearrange(Gen *g);
void gen_compare(Gen *g);
void gen_repeat(Gen *g);

/* ---- storage orders (gen_form.c) ---------------------------------------- */

/* A value goes into a storage order, and comes back by a cast, or by a decode. */
void gen_form(Gen *g);

/* ---- dot (gen_dot.c) ---------------------------------------------------- */

void gen_dot(Gen *g);

/* ---- products (gen_wgmma.c) ---------------------------------------------- */

/* Where the target has them and whole warpgroups run them. */
void gen_wgmma(Gen *g);

/* ---- tables (gen_lookup.c) ----------------------------------------------- */

void gen_lookup(Gen *g);
/* ---- dequantize (gen_dequantize.c) ---------------------------------------- */

void gen_dequantize(Gen *g);

/* ---- strides (gen_stride.c) --------------------------------------------- */

/* The bounds of a loop by steps: at most so many iterations. */
typedef struct Steps {
    Scalar lower, upper;
    int64_t step;
    const char *step_text;      /* " step %n0 / 9", or "" */
} Steps;
Steps gen_steps(Gen *g, int64_t trips);
/* Nested loops that load and store tiles of one shared tensor. */
void gen_stride(Gen *g);

/* ---- control (gen_control.c) -------------------------------------------- */

/* The most iterations from `lower` to below `upper`, at least 1. */
int64_t gen_trips(Scalar lower, Scalar upper, int64_t step);

/* Regions, which begin and end a scope; whether one more fits. */
Scope gen_scope_begin(Gen *g);
void gen_scope_end(Gen *g, const Scope *s);
bool gen_may_nest(const Gen *g);
void gen_for(Gen *g);
void gen_while(Gen *g);
void gen_if(Gen *g);
void gen_exit(Gen *g);
void gen_launch_dependents(Gen *g);
void gen_wait_dependencies(Gen *g);
void gen_assert(Gen *g);
/* Ends the copies in flight and stores what nothing uses, from value `first` on. */
void gen_end_region(Gen *g, uint32_t first);

/* ---- groups of threads (gen_group.c) ------------------------------------ */

void gen_thread_group(Gen *g);

/* ---- registers (gen_registers.c) ---------------------------------------- */

/* Decides about min_blocks, once the block's warps are known. */
void gen_min_blocks(Gen *g);
/* Where whole warpgroups run it, once. */
void gen_setmaxnreg(Gen *g);

#endif
