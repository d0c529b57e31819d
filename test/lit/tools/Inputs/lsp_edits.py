"""lsp_edits.py EDITS SEED FILE...: random edits of programs. After each one that is looked at, the answers are those
of a document opened anew with the text: none is stale, and the client's idea of the text is the server's."""
import functools
import os
import random
import sys

from lsp_client import Client, Failure, position

PIECES = ["%", "%i", "%acc", "{", "}", "(", ")", "\n", " ", "@", "@matmul", "f16", "for %i in 0 .. 4 {", "when", "else",
          "param Q = 3\n", "layout L = spatial(8)\n", "iter(%x = %y)", ": f32[8, 8]", "\"", "//", "é", "\U0001d49f", "=",
          ",", "dot", "yield %a", "\r\n", "0", "{shape = [8]}", "import \"x\""]
METHODS = ["hover", "definition", "references", "documentHighlight", "completion", "prepareRename", "rename"]


def outside(text, at):
    """The place, or the one before it where it is in a line's end of two characters: no position leads there."""
    return at - (text[at - 1:at + 1] == "\r\n")


def edit(rng, text):
    """An edit: characters [begin, end) become a text."""
    begin = outside(text, rng.randrange(len(text) + 1))
    kind = rng.random()
    end = outside(text, min(len(text), begin + (rng.randrange(1, 30) if kind < 0.4 else 0)))
    if kind < 0.2:
        return begin, end, ""
    if kind < 0.5 or not text:
        return begin, end, rng.choice(PIECES)
    start = rng.randrange(len(text))
    return begin, end, text[start:start + rng.randrange(1, 60)]


def answers(c, uri, where, version):
    """All answers about a place, but for the file's names in them."""
    found = []
    for method in METHODS:
        try:
            found.append(c.at(method, uri, where, newName="fresh"))
        except Failure as e:
            found.append(str(e))
    whole = {"start": {"line": 0, "character": 0}, "end": position(c.texts[uri], len(c.texts[uri]))}
    for method in ["documentSymbol", "formatting", "inlayHint", "codeAction"]:
        found.append(c.request(f"textDocument/{method}", textDocument={"uri": uri}, range=whole))
    found.append(c.wait_for(uri, version))
    path = uri.removeprefix("file://")
    names = [(uri, "URI"), (path, "PATH"), (os.path.basename(path), "NAME")]
    return [functools.reduce(lambda text, name: text.replace(*name), names, repr(a)) for a in found]


def lap(c, rng, path, edits):
    edited, anew = f"file://{path}.edited", f"file://{path}.opened"
    with open(path, encoding="utf-8") as f:
        original = f.read()
    c.open(edited, original)
    for n in range(2, edits + 2):
        if rng.random() < 0.01 or len(c.texts[edited]) > 3 * len(original):
            c.open(edited, original, n)
        else:
            c.change(edited, *edit(rng, c.texts[edited]), n)
        if rng.random() < 0.05:
            where = rng.randrange(len(c.texts[edited]) + 1)
            c.open(anew, c.texts[edited], n)
            first, second = answers(c, edited, where, n), answers(c, anew, where, n)
            for a, b in zip(first, second):
                assert a == b, f"{path}, edit {n}, at {where} of\n{c.texts[edited]}\n{a}\n{b}"


client = Client()
client.start()
source = random.Random(int(sys.argv[2]))
paths = sys.argv[3:]
for file in paths:
    lap(client, source, file, int(sys.argv[1]) // len(paths))
assert client.stop() == 0
print("no answer is stale")
