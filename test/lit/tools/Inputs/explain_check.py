"""explain_check.py WHAT FILE [ARGS]: compares what tilus-explain wrote with what other tools say.

  layouts DOC      each layout's thread and slot of every element, with tilus-opt --print-layout
  fragments DOC    a warp, or a warpgroup of wgmma, has the elements of each fragment, its threads equally many
  passes DOC       the text behind each pass is the one before it, changed as `diff` says; the last
                   one is the text of tilus-opt
  remarks DOC R    remarks are those of --remarks-format=json, in R, each once
  hazards DOC      pairs and hazards are as many as the statistics of check-hazards say, and as its remarks
  casts DOC        bits of cast plans: of the source, of shifts and byte permutations, of the result
  cures DOC        each kind of missed remark has a cure, others have none
  ptxas DOC LOG    registers and spills are those of ptxas -v
  profile PAGE LOG what lines moved on the page is what tilus-run --profile printed in LOG
  bench PAGE LOG   medians and spreads on the page are those that tilus-run --bench printed in LOG
  page PAGE        well-formed HTML with the sections, one script and nothing from elsewhere
  hostile PAGE     so, though each text of HOSTILE is in the program; and they can be read
"""
import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from math import prod

VOID = {"meta", "br", "link", "img", "input", "hr"}
ELEMENTS = set("html head meta title style body header h1 h2 h3 p span nav a main section table tbody tr th td code "
               "details summary pre div b button svg rect text path script".split())
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>",
           "' onmouseover='alert(1)", "<!--", "-->", "]]>", "&lt;b&gt;", "&#60;i&#62;", "javascript:alert(1)",
           "</style><style>*{display:none}", "</pre></td></table><h1>x</h1>", "</textarea>", "{{7*7}}", "${alert(1)}",
           "\\u003cscript\\u003e", "</title>", "<script", "</SCRIPT >", "@DATA@", "@BODY@", "%s%n", "\u2028\u2029"]


def place(layout, index):
    """The thread and slot of an element, as docs/explain.md tells to find them."""
    rest, digits = list(index), [0] * len(layout["modes"])
    for i, mode in reversed(list(enumerate(layout["modes"]))):
        rest[mode["dim"]], digits[i] = divmod(rest[mode["dim"]], mode["extent"])

    def number(digit_list):
        value = 0
        for d in digit_list:
            value = value * d["extent"] + (0 if d["mode"] is None else digits[d["mode"]])
        return value

    return number(layout["spatial"]), number(layout["local"])


def drawn(layout):
    """The first thread and the slot of each element of a tile of rank 2, as --print-layout draws them."""
    text = subprocess.run(["tilus-opt", "--print-layout=" + layout["text"]], check=True, capture_output=True,
                          text=True).stdout
    rows = [line.split()[1:] for line in text.splitlines()[3:]]
    return {(r, c): (int(re.split("[,.:]", cell)[0]), int(cell.rsplit(":", 1)[1]))
            for r, row in enumerate(rows) for c, cell in enumerate(row)}


def check_layouts(doc):
    count = 0
    for layout in (x for x in doc["layouts"] if len(x["shape"]) == 2 and prod(x["shape"]) <= 4096):
        cells = drawn(layout)
        for index in itertools.product(*map(range, layout["shape"])):
            assert cells[index] == place(layout, index), (layout["text"], index)
        count += 1
    print(count, "layouts agree")


