"""Whether the operations that remarks promise for a program's one dequantize with zero points
are those in its PTX, where each thread has ELEMENTS codes, as many scales of f16, and as many
zero points.

    count_remark_ops.py PROGRAM.tilus ELEMENTS TYPE...
"""
import re
import subprocess
import sys

OPERATION = r"^\s+(prmt|lop3|mad\.lo|(fma|add|sub|mul|min|max)[.\w]*\.f16x2)\S*\s"
PROMISES = r"dequantize .* ([0-9.]+) operations an element|converted by ([0-9.]+) operations each"


def agrees(program, elements, of):
    run = subprocess.run(["tilus-llc", program, f"-DT={of}", "-mcpu=sm_80", "-Rpass=select", "-o", "-"],
                         capture_output=True, text=True, check=True)
    each = [float(a or b) for a, b in re.findall(PROMISES, run.stderr)]
    promised = elements * sum(each) + elements / 2      # the products, two elements each
    found = len(re.findall(OPERATION, run.stdout, re.M))
    print(of, "remarks", each, "promise", promised, "PTX has", found)
    return len(each) == 2 and promised == found


def main(program, elements, *types):
    return not all([agrees(program, int(elements), of) for of in types])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
