/* A walk in program order notes where each tensor is accessed, and carries along
 * which tensors were accessed since the last barrier, on some path. What reaches
 * the top of a loop body grows until it holds for every iteration: the walk repeats
 * until no loop has more to say. */
#include "memory/lifetimes.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "ir/text.h"

#include <string.h>

/* Accesses of a tensor on a path since the last `synchronize`; all but the first
 * outlive barriers. A state has a byte for each tensor, where only what the whole block
 * waits for counts, and one more, where what the tensor's threads wait for does, too. */
enum {
    TOUCHED = 1,
    STARTED = 2,        /* a copy that is in no group yet */
    COMMITTED = 4,      /* a copy in a group */
    FLYING = 8,         /* a bulk copy: what ends it is not looked into */
    MULTIPLIED = 16,    /* by a dot_async that is in no group yet */
    GROUPED = 32        /* by one in a group */
};

typedef struct Walk {
    Lifetimes *l;
    Arena *arena;
    unsigned position;
    unsigned loop, loop_count;  /* loops met in this iteration; in any */
    uint32_t loop_capacity;
    uint8_t **entries;          /* of each loop, what reaches the top of its body */
    bool grown;                 /* one of these has, in this iteration */
} Walk;

/* ---- tensors ------------------------------------------------------------- */

static int64_t tensor_bytes(const Type *t)
{
    int64_t bits = 8 * SHARED_ALIGN, span = type_shared_bits(t);
    return (span / bits + (span % bits != 0)) * SHARED_ALIGN;
}

static bool count_tensor(Op *op, void *data)
{
    *(unsigned *)data += op->code == OP_allocate_shared;
    return true;
}

static bool add_tensor(Op *op, void *data)
{
    Lifetimes *l = data;
    if (op->code == OP_allocate_shared)
        l->tensors[l->count++] = (SharedTensor){
            .op = op, .bytes = tensor_bytes(op->results[0]->type), .align = SHARED_ALIGN,
            .first = UINT32_MAX};
    return true;
}

static unsigned tensor_find(const Lifetimes *l, const Op *op)
{
    unsigned i = 0;
    while (l->tensors[i].op != op)
        i++;
    return i;
}

static ThreadRange all_threads(const Op *op)
{
    return (ThreadRange){0, program_threads(op->parent->program)};
}

/* Aligns the tensors that `op` needs aligned, as shared_alignment says. */
static void align_tensors(Lifetimes *l, const Op *op)
{
    for (unsigned i = 0; op_needs_swizzle_alignment(op) && i < op->operand_count; i++) {
        if (op->operands[i]->type->kind != TYPE_SHARED)
            continue;
        const Value *root = memory_root(op->operands[i]);
        l->tensors[tensor_find(l, root->def)].align = swizzle_alignment(root->type);
    }
}

/* Finds the alignment of each tensor, and which threads access it; an empty range: none so far. */
static bool add_uses(Op *op, void *data)
{
    Lifetimes *l = data;
    align_tensors(l, op);
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++) {
        const Value *memory = accesses[i].tile.memory;
        if (memory->type->kind != TYPE_SHARED)
            continue;
        ThreadRange *t = &l->tensors[tensor_find(l, memory_root(memory)->def)].threads;
        ThreadRange threads = region_threads(op->parent);
        *t = !t->count || thread_range_equal(*t, threads) ? threads : all_threads(op);
    }
    return true;
}

/* ---- states ---------------------------------------------------------------- */

static size_t state_size(const Walk *w)
{
    return 2 * (size_t)w->l->count;
}

static uint8_t *state_copy(const Walk *w, const uint8_t *state)
{
    return arena_copy(w->arena, state, state_size(w));
}

/* Returns true when `to` has grown. */
static bool state_join(const Walk *w, uint8_t *to, const uint8_t *from)
{
    bool grown = false;
    for (size_t i = 0; i < state_size(w); i++) {
        grown = grown || from[i] & ~to[i];
        to[i] |= from[i];
    }
    return grown;
}

/* Replaces `from` by `to` (0: over), as all threads that run `op` have come to it: of all
 * tensors if these are the block, else of those that they alone access. */
