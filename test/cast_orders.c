/* Searches for storage orders from which casts take the fewest operations, and prints
 * what lib/types/orders.def holds:
 *
 *     cmake --build build/release --target cast_orders
 *     build/release/test/cast_orders > lib/types/orders.def        some minutes
 *
 * Halves of words are treated alike, so a word has 16 places, each for one bit of a pair
 * of codes. A half of the result wants the bits of a code at its own places: for floats
 * the magnitude from place `low` on and the sign at 15, for integers the code from any
 * of some places on. A *window* is the word turned by some places; it brings each bit
 * that lies right for it to its place, and costs an operation of the integer pipe, less
 * where a shift to the left will do, which runs on the other pipe, and nothing where
 * nothing turns. A *leaf* masks what one window gives to one word of the result: one
 * operation. A word holds as many whole codes as fit, and spare bits hold parts of the
 * last pairs of the group.
 *
 * For each word all ways to fill it are tried, the magnitude of a code in at most two
 * pieces, of 7 bits three, its bits through at most three windows; and for each group all
 * ways to share out the last pairs' bits among its words. Nothing within these limits is
 * cheaper. Codes of 8 bits fill two words at once, where codes may lie in both; so many are
 * the ways that the search stops after a number of steps. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 16, JOINT_MAX = 2, BITS_MAX = 8, WORDS_MAX = 7, CODES_MAX = 7, SPARE_MAX = 2,
    SPARE_SETS = 1 << 14, SUBSETS = 1 << BITS_MAX, WINDOWS_MAX = 3,
    COST_INT = 10, COST_LEFT = 4, NEVER = 1 << 20,
    COST_JOINT = 104,                   /* what two words may cost at first */
};

static const uint64_t steps_max = UINT64_C(1) << 34;

/* Places of one or two words, which are filled at once, and windows of them: number 16 w + k
 * is place k of word w, or the word turned right by k. */
typedef uint32_t Set;

static const Set words_themselves = 0x00010001;

/* The places of a code's bits that a half of the result needs. */
typedef struct Form {
    const char *to;                     /* of integers */
    bool sign;
    unsigned bits, magnitude;           /* of a code */
    unsigned low, high;                 /* first places of the magnitude that will do */
} Form;

/* A way for some bits of a code to come to their places. */
typedef struct Way {
    Set sources;                        /* the places where they lie */
    Set windows, turns;                 /* those used; those that no shift to the left makes */
    uint8_t subset, low;                /* the bits; the place of the lowest one */
    uint8_t window[BITS_MAX];           /* of each bit */
} Way;

/* All ways for one subset of a code's bits of which one lies at a given place, the
 * cheapest first. */
typedef struct Ways {
    Way *of;
    unsigned count, capacity;
} Ways;

/* A word that is filled, or two. */
typedef struct Word {
    unsigned cost, count;
    Way ways[CODES_MAX];
    Set windows, turns;
} Word;

typedef struct Search {
    Form form;
    unsigned places;                    /* of the words that are filled at once */
    Ways ways[SUBSETS][JOINT_MAX * PLACES];
    bool known[SUBSETS];
    unsigned spare_low;                 /* where the last pairs' codes go */
    uint8_t parts[SPARE_MAX];           /* their bits in this word */
    Word best, word;
    uint64_t steps;
    Word *filled[SPARE_SETS];           /* by the spare bits that they hold */
    unsigned cost[SPARE_SETS], taken[SPARE_SETS];   /* of a set of spare bits: the cost of
                                                       the words that share it, and what
                                                       the first of them holds */
} Search;

static unsigned count_bits(Set set)
{
    return (unsigned)__builtin_popcount(set);
}

static unsigned window_cost(Set windows, Set turns)
{
    windows &= ~words_themselves;
    return COST_INT * count_bits(windows & turns) + COST_LEFT * count_bits(windows & ~turns);
}

static unsigned way_cost(const Way *w)
{
    return COST_INT * count_bits(w->windows) + window_cost(w->windows, w->turns);
}

/* ---- ways ------------------------------------------------------------------------- */

static int compare_ways(const void *a, const void *b)
{
    return (int)way_cost(a) - (int)way_cost(b);
}

