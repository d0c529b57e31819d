#!/usr/bin/env python3
"""Perplexity of a model whose matrices are quantized to each type of 1 to 8 bits, with ranges of least squared error.

    OPENBLAS_NUM_THREADS=1 nice python3 bench/perplexity/run.py SmolLM2-135M-Instruct.Q4_1.gguf

Needs NumPy and the package tokenizers. Rows are added to bench/results/perplexity.csv as they are there;
what it has is not computed again. --plot draws perplexity.svg and .png beside it (gnuplot), and writes
the table of docs/quantize.md."""
import argparse
import csv
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "examples")]

import tilusc.formats  # noqa: E402
from tilusc import llama, quantize  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(ROOT, "bench", "results", "perplexity.csv")
COLUMNS = ["weights", "zeros", "group", "bits", "perplexity", "error", "tokens", "seconds"]
PAGE = os.path.join(ROOT, "docs", "quantize.md")
BEGIN, END = "<!-- perplexity:begin -->\n", "<!-- perplexity:end -->\n"
GROUPS = (32, 128)
TOKENS = 512        # whose likelihood is measured


def schemes():
    """Lists types and zero points, the most used first."""
    for bits in (4, 3, 2, 8, 6, 5, 7, 1):
        yield from ((f"u{bits}", "integer"), (f"i{bits}", "none"), (f"u{bits}", "float"))
    first = ["f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3", "f5e2m2", "f7e3m3", "f8e5m2"]
    floats = [f"f{bits}e{e}m{bits - 1 - e}" for bits in range(3, 9) for e in range(1, bits)]
    yield from ((name, "none") for name in first + [x for x in floats if x not in first])


class Runner:
    """The model's matrices in f32, its texts, and one quantized model at a time."""

    def __init__(self, path):
        from generate import read_tokenizer
        self.model = tilusc.formats.open(path)
        self.tokenizer = read_tokenizer(self.model)
        with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as file:
            self.tokens = self.tokenizer.encode(file.read()).ids[:TOKENS + 1]
        self.llama = llama.Llama(self.model)
        config = self.llama.config
        self.names = {(i, part): config.name(llama.PARTS, part, i)
                      for i in range(config.layers) for part in llama.PARTS}
        self.matrices = {x: self.model.weight(name).dequantize() for x, name in self.names.items()}
        self.dense = {(i, part): self.llama.blocks[i].products[part] for i, part in self.names}

    def put(self, x, product):
        self.llama.blocks[x[0]].products[x[1]] = product

    def measure(self, scheme):
        """Returns the perplexity and the weights' relative error; scheme None: as they are."""
        wrong = total = 0.0
        for x, matrix in self.matrices.items():
            if scheme is None:
                self.put(x, self.dense[x])
                continue
            values = quantize.quantize(matrix, scheme).dequantize()
            wrong += float(((values - matrix) ** 2).sum())
            total += float((matrix ** 2).sum())
            self.put(x, lambda rows, values=values.T: rows @ values)
        return llama.perplexity(self.llama, self.tokens), (wrong / total) ** 0.5 if total else 0.0


def read_rows():
    if not os.path.exists(RESULTS):
        return []
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_row(row):
    fresh = not os.path.exists(RESULTS)
    with open(RESULTS, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)
    print(*row.values(), flush=True)


def measure_all(path):
    runner, done = Runner(path), {tuple(row[x] for x in COLUMNS[:3]) for row in read_rows()}
    wanted = [("f32", "none", "0", None)]
    for weights, zeros in schemes():
        wanted += [(weights, zeros, str(group), quantize.Scheme(weights, group, zeros, "mse")) for group in GROUPS]
    for *key, scheme in wanted:
        if tuple(key) in done:
            continue
        start = time.monotonic()
        value, error = runner.measure(scheme)
        bits = 32 if scheme is None else scheme.bits_per_weight(1 << 20)
        add_row(dict(zip(COLUMNS, key + [f"{bits:g}", f"{value:.5g}", f"{error:.4g}",
                                         len(runner.tokens) - 1, f"{time.monotonic() - start:.0f}"])))


# ---- the plot ----

# Series: the first letter of types and their zero points.
SERIES = (("iN", "i", "none"), ("uN, integer zero points", "u", "integer"),
          ("uN, float zero points", "u", "float"), ("floats", "f", "none"))


def series(rows):
    """Returns gnuplot's text of data blocks, $gGROUP_INDEX, of lines `bits perplexity`."""
    text = f"base = {next(row['perplexity'] for row in rows if row['group'] == '0')}\n"
    for group in GROUPS:
        for i, (_, kind, zeros) in enumerate(SERIES, 1):
            points = sorted((float(row["bits"]), row["perplexity"]) for row in rows
                            if (row["weights"][0], row["zeros"], row["group"]) == (kind, zeros, str(group)))
            text += f"$g{group}_{i} << END\n" + "".join(f"{x} {y}\n" for x, y in points) + "END\n"
    return text


def plot():
    plots = os.path.join(ROOT, "bench", "plots")
    names = ";".join(x[0] for x in SERIES)
    for kind in ("svg", "png"):
        script = (f"kind = '{kind}'\nwide = 1000\nhigh = 500\nplots = '{plots}'\nout = '{RESULTS[:-3]}{kind}'\n"
                  f"names = '{names}'\n" + series(read_rows()) + f"load '{plots}/perplexity.gp'\n")
        subprocess.run(["gnuplot"], input=script, text=True, check=True)


# ---- the table ----

def render(rows):
    """Returns the table of docs/quantize.md."""
    cells = {(row["weights"], row["zeros"], row["group"]): float(row["perplexity"]) for row in rows}
    keys = sorted({(int(x[1]), "iuf".index(x[0]), x, zeros) for x, zeros, group in cells if group != "0"},
                  key=lambda key: (-key[0], key[1:]))
    text = "| type | zero points | groups of 32 | groups of 128 |\n|---|---|---|---|\n"
    text += f"| as it was | | {cells['f32', 'none', '0']:.2f} | |\n"
    for _, _, weights, zeros in keys:
        values = [say(cells.get((weights, zeros, str(group)))) for group in GROUPS]
        text += f"| {weights} | {zeros} | {' | '.join(values)} |\n"
    return text


def say(value):
    if value is None:
        return ""
    return "> 10000" if value > 10000 else f"{value:.0f}" if value > 1000 else f"{value:.2f}"


def page(rows):
    """Returns docs/quantize.md as it is, and with the table."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text, text[:first] + render(rows) + text[last:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", nargs="?", help="a GGUF file or a folder, of Llama's architecture")
    parser.add_argument("--plot", action="store_true")
    options = parser.parse_args()
    if options.model:
        measure_all(options.model)
    if options.plot:
        plot()
        text = page(read_rows())[1]
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
