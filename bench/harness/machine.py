"""Where programs, kernels and libraries are: in a pack, or in the builds of a checkout."""
import ctypes.util
import importlib.util
import os
import pathlib
import subprocess
import tarfile

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent


class Failure(Exception):
    """An error that the user is told of, without a stack."""


def command(words, **options):
    """Runs a command; its standard output, or a Failure with its error text."""
    result = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)
    if result.returncode != 0:
        said = result.stderr.strip() or f"exit code {result.returncode}"
        raise Failure(f"{pathlib.Path(words[0]).name}: {said}")
    return result.stdout


def pack_folder():
    """The folder of a pack: this one, or the one that this checkout has made; or None."""
    for folder in (ROOT, ROOT / "dist" / "bench"):
        if (folder / "programs.tar.xz").exists():
            return folder
    return None


def unpack(archive, folder):
    """Unpacks once: again when the archive is newer."""
    stamp = folder / ".unpacked"
    if not stamp.exists() or stamp.stat().st_mtime < archive.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as files:
            files.extractall(folder)
        stamp.touch()
    return folder


def programs(options):
    """The folder of programs: as told, of the pack, or of the release build."""
    if options.tools:
        return pathlib.Path(options.tools)
    pack = pack_folder()
    if pack:
        return unpack(pack / "programs.tar.xz", pack / "programs")
    return ROOT / "build" / "release" / "bin"


def kernels(options):
    if options.kernels:
        return pathlib.Path(options.kernels)
    pack = pack_folder()
    if not pack:
        raise Failure("no kernels: run `bench/run pack` first, or give --kernels")
    return unpack(pack / "kernels.tar.xz", pack / "kernels")


def revision(options):
    """The revision that is measured."""
    if options.revision:
        return options.revision
    pack = pack_folder()
    if pack and not options.tools:
        return (pack / "revision").read_text().strip()
    return git_revision()


def git_revision():
    return command(["git", "-C", ROOT, "describe", "--always", "--dirty"]).strip()


def find_cublas():
    """The library that pip has brought, which the system does not know; or None."""
    spec = None if ctypes.util.find_library("cublas") else importlib.util.find_spec("nvidia")
    for version in ("13", "12"):
        for place in (spec.submodule_search_locations if spec else ()):
            for library in sorted(pathlib.Path(place).glob(f"*/lib/libcublas.so.{version}")):
                return library
    return None


def environment():
    """That of programs which look for cuBLAS."""
    library = None if "TILUS_LIBCUBLAS" in os.environ else find_cublas()
    return os.environ | {"TILUS_LIBCUBLAS": str(library)} if library else None


def processor():
    """The name of this machine's processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip().replace(",", ";")
    except OSError:
        pass
    return os.uname().machine