static void state_move(const Walk *w, const Op *op, uint8_t *state, uint8_t from, uint8_t to)
{
    unsigned n = w->l->count;
    ThreadRange threads = region_threads(op->parent);
    bool whole = thread_range_equal(threads, all_threads(op));
    for (size_t i = 0; i < state_size(w); i++) {
        bool own = thread_range_equal(w->l->tensors[i % n].threads, threads);
        bool seen = to || i >= n;       /* by others, whom a barrier of these says nothing */
        if (state[i] & from && (whole || (own && seen)))
            state[i] = (uint8_t)((state[i] & ~from) | to);
    }
}

/* ---- the walk ---------------------------------------------------------------- */

static uint8_t access_state(Completion completion)
{
    return completion == COMPLETION_NOW       ? TOUCHED
           : completion == COMPLETION_GROUP   ? STARTED
           : completion == COMPLETION_PRODUCT ? MULTIPLIED
                                              : FLYING;
}

static void flow_access(Walk *w, const Op *op, const OpAccess *access, uint8_t *state)
{
    Lifetimes *l = w->l;
    unsigned b = tensor_find(l, memory_root(access->tile.memory)->def);
    SharedTensor *t = &l->tensors[b];
    for (unsigned a = 0; a < l->count; a++) {
        bool alike = thread_range_equal(l->tensors[a].threads, t->threads);
        if (a != b && state[alike ? l->count + a : a] && !l->unordered[a * l->count + b])
            l->unordered[a * l->count + b] = op;
    }
    t->remote |= op_is_remote(op) && program_blocks(op->parent->program) > 1;
    state[b] |= access_state(access->completion);
    state[l->count + b] |= access_state(access->completion);
    t->first = t->first < w->position ? t->first : w->position;
    t->last = t->last > w->position ? t->last : w->position;
}

static void flow_region(Walk *w, const Region *r, uint8_t *state);

/* The first iteration meets each loop for the first time. */
static uint8_t *loop_entry(Walk *w)
{
    unsigned n = w->loop++;
    if (n == w->loop_count)
        arena_push(w->arena, w->entries, w->loop_count, w->loop_capacity,
                   arena_array(w->arena, uint8_t, state_size(w)));
    return w->entries[n];
}

/* Data of a tensor from outside stays from iteration to iteration. Of tensors that are accessed
 * behind the loop alone, walks after the first know so. */
static void loop_extend(Walk *w, unsigned begin)
{
    for (unsigned i = 0; i < w->l->count; i++) {
        SharedTensor *t = &w->l->tensors[i];
        if (t->position >= begin || t->last < begin || t->first > w->position)
            continue;
        t->first = t->first < begin ? t->first : begin;
        t->last = w->position;
    }
}

static void flow_loop(Walk *w, const Op *op, uint8_t *state)
{
    unsigned begin = w->position;
    uint8_t *entry = loop_entry(w);
    w->grown |= state_join(w, entry, state);
    memcpy(state, entry, state_size(w));
    flow_region(w, op->regions[0], state);
    w->grown |= state_join(w, entry, state);
    memcpy(state, entry, state_size(w));
    loop_extend(w, begin);
}

static void flow_if(Walk *w, const Op *op, uint8_t *state)
{
    uint8_t *before = state_copy(w, state);
    for (unsigned i = 0; i < op->region_count; i++) {
        uint8_t *branch = state_copy(w, before);
        flow_region(w, op->regions[i], branch);
        if (i == 0)
            memcpy(state, branch, state_size(w));
        else
            state_join(w, state, branch);
    }
}

static void flow_sync(const Walk *w, const Op *op, uint8_t *state)
{
    if (op_is_barrier(op))
        state_move(w, op, state, TOUCHED, 0);
    else if (op_syncs(op, SYNC_COMMIT, COMPLETION_GROUP))
        state_move(w, op, state, STARTED, COMMITTED);
    else if (op_syncs(op, SYNC_WAIT, COMPLETION_GROUP) && op_wait_pending(op) == 0)
        state_move(w, op, state, COMMITTED, TOUCHED);
    else if (op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT) && op_wait_pending(op) == 0)
        state_move(w, op, state, GROUPED, TOUCHED);
}

