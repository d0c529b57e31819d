/* Mbarriers and bulk copies: a ring of tiles that a warp fills, by copies or by stores,
 * and the others use; one tile that the whole block waits for, also in nested loops; and
 * rows that a marked loop copies. Mbarriers are counted in phases from the program's
 * begin, so all stand outside of regions. */
#include "gen.h"
#include "ir/reduction.h"
#include "memory/tensor_map.h"

#include <string.h>

enum { MBARRIERS = 64, BULK_BITS = 128 };

/* Faults of a ring, where races are wanted. */
typedef enum Slip {
    SLIP_NONE,
    SLIP_EARLY,                 /* a slot is released before it is read */
    SLIP_FULL_PHASE, SLIP_EMPTY_PHASE,  /* a wait for another phase, ... */
    SLIP_FULL_SLOT, SLIP_EMPTY_SLOT,    /* ... or of another slot */
    SLIP_READ_SLOT, SLIP_WRITTEN_SLOT,  /* another slot is read or written */
    SLIP_COUNT,                 /* phases count one arrival too few or too many */
    SLIP_ARRIVAL,               /* nobody releases slots */
    SLIP_GROUP,                 /* a wait leaves the newest group of copies in flight */
    SLIP_PART,                  /* each block of a cluster copies the same part, ... */
    SLIP_OWN,                   /* ... releases its own slots alone, ... */
    SLIP_TWICE,                 /* ... or one block's slots in place of another one's */
    SLIP_KINDS
} Slip;

typedef struct Stream {
    DType dtype;
    const Layout *layout;       /* of a tile */
    int64_t stages, iterations;     /* slots of the ring; iterations of a loop over it */
    int64_t first, step;        /* of its index */
    Slip slip;
    bool late;                  /* a slot is released in the next iteration */
    bool groups;                /* copy_async in place of a bulk copy */
    bool split;                 /* the first slots are filled by a loop of their own */
    bool stores;                /* load and store in place of a bulk copy */
    bool everywhere;            /* blocks of a cluster fill a part of each other's slots each */
    const char *bounds;         /* of all its loops; NULL: of each its own */
    const char *view, *ring, *full, *empty;
    const char *shape;          /* "4, 8" */
    const char *zeros;          /* ", 0, 0": the tile's offsets */
    const char *places;         /* the same in the view, of a box that may lie outside of it */
    const char *words;          /* " {shape = [4, 8], evict = first}" */
} Stream;

/* A layout of the running threads whose tile is whole chunks, and its type. */
static void choose_tile(Gen *g, Stream *s)
{
    int64_t bits = 1;
    s->dtype = gen_dtype(g);
    if (!gen_has_arithmetic(s->dtype))
        s->dtype = DTYPE_u4;
    unsigned rank = 1 + (unsigned)choose(g->choices, 2);
    s->layout = gen_layout(g, rank, choose_between(g->choices, 1, 4), true);
    for (unsigned d = 0; d < s->layout->rank; d++)
        bits *= s->layout->shape[d];
    if (bits * dtype_bits(s->dtype) % BULK_BITS == 0)
        return;
    s->dtype = DTYPE_f32;
    s->layout = gen_primitive(g, GEN_SPATIAL, 1, (int64_t[]){gen_threads(g)});
}

const char *gen_mbarriers(Gen *g, unsigned arrivals, int64_t count)
{
    const char *name = gen_name(g, "m");
    text_printf(&g->views, "  %s = allocate_mbarrier {count = %u} : mbarrier[%lld]\n", name,
                arrivals, (long long)count);
    g->mbarriers += (unsigned)count;
    return name;
}

/* Returns true when a tile of the layout is a box that a tensor map copies into a slot of the
 * ring, in a swizzle of `*bytes` where that is not 0. */
static bool is_box(Gen *g, const Stream *s, int64_t *bytes)
{
    enum { ROW = 16, SLOT = 128, PATTERN_ROWS = 8, SWIZZLE_LEAST = 32 };
    const Layout *l = s->layout;
    int64_t bits = dtype_bits(s->dtype), tile = bits / 8, row = l->shape[l->rank - 1] * bits / 8;
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return false;
    for (unsigned d = 0; d < l->rank; d++) {
        if (l->shape[d] > MAP_BOX_MAX)
            return false;
        tile *= l->shape[d];
    }
    bool fits = row == SWIZZLE_LEAST || row == 2 * SWIZZLE_LEAST || row == 4 * SWIZZLE_LEAST;
    fits = fits && tile % (PATTERN_ROWS * row) == 0;
    *bytes = fits && choose(g->choices, 3) ? row : 0;
    return row % ROW == 0 && tile % SLOT == 0 && choose(g->choices, 3);
}

