/* --print-layout and --svg: draws one layout. */
#include "tool.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int draw_to(const char *layout, tilus_drawing kind, const char *path)
{
    tilus_diag *diag = tilus_diag_new();
    char *text = diag ? tilus_layout_draw(diag, layout, kind) : NULL;
    bool ok = text && file_write("tilus-opt", path, text, strlen(text));
    if (diag)
        tilus_diag_print(diag, stderr);
    if (!text && !(diag && tilus_diag_errors(diag)))
        fprintf(stderr, "tilus-opt: error: out of memory\n");
    free(text);
    tilus_diag_free(diag);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int print_layout(const OptSettings *s)
{
    int status = draw_to(s->layout, TILUS_DRAWING_TEXT, s->output);
    if (status == EXIT_OK && s->svg)
        status = draw_to(s->layout, TILUS_DRAWING_SVG, s->svg);
    return status;
}
