"""explain_browser.py CHROMIUM FOLDER NAME..: opens the pages NAME.html of a folder in one headless browser and compares
what they show with the documents NAME.json: elements under the pointer with tilus-opt --print-layout, bytes and
banks, the slider; a walk by keys; narrow and dark; on paper; and without scripts; at last hostile.html. The console stays empty. A
picture of each page is left in the folder."""
import json
import math
import os
import re
import sys

from devtools import start_browser
from explain_check import HOSTILE, drawn, patched, place, read_page

POINTED = 12                    # elements of a drawing
LOADED = 1.0                    # seconds of the page's main thread, as the machine may be busy


def pick(doc, kind):
    """The program and value to draw: of registers the first one of two dimensions that is drawn whole, of shared
    tensors the first that is row-major; None where there is none."""
    for p, program in enumerate(doc["programs"]):
        for v, value in enumerate(program["values"]):
            if value["kind"] == kind and "strides" not in value and \
                    (kind == "shared" or (len(value["shape"]) == 2 and 64 <= math.prod(value["shape"]) <= 16384)):
                return p, v
    return None


def button(program, value):
    return f"document.querySelector('button[data-program=\"{program}\"][data-value=\"{value}\"]')"


CELLS = "[...document.querySelectorAll('.grid td')]"
STATUS = "document.getElementById('place').textContent"
FOCUS = "document.activeElement"


def memory_words(program, value, index):
    """Texts on an element's place in global and shared memory, as docs/explain.md defines tiles."""
    words = []
    for tile in value.get("tiles", []):
        at = list(tile["first"])
        if None in at or None in tile["strides"]:
            continue
        for d, i in zip(tile["dims"], index, strict=True):
            at[d] += i
        element = sum(i * stride for i, stride in zip(at, tile["strides"], strict=True))
        text = f"line {tile['line']} {tile['mode']} %{tile['memory']}: "
        if tile["kind"] == "shared":
            shared = next(v for v in program["values"] if v["kind"] == "shared" and v["name"] == tile["memory"])
            tensor = next(t for t in program["shared"]["tensors"] if t["name"] == tile["memory"])
            swizzle = shared.get("swizzle", {"bits": 0, "base": 0, "shift": 0})
            element ^= element >> swizzle["shift"] & ((1 << swizzle["bits"]) - 1) << swizzle["base"]
            byte = tensor["offset"] + element * tile["bits"] // 8
            words.append(text + f"byte {byte} of shared memory, bank {byte // 4 % 32}, in the first iteration")
        else:
            bit = element * tile["bits"]
            words.append(f"; byte {bit // 8}" + (f", bit {bit % 8}" if bit % 8 else "") +
                         " in the first block and iteration")
    return words


def register_words(first, bits):
    """The registers of 32 bits that have those, of at most 32."""
    last = first + bits - 1
    if first // 32 == last // 32:
        return f"register {first // 32}, bits {first % 32} to {last % 32}"
    return f"bit {first % 32} of register {first // 32} to bit {last % 32} of register {last // 32}"


