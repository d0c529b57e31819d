/* Random programs, each run as it is and after passes: the results must be equal
 * bit by bit. Program number i of a run with seed S is that of seed S + i, so
 * `--seed N --count 1` repeats it.
 *
 *   text -> parse -> print -> parse -> print            a fixpoint
 *        -> interpret                                   what is expected
 *        -> passes -> print -> parse -> print           a fixpoint
 *                  -> interpret                         equal
 *                  -> compile (--codegen)               no refusal
 *
 * A program without races and failures must run without errors: an error is a
 * fault of the generator, the verifier or the interpreter. One with a race may
 * do anything once passes have seen it, but break, and check-hazards may refuse it;
 * but no program that check-hazards calls safe races. An assertion that does not
 * hold must be reported by all.
 *
 * Some programs come once more with layouts left out. After infer-layouts, which may
 * find that two ops want different ones, the results must be those of the first. */
#include "program_gen.h"

#include "common/options.h"
#include "ir/ir.h"
#include "passes/pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What the command line asks for. */
typedef struct Settings {
    unsigned seed, count;
    const char *passes;         /* one pipeline instead of all */
    const char *codegen;        /* a target to compile for, or NULL */
    bool races, failures, print, every_op, stats;
} Settings;

/* What happened so far. */
typedef struct Totals {
    unsigned programs, runs, repeated, races, failures, safe, compiled;
    unsigned open, conflicts;   /* programs with layouts left out; where none fit */
    uint64_t ops[OP_COUNT];
} Totals;

/* One module and its diagnostics. */
typedef struct Parsed {
    tilus_diag *diag;
    tilus_module *module;
} Parsed;

/* How a program ended, and what it left. */
typedef struct Outcome {
    tilus_status status;
    const char *message;        /* the first one, "" for none */
    const char *printed;        /* what the program printed */
    tilus_buffer *buffers;
} Outcome;

/* What is tested now; named in reports. */
typedef struct Case {
    const Settings *settings;
    Totals *totals;
    Arena *arena;
    uint64_t seed;
    GenProgram program;
    const char *source;         /* the program's text, or the one that leaves layouts out */
    Outcome expected;
    const char **texts;         /* that were run, so that each is run once */
    uint32_t text_count, text_capacity;
    const char *pipeline, *target;  /* of this variant; NULL: none */
} Case;

/* ---- reports ------------------------------------------------------------ */

/* Says what went wrong in which variant; false. */
static bool fail(const Case *c, const char *what, const char *text, const Parsed *p)
{
    fprintf(stderr, "random_programs: %s\nseed %" PRIu64 "%s%s, passes %s, target %s\n%s",
            what, c->seed, c->settings->races ? " --races" : "",
            c->settings->failures ? " --failures" : "", c->pipeline ? c->pipeline : "none",
            c->target ? c->target : "any", text ? text : "");
    if (p)
        tilus_diag_print(p->diag, stderr);
    return false;
}

/* ---- steps -------------------------------------------------------------- */

static Parsed parse(const char *text)
{
    Parsed p = {.diag = tilus_diag_new()};
    p.module = tilus_parse(p.diag, "random.tilus", text, strlen(text), 1, NULL, 0);
    return p;
}

static void release(Parsed p)
{
    tilus_module_free(p.module);
    tilus_diag_free(p.diag);
}

/* The module's text, on the case's arena. */
static const char *print(const Case *c, const Parsed *p)
{
    char *text = tilus_print(p->module);
    const char *copy = arena_strdup(c->arena, text ? text : "");
    free(text);
    return copy;
}

/* `text` parses and prints as itself. */
static bool check_fixpoint(const Case *c, const char *text)
{
    Parsed again = parse(text);
    bool ok = again.module ? strcmp(text, print(c, &again)) == 0
                             ? true
                             : fail(c, "printed text is no fixpoint", text, NULL)
                           : fail(c, "printed text is refused", text, &again);
    release(again);
    return ok;
}