/* " swizzle(2, 3, 3)" of rows of so many bytes; "" of 0. */
static const char *swizzle_text(Gen *g, DType dtype, int64_t bytes)
{
    enum { CHUNK_BITS = 128, LEAST_BITS = 4 };
    unsigned base = (unsigned)__builtin_ctz(CHUNK_BITS / dtype_bits(dtype));
    return bytes ? arena_printf(g->arena, " swizzle(%u, %u, 3)",
                                (unsigned)__builtin_ctzll((uint64_t)bytes) - LEAST_BITS, base)
                 : "";
}

/* The view of `rows` tiles, and of `wider` columns more, a whole number of 16 bytes. */
static void add_view(Gen *g, Stream *s, int64_t rows, int64_t wider)
{
    const Layout *l = s->layout;
    int64_t shape[LIMIT_RANK], elements = rows;
    Text text;
    text_init(&text, g->arena);
    const char *exact = gen_exact(g, rows);
    for (unsigned d = 0; d < l->rank; d++) {
        shape[d] = l->shape[d] + (d + 1 == l->rank ? wider : 0);
        elements *= shape[d];
    }
    gen_numbers(&text, l->rank, shape);
    s->view = gen_name(g, "t");
    text_printf(&g->views, "  %s = view_global %s : %s[%s, %s]\n", s->view,
                gen_pointer_aligned(g, s->dtype, elements, BULK_BITS / 8),
                dtype_name(s->dtype), exact, text_string(&text));
}

/* Offsets of a box around the begin of the view, of one in it, or zeros: the innermost one a
 * multiple of 16 bytes, and none negative of a box that is `written`. */
static const char *box_places(Gen *g, const Stream *s, bool written)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned d = 0; d < s->layout->rank; d++) {
        int64_t step = d + 1 == s->layout->rank ? BULK_BITS / dtype_bits(s->dtype) : 1;
        int64_t most = s->layout->shape[d] / step;
        int64_t place = choose_between(g->choices, written ? 0 : -most, most);
        text_printf(&text, ", %lld", choose(g->choices, 2) ? (long long)(place * step) : 0);
    }
    return text_string(&text);
}

/* The tensors, a row of the view for each iteration. */
static void add_memory(Gen *g, Stream *s)
{
    enum { WIDER = 16 };
    const Layout *l = s->layout;
    int64_t swizzle = 0, rows = s->iterations + (int64_t)choose(g->choices, 2);
    bool box = is_box(g, s, &swizzle);
    const char *hint = gen_hint(g, GEN_EVICT);
    Text shape, zeros, words;
    text_init(&shape, g->arena);
    text_init(&zeros, g->arena);
    text_init(&words, g->arena);
    gen_numbers(&shape, l->rank, l->shape);
    for (unsigned d = 0; d < l->rank; d++)
        text_add(&zeros, ", 0");
    add_view(g, s, rows, box ? WIDER * (int64_t)choose(g->choices, 2) : 0);
    text_printf(&words, " {shape = [%s]%s%s%s}", text_string(&shape), *hint ? ", " : "", hint,
                box ? ", via = tensor" : "");
    s->zeros = text_string(&zeros);
    s->places = box ? box_places(g, s, false) : s->zeros;
    s->shape = text_string(&shape);
    s->words = text_string(&words);
    s->ring = gen_name(g, "s");
    const char *parts = s->everywhere ? arena_printf(g->arena, "%u, ", g->cluster_blocks) : "";
    gen_line(g, "%s = allocate_shared : %s[%lld, %s%s] shared%s", s->ring, dtype_name(s->dtype),
             (long long)s->stages, parts, text_string(&shape),
             swizzle_text(g, s->dtype, box ? swizzle : 0));
}

