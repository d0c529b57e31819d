/* Finds what is known at each event: the greatest solution, from above. A pass walks the nodes in
 * the order of the text; what reaches the top of a loop, and what an arrival orders, only
 * becomes less, until nothing changes. */
#include "memory/rings_events.h"

#include "ir/op_access.h"
#include "scalar/facts.h"

#include <string.h>

/* ---- lags ------------------------------------------------------------------- */

static Lag lag_min(Lag a, Lag b)
{
    return a < b ? a : b;
}

static Lag lag_max(Lag a, Lag b)
{
    return a > b ? a : b;
}

static bool is_finite(Lag lag)
{
    return lag != LAG_NONE && lag != LAG_ALL;
}

/* The lag plus `by`, or NONE when it is too small to be of use. */
static Lag lag_move(Lag lag, int64_t by)
{
    if (!is_finite(lag))
        return lag;
    int64_t moved = lag + by;
    return moved < -LAG_LIMIT ? LAG_NONE : moved > LAG_LIMIT ? LAG_LIMIT : (Lag)moved;
}

/* With such a lag no number of the event is meant where numbers are up to `max`. */
static Lag lag_of_none(const Event *e, int64_t max)
{
    int64_t lag;
    if (!event_is_numbered(e) || max == INT64_MAX ||
        __builtin_sub_overflow(event_least(e) - 1, max, &lag) || lag < -LAG_LIMIT)
        return LAG_NONE;
    return lag > LAG_LIMIT ? LAG_LIMIT : (Lag)lag;
}

/* ---- states ------------------------------------------------------------------- */

static size_t lag_bytes(const Rings *r)
{
    return r->event_count * sizeof(Lag);
}

static void state_copy(const Rings *r, RingState *to, const RingState *from)
{
    to->dead = from->dead;
    for (unsigned i = 0; i < r->range_count; i++)
        to->known[i] = (Known){from->known[i].base,
                               arena_copy(r->arena, from->known[i].done, lag_bytes(r)),
                               arena_copy(r->arena, from->known[i].own, lag_bytes(r)),
                               arena_copy(r->arena, from->known[i].all, lag_bytes(r))};
}

/* Leaves of `to` what both know. Returns true when it has become less. */
static bool lags_meet(const Rings *r, Lag *to, const Lag *from, bool same_base)
{
    bool less = false;
    for (unsigned i = 0; i < r->event_count; i++) {
        Lag known = from[i];
        if (!same_base && is_finite(to[i] == LAG_ALL ? known : to[i]))
            known = LAG_NONE;
        less = less || known < to[i];
        to[i] = lag_min(to[i], known);
    }
    return less;
}

static bool state_meet(const Rings *r, RingState *to, const RingState *from)
{
    bool less = false;
    if (from->dead)
        return false;
    if (to->dead) {
        state_copy(r, to, from);
        return true;
    }
    for (unsigned i = 0; i < r->range_count; i++) {
        Known *a = &to->known[i];
        const Known *b = &from->known[i];
        bool same = a->base == b->base;
        less |= lags_meet(r, a->done, b->done, same);
        less |= lags_meet(r, a->own, b->own, same);
        less |= lags_meet(r, a->all, b->all, same);
    }
    return less;
}

static Lag lag_rebase(Lag lag, bool near, int64_t gap)
{
    return !is_finite(lag) ? lag : near ? lag_move(lag, -gap) : LAG_NONE;
}

/* Numbers from now on mean `base`, which goes on where the one until now ends, if anything
 * does; `upper`: up to there. */
static void known_rebase(const Rings *r, Known *k, const Expr *base, const Expr *upper)
{
    int64_t gap = 0;
    bool same = k->base == base || (upper && ring_goes_on(k->base, base, upper));
    bool near = same || ring_difference(k->base, base, &gap);
    int64_t max = facts_of_expr(base).max;
    for (unsigned i = 0; i < r->event_count; i++) {
        Lag none = lag_of_none(r->events[i], max);
        k->done[i] = lag_max(lag_rebase(k->done[i], near, gap), none);
        k->own[i] = lag_max(lag_rebase(k->own[i], near, gap), none);
        k->all[i] = lag_max(lag_rebase(k->all[i], near, gap), none);
    }
    k->base = base;
}

