/* A run: compiles, lays out memory, runs the blocks, reports the fault.
 *
 * Buffers are copied between guards, so that an access past either end is found, and
 * copied back; those that overlap together. */
#define _GNU_SOURCE
#include "cpu/cpu.h"

#include "cpu/host.h"
#include "cpu/machine.h"
#include "cpu/tensors.h"
#include "ir/op_access.h"
#include "support/clock.h"
#include "support/kernel_map.h"

#include <assert.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

/* A host thread and what it runs on. */
typedef struct Station {
    thrd_t thread;
    bool started;
    Worker *workers;            /* of the blocks of a cluster */
} Station;

/* Where a buffer lies: at `offset` in the region of its number or, as buffers may overlap, in that
 * of the first one that has the same span. */
typedef struct BufferPlace {
    size_t region, offset;
    tilus_buffer span;          /* the caller's memory that the region has */
} BufferPlace;

struct CpuRun {
    Module *module;
    Codegen *cg;
    HostCode *code;
    Machine machine;
    Station *stations;
    unsigned station_count;
    const BufferPlace *places;        /* of the launch's buffers */
    ArenaMark launch;           /* of the module's scratch, where a launch's data begins */
};

CpuRun *cpu_new(Module *m)
{
    CpuRun *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->module = m;
    run->cg = codegen_new(m);
    if (!run->cg || mtx_init(&run->machine.printing, mtx_plain) != thrd_success) {
        codegen_free(run->cg);
        free(run);
        return NULL;
    }
    return run;
}

static void close_station(Station *s)
{
    if (s->workers)
        worker_close(s->workers);
    free(s->workers);
}

/* Frees what is of one launch: address space and mappings, of which the system lets a process have
 * some ten thousands, are not for kernels that do not run. */
static void clear(CpuRun *run)
{
    Machine *m = &run->machine;
    for (unsigned i = 0; i < run->station_count; i++)
        close_station(&run->stations[i]);
    for (size_t i = 0; i < m->region_count; i++)
        guarded_close(&m->regions[i]);
    free(m->regions);
    free(run->stations);
    m->regions = NULL;
    m->region_count = 0;
    run->stations = NULL;
    run->station_count = 0;
    m->next_cluster = m->done_blocks = 0;
    m->stop = false;
}

void cpu_free(CpuRun *run)
{
    if (!run)
        return;
    clear(run);
    host_free(run->code);
    mtx_destroy(&run->machine.printing);
    codegen_free(run->cg);
    free(run);
}

/* ---- memory -------------------------------------------------------------- */

/* Returns the bytes of buffer `number`, of those that overlap with it, and so on. */
static tilus_buffer find_span(const CpuLaunch *launch, size_t number)
{
    uintptr_t begin = (uintptr_t)launch->buffers[number].data;
    uintptr_t end = begin + launch->buffers[number].size;
    for (size_t i = 0; i < launch->buffer_count; i++) {
        uintptr_t first = (uintptr_t)launch->buffers[i].data;
        uintptr_t last = first + launch->buffers[i].size;
        if (first >= end || last <= begin || (first >= begin && last <= end))
            continue;
        begin = first < begin ? first : begin;
        end = last > end ? last : end;
        i = SIZE_MAX;           /* from the first one again */
    }
    return (tilus_buffer){(void *)begin, (size_t)(end - begin)};
}

/* Finds where buffers lie in regions. */
static void place_buffers(CpuRun *run, const CpuLaunch *launch)
{
    BufferPlace *places = arena_array(&run->module->scratch, BufferPlace, launch->buffer_count);
    for (size_t i = 0; i < launch->buffer_count; i++) {
        tilus_buffer span = find_span(launch, i);
        BufferPlace *p = &places[i];
        *p = (BufferPlace){.region = 0, .span = span};
        while (places[p->region].span.data != span.data || places[p->region].span.size != span.size)
            p->region++;
        p->offset = (size_t)((uintptr_t)launch->buffers[i].data - (uintptr_t)span.data);
    }
    run->places = places;
}

