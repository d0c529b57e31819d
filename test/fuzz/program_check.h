/* One random program, run as it is and after passes, and compiled: everything that
 * must agree, does.
 *
 *   text -> parse -> print -> parse -> print            a fixpoint
 *        -> interpret                                   what is expected
 *        -> passes -> print -> parse -> print           a fixpoint
 *                  -> interpret                         equal
 *                  -> compile (codegen)                 no refusal
 *                  -> CPU engine at -O0 and -O3 (cpu)   equal
 *
 * A program without races and failures must run without errors: an error is a
 * fault of the generator, the verifier or the interpreter. One with a race may
 * do anything once passes have seen it, but break, and check-hazards may refuse it;
 * but no program that check-hazards calls safe races. An assertion that does not
 * hold must be reported by all.
 *
 * Some programs come once more with layouts left out. After infer-layouts, which may
 * find that two ops want different ones, the results must be those of the first. */
#ifndef TILUS_FUZZ_PROGRAM_CHECK_H
#define TILUS_FUZZ_PROGRAM_CHECK_H

#include "outcome.h"

#include "ir/ir.h"

typedef struct CheckOptions {
    const char *passes;         /* one pipeline instead of all, or NULL */
    const char *target;         /* of compiled code; NULL: nothing is compiled */
    bool cpu;                   /* run what is compiled, instead of printing PTX */
    bool print;                 /* the program's text, to stdout */
    GenOptions gen;
} CheckOptions;

/* What happened so far. */
typedef struct CheckTotals {
    unsigned programs, runs, repeated, races, failures, safe, compiled, cpu_runs;
    unsigned open, conflicts;   /* programs with layouts left out; where none fit */
    uint64_t ops[OP_COUNT];
} CheckTotals;

/* Generates a program by `choices` and checks it. Says what is wrong on stderr;
 * `label` names the program there. */
bool program_check(const CheckOptions *options, CheckTotals *totals, Choices *choices,
                   Arena *arena, const char *label);

#endif
