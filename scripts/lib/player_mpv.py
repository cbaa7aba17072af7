"""Drives mpv without a window through its JSON protocol, one picture after the other. Standard library only.

mpv reads files with FFmpeg's demuxers (`mov`, `matroska`), as many players do. Not thread-safe. Every wait has a deadline.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

import player_cases
import png

PACKAGE = "mpv"


class Failed(Exception):
    """mpv refused a command or stood still."""


def find():
    """The path of mpv, or None."""
    return shutil.which("mpv")


def version():
    text = subprocess.run([find(), "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join(text.split()[:2])


class Player:
    """A paused mpv. A context manager: it ends with the block."""

    def __init__(self, *flags):
        self._folder = tempfile.mkdtemp(prefix="gifreel-mpv-")
        path = os.path.join(self._folder, "socket")
        self._process = subprocess.Popen(
            [find(), "--no-config", "--vo=null", "--no-audio", "--idle", "--pause", "--keep-open=yes", "--hr-seek=yes",
             # The times of the file, as they are.
             "--rebase-start-time=no", "--screenshot-format=png", "--screenshot-png-compression=0", "--really-quiet",
             f"--input-ipc-server={path}", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._number = 0
        self._buffer = b""
        self._answers = {}
        self.events = []
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._wait(lambda: os.path.exists(path) and self._socket.connect_ex(path) == 0, "the start", 20)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self, condition, what, timeout=20):
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise Failed(f"mpv: {what} did not happen")
            time.sleep(0.005)

    def pump(self, timeout=0.0):
        """Receives what has arrived. Each event is kept with the moment of its arrival."""
        self._socket.settimeout(max(timeout, 1e-4))
        try:
            data = self._socket.recv(1 << 16)
        except TimeoutError:
            return
        if not data:
            raise Failed("mpv has ended")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "request_id" in message and "event" not in message:
                self._answers[message["request_id"]] = message
            else:
                self.events.append((time.monotonic(), message))

    def command(self, *words):
        """Sends a command and waits for its answer. None stands for a property without a value."""
        self._number += 1
        self._socket.sendall(json.dumps({"command": words, "request_id": self._number}).encode() + b"\n")
        deadline = time.monotonic() + 20
        while self._number not in self._answers:
            self.pump(0.1)
            if time.monotonic() > deadline:
                raise Failed(f"mpv does not answer: {words}")
        answer = self._answers.pop(self._number)
        if answer["error"] == "property unavailable":
            return None
        if answer["error"] != "success":
            raise Failed(f"mpv: {words}: {answer['error']}")
        return answer.get("data")

    def get(self, name):
        return self.command("get_property", name)

    def until(self, event, timeout=20):
        """Waits for an event that has not been waited for."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for at, (_, message) in enumerate(self.events):
                if message["event"] == event:
                    del self.events[: at + 1]
                    return message
                if message["event"] == "end-file" and message.get("reason") == "error":
                    raise Failed(f"mpv cannot play the file: {message.get('file_error')}")
            self.pump(0.1)
        raise Failed(f"mpv: no {event}")

    def load(self, path):
        self.command("loadfile", path)
        self.until("playback-restart")

    def number(self):
        """The number of the picture that is shown."""
        path = os.path.join(self._folder, "picture.png")
        self.command("screenshot-to-file", path, "video")
        with open(path, "rb") as file:
            width, _, rows = png.read(file.read())
        channels = len(rows[0]) // width
        return player_cases.number(lambda x, y: rows[y][x * channels + channels // 2])

    def step(self):
        """Shows the next picture. Returns whether there was one."""
        before = self.get("estimated-frame-number"), self.get("time-pos")
        self.command("frame-step")
        # mpv goes on and pauses again, which is not an event of its own.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.get("eof-reached"):
                return False
            now = self.get("estimated-frame-number"), self.get("time-pos")
            if now[1] != before[1] and self.get("pause"):
                return True
        raise Failed(f"mpv: no picture after {before[1]} s")


def watch(path, case):
    """All pictures by steps, and the first one after the end when the file is repeated."""
    pictures = []
    with Player("--untimed") as player:
        player.load(path)
        duration = player.get("duration")
        while True:
            pictures.append([player.get("time-pos"), player.number()])
            if len(pictures) > len(case.delays) + 3 or not player.step():
                break
    return {"duration": duration, "pictures": pictures}


def watch_seam(path, case):
    """Plays over the end in real time and looks at the picture all the time.

    The surplus is the time that the last picture stands longer than in the file, in seconds.
    """
    with Player("--loop-file=inf") as player:
        player.load(path)
        if case.end > 6:
            player.command("seek", case.end - 1.5, "absolute+exact")
            player.until("playback-restart")
        player.command("set_property", "pause", False)
        seen = []
        deadline = time.monotonic() + min(case.end, 6) + 20
        while time.monotonic() < deadline:
            number = player.number()
            if not seen or seen[-1][1] != number:
                seen.append((time.monotonic(), number))
            numbers = [each for _, each in seen]
            last = len(case.delays) - 1
            if last in numbers and number not in (last, None):
                at = numbers.index(last)
                surplus = seen[-1][0] - seen[at][0] - case.delays[-1] / 100 - case.starts[number]
                return {
                    "reads": len(seen), "unreadable": numbers.count(None), "mayCut": True,
                    "gaps": [{"to": case.starts[number], "surplus": surplus}],
                }
        raise Failed(f"mpv does not repeat the file; it shows {seen[-1][1]}")
