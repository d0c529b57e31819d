/* Tickets: which phase of its mbarrier each arrival, wait and bulk copy means. */
#include "memory/rings_events.h"

#include "ir/op_attrs.h"

/* ---- blocks of a cluster ---------------------------------------------------- */

uint32_t ring_all_ranks(const Rings *r)
{
    return (UINT32_C(1) << program_blocks(r->p)) - 1;
}

uint32_t ring_ranks(Rings *r, const Op *op, AttrKind kind)
{
    const Expr *e = op_expr(op, kind) ? ring_expand(r, op_expr(op, kind)) : NULL;
    if (!e || program_blocks(r->p) == 1)
        return 0;
    if (!expr_is_constant(e) || e->constant < 0 || e->constant > ring_all_ranks(r))
        return UINT32_MAX;
    return kind == ATTR_RANK ? UINT32_C(1) << e->constant : (uint32_t)e->constant;
}

/* Returns true when the event has to do with its own block's mbarriers, or with those of all
 * blocks, and is not the only one to do so. */
static bool knows_blocks(const Rings *r, const Event *e)
{
    bool everywhere = r->arrays[e->array].everywhere;
    if (e->kind == EVENT_ARRIVE)
        return everywhere ? e->everywhere : e->ranks == 0;
    return !op_is_remote(e->op) || program_blocks(r->p) == 1 || (everywhere && e->everywhere);
}

/* Finds the arrays at which all arrivals go to all blocks. */
static void find_everywhere(Rings *r)
{
    for (unsigned i = 0; i < r->array_count; i++)
        r->arrays[i].everywhere = program_blocks(r->p) > 1;
    for (unsigned i = 0; i < r->event_count; i++)
        if (r->events[i]->kind == EVENT_ARRIVE && !r->events[i]->everywhere)
            r->arrays[r->events[i]->array].everywhere = false;
}

/* ---- tickets ------------------------------------------------------------------------- */

/* The number plus `k`: of an op that happens once a constant, as those that its text names. */
static const Expr *number_plus(Rings *r, const Segment *s, int64_t k)
{
    return s->loop ? ring_plus(r, s->number, k) : ring_constant(r, k);
}

/* Finds k with element == (number + k) mod count. */
static bool find_shift(Rings *r, const Event *e, int64_t *shift)
{
    int64_t count = r->arrays[e->array].count;
    if (count == 1) {
        *shift = 0;
        return true;
    }
    for (int64_t k = 0; k < count; k++) {
        const Expr *at = number_plus(r, e->segment, k);
        const Expr *slot = ring_make(r, SCALAR_mod, at, ring_constant(r, count));
        if (slot && ring_equal(slot, e->element)) {
            *shift = k;
            return true;
        }
    }
    return false;
}

bool ring_place_event(Rings *r, Event *e, int64_t first)
{
    int64_t shift, phases, count = r->arrays[e->array].count;
    if (!e->segment || !find_shift(r, e, &shift))
        return false;
    e->lag = first + floor_mod(shift - first, count);
    if (e->phase) {
        const Expr *at = number_plus(r, e->segment, shift);
        const Expr *phase = ring_make(r, SCALAR_div, at, ring_constant(r, count));
        if (!phase || (!ring_difference(phase, e->phase, &phases) &&
                       (count > 1 || !ring_difference(at, e->phase, &phases))))
            return false;
        int64_t ahead = phases * count + shift;
        bool odd = phases & 1;
        if (!e->segment->loop)
            e->lag = ahead;
        else
            e->lag = phases <= 0 && phases > -LAG_LIMIT ? ahead : odd ? shift - count : shift;
    }
    return e->lag > -LAG_LIMIT && e->lag < LAG_LIMIT;
}

/* An arrival begins a stream, or goes on with one of its threads. */
typedef struct Stream {
    unsigned range;
    int array;
    const Segment *last;
    const Expr *first, *next;   /* tickets: the first one of `last`, and the one after its last */
} Stream;

