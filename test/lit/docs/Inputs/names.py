"""names.py SOURCE FILE.md ...: prints each file and each name in `backquotes` that SOURCE lacks, and how
many it has. Fails when one is missing.

A file is a path or its end, `lib/ir/ir.h` or `ir.h`, where `*`, NAME and PART stand for any part; the document may have the
reader write it. A name of C, or of the Python package, has an underscore: `emit_region`; so does a library: `libtilus_rt`.
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
WRITTEN = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
# What others call things, and the compiler an argument without a name.
OTHERS = {"curandStatePhilox4_32_10_t", "VLLM_PLUGINS", "example_mha_fwd_bhsd_wgmma_pipelined.py", "setmaxnreg.inc", "arg_0"}


def tree(source):
    for top in source.iterdir():
        if top.name not in ("build", "dist") and not top.name.startswith("."):
            yield from top.rglob("*") if top.is_dir() else [top]


def main():
    source, found, missing = Path(sys.argv[1]), 0, 0
    files = list(tree(source))
    words = {path.stem for path in files}
    for path in files:
        if path.suffix in (".c", ".h", ".def", ".inc", ".py", ".rs") or path.name in ("CMakeLists.txt", "pyproject.toml"):
            words.update(re.findall(r"\w+", path.read_text(errors="replace")))
    for document in map(Path, sys.argv[2:]):
        text = document.read_text()
        written = set(WRITTEN.findall(text))
        for quoted in QUOTED.findall(FENCE.sub("", text)):
            if quoted in OTHERS or quoted in written:
                continue
            if FILE.fullmatch(quoted):
                pattern = re.sub(r"NAME|PART", "*", quoted.rstrip("/"))
                there = any(path.match(pattern) for path in files)
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
