"""Prints how many symbols each library defines for its users, and what is wrong with them:

symbols.py LIBRARY...    archives and shared libraries

A name lacks the prefix `tilus_`, two libraries define it, or an archive and the shared
library of its name differ in it.
"""
import collections
import os
import subprocess
import sys


def symbols(path):
    listed = "-gD" if ".so" in path else "-g"
    text = subprocess.run(["nm", listed, "--defined-only", "--format=posix", path],
                          check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    # An absolute symbol is the name of a version.
    return {row[0].partition("@")[0] for row in rows if len(row) > 2 and row[1] != "A"}


def main(paths):
    found = collections.defaultdict(dict)
    for path in paths:
        library, kind = os.path.basename(path).split(".")[:2]
        found[kind][library] = symbols(path)
        print(f"{library}.{kind}: {len(found[kind][library])} symbols")
    for kind, libraries in found.items():
        owners = collections.defaultdict(list)
        for library, names in libraries.items():
            for name in names:
                owners[name].append(library)
        for name, who in sorted(owners.items()):
            if not name.startswith("tilus_"):
                print(f"error: {who[0]}.{kind} defines {name}")
            if len(who) > 1:
                print(f"error: {' and '.join(who)} define {name}")
    for library in found["a"].keys() & found["so"].keys():
        for name in sorted(found["a"][library] ^ found["so"][library]):
            print(f"error: {library}.a or {library}.so lacks {name}")


main(sys.argv[1:])
