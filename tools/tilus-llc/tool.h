/* tilus-llc: compiles program text to PTX, cubin, LLVM IR or artefacts. */
#ifndef TILUS_LLC_TOOL_H
#define TILUS_LLC_TOOL_H

#include "common/command_line.h"
#include "tilus/tilus.h"

typedef enum FileType {
    FILE_BY_NAME = -1,          /* an artefact when the output is called so, else PTX */
    FILE_ASM,
    FILE_OBJ,
    FILE_NULL,
    FILE_ARTEFACT,
    FILE_HEADER
} FileType;
typedef enum CubinUse { CUBIN_AUTO, CUBIN_ALWAYS, CUBIN_NEVER } CubinUse;
typedef enum CastPlans { CAST_PLANS_NONE, CAST_PLANS_TABLE, CAST_PLANS_OPERATIONS } CastPlans;

/* The command line, read. */
typedef struct LlcSettings {
    CommandLine line;
    const char *output;         /* a path; "-" is standard output */
    char *default_output;       /* what `output` points to when it was not given */
    const char *cpu, *features;
    unsigned opt_level;
    int file_type;              /* FileType, not BY_NAME after the parse */
    int cubin;                  /* CubinUse, of artefacts */
    const char *program;        /* without @: only this one; NULL: all */
    const char *template;       /* built in, compiled in place of an input; NULL: none */
    const char *input_name;     /* of standard input in messages; NULL: "<stdin>" */
    const char *cache;          /* directory of artefacts that were compiled; NULL: none */
    const char *ptxas;          /* a path; NULL: the one that is found */
    int cast_plans;             /* CastPlans: what to print instead of compiling */
    bool emit_llvm, debug_lines, time, version, list_targets;
    bool print_llvm_before, print_llvm_after;
    const char *pipeline;       /* what runs */
    const char *stop_after;     /* a pass, or NULL */
    char *cut;                  /* `pipeline` up to that pass, when it is shorter */
} LlcSettings;

/* False when the tool is done: `*status` is its exit code. */
bool settings_parse(LlcSettings *s, int argc, char **argv, int *status);
void settings_free(LlcSettings *s);

/* Returns true when an artefact, or a header, of each program is written. */
bool settings_want_artefacts(const LlcSettings *s);

/* Times of the steps, in seconds. */
typedef struct Times {
    double parse, passes, ptxas;
    tilus_compile_times compile;
} Times;

/* A file to write. */
typedef struct Output {
    char *path, *bytes;
    size_t size;
} Output;

typedef struct Outputs {
    Output *items;
    size_t count;
    bool reported;              /* why there is nothing to write was said already */
} Outputs;

/* outputs.c: outputs_add copies `path` and takes `bytes`; false when memory runs out.
 * outputs_write writes all, up to the first failure, which it prints; nothing when a path is
 * that of `input`. */
bool outputs_add(Outputs *list, const char *path, char *bytes, size_t size);
bool outputs_write(const Outputs *list, const char *input);
void outputs_free(Outputs *list);

/* compile.c: compiles the input as asked; an exit code. */
int compile_input(LlcSettings *s);
/* The options of code generation, for `program`, or for all if it is NULL. */
tilus_compile_options compile_options(const LlcSettings *s, const char *program);
/* The input's name in messages. */
const char *input_name(const LlcSettings *s);
/* Prints all cast plans there are; an exit code. */
int print_all_cast_plans(const LlcSettings *s);

/* artefact.c: the artefact or header of each program of `m` that is asked for. False
 * after errors. */
bool artefacts_make(const LlcSettings *s, tilus_module *m, Times *times, Outputs *outputs);

/* header.c: a C header that embeds the `size` bytes of an artefact; NUL-terminated,
 * freed by the caller. NULL when memory runs out. */
char *header_make(const void *bytes, size_t size);

/* Assembles PTX with the ptxas that --ptxas, TILUS_PTXAS, PATH or CUDA's usual place
 * gives. Returns the cubin (`*size` bytes, freed by the caller), or NULL after
 * printing why. What ptxas says of registers is `*log` then, freed by the caller, or NULL. */
char *assemble(const LlcSettings *s, const char *ptx, size_t *size, char **log);
/* Returns true when there is a ptxas, or TILUS_PTXAS or --ptxas names one. */
bool assembler_wanted(const LlcSettings *s);

#endif
