/* Kernels by their names: programs of the templates, with the parameters of a problem. */
#include "attention/internal.h"

#include "support/ascii.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)ATTENTION_ARGUMENTS <= (int)KERNEL_ARGUMENTS_MAX, "arguments of launches");

/* ---- names and parameters ----------------------------------------------- */

static void append(char *to, size_t size, const char *text)
{
    size_t at = strlen(to);
    int count = snprintf(to + at, size - at, "%s", text);
    assert((size_t)count < size - at);
    (void)count;
}

/* Adds a parameter: "WINDOW=1" of the name "..-window", "D=64" of "..-d64", "T=bf16" of
 * "..-bf16". */
static void put(Kernel *kernel, const char *key, const char *value, bool type)
{
    char word[64], tag[64];
    snprintf(word, sizeof word, "%s%s=%s", kernel->parameters[0] ? " " : "", key, value);
    snprintf(tag, sizeof tag, "-%s%s", type ? "" : key, type || strcmp(value, "1") ? value : "");
    for (char *letter = tag; *letter; letter++)
        *letter = ascii_lower(*letter);
    append(kernel->parameters, sizeof kernel->parameters, word);
    append(kernel->name, sizeof kernel->name, tag);
}

static void put_number(Kernel *kernel, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put(kernel, key, text, false);
}

/* Adds NAME=1 where it is asked for. */
static void put_flag(Kernel *kernel, const char *key, bool wanted)
{
    if (wanted)
        put(kernel, key, "1", false);
}

/* ---- programs ----------------------------------------------------------- */

static void put_forward(const tilus_attention_plan *plan, int i, Kernel *k)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool wide = i == ATTENTION_K_WIDE;
    const tilus_attention_schedule schedule =
        wide ? TILUS_ATTENTION_QUEUES : (tilus_attention_schedule)(i + 1);
    const bool causal = p->causal && !p->window;
    k->program = "attention";
    put(k, "T", p->type, true);
    if (plan->eight && strcmp(p->out_type, "bf16"))
        put(k, "O", p->out_type, true);
    put_number(k, "D", p->dim);
    if (p->value_dim != p->dim)
        put_number(k, "DV", p->value_dim);
    put_flag(k, "CAUSAL", causal);
    put_flag(k, "WINDOW", p->window);
    if (p->mask)
        put_number(k, "MASK", p->mask);
    if (p->mask == TILUS_ATTENTION_BOOLEAN)
        put(k, "M", "bool", true);
    put_flag(k, "SOFTCAP", p->cap > 0);
    put_flag(k, "SINKS", p->sinks);
    put_flag(k, "LSE", p->lse);
    put_flag(k, "RAGGED", p->ragged);
    put_flag(k, "TOKENS", p->tokens_first && !p->ragged);
    if (plan->eight)
        put_number(k, "BN", wide ? plan->wide : plan->tile);
    if (wide)
        put_number(k, "WARPGROUPS", 3);
    put_flag(k, "SPLIT", schedule == TILUS_ATTENTION_FOLDED);
    if (schedule == TILUS_ATTENTION_QUEUES)
        put_number(k, "BLOCKS", plan->multiprocessors);
    if (schedule == TILUS_ATTENTION_BLOCKS) {
        put_number(k, "BLOCKS", 1 << 20);
        put_number(k, "QUERIES", 1);
        put_number(k, "PAIRS", 0);
    }
}

/* Writes the program that arranges v in the tiles of the others. */
static void put_arrange(const tilus_attention_plan *plan, int tile, Kernel *k)
{
    const tilus_attention_problem *p = &plan->problem;
    k->program = "arrange_v";
    put(k, "T", p->type, true);
    put_number(k, "D", p->value_dim);
    put_flag(k, "RAGGED", p->ragged);
    put_flag(k, "TOKENS", p->tokens_first && !p->ragged);
    put_number(k, "BN", tile);
}

/* Writes a program of gradients: each takes only the parameters that it reads, so that plans share
 * what they can. */
static void put_gradients(const tilus_attention_plan *plan, int i, Kernel *k)
{
    static const char *const programs[] = {"attention_delta", "attention_backward",
                                           "attention_dq"};
    const tilus_attention_problem *p = &plan->problem;
    k->program = programs[i - ATTENTION_K_DELTA];
    put(k, "T", p->type, true);
    put_number(k, "D", p->dim);
    if (p->value_dim != p->dim && i != ATTENTION_K_DQ)
        put_number(k, "DV", p->value_dim);
    put_flag(k, "RAGGED", p->ragged);
    put_flag(k, "TOKENS", p->tokens_first && !p->ragged);
    if (i == ATTENTION_K_BACKWARD) {
        put_flag(k, "CAUSAL", p->causal && !p->window);
        put_flag(k, "WINDOW", p->window);
        put_flag(k, "SOFTCAP", p->cap > 0);
    }
}

/* Adds parameters of the cache's form, which @attend and @append share. */
static void put_cache(const tilus_attention_plan *plan, Kernel *k)
{
    const tilus_attention_problem *p = &plan->problem;
    const CacheType *cache = plan->cache;
    put(k, "T", p->type, true);
    if (cache)
        put(k, "C", cache->name, true);
    put_flag(k, "ZERO", cache && cache->zeros);
    put_number(k, "D", p->dim);
    put_number(k, "PAGE", p->page);
    if (p->groups > 1)
        put_number(k, "GROUPS", p->groups);
    put_flag(k, "HEADS_FIRST", !p->tokens_first);
    put_flag(k, "PLAIN", p->plain);
}

