"""Tensors that other packages write, on the CPU: read by us, dequantized by them. Needs torch and the packages."""
import json
import os
import unittest

import numpy as np

from helpers import Case, formats, version
from tilusc.formats.write import Stored, compressed_config, compressed_tensors, write_safetensors
from tilusc.quantize import Scheme, quantize

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None


def package(name):
    """Imports a module of a package; None where it, or what it needs, is missing."""
    try:
        return __import__(name, fromlist=["x"]) if torch is not None else None
    except Exception:       # whatever a package raises that does not fit the others
        return None


compress = package("compressed_tensors.compressors.base")
qparams = package("compressed_tensors.quantization.utils")
ct = package("compressed_tensors.quantization")
bitsandbytes = package("bitsandbytes.functional")
hqq = package("hqq.core.quantize")
bitnet = package("transformers.integrations.bitnet")
mxfp4 = package("transformers.integrations.mxfp4")
mx = package("torchao.prototype.mx_formats.mx_tensor")

NAMES = {} if torch is None else {
    torch.uint8: "U8", torch.int8: "I8", torch.int32: "I32", torch.int64: "I64", torch.float16: "F16",
    torch.bfloat16: "BF16", torch.float32: "F32", torch.bool: "BOOL", torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e8m0fnu: "F8_E8M0"}


def stored(tensor):
    """Returns a tensor of torch as files have it."""
    raw = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1)).view(torch.uint8).numpy()
    return Stored(NAMES[tensor.dtype], tuple(tensor.shape), raw)


class Packages(Case):
    def matrix(self, n=16, k=128):
        return torch.randn(n, k, generator=torch.Generator().manual_seed(1)) * 0.1

    def read_torch(self, tensors, config=None, name="m.weight", prefix="m.", **more):
        write_safetensors(self.path("t.safetensors"), {prefix + x: stored(t) for x, t in tensors.items()})
        if config is not None:
            with open(self.path("config.json"), "w") as file:
                json.dump({"quantization_config": config}, file)
        model = formats.open(self.path("t.safetensors"))
        self.addCleanup(model.close)
        return model.weight(name, **more)

    def same(self, weight, expected, name, rounded=""):
        """Checks values against a package's; to f32, or to the type that it computes in."""
        expected = expected.detach()
        found = weight.dequantize()
        if rounded:
            epsilon = torch.finfo(expected.dtype).eps
            np.testing.assert_allclose(found, expected.float().numpy(), 2 * epsilon, float(abs(found).max()) * epsilon)
        else:
            np.testing.assert_array_equal(found, expected.float().numpy())
        self.record(weight, name, rounded or "exact", version(name))


@unittest.skipIf(None in (compress, qparams, ct), "NOT RUN: no package compressed-tensors (and torch)")
class CompressedTensors(Packages):
    def compress(self, form, w, **more):
        """Returns tensors of the package, the matrix that it makes of them, and the configuration."""
        scheme = ct.QuantizationArgs(**more)
        whole = w.reshape(w.shape[0], -1, scheme.group_size or w.shape[1])
        scale, zero = qparams.calculate_qparams(whole.amin(2), whole.amax(2), scheme)
        tensors = {"weight": w.clone(), "weight_scale": scale}
        if not scheme.symmetric:
            tensors["weight_zero_point"] = zero
        return self.pack(form, tensors, scheme)

    def pack(self, form, tensors, scheme):
        compressor = compress.BaseCompressor.get_value_from_registry(form)
        scheme = ct.QuantizationScheme(targets=["Linear"], weights=scheme)
        made = compressor.compress(tensors, scheme)
        config = {"quant_method": "compressed-tensors", "format": form, "version": version("compressed-tensors"),
                  "config_groups": {"group_0": scheme.model_dump(mode="json")}}
        return made, compressor.decompress(dict(made), scheme)["weight"], config

    def test_integers(self):
        for bits in range(1, 9):
            for group in (32, None):
                for symmetric in (True, False):
                    with self.subTest(bits=bits, group=group, symmetric=symmetric):
                        made, expected, config = self.compress(
                            "pack-quantized", self.matrix(), num_bits=bits, type="int", symmetric=symmetric,
                            strategy="group" if group else "channel", group_size=group)
                        self.same(self.read_torch(made, config), expected, "compressed-tensors")

    def test_bytes(self):
        for kind, symmetric in (("int", True), ("int", False), ("float", True)):
            for group in (32, None):
                if kind == "float" or not group:
                    made, expected, config = self.compress(
                        f"{kind}-quantized", self.matrix(), num_bits=8, type=kind, symmetric=symmetric,
                        strategy="group" if group else "channel", group_size=group)
                    self.same(self.read_torch(made, config), expected, "compressed-tensors")

    def old(self):
        """Tells versions whose codes of 3, 5, 6 and 7 bits do not cross words, and which lack some forms."""
        return tuple(map(int, version("compressed-tensors").split(".")[:2])) < (0, 18)

    def test_microscaling(self):
        if self.old():
            self.skipTest("NOT RUN: this version of compressed-tensors lacks mxfp6")
        for form, bits in (("mxfp4-pack-quantized", 4), ("mxfp6-pack-quantized", 6), ("mxfp8-quantized", 8)):
            made, expected, config = self.compress(form, self.matrix(), num_bits=bits, type="float", symmetric=True,
                                                   strategy="group", group_size=32, scale_dtype=torch.uint8)
            self.same(self.read_torch(made, config), expected, "compressed-tensors")

    def test_nvfp4(self):
        w = self.matrix()
        scheme = ct.QuantizationArgs(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16,
                                     scale_dtype=torch.float8_e4m3fn)
        factor = qparams.generate_gparam(w.min(), w.max())
        whole = w.reshape(16, -1, 16)
        scale, _ = qparams.calculate_qparams(whole.amin(2), whole.amax(2), scheme, factor)
        made, expected, config = self.pack("nvfp4-pack-quantized", {
            "weight": w, "weight_scale": scale, "weight_global_scale": factor}, scheme)
        # The package computes in bf16.
        self.same(self.read_torch(made, config), expected, "compressed-tensors", "to bf16's rounding")

    def test_what_we_write(self):
        """The package reads what tilus-quantize writes."""
        for weights, zeros in [(f"i{b}", "none") for b in range(2, 9)] + [(f"u{b}", "integer") for b in range(1, 9)]:
            if self.old() and 32 % int(weights[1]):
                continue
            with self.subTest(weights=weights):
                made = quantize(self.matrix().numpy(), Scheme(weights, 32, zeros))
                written = compressed_tensors("m", made)
                written["m.weight_scale"] = Stored("F32", made.scales.shape, made.scales)     # so that it computes in f32
                tensors = {name[2:]: torch.from_numpy(x.bits.copy()) for name, x in written.items()}
                config = compressed_config(weights, zeros, 32, [])["config_groups"]["group_0"]
                compressor = compress.BaseCompressor.get_value_from_registry("pack-quantized")
                back = compressor.decompress(tensors, ct.QuantizationScheme(**config))["weight"]
                np.testing.assert_array_equal(back.numpy(), made.dequantize())


