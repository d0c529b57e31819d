"""The part that needs no GPU: configurations of the template to PTX, on this processor."""
import concurrent.futures
import datetime
import os
import pathlib
import statistics
import tempfile
import time

from . import machine, pack, parts, results

COUNT = 200
PROBLEM = parts.problem("u4", parts.LARGE)


def configurations(program):
    """Values of -D, of configurations spread evenly over the space for m = 1 and 16."""
    found = []
    for m in (1, 16):
        text = machine.command([program, "--list-space", f"--weights={PROBLEM.weights}",
                                f"--n={PROBLEM.n}", f"--k={PROBLEM.k}", f"--m={m}"])
        found += [line.split("\t")[2].split() for line in text.splitlines()]
    if len(found) < COUNT:
        raise machine.Failure(f"the space has {len(found)} configurations, not {COUNT}")
    return [found[i * len(found) // COUNT] for i in range(COUNT)]


def compile_one(llc, defines, path):
    begin = time.monotonic()
    words = [llc, pack.TEMPLATE, f"-mcpu={pack.TARGET}", "--program", "matmul", "-o", path]
    for define in defines:
        words += ["-D", define]
    machine.command(words)
    return time.monotonic() - begin


def revision(options):
    return options.revision or machine.git_revision()


def run(part, options):
    tools = pathlib.Path(options.tools or machine.ROOT / "build" / "release" / "bin")
    todo = configurations(tools / "matmul_bench")
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{number}.ptx" for number in range(len(todo))]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            times = list(pool.map(compile_one, [tools / "tilus-llc"] * len(todo), todo, paths))
        seconds = time.monotonic() - begin
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = [date, machine.processor(), os.cpu_count(), revision(options), len(todo),
              pack.TARGET, f"{seconds:.2f}", f"{1000 * statistics.median(times):.1f}"]
    results.append(options.results / f"{part.name}.csv", [",".join(map(str, fields))],
                   results.COMPILE_COLUMNS)
    print(f"{part.name}: {len(todo)} configurations in {seconds:.1f} s on {os.cpu_count()} "
          "processors", flush=True)
    return True
