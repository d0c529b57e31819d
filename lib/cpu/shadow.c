/* Each 4 bytes of memory have a list of the accesses that later ones could conflict
 * with, each by its warp's epoch (clocks.h). Two accesses conflict that are in no order
 * and are not both reads. Of a warp's lanes two are kept, which is enough to tell whether
 * another one than a given lane was there. What is before everybody is forgotten.
 *
 * Reads, or atomic operations, by many blocks of a cooperative program would make long lists: behind
 * the first few records of a cell each warp's last one has its place in a table, a crowd. */
#define _GNU_SOURCE
#include "cpu/shadow.h"

#include "cpu/shadow_state.h"
#include "cpu/tensors.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------- */

static bool open_cells(Cells *c, const Guarded *memory)
{
    uintptr_t address = (uintptr_t)memory->data;
    c->memory = memory;
    c->origin = memory->data - address % CELL;
    c->cells = calloc(memory->size / CELL + 2, sizeof *c->cells);
    return c->cells != NULL;
}

static bool open_shared(Cells *c, const Guarded *shared)
{
    c->defined = malloc(shared->size + 1);
    return open_cells(c, shared) && c->defined;
}

bool shadow_open(Worker *w)
{
    const Machine *m = w->machine;
    Shadow *s = w->shadow = calloc(1, sizeof *s);
    if (!s)
        return false;
    s->regions = calloc(m->region_count + m->cluster, sizeof *s->regions);
    if (!s->regions ||
        !clocks_open(&s->clocks, m->cluster * block_warps(w), m->cluster * m->mbarriers))
        return false;
    for (unsigned i = 0; i < m->cluster; i++) {
        w[i].shadow = s;
        if (!open_shared(&s->regions[s->region_count++], &w[i].shared))
            return false;
    }
    for (size_t i = 0; i < m->region_count; i++)
        if (m->regions[i].base && !open_cells(&s->regions[s->region_count++], &m->regions[i]))
            return false;
    return true;
}

void shadow_close(Worker *w)
{
    Shadow *s = w->shadow;
    if (!s)
        return;
    for (size_t i = 0; i < s->region_count; i++) {
        free(s->regions[i].cells);
        free(s->regions[i].defined);
    }
    for (uint32_t i = 1; i < s->crowd_count; i++)
        free(s->crowds[i].of);
    free(s->crowds);
    clocks_close(&s->clocks);
    free(s->regions);
    free(s->records);
    free(s);
    w->shadow = NULL;
}

/* Puts a crowd that no cell has where new_crowd finds it. */
static void release_crowd(Shadow *s, uint32_t number)
{
    s->crowds[number].next = s->free_crowd;
    s->free_crowd = number;
}

void shadow_begin_block(Worker *w)
{
    Shadow *s = w->shadow;
    if (!s)
        return;
    if (++s->block == 0) {          /* numbers of blocks come again */
        for (size_t i = 0; i < s->region_count; i++)
            memset(s->regions[i].cells, 0,
                   (s->regions[i].memory->size / CELL + 2) * sizeof(Cell));
        s->block = 1;
    }
    clocks_reset(&s->clocks);
    for (unsigned i = 0; i < w->machine->cluster; i++)
        memset(s->regions[i].defined, 0, w[i].shared.size);
    s->record_count = 1;
    s->free_record = 0;
    s->free_crowd = 0;
    for (uint32_t i = 1; i < s->crowd_count; i++)
        release_crowd(s, i);
    s->undefined = (Undefined){0};
}

/* ---- bytes that nobody wrote ---------------------------------------------- */

/* Behind a barrier: no write can come any more that the read races with. */
static void check_undefined(Worker *w)
{
    const Undefined *u = &w->shadow->undefined;
    if (u->found && u->epoch < w->shadow->clocks.covered[u->warp]) {
        shadow_report_undefined(w);
        fault_leave();
    }
}

void shadow_join_barrier(Worker *w, uint32_t warps)
{
    if (!w->shadow)
        return;
    clocks_join_barrier(&w->shadow->clocks, w->rank * block_warps(w), warps);
    check_undefined(w);
}

void shadow_join_cluster(Worker *w)
{
    if (!w->shadow)
        return;
    clocks_join_all(&w->shadow->clocks);
    check_undefined(w);
}

void shadow_meet(Worker *w, const Thread *t)
{
    if (w->shadow)
        clocks_add_member(&w->shadow->clocks, cluster_warp(w, t));
}

