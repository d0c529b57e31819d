"""Quantizing: nearest codes, ranges, GPTQ, whole checkpoints, and that readers give back what was written."""
import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import re
import resource
import subprocess
import sys
import unittest
import warnings

import numpy as np

from helpers import Case, decode, formats, write_safetensors
from tilusc import llama
from tilusc.formats.types import type_bits, type_values
from tilusc.formats.write import compressed_config, compressed_tensors, tilus_config, tilus_tensors, write_safetensors as write
from tilusc.quantize import Scheme, encode, quantize, value_range
from tilusc.quantize_checkpoint import Activations, Job
from tilusc.quantize_gptq import Hessian, quantize as quantize_gptq
from tilusc.quantize_main import main

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FLOATS = [f"f{bits}e{e}m{bits - 1 - e}" for bits in range(3, 9) for e in range(1, bits)]
INTEGERS = [f"{x}{bits}" for x in "ui" for bits in range(1, 9)]
SIZES = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, vocab_size=96,
             intermediate_size=128, rms_norm_eps=1e-5, rope_theta=10000.0, model_type="llama")


def schemes():
    for weights in INTEGERS + FLOATS:
        for zeros in ("integer", "float") if weights[0] == "u" else ("none",):
            yield weights, zeros


def matrix(n=24, k=96, seed=0):
    return (np.random.default_rng(seed).standard_t(5, (n, k)) * 0.05).astype("f4")