static void put_attend(const tilus_attention_plan *plan, Kernel *k)
{
    const tilus_attention_problem *p = &plan->problem;
    int64_t group = p->heads / p->kv_heads;
    k->program = "attend";
    put_cache(plan, k);
    put_number(k, "GROUP", group);
    if (group > 32 && group <= 48)
        put_number(k, "WARPS", 3);
    if (plan->cache && plan->tile != 128)
        put_number(k, "BN", plan->tile);
    if (plan->blocks != 2)
        put_number(k, "BLOCKS", plan->blocks);
    put_flag(k, "BULK", plan->bulk);
}

static void put_append(const tilus_attention_plan *plan, Kernel *k)
{
    k->program = "append";
    put_cache(plan, k);
    if (plan->cache && !plan->cache->zeros)
        put_number(k, "MOST", plan->cache->most);
}

static void put_combine(const tilus_attention_plan *plan, int i, Kernel *k)
{
    const bool latent = plan->problem.kind == TILUS_ATTENTION_LATENT;
    k->program = "combine";
    put(k, "T", plan->problem.type, true);
    put_number(k, "D", plan->problem.value_dim);
    if (i == ATTENTION_K_COMBINE_FEW)
        put_number(k, "COMBINED", latent ? 4 : ATTENTION_FEW);
    if (i == ATTENTION_K_COMBINE_SOME)
        put_number(k, "COMBINED", ATTENTION_SOME);
}

static void put_latent(const tilus_attention_plan *plan, Kernel *k)
{
    k->program = "mla";
    put(k, "T", plan->problem.type, true);
}

/* Returns true when the plan has kernel i. */
static bool has_kernel(const tilus_attention_plan *plan, int i)
{
    const tilus_attention_problem *p = &plan->problem;
    if (i == ATTENTION_K_ARRANGE)
        return plan->eight;
    if (i > ATTENTION_K_ARRANGE)
        return plan->wide;
    if (p->kind == TILUS_ATTENTION_FORWARD && i >= ATTENTION_K_DELTA)
        return p->gradients;
    if (p->kind == TILUS_ATTENTION_FORWARD)
        return i + 1 != TILUS_ATTENTION_FOLDED || (p->causal && !p->window && !p->ragged);
    bool of_decode = i == ATTENTION_K_APPEND || i == ATTENTION_K_COMBINE_SOME;
    return i <= ATTENTION_K_COMBINE_SOME && (!of_decode || p->kind == TILUS_ATTENTION_DECODE);
}

/* Writes kernel i of the plan; its name begins with that of the program and ends with that of the
 * target. */
static void describe_kernel(const tilus_attention_plan *plan, int i, Kernel *k)
{
    char tags[KERNEL_NAME_MAX];
    const bool forward = plan->problem.kind == TILUS_ATTENTION_FORWARD;
    *k = (Kernel){.target = plan->hopper ? "sm_90a" : "sm_80"};
    if (i == ATTENTION_K_ARRANGE || i == ATTENTION_K_WIDE_ARRANGE)
        put_arrange(plan, i == ATTENTION_K_ARRANGE ? plan->tile : plan->wide, k);
    else if (forward && i >= ATTENTION_K_DELTA && i <= ATTENTION_K_DQ)
        put_gradients(plan, i, k);
    else if (forward)
        put_forward(plan, i, k);
    else if (i == ATTENTION_K_APPEND)
        put_append(plan, k);
    else if (i >= ATTENTION_K_COMBINE && i <= ATTENTION_K_COMBINE_SOME)
        put_combine(plan, i, k);
    else
        (plan->problem.kind == TILUS_ATTENTION_LATENT ? put_latent : put_attend)(plan, k);
    memcpy(tags, k->name, sizeof tags);
    k->name[0] = 0;
    append(k->name, sizeof k->name, k->program);
    append(k->name, sizeof k->name, tags);
    append(k->name, sizeof k->name, "-");
    append(k->name, sizeof k->name, k->target);
}

tilus_status attention_find_kernels(tilus_attention_plan *plan)
{
    for (int i = 0; i < ATTENTION_KERNELS; i++) {
        Kernel wanted;
        if (!has_kernel(plan, i))
            continue;
        describe_kernel(plan, i, &wanted);
        if (!(plan->kernels[i] = kernel_library_find(&plan->attention->library, &wanted)))
            return library_fail_memory();
    }
    return TILUS_OK;
}

/* ---- arguments ---------------------------------------------------------- */

tilus_status attention_check(Kernel *kernel, const tilus_kernel_info *info)
{
    static const char *const names[ATTENTION_ARGUMENTS] = {
#define ARGUMENT(name) #name,
        ATTENTION_ARGUMENT_NAMES(ARGUMENT)
#undef ARGUMENT
    };
    if (argument_order_find(names, ATTENTION_ARGUMENTS, info, &kernel->order))
        return TILUS_OK;
    return argument_order_refuse(kernel->name, info, &kernel->order);
}
