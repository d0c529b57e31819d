/* Plans of shared memory: random structured programs are planned, then run along
 * their paths by a checker that knows nothing of lifetimes. It watches each 16
 * bytes: in one barrier interval only one tensor may touch them, nobody may touch
 * what a copy is still filling, and what a tensor was given must be there when it
 * is read. */
#include "ir/part.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "support/text.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROGRAMS = 2000, PATHS = 300, TENSORS = 24, UNITS = 2048, CHOICES = 512, DEPTH = 3 };

/* ---- programs ------------------------------------------------------------- */

typedef struct Generator {
    Text text;
    uint64_t seed;
    unsigned tensors, names, budget;
    bool copies;
} Generator;

static unsigned draw(Generator *g, unsigned below)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->seed >> 33) % below;
}

static void write_region(Generator *g, unsigned depth, const unsigned *outer, unsigned count);

static void write_nested(Generator *g, unsigned depth, const unsigned *seen, unsigned count)
{
    if (draw(g, 2)) {
        text_printf(&g->text, "for %%i%u in 0 .. %%n {\n", g->names++);
    } else {
        text_printf(&g->text, "if %%n > %u {\n", g->names++);
        if (draw(g, 2)) {
            write_region(g, depth + 1, seen, count);
            text_printf(&g->text, "} else {\n");
        }
    }
    write_region(g, depth + 1, seen, count);
    text_printf(&g->text, "}\n");
}

/* The name of the tensor or of a part of a part of it. */
static const char *write_part(Generator *g, unsigned tensor)
{
    Arena *arena = g->text.arena;
    if (draw(g, 3))
        return arena_printf(arena, "%%t%u", tensor);
    unsigned part = g->names++;
    text_printf(&g->text, "%%s%u = slice %%t%u[0] : u8[32]\n", part, tensor);
    text_printf(&g->text, "%%p%u = permute %%s%u {dims = [0]}\n", part, part);
    return arena_printf(arena, "%%p%u", part);
}

static void write_access(Generator *g, unsigned tensor)
{
    const char *name = write_part(g, tensor);
    switch (draw(g, g->copies ? 5 : 4)) {
    case 0:
    case 1:
        text_printf(&g->text, "store_shared %%r, %s[0]\n", name);
        break;
    case 2:
    case 3:
        text_printf(&g->text, "%%v%u = load_shared %s[0] : u8[32] @ spatial(32)\n",
                    g->names++, name);
        break;
    default:
        text_printf(&g->text, "copy_async %%g[0], %s[0] {shape = [32]}\n", name);
        if (draw(g, 3))
            text_printf(&g->text, "copy_async_commit_group\n");
    }
}

static void write_barrier(Generator *g)
{
    static const char *const barriers[] = {
        "synchronize\n", "synchronize\n", "synchronize\n", "copy_async_commit_group\n",
        "copy_async_wait_group 0\nsynchronize\n", "copy_async_wait_group 0\n",
        "copy_async_wait_group 1\nsynchronize\n"};
    unsigned count = g->copies ? sizeof barriers / sizeof *barriers : 3;
    text_printf(&g->text, "%s", barriers[draw(g, count)]);
}

static void write_region(Generator *g, unsigned depth, const unsigned *outer, unsigned count)
{
    unsigned seen[TENSORS], ops = 2 + draw(g, 10);
    if (count)
        memcpy(seen, outer, count * sizeof *seen);
    for (unsigned i = 0; i < ops && g->budget; i++, g->budget--) {
        unsigned what = draw(g, 12);
        if (what < 2 && count < 4 && g->tensors < TENSORS) {
            text_printf(&g->text, "%%t%u = allocate_shared : u8[%u]\n", g->tensors,
                        32 + 16 * draw(g, 4));
            seen[count++] = g->tensors++;
        } else if (what < 6 && count) {
            write_access(g, seen[draw(g, count)]);
        } else if (what < 9) {
            write_barrier(g);
        } else if (depth < DEPTH) {
            write_nested(g, depth, seen, count);
        }
    }
}

