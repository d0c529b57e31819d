#!/usr/bin/env python3
"""python_declarations.py [--check | --write]: python/tilusc/_declarations.py, the C interface for ctypes.

--write makes it from the record of the binary interface, test/abi/VERSION.txt, which test/abi.py makes from
the public headers and compares with each build, and from lib/target/targets.def; --check, the default, says
whether it is what --write would make. The IR, passes and remarks are left out.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "python/tilusc/_declarations.py"
# Parts of the interface of no use from Python: the IR, plugins, remarks.
SKIPPED = re.compile(r"tilus_(op|block|value|expr|layout|type_(?!bits|max|min|is_float|name)|program_(?!count|name)|"
                     r"attr|pass(?!_options\b)|plugin|remark|register|load_plugin|walk)")
SCALARS = {"size_t": "c_size_t", "int64_t": "c_int64", "uint64_t": "c_uint64", "int": "c_int", "unsigned int": "c_uint",
           "unsigned": "c_uint", "double": "c_double", "_Bool": "c_bool", "long long": "c_longlong",
           "uint32_t": "c_uint32", "unsigned char": "c_ubyte", "char": "c_char", "tilus_stream": "c_void_p"}
HEAD = '''"""The C interface of libtilus_rt, libtilus_matmul, libtilus_attention and libtilus_compiler for ctypes.

Made by scripts/python_declarations.py; not to be edited."""
import ctypes
from ctypes import (c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_longlong, c_size_t, c_ubyte, c_uint, c_uint32,
                    c_uint64, c_void_p)

'''


class Record:
    """The lines of the record of this version."""

    def __init__(self):
        text = (ROOT / "include/tilus/version.h").read_text()
        version = re.findall(r"^#define TILUS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE)
        self.text = (ROOT / "test/abi" / (".".join(version) + ".txt")).read_text()

    def find(self, pattern):
        return re.findall(pattern, self.text, re.MULTILINE)


def ctype(spelled, structs):
    """The ctypes type of a C type: pointers but `const char *` are addresses, enums are ints."""
    if array := re.fullmatch(r"(.*?) ?\[(\d+)\]", spelled):
        return f"{ctype(array[1], structs)} * {array[2]}"
    if spelled == "const char *":
        return "c_char_p"
    if "*" in spelled:
        return "c_void_p"
    base = spelled.replace("const ", "")
    return SCALARS.get(base) or (base if base in structs else "c_int")


def split_arguments(text):
    """The arguments of a prototype; a function pointer's own commas do not count."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip() not in ("", "void")]


def enumerators(record):
    for name, value in record.find(r"^enumerator (TILUS_\w+) = (-?\d+)$"):
        if not SKIPPED.match(name.lower()):
            yield f"{name} = {value}\n"


def aggregates(record):
    names = [name for _, name, _ in record.find(r"^(struct|union) (\w+): (\d+) bytes$")]
    for kind, name, size in record.find(r"^(struct|union) (\w+): (\d+) bytes$"):
        if SKIPPED.match(name):
            continue
        rows = sorted((int(offset), field, spelled) for field, offset, spelled
                      in record.find(rf"^field {name}\.(\w+) at (\d+): (.*)$"))
        base = "Union" if kind == "union" else "Structure"
        fields = "".join(f'        ("{field}", {ctype(spelled, names)}),\n' for _, field, spelled in rows)
        yield f"\n\nclass {name}(ctypes.{base}):\n    _fields_ = [\n{fields}    ]\n"


def functions(record, library):
    symbols = set(record.find(rf"^symbol tilus_{library}: (\w+)@"))
    for result, name, arguments in record.find(r"^function (.*?)(\btilus_\w+)\((.*)\)$"):
        if name in symbols and not SKIPPED.match(name):
            kinds = ", ".join(ctype(a, ()) for a in split_arguments(arguments))
            kind = "None" if result.strip() == "void" else ctype(result.strip(), ())
            yield f'    "{name}": ({kind}, [{kinds}]),\n'


def targets():
    """Name, capability, and whether code for it runs on nothing else."""
    table = (ROOT / "lib/target/targets.def").read_text()
    rows = re.findall(r"^TARGET\((\w+), +(\d+),.*(true|false)\)$", table, re.MULTILINE)
    lines = "".join(f'    ("{name}", {sm}, {own == "true"}),\n' for name, sm, own in rows)
    return f"\n\n# Name, compute capability, and whether no other device runs its code.\nTARGETS = [\n{lines}]\n"


def module(record):
    text = HEAD + "".join(enumerators(record)) + "".join(aggregates(record)) + targets()
    for library in ("rt", "matmul", "attention", "compiler"):
        text += f"\n\n# Result and arguments.\n{library.upper()} = {{\n{''.join(functions(record, library))}}}\n"
    return text


def main():
    text = module(Record())
    if "--write" in sys.argv:
        OUT.write_text(text)
    elif not OUT.exists() or OUT.read_text() != text:
        sys.exit(f"error: {OUT} is stale: run scripts/python_declarations.py --write")


main()
