#!/usr/bin/env python3
"""Attention and its kin, kernels of the gallery, beside torch's back ends and mamba-ssm on a GPU with sm_90a.

    bench/run attention [KIND...]    measures, and keeps the rows in bench/results/attention.csv
    bench/attention.py --tools DIR --runtime libtilus_rt.so [--out FILE.csv] [--revision TEXT] [--kinds NAME,..]
                       [--cases NAME,..] [--variant KIND:NAME=VALUE,.. ...] [--rounds N] [--seconds N]

Kinds are forward, forward_fp8 and backward (1 x 32 heads of 128 columns, f16), decode (paged caches of f16, f8e4m3 and u4), mla,
chunk_state and chunk_scan of Mamba-2, retention and delta; bench/harness/attention.py lists their cases. --kernels DIR has
artefacts in place of tilus-llc's, as `bench/run attention --dry-run` makes them. A variant is measured with other parameters, and
its rows are not kept. Where Python finds the package mamba-ssm, its Triton kernels, tuned anew for each case, are measured, too.
--peers DIR has libraries of vLLM's wheel, whose times are printed (bench/attention_peers.py).

A part of each result is compared with f64 before anything is timed; then CUDA graphs of our launches and of torch's take turns,
in bursts of 20 ms after 100 ms of rest, over copies of all tensors that hold more than 4 times the L2 cache. Rows that the
file has already, of this device, driver and revision, are not measured again.
"""
import argparse
import math
import pathlib
import statistics
import sys
import tempfile
import time

import torch

import attention_peers
import gemm
from attention_kinds import KINDS
from harness import attention as table, results

TOLERANCE = {"mla": 1e-2, "forward_fp8": 4e-2}      # bf16; powers in f8e4m3
BANDWIDTH, TENSOR = 4.57e12, 660e12         # of an H200: bytes and operations a second, the floor


def our_way(runtime, kernels, problem, programs):
    """A function of a set's number that launches programs, one after the other."""
    handles, named = [kernels[program] for program in programs], getattr(problem, "named", lambda program, t: t)
    prepared = [[runtime.arguments(kernels[program], named(program, t)) for program in programs] for t in problem.sets]

    def run(i):
        for handle, arguments in zip(handles, prepared[i]):
            runtime.launch(handle, arguments)
    return run


def peer_graphs(problem):
    """Graphs of torch's ways, of those that this torch has for the case."""
    for name, function in problem.peers.items():
        try:
            yield name, gemm.graph_of(lambda i, function=function: function(problem.sets[i]), range(len(problem.sets)))
        except RuntimeError as error:
            print(f"  {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            torch.cuda.synchronize()


def measure(options, runtime, case, folder):
    """A case's row."""
    problem = KINDS[case.kind](case)
    kernels = {program: runtime.load(folder / table.artefact(case, program)) for program in case.programs}
    if "append" in kernels:
        problem.fill(lambda t: runtime.launch(kernels["append"], runtime.arguments(kernels["append"], t)))
    programs = problem.launches(case) if hasattr(problem, "launches") else case.programs
    way, first = our_way(runtime, kernels, problem, programs), problem.sets[0]
    for name in problem.outputs:
        first[name].fill_(math.nan)
    way(0)
    torch.cuda.synchronize()
    error = problem.error(first)
    if not error < TOLERANCE.get(case.kind, 2e-3):
        raise SystemExit(f"{case.kind} {case.name}: relative error {error:.2e}")
    graphs = dict(peer_graphs(problem)) | {"us": gemm.graph_of(way, range(len(problem.sets)))}
    times = {name: [] for name in graphs}
    for _ in range(options.rounds):
        for name, graph in graphs.items():
            times[name].extend(gemm.rest_us(*graph))
    us = {name: statistics.median(found) for name, found in times.items()}
    for name in attention_peers.LIBRARIES:
        if name in us:
            print(f"  {name}: {us[name]:.2f} us")
    return row_of(case, problem, error, us)


def row_of(case, problem, error, us):
    floor = max(problem.bytes / BANDWIDTH, problem.flops / TENSOR / getattr(problem, "rate", 1)) * 1e6
    peers = ("cudnn", "flash", "mamba_ssm")
    best = min((us[name] for name in peers if name in us), default=None)
    return {"kind": case.kind, "case": case.name, "file": case.file, "error": f"{error:.2e}", "us": round(us["us"], 2),
            "tflops": round(problem.flops / us["us"] * 1e-6, 1) or "", "floor_us": round(floor, 2),
            "fraction": round(floor / us["us"], 3), "speedup": round(best / us["us"], 3) if best else "",
            **{f"{name}_us": round(us[name], 2) if name in us else "" for name in peers}}


def variants(options, cases):
    """The chosen cases, each followed by its variants."""
    for case in cases:
        yield case, True
        for text in options.variant:
            kind, words = text.split(":", 1)
            if kind == case.kind:
                yield case._replace(defines=case.defines | dict(word.split("=") for word in words.split(","))), False


def parse_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, help="the folder of tilus-llc")
    parser.add_argument("--kernels", type=pathlib.Path, help="a folder of artefacts")
    parser.add_argument("--runtime", type=pathlib.Path, required=True, help="libtilus_rt.so")
    parser.add_argument("--peers", type=pathlib.Path, help="a folder of FA3's and FlashMLA's libraries")
    parser.add_argument("--out", type=pathlib.Path, help="a CSV file to add the rows to")
    parser.add_argument("--kinds", type=gemm.words, default=())
    parser.add_argument("--cases", type=gemm.words, help="names, of the kinds' (default: all)")
    parser.add_argument("--variant", action="append", default=[], metavar="KIND:NAME=VALUE,..", help="other parameters")
    parser.add_argument("--rounds", type=int, default=2, help="of turns")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no case begins")
    parser.add_argument("--revision", default="")
    options = parser.parse_args()
    if not options.tools and not options.kernels:
        parser.error("give --tools, or --kernels")
    return options


def main():
    options, begin = parse_line(), time.monotonic()
    torch.manual_seed(1)
    runtime = gemm.Runtime(options.runtime)
    if options.peers:
        attention_peers.load(options.peers)
    about = {"device": torch.cuda.get_device_name(), "driver": gemm.driver(), "torch": torch.__version__, "revision": options.revision}
    known = gemm.known_rows(options, about, table)
    chosen = [case for case in table.cases(options.kinds) if options.cases is None or case.name in options.cases]
    chosen = list(variants(options, [case for case in chosen if (case.kind, case.name) not in known]))
    with tempfile.TemporaryDirectory() as name:
        folder = options.kernels or pathlib.Path(name)
        if options.tools:
            table.compile_all(options.tools / "tilus-llc", [case for case, _ in chosen], folder)
        for case, kept in chosen:
            if time.monotonic() - begin > options.seconds:
                raise SystemExit(f"{options.seconds:.0f} seconds have passed before {case.kind} {case.name}")
            row = measure(options, runtime, case, folder)
            print(*(f"{field}={row[field]}" for field in table.COLUMNS[:12]), *(() if kept else (case.defines,)), flush=True)
            if options.out and kept:
                results.append(options.out, [",".join(str((row | about)[field]) for field in table.COLUMNS)], table.COLUMNS)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
