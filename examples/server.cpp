// A server's loop for a product with 4-bit weights, in C++20: requests wait in a queue, each
// worker takes what has gathered, up to 16 rows, and multiplies them at once.
//
//     c++ -std=c++20 -Iinclude examples/server.cpp -Lbuild/release/lib -ltilus_matmul
//         -ltilus_compiler -ltilus_rt -ldl -pthread -o server
//     ./server [REQUESTS [WORKERS]]
//
// What matters, in the order in which it happens:
//
//  * one plan serves all threads and all numbers of rows. It is prepared for each bucket of rows
//    (1, 2, 4, 8, 16) before the first request, so that no request compiles or loads anything;
//  * weights are packed once and lie once on the device;
//  * each worker has a stream, a workspace, and rows of a and c of its own. Its launches of a
//    bucket are captured into a graph, once; a request replays it;
//  * graphs need no CUDA headers: the ten functions of the driver are declared here, as far as
//    they are used, and looked up in the library that the runtime has loaded.
//
// Without a GPU a software device on the CPU engine multiplies, without streams and graphs.
#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int64_t N = 512, K = 512, GROUP = 128, ROWS = 16;
constexpr std::array<int64_t, 5> BUCKETS = {1, 2, 4, 8, 16};

void check(tilus_status status, const char *step)
{
    if (status != TILUS_OK)
        throw std::runtime_error(std::string(step) + ": " + tilus_rt_error());
}

// ---- the driver's graphs ---------------------------------------------------------

// A small part of cuda.h: CUstream, CUgraph and CUgraphExec are pointers to the driver's own
// structs, and each function returns 0 or an error. Names end in _v2 where the driver has
// changed a function's parameters.
class Graphs {
public:
    using Stream = tilus_stream;
    using Graph = void *;
    using Exec = void *;

    Graphs()
    {
        const char *path = std::getenv("TILUS_LIBCUDA");
        void *library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW);
        if (!library)
            throw std::runtime_error(dlerror());
        find(library, "cuStreamCreate", stream_create);
        find(library, "cuStreamDestroy_v2", stream_destroy);
        find(library, "cuStreamSynchronize", synchronize);
        find(library, "cuStreamBeginCapture_v2", begin_capture);
        find(library, "cuStreamEndCapture", end_capture);
        find(library, "cuGraphInstantiateWithFlags", instantiate);
        find(library, "cuGraphLaunch", launch);
        find(library, "cuGraphExecDestroy", exec_destroy);
        find(library, "cuGraphDestroy", graph_destroy);
    }

    static void call(int error, const char *name)
    {
        if (error)
            throw std::runtime_error(std::string(name) + ": CUDA error " + std::to_string(error));
    }

    int (*stream_create)(Stream *, unsigned flags);
    int (*stream_destroy)(Stream);
    int (*synchronize)(Stream);
    int (*begin_capture)(Stream, int mode);
    int (*end_capture)(Stream, Graph *);
    int (*instantiate)(Exec *, Graph, unsigned long long flags);
    int (*launch)(Exec, Stream);
    int (*exec_destroy)(Exec);
    int (*graph_destroy)(Graph);

private:
    template <typename Function>
    static void find(void *library, const char *name, Function &function)
    {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (!function)
            throw std::runtime_error(std::string("the driver has no ") + name);
    }
};

// ---- requests --------------------------------------------------------------------

struct Request {
    std::vector<uint16_t> a;                    // f16, [K]
    std::promise<std::vector<uint16_t>> c;      // f16, [N]
};

class Queue {
public:
    void push(Request request)
    {
        {
            std::lock_guard lock(mutex);
            waiting.push_back(std::move(request));
        }
        changed.notify_one();
    }

    void close()
    {
        {
            std::lock_guard lock(mutex);
            closed = true;
        }
        changed.notify_all();
    }

    // Returns the requests that wait, at most ROWS; none when the queue is closed and empty.
    std::vector<Request> take()
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return closed || !waiting.empty(); });
        std::vector<Request> batch;
        while (!waiting.empty() && batch.size() < ROWS) {
            batch.push_back(std::move(waiting.front()));
            waiting.pop_front();
        }
        return batch;
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Request> waiting;
    bool closed = false;
};

// ---- the model: one matrix ---------------------------------------------------------

// Codes of 4 bits as [n, k], and a scale for each group of k.
struct Weights {
    std::vector<uint8_t> codes = std::vector<uint8_t>(N * K / 2);
    std::vector<uint16_t> scales = std::vector<uint16_t>(N * K / GROUP);

    Weights()
    {
        uint32_t seed = 1;
        for (uint8_t &code : codes)
            code = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
        for (size_t i = 0; i < scales.size(); i++)
            scales[i] = static_cast<uint16_t>(tilus_encode("f16", 0.002 + 0.0001 * double(i % 5)));
    }

