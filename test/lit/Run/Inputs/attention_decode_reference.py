"""attention_decode_reference.py TOOLS KERNELS: kernels/attention_decode.tilus beside f64, on the CPU engine.

@append fills a cache in random pages with numbers that its type holds exactly, so that nothing is lost but by f16;
@attend reads it, and @combine adds its parts up.
"""
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TOOLS, KERNELS = map(pathlib.Path, sys.argv[1:])
HEADS = 2


def write(path, kind, numbers):
    path.write_bytes(struct.pack(f"<{len(numbers)}{kind}", *numbers))
    return f"@{path}"


def run(program, defines, arguments, more):
    command = [TOOLS / "tilus-run", KERNELS / "attention_decode.tilus", f"--program=@{program}", "--engine=cpu"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    command += [f"--arg={name}={value}" for name, value in arguments.items()] + more
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def row(values, d, parts):
    """Numbers of a token, of which each part has the least and the greatest."""
    numbers = random.choices(values, k=d)
    for part in range(parts):
        numbers[part * d // parts] = values[0]
        numbers[part * d // parts + 1] = values[-1]
    return numbers


def attention(q, keys, values, scale):
    scores = [sum(a * b for a, b in zip(q, key)) * scale for key in keys]
    weights = [math.exp(s - max(scores)) for s in scores]
    return [sum(w * v[i] for w, v in zip(weights, values)) / sum(weights) for i in range(len(q))]


def check(values, group, d, page, lengths, splits, **defines):
    defines = {"GROUP": group, "D": d, "PAGE": page, **defines}
    parts, batch, columns = int(defines.get("GROUPS", 1)), len(lengths), -(-max(lengths) // page)
    pages = random.sample(range(batch * columns), batch * columns)
    slots = [pages[b * columns + t // page] * page + t % page for b, n in enumerate(lengths) for t in range(n)]
    k, v = ([[row(values, d, parts) for _ in range(HEADS)] for _ in slots] for _ in range(2))
    q = [random.choice((-1, -0.5, 0.5, 1)) for _ in range(batch * HEADS * group * d)]
    o = []
    for b, h, i in ((b, h, i) for b in range(batch) for h in range(HEADS) for i in range(group)):
        at = sum(lengths[:b])
        tokens = range(at, at + lengths[b])
        o += attention(q[((b * HEADS + h) * group + i) * d:][:d], [k[t][h] for t in tokens], [v[t][h] for t in tokens],
                       d ** -0.5) if tokens else [0.0] * d
    count, rows = len(pages) * page * HEADS * d, batch * HEADS * group
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        at = {name: folder / name for name in ("k", "v", "scales", "parts", "sums")}
        run("append", defines,
            {"x_k": write(folder / "x_k", "e", [x for t in k for h in t for x in h]),
             "x_v": write(folder / "x_v", "e", [x for t in v for h in t for x in h]),
             "slots": write(folder / "slots", "i", slots), "k": f"zeros({count})", "v": f"zeros({count})",
             "scales": f"zeros({count // d * 4 * parts})", "tokens": len(slots), "heads": HEADS, "pages": len(pages)},
            [f"--out={name}={at[name]}" for name in ("k", "v", "scales")])
        compare = [f"--compare=o={write(folder / 'expected', 'e', o)[1:]}", "--tolerance=2e-3"]
        run("attend", defines,
            {"q": write(folder / "q", "e", q), **{name: f"@{at[name]}" for name in ("k", "v", "scales")},
             "table": write(folder / "table", "i", pages), "lengths": write(folder / "lengths", "i", lengths),
             "parts": f"zeros({rows * splits * d})", "sums": f"zeros({rows * splits})", "o": f"undef({rows * d})",
             "batch": batch, "heads": HEADS, "pages": len(pages), "columns": columns, "splits": splits,
             "scale": d ** -0.5},
            compare if splits == 1 else [f"--out={name}={at[name]}" for name in ("parts", "sums")])
        if splits > 1:
            run("combine", defines, {"parts": f"@{at['parts']}", "sums": f"@{at['sums']}", "o": f"undef({rows * d})",
                                     "rows": rows, "splits": splits}, compare)
    print(defines, flush=True)


def steps(bits, unit):
    return [(code - 2 ** (bits - 1)) * unit for code in range(2 ** bits)]


def main():
    random.seed(1)
    f4e2m1 = [s * x for s in (-1, 1) for x in (0.5, 1, 1.5, 2, 3, 6)]
    f4e2m1.sort()
    halves = [i / 64 for i in range(-64, 65)]
    check(halves, 4, 64, 16, [40, 0, 70], 1)
    check(halves, 20, 64, 32, [90, 1], 3, WARPS=2, BN=32, HEADS_FIRST=1)
    check(steps(8, 1 / 128), 4, 64, 64, [130, 3], 2, C="u8", ZERO=1)
    check(steps(4, 1 / 8), 8, 128, 16, [60, 0, 150], 2, C="u4", ZERO=1, GROUPS=2, HEADS_FIRST=1)
    check(steps(4, 1 / 8), 8, 128, 32, [60, 0, 150], 2, C="u4", ZERO=1, HEADS_FIRST=1, BULK=1, BN=64)
    check(steps(3, 1 / 4), 2, 128, 128, [50], 1, C="u3", ZERO=1, BN=64)
    check(steps(2, 1 / 2), 2, 128, 16, [50], 1, C="u2", ZERO=1, S="f32", BN=64)
    check(f4e2m1, 2, 64, 16, [20, 5], 1, C="f4e2m1", BN=64)
    check([x / 128 for x in (-448, -32, -1, 1, 0.5, 72, 448)], 2, 64, 16, [20, 5], 1, C="f8e4m3", PLAIN=1, BN=64)
    check([3.0], 2, 64, 16, [20], 1, C="u4", ZERO=1, BN=64)         # keys and values without a range


main()
