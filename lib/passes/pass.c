/* The pass runner. */
#include "passes/pass.h"

#include "ir/structure.h"
#include "ir/verify.h"
#include "passes/own.h"
#include "passes/pass_text.h"
#include "passes/report.h"
#include "select/choices.h"
#include "support/clock.h"
#include "support/diff.h"
#include "syntax/syntax.h"

#include <assert.h>
#include <string.h>

const PassInfo pass_info[PASS_ID_COUNT] = {
#define PASS(id, name, proofs, summary) [PASS_ID_##id] = {name, proofs, summary, pass_##id, NULL},
#include "passes/passes.def"
};

/* ---- names -------------------------------------------------------------- */

static bool is_called(const PassInfo *pass, const char *name, size_t len)
{
    return strlen(pass->name) == len && !memcmp(pass->name, name, len);
}

const PassInfo *pass_find(const char *name, size_t len)
{
    for (int i = 0; i < PASS_ID_COUNT; i++)
        if (is_called(&pass_info[i], name, len))
            return &pass_info[i];
    const OwnPass *own = own_pass_at(0);
    for (size_t i = 1; own && !is_called(&own->info, name, len); i++)
        own = own_pass_at(i);
    return own ? &own->info : NULL;
}

const PassInfo *pass_listed(size_t i)
{
    if (i < PASS_LISTED_COUNT)
        return &pass_info[i];
    const OwnPass *own = own_pass_at(i - PASS_LISTED_COUNT);
    return own ? &own->info : NULL;
}

#ifdef NDEBUG
enum { CHECKS_PROOFS = false };
#else
enum { CHECKS_PROOFS = true };      /* that passes which keep proofs do */
#endif

/* ---- running -------------------------------------------------------------- */

typedef struct Runner {
    Module *m;
    const tilus_pass_options *options;
    Writer out;
    unsigned runs;          /* of a pass on a program, skipped ones too */
    PassTimes times;
} Runner;

/* Prints the module, on the module's arena. */
static const char *module_text(Module *m)
{
    Text text;
    text_init(&text, &m->arena);
    print_module(&text, m);
    return text_string(&text);
}

/* Prints how the module differs from the text `before` of it. */
static void print_difference(Runner *r, const PassInfo *pass, const char *before)
{
    ArenaMark mark = arena_mark(&r->m->arena);
    const char *after = module_text(r->m);
    writer_printf(&r->out, "--- before %s\n+++ after %s\n", pass->name, pass->name);
    diff_write(&r->out, &r->m->scratch, before, after);
    arena_reset(&r->m->arena, mark);
}

static void print_after_name(Runner *r, const char *when, const PassInfo *pass)
{
    ArenaMark mark = arena_mark(&r->m->arena);
    writer_printf(&r->out, "// ---- %s %s ----\n", when, pass->name);
    writer_add(&r->out, module_text(r->m));
    arena_reset(&r->m->arena, mark);
}

static void tell_observer(Runner *r, tilus_pass_event_kind kind, const char *pipeline)
{
    if (!r->options->observe)
        return;
    ArenaMark mark = arena_mark(&r->m->arena);
    tilus_pass_event event = {sizeof event, kind, r->runs, pipeline, NULL};
    if (kind == TILUS_PASS_BEGINS)
        event.text = module_text(r->m);
    r->options->observe(r->options->observer, &event);
    arena_reset(&r->m->arena, mark);
}

/* Numbers one run, on the module when `p` is NULL; false if it is past the limit of
 * --opt-bisect-limit. */
static bool within_limit(Runner *r, const PassInfo *pass, const Program *p)
{
    const tilus_pass_options *o = r->options;
    r->runs++;
    if (!o->opt_bisect)
        return true;
    bool within = o->opt_bisect_limit < 0 || r->runs <= (unsigned)o->opt_bisect_limit;
    writer_printf(&r->out, "BISECT: %srunning pass (%u) %s on %s%s\n", within ? "" : "NOT ", r->runs,
                  pass->name, p ? "@" : "the module", p ? p->name : "");
    return within;
}

/* Drops choices whose proof the pass lost: it may fold an `if` that always holds, or turn an
 * index into a constant in code that never runs. A choice that the text names without a
 * proof stays, to be an error. */
static PassResult run_with_proofs(const PassInfo *pass, Program *p)
{
    bool may_lose = pass->proofs == MAY_LOSE_PROOFS;
    bool held = (may_lose || CHECKS_PROOFS) && choices_hold(p);
    PassResult result = pass->run(p);
    if (result == PASS_CHANGED && held && may_lose)
        choices_drop(p);
    assert(result != PASS_CHANGED || !held || may_lose || choices_hold(p));
    return result;
}

static bool is_chosen(Op *op, void *data)
{
    (void)data;
    for (unsigned i = 0; i < op->result_count; i++)
        if (type_is_open(op->results[i]->type))
            return false;
    return true;
}

static bool has_open_layouts(Program *p)
{
    return !region_walk(p->body, is_chosen, NULL);
}

/* Rejects open layouts before all passes but infer-layouts, which finds no choice written. */
static PassResult run_on_program(const PassInfo *pass, Program *p)
{
    if (pass == &pass_info[PASS_ID_infer_layouts])
        return pass->run(p);
    if (pass->own && pass->own->pass.takes_open_layouts)
        return own_pass_run(pass->own, p->module, p);
    if (!verify_chosen(p, pass->name))
        return PASS_FAILED;
    return pass->own ? own_pass_run(pass->own, p->module, p) : run_with_proofs(pass, p);
}

