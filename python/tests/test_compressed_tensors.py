"""compressed-tensors by hand: all layouts against scalar decoders."""
import dataclasses
import struct
import unittest

import numpy as np

from helpers import Case, E2M1, decode, e4m3, f16, f32, halves, i32, pack_bits, transpose, u8, words_of


def config(bits=4, group=32, strategy="group", version="0.18.0", **more):
    weights = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": strategy,
               "group_size": group}
    weights.update(more)
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "version": version,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def shape(n, k):
    return ("I64", [2], struct.pack("<2q", n, k))


def gapped(codes, bits):
    """Words of 32 // bits codes each, the highest bits unused."""
    each = 32 // bits
    out = []
    for first in range(0, len(codes), each):
        out.append(sum(c << (i * bits) for i, c in enumerate(codes[first:first + each])))
    return out


class PackQuantized(Case):
    def tensors(self, n, k, bits, group, pack, zeros=False):
        codes, scales = self.codes(n, k, bits), self.scales(n, k // group)
        tensors = {"m.weight_packed": i32([pack(row, bits) for row in codes]),
                   "m.weight_scale": halves(scales), "m.weight_shape": shape(n, k)}
        fields = [[1 << (bits - 1)] * (k // group) for _ in range(n)]
        if zeros:
            fields = self.codes(n, k // group, bits)
            columns = [pack(column, bits) for column in transpose(fields)]
            tensors["m.weight_zero_point"] = i32(transpose(columns))
        middle = 1 << (bits - 1)
        values = [[((codes[i][j] - middle) - (fields[i][j // group] - middle)) *
                   scales[i][j // group] for j in range(k)] for i in range(n)]
        return tensors, values

    def test_streams(self):
        for bits in range(1, 9):
            for zeros in (False, True):
                with self.subTest(bits=bits, zeros=zeros):
                    tensors, values = self.tensors(
                        40, 192, bits, 32, lambda c, b: words_of(pack_bits(c, b)), zeros)
                    weight = self.read(tensors, config(bits))
                    self.check(weight, values)
                    self.check_matmul(weight)
                    if not zeros and bits > 1:
                        self.assertEqual((weight.weights, weight.zeros), (f"i{bits}", None))

    def test_gapped_words_of_0_17(self):
        for bits in (3, 5, 6, 7):
            with self.subTest(bits=bits):
                tensors, values = self.tensors(40, 192, bits, 32, gapped, True)
                weight = self.read(tensors, config(bits, version="0.17.1"))
                self.check(weight, values)
                self.check_matmul(weight)

    def test_few_columns_need_the_version(self):
        how = dict(bits=3, group=None, strategy="channel")
        tensors, values = self.tensors(8, 30, 3, 30, gapped)
        for version in ("0.17.0", "0.17.2.a20260301", "0.16.0", "0.9.4", "0.6.0"):
            self.check(self.read(tensors, config(version=version, **how)), values)
        for version in (None, 0.17, "nightly", ""):
            self.refused("two layouts", self.read, tensors, config(version=version, **how))
        broken = config(**how)
        del broken["version"]
        self.refused("two layouts", self.read, tensors, broken)
        tensors, values = self.tensors(8, 30, 3, 30, lambda c, b: words_of(pack_bits(c, b)))
        for version in ("0.18.0", "0.20.1", "0.100.0", "1.0"):
            self.check(self.read(tensors, config(version=version, **how)), values)

    def test_transforms(self):
        """Those of weights are in the file; of activations none is computed."""
        tensors, values = self.tensors(8, 32, 4, 32, lambda c, b: words_of(pack_bits(c, b)))
        scheme = {"type": "hadamard", "apply": [{"targets": ["Linear"], "location": "weight_output"},
                                                {"targets": ["Linear"], "location": "weight_input", "inverse": True}]}
        for known in (None, {}, {"config_groups": {}}, {"config_groups": {"u": scheme}}):
            self.check(self.read(tensors, {**config(), "transform_config": known}), values)
        for location in ("input", "output", "q_attn", "k_cache", "elsewhere"):
            online = {**scheme, "apply": [*scheme["apply"], {"targets": ["Linear"], "location": location}]}
            wrong = {**config(), "transform_config": {"config_groups": {"u": scheme, "v": online}}}
            self.refused(f"rotates activations, at {location}, which has no", self.read, tensors, wrong)
        for unknown in (5, {"config_groups": 5}, {"config_groups": {"u": 5}}, {"config_groups": {"u": {"apply": [5]}}}):
            self.refused("at None", self.read, tensors, {**config(), "transform_config": unknown})

    def test_channels(self):
        tensors, values = self.tensors(16, 96, 4, 96, lambda c, b: words_of(pack_bits(c, b)))
        weight = self.read(tensors, config(4, None, "channel"))
        self.check(weight, values)
        self.assertEqual(self.check_matmul(weight).group, 0)

    def test_bits_without_configuration(self):
        tensors, values = self.tensors(16, 192, 5, 32, lambda c, b: words_of(pack_bits(c, b)))
        self.check(self.read(tensors), values)

    def test_act_order(self):
        n, k, group = 8, 128, 32
        tensors, values = self.tensors(n, k, 4, group, lambda c, b: words_of(pack_bits(c, b)))
        order = [j // group for j in range(k)]
        self.random.shuffle(order)
        tensors["m.weight_g_idx"] = ("I32", [k], struct.pack("<%di" % k, *order))
        codes = [words_of(tensors["m.weight_packed"][2])[i * 16:i * 16 + 16] for i in range(n)]
        scales = [struct.unpack("<4e", tensors["m.weight_scale"][2][8 * i:8 * i + 8]) for i in range(n)]
        values = [[((codes[i][j // 8] >> 4 * (j % 8) & 15) - 8) * scales[i][order[j]]
                   for j in range(k)] for i in range(n)]
        weight = self.read(tensors, config())
        self.check(weight, values)
        self.check_matmul(weight)
        order[0] = (order[0] + 1) % 4
        tensors["m.weight_g_idx"] = ("I32", [k], struct.pack("<%di" % k, *order))
        self.refused("unequal groups", self.read, tensors, config())

    def test_experts(self):
        parts = [self.tensors(8, 64, 4, 32, lambda c, b: words_of(pack_bits(c, b))) for _ in range(3)]
        joined = {}
        for name in parts[0][0]:
            dtype, dims, _ = parts[0][0][name]
            joined[name] = (dtype, [3] + dims, b"".join(p[0][name][2] for p in parts))
        joined["m.weight_shape"] = parts[0][0]["m.weight_shape"]
        model = self.model(joined, config())
        self.assertEqual(model.experts("m.weight"), 3)
        for i, (_, values) in enumerate(parts):
            self.check(model.weight("m.weight", expert=i), values)
        self.refused("expert", model.weight, "m.weight")
        self.refused("expert", model.weight, "m.weight", 3)

    def test_wrong_words(self):
        tensors, _ = self.tensors(8, 64, 4, 32, lambda c, b: words_of(pack_bits(c, b)))
        self.refused("words of a row is 8, not 16", self.read, tensors, config(8))
        tensors["m.weight_shape"] = shape(8, 1 << 40)
        self.refused("weight_shape", self.read, tensors, config())


class Bytes(Case):
    def test_int(self):
        n, k = 8, 64
        for bits, zeros in ((8, False), (8, True), (4, False), (4, True)):
            with self.subTest(bits=bits, zeros=zeros):
                codes, scales = self.codes(n, k, bits), self.scales(n, 1)
                low = 1 << (bits - 1)
                tensors = {"m.weight": ("I8", [n, k], bytes((c - low) & 255 for r in codes for c in r)),
                           "m.weight_scale": halves(scales)}
                points = [0] * n
                if zeros:
                    points = [self.random.randrange(-low, low) for _ in range(n)]
                    tensors["m.weight_zero_point"] = ("I8", [n, 1], bytes(p & 255 for p in points))
                weight = self.read(tensors, config(bits, None, "channel"))
                self.check(weight, [[(c - low - points[i]) * scales[i][0] for c in codes[i]]
                                    for i in range(n)])
                self.assertEqual(weight.weights, f"i{bits}")
                self.check_matmul(weight)

    def test_float_blocks(self):
        n, k = 20, 40
        codes = [[self.random.choice([c for c in range(256) if c & 127 != 127]) for _ in range(k)]
                 for _ in range(n)]
        scales = [self.random.random() for _ in range(3 * 3)]
        scales = list(struct.unpack("<9f", struct.pack("<9f", *scales)))
        weight = self.read({"m.weight": u8(codes, "F8_E4M3"), "m.weight_scale": f32(scales, [3, 3])},
                           config(8, None, "block", block_structure=[8, 16]))
        self.check(weight, [[e4m3(codes[i][j]) * scales[i // 8 * 3 + j // 16] for j in range(k)]
                            for i in range(n)])
        self.refused("fit neither f16 nor bf16", weight.to_matmul)
        self.assertEqual(weight.to_matmul(approximate=True).group, 16)

    def test_float_tensor(self):
        codes = self.codes(8, 64, 7)
        codes = [[c % 127 for c in row] for row in codes]
        weight = self.read({"m.weight": u8(codes, "F8_E4M3"), "m.weight_scale": f32([0.25], [1])})
        self.check(weight, [[e4m3(c) * 0.25 for c in row] for row in codes])
        self.check_matmul(weight)


class Floats(Case):
    def nibbles(self, codes):
        return [[row[j] | row[j + 1] << 4 for j in range(0, len(row), 2)] for row in codes]

    def test_nvfp4_divides(self):
        n, k = 8, 64
        codes, fields = self.codes(n, k, 4), self.codes(n, k // 16, 7)
        fields = [[min(f, 126) for f in row] for row in fields]
        weight = self.read({"m.weight_packed": u8(self.nibbles(codes)),
                            "m.weight_scale": u8(fields, "F8_E4M3"),
                            "m.weight_global_scale": f32([448.0 * 6], [1])})
        self.check(weight, [[E2M1[codes[i][j]] * (e4m3(fields[i][j // 16]) / 2688.0)
                             for j in range(k)] for i in range(n)])
        m = weight.to_matmul()
        self.assertEqual((m.group, m.scales_type, m.zeros_kind), (16, "f8e4m3", "none"))
        self.assertEqual(m.scales.tolist(), fields)
        self.assertEqual(m.factor.tolist(), [np.float32(1 / 2688.0)])
        np.testing.assert_allclose(m.dequantize(), weight.dequantize(), rtol=2.0 ** -22)

    def test_nvfp4_scales_that_no_product_has(self):
        codes, fields = self.codes(8, 32, 4), [[0x38, 0x7f]] * 8
        for scale, text in ((1.0, "scale [0, 1] is nan, not a finite number"), (1e-45, "fit neither")):
            weight = self.read({"m.weight_packed": u8(self.nibbles(codes)), "m.weight_scale": u8(fields, "F8_E4M3"),
                                "m.weight_global_scale": f32([scale], [1])})
            self.refused(text, weight.to_matmul)
            fields = [[0x38, 0x38]] * 8

    def test_padded(self):
        """Groups of 16 with scales that f16 has are exact as groups of 32, half of them zeros."""
        n, k = 8, 80
        codes, fields = self.codes(n, k, 4), self.codes(n, k // 16, 6)
        weight = self.read({"m.weight_packed": u8(self.nibbles(codes)),
                            "m.weight_scale": u8(fields, "F8_E4M3"), "m.weight_global_scale": f32([4.0], [1])})
        m = weight.to_matmul(pad=True)
        self.assertEqual((m.weights, m.k, m.group, m.permutation.size), ("f4e2m1", 160, 32, 160))
        np.testing.assert_array_equal(m.dequantize(), weight.dequantize())
        x = np.arange(k, dtype="f4")[m.permutation]      # as a product has it, without the sum of dequantize
        columns = dataclasses.replace(weight, permutation=None).to_matmul(pad=True)._replace(permutation=None)
        np.testing.assert_allclose(columns.dequantize() @ x, weight.dequantize() @ np.arange(k), rtol=1e-4)

    def test_mxfp(self):
        n, k = 8, 96
        fields = [[self.random.randrange(100, 150) for _ in range(3)] for _ in range(n)]
        for bits, name in ((4, "f4e2m1"), (6, "f6e2m3")):
            codes = self.codes(n, k, bits)
            weight = self.read({"m.weight_packed": u8([pack_bits(r, bits, 8) for r in codes]),
                                "m.weight_scale": u8(fields)})
            self.check(weight, [[decode(name, codes[i][j]) * 2.0 ** (fields[i][j // 32] - 127)
                                 for j in range(k)] for i in range(n)])
            self.assertEqual(self.check_matmul(weight).weights, name)
        codes = [[min(c, 126) for c in row] for row in self.codes(n, k, 7)]
        weight = self.read({"m.weight": u8(codes, "F8_E4M3"), "m.weight_scale": u8(fields)})
        self.check(weight, [[e4m3(codes[i][j]) * 2.0 ** (fields[i][j // 32] - 127)
                             for j in range(k)] for i in range(n)])
        self.check_matmul(weight)


if __name__ == "__main__":
    unittest.main()
