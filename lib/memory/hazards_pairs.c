/* Compares two accesses, of one block or of two: their offsets as expressions of one
 * time, and from these the bytes that both touch. */
#include "memory/hazards_walk.h"

#include "memory/replicas.h"
#include "ir/loop.h"
#include "ir/op_access.h"
#include "scalar/determine.h"
#include "scalar/facts.h"

/* ---- what was found ---------------------------------------------------- */

static bool pair_equal(const void *a, const void *b)
{
    const OpPair *x = a, *y = b;
    return x->first == y->first && x->second == y->second;
}

static uint64_t pair_hash(const Op *first, const Op *second)
{
    return hash_u64(hash_u64(0, (uintptr_t)first), (uintptr_t)second);
}

const OpPair *hazards_find_pair(const Walk *w, const Op *first, const Op *second)
{
    OpPair key = {.first = first, .second = second};
    return intern_find(&w->pairs, pair_hash(first, second), &key);
}

OpPair *hazards_pair(Walk *w, const Op *first, const Op *second)
{
    const OpPair *known = hazards_find_pair(w, first, second);
    if (known)
        return (OpPair *)known;
    if (!w->pairs.equal)
        intern_init(&w->pairs, w->arena, pair_equal);
    OpPair *pair = arena_new(w->arena, OpPair);
    *pair = (OpPair){.first = first, .second = second};
    intern_add(&w->pairs, pair_hash(first, second), pair);
    return pair;
}

void hazards_report(Walk *w, Hazard h)
{
    unsigned *at = &hazards_pair(w, h.first, h.second)->at_found[h.kind];
    if (!*at) {
        arena_push(w->arena, w->found.found, w->found.count, w->found.capacity, h);
        *at = w->found.count;
    } else if (h.proved && !w->found.found[*at - 1].proved) {
        w->found.found[*at - 1] = h;
    }
}

/* ---- earlier times ----------------------------------------------------- */

static const Expr *fresh_symbol(Walk *w, const Value *of, bool far, Facts facts)
{
    for (unsigned i = 0; i < w->symbol_count; i++)
        if (w->symbols[i].of == of && w->symbols[i].far == far)
            return w->symbols[i].expr;
    /* An expression keeps the value, so it lives as long. */
    Value *v = arena_new(&w->m->arena, Value);
    *v = (Value){.type = of->type, .name = of->name, .program = w->p, .facts = facts};
    FreshSymbol symbol = {of, far, expr_value(&w->m->exprs, v)};
    arena_push(w->arena, w->symbols, w->symbol_count, w->symbol_capacity, symbol);
    return symbol.expr;
}

/* Returns a fresh symbol for any value that `of` may have. */
static const Expr *other_value(Walk *w, const Value *of)
{
    ScalarFacts f = facts_of_value(of);
    return fresh_symbol(w, of, false, (Facts){.divisible = f.divisor > 0 ? f.divisor : 1,
                                              .min = f.min, .max = f.max, .align = 1});
}

/* from +- step * n */
static const Expr *move(Walk *w, const Expr *from, ScalarOp op, const Expr *step,
                        const Expr *n)
{
    ExprTable *t = &w->m->exprs;
    const char *why;
    const Expr *by = step ? expr_make(t, SCALAR_mul, step, n, &why) : n;
    return by ? expr_make(t, op, from, by, &why) : NULL;
}

static const Loop *find_loop(const Walk *w, const Value *v, unsigned *at)
{
    const Op *op = v->region ? v->region->parent : NULL;
    for (*at = 0; op && v->index == 0 && *at < w->depth; ++*at)
        if (w->loops[*at].op == op && op->code == OP_for)
            return &w->loops[*at];
    return NULL;
}

/* The substitution of scalars, for one pending access. */
typedef struct Substitution {
    Walk *w;
    const Pending *pending;
} Substitution;

static bool is_constant_in_block(const Value *v)
{
    return v->program || (v->def && (v->def->code == OP_block_indices ||
                                     v->def->code == OP_cluster_rank));
}

