#!/usr/bin/env python3
"""A Llama whose layers are shared by several GPUs: columns of the products into a part, rows of those out of it.

    torchrun --nproc-per-node=2 examples/tensor_parallel.py                 # Llama-3.3-70B's shapes, u4, random weights
    torchrun --nproc-per-node=2 examples/tensor_parallel.py --check         # two layers beside one GPU's, then as above
    examples/tensor_parallel.py --threads=2 --check --tiny                  # ranks are threads, on the CPU engine

Each rank has some heads and some columns of the MLP. Of a layer's products qkv and gate_up are cut by columns, o and down by
rows, and their results are added up over ranks: twice a layer. Packed weights are cut out of the packed whole, as a server
does that loads a packed checkpoint (Plan.shard); with --check from the codes that one GPU has as well, else each rank makes its
own. Heads of q lie with those of k that they share, and gates with their ups, so that a rank's columns are neighbors.

Adding up: `peers` has each rank store its part where the others can read it (torch's symmetric memory); one launch tells
them so, waits for theirs, adds all parts to the residual and takes the norm, while the next product's weights come. Of a
prompt each rank adds some rows, and stores their norms at all ranks. Ranks add in one order, so that all have the same
numbers. `nccl` is torch.distributed.all_reduce. Both are part of the step's CUDA graph.
"""
import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
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
WHOLE_ROWS = 64     # of an addition of more than two ranks, up to which each adds all: more bytes, but one wait, not two

# x += the sum of all ranks' parts, and y = rms_norm(x) * w: a block adds a row. Lines with `#` stand there for each rank. With
# SHARE a rank adds each RANKS-th row alone, and stores y at all ranks.
#
# Flags are [block, stage, who tells]; who has waited for one takes it down. A warp acts for each peer, so that none
# waits for another. Each block tells before it waits and all GPUs start blocks in one order, so the first row that is not
# done has its blocks running on all of them, or next in turn: nobody waits forever. min_blocks(1) leaves the assembler the
# registers to have all peers' parts in flight at once.
ADD_NORM = """tilus 1
param N = 8192, RANKS = 2, RANK = 0, WARPS = 16, SHARE = 0
param STEP = SHARE ? RANKS : 1

program @add_norm<ceil_div(%rows, STEP)>(
    %x: ptr<f16> {align = 16}, %w: ptr<f16> {align = 16},
    %part#: ptr<f16> {align = 16},
    %y#: ptr<f16> {align = 16},
    %flags#: ptr<i32> {align = 4},
    %rows: i32, %eps: f32) warps(WARPS) min_blocks(1) {
  %block = block_indices
  %row = scalar %block * STEP + SHARE * RANK
  %gx = view_global %x : f16[%rows, N]
  %gw = view_global %w : f16[N]
  %gpart# = view_global %part# : f16[%rows, N]
  %gy# = view_global %y# : f16[%rows, N]
  %gflags# = view_global %flags# : i32[%rows, 2, RANKS]
  %mine = slice %gflagsRANK[%block, 0, 0] {dims = [1, 2]} : i32[2, RANKS]
  %w = load_global %gw[0] : f16[N]
  launch_dependents
  wait_dependencies
  when # != RANK { thread_group(# mod WARPS * 32, 32) { release %gflags#[%block, 0, RANK], 1 {scope = system} } }
  when # == RANK { %p# = load_global %gpart#[%row, 0] : f16[N] }
  %v = f32(load_global %gx[%row, 0] : f16[N])
  when # != RANK { thread_group(# mod WARPS * 32, 32) { lock %mine[0, #], 1 {scope = system} } }
  synchronize
  when # != RANK { %p# = load_global %gpart#[%row, 0] : f16[N] }
  %v = %v + f32(%p#)
  %y = f16(%v * rsqrt(sum(%v * %v) / N + %eps) * f32(%w))
  when SHARE or # == RANK { store_global %y, %gy#[%row, 0] }
  store_global f16(%v), %gx[%row, 0]
  when SHARE {
    synchronize
    when # != RANK { thread_group(# mod WARPS * 32, 32) { release %gflags#[%block, 1, RANK], 1 {scope = system} } }
    when # != RANK { thread_group(# mod WARPS * 32, 32) { lock %mine[1, #], 1 {scope = system} } }
    synchronize
  }
  store_global (allocate_register 0 : i32[2, RANKS]), %mine[0, 0]
}
"""


