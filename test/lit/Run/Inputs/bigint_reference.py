"""Products of big integers, program by program on an engine, beside Python's: bigint_reference.py KERNELS ENGINE [full]

full: the tiles and the passes of the library, other than with small ones."""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS, ENGINE = Path(sys.argv[1]), sys.argv[2]
PRIME = 2 ** 64 - 2 ** 32 + 1
rng = random.Random(1)


def run(folder, template, program, parameters, numbers, buffers, results):
    """Runs a program. `buffers` are argument, file and, of one that is made, its length; `results` are read back."""
    command = ["tilus-run", KERNELS / template, f"--engine={ENGINE}", f"--program=@{program}", "--allow-zero"]
    command += ["--check-races"] if ENGINE == "cpu" else []
    command += [word for parameter in parameters for word in ("-D", parameter)]
    for name, value in numbers.items():
        command += ["--arg", f"{name}={value}"]
    for name, (file, length) in buffers.items():
        command += ["--arg", f"{name}=undef({length})" if length else f"{name}=@{folder / file}"]
        command += ["--out", f"{name}={folder / file}"] if name in results else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")


def kinds(size):
    return [rng.randbytes(size), b"\xff" * size, bytes(size), (1).to_bytes(size, "little"),
            b"\0" * (size - 1) + b"\x80"]


def pairs(na, nb):
    return zip(*((x, y) for x in kinds(na) for y in kinds(nb)))


def check(folder, a, b, what):
    """Compares the file c with the products."""
    size = len(a[0]) + len(b[0])
    c = (folder / "c").read_bytes()
    for i, (x, y) in enumerate(zip(a, b)):
        expected = int.from_bytes(x, "little") * int.from_bytes(y, "little")
        if expected.to_bytes(size, "little") != c[i * size:(i + 1) * size]:
            sys.exit(f"{what}: pair {i} is wrong: {x.hex()} x {y.hex()}")
    print(f"{what}: {len(a)} products")


def summary(batch, parts, made):
    return {"overflows": ("overflows", made and batch * parts), "firsts": ("firsts", made and batch * parts)}


