"""Drives Firefox without a window through Marionette, its own protocol. Python's standard library, nothing else.

    with firefox.launch() as browser:
        browser.goto("http://127.0.0.1:8080/")
        picture = browser.screenshot()

A message is its length, a colon and JSON. Firefox takes a free port and writes its number into its profile, which is a temporary
directory. Not thread-safe. Every wait has a deadline.
"""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import lab

PREFERENCES = {
    "marionette.port": 0, "media.autoplay.default": 0, "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False, "layers.acceleration.disabled": True,
}


class Failed(Exception):
    """The browser refused a command."""


def find():
    """The browser's path, or None. Debian's name comes first; $FIREFOX names another executable."""
    return lab.browser("FIREFOX", "firefox-esr", "firefox")


def launch():
    """Starts a browser; raises `lab.Missing` if there is none."""
    path = find()
    if not path:
        raise lab.Missing("Firefox is missing: apt-get install firefox-esr, or set FIREFOX to its path")
    return Browser(path)


class Browser:
    """A running browser with one window. A context manager: it ends with the block."""

    def __init__(self, path):
        self._profile = tempfile.mkdtemp(prefix="gifreel-firefox-")
        with open(os.path.join(self._profile, "user.js"), "w") as file:
            for name, value in PREFERENCES.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self._log = open(os.path.join(self._profile, "log"), "wb")
        self._process = subprocess.Popen(
            [path, "--headless", "--marionette", "--no-remote", "--profile", self._profile], stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log, start_new_session=True, env={**os.environ, "HOME": self._profile})
        self._socket = None
        self._buffer = b""
        self._number = 0
        try:
            self._connect(90)
            capabilities = self.command("WebDriver:NewSession", {})["capabilities"]
            self.version = f"Firefox {capabilities['browserVersion']}"
        except BaseException:
            self.close()
            raise

    def _connect(self, timeout):
        deadline = time.monotonic() + timeout
        place = os.path.join(self._profile, "MarionetteActivePort")
        while not (os.path.exists(place) and os.path.getsize(place)):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise Failed("the browser did not start")
            time.sleep(0.1)
        with open(place) as file:
            port = int(file.read())
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._receive(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser and removes its profile."""
        if self._socket:
            self._socket.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def command(self, name, parameters, timeout=60):
        """Sends a command and waits for its answer."""
        self._number += 1
        message = json.dumps([0, self._number, name, parameters]).encode()
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
                raise Failed("the browser ended")
            self._buffer += data

    def goto(self, url):
        """Loads a URL and waits for its load event."""
        self.command("WebDriver:Navigate", {"url": url})

    def evaluate(self, expression):
        """The value of a JavaScript expression, which must be JSON."""
        return self.command("WebDriver:ExecuteScript", {"script": f"return {expression}", "args": []})["value"]

    def screenshot(self):
        """What the window shows, as the bytes of a PNG."""
        return base64.b64decode(self.command("WebDriver:TakeScreenshot", {"full": False, "hash": False})["value"])
