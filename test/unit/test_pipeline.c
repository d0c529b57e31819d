/* Pipelined loops mean what they meant: random loops run on the interpreter as they are
 * written and after the pass, which must give the same bytes and no race. Some are wrong
 * on purpose (a barrier or a wait left out, data kept from iteration to iteration): those
 * that the interpreter accepts must still be right after the pass. */
#include "support/text.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOOPS = 400, TENSORS = 3, ROWS = 40, TILE = 32, WORDS = ROWS * TILE };

/* ---- programs ------------------------------------------------------------------ */

typedef struct Generator {
    Text text;
    uint64_t seed;
    unsigned stages, tensors, names;
    unsigned tiles[TENSORS];    /* of 4 x 8 elements, in each tensor */
    bool inside;                /* tensors are allocated in the loop */
    const char *row;            /* of the view, that an iteration copies */
    unsigned flaw;              /* what is wrong; FLAW_NONE for a proper loop */
} Generator;

enum {
    FLAW_NONE,
    FLAW_BARRIER,       /* some are missing */
    FLAW_WAIT,          /* none */
    FLAW_KEPT,          /* a tile is read before it is copied into */
    FLAW_RING,          /* %t0 is a ring already, and its older tile is read */
    FLAW_GLOBAL,        /* the next row is written */
    FLAW_AFTER,         /* %t0 is read after the loop */
    FLAWS
};

static unsigned draw(Generator *g, unsigned below)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->seed >> 33) % below;
}

#define WRITE(g, ...) text_printf(&(g)->text, __VA_ARGS__)

static void write_tensors(Generator *g)
{
    static const char *const forms[] = {"", " strides(48, 10, 1)", " swizzle(1, 2, 3)"};
    for (unsigned t = 0; t < g->tensors; t++)
        WRITE(g, "%%t%u = allocate_shared : u32[%u, 4, 8]%s\n", t, g->tiles[t],
              forms[draw(g, 3)]);
}

static void write_copies(Generator *g)
{
    for (unsigned t = 0; t < g->tensors; t++)
        for (unsigned k = 0; k < g->tiles[t]; k++)
            if (g->flaw != FLAW_RING || t)
                WRITE(g, "copy_async %%g[%s, 0, 0], %%t%u[%u, 0, 0] {shape = [4, 8]}\n",
                      g->row, t, k);
    if (g->flaw == FLAW_RING)
        WRITE(g, "copy_async %%g[%s, 0, 0], %%t0[%%i mod 2, 0, 0] {shape = [4, 8]}\n", g->row);
    WRITE(g, "copy_async_commit_group\n%s",
          g->flaw == FLAW_WAIT ? "" : "copy_async_wait_group 0\n");
}

static void write_barrier(Generator *g)
{
    if (g->flaw != FLAW_BARRIER || draw(g, 2))
        WRITE(g, "synchronize\n");
}

/* %s<n> is the sum so far. */
static void write_sum(Generator *g, const char *tile)
{
    g->names++;
    WRITE(g, "%%m%u = mul %%s%u, %%three\n%%s%u = add %%m%u, %s\n", g->names, g->names - 1,
          g->names, g->names, tile);
}

static void write_use(Generator *g)
{
    unsigned t = draw(g, g->tensors), k = draw(g, g->tiles[t]), n = g->names;
    char tile[16];
    snprintf(tile, sizeof tile, "%%v%u", n);
    switch (draw(g, 5)) {
    case 0:         /* kept in shared memory from iteration to iteration */
        WRITE(g, "%%v%u = load_shared %%w[0, 0] : u32[4, 8] @ ROW\n", n);
        write_sum(g, tile);
        write_barrier(g);
        WRITE(g, "store_shared %%s%u, %%w[0, 0]\n", g->names);
        return;
    case 1:         /* changed in place */
        write_barrier(g);
        WRITE(g, "store_shared %%s%u, %%t%u[%u, 0, 0]\n", n, t, k);
        write_barrier(g);
        break;
    case 2:
        WRITE(g, "%%v%u = for %%u%u in 0 .. %u iter(%%c%u = %%s%u) {\n%%l%u = load_shared "
              "%%t%u[%%u%u, 0, 0] : u32[4, 8] @ ROW\n%%y%u = add %%c%u, %%l%u\n"
              "yield %%y%u\n}\n",
              n, n, g->tiles[t], n, n, n, t, n, n, n, n, n);
        write_sum(g, tile);
        return;
    default:
        break;
    }
    WRITE(g, "%%c%u = load_shared %%t%u[%u, 0, 0] : u32[4, 8] @ COLUMN\n"
          "%%v%u = view %%c%u : u32[4, 8] @ ROW\n", n, t, k, n, n);
    write_sum(g, tile);
}

