/* copy_async_bulk_store. One thread, of the first warp that runs the op, stores: its warp
 * commits and waits. The source is read, and the target written, when the store starts; until
 * the waits any access that could tell is a race.
 *
 *     copy_async_bulk_store   commit_group   wait_group {read}   wait_group
 *     |-- its reads conflict with writes of any thread -|
 *     |-- its writes conflict with every access -------------------|
 *
 * The writes of the last stores end with the block. A store that reduces changes its target
 * when it starts, too: its accesses conflict with every one but those of other reductions. */
#include "interp/copy.h"
#include "ir/reduction.h"
#include "ir/tile.h"
#include "support/bits.h"
#include "support/scalar.h"

/* ---- elements --------------------------------------------------------- */

/* An element that is stored: bits from the memories' begin. */
typedef struct Stored {
    int64_t source, target;
    bool inside;
} Stored;

static int64_t last_byte(const Copy *c, int64_t bit)
{
    return floor_div(bit + c->source_view.bits - 1, 8);
}

static int64_t first_byte(int64_t bit)
{
    return floor_div(bit, 8);
}

static bool reduces(const Copy *c)
{
    return store_reduction(c->op) != REDUCTION_NONE;
}

/* Checks the bytes where the element at `bit` goes. */
static bool check_target(Interp *in, const Copy *c, int64_t bit)
{
    int64_t first = first_byte(bit), last = last_byte(c, bit);
    if (!tile_check_buffer(in, &c->target, first, last))
        return false;
    if (!reduces(c))
        return race_copy_check(in, &c->target_view, true, first, last);
    return race_reduce_check(in, &c->target_view, first, last) &&
           tile_check_written(in, &c->target, bit, first, last);
}

static bool check_element(Interp *in, const Copy *c, const Stored *e)
{
    int64_t first = first_byte(e->source), last = last_byte(c, e->source);
    if (!race_copy_check(in, &c->source_view, false, first, last) ||
        !tile_check_written(in, &c->source, e->source, first, last))
        return false;
    return !e->inside || check_target(in, c, e->target);
}

static void write_bits(const Copy *c, int64_t bit, uint64_t code)
{
    Memory *memory = c->target_view.memory;
    unsigned bits = c->target_view.bits;
    bits_set(memory->data, (size_t)(bit / bits), bits, code);
    for (int64_t byte = first_byte(bit); memory->defined && byte <= last_byte(c, bit); byte++)
        memory->defined[byte] |= (unsigned char)byte_mask(bit, bits, byte);
}

/* Stores the element, or what it and the place make. */
static void change_place(Interp *in, const Copy *c, int64_t bit, uint64_t code)
{
    int64_t first = first_byte(bit), last = last_byte(c, bit);
    const View *view = &c->target_view;
    if (reduces(c)) {
        uint64_t before = bits_get(view->memory->data, (size_t)(bit / view->bits), view->bits);
        DType t = c->op->operands[0]->type->dtype;
        race_reduce_start(in, view, first, last);
        code = reduction_combine(store_reduction(c->op), t, before, code);
    } else {
        race_copy_start(in, view, true, first, last);
    }
    write_bits(c, bit, code);
}

static bool start_element(Interp *in, const Copy *c, const Stored *e)
{
    unsigned bits = c->source_view.bits;
    uint64_t code = bits_get(c->source_view.memory->data, (size_t)(e->source / bits), bits);
    race_copy_start(in, &c->source_view, false, first_byte(e->source), last_byte(c, e->source));
    profile_moved(in, c->op, &c->source_view, false, 1);
    profile_moved(in, c->op, &c->target_view, true, e->inside);
    profile_moved(in, c->op, &c->target_view, false, e->inside && reduces(c));
    if (e->inside)
        change_place(in, c, e->target, code);
    return true;
}

static bool end_read(Interp *in, const Copy *c, const Stored *e)
{
    race_copy_read_ends(in, &c->source_view, first_byte(e->source), last_byte(c, e->source));
    return true;
}

static bool end_write(Interp *in, const Copy *c, const Stored *e)
{
    int64_t first = first_byte(e->target), last = last_byte(c, e->target);
    if (e->inside && reduces(c)) {
        race_reduce_ends(in, &c->target_view, member_first_warp(&c->member), first, last);
        return true;
    }
    for (int64_t byte = first; e->inside && byte <= last; byte++)
        if (!race_copy_write_ends(in, &c->target_view, byte,
                                  byte_mask(e->target, c->target_view.bits, byte), 0, 0))
            return false;
    return true;
}

