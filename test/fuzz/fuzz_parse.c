/* Fuzzes the text: parse, print, parse again, canonicalize, print, parse.
 *
 * Any bytes may be refused, none may crash. A text that parses must print to a
 * fixpoint, and what the passes make of it must verify and parse again.
 *
 *   fuzz_parse -dict=test/fuzz/parse.dict NEW_INPUTS test/fuzz/corpus/parse
 *              kernels test/lit/ir test/lit/passes */
#include "tilus/tilus.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A module and the diag that it was parsed with. */
typedef struct Parsed {
    tilus_diag *diag;
    tilus_module *module;   /* NULL: refused */
} Parsed;

static Parsed parse(const char *text, size_t len)
{
    Parsed p = {.diag = tilus_diag_new()};
    p.module = tilus_parse(p.diag, "fuzz.tilus", text, len, 1, NULL, 0);
    return p;
}

static void release(Parsed p)
{
    tilus_module_free(p.module);
    tilus_diag_free(p.diag);
}

/* Ends the run with what is wrong, the text, and the messages about it. */
static void fail(const char *what, const char *text, const Parsed *p)
{
    fprintf(stderr, "fuzz_parse: %s\n%s\n", what, text);
    if (p)
        tilus_diag_print(p->diag, stderr);
    abort();
}

/* Refusals must be printable: lines and carets of any input. */
static void print_messages(const Parsed *p)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (nowhere)
        tilus_diag_print(p->diag, nowhere);
}

/* Prints `p`, and checks that this text parses and prints as itself. */
static void check_fixpoint(const Parsed *p, const char *what)
{
    char *text = tilus_print(p->module);
    Parsed again = parse(text, strlen(text));
    if (!again.module)
        fail(what, text, &again);
    char *twice = tilus_print(again.module);
    if (strcmp(text, twice) != 0)
        fail(what, twice, &again);
    free(twice);
    free(text);
    release(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Parsed p = parse((const char *)data, size);
    if (p.module) {
        check_fixpoint(&p, "printed text is no fixpoint");
        if (!tilus_run_passes(p.module, "canonicalize", NULL))
            fail("canonicalize broke a verified program", "", &p);
        check_fixpoint(&p, "canonical text is no fixpoint");
    } else if (tilus_diag_errors(p.diag) == 0) {
        fail("refused without an error", "", &p);
    } else {
        print_messages(&p);
    }
    release(p);
    return 0;
}
