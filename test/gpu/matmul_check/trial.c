/* A plan, its packed weights, and its products. */
#include "check.h"

#include "support/bits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 256 };          /* bytes */

struct Run {
    Engine *engine;
    const Trial *trial;
    tilus_matmul_plan *plan;
    Data data;
    size_t c_bytes, workspace_bytes;    /* for the largest m */
    uint64_t packed, bias, workspace, offsets, ids, route;
    uint64_t a[ORDERS], a_scales[ORDERS], residual[ORDERS], c[ORDERS];
    unsigned char *copy;        /* of results or a workspace, with its margin */
};

static bool check(Outcome *o, tilus_status status)
{
    if (status == TILUS_OK)
        return true;
    o->verdict = VERDICT_WRONG;
    o->lost = status == TILUS_ERROR_LOST;
    snprintf(o->text, sizeof o->text, "%s: %s", tilus_status_name(status), tilus_rt_error());
    return false;
}

static bool fail(Outcome *o, const char *why)
{
    o->verdict = VERDICT_WRONG;
    snprintf(o->text, sizeof o->text, "%s", why);
    return false;
}

static Order first_order(const Run *r)
{
    return r->engine->overlaps ? BACKWARDS : FORWARDS;
}

/* ---- packing ------------------------------------------------------------------ */

static tilus_matmul_weights plain_weights(const Run *r, size_t matrix)
{
    const Data *d = &r->data;
    return (tilus_matmul_weights){sizeof(tilus_matmul_weights), d->codes + matrix * d->code_bytes,
                                  d->scales + matrix * d->scale_bytes,
                                  d->zero_bytes ? d->zeros + matrix * d->zero_bytes : NULL,
                                  .transposed = r->trial->transposed,
                                  .factor = matmul_has_factor(&d->spec) ? &d->factor : NULL};
}

/* Packs the weights of a plan, those of experts one behind the other. Returns NULL after a failure;
 * freed with free(). */
static void *pack_on_host(const Run *r, const tilus_matmul_plan *plan, Outcome *o)
{
    size_t size = tilus_matmul_packed_size(plan), matrices = (size_t)r->data.matrices;
    unsigned char *packed = malloc(matrices * size);
    bool ok = packed || fail(o, "out of memory");
    for (size_t i = 0; ok && i < matrices; i++) {
        const tilus_matmul_weights plain = plain_weights(r, i);
        ok = check(o, tilus_matmul_pack(plan, &plain, packed + i * size));
    }
    if (ok)
        return packed;
    free(packed);
    return NULL;
}

/* A part of the weights, which are packed as a whole. */
static void *pack_part(const Run *r, Outcome *o)
{
    const Trial *t = r->trial;
    tilus_matmul_problem problem = t->problem;
    tilus_matmul_plan *whole;
    problem.n = t->n_whole;
    problem.k = t->k_whole;
    if (!check(o, r->engine->plan(r->engine, &problem, &whole)))
        return NULL;
    void *packed = pack_on_host(r, whole, o), *part = NULL;
    if (packed && !(part = malloc(tilus_matmul_packed_size(r->plan))))
        fail(o, "out of memory");
    if (part && !check(o, tilus_matmul_shard(whole, packed, r->plan, t->n_first, t->k_first,
                                             part))) {
        free(part);
        part = NULL;
    }
    free(packed);
    tilus_matmul_plan_free(whole);
    return part;
}

static bool place(const Run *r, const void *data, size_t size, uint64_t *address, Outcome *o)
{
    Engine *e = r->engine;
    return check(o, e->allocate(e, size, address)) &&
           (size == 0 || check(o, e->upload(e, *address, data, size)));
}

/* Has the weights packed there, from copies of the plain ones that are. */
static bool pack_there(const Run *r, Outcome *o)
{
    enum { PADDING = 0 };       /* which the host writes */
    Engine *e = r->engine;
    const Data *d = &r->data;
    uint64_t codes = 0, scales = 0, zeros = 0, factor = 0;
    bool ok = check(o, e->fill(e, r->packed, PADDING, tilus_matmul_packed_size(r->plan))) &&
              place(r, d->codes, d->code_bytes, &codes, o) &&
              place(r, d->scales, d->scale_bytes, &scales, o) &&
              (d->zero_bytes == 0 || place(r, d->zeros, d->zero_bytes, &zeros, o)) &&
              (!matmul_has_factor(&d->spec) || place(r, &d->factor, sizeof d->factor, &factor, o));
    const tilus_matmul_weights plain = {sizeof plain, (const void *)(uintptr_t)codes,
                                        (const void *)(uintptr_t)scales,
                                        (const void *)(uintptr_t)zeros,
                                        .transposed = r->trial->transposed,
                                        .factor = (const float *)(uintptr_t)factor};
    ok = ok && check(o, e->pack(e, r->plan, &plain, r->packed));
    e->release(e, codes);
    e->release(e, scales);
    e->release(e, zeros);
    e->release(e, factor);
    return ok;
}

