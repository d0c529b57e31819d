#!/usr/bin/env python3
"""Multiplies one row by kernels/matmul.tilus as digits of 8 bits, and compares with the product of f16 or bf16.

    matmul_digits.py KERNELS [ENGINE]       cpu, with its checks, interp or gpu
"""
import os
import sys
import tempfile

from matmul_experts import CHECKS, compare, read, run, write

BF16 = ["T=bf16", "A=bf16", "S=bf16"]
# Parameters of both products, with DEFERRED_SCALE of the other one; those of digits alone; n, k, blocks.
CASES = [
    (["W=u4", "U=u4", "ZERO=1", "BIAS=1", "FUNCTION=1"], ["WARPS_K=4", "A_SLICES=8", "STAGES=2"], 72, 1000, 2),
    (["W=u2", "U=u2", "ZERO=2", "GROUP=64"], ["WARPS_K=2", "WARPS_N=2", "A_SLICES=16", "STAGES=2"], 136, 1496, 3),
    (["W=u1", "U=u1", "GROUP=0", "RESIDUAL=1"], ["WARPS_K=2", "A_SLICES=16", "STAGES=3", "STAGE_K_TILES=2"], 72, 2040, 3),
    (["W=i8", "U=u8", "OFFSET=128", "ROWS=32", "GROUP=32", "C=f32"] + BF16,
     ["WARPS_N=8", "WARPS_K=1", "A_SLICES=16", "STAGES=2"], 264, 496, 2),
    (["W=i4", "U=u4", "OFFSET=8", "GROUP=32", "GATED=1"], ["WARPS_K=8", "A_SLICES=16", "STAGES=2"], 144, 1016, 1),
]


def value(parameters, name, default):
    return next((p.split("=")[1] for p in parameters if p.startswith(name + "=")), default)


def pack(kernel, both, n, k, slices):
    """Packs random weights: blocks and both tables are one memory, where groups have scales in packed blocks."""
    names, entries, room = ("weights", "scales", "zeros"), n * -(-k // 32), -(-n // 256) * 256 * slices * 64
    zeros = (f"codes({entries}, 1, 1)", 4) if "ZERO=1" in both else (f"uniform({entries}, 0, 1)", 2)
    run(kernel, "pack", both,
        {"plain": "codes(n*k)", "plain_scales": f"uniform({entries}, 0.01, 0.1)", "plain_zeros": zeros[0],
         "weights": f"zeros({room})", "scales": f"zeros({2 * room})", "zeros": f"zeros({zeros[1] * room})",
         "n": n, "k": k, "slices": slices}, names, engine="cpu")
    if "GROUP=0" not in both:
        parts = [read(f"{name}.bin") for name in names]
        whole = 0
        for part in parts:
            whole |= int.from_bytes(part, "little")
        for name in names:
            write(f"{name}.bin", whole.to_bytes(max(map(len, parts)), "little"))
    return {name: f"@{name}.bin" for name in names}


def check(kernel, both, own, n, k, blocks):
    slices = -(-k // 1024) * 8
    rows = int(value(both, "ROWS", 64))
    columns = n // 2 if "GATED=1" in both else n
    sizes = {"m": 1, "n": n, "k": k, "stride": k, "slices": slices}
    packed = pack(kernel, both, n, k, slices)
    mma = both + ["WARPS_K=1"] + (["DEFERRED_SCALE=-60"] if "T=bf16" in both else [])
    run(kernel, "prepare", mma, {"a": "randn(k)", "prearranged": f"zeros({slices * (64 * 8 + 32)})",
                                 **{name: sizes[name] for name in ("m", "k", "stride", "slices")}}, ["a", "prearranged"],
        engine="cpu")
    run(kernel, "matmul", mma,
        {**packed, "a": "@a.bin", "prearranged": "@prearranged.bin", "flags": "zeros(64)", "partials": "zeros(64)",
         "bias": "randn(n)", "residual": "randn(n)", "c": f"undef({columns})", **sizes, "blocks": -(-n // rows),
         "share": slices, "extra": 0}, ["bias", "residual", "c"], engine="cpu")
    want = read("c.bin")
    warps_k, deep = int(value(own, "WARPS_K", 4)), int(value(own, "STAGE_K_TILES", 1))
    tile = int(value(own, "WARPS_N", 1)) * rows
    iterations = -(-n // tile) * slices // (warps_k * deep)
    run(kernel, "matmul", both + own + ["DIGITS=1", "PREARRANGED_A=4", "COLUMNS=1", "DEFERRED_SCALE=0"],
        {**packed, "a": "@a.bin", "prearranged": "zeros(4)", "flags": f"zeros({blocks})",
         "partials": f"undef({blocks * tile})", "bias": "@bias.bin", "residual": "@residual.bin",
         "c": f"undef({columns})", **sizes, "blocks": blocks, "share": iterations // blocks,
         "extra": iterations % blocks}, ["c"], CHECKS)
    compare(read("c.bin"), want, value(both, "C", "f16"), 0.02 if "T=bf16" in both else 0.002)


def main():
    kernel = os.path.join(os.path.abspath(sys.argv[1]), "matmul.tilus")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in CASES:
            check(kernel, *case)
    print(f"{len(CASES)} products equal")


if __name__ == "__main__":
    main()
