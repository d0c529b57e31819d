#!/usr/bin/env python3
"""Writes bench/results/gpu-check-h200.md from the output of a GPU check.

    test/gpu/record.py CHECK [SANITIZERS]

CHECK is what `scripts/gpu-check run` printed, SANITIZERS what
`test/gpu/run.py --only sanitizers` did, of the same revision; without it
the record says nothing of sanitizers.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "bench" / "results" / "gpu-check-h200.md"

HEAD = """# GPU check on an NVIDIA H200

Command: `scripts/gpu-check pack` on a machine with LLVM, then `scripts/gpu-check run` on the GPU machine (no
LLVM, no network). {where}.
Each case compares the GPU with the interpreter: the programs of test/lit/Run by their ARGS lines (name:line), `print`
those that print, text by text; `types` packs random weights with @transform_b and multiplies (m = n = 64, k = 256,
BK = 32; f16 activations and at most 1e-3 relative Frobenius error, for 5 or more exponent bits bf16 and 1e-2);
`pipelined` does the same with Figure 14, by hand and from pipeline-loops, also at sizes that are no multiples of
the tile; `casts` takes every code of a type to all 56 types, bit for bit. `runtime` are the verdicts and the measurements of
test/gpu/runtime_check. `matmul` are products of the matmul library against sums in f64, by test/gpu/matmul_check:
every type of weights x f16 and bf16 x m = 1, 3, 16, 33 and 128 x groups of 32, 64, 128 and all of k x no, integer and
float zero points, by configurations of all kinds, at most 2e-3 relative Frobenius error, 1e-2 with bf16; and
other activations, results, epilogues, sizes, packing on the device, parts of packed weights, many rows. A line without
a figure is bitwise equal.
{products}"""

PRODUCTS = """
Of these products: {counts}.
"""

SANITIZERS = """The same machine and revision, `test/gpu/run.py --only sanitizers`: compute-sanitizer of CUDA 13.0 on the kernels that
ship and on the first ARGS line of each program, memcheck on some products of `matmul`, too, {clean} of {count} without
an error or hazard. A program with a MEMCHECK or RACECHECK line, which says why, is left out of that tool.

| tool | cases | clean |
|---|---|---|
"""


def verdicts(text):
    """(PASS, FAIL or SKIP, family or "", the line) of each case."""
    return re.findall(r"^(PASS|FAIL|SKIP) ((?:(\w+): )?.*)$", text, re.MULTILINE)


def products(text):
    """What came of the matmul library's products, in all; "" where they were not run."""
    counts = re.findall(r"^(?:PASS|FAIL) matmul: all  (.*)$", text, re.MULTILINE)
    return PRODUCTS.format(counts=counts[-1]) if counts else ""


def sanitizer_table(text):
    """What each tool of compute-sanitizer said of its cases."""
    tools = {}
    for verdict, _, tool in verdicts(text):
        tools.setdefault(tool, []).append(verdict == "PASS")
    runs = [run for tool in tools.values() for run in tool]
    rows = "".join(f"| {name} | {len(tool)} | {sum(tool)} |\n" for name, tool in tools.items())
    return "\n" + SANITIZERS.format(clean=sum(runs), count=len(runs)) + rows


def main():
    check, *sanitizers = (pathlib.Path(name).read_text() for name in sys.argv[1:])
    where = check.splitlines()[0].split("; ", 1)[1]
    cases = [f"{verdict} {name.rstrip()}" for verdict, name, _ in verdicts(check)]
    total = re.findall(r"^\d+ passed, \d+ failed$", check, re.MULTILINE)[-1]
    RESULT.write_text(HEAD.format(where=where, products=products(check)) +
                      "\n```\n" + "\n".join(cases + [total]) + "\n```\n" +
                      "".join(map(sanitizer_table, sanitizers)))
    return 0


if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) in (2, 3) else __doc__)
