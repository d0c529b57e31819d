/* Plans: the choice of configurations and kernels for a problem on a device, and its text. */
#define _GNU_SOURCE
#include "matmul/internal.h"
#include "support/numeral.h"
#include "target/target.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plans -------------------------------------------------------------- */

int bucket_number(int64_t m)
{
    int number = 0;
    for (int64_t bucket = matmul_bucket(m); bucket > 1; bucket /= 2)
        number++;
    return number;
}

/* Returns the most rows of a narrow choice. */
static int64_t narrow_rows(int bucket)
{
    return ((int64_t)3 << bucket) / 4;
}

const Choice *plan_choice(const tilus_matmul_plan *plan, int64_t m)
{
    int bucket = bucket_number(m);
    bool narrow = m <= narrow_rows(bucket) && plan->narrow[bucket].us > 0;
    return narrow ? &plan->narrow[bucket] : &plan->choices[bucket];
}

static Kernel *find(const tilus_matmul_plan *plan, const MatmulConfig *config,
                    MatmulProgram program)
{
    return kernel_find(plan->matmul, &plan->spec, config, program, plan->target);
}

static tilus_status describe_device(tilus_matmul_plan *plan)
{
    const tilus_rt *rt = plan->matmul->library.rt;
    int count = tilus_rt_device_count(rt), ordinal = plan->ordinal;
    if (ordinal < 0 || ordinal >= count)
        return library_fail(TILUS_ERROR_NO_DEVICE, "no CUDA device %d, the process has %d",
                            ordinal, count);
    const char *name = tilus_rt_device_name(rt, ordinal);
    int capability = tilus_rt_compute_capability(rt, ordinal);
    plan->target = target_name_for(capability);
    if (!plan->target)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "device %d (%s) has compute capability "
                            "%d.%d; kernels need 8.0", ordinal, name, capability / 10,
                            capability % 10);
    plan->device = matmul_device(name, capability, tilus_rt_multiprocessors(rt, ordinal),
                                 (int64_t)tilus_rt_shared_memory(rt, ordinal));
    return TILUS_OK;
}

static bool choose_config(const tilus_matmul_plan *plan, int64_t m, Choice *choice)
{
    MatmulChoice found;
    if (!matmul_table_config(plan->matmul->table, &plan->spec, plan->packed.rows, m,
                             &plan->device, &found))
        return false;
    choice->config = found.config;
    choice->source = found.source;
    choice->exact = found.exact;
    choice->us = found.us;
    choice->floor = matmul_floor(&plan->spec, m, &plan->device);
    return product_of(plan, choice, m).rows > 0;
}

/* Makes the narrow choice of a bucket, not of products of 8 bits: of tiles of 3/4 of the rows, where
 * the model says that they are faster. */
static void choose_narrow(tilus_matmul_plan *plan, int bucket)
{
    enum { TILES_STEP = 4, TILES_LEAST = 8 };   /* tiles of 48, 96 and 192 rows */
    Choice narrow = plan->choices[bucket];
    MatmulConfig *c = &narrow.config, wide = *c;
    int64_t m = narrow_rows(bucket);
    if (!matmul_by_wgmma(c) || matmul_is_a8(&plan->spec) || c->tiles < TILES_LEAST ||
        c->tiles % TILES_STEP)
        return;
    c->tiles = 3 * c->tiles / TILES_STEP;
    double us = matmul_cost(&plan->spec, c, m, &plan->device);
    double part = us / matmul_cost(&plan->spec, &wide, (int64_t)1 << bucket, &plan->device);
    narrow.us *= part;
    narrow.usual_us *= part;
    narrow.floor = matmul_floor(&plan->spec, m, &plan->device);
    narrow.source = MATMUL_FROM_MODEL;
    if (matmul_config_fits(&plan->spec, c, &plan->device) &&
        us < matmul_cost(&plan->spec, &wide, m, &plan->device))
        plan->narrow[bucket] = narrow;
}

