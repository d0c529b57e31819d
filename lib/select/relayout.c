/* Chooses how convert_layout moves elements. */
#include "select/plan.h"

#include <assert.h>

enum { WARP = 32, BANKS = 32, BANK_BYTES = 4, PHASE_BYTES = BANKS * BANK_BYTES };

/* ---- digits on both sides ----------------------------------------------------- */

enum { REPLICA = -1 };

/* A digit of a thread's number or of a slot's: number / weight mod extent, of which a step
 * moves `stride` elements along `dim`. */
typedef struct Step {
    int dim;
    int64_t stride, extent, weight;
    bool spatial;
} Step;

typedef struct Steps {
    unsigned count;
    Step step[2 * LAYOUT_MODES];
} Steps;

static int64_t mode_stride(const Layout *l, unsigned mode)
{
    int64_t stride = 1;
    for (unsigned m = mode + 1; m < l->mode_count; m++)
        stride *= l->modes[m].dim == l->modes[mode].dim ? l->modes[m].extent : 1;
    return stride;
}

static void add_steps(Steps *s, const Layout *l, bool spatial)
{
    unsigned count = spatial ? l->spatial_count : l->local_count;
    int64_t weight = spatial ? l->threads : l->slots;
    for (unsigned i = 0; i < count; i++) {
        LayoutDigit d = spatial ? l->spatial[i] : l->local[i];
        weight /= d.extent;
        Step step = {REPLICA, 0, d.extent, weight, spatial};
        if (d.mode >= 0) {
            step.dim = l->modes[d.mode].dim;
            step.stride = mode_stride(l, (unsigned)d.mode);
        }
        s->step[s->count++] = step;
    }
}

static Steps steps_of(const Layout *l)
{
    Steps s = {0};
    add_steps(&s, l, true);
    add_steps(&s, l, false);
    return s;
}

/* Strides at which the digits of a dimension meet, in either layout; ascending. */
typedef struct Borders {
    unsigned count;
    int64_t at[8 * LAYOUT_MODES];
} Borders;

static void add_border(Borders *b, int64_t at)
{
    unsigned i = 0;
    while (i < b->count && b->at[i] < at)
        i++;
    if (i < b->count && b->at[i] == at)
        return;
    for (unsigned j = b->count++; j > i; j--)
        b->at[j] = b->at[j - 1];
    b->at[i] = at;
}

/* Adds the borders of a dimension's digits, also between lanes and warps; false where a digit
 * cannot be cut there. */
static bool add_borders(Borders *b, const Steps *s, int dim)
{
    for (unsigned i = 0; i < s->count; i++) {
        const Step *step = &s->step[i];
        if (step->dim != dim)
            continue;
        add_border(b, step->stride);
        add_border(b, step->stride * step->extent);
        if (!step->spatial || step->weight >= WARP || step->weight * step->extent <= WARP)
            continue;
        int64_t lanes = WARP / step->weight;
        if (WARP % step->weight || step->extent % lanes)
            return false;
        add_border(b, step->stride * lanes);
    }
    return true;
}

static bool borders_divide(const Borders *b)
{
    for (unsigned i = 1; i < b->count; i++)
        if (b->at[i] % b->at[i - 1])
            return false;
    return true;
}

/* Returns the digit of `s` in which `stride` lies, cut to begin there. */
static Step step_at(const Steps *s, int dim, int64_t stride)
{
    for (unsigned i = 0; i < s->count; i++) {
        Step step = s->step[i];
        if (step.dim != dim || stride < step.stride || stride >= step.stride * step.extent)
            continue;
        step.weight *= stride / step.stride;
        return step;
    }
    assert(!"the digits of a dimension cover it");
    return (Step){0};
}

/* ---- shuffles -------------------------------------------------------------------- */

/* Inserts a move, in ascending order of the weights that number lanes, or the old slots. */
static void moves_add(DigitMoves *moves, DigitMove m, bool by_target)
{
    unsigned i = moves->count++;
    for (; i > 0; i--) {
        const DigitMove *before = &moves->move[i - 1];
        if ((by_target ? before->to : before->from) <= (by_target ? m.to : m.from))
            break;
        moves->move[i] = *before;
    }
    moves->move[i] = m;
    moves->size *= m.extent;
}

