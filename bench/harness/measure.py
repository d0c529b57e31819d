"""Parts that run on a GPU: each row once a set, added to its file as soon as it is there."""
import subprocess
import sys
import threading
import time

from . import machine, parts, results

PROBLEM_SECONDS = 300           # that one problem may take


def flags(problem, sizes):
    return [f"--weights={problem.weights}", f"--activations={problem.activations}",
            f"--n={problem.n}", f"--k={problem.k}", f"--group={problem.group}",
            f"--zeros={problem.zeros}", "--m=" + ",".join(str(m) for m in sizes)]


def describe(problem):
    zeros = "" if problem.zeros == "none" else f" with {problem.zeros} zero points"
    return f"{problem.weights} x {problem.activations}{zeros}, k x n = {problem.k} x {problem.n}"


def device_set(program, revision):
    """The set that this machine's rows belong to."""
    device, driver = machine.command([program, "--device"]).strip().split(",")
    return results.Set(device, driver, revision)


def missing(part, path, name):
    """Cases of the part with the sizes that the set has no rows of."""
    have = results.sets(results.read(path)).get(name, {})
    for case in part.cases:
        sizes = [m for m in case.sizes if (case.problem, m) not in have]
        if sizes:
            yield parts.Case(case.problem, sizes)


def add_rows(process, path):
    """Rows as the program prints them; how many."""
    count = 0
    header = process.stdout.readline().rstrip("\n")
    if header and header != ",".join(results.COLUMNS):
        raise machine.Failure("matmul_bench and harness/results.py disagree on the columns")
    for line in process.stdout:
        results.append(path, [line.rstrip("\n")])
        count += 1
    return count


def measure_case(words, path, environment):
    """Runs the program on one problem; the number of rows and, or None, what went wrong."""
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment) as process:
        watch = threading.Timer(PROBLEM_SECONDS, process.kill)
        watch.start()
        try:
            count = add_rows(process, path)
            said = process.stderr.read().strip()
        except BaseException:
            process.kill()
            raise
        finally:
            watch.cancel()
    if process.returncode == 0:
        return count, None
    return count, said or f"exit code {process.returncode}"


def run(part, options):
    """Measures what the set lacks; whether all of it went well."""
    program = machine.programs(options) / "matmul_bench"
    revision = machine.revision(options)
    name = device_set(program, revision)
    path = options.results / f"{part.name}.csv"
    results.repair(path)
    todo = list(missing(part, path, name))
    total = len(part.cases)
    print(f"{part.name}: {total - len(todo)} of {total} problems are there for {revision} on "
          f"{name.device}", flush=True)
    common = [program, f"--kernels={machine.kernels(options)}", f"--revision={revision}",
              *part.options]
    failed, begin, environment = 0, time.monotonic(), machine.environment()
    for number, case in enumerate(todo, total - len(todo) + 1):
        words = [str(word) for word in common + flags(case.problem, case.sizes)]
        since = time.monotonic()
        count, error = measure_case(words, path, environment)
        print(f"{part.name}: [{number}/{total}] {describe(case.problem)}: {count} rows, "
              f"{time.monotonic() - since:.1f} s", flush=True)
        if error:
            failed += 1
            print(f"{part.name}: error: {error}", file=sys.stderr, flush=True)
    print(f"{part.name}: {failed} of {len(todo)} problems failed, "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return failed == 0