/* Integers lie in one piece, their bits in order. */
static bool is_allowed(const Search *s, const Way *w)
{
    Set lowest = w->sources & -w->sources, run = (1u << s->form.bits) - 1;
    return s->form.sign || w->subset != run ||
           (w->sources == lowest * run && !(w->windows & (w->windows - 1)));
}

static void add_way(Search *s, const Way *w)
{
    for (unsigned place = 0; place < s->places && is_allowed(s, w); place++) {
        Ways *list = &s->ways[w->subset][place];
        if (!(w->sources >> place & 1))
            continue;
        if (list->count == list->capacity) {
            list->capacity = 2 * list->capacity + 64;
            list->of = realloc(list->of, list->capacity * sizeof *list->of);
            if (!list->of)
                abort();
        }
        list->of[list->count++] = *w;
    }
}

/* Tries all windows for the bits from `bit` on; `cuts` says in how many places the
 * magnitude was cut. */
static void try_windows(Search *s, Way way, unsigned bit, unsigned cuts)
{
    const Form *f = &s->form;
    while (bit < f->bits && !(way.subset >> bit & 1))
        bit++;
    if (bit == f->bits) {
        add_way(s, &way);
        return;
    }
    bool is_sign = f->sign && bit == f->magnitude;
    bool follows = !is_sign && bit > 0 && way.subset >> (bit - 1) & 1;
    unsigned place = is_sign ? PLACES - 1 : way.low + bit;
    for (unsigned window = 0; window < s->places; window++) {
        Way w = way;
        unsigned k = window % PLACES, cut = follows && way.window[bit - 1] != window;
        Set source = (Set)1 << (window - k + (place + k) % PLACES);
        w.sources |= source;
        w.windows |= (Set)1 << window;
        w.turns |= (Set)(place + k < PLACES) << window;
        w.window[bit] = (uint8_t)window;
        if (!(way.sources & source) && cuts + cut <= (f->bits == 7 ? 2 : 1) &&
            count_bits(w.windows) <= WINDOWS_MAX)
            try_windows(s, w, bit + 1, cuts + cut);
    }
}

static void list_ways(Search *s, unsigned subset, unsigned low, unsigned high)
{
    if (s->known[subset])
        return;
    s->known[subset] = true;
    for (; low <= high; low++)
        try_windows(s, (Way){.subset = (uint8_t)subset, .low = (uint8_t)low}, 0, 0);
    for (unsigned place = 0; place < s->places; place++) {
        Ways *list = &s->ways[subset][place];
        if (list->count)
            qsort(list->of, list->count, sizeof *list->of, compare_ways);
    }
}

/* ---- words ------------------------------------------------------------------------ */

static void fill(Search *s, Set taken, unsigned cost, unsigned whole, unsigned parts);

/* Puts bits of a code, in each way, where the lowest free place is one of theirs. `cost`
 * is that of leaves, `rest` the least that what follows adds. */
static void fill_place(Search *s, unsigned subset, Set taken, unsigned cost, unsigned rest,
                       unsigned whole, unsigned parts)
{
    const Ways *list = &s->ways[subset][__builtin_ctz(~taken)];
    Word before = s->word;
    for (unsigned i = 0; i < list->count && s->steps < steps_max; i++, s->steps++) {
        const Way *w = &list->of[i];
        Set windows = before.windows | w->windows, turns = before.turns | w->turns;
        unsigned leaves = cost + COST_INT * count_bits(w->windows);
        if (w->sources & taken || leaves + rest + window_cost(windows, turns) >= s->best.cost)
            continue;
        s->word.windows = windows;
        s->word.turns = turns;
        s->word.ways[before.count] = *w;
        s->word.count = before.count + 1;
        fill(s, taken | w->sources, leaves, whole, parts);
    }
    s->word.windows = before.windows;
    s->word.turns = before.turns;
    s->word.count = before.count;
}

/* Fills the places that are not taken with `whole` codes and parts of the last pairs, a
 * bit of `parts` each. */
static void fill(Search *s, Set taken, unsigned cost, unsigned whole, unsigned parts)
{
    if (!whole && !parts) {
        s->best = s->word;
        s->best.cost = cost + window_cost(s->word.windows, s->word.turns);
        return;
    }
    unsigned rest = COST_INT * (whole + count_bits(parts) - 1);
    if (whole)
        fill_place(s, (1u << s->form.bits) - 1, taken, cost, rest, whole - 1, parts);
    for (unsigned i = 0; i < SPARE_MAX; i++)
        if (parts >> i & 1)
            fill_place(s, s->parts[i], taken, cost, rest, whole, parts & ~(1u << i));
}

