/* Warp barriers of ldmatrix and stmatrix: needed where no `synchronize` lies between the op
 * and an access that a single thread may order with it. */
#include "select/matrix.h"

#include "ir/op_access.h"

/* Search from `op` in one direction. */
typedef struct Search {
    const Op *op;
    bool before;
} Search;

/* Returns true when a thread's own access in `other` must stay on its side of the op.
 * Asynchronous copies are no thread's own: only `synchronize` orders them. */
static bool disturbs(const Search *s, const Op *other)
{
    OpAccess accesses[ACCESSES_MAX], written;
    unsigned count = op_is_async(other) ? 0 : op_accesses(other, accesses);
    bool writes = op_access_written(s->op, &written), found = false;
    for (unsigned i = 0; i < count; i++)
        found |= accesses[i].tile.memory->type->kind == TYPE_SHARED &&
                 (writes || accesses[i].mode != MODE_READ);
    return found;
}

static bool stays(Op *other, void *data)
{
    return !disturbs(data, other);
}

/* Looks from `other` on until `synchronize`, true, or an op that disturbs, or contains one
 * that does, false; `*end` tells that neither came. */
static bool scan(const Search *s, Op *other, bool *end)
{
    *end = false;
    for (; other && other != s->op; other = s->before ? other->prev : other->next) {
        if (op_is_barrier(other))
            return true;
        if (disturbs(s, other))
            return false;
        for (unsigned i = 0; i < other->region_count; i++)
            if (!region_walk(other->regions[i], stays, (void *)s))
                return false;
    }
    *end = true;
    return true;
}

/* Returns true when no access that disturbs the op can run between the op and the nearest
 * `synchronize`: in its region, around its loops, outside of them. */
static bool in_order(const Search *s)
{
    bool end, around;
    for (const Op *at = s->op; at; at = at->parent->parent) {
        const Region *r = at->parent;
        if (!scan(s, s->before ? at->prev : at->next, &end))
            return false;
        if (!end)
            return true;
        if (r->parent && r->parent->code != OP_if && r->parent->code != OP_thread_group &&
            !scan(s, s->before ? r->last : r->first, &around))
            return false;
    }
    return true;
}

void matrix_order(const Op *op, MatrixPlan *plan)
{
    plan->barrier_before = !in_order(&(Search){op, true});
    plan->barrier_after = !in_order(&(Search){op, false});
}
