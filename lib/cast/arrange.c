/* Bringing fields of the source's bits to their places in a word.
 *
 * A window is the 32 bits of the source from bit t on: an input word where t
 * is a multiple of 32, else one shift. The fields of a word are covered by
 * leaves, each of which is
 *
 *     one window      (window & mask) ^ rest                     lop3
 *     two windows     (prmt(window, window) & mask) ^ rest       prmt, lop3
 *
 * prmt moves whole bytes, so a field keeps its place within a byte of the
 * window; a window that another word's leaf used already costs nothing. The
 * search tries windows that suit the fields, alone and in pairs, and splits
 * the set of fields where two leaves are cheaper than one. */
#include "cast/internal.h"

#include <assert.h>
#include <string.h>

enum { CANDIDATES_MAX = 192, NEVER = 1000000 };

unsigned add_fields(const Planner *p, Field *fields, unsigned count, unsigned e, unsigned bit,
                    unsigned width, unsigned lane, unsigned low, unsigned high)
{
    unsigned first = count;
    for (unsigned b = 0; b < width; b++) {
        unsigned from = source_bit(p, e, bit + b);
        Field *last = count > first ? &fields[count - 1] : NULL;
        if (last && last->from + last->width == from)
            last->width++;
        else
            fields[count++] = (Field){from, 1, lane, low + b, low + b, low + b};
    }
    if (count == first + 1)
        fields[first].high = high;
    return count;
}

unsigned source_bit(const Planner *p, unsigned e, unsigned bit)
{
    unsigned bits = dtype_bits(p->query->from), group = p->storage.elements;
    if (!p->packed)
        return e * bits + bit;
    return e / group * group * bits + p->storage.order[e % group * bits + bit];
}

/* ---- windows ------------------------------------------------------------ */

/* The input word that holds bit t, below 0 for what precedes the first. */
static int word_of(int t)
{
    return t >= 0 ? t / 32 : -((31 - t) / 32);
}

/* A window that a leaf uses, or may use: the node, once it is made, and the
 * bits of the source that it has then. */
typedef struct Window {
    int start, first, end;
    int node;                   /* -1: not made */
} Window;

/* Returns the op that makes the window at t when bits [first, end) of the source are
 * needed: a shift of the word that holds them, else a funnel shift of two. */
static CastOp window_op(const Planner *p, Window *w, int first, int end)
{
    int i = word_of(w->start), border = 32 * (i + 1), words = (int)p->in_words;
    unsigned s = (unsigned)(w->start - 32 * i);
    w->first = w->start;
    w->end = w->start + 32;
    if (i >= 0 && end <= border) {
        w->end = border;
        return (CastOp){CAST_shr, s, {p->source[i]}};
    }
    if (i + 1 < words && first >= border) {
        w->first = border;
        return (CastOp){CAST_shl, 32 - s, {p->source[i + 1]}};
    }
    return (CastOp){CAST_shf, s, {p->source[i], p->source[i + 1]}};
}

static bool holds(const Window *w, int first, int end)
{
    return w->node >= 0 && w->first <= first && end <= w->end;
}

static unsigned build_window(Planner *p, int t, int first, int end)
{
    if (t % 32 == 0)
        return p->source[t / 32];
    for (uint32_t i = 0; i < p->window_count; i++)
        if (p->windows[i].start == t && holds(&p->windows[i], first, end))
            return (unsigned)p->windows[i].node;
    Window w = {.start = t};
    w.node = (int)node_of(p, window_op(p, &w, first, end));
    arena_push(p->arena, p->windows, p->window_count, p->window_capacity, w);
    return (unsigned)w.node;
}

/* Returns true when the codes at `at` of a word's halves are all in one piece. */
static bool lies_at(const Planner *p, unsigned word, unsigned e, unsigned width, unsigned *at)
{
    *at = source_bit(p, e, 0);
    if (*at / 32 != word)
        return false;
    for (unsigned b = 1; b < width; b++)
        if (source_bit(p, e, b) != *at + b)
            return false;
    *at %= 16;
    return true;
}

/* Codes of a word whose place is too high: a window at the lowest of them brings it
 * to place 0, and serves those up to `high` above it; and so on. Whole bytes need
 * none. */
