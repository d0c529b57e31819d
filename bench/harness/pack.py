"""dist/bench: programs and kernels for a GPU machine that has neither LLVM nor network."""
import concurrent.futures
import os
import shutil
import subprocess
import tarfile

from . import machine, measure

TARGET = "sm_90a"
PROGRAMS = ["matmul_bench"]
HELPERS = [machine.ROOT / "tools" / "common" / "flush.tilus",
           machine.BENCH / "matmul" / "neighbor.tilus"]
TEMPLATE = machine.ROOT / "kernels" / "matmul.tilus"


def compile_artefact(llc, source, target, path, program=None, defines=()):
    words = [llc, source, f"-mcpu={target}", "--filetype=artefact", "--cubin=never", "-o", path]
    if program:
        words += ["--program", program]
    for define in defines:
        words += ["-D", define]
    machine.command(words)


def needed_kernels(program, chosen):
    """Inputs of the parts' runs: artefacts' names, with program and values of -D."""
    def list_case(case):
        return machine.command([program, "--list-kernels",
                                *measure.flags(case.problem, case.sizes)])
    cases = [case for part in chosen for case in part.cases]
    kernels = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for text in pool.map(list_case, cases):
            for line in text.splitlines():
                name, entry, defines = line.split("\t")
                kernels[name] = (entry, defines.split())
    return kernels


def compile_kernels(llc, kernels, folder):
    """All artefacts, in as many processes as there are processors."""
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(compile_artefact, llc, source, TARGET,
                            folder / f"{source.stem}.tilusk") for source in HELPERS]
        work += [pool.submit(compile_artefact, llc, TEMPLATE, TARGET, folder / f"{name}.tilusk",
                             entry, defines) for name, (entry, defines) in kernels.items()]
        for each in work:
            each.result()


def shell(function, *words):
    """Runs a function of scripts/lib.sh."""
    library = machine.ROOT / "scripts" / "lib.sh"
    status = subprocess.call(["bash", "-c", 'set -euo pipefail; . "$0"; "$@"', str(library),
                              function, *(str(word) for word in words)])
    if status != 0:
        raise machine.Failure(f"{function} failed")


def pack_products(pack):
    """What bench/gemm.py needs beside tilus-llc: texts, and the library that launches, which needs libc alone."""
    shutil.copytree(machine.ROOT / "kernels", pack / "kernels")
    shell("build_preset", "release", "tilus_rt")
    (pack / "lib").mkdir()
    shutil.copy(machine.ROOT / "build" / "release" / "lib" / "libtilus_rt.so", pack / "lib" / "libtilus_rt.so")


def run(chosen, options):
    """Builds, compiles and gathers."""
    pack = machine.ROOT / "dist" / "bench"
    shutil.rmtree(pack, ignore_errors=True)
    shell("build_preset", "static", "tilus-llc", *PROGRAMS)
    shell("pack_programs", pack / "programs.tar.xz", "tilus-llc", *PROGRAMS)
    tools = machine.ROOT / "build" / "static" / "bin"
    kernels = needed_kernels(tools / "matmul_bench", chosen)
    print(f"Compiling {len(kernels)} kernels", flush=True)
    folder = machine.ROOT / "build" / "static" / "bench-kernels"
    shutil.rmtree(folder, ignore_errors=True)
    compile_kernels(tools / "tilus-llc", kernels, folder)
    with tarfile.open(pack / "kernels.tar.xz", "w:xz") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)
    copy = pack / "bench"
    copy.mkdir()
    for name in ("run", "gemm.py", "attention.py", "attention_kinds.py", "peers.csv"):
        shutil.copy(machine.BENCH / name, copy / name)
    for name in ("harness", "peers", "plots"):
        shutil.copytree(machine.BENCH / name, copy / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    pack_products(pack)
    (pack / "revision").write_text(machine.git_revision() + "\n")
    size = sum(path.stat().st_size for path in pack.rglob("*") if path.is_file())
    print(f"dist/bench holds {size / 1e6:.1f} MB", flush=True)
    return True
