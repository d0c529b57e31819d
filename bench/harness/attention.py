"""Attention and its kin beside cuDNN, flash and mamba-ssm: the rows that bench/attention.py measures.

bench/results/attention.csv has a row for each case: a kernel of the gallery with the parameters for that case. Rows of one
device, driver and revision are a set, and are only ever added.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

from . import gemm, machine, results, show as tables

SUMMARY = "attention, its gradients, decoding, latent and linear attention, Mamba-2, beside cuDNN, flash and mamba-ssm"
COLUMNS = ("kind case file error us tflops floor_us fraction cudnn_us flash_us mamba_ssm_us speedup "
           "device driver torch revision").split()
KERNELS = machine.ROOT / "kernels"

# A case's programs have the parameters `defines`; `sizes` are numbers by name.
Case = collections.namedtuple("Case", "kind name file programs defines sizes")

ROWS = "512c 512 1024c 1024 2048c 2048 4096c 4096 8192c 8192".split()      # of q and of k; c: causal
ITEM = {"BLOCKS": 1048576, "QUERIES": 1, "PAIRS": 0}
TUNED = {"512c": {"SPLIT": 1}, "512": ITEM}
EIGHT = {"T": "f8e4m3"}
TUNED_EIGHT = TUNED | {"8192": {"BN": 96, "WARPGROUPS": 3}}

# Sequences x tokens - heads of q / of k: splits of caches of f16, f8e4m3 and u4, as the library chooses them on an H200.
DECODE = {"1x1024-32/8": (16, 8, 8), "1x8192-32/8": (32, 16, 32), "1x32768-32/8": (32, 16, 32), "1x131072-32/8": (32, 16, 32),
          "1x131072-64/8": (32, 16, 32), "8x4096-32/8": (4, 2, 4), "8x8192-64/8": (4, 2, 4), "16x8192-32/8": (2, 1, 2),
          "32x4096-32/8": (1, 1, 1), "64x2048-32/8": (1, 1, 1), "128x1024-32/8": (1, 1, 1), "128x4096-32/8": (1, 1, 1),
          "32x16384-8/1": (8, 4, 8), "16x32768-16/2": (8, 4, 8), "4x32768-64/8": (8, 4, 8), "64x4096-64/8": (1, 1, 1),
          "8x65536-32/4": (8, 4, 8)}
CACHES = {"f16": {}, "f8e4m3": {"C": "f8e4m3", "HEADS_FIRST": 1, "BULK": 1},
          "u4": {"C": "u4", "ZERO": 1, "HEADS_FIRST": 1, "BULK": 1}}
LATENT = {"1x65536": 64, "8x4096": 8, "16x8192": 4, "32x4096": 2, "64x4096": 1, "66x4096": 1, "128x2048": 1, "128x4096": 1,
          "128x8192": 1}                                                   # splits
MAMBA = {"1x1024": 2, "1x2048": 4, "1x8192": 16, "64x1024": 32, "64x2048": 32}          # EACH of the scan
LINEAR = {"32x2048": 64, "8x4096": 64, "1x8192": 64, "32x2048x128": 128}   # columns of a head


def square_cases(kind, file, programs):
    for name in ROWS:
        rows, causal = re.fullmatch(r"(\d+)(c?)", name).groups()
        tuned = TUNED.get(name, {}) if kind == "forward" else {}
        if kind == "forward_fp8":
            tuned = EIGHT | TUNED_EIGHT.get(name, {})
        yield Case(kind, name, file, programs, {"CAUSAL": int(causal == "c"), **tuned}, {"rows": int(rows)})


def combined(splits, counts):
    """The parameter of @combine for so many splits, as the library has it: `counts` are the most splits of each."""
    return next(({"COMBINED": value} for most, value in counts.items() if 1 < splits <= most), {})


def decode_cases():
    for name, of_caches in DECODE.items():
        batch, tokens, heads, of_k = map(int, re.split("[x/-]", name))
        for (cache, defines), splits in zip(CACHES.items(), of_caches):
            programs = ("attend", "combine") if cache == "f16" else ("attend", "combine", "append")
            yield Case("decode", f"{name}-{cache}", "attention_decode.tilus", programs,
                       defines | combined(splits, {8: 8, 32: 32}) | {"GROUP": heads // of_k},
                       {"batch": batch, "tokens": tokens, "heads": heads, "kv_heads": of_k, "splits": splits})


def batch_cases():
    """Cases that are named after sequences and tokens."""
    for name, splits in LATENT.items():
        yield Case("mla", name, "mla.tilus", ("mla", "combine"), combined(splits, {8: 4}), sizes(name) | {"splits": splits})
    for name in MAMBA:
        yield Case("chunk_state", name, "mamba2_states_sm90.tilus", ("chunk_state",), {}, sizes(name))
    for name, each in MAMBA.items():
        yield Case("chunk_scan", name, "mamba2_sm90.tilus", ("chunk_scan",), {"EACH": each}, sizes(name))
    for kind, programs, gated in (("retention", ("linear_attention",), 0), ("delta", ("delta_inverse", "gated_delta"), 1)):
        for name, d in LINEAR.items():
            defines = {"HEADS": 16, "K": d, "V": d, "GATED": gated} | ({"STAGES": 2} if d > 64 else {})
            yield Case(kind, name, "linear_attention.tilus", programs, defines, sizes(name) | {"heads": 16, "d": d})


def sizes(name):
    batch, tokens = map(int, name.split("x")[:2])
    return {"batch": batch, "tokens": tokens}


def cases(kinds=()):
    """All cases in order, or those of some kinds."""
    found = [*square_cases("forward", "attention_sm90.tilus", ("attention",)),
             *square_cases("forward_fp8", "attention_sm90.tilus", ("arrange_v", "attention")),
             *square_cases("backward", "attention_backward.tilus", ("attention_delta", "attention_backward", "attention_dq")),
             *decode_cases(), *batch_cases()]
    unknown = set(kinds) - {case.kind for case in found}
    if unknown:
        raise machine.Failure(f"no kind '{min(unknown)}'; there are {', '.join(dict.fromkeys(case.kind for case in found))}")
    return [case for case in found if not kinds or case.kind in kinds]


# ---- artefacts --------------------------------------------------------------------------------

def artefact(case, program):
    """The name of a program's artefact, one for each set of parameters."""
    return "-".join([program, *(f"{name}={value}" for name, value in case.defines.items())]) + ".tilusk"


