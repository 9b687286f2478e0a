"""A real browser for tests: headless Chromium, driven through a pipe.

No port is opened, and nothing has to be installed for Python. Where there is no
Chromium, ``find_browser`` returns None and tests that need one are skipped.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_SECONDS = 60

# All text of a page, that of figures included: they live in shadow trees.
_DEEP_TEXT = """
(() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) found.push(node.textContent);
    if (node.nodeName === "STYLE" || node.nodeName === "SCRIPT") return;
    if (node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  return found.join("\\n");
})()
"""

# For each figure, how many points of its canvases are not empty, and how many colours they have.
_INKED = """
(() => {
  const canvases = (node) => {
    const found = node.nodeName === "CANVAS" ? [node] : [];
    const inner = [...node.childNodes, ...(node.shadowRoot ? node.shadowRoot.childNodes : [])];
    return found.concat(...inner.map(canvases));
  };
  return Object.fromEntries([...document.querySelectorAll(".plot")].map((plot) => {
    let points = 0;
    const colours = new Set();
    for (const canvas of canvases(plot)) {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 0) points += 1;
        if (data[i + 3] === 255) colours.add(data[i] * 65536 + data[i + 1] * 256 + data[i + 2]);
      }
    }
    return [plot.id, [points, colours.size]];
  }));
})()
"""
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def find_browser():
    """Return the path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One browser process; pages are opened in it one after the other."""

    def __init__(self, path):
        self._profile = tempfile.mkdtemp(prefix="browser-")
        into_child, self._write = os.pipe()
        self._read, out_of_child = os.pipe()
        # The browser reads from 3 and writes to 4: take numbers that cannot be these.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (into_child, out_of_child)]
        os.close(into_child), os.close(out_of_child)
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile}",
        ]
        wiring = (
            f"import os, sys; os.dup2({ends[0]}, 3); os.dup2({ends[1]}, 4); "
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", wiring, path, *options],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for fd in ends:
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self.events = []

    def call(self, method, session=None, **params):
        """Send one command and return its answer; events that come first are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, path, *, width=1280, height=900, dark=False):
        """Return a page that shows a file or an address, when its figures are drawn."""
        is_address = str(path).startswith("http")
        address = str(path) if is_address else Path(path).absolute().as_uri()
        return Page(self, address, width, height, dark)

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("The browser did not answer.")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("The browser has ended.")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def close(self):
        """End the browser and remove what it has left."""
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE_SECONDS)
        except (RuntimeError, TimeoutError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read), os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Page:
    """One page, and what it said and asked for."""

    def __init__(self, browser, address, width, height, dark):
        self._browser = browser
        self.address = address
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.show(dark=dark)
        self.call("Page.navigate", url=address)
        self.wait_for("document.documentElement?.dataset.ready === 'true'")

    def call(self, method, **params):
        """Send a command to this page."""
        return self._browser.call(method, self._session, **params)

    def show(self, *, dark):
        """Tell the page whether the reader likes it light or dark."""
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def evaluate(self, expression):
        """Return the value of some JavaScript; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self):
        """Return all text of the page, that of figures included."""
        return self.evaluate(_DEEP_TEXT)

    def inked(self):
        """Return for each figure how many points are drawn, and how many colours they have."""
        return self.evaluate(_INKED)

    def overflow(self):
        """Return by how many pixels the page is wider than the window."""
        return self.evaluate(_OVERFLOW)

    def wait_for(self, expression):
        """Wait until an expression of JavaScript is true."""
        self.wait_until(lambda: self.evaluate(expression), expression)

    def wait_until(self, is_so, what="what is awaited"):
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"{what}; the page said {self.complaints()}"
            time.sleep(0.02)

    def move_mouse(self, x, y):
        """Put the mouse somewhere."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self):
        """Return errors and warnings of the console, and refusals."""
        found = []
        for event in self._own_events():
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str([arg.get("value") for arg in params["args"]]))
            elif method == "Log.entryAdded":
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Return all that was asked for besides the page itself."""
        asked = [
            event["params"]["request"]["url"]
            for event in self._own_events()
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url != self.address and not url.startswith("data:")]

    def screenshot(self, path):
        """Keep a picture of the whole page."""
        height = self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def print(self, path):
        """Print the page to a PDF."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        """Close the page."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def _own_events(self):
        return [e for e in self._browser.events if e.get("sessionId") == self._session]
