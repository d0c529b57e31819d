"""gallery_reference.py TOOLS KERNELS: kernels whose inputs no generator of tilus-run makes, beside sums in f64.

Each case makes small inputs and what the kernel should give, and runs it on the CPU engine.
"""
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TOOLS, KERNELS = map(pathlib.Path, sys.argv[1:])


def half(number):
    return struct.unpack("<e", struct.pack("<e", number))[0]


def halves(count, scale=1.0):
    return [half(random.gauss(0, scale)) for _ in range(count)]


def run(file, defines, scalars, inputs, output):
    """`inputs` and `output` are (format of struct, numbers) by name; output is one of them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [TOOLS / "tilus-run", KERNELS / f"{file}.tilus", "--engine=cpu", "--tolerance=1e-3"]
        command += [f"-D{name}={value}" for name, value in defines.items()]
        command += [f"--arg={name}={value}" for name, value in scalars.items()]
        for name, (kind, numbers) in {**inputs, **output}.items():
            path = pathlib.Path(folder) / name
            path.write_bytes(struct.pack(f"<{len(numbers)}{kind}", *numbers))
            if name in output:
                command += [f"--arg={name}=undef({len(numbers)})", f"--compare={name}={path}"]
            else:
                command += [f"--arg={name}=@{path}"]
        print(file, defines, flush=True)
        subprocess.run(command, check=True)


def moe_gemm(sizes, top, n, k):
    """An expert of `sizes` gets so many of the slots; there are `top` slots a token."""
    slots, experts = sum(sizes), len(sizes)
    x, w = halves(slots // top * k), halves(experts * n * k)
    ids = random.sample(range(slots), slots)
    offsets = [sum(sizes[:e]) for e in range(experts + 1)]
    y = [0.0] * (slots * n)
    for e in range(experts):
        for i in ids[offsets[e]:offsets[e + 1]]:
            for j in range(n):
                y[i * n + j] = sum(x[i // top * k + l] * w[(e * n + j) * k + l] for l in range(k))
    run("moe_gemm", {"E": experts, "TOPK": top, "BM": 32, "BN": 32, "WARPS": 2}, {"slots": slots, "n": n, "k": k},
        {"x": ("e", x), "w": ("e", w), "ids": ("i", ids), "offsets": ("i", offsets)}, {"y": ("e", y)})


def chosen_rows(scores, top, norm):
    """Returns the weights of each token's experts, and the offsets and rows of all experts."""
    chosen, route = [[] for _ in scores[0]], []
    for t, row in enumerate(scores):
        best = sorted(range(len(row)), key=lambda e: -row[e])[:top]
        weights = [math.exp(s - row[best[0]]) for s in row]
        total = sum(weights[e] for e in best) if norm else sum(weights)
        route += [weights[e] / total for e in best]
        for choice, e in enumerate(best):
            chosen[e].append(t * top + choice)
    return route, [sum(map(len, chosen[:e])) for e in range(len(chosen) + 1)], sum(chosen, [])


def router(room, tokens, experts, top, norm):
    scores = halves(tokens * experts)
    for e in range(1, experts):         # of the last token, which is to have others than the only one with a score
        scores[-e] = (math.nan, -math.inf)[e % 2]
    route, offsets, ids = chosen_rows([[s if s == s else -math.inf for s in scores[t * experts:][:experts]] for t in range(tokens)],
                                      top, norm)
    run("router", {"T": room, "E": experts, "TOP": top, "NORM": norm, "WARPS": 2}, {"tokens": tokens},
        {"scores": ("e", scores)},
        {"offsets": ("i", offsets), "ids": ("i", ids), "route": ("f", route)})