static const char *write_program(Generator *g, Arena *arena)
{
    text_init(&g->text, arena);
    text_printf(&g->text, "program @p<1>(%%x: ptr<u8> {align = 16}, %%n: i32) warps(1) {\n"
                "%%g = view_global %%x : u8[32]\n"
                "%%r = load_global %%g[0] : u8[32] @ spatial(32)\n");
    write_region(g, 0, NULL, 0);
    text_printf(&g->text, "}\n");
    return text_string(&g->text);
}

/* ---- running ---------------------------------------------------------------- */

/* A path. Times count barriers; a unit is 16 bytes. */
typedef struct Machine {
    const Op *tensors[TENSORS];
    unsigned tensor_count;
    bool given[TENSORS];                /* since it was allocated */
    unsigned pending[TENSORS];          /* copies in flight */
    int data[UNITS];                    /* whose it is, or -1 */
    int toucher[UNITS];                 /* in this interval, or -1 */
    unsigned copy_group[CHOICES];       /* of each copy in flight; 0: none yet */
    unsigned copy_tensor[CHOICES], copies, groups;
    uint8_t choice[CHOICES], choices_of[CHOICES];
    unsigned choices, chosen;           /* of the path; so far */
    const char *fault;
} Machine;

static unsigned first_unit(const Op *tensor)
{
    return (unsigned)(op_attr(tensor, ATTR_OFFSET)->integer / SHARED_ALIGN);
}

static unsigned end_unit(const Op *tensor)
{
    int64_t bytes = (type_shared_bits(tensor->results[0]->type) + 7) / 8;
    return first_unit(tensor) + (unsigned)((bytes + SHARED_ALIGN - 1) / SHARED_ALIGN);
}

static unsigned find_tensor(Machine *m, const Op *op)
{
    unsigned i = 0;
    while (i < m->tensor_count && m->tensors[i] != op)
        i++;
    if (i == m->tensor_count)
        m->tensors[m->tensor_count++] = op;
    return i;
}

static bool copy_overlaps(const Machine *m, unsigned tensor, unsigned unit)
{
    for (unsigned i = 0; i < m->tensor_count; i++)
        if (i != tensor && m->pending[i] && first_unit(m->tensors[i]) <= unit &&
            unit < end_unit(m->tensors[i]))
            return true;
    return false;
}

static void touch(Machine *m, unsigned tensor, bool writes, bool reads)
{
    const Op *op = m->tensors[tensor];
    for (unsigned u = first_unit(op); u < end_unit(op); u++) {
        if (m->toucher[u] >= 0 && m->toucher[u] != (int)tensor)
            m->fault = "two tensors in one interval";
        if (copy_overlaps(m, tensor, u))
            m->fault = "a copy is in flight";
        if (reads && m->given[tensor] && m->data[u] != (int)tensor)
            m->fault = "data is lost";
        m->toucher[u] = (int)tensor;
        m->data[u] = writes ? (int)tensor : m->data[u];
    }
    m->given[tensor] = m->given[tensor] || writes;
}

/* All but the newest `pending` groups end, in the order in which they began. */
static void wait_copies(Machine *m, unsigned pending)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < m->copies; i++) {
        if (m->copy_group[i] && m->copy_group[i] + pending <= m->groups) {
            m->pending[m->copy_tensor[i]]--;
            touch(m, m->copy_tensor[i], true, false);
            continue;
        }
        m->copy_group[kept] = m->copy_group[i];
        m->copy_tensor[kept++] = m->copy_tensor[i];
    }
    m->copies = kept;
}

static unsigned choose(Machine *m, unsigned count)
{
    if (m->chosen == CHOICES)
        return 0;
    if (m->chosen == m->choices)
        m->choice[m->choices++] = 0;
    m->choices_of[m->chosen] = (uint8_t)count;
    return m->choice[m->chosen++];
}

static void start_copy(Machine *m, unsigned tensor)
{
    touch(m, tensor, true, false);
    assert_true(m->copies < CHOICES);
    m->copy_group[m->copies] = 0;
    m->copy_tensor[m->copies++] = tensor;
    m->pending[tensor]++;
}

static void run_region(Machine *m, const Region *r);

