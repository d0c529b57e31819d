"""Whether PTX has the operations of its casts' plans: as many prmt, lop3, packed
and single float operations, and conversions.

    count_cast_ops.py PLANS PTX     (tilus-llc --print-cast-plans=operations, tilus-llc)
"""
import collections
import re
import sys

UNITS = [
    ("prmt", r"= prmt ", r"prmt\.b32\s"),
    ("lop3", r"= lop3 ", r"lop3\.b32 "),
    ("mad", r"= mad\.lo\.u32 ", r"mad\.lo\.u32 "),
    ("half", r"= [.\w]+\.(bf|f)16x2 ", r"^\s+(fma|add|sub|mul|min|max)[.\w]*\.(bf|f)16x2\s"),
    ("f32", r"= (add|mul|fma|min|max)[.\w]*\.f32 ", r"^\s+(fma|add|sub|mul|min|max)[.\w]*\.f32\s"),
    ("cvt", r"= cvt\.", r"cvt\.(rn\.\S*x2\.|f32\.f16\s)"),
]


def main(plans, ptx):
    # cvt.f16x2.f32 is no packed operation, though its name ends like one.
    wanted, found = collections.Counter(), collections.Counter()
    for name, plan, text in UNITS:
        wanted[name] = sum(bool(re.search(plan, l)) for l in plans if name == "cvt" or "= cvt" not in l)
        found[name] = sum(len(re.findall(text, l)) for l in ptx)
    print("plan", dict(wanted), "PTX", dict(found))
    return wanted != found or not any(wanted.values())


if __name__ == "__main__":
    sys.exit(main(open(sys.argv[1]).readlines(), open(sys.argv[2]).readlines()))
