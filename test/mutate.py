#!/usr/bin/env python3
"""Puts deliberate faults into the compiler, one at a time, and runs the tests on each.

    mutate.py [--only NAME,..] [--report FILE]     the faults of test/mutants.txt
    mutate.py --missing --report FILE              the faults that the report lacks
    mutate.py --check                              whether each still fits its file

The report is written after each mutant; rows of mutants that do not run stay, with the
revision that they were measured at, and so do those of killed mutants that survive
their first test with --quick.

Each fault is put into a copy of the sources (BUILD/source), which is built beside it,
by default below build/mutate, without sanitizers. First comes the test that the table
names, then the unit tests and the lit tests of code that is emitted, which all run
without a GPU, up to the first that fails: that one has killed the mutant. With --quick
the first test is the only one. A test that does not end in time has failed, too. Exits
with 1 when a mutant survives, does not fit or does not compile, and when a test fails
without any.
"""
import argparse
import datetime
import filecmp
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "test" / "mutants.txt"
LIT = "/usr/lib/llvm-22/bin/lit"

UNITS = ["test_cast", "test_narrow", "test_codebook", "test_zeros", "test_convert",
         "test_elementwise", "test_cpu"]
LIT_TESTS = ["Run", "codegen", "cpu", "docs/casts.test", "tools/llc-cast-plans.test"]
TOOLS = ["tilus-run", "tilus-opt", "tilus-llc"]
LATER_TARGETS = ["matmul_check", "fake_cuda", "fake_cublas", *UNITS]    # of all tests
FIRST_TIMEOUT = 300     # seconds
REST_TIMEOUT = 900


@dataclass
class Mutant:
    name: str
    family: str = ""
    file: str = ""
    first: str = ""
    builds: str = " ".join(TOOLS)       # what the first test needs, a unit test aside
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)

    def apply(self, text):
        """The text with the fault; None unless its place is there exactly once."""
        old, new = "\n".join(self.old), "\n".join(self.new)
        return text.replace(old, new) if text.count(old) == 1 else None


def read_table():
    mutants, current = [], None
    for line in TABLE.read_text().splitlines() + [""]:
        if not line or line.startswith("#"):
            current = None
        elif line[:2] in ("- ", "+ "):
            (current.old if line[0] == "-" else current.new).append(line[2:])
        else:
            key, value = line.split(" ", 1)
            if key == "mutant":
                current = Mutant(value)
                mutants.append(current)
            else:
                setattr(current, key, value)
    names = [m.name for m in mutants]
    if len(set(names)) != len(names):
        sys.exit("mutate.py: two mutants have one name")
    return mutants


def check(mutants):
    stale = [m for m in mutants if m.apply((ROOT / m.file).read_text()) is None]
    for m in stale:
        print(f"{m.name}: {m.file} does not have its text exactly once")
    print(f"{len(mutants)} mutants, {len(stale)} do not fit")
    return not stale


# ---- the copy ------------------------------------------------------------------


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True,
                          check=True).stdout


def copy_sources(to):
    """Copies what differs, so that times of files that stay do, too; others go."""
    names = git("ls-files", "-co", "--exclude-standard").splitlines()
    for old in {p for p in to.rglob("*") if p.is_file()} - {to / name for name in names}:
        old.unlink()
    for name in names:
        source, target = ROOT / name, to / name
        if not source.is_file():
            continue
        if not target.exists() or not filecmp.cmp(source, target, shallow=False):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def run(command, timeout, **options):
    """The exit code and output; a command that takes too long has -1."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", start_new_session=True,
                          **options) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, process.communicate()[0]


class Build:
    def __init__(self, folder, jobs):
        self.source, self.binary, self.jobs = folder / "source", folder / "build", jobs

    def configure(self):
        self.binary.mkdir(parents=True, exist_ok=True)
        copy_sources(self.source)
        code, output = run(["cmake", "-S", self.source, "-B", self.binary, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Debug"], 600)
        if code:
            sys.exit(output)

    def make(self, targets):
        code, output = run(["cmake", "--build", self.binary, "-j", str(self.jobs), "--target",
                            *targets], 3600)
        return code == 0, output

    def test(self, name, timeout):
        """The name of a test that fails among `name`, or None."""
        if name.startswith("unit/"):
            code, _ = run([self.binary / "test" / name], timeout)
            return None if code == 0 else name if code != -1 else f"{name}, which does not end"
        code, output = run([LIT, "-j", str(self.jobs), "--max-failures=1",
                            self.binary / "test" / "lit" / name], timeout)
        failed = re.search(r"^[A-Z]+: \S+ :: (\S+)", output.replace("PASS: ", "pass: ")
                           .replace("UNSUPPORTED: ", "unsupported: "), re.M)
        return None if code == 0 else failed[1] if failed else f"{name}, which does not end"

    def first_failure(self, first, targets, quick):
        """The first test that fails, in the order of the file's head."""
        ok, output = self.make([Path(first).name] if first.startswith("unit/") else targets)
        if not ok:
            return None, output
        failed = self.test(first, FIRST_TIMEOUT)
        if failed or quick:
            return failed, None
        ok, output = self.make(TOOLS + LATER_TARGETS)
        if not ok:
            return None, output
        for name in [f"unit/{unit}" for unit in UNITS] + LIT_TESTS:
            failed = self.test(name, REST_TIMEOUT)
            if failed:
                return failed, None
        return None, None


