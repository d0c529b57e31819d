"""man_lint.py PAGE...: fails where mandoc, or else groff, has something to say of a page.

A page has no date on purpose, and examples in it may be longer than mandoc's lines.
"""
import shutil
import subprocess
import sys

if shutil.which("mandoc"):
    command = ["mandoc", "-Tlint", "-Wwarning"]
else:
    command = ["groff", "-man", "-Tutf8", "-ww", "-z"]
for page in sys.argv[1:]:
    lint = subprocess.run(command + [page], capture_output=True, text=True)
    said = [line for line in (lint.stdout + lint.stderr).splitlines() if "missing date" not in line]
    if said:
        sys.exit("\n".join(said))