void share_windows(Planner *p, unsigned width, unsigned high)
{
    for (unsigned word = 0; p->packed && width < 8 && word < p->in_words; word++) {
        uint32_t places = 0;
        for (unsigned e = 0, at; e < p->query->elements; e++)
            if (lies_at(p, word, e, width, &at) && at > high)
                places |= UINT32_C(1) << at;
        while (places) {
            unsigned lowest = (unsigned)__builtin_ctz(places), start = 32 * word + lowest;
            build_window(p, (int)start, (int)start, 32 * (int)word + 32);
            for (unsigned at = lowest; at <= lowest + high && at < 16; at++)
                places &= ~(UINT32_C(1) << at);
        }
    }
}

/* ---- leaves ------------------------------------------------------------- */

/* The place in its lane that window t gives a field, as it is or after moving
 * bytes; -1: none that will do. */
static int place_in(const Field *f, int t, bool permute)
{
    int pos = (int)f->from - t;
    if (pos < 0 || pos + (int)f->width > 32)
        return -1;
    if (!permute)
        return pos >= (int)(f->lane + f->low) && pos <= (int)(f->lane + f->high)
                   ? pos - (int)f->lane : -1;
    int at = (int)(f->low + (((unsigned)pos - f->low) & 7));
    return at <= (int)f->high ? at : -1;
}

/* The selector of prmt has 4 bits for each byte; 8 here: any byte serves. */
enum { ANY_BYTE = 8, ANY_BYTES = 0x8888 };

/* Adds the bytes of a field in window `which` to a selector; false when two
 * fields want different bytes in one place. */
static bool select_bytes(const Field *f, int t, unsigned which, int at, uint32_t *selector)
{
    unsigned pos = f->from - (unsigned)t, to = f->lane + (unsigned)at;
    if (f->lane % 8)
        return false;
    for (unsigned b = 0; b <= (pos % 8 + f->width - 1) / 8; b++) {
        unsigned shift = 4 * (to / 8 + b), byte = 4 * which + pos / 8 + b;
        unsigned is = *selector >> shift & 15;
        if (is != ANY_BYTE && is != byte)
            return false;
        *selector = (*selector & ~(15u << shift)) | byte << shift;
    }
    return true;
}

/* The way that a leaf serves its fields. */
typedef struct LeafUse {
    uint32_t selector;
    int first[2], end[2];       /* bits of the source that each window must hold */
    bool whole_bytes;           /* of one window: prmt can bring constants, too */
} LeafUse;

static void use_window(LeafUse *use, unsigned which, const Field *f)
{
    int first = (int)f->from, end = (int)(f->from + f->width);
    use->first[which] = first < use->first[which] ? first : use->first[which];
    use->end[which] = end > use->end[which] ? end : use->end[which];
}

/* Sets the places of a leaf's fields; false when it does not serve them all. */
static bool leaf_use(const Arrangement *a, const Leaf *leaf, LeafUse *use, bool set)
{
    *use = (LeafUse){ANY_BYTES, {INT16_MAX, INT16_MAX}, {-1, -1}, leaf->permute};
    for (unsigned i = 0; i < 32 && leaf->fields >> i; i++) {
        Field *f = &a->fields[i];
        if (!(leaf->fields >> i & 1))
            continue;
        int at = place_in(f, leaf->window[0], leaf->permute);
        unsigned which = 0;
        if (at < 0 || (leaf->permute &&
                       !select_bytes(f, leaf->window[0], 0, at, &use->selector))) {
            which = 1;
            at = leaf->permute ? place_in(f, leaf->window[1], true) : -1;
            if (at < 0 || !select_bytes(f, leaf->window[1], 1, at, &use->selector))
                return false;
        }
        use_window(use, which, f);
        use->whole_bytes &= which == 0 && at % 8 == 0 && f->width % 8 == 0;
        if (set)
            f->at = (unsigned)at;
    }
    return true;
}

