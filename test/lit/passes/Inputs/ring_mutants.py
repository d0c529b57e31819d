"""Puts one fault at a time into the ring of a program, and says who reports it, at which line.

    ring_mutants.py FILE [--import FILE] [-D NAME=VALUE ..] [--stages TEXT] [--run ARGS]

Faults are put into the imported file, where one is given. Those that do not fit its text are
left out. check-hazards, strict, must say
nothing at these lines about the program as it is; with --run the interpreter runs each
mutant, too. A fault that nobody reports is an error."""
import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# name, the text (a regular expression) and what it becomes; MULTILINE. An op may be all that a `when` or `if` of its
# line has.
OPEN, CLOSE = r"^( *(?:(?:when|if) .* \{ )?)", r"((?: \})*)$"
FULL_WAIT = OPEN + r"mbarrier_wait %full\[(.*?)\], (.*?)" + CLOSE
EMPTY_WAIT = OPEN + r"mbarrier_wait %empty\[(.*?)\], (.*?)" + CLOSE
RANK = r"(?: \{rank = \w+\})?" + CLOSE
EMPTY_ARRIVE = OPEN + r"mbarrier_arrive %empty\[(.*)\]" + RANK
FULL_ARRIVE = OPEN + r"mbarrier_arrive %full\[(.*)\]" + RANK
FAULTS = [
    ("no wait for a full slot", FULL_WAIT, r"\1\4"),
    ("no wait for an empty slot", EMPTY_WAIT, r"\1\4"),
    ("another phase of full", FULL_WAIT, r"\1mbarrier_wait %full[\2], \3 + 1\4"),
    ("another phase of empty", EMPTY_WAIT, r"\1mbarrier_wait %empty[\2], \3 + 1\4"),
    ("another slot's full", FULL_WAIT, r"\1mbarrier_wait %full[(\2 + 1) mod STAGES], \3\4"),
    ("another slot's empty", EMPTY_WAIT, r"\1mbarrier_wait %empty[(\2 + 1) mod STAGES], \3\4"),
    ("released before it is read", FULL_WAIT + r"((?:.*\n)*?)" + EMPTY_ARRIVE,
     r"\1mbarrier_wait %full[\2], \3; mbarrier_arrive %empty[\7]\4\5\6\8"),
    ("released by nobody", EMPTY_ARRIVE, r"\1\3"),
    ("filled by nobody", FULL_ARRIVE, r"\1\3"),
    ("another slot is read", r"(load_shared %(?:ring|blocks))\[(%\w+(?: mod STAGES)?),",
     r"\1[(\2 + 1) mod STAGES,"),
    ("another slot is written", r"(%ring)\[(%i mod STAGES|%s),", r"\1[(\2 + 1) mod STAGES,"),
    ("one arrival too few", r"(%empty = allocate_mbarrier \{count = )(\w+)\}", r"\1\2 - 1}"),
    ("one arrival too many", r"(%empty = allocate_mbarrier \{count = )(\w+)\}", r"\1\2 + 1}"),
    ("a product is in flight", r"\{pending = 1\}", "{pending = 2}"),
    ("released by no block", r"^ *@arrive<CLUSTER>\(%empty, .*\)$", "// no arrival"),
    ("filled by no block", r"^ *@arrive<CLUSTER>\(%full, .*\)$", "// no arrival"),
    ("its own slot is released", r"^( *)@arrive<CLUSTER>(\(%empty, \(%s) - 1\)", r"\1@arrive<CLUSTER>\2)"),
    ("arrivals at one block alone", r"0 \.\. CLUSTER unroll", "0 .. 1 unroll"),
    ("one block alone gets the part", r"multicast = \(1 << CLUSTER\) - 1", "multicast = 1"),
    ("all blocks copy one part", r"%rank \* \(BN / CLUSTER\), 0\]", "0, 0]"),
    ("numbers go on beyond", r"\* %steps \+ %t$", "* (%steps + 1) + %t"),
    ("another block's slot is not full", r"^ *mbarrier_arrive %full.*rank = 1\}$", "// no arrival"),
    ("another block's slot is not empty", r"^ *mbarrier_arrive %empty.*rank = 1\}$", "// no arrival"),
    ("two arrivals at one block", r"(%empty.*rank = )1\}$", r"\g<1>0}"),
    ("its own block's arrivals alone", r"^( *mbarrier_arrive %empty\[.*\]) \{rank = 1\}$", r"\1"),
    ("one block alone gets the copy", r"multicast = 3\}", "multicast = 1}"),
    ("both blocks copy one half", r"%r \* (32|512)(, 0)?\], %full", r"0\2], %full"),
    ("one fill too few", r"^( *)for %t in 0 \.\. %steps( unroll\(STAGES\))? \{", r"\1for %t in 0 .. %steps - 1 {"),
    ("a slot is filled twice first", r"min\(STAGES, %count\)", "min(STAGES + 1, %count)"),
]


def mutants(text, stages):
    """Pairs of a name and a text; a `;` stands between two ops of a line."""
    for name, old, new in FAULTS:
        every = name.endswith("nobody")
        new = new.replace("STAGES", stages)
        mutant, count = re.subn(old, new, text, count=0 if every else 1, flags=re.MULTILINE)
        if count:
            yield name, mutant.replace("; mbarrier_arrive", "\n mbarrier_arrive")


def complaints(command):
    run = subprocess.run(command, capture_output=True, text=True)
    found = re.findall(r"^(?:\S*/)?([\w-]+\.tilus):(\d+):\d+: error: (.*)$", run.stderr, re.MULTILINE)
    return [(file, int(line), message) for file, line, message in found]


def without_numbers(found):
    return {re.sub(r"\d+", "", message) for *_, message in found}


parser = argparse.ArgumentParser()
parser.add_argument("file", type=Path)
parser.add_argument("-D", action="append", default=[])
parser.add_argument("--import", dest="imported", type=Path)
parser.add_argument("--run")
parser.add_argument("--stages", default="STAGES", help="how the text spells the slots of its ring")
options = parser.parse_args()
defines = ["-D" + d for d in options.D]
changed = options.imported or Path(options.file.name)
source = (options.file.parent / changed).read_text()
silent = False
with tempfile.TemporaryDirectory() as name:
    folder = Path(name) / "program"
    shutil.copytree(options.file.parent, folder)
    path = folder / options.file.name
    check = ["tilus-opt", str(path), *defines, "-o", "/dev/null",
             "--passes=infer-layouts,canonicalize,check-hazards{strict}"]
    interpret = ["tilus-run", str(path), *defines, "--engine=interp", *shlex.split(options.run or "")]
    before = without_numbers(complaints(check))
    texts = {path.name: path.read_text() for path in folder.rglob("*.tilus")}
    for fault, text in mutants(source, options.stages):
        (folder / changed).write_text(text)
        texts[changed.name] = text
        reported = False
        for who, command in (("check-hazards", check), ("interpreter", interpret)):
            if who == "interpreter" and options.run is None:
                continue
            found = [c for c in complaints(command) if re.sub(r"\d+", "", c[2]) not in before]
            reported |= bool(found)
            for file, line, message in found[:1]:
                print(f"{fault}: {who}: {texts[file].splitlines()[line - 1].strip()}\n  {message}")
        silent |= not reported
        if not reported:
            print(f"{fault}: nobody reports it")
sys.exit(silent)
