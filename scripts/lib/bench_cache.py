"""scripts/bench cache: a cache of many objects."""
import hashlib
import pathlib
import random
import signal
import sqlite3
import struct
import tempfile
import time

import lab
import processes
from origin import Origin

# URLs whose paths begin with the same directory, for purges by prefix.
GROUP = 1000


def hit_cost(server, target, count=20_000):
    """Microseconds of processor time per hit of the server."""
    visitor = lab.Visitor(server, target)
    visitor.ask()
    began = processes.cpu(server.pid)
    for _ in range(count):
        visitor.ask()
    return (processes.cpu(server.pid) - began) / count * 1e6


def resident(server):
    """The bytes of the server's own memory. The worker that waits for a job and the zygote are other processes."""
    return processes.memory(server.pid, "RssAnon")


def wait_until_idle(server, limit):
    """Waits for a second without work: the comparison of files and rows, for instance, has ended."""
    last = processes.cpu(server.pid)

    def is_idle():
        nonlocal last
        time.sleep(1)
        before, last = last, processes.cpu(server.pid)
        return last - before < 0.05

    lab.wait_for(is_idle, limit)


def cache(options):
    """A cache of many objects over HTTP: start after a stop and after a kill -9, hits, memory, purges, eviction."""
    origin = Origin()
    count, chance = options.objects, random.Random(options.seed)

    def url(number):
        return origin.url(f"/{number // GROUP}/{number}.gif")

    def target(number):
        return f"/mp4/{url(number)}"

    with tempfile.TemporaryDirectory() as folder:
        only = f"/mp4/{origin.url('/ok/0.gif')}"
        with lab.Server(options.gifreel, folder) as server:
            small_cost, small_memory = hit_cost(server, only), resident(server)
        began = time.monotonic()
        size = fabricate(folder, count, url)
        print(f"      {count} objects of {size} bytes written in {time.monotonic() - began:.0f} s", flush=True)

        server = lab.Server(options.gifreel, folder).start()
        memory = resident(server)
        per_object = (memory - small_memory) / count
        lab.report(
            server.start_time < 1 and per_object < 150, f"after a stop: ready after {server.start_time * 1000:.0f} ms, "
            f"{memory >> 20} MiB of memory, {per_object:.0f} bytes per object more than with one object")
        wait_until_idle(server, options.seconds)
        cost = hit_cost(server, target(1))
        lab.report(
            cost < 1.1 * small_cost + 2, f"a hit in memory takes {cost:.1f} µs of processor time, with one object {small_cost:.1f} µs")
        visitor = lab.Visitor(server, target(1))
        for _ in range(2000):
            visitor.ask(target(chance.randrange(count)))
        lab.report(
            visitor.wrong == 0,
            f"2000 first hits on random objects: median {lab.percentile(visitor.times, 0.5) * 1000:.2f} ms, {visitor.told}")
        listing = lab.percentile([visitor.during(server.statistics)[0] * 1000 for _ in range(20)], 0.5)
        lab.report(listing < 20, f"GET /cache: median {listing:.1f} ms")
        server.stop(signal.SIGKILL)

        server = lab.Server(options.gifreel, folder).start()
        visitor = lab.Visitor(server, target(1))
        visitor.during(lambda: time.sleep(10))
        lab.report(
            server.start_time < 1 and visitor.wrong == 0, f"after a kill -9: ready after {server.start_time * 1000:.0f} ms; "
            f"hits while files and rows are compared: {visitor.told}")
        for name, prefix, expected in (
                (f"a prefix of {GROUP} objects", origin.url("/1/"), GROUP),
                ("a prefix of a tenth of all objects", origin.url("/9"), None)):
            seconds, (_, answer) = visitor.during(lambda: server.admin("DELETE", f"/cache?prefix={prefix}"))
            lab.report(
                (expected is None or answer["purged"] == expected) and visitor.wrong == 0,
                f"purge of {name}: {answer['purged']} purged after {seconds:.2f} s, hits meanwhile {visitor.told}")
        left = server.statistics()["objects"]
        server.stop()

        limit = left * size // 2
        server = lab.Server(options.gifreel, folder, cache__max_bytes=f"{limit}B").start()
        visitor = lab.Visitor(server, target(1))
        seconds, _ = visitor.during(lambda: lab.wait_for(lambda: server.statistics()["bytes"] <= limit * 0.95, options.seconds))
        evicted = left - server.statistics()["objects"]
        lab.report(
            visitor.wrong == 0, f"eviction of {evicted} objects: {seconds:.1f} s ({evicted / max(seconds, 0.001):.0f} per second), "
            f"hits meanwhile {visitor.told}")
        seconds, (_, answer) = visitor.during(lambda: server.admin("DELETE", "/cache?all=true"))
        lab.report(visitor.wrong == 0, f"purge of everything: {answer['purged']} purged after {seconds:.2f} s")
        server.stop()


def fabricate(folder, count, url):
    """Writes the files and the rows of a full cache without conversions. All objects have the same bytes, whose number it returns."""
    cache = pathlib.Path(folder, "cache")
    database = sqlite3.connect(cache / "ledger.sqlite")
    columns = "extension, length, content, created, facts, space"
    name, *row = database.execute(f"SELECT id, {columns} FROM objects LIMIT 1").fetchone()

    def path(identifier):
        return cache / "objects" / identifier.hex()[:2] / (identifier.hex()[2:] + ".mp4")

    body = path(name).read_bytes()
    for number in range(256):
        (cache / "objects" / f"{number:02x}").mkdir(exist_ok=True)
    now = int(time.time())
    (sequence,) = database.execute("SELECT sequence FROM cache_state").fetchone()
    for number in range(count):
        source = url(number).encode()
        identifier = hashlib.sha256(source).digest()
        path(identifier).write_bytes(body)
        database.execute(
            f"INSERT INTO objects (sequence, id, {columns}) VALUES ({', '.join('?' * 8)})", (sequence + 1, identifier, *row))
        # The SHA-256 over the fields, each preceded by its length.
        fields = (b"gifreel alias 1", source, b"mp4")
        key = hashlib.sha256(b"".join(struct.pack(">Q", len(field)) + field for field in fields)).digest()
        database.execute(
            "INSERT INTO aliases (sequence, key, former, object, url, fetched, space) VALUES (?, ?, 0, ?, ?, ?, ?)",
            (sequence + 2, key, sequence + 1, source.decode(), now, 2 * len(source) + 192))
        sequence += 2
    database.execute("UPDATE cache_state SET sequence = ?", (sequence,))
    database.commit()
    database.close()
    return len(body)
