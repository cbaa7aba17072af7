"""The checks of scripts/check-cache. Each prints its figures and returns whether the guarantees held."""
import hashlib
import http.client
import os
import random
import sqlite3
import struct
import tempfile
import threading
import time

from lab import Origin, Server, gif, percentile

# URLs whose paths begin with the same directory, for purges by prefix.
GROUP = 1000


def resident(server):
    """The bytes of the server's own memory. The worker that waits for a job and the zygote are other processes."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:"))


def processor_time(server):
    with open(f"/proc/{server.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(server, limit):
    """Waits for a second without work: the comparison of files and rows, for instance, has ended."""
    last = processor_time(server)

    def is_idle():
        nonlocal last
        time.sleep(1)
        before, last = last, processor_time(server)
        return last - before < 0.05

    wait_for(is_idle, limit)


class Visitor:
    """Requests one target again and again on one connection, and measures each answer."""

    def __init__(self, server, target):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.target, self.times, self.wrong = target, [], 0

    def ask(self, target=None):
        began = time.monotonic()
        self.connection.request("GET", target or self.target)
        answer = self.connection.getresponse()
        answer.read()
        self.times.append(time.monotonic() - began)
        self.wrong += answer.status != 200

    def during(self, work):
        """Requests while `work` runs, every two milliseconds. Returns the seconds that it took and its result."""
        self.times, self.wrong = [], 0
        ended, results = threading.Event(), []

        def run():
            began = time.monotonic()
            result = work()
            results.append((time.monotonic() - began, result))
            ended.set()

        threading.Thread(target=run).start()
        while not ended.is_set():
            self.ask()
            time.sleep(0.002)
        return results[0]

    @property
    def p99(self):
        return percentile(self.times, 0.99) * 1000


def hit_cost(server, target, count=20_000):
    """Microseconds of processor time per hit of the server."""
    visitor = Visitor(server, target)
    visitor.ask()
    began = processor_time(server)
    for _ in range(count):
        visitor.ask()
    return (processor_time(server) - began) / count * 1e6


def wait_for(condition, limit):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            raise SystemExit(f"a condition did not hold within {limit} s")
        time.sleep(0.02)
    return time.monotonic() - began


def large(options):
    origin = Origin()
    count, rng, good = options.objects, random.Random(options.seed), True

    def url(number):
        return origin.url(f"/{number // GROUP}/{number}.gif")

    def target(number):
        return f"/mp4/{url(number)}"

    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.gifreel, folder)
        server.ask(f"/mp4/{origin.url('/ok/0.gif')}")
        small_cost, small_memory = hit_cost(server, f"/mp4/{origin.url('/ok/0.gif')}"), resident(server)
        server.stop()
        began = time.monotonic()
        size = fabricate(folder, count, url)
        print(f"      {count} objects of {size} bytes written in {time.monotonic() - began:.0f} s", flush=True)

        server = Server(options.gifreel, folder)
        memory = resident(server)
        per_object = (memory - small_memory) / count
        good &= report(server.start_time < 1 and per_object < 150, f"after a stop: ready after {server.start_time * 1000:.0f} ms, "
                       f"{memory >> 20} MiB of memory, {per_object:.0f} bytes per object more than with one object")
        wait_until_idle(server, options.seconds)
        cost = hit_cost(server, target(1))
        good &= report(cost < 1.1 * small_cost + 2, f"a hit in memory takes {cost:.1f} µs of processor time, with one object {small_cost:.1f} µs")
        visitor = Visitor(server, target(1))
        for _ in range(2000):
            visitor.ask(target(rng.randrange(count)))
        good &= report(visitor.wrong == 0, f"2000 first hits on random objects: median {percentile(visitor.times, 0.5) * 1000:.2f} ms, "
                       f"p99 {visitor.p99:.2f} ms")
        listing = [Visitor(server, target(1)).during(server.statistics)[0] * 1000 for _ in range(20)]
        good &= report(percentile(listing, 0.5) < 20, f"GET /cache: median {percentile(listing, 0.5):.1f} ms")
        server.kill()

        server = Server(options.gifreel, folder)
        visitor = Visitor(server, target(1))
        visitor.ask()
        seconds, _ = visitor.during(lambda: time.sleep(10))
        good &= report(server.start_time < 1 and visitor.wrong == 0, f"after a kill -9: ready after {server.start_time * 1000:.0f} ms; "
                       f"hits while files and rows are compared: p99 {visitor.p99:.1f} ms")

        for name, prefix, expected in (
                (f"a prefix of {GROUP} objects", origin.url("/7/"), GROUP),
                ("a prefix of a tenth of all objects", origin.url("/9"), None)):
            seconds, answer = visitor.during(lambda: server.admin("DELETE", f"/cache?prefix={prefix}")[1])
            good &= report((expected is None or answer["purged"] == expected) and visitor.wrong == 0,
                           f"purge of {name}: {answer['purged']} purged after {seconds:.2f} s, hits meanwhile p99 {visitor.p99:.1f} ms, "
                           f"longest {max(visitor.times) * 1000:.0f} ms")
        left = server.statistics()["objects"]
        server.stop()

        limit = left * size // 2
        server = Server(options.gifreel, folder, cache__max_bytes=f"{limit}B")
        visitor = Visitor(server, target(1))
        seconds, _ = visitor.during(lambda: wait_for(lambda: server.statistics()["bytes"] <= limit * 0.95, options.seconds))
        evicted = left - server.statistics()["objects"]
        good &= report(visitor.wrong == 0, f"eviction of {evicted} objects: {seconds:.1f} s ({evicted / max(seconds, 0.001):.0f} per second), "
                       f"hits meanwhile p99 {visitor.p99:.1f} ms, longest {max(visitor.times) * 1000:.0f} ms")
        seconds, answer = visitor.during(lambda: server.admin("DELETE", "/cache?all=true")[1])
        good &= report(server.statistics()["objects"] == 0 or visitor.wrong == 0,
                       f"purge of everything: {answer['purged']} purged after {seconds:.2f} s")
        server.stop()
    return good


def report(good, what):
    print(("ok    " if good else "BROKEN") + " " + what, flush=True)
    return good


def framed(*fields):
    """The SHA-256 over fields, each preceded by its length."""
    return hashlib.sha256(b"".join(struct.pack(">Q", len(f)) + f for f in fields)).hexdigest()


def fabricate(folder, count, url):
    """Writes the files and the rows of a full cache without conversions. All objects have the same bytes, whose number it returns."""
    cache = os.path.join(folder, "cache")
    objects = os.path.join(cache, "objects")
    database = sqlite3.connect(os.path.join(cache, "ledger.sqlite"))
    name, extension, length, content, created, facts, space = database.execute(
        "SELECT id, extension, length, content, created, facts, space FROM objects LIMIT 1").fetchone()
    name = name.hex()
    with open(os.path.join(objects, name[:2], name[2:] + ".mp4"), "rb") as file:
        body = file.read()
    for number in range(256):
        os.makedirs(os.path.join(objects, f"{number:02x}"), exist_ok=True)
    now = int(time.time())
    (sequence,) = database.execute("SELECT sequence FROM cache_state").fetchone()
    for number in range(count):
        source = url(number).encode()
        identifier = hashlib.sha256(source).digest()
        with open(os.path.join(objects, identifier.hex()[:2], identifier.hex()[2:] + ".mp4"), "wb") as file:
            file.write(body)
        database.execute(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
            (sequence + 1, identifier, extension, length, content, created, facts, space))
        key = bytes.fromhex(framed(b"gifreel alias 1", source, b"mp4"))
        database.execute(
            "INSERT INTO aliases (sequence, key, former, object, url, fetched, space) VALUES (?, ?, 0, ?, ?, ?, ?)",
            (sequence + 2, key, sequence + 1, source.decode(), now, 2 * len(source) + 192))
        sequence += 2
    database.execute("UPDATE cache_state SET sequence = ?", (sequence,))
    database.commit()
    database.close()
    return len(body)


def start(options):
    origin = Origin()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.gifreel, folder)
        server.ask(f"/mp4/{origin.url('/ok/0.gif')}")
        server.stop()

        def url(number):
            return origin.url(f"/made/{number}.gif")

        fabricate(folder, options.objects, url)
        rng = random.Random(options.seed)
        for name in ("after a stop", "after a kill -9"):
            server = Server(options.gifreel, folder)
            began = time.monotonic()
            # Answered at once, whether or not files and rows are compared.
            first = server.ask(f"/mp4/{url(rng.randrange(options.objects))}")
            first_time = time.monotonic() - began
            while server.statistics()["objects"] < options.objects and time.monotonic() - began < options.seconds:
                time.sleep(0.05)
            known = time.monotonic() - began
            sample = [server.ask(f"/mp4/{url(rng.randrange(options.objects))}") for _ in range(200)]
            hits = sum(a.headers.get("cache-status") == "gifreel; hit" and a.status == 200 for a in sample)
            good &= report(
                server.start_time < 2 and first.status == 200 and hits == len(sample),
                f"{options.objects} objects, {name}: ready after {server.start_time * 1000:.0f} ms, first answer "
                f"({first.headers.get('cache-status')}) {first_time * 1000:.0f} ms later, all known after {known:.1f} s; then "
                f"{hits} of {len(sample)} asked for at random are hits")
            server.kill()
    return good


def refusals(options):
    origin = Origin()
    # Their conversions last longer than the check. What follows the trailer makes them different sources.
    long = gif(0, frames=60, side=480)
    for number in range(6):
        origin.gifs[number] = long + bytes([number])
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.gifreel, folder, transcode__workers=2, transcode__queue=4)
        hit = f"/mp4/{origin.url('/ok/6.gif')}"
        server.ask(hit)
        # Fills all slots; more requests are refused meanwhile.
        def hold(number):
            try:
                server.ask(f"/mp4/{origin.url(f'/long/{number}.gif')}")
            except OSError:
                pass  # The check has ended.

        for number in range(6):
            threading.Thread(target=hold, args=(number,), daemon=True).start()
        deadline = time.monotonic() + 20
        while server.statistics()["in_progress"] < 6 and time.monotonic() < deadline:
            time.sleep(0.005)
        times, hits, wrong = [], [], 0
        while server.statistics()["in_progress"] == 6 and len(times) < 1000 and time.monotonic() < deadline:
            began = time.monotonic()
            answer = server.ask(f"/mp4/{origin.url(f'/new/{len(times) + 7}.gif')}")
            times.append(time.monotonic() - began)
            # A slot may have become free meanwhile.
            wrong += answer.status not in (200, 503) or (answer.status == 503 and "retry-after" not in answer.headers)
            if answer.status == 200:
                times.pop()
                break
            began = time.monotonic()
            wrong += server.ask(hit).headers.get("cache-status") != "gifreel; hit"
            hits.append(time.monotonic() - began)
        fetched = sum(1 for path in origin.counts if path.startswith("/new"))
        if len(times) < 20:
            server.stop()
            return report(False, f"only {len(times)} refusals occurred")
        good = report(
            wrong == 0 and percentile(times, 0.99) < 0.010 and fetched <= 1,
            f"{len(times)} refusals while 2 workers are busy and 4 wait: median {percentile(times, 0.5) * 1000:.1f} ms, "
            f"p99 {percentile(times, 0.99) * 1000:.1f} ms, largest {max(times) * 1000:.1f} ms (each on a new connection); "
            f"hits beside them p99 {percentile(hits, 0.99) * 1000:.1f} ms; fetched for them: {fetched}")
        server.kill()
    return good


CHECKS = {"large": large, "refusals": refusals, "start": start}
