#!/usr/bin/env python3
"""A Llama whose layers are shared by several GPUs: columns of the products into a part, rows of those out of it.

    torchrun --nproc-per-node=2 examples/tensor_parallel.py                 # Llama-3.3-70B's shapes, u4, random weights
    torchrun --nproc-per-node=2 examples/tensor_parallel.py --check         # two layers beside one GPU's, then as above
    examples/tensor_parallel.py --threads=2 --check --tiny                  # ranks are threads, on the CPU engine

Each rank has some heads and some columns of the MLP. Of a layer's products qkv and gate_up are cut by columns, o and down by
rows, and their results are added up over ranks: twice a layer. Packed weights are cut out of the packed whole, as a server
does that loads a packed checkpoint (Plan.shard); with --check from the codes that one GPU has as well, else each rank makes its
own. Heads of q lie with those of k that they share, and gates with their ups, so that a rank's columns are neighbors.

Adding up: `peers` has each rank store its part where the others can read it (torch's symmetric memory), and after a barrier a
program of ten lines adds all parts to the residual and takes the norm; ranks add in one order, so that all have the same
numbers. `nccl` is torch.distributed.all_reduce. Both are part of the step's CUDA graph.
"""
import argparse
import contextlib
import dataclasses
import os
import pathlib
import statistics
import sys
import threading

import torch
import torch.distributed as dist
import tilusc
from tilusc.matmul import plan
from tilusc.nn import QuantizedLinear

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench" / "e2e"))
import kernels  # noqa: E402
import layers  # noqa: E402
import shapes  # noqa: E402

TINY = shapes.Model("tiny", 2, 256, 4, 2, 64, 512, 320)

# x += the sum of all ranks' parts, and y = rms_norm(x) * w; `RANKS` pointers are parts.
ADD_NORM = """tilus 1
param N = 8192, WARPS = 16
program @add_norm<%rows>(%x: ptr<f16> {{align = 16}}, {arguments}, %w: ptr<f16> {{align = 16}}, %y: ptr<f16> {{align = 16}},
                         %rows: i32, %eps: f32) warps(WARPS) {{
  %row = block_indices
  %gx = view_global %x : f16[%rows, N]
  %gw = view_global %w : f16[N]
  %gy = view_global %y : f16[%rows, N]
  %w = load_global %gw[0] : f16[N]
  launch_dependents
  wait_dependencies
  %v = f32(load_global %gx[%row, 0] : f16[N])
{sums}
  store_global f16(%v), %gx[%row, 0]
  store_global f16(%v * rsqrt(sum(%v * %v) / N + %eps) * f32(%w)), %gy[%row, 0]
}}
"""
ADD = """  %g{i} = view_global %part{i} : f16[%rows, N]
  %v = %v + f32(load_global %g{i}[%row, 0] : f16[N])"""


def add_norm_kernel(hidden, ranks):
    text = ADD_NORM.format(arguments=", ".join(f"%part{i}: ptr<f16> {{align = 16}}" for i in range(ranks)),
                           sums="\n".join(ADD.format(i=i) for i in range(ranks)))
    return tilusc.jit(text, N=hidden, WARPS=kernels.warps_of(hidden))


# ---- adding up ---------------------------------------------------------------------

class Nccl:
    """By all_reduce, or with `gather` for logits."""

    name = "nccl"

    def __init__(self, model, ranks, rank, rows, way):
        self.way, self.ranks = way, ranks

    def part(self, place, rows):
        """Returns where a product of so many rows goes; None: wherever."""
        return None

    def add(self, place, x, part, weight):
        """Returns x + all parts, and the norm of that."""
        dist.all_reduce(part)
        x += part
        return x, self.way.norm(x, weight)

    def gather(self, logits):
        all_ = logits.new_empty((self.ranks, *logits.shape))
        dist.all_gather_into_tensor(all_, logits)
        return torch.cat(list(all_), -1)


