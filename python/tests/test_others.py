"""HQQ, bitsandbytes, gpt-oss, ModelOpt, DeepSeek, BitNet and plain files by hand."""
import json
import struct
import unittest

import numpy as np

from helpers import Case, E2M1, e4m3, f16, f32, formats, halves, u8
import samples


class Hqq(Case):
    def tensors(self, packing, bits, per_word, n=10, k=64, group=32, **meta):
        rows = n * k // group
        codes, scales, zeros = self.codes(rows, group, bits), self.scales(rows, 1), self.scales(rows, 1)
        height = -(-rows // per_word)
        field = 3 if packing == "3bit_32" else 8 // per_word
        words = []
        for r in range(height):
            words.append([sum(codes[r + i * height][c] << field * (per_word - 1 - i)
                              for i in range(per_word) if r + i * height < rows) for c in range(group)])
        flat = [w for row in words for w in row]
        packed = (("I32", [height, group], struct.pack("<%dI" % len(flat), *flat))
                  if packing == "3bit_32" else u8(words))
        tensors = {"m.W_q": packed, "m.scale": halves(scales), "m.zero": halves(zeros),
                   "m.shape": ("I32", [2], struct.pack("<2i", n, k)),
                   "m.packing": ("U8", [len(packing)], packing.encode())}
        for key, value in dict({"nbits": bits, "group_size": group, "axis": 1}, **meta).items():
            tensors["m." + key] = ("I32", [], struct.pack("<i", value))
        values = [[0.0] * k for _ in range(n)]
        for e in range(n * k):
            values[e // k][e % k] = (codes[e // group][e % group] - zeros[e // group][0]) * scales[e // group][0]
        return tensors, values

    def test_packings(self):
        for packing, bits, per_word, n in (("8bit_u8", 8, 1, 10), ("8bit_u8", 6, 1, 10),
                                           ("8bit_u8", 5, 1, 10), ("4bit_u8", 4, 2, 10),
                                           ("2bit_u8", 2, 4, 10), ("1bit_u8", 1, 8, 12),
                                           ("3bit_32", 3, 10, 7)):
            with self.subTest(packing=packing, bits=bits):
                tensors, values = self.tensors(packing, bits, per_word, n)
                weight = self.read(tensors)
                self.assertEqual(weight.weights, f"u{bits}")
                self.check(weight, values)
                self.assertEqual(self.check_matmul(weight).zeros_kind, "float")

    def test_refused(self):
        self.refused("axis 0", self.read, self.tensors("4bit_u8", 4, 2, axis=0)[0])
        self.refused("view_as_float", self.read, self.tensors("4bit_u8", 4, 2, view_as_float=1)[0])
        self.refused("group_size", self.read, self.tensors("4bit_u8", 4, 2, group_size=48)[0])


class Bitsandbytes(Case):
    def expected(self, tensors, n, k, block, double):
        raw = tensors["m.weight"][2]
        table = list(range(16))
        values = [[0.0] * k for _ in range(n)]
        for e in range(n * k):
            code = raw[e // 2] >> 4 if e % 2 == 0 else raw[e // 2] & 15
            i = e // block
            scale = 1.0 + i
            if double:
                scale = tensors["m.weight.absmax"][2][i] / 64 * (1 + i // 256) + 0.5
            values[e // k][e % k] = table[code] * scale
        return values

    def test_blocks(self):
        for n, k, block, double in ((8, 128, 64, False), (300, 64, 64, True), (8, 64, 256, False)):
            for kind in ("nf4", "fp4"):
                with self.subTest(block=block, double=double, kind=kind):
                    tensors = samples.nf4(n, k, double, block, kind)
                    weight = self.read(tensors)
                    self.check(weight, self.expected(tensors, n, k, block, double))
                    if not double:
                        self.assertEqual(self.check_matmul(weight).weights, "u4")     # the table is 0 to 15

    def test_tables(self):
        """FP4 is f5e3m1 times a number, to the rounding of the table; NF4 is no type's."""
        fp4 = [s * x / 12 for s in (1, -1) for x in (0, 0.0625, 8, 12, 4, 6, 2, 3)]
        for table, weights in ((fp4, "f5e3m1"), ([x ** 3 for x in range(16)], None)):
            tensors = samples.nf4(8, 64, False)
            tensors["m.weight.quant_map"] = f32(table, [16])
            weight = self.read(tensors)
            self.refused("codebook", weight.to_matmul)
            if weights is None:
                self.refused("codebook", weight.to_matmul, approximate=True)
            else:
                m = weight.to_matmul(approximate=True)
                self.assertEqual(m.weights, weights)
                np.testing.assert_allclose(m.dequantize(), weight.dequantize(), rtol=2 ** -10)

    def test_refused(self):
        self.refused("cross rows", self.read, samples.nf4(8, 96, False))

    def test_int8(self):
        codes = self.codes(4, 32, 8)
        weight = self.read({"m.weight": u8(codes, "I8"), "m.SCB": f32([1.0, 2.0, 3.0, 127.0], [4])})
        signed = [[c - 256 if c > 127 else c for c in row] for row in codes]
        self.check(weight, [[c * (s / 127) for c in row] for row, s in zip(signed, (1, 2, 3, 127))])
        self.refused("fit neither", weight.to_matmul)


class Fours(Case):
    def nibbles(self, codes):
        return [[row[j] | row[j + 1] << 4 for j in range(0, len(row), 2)] for row in codes]

    def test_gpt_oss(self):
        experts, n, k = 3, 4, 64
        codes = [self.codes(n, k, 4) for _ in range(experts)]
        fields = [[[self.random.randrange(110, 140) for _ in range(k // 32)] for _ in range(n)]
                  for _ in range(experts)]
        blocks = ("U8", [experts, n, k // 32, 16],
                  b"".join(bytes(r) for e in codes for r in self.nibbles(e)))
        scales = ("U8", [experts, n, k // 32], bytes(f for e in fields for r in e for f in r))
        bias = ("BF16", [experts, n], struct.pack("<12H", *(0x3F80 + i for i in range(12))))
        for stem, name in (("mlp.experts.up_blocks", "mlp.experts.up"), ("mlp.w.blocks", "mlp.w")):
            model = self.model({stem: blocks, stem.replace("blocks", "scales"): scales,
                                stem.replace("blocks", "bias"): bias})
            self.assertEqual(model.names(), [name])
            self.assertEqual(model.experts(name), 3)
            for e in range(experts):
                weight = model.weight(name, e)
                self.check(weight, [[E2M1[codes[e][i][j]] * 2.0 ** (fields[e][i][j // 32] - 127)
                                     for j in range(k)] for i in range(n)])
                self.assertEqual(weight.bias[0], 1 + 4 * e / 128)
                self.assertEqual(self.check_matmul(weight).scales_type, "f16")

    def test_modelopt_nvfp4_multiplies(self):
        n, k = 8, 64
        codes, fields = self.codes(n, k, 4), [[min(f, 126) for f in r] for r in self.codes(n, 4, 7)]
        tensors = {"m.weight": u8(self.nibbles(codes)), "m.weight_scale": u8(fields, "F8_E4M3"),
                   "m.weight_scale_2": f32([0.25], [])}
        weight = self.read(tensors)
        self.check(weight, [[E2M1[codes[i][j]] * e4m3(fields[i][j // 16]) * 0.25
                             for j in range(k)] for i in range(n)])
        m = self.check_matmul(weight)
        self.assertEqual((m.group, m.scales_type, m.factor.tolist()), (16, "f8e4m3", [0.25]))
        tensors["m.pre_quant_scale"] = f32([1.0] * k, [k])
        self.refused("pre_quant_scale", self.read, tensors)

    def test_modelopt_int4_packs_rows(self):
        n, k = 8, 64
        codes, scales = self.codes(n, k, 4), self.scales(n, 2)
        raw = [[codes[2 * r][j] | codes[2 * r + 1][j] << 4 for j in range(k)] for r in range(n // 2)]
        weight = self.read({"m.weight": u8(raw), "m.weight_scale": halves(scales)})
        self.check(weight, [[(codes[i][j] - 16 * (codes[i][j] > 7)) * scales[i][j // 32]
                             for j in range(k)] for i in range(n)])
        self.assertEqual(self.check_matmul(weight).weights, "i4")

    def test_deepseek(self):
        n, k = 200, 300
        codes = [[c % 127 for c in row] for row in self.codes(n, k, 7)]
        scales = [0.5, 1.0, 2.0, 4.0, 0.25, 8.0]
        tensors = {"m.weight": u8(codes, "F8_E4M3"), "m.weight_scale_inv": f32(scales, [2, 3])}
        weight = self.read(tensors, {"quant_method": "fp8", "weight_block_size": [128, 128]})
        self.check(weight, [[e4m3(codes[i][j]) * scales[i // 128 * 3 + j // 128] for j in range(k)]
                            for i in range(n)])
        self.check_matmul(weight)
        self.refused("weight_scale_inv: shape", self.read, tensors, {"weight_block_size": [64, 64]})

    def test_bitnet_quarters_and_classes(self):
        n, k = 8, 32
        fields = [[self.random.randrange(3) for _ in range(k)] for _ in range(n)]
        raw = [[sum(fields[r + i * (n // 4)][j] << 2 * i for i in range(4)) for j in range(k)]
               for r in range(n // 4)]
        tensors = {"m.weight": u8(raw), "m.weight_scale": ("BF16", [1], struct.pack("<H", 0x4020))}
        for config, factor in (({"linear_class": "bitlinear"}, 1 / 2.5), ({}, 1 / 2.5),
                               ({"linear_class": "autobitlinear"}, 2.5)):
            weight = self.read(tensors, dict(config, quant_method="bitnet"))
            self.check(weight, [[(f - 1) * factor for f in row] for row in fields])
        self.assertEqual(self.check_matmul(weight).weights, "i2")
        tensors["m.weight"] = u8([[255] * k] * 2)
        self.refused("a field is 3", self.read, tensors)

    def test_plain(self):
        model = self.model({"a.weight": halves([[1.5, 2.5]]), "b.weight": f32([1, 2, 3], [3])})
        self.assertEqual((model.format, model.names()), ("plain", ["a.weight"]))
        self.assertEqual(model.weight("a.weight").dequantize().tolist(), [[1.5, 2.5]])
        self.assertEqual(model.tensor("b.weight").tolist(), [1, 2, 3])
        self.refused("quantize them", model.weight("a.weight").to_matmul)

    def test_plain_weights_are_not_padded(self):
        """Those of 16 columns are one group of 16; values of f32 filled 32 GiB, of f64 there was no table."""
        for dtype, bits in (("F16", 16), ("BF16", 16), ("F32", 32), ("F64", 64)):
            weight = self.read({"m.weight": (dtype, [8, 16], bytes(16 * bits))})
            self.refused("quantize them", weight.to_matmul, pad=True)

    def test_matrix_without_rows(self):
        model = self.model({"a.weight": ("F16", [0, 32], b"")})
        self.refused("a.weight: shape is [0, 32], not one with elements", model.weight, "a.weight")

    def test_codes_beside_scales_of_no_known_format(self):
        """Such codes were plain weights, without their scales: FP8 of Mistral has qscale_weight."""
        eight = ("F8_E4M3", [2, 16], bytes([0x38] * 32))
        for scale in ("qscale_weight", "scale", "weight_scales"):
            self.refused(f"scales beside it, {scale}", self.read, {"m.weight": eight, "m." + scale: f32([2], [1])})
        experts = ("F8_E4M3", [1, 2, 16], bytes([0x38] * 32))
        self.refused("w1_scale", self.read, {"m.w1": experts, "m.w1_scale": f32([2], [1])}, name="m.w1", expert=0)
        for other in ("m.input_scale", "m.norm.scale", "m2.scale"):
            weight = self.read({"m.weight": eight, other: f32([2], [1])})
            self.assertEqual(weight.dequantize().tolist(), [[1.0] * 16] * 2)

    def test_configuration_of_modelopt(self):
        with open(self.path("hf_quant_config.json"), "w") as file:
            json.dump({"quantization": {"quant_algo": "NVFP4"}}, file)
        self.assertEqual(self.model({}).config, {"quant_algo": "NVFP4"})


if __name__ == "__main__":
    unittest.main()