/* The best word that holds these bits of the last pairs. */
static const Word *fill_word(Search *s, unsigned set)
{
    unsigned bits = s->form.bits, all = (1u << bits) - 1, parts = 0;
    if (s->filled[set])
        return s->filled[set];
    for (unsigned i = 0; i < SPARE_MAX; i++) {
        s->parts[i] = (uint8_t)(set >> i * bits & all);
        if (s->parts[i])
            list_ways(s, s->parts[i], s->spare_low, s->spare_low);
        parts |= (unsigned)(s->parts[i] != 0) << i;
    }
    list_ways(s, all, s->form.low, s->form.high);
    Set taken = s->places < 32 ? ~(Set)0 << s->places : 0;
    s->word = (Word){0};
    s->best = (Word){.cost = s->places > PLACES ? COST_JOINT : NEVER};
    s->steps = 0;
    fill(s, taken, 0, s->places / bits, parts);
    if (!s->best.count) {
        s->best.cost = NEVER;
        s->steps = 0;
        fill(s, taken, 0, s->places / bits, parts);
    }
    s->filled[set] = malloc(sizeof s->best);
    if (!s->filled[set])
        abort();
    *s->filled[set] = s->best;
    return s->filled[set];
}

/* ---- groups ----------------------------------------------------------------------- */

/* Shares a set of spare bits out among words, as many each as are spare. One word has
 * the lowest of them. */
static unsigned share(Search *s, unsigned set)
{
    unsigned each = PLACES % s->form.bits, lowest = set & -set;
    if (!set || s->cost[set])
        return s->cost[set];
    s->cost[set] = NEVER;
    for (unsigned part = set; part; part = (part - 1) & set) {
        if (!(part & lowest) || count_bits(part) != each)
            continue;
        unsigned cost = fill_word(s, part)->cost;
        if (cost < s->cost[set])
            cost += share(s, set & ~part);
        if (cost < s->cost[set]) {
            s->cost[set] = cost;
            s->taken[set] = part;
        }
    }
    return s->cost[set];
}

static void forget(Search *s)
{
    for (unsigned set = 0; set < SPARE_SETS; set++)
        free(s->filled[set]);
    for (unsigned i = 0; i < SUBSETS; i++)
        for (unsigned place = 0; place < s->places; place++)
            free(s->ways[i][place].of);
    *s = (Search){.form = s->form, .places = s->places};
}

static unsigned group_words(unsigned bits)
{
    return bits % 2 ? bits : bits == 6 ? 3 : bits == 8 ? 2 : 1;
}

/* Bits of the last pairs: those that the words of a group have to spare. */
static unsigned spare_set(const Form *f)
{
    return (1u << PLACES % f->bits * group_words(f->bits)) - 1;
}

static void search(Search *s)
{
    unsigned best = NEVER, best_low = s->form.low, set = spare_set(&s->form);
    for (unsigned low = s->form.low; low <= s->form.high; low++) {
        forget(s);
        s->spare_low = low;
        unsigned cost = set ? share(s, set) : fill_word(s, 0)->cost;
        best_low = cost < best ? low : best_low;
        best = cost < best ? cost : best;
    }
    forget(s);
    s->spare_low = best_low;
    if (set)
        share(s, set);
    else
        fill_word(s, 0);
}

/* ---- printing ----------------------------------------------------------------------- */

/* A group: what each place holds, and where codes go. */
typedef struct Group {
    unsigned words, ints, lefts;
    char at[WORDS_MAX][PLACES][2];
    char lows[2 * PLACES];
} Group;

/* A bit that turns past the end of a half comes from the other one: a capital. */
static void put_way(Group *g, const Search *s, const Word *word, const Way *w, unsigned pair)
{
    const Form *f = &s->form;
    g->lows[pair] = (char)('0' + w->low);
    for (unsigned bit = 0; bit < f->bits; bit++) {
        unsigned window = w->window[bit], k = window % PLACES;
        unsigned to = f->sign && bit == f->magnitude ? PLACES - 1 : w->low + bit;
        bool crosses = word->turns >> window & 1 && to + k >= PLACES;
        char *at = g->at[g->words + window / PLACES][(to + k) % PLACES];
        if (!(w->subset >> bit & 1))
            continue;
        at[0] = (char)((crosses ? 'A' : 'a') + (int)pair);
        at[1] = (char)('0' + bit);
    }
}