class Peers(Nccl):
    """By parts that all ranks can read. Two places take turns, so that a barrier an addition suffices: a part is written
    anew only after the barrier of the next addition, which each rank comes to when it has read the part."""

    name = "peers"

    def __init__(self, model, ranks, rank, rows, way):
        super().__init__(model, ranks, rank, rows, way)
        import torch.distributed._symmetric_memory as symmetric
        self.parts = symmetric.empty((2, rows, model.hidden), dtype=torch.float16, device=f"cuda:{torch.cuda.current_device()}")
        self.handle = symmetric.rendezvous(self.parts, dist.group.WORLD)
        behind = self.parts.data_ptr() - self.handle.buffer_ptrs[rank]
        self.addresses, self.size = [address + behind for address in self.handle.buffer_ptrs], self.parts[0].nbytes
        self.kernel = add_norm_kernel(model.hidden, ranks)
        self.kernel.prepare()

    def part(self, place, rows):
        return self.parts[place, :rows]

    def add(self, place, x, part, weight):
        self.handle.barrier(channel=place)
        y = torch.empty_like(x)
        parts = [address + place * self.size for address in self.addresses]
        self.kernel(x, *parts, weight, y, len(x), kernels.EPSILON)
        return x, y


class Threads(Nccl):
    """Ranks that are threads of this process, for tests."""

    name = "threads"
    lock = threading.Lock()

    def __init__(self, model, ranks, rank, rows, way):
        super().__init__(model, ranks, rank, rows, way)
        self.rank, self.kernel = rank, add_norm_kernel(model.hidden, ranks)

    def _share(self, value):
        barrier, values = self.meeting
        values[self.rank] = value
        barrier.wait()
        found = [values[i] for i in range(self.ranks)]
        barrier.wait()
        return found

    def add(self, place, x, part, weight):
        y = torch.empty_like(x)
        self.kernel(x, *self._share(part), weight, y, len(x), kernels.EPSILON)
        return x, y

    def gather(self, logits):
        return torch.cat(self._share(logits), -1)


REDUCERS = {"peers": Peers, "nccl": Nccl}


# ---- shards ------------------------------------------------------------------------

