/* Races between groups of threads: random programs run on the interpreter, and a
 * checker that keeps every access decides for each pair of them whether barriers
 * hand on the order from the one thread to the other. The two must agree. */
#include "support/diag.h"
#include "support/text.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROGRAMS = 12000, WARPS = 4, LANES = 3, COPIER = 2, THREADS = WARPS * LANES, EVENTS = 64 };

/* Of each warp two lanes stand for all, and a third one for those that copy. */
typedef enum Kind { READ, WRITE, ATOMIC, BARRIER } Kind;
typedef enum Mode { ALL, EACH, LEAST, COPY } Mode;

typedef struct Event {
    Kind kind;
    Mode mode;              /* which threads access: all one element, each its own, ... */
    unsigned begin, count;  /* warps */
    unsigned memory;        /* 0 shared, 1 global */
    unsigned element;       /* the first one */
} Event;

typedef struct Generator {
    Text text;
    uint64_t seed;
    unsigned names, budget, count;
    Event events[EVENTS];
} Generator;

/* ---- programs ------------------------------------------------------------- */

static unsigned draw(Generator *g, unsigned below)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->seed >> 33) % below;
}

static void add_event(Generator *g, Event e)
{
    assert_true(g->count < EVENTS);
    g->events[g->count++] = e;
}

static void write_access(Generator *g, unsigned begin, unsigned count)
{
    static const char *const names[] = {"shared", "global"}, *const memory[] = {"s", "g"};
    static const unsigned elements[] = {0, 1, 32, 33};
    Event e = {.kind = draw(g, 3), .begin = begin, .count = count, .memory = draw(g, 2),
               .element = elements[draw(g, 4)]};
    unsigned threads = 32 * count, name = g->names++;
    e.mode = e.kind == ATOMIC ? LEAST : draw(g, 2) ? ALL : EACH;
    e.element -= e.mode == EACH ? e.element % 32 : 0;   /* lanes meet their like only */
    const char *layout = e.mode == EACH ? "spatial" : "replicate";
    unsigned extent = e.mode == EACH ? threads : 1;
    if (e.kind != READ)
        text_printf(&g->text, "%%x%u = allocate_register 1 : i32[%u] @ %s(%u)\n", name, extent,
                    layout, threads);
    if (e.kind == READ)
        text_printf(&g->text, "%%x%u = load_%s %%%s[%u] : i32[%u] @ %s(%u)\n", name,
                    names[e.memory], memory[e.memory], e.element, extent, layout, threads);
    else if (e.kind == WRITE)
        text_printf(&g->text, "store_%s %%x%u, %%%s[%u]\n", names[e.memory], name,
                    memory[e.memory], e.element);
    else
        text_printf(&g->text, "atomic_add %%x%u, %%%s[%u]\n", name, memory[e.memory], e.element);
    add_event(g, e);
}

static void write_copy(Generator *g, unsigned begin, unsigned count)
{
    unsigned from = draw(g, 2), to = draw(g, 2);
    text_printf(&g->text, "copy_async %%g[%u], %%s[%u] {shape = [1]}\ncopy_async_commit_group\n"
                "copy_async_wait_group 0\n", from, to);
    add_event(g, (Event){READ, COPY, begin, count, 1, from});
    add_event(g, (Event){WRITE, COPY, begin, count, 0, to});
}

/* Ops of the warps from `begin` on. */
static void write_region(Generator *g, unsigned begin, unsigned count, unsigned depth)
{
    for (unsigned n = 1 + draw(g, 4); n && g->budget; n--) {
        unsigned choice = draw(g, 10);
        g->budget--;
        if (choice < 3 && depth < 3) {
            unsigned first = draw(g, count), warps = 1 + draw(g, count - first);
            text_printf(&g->text, "thread_group(%u, %u) {\n", 32 * first, 32 * warps);
            write_region(g, begin + first, warps, depth + 1);
            text_printf(&g->text, "}\n");
        } else if (choice < 6) {
            text_printf(&g->text, "synchronize\n");
            add_event(g, (Event){BARRIER, ALL, begin, count, 0, 0});
        } else if (choice < 7) {
            write_copy(g, begin, count);
        } else {
            write_access(g, begin, count);
        }
    }
}

