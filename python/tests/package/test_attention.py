"""Plans of attention for a device that is not there; with torch what its operators refuse, and on a GPU numbers."""
import pytest
from tilusc import ArgumentError, Error, attention
from tilusc.attention import Problem, plan

FORWARD = Problem(heads=32, kv_heads=8, causal=True)
DECODE = Problem(kind="decode", heads=32, kv_heads=8, cache="u4", finite=True)


def test_problem_is_its_text():
    problem = Problem(heads=8, dim=64, scale=0.25, causal=True, mask="added", type="bf16")
    assert str(problem) == "heads=8 mask=added type=bf16 dim=64 scale=0.25 causal=1"
    assert Problem.parse(str(problem)) == problem
    with pytest.raises(ArgumentError, match="'color=1' is no field"):
        Problem.parse("heads=1 color=1")
    with pytest.raises(ArgumentError, match="mask is 'some', not one of none, added, boolean"):
        Problem(heads=1, mask="some")


def test_plan_chooses_by_shape():
    forward = plan(FORWARD, "h200")
    assert "schedule folded" in forward.describe(batch=1, queries=512, tokens=512)
    assert "schedule queues" in forward.describe(batch=1, queries=4096, tokens=4096)
    assert "schedule blocks" in forward.describe(batch=1, queries=512, tokens=512, schedule="blocks")
    assert plan(str(FORWARD), "h200").workspace_size(batch=1, queries=512, tokens=512) == 0
    shape = {"batch": 1, "tokens": 65536, "pages": 1024, "columns": 1024}
    assert plan(DECODE, "h200").workspace_size(**shape) > 0
    assert plan(DECODE, "h200").workspace_size(**shape, splits=1) == 0


def test_kernels_are_listed():
    names = [line.split("\t")[1] for line in plan(DECODE, "h200").kernels()]
    assert names == ["attend", "combine", "append", "combine", "combine"]   # of few and of some splits, too
    assert len(plan(FORWARD, "h200").kernels(batch=1, queries=64, tokens=64)) == 1


def test_eight_bits_arrange_v():
    eight = plan(Problem(heads=32, kv_heads=8, type="f8e4m3", out_type="f16"), "h200")
    names = [line.split("\t")[1] for line in eight.kernels(batch=1, queries=64, tokens=64)]
    assert names == ["attention", "arrange_v"]
    assert "f8e4m3 to f16" in eight.describe(batch=1, queries=64, tokens=64)
    assert eight.workspace_size(batch=2, queries=64, tokens=1000) >= 2 * 8 * 1000 * 128


def test_refusals_name_fields():
    with pytest.raises(Error, match="problem: kv_heads is 3, no divisor of heads, 8"):
        plan(Problem(heads=8, kv_heads=3), "h200")
    with pytest.raises(ArgumentError, match="shape: tokens is 0"):
        plan(FORWARD, "h200").describe(batch=1, queries=5)
    with pytest.raises(ArgumentError, match="schedule is 'any', not one of auto, queues, blocks, folded"):
        attention.shape(schedule="any")
    with pytest.raises(AttributeError, match="nothing"):
        attention.nothing


def test_fields_of_shapes_are_known():
    made = plan(FORWARD, "h200")
    for call in (made.describe, made.kernels, made.workspace_size, made.prepare, attention.shape):
        with pytest.raises(ArgumentError, match="splitz is no field of a shape: these are batch, .*, splits"):
            call(batch=1, queries=8, tokens=8, splitz=9)
        with pytest.raises(ArgumentError, match=f"batch = {2 ** 64 + 1} does not fit in 64 bits"):
            call(batch=2 ** 64 + 1, queries=8, tokens=8)
        with pytest.raises(ArgumentError, match="batch is 1.5, not an integer"):
            call(batch=1.5, queries=8, tokens=8)
    for wrong in (None, 2 ** 32, True):
        with pytest.raises(ArgumentError, match="number or name of a device|device = 4294967296 does not fit in 32 bits"):
            plan(FORWARD, wrong)