/* Maps a scalar at the time of the pending access to an expression of now. */
static const Expr *value_then(Value *v, void *data)
{
    Substitution *at = data;
    Walk *w = at->w;
    unsigned n;
    if (is_constant_in_block(v))
        return NULL;
    const Loop *loop = find_loop(w, v, &n);
    if (!loop || n >= at->pending->shared)
        return other_value(w, v);
    unsigned iterations = at->pending->iterations[n];
    if (iterations == 0)
        return NULL;
    const Expr *count = iterations < HAZARD_ITERATIONS
        ? expr_constant(&w->m->exprs, iterations)
        : fresh_symbol(w, v, true, (Facts){.divisible = 1, .min = HAZARD_ITERATIONS,
                                           .max = INT64_MAX, .align = 1});
    const Expr *then = move(w, expr_value(&w->m->exprs, v), SCALAR_sub, loop->step, count);
    return then ? then : other_value(w, v);
}

/* Maps a scalar of now: the index of a loop that began after the pending access is known
 * by its iterations. */
static const Expr *value_now(Value *v, void *data)
{
    Substitution *at = data;
    Walk *w = at->w;
    unsigned n;
    const Loop *loop = find_loop(w, v, &n);
    if (!loop || n < at->pending->shared || at->pending->iterations[n] == HAZARD_ITERATIONS)
        return NULL;
    return move(w, loop->lower, SCALAR_add, loop->step,
                expr_constant(&w->m->exprs, at->pending->iterations[n]));
}

void hazards_substitute(Walk *w, const Expr *const *exprs, unsigned count, ExprMap map,
                       void *data, const Expr **made)
{
    for (unsigned i = 0; i < count; i++)
        made[i] = expr_substitute(&w->m->exprs, exprs[i], map, data);
}

/* ---- comparing --------------------------------------------------------- */

static Overlap overlap_of(Walk *w, const Footprint *a, const Expr *const *then,
                          const Footprint *b, const Expr *const *now, bool blocks)
{
    Difference apart[LIMIT_RANK];
    unsigned rank = a->tile.offsets->count;
    for (unsigned d = 0; d < rank && d < b->tile.offsets->count; d++)
        apart[d] = difference_of(then[d], now[d]);
    return footprints_overlap(w->m, a, b, apart, then, blocks);
}

/* A pair of tiles, of which rings_order asks. */
typedef struct Tiles {
    Walk *w;
    const Footprint *then, *now;
    bool other_threads;
} Tiles;

static bool tiles_are_apart(void *data, ExprMap map, void *then, void *now)
{
    Tiles *t = data;
    const Attr *x = t->then->tile.offsets, *y = t->now->tile.offsets;
    const Expr *before[LIMIT_RANK], *after[LIMIT_RANK];
    hazards_substitute(t->w, x->exprs, x->count, map, then, before);
    hazards_substitute(t->w, y->exprs, y->count, map, now, after);
    return overlap_of(t->w, t->then, before, t->now, after, t->other_threads) == OVERLAP_NEVER;
}

static bool rings_order_them(Walk *w, const Pending *pending, const Footprint *now)
{
    Tiles tiles = {w, pending->footprint, now,
                   !thread_range_equal(pending->threads, w->threads)};
    RingPair pair = {.first = pending->footprint->op, .second = now->op};
    if (!w->rings)
        return false;
    for (unsigned n = pending->shared; n-- > 0 && !pair.loop;)
        if (rings_number(w->rings, w->loops[n].op)) {
            pair.loop = w->loops[n].op;
            pair.iterations = pending->iterations[n];
            pair.more = pair.iterations == HAZARD_ITERATIONS;
        }
    return rings_order(w->rings, &pair, tiles_are_apart, &tiles);
}

/* ---- tiles whose offsets tell their number ------------------------------------ */

