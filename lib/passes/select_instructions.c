/* Instruction selection for loads, stores, copies and dots: writes which instructions move
 * the tile, as attributes that a reader can see and that code generation obeys.
 * What the text says already is proved and kept. Meanings do not change.
 *
 *   %a = load_shared %s[0, 0] : f16[16, 16] @ A
 *     =>  %a = load_shared %s[0, 0] {via = ldmatrix.x4, width = 16} : f16[16, 16] @ A
 *
 * Remarks say what each access costs, and what keeps it from costing less. */
#include "passes/pass.h"

#include "cast/plan.h"
#include "ir/text.h"
#include "passes/report.h"
#include "select/copy.h"
#include "select/dot.h"
#include "select/matrix.h"
#include "select/select.h"
#include "select/traffic.h"

typedef struct Select {
    Module *m;
    bool changed, failed;
} Select;

#define SAY(s, op, kind, ...)                                                 \
    remark((s)->m->remarks, REMARK_##kind, "select-instructions", (s)->m->diag, (op)->loc, \
           __VA_ARGS__)

/* ---- remarks -------------------------------------------------------------- */

/* "load_shared moves 16 bytes a lane by ldmatrix.x4" */
static const char *moves(Select *s, const Op *op, const Access *a)
{
    unsigned bytes = access_lane_bytes(op, a);
    if (a->via == VIA_bits)
        return arena_printf(&s->m->arena, "%s moves elements of %u bits one by one",
                            op_info[op->code].name, dtype_bits(op_tile_type(op)->dtype));
    return arena_printf(&s->m->arena, "%s moves %u byte%s a lane%s%s", op_info[op->code].name,
                        bytes, bytes == 1 ? "" : "s", a->via == VIA_units ? "" : " by ",
                        via_info[a->via].spelling);
}

static void say_shared(Select *s, const Op *op, const Access *a)
{
    unsigned ways = access_conflict_ways(s->m, op, a);
    if (ways == 1) {
        SAY(s, op, PASSED, "%s, without bank conflicts", moves(s, op, a));
        return;
    }
    SAY(s, op, PASSED, "%s, with %u-way bank conflicts", moves(s, op, a), ways);
    SAY(s, op, MISSED, "%s has %u-way bank conflicts", op_info[op->code].name, ways);
}

static void say_global(Select *s, const Op *op, const Access *a)
{
    const char *name = op_info[op->code].name;
    unsigned least, sectors = access_sectors(s->m, op, a, &least);
    SAY(s, op, PASSED, "%s, %u sector%s a warp request", moves(s, op, a), sectors,
        sectors == 1 ? "" : "s");
    if (sectors > least)
        SAY(s, op, MISSED, "%s touches %u sectors a warp request, %u would hold its bytes", name,
            sectors, least);
    for (unsigned d = 0; a->checked >> d; d++)
        if (a->checked >> d & 1)
            SAY(s, op, MISSED, "%s checks dimension %u: nothing proves that the tile lies inside",
                name, d);
}

/* The widest access that `bits` bits in a row could fill, in bytes. */
static unsigned widest(int64_t bits)
{
    unsigned bytes = 16;
    while (bytes > 1 && bits % (8 * bytes))
        bytes /= 2;
    return bytes;
}

/* Of a run that is moved in narrower pieces the addresses are at fault, or the
 * bounds; of one that is moved as a whole, the layout. */
static void say_width(Select *s, const Op *op, const Access *a)
{
    int64_t bits = dtype_bits(op_tile_type(op)->dtype);
    unsigned bytes = widest(access_run(s->m, op) * bits);
    if (a->bytes >= bytes)
        bytes = widest(type_thread_bits(op_tile_type(op)));
    if (a->bytes >= bytes)
        return;
    const char *why = access_obstacle(s->m, op, 8 * bytes / gcd_i64(8 * bytes, bits), bytes);
    if (why)
        SAY(s, op, MISSED, "%s, not %s%u: %s", moves(s, op, a),
            a->via == VIA_bits ? "with a width of " : "", bytes, why);
}

/* Only 16-bit tiles of two dimensions are meant for matrices. */
static void say_matrix(Select *s, const Op *op)
{
    const Type *tile = op_tile_type(op);
    const char *why = select_matrix_obstacle(s->m, op, s->m->target_sm);
    if (why && tile->rank >= 2 && dtype_bits(tile->dtype) == 16)
        SAY(s, op, MISSED, "%s does not go by %s: %s", op_info[op->code].name,
            op->result_count ? "ldmatrix" : "stmatrix", why);
}

