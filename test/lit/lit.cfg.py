# The lit suite. Tests find the tools of the build under test first in PATH.
#
# Features: ptxas   an assembler for PTX is there (%ptxas)
#           nvdisasm  a disassembler of cubins is there (%nvdisasm)
#           gpu     the CUDA driver has a device
#           asan    the tools are built with AddressSanitizer
#           groff   groff or mandoc, which check man pages
#           vim     an editor that knows syntax files
#           cxx     a C++ compiler is there (%cxx)
#           rustc, cargo  a Rust compiler and its builder are there
#           gnuplot draws plots
#           wheel        the Python package is in an environment (lit --param python_venv=DIR)
#           llvm-inside  the preset of that name is built, too (lit --param llvm_inside)
#           pty     the system has pseudoterminals to give
#           archives  the libraries are there as archives, too
#           terminal  pseudo-terminals and script(1) are there
#           chromium  a browser is there that runs without a display (%chromium)
#           remarkutil  LLVM's reader of remarks is there (%remarkutil)
#           numpy, pytest  the packages of Python of these names are there
#           full    the long form of scripts/check runs (lit --param full)
import importlib.util
import os
import shutil
import subprocess
import sys

import formats

config.name = os.path.basename(config.tilus_build_dir)
config.test_format = formats.ShTest(execute_external=False,
                                    regex=formats.chosen(config, lit_config))
config.suffixes = [".tilus", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.tilus_source_dir, "test", "lit")
config.test_exec_root = os.path.join(config.tilus_build_dir, "test", "lit")

# The probe runs in its own process: a driver may crash or leave threads.
GPU_PROBE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
ok = cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
raise SystemExit(not (ok and count.value > 0))
"""


def find_cuda_tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def has_gpu():
    probe = subprocess.run([sys.executable, "-c", GPU_PROBE], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    return probe.returncode == 0


def has_vim():
    vim = shutil.which("vim")
    return vim and b"+syntax" in subprocess.run([vim, "--version"], capture_output=True).stdout


def has_pty():
    try:
        os.close(os.openpty()[0])
    except OSError:
        return False
    return True


def has_terminal():
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        return False
    return shutil.which("script") is not None


def is_newer(path, other):
    return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(other)


def sanitize_flags():
    return "-fsanitize=" + config.sanitize if config.sanitize else ""


def write_launcher(path, command):
    """A script that runs a command with the arguments that it gets."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\nexec {command} "$@"\n')
    os.chmod(path, 0o755)


def write_launchers(folder, programs):
    """Scripts that run programs of a cross build in the emulator, by the programs' names."""
    for name in os.listdir(programs):
        write_launcher(os.path.join(folder, name), f"{config.emulator}{programs}/{name}")


tools = os.path.join(config.tilus_build_dir, "bin")
if config.emulator:
    launchers = os.path.join(config.tilus_build_dir, "test", "launchers")
    write_launchers(launchers, tools)
    tools = launchers
# Scripts begin with `env python3`, which a version manager such as pyenv makes a script of its own: a
# tenth of a second each time.
python_folder = os.path.join(config.tilus_build_dir, "test", "python")
write_launcher(os.path.join(python_folder, "python3"), sys.executable)
config.environment["PATH"] = os.pathsep.join(
    [tools, python_folder, config.llvm_tools_dir, config.environment.get("PATH", "")])
config.environment.update(formats.SANITIZER_OPTIONS)
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "CUDA_VISIBLE_DEVICES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Where the Python package's compiler library was linked of these objects, too, tests that start many
# programs take it by lit.local.cfg: it has LLVM inside, and they begin in a quarter of the time.
libraries = os.path.join(config.tilus_build_dir, "lib")
config.quick_start = {}
if is_newer(os.path.join(libraries, "python", "libtilus_compiler.so"),
            os.path.join(libraries, "libtilus_compiler.so")):
    config.quick_start["LD_LIBRARY_PATH"] = os.path.join(libraries, "python")

ptxas = find_cuda_tool("ptxas")
if ptxas:
    config.available_features.add("ptxas")
    config.environment["PATH"] += os.pathsep + os.path.dirname(ptxas)
nvdisasm = find_cuda_tool("nvdisasm")
if nvdisasm:
    config.available_features.add("nvdisasm")
if "full" in lit_config.params:
    config.available_features.add("full")
if has_gpu() and not config.emulator:
    config.available_features.add("gpu")
chromium = shutil.which("chromium")
if chromium:
    config.available_features.add("chromium")
if shutil.which("llvm-remarkutil", path=config.llvm_tools_dir):
    config.available_features.add("remarkutil")
if shutil.which("groff") or shutil.which("mandoc"):
    config.available_features.add("groff")
cxx = shutil.which("c++") or shutil.which("g++")
if cxx:
    config.available_features.add("cxx")
for rust in ("rustc", "cargo"):
    if shutil.which(rust):
        config.available_features.add(rust)
llvm_inside = os.path.join(config.tilus_source_dir, "build", "llvm-inside")
if "llvm_inside" in lit_config.params:
    config.available_features.add("llvm-inside")
if has_terminal():
    config.available_features.add("terminal")
if has_vim():
    config.available_features.add("vim")
if shutil.which("gnuplot"):
    config.available_features.add("gnuplot")
if config.archives:
    config.available_features.add("archives")
for package in ("numpy", "pytest"):
    if importlib.util.find_spec(package):
        config.available_features.add(package)
python_venv = lit_config.params.get("python_venv")
if python_venv and not config.sanitize:
    config.available_features.add("wheel")
if has_pty():
    config.available_features.add("pty")
if "address" in config.sanitize:
    config.available_features.add("asan")

engines = "interp,checked" if config.sanitize else "interp,cpu,checked"
if config.emulator:
    engines = "cpu"     # compared with the interpreter, too
config.substitutions += [
    ("%ptxas", ptxas or "ptxas"),
    ("%nvdisasm", nvdisasm or "nvdisasm"),
    ("%python_venv", python_venv or "none"),
    ("%python", sys.executable),
    ("%chromium", chromium or "chromium"),
    ("%remarkutil", os.path.join(config.llvm_tools_dir, "llvm-remarkutil")),
    ("%lit", os.path.join(config.llvm_tools_dir, "lit")),
    # Succeeds when the command ends with exit code 2: wrong usage.
    ("%not2", sys.executable + " " + os.path.join(config.test_source_root, "Inputs", "not2.py")),
    ("%kernels", os.path.join(config.tilus_source_dir, "kernels")),
    ("%source_dir", config.tilus_source_dir),
    ("%llvm_inside", llvm_inside),
    ("%build_dir", config.tilus_build_dir),
    ("%examples", tools),
    # Runs each `// ARGS:` line of a program on the CPU engine, against the interpreter,
    # and there with its checks of accesses. Slow builds run fewer.
    ("%run_args", " ".join([sys.executable, os.path.join(config.tilus_source_dir, "test", "gpu",
                                                         "run.py"),
                            "--tools", tools, "--engine", engines, "--programs"])),
    ("%cmake", config.cmake),
    ("%libdir", config.libdir),
    ("%llvm_libs", config.llvm_library_dir),
    ("%cc", config.c_compiler),
    ("%cxx", cxx or "c++"),
    ("%sanitize_flags", sanitize_flags()),
]
