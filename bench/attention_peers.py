"""FlashAttention 3 and FlashMLA for bench/attention.py, from the libraries of vLLM's wheel (0.20.2).

load() reads _vllm_fa3_C.abi3.so and _flashmla_C.abi3.so of a folder; the rest says how their operators are called.
"""
import torch

LIBRARIES = {"fa3": "_vllm_fa3_C.abi3.so", "flashmla": "_flashmla_C.abi3.so"}
loaded = set()


def load(folder):
    """Loads those that the folder has."""
    for name, file in LIBRARIES.items():
        if (folder / file).exists():
            torch.ops.load_library(str(folder / file))
            loaded.add(name)


def call_fa3(q, k, v, starts, lengths, rows, tokens, table, causal, plan, splits):
    return torch.ops._vllm_fa3_C.fwd(
        q, k, v, None, None, None, None, starts, starts if table is None else None, None, None, lengths, rows, tokens, table, None,
        None, None, None, None, None, None, None, q.shape[-1] ** -0.5, causal, -1, -1, 0.0, True, plan, splits, None, 0, None, 1, 0,
        None)


def fa3(q, k, v, starts, causal):
    """Attention of [tokens, heads, columns] of one sequence; `starts` are 0 and the tokens. The wheel has no other layout."""
    return call_fa3(q, k, v, starts, None, q.shape[0], k.shape[0], None, causal, None, 1)


def fa3_decode(q, k, v, lengths, table, longest, plan):
    """Attention of [batch, 1, heads, columns] over pages [pages, tokens, heads, columns]."""
    return call_fa3(q, k, v, None, lengths, None, longest, table, True, plan, 0)


def fa3_plan(batch, longest, heads, kv_heads, d, page, lengths, kind):
    """What fa3_decode() takes."""
    return torch.ops._vllm_fa3_C.get_scheduler_metadata(
        batch, 1, longest, heads, kv_heads, d, d, kind, lengths, None, None, None, None, None, page, 0, True, -1, -1, False, 0, None,
        0)


def flashmla(q, cache, lengths, table, columns, plan=(None, None)):
    """o, logarithms and a plan for [batch, 1, heads, ..] over pages [pages, tokens, 1, ..]."""
    o, logs, *plan = torch.ops._flashmla_C.dense_decode_fwd(q, cache, columns, lengths, table, q.shape[-1] ** -0.5, False, *plan, None)
    return o, logs, plan
