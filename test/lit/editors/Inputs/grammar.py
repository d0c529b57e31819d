"""grammar.py DIRECTORY: the VS Code files are whole: every file named is there, every group is included, and
every pattern is one that finds its own words."""
import json
import re
import sys
from pathlib import Path

directory = Path(sys.argv[1])
manifest = json.loads((directory / "package.json").read_text())
assert (directory / manifest["main"]).is_file(), manifest["main"]
package = manifest["contributes"]
settings = set(re.findall(r"settings\.(\w+)", (directory / manifest["main"]).read_text()))
assert {f"tilus.{name}" for name in settings} == set(package["configuration"]["properties"]), settings
json.loads((directory / package["languages"][0]["configuration"]).read_text())
entry = package["grammars"][0]
grammar = json.loads((directory / entry["path"]).read_text())
assert grammar["scopeName"] == entry["scopeName"]
included = [pattern["include"] for pattern in grammar["patterns"]]
assert included == [i for i in included if i[1:] in grammar["repository"]], included
assert {i[1:] for i in included} == set(grammar["repository"])


def group(word):
    """The first group whose pattern takes the whole word."""
    for include in included:
        if re.fullmatch(grammar["repository"][include[1:]]["match"], word):
            return include[1:]
    return None


for word, want in {"// a comment": "comment", "%n": "value", "@matmul": "program", "1.5e-3": "number",
                   "0x1F": "number", "and": "scalar", "for": "control", "yield": "control", "dot": "op",
                   "load_global": "op", "f6e3m2": "type", "i6": "type", "ptr": "type", "spatial": "layout",
                   "divisible": "fact", "warps": "keyword", "dots": None}.items():
    assert group(word) == want, (word, group(word), want)