/* They shall be the host's bytes. */
static bool compare_packed(const Run *r, const unsigned char *host, Outcome *o)
{
    size_t size = tilus_matmul_packed_size(r->plan);
    unsigned char *device = malloc(size);
    bool ok = device ? check(o, r->engine->download(r->engine, device, r->packed, size))
                     : fail(o, "out of memory");
    for (size_t i = 0; ok && i < size; i++)
        if (host[i] != device[i]) {
            o->verdict = VERDICT_WRONG;
            snprintf(o->text, sizeof o->text, "byte %zu of %zu packed ones is 0x%02x, of "
                     "those packed on the host 0x%02x", i, size, device[i], host[i]);
            ok = false;
        }
    free(device);
    return ok;
}

static bool pack(Run *r, Outcome *o)
{
    bool part = r->trial->packing == PACK_PART;
    void *host = part ? pack_part(r, o) : pack_on_host(r, r->plan, o);
    size_t size = tilus_matmul_packed_size(r->plan) * (size_t)r->data.matrices;
    bool ok = host && place(r, host, size, &r->packed, o);
    if (ok && r->trial->packing == PACK_DEVICE)
        ok = pack_there(r, o) && compare_packed(r, host, o);
    free(host);
    return ok;
}

/* ---- opening ------------------------------------------------------------------ */

/* Rows in their order, or the last one first. */
static bool place_rows(const Run *r, const unsigned char *data, size_t size, Order order,
                       uint64_t *address, Outcome *o)
{
    size_t rows = (size_t)r->data.rows, row = size / rows;
    unsigned char *copy = malloc(size + 1);
    if (!copy)
        return fail(o, "out of memory");
    for (size_t i = 0; i < rows; i++)
        memcpy(copy + i * row, data + (order == FORWARDS ? i : rows - 1 - i) * row, row);
    bool ok = place(r, copy, size, address, o);
    free(copy);
    return ok;
}

/* The operands and the result of an order's product. */
static bool open_order(Run *r, Order order, Outcome *o)
{
    const Data *d = &r->data;
    size_t scales = (size_t)d->rows * sizeof *d->a_scales;
    return place_rows(r, d->a, d->a_bytes, order, &r->a[order], o) &&
           place_rows(r, (unsigned char *)d->a_scales, scales, order, &r->a_scales[order], o) &&
           place_rows(r, d->residual, d->residual_bytes, order, &r->residual[order], o) &&
           check(o, r->engine->allocate(r->engine, r->c_bytes + MARGIN, &r->c[order]));
}

static bool open_operands(Run *r, Outcome *o)
{
    Engine *e = r->engine;
    const Data *d = &r->data;
    int64_t columns = matmul_columns_of_c(&d->spec, r->trial->problem.n);
    r->c_bytes = (size_t)(d->rows * columns) * dtype_bits(d->spec.result) / 8;
    r->workspace_bytes = tilus_matmul_workspace_size(r->plan, d->rows);
    size_t most = r->c_bytes > r->workspace_bytes ? r->c_bytes : r->workspace_bytes;
    r->copy = malloc(most + MARGIN);
    bool ok = r->copy || fail(o, "out of memory");
    for (Order order = first_order(r); order < ORDERS; order++)
        ok = ok && open_order(r, order, o);
    return ok && place(r, d->bias, d->bias_bytes, &r->bias, o) &&
           check(o, e->allocate(e, (size_t)(d->matrices + 1) * sizeof(int32_t), &r->offsets)) &&
           check(o, e->allocate(e, (size_t)d->rows * sizeof(int32_t), &r->ids)) &&
           check(o, e->allocate(e, (size_t)d->rows * sizeof(float), &r->route)) &&
           check(o, e->allocate(e, r->workspace_bytes + MARGIN, &r->workspace)) &&
           check(o, e->fill(e, r->workspace, DATA_MARK, r->workspace_bytes + MARGIN)) &&
           check(o, e->fill(e, r->workspace, 0, TILUS_MATMUL_SEMAPHORES));
}

