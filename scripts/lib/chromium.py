"""Drives headless Chromium through the DevTools protocol. Standard library only.

    with chromium.launch() as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.wait_for("document.querySelector('video').readyState >= 3")
        print(page.evaluate("document.title"))

The protocol goes over a pair of pipes (`--remote-debugging-pipe`: JSON objects that end with a NUL byte), so no port is opened and
no WebSocket is needed. The browser has a profile of its own in a temporary directory, and it ends with the `with` block.
Not thread-safe. Every wait has a deadline; past it, `TimeoutError` says what was waited for.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import lab

FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--mute-audio", "--hide-scrollbars", "--no-first-run",
    "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required",
    # Chromium throttles background pages by default.
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
    # Colours are not converted.
    "--force-color-profile=srgb", "--force-device-scale-factor=1",
)


class Failed(Exception):
    """The error for a refused command or an exception in a page."""


def find():
    """The browser's path, or None. Debian's name comes first; $CHROMIUM names another executable."""
    return lab.browser("CHROMIUM", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def launch(flags=()):
    """Starts a browser; raises `lab.Missing` if there is none."""
    path = find()
    if not path:
        raise lab.Missing("Chromium is missing: apt-get install chromium, or set CHROMIUM to its path")
    return Browser(path, flags)


class Browser:
    """A running browser. A context manager: it ends with the block."""

    def __init__(self, path, flags=()):
        self._profile = tempfile.mkdtemp(prefix="gifreel-chromium-")
        # Numbers well above 3 and 4, the descriptors at which the browser expects its pipes.
        theirs_in, self._out = self._pipe()
        self._in, theirs_out = self._pipe()
        command = [path, *FLAGS, f"--user-data-dir={self._profile}", *flags, "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium's own sandbox refuses to start as root
        relay = f"import os, sys; os.dup2({theirs_in}, 3); os.dup2({theirs_out}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        self._log = open(os.path.join(self._profile, "log"), "wb")
        self._process = subprocess.Popen(
            [sys.executable, "-c", relay, *command], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            pass_fds=(theirs_in, theirs_out), start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = bytearray()
        self._number = 0
        self._answers = {}
        self._pages = {}
        try:
            self.version = self.command("Browser.getVersion", timeout=60)["product"]
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _pipe():
        ends = os.pipe()
        moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        return moved

    @property
    def session(self):
        """The id of the session of all its processes."""
        return self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser and removes its profile."""
        for end in (self._out, self._in):
            os.close(end)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, url="about:blank", timeout=30, **how):
        """Opens a page and waits until it has loaded. `how` goes to `Page.goto`."""
        target = self.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, target, session)
        if url != "about:blank":
            page.goto(url, timeout, **how)
        return page

    def command(self, method, parameters=None, session=None, timeout=30):
        """Sends a command of the protocol and waits for its answer."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0", method)
        self.pump(lambda: number in self._answers, timeout, method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def _send(self, data, what):
        try:
            while data:
                data = data[os.write(self._out, data):]
        except BrokenPipeError:
            raise self._gone(what) from None

    def pump(self, until, timeout, what):
        """Receives the browser's messages until the condition holds."""
        deadline = time.monotonic() + timeout
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"the browser: {what} took longer than {timeout} s")
            if not select.select([self._in], [], [], left)[0]:
                continue
            data = os.read(self._in, 1 << 20)
            if not data:
                raise self._gone(what)
            self._buffer += data
            *messages, self._buffer = self._buffer.split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]]._take(message["method"], message["params"])

    def _gone(self, what):
        self._log.flush()
        with open(self._log.name, "rb") as log:
            tail = log.read().decode("utf8", "replace").strip().splitlines()[-5:]
        return Failed(f"the browser ended during {what}: " + " | ".join(tail))


class Page:
    """A tab. `requests` has the URL of each request it made, `errors` the messages of its console and exceptions of its scripts."""

    def __init__(self, browser, target, session):
        self._browser = browser
        self._target = target
        self._session = session
        self.requests = []
        self.errors = []
        self._loads = 0
        browser._pages[session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(domain + ".enable")

    def _take(self, method, event):
        if method == "Page.loadEventFired":
            self._loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(_text(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(part.get("value", part.get("description"))) for part in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            # Violations of the Content-Security-Policy and failed loads are reported here.
            entry = event["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}".strip())

    def command(self, method, parameters=None, timeout=30):
        """Sends a command of the protocol to this tab."""
        return self._browser.command(method, parameters, self._session, timeout)

    def goto(self, url, timeout=30):
        """Loads a URL and waits for its load event."""
        before = self._loads
        answer = self.command("Page.navigate", {"url": url}, timeout)
        if answer.get("errorText"):
            raise Failed(f"{url}: {answer['errorText']}")
        self._browser.pump(lambda: self._loads > before, timeout, f"loading {url}")

    def evaluate(self, expression, timeout=30):
        """The value of a JavaScript expression, which must be JSON. Waits for a promise."""
        answer = self.command(
            "Runtime.evaluate",
            {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}, timeout)
        if "exceptionDetails" in answer:
            raise Failed(_text(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, condition, timeout=30):
        """Waits until a JavaScript expression is truthy, and returns its value."""
        deadline = time.monotonic() + timeout
        while True:
            value = self.evaluate(condition, timeout)
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"the page: {condition} did not hold within {timeout} s")
            time.sleep(0.05)

    def screenshot(self):
        """A screenshot of the tab, as the bytes of a PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", {"format": "png"})["data"])

    def set_size(self, width, height):
        """Sets the size of the view in CSS pixels."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def close(self):
        """Closes the tab."""
        self._browser.command("Target.closeTarget", {"targetId": self._target})
        del self._browser._pages[self._session]


def _text(details):
    thrown = details.get("exception", {})
    return thrown.get("description") or str(thrown.get("value") or details.get("text"))
