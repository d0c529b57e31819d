#!/usr/bin/env python3
"""Counts which lines of lib/ and runtime/ the tests run.

    coverage.py --gcov GCOV --lit LIT BUILD [--report FILE] [--lines] [--no-run]

Runs the unit and lit tests of BUILD, a build with -DTILUS_COVERAGE=ON, and adds up
what gcov tells of every object. Prints the lines of each folder, the files that are
covered least and, with --lines, the lines that never ran. Exits with 1 when a test
failed, fewer than 90 % of the lines of lib/ ran, or an op's verify_, interp_ or emit_
function never did.
"""
import argparse
import collections
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST = 90.0            # percent of lib/
SHOWN = 15              # files


def run_tests(options):
    for counts in options.build.rglob("*.gcda"):
        counts.unlink()
    return subprocess.run([sys.executable, ROOT / "scripts" / "run_tests.py", "--jobs",
                           str(options.jobs), "--lit", options.lit,
                           options.build / "test" / "unit", options.build / "test" / "lit"],
                          check=False).returncode == 0


def read_counts(options):
    """Lines {file: {number: count}} and functions {name: count}; what several objects
    hold, as a header's lines, is added up."""
    lines = collections.defaultdict(collections.Counter)
    functions = collections.Counter()
    for notes in sorted((options.build / "lib").rglob("*.gcno")):
        found = subprocess.run([options.gcov, "--json-format", "--stdout", notes],
                               capture_output=True, text=True, check=True, cwd=notes.parent)
        for text in found.stdout.splitlines():
            counts = json.loads(text)
            for file in counts["files"]:
                path = (Path(counts["current_working_directory"]) / file["file"]).resolve()
                if not path.is_relative_to(ROOT):
                    continue
                for line in file["lines"]:
                    lines[path.relative_to(ROOT)][line["line_number"]] += line["count"]
                for function in file["functions"]:
                    functions[function["name"]] += function["execution_count"]
    return lines, functions


def percent(ran, all_lines):
    return 100 * ran / all_lines if all_lines else 100.0


def missing_ops(functions):
    ops = re.findall(r"^OP\((\w+),", (ROOT / "lib/ir/ops.def").read_text(), re.M)
    return len(ops), [f"{kind}_{op}" for op in ops for kind in ("verify", "interp", "emit")
                      if not functions[f"{kind}_{op}"]]


def tables(lines, ops, missing):
    """Markdown, and the percentage of lib/."""
    folders = collections.defaultdict(lambda: [0, 0])
    files = []
    for path, counts in lines.items():
        ran, count = sum(map(bool, counts.values())), len(counts)
        files.append((percent(ran, count), count - ran, path))
        for name in {str(path.parent), path.parts[0]} - {"include/tilus"}:
            folders[name][0] += ran
            folders[name][1] += count
    text = ["| folder | lines | of them run |", "|---|---|---|"]
    text += [f"| `{name}` | {count} | {percent(ran, count):.1f} % |"
             for name, (ran, count) in sorted(folders.items()) if name != "include"]
    text += ["", f"Of {ops} ops, the functions `verify_`, `interp_` and `emit_` that never ran: "
             f"{', '.join(missing) or 'none'}."]
    text += ["", "| least covered | lines that never ran | of them run |", "|---|---|---|"]
    text += [f"| `{path}` | {never} | {part:.1f} % |"
             for part, never, path in sorted(files)[:SHOWN] if never]
    return "\n".join(text) + "\n", percent(*folders["lib"])


def print_never(lines):
    for path, counts in sorted(lines.items()):
        source = (ROOT / path).read_text().splitlines()
        for number, count in sorted(counts.items()):
            if not count:
                print(f"{path}:{number}: {source[number - 1].strip()}")


def revision():
    return subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"],
                          capture_output=True, text=True, check=False).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcov", default="gcov")
    parser.add_argument("--lit", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--no-run", action="store_true", help="take the counts that are there")
    parser.add_argument("build", type=Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    passed = options.no_run or run_tests(options)
    lines, functions = read_counts(options)
    ops, missing = missing_ops(functions)
    text, part = tables(lines, ops, missing)
    if options.lines:
        print_never(lines)
    print(text)
    if options.report:
        options.report.write_text(f"{datetime.date.today()}, revision {revision()}\n\n{text}")
    return 0 if passed and not missing and part >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