/* Sorts one digit into its kind; false where an element would leave its warp. */
static bool add_move(ExchangePlan *p, const Step *from, const Step *to, int64_t extent)
{
    DigitMove m = {extent, from->weight, to->weight};
    if (from->spatial && from->weight >= WARP)
        return to->spatial && to->weight == from->weight;
    DigitMoves *kind = from->spatial ? to->spatial ? &p->l : &p->y : to->spatial ? &p->x : &p->z;
    moves_add(kind, m, kind == &p->x);
    return true;
}

static bool add_dim(ExchangePlan *p, const Steps *from, const Steps *to, int dim)
{
    Borders b = {0};
    if (!add_borders(&b, from, dim) || !add_borders(&b, to, dim) || !borders_divide(&b))
        return false;
    for (unsigned i = 1; i < b.count; i++) {
        Step of_from = step_at(from, dim, b.at[i - 1]), of_to = step_at(to, dim, b.at[i - 1]);
        if (!add_move(p, &of_from, &of_to, b.at[i] / b.at[i - 1]))
            return false;
    }
    return true;
}

/* Lanes of one element in the old layout: a reader takes the one with its own digits. */
static bool add_own(ExchangePlan *p, const Steps *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        const Step *step = &from->step[i];
        int64_t lanes = step->extent;
        if (step->dim != REPLICA || step->weight >= WARP)
            continue;
        if (step->weight * step->extent > WARP)
            lanes = WARP / step->weight;
        if (WARP % step->weight || step->extent % lanes)
            return false;
        moves_add(&p->own, (DigitMove){lanes, step->weight, step->weight}, false);
    }
    return true;
}

static int64_t moves_count(const DigitMoves *moves, int64_t number, bool to)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < moves->count; i++) {
        const DigitMove *m = &moves->move[i];
        sum += number % m->extent * (to ? m->to : m->from);
        number /= m->extent;
    }
    return sum;
}

int64_t digits_from(const DigitMoves *moves, int64_t number)
{
    return moves_count(moves, number, false);
}

int64_t digits_to(const DigitMoves *moves, int64_t number)
{
    return moves_count(moves, number, true);
}

/* Reads the number whose digits a thread of the new side has. */
static int64_t moves_read(const DigitMoves *moves, int64_t thread)
{
    int64_t number = 0, radix = 1;
    for (unsigned i = 0; i < moves->count; i++) {
        number += thread / moves->move[i].to % moves->move[i].extent * radix;
        radix *= moves->move[i].extent;
    }
    return number;
}

static bool is_power_of_two(int64_t v)
{
    return (v & (v - 1)) == 0;
}

/* Returns true when each thread reads, in round 0, from its own lane. */
static bool reads_own_lane(const ExchangePlan *p, int64_t threads)
{
    for (int64_t t = 0; t < threads; t++) {
        int64_t lane = digits_from(&p->own, moves_read(&p->own, t)) +
                       digits_from(&p->l, moves_read(&p->l, t)) +
                       digits_from(&p->y, moves_read(&p->x, t) % p->y.size);
        if (lane != t % WARP)
            return false;
    }
    return true;
}

static void count_shuffles(ExchangePlan *p, unsigned bits, int64_t threads)
{
    int64_t rounds = 0;
    p->rounds = p->x.size > p->y.size ? p->x.size : p->y.size;
    p->in_place = reads_own_lane(p, threads);
    p->words = (p->z.size * bits + 31) / 32;
    for (int64_t r = 0; r < p->rounds; r++)
        rounds += !p->in_place || r % p->y.size != 0;
    p->shuffles = rounds * p->words;
}