static void wait(Gen *g, const char *mbarriers, const char *element, const char *phase)
{
    if (!gen_drops(g))
        gen_line(g, "mbarrier_wait %s[%s], %s", mbarriers, element, phase);
}

static Scope group_begin(Gen *g, unsigned begin, unsigned warps)
{
    gen_line(g, "thread_group(%u, %u) {", 32 * begin, 32 * warps);
    Scope scope = gen_scope_begin(g);
    g->reg_first = g->reg_count;
    g->warps = warps;
    return scope;
}

static void group_end(Gen *g, const Scope *scope)
{
    gen_end_region(g, scope->regs);
    g->warps = g->block_warps;
    g->reg_first = 0;
    gen_scope_end(g, scope);
    gen_line(g, "}");
}

/* "0 .. 4 step 2": an index for each iteration. */
static const char *bounds(Gen *g, const Stream *s)
{
    if (s->bounds)
        return s->bounds;
    int64_t end = s->first + s->iterations * s->step;
    end -= (int64_t)choose(g->choices, (uint64_t)s->step);
    const char *upper = gen_exact(g, end);
    return s->step == 1 ? arena_printf(g->arena, "%lld .. %s", (long long)s->first, upper)
                        : arena_printf(g->arena, "%lld .. %s step %lld", (long long)s->first,
                                       upper, (long long)s->step);
}

/* The number of the iteration of index `i`: 0, 1, .. */
static const char *iteration_text(Gen *g, const Stream *s, const char *i)
{
    if (!s->first && s->step == 1)
        return i;
    return arena_printf(g->arena, "((%s - %lld) / %lld)", i, (long long)s->first,
                        (long long)s->step);
}

static void add_value(Gen *g, const Stream *s, const char *name)
{
    Reg result = {.name = name, .dtype = s->dtype, .layout = s->layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, result);
}

/* ---- a producer and its consumers -------------------------------------------- */

/* A row of the view into a slot of the ring, which a slot of %full counts. */
static void fill_slot(Gen *g, const Stream *s, const char *row, const char *slot,
                      const char *counter)
{
    if (s->groups) {
        gen_line(g, "copy_async %s[%s%s], %s[%s%s] {shape = [%s]}", s->view, row, s->zeros,
                 s->ring, slot, s->zeros, s->shape);
        gen_line(g, "copy_async_commit_group");
        gen_line(g, "copy_async_wait_group %d", s->slip == SLIP_GROUP);
        return;
    }
    if (s->everywhere) {
        gen_line(g, "copy_async_bulk %s[%s%s], %s[%s, %s%s], %s[%s]%.*s, multicast = %u}", s->view,
                 row, s->places, s->ring, slot, s->slip == SLIP_PART ? "0" : "%q", s->zeros,
                 s->full, counter, (int)strlen(s->words) - 1, s->words,
                 (1u << g->cluster_blocks) - 1);
        return;
    }
    if (!s->stores) {
        gen_line(g, "copy_async_bulk %s[%s%s], %s[%s%s], %s[%s]%s", s->view, row, s->places,
                 s->ring, slot, s->zeros, s->full, counter, s->words);
        return;
    }
    const Layout *l = gen_layout_of(g, s->layout->rank, s->layout->shape);
    const char *tile = gen_name(g, "v");
    gen_line(g, "%s = load_global %s[%s%s] : %s", tile, s->view, row, s->places,
             gen_type_text(g, s->dtype, l));
    gen_line(g, "store_shared %s, %s[%s%s]", tile, s->ring, slot, s->zeros);
}

/* "(i + 1) mod 3" with the slip, else "i mod 3". */
static const char *slot_text(Gen *g, const Stream *s, const char *iteration, Slip slip)
{
    const char *form = s->slip == slip ? "(%s + 1) mod %lld" : "%s mod %lld";
    return arena_printf(g->arena, form, iteration, (long long)s->stages);
}