def patched(lines, diff):
    """The lines after a difference of `diff -u`."""
    result, at = [], 0
    for line in diff.splitlines():
        hunk = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if hunk:
            start = int(hunk[1]) - (hunk[2] != "0")
            result += lines[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert lines[at] == line[1:], (lines[at], line)
            result += lines[at:at + 1] if line[0] == " " else []
            at += 1
    return result + lines[at:]


def check_passes(doc):
    lines = doc["input"].splitlines()
    for step in doc["passes"]:
        assert (step["text"] is not None) == step["changed"] and step["seconds"] >= 0
        if step["changed"]:
            lines = patched(lines, step["diff"])
            assert lines == step["text"].splitlines(), step["pass"]
    names = ",".join(step["pass"] for step in doc["passes"])
    defines = [f"-D{d['name']}={d['value']}" for d in doc["defines"]]
    end = subprocess.run(["tilus-opt", "--mcpu=" + doc["target"], "--passes=" + names, *defines, doc["file"]],
                         check=True, capture_output=True, text=True).stdout
    assert lines == end.splitlines()
    print(len(doc["passes"]), "passes agree")


def check_remarks(doc, path):
    def key(remark):
        """A text for it; numbers that are not whole have three decimals in R."""
        args = {name: f"{x:.3f}" if isinstance(x, float) else x for name, x in remark["args"].items()}
        return json.dumps({**remark, "args": args}, sort_keys=True)

    with open(path, encoding="utf-8") as file:
        told = {key(json.loads(line)) for line in file}
    ours = {key(remark) for remark in doc["remarks"] if remark["pass"] != "check-hazards"}
    assert ours == told, (sorted(ours - told)[:1], sorted(told - ours)[:1])
    assert len(told) > 3
    print("remarks agree")


def check_hazards(doc):
    defines = [f"-D{d['name']}={d['value']}" for d in doc["defines"]]
    told = subprocess.run(["tilus-opt", "--mcpu=" + doc["target"], "--stats",
                           "--passes=infer-layouts,canonicalize,check-hazards", *defines, doc["file"]], check=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    counts = {name: int(count) for count, name in re.findall(r"(\d+) +check-hazards[.](\w+)", told)}
    found = [h for p in doc["hazards"] for h in p["found"]]
    assert sum(p["pairs"] for p in doc["hazards"]) == counts.get("pairs", 0), counts
    assert len(found) == counts.get("unproved", 0), counts
    remarks = {r["args"]["Hazard"] for r in doc["remarks"] if r["name"] == "HazardUnproved"}
    assert {h["text"] for h in found} == remarks, remarks
    for program in doc["hazards"]:
        for pair in program["proofs"] + program["orders"]:
            assert all(program["nodes"][pair[end]] for end in pair.keys() & {"first", "second", "access", "by"})
    print(counts.get("pairs", 0), "pairs,", len(found), "not proved")


def word_bits(word):
    """The bits of a word from the lowest one: a constant's text, or what it depends on."""
    bits = []
    for field in reversed(word["fields"]):
        for i in range(field["width"]):
            if field["kind"] == "constant":
                bits.append(field["value"][-1 - i])
            else:
                low = field["low"]
                bits.append((field["kind"], field["element"], None if low is None else low + i))
    assert len(bits) == 32, word
    return bits


def moved(text, words):
    """The bits that a shift or a byte permutation makes of known ones; None for other operations."""
    name, *inputs = re.fullmatch(r"%\d+ = (\S+) (.*)", text).groups()
    inputs = inputs[0].split(", ")
    known = [words.get(i) for i in inputs[:2 if name in ("prmt", "shf.r") else 1]]
    if name not in ("prmt", "shf.r", "shl", "shr") or None in known:
        return None
    amount = int(inputs[-1], 0)
    if name == "shl":
        return ["0"] * amount + known[0][:32 - amount]
    if name == "shr":
        return known[0][amount:] + ["0"] * amount
    both = known[0] + known[1]
    if name == "shf.r":
        return both[amount:amount + 32]
    nibbles = [amount >> 4 * i & 15 for i in range(4)]
    return None if max(nibbles) > 7 else [bit for n in nibbles for bit in both[8 * n:8 * n + 8]]


def check_cast(cast):
    widths = {"f16": 16, "bf16": 16, "f32": 32, "i8": 8, "u4": 4, "i6": 6}
    words, count = {}, 0
    for word in cast["words"]:
        bits, text = word_bits(word), word["text"]
        source = re.fullmatch(r"input (\d+)", text)
        if source and not cast["packed"]:
            for i, bit in enumerate(bits):
                element, low = divmod(32 * int(source[1]) + i, widths[cast["from"]])
                assert bit == ("code", element, low) or element >= cast["elements"], (text, i, bit)
        expected = None if source else moved(text, words)
        assert expected in (None, bits), (text, expected, bits)
        count += expected is not None
        words["%in" + source[1] if source else f"%{word['number']}"] = bits
        words[word["number"]] = bits
    width = widths[cast["to"]]
    for i, number in enumerate(cast["out"]):
        for b, bit in enumerate(words[number]):
            assert isinstance(bit, str) or bit[1] == (32 * i + b) // width, (i, b, bit)
    return count


def check_casts(doc):
    plans = [cast for cast in doc["casts"] if cast["family"]]
    print(len(plans), "plans,", sum(map(check_cast, plans)), "moves agree")


def check_cures(doc):
    for name, kind in doc["kinds"].items():
        assert (kind["cure"] is not None) == (kind["kind"] == "missed"), name
    print(sum(kind["cure"] is not None for kind in doc["kinds"].values()), "cures")


def check_ptxas(doc, path):
    with open(path, encoding="utf-8") as file:
        log = file.read()
    for program in doc["programs"]:
        at = log.index(f"Function properties for {program['name']}\n")
        spills = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log[at:])
        used = re.search(r"Used (\d+) registers", log[at:])
        ours = program["ptxas"]
        assert [ours["stack"], ours["spill_stores"], ours["spill_loads"]] == [int(x) for x in spills.groups()]
        assert ours["registers"] == int(used[1]) > 0
    print("figures agree")


MOVED = ("read of global memory", "written to global memory", "read of shared memory", "written to shared memory")


def profiled(log):
    """Amounts that each line moved, by its number: ops and four counts of bytes, from the columns of --profile."""
    lines = {}
    for row in log.splitlines():
        at = re.match(r"profile: +(\d+) +(\d+) (.{14}) (.{14}) (.{14}) (.{14})  ", row)
        if at and any(at.group(i).strip() for i in range(3, 7)):
            lines[int(at[1])] = [int(at[2])] + [int(at.group(i).strip() or 0) for i in range(3, 7)]
    return lines


def check_profile(path, log):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    shown = {}
    for line, ops, words in re.findall(r'<tr id="f0-(\d+)"[^\n]*?in a run: (\d+) ops([^<]*)<', page):
        moved = {text: int(count) for count, text in re.findall(r", (\d+) bytes ([a-z ]+)", words)}
        shown[int(line)] = [int(ops)] + [moved.get(words, 0) for words in MOVED]
    with open(log, encoding="utf-8") as file:
        told = profiled(file.read())
    assert shown == told and len(told) > 5, (shown, told)
    print(len(told), "lines agree")


def check_bench(path, log):
    with open(log, encoding="utf-8") as file:
        log = file.read()
    medians = re.search(r"median +([\d.]+) us +([\d.]+) us", log).groups()
    spreads = re.search(r"90th +([\d.]+) [.][.] ([\d.]+) us +([\d.]+) [.][.] ([\d.]+) us", log).groups()
    text = "".join(read_page(path)[0].text)
    for way, words in enumerate(("a launch in a graph", "a launch alone")):
        assert f"{medians[way]} us ({spreads[2 * way]} to {spreads[2 * way + 1]}) {words}" in text, way
    print("times agree")


class Page(HTMLParser):
    """Reads a page: every element is known and closed, none loads anything."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.text, self.scripts, self.rows = [], set(), [], [], 0
        self.classes = ""           # of the root

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("src", "action", "srcdoc"), (tag, name)
            assert name != "href" or value.startswith("#"), value
        attrs = dict(attrs)
        self.ids |= {attrs["id"]} if "id" in attrs else set()
        self.rows += tag == "tr"
        self.classes = attrs.get("class", "") if tag == "html" else self.classes
        if tag == "script":
            self.scripts.append([attrs.get("type"), ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += data
        elif self.open and self.open[-1] != "style":
            self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment: " + data)


def read_page(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = Page()
    page.feed(text)
    page.close()
    return page, len(text.encode())


def check_page(path):
    page, size = read_page(path)
    assert [kind for kind, _ in page.scripts] == ["application/json", None], page.scripts
    data = json.loads(page.scripts[0][1])
    assert {"layouts", "programs", "passes", "input"} <= data.keys()
    assert {"programs", "text", "missed", "layouts", "shared", "passes", "ptx", "f0-1"} <= page.ids
    assert size < 3_000_000, size
    print("the page is well-formed")
    return page


def check_hostile(path):
    text = "".join(check_page(path).text)
    for hostile in HOSTILE:
        assert hostile in text, hostile
    print(len(HOSTILE), "texts are only text")


def write_hostile(path):
    """A program that has each of the texts in a comment and, where the language takes it, in a string."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("tilus 1\n" + "".join(f"// {text}\n" for text in HOSTILE))
        file.write("program @p<1>(%p: ptr<f32>, %n: i32 {range = [0, 9]}) warps(1) {\n")
        file.write("".join(f"  print \"{text}\", %n\n" for text in HOSTILE if '"' not in text and "\\" not in text))
        file.write("  %g = view_global %p : f32[%n]\n  %x = load_global %g[0] : f32[32] @ spatial(32)\n"
                   "  store_global %x, %g[0]\n}\n")


def fragment_of(value, index):
    fragment = value["fragment"]
    return index[0] // fragment["rows"], index[1] // fragment["columns"]


def check_fragments(doc):
    """Counts the fragments."""
    count = 0
    for value in (v for p in doc["programs"] for v in p["values"] if "fragment" in v and len(v["shape"]) == 2):
        layout = doc["layouts"][value["layout"]]
        together = 128 if value["fragment"]["instruction"].startswith("wgmma") else 32
        owners = {}
        for index in itertools.product(*map(range, layout["shape"])):
            owners.setdefault(fragment_of(value, index), []).append(place(layout, index)[0])
        for threads in owners.values():
            assert len({thread // together for thread in threads}) == 1, value
            assert len(set(threads)) == together, value
            assert all(threads.count(t) * together == len(threads) for t in set(threads)), value
            count += 1
    print(count, "fragments agree")


def main():
    what, path, *rest = sys.argv[1:]
    if what in ("page", "hostile", "write-hostile", "profile", "bench"):
        {"page": check_page, "hostile": check_hostile, "write-hostile": write_hostile, "profile": check_profile,
         "bench": check_bench}[what](path, *rest)
        return
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    {"layouts": check_layouts, "passes": check_passes, "remarks": check_remarks, "hazards": check_hazards,
     "casts": check_casts, "cures": check_cures, "fragments": check_fragments,
     "ptxas": check_ptxas}[what](doc, *rest)


if __name__ == "__main__":
    main()
