"""Whole models: bench/e2e, and the table of its rows."""
import csv
import subprocess
import sys

from . import machine, results, show

FOLDER = machine.BENCH / "e2e"
SUMMARY = "whole models with random weights, decoding and prompts"


def run(words, options):
    """Passes the words on to bench/e2e."""
    command = [sys.executable, FOLDER, *words]
    if not {"--dry-run", "--help", "-h"} & set(words):
        command += ["--out", options.results / "e2e.csv", "--revision", machine.revision(options)]
    return subprocess.run([str(word) for word in command], env=machine.environment()).returncode == 0


def newest(options):
    """The newest row of each measurement by the gallery's kernels, by model, weights, step and batch."""
    path = options.results / "e2e.csv"
    if not path.exists():
        raise results.Malformed(f"{path}: nothing was measured yet")
    with path.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["date"])
    return {(row["model"], row["weights"], row["step"], int(row["batch"])): row for row in rows if row["kernels"] == "gallery"}


def bits(weights):
    return 16 if weights == "f16" else int(weights[1])


def table(options):
    """A line for each model and type: milliseconds of decode steps and of the prompt."""
    rows = newest(options)
    batches = sorted({batch for _, _, step, batch in rows if step == "decode"})
    head = ["model", "weights", *(f"ms, batch {batch}" for batch in batches), "of the floor, batch 1", "tokens/s, batch 1",
            "ms, prompt"]
    lines = []
    for model, weights in sorted(dict.fromkeys(key[:2] for key in rows), key=lambda key: (key[0], -bits(key[1]), key[1])):
        found = [rows.get((model, weights, "decode", batch)) for batch in batches] + [rows.get((model, weights, "prefill", 1))]
        times = ["" if row is None else f"{float(row['us']) / 1e3:.2f}" for row in found]
        first = rows.get((model, weights, "decode", 1), {"fraction": "", "tokens_per_s": ""})
        lines.append([model, weights, *times[:-1], first["fraction"][:5], first["tokens_per_s"], times[-1]])
    return list(show.table(head, lines))


def print_table(options):
    rows = newest(options).values()
    said = sorted({f"{row['device']}, driver {row['driver']}, revision {row['revision']}" for row in rows})
    print(f"{SUMMARY}; " + "; ".join(said) + "\n")
    print("\n".join(table(options)))
    return True