void shadow_end_meeting(Worker *w)
{
    if (!w->shadow)
        return;
    clocks_join_members(&w->shadow->clocks);
    check_undefined(w);
}

/* Reports such a byte over another fault, which may come of it. */
void shadow_end_block(Worker *w)
{
    const Shadow *s = w->shadow;
    if (s && s->undefined.found && !w->cluster->fault.is_race && !w->cluster->fault.no_memory)
        shadow_report_undefined(w);
}

/* ---- records ------------------------------------------------------------- */

/* Adds a record to the list that begins with number `next`; returns its number. */
static uint32_t new_record(Shadow *s, uint32_t next)
{
    enum { FIRST = 1024 };
    uint32_t number = s->free_record;
    if (number) {
        s->free_record = s->records[number].next;
    } else {
        number = s->record_count;
        if (number >= s->record_capacity) {
            uint32_t capacity = s->record_capacity ? 2 * s->record_capacity : FIRST;
            Record *records = realloc(s->records, capacity * sizeof *records);
            if (!records)
                fault_memory();
            s->records = records;
            s->record_capacity = capacity;
        }
        s->record_count++;
    }
    s->records[number].next = next;
    return number;
}

/* Takes the record that `*link` leads to out of its list. */
static void drop_record(Shadow *s, uint32_t *link)
{
    uint32_t number = *link;
    *link = s->records[number].next;
    s->records[number].next = s->free_record;
    s->free_record = number;
}

static void set_record(const Shadow *s, Record *r, const Access *a, unsigned mask)
{
    r->epoch = a->is_bulk   ? a->epoch
               : a->is_copy ? IN_FLIGHT
                            : clocks_epoch(&s->clocks, a->warp);
    r->place = r->other_place = a->place;
    r->warp = a->warp;
    r->lane = a->lane;
    r->other = a->all_lanes ? a->lane ^ 1 : a->lane;
    r->kind = a->kind;
    r->mask = mask;
    r->is_copy = a->is_copy;
    r->is_product = a->is_product;
    r->is_store = a->is_store;
    r->is_bulk = a->is_bulk;
    r->owner = a->owner;
}

static void add_record(Shadow *s, Cell *cell, const Access *a, unsigned mask)
{
    cell->records = new_record(s, cell->records);
    set_record(s, &s->records[cell->records], a, mask);
}

/* ---- conflicts ----------------------------------------------------------- */

static bool is_own(const Record *r, const Access *a)
{
    return r->warp == a->warp && r->lane == a->lane && r->other == a->lane && !a->all_lanes &&
           !r->is_bulk;
}

/* Returns true when all of `r` is ordered before `a`. */
static bool is_ordered(const Cells *c, const Record *r, const Access *a)
{
    const Clocks *clocks = &a->worker->shadow->clocks;
    return r->epoch != IN_FLIGHT && !is_apart(c, r, a) &&
           (r->epoch < clocks_known(clocks, a->warp, r->owner) || is_own(r, a));
}

/* Keeps the `bytes` of the cell at `word` where `a` will write another value. */
static unsigned changed_bytes(const Access *a, const unsigned char *word, unsigned bytes)
{
    for (unsigned i = 0; i < CELL; i++)
        if (bytes >> i & 1 && word[i] == a->value[word + i - a->at])
            bytes &= ~(1u << i);
    return bytes;
}

/* Keeps the `bytes`, which both access, where they conflict if they are unordered. */
static unsigned conflicting_bytes(const Record *r, const Access *a, const unsigned char *word,
                                  unsigned bytes)
{
    bool same_op = r->place == a->place && !r->is_copy && !a->is_copy;
    if (r->kind != a->kind)
        return bytes;
    switch (a->kind) {
    case ACCESS_WRITE: return same_op ? changed_bytes(a, word, bytes) : bytes;
    case ACCESS_BITS: return same_op ? 0 : bytes;
    default: return 0;
    }
}

/* ---- cells --------------------------------------------------------------- */

/* Returns true when every later access conflicts with both `r` and `a` or neither. */
static bool is_alike(const Record *r, const Access *a)
{
    return r->kind == a->kind && r->is_copy == a->is_copy &&
           (a->kind == ACCESS_READ || a->kind == ACCESS_ATOMIC || a->kind == ACCESS_REDUCE ||
            r->place == a->place);
}

