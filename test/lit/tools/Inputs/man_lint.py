"""man_lint.py PAGE...: fails where mandoc or groff has something to say of a page; without either, passes.

A page has no date on purpose, and examples in it may be longer than mandoc's lines.
"""
import shutil
import subprocess
import sys

if shutil.which("mandoc"):
    command = ["mandoc", "-Tlint", "-Wwarning"]
elif shutil.which("groff"):
    command = ["groff", "-man", "-Tutf8", "-ww", "-z"]
else:
    sys.exit(0)
for page in sys.argv[1:]:
    lint = subprocess.run(command + [page], capture_output=True, text=True)
    said = [line for line in (lint.stdout + lint.stderr).splitlines() if "missing date" not in line]
    if said:
        sys.exit("\n".join(said))
