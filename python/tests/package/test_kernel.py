"""Programs as functions of arrays in host memory, on both engines."""
import os
import signal
import time
from types import SimpleNamespace

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
        with pytest.raises(tilusc.ArgumentError, match="argument x: list is no array"):
            kernel([1.0], y, 1.0, 256)
        with pytest.raises(tilusc.ArgumentError, match="argument y: NoneType is no array"):
            kernel(x, None, 1.0, 256)
        with pytest.raises(tilusc.ArgumentError, match="argument n is '256'; the program takes an integer of i32"):
            kernel(x, y, 1.0, "256")
        with pytest.raises(tilusc.ArgumentError, match="argument a is None; the program takes a number of f32"):
            kernel(x, y, n=256, a=None)


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


@pytest.mark.parametrize("order", ["xy", "yx"])
@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_that_overlap_are_one_memory(engine, order):
    pointers = ", ".join(f"%{name}: ptr<f32> {{align = 16}}" for name in order)
    text = SCALE.replace("%x: ptr<f32> {align = 16}, %y: ptr<f32> {align = 16}", pointers)
    kernel = tilusc.jit(text.replace("  %w = mul", "  synchronize\n  %w = mul"), engine=engine)
    z = np.ones(256, np.float32)
    kernel(x=z, y=z, a=2.0, n=256)
    assert np.all(z == 2)
    kernel(x=z[:128], y=z[128:], a=3.0, n=128)          # neighbors do not overlap
    assert np.all(z[:128] == 2) and np.all(z[128:] == 6)
    for first in (0, 4, 64, 124):
        for x, y in ((0, first), (first, 0)):
            z = np.arange(256, dtype=np.float32)
            want = z.copy()
            want[y:y + 128] = 2 * z[x:x + 128]
            kernel(x=z[x:x + 128], y=z[y:y + 128], a=2.0, n=128)
            assert np.array_equal(z, want)
    z = np.ones(256, np.float32)
    kernel(x=z[:128], y=z, a=2.0, n=128)                # from one address, of two sizes
    assert np.all(z[:128] == 2) and np.all(z[128:] == 1)


def test_arrays_that_overlap_must_be_aligned():
    z, text = np.arange(256, dtype=np.float32), SCALE.replace("align = 16", "align = 64")
    with pytest.raises(tilusc.ArgumentError, match="argument %y begins 16 bytes inside of another one"):
        tilusc.jit(text, engine="cpu")(z[:128], z[4:132], 2.0, 128)
    assert np.array_equal(z, np.arange(256))


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_must_be_aligned(engine):
    kernel, memory = tilusc.jit(SCALE, engine=engine), np.zeros(1024, np.uint8)
    first = -memory.ctypes.data % 16
    whole, odd = (memory[first + shift:][:512].view(np.float32) for shift in (0, 4))
    y = np.zeros(128, np.float32)
    kernel(whole, y, 2.0, 128)
    with pytest.raises(tilusc.ArgumentError, match=f"argument x = {odd.ctypes.data:#x} is not aligned to 16 bytes"):
        kernel(odd, y, 2.0, 128)
    with pytest.raises(tilusc.ArgumentError, match="argument y = 0x[0-9a-f]*4 is not aligned to 16 bytes"):
        kernel(y, odd, 2.0, 128)
    text = SCALE.replace(" {align = 16}", "")       # that of an element
    with pytest.raises(tilusc.ArgumentError, match="is not aligned to 4 bytes"):
        tilusc.jit(text, engine=engine)(memory[first + 2:][:512].view(np.float32), y, 2.0, 128)


@pytest.mark.parametrize("engine", ENGINES)
def test_read_only_arrays(engine, tmp_path):
    kernel, y = tilusc.jit(SCALE, engine=engine), np.zeros(128, np.float32)
    np.ones(128, np.float32).tofile(tmp_path / "x")
    x = np.memmap(tmp_path / "x", np.float32, "r")
    kernel(x, y, 2.0, 128)
    assert np.all(y == 2)
    with pytest.raises(tilusc.ArgumentError, match="argument y is a read-only array"):
        kernel(y, x, 1.0, 128)
    kernel(x, x, 1.0, 128)                      # is written to, and keeps its values
    immutable = bytes(512)
    with pytest.raises(tilusc.ArgumentError, match="argument y is a read-only array"):
        kernel(x, np.frombuffer(immutable, np.float32), 1.0, 128)
    assert immutable == bytes(512) and np.all(x == 1) and np.all(y == 2)
    view = y[:]
    view.flags.writeable = False
    kernel(view, y, 2.0, 128)                   # one of two views is not read-only
    assert np.all(y == 4)
    z = np.zeros(192, np.float32)
    view = z[64:]
    view.flags.writeable = False
    with pytest.raises(tilusc.ArgumentError, match="argument y is a read-only array"):
        kernel(z[:128] + 1, view, 2.0, 128)
    assert not z.any()


