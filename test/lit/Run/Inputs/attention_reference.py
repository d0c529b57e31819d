"""attention_reference.py TOOLS KERNELS: kernels/attention_sm90.tilus on the CPU engine, beside sums in f64.

Each case draws its inputs and says what rows see: masks, windows, sequences one after another, sinks. Of f8e4m3 v is
arranged here, and @arrange_v must give the same codes.
"""
import bisect
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


# Values of the codes 0 to 126 of f8e4m3.
EIGHTHS = [code % 8 / 512 if code < 8 else (8 + code % 8) * 2.0 ** (code // 8 - 10) for code in range(127)]


def code_of(x):
    """The code of f8e4m3 nearest to x."""
    if math.isnan(x):
        return 127
    at = bisect.bisect(EIGHTHS, abs(x))
    code = min((code for code in (at - 1, at) if code < 127), key=lambda code: abs(EIGHTHS[code] - abs(x)))
    return code + 128 * (x < 0)


def value_of(code):
    return math.nan if code % 128 == 127 else EIGHTHS[code % 128] * (-1 if code > 127 else 1)


def arrange(codes, sequences, place, kv_heads, dv, bn):
    """v as @arrange_v writes it: tiles of bn tokens of each head, [token / row, column, token mod row]."""
    nk, row = sum(s[1] for s in sequences), next(row for row in (128, 64, 32) if bn % row == 0)
    tiles = nk // bn + len(sequences) if len(sequences) > 1 else -(-nk // bn)
    arranged, first = [None] * (kv_heads * tiles * bn * dv), 0
    for b, (_, columns) in enumerate(sequences):
        base = first // bn + b if len(sequences) > 1 else 0
        for h in range(kv_heads):
            for j in range(-(-columns // bn) * bn):
                k = j % bn // 16 * 16 + j % 8 // 2 * 4 + j % 16 // 8 * 2 + j % 2      # within its tile
                for d in range(dv):
                    at = (((h * tiles + base + j // bn) * (bn // row) + k // row) * dv + d) * row + k % row
                    arranged[at] = codes[place(nk, kv_heads, first + j, h) * dv + d] if j < columns else 0
        first += columns
    return arranged


def row_of(q, keys, values, dv, scores, sink):
    """A row of o, of dv columns, and its logarithm. `scores` turns a product into a score, or None where it is not seen."""
    seen = [(scores(j, sum(map(float.__mul__, q, key))), value) for j, (key, value) in enumerate(zip(keys, values))]
    seen = [(s, value) for s, value in seen if s is not None]
    top = max([s for s, _ in seen] + [sink])
    if top == -math.inf:
        return [0.0] * dv, -math.inf
    weights = [math.exp(s - top) for s, _ in seen]
    total = sum(weights) + math.exp(sink - top)
    return [sum(w * v[d] for w, (_, v) in zip(weights, seen)) / total for d in range(dv)], top + math.log(total)


def arguments(folder, tensors, results):
    for name, (kind, numbers) in tensors.items():
        path = folder / name
        path.write_bytes(struct.pack(f"<{len(numbers)}{kind}", *numbers))
        yield f"--arg={name}=" + (f"undef({len(numbers)})" if name in results else f"@{path}")
        if name in results:
            yield f"--compare={name}={path}"


def run(engine, defines, scalars, tensors, results, program="attention", tolerance=1e-3):
    with tempfile.TemporaryDirectory() as folder:
        words = [TOOLS / "tilus-run", KERNELS / "attention_sm90.tilus", f"--engine={engine}", "--mcpu=sm_90a",
                 f"--program={program}", f"--tolerance={tolerance}"]
        words += [f"-D{name}={value}" for name, value in defines.items()]
        words += [f"--arg={name}={value}" for name, value in scalars.items()]
        print(defines, flush=True)
        subprocess.run(words + list(arguments(pathlib.Path(folder), tensors, results)), check=True)


def attention(sequences, heads, kv_heads, d, dv, left=0, right=0, cap=0.0, scale=None, sinks=None, poisoned=(), engine="cpu",
              **defines):
    """`sequences` are pairs of rows of q and of k; more than one of them are ragged, [row, head, column]. Those of
    `poisoned` numbers are NaN."""
    n, nk, scale = sum(s[0] for s in sequences), sum(s[1] for s in sequences), scale or d ** -0.5
    if len(sequences) > 1:
        defines["RAGGED"] = 1
    tokens = defines.get("RAGGED", 0) or defines.get("TOKENS", 0)
    place = (lambda rows, count, i, h: i * count + h) if tokens else (lambda rows, count, i, h: h * rows + i)
    q, k, v = halves(heads * n * d), halves(kv_heads * nk * d), halves(kv_heads * nk * dv)
    eight, scales = defines.get("T") == "f8e4m3", [random.uniform(0.5, 2) for _ in range(3 * kv_heads)]
    for b, i, x, columns in ((b, i, x, c) for b in poisoned for i, x, c in ((0, q, heads * d), (1, k, kv_heads * d),
                                                                        (1, v, kv_heads * dv))):
        begin, end = (sum(s[i] for s in sequences[:e]) * columns for e in (b, b + 1))
        x[begin:end] = [math.nan] * (end - begin)
    codes = [[code_of(x) for x in tensor] for tensor in (q, k, v)]
    if eight:
        q, k, v = ([value_of(code) for code in tensor] for tensor in codes)
    mask, sinks = halves(2 * n * nk), sinks or halves(heads)
    let = [random.randrange(3) for _ in mask]
    o, lse = [0.0] * (heads * n * dv), [0.0] * (heads * n)
    first = [0, 0]
    for b, (rows, columns) in enumerate(sequences):
        for h in range(heads):
            g = h * kv_heads // heads
            keys = [place(nk, kv_heads, first[1] + j, g) for j in range(columns)]
            for i in range(rows):
                last, kind = i + columns - rows, defines.get("MASK", 0)

                def scores(j, product):
                    at = (h % 2 * n + i) * nk + j
                    hidden = bool(defines.get("CAUSAL")) and j > last
                    hidden |= bool(defines.get("WINDOW")) and not last - left <= j <= last + right
                    s = product * scale * (scales[g] * scales[kv_heads + g] if eight else 1)
                    s = cap * math.tanh(s / cap) if cap else s
                    return None if hidden or (kind == 2 and not let[at]) else s + (mask[at] if kind == 1 else 0)
                at = place(n, heads, first[0] + i, h)
                if b in poisoned:
                    o[at * dv:(at + 1) * dv], lse[h * n + first[0] + i] = [math.nan] * dv, math.nan
                    continue
                o[at * dv:(at + 1) * dv], lse[h * n + first[0] + i] = row_of(
                    q[at * d:(at + 1) * d], [k[p * d:(p + 1) * d] for p in keys], [v[p * dv:(p + 1) * dv] for p in keys],
                    dv, scores, sinks[h] if defines.get("SINKS") else -math.inf)
                if eight:
                    o[at * dv:(at + 1) * dv] = [x * scales[2 * kv_heads + g] for x in o[at * dv:(at + 1) * dv]]
        first = [first[0] + rows, first[1] + columns]
    starts = [[sum(s[i] for s in sequences[:e]) for e in range(len(sequences) + 1)] for i in (0, 1)]
    numbers = {"batch": len(sequences), "heads": heads, "kv_heads": kv_heads, "n": n, "nk": nk,
               "longest": max(s[0] for s in sequences), "masks": 2, "left": left, "right": right, "scale": scale, "cap": cap}
    tensors = {"q": ("e", q), "k": ("e", k), "v": ("e", v), "o": ("e", o), "lse": ("f", lse), "sinks": ("f", sinks),
               "mask": ("B", let) if defines.get("MASK") == 2 else ("e", mask), "scales": ("f", scales),
               "q_starts": ("i", starts[0]), "k_starts": ("i", starts[1])}
    defines |= {"D": d, "DV": dv, "LSE": 1, "SOFTCAP": int(cap > 0), "M": "bool" if defines.get("MASK") == 2 else "f16"}
    if eight:
        arranged = arrange(codes[2], sequences, place, kv_heads, dv, defines.setdefault("BN", 64 if defines.get("MASK") else 128))
        run_arrange(engine, defines, {name: numbers[name] for name in ("batch", "kv_heads", "nk")}, codes[2], arranged,
                    tensors["k_starts"])
        tensors |= {"q": ("B", codes[0]), "k": ("B", codes[1]), "v": ("B", [code or 0 for code in arranged])}
    run(engine, defines | ({"O": "f16"} if eight else {}), numbers, tensors, ("o", "lse"), tolerance=4e-2 if eight else 1e-3)


def run_arrange(engine, defines, numbers, v, arranged, starts):
    """Runs @arrange_v, and compares all tiles that some sequence has."""
    with tempfile.TemporaryDirectory() as folder:
        found, known = pathlib.Path(folder, "found"), {name: defines[name] for name in defines.keys() & {
            "T", "D", "DV", "BN", "RAGGED", "TOKENS"}}
        words = [TOOLS / "tilus-run", KERNELS / "attention_sm90.tilus", f"--engine={engine}", "--mcpu=sm_90a",
                 "--program=arrange_v", f"--arg=arranged=zeros({len(arranged)})", f"--out=arranged={found}"]
        words += [f"-D{name}={value}" for name, value in known.items()]
        words += [f"--arg={name}={value}" for name, value in numbers.items()]
        words += arguments(pathlib.Path(folder), {"v": ("B", v), "k_starts": starts}, ())
        subprocess.run(words, check=True)
        for at, (code, expected) in enumerate(zip(found.read_bytes(), arranged)):
            if expected is not None and code != expected:
                sys.exit(f"arranged[{at}] is {code}, not {expected}")


def main():
    random.seed(1)
    attention([(70, 150)], 2, 1, 64, 64)
    attention([(150, 150)], 2, 2, 64, 64, CAUSAL=1, BLOCKS=1)
    attention([(20, 40)], 2, 1, 64, 64, CAUSAL=1, TOKENS=1, SINKS=1, cap=1.5)
    attention([(260, 260)], 1, 1, 64, 64, CAUSAL=1, SPLIT=1)
    attention([(30, 10)], 1, 1, 64, 64, CAUSAL=1)                       # rows that see nothing
    attention([(30, 400)], 1, 1, 64, 64, left=150, right=2, WINDOW=1, BN=64)
    attention([(40, 70)], 2, 2, 64, 64, MASK=1)
    attention([(40, 70)], 2, 2, 64, 64, MASK=2)
    attention([(5, 40), (0, 0), (80, 30), (1, 90)], 2, 1, 64, 64, CAUSAL=1, BLOCKS=2)
    attention([(5, 40), (4, 30), (80, 130), (1, 9), (3, 128), (2, 0), (1, 5)], 2, 1, 64, 64, poisoned=(1, 3, 6), BLOCKS=3)
    attention([(5, 40), (30, 130), (4, 30)], 1, 1, 64, 96, poisoned=(2,), WINDOW=1, left=20, right=9)
    attention([(5, 9), (4, 30)], 1, 1, 64, 64, poisoned=(1,), engine="interp", BN=64)
    attention([(30, 10)], 2, 1, 64, 64, CAUSAL=1, SINKS=1, sinks=[-math.inf, 0.5])
    attention([(20, 200)], 1, 1, 64, 64, WINDOW=1, left=150, right=0, BN=64, SINKS=1, sinks=[-math.inf])
    attention([(20, 30)], 1, 1, 96, 96)
    attention([(20, 30)], 1, 1, 192, 128)
    attention([(140, 60)], 2, 1, 96, 96, TOKENS=1, BLOCKS=1)            # o of several items goes where q was
    attention([(70, 60)], 4, 2, 128, 64, BLOCKS=1)
    eight = {"T": "f8e4m3"}
    attention([(70, 300)], 2, 1, 64, 64, **eight)
    attention([(150, 150)], 2, 2, 128, 128, CAUSAL=1, BLOCKS=1, BN=224, **eight)
    attention([(20, 40)], 4, 2, 64, 64, CAUSAL=1, TOKENS=1, SINKS=1, cap=1.5, **eight)
    attention([(40, 70)], 2, 2, 64, 64, MASK=1, **eight)
    attention([(260, 260)], 1, 1, 64, 64, CAUSAL=1, SPLIT=1, BN=192, **eight)
    attention([(5, 40), (0, 0), (80, 300), (1, 90)], 2, 1, 64, 64, CAUSAL=1, BLOCKS=2, **eight)
    attention([(5, 40), (4, 30), (80, 130), (1, 9), (3, 128), (2, 0), (1, 5)], 2, 1, 64, 64, poisoned=(1, 3, 6), BLOCKS=3, **eight)
    attention([(30, 200)], 1, 1, 96, 96, left=100, right=2, WINDOW=1, BN=64, **eight)
    attention([(20, 30)], 1, 1, 192, 128, **eight)
    attention([(20, 140)], 1, 1, 256, 256, **eight)
    attention([(5, 9), (4, 30)], 1, 1, 64, 64, poisoned=(1,), engine="interp", BN=64, **eight)


main()
