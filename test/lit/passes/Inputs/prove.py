"""Runs check-hazards, strictly, on every program of the given folders: all of a file,
and the program that each of its ARGS lines names; of files that are proved only of those
with -D, as the check of the whole, which the first fault ends, has the others. Those listed as unproved must be that, without a race that is sure."""
import argparse
import pathlib
import re
import subprocess

PROGRAM = re.compile(r"^program @(\w+).*?^\}\n?", re.MULTILINE | re.DOTALL)


def runs(text, proved):
    """Pairs of a text and its definitions."""
    found = {(text, ())}
    for line in re.findall(r"^// ARGS:(.*)$", text, re.MULTILINE):
        name = re.search(r"--program[ =]@?(\w+)", line)
        defines = tuple(re.findall(r"-D (\S+)", line))
        if proved and not defines:
            continue
        only = text if not name else PROGRAM.sub(
            lambda p: p[0] if p[1] == name[1] else "", text)
        found.add((only, defines))
    return sorted(found)


def errors(text, defines, folder):
    command = ["tilus-opt", "-", "--passes=infer-layouts,canonicalize,check-hazards{strict}",
               "-o", "/dev/null", f"-I{folder}"] + ["-D" + d for d in defines]
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    found = [line for line in run.stderr.splitlines() if "error: " in line]
    return found or ([] if run.returncode == 0 else [f"error: exit status {run.returncode}"])


parser = argparse.ArgumentParser()
parser.add_argument("folders", nargs="+", type=pathlib.Path)
parser.add_argument("--unproved", default="")
options = parser.parse_args()
known = options.unproved.split(",")
proved, unproved = 0, []
for path in sorted(p for folder in options.folders for p in folder.glob("*.tilus")):
    found = [e for text, defines in runs(path.read_text(), path.name not in known) for e in errors(text, defines, path.parent)]
    proved += not found
    if found:
        unproved.append(path.name)
    if path.name not in known or any("error: not proved: " not in e for e in found):
        print(*[path.name + ": " + e for e in found], sep="\n", end="\n" if found else "")
print(proved, "proved")
print("unproved:", *unproved)
