"""Prints each line that compares an op's code with that of a copy or mbarrier op,
outside of what may: lib/select, emitters, and the op's own verifier and interpreter."""
import pathlib
import re
import sys

TEST = re.compile(r"(?:[=!]=\s*|\bcase\s+)OP_(copy_async\w*|mbarrier_\w+)")
MAY = re.compile(r"select/|passes/select_instructions\.c$|codegen/emit_\w+\.c$|ir/verify_mbarrier\.c$|interp/(copy|mbarrier)\.c$")

lib = pathlib.Path(sys.argv[1])
files = sorted(f for f in lib.rglob("*.[ch]") if not MAY.search(f.relative_to(lib).as_posix()))
assert len(files) > 100, "where are the sources?"
for path in files:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if TEST.search(line):
            print(f"{path.relative_to(lib.parent)}:{number}: {line.strip()}")
