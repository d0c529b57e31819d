"""Assembles every program of the folders or files given that has a dot_async, its own or an imported
one, with each set of parameters of its `// ARGS:` lines (with --short, one of each program: other
types, tiles and masks are left out), and prints ptxas's remarks of serialized products (C75xx),
warnings and errors; then how many modules there were."""

import os
import re
import shlex
import subprocess
import sys
import tempfile


def sources(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in os.walk(path) if os.path.isdir(path) else []:
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(".tilus"))


def parameter_sets(text):
    """The distinct lists of options for the compiler."""
    found = []
    for line in re.findall(r"^// ARGS: (.*)$", text, re.M):
        words, kept = shlex.split(line), []
        for option, value in zip(words, words[1:]):
            if option == "--program":
                kept.append(f"--program={value}")
            elif option == "-D":
                kept.append(f"-D{value}")
        if kept not in found:
            found.append(kept)
    return found or [[]]


def one_of_each_program(sets):
    """The first set of each program."""
    first = {}
    for options in sets:
        first.setdefault(tuple(o for o in options if o.startswith("--program=")), options)
    return list(first.values())


def has_products(path, depth=0):
    """Says whether a file, or one that a whole program imports, has a dot_async."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    imports = re.findall(r'^ *import "(.*)"', text, re.M) if depth or "// ARGS:" in text else []
    return "dot_async" in text or any(has_products(os.path.join(os.path.dirname(path), name), depth + 1)
                                      for name in imports)


def remarks(tools, ptxas, source, options, folder):
    ptx = os.path.join(folder, "a.ptx")
    compiler = [os.path.join(tools, "tilus-llc"), "-mcpu=sm_90a", "-o", ptx, source] + options
    made = subprocess.run(compiler, capture_output=True, text=True)
    if made.returncode:
        return [made.stderr]
    command = [ptxas, "-arch=sm_90a", "-v", ptx, "-o", os.path.join(folder, "a.cubin")]
    out = subprocess.run(command, capture_output=True, text=True)
    return [line for line in (out.stdout + out.stderr).splitlines()
            if re.search(r"\(C7\d+\)|warning|error|fatal", line, re.I)]


def main():
    short = "--short" in sys.argv
    tools, ptxas, *paths = [word for word in sys.argv[1:] if word != "--short"]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in sources(paths):
            if not has_products(source):
                continue
            with open(source, encoding="utf-8") as file:
                sets = parameter_sets(file.read())
            for options in one_of_each_program(sets) if short else sets:
                count += 1
                for line in remarks(tools, ptxas, source, options, folder):
                    print(f"{os.path.basename(source)} {' '.join(options)}: {line}")
    print(f"{count} modules")


if __name__ == "__main__":
    main()
