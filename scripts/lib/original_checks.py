"""The check of scripts/check-http for `on_miss: original`: a miss is answered with the GIF as it arrives from a slow origin."""

import concurrent.futures
import http.client
import http.server
import statistics
import threading
import time

import service

RATE = 200_000
PIECE = 2_000
# Milliseconds by which the first byte may come later than from the origin itself.
LIMIT = 5
CLIENTS = 50
MOUNT = "media"


class SlowOrigin(http.server.ThreadingHTTPServer):
    """Sends one GIF under every path, at a fixed rate, and counts the requests for each target."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, gif):
        self.gif = gif
        self.counts = {}
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), SlowAnswer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def count(self, target):
        with self.lock:
            return self.counts.get(target, 0)


class SlowAnswer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        origin = self.server
        with origin.lock:
            origin.counts[self.path] = origin.counts.get(self.path, 0) + 1
        self.send_response(200)
        self.send_header("Content-Type", "image/gif")
        self.send_header("Content-Length", str(len(origin.gif)))
        self.end_headers()
        began = time.monotonic()
        for start in range(0, len(origin.gif), PIECE):
            self.wfile.write(origin.gif[start:start + PIECE])
            self.wfile.flush()
            time.sleep(max(0, began + (start + PIECE) / RATE - time.monotonic()))

    def log_message(self, *_):
        pass


def original(path, _):
    """First byte against that of the origin, and fetches for many clients at once."""
    gif = service.noise_gif(160, 120, 3)
    origin = SlowOrigin(gif)
    settings = {
        "sources.allow_private": "127.0.0.1", "sources.ports": "1-65535", f"mounts.{MOUNT}.origin": f"http://127.0.0.1:{origin.port}/",
        f"mounts.{MOUNT}.negotiate": "true", f"mounts.{MOUNT}.on_miss": "original", f"mounts.{MOUNT}.query": "forward",
    }
    try:
        with service.Service(path, settings) as gifreel:
            return _first_byte(gifreel, origin) & _one_fetch(gifreel, origin)
    finally:
        origin.shutdown()
        origin.server_close()


def _first_byte(gifreel, origin, rounds=15):
    _ask(gifreel.port, f"/{MOUNT}/warm.gif")
    later, shares = [], []
    for index in range(rounds):
        direct, _, whole, _, _ = _ask(origin.port, f"/direct{index}.gif")
        through, end, _, body, kind = _ask(gifreel.port, f"/{MOUNT}/a{index}.gif")
        if body != origin.gif or kind != "image/gif":
            print(f"a miss was answered with {len(body)} bytes of {kind}")
            return False
        later.append(1000 * (through - direct))
        shares.append((end - through) / whole)
    median, worst, share = statistics.median(later), max(later), statistics.median(shares)
    fits = median <= LIMIT and share > 0.5
    print(
        f"first byte {median:+.1f} ms against the origin (median of {rounds}, worst {worst:+.1f}); the rest takes "
        f"{share:.2f} of the origin's time{'' if fits else f'  over {LIMIT} ms, or not passed on as it arrives'}", flush=True)
    return fits


def _one_fetch(gifreel, origin):
    target = f"/{MOUNT}/many.gif"
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda _: _ask(gifreel.port, target), range(CLIENTS)))
    right = sum(body == origin.gif for _, _, _, body, _ in answers)
    end = time.monotonic() + 30
    while _ask(gifreel.port, target)[4] != "video/mp4" and time.monotonic() < end:
        time.sleep(0.05)
    kind = _ask(gifreel.port, target)[4]
    fetches = origin.count("/many.gif")
    fits = right == CLIENTS and fetches == 1 and kind == "video/mp4"
    print(f"{CLIENTS} clients at once: {right} had the whole GIF, {fetches} fetches, then {kind}{'' if fits else '  missed'}", flush=True)
    return fits


def _ask(port, target):
    """The times of the first and the last byte of a body since the request, the time between them, the body and its type."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    began = time.monotonic()
    connection.request("GET", target, headers={"Accept": "video/mp4"})
    answer = connection.getresponse()
    body = answer.read(1)
    first = time.monotonic() - began
    body += answer.read()
    last = time.monotonic() - began
    connection.close()
    return first, last, last - first, body, answer.headers["Content-Type"]
