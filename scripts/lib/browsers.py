"""Drives Chromium and Firefox without a window, each by its own protocol. Python's standard library, nothing else.

    with browsers.launch("chromium") as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.wait_for("document.querySelector('video').currentTime > 0")

Chromium's DevTools protocol goes over two pipes (JSON, each message followed by a NUL byte). Firefox's Marionette goes over a socket
(the length of a message, a colon, JSON). A browser has a profile of its own in a temporary directory, and it ends with the `with`
block. Not thread-safe. Every wait has a deadline; past it, `TimeoutError` says what was waited for.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import lab

# By browser: the environment variable with its path, its Debian package, and the names of its program.
PROGRAMS = {
    "chromium": ("CHROMIUM", "chromium", ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")),
    "firefox": ("FIREFOX", "firefox-esr", ("firefox-esr", "firefox")),
}
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--mute-audio", "--hide-scrollbars", "--no-first-run",
    "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required",
    # Chromium throttles background pages by default.
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
    # Colours are not converted.
    "--force-color-profile=srgb", "--force-device-scale-factor=1",
)
PREFERENCES = {
    "marionette.port": 0, "media.autoplay.default": 0, "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False, "layers.acceleration.disabled": True,
}


class Failed(Exception):
    """The error for a refused command, an exception in a page, or a browser that has ended."""


def find(name):
    """The path of a browser, or None."""
    variable, _, programs = PROGRAMS[name]
    chosen = os.environ.get(variable)
    return shutil.which(chosen) if chosen else next((path for path in map(shutil.which, programs) if path), None)


def launch(name):
    """Starts a browser; raises `lab.Missing` if it is not installed."""
    path = find(name)
    if not path:
        variable, package, _ = PROGRAMS[name]
        raise lab.Missing(f"{name} is missing: apt-get install {package}, or set {variable} to its path")
    return {"chromium": Chromium, "firefox": Firefox}[name](path)


def attempt(name, check, *arguments):
    """Runs a function of checks. An error of the page, or a wait that ends without its condition, is a check that fails."""
    try:
        check(*arguments)
    except (TimeoutError, Failed) as error:
        lab.report(False, f"{name}: to its end: {error}")


class Browser:
    """A running browser. A context manager: it ends with the block."""

    def __init__(self, path):
        self._profile = tempfile.mkdtemp(prefix="gifreel-browser-")
        self._log = open(os.path.join(self._profile, "log"), "wb")
        self._number = 0
        self._process = None
        try:
            self._start(path)
        except BaseException:
            self.close()
            raise

    def _run(self, command, **how):
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True, **how)

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
        self._disconnect()
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _gone(self, what):
        self._log.flush()
        tail = pathlib.Path(self._log.name).read_text(errors="replace").strip().splitlines()[-5:]
        return Failed(f"the browser ended during {what}: " + " | ".join(tail))


class Page:
    """A tab. Both browsers have `goto` and `evaluate`."""

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


class Chromium(Browser):
    def _start(self, path):
        self._buffer = bytearray()
        self._answers, self._pages = {}, {}
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium's own sandbox refuses to start as root.
        flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={self._profile}"]
        # The browser expects its pipes at the descriptors 3 and 4.
        place = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._run(["bash", "-c", place, "bash", path, *flags, "about:blank"], pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.version = self.command("Browser.getVersion", timeout=60)["product"]

    def _disconnect(self):
        os.close(self._in)
        os.close(self._out)

    def open(self, url="about:blank", timeout=30):
        """Opens a page and waits until it has loaded."""
        target = self.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        page = ChromiumPage(self, target, self.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        if url != "about:blank":
            page.goto(url, timeout)
        return page

    def command(self, method, parameters=None, session=None, timeout=30):
        """Sends a command of the protocol and waits for its answer."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._out, data):]
        except BrokenPipeError:
            raise self._gone(method) from None
        self.pump(lambda: number in self._answers, timeout, method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

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
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                elif message.get("sessionId") in self._pages:
                    self._pages[message["sessionId"]]._take(message["method"], message["params"])


class ChromiumPage(Page):
    """`requests` has the URL of each request of the tab, `errors` the messages of its console and exceptions of its scripts."""

    def __init__(self, browser, target, session):
        self._browser, self._target, self._session = browser, target, session
        self.requests = []
        self.errors = []
        # Called with the name and the parameters of each event.
        self.on_event = lambda method, event: None
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
        self.on_event(method, event)

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

    def screenshot(self, clip=None):
        """What the tab shows, or a part of it, as the bytes of a PNG."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self.command("Page.captureScreenshot", {"format": "png", **part})["data"])

    def set_size(self, width, height):
        """Sets the size of the view in CSS pixels."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def close(self):
        self._browser.command("Target.closeTarget", {"targetId": self._target})
        del self._browser._pages[self._session]


def _text(details):
    thrown = details.get("exception", {})
    return thrown.get("description") or str(thrown.get("value") or details.get("text"))


class Firefox(Browser, Page):
    """A browser with one tab, so that it is also the page."""

    def _start(self, path):
        self._socket = None
        self._buffer = b""
        preferences = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
        pathlib.Path(self._profile, "user.js").write_text("".join(preferences))
        command = [path, "--headless", "--marionette", "--no-remote", "--profile", self._profile]
        self._run(command, env={**os.environ, "HOME": self._profile})
        # Firefox takes a free port and writes its number into its profile.
        place = pathlib.Path(self._profile, "MarionetteActivePort")
        deadline = time.monotonic() + 90
        while not (place.exists() and place.stat().st_size):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise self._gone("its start")
            time.sleep(0.1)
        self._socket = socket.create_connection(("127.0.0.1", int(place.read_text())), 10)
        self._receive(30)
        self.version = f"Firefox/{self.command('WebDriver:NewSession')['capabilities']['browserVersion']}"

    def _disconnect(self):
        if self._socket:
            self._socket.close()

    def command(self, name, parameters=None, timeout=60):
        """Sends a command of the protocol and waits for its answer."""
        self._number += 1
        message = json.dumps([0, self._number, name, parameters or {}]).encode()
        self._socket.sendall(str(len(message)).encode() + b":" + message)
        _, number, error, result = self._receive(timeout)
        assert number == self._number
        if error:
            raise Failed(f"{name}: {error.get('message')}")
        return result

    def _receive(self, timeout):
        self._socket.settimeout(timeout)
        while True:
            length, colon, rest = self._buffer.partition(b":")
            if colon and len(rest) >= int(length):
                self._buffer = rest[int(length):]
                return json.loads(rest[: int(length)])
            data = self._socket.recv(1 << 16)
            if not data:
                raise self._gone("a command")
            self._buffer += data

    def open(self, url="about:blank", timeout=30):
        self.goto(url, timeout)
        return self

    def goto(self, url, timeout=30):
        """Loads a URL and waits for its load event."""
        self.command("WebDriver:Navigate", {"url": url}, timeout)

    def evaluate(self, expression, timeout=30):
        """The value of a JavaScript expression, which must be JSON. Waits for a promise."""
        self.command("WebDriver:SetTimeouts", {"script": int(timeout * 1000)})
        script = (
            "const done = arguments[arguments.length - 1];"
            f" (async () => ({expression}))().then((value) => done({{ value }}), (error) => done({{ error: String(error) }}))")
        answer = self.command("WebDriver:ExecuteAsyncScript", {"script": script, "args": []}, timeout + 10)["value"]
        if "error" in answer:
            raise Failed(answer["error"])
        return answer.get("value")
