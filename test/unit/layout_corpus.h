/* Every small layout and the function that it must be, for the tests of layouts.
 *
 * A layout is compared point by point with a Map, the plain function
 * (thread, slot) -> element that the papers' formulas give. The corpus holds
 * every layout of rank 1 or 2, up to SIZE points, that is a product of
 * primitives, and a large set of others. */
#ifndef TILUS_TEST_LAYOUT_CORPUS_H
#define TILUS_TEST_LAYOUT_CORPUS_H

#include "types/layout.h"

enum { SIZE = 18 };

/* Element numbers are row-major; rank 1 has shape[1] = 1. */
typedef struct Map {
    unsigned rank;
    int shape[2];
    int threads, slots;
    int *at;            /* [thread * slots + slot] */
} Map;

typedef struct Entry {
    const Layout *layout;
    const Map *map;
    unsigned factors;   /* of the shortest product; 0: the identity or none */
} Entry;

typedef struct Corpus {
    Entry *entries;
    size_t count;
    uint32_t capacity;
    size_t products;    /* entries before this one are products */
} Corpus;

/* `arena` and `table` are set up by the test's main, the rest by the group's
 * setup, build_corpora. */
extern Arena arena;
extern LayoutTable table;
extern Corpus corpora[2];       /* of ranks 1 and 2 */
extern const char *why;
int build_corpora(void **state);

/* ---- maps ------------------------------------------------------------ */

Map *map_new(unsigned rank, int rows, int columns, int threads, int slots);
/* Its points: threads * slots. */
int map_size(const Map *m);
bool map_equal(const Map *a, const Map *b);
/* Appendix A, definition 4. */
Map *map_product(const Map *f, const Map *g);
/* Fails the test where the layout is another function. */
void expect_map(const Layout *l, const Map *m);

/* ---- text ------------------------------------------------------------ */

/* The layout of `text`; `factors`, if given, receives their number, 0 for the
 * general form. replicate() has the rank of its neighbours. NULL: `why`. */
const Layout *read_layout(const char *text, unsigned *factors);
const char *text_of(const Layout *l);

/* ---- chance ---------------------------------------------------------- */

uint64_t random_below(uint64_t *seed, uint64_t n);
/* Most extents are 1, so that products of several such stay within limits. */
const Layout *random_primitive(uint64_t *seed, unsigned rank);

#endif
