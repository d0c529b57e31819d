"""Programs as functions of arrays in host memory, on both engines."""
import os

import numpy as np
import pytest
import tilusc
from programs import DECODE, SCALE

ENGINES = ["interp", "cpu"]


@pytest.fixture
def arrays():
    return np.arange(256, dtype=np.float32), np.zeros(256, np.float32)


@pytest.mark.parametrize("engine", ENGINES)
def test_runs(engine, arrays):
    x, y = arrays
    tilusc.jit(SCALE, engine=engine)(x, y, 3.0, 256)
    assert np.array_equal(y, 3 * x)


def test_arguments_by_name(arrays):
    x, y = arrays
    tilusc.jit(SCALE)(x, y, n=np.int64(256), a=np.float32(0.5))
    assert np.array_equal(y, x / 2)
    with pytest.raises(TypeError, match="leave a, n"):
        tilusc.jit(SCALE)(x, y, n=256)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", [1, 3, 4, 6])
def test_packed_codes(engine, bits):
    codes = np.random.default_rng(bits).integers(0, 1 << bits, 256, dtype=np.uint8)
    planes = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :bits]
    packed = np.packbits(planes.reshape(-1), bitorder="little")
    y = np.zeros(256, np.float16)
    tilusc.interpret(DECODE, "decode", packed, y, 256, engine=engine, W=f"u{bits}")
    assert np.array_equal(y, codes)


def test_bf16_is_16_bits():
    y = np.zeros(128, np.uint16)
    tilusc.interpret(DECODE, "decode", np.full(128, 3, np.uint8), y, 128, W="u8", T="bf16")
    assert np.all(y == 0x4040)


def test_facts_are_checked(arrays):
    x, y = arrays
    for engine in ENGINES:
        kernel = tilusc.jit(SCALE, engine=engine)
        with pytest.raises(tilusc.ArgumentError, match="%n = 200 is not divisible by 128"):
            kernel(x, y, 1.0, 200)
        with pytest.raises(tilusc.ArgumentError, match="y is an array of f64; the program takes f32"):
            kernel(x, y.astype(np.float64), 1.0, 256)
        with pytest.raises(tilusc.ArgumentError, match="x is not contiguous"):
            kernel(x[::2], y, 1.0, 128)
        with pytest.raises(tilusc.ArgumentError, match="n is 256.0"):
            kernel(x, y, 1.0, 256.0)
        with pytest.raises(tilusc.ArgumentError, match="x is a number"):
            kernel(0, y, 1.0, 256)
        with pytest.raises(TypeError, match="takes 4: x, y, a, n"):
            kernel(x, y, 1.0)
        with pytest.raises(tilusc.ArgumentError, match="list is no array"):
            kernel([1.0], y, 1.0, 256)


def test_fault_has_its_line(arrays):
    x, y = arrays
    for engine in ENGINES:
        with pytest.raises(tilusc.EngineError) as caught:
            tilusc.interpret(SCALE, None, x, y[:128], 1.0, 256, engine=engine)
        assert caught.value.line == 9


def test_arrays_keep_what_a_failed_run_has_not_finished(arrays):
    x, y = arrays
    with pytest.raises(tilusc.EngineError):
        tilusc.interpret(SCALE, None, x[:128], y, 1.0, 256)
    assert not y.any()


def test_equal_calls_give_one_kernel():
    assert tilusc.jit(SCALE) is tilusc.jit(SCALE)
    assert tilusc.jit(SCALE) is not tilusc.jit(SCALE, engine="cpu")


def test_worker_that_died_is_started_again(arrays):
    from tilusc.engines import worker
    x, y = arrays
    tilusc.interpret(SCALE, None, x, y, 2.0, 256)
    worker._process.kill()
    worker._process.wait()
    tilusc.interpret(SCALE, None, x, y, 3.0, 256)
    assert np.array_equal(y, 3 * x)


def test_worker_that_dies_meanwhile_is_an_error(arrays, monkeypatch):
    from tilusc import engines
    x, y = arrays
    monkeypatch.setattr(engines, "_START", "import os; os.read(0, 8); os._exit(7)")
    engines.worker.stop()
    with pytest.raises(tilusc.Error, match="ended with status 7"):
        tilusc.interpret(SCALE, None, x, y, 2.0, 256)
    monkeypatch.undo()
    tilusc.interpret(SCALE, None, x, y, 2.0, 256)


def test_forked_child_has_a_worker_of_its_own(arrays):
    x, y = arrays
    tilusc.interpret(SCALE, None, x, y, 2.0, 256)
    child = os.fork()
    if child == 0:
        tilusc.interpret(SCALE, None, x, y, 5.0, 256)
        os._exit(0 if np.array_equal(y, 5 * x) else 1)
    assert os.waitpid(child, 0)[1] == 0
    tilusc.interpret(SCALE, None, x, y, 3.0, 256)
    assert np.array_equal(y, 3 * x)


def test_printing(capsys):
    text = 'tilus 1\nprogram @hello<1>(%y: ptr<i32>) warps(1) {\n  print "hello", 7\n}\n'
    tilusc.interpret(text, None, np.zeros(1, np.int32))
    assert "hello: 7, block (0)" in capsys.readouterr().out


def test_race_is_found():
    text = """tilus 1
layout TURNED = reshape(column_spatial(32, 2), [64])
program @race<1>(%x: ptr<i32> {align = 128}, %y: ptr<i32> {align = 128}) warps(2) {
  %s = allocate_shared : i32[64]
  %gx = view_global %x : i32[64]
  %gy = view_global %y : i32[64]
  %a = load_global %gx[0] : i32[64] @ spatial(64)
  store_shared %a, %s[0]
  %b = load_shared %s[0] : i32[64] @ TURNED
  store_global %b, %gy[0]
}
"""
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with pytest.raises(tilusc.EngineError, match="race"):
        tilusc.interpret(text, None, x, y, engine="cpu", check_races=True)


def test_no_gpu_is_said():
    try:
        tilusc.devices()
    except tilusc.NoDevice:
        with pytest.raises(tilusc.NoDevice):
            tilusc.jit(SCALE, engine="gpu")(0x1000, 0x1000, 1.0, 128)
