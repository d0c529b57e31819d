/* Any bytes: a program, or errors that say where they are.
 *
 * None may crash. A refusal is printable, with lines and carets of any input, and each
 * message stands at a line of the text. A text that parses must print to a fixpoint,
 * also after canonicalize, once there are layouts for what it leaves open. */
#include "outcome.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

static void check_fixpoint(const Parsed *p, Arena *arena)
{
    const char *text = parsed_print(p, arena), *fault = text_fixpoint_fault(text, arena);
    if (fault)
        target_fail("%s:\n%s", fault, text);
}

static void check_accepted(const Parsed *p, Arena *arena)
{
    check_fixpoint(p, arena);
    if (!tilus_run_passes(p->module, "infer-layouts", NULL))
        return;
    if (!tilus_run_passes(p->module, "canonicalize", NULL)) {
        tilus_diag_write(p->diag, NULL, NULL);
        target_fail("canonicalize fails");
    }
    check_fixpoint(p, arena);
}

static void format_messages(const Parsed *p)
{
    tilus_free(tilus_diag_format(p->diag));
}

static void check_refused(const Parsed *p, const char *text, size_t len)
{
    unsigned lines = 1;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    if (tilus_diag_errors(p->diag) == 0)
        target_fail("refused without an error");
    for (size_t i = 0; i < tilus_diag_count(p->diag); i++) {
        unsigned line = tilus_diag_line(p->diag, i);
        if (line < 1 || line > lines || tilus_diag_column(p->diag, i) < 1)
            target_fail("a message at line %u of %u: %s", line, lines,
                        tilus_diag_text(p->diag, i));
    }
    format_messages(p);
}

static void check_text(const char *text, size_t len, Arena *arena)
{
    Parsed p = parsed_new(text, len);
    if (p.module)
        check_accepted(&p, arena);
    else
        check_refused(&p, text, len);
    parsed_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OutOfMemory oom;
    Arena arena;
    arena_init(&arena, &oom);
    if (!setjmp(oom.jump))
        check_text((const char *)data, size, &arena);
    arena_free(&arena);
    return 0;
}
