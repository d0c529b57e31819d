/* Launches of both forms of code, on streams, threads and devices, and in graphs. */
#include "check.h"

#include <pthread.h>
#include <string.h>

/* Launches that a graph holds. */
enum { CAPTURED = 100 };

/* ---- launches ------------------------------------------------------------- */

static void check_code(Check *c, const char *name, bool with_cubin)
{
    const char *form = with_cubin ? ": machine code, " : ": PTX, ";
    tilus_kernel *kernel = make_kernel(c, name, &accumulate, with_cubin);
    Buffers b = make_buffers(c, name, 0);
    if (!c->failed) {
        expect_ok(c, name, tilus_kernel_prepare(kernel, 0));
        if (!strstr(c->log, form))
            fail_check(c, name, "it did not load that: %s", c->log);
        expect_ok(c, name, launch(kernel, NULL, &b));
        expect_sums(c, name, &b, 1);
    }
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

void launches_ptx(Check *c, const char *name)
{
    check_code(c, name, false);
}

void launches_machine_code(Check *c, const char *name)
{
    if (c->cubin)
        check_code(c, name, true);
    else
        skip_check(c, name, "no --cubin");
}

void uses_all_shared_memory(Check *c, const char *name)
{
    tilus_kernel_info info = accumulate;
    info.shared_bytes = tilus_rt_shared_memory(c->rt, 0);
    tilus_kernel *kernel = prepare_kernel(c, name, &info, 0);
    Buffers b = make_buffers(c, name, 0);
    if (!c->failed) {
        expect_ok(c, name, launch(kernel, c->streams[0], &b));
        expect_sums(c, name, &b, 1);
    }
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

void two_streams_have_workspaces(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate_in_workspace, 0);
    Buffers b[2] = {make_buffers(c, name, 0), make_buffers(c, name, 0)};
    for (int i = 0; i < 2 * ROUNDS && !c->failed; i++)
        expect_ok(c, name, launch(kernel, c->streams[i % 2], &b[i % 2]));
    for (int i = 0; i < 2; i++) {
        expect_sums(c, name, &b[i], ROUNDS);
        free_buffers(c, &b[i]);
    }
    tilus_kernel_unload(kernel);
}

typedef struct Worker {
    tilus_kernel *kernel;
    void *stream;
    Buffers buffers;
    tilus_status status;
    pthread_t id;
} Worker;

static void *work(void *data)
{
    Worker *w = data;
    for (int i = 0; i < ROUNDS && w->status == TILUS_OK; i++)
        w->status = launch(w->kernel, w->stream, &w->buffers);
    return NULL;
}

/* Prepared by the thread that comes first. */
void threads_share_a_kernel(Check *c, const char *name)
{
    Worker workers[STREAMS];
    tilus_kernel *kernel = make_kernel(c, name, &accumulate, false);
    for (int i = 0; i < STREAMS && kernel; i++) {
        workers[i] = (Worker){.kernel = kernel, .stream = c->streams[i]};
        workers[i].buffers = make_buffers(c, name, 0);
        pthread_create(&workers[i].id, NULL, work, &workers[i]);
    }
    for (int i = 0; i < STREAMS && kernel; i++) {
        pthread_join(workers[i].id, NULL);
        if (workers[i].status != TILUS_OK)
            fail_check(c, name, "thread %d: %s", i, tilus_status_name(workers[i].status));
        expect_sums(c, name, &workers[i].buffers, ROUNDS);
        free_buffers(c, &workers[i].buffers);
    }
    tilus_kernel_unload(kernel);
}

/* ---- devices -------------------------------------------------------------- */

/* A stream on device 1, which is current in no thread afterwards. */
static void *make_stream_on_1(Check *c, const char *name)
{
    void *context = NULL, *stream = NULL;
    int device = 0;
    expect_raw(c, name, c->raw.cuDeviceGet(&device, 1));
    expect_raw(c, name, c->raw.cuDevicePrimaryCtxRetain(&context, device));
    expect_raw(c, name, c->raw.cuCtxSetCurrent(context));
    expect_raw(c, name, c->raw.cuStreamCreate(&stream, STREAM_NON_BLOCKING));
    expect_raw(c, name, c->raw.cuCtxSetCurrent(c->context));
    return stream;
}

/* With device 0 current; at first the kernel is prepared there only, so that the driver
 * must tell that the stream is not. */
void two_devices_run(Check *c, const char *name)
{
    if (tilus_rt_device_count(c->rt) < 2) {
        skip_check(c, name, "one device");
        return;
    }
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate_in_workspace, 0);
    Buffers b[2] = {make_buffers(c, name, 0), make_buffers(c, name, 1)};
    void *streams[2] = {c->streams[0], make_stream_on_1(c, name)};
    for (int i = 0; i < 2 * ROUNDS && !c->failed; i++)
        expect_ok(c, name, launch(kernel, streams[(i + 1) % 2], &b[(i + 1) % 2]));
    for (int i = 0; i < 2; i++) {
        expect_sums(c, name, &b[i], ROUNDS);
        free_buffers(c, &b[i]);
    }
    if (streams[1])
        expect_raw(c, name, c->raw.cuStreamDestroy_v2(streams[1]));
    tilus_kernel_unload(kernel);
    int device = 0;
    c->raw.cuDeviceGet(&device, 1);
    c->raw.cuDevicePrimaryCtxRelease_v2(device);
}

