"""names.py SOURCE FILE.md ...: prints each file and each name in `backquotes` that SOURCE lacks, and how
many it has. Fails when one is missing.

A file is a path or its end, `lib/ir/ir.h` or `ir.h`, where `*` stands for any part. A name of C, or of the
Python package, has an underscore: `emit_region`; so does a library: `libtilus_rt`.
"""
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
ENDING = r"\.(?:c|h|def|inc|py|test|tilus|txt|cmake|bash)"
FOLDER = r"(?:lib|test|tools|kernels|examples|bench|scripts|editors|cmake)/"
FILE = re.compile(rf"(?:[\w*-]+/)*[\w*.-]+{ENDING}|{FOLDER}[\w*./-]+")
NAME = re.compile(r"[A-Za-z]\w*_\w+")


def tree(source):
    for top in source.iterdir():
        if top.name not in ("build", "dist") and not top.name.startswith("."):
            yield from top.rglob("*") if top.is_dir() else [top]


def main():
    source, found, missing = Path(sys.argv[1]), 0, 0
    files = list(tree(source))
    words = {path.stem for path in files}
    for path in files:
        if path.suffix in (".c", ".h", ".def", ".inc") or path.name == "CMakeLists.txt" or path.match("tilusc/*.py"):
            words.update(re.findall(r"\w+", path.read_text(errors="replace")))
    for document in map(Path, sys.argv[2:]):
        for quoted in QUOTED.findall(FENCE.sub("", document.read_text())):
            if FILE.fullmatch(quoted):
                there = any(path.match(quoted.rstrip("/")) for path in files)
            elif NAME.fullmatch(quoted):
                there = quoted in words or quoted.removeprefix("lib") in words
            else:
                continue
            if there:
                found += 1
            else:
                print(f"{document.name}: {quoted}")
                missing += 1
    print(f"{found} names are there")
    sys.exit(1 if missing or not found else 0)


main()
