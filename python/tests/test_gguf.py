"""GGUF's block types: random blocks against scalar decoders and against the package gguf."""
import struct
import unittest

import numpy as np

from helpers import Case, E2M1, f16, formats, version
import samples

try:
    import gguf
except ImportError:
    gguf = None

T = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
# Name: id, bytes, elements, offsets of f16 scales.
TYPES = {"Q4_0": (2, 18, 32, [0]), "Q4_1": (3, 20, 32, [0, 2]), "Q5_0": (6, 22, 32, [0]),
         "Q5_1": (7, 24, 32, [0, 2]), "Q8_0": (8, 34, 32, [0]), "Q2_K": (10, 84, 256, [80, 82]),
         "Q3_K": (11, 110, 256, [108]), "Q4_K": (12, 144, 256, [0, 2]),
         "Q5_K": (13, 176, 256, [0, 2]), "Q6_K": (14, 210, 256, [208]), "IQ4_NL": (20, 18, 32, [0]),
         "IQ4_XS": (23, 136, 256, [0]), "TQ1_0": (34, 54, 256, [52]), "TQ2_0": (35, 66, 256, [64]),
         "MXFP4": (39, 17, 32, []), "NVFP4": (40, 36, 64, []), "Q1_0": (41, 18, 128, [0]),
         "Q2_0": (42, 18, 64, [0])}


