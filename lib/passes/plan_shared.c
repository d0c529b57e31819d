/* Places shared tensors: those that are never in use at the same time get the
 * same bytes, where a `synchronize` already stands between them. The larger ones
 * come first, each at the lowest offset where it may lie. Offsets that the text
 * has are proved and kept. Copies that go by tensor maps are marked before: they decide
 * about alignments.
 *
 *   %a = allocate_shared : f16[64, 64] shared
 *   ..  synchronize  ..
 *   %b = allocate_shared : f32[16, 64] shared
 *     =>  %a = allocate_shared {offset = 0} : f16[64, 64] shared
 *         %b = allocate_shared {offset = 0} : f32[16, 64] shared
 *
 * Remarks say which share, and which would if a barrier stood between them. */
#include "passes/pass.h"

#include "memory/lifetimes.h"
#include "passes/report.h"
#include "select/bulk.h"

enum { NOWHERE = -1 };

typedef struct Plan {
    Module *m;
    Program *p;
    Lifetimes l;
    int64_t *offset;        /* of each tensor, or NOWHERE */
    int64_t end;            /* of the last tensor */
} Plan;

#define SAY(plan, loc, name, ...) \
    REMARK_AT((plan)->m->remarks, (plan)->m->diag, loc, name, __VA_ARGS__)

/* ---- placement -------------------------------------------------------------- */

static bool tensors_overlap(const Plan *p, unsigned a, unsigned b)
{
    return p->offset[a] < p->offset[b] + p->l.tensors[b].bytes &&
           p->offset[b] < p->offset[a] + p->l.tensors[a].bytes;
}

/* A placed tensor that is in the way of `i`; the count if there is none. */
static unsigned find_obstacle(const Plan *p, unsigned i)
{
    unsigned a = 0;
    while (a < p->l.count && (a == i || p->offset[a] == NOWHERE || !tensors_overlap(p, a, i) ||
                              lifetimes_may_share(&p->l, a, i)))
        a++;
    return a;
}

/* False past the largest offset that there is. */
static bool plan_end(Plan *p, unsigned i)
{
    int64_t end = p->offset[i] + p->l.tensors[i].bytes;
    p->end = p->end > end ? p->end : end;
    return p->end <= LIMIT_SHARED_BYTES;
}

static int64_t align_up(int64_t offset, int64_t align)
{
    return (offset + align - 1) / align * align;
}

/* Behind each obstacle: no lower offset is free. */
static bool place(Plan *p, unsigned i)
{
    unsigned a;
    p->offset[i] = 0;
    while ((a = find_obstacle(p, i)) < p->l.count)
        p->offset[i] = align_up(p->offset[a] + p->l.tensors[a].bytes, p->l.tensors[i].align);
    return plan_end(p, i);
}

/* The largest tensor without a place, the first of several; or the count. */
static unsigned find_largest(const Plan *p)
{
    unsigned largest = p->l.count;
    for (unsigned i = 0; i < p->l.count; i++)
        if (p->offset[i] == NOWHERE &&
            (largest == p->l.count || p->l.tensors[i].bytes > p->l.tensors[largest].bytes))
            largest = i;
    return largest;
}

/* False if they do not fit into 2^31 bytes, which no target has. */
static bool place_all(Plan *p)
{
    unsigned i;
    p->offset = arena_array(&p->m->scratch, int64_t, p->l.count);
    for (i = 0; i < p->l.count; i++) {
        const Attr *written = op_attr(p->l.tensors[i].op, ATTR_OFFSET);
        p->offset[i] = written ? written->integer : NOWHERE;
        if (written)
            plan_end(p, i);
    }
    while ((i = find_largest(p)) < p->l.count) {
        diag_check_time(p->m->diag, p->l.tensors[i].op->loc);
        if (!place(p, i))
            return false;
    }
    return true;
}

/* ---- remarks -------------------------------------------------------------- */

static const char *tensor_name(const Plan *p, unsigned i)
{
    const Value *v = p->l.tensors[i].op->results[0];
    return v->name ? arena_printf(&p->m->scratch, "%%%s", v->name)
                   : arena_printf(&p->m->scratch, "the tensor of line %u", v->loc.line);
}

static void say_shared(const Plan *p, unsigned a, unsigned b)
{
    int64_t first = p->offset[a] > p->offset[b] ? p->offset[a] : p->offset[b];
    int64_t x = p->offset[a] + p->l.tensors[a].bytes;
    int64_t y = p->offset[b] + p->l.tensors[b].bytes;
    SAY(p, p->l.tensors[b].op->loc, BytesShared, R(tensor_name(p, a)), R(tensor_name(p, b)),
        R(first), R((x < y ? x : y) - 1));
}

/* Tensors that other blocks of the cluster access share no bytes. */
static bool is_remote(const Plan *p, unsigned a, unsigned b)
{
    return p->l.tensors[a].remote || p->l.tensors[b].remote;
}

static void say_remote(const Plan *p, unsigned a, unsigned b)
{
    unsigned accessed = p->l.tensors[a].remote ? a : b;
    SAY(p, p->l.tensors[b].op->loc, BytesNotSharedInCluster, R(tensor_name(p, a)),
        R(tensor_name(p, b)), R(tensor_name(p, accessed)));
}

/* `b` follows `a`: the access is one of `b`, or on the way around a loop of `a`. */
static void say_unordered(const Plan *p, unsigned a, unsigned b)
{
    const Op *access = lifetimes_unordered(&p->l, a, b);
    if (!access)
        access = lifetimes_unordered(&p->l, b, a);
    SAY(p, access->loc, BytesNotSharedUnordered, R(tensor_name(p, a)), R(tensor_name(p, b)),
        R(op_info[access->code].name));
}

static void say(const Plan *p)
{
    int64_t sequence = 0;
    for (unsigned b = 0; b < p->l.count; b++) {
        sequence += p->l.tensors[b].bytes;
        for (unsigned a = 0; a < b; a++)
            if (tensors_overlap(p, a, b))
                say_shared(p, a, b);
            else if (lifetimes_disjoint(&p->l, a, b) && is_remote(p, a, b))
                say_remote(p, a, b);
            else if (lifetimes_disjoint(&p->l, a, b) && !lifetimes_may_share(&p->l, a, b))
                say_unordered(p, a, b);
    }
    SAY(p, p->p->loc, SharedMemoryPlanned, R(p->end), R(sequence));
}

/* ---- the pass --------------------------------------------------------------- */

static bool write_offsets(const Plan *p)
{
    bool changed = false;
    for (unsigned i = 0; i < p->l.count; i++) {
        Op *op = p->l.tensors[i].op;
        if (op_attr(op, ATTR_OFFSET))
            continue;
        op_set_attr(p->m, op, (Attr){.kind = ATTR_OFFSET, .integer = p->offset[i]});
        stat_add(p->m, STAT_plan_shared_tensors, 1);
        changed = true;
    }
    return changed;
}

PassResult pass_plan_shared(Program *program)
{
    Plan p = {.m = program->module, .p = program};
    ArenaMark mark = arena_mark(&p.m->scratch);
    PassResult result = PASS_UNCHANGED;
    bool settled = bulk_settle(program);
    p.l = lifetimes_of(program);
    if (!lifetimes_check_offsets(p.m, &p.l)) {
        result = PASS_FAILED;
    } else if (p.l.count && place_all(&p)) {
        if (remarks_wanted(p.m->remarks))
            say(&p);
        settled |= write_offsets(&p);
    }
    if (settled && result == PASS_UNCHANGED)
        result = PASS_CHANGED;
    arena_reset(&p.m->scratch, mark);
    return result;
}