@unittest.skipIf(bitsandbytes is None, "NOT RUN: no package bitsandbytes (and torch)")
class BitsAndBytes(Packages):
    def test_four_bits(self):
        for kind in ("nf4", "fp4"):
            for double in (False, True):
                for block in (64, 128):
                    with self.subTest(kind=kind, double=double, block=block):
                        packed, state = bitsandbytes.quantize_4bit(self.matrix(32, 256), blocksize=block,
                                                                   quant_type=kind, compress_statistics=double)
                        tensors = {"weight": packed}
                        tensors.update({"weight." + x: t for x, t in state.as_dict(packed=True).items()})
                        self.same(self.read_torch(tensors), bitsandbytes.dequantize_4bit(packed, state),
                                  "bitsandbytes", "to f32's rounding")

    def test_eight_bits(self):
        codes, stats, _ = bitsandbytes.int8_vectorwise_quant(self.matrix().half())
        expected = bitsandbytes.int8_vectorwise_dequant(codes, stats)
        self.same(self.read_torch({"weight": codes, "SCB": stats}), expected.float(), "bitsandbytes",
                  "to f32's rounding")


@unittest.skipIf(hqq is None, "NOT RUN: no package hqq (and torch)")
class Hqq(Packages):
    def test_layers(self):
        for bits in (8, 4, 3, 2, 1):
            for group in (64, 32):
                with self.subTest(bits=bits, group=group):
                    linear = torch.nn.Linear(128, 16, bias=False)
                    linear.weight.data = self.matrix()
                    layer = hqq.HQQLinear(linear, hqq.BaseQuantizeConfig(nbits=bits, group_size=group, axis=1),
                                          compute_dtype=torch.float16, device="cpu")
                    tensors = {x: t for x, t in layer.state_dict().items() if torch.is_tensor(t)}
                    self.same(self.read_torch(tensors), layer.dequantize(), "hqq", "to f16's rounding")


@unittest.skipIf(bitnet is None or mxfp4 is None, "NOT RUN: no package transformers (and torch)")
class Transformers(Packages):
    def test_bitnet(self):
        values = torch.randint(-1, 2, (8, 64), generator=torch.Generator().manual_seed(2)).float()
        packed = bitnet.pack_weights(values.clone())
        weight = self.read_torch({"weight": packed, "weight_scale": torch.tensor([0.5], dtype=torch.bfloat16)},
                                 {"quant_method": "bitnet", "linear_class": "autobitlinear"})
        self.same(weight, values * 0.5, "transformers")

    def test_gpt_oss(self):
        random = torch.Generator().manual_seed(3)
        blocks = torch.randint(0, 256, (2, 8, 4, 16), dtype=torch.uint8, generator=random)
        scales = torch.randint(110, 140, (2, 8, 4), dtype=torch.uint8, generator=random)
        expected = mxfp4._convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        for expert in range(2):
            weight = self.read_torch({"up_blocks": blocks, "up_scales": scales}, name="m.up", expert=expert)
            self.same(weight, expected[expert].T, "transformers")


@unittest.skipIf(mx is None, "NOT RUN: no package torchao (and torch)")
class TorchAo(Packages):
    def test_microscaling(self):
        """Its tensors of mxfp8 are those of compressed-tensors."""
        made = mx.MXTensor.to_mx(self.matrix(), torch.float8_e4m3fn, 32)
        weight = self.read_torch({"weight": made.qdata, "weight_scale": made._scale_e8m0})
        self.same(weight, made.to_dtype(torch.float32), "torchao")


class Table(unittest.TestCase):
    def test_fresh(self):
        """docs/formats.md has the table that formats.csv gives."""
        import table
        if not os.environ.get(table.WRITE):
            old, new = table.page(table.read())
            self.assertEqual(old, new, "python3 table.py --write")


if __name__ == "__main__":
    unittest.main()
