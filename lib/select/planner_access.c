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

/* "load_shared moves 16 bytes a lane by ldmatrix.x4" */
static const char *moves_text(Module *m, const Op *op, const Access *a)
{
    unsigned bytes = access_lane_bytes(op, a);
    if (a->via == VIA_bits)
        return arena_printf(&m->arena, "%s moves elements of %u bits one by one",
                            op_info[op->code].name, dtype_bits(op_tile_type(op)->dtype));
    return arena_printf(&m->arena, "%s moves %u byte%s a lane%s%s", op_info[op->code].name,
                        bytes, bytes == 1 ? "" : "s", a->via == VIA_units ? "" : " by ",
                        via_info[a->via].spelling);
}

static void remark_shared(Module *m, const Op *op, const Access *a)
{
    if (op_index(op)) {
        REMARK(m, op, PASSED, "%s, at places that data choose", moves_text(m, op, a));
        return;
    }
    unsigned ways = access_conflict_ways(m, op, a);
    if (ways == 1) {
        REMARK(m, op, PASSED, "%s, without bank conflicts", moves_text(m, op, a));
        return;
    }
    REMARK(m, op, PASSED, "%s, with %u-way bank conflicts", moves_text(m, op, a), ways);
    REMARK(m, op, MISSED, "%s has %u-way bank conflicts", op_info[op->code].name, ways);
}

static void remark_global(Module *m, const Op *op, const Access *a)
{
    const char *name = op_info[op->code].name;
    unsigned least, sectors = access_sectors(m, op, a, &least);
    REMARK(m, op, PASSED, "%s, %u sector%s a warp request", moves_text(m, op, a), sectors,
           sectors == 1 ? "" : "s");
    if (sectors > least)
        REMARK(m, op, MISSED, "%s touches %u sectors a warp request, %u would hold its bytes",
               name, sectors, least);
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

/* The width that the access would have but for a reason. Of a run that is moved in
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
    if (why)
        REMARK(m, op, MISSED, "%s, not %s%u: %s", moves_text(m, op, a),
               a->via == VIA_bits ? "with a width of " : "", wanted_width(m, op, a), why);
}

/* Reports why a 16-bit tile of two dimensions does not go by matrices. */
static void remark_matrix(Module *m, const Op *op)
{
    const Type *tile = op_tile_type(op);
    const char *why = select_matrix_reason(m, op, m->target_sm);
    if (why && tile->rank >= 2 && dtype_bits(tile->dtype) == 16)
        REMARK(m, op, MISSED, "%s does not go by %s: %s", op_info[op->code].name,
               op->result_count ? "ldmatrix" : "stmatrix", why);
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
        REMARK(m, op, MISSED, "%s drops its hints: they need accesses of %d bytes, these have "
               "%s%u", op_info[op->code].name, HINT_LEAST, bytes ? "" : "less than ",
               bytes ? bytes : 1);
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
