/* Problems and shapes: defaults, and what is refused. */
#include "attention/internal.h"

#include <math.h>
#include <string.h>

/* ---- fields of problems ------------------------------------------------- */

typedef tilus_attention_problem Problem;

static tilus_status check_range(const char *field, int64_t value, int64_t min, int64_t max)
{
    if (value >= min && value <= max)
        return TILUS_OK;
    return library_refuse("%s is %lld, not %lld to %lld", field, (long long)value, (long long)min,
                          (long long)max);
}

/* Refuses fields of other kinds of problems, which would be ignored. */
static tilus_status check_absent(const Problem *p)
{
    const bool forward = p->kind == TILUS_ATTENTION_FORWARD;
    const bool decode = p->kind == TILUS_ATTENTION_DECODE;
    const struct {
        const char *field;
        bool given, known;
    } fields[] = {
        {"mask", p->mask, forward}, {"cap", p->cap != 0, forward}, {"causal", p->causal, forward},
        {"window", p->window, forward}, {"sinks", p->sinks, forward}, {"lse", p->lse, forward},
        {"ragged", p->ragged, forward}, {"tokens_first", p->tokens_first, forward || decode},
        {"kv_heads", p->kv_heads, forward || decode}, {"cache", p->cache, decode},
        {"page", p->page && (decode || p->page != 64), decode}, {"groups", p->groups, decode},
        {"plain", p->plain, decode}, {"finite", p->finite, !forward},
        {"gradients", p->gradients, forward}};
    static const char *const kinds[] = {"forward attention", "decoding", "latent attention"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].given && !fields[i].known)
            return library_refuse("problem: %s is given, but %s has none: give 0",
                                  fields[i].field, kinds[p->kind]);
    if ((p->left || p->right) && !p->window)
        return library_refuse("problem: %s is given, but window is not",
                              p->left ? "left" : "right");
    return TILUS_OK;
}

/* Returns the text of a type of numbers, of `eight` bits too; NULL: of another one. */
static const char *find_type(const char *name, bool eight)
{
    static const char *const types[] = {"f16", "bf16", "f8e4m3"};
    for (int i = 0; i < (eight ? 3 : 2); i++)
        if (!strcmp(name, types[i]))
            return types[i];
    return NULL;
}

static tilus_status check_out_type(Problem *p)
{
    const bool eight = !strcmp(p->type, "f8e4m3");
    const char *type = p->out_type ? find_type(p->out_type, false) : eight ? "bf16" : p->type;
    if (!type || (!eight && strcmp(type, p->type)))
        return library_refuse("problem: out_type is \"%s\", not %s", p->out_type,
                              eight ? "f16 or bf16" : p->type);
    p->out_type = type;
    return TILUS_OK;
}

static tilus_status check_types(Problem *p)
{
    if ((unsigned)p->kind > TILUS_ATTENTION_LATENT)
        return library_refuse("problem: kind is %d, not 0 to %d", (int)p->kind,
                              TILUS_ATTENTION_LATENT);
    if ((unsigned)p->mask > TILUS_ATTENTION_BOOLEAN)
        return library_refuse("problem: mask is %d, not 0 to %d", (int)p->mask,
                              TILUS_ATTENTION_BOOLEAN);
    const bool forward = p->kind == TILUS_ATTENTION_FORWARD;
    const char *type = find_type(p->type ? p->type : "f16", forward);
    if (!type)
        return library_refuse("problem: type is \"%s\", not f16%s bf16%s", p->type,
                              forward ? "," : " or", forward ? " or f8e4m3" : "");
    p->type = type;
    tilus_status status = check_out_type(p);
    return status == TILUS_OK ? check_absent(p) : status;
}

static tilus_status check_heads(Problem *p)
{
    tilus_status status = check_range("problem: heads", p->heads, 1, ATTENTION_GRID_MAX);
    if (!p->kv_heads)
        p->kv_heads = p->kind == TILUS_ATTENTION_LATENT ? 1 : p->heads;
    if (status == TILUS_OK)
        status = check_range("problem: kv_heads", p->kv_heads, 1, p->heads);
    if (status == TILUS_OK && p->heads % p->kv_heads)
        return library_refuse("problem: kv_heads is %lld, no divisor of heads, %lld",
                              (long long)p->kv_heads, (long long)p->heads);
    return status;
}

/* Fills in the columns, and refuses those that no kernel has. */
static tilus_status check_columns(Problem *p)
{
    const bool latent = p->kind == TILUS_ATTENTION_LATENT;
    const bool forward = p->kind == TILUS_ATTENTION_FORWARD;
    const int64_t wide = ATTENTION_LATENT + ATTENTION_ROPE;
    p->dim = p->dim ? p->dim : latent ? wide : 128;
    p->value_dim = p->value_dim ? p->value_dim : latent ? ATTENTION_LATENT : p->dim;
    bool common = p->dim == 64 || p->dim == 128 || p->dim == 256;
    bool known = latent ? p->dim == wide
                        : common || (forward && (p->dim == 96 || p->dim == 192));
    if (!known)
        return library_refuse("problem: dim is %lld, not %s", (long long)p->dim,
                              latent ? "576" : forward ? "64, 96, 128, 192 or 256"
                                                       : "64, 128 or 256");
    int64_t value = latent ? ATTENTION_LATENT : p->dim;
    if (p->value_dim != value && !(forward && p->dim == 192 && p->value_dim == 128))
        return library_refuse("problem: value_dim is %lld, not %lld%s", (long long)p->value_dim,
                              (long long)value, forward && p->dim == 192 ? " or 128" : "");
    return TILUS_OK;
}

