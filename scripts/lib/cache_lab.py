"""The parts of scripts/check-cache: a server process, an origin, generated GIFs and clients. Standard library only."""
import hashlib
import http.client
import http.server
import json
import os
import signal
import socketserver
import struct
import subprocess
import tempfile
import threading
import time

TOKEN = "check-cache"


class Server:
    """A `gifreel serve` on a free port of 127.0.0.1 that may fetch from there."""

    def __init__(self, gifreel, folder, **settings):
        self.folder = folder
        port_file = os.path.join(folder, "port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        self.log_path = os.path.join(folder, "log")
        values = {
            "server.port": 0, "server.port_file": port_file, "cache.dir": os.path.join(folder, "cache"),
            "cache.min_free_bytes": "0B", "sources.allow_private": "127.0.0.1", "sources.ports": "1-65535", "admin.token": TOKEN,
            # All clients of a check have one address.
            "server.max_connections_per_client": 1_000_000,
        }
        values.update({name.replace("__", "."): value for name, value in settings.items()})
        arguments = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        began = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([gifreel, "serve", *arguments], stdout=subprocess.DEVNULL, stderr=log)
        while True:
            try:
                with open(port_file) as file:
                    self.port = int(file.read())
                    break
            except (FileNotFoundError, ValueError):
                pass
            if self.process.poll() is not None or time.monotonic() - began > 60:
                raise SystemExit(f"The server does not start:\n{open(self.log_path).read()[-2000:]}")
            time.sleep(0.001)
        while self.get("/readyz").status != 200:
            time.sleep(0.001)
        # Seconds from the exec to the first answer of /readyz.
        self.start_time = time.monotonic() - began

    def get(self, target, method="GET", headers=None, body=None):
        return request(self.port, target, method, headers, body)

    def admin(self, method, target):
        answer = self.get(target, method, {"Authorization": f"Bearer {TOKEN}"})
        if answer.status != 200:
            raise RuntimeError(f"{method} {target}: {answer.status} {answer.body[:200]}")
        return json.loads(answer.body)

    def statistics(self):
        return self.admin("GET", "/cache")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def fault(self):
        """The fault of the bytes of a 200, or None. The ETag contains their SHA-256."""
        if int(self.headers.get("content-length", -1)) != len(self.body):
            return "short"
        if self.headers.get("etag") != '"' + hashlib.sha256(self.body).hexdigest()[:32] + '"':
            return "bytes that do not match the ETag"
        return None


def request(port, target, method="GET", headers=None, body=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Origin:
    """Answers each path with the `(status, body, headers)` that a function returns, and counts requests."""

    def __init__(self, answer, delay=0.0):
        self.counts, self.lock = {}, threading.Lock()
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with origin.lock:
                    origin.counts[self.path] = origin.counts.get(self.path, 0) + 1
                if delay:
                    time.sleep(delay)
                status, body, headers = answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # The server under test was killed.

        class Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 1024

        self.listener = Listener(("127.0.0.1", 0), Handler)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"


def gif(delays, width=16, height=16, pixels=None):
    """A GIF with one frame per delay. Codes have eight bits: 128 colours, and a clear code before the table would need more."""
    data = [b"GIF89a", struct.pack("<HHBBB", width, height, 0xF6, 0, 0)]
    data += [bytes((i * 2, 255 - i * 2, i * 37 % 256)) for i in range(128)]
    data.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    for number, delay in enumerate(delays):
        data.append(struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 4, delay, 0, 0))
        data.append(struct.pack("<BHHHHBB", 0x2C, 0, 0, width, height, 0, 7))
        frame = pixels(number) if pixels else bytes([(number * 40 + 3) % 128]) * (width * height)
        codes = b"".join(b"\x80" + frame[i:i + 126] for i in range(0, len(frame), 126)) + b"\x81"
        data += [bytes([len(codes[i:i + 255])]) + codes[i:i + 255] for i in range(0, len(codes), 255)]
        data.append(b"\0")
    return b"".join(data) + b";"


def noise(width, height):
    """Frames of noise, which no encoder compresses well."""
    table = bytes(i & 0x7F for i in range(256))
    return lambda _: os.urandom(width * height).translate(table)




def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def temporary():
    return tempfile.TemporaryDirectory(prefix="gifreel-check-")



def report(good, what):
    print(("ok    " if good else "BROKEN") + " " + what, flush=True)
    return good