static const char *write_program(Generator *g, Arena *arena)
{
    text_init(&g->text, arena);
    text_printf(&g->text, "program @p<1>(%%x: ptr<i32>) warps(%d) {\n"
                "%%g = view_global %%x : i32[256]\n%%s = allocate_shared : i32[256]\n"
                "%%z = allocate_register 0 : i32[256] @ local(2).spatial(%d)\n"
                "store_shared %%z, %%s[0]\nsynchronize\n", WARPS, 32 * WARPS);
    while (g->budget)
        write_region(g, 0, WARPS, 0);
    text_printf(&g->text, "}\n");
    return text_string(&g->text);
}

/* ---- the checker ------------------------------------------------------------ */

static bool has_warp(const Event *e, unsigned thread)
{
    return thread / LANES >= e->begin && thread / LANES < e->begin + e->count;
}

/* Whether `thread` accesses something in `e`; `*element` says what. */
static bool accesses(const Event *e, unsigned thread, unsigned *element)
{
    unsigned warp = thread / LANES, lane = thread % LANES;
    *element = e->element;
    if (e->mode == EACH)
        *element += 32 * (warp - e->begin) + lane;
    if (e->kind == BARRIER || !has_warp(e, thread) || (e->mode == COPY) != (lane == COPIER))
        return false;
    return e->mode != LEAST || (warp == e->begin && lane == 0);
}

static bool conflict(const Event *a, const Event *b)
{
    return a->memory == b->memory && (a->kind != READ || b->kind != READ) &&
           (a->kind != ATOMIC || b->kind != ATOMIC);
}

/* Threads that a barrier joins with one of `reached` are reached. */
static void reach(const Event *barrier, bool reached[THREADS])
{
    bool joins = false;
    for (unsigned t = 0; t < THREADS; t++)
        joins |= reached[t] && has_warp(barrier, t);
    for (unsigned t = 0; joins && t < THREADS; t++)
        reached[t] |= has_warp(barrier, t);
}

/* Whether an access of `thread` in event `i` races with a later one. A copier is
 * somebody else each time. */
static bool thread_races(const Generator *g, unsigned i, unsigned thread, unsigned element)
{
    bool reached[THREADS] = {[0] = false};
    unsigned other;
    reached[thread] = true;
    for (unsigned j = i + 1; j < g->count; j++) {
        const Event *e = &g->events[j];
        if (e->kind == BARRIER) {
            reach(e, reached);
            continue;
        }
        for (unsigned t = 0; t < THREADS; t++)
            if (conflict(&g->events[i], e) && accesses(e, t, &other) && other == element &&
                (t != thread ? !reached[t] : t % LANES == COPIER && !reached[t + 1 - LANES]))
                return true;
    }
    return false;
}

static bool has_race(const Generator *g)
{
    unsigned element;
    for (unsigned i = 0; i < g->count; i++)
        for (unsigned t = 0; t < THREADS; t++)
            if (accesses(&g->events[i], t, &element) && thread_races(g, i, t, element))
                return true;
    return false;
}

/* ---- the test ----------------------------------------------------------------- */

/* Returns true when there is a race. */
static bool check_seed(uint64_t seed)
{
    Generator g = {.seed = seed, .budget = 3 + (unsigned)(seed >> 40) % 14};
    Diag diag;
    Arena arena;
    int32_t x[256] = {0};
    tilus_arg arg = {.pointer = 0};
    tilus_buffer buffer = {x, sizeof x};
    diag_init(&diag);
    if (setjmp(diag.oom.jump))
        fail_msg("out of memory");
    arena_init(&arena, &diag.oom);
    const char *text = write_program(&g, &arena);
    tilus_diag *errors = tilus_diag_new();
    tilus_module *m = tilus_parse(errors, "test", text, strlen(text), 1, NULL, 0);
    if (!m)
        fail_msg("%s: %s", tilus_diag_text(errors, 0), text);
    bool found = tilus_interpret(m, "p", &arg, 1, &buffer, 1, NULL) != TILUS_OK;
    bool race = has_race(&g);
    const char *message = found ? tilus_diag_text(errors, 0) : "no race is found";
    if (found != race || (found && strncmp(message, "race: ", strlen("race: ")) != 0))
        fail_msg("%s, %s:\n%s", message, race ? "and there is one" : "there is none", text);
    tilus_module_free(m);
    tilus_diag_free(errors);
    arena_free(&arena);
    diag_free(&diag);
    return race;
}

static void test_random_programs(void **state)
{
    unsigned races = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        races += check_seed(seed * 0x9e3779b97f4a7c15u);
    assert_in_range(races, PROGRAMS / 4, PROGRAMS * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
