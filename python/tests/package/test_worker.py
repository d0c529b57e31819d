"""The engines' worker process: what it imports, and what else writes to its output."""
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tilusc
from tilusc import _library, engines

CALL = """
import tilusc
text = "tilus 1\\nprogram @p<1>(%n: i32) warps(1) {\\n  print \\"n\\", %n\\n}\\n"
tilusc.interpret(text, None, 7)
"""
# Modules that the process imports.
SHADOWED = ("contextlib", "ctypes", "importlib", "pickle", "sitecustomize", "struct", "tilusc", "typing")


def run(folder, script, **environment):
    """Runs a script that lies in a folder, there; returns its output."""
    path = folder / "script.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, str(path)], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """A folder beside another one, whose modules say that they ran."""
    (tmp_path / "here").mkdir()
    for name in SHADOWED:
        (tmp_path / f"here/{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    return tmp_path


@pytest.mark.parametrize("entries", ["", ":{before}", "{before}:.:../here"])
def test_nothing_of_the_current_folder_runs(folder, entries):
    """Also where PYTHONPATH has entries that are relative to it."""
    entries = entries.format(before=os.environ.get("PYTHONPATH", ""))
    move = f"import os\nos.chdir('here')\nos.environ['PYTHONPATH'] = {entries!r}\n"
    assert "n: 7" in run(folder, move + CALL)
    assert not (folder / "ran").exists()


def test_modules_beside_the_package_do_not_run(folder):
    """Where its folder is an entry of the path, relative to a folder that is left."""
    (folder / "here/tilusc.py").unlink()
    shutil.copytree(Path(tilusc.__file__).parent, folder / "here/tilusc", ignore=shutil.ignore_patterns("native"))
    script = ("import ctypes, importlib, os, pickle, sys, numpy\nsys.path.insert(0, 'here')\nimport tilusc.engines\n"
              "assert 'here' in tilusc.__file__\nsys.path.pop(0)\nos.chdir('/')\n")
    assert "n: 7" in run(folder, script + CALL, TILUS_LIBRARY_DIR=str(_library.folder()))
    assert not (folder / "ran").exists()


def test_package_in_an_archive(tmp_path):
    """Of a relative name, with the libraries elsewhere."""
    package = Path(tilusc.__file__).parent
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
    script = "import sys\nsys.path.insert(0, 'packed.zip')\nimport tilusc\nassert 'packed.zip' in tilusc.__file__\n"
    assert "n: 7" in run(tmp_path, script + CALL, TILUS_LIBRARY_DIR=str(_library.folder()))


def test_text_of_the_interpreter_is_no_answer(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('started')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    said = run(tmp_path, CALL, PYTHONPATH=path, PYTHONUNBUFFERED="1")
    assert said.splitlines()[0] == "started" and "n: 7" in said and said.count("started") == 1


def test_text_in_place_of_an_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(engines, "_START", "import os, sys; os.write(int(sys.argv[2]), b'started' * 9); os.read(0, 1 << 20)")
    engines.worker.stop()
    with pytest.raises(tilusc.Error, match=r"announces an answer of \d{19} bytes, not of 1099511627776 at most") as caught:
        engines.worker.ask("describe")
    assert caught.value.status == "TILUS_ERROR_CHILD"
    monkeypatch.undo()
    assert engines.worker.ask("describe")["llvm"]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_standard_descriptors_may_be_closed(tmp_path, closed):
    script = f"import os, sys\nsys.stdout = open('said', 'w')\nfor fd in {closed}:\n    os.close(fd)\n"
    run(tmp_path, script + CALL + "sys.stdout.flush()\nos._exit(0)\n")
    assert "n: 7" in (tmp_path / "said").read_text()
