#!/usr/bin/env python3
"""The cost of casts on a GPU: operations in its machine code, and elements a second.

    bench/cast/run.py --tools DIR --out DIR [--only u4,f6e3m2] [--arch sm_90a]
    bench/cast/run.py --record DIR/cast.json

The first, on a machine with a GPU, ptxas and cuobjdump, compiles cast.tilus for each
type of 1 to 8 bits, from plain order, from storage order packed(T) and as `decode`, and
codebooks in registers and in shared memory, and writes DIR/cast.json. Counts are what 64 more elements of a thread add to a kernel that
loads, casts and stores. Times are the median of launches that cast from registers to
registers; beside them stands the limit that the counts put: 64 lanes a cycle of a
multiprocessor for integer operations, 128 for the fp pipe, 128 in all.

The second writes bench/results/cast.md and the tables of machine code in docs/casts.md.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = HERE / "cast.tilus"
INTEGERS = [f"u{n}" for n in range(1, 9)] + [f"i{n}" for n in range(1, 9)]
FLOATS = [f"f{n}e{x}m{n - 1 - x}" for n in range(3, 9) for x in range(1, n)]
TARGETS = ["f16", "bf16", "f32", "i8", "f8e4m3"]
MODES = {"plain": 0, "packed": 1, "decode": 2, "registers": 3, "pairs": 4}
COLUMNS = [(t, m) for t in TARGETS for m in ("plain", "packed", "decode")
           if m != "decode" or t in ("f16", "bf16")]
CODEBOOKS = [(t, m) for t in ("f16", "bf16") for m in ("registers", "pairs")]
PAIRS_BYTES = 16 * 16 * 256         # rows 256 bytes apart
THREADS, ELEMENTS = 128, 64

# The pipe of each opcode of sm_90 that casts are made of; the rest moves data.
ALU = {"LOP3", "PRMT", "SHF", "LEA", "IADD3", "IADD", "SEL", "ISETP", "IMNMX", "VIMNMX", "SGXT", "BMSK",
       "PLOP3", "HMNMX2", "FMNMX", "FSEL", "FSETP", "HSETP2", "LOP", "I2FP", "F2FP", "VIADD"}
FMA = {"HFMA2", "HADD2", "HMUL2", "FFMA", "FADD", "FMUL", "IMAD"}
CONVERT = {"F2F", "I2F", "F2I", "MUFU", "FRND"}


def width(name):
    return int(re.match(r"[a-z]+(\d+)", name).group(1))


class Failure(Exception):
    pass


def command(*words, **options):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise Failure((result.stderr.strip().splitlines() or ["failed"])[0])
    return result.stdout


# ---- machine code ---------------------------------------------------------------

def compile_ptx(options, case, elements):
    source, target, mode = case
    path = options.out / f"{source}_{target}_{mode}_{elements}.ptx"
    command(options.tools / "tilus-llc", PROGRAM, f"-mcpu={options.arch}", "-D", f"W={source}", "-D",
            f"T={target}", "-D", f"MODE={MODES[mode]}", "-D", f"N={elements}", "-o", path)
    return path


def opcodes(options, ptx):
    """How often each opcode stands in @once."""
    cubin = ptx.with_suffix(".cubin")
    command("ptxas", f"-arch={options.arch}", ptx, "-o", cubin)
    text = command("cuobjdump", "-sass", "-fun", "once", cubin)
    cubin.unlink()
    names = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z0-9]+)", text, re.MULTILINE)
    return collections.Counter(names)


def count(options, case):
    """Operations an element by pipe, and the PTX of the same cast for timing."""
    small, large = (compile_ptx(options, case, n) for n in (ELEMENTS, 2 * ELEMENTS))
    more = opcodes(options, large)
    more.subtract(opcodes(options, small))
    large.unlink()
    more = {op: n for op, n in more.items() if n and op not in ("LDG", "STG", "NOP", "BRA")}
    pipe = {name: sum(n for op, n in more.items() if op in ops) / ELEMENTS
            for name, ops in (("int", ALU), ("fp", FMA), ("cvt", CONVERT))}
    pipe["other"] = sum(more.values()) / ELEMENTS - sum(pipe.values())
    return {"pipes": pipe, "opcodes": more, "ptx": str(small)}


# ---- times -----------------------------------------------------------------------

class Device:
    """The CUDA driver, through ctypes."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.processors = self.attribute(16, device)
        self.start, self.stop = self.event(), self.event()

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status != 0:
            raise Failure(f"{name} gives {status}")

    def attribute(self, number, device):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0x5a), ctypes.c_size_t(size))
        return address

    def milliseconds(self, function, blocks, shared, args):
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p)
                                                   for a in args))
        elapsed = ctypes.c_float()
        self.call("cuEventRecord", self.start, None)
        self.call("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, shared, None, pointers, None)
        self.call("cuEventRecord", self.stop, None)
        self.call("cuEventSynchronize", self.stop)
        self.call("cuEventElapsedTime", ctypes.byref(elapsed), self.start, self.stop)
        return elapsed.value

    def load(self, ptx, shared):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), pathlib.Path(ptx).read_bytes() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"rounds")
        self.call("cuFuncSetAttribute", function, 8, shared)    # the most dynamic shared memory
        return module, function


def clock_mhz():
    query = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    return float(command(*query).splitlines()[0])