static tilus_status choose_experts(tilus_matmul_plan *plan, int64_t n_tile)
{
    enum { WORD = 4 };
    if (!experts_choose(plan, (int)n_tile))
        return library_fail(TILUS_ERROR_UNSUPPORTED, "no configuration for experts runs on device "
                            "%d (%s)", plan->ordinal, plan->device.name);
    if (plan->packed.size / WORD > INT32_MAX)
        return library_refuse("problem: experts of %zu packed bytes each, more than %lld",
                              plan->packed.size, (long long)INT32_MAX * WORD);
    return TILUS_OK;
}

/* Refuses problems that only products by wgmma serve, where the device has none. */
static tilus_status check_hopper(const tilus_matmul_plan *plan)
{
    enum { HOPPER = 90 };
    const MatmulSpec *s = &plan->spec;
    const char *what = matmul_is_a8(s)                    ? "products of 8 bits"
                       : s->experts && s->batch_invariant ? "batch invariant products of experts"
                                                          : NULL;
    if (!what || plan->device.capability == HOPPER)
        return TILUS_OK;
    return library_fail(TILUS_ERROR_UNSUPPORTED, "device %d (%s) has compute capability %d.%d; "
                        "%s need 9.0", plan->ordinal, plan->device.name,
                        plan->device.capability / 10, plan->device.capability % 10, what);
}

static tilus_status choose(tilus_matmul_plan *plan, int64_t n_tile)
{
    tilus_status status = check_hopper(plan);
    if (status != TILUS_OK)
        return status;
    if (n_tile != 0 && n_tile != 32 && n_tile != 64 && n_tile != 128)
        return library_refuse("problem: n_tile is %" PRId64 ", not 0, 32, 64 or 128", n_tile);
    if (plan->spec.experts)
        return choose_experts(plan, n_tile);
    int rows = n_tile ? (int)n_tile
                      : matmul_table_rows(plan->matmul->table, &plan->spec, &plan->device);
    bool invariant = plan->spec.batch_invariant;
    plan->spec.batch_invariant = false;     /* the usual product comes first, to compare with */
    if (rows > 0)
        packed_place(&plan->packed, &plan->spec, rows);
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        if (rows == 0 || !choose_config(plan, (int64_t)1 << i, &plan->choices[i]))
            return library_fail(TILUS_ERROR_UNSUPPORTED, "no configuration for %d rows of A "
                                "runs on device %d (%s)", 1 << i, plan->ordinal,
                                plan->device.name);
    plan->spec.batch_invariant = invariant;
    if (invariant && !invariant_choose(plan))
        return library_fail(TILUS_ERROR_UNSUPPORTED, "no configuration for all rows of A runs on "
                            "device %d (%s)", plan->ordinal, plan->device.name);
    for (int i = 0; i < MATMUL_BUCKETS; i++) {
        matmul_arrange_in_blocks(&plan->spec, &plan->choices[i].config, &plan->device);
        choose_narrow(plan, i);
    }
    return TILUS_OK;
}

/* Finds the kernels of a choice for the strides of `spec`. False: out of memory. */
static bool find_products(const tilus_matmul_plan *plan, const MatmulSpec *spec,
                          const MatmulConfig *c, Kernel **prologue, Kernel **prepare,
                          Kernel **product)
{
    MatmulProgram by = matmul_program_of(spec, matmul_product_program(c));
    bool prepares = matmul_prepares(spec, c), normed = matmul_prepares_normed(spec, c);
    MatmulProgram before = normed ? matmul_normed_program(c)
                                  : matmul_program_of(spec, matmul_prepare_program(c));
    bool alone = spec->prologue && !matmul_fuses_prologue(spec, c) && !normed;
    if (alone)
        *prologue = kernel_find(plan->matmul, spec, c, MATMUL_NORM, plan->target);
    *product = kernel_find(plan->matmul, spec, c, by, plan->target);
    if (prepares)
        *prepare = kernel_find(plan->matmul, spec, c, before, plan->target);
    return *product && (!prepares || *prepare) && (!alone || *prologue);
}

/* Puts the kernels of a choice into `kernels`, in the order of their launches, and returns how many. */
static size_t choice_kernels(const Choice *c, Kernel *kernels[MATMUL_LAUNCHES])
{
    Kernel *const all[] = {c->prologue, c->find_tiles, c->prepare, c->product, c->last, c->combine};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) {
            assert(count < MATMUL_LAUNCHES);    /* experts, whose tiles are found, have no prologue */
            kernels[count++] = all[i];
        }
    return count;
}