/* Digits of lanes have powers of two as extents, as their warp has. */
static bool plan_shuffle(const Layout *from, const Layout *to, unsigned bits, ExchangePlan *p)
{
    Steps a = steps_of(from), b = steps_of(to);
    *p = (ExchangePlan){.l.size = 1, .x.size = 1, .y.size = 1, .z.size = 1, .own.size = 1};
    for (unsigned d = 0; d < from->rank; d++)
        if (!add_dim(p, &a, &b, (int)d))
            return false;
    for (unsigned i = 0; i < p->x.count; i++)
        if (!is_power_of_two(p->x.move[i].extent))
            return false;
    if (!add_own(p, &a))
        return false;
    count_shuffles(p, bits, from->threads);
    return true;
}

/* ---- shared memory ------------------------------------------------------------------ */

/* The widest access of `l` along the dimension in which elements of `bits` bits follow each
 * other, in rows of `row` bits; of 0 bytes where there is none. */
static ScratchAccess widest_access(const Layout *l, unsigned dim, unsigned bits, int64_t row)
{
    int64_t run = layout_run(l, dim);
    for (unsigned bytes = 16; bytes; bytes /= 2) {
        int64_t slots = 8 * bytes / bits;
        if (slots && 8 * bytes % bits == 0 && run % slots == 0 && row % (8 * bytes) == 0)
            return (ScratchAccess){slots, bytes, 0};
    }
    return (ScratchAccess){0};
}

/* The byte of a thread's slot 0. */
static int64_t first_byte(const Layout *l, const ScratchPlan *s, int64_t thread)
{
    int64_t index[LIMIT_RANK], element = 0;
    layout_index(l, thread, 0, index);
    for (unsigned d = 0; d < l->rank; d++)
        element += index[d] * s->strides[d];
    return element * s->bits / 8;
}

/* Returns the most different words of one bank among lanes that access `bytes` bytes each. */
static unsigned bank_words(const int64_t *first, unsigned lanes, unsigned bytes)
{
    int64_t words[BANKS][WARP];
    unsigned count[BANKS] = {0}, most = 0;
    for (unsigned i = 0; i < lanes * (bytes < BANK_BYTES ? 1 : bytes / BANK_BYTES); i++) {
        int64_t word = first[i % lanes] / BANK_BYTES + i / lanes;
        unsigned bank = (unsigned)(word % BANKS), known = 0;
        while (known < count[bank] && words[bank][known] != word)
            known++;
        if (known == count[bank])
            words[bank][count[bank]++] = word;
        most = count[bank] > most ? count[bank] : most;
    }
    return most;
}

/* Counts the wavefronts of an access by the first warp: lanes go in phases of at most 128
 * bytes. */
static unsigned count_wavefronts(const Layout *l, const ScratchPlan *s, unsigned bytes)
{
    int64_t first[WARP];
    unsigned lanes = bytes <= BANK_BYTES ? WARP : PHASE_BYTES / bytes, sum = 0;
    for (unsigned lane = 0; lane < WARP; lane++)
        first[lane] = first_byte(l, s, lane);
    for (unsigned lane = 0; lane < WARP; lane += lanes)
        sum += bank_words(first + lane, lanes, bytes);
    return sum;
}

/* Lays elements of `bits` bits out with dimension `fast` innermost, whose rows are `pad` bytes
 * longer than needed. */
static bool lay_out(const Layout *from, const Layout *to, unsigned bits, unsigned fast,
                    unsigned pad, ScratchPlan *s)
{
    int64_t next = from->shape[fast] + 8 * pad / bits, rows = 1;
    *s = (ScratchPlan){.bits = bits};
    for (unsigned d = from->rank; d-- > 0;) {
        s->strides[d] = d == fast ? 1 : next * rows;
        rows *= d == fast ? 1 : from->shape[d];
    }
    int64_t row = rows > 1 ? next * bits : 0;
    s->store = widest_access(from, fast, bits, row);
    s->load = widest_access(to, fast, bits, row);
    s->bytes = (next * rows * bits + 127) / 128 * 16;
    return 8 * pad % bits == 0 && s->store.bytes && s->load.bytes;
}

static int64_t count_scratch(const Layout *from, const Layout *to, ScratchPlan *s)
{
    s->store.wavefronts = count_wavefronts(from, s, s->store.bytes);
    s->load.wavefronts = count_wavefronts(to, s, s->load.bytes);
    return from->slots / s->store.slots * s->store.wavefronts +
           to->slots / s->load.slots * s->load.wavefronts;
}

