"""Headers and JSON that no client sends: each gets an error, or nothing, and the server goes on."""
from lsp_client import Client, Failure

URI = "file:///nowhere/a.tilus"


def framed(body):
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def error_of(c, data):
    c.send_bytes(data)
    return c.answer()["error"]["code"]


client = Client()
assert error_of(client, framed(b'{"jsonrpc":"2.0","id":1,"method":"textDocument/hover"}')) == -32002
client.start()
PARSE, INVALID, NO_METHOD, PARAMETERS = -32700, -32600, -32601, -32602
for code, data in [
        (PARSE, b"Content-Type: x\r\n\r\n"), (PARSE, b"Content-Length: -5\r\n\r\n"), (PARSE, b"\r\n"),
        (PARSE, b"Content-Length: 12x\r\n\r\n"), (PARSE, b"Content-Length: 99999999999999999999999\r\n\r\n"),
        (PARSE, b"A" * 5000 + b"\r\n\r\n"), (PARSE, framed(b"")), (PARSE, framed(b"{")), (PARSE, framed(b"\xff\xfe")),
        (INVALID, framed(b'{"a":"\\u0000"}')), (PARSE, framed(b'{"a":"\\ud8"}')), (PARSE, framed(b'"\\ud800')),
        (PARSE, framed(b"[" * 100000)), (PARSE, framed(b"nonsense")),
        (PARSE, framed(b'{"id":1,"method":"shutdown"} x')),
        (INVALID, framed(b"[]")), (INVALID, framed(b"7")), (INVALID, framed(b"null")), (INVALID, framed(b'{"id":1}')),
        (INVALID, framed(b'{"id":{},"method":"shutdown"}')), (INVALID, framed(b'{"id":1,"method":7}')),
        (NO_METHOD, framed(b'{"id":1,"method":"textDocument/unknown"}')),
        (PARAMETERS, framed(b'{"id":1,"method":"textDocument/hover"}')),
        (PARAMETERS, framed(b'{"id":1,"method":"textDocument/hover","params":[1]}')),
        (INVALID, framed(b'{"id":1,"method":"initialize"}'))]:
    assert error_of(client, data) == code, data[:60]
# Notifications have no answer, whatever is in them.
for params in ["null", "7", "[]", "{}", '{"textDocument":7}', '{"textDocument":{"uri":7,"text":7}}',
               '{"textDocument":{"uri":"%s"},"contentChanges":[1,{},{"range":{},"text":"x"}]}' % URI]:
    for method in ["didOpen", "didChange", "didClose", "didSave", "unknown"]:
        body = '{"method":"textDocument/%s","params":%s}' % (method, params)
        client.send_bytes(framed(body.encode()))
    client.send_bytes(framed(('{"method":"workspace/didChangeConfiguration","params":%s}' % params).encode()))
    client.send_bytes(framed(('{"method":"$/cancelRequest","params":%s}' % params).encode()))
client.open(URI, "param A = 1\n")
far = 2**31 - 1
for line, character, ok in [(0, 0, True), (far, far, True), (0, far, True), (2**62, 2**62, True), (-1, 0, False),
                            (0, -1, False), ("0", 0, False), (0, 0.5, False)]:
    place = {"line": line, "character": character}
    for method in ["hover", "definition", "references", "completion", "documentHighlight", "prepareRename", "rename"]:
        try:
            client.request(f"textDocument/{method}", textDocument={"uri": URI}, position=place, newName="B")
            assert ok, place
        except Failure as e:
            assert not ok or method == "rename", e
    for method in ["codeAction", "inlayHint"]:
        try:
            client.request(f"textDocument/{method}", textDocument={"uri": URI}, range={"start": place, "end": place})
            assert ok, place
        except Failure:
            assert not ok
# A range that ends before it begins changes nothing; text that is deep, long or not a program is read.
client.notify("textDocument/didChange", textDocument={"uri": URI, "version": 2}, contentChanges=[
    {"range": {"start": {"line": 0, "character": 5}, "end": {"line": 0, "character": 1}}, "text": "x"}])
assert client.at("definition", URI, "param ^A")["range"]["start"] == {"line": 0, "character": 6}
for n, text in enumerate(["{" * 50000, "(" * 50000, "program @p<1>() warps(1) " + "{ for %i in 0 .. 1 " * 5000, "%a = " * 20000,
                          "\U0001d49f" * 1000, "import \"a.tilus\"\n" * 100, "", "\r\n\r\n", "// x"]):
    client.open(URI, text, 10 + n)
    client.request("textDocument/documentSymbol", textDocument={"uri": URI})
    client.request("textDocument/formatting", textDocument={"uri": URI}, options={})
    client.at("completion", URI, len(text) // 2)
    client.wait_for(URI, 10 + n)
# Half a character of UTF-16, and NUL: the text is open all the same, and columns stay those of UTF-16.
for version, odd in enumerate([r"\ud800", r"\udfff", r"\uD800\ud835\udc9f", r"\udc9f\ud835", r"\\ud800",
                               r"\u0000"], 30):
    body = (r'{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"%s","version":%d,'
            r'"text":"param A = 1 // %s\nparam B = A"}}}' % (URI, version, odd))
    client.send_bytes(framed(body.encode()))
    definition = client.request("textDocument/definition", textDocument={"uri": URI},
                                position={"line": 1, "character": 10})
    assert definition["range"]["start"] == {"line": 0, "character": 6}, odd
    client.wait_for(URI, version)
assert client.stop() == 0
print("the server goes on")

# A message that is cut short, and an exit without shutdown, end it with status 1.
for data in [b"Content-Length: 10\r\n\r\nabc", b"Content-", framed(b'{"method":"exit"}')]:
    client = Client()
    client.send_bytes(data)
    client.process.stdin.close()
    assert client.process.wait() == 1, data
print("it ends with status 1")