class Nearest(Case):
    def test_codes_are_nearest(self):
        for name in INTEGERS + FLOATS:
            with self.subTest(name=name):
                low, high = value_range(name)
                values = np.array([x for x in type_values(name) if low <= x <= high])
                given = np.concatenate([np.random.default_rng(1).normal(0, high / 2, 500), values,
                                        2.0 ** np.arange(-40, 10)]).astype("f4")
                made = type_values(name)[encode(given, name)]
                clipped = np.clip(given, low, high)
                distance = np.abs(clipped[:, None].astype("f8") - values)
                np.testing.assert_array_equal(np.abs(made - clipped), distance.min(axis=1))

    def test_every_type(self):
        """Errors shrink with bits; to_matmul takes every result as it is."""
        for weights, zeros in schemes():
            for group in (0, 32, 64):
                with self.subTest(weights=weights, zeros=zeros, group=group):
                    w = matrix()
                    made = [quantize(w, Scheme(weights, group, zeros, clip)) for clip in ("mse", "minmax")]
                    errors = [np.linalg.norm(x.dequantize() - w) / np.linalg.norm(w) for x in made]
                    self.assertLessEqual(errors[0], errors[1] * 1.0001)
                    self.assertLess(errors[0], 0.8 if weights[0] != "f" else 0.5)
                    if weights[0] in "ui":
                        self.assertLess(errors[0], 2.5 / 2 ** type_bits(weights))
                    np.testing.assert_array_equal(made[0].to_matmul().dequantize(), made[0].dequantize())

    def test_by_hand(self):
        row = np.array([[-1.0, 0.25, 0.5, 3.0] * 8])
        weight = quantize(row, Scheme("u2", 32, "integer", "minmax"))
        scale = float(np.float16(4 / 3))
        self.assertEqual((weight.scales[0, 0], weight.zeros[0, 0]), (scale, 1))
        self.assertEqual(weight.codes[0, :4].tolist(), [0, 1, 1, 3])
        weight = quantize(-row, Scheme("i3", 0, clip="minmax"))
        self.assertEqual((weight.scales[0, 0], weight.codes[0, :4].tolist()), (0.75, [1, 0, 7, 4]))

    def test_zero_points_of_groups_far_from_zero(self):
        """f16 has zero points up to 65504 codes: those of groups whose values are almost the same lay beyond."""
        for spread in (0.1, 1e-2, 1e-3, 1e-4, 1e-6):
            for base in (3.0, -3.0, 200.0):
                w = np.full((4, 256), base, "f4") + np.random.default_rng(0).uniform(0, spread * 3, (4, 256)).astype("f4")
                for weights in ("u1", "u2", "u4", "u8"):
                    with self.subTest(weights=weights, base=base, spread=spread):
                        made = quantize(w, Scheme(weights, 128, "float"))
                        allowed = 2.0 ** -11 * abs(base) + 3 * spread / ((1 << type_bits(weights)) - 1)
                        self.assertLess(np.abs(made.dequantize() - w).max(), allowed)
                        np.testing.assert_array_equal(made.to_matmul().dequantize(), made.dequantize())

    def test_weights_beyond_scales(self):
        w = matrix() * np.float32(1e7)
        for scheme in (Scheme("i4", 32), Scheme("u4", 32, "integer"), Scheme("u4", 32, "float"), Scheme("f4e2m1", 32)):
            with self.assertRaisesRegex(ValueError, "too large for scales in f16: bf16"):
                quantize(w, scheme)
            larger = dataclasses.replace(scheme, scales="bf16")
            self.assertLess(np.abs(quantize(w, larger).dequantize() - w).max(), 0.2 * np.abs(w).max())

    def test_zeros_and_constants(self):
        for weights, zeros in schemes():
            made = quantize(np.zeros((2, 64)), Scheme(weights, 32, zeros))
            self.assertEqual(np.abs(made.dequantize()).max(), 0, weights)
        made = quantize(np.full((2, 64), 1.5), Scheme("u4", 32, "float"))
        np.testing.assert_array_equal(made.dequantize(), 1.5)

    def test_refused(self):
        for text, arguments in (("not u1 to u8", ("u9",)), ("not u1 to u8", ("f6e3m3",)), ("group is 40", ("i4", 40)),
                                ("no negative values", ("u4", 32)), ("is symmetric", ("i4", 32, "float")),
                                ("clip are max", ("i4", 32, "none", "max"))):
            with self.assertRaisesRegex(ValueError, text):
                Scheme(*arguments)
        wrong = np.zeros((2, 32))
        wrong[1, 5] = np.inf
        for values, text in ((np.full((2, 32), np.nan), r"weight \[0, 0\] is nan, not a finite number"),
                             (wrong, r"weight \[1, 5\] is inf, not a finite number"),
                             (np.full((2, 32), 1e7), r"weights of magnitude 1e\+07 are too large for scales in f16")):
            with self.assertRaisesRegex(ValueError, text):
                quantize(values, Scheme("i4", 32))

    def test_weights_that_no_product_has(self):
        """Scales and zero points without a value, and zero points beyond the codes, are named."""
        made = quantize(np.ones((2, 64)), Scheme("u4", 32, "integer"))
        scales, zeros = made.scales.copy(), made.zeros.copy()
        scales[1, 0], zeros[0, 1] = np.inf, 16
        for change, text in (({"scales": scales}, r"scale \[1, 0\] is inf, not a finite number"),
                             ({"zeros": zeros}, r"zero point \[0, 1\] is 16, not 0 to 15")):
            with self.assertRaisesRegex(ValueError, text):
                dataclasses.replace(made, **change).to_matmul()
        made = quantize(np.ones((2, 64)), Scheme("u4", 32, "float"))
        zeros = made.zeros.copy()
        zeros[1, 1] = np.nan
        with self.assertRaisesRegex(ValueError, r"zero point \[1, 1\] is nan, not a finite number"):
            dataclasses.replace(made, zeros=zeros).to_matmul()


