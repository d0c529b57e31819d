/* The template's programs get their arguments by name. */
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- arguments -------------------------------------------------------- */

static const struct {
    MatmulProgram program;
    const char *name;
    Place place;
} pointers[] = {
    {MATMUL_PACK, "codes", PLACE_CODES},        {MATMUL_PACK, "scales", PLACE_SCALES},
    {MATMUL_PACK, "zeros", PLACE_ZEROS},        {MATMUL_PACK, "to", PLACE_UNITS},
    {MATMUL_PACK, "ts", PLACE_UNIT_SCALES},     {MATMUL_PACK, "tz", PLACE_UNIT_ZEROS},
    {MATMUL_PREPARE, "a", PLACE_A},             {MATMUL_PREPARE, "prepared", PLACE_PREPARED},
    {MATMUL_PRODUCT, "w", PLACE_UNITS},         {MATMUL_PRODUCT, "s", PLACE_UNIT_SCALES},
    {MATMUL_PRODUCT, "z", PLACE_UNIT_ZEROS},    {MATMUL_PRODUCT, "a", PLACE_A},
    {MATMUL_PRODUCT, "prepared", PLACE_PREPARED},   {MATMUL_PRODUCT, "turns", PLACE_TURNS},
    {MATMUL_PRODUCT, "parts", PLACE_PARTS},     {MATMUL_PRODUCT, "bias", PLACE_C},
    {MATMUL_PRODUCT, "residual", PLACE_C},      {MATMUL_PRODUCT, "c", PLACE_C},
};

typedef struct Numbers {
    int64_t n, k, m, slices, columns, blocks, rounds;
} Numbers;

static Numbers find_numbers(const Shape *shape, const MatmulConfig *c, int64_t m)
{
    const MatmulSpec *s = &shape->data->spec;
    return (Numbers){s->n, s->k, m, matmul_slices(s), ceil_div(m, 8 * c->tiles),
                     matmul_blocks(s, c, shape->engine->device.multiprocessors),
                     matmul_rounds(s, c)};
}

static bool find_number(const Numbers *v, const char *name, int64_t *value)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = {
        {"n", v->n}, {"k", v->k}, {"m", v->m}, {"stride", v->k}, {"slices", v->slices},
        {"blocks", v->blocks}, {"share", v->rounds / v->blocks},
        {"extra", v->rounds % v->blocks},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(name, all[i].name) == 0) {
            *value = all[i].value;
            return true;
        }
    return false;
}

static bool find_pointer(MatmulProgram program, const uint64_t at[PLACES], const char *name,
                         uint64_t *value)
{
    for (size_t i = 0; i < COUNT(pointers); i++)
        if (pointers[i].program == program && strcmp(pointers[i].name, name) == 0) {
            *value = at[pointers[i].place];
            return true;
        }
    return false;
}

static bool bind(Engine *e, const EngineKernel *kernel, MatmulProgram program,
                 const Numbers *numbers, const uint64_t at[PLACES], tilus_arg *args)
{
    const tilus_kernel_info *info = kernel->info;
    bool ok = info->arg_count <= ARGUMENTS_MAX;
    for (size_t i = 0; ok && i < info->arg_count; i++) {
        const tilus_arg_info *arg = &info->args[i];
        ok = arg->kind == TILUS_ARG_POINTER
                 ? find_pointer(program, at, arg->name, &args[i].pointer)
                 : find_number(numbers, arg->name, &args[i].integer);
        if (!ok)
            snprintf(e->message, sizeof e->message, "the template's @%s has an argument %%%s, "
                     "which " TOOL " does not know", info->name, arg->name);
    }
    return ok;
}

/* ---- shapes ----------------------------------------------------------- */

static bool upload(Engine *e, const void *data, size_t size, uint64_t *address)
{
    return e->allocate(e, size ? size : 1, address) && e->upload(e, *address, data, size);
}

bool shape_open(Shape *s, Engine *engine, const Data *d)
{
    *s = (Shape){.engine = engine, .data = d};
    return upload(engine, d->codes, d->codes_size, &s->codes) &&
           upload(engine, d->scales, d->scales_size, &s->scales) &&
           upload(engine, d->zeros, d->zeros_size, &s->zeros) &&
           upload(engine, d->a, d->a_size, &s->a);
}

static void packed_close(Engine *e, Packed *p)
{
    for (unsigned i = 0; i < COPIES_MAX; i++)
        e->release(e, p->units[i]);
    e->release(e, p->scales);
    e->release(e, p->zeros);
    *p = (Packed){0};
}

void shape_close(Shape *s)
{
    Engine *e = s->engine;
    if (!e)
        return;
    for (int i = 0; i < ROWS_KINDS; i++)
        packed_close(e, &s->packed[i]);
    e->release(e, s->codes);
    e->release(e, s->scales);
    e->release(e, s->zeros);
    e->release(e, s->a);
    *s = (Shape){0};
}

/* ---- packing ---------------------------------------------------------- */

/* Copies that are four times the cache in all, as far as there are so many. */
static unsigned count_copies(const Shape *s, size_t bytes)
{
    enum { CACHES = 4 };
    size_t copies = CACHES * s->engine->cache / bytes + 1;
    return copies < COPIES_MAX ? (unsigned)copies : COPIES_MAX;
}