/* Notes `a` in `r`, where that is of the same warp and epoch; false where it does not
 * fit in. */
static bool join_record(const Shadow *s, Record *r, const Access *a, unsigned mask)
{
    bool is_now = r->owner == a->warp && r->epoch == clocks_epoch(&s->clocks, a->warp);
    if (!is_now || !is_alike(r, a) || a->is_copy)
        return false;
    bool is_known = r->other != r->lane || (r->lane == a->lane && !a->all_lanes);
    if (!is_known && mask == r->mask) {
        r->other = r->lane == a->lane ? a->lane ^ 1 : a->lane;
        r->other_place = a->place;
    }
    bool is_there = r->lane == a->lane || r->other == a->lane;
    return mask == r->mask || (is_there && !a->all_lanes && (mask & ~(unsigned)r->mask) == 0);
}

/* Whoever conflicts with `r` and comes later, conflicts with `a` that comes after it. */
static void forget_bytes(const Cells *c, Record *r, const Access *a, unsigned mask)
{
    if (is_alike(r, a) && is_ordered(c, r, a))
        r->mask &= ~mask;
}

/* Returns true when no later access can conflict with `r`. */
static bool is_over(const Cells *c, const Record *r, const Worker *w)
{
    return !r->mask ||
           (r->epoch < w->shadow->clocks.covered[r->owner] && !is_unordered(w->machine, c));
}

/* Reports the bytes `mask` of the cell at `word` where `r` and `a` conflict. */
static void check_record(const Access *a, const Record *r, const Cells *c,
                         const unsigned char *word, unsigned mask)
{
    unsigned wrong = is_ordered(c, r, a) ? 0 : conflicting_bytes(r, a, word, r->mask & mask);
    if (wrong)
        shadow_report_race(a, r, c, word + __builtin_ctz(wrong) - c->memory->data);
}

/* ---- crowds ---------------------------------------------------------------- */

/* Records of a cell that are listed before there is a crowd. */
enum { CROWD_FROM = 4 };

static uint32_t grow_crowds(Shadow *s)
{
    enum { FIRST = 256 };
    if (s->crowd_count >= s->crowd_capacity) {
        uint32_t capacity = s->crowd_capacity ? 2 * s->crowd_capacity : FIRST;
        Crowd *crowds = realloc(s->crowds, capacity * sizeof *crowds);
        if (!crowds)
            fault_memory();
        s->crowds = crowds;
        s->crowd_capacity = capacity;
    }
    s->crowd_count += s->crowd_count == 0;
    s->crowds[s->crowd_count] = (Crowd){.of = malloc(s->clocks.warps * sizeof(uint32_t))};
    if (!s->crowds[s->crowd_count].of)
        fault_memory();
    return s->crowd_count++;
}

static uint32_t new_crowd(Shadow *s, AccessKind kind)
{
    uint32_t number = s->free_crowd;
    if (number)
        s->free_crowd = s->crowds[number].next;
    else
        number = grow_crowds(s);
    memset(s->crowds[number].of, 0, s->clocks.warps * sizeof(uint32_t));
    s->crowds[number].count = 0;
    s->crowds[number].kind = kind;
    return number;
}

/* Checks `a`, which is of another kind, against all of the cell's crowd, and drops what is over. */
static void check_crowd(const Access *a, const Cells *c, Cell *cell, const unsigned char *word,
                        unsigned mask)
{
    Shadow *s = a->worker->shadow;
    Crowd *crowd = &s->crowds[cell->crowd];
    for (unsigned w = 0; w < s->clocks.warps && crowd->count; w++) {
        Record *r = &s->records[crowd->of[w]];
        if (!crowd->of[w])
            continue;
        check_record(a, r, c, word, mask);
        if (is_over(c, r, a->worker)) {
            drop_record(s, &crowd->of[w]);
            crowd->of[w] = 0;
            crowd->count--;
        }
    }
    if (crowd->count)
        return;
    release_crowd(s, cell->crowd);
    cell->crowd = 0;
}

/* Returns true when the crowd takes `a`, whose kind it has: what the warp did in earlier epochs is
 * before it. */