/* ---- events --------------------------------------------------------------------- */

static bool is_used(const Rings *r, const Event *e)
{
    return e->placed && !r->arrays[e->array].unknown;
}

/* Threads of a group of one warp, and those of a barrier, know what they did. */
static void know_own(const Rings *r, RingState *s, unsigned range, bool barrier)
{
    Known *k = &s->known[range];
    for (unsigned n = 0; n < r->range_count; n++) {
        const Known *from = &s->known[n];
        if (!range_contains(r->ranges[range], r->ranges[n]) || (n != range && !barrier))
            continue;
        bool same = from->base == k->base;
        for (unsigned i = 0; i < r->event_count; i++) {
            if (same || from->own[i] == LAG_ALL)
                k->done[i] = lag_max(k->done[i], from->own[i]);
            if (same || from->done[i] == LAG_ALL)
                k->done[i] = lag_max(k->done[i], from->done[i]);
            if (same || from->all[i] == LAG_ALL)
                k->all[i] = lag_max(k->all[i], from->all[i]);
        }
    }
}

static void know_own_warp(const Rings *r, RingState *s, unsigned range)
{
    enum { WARP = 32 };
    if (r->ranges[range].count == WARP)
        know_own(r, s, range, false);
}

/* Lowers what the event gives to what an arrival of the range orders: accesses that any of its
 * warps did or knows. */
static void flow_arrive(Rings *r, Event *e, RingState *s)
{
    RingState view = *s;
    Known *k = &view.known[e->range];
    k->done = arena_copy(r->arena, k->done, lag_bytes(r));
    k->all = arena_copy(r->arena, k->all, lag_bytes(r));
    know_own(r, &view, e->range, true);
    for (unsigned i = 0; i < r->event_count; i++) {
        r->changed |= k->done[i] < e->given[i] || k->all[i] < e->given_all[i];
        e->given[i] = lag_min(e->given[i], k->done[i]);
        e->given_all[i] = lag_min(e->given_all[i], k->all[i]);
    }
    if (!e->vacuous)
        know_own_warp(r, s, e->range);
}

/* Finds what a wait gives of event `x`, which the arrival `a` for the ticket orders. Of tickets
 * below 0, for which nobody arrives, only what is so of none. */
static Lag given_by(const Event *wait, const Event *a, const Event *x, Lag given)
{
    if (given != LAG_NONE && (wait->vacuous || wait->segment->min + wait->lag < 0)) {
        if (!event_is_numbered(x))
            return LAG_NONE;
        int64_t none = event_least(x) + a->lag;
        given = given > none ? lag_move(0, none) : given;
    }
    return lag_move(given, wait->lag - a->lag);
}

/* Finds what all arrivals of a stream order that may be for the wait's tickets. Where all blocks
 * arrive, that is so of each of them. */
static void flow_stream(const Rings *r, const Event *e, int stream, Known *k)
{
    for (unsigned i = 0; i < r->event_count; i++) {
        Lag given = LAG_ALL, all = LAG_ALL;
        bool any = false;
        for (unsigned n = 0; n < r->event_count; n++) {
            const Event *a = r->events[n];
            if (a->kind != EVENT_ARRIVE || a->stream != stream ||
                events_are_apart(a, a->lag, e, e->lag))
                continue;
            const Event *x = r->events[i];
            given = lag_min(given, given_by(e, a, x, a->given[i]));
            all = lag_min(all, given_by(e, a, x, a->everywhere ? a->given[i] : a->given_all[i]));
            any = true;
        }
        if (any) {
            k->done[i] = lag_max(k->done[i], given);
            k->all[i] = lag_max(k->all[i], all);
        }
    }
}