def measure(device, ptx, shared, memory, rounds=4000, launches=7):
    """Elements a second of a multiprocessor, and how far the launches lie apart."""
    blocks = 8 * device.processors
    module, function = device.load(ptx, shared)
    args = [memory[0], memory[1], ctypes.c_int32(blocks), ctypes.c_int32(rounds)]
    times = [device.milliseconds(function, blocks, shared, args) for _ in range(launches + 1)][1:]
    device.call("cuModuleUnload", module)
    done = blocks * THREADS * ELEMENTS * rounds / device.processors
    return {"elements_per_second": done / (statistics.median(times) / 1e3),
            "spread": (max(times) - min(times)) / statistics.median(times)}


# ---- both ------------------------------------------------------------------------

def cases(options):
    for source in options.only.split(",") if options.only else INTEGERS + FLOATS:
        yield from ((source, *column) for column in COLUMNS if column[0] != source)
        for target, mode in CODEBOOKS:
            if source == "u4" or (source in ("u1", "u2", "u3") and mode == "registers"):
                yield source, target, mode


def counted(options, case):
    try:
        return case, count(options, case)
    except Failure as why:
        return case, {"missing": str(why)}


def run(options):
    options.out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(pool.map(lambda c: counted(options, c), cases(options)))
    device = Device()
    memory = device.allocate(1 << 20), device.allocate(1 << 28)
    for case, result in results.items():
        if "ptx" in result:
            shared = PAIRS_BYTES if case[2] == "pairs" else 0
            result.update(measure(device, result.pop("ptx"), shared, memory))
            print(*case, result["pipes"], f"{result['elements_per_second'] / 1e9:.1f} G/s", flush=True)
        else:
            print(*case, result["missing"], flush=True)
    revision = ROOT / "dist" / "gpu-check" / "revision"
    gpu = command("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip()
    record = {"date": time.strftime("%Y-%m-%d"), "gpu": gpu, "clock_mhz": clock_mhz(),
              "arch": options.arch, "ptxas": command("ptxas", "--version").strip().splitlines()[-1],
              "revision": revision.read_text().strip() if revision.exists() else "unknown",
              "results": [dict(zip(("source", "target", "mode"), case), **result)
                          for case, result in results.items()]}
    (options.out / "cast.json").write_text(json.dumps(record, indent=1))


# ---- records -----------------------------------------------------------------------

def limit(r, clock):
    """Elements a second that the pipes allow, with the operations that an iteration adds."""
    pipes, bits = r["pipes"], width(r["target"])
    words = width(r["source"]) / 32
    integer = pipes["int"] + words + (0.25 if bits == 8 else 0)
    fp = pipes["fp"] + (0 if bits == 8 else bits / 32)
    total = sum(pipes.values()) + words + (0.25 if bits == 8 else bits / 32)
    return clock * 1e6 / max(integer / 64, fp / 128, total / 128)


def cell(r, form):
    if r is None or "pipes" not in r:
        return "–"
    return form(r)


def table(record, columns, form):
    found = {(r["source"], r["target"], r["mode"]): r for r in record["results"]
             if (r["target"], r["mode"]) in columns}
    lines = ["| from | " + " | ".join(f"{t} {m}" for t, m in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for source in dict.fromkeys(key[0] for key in found):
        cells = [cell(found.get((source, *c)), form) for c in columns]
        lines.append(f"| {source} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def operations(r):
    p = r["pipes"]
    rest = p["cvt"] + p["other"]
    return f"{p['int']:.2f} / {p['fp']:.2f}" + (f" + {rest:.2f}" if rest >= 0.005 else "")


def write_records(path):
    record = json.loads(path.read_text())
    where = (f"{record['date']}, {record['gpu']}, {record['ptxas']}, target {record['arch']}, "
             f"revision {record['revision']}: `bench/cast/run.py --tools DIR --out DIR`")
    document = ROOT / "docs" / "casts.md"
    text = document.read_text()
    for name, columns in ("sass", COLUMNS), ("sass-codebooks", CODEBOOKS):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{where}\n\n{table(record, columns, operations)}\n{end}{rest.split(end)[1]}"
    document.write_text(text)
    clock = record["clock_mhz"]

    def rate(r):
        return f"{r['elements_per_second'] / 1e9:.0f} ({limit(r, clock) / 1e9:.0f})"
    (ROOT / "bench" / "results" / "cast.md").write_text(
        "# Casts from registers to registers\n\n"
        f"{where}\n\nBillions of elements a second on one multiprocessor, the median of 7 launches, and in "
        f"parentheses what the counts of operations allow at {clock:.0f} MHz, the clock after the run: 64 lanes a "
        "cycle for integer operations, 128 for the fp pipe, 128 instructions' lanes in all. A round also "
        "adds to each word of codes and sums the results up; both are in the limit.\n\n"
        f"{table(record, COLUMNS, rate)}\n\n"
        "Codebooks of 16 entries or fewer, in registers and as pairs in shared memory; the loads of pairs are in "
        "the limit only as instructions.\n\n"
        f"{table(record, CODEBOOKS, rate)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", help="source types, comma-separated")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    if options.record:
        write_records(options.record)
    elif options.tools and options.out:
        run(options)
    else:
        parser.error("--tools and --out are needed, or --record")


if __name__ == "__main__":
    sys.exit(main())
