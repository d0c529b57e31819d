/* Launches and their arguments come from a plan of the matmul library, so that the tuner
 * measures the launches of users. */
#include "product.h"

#include "matmul/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- shapes ----------------------------------------------------------- */

static bool check(Engine *e, tilus_status status)
{
    if (status != TILUS_OK)
        snprintf(e->message, sizeof e->message, "%s", tilus_rt_error());
    return status == TILUS_OK;
}

static bool upload(Engine *e, const void *data, size_t size, uint64_t *address)
{
    return e->allocate(e, size ? size : 1, address) && e->upload(e, *address, data, size);
}

static size_t result_bytes(const Data *d, int64_t m)
{
    return (size_t)(m * d->spec.n) * dtype_bits(d->spec.result) / 8;
}

bool shape_open(Shape *s, Engine *engine, const Data *d)
{
    *s = (Shape){.engine = engine, .data = d};
    return check(engine, matmul_open_absent(NULL, &s->matmul)) &&
           upload(engine, d->codes, d->codes_size, &s->codes) &&
           upload(engine, d->scales, d->scales_size, &s->scales) &&
           upload(engine, d->zeros, d->zeros_size, &s->zeros) &&
           upload(engine, &d->factor, sizeof d->factor, &s->factor) &&
           upload(engine, d->a, d->a_size, &s->a) &&
           engine->allocate(engine, result_bytes(d, d->m), &s->c);
}

void shape_close(Shape *s)
{
    Engine *e = s->engine;
    if (!e)
        return;
    for (int i = 0; i < ROWS_KINDS; i++)
        e->release(e, s->weights[i].packed);
    const uint64_t all[] = {s->codes, s->scales, s->zeros, s->factor, s->a, s->c, s->workspace};
    for (size_t i = 0; i < COUNT(all); i++)
        e->release(e, all[i]);
    tilus_matmul_close(s->matmul);
    *s = (Shape){0};
}

/* ---- launches --------------------------------------------------------- */

static bool launch(const Trial *t, const KernelLaunch *l)
{
    Engine *e = t->shape->engine;
    EngineKernel *kernel = t->kernels[l->kernel->number];
    tilus_arg args[MATMUL_ARGUMENTS];
    ArgumentOrder order;
    if (!argument_order(kernel->info, &order)) {
        snprintf(e->message, sizeof e->message, "%s takes %%%s, which this tuner does not know",
                 kernel->info->name, kernel->info->args[order.count].name);
        return false;
    }
    argument_order_apply(&order, l->args, args);
    return e->launch(e, kernel, args, order.count);
}

bool trial_launch(void *trial, unsigned copy)
{
    Trial *t = trial;
    const Product p = product_of(t->plan, plan_choice(t->plan, t->call.m), t->call.m);
    bool ok = true;
    t->call.weights = t->weights->packed + copy * t->weights->stride;
    for (int64_t first = 0; ok && first < t->call.m; first += p.rows) {
        KernelLaunch launches[MATMUL_LAUNCHES];
        size_t count = product_launches(t->plan, &t->call, &p, first, launches);
        for (size_t i = 0; ok && i < count; i++)
            ok = launch(t, &launches[i]);
    }
    return ok;
}

/* ---- packing ---------------------------------------------------------- */

/* Copies that are four times the cache in all, and two at least: what a launch has read is
 * not what the next one reads. */
static unsigned count_copies(size_t cache, size_t bytes)
{
    enum { CACHES = 4, LEAST = 2 };
    unsigned copies = (unsigned)(CACHES * cache / bytes) + 1;
    return copies < LEAST ? LEAST : copies;
}

static bool pack_copies(const Trial *t, const Weights *w)
{
    const Shape *s = t->shape;
    bool factor = matmul_has_factor(&s->data->spec);
    const tilus_matmul_weights plain = {
        .struct_size = sizeof plain, .codes = (const void *)(uintptr_t)s->codes,
        .scales = (const void *)(uintptr_t)s->scales,
        .zeros = factor ? NULL : (const void *)(uintptr_t)s->zeros,
        .factor = factor ? (const void *)(uintptr_t)s->factor : NULL, .transposed = true};
    bool ok = true;
    for (unsigned i = 0; ok && i < w->copies; i++) {
        const KernelLaunch l = pack_launch(t->plan, &plain, w->packed + i * w->stride);
        ok = launch(t, &l);
    }
    return ok && s->engine->wait(s->engine);
}

/* Weights in units of the configuration's rows. */
static bool weights_open(const Trial *t, Weights *w, int rows)
{
    Engine *e = t->shape->engine;
    w->stride = tilus_matmul_packed_size(t->plan);
    w->copies = count_copies(e->cache, w->stride);
    if (e->allocate(e, w->copies * w->stride, &w->packed) && pack_copies(t, w)) {
        w->rows = rows;
        return true;
    }
    e->release(e, w->packed);
    *w = (Weights){0};
    return false;
}

static const Weights *find_weights(const Trial *t, int rows)
{
    Weights *w = t->shape->weights;
    while (w->rows && w->rows != rows)
        w++;
    return w->rows || weights_open(t, w, rows) ? w : NULL;
}

/* ---- trials ----------------------------------------------------------- */

/* A workspace of the shape. Its semaphores are zero, whatever a candidate before has left. */
static bool open_workspace(Shape *s, size_t size)
{
    Engine *e = s->engine;
    if (size > s->workspace_size) {
        e->release(e, s->workspace);
        s->workspace = 0;
        s->workspace_size = 0;
        if (!e->allocate(e, size, &s->workspace))
            return false;
        s->workspace_size = size;
    }
    return e->fill(e, s->workspace, 0, TILUS_MATMUL_SEMAPHORES);
}

bool trial_open(Trial *t, Shape *shape, const MatmulConfig *config, int64_t m, Kernels kernels)
{
    Engine *e = shape->engine;
    *t = (Trial){.shape = shape};
    for (int i = 0; i < MATMUL_PROGRAMS; i++)
        t->kernels[i] = kernels[i];
    if (!check(e, plan_create_fixed(shape->matmul, &shape->data->spec, config, &e->device,
                                    &t->plan)) ||
        !(t->weights = find_weights(t, config->rows)) ||
        !open_workspace(shape, tilus_matmul_workspace_size(t->plan, m)))
        return false;
    t->call = (tilus_matmul_call){.struct_size = sizeof t->call,
                                  .m = m, .a = shape->a, .c = shape->c,
                                  .workspace = shape->workspace,
                                  .workspace_size = shape->workspace_size};
    return true;
}

void trial_close(Trial *t)
{
    tilus_matmul_plan_free(t->plan);
    *t = (Trial){0};
}

void *trial_run(Trial *t)
{
    enum { NAN_BYTE = 0xff };
    Engine *e = t->shape->engine;
    size_t size = result_bytes(t->shape->data, t->call.m);
    void *c = malloc(size);
    if (!c) {
        snprintf(e->message, sizeof e->message, "out of memory");
        return NULL;
    }
    if (e->fill(e, t->call.c, NAN_BYTE, size) && trial_launch(t, 0) && e->wait(e) &&
        e->download(e, c, t->call.c, size))
        return c;
    free(c);
    return NULL;
}
