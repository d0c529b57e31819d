/* tilus-run: runs one program on any engine, and checks what it computes. */
#include "measured.h"

#include "common/defines.h"
#include "common/limits.h"
#include "common/warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "The VALUE of an integer is an integer expression, that of a float a number (1e-5, -inf,\n"
    "nan). The VALUE of a pointer is one of\n"
    "  randn(SIZE)  randn(SIZE; scale)    normal numbers, times scale\n"
    "  uniform(SIZE; lo, hi)              numbers of [lo, hi)\n"
    "  codes(SIZE)  codes(SIZE; lo, hi)   codes of [lo, hi], without NaN and infinity\n"
    "  sequence(SIZE)  sequence(SIZE; c)  one code after the other, from c or 0\n"
    "  iota(SIZE)  iota(SIZE; first)      one number after the other, from first or 0\n"
    "  zeros(SIZE)  fill(SIZE; number)    one number\n"
    "  undef(SIZE)                        bytes 0xAB, for the program to write\n"
    "  @file.npy                          an array of NumPy's, in C order, little-endian\n"
    "  @file                              the bytes of a file\n"
    "SIZE is a type and extents, 'f16, m, k', and the type must be the argument's; or a\n"
    "count of elements, 'm*k', and then ',' stands in place of ';'. Extents and\n"
    "counts are expressions over the scalars. In .npy files, types that NumPy lacks are\n"
    "unsigned integers of their width (or V, as of ml_dtypes), and types below 8 bits are\n"
    "the bytes they are packed in, u1.\n";

static const ToolInfo tool = {
    TOOL, "run one tilus program, and check what it computes",
    "prog.tilus --program=@name --arg name=VALUE... [options]", details};

static bool read_options(Options *o, int argc, char **argv, int *status)
{
    static const char *const engines[] = {"auto", "interp", "cpu", "gpu", NULL};
    static const char *const references[] = {"none", "interp", "cpu", NULL};
    const Option table[] = {
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST, &o->defines, NULL},
        {"program", "@name", "the program to run, if the file has several", OPTION_STRING,
         &o->program, NULL},
        {"arg", "name=value", "give an argument its value; repeatable", OPTION_LIST, &o->args, NULL},
        {"engine", NULL, "what runs it; auto: a GPU if there is one, else the CPU",
         OPTION_CHOICE, &o->engine, engines},
        {"seed", "number", "seed of the random values", OPTION_UNSIGNED, &o->seed, NULL},
        {"out", "name=file", "write what a pointer argument points to after the run, as bytes "
         "or as .npy", OPTION_LIST, &o->outs, NULL},
        {"expect", "name=value", "compare an argument with data, written as for --arg; repeatable", OPTION_LIST, &o->expects,
         NULL},
        {"compare", "interp|cpu|[name=]file", "compare with what another engine makes of all "
         "arguments, or one argument with a file; repeatable", OPTION_LIST, &o->compares,
         references},
        {"tolerance", "rel", "largest relative Frobenius error; 0: bit exact", OPTION_REAL,
         &o->tolerance, NULL},
        {"I", "directory", "look for imported files here, too; repeatable", OPTION_LIST,
         &o->import_paths, NULL},
        {"limit", "name=n", "set a limit of the compiler; repeatable (tilus-opt --list-limits)",
         OPTION_LIST, &o->limits, NULL},
        WARNING_OPTION(o->warnings),
        {"allow-zero", NULL, "accept a reference that is all zero, or changed nothing",
         OPTION_FLAG, &o->allow_zero, NULL},
        {"mcpu", "target", "compile for this target, not the device's own", OPTION_STRING,
         &o->cpu, NULL},
        {"O", "level", "optimization level, 0 .. 3 (default 3, of the CPU engine 0)",
         OPTION_UNSIGNED, &o->opt_level, NULL},
        {"host-threads", "number", "number of threads that run blocks on the CPU engine (default 1)",
         OPTION_UNSIGNED, &o->host_threads, NULL},
        {"check-races", NULL, "find races, reads of undefined shared memory and misaligned accesses "
         "on the CPU engine", OPTION_FLAG, &o->check_races, NULL},
        {"ptx", "file", "run this PTX instead of compiling", OPTION_STRING, &o->ptx, NULL},
        {"save-ptx", "file", "write the PTX", OPTION_STRING, &o->save_ptx, NULL},
        {"profile", NULL, "say what each line did on the interpreter; on a GPU, print the "
         "command of its profiler", OPTION_FLAG, &o->profile, NULL},
        {"bench", NULL, "measure it on the GPU, too: many launches in a graph, and single ones",
         OPTION_FLAG, &o->bench, NULL},
        {"bench-copies", "number", "number of copies of the buffers, which launches take in turn "
         "(default: enough for 4 times the L2 cache)", OPTION_UNSIGNED, &o->bench_copies, NULL},
        {"peak-bandwidth", "TB/s", "bandwidth that --bench compares with (default 4.57 on an H200)",
         OPTION_REAL, &o->peak_bandwidth, NULL},
        {"measured", "file", "write what --profile and --bench found, as JSON, which tilus-explain "
         "reads", OPTION_STRING, &o->measured, NULL},
        {"require-gpu", NULL, "without a device, do nothing and exit with 77", OPTION_FLAG,
         &o->require_gpu, NULL},
        {"list", NULL, "print the programs and their arguments", OPTION_FLAG, &o->list, NULL},
    };
    return options_parse(&tool, table, COUNT(table), argc, argv, &o->inputs, status);
}

