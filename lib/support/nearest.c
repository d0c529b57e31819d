/* Distances between names. */
#include "support/nearest.h"

#include <string.h>

/* Insertions, deletions and replacements that turn `a` into `b`. */
static size_t edit_distance(const char *a, size_t na, const char *b)
{
    enum { MAX = 64 };
    size_t row[MAX + 1], nb = strlen(b);
    if (na > MAX || nb > MAX)
        return MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[nb];
}

void nearest_try(Nearest *n, const char *candidate)
{
    size_t distance = edit_distance(n->name, n->len, candidate);
    size_t limit = n->found ? n->distance : n->len / 3 + 2;
    if (distance >= limit || distance >= n->len)
        return;
    n->distance = distance;
    n->found = candidate;
}