/* The offsets, equal at both times, of tiles that have a byte in common; how many. */
static unsigned equal_offsets(Walk *w, const Footprint *a, const Expr *const *of_a,
                              const Footprint *b, const Expr *const *of_b, const Expr **equal)
{
    unsigned rank = a->tile.offsets->count, count = 0;
    if (rank != b->tile.offsets->count)
        return 0;
    for (unsigned d = 0; d < rank; d++)
        if (of_a[d] != of_b[d])
            return 0;
    uint32_t grid = footprints_grid(w->m, a, b, of_a);
    for (unsigned d = 0; d < rank; d++)
        if (grid >> d & 1)
            equal[count++] = of_a[d];
    return count;
}

static bool is_same_then(const Value *v, void *data)
{
    return value_then((Value *)v, data) == NULL;
}

/* Returns true when the offsets tell the iteration of a loop around both accesses, which are of
 * different ones. */
static bool offsets_tell_iterations(Walk *w, const Pending *pending, const Footprint *now,
                                    const Expr *const *offsets)
{
    const Expr *equal[LIMIT_RANK];
    unsigned count = equal_offsets(w, pending->footprint, pending->offsets, now, offsets, equal);
    Substitution at = {w, pending};
    for (unsigned n = 0; count && n < pending->shared; n++)
        if (pending->iterations[n] && w->loops[n].op->code == OP_for &&
            exprs_determine(w->m, equal, count,
                            expr_value(&w->m->exprs, for_index(w->loops[n].op)), is_same_then,
                            &at))
            return true;
    return false;
}

/* ---- certainty ------------------------------------------------------------------- */

/* Returns a lower bound of the iterations of a `for`. */
static int64_t least_iterations(const Op *loop)
{
    const Expr *step = op_expr(loop, ATTR_STEP);
    int64_t by = !step ? 1 : expr_is_constant(step) ? step->constant : INT64_MAX, span;
    int64_t first = facts_of_expr(op_expr(loop, ATTR_LOWER)).max;
    int64_t end = facts_of_expr(op_expr(loop, ATTR_UPPER)).min;
    if (by < 1 || __builtin_sub_overflow(end, first, &span) || span <= 0)
        return 0;
    return (span - 1) / by + 1;
}

/* The iterations of `loop`, which is around the walk, that came before the one that is compared, of an
 * access before the loop; 0 of one inside: the way from there is taken. */
static int64_t iterations_before(const Walk *w, const Pending *pending, const Op *loop)
{
    for (unsigned n = pending->shared; n < w->depth; n++)
        if (w->loops[n].op == loop)
            return pending->iterations[n];
    return 0;
}

/* Returns true when a run that gets to `now` after the pending access gets there in the iterations
 * that are compared, too: the loops around it run so often, and no condition lies between.
 *
 *     store_shared %x, %s[448]
 *     for %i in 0 .. %n {
 *       store_shared %y, %s[%i * 64]       <-- races if %n > 7, and is reached if %n > 0
 *     }                                        */
static bool is_reached(const Walk *w, const Pending *pending, const Op *now)
{
    bool always = true;                 /* in each iteration of the loops around `op` */
    for (const Op *op = now->parent->parent; op; op = op->parent->parent) {
        if (!op_is_loop(op)) {
            always = always && op->code != OP_if;
            continue;
        }
        const Expr *unrolled = op->code == OP_for ? for_index(op)->data : NULL;
        if (unrolled && (always || unrolled == op_expr(op, ATTR_LOWER)))
            continue;
        int64_t before = unrolled ? 1 : iterations_before(w, pending, op);
        int64_t least = op->code == OP_for ? least_iterations(op) : 0;
        if (before && (!always || before >= least))
            return false;
        always = always && before < least;
    }
    return true;
}