/* Sorts --compare: of engines the last one counts, as of any option. */
static bool sort_compares(Options *o)
{
    static const char *const engines[] = {
        [REFERENCE_NONE] = "none", [REFERENCE_INTERP] = "interp", [REFERENCE_CPU] = "cpu"};
    for (size_t i = 0; i < o->compares.count; i++) {
        const char *text = o->compares.items[i];
        size_t engine = 0;
        while (engine < COUNT(engines) && strcmp(text, engines[engine]) != 0)
            engine++;
        if (engine < COUNT(engines))
            o->reference = (EngineReference)engine;
        else if (!string_list_add(&o->compare_files, text))
            return false;
    }
    return true;
}

enum { HOST_THREADS_MOST = 1024 };

/* Checks options that contradict others. */
static int check_options(Options *o)
{
    const char *wrong = sort_compares(o) ? NULL : "out of memory";
    if (o->inputs.count != 1)
        wrong = "give one program file ('-' for standard input)";
    else if ((o->engine == ENGINE_INTERP || o->engine == ENGINE_CPU) &&
             (o->ptx || o->require_gpu))
        wrong = "--ptx and --require-gpu need a GPU, --engine=interp and cpu have none";
    else if (o->bench && (o->engine == ENGINE_INTERP || o->engine == ENGINE_CPU))
        wrong = "--bench measures a GPU, --engine=interp and cpu have none";
    else if (!o->bench && (o->bench_copies || o->peak_bandwidth > 0))
        wrong = "--bench-copies and --peak-bandwidth are of --bench";
    else if (o->measured && !o->profile && !o->bench)
        wrong = "--measured writes what --profile and --bench find";
    else if (o->check_races && (o->ptx || o->require_gpu || o->bench ||
                                o->engine == ENGINE_INTERP || o->engine == ENGINE_GPU))
        wrong = "--check-races is of the CPU engine";
    else if (o->engine == ENGINE_INTERP && o->reference == REFERENCE_INTERP)
        wrong = "--compare=interp would compare the interpreter with itself";
    else if (o->ptx && (o->save_ptx || o->cpu || o->reference == REFERENCE_CPU))
        wrong = "--ptx leaves nothing to compile for --save-ptx, --mcpu or --compare=cpu";
    else if (o->host_threads < 1 || o->host_threads > HOST_THREADS_MOST)
        wrong = "--host-threads takes 1 .. 1024 threads";
    else if (o->opt_level > 3 && o->opt_level != OPT_BY_ENGINE)
        wrong = "-O takes a level of 0 .. 3";
    if (o->ptx || o->require_gpu || o->bench)
        o->engine = ENGINE_GPU;
    if (o->check_races)
        o->engine = ENGINE_CPU;
    if (!wrong)
        return limits_set(TOOL, &o->limits, NULL) && warnings_set(TOOL, &o->warnings, NULL)
                   ? EXIT_OK : EXIT_USAGE;
    fprintf(stderr, "%s: error: %s\n", TOOL, wrong);
    return EXIT_USAGE;
}

/* Rejects options that the CPU engine, chosen or fallen back to, lacks. */
static int check_engine(Run *run)
{
    const Options *o = &run->options;
    const char *wrong = NULL;
    if (o->engine == ENGINE_CPU && o->reference == REFERENCE_CPU)
        wrong = "--compare=cpu would compare the CPU engine with itself";
    else if (o->engine == ENGINE_CPU && o->profile)
        wrong = "--profile counts on the interpreter (--engine=interp); the CPU engine's code "
                "counts nothing";
    if (!wrong)
        return EXIT_OK;
    fprintf(stderr, "%s: error: %s\n", TOOL, wrong);
    return EXIT_USAGE;
}

static int run_steps(Run *run)
{
    static int (*const steps[])(Run *run) = {
        program_select, engine_choose,   check_engine,         arguments_make,
        outputs_check,  program_compile, engine_run_reference, engine_run,
    };
    int status = check_options(&run->options);
    if (status == EXIT_OK)
        status = program_load(run);
    if (status == EXIT_OK && run->options.list) {
        program_list(run);
        return EXIT_OK;
    }
    for (size_t i = 0; i < COUNT(steps) && status == EXIT_OK; i++)
        status = steps[i](run);
    if (status == EXIT_OK)
        status = measured_write(run);
    if (status == EXIT_OK)
        status = outputs_write(run);
    return status == EXIT_OK ? outputs_compare(run) : status;
}

static void free_buffers(tilus_buffer *buffers, size_t count)
{
    for (size_t i = 0; buffers && i < count; i++)
        free(buffers[i].data);
    free(buffers);
}

static void free_source(Source *source)
{
    tilus_module_free(source->module);
    tilus_diag_free(source->diag);
}

static void run_free(Run *run)
{
    size_t count = run->info ? run->info->arg_count : 0;
    tilus_rt_close(run->rt);
    free_buffers(run->buffers, count);
    free_buffers(run->reference, count);
    free(run->known);
    free(run->changed);
    free(run->args);
    free(run->counts);
    free(run->shapes);
    free(run->ptx);
    free_source(&run->plain);
    free_source(&run->compiled);
    defines_free(run->defines, run->options.defines.count);
    free(run->measured.lines);
    free(run->text);
    string_list_free(&run->options.inputs);
    string_list_free(&run->options.defines);
    string_list_free(&run->options.args);
    string_list_free(&run->options.limits);
    string_list_free(&run->options.import_paths);
    string_list_free(&run->options.warnings);
    string_list_free(&run->options.outs);
    string_list_free(&run->options.expects);
    string_list_free(&run->options.compares);
    string_list_free(&run->options.compare_files);
}

int main(int argc, char **argv)
{
    Run run = {.argc = argc, .argv = argv, .options = {.opt_level = OPT_BY_ENGINE, .host_threads = 1}};
    int status;
    if (read_options(&run.options, argc, argv, &status))
        status = run_steps(&run);
    run_free(&run);
    return status;
}
