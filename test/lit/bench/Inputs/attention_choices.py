"""Compares the splits that bench/run attention measures with those that libtilus_attention chooses on an H200."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "bench"))

from harness import attention as rows       # noqa: E402
from tilusc import attention                # noqa: E402


def problem_of(case):
    if case.kind == "mla":
        return "kind=latent type=bf16 heads=128 finite=1"
    cache = case.defines.get("C")
    return f"kind=decode heads={case.sizes['heads']} kv_heads={case.sizes['kv_heads']}" + (f" cache={cache} finite=1" if cache else "")


different = 0
cases = rows.cases(["decode", "mla"])
for case in cases:
    batch, tokens = case.sizes["batch"], case.sizes["tokens"]
    text = attention.plan(problem_of(case), "h200").describe(batch=batch, tokens=tokens, pages=batch * tokens // 64,
                                                             columns=tokens // 64)
    chosen = int(re.search(r"(\d+) splits?,", text).group(1))
    if chosen != case.sizes["splits"]:
        print(f"{case.name}: {case.sizes['splits']} splits, not the {chosen} of the library")
        different += 1
print(f"{len(cases)} rows, {different} differ")
