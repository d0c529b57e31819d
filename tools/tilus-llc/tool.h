/* tilus-llc: compiles program text to PTX, cubin or LLVM IR. */
#ifndef TILUS_LLC_TOOL_H
#define TILUS_LLC_TOOL_H

#include "common/pass_settings.h"
#include "tilus/tilus.h"

typedef enum FileType { FILE_ASM, FILE_OBJ, FILE_NULL } FileType;
typedef enum CastPlans { CAST_PLANS_NONE, CAST_PLANS_TABLE, CAST_PLANS_OPERATIONS } CastPlans;

/* What the command line asks for. */
typedef struct LlcSettings {
    const char *input, *output; /* paths; "-" is a standard stream */
    char *default_output;       /* what `output` points to when it was not given */
    const char *cpu, *features;
    unsigned opt_level;
    int file_type;              /* FileType */
    int cast_plans;             /* CastPlans: what to print instead of compiling */
    bool emit_llvm, debug_lines, time, version, list_targets;
    bool print_llvm_before, print_llvm_after;
    PassSettings passes;
    const char *pipeline;       /* what runs */
    const char *stop_after;     /* a pass, or NULL */
    char *cut;                  /* `pipeline` up to that pass, when it is shorter */
    tilus_define *defines;
    size_t define_count;
    StringList inputs, define_texts;
    char **arguments;           /* with those of a reproducer, or NULL */
} LlcSettings;

/* False when the tool is done: `*status` is its exit code. */
bool settings_parse(LlcSettings *s, int argc, char **argv, int *status);
void settings_free(LlcSettings *s);

/* Compiles the input as asked; an exit code. */
int compile_input(LlcSettings *s);
/* Prints all cast plans there are; an exit code. */
int print_all_cast_plans(const LlcSettings *s);

/* Seconds from some fixed moment. */
double seconds_now(void);

/* Assembles PTX with ptxas, which TILUS_PTXAS, PATH or CUDA's usual place
 * gives. Returns the cubin (`*size` bytes, freed by the caller), or NULL after
 * printing why. */
char *assemble(const char *cpu, const char *ptx, size_t *size);

#endif
