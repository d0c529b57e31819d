"""Writes small files of weights: weights.py FILE [transposed | nan | doubles | large | wide |
gated | bytes | compact].

FILE.npy has the matrix [6, 300] of f4, or its transpose, or 2^18 times it, or [3072, 1024] of equal rows, or
with `gated` [32, 300];
FILE.safetensors has it as F32 `a`, `b` of BF16 [4, 64], `norm` of one dimension and `codes` of U8; with `bytes` or `compact` 4-bit
codes `w` [6, 304], each in a byte or without gaps, with scales and zero points.
"""
import json
import math
import struct
import sys

ROWS, COLUMNS = 6, 300


def value(row, column):
    return ((row * 7919 + column * 104729) % 2001 - 1000) / 4096


def matrix(kind):
    unit = 2 ** 18 if kind == "wide" else 1
    rows = [[unit * value(r, c) for c in range(COLUMNS)] for r in range(32 if kind == "gated" else ROWS)]
    if kind == "large":
        return 3072 * [[value(r, r) for r in range(1024)]]
    if kind == "nan":
        rows[2][7] = float("nan")
    return [list(column) for column in zip(*rows)] if kind == "transposed" else rows


def floats(rows):
    return b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)


def write_npy(path, kind):
    rows = matrix(kind)
    doubles = kind == "doubles"
    shape = len(rows), len(rows[0]) // (2 if doubles else 1)
    descr = "<f8" if doubles else "<f4"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(floats(rows))


def write_codes(path, kind):
    codes = [(r * 5 + c * 3) % 16 for r in range(ROWS) for c in range(304)]
    pairs = bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2]))
    weights = ("w", "I32", [ROWS, 38], pairs) if kind == "compact" else \
        ("w", "U8", [ROWS, 304], bytes(codes))
    scales = [0.01 + i / 64 for i in range(18)]
    zeros = [i % 16 for i in range(18)]
    if kind == "infinite":
        scales[4] = math.inf
    if kind == "beyond":
        zeros[17] = 16
    write_tensors(path, [weights, ("w_scale", "F16", [ROWS, 3], struct.pack("<18e", *scales)),
                         ("w_zero", "U8", [ROWS, 3], bytes(zeros))])


def write_safetensors(path, kind):
    narrow = b"".join(struct.pack("<f", value(1, i))[2:] for i in range(4 * 64))
    data = [("a", "F32", [ROWS, COLUMNS], floats(matrix(kind))), ("b", "BF16", [4, 64], narrow),
            ("norm", "F16", [3], bytes(6)), ("codes", "U8", [2, 5], bytes(10))]
    write_tensors(path, data)


def write_tensors(path, data):
    header, end = {}, 0
    for name, dtype, shape, raw in data:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(raw)]}
        end += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(raw for *_, raw in data))


def main():
    path, kind = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if kind in ("bytes", "compact", "infinite", "beyond"):
        write_codes(path, kind)
    else:
        (write_npy if path.endswith(".npy") else write_safetensors)(path, kind)


if __name__ == "__main__":
    main()