static bool join_crowd(const Access *a, const Cell *cell, unsigned mask)
{
    Shadow *s = a->worker->shadow;
    Crowd *crowd = &s->crowds[cell->crowd];
    uint32_t number = crowd->of[a->warp];
    if (number && s->records[number].epoch == clocks_epoch(&s->clocks, a->warp))
        return join_record(s, &s->records[number], a, mask);
    if (!number) {
        number = crowd->of[a->warp] = new_record(s, 0);
        crowd->count++;
    } else if (mask != s->records[number].mask) {
        return false;
    }
    set_record(s, &s->records[number], a, mask);
    return true;
}

/* Checks `a` against the cell's crowd, where it has one, and notes it there, where there is one then;
 * false where it does not. `length` records are listed. */
static bool visit_crowd(const Access *a, const Cells *c, Cell *cell, const unsigned char *word,
                        unsigned mask, unsigned length)
{
    Shadow *s = a->worker->shadow;
    bool can_join = (a->kind == ACCESS_READ || a->kind == ACCESS_ATOMIC) && !a->is_copy;
    if (cell->crowd && (s->crowds[cell->crowd].kind != a->kind || a->is_copy))
        check_crowd(a, c, cell, word, mask);
    if (!cell->crowd && can_join && length >= CROWD_FROM &&
        a->worker->machine->program->cooperative)
        cell->crowd = new_crowd(s, a->kind);
    return cell->crowd && can_join && s->crowds[cell->crowd].kind == a->kind &&
           join_crowd(a, cell, mask);
}

/* ---- checking -------------------------------------------------------------- */

/* Checks and notes the bytes `mask` of the cell at `word`. */
static void check_cell(const Access *a, const Cells *c, const unsigned char *word,
                       unsigned mask)
{
    Shadow *s = a->worker->shadow;
    Cell *cell = &c->cells[(size_t)(word - c->origin) / CELL];
    bool joined = false;
    unsigned length = 0;
    if (cell->block != s->block)
        *cell = (Cell){.block = s->block};
    for (uint32_t *link = &cell->records; *link; length++) {
        Record *r = &s->records[*link];
        unsigned common = r->mask & mask;
        check_record(a, r, c, word, mask);
        if (join_record(s, r, a, mask))
            joined = true;
        else if (common)
            forget_bytes(c, r, a, mask);
        if (is_over(c, r, a->worker))
            drop_record(s, link);
        else
            link = &r->next;
    }
    bool crowded = visit_crowd(a, c, cell, word, mask, length);
    if (!joined && !crowded)
        add_record(s, cell, a, mask);
}

/* ---- accesses ------------------------------------------------------------ */

typedef void Visit(const Access *a, const Cells *c, const unsigned char *word, unsigned mask);

/* Calls `visit` for each cell that `size` bytes lie in. Those past the memory's end are
 * left out: the access will end by a signal. */
static void visit_cells(const Access *a, const Cells *c, size_t size, Visit *visit)
{
    const unsigned char *begin = a->at, *end = a->at + size;
    const unsigned char *limit = c->memory->data + c->memory->size;
    end = end < limit ? end : limit;
    while (begin < end) {
        size_t skip = (size_t)(begin - c->origin) % CELL, rest = (size_t)(end - begin);
        size_t bytes = CELL - skip < rest ? CELL - skip : rest;
        visit(a, c, begin - skip, ((1u << bytes) - 1) << skip);
        begin += bytes;
    }
}

static bool has_byte(const Cells *c, const unsigned char *at)
{
    return at >= c->memory->data && at < c->memory->data + c->memory->size;
}

/* Looks in the running block's shared memory first, which is meant most often. */
static const Cells *find_cells(const Shadow *s, const unsigned char *at)
{
    const Cells *own = &s->regions[cpu_worker->rank];
    if (has_byte(own, at))
        return own;
    for (size_t i = s->region_count; i-- > 0;)
        if (has_byte(&s->regions[i], at))
            return &s->regions[i];
    return NULL;
}

/* Reads see what was written before; what is written can be read. */
static void check_defined(const Access *a, const Cells *c, size_t size)
{
    Shadow *s = a->worker->shadow;
    if (!c->defined)
        return;
    size_t first = (size_t)(a->at - c->memory->data);
    if (size > c->memory->size - first)
        size = c->memory->size - first;
    if (a->kind == ACCESS_WRITE || a->kind == ACCESS_BITS) {
        memset(c->defined + first, true, size);
        return;
    }
    const unsigned char *hole = memchr(c->defined + first, false, size);
    if (hole && !s->undefined.found)
        s->undefined = (Undefined){.found = true, .epoch = clocks_epoch(&s->clocks, a->warp),
                                   .place = a->place, .worker = a->worker,
                                   .thread = a->thread, .warp = a->warp,
                                   .byte = hole - c->defined};
}

