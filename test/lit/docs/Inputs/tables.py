"""tables.py FILE.md ...: prints rows of tables that Markdown does not show as such, because no header stands above them, text
touches them or they have another number of cells, and paragraphs that begin with a blank. Prints how many rows there are."""
import re
import sys
from pathlib import Path

RULE = re.compile(r"\|(?: *:?-+:? *\|)+")


def cells(line):
    return line.strip().replace("\\|", "").strip("|").count("|") + 1


def check(path):
    """Yields (line, fault) of a document, and the number of rows at the end."""
    lines, fenced, columns, rows, before = path.read_text().splitlines(), False, None, 0, ""
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fenced, columns = not fenced, None
        elif not fenced and line.startswith("|"):
            rows += 1
            below = lines[number] if number < len(lines) else ""
            if columns is None and not RULE.fullmatch(below):
                yield number, "no header above this row"
            elif columns is None and before.strip() and not before.startswith("<!--"):
                yield number, "text touches the table"
            elif columns is not None and cells(line) != columns:
                yield number, f"{cells(line)} cells, not {columns}"
            columns = columns or cells(line)
        elif not fenced:
            if columns and line.strip() and not line.startswith("<!--"):
                yield number, "text touches the table"
            columns = None
            if re.match(r" \S", line):
                yield number, "a blank in front"
        before = line
    yield rows, None


def main():
    faults, rows = 0, 0
    for path in map(Path, sys.argv[1:]):
        for number, fault in check(path):
            if fault:
                print(f"{path.name}:{number}: {fault}")
                faults += 1
            else:
                rows += number
    print(f"{rows} rows")
    sys.exit(bool(faults) or not rows)


main()