static void flow_wait(Rings *r, const Event *e, RingState *s)
{
    Known *k = &s->known[e->range];
    if (is_used(r, e)) {
        for (unsigned n = 0; n < r->arrays[e->array].stream_count; n++)
            flow_stream(r, e, r->arrays[e->array].streams[n], k);
        Lag *end = &k->done[e->array];
        if (*end >= e->lag - 1)
            *end = lag_max(*end, (Lag)e->lag);
    }
    k->own[e->id] = lag_max(k->own[e->id], e->segment ? 0 : LAG_NONE);
    if (!e->vacuous)
        know_own_warp(r, s, e->range);
}

/* ---- groups ----------------------------------------------------------------------- */

static bool commits_for(const Event *e, const Event *x)
{
    return (e->kind == EVENT_COMMIT || e->commits) && e->completion == x->completion &&
           e->range == x->range && e->segment == x->segment;
}

/* The first commit from `x` on, in its loop; NULL where there is none, or may be none. */
static const Event *commit_of(const Rings *r, const Event *x)
{
    for (unsigned i = x->id; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (commits_for(e, x))
            return e->conditional || e->repeated ? NULL : e;
    }
    return NULL;
}

/* Counts commits in one iteration of the loop of `x`, of events from `first` to before
 * `last`; -1: some may be left out. */
static int64_t commits_between(const Rings *r, const Event *x, unsigned first, unsigned last)
{
    int64_t count = 0;
    for (unsigned i = first; i < last && i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (!commits_for(e, x))
            continue;
        if (e->conditional || e->repeated)
            return -1;
        count++;
    }
    return count;
}

/* The groups after that of `x`, `back` iterations before, at `wait`; -1: unknown. */
static int64_t newer_groups(const Rings *r, const Event *x, const Event *wait, int64_t back)
{
    const Event *commit = commit_of(r, x);
    if (!commit || (back == 0 && commit->id >= wait->id))
        return -1;
    if (back == 0)
        return commits_between(r, x, commit->id + 1, wait->id);
    int64_t after = commits_between(r, x, commit->id + 1, r->event_count);
    int64_t all = commits_between(r, x, 0, r->event_count);
    int64_t before = commits_between(r, x, 0, wait->id);
    return after < 0 || all < 0 || before < 0 ? -1 : after + (back - 1) * all + before;
}

/* Finds of which iterations a wait ends the access `x`, in program order. */
static Lag retired(const Rings *r, const Event *x, const Event *wait)
{
    enum { BACK = 16 };
    int64_t pending = op_wait_pending(wait->op);
    if (!x->segment || x->repeated || x->segment != wait->segment) {
        const Event *commit = commit_of(r, x);
        return commit && commit->id < wait->id && pending == 0 && wait->depth == 0 ? LAG_ALL
                                                                                   : LAG_NONE;
    }
    for (int64_t back = 0; back < BACK; back++)
        if (newer_groups(r, x, wait, back) >= pending)
            return (Lag)-back;
    return LAG_NONE;
}

static void flow_retire(const Rings *r, const Event *e, RingState *s)
{
    Known *k = &s->known[e->range];
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *x = r->events[i];
        if (x->grouped && x->completion == e->completion && x->range == e->range &&
            !e->conditional && !e->repeated)
            k->own[i] = lag_max(k->own[i], retired(r, x, e));
    }
}

static void flow_access(const Event *e, RingState *s)
{
    Lag *own = &s->known[e->range].own[e->id];
    if (e->grouped)
        return;
    if (e->depth == 0)
        *own = LAG_ALL;
    else if (e->segment && !e->repeated)
        *own = lag_max(*own, 0);
}

static void flow_event(Rings *r, Event *e, RingState *s)
{
    diag_check_time(r->m->diag, e->op->loc);
    Known *k = &s->known[e->range];
    e->base = k->base;
    memcpy(e->done, k->done, lag_bytes(r));
    memcpy(e->all, k->all, lag_bytes(r));
    switch (e->kind) {
    case EVENT_ACCESS: flow_access(e, s); break;
    case EVENT_ARRIVE: flow_arrive(r, e, s); break;
    case EVENT_WAIT: flow_wait(r, e, s); break;
    case EVENT_SYNC: know_own(r, s, e->range, true); break;
    case EVENT_RETIRE: flow_retire(r, e, s); break;
    case EVENT_COMMIT: break;
    case EVENT_END: break;
    }
}