static void flow_op(Walk *w, const Op *op, uint8_t *state)
{
    w->position++;
    diag_check_time(op->parent->program->module->diag, op->loc);
    if (op->code == OP_allocate_shared)
        w->l->tensors[tensor_find(w->l, op)].position = w->position;
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].tile.memory->type->kind == TYPE_SHARED)
            flow_access(w, op, &accesses[i], state);
    if (op_commits_product(op))
        state_move(w, op, state, MULTIPLIED, GROUPED);
    if (op_sync(op) != SYNC_NONE)
        flow_sync(w, op, state);
    else if (op->code == OP_if)
        flow_if(w, op, state);
    else if (op->code == OP_thread_group)
        flow_region(w, op->regions[0], state);
    else if (op->region_count)
        flow_loop(w, op, state);
}

static void flow_region(Walk *w, const Region *r, uint8_t *state)
{
    for (const Op *op = r->first; op; op = op->next)
        flow_op(w, op, state);
}

Lifetimes lifetimes_of(Program *p)
{
    Arena *arena = &p->module->scratch;
    Lifetimes l = {0};
    unsigned count = 0;
    region_walk(p->body, count_tensor, &count);
    l.tensors = arena_array(arena, SharedTensor, count);
    region_walk(p->body, add_tensor, &l);
    region_walk(p->body, add_uses, &l);
    l.unordered = arena_alloc_array(arena, count, count * sizeof *l.unordered);
    Walk w = {.l = &l, .arena = arena, .grown = count > 0};
    while (w.grown) {
        w.grown = false;
        w.position = w.loop = 0;
        flow_region(&w, p->body, arena_array(arena, uint8_t, state_size(&w)));
    }
    return l;
}

/* ---- questions ---------------------------------------------------------------- */

bool lifetimes_disjoint(const Lifetimes *l, unsigned a, unsigned b)
{
    const SharedTensor *s = &l->tensors[a], *t = &l->tensors[b];
    return s->last < t->first || t->last < s->first;
}

const Op *lifetimes_unordered(const Lifetimes *l, unsigned a, unsigned b)
{
    return l->unordered[a * l->count + b];
}

bool lifetimes_may_share(const Lifetimes *l, unsigned a, unsigned b)
{
    return !l->tensors[a].remote && !l->tensors[b].remote &&
           lifetimes_disjoint(l, a, b) && !lifetimes_unordered(l, a, b) &&
           !lifetimes_unordered(l, b, a);
}

/* ---- written offsets ---------------------------------------------------------- */

static bool offsets_overlap(const SharedTensor *a, const SharedTensor *b)
{
    const Attr *x = op_attr(a->op, ATTR_OFFSET), *y = op_attr(b->op, ATTR_OFFSET);
    return x && y && x->integer < y->integer + b->bytes && y->integer < x->integer + a->bytes;
}

/* Says why `a` and `b` may not lie where their offsets put them. */
static bool refuse(Module *m, const Lifetimes *l, unsigned a, unsigned b)
{
    const Value *x = l->tensors[a].op->results[0], *y = l->tensors[b].op->results[0];
    const Op *access = lifetimes_unordered(l, a, b);
    const char *name = value_text(m, x);
    if (!access)
        access = lifetimes_unordered(l, b, a);
    const char *other = value_text(m, y);
    diag_error(m->diag, y->loc, "offset = %lld puts %s onto bytes of %s",
               (long long)op_attr(y->def, ATTR_OFFSET)->integer, other, name);
    if (l->tensors[a].remote || l->tensors[b].remote)
        return diag_note(m->diag, x->loc, "other blocks of the cluster access %s",
                         l->tensors[a].remote ? name : other);
    if (lifetimes_disjoint(l, a, b))
        return diag_note(m->diag, access->loc, "no synchronize orders this %s and the "
                         "accesses of the other", op_info[access->code].name);
    return diag_note(m->diag, x->loc, "%s still holds data when %s is used", name, other);
}

bool lifetimes_check_offsets(Module *m, const Lifetimes *l)
{
    bool ok = true;
    for (unsigned b = 0; b < l->count; b++)
        for (unsigned a = 0; a < b; a++)
            if (offsets_overlap(&l->tensors[a], &l->tensors[b]) &&
                !lifetimes_may_share(l, a, b))
                ok = refuse(m, l, a, b);
    return ok;
}
