"""linear_attention_reference.py TOOLS KERNELS: kernels/linear_attention.tilus and mamba2_*sm90.tilus beside recurrences
in f64, token by token, on the CPU engine."""
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


def run(folder, file, program, defines, arguments, more):
    """Arguments are numbers, texts, or (format of struct, numbers)."""
    command = [TOOLS / "tilus-run", KERNELS / f"{file}.tilus", f"--program=@{program}", "--engine=cpu"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    for name, value in arguments.items():
        if isinstance(value, tuple):
            path = folder / name
            path.write_bytes(struct.pack(f"<{len(value[1])}{value[0]}", *value[1]))
            value = f"@{path}"
        command.append(f"--arg={name}={value}")
    subprocess.run(command + more, check=True, stdout=subprocess.DEVNULL)


def expect(folder, name, kind, numbers, tolerance):
    path = folder / "expected"
    path.write_bytes(struct.pack(f"<{len(numbers)}{kind}", *numbers))
    return [f"--compare={name}={path}", f"--tolerance={tolerance}"]


def unit(row):
    norm = math.sqrt(sum(x * x for x in row))
    return [half(x / norm) for x in row]


def linear(length, heads, d, gated, delta, scale=0.25):
    """States of `d` x `d`, each token after the other."""
    rows = length * heads
    q, v = ([halves(d) for _ in range(rows)] for _ in range(2))
    k = [unit(halves(d)) for _ in range(rows)]
    g = [-random.random() / 5 for _ in range(rows if gated else heads)]
    beta, y = [random.random() for _ in range(rows)], []
    states = [[[0.0] * d for _ in range(d)] for _ in range(heads)]
    for row in range(rows):
        head = row % heads
        decay = math.exp(g[row if gated else head])
        state = states[head] = [[x * decay for x in line] for line in states[head]]
        new = v[row]
        if delta:
            new = [beta[row] * (new[j] - sum(k[row][i] * state[i][j] for i in range(d))) for j in range(d)]
        for i, line in enumerate(state):
            for j in range(d):
                line[j] += k[row][i] * new[j]
        y += [scale * sum(q[row][i] * state[i][j] for i in range(d)) for j in range(d)]
    defines = {"HEADS": heads, "K": d, "V": d, "GATED": int(gated)}
    flat = {name: ("e", [x for row in rows for x in row]) for name, rows in (("q", q), ("k", k), ("v", v))}
    common = {"g": ("f", g), "batch": 1, "length": length}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        chunks = -(-length // 64)
        compare = expect(folder, "y", "e", y, 3e-3)
        more = {"scale": scale, "y": f"undef({rows * d})"}
        if delta:
            inverse = folder / "inverse"
            run(folder, "linear_attention", "delta_inverse", defines,
                common | {"k": flat["k"], "beta": ("f", beta), "inverse": f"undef({heads * chunks * 4096})"},
                [f"--out=inverse={inverse}"])
            run(folder, "linear_attention", "gated_delta", defines, common | flat | more | {"inverse": f"@{inverse}"},
                compare)
        else:
            run(folder, "linear_attention", "linear_attention", defines, common | flat | more, compare)
    print("linear", length, heads, d, gated, delta, flush=True)


def mamba2(length, heads, p=64, n=128):
    """One chunk: states from nothing, and y from states."""
    rate = [random.random() for _ in range(heads)]
    dt = [[random.random() / 5 for _ in range(256)] for _ in range(heads)]
    a = [[-rate[h] * sum(dt[h][:t + 1]) for t in range(256)] for h in range(heads)]
    x, b, c = halves(length * heads * p), halves(length * n), halves(length * n)
    cb, before, d = halves(256 * 256), halves(heads * p * n), halves(heads)
    states, y = [], [0.0] * len(x)
    for h in range(heads):
        factor = [dt[h][t] * math.exp(a[h][255] - a[h][t]) for t in range(length)]
        column = [[x[(t * heads + h) * p + r] for t in range(length)] for r in range(p)]
        states += [sum(column[r][t] * factor[t] * b[t * n + s] for t in range(length))
                   for r in range(p) for s in range(n)]
        for t in range(length):
            weights = [cb[t * 256 + s] * math.exp(a[h][t] - a[h][s]) * dt[h][s] for s in range(t + 1)]
            row = [z * math.exp(a[h][t]) for z in c[t * n:][:n]]
            for r in range(p):
                state = before[(h * p + r) * n:][:n]
                y[(t * heads + h) * p + r] = sum(map(float.__mul__, weights, column[r])) + d[h] * column[r][t] + \
                    sum(map(float.__mul__, row, state))
    defines = {"HEADS": heads, "EACH": heads}
    common = {"x": ("e", x), "dt": ("f", [t for row in dt for t in row]), "a": ("f", [t for row in a for t in row]),
              "batch": 1, "length": length}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run(folder, "mamba2_states_sm90", "chunk_state", {"HEADS": heads},
            common | {"b": ("e", b), "states": f"undef({len(states)})", "next": "zeros(1)"},
            expect(folder, "states", "f", states, 1e-3) + ["--expect=next=zeros(1)", "--allow-zero"])
        run(folder, "mamba2_sm90", "chunk_scan", defines,
            common | {"c": ("e", c), "cb": ("e", cb), "states": ("e", before), "d": ("f", d), "y": f"undef({len(y)})"},
            expect(folder, "y", "e", y, 1e-3))
    print("mamba2", length, heads, flush=True)


def main():
    random.seed(1)
    linear(100, 2, 32, False, False)
    linear(70, 2, 32, True, False)
    linear(140, 1, 32, True, True)
    mamba2(130, 2)
    linear(70, 1, 96, True, True)               # more columns than a block has, and no multiple of them
    linear(70, 1, 96, True, False)


main()
