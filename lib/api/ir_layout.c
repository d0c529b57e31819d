/* Layouts: their elements and their algebra. */
#define _GNU_SOURCE
#include "api/ir_handles.h"

#include "syntax/syntax.h"

#include <string.h>

size_t tilus_layout_rank(const tilus_layout *layout)
{
    return layout ? layout_of(layout)->rank : 0;
}

int64_t tilus_layout_extent(const tilus_layout *layout, size_t dimension)
{
    return dimension < tilus_layout_rank(layout) ? layout_of(layout)->shape[dimension] : 0;
}

int64_t tilus_layout_threads(const tilus_layout *layout)
{
    return layout ? layout_of(layout)->threads : 0;
}

int64_t tilus_layout_slots(const tilus_layout *layout)
{
    return layout ? layout_of(layout)->slots : 0;
}

int64_t tilus_layout_replicas(const tilus_layout *layout)
{
    return layout ? layout_replicas(layout_of(layout)) : 0;
}

bool tilus_layout_element(const tilus_layout *layout, int64_t thread, int64_t slot, int64_t *index)
{
    const Layout *l = layout_of(layout);
    if (!l || thread < 0 || thread >= l->threads || slot < 0 || slot >= l->slots)
        return false;
    layout_index(l, thread, slot, index);
    return true;
}

bool tilus_layout_place(const tilus_layout *layout, const int64_t *index, int64_t *thread,
                        int64_t *slot)
{
    const Layout *l = layout_of(layout);
    for (unsigned d = 0; l && d < l->rank; d++)
        if (index[d] < 0 || index[d] >= l->shape[d])
            return false;
    if (l)
        layout_place(l, index, thread, slot);
    return l;
}

int64_t tilus_layout_run(const tilus_layout *layout, size_t dimension)
{
    bool has = dimension < tilus_layout_rank(layout);
    return has ? layout_run(layout_of(layout), (unsigned)dimension) : 0;
}

/* ---- the algebra -------------------------------------------------------- */

/* A layout that a function of the algebra gives from one or two others. */
typedef struct Request Request;
typedef const Layout *Make(LayoutTable *t, const Request *r, const char **why);

struct Request {
    Make *make;
    const Layout *a, *b;        /* b: or NULL */
    const int64_t *list;
    size_t count;
    uint32_t dims;
};

static const Layout *compose(LayoutTable *t, const Request *r, const char **why)
{
    return layout_product(t, r->a, r->b, why);
}

static const Layout *divide(LayoutTable *t, const Request *r, const char **why)
{
    return layout_divide(t, r->a, r->b, why);
}

static const Layout *divide_left(LayoutTable *t, const Request *r, const char **why)
{
    return layout_divide_left(t, r->a, r->b, why);
}

static const Layout *concat(LayoutTable *t, const Request *r, const char **why)
{
    return layout_concat(t, r->a, r->b, why);
}

static const Layout *permute(LayoutTable *t, const Request *r, const char **why)
{
    return layout_permute(t, r->a, (unsigned)r->count, r->list, why);
}

static const Layout *reshape(LayoutTable *t, const Request *r, const char **why)
{
    return layout_reshape(t, r->a, (unsigned)r->count, r->list, why);
}

static const Layout *slice(LayoutTable *t, const Request *r, const char **why)
{
    return layout_slice(t, r->a, (unsigned)r->count, r->list, why);
}

static const Layout *reduce(LayoutTable *t, const Request *r, const char **why)
{
    return layout_reduce(t, r->a, r->dims, why);
}

static const Layout *drop(LayoutTable *t, const Request *r, const char **why)
{
    int64_t dims[LIMIT_RANK];
    unsigned count = 0;
    for (unsigned d = 0; d < r->a->rank; d++)
        if (r->dims >> d & 1)
            dims[count++] = d;
    return layout_drop(t, r->a, count, dims, why);
}