static void write_body(Generator *g)
{
    if (g->inside)
        write_tensors(g);
    if (g->flaw == FLAW_KEPT) {
        WRITE(g, "%%kept = load_shared %%t0[0, 0, 0] : u32[4, 8] @ ROW\n");
        write_sum(g, "%kept");
        write_barrier(g);
    }
    write_copies(g);
    write_barrier(g);
    if (g->flaw == FLAW_RING) {
        WRITE(g, "%%old = if %%i > 3 {\n%%p = load_shared %%t0[(%%i + 1) mod 2, 0, 0] : "
              "u32[4, 8] @ ROW\nyield %%p\n} else {\nyield %%s0\n}\n");
        write_sum(g, "%old");
    }
    for (unsigned uses = g->flaw == FLAW_RING ? 0 : draw(g, 5); uses > 0; uses--)
        write_use(g);
    if (g->flaw == FLAW_GLOBAL)
        WRITE(g, "store_global %%s%u, %%g[min(%s + 1, %u), 0, 0]\n", g->names, g->row,
              ROWS - 1);
    write_barrier(g);
    WRITE(g, "yield %%s%u\n", g->names);
}

static void write_loop(Generator *g)
{
    static const struct { const char *bounds, *rows[4]; } forms[] = {
        {"0 .. %n", {"%i", "%n - 1 - %i", "(%i + 1) * 1", "%i / 2"}},
        {"3 .. %n + 3", {"%i", "%i - 3", "%i * 2", "%i + %b"}},
        {"0 .. %n * 2 step 2", {"%i / 2", "%i", "%i + 1", "%b"}},
        {"%b .. %n * 3 step 3", {"%i / 3", "%i", "%n", "%i - %b"}}};
    unsigned form = draw(g, 4);
    g->row = forms[form].rows[draw(g, 4)];
    WRITE(g, "%%sum = for %%i in %s pipelined(%u) iter(%%s0 = %%zero) {\n", forms[form].bounds,
          g->stages);
    write_body(g);
    WRITE(g, "}\n");
}

static const char *write_program(Generator *g, Arena *arena)
{
    static const char *const extents[] = {"%n", "40", "%n * 2"};
    bool outer = draw(g, 4) == 0;
    text_init(&g->text, arena);
    WRITE(g, "layout ROW = spatial(4, 8)\nlayout COLUMN = column_spatial(4, 8)\n"
          "program @p<%u>(%%x: ptr<u32> {align = 16}, %%y: ptr<u32>, %%n: i32) warps(1) {\n"
          "%%b = block_indices\n"
          "%%g = view_global %%x : u32[%s, 4, 8]\n%%o = view_global %%y : u32[2, 4, 8]\n"
          "%%zero = allocate_register 1 : u32[4, 8] @ ROW\n"
          "%%three = allocate_register 3 : u32[4, 8] @ ROW\n"
          "%%w = allocate_shared : u32[4, 8]\nstore_shared %%zero, %%w[0, 0]\n",
          g->flaw == FLAW_GLOBAL ? 1 : 2, extents[draw(g, 3)]);
    if (!g->inside)
        write_tensors(g);
    WRITE(g, "%s", outer ? "%r = for %q in 0 .. 2 iter(%z = %zero) {\n" : "");
    write_loop(g);
    WRITE(g, "%s", outer ? "%next = add %z, %sum\nyield %next\n}\n" : "");
    if (g->flaw == FLAW_AFTER && !g->inside)
        WRITE(g, "%%late = load_shared %%t0[0, 0, 0] : u32[4, 8] @ ROW\n"
              "store_global %%late, %%o[%%b, 0, 0]\n");
    WRITE(g, "store_global %s, %%o[%%b, 0, 0]\n}\n", outer ? "%r" : "%sum");
    return text_string(&g->text);
}

/* ---- runs ------------------------------------------------------------------------- */

typedef struct Memory {
    uint32_t x[WORDS], y[2 * TILE];
} Memory;

