"""Loads for scripts/check-http: hits by wrk, and slow clients. Loopback only."""

import collections
import re
import resource
import socket
import subprocess
import threading

import gifs
import lab

Hits = collections.namedtuple("Hits", "count rate p99 failed")
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def hits(url, seconds=3, connections=64, threads=2, headers=()):
    """Requests without pause on persistent connections. The 99th percentile is in milliseconds."""
    fields = [word for header in headers for word in ("-H", header)]
    command = [
        lab.program("wrk", "apt-get install wrk"), f"-t{threads}", f"-c{connections}", f"-d{seconds}", "--timeout", "30", "--latency", *fields, url]
    text = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60).stdout
    count, took = re.search(r"(\d+) requests in ([\d.]+)s", text).groups()
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    bad = re.search(r"Non-2xx.*: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    failed = (int(bad[1]) if bad else 0) + (sum(map(int, errors.groups())) if errors else 0)
    return Hits(int(count), int(count) / float(took), float(value) * UNITS[unit], failed)


def raise_descriptor_limit(wanted):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        raise lab.Missing(f"{wanted} open files are needed; `ulimit -Hn` is {hard}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class SlowClients:
    """Holds connections of three kinds in equal parts: a head with one byte per second, silence, and an answer that is not read."""

    def __init__(self, port, path, count):
        self.stopped = threading.Event()
        self.sockets = [self.open(port) for _ in range(count)]
        self.dripping = self.sockets[::3]
        for one in self.sockets[2::3]:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        self.thread = threading.Thread(target=self.drip, daemon=True)
        self.thread.start()

    def open(self, port):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(30)
        one.connect(("127.0.0.1", port))
        return one

    def drip(self):
        text = ("GET / HTTP/1.1\r\nHost: h\r\nX-Slow: " + "x" * 1000).encode()
        for at in range(len(text)):
            for one in self.dripping:
                try:
                    one.send(text[at:at + 1])
                except OSError:
                    pass
            if self.stopped.wait(1):
                return

    def held(self):
        """The number of connections that the server has not closed."""
        count = 0
        for one in self.sockets:
            one.setblocking(False)
            try:
                count += one.recv(1, socket.MSG_PEEK) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def close(self):
        self.stopped.set()
        self.thread.join()
        for one in self.sockets:
            one.close()


class Encodes:
    """Keeps encoders busy: uploads new GIFs, a number of them at once, until it is closed."""

    def __init__(self, gifreel, at_once=2):
        self.gifreel = gifreel
        self.done = 0
        self.stopped = False
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(at_once)]
        # Generated in advance, so that their generation does not distort the measurement.
        self.gifs = [[gifs.noise(480, 360, 12, seed=1000 * number + turn) for turn in range(4)] for number in range(at_once)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        turn = 0
        while not self.stopped:
            gif = self.gifs[number][turn % 4]
            # A different byte in the palette makes a different GIF.
            fresh = gif[:13] + turn.to_bytes(3, "little") + gif[16:]
            self.gifreel.upload(fresh)
            self.done += 1
            turn += 1

    def close(self):
        self.stopped = True
        for thread in self.threads:
            thread.join()