/* Accesses of so many bytes drop the op's hints. */
static void say_hints(Select *s, const Op *op, unsigned bytes)
{
    bool given = access_evict(op) != EVICT_NORMAL || access_prefetch(op);
    if (given && bytes < HINT_LEAST)
        SAY(s, op, MISSED, "%s drops its hints: they need accesses of %d bytes, these have %s%u",
            op_info[op->code].name, HINT_LEAST, bytes ? "" : "less than ", bytes ? bytes : 1);
}

static void say(Select *s, const Op *op, const Access *a)
{
    if (op_memory_operand(op)->type->kind == TYPE_SHARED)
        say_shared(s, op, a);
    else
        say_global(s, op, a);
    if (via_info[a->via].matrices)
        return;
    say_hints(s, op, a->bytes);
    say_width(s, op, a);
    if (op_memory_operand(op)->type->kind == TYPE_SHARED && a->bytes < MATRIX_ROW_BYTES)
        say_matrix(s, op);
}

/* ---- copies ----------------------------------------------------------------- */

static const char *copy_instruction(const CopyPlan *plan)
{
    return plan->bytes == 16                ? "cp.async.cg"
           : plan->bytes >= CP_ASYNC_LEAST  ? "cp.async.ca"
                                            : "registers";
}

/* "16 bytes a lane by cp.async.cg" */
static const char *copy_moves(Select *s, const Op *op, const CopyPlan *plan)
{
    unsigned bits = dtype_bits(op->operands[0]->type->dtype);
    unsigned count = plan->bytes ? plan->bytes : bits;
    return arena_printf(&s->m->arena, "%u %s%s a lane by %s", count,
                        plan->bytes ? "byte" : "bit", count == 1 ? "" : "s",
                        copy_instruction(plan));
}

static void say_copy_width(Select *s, const Op *op, const CopyPlan *plan)
{
    unsigned bytes = plan->bytes ? 2 * plan->bytes : 1;
    const char *why = plan->bytes == 16 ? NULL : copy_obstacle(s->m, op, bytes);
    if (why)
        SAY(s, op, MISSED, "copy_async moves %s, not %u byte%s: %s", copy_moves(s, op, plan),
            bytes, bytes == 1 ? "" : "s", why);
}

static void say_copy(Select *s, const Op *op, const CopyPlan *plan)
{
    unsigned least, sectors = copy_sectors(s->m, op, plan, &least);
    unsigned ways = copy_conflict_ways(s->m, op, plan);
    MemoryTile source = op_source_tile(op);
    int64_t threads = region_threads(op->parent).count;
    long long rounds = (copy_chunks(plan, source.rank) + threads - 1) / threads;
    SAY(s, op, PASSED, "copy_async moves %s, %lld time%s, %u sector%s a warp request, with%s bank "
        "conflicts", copy_moves(s, op, plan), rounds, rounds == 1 ? "" : "s", sectors,
        sectors == 1 ? "" : "s", ways == 1 ? "out" : arena_printf(&s->m->arena, " %u-way", ways));
    if (ways > 1)
        SAY(s, op, MISSED, "copy_async has %u-way bank conflicts", ways);
    if (sectors > least)
        SAY(s, op, MISSED, "copy_async touches %u sectors a warp request, %u would hold its bytes",
            sectors, least);
    for (unsigned d = 0; plan->checked >> d; d++)
        if (plan->checked >> d & 1)
            SAY(s, op, MISSED, "copy_async checks dimension %u: nothing proves that the tile lies "
                "inside", d);
    say_hints(s, op, plan->bytes);
    say_copy_width(s, op, plan);
}

static bool select_copy(Select *s, Op *op)
{
    CopyPlan plan;
    if (!copy_follow(s->m, op, &plan))
        return false;
    if (remarks_wanted(s->m->remarks))
        say_copy(s, op, &plan);
    if (copy_is_written(op))
        return true;
    copy_write(s->m, op, &plan);
    stat_add(s->m, STAT_select_instructions_copies, 1);
    s->changed = true;
    return true;
}

/* ---- dots -------------------------------------------------------------------- */

static void say_dot(Select *s, const Op *op, const DotPlan *plan, const DotObstacle *no_mma,
                    const DotObstacle *no_fma)
{
    const char *word = via_info[plan->via].spelling;
    int64_t units = plan->units * plan->depth;
    SAY(s, op, PASSED, "dot goes by %s, %lld a %s%s", word,
        (long long)(plan->mma ? units * plan->mma->parts : units),
        plan->mma ? "warp" : "thread",
        plan->mma && plan->mma->parts > 1 ? ", of unpacked operands" : "");
    if (no_mma->why)
        SAY(s, op, MISSED, "dot does not go by mma: %s; %s", no_mma->why, no_mma->fits);
    if (no_fma->why)
        SAY(s, op, MISSED, "dot goes through %lld bytes of shared memory: %s; %s",
            (long long)plan->scratch, no_fma->why, no_fma->fits);
}