static bool check_request(Module *m, const Request *r)
{
    if (!ir_has_layout(m, r->a) || (r->b && !ir_has_layout(m, r->b)))
        return diag_error(m->diag, (Loc){0}, "a layout that is not of this module");
    if (r->dims >> r->a->rank)
        return diag_error(m->diag, (Loc){0}, "dimensions 0x%x of a layout of rank %u",
                          (unsigned)r->dims, r->a->rank);
    if (r->count > LIMIT_RANK || (r->count && !r->list))
        return diag_error(m->diag, (Loc){0}, "%zu dimensions, there are at most %d", r->count,
                          LIMIT_RANK);
    return true;
}

static const Layout *make_checked(Module *m, const Request *r)
{
    const char *why = NULL;
    if (!check_request(m, r))
        return NULL;
    const Layout *l = r->make(&m->layouts, r, &why);
    if (!l)
        diag_error(m->diag, (Loc){0}, "%s", why);
    return l;
}

static const tilus_layout *make_layout(Module *m, bool given, const Request *r)
{
    const Layout *l = NULL;
    if (m && given)
        IR_CALL(m, l, NULL, make_checked(m, r));
    return layout_handle(l);
}

const tilus_layout *tilus_layout_parse(tilus_module *module, const char *text)
{
    const Layout *l = NULL;
    if (module && text)
        IR_CALL(module, l, NULL, parse_layout_piece(module, text));
    return layout_handle(l);
}

const tilus_layout *tilus_layout_compose(tilus_module *module, const tilus_layout *f,
                                         const tilus_layout *g)
{
    return make_layout(module, f && g, &(Request){compose, layout_of(f), layout_of(g), NULL, 0, 0});
}

const tilus_layout *tilus_layout_divide(tilus_module *module, const tilus_layout *h,
                                        const tilus_layout *g)
{
    return make_layout(module, h && g, &(Request){divide, layout_of(h), layout_of(g), NULL, 0, 0});
}

const tilus_layout *tilus_layout_divide_left(tilus_module *module, const tilus_layout *h,
                                             const tilus_layout *f)
{
    return make_layout(module, h && f,
                       &(Request){divide_left, layout_of(h), layout_of(f), NULL, 0, 0});
}

const tilus_layout *tilus_layout_concat(tilus_module *module, const tilus_layout *f,
                                        const tilus_layout *g)
{
    return make_layout(module, f && g, &(Request){concat, layout_of(f), layout_of(g), NULL, 0, 0});
}

const tilus_layout *tilus_layout_permute(tilus_module *module, const tilus_layout *layout,
                                         const int64_t *order, size_t count)
{
    return make_layout(module, layout,
                       &(Request){permute, layout_of(layout), NULL, order, count, 0});
}

const tilus_layout *tilus_layout_reshape(tilus_module *module, const tilus_layout *layout,
                                         const int64_t *shape, size_t rank)
{
    return make_layout(module, layout,
                       &(Request){reshape, layout_of(layout), NULL, shape, rank, 0});
}

const tilus_layout *tilus_layout_reduce(tilus_module *module, const tilus_layout *layout,
                                        uint32_t dimensions)
{
    return make_layout(module, layout,
                       &(Request){reduce, layout_of(layout), NULL, NULL, 0, dimensions});
}

const tilus_layout *tilus_layout_drop(tilus_module *module, const tilus_layout *layout,
                                      uint32_t dimensions)
{
    return make_layout(module, layout,
                       &(Request){drop, layout_of(layout), NULL, NULL, 0, dimensions});
}

const tilus_layout *tilus_layout_slice(tilus_module *module, const tilus_layout *layout,
                                       const int64_t *shape, size_t rank)
{
    return make_layout(module, layout,
                       &(Request){slice, layout_of(layout), NULL, shape, rank, 0});
}

/* ---- printing ----------------------------------------------------------- */

char *tilus_layout_print(const tilus_layout *layout)
{
    OutOfMemory oom;
    Arena arena;
    if (!layout)
        return NULL;
    arena_init(&arena, &oom);
    char *copy = NULL;
    if (setjmp(oom.jump) == 0) {
        Text text;
        text_init(&text, &arena);
        layout_print(&text, layout_of(layout));
        copy = strdup(text_string(&text));
    }
    arena_free(&arena);
    return copy;
}
