"""A Gifreel on a free loopback port with a cache in a temporary directory, to be filled and measured.

    with service.Service(binary) as gifreel:
        path, body = gifreel.upload(service.noise_gif(64, 64, 10))
        print(gifreel.cpu(), gifreel.resident())

Standard library only. Every wait has a deadline.
"""

import http.client
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MISSING = "Build gifreel first: scripts/run, or name one with --binary."
TICKS = os.sysconf("SC_CLK_TCK")


class Missing(Exception):
    """The error for a missing program; its message names the program and its package."""


def binary(named=None):
    """The path of the gifreel to run: the named one, or the release that scripts/run builds."""
    found = pathlib.Path(named) if named else ROOT / ".build/release/gifreel"
    if not os.access(found, os.X_OK):
        raise Missing(MISSING)
    return str(found.resolve())


def program(name, package=None):
    """The path of a program of the system."""
    found = shutil.which(name) or (shutil.which(name, path="/usr/sbin:/sbin"))
    if not found:
        raise Missing(f"{name} is not installed. On Debian: apt-get install {package or name}.")
    return found


def noise_gif(width, height, frames, seed=1):
    """A GIF of random pixels, which hardly compress: its MP4 has about half a byte per pixel and frame."""
    chance = random.Random(seed)
    out = bytearray(b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0))
    for index in range(256):
        out += bytes((index * 37 & 255, index * 91 & 255, index))
    for _ in range(frames):
        out += b"\x21\xf9\x04\x00" + struct.pack("<H", 5) + b"\0\0"
        out += b"\x2c" + struct.pack("<HHHH", 0, 0, width, height) + b"\x00\x08"
        out += _sub_blocks(_codes(chance.randbytes(width * height))) + b"\0"
    return bytes(out + b";")


def _codes(pixels):
    """LZW without a dictionary: codes of nine bits, and a clear code before they would become longer."""
    bits = count = 0
    out = bytearray()
    for start in range(0, len(pixels), 254):
        for code in (256, *pixels[start:start + 254]):
            bits |= code << count
            count += 9
            while count >= 8:
                out.append(bits & 255)
                bits >>= 8
                count -= 8
    bits |= 257 << count
    return bytes(out) + bits.to_bytes(3, "little")


def _sub_blocks(data):
    return b"".join(bytes([len(data[at:at + 255])]) + data[at:at + 255] for at in range(0, len(data), 255))


class Service:
    """A running `gifreel serve`; `settings` are names and values as in config/gifreel.yaml."""

    def __init__(self, path, settings=None, descriptors=None, log=subprocess.DEVNULL):
        self.folder = tempfile.mkdtemp(prefix="gifreel-check-")
        port_file = self.folder + "/port"
        chosen = {
            "server.port": 0, "server.port_file": port_file, "cache.dir": self.folder + "/cache",
            # All clients of a check have one address.
            "cache.min_free_bytes": "1MiB", "server.max_connections_per_client": 1_000_000, **(settings or {}),
        }
        flags = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]

        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        self.errors = open(self.folder + "/errors", "w+")
        self.process = subprocess.Popen([path, "serve", *flags], stdout=log, stderr=self.errors, preexec_fn=limit)
        self.pid = self.process.pid
        end = time.monotonic() + 60
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            if self.process.poll() is not None or time.monotonic() > end:
                self.errors.seek(0)
                raise SystemExit(f"gifreel does not start: {self.errors.read()}")
            time.sleep(0.02)
        self.port = int(open(port_file).read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def upload(self, gif):
        """Converts a GIF. Returns the path of its MP4 and its bytes."""
        connection = self.connect(120)
        connection.request("POST", "/mp4", gif)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"An upload was answered with {answer.status}: {body[:200]}")
        return answer.headers["Content-Location"], body

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu(self):
        """Seconds of processor time so far, of the process and its children."""
        return cpu_of(self.pid)

    def resident(self):
        """Megabytes of memory of the process itself."""
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0


def cpu_of(pid):
    """Seconds of processor time of a process and its descendants."""
    total = 0
    todo = [pid]
    while todo:
        one = todo.pop()
        try:
            fields = open(f"/proc/{one}/stat").read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
            for task in os.listdir(f"/proc/{one}/task"):
                todo += [int(child) for child in open(f"/proc/{one}/task/{task}/children").read().split()]
        except OSError:
            pass
    return total / TICKS
