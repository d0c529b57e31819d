/* Gradients: their workspace, checks and launches. */
#include "attention/internal.h"

static size_t aligned(int64_t size)
{
    return ((size_t)size + ATTENTION_ALIGN - 1) & ~(size_t)(ATTENTION_ALIGN - 1);
}

/* Offsets in the workspace, bytes: f32 logs and delta, of the rows of all tiles of q, then sums of
 * dq. */
typedef struct Areas {
    size_t delta, sums, size;       /* logs begin at 0 */
} Areas;

static Areas areas_of(const tilus_attention_plan *plan, const tilus_attention_shape *s)
{
    const tilus_attention_problem *p = &plan->problem;
    if (!p->gradients)
        return (Areas){0};
    int64_t tile = p->dim + p->value_dim <= 128 ? 128 : 64;     /* BM of the kernels */
    int64_t tiles = p->ragged ? s->queries / tile + s->batch
                              : (s->queries + tile - 1) / tile * s->batch;
    int64_t rows = p->heads * tiles * tile * (int64_t)sizeof(float);
    size_t delta = aligned(rows), sums = 2 * delta;
    return (Areas){delta, sums, sums + aligned(rows * p->dim)};
}

tilus_status tilus_attention_backward_workspace_size(const tilus_attention_plan *plan,
                                                     const tilus_attention_shape *shape,
                                                     size_t *out)
{
    tilus_attention_shape own;
    if (!out)
        return library_refuse_null(out);
    *out = 0;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = attention_take_shape(plan, shape, &own);
    *out = status == TILUS_OK ? areas_of(plan, &own).size : 0;
    return status;
}

static tilus_status check_gradients(const tilus_attention_plan *plan,
                                    const tilus_attention_gradients *g, size_t size)
{
    bool ragged = plan->problem.ragged;
    const Address all[] = {
        {"gradients: q", g->q, 16, true}, {"gradients: k", g->k, 16, true},
        {"gradients: v", g->v, 16, true}, {"gradients: o", g->o, 16, true},
        {"gradients: lse", g->lse, 4, true}, {"gradients: d_o", g->d_o, 16, true},
        {"gradients: dq", g->dq, 16, true}, {"gradients: dk", g->dk, 16, true},
        {"gradients: dv", g->dv, 16, true}, {"gradients: q_starts", g->q_starts, 4, ragged},
        {"gradients: k_starts", g->k_starts, 4, ragged}};
    const CallMemory memory = {all, sizeof all / sizeof *all, "gradients: workspace", g->workspace,
                               g->workspace_size};
    return library_check_memory(&memory, size, ", and the shape needs");
}

/* Sets all that the three programs take, but `longest`, which is of q or of k. Starts that there
 * are not are d_o, which comes before them wherever a wrong address is found first. */
static void set_arguments(KernelLaunch *l, const tilus_attention_plan *plan,
                          const tilus_attention_gradients *g, const tilus_attention_shape *s,
                          const Areas *areas)
{
    const tilus_attention_problem *p = &plan->problem;
    l->args[ATTENTION_ARGUMENT_q].pointer = g->q;
    l->args[ATTENTION_ARGUMENT_k].pointer = g->k;
    l->args[ATTENTION_ARGUMENT_v].pointer = g->v;
    l->args[ATTENTION_ARGUMENT_o].pointer = g->o;
    l->args[ATTENTION_ARGUMENT_lse].pointer = g->lse;
    l->args[ATTENTION_ARGUMENT_do].pointer = g->d_o;
    l->args[ATTENTION_ARGUMENT_dq].pointer = g->dq;
    l->args[ATTENTION_ARGUMENT_dk].pointer = g->dk;
    l->args[ATTENTION_ARGUMENT_dv].pointer = g->dv;
    l->args[ATTENTION_ARGUMENT_q_starts].pointer = p->ragged ? g->q_starts : g->d_o;
    l->args[ATTENTION_ARGUMENT_k_starts].pointer = p->ragged ? g->k_starts : g->d_o;
    l->args[ATTENTION_ARGUMENT_logs].pointer = g->workspace;
    l->args[ATTENTION_ARGUMENT_delta].pointer = g->workspace + areas->delta;
    l->args[ATTENTION_ARGUMENT_sums].pointer = g->workspace + areas->sums;
    l->args[ATTENTION_ARGUMENT_batch].integer = s->batch;
    l->args[ATTENTION_ARGUMENT_heads].integer = p->heads;
    l->args[ATTENTION_ARGUMENT_kv_heads].integer = p->kv_heads;
    l->args[ATTENTION_ARGUMENT_n].integer = s->queries;
    l->args[ATTENTION_ARGUMENT_nk].integer = s->tokens;
    l->args[ATTENTION_ARGUMENT_left].integer = p->left;
    l->args[ATTENTION_ARGUMENT_right].integer = p->right;
    l->args[ATTENTION_ARGUMENT_scale].real = p->scale;
    l->args[ATTENTION_ARGUMENT_cap].real = p->cap > 0 ? p->cap : 1;
}

static void write_launches(const tilus_attention_plan *plan, const tilus_attention_gradients *g,
                           const tilus_attention_shape *s, const Areas *areas,
                           KernelLaunch launches[static ATTENTION_LAUNCHES_MAX])
{
    int64_t tokens = s->longest_tokens ? s->longest_tokens : s->tokens;
    for (int i = 0; i < ATTENTION_LAUNCHES_MAX; i++) {
        KernelLaunch *l = &launches[i];
        bool of_k = i == ATTENTION_K_BACKWARD - ATTENTION_K_DELTA;
        *l = (KernelLaunch){.kernel = plan->kernels[ATTENTION_K_DELTA + i]};
        set_arguments(l, plan, g, s, areas);
        l->args[ATTENTION_ARGUMENT_longest].integer =
            plan->problem.ragged ? of_k ? tokens : s->longest : 0;
    }
}

tilus_status tilus_attention_backward(tilus_attention_plan *plan, tilus_stream stream,
                                      const tilus_attention_gradients *gradients)
{
    tilus_attention_gradients own;
    tilus_attention_shape shape;
    KernelLaunch launches[ATTENTION_LAUNCHES_MAX];
    if (!plan)
        return library_refuse_null(plan);
    if (!plan->problem.gradients)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "the plan's problem has no gradients");
    tilus_status status = LIBRARY_TAKE(tilus_attention_gradients, &own, gradients, "gradients");
    if (status == TILUS_OK)
        status = attention_take_shape(plan, own.shape, &shape);
    if (status != TILUS_OK)
        return status;
    const Areas areas = areas_of(plan, &shape);
    status = check_gradients(plan, &own, areas.size);
    if (status != TILUS_OK)
        return status;
    write_launches(plan, &own, &shape, &areas, launches);
    return attention_launch(plan, stream, launches, ATTENTION_LAUNCHES_MAX);
}
