#!/usr/bin/env python3
"""Multiplies packed weights by kernels/matmul_sm90.tilus, and compares with kernels/matmul.tilus.

    matmul_wgmma.py KERNELS [ENGINE]        cpu, with its checks, or gpu
"""
import os
import subprocess
import sys
import tempfile

ENGINE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
CHECKS = ["--check-races"] if ENGINE == "cpu" else []
K, N, M = 320, 264, 72
SUMS = ["DEFERRED_SCALE=-21"]
WEIGHTS = ["SCALE_WEIGHTS=1", "DEFERRED_SCALE=0"]
BY_MMA = ["ZEROS_BY_MMA=1", "A_SUM_SCALE=0"]
SIGNED = {"i4": ["U=u4", "OFFSET=8"]}
SINGLE = ["TILE_N=128"]         # one fragment a warp

# Parameters of both products, and of the new one alone; its blocks, which with PARTS follow.
CASES = [
    (SUMS, ["BM=64", "STAGES=3", "M_STEP=32"], 3),
    (SUMS + ["ROWS=32"], ["BM=16", "STAGES=2", "M_GROUP=2"], 4),
    (SUMS + ["ROWS=128", "GROUP=0", "BIAS=1", "FUNCTION=2"], ["BM=48", "BULK_STORE=0"], 2),
    (WEIGHTS + ["C=f32"], ["BM=32", "STAGES=2"], 5),
    (WEIGHTS + ["ZERO=1", "BIAS=1", "FUNCTION=1", "RESIDUAL=1"], ["BM=128", "STAGES=2"], 1),
    (WEIGHTS + ["ZERO=2", "GROUP=32"], ["BM=64"], 2),
    (WEIGHTS, ["BM=96", "STAGES=2"], 2),
    (WEIGHTS, ["BM=16", "STAGES=2", "SPLIT=3"], 4),
    (SUMS, ["BM=32", "STAGES=2", "SPLIT=1"], 3),
    (SUMS + ["ZERO=1", "C=f32"], ["BM=48", "STAGES=2"] + BY_MMA, 3),
    (WEIGHTS + ["GROUP=0", "ZERO=1", "ROWS=32", "T=bf16", "A=bf16", "S=bf16"], ["BM=64"], 2),
] + [(WEIGHTS + ["W=" + w] + SIGNED.get(w, ["U=" + w]), ["BM=32", "STAGES=2"], 2)
     for w in ("u1", "u2", "u3", "i4", "u5", "u7", "u8", "f4e2m1", "f6e3m2")] + [
    (WEIGHTS + ["ROWS=32"], SINGLE + ["BM=256", "STAGES=3"], 5),
    (WEIGHTS + ["C=f32", "ROWS=128"], SINGLE + ["BM=48", "STAGES=2", "BULK_STORE=0"], 5),
    (WEIGHTS + ["ZERO=1", "BIAS=1", "FUNCTION=1", "RESIDUAL=1"], SINGLE + ["BM=48", "STAGES=2", "M_STEP=16"], 1),
    (WEIGHTS + ["ZERO=2", "GROUP=32"], SINGLE + ["BM=32", "STAGES=2"], 3),
    (WEIGHTS + ["ZERO=1", "GROUP=64", "W=u3", "U=u3"], SINGLE + ["BM=32", "STAGES=2", "CLUSTER=2"], 4),
    (WEIGHTS + ["GROUP=16"], SINGLE + ["BM=32", "STAGES=2", "CLUSTER=2"], 2),
    (WEIGHTS, SINGLE + ["BM=32", "STAGES=2", "SPLIT=3"], 4),
    (WEIGHTS + ["W=u6", "U=u6", "ROWS=32"], SINGLE + ["BM=64", "STAGES=3", "CLUSTER=2"], 4),
    (WEIGHTS + ["W=u7", "U=u7"], SINGLE + ["BM=32", "STAGES=2", "CLUSTER=2", "SPLIT=3"], 4),
    (WEIGHTS + ["GROUP=0", "ZERO=1", "ROWS=32", "T=bf16", "A=bf16", "S=bf16"], SINGLE + ["BM=32", "STAGES=2"], 2),
    (WEIGHTS + ["GROUP=0", "ZERO=2", "ROWS=32", "W=u7", "U=u7"], SINGLE + ["BM=32", "STAGES=2"], 2),
] + [(WEIGHTS + ["W=" + w] + SIGNED.get(w, ["U=" + w]), SINGLE + ["BM=32", "STAGES=2", f"CLUSTER={1 + i % 2}"], 2)
     for i, w in enumerate(("u8", "u1", "u2", "u3", "u7", "i4", "u6", "u5", "f4e2m1", "f5e2m2", "f8e4m3"))] + [
    (SUMS, ["BM=64", "STAGES=4", "M_STEP=32", "PARTS=3"], 0),
    (SUMS + ["ZERO=1", "C=f32"], ["BM=48", "STAGES=4", "PARTS=2"] + BY_MMA, 0),
    (SUMS + ["ROWS=128", "GROUP=0", "BIAS=1", "FUNCTION=2"], ["BM=16", "STAGES=5", "BULK_STORE=0", "PARTS=2"], 0),
    (WEIGHTS + ["ZERO=1", "BIAS=1", "FUNCTION=1", "RESIDUAL=1"], ["BM=128", "STAGES=4", "PARTS=3"], 0),
    (WEIGHTS + ["ROWS=32"], SINGLE + ["BM=256", "STAGES=3", "PARTS=2"], 0),
    (WEIGHTS + ["ZERO=2", "W=u7", "U=u7"], SINGLE + ["BM=48", "STAGES=2", "PARTS=3"], 0),
    (WEIGHTS + ["GROUP=0", "ZERO=1", "T=bf16", "A=bf16", "S=bf16"], SINGLE + ["BM=32", "STAGES=2", "PARTS=2"], 0),
]


