"""The gallery's kernels beside PyTorch: bench/gallery.py, and the table that docs/gallery.md has of its rows."""
import csv
import subprocess
import sys

from . import gemm, machine, show

DOCUMENT = machine.ROOT / "docs" / "gallery.md"


def rows(options):
    """The rows that have been measured, the newest of each kernel."""
    path = options.results / "gallery.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def count_lines(row):
    """Those of the kernel's file as it is now that are not comments."""
    lines = (machine.ROOT / "kernels" / f"{row['file']}.tilus").read_text().splitlines()
    return str(sum(bool(line.strip()) and not line.lstrip().startswith("//") for line in lines))


def cells(row):
    rate = f" ({row['tflops']} TFLOP/s)" if row["tflops"] else ""
    return [f"[{row['kernel']}](../kernels/{row['file']}.tilus)", row["problem"], count_lines(row), row["error"],
            f"{float(row['us']):.1f}{rate}", "" if row["tflops"] else f"{float(row['over_copy']):.2f}",
            row["torch"].replace("=", " "), f"{float(row['over_best']):.2f}" if row["over_best"] else ""]


def table(options):
    head = ["kernel", "what", "lines", "error", "us", "of a copy", "PyTorch, us", "over the best"]
    return list(show.table(head, [cells(row) for row in rows(options)]))


def run(names, options):
    """Measures the kernels of these names, or all. bench/gallery.py keeps each row at once."""
    command = [sys.executable, machine.BENCH / "gallery.py", "--tools", machine.programs(options),
               "--runtime", gemm.runtime(options), "--out", options.results / "gallery.csv", "--revision", machine.revision(options)]
    if names:
        command += ["--only", ",".join(names)]
    return subprocess.run([str(word) for word in command]).returncode == 0
