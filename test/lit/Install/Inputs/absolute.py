"""absolute.py PREFIX DIRECTORY...: fails when an installed text, or the dynamic section of a library or
program below PREFIX, names one of the directories."""
import subprocess
import sys
from pathlib import Path


def texts(path):
    """The file's own text; of ELF the names that the loader sees."""
    if path.read_bytes()[:4] == b"\x7fELF":
        return subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return path.read_text(errors="replace")


def main():
    prefix, directories = Path(sys.argv[1]), sys.argv[2:]
    read = [".cmake", ".pc", ".h", ".so", ".a", ""]
    files = [path for path in sorted(prefix.rglob("*")) if path.is_file() and
             (path.suffix in read or ".so." in path.name)]
    faults = [f"{path.relative_to(prefix)} names {name}" for path in files for name in directories
              if name in texts(path)]
    print("\n".join(faults) or f"{len(files)} files name none of {len(directories)} directories")
    sys.exit(bool(faults or not files))


main()
