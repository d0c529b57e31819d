/* --print-layout and --svg: draws one layout, of a file's names where a file is given. */
#include "tool.h"

#include "common/file.h"
#include "common/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file's text; NULL: there is no file. */
typedef struct Names {
    char *text;
    size_t len;
} Names;

static char *draw(const OptSettings *s, const Names *names, tilus_diag *diag, tilus_drawing kind)
{
    const char *file = strcmp(s->line.input, "-") ? s->line.input : "<stdin>";
    if (!names->text)
        return tilus_layout_draw(diag, s->layout, kind);
    import_paths_set(&s->line.passes.import_paths, diag);
    return tilus_text_layout_draw(diag, file, names->text, names->len, s->line.defines,
                                  s->line.define_count, s->layout, kind);
}

static int draw_to(const OptSettings *s, const Names *names, tilus_drawing kind,
                   const char *path)
{
    tilus_diag *diag = tilus_diag_new();
    bool ready = diag && limits_set("tilus-opt", &s->line.passes.limits, diag);
    char *text = ready ? draw(s, names, diag, kind) : NULL;
    bool ok = text && file_write("tilus-opt", path, text, strlen(text));
    if (diag)
        tilus_diag_write(diag, NULL, NULL);
    if (!text && !(diag && tilus_diag_errors(diag)))
        fprintf(stderr, "tilus-opt: error: out of memory\n");
    free(text);
    tilus_diag_free(diag);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int print_layout(const OptSettings *s)
{
    Names names = {0};
    if (s->line.inputs.count &&
        !file_read("tilus-opt", s->line.input, TEXT_SIZE_MAX, &names.text, &names.len))
        return EXIT_DIAGNOSTICS;
    int status = draw_to(s, &names, TILUS_DRAWING_TEXT, s->output);
    if (status == EXIT_OK && s->svg)
        status = draw_to(s, &names, TILUS_DRAWING_SVG, s->svg);
    free(names.text);
    return status;
}
