"""Files made by hand for the tests: written from the formats' specifications, in plain Python,
without any function of the package."""
import importlib
import importlib.metadata
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy as np  # noqa: E402

from tilusc import formats  # noqa: E402
import table  # noqa: E402

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def version(package):
    """Returns the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:     # a folder of the source
        return importlib.import_module(package).__version__


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa / 8 * 2 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -size if code >> 7 else size


def f16(value):
    """Returns the bytes and the value of the nearest f16."""
    raw = struct.pack("<e", value)
    return raw, struct.unpack("<e", raw)[0]


def pack_bits(codes, bits, word=32):
    """Packs codes as one stream, lowest bits first, to whole words of `word` bits."""
    number = 0
    for i, code in enumerate(codes):
        number |= code << (i * bits)
    words = -(-len(codes) * bits // word)
    return number.to_bytes(words * word // 8, "little")


def words_of(raw):
    return list(struct.unpack("<%dI" % (len(raw) // 4), raw))


def transpose(rows):
    return [list(x) for x in zip(*rows)]


def i32(rows):
    """Returns a tensor of words: dtype, shape, bytes."""
    flat = [x for row in rows for x in row]
    return ("I32", [len(rows), len(rows[0])], struct.pack("<%dI" % len(flat), *flat))


def halves(rows):
    flat = [x for row in rows for x in row]
    return ("F16", [len(rows), len(rows[0])], b"".join(f16(x)[0] for x in flat))


def u8(rows, dtype="U8"):
    return (dtype, [len(rows), len(rows[0])], b"".join(bytes(row) for row in rows))


def f32(values, shape):
    return ("F32", shape, struct.pack("<%df" % len(values), *values))


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Case(unittest.TestCase):
    """A test with a folder and a seed."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.random = random.Random(self.id())

    def path(self, name):
        return os.path.join(self.folder, name)

    def codes(self, rows, columns, bits):
        return [[self.random.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]

    def scales(self, rows, columns):
        return [[f16(self.random.uniform(0.01, 1))[1] for _ in range(columns)] for _ in range(rows)]

    def model(self, tensors, config=None, name="config.json"):
        """Writes a checkpoint and opens it."""
        write_safetensors(self.path("model.safetensors"), tensors)
        if config is not None:
            with open(self.path(name), "w") as file:
                json.dump({"quantization_config": config} if name == "config.json" else config, file)
        model = formats.open(self.folder)
        self.addCleanup(model.close)
        return model

    def read(self, tensors, config=None, name="m.weight", **more):
        return self.model(tensors, config).weight(name, **more)

    def check(self, weight, expected):
        """Checks that f64 values are exactly those expected, [n][k], and f32 those rounded."""
        expected = np.array(expected, np.float64)
        np.testing.assert_array_equal(weight.dequantize("f8"), expected)
        np.testing.assert_array_equal(weight.dequantize("f4"), expected.astype("f4"))
        self.record(weight, "files by hand")

    def record(self, weight, package, values="exact", version=""):
        """Adds a row to the table of docs/formats.md, or checks that it has it."""
        table.check(self, *table.row_of(weight, package, version, values, formats.FormatError))

    def check_matmul(self, weight, **more):
        """Checks that the arrays for products, decoded one by one, mean the same matrix."""
        m = weight.to_matmul(**more)
        expected = weight.dequantize("f8")
        if m.permutation is not None:
            expected = expected[:, m.permutation]
        stream = int.from_bytes(m.codes.tobytes(), "little")
        bits = int(m.weights[1])
        self.assertEqual(m.codes.size, -(-m.n * m.k * bits // 8))
        group = m.group or m.k
        self.assertTrue(m.group == 0 or group in (16, 32, 64) or group % 128 == 0, group)
        self.assertEqual(m.scales.shape, (m.n, -(-m.k // group)))
        places = [(n, k) for n in range(m.n) for k in range(m.k)]
        for n, k in self.random.sample(places, min(500, len(places))):
            code = stream >> ((n * m.k + k) * bits) & ((1 << bits) - 1)
            zero = 0 if m.zeros is None else m.zeros[n, k // group]
            if m.zeros_kind == "float":
                zero = half(int(zero), m.scales_type)
            elif m.weights[0] == "i":
                zero = (int(zero) ^ 128) - 128
            bits_of_scale = int(m.scales[n, k // group])
            scale = (half(bits_of_scale, m.scales_type) if m.factor is None
                     else decode("f8e4m3", bits_of_scale) * float(m.factor[0]))
            value = (decode(m.weights, code) - int(zero) if m.zeros_kind != "float"
                     else decode(m.weights, code) - zero) * scale
            self.assertEqual(value, expected[n, k], (n, k))
        return m

    def refused(self, text, function, *arguments, **more):
        with self.assertRaises(formats.FormatError) as caught:
            function(*arguments, **more)
        self.assertIn(text, str(caught.exception))


def half(code, name):
    if name == "bf16":
        return struct.unpack("<f", struct.pack("<I", code << 16))[0]
    return struct.unpack("<e", struct.pack("<H", code))[0]


def decode(name, code):
    """Returns the value of a code of uN, iN, f4e2m1, f6e2m3, f8e4m3."""
    bits = int(name[1])
    if name[0] == "u":
        return code
    if name[0] == "i":
        return code - (1 << bits) if code >> (bits - 1) else code
    if name == "f4e2m1":
        return E2M1[code]
    if name == "f6e2m3":
        x, m = code >> 3 & 3, code & 7
        size = m / 8 if x == 0 else (1 + m / 8) * 2.0 ** (x - 1)
        return -size if code >> 5 else size
    return e4m3(code)
