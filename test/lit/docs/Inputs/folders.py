"""folders.py SOURCE: prints which folder's files include which folder's, lowest folders first,
as the map in docs/internals.md shows it. Fails when folders include each other in a circle, or one of
others than those there includes LLVM."""
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
LLVM = re.compile(r"^#include <llvm-c/([^>]+)>", re.MULTILINE)
WITH_LLVM = {"lib/codegen": r".*", "lib/cpu": r".*", "lib/cache": r"blake3\.h"}
WHOLE = ["include/tilus", "runtime", "tools/common"]


def folders(source):
    return WHOLE + sorted(f"{top}/{path.name}" for top in ("lib", "tools")
                          for path in (source / top).iterdir()
                          if path.is_dir() and f"{top}/{path.name}" not in WHOLE)


def owner(source, folder, name):
    """The folder of what a file in `folder` includes as `name`, or None."""
    for root in (folder, "include", "lib", "runtime", "tools"):
        path = Path(root) / name
        if (source / path).exists():
            return path.parent.as_posix()
    return None


def arrows(source):
    graph = {}
    for folder in folders(source):
        graph[folder] = set()
        for path in sorted((source / folder).iterdir()):
            if path.suffix in (".c", ".h", ".def", ".inc"):
                text = path.read_text()
                for name in INCLUDE.findall(text):
                    graph[folder].add(owner(source, folder, name))
                for name in LLVM.findall(text):
                    if not re.fullmatch(WITH_LLVM.get(folder, ""), name):
                        sys.exit(f"{path.relative_to(source)} includes llvm-c/{name}")
        graph[folder] -= {folder, None}
    return graph


def main():
    graph = arrows(Path(sys.argv[1]))
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        sys.exit("a circle: " + " -> ".join(reversed(error.args[1])))
    rank = {folder: i for i, folder in enumerate(order)}
    wide = max(map(len, graph))
    for folder in order:
        below = sorted(graph[folder], key=lambda each: -rank[each])
        print(f"{folder:<{wide}}  {'-> ' if below else ''}{', '.join(below)}".rstrip())


main()
