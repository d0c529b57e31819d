/* Shared by the parts of the proof of rings: the program as events (rings_build.c), the numbers of
 * iterations (rings_number.c), the phase that each event means (rings_place.c), what is known at
 * each (rings_flow.c), and the questions (rings.c). */
#ifndef TILUS_MEMORY_RINGS_EVENTS_H
#define TILUS_MEMORY_RINGS_EVENTS_H

#include "memory/rings.h"

#include "ir/op_access.h"

enum {
    RING_EVENTS = 256,
    RING_RANGES = 12,           /* of threads */
    RING_OUTER = 4,             /* loops around a numbered one */
    RING_STREAMS = 16,          /* of an array */
    LAG_LIMIT = 200
};

/* Knowledge of an event: all of iterations up to t + lag; nothing; all there are. */
typedef int16_t Lag;
#define LAG_NONE INT16_MIN
#define LAG_ALL INT16_MAX

/* A loop around a numbered one, from the inside out. */
typedef struct OuterLoop {
    const Op *op;
    const Expr *entry;          /* the number at the start of an iteration */
    const Expr *before, *after; /* before the first one, and after the last one */
} OuterLoop;

/* A numbered loop: the innermost one around mbarrier ops. */
typedef struct Segment {
    const Op *loop;             /* NULL: around an op that happens once, in no loop of the text */
    const Expr *number;         /* of an iteration, in terms of values inside */
    const Expr *entry, *leave;  /* before its first, and after its last iteration */
    const Expr *begin, *end;    /* the same, of all the loops around it */
    const Expr *past;           /* not below 0 after them, or NULL */
    int64_t min, max;           /* of the number */
    OuterLoop outer[RING_OUTER];
    unsigned outer_count;
} Segment;

typedef enum EventKind {
    EVENT_END,                  /* the ends of phases: one event an array, the first ones */
    EVENT_ACCESS,
    EVENT_ARRIVE,
    EVENT_WAIT,
    EVENT_SYNC,
    EVENT_COMMIT, EVENT_RETIRE  /* of groups of copies or products: begins one, waits for them */
} EventKind;

typedef struct Event {
    EventKind kind;
    unsigned id;
    const Op *op;
    const Segment *segment;     /* NULL: not numbered */
    unsigned range;             /* of threads */
    bool conditional, repeated; /* may be left out; may happen again in an iteration */
    bool grouped;               /* an access that a wait for its group ends */
    bool commits;               /* its group ends with it */
    Completion completion;      /* of these groups */
    bool vacuous;               /* a wait or arrival that is left out for tickets below 0 */
    unsigned depth;             /* loops around it */
    int array;                  /* that it acts on, or that counts it; -1: none */
    bool placed;                /* its ticket is known: the number plus lag */
    int64_t lag;
    bool earlier;               /* a wait for two phases before the one of its text */
    const Expr *element, *phase;
    int stream;                 /* of an arrival */
    bool everywhere;            /* an arrival or copy at the mbarriers of all blocks of a cluster */
    uint32_t ranks;             /* of an arrival: the blocks that its ops name; 0: its own */
    const Expr *base;           /* of what is known before it: */
    Lag *done, *all;            /* in its block; in all blocks of the cluster */
    Lag *given, *given_all;     /* EVENT_ARRIVE: what it orders before the phase's end */
} Event;

/* An array of mbarriers. */
typedef struct RingArray {
    const Value *value;
    int64_t count, arrivals;
    int streams[RING_STREAMS];  /* each arrives once for each ticket */
    unsigned stream_count;
    bool everywhere;            /* all blocks of the cluster arrive at each of its mbarriers */
    const Op *unknown;          /* the op of which the phase is not known, or NULL */
} RingArray;

typedef enum NodeKind { NODE_EVENT, NODE_LOOP, NODE_IF, NODE_GROUP } NodeKind;

/* Knowledge of a range's threads, relative to an iteration's number. */
typedef struct Known {
    const Expr *base;
    Lag *done;                  /* ordered before all of them */
    Lag *own;                   /* by each of them before, in program order */
    Lag *all;                   /* the same for all blocks of the cluster */
} Known;

typedef struct RingState {
    bool dead;
    Known known[RING_RANGES];
} RingState;