def carry(folder, batch, size, part, divisor):
    parts = -(-size // part)
    if parts > 1:
        run(folder, "bigint.tilus", "carry", [f"PART={part}", f"DIVISOR={divisor}"], {"batch": batch, "nc": size},
            {"c": ("c", 0), **summary(batch, parts, 0)}, ["c"])


def schoolbook(folder, na, nb, part, *parameters):
    a, b = pairs(na, nb)
    size, divisor = na + nb, 1 if na % 16 or nb % 16 else 16
    (folder / "a").write_bytes(b"".join(a))
    (folder / "b").write_bytes(b"".join(b))
    run(folder, "bigint.tilus", "product", [*parameters, f"DIVISOR={divisor}"],
        {"batch": len(a), "na": na, "nb": nb},
        {"a": ("a", 0), "b": ("b", 0), "c": ("c", len(a) * size), **summary(len(a), -(-size // part), True)},
        ["c", "overflows", "firsts"])
    carry(folder, len(a), size, part, divisor)
    check(folder, a, b, f"{na} x {nb} bytes")


def roots():
    """The table of bigint_ntt.tilus."""
    root = pow(7, (PRIME - 1) >> 26, PRIME)
    root = next(r for j in range(1, 64, 2) if pow(r := pow(root, j, PRIME), 1 << 20, PRIME) == 8)
    half = (PRIME + 1) // 2
    table = [pow(root, 8192 * i, PRIME) for i in range(8192)] + [pow(root, i, PRIME) for i in range(8192)]
    return b"".join(x.to_bytes(8, "little") for x in table + [pow(half, i, PRIME) for i in range(32)])


def transform(folder, a, b, radices, tile, part):
    na, nb, batch = len(a[0]), len(b[0]), len(a)
    log = sum((r1 * r2).bit_length() - 1 for r1, r2 in radices)
    divisor = 1 if na % 16 or nb % 16 else 16
    common = [f"TILE={tile}", f"DIVISOR={divisor}", f"PART={part}"]
    (folder / "table").write_bytes(roots())
    for name, numbers, points in (("a", a, "x"), ("b", b, "y")):
        (folder / name).write_bytes(b"".join(numbers))
        run(folder, "bigint_ntt.tilus", "spread", [*common, "R1=4", "R2=4"],
            {"batch": batch, "n": len(numbers[0]), "l": 1 << log}, {"a": (name, 0), "x": (points, batch << log)}, ["x"])
    passes, n = [], 1 << log
    for r1, r2 in radices:
        last = n == r1 * r2
        passes.append(([*common, f"R1={r1}", f"R2={r2}", f"LAST={int(last)}"],
                       {"points": batch << log, "inner": n // (r1 * r2), "unit": (1 << 26) // n}))
        n //= r1 * r2
    for parameters, numbers in passes:
        for points in "xy":
            run(folder, "bigint_ntt.tilus", "forward", parameters, numbers,
                {"x": (points, 0), "table": ("table", 0)}, ["x"])
    for parameters, numbers in reversed(passes):
        run(folder, "bigint_ntt.tilus", "backward", parameters, {**numbers, "scale": log},
            {"x": ("x", 0), "y": ("y", 0), "table": ("table", 0)}, ["x"])
    parts = -(-(na + nb) // part)
    run(folder, "bigint_ntt.tilus", "gather", [*common, "R1=4", "R2=4"], {"batch": batch, "n": na + nb, "l": 1 << log},
        {"x": ("x", 0), "c": ("c", batch * (na + nb)), **summary(batch, parts, True)}, ["c", "overflows", "firsts"])
    carry(folder, batch, na + nb, part, divisor)
    check(folder, a, b, f"{na} x {nb} bytes by 2^{log} points")


def carries(folder, part):
    """Carries that run through parts of all ones, and others that must not: @carry alone, beside sums."""
    count, size = 24, 5 * part - 16
    words = [[rng.choice([b"\xff" * part, b"\0" * part, rng.randbytes(4) + b"\xff" * (part - 4)])
              for _ in range(5)] for _ in range(count)]
    numbers = [b"".join(w)[:size] for w in words]
    over = [[rng.choice([0, 1, 1, 0x1fffffe]) for _ in range(5)] for _ in range(count)]
    over = [[n if any(c != 0xff for c in w[4]) or i < 3 else 0 for i, n in enumerate(o)] for w, o in zip(words, over)]
    firsts = [[int.from_bytes(w[i][:4], "little") if w[i][4:] == b"\xff" * (part - 4) else 0 for i in range(5)]
              for w in words]
    (folder / "c").write_bytes(b"".join(numbers))
    for name, table in (("overflows", over), ("firsts", firsts)):
        (folder / name).write_bytes(b"".join(n.to_bytes(4, "little") for row in table for n in row))
    carry(folder, count, size, part, 16)
    c = (folder / "c").read_bytes()
    for i in range(count):
        total = int.from_bytes(numbers[i], "little") + sum(n << 8 * part * (j + 1) for j, n in enumerate(over[i]))
        if c[i * size:(i + 1) * size] != (total % (1 << 8 * size)).to_bytes(size, "little"):
            sys.exit(f"carries of number {i} are wrong: {over[i]}")
    print(f"carries of {count} numbers")


def small(folder):
    schoolbook(folder, 32, 32, 512, "B=32", "CHUNKS=5")
    schoolbook(folder, 33, 70, 1024)
    schoolbook(folder, 800, 1500, 1024, "M=32", "WARPS_M=2", "B=32", "CHUNKS=3")
    schoolbook(folder, 1600, 320, 2048, "M=32", "WARPS_N=2", "CHUNKS=4")
    carries(folder, 512)
    transform(folder, *pairs(101, 300), [(4, 4), (4, 4)], 256, 1024)
    sizes = kinds(4001), kinds(3999)
    transform(folder, sizes[0], sizes[1][1:] + sizes[1][:1], [(4, 4)] * 3, 256, 1024)


def full(folder):
    schoolbook(folder, 9000, 8999, 8192, "M=64", "B=128", "WARPS_M=2", "WARPS_N=2", "CHUNKS=17")
    for na, nb, radices in ((16384, 16384, [(8, 16), (8, 16)]), (200000, 62143, [(16, 32), (16, 16)]),
                            (262144, 262144, [(16, 32), (16, 32)]), (500000, 500001, [(8, 16), (8, 8), (8, 8)])):
        transform(folder, [b"\xff" * na], [rng.randbytes(nb)], radices, 4096, 8192)


with tempfile.TemporaryDirectory() as name:
    (full if "full" in sys.argv else small)(Path(name))
