"""lsp_names.py EVERY FILE...: each value of the programs has a definition, and a program whose names are renamed, one
of EVERY, compiles as it did."""
import os
import re
import sys

from lsp_client import Client, Failure, apply

FRESH = "fresh_name_of_a_test"


def values(text):
    """Places of values outside of comments and quotes."""
    bare = re.sub(r'//[^\n]*|"[^"\n]*"', lambda m: " " * len(m[0]), text)
    return [m.start() for m in re.finditer(r"%\w+", bare)]


def check(c, path, every):
    uri = f"file://{os.path.realpath(path)}"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    c.open(uri, text)
    before = c.wait_for(uri, 1)
    assert not [d for d in before if d["severity"] == 1], (path, before)
    seen, version = set(), 1
    names = values(text)
    for symbol in c.request("textDocument/documentSymbol", textDocument={"uri": uri}):
        place = symbol["selectionRange"]["start"]
        names.append(sum(len(line) + 1 for line in text.split("\n")[:place["line"]]) + place["character"])
    for place in names:
        found = c.at("documentHighlight", uri, place)
        assert found, f"{path}: nothing at {text[place:place + 30]!r}"
        first = min((f["range"]["start"]["line"], f["range"]["start"]["character"]) for f in found)
        if first in seen:
            continue
        seen.add(first)
        version += 1
        if version % every:
            continue
        try:
            renamed = apply(text, c.at("rename", uri, place, newName=FRESH)["changes"][uri])
        except Failure as e:
            assert "not open" in str(e) and "import" in text, e
            continue
        assert renamed.count(FRESH) == len(found)
        c.open(uri, renamed, version)
        after = c.wait_for(uri, version)
        assert len(after) == len(before), (path, text[place:place + 30], after)
        c.open(uri, text, version)
        c.texts[uri] = text
    return len(seen)


client = Client()
client.start()
count = sum(check(client, path, int(sys.argv[1])) for path in sys.argv[2:])
assert client.stop() == 0
print(f"{count} names")
