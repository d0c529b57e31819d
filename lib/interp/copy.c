/* copy_async and copy_async_bulk. A copy is checked when it starts, and done by the
 * wait of its group, a bulk copy when the phase of its mbarrier ends: before the wait
 * for it, any access that could see it half done is a race (race.c), so its result does
 * not depend on when its bytes really move.
 *
 *     copy_async   ......commit_group.......  wait_group   synchronize
 *     |-- conflicts with accesses of any thread ---------------|
 *
 *     copy_async_bulk   mbarrier_arrive   mbarrier_wait
 *     |-- conflicts with every access ----------|
 */
#include "interp/copy.h"

#include "ir/tile.h"
#include "memory/tensor_map.h"
#include "support/bits.h"
#include "support/scalar.h"

#include <string.h>

/* ---- elements --------------------------------------------------------- */

/* An element on its way. */
typedef struct Element {
    bool inside;            /* the source; it is zero outside */
    int64_t source, target; /* bits from the memories' begin */
    unsigned outside;       /* where not: in which dimension of the source ... */
    int64_t index;          /* ... and where there */
} Element;

static int64_t first_byte(int64_t bit)
{
    return floor_div(bit, 8);
}

static int64_t last_byte(const Copy *c, int64_t bit)
{
    return floor_div(bit + c->source_view.bits - 1, 8);
}

/* The element is where it may be read and written now. */
static bool check_element(Interp *in, const Copy *c, const Element *e)
{
    int64_t first = first_byte(e->source), last = last_byte(c, e->source);
    if (e->inside && (!tile_check_buffer(in, &c->source, first, last) ||
                      !race_copy_check(in, &c->source_view, false, first, last) ||
                      !tile_check_written(in, &c->source, e->source, first, last)))
        return false;
    return race_copy_check(in, &c->target_view, true, first_byte(e->target),
                           last_byte(c, e->target));
}

static bool start_element(Interp *in, const Copy *c, const Element *e)
{
    if (e->inside)
        race_copy_start(in, &c->source_view, false, first_byte(e->source),
                        last_byte(c, e->source));
    race_copy_start(in, &c->target_view, true, first_byte(e->target), last_byte(c, e->target));
    profile_moved(in, c->op, &c->source_view, false, e->inside);
    profile_moved(in, c->op, &c->target_view, true, 1);
    return true;
}

/* Neighbors that share a byte keep their bits. */
static bool write_element(Interp *in, const Copy *c, int64_t bit, uint64_t code)
{
    Memory *memory = c->target_view.memory;
    bool is_bulk = c->op->code == OP_copy_async_bulk;
    for (int64_t byte = first_byte(bit); byte <= last_byte(c, bit); byte++) {
        unsigned mask = byte_mask(bit, c->target_view.bits, byte);
        int64_t skip = byte * 8 - bit;
        unsigned bits = (unsigned)(skip > 0 ? code >> skip : code << -skip) & mask;
        unsigned before = memory->data[byte], after = (before & ~mask) | bits;
        if (!is_bulk &&
            !race_copy_write_ends(in, &c->target_view, byte, mask, before, after))
            return false;
        memory->data[byte] = (unsigned char)after;
        memory->defined[byte] |= (unsigned char)mask;
    }
    return true;
}

static uint64_t source_code(const Copy *c, const Element *e)
{
    unsigned bits = c->source_view.bits;
    return bits_get(c->source_view.memory->data, (size_t)(e->source / bits), bits);
}

static bool end_element(Interp *in, const Copy *c, const Element *e)
{
    uint64_t code = 0;
    if (e->inside) {
        code = source_code(c, e);
        race_copy_read_ends(in, &c->source_view, first_byte(e->source),
                            last_byte(c, e->source));
    }
    return write_element(in, c, e->target, code);
}

/* ---- tiles ------------------------------------------------------------ */

bool copy_next_place(const MemoryTile *t, int32_t *place)
{
    for (unsigned d = t->rank; d-- > 0;) {
        if (++place[d] < t->extents[d])
            return true;
        place[d] = 0;
    }
    return false;
}

static int64_t copy_row(const Copy *c, const int32_t *place)
{
    return c->source.index ? c->rows[tile_index_number(&c->source, place)] : 0;
}

/* Keeps the rows of an indexed source, whose tensor may change while the copy is in
 * flight. */
static void keep_rows(Interp *in, Copy *c)
{
    const Tensor *index = c->source.index;
    int64_t count = index ? index->map->elements : 0;
    if (count > c->row_capacity) {
        c->rows = arena_array(in->arena, int64_t, (size_t)count);
        c->row_capacity = count;
    }
    for (int64_t i = 0; i < count; i++)
        c->rows[i] = tile_index_element(&c->source, i);
}

static bool each_element(Interp *in, const Copy *c,
                         bool (*visit)(Interp *, const Copy *, const Element *))
{
    MemoryTile t = op_memory_tile(c->op);
    int32_t place[LIMIT_RANK] = {0};
    do {
        Element e = {.inside = true};
        int64_t index = 0;
        unsigned outside = tile_locate(&c->target, place, 0, &e.target, &index);
        if (outside != c->target_view.rank)
            return tile_report_outside(in, &c->target, outside, index);
        e.outside = tile_locate(&c->source, place, copy_row(c, place), &e.source, &e.index);
        e.inside = e.outside == c->source_view.rank;
        if (!visit(in, c, &e))
            return false;
    } while (copy_next_place(&t, place));
    return true;
}