static void run_op(Machine *m, const Op *op)
{
    const Value *last = op->operand_count ? op->operands[op->operand_count - 1] : NULL;
    const Op *tensor = last && last->type->kind == TYPE_SHARED ? memory_root(last)->def : NULL;
    if (op->code == OP_allocate_shared) {
        m->given[find_tensor(m, op)] = false;
    } else if (op->code == OP_load_shared || op->code == OP_store_shared) {
        bool writes = op->code == OP_store_shared;
        touch(m, find_tensor(m, tensor), writes, !writes);
    } else if (op->code == OP_copy_async) {
        start_copy(m, find_tensor(m, tensor));
    } else if (op->code == OP_copy_async_commit_group) {
        m->groups++;
        for (unsigned i = 0; i < m->copies; i++)
            m->copy_group[i] = m->copy_group[i] ? m->copy_group[i] : m->groups;
    } else if (op->code == OP_copy_async_wait_group) {
        wait_copies(m, (unsigned)op_expr(op, ATTR_NUMBER)->constant);
    } else if (op->code == OP_synchronize) {
        memset(m->toucher, -1, sizeof m->toucher);
    } else if (op->code == OP_if) {
        run_region(m, op->regions[choose(m, 2)]);
    } else if (op->code == OP_for) {
        for (unsigned i = choose(m, 3); i; i--)
            run_region(m, op->regions[0]);
    }
}

static void run_region(Machine *m, const Region *r)
{
    for (const Op *op = r->first; op && !m->fault; op = op->next)
        run_op(m, op);
}

/* The next path in order; false after the last. */
static bool next_path(Machine *m)
{
    m->choices = m->chosen;
    while (m->choices && m->choice[m->choices - 1] + 1 == m->choices_of[m->choices - 1])
        m->choices--;
    if (!m->choices)
        return false;
    m->choice[m->choices - 1]++;
    return true;
}

static void run_paths(const Program *p, const char *text)
{
    static Machine m;
    memset(&m, 0, sizeof m);
    for (unsigned path = 0; path < PATHS; path++) {
        m.chosen = m.copies = m.groups = 0;
        memset(m.given, 0, sizeof m.given);
        memset(m.pending, 0, sizeof m.pending);
        memset(m.data, -1, sizeof m.data);
        memset(m.toucher, -1, sizeof m.toucher);
        run_region(&m, p->body);
        if (m.fault)
            fail_msg("%s:\n%s", m.fault, text);
        if (!next_path(&m))
            return;
    }
}

/* ---- the tests ---------------------------------------------------------------- */

typedef struct Sizes {
    int64_t planned, sequence;
} Sizes;

static bool add_sizes(Op *op, void *data)
{
    Sizes *s = data;
    if (op->code != OP_allocate_shared)
        return true;
    int64_t end = SHARED_ALIGN * (int64_t)end_unit(op);
    s->planned = s->planned > end ? s->planned : end;
    s->sequence += end - SHARED_ALIGN * (int64_t)first_unit(op);
    return true;
}

/* Returns true when the plan saves bytes. */
static bool check_seed(uint64_t seed)
{
    Generator g = {.seed = seed, .budget = 60, .copies = seed & 1};
    Arena arena;
    Diag diag;
    Sizes sizes = {0};
    diag_init(&diag);
    if (setjmp(diag.oom.jump))
        fail_msg("out of memory");
    arena_init(&arena, &diag.oom);
    const char *text = write_program(&g, &arena);
    Module *module = module_new(&diag);
    diag_set_source(&diag, "test", text, strlen(text), 1);
    if (!parse_module(module, NULL, 0) || !verify_module(module) ||
        pass_plan_shared(module->programs) == PASS_FAILED)
        fail_msg("%s: %s", diag.count ? diag.messages[0].text : "?", text);
    region_walk(module->programs->body, add_sizes, &sizes);
    assert_true(sizes.planned <= sizes.sequence);
    run_paths(module->programs, text);
    module_free(module);
    arena_free(&arena);
    diag_free(&diag);
    return sizes.planned < sizes.sequence;
}

static void test_random_programs(void **state)
{
    unsigned smaller = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        smaller += check_seed(seed * 0x9e3779b97f4a7c15u);
    assert_true(smaller > PROGRAMS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
