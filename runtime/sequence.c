/* Sequences: kernels that are launched one after the other, by one call of the driver.
 *
 * A launch takes the host longer than all else of a call together, and a graph of several
 * launches less than one. So a sequence keeps a graph for each of a few streams, whose
 * parameters each call sets anew: running launches have copies of theirs. What a graph does not
 * serve is launched one by one: streams that are captured, cooperative kernels, kernels that are not
 * prepared in the current context alone, a sequence that another thread is launching, drivers without the calls.
 *
 * A graph is of one stream, as the driver lets no two launches of it run at the same time. */
#include "launch.h"

#include <stdlib.h>

enum { SEQUENCE_STREAMS = 4 };

/* A graph of the kernels; `exec` is NULL before it is made. */
typedef struct Graph {
    CUcontext context;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[TILUS_SEQUENCE_KERNELS];
} Graph;

struct tilus_sequence {
    tilus_rt *rt;
    size_t count;
    tilus_kernel *kernels[TILUS_SEQUENCE_KERNELS];
    atomic_bool has_graphs;     /* the driver makes them */
    pthread_mutex_t lock;       /* of `graphs` */
    Graph graphs[SEQUENCE_STREAMS];
};

/* A launch of them all. */
typedef struct Run {
    CUcontext context;
    CUstream stream;
    Loaded *loaded[TILUS_SEQUENCE_KERNELS];
    CUkernelNodeParams params[TILUS_SEQUENCE_KERNELS];
    LaunchFrame frames[TILUS_SEQUENCE_KERNELS];
} Run;

/* ---- making ----------------------------------------------------------------- */

tilus_status tilus_sequence_create(tilus_kernel *const kernels[], size_t count,
                                   tilus_sequence **out)
{
    if (!out)
        return RT_FAIL_NULL(out);
    *out = NULL;
    if (!kernels)
        return RT_FAIL_NULL(kernels);
    if (count < 1 || count > TILUS_SEQUENCE_KERNELS)
        return rt_fail(TILUS_ERROR_ARGUMENT, "a sequence of %zu kernels, not 1 to %d", count,
                       TILUS_SEQUENCE_KERNELS);
    for (size_t i = 0; i < count; i++)
        if (!kernels[i])
            return rt_fail(TILUS_ERROR_ARGUMENT, "kernels[%zu] is NULL", i);
    tilus_sequence *s = calloc(1, sizeof *s);
    if (!s)
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    s->rt = kernels[0]->rt;
    s->count = count;
    bool cooperative = false;
    for (size_t i = 0; i < count; i++) {
        s->kernels[i] = kernels[i];
        cooperative |= kernels[i]->artefact->info->cooperative;
    }
    atomic_init(&s->has_graphs,
                !s->rt->is_software && !cooperative && cuda_api_has_graphs(&s->rt->api));
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return TILUS_OK;
}

static void destroy_graph(const tilus_rt *rt, Graph *g)
{
    if (g->exec)
        rt->api.cuGraphExecDestroy(g->exec);
    if (g->graph)
        rt->api.cuGraphDestroy(g->graph);
    *g = (Graph){0};
}