/* A wait for the slot to be free, which is left out for the first ones now and then. */
static void wait_empty(Gen *g, const Stream *s, const char *iteration)
{
    unsigned later = (s->slip == SLIP_EMPTY_PHASE) + (unsigned)choose(g->choices, 2) * 2;
    const char *minus = later == 0 ? " - 1" : later == 1 ? "" : later == 2 ? " + 1" : " + 2";
    const char *phase = arena_printf(g->arena, "%s / %lld%s", iteration, (long long)s->stages,
                                     minus);
    bool branch = choose_rarely(g->choices, 4);
    if (branch) {
        gen_line(g, "if %s >= %lld {", iteration, (long long)s->stages - gen_drops(g));
        g->indent++;
    }
    wait(g, s->empty, slot_text(g, s, iteration, SLIP_EMPTY_SLOT), phase);
    if (!branch)
        return;
    g->indent--;
    gen_line(g, "}");
}

/* Arrives at the mbarrier, or at that of each block. */
static void arrive(Gen *g, const Stream *s, const char *mbarriers, const char *element)
{
    bool slips = mbarriers == s->empty;
    unsigned blocks = s->everywhere && !(slips && s->slip == SLIP_OWN) ? g->cluster_blocks : 0;
    bool twice = slips && s->slip == SLIP_TWICE;
    if (!blocks)
        gen_line(g, "mbarrier_arrive %s[%s]", mbarriers, element);
    if (blocks && !twice && choose(g->choices, 2)) {
        const char *rank = gen_name(g, "i");
        gen_line(g, "for %s in 0 .. %u%s {", rank, blocks, choose(g->choices, 2) ? " unroll" : "");
        gen_line(g, "  mbarrier_arrive %s[%s] {rank = %s}", mbarriers, element, rank);
        gen_line(g, "}");
        return;
    }
    for (unsigned rank = 0; rank < blocks; rank++)
        gen_line(g, "mbarrier_arrive %s[%s] {rank = %u}", mbarriers, element,
                 twice && rank ? rank - 1 : rank);
}

/* Fills the slots of iterations of these bounds, `first`: before any of them was used. */
static void produce_between(Gen *g, const Stream *s, const char *bounds_text, bool first)
{
    const char *i = gen_name(g, "i"), *iteration = iteration_text(g, s, i), *row = iteration;
    const char *stage = slot_text(g, s, iteration, SLIP_KINDS);
    if (choose(g->choices, 2))
        row = arena_printf(g->arena, "%lld - %s", (long long)s->iterations - 1, iteration);
    gen_line(g, "for %s in %s {", i, bounds_text);
    g->indent++;
    if (!first)
        wait_empty(g, s, iteration);
    fill_slot(g, s, row, slot_text(g, s, iteration, SLIP_WRITTEN_SLOT), stage);
    arrive(g, s, s->full, stage);
    g->indent--;
    gen_line(g, "}");
}

static void produce(Gen *g, const Stream *s)
{
    if (!s->split) {
        produce_between(g, s, bounds(g, s), false);
        return;
    }
    const char *end = gen_exact(g, s->iterations);
    int64_t filled = s->stages + gen_drops(g);
    produce_between(g, s, arena_printf(g->arena, "0 .. min(%lld, %s)", (long long)filled, end),
                    true);
    produce_between(g, s, arena_printf(g->arena, "%lld .. %s", (long long)filled, end), false);
}

/* Releases the slot of the iteration before. */
static void release_late(Gen *g, const Stream *s, const char *iteration)
{
    gen_line(g, "if %s > %d {", iteration, -(int)gen_drops(g));
    g->indent++;
    arrive(g, s, s->empty,
           arena_printf(g->arena, "(%s - 1) mod %lld", iteration, (long long)s->stages));
    g->indent--;
    gen_line(g, "}");
}

static void release_slot(Gen *g, const Stream *s, const char *stage)
{
    if (s->slip != SLIP_ARRIVAL)
        arrive(g, s, s->empty, stage);
}

