"""lsp_files.py DIRECTORY: names and messages that go from one file to another, open or not."""
import os
import signal
import sys

from lsp_client import Client, apply, covered, refuses

DIRECTORY = os.path.realpath(sys.argv[1])
TEXTS = {
    "shapes": "tilus 1\nparam TILE = 8\nlayout L = spatial(8, 4).local(1, TILE / 4)\n"
              "function @twice(%x: f32[8, TILE]) -> f32[8, TILE] {\n  return %x + %x\n}\n",
    "load": "tilus 1\nimport \"shapes.tilus\"\nfunction @load(%p: ptr<f32>) -> f32[8, TILE] {\n"
            "  %g = view_global %p : f32[8, TILE]\n  %t = load_global %g[0, 0] : f32[8, TILE] @ L\n"
            "  return %t * SCALE\n}\n",
    "main": "tilus 1\nparam SCALE = 2\nimport \"load.tilus\"\nprogram @main<1>(%p: ptr<f32>) warps(1) {\n"
            "  %a = @load(%p)\n  %b = @twice(%a)\n  %g = view_global %p : f32[8, TILE]\n"
            "  store_global %b, %g[0, 0]\n}\n",
    "other": "tilus 1\nparam SCALE = 3\nimport \"load.tilus\"\nprogram @other<1>(%p: ptr<f32>) warps(1) {\n"
             "  %a = @load(%p)\n  %g = view_global %p : f32[8, TILE]\n  store_global %a, %g[0, 0]\n}\n",
}
URIS = {name: f"file://{DIRECTORY}/{name}.tilus" for name in TEXTS}
for name, text in TEXTS.items():
    with open(f"{DIRECTORY}/{name}.tilus", "w", encoding="utf-8") as f:
        f.write(text)


def places(answer):
    """Names of files with the number of places in each; each place is the name."""
    found = {}
    for r in answer:
        name = os.path.basename(r["uri"]).removesuffix(".tilus")
        found[name] = found.get(name, 0) + 1
    return found


def references(name, where, declaration=True):
    return places(c.at("references", URIS[name], where, context={"includeDeclaration": declaration}))


def renamed(name, where, new):
    """The texts after a rename."""
    changes = c.at("rename", URIS[name], where, newName=new)["changes"]
    return {n: apply(c.texts[u], changes[u]) if u in changes else c.texts[u] for n, u in URIS.items() if u in c.texts}


def wait_until(is_right):
    """Reads on until the messages of main, which may come for other changes before, are right."""
    while not is_right(c.diagnostics[URIS["main"]][1]):
        c.take(c.read())


signal.alarm(300)       # where messages that are waited for do not come
c = Client()
c.start()
c.open(URIS["main"], TEXTS["main"])
assert c.wait_for(URIS["main"], 1) == []

# One file is open: the others are read from the disk; a rename would need them open.
assert references("main", "f32[8, ^TILE]") == {"main": 1, "shapes": 4, "load": 3}
assert references("main", "f32[8, ^TILE]", False) == {"main": 1, "shapes": 3, "load": 3}
assert references("main", "param SC^ALE") == {"main": 1, "load": 1}
refuses(lambda: c.at("rename", URIS["main"], "f32[8, ^TILE]", newName="T"), "not open")
refuses(lambda: c.at("rename", URIS["main"], "param SC^ALE", newName="T"), "not open")
assert "param of" not in str(c.at("hover", URIS["main"], "f32[8, ^TILE]"))
assert "parameter of shapes.tilus" in c.at("hover", URIS["main"], "f32[8, ^TILE]")["contents"]["value"]
assert {"TILE", "L"} <= {i["label"] for i in c.at("completion", URIS["main"], "f32[8, ^TILE]")}

# All of one program are open: a rename from any of them edits all, and the program compiles as before.
for name in ("load", "shapes"):
    c.open(URIS[name], TEXTS[name])
for name, where in [("main", "f32[8, ^TILE]"), ("shapes", "param T^ILE"),
                    ("load", "%g = view_global %p : f32[8, ^TILE]")]:
    after = renamed(name, where, "WIDTH")
    assert [after[n].count("WIDTH") for n in ("shapes", "load", "main")] == [4, 3, 1], after
    assert not any("TILE" in text for text in after.values())
after = renamed("main", "@twi^ce(", "double")
assert after["shapes"].count("@double") == 1 and after["main"].count("@double") == 1
for version, texts in enumerate([after, TEXTS], 2):
    for name in ("shapes", "load", "main"):
        c.open(URIS[name], texts[name], version)
    assert c.wait_for(URIS["main"], version) == []
# A file that uses a name of the one which imports it.
assert places([c.at("definition", URIS["load"], "%t * SC^ALE")]) == {"main": 1}
after = renamed("load", "%t * SC^ALE", "FACTOR")
assert [after[n].count("FACTOR") for n in ("load", "main")] == [1, 1]
for new, words in [("L", "in use"), ("load", "in use"), ("i6", "word of the language"), ("a b", "no name")]:
    if new == "load":
        refuses(lambda: c.at("rename", URIS["main"], "@twi^ce(", newName=new), words)
    else:
        refuses(lambda: c.at("rename", URIS["main"], "f32[8, ^TILE]", newName=new), words)
assert c.at("prepareRename", URIS["main"], "f32[8, ^TILE]")["placeholder"] == "TILE"

# Another program gives the name another meaning.
c.open(URIS["other"], TEXTS["other"])
assert references("shapes", "param T^ILE") == {"main": 1, "other": 1, "shapes": 4, "load": 3}
refuses(lambda: c.at("rename", URIS["main"], "param SC^ALE", newName="FACTOR"), "another definition")
assert renamed("main", "@twi^ce(", "double")["other"] == TEXTS["other"]

# Imported files are those of the editor, not those of the disk; who imports them hears of each change.
at = c.texts[URIS["shapes"]].index("return %x + %x")
c.change(URIS["shapes"], at, at + len("return"), "retorn", 5)
wait_until(lambda found: any("retorn" in d["message"] for d in found))
c.notify("textDocument/didClose", textDocument={"uri": URIS["shapes"]})
wait_until(lambda found: found == [])
assert c.stop() == 0
print("names go from file to file")