void hazards_compare(Walk *w, const Pending *pending, const Footprint *now,
                    const Expr *const *offsets)
{
    const Footprint *then = pending->footprint;
    if (!hazards_conflict(then, now) ||
        (pending->grouped && thread_range_equal(pending->threads, w->threads)))
        return;
    Substitution at = {w, pending};
    const Expr *before[LIMIT_RANK], *after[LIMIT_RANK];
    hazards_substitute(w, pending->offsets, then->tile.offsets->count, value_then, &at, before);
    hazards_substitute(w, offsets, now->tile.offsets->count, value_now, &at, after);
    bool other_threads = !thread_range_equal(pending->threads, w->threads);
    Overlap o = overlap_of(w, then, before, now, after, other_threads);
    w->found.pairs++;
    if (o == OVERLAP_NEVER)
        hazards_proved(w, PROOF_APART, then, now);
    else if (offsets_tell_iterations(w, pending, now, offsets))
        hazards_proved(w, PROOF_ITERATIONS, then, now);
    else if (rings_order_them(w, pending, now))
        hazards_proved(w, PROOF_MBARRIERS, then, now);
    else
        hazards_report(w, (Hazard){pending->age == AGE_DONE ? HAZARD_ORDER : HAZARD_COPY,
                           o == OVERLAP_SURE && pending->certain &&
                               is_reached(w, pending, now->op), then->op, now->op, then->mode,
                           now->mode, now->tile.memory});
}

/* Compares threads of one store, or parts of one copy, at the same place. */
void hazards_compare_with_itself(Walk *w, const Footprint *f)
{
    if (f->mode != MODE_WRITE)
        return;
    if (f->some || !memory_is_injective(w->m, f->tile.memory) ||
        (f->layout && !replicas_are_equal(w->m, f->op->operands[0])))
        hazards_report(w, (Hazard){HAZARD_VALUES, false, f->op, f->op, f->mode, f->mode,
                           f->tile.memory});
}

/* ---- blocks ------------------------------------------------------------ */

/* A pair of blocks that differ in one dimension of the grid, at least. */
typedef struct Blocks {
    Walk *w;
    unsigned dim;
} Blocks;

/* Maps a scalar of the first block that the second need not share. */
static const Expr *value_here(Value *v, void *data)
{
    Blocks *b = data;
    if (v->program || (v->def && v->def->code == OP_block_indices && v->index == b->dim))
        return NULL;
    return other_value(b->w, v);
}

/* Maps a scalar of the second block, whose index is greater in that dimension. */
static const Expr *value_there(Value *v, void *data)
{
    Blocks *b = data;
    if (!v->def || v->def->code != OP_block_indices || v->index != b->dim)
        return NULL;
    const Expr *more = fresh_symbol(b->w, v, true, (Facts){.divisible = 1, .min = 1,
                                                           .max = INT64_MAX, .align = 1});
    return move(b->w, expr_value(&b->w->m->exprs, v), SCALAR_add, NULL, more);
}

static bool blocks_are_apart(Walk *w, const Footprint *a, const Footprint *b, unsigned dim)
{
    Blocks blocks = {w, dim};
    const Attr *x = a->tile.offsets, *y = b->tile.offsets;
    const Expr *here[LIMIT_RANK], *there[LIMIT_RANK];
    hazards_substitute(w, x->exprs, x->count, value_here, &blocks, here);
    hazards_substitute(w, y->exprs, y->count, value_there, &blocks, there);
    return overlap_of(w, a, here, b, there, true) == OVERLAP_NEVER;
}

static bool is_argument(const Value *v, void *data)
{
    (void)data;
    return v->program != NULL;
}

/* Offsets that may tell a block: a result of ops of this code. */
typedef struct BlockSearch {
    Walk *w;
    const Expr *equal[LIMIT_RANK];
    unsigned count;
    OpCode code;
    unsigned result;
} BlockSearch;

static bool leaves_untold(Op *op, void *data)
{
    const BlockSearch *s = data;
    return op->code != s->code || s->result >= op->result_count ||
           !exprs_determine(s->w->m, s->equal, s->count,
                            expr_value(&s->w->m->exprs, op->results[s->result]), is_argument,
                            NULL);
}

/* Returns true when the offsets tell the index of the block in that dimension, of cluster_rank
 * the rank. */
