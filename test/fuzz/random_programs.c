/* Random programs from seeds; program_check.h says what is checked. Program number i
 * of a run with seed S is that of seed S + i, so `--seed N --count 1` repeats it. */
#include "program_check.h"

#include "common/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The options of the command line. */
typedef struct Settings {
    unsigned seed, count;
    CheckOptions check;
    const char *codegen, *cpu;      /* a target, or NULL */
    bool every_op, stats;
} Settings;

static bool check_seed(const Settings *s, CheckTotals *t, uint64_t seed)
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
    const char *label = arena_printf(&arena, "random_programs: seed %" PRIu64, seed);
    bool ok = program_check(&s->check, t, &choices, &arena, label);
    arena_free(&arena);
    return ok;
}

/* ---- coverage ----------------------------------------------------------- */

static void print_ops(const CheckTotals *t)
{
    for (unsigned op = 0; op < OP_COUNT; op++)
        printf("%10" PRIu64 " %s\n", t->ops[op], op_info[op].name);
}

static void print_forms(const CheckTotals *t)
{
    for (unsigned form = 0; form < FORM_COUNT; form++)
        printf("%10" PRIu64 " %s\n", t->forms[form], form_words[form]);
}

/* Returns true when every op, and every form of a loop, occurred. */
static bool check_every_op(const CheckTotals *t)
{
    bool ok = true;
    for (unsigned form = 0; form < FORM_COUNT; form++)
        if (t->forms[form] == 0) {
            fprintf(stderr, "random_programs: %s never occurs\n", form_words[form]);
            ok = false;
        }
    for (unsigned op = 0; op < OP_COUNT; op++)
        if (t->ops[op] == 0) {
            fprintf(stderr, "random_programs: %s never occurs\n", op_info[op].name);
            ok = false;
        }
    return ok;
}

/* ---- main --------------------------------------------------------------- */

static bool usage_error(int *status, const char *message)
{
    fprintf(stderr, "random_programs: error: %s\n", message);
    *status = EXIT_USAGE;
    return false;
}

/* Any target, or one from sm_90 on. */
static bool has_bulk(const char *target)
{
    unsigned sm = 0;
    return !target || (sscanf(target, "sm_%u", &sm) == 1 && sm >= 90);
}

/* Any target, or sm_90a. */
static bool has_wgmma(const char *target)
{
    return !target || !strcmp(target, "sm_90a");
}

/* Compiled programs are exact: the engines must agree bit by bit. */
static bool settings_finish(Settings *s, int *status)
{
    if (s->codegen && s->cpu)
        return usage_error(status, "--codegen and --cpu exclude each other");
    s->check.target = s->cpu ? s->cpu : s->codegen;
    s->check.cpu = s->check.gen.exact = s->cpu != NULL;
    s->check.gen.bulk = has_bulk(s->check.target);
    s->check.gen.wgmma = has_wgmma(s->check.target);
    s->check.gen.tight = s->check.hazards_only;
    return true;
}

static bool parse_settings(int argc, char **argv, Settings *s, int *status)
{
    static const ToolInfo tool = {"random_programs",
                                  "compare random programs with and without passes",
                                  "[options]", NULL};
    CheckOptions *c = &s->check;
    const Option table[] = {
        {"seed", "number", "of the first program", OPTION_UNSIGNED, &s->seed, NULL},
        {"count", "number", "how many programs", OPTION_UNSIGNED, &s->count, NULL},
        {"passes", "list", "only this pipeline", OPTION_STRING, &c->passes, NULL},
        {"codegen", "target", "compile to PTX, after the default pipeline", OPTION_STRING,
         &s->codegen, NULL},
        {"cpu", "target", "run the target's code on the CPU engine, at -O0 and -O3",
         OPTION_STRING, &s->cpu, NULL},
        {"races", NULL, "leave out some barriers", OPTION_FLAG, &c->gen.races, NULL},
        {"rings", NULL, "only rings of tiles, with mbarriers", OPTION_FLAG, &c->gen.rings, NULL},
        {"hazards-only", NULL, "no passes: check-hazards against the interpreter", OPTION_FLAG,
         &c->hazards_only, NULL},
        {"having", "words", "only programs whose text has one of these, separated by commas",
         OPTION_STRING, &c->having, NULL},
        {"failures", NULL, "some assertions do not hold", OPTION_FLAG, &c->gen.failures, NULL},
        {"print", NULL, "print the programs", OPTION_FLAG, &c->print, NULL},
        {"stats", NULL, "print how often each op and form of a loop occurred", OPTION_FLAG,
         &s->stats, NULL},
        {"every-op", NULL, "fail unless every op and form of a loop occurred", OPTION_FLAG,
         &s->every_op, NULL},
    };
    StringList inputs = {0};
    bool ok = options_parse(&tool, table, COUNT(table), argc, argv, &inputs, status) &&
              (!inputs.count || usage_error(status, "it takes no arguments")) &&
              settings_finish(s, status);
    string_list_free(&inputs);
    return ok;
}

static void print_summary(const CheckTotals *t, double seconds)
{
    printf("%u programs agree: %u runs, %u texts alike, %u with races, %u with failures, "
           "%u compiled, %u on the CPU engine, %.1f s\nproved safe %u of %u race-free; %u with "
           "layouts left out, %u of them without any\n", t->programs, t->runs, t->repeated,
           t->races, t->failures, t->compiled, t->cpu_runs, seconds, t->safe, t->judged, t->open,
           t->conflicts);
    if (t->skipped)
        printf("skipped %u, which --having does not want\n", t->skipped);
}

int main(int argc, char **argv)
{
    Settings s = {.seed = 1, .count = 100};
    CheckTotals t = {0};
    int status = EXIT_OK;
    if (!parse_settings(argc, argv, &s, &status))
        return status;
    clock_t start = clock();
    for (unsigned i = 0; i < s.count; i++)
        if (!check_seed(&s, &t, (uint64_t)s.seed + i))
            return EXIT_DIAGNOSTICS;
    if (s.stats) {
        print_ops(&t);
        print_forms(&t);
    }
    print_summary(&t, (double)(clock() - start) / CLOCKS_PER_SEC);
    return s.every_op && !check_every_op(&t) ? EXIT_DIAGNOSTICS : EXIT_OK;
}