static bool select_dot(Select *s, Op *op)
{
    Module *m = s->m;
    DotObstacle no_mma = {0}, no_fma = {0};
    DotPlan plan;
    ArenaMark mark = arena_mark(&m->scratch);
    bool written = op_attr(op, ATTR_VIA);
    bool ok = !written || dot_follow(m, op, m->target_sm, &plan);
    if (!written)
        plan = dot_plan(m, op, m->target_sm, &no_mma, &no_fma);
    if (ok && remarks_wanted(m->remarks))
        say_dot(s, op, &plan, &no_mma, &no_fma);
    if (!written) {
        op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = via_info[plan.via].spelling});
        stat_add(m, STAT_select_instructions_dots, 1);
        s->changed = true;
    }
    arena_reset(&m->scratch, mark);
    return ok;
}

/* ---- casts, dequantize and lookups ------------------------------------------- */

/* What the zero points of a dequantize, if it has some, will come to. */
static void say_zeros(Select *s, const Op *op, const CastQuery *query)
{
    if (op->operand_count < 3)
        return;
    const Type *codes = op->operands[0]->type, *zero = op->operands[2]->type;
    CastZeros zeros = cast_zeros_of(zero->dtype, zero->layout, codes->layout, 0,
                                    query->elements);
    CastPlan plan;
    if (cast_plan_zeros(&s->m->scratch, query, &zeros, &plan))
        SAY(s, op, PASSED, "zero points of %s come off in the cast", dtype_name(zero->dtype));
    else
        SAY(s, op, MISSED, "zero points of %s take a difference in %s: the cast from %s adds no "
            "constant that holds them", dtype_name(zero->dtype), dtype_name(query->to),
            dtype_name(query->from));
}

static bool is_decoding(OpCode code)
{
    return code == OP_cast || code == OP_dequantize || code == OP_lookup;
}

/* Code generation plans by the same query; here is only what it will come to. */
static void say_cast(Select *s, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    int64_t slots = type_thread_bits(to) / dtype_bits(to->dtype);
    CastPlan plan;
    CastQuery query = {.from = from->dtype, .to = to->dtype, .packed = from->packed,
                       .finite = cast_is_finite(op), .sm = s->m->target_sm,
                       .elements = slots < CAST_ELEMENTS_MAX ? (unsigned)slots
                                                             : CAST_ELEMENTS_MAX};
    ArenaMark mark = arena_mark(&s->m->scratch);
    bool lookup = op->code == OP_lookup;
    const char *source = dtype_name(from->dtype), *name = op_info[op->code].name;
    if (from->packed)
        source = arena_printf(&s->m->scratch, "%s packed(%s)", source, dtype_name(from->packed));
    if (!lookup && from->dtype == to->dtype)
        SAY(s, op, PASSED, "%s from %s to %s moves bits, if any, and changes no value", name,
            source, type_text(s->m, to));
    else if ((lookup ? cast_plan_codebook : cast_plan)(&s->m->scratch, &query, &plan))
        SAY(s, op, PASSED, "%s from %s to %s goes by %s, %.3f operations an element", name,
            source, dtype_name(query.to), cast_family_name(&s->m->scratch, &plan),
            cast_count(&plan).total / (double)query.elements);
    else
        SAY(s, op, MISSED, "%s from %s to %s goes element by element: it has no plan", name,
            source, dtype_name(query.to));
    say_zeros(s, op, &query);
    arena_reset(&s->m->scratch, mark);
}

/* ---- the pass --------------------------------------------------------------- */

static bool select_access_op(Select *s, Op *op)
{
    Access a;
    if (!select_follow(s->m, op, s->m->target_sm, &a))
        return false;
    if (remarks_wanted(s->m->remarks))
        say(s, op, &a);
    if (select_is_written(op))
        return true;
    select_write(s->m, op, &a);
    stat_add(s->m, STAT_select_instructions_accesses, 1);
    stat_add(s->m, STAT_select_instructions_matrices, via_info[a.via].matrices > 0);
    s->changed = true;
    return true;
}

static bool select_op(Op *op, void *data)
{
    Select *s = data;
    if (op->code == OP_copy_async)
        s->failed |= !select_copy(s, op);
    else if (op->code == OP_dot)
        s->failed |= !select_dot(s, op);
    else if (is_decoding(op->code) && remarks_wanted(s->m->remarks))
        say_cast(s, op);
    else if (op_info[op->code].attrs & op_attr_bit(ATTR_VIA))
        s->failed |= !select_access_op(s, op);
    return true;
}

PassResult pass_select_instructions(Program *p)
{
    Select s = {.m = p->module};
    region_walk(p->body, select_op, &s);
    return s.failed ? PASS_FAILED : s.changed ? PASS_CHANGED : PASS_UNCHANGED;
}