bool choice_find(const tilus_matmul_plan *plan, Choice *c)
{
    MatmulSpec spec = plan->spec;
    const int64_t strides[MATMUL_LOOSER] = {matmul_vector(&spec), 1};
    bool ok = find_products(plan, &spec, &c->config, &c->prologue, &c->prepare, &c->product);
    if (spec.experts && matmul_by_wgmma(&c->config)) {
        c->find_tiles = find(plan, &c->config, MATMUL_FIND_TILES);
        ok = ok && c->find_tiles;
    }
    if (c->rest.tiles) {
        c->last = find(plan, &c->rest, MATMUL_WGMMA_LAST);
        ok = ok && c->last;
    }
    if (spec.combine && !matmul_combines(&c->config)) {
        c->combine = find(plan, &c->config, MATMUL_COMBINE);
        ok = ok && c->combine;
    }
    for (int i = 0; i < MATMUL_LOOSER && ok; i++) {
        spec.a_stride = strides[i];
        ok = find_products(plan, &spec, &c->config, &c->looser[i].prologue,
                           &c->looser[i].prepare, &c->looser[i].product);
    }
    return ok;
}

static tilus_status find_kernels(tilus_matmul_plan *plan)
{
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        if (!choice_find(plan, &plan->choices[i]) ||
            (plan->narrow[i].us > 0 && !choice_find(plan, &plan->narrow[i])))
            return library_fail_memory();
    plan->pack[false] = find(plan, &plan->choices->config, MATMUL_PACK_ACROSS);
    plan->pack[true] = find(plan, &plan->choices->config, MATMUL_PACK);
    bool ok = plan->pack[0] && plan->pack[1] && unpack_find(plan) && sort_find(plan);
    return ok ? TILUS_OK : library_fail_memory();
}

/* Makes a plan of plan->spec for `device`, as fill_plan does. */
static tilus_status make_plan(tilus_matmul_plan *plan, const tilus_matmul_problem *problem,
                              const MatmulDevice *device)
{
    if (device)
        plan->device = *device;
    tilus_status status = device ? TILUS_OK : describe_device(plan);
    if (status == TILUS_OK)
        status = choose(plan, problem->n_tile);
    if (status == TILUS_OK)
        status = find_kernels(plan);
    if (status == TILUS_OK && !device)
        status = dense_plan(plan);
    if (status == TILUS_OK)
        products_measure(plan);
    return status;
}

/* Fills in a plan for `device`, which need not be there; NULL: for the runtime's device. */
static tilus_status fill_plan(tilus_matmul_plan *plan, const tilus_matmul_problem *problem,
                              const MatmulDevice *device)
{
    char message[256];
    if (!matmul_spec(problem, &plan->spec, message, sizeof message))
        return library_fail(TILUS_ERROR_ARGUMENT, "problem: %s", message);
    if (device)
        return make_plan(plan, problem, device);
    if (plan_find(plan, problem->n_tile))
        return TILUS_OK;
    tilus_status status = make_plan(plan, problem, NULL);
    return status == TILUS_OK ? plan_keep(plan, problem->n_tile) : status;
}

static tilus_matmul_plan *new_plan(tilus_matmul *matmul, int ordinal)
{
    tilus_matmul_plan *plan = calloc(1, sizeof *plan);
    if (plan) {
        plan->matmul = matmul;
        plan->ordinal = ordinal;
        pthread_mutex_init(&plan->dense.lock, NULL);
    }
    return plan;
}

static tilus_status fill_fixed(tilus_matmul_plan *plan, const MatmulConfig *config)
{
    bool fits = plan->target && matmul_config_fits(&plan->spec, config, &plan->device);
    if (fits)
        packed_place(&plan->packed, &plan->spec, config->rows);
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        plan->choices[i] = (Choice){.config = *config, .source = MATMUL_FROM_USER};
    if (!fits || product_of(plan, plan->choices, 1).rows == 0)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "the configuration does not fit %s",
                            plan->device.name);
    tilus_status status = find_kernels(plan);
    if (status == TILUS_OK)
        products_measure(plan);
    return status;
}

