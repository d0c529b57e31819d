/* Programs, some nearly right: those that the verifier accepts print to a fixpoint,
 * before and after each pass. */
#include "edits.h"
#include "outcome.h"
#include "target.h"

#include "passes/pass.h"

#include <string.h>

static void check_fixpoint(const Parsed *p, const char *when, Arena *arena)
{
    const char *text = parsed_print(p, arena), *fault = text_fixpoint_fault(text, arena);
    if (fault)
        target_fail("%s %s:\n%s", fault, when, text);
}

static void note_broken(void *observer, const tilus_pass_event *event)
{
    if (event->kind == TILUS_PASS_BROKE)
        *(const char **)observer = event->pipeline;
}

/* A pass may refuse the program, but not break it. */
static void check_pass(const char *text, const char *pass, Arena *arena)
{
    static const char *broken;
    broken = NULL;
    tilus_pass_options options = {.struct_size = sizeof options,
                                  .verify_each = true, .observe = note_broken,
                                  .observer = &broken};
    Parsed p = parsed_new(text, strlen(text));
    bool ok = tilus_run_passes(p.module, pass, &options);
    if (broken || (!ok && tilus_diag_errors(p.diag) == 0)) {
        tilus_diag_write(p.diag, NULL, NULL);
        target_fail("%s breaks\n%s", pass, text);
    }
    if (ok)
        check_fixpoint(&p, pass, arena);
    parsed_release(p);
}

static void check_program(Choices *choices, Arena *arena)
{
    unsigned edits = (unsigned)choose(choices, 6);
    GenOptions options = {.races = choose_rarely(choices, 4)};
    options.failures = choose_rarely(choices, 4);
    GenProgram g = program_generate(choices, &options, arena);
    const char *text = g.open_text && choose(choices, 2) ? g.open_text : g.text;
    text = text_edit(text, edits, choices, arena);
    Parsed p = parsed_new(text, strlen(text));
    if (p.module) {
        check_fixpoint(&p, "as it is", arena);
        for (unsigned i = 0; i < PASS_LISTED_COUNT; i++)
            check_pass(text, pass_info[i].name, arena);
    } else if (edits == 0 || tilus_diag_errors(p.diag) == 0) {
        tilus_diag_write(p.diag, NULL, NULL);
        target_fail("the program is refused:\n%s", text);
    }
    parsed_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check_program, data, size);
}
