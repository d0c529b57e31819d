"""c_blocks.py SOURCE OUT CC...: compiles the C of the documents against the public headers, warnings as errors.

A block of `c` or `c-fragment` is a piece of a program. Functions in it stand at file scope; its statements stand in a function
of their own, behind what a comment above the block declares:

    <!-- given: tilus_rt *rt; uint64_t q, k; -->

`...` stands for code that the document leaves out. A block of `c-fragment` without such a comment is quoted from a file, which
another test compares. Each initializer of a struct that begins with struct_size sets it. Prints how many blocks there are.
"""
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- given:(.*?) ?-->\n)?^```(c|c-fragment)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"^(?:\w[^\n;]*\n\{\n.*?^\}\n|\w[^\n;={]*\) \{[^\n]*\}\n)", re.MULTILINE | re.DOTALL)
SIZED = re.compile(r"typedef struct (tilus_\w+) \{\s*(?:/\*.*?\*/\s*)?size_t struct_size;", re.DOTALL)
INITIALIZER = re.compile(r"\b(tilus_\w+)(?: \w+ = |\)) ?\{([^;]*?)\}", re.DOTALL)
HEADERS = "".join(f"#include <{name}>\n" for name in (
    "tilus/tilus.h", "tilus/ir.h", "tilus/pass.h", "tilus/runtime.h", "tilus/child.h", "tilus/artefact.h", "tilus/matmul.h",
    "tilus/attention.h", "tilus/bigint.h", "stdio.h", "stdlib.h", "string.h"))
PIECE = HEADERS + """#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
{given}
{functions}
void statements(void);
void statements(void)
{{
{statements}}}
"""


def documents(source):
    yield source / "README.md"
    for folder in ("docs", "examples", "bench"):
        yield from sorted((source / folder).glob("*.md"))


def program(given, block):
    """The block as a file: as it is, or of a piece the functions, then its statements in one of their own."""
    if given is None:
        return block
    block = re.sub(r"(?<= )\.\.\.(?=[ \n])", "{}", block)
    functions = "".join(match[0] for match in FUNCTION.finditer(block))
    return PIECE.format(given=given, functions=functions, statements=FUNCTION.sub("", block))


def main():
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    sized = {name for header in (source / "include/tilus").glob("*.h") for name in SIZED.findall(header.read_text())}
    blocks, faults = 0, []
    for document in documents(source):
        text = document.read_text()
        for block in BLOCK.finditer(text):
            given, kind, code = block.groups()
            place = f"{document.relative_to(source)}:{text.count(chr(10), 0, block.start(3)) + 1}"
            faults += [f"{place}: {name} without its struct_size" for name, fields in INITIALIZER.findall(code)
                       if name in sized and not re.match(r"\s*(\.struct_size =|sizeof)", fields)]
            if kind == "c-fragment" and given is None:
                continue
            blocks += 1
            file = out / f"{document.stem}-{blocks}.c"
            file.write_text(program(given, code))
            result = subprocess.run([*sys.argv[3:], "-fsyntax-only", "-I", source / "include", file], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if result.returncode:
                faults.append(f"{place}: {result.stdout}")
    print("\n".join([*faults, f"{blocks} blocks, {len(sized)} structs with a size"]))
    sys.exit(bool(faults) or not blocks or not sized)


main()
