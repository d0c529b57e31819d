#!/usr/bin/env python3
"""Runs the unit and lit tests of build directories and counts every case.

The last line is `N passed, M failed` (`, K skipped` for tests that this machine
cannot run). A test program that ends without counts is one failed case. Exits
non-zero when something failed or when nothing ran.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

# Seconds for one unit program, and for a whole lit run.
UNIT_TIMEOUT = 300
LIT_TIMEOUT = 900
# Sanitized programs end at the first report; leaks count.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


class Tally:
    """Case counts, the names of failed cases and the reasons of skipped ones."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def cases(self):
        return self.passed + len(self.failed) + len(self.skipped)

    def line(self):
        text = f"{self.passed} passed, {len(self.failed)} failed"
        return text + (f", {len(self.skipped)} skipped" if self.skipped else "")


def read_junit(path, label):
    """The tally of a JUnit-like file, or None when it holds no counts."""
    try:
        cases = list(xml.parse(path).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        return None
    tally = Tally()
    for case in cases:
        place = case.get("classname", "").replace(".", "/")
        name = " ".join(filter(None, [label, place, case.get("name")]))
        failure, skipped = case.find("failure"), case.find("skipped")
        if failure is not None:
            tally.failed.append(name)
            print(f"--- {name}\n{(failure.text or '').strip()}\n")
        elif skipped is not None:
            tally.skipped.append((name, skipped.get("message", "skipped")))
        else:
            tally.passed += 1
    return tally


def broken(label, why, output):
    """The tally of a runner that did not end as it should."""
    print(f"--- {label}: {why}\n{output}\n")
    tally = Tally()
    tally.failed.append(f"{label}: {why}")
    return tally


def run_unit(program, label):
    """Runs one cmocka program, which may hold several groups of cases."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="xml",
                           CMOCKA_XML_FILE=f"{scratch}/%g.xml")
        try:
            run = subprocess.run([program], env=environment, cwd=scratch,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", timeout=UNIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return broken(label, f"no end after {UNIT_TIMEOUT} s", "")
        except OSError as error:
            return broken(label, str(error), "")
        for report in sorted(Path(scratch).glob("*.xml")):
            tally.add(read_junit(report, label) or broken(label, "unreadable counts", ""))
    if run.returncode != 0 and not tally.failed:
        tally.add(broken(label, f"status {run.returncode}", run.stdout))
    elif tally.cases() == 0:
        tally.add(broken(label, "no counts", run.stdout))
    return tally


def run_lit(lit, build, label, jobs):
    suite = build / "test" / "lit"
    report = suite / "results.xml"
    report.unlink(missing_ok=True)
    try:
        run = subprocess.run([lit, "-q", "-j", str(jobs), "--xunit-xml-output", report, suite],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=LIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        return broken(label, f"no end after {LIT_TIMEOUT} s", "")
    tally = read_junit(report, label) or Tally()
    if tally.cases() == 0 or (run.returncode != 0 and not tally.failed):
        tally.add(broken(label, f"status {run.returncode}", run.stdout))
    return tally


def run_build(build, arguments):
    label = build.name
    tally = Tally()
    for program in (build / "test" / "unit" / "programs.txt").read_text().split():
        tally.add(run_unit(Path(program), f"{label} {Path(program).name}"))
    tally.add(run_lit(arguments.lit, build, f"{label} lit", arguments.jobs))
    print(f"{label}: {tally.line()}")
    return tally


def run_programs(programs):
    """Unit programs of a build that has no others."""
    tally = Tally()
    for program in programs:
        build = program.resolve().parents[2].name
        tally.add(run_unit(program.resolve(), f"{build} {program.name}"))
    if programs:
        print(f"{build}: {tally.line()}")
    return tally


def print_skipped(skipped):
    if not skipped:
        return
    print("\n*** NOT RUN on this machine:")
    for name, reason in skipped:
        print(f"***   {name} ({reason})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lit", required=True, help="path of lit")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--counts", type=Path, action="append", default=[],
                        help="counts of tests that ran before, as JUnit writes them")
    parser.add_argument("--unit", type=Path, nargs="+", default=[],
                        help="unit programs of other builds")
    parser.add_argument("build", type=Path, nargs="+", help="build directories")
    arguments = parser.parse_args()

    for name, value in SANITIZER_OPTIONS.items():
        os.environ.setdefault(name, value)
    total = Tally()
    for path in arguments.counts:
        total.add(read_junit(path, "") or broken(str(path), "no counts", ""))
    total.add(run_programs(arguments.unit))
    for build in arguments.build:
        total.add(run_build(build.resolve(), arguments))
    print_skipped(total.skipped)
    for name in total.failed:
        print(f"FAILED {name}")
    print(total.line(), flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