/* Operations that a leaf with these windows takes. */
static unsigned leaf_cost(const Arrangement *a, const Leaf *leaf, const Window *const w[2])
{
    LeafUse use;
    if (!leaf_use(a, leaf, &use, false))
        return NEVER;
    unsigned cost = !holds(w[0], use.first[0], use.end[0]);
    if (use.end[1] >= 0 && w[1] != w[0])
        cost += !holds(w[1], use.first[1], use.end[1]);
    return cost + (leaf->permute && !use.whole_bytes ? 2 : 1);
}

/* ---- the search --------------------------------------------------------- */

typedef struct Candidates {
    Window at[CANDIDATES_MAX];
    unsigned count;
} Candidates;

static void add_candidate(const Planner *p, Candidates *list, Window w)
{
    int i = word_of(w.start), words = (int)p->in_words;
    if (i + 1 < 0 || i >= words || (i + 1 == 0 && w.start % 32 == 0) ||
        list->count == CANDIDATES_MAX)
        return;
    for (unsigned k = 0; k < list->count; k++)
        if (list->at[k].start == w.start && (w.node < 0 || list->at[k].node == w.node))
            return;
    list->at[list->count++] = w;
}

static void add_start(const Planner *p, Candidates *list, int start)
{
    int node = start % 32 == 0 ? 0 : -1;
    add_candidate(p, list, (Window){start, start, start + 32, node});
}

/* Windows worth trying, those in use first: the words that hold fields, those
 * that put a field into an extreme place, and words shifted by less than a byte. */
static void list_candidates(const Planner *p, const Arrangement *a, uint32_t fields,
                            Candidates *list)
{
    list->count = 0;
    for (unsigned i = 0; i < 32 && fields >> i; i++)
        if (fields >> i & 1)
            add_start(p, list, word_of((int)a->fields[i].from) * 32);
    for (unsigned i = 0; i < p->window_count; i++)
        add_candidate(p, list, p->windows[i]);
    for (unsigned i = 0; i < 32 && fields >> i; i++) {
        const Field *f = &a->fields[i];
        if (!(fields >> i & 1))
            continue;
        int word = word_of((int)f->from) * 32, from = (int)f->from;
        add_start(p, list, from - (int)(f->lane + f->low));
        add_start(p, list, from - (int)(f->lane + f->high));
        for (int s = 1; s < 8; s++)
            add_start(p, list, word + s);
        add_start(p, list, word + 16 + (int)((f->from - f->low) & 7));
        add_start(p, list, word - 8 + (int)((f->from - f->low) & 7));
    }
}

static bool has_whole_bytes(const Arrangement *a, uint32_t fields)
{
    for (unsigned i = 0; i < 32 && fields >> i; i++)
        if (fields >> i & 1 && a->fields[i].width % 8)
            return false;
    return true;
}

static void consider(Arrangement *best, uint32_t fields, bool permute, const Window *w,
                     const Window *v)
{
    Leaf leaf = {fields, permute, {w->start, v->start}};
    unsigned cost = leaf_cost(best, &leaf, (const Window *const[]){w, v});
    if (cost < best->cost) {
        best->leaves[0] = leaf;
        best->count = 1;
        best->cost = cost;
    }
}

/* No leaf takes less than one operation, and none by two windows less than two.
 * Only whole bytes of a single field are worth moving. */
static void search_leaf(const Planner *p, Arrangement *best, uint32_t fields)
{
    Candidates list;
    list_candidates(p, best, fields, &list);
    for (unsigned i = 0; i < list.count && best->cost > 1; i++)
        consider(best, fields, false, &list.at[i], &list.at[i]);
    if (!(fields & (fields - 1)) && !has_whole_bytes(best, fields))
        return;
    for (unsigned i = 0; i < list.count; i++)
        for (unsigned j = i; j < list.count && best->cost > (i == j ? 1 : 2); j++)
            consider(best, fields, true, &list.at[i], &list.at[j]);
}

static Arrangement search(const Planner *p, Field *fields, uint32_t set);

