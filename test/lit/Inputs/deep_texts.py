"""Nests everything that nests, to the limit and past it: deep_texts.py FOLDER [STACK].

Just inside, the text compiles, it runs, and printing it is a fixpoint; one level more, and
200 000 levels, are errors with a place in the text. STACK: KiB of the tools' stacks."""
import os
import re
import resource
import subprocess
import sys

sys.dont_write_bytecode = True
from limit_text import DEEP  # noqa: E402

ERROR = r":\d+:\d+: error: (nested deeper than 256|`.*` gives an expression nested deeper)"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace")


def check(condition, kind, levels, result):
    if not condition:
        sys.exit(f"{kind}, {levels} levels: exit code {result.returncode}\n"
                 f"{result.stderr[:2000]}")


def refused(path, kind, levels):
    with open(path, "w") as out:
        out.write(DEEP[kind][0](levels))
    result = run("tilus-opt", path)
    check(result.returncode == 1 and re.search(re.escape(path) + ERROR, result.stderr), kind,
          levels, result)


def accepted(path, kind, levels):
    with open(path, "w") as out:
        out.write(DEEP[kind][0](levels))
    result = run("tilus-opt", path)
    check(result.returncode == 0, kind, levels, result)
    with open(path + ".printed", "w") as out:
        out.write(result.stdout)
    again = run("tilus-opt", path + ".printed")
    check(again.returncode == 0 and again.stdout == result.stdout, kind, levels, again)
    for level in ("-O0", "-O3"):
        compiled = run("tilus-llc", level, path, "-o", path + ".ptx")
        check(compiled.returncode == 0, kind, levels, compiled)
    if "(%n: i32)" in result.stdout:
        n = {"for": 1, "while": 1, "not": 0}.get(kind, 2)
        for engine in ("interp", "cpu"):
            ran = run("tilus-run", path, "--engine=" + engine, "--arg", f"n={n}")
            check(ran.returncode == 0, kind, levels, ran)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    if len(sys.argv) > 2:       # for the tools, which are started from here
        stack = int(sys.argv[2]) << 10
        resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    for kind, (_, most) in DEEP.items():
        path = os.path.join(sys.argv[1], kind + ".tilus")
        accepted(path, kind, most)
        refused(path, kind, most + 1)
        refused(path, kind, 200000)
    print(f"{len(DEEP)} kinds")


if __name__ == "__main__":
    main()