class SecondOrder(Case):
    def test_less_error_where_it_counts(self):
        random = np.random.default_rng(2)
        x = random.normal(size=(400, 20)) @ random.normal(size=(20, 192)) + 0.2 * random.normal(size=(400, 192))
        hessian, w = Hessian(192), matrix(40, 192)
        hessian.add(x[:100])
        hessian.add(x[100:])
        for scheme in (Scheme("u3", 32, "integer"), Scheme("i4", 128), Scheme("f4e2m1", 0), Scheme("u2", 128, "float")):
            near, made = quantize(w, scheme), quantize_gptq(w, scheme, hessian)
            error = [np.linalg.norm(x @ (q.dequantize() - w).T) for q in (near, made)]
            self.assertLess(error[1], 0.6 * error[0], scheme)

    def test_factor(self):
        hessian = Hessian(40)
        hessian.add(np.random.default_rng(3).normal(size=(80, 40)))
        upper = hessian.factor().astype("f8")
        damped = hessian.sum + (0.01 + 40 / 80) * np.diag(hessian.sum).mean() * np.eye(40)
        np.testing.assert_allclose(upper.T @ upper @ damped, np.eye(40), atol=1e-4)
        self.assertEqual(np.abs(np.tril(upper, -1)).max(), 0)

    def test_few_rows_do_not_mislead(self):
        """Also inputs that were not among the rows see less error than of the nearest codes."""
        random = np.random.default_rng(5)
        mix = 0.2 * random.normal(size=(60, 192))
        seen, unseen = (random.normal(size=(n, 60)) @ mix + random.normal(size=(n, 192)) for n in (150, 600))
        hessian, w, scheme = Hessian(192), matrix(40, 192), Scheme("u3", 32, "integer")
        hessian.add(seen)
        error = [np.linalg.norm(unseen @ (q.dequantize() - w).T)
                 for q in (quantize(w, scheme), quantize_gptq(w, scheme, hessian))]
        self.assertLess(error[1], 0.95 * error[0])

    def test_independent_inputs_are_rounded_to_nearest(self):
        hessian, scheme, w = Hessian(64), Scheme("u4", 32, "integer"), matrix(16, 64)
        hessian.add(np.eye(64))
        np.testing.assert_array_equal(quantize_gptq(w, scheme, hessian).dequantize(),
                                      quantize(w, scheme).dequantize())

    def test_columns_without_inputs(self):
        x = np.random.default_rng(4).normal(size=(50, 64))
        x[:, 5] = 0
        hessian = Hessian(64)
        hessian.add(x)
        made = quantize_gptq(matrix(8, 64), Scheme("i4", 64), hessian).dequantize()
        self.assertEqual(np.abs(made[:, 5]).max(), 0)
        with self.assertRaisesRegex(ValueError, "missing"):
            quantize_gptq(matrix(8, 64), Scheme("i4", 64), Hessian(64))
        with self.assertRaisesRegex(ValueError, "of 64 columns, not 32"):
            quantize_gptq(matrix(8, 32), Scheme("i4", 32), hessian)


class Files(Case):
    """A written file is read as the codes that it was made of."""

    def write(self, tensors, config):
        write(self.path("model.safetensors"), tensors)
        with open(self.path("config.json"), "w") as file:
            json.dump({"quantization_config": config}, file)
        model = formats.open(self.folder)
        self.addCleanup(model.close)
        return model

    def test_compressed_tensors(self):
        for weights, zeros in schemes():
            if zeros == "float" or weights[0] == "f" and weights != "f8e4m3":
                continue
            for scales in ("f16", "bf16"):
                with self.subTest(weights=weights, scales=scales):
                    made = quantize(matrix(), Scheme(weights, 32, zeros, scales=scales))
                    model = self.write(compressed_tensors("m", made), compressed_config(weights, zeros, 32, []))
                    back = model.weight("m.weight")
                    self.assertEqual(model.format, "compressed-tensors")
                    self.assertEqual((back.n, back.k, back.group), (24, 96, 32))
                    np.testing.assert_array_equal(back.dequantize(), made.dequantize())
                    if weights != "i1":      # which reads as u1 with zero points 1
                        self.assertEqual(back.weights, weights)
                        np.testing.assert_array_equal(back.codes, made.codes)

    def test_own_layout(self):
        for weights, zeros in schemes():
            for k, group in ((96, 32), (75, 64), (33, 0)):
                with self.subTest(weights=weights, zeros=zeros, k=k):
                    made = quantize(matrix(8, k), Scheme(weights, group, zeros, scales="bf16"))
                    model = self.write(tilus_tensors("m", made), tilus_config(weights, zeros, group, []))
                    back = model.weight("m.weight")
                    self.assertEqual((model.format, back.weights, back.group), ("tilus", weights, min(group or k, k)))
                    np.testing.assert_array_equal(back.codes, made.codes)
                    np.testing.assert_array_equal(back.dequantize(), made.dequantize())
                    self.record(back, "tilus-quantize")

    def test_own_layout_bit_by_bit(self):
        made = quantize(matrix(3, 40), Scheme("u3", 32, "integer"))
        packed = tilus_tensors("m", made)["m.weight_codes"].bits
        stream = [int.from_bytes(row.tobytes(), "little") for row in packed]
        for i in range(3):
            for j in range(40):
                self.assertEqual(stream[i] >> 3 * j & 7, made.codes[i, j])

    def test_own_layout_damaged(self):
        made = quantize(matrix(8, 64), Scheme("u3", 32, "integer"))
        tensors, config = tilus_tensors("m", made), tilus_config("u3", "integer", 32, [])
        for text, change in (("version of the configuration", {"version": 2}), ("weights", {"weights": "u9"}),
                             ("weights", {"weights": ["u3"]}), ("group", {"group": -1}), ("shape", {"group": 64}),
                             ("weight_shape", {"weights": "u4"}), ("a zero point", {"weights": "i3"})):
            model = self.write(tensors, {**config, **change})
            self.refused(text, model.weight, "m.weight")


