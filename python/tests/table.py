"""The table of docs/formats.md: which format and type was compared with what, and maps how.

Tests record rows, and check them against formats.csv. `python3 table.py --write` runs the tests, keeps rows of
packages that are not installed, and writes formats.csv and the table; --check compares these two."""
import csv
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CSV = os.path.join(HERE, "formats.csv")
PAGE = os.path.join(HERE, "..", "..", "docs", "formats.md")
BEGIN, END = "<!-- table:begin -->\n", "<!-- table:end -->\n"
KEY = ("format", "zeros", "type", "package")
COLUMNS = KEY + ("version", "values", "matmul")
WRITE = "TILUS_FORMATS_TABLE"       # set while rows are collected, not checked

made = {}       # key: version, values, ways of to_matmul


def how_mapped(weight, refused):
    """Says how to_matmul takes a weight."""
    for name, options in (("exact", {}), ("rounded", {"approximate": True}), ("padded", {"pad": True}),
                          ("padded, rounded", {"pad": True, "approximate": True})):
        try:
            weight.to_matmul(**options)
            return name
        except refused:
            continue
    return "no"


def zeros_of(weight):
    if weight.minimums is not None:
        return "minimums"
    if weight.zeros is None:
        return "none"
    return "integers" if weight.zeros.dtype.kind in "iu" else "floats"


def row_of(weight, package, version, values, refused):
    name = weight.weights + (" codebook" if weight.codebook is not None else "")
    return (str(weight.source["format"]), zeros_of(weight), name, package), version, values, how_mapped(weight, refused)


def read():
    with open(CSV, newline="", encoding="utf-8") as file:
        return {tuple(row[x] for x in KEY): row for row in csv.DictReader(file)}


_known = None


def check(test, key, version, values, mapped):
    """Checks a row of a test, or collects it."""
    global _known
    if os.environ.get(WRITE):
        made.setdefault(key, [version, set(), set()])
        made[key][1].add(values)
        made[key][2].add(mapped)
        return
    _known = read() if _known is None else _known
    test.assertIn(key, _known, "formats.csv is stale: python3 table.py --write")
    for name, value in (("values", values), ("matmul", mapped)):
        test.assertIn(value, _known[key][name].split("; "), f"formats.csv is stale for {key}: table.py --write")


def render(rows):
    """Returns the table in Markdown: types that differ in nothing else share a line."""
    lines = {}
    for key in sorted(rows):
        row = rows[key]
        package = row["package"] + (" " + row["version"] if row["version"] else "")
        shared = (row["format"], row["zeros"], package, row["values"], row["matmul"])
        lines.setdefault(shared, []).append(row["type"])
    text = "| format | types | zero points | compared with | values | `to_matmul` |\n|---|---|---|---|---|---|\n"
    for (format_, zeros, package, values, matmul), types in sorted(lines.items()):
        text += f"| {format_} | {', '.join(types)} | {zeros} | {package} | {values} | {matmul} |\n"
    return text


def page(rows):
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text, text[:first] + render(rows) + text[last:]


def write():
    os.environ[WRITE] = "1"
    suite = unittest.defaultTestLoader.discover(HERE, top_level_dir=HERE)
    if not unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful():
        return 1
    here = {key[3] for key in made}
    rows = {key: row for key, row in (read() if os.path.exists(CSV) else {}).items() if key[3] not in here}
    for key, (version, values, mapped) in made.items():
        rows[key] = dict(zip(COLUMNS, (*key, version, "; ".join(sorted(values)), "; ".join(sorted(mapped)))))
    with open(CSV, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))
    text = page(rows)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


def main():
    if sys.argv[1:] == ["--write"]:
        return write()
    old, new = page(read())
    if old != new:
        print("docs/formats.md is not what formats.csv says: python3 table.py --write", file=sys.stderr)
    return int(old != new)


if __name__ == "__main__":
    sys.modules["table"] = sys.modules["__main__"]      # that tests import
    sys.exit(main())
