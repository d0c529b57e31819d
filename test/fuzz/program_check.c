/* Checks of one random program; see program_check.h. */
#include "program_check.h"

#include "ir/op_access.h"
#include "passes/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The test at hand, as reports name it. */
typedef struct Case {
    const CheckOptions *options;
    CheckTotals *totals;
    Arena *arena;
    const char *label;
    GenProgram program;
    const char *source;         /* the program's text, or the one that leaves layouts out */
    Outcome expected;
    const char **texts;         /* that were run, so that each is run once */
    uint32_t text_count, text_capacity;
    const char *pipeline, *target;  /* of this variant; NULL: none */
} Case;

/* Reports `what` went wrong, and the variant; returns false. */
static bool fail(const Case *c, const char *what, const char *text, const Parsed *p)
{
    const GenOptions *gen = &c->options->gen;
    fprintf(stderr, "%s\n%s%s%s%s, passes %s, target %s\n%s", what, c->label,
            gen->races ? " --races" : "", gen->rings ? " --rings" : "",
            gen->failures ? " --failures" : "",
            c->pipeline ? c->pipeline : "none", c->target ? c->target : "any",
            text ? text : "");
    if (p)
        tilus_diag_write(p->diag, NULL, NULL);
    return false;
}

static Parsed parse(const char *text)
{
    return parsed_new(text, strlen(text));
}

static bool check_fixpoint(const Case *c, const char *text)
{
    const char *fault = text_fixpoint_fault(text, c->arena);
    return !fault || fail(c, fault, text, NULL);
}

/* ---- coverage ----------------------------------------------------------- */

const char *const form_words[FORM_COUNT] = {
#define FORM(id, words) [FORM_##id] = words,
#include "forms.def"
};

/* How often each op stands inside a loop, and loops inside it. */
typedef struct Inside {
    unsigned ops[OP_COUNT];
    unsigned loops_that_wait;
} Inside;

static bool count_inside(Op *op, void *data)
{
    Inside *in = data, nested = {.loops_that_wait = 0};
    in->ops[op->code]++;
    if (op->code == OP_for)
        region_walk(op->regions[0], count_inside, &nested);
    in->loops_that_wait += nested.ops[OP_mbarrier_wait] > 0;
    return true;
}

static void count_strides(CheckTotals *t, const Op *loop, const Inside *in)
{
    const Expr *step = op_expr(loop, ATTR_STEP), *lower = op_expr(loop, ATTR_LOWER);
    if (!step)
        return;
    t->forms[FORM_STRIDED]++;
    t->forms[FORM_STEP_EXPR] += !expr_is_constant(step);
    t->forms[FORM_STRIDED_ENDS] += !expr_is_constant(op_expr(loop, ATTR_UPPER));
    t->forms[FORM_STRIDED_FIRST] += !expr_is_constant(lower) || lower->constant != 0;
    t->forms[FORM_STRIDED_SHARED] += in->ops[OP_store_shared] + in->ops[OP_load_shared] > 0;
}

static void count_forms(CheckTotals *t, const Op *loop)
{
    Inside in = {.loops_that_wait = 0};
    bool waits, marked = op_attr(loop, ATTR_PIPELINED) != NULL;
    region_walk(loop->regions[0], count_inside, &in);
    waits = in.ops[OP_mbarrier_wait] > 0;
    count_strides(t, loop, &in);
    t->forms[FORM_MARKED_COPY] += marked && in.ops[OP_copy_async] > 0;
    t->forms[FORM_MARKED_BULK] += marked && in.ops[OP_copy_async_bulk] > 0;
    t->forms[FORM_MARKED_PHASES] += marked && waits;
    t->forms[FORM_PHASES] += waits;
    t->forms[FORM_PHASES_NESTED] += in.loops_that_wait > 0;
}

/* Counts an access at indices that a register tensor holds. */
static void count_index(CheckTotals *t, const Op *op)
{
    bool is_shared = op_memory_operand(op)->type->kind == TYPE_SHARED;
    bool is_atomic = op_info[op->code].attrs & op_attr_bit(ATTR_ORDER);
    Form form = op_is_async(op)      ? FORM_INDEXED_COPY
                : is_atomic          ? FORM_INDEXED_ATOMIC
                : is_shared          ? FORM_INDEXED_SHARED
                : op->result_count   ? FORM_INDEXED_READ
                                     : FORM_INDEXED_WRITE;
    t->forms[form]++;
}

static bool count_op(Op *op, void *data)
{
    CheckTotals *t = data;
    t->ops[op->code]++;
    if (op_index(op))
        count_index(t, op);
    t->forms[FORM_REDUCES] += op_attr(op, ATTR_REDUCE) != NULL;
    if (op->code == OP_for)
        count_forms(t, op);
    return true;
}

