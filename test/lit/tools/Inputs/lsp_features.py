"""lsp_features.py DIRECTORY: every request of tilus-lsp once or more, with the answers that are right."""
import os
import sys

from lsp_client import Client, apply, covered, refuses

DIRECTORY = os.path.realpath(sys.argv[1])
URI = f"file://{DIRECTORY}/main.tilus"
TEXT = """tilus 1
import "shapes.tilus"
// 𝒟 is a character of two units.
param BN = 32, W: type = i6
layout L = spatial(8, 4).local(1, 2)

function @twice<M>(%x: f32[M, 8]) -> f32[M, 8] {
  %y = %x + %x  // 𝒟 %y
  return %y
}

program @sum<ceil_div(%n, 8)>(%p: ptr<f32> {align = 16}, %n: i32) warps(1) {
  %b = block_indices
  %g = view_global %p : f32[%n, 8]
  %zero = allocate_register 0.0 : f32[8, 8] @ L
  %acc = for %i in 0 .. BN iter(%sum = %zero) {
    %t = load_global %g[%b * 8, 0] : f32[8, 8]
    %next = %sum + %t
    yield %next
  }
  for %i in 0 .. WIDTH {
    %acc2 = @twice(%acc)
    store_global %acc2, %g[%b * 8 + %i, 0]
  }
  store_global %acc, %g[%b * 8, 0]
}
"""

with open(f"{DIRECTORY}/shapes.tilus", "w", encoding="utf-8") as f:
    f.write("tilus 1\n\nparam WIDTH = 4\n")
with open(f"{DIRECTORY}/main.tilus", "w", encoding="utf-8") as f:
    f.write(TEXT)


def check_diagnostics(c):
    assert c.wait_for(URI, 1) == [], c.diagnostics
    text = TEXT
    at = text.index("%sum + %t")
    c.change(URI, at, at + 4, "%som", 2)
    at = c.texts[URI].index("store_global %acc,")
    c.change(URI, at, at + len("store_global"), "store_globel", 3)
    found = c.wait_for(URI, 3)
    text = c.texts[URI]
    messages = [(covered(text, d["range"]), d["message"]) for d in found if d["severity"] == 1]
    assert ("%som", "%som is not defined") in messages, messages
    assert ("store_globel", "unknown op `store_globel`, did you mean `store_global`?") in messages, messages
    place = [d["range"] for d in found if "unknown op" in d["message"]][0]
    actions = c.request("textDocument/codeAction", textDocument={"uri": URI}, range=place, context={"diagnostics": []})
    fixed = apply(text, actions[0]["edit"]["changes"][URI])
    assert "store_global %acc," in fixed and actions[0]["title"] == "Change to store_global", actions
    c.open(URI, TEXT, 4)
    assert c.wait_for(URI, 4) == []


def check_hover(c):
    def hover(where):
        answer = c.at("hover", URI, where)
        return answer and answer["contents"]["value"]
    assert "f32[8, 8]" in hover("%ne^xt = ") and "inferred layout" in hover("%ne^xt = "), hover("%ne^xt = ")
    assert "spatial(8, 4).local(1, 2)" in hover("%ze^ro = ")
    assert "aligned to 16 bytes" in hover("(%^p: ptr")
    assert hover("  store_glo^bal %acc, ").startswith("**store_global**: copy registers into a global tile")
    assert "bytes a lane" in hover("  store_glo^bal %acc, "), hover("  store_glo^bal %acc, ")
    assert "f32[8, 8]" in hover("  %^y = %x")
    c.open(URI, TEXT.replace("ptr<f32> {align = 16}", "ptr<f32>"), 20)
    assert c.wait_for(URI, 20) == []
    assert "*promise the alignment or divisibility that the reason names" in hover("%^t = load_global"), hover("%^t = load_global")
    c.open(URI, TEXT, 21)
    assert c.wait_for(URI, 21) == []
    assert "0:0" in hover("^L = spatial"), hover("^L = spatial")
    assert "6 bits" in hover("= i^6")
    assert hover("// ^𝒟 is") is None


def check_broken(c):
    """Values around an error and in its loop keep their types."""
    versions = iter(range(500, 600))
    for old, new in [("%next = %sum + %t", "%next = %sum + %t\n    %u = nonsense"), ("0 .. BN iter", "0 .. iter"),
                     ("in 0 .. BN iter(%sum = %zero)", "in 0 .. BN iter(%sum = %zero, %more = )"),
                     ("for %i in 0 .. BN", "while nonsense")]:
        version = next(versions)
        c.open(URI, TEXT.replace(old, new), version)
        assert c.wait_for(URI, version), new
        for where in ["%^t = load_global", "%ne^xt = "]:
            answer = c.at("hover", URI, where)["contents"]["value"]
            assert "f32[8, 8]" in answer and "value" not in answer, (new, where, answer)
    c.open(URI, TEXT, 6)
    assert c.wait_for(URI, 6) == []