/* Runs a caller's pass once, on all programs. */
static PassResult run_on_module(Runner *r, const PassInfo *pass)
{
    for (Program *p = r->m->programs; p; p = p->next)
        if (!pass->own->pass.takes_open_layouts && !verify_chosen(p, pass->name))
            return PASS_FAILED;
    return own_pass_run(pass->own, r->m, NULL);
}

static PassResult run_over_programs(Runner *r, const PassInfo *pass)
{
    PassResult result = PASS_UNCHANGED;
    double start = clock_seconds();
    bool whole = pass->own && pass->own->pass.run_on_module;
    if (whole && within_limit(r, pass, NULL))
        result = run_on_module(r, pass);
    for (Program *p = whole ? NULL : r->m->programs; p && result != PASS_FAILED; p = p->next) {
        if (r->m->remarks)
            r->m->remarks->program = p->name;
        PassResult one = within_limit(r, pass, p) ? run_on_program(pass, p) : PASS_UNCHANGED;
        result = one == PASS_UNCHANGED ? result : one;
    }
    pass_times_add(&r->times, pass, clock_seconds() - start);
    return result;
}

static bool verify_timed(Runner *r)
{
    double start = clock_seconds();
    bool edited = r->m->edits != r->m->verified_edits;
    bool ok = edited ? verify_edited(r->m) : verify_module(r->m);
    r->times.verify += clock_seconds() - start;
    r->times.verify_runs++;
    return ok;
}

/* Prints the module after a pass that did not fail, where it is wanted. */
static void print_after(Runner *r, const PassInfo *pass, bool changed, const char *before)
{
    const tilus_pass_options *o = r->options;
    if (o->print_after_all || pass_is_named(o->print_after, pass) ||
        (changed && o->print_changed == TILUS_CHANGED_MODULE))
        print_after_name(r, "after", pass);
    if (changed && before)
        print_difference(r, pass, before);
}

/* Returns true when layouts are chosen and each written choice is proved. */
static bool has_proofs(const Module *m)
{
    for (Program *p = m->programs; p; p = p->next)
        if (has_open_layouts(p) || !choices_hold(p))
            return false;
    return true;
}

/* Drops choices whose proof a caller's pass lost. Proving reads what only the verifier checks. */
static void drop_choices(const Module *m)
{
    for (Program *p = m->programs; p; p = p->next)
        if (!has_open_layouts(p))
            choices_drop(p);
}

/* Runs a pass over the module; a text for its difference stays on the module's arena. */
static bool run_pass(Runner *r, const PassStep *step)
{
    const tilus_pass_options *o = r->options;
    const PassInfo *pass = step->pass;
    tell_observer(r, TILUS_PASS_BEGINS, step->text);
    diag_check_time(r->m->diag, module_loc(r->m));
    if (o->print_before_all || pass_is_named(o->print_before, pass))
        print_after_name(r, "before", pass);
    const char *before = o->print_changed == TILUS_CHANGED_DIFF ? module_text(r->m) : NULL;
    uint32_t errors = r->m->diag->errors;
    bool proved = pass->own && has_proofs(r->m);
    r->m->pass_options = step->values;
    PassResult result = run_over_programs(r, pass);
    r->m->pass_options = NULL;
    if (r->m->diag->errors > errors)    /* warnings that are errors fail it, too */
        result = PASS_FAILED;
    bool changed = result == PASS_CHANGED, failed = result == PASS_FAILED;
    bool broken = changed && (o->verify_each || pass->own) && !verify_timed(r);
    if (proved && changed && !broken)
        drop_choices(r->m);
    if (!failed)
        print_after(r, pass, changed, before);
    if (broken)
        diag_error(r->m->diag, (Loc){0}, "pass %s broke the program: a fault of the %s",
                   pass->name, pass->own ? "pass" : "compiler");
    if (failed || broken)
        tell_observer(r, failed ? TILUS_PASS_FAILED : TILUS_PASS_BROKE, step->text);
    return !failed && !broken;
}

static bool run_passes(Runner *r, const char *pipeline)
{
    PassStep step;
    while (pass_next_step(&pipeline, &step, (Report){NULL, 0}) == STEP_TAKEN)
        if (!pass_is_named(r->options->skip, step.pass) && !run_pass(r, &step))
            return false;
    return true;
}

static bool check_text(Module *m, const char *list)
{
    char message[512];
    return pass_check_text(list, (Report){message, sizeof message}) ||
           diag_error(m->diag, (Loc){0}, "%s", message);
}

bool pass_run_pipeline(Module *m, const char *pipeline, const tilus_pass_options *options)
{
    Runner r = {.m = m, .options = options, .out = {options->write, options->write_data}};
    if (!check_text(m, pipeline) || !check_text(m, options->print_before) ||
        !check_text(m, options->print_after) || !check_text(m, options->skip))
        return false;
    if (!verify_edited(m))
        return false;
    stats_open(m, options->stats != TILUS_TABLE_NONE);
    bool ok = run_passes(&r, pipeline);
    if (options->time_passes != TILUS_TABLE_NONE)
        pass_times_print(&r.times, &r.out, options->time_passes);
    if (options->stats != TILUS_TABLE_NONE)
        stats_print(m, &r.out, options->stats);
    return ok;
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
