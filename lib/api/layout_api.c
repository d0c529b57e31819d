/* Public API: drawing of layouts. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "syntax/syntax.h"
#include "tilus/tilus.h"

#include <string.h>

/* One call. */
typedef struct Drawing {
    const char *file, *text;    /* whose names the layout may use; NULL: none */
    size_t len;
    const tilus_define *defines;
    size_t define_count;
    const char *layout;
    tilus_drawing kind;
} Drawing;

/* The elements of a layout, from which a drawing has a limit. */
static bool check_size(Module *m, const Layout *l)
{
    int64_t elements = l->threads / layout_replicas(l) * l->slots;
    uint32_t frames = m->diag->frame_count;
    if (elements <= LAYOUT_DRAWN)
        return true;
    return diag_error(m->diag, (Loc){1, 1, 1, frames ? frames - 1 : 0}, "a layout of up to %d "
                      "elements can be drawn, this one has %lld", LAYOUT_DRAWN,
                      (long long)elements);
}

static const Layout *parse(Module *m, const Drawing *d)
{
    if (d->text) {
        diag_set_source(m->diag, d->file, d->text, d->len, 1);
        return parse_layout_of_text(m, api_defines(m, d->defines, d->define_count),
                                    d->define_count, d->layout);
    }
    diag_set_source(m->diag, "<layout>", d->layout, strlen(d->layout), 1);
    return parse_layout_text(m);
}

static bool check_kind(Module *m, const Drawing *d)
{
    return (unsigned)d->kind <= TILUS_DRAWING_SVG ||
           diag_error(m->diag, (Loc){0}, "kind is %d, not a tilus_drawing", (int)d->kind);
}

static char *draw(Module *m, const Drawing *d)
{
    const Layout *l = check_kind(m, d) ? parse(m, d) : NULL;
    if (!l || !check_size(m, l))
        return NULL;
    Text out;
    text_init(&out, &m->arena);
    if (d->kind == TILUS_DRAWING_SVG)
        layout_draw_svg(&out, l);
    else
        layout_draw_text(&out, l);
    return strdup(text_string(&out));
}

static char *draw_guarded(tilus_diag *diag, const Drawing *d)
{
    Module *m = module_new(diag);
    if (!m)
        return NULL;
    char *drawing = setjmp(diag->oom.jump) == 0 ? draw(m, d) : NULL;
    module_free(m);
    return drawing;
}

char *tilus_layout_draw(tilus_diag *diag, const char *layout, tilus_drawing kind)
{
    return draw_guarded(diag, &(Drawing){.layout = layout, .kind = kind});
}

char *tilus_text_layout_draw(tilus_diag *diag, const char *file, const char *text, size_t len,
                             const tilus_define *defines, size_t define_count,
                             const char *layout, tilus_drawing kind)
{
    return draw_guarded(diag, &(Drawing){file, text, len, defines, define_count, layout, kind});
}
