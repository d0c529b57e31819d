"""GPTQ by hand: version 1 and 2, planar, act-order, files whose configuration is wrong."""
import struct
import unittest

from helpers import Case, f16, halves, i32, pack_bits, transpose, words_of
from tilusc.formats.gptq import override_of

PLANES = {2: [2], 3: [2, 1], 4: [4], 5: [4, 1], 6: [4, 2], 7: [4, 2, 1], 8: [8]}


def stream(codes, bits):
    return words_of(pack_bits(codes, bits))


def planar(codes, bits):
    words = []
    for first in range(0, len(codes), 32):
        below = 0
        for width in PLANES[bits]:
            part = [c >> below & ((1 << width) - 1) for c in codes[first:first + 32]]
            words += words_of(pack_bits(part, width))
            below += width
    return words


def config(bits, group=32, **more):
    return dict({"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": False}, **more)


class Gptq(Case):
    def tensors(self, n, k, bits, group, pack=stream, less=0, zeros=None, order=None):
        """Returns tensors and values [n][k]; `zeros` None: any."""
        groups = k // group
        codes, scales = self.codes(k, n, bits), self.scales(groups, n)
        zeros = zeros or [[self.random.randrange(less, 1 << bits) for _ in range(n)]
                          for _ in range(groups)]
        order = order or [j // group for j in range(k)]
        fields = [[(z - less) % (1 << bits) for z in row] for row in zeros]
        tensors = {"m.qweight": i32(transpose([pack(c, bits) for c in transpose(codes)])),
                   "m.qzeros": i32([pack(row, bits) for row in fields]),
                   "m.scales": halves(scales),
                   "m.g_idx": ("I32", [k], struct.pack("<%di" % k, *order))}
        return tensors, [[(codes[j][i] - zeros[order[j]][i]) * scales[order[j]][i]
                          for j in range(k)] for i in range(n)]

    def test_version_1(self):
        for bits in (2, 3, 4, 8):
            for settings in (config(bits), config(bits, checkpoint_format="gptq")):
                tensors, values = self.tensors(32, 96, bits, 32, less=1)
                weight = self.read(tensors, settings)
                self.check(weight, values)
                self.check_matmul(weight)

    def test_version_1_masks_the_field(self):
        tensors, values = self.tensors(32, 64, 4, 32, less=1, zeros=[[0] * 32] * 2)
        self.check(self.read(tensors, config(4)), values)

    def test_version_2(self):
        for bits in (2, 3, 4, 8):
            tensors, values = self.tensors(32, 96, bits, 32)
            weight = self.read(tensors, config(bits, checkpoint_format="gptq_v2"))
            self.check(weight, values)
            self.check_matmul(weight)

    def test_planar(self):
        for bits in range(2, 9):
            tensors, values = self.tensors(32, 96, bits, 32, planar)
            weight = self.read(tensors, config(bits, checkpoint_format="gptq_p"))
            self.check(weight, values)
            self.check_matmul(weight)

    def test_symmetric_fields_beat_the_configuration(self):
        for bits in (2, 3, 4, 8):
            middle = [[1 << (bits - 1)] * 32] * 2
            for less, says in ((0, "gptq"), (1, "gptq_v2"), (1, "gptq"), (0, "gptq_v2")):
                with self.subTest(bits=bits, less=less, says=says):
                    tensors, values = self.tensors(32, 64, bits, 32, less=less, zeros=middle)
                    weight = self.read(tensors, config(bits, sym=True, checkpoint_format=says))
                    self.check(weight, values)
                    self.assertEqual((weight.weights, weight.zeros), (f"i{bits}", None))
        tensors, values = self.tensors(32, 64, 4, 32, zeros=[[7] * 32] * 2)
        self.check(self.read(tensors, config(4, sym=False, checkpoint_format="gptq_v2")), values)

    def test_act_order(self):
        order = [j // 32 for j in range(128)]
        self.random.shuffle(order)
        for bits in (3, 4):
            tensors, values = self.tensors(32, 128, bits, 32, less=1, order=order)
            weight = self.read(tensors, config(bits, desc_act=True))
            self.check(weight, values)
            m = self.check_matmul(weight)
            self.assertEqual([order[j] for j in m.permutation], sorted(order))

    def test_one_group(self):
        tensors, values = self.tensors(32, 96, 4, 96, less=1)
        weight = self.read(tensors, config(4, -1))
        self.check(weight, values)
        self.assertEqual(self.check_matmul(weight).group, 0)

    def test_other_words(self):
        tensors, values = self.tensors(32, 64, 4, 32, less=1)
        columns = transpose([words_of(tensors["m.qweight"][2])[i * 32:i * 32 + 32] for i in range(8)])
        for dtype, width, form in (("I16", 16, "H"), ("I8", 8, "B"), ("I64", 64, "Q")):
            raw = [struct.pack("<8I", *column) for column in columns]
            cut = transpose([struct.unpack("<%d%s" % (256 // width, form), r) for r in raw])
            other = dict(tensors)
            other["m.qweight"] = (dtype, [len(cut), 32], b"".join(
                struct.pack("<32" + form, *row) for row in cut))
            self.check(self.read(other, config(4)), values)

    def test_bias_dynamic_and_no_g_idx(self):
        tensors, values = self.tensors(32, 64, 8, 32, less=1)
        del tensors["m.g_idx"]
        tensors["m.bias"] = ("F16", [32], b"".join(f16(i)[0] for i in range(32)))
        weight = self.read(tensors, config(4, dynamic={"-:lm_head": {}, "+:^m$": {"bits": 8}}))
        self.check(weight, values)
        self.assertEqual(weight.bias.tolist(), list(range(32)))

    def test_first_pattern_of_dynamic_decides(self):
        tensors, values = self.tensors(32, 64, 8, 32, less=1)
        eight, four, left = {"+:^m$": {"bits": 8}}, {"m": {"bits": 4}}, {"-:m": {}}
        self.check(self.read(tensors, config(4, dynamic={**eight, **four})), values)
        self.check(self.read(tensors, config(8, dynamic={**left, **four})), values)
        self.refused("32 codes of 4 bits", self.read, tensors, config(8, dynamic={**four, **eight}))
        self.assertEqual(override_of(config(4, dynamic={**eight, **left}), "m"), {"bits": 8})
        self.assertIsNone(override_of(config(4, dynamic={**left, **eight}), "m"))
        self.assertEqual(override_of(config(4, dynamic=left), "other.m"), {})

    def test_auto_round(self):
        """AutoRound's own form has zero points as they are, the one of AutoGPTQ less one."""
        def config_of(packing, bits=4, **more):
            return dict(config(bits, sym=False, quant_method="auto-round", packing_format=packing), **more)
        for packing, less in (("auto_round", 0), ("auto_round:gptqmodel", 0), ("auto_round:auto_gptq", 1)):
            tensors, values = self.tensors(32, 64, 4, 32, less=less)
            self.check(self.read(tensors, config_of(packing)), values)
            own = config_of(packing, 8, extra_config={"m": {"bits": 4}, "n": {"bits": 2}})
            self.check(self.read(tensors, own), values)
        for packing in ("auto_round:exllamav2", None):
            self.refused(f"packing_format is {packing}, not auto_round", self.read, tensors, config_of(packing))
        tensors, values = self.tensors(32, 64, 4, 32, less=1, zeros=[[8] * 32] * 2)
        self.check(self.read(tensors, config_of("auto_round:exllamav2", sym=True)), values)

    def test_no_configuration(self):
        tensors, values = self.tensors(32, 64, 3, 32, less=1)
        model = self.model(tensors)
        self.assertEqual(model.format, "gptq")
        self.check(model.weight("m.weight"), values)

    def test_refused(self):
        tensors, _ = self.tensors(32, 64, 4, 32)
        self.refused("32 codes of 8 bits", self.read, tensors, config(8))
        self.refused("groups is 2, not 1", self.read, tensors, config(4, 64))
        self.refused("bits of the configuration is '4', not 2 to 8", self.read, tensors, config("4"))
        self.refused("checkpoint_format", self.read, tensors, config(4, checkpoint_format="marlin"))
        tensors["m.g_idx"] = ("I32", [64], struct.pack("<64i", *([9] * 64)))
        self.refused("groups is 9 .. 9, not 0 to 1", self.read, tensors, config(4))


if __name__ == "__main__":
    unittest.main()