class Checkpoint(Case):
    def make(self, name="plain"):
        """Writes a small Llama with random weights in bf16-like f16; returns its folder."""
        folder, random = self.path(name), np.random.default_rng(6)
        os.mkdir(folder)
        h, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
        shapes = {"model.embed_tokens": (96, h), "lm_head": (96, h), "model.norm": (h,)}
        for i in range(2):
            at = f"model.layers.{i}."
            shapes.update({at + "input_layernorm": (h,), at + "post_attention_layernorm": (h,),
                           at + "self_attn.q_proj": (h, h), at + "self_attn.k_proj": (h // 2, h),
                           at + "self_attn.v_proj": (h // 2, h), at + "self_attn.o_proj": (h, h),
                           at + "mlp.gate_proj": (inner, h), at + "mlp.up_proj": (inner, h),
                           at + "mlp.down_proj": (h, inner)})
        tensors = {}
        for module, shape in shapes.items():
            values = random.normal(size=shape) / 8 if len(shape) == 2 else random.uniform(0.5, 1.5, shape)
            tensors[module + ".weight"] = ("F16", list(shape), values.astype("f2").tobytes())
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        for file, value in (("config.json", SIZES), ("tokenizer_config.json", {"a": 1})):
            with open(os.path.join(folder, file), "w") as out:
                json.dump(value, out)
        return folder

    def read(self, folder):
        model = formats.open(folder)
        self.addCleanup(model.close)
        return model

    def tokens(self):
        return np.random.default_rng(7).integers(0, 96, (6, 40)).tolist()

    def test_nearest(self):
        source = self.make()
        for weights, zeros, form in (("u4", "integer", "compressed-tensors"), ("i3", "none", "compressed-tensors"),
                                     ("u4", "float", "tilus"), ("f6e3m2", "none", "tilus")):
            with self.subTest(weights=weights, zeros=zeros):
                scheme, notes = Scheme(weights, 32, zeros), []
                target = self.path(weights + zeros)
                Job(source, target, scheme).run(lambda *x: notes.append(x))
                plain, made = self.read(source), self.read(target)
                self.assertEqual((made.format, notes[-1]), (form, (5, 5, "")))
                self.assertEqual(sorted(made.names()), sorted(plain.names()))
                for name in plain.names():
                    matrix = plain.weight(name).dequantize()
                    if "layers" in name:
                        matrix = quantize(matrix, scheme).dequantize()
                    np.testing.assert_array_equal(made.weight(name).dequantize(), matrix, name)
                np.testing.assert_array_equal(made.tensor("model.norm.weight"), plain.tensor("model.norm.weight"))
                self.assertTrue(os.path.exists(os.path.join(target, "tokenizer_config.json")))
                with open(os.path.join(target, "config.json")) as file:
                    config = json.load(file)
                self.assertEqual(config["hidden_size"], 64)
                self.assertIn("lm_head", config["quantization_config"]["ignore"])

    def test_heads_embeddings_and_routers_stay(self):
        stay = ("lm_head", "language_model.lm_head", "model.layers.61.shared_head.head", "model.embed_tokens",
                "transformer.wte", "wpe", "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate",
                "model.layers.0.feed_forward.router")
        change = ("model.layers.0.mlp.gate_proj", "model.layers.0.mlp.shared_expert.gate_proj", "lm_head.dense", "lm_head_2")
        write_safetensors(self.path("m.safetensors"), {
            x + ".weight": ("F16", [16, 32], np.ones((16, 32), "f2").tobytes()) for x in stay + change})
        job = Job(self.path("m.safetensors"), self.path("t"), Scheme("u4", 32, "integer"))
        self.assertEqual(sorted(job.chosen), sorted(x + ".weight" for x in change))

    def test_uneven_columns_take_the_own_layout(self):
        job = Job(self.make(), self.path("t"), Scheme("i4", 64))
        self.assertIsNone(job.why_own)
        job = Job(self.make("other"), self.path("t"), Scheme("i4", 32), layout="tilus")
        self.assertIsNotNone(job.why_own)
        write_safetensors(self.path("x.safetensors"), {"m.weight": ("F16", [2, 80], bytes(320))})
        for group in (64, 128):     # also one with more columns than there are, which compressed-tensors refuses
            why = Job(self.path("x.safetensors"), self.path("t"), Scheme("i4", group)).why_own
            self.assertEqual(why, f"groups of {group} do not divide 80 columns")
        self.assertIsNone(Job(self.path("x.safetensors"), self.path("t"), Scheme("i4", 0)).why_own)
        Job(self.path("x.safetensors"), self.path("t"), Scheme("i4", 128)).run()
        plain, made = self.read(self.path("x.safetensors")), self.read(self.path("t"))
        self.assertEqual((made.format, made.weight("m.weight").group), ("tilus", 80))
        np.testing.assert_array_equal(made.weight("m.weight").dequantize(), plain.weight("m.weight").dequantize())

    def test_types_of_sources(self):
        w = matrix(8, 64)
        rows = {"F32": w, "F16": w.astype("f2"), "BF16": (w.view("u4") >> 16).astype("u2")}
        write_safetensors(self.path("x.safetensors"), {
            f"layers.{i}.m.weight": (name, [8, 64], x.tobytes()) for i, (name, x) in enumerate(rows.items())})
        Job(self.path("x.safetensors"), self.path("t"), Scheme("u4", 32, "integer")).run()
        made, plain = self.read(self.path("t")), self.read(self.path("x.safetensors"))
        for name in plain.names():
            wanted = quantize(plain.weight(name).dequantize(), Scheme("u4", 32, "integer"))
            np.testing.assert_array_equal(made.weight(name).dequantize(), wanted.dequantize(), name)

    def test_gptq_and_resume(self):
        source, scheme = self.make(), Scheme("u2", 32, "integer")
        calibration = Activations(self.tokens())
        job = Job(source, self.path("once"), scheme, calibration)
        job.run()
        names = sorted(os.listdir(self.path("once")))

        class Stop(Exception):
            pass

        def stop(done, count, name):
            if done == 4:
                raise Stop
        with self.assertRaises(Stop):
            Job(source, self.path("twice"), scheme, calibration).run(stop)
        self.assertLess(len(os.listdir(self.path("twice"))), len(names))
        Job(source, self.path("twice"), scheme, calibration).run()
        self.assertEqual(sorted(os.listdir(self.path("twice"))), names)
        for name in names:
            with open(self.path("once/" + name), "rb") as a, open(self.path("twice/" + name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)
        Job(source, self.path("nearest"), scheme).run()
        reference, error = llama.Llama(self.read(source)), {}
        wanted = reference.logits(reference.hidden(self.tokens(), [reference.cache() for _ in range(6)]))
        for kind in ("once", "nearest"):
            made = llama.Llama(self.read(self.path(kind)))
            logits = made.logits(made.hidden(self.tokens(), [made.cache() for _ in range(6)]))
            error[kind] = np.linalg.norm(logits - wanted)
        self.assertLess(error["once"], 0.9 * error["nearest"])

    def test_activations(self):
        module = "model.layers.1.mlp.down_proj"
        x = np.random.default_rng(8).normal(size=(200, 10)) @ np.random.default_rng(9).normal(size=(10, 128))
        write_safetensors(self.path("x.safetensors"), {module: ("F32", [200, 128], x.astype("f4").tobytes())})
        source, scheme = self.make(), Scheme("u3", 64, "integer")
        Job(source, self.path("t"), scheme, Activations(inputs=self.read(self.path("x.safetensors")))).run()
        hessian = Hessian(128)
        hessian.add(x)
        plain, made = self.read(source), self.read(self.path("t"))
        for name in plain.names():
            if "layers" in name:
                w = plain.weight(name).dequantize()
                wanted = quantize_gptq(w, scheme, hessian) if module in name else quantize(w, scheme)
                np.testing.assert_array_equal(made.weight(name).dequantize(), wanted.dequantize(), name)

    def test_no_room(self):
        """A file that cannot be written is named, and leaves nothing."""
        source, scheme = self.make(), Scheme("u4", 32, "integer")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, limits[1]))
        try:
            with self.assertRaises(OSError) as caught:
                Job(source, self.path("t"), scheme).run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertRegex(str(caught.exception), r"too large: '.*/t/model-0000\d\.safetensors'")
        self.assertEqual([x for x in os.listdir(self.path("t")) if x.endswith(".part")], [])
        Job(source, self.path("t"), scheme).run()
        Job(source, self.path("u"), scheme).run()
        for name in os.listdir(self.path("u")):
            with open(self.path("t/" + name), "rb") as a, open(self.path("u/" + name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)

    def test_other_files_are_copied_whole(self):
        """And without their mode: of read-only ones the same command failed when it was repeated."""
        source, target = self.make(), self.path("t")
        job = Job(source, target, Scheme("u4", 32, "integer"))
        job.run()
        with open(os.path.join(source, "tokenizer.json"), "wb") as file:
            file.write(bytes(1 << 17))
        os.chmod(file.name, 0o444)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
        try:
            self.assertRaises(OSError, job.run)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertFalse(os.path.exists(os.path.join(target, "tokenizer.json")))
        for _ in range(2):
            job.run()
            state = os.stat(os.path.join(target, "tokenizer.json"))
            self.assertEqual((state.st_size, state.st_mode & 0o200), (1 << 17, 0o200))
        self.assertEqual([x for x in os.listdir(target) if x.endswith(".part")], [])

    def test_tensor_without_a_module_stays(self):
        values = np.ones((16, 32), "f2").tobytes()
        write_safetensors(self.path("x.safetensors"), {x: ("F16", [16, 32], values) for x in ("weight", "m.weight")})
        job = Job(self.path("x.safetensors"), self.path("t"), Scheme("u4", 32, "integer"))
        self.assertEqual(job.chosen, ["m.weight"])
        job.run()
        self.assertEqual(self.read(self.path("t")).store.bits("weight", ("F16",)).tobytes(), values)

    def test_one_writer_at_a_time(self):
        """Two processes wrote to one file, and the second ended because it was gone."""
        job = Job(self.make(), self.path("t"), Scheme("u4", 32, "integer"))

        def again(done, count, name):
            with self.assertRaisesRegex(ValueError, "another process writes to .*/t$"):
                job.run()
        job.run(again)
        job.run()       # goes on when the other one has ended

    def test_names_that_meet_nothing(self):
        source, scheme, target = self.make(), Scheme("i4", 32), self.path("t")
        for wrong, why in (("re:*", "nothing to repeat"), ("re:(", "is no pattern"), ("re:" + "a" * 1001, "1001 characters")):
            with self.assertRaisesRegex(ValueError, why):
                Job(source, target, scheme, ignore=[wrong])
        for text, why in (("model.layers.0", "no module is called that"), ("re:.*down_prj", "no module's name matches")):
            with self.assertWarnsRegex(UserWarning, f"{re.escape(repr(text))} ignores nothing: {why}"):
                Job(source, target, scheme, ignore=[text])
        known, x = "model.layers.1.mlp.down_proj", ("F32", [4, 128], bytes(2048))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Job(source, target, scheme, ignore=["re:.*down_proj", "model.norm"])
        write_safetensors(self.path("x.safetensors"), {known: x, known + ".weight": x, "lm_head": x})
        with self.assertWarnsRegex(UserWarning, f"left out, of what is not quantized: {re.escape(known)}.weight, lm_head"):
            Job(source, target, scheme, Activations(inputs=self.read(self.path("x.safetensors"))))
        write_safetensors(self.path("y.safetensors"), {"mlp.down_proj": x})
        with self.assertRaisesRegex(ValueError, "of no module that is quantized, but of mlp.down_proj; modules are called as"):
            Job(source, target, scheme, Activations(inputs=self.read(self.path("y.safetensors"))))

    def test_refused(self):
        source, scheme = self.make(), Scheme("i4", 32)
        Job(source, self.path("t"), scheme).run()
        with self.assertRaisesRegex(ValueError, "another job"):
            Job(source, self.path("t"), Scheme("i4", 64)).run()
        with self.assertRaisesRegex(ValueError, "another source"):
            Job(self.make("another"), self.path("t"), scheme).run()
        self.refused("compressed-tensors", Job, self.path("t"), self.path("u"), scheme)
        with self.assertRaisesRegex(ValueError, "0 to 95"):
            Job(source, self.path("v"), scheme, Activations([[96]])).run()
        self.refused("no matrix", Job, source, self.path("v"), scheme, None, ["re:.*proj"])
        rotated = {"config_groups": {"v": {"type": "hadamard", "apply": [{"targets": ["Linear"], "location": "input"}]}}}
        with open(os.path.join(source, "config.json"), "w") as out:
            json.dump({**SIZES, "quantization_config": {"transform_config": rotated}}, out)
        self.refused("rotates activations, at input", Job, source, self.path("v"), scheme)

    def test_command(self):
        source = self.make()
        np.save(self.path("tokens.npy"), np.array(self.tokens()))
        command = [sys.executable, "-m", "tilusc", "quantize", source, self.path("t"), "-w", "u3", "-g", "32"]
        places = [os.path.dirname(os.path.dirname(formats.__path__[0])), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
        done = subprocess.run(command + ["--calibration", self.path("tokens.npy")], env=environment, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("14 matrices to u3, written as compressed-tensors", done.stderr)
        self.assertIn("5 of 5", done.stderr)
        self.assertEqual(self.read(self.path("t")).weight("model.layers.0.mlp.up_proj.weight").weights, "u3")
        for text, code, said in (("re:.*qroj", 0, "warning: 're:.*qroj' ignores nothing"), ("re:(", 1, "error: '(' is no pattern")):
            done = subprocess.run([*command[:5], self.path("u"), *command[6:], "--ignore", text], env=environment, text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("tilus-quantize: " + said, done.stderr)
        done = subprocess.run(command[:-4] + ["-w", "u9"], env=environment, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr.count("Traceback")), (1, 0))
        self.assertIn("error: weights are u9", done.stderr)


    def test_wrong_options(self):
        """What cannot be calibrated by is an error, not a checkpoint of the nearest codes."""
        source = self.make()
        for name, tokens in (("good", self.tokens()), ("none", np.zeros((0, 5), int)), ("empty", np.zeros((3, 0), int)),
                             ("beyond", [[0, 96]]), ("negative", [[-1, 0]])):
            np.save(self.path(name + ".npy"), np.array(tokens))
        for tokens, more, said in (("none", (), "none.npy has no tokens"), ("empty", (), "empty.npy has no tokens"),
                                   ("beyond", (), "are 0 to 96, not 0 to 95"), ("negative", (), "are -1 to 0, not 0 to 95"),
                                   ("good", ("--damping", "-1"), "damping is -1.0"),
                                   ("good", ("--damping", "nan"), "damping is nan"),
                                   ("good", ("--context", "0"), "context is 0")):
            text = io.StringIO()
            with contextlib.redirect_stderr(text):
                code = main([source, self.path("t"), "-w", "u4", "-g", "32",
                             "--calibration", self.path(tokens + ".npy"), *more])
            self.assertEqual((code, "error: " in text.getvalue() and said in text.getvalue()), (1, True), text.getvalue())
        with self.assertRaisesRegex(ValueError, "no tokens"):
            Job(source, self.path("t"), Scheme("u4", 32, "integer"), Activations([]))


class Page(unittest.TestCase):
    def test_python_runs(self):
        with open(os.path.join(ROOT, "docs", "quantize.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        self.assertEqual(len(blocks), 1)
        exec(compile(blocks[0], "quantize.md", "exec"), {})

    def test_table_is_fresh(self):
        path = os.path.join(ROOT, "bench", "perplexity", "run.py")
        spec = importlib.util.spec_from_file_location("perplexity", path)
        run = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(run)
        old, new = run.page(run.read_rows())
        self.assertEqual(old, new, "bench/perplexity/run.py --plot")


class Model(Case):
    """Llama's parts against plain definitions."""

    def test_rotations_of_both_orders_agree(self):
        x = np.random.default_rng(1).normal(size=(5, 3, 8)).astype("f4")
        angles = np.random.default_rng(2).normal(size=(5, 4))
        order = np.arange(8).reshape(2, 4).T.reshape(-1)     # halves to neighbors
        np.testing.assert_allclose(llama.rotate(x[..., order], angles, True),
                                   llama.rotate(x, angles, False)[..., order], atol=1e-6)
        self.assertAlmostEqual(float(llama.rotate(np.eye(8, dtype="f4")[None, :1], angles[:1], False)[0, 0, 4]),
                               float(np.sin(angles[0, 0])), 6)

    def test_attention(self):
        random = np.random.default_rng(3)
        q, k, v = (random.normal(size=s).astype("f4") for s in ((2, 4, 8), (5, 2, 8), (5, 2, 8)))
        made = llama.attend(q, k, v).reshape(2, 4, 8)
        for i in range(2):
            for head in range(4):
                seen = slice(0, 4 + i)
                scores = np.exp(k[seen, head // 2] @ q[i, head] / np.sqrt(8))
                np.testing.assert_allclose(made[i, head], scores @ v[seen, head // 2] / scores.sum(), rtol=1e-4)

    def test_tokens_one_by_one(self):
        maker = Checkpoint()
        maker.setUp()
        self.addCleanup(maker.doCleanups)
        model = formats.open(maker.make())
        self.addCleanup(model.close)
        whole = llama.Llama(model)
        tokens = [3, 1, 4, 1, 5, 9]
        at_once = whole.logits(whole.hidden([tokens], [whole.cache()]))
        cache = whole.cache()
        for i, token in enumerate(tokens):
            np.testing.assert_allclose(whole.logits(whole.hidden([[token]], [cache]))[0], at_once[i], atol=1e-4)
        self.assertEqual(llama.generate(whole, [tokens, tokens[:2]], 4),
                         [llama.generate(whole, [x], 4)[0] for x in (tokens, tokens[:2])])
        likelihood = at_once[:-1] - np.log(np.exp(at_once[:-1]).sum(axis=1, keepdims=True))
        wanted = np.exp(-np.mean([likelihood[i, tokens[i + 1]] for i in range(5)]))
        self.assertAlmostEqual(llama.perplexity(whole, tokens), float(wanted), 3)

    def test_rotations_of_both_configurations(self):
        """transformers 5 writes rope_parameters, whose base was taken for the usual one."""
        scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
        sizes = {name: value for name, value in SIZES.items() if name != "rope_theta"}

        def config_of(**more):
            write_safetensors(self.path("model.safetensors"), {})
            with open(self.path("config.json"), "w") as file:
                json.dump({**sizes, **more}, file)
            with formats.open(self.folder) as model:
                return llama.read_config(model)
        self.assertEqual(config_of().rope_base, 10000.0)
        for old, new in (({}, {"rope_type": "default"}),
                         ({"rope_scaling": {"rope_type": "llama3", **scaling}}, {"rope_type": "llama3", **scaling})):
            first = config_of(rope_theta=5e5, **old)
            second = config_of(rope_parameters={"rope_theta": 5e5, **new})
            self.assertEqual((first.rope_base, second.rope_base), (5e5, 5e5))
            np.testing.assert_array_equal(llama.frequencies(first), llama.frequencies(second))
        self.assertEqual(config_of(rope_theta=5e5, rope_scaling={"type": "default"}).rope_scaling, None)
        self.refused("rope_type is yarn, not llama3", config_of, rope_parameters={"rope_theta": 5e5, "rope_type": "yarn"})
        self.refused("rope_type is linear, not llama3", config_of, rope_scaling={"type": "linear", "factor": 2.0})
        self.refused("hidden_act is gelu, not silu", config_of, hidden_act="gelu")

    def test_llama3_frequencies(self):
        scaling = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
        plain = llama.Config(1, 8, 1, 1, 128, 500000.0, 1e-5, False)
        made = llama.frequencies(llama.Config(1, 8, 1, 1, 128, 500000.0, 1e-5, False, scaling))
        rates = llama.frequencies(plain)
        waves = 2 * np.pi / rates
        np.testing.assert_allclose(made[waves < 2048], rates[waves < 2048])
        np.testing.assert_allclose(made[waves > 8192], rates[waves > 8192] / 8)


if __name__ == "__main__":
    unittest.main()
