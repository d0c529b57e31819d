#include "ir/form.h"

#include "cast/plan.h"
#include "ir/text.h"
#include "types/storage.h"

bool form_allows_packed(Module *m, const Type *t, DType to, const char **why)
{
    if (!cast_has_storage(t->dtype, to)) {
        *why = arena_printf(&m->scratch, "%s has no storage order packed(%s)",
                            dtype_name(t->dtype), dtype_name(to));
        return false;
    }
    unsigned group = cast_group(t->dtype);
    if (t->layout->slots % group == 0)
        return true;
    *why = arena_printf(&m->scratch, "packed(%s) of %s takes a multiple of %u elements a "
                        "thread, here are %lld", dtype_name(to), dtype_name(t->dtype), group,
                        (long long)t->layout->slots);
    return false;
}

/* ---- deferred scales ----------------------------------------------------------- */

void form_exponent_range(const Type *t, int *least, int *most)
{
    *least = *most = t->scaling ? t->scaling->exponents[0] : 0;
    for (unsigned i = 1; t->scaling && i < t->scaling->count; i++) {
        int e = t->scaling->exponents[i];
        *least = e < *least ? e : *least;
        *most = e > *most ? e : *most;
    }
}

enum { UNSET = INT16_MAX };

/* Two elements with equal indices along a dimension and unequal exponents. */
typedef struct Conflict {
    int64_t index;
    int exponents[2];
} Conflict;

/* Sets exponents[i] for the index i along `dim` of each of a thread's elements from those of the
 * slots of a group; false at a conflict. */
static bool spread_thread(const Layout *l, int64_t thread, const int16_t *slots, unsigned group,
                          unsigned dim, int16_t *exponents, Conflict *conflict)
{
    int64_t index[LIMIT_RANK];
    for (int64_t slot = 0; slot < l->slots; slot++) {
        layout_index(l, thread, slot, index);
        int16_t *e = &exponents[index[dim]];
        int is = slots[slot % group];
        if (*e != UNSET && *e != is) {
            *conflict = (Conflict){index[dim], {*e, is}};
            return false;
        }
        *e = (int16_t)is;
    }
    return true;
}

/* Spreads exponents from all threads. Those whose elements begin at one index along `dim` say the
 * same. */
static bool spread(const Layout *l, const int16_t *slots, unsigned group, unsigned dim,
                   int16_t *exponents, Conflict *conflict)
{
    int64_t index[LIMIT_RANK];
    bool seen[SCALING_COUNT_LIMIT] = {false};
    for (int64_t i = 0; i < l->shape[dim]; i++)
        exponents[i] = UNSET;
    for (int64_t thread = 0; thread < l->threads; thread++) {
        layout_index(l, thread, 0, index);
        bool *known = &seen[index[dim]];
        if (!*known && !spread_thread(l, thread, slots, group, dim, exponents, conflict))
            return false;
        *known = true;
    }
    return true;
}

static bool is_uniform(const int16_t *slots, unsigned group)
{
    unsigned i = 1;
    while (i < group && slots[i] == slots[0])
        i++;
    return i >= group;
}

const Type *form_decoded(Module *m, const Type *t, const char **why)
{
    int16_t slots[CAST_GROUP_MAX];
    int16_t exponents[SCALING_COUNT_LIMIT];
    unsigned group = cast_group(t->dtype);
    Conflict conflict = {0};
    if (!cast_exponents(&m->scratch, t->dtype, t->packed, slots)) {
        *why = arena_printf(&m->scratch, "%s in order packed(%s) is not decoded without "
                            "arithmetic%s", dtype_name(t->dtype), dtype_name(t->packed),
                            dtype_info[t->dtype].kind == DKIND_INT
                                ? ": view it as an unsigned type, whose codes are larger by half "
                                  "its range" : "");
        return NULL;
    }
    const Type *plain = type_like(m, t, t->packed);
    if (is_uniform(slots, group))
        return type_scaled(m, plain, 0, 1, (int16_t[]){slots[0]});
    for (unsigned d = 0; d < t->rank; d++)
        if (t->layout->shape[d] <= SCALING_COUNT_LIMIT &&
            spread(t->layout, slots, group, d, exponents, &conflict))
            return type_scaled(m, plain, d, (unsigned)t->layout->shape[d], exponents);
    *why = arena_printf(&m->scratch, "deferred scales must follow from the index along one "
                        "dimension, but at %lld along dimension %u are 2^%d and 2^%d",
                        (long long)conflict.index, t->rank - 1, conflict.exponents[0],
                        conflict.exponents[1]);
    return NULL;
}