typedef struct Node {
    NodeKind kind;
    struct Node *next;
    struct Node *body, *other;  /* of a loop or group; the branches of an if */
    Event *event;
    const Segment *segment;     /* of a loop: it numbers this loop ... */
    int outer;                  /* ... or this many loops lie between; -1: neither */
    unsigned range, around;     /* of a loop: the range; of a group: inside, outside */
    unsigned first, last;       /* events inside: from first to before last */
    bool outermost;             /* a loop in no other one */
    RingState *head;
} Node;

struct Rings {
    Module *m;
    Program *p;
    Arena *arena;
    Event *events[RING_EVENTS];
    unsigned event_count;
    RingArray *arrays;
    unsigned array_count;
    ThreadRange ranges[RING_RANGES];
    unsigned range_count;
    Segment **segments;
    uint32_t segment_count, segment_capacity;
    Node *body;
    const Op *unknown[LIMIT_MBARRIERS];     /* of arrays, in the order in which it was found */
    unsigned unknown_count;
    bool full, changed;         /* too many events; the last pass over them changed something */
};

/* Fills in events, arrays and nodes. */
void rings_build(Rings *r);

/* The loop's numbering; NULL when none is found. */
const Segment *ring_find_segment(Rings *r, const Op *op);
/* The numbering of a loop of one iteration, numbered 0, that is not in the text. */
const Segment *ring_once(Rings *r);
/* Returns true when the loop runs at least so often that its bounds are in order. */
bool ring_bounds_are_ordered(Rings *r, const Op *op);

/* Finds the tickets of all events. */
void rings_place(Rings *r);
/* Finds the ticket of a wait: of two of a parity, the one that is not ahead. Of others the
 * first one from `first` on. */
bool ring_place_event(Rings *r, Event *e, int64_t first);
/* A bit for each block of the cluster. */
uint32_t ring_all_ranks(const Rings *r);
/* The bits of a rank, or of a mask of them; 0: of the op's own block, all bits: unknown. */
uint32_t ring_ranks(Rings *r, const Op *op, AttrKind kind);

/* Derives what is known at each event, from the arrays without an unknown phase. */
void rings_flow(Rings *r);

static inline bool event_is_numbered(const Event *e)
{
    return e->kind == EVENT_END || e->segment;
}

/* The least number of an event. */
static inline int64_t event_least(const Event *e)
{
    return e->segment ? e->segment->min : 0;
}

/* Returns true when no number of `a` plus `a_lag` is one of `b` plus `b_lag`. */
static inline bool events_are_apart(const Event *a, int64_t a_lag, const Event *b,
                                    int64_t b_lag)
{
    const Segment *s = a->segment, *t = b->segment;
    return (s->max < LAG_LIMIT && s->max + a_lag < t->min + b_lag) ||
           (t->max < LAG_LIMIT && t->max + b_lag < s->min + a_lag);
}

static inline bool is_mbarrier_wait(const Op *op)
{
    return op_syncs(op, SYNC_WAIT, COMPLETION_MBARRIER);
}

static inline bool is_mbarrier_op(const Op *op)
{
    return op_sync(op) == SYNC_ARRIVE || is_mbarrier_wait(op) ||
           op_completion(op) == COMPLETION_MBARRIER;
}

/* Replaces the results of `scalar` ops, and indices of loops that are written out, by theirs. */
const Expr *ring_expand(Rings *r, const Expr *e);
/* The expression `a op b`; NULL when an operand is, or when it is undefined. */
const Expr *ring_make(Rings *r, ScalarOp op, const Expr *a, const Expr *b);
const Expr *ring_constant(Rings *r, int64_t value);
const Expr *ring_plus(Rings *r, const Expr *e, int64_t number);
/* Returns true when the two are known to be one number. */
bool ring_equal(const Expr *a, const Expr *b);
/* Returns true when the difference b - a is one known number. */
bool ring_difference(const Expr *a, const Expr *b, int64_t *difference);

/* Returns true when the threads of `inner` are some of those of `outer`. */
static inline bool range_contains(ThreadRange outer, ThreadRange inner)
{
    return outer.begin <= inner.begin &&
           inner.begin + inner.count <= outer.begin + outer.count;
}

/* A value of its own, with that range. */
const Expr *ring_fresh_value(Rings *r, const Type *type, int64_t min, int64_t max);

/* Returns true when a loop that begins at `begin` goes on where numbers `end`, if it runs up
 * to `upper` at all. */
bool ring_goes_on(const Expr *end, const Expr *begin, const Expr *upper);

#endif
