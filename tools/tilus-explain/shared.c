/* Shared memory of a program: where tensors lie, and from which op to which they live. */
#include "tool.h"

#include "memory/lifetimes.h"

#include <setjmp.h>

typedef struct Lines {
    Explain *e;
    json_t *list;
} Lines;

/* Positions of lifetimes count ops from 1, in this order. */
static bool add_line(Op *op, void *lines)
{
    Lines *l = lines;
    doc_add(l->e, l->list, json_integer(op->loc.line));
    return true;
}

static json_t *describe_tensor(Explain *e, const SharedTensor *t)
{
    const Value *v = t->op->results[0];
    const Attr *offset = op_attr(t->op, ATTR_OFFSET);
    json_t *object = json_object();
    doc_put(e, object, "name", doc_text_or_null(v->name));
    doc_put(e, object, "line", json_integer(t->op->loc.line));
    doc_put(e, object, "offset", offset ? json_integer(offset->integer) : json_null());
    doc_put(e, object, "bytes", json_integer(t->bytes));
    doc_put(e, object, "born", json_integer(t->position));
    doc_put(e, object, "first", json_integer(t->first));
    doc_put(e, object, "last", json_integer(t->last));
    doc_put(e, object, "accessed", json_boolean(t->first <= t->last));
    doc_put(e, object, "remote", json_boolean(t->remote));
    return object;
}

static void describe_shared(Explain *e, Program *p, json_t *object)
{
    json_t *shared = doc_put(e, object, "shared", json_object());
    json_t *tensors = json_array();
    Lines lines = {e, json_array()};
    Lifetimes l = lifetimes_of(p);
    for (unsigned i = 0; i < l.count; i++)
        doc_add(e, tensors, describe_tensor(e, &l.tensors[i]));
    if (l.count)
        region_walk(p->body, add_line, &lines);
    if (!shared)
        return;
    doc_put(e, shared, "tensors", tensors);
    doc_put(e, shared, "lines", lines.list);
}

/* Lifetimes jump to the module's guard when memory runs out. */
bool explain_shared(Explain *e, const char *program, json_t *object)
{
    Module *m = e->module;
    Program *p = module_find_program(m, program);
    if (setjmp(m->diag->oom.jump))
        return !(e->no_memory = true);
    ArenaMark mark = arena_mark(&m->scratch);
    describe_shared(e, p, object);
    arena_reset(&m->scratch, mark);
    return !e->no_memory;
}
