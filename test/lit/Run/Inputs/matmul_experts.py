#!/usr/bin/env python3
"""Multiplies rows by the weights of their experts, by kernels/matmul.tilus, and compares with products of single experts.

    matmul_experts.py KERNELS [ENGINE]        cpu, with its checks, interp or gpu
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

ENGINE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
CHECKS = {"cpu": ["--compare=interp", "--check-races", "--allow-zero", "--tolerance=1e-3"], "interp": [], "gpu": []}[ENGINE]
K, N, TOP = 264, 72, 2
ROWS, FEW = [0, 21, 3], [0, 3, 1]   # of each expert, behind two that no expert has; two more are no one's either

DIGITS = ["DIGITS=1", "DEFERRED_SCALE=0"]

# Parameters of both products, and of the experts' alone.
CASES = [
    ([], ["PREARRANGED_A=2", "TILES=2"]),
    (["ZERO=1", "BIAS=1", "FUNCTION=1"], ["PREARRANGED_A=1", "WARPS_K=1", "GATHER=1"]),
    (["ZERO=2", "GROUP=0", "RESIDUAL=2"], ["PREARRANGED_A=1", "STAGES=0", "WARPS_K=2", "GATHER=1", "SCATTER=1"]),
    (["W=i5", "U=u5", "OFFSET=16", "GROUP=32", "T=bf16", "A=bf16", "S=bf16", "C=f32", "DEFERRED_SCALE=-60"],
     ["PREARRANGED_A=2", "WARPS_K=1", "WARPS_N=2", "SCATTER=1", "BIAS=1"]),
    (["ZERO=1", "BIAS=1", "GROUP=64"], ["PREARRANGED_A=4", "COLUMNS=1", "A_SLICES=8", "STAGES=2", "GATHER=1"]),
    (["GROUP=0", "RESIDUAL=1"], ["PREARRANGED_A=4", "COLUMNS=1", "A_SLICES=4", "WARPS_K=2", "STAGES=3", "SCATTER=1"]),
    (["W=u8", "U=u8", "ZERO=1", "BIAS=1", "GROUP=32"], ["PREARRANGED_A=4", "COLUMNS=1", "A_SLICES=8", "STAGES=2", "GATHER=1", *DIGITS]),
    (["W=u1", "U=u1", "GROUP=0", "RESIDUAL=1"],
     ["PREARRANGED_A=4", "COLUMNS=1", "A_SLICES=4", "WARPS_K=1", "STAGES=3", "SCATTER=1", *DIGITS]),
    ([], ["WGMMA=1", "BM=16", "STAGES=2"]),
    (["ZERO=1", "BIAS=1", "FUNCTION=1", "SCALE_WEIGHTS=1", "DEFERRED_SCALE=0"], ["WGMMA=1", "BM=32", "STAGES=2", "GATHER=1"]),
    (["GROUP=0", "RESIDUAL=1"], ["WGMMA=1", "BM=16", "STAGES=2", "GATHER=1", "SCATTER=1"]),
    # Tiles of 32 rows, but of 16 for last rows that are no more
    (["BIAS=1"], ["WGMMA=1", "BM=32", "STAGES=2", "REST=16", "SCATTER=1"]),
]
BYTES = {"f32": 4}


def run(kernel, program, parameters, values, out=(), more=(), engine=ENGINE):
    command = ["tilus-run", kernel, "--program=@" + program, "--engine=" + engine, "--mcpu=sm_90a", *more]
    for p in parameters:
        command += ["-D", p]
    for name, value in values.items():
        command += ["--arg", f"{name}={value}"]
    for name in out:
        command += ["--out", f"{name}={name}.bin"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}")


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def read(name):
    with open(name, "rb") as f:
        return f.read()


def rows_of(data, size, rows):
    return b"".join(data[r * size:(r + 1) * size] for r in rows)


def pack(kernel, both, zero, slices, seed):
    """Packs random weights; returns what lies in packed blocks and both tables as one."""
    entries, room = N * -(-K // 32), 256 * slices * 64
    run(kernel, "pack", both,
        {"plain": "codes(n*k)", "plain_scales": f"uniform({entries}, 0.01, 0.1)",
         "plain_zeros": f"codes({entries}, 1, 4)" if zero == 1 else f"uniform({entries}, 1, 4)",
         "weights": f"zeros({room})", "scales": f"zeros({2 * room})", "zeros": f"zeros({(4 if zero == 1 else 2) * room})",
         "n": N, "k": K, "slices": slices}, ["weights", "scales", "zeros"], [f"--seed={seed}"])
    return [read(f"{name}.bin") for name in ("weights", "scales", "zeros")]


def check(kernel, both, own):
    def value(name, default):
        return next((p.split("=")[1] for p in both + own if p.startswith(name + "=")), default)

    in_blocks = "PREARRANGED_A=4" in own
    all_rows = FEW if in_blocks else ROWS
    zero, slices, count = int(value("ZERO", 0)), 4, len(all_rows)
    a_bytes, c_bytes = 2 * K, N * BYTES.get(value("C", "f16"), 2)
    gather, scatter, tables = "GATHER=1" in own, "SCATTER=1" in own, value("GROUP", "128") == "0"
    bias, residual = "BIAS=1" in both + own, "RESIDUAL=" in " ".join(both)
    offsets = [2]
    for rows in all_rows:
        offsets.append(offsets[-1] + rows)
    m = offsets[-1] + 2
    ids = list(range(m))
    random.Random(1).shuffle(ids)
    write("ids.bin", struct.pack(f"<{m}i", *ids))
    write("offsets.bin", struct.pack(f"<{count + 1}i", *offsets))

    weights = []
    for e in range(count):
        parts = pack(kernel, both, zero, slices, e + 1)
        if not tables:
            whole = 0
            for part in parts:
                whole |= int.from_bytes(part, "little")
            parts = [whole.to_bytes(max(map(len, parts)), "little")] * 3
        weights.append(parts)
    for i, name in enumerate(("weights", "scales", "zeros")):
        size = max(len(part) for part in weights[0])
        write(f"{name}.bin", b"".join(w[i].ljust(size, b"\0") for w in weights))
    packed = {name: f"@{name}.bin" for name in ("weights", "scales", "zeros")}
    sizes = {"m": m, "k": K, "stride": K, "slices": slices, "experts": count, "top": TOP}
    tile_m = int(value("BM", 8 * int(value("TILES", 1))))
    tiles = (m + (tile_m - 1) * count) // tile_m
    panels = tiles * slices * (tile_m // 8) * (64 * 8 + 32)
    more = ["EXPERTS=32" if in_blocks else "EXPERTS=8", *(p for p in own if not p.startswith("REST="))]
    tokens = m // TOP if gather else m
    a = {"a": f"randn({tokens * K})"}
    listed = {"ids": "@ids.bin"}
    extras = {"bias": f"randn({count * N})", "residual": f"randn({m * N})", "c": f"zeros({m * N})"}
    if "WGMMA=1" in own:
        one = [p for p in more if p.split("=")[0] not in ("BM", "STAGES")]
        rest = int(value("REST", 0))
        kinds = 2 if rest else 1
        run(kernel, "find_tiles", more, {"offsets": "@offsets.bin", "list": f"zeros({kinds * tiles * 4})", "experts": count,
            "tiles": tiles, "kinds": kinds, "rest": rest}, ["list"], CHECKS)
        run(kernel, "arrange_experts", both + one, {**a, "prearranged": f"undef({m * slices * 128})", **listed, "m": m, "k": K,
            "stride": K, "slices": slices, "top": TOP}, ["a", "prearranged"], CHECKS)
        direct = "SCALE_WEIGHTS=1" in both and "GROUP=16" not in both and not gather
        row = K if direct else slices * 128
        lists = read("list.bin")
        for kind in range(kinds):
            write("kind.bin", lists[kind * 16 * tiles:(kind + 1) * 16 * tiles])
            of_kind = [p for p in more if p.split("=")[0] != "BM"] + [f"BM={rest}", "LAST=1"] if kind else more
            before = {name: f"@{name}.bin" for name in extras} if kind else extras
            run(kernel, "matmul_wgmma_experts", both + of_kind, {**packed,
                "prearranged": "@a.bin" if direct else "@prearranged.bin", "list": "@kind.bin", **listed, **before,
                "m": m, "n": N, "k": row, "stride": row, "slices": slices, "experts": count, "packed": size // 4, "blocks": 2,
                "tiles": tiles}, list(extras), CHECKS)
    else:
        ready = {**a, "offsets": "@offsets.bin", "k": K, "stride": K, "top": TOP}
        if not in_blocks:
            run(kernel, "prepare_experts", both + more, {**a, "prearranged": f"zeros({panels})", "offsets": "@offsets.bin",
                **listed, "list": f"zeros({tiles * 4})", **sizes, "tiles": tiles}, ["a", "prearranged", "list"], CHECKS)
            ready = {"prearranged": "@prearranged.bin", "list": "@list.bin"}
        run(kernel, "matmul_experts", both + more,
            {**packed, **ready, **listed, "flags": "zeros(5)", "partials": f"zeros({5 * 128 * 16})", **extras, "m": m, "n": N,
             "slices": slices, "experts": count, "packed": size // 4, "tiles": tiles, "blocks": 5},
            list(extras) + (["a"] if in_blocks else []), CHECKS)

    # Compares with the rows taken expert by expert.
    whole = {name: read(f"{name}.bin") for name in ("a", "bias", "residual", "c")}
    want = bytearray(len(whole["c"]))
    sizes = {"n": N, "k": K, "stride": K, "slices": slices, "blocks": -(-N // 64), "extra": 0}
    for e, rows in enumerate(all_rows):
        mine = range(offsets[e], offsets[e + 1])
        to = [ids[r] for r in mine] if scatter else mine
        for name, data in zip(("w", "s", "z"), weights[e]):
            write(f"{name}.bin", data)
        write("a1.bin", rows_of(whole["a"], a_bytes, [ids[r] // TOP for r in mine] if gather else mine))
        write("bias1.bin", rows_of(whole["bias"], c_bytes, [e]))
        write("residual1.bin", rows_of(whole["residual"], c_bytes, to))
        if rows:
            one = both + ["WARPS_K=1", "TILES=3", f"BIAS={int(bias)}"]
            run(kernel, "prepare", one, {"a": "@a1.bin", "prearranged": f"zeros({slices * 3 * (64 * 8 + 32)})", "m": rows,
                "k": K, "stride": K, "slices": slices}, ["prearranged"], engine="cpu")
            run(kernel, "matmul", one,
                {"weights": "@w.bin", "scales": "@s.bin", "zeros": "@z.bin", "a": "@a1.bin", "prearranged": "@prearranged.bin",
                 "flags": "zeros(64)", "partials": "zeros(64)", "bias": "@bias1.bin", "residual": "@residual1.bin",
                 "c": f"zeros({rows * N})", "m": rows, **sizes, "share": slices}, ["c"], engine="cpu")
        for at, r in enumerate(to):
            want[r * c_bytes:(r + 1) * c_bytes] = rows_of(read("c.bin"), c_bytes, [at])
    compare(whole["c"], bytes(want), value("C", "f16"), 0.02 if value("T", "f16") == "bf16" else 0.002)


def compare(got, want, kind, tolerance):
    form = {"f16": "e", "f32": "f"}[kind]
    size = struct.calcsize(form)
    got, want = (struct.unpack(f"<{len(x) // size}{form}", x) for x in (got, want))
    error = sum((x - y) ** 2 for x, y in zip(got, want)) / max(sum(y * y for y in want), 1e-30)
    if not any(want) or not error ** 0.5 <= tolerance:
        sys.exit(f"an error of {error ** 0.5} of the norm")


def main():
    kernel = os.path.join(os.path.abspath(sys.argv[1]), "matmul.tilus")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for both, own in CASES:
            check(kernel, both, own)
    print(f"{len(CASES)} products equal")


if __name__ == "__main__":
    main()
