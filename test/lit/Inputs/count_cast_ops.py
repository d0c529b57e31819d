"""Whether PTX has the operations of its casts' plans: as many prmt, lop3, multiplications,
packed and single float operations, and conversions.

    count_cast_ops.py PROGRAM.tilus [NAME=VALUE,VALUE...]...

Compiles the program for every combination of the values. NAME is a parameter of the
program, or `cpu`.
"""
import collections
import itertools
import re
import subprocess
import sys

UNITS = [
    ("prmt", r"= prmt ", r"prmt\.b32\s"),
    ("lop3", r"= lop3 ", r"lop3\.b32 "),
    ("mad", r"= mad\.lo\.u32 ", r"mad\.lo\.u32 "),
    ("half", r"= [.\w]+\.(bf|f)16x2 ", r"^\s+(fma|add|sub|mul|min|max)[.\w]*\.(bf|f)16x2\s"),
    ("f32", r"= (add|mul|fma|min|max)[.\w]*\.f32 ", r"^\s+(fma|add|sub|mul|min|max)[.\w]*\.f32\s"),
    ("cvt", r"= cvt\.", r"cvt\.(rn\.\S*x2\.|f32\.f16\s)"),
]


def output(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def agrees(program, cpu, parameters):
    command = ["tilus-llc", program, f"-mcpu={cpu}", *(f"-D{p}" for p in parameters)]
    plans, ptx = output([*command, "--print-cast-plans=operations"]), output([*command, "-o", "-"])
    # cvt.f16x2.f32 is no packed operation, though its name ends like one.
    wanted, found = collections.Counter(), collections.Counter()
    for name, plan, text in UNITS:
        wanted[name] = sum(bool(re.search(plan, l)) for l in plans if name == "cvt" or "= cvt" not in l)
        found[name] = sum(len(re.findall(text, l)) for l in ptx)
    agreed = wanted == found and any(wanted.values())
    if not agreed:
        print(cpu, *parameters, "plan", dict(wanted), "PTX", dict(found))
    return agreed


def main(program, *axes):
    values = {name: given.split(",") for name, given in (axis.split("=") for axis in axes)}
    cpus = values.pop("cpu")
    parameters = itertools.product(*([f"{n}={v}" for v in vs] for n, vs in values.items()))
    cases = [agrees(program, cpu, case) for case in parameters for cpu in cpus]
    print(sum(cases), "of", len(cases), "cases agree")
    return not cases or not all(cases)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
