/* Mbarriers and bulk copies: a ring of tiles that a warp fills, by copies or by stores,
 * and the others use; one tile that the whole block waits for, also in nested loops; and
 * rows that a marked loop copies. Mbarriers are counted in phases from the program's
 * begin, so all stand outside of regions. */
#include "gen.h"

enum { MBARRIERS = 64, BULK_BITS = 128 };

typedef struct Stream {
    DType dtype;
    const Layout *layout;       /* of a tile */
    int64_t stages, iterations;     /* slots of the ring; iterations of a loop over it */
    int64_t first, step;        /* of its index */
    bool stores;                /* load and store in place of a bulk copy */
    const char *view, *ring, *full, *empty;
    const char *zeros;          /* ", 0, 0": the tile's offsets */
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

/* "full", of which each phase has so many arrivals. */
static const char *add_mbarriers(Gen *g, unsigned arrivals, int64_t count)
{
    const char *name = gen_name(g, "m");
    text_printf(&g->views, "  %s = allocate_mbarrier {count = %u} : mbarrier[%lld]\n", name,
                arrivals, (long long)count);
    g->mbarriers += (unsigned)count;
    return name;
}

/* The tensors, a row of the view for each iteration. */
static void add_memory(Gen *g, Stream *s)
{
    const Layout *l = s->layout;
    Text shape, zeros, words;
    text_init(&shape, g->arena);
    text_init(&zeros, g->arena);
    text_init(&words, g->arena);
    int64_t elements = s->iterations + (int64_t)choose(g->choices, 2);
    const char *rows = gen_exact(g, elements), *hint = gen_hint(g, GEN_EVICT);
    gen_numbers(&shape, l->rank, l->shape);
    for (unsigned d = 0; d < l->rank; d++) {
        elements *= l->shape[d];
        text_add(&zeros, ", 0");
    }
    s->view = gen_name(g, "t");
    text_printf(&g->views, "  %s = view_global %s : %s[%s, %s]\n", s->view,
                gen_pointer_aligned(g, s->dtype, elements, BULK_BITS / 8),
                dtype_name(s->dtype), rows, text_string(&shape));
    text_printf(&words, " {shape = [%s]%s%s}", text_string(&shape), *hint ? ", " : "", hint);
    s->zeros = text_string(&zeros);
    s->words = text_string(&words);
    s->ring = gen_name(g, "s");
    gen_line(g, "%s = allocate_shared : %s[%lld, %s] shared", s->ring, dtype_name(s->dtype),
             (long long)s->stages, text_string(&shape));
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

/* A row of the view into a slot of the ring. */
static void fill_slot(Gen *g, const Stream *s, const char *row, const char *slot)
{
    if (!s->stores) {
        gen_line(g, "copy_async_bulk %s[%s%s], %s[%s%s], %s[%s]%s", s->view, row, s->zeros,
                 s->ring, slot, s->zeros, s->full, slot, s->words);
        return;
    }
    const Layout *l = gen_layout_of(g, s->layout->rank, s->layout->shape);
    const char *tile = gen_name(g, "v");
    gen_line(g, "%s = load_global %s[%s%s] : %s", tile, s->view, row, s->zeros,
             gen_type_text(g, s->dtype, l));
    gen_line(g, "store_shared %s, %s[%s%s]", tile, s->ring, slot, s->zeros);
}

static void produce(Gen *g, const Stream *s)
{
    const char *i = gen_name(g, "i"), *iteration = iteration_text(g, s, i), *row = iteration;
    const char *stage = arena_printf(g->arena, "%s mod %lld", iteration, (long long)s->stages);
    if (choose(g->choices, 2))
        row = arena_printf(g->arena, "%lld - %s", (long long)s->iterations - 1, iteration);
    gen_line(g, "for %s in %s {", i, bounds(g, s));
    g->indent++;
    wait(g, s->empty, stage, arena_printf(g->arena, "%s / %lld + 1", iteration,
                                          (long long)s->stages));
    fill_slot(g, s, row, stage);
    gen_line(g, "mbarrier_arrive %s[%s]", s->full, stage);
    g->indent--;
    gen_line(g, "}");
}

/* Adds the tiles up; the sum is a value of the region. */
static void consume(Gen *g, const Stream *s)
{
    const char *i = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    const char *tile = gen_name(g, "v"), *next = gen_name(g, "v"), *zero = gen_name(g, "v");
    const char *type = gen_type_text(g, s->dtype, s->layout);
    const char *iteration = iteration_text(g, s, i);
    const char *stage = arena_printf(g->arena, "%s mod %lld", iteration, (long long)s->stages);
    gen_line(g, "%s = allocate_register 0 : %s", zero, type);
    gen_line(g, "%s = for %s in %s iter(%s = %s) {", sum, i, bounds(g, s), carried, zero);
    g->indent++;
    wait(g, s->full, stage, arena_printf(g->arena, "%s / %lld", iteration, (long long)s->stages));
    gen_line(g, "%s = load_shared %s[%s%s] : %s", tile, s->ring, stage, s->zeros, type);
    gen_line(g, "mbarrier_arrive %s[%s]", s->empty, stage);
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
    s->full = add_mbarriers(g, 1, s->stages);
    s->empty = add_mbarriers(g, consumers, s->stages);
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
    gen_line(g, "copy_async_bulk %s[%s%s], %s[0%s], %s[0]%s", s->view, iteration, s->zeros, s->ring,
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
    s->full = add_mbarriers(g, g->warps, 1);
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
    *b = (BulkRows){.view = s.view, .tensor = s.ring, .zeros = s.zeros, .words = s.words};
    b->mbarrier = add_mbarriers(g, g->warps, 1);
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
    gen_line(g, "copy_async_bulk %s[%s%s], %s[%s%s], %s[0]%s", b->view, row, b->zeros, b->tensor,
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