/* ---- runs --------------------------------------------------------------- */

static bool is_race(const char *message)
{
    return strncmp(message, "race: ", 6) == 0;
}

/* Returns true for a program without some of its barriers that need not end as before: it
 * failed already, or races under chosen layouts, which give bytes to other threads than the
 * written ones (docs/language.md). */
static bool may_end_otherwise(const Case *c, const Outcome *o)
{
    return c->program.may_race &&
           (c->expected.status != TILUS_OK ||
            (c->source == c->program.open_text && is_race(o->message)));
}

static bool compare(const Case *c, const Parsed *p, const char *text)
{
    Outcome o = outcome_interpreted(&c->program, p, c->arena);
    if (may_end_otherwise(c, &o))
        return true;
    const char *difference = outcome_difference(&c->program, &c->expected, &o, false,
                                                c->arena);
    return !difference ||
           fail(c, arena_printf(c->arena, "after passes %s", difference), text, p);
}

static bool was_run(Case *c, const char *text)
{
    for (uint32_t i = 0; i < c->text_count; i++)
        if (strcmp(c->texts[i], text) == 0)
            return true;
    arena_push(c->arena, c->texts, c->text_count, c->text_capacity, text);
    return false;
}

/* ---- code generation ---------------------------------------------------- */

static bool compile(Case *c, const Parsed *p, const char *text)
{
    tilus_compile_options options = {.struct_size = sizeof options,
                                     .cpu = c->target, .opt_level = 2};
    char *ptx = tilus_compile(p->module, &options, NULL);
    bool ok = ptx || fail(c, "code generation refuses a valid program", text, p);
    c->totals->compiled += ok;
    free(ptx);
    return ok;
}

static bool run_on_cpu(Case *c, const Parsed *p, const char *text, unsigned level)
{
    tilus_cpu_options options = {.struct_size = sizeof options,
                                 .cpu = c->target, .opt_level = level, .host_threads = 1};
    Outcome o = outcome_on_cpu(&c->program, p, &options, c->arena);
    const char *difference = outcome_difference(&c->program, &c->expected, &o, true, c->arena);
    c->totals->cpu_runs++;
    return !difference || fail(c, arena_printf(c->arena, "on the CPU engine, -O%u, %s", level,
                                               difference), text, p);
}

static bool check_compiled(Case *c, const Parsed *p, const char *text)
{
    return c->options->cpu ? run_on_cpu(c, p, text, 0) && run_on_cpu(c, p, text, 3)
                           : compile(c, p, text);
}

/* ---- variants ----------------------------------------------------------- */

static bool infers(const char *text, const char *target)
{
    Parsed p = parse(text);
    tilus_pass_options options = {.struct_size = sizeof options, .target = target};
    bool ok = tilus_run_passes(p.module, "infer-layouts", &options);
    parsed_release(p);
    return ok;
}

/* check-hazards refuses what surely races, and infer-layouts what has no layouts. */
static bool may_refuse(const Case *c, const Parsed *p)
{
    if (c->source == c->program.open_text && !infers(c->source, c->target))
        return true;
    return c->program.may_race && is_race(parsed_error(p));
}

/* Runs the case's program after the passes `pipeline`, for `target` (NULL: any). Only sm_90a
 * takes products. */
static bool check_variant(Case *c, const char *pipeline, const char *target, bool compiles)
{
    if (target && strstr(c->program.text, "dot_async"))
        target = "sm_90a";
    tilus_pass_options options = {.struct_size = sizeof options,
                                  .verify_each = true, .target = target};
    Parsed p = parse(c->source);
    c->pipeline = pipeline;
    c->target = target;
    bool ok = tilus_run_passes(p.module, pipeline, &options);
    if (!ok && may_refuse(c, &p)) {
        parsed_release(p);
        return true;
    }
    ok = ok || fail(c, "a pass fails", c->source, &p);
    const char *text = ok ? parsed_print(&p, c->arena) : NULL;
    if (ok && was_run(c, text)) {
        c->totals->repeated++;
    } else if (ok) {
        c->totals->runs++;
        ok = check_fixpoint(c, text) && compare(c, &p, text);
    }
    if (ok && compiles && c->expected.status == TILUS_OK)
        ok = check_compiled(c, &p, text);
    parsed_release(p);
    return ok;
}

static bool check_random_orders(Case *c, Choices *choices)
{
    enum { ORDERS = 3, LONGEST = 7 };
    static const char *const targets[] = {NULL, "sm_80", "sm_90a"};
    for (unsigned i = 0; i < ORDERS; i++) {
        Text pipeline;
        text_init(&pipeline, c->arena);
        for (int64_t n = choose_between(choices, 2, LONGEST); n > 0; n--)
            text_printf(&pipeline, "%s%s", pipeline.len ? "," : "",
                        pass_info[choose(choices, PASS_LISTED_COUNT)].name);
        if (!check_variant(c, text_string(&pipeline), targets[choose(choices, 3)], false))
            return false;
    }
    return true;
}

