#!/usr/bin/env python3
"""Runs libFuzzer targets of a build directory, each for some seconds, and reports.

Prints a line for each target: seconds, executions, and inputs kept because they reached new
code, or the input that it failed on. Exits non-zero when a target failed. Targets are the
programs BUILD/test/fuzz/fuzz_*, seeds are test/fuzz/corpus/*, and inputs, logs and findings
stay in BUILD/laps.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "test" / "fuzz"
# Seconds for one input, MiB for a process, seconds past its time in which a target ends.
INPUT_TIMEOUT = 240
MEMORY_MIB = 3072
GRACE = 480
# Characters of the log that are shown after a failure.
LOG_TAIL = 6000
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
# Folders that seed a target beside its corpus; larger programs would make it slow.
MORE_SEEDS = {"parse": ["kernels", "test/lit/ir"]}


class Lap:
    """The run of one target, with its log and its failure."""

    def __init__(self, target, arguments):
        self.target = target
        self.arguments = arguments
        self.folder = arguments.build / "laps" / target
        self.log = self.folder / "log"
        self.seconds = 0
        self.failure = None

    def command(self):
        kept, findings = self.folder / "inputs", self.folder / "findings"
        if not self.arguments.keep:
            shutil.rmtree(kept, ignore_errors=True)
        for folder in kept, findings:
            folder.mkdir(parents=True, exist_ok=True)
        seeds = [FUZZ / "corpus" / self.target]
        seeds += [ROOT / folder for folder in MORE_SEEDS.get(self.target, [])]
        dictionary = FUZZ / f"{self.target}.dict"
        return [self.arguments.build / "test" / "fuzz" / f"fuzz_{self.target}",
                f"-seed={self.arguments.seed}", f"-max_total_time={self.arguments.seconds}",
                f"-timeout={INPUT_TIMEOUT}", f"-rss_limit_mb={MEMORY_MIB}",
                "-print_final_stats=1", f"-artifact_prefix={findings}/",
                *([f"-dict={dictionary}"] if dictionary.exists() else []),
                kept, *(seed for seed in seeds if seed.is_dir())]

    def run(self):
        start = time.monotonic()
        command = [str(part) for part in self.command()]
        try:
            with self.log.open("w") as log:
                status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT,
                                        timeout=self.arguments.seconds + GRACE).returncode
            if status != 0:
                self.failure = self.found() or f"status {status}"
        except subprocess.TimeoutExpired:
            self.failure = f"no end within {self.arguments.seconds + GRACE} s"
        self.seconds = time.monotonic() - start
        print(self.line(), flush=True)
        return self

    def text(self):
        return self.log.read_text(errors="replace")

    def found(self):
        """The input that ended the run; slow inputs are written before it."""
        written = re.findall(r"Test unit written to (\S+)", self.text())
        return f"found {written[-1]}" if written else None

    def executions(self):
        pattern = r"^(?:stat::number_of_executed_units: |#)(\d+)"
        counts = re.findall(pattern, self.text(), re.M)
        return int(counts[-1]) if counts else 0

    def line(self):
        kept = len(list((self.folder / "inputs").iterdir()))
        text = f"{self.target}: {self.seconds:.0f} s, {self.executions()} executions, " \
               f"{kept} inputs kept"
        if not self.failure:
            return text
        return f"{self.text()[-LOG_TAIL:]}\n{text}; FAILED: {self.failure}, log {self.log}"


def find_targets(build):
    programs = (build / "test" / "fuzz").glob("fuzz_*")
    return sorted(program.name[len("fuzz_"):] for program in programs)


def run_laps(arguments):
    with ThreadPoolExecutor(arguments.jobs) as pool:
        return list(pool.map(lambda target: Lap(target, arguments).run(), arguments.targets))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="of each target (60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    parser.add_argument("--seed", type=int, default=1, help="of libFuzzer (1)")
    parser.add_argument("--keep", action="store_true",
                        help="go on with the inputs that earlier laps kept")
    parser.add_argument("build", type=Path, help="directory of the fuzz preset")
    parser.add_argument("targets", nargs="*", help="parse, layout, ... (default: all)")
    arguments = parser.parse_intermixed_args()
    arguments.build = arguments.build.resolve()
    known = find_targets(arguments.build)
    unknown = [target for target in arguments.targets if target not in known]
    if unknown or not known:
        parser.error(f"no target {', '.join(unknown)} among {', '.join(known) or 'none'}")
    arguments.targets = arguments.targets or known
    return arguments


def main():
    arguments = parse_arguments()
    for name, value in SANITIZER_OPTIONS.items():
        os.environ.setdefault(name, value)
    laps = run_laps(arguments)
    failed = [lap for lap in laps if lap.failure]
    print(f"{len(laps) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
