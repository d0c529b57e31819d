/* Runs: the launches of a product of some rows, and their arguments.
 *
 * The workspace, each part at a multiple of 256 bytes:
 *
 *     flags           i32[columns, blocks]                 semaphores, in a fixed area
 *     plain A         [m, k], after a prologue that has a launch of its own
 *     prearranged A   u32[columns, slices, TILES, ..]      as @prepare lays it out
 *                     T[m, 128 * slices]                   as @arrange and @quantize do
 *     partial sums    f32[columns, blocks, TILE_N, ..]     of tiles that blocks share
 *     list            i32[kinds, tiles, 4]                 of rows of experts
 *     results         [m, n], before rows of a token are combined
 *     scales of rows  f32[m], of A in 8 bits
 *
 * where `columns` counts tiles of 8 * TILES rows of A. So many rows that the semaphores do
 * not suffice are several products, one after the other. */
#include "matmul/internal.h"

#include "support/integer.h"

#include <assert.h>
#include <inttypes.h>

/* ---- the workspace ---------------------------------------------------------- */

/* Puts `bytes` at the workspace's end. */
static size_t place(size_t *size, int64_t bytes)
{
    size_t at = *size;
    *size += round_up_size((size_t)bytes, MATMUL_ALIGN);
    return at;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Places A after a prologue that its order does not do. */
static void place_plain_a(const tilus_matmul_plan *plan, Product *p, int64_t m)
{
    const MatmulSpec *s = &plan->spec;
    const MatmulConfig *c = &p->choice->config;
    bool alone = s->prologue && !matmul_fuses_prologue(s, c) && !matmul_prepares_normed(s, c);
    int64_t bytes = at_most(p->rows, m) * s->k * dtype_bits(s->activations) / 8;
    p->plain_a = place(&p->size, alone ? bytes : 0);
}

/* Returns the columns of one launch: with a flag for each block where blocks share tiles, and an
 * even number, so that the rows after them begin at a multiple of 16 bytes. */
static int64_t columns_of(const Product *p, int64_t columns)
{
    int64_t most = TILUS_MATMUL_SEMAPHORES / (int64_t)sizeof(int32_t) / p->blocks / 2 * 2;
    return p->shares_tiles ? at_most(columns, most) : columns;
}

/* Gives blocks as many whole tiles as all can have, of `tiles` in all, and shares out the parts of
 * the others, whose sums pass through memory. */
static void share_parts(Product *p, int64_t tiles, int split, int64_t tile_bytes)
{
    p->whole = tiles / p->blocks;
    p->share = (tiles - p->whole * p->blocks) * split / p->blocks;
    p->extra = (tiles - p->whole * p->blocks) * split % p->blocks;
    p->shares_tiles = split > 1;
    p->partials = place(&p->size, split > 1 ? 2 * p->blocks * tile_bytes : 0);
}

/* Gives blocks as many whole tiles as all can have, but one, and shares out the iterations that are
 * left. */
static void share_iterations(Product *p, int64_t tiles, int64_t slices, int64_t tile_bytes)
{
    p->whole = tiles / p->blocks - 1;
    p->whole = p->whole < 0 ? 0 : p->whole;
    int64_t shared = (tiles - p->whole * p->blocks) * slices;
    p->share = shared / p->blocks;
    p->extra = shared % p->blocks;
    p->shares_tiles = p->extra > 0 || p->share % slices > 0;
    p->partials = place(&p->size, p->blocks * tile_bytes);      /* always, to grow with m */
}

/* Gives blocks whole tiles alone, where few rounds of nearly all blocks have them: blocks that are at
 * different places of k share nothing in the L2 cache. Or one to as many as there are tiles. */
static void prefer_whole_tiles(Product *p, int64_t tiles, bool leaves_idle)
{
    enum { ROUNDS_MOST = 8, BUSY = 15, OF = 16 };
    int64_t rounds = (tiles - 1) / p->blocks + 1, blocks = tiles / rounds;
    bool busy = rounds > 1 && rounds <= ROUNDS_MOST && tiles % rounds == 0 && blocks * OF >= p->blocks * BUSY;
    if (!busy && !(rounds == 1 && leaves_idle))
        return;
    p->blocks = blocks;
    p->whole = rounds;
    p->share = p->extra = 0;
    p->shares_tiles = false;
}

/* Gives each tile of C a cluster of blocks. */
static void give_clusters(Product *p, int64_t tiles, int parts)
{
    p->blocks = tiles * parts;
    p->whole = 1;
    p->share = p->extra = 0;
    p->shares_tiles = false;
}

/* Returns the product by wgmma of up to `m` rows. Iterations of a block are below 2^31. Until the end
 * blocks are clusters, and tiles are those of all blocks of one. */
static Product wgmma_product_of(const tilus_matmul_plan *plan, const Choice *choice, int64_t m)
{
    enum { ITERATIONS_MOST = 1 << 30, BLOCKS_MOST = 65535 };
    const MatmulConfig *c = &choice->config;
    int cluster = matmul_cluster(&plan->spec, c), parts = matmul_parts(c);
    int64_t tile = 8 * c->tiles, slices = plan->packed.slices;
    int64_t columns = ceil_div_i64(matmul_iterations(&plan->spec, c) / slices, cluster);
    int64_t iterations = columns * slices, tile_bytes = (int64_t)cluster * c->warps_n * c->rows * tile * 4;
    int64_t tiles = at_most((m - 1) / tile + 1, parts > 1 ? BLOCKS_MOST / (columns * parts)
                                                          : ITERATIONS_MOST / iterations);
    Product p = {.choice = choice, .size = TILUS_MATMUL_SEMAPHORES, .rows = tiles * tile};
    tiles = (at_most(p.rows, m) - 1) / tile + 1;
    int split = matmul_split(&plan->spec);
    int64_t clusters = plan->device.multiprocessors / cluster;
    p.blocks = at_most(clusters > 0 ? clusters : 1,
                       split ? tiles * columns * split : tiles * iterations);
    int64_t bytes = dtype_bits(plan->spec.product) / 8;
    place_plain_a(plan, &p, m);
    p.prearranged_a = place(&p.size, at_most(p.rows, m) * slices * matmul_arranged_k(&plan->spec, c) * bytes);
    p.row_scales = place(&p.size, matmul_is_a8(&plan->spec) ? at_most(p.rows, m) * 4 : 0);
    if (parts > 1)
        give_clusters(&p, tiles * columns, parts);
    else if (split)
        share_parts(&p, tiles * columns, split, tile_bytes);
    else
        share_iterations(&p, tiles * columns, slices, tile_bytes);
    if (parts == 1 && !split && !matmul_is_a8(&plan->spec))
        prefer_whole_tiles(&p, tiles * columns,
                           matmul_leaves_blocks_idle(&plan->spec, c, tiles * columns * cluster,
                                                     plan->device.multiprocessors));
    p.blocks *= cluster;
    return p;
}

enum { LIST_LINE = 4 * sizeof(int32_t) };       /* of the list of tiles */

/* Returns 2 where the last rows of experts are tiles of their own. */
static int64_t kinds_of(const Choice *choice)
{
    return choice->rest.tiles ? 2 : 1;
}

/* Returns the product of rows of several experts. Only the device knows how many tiles of rows there
 * are: blocks are as many as the most tiles keep busy. By wgmma they have whole tiles. */
static Product experts_product_of(const tilus_matmul_plan *plan, const Choice *choice, int64_t m)
{
    const MatmulConfig *c = &choice->config;
    const MatmulSpec *s = &plan->spec;
    int64_t slices = plan->packed.slices, tiles = experts_tiles(plan, m, 8 * c->tiles);
    bool wgmma = matmul_by_wgmma(c);
    int64_t panels = tiles * c->tiles * matmul_packed_form(s, c->rows, c->columns).panel;
    int64_t tile_n = (int64_t)c->warps_n * c->rows, all = tiles * ceil_div_i64(s->n, tile_n);
    int64_t blocks = matmul_combines(c) ? matmul_combined_blocks(s, c, m / s->top)
                                        : at_most((int64_t)c->per_sm * plan->device.multiprocessors, all);
    Product p = {.choice = choice, .size = TILUS_MATMUL_SEMAPHORES, .rows = m, .tiles = tiles,
                 .blocks = blocks, .shares_tiles = !wgmma && !matmul_combines(c)};
    p.prearranged_a = place(&p.size, wgmma ? m * slices * MATMUL_PACKED_K * 2 : slices * panels);
    p.list = place(&p.size, kinds_of(choice) * tiles * LIST_LINE);
    p.partials = place(&p.size, wgmma ? 0 : blocks * tile_n * 8 * c->tiles * 4);
    p.results = place(&p.size, s->combine ? m * s->n * dtype_bits(s->result) / 8 : 0);
    return p;
}

Product product_of(const tilus_matmul_plan *plan, const Choice *choice, int64_t m)
{
    const MatmulConfig *c = &choice->config;
    const MatmulSpec *s = &plan->spec;
    if (s->experts)
        return experts_product_of(plan, choice, m);
    if (matmul_by_wgmma(c))
        return wgmma_product_of(plan, choice, m);
    int64_t slices = plan->packed.slices, iterations = matmul_iterations(s, c);
    Product p = {.choice = choice, .size = TILUS_MATMUL_SEMAPHORES,
                 .blocks = matmul_blocks(s, c, plan->device.multiprocessors)};
    p.share = iterations / p.blocks;
    p.extra = iterations % p.blocks;
    int64_t tiles = (s->n - 1) / (c->warps_n * c->rows) + 1;
    p.shares_tiles = p.extra > 0 || p.share % (iterations / tiles) > 0;
    int64_t columns = columns_of(&p, (m - 1) / (8 * c->tiles) + 1);
    int64_t partials = p.shares_tiles ? columns * p.blocks * c->warps_n * c->rows : 0;
    p.rows = columns * 8 * c->tiles;
    int64_t panel = matmul_packed_form(s, c->rows, c->columns).panel;
    place_plain_a(plan, &p, m);
    p.prearranged_a = place(&p.size,
                            matmul_prepares(s, c) ? columns * slices * c->tiles * panel : 0);
    p.partials = place(&p.size, partials * c->columns * c->tiles * 4);
    return p;
}

/* Returns the bytes of workspace that products of `m` rows take. */
static size_t size_for(const tilus_matmul_plan *plan, int64_t m)
{
    return dense_serves(plan, m) ? dense_workspace(plan)
                                 : product_of(plan, plan_choice(plan, m), m).size;
}

void products_measure(tilus_matmul_plan *plan)
{
    size_t most = 0;
    for (int i = 0; i < MATMUL_BUCKETS; i++) {
        size_t size = size_for(plan, (int64_t)1 << i);
        most = size > most ? size : most;
        plan->largest[i] = most;
    }
}

/* Returns the most that products of any rows up to `m` need, so that the size grows with m. */
size_t tilus_matmul_workspace_size(const tilus_matmul_plan *plan, int64_t m)
{
    m = at_most(m, MATMUL_M_MAX);
    if (!plan || m < 1)
        return 0;
    int bucket = bucket_number(m);
    size_t most = size_for(plan, m);
    return bucket > 0 && plan->largest[bucket - 1] > most ? plan->largest[bucket - 1] : most;
}

/* ---- checks ------------------------------------------------------------- */

static tilus_status check_memory(const tilus_matmul_plan *plan, const tilus_matmul_call *call)
{
    const MatmulSpec *s = &plan->spec;
    const Address all[] = {
        {"call: a", call->a, 16, true},
        {"call: weights", call->weights, MATMUL_ALIGN, true},
        {"call: bias", call->bias, 16, s->bias},
        {"call: residual", call->residual, 16, s->residual},
        {"call: c", call->c, 16, true},
        {"call: offsets", call->offsets, 4, s->experts > 0},
        {"call: ids", call->ids, 4, s->gather || s->scatter},
        {"call: route", call->route, 4, s->combine},
        {"call: a_scales", call->a_scales, 4, matmul_has_a_scales(s)},
        {"call: norm", call->norm, 16, s->prologue == TILUS_PROLOGUE_RMS_NORM},
    };
    const CallMemory memory = {all, sizeof all / sizeof *all, "call: workspace", call->workspace,
                               call->workspace_size};
    return library_check_memory(&memory, tilus_matmul_workspace_size(plan, call->m),
                                "; %" PRId64 " rows need", call->m);
}

static tilus_status check_call(const tilus_matmul_plan *plan, const tilus_matmul_call *call)
{
    int64_t k = plan->spec.k;
    if (call->m < 0 || call->m > MATMUL_M_MAX)
        return library_refuse("call: m is %" PRId64 ", not 0 to %d", call->m, MATMUL_M_MAX);
    if (call->m == 0)
        return TILUS_OK;
    if (plan->spec.experts && call->m % plan->spec.top)
        return library_refuse("call: m is %" PRId64 ", not a multiple of the problem's top, %"
                              PRId64, call->m, plan->spec.top);
    if (call->a_stride != 0 && (call->a_stride < k || call->a_stride > MATMUL_STRIDE_MAX))
        return library_refuse("call: a_stride is %" PRId64 ", not 0 or k, %" PRId64 ", to %d",
                              call->a_stride, k, MATMUL_STRIDE_MAX);
    if (call->weights_identity && call->weights_identity != plan->packed.identity)
        return library_refuse("call: weights_identity is 0x%016" PRIx64 ", that of the plan's "
                              "packed weights 0x%016" PRIx64, call->weights_identity,
                              plan->packed.identity);
    return check_memory(plan, call);
}

/* ---- launches ----------------------------------------------------------- */

void set_weights(KernelLaunch *l, const tilus_matmul_plan *plan, uint64_t weights)
{
    const Packed *p = &plan->packed;
    l->args[MATMUL_ARGUMENT_weights].pointer = weights;
    l->args[MATMUL_ARGUMENT_scales].pointer = weights + p->scales;
    l->args[MATMUL_ARGUMENT_zeros].pointer = weights + (p->factor ? p->factor : p->zeros);
    l->args[MATMUL_ARGUMENT_n].integer = plan->spec.n;
    l->args[MATMUL_ARGUMENT_k].integer = plan->spec.k;
    l->args[MATMUL_ARGUMENT_slices].integer = p->slices;
}

/* The rows of a call that one product takes. */
typedef struct Piece {
    uint64_t a, a_scales, residual, c;
    int64_t m, stride;
} Piece;

static Piece piece_of(const tilus_matmul_plan *plan, const tilus_matmul_call *call,
                      const Product *p, int64_t first)
{
    const MatmulSpec *s = &plan->spec;
    int64_t stride = call->a_stride ? call->a_stride : s->k;
    uint64_t a = (uint64_t)(first * stride * dtype_bits(s->activations) / 8);
    uint64_t c = (uint64_t)(first * matmul_columns_of_c(s, s->n) * dtype_bits(s->result) / 8);
    uint64_t to = (p->choice->combine ? call->workspace + p->results : call->c) + c;
    return (Piece){.a = call->a + a, .c = to, .stride = stride,
                   .a_scales = call->a_scales + (uint64_t)first * sizeof(float),
                   .residual = s->residual && !p->choice->combine ? call->residual + c : call->weights,
                   .m = at_most(p->rows, call->m - first)};
}

/* Sets A as the caller has it, and pre-arranged. */
static void set_activations(KernelLaunch *l, const Piece *piece, uint64_t prearranged)
{
    l->args[MATMUL_ARGUMENT_a].pointer = piece->a;
    l->args[MATMUL_ARGUMENT_prearranged].pointer = prearranged;
    l->args[MATMUL_ARGUMENT_m].integer = piece->m;
    l->args[MATMUL_ARGUMENT_stride].integer = piece->stride;
}

/* Sets what tells rows of experts, whose packed weights have fewer than 2^31 words each (a plan
 * checks it). Without ids kernels get offsets in their place, and do not read them. */
static void set_experts(KernelLaunch *l, const tilus_matmul_plan *plan, const Product *p,
                        const tilus_matmul_call *call)
{
    enum { WORD = 4 };
    l->args[MATMUL_ARGUMENT_offsets].pointer = call->offsets;
    l->args[MATMUL_ARGUMENT_ids].pointer = call->ids ? call->ids : call->offsets;
    l->args[MATMUL_ARGUMENT_experts].integer = plan->spec.experts;
    l->args[MATMUL_ARGUMENT_packed].integer = (int64_t)plan->packed.size / WORD;
    l->args[MATMUL_ARGUMENT_route].pointer = call->route;
    l->args[MATMUL_ARGUMENT_top].integer = plan->spec.top;
    l->args[MATMUL_ARGUMENT_tiles].integer = p->tiles;
    l->args[MATMUL_ARGUMENT_list].pointer = call->workspace + p->list;
}

/* Sets rows of A that tensor copies read: the caller's, or those that a program wrote. Of products of 8
 * bits also their scales. */
static void set_rows(KernelLaunch *l, const tilus_matmul_plan *plan, const Product *p,
                     const Piece *piece, const tilus_matmul_call *call)
{
    const MatmulConfig *c = &p->choice->config;
    l->args[MATMUL_ARGUMENT_row_scales].pointer = matmul_has_a_scales(&plan->spec)
                                                      ? piece->a_scales
                                                      : call->workspace + p->row_scales;
    if (!matmul_by_wgmma(c) || l->kernel == p->choice->prepare)
        return;
    int64_t slices = plan->packed.slices;
    bool direct = !p->choice->prepare;
    l->args[MATMUL_ARGUMENT_prearranged].pointer = direct ? piece->a
                                                          : call->workspace + p->prearranged_a;
    l->args[MATMUL_ARGUMENT_k].integer = direct ? plan->spec.k : slices * MATMUL_PACKED_K;
    l->args[MATMUL_ARGUMENT_stride].integer =
        direct ? piece->stride : slices * matmul_arranged_k(&plan->spec, c);
}

static KernelLaunch find_tiles_launch(const tilus_matmul_plan *plan, const Product *p,
                                      const tilus_matmul_call *call)
{
    KernelLaunch l = {.kernel = p->choice->find_tiles};
    set_experts(&l, plan, p, call);
    l.args[MATMUL_ARGUMENT_kinds].integer = kinds_of(p->choice);
    l.args[MATMUL_ARGUMENT_rest].integer = 8 * p->choice->rest.tiles;
    return l;
}

/* Sets what a prologue needs beside rows of A. */
static void set_prologue(KernelLaunch *l, const tilus_matmul_plan *plan,
                         const tilus_matmul_call *call)
{
    l->args[MATMUL_ARGUMENT_norm].pointer = call->norm;
    l->args[MATMUL_ARGUMENT_eps].real = plan->spec.eps;
}

static KernelLaunch prologue_launch(const tilus_matmul_plan *plan, const Product *p,
                                    const Piece *piece, const tilus_matmul_call *call)
{
    KernelLaunch l = {.kernel = p->choice->prologue};
    set_activations(&l, piece, 0);
    set_prologue(&l, plan, call);
    l.args[MATMUL_ARGUMENT_to].pointer = call->workspace + p->plain_a;
    l.args[MATMUL_ARGUMENT_k].integer = plan->spec.k;
    return l;
}

static KernelLaunch prepare_launch(const tilus_matmul_plan *plan, const Product *p,
                                   const Piece *piece, const tilus_matmul_call *call)
{
    KernelLaunch l = {.kernel = p->choice->prepare};
    set_weights(&l, plan, call->weights);
    set_activations(&l, piece, call->workspace + p->prearranged_a);
    set_prologue(&l, plan, call);
    set_experts(&l, plan, p, call);
    set_rows(&l, plan, p, piece, call);
    return l;
}

/* Tensors that the problem has not, and no kernel reads, are the weights, the kernels' first argument:
 * a wrong address is told of the argument that the caller gave it for. */
static KernelLaunch matmul_launch(const tilus_matmul_plan *plan, const Product *p,
                                  const Piece *piece, const tilus_matmul_call *call)
{
    KernelLaunch l = {.kernel = p->choice->product};
    set_weights(&l, plan, call->weights);
    set_activations(&l, piece, call->workspace + p->prearranged_a);
    l.args[MATMUL_ARGUMENT_flags].pointer = call->workspace;
    l.args[MATMUL_ARGUMENT_partials].pointer = call->workspace + p->partials;
    l.args[MATMUL_ARGUMENT_bias].pointer = plan->spec.bias ? call->bias : call->weights;
    l.args[MATMUL_ARGUMENT_residual].pointer = piece->residual;
    l.args[MATMUL_ARGUMENT_c].pointer = piece->c;
    l.args[MATMUL_ARGUMENT_blocks].integer = p->blocks;
    l.args[MATMUL_ARGUMENT_whole].integer = p->whole;
    l.args[MATMUL_ARGUMENT_share].integer = p->share;
    l.args[MATMUL_ARGUMENT_extra].integer = p->extra;
    set_prologue(&l, plan, call);
    set_experts(&l, plan, p, call);
    set_rows(&l, plan, p, piece, call);
    return l;
}

/* Makes the launch for the last rows of experts from that for the others: each expert has a tile at most. */
static KernelLaunch last_launch(const tilus_matmul_plan *plan, const Product *p, const KernelLaunch *others)
{
    const MatmulSpec *s = &plan->spec;
    const MatmulConfig *c = &p->choice->rest;
    int64_t columns = ceil_div_i64(s->n, (int64_t)c->warps_n * c->rows);
    KernelLaunch l = *others;
    l.kernel = p->choice->last;
    l.args[MATMUL_ARGUMENT_list].pointer += (uint64_t)(p->tiles * LIST_LINE);
    l.args[MATMUL_ARGUMENT_blocks].integer = at_most(plan->device.multiprocessors, p->tiles * columns);
    return l;
}

static KernelLaunch combine_launch(const tilus_matmul_plan *plan, const Product *p,
                                   const tilus_matmul_call *call)
{
    KernelLaunch l = {.kernel = p->choice->combine};
    l.args[MATMUL_ARGUMENT_rows].pointer = call->workspace + p->results;
    l.args[MATMUL_ARGUMENT_route].pointer = call->route;
    l.args[MATMUL_ARGUMENT_residual].pointer = plan->spec.residual
                                                     ? call->residual
                                                     : call->workspace + p->results;
    l.args[MATMUL_ARGUMENT_c].pointer = call->c;
    l.args[MATMUL_ARGUMENT_tokens].integer = call->m / plan->spec.top;
    l.args[MATMUL_ARGUMENT_n].integer = plan->spec.n;
    l.args[MATMUL_ARGUMENT_top].integer = plan->spec.top;
    return l;
}

size_t product_launches(const tilus_matmul_plan *plan, const tilus_matmul_call *call,
                        const Product *p, int64_t first, KernelLaunch launches[MATMUL_LAUNCHES])
{
    Piece piece = piece_of(plan, call, p, first);
    size_t count = 0;
    if (p->choice->prologue) {
        launches[count++] = prologue_launch(plan, p, &piece, call);
        piece.a = call->workspace + p->plain_a;
        piece.stride = plan->spec.k;
    }
    if (p->choice->find_tiles)
        launches[count++] = find_tiles_launch(plan, p, call);
    if (p->choice->prepare)
        launches[count++] = prepare_launch(plan, p, &piece, call);
    launches[count++] = matmul_launch(plan, p, &piece, call);
    if (p->choice->last) {
        launches[count] = last_launch(plan, p, &launches[count - 1]);
        count++;
    }
    if (p->choice->combine)
        launches[count++] = combine_launch(plan, p, call);
    return count;
}

tilus_status launches_run(const tilus_matmul_plan *plan, const KernelLaunch *launches, size_t count,
                          tilus_stream stream, KernelHaste haste)
{
    return kernel_library_launch(&plan->matmul->library, plan->ordinal, stream, launches, count,
                                 haste);
}

Choice call_choice(const tilus_matmul_plan *plan, const tilus_matmul_call *call)
{
    const MatmulSpec *s = &plan->spec;
    Choice choice = *plan_choice(plan, call->m);
    int divisor = matmul_divisor(s, call->a_stride);
    if (divisor < matmul_divisor(s, s->a_stride)) {
        int looser = divisor == 1;
        choice.prologue = choice.looser[looser].prologue;
        choice.prepare = choice.looser[looser].prepare;
        choice.product = choice.looser[looser].product;
    }
    return choice;
}

KernelHaste choice_haste(const Choice *choice)
{
    const double host_us = 10;      /* of two launches and the rest of a call from Python */
    return choice->us < host_us ? KERNEL_HOST_FAST : KERNEL_FIRST_EARLY;
}

/* Enqueues a call that was checked. */
static tilus_status run(tilus_matmul_plan *plan, tilus_stream stream,
                        const tilus_matmul_call *call)
{
    KernelLaunch launches[MATMUL_LAUNCHES];
    tilus_status status = TILUS_OK;
    if (call->m == 0)
        return TILUS_OK;
    if (dense_serves(plan, call->m))
        return dense_run(plan, stream, call);
    const Choice choice = call_choice(plan, call);
    const Product p = product_of(plan, &choice, call->m);
    for (int64_t first = 0; first < call->m && status == TILUS_OK; first += p.rows) {
        size_t count = product_launches(plan, call, &p, first, launches);
        status = launches_run(plan, launches, count, stream, choice_haste(&choice));
    }
    return status;
}

tilus_status tilus_matmul_run(tilus_matmul_plan *plan, tilus_stream stream,
                              const tilus_matmul_call *call)
{
    tilus_matmul_call own;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = LIBRARY_TAKE(tilus_matmul_call, &own, call, "call");
    if (status == TILUS_OK)
        status = check_call(plan, &own);
    return status == TILUS_OK ? run(plan, stream, &own) : status;
}

/* ---- packing on the device ---------------------------------------------- */

KernelLaunch pack_launch(const tilus_matmul_plan *plan, const tilus_matmul_weights *weights,
                         uint64_t packed)
{
    const void *zeros = weights->zeros    ? weights->zeros
                        : weights->factor ? weights->factor
                                          : weights->scales;
    KernelLaunch l = {.kernel = plan->pack[weights->transposed]};
    set_weights(&l, plan, packed);
    l.args[MATMUL_ARGUMENT_plain].pointer = (uint64_t)(uintptr_t)weights->codes;
    l.args[MATMUL_ARGUMENT_plain_scales].pointer = (uint64_t)(uintptr_t)weights->scales;
    l.args[MATMUL_ARGUMENT_plain_zeros].pointer = (uint64_t)(uintptr_t)zeros;
    return l;
}

tilus_status tilus_matmul_pack_device(tilus_matmul_plan *plan, tilus_stream stream,
                                      const tilus_matmul_weights *weights, uint64_t packed)
{
    tilus_matmul_weights own;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = weights_take(plan, weights, &own);
    if (status == TILUS_OK)
        status = library_check_address("packed", packed, MATMUL_ALIGN);
    if (status != TILUS_OK)
        return status;
    const KernelLaunch l = pack_launch(plan, &own, packed);
    const Packed *p = &plan->packed;
    status = launches_run(plan, &l, 1, stream, KERNEL_FIRST_EARLY);
    if (status != TILUS_OK)
        return status;
    return tilus_rt_enqueue_upload(plan->matmul->library.rt, plan->ordinal, stream,
                                   packed + p->size - sizeof p->bytes, p->bytes,
                                   sizeof p->bytes);
}
