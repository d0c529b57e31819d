"""Products on tensor cores beside cuBLAS: bench/gemm.py, and the plot and tables of its rows.

bench/results/gemm.csv has a row for a kernel, a problem and a shape of it; rows of one device,
driver and revision are a set, and are only ever added. The last set of the file is the newest.
"""
import math
import pathlib
import subprocess
import sys
import tempfile

from . import machine, plot as drawing, results, show as tables

SUMMARY = "f16, bf16 and fp8 products of the gallery beside cuBLAS"
COLUMNS = ("kernel problem shape m n k error rest_us rest_tflops cublas_rest_us rest_speedup load_us load_tflops "
           "cublas_load_us load_speedup device driver torch revision").split()

# m, n, k. M0 .. M7 are TileLang's shapes for f16, D0 and D1 two of DeepSeek-V3's.
SQUARE = {"square": (8192, 8192, 8192)}
TILELANG = {f"M{i}": (4096 if i < 4 else 8192, *[(1024, 8192), (8192, 8192), (28672, 8192), (8192, 28672)][i % 4])
            for i in range(8)}
F16_SHAPES = SQUARE | TILELANG
FP8_SHAPES = {"D0": (4096, 7168, 16384), "D1": (4096, 4096, 7168)} | SQUARE
SHAPES = F16_SHAPES | FP8_SHAPES

F16_KERNELS = ("gemm_sm90", "gemm_sm90_pipelined", "gemm")
FP8_KERNELS = ("gemm_fp8_sm90",)

# Kernels and shapes of each problem.
PROBLEMS = ({name: (F16_KERNELS, F16_SHAPES) for name in ("f16", "bf16")} |
            {name: (FP8_KERNELS, FP8_SHAPES) for name in ("fp8_rows", "fp8_tensor", "fp8_block")})


# ---- rows -------------------------------------------------------------------------------------

def cases():
    """The keys of all rows, in order: problem, shape and kernel."""
    return [(problem, shape, kernel) for problem, (kernels, shapes) in PROBLEMS.items()
            for shape in shapes for kernel in kernels]


def file_of(options):
    return options.results / "gemm.csv"


def sets(path):
    """Rows by set and key, the newest set last."""
    return results.sets_as_added(results.read(path, tuple(COLUMNS)), lambda row: (row["problem"], row["shape"], row["kernel"]))


def is_complete(rows):
    return all(case in rows for case in cases())


def lacking(rows):
    """The end of a line that names a set, where rows lack."""
    count = sum(case not in rows for case in cases())
    return f"; {count} of {len(cases())} rows lack" if count else ""


def newest(path, partial=False):
    """(set, rows by key) of the newest set that is complete; `partial`: of the newest."""
    candidates = sets(path)
    if not candidates:
        raise results.Malformed(f"{path}: nothing was measured yet")
    for name, rows in reversed(candidates.items()):
        if partial or is_complete(rows):
            return name, rows
    name, rows = list(candidates.items())[-1]
    first = next(case for case in cases() if case not in rows)
    raise results.Malformed(f"{path}: no set is complete; the newest, {name.revision} on {name.device}"
                            f"{lacking(rows)}, first {' '.join(first)} (--partial takes what there is)")


# ---- measuring --------------------------------------------------------------------------------

def runtime(options):
    """libtilus_rt.so: as told, beside the programs, or in the lib folder of their build."""
    if options.runtime:
        return pathlib.Path(options.runtime)
    tools = machine.programs(options)
    places = [tools, tools.parent / "lib"]
    found = [place / "libtilus_rt.so" for place in places if (place / "libtilus_rt.so").exists()]
    if not found:
        raise machine.Failure("no libtilus_rt.so in " + ", ".join(map(str, places)) + ": give --runtime")
    return found[0]


def run(names, options):
    """Measures these problems, or all; bench/gemm.py adds the rows of a shape at once."""
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        raise machine.Failure(f"no problem '{unknown[0]}'; there are {', '.join(PROBLEMS)}")
    path = file_of(options)
    results.repair(path)
    command = [sys.executable, machine.BENCH / "gemm.py", "--tools", machine.programs(options), "--runtime",
               runtime(options), "--out", path, "--revision", machine.revision(options)]
    if names:
        command += ["--problems", ",".join(names)]
    return subprocess.run([str(word) for word in command]).returncode == 0


# ---- tables -----------------------------------------------------------------------------------