/* ---- loops ------------------------------------------------------------------------ */

static void rebase_inside(const Rings *r, RingState *s, unsigned range, const Expr *base,
                          const Expr *upper)
{
    for (unsigned n = 0; n < r->range_count; n++)
        if (range_contains(r->ranges[range], r->ranges[n]))
            known_rebase(r, &s->known[n], base, upper);
}

/* Gives another name to the number that `from` is. */
static void rename_base(const Rings *r, RingState *s, unsigned range, const Expr *from,
                        const Expr *to)
{
    for (unsigned n = 0; n < r->range_count; n++)
        if (s->known[n].base == from && range_contains(r->ranges[range], r->ranges[n]))
            s->known[n].base = to;
}

/* Raises knowledge to that of no iterations at least, where numbers are up to `max`. */
static void know_none(const Rings *r, RingState *s, const Expr *base, int64_t max)
{
    for (unsigned n = 0; n < r->range_count; n++) {
        Known *k = &s->known[n];
        for (unsigned i = 0; k->base == base && i < r->event_count; i++) {
            Lag none = lag_of_none(r->events[i], max);
            k->done[i] = lag_max(k->done[i], none);
            k->own[i] = lag_max(k->own[i], none);
            k->all[i] = lag_max(k->all[i], none);
        }
    }
}

/* Moves knowledge to the number of the next iteration, or the end. */
static void next_number(const Rings *r, RingState *s, const Segment *g)
{
    for (unsigned n = 0; n < r->range_count; n++) {
        Known *k = &s->known[n];
        for (unsigned i = 0; k->base == g->number && i < r->event_count; i++) {
            k->done[i] = lag_move(k->done[i], -1);
            k->own[i] = lag_move(k->own[i], -1);
            k->all[i] = lag_move(k->all[i], -1);
        }
    }
}

static void flow_nodes(Rings *r, Node *n, RingState *s);

/* Marks all that happened in a loop as done by its threads, when it is over. */
static void know_all_of_loop(const Rings *r, const Node *n, RingState *s)
{
    for (unsigned i = n->first; i < n->last; i++) {
        const Event *e = r->events[i];
        Lag *own = &s->known[e->range].own[i];
        if (e->grouped || (e->kind != EVENT_ACCESS && e->kind != EVENT_WAIT))
            continue;
        if (n->outermost)
            *own = LAG_ALL;
        else if (e->repeated && e->segment && s->known[e->range].base == e->segment->number)
            *own = lag_max(*own, 0);
    }
}

static const OuterLoop *outer_loop(const Node *n)
{
    return n->outer > 0 ? &n->segment->outer[n->outer - 1] : NULL;
}

static void enter_loop(const Rings *r, const Node *n, RingState *s)
{
    const OuterLoop *outer = outer_loop(n);
    if (n->outer < 0)
        return;
    if (outer) {
        rebase_inside(r, s, n->range, outer->before, NULL);
        rename_base(r, s, n->range, outer->before, outer->entry);
    } else {
        rebase_inside(r, s, n->range, n->segment->entry, n->segment->leave);
        rename_base(r, s, n->range, n->segment->entry, n->segment->number);
    }
}

/* Carries what an outer loop's last inner loop leaves into the next iteration. */
static void turn_loop(const Rings *r, const Node *n, RingState *s)
{
    const Segment *g = n->segment;
    const OuterLoop *outer = outer_loop(n);
    if (outer)
        rename_base(r, s, n->range, n->outer == 1 ? g->leave : outer[-1].after, outer->entry);
    else if (n->outer == 0)
        next_number(r, s, g);
}

static void leave_loop(const Rings *r, const Node *n, RingState *s)
{
    const OuterLoop *outer = outer_loop(n);
    if (outer)
        rename_base(r, s, n->range, outer->entry, outer->after);
    else if (n->outer == 0)
        rename_base(r, s, n->range, n->segment->number, n->segment->leave);
}

