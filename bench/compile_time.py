#!/usr/bin/env python3
"""Times tilus-llc on the sample kernels, on one core.

    bench/compile_time.py [--tools build/release/bin] [--nvcc nvcc] [--runs 50] [--record]

Prints the median and the spread of each phase that --time reports, and of the
whole process; then, where there is an nvcc, of whole processes that compile
Figure 14, ours and nvcc on bench/cuda/matmul_pipelined.cu, taking turns. With
--record the tables also go, with command, date, machine and revision, to
bench/results/compile-time.md (the newest run first).
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "compile-time.md"
KERNELS = ["matmul_f16_i6", "matmul_f16_i6_scaled", "transform_b", "matmul_pipelined"]
PHASES = ["parse", "passes", "LLVM", "PTX"]
TARGET = "sm_90a"


def one_run(llc, kernel, output):
    start = time.perf_counter()
    result = subprocess.run([llc, "--time", f"-mcpu={TARGET}", kernel, "-o", output],
                            stderr=subprocess.PIPE, text=True, check=True)
    wall = 1e3 * (time.perf_counter() - start)
    times = dict(re.findall(r"^(\w+)\s+([\d.]+) ms", result.stderr, re.MULTILINE))
    phases = [float(times[name]) for name in PHASES]
    return phases + [sum(phases), wall]


def measure(llc, kernel, runs):
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "out.ptx")
        one_run(llc, kernel, output)            # warms the file cache
        return list(zip(*(one_run(llc, kernel, output) for _ in range(runs))))


def median_and_range(samples):
    return f"{statistics.median(samples):.2f} ({min(samples):.2f}-{max(samples):.2f})"


def table(llc, runs):
    columns = PHASES + ["compile, all phases", "process, with start-up"]
    lines = ["| kernel | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in KERNELS:
        samples = measure(llc, ROOT / "kernels" / f"{name}.tilus", runs)
        cells = [median_and_range(s) for s in samples]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def wall_time(command):
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return 1e3 * (time.perf_counter() - start)


def comparison(llc, nvcc, runs):
    """Whole processes on the same kernel, in turns, so that a slow moment hits all."""
    ours = ROOT / "kernels" / "matmul_pipelined.tilus"
    theirs = ROOT / "bench" / "cuda" / "matmul_pipelined.cu"
    with tempfile.TemporaryDirectory() as scratch:
        to = lambda name: ["-o", os.path.join(scratch, name)]
        commands = {
            "tilus-llc, PTX": [llc, f"-mcpu={TARGET}", ours, *to("a.ptx")],
            "nvcc -ptx": [nvcc, f"-arch={TARGET}", "-ptx", theirs, *to("b.ptx")],
            "tilus-llc --filetype=obj, cubin": [llc, f"-mcpu={TARGET}", "--filetype=obj", ours,
                                                *to("a.cubin")],
            "nvcc -cubin": [nvcc, f"-arch={TARGET}", "-cubin", theirs, *to("b.cubin")],
        }
        rounds = [[wall_time(c) for c in commands.values()] for _ in range(runs + 1)][1:]
    samples = dict(zip(commands, zip(*rounds)))
    medians = [statistics.median(s) for s in samples.values()]
    return "\n".join(["| Figure 14, whole process | ms |", "|---|---|",
                      *(f"| {name} | {median_and_range(s)} |" for name, s in samples.items()),
                      "", f"nvcc takes {medians[1] / medians[0]:.1f} times as long to PTX, "
                      f"{medians[3] / medians[2]:.1f} times to a cubin."]) + "\n"


def find_nvcc(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def revision():
    run = lambda *command: subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    dirty = "+changes" if run("git", "status", "--porcelain", "--", "lib", "tools") else ""
    return run("git", "rev-parse", "--short", "HEAD").strip() + dirty


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    text = (f"## {datetime.date.today()}, {revision()}\n\n"
            f"`bench/compile_time.py --runs {options.runs}`, {TARGET}, one core of a shared "
            f"{processor()}; ms, median (least-most).\n\n"
            f"{table(str(options.tools / 'tilus-llc'), options.runs)}\n")
    nvcc = find_nvcc(options.nvcc)
    if nvcc:
        version = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
        text += ("\n" + comparison(str(options.tools / "tilus-llc"), nvcc, options.runs) +
                 f"nvcc is {re.search('release ([0-9.]+)', version)[1]}.\n")
    print(text)
    if options.record:
        title = "# Compile time of tilus-llc\n\n"
        old = RESULTS.read_text().removeprefix(title) if RESULTS.exists() else ""
        RESULTS.write_text(title + text + ("\n" + old if old else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
