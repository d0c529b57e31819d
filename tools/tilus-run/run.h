/* tilus-run: one run of one program. */
#ifndef TILUS_RUN_H
#define TILUS_RUN_H

#include "common/measure.h"
#include "common/options.h"
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <limits.h>

#define TOOL "tilus-run"

/* The device that runs programs. */
enum { DEVICE = 0 };

/* Exit code when --require-gpu finds no device. */
enum { EXIT_NO_GPU = 77 };

typedef enum Engine { ENGINE_AUTO, ENGINE_INTERP, ENGINE_CPU, ENGINE_GPU } Engine;

/* The engine whose results are right. */
typedef enum EngineReference {
    REFERENCE_NONE,
    REFERENCE_INTERP,
    REFERENCE_CPU
} EngineReference;

/* Options.opt_level when it is not given. */
#define OPT_BY_ENGINE UINT_MAX

/* The command line. Strings point into argv. */
typedef struct Options {
    StringList inputs;          /* exactly one: the program's file */
    StringList defines;         /* -D NAME=VALUE */
    const char *program;        /* with or without @; NULL: the only one */
    int engine;                 /* Engine; engine_choose leaves no AUTO */
    StringList args;            /* NAME=VALUE */
    StringList limits;          /* NAME=N */
    StringList import_paths;    /* of -I */
    StringList warnings;        /* of -W */
    StringList outs;            /* NAME=FILE */
    StringList expects;         /* NAME=VALUE */
    StringList compares;        /* as given: an engine, FILE or NAME=FILE */
    EngineReference reference;  /* of them the engine ... */
    StringList compare_files;   /* ... and the files */
    double tolerance;           /* largest relative error; 0: bit exact */
    bool allow_zero;
    unsigned seed;
    const char *cpu;            /* NULL: the device's */
    unsigned opt_level;         /* of compiled code, or OPT_BY_ENGINE */
    unsigned host_threads;      /* that run blocks on the CPU engine */
    bool check_races;           /* there, of accesses */
    const char *ptx;            /* NULL: compile the program */
    const char *save_ptx;
    bool profile;               /* say what each line did */
    bool bench;                 /* measure, too */
    unsigned bench_copies;      /* of the buffers; 0: enough */
    double peak_bandwidth;      /* TB/s; 0: what is known of the device */
    const char *measured;       /* file for what these two find, or NULL */
    bool list, require_gpu;
} Options;

enum { SHAPE_RANK = 8 };

/* Extents of a buffer; rank 0: nobody has said them. */
typedef struct Shape {
    unsigned rank;
    int64_t extents[SHAPE_RANK];
} Shape;

/* The program, parsed. It is parsed once for the interpreter and once more for
 * the passes, so that no pass can change what it is compared with. */
typedef struct Source {
    tilus_diag *diag;
    tilus_module *module;
} Source;

/* The ways in which --bench measures a launch: in a graph, and between events. */
enum { MEASURED_WAYS = 2 };

/* The results of --profile and --bench, for --measured. */
typedef struct Measured {
    tilus_line_profile *lines;  /* NULL: no profile */
    size_t line_count;
    bool no_memory;
    unsigned launches, copies;  /* of the graph; 0: no bench */
    size_t bytes;               /* of all arguments' buffers */
    Summary times[MEASURED_WAYS];
} Measured;

typedef struct Run {
    int argc;
    char **argv;
    Options options;
    char *text;                 /* of the program */
    size_t text_size;
    tilus_define *defines;
    Source plain, compiled;     /* `compiled` has run the passes */
    const char *program;        /* its name, without @ */
    const tilus_kernel_info *info;      /* of `compiled` */
    const char *target;         /* of compiled code, or of PTX; NULL: there is none */
    char *ptx;                  /* NULL unless it runs on a GPU or is saved */
    tilus_rt *rt;               /* NULL: no GPU runs it */
    uint64_t workspace;         /* its address on the device, or 0 */

    /* info->arg_count of each. A pointer's buffer has its index. */
    bool *known;                /* the argument has its value */
    tilus_arg *args;            /* a pointer's is its index */
    size_t *counts;             /* elements of each pointer's buffer */
    Shape *shapes;
    tilus_buffer *buffers;      /* {NULL, 0} for scalars */
    tilus_buffer *reference;    /* after the reference's run; NULL data: none */
    bool *changed;              /* by that run */
    Measured measured;
} Run;

/* Every step returns an exit code: EXIT_OK, or what main returns after the
 * step has said why on stderr. */

/* program.c: parse, choose a program, compile. */
int program_load(Run *run);
int program_select(Run *run);
void program_list(const Run *run);
int program_compile(Run *run);

/* args.c: values of all arguments from --arg. `argument_find` returns the
 * index of the argument that `text` ("NAME=VALUE") names and sets `*value`;
 * SIZE_MAX after it has reported that there is none. */
int arguments_make(Run *run);
size_t argument_find(const Run *run, const char *text, const char **value);

/* expr.c: evaluates the integer expression over known scalar arguments at
 * `*text` and moves `*text` past it. Returns NULL and sets `*value`, or what
 * is wrong. Operators: + - * / (toward minus infinity) and parentheses. */
const char *run_evaluate(const Run *run, const char **text, int64_t *value);

/* data.c: data for pointer argument `arg` from "randn(m*k)", "zeros(f32, m, n)",
 * "@file"..., its bytes (which the caller frees), its elements and their shape. Returns
 * an exit code. */
int data_make(const Run *run, size_t arg, const char *text, tilus_buffer *buffer,
              size_t *count, Shape *shape);

/* data_file.c: reads and writes buffers of elements of `type`: .npy by its name, other
 * files as they are. On failure the buffer has no data. Return exit codes. */
int data_read(const char *path, const char *type, tilus_buffer *buffer, size_t *count,
              Shape *shape);
int data_write(const char *path, const char *type, const tilus_buffer *buffer,
               const Shape *shape);

/* engines.c */
int engine_choose(Run *run);
int engine_run(Run *run);
int engine_run_reference(Run *run);

/* profile.c: prints what lines did (`data` is a Run), or the command that has a GPU's
 * profiler run this program. */
void profile_print(void *data, const tilus_line_profile *lines, size_t count);
void profile_print_command(const Run *run);

/* compare.c: writes --out files; compares with the reference and --expect. */
int outputs_check(Run *run);        /* before the run: their names, and files to read */
int outputs_write(const Run *run);
int outputs_compare(const Run *run);

#endif