def add_norm_kernel(hidden, ranks, rank=0, share=0):
    text = ADD_NORM.replace("%gflagsRANK", f"%gflags{rank}")
    text = re.sub("^.*#.*$", lambda line: "\n".join(line[0].replace("#", str(i)) for i in range(ranks)), text, flags=re.M)
    return tilusc.jit(text, N=hidden, RANKS=ranks, RANK=rank, SHARE=share, WARPS=kernels.warps_of(hidden))


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
        return all_.transpose(0, 1).reshape(len(logits), -1)    # of one row there is nothing to copy


class Peers(Nccl):
    """By parts, results and flags that all ranks can reach. Two places take turns, so that nothing is written too early: a
    rank comes to addition i + 2 when it has ended i + 1, in which each peer told it something, which a peer does when it has
    ended i. It has read the parts of i then, and has taken its flags down; and no graph needs to count. A rank writes peers'
    results of i + 1 when these have told it something there, after products have read those of i."""

    name = "peers"

    def __init__(self, model, ranks, rank, rows, way):
        super().__init__(model, ranks, rank, rows, way)
        self.rank = rank
        self.rows = self._reach((3, rows, model.hidden), torch.float16)     # parts of both places, results
        self.flags = self._reach((2, rows, 2, ranks), torch.int32)
        self.flags[0].zero_()
        dist.barrier()              # behind the zeros
        torch.cuda.synchronize()
        self.kernels = [add_norm_kernel(model.hidden, ranks, rank, share) for share in range(2)]
        for kernel in self.kernels:
            kernel.prepare()

    def _reach(self, shape, dtype):
        """Returns a tensor in symmetric memory, by its first index its addresses at all ranks, and what keeps them."""
        import torch.distributed._symmetric_memory as symmetric
        tensor = symmetric.empty(shape, dtype=dtype, device=f"cuda:{torch.cuda.current_device()}")
        handle = symmetric.rendezvous(tensor, dist.group.WORLD)
        starts = [each.data_ptr() - handle.buffer_ptrs[self.rank] for each in tensor]
        return tensor, [[address + start for address in handle.buffer_ptrs] for start in starts], handle

    def part(self, place, rows):
        return self.rows[0][place, :rows]

    def add(self, place, x, part, weight):
        """Where rows are shared, x is right in those that the rank adds."""
        rows, addresses, share = *self.rows[:2], self.ranks > 2 and len(x) > WHOLE_ROWS
        y = rows[2, :len(x)] if share else torch.empty_like(x)
        results = addresses[2] if share else [y] * self.ranks
        self.kernels[share](x, weight, *addresses[place], *results, *self.flags[1][place], len(x), kernels.EPSILON)
        return x, y


class Threads(Nccl):
    """Ranks that are threads of this process, for tests."""

    name = "threads"
    lock = threading.Lock()

    def __init__(self, model, ranks, rank, rows, way):
        super().__init__(model, ranks, rank, rows, way)
        self.rank, self.kernel = rank, add_norm_kernel(model.hidden, ranks, rank)

    def _share(self, value):
        barrier, values = self.meeting
        values[self.rank] = value
        barrier.wait()
        found = [values[i] for i in range(self.ranks)]
        barrier.wait()
        return found

    def add(self, place, x, part, weight):
        y = [torch.empty_like(x) for _ in range(self.ranks)]
        told = [torch.ones(len(x), 2, self.ranks, dtype=torch.int32) for _ in range(self.ranks)]
        self.kernel(x, weight, *self._share(part), *y, *told, len(x), kernels.EPSILON)
        return x, y[self.rank]

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