/* Refuses what f32 has not, or has no more once kernels have multiplied it by powers of two: all
 * scores would be 0 * infinity. */
static tilus_status check_real(const char *field, double value)
{
    const double most = 1e30;
    if (value == 0 || (value >= 1 / most && value <= most))
        return TILUS_OK;
    return library_refuse("problem: %s is %g, not 0 or %g to %g", field, value, 1 / most, most);
}

static tilus_status check_reals(Problem *p)
{
    for (size_t i = 0; i < sizeof p->reserved; i++)
        if (p->reserved[i])
            return library_refuse("problem: reserved[%zu] is %d, not 0", i, p->reserved[i]);
    tilus_status status = check_real("scale", p->scale);
    if (status == TILUS_OK)
        status = check_real("cap", p->cap);
    p->scale = p->scale > 0 ? p->scale : 1 / sqrt((double)p->dim);
    return status;
}

static tilus_status check_seen(Problem *p)
{
    tilus_status status = check_range("problem: left", p->left, 0, ATTENTION_ROWS_MAX);
    if (status == TILUS_OK)
        status = check_range("problem: right", p->right, 0, ATTENTION_ROWS_MAX);
    if (status != TILUS_OK)
        return status;
    if (p->causal && p->right)
        return library_refuse("problem: right is %lld, but causal rows see nothing there",
                              (long long)p->right);
    if (p->ragged && p->mask)
        return library_refuse("problem: a mask is given, but ragged sequences have none");
    p->tokens_first = p->tokens_first || p->ragged;
    return TILUS_OK;
}

static tilus_status check_gradients(const Problem *p)
{
    const char *reason = !p->lse ? "lse is not" : p->mask ? "a mask is, too"
                         : p->sinks ? "sinks are, too"
                         : strcmp(p->type, p->out_type) ? "type is f8e4m3" : NULL;
    if (p->gradients && reason)
        return library_refuse("problem: gradients is given, but %s", reason);
    return TILUS_OK;
}

/* ---- caches ------------------------------------------------------------- */

static const CacheType cache_types[] = {
    {"u2", 2, true, 3}, {"u3", 3, true, 7}, {"u4", 4, true, 15}, {"u6", 6, true, 63},
    {"u8", 8, true, 255}, {"f4e2m1", 4, false, 6}, {"f6e3m2", 6, false, 28},
    {"f8e4m3", 8, false, 448}};

static tilus_status find_cache(Problem *p, const CacheType **cache)
{
    *cache = NULL;
    p->cache = p->cache ? p->cache : p->type;
    if (!strcmp(p->cache, p->type)) {
        p->cache = p->type;
        return TILUS_OK;
    }
    for (size_t i = 0; i < sizeof cache_types / sizeof *cache_types; i++)
        if (!strcmp(p->cache, cache_types[i].name)) {
            *cache = &cache_types[i];
            p->cache = (*cache)->name;
            return TILUS_OK;
        }
    return library_refuse("problem: cache is \"%s\", not %s, u2, u3, u4, u6, u8, f4e2m1, f6e3m2 or "
                          "f8e4m3", p->cache, p->type);
}

/* Checks that four lanes have whole words of a part of a key each. */
static tilus_status check_groups(Problem *p, const CacheType *cache)
{
    int64_t unit = cache->bits % 2 ? 32 : cache->bits % 4 ? 16 : 8;
    unit = unit > p->dim / 32 ? unit : p->dim / 32;
    if (p->groups < 1 || p->groups > 8 || (p->groups & (p->groups - 1)))
        return library_refuse("problem: groups is %lld, not 1, 2, 4 or 8", (long long)p->groups);
    if (p->dim / p->groups % (4 * unit))
        return library_refuse("problem: groups is %lld, but a cache of %s has parts of multiples "
                              "of %lld of the %lld columns", (long long)p->groups, cache->name,
                              (long long)(4 * unit), (long long)p->dim);
    return TILUS_OK;
}

