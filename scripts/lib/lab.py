"""The parts of scripts/soak, check-cache and check-cluster: GIFs, an origin, a server, clients. Standard library only."""
import collections
import http.client
import http.server
import json
import os
import random
import socketserver
import struct
import subprocess
import threading
import time

TOKEN = "operations"


def gif(number, frames=6, side=64, width=None):
    """An animation of moving coloured bars, different for each number. LZW without compression (GIF89a, appendix F)."""
    width = width or side
    rng = random.Random(number)
    out = [b"GIF89a", struct.pack("<HHBBB", width, side, 0xA2, 0, 0)]
    out += [bytes(rng.randrange(256) for _ in range(3)) for _ in range(8)]
    out.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    for frame in range(frames):
        rows = [bytes((x // 8 + y // 16 + frame + number) % 8 for x in range(width)) for y in range(side)]
        out.append(b"\x21\xf9\x04\x00" + struct.pack("<H", 4 + rng.randrange(8)) + b"\x00\x00")
        out.append(b"\x2c" + struct.pack("<HHHHB", 0, 0, width, side, 0))
        out.append(_lzw(b"".join(rows)))
    return b"".join(out) + b"\x3b"


def _lzw(pixels):
    """Codes of four bits: a clear code (8) precedes the point at which the table would need five."""
    codes = []
    for start in range(0, len(pixels), 6):
        codes += [8, *pixels[start:start + 6]]
    codes.append(9)
    packed = bytes(codes[i] | (codes[i + 1] if i + 1 < len(codes) else 0) << 4 for i in range(0, len(codes), 2))
    blocks = [packed[i:i + 255] for i in range(0, len(packed), 255)]
    return b"\x03" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\x00"


class Origin:
    """Serves `/ok/N.gif`, `/changing/N.gif`, whose width is its version, and faults: `/missing/`, `/error/`, `/html/`, `/broken/`,
    `/cut/`, `/slow/`."""

    def __init__(self):
        lab = self
        self.gifs = {}
        self.counts = {}
        # Of `/changing/N.gif`, by its number.
        self.versions = collections.defaultdict(int)
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                lab.answer(self)

            def log_message(self, *_):
                pass

        class Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def body(self, number):
        with self.lock:
            if number not in self.gifs:
                if len(self.gifs) > 2000:
                    self.gifs.clear()
                self.gifs[number] = gif(number)
            return self.gifs[number]

    def answer(self, request):
        kind, name = request.path.strip("/").split("/")[:2]
        number = int(name.split(".")[0])
        with self.lock:
            self.counts[request.path] = self.counts.get(request.path, 0) + 1
        if kind == "missing":
            return self.send(request, 404, b"no")
        if kind == "error":
            return self.send(request, 500, b"no")
        if kind == "html":
            return self.send(request, 200, b"<!doctype html><p>no")
        if kind == "changing":
            return self.send(request, 200, gif(number, 2, 16, width=width_of(self.versions[number])))
        body = self.body(number)
        if kind == "broken":
            return self.send(request, 200, body[:60])  # before its first picture
        if kind == "cut":
            request.send_response(200)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body[: len(body) // 2])
            request.close_connection = True
            return None
        if kind == "slow":
            time.sleep(0.5)
        return self.send(request, 200, body)

    @staticmethod
    def send(request, status, body):
        try:
            request.send_response(status)
            request.send_header("Content-Length", str(len(body)))
            request.send_header("Content-Type", "image/gif")
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            pass  # The client has left.


class Server:
    """A `gifreel serve` on a free port of 127.0.0.1 that may fetch from there."""

    def __init__(self, gifreel, folder, **settings):
        self.folder = folder
        port_file = os.path.join(folder, "port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        values = {
            "server.port": 0, "server.port_file": port_file, "cache.dir": os.path.join(folder, "cache"),
            "cache.min_free_bytes": "0B", "sources.allow_private": "127.0.0.1", "sources.ports": "1-65535", "admin.token": TOKEN, "log.level": "warning",
            # All clients of a check have one address.
            "server.max_connections_per_client": 1_000_000,
        }
        values.update({name.replace("__", "."): value for name, value in settings.items()})
        arguments = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        began = time.monotonic()
        with open(os.path.join(folder, "log"), "ab") as log:
            self.process = subprocess.Popen([gifreel, "serve", *arguments], stdout=subprocess.DEVNULL, stderr=log)
        deadline = began + 60
        while not os.path.exists(port_file) or not open(port_file).read().strip():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("The server does not start:\n" + open(os.path.join(folder, "log")).read()[-2000:])
            time.sleep(0.001)
        self.port = int(open(port_file).read())
        while self.ask("/readyz").status != 200:
            time.sleep(0.001)
        # Seconds from the exec to the first answer of /readyz.
        self.start_time = time.monotonic() - began

    def ask(self, target, method="GET", headers=None, body=None, timeout=60):
        client = Client(self.port, timeout)
        try:
            return client.ask(target, method, headers, body)
        finally:
            client.close()

    def admin(self, method, target, body=None):
        answer = self.ask(target, method, {"Authorization": f"Bearer {TOKEN}"}, body)
        return answer.status, json.loads(answer.body)

    def statistics(self):
        return self.admin("GET", "/cache")[1]

    def metrics(self):
        """Samples by name and labels."""
        values = {}
        for line in self.ask("/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def stop(self):
        """The exit code after SIGTERM."""
        self.process.terminate()
        return self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


class Client:
    """One keep-alive connection."""

    def __init__(self, port, timeout=60):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, target, method="GET", headers=None, body=None):
        self.connection.request(method, target, body=body, headers=headers or {})
        answer = self.connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def close(self):
        self.connection.close()


def width_of(version):
    """The width of `/changing/N.gif`: even, so that its MP4 has it as well."""
    return 16 + 2 * version


def version_of(body):
    """The version of `/changing/N.gif` from which an MP4 was made: by the width in `tkhd`."""
    start = body.index(b"tkhd") + 4
    return (struct.unpack(">I", body[start + 76:start + 80])[0] // 65536 - 16) // 2


def is_whole_mp4(body):
    """Whether the top-level boxes are those of a finished file and fill it exactly."""
    names, position = [], 0
    while position + 8 <= len(body):
        size, name = struct.unpack(">I4s", body[position:position + 8])
        if size < 8:
            return False
        names.append(name)
        position += size
    return position == len(body) and names[:1] == [b"ftyp"] and b"moov" in names and b"mdat" in names


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def find_gifreel(given):
    """The executable named on the command line, or the release that scripts/run builds."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for path in [given] if given else [root + "/.build/release/gifreel", root + "/.build/debug/gifreel"]:
        if os.access(path, os.X_OK):
            return path
    raise SystemExit("gifreel is not built. Run scripts/run, or name an executable with --gifreel.")
