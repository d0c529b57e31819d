"""attention_backward_reference.py TOOLS KERNELS: kernels/attention_backward.tilus on the CPU engine, beside sums in f64.

Each case runs the three programs one after the other, each on what the one before it wrote.
"""
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TOOLS, KERNELS = map(pathlib.Path, sys.argv[1:])


def halves(count):
    return list(struct.unpack(f"<{count}e", struct.pack(f"<{count}e", *(random.gauss(0, 1) for _ in range(count)))))


def dot(a, b):
    return sum(map(float.__mul__, a, b))


def add(to, row, factor):
    for d, x in enumerate(row):
        to[d] += factor * x


def add_row(q, do, keys, values, score, scale, grads):
    """Adds a row's part of all gradients, whose rows `grads` are dq, dks and dvs; returns its o and its logarithm. `score`
    gives a product's score and the derivative of that, or None where it is not seen."""
    seen = [(j, score(j, dot(q, key) * scale)) for j, key in enumerate(keys)]
    seen = [(j, *s) for j, s in seen if s is not None]
    if not seen:
        return [0.0] * len(values[0]) if values else [0.0] * len(do), -math.inf
    top = max(s for _, s, _ in seen)
    total = sum(math.exp(s - top) for _, s, _ in seen)
    o = [0.0] * len(do)
    for j, s, _ in seen:
        add(o, values[j], math.exp(s - top) / total)
    dq, dks, dvs = grads
    for j, s, slope in seen:
        p = math.exp(s - top) / total
        ds = p * (dot(do, values[j]) - dot(do, o)) * slope * scale
        add(dvs[j], do, p)
        add(dks[j], q, ds)
        add(dq, keys[j], ds)
    return o, top + math.log(total)


def run(folder, program, engine, defines, scalars, inputs, outputs):
    words = [TOOLS / "tilus-run", KERNELS / "attention_backward.tilus", f"--program=@{program}", f"--engine={engine}", "--mcpu=sm_90a",
             "--tolerance=2e-3"] + ["--check-races"] * (engine == "cpu")
    words += [f"-D{name}={value}" for name, value in defines.items()]
    words += [f"--arg={name}={value}" for name, value in scalars.items()]
    words += [f"--arg={name}=@{folder / name}" for name in inputs]
    for name, begin in outputs.items():
        expected = folder / f"{name}.expected"
        words += [f"--arg={name}={begin}", f"--out={name}={folder / name}"]
        words += [f"--compare={name}={expected}"] if expected.exists() else []
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def poison(sequences, poisoned, tensors):
    """Makes all rows of the sequences of these numbers NaN: of `tensors`, pairs of 0 (as q) or 1 (as k) and rows of all heads."""
    for b, (i, rows) in ((b, tensor) for b in poisoned for tensor in tensors):
        heads = len(rows) // sum(s[i] for s in sequences)
        begin, end = (sum(s[i] for s in sequences[:e]) * heads for e in (b, b + 1))
        for row in rows[begin:end]:
            row[:] = [math.nan] * len(row)


