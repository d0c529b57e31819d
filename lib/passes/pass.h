/* Passes and their runner.
 *
 *   text -> parse (instantiate) -> verify -> [ pass -> verify ]* -> codegen
 *
 * A pass transforms one program in place. The runner prints before and after,
 * times, counts, and verifies what changed: a program that a pass broke is a
 * fault of ours, reported as an error that names the pass. */
#ifndef TILUS_PASSES_PASS_H
#define TILUS_PASSES_PASS_H

#include "ir/ir.h"
#include "tilus/tilus.h"

typedef enum PassResult { PASS_UNCHANGED, PASS_CHANGED, PASS_FAILED } PassResult;

/* Effect of a pass on the proofs of written choices (select/choices.h). */
typedef enum PassProofs { KEEPS_PROOFS, MAY_LOSE_PROOFS } PassProofs;

typedef struct PassInfo {
    const char *name;
    PassProofs proofs;
    const char *summary;
    PassResult (*run)(Program *p);
    const struct OwnPass *own;      /* a caller's pass (own.h), whose `run` is NULL; or NULL */
} PassInfo;

enum {
#define PASS(id, name, proofs, summary) PASS_ID_##id,
#include "passes/passes.def"
    PASS_ID_COUNT
};
extern const PassInfo pass_info[PASS_ID_COUNT];

/* Counts the passes that lists show, which stand first. */
enum {
#define PASS(id, name, proofs, summary) PASS_LISTED_##id,
#define TEST_PASS(id, name, proofs, summary)
#include "passes/passes.def"
    PASS_LISTED_COUNT
};

#define PASS(id, name, proofs, summary) PassResult pass_##id(Program *p);
#include "passes/passes.def"

/* The pass called name[0..len), of this library or a caller's, or NULL. Thread safe. */
const PassInfo *pass_find(const char *name, size_t len);

/* The i-th pass that lists show: the library's, then the callers'; NULL past the last. Thread
 * safe. */
const PassInfo *pass_listed(size_t i);

/* An option of a pass (passes/options.def). */
typedef struct PassOptionInfo {
    int pass;                   /* PASS_ID_.. */
    const char *name, *summary;
    int64_t least, most, value; /* the last one holds where the text gives none */
} PassOptionInfo;

typedef enum PassOption {
#define PASS_OPTION(pass, name, least, most, value, summary) PASS_OPTION_##pass##_##name,
#include "passes/options.def"
    PASS_OPTION_COUNT
} PassOption;
extern const PassOptionInfo pass_option_info[PASS_OPTION_COUNT];

/* The values of a pass of a pipeline: those of options.def, then a caller's pass's own. */
enum { OWN_OPTIONS = 16, PASS_VALUES = PASS_OPTION_COUNT + OWN_OPTIONS };

/* The value of an option for the pass that runs on `m`. */
static inline int64_t pass_option(const Module *m, PassOption option)
{
    return m->pass_options ? m->pass_options[option] : pass_option_info[option].value;
}

/* The pipeline of tilus-llc; infer-layouts first, as all later passes need every layout. */
#define PASS_DEFAULT_PIPELINE                                                 \
    "infer-layouts,canonicalize,pipeline-loops,unroll-loops,"                 \
    "select-instructions,plan-shared,plan-workspace"

/* Runs the passes named in `pipeline`, each over every program. False after
 * errors (an unknown name, a failed pass), which the module's diag holds. */
bool pass_run_pipeline(Module *m, const char *pipeline, const tilus_pass_options *options);

/* ---- forwarding, for passes that replace values ------------------------- */

/* While a pass runs, Value.data of a replaced value points to its successor.
 * A walk in program order meets every definition before its uses, so one walk
 * replaces them all. */
void value_forward(Value *from, Value *to);
Value *value_resolve(Value *v);
/* Resolves the operands and expressions of `op`. */
void op_resolve(Module *m, Op *op);

#endif