def check_navigation(c):
    def defined(where):
        return covered(TEXT, c.at("definition", URI, where)["range"])
    place = c.at("definition", URI, "yield %ne^xt")["range"]["start"]
    assert TEXT.split("\n")[place["line"]].startswith("    %next = ")
    assert defined("@tw^ice(%acc)") == "twice" and defined("@ ^L\n") == "L" and defined("0 .. B^N") == "BN"
    other = c.at("definition", URI, ".. WID^TH")
    assert other["uri"] == f"file://{DIRECTORY}/shapes.tilus" and other["range"]["start"] == {"line": 2, "character": 6}
    # Two loops have an index each.
    first = c.at("references", URI, "for %^i in 0 .. BN", context={"includeDeclaration": True})
    second = c.at("references", URI, "for %^i in 0 .. WIDTH", context={"includeDeclaration": True})
    assert len(first) == 1 and len(second) == 2, (first, second)
    # The text after a character of two units is found by these.
    assert [covered(TEXT, r["range"]) for r in c.at("references", URI, "return %^y", context={"includeDeclaration": True})] \
        == ["%y", "%y"]
    assert len(c.at("documentHighlight", URI, "yield %^next")) == 2
    symbols = c.request("textDocument/documentSymbol", textDocument={"uri": URI})
    assert [s["name"] for s in symbols] == ["BN", "W", "L", "twice", "sum"], symbols
    program = [s for s in symbols if s["name"] == "sum"][0]
    assert covered(TEXT, program["range"]).startswith("program @sum") and covered(TEXT, program["range"]).endswith("}")


def check_positions(c):
    """Characters of two units before an edit, and before an answer's place; ends of lines of two bytes."""
    c.open(URI, "tilus 1\n// 𝒟 param Q = 1\n", 600)
    begin = c.texts[URI].index("//")
    c.change(URI, begin, c.texts[URI].index("param"), "", 601)
    symbols = c.request("textDocument/documentSymbol", textDocument={"uri": URI})
    assert [s["name"] for s in symbols] == ["Q"], symbols
    for text in ["// 𝒟  \n// \n", "param A = 1  \r\nparam B = 2 \r\n"]:
        c.open(URI, text, 602)
        edits = c.request("textDocument/formatting", textDocument={"uri": URI}, options={})
        assert apply(text, edits).split() == text.split() and " \r" not in apply(text, edits), edits
        assert " \n" not in apply(text, edits), edits
    c.open(URI, TEXT, 5)


def check_rename(c):
    def rename(where, name):
        return apply(TEXT, c.at("rename", URI, where, newName=name)["changes"][URI])
    renamed = rename("iter(%^sum", "total")
    assert "iter(%total = %zero)" in renamed and "%next = %total + %t" in renamed and "@sum" in renamed
    assert rename("for %^i in 0 .. WIDTH", "j").count("%j") == 2
    assert "0 .. BLOCK iter" in rename("param B^N", "BLOCK")
    assert rename("@tw^ice<M>", "double").count("@double") == 2
    assert "return %z" in rename("return %^y", "z")
    assert c.at("prepareRename", URI, "return %^y")["placeholder"] == "y"
    assert c.at("prepareRename", URI, "ti^lus 1") is None
    for where, name, words in [("%ne^xt = ", "t", "in use"), ("%ne^xt = ", "a b", "no name"),
                               ("%ne^xt = ", "", "no name"), ("param B^N", "L", "in use"),
                               ("param B^N", "spatial", "word of the language"), ("param B^N", "i6", "word"),
                               ("param B^N", "add", "word"), ("param B^N", "7", "no name"), ("param B^N", "WIDTH", "in use"),
                               ("@tw^ice<M>", "sum", "in use"), ("ti^lus 1", "x", "no name here"),
                               (".. WID^TH", "x", "not open")]:
        refuses(lambda: c.at("rename", URI, where, newName=name), words)


def check_completion(c):
    def labels(where):
        return [i["label"] for i in c.at("completion", URI, where)]
    seen = labels("%next = %^sum + %t")
    assert {"sum", "t", "i", "g", "zero"} <= set(seen) and "acc" not in seen and "y" not in seen, seen
    assert "load_global" in labels("%t = ^load_global") and "BN" in labels("%t = ^load_global")
    assert "f6e3m2" in labels("%p: ^ptr")
    assert "twice" in labels("= @^twice")
    assert {"L", "spatial"} <= set(labels("f32[8, 8] @ ^L"))
    text = TEXT.replace("f32[8, 8]\n    %next", "f32[8, 8] {\n    %next")
    c.open(URI, text, 7)
    c.texts[URI] = text
    seen = labels("%t = load_global %g[%b * 8, 0] : f32[8, 8] {^\n")
    assert {"via", "evict"} <= set(seen) and "BN" not in seen and "stages" not in seen, seen
    text = "// RUN: tilus-opt --passes=\n" + TEXT
    c.open(URI, text, 8)
    assert "canonicalize" in labels("--passes=^\n")
    c.open(URI, TEXT, 9)