static size_t argument_align(const CpuLaunch *launch, size_t number)
{
    size_t align = (size_t)launch->info->args[number].align;
    for (size_t i = 0; i < launch->info->map_count; i++)
        if (launch->info->maps[i].argument == number && align < TILUS_MAP_ALIGN)
            align = TILUS_MAP_ALIGN;
    return align > 1 ? align : 1;
}

/* The strictest alignment that arguments promise of region `number`, or that a tensor map
 * wants, and the name of the first argument; NULL when none points to it. */
static const char *region_name(const CpuRun *run, const CpuLaunch *launch, size_t number,
                               size_t *align)
{
    const char *name = NULL;
    *align = 1;
    for (size_t i = 0; i < launch->info->arg_count; i++) {
        const tilus_arg_info *arg = &launch->info->args[i];
        if (arg->kind != TILUS_ARG_POINTER || run->places[launch->args[i].pointer].region != number)
            continue;
        size_t own = argument_align(launch, i);
        name = name ? name : arena_printf(&run->module->scratch, "argument %%%s", arg->name);
        *align = own > *align ? own : *align;
    }
    return name;
}

/* Refuses arguments whose buffers begin inside of others', at places that are not aligned. */
static bool check_places(const CpuRun *run, const CpuLaunch *launch)
{
    for (size_t i = 0; i < launch->info->arg_count; i++) {
        const tilus_arg_info *arg = &launch->info->args[i];
        if (arg->kind != TILUS_ARG_POINTER)
            continue;
        size_t align = argument_align(launch, i);
        size_t offset = run->places[launch->args[i].pointer].offset;
        if (offset % align)
            return diag_error(run->module->diag, launch->program->loc, "argument %%%s begins %zu "
                              "bytes inside of another one, which is not aligned to %zu",
                              arg->name, offset, align);
    }
    return true;
}

/* Opens a region for each buffer, or those that overlap, and one for the workspace. */
static bool open_regions(CpuRun *run, const CpuLaunch *launch)
{
    Machine *m = &run->machine;
    enum { UNWRITTEN = 0xFF };
    m->regions = calloc(launch->buffer_count + 1, sizeof *m->regions);
    if (!m->regions)
        return false;
    m->region_count = launch->buffer_count + 1;
    for (size_t i = 0; i < launch->buffer_count; i++) {
        size_t align;
        const tilus_buffer *span = &run->places[i].span;
        const char *name = region_name(run, launch, i, &align);
        if (!name)
            continue;
        if (launch->offsets && align < TILUS_WORKSPACE_ALIGN)
            align = TILUS_WORKSPACE_ALIGN;
        if (!guarded_open(&m->regions[i], name, span->size, align, false))
            return false;
        memcpy(m->regions[i].data, span->data, span->size);
    }
    Guarded *workspace = &m->regions[launch->buffer_count];
    if (!guarded_open(workspace, "the workspace", launch->workspace_bytes,
                     TILUS_WORKSPACE_ALIGN, false))
        return false;
    memset(workspace->data + launch->workspace_zeroed, UNWRITTEN,
           workspace->size - launch->workspace_zeroed);
    return true;
}

static void copy_back(const CpuRun *run)
{
    for (size_t i = 0; i + 1 < run->machine.region_count; i++)
        if (run->machine.regions[i].base)
            memcpy(run->places[i].span.data, run->machine.regions[i].data,
                   run->places[i].span.size);
}

/* Makes map `number`, whose numbers the launch's check has approved: pointers among `args`
 * are addresses. */
