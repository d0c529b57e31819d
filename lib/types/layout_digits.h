/* Digits of layouts (see layout.c), and refusals. Included by the files of layouts alone. */
#ifndef TILUS_TYPES_LAYOUT_DIGITS_H
#define TILUS_TYPES_LAYOUT_DIGITS_H

#include "types/layout.h"

#include <inttypes.h>
#include <stdarg.h>

enum { REPLICA = -1 };

/* The dimension is REPLICA and the stride 0 where a step holds the same
 * elements again. */
typedef struct Digit {
    int64_t extent, stride;
    int dim;
} Digit;

/* Most significant first. */
typedef struct DigitList {
    unsigned count;
    Digit digit[LAYOUT_MODES];
} DigitList;

typedef struct Strided {
    unsigned rank;
    int64_t shape[LIMIT_RANK];
    DigitList spatial, local;
} Strided;

/* Appends a less significant digit, joined to the last one where both are one
 * walk. A replica's stride of 0 makes neighboring replicas one, too. */
void digit_push(DigitList *list, Digit d);

/* The layout's digits. */
Strided layout_expand(const Layout *l);

/* The layout of `s`, which is canonical and within the limits. */
const Layout *layout_intern(LayoutTable *t, const Strided *s);

/* ---- refusals: each sets `*why` and returns false -------------------------- */

__attribute__((format(printf, 3, 4)))
static inline bool refuse(LayoutTable *t, const char **why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *why = arena_vprintf(t->arena, format, args);
    va_end(args);
    return false;
}

/* The product of two positive numbers, INT64_MAX when it is larger. */
static inline int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline bool check_rank(LayoutTable *t, unsigned rank, const char **why)
{
    if (rank < 1 || rank > LIMIT_RANK)
        return refuse(t, why, "a layout has 1 to %d dimensions, got %u", LIMIT_RANK, rank);
    return true;
}

static inline bool check_shape(LayoutTable *t, unsigned rank, const int64_t *shape,
                               const char **why)
{
    if (!check_rank(t, rank, why))
        return false;
    for (unsigned d = 0; d < rank; d++)
        if (shape[d] < 1)
            return refuse(t, why, "an extent is at least 1, dimension %u has %" PRId64, d,
                          shape[d]);
    return true;
}

static inline bool check_size(LayoutTable *t, const char *unit, int64_t size, int limit,
                              const char **why)
{
    if (size <= limit)
        return true;
    return refuse(t, why, "a layout has at most %d %s, got %" PRId64 "%s", limit, unit, size,
                  size == INT64_MAX ? " or more" : "");
}

static inline bool check_sizes(LayoutTable *t, int64_t threads, int64_t slots,
                               const char **why)
{
    return check_size(t, "threads", threads, LIMIT_THREADS, why) &&
           check_size(t, "slots", slots, LIMIT_ELEMENTS_A_THREAD, why);
}

static inline bool check_ranks(LayoutTable *t, const Layout *f, const Layout *g,
                               const char **why)
{
    if (f->rank == g->rank)
        return true;
    return refuse(t, why, "the layouts' ranks must be equal, got %u and %u", f->rank, g->rank);
}

#endif
