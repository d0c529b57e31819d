/* mbarriers. A phase ends with the last of its arrivals: the bytes that it waits for are
 * those of the copies that began in it, and they are there then. Who waits goes on when
 * the phase has ended, and knows what all knew who arrived:
 *
 *     producer   copy_async_bulk  arrive .......
 *                                      \ clock, released when the phase ends
 *     consumer   wait .................. reads
 *
 * A parity tells a phase from its neighbors only. So whoever arrives, starts a copy or
 * waits must know that the phases before the one that is meant have ended: else another
 * order of the threads could mean another phase. Of a cluster each block has its own
 * mbarriers; a remote arrival, or a copy to several blocks, acts on another block's. */
#include "interp/copy.h"
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"

#include <string.h>

struct Mbarrier {
    const Op *allocation;
    int64_t element;            /* which one of those */
    unsigned rank, owner;       /* rank: of its block in the cluster */
    int64_t arrivals, pending;  /* of a phase, and still to come */
    uint64_t phase;             /* how many have ended */
    uint64_t ended[2];          /* when the last one did, and the one before it */
    int64_t bytes;              /* of the copies of this phase */
    uint64_t *clock, *released; /* of this phase, of the last */
    Copy *copies, *landed;      /* of this phase; of the last one, until somebody waits */
    Mbarrier *next;             /* in Interp.mbarriers */
};

void mbarriers_bind(Interp *in, const Value *v)
{
    int64_t count = type_extent(v->type, 0);
    Mbarrier *all = arena_array(in->arena, Mbarrier, (size_t)count * in->blocks);
    for (int64_t i = 0; i < count * in->blocks; i++) {
        all[i] = (Mbarrier){.allocation = v->def, .element = i % count,
                            .rank = (unsigned)(i / count), .owner = in->owner_count++,
                            .arrivals = mbarrier_arrivals(v->def), .next = in->mbarriers};
        in->mbarriers = &all[i];
    }
    for (unsigned rank = 0; rank < in->blocks; rank++)
        value_binding(v)[rank].mbarriers = all + rank * count;
}

void mbarriers_open(Interp *in)
{
    for (Mbarrier *b = in->mbarriers; b; b = b->next) {
        b->clock = arena_array(in->arena, uint64_t, in->owner_count);
        b->released = arena_array(in->arena, uint64_t, in->owner_count);
    }
}

static void mbarrier_init(const Interp *in, Mbarrier *b)
{
    size_t size = in->owner_count * sizeof *b->clock;
    b->pending = b->arrivals;
    b->phase = 0;
    b->bytes = 0;
    b->copies = b->landed = NULL;
    memset(b->ended, 0, sizeof b->ended);
    memset(b->clock, 0, size);
    memset(b->released, 0, size);
}

/* Blocks of a cluster meet after it, so that none uses another's before it is there. */
bool interp_allocate_mbarrier(Interp *in, const Op *op)
{
    Mbarrier *all = value_binding(op->results[0])->mbarriers;
    for (int64_t i = 0; !in->meeting->waits[in->rank] && i < type_extent(op->results[0]->type, 0); i++)
        mbarrier_init(in, &all[i]);
    if (program_blocks(in->program) > 1)
        interp_meet(in, in->meeting);
    return true;
}

/* The block of the running cluster with this rank. */
static const char *rank_name(Interp *in, unsigned rank)
{
    return interp_block_name(in, interp_block_number(in, in->block_count - 1, rank));
}

/* "%full[2]", "%full[2] of block (1)" */
static const char *mbarrier_name(Interp *in, const Mbarrier *b)
{
    bool own = b->rank == in->rank;
    return arena_printf(in->arena, "%s[%lld]%s%s",
                        value_text(in->program->module, b->allocation->results[0]),
                        (long long)b->element, own ? "" : " of ", own ? "" : rank_name(in, b->rank));
}

/* The one that `op` means of the block with this rank; NULL after an error. */
static Mbarrier *find_mbarrier_of(Interp *in, const Op *op, int64_t rank)
{
    const Value *v = op->operands[op->operand_count - 1];
    int64_t element, count = type_extent(v->type, 0);
    if (!interp_evaluate(in, op, op_expr(op, ATTR_ELEMENT), &element))
        return NULL;
    if (element >= 0 && element < count)
        return value_binding(v)->mbarriers + (rank - in->rank) * count + element;
    diag_error(in->diag, op->loc, "mbarrier %lld of %s, which has %lld", (long long)element,
               value_text(in->program->module, v), (long long)count);
    return NULL;
}

/* The one that `op` means, of its own block or of its rank's. */
static Mbarrier *find_mbarrier(Interp *in, const Op *op)
{
    int64_t rank;
    return interp_rank(in, op, ATTR_RANK, false, &rank) ? find_mbarrier_of(in, op, rank) : NULL;
}

/* Returns true when `warp` knows that the phase which ended at `time` is over. */
static bool knows(const Interp *in, unsigned warp, const Mbarrier *b, uint64_t time)
{
    return in->ordered[in->first_owner + warp][b->owner] > time;
}

/* Checks that `op` of `warp` acts on the phase that the warp means, where `behind`
 * phases may have ended without its knowing. */
