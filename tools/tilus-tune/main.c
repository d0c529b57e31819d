/* tilus-tune: the command line. */
#define _GNU_SOURCE
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- signals and time ------------------------------------------------- */

volatile sig_atomic_t tune_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    tune_interrupted = 1;
}

/* A second Ctrl-C ends the process at once. SIGTERM does not: timeout(1) sends it twice, to
 * the process and to its group. */
void tune_handle_signals(void)
{
    const struct sigaction once = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};
    const struct sigaction always = {.sa_handler = interrupt};
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &always, NULL);
    signal(SIGPIPE, SIG_IGN);
}

double tune_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the command line ------------------------------------------------- */

static const char *const engines[] = {"gpu", "cpu", NULL};
static const char *const zeros[] = {"none", "integer", "float", NULL};
static const char *const formats[] = {"json", "c", NULL};

static const ToolInfo tool = {
    TOOL, "find the fastest configurations of the quantized matrix product on a device",
    "run|show|export|import|compile [options] [file]",
    "  run      measure candidates for each of the weights, shapes and m: compiled in many\n"
    "           processes, checked against f64, timed by CUDA graphs over copies of the\n"
    "           weights that the L2 cache does not hold. What was measured before is not\n"
    "           measured again, so after Ctrl-C a new run continues. The status is 1 when a\n"
    "           task has no result or is not finished, or when a result was wrong\n"
    "  show     print the best for each device, problem, m and rows of a packed block\n"
    "  export   print the same as JSON, for tilus_matmul_options.tunings, or as C\n"
    "  import   add tunings that export wrote as JSON\n"
    "  compile  only compile --count kernels of the space, and say how long it took\n"};

static const struct {
    const char *name;
    int (*run)(const Settings *s);
} commands[] = {{"run", tune_run}, {"show", tune_show}, {"export", tune_export},
                {"import", tune_import}, {"compile", tune_compile}};

static int run_command(Settings *s)
{
    const char *name = s->words.count ? s->words.items[0] : "";
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0) {
            if (s->words.count == 1 || commands[i].run == tune_import)
                return commands[i].run(s);
            fprintf(stderr, "%s: error: %s takes no '%s'\n", TOOL, name, s->words.items[1]);
            return EXIT_USAGE;
        }
    if (*name)
        fprintf(stderr, "%s: error: give one of run, show, export, import, compile; got '%s'\n",
                TOOL, name);
    else
        fprintf(stderr, "%s: error: a command is missing: give one of run, show, export, import, "
                "compile\n", TOOL);
    return EXIT_USAGE;
}

static int parse_and_run(Settings *s, int argc, char **argv)
{
    int status;
    const Option table[] = {
        {"weights", "type,..", "tune weights of these types; repeatable", OPTION_LIST,
         &s->weights, NULL},
        {"shape", "KxN,..", "tune weights with this k and n; repeatable", OPTION_LIST,
         &s->shapes, NULL},
        {"m", "m,..", "numbers of rows of A, rounded up to powers of two (default "
         "1,2,4,8,16)", OPTION_STRING, &s->m, NULL},
        {"activations", "type", "type of A (default f16)", OPTION_STRING, &s->activations, NULL},
        {"scales", "type", "type of scales (default bf16 if A is bf16, else f16)", OPTION_STRING,
         &s->scales, NULL},
        {"result", "type", "type of C (default the type of the scales)", OPTION_STRING, &s->result,
         NULL},
        {"group", "size", "number of k that share a scale; 0: all of k (default 128)", OPTION_UNSIGNED,
         &s->group, NULL},
        {"zeros", "kind,..", "zero points: none, integer, float, or several of them (default "
         "none)", OPTION_LIST, &s->zeros, zeros},
        {"database", "file", "where results are kept (default tilus-tune.db)", OPTION_STRING,
         &s->database, NULL},
        {"candidates", "count", "number of candidates to measure for each task: of each number of "
         "rows as many, those that the cost model finds cheapest (default 192)",
         OPTION_UNSIGNED, &s->candidates, NULL},
        {"jobs", "count", "number of processes that compile (default: one for each processor)",
         OPTION_UNSIGNED, &s->jobs, NULL},
        {"time", "seconds", "time limit, which all tasks share (default: until all is "
         "measured)", OPTION_REAL,
         &s->seconds, NULL},
        {"compile-time", "seconds", "give up a kernel that takes longer (default 60)",
         OPTION_REAL, &s->compile_seconds, NULL},
        {"again", NULL, "also measure what was measured before", OPTION_FLAG, &s->again, NULL},
        {"engine", NULL, "what runs candidates (default gpu; times of cpu are of no use)",
         OPTION_CHOICE, &s->engine, engines},
        {"count", "count", "compile: number of kernels (default 200)", OPTION_UNSIGNED,
         &s->count, NULL},
        {"format", NULL, "export: the form to write (default json)", OPTION_CHOICE, &s->format, formats},
        {"o", "file", "export: write to file; - is standard output", OPTION_STRING, &s->output,
         NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->words, &status))
        return status;
    return run_command(s);
}

int main(int argc, char **argv)
{
    Settings s = {.m = "1,2,4,8,16", .group = 128, .database = "tilus-tune.db", .output = "-",
                  .candidates = 192, .count = 200, .compile_seconds = 60};
    /* The program starts itself with this word; it is no command for users. */
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return tune_worker();
    int status = parse_and_run(&s, argc, argv);
    string_list_free(&s.words);
    string_list_free(&s.weights);
    string_list_free(&s.shapes);
    string_list_free(&s.zeros);
    return status;
}
