"""Compiling: artefacts, messages, the caches."""
import re
import warnings

import numpy as np
import pytest
import tilusc
from programs import DECODE, SCALE


def test_artefact_is_for_the_target():
    artefact = tilusc.compile(SCALE, target="sm_80")
    assert artefact[:5] == b"TILUS" or len(artefact) > 100
    names = [argument.name for argument in tilusc.load(artefact).arguments]
    assert names == ["x", "y", "a", "n"]
    assert tilusc.compile(SCALE, target="sm_90a") != artefact


def test_equal_calls_give_equal_artefacts():
    assert tilusc.compile(DECODE, "decode", W="u3") == tilusc.compile(DECODE, "@decode", parameters={"W": "u3"})
    assert tilusc.compile(DECODE, "decode", W="u3") != tilusc.compile(DECODE, "decode", W="u2")


def test_error_has_its_place():
    with pytest.raises(tilusc.CompileError) as caught:
        tilusc.compile(SCALE.replace("mul %v", "mull %v"))
    error = caught.value
    assert (error.line, error.column) == (8, 8)
    assert error.text == "unknown op `mull`, did you mean `mul`?"
    assert error.status == "TILUS_ERROR_PROGRAM"
    assert "^~~~" in str(error)


def test_error_names_the_file(tmp_path):
    path = tmp_path / "broken.tilus"
    path.write_text(SCALE.replace("%a: f32", "%a: f33"))
    with pytest.raises(tilusc.CompileError) as caught:
        tilusc.compile(path)
    assert caught.value.file == str(path)
    assert caught.value.line == 2


def test_program_that_is_not_there():
    with pytest.raises(tilusc.CompileError, match="nowhere"):
        tilusc.compile(DECODE, "nowhere")


def test_engines_say_the_same_of_a_program_that_is_not_there():
    for program in (None, "nowhere"):
        with pytest.raises(tilusc.CompileError, match="@decode, @nothing"):
            tilusc.interpret(DECODE, program, np.zeros(32, np.float16))


def test_parameter_that_is_no_word():
    with pytest.raises(tilusc.ArgumentError, match="parameter W"):
        tilusc.compile(DECODE, "decode", W="u4 T=f32")


def test_imports_are_looked_for_beside_the_file(tmp_path):
    (tmp_path / "common.tilus").write_text("tilus 1\nparam FACTOR = 2.0\n")
    path = tmp_path / "main.tilus"
    path.write_text('tilus 1\nimport "common.tilus"\n' + SCALE[len("tilus 1\n"):].replace("%v, %a", "%v, FACTOR"))
    first = tilusc.compile(path)
    (tmp_path / "common.tilus").write_text("tilus 1\nparam FACTOR = 4.0\n")
    assert tilusc.compile(path) != first


def test_warnings_are_python_warnings(monkeypatch):
    monkeypatch.setenv("TILUS_CACHE", "off")        # which has artefacts, and no warnings
    text = "tilus 1\nprogram @p<1>(%n: i32) warps(1) {\n  for %i in 0 .. %n pipelined(2) {\n    synchronize\n  }\n}\n"
    with pytest.warns(tilusc.CompileWarning, match="not pipelined"):
        tilusc.compile(text)


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A cache that others may write to."""
    tmp_path.chmod(0o777)
    monkeypatch.setenv("TILUS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILUS_CACHE", raising=False)
    return re.escape(f"no cache in '{tmp_path}': others may write there: its mode is 777")


def test_cache_that_is_refused_is_told(shared):
    text = SCALE + f"// {shared}\n"
    with pytest.warns(RuntimeWarning, match=shared):
        tilusc.compile(text)


def test_cache_size_that_is_none_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("TILUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILUS_CACHE_SIZE", "lots")
    with pytest.warns(RuntimeWarning, match='^TILUS_CACHE_SIZE is a number of bytes, "500M", not "lots"'):
        tilusc.compile(SCALE + "// of a cache of lots\n")


def test_plans_tell_of_the_cache(shared):
    """On the CPU engine by the worker, on a GPU when the first plan is made."""
    from tilusc._library import check_cache
    from tilusc.engines import worker
    from tilusc.matmul import Problem, plan
    with pytest.warns(RuntimeWarning, match=shared):
        check_cache()
    worker.stop()
    with pytest.warns(RuntimeWarning, match=shared):
        plan(Problem("u4", 64, 256), "cpu").prepare(1)
    worker.stop()


def test_plans_know_what_a_cache_is(monkeypatch, tmp_path):
    """As the compiler's, which says the same of each."""
    from tilusc._library import check_cache
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "own").mkdir(mode=0o755)
    for place, why in (("file", "directory"), ("link", "it is a symbolic link"), ("file/below", "Not a directory"),
                       ("own", None), ("new/er", None)):
        monkeypatch.setenv("TILUS_CACHE_DIR", str(tmp_path / place))
        for check in (check_cache, lambda: tilusc.compile(SCALE + f"// {place}, {why}\n")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                check()
            assert [why in str(one.message) for one in caught] == [True] * bool(why), place
    monkeypatch.setenv("TILUS_CACHE", "off")
    for size in ("lots", "0", "1T", "-1", "1 K"):
        monkeypatch.setenv("TILUS_CACHE_SIZE", size)
        check_cache()
        monkeypatch.delenv("TILUS_CACHE")
        with pytest.warns(RuntimeWarning, match="TILUS_CACHE_SIZE"):
            check_cache()
        monkeypatch.setenv("TILUS_CACHE", "off")


def test_damaged_artefact():
    with pytest.raises(tilusc.Error) as caught:
        tilusc.load(b"no artefact at all")
    assert caught.value.status == "TILUS_ERROR_ARTEFACT"


def test_compiler_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("TILUS_LLC", str(tmp_path / "none"))
    with pytest.raises(tilusc.Error) as caught:
        tilusc.compile(SCALE + "// another text\n")
    assert caught.value.status == "TILUS_ERROR_CHILD"
