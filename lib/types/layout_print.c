/* Printing layouts: a product of primitives where there is one.
 *
 * Factors are taken off the left. The rest of a layout is an end of its
 * spatial list and an end of its local list, so a state is two positions. A
 * digit can be taken next when it is first in the rest of its list and its
 * mode is the outermost left in its dimension; a factor is a run of such
 * digits of one list whose dimensions ascend (row-major) or descend
 * (column-major), or one replica.
 *
 *     spatial 8@0 4@1   local 2@0 2@1          digit extent @ dimension
 *
 *     (0, 0)  8@0 waits for 2@0, the outer mode of dimension 0
 *             local(2, 1)      ->  (0, 1)  2@1 waits for 4@1
 *             spatial(8, 4)    ->  (2, 1)
 *             local(1, 2)      ->  (2, 2)  done
 *
 * No digit has to be split. Say that a state is ahead of another when it has
 * taken everything that the other has. Let p be any product, splits included;
 * in step with it, take each digit whole as soon as p takes a part of it. This
 * is allowed, for what such a part must wait for, the whole digit must wait
 * for; it stays ahead of p; each of its factors is a part of a run of p's, so
 * it needs no more of them. Hence the search over whole digits finds a product
 * whenever one exists, and a shortest one. Among the shortest it takes one with
 * the fewest column-major factors, and then the one with threads first. */
#include "types/layout.h"

#include <assert.h>
#include <inttypes.h>

enum { FACTOR = 64, UNREACHED = 1 << 15 };  /* cost: 64 * factors + columns */

typedef enum List { SPATIAL, LOCAL } List;

/* The best factor to take in a state. */
typedef struct Step {
    uint16_t cost;      /* of everything from here on */
    uint8_t list;
    uint8_t take;       /* digits */
    bool column;
} Step;

typedef struct Search {
    const Layout *l;
    unsigned count[2];                      /* indexed by List */
    const LayoutDigit *digits[2];
    uint8_t list_of[LAYOUT_MODES];          /* where each mode's digit stands */
    uint8_t position[LAYOUT_MODES];
    Step best[LAYOUT_MODES + 1][LAYOUT_MODES + 1];  /* [spatial][local] taken */
} Search;

static void search_init(Search *s, const Layout *l)
{
    *s = (Search){.l = l, .count = {l->spatial_count, l->local_count},
                  .digits = {l->spatial, l->local}};
    for (List list = SPATIAL; list <= LOCAL; list++)
        for (unsigned i = 0; i < s->count[list]; i++) {
            int mode = s->digits[list][i].mode;
            if (mode < 0)
                continue;
            s->list_of[mode] = (uint8_t)list;
            s->position[mode] = (uint8_t)i;
        }
}

/* Returns true when the modes outside `mode` in its dimension are taken. */
static bool is_outermost(const Search *s, int mode, const unsigned *taken)
{
    const LayoutMode *modes = s->l->modes;
    if (mode == 0 || modes[mode - 1].dim != modes[mode].dim)
        return true;
    return s->position[mode - 1] < taken[s->list_of[mode - 1]];
}

/* The number of digits that the longest factor of this kind can take. */
static unsigned longest_factor(const Search *s, List list, bool column, const unsigned *taken)
{
    unsigned n = 0;
    int before = -1;
    for (unsigned i = taken[list]; i < s->count[list]; i++, n++) {
        int mode = s->digits[list][i].mode;
        if (mode < 0)
            return n ? n : 1;
        int dim = s->l->modes[mode].dim;
        if (!is_outermost(s, mode, taken) ||
            (n && (column ? dim >= before : dim <= before)))
            return n;
        before = dim;
    }
    return n;
}

/* Weighs the factors that take digits of one list in one order. */
static void try_factors(Search *s, List list, bool column, const unsigned *taken)
{
    Step *best = &s->best[taken[SPATIAL]][taken[LOCAL]];
    unsigned longest = longest_factor(s, list, column, taken);
    for (unsigned n = longest; n > 0; n--) {
        unsigned after[2] = {taken[SPATIAL], taken[LOCAL]};
        after[list] += n;
        unsigned cost = s->best[after[SPATIAL]][after[LOCAL]].cost + FACTOR + column;
        if (cost < best->cost)
            *best = (Step){(uint16_t)cost, (uint8_t)list, (uint8_t)n, column};
    }
}