    double at(int64_t n, int64_t k) const
    {
        double code = double(tilus_get_bits(codes.data(), size_t(n * K + k), 4));
        return code * tilus_decode("f16", scales[size_t(n * (K / GROUP) + k / GROUP)]);
    }
};

class Model {
public:
    Model(tilus_rt *rt, const Weights &plain) : rt(rt)
    {
        tilus_matmul_options options = {};
        options.struct_size = sizeof options;
        options.compile = tilus_matmul_compile;
        check(tilus_matmul_open(rt, &options, &matmul), "opening the library");
        tilus_matmul_problem problem = {};
        problem.struct_size = sizeof problem;
        problem.weights = "u4";
        problem.n = N;
        problem.k = K;
        problem.group = GROUP;
        check(tilus_matmul_plan_create(matmul, &problem, 0, &plan), "planning");

        tilus_matmul_weights weights = {};
        weights.struct_size = sizeof weights;
        weights.codes = plain.codes.data();
        weights.scales = plain.scales.data();
        weights.transposed = true;
        packed.resize(tilus_matmul_packed_size(plan));
        check(tilus_matmul_pack(plan, &weights, packed.data()), "packing");
        load();
    }

    ~Model()
    {
        if (device_weights)
            tilus_rt_release(rt, 0, device_weights);
        tilus_matmul_plan_free(plan);
        tilus_matmul_close(matmul);
    }

    Model(const Model &) = delete;

    tilus_rt *const rt;
    tilus_matmul_plan *plan = nullptr;
    uint64_t device_weights = 0;

private:
    // Everything slow, before the first request.
    void load()
    {
        for (int64_t m : BUCKETS)
            check(tilus_matmul_prepare(plan, m), "preparing");
        check(tilus_rt_allocate(rt, 0, packed.size(), &device_weights), "allocating");
        check(tilus_rt_upload(rt, 0, device_weights, packed.data(), packed.size()), "uploading");
    }

    tilus_matmul *matmul = nullptr;
    std::vector<uint8_t> packed;
};

// ---- a worker ------------------------------------------------------------------------

class Worker {
public:
    // `graphs` is nullptr where there is no driver.
    Worker(const Model &model, const Graphs *graphs) : model(model), graphs(graphs)
    {
        workspace_size = tilus_matmul_workspace_size(model.plan, ROWS);
        check(tilus_rt_allocate(model.rt, 0, workspace_size + 2 * ROWS * (K + N), &memory),
              "allocating");
        check(tilus_rt_fill(model.rt, 0, memory, 0, TILUS_MATMUL_SEMAPHORES), "zeroing");
        if (!graphs)
            return;
        check(tilus_rt_enter(model.rt, 0, &entered), "entering the context");
        Graphs::call(graphs->stream_create(&stream, 0), "cuStreamCreate");
        for (size_t i = 0; i < BUCKETS.size(); i++)
            execs[i] = capture(BUCKETS[i]);
    }

    ~Worker()
    {
        if (graphs) {
            for (Graphs::Exec exec : execs)
                graphs->exec_destroy(exec);
            graphs->stream_destroy(stream);
            tilus_rt_leave(model.rt, 0, entered);
        }
        tilus_rt_release(model.rt, 0, memory);
    }

    Worker(const Worker &) = delete;

    // Answers a batch by the graph of the smallest bucket that holds it. A stream that was
    // created with flags 0 waits for the copy; a server would copy on its own stream, too.
    void serve(std::vector<Request> &batch)
    {
        size_t bucket = 0;
        while (BUCKETS[bucket] < int64_t(batch.size()))
            bucket++;
        for (size_t i = 0; i < batch.size(); i++)
            check(tilus_rt_upload(model.rt, 0, a() + i * 2 * K, batch[i].a.data(), 2 * K),
                  "uploading");
        run(bucket);
        std::vector<std::vector<uint16_t>> rows(batch.size(), std::vector<uint16_t>(N));
        for (size_t i = 0; i < batch.size(); i++)
            check(tilus_rt_download(model.rt, 0, rows[i].data(), c() + i * 2 * N, 2 * N),
                  "downloading");
        for (size_t i = 0; i < batch.size(); i++)   // all or none: work() answers after a fault
            batch[i].c.set_value(std::move(rows[i]));
    }

private:
    uint64_t a() const { return memory + workspace_size; }
    uint64_t c() const { return a() + 2 * ROWS * K; }

    void run(size_t bucket)
    {
        if (!graphs) {
            enqueue(BUCKETS[bucket]);
            return;
        }
        Graphs::call(graphs->launch(execs[bucket], stream), "cuGraphLaunch");
        Graphs::call(graphs->synchronize(stream), "cuStreamSynchronize");
    }

