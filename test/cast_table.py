#!/usr/bin/env python3
"""What casts cost: the tables in docs/casts.md, from tilus-llc --print-cast-plans.

    test/cast_table.py --tools build/debug/bin            prints the tables
    test/cast_table.py --tools build/debug/bin --write    puts them into docs/casts.md
    test/cast_table.py --tools build/debug/bin --check    compares them with docs/casts.md

Rows of the first table are sources, columns are targets; of the second one, casts
that round, rows are targets and columns sources; of the third one, casts and decodes
from storage orders, rows are sources. A cell has the family, operations of
the integer pipe an element, and after the plus those of all other pipes.
"""
import argparse
import pathlib
import re
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "casts.md"
WIDE = ["f16", "bf16", "f32"]
TARGETS = ["f16", "bf16", "f32", "i8", "u8", "f8e4m3", "f8e5m2"]
ORDERS = ["f16", "f16 decode", "bf16", "bf16 decode"]
ROW = re.compile(r"(\w+) +(packed\(\w+\) )?(finite )?(\w+) +32  (.*?) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$")


def plans(tools):
    """The cells of plain order and of storage orders, by source and target. Of codes that
    are said to be finite where that makes another plan."""
    command = [f"{tools}/tilus-llc", "--print-cast-plans=table", "-mcpu=sm_90a"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    plain, packed = {}, {}
    for row in (ROW.match(line).groups() for line in lines[1:]):
        source, order, _, target, family, integer, *_, total = row
        rest = float(total) - float(integer)
        cells = (packed if order else plain).setdefault(source, {})
        cells[target + " decode" * (family == "bare")] = f"{family} {float(integer):.2f} + {rest:.2f}"
    return plain, packed


def table(corner, columns, rows, cell):
    lines = [[corner, *columns], *([r, *(cell(r, c) or "–" for c in columns)] for r in rows)]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text.insert(1, "|---" * (len(columns) + 1) + "|")
    return "\n".join(text)


def tables(tools):
    """The text between the marks of each table, by the name in the marks."""
    cells, packed = plans(tools)
    narrow = [t for t in cells if t not in WIDE]
    return {
        "plans": table("from", TARGETS, narrow, lambda r, c: cells[r].get(c)),
        "rounding": table("to", WIDE, narrow, lambda r, c: cells[c].get(r)),
        "orders": table("from", ORDERS, packed, lambda r, c: packed[r].get(c)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = old = DOCUMENT.read_text()
    for name, new in tables(options.tools).items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{new}\n{end}{rest.split(end)[1]}"
        if not options.write and not options.check:
            print(new)
    if options.write:
        DOCUMENT.write_text(text)
    elif options.check and text != old:
        print("docs/casts.md has other tables than test/cast_table.py --write would put there")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
