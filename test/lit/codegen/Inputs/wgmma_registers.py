"""Registers of a that a product in flight may still read must not be written.

With --sass FILE, reads one listing of `nvdisasm -c`. Else assembles every program of the folders
or files given whose PTX has a product with a in registers, with each set of parameters of its
`// ARGS:` lines. Prints each instruction that may write such registers between an HGMMA and the
WARPGROUP.DEPBAR that ends its group, on any path, with the line numbers in the listing; then how
many such products were seen."""

import os
import re
import subprocess
import sys
import tempfile

from wgmma_remarks import parameter_sets, sources

A_WORDS = 4                     # registers of a of one HGMMA
LABEL = re.compile(r"^(\.L_x_\d+):")
OP = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P[\dT]+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
ENDS = ("EXIT", "RET", "BRX", "KILL", "BPT")


class Op:
    def __init__(self, line, text, match):
        self.line, self.text = line, " ".join(text.split())
        self.guarded, self.name, rest = bool(match[1]), match[2], match[3]
        self.operands = [part.strip() for part in rest.split(",")] if rest else []
        target = TARGET.search(rest)
        self.target = target[1] if target else None
        self.after = []


def parse(listing):
    """The functions of the listing: lists of ops with the numbers of those that may follow."""
    functions, ops, labels = [], [], {}
    for number, text in enumerate(listing.splitlines(), 1):
        if text.startswith(".text."):
            ops, labels = [], {}
            functions.append((ops, labels))
        label, op = LABEL.match(text), OP.match(text)
        if label:
            labels[label[1]] = len(ops)
        elif op and functions:
            ops.append(Op(number, text, op))
    for ops, labels in functions:
        for i, op in enumerate(ops):
            name = op.name.split(".")[0]
            if i + 1 < len(ops) and (op.guarded or name not in ENDS + ("BRA",)):
                op.after.append(i + 1)
            if name in ("BRA", "CALL") and op.target in labels:
                op.after.append(labels[op.target])
    return [ops for ops, _ in functions]


def number_of(operand):
    found = re.match(r"R(\d+)\b", operand)
    return int(found[1]) if found else None


def width_of(op):
    """How many registers the result of an op has."""
    name = op.name
    if name.startswith("HGMMA") or name.startswith("IGMMA") or name.startswith("QGMMA"):
        return 0                # the sums, which no a is
    if name.startswith("LDSM"):
        return int(name.rsplit(".", 1)[1]) if name[-1].isdigit() and name[-2] == "." else 1
    if ".128" in name:
        return 4
    wide = ".64" in name or ".WIDE" in name or name.startswith("DADD") or name.startswith("DFMA")
    return 2 if wide or name == "CS2R" else 1


def written(op):
    """The registers that an op writes. Predicates may come before them."""
    name, operands = op.name.split(".")[0], list(op.operands)
    if "SETP" in name:
        return range(0)
    while operands and re.match(r"!?U?P[\dT]", operands[0]):
        operands.pop(0)
    first = number_of(operands[0]) if operands else None
    stores = name in ("RED", "BRA", "BAR", "STL", "STG", "STS")
    return range(0) if first is None or stores else range(first, first + width_of(op))


def registers_of_a(op):
    """The registers of a of a product: its second operand, where that is no descriptor."""
    if not re.match(r"[A-Z]GMMA", op.name):
        return None
    first = number_of(op.operands[1])
    return frozenset(range(first, first + A_WORDS) if first is not None else ())


def step(op, state):
    """The groups in flight behind an op: those that are committed, and the open one."""
    groups, opened = state
    registers = registers_of_a(op)
    if registers is not None:
        opened |= registers
        if "gsb0" in op.operands:
            return groups + (opened,), frozenset()
        return groups, opened
    if op.name.startswith("WARPGROUP.DEPBAR"):
        pending = int(op.operands[-1], 0)
        return groups[len(groups) - pending:] if pending < len(groups) else groups, opened
    return state


def trimmed(state):
    """Older groups as one, so that loops that wait for none have few states."""
    groups, opened = state
    most = 8
    if len(groups) <= most:
        return state
    return (frozenset().union(*groups[:-most + 1]),) + groups[-most + 1:], opened


def faults(ops):
    """The ops that may write registers in flight, in the order of the listing."""
    states = [set() for _ in ops]
    found, work = set(), [(0, ((), frozenset()))]
    while work:
        at, state = work.pop()
        if state in states[at]:
            continue
        states[at].add(state)
        op = ops[at]
        busy = state[1].union(*state[0])
        if busy.intersection(written(op)) or (busy and op.name.startswith(("CALL", "BRX"))):
            found.add(at)
        state = trimmed(step(op, state))
        work.extend((after, state) for after in op.after)
    return [ops[at] for at in sorted(found)]


def check(listing, name):
    """Prints the faults of a listing. Returns how many products have a in registers."""
    count = 0
    for ops in parse(listing):
        count += sum(bool(registers_of_a(op)) for op in ops)
        for op in faults(ops) if ops else []:
            print(f"{name}:{op.line}: writes registers of a product in flight: {op.text}")
    return count


def listing_of(tools, ptxas, nvdisasm, source, options, folder):
    """The listing of a program; "" where no product has a in registers."""
    ptx, cubin = os.path.join(folder, "a.ptx"), os.path.join(folder, "a.cubin")
    compiler = [os.path.join(tools, "tilus-llc"), "-mcpu=sm_90a", "-o", ptx, source]
    subprocess.run(compiler + options, check=True, capture_output=True)
    with open(ptx, encoding="utf-8") as file:
        if not re.search(r"wgmma\.mma_async\S* \{[^}]*\}, \{", file.read()):
            return ""
    subprocess.run([ptxas, "-arch=sm_90a", ptx, "-o", cubin], check=True)
    listed = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True)
    return listed.stdout


def main():
    if sys.argv[1] == "--sass":
        with open(sys.argv[2], encoding="utf-8") as file:
            print(check(file.read(), os.path.basename(sys.argv[2])), "products")
        return
    tools, ptxas, nvdisasm, *paths = sys.argv[1:]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in sources(paths):
            with open(source, encoding="utf-8") as file:
                text = file.read()
            for options in parameter_sets(text) if "dot_async" in text else []:
                listing = listing_of(tools, ptxas, nvdisasm, source, options, folder)
                count += check(listing, " ".join([os.path.basename(source)] + options))
    print(count, "products")


main()