/* The least power of two from 8 on that holds `bits` bits. */
static unsigned container_bits(unsigned bits)
{
    unsigned container = 8;
    while (container < bits)
        container *= 2;
    return container;
}

/* Elements that are no bytes lie in containers, unless whole bytes of them stay together on
 * both sides. Returns wavefronts of a warp. */
static int64_t plan_scratch_memory(const Layout *from, const Layout *to, unsigned bits,
                                   ScratchPlan *best)
{
    static const unsigned pads[] = {0, 4, 8, 16, 32, 64};
    int64_t least = INT64_MAX;
    for (unsigned wide = 0; wide < 2 && least == INT64_MAX; wide++)
        for (unsigned i = 0; i < from->rank * sizeof pads / sizeof *pads; i++) {
            ScratchPlan s;
            unsigned fast = from->rank - 1 - i % from->rank;
            if (!lay_out(from, to, wide ? container_bits(bits) : bits, fast,
                         pads[i / from->rank], &s))
                continue;
            int64_t cost = count_scratch(from, to, &s);
            if (cost < least || (cost == least && s.bytes < best->bytes)) {
                least = cost;
                *best = s;
            }
        }
    assert(least < INT64_MAX && "bytes of their own always fit");
    return least;
}

/* ---- the planner ------------------------------------------------------------------------ */

RelayoutPlan relayout_plan(const Op *op)
{
    const Type *t = op->operands[0]->type;
    const Layout *from = t->layout, *to = op->results[0]->type->layout;
    unsigned bits = dtype_bits(t->dtype);
    RelayoutPlan plan = {.way = RELAYOUT_RENAME};
    int64_t thread;
    if (layout_broadcasts(from, to, &thread))
        return plan;
    int64_t wavefronts = plan_scratch_memory(from, to, bits, &plan.scratch);
    bool stays = plan_shuffle(from, to, bits, &plan.shuffle);
    enum { BARRIERS_COST = 8 };
    plan.way = stays && plan.shuffle.shuffles <= wavefronts + BARRIERS_COST ? RELAYOUT_SHUFFLE
                                                                          : RELAYOUT_SCRATCH;
    return plan;
}

static int64_t relayout_scratch(Module *m, const Op *op)
{
    (void)m;
    RelayoutPlan plan = relayout_plan(op);
    return plan.way == RELAYOUT_SCRATCH ? plan.scratch.bytes : 0;
}

static bool plan_relayout(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)m;
    (void)sm;
    plan->relayout = relayout_plan(op);
    plan->scratch = plan->relayout.way == RELAYOUT_SCRATCH ? plan->relayout.scratch.bytes : 0;
    return true;
}

static void remark_scratch(Module *m, const Op *op, const ScratchPlan *s)
{
    REMARK(m, op, LayoutThroughShared, R(op_info[op->code].name), R(s->bytes), R(s->store.bytes),
           R(s->store.wavefronts), R(s->load.bytes), R(s->load.wavefronts));
}

static void remark_relayout(Module *m, const Op *op, const Plan *plan)
{
    const char *name = op_info[op->code].name;
    const RelayoutPlan *p = &plan->relayout;
    if (p->way == RELAYOUT_RENAME)
        REMARK(m, op, LayoutKept, R(name));
    else if (p->way == RELAYOUT_SHUFFLE && !p->shuffle.shuffles)
        REMARK(m, op, LayoutBySlots, R(name));
    else if (p->way == RELAYOUT_SHUFFLE)
        REMARK(m, op, LayoutByShuffles, R(name), R(p->shuffle.shuffles));
    else
        remark_scratch(m, op, &p->scratch);
}

static int64_t relayout_operations(const Op *op, const Plan *plan)
{
    (void)op;
    return plan->relayout.way == RELAYOUT_SHUFFLE ? plan->relayout.shuffle.shuffles : 0;
}

const Planner planner_relayout = {
    .family = PLAN_relayout, .plan = plan_relayout, .remark = remark_relayout,
    .scratch = relayout_scratch, .operations = relayout_operations,
};