def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def speed_cells(row):
    """TFLOP/s and the part of cuBLAS's, at rest and under load."""
    for when in ("rest", "load"):
        yield f"{row[f'{when}_tflops']:.0f}"
        yield tables.number(row[f"{when}_speedup"], ".2f")


def mean_cells(rows):
    """The means of TileLang's shapes, with the least speedup of them."""
    for when in ("rest", "load"):
        speedups = [row[f"{when}_speedup"] for row in rows]
        yield f"{geometric_mean([row[f'{when}_tflops'] for row in rows]):.0f}"
        yield "" if None in speedups else f"{geometric_mean(speedups):.2f}, least {min(speedups):.2f}"


HEAD = ["problem", "kernel", "m x n x k", "TFLOP/s", "x cuBLAS", "TFLOP/s under load", "x cuBLAS under load"]


def rows_of_kernel(rows, problem, kernel, each):
    """Rows of the table: shapes, of TileLang's with `each` alone, and then the mean of these."""
    of_mean = [rows[problem, shape, kernel] for shape in TILELANG if (problem, shape, kernel) in rows]
    for shape, (m, n, k) in PROBLEMS[problem][1].items():
        row = rows.get((problem, shape, kernel))
        if row and (each or shape not in TILELANG):
            yield [problem, kernel, f"{m} x {n} x {k} ({shape})", *speed_cells(row)]
    if len(of_mean) == len(TILELANG):
        yield [problem, kernel, "M0 .. M7, geometric mean", *mean_cells(of_mean)]


def table(rows, each):
    return list(tables.table(HEAD, [line for problem, (kernels, _) in PROBLEMS.items() for kernel in kernels
                                    for line in rows_of_kernel(rows, problem, kernel, each)]))


def show(options):
    name, rows = newest(file_of(options), options.partial)
    print(f"{SUMMARY}; {name.device}, driver {name.driver}, revision {name.revision}\n")
    print("\n".join(table(rows, True)))
    return True


def document_lines(options):
    """The table of docs/gallery.md, and where its rows come from: the newest complete set, or else the newest."""
    path = file_of(options)
    if not path.exists():
        return ["Not measured yet (`bench/run gemm`)."]
    name, rows = newest(path, not any(map(is_complete, sets(path).values())))
    return [*table(rows, False), "",
            f"{name.device}, driver {name.driver}, revision {name.revision}{lacking(rows)}."]


# ---- plot -------------------------------------------------------------------------------------

# Panels: problems in each, whose shapes stand side by side.
PANELS = [("f16", F16_KERNELS, ("f16",)), ("bf16", F16_KERNELS, ("bf16",)),
          ("f8e4m3, scales of rows, tensors and blocks", FP8_KERNELS, ("fp8_rows", "fp8_tensor", "fp8_block"))]


def panel_lines(rows, kernels, problems, when):
    """Number and label of each shape, and TFLOP/s of cuBLAS and of the kernels."""
    number = 0
    for problem in problems:
        for shape, (m, n, k) in PROBLEMS[problem][1].items():
            own = [rows.get((problem, shape, kernel)) for kernel in kernels]
            known = [row[f"cublas_{when}_us"] for row in own if row and row[f"cublas_{when}_us"]]
            library = 2e-6 * m * n * k / known[0] if known else None
            ours = [row[f"{when}_tflops"] if row else None for row in own]
            label = shape if len(problems) == 1 else f"{problem[4:]} {shape}"
            yield [str(number), drawing.quoted(label), *map(drawing.cell, [library, *ours])]
            number += 1


def plot(options):
    name, rows = newest(file_of(options), options.partial)
    heading = (f"{SUMMARY}: at rest and under load\n{name.device}, driver {name.driver}, revision {name.revision}"
               f"{lacking(rows)}\nsquare: 8192 x 8192 x 8192; M0 .. M7, D0 and D1: bench/README.md")
    with tempfile.TemporaryDirectory() as folder:
        for column, (_, kernels, problems) in enumerate(PANELS):
            for place, when in enumerate(("rest", "load")):
                drawing.write(pathlib.Path(folder) / f"panel{place}{column}",
                              panel_lines(rows, kernels, problems, when))
        variables = {"heading": heading, "data": f"{folder}/panel%d%d", "titles": ";".join(p[0] for p in PANELS),
                     "names": ";".join(F16_KERNELS), "eight": FP8_KERNELS[0]}
        drawing.draw_both("gemm", variables, options)
    print(f"gemm: drawn from {len(rows)} rows of {name.revision} on {name.device}")
    return True