Run *run_open(Engine *engine, const Trial *trial, Outcome *o)
{
    Run *r = calloc(1, sizeof *r);
    *o = (Outcome){0};
    if (!r) {
        fail(o, "out of memory");
        return NULL;
    }
    r->engine = engine;
    r->trial = trial;
    bool ok = data_make(&r->data, trial, o->text, sizeof o->text);
    if (!ok)
        o->verdict = VERDICT_WRONG;
    if (ok && check(o, engine->plan(engine, &trial->problem, &r->plan)) && pack(r, o) &&
        open_operands(r, o))
        return r;
    run_close(r);
    return NULL;
}

void run_close(Run *r)
{
    if (!r)
        return;
    Engine *e = r->engine;
    e->release(e, r->packed);
    e->release(e, r->bias);
    e->release(e, r->workspace);
    e->release(e, r->offsets);
    e->release(e, r->ids);
    e->release(e, r->route);
    for (Order order = BACKWARDS; order < ORDERS; order++) {
        e->release(e, r->a[order]);
        e->release(e, r->a_scales[order]);
        e->release(e, r->residual[order]);
        e->release(e, r->c[order]);
    }
    tilus_matmul_plan_free(r->plan);
    data_free(&r->data);
    free(r->copy);
    free(r);
}

/* ---- products ----------------------------------------------------------------- */

void run_describe(const tilus_matmul_plan *plan, int64_t m, char *text, size_t size)
{
    if (dense_serves(plan, m)) {
        snprintf(text, size, "by cuBLAS after %s", unpack_kernel(plan, plan->spec.product)->name);
        return;
    }
    const Choice *choice = plan_choice(plan, m);
    const MatmulConfig *c = &choice->config;
    const Product p = product_of(plan, choice, m);
    snprintf(text, size, "stages %d, prearranged_a %d, scale_weights %d, %s%s%s, %lld blocks of "
             "%s",
             c->stages, c->prearranged_a, c->scale_weights,
             matmul_zeros_by_mma(&plan->spec, c) ? "zeros_by_mma, " : "",
             c->register_reallocation ? "register_reallocation, " : "",
             !p.shares_tiles ? "no hand-overs" : p.extra ? "uneven hand-overs" : "even hand-overs",
             (long long)p.blocks, choice->product->name);
}

/* C[m, n] is what is computed, and all bytes behind it are as they were. */
static bool compare(const Run *r, int64_t m, Order order, Outcome *o)
{
    size_t bytes = r->c_bytes / (size_t)r->data.rows * (size_t)data_result_rows(&r->data, m);
    Difference d = data_compare(&r->data, r->trial, m, order, r->copy);
    Difference bounds = data_bounds(&r->data.spec);
    char how[256];
    run_describe(r->plan, m, how, sizeof how);
    bool right = d.norm < bounds.norm && d.largest < bounds.largest;
    for (size_t i = bytes; i < r->c_bytes + MARGIN; i++)
        if (r->copy[i] != DATA_MARK)
            return fail(o, "something was written behind C");
    o->verdict = right ? VERDICT_RIGHT : VERDICT_WRONG;
    snprintf(o->text, sizeof o->text, "error %.2e, largest %.2e, bounds %.0e, %.0e; %s%s",
             d.norm, d.largest, bounds.norm, bounds.largest,
             order == FORWARDS ? "" : "first of two, ", how);
    return right;
}

/* The semaphores are zero again, and nothing was written behind the workspace. */
static bool compare_workspace(const Run *r, int64_t m, Outcome *o)
{
    size_t used = tilus_matmul_workspace_size(r->plan, m);
    for (size_t i = 0; i < TILUS_MATMUL_SEMAPHORES; i++)
        if (r->copy[i] != 0)
            return fail(o, "a semaphore is not zero again");
    for (size_t i = used; i < r->workspace_bytes + MARGIN; i++)
        if (r->copy[i] != DATA_MARK)
            return fail(o, "something was written behind the workspace");
    return true;
}

static bool has_ids(const MatmulSpec *s)
{
    return s->gather || s->scatter || s->combine;
}

