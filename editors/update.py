#!/usr/bin/env python3
"""update.py [--check] [TILUS-OPT]: writes the names of all ops and types, as tilus-opt lists them, into the
syntax files beside this script and the dictionary of fuzzing. With --check it changes nothing, and fails where a
file is not up to date.
"""
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
VIM = HERE / "vim/syntax/tilus.vim"
GRAMMAR = HERE / "vscode/syntaxes/tilus.tmLanguage.json"
DICTIONARY = HERE.parent / "test/fuzz/parse.dict"


def rows(tool, option):
    """The cells of each row of the table that the tool prints, but its heading."""
    table = subprocess.run([tool, option], check=True, capture_output=True, text=True).stdout
    return [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def names(tool):
    """The names by the group that shows them."""
    ops = rows(tool, "--list-ops")
    control = [op[0] for op in ops if op[4] == "control"]
    return {"op": [op[0] for op in ops if op[0] not in control], "control": control,
            "type": [row[0] for row in rows(tool, "--list-types")]}


def vim_text(groups):
    lines = []
    for group, words in groups.items():
        head = f"syn keyword tilus{group.capitalize()}"
        lines += [head] + ["  \\ " + line for line in textwrap.wrap(" ".join(words), 85)]
    block = '" names:begin\n' + "\n".join(lines) + '\n" names:end'
    return re.sub(r'" names:begin\n.*?" names:end', lambda _: block, VIM.read_text(), flags=re.DOTALL)


def grammar_text(groups):
    """Only the three lines change: the rest stays as it was written."""
    text = GRAMMAR.read_text()
    for group, words in groups.items():
        words = words + ["ptr"] if group == "type" else words
        match = json.dumps(r"\b(" + "|".join(words) + r")\b")
        text = re.sub(rf'("{group}": {{\n.*\n\s*"match": )".*"', lambda m: m[1] + match, text)
    return text


def dictionary_text(groups):
    words = [f'"{word}"' for group in groups.values() for word in group]
    block = "# names:begin\n" + "\n".join(words) + "\n# names:end"
    return re.sub(r"# names:begin\n.*?# names:end", lambda _: block, DICTIONARY.read_text(), flags=re.DOTALL)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    groups = names(arguments[0] if arguments else "tilus-opt")
    stale = []
    texts = (VIM, vim_text(groups)), (GRAMMAR, grammar_text(groups)), (DICTIONARY, dictionary_text(groups))
    for path, text in texts:
        if path.read_text() != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text)
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: run editors/update.py")


if __name__ == "__main__":
    main()
