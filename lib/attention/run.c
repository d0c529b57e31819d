/* Calls: what they must have, and their launches. */
#include "attention/internal.h"

/* ---- checks ------------------------------------------------------------- */

static tilus_status check_tensors(const tilus_attention_plan *plan,
                                  const tilus_attention_call *c)
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
        {"call: scales", c->scales, 16, plan->cache}, {"call: table", c->table, 4, !forward},
        {"call: lengths", c->lengths, 4, !forward}};
    return attention_check_addresses(all, sizeof all / sizeof *all);
}

/* ---- launches ----------------------------------------------------------- */

/* Sets addresses; tensors that the problem has not, and no kernel reads, are q. */
static void set_tensors(Launch *l, const tilus_attention_call *c)
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

static Launch forward_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                             const tilus_attention_shape *s, const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    Launch l = {.kernel = plan->kernels[ATTENTION_K_SCHEDULE + choice->schedule - 1]};
    set_tensors(&l, c);
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
static void set_parts(Launch *l, const tilus_attention_call *c, const Space *space)
{
    bool split = space->size > 0;
    l->args[ATTENTION_ARGUMENT_parts].pointer = split ? c->workspace : c->o;
    l->args[ATTENTION_ARGUMENT_sums].pointer = split ? c->workspace + space->sums : c->o;
}

static Launch attend_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                            const tilus_attention_shape *s, int64_t splits, const Space *space)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool latent = p->kind == TILUS_ATTENTION_LATENT;
    Launch l = {.kernel = plan->kernels[ATTENTION_K_ATTEND]};
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

static Launch combine_launch(const tilus_attention_plan *plan, const tilus_attention_call *c,
                             const tilus_attention_shape *s, int64_t splits, const Space *space)
{
    Launch l = {.kernel = plan->kernels[ATTENTION_K_COMBINE]};
    set_parts(&l, c, space);
    l.args[ATTENTION_ARGUMENT_o].pointer = c->o;
    l.args[ATTENTION_ARGUMENT_rows].integer = s->batch * plan->problem.heads;
    l.args[ATTENTION_ARGUMENT_splits].integer = splits;
    return l;
}

static tilus_status enqueue(const void *data, tilus_stream stream)
{
    const LaunchList *list = data;
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < list->count && status == TILUS_OK; i++)
        status = kernel_launch(list->launches[i].kernel, stream, list->launches[i].args);
    return status;
}

tilus_status attention_run_list(const tilus_attention_plan *plan, const LaunchList *list,
                                tilus_stream stream)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < list->count && status == TILUS_OK; i++)
        status = kernel_load(list->launches[i].kernel);
    if (status != TILUS_OK)
        return status;
    return kernel_library_enqueue(plan->attention->library.rt, plan->device, stream, enqueue, list);
}

tilus_status tilus_attention_run(tilus_attention_plan *plan, tilus_stream stream,
                                 const tilus_attention_call *call)
{
    tilus_attention_call own;
    tilus_attention_shape shape;
    LaunchList list = {.count = 0};
    tilus_status status = LIBRARY_TAKE(tilus_attention_call, &own, call, "call");
    if (status == TILUS_OK)
        status = attention_take_shape(plan, own.shape, &shape);
    if (status == TILUS_OK)
        status = check_tensors(plan, &own);
    if (status != TILUS_OK)
        return status;
    const AttentionChoice choice = attention_choose(plan, &shape);
    const Space space = attention_space(plan, &shape, choice.splits);
    status = attention_check_workspace("call", own.workspace, own.workspace_size, space.size);
    if (status != TILUS_OK)
        return status;
    if (plan->problem.kind == TILUS_ATTENTION_FORWARD)
        list.launches[list.count++] = forward_launch(plan, &own, &shape, &choice);
    else
        list.launches[list.count++] = attend_launch(plan, &own, &shape, choice.splits, &space);
    if (space.size)
        list.launches[list.count++] = combine_launch(plan, &own, &shape, choice.splits, &space);
    return attention_run_list(plan, &list, stream);
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
    return t->tokens ? attention_check_addresses(all, sizeof all / sizeof *all) : TILUS_OK;
}

tilus_status tilus_attention_append(tilus_attention_plan *plan, tilus_stream stream,
                                    const tilus_attention_tokens *tokens)
{
    tilus_attention_tokens own;
    LaunchList list = {.count = 1};
    if (plan->problem.kind != TILUS_ATTENTION_DECODE)
        return library_fail(TILUS_ERROR_UNSUPPORTED, "the plan is not for decoding: it has no "
                            "kernel that fills a cache");
    tilus_status status = LIBRARY_TAKE(tilus_attention_tokens, &own, tokens, "tokens");
    if (status == TILUS_OK)
        status = check_new(plan, &own);
    if (status != TILUS_OK || own.tokens == 0)
        return status;
    Launch *l = &list.launches[0];
    l->kernel = plan->kernels[ATTENTION_K_APPEND];
    l->args[ATTENTION_ARGUMENT_x_k].pointer = own.new_k;
    l->args[ATTENTION_ARGUMENT_x_v].pointer = own.new_v;
    l->args[ATTENTION_ARGUMENT_slots].pointer = own.slots;
    l->args[ATTENTION_ARGUMENT_k].pointer = own.k;
    l->args[ATTENTION_ARGUMENT_v].pointer = own.v;
    l->args[ATTENTION_ARGUMENT_scales].pointer = own.scales ? own.scales : own.new_k;
    l->args[ATTENTION_ARGUMENT_tokens].integer = own.tokens;
    l->args[ATTENTION_ARGUMENT_heads].integer = plan->problem.kv_heads;
    l->args[ATTENTION_ARGUMENT_pages].integer = own.pages;
    return attention_run_list(plan, &list, stream);
}
