"""run_blocks.py SOURCE TOOLS OUT FILE.md ...: runs the commands of documents as printed.

Each ```sh block runs in a folder that looks like the top of a checkout after a build, one folder
a document, with TOOLS in PATH. It must succeed. Comments above a block say otherwise:

    <!-- fails -->          the commands must fail
    <!-- file: NAME -->     the block, of any kind, is written to that file
    <!-- output -->         each line of the block is in what the last commands printed, in this
                            order; `...` stands for any text

Blocks of `sh gpu` need a device and those of `sh elsewhere` another machine or a template filled
in: they are not run.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- (fails|output|file: (\S+)) -->\n)?^```([^\n]*)\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)


def make_checkout(source, tools, out):
    out.mkdir(parents=True)
    for path in source.iterdir():
        if path.name not in ("build", "dist") and not path.name.startswith("."):
            (out / path.name).symlink_to(path)
    (out / "build").mkdir()
    (out / "build" / "release").symlink_to(tools.parent)


def run_commands(block, folder, tools):
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}",
                       TILUS_CACHE_DIR=str(folder / "cache"))
    return subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, text=True,
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace")


def missing_line(wanted, printed):
    """The first line of `wanted` that does not follow in `printed`, or None."""
    at = 0
    for line in wanted.splitlines():
        for part in filter(None, map(str.strip, line.split("..."))):
            found = printed.find(part, at)
            if found < 0:
                return line
            at = found + len(part)
    return None


def check_document(path, folder, tools):
    """How many blocks of commands ran."""
    ran, printed = 0, ""
    for note, name, kind, block in BLOCK.findall(path.read_text()):
        if name:
            (folder / name).write_text(block)
        if note == "output":
            line = missing_line(block, printed)
            if line:
                sys.exit(f"{path}: not in the output: {line}\n{printed}")
        elif kind == "sh":
            result = run_commands(block, folder, tools)
            printed, ran = result.stdout, ran + 1
            if (result.returncode != 0) != (note == "fails"):
                sys.exit(f"{path}: status {result.returncode}:\n{block}{printed}")
    return ran


def main():
    source, tools, out = (Path(word).resolve() for word in sys.argv[1:4])
    for path in map(Path, sys.argv[4:]):
        folder = out / path.resolve().relative_to(source).with_suffix("")
        make_checkout(source, tools, folder)
        ran = check_document(path, folder, tools)
        print(f"{path.name}: {ran} blocks of commands")
        if not ran:
            sys.exit(f"{path}: no commands")


main()
