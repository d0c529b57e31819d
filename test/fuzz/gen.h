/* The generator's state and its parts.
 *
 *   program_gen.c   programs: arguments, grid, the order of statements
 *   gen_scalar.c    scalar expressions, whose ranges are known
 *   gen_layout.c    element types and layouts
 *   gen_view.c      views of global memory and what they hold
 *   gen_memory.c    what the program writes: results, shared tensors, barriers
 *   gen_copy.c      asynchronous copies
 *   gen_value.c     register tensors and their ops
 *   gen_dot.c       dot
 *   gen_control.c   for, if, exit, assert, assume
 *
 * Emitting functions append lines to `body`; what is named there may be used
 * from then on. */
#ifndef TILUS_FUZZ_GEN_H
#define TILUS_FUZZ_GEN_H

#include "program_gen.h"

#include "ir/dtype.h"
#include "ir/layout.h"
#include "support/text.h"

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
 * of a result, which `lead` selects. */
typedef struct Object {
    const char *name;
    const char *lead;       /* offsets before the object's own, "%b0, %b1, ", or "" */
    DType dtype;
    unsigned rank;
    int64_t shape[LIMIT_RANK];      /* without the leading dimensions */
    bool shared;
    unsigned dirty;
    unsigned atomic;        /* the op behind DIRTY_ATOMIC */
    bool pending;           /* a copy_async into it is under way */
    unsigned group;         /* of that copy */
} Object;

/* What a buffer holds before the launch. */
typedef struct Buffer {
    DType dtype;
    int64_t bytes;
} Buffer;

typedef struct Gen {
    Arena *arena;
    Choices *choices;
    GenOptions options;
    GenProgram *out;
    LayoutTable layouts;
    Text arguments, views, body;
    unsigned indent, names;

    tilus_arg *args;
    uint32_t arg_count, arg_capacity;
    Buffer *buffers;
    uint32_t buffer_count, buffer_capacity;
    View *inputs;
    uint32_t input_count, input_capacity;

    Scalar *scalars;        /* leaves: arguments, block and loop indices */
    uint32_t scalar_count, scalar_capacity, argument_scalars;
    Reg *regs;
    uint32_t reg_count, reg_capacity;
    Object *objects;        /* the first, of rank 0, stands for those of regions that ended */
    uint32_t object_count, object_capacity;

    unsigned warps, grid_rank;
    int64_t grid[3];
    unsigned depth;         /* of regions */
    unsigned loop;          /* index + 1 of the innermost loop's scalar, or 0 */
    int64_t repeat;         /* how often the ops of this region run, in all blocks */
    int64_t budget;         /* elements that may still be computed */
    int64_t shared_bytes;   /* allocated so far */
    unsigned groups;        /* of copies, made so far */
    bool groups_exact;      /* on all paths alike */
} Gen;

/* ---- text (program_gen.c) ----------------------------------------------- */

/* A line of the body. */
void gen_line(Gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "%v12": a name that is not in use. */
const char *gen_name(Gen *g, const char *prefix);
/* Counts the elements of an op of `layout` against the budget. */
void gen_spend(Gen *g, const Layout *layout);
/* Emits one random statement, or several that belong together. */
void gen_statement(Gen *g);
/* "3, 4" */
void gen_numbers(Text *text, unsigned count, const int64_t *numbers);

static inline unsigned gen_threads(const Gen *g) { return g->warps * 32; }

/* ---- scalars (gen_scalar.c) --------------------------------------------- */

/* Any expression over what is visible; one within [min, max]. */
Scalar gen_scalar(Gen *g, unsigned depth);
Scalar gen_scalar_within(Gen *g, int64_t min, int64_t max);
/* An expression over arguments that has this value. */
const char *gen_exact(Gen *g, int64_t value);
void gen_scalar_add(Gen *g, const char *text, int64_t min, int64_t max);

/* ---- types and layouts (gen_layout.c) ----------------------------------- */

DType gen_dtype(Gen *g);
bool gen_has_arithmetic(DType t);
/* A layout of the block's threads, with so many slots. */
const Layout *gen_layout(Gen *g, unsigned rank, int64_t slots, bool replicas);
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

/* ---- global memory (gen_view.c) ----------------------------------------- */

/* An argument for a buffer of `elements` elements: its name. */
const char *gen_pointer(Gen *g, DType dtype, int64_t elements);
/* A tile of memory that nobody writes, "%g0[%b0, 3]", and what its attribute of
 * dimensions needs, "" or "[0, 2]". */
typedef struct Source {
    const char *place, *dims;
} Source;
Source gen_source(Gen *g, DType dtype, unsigned rank, const int64_t *shape);
/* " {dims = [0, 2]}" or "" */
const char *gen_dims_text(Gen *g, const char *dims);

/* ---- written memory (gen_memory.c) -------------------------------------- */

/* Stores the value to a result of its own. */
void gen_store_result(Gen *g, unsigned reg);
/* A shared tensor that holds the value. */
void gen_new_shared(Gen *g, unsigned reg);
/* A shared tensor of this shape, undefined; its index. */
unsigned gen_allocate_shared(Gen *g, DType dtype, unsigned rank, const int64_t *shape);
/* Some access of what was written: load, store, or atomic op. */
void gen_load_object(Gen *g);
void gen_store_object(Gen *g);
void gen_print(Gen *g);
void gen_atomic_shared(Gen *g);
void gen_atomic_global(Gen *g);
/* Orders what comes before an access of the kinds DIRTY_*, which it notes. */
void gen_order(Gen *g, Object *o, unsigned access);
void gen_synchronize(Gen *g);
/* "[0, %i mod 3]": offsets of a tile inside the object. */
const char *gen_offsets(Gen *g, const Object *o, const int64_t *tile);
/* Whether a barrier or a wait is left out here. */
bool gen_drops(Gen *g);

/* ---- copies (gen_copy.c) ------------------------------------------------ */

void gen_copy(Gen *g);
/* A loop that copies some rounds ahead. */
void gen_copy_ring(Gen *g);
/* Waits for the copy into `o`; for all. */
void gen_wait(Gen *g, Object *o);
void gen_wait_all(Gen *g);

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
unsigned gen_load(Gen *g, DType dtype, const Layout *layout);
/* An element-wise op on the value, of its type. */
unsigned gen_elementwise(Gen *g, unsigned reg);
/* Ops that change the type, and an op said again. */
void gen_cast(Gen *g);
void gen_reinterpret(Gen *g);
void gen_reduce(Gen *g);
void gen_rearrange(Gen *g);
void gen_compare(Gen *g);
void gen_repeat(Gen *g);

/* ---- dot (gen_dot.c) ---------------------------------------------------- */

void gen_dot(Gen *g);

/* ---- control (gen_control.c) -------------------------------------------- */

void gen_for(Gen *g);
void gen_if(Gen *g);
void gen_exit(Gen *g);
void gen_assert(Gen *g);
/* Ends what is under way and stores what nothing uses, from value `first` on. */
void gen_end_region(Gen *g, uint32_t first);

#endif
