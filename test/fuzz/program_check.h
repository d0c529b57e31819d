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
 * hold must be reported by all. With `hazards_only` nothing but this is checked:
 *
 *        -> check-hazards, strict       safe or not
 *        -> interpret                   a race or none; never safe and a race
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
    bool hazards_only;          /* check-hazards and the interpreter, no passes */
    bool print;                 /* the program's text, to stdout */
    const char *having;         /* words, one of which a program must have; NULL: any program */
    GenOptions gen;
} CheckOptions;

/* Forms of loops and of accesses that the texts must have. */
typedef enum Form {
#define FORM(id, words) FORM_##id,
#include "forms.def"
    FORM_COUNT
} Form;

extern const char *const form_words[FORM_COUNT];

/* Counts of what happened so far. */
typedef struct CheckTotals {
    unsigned programs, skipped, runs, repeated, races, failures, compiled, cpu_runs;
    unsigned judged, safe;      /* without a race in the run; of these, proved safe */
    unsigned open, conflicts;   /* programs with layouts left out; where none fit */
    uint64_t ops[OP_COUNT], forms[FORM_COUNT];
} CheckTotals;

/* Generates a program by `choices` and checks it. Says what is wrong on stderr;
 * `label` names the program there. */
bool program_check(const CheckOptions *options, CheckTotals *totals, Choices *choices,
                   Arena *arena, const char *label);

#endif