def part_of(model, ranks):
    """The model of a rank: some heads, and some columns of the MLP."""
    for count in (model.heads, model.kv_heads, model.intermediate // shapes.GROUP, model.vocabulary):
        if count % ranks:
            raise SystemExit(f"tensor_parallel.py: error: {ranks} ranks do not share {count} heads, groups or tokens evenly")
    return dataclasses.replace(model, heads=model.heads // ranks, kv_heads=model.kv_heads // ranks,
                               intermediate=model.intermediate // ranks)


def columns_of(model, name, ranks):
    """Columns of the whole qkv or gate_up in the order of ranks, or None where that is their order."""
    sizes = {"qkv": [model.heads * model.head] + [model.kv_heads * model.head] * 2, "gate_up": [model.intermediate] * 2}.get(name)
    if sizes is None:
        return None
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return torch.cat([torch.arange(size // ranks) + start + rank * (size // ranks)
                      for rank in range(ranks) for start, size in zip(starts, sizes)])


def reorder(problem, codes, scales, order):
    """Puts columns, rows of [n, k] codes and scales, in another order."""
    codes = codes.view(problem.n, -1)[order.to(codes.device)]
    return codes.reshape(-1), scales[order.to(scales.device)]


def cut(whole, given, name, model, part, rank, ranks, device):
    """Cuts a rank's layer out of the whole one."""
    order = columns_of(model, name, ranks)
    packed = layers.pack(whole, device, *(given if order is None else reorder(whole, *given, order)))
    k, n = part.products()[name]
    problem = dataclasses.replace(whole, n=n, k=k, n_tile=plan(whole, device).tile[0])
    first = {"n_first": rank * n} if order is not None else {"k_first": rank * k}
    return QuantizedLinear(problem, plan(whole, device).shard(packed, plan(problem, device), **first), packed_for=device)


class Shard:
    """A rank's part of all layers. `wholes`, by layer and name, are codes and scales that all ranks have."""

    def __init__(self, model, weights, rank, ranks, device, reducer, wholes=None):
        self.model, self.part, self.reducer = model, part_of(model, ranks), reducer
        self.layers = []
        for number in range(model.layers):
            known = {}
            for name, (k, n) in self.part.products().items():
                if wholes is None:
                    known[name] = layers.linear(weights, k, n, device)
                else:
                    whole = layers.problem_of(weights, *model.products()[name])
                    known[name] = cut(whole, wholes[number, name], name, model, self.part, rank, ranks, device)
            self.layers.append(known)
        self.norm = torch.ones(model.hidden, dtype=torch.float16, device=layers.place_of(device))
        generator = torch.Generator(self.norm.device).manual_seed(7)        # ranks have the same embedding
        self.embedding = torch.empty(model.vocabulary, model.hidden, dtype=torch.float16, device=self.norm.device)
        self.embedding.normal_(generator=generator)
        self.head = self.embedding.chunk(ranks)[rank] * model.hidden ** -0.5

    def prepare(self, *rows):
        for layer in self.layers[:1]:
            for product in layer.values():
                if isinstance(product, QuantizedLinear):
                    product.prepare(*rows)

    def _multiply(self, product, x, place):
        out = self.reducer.part(place, len(x))
        if out is None:
            return product(x)
        if isinstance(product, QuantizedLinear):
            torch.ops.tilusc.matmul.out(x, product.packed, product.problem_text, out=out)
            return out
        return torch.mm(x, product.weight.t(), out=out)

    def hidden(self, way, tokens, state, prompt):
        x = self.embedding.index_select(0, tokens)
        h = way.norm(x, self.norm)
        for number, layer in enumerate(self.layers):
            if prompt:
                o = way.prefill(way.rotate(layer["qkv"](h), None, state, number), state, number)
            else:
                o = way.step(layer["qkv"](h), None, state, number)
            x, h = self.reducer.add(0, x, self._multiply(layer["o"], o, 0), self.norm)
            x, h = self.reducer.add(1, x, self._multiply(layer["down"], way.gated(layer["gate_up"](h)), 1), self.norm)
        return h

    def logits(self, way, tokens, state, prompt=False):
        h = self.hidden(way, tokens, state, prompt)
        return self.reducer.gather((h[-1:] if prompt else h) @ self.head.t())


# ---- beside one GPU ----------------------------------------------------------------

class Alone(Nccl):
    """One rank: the whole."""

    def add(self, place, x, part, weight):
        x += part
        return x, self.way.norm(x, weight)

    def gather(self, logits):
        return logits


def make_wholes(model, weights, device):
    with Threads.lock:          # threads share a generator
        torch.manual_seed(11)   # the same on all ranks
        return {(number, name): layers.random_codes(layers.problem_of(weights, k, n), device)
                for number in range(model.layers) for name, (k, n) in model.products().items()}


def check(model, weights, rank, ranks, device, reducer):
    """Compares logits of a prompt and of a decode step with those of one rank alone. Returns the relative errors."""
    model = dataclasses.replace(model, layers=2)
    wholes, found = make_wholes(model, weights, device), []
    place = layers.place_of(device)
    tokens = (torch.arange(65) * 3 % model.vocabulary).to(place)
    for count, number, adder in ((1, 0, Alone(model, 1, 0, 64, kernels.Gallery(model))), (ranks, rank, reducer)):
        shard, way = Shard(model, weights, number, count, device, adder, wholes), kernels.Gallery(part_of(model, count))
        state = kernels.State(part_of(model, count), 1, 100, place)
        found.append((shard.logits(way, tokens[:64], state.prefill(0, 64), True).float(),
                      shard.logits(way, tokens[64:], state.decode_at(64)).float()))
    return [((a - b).norm() / a.norm()).item() for a, b in zip(*found)]


# ---- measuring ---------------------------------------------------------------------

def time_graph(graph, least):
    """Returns microseconds of a replay, the median; all ranks replay as often."""
    times, events = [], [torch.cuda.Event(enable_timing=True) for _ in "ab"]
    for replay in range(least + 1):
        dist.barrier()
        torch.cuda.synchronize()
        events[0].record()
        graph.replay()
        events[1].record()
        events[1].synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e3)
    return statistics.median(times[1:])


def measure(shard, way, step, batch, tokens, replays):
    """Returns microseconds of a step."""
    prompt = step == "prefill"
    state = kernels.State(shard.part, batch, tokens + 1, torch.device("cuda", torch.cuda.current_device()))
    state = state.prefill(0, tokens) if prompt else state.decode_at(tokens)
    given = torch.zeros(tokens if prompt else batch, dtype=torch.int64, device=state.table.device)
    shard.logits(way, given, state, prompt)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        logits = shard.logits(way, given, state, prompt)
    us = time_graph(graph, replays)
    if not logits.isfinite().all():
        raise SystemExit("tensor_parallel.py: error: logits are not finite")
    return us


def measure_all(options, model, rank, ranks, reducer, way):
    torch.manual_seed(100 + rank)
    shard = Shard(model, options.weights, rank, ranks, torch.cuda.current_device(), reducer)
    shard.prepare(*options.batches, options.prompt)
    for step, batch, tokens in [("decode", b, options.context) for b in options.batches] + [("prefill", 1, options.prompt)]:
        us = measure(shard, way, step, batch, tokens, 20 if step == "decode" else 5)
        if rank == 0:
            each = (tokens if step == "prefill" else batch) / us * 1e6
            print(f"{model.name} {options.weights} {ranks} x {reducer.name}: {step} {batch} x {tokens}: {us / 1e3:.3f} ms,"
                  f" {each:.1f} tokens/s", flush=True)


def run_rank(options, model, rank, ranks, device, kind):
    """Checks and measures as a rank."""
    way = kernels.Gallery(part_of(model, ranks))
    reducer = kind(model, ranks, rank, max(64, options.prompt, *options.batches), way)
    if kind is Threads:
        reducer.meeting = options.meeting
    with torch.inference_mode():
        if options.check:
            errors = check(model, options.weights, rank, ranks, device, reducer)
            if rank == 0:
                print(f"{ranks} x {reducer.name} beside one: prompt {errors[0]:.1e}, decode {errors[1]:.1e}", flush=True)
            if not max(errors) < 1e-2:
                raise SystemExit(f"tensor_parallel.py: error: rank {rank} is {max(errors):.1e} off")
        if kind is not Threads:
            measure_all(options, model, rank, ranks, reducer, way)


def run_threads(options, model):
    options.meeting, failed = (threading.Barrier(options.threads), {}), []

    def work(rank):
        try:
            run_rank(options, model, rank, options.threads, "cpu", Threads)
        except BaseException as error:
            failed.append(error)
            options.meeting[0].abort()
    known = [threading.Thread(target=work, args=(rank,)) for rank in range(options.threads)]
    for thread in known:
        thread.start()
    for thread in known:
        thread.join()
    if failed:
        raise failed[0]


def run_process(options, model):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    try:
        for name in options.reduce:
            run_rank(options, model, rank, ranks, torch.cuda.current_device(), REDUCERS[name])
    finally:
        with contextlib.suppress(Exception):
            dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="u4", help="a type of weights, or f16")
    parser.add_argument("--layers", type=int, default=0, help="of a smaller model")
    parser.add_argument("--batches", type=lambda text: [int(word) for word in text.split(",")], default=[1, 16])
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--prompt", type=int, default=2048)
    parser.add_argument("--reduce", type=lambda text: text.split(","), default=["peers"], help="peers, nccl")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--threads", type=int, default=0, metavar="RANKS")
    parser.add_argument("--tiny", action="store_true", help="a model for tests")
    options = parser.parse_args()
    for word in options.reduce:
        if word not in REDUCERS:
            parser.error(f"no way '{word}' to add up; there are {', '.join(REDUCERS)}")
    model = TINY if options.tiny else shapes.MODELS["Llama-3.3-70B"]
    model = dataclasses.replace(model, layers=options.layers) if options.layers else model
    if options.threads:
        return run_threads(options, model)
    if "RANK" not in os.environ:
        parser.error("start it by torchrun, or with --threads")
    run_process(options, model)


if __name__ == "__main__":
    main()