def columns_of(model, ranks):
    """Columns of the whole qkv in the order of ranks."""
    sizes = [model.heads * model.head] + [model.kv_heads * model.head] * 2
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return torch.cat([torch.arange(size // ranks) + start + rank * (size // ranks)
                      for rank in range(ranks) for start, size in zip(starts, sizes)])


def reorder(problem, codes, scales, order):
    """Puts columns, rows of [n, k] codes and scales, in another order."""
    codes = codes.view(problem.n, -1)[order.to(codes.device)]
    return codes.reshape(-1), scales[order.to(scales.device)]


def cut(whole, given, name, model, part, rank, ranks, device):
    """Cuts a rank's layer out of the whole one. Packed gates lie beside what they multiply, so that a part has its share of
    both."""
    packed = layers.pack(whole, device, *(reorder(whole, *given, columns_of(model, ranks)) if name == "qkv" else given))
    k, n = part.products()[name]
    problem = dataclasses.replace(whole, n=n, k=k, n_tile=plan(whole, device).tile[0])
    first = {"n_first": rank * n} if name in ("qkv", "gate_up") else {"k_first": rank * k}
    return QuantizedLinear(problem, plan(whole, device).shard(packed, plan(problem, device), **first), packed_for=device)


def gate_of(model, name):
    return model.gate if name == "gate_up" else None


class Shard:
    """A rank's part of all layers. `wholes`, by layer and name, are codes and scales that all ranks have."""

    def __init__(self, model, weights, rank, ranks, device, reducer, wholes=None):
        self.model, self.part, self.reducer = model, part_of(model, ranks), reducer
        self.layers = []
        for number in range(model.layers):
            known = {}
            for name, (k, n) in self.part.products().items():
                if wholes is None:
                    known[name] = layers.linear(weights, k, n, device, gate=gate_of(model, name))
                else:
                    whole = layers.problem_of(weights, *model.products()[name], gate=gate_of(model, name))
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
            h = layer["gate_up"](h)
            h = h if isinstance(layer["gate_up"], QuantizedLinear) else way.gated(h)
            x, h = self.reducer.add(1, x, self._multiply(layer["down"], h, 1), self.norm)
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
        return {(number, name): layers.random_codes(layers.problem_of(weights, k, n, gate=gate_of(model, name)), device)
                for number in range(model.layers) for name, (k, n) in model.products().items()}


def check(model, weights, rank, ranks, device, reducer):
    """Compares logits of a prompt and of a decode step with those of one rank alone. Returns the relative errors."""
    model = dataclasses.replace(model, layers=2)
    wholes, found = make_wholes(model, weights, device), []
    place = layers.place_of(device)
    tokens = (torch.arange(97) * 3 % model.vocabulary).to(place)
    for count, number, adder in ((1, 0, Alone(model, 1, 0, 96, kernels.Gallery(model))), (ranks, rank, reducer)):
        shard, way = Shard(model, weights, number, count, device, adder, wholes), kernels.Gallery(part_of(model, count))
        state = kernels.State(part_of(model, count), 1, 100, place)
        found.append((shard.logits(way, tokens[:96], state.prefill(0, 96), True).float(),
                      shard.logits(way, tokens[96:], state.decode_at(96)).float()))
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


def time_captured(work, replays):
    """Returns microseconds of what `work` launches, as a graph, and its result."""
    work()
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = work()
    return time_graph(graph, replays), result


def measure(shard, way, step, batch, tokens, replays):
    """Returns microseconds of a step."""
    prompt = step == "prefill"
    state = kernels.State(shard.part, batch, tokens + 1, torch.device("cuda", torch.cuda.current_device()))
    state = state.prefill(0, tokens) if prompt else state.decode_at(tokens)
    given = torch.zeros(tokens if prompt else batch, dtype=torch.int64, device=state.table.device)
    us, logits = time_captured(lambda: shard.logits(way, given, state, prompt), replays)
    if not logits.isfinite().all():
        raise SystemExit("tensor_parallel.py: error: logits are not finite")
    return us


def measure_addition(reducer, model, rows, count=50):
    """Returns microseconds of an addition, of so many in a row."""
    x, weight = torch.zeros(rows + 1, model.hidden, dtype=torch.float16, device="cuda").split([rows, 1])
    parts = [reducer.part(place, rows) for place in range(2)]
    parts = [torch.zeros_like(x) if part is None else part.zero_() for part in parts]

    def work():
        for i in range(count):
            reducer.add(i % 2, x, parts[i % 2], weight[0])
    return time_captured(work, 20)[0] / count


def measure_all(options, model, rank, ranks, reducer, way):
    torch.manual_seed(100 + rank)
    shard = Shard(model, options.weights, rank, ranks, torch.cuda.current_device(), reducer)
    shard.prepare(*options.batches, options.prompt)
    for rows in (*options.batches, options.prompt):
        us = measure_addition(reducer, model, rows)
        if rank == 0:
            print(f"{ranks} x {reducer.name}: an addition of {rows} rows: {us:.2f} us", flush=True)
    for step, batch, tokens in [("decode", b, options.context) for b in options.batches] + [("prefill", 1, options.prompt)]:
        us = measure(shard, way, step, batch, tokens, 20 if step == "decode" else 5)
        if rank == 0:
            each = (tokens if step == "prefill" else batch) / us * 1e6
            print(f"{model.name} {options.weights} {ranks} x {reducer.name}: {step} {batch} x {tokens}: {us / 1e3:.3f} ms,"
                  f" {each:.1f} tokens/s", flush=True)


def run_rank(options, model, rank, ranks, device, kind):
    """Checks and measures as a rank."""
    way = kernels.Gallery(part_of(model, ranks))
    reducer = kind(model, ranks, rank, max(96, options.prompt, *options.batches), way)
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
