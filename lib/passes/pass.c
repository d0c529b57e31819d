/* The pass runner. */
#define _GNU_SOURCE
#include "passes/pass.h"

#include "ir/text.h"
#include "ir/verify.h"

#include <string.h>
#include <time.h>

const PassInfo pass_info[PASS_ID_COUNT] = {
#define PASS(id, summary) [PASS_ID_##id] = {#id, summary, pass_##id},
#include "passes/passes.def"
};

/* ---- names -------------------------------------------------------------- */

/* The next name of a comma-separated list; false at its end. */
static bool next_name(const char **list, const char **name, size_t *len)
{
    while (**list == ',' || **list == ' ')
        ++*list;
    *name = *list;
    *len = strcspn(*list, ", ");
    *list += *len;
    return *len > 0;
}

static const PassInfo *find_pass(const char *name, size_t len)
{
    for (int i = 0; i < PASS_ID_COUNT; i++)
        if (strlen(pass_info[i].name) == len && !memcmp(pass_info[i].name, name, len))
            return &pass_info[i];
    return NULL;
}

static bool list_names(const char *list, const PassInfo *pass)
{
    const char *name;
    size_t len;
    while (list && next_name(&list, &name, &len))
        if (find_pass(name, len) == pass)
            return true;
    return false;
}

static bool check_names(Module *m, const char *list)
{
    const char *name;
    size_t len;
    while (list && next_name(&list, &name, &len))
        if (!find_pass(name, len))
            return diag_error(m->diag, (Loc){0}, "unknown pass `%.*s`", (int)len, name);
    return true;
}

/* ---- running -------------------------------------------------------------- */

static void print_if_asked(Module *m, const PassInfo *pass, const char *when, bool all,
                           const char *names, FILE *out)
{
    if (!all && !list_names(names, pass))
        return;
    ArenaMark mark = arena_mark(&m->arena);
    Text text;
    text_init(&text, &m->arena);
    print_module(&text, m);
    fprintf(out, "// ---- %s %s ----\n%s", when, pass->name, text_string(&text));
    arena_reset(&m->arena, mark);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static PassResult run_over_programs(Module *m, const PassInfo *pass)
{
    PassResult result = PASS_UNCHANGED;
    for (Program *p = m->programs; p; p = p->next) {
        PassResult r = pass->run(p);
        if (r == PASS_FAILED)
            return PASS_FAILED;
        result = r == PASS_CHANGED ? PASS_CHANGED : result;
    }
    return result;
}

static bool run_pass(Module *m, const PassInfo *pass, const tilus_pass_options *options)
{
    FILE *out = options->out ? options->out : stderr;
    print_if_asked(m, pass, "before", options->print_before_all, options->print_before, out);
    double start = seconds();
    PassResult result = run_over_programs(m, pass);
    if (options->time_passes)
        fprintf(out, "%9.3f ms  %s\n", 1e3 * (seconds() - start), pass->name);
    if (result == PASS_FAILED)
        return false;
    print_if_asked(m, pass, "after", options->print_after_all, options->print_after, out);
    if (result == PASS_CHANGED && options->verify_each && !verify_module(m))
        return diag_error(m->diag, (Loc){0}, "pass %s broke the program: a fault of the compiler",
                          pass->name);
    return true;
}

bool pass_run_pipeline(Module *m, const char *pipeline, const tilus_pass_options *options)
{
    const char *name;
    size_t len;
    if (!check_names(m, pipeline) || !check_names(m, options->print_before) ||
        !check_names(m, options->print_after))
        return false;
    while (next_name(&pipeline, &name, &len))
        if (!run_pass(m, find_pass(name, len), options))
            return false;
    return true;
}

/* ---- forwarding -------------------------------------------------------------- */

void value_forward(Value *from, Value *to)
{
    from->data = value_resolve(to);
}

Value *value_resolve(Value *v)
{
    while (v->data)
        v = v->data;
    return v;
}

static const Expr *resolve_leaf(Value *v, void *data)
{
    Module *m = data;
    return v->data ? expr_value(&m->exprs, value_resolve(v)) : NULL;
}

static const Expr *const *resolve_exprs(Module *m, const Expr *const *exprs, unsigned count)
{
    const Expr **resolved = arena_array(&m->arena, const Expr *, count);
    for (unsigned i = 0; i < count; i++)
        resolved[i] = expr_substitute(&m->exprs, exprs[i], resolve_leaf, m);
    return resolved;
}

void op_resolve(Module *m, Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        op->operands[i] = value_resolve(op->operands[i]);
    for (unsigned i = 0; i < op->attr_count; i++) {
        Attr *a = &op->attrs[i];
        if (a->expr)
            a->expr = expr_substitute(&m->exprs, a->expr, resolve_leaf, m);
        if (a->exprs)
            a->exprs = resolve_exprs(m, a->exprs, a->count);
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        if (t->kind != TYPE_GLOBAL)
            continue;
        op->results[i]->type = type_memory(m, TYPE_GLOBAL, t->dtype, t->rank,
                                           resolve_exprs(m, t->extents, t->rank),
                                           t->strides ? resolve_exprs(m, t->strides, t->rank)
                                                      : NULL);
    }
}

static void clear_values(Value **values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = NULL;
}

static bool clear_op(Op *op, void *data)
{
    (void)data;
    op->mark = 0;
    clear_values(op->results, op->result_count);
    for (unsigned i = 0; i < op->region_count; i++)
        clear_values(op->regions[i]->args, op->regions[i]->arg_count);
    return true;
}

void program_clear_data(Program *p)
{
    clear_values(p->args, p->arg_count);
    region_walk(p->body, clear_op, NULL);
}