/* Hands the plan to the caller, or frees it after a failure. */
static tilus_status hand_out(tilus_matmul_plan *plan, tilus_status status,
                             tilus_matmul_plan **out)
{
    *out = status == TILUS_OK ? plan : NULL;
    if (status != TILUS_OK)
        tilus_matmul_plan_free(plan);
    return status;
}

static tilus_status create(tilus_matmul_plan *plan, const tilus_matmul_problem *problem,
                           const MatmulDevice *device, tilus_matmul_plan **out)
{
    tilus_status status = plan ? fill_plan(plan, problem, device) : library_fail_memory();
    return hand_out(plan, status, out);
}

tilus_status tilus_matmul_plan_create(tilus_matmul *matmul, const tilus_matmul_problem *problem,
                                      int device, tilus_matmul_plan **out)
{
    tilus_matmul_problem own;
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    if (!matmul)
        return library_refuse_null(matmul);
    tilus_status status = LIBRARY_TAKE(tilus_matmul_problem, &own, problem, "problem");
    return status == TILUS_OK ? create(new_plan(matmul, device), &own, NULL, out) : status;
}

tilus_status plan_create_absent(tilus_matmul *matmul, const tilus_matmul_problem *problem,
                                const MatmulDevice *device, tilus_matmul_plan **out)
{
    tilus_matmul_plan *plan = new_plan(matmul, 0);
    if (plan)
        plan->target = target_name_for(device->capability);
    return create(plan, problem, device, out);
}

tilus_status plan_create_fixed(tilus_matmul *matmul, const MatmulSpec *spec,
                               const MatmulConfig *config, const MatmulDevice *device,
                               tilus_matmul_plan **out)
{
    tilus_matmul_plan *plan = new_plan(matmul, 0);
    if (plan) {
        plan->spec = *spec;
        plan->device = *device;
        plan->target = target_name_for(device->capability);
    }
    return hand_out(plan, plan ? fill_fixed(plan, config) : library_fail_memory(), out);
}

void tilus_matmul_plan_free(tilus_matmul_plan *plan)
{
    if (!plan)
        return;
    dense_free(plan);
    pthread_mutex_destroy(&plan->dense.lock);
    free(plan);
}

/* ---- descriptions --------------------------------------------------- */

static const char *const zero_names[] = {"none", "integer", "float"};
static const char *const source_names[] = {"by the given tunings", "by the built-in tunings",
                                           "by the cost model"};
static const char *const function_names[] = {"none", "silu", "gelu"};

static void describe_problem(FILE *out, const tilus_matmul_plan *plan)
{
    const MatmulSpec *s = &plan->spec;
    fprintf(out, "C[m, %" PRId64 "] %s = A[m, %" PRId64 "] %s x B %s, multiplied as %s%s\n",
            matmul_columns_of_c(s, s->n), dtype_name(s->result), s->k, dtype_name(s->activations),
            dtype_name(s->weights), dtype_name(s->product),
            s->wide_range ? " in its whole range" : "");
    fprintf(out, "scales %s of groups of %" PRId64 ", zero points %s, function %s%s%s%s%s\n",
            dtype_name(s->scales), s->group ? s->group * s->repeats : s->k,
            zero_names[s->zeros], function_names[s->function],
            s->gated ? " of a gate" : "", s->bias ? ", bias" : "",
            s->multiply ? ", times residual" : s->residual ? ", residual" : "",
            s->prologue ? ", A by RMS norm" : "");
    if (s->experts)
        fprintf(out, "%" PRId64 " experts, %" PRId64 " rows a token%s%s\n", s->experts, s->top,
                s->gather ? ", rows of A gathered" : "",
                s->combine ? ", rows of C combined" : s->scatter ? ", rows of C scattered" : "");
    fprintf(out, "device %d, %s, %d multiprocessors, %s\n", plan->ordinal, plan->device.name,
            plan->device.multiprocessors, plan->target);
    fprintf(out, "packed in blocks of %d x %d, %zu bytes %s\n", plan->packed.rows,
            MATMUL_PACKED_K, plan->packed.size, s->experts ? "an expert" : "in all");
}