def value(name, b, e):
    """Returns element e of block b, as the table of the specification says it."""
    def h(o):
        return struct.unpack_from("<e", b, o)[0]

    def nib(o, i):
        return b[o + (i & 15)] >> 4 * (i >> 4) & 15

    def kscale(i):
        q = b[4:16]
        if i < 4:
            return q[i] & 63, q[i + 4] & 63
        return q[i + 4] & 15 | (q[i - 4] >> 6) << 4, q[i + 4] >> 4 | (q[i] >> 6) << 4
    hh, j, l = e >> 7, e >> 5 & 3, e & 31
    if name == "Q4_0":
        return (nib(2, e) - 8) * h(0)
    if name == "Q4_1":
        return nib(4, e) * h(0) + h(2)
    if name in ("Q5_0", "Q5_1"):
        at = 2 if name == "Q5_0" else 4
        q = nib(at + 4, e) | (struct.unpack_from("<I", b, at)[0] >> e & 1) << 4
        return (q - 16) * h(0) if name == "Q5_0" else q * h(0) + h(2)
    if name == "Q8_0":
        return struct.unpack_from("<b", b, 2 + e)[0] * h(0)
    if name == "Q2_K":
        s = b[e >> 4]
        return h(80) * (s & 15) * (b[16 + 32 * hh + l] >> 2 * j & 3) - h(82) * (s >> 4)
    if name == "Q3_K":
        t = e >> 4
        s = b[96 + (t & 7)] >> 4 * (t >> 3) & 15 | (b[104 + (t & 3)] >> 2 * (t >> 2) & 3) << 4
        q = (b[32 + 32 * hh + l] >> 2 * j & 3) - (0 if b[l] >> (4 * hh + j) & 1 else 4)
        return h(108) * (s - 32) * q
    if name in ("Q4_K", "Q5_K"):
        s, m = kscale(e >> 5)
        q = b[(16 if name == "Q4_K" else 48) + 32 * (e >> 6) + l] >> 4 * (e >> 5 & 1) & 15
        if name == "Q5_K":
            q |= (b[16 + l] >> (e >> 5) & 1) << 4
        return h(0) * s * q - h(2) * m
    if name == "Q6_K":
        q = b[64 * hh + 32 * (j & 1) + l] >> 4 * (j >> 1) & 15 | (b[128 + 32 * hh + l] >> 2 * j & 3) << 4
        return h(208) * struct.unpack_from("<b", b, 192 + (e >> 4))[0] * (q - 32)
    if name == "IQ4_NL":
        return h(0) * T[nib(2, e)]
    if name == "IQ4_XS":
        g = e >> 5
        s = b[4 + (g >> 1)] >> 4 * (g & 1) & 15 | (struct.unpack_from("<H", b, 2)[0] >> 2 * g & 3) << 4
        return h(0) * (s - 32) * T[nib(8 + 16 * g, l)]
    if name == "TQ1_0":
        if e < 160:
            n, v = e // 32, b[e % 32]
        elif e < 240:
            n, v = (e - 160) // 16, b[32 + (e - 160) % 16]
        else:
            n, v = (e - 240) // 4, b[48 + (e - 240) % 4]
        return (((v * 3 ** n & 255) * 3 >> 8) - 1) * h(52)
    if name == "TQ2_0":
        return ((b[32 * hh + l] >> 2 * j & 3) - 1) * h(64)
    if name == "MXFP4":
        return E2M1[nib(1, e)] * 2.0 ** (b[0] - 127)
    if name == "NVFP4":
        g = e >> 4
        s = b[g] & 127
        size = s / 512 if s < 8 else (1 + (s & 7) / 8) * 2.0 ** ((s >> 3) - 7)
        return E2M1[b[4 + 8 * g + (e & 7)] >> 4 * (e >> 3 & 1) & 15] * (0 if b[g] == 127 else size)
    if name == "Q1_0":
        return h(0) if b[2 + e // 8] >> e % 8 & 1 else -h(0)
    return ((b[2 + (e >> 2)] >> 2 * (e & 3) & 3) - 1) * h(0)


class Blocks(Case):
    def blocks(self, name, count):
        _, size, _, scales = TYPES[name]
        out = []
        for _ in range(count):
            block = bytearray(self.random.randrange(256) for _ in range(size))
            for at in scales:
                block[at:at + 2] = f16(self.random.uniform(-2, 2))[0]
            if name == "MXFP4":
                block[0] = self.random.randrange(100, 150)
            out.append(bytes(block))
        return out

    def write(self, name, rows, blocks_per_row):
        kind, _, elements, _ = TYPES[name]
        blocks = self.blocks(name, rows * blocks_per_row)
        path = samples.write_gguf(self.path("x.gguf"), [
            ("w", kind, [elements * blocks_per_row, rows], b"".join(blocks))])
        return path, blocks

    def test_scalar(self):
        for name, (_, _, elements, _) in TYPES.items():
            with self.subTest(name=name):
                path, blocks = self.write(name, 3, 2)
                expected = [[value(name, blocks[2 * i + e // elements], e % elements)
                             for e in range(2 * elements)] for i in range(3)]
                with formats.open(path) as model:
                    self.assertEqual(model.format, "gguf " + name)
                    self.check(model.weight("w"), expected)

    @unittest.skipIf(gguf is None, "no package gguf")
    def test_against_the_package(self):
        for name, (kind, size, elements, _) in TYPES.items():
            if name in ("Q1_0", "Q2_0"):
                continue
            with self.subTest(name=name):
                path, blocks = self.write(name, 16, 4)
                raw = np.frombuffer(b"".join(blocks), np.uint8).reshape(16, 4 * size)
                expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name])
                with formats.open(path) as model:
                    weight = model.weight("w")
                    found = weight.dequantize()
                # The package rounds each operation to f32; this is a rounding of the larger term.
                near = np.abs(found - expected) <= 2.0 ** -22 * np.abs(expected).max()
                self.assertTrue(near.all())
                added = name in ("Q2_K", "Q4_1", "Q5_1", "Q4_K", "Q5_K")
                if not added:
                    np.testing.assert_array_equal(found, expected)
                self.record(weight, "gguf", "to f32's rounding" if added else "exact", version("gguf"))

    @unittest.skipIf(gguf is None, "no package gguf")
    def test_file_of_the_package(self):
        path = self.path("p.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_array("names", ["a", "b"])
        data = np.random.default_rng(1).standard_normal((8, 256)).astype("f4")
        made = {}
        for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"):
            kind = gguf.GGMLQuantizationType[name]
            raw = gguf.quants.quantize(data, kind)
            made[name] = gguf.quants.dequantize(raw, kind)
            writer.add_tensor(name, raw, raw_dtype=kind)
        writer.add_tensor("norm", data[0])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        with formats.open(path) as model:
            self.assertEqual(model.config["names"], ["a", "b"])
            np.testing.assert_array_equal(model.tensor("norm"), data[0])
            for name, expected in made.items():
                np.testing.assert_allclose(model.weight(name).dequantize(), expected, 2 ** -22, 1e-6)

    def test_matmul(self):
        for name in ("Q4_0", "Q5_0", "Q8_0", "TQ2_0", "MXFP4", "NVFP4", "IQ4_NL"):
            path, _ = self.write(name, 2, 2)
            with formats.open(path) as model:
                self.check_matmul(model.weight("w"))
        for name, text in (("Q4_1", "minimums"), ("IQ4_XS", "fit neither"), ("Q6_K", "fit neither")):
            path, _ = self.write(name, 2, 2)
            with formats.open(path) as model:
                self.refused(text, model.weight("w").to_matmul)
                if name == "Q4_1":
                    self.assertEqual(model.weight("w").to_matmul(True).zeros_kind, "float")
                if name == "IQ4_XS":
                    self.assertEqual(model.weight("w").to_matmul(True).weights, "i8")

    def test_experts_and_refused(self):
        blocks = self.blocks("Q8_0", 12)
        path = samples.write_gguf(self.path("x.gguf"), [
            ("w", 8, [32, 4, 3], b"".join(blocks)), ("q", 19, [256, 1], bytes(50))])
        with formats.open(path) as model:
            self.assertEqual(model.experts("w"), 3)
            self.check(model.weight("w", 2), [[value("Q8_0", b, e) for e in range(32)]
                                              for b in blocks[8:]])
            self.refused("expert", model.weight, "w")
            self.refused("IQ1_S", model.weight, "q")


if __name__ == "__main__":
    unittest.main()