@pytest.mark.parametrize("engine", ENGINES)
def test_integers_beyond_64_bits(engine):
    text = """tilus 1
program @fill<1>(%x: ptr<i64>, %n: i64, %m: i32, %f: f32) warps(1) {
  %g = view_global %x : i64[32]
  store_global (splat %n + %m: i64[32]), %g[0]
}
"""
    kernel, x = tilusc.jit(text, engine=engine), np.zeros(32, np.int64)
    for good in (-2 ** 63, 2 ** 63 - 1):
        kernel(x, good, 0, 0.0)
        assert np.all(x == good)
    for wrong in (2 ** 63, -2 ** 63 - 1, 2 ** 64, 2 ** 70 + 1):
        with pytest.raises(tilusc.ArgumentError, match=f"argument n = {wrong} does not fit in i64"):
            kernel(x, wrong, 0, 0.0)
        with pytest.raises(tilusc.ArgumentError, match=f"argument m = {wrong} does not fit in i32"):
            kernel(x, 0, wrong, 0.0)
    with pytest.raises(tilusc.ArgumentError, match="m = 2147483648 does not fit in i32"):
        kernel(x, 0, 2 ** 31, 0.0)
    with pytest.raises(tilusc.ArgumentError, match="argument f is an integer beyond f64"):
        kernel(x, 0, 0, 10 ** 400)
    assert np.all(x == 2 ** 63 - 1)


def test_words_of_a_launch():
    from tilusc.kernel import _word
    argument = SimpleNamespace(name="n", kind="integer", dtype="i64")
    assert _word(argument, -1, 0) == 2 ** 64 - 1
    with pytest.raises(tilusc.ArgumentError, match="n = 9223372036854775808 does not fit in i64"):
        _word(argument, 2 ** 63, 0)
    pointer = SimpleNamespace(name="x", kind="pointer", dtype="f32")
    assert _word(pointer, 2 ** 64 - 1, 0) == 2 ** 64 - 1
    for wrong in (-1, 2 ** 64):
        with pytest.raises(tilusc.ArgumentError, match=f"argument x = {wrong} is no address"):
            _word(pointer, wrong, 0)


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


def test_fork_while_a_thread_is_in_a_call():
    """The child, in which that thread is not there, has locks and a worker of its own."""
    import threading
    x, y, ended = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32), False
    kernel = tilusc.jit(SCALE, engine="cpu")
    kernel(x, y, 2.0, 128)

    def call():
        while not ended:
            kernel(x, y, 2.0, 1 << 20)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        for _ in range(3):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                z = np.zeros(128, np.float32)
                kernel(x[:128], z, 5.0, 128)
                os._exit(0 if np.all(z == 5) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended = True
        thread.join()
    assert np.all(y == 2)


def test_locks_are_free_in_a_child():
    from tilusc._locks import Lock
    lock = Lock()
    with lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            with lock:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_worker_answers_what_it_cannot_do():
    """A fault of one request does not end the process."""
    from tilusc.engines import worker
    worker.ask("describe")
    process = worker._process
    with pytest.raises(tilusc.Error, match="KeyError") as caught:
        worker.ask("run", engine="cpu")
    assert caught.value.status == "TILUS_ERROR_INTERNAL"
    worker.ask("describe")
    assert worker._process is process


@pytest.mark.parametrize("engine", ENGINES)
def test_half_a_character_is_named(engine, arrays, tmp_path):
    for make, why in ((lambda: tilusc.jit(SCALE + "// \udcff", engine=engine)(*arrays, 1.0, 256), r"the text has at \d+ '.udcff', half of a"),
                      (lambda: tilusc.compile(SCALE + "// \udcff"), "text has at"),
                      (lambda: tilusc.compile(SCALE, "scale\udcff"), "the program has at 5"),
                      (lambda: tilusc.compile(SCALE, N="\udcff"), "the parameters have at 2")):
        with pytest.raises(tilusc.ArgumentError, match=why):
            make()
    (tmp_path / "p.tilus").write_bytes(SCALE.encode() + b"// \xff")
    with pytest.raises(tilusc.ArgumentError, match=r"p.tilus is not in UTF-8: byte \d+ is 0xff"):
        tilusc.compile(tmp_path / "p.tilus")


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
