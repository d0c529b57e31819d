"""AWQ by hand."""
import unittest

from helpers import Case, halves, i32

COLUMN = [0, 2, 4, 6, 1, 3, 5, 7]       # of nibble i


def pack(rows):
    return [[sum(row[c + COLUMN[i]] << 4 * i for i in range(8)) for c in range(0, len(row), 8)]
            for row in rows]


class Awq(Case):
    def tensors(self, zeros=None):
        n, k, group = 40, 64, 32
        codes, scales = self.codes(k, n, 4), self.scales(k // group, n)
        zeros = zeros or self.codes(k // group, n, 4)
        return ({"m.qweight": i32(pack(codes)), "m.qzeros": i32(pack(zeros)), "m.scales": halves(scales)},
                [[(codes[j][i] - zeros[j // group][i]) * scales[j // group][i] for j in range(k)]
                 for i in range(n)])

    def test_gemm(self):
        for config in (None, {"quant_method": "awq", "bits": 4, "version": "gemm", "group_size": 32}):
            tensors, values = self.tensors()
            weight = self.read(tensors, config)
            self.check(weight, values)
            self.assertEqual(self.check_matmul(weight).weights, "u4")

    def test_symmetric(self):
        tensors, values = self.tensors([[8] * 40] * 2)
        weight = self.read(tensors)
        self.check(weight, values)
        self.assertEqual(self.check_matmul(weight).weights, "i4")

    def test_refused(self):
        tensors, _ = self.tensors()
        for version in ("gemv", "gemv_fast"):
            self.refused(version, self.read, tensors, {"quant_method": "awq", "version": version})
        self.refused("bits", self.read, tensors, {"quant_method": "awq", "bits": 3})
        tensors["m.theta"] = tensors["m.pairs"] = halves([[0.0]])
        self.refused("ParoQuant", self.read, tensors)


if __name__ == "__main__":
    unittest.main()