static void describe_wgmma(FILE *out, const Choice *c, const Product *p, int64_t m, bool zeros)
{
    fprintf(out, "m = %" PRId64 ": by wgmma, tiles of %d x %d, ", m, c->config.warps_n * c->config.rows, 8 * c->config.tiles);
    if (c->last)
        fprintf(out, "of %d for last rows, ", 8 * c->rest.tiles);
    fprintf(out, "%d stages, scales on %s%s; %" PRId64 " blocks, ", c->config.stages,
            c->config.scale_weights ? "weights" : "sums", zeros ? ", zero points by mma" : "", p->blocks);
    if (p->tiles)
        fprintf(out, "%" PRId64 " tiles of rows at most\n", p->tiles);
    else if (matmul_parts(&c->config) > 1)
        fprintf(out, "clusters of %d have a tile, each block a part of k\n", matmul_parts(&c->config));
    else
        fprintf(out, "%" PRId64 " whole tiles of each\n", p->whole);
}

static void describe_tiles(FILE *out, const tilus_matmul_plan *plan, int64_t m)
{
    const Choice *c = plan_choice(plan, m);
    const Product p = product_of(plan, c, m);
    if (matmul_by_wgmma(&c->config)) {
        describe_wgmma(out, c, &p, m, matmul_zeros_by_mma(&plan->spec, &c->config));
        return;
    }
    fprintf(out, "m = %" PRId64 ": %d x %d warps, %d k-tiles a stage, %d stages, %d tiles of %d "
            "columns%s%s%s; %" PRId64 " blocks for %" PRId64 " rows at once\n", m,
            c->config.warps_n, c->config.warps_k, c->config.stage_k_tiles, c->config.stages,
            c->config.tiles, c->config.columns,
            matmul_zeros_by_mma(&plan->spec, &c->config) ? ", zero points by mma" : "",
            c->config.register_reallocation ? ", register reallocation" : "",
            matmul_has_digits(&plan->spec, &c->config)  ? ", A arranged in blocks as digits"
            : matmul_combines(&c->config)           ? ", rows of a token combined in blocks"
            : matmul_arranges_in_blocks(&c->config) ? ", A arranged in blocks"
                                                    : "",
            p.blocks, p.rows);
}

static void describe_invariance(FILE *out, const tilus_matmul_plan *plan, const Choice *c)
{
    fprintf(out, "batch invariant");
    if (matmul_by_wgmma(&c->config))
        fprintf(out, ", %d parts of k", matmul_split(&plan->spec));
    numeral_print(out, ": %.2f times as long as without\n", c->us / c->usual_us);
}

static void describe_product(FILE *out, const tilus_matmul_plan *plan, int64_t m)
{
    const Choice *c = plan_choice(plan, m);
    describe_tiles(out, plan, m);
    bool like = c->source != MATMUL_FROM_MODEL && !c->exact;
    numeral_print(out, "%s%s: %.1f us for %d rows, where reading alone takes %.1f us\n",
                  source_names[c->source], like ? " of similar products" : "", c->us,
                  c == &plan->narrow[bucket_number(m)] ? (int)narrow_rows(bucket_number(m))
                                                       : (int)matmul_bucket(m), c->floor);
    if (c->usual_us > 0)
        describe_invariance(out, plan, c);
    Kernel *kernels[MATMUL_LAUNCHES];
    size_t count = choice_kernels(c, kernels);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? ", " : "launches ", kernels[i]->name);
    fputc('\n', out);
}

char *tilus_matmul_describe(const tilus_matmul_plan *plan, int64_t m)
{
    char *text = NULL;
    size_t size;
    FILE *out = plan ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    describe_problem(out, plan);
    if (m < 1 || m > MATMUL_M_MAX)
        fprintf(out, "m = %" PRId64 ": not 1 to %d\n", m, MATMUL_M_MAX);
    else if (dense_serves(plan, m))
        fprintf(out, "m = %" PRId64 ": from %d rows on by cuBLAS, after %s\n", m,
                MATMUL_DENSE_M, unpack_kernel(plan, plan->spec.product)->name);
    else
        describe_product(out, plan, m);
    if (m >= 1 && m <= MATMUL_M_MAX)
        fprintf(out, "workspace of %zu bytes\n", tilus_matmul_workspace_size(plan, m));
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- kernels that it needs ---------------------------------------------- */

enum { KERNELS_MAX = 5 * MATMUL_BUCKETS + 5 + MATMUL_SORTS };

typedef struct KernelList {
    const Kernel *items[KERNELS_MAX];
    size_t count;
} KernelList;

static void add_kernel(KernelList *list, const Kernel *kernel)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == kernel)
            return;
    assert(list->count < KERNELS_MAX);
    list->items[list->count++] = kernel;
}