/* Finds the best product from every state, last states first. */
static bool search_run(Search *s)
{
    for (unsigned i = s->count[SPATIAL] + 1; i--;)
        for (unsigned j = s->count[LOCAL] + 1; j--;) {
            unsigned taken[2] = {i, j};
            bool done = i == s->count[SPATIAL] && j == s->count[LOCAL];
            s->best[i][j].cost = done ? 0 : UNREACHED;
            for (List list = SPATIAL; list <= LOCAL; list++) {
                try_factors(s, list, false, taken);
                try_factors(s, list, true, taken);
            }
        }
    return s->best[0][0].cost < UNREACHED;
}

static void print_extents(Text *text, unsigned rank, const int64_t *extents)
{
    for (unsigned d = 0; d < rank; d++)
        text_printf(text, "%s%" PRId64, d ? ", " : "", extents[d]);
}

/* Prints one factor. Returns whether it shows the layout's rank. */
static bool print_factor(Text *text, const Search *s, const Step *step, unsigned first)
{
    static const char *const names[2][2] = {
        [SPATIAL] = {"spatial", "column_spatial"}, [LOCAL] = {"local", "column_local"}};
    const LayoutDigit *digits = s->digits[step->list] + first;
    if (digits[0].mode < 0) {
        text_printf(text, "replicate(%" PRId64 ")", digits[0].extent);
        return false;
    }
    int64_t extents[LIMIT_RANK];
    for (unsigned d = 0; d < s->l->rank; d++)
        extents[d] = 1;
    for (unsigned i = 0; i < step->take; i++)
        extents[s->l->modes[digits[i].mode].dim] = digits[i].extent;
    text_printf(text, "%s(", names[step->list][step->column]);
    print_extents(text, s->l->rank, extents);
    text_char(text, ')');
    return true;
}

static void print_product(Text *text, const Search *s)
{
    static const int64_t ones[LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    unsigned taken[2] = {0, 0};
    bool shows_rank = false, first = true;
    for (;;) {
        const Step *step = &s->best[taken[SPATIAL]][taken[LOCAL]];
        if (!step->take)
            break;
        if (!first)
            text_char(text, '.');
        shows_rank |= print_factor(text, s, step, taken[step->list]);
        taken[step->list] += step->take;
        first = false;
    }
    assert(taken[SPATIAL] == s->count[SPATIAL] && taken[LOCAL] == s->count[LOCAL]);
    if (shows_rank)
        return;
    text_add(text, first ? "local(" : ".local(");
    print_extents(text, s->l->rank, ones);
    text_char(text, ')');
}

static void print_modes(Text *text, const char *name, unsigned count,
                        const LayoutDigit *digits)
{
    text_printf(text, ", %s = [", name);
    for (unsigned i = 0; i < count; i++) {
        int64_t entry = digits[i].mode < 0 ? -digits[i].extent : digits[i].mode;
        text_printf(text, "%s%" PRId64, i ? ", " : "", entry);
    }
    text_char(text, ']');
}

static void print_general(Text *text, const Layout *l)
{
    text_add(text, "register_layout(shape = [");
    print_extents(text, l->rank, l->shape);
    text_add(text, "], mode_shape = [");
    for (unsigned m = 0; m < l->mode_count; m++)
        text_printf(text, "%s%" PRId64, m ? ", " : "", l->modes[m].extent);
    text_char(text, ']');
    print_modes(text, "spatial_modes", l->spatial_count, l->spatial);
    print_modes(text, "local_modes", l->local_count, l->local);
    text_char(text, ')');
}

void layout_print(Text *text, const Layout *l)
{
    Search search;
    search_init(&search, l);
    if (search_run(&search))
        print_product(text, &search);
    else
        print_general(text, l);
}