/* An op that happens once is numbered, but comes without a way around it or back. */
static void flow_once(Rings *r, Node *n, RingState *s)
{
    flow_nodes(r, n->body, s);
    turn_loop(r, n, s);
    leave_loop(r, n, s);
    know_all_of_loop(r, n, s);
}

static void flow_loop(Rings *r, Node *n, RingState *s)
{
    RingState in, end;
    enter_loop(r, n, s);
    if (n->segment && !n->segment->loop) {
        flow_once(r, n, s);
        return;
    }
    if (!n->head) {
        n->head = arena_new(r->arena, RingState);
        state_copy(r, n->head, s);
    } else {
        r->changed |= state_meet(r, n->head, s);
    }
    state_copy(r, &in, n->head);
    flow_nodes(r, n->body, &in);
    turn_loop(r, n, &in);
    state_copy(r, &end, &in);
    if (n->outer == 0)
        know_none(r, &in, n->segment->number, n->segment->max);
    r->changed |= state_meet(r, n->head, &in);
    state_meet(r, s, &end);
    leave_loop(r, n, s);
    know_all_of_loop(r, n, s);
}

/* ---- the walk ------------------------------------------------------------------------ */

static void flow_if(Rings *r, Node *n, RingState *s)
{
    RingState other;
    state_copy(r, &other, s);
    flow_nodes(r, n->body, s);
    flow_nodes(r, n->other, &other);
    state_meet(r, s, &other);
}

/* Threads of a group know what those around it do. */
static void flow_group(Rings *r, Node *n, RingState *s, unsigned outside)
{
    Known *in = &s->known[n->range];
    const Known *out = &s->known[outside];
    if (in->base != out->base && !expr_is_constant(out->base))
        known_rebase(r, in, out->base, NULL);
    for (unsigned i = 0; i < r->event_count; i++) {
        if (in->base == out->base || out->done[i] == LAG_ALL)
            in->done[i] = lag_max(in->done[i], out->done[i]);
        if (in->base == out->base || out->all[i] == LAG_ALL)
            in->all[i] = lag_max(in->all[i], out->all[i]);
    }
    flow_nodes(r, n->body, s);
}

static void flow_nodes(Rings *r, Node *n, RingState *s)
{
    for (; n; n = n->next)
        switch (n->kind) {
        case NODE_EVENT: flow_event(r, n->event, s); break;
        case NODE_LOOP: flow_loop(r, n, s); break;
        case NODE_IF: flow_if(r, n, s); break;
        case NODE_GROUP: flow_group(r, n, s, n->around); break;
        }
}

static void forget_heads(Node *n)
{
    for (; n; n = n->next) {
        n->head = NULL;
        forget_heads(n->body);
        forget_heads(n->other);
    }
}

static Lag *new_lags(const Rings *r, Lag lag)
{
    Lag *lags = arena_array(r->arena, Lag, r->event_count);
    for (unsigned i = 0; i < r->event_count; i++)
        lags[i] = lag;
    return lags;
}

static void init_state(const Rings *r, RingState *s)
{
    s->dead = false;
    for (unsigned n = 0; n < r->range_count; n++) {
        Known *k = &s->known[n];
        *k = (Known){expr_constant(&r->m->exprs, 0), new_lags(r, LAG_NONE),
                     new_lags(r, LAG_NONE), new_lags(r, LAG_NONE)};
        for (unsigned i = 0; i < r->event_count; i++)
            k->done[i] = k->own[i] = k->all[i] = lag_of_none(r->events[i], 0);
    }
}

void rings_flow(Rings *r)
{
    forget_heads(r->body);
    for (unsigned i = 0; i < r->event_count; i++) {
        r->events[i]->done = new_lags(r, LAG_NONE);
        r->events[i]->all = new_lags(r, LAG_NONE);
        r->events[i]->given = new_lags(r, LAG_ALL);
        r->events[i]->given_all = new_lags(r, LAG_ALL);
    }
    do {
        RingState s;
        r->changed = false;
        init_state(r, &s);
        flow_nodes(r, r->body, &s);
    } while (r->changed);
}
