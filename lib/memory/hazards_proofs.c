/* Proofs that accesses do not race, as the search for races finds them, for those who ask why. */
#include "memory/hazards_walk.h"

#include "ir/loop.h"

/* Atomic ops of threads are alike, and reductions of the copy unit. */
static bool are_both_atomic(const Footprint *a, const Footprint *b)
{
    return a->mode == MODE_ATOMIC && b->mode == MODE_ATOMIC && a->completion == b->completion;
}

bool hazards_conflict(const Footprint *a, const Footprint *b)
{
    return a->root == b->root && (a->mode != MODE_READ || b->mode != MODE_READ) &&
           !are_both_atomic(a, b);
}

/* ---- noting ------------------------------------------------------------- */

/* Returns true when a proof of the pair is known, of one of the kinds: bit k is of kind k. */
static bool is_known(const Walk *w, unsigned kinds, const Op *first, const Op *second)
{
    const OpPair *pair = hazards_find_pair(w, first, second);
    return pair && (pair->proofs & kinds);
}

void hazards_proved(Walk *w, ProofKind kind, const Footprint *first, const Footprint *second)
{
    Hazards *h = &w->found;
    Proof proof = {kind, first->op, second->op, first->mode, second->mode, second->tile.memory};
    if (!w->proving || h->proof_count >= HAZARD_PROOFS)
        return;
    OpPair *pair = hazards_pair(w, first->op, second->op);
    if (pair->proofs >> kind & 1)
        return;
    pair->proofs |= 1u << kind;
    arena_push(w->arena, h->proofs, h->proof_count, h->proof_capacity, proof);
}

void hazards_ordered(Walk *w, const Footprint *access, const Op *by)
{
    Hazards *h = &w->found;
    HazardOrder order = {access->op, by};
    if (!w->proving || !w->comparing)
        return;
    for (unsigned i = 0; i < h->order_count; i++)
        if (h->orders[i].access == order.access && h->orders[i].by == by)
            return;
    arena_push(w->arena, h->orders, h->order_count, h->order_capacity, order);
}

/* ---- pairs that were never unordered ------------------------------------- */

static bool is_found(const Walk *w, const Op *first, const Op *second)
{
    const OpPair *pair = hazards_find_pair(w, first, second);
    bool found = false;
    for (unsigned kind = 0; pair && kind < HAZARD_KINDS; kind++)
        found = found || (kind != HAZARD_BLOCKS && pair->at_found[kind]);
    return found;
}

static bool is_ordered(const Walk *w, const Op *op)
{
    for (unsigned i = 0; i < w->found.order_count; i++)
        if (w->found.orders[i].access == op)
            return true;
    return false;
}

/* The op of `r` that `op` is, or is inside of; NULL: it is elsewhere. */
static const Op *op_within(const Op *op, const Region *r)
{
    while (op && op->parent != r)
        op = op->parent->parent;
    return op;
}

static bool is_in_loop(const Region *r)
{
    while (r->parent && !op_is_loop(r->parent))
        r = r->parent->parent;
    return r->parent != NULL;
}

/* Returns true when some path leads from `a` to `b`: through the text, where `b` stands behind
 * `a`, or around a loop. */
static bool may_follow(const Op *a, const Op *b, bool behind)
{
    const Region *r = a->parent;
    while (!op_within(b, r))
        r = r->parent->parent;
    return (behind && op_within(a, r) != op_within(b, r)) || is_in_loop(r);
}

static void prove_ordered(Walk *w, const Footprint *a, const Footprint *b, bool behind)
{
    const unsigned in_block = ~(1u << PROOF_BLOCKS);
    if (hazards_conflict(a, b) && may_follow(a->op, b->op, behind) && is_ordered(w, a->op) &&
        !is_found(w, a->op, b->op) && !is_known(w, in_block, a->op, b->op))
        hazards_proved(w, PROOF_ORDER, a, b);
}

/* Returns true when the walk lost sight of accesses, so that not to meet them proves nothing. */
static bool is_incomplete(const Walk *w)
{
    for (unsigned i = 0; i < w->found.count; i++)
        if (w->found.found[i].kind == HAZARD_UNKNOWN)
            return true;
    return false;
}

void hazards_prove_ordered(Walk *w)
{
    if (!w->proving || is_incomplete(w))
        return;
    for (unsigned j = 0; j < w->footprint_count; j++) {
        diag_check_time(w->m->diag, w->footprints[j].op->loc);
        for (unsigned i = 0; i <= j && w->found.proof_count < HAZARD_PROOFS; i++) {
            prove_ordered(w, &w->footprints[i], &w->footprints[j], i < j);
            if (i < j)
                prove_ordered(w, &w->footprints[j], &w->footprints[i], false);
        }
    }
}
