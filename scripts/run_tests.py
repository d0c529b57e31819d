#!/usr/bin/env python3
"""Runs lit test suites, shows how far they are, and counts every case.

Each case of a unit program counts, each lit file and each fuzz target. The last line is
`N passed, M failed` (`, K skipped` for tests that did not run, which are named above it). Of a
failed lit test it shows the command that failed, not those before it. Exits non-zero when a test
failed or when none ran. Limits are those of each test: test/formats.py.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Seconds between two lines where the output is no terminal.
PLAIN_INTERVAL = 30
# How many of the longest tests are named.
LONGEST = 12
FAILURES = {"FAIL", "TIMEOUT", "UNRESOLVED", "XPASS"}
RESULT = re.compile(r"([A-Z]+): (.*) \((\d+) of (\d+)\)$")
REPORT = re.compile(r"\*+ TEST '.*' (?:FAILED|(RESULTS)) \*+$")
END = re.compile(r"\*{10,}$")
SUMMARY = re.compile(r"(Failed|Timed Out|Unresolved|Unexpectedly Passed) Tests \(|Testing Time: ")


class Progress:
    """One line that moves on a terminal, a line now and then elsewhere."""

    def __init__(self):
        self.moves = sys.stdout.isatty()
        self.start = self.last = time.monotonic()
        self.failed = 0

    def update(self, code, name, done, total):
        self.failed += code in FAILURES
        now = time.monotonic()
        if not self.moves and now < self.last + PLAIN_INTERVAL:
            return
        self.last = now
        minutes, seconds = divmod(int(now - self.start), 60)
        text = f"{done} of {total} tests after {minutes}:{seconds:02}"
        text += f", {self.failed} failed" if self.failed else ""
        if self.moves:
            width = shutil.get_terminal_size().columns - 1
            text = f"\r\033[K{f'{text}: {name}'[:width]}"
        print(text, end="" if self.moves else "\n", flush=True)

    def clear(self):
        if self.moves:
            print("\r\033[K", end="", flush=True)


def from_last_command(lines):
    """What lit says of a failed test, without the commands before the one that failed."""
    last = 0
    for i, line in enumerate(lines):
        if line.startswith(("# RUN: at line", "RUN: at line")):
            last = i
    kept = lines[:1] + lines[last:] if last else lines
    return [line for line in kept if not line.startswith("# executed command: ")]


def reports_shortened(lines):
    """The lines, with each report of a failure as soon as it is whole, shortened, and without those of times."""
    block = []
    for line in lines:
        if not block and not REPORT.match(line):
            yield line
            continue
        block.append(line)
        if END.match(line):
            if not REPORT.match(block[0])[1]:
                yield "".join(from_last_command(block))
            block = []
    yield from block


def follow(lines):
    """Passes on what lit says of failures while it runs, and shows the progress."""
    progress, summary = Progress(), False
    for line in reports_shortened(lines):
        result = RESULT.match(line)
        summary = summary or SUMMARY.match(line)
        if result:
            code, name, done, total = result.groups()
            progress.update(code, name, int(done), int(total))
        if not (summary or line.startswith(("-- Testing: ", "*** MICRO-TEST: ")) or
                result and code not in FAILURES):
            progress.clear()
            print(line, end="", flush=True)
    progress.clear()


def run_lit(arguments, report):
    command = [arguments.lit, "-v", f"-j{arguments.jobs}", "-o", report]
    command += [f"--param={param}" for param in ["times", *arguments.param]]
    command += ["--filter", arguments.filter] if arguments.filter else []
    with subprocess.Popen([*command, *arguments.suite], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, errors="replace") as lit:
        follow(lit.stdout)
    return lit.returncode


def read_tests(report):
    try:
        return json.loads(report.read_text())["tests"]
    except (OSError, ValueError):
        return []


def cases_of_programs(tests):
    """Name, code and output of each case; a program has its cases, unless it broke itself. lit lists a program
    behind its cases, whose names begin with the program's."""
    own = []
    for test in tests:
        if ":" in test["name"].partition(" :: ")[2]:
            own.append(test)
            continue
        yield from own
        broke = test["code"] in FAILURES and not any(case["code"] in FAILURES for case in own)
        if broke or not own:
            yield test
        own = []


def say_times(tests):
    """The processor time, and where most of it went."""
    times = {test["name"]: test["metrics"]["cpu"] for test in tests if test.get("metrics")}
    longest = sorted(times, key=times.get, reverse=True)[:LONGEST]
    print(f"\n{sum(times.values()):.0f} s of processor time, the longest tests:")
    for name in longest:
        print(f"{times[name]:6.0f}  {name}")


def say_skipped(skipped):
    """Names the tests that did not run, for each reason."""
    for reason in sorted({case["output"] for case in skipped}):
        names = [case["name"] for case in skipped if case["output"] == reason]
        needs = reason.partition("unavailable features: ")[2]
        why = "scripts/check --full runs them" if needs == "full" else \
            f"this machine lacks {needs}" if needs else reason
        print(f"\n*** NOT RUN: {len(names)} test{'s' if len(names) > 1 else ''}; {why}:")
        for name in names:
            print(f"***   {name}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lit", required=True, help="path of lit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at once")
    parser.add_argument("--filter", help="run only tests whose names match REGEX",
                        metavar="REGEX")
    parser.add_argument("--param", action="append", default=[], help="NAME=VALUE for lit")
    parser.add_argument("--note", action="append", default=[],
                        help="a line to end with, such as what else does not run")
    parser.add_argument("suite", nargs="+", help="BUILD/test/unit, BUILD/test/lit, ...")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "results.json")
        status = run_lit(arguments, report)
        tests = read_tests(report)
    cases = list(cases_of_programs(tests))
    failed = [case["name"] for case in cases if case["code"] in FAILURES]
    skipped = [case for case in cases if case["code"] == "UNSUPPORTED"]
    if status and not failed:
        failed = [f"lit ended with status {status}"]
    say_times(tests)
    say_skipped(skipped)
    for note in arguments.note:
        print(f"\n*** {note}")
    for name in failed:
        print(f"FAILED {name}")
    passed = sum(case["code"] in ("PASS", "XFAIL") for case in cases)
    print(f"{passed} passed, {len(failed)} failed" +
          (f", {len(skipped)} skipped" if skipped else ""), flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