# ---- one mutant ----------------------------------------------------------------

LIVES_FIRST = "SURVIVES its first test"
LIVES = ("SURVIVES", LIVES_FIRST, "does not fit its file", "does not compile")


def run_mutant(build, mutant, quick):
    """What killed it, or one of LIVES."""
    path = build.source / mutant.file
    original = path.read_text()
    text = mutant.apply(original)
    if text is None:
        return "does not fit its file"
    path.write_text(text)
    try:
        killer, problem = build.first_failure(mutant.first, mutant.builds.split(), quick)
    finally:
        path.write_text(original)
    if problem:
        print(problem)
        return "does not compile"
    return killer or (LIVES_FIRST if quick else "SURVIVES")


# ---- the report ----------------------------------------------------------------


def read_report(path):
    """The rows of a report, by mutant: what killed it, and the revision that it was at."""
    text = path.read_text() if path.exists() else ""
    rows = re.findall(r"^\| [^|]* \| (\S+) \| `[^|]*` \| (.*) \| (\S+) \|$", text, re.M)
    return {name: (what, revision) for name, what, revision in rows}


def merge(known, results):
    """The rows of both; new ones win, but a first test alone does not bring the killed to life."""
    killed = {name for name, (what, _) in known.items() if what not in LIVES}
    return {**known, **{name: row for name, row in results.items()
                        if name not in killed or row[0] != LIVES_FIRST}}


def write_report(path, results):
    """Writes the table; rows that it has already stay where there are no new ones."""
    results = merge(read_report(path), results)
    rows = [(m, *results[m.name]) for m in read_table() if m.name in results]
    killed = sum(what not in LIVES for _, what, _ in rows)
    lines = [
        "# Mutants", "",
        "Written by `test/mutate.py --report`; the faults are in `test/mutants.txt`.", "",
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores: "
        f"**{killed} of {len(rows)} killed**, {100 * killed / len(rows):.1f} %.", "",
        "| family | mutant | file | killed by | at revision |", "|---|---|---|---|---|"]
    lines += [f"| {m.family} | {m.name} | `{m.file}` | {what} | {revision} |"
              for m, what, revision in rows]
    path.write_text("\n".join(lines) + "\n")


# ---- the run -------------------------------------------------------------------


def prepare(options):
    """The build without a mutant, whose tests pass."""
    build = Build(Path(options.build).resolve(), options.jobs)
    build.configure()
    ok, output = build.make(TOOLS + LATER_TARGETS)
    if not ok:
        sys.exit(output)
    if not options.skip_clean:
        failed, _ = build.first_failure("unit/test_cast", TOOLS, options.quick)
        if failed:
            sys.exit(f"mutate.py: {failed} fails without any mutant")
    return build


def run_all(options, mutants):
    revision = git("describe", "--always", "--dirty", "--abbrev=12").strip()
    build = prepare(options)
    results = {}
    for number, mutant in enumerate(mutants, 1):
        begin = time.time()
        what = run_mutant(build, mutant, options.quick)
        results[mutant.name] = what, revision
        print(f"{number:3}/{len(mutants)} {mutant.family:12} {mutant.name:36} {what} "
              f"({time.time() - begin:.0f} s)", flush=True)
        if options.report:
            write_report(Path(options.report), results)
    killed = sum(what not in LIVES for what, _ in results.values())
    print(f"{killed} of {len(results)} killed")
    return killed == len(results)


def choose(options, mutants):
    """The mutants that the options ask for."""
    only = set(filter(None, options.only.split(",")))
    unknown = only - {m.name for m in mutants}
    if unknown:
        sys.exit(f"mutate.py: no mutant {', '.join(sorted(unknown))}")
    known = read_report(Path(options.report)) if options.missing else {}
    return [m for m in mutants if (not only or m.name in only) and m.name not in known]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--missing", action="store_true",
                        help="run the mutants that the report lacks")
    parser.add_argument("--quick", action="store_true", help="run first tests alone")
    parser.add_argument("--report", help="a Markdown file to write")
    parser.add_argument("--build", default=str(ROOT / "build" / "mutate"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--skip-clean", action="store_true",
                        help="do not run the tests without a mutant first")
    options = parser.parse_args()
    if options.missing and not options.report:
        parser.error("--missing needs --report")
    return options


def main():
    options = read_options()
    mutants = read_table()
    return check(mutants) if options.check else run_all(options, choose(options, mutants))


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
