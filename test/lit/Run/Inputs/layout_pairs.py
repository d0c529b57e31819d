"""layout_pairs.py TILUS-RUN FILE SEED COUNT: writes COUNT programs to FILE that take a tile through six random layouts by
convert_layout, and runs each on the CPU engine, races checked, beside the interpreter. Element types below a byte come
and go by casts. Fails at the first program that gives another tile than it takes.
"""
import math
import random
import subprocess
import sys

SHAPES = [[32], [256], [16, 16], [64, 32], [32, 64], [24, 32], [12, 96], [4, 8, 16], [8, 128]]
NARROW = ["u1", "u2", "u3", "u4", "u5", "i6", "u7"]
CONVERSIONS = 6


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def primitive(rng, left, threads):
    """A factor of a layout: its text and how many threads it takes; takes its extents from `left`."""
    spatial = rng.random() < 0.6
    part, product = [], 1
    for d, extent in enumerate(left):
        fits = [x for x in divisors(extent) if not spatial or threads % (product * x) == 0]
        part.append(rng.choice(fits) if rng.random() < 0.7 else 1)
        product *= part[d]
    left[:] = [extent // x for extent, x in zip(left, part)]
    name = ("column_" if rng.random() < 0.4 else "") + ("spatial" if spatial else "local")
    return f"{name}({', '.join(map(str, part))})", product if spatial else 1


def layout(rng, shape, threads):
    left, factors = list(shape), []
    for _ in range(rng.randint(2, 6)):
        text, taken = primitive(rng, left, threads)
        threads //= taken
        factors.append(text)
        if threads > 1 and rng.random() < 0.15:
            replicas = rng.choice(divisors(threads)[1:])
            threads //= replicas
            factors.append(f"replicate({replicas})")
    if threads > 1:
        factors.append(f"replicate({threads})")
    return ".".join(factors + [f"local({', '.join(map(str, left))})"])


def program(rng, name):
    """The text of a program, and the elements of its tile."""
    warps, shape = rng.choice([1, 1, 1, 2, 3, 4]), rng.choice(SHAPES)
    narrow = rng.choice(NARROW) if rng.random() < 0.35 else None
    dtype = "u8" if narrow else rng.choice(["u8", "u16", "u32", "u64", "f32"])
    extents, zeros = ", ".join(map(str, shape)), ", ".join("0" for _ in shape)
    lines = [f"program @{name}<1>(%x: ptr<{dtype}> {{align = 16}}, %y: ptr<{dtype}> {{align = 16}}) warps({warps}) {{",
             f"  %gx = view_global %x : {dtype}[{extents}]", f"  %gy = view_global %y : {dtype}[{extents}]",
             f"  %l = load_global %gx[{zeros}] : {dtype}[{extents}] @ {layout(rng, shape, 32 * warps)}",
             f"  %v0 = cast %l : {narrow or dtype}"]
    lines += [f"  %v{i + 1} = convert_layout %v{i} : {narrow or dtype}[{extents}] @ {layout(rng, shape, 32 * warps)}"
              for i in range(CONVERSIONS)]
    lines += [f"  %r = cast %v{CONVERSIONS} : {dtype}", f"  store_global %r, %gy[{zeros}]", "}"]
    return "\n".join(lines) + "\n", math.prod(shape)


def main():
    tool, path, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)
    programs = [program(rng, f"p{i}") for i in range(count)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("tilus 1\n" + "\n".join(text for text, _ in programs))
    for i, (_, elements) in enumerate(programs):
        command = [tool, path, f"--program=p{i}", "--arg", f"x=codes({elements})", "--arg", f"y=undef({elements})",
                   "--engine=cpu", "--compare=interp", "--check-races"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode or f"y: {elements} elements, bitwise equal" not in run.stdout:
            sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")


main()
