"""lit formats whose tests have limits of their own.

A limit is processor time of a test's processes together, so that a test ends alike on an
idle and on a loaded machine. Processes that wait for ever use none: a test that has used less
than a second for `idle` seconds has hung. lit's own limit needs psutil and counts wall-clock time.

    lit --param cpu=SECONDS --param idle=SECONDS ...    changes the limits
    lit --param times -o FILE ...                       writes the processor times

In an emulator, which is slow, only some tests run, and all of EMULATED_ALL with
`--param emulated=all`.
"""
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import lit.formats
import lit.Test

CPU_SECONDS = 600
IDLE_SECONDS = 300
POLL_SECONDS = 2
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
# Tests of builds that an emulator runs: names below the suite.
EMULATED = re.compile(r"test_fiber$|Run/atomic-extremes\.tilus$")
EMULATED_ALL = re.compile(r"test_|Run/")
# Sanitized programs end at the first report; leaks count.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


def read_stat(pid):
    """The parent and the processor time, with that of reaped children, or None."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2:].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / TICKS


def descendants():
    """Processor times of the processes below this one, by process id."""
    stats = {int(name): read_stat(name) for name in os.listdir("/proc") if name.isdigit()}
    stats = {pid: stat for pid, stat in stats.items() if stat}
    found, last = {}, {os.getpid()}
    while last:
        last = {pid for pid, (parent, _) in stats.items() if parent in last}
        found.update((pid, stats[pid][1]) for pid in last)
    return found


class Watch:
    """Kills the processes below this one when a limit is reached, and keeps the reason."""

    def __init__(self, cpu, idle):
        self.cpu, self.idle = cpu, idle
        self.reason = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        # Processes that outlive their parents stay below this one.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.start = self.used = 0
        self.start = self.seconds()
        self.last_busy = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def seconds(self):
        reaped = os.times()
        live = sum(descendants().values())
        return live + reaped.children_user + reaped.children_system - self.start

    def run(self):
        while not self.ended.wait(POLL_SECONDS):
            self.reason = self.reason or self.reached()
            if self.reason:
                kill(descendants())

    def reached(self):
        seconds, now = self.seconds(), time.monotonic()
        if seconds >= self.used + 1:
            self.used, self.last_busy = seconds, now
        if seconds > self.cpu:
            return f"no end after {self.cpu} s of processor time, the limit of a test"
        if now > self.last_busy + self.idle:
            return f"no end, and no work for {self.idle} s, the limit of a test"
        return None


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def watched(execute, lit_config):
    """The result of `execute()`, or TIMEOUT when it reached a limit."""
    limits = [int(lit_config.params.get(name, seconds))
              for name, seconds in (("cpu", CPU_SECONDS), ("idle", IDLE_SECONDS))]
    with Watch(*limits) as watch:
        result = execute()
        cpu = watch.seconds()
    if watch.reason:
        result = lit.Test.Result(lit.Test.TIMEOUT, f"{result.output}\n{watch.reason}\n")
    if "times" in lit_config.params:
        result.addMetric("cpu", lit.Test.toMetricValue(round(cpu, 2)))
    return result


def chosen(config, lit_config):
    """The regex of the names of tests that run, or None: every test."""
    if not config.emulator:
        return None
    return EMULATED_ALL if lit_config.params.get("emulated") == "all" else EMULATED


def is_chosen(path, regex):
    return regex is None or regex.match("/".join(path)) is not None


class ShTest(lit.formats.ShTest):
    """lit's shell tests."""

    def __init__(self, execute_external=True, regex=None):
        super().__init__(execute_external)
        self.regex = regex

    def getTestsInDirectory(self, suite, path, lit_config, local_config):
        for test in super().getTestsInDirectory(suite, path, lit_config, local_config):
            if is_chosen(test.path_in_suite, self.regex):
                yield test

    def execute(self, test, lit_config):
        return watched(lambda: super(ShTest, self).execute(test, lit_config), lit_config)


class Programs(lit.formats.FileBasedTest):
    """Tests that are programs, each with a result that `run` finds."""

    def __init__(self, programs, run, regex=None):
        self.programs = [p for p in programs if is_chosen([Path(p).name], regex)]
        self.run = run

    def getTestsInDirectory(self, suite, path, lit_config, local_config):
        # lit asks for each folder of the build below the suite's, too.
        for program in () if path else self.programs:
            yield lit.Test.Test(suite, path + (Path(program).name,), local_config, program)

    def execute(self, test, lit_config):
        return watched(lambda: self.run(test, lit_config), lit_config)


def run(command, environment, folder=None):
    """Status and output; a pipe would stay open for what the command leaves running."""
    with tempfile.TemporaryFile() as output:
        status = subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT).returncode
        output.seek(0)
        return status, output.read().decode(errors="replace")


def run_fuzz(test, lit_config):
    """A lap of one libFuzzer target."""
    lap = [sys.executable, test.config.run_fuzz, "--jobs=1",
           f"--seconds={lit_config.params.get('fuzz_seconds', 60)}",
           test.config.tilus_build_dir, test.path_in_suite[-1][len("fuzz_"):]]
    status, text = run(lap, test.config.environment)
    return lit.Test.Result(lit.Test.FAIL if status else lit.Test.PASS, text)


def run_cmocka(test, _):
    """One program; its cases, which it writes as XML, a file for a group, are results within."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = dict(test.config.own_environment, CMOCKA_MESSAGE_OUTPUT="xml",
                           CMOCKA_XML_FILE=f"{scratch}/%g.xml")
        status, text = run([*getattr(test.config, "emulator", []), test.file_path], environment, scratch)
        cases = read_cases(sorted(Path(scratch).glob("*.xml")))
    failures = [f"{name}: {case.output}" for name, case in cases.items() if case.code.isFailure]
    if status == 0 and cases and not failures:
        result = lit.Test.Result(lit.Test.PASS)
    else:
        why = f"status {status}" if status else "no case ran"
        result = lit.Test.Result(lit.Test.FAIL, "\n".join([text, *failures, why]))
    result.microResults = cases
    return result


def read_cases(reports):
    """Results by name of the cases in the XML files that cmocka writes, one a group."""
    cases = {}
    for report in reports:
        try:
            found = xml.parse(report).getroot().iter("testcase")
        except xml.ParseError as error:
            found = []
            cases[report.stem] = lit.Test.Result(lit.Test.FAIL, f"unreadable counts: {error}")
        for case in found:
            cases[f"{report.stem}:{case.get('name')}"] = read_case(case)
    return cases


def read_case(case):
    failure, skipped = case.find("failure"), case.find("skipped")
    if failure is not None:
        return lit.Test.Result(lit.Test.FAIL, (failure.text or "").strip())
    if skipped is not None:
        return lit.Test.Result(lit.Test.UNSUPPORTED, skipped.get("message", "the program skips it"))
    return lit.Test.Result(lit.Test.PASS)
