"""Experts of mixtures beside torch's grouped products: the rows that bench/experts.py measures.

bench/results/experts.csv has a row for each case: a layer of a model for so many tokens. Rows of one device, driver and
revision are a set, and are only ever added.
"""
import collections
import subprocess
import sys

from . import machine, results, show as tables

SUMMARY = "experts of mixtures, gate and up and down, beside torch's grouped products in bf16"
COLUMNS = ("model weights group tokens touched error gate_up_us gate_up_fraction gate_up_torch_us down_us down_fraction "
           "down_torch_us us floor_us fraction torch_us speedup device driver torch revision").split()

# Sizes of public configurations; an expert's gate and up are [hidden, intermediate] each. The quarter of DeepSeek-V3 is a
# device's part of four.
Mixture = collections.namedtuple("Mixture", "name experts top hidden intermediate weights group")
MIXTURES = [Mixture("Qwen3-30B-A3B", 128, 8, 2048, 768, "u4", 128), Mixture("Qwen3-235B-A22B", 128, 8, 4096, 1536, "u4", 128),
            Mixture("DeepSeek-V3", 256, 8, 7168, 2048, "u4", 128), Mixture("DeepSeek-V3", 256, 8, 7168, 2048, "f8e4m3", 128),
            Mixture("DeepSeek-V3 quarter", 64, 8, 7168, 2048, "u4", 128),
            Mixture("gpt-oss-120b", 128, 4, 2880, 2880, "f4e2m1", 32), Mixture("Mixtral-8x7B", 8, 2, 4096, 14336, "u4", 128)]
TOKENS = [1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096]

Case = collections.namedtuple("Case", "mixture tokens")


def cases(names=()):
    """All cases in order, or those of models that have one of the names as a part of theirs."""
    for name in names:
        if not any(name.lower() in each.name.lower() for each in MIXTURES):
            known = dict.fromkeys(each.name for each in MIXTURES)
            raise machine.Failure(f"no model '{name}'; there are {', '.join(known)}")
    return [Case(each, tokens) for each in MIXTURES for tokens in TOKENS
            if not names or any(name.lower() in each.name.lower() for name in names)]


def key(case):
    return case.mixture.name, case.mixture.weights, case.tokens


# ---- floors -----------------------------------------------------------------------------------

BANDWIDTH, TENSOR, START = 4.57e6, 660e6, 2.5       # of an H200: bytes and operations a microsecond; of a launch, us


def products(mixture):
    """(n, k) of each product's expert, by name."""
    return {"gate_up": (2 * mixture.intermediate, mixture.hidden), "down": (mixture.hidden, mixture.intermediate)}


def floor_us(mixture, product, touched, tokens):
    """What a launch takes at least that reads the experts which have rows, or else multiplies."""
    n, k = products(mixture)[product]
    size = n * k * (int(mixture.weights[1]) / 8 + 2 / mixture.group)
    return START + max(touched * size / BANDWIDTH, 2 * n * k * tokens * mixture.top / TENSOR)


# ---- rows -------------------------------------------------------------------------------------

def file_of(options):
    return options.results / "experts.csv"


def sets(path):
    """Rows by set and key, the newest set last."""
    rows = results.read(path, tuple(COLUMNS))
    return results.sets_as_added(rows, lambda row: (row["model"], row["weights"], int(row["tokens"])))


def run(names, options):
    """Measures these models, or all; bench/experts.py adds each row at once."""
    cases(names)
    path = file_of(options)
    results.repair(path)
    command = [sys.executable, machine.BENCH / "experts.py", "--out", path, "--revision", machine.revision(options), *names]
    return subprocess.run([str(word) for word in command]).returncode == 0


def dry_run(names):
    """Prints the rows with floors, as if each expert were as likely as the others; needs no GPU."""
    for case in cases(names):
        share = case.mixture.top / case.mixture.experts
        touched = case.mixture.experts * (1 - (1 - share) ** case.tokens)
        floors = [floor_us(case.mixture, name, touched, case.tokens) for name in products(case.mixture)]
        print(f"{case.mixture.name} {case.mixture.weights} {case.tokens}: {touched:.1f} experts, floors "
              + " + ".join(f"{us:.1f}" for us in floors) + " us")
    return True


HEAD = ["model", "weights", "tokens", "experts", "gate and up, us", "of the floor", "torch", "down, us", "of the floor",
        "torch", "both, us", "of the floor", "x torch"]


def show(options):
    found = sets(file_of(options))
    if not found:
        raise results.Malformed(f"{file_of(options)}: nothing was measured yet")
    name, rows = list(found.items())[-1]
    lacking = sum(key(case) not in rows for case in cases())
    print(f"{SUMMARY}; {name.device}, driver {name.driver}, revision {name.revision}"
          f"{f'; {lacking} of {len(cases())} rows lack' if lacking else ''}\n")
    number = tables.number
    print("\n".join(tables.table(HEAD, [
        [row["model"], row["weights"], f"{row['tokens']:.0f}", f"{row['touched']:.0f}",
         number(row["gate_up_us"], ".1f"), number(row["gate_up_fraction"], ".2f"), number(row["gate_up_torch_us"], ".1f"),
         number(row["down_us"], ".1f"), number(row["down_fraction"], ".2f"), number(row["down_torch_us"], ".1f"),
         number(row["us"], ".1f"), number(row["fraction"], ".2f"), number(row["speedup"], ".2f")] for row in rows.values()])))
    return True