/* Accesses of shared memory, or of the slack before it, stay in the op's tensors. */
static void check_tensor(const Access *a, size_t size)
{
    const Worker *w = worker_of(a->at);
    if (w)
        tensors_check(a->worker, a->place, a->thread, a->at - w->shared.data, size);
}

static void check(const Access *a, size_t size)
{
    const Shadow *s = a->worker->shadow;
    const Cells *c = find_cells(s, a->at);
    check_tensor(a, size);
    if (!c)
        return;
    visit_cells(a, c, size, check_cell);
    if (!a->is_copy)
        check_defined(a, c, size);
}

void shadow_ignore_old(const void *at, size_t size)
{
    const Worker *w = cpu_worker;
    const unsigned char *first = at, *begin = w->shared.data;
    if (w->shadow && first >= begin && first + size <= begin + w->shared.size)
        memset(w->shadow->regions[w->rank].defined + (first - begin), true, size);
}

static Access access_of(AccessKind kind, const Thread *t, const void *at, const void *value)
{
    unsigned warp = cluster_warp(cpu_worker, t);
    return (Access){.worker = cpu_worker, .kind = kind, .thread = t->number,
                    .warp = warp, .lane = t->number % LANES, .owner = warp, .place = t->place,
                    .at = at, .value = value};
}

void shadow_access(AccessKind kind, const void *at, size_t size, const void *value)
{
    if (!cpu_worker->shadow)
        return;
    Access a = access_of(kind, this_thread(), at, value);
    check(&a, size);
}

void shadow_warp_access(AccessKind kind, const Thread *lane, const void *at, size_t size,
                        const void *value)
{
    if (!cpu_worker->shadow)
        return;
    Access a = access_of(kind, lane, at, value);
    a.all_lanes = true;
    check(&a, size);
}

/* ---- copies -------------------------------------------------------------- */

void shadow_copy_begins(const Copy *copy)
{
    if (!cpu_worker->shadow)
        return;
    Access read = access_of(ACCESS_READ, this_thread(), copy->from, NULL);
    Access write = access_of(ACCESS_WRITE, this_thread(), copy->to, NULL);
    read.is_copy = write.is_copy = true;
    check(&read, copy->wanted);
    check(&write, copy->bytes);
}

/* From now on it is like any access of the thread. */
static void end_copy(const Access *a, const Cells *c, const unsigned char *word, unsigned mask)
{
    Shadow *s = a->worker->shadow;
    const Cell *cell = &c->cells[(size_t)(word - c->origin) / CELL];
    uint32_t number = cell->records;
    while (number) {
        Record *r = &s->records[number];
        if (r->epoch == IN_FLIGHT && r->warp == a->warp && r->lane == a->lane &&
            r->kind == a->kind && r->mask == mask && r->place == a->place) {
            r->epoch = clocks_epoch(&s->clocks, a->warp);
            return;
        }
        number = r->next;
    }
}

static void end_copy_of(AccessKind kind, const Copy *copy, const void *at, size_t size)
{
    Access a = access_of(kind, this_thread(), at, NULL);
    const Cells *c = find_cells(a.worker->shadow, a.at);
    a.place = copy->place;
    if (c)
        visit_cells(&a, c, size, end_copy);
    if (c)
        check_defined(&a, c, size);
}

void shadow_copy_ends(const Copy *copy)
{
    if (!cpu_worker->shadow)
        return;
    end_copy_of(ACCESS_READ, copy, copy->from, copy->wanted);
    end_copy_of(ACCESS_WRITE, copy, copy->to, copy->bytes);
}

/* ---- products -------------------------------------------------------------------- */

static Access product_access(const Thread *lane, const ProductRead *read)
{
    Access a = access_of(ACCESS_READ, lane, read->at, NULL);
    a.is_copy = a.is_product = a.all_lanes = true;
    a.place = read->place;
    return a;
}

void shadow_product_begins(const Thread *lane, const ProductRead *read)
{
    const Shadow *s = cpu_worker->shadow;
    Access a = product_access(lane, read);
    const Cells *c = find_cells(s, a.at);
    check(&a, read->bytes);
    if (c)
        check_defined(&a, c, read->bytes);
}

