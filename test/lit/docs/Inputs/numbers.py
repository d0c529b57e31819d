"""numbers.py SOURCE: compares tables that people write with the CSV of bench/results that they show: each number is that of a
row, rounded to as many digits. Prints those that are not, and how many are. `bench/run readme --check` compares the tables
that it writes."""
import csv
import re
import sys
from pathlib import Path

NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Checker:
    def __init__(self, source):
        self.source, self.right, self.faults = source, 0, []

    def rows(self, name):
        with (self.source / "bench/results" / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def table(self, document, head):
        """Returns the cells of the table's rows behind `head`."""
        text = (self.source / document).read_text()
        lines = text[text.index(head):].splitlines()
        rows = []
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            rows.append([cell.strip() for cell in line.strip("|\n").split("|")])
        return rows

    def compare(self, place, text, values):
        """One of the values must round to the text, a number or nothing."""
        values = [float(value) for value in values if value not in ("", None)]
        if not text and not values:
            return
        digits = len(text.partition(".")[2])
        if NUMBER.fullmatch(text) and any(abs(float(text) - value) <= 0.5001 * 10 ** -digits for value in values):
            self.right += 1
        else:
            self.faults.append(f"{place}: {text or 'nothing'}, not {' or '.join(map(str, values)) or 'nothing'}")


def models(checker):
    """README's whole models: milliseconds of the revisions that stand below."""
    text = (checker.source / "README.md").read_text()
    below = text[text.index("## Whole models"):text.index("## How fast")]
    revisions = re.findall(r"\b[0-9a-f]{8}\b", below)[:2]
    head = re.search(r"^\| \| (f16 .*)\|$", below, re.MULTILINE)
    types = [cell.split()[0] for cell in head[1].split("|") if cell.strip()]
    rows = [row for row in checker.rows("e2e") if row["model"] == "Llama-3.3-70B" and row["batch"] == "1"
            and row["revision"] in revisions]
    steps = (("decode", "us", 1e-3), ("decode", "fraction", 1), ("prefill", "us", 1e-3))
    for cells, (step, column, factor) in zip(checker.table("README.md", head[0]), steps, strict=True):
        for weights, cell in zip(types, cells[1:], strict=True):
            found = [float(row[column]) * factor for row in rows if (row["weights"], row["step"]) == (weights, step)]
            checker.compare(f"README.md: {cells[0]}, {weights}", cell, found)
    mixture = re.search(r"takes ([\d.]+) ms at batch 1, ([\d.]+) at 4, ([\d.]+) at 16 and ([\d.]+) at 64", below)
    revision = re.search(r"\(revision ([0-9a-f]{8}), .*\)\.", below)[1]
    for batch, cell in zip((1, 4, 16, 64), mixture.groups(), strict=True):
        wanted = ("Qwen3-30B-A3B", "u4", "decode", str(batch), revision)
        found = [float(row["us"]) * 1e-3 for row in checker.rows("e2e")
                 if tuple(row[key] for key in ("model", "weights", "step", "batch", "revision")) == wanted]
        checker.compare(f"README.md: mixture at {batch}", cell, found)


def attention(checker, kind, after, revision, without=()):
    text = (checker.source / "docs/gallery.md").read_text()
    head = "| rows | | us | TFLOP/s | cuDNN | flash | x cuDNN |"
    at = text.index(head, text.index(after))
    rows = {row["case"]: row for row in checker.rows("attention") if row["kind"] == kind and row["revision"] == revision}
    for line in text[at:].splitlines()[2:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in without:
            continue
        row = rows[cells[0] + ("c" if cells[1].startswith("causal") else "")]
        for cell, column in zip(cells[2:], ("us", "tflops", "cudnn_us", "flash_us", "speedup"), strict=True):
            checker.compare(f"docs/gallery.md: {kind} {row['case']}, {column}", cell, [row[column]])


def size(text):
    base, power = re.fullmatch(r"(\d+)(?:\^(\d+))?", text).groups()
    return int(base) ** int(power or 1)


def bigint(checker):
    rows = {(row["batch"], int(row["a_bytes"]), int(row["b_bytes"])): row for row in checker.rows("bigint")}
    head = "| pairs | bytes | method | device, us | GMP, one core, us | ratio | GMP, 16 cores, us | ratio |"
    for pairs, sizes, method, *cells in checker.table("docs/bigint.md", head):
        a, b = (sizes.split()[0], "0") if sizes.endswith("squared") else sizes.split(" x ")
        row = rows[pairs, size(a), size(b)]
        device = row["transform_us" if method == "transforms" else "schoolbook_us"]
        one, sixteen = row["gmp_one_core_us"], row["gmp_16_cores_us"]
        wanted = (device, one, one and float(one) / float(device), sixteen, sixteen and float(sixteen) / float(device))
        for cell, value in zip(cells, wanted, strict=True):
            checker.compare(f"docs/bigint.md: {pairs} of {sizes}", cell, [value])


def perplexity(checker):
    rows = {(row["weights"], row["zeros"], row["group"]): row["perplexity"] for row in checker.rows("perplexity")}
    for weights, zeros, *cells in checker.table("docs/quantize.md", "| type | zero points | groups of 32 | groups of 128 |"):
        if weights == "as it was":
            checker.compare("docs/quantize.md: as it was", cells[1] or cells[0], [rows["f32", "none", "0"]])
            continue
        for group, cell in zip(("32", "128"), cells, strict=True):
            value = float(rows[weights, zeros, group])
            if not (cell == "> 10000" and value > 10000):
                checker.compare(f"docs/quantize.md: {weights}, {zeros}, {group}", cell, [value])


def main():
    checker = Checker(Path(sys.argv[1]))
    models(checker)
    # Lengths 2048 and 16384 are of another revision, of which attention.csv has no rows.
    attention(checker, "forward", "## Attention on Hopper\n", "a2a5c941", ("2048", "16384"))
    attention(checker, "backward", "## Gradients of attention\n", "bc353e1-dirty")
    bigint(checker)
    perplexity(checker)
    print("\n".join([*checker.faults, f"{checker.right} numbers"]))
    sys.exit(bool(checker.faults))


main()
