/* Bulk copies: a ring of tiles that a warp fills and the others use, or one tile that
 * the whole block waits for. Mbarriers are counted in phases from the program's begin, so
 * both stand outside of regions. */
#include "gen.h"

enum { MBARRIERS = 64, BULK_BITS = 128 };

typedef struct Stream {
    DType dtype;
    const Layout *layout;       /* of a tile */
    int64_t stages, rounds;
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
    s->layout = gen_layout(g, 1 + (unsigned)choose(g->choices, 2),
                           choose_between(g->choices, 1, 4), true);
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

/* The tensors, a row of the view for each round. */
static void add_memory(Gen *g, Stream *s)
{
    const Layout *l = s->layout;
    Text shape, zeros, words;
    text_init(&shape, g->arena);
    text_init(&zeros, g->arena);
    text_init(&words, g->arena);
    int64_t elements = s->rounds + (int64_t)choose(g->choices, 2);
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

/* ---- a producer and its consumers -------------------------------------------- */

static void produce(Gen *g, const Stream *s)
{
    const char *i = gen_name(g, "i"), *row = i;
    const char *stage = arena_printf(g->arena, "%s mod %lld", i, (long long)s->stages);
    if (choose(g->choices, 2))
        row = arena_printf(g->arena, "%lld - %s", (long long)s->rounds - 1, i);
    gen_line(g, "for %s in 0 .. %s {", i, gen_exact(g, s->rounds));
    g->indent++;
    wait(g, s->empty, stage, arena_printf(g->arena, "%s / %lld + 1", i, (long long)s->stages));
    gen_line(g, "copy_async_bulk %s[%s%s], %s[%s%s], %s[%s]%s", s->view, row, s->zeros, s->ring,
             stage, s->zeros, s->full, stage, s->words);
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
    const char *stage = arena_printf(g->arena, "%s mod %lld", i, (long long)s->stages);
    gen_line(g, "%s = allocate_register 0 : %s", zero, type);
    gen_line(g, "%s = for %s in 0 .. %s iter(%s = %s) {", sum, i, gen_exact(g, s->rounds),
             carried, zero);
    g->indent++;
    wait(g, s->full, stage, arena_printf(g->arena, "%s / %lld", i, (long long)s->stages));
    gen_line(g, "%s = load_shared %s[%s%s] : %s", tile, s->ring, stage, s->zeros, type);
    gen_line(g, "mbarrier_arrive %s[%s]", s->empty, stage);
    gen_line(g, "%s = sub %s, %s", next, tile, carried);
    gen_line(g, "yield %s", next);
    g->indent--;
    gen_line(g, "}");
    Reg result = {.name = sum, .dtype = s->dtype, .layout = s->layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, result);
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

static void stream_alone(Gen *g, Stream *s)
{
    const char *i = gen_name(g, "i"), *sum = gen_name(g, "v"), *carried = gen_name(g, "v");
    const char *tile = gen_name(g, "v"), *next = gen_name(g, "v");
    const char *initial = gen_use(g, gen_value_of(g, s->dtype, s->layout));
    s->full = add_mbarriers(g, g->warps, 1);
    gen_line(g, "%s = for %s in 0 .. %s iter(%s = %s) {", sum, i, gen_exact(g, s->rounds),
             carried, initial);
    g->indent++;
    gen_line(g, "copy_async_bulk %s[%s%s], %s[0%s], %s[0]%s", s->view, i, s->zeros, s->ring,
             s->zeros, s->full, s->words);
    gen_line(g, "mbarrier_arrive %s[0]", s->full);
    wait(g, s->full, "0", i);
    gen_line(g, "%s = load_shared %s[0%s] : %s", tile, s->ring, s->zeros,
             gen_type_text(g, s->dtype, s->layout));
    gen_synchronize(g);
    gen_line(g, "%s = sub %s, %s", next, tile, carried);
    gen_line(g, "yield %s", next);
    g->indent--;
    gen_line(g, "}");
    Reg result = {.name = sum, .dtype = s->dtype, .layout = s->layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, result);
}

void gen_bulk(Gen *g)
{
    Stream s = {.stages = choose_between(g->choices, 1, 3),
                .rounds = choose_between(g->choices, 1, 5)};
    bool groups = g->warps > 1 && choose(g->choices, 3);
    if (!g->options.bulk || g->depth || g->mbarriers + 2 * s.stages > MBARRIERS)
        return;
    gen_wait_all(g);
    g->warps -= groups;
    choose_tile(g, &s);
    g->warps = g->block_warps;
    for (int64_t i = 0; i < 2 * s.rounds; i++)
        gen_spend(g, s.layout);
    add_memory(g, &s);
    if (groups)
        stream_between_groups(g, &s);
    else
        stream_alone(g, &s);
}
