#!/usr/bin/env python3
"""Which op is proved to work where: the table of ops in docs/status.md.

    test/op_table.py --tools build/debug/bin [--ptxas ptxas]            prints the table
    test/op_table.py --tools build/debug/bin [--ptxas ptxas] --write    puts it into docs/status.md
    test/op_table.py --tools build/debug/bin [--ptxas ptxas] --check    compares it with docs/status.md

Each op of `tilus-opt --list-ops` gets a witness: an ARGS line of a program of
test/lit/Run whose text has the op. A cell is filled by what this run saw:

    parse     the witness prints, and prints the same when that is read again
    verify    the test that expects an error in a line with the op
    interp    tilus-run computes the witness, with what it expects
    sm_...    ptxas assembles the witness's PTX, without a warning
    H200      the recorded GPU check has the witness's name as passed
"""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STATUS = ROOT / "docs" / "status.md"
GPU_RECORD = ROOT / "bench" / "results" / "gpu-check-h200.md"
BEGIN, END = "<!-- op table:begin -->", "<!-- op table:end -->"
TARGETS = ["sm_80", "sm_90a"]
# The op that opens a line of program text, after its results.
OPENING_OP = re.compile(r"^\s*(?:%\w+(?:, *%\w+)* = )?([a-z_]\w*)", re.MULTILINE)


class Witness:
    """One ARGS line of a program: its name in the GPU check, and its options."""

    def __init__(self, path, number, arguments):
        self.path, self.name, self.arguments = path, f"{path.stem}:{number}", arguments
        pairs = list(zip(arguments, arguments[1:]))
        self.defines = [word for pair in pairs if pair[0] == "-D" for word in pair]


def run(*command, stdin=None):
    """The standard output of a command, or None if it fails or warns."""
    result = subprocess.run([str(word) for word in command], input=stdin, capture_output=True,
                            text=True, timeout=300)
    return None if result.returncode or "warning" in result.stderr else result.stdout


def all_ops(options):
    return re.findall(r"^\| `(\w+)`", run(options.opt, "--list-ops"), re.MULTILINE)


def all_witnesses():
    for path in sorted((ROOT / "test" / "lit" / "Run").glob("*.tilus")):
        lines = re.findall(r"^// ARGS:(.*)$", path.read_text(), re.MULTILINE)
        for number, line in enumerate(lines, 1):
            yield Witness(path, number, shlex.split(line))


def canonical_text(options, witness):
    return run(options.opt, *witness.defines, witness.path)


def choose_witnesses(options, ops, passed_on_gpu):
    """{op: its witness}: one that the GPU passed, if there is one, of few other ops."""
    best = {}
    for witness in all_witnesses():
        text = canonical_text(options, witness)
        found = set(OPENING_OP.findall(text or "")) & set(ops)
        rank = (witness.name not in passed_on_gpu, len(found))
        for op in found:
            if op not in best or rank < best[op][0]:
                best[op] = (rank, witness)
    return {op: entry[1] for op, entry in best.items()}


def error_tests():
    """{op: the test that expects an error in a line of that op}"""
    tests = {}
    for path in sorted((ROOT / "test" / "lit" / "ir").glob("*.tilus")):
        for line in path.read_text().splitlines():
            match = OPENING_OP.match(line)
            if "expected-error" in line and match:
                tests.setdefault(match[1], path.stem)
    return tests


# ---- what a witness shows ------------------------------------------------------

def shows_parse(options, witness):
    text = canonical_text(options, witness)
    return text is not None and run(options.opt, "-", stdin=text) == text


def shows_interp(options, witness):
    return run(options.run, witness.path, "--engine=interp", *witness.arguments) is not None


def shows_target(options, witness, target):
    with tempfile.TemporaryDirectory() as scratch:
        ptx = pathlib.Path(scratch) / "w.ptx"
        compiled = run(options.llc, f"-mcpu={target}", "-Wno-all", *witness.defines,
                       witness.path, "-o", ptx)
        return compiled is not None and run(options.ptxas, f"-arch={target}", ptx, "-o",
                                            ptx.with_suffix(".cubin")) is not None


def evidence(options, witness):
    """What one witness shows, in the order of the table's columns."""
    return [shows_parse(options, witness), shows_interp(options, witness),
            *(shows_target(options, witness, target) for target in TARGETS)]


def table(options):
    ops = all_ops(options)
    passed_on_gpu = set(re.findall(r"^PASS (\S+:\d+)", GPU_RECORD.read_text(), re.MULTILINE))
    witnesses = choose_witnesses(options, ops, passed_on_gpu)
    distinct = {w.name: w for w in witnesses.values()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        shown = dict(zip(distinct, pool.map(lambda w: evidence(options, w), distinct.values())))
    errors = error_tests()
    yes = lambda fact: "yes" if fact else ""
    lines = ["| op | witness | parse | verify | interp | " + " | ".join(TARGETS) + " | H200 |",
             "|---" * (6 + len(TARGETS)) + "|"]
    for op in ops:
        name = witnesses[op].name if op in witnesses else ""
        parse, *rest = shown.get(name, [False] * (2 + len(TARGETS)))
        cells = [name, yes(parse), errors.get(op, ""), *map(yes, rest), yes(name in passed_on_gpu)]
        lines.append(f"| `{op}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.opt, options.llc, options.run = (options.tools / name for name in
                                             ("tilus-opt", "tilus-llc", "tilus-run"))
    made = table(options)
    head, rest = STATUS.read_text().split(BEGIN)
    old, tail = rest.split(END)
    if options.write:
        STATUS.write_text(head + BEGIN + "\n" + made + END + tail)
    elif options.check:
        if old.strip() != made.strip():
            print(made, "docs/status.md has another table: run test/op_table.py --write", sep="\n")
            return 1
    else:
        print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
