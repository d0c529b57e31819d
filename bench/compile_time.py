#!/usr/bin/env python3
"""Times tilus-llc on the sample kernels, on one core.

    bench/compile_time.py [--tools build/release/bin] [--runs 50] [--record]

Prints the median and the spread of each phase that --time reports, and of the
whole process. With --record the table also goes, with command, date, machine
and revision, to bench/results/compile-time.md (the newest run first).
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
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


def table(llc, runs):
    columns = PHASES + ["compile, all phases", "process, with start-up"]
    lines = ["| kernel | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in KERNELS:
        samples = measure(llc, ROOT / "kernels" / f"{name}.tilus", runs)
        cells = [f"{statistics.median(s):.2f} ({min(s):.2f}-{max(s):.2f})" for s in samples]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    text = (f"## {datetime.date.today()}, {revision()}\n\n"
            f"`bench/compile_time.py --runs {options.runs}`, {TARGET}, one core of a shared "
            f"{processor()}; ms, median (least-most).\n\n"
            f"{table(str(options.tools / 'tilus-llc'), options.runs)}\n")
    print(text)
    if options.record:
        title = "# Compile time of tilus-llc\n\n"
        old = RESULTS.read_text().removeprefix(title) if RESULTS.exists() else ""
        RESULTS.write_text(title + text + ("\n" + old if old else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