/* Returns true when the tickets of the stream end at its `next`, and not below the first one of
 * its last segment, if those from `begin` on exist. */
static bool ends_in_order(Rings *r, const Stream *s, const Expr *begin)
{
    int64_t gap;
    const Segment *g = s->last;
    const Op *outermost = g->outer_count ? g->outer[g->outer_count - 1].op : g->loop;
    return !outermost || ring_bounds_are_ordered(r, outermost) ||
           (ring_difference(s->first, begin, &gap) && gap >= 0);
}

/* Returns true when arrivals of `e` come next in the stream. */
static bool stream_takes(Rings *r, const Stream *s, Event *e, int64_t shift)
{
    int64_t count = r->arrays[e->array].count, lag;
    if (e->vacuous || s->array != e->array || s->range != e->range || s->last == e->segment)
        return false;
    if (!ring_difference(e->segment->begin, s->next, &lag))
        lag = 0;
    const Expr *begin = ring_plus(r, e->segment->begin, lag);
    const Expr *end = ring_plus(r, e->segment->end, lag);
    if (!begin || !end || !ring_goes_on(s->next, begin, end) || floor_mod(lag - shift, count) ||
        !ends_in_order(r, s, begin))
        return false;
    e->lag = lag;
    return true;
}

static void place_arrival(Rings *r, Event *e, Stream *streams, unsigned *count)
{
    RingArray *b = &r->arrays[e->array];
    int64_t shift;
    if (!e->segment || e->conditional || e->repeated || !knows_blocks(r, e) ||
        !find_shift(r, e, &shift))
        return;
    unsigned i = 0;
    while (i < *count && !stream_takes(r, &streams[i], e, shift))
        i++;
    if (i == *count) {
        if (!expr_is_constant(e->segment->begin))
            return;
        e->lag = e->vacuous ? e->lag : -e->segment->begin->constant;
        if (floor_mod(e->lag - shift, b->count) || e->segment->begin->constant + e->lag > 0)
            return;
        if (b->stream_count == RING_STREAMS)
            return;
        streams[(*count)++] = (Stream){.range = e->range, .array = e->array};
        b->streams[b->stream_count++] = (int)i;
    }
    streams[i].last = e->segment;
    streams[i].first = ring_plus(r, e->segment->begin, e->lag);
    streams[i].next = ring_plus(r, e->segment->end, e->lag);
    e->stream = (int)i;
    e->placed = streams[i].first && streams[i].next && e->lag > -LAG_LIMIT && e->lag < LAG_LIMIT;
}

/* Returns true when `a` arrives in the loop of `e`, or once at its mbarrier, after `e` that happens
 * once. */
static bool arrives_for(const Event *a, const Event *e)
{
    if (a->kind != EVENT_ARRIVE || a->array != e->array || a->range != e->range || !a->placed)
        return false;
    return a->segment == e->segment || (!e->segment->loop && !a->segment->loop && a->id > e->id &&
                                        ring_equal(a->element, e->element));
}

/* The lag of the arrival for `e`; 0 without one. */
static int64_t arrival_lag(const Rings *r, const Event *e)
{
    for (unsigned i = 0; e->segment && i < r->event_count; i++)
        if (arrives_for(r->events[i], e))
            return r->events[i]->lag;
    return 0;
}

void rings_place(Rings *r)
{
    Stream *streams = arena_array(r->arena, Stream, r->event_count + 1);
    unsigned count = 0;
    find_everywhere(r);
    for (unsigned i = 0; i < r->event_count; i++)
        if (r->events[i]->kind == EVENT_ARRIVE)
            place_arrival(r, r->events[i], streams, &count);
    for (unsigned i = 0; i < r->event_count; i++) {
        Event *e = r->events[i];
        if (e->array >= 0 && (e->kind == EVENT_WAIT || e->kind == EVENT_ACCESS))
            e->placed = knows_blocks(r, e) && ring_place_event(r, e, arrival_lag(r, e));
    }
}