/* Chooses the layouts that were left out; then nothing else changes. */
static bool check_open(Case *c)
{
    Parsed p = parse(c->program.open_text);
    c->source = c->program.open_text;
    bool ok = (p.module || fail(c, "the verifier refuses open layouts", c->source, &p)) &&
              check_fixpoint(c, parsed_print(&p, c->arena));
    c->totals->open++;
    c->totals->conflicts += ok && !infers(c->source, NULL);
    parsed_release(p);
    ok = ok && check_variant(c, "infer-layouts", NULL, false) &&
         check_variant(c, tilus_default_pipeline(), "sm_80", false) &&
         check_variant(c, tilus_default_pipeline(), "sm_90a", false);
    c->source = c->program.text;
    return ok;
}

/* Returns true for an end that is no race, as that of threads which wait for each other, or of
 * one that reads what nobody wrote. */
static bool is_no_race(const char *message)
{
    return strstr(message, "nothing can go on") || strstr(message, "never written");
}

/* A program that check-hazards says nothing about is safe, and did not race. Errors that
 * may be an assertion's tell nothing. */
static bool check_safety(Case *c)
{
    Parsed p = parse(c->source);
    tilus_pass_options options = {.struct_size = sizeof options};
    bool safe = tilus_run_passes(p.module, "check-hazards{strict}", &options);
    bool ends = c->expected.status == TILUS_OK;
    bool races = !ends && c->program.may_race && !c->program.may_fail &&
                 !is_no_race(c->expected.message);
    parsed_release(p);
    c->totals->judged += ends;
    c->totals->safe += ends && safe;
    c->pipeline = "check-hazards{strict}";
    return !safe || !races || fail(c, c->expected.message, c->source, NULL);
}

static bool check_variants(Case *c, Choices *choices)
{
    const CheckOptions *o = c->options;
    if (o->hazards_only)
        return check_safety(c);
    if (o->passes)
        return check_variant(c, o->passes, o->target, false);
    if (o->target)
        return check_variant(c, tilus_default_pipeline(), o->target, true);
    for (unsigned i = 0; i < PASS_LISTED_COUNT; i++)
        if (!check_variant(c, pass_info[i].name, NULL, false))
            return false;
    return check_safety(c) && (!c->program.open_text || check_open(c)) &&
           check_variant(c, tilus_default_pipeline(), "sm_80", false) &&
           check_variant(c, tilus_default_pipeline(), "sm_90a", false) &&
           check_random_orders(c, choices);
}

/* ---- the program -------------------------------------------------------- */

static bool check_printed(Case *c, const Parsed *p)
{
    const char *printed = parsed_print(p, c->arena);
    return check_fixpoint(c, printed) && !was_run(c, printed);
}

/* The program without passes: what it does is what is expected. */
static bool check_original(Case *c)
{
    const char *text = c->program.text;
    Parsed p = parse(text);
    bool ok = p.module != NULL || fail(c, "the verifier refuses the program", text, &p);
    if (ok) {
        region_walk(p.module->programs->body, count_op, c->totals);
        ok = c->options->hazards_only || check_printed(c, &p);
        c->expected = outcome_interpreted(&c->program, &p, c->arena);
        c->totals->races += c->expected.status != TILUS_OK && c->program.may_race;
        c->totals->failures += c->expected.status != TILUS_OK && c->program.may_fail;
    }
    if (ok && c->expected.status != TILUS_OK && !c->program.may_race && !c->program.may_fail)
        ok = fail(c, "the program is wrong", text, &p);
    parsed_release(p);
    return ok;
}

/* Returns true when the text has one of the words, which commas separate. */
static bool has_one_of(const char *text, const char *words, Arena *arena)
{
    for (const char *word = words; *word;) {
        int length = (int)strcspn(word, ",");
        if (strstr(text, arena_printf(arena, "%.*s", length, word)))
            return true;
        word += length + (word[length] == ',');
    }
    return false;
}

bool program_check(const CheckOptions *options, CheckTotals *totals, Choices *choices,
                   Arena *arena, const char *label)
{
    Case c = {.options = options, .totals = totals, .arena = arena, .label = label};
    c.program = program_generate(choices, &options->gen, arena);
    c.source = c.program.text;
    if (options->having && !has_one_of(c.source, options->having, arena)) {
        totals->skipped++;
        return true;
    }
    totals->programs++;
    if (options->print)
        fputs(c.program.text, stdout);
    return check_original(&c) && check_variants(&c, choices);
}