static void fill(Memory *memory)
{
    memset(memory, 0, sizeof *memory);
    for (uint32_t i = 0; i < WORDS; i++)
        memory->x[i] = i * 2654435761u;
}

static bool run(tilus_module *m, int64_t n, Memory *memory)
{
    tilus_arg args[] = {{.pointer = 0}, {.pointer = 1}, {.integer = n}};
    tilus_buffer buffers[] = {{memory->x, sizeof memory->x}, {memory->y, sizeof memory->y}};
    fill(memory);
    return tilus_interpret(m, "p", args, 3, buffers, 2, NULL) == TILUS_OK;
}

static tilus_module *parse(tilus_diag *diag, const char *text)
{
    tilus_module *m = tilus_parse(diag, "loop.tilus", text, strlen(text), 1, NULL, 0);
    if (!m)
        tilus_diag_write(diag, NULL, NULL);
    assert_non_null(m);
    return m;
}

/* Returns true when the pass took the mark away. */
static bool is_pipelined(tilus_module *m)
{
    char *text = tilus_print(m);
    bool marked = strstr(text, "pipelined(");
    free(text);
    return !marked;
}

/* Runs both; false if the program as written is refused. */
static bool compare(const char *text, const char *pipeline, int64_t n, bool *pipelined)
{
    static Memory before, after;
    tilus_pass_options options = {.struct_size = sizeof options, .verify_each = true};
    tilus_diag *diags[] = {tilus_diag_new(), tilus_diag_new()};
    tilus_module *plain = parse(diags[0], text), *passed = parse(diags[1], text);
    bool ok = run(plain, n, &before);
    if (ok && (!tilus_run_passes(passed, pipeline, &options) || !run(passed, n, &after) ||
               memcmp(&before, &after, sizeof before) != 0)) {
        char *printed = tilus_print(passed);
        tilus_diag_write(diags[1], NULL, NULL);
        fail_msg("n = %d, %s:\n%s\n%s", (int)n, pipeline, text, printed);
    }
    *pipelined = ok && is_pipelined(passed);
    tilus_module_free(plain);
    tilus_module_free(passed);
    tilus_diag_free(diags[0]);
    tilus_diag_free(diags[1]);
    return ok;
}

static Generator generator_new(unsigned number)
{
    Generator g = {.seed = number + 1};
    g.stages = 1 + draw(&g, 5);
    g.tensors = 1 + draw(&g, TENSORS);
    for (unsigned t = 0; t < g.tensors; t++)
        g.tiles[t] = 1 + draw(&g, 2);
    g.flaw = draw(&g, 2) ? FLAW_NONE : draw(&g, FLAWS);
    g.inside = g.flaw != FLAW_RING && draw(&g, 3) == 0;
    g.tiles[0] = g.flaw == FLAW_RING ? 2 : g.tiles[0];
    return g;
}

typedef struct Counts {
    unsigned runs, pipelined, flawed;
} Counts;

/* Trip counts around the number of stages. A loop without a flaw runs and, of more
 * than one stage, is pipelined. */
static void check_loop(const Generator *g, const char *text, Counts *counts)
{
    const int64_t trips[] = {0, 1, g->stages - 1, g->stages, g->stages + 1, 9};
    for (size_t t = 0; t < sizeof trips / sizeof *trips; t++) {
        bool pipelined, alone = t % 2;
        bool ok = compare(text, alone ? "pipeline-loops" : tilus_default_pipeline(), trips[t],
                          &pipelined);
        assert_true(ok || g->flaw != FLAW_NONE);
        if (alone && g->flaw == FLAW_NONE)
            assert_int_equal(pipelined, g->stages > 1);
        counts->runs += ok;
        counts->pipelined += alone && pipelined;
        counts->flawed += alone && pipelined && g->flaw != FLAW_NONE;
    }
}

static void loops_mean_the_same(void **state)
{
    (void)state;
    static Counts counts;
    for (unsigned i = 0; i < LOOPS; i++) {
        OutOfMemory oom;
        Arena arena;
        arena_init(&arena, &oom);
        assert_int_equal(setjmp(oom.jump), 0);
        Generator g = generator_new(i);
        check_loop(&g, write_program(&g, &arena), &counts);
        arena_free(&arena);
    }
    assert_true(counts.runs > 3 * LOOPS && counts.pipelined > LOOPS && counts.flawed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loops_mean_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
