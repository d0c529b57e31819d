/* Swizzles by trial. Of the candidates that keep runs of 16, 8 and 4 bytes together,
 * the one is chosen with which the accesses of the tensor take the fewest wavefronts
 * (cycles of the banks), and then the fewest instructions.
 *
 *     swizzle(bits, base, shift)      base: a run           2^base elements
 *                                     shift: from a run's number up to the row's,
 *                                     or to the number of the 128 bytes it lies in;
 *                                     where conflicts are left, to that of 2, 4 or 8 rows,
 *                                     as for a transposed store */
#include "select/fit.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/tile.h"
#include "select/select.h"
#include "select/traffic.h"
#include "select/trial.h"

enum { BANK_BYTES = 4, ALL_BANKS_BITS = 32 * 32 };
enum { MOST_BITS = 3, LEAST_RUN = 4, WIDEST_RUN = 16 };     /* of candidates; runs in bytes */

/* Costs of the accesses of a tensor together, when it has the swizzle. */
typedef struct Cost {
    Program *p;
    const Value *shared;
    Swizzle swizzle;
    int64_t wavefronts, instructions;
    unsigned ways;          /* the worst */
} Cost;

static void add_cost(Cost *c, unsigned bytes, int64_t instructions, unsigned ways)
{
    int64_t phases = bytes > BANK_BYTES ? bytes / BANK_BYTES : 1;
    c->wavefronts += instructions * phases * ways;
    c->instructions += instructions;
    c->ways = ways > c->ways ? ways : c->ways;
}

/* Adds the cost of a load or store, which all warps run alike. */
static void cost_access(Cost *c, Module *m, const Op *op)
{
    Access a = select_access(m, op, m->target_sm);
    unsigned bytes = access_lane_bytes(op, &a);
    int64_t bits = type_thread_bits(op_tile_type(op));
    int64_t count = a.via == VIA_bits ? op_tile_type(op)->layout->slots
                                      : (bits + 8 * bytes - 1) / (8 * bytes);
    add_cost(c, bytes, count, access_conflict_ways(m, op, &a));
}

static void cost_copy(Cost *c, Module *m, const Op *op)
{
    CopyPlan plan = copy_plan(m, op);
    add_cost(c, plan.bytes, plan.iterations, copy_conflict_ways(m, op, &plan));
}

static bool cost_op(Op *op, void *data)
{
    Cost *c = data;
    Module *m = c->p->module;
    if (op->code == OP_copy_async_bulk_store && c->swizzle.bits &&
        memory_root(op->operands[0]) == c->shared)
        add_cost(c, BULK_ALIGN, UINT16_MAX, UINT16_MAX);     /* as copy_async_bulk, below */
    if (!op->operand_count || memory_root(op_memory_operand(op)) != c->shared ||
        !(op_info[op->code].attrs & op_attr_bit(ATTR_OFFSETS)))
        return true;
    const Value *memory = op_memory_operand(op);    /* the tensor, or a part: with its swizzle */
    OpTrial t;
    op_trial_open(&t, op);
    op_trial_set_type(&t, op, memory, type_swizzled(m, memory->type, c->swizzle));
    if (op->code == OP_load_shared || op->code == OP_store_shared)
        cost_access(c, m, &t.op);
    else if (op->code == OP_copy_async)
        cost_copy(c, m, &t.op);
    else if (op->code == OP_copy_async_bulk && c->swizzle.bits)
        add_cost(c, BULK_ALIGN, UINT16_MAX, UINT16_MAX);     /* it has no way */
    return true;
}

static Cost cost_of(Program *p, const Value *shared, Swizzle s)
{
    Cost c = {.p = p, .shared = shared, .swizzle = s, .ways = 1};
    region_walk(p->body, cost_op, &c);
    return c;
}

/* log2 of the greatest power of two in n, which is positive. */
static unsigned log2_of(int64_t n)
{
    unsigned log = 0;
    while (n >> (log + 1))
        log++;
    return log;
}

/* Returns true when the swizzle permutes the tensor's own elements. */
static bool is_legal(const Type *t, Swizzle s)
{
    int64_t elements = type_shared_bits(t) / dtype_bits(t->dtype);
    return s.shift >= s.bits && s.shift <= LIMIT_SWIZZLE &&
           elements % (INT64_C(1) << (s.base + s.bits)) == 0;
}

/* The best swizzle so far, and what it costs. */
typedef struct Best {
    Program *p;
    const Value *shared;
    Swizzle swizzle;
    Cost cost;
} Best;

static void try_swizzle(Best *best, Swizzle s)
{
    const Type *t = best->shared->type;
    if (!is_legal(t, s))
        return;
    Cost c = cost_of(best->p, best->shared, s);
    if (c.wavefronts > best->cost.wavefronts ||
        (c.wavefronts == best->cost.wavefronts && c.instructions >= best->cost.instructions))
        return;
    best->cost = c;
    best->swizzle = s;
}

static void try_from(Best *best, unsigned bits, unsigned base, unsigned from)
{
    if (from > base)
        try_swizzle(best, (Swizzle){(uint8_t)bits, (uint8_t)base, (uint8_t)(from - base)});
}

/* Tries swizzles of runs of 2^base elements: from the row's number, and from that of
 * the 128 bytes; then from that of several rows. */
static void try_runs(Best *best, unsigned base)
{
    const Type *t = best->shared->type;
    unsigned row = log2_of(type_extent(t, t->rank - 1));
    unsigned banks = log2_of(ALL_BANKS_BITS / (int64_t)dtype_bits(t->dtype));
    for (unsigned bits = MOST_BITS; bits > 0; bits--) {
        try_from(best, bits, base, row);
        try_from(best, bits, base, banks);
    }
    for (unsigned rows = 1; rows <= MOST_BITS && best->cost.ways > 1; rows++)
        for (unsigned bits = MOST_BITS; bits > 0; bits--)
            try_from(best, bits, base, row + rows);
}

Swizzle fit_swizzle(Program *p, const Value *shared, unsigned *ways)
{
    Best best = {.p = p, .shared = shared, .cost = cost_of(p, shared, (Swizzle){0})};
    int64_t bits = dtype_bits(shared->type->dtype);
    for (int64_t run = WIDEST_RUN; best.cost.ways > 1 && run >= LEAST_RUN; run /= 2)
        if (8 * run % bits == 0 && (8 * run / bits & (8 * run / bits - 1)) == 0)
            try_runs(&best, log2_of(8 * run / bits));
    *ways = best.cost.ways;
    return best.swizzle;
}
