/* Registers over a program: the words of 32 bits that a thread's parts of live tensors take after
 * each op. Addresses, counters and what the assembler keeps longer come on top. */
#include "tool.h"

#include "ir/ir.h"
#include "ir/loop.h"

#include <setjmp.h>
#include <string.h>

/* A register tensor is live from just after op `first` to op `last`, its last use. */
typedef struct Life {
    const Value *value;
    unsigned first, last;
    const Op *loop;             /* the outermost one that begins after `first` and uses it */
    int64_t words;
} Life;

typedef struct Walk {
    Explain *e;
    Arena *arena;
    json_t *lines;
    Life *lives;
    uint32_t count, capacity;
    unsigned position;          /* of the op that is met, from 1 */
    const Op *loops[LIMIT_DEPTH];
    unsigned starts[LIMIT_DEPTH], depth;
} Walk;

static void define(Walk *w, Value *v)
{
    const Type *t = v->type;
    if (t->kind != TYPE_REG || !t->layout)
        return;
    int64_t words = (t->layout->slots * (int64_t)dtype_bits(t->dtype) + 31) / 32;
    Life life = {v, w->position, w->position, NULL, words};
    arena_push(w->arena, w->lives, w->count, w->capacity, life);
    v->data = (void *)(uintptr_t)w->count;
}

/* A value from before a loop is used again in the loop's next iteration. */
static void use(Walk *w, const Value *v)
{
    Life *life = v->data ? &w->lives[(uintptr_t)v->data - 1] : NULL;
    if (!life)
        return;
    life->last = w->position;
    for (unsigned i = 0; i < w->depth && !life->loop; i++)
        if (w->starts[i] > life->first)
            life->loop = w->loops[i];
}

static void close_loop(Walk *w, const Op *loop)
{
    w->depth--;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->lives[i].loop == loop) {
            w->lives[i].last = w->position;
            w->lives[i].loop = NULL;
        }
}

static void walk_region(Walk *w, const Region *r);

static void walk_op(Walk *w, const Op *op)
{
    bool is_loop = op_is_loop(op) && w->depth < LIMIT_DEPTH;
    w->position++;
    doc_add(w->e, w->lines, json_integer(op->loc.line));
    for (unsigned i = 0; i < op->operand_count; i++)
        use(w, op->operands[i]);
    if (is_loop) {
        w->starts[w->depth] = w->position;
        w->loops[w->depth++] = op;
    }
    for (unsigned i = 0; i < op->region_count; i++)
        walk_region(w, op->regions[i]);
    if (is_loop)
        close_loop(w, op);
    for (unsigned i = 0; i < op->result_count; i++)
        define(w, op->results[i]);
}

static void walk_region(Walk *w, const Region *r)
{
    for (unsigned i = 0; i < r->arg_count; i++)
        define(w, r->args[i]);
    for (const Op *op = r->first; op; op = op->next)
        walk_op(w, op);
}

/* The words that are live after each op. */
static json_t *list_words(const Walk *w)
{
    int64_t *change = arena_array(w->arena, int64_t, w->position + 2), words = 0;
    json_t *list = json_array();
    memset(change, 0, (w->position + 2) * sizeof *change);
    for (uint32_t i = 0; i < w->count; i++) {
        change[w->lives[i].first] += w->lives[i].words;
        change[w->lives[i].last] -= w->lives[i].words;
    }
    for (unsigned i = 1; i <= w->position; i++) {
        words += change[i];
        doc_add(w->e, list, json_integer(words));
    }
    return list;
}

bool explain_registers(Explain *e, const char *program, json_t *object)
{
    Module *m = e->module;
    Program *p = module_find_program(m, program);
    json_t *registers = doc_put(e, object, "registers", json_object());
    if (!registers || setjmp(m->diag->oom.jump))
        return !(e->no_memory = true);
    ArenaMark mark = arena_mark(&m->scratch);
    Walk *w = arena_new(&m->scratch, Walk);
    *w = (Walk){.e = e, .arena = &m->scratch, .lines = json_array()};
    walk_region(w, p->body);
    doc_put(e, registers, "words", list_words(w));
    doc_put(e, registers, "lines", w->lines);
    program_clear_data(p);
    arena_reset(&m->scratch, mark);
    return !e->no_memory;
}