void shadow_product_ends(const Thread *lane, const ProductRead *read)
{
    Access a = product_access(lane, read);
    const Cells *c = find_cells(cpu_worker->shadow, a.at);
    if (c)
        visit_cells(&a, c, read->bytes, end_copy);
}

/* ---- bulk stores ------------------------------------------------------------- */

void shadow_store_begins(AccessKind kind, const void *at, size_t size)
{
    if (!cpu_worker->shadow)
        return;
    Access a = access_of(kind, this_thread(), at, NULL);
    a.is_copy = a.is_store = true;
    check(&a, size);
    const Cells *c = find_cells(cpu_worker->shadow, a.at);
    if (kind == ACCESS_READ && c == &cpu_worker->shadow->regions[0])
        check_defined(&a, c, size);
}

void shadow_store_ends(AccessKind kind, Place place, const void *at, size_t size)
{
    if (!cpu_worker->shadow)
        return;
    Access a = access_of(kind, this_thread(), at, NULL);
    const Cells *c = find_cells(cpu_worker->shadow, a.at);
    a.place = place;
    if (c)
        visit_cells(&a, c, size, end_copy);
}

/* ---- mbarriers and bulk copies ----------------------------------------------- */

void shadow_arrive(unsigned mbarrier)
{
    Worker *w = cpu_worker;
    if (w->shadow)
        clocks_arrive(&w->shadow->clocks, cluster_warp(w, w->running), mbarrier);
}

void shadow_phase_ends(unsigned mbarrier)
{
    if (cpu_worker->shadow)
        clocks_end_phase(&cpu_worker->shadow->clocks, mbarrier);
}

void shadow_wait(unsigned mbarrier)
{
    Worker *w = cpu_worker;
    if (w->shadow)
        clocks_wait(&w->shadow->clocks, cluster_warp(w, w->running), mbarrier);
}

/* ---- semaphores ------------------------------------------------------------- */

void shadow_release(const void *at)
{
    Worker *w = cpu_worker;
    if (w->shadow && w->machine->program->cooperative &&
        !clocks_release(&w->shadow->clocks, cluster_warp(w, w->running), at))
        fault_memory();
}

void shadow_acquire(const void *at)
{
    Worker *w = cpu_worker;
    if (w->shadow)
        clocks_acquire(&w->shadow->clocks, cluster_warp(w, w->running), at);
}

static Access bulk_access(AccessKind kind, const BulkCopy *copy, const void *at)
{
    Access a = access_of(kind, this_thread(), at, NULL);
    a.is_copy = a.is_bulk = true;
    a.owner = a.worker->shadow->clocks.warps + copy->mbarrier;
    a.epoch = clocks_phase(&a.worker->shadow->clocks, copy->mbarrier);
    return a;
}

void shadow_bulk_read(const BulkCopy *copy, const void *at, size_t size)
{
    if (!cpu_worker->shadow)
        return;
    Access read = bulk_access(ACCESS_READ, copy, at);
    check(&read, size);
}

void shadow_bulk_write(const BulkCopy *copy)
{
    if (!cpu_worker->shadow)
        return;
    Access write = bulk_access(ACCESS_WRITE, copy, copy->to);
    check(&write, copy->bytes);
}

void shadow_bulk_lands(const BulkCopy *copy)
{
    Shadow *s = cpu_worker->shadow;
    if (!s)
        return;
    Access a = access_of(ACCESS_WRITE, this_thread(), copy->to, NULL);
    const Cells *c = find_cells(s, a.at);
    if (c)
        check_defined(&a, c, copy->bytes);
}

void shadow_thread_ends(void)
{
    Worker *w = cpu_worker;
    const Thread *t = w->running;
    const Copies *c = &t->copies;
    char block[FAULT_TEXT];
    const ProductReads *products = &w->products[t->number / LANES];
    if (w->shadow && products->count) {
        fault_set(w, products->items[0].place, "thread %u of %s ends while this dot_async is in "
                  "flight, no dot_wait has ended it", t->number, fault_block(w, block));
        fault_leave();
    }
    if (!w->shadow || c->begin == c->end)
        return;
    fault_set(w, c->items[c->begin].place, "thread %u of %s ends while this copy_async is "
              "in flight, no copy_async_wait_group has ended it", t->number,
              fault_block(w, block));
    fault_leave();
}
