#!/usr/bin/env python3
"""Products on tensor cores, C[m, n] = A[m, k] x B[n, k]^T: kernels of the gallery beside cuBLAS, on a GPU.

    bench/run gemm [PROBLEM...]     measures, and keeps the rows in bench/results/gemm.csv
    bench/gemm.py --tools DIR --runtime libtilus_rt.so [--out FILE.csv] [--revision TEXT]
                  [--problems NAME,..] [--kernels NAME,..] [--shapes NAME,..]
                  [--variant PROBLEM:LABEL=FILE[,BM=64,..] ...] [--rounds N]

Problems are f16 and bf16, fp8_rows (a scale for each row of A and of B), fp8_tensor (one of each) and
fp8_block (one for each row and 128 of k of A, and for each 128 x 128 of B). A variant is another
text, or other parameters, or an artefact (.tilusk), with the arguments of the problem's first
kernel, measured beside them.

Each kernel is compiled by tilus-llc for this device and launched by libtilus_rt on torch's stream,
in CUDA graphs that take turns with those of torch's product, over copies of A, B and C that hold
more than 4 times the L2 cache. `rest` is the median of bursts of 20 ms, each after 100 ms of rest;
`load` is that of replays after half a second of the same work (bench/README.md says why both). A
row first compares 64 columns of C, in all rows, with f64. Rows that the file has already, of this
device, driver and revision, are not measured again.
"""
import argparse
import collections
import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

from harness import gemm as table, results

BENCH = pathlib.Path(__file__).resolve().parent
KERNELS = BENCH.parent / "kernels"
DEVICE = "cuda"
COPIES_BYTES = 256 << 20    # of all copies of an argument set, at least


Way = collections.namedtuple("Way", "text program order defines")     # a kernel, and its arguments' names


# ---- problems -------------------------------------------------------------------------------

class Sixteen:
    """f16 or bf16 throughout, sums in f32."""
    tolerance = 1e-2

    def __init__(self, kind):
        self.kind = {"f16": torch.float16, "bf16": torch.bfloat16}[kind]
        fixed = {"T": kind}
        self.kernels = {"gemm_sm90": Way("gemm_sm90.tilus", "gemm", "a b bias pace c m n k", fixed),
                        "gemm_sm90_pipelined": Way("gemm_sm90_pipelined.tilus", "gemm", "a b c m n k", fixed),
                        "gemm": Way("gemm.tilus", "gemm", "a b c m n k", fixed | {"BK": 64, "STAGES": 3})}

    def make(self, m, n, k):
        tensors = {name: torch.randn(*extents, device=DEVICE).to(self.kind)
                   for name, extents in (("a", (m, k)), ("b", (n, k)), ("c", (m, n)))}
        return tensors | {"bias": None, "pace": torch.zeros(1, dtype=torch.int32, device=DEVICE)}

    def arguments(self, kernel, tensors):
        """Its arguments by name; @gemm of gemm.tilus takes B as [k, n]."""
        return tensors | {"b": tensors["b"].t().contiguous()} if kernel == "gemm" else tensors

    def peer(self, t):
        torch.mm(t["a"], t["b"].t(), out=t["c"])

    def exact(self, t, columns):
        return t["a"].double() @ t["b"][columns].double().t()


