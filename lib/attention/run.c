/* Calls: what they must have, and their launches. */
#include "attention/internal.h"

/* ---- checks ------------------------------------------------------------- */

static tilus_status check_call(const tilus_attention_plan *plan, const tilus_attention_call *c,
                               size_t size)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool forward = p->kind == TILUS_ATTENTION_FORWARD;
    const bool latent = p->kind == TILUS_ATTENTION_LATENT;
    const Address all[] = {
        {"call: q", c->q, 16, true}, {"call: k", c->k, 16, true}, {"call: v", c->v, 16, !latent},
        {"call: o", c->o, 16, true}, {"call: lse", c->lse, 4, p->lse},
        {"call: sinks", c->sinks, 4, p->sinks}, {"call: mask", c->mask, 16, p->mask},
        {"call: q_starts", c->q_starts, 4, p->ragged},
        {"call: k_starts", c->k_starts, 4, p->ragged},
        {"call: scales", c->scales, plan->eight ? 4 : 16, plan->cache || plan->eight},
        {"call: table", c->table, 4, !forward}, {"call: lengths", c->lengths, 4, !forward}};
    const CallMemory memory = {all, sizeof all / sizeof *all, "call: workspace", c->workspace,
                               c->workspace_size};
    return library_check_memory(&memory, size, ", and the shape needs");
}

/* ---- launches ----------------------------------------------------------- */

/* Sets addresses; tensors that the problem has not, and no kernel reads, are q, the kernels' first
 * argument: a wrong address is told of the argument that the caller gave it for. */
static void set_tensors(KernelLaunch *l, const tilus_attention_call *c)
{
    const uint64_t q = c->q;
    l->args[ATTENTION_ARGUMENT_q].pointer = q;
    l->args[ATTENTION_ARGUMENT_k].pointer = c->k;
    l->args[ATTENTION_ARGUMENT_cache].pointer = c->k;
    l->args[ATTENTION_ARGUMENT_v].pointer = c->v ? c->v : q;
    l->args[ATTENTION_ARGUMENT_o].pointer = c->o;
    l->args[ATTENTION_ARGUMENT_lse].pointer = c->lse ? c->lse : q;
    l->args[ATTENTION_ARGUMENT_sinks].pointer = c->sinks ? c->sinks : q;
    l->args[ATTENTION_ARGUMENT_mask].pointer = c->mask ? c->mask : q;
    l->args[ATTENTION_ARGUMENT_q_starts].pointer = c->q_starts ? c->q_starts : q;
    l->args[ATTENTION_ARGUMENT_k_starts].pointer = c->k_starts ? c->k_starts : q;
    l->args[ATTENTION_ARGUMENT_scales].pointer = c->scales ? c->scales : q;
    l->args[ATTENTION_ARGUMENT_table].pointer = c->table;
    l->args[ATTENTION_ARGUMENT_lengths].pointer = c->lengths;
}

/* Writes v to the workspace, in tiles. */
static KernelLaunch arrange_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                                   const tilus_attention_shape *s, const AttentionChoice *choice)
{
    KernelLaunch l = {.kernel = plan->kernels[attention_arrange_kernel(choice)]};
    set_tensors(&l, c);
    l.args[ATTENTION_ARGUMENT_arranged].pointer = c->workspace;
    l.args[ATTENTION_ARGUMENT_batch].integer = s->batch;
    l.args[ATTENTION_ARGUMENT_kv_heads].integer = plan->problem.kv_heads;
    l.args[ATTENTION_ARGUMENT_nk].integer = s->tokens;
    return l;
}

static KernelLaunch forward_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                                   const tilus_attention_shape *s, const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    KernelLaunch l = {.kernel = plan->kernels[attention_forward_kernel(choice)]};
    set_tensors(&l, c);
    if (plan->eight)
        l.args[ATTENTION_ARGUMENT_v].pointer = c->workspace;
    l.args[ATTENTION_ARGUMENT_batch].integer = s->batch;
    l.args[ATTENTION_ARGUMENT_heads].integer = p->heads;
    l.args[ATTENTION_ARGUMENT_kv_heads].integer = p->kv_heads;
    l.args[ATTENTION_ARGUMENT_n].integer = s->queries;
    l.args[ATTENTION_ARGUMENT_nk].integer = s->tokens;
    l.args[ATTENTION_ARGUMENT_longest].integer = s->longest;
    l.args[ATTENTION_ARGUMENT_masks].integer = s->masks;
    l.args[ATTENTION_ARGUMENT_left].integer = p->left;
    l.args[ATTENTION_ARGUMENT_right].integer = p->right;
    l.args[ATTENTION_ARGUMENT_scale].real = p->scale;
    l.args[ATTENTION_ARGUMENT_cap].real = p->cap > 0 ? p->cap : 1;
    return l;
}

/* Sets the partial sums, which one split does not touch. */
static void set_parts(KernelLaunch *l, const tilus_attention_call *c, const Space *space)
{
    bool split = space->size > 0;
    l->args[ATTENTION_ARGUMENT_parts].pointer = split ? c->workspace : c->q;
    l->args[ATTENTION_ARGUMENT_sums].pointer = split ? c->workspace + space->sums : c->q;
}

static KernelLaunch attend_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                                  const tilus_attention_shape *s, int64_t splits,
                                  const Space *space)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool latent = p->kind == TILUS_ATTENTION_LATENT;
    KernelLaunch l = {.kernel = plan->kernels[ATTENTION_K_ATTEND]};
    set_tensors(&l, c);
    set_parts(&l, c, space);
    l.args[ATTENTION_ARGUMENT_batch].integer = s->batch;
    l.args[ATTENTION_ARGUMENT_heads].integer = latent ? p->heads : p->kv_heads;
    l.args[ATTENTION_ARGUMENT_pages].integer = s->pages;
    l.args[ATTENTION_ARGUMENT_columns].integer = s->columns;
    l.args[ATTENTION_ARGUMENT_splits].integer = splits;
    l.args[ATTENTION_ARGUMENT_scale].real = p->scale;
    return l;
}

