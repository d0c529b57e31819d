"""manual.py SOURCE BUILD OUT: runs the examples of each tool's --help, and those of tilus(7), in a
folder that has kernels/, and checks the environment variables that are documented.

Each tool has examples, all succeed, and its man page shows them. Variables that sources read stand
in tilus-doctor --list-environment, and in tilus(7).
"""
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS_ONLY = {"TILUS_TUNE_FAULT"}
source, build, out = (Path(word).resolve() for word in sys.argv[1:4])
out.mkdir(parents=True)
(out / "kernels").symlink_to(source / "kernels")
environment = dict(os.environ, PATH=f"{build / 'bin'}:{os.environ['PATH']}",
                   TILUS_CACHE_DIR=str(out / "cache"))


def run(commands):
    done = subprocess.run(["bash", "-euc", commands], cwd=out, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}:\n{commands}\n{done.stdout}")
    return done.stdout


def unroff(text):
    for code, char in (("\\-", "-"), ("\\(aq", "'"), ("\\(dq", '"'), ("\\(ga", "`"), ("\\(ha", "^"),
                       ("\\(ti", "~"), ("\\e", "\\")):
        text = text.replace(code, char)
    return text


def shown(page):
    return [unroff(block) for block in re.findall(r"^\.EX\n(.*?)^\.EE$", page.read_text(), re.M | re.S)]


def check_tools():
    tools = sorted(path.stem for path in (build / "man").glob("tilus-*.1"))
    for tool in tools:
        text = run(f"{tool} --help")
        block = re.search(r"^EXAMPLES:\n((?:  .*\n)+)", text, re.MULTILINE)
        if not block:
            sys.exit(f"{tool} --help has no examples")
        commands = "".join(line[2:] + "\n" for line in block.group(1).splitlines())
        run(commands)
        plain = "".join(line for line in commands.splitlines(True) if line[0] != "#")
        if "".join(shown(build / "man" / f"{tool}.1")) != plain:
            sys.exit(f"the man page of {tool} has other examples than --help")
    return tools


def check_overview(page):
    program, commands = shown(page)
    (out / "widen.tilus").write_text(program)
    run(commands)


def check_variables(page):
    read = set()
    for folder in ("lib", "runtime", "tools"):
        for path in (source / folder).rglob("*.c"):
            read.update(re.findall(r'getenv\("(TILUS_\w+)"\)|environment\("(TILUS_\w+)"\)', path.read_text()))
    read = {name for pair in read for name in pair if name} - TESTS_ONLY
    listed = set(re.findall(r"^\| `(\w+)`", run("tilus-doctor --list-environment"), re.MULTILINE))
    named = set(re.findall(r"\b(?:TILUS_[A-Z_]+|TMPDIR)\b", page.read_text()))
    for what, names in (("not listed", read - listed), ("nobody reads", listed - read - {"TMPDIR"}),
                        ("not in tilus(7)", listed ^ named)):
        if names or not read:
            sys.exit(f"{what}: {', '.join(sorted(names))}")


overview = build / "man" / "tilus.7"
found = check_tools()
check_overview(overview)
check_variables(overview)
print(f"{len(found)} tools")