def point_at_elements(b, doc, program, value):
    """Elements under the pointer, and by focus and keys, beside --print-layout."""
    layout = doc["layouts"][value["layout"]]
    places = sorted(drawn(layout).items())
    if "fragment" in value:
        starts = range(0, layout["shape"][1], value["fragment"]["columns"])
        assert b.value("[...document.querySelectorAll('.grid tr:first-child td')].map((td, i) => "
                       "td.classList.contains('fragment-left') ? i : -1).filter(i => i >= 0)") == list(starts)
    assert b.value(CELLS + ".map(td => td.textContent)") == [f"{thread}:{slot}" for _, (thread, slot) in places]
    for at in range(0, len(places), len(places) // POINTED | 1):
        index, (thread, slot) = places[at]
        assert place(layout, index) == (thread, slot)
        b.point(f"{CELLS}[{at}]")
        text = b.wait(STATUS, f"[{index[0]}, {index[1]}]: thread {thread} (warp {thread // 32}, lane {thread % 32})")
        assert f"slot {slot}, {register_words(slot * value['bits'], value['bits'])}" in text, text
        for words in memory_words(program, value, index):
            assert words in text, (words, text)
        marked = b.value("document.querySelectorAll('.grid td.same-thread').length")
        assert marked == sum(other == thread for _, (other, _) in places), (marked, text)
    b.point(CELLS + "[0]", click=True)
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft"):
        b.press(key)
    walked = [min(extent - 1, 1) for extent in layout["shape"]]
    assert b.value(FOCUS + ".dataset.index") == ",".join(map(str, walked))
    thread, slot = place(layout, walked)
    assert f": thread {thread} (" in b.value(STATUS) and f"slot {slot}, " in b.value(STATUS)


def draw_register(b, doc):
    """The first value, the first that a load or store moves, and the first factor or sum of an mma."""
    at = pick(doc, "register")
    moved = [(p, v) for p, program in enumerate(doc["programs"]) for v, value in enumerate(program["values"])
             if "tiles" in value and len(value["shape"]) == 2 and 64 <= math.prod(value["shape"]) <= 16384]
    parted = [(p, v) for p, program in enumerate(doc["programs"]) for v, value in enumerate(program["values"])
              if "fragment" in value and len(value["shape"]) == 2 and math.prod(value["shape"]) <= 16384]
    for p, v in [at] + moved[:1] + parted[:1]:
        b.point(button(p, v), click=True)
        point_at_elements(b, doc, doc["programs"][p], doc["programs"][p]["values"][v])


def draw_view(b, doc):
    """An element of a view names the element that has its bits, in the same thread and at the same bit."""
    for p, program in enumerate(doc["programs"]):
        for v, value in enumerate(program["values"]):
            if "view_of" not in value or len(value["shape"]) != 2:
                continue
            b.point(button(p, v), click=True)
            b.point(CELLS + "[33]", click=True)
            index = list(map(int, b.value(FOCUS + ".dataset.index").split(",")))
            thread, slot = place(doc["layouts"][value["layout"]], index)
            source = program["values"][value["view_of"]]
            bit, name, at = re.search(r"; bit (\d+) of %(\w+)\[([^\]]*)\]", b.value(STATUS)).groups()
            at = list(map(int, at.split(", ")))
            held = place(doc["layouts"][source["layout"]], at)
            assert (thread, slot * value["bits"]) == (held[0], held[1] * source["bits"] + int(bit)), (index, at)
            for words in memory_words(program, source, at):
                assert words in b.value(STATUS), words
            return 1
    return 0


def draw_shared(b, doc):
    at = pick(doc, "shared")
    if not at:
        return
    program = doc["programs"][at[0]]
    value = program["values"][at[1]]
    b.point(button(*at), click=True)
    tensor = next(t for t in program["shared"]["tensors"] if t["name"] == value["name"])
    swizzle = value.get("swizzle", {"bits": 0, "base": 0, "shift": 0})
    mask = ((1 << swizzle["bits"]) - 1) << swizzle["base"]
    for element, text in enumerate(b.value(CELLS + ".slice(0, 64).map(td => td.textContent)")):
        element ^= element >> swizzle["shift"] & mask
        byte = tensor["offset"] + element * value["bits"] // 8
        assert text == f"{byte}:{byte // 4 % 32}", text


def move_slider(b, doc):
    lines = doc["input"].splitlines()
    for step in doc["passes"]:
        lines = patched(lines, step["diff"]) if step["changed"] else lines
    b.value("document.querySelector('#slider input').focus()")
    b.press("End")
    shown = b.value("[...document.querySelectorAll('#slider pre span')].map(x => x.textContent)")
    assert shown in (lines, lines + [""])
    b.press("Home")
    assert b.value("document.querySelector('#slider p').textContent") == "the program as it was read"


def walk_by_keys(b, doc):
    """Walks over a fresh page: Tab to the sections' links and Enter, then n and p from note to note."""
    b.press("Tab")
    assert b.value(FOCUS + ".getAttribute('href')") == "#programs"
    b.press("Tab")
    b.press("Enter")
    assert b.value("location.hash") == "#text"
    noted = ["#" + x for x in b.value("[...document.querySelectorAll('tr.noted')].map(row => row.id)")]
    seen = []
    for key in "nnnpp":
        b.press(key)
        seen.append(b.value("location.hash"))
    assert seen == [noted[0], noted[1], noted[2], noted[1], noted[0]], seen
    assert len(noted) > 3 and doc["files"][0]["lines"]


def look_otherwise(b, folder, name):
    """Shows it as a telephone does, in the dark, on paper."""
    light = b.value("getComputedStyle(document.body).backgroundColor")
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert b.value("getComputedStyle(document.body).backgroundColor") != light
    b.call("Emulation.setEmulatedMedia", features=[])
    b.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    b.wait("String(document.documentElement.scrollWidth <= 360)", "true")
    b.call("Emulation.setDeviceMetricsOverride", width=1200, height=1600, deviceScaleFactor=1, mobile=False)
    b.call("Emulation.setEmulatedMedia", media="print")
    assert b.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    b.call("Emulation.setEmulatedMedia", media="")
    picture = os.path.join(folder, name + ".png")
    b.picture(picture)
    assert os.path.getsize(picture) > 10_000


def read_without_scripts(b, doc, path):
    b.call("Emulation.setScriptExecutionDisabled", value=True)
    b.open(path)
    shown = path + ".noscript.html"
    with open(shown, "w", encoding="utf-8") as file:
        file.write(b.html())
    page, _ = read_page(shown)
    text = "".join(page.text)
    for line in doc["files"][0]["lines"]:
        assert line in text, line
    for program in doc["programs"]:
        assert "@" + program["name"] in text
    assert page.rows > len(doc["files"][0]["lines"]) and "js" not in page.classes
    root = b.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    node = b.call("DOM.querySelector", nodeId=root, selector="td.interactive")["nodeId"]
    style = b.call("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]
    assert {"name": "display", "value": "none"} in style
    b.call("Emulation.setScriptExecutionDisabled", value=False)


def check(b, folder, name):
    path = os.path.join(folder, name + ".html")
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        doc = json.load(file)
    loaded = b.open(path)
    assert 0 < loaded < LOADED, (name, loaded)
    walk_by_keys(b, doc)
    draw_register(b, doc)
    draw_view(b, doc)
    draw_shared(b, doc)
    move_slider(b, doc)
    look_otherwise(b, folder, name)
    read_without_scripts(b, doc, path)
    assert not b.console, b.console
    print(name + ": the browser shows what the document says")


def check_hostile(b, folder):
    """Checks that texts of a program stay texts, and nothing of them runs."""
    b.open(os.path.join(folder, "hostile.html"))
    counts = b.value("['img', 'script', 'h1'].map(tag => document.querySelectorAll(tag).length)")
    assert counts == [0, 2, 1], counts
    text = b.value("document.body.textContent")
    assert all(hostile in text for hostile in HOSTILE)
    assert not b.console, b.console
    print("hostile: texts stay texts")


def main():
    chromium, folder, *names = sys.argv[1:]
    b = start_browser(chromium, folder)
    try:
        b.call("CSS.enable")
        b.call("Emulation.setDeviceMetricsOverride", width=1200, height=1600, deviceScaleFactor=1, mobile=False)
        for name in names:
            check(b, folder, name)
        check_hostile(b, folder)
    finally:
        b.close()


if __name__ == "__main__":
    main()