/* ---- tiles ------------------------------------------------------------ */

/* Visits the elements; one outside of the view is an error where the op may not leave it. */
static bool each_element(Interp *in, const Copy *c,
                         bool (*visit)(Interp *, const Copy *, const Stored *))
{
    MemoryTile t = op_memory_tile(c->op);
    int32_t place[LIMIT_RANK] = {0};
    do {
        Stored e = {0};
        int64_t index = 0;
        unsigned outside = tile_locate(&c->source, place, 0, &e.source, &index);
        if (outside != c->source_view.rank)
            return tile_report_outside(in, &c->source, outside, index);
        outside = tile_locate(&c->target, place, 0, &e.target, &index);
        e.inside = outside == c->target_view.rank;
        if (!e.inside && !c->fills)
            return tile_report_outside(in, &c->target, outside, index);
        if (!visit(in, c, &e))
            return false;
    } while (copy_next_place(&t, place));
    return true;
}

static bool store_begin(Interp *in, const Op *op)
{
    Copy *c = copy_begin(in, op), **end = &in->stores;
    if (!c)
        return false;
    c->fills = copy_fills(in, op);
    while (*end)
        end = &(*end)->next;
    *end = c;
    return each_element(in, c, check_element) && each_element(in, c, start_element);
}

/* Runs `act` for the first warp alone of those that run the op. */
static bool by_first_warp(Interp *in, const Op *op, bool (*act)(Interp *, const Op *))
{
    ThreadRange threads = in->threads;
    in->threads.count = WARP;
    bool ok = act(in, op);
    in->threads = threads;
    return ok;
}

bool interp_copy_async_bulk_store(Interp *in, const Op *op)
{
    return by_first_warp(in, op, store_begin);
}

/* ---- groups ----------------------------------------------------------- */

static bool commit_stores(Interp *in, const Op *op)
{
    (void)op;
    group_commit(in, COMPLETION_BULK_GROUP);
    return true;
}

bool interp_copy_async_bulk_commit_group(Interp *in, const Op *op)
{
    return by_first_warp(in, op, commit_stores);
}

/* Ends the reads of a store, and its writes unless `reads`. */
static bool end_store(Interp *in, Copy *c, bool reads)
{
    if (!race_begin(in, c->op) || (!c->read && !each_element(in, c, end_read)))
        return false;
    c->read = true;
    return reads || each_element(in, c, end_write);
}

/* Ends `*at` and, unless `reads`, takes it out of the list; returns the next one's link, NULL
 * after an error. */
static Copy **end_and_next(Interp *in, Copy **at, bool reads)
{
    Copy *c = *at;
    if (!end_store(in, c, reads))
        return NULL;
    if (reads)
        return &c->next;
    *at = c->next;
    c->next = in->free_copies;
    in->free_copies = c;
    return at;
}

static bool wait_for_stores(Interp *in, const Op *op)
{
    int64_t pending = op_expr(op, ATTR_NUMBER)->constant;
    for (Copy **at = &in->stores; at && *at;) {
        const Member *m = &(*at)->member;
        bool meant = group_is_meant(in, m, member_first_warp(m), pending);
        at = meant ? end_and_next(in, at, bulk_wait_reads(op)) : &(*at)->next;
        if (!at)
            return false;
    }
    return true;
}

bool interp_copy_async_bulk_wait_group(Interp *in, const Op *op)
{
    return by_first_warp(in, op, wait_for_stores);
}

bool stores_end_cluster(Interp *in)
{
    for (Copy **at = &in->stores; *at;) {
        interp_turn_to(in, (*at)->member.rank);
        if (!(at = end_and_next(in, at, false)))
            return false;
    }
    return true;
}

/* ---- ends --------------------------------------------------------------- */

bool stores_ended(Interp *in, const Memory *memory, const Op *op)
{
    const Copy *c = in->stores;
    while (c && (c->read || (memory && c->source_view.memory != memory)))
        c = c->next;
    if (!c)
        return true;
    const char *why = group_is_open(in, &c->member) ? "no copy_async_bulk_commit_group follows it"
                                                    : "no copy_async_bulk_wait_group waits for it";
    if (!op)
        return diag_error(in->diag, c->op->loc, "%s ends while this copy_async_bulk_store reads: "
                          "%s",
                          interp_block_name(in, interp_block_number(in, in->block_count - 1,
                                                                    c->member.rank)), why);
    diag_error(in->diag, op->loc, "%s is allocated again while a copy_async_bulk_store reads it",
               c->source_view.name);
    return diag_note(in->diag, c->op->loc, "%s", why);
}