/* ---- graphs --------------------------------------------------------------- */

static void replay(Check *c, const char *name, void *graph, int times)
{
    void *exec = NULL;
    expect_raw(c, name, c->raw.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < times && !c->failed; i++)
        expect_raw(c, name, c->raw.cuGraphLaunch(exec, c->streams[0]));
    expect_raw(c, name, c->raw.cuStreamSynchronize(c->streams[0]));
    if (exec)
        c->raw.cuGraphExecDestroy(exec);
}

/* Captures launches of `kernel`, in the middle of which `between` may do something. */
static void capture(Check *c, const char *name, tilus_kernel *kernel,
                    void (*between)(Check *c, const char *name, const Buffers *b))
{
    Buffers b = make_buffers(c, name, 0);
    void *graph = NULL;
    expect_raw(c, name, c->raw.cuStreamBeginCapture_v2(c->streams[0], CAPTURE_GLOBAL));
    for (int i = 0; i < CAPTURED && !c->failed; i++) {
        if (i == CAPTURED / 2 && between)
            between(c, name, &b);
        expect_ok(c, name, launch(kernel, c->streams[0], &b));
    }
    expect_raw(c, name, c->raw.cuStreamEndCapture(c->streams[0], &graph));
    if (graph) {
        replay(c, name, graph, 2);
        c->raw.cuGraphDestroy(graph);
    }
    expect_sums(c, name, &b, 2 * CAPTURED);
    free_buffers(c, &b);
}

void graphs_replay(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate_in_workspace, 0);
    if (kernel)
        capture(c, name, kernel, NULL);
    tilus_kernel_unload(kernel);
}

static void prepare_another(Check *c, const char *name, const Buffers *b)
{
    (void)b;
    tilus_kernel_unload(prepare_kernel(c, name, &accumulate_in_workspace, 0));
}

void captures_survive_preparing(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    if (kernel)
        capture(c, name, kernel, prepare_another);
    tilus_kernel_unload(kernel);
}

static void launch_unprepared(Check *c, const char *name, const Buffers *b)
{
    tilus_kernel *kernel = make_kernel(c, name, &accumulate, false);
    if (kernel)
        expect_error(c, name, launch(kernel, c->streams[0], b), TILUS_ERROR_STATE,
                     "being captured", "tilus_kernel_prepare(kernel, 0)");
    tilus_kernel_unload(kernel);
}

void captures_refuse_loading(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    if (kernel)
        capture(c, name, kernel, launch_unprepared);
    tilus_kernel_unload(kernel);
}

/* ---- launches that overlap ------------------------------------------------ */

/* Beside plain ones, which wait for all of them. */
void early_launches_keep_their_order(Check *c, const char *name)
{
    enum { EVERY = 5 };         /* of them a plain one */
    tilus_kernel *early = prepare_kernel(c, name, &accumulate_early, 0);
    tilus_kernel *plain = prepare_kernel(c, name, &accumulate, 0);
    Buffers b = make_buffers(c, name, 0);
    for (int i = 0; i < ROUNDS && !c->failed; i++)
        expect_ok(c, name, launch(i % EVERY ? early : plain, c->streams[0], &b));
    expect_sums(c, name, &b, ROUNDS);
    free_buffers(c, &b);
    tilus_kernel_unload(early);
    tilus_kernel_unload(plain);
}

/* A launch behind what is no kernel cannot begin early. */
static void fill_something(Check *c, const char *name, const Buffers *b)
{
    expect_raw(c, name, c->raw.cuMemsetD8Async(b->workspace, 0, N, c->streams[0]));
}

void early_launches_replay(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate_early, 0);
    if (kernel)
        capture(c, name, kernel, fill_something);
    tilus_kernel_unload(kernel);
}
