"""fenced_blocks.py OUT FILE.md ...: writes the fenced code blocks of Markdown
files into the folder OUT, one file each: <stem>-<n>.tilus, <stem>-<n>.c.

A block marked `tilus-fragment` holds statements. It is written as the program
that they make in place of the line `// ...` of the last `tilus` block before
that has one. Fails when no block is found.
"""
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"^ *// \.\.\.\n", re.MULTILINE)


def programs(text):
    """Yields (suffix, text) of each block that can be checked."""
    frame = None
    for kind, block in BLOCK.findall(text):
        if kind == "tilus" and PLACE.search(block):
            frame = block
        if kind == "tilus-fragment":
            if frame is None:
                sys.exit("a tilus-fragment before any block with a line `// ...`")
            yield "tilus", PLACE.sub(lambda _, b=block: b, frame, count=1)
        elif kind in ("tilus", "c"):
            yield kind, block


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        path = Path(name)
        found = list(programs(path.read_text()))
        if not found:
            sys.exit(f"{path}: no code blocks")
        for i, (suffix, text) in enumerate(found, 1):
            (out / f"{path.stem}-{i}.{suffix}").write_text(text)


main()