/* Numbers the whole codes of a word from `first` on; parts belong to the pairs from
 * `last` on. */
static void put_word(Group *g, const Search *s, unsigned set, unsigned first, unsigned last)
{
    const Word *word = s->filled[set];
    unsigned all = (1u << s->form.bits) - 1, placed = 0;
    for (unsigned i = 0; i < word->count; i++) {
        const Way *w = &word->ways[i];
        g->ints += count_bits(w->windows);
        if (w->subset == all) {
            put_way(g, s, word, w, first++);
            continue;
        }
        unsigned spare = 0;
        while ((set >> spare * s->form.bits & all) != w->subset || placed >> spare & 1)
            spare++;
        placed |= 1u << spare;
        put_way(g, s, word, w, last + spare);
    }
    g->ints += count_bits(word->windows & word->turns & ~words_themselves);
    g->lefts += count_bits(word->windows & ~word->turns & ~words_themselves);
    g->words += s->places / PLACES;
}

static void print_group(const Search *s, const Group *g)
{
    const Form *f = &s->form;
    if (f->sign)
        printf("FLOAT_ORDER(%u, %u, %u, %u", f->bits, f->low, g->ints, g->lefts);
    else
        printf("INTEGER_ORDER(%u, %s, %u, %u, \"%s\"", f->bits, f->to, g->ints, g->lefts,
               g->lows);
    for (unsigned w = 0; w < g->words; w++) {
        printf(",\n    \"");
        for (unsigned place = PLACES; place-- > 0;)
            printf("%.2s", g->at[w][place]);
        printf("\"");
    }
    printf(")\n");
}

static void print_order(Search *s, Form form)
{
    unsigned words = group_words(form.bits), whole = PLACES / form.bits;
    unsigned set = spare_set(&form);
    Group g = {0};
    s->form = form;
    s->places = form.bits == 8 ? 2 * PLACES : PLACES;
    search(s);
    for (unsigned w = 0; g.words < words; w++) {
        put_word(&g, s, s->taken[set], w * whole, words * whole);
        set &= ~s->taken[set];
    }
    print_group(s, &g);
    forget(s);
}

static const char *const head =
    "/* Storage orders, as test/cast_orders.c finds them. Do not edit.\n"
    " *\n"
    " *     FLOAT_ORDER(bits, low, ints, lefts, word, ...)\n"
    " *         of floats whose magnitudes go to the places of a half from `low` on\n"
    " *     INTEGER_ORDER(bits, to, ints, lefts, lows, word, ...)\n"
    " *         of integers that go to the places from lows[pair] on, as a digit\n"
    " *\n"
    " * A group's casts take `ints` operations of the integer pipe and `lefts` shifts to the\n"
    " * left. A word says what lies at the places 15 to 0 of its lower half: a3 is bit 3 of\n"
    " * the even code of pair a; A3 of the odd one. The upper half has the same of the other\n"
    " * code. */\n";

/* Returns true when magnitudes of floats go to place `low` of a half of bf16, which is 7 less
 * the bits of mantissa, or of f16, 10 less these; but no half of f16 is one of f7e5m1. */
static bool is_wanted(unsigned bits, unsigned low)
{
    bool is_f16 = low + bits >= 12 && low + bits <= 16;     /* 1 to 5 bits of exponent */
    return low <= 7 || (is_f16 && !(bits == 7 && low == 9));
}

int main(void)
{
    static Search s;
    fputs(head, stdout);
    for (unsigned bits = 3; bits <= 7; bits += bits == 3 ? 2 : 1) {
        print_order(&s, (Form){"f16", false, bits, bits, 0, 10 - bits});
        print_order(&s, (Form){"bf16", false, bits, bits, 0, 7 - bits});
    }
    for (unsigned bits = 3; bits <= 8; bits++)
        for (unsigned low = 9 - bits; low <= 10; low++)
            if (is_wanted(bits, low))
                print_order(&s, (Form){NULL, true, bits, bits - 1, low, low});
    fputs("#undef FLOAT_ORDER\n#undef INTEGER_ORDER\n", stdout);
    return 0;
}
