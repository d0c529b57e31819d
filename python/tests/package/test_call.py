"""The module tilusc._call, of objects that offer what it asks of torch's tensors, by methods and by DLPack's table of
functions, and of functions that stand for the library's."""
import ctypes
import gc
import math
import weakref
from types import SimpleNamespace

import pytest
from tilusc import _declarations as c
from tilusc import _library

native = _library.call_module()
pytestmark = pytest.mark.skipif(native is None, reason="the build had no headers of Python")
M, N, K, DEVICE, STREAM = 3, 64, 128, 1, 0x7000


class Tensor:
    """What the module asks of a tensor."""

    def __init__(self, shape, dtype="f16", address=0x1000, device=DEVICE, stride=None):
        self.shape, self.dtype, self.address, self.device = tuple(shape), dtype, address, device
        self.strides = stride or tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.device

    def stride(self):
        return self.strides

    def new_empty(self, *shape):
        return type(self)(shape, self.dtype, 0xc000, self.device)


class DlpackTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


class Exchange(ctypes.Structure):
    """DLPack's table of functions, of which one reads a tensor."""
    READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlpackTensor))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("others", ctypes.c_void_p * 3), ("read", READ), ("stream", ctypes.c_void_p)]


def read_shared(tensor, out):
    """Fills what DLPack says of a tensor, whose shape and strides it keeps."""
    count = len(tensor.shape)
    tensor.kept = [(ctypes.c_int64 * count)(*values) for values in (tensor.shape, tensor.strides)]
    shape, strides = (ctypes.cast(kept, ctypes.POINTER(ctypes.c_int64)) for kept in tensor.kept)
    kind, number = (2, tensor.device) if tensor.device >= 0 else (1, 0)
    code, bits = {"f16": (2, 16), "f32": (2, 32), "u8": (1, 8)}[tensor.dtype]
    out[0] = DlpackTensor(tensor.address - 16, kind, number, count, code, bits, 1, shape, strides, 16)
    return 0


def make_capsule(exchange):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(exchange), b"dlpack_exchange_api", None)


EXCHANGE = Exchange(1, 3, None, (ctypes.c_void_p * 3)(), Exchange.READ(read_shared))


class Shared(Tensor):
    """A tensor that is read by the table alone."""
    __dlpack_c_exchange_api__ = make_capsule(EXCHANGE)
    data_ptr = get_device = stride = None


def share(value):
    return Shared(value.shape, value.dtype, value.address, value.device, value.strides) if type(value) is Tensor else value


# Types of tensors that a reader knows, two of them: those read by methods, and by the table.
BY_METHODS, BY_TABLE = (Tensor, bytes), (Shared, bytes)
EACH_WAY = pytest.mark.parametrize("types", [BY_METHODS, BY_TABLE])
SAMPLES = tuple(Tensor((0,), dtype, 16) for dtype in ("f16", "f16", "f32", "u8"))
PACKED = 9      # bytes


def packed_at(address, own=lambda value: value):
    return own(Tensor((PACKED,), "u8", address))


def fail(status):
    raise RuntimeError(f"status {status}")


class Products:
    """A Product, the calls that reached the library, and those that were left to Python."""

    def __init__(self, types=BY_METHODS, **changes):
        self.calls, self.left, self.status, self.capturing = [], [], 0, (0, 0)
        self.own = share if types is BY_TABLE else lambda value: value
        self.packed = packed_at(0x2000, self.own)
        self._status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(self._asked)
        self._run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self._ran)
        self.state = SimpleNamespace(**{**dict(
            device=DEVICE, n=N, k=K, most_rows=65536, residual=False, scaled=False, biased=False, packed_bytes=PACKED,
            biases=N, types=types, samples=tuple(map(self.own, SAMPLES)),
            checked={0x2000: (weakref.ref(self.packed), None)}, ready={0: 16, 2: 4096}, check=fail,
            streams={(DEVICE, STREAM): (0xa000, 4096)}, stream_of=lambda device: STREAM, handle=0x55,
            capturing_address=ctypes.cast(self._status, ctypes.c_void_p).value, run_address=ctypes.cast(self._run, ctypes.c_void_p).value,
            slow=self._slow), **changes})
        self.product = native.Product(self.state)

    def _ran(self, handle, stream, call):
        self.calls.append((handle, stream, c.tilus_matmul_call.from_buffer_copy(
            ctypes.string_at(call, ctypes.sizeof(c.tilus_matmul_call)))))
        return self.status

    def _asked(self, stream, status):
        """Returns the error and the status of cuStreamIsCapturing."""
        assert stream == STREAM
        error, status[0] = self.capturing
        return error

    def _slow(self, *args):
        self.left.append(args)
        return "slow"

    def __call__(self, a=None, packed=None, bias=None, residual=None, out=None, *scales):
        a, packed = Tensor((M, K)) if a is None else a, self.packed if packed is None else packed
        return self.product(*map(self.own, (a, packed, bias, residual, out, *scales)))


