"""A headless Chromium, driven by its DevTools protocol through a pipe: real pointer, real keys."""
import base64
import json
import os
import subprocess
import sys
import tempfile
import time

KEYS = {"ArrowRight": 39, "ArrowDown": 40, "ArrowLeft": 37, "ArrowUp": 38, "Tab": 9, "Enter": 13, "End": 35,
        "Home": 36, "n": 78, "p": 80}

WAITS = 2400                    # of 0.05 s: the machine may be busy
STARTS = 3                      # what a busy machine does to a browser's start is not what tests look for


class Ended(Exception):
    """The browser ended; its last words."""


def start_browser(chromium, folder):
    for _ in range(STARTS - 1):
        try:
            return Browser(chromium, folder)
        except Ended as ended:
            print(ended, file=sys.stderr)
    return Browser(chromium, folder)


class Browser:
    """One browser with one page. `console` has what pages complained of."""

    def __init__(self, chromium, folder):
        to_us, theirs_out = os.pipe()
        theirs_in, from_us = os.pipe()

        def place_pipes():
            high = [os.dup(theirs_in), os.dup(theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        profile = tempfile.mkdtemp(prefix="profile", dir=folder)
        self.log = profile + ".log"
        log = open(self.log, "wb")
        self.process = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--user-data-dir=" + profile, "--remote-debugging-pipe"],
            preexec_fn=place_pipes, pass_fds=(3, 4), stdout=log, stderr=log)
        log.close()
        os.close(theirs_in)
        os.close(theirs_out)
        self.out = os.fdopen(from_us, "wb", buffering=0)
        self.source, self.buffer, self.last, self.session = to_us, b"", 0, None
        self.console, self.events = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.out.close()
        os.close(self.source)

    def ended(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return Ended(f"the browser ended with {self.process.wait()}: {log.read()[-2000:]}")

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.source, 1 << 16)
            if not more:
                raise self.ended()
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        method = message.get("method", "")
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(message["params"])
        self.events += [method] if method else []
        return message

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        try:
            self.out.write(json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise self.ended() from None
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def open(self, path):
        """Processor time in seconds of the page's main thread until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self.receive()
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, start):
        """The text of an expression, as soon as it starts so."""
        for _ in range(WAITS):
            text = self.value(expression)
            if text.startswith(start):
                return text
            time.sleep(0.05)
        raise AssertionError((start, text))

    def point(self, expression, click=False):
        """Moves the pointer to the middle of an element, which it scrolls into view; perhaps clicks."""
        x, y = self.value("(e => { e.scrollIntoView({block: 'center', inline: 'center'}); "
                          "const r = e.getBoundingClientRect(); "
                          f"return [r.x + r.width / 2, r.y + r.height / 2]; }})({expression})")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        text = {"text": {"Enter": "\r"}.get(key, key)} if len(key) == 1 or key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key],
                      **(text if kind == "keyDown" else {}))

    def html(self):
        """The page's elements as they are, without running a script of it."""
        root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        return self.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