void tilus_sequence_free(tilus_sequence *s)
{
    if (!s)
        return;
    for (int i = 0; i < SEQUENCE_STREAMS && fork_mark_is_mine(&s->rt->mark); i++)
        destroy_graph(s->rt, &s->graphs[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- graphs ----------------------------------------------------------------- */

/* Adds a kernel after the one before it, which it may overlap where launches may. */
static CUresult add_node(const tilus_rt *rt, Graph *g, const Run *run, size_t i)
{
    const CUgraphEdgeData early = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                   .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    CUresult result =
        rt->api.cuGraphAddKernelNode(&g->nodes[i], g->graph, NULL, 0, &run->params[i]);
    if (result != CUDA_SUCCESS || i == 0)
        return result;
    return rt->api.cuGraphAddDependencies(g->graph, &g->nodes[i - 1], &g->nodes[i],
                                          run->loaded[i]->overlaps ? &early : NULL, 1);
}

static CUresult fill_graph(const tilus_sequence *s, Graph *g, const Run *run)
{
    CUresult result = s->rt->api.cuGraphCreate(&g->graph, 0);
    for (size_t i = 0; i < s->count && result == CUDA_SUCCESS; i++)
        result = add_node(s->rt, g, run, i);
    return result == CUDA_SUCCESS ? s->rt->api.cuGraphInstantiate(&g->exec, g->graph, 0) : result;
}

/* Makes the graph of a stream in relaxed capture mode, so that the captures of other threads go
 * on. */
static bool make_graph(tilus_sequence *s, Graph *g, const Run *run)
{
    const ErrorContext at = {s->rt, run->loaded[0]->device, s->kernels[0]};
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CALL_AND_LOG(&at, cuThreadExchangeStreamCaptureMode(&mode));
    CUresult result = fill_graph(s, g, run);
    CALL_AND_LOG(&at, cuThreadExchangeStreamCaptureMode(&mode));
    if (result == CUDA_SUCCESS) {
        g->context = run->context;
        g->stream = run->stream;
        return true;
    }
    rt_log_driver_failure(&at, "cuGraphInstantiate", result);
    destroy_graph(s->rt, g);
    atomic_store(&s->has_graphs, false);
    return false;
}

/* Returns the stream's graph, or the place of a new one; NULL: other streams have all. */
static Graph *find_graph(tilus_sequence *s, const Run *run)
{
    for (int i = 0; i < SEQUENCE_STREAMS; i++) {
        Graph *g = &s->graphs[i];
        if (!g->exec || (g->context == run->context && g->stream == run->stream))
            return g;
    }
    return NULL;
}

static CUresult set_and_launch(const tilus_sequence *s, const Graph *g, const Run *run)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < s->count && result == CUDA_SUCCESS; i++)
        result = s->rt->api.cuGraphExecKernelNodeSetParams(g->exec, g->nodes[i], &run->params[i]);
    return result == CUDA_SUCCESS ? s->rt->api.cuGraphLaunch(g->exec, run->stream) : result;
}

/* Launches the stream's graph, with the lock held. After a failure nothing is launched, and the
 * launches one by one say what it is. */
static bool launch_graph(tilus_sequence *s, const Run *run)
{
    Graph *g = find_graph(s, run);
    if (!g || (!g->exec && !make_graph(s, g, run)))
        return false;
    if (set_and_launch(s, g, run) == CUDA_SUCCESS)
        return true;
    destroy_graph(s->rt, g);
    return false;
}

/* ---- launching -------------------------------------------------------------- */

/* Finds the kernel where a launch on the stream needs to ask nobody where that is. */
static bool find_here(Run *run, tilus_kernel *kernel, size_t i)
{
    int others;
    run->loaded[i] = kernel_find_loaded(kernel, run->context, &others);
    return run->loaded[i] && (others == 0 || stream_is_special(run->stream));
}

/* Returns true where all kernels are in the current context and the stream is not captured. */
static bool find_place(const tilus_sequence *s, Run *run)
{
    const ErrorContext at = {.rt = s->rt};
    int capturing;
    if (device_check(&at) != TILUS_OK ||
        s->rt->api.cuCtxGetCurrent(&run->context) != CUDA_SUCCESS)
        return false;
    for (size_t i = 0; i < s->count; i++)
        if (!find_here(run, s->kernels[i], i))
            return false;
    const ErrorContext there = {.rt = s->rt, .device = run->loaded[0]->device};
    return device_check(&there) == TILUS_OK &&
           s->rt->api.cuStreamIsCapturing(run->stream, &capturing) == CUDA_SUCCESS && !capturing;
}

/* Checks a launch and lays out its parameters. */
static bool set_node(const tilus_sequence *s, Run *run, size_t i, const tilus_arg *args,
                     size_t count)
{
    LaunchFrame *frame = &run->frames[i];
    const Launch *l = &frame->launch;
    const ErrorContext at = {s->rt, run->loaded[i]->device, s->kernels[i]};
    const tilus_kernel_info *info = s->kernels[i]->artefact->info;
    if (launch_begin(frame, s->kernels[i], run->stream, args, count, 0, 0) != TILUS_OK ||
        launch_is_empty(l))
        return false;
    launch_pack(frame);
    run->params[i] = (CUkernelNodeParams){
        .function = run->loaded[i]->function, .grid_x = (unsigned)l->grid[0],
        .grid_y = (unsigned)l->grid[1], .grid_z = (unsigned)l->grid[2], .block_x = info->threads,
        .block_y = 1, .block_z = 1, .shared_bytes = (unsigned)info->shared_bytes,
        .params = l->parameters};
    return maps_encode(&at, args, frame->maps) == TILUS_OK;
}

static bool launch_at_once(tilus_sequence *s, tilus_stream stream,
                           const tilus_sequence_launch launches[])
{
    Run run;
    run.stream = stream;
    if (!atomic_load_explicit(&s->has_graphs, memory_order_relaxed) || !find_place(s, &run))
        return false;
    for (size_t i = 0; i < s->count; i++)
        if (!set_node(s, &run, i, launches[i].args, launches[i].count))
            return false;
    if (pthread_mutex_trylock(&s->lock))
        return false;
    bool done = launch_graph(s, &run);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->count && done; i++)
        device_note_launch(run.loaded[i]->device, run.loaded[i], run.frames[i].launch.grid);
    return done;
}

tilus_status tilus_sequence_run(tilus_sequence *sequence, tilus_stream stream,
                                const tilus_sequence_launch launches[])
{
    tilus_sequence *s = sequence;
    if (!sequence)
        return RT_FAIL_NULL(sequence);
    if (!launches)
        return RT_FAIL_NULL(launches);
    tilus_status status = TILUS_OK;
    if (launch_at_once(s, stream, launches))
        return TILUS_OK;
    for (size_t i = 0; i < s->count && status == TILUS_OK; i++)
        status = tilus_launch(s->kernels[i], stream, launches[i].args, launches[i].count, 0, 0);
    return status;
}