@EACH_WAY
def test_call_has_its_fields(types):
    products = Products(types)
    out = products.own(Tensor((M, N), address=0x3000))
    assert products(Tensor((M, K), stride=(200, 1)), out=out) is out and not products.left
    handle, stream, call = products.calls[0]
    assert (handle, stream, call.struct_size) == (0x55, STREAM, ctypes.sizeof(c.tilus_matmul_call))
    given = {name: getattr(call, name) for name, _ in c.tilus_matmul_call._fields_ if getattr(call, name)}
    assert given == dict(struct_size=call.struct_size, m=M, a=0x1000, a_stride=200, weights=0x2000, c=0x3000,
                         workspace=0xa000, workspace_size=4096)


@EACH_WAY
def test_result_is_made(types):
    products = Products(types)
    out = products()
    assert (out.shape, out.address) == ((M, N), 0xc000) and products.calls[0][2].c == 0xc000


@EACH_WAY
def test_bias_residual_and_scales(types):
    products = Products(types, residual=True, scaled=True, biased=True)
    products(None, None, Tensor((N,), address=0x2100), Tensor((M, N), address=0x4000), None,
             Tensor((M,), "f32", address=0x5000))
    call = products.calls[0][2]
    assert (call.bias, call.residual, call.a_scales) == (0x2100, 0x4000, 0x5000)
    assert products(None, None, Tensor((N,), address=0x2100), Tensor((M, N))) == "slow"     # no scales


@pytest.mark.parametrize("wrong", [
    dict(a=Tensor((M, K), "f32")), dict(a=Tensor((M, K), device=0)), dict(a=Tensor((M, K + 1))), dict(a=Tensor((0, K))),
    dict(a=Tensor((65537, K))), dict(a=Tensor((M, K), stride=(1, M))), dict(a=Tensor((1, M, K))), dict(a=5),
    dict(a=Tensor((5, K))),                                             # rows that nothing is prepared for
    dict(packed=packed_at(0x2200)), dict(packed=packed_at(0x2000)), dict(packed="x"), dict(bias=Tensor((N,))), dict(residual=Tensor((M, N))),
    dict(out=Tensor((M, N + 1))), dict(out=Tensor((M, N), "f32")), dict(out=Tensor((M, N), device=0)),
    dict(out=Tensor((M, N), stride=(N + 1, 1))), dict(out=Tensor((M * N,)))])
@EACH_WAY
def test_what_differs_is_left_to_python(wrong, types):
    products = Products(types)
    assert products(**wrong) == "slow" and not products.calls
    assert len(products.left) == 1 and len(products.left[0]) == 5


@pytest.mark.parametrize("change", [
    dict(checked={}), dict(ready={}), dict(streams={}), dict(streams={(DEVICE, STREAM): (0xa000, 4095)}),
    dict(residual=True), dict(scaled=True), dict(biased=True), dict(packed_bytes=PACKED + 1), dict(stream_of=fail)])
def test_state_that_is_not_ready_is_left_to_python(change):
    products = Products(**change)
    assert products() == "slow" and not products.calls


@pytest.mark.parametrize("change", [dict(dtype="f16"), dict(shape=(PACKED + 1,)), dict(device=0),
                                    dict(shape=(3, 3), strides=(1, 3)), dict(address=0x2008)])
@EACH_WAY
def test_known_weights_are_checked_each_time(change, types):
    """Also where they are the tensor that was found right."""
    products = Products(types)
    assert products() != "slow"
    for name, value in change.items():
        setattr(products.packed, name, value)
    assert products() == "slow" and len(products.calls) == 1