class Eight:
    """f8e4m3 operands with f32 scales, C in bf16. `scales` gives the extents of A's and B's."""
    tolerance = 1e-2

    def __init__(self, program, fixed, scales):
        self.kernels = {"gemm_fp8_sm90": Way("gemm_fp8_sm90.tilus", program, "a b sa sb c m n k", fixed)}
        self.scales = scales

    def make(self, m, n, k):
        of_a, of_b = self.scales(m, n, k)
        eight = torch.float8_e4m3fn
        return {"a": torch.randn(m, k, device=DEVICE).to(eight), "b": torch.randn(n, k, device=DEVICE).to(eight),
                "sa": torch.rand(of_a, device=DEVICE) + 0.5, "sb": torch.rand(of_b, device=DEVICE) + 0.5,
                "c": torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)}

    def arguments(self, _kernel, tensors):
        return tensors

    def peer(self, t):
        """Scales of blocks as cuBLAS takes them: A's along m, B's as [k / 128, n / 128]."""
        block = t["sa"].shape[1] > 1
        sa = t["sa"].t().contiguous().t() if block else t["sa"]
        torch._scaled_mm(t["a"], t["b"].t(), scale_a=sa, scale_b=t["sb"].t(), out_dtype=torch.bfloat16, out=t["c"],
                         use_fast_accum=not block)

    def exact(self, t, columns):
        def wide(x, scales):
            high = [-(-extent // count) for extent, count in zip(x.shape, scales.shape)]
            for dim in (0, 1):
                scales = scales.repeat_interleave(high[dim], dim)
            return x.double() * scales[:x.shape[0], :x.shape[1]].double()
        b = wide(t["b"], t["sb"])[columns]
        return wide(t["a"], t["sa"]) @ b.t()


PROBLEMS = {
    "f16": Sixteen("f16"),
    "bf16": Sixteen("bf16"),
    "fp8_rows": Eight("scaled", {}, lambda m, n, k: ((m, 1), (n, 1))),
    "fp8_tensor": Eight("scaled", {"ROWS": 0}, lambda m, n, k: ((1, 1), (1, 1))),
    "fp8_block": Eight("block", {}, lambda m, n, k: ((m, -(-k // 128)), (-(-n // 128), -(-k // 128)))),
}
assert {name: tuple(problem.kernels) for name, problem in PROBLEMS.items()} == \
    {name: kernels for name, (kernels, _) in table.PROBLEMS.items()}


# ---- ours -----------------------------------------------------------------------------------

class Argument(ctypes.Union):
    """tilus_arg of include/tilus/kernel.h."""
    _fields_ = [("pointer", ctypes.c_uint64), ("integer", ctypes.c_int64), ("real", ctypes.c_double)]


class Runtime:
    """libtilus_rt on torch's device and stream."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.tilus_rt_error.restype = ctypes.c_char_p
        self.library.tilus_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                              ctypes.c_uint64, ctypes.c_size_t]
        self.library.tilus_kernel_artefact.argtypes = [ctypes.c_void_p]
        self.library.tilus_kernel_artefact.restype = ctypes.c_void_p
        self.library.tilus_artefact_kernel.argtypes = [ctypes.c_void_p]
        self.library.tilus_artefact_kernel.restype = ctypes.c_void_p
        self.library.tilus_kernel_arg_count.argtypes = [ctypes.c_void_p]
        self.library.tilus_kernel_arg_count.restype = ctypes.c_size_t
        self.library.tilus_kernel_arg_name.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.library.tilus_kernel_arg_name.restype = ctypes.c_char_p
        self.handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
        if self.library.tilus_rt_open(None, ctypes.byref(self.handle), message, ctypes.c_size_t(1024)):
            sys.exit(message.value.decode())

    def check(self, status):
        if status:
            sys.exit(self.library.tilus_rt_error().decode())

    def load(self, artefact):
        kernel, data = ctypes.c_void_p(), artefact.read_bytes()
        self.check(self.library.tilus_kernel_load(self.handle, data, ctypes.c_size_t(len(data)), ctypes.byref(kernel)))
        self.check(self.library.tilus_kernel_prepare(kernel, torch.cuda.current_device()))
        return kernel

    def names(self, kernel):
        """The names of the kernel's arguments, in order."""
        info = self.library.tilus_artefact_kernel(self.library.tilus_kernel_artefact(kernel))
        return [self.library.tilus_kernel_arg_name(info, i).decode()
                for i in range(self.library.tilus_kernel_arg_count(info))]

    def arguments(self, kernel, values):
        """Returns a launch's arguments from tensors, integers and floats by name."""
        names = self.names(kernel)
        arguments = (Argument * len(names))()
        for argument, value in zip(arguments, (values[name] for name in names)):
            field = "real" if isinstance(value, float) else "integer"
            setattr(argument, field, value.data_ptr() if isinstance(value, torch.Tensor) else value)
        return arguments

    def launch(self, kernel, arguments):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.library.tilus_launch(kernel, stream, arguments, len(arguments), 0, 0))


def arguments_of(tensors, order, shape):
    """Values in the program's order; tensors that are None are null pointers."""
    values = (Argument * len(order))()
    for value, name in zip(values, order):
        value.integer = shape["mnk".index(name)] if name in "mnk" else 0 if tensors[name] is None else tensors[name].data_ptr()
    return values


def compile_kernel(tools, label, way, folder):
    """The artefact of a text, or of one that is compiled already."""
    if pathlib.Path(way.text).suffix == ".tilusk":
        return pathlib.Path(way.text)
    major, minor = torch.cuda.get_device_capability()
    target = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    out = folder / f"{label}.tilusk"
    words = [tools / "tilus-llc", KERNELS / way.text, f"--program=@{way.program}", f"--mcpu={target}",
             "--filetype=artefact", "-o", out, *[f"-D{name}={value}" for name, value in way.defines.items()]]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return out


# ---- time -----------------------------------------------------------------------------------

def graph_of(function, sets):
    """A graph of launches, about 2 ms of them, and how many."""
    for i in sets[:2]:
        function(i)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    function(sets[0])
    torch.cuda.synchronize()
    count = max(len(sets), min(64, round(2e-3 / (time.perf_counter() - begin))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for n in range(count):
            function(sets[n % len(sets)])
    return graph, count


def replay_us(graph, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def rest_us(graph, count):
    """One burst of 20 ms after 100 ms of rest; its first replay does not count."""
    time.sleep(0.1)
    replay_us(graph, count)
    times, end = [], time.perf_counter() + 0.02
    while time.perf_counter() < end or not times:
        times.append(replay_us(graph, count))
    return times


def load_us(graph, count):
    """Replays after half a second of the same work, the device never idle between them."""
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
    return [replay_us(graph, count) for _ in range(9)]


def measure(ways, rounds):
    """Medians at rest and under load, the ways by turns."""
    times = {name: ([], []) for name in ways}
    for place, take in enumerate((rest_us, load_us)):
        for _ in range(rounds):
            for name, (graph, count) in ways.items():
                times[name][place].extend(take(graph, count))
    return {name: (statistics.median(rest), statistics.median(load)) for name, (rest, load) in times.items()}


# ---- rows -----------------------------------------------------------------------------------

def copies_of(problem, shape):
    first = problem.make(*shape)
    size = sum(t.numel() * t.element_size() for t in first.values() if t is not None)
    return [first] + [problem.make(*shape) for _ in range(max(1, min(7, -(-COPIES_BYTES // size) - 1)))]


def error_of(problem, tensors, columns=64):
    """The relative Frobenius error of columns of C against f64."""
    chosen = torch.randperm(tensors["c"].shape[1], device=DEVICE)[:columns]
    exact = problem.exact(tensors, chosen)
    return ((tensors["c"][:, chosen].double() - exact).norm() / exact.norm()).item()


def peer_way(problem, copies):
    """cuBLAS by torch, or None where this torch has no such product."""
    try:
        way = graph_of(problem.peer, copies)
    except (RuntimeError, ValueError) as error:
        print(f"  cuBLAS: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    torch.cuda.synchronize()
    print(f"  cuBLAS: relative error {error_of(problem, copies[0]):.2e}", file=sys.stderr)
    return way


def rows_of(options, runtime, name, shape_name, chosen, folder):
    """The chosen kernels beside cuBLAS on one shape."""
    problem, shape, ways, errors, kept = PROBLEMS[name], table.SHAPES[shape_name], {}, {}, []
    copies = copies_of(problem, shape)
    peer = peer_way(problem, copies)
    if peer:
        ways["cuBLAS"] = peer
    for label, way in chosen.items():
        handle = runtime.load(compile_kernel(options.tools, label, way, folder))
        sets = [problem.arguments(label, tensors) for tensors in copies]
        prepared = [arguments_of(tensors, way.order.split(), shape) for tensors in sets]
        kept.append((sets, prepared))
        copies[0]["c"].fill_(float("nan"))
        ways[label] = graph_of(lambda i, handle=handle: runtime.launch(handle, i), prepared)
        torch.cuda.synchronize()
        errors[label] = error_of(problem, copies[0])
        if not errors[label] <= problem.tolerance:
            raise SystemExit(f"{label}, {name} {shape_name}: relative error {errors[label]:.2e}")
    times, flops = measure(ways, options.rounds), 2 * shape[0] * shape[1] * shape[2]
    for label, error in errors.items():
        row = dict(zip(table.COLUMNS, (label, name, shape_name, *shape, f"{error:.2e}")))
        for place, when in enumerate(("rest", "load")):
            us, other = times[label][place], times.get("cuBLAS", (0, 0))[place]
            row |= {f"{when}_us": round(us, 2), f"{when}_tflops": round(flops / us * 1e-6, 1),
                    f"cublas_{when}_us": round(other, 2) or "", f"{when}_speedup": round(other / us, 3) or ""}
        yield row


def driver():
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True).stdout.split("\n")[0].strip()


def known_rows(options, about, table=table):
    """Keys of the rows that the file has of this set."""
    name = results.Set(about["device"], about["driver"], about["revision"])
    return table.sets(options.out).get(name, {}) if options.out else {}


def variant(text):
    """PROBLEM:LABEL=FILE[,NAME=VALUE..]"""
    problem, rest = text.split(":", 1)
    label, rest = rest.split("=", 1)
    file, *defines = rest.split(",")
    return problem, label, file, dict(pair.split("=") for pair in defines)


def words(text):
    return text.split(",")


def parse_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="the folder of tilus-llc")
    parser.add_argument("--runtime", type=pathlib.Path, required=True, help="libtilus_rt.so")
    parser.add_argument("--out", type=pathlib.Path, help="a CSV file to add the rows to")
    parser.add_argument("--problems", type=words, default=list(table.PROBLEMS))
    parser.add_argument("--kernels", type=words, help="of the problems' (default: all)")
    parser.add_argument("--shapes", type=words, help="of the problems' (default: all)")
    parser.add_argument("--variant", type=variant, action="append", default=[], metavar="PROBLEM:LABEL=FILE,BM=64,..")
    parser.add_argument("--rounds", type=int, default=3, help="of turns at rest and under load")
    parser.add_argument("--revision", default="")
    options = parser.parse_args()
    options.chosen = {}
    for name in options.problems:
        known = PROBLEMS[name].kernels
        chosen = {label: way for label, way in known.items() if options.kernels is None or label in options.kernels}
        first = next(iter(known.values()))
        chosen |= {label: first._replace(text=pathlib.Path(file).resolve(), defines=first.defines | defines)
                   for problem, label, file, defines in options.variant if problem == name}
        options.chosen[name] = chosen
    return options


def main():
    options = parse_line()
    torch.manual_seed(1)
    runtime = Runtime(options.runtime)
    about = {"device": torch.cuda.get_device_name(), "driver": driver(), "torch": torch.__version__,
             "revision": options.revision}
    known = known_rows(options, about)
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in ((name, shape) for name in options.problems for shape in table.PROBLEMS[name][1]):
            if options.shapes is not None and shape not in options.shapes:
                continue
            lacking = {label: way for label, way in options.chosen[name].items() if (name, shape, label) not in known}
            for row in rows_of(options, runtime, name, shape, lacking, pathlib.Path(folder)) if lacking else ():
                print(*(f"{field}={row[field]}" for field in table.COLUMNS[:15]), flush=True)
                if options.out:
                    values = row | about
                    results.append(options.out, [",".join(str(values[field]) for field in table.COLUMNS)],
                                   table.COLUMNS)


if __name__ == "__main__":
    main()
