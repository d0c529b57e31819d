"""Rows that nobody measured, of a device that is none, to draw and to resume from. Times
follow from sizes by some rule.

    made_up.py BENCH_FOLDER PART FILE [--revision=TEXT] [--date=TEXT] [--first=N]

writes the rows of a part, or the first N of them.
"""
import argparse
import pathlib
import sys

DEVICE, DRIVER = "No device", "0.0"


def line(problem, m, revision, date="2000-01-01T00:00:00Z"):
    bits = int(problem.weights.lstrip("uif").split("e")[0])
    size = problem.k * problem.n
    least = 2.5 + (size * bits / 8 + 2 * m * (problem.k + problem.n)) / 4.57e6
    library = 2.5 + size * (2 + m / 512) / 4.3e6
    us = least * (1.05 + m / 300 + 0.3 / bits)
    fields = [date, DEVICE, DRIVER, revision, *problem, m, "none", f"{us:.3f}",
              f"{us - 1:.3f}", f"{us + 3:.3f}", f"{us + 2:.3f}", size * bits // 8, f"{least:.3f}",
              f"{least / us:.4f}", f"{library:.3f}", "nk", f"{library / us:.3f}", "1e-4"]
    return ",".join(map(str, fields))


def product_line(case, revision):
    """A row of gemm.csv: the best kernel at 1.05 of cuBLAS, and M0 .. M7 from 1.00 on; no cuBLAS for
    the square of bf16."""
    from harness import gemm
    problem, shape, kernel = case
    m, n, k = gemm.SHAPES[shape]
    speedup = {"gemm_sm90_pipelined": 0.9, "gemm": 0.6}.get(kernel, 1.05)
    speedup += int(shape[1]) / 100 - 0.05 if shape[0] == "M" else 0
    fields = [kernel, problem, shape, m, n, k, "1.5e-4"]
    for library in (706 if shape == "square" else 702, 600):
        rate = library * speedup
        beside = (f"{2e-6 * m * n * k / library:.2f}", f"{speedup:.3f}")
        fields += [f"{2e-6 * m * n * k / rate:.2f}", f"{rate:.1f}",
                   *(beside if (problem, shape) != ("bf16", "square") else ("", ""))]
    return ",".join(map(str, fields + [DEVICE, DRIVER, "2.0", revision]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("part")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--revision", default="made-up")
    parser.add_argument("--date", default="2000-01-01T00:00:00Z")
    parser.add_argument("--first", type=int)
    options = parser.parse_args()
    sys.path.insert(0, options.bench)
    from harness import gemm, parts, results
    if options.part == "gemm":
        results.append(options.file, [product_line(case, options.revision) for case in gemm.cases()[:options.first]],
                       tuple(gemm.COLUMNS))
        return
    rows = parts.rows(parts.PARTS[options.part])[:options.first]
    results.append(options.file, [line(problem, m, options.revision, options.date)
                                  for problem, m in rows])


if __name__ == "__main__":
    main()
