/* The planner of loads and stores, and its remarks: what each access costs, and what keeps
 * it from costing less. */
#include "select/checks.h"
#include "select/plan.h"
#include "select/traffic.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "support/remark.h"

static bool plan_access(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    if (!select_follow(m, op, sm, &plan->access))
        return false;
    if (via_info[plan->access.via].matrices)
        matrix_order(op, &plan->access.matrix);
    return true;
}

static void write_access(Module *m, Op *op, const Plan *plan)
{
    select_write(m, op, &plan->access);
}

/* ---- remarks -------------------------------------------------------------- */

/* "16 bytes a lane by ldmatrix.x4" */
static const char *moves_text(Module *m, const Op *op, const Access *a)
{
    unsigned bytes = access_lane_bytes(op, a);
    if (a->via == VIA_bits)
        return arena_printf(&m->arena, "elements of %u bits one by one",
                            dtype_bits(op_tile_type(op)->dtype));
    return arena_printf(&m->arena, "%u byte%s a lane%s%s", bytes, bytes == 1 ? "" : "s",
                        a->via == VIA_units ? "" : " by ", via_info[a->via].spelling);
}

/* Bytes that a lane moves at once; 0: bit by bit. */
static unsigned lane_bytes(const Op *op, const Access *a)
{
    return a->via == VIA_bits ? 0 : access_lane_bytes(op, a);
}

const char *conflicts_text(Module *m, unsigned ways)
{
    return ways == 1 ? "without bank conflicts"
                     : arena_printf(&m->arena, "with %u-way bank conflicts", ways);
}

/* Conflicts of an access whose places data choose are not known: 0 ways. */
static void remark_shared(Module *m, const Op *op, const Access *a)
{
    const char *name = op_info[op->code].name;
    unsigned ways = op_index(op) ? 0 : access_conflict_ways(m, op, a);
    REMARK(m, op, SharedAccessChosen, R(name), R(moves_text(m, op, a)),
           R(ways ? conflicts_text(m, ways) : "at places that data choose"), R(lane_bytes(op, a)),
           R(via_info[a->via].spelling), R(ways));
    if (ways > 1)
        REMARK(m, op, BankConflicts, R(name), R(ways));
}

static void remark_global(Module *m, const Op *op, const Access *a)
{
    const char *name = op_info[op->code].name;
    unsigned least, sectors = access_sectors(m, op, a, &least);
    REMARK(m, op, GlobalAccessChosen, R(name), R(moves_text(m, op, a)), R(sectors),
           R(lane_bytes(op, a)), R(via_info[a->via].spelling), R(least));
    if (sectors > least)
        REMARK(m, op, SectorsWasted, R(name), R(sectors), R(least));
    MemoryTile tile = op_memory_tile(op);
    remark_checked(m, op, &tile, a->checked);
}

/* The widest access that `bits` bits in a row could fill, in bytes. */
static unsigned widest(int64_t bits)
{
    unsigned bytes = 16;
    while (bytes > 1 && bits % (8 * bytes))
        bytes /= 2;
    return bytes;
}

/* The width that the access would have without a reason. Of a run that is moved in
 * narrower pieces the addresses are at fault, or the bounds; of one that is moved at once,
 * the layout. */
static unsigned wanted_width(Module *m, const Op *op, const Access *a)
{
    unsigned bytes = widest(access_run(m, op) * dtype_bits(op_tile_type(op)->dtype));
    return a->bytes < bytes ? bytes : widest(type_thread_bits(op_tile_type(op)));
}

static const char *reason_for_width(Module *m, const Op *op, const Plan *plan)
{
    const Access *a = &plan->access;
    int64_t bits = dtype_bits(op_tile_type(op)->dtype);
    unsigned bytes = via_info[a->via].matrices ? a->bytes : wanted_width(m, op, a);
    return a->bytes >= bytes
               ? NULL : access_reason(m, op, 8 * bytes / gcd_i64(8 * bytes, bits), bytes);
}

static void remark_width(Module *m, const Op *op, const Plan *plan)
{
    const Access *a = &plan->access;
    const char *why = plan_reason(m, op, plan);
    if (!why)
        return;
    unsigned wanted = wanted_width(m, op, a);
    REMARK(m, op, AccessNarrow, R(op_info[op->code].name), R(moves_text(m, op, a)),
           R(arena_printf(&m->arena, "%s%u", a->via == VIA_bits ? "with a width of " : "", wanted)),
           R(why), R(lane_bytes(op, a)), R(wanted));
}

/* Reports why a 16-bit tile of two dimensions does not go by matrices. */
static void remark_matrix(Module *m, const Op *op)
{
    const Type *tile = op_tile_type(op);
    const char *why = select_matrix_reason(m, op, m->target_sm);
    if (why && tile->rank >= 2 && dtype_bits(tile->dtype) == 16)
        REMARK(m, op, MatrixAccessMissed, R(op_info[op->code].name),
               R(op->result_count ? "ldmatrix" : "stmatrix"), R(why));
}

static void remark_access(Module *m, const Op *op, const Plan *plan)
{
    const Access *a = &plan->access;
    bool shared = op_memory_operand(op)->type->kind == TYPE_SHARED;
    (shared ? remark_shared : remark_global)(m, op, a);
    if (via_info[a->via].matrices)
        return;
    remark_hints(m, op, a->bytes);
    remark_width(m, op, plan);
    if (shared && a->bytes < MATRIX_ROW_BYTES)
        remark_matrix(m, op);
}

void remark_hints(Module *m, const Op *op, unsigned bytes)
{
    bool given = access_evict(op) != EVICT_NORMAL || access_prefetch(op);
    if (given && bytes < HINT_LEAST)
        REMARK(m, op, HintsDropped, R(op_info[op->code].name), R(HINT_LEAST),
               R(bytes ? arena_printf(&m->arena, "%u", bytes) : "less than 1"));
}

static void warn_access(Module *m, const Op *op, const Plan *plan)
{
    MemoryTile tile = op_memory_tile(op);
    warn_checked(m, op, &tile, plan->access.checked & ~select_read_checked(op));
}

static bool access_holds(Module *m, const Op *op)
{
    return !(select_needed_checks(op) & ~select_read_checked(op)) && select_has_units(m, op);
}

const Planner planner_access = {
    .family = PLAN_access, .plan = plan_access, .write = write_access, .remark = remark_access,
    .warn = warn_access, .reason = reason_for_width, .holds = access_holds,
};
