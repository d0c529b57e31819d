/* check-hazards against the interpreter: random programs of shared and global
 * accesses, copies, barriers, loops, branches, rings and slices are judged before they
 * run, then run. Where the interpreter meets a race, something must have been
 * found; where a race was proved, some run that gets there must meet one. */
#include "memory/hazards.h"
#include "support/text.h"
#include "sweep.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROGRAMS = 3000, DEPTH = 2, BUFFER = 1 << 14 };

/* ---- programs ---------------------------------------------------------- */

typedef struct Generator {
    Text text;
    uint64_t seed;
    unsigned names, budget, loops;
    bool copies, blocks, branches;
} Generator;

static unsigned draw(Generator *g, unsigned below)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->seed >> 33) % below;
}

static const char *pick(Generator *g, const char *const *words, unsigned count)
{
    return words[draw(g, count)];
}
#define PICK(g, words) pick((g), (words), sizeof(words) / sizeof *(words))

static const char *const types[] = {"u8", "u8", "u4", "u16", "i6"};

/* Layouts of 32 elements, for one warp. */
static const char *const layouts[] = {
    "spatial(32)", "spatial(32)", "spatial(32)", "local(4).spatial(8).replicate(4)",
    "replicate(32).local(32)", "local(2).replicate(2).spatial(16)",
    "spatial(16).replicate(2).local(2)", "local(4).spatial(8).replicate(4)"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* An integer that is not negative. */
static void write_scalar(Generator *g)
{
    unsigned what = draw(g, 8);
    if (what < 5 && g->loops) {
        text_printf(&g->text, what < 3 ? "%%i%u + %u" : "%%i%u * 2 + %u", draw(g, g->loops),
                    draw(g, 5));
    } else if (what == 5 && g->loops > 1) {
        text_printf(&g->text, "%%i%u + %%i%u", g->loops - 1, g->loops - 2);
    } else if (what < 7) {
        text_printf(&g->text, "%u", draw(g, 4));
    } else {
        text_printf(&g->text, "%s + %u", g->blocks ? "%b" : "%n", draw(g, 3));
    }
}

/* An index of a ring of four rows, and one of 32 columns that begin in 96. */
static void write_offsets(Generator *g, bool blocks)
{
    static const char *const columns[] = {"0", "0", "0", "16", "32", "64", "1"};
    text_printf(&g->text, "[%s(", blocks ? "%b * 4 + " : "");
    write_scalar(g);
    text_printf(&g->text, ") mod 4, ");
    if (draw(g, 4)) {
        text_printf(&g->text, "%s]", PICK(g, columns));
        return;
    }
    text_printf(&g->text, "((");
    write_scalar(g);
    text_printf(&g->text, draw(g, 2) ? ") mod 3) * 32]" : ") / 2 mod 2) * 32]");
}

static void write_load(Generator *g, const char *memory, bool global)
{
    text_printf(&g->text, "%%v%u = load_%s %s", g->names++, global ? "global" : "shared",
                memory);
    write_offsets(g, global && g->blocks && draw(g, 4));
    text_printf(&g->text, " : T[32] @ %s\n", PICK(g, layouts));
}

static void write_store(Generator *g, const char *memory, bool global)
{
    text_printf(&g->text, "store_%s %%r%u, %s", global ? "global" : "shared",
                draw(g, LAYOUTS + 1), memory);
    write_offsets(g, global && g->blocks && draw(g, 4));
    text_printf(&g->text, "\n");
}

static void write_copy(Generator *g)
{
    text_printf(&g->text, "copy_async %s", draw(g, 8) ? "%gx" : "%gy");
    write_offsets(g, false);
    text_printf(&g->text, ", %%s%u", draw(g, 3));
    write_offsets(g, false);
    text_printf(&g->text, " {shape = [32]}\n");
    if (draw(g, 5))
        text_printf(&g->text, "copy_async_commit_group\n");
}

static void write_access(Generator *g)
{
    static const char *const tensors[] = {"%s0", "%s1", "%s2"};
    unsigned what = draw(g, 16);
    if (what < 5)
        write_store(g, PICK(g, tensors), false);
    else if (what < 9)
        write_load(g, PICK(g, tensors), false);
    else if (what < 12 && g->copies)
        write_copy(g);
    else if (what == 12)
        write_store(g, "%gy", true);
    else if (what == 13)
        write_load(g, "%gy", true);
    else if (what == 14 && !draw(g, 3))
        text_printf(&g->text, "print \"s\", %%s0[%u, 0] {shape = [%u]}\n", draw(g, 4),
                    1 + draw(g, 32));
    else if (what == 14)
        text_printf(&g->text, "atomic_add %%one, %%sums[%u]\n", 16 * draw(g, 3));
    else
        text_printf(&g->text, "%%v%u = load_shared %%sums[%u] : i32[32] @ %s\n", g->names++,
                    16 * draw(g, 3), PICK(g, layouts));
}

static void write_barrier(Generator *g)
{
    static const char *const plain[] = {"synchronize\n"};
    static const char *const copying[] = {
        "synchronize\n", "synchronize\n", "copy_async_commit_group\n",
        "copy_async_wait_group 0\nsynchronize\n", "copy_async_wait_group 0\nsynchronize\n",
        "copy_async_wait_group 1\nsynchronize\n", "copy_async_wait_group 2\n"};
    text_printf(&g->text, "%s", g->copies ? PICK(g, copying) : PICK(g, plain));
}

static void write_region(Generator *g, unsigned depth);

static void write_loop(Generator *g, unsigned depth)
{
    static const char *const bounds[] = {"0 .. %n", "0 .. %n", "0 .. 2", "1 .. 3",
                                         "0 .. %n step 2", "1 .. 10", "%n .. 9", "0 .. 11"};
    text_printf(&g->text, "for %%i%u in %s {\n", g->loops++, PICK(g, bounds));
    write_region(g, depth + 1);
    g->loops--;
    text_printf(&g->text, "}\n");
}

static void write_branch(Generator *g, unsigned depth)
{
    g->branches = true;
    text_printf(&g->text, "if (");
    write_scalar(g);
    text_printf(&g->text, ") mod 3 == %u {\n", draw(g, 3));
    write_region(g, depth + 1);
    if (draw(g, 2)) {
        text_printf(&g->text, "} else {\n");
        write_region(g, depth + 1);
    } else if (!draw(g, 6)) {
        text_printf(&g->text, "exit\n");
    }
    text_printf(&g->text, "}\n");
}

static void write_region(Generator *g, unsigned depth)
{
    unsigned ops = 1 + draw(g, 6);
    for (unsigned i = 0; i < ops && g->budget; i++) {
        unsigned what = draw(g, 16);
        g->budget--;
        if (what < 8)
            write_access(g);
        else if (what < 13)
            write_barrier(g);
        else if (depth < DEPTH && what < 15)
            write_loop(g, depth);
        else if (depth < DEPTH)
            write_branch(g, depth);
    }
}

/* Everything is written before the random part begins. */
static void write_head(Generator *g)
{
    static const char *const shapes[] = {"", "", " strides(136, 1)", " swizzle(2, 4, 4)"};
    text_printf(&g->text,
                "param T: type = %s\n"
                "program @p<%u>(%%x: ptr<u8> {align = 16}, %%y: ptr<u8> {align = 16}, "
                "%%n: i32 {range = [0, 100]}) warps(1) {\n"
                "%%b = block_indices\n"
                "%%gx = view_global %%x : T[8, 128]\n%%gy = view_global %%y : T[16, %u]\n"
                "%%sums = allocate_shared : i32[64]\n"
                "%%s0 = allocate_shared : T[4, 96]\n"
                "%%all = allocate_shared : T[4, 128]%s\n"
                "%%s1 = slice %%all[0, 16] : T[4, 96]\n%%s2 = slice %%all[0, 8] : T[4, 96]\n"
                "%%none = allocate_register 0 : i32[64] @ spatial(32).local(2)\n"
                "%%one = allocate_register 1 : i32[32] @ spatial(32)\n"
                "store_shared %%none, %%sums[0]\n",
                PICK(g, types), g->blocks ? 3 : 1, draw(g, 3) ? 128 : 101, PICK(g, shapes));
    text_printf(&g->text,
                "%%x0 = load_global %%gx[0, 0] : T[4, 96] @ spatial(4, 8).local(1, 12)\n"
                "%%x1 = load_global %%gx[0, 0] : T[4, 128] @ spatial(4, 8).local(1, 16)\n"
                "store_shared %%x0, %%s0[0, 0]\nstore_shared %%x1, %%all[0, 0]\n");
    for (unsigned i = 0; i < LAYOUTS; i++)
        text_printf(&g->text, "%%r%u = load_global %%gx[%u, 0] : T[32] @ %s\n", i, i % 8,
                    layouts[i]);
    text_printf(&g->text, "%%wide = load_global %%gx[0, 0] : T[1024] @ spatial(32).local(32)\n"
                "%%r%u = view %%wide : T[32] @ replicate(32).local(32)\nsynchronize\n",
                LAYOUTS);
}

static const char *write_program(Generator *g, Arena *arena)
{
    text_init(&g->text, arena);
    g->copies = draw(g, 2);
    g->blocks = !draw(g, 4);
    g->branches = false;
    g->budget = 10 + draw(g, 20);
    write_head(g);
    while (g->budget)
        write_region(g, 0);
    if (g->copies)
        text_printf(&g->text, "copy_async_commit_group\ncopy_async_wait_group 0\n");
    text_printf(&g->text, "}\n");
    return text_string(&g->text);
}

/* ---- judging and running ----------------------------------------------- */

typedef struct Verdicts {
    unsigned clean, safe, proved, racing, alarms;
} Verdicts;

static void refuse(const tilus_diag *diag, const char *why, const char *text)
{
    tilus_diag_write(diag, NULL, NULL);
    fprintf(stderr, "%s:\n%s\n", why, text);
    fail();
}

/* Returns true when a run meets a race; any other error is the generator's fault. */
static bool run_races(tilus_diag *diag, tilus_module *m, int64_t n, const char *text)
{
    static unsigned char x[BUFFER], y[BUFFER];
    for (unsigned i = 0; i < BUFFER; i++)
        x[i] = y[i] = (unsigned char)(i * 37 + i / 64);
    tilus_arg args[3] = {{.pointer = 0}, {.pointer = 1}, {.integer = n}};
    tilus_buffer buffers[2] = {{x, BUFFER}, {y, BUFFER}};
    size_t before = tilus_diag_count(diag);
    if (tilus_interpret(m, "p", args, 3, buffers, 2, NULL) == TILUS_OK)
        return false;
    const char *message = tilus_diag_text(diag, before);
    if (!strstr(message, "race") && !strstr(message, "in flight"))
        refuse(diag, message, text);
    return true;
}

/* A proof of a race supposes that branches are taken, which may never be. */
static void judge(Verdicts *v, bool branches, const char *text)
{
    static const int64_t counts[] = {0, 1, 2, 3, 4, 7, 12};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, NULL, 0);
    if (!m)
        refuse(diag, "does not parse", text);
    ArenaMark mark = arena_mark(&m->scratch);
    Hazards found = hazards_of(m->programs);
    bool safe = found.count == 0, proved = false, races = false;
    for (unsigned i = 0; i < found.count; i++)
        proved = proved || found.found[i].proved;
    arena_reset(&m->scratch, mark);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !races; i++)
        races = run_races(diag, m, counts[i], text);
    if (safe && races)
        refuse(diag, "found nothing", text);
    if (proved && !races && !branches)
        refuse(diag, "proved a race that no run has", text);
    v->safe += safe;
    v->proved += proved;
    v->racing += races;
    v->clean += !races;
    v->alarms += !races && !safe;
    tilus_module_free(m);
    tilus_diag_free(diag);
}

static void test_agrees_with_interpreter(void **state)
{
    (void)state;
    Verdicts v = {0};
    OutOfMemory oom;
    Arena arena;
    assert_int_equal(setjmp(oom.jump), 0);
    arena_init(&arena, &oom);
    for (uint64_t seed = 0; seed < PROGRAMS; seed += SWEEP_STEP) {
        ArenaMark mark = arena_mark(&arena);
        Generator g = {.seed = seed * 7919 + 1};
        const char *text = write_program(&g, &arena);
        judge(&v, g.branches, text);
        arena_reset(&arena, mark);
    }
    print_message("%u safe, %u of %u without a race; %u proved of %u with one\n", v.safe,
                  v.safe, v.clean, v.proved, v.racing);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_interpreter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