static CpuMap make_map(const CpuLaunch *launch, const tilus_arg *args, size_t number)
{
    const tilus_tensor_map *map = &launch->info->maps[number];
    KernelMapValues values;
    bool ok = kernel_map_values(launch->info, number, args, &values, (Report){0});
    assert(ok);
    (void)ok;
    CpuMap out = {.base = (unsigned char *)(uintptr_t)values.address,
                  .rank = (uint16_t)map->rank, .swizzle = map->swizzle, .type = map->type,
                  .element = (uint16_t)kernel_map_element(map->type)};
    memcpy(out.extents, values.extents, sizeof out.extents);
    memcpy(out.strides, values.strides, sizeof out.strides);
    memcpy(out.box, map->box, sizeof out.box);
    return out;
}

/* Lays out the arguments of compiled code: 64 bits each, pointers to tensor maps after
 * them, the workspace last. */
static const uint64_t *place_args(CpuRun *run, const CpuLaunch *launch)
{
    size_t count = launch->info->arg_count, maps = launch->info->map_count;
    uint64_t *words = arena_array(&run->module->scratch, uint64_t, count + maps + 1);
    CpuMap *made = arena_array(&run->module->scratch, CpuMap, maps);
    tilus_arg *args = arena_array(&run->module->scratch, tilus_arg, count);
    for (size_t i = 0; i < count; i++) {
        const Type *t = launch->program->args[i]->type;
        tilus_arg arg = launch->args[i];
        args[i] = arg;
        if (t->kind == TYPE_PTR) {
            const BufferPlace *place = &run->places[arg.pointer];
            args[i].pointer = (uintptr_t)run->machine.regions[place->region].data + place->offset +
                              (launch->offsets ? launch->offsets[i] : 0);
        }
        words[i] = t->kind == TYPE_PTR        ? args[i].pointer
                   : dtype_is_float(t->dtype) ? dtype_encode(t->dtype, arg.real)
                                              : (uint64_t)arg.integer;
    }
    for (size_t i = 0; i < maps; i++) {
        made[i] = make_map(launch, args, i);
        words[count + i] = (uintptr_t)&made[i];
    }
    words[count + maps] = (uintptr_t)run->machine.regions[launch->buffer_count].data;
    return words;
}

/* ---- blocks -------------------------------------------------------------- */

static void tell_progress(const Machine *m, int64_t done)
{
    if (m->options->progress)
        m->options->progress(m->options->watcher, done, m->blocks);
}

/* Runs blocks until there are none left, or somebody found a fault. */
static void run_clusters(Worker *w)
{
    Machine *m = w->machine;
    bool ok = true;
    while (ok && !atomic_load(&m->stop)) {
        int64_t cluster = atomic_fetch_add(&m->next_cluster, 1);
        if (cluster >= m->blocks / m->cluster)
            break;
        ok = worker_run_cluster(w, cluster);
        tell_progress(m, atomic_fetch_add(&m->done_blocks, m->cluster) + m->cluster);
    }
    if (!ok)
        atomic_store(&m->stop, true);
}

/* Runs blocks on a host thread, which inherits or has the caller's floating-point environment: code
 * of a GPU rounds to the nearest and keeps subnormal numbers, whatever the host has chosen. */
static int work(void *data)
{
    Worker *w = data;
    fenv_t before;
    if (!signals_enter(w)) {
        w->fault.found = w->fault.no_memory = true;
        return 0;
    }
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    run_clusters(w);
    fesetenv(&before);
    signals_leave(w);
    return 0;
}

/* Host threads that run blocks. A block that waits for another one needs them to
 * run in order, which one host thread does. */
static unsigned count_stations(const CpuRun *run, const Program *p)
{
    const Machine *m = &run->machine;
    unsigned count = m->options->host_threads;
    if (count < 1 || p->cooperative || program_has_locks(p))
        return 1;
    return (int64_t)count < m->blocks ? count : (unsigned)m->blocks;
}

static bool count_mbarriers(Op *op, void *data)
{
    Machine *m = data;
    for (unsigned i = 0; i < op->result_count; i++)
        if (op->results[i]->type->kind == TYPE_MBARRIER && op->code == OP_allocate_mbarrier)
            m->mbarriers += (unsigned)type_extent(op->results[i]->type, 0);
    return true;
}