static void keep_printed(void *printer, const char *text, size_t len)
{
    text_add_n(printer, text, len);
}

static Outcome interpret(const Case *c, const Parsed *p)
{
    const GenProgram *g = &c->program;
    Text printed;
    tilus_interpret_options options = {.print = keep_printed, .printer = &printed};
    text_init(&printed, c->arena);
    Outcome o = {.message = ""};
    o.buffers = arena_array(c->arena, tilus_buffer, g->buffer_count);
    for (size_t i = 0; i < g->buffer_count; i++)
        o.buffers[i] = (tilus_buffer){
            arena_copy(c->arena, g->buffers[i].data, g->buffers[i].size), g->buffers[i].size};
    o.status = tilus_interpret(p->module, GEN_PROGRAM_NAME, g->args, g->arg_count, o.buffers,
                               g->buffer_count, &options);
    o.printed = text_string(&printed);
    if (tilus_diag_count(p->diag))
        o.message = arena_strdup(c->arena, tilus_diag_text(p->diag, 0));
    return o;
}

static void count_ops(Totals *t, const Region *r)
{
    for (const Op *op = r->first; op; op = op->next) {
        t->ops[op->code]++;
        for (unsigned i = 0; i < op->region_count; i++)
            count_ops(t, op->regions[i]);
    }
}

/* ---- comparison --------------------------------------------------------- */

/* The buffers are equal; else a report that names the first byte that is not. */
static bool compare_buffers(const Case *c, const Outcome *o, const char *text)
{
    for (size_t i = 0; i < c->program.buffer_count; i++) {
        const uint8_t *got = o->buffers[i].data, *expected = c->expected.buffers[i].data;
        for (size_t byte = 0; byte < o->buffers[i].size; byte++)
            if (got[byte] != expected[byte])
                return fail(c, arena_printf(c->arena, "passes change byte %zu of buffer %zu "
                                            "from 0x%02x to 0x%02x", byte, i, expected[byte],
                                            got[byte]), text, NULL);
    }
    return true;
}

/* Errors are equal but for the condition at their end, which passes simplify. */
static bool same_error(const char *a, const char *b)
{
    const char *end = strrchr(a, ':');
    return end ? strncmp(a, b, (size_t)(end - a)) == 0 : strcmp(a, b) == 0;
}

static bool compare(const Case *c, const Parsed *p, const char *text)
{
    Outcome o = interpret(c, p);
    if (c->expected.status != TILUS_OK && c->program.may_race)
        return true;
    if (o.status != c->expected.status)
        return fail(c, "passes change how the program ends", text, p);
    if (!same_error(c->expected.message, o.message))
        return fail(c, "passes change the error", text, p);
    if (strcmp(o.printed, c->expected.printed) != 0)
        return fail(c, "passes change what is printed", text, NULL);
    return compare_buffers(c, &o, text);
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
    tilus_compile_options options = {.cpu = c->target, .opt_level = 2};
    char *ptx = tilus_compile(p->module, &options, NULL);
    bool ok = ptx || fail(c, "code generation refuses a valid program", text, p);
    c->totals->compiled += ok;
    free(ptx);
    return ok;
}

/* ---- variants ----------------------------------------------------------- */

static bool infers(const char *text, const char *target)
{
    Parsed p = parse(text);
    tilus_pass_options options = {.target = target};
    bool ok = tilus_run_passes(p.module, "infer-layouts", &options);
    release(p);
    return ok;
}

/* check-hazards refuses what surely races, and infer-layouts what has no layouts. */
static bool may_refuse(const Case *c, const Parsed *p)
{
    const char *message = tilus_diag_count(p->diag) ? tilus_diag_text(p->diag, 0) : "";
    if (c->source == c->program.open_text && !infers(c->source, c->target))
        return true;
    return c->program.may_race && strncmp(message, "race: ", 6) == 0;
}

