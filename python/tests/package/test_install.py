"""The package as it is installed."""
import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tilusc
from tilusc import _declarations, _library

ROOT = Path(__file__).resolve().parents[3]


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = run("import sys, tilusc; print(*sys.modules)").split()
    assert not {"numpy", "torch", "tilusc._declarations"} & set(loaded)


def test_import_is_quick():
    code = "import time; t = time.process_time(); import tilusc; print(time.process_time() - t)"
    assert min(float(run(code)) for _ in range(3)) < 0.1


def test_llvm_stays_outside():
    text = "tilus 1\nprogram @p<1>(%n: i32) warps(1) {\n}\n"
    maps = run(f"import tilusc\ntilusc.compile({text!r})\ntilusc.interpret({text!r}, None, 1)\n"
               "print(open('/proc/self/maps').read())")
    assert "libtilus_rt" in maps and "libtilus_compiler" not in maps and "LLVM" not in maps


def test_everything_public_is_there_and_has_a_text():
    for name in tilusc.__all__:
        assert getattr(tilusc, name).__doc__
    assert set(tilusc.__all__) <= set(dir(tilusc))
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        tilusc.nothing_of_that_name


def test_versions_agree():
    assert _library.rt().tilus_rt_version().decode() == tilusc.__version__
    assert _library.matmul().tilus_matmul_version().decode() == tilusc.__version__


def test_library_of_big_integers_is_there():
    from tilusc import bigint
    assert len(bigint.kernels(bigint.load())) > 0


def record():
    path = ROOT / f"test/abi/{tilusc.__version__}.txt"
    if not path.exists():
        pytest.skip("the record of the binary interface is not here")
    return path.read_text()


def test_structs_are_those_of_the_c_compiler():
    text = record()
    structs = {name: value for name, value in vars(_declarations).items()
               if isinstance(value, type) and issubclass(value, (ctypes.Structure, ctypes.Union))}
    assert len(structs) > 30
    for name, struct in structs.items():
        size = re.search(rf"^(?:struct|union) {name}: (\d+) bytes$", text, re.MULTILINE)
        assert ctypes.sizeof(struct) == int(size[1]), name
        fields = dict(re.findall(rf"^field {name}\.(\w+) at (\d+): ", text, re.MULTILINE))
        assert {field: getattr(struct, field).offset for field, _ in struct._fields_} == \
            {field: int(offset) for field, offset in fields.items()}, name


def test_enumerators():
    values = dict(re.findall(r"^enumerator (TILUS_\w+) = (-?\d+)$", record(), re.MULTILINE))
    declared = {name: value for name, value in vars(_declarations).items() if isinstance(value, int)}
    assert declared and all(int(values[name]) == value for name, value in declared.items())


def test_targets_are_those_of_the_compiler():
    from tilusc.engines import worker
    for capability in (80, 86, 87, 89, 90, 100, 103, 120):
        assert worker.ask("target_for", capability=capability)["target"] == _library.target_for(capability)
    with pytest.raises(tilusc.Error, match="capability 75"):
        _library.target_for(75)


def test_doctor():
    said = subprocess.run([sys.executable, "-m", "tilusc", "doctor"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout
    assert len(re.findall("gave the right numbers", said.stdout)) >= 2
    assert subprocess.run([sys.executable, "-m", "tilusc", "cure"], capture_output=True).returncode == 2