/* Adds the tiles up; the sum is a value of the region. */
static void consume(Gen *g, const Stream *s)
{
    const char *i = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    const char *tile = gen_name(g, "v"), *next = gen_name(g, "v"), *zero = gen_name(g, "v");
    const char *type = gen_type_text(g, s->dtype, s->layout);
    const char *iteration = iteration_text(g, s, i);
    const char *stage = slot_text(g, s, iteration, SLIP_KINDS);
    gen_line(g, "%s = allocate_register 0 : %s", zero, type);
    gen_line(g, "%s = for %s in %s iter(%s = %s) {", sum, i, bounds(g, s), carried, zero);
    g->indent++;
    wait(g, s->full, slot_text(g, s, iteration, SLIP_FULL_SLOT),
         arena_printf(g->arena, s->slip == SLIP_FULL_PHASE ? "%s / %lld + 1" : "%s / %lld",
                      iteration, (long long)s->stages));
    if (s->slip == SLIP_EARLY)
        release_slot(g, s, stage);
    const char *part = s->everywhere
        ? arena_printf(g->arena, ", %s", gen_scalar_within(g, 0, g->cluster_blocks - 1).text) : "";
    gen_line(g, "%s = load_shared %s[%s%s%s] : %s", tile, s->ring,
             slot_text(g, s, iteration, SLIP_READ_SLOT), part, s->zeros, type);
    if (s->late && s->slip == SLIP_NONE)
        release_late(g, s, iteration);
    else if (s->slip != SLIP_EARLY)
        release_slot(g, s, stage);
    gen_line(g, "%s = sub %s, %s", next, tile, carried);
    gen_line(g, "yield %s", next);
    g->indent--;
    gen_line(g, "}");
    add_value(g, s, sum);
}

/* The groups in either order: the first one waits for the second one. */
static void stream_between_groups(Gen *g, Stream *s)
{
    unsigned consumers = g->block_warps - 1, first = (unsigned)choose(g->choices, 2);
    bool is_first = choose(g->choices, 2);
    s->slip = gen_drops(g) ? (Slip)choose_between(g->choices, 1, SLIP_KINDS - 1) : SLIP_NONE;
    s->late = s->stages > 1 && choose_rarely(g->choices, 4);
    s->groups = !s->stores && !s->everywhere && dtype_bits(s->dtype) >= 8 && choose_rarely(g->choices, 4);
    s->split = !s->first && s->step == 1 && choose_rarely(g->choices, 3);
    unsigned more = s->slip == SLIP_COUNT ? 1 + (unsigned)choose(g->choices, 2) : 0;
    unsigned blocks = s->everywhere ? g->cluster_blocks : 1;
    s->full = gen_mbarriers(g, blocks, s->stages);
    s->empty = gen_mbarriers(g, blocks * (more == 1 && consumers > 1 ? consumers - 1
                                          : consumers + (more > 0)), s->stages);
    if (s->everywhere)          /* the tensor must be there */
        gen_line(g, "cluster_synchronize");
    if (choose(g->choices, 2))
        s->bounds = bounds(g, s);
    for (unsigned turn = 0; turn < 2; turn++) {
        bool produces = turn == is_first;
        unsigned begin = produces ? (first ? 0 : consumers) : first;
        Scope scope = group_begin(g, begin, produces ? 1 : consumers);
        if (produces)
            produce(g, s);
        else
            consume(g, s);
        group_end(g, &scope);
    }
}

/* ---- the whole block ----------------------------------------------------------- */

/* " pipelined(3)", for a producer warp where the loop allows it. */
static const char *mark(Gen *g)
{
    return choose(g->choices, 2) ? "" : arena_printf(g->arena, " pipelined(%d)",
                                                     (int)choose_between(g->choices, 2, 4));
}

/* A loop that copies a row, waits for it and subtracts the carried value; its phases
 * begin at `before`. */
static const char *stream_loop(Gen *g, const Stream *s, const char *before, const char *initial)
{
    const char *i = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    const char *tile = gen_name(g, "v"), *next = gen_name(g, "v");
    const char *iteration = iteration_text(g, s, i);
    gen_line(g, "%s = for %s in %s%s iter(%s = %s) {", sum, i, bounds(g, s), mark(g), carried,
             initial);
    g->indent++;
    gen_line(g, "copy_async_bulk %s[%s%s], %s[0%s], %s[0]%s", s->view, iteration, s->places, s->ring,
             s->zeros, s->full, s->words);
    gen_line(g, "mbarrier_arrive %s[0]", s->full);
    wait(g, s->full, "0", arena_printf(g->arena, "%s%s", before, iteration));
    gen_line(g, "%s = load_shared %s[0%s] : %s", tile, s->ring, s->zeros,
             gen_type_text(g, s->dtype, s->layout));
    gen_synchronize(g);
    gen_line(g, "%s = sub %s, %s", next, tile, carried);
    gen_line(g, "yield %s", next);
    g->indent--;
    gen_line(g, "}");
    return sum;
}

