"""What the checks have in common: the executable, origins and servers on loopback, clients, measurements. Standard library only.

    with tempfile.TemporaryDirectory() as folder, lab.Server(lab.find_gifreel(None), folder) as server:
        path, body = server.upload(gifs.noise(64, 64, 10))
        print(processes.cpu(server.pid), server.metrics()["gifreel_cache_objects"])

Every wait has a deadline.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import mimetypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOKEN = "token-of-the-checks"
for extension, kind in {"avif": "image/avif", "awebp": "image/webp", "webp": "image/webp", "apng": "image/png", "webm": "video/webm"}.items():
    mimetypes.add_type(kind, "." + extension)


class Missing(SystemExit):
    """Ends a script whose program is missing; its message says how to install it."""


def find_gifreel(given=None):
    """The absolute path of the executable that the command line names, or of the newest build."""
    built = [ROOT / ".build" / configuration / "gifreel" for configuration in ("release", "debug")]
    found = [pathlib.Path(given)] if given else sorted(filter(pathlib.Path.exists, built), key=os.path.getmtime)
    if not found or not os.access(found[-1], os.X_OK):
        raise SystemExit("gifreel is not built: run scripts/run, or name an executable.")
    return str(found[-1].resolve())


def add_options(parser, options):
    """Adds --gifreel, and an option for each name: a default of the option's type with a help text, or the arguments of `add_argument`."""
    parser.add_argument("--gifreel", metavar="PATH", help="the executable; default: the newest build")
    for name, option in options.items():
        how = option
        if not isinstance(option, dict):
            default, text = option
            how = {"type": type(default), "default": default, "help": f"{text} ({default})" if default else text}
        name = "--" + name.replace("_", "-")
        parser.add_argument(name, **({} if how.get("action") or how.get("choices") else {"metavar": name[2:].upper()}), **how)


def read_options(words, operands=None, **options):
    """Reads the command line of a check, whose help begins with its own text. `operands` names the list of what is no option. The executable
    is found."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, options)
    if operands:
        parser.add_argument(operands, nargs="+", metavar="FILE")
    found = parser.parse_args()
    found.gifreel = find_gifreel(found.gifreel)
    return found


def program(name, hint):
    """The path of a program of the system or of .tools; raises `Missing` with a hint."""
    found = shutil.which(name, path=f"{ROOT}/.tools/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found:
        raise Missing(f"{name} is missing: {hint}")
    return found


def wait_for(condition, limit, what="a condition"):
    """Waits until a condition holds, and returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            raise SystemExit(f"{what} did not hold within {limit} s")
        time.sleep(0.02)
    return time.monotonic() - began


@contextlib.contextmanager
def meanwhile(act, pause=0.0):
    """Calls a function again and again in another thread during the block, with a pause in seconds after each call. Yields the list
    of its results, at least one. An error of the function ends the calls, and is raised at the end of the block."""
    found, over = [], threading.Event()

    def run():
        found.append(act())
        while not over.wait(pause):
            found.append(act())

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            yield found
        finally:
            over.set()
    running.result()


