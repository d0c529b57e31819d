"""Requests that do not wait for answers, and compiles that take long: each answer is of the text that came before its
request, and the messages are of the newest one."""
import json
import time

from lsp_client import Client, position

URI = "file:///nowhere/a.tilus"
TEXT = """tilus 1
program @p<1>(%p: ptr<f32>) warps(1) {
  %g = view_global %p : f32[512, 512]
  %t = load_global %g[0, 0] : f32[8, WIDTH]
  store_global %t, %g[0, 0]
}
"""


def framed(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def change(text, version):
    return {"method": "textDocument/didChange", "params": {
        "textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]}}


c = Client()
c.start()
c.open(URI, TEXT)
COUNT = 200
place = position(TEXT, TEXT.index("%t"))
burst = b""
for n in range(1, COUNT + 1):
    # Every third text has an error after the value.
    text = TEXT.replace("WIDTH", str(8 * (n % 32 + 1)))
    text = text.replace("store_global", "store_globel") if n % 3 == 0 else text
    burst += framed(change(text, n + 1))
    burst += framed({"id": 1000 + n, "method": "textDocument/hover",
                     "params": {"textDocument": {"uri": URI}, "position": place}})
c.send_bytes(burst)
for n in range(1, COUNT + 1):
    answer = c.answer()
    assert answer["id"] == 1000 + n, answer
    assert f"f32[8, {8 * (n % 32 + 1)}]" in answer["result"]["contents"]["value"], (n, answer)
assert c.wait_for(URI, COUNT + 1) == []     # 200 is no multiple of three
assert not c.diagnostics[URI][1]

# A compile of 65536 calls, which the limit of time cuts: the text is not to blame.
LEVELS = 14
SLOW = "tilus 1\nfunction @f0(%x: f32[8, 8]) -> f32[8, 8] {\n  return %x + 1\n}\n" + "".join(
    f"function @f{k}(%x: f32[8, 8]) -> f32[8, 8] {{\n  %y = @f{k - 1}(%x)\n  %z = @f{k - 1}(%y)\n  return %z\n}}\n"
    for k in range(1, LEVELS + 1)) + f"""program @slow<1>(%p: ptr<f32>) warps(1) {{
  %g = view_global %p : f32[8, 8]
  %x = load_global %g[0, 0] : f32[8, 8]
  %a = @f{LEVELS}(%x)
  %b = @f{LEVELS}(%a)
  store_global %b, %g[0, 0]
}}
"""
c.notify("workspace/didChangeConfiguration", settings={"tilus": {"milliseconds": 30}})
c.open(URI, SLOW, 300)
found = c.wait_for(URI, 300)
assert [d["severity"] for d in found] == [3] and "30 ms, its limit" in found[0]["message"], found
assert "f32[8, 8]" in c.at("hover", URI, "  %^x = load_global")["contents"]["value"]

# Without a limit, a change ends the compile of the text that it replaces, long before its end.
c.notify("workspace/didChangeConfiguration", settings={"tilus": {"milliseconds": 0}})
c.wait_for(URI, 300)


def seconds(version, wait):
    """The server's processor time from a change to the messages of it, or of the small text that comes after a while."""
    start = c.processor_seconds()
    c.send(change(SLOW + "\n" * version, version))
    if wait:
        while c.processor_seconds() < start + wait:
            assert c.process.poll() is None
            time.sleep(0.002)
        version += 1
        c.send(change("tilus 1\n", version))
    assert c.wait_for(URI, version) == []
    return c.processor_seconds() - start


whole = min(seconds(version, 0) for version in range(301, 304))
cut = min(seconds(version, whole / 4) for version in range(310, 316, 2))
assert cut < 0.75 * whole, (whole, cut)
assert c.stop() == 0
print("answers are of the newest text")
