#!/usr/bin/env python3
"""Measures other systems on the problems of bench/run, by the same graph protocol, for
bench/peers.csv:

    bench/peers/run.py --systems humming,machete --part types-shapes --m 1,16 >>peers.csv
    bench/peers/run.py --systems humming --part batch --compile       only fills the caches

A row is the fastest schedule of a system whose product is right; the note names it. Needs torch
and the systems themselves: bench/README.md says which.
"""
import argparse
import csv
import datetime
import importlib
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from harness import parts                       # noqa: E402

TOLERANCE = 1e-2
SCREEN = 1.03           # times the best estimate: the schedules that are measured from rest


def cases(part, sizes, weights):
    """(problem, sizes) that the systems may serve: A in f16, zero points of integers."""
    for case in parts.PARTS[part].cases:
        problem = case.problem
        chosen = [m for m in sizes or case.sizes if m in case.sizes or sizes]
        if problem.activations == "f16" and problem.zeros != "float" and \
                (not weights or problem.weights in weights):
            yield problem, chosen


def right_launches(system, m, a, reference, timer):
    """Estimates of the launches whose products are right: (us, tag, launch)."""
    import operands as ops
    for tag, launch in system.launches(m, a):
        try:
            errors = [ops.relative_error(launch(i), reference)
                      for i in (0, len(system.copies) - 1)]
            if all(error <= TOLERANCE for error in errors):
                yield timer.estimate(launch, len(system.copies)), tag, launch
            else:
                print(f"# wrong: {tag}, errors {errors}", file=sys.stderr, flush=True)
        except Exception as error:
            print(f"# failed: {tag}: {str(error)[:160]}", file=sys.stderr, flush=True)
            if "CUDA error" in str(error):
                raise


def fastest(system, m, a, reference, timer):
    """(us, chain, tag), or None where no product is right."""
    found = sorted(right_launches(system, m, a, reference, timer), key=lambda each: each[0])
    near = [each for each in found if each[0] <= SCREEN * found[0][0]][:2]
    own = [each for each in found if each[1] == "own choice" and each not in near]
    count = len(system.copies)
    timed = [(timer.rested(launch, count), tag, launch) for _, tag, launch in near + own]
    if not timed:
        return None
    us, tag, launch = min(timed, key=lambda each: each[0])
    return us, timer.chained(launch, count, a), tag


def measure(problem, sizes, modules, timer, write):
    import operands as ops
    import torch
    plain = ops.Operands(problem)
    for module in modules:
        if not module.serves(problem):
            continue
        try:
            system = module.System(plain)
            for m in sizes:
                a = plain.activations(m)
                result = fastest(system, m, a, plain.product(a, system.offset), timer)
                if result:
                    write(module.name(), problem, m, *result)
        except Exception:
            print(f"# {module.name()}: {problem}", file=sys.stderr)
            traceback.print_exc()
        system = None
        torch.cuda.empty_cache()


def source():
    import torch
    driver = pathlib.Path("/proc/driver/nvidia/version")
    words = driver.read_text().split() if driver.exists() else []
    version = next((word for word in words if word[:1].isdigit() and "." in word), "unknown")
    return f"bench/peers/run.py; one {torch.cuda.get_device_name()}; driver {version}; torch " \
           f"{torch.__version__}; graph protocol, from rest"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", default="humming,machete")
    parser.add_argument("--part", default="types-shapes", choices=parts.PARTS)
    parser.add_argument("--m", help="in place of the part's")
    parser.add_argument("--weights", help="only these types")
    parser.add_argument("--large", action="store_true", help="only 8192 x 57344")
    parser.add_argument("--seconds", type=float, default=1e9, help="no problem begins after")
    parser.add_argument("--compile", action="store_true", help="only compile kernels")
    options = parser.parse_args()
    modules = [importlib.import_module("peer_" + name) for name in options.systems.split(",")]
    sizes = [int(m) for m in options.m.split(",")] if options.m else None
    weights = options.weights.split(",") if options.weights else None
    chosen = [case for case in cases(options.part, sizes, weights)
              if not options.large or (case[0].k, case[0].n) == parts.LARGE]
    if options.compile:
        for module in modules:
            count, failed = module.compile_all([(p, m) for p, ms in chosen for m in ms])
            print(f"{module.name()}: {count} kernels, {len(failed)} that there are not")
        return
    from protocol import Timer
    timer, origin, begin = Timer(), source(), time.monotonic()
    today, rows = datetime.date.today().isoformat(), csv.writer(sys.stdout, lineterminator="\n")

    def write(name, problem, m, us, chain, tag):
        rows.writerow([name, problem.weights, problem.group, problem.zeros, problem.k, problem.n,
                       m, f"{us:.1f}", f"{chain:.1f}", origin, today, tag.replace(",", ";")])
        sys.stdout.flush()
    for problem, ms in chosen:
        if time.monotonic() - begin > options.seconds:
            print(f"# out of time before {problem.weights} {problem.k} x {problem.n}",
                  file=sys.stderr)
            break
        measure(problem, ms, modules, timer, write)


if __name__ == "__main__":
    main()