static bool open_stations(CpuRun *run, const Program *p)
{
    unsigned count = count_stations(run, p);
    run->machine.mbarriers = 0;
    region_walk(p->body, count_mbarriers, &run->machine);
    run->stations = calloc(count, sizeof *run->stations);
    if (!run->stations)
        return false;
    for (run->station_count = 0; run->station_count < count;) {
        Station *s = &run->stations[run->station_count++];
        s->workers = calloc(run->machine.cluster, sizeof *s->workers);
        if (!s->workers || !worker_open(s->workers, &run->machine))
            return false;
    }
    return true;
}

/* This host thread is the first of them. One that cannot be started is done without. A grid of no
 * blocks has none at all. */
static void run_blocks(CpuRun *run)
{
    tell_progress(&run->machine, 0);
    if (run->station_count == 0)
        return;
    for (unsigned i = 1; i < run->station_count; i++) {
        Station *s = &run->stations[i];
        s->started = thrd_create(&s->thread, work, s->workers) == thrd_success;
    }
    work(run->stations[0].workers);
    for (unsigned i = 1; i < run->station_count; i++)
        if (run->stations[i].started)
            thrd_join(run->stations[i].thread, NULL);
}

/* ---- faults -------------------------------------------------------------- */

/* Finds the fault of the least block, or NULL. */
static const Fault *find_fault(const CpuRun *run)
{
    const Fault *first = NULL;
    for (unsigned i = 0; i < run->station_count; i++) {
        const Fault *f = &run->stations[i].workers->fault;
        if (f->found && (!first || f->block < first->block))
            first = f;
    }
    return first;
}

/* Writes beside a buffer that hit no guard. */
static bool check_slack(const CpuRun *run)
{
    for (size_t i = 0; i < run->machine.region_count; i++) {
        const Guarded *r = &run->machine.regions[i];
        int64_t at = r->base ? guarded_overwritten(r) : INT64_MIN;
        if (at != INT64_MIN)
            return diag_error(run->module->diag, run->machine.program->loc,
                              "a thread wrote %s at byte %lld, it has %zu bytes", r->name,
                              (long long)at, r->size);
    }
    return true;
}

static tilus_status finish(const CpuRun *run)
{
    const Fault *fault = find_fault(run);
    if (fault && fault->no_memory)
        return TILUS_ERROR_MEMORY;
    if (fault)
        fault_report(fault, run->module->diag);
    return !fault && check_slack(run) ? TILUS_OK : TILUS_ERROR_PROGRAM;
}

/* ---- the whole ----------------------------------------------------------- */

/* All blocks of a cooperative program's grid. */
static bool run_together(CpuRun *run, const Program *p)
{
    Machine *m = &run->machine;
    if (m->blocks > LIMIT_TOGETHER / p->warps)
        return diag_error(run->module->diag, p->loc, "the CPU engine runs at most %d warps "
                          "together, this grid of a cooperative program has %lld blocks of %u",
                          LIMIT_TOGETHER, (long long)m->blocks, p->warps);
    for (unsigned d = 0; d < 3 && m->blocks; d++)
        m->together[d] = (unsigned)m->grid[d];
    m->cluster = m->blocks ? (unsigned)m->blocks : 1;
    return true;
}

static bool count_blocks(CpuRun *run, const CpuLaunch *launch)
{
    Machine *m = &run->machine;
    memcpy(m->grid, launch->grid, sizeof m->grid);
    memcpy(m->together, launch->program->cluster, sizeof m->together);
    m->cluster = program_blocks(launch->program);
    m->has_locks = program_has_locks(launch->program) && !launch->program->cooperative;
    for (unsigned d = 0; d < 3; d++)
        if (m->grid[d] % launch->program->cluster[d])
            return diag_error(run->module->diag, launch->program->loc, "the grid's extent of "
                              "dimension %u is %lld, not a multiple of the cluster's %u", d,
                              (long long)m->grid[d],
                              launch->program->cluster[d]);
    if (!__builtin_mul_overflow(m->grid[0], m->grid[1], &m->blocks) &&
        !__builtin_mul_overflow(m->blocks, m->grid[2], &m->blocks))
        return !launch->program->cooperative || run_together(run, launch->program);
    return diag_error(run->module->diag, launch->program->loc,
                      "a grid of more than 2^63 blocks");
}