static void add_choice(KernelList *list, const Choice *c)
{
    Kernel *kernels[MATMUL_LAUNCHES];
    size_t count = choice_kernels(c, kernels);
    for (size_t i = 0; i < count; i++)
        add_kernel(list, kernels[i]);
}

static void add_sort(KernelList *list, const tilus_matmul_plan *plan, int64_t m)
{
    Kernel *kernels[MATMUL_SORT_LAUNCHES];
    size_t count = sort_kernels(plan, m, kernels);
    for (size_t i = 0; i < count; i++)
        add_kernel(list, kernels[i]);
}

static KernelList list_kernels(const tilus_matmul_plan *plan, int64_t m)
{
    KernelList list = {.count = 0};
    if (m < 1) {
        add_kernel(&list, plan->pack[true]);
        add_kernel(&list, plan->pack[false]);
        for (int i = 0; i < MATMUL_UNPACKS; i++)
            if (plan->unpack[i])
                add_kernel(&list, plan->unpack[i]);
        return list;
    }
    bool dense = false;
    int64_t most = m < MATMUL_M_MAX ? m : MATMUL_M_MAX;
    for (int64_t bucket = 1; bucket <= MATMUL_M_MAX && bucket < 2 * most; bucket *= 2) {
        dense = dense || dense_may_serve(plan, bucket);
        if (!dense_serves(plan, bucket)) {
            add_choice(&list, plan_choice(plan, bucket));
            add_choice(&list, plan_choice(plan, bucket / 2 + 1));
        }
        add_sort(&list, plan, bucket);
    }
    if (dense)
        add_kernel(&list, unpack_kernel(plan, plan->spec.product));
    return list;
}

char *tilus_matmul_kernels(const tilus_matmul_plan *plan, int64_t m)
{
    char *text = NULL;
    size_t size;
    FILE *out = plan ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const KernelList list = list_kernels(plan, m);
    for (size_t i = 0; i < list.count; i++)
        fprintf(out, "%s\t%s\t%s\n", list.items[i]->name,
                list.items[i]->program, list.items[i]->parameters);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Prepares kernels that are launched in this order, and joins them where that saves time. */
static tilus_status prepare_kernels(const tilus_matmul_plan *plan, Kernel *const kernels[],
                                    size_t count, KernelHaste haste)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        status = kernel_prepare(kernels[i], plan->ordinal);
    bool joins = status == TILUS_OK && haste == KERNEL_HOST_FAST && count > 1;
    return joins ? kernels_join(kernels, count) : status;
}

tilus_status tilus_matmul_prepare(tilus_matmul_plan *plan, int64_t m)
{
    if (!plan)
        return library_refuse_null(plan);
    if (m < 1 || m > MATMUL_M_MAX)
        return library_refuse("m is %" PRId64 ", not 1 to %d", m, MATMUL_M_MAX);
    if (dense_serves(plan, m))
        return dense_prepare(plan);
    const Choice *c = plan_choice(plan, m);
    Kernel *kernels[MATMUL_LAUNCHES];
    _Static_assert((int)MATMUL_LAUNCHES <= (int)TILUS_SEQUENCE_KERNELS, "a product is a sequence");
    size_t count = choice_kernels(c, kernels);
    tilus_status status = prepare_kernels(plan, kernels, count, choice_haste(c));
    Kernel *sort[MATMUL_SORT_LAUNCHES];
    size_t sorting = sort_kernels(plan, m, sort);
    return status == TILUS_OK ? prepare_kernels(plan, sort, sorting, KERNEL_FIRST_EARLY) : status;
}