static tilus_matmul_call call_of(const Run *r, int64_t m, Order order)
{
    const Trial *t = r->trial;
    const MatmulSpec *s = &r->data.spec;
    uint64_t first = (uint64_t)t->k_first * dtype_bits(s->activations) / 8;
    int64_t stride = t->packing == PACK_PART ? t->k_whole : t->a_stride;
    return (tilus_matmul_call){
        .struct_size = sizeof(tilus_matmul_call),
        .m = m, .a = r->a[order] + first, .a_stride = stride, .weights = r->packed,
        .bias = s->bias ? r->bias : 0, .residual = s->residual ? r->residual[order] : 0,
        .c = r->c[order], .workspace = r->workspace,
        .a_scales = matmul_has_a_scales(s) ? r->a_scales[order] : 0,
        .offsets = s->experts ? r->offsets : 0,
        .ids = has_ids(s) ? r->ids : 0, .route = s->combine ? r->route : 0,
        .workspace_size = tilus_matmul_workspace_size(r->plan, m)};
}

static bool place_route(const Run *r, int64_t m, Outcome *o)
{
    Engine *e = r->engine;
    int32_t *ids = calloc((size_t)m, sizeof *ids);
    float *route = calloc((size_t)m, sizeof *route);
    bool ok = (ids && route) || fail(o, "out of memory");
    if (ok) {
        data_route(&r->data, m, ids, route);
        ok = check(o, e->upload(e, r->ids, ids, (size_t)m * sizeof *ids)) &&
             check(o, e->upload(e, r->route, route, (size_t)m * sizeof *route));
    }
    free(ids);
    free(route);
    return ok;
}

/* Places what says which rows experts have. */
static bool place_offsets(const Run *r, int64_t m, Outcome *o)
{
    Engine *e = r->engine;
    bool ok = true;
    for (int64_t i = 0; ok && i <= r->data.matrices; i++) {
        const int32_t offset = data_offset(&r->data, i, m);
        ok = check(o, e->upload(e, r->offsets + (uint64_t)i * sizeof offset, &offset, sizeof offset));
    }
    return ok && (!has_ids(&r->data.spec) || place_route(r, m, o));
}

/* Enqueues two products, where they can overlap. */
static bool compute(const Run *r, int64_t m, Outcome *o)
{
    Engine *e = r->engine;
    tilus_matmul_call calls[ORDERS];
    size_t count = 0;
    if (!place_offsets(r, m, o))
        return false;
    for (Order order = first_order(r); order < ORDERS; order++) {
        calls[count++] = call_of(r, m, order);
        if (!check(o, e->fill(e, r->c[order], DATA_MARK, r->c_bytes + MARGIN)))
            return false;
    }
    return check(o, e->run(e, r->plan, calls, count));
}

/* Injects a fault into an element in the middle, which checks of the ends alone would miss. */
static void spoil_result(const Run *r, int64_t m)
{
    const MatmulSpec *s = &r->data.spec;
    int64_t count = data_result_rows(&r->data, m) * matmul_columns_of_c(s, r->trial->problem.n);
    bits_set(r->copy, (size_t)(count / 2), dtype_bits(s->result), 0);
}

static bool compare_results(const Run *r, int64_t m, bool spoil, Outcome *o)
{
    Engine *e = r->engine;
    bool ok = true;
    for (Order order = first_order(r); order < ORDERS && ok; order++) {
        ok = check(o, e->download(e, r->copy, r->c[order], r->c_bytes + MARGIN));
        if (ok && spoil)
            spoil_result(r, m);
        ok = ok && compare(r, m, order, o);
    }
    return ok;
}

void run_product(Run *r, size_t size, bool spoil, Outcome *o)
{
    Engine *e = r->engine;
    int64_t m = r->trial->sizes[size];
    *o = (Outcome){0};
    if (r->trial->dense && !dense_serves(r->plan, m)) {
        o->verdict = VERDICT_SKIPPED;
        snprintf(o->text, sizeof o->text, "no cuBLAS: none was found, or the "
                 "engine has none; TILUS_LIBCUBLAS names it");
        return;
    }
    (void)(compute(r, m, o) &&
           check(o, e->download(e, r->copy, r->workspace, r->workspace_bytes + MARGIN)) &&
           compare_workspace(r, m, o) && compare_results(r, m, spoil, o));
}