def run(kernel, program, parameters, values, out=(), more=()):
    command = ["tilus-run", kernel, "--program=@" + program, "--engine=" + ENGINE, "--mcpu=sm_90a", *more]
    for p in parameters:
        command += ["-D", p]
    for name, value in values.items():
        command += ["--arg", f"{name}={value}"]
    for name in out:
        command += ["--out", f"{name}={name}.bin"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}")


def join(names):
    """Puts what is packed apart into one memory, where groups have scales in packed blocks."""
    parts = [open(f"{name}.bin", "rb").read() for name in names]
    whole = 0
    for part in parts:
        whole |= int.from_bytes(part, "little")
    for name in names:
        with open(f"{name}.bin", "wb") as f:
            f.write(whole.to_bytes(max(map(len, parts)), "little"))


def check(kernels, both, own, blocks):
    def has(name):
        return any(p.startswith(name + "=") for p in both)

    def value(name, default):
        return int(next((p.split("=")[1] for p in both + own if p.startswith(name + "=")), default))

    slices, rows, bm = -(-K // 128), value("ROWS", 64), value("BM", 128)
    room, entries = -(-N // 256) * 256 * slices * 64, N * K // 16
    zero = 4 if value("ZERO", 0) == 1 else 2
    memory = [f"{name}=zeros({room * size})" for name, size in (("scales", 2), ("zeros", zero))]
    sizes = {"m": M, "n": N, "k": K, "stride": K, "slices": slices}
    old, new = os.path.join(kernels, "matmul.tilus"), os.path.join(kernels, "matmul_sm90.tilus")
    run(old, "pack", both,
        {"plain": "codes(n*k)", "plain_scales": f"uniform({entries}, 0.01, 0.1)",
         "plain_zeros": f"codes({entries}, 1, 4)" if zero == 4 else f"uniform({entries}, 1, 4)",
         "weights": f"zeros({room})", **dict(m.split("=") for m in memory), "n": N, "k": K, "slices": slices},
        ["weights", "scales", "zeros"])
    if not has("GROUP") or value("GROUP", 128) > 0:
        join(["weights", "scales", "zeros"])
    packed = {name: f"@{name}.bin" for name in ("weights", "scales", "zeros")}
    extras = {"flags": "zeros(64)", "bias": "randn(n)", "residual": "randn(m*n)"}
    blocks_of_mma = -(-N // rows)
    mma = both + ["TILES=3", "WARPS_K=1"]
    run(old, "prepare", mma,
        {"a": "randn(m*k)", "prearranged": f"zeros({-(-M // 24) * slices * 3 * (64 * 8 + 32)})", "m": M, "k": K, "stride": K,
         "slices": slices}, ["a", "prearranged"])
    run(old, "matmul", mma,
        {**packed, **extras, "a": "@a.bin", "prearranged": "@prearranged.bin", "partials": "zeros(64)",
         "c": "undef(m*n)", **sizes, "blocks": blocks_of_mma, "share": slices, "extra": 0},
        ["bias", "residual", "c"])
    by_mma = [p for p in own if p in BY_MMA]
    row = slices * (144 if by_mma else 128)
    a, sizes = "@a.bin", {"m": M, "n": N, "k": K, "stride": K, "slices": slices}    # weights are scaled: A as it is
    if "SCALE_WEIGHTS=1" not in both or value("GROUP", 128) == 16:
        run(new, "arrange", both + by_mma,
            {"a": a, "prearranged": f"undef({M * row})", "m": M, "k": K, "stride": K, "slices": slices}, ["prearranged"])
        a, sizes["k"], sizes["stride"] = "@prearranged.bin", slices * 128, row
    packed.update(bias="@bias.bin", residual="@residual.bin", prearranged=a, c="undef(m*n)")
    compared = ["--compare", "c=c.bin", "--tolerance=2e-3" if has("T") else "--tolerance=2e-4", *CHECKS]
    cluster, parts = value("CLUSTER", 1), value("PARTS", 0)
    if parts:
        run(new, "matmul_parts", both + own,
            {**packed, **sizes, "blocks": parts * -(-M // bm) * -(-N // value("TILE_N", 256))}, (), compared)
        return
    tiles, groups = -(-M // bm) * -(-N // (cluster * value("TILE_N", 256))), blocks // cluster
    split = value("SPLIT", 0)
    whole = tiles // groups if split else max(tiles // groups - 1, 0)
    shared = (tiles - whole * groups) * (split or slices)
    run(new, "matmul_wgmma", both + own,
        {**packed, "flags": "zeros(blocks)", "partials": f"undef({2 * blocks * 256 * bm})",
         **sizes, "blocks": blocks, "whole": whole, "share": shared // groups, "extra": shared % groups}, (), compared)


def main():
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.abspath(sys.argv[1])
        os.chdir(folder)
        for both, own, blocks in CASES:
            check(kernels, both, own, blocks)
    print(f"{len(CASES)} products equal")


if __name__ == "__main__":
    main()