static bool pack_copies(Shape *s, Packed *p, const MatmulConfig *c, EngineKernel *kernel)
{
    Engine *e = s->engine;
    const Numbers numbers = find_numbers(s, c, 1);
    uint64_t at[PLACES] = {
        [PLACE_CODES] = s->codes, [PLACE_SCALES] = s->scales, [PLACE_ZEROS] = s->zeros,
        [PLACE_UNIT_SCALES] = p->scales, [PLACE_UNIT_ZEROS] = p->zeros};
    tilus_arg args[ARGUMENTS_MAX];
    for (unsigned i = 0; i < p->copies; i++) {
        at[PLACE_UNITS] = p->units[i];
        if (!bind(e, kernel, MATMUL_PACK, &numbers, at, args) || !e->launch(e, kernel, args))
            return false;
    }
    return e->wait(e);
}

/* Packs for units of the configuration's rows. */
static bool packed_open(Shape *s, Packed *p, const MatmulConfig *c, EngineKernel *kernel)
{
    Engine *e = s->engine;
    const MatmulSpec *spec = &s->data->spec;
    int64_t units = matmul_units(spec, c->rows);
    size_t bytes = (size_t)(units * matmul_unit_bytes(spec, c->rows));
    size_t table = (size_t)(units / matmul_slices(spec) * c->rows) * 2;
    bool ok = e->allocate(e, table, &p->scales) && e->allocate(e, table, &p->zeros);
    p->copies = count_copies(s, bytes);
    for (unsigned i = 0; ok && i < p->copies; i++)
        ok = e->allocate(e, bytes, &p->units[i]);
    if (ok && pack_copies(s, p, c, kernel)) {
        p->rows = c->rows;
        return true;
    }
    packed_close(e, p);
    return false;
}

static const Packed *find_packed(Shape *s, const MatmulConfig *c, EngineKernel *kernel)
{
    for (int i = 0; i < ROWS_KINDS; i++) {
        Packed *p = &s->packed[i];
        if (p->rows == c->rows || (p->rows == 0 && packed_open(s, p, c, kernel)))
            return p;
        if (p->rows == 0)
            break;
    }
    return NULL;
}

/* ---- products --------------------------------------------------------- */

/* Launches leave them as they find them: zero. */
static bool clear_turns(Product *p, size_t count)
{
    Engine *e = p->shape->engine;
    int32_t *zeros = calloc(count, sizeof *zeros);
    bool ok = zeros && e->upload(e, p->own[PLACE_TURNS], zeros, count * sizeof *zeros);
    if (!zeros)
        snprintf(e->message, sizeof e->message, "out of memory");
    free(zeros);
    return ok;
}

static bool allocate(Product *p)
{
    Engine *e = p->shape->engine;
    const MatmulSpec *s = &p->shape->data->spec;
    const MatmulConfig *c = &p->config;
    const Numbers v = find_numbers(p->shape, c, p->m);
    int64_t panels = v.columns * c->tiles * v.slices;
    const struct {
        Place place;
        int64_t bytes;
    } all[] = {
        {PLACE_PREPARED, c->prepared ? panels * matmul_panel_words(s, c) * 4 : 1},
        {PLACE_TURNS, v.columns * v.blocks * 4},
        {PLACE_PARTS, v.columns * v.blocks * c->rwarps * c->rows * c->columns * c->tiles * 4},
        {PLACE_C, p->m * s->n * (int64_t)dtype_bits(s->result) / 8},
    };
    bool ok = true;
    for (size_t i = 0; ok && i < COUNT(all); i++)
        ok = e->allocate(e, (size_t)all[i].bytes, &p->own[all[i].place]);
    return ok && clear_turns(p, (size_t)(v.columns * v.blocks));
}

static bool bind_launches(Product *p)
{
    Shape *s = p->shape;
    const Packed *packed = p->packed;
    const Numbers numbers = find_numbers(s, &p->config, p->m);
    uint64_t at[PLACES];
    memcpy(at, p->own, sizeof at);
    at[PLACE_A] = s->a;
    at[PLACE_UNIT_SCALES] = packed->scales;
    at[PLACE_UNIT_ZEROS] = packed->zeros;
    bool ok = !p->kernels.prepare || bind(s->engine, p->kernels.prepare, MATMUL_PREPARE,
                                          &numbers, at, p->prepare);
    for (unsigned i = 0; ok && i < packed->copies; i++) {
        at[PLACE_UNITS] = packed->units[i];
        ok = bind(s->engine, p->kernels.product, MATMUL_PRODUCT, &numbers, at, p->product[i]);
    }
    return ok;
}

bool product_open(Product *p, Shape *shape, const MatmulConfig *config, int64_t m,
                  Kernels kernels)
{
    *p = (Product){.shape = shape, .kernels = kernels, .config = *config, .m = m};
    p->packed = find_packed(shape, config, kernels.pack);
    return p->packed && allocate(p) && bind_launches(p);
}

void product_close(Product *p)
{
    for (int i = 0; p->shape && i < PLACES; i++)
        p->shape->engine->release(p->shape->engine, p->own[i]);
    p->shape = NULL;
}

bool product_launch(void *product, unsigned copy)
{
    Product *p = product;
    Engine *e = p->shape->engine;
    return (!p->kernels.prepare || e->launch(e, p->kernels.prepare, p->prepare)) &&
           e->launch(e, p->kernels.product, p->product[copy]);
}

void *product_run(Product *p)
{
    enum { NAN_BYTE = 0xff };
    Engine *e = p->shape->engine;
    const MatmulSpec *s = &p->shape->data->spec;
    size_t size = (size_t)(p->m * s->n) * dtype_bits(s->result) / 8;
    char *c = malloc(size);
    if (!c) {
        snprintf(e->message, sizeof e->message, "out of memory");
        return NULL;
    }
    memset(c, NAN_BYTE, size);
    if (e->upload(e, p->own[PLACE_C], c, size) && product_launch(p, 0) && e->wait(e) &&
        e->download(e, c, p->own[PLACE_C], size))
        return c;
    free(c);
    return NULL;
}
