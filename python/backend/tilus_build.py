"""The build backend (PEP 517) of the wheel: Python files, and libraries and the compiler of a CMake build.

It needs Python 3.11, CMake's tree around python/, and readelf; no package. The libraries are those that
`cmake --install build/release --component python` lays down: the tree of the config setting `prefix`, of
TILUS_WHEEL_PREFIX, or made here by the preset `release`. The wheel's tag is the oldest manylinux whose glibc has
every symbol that they need."""
import base64
import hashlib
import os
import platform
import re
import subprocess
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent
# Libraries that manylinux has on every system, beside those of the wheel.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[\w-]+)\.so\.\d+$")


# ---- the hooks -----------------------------------------------------------------

def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        prefix = (config_settings or {}).get("prefix") or os.environ.get("TILUS_WHEEL_PREFIX") or build_native(scratch)
        native = list(native_files(Path(prefix)))
        files = [(path.relative_to(HERE).as_posix(), path) for path in python_files()] + native
        return write_wheel(Path(wheel_directory), platform_tag([path for _, path in native]), files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that names this folder; the libraries are those of build/release."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "tilusc.pth")
        path.write_text(f"{HERE}\n")
        return write_wheel(Path(wheel_directory), "any", [("tilusc.pth", path)])


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("error: the package is built from Tilus' whole tree: python3 -m build --wheel python")


# ---- what is inside --------------------------------------------------------------

def python_files():
    for path in sorted((HERE / "tilusc").rglob("*")):
        if path.suffix in (".py", ".typed") and "native" not in path.parts[len(HERE.parts):]:
            yield path


def build_native(scratch):
    build = ROOT / "build/release"
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", build, "--target", "python_libraries"],
                    ["cmake", "--install", build, "--component", "python", "--prefix", scratch, "--strip"]):
        subprocess.run(command, cwd=ROOT, check=True)
    return scratch


def native_files(prefix):
    """Libraries go by the name that they are linked by; a wheel holds no links."""
    libraries = [*prefix.glob("lib/**/lib*.so.*"), *prefix.glob("lib/**/_call.abi3.so")]
    linked = {path.resolve() for path in libraries if path.is_symlink()}
    for path in sorted(libraries):
        if path not in linked:
            yield f"tilusc/native/lib/{path.name}", path
    yield "tilusc/native/bin/tilus-llc", prefix / "bin/tilus-llc"


def platform_tag(paths):
    """manylinux_X_Y of the newest glibc symbol, for libraries that find everything else in the wheel."""
    inside, newest = {path.name for path in paths}, (2, 17)
    for path in paths:
        text = subprocess.run(["readelf", "-W", "-d", "-V", path], check=True, capture_output=True, text=True).stdout
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            if needed not in inside and not SYSTEM.match(needed):
                raise SystemExit(f"error: {path} needs {needed}, which is neither in the wheel nor on every system")
        newest = max([newest, *(tuple(map(int, version.split("."))) for version in
                                re.findall(r"Name: GLIBC_(\d+\.\d+)", text))])
    return f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


# ---- the archive -----------------------------------------------------------------

def project():
    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def version():
    return re.search(r'^__version__ = "(.*)"$', (HERE / "tilusc/__init__.py").read_text(), re.MULTILINE)[1]


def metadata(about):
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {version()}",
             f"Summary: {about['description']}", f"Requires-Python: {about['requires-python']}",
             f"License-Expression: {about['license']}", "License-File: LICENSE", "License-File: NOTICES.md"]
    lines += [f"Classifier: {classifier}" for classifier in about["classifiers"]]
    lines += [f"Requires-Dist: {requirement}" for requirement in about["dependencies"]]
    for extra, requirements in about["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"]
        lines += [f"Requires-Dist: {requirement}; extra == '{extra}'" for requirement in requirements]
    readme = (HERE / about["readme"]).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def entry_points(about):
    groups = {"console_scripts": about.get("scripts", {}), **about.get("entry-points", {})}
    return "".join(f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in rows.items())
                   for group, rows in groups.items() if rows)


def write_wheel(folder, tag, files):
    about = project()
    base, tag = f"{about['name']}-{version()}", f"py3-none-{tag}"
    info = f"{base}.dist-info"
    texts = {"METADATA": metadata(about), "entry_points.txt": entry_points(about),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: tilus_build\nRoot-Is-Purelib: false\nTag: {tag}\n",
             "licenses/LICENSE": (ROOT / "LICENSE").read_text(),
             "licenses/NOTICES.md": (ROOT / "NOTICES.md").read_text()}
    members = [(name, path.read_bytes(), path.stat().st_mode & 0o111) for name, path in files]
    members += [(f"{info}/{name}", text.encode(), 0) for name, text in texts.items() if text]
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in members)
    members.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0))
    name = f"{base}-{tag}.whl"
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member, data, executable in members:
            header = zipfile.ZipInfo(member)     # of 1980, so that equal trees give equal wheels
            header.external_attr = (0o100755 if executable else 0o100644) << 16
            header.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(header, data)
    return name


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