static Copy *new_copy(Interp *in)
{
    Copy *c = in->free_copies;
    if (!c)
        return arena_new(in->arena, Copy);
    in->free_copies = c->next;
    return c;
}

Copy *copy_begin(Interp *in, const Op *op)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    Copy *c = new_copy(in);
    *c = (Copy){.op = op, .rows = c->rows, .row_capacity = c->row_capacity,
                .source_view = value_binding(source.memory)->view,
                .target_view = value_binding(target.memory)->view,
                .member = group_member(in, op)};
    if (!tile_begin(in, op, &source, false, &c->source) ||
        !tile_begin(in, op, &target, true, &c->target) ||
        (c->source.index && !interp_operands_defined(in, op)) || !race_begin(in, op))
        return NULL;
    keep_rows(in, c);
    c->source.view = &c->source_view;
    c->target.view = &c->target_view;
    return c;
}

bool interp_copy_async(Interp *in, const Op *op)
{
    Copy *c = copy_begin(in, op), **end = &in->copies;
    if (!c)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = c;
    return each_element(in, c, check_element) && each_element(in, c, start_element);
}

/* ---- bulk copies --------------------------------------------------------- */

bool copy_fills(Interp *in, const Op *op)
{
    Module *m = in->program->module;
    ArenaMark mark = arena_mark(&m->scratch);
    TensorMap map;
    const char *why;
    bool fills = tensor_map_find(m, op, &map, &why);
    arena_reset(&m->scratch, mark);
    return fills;
}

static bool check_bulk_element(Interp *in, const Copy *c, const Element *e)
{
    return e->inside || c->fills ? check_element(in, c, e)
                                 : tile_report_outside(in, &c->source, e->outside, e->index);
}

static bool start_bulk_element(Interp *in, const Copy *c, const Element *e)
{
    if (e->inside)
        race_bulk_start(in, &c->source_view, false, first_byte(e->source),
                        last_byte(c, e->source), c->owner);
    race_bulk_start(in, &c->target_view, true, first_byte(e->target), last_byte(c, e->target),
                    c->owner);
    profile_moved(in, c->op, &c->source_view, false, e->inside && !c->is_read);
    profile_moved(in, c->op, &c->target_view, true, 1);
    return true;
}

static bool land_element(Interp *in, const Copy *c, const Element *e)
{
    return write_element(in, c, e->target, e->inside ? source_code(c, e) : 0);
}

bool bulk_land(Interp *in, const Copy *c)
{
    return each_element(in, c, land_element);
}

/* Starts the part of the block with rank `rank`. */
static bool start_bulk(Interp *in, const Op *op, unsigned rank, bool is_read)
{
    Copy *c = copy_begin(in, op);
    if (!c)
        return false;
    c->fills = copy_fills(in, op);
    c->target_rank = rank;
    c->is_read = is_read;
    return view_turn_to_rank(in, op, &c->target_view, rank) &&
           each_element(in, c, check_bulk_element) && mbarrier_expect(in, c) &&
           each_element(in, c, start_bulk_element);
}

bool interp_copy_async_bulk(Interp *in, const Op *op)
{
    int64_t mask, done = 0;
    if (!op_attr(op, ATTR_MULTICAST))
        return start_bulk(in, op, in->rank, false);
    if (!interp_rank(in, op, ATTR_MULTICAST, true, &mask))
        return false;
    for (unsigned rank = 0; rank < in->blocks; rank++) {
        if (!(mask >> rank & 1))
            continue;
        if (!start_bulk(in, op, rank, done))
            return false;
        done |= INT64_C(1) << rank;
    }
    return true;
}

/* ---- groups ----------------------------------------------------------- */

bool interp_copy_async_commit_group(Interp *in, const Op *op)
{
    (void)op;
    group_commit(in, COMPLETION_GROUP);
    return true;
}

bool interp_copy_async_wait_group(Interp *in, const Op *op)
{
    int64_t pending = op_expr(op, ATTR_NUMBER)->constant;
    for (Copy **at = &in->copies; *at;) {
        Copy *c = *at;
        if (!group_wait(in, &c->member, pending)) {
            at = &c->next;
            continue;
        }
        if (!race_begin(in, c->op) || !each_element(in, c, end_element))
            return false;
        *at = c->next;
        c->next = in->free_copies;
        in->free_copies = c;
    }
    return true;
}

bool copies_ended(Interp *in, const Memory *memory, const Op *op)
{
    const Copy *c = in->copies;
    if (!mbarriers_ended(in, memory, op) || !stores_ended(in, memory, op))
        return false;
    while (c && memory && c->target_view.memory != memory)
        c = c->next;
    if (!c)
        return true;
    const char *why = group_is_open(in, &c->member) ? "no copy_async_commit_group follows it"
                                                    : "no copy_async_wait_group waits for it";
    if (!op)
        return diag_error(in->diag, c->op->loc,
                          "%s ends while this copy_async is in flight: %s",
                          interp_block_name(in, interp_block_number(in, in->block_count - 1,
                                                                    c->member.rank)), why);
    diag_error(in->diag, op->loc,
               "%s is allocated again while a copy_async into it is in flight",
               c->target_view.name);
    return diag_note(in->diag, c->op->loc, "%s", why);
}
