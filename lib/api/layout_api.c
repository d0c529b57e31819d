/* Public API: drawing of layouts. */
#define _GNU_SOURCE
#include "syntax/syntax.h"
#include "tilus/tilus.h"

#include <string.h>

/* The elements of a layout, from which a drawing has a limit. */
static bool check_size(Module *m, const Layout *l)
{
    int64_t elements = l->threads / layout_replicas(l) * l->slots;
    if (elements <= LAYOUT_DRAWN)
        return true;
    return diag_error(m->diag, (Loc){1, 1, 1, 0}, "a layout of up to %d elements can be drawn, "
                      "this one has %lld", LAYOUT_DRAWN, (long long)elements);
}

static char *draw(Module *m, tilus_drawing kind)
{
    const Layout *l = parse_layout_text(m);
    if (!l || !check_size(m, l))
        return NULL;
    Text out;
    text_init(&out, &m->arena);
    if (kind == TILUS_DRAWING_SVG)
        layout_draw_svg(&out, l);
    else
        layout_draw_text(&out, l);
    return strdup(text_string(&out));
}

char *tilus_layout_draw(tilus_diag *diag, const char *layout, tilus_drawing kind)
{
    Module *m = module_new(diag);
    if (!m)
        return NULL;
    if (setjmp(diag->oom.jump) == 0) {
        diag_set_source(diag, "<layout>", layout, strlen(layout), 1);
        char *drawing = draw(m, kind);
        module_free(m);
        return drawing;
    }
    module_free(m);
    return NULL;
}
