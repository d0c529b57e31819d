"""lsp_speed.py MILLISECONDS: the server's processor time for hovers in a program of 700 lines: on many places, and
right after edits, when all is computed anew; the limit is for one of these."""
import sys

from lsp_client import Client

URI = "file:///nowhere/long.tilus"
BODY = """    %a{0} = load_global %g[%b * 8, {0} * 8] : f32[8, 8] @ L
    %b{0} = %a{0} * 2 + {0}
    store_global %b{0}, %h[%b * 8, {0} * 8]
"""
TEXT = """tilus 1
layout L = spatial(8, 4).local(1, 2)
program @long<ceil_div(%n, 8)>(%p: ptr<f32> {align = 16}, %q: ptr<f32> {align = 16}, %n: i32) warps(1) {
  %b = block_indices
  %g = view_global %p : f32[%n, 2000]
  %h = view_global %q : f32[%n, 2000]
""" + "".join(BODY.format(n) for n in range(231)) + "}\n"
assert TEXT.count("\n") == 700

client = Client()
client.start()
client.open(URI, TEXT)
assert not [d for d in client.wait_for(URI, 1) if d["severity"] == 1]


def hover(where):
    answer = client.at("hover", URI, where)
    assert "f32[8, 8]" in answer["contents"]["value"], answer


def milliseconds(calls):
    """The mean of calls."""
    start = client.processor_seconds()
    for call in calls:
        call()
    return 1e3 * (client.processor_seconds() - start) / len(calls)


def edit_and_hover(version):
    at = client.texts[URI].index("* 2 +")
    client.change(URI, at, at, " ", version)
    hover("%b^200 = ")
    client.wait_for(URI, version)


settled = milliseconds([lambda n=n: hover(f"%b^{n} = ") for n in range(0, 231, 5)])
edited = milliseconds([lambda n=n: edit_and_hover(n) for n in range(2, 12)])
assert client.stop() == 0
print(f"hover {settled:.2f} ms; an edit and a hover {edited:.1f} ms")
if edited > float(sys.argv[1]):
    sys.exit("too slow")