static tilus_status check_decode(Problem *p, const CacheType **cache)
{
    tilus_status status = find_cache(p, cache);
    if (status != TILUS_OK)
        return status;
    p->page = p->page ? p->page : 64;
    if (p->page < 1 || p->page > 1024 || (p->page & (p->page - 1)))
        return library_refuse("problem: page is %lld, not a power of two, 1 to 1024",
                              (long long)p->page);
    if (p->heads / p->kv_heads > 64)
        return library_refuse("problem: %lld heads share one of k, more than 64",
                              (long long)(p->heads / p->kv_heads));
    if (p->plain && (!*cache || (*cache)->bits != 8))
        return library_refuse("problem: plain is given, but the cache is of %s", p->cache);
    if (!*cache && p->groups > 1)
        return library_refuse("problem: groups is %lld, but a cache of %s has no scales",
                              (long long)p->groups, p->cache);
    p->groups = p->groups ? p->groups : 1;
    return *cache ? check_groups(p, *cache) : TILUS_OK;
}

tilus_status attention_take_problem(const Problem *given, Problem *p, const CacheType **cache)
{
    tilus_status status = LIBRARY_TAKE(tilus_attention_problem, p, given, "problem");
    *cache = NULL;
    if (status != TILUS_OK || (status = check_types(p)) != TILUS_OK ||
        (status = check_heads(p)) != TILUS_OK || (status = check_columns(p)) != TILUS_OK ||
        (status = check_reals(p)) != TILUS_OK)
        return status;
    if (p->kind == TILUS_ATTENTION_FORWARD)
        return (status = check_seen(p)) == TILUS_OK ? check_gradients(p) : status;
    if (p->kind == TILUS_ATTENTION_DECODE)
        return check_decode(p, cache);
    p->page = 64;
    if (!p->finite)
        return library_refuse("problem: finite is false, but latent attention multiplies rows of "
                              "pages behind their end by 0");
    return TILUS_OK;
}

/* ---- shapes ------------------------------------------------------------- */

typedef tilus_attention_shape Shape;

/* A field, its range for the plan's kind; no `max`: it is 0. */
typedef struct Range {
    const char *field;
    int64_t value, min, max;
} Range;

static tilus_status check_ranges(const Range *ranges, size_t count)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++) {
        const Range *r = &ranges[i];
        if (!r->max && r->value)
            status = library_refuse("%s is %lld, but the problem has none: give 0", r->field,
                                    (long long)r->value);
        else if (r->max)
            status = check_range(r->field, r->value, r->min, r->max);
    }
    return status;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static tilus_status check_forward(const Problem *p, const Shape *s)
{
    const int64_t tiles = (p->ragged ? s->longest : s->queries) / ATTENTION_ROWS + 1;
    if (s->schedule == TILUS_ATTENTION_FOLDED && (!p->causal || p->window || p->ragged))
        return library_refuse("shape: schedule is folded, which is for causal problems without a "
                              "window, of equal lengths");
    if (tiles * p->heads * s->batch > INT32_MAX / 2)
        return library_refuse("shape: %lld rows of %lld heads and %lld sequences are more than "
                              "2^30 tiles of %d", (long long)(p->ragged ? s->longest : s->queries),
                              (long long)p->heads, (long long)s->batch, ATTENTION_ROWS);
    return TILUS_OK;
}

tilus_status attention_take_shape(const tilus_attention_plan *plan, const Shape *given, Shape *s)
{
    const Problem *p = &plan->problem;
    const bool forward = p->kind == TILUS_ATTENTION_FORWARD;
    const int64_t rows = ATTENTION_ROWS_MAX, pages = INT32_MAX / (p->page ? p->page : 1) /
                                                     (p->kv_heads ? p->kv_heads : 1);
    tilus_status status = LIBRARY_TAKE(tilus_attention_shape, s, given, "shape");
    if (status != TILUS_OK)
        return status;
    const Range ranges[] = {
        {"shape: batch", s->batch, 1, ATTENTION_GRID_MAX},
        {"shape: queries", s->queries, 1, forward ? rows : 0},
        {"shape: tokens", s->tokens, 1, forward ? rows : ATTENTION_LENGTH_MAX},
        {"shape: longest", s->longest, 1, p->ragged ? rows : 0},
        {"shape: longest_tokens", s->longest_tokens, 0, p->ragged && p->gradients ? rows : 0},
        {"shape: masks", s->masks, 1, p->mask ? ATTENTION_GRID_MAX : 0},
        {"shape: pages", s->pages, 1, forward ? 0 : pages},
        {"shape: columns", s->columns, 1, forward ? 0 : INT32_MAX},
        {"shape: splits", s->splits, 0, forward ? 0 : ATTENTION_SPLITS_MAX},
        {"shape: schedule", s->schedule, 0, forward ? TILUS_ATTENTION_FOLDED : 0},
        {"shape: reserved[0]", s->reserved[0], 0, 0}, {"shape: reserved[1]", s->reserved[1], 0, 0},
        {"shape: reserved[2]", s->reserved[2], 0, 0}, {"shape: reserved[3]", s->reserved[3], 0, 0}};
    status = check_ranges(ranges, sizeof ranges / sizeof *ranges);
    s->longest = at_most(s->longest, s->queries);       /* both are bounds, as a model's are */
    s->longest_tokens = at_most(s->longest_tokens, s->tokens);
    return status == TILUS_OK && forward ? check_forward(p, s) : status;
}
