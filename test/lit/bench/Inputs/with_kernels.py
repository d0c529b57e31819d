"""Runs matmul_bench again and again, compiling each kernel that it misses, then once more with
its output shown:

    with_kernels.py TEMPLATE HELPERS FOLDER COMMAND...

HELPERS: the sources of kernels beside the products, separated by commas
"""
import pathlib
import re
import subprocess
import sys

template, helpers, folder, *command = sys.argv[1:]
pathlib.Path(folder).mkdir(exist_ok=True)


def compile_artefact(source, target, name, *more):
    subprocess.run(["tilus-llc", source, f"-mcpu={target}", "--filetype=artefact",
                    "--cubin=never", "-o", f"{folder}/{name}.tilusk", *more], check=True)


for source in helpers.split(","):
    compile_artefact(source, "sm_80", pathlib.Path(source).stem)
for _ in range(8):
    run = subprocess.run(command, capture_output=True, text=True)
    missing = re.search(r"no kernel (\S+) \(@(\w+) of (.*) for (sm_\w+)\)", run.stderr)
    if not missing:
        break
    name, program, parameters, target = missing.groups()
    compile_artefact(template, target, name, "--program", program,
                     *(word for define in parameters.split() for word in ("-D", define)))
print(run.stdout + run.stderr, end="")
raise SystemExit(run.returncode)
