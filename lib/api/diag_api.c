/* Public API: diagnostics. */
#include "support/diag.h"
#include "tilus/tilus.h"

#include <stdlib.h>

tilus_diag *tilus_diag_new(void)
{
    tilus_diag *diag = malloc(sizeof *diag);
    if (diag)
        diag_init(diag);
    return diag;
}

void tilus_diag_free(tilus_diag *diag)
{
    if (diag)
        diag_free(diag);
    free(diag);
}

size_t tilus_diag_count(const tilus_diag *diag) { return diag->count; }
size_t tilus_diag_errors(const tilus_diag *diag) { return diag->errors; }

tilus_severity tilus_diag_severity(const tilus_diag *diag, size_t i)
{
    return (tilus_severity)diag->messages[i].severity;
}

unsigned tilus_diag_line(const tilus_diag *diag, size_t i) { return diag->messages[i].loc.line; }

unsigned tilus_diag_column(const tilus_diag *diag, size_t i)
{
    return diag->messages[i].loc.column;
}

const char *tilus_diag_text(const tilus_diag *diag, size_t i) { return diag->messages[i].text; }

void tilus_diag_print(const tilus_diag *diag, FILE *out) { diag_print(diag, out); }