/* Runs the case's program after the passes `pipeline`, for `target` (NULL: any). */
static bool check_variant(Case *c, const char *pipeline, const char *target, bool compiles)
{
    tilus_pass_options options = {.verify_each = true, .target = target};
    Parsed p = parse(c->source);
    c->pipeline = pipeline;
    c->target = target;
    bool ok = tilus_run_passes(p.module, pipeline, &options);
    if (!ok && may_refuse(c, &p)) {
        release(p);
        return true;
    }
    ok = ok || fail(c, "a pass fails", c->source, &p);
    const char *text = ok ? print(c, &p) : NULL;
    if (ok && was_run(c, text)) {
        c->totals->repeated++;
    } else if (ok) {
        c->totals->runs++;
        ok = check_fixpoint(c, text) && compare(c, &p, text);
    }
    if (ok && compiles && c->expected.status == TILUS_OK)
        ok = compile(c, &p, text);
    release(p);
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

/* What is left out is chosen, and then nothing else changes. */
static bool check_open(Case *c)
{
    Parsed p = parse(c->program.open_text);
    c->source = c->program.open_text;
    bool ok = (p.module || fail(c, "the verifier refuses open layouts", c->source, &p)) &&
              check_fixpoint(c, print(c, &p));
    c->totals->open++;
    c->totals->conflicts += ok && !infers(c->source, NULL);
    release(p);
    ok = ok && check_variant(c, "infer-layouts", NULL, false) &&
         check_variant(c, tilus_default_pipeline(), "sm_80", false) &&
         check_variant(c, tilus_default_pipeline(), "sm_90a", false);
    c->source = c->program.text;
    return ok;
}

/* A program that check-hazards says nothing about is safe, and did not race. */
static bool check_safety(Case *c)
{
    Parsed p = parse(c->source);
    tilus_pass_options options = {.strict_hazards = true};
    bool safe = tilus_run_passes(p.module, "check-hazards", &options);
    bool races = c->expected.status != TILUS_OK && c->program.may_race && !c->program.may_fail;
    release(p);
    c->totals->safe += safe;
    c->pipeline = "check-hazards, strict";
    return !safe || !races || fail(c, c->expected.message, c->source, NULL);
}

static bool check_variants(Case *c, Choices *choices)
{
    if (c->settings->passes)
        return check_variant(c, c->settings->passes, c->settings->codegen, false);
    if (c->settings->codegen)
        return check_variant(c, tilus_default_pipeline(), c->settings->codegen, true);
    for (unsigned i = 0; i < PASS_LISTED_COUNT; i++)
        if (!check_variant(c, pass_info[i].name, NULL, false))
            return false;
    return check_safety(c) && (!c->program.open_text || check_open(c)) &&
           check_variant(c, tilus_default_pipeline(), "sm_80", false) &&
           check_variant(c, tilus_default_pipeline(), "sm_90a", false) &&
           check_random_orders(c, choices);
}

/* ---- programs ----------------------------------------------------------- */

/* The program without passes: what it does is what is expected. */
static bool check_original(Case *c)
{
    const char *text = c->program.text;
    Parsed p = parse(text);
    bool ok = p.module != NULL || fail(c, "the verifier refuses the program", text, &p);
    if (ok) {
        count_ops(c->totals, p.module->programs->body);
        const char *printed = print(c, &p);
        ok = check_fixpoint(c, printed) && !was_run(c, printed);
        c->expected = interpret(c, &p);
        c->totals->races += c->expected.status != TILUS_OK && c->program.may_race;
        c->totals->failures += c->expected.status != TILUS_OK && c->program.may_fail;
    }
    if (ok && c->expected.status != TILUS_OK && !c->program.may_race && !c->program.may_fail)
        ok = fail(c, "the program is wrong", text, &p);
    release(p);
    return ok;
}

static bool check_program(const Settings *s, Totals *t, Choices *choices, Arena *arena,
                          uint64_t seed)
{
    GenOptions options = {.races = s->races, .failures = s->failures};
    Case c = {.settings = s, .totals = t, .arena = arena, .seed = seed};
    c.program = program_generate(choices, &options, arena);
    c.source = c.program.text;
    t->programs++;
    if (s->print)
        fputs(c.program.text, stdout);
    return check_original(&c) && check_variants(&c, choices);
}

static bool check_seed(const Settings *s, Totals *t, uint64_t seed)
{
    OutOfMemory oom;
    Arena arena;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump)) {
        fprintf(stderr, "random_programs: out of memory\n");
        arena_free(&arena);
        return false;
    }
    Choices choices = choices_from_seed(seed);
    bool ok = check_program(s, t, &choices, &arena, seed);
    arena_free(&arena);
    return ok;
}