def test_operators_refuse_by_name():
    torch = pytest.importorskip("torch")
    q = torch.zeros(1, 4, 64, 128, dtype=torch.float16)
    with pytest.raises(ArgumentError, match="tensors are on cpu, and attention needs a GPU"):
        attention.attention(q, q, q)
    with pytest.raises(ArgumentError, match="q is of torch.float32, not float16 or bfloat16"):
        attention.attention(q.float(), q, q)
    with pytest.raises(ArgumentError, match=r"v is \[1, 4, 32, 128\]"):
        attention.attention(q, q, q[:, :, :32])
    with pytest.raises(ArgumentError, match="longest is 9, but q_starts and k_starts are missing"):
        attention.attention(q, q, q, longest=9)
    eight, scales = q.to(torch.float8_e4m3fn), torch.ones(3, 4)
    with pytest.raises(ArgumentError, match="scales are missing, and q is of torch.float8_e4m3fn"):
        attention.attention(eight, eight, eight)
    with pytest.raises(ArgumentError, match="scales are given, and q is of torch.float16"):
        attention.attention(q, q, q, scales=scales)
    with pytest.raises(ArgumentError, match="out_dtype is torch.bfloat16, and q is of torch.float16"):
        attention.attention(q, q, q, out_dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match="tensors are on cpu, and attention needs a GPU"):
        attention.attention(eight, eight, eight, scales=scales)


def test_caches_are_refused_by_name():
    torch = pytest.importorskip("torch")
    q, k = torch.zeros(1, 4, 128, dtype=torch.float16), torch.zeros(2, 4, 64, 128, dtype=torch.float16)
    table, lengths = torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)

    def decode(k, v, cache=""):
        return attention.decode(q, k, v, table, lengths, tokens=64, cache=cache)
    for given in ("", "f16"):
        with pytest.raises(ArgumentError, match="tensors are on cpu, and attention needs a GPU"):
            decode(k, k, given)
    with pytest.raises(ArgumentError, match="v is of torch.bfloat16, and q or new tokens of torch.float16"):
        decode(k, k.bfloat16())
    for name in ("bf16", "i4", "f"):
        with pytest.raises(ArgumentError, match=f"cache is '{name}', not one of f16, u2, u3"):
            decode(k, k, name)
    with pytest.raises(ArgumentError, match="k has 131072 bytes for .* pages, not 16384 each"):
        decode(k, k, "u4")
    slots = torch.zeros(3, dtype=torch.int32)
    new = torch.zeros(3, 4, 128, dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match="k is of torch.float16, and q or new tokens of torch.bfloat16"):
        attention.append(new, new, slots, k, k)


def test_rows_of_no_sequence_are_refused():
    torch = pytest.importorskip("torch")
    q, starts = torch.zeros(5, 4, 128, dtype=torch.float16), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(ArgumentError, match="tensors are on cpu"):       # as for any other call, not o without values
        attention.attention(q, q, q, q_starts=starts, k_starts=starts, longest=5)


def test_attention_on_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no GPU of sm_90")
    q, k, v = (torch.randn(2, 4, 200, 128, device="cuda").half() for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    found = attention.attention(q, k, v, causal=True)
    assert (found.double() - expected).norm() < 1e-3 * expected.norm()
    assert torch.equal(torch.compile(attention.attention, fullgraph=True)(q, k, v, causal=True), found)
    codes, scales = [x.to(torch.float8_e4m3fn) for x in (q, k, v)], torch.full((3, 4), 0.5, device="cuda")
    expected = torch.nn.functional.scaled_dot_product_attention(*(x.double() / 2 for x in codes), is_causal=True)
    found = attention.attention(*codes, causal=True, scales=scales)
    assert found.dtype is torch.bfloat16 and (found.double() - expected).norm() < 4e-2 * expected.norm()