/* Searches on with the fields of `part` in leaves of their own. */
static void search_split(const Planner *p, Arrangement *best, uint32_t set, uint32_t part)
{
    if (!(set & part) || !(set & ~part))
        return;
    Arrangement a = search(p, best->fields, set & part);
    Arrangement b = search(p, best->fields, set & ~part);
    if (a.cost + b.cost >= best->cost || a.count + b.count > LEAVES_MAX)
        return;
    memcpy(a.leaves + a.count, b.leaves, b.count * sizeof *b.leaves);
    a.count += b.count;
    a.cost += b.cost;
    *best = a;
}

/* The middle of a set of bits: about as many lie below. */
static uint32_t lower_half(uint32_t set)
{
    unsigned half = 0;
    for (uint32_t s = set; s; s &= s - 1)
        half++;
    uint32_t rest = set;
    for (half /= 2; half; half--)
        rest &= rest - 1;
    return set & ~rest;
}

static Arrangement search(const Planner *p, Field *fields, uint32_t set)
{
    Arrangement best = {.fields = fields, .cost = NEVER};
    search_leaf(p, &best, set);
    if (best.cost <= 2 || !(set & (set - 1)))
        return best;
    uint32_t half = lower_half(set);
    search_split(p, &best, set, half);
    if (half & (half - 1)) {
        search_split(p, &best, set, 0x55555555);
        search_split(p, &best, set, 0x99999999);
    }
    return best;
}

Arrangement arrange_fields(Planner *p, Field *fields, unsigned count)
{
    assert(count <= LEAVES_MAX);
    Arrangement a = search(p, fields, low_bits(count));
    LeafUse use;
    for (unsigned i = 0; i < a.count; i++)
        leaf_use(&a, &a.leaves[i], &use, true);
    return a;
}

/* ---- building ----------------------------------------------------------- */

static uint32_t leaf_mask(const Arrangement *a, const Leaf *leaf)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < 32 && leaf->fields >> i; i++) {
        const Field *f = &a->fields[i];
        if (leaf->fields >> i & 1)
            mask |= low_bits(f->width) << (f->lane + f->at);
    }
    return mask;
}

/* Whole bytes of one window, and those of a constant between them. */
static unsigned build_bytes(Planner *p, const Leaf *leaf, const LeafUse *use, uint32_t rest)
{
    unsigned window = build_window(p, leaf->window[0], use->first[0], use->end[0]);
    uint32_t selector = use->selector;
    for (unsigned byte = 0; byte < 4; byte++)
        if ((selector >> 4 * byte & 15) == ANY_BYTE)
            selector ^= (ANY_BYTE ^ (4 + byte)) << 4 * byte;
    return node_prmt(p, window, node_constant(p, rest), selector);
}

static unsigned build_leaf(Planner *p, const Leaf *leaf, const LeafUse *use)
{
    unsigned a = build_window(p, leaf->window[0], use->first[0], use->end[0]);
    if (!leaf->permute)
        return a;
    unsigned b = use->end[1] < 0 ? a
                 : build_window(p, leaf->window[1], use->first[1], use->end[1]);
    uint32_t selector = use->selector;
    for (unsigned byte = 0; byte < 4; byte++)
        if ((selector >> 4 * byte & 15) == ANY_BYTE)
            selector &= ~(15u << 4 * byte);
    return node_prmt(p, a, b, selector);
}

unsigned build_arrangement(Planner *p, const Arrangement *a, uint32_t flip)
{
    unsigned rest = node_constant(p, flip);
    for (unsigned i = 0; i < a->count; i++) {
        const Leaf *leaf = &a->leaves[i];
        uint32_t mask = leaf_mask(a, leaf);
        LeafUse use;
        leaf_use(a, leaf, &use, false);
        if (i == 0 && use.whole_bytes && a->count == 1 && !(flip & mask)) {
            rest = build_bytes(p, leaf, &use, flip);
            continue;
        }
        unsigned word = build_leaf(p, leaf, &use);
        if (mask == UINT32_MAX && flip == 0)
            rest = word;
        else
            rest = node_lop3(p, LOP3_AND_XOR, word, node_constant(p, mask), rest);
    }
    return rest;
}

unsigned build_unmasked(Planner *p, const Arrangement *a)
{
    LeafUse use;
    assert(a->count == 1);
    leaf_use(a, &a->leaves[0], &use, false);
    return build_leaf(p, &a->leaves[0], &use);
}