/* ---- coverage ----------------------------------------------------------- */

static void print_ops(const Totals *t)
{
    for (unsigned op = 0; op < OP_COUNT; op++)
        printf("%10" PRIu64 " %s\n", t->ops[op], op_info[op].name);
}

/* Every op occurred. */
static bool check_every_op(const Totals *t)
{
    bool ok = true;
    for (unsigned op = 0; op < OP_COUNT; op++)
        if (t->ops[op] == 0) {
            fprintf(stderr, "random_programs: %s never occurs\n", op_info[op].name);
            ok = false;
        }
    return ok;
}

/* ---- main --------------------------------------------------------------- */

static bool parse_settings(int argc, char **argv, Settings *s, int *status)
{
    static const ToolInfo tool = {"random_programs",
                                  "compare random programs with and without passes",
                                  "[options]", NULL};
    const Option table[] = {
        {"seed", "number", "of the first program", OPTION_UNSIGNED, &s->seed, NULL},
        {"count", "number", "how many programs", OPTION_UNSIGNED, &s->count, NULL},
        {"passes", "list", "only this pipeline", OPTION_STRING, &s->passes, NULL},
        {"codegen", "target", "compile to PTX, after the default pipeline", OPTION_STRING,
         &s->codegen, NULL},
        {"races", NULL, "leave out some barriers", OPTION_FLAG, &s->races, NULL},
        {"failures", NULL, "some assertions do not hold", OPTION_FLAG, &s->failures, NULL},
        {"print", NULL, "print the programs", OPTION_FLAG, &s->print, NULL},
        {"stats", NULL, "print how often each op occurred", OPTION_FLAG, &s->stats, NULL},
        {"every-op", NULL, "fail unless every op occurred", OPTION_FLAG, &s->every_op, NULL},
    };
    StringList inputs = {0};
    bool ok = options_parse(&tool, table, COUNT(table), argc, argv, &inputs, status);
    if (ok && inputs.count) {
        fprintf(stderr, "random_programs: error: unexpected argument '%s'\n", inputs.items[0]);
        *status = EXIT_USAGE;
        ok = false;
    }
    string_list_free(&inputs);
    return ok;
}

static void print_summary(const Totals *t, double seconds)
{
    printf("%u programs agree: %u runs, %u texts alike, %u with races, %u with failures, "
           "%u compiled, %.1f s\n%u proved safe; %u with layouts left out, %u of them without "
           "any\n", t->programs, t->runs, t->repeated, t->races, t->failures, t->compiled,
           seconds, t->safe, t->open, t->conflicts);
}

int main(int argc, char **argv)
{
    Settings s = {.seed = 1, .count = 100};
    Totals t = {0};
    int status = EXIT_OK;
    if (!parse_settings(argc, argv, &s, &status))
        return status;
    clock_t start = clock();
    for (unsigned i = 0; i < s.count; i++)
        if (!check_seed(&s, &t, (uint64_t)s.seed + i))
            return EXIT_DIAGNOSTICS;
    if (s.stats)
        print_ops(&t);
    print_summary(&t, (double)(clock() - start) / CLOCKS_PER_SEC);
    return s.every_op && !check_every_op(&t) ? EXIT_DIAGNOSTICS : EXIT_OK;
}