def compile_artefact(llc, case, program, target, path):
    defines = [f"-D{name}={value}" for name, value in case.defines.items()]
    machine.command([llc, KERNELS / case.file, f"--program=@{program}", f"--mcpu={target}", "--filetype=artefact", "-o", path,
                     *defines])


def compile_all(llc, chosen, folder, target="sm_90a"):
    """Compiles what `folder` lacks, in as many processes as there are processors."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {artefact(case, program): (case, program) for case in chosen for program in case.programs}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(compile_artefact, llc, case, program, target, folder / name)
                for name, (case, program) in wanted.items() if not (folder / name).exists()]
        for each in work:
            each.result()
    return len(work)


# ---- rows -------------------------------------------------------------------------------------

def file_of(options):
    return options.results / "attention.csv"


def sets(path):
    """Rows by set and key, the newest set last."""
    return results.sets_as_added(results.read(path, tuple(COLUMNS)), lambda row: (row["kind"], row["case"]))


def run(names, options):
    """Measures these kinds, or all; bench/attention.py adds each row at once."""
    cases(names)
    path = file_of(options)
    results.repair(path)
    command = [sys.executable, machine.BENCH / "attention.py", "--runtime", gemm.runtime(options), "--out", path, "--revision",
               machine.revision(options)]
    command += ["--kernels", options.kernels] if options.kernels else ["--tools", machine.programs(options)]
    if names:
        command += ["--kinds", ",".join(names)]
    return subprocess.run([str(word) for word in command]).returncode == 0


def dry_run(names, options):
    """Compiles all kernels, in a folder `kernels` beside the results, and prints the rows; needs no GPU."""
    chosen, folder = cases(names), pathlib.Path(options.kernels or options.results / "attention-kernels")
    count = compile_all(machine.programs(options) / "tilus-llc", chosen, folder)
    for case in chosen:
        print(case.kind, case.name, *(artefact(case, program) for program in case.programs))
    print(f"{len(chosen)} rows, {count} kernels compiled to {folder}")
    return True


HEAD = ["kind", "case", "error", "us", "TFLOP/s", "of the floor", "cuDNN", "flash", "mamba-ssm", "over the best"]


def show(options):
    found = sets(file_of(options))
    if not found:
        raise results.Malformed(f"{file_of(options)}: nothing was measured yet")
    name, rows = list(found.items())[-1]
    lacking = sum((case.kind, case.name) not in rows for case in cases())
    print(f"{SUMMARY}; {name.device}, driver {name.driver}, revision {name.revision}"
          f"{f'; {lacking} of {len(cases())} rows lack' if lacking else ''}\n")
    number = tables.number
    print("\n".join(tables.table(HEAD, [
        [row["kind"], row["case"], f"{row['error']:.1e}", number(row["us"], ".1f"), number(row["tflops"], ".0f"),
         number(row["fraction"], ".2f"), number(row["cudnn_us"], ".1f"), number(row["flash_us"], ".1f"),
         number(row["mamba_ssm_us"], ".1f"), number(row["speedup"], ".2f")] for row in rows.values()])))
    return True