def attention(sequences, heads, kv_heads, d, dv, left=0, right=0, cap=0.0, poisoned=(), engine="cpu", **defines):
    """`sequences` are pairs of rows of q and of k; more than one of them are ragged, [row, head, column]. Those of
    `poisoned` numbers are NaN."""
    print(sequences, heads, kv_heads, d, dv, left, right, cap, defines, flush=True)
    n, nk, scale = sum(s[0] for s in sequences), sum(s[1] for s in sequences), d ** -0.5
    ragged = int(len(sequences) > 1)
    tokens = ragged or defines.get("TOKENS", 0)
    place = (lambda rows, count, i, h: i * count + h) if tokens else (lambda rows, count, i, h: h * rows + i)
    q, k, v, do = ([halves(columns) for _ in range(count)] for count, columns in (
        (heads * n, d), (kv_heads * nk, d), (kv_heads * nk, dv), (heads * n, dv)))
    o, lse = [None] * len(q), [0.0] * len(q)
    dq, dk, dvs = ([[0.0] * len(row) for row in rows] for rows in (q, k, v))
    poison(sequences, poisoned, ((0, q), (1, k), (1, v), (0, do)))
    first = [0, 0]
    for b, (rows, columns) in enumerate(sequences):
        for h in range(heads):
            keys = [place(nk, kv_heads, first[1] + j, h * kv_heads // heads) for j in range(columns)]
            for i in range(rows):
                last = i + columns - rows

                def score(j, s):
                    if (defines.get("CAUSAL") and j > last) or (defines.get("WINDOW") and not last - left <= j <= last + right):
                        return None
                    slope = 1 - math.tanh(s / cap) ** 2 if cap else 1.0
                    return cap * math.tanh(s / cap) if cap else s, slope
                at = place(n, heads, first[0] + i, h)
                o[at], lse[h * n + first[0] + i] = add_row(
                    q[at], do[at], [k[p] for p in keys], [v[p] for p in keys], score, scale,
                    (dq[at], [dk[p] for p in keys], [dvs[p] for p in keys]))
        first = [first[0] + rows, first[1] + columns]
    poison(sequences, poisoned, ((0, o), (0, dq), (1, dk), (1, dvs)))
    starts = [[sum(s[i] for s in sequences[:e]) for e in range(len(sequences) + 1)] for i in (0, 1)]
    defines = defines | {"D": d, "DV": dv, "SOFTCAP": int(cap > 0), "RAGGED": ragged}
    bm = defines.setdefault("BM", 128 if d + dv <= 128 else 64)
    tiles = heads * (n // bm + len(sequences) if ragged else -(-n // bm))
    sizes = {"batch": len(sequences), "heads": heads, "n": n, "longest": max(s[0] for s in sequences)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for name, kind, numbers in (
                *((name, "e", sum(x, [])) for name, x in (("q", q), ("k", k), ("v", v), ("do", do), ("o", o), (
                    "dq.expected", dq), ("dk.expected", dk), ("dv.expected", dvs))),
                ("lse", "f", lse), ("q_starts", "i", starts[0]), ("k_starts", "i", starts[1])):
            (folder / name).write_bytes(struct.pack(f"<{len(numbers)}{kind}", *numbers))
        run(folder, "attention_delta", engine, defines, sizes, ("o", "do", "lse", "q_starts"),
            {name: f"undef({tiles * bm * (d if name == 'sums' else 1)})" for name in ("logs", "delta", "sums")})
        (folder / "sums").rename(folder / "cleared")
        run(folder, "attention_backward", engine, defines,
            sizes | {"kv_heads": kv_heads, "nk": nk, "left": left, "right": right, "scale": scale, "cap": cap,
                     "longest": max(s[1] for s in sequences)},
            ("q", "k", "v", "do", "logs", "delta", "q_starts", "k_starts"),
            {"sums": f"@{folder / 'cleared'}", "dk": f"undef({len(k) * d})", "dv": f"undef({len(v) * dv})"})
        run(folder, "attention_dq", engine, defines, sizes | {"scale": scale}, ("sums", "q_starts"),
            {"dq": f"undef({len(q) * d})"})


def main():
    random.seed(1)
    attention([(70, 150)], 2, 1, 64, 64)
    attention([(140, 140)], 2, 2, 64, 64, CAUSAL=1, BM=64)
    attention([(20, 40)], 3, 2, 64, 64, CAUSAL=1, TOKENS=1, cap=1.5)
    attention([(30, 10)], 1, 1, 64, 64, CAUSAL=1)                       # rows that see nothing
    attention([(150, 300)], 1, 1, 64, 64, left=50, right=2, WINDOW=1)
    attention([(5, 40), (0, 0), (80, 30), (1, 90)], 2, 1, 64, 64, CAUSAL=1)
    attention([(5, 40), (4, 30), (80, 130), (1, 9), (3, 128), (1, 5)], 2, 1, 64, 64, poisoned=(1, 3, 5))
    attention([(70, 40), (30, 30)], 1, 1, 64, 64, poisoned=(1,), engine="interp", BM=64)
    attention([(20, 30)], 1, 1, 96, 96)
    attention([(70, 140)], 1, 1, 128, 128)
    attention([(70, 100)], 1, 1, 192, 192, CAUSAL=1)
    attention([(20, 30)], 2, 1, 192, 128, cap=1.5)
    attention([(70, 40), (5, 70), (4, 9)], 1, 1, 256, 256, poisoned=(1,))
    attention([(5, 9)], 1, 1, 256, 256, engine="interp")


main()
