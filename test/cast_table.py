#!/usr/bin/env python3
"""What casts cost: the table in docs/casts.md, from tilus-llc --print-cast-plans.

    test/cast_table.py --tools build/debug/bin            prints the table
    test/cast_table.py --tools build/debug/bin --write    puts it into docs/casts.md
    test/cast_table.py --tools build/debug/bin --check    compares it with docs/casts.md

A row is a source, a column a target, a cell the family, operations of the integer
pipe an element, and after the plus those of all other pipes.
"""
import argparse
import pathlib
import re
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "casts.md"
BEGIN, END = "<!-- plans:begin -->", "<!-- plans:end -->"
TARGETS = ["f16", "bf16", "f32", "i8", "u8", "f8e4m3", "f8e5m2"]
ROW = re.compile(r"(\w+) +(\w+) +32  (.*?) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$")


def plans(tools):
    command = [f"{tools}/tilus-llc", "--print-cast-plans=table", "-mcpu=sm_90a"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    cells = {}
    for source, target, family, integer, *_, total in (ROW.match(l).groups() for l in lines[1:]):
        rest = float(total) - float(integer)
        cells.setdefault(source, {})[target] = f"{family} {float(integer):.2f} + {rest:.2f}"
    return cells


def table(tools):
    lines = ["| from | " + " | ".join(TARGETS) + " |", "|---" * (len(TARGETS) + 1) + "|"]
    for source, cells in plans(tools).items():
        lines.append(f"| {source} | " + " | ".join(cells.get(t, "–") for t in TARGETS) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text, new = DOCUMENT.read_text(), table(options.tools)
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    if options.write:
        DOCUMENT.write_text(f"{head}{BEGIN}\n{new}\n{END}{tail}")
    elif not options.check:
        print(new)
    elif old.strip() != new:
        print("docs/casts.md has another table than test/cast_table.py --write would put there")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
