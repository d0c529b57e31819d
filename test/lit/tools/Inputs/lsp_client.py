"""A client of tilus-lsp, over its standard input and output."""
import json
import os
import subprocess
import sys


class Failure(Exception):
    """A request that the server answered with an error."""


class Client:
    def __init__(self, *options):
        self.process = subprocess.Popen(["tilus-lsp", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.next_id = 0
        self.texts = {}
        self.diagnostics = {}       # by URI: (version, diagnostics)
        self.shown = []             # what the editor shall show

    def processor_seconds(self):
        """Returns the server's processor time so far, to a hundredth of a second."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8", errors="replace") as stat:
            used = stat.read().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def read(self):
        length = None
        while line := self.process.stdout.readline().strip():
            key, value = line.split(b":")
            assert key == b"Content-Length", line
            length = int(value)
        assert length is not None, f"the server ended: {self.process.wait()}"
        message = json.loads(self.process.stdout.read(length))
        assert message["jsonrpc"] == "2.0"
        return message

    def take(self, message):
        if message["method"] == "window/showMessage":
            self.shown.append(message["params"]["message"])
            return
        assert message["method"] == "textDocument/publishDiagnostics", message
        params = message["params"]
        self.diagnostics[params["uri"]] = params["version"], params["diagnostics"]

    def answer(self):
        """The next message that is no notification."""
        while "method" in (message := self.read()):
            self.take(message)
        return message

    def request(self, method, **params):
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": params})
        answer = self.answer()
        assert answer["id"] == self.next_id, answer
        if "error" in answer:
            raise Failure(answer["error"]["message"])
        return answer["result"]

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def start(self, **options):
        result = self.request("initialize", processId=None, rootUri=None, capabilities={},
                              initializationOptions=options)
        self.notify("initialized")
        return result

    def open(self, uri, text, version=1):
        self.texts[uri] = text
        self.notify("textDocument/didOpen", textDocument={
            "uri": uri, "languageId": "tilus", "version": version, "text": text})

    def change(self, uri, begin, end, text, version):
        """Replaces characters [begin, end) of the text."""
        old = self.texts[uri]
        self.texts[uri] = old[:begin] + text + old[end:]
        self.notify("textDocument/didChange", textDocument={"uri": uri, "version": version},
                    contentChanges=[{"range": {"start": position(old, begin), "end": position(old, end)},
                                     "text": text}])

    def at(self, method, uri, where, **params):
        """A request about a position: a number of characters, or a text whose ^ is before it."""
        text = self.texts[uri]
        if isinstance(where, str):
            mark = where.index("^")
            assert text.count(where.replace("^", "")) == 1, f"{where} stands once"
            where = text.index(where.replace("^", "")) + mark
        return self.request(f"textDocument/{method}", textDocument={"uri": uri},
                            position=position(text, where), **params)

    def wait_for(self, uri, version):
        """The diagnostics of a version."""
        while self.diagnostics.get(uri, (None,))[0] != version:
            self.take(self.read())
        return self.diagnostics[uri][1]

    def stop(self):
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait()


def refuses(call, words):
    """Checks that a call fails, with these words."""
    try:
        call()
    except Failure as e:
        assert words in str(e), e
    else:
        raise AssertionError("not refused")


def units(text):
    return len(text.encode("utf-16-le")) // 2


def position(text, offset):
    line = text.count("\n", 0, offset)
    return {"line": line, "character": units(text[text.rfind("\n", 0, offset) + 1:offset])}


def offset(text, place):
    """The inverse of position."""
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[:place["line"]])
    units_left = place["character"]
    for n, c in enumerate(lines[place["line"]] + "\n"):
        if units_left <= 0:
            return before + n
        units_left -= units(c)
    raise AssertionError("past the end of the line")


def covered(text, area):
    return text[offset(text, area["start"]):offset(text, area["end"])]


def apply(text, edits):
    """The text after edits, which do not overlap."""
    places = sorted((offset(text, e["range"]["start"]), offset(text, e["range"]["end"]), e["newText"])
                    for e in edits)
    assert all(a[1] <= b[0] for a, b in zip(places, places[1:])), "edits overlap"
    for begin, end, new in reversed(places):
        text = text[:begin] + new + text[end:]
    return text


def fail(message):
    sys.exit(message)