static bool check_phase(Interp *in, const Op *op, const Mbarrier *b, unsigned warp,
                        unsigned behind)
{
    uint64_t phase = b->phase - 1 - behind;
    if (b->phase <= behind || knows(in, warp, b, b->ended[behind]))
        return true;
    return diag_error(in->diag, op->loc, "warp %u comes to this %s of %s without knowing that "
                      "phase %llu of it has ended: nothing orders the two, so which phase is "
                      "meant is not sure", warp, op_info[op->code].name, mbarrier_name(in, b),
                      (unsigned long long)phase);
}

/* ---- copies --------------------------------------------------------------- */

bool mbarrier_expect(Interp *in, Copy *c)
{
    Mbarrier *b = find_mbarrier_of(in, c->op, c->target_rank);
    int64_t bytes = bulk_bytes(c->op);
    if (!b || !check_phase(in, c->op, b, first_warp(in), 0))
        return false;
    if (b->bytes + bytes > LIMIT_ARRIVALS)
        return diag_error(in->diag, c->op->loc, "a phase of %s waits for %lld bytes, it can for "
                          "%d", mbarrier_name(in, b), (long long)(b->bytes + bytes),
                          LIMIT_ARRIVALS);
    b->bytes += bytes;
    c->owner = b->owner;
    c->begun = in->time;
    c->next = b->copies;
    b->copies = c;
    return true;
}

static void free_copies(Interp *in, Copy **list)
{
    while (*list) {
        Copy *c = *list;
        *list = c->next;
        c->next = in->free_copies;
        in->free_copies = c;
    }
}

/* The copies of the phase that ends: each must be ordered before its end. */
static bool land_copies(Interp *in, Mbarrier *b)
{
    for (const Copy *c = b->copies; c; c = c->next) {
        unsigned warp = (unsigned)member_first_warp(&c->member);
        if (b->clock[c->member.rank * in->program->warps + warp] <= c->begun) {
            diag_error(in->diag, in->ops[in->op]->loc, "phase %llu of %s ends here, and no "
                       "arrival orders it after a copy that it shall wait for",
                       (unsigned long long)b->phase, mbarrier_name(in, b));
            return diag_note(in->diag, c->op->loc, "the copy begins here");
        }
        if (!bulk_land(in, c))
            return false;
    }
    free_copies(in, &b->landed);
    b->landed = b->copies;
    b->copies = NULL;
    b->bytes = 0;
    return true;
}

/* ---- arrivals and waits ----------------------------------------------------- */

static bool end_phase(Interp *in, Mbarrier *b)
{
    if (!land_copies(in, b))
        return false;
    for (unsigned u = 0; u < in->owner_count; u++) {
        b->released[u] = b->clock[u];
        b->clock[u] = 0;
    }
    b->released[b->owner] = in->time + 1;
    b->ended[1] = b->ended[0];
    b->ended[0] = in->time;
    b->pending = b->arrivals;
    b->phase++;
    return true;
}

bool interp_mbarrier_arrive(Interp *in, const Op *op)
{
    Mbarrier *b = find_mbarrier(in, op);
    if (!b || !race_begin(in, op))
        return false;
    for (unsigned w = first_warp(in); w < end_warp(in); w++) {
        if (!check_phase(in, op, b, w, 0))
            return false;
        race_arrive(in, w, b->clock);
        if (--b->pending == 0 && !end_phase(in, b))
            return false;
    }
    return true;
}

static bool is_odd(int64_t phase)
{
    return phase & 1;
}

bool interp_mbarrier_wait(Interp *in, const Op *op)
{
    Mbarrier *b = find_mbarrier(in, op);
    int64_t phase;
    if (!b || !interp_evaluate(in, op, op_expr(op, ATTR_STATE), &phase))
        return false;
    bool goes_on = is_odd(phase) == is_odd((int64_t)b->phase);
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        if (!check_phase(in, op, b, w, goes_on ? 0 : 1))
            return false;
    in->blocked = goes_on;
    if (goes_on)
        return true;
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        race_acquire(in, w, b->released);
    free_copies(in, &b->landed);
    return true;
}

/* ---- messages ---------------------------------------------------------------- */

const char *mbarrier_wait_text(Interp *in, const Op *op)
{
    const Mbarrier *b = find_mbarrier(in, op);
    return arena_printf(in->arena, "waits for phase %llu of %s, of whose %lld arrivals %lld have "
                        "come", (unsigned long long)b->phase, mbarrier_name(in, b),
                        (long long)b->arrivals, (long long)(b->arrivals - b->pending));
}

static const Copy *find_copy(const Copy *list, const Memory *memory)
{
    while (list && memory && list->target_view.memory != memory)
        list = list->next;
    return list;
}

bool mbarriers_ended(Interp *in, const Memory *memory, const Op *op)
{
    for (const Mbarrier *b = in->mbarriers; b; b = b->next) {
        const Copy *c = find_copy(b->copies, memory);
        c = c ? c : find_copy(b->landed, memory);
        if (!c)
            continue;
        if (!op)
            return diag_error(in->diag, c->op->loc, "%s ends while this copy_async_bulk is in "
                              "flight: no mbarrier_wait waits for its phase",
                              rank_name(in, b->rank));
        diag_error(in->diag, op->loc, "%s is allocated again while a copy_async_bulk into it is "
                   "in flight", c->target_view.name);
        return diag_note(in->diag, c->op->loc, "no mbarrier_wait waits for its phase");
    }
    return true;
}
