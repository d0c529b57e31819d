#!/usr/bin/env python3
"""Compares the binary interface of a build with the records in test/abi.

    abi.py --build BUILD [--cc CC]             compares with each record of this minor version, and the
                                               lists in cmake/exports with the libraries
    abi.py --build BUILD [--cc CC] --write     writes the record of this version and the declarations of
                                               python/, and adds symbols that are new to the lists
    abi.py --compare OLD NEW                   compares two records

A record has a line for each exported symbol, prototype, struct, field and enumerator, from the libraries and
from the debug information of the public headers. Lines may be added; one that is gone or changed, a field of a
struct without struct_size, and a field within the old size of one with it are breaks, which are printed. Exits
with 1 then. docs/abi.md is the promise.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "test" / "abi"
LISTS = ROOT / "cmake" / "exports"
LIBRARIES = ["tilus_rt", "tilus_matmul", "tilus_bigint", "tilus_attention", "tilus_compiler"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def version():
    text = (ROOT / "include/tilus/version.h").read_text()
    return [int(n) for n in re.findall(r"^#define TILUS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE)]


# ---- debug information ----------------------------------------------------------

@dataclass
class Die:
    """An entry of DWARF."""
    tag: str
    attributes: dict = field(default_factory=dict)
    children: list = field(default_factory=list)

    def number(self, name):
        return int(self.attributes.get(name, "0").split()[0], 0)


ENTRY = re.compile(r" *<(\w+)><(\w+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
# `: (indirect string, offset: 0x1): name`, and of newer binutils `: (strp) (offset: 0x1): name`.
ATTRIBUTE = re.compile(r" +<\w+> +DW_AT_(\w+) *: (?:\(\w+\) )?(?:\([^)]*\): )?(.*?)\s*$")


def read_dies(path):
    """All entries by their offsets, as readelf prints them."""
    dies, stack = {}, []
    for line in output("readelf", "-W", "--debug-dump=info", path).splitlines():
        if entry := ENTRY.match(line):
            depth, offset, tag = int(entry[1], 16), int(entry[2], 16), entry[3]
            dies[offset] = die = Die(tag)
            del stack[depth:]
            if stack:
                stack[-1].children.append(die)
            stack.append(die)
        elif (attribute := ATTRIBUTE.match(line)) and stack:
            stack[-1].attributes[attribute[1]] = attribute[2]
    return dies


class Types:
    """Spells types as C does."""

    def __init__(self, dies):
        self.dies = dies

    def of(self, die):
        reference = die.attributes.get("type")
        return self.dies[int(re.match("<(.*?)>", reference)[1], 16)] if reference else None

    def parameters(self, die):
        spelled = [self.spell(self.of(child)) for child in die.children if child.tag == "formal_parameter"]
        dots = ["..."] if any(child.tag == "unspecified_parameters" for child in die.children) else []
        return ", ".join(spelled + dots) or "void"

    def spell(self, die, inner=""):
        """`die` as the type of `inner`, a declarator."""
        if die is None:
            return f"void {inner}".rstrip()
        name = die.attributes.get("name", "")
        target = self.of(die)
        if die.tag == "pointer_type":
            grouped = target is not None and target.tag in ("subroutine_type", "array_type")
            return self.spell(target, f"(*{inner})" if grouped else f"*{inner}")
        if die.tag in ("const_type", "volatile_type", "restrict_type"):
            word = die.tag.removesuffix("_type")
            if target is not None and target.tag == "pointer_type":
                return self.spell(target, f"{word} {inner}".rstrip())
            return f"{word} {self.spell(target, inner)}"
        if die.tag == "subroutine_type":
            return self.spell(target, f"{inner}({self.parameters(die)})")
        if die.tag == "array_type":
            bounds = "".join(f"[{child.number('count') or child.number('upper_bound') + 1}]" for child in die.children)
            return self.spell(target, inner + bounds)
        words = {"structure_type": "struct ", "union_type": "union ", "enumeration_type": "enum "}
        base = name.replace("long long int", "long long").replace("long int", "long")
        return f"{words.get(die.tag, '')}{base or 'anonymous'} {inner}".rstrip()


def describe_aggregate(types, die, name):
    kind = "union" if die.tag == "union_type" else "struct"
    if "declaration" in die.attributes:
        yield f"{kind} {name}: opaque"
        return
    yield f"{kind} {name}: {die.number('byte_size')} bytes"
    for child in die.children:
        if child.tag == "member":
            inner = child.attributes.get("name", "")
            yield f"field {name}.{inner} at {child.number('data_member_location')}: {types.spell(types.of(child))}"


def describe_typedef(types, die, name):
    target = types.of(die)
    if target is not None and target.tag in ("structure_type", "union_type"):
        if target.attributes.get("name") != name:
            yield from describe_aggregate(types, target, name)
    elif target is None or target.tag != "enumeration_type":
        yield f"typedef {name}: {types.spell(target)}"


def describe(dies):
    types = Types(dies)
    for die in dies.values():
        name = die.attributes.get("name", "")
        if die.tag == "enumeration_type":
            for child in die.children:
                if child.attributes["name"].startswith("TILUS_"):
                    yield f"enumerator {child.attributes['name']} = {child.number('const_value')}"
        if die.tag == "variable" and name.startswith("abi_"):
            pointer = types.of(die)
            yield f"function {types.spell(types.of(pointer), name.removeprefix('abi_'))}"
        if not name.startswith("tilus_"):
            continue
        if die.tag in ("structure_type", "union_type"):
            yield from describe_aggregate(types, die, name)
        elif die.tag == "typedef":
            yield from describe_typedef(types, die, name)


# ---- a record ---------------------------------------------------------------------

def exported(build, library):
    """Names with their versions, as "tilus_launch@@TILUS_0.2"."""
    rows = [line.split() for line in
            output("nm", "-gD", "--defined-only", "--format=posix", build / f"lib/lib{library}.so").splitlines()]
    return sorted(row[0] for row in rows if row[1] != "A")


def record(build, compiler):
    symbols = {library: exported(build, library) for library in LIBRARIES}
    names = sorted({symbol.partition("@")[0] for listed in symbols.values() for symbol in listed})
    headers = sorted(path.name for path in (ROOT / "include/tilus").glob("*.h"))
    with tempfile.TemporaryDirectory() as scratch:
        source, compiled = Path(scratch, "abi.c"), Path(scratch, "abi.o")
        source.write_text("".join(f"#include <tilus/{header}>\n" for header in headers) +
                          "".join(f"__typeof__({name}) *abi_{name};\n" for name in names))
        subprocess.run([compiler, "-std=gnu17", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-c",
                        f"-I{ROOT / 'include'}", source, "-o", compiled], check=True)
        lines = set(describe(read_dies(compiled)))
    opaque = {line for line in lines if line.endswith(": opaque")}
    lines -= {line for line in opaque if any(other.startswith(line.removesuffix("opaque")) for other in lines - opaque)}
    lines |= {f"symbol {library}: {symbol}" for library, listed in symbols.items() for symbol in listed}
    return sorted(lines)


# ---- what changed -------------------------------------------------------------------

FIELD = re.compile(r"field (\w+)\.(\w*) at (\d+): (.*)")
SIZE = re.compile(r"(?:struct|union) (\w+): (\d+) bytes")


def sizes(lines):
    return {match[1]: int(match[2]) for match in map(SIZE.match, lines) if match}


def sized_structs(lines):
    return {match[1] for match in map(FIELD.match, lines) if match and match[2] == "struct_size" and match[3] == "0"}


def breaks(old, new):
    """Why programs that were built with `old` may not run with `new`."""
    sized, before, after = sized_structs(old), sizes(old), sizes(new)
    for line in sorted(set(old) - set(new)):
        size = SIZE.match(line)
        if not (size and size[1] in sized and after.get(size[1], 0) > before[size[1]]):
            yield f"gone or changed: {line}"
    for line in sorted(set(new) - set(old)):
        match = FIELD.match(line)
        if match and match[1] in before:
            if match[1] not in sized:
                yield f"added to a struct without struct_size: {line}"
            elif int(match[3]) < before[match[1]]:
                yield f"added within the {before[match[1]]} bytes that the struct had: {line}"


def compare(old, new, name):
    """Prints what changed; true when nothing breaks."""
    found = list(breaks(old, new))
    for line in sorted(set(new) - set(old)):
        print(f"{name}: added: {line}")
    for line in found:
        print(f"{name}: error: {line}")
    print(f"{name}: {len(new)} lines, {len(set(new) - set(old))} added, {len(found)} breaks")
    return not found


# ---- the lists ------------------------------------------------------------------------

def listed(library):
    return set(re.findall(r"^        (tilus_\w+);$", (LISTS / f"{library}.map").read_text(), re.MULTILINE))


def built(build, library):
    """What the objects of a library define for its users, which its archive shows."""
    rows = [line.split() for line in output("nm", "-g", "--defined-only", "--format=posix",
                                            build / f"lib/archive/lib{library}.a").splitlines()]
    return {row[0] for row in rows if len(row) > 2}


def check_lists(build):
    faults = 0
    for library in LIBRARIES:
        for name in sorted(built(build, library) ^ listed(library)):
            faults += 1
            where = "only in" if name in listed(library) else "not in"
            print(f"error: {name} is {where} cmake/exports/{library}.map")
    return not faults


def node_text(name, names, parent, is_last):
    """A version and its symbols. What is listed nowhere yet is of the last one, until the check fails on it."""
    rows = sorted(names) + (["tilus_*"] if is_last else [])
    return (f"{name} {{\n    global:\n" + "".join(f"        {row};\n" for row in rows) +
            ("" if parent else "    local:\n        *;\n") + f"}}{' ' + parent if parent else ''};\n")


def write_lists(build):
    """Makes the node of this version what is new since the earlier ones, which stay as they are."""
    major, minor, patch = version()
    own = f"TILUS_{major}.{minor}" + (f".{patch}" if patch else "")
    for library in LIBRARIES:
        path = LISTS / f"{library}.map"
        comment, _, text = path.read_text().partition("*/\n")
        nodes = {node: set(re.findall(r"^        (tilus_\w+);$", body, re.MULTILINE))
                 for node, body in re.findall(r"^(TILUS_\S+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)}
        now = built(build, library)
        for node in nodes:
            nodes[node] &= now if node == own else nodes[node]
        nodes.setdefault(own, set())
        nodes[own] |= now - set().union(*nodes.values())
        names = [node for node in nodes if nodes[node]]
        path.write_text(comment + "*/\n" + "\n".join(
            node_text(node, nodes[node], parent, node == names[-1]) for node, parent in zip(names, ["", *names])))


# ---- the command ------------------------------------------------------------------------

def make(build, *targets):
    subprocess.run(["cmake", "--build", build, "--target", *targets], check=True, stdout=subprocess.DEVNULL)


def write(build, compiler):
    make(build, *(f"{library}_archive" for library in LIBRARIES))
    write_lists(build)
    make(build, *LIBRARIES)
    path = RECORDS / f"{'.'.join(map(str, version()))}.txt"
    lines = record(build, compiler)
    if path.exists():
        compare(path.read_text().splitlines(), lines, path.name)
    path.write_text("".join(f"{line}\n" for line in lines))
    print(f"wrote {path.relative_to(ROOT)}: {len(lines)} lines")
    subprocess.run([sys.executable, ROOT / "scripts/python_declarations.py", "--write"], check=True)


def check(build, compiler):
    major, minor, _ = version()
    paths = sorted(RECORDS.glob(f"{major}.{minor}.*.txt"))
    lines = record(build, compiler)
    good = [compare(path.read_text().splitlines(), lines, path.name) for path in paths]
    good.append(check_lists(build))
    if not all(good):
        print("docs/abi.md says what is kept. Before the release, or when the change is one that is allowed:\n"
              f"    python3 test/abi.py --build {build} --write")
    return bool(paths) and all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, help="a release build, with tests")
    parser.add_argument("--cc", default="cc", help="a C compiler")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    arguments = parser.parse_args()
    if arguments.compare:
        old, new = (path.read_text().splitlines() for path in arguments.compare)
        good = compare(old, new, arguments.compare[0].name)
    elif arguments.build and arguments.write:
        good = True
        write(arguments.build, arguments.cc)
    elif arguments.build:
        good = check(arguments.build, arguments.cc)
    else:
        parser.error("give --build or --compare")
    sys.exit(not good)


if __name__ == "__main__":
    main()