class Request(http.server.BaseHTTPRequestHandler):
    """A request to an origin. The function given to `start` answers it with `reply`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.answer(self)

    def reply(self, body, status=200, **fields):
        """Sends a response, or the range that is asked for; with `_` for the hyphen in names of fields. The body None is 404. The client may
        have disconnected meanwhile."""
        if body is None:
            status, body = 404, b"nothing"
        wanted = self.headers.get("Range", "")
        if status == 200 and wanted.startswith("bytes="):
            first, _, last = wanted[6:].partition("-")
            start, end = int(first or 0), min(int(last or len(body)), len(body) - 1)
            fields["Content_Range"] = f"bytes {start}-{end}/{len(body)}"
            status, body = 206, body[start : end + 1]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, value in {"Content_Type": "image/gif", "Content_Length": len(body), "Accept_Ranges": "bytes", **fields}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):
        """Says nothing of clients that disconnect."""


def start(answer):
    """Starts an HTTP server on a free port of loopback that calls `answer` with each `Request`."""
    server = _Listener(("127.0.0.1", 0), Request)
    server.answer = answer
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@contextlib.contextmanager
def serving(answer):
    """An HTTP server as `start` makes it, for the block. Yields its address."""
    server = start(answer)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def files_of(folder):
    """Answers requests with the files of a folder."""

    def answer(request):
        path = os.path.join(folder, request.path.partition("?")[0].lstrip("/"))
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        request.reply(pathlib.Path(path).read_bytes() if os.path.isfile(path) else None, Content_Type=kind)

    return answer


def media_page(folder):
    """Writes a page into a folder in which the functions of media.js can be called."""
    shutil.copy(ROOT / "scripts/lib/media.js", folder)
    pathlib.Path(folder, "index.html").write_text("<!doctype html><title>media</title><body><script src=media.js></script>")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Part:
    """A process that listens on a fixed port, so that it can be stopped and started again at the same address. Its class has `command`.
    As a context manager it runs during the block."""

    # Variables of its environment, and where its standard output goes: by default to its log.
    environment, output = {}, None

    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder, free_port()
        self.process = None

    def start(self):
        """Returns the part when it listens."""
        with open(f"{self.folder}/{self.name}.log", "ab") as log:
            environment = {**os.environ, **self.environment}
            self.process = subprocess.Popen(self.command(), env=environment, stdout=self.output or log, stderr=log)
        self.wait_until(self.listens, 60)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def url(self, target=""):
        return f"http://127.0.0.1:{self.port}{target}"

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def wait_until(self, condition, limit):
        end = time.monotonic() + limit
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.name} does not start:\n{self.log()[-2000:]}")
            time.sleep(0.002)

    def log(self):
        return pathlib.Path(self.folder, f"{self.name}.log").read_text(errors="replace")

    def stop(self, signal_number=signal.SIGTERM, limit=60):
        """Ends the process and returns its exit code; kills it after the limit."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else None
        self.process.send_signal(signal_number)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Server(Part):
    """A `gifreel serve` on 127.0.0.1 that may fetch from there. Its settings are named as in config/gifreel.yaml, with `__` for the dot."""

    def __init__(self, gifreel, folder, name="gifreel", output=subprocess.DEVNULL, **settings):
        super().__init__(name, str(folder))
        self.gifreel, self.output = gifreel, output
        self.settings = {
            "server.port": self.port, "cache.dir": f"{folder}/cache", "cache.min_free_bytes": "0B",
            "sources.allow_private": "127.0.0.1", "sources.ports": "1-65535", "admin.token": TOKEN, "log.level": "warning",
            # All clients of a check have one address.
            "server.max_connections_per_client": 1_000_000,
            **{name.replace("__", "."): value for name, value in settings.items()},
        }

    def command(self):
        return [self.gifreel, "serve", *(part for name, value in self.settings.items() for part in ("--set", f"{name}={value}"))]

    def start(self):
        began = time.monotonic()
        super().start()
        self.wait_until(lambda: self.ask("/readyz").status == 200, 60)
        # Seconds from the exec to the first answer of /readyz.
        self.start_time = time.monotonic() - began
        return self

    @property
    def pid(self):
        return self.process.pid

    def ask(self, target, method="GET", headers=None, body=None, timeout=60):
        with contextlib.closing(Client(self.port, timeout)) as client:
            return client.ask(target, method, headers, body)

    def admin(self, method, target, body=None):
        answer = self.ask(target, method, {"Authorization": f"Bearer {TOKEN}"}, body)
        return answer.status, json.loads(answer.body)

    def upload(self, gif):
        """Converts a GIF. Returns the path of its MP4 and its bytes."""
        answer = self.ask("/mp4", "POST", body=gif, timeout=120)
        if answer.status != 200:
            raise SystemExit(f"An upload was answered with {answer.status}: {answer.body[:200]}")
        return answer.headers["content-location"], answer.body

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


Answer = collections.namedtuple("Answer", "status headers body")


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


class Visitor:
    """Requests one target again and again on one connection, and measures each answer."""

    def __init__(self, server, target):
        self.client = Client(server.port)
        self.target, self.times, self.wrong = target, [], 0

    def ask(self, target=None):
        began = time.monotonic()
        answer = self.client.ask(target or self.target)
        self.times.append(time.monotonic() - began)
        self.wrong += answer.status != 200

    def during(self, work):
        """Requests while `work` runs, with two milliseconds between them. Returns the seconds that it took and its result."""
        self.times, self.wrong = [], 0
        with meanwhile(self.ask, 0.002):
            began = time.monotonic()
            result = work()
            return time.monotonic() - began, result

    @property
    def p99(self):
        """Milliseconds."""
        return percentile(self.times, 0.99) * 1000

    @property
    def told(self):
        return f"p99 {self.p99:.1f} ms, longest {max(self.times) * 1000:.0f} ms"


@contextlib.contextmanager
def started(gifreel, **settings):
    """A `Server` with a temporary folder of its own, for the block."""
    with tempfile.TemporaryDirectory(prefix="gifreel-") as folder, Server(gifreel, folder, **settings) as server:
        yield server


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


# How many reports held, and how many did not.
reports = collections.Counter()


def report(holds, text):
    """Prints a figure or a fact, and whether its bound holds or it is as expected, which it returns."""
    reports[bool(holds)] += 1
    print(("ok    " if holds else "FAILED") + " " + text, flush=True)
    return holds


def expect(name, holds, detail=""):
    """Reports a fact, and what was found if it is not as expected."""
    return report(holds, name if holds or detail == "" else f"{name}: {detail}")


def end():
    """Ends a check: prints the number of its reports, and exits with 1 if one does not hold."""
    if reports:
        print(f"{reports[True]} passed, {reports[False]} failed")
    sys.exit(1 if reports[False] else 0)