static KernelLaunch combine_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                                   const tilus_attention_shape *s, int64_t splits,
                                   const Space *space)
{
    KernelLaunch l = {.kernel = plan->kernels[attention_combine_kernel(plan, splits)]};
    set_parts(&l, c, space);
    l.args[ATTENTION_ARGUMENT_o].pointer = c->o;
    l.args[ATTENTION_ARGUMENT_rows].integer = s->batch * plan->problem.heads;
    l.args[ATTENTION_ARGUMENT_splits].integer = splits;
    return l;
}

static size_t launches_of(const tilus_attention_plan *plan, const tilus_attention_call *c,
                          const tilus_attention_shape *s, const AttentionChoice *choice,
                          const Space *space, KernelLaunch launches[])
{
    size_t count = 0;
    if (plan->eight)
        launches[count++] = arrange_launch(plan, c, s, choice);
    if (plan->problem.kind == TILUS_ATTENTION_FORWARD) {
        launches[count++] = forward_launch(plan, c, s, choice);
        return count;
    }
    launches[count++] = attend_launch(plan, c, s, choice->splits, space);
    if (space->size)
        launches[count++] = combine_launch(plan, c, s, choice->splits, space);
    return count;
}

tilus_status attention_launch(const tilus_attention_plan *plan, tilus_stream stream,
                              const KernelLaunch launches[], size_t count)
{
    return kernel_library_launch(&plan->attention->library, plan->device, stream, launches, count,
                                 KERNEL_FIRST_EARLY);
}

tilus_status tilus_attention_run(tilus_attention_plan *plan, tilus_stream stream,
                                 const tilus_attention_call *call)
{
    tilus_attention_call own;
    if (!plan)
        return library_refuse_null(plan);
    tilus_attention_shape shape;
    KernelLaunch launches[ATTENTION_LAUNCHES_MAX];
    tilus_status status = LIBRARY_TAKE(tilus_attention_call, &own, call, "call");
    if (status == TILUS_OK)
        status = attention_take_shape(plan, own.shape, &shape);
    if (status != TILUS_OK)
        return status;
    const AttentionChoice choice = attention_choose(plan, &shape);
    const Space space = attention_space(plan, &shape, &choice);
    status = check_call(plan, &own, space.size);
    if (status != TILUS_OK)
        return status;
    size_t count = launches_of(plan, &own, &shape, &choice, &space, launches);
    return attention_launch(plan, stream, launches, count);
}

/* ---- new tokens --------------------------------------------------------- */

static tilus_status check_new(const tilus_attention_plan *plan, const tilus_attention_tokens *t)
{
    const tilus_attention_problem *p = &plan->problem;
    const int64_t most = INT32_MAX / p->page / p->kv_heads;
    const Address all[] = {
        {"tokens: new_k", t->new_k, 16, true}, {"tokens: new_v", t->new_v, 16, true},
        {"tokens: slots", t->slots, 4, true}, {"tokens: k", t->k, 16, true},
        {"tokens: v", t->v, 16, true}, {"tokens: scales", t->scales, 16, plan->cache}};
    if (t->tokens < 0 || t->tokens > ATTENTION_ROWS_MAX)
        return library_refuse("tokens: tokens is %lld, not 0 to %d", (long long)t->tokens,
                              ATTENTION_ROWS_MAX);
    if (t->pages < 1 || t->pages > most)
        return library_refuse("tokens: pages is %lld, not 1 to %lld", (long long)t->pages,
                              (long long)most);
    return t->tokens ? library_check_addresses(all, sizeof all / sizeof *all) : TILUS_OK;
}

static KernelLaunch append_launch(const tilus_attention_plan *plan,
                                  const tilus_attention_tokens *t)
{
    KernelLaunch l = {.kernel = plan->kernels[ATTENTION_K_APPEND]};
    l.args[ATTENTION_ARGUMENT_x_k].pointer = t->new_k;
    l.args[ATTENTION_ARGUMENT_x_v].pointer = t->new_v;
    l.args[ATTENTION_ARGUMENT_slots].pointer = t->slots;
    l.args[ATTENTION_ARGUMENT_k].pointer = t->k;
    l.args[ATTENTION_ARGUMENT_v].pointer = t->v;
    l.args[ATTENTION_ARGUMENT_scales].pointer = t->scales ? t->scales : t->new_k;
    l.args[ATTENTION_ARGUMENT_tokens].integer = t->tokens;
    l.args[ATTENTION_ARGUMENT_heads].integer = plan->problem.kv_heads;
    l.args[ATTENTION_ARGUMENT_pages].integer = t->pages;
    return l;
}

tilus_status tilus_attention_append(tilus_attention_plan *plan, tilus_stream stream,
                                    const tilus_attention_tokens *tokens)
{
    tilus_attention_tokens own;
    if (!plan)
        return library_refuse_null(plan);
    if (plan->problem.kind != TILUS_ATTENTION_DECODE)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "the plan is not for decoding: it has no "
                            "kernel that fills a cache");
    tilus_status status = LIBRARY_TAKE(tilus_attention_tokens, &own, tokens, "tokens");
    if (status == TILUS_OK)
        status = check_new(plan, &own);
    if (status != TILUS_OK || own.tokens == 0)
        return status;
    const KernelLaunch launch = append_launch(plan, &own);
    return attention_launch(plan, stream, &launch, 1);
}