def check_formatting(c):
    messy = TEXT.replace("  %g = view_global %p : f32[%n, 8]\n", "\t%g = view_global %p : f32[%n, 8]\n\t  strides(8, 1)\n")
    clean = TEXT.replace("f32[%n, 8]\n", "f32[%n, 8]\n    strides(8, 1)\n")
    messy = messy.replace("\n  %b", "\n\t%b").replace("    yield", " yield").replace("warps(1) {", "warps(1) {  ") + "\n\n  "
    c.open(URI, messy, 10)
    edits = c.request("textDocument/formatting", textDocument={"uri": URI}, options={})
    assert apply(messy, edits) == clean, apply(messy, edits)
    c.open(URI, "  param A = 1\r\r\n", 10)
    edits = c.request("textDocument/formatting", textDocument={"uri": URI}, options={})
    assert [e["newText"] for e in edits] == ["", "\n"], edits
    c.open(URI, TEXT, 11)
    assert c.request("textDocument/formatting", textDocument={"uri": URI}, options={}) == []


def check_hints(c):
    area = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = c.request("textDocument/inlayHint", textDocument={"uri": URI}, range=area)
    by_line = {h["position"]["line"]: h["label"] for h in hints}
    lines = TEXT.split("\n")
    assert by_line[lines.index("    %next = %sum + %t")].startswith(": f32[8, 8] @ spatial(8, 4)"), by_line
    assert by_line[lines.index("    %t = load_global %g[%b * 8, 0] : f32[8, 8]")].startswith(" @ "), by_line
    assert lines.index("  %zero = allocate_register 0.0 : f32[8, 8] @ L") not in by_line


def check_facts(c):
    """A remark's fact becomes an edit, after which the remark is gone."""
    where = {"start": {"line": TEXT[:TEXT.index("    %t =")].count("\n"), "character": 4}}
    where["end"] = where["start"]
    actions = c.request("textDocument/codeAction", textDocument={"uri": URI}, range=where, context={"diagnostics": []})
    titles = [a["title"] for a in actions]
    assert "Add {divisible = 8} to %n" in titles, titles
    fixed = apply(TEXT, actions[titles.index("Add {divisible = 8} to %n")]["edit"]["changes"][URI])
    assert "%n: i32 {divisible = 8}) warps(1)" in fixed, fixed
    for given, want in [("{range = [0, 64]}", "{range = [0, 64], divisible = 8}"),
                        ("{divisible = 4, range = [0, 64]}", "{divisible = 8, range = [0, 64]}"),
                        ("{range = [0, 64], divisible = 4}", "{range = [0, 64], divisible = 8}")]:
        c.open(URI, TEXT.replace("%n: i32", f"%n: i32 {given}"), 11)
        actions = c.request("textDocument/codeAction", textDocument={"uri": URI}, range=where, context={})
        edits = [a["edit"]["changes"][URI] for a in actions if "divisible" in a["title"]]
        assert want in apply(c.texts[URI], edits[0]), (given, actions)
    c.open(URI, fixed, 12)
    assert c.wait_for(URI, 12) == []
    actions = c.request("textDocument/codeAction", textDocument={"uri": URI}, range=where, context={"diagnostics": []})
    assert not [a for a in actions if "divisible" in a["title"]], actions
    c.open(URI, TEXT, 13)


def check_configuration(c):
    c.notify("workspace/didChangeConfiguration", settings={"tilus": {"defines": {"W": "nonsense", "X": 1}}})
    c.open(URI, TEXT, 14)
    assert any("nonsense" in d["message"] for d in c.wait_for(URI, 14)), c.diagnostics
    c.notify("workspace/didChangeConfiguration", settings={"tilus": {"defines": {}}})
    c.open(URI, TEXT, 15)
    assert c.wait_for(URI, 15) == []


def check_wrong_settings():
    """Settings that are wrong are shown, and those before them stay."""
    c = Client("--mcpu=sm_80")
    c.start(target="sm_1", milliseconds=-4)
    targets = "sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100a, sm_120a"
    assert c.shown == [f"tilus: the setting `target` stays sm_80; it is one of {targets}",
                       "tilus: the setting `milliseconds` stays 2000; it is a number of 0 .. 2147483647"], c.shown
    c.notify("workspace/didChangeConfiguration", settings={"tilus": {"target": "sm_90", "milliseconds": 3000}})
    c.notify("workspace/didChangeConfiguration", settings={"tilus": {"target": 90}})
    c.open(URI, TEXT)
    c.wait_for(URI, 1)
    assert len(c.shown) == 3 and "`target` stays sm_90;" in c.shown[2], c.shown
    assert c.stop() == 0


check_wrong_settings()
client = Client()
capabilities = client.start()["capabilities"]
assert capabilities["positionEncoding"] == "utf-16"
client.open(URI, TEXT)
for check in (check_diagnostics, check_hover, check_broken, check_navigation, check_positions, check_rename,
              check_completion, check_formatting, check_hints, check_facts, check_configuration):
    check(client)
client.notify("textDocument/didClose", textDocument={"uri": URI})
refuses(lambda: client.at("hover", URI, 0), "not open")
assert client.diagnostics[URI][1] == []
assert client.stop() == 0
print("all requests are answered")