/* Once, or in a loop that goes through the phases several times. */
static void stream_alone(Gen *g, Stream *s, int64_t times)
{
    const char *initial = gen_use(g, gen_value_of(g, s->dtype, s->layout));
    s->full = gen_mbarriers(g, g->warps, 1);
    if (times == 1) {
        add_value(g, s, stream_loop(g, s, "", initial));
        return;
    }
    const char *o = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    gen_line(g, "%s = for %s in 0 .. %lld iter(%s = %s) {", sum, o, (long long)times, carried,
             initial);
    g->indent++;
    const char *before = arena_printf(g->arena, "%s * %lld + ", o, (long long)s->iterations);
    gen_line(g, "yield %s", stream_loop(g, s, before, carried));
    g->indent--;
    gen_line(g, "}");
    add_value(g, s, sum);
}

void gen_bulk(Gen *g)
{
    Stream s = {.stages = choose_between(g->choices, 1, 3)};
    s.iterations = choose_between(g->choices, 1, 5);
    bool groups = g->warps > 1 && choose(g->choices, 3);
    int64_t times = groups || choose(g->choices, 2) ? 1 : 2;
    if (!g->options.bulk || g->depth || g->mbarriers + 2 * s.stages > MBARRIERS)
        return;
    s.first = choose(g->choices, 2) ? 0 : choose_between(g->choices, 1, 4);
    s.step = choose(g->choices, 2) ? 1 : choose_between(g->choices, 2, 3);
    s.stores = groups && choose_rarely(g->choices, 3);
    s.everywhere = groups && !s.stores && g->cluster_blocks > 1 && choose(g->choices, 4);
    if (!groups && choose(g->choices, 3))
        s.stages = 1;   /* a tensor that each iteration fills */
    gen_wait_all(g);
    g->warps -= groups;
    choose_tile(g, &s);
    g->warps = g->block_warps;
    for (int64_t i = 0; i < 2 * s.iterations * times; i++)
        gen_spend(g, s.layout);
    add_memory(g, &s);
    if (groups)
        stream_between_groups(g, &s);
    else
        stream_alone(g, &s, times);
}

/* ---- clusters --------------------------------------------------------------------- */

/* Row %q of the view, and of the ring, is what rank %q copies. The tensors must be there. */
void gen_multicast(Gen *g)
{
    Stream s = {.stages = g->cluster_blocks, .iterations = g->cluster_blocks};
    if (g->mbarriers == MBARRIERS)
        return;
    choose_tile(g, &s);
    gen_spend(g, s.layout);
    add_memory(g, &s);
    s.full = gen_mbarriers(g, g->warps * g->cluster_blocks, 1);
    gen_line(g, "cluster_synchronize");
    gen_line(g, "copy_async_bulk %s[%%q%s], %s[%%q%s], %s[0]%.*s, multicast = %u}", s.view, s.zeros,
             s.ring, s.zeros, s.full, (int)strlen(s.words) - 1, s.words,
             (1u << g->cluster_blocks) - 1);
    gen_arrive_everywhere(g, s.full);
    wait(g, s.full, "0", "0");
    gen_define(g, s.dtype, s.layout, false,
               arena_printf(g->arena, "load_shared %s[%s%s] : %s", s.ring,
                            gen_scalar_within(g, 0, g->cluster_blocks - 1).text, s.zeros,
                            gen_type_text(g, s.dtype, s.layout)));
    gen_cluster_synchronize(g);
}

/* ---- rows of a marked loop ------------------------------------------------------ */

static bool is_whole_chunks(DType dtype, const Layout *layout)
{
    int64_t bits = dtype_bits(dtype);
    for (unsigned d = 0; d < layout->rank; d++)
        bits *= layout->shape[d];
    return bits % BULK_BITS == 0;
}