    void enqueue(int64_t m)
    {
        tilus_matmul_call call = {};
        call.struct_size = sizeof call;
        call.m = m;
        call.weights = model.device_weights;
        call.weights_identity = tilus_matmul_packed_identity(model.plan);
        call.a = a();
        call.c = c();
        call.workspace = memory;
        call.workspace_size = workspace_size;
        check(tilus_matmul_run(model.plan, stream, &call), "multiplying");
    }

    // Captures a run of `m` rows: tilus_matmul_run only enqueues, as the plan is prepared. Mode 1
    // lets other threads go on with what a capture forbids (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
    Graphs::Exec capture(int64_t m)
    {
        Graphs::Graph graph;
        Graphs::Exec exec;
        Graphs::call(graphs->begin_capture(stream, 1), "cuStreamBeginCapture");
        enqueue(m);
        Graphs::call(graphs->end_capture(stream, &graph), "cuStreamEndCapture");
        Graphs::call(graphs->instantiate(&exec, graph, 0), "cuGraphInstantiate");
        graphs->graph_destroy(graph);
        return exec;
    }

    const Model &model;
    const Graphs *const graphs;
    tilus_stream stream = nullptr;
    uint64_t memory = 0;
    size_t workspace_size = 0;
    bool entered = false;
    std::array<Graphs::Exec, BUCKETS.size()> execs;
};

// A worker's thread: on a fault its requests get the exception, and the server goes on.
void work(const Model &model, const Graphs *graphs, Queue &queue)
{
    Worker worker(model, graphs);
    for (;;) {
        std::vector<Request> batch = queue.take();
        if (batch.empty())
            return;
        try {
            worker.serve(batch);
        } catch (...) {
            for (Request &request : batch)
                request.c.set_exception(std::current_exception());
        }
    }
}

// ---- clients --------------------------------------------------------------------------

// Returns the largest error of some elements of the answer, relative to the sum of magnitudes.
double find_error(const Weights &weights, const std::vector<uint16_t> &a,
                  const std::vector<uint16_t> &c)
{
    double worst = 0;
    for (int64_t n = 0; n < N; n += 101) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < K; k++) {
            double term = tilus_decode("f16", a[size_t(k)]) * weights.at(n, k);
            sum += term;
            magnitude += std::abs(term);
        }
        worst = std::max(worst, std::abs(tilus_decode("f16", c[size_t(n)]) - sum) / magnitude);
    }
    return worst;
}

std::vector<uint16_t> make_row(int request)
{
    std::vector<uint16_t> a(K);
    for (size_t k = 0; k < a.size(); k++)
        a[k] = static_cast<uint16_t>(tilus_encode("f16", std::sin(double(k) + request)));
    return a;
}

bool run_server(const Model &model, const Graphs *graphs, const Weights &weights, int requests,
                int worker_count)
{
    Queue queue;
    std::vector<std::future<void>> workers;
    for (int i = 0; i < worker_count; i++)
        workers.push_back(std::async(std::launch::async, work, std::cref(model), graphs,
                                     std::ref(queue)));
    std::vector<std::future<std::vector<uint16_t>>> answers;
    for (int i = 0; i < requests; i++) {
        Request request{make_row(i), {}};
        answers.push_back(request.c.get_future());
        queue.push(std::move(request));
    }
    queue.close();
    for (std::future<void> &worker : workers)
        worker.get();
    double worst = 0;
    for (int i = 0; i < requests; i++)
        worst = std::max(worst, find_error(weights, make_row(i), answers[size_t(i)].get()));
    std::printf("%d requests, %d workers, %zu graphs each: largest error %.1e\n", requests,
                worker_count, graphs ? BUCKETS.size() : 0, worst);
    return worst < 1e-3;
}

tilus_rt *open_runtime(bool *has_device)
{
    char message[256] = "";
    tilus_rt *rt = nullptr;
    *has_device = tilus_rt_open(nullptr, &rt, message, sizeof message) == TILUS_OK;
    if (*has_device)
        return rt;
    std::printf("no GPU (%s): the CPU engine\n", message);
    tilus_rt_options options = {};
    options.struct_size = sizeof options;
    options.devices = tilus_find_device("h200");
    options.device_count = 1;
    options.engine = tilus_cpu_engine();
    if (tilus_rt_open(&options, &rt, message, sizeof message) != TILUS_OK)
        throw std::runtime_error(message);
    return rt;
}

} // namespace

int main(int argc, char **argv)
try {
    bool has_device;
    std::unique_ptr<tilus_rt, void (*)(tilus_rt *)> rt(open_runtime(&has_device), tilus_rt_close);
    Weights weights;
    Model model(rt.get(), weights);
    std::unique_ptr<Graphs> graphs(has_device ? new Graphs : nullptr);
    int requests = argc > 1 ? std::atoi(argv[1]) : 100, workers = argc > 2 ? std::atoi(argv[2]) : 2;
    return run_server(model, graphs.get(), weights, requests, workers) ? 0 : 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "server: error: %s\n", error.what());
    return 1;
}
