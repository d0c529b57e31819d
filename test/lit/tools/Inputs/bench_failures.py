"""Lets each driver call of --bench fail, one run each: an error that names the call (where it
does not release something), no crash, nothing left. Usage:

    bench_failures.py DRIVER_DEF COMMAND...
"""
import os
import re
import subprocess
import sys

RELEASES = ("Destroy", "Release", "Pop", "cuMemFree", "cuGetErrorName")

definitions, *command = sys.argv[1:]
with open(definitions) as text:
    calls = re.findall(r"^DRIVER\((\w+), (\w+),", text.read(), re.MULTILINE)
for name, symbol in calls:
    run = subprocess.run(command, env=os.environ | {"TILUS_FAKE_FAIL": f"{symbol}:2"},
                         capture_output=True, text=True)
    releases = any(word in name for word in RELEASES)
    said = "error: " in run.stderr and name in run.stderr
    if run.returncode not in (0, 1) or not (said or releases) or "are left" in run.stderr:
        raise SystemExit(f"{symbol}: exit code {run.returncode}\n{run.stderr}")
print(f"{len(calls)} calls failed")