bool gen_bulk_rows(Gen *g, BulkRows *b, DType dtype, const Layout *layout, int64_t rows)
{
    if (!g->options.bulk || g->depth || g->mbarriers == MBARRIERS ||
        !is_whole_chunks(dtype, layout))
        return false;
    Stream s = {.dtype = dtype, .layout = layout, .stages = rows, .iterations = rows};
    add_memory(g, &s);
    *b = (BulkRows){.view = s.view, .tensor = s.ring, .zeros = s.zeros,
                     .places = s.places, .words = s.words};
    b->mbarrier = gen_mbarriers(g, g->warps, 1);
    b->type = gen_type_text(g, dtype, layout);
    b->phased = choose(g->choices, 2);
    for (int64_t i = 0; i < rows; i++) {
        unsigned reg = gen_value_of(g, dtype, layout);
        gen_spend(g, layout);
        gen_line(g, "store_shared %s, %s[%lld%s]", gen_use(g, reg), b->tensor, (long long)i,
                 b->zeros);
    }
    gen_synchronize(g);
    return true;
}

static unsigned load_row(Gen *g, const BulkRows *b, DType dtype, const Layout *layout,
                         const char *row)
{
    return gen_define(g, dtype, layout, false,
                      arena_printf(g->arena, "load_shared %s[%s%s] : %s", b->tensor, row,
                                   b->zeros, b->type));
}

static void copy_row(Gen *g, const BulkRows *b, const char *row)
{
    gen_line(g, "copy_async_bulk %s[%s%s], %s[%s%s], %s[0]%s", b->view, row, b->places, b->tensor,
             row, b->zeros, b->mbarrier, b->words);
}

unsigned gen_bulk_row(Gen *g, const BulkRows *b, DType dtype, const Layout *layout,
                      const char *row)
{
    unsigned reg = 0;
    if (!b->phased) {
        reg = load_row(g, b, dtype, layout, row);
        gen_synchronize(g);
    }
    copy_row(g, b, row);
    if (b->phased) {
        gen_line(g, "mbarrier_arrive %s[0]", b->mbarrier);
        wait(g, b->mbarrier, "0", row);
        reg = load_row(g, b, dtype, layout, row);
    }
    return reg;
}

void gen_bulk_rows_end(Gen *g, const BulkRows *b, DType dtype, const Layout *layout)
{
    if (!b->phased) {
        gen_line(g, "mbarrier_arrive %s[0]", b->mbarrier);
        wait(g, b->mbarrier, "0", "0");
    }
    load_row(g, b, dtype, layout, "0");
}

/* ---- stores ------------------------------------------------------------------------ */

/* Makes the elements such as the copy unit reduces, now and then. */
static void prefer_reducible(Gen *g, Stream *s)
{
    static const DType types[] = {DTYPE_i32, DTYPE_u32, DTYPE_i64, DTYPE_u64,
                                  DTYPE_f16, DTYPE_bf16, DTYPE_f32};
    DType t = types[choose(g->choices, sizeof types / sizeof *types)];
    if (choose(g->choices, 2) && is_whole_chunks(t, s->layout))
        s->dtype = t;
}

/* A word of `reduce` that the copy unit has for the type, or NULL. */
static const char *reduction_word(Gen *g, DType dtype)
{
    unsigned first = (unsigned)choose(g->choices, REDUCTION_NONE);
    bool wanted = choose(g->choices, 2);
    for (unsigned i = 0; wanted && i < REDUCTION_NONE; i++) {
        Reduction r = (Reduction)((first + i) % REDUCTION_NONE);
        if (reduction_takes(r, dtype))
            return attr_info[ATTR_REDUCE].words[r];
    }
    return NULL;
}

/* The view of the block's rows: "%b0, %b1", the numbers of the block, stand before the row. The
 * blocks have one row in common where they `share`. */
static const char *add_target(Gen *g, Stream *s, bool box, bool share)
{
    enum { WIDER = 16 };
    const Layout *l = s->layout;
    int64_t shape[LIMIT_RANK], elements = s->iterations;
    Text extents, blocks;
    text_init(&extents, g->arena);
    text_init(&blocks, g->arena);
    for (unsigned d = 0; d < g->grid_rank; d++) {
        elements *= g->grid[d];
        text_printf(&extents, "%s, ", gen_exact(g, g->grid[d]));
        text_printf(&blocks, share ? "0, " : "%%b%u, ", d);
    }
    text_printf(&extents, "%s, ", gen_exact(g, s->iterations));
    for (unsigned d = 0; d < l->rank; d++) {
        bool is_wider = box && d + 1 == l->rank && choose(g->choices, 2);
        shape[d] = l->shape[d] + (is_wider ? WIDER : 0);
        elements *= shape[d];
    }
    gen_numbers(&extents, l->rank, shape);
    s->view = gen_name(g, "t");
    text_printf(&g->views, "  %s = view_global %s : %s[%s]\n", s->view,
                gen_pointer_aligned(g, s->dtype, elements, BULK_BITS / 8), dtype_name(s->dtype),
                text_string(&extents));
    return text_string(&blocks);
}