static bool offsets_tell_block(Walk *w, const Footprint *a, const Footprint *b, OpCode code,
                               unsigned dim)
{
    BlockSearch s = {.w = w, .code = code, .result = dim};
    s.count = equal_offsets(w, a, a->tile.offsets->exprs, b, b->tile.offsets->exprs, s.equal);
    return s.count && !region_walk(w->p->body, leaves_untold, &s);
}

/* Returns true when the two touch different bytes in blocks that differ in dimension `dim`. */
static bool are_apart_along(Walk *w, const Footprint *a, const Footprint *b, unsigned dim)
{
    return (blocks_are_apart(w, a, b, dim) && (a == b || blocks_are_apart(w, b, a, dim))) ||
           offsets_tell_block(w, a, b, OP_block_indices, dim);
}

static void compare_blocks(Walk *w, const Footprint *a, const Footprint *b)
{
    bool apart = true;
    for (unsigned d = 0; d < w->p->grid_rank; d++)
        if (facts_of_expr(w->p->grid[d]).max > 1)
            apart = apart && are_apart_along(w, a, b, d);
    if (apart)
        hazards_proved(w, PROOF_BLOCKS, a, b);
    else
        hazards_report(w, (Hazard){HAZARD_BLOCKS, false, a->op, b->op, a->mode, b->mode,
                           b->tile.memory});
}

void hazards_compare_blocks(Walk *w)
{
    for (unsigned j = 0; j < w->footprint_count; j++) {
        diag_check_time(w->m->diag, w->footprints[j].op->loc);
        for (unsigned i = 0; i <= j; i++) {
            const Footprint *a = &w->footprints[i], *b = &w->footprints[j];
            if (a->root->type->kind != TYPE_SHARED && hazards_conflict(a, b))
                compare_blocks(w, a, b);
        }
    }
}

/* ---- blocks of a cluster --------------------------------------------------- */

static bool is_apart_in_cluster(Walk *w, const Footprint *f)
{
    bool apart = true;
    for (unsigned d = 0; d < w->p->cluster_rank; d++)
        if (w->p->cluster[d] > 1)
            apart = apart && are_apart_along(w, f, f, d);
    return apart || offsets_tell_block(w, f, f, OP_cluster_rank, 0);
}

bool hazards_apart_in_cluster(const Op *op)
{
    Program *p = op->parent->program;
    Walk w = {.p = p, .m = p->module, .arena = &p->module->scratch};
    Footprint f[ACCESSES_MAX];
    unsigned count = footprints_of(w.m, op, f);
    for (unsigned i = 0; i < count; i++)
        if (f[i].mode != MODE_READ && f[i].root->type->kind != TYPE_SHARED &&
            !is_apart_in_cluster(&w, &f[i]))
            return false;
    return true;
}

/* Compares a copy to all blocks with accesses of other blocks to the same tensor. */
static void compare_copy(Walk *w, const Footprint *copy, const Footprint *other)
{
    Tiles tiles = {w, copy, other, true};
    bool apart = copy->op == other->op
                     ? offsets_tell_block(w, copy, copy, OP_cluster_rank, 0)
                     : rings_order_blocks(w->rings, copy->op, other->op, tiles_are_apart, &tiles);
    w->found.pairs++;
    if (apart)
        hazards_proved(w, copy->op == other->op ? PROOF_BLOCKS : PROOF_MBARRIERS, copy, other);
    else
        hazards_report(w, (Hazard){HAZARD_COPY, false, copy->op, other->op, copy->mode,
                                   other->mode, copy->tile.memory});
}

/* Leaves out what rings do not know: it is reported as HAZARD_REMOTE. */
void hazards_compare_cluster(Walk *w)
{
    for (unsigned i = 0; w->rings && i < w->footprint_count; i++) {
        const Footprint *copy = &w->footprints[i];
        if (copy->root->type->kind != TYPE_SHARED || !op_is_remote(copy->op) ||
            program_blocks(w->p) == 1 || !rings_know(w->rings, copy->op))
            continue;
        for (unsigned j = 0; j < w->footprint_count; j++)
            if (hazards_conflict(copy, &w->footprints[j]))
                compare_copy(w, copy, &w->footprints[j]);
    }
}