def sigmoid_router(room, tokens, experts, groups, top_groups, best, top, norm, scale):
    """As DeepSeek-V3 routes: a bias for the choice alone, from the groups whose best experts have the greatest sums."""
    scores = [random.gauss(0, 2) for _ in range(tokens * experts)]
    scores = [struct.unpack("<f", struct.pack("<f", s))[0] for s in scores]
    bias = [half(random.gauss(0, 0.3)) for _ in range(experts)]
    size, route, chosen = experts // groups, [], [[] for _ in range(experts)]
    for t in range(tokens):
        value = [1 / (1 + math.exp(-s)) for s in scores[t * experts:][:experts]]
        ranked = [v + b for v, b in zip(value, bias)]
        sums = [sum(sorted(ranked[g * size:][:size], reverse=True)[:best]) for g in range(groups)]
        kept = sorted(range(groups), key=lambda g: -sums[g])[:top_groups]
        found = sorted((e for e in range(experts) if e // size in kept), key=lambda e: -ranked[e])[:top]
        total = sum(value[e] for e in found) if norm else 1
        route += [value[e] / total * scale for e in found]
        for choice, e in enumerate(found):
            chosen[e].append(t * top + choice)
    run("router", {"S": "f32", "T": room, "E": experts, "TOP": top, "NORM": norm, "SIGMOID": 1, "BIAS": 1, "GROUPS": groups,
                   "TOP_GROUPS": top_groups, "BEST": best, "SCALE": scale}, {"tokens": tokens},
        {"scores": ("f", scores), "bias": ("f", bias)},
        {"offsets": ("i", [sum(map(len, chosen[:e])) for e in range(experts + 1)]), "ids": ("i", sum(chosen, [])),
         "route": ("f", route)})


def clear_scores(h, weight, k, experts, top):
    """Returns the scores of a row, or None where rounding might change what is chosen."""
    scores = [sum(a * b for a, b in zip(h, weight[e * k:])) for e in range(experts)]
    best = sorted(scores, reverse=True)[:top + 1]
    return scores if min(a - b for a, b in zip(best, best[1:])) > 4e-3 else None


def router_step(room, tokens, k, experts, top, norm, scale=1.0):
    norms, weight = halves(k), halves(experts * k, k ** -0.5)
    x, h, scores = [], [], []
    while len(scores) < tokens:
        row = halves(k, scale)
        by = 1 / math.sqrt(sum(a * a for a in row) / k + 1e-5)
        normed = [a * b * by for a, b in zip(row, norms)]
        its = clear_scores(normed, weight, k, experts, top)
        if its:
            x, h, scores = x + row, h + normed, scores + [its]
    route, offsets, ids = chosen_rows(scores, top, norm)
    run("router_step", {"TOKENS": room, "K": k, "E": experts, "TOP": top, "NORM": norm}, {"tokens": tokens, "eps": 1e-5},
        {"x": ("e", x), "norm": ("e", norms), "weight": ("e", weight)},
        {"h": ("e", h), "offsets": ("i", offsets), "ids": ("i", ids), "route": ("f", route)})


def gptq(m, n, k, groups):
    x, scales = halves(m * k), [abs(s) for s in halves(groups * n, 0.1)]
    codes = [random.randrange(16) for _ in range(k * n)]
    zeros = [random.randrange(16) for _ in range(groups * n)]
    group = [random.randrange(groups) for _ in range(k)]
    qweight = [sum(codes[(8 * i + b) * n + j] << 4 * b for b in range(8)) for i in range(k // 8) for j in range(n)]
    qzeros = [sum(zeros[8 * i + b] << 4 * b for b in range(8)) for i in range(groups * n // 8)]
    w = [(codes[i * n + j] - zeros[group[i] * n + j] - 1) * scales[group[i] * n + j]
         for i in range(k) for j in range(n)]
    y = [sum(x[i * k + l] * w[l * n + j] for l in range(k)) for i in range(m) for j in range(n)]
    run("gptq", {}, {"m": m, "n": n, "k": k, "groups": groups},
        {"x": ("e", x), "qweight": ("I", qweight), "qzeros": ("I", qzeros), "scales": ("e", scales),
         "g_idx": ("i", group)}, {"y": ("e", y)})


def mamba2(batch, length, heads, shared, chunk, p, n):
    chunks = -(-length // chunk)
    x, b = halves(batch * length * heads * p), halves(batch * length * (heads // shared) * n)
    dt = [random.random() for _ in range(batch * heads * chunks * chunk)]
    a = [-3 * i / chunk - random.random() for _ in range(batch * heads * chunks) for i in range(chunk)]
    states = [0.0] * (batch * chunks * heads * p * n)
    for i, c, h in ((i, c, h) for i in range(batch) for c in range(chunks) for h in range(heads)):
        row = ((i * heads + h) * chunks + c) * chunk
        for l in range(min(chunk, length - c * chunk)):
            factor = dt[row + l] * math.exp(a[row + chunk - 1] - a[row + l])
            token = i * length + c * chunk + l
            xs = x[(token * heads + h) * p:][:p]
            bs = b[(token * (heads // shared) + h // shared) * n:][:n]
            at = ((i * chunks + c) * heads + h) * p * n
            for r in range(p):
                for s in range(n):
                    states[at + r * n + s] += xs[r] * factor * bs[s]
    run("mamba2", {"HEADS": heads, "GROUP": shared, "CHUNK": chunk, "P": p, "N": n, "BL": 32},
        {"batch": batch, "length": length},
        {"x": ("e", x), "b": ("e", b), "dt": ("f", dt), "a": ("f", a)}, {"states": ("f", states)})


def attention_row(q, keys, values, scale, seen, added):
    scores = [sum(a * b for a, b in zip(q, key)) * scale + more for key, more in zip(keys, added)]
    top = max((s for s, see in zip(scores, seen) if see), default=0.0)
    weights = [math.exp(s - top) if see else 0.0 for s, see in zip(scores, seen)]
    total = sum(weights) or 1.0
    return [sum(w * v[d] for w, v in zip(weights, values)) / total for d in range(len(q))]


def attention(heads, n, nk, d, causal, mask, mask_heads):
    q, k, v = halves(heads * n * d), halves(heads * nk * d), halves(heads * nk * d)
    added = halves(mask_heads * n * nk) if mask == 1 else [0.0] * (mask_heads * n * nk)
    seen = [random.randrange(3) if mask == 2 and i >= nk else mask != 2 for i in range(mask_heads * n * nk)]
    o = []
    for h, i in ((h, i) for h in range(heads) for i in range(n)):
        row = (h % mask_heads * n + i) * nk
        sees = [bool(seen[row + j]) and not (causal and j > i + nk - n) for j in range(nk)]
        o += attention_row(q[(h * n + i) * d:][:d], [k[(h * nk + j) * d:][:d] for j in range(nk)],
                           [v[(h * nk + j) * d:][:d] for j in range(nk)], d ** -0.5, sees, added[row:row + nk])
    masks = {"mask": ("e", added) if mask == 1 else ("B", map(int, seen))} if mask else {}
    masks = {name: (kind, list(numbers)) for name, (kind, numbers) in masks.items()}
    run("attention", {"D": d, "CAUSAL": int(causal), "MASK": mask, "M": "f16" if mask == 1 else "bool"},
        {"heads": heads, "n": n, "nk": nk, "scale": d ** -0.5} | ({"mask_heads": mask_heads} if mask else {}),
        {"q": ("e", q), "k": ("e", k), "v": ("e", v)} | masks, {"o": ("e", o)})


def main():
    random.seed(1)
    moe_gemm([40, 0, 33, 7], 2, 40, 72)
    moe_gemm([0, 0, 1], 1, 8, 8)
    router(16, 13, 128, 8, 1)
    router(32, 32, 60, 4, 0)
    router(1, 1, 256, 8, 1)
    router_step(1, 1, 512, 128, 8, 1)
    router_step(16, 13, 1024, 60, 4, 0, scale=100)     # more parts of k than stages
    router_step(64, 33, 512, 32, 4, 1, scale=1e-3)
    gptq(20, 136, 64, 3)
    mamba2(1, 150, 2, 2, 128, 32, 32)
    attention(1, 30, 30, 32, True, 0, 1)
    attention(2, 20, 88, 32, True, 1, 1)
    attention(2, 20, 88, 32, False, 2, 2)
    attention(1, 20, 10, 32, True, 0, 1)        # rows that see nothing
    mamba2(1, 70, 3, 1, 64, 64, 32)             # a B for each head
    sigmoid_router(4, 3, 256, 8, 4, 2, 8, 1, 2.5)
    sigmoid_router(16, 16, 160, 8, 3, 1, 6, 0, 1.0)
    sigmoid_router(1, 1, 384, 1, 1, 2, 8, 1, 1.5)


main()