static void wait_stores(Gen *g, unsigned pending, bool reads)
{
    if (!gen_drops(g))
        gen_line(g, "copy_async_bulk_wait_group %u%s", pending, reads ? " {read = true}" : "");
}

/* A row in each iteration, of a slot that the copy unit has read; one for all where they
 * `share`. */
static void store_rows(Gen *g, const Stream *s, const char *blocks, const char *value, bool share)
{
    const char *i = gen_name(g, "i");
    const char *slot = arena_printf(g->arena, "%s mod %lld", i, (long long)s->stages);
    gen_line(g, "for %s in 0 .. %lld {", i, (long long)s->iterations);
    g->indent++;
    wait_stores(g, (unsigned)s->stages - 1, choose(g->choices, 3));
    gen_synchronize(g);
    gen_line(g, "store_shared %s, %s[%s%s]", value, s->ring, slot, s->zeros);
    gen_synchronize(g);
    gen_line(g, "copy_async_bulk_store %s[%s%s], %s[%s%s%s]%s", s->ring, slot, s->zeros, s->view,
             blocks, share ? "0" : i, s->places, s->words);
    gen_line(g, "copy_async_bulk_commit_group");
    g->indent--;
    gen_line(g, "}");
}

/* Reads a row again, when all is there. */
static void load_stored(Gen *g, const Stream *s, const char *blocks)
{
    const char *name = gen_name(g, "v");
    wait_stores(g, 0, false);
    gen_synchronize(g);
    gen_line(g, "%s = load_global %s[%s0%s] : %s", name, s->view, blocks, s->places,
             gen_type_text(g, s->dtype, s->layout));
    gen_spend(g, s->layout);
    add_value(g, s, name);
}

void gen_bulk_store(Gen *g)
{
    Stream s = {.stages = choose_between(g->choices, 1, 3)};
    int64_t swizzle = 0;
    s.iterations = choose_between(g->choices, 1, 4);
    if (!g->options.bulk || g->depth)
        return;
    gen_wait_all(g);
    choose_tile(g, &s);
    prefer_reducible(g, &s);
    const Layout *l = s.layout;
    bool box = is_box(g, &s, &swizzle) && g->grid_rank + 1 + l->rank <= MAP_RANK;
    Text shape, words;
    text_init(&shape, g->arena);
    text_init(&words, g->arena);
    gen_numbers(&shape, l->rank, l->shape);
    for (int64_t i = 0; i < s.iterations; i++)
        gen_spend(g, l);
    const char *value = gen_use(g, gen_value_of(g, s.dtype, l));
    const char *reduction = reduction_word(g, s.dtype);
    bool share = reduction && dtype_is_integer(s.dtype) && choose(g->choices, 2);
    const char *blocks = add_target(g, &s, box, share);
    const char *hint = gen_hint(g, GEN_EVICT);
    text_printf(&words, " {shape = [%s]%s%s%s%s%s}", text_string(&shape), *hint ? ", " : "", hint,
                box ? ", via = tensor" : "", reduction ? ", reduce = " : "",
                reduction ? reduction : "");
    s.words = text_string(&words);
    s.zeros = arena_printf(g->arena, ", %s", gen_zeros(g, l->rank));
    s.places = box ? box_places(g, &s, true) : s.zeros;
    s.ring = gen_name(g, "s");
    gen_line(g, "%s = allocate_shared : %s[%lld, %s] shared%s", s.ring, dtype_name(s.dtype),
             (long long)s.stages, text_string(&shape), swizzle_text(g, s.dtype, box ? swizzle : 0));
    store_rows(g, &s, blocks, value, share);
    if (!share && choose(g->choices, 2))
        load_stored(g, &s, blocks);
    else
        wait_stores(g, 0, true);
}