@EACH_WAY
def test_weights_at_the_address_of_others_are_not_known(types):
    """As torch's allocator gives it again: a new tensor, also where the one that was found right is gone."""
    products = Products(types)
    other = packed_at(0x2000, products.own)
    assert products() != "slow" and products(packed=other) == "slow"
    gone = weakref.ref(products.packed)
    products.packed = None
    gc.collect()
    assert gone() is None and products(packed=other) == "slow" and len(products.calls) == 1
    products.state.checked[0x2000] = weakref.ref(other), None
    assert products(packed=other) != "slow" and products(packed=other) != "slow"


def test_more_weights_than_are_remembered():
    """A place is another weight's; both stay in the dictionary."""
    products = Products()
    weights = [packed_at(0x2000 + 256 * i) for i in range(300)]
    products.state.checked.update((w.address, (weakref.ref(w), None)) for w in weights)
    for _ in range(2):
        assert all(products(packed=w) != "slow" for w in weights)
    assert [call.weights for _, _, call in products.calls] == [w.address for w in weights] * 2


@pytest.mark.parametrize("wrong", [Tensor((N,), "f32"), Tensor((N + 1,)), Tensor((N,), device=0), Tensor((N,), stride=(2,)),
                                   Tensor((1, N)), Tensor((N // 2, 2)), None])
@EACH_WAY
def test_bias_is_checked(wrong, types):
    products = Products(types, biased=True)
    assert products(bias=Tensor((N,))) != "slow" and products(bias=wrong) == "slow" and len(products.calls) == 1


@pytest.mark.parametrize("answer", [(0, 1), (0, 2), (906, 0)])
def test_captures_are_left_to_python(answer):
    products = Products()
    products.capturing = answer
    assert products() == "slow" and not products.calls
    products.capturing = 0, 0
    assert products() != "slow" and len(products.calls) == 1


@pytest.mark.parametrize("wrong", [Tensor((M, N), "f32"), Tensor((M, N + 1)), Tensor((M, N), device=0),
                                   Tensor((M, N), stride=(N + 1, 1)), Tensor((N, M)), Tensor((M * N,)), Tensor((1, M, N)),
                                   None])
@EACH_WAY
def test_residual_is_checked(wrong, types):
    products = Products(types, residual=True)
    assert products(residual=wrong) == "slow" and not products.calls
    assert products(residual=Tensor((M, N))) != "slow"


def test_other_dimensions_reach_the_library():
    torch = pytest.importorskip("torch")
    from tilusc._torch_matmul import Runner
    packed = torch.zeros(PACKED, dtype=torch.uint8)
    products = Products(device=-1, types=(torch.Tensor, torch.nn.Parameter),
                        samples=(torch.empty(0).half(),) * 3 + (packed[:0],),
                        checked={packed.data_ptr(): (weakref.ref(packed), None)},
                        streams={(-1, STREAM): (0xa000, 4096)}, ready={3: 4096})
    runner = Runner.__new__(Runner)
    runner.k, runner.n, runner.result, runner.place = K, N, torch.float16, torch.device("cpu")
    runner.product = products.product
    a = torch.zeros(2, 4, K, dtype=torch.float16)
    out = runner.multiply(a, packed, None, None, None)
    call = products.calls[0][2]
    assert out.shape == (2, 4, N) and not products.left
    assert (call.m, call.a, call.c) == (8, a.data_ptr(), out.data_ptr())


def test_what_a_call_learned_is_kept():
    """Weights, workspaces and rows are asked for once; a workspace again where it is too small, or another stream's."""
    products, streams = Products(), iter((STREAM, STREAM, 0x7100))
    products.state.stream_of = lambda device: next(streams)
    products.product = native.Product(products.state)
    products()
    for held in (products.state.checked, products.state.ready, products.state.streams):
        held.clear()
    products.state.ready[3] = 4097
    assert products() != "slow" and products(Tensor((5, K))) == "slow" and products() == "slow"
    assert [call.workspace for _, _, call in products.calls] == [0xa000] * 2


def test_other_tables_are_not_used():
    """Nor a table of another version, and a table is asked of its own types alone."""
    class Newer(Tensor):
        __dlpack_c_exchange_api__ = make_capsule(newer := Exchange(2, 0, None, (ctypes.c_void_p * 3)(), EXCHANGE.read))

    for types, given in (((Newer, bytes), Newer), (BY_TABLE, Tensor)):
        products = Products(types)
        assert products(given((M, K))) != "slow" and products.calls[0][2].a == 0x1000


@EACH_WAY
@pytest.mark.parametrize("count", [8, 9])
def test_dimensions(types, count):
    assert Launches(types).launch((types[0]((1,) * count), 1, 1.0), None) is (count == 8)


def test_status_is_raised():
    products = Products()
    products.status = 6
    with pytest.raises(RuntimeError, match="status 6"):
        products()
    assert len(products.calls) == 1 and not products.left


def test_named_and_missing_arguments_go_to_python():
    products = Products(slow=lambda *args, **named: (args, named))
    assert products.product(1, packed=2) == ((1,), {"packed": 2})
    assert products.product() == ((), {})


def test_product_is_collected_with_what_it_holds():
    products = Products()
    products.state.checked[0] = products.product        # a cycle
    gone = weakref.ref(products)
    del products
    gc.collect()
    assert gone() is None


# ---- kernels -----------------------------------------------------------------------

class Launches:
    """A Launch of a pointer, an integer and a real number, and the words that reached the library."""

    def __init__(self, types=BY_METHODS, **changes):
        self.calls, self.status = [], 0
        self._run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
                                     ctypes.c_size_t, ctypes.c_uint64, ctypes.c_size_t)(self._ran)
        self.state = SimpleNamespace(**{**dict(
            device=DEVICE, types=types, kinds=(frozenset({"f16", "u8"}), "integer", "real"), stream_of=lambda device: STREAM,
            current_device=lambda: DEVICE, check=fail, handle=0x66,
            launch_address=ctypes.cast(self._run, ctypes.c_void_p).value), **changes})
        self.launch = native.Launch(self.state)

    def _ran(self, handle, stream, words, count, workspace, size):
        self.calls.append((handle, stream, words[:count], workspace, size))
        return self.status


@EACH_WAY
def test_launch_has_its_words(types):
    launches = Launches(types)
    for tensor in (types[0]((4,), dtype) for dtype in ("f16", "u8", "f16")):
        assert launches.launch((tensor, -2, 1.5), None) is True
    words = [0x1000, 2 ** 64 - 2, 0x3ff8000000000000]
    assert launches.calls == [(0x66, STREAM, words, 0, 0)] * 3
    launches.launch((types[0]((4,)), -2 ** 63, 0.0), 0x8000)
    assert launches.calls[3][1:3] == (0x8000, [0x1000, 2 ** 63, 0])


@pytest.mark.parametrize("values", [
    (), (Tensor((4,)), 1), (Tensor((4,), "f32"), 1, 1.0), (Tensor((4,), device=0), 1, 1.0), (0x1000, 1, 1.0),
    (Tensor((4,), stride=(2,)), 1, 1.0), (Tensor((4,)), True, 1.0), (Tensor((4,)), 1.0, 1.0), (Tensor((4,)), 1, 1),
    (Tensor((4,)), 2 ** 63, 1.0), (Tensor((4,)), -2 ** 63 - 1, 1.0), (Tensor((4,)), 2 ** 70, 1.0),
    [Tensor((4,)), 1, 1.0]])
@EACH_WAY
def test_other_arguments_are_not_launched(values, types):
    launches = Launches(types)
    own = values if types is BY_METHODS or type(values) is list else tuple(map(share, values))
    assert launches.launch(own, None) is False and not launches.calls


def test_special_streams_need_the_current_device():
    for stream in (0, 1, 2):
        assert Launches().launch((Tensor((4,)), 1, 1.0), stream) is True
        assert Launches(current_device=lambda: DEVICE + 1).launch((Tensor((4,)), 1, 1.0), stream) is False
    assert Launches(current_device=fail).launch((Tensor((4,)), 1, 1.0), 3) is True


def test_status_of_a_launch_is_raised():
    launches = Launches()
    launches.status = 1
    with pytest.raises(RuntimeError, match="status 1"):
        launches.launch((Tensor((4,)), 1, 1.0), None)


def test_too_many_arguments():
    with pytest.raises(ValueError, match="65 arguments"):
        Launches(kinds=("real",) * (native.MAX_ARGUMENTS + 1))
