"""options.py SOURCE TOOLS FILE.md ...: prints each `--option` in backquotes or in a block of commands that no tool, script,
benchmark or test has, and how many options hold. Fails when one does not."""
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```sh[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--([A-Za-z][\w-]*)")
SOURCES = ("scripts/*", "bench/run", "bench/**/*.py", "bench/**/*.c", "test/**/*.py", "test/**/*.c", "python/tilusc/**/*.py",
           "examples/*.py", "tools/common/*.c")
# How a file says that it has an option; shell scripts name theirs outside of comments.
DEFINED = {".py": r'\badd\w*\(\s*(?:"-\w",\s*)?"--([A-Za-z][\w-]*)', ".c": r'(?:\{|strcmp\(argument, )"(?:--)?([a-z][\w-]*)"'}
# Options of other programs: cmake, cargo, pip and build, podman and docker, nsys, LLVM.
OTHERS = {"component", "crash", "cuda-graph-trace", "gpus", "install", "manifest-path", "nvptx-short-ptr", "offline", "output",
          "output-on-failure", "prefix", "rm", "target-dir", "test-dir", "wheel"}


def known(source, tools):
    names = set(OTHERS)
    for tool in tools.glob("tilus-*"):
        text = subprocess.run([tool, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        names.update(re.findall(r"^ +--?([A-Za-z][\w-]*)", text, re.MULTILINE))
    for pattern in SOURCES:
        for path in source.glob(pattern):
            if path.is_file():
                text = path.read_text(errors="replace")
                names.update(re.findall(DEFINED.get(path.suffix, r"(?m)^[^#\n]*--([A-Za-z][\w-]+)"), text))
    return names


def main():
    source, tools = Path(sys.argv[1]), Path(sys.argv[2])
    names, right, faults = known(source, tools), 0, []
    for path in map(Path, sys.argv[3:]):
        text = path.read_text()
        spans = BLOCK.findall(text) + re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
        for option in (option for span in spans for option in OPTION.findall(span)):
            right += option in names
            faults += [] if option in names else [f"{path.name}: --{option}"]
    print("\n".join([*faults, f"{right} options"]))
    sys.exit(bool(faults) or not right)


main()