/* Compiles, unless that was done. */
static tilus_status compile(CpuRun *run, const CpuLaunch *launch)
{
    Machine *m = &run->machine;
    if (run->code)
        return TILUS_OK;
    run->code = host_compile(run->cg, m->options, launch->program, &m->entry);
    if (!run->code)
        return run->module->diag->errors ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
    m->mma = mma_places(run->module);
    if (m->options->check_races)
        tensors_open(m);
    run->launch = arena_mark(&run->module->scratch);
    return TILUS_OK;
}

/* Finds the region, shared memory or stacks that the system refused; NULL: it refused none. */
static const Guarded *find_refused(const CpuRun *run)
{
    const Machine *m = &run->machine;
    for (size_t i = 0; i < m->region_count; i++)
        if (m->regions[i].error)
            return &m->regions[i];
    for (unsigned i = 0; i < run->station_count; i++)
        for (unsigned rank = 0; run->stations[i].workers && rank < m->cluster; rank++) {
            const Worker *w = &run->stations[i].workers[rank];
            if (w->stacks.error || w->shared.error)
                return w->stacks.error ? &w->stacks : &w->shared;
        }
    return NULL;
}

/* Says which memory there is not, and why; TILUS_ERROR_MEMORY. */
static tilus_status refuse_memory(const CpuRun *run)
{
    const Guarded *r = find_refused(run);
    Diag *diag = run->module->diag;
    Loc loc = run->machine.program->loc;
    long most = r ? mappings_exhausted() : 0;
    if (most)
        diag_error(diag, loc, "there is no memory for %s: the process has %ld mappings, and no "
                   "more are allowed (vm.max_map_count)", r->name, most);
    else if (r)
        diag_error(diag, loc, "there is no memory for %s, %zu bytes between guards: %s", r->name,
                   r->size, strerror(r->error));
    return TILUS_ERROR_MEMORY;
}

/* Sets the machine up; TILUS_OK, or why not. */
static tilus_status prepare(CpuRun *run, const CpuLaunch *launch,
                            const tilus_cpu_options *options)
{
    Machine *m = &run->machine;
    clear(run);
    m->program = launch->program;
    m->options = options;
    m->thread_count = launch->info->threads;
    m->shared_bytes = launch->info->shared_bytes;
    if (!count_blocks(run, launch))
        return TILUS_ERROR_PROGRAM;
    tilus_status status = compile(run, launch);
    if (status != TILUS_OK)
        return status;
    arena_reset(&run->module->scratch, run->launch);
    place_buffers(run, launch);
    if (!check_places(run, launch))
        return TILUS_ERROR_ARGUMENT;
    if (m->blocks == 0)
        return TILUS_OK;
    if (!open_regions(run, launch) || !open_stations(run, launch->program))
        return refuse_memory(run);
    m->args = place_args(run, launch);
    return TILUS_OK;
}

tilus_status cpu_run(CpuRun *run, const CpuLaunch *launch, const tilus_cpu_options *options,
                     tilus_cpu_times *times)
{
    double start = clock_seconds();
    tilus_status status = prepare(run, launch, options);
    double middle = clock_seconds();
    if (status == TILUS_OK) {
        run_blocks(run);
        copy_back(run);
        if (times)
            *times = (tilus_cpu_times){sizeof *times, middle - start, clock_seconds() - middle};
        status = finish(run);
    }
    clear(run);
    return status;
}
