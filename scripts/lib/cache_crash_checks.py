"""The checks of scripts/check-cache for kills and starts."""
import hashlib
import os
import random
import sqlite3
import struct
import threading
import time

from cache_lab import Origin, Server, durations, gif, noise, percentile, request, temporary, report


class CrashLoad:
    """Clients that send requests and purges until the server dies. Each answer contains its source and version."""

    def __init__(self, sources, seed):
        self.sources, self.random = sources, random.Random(seed)
        self.versions, self.floors = [1] * sources, [0] * sources
        self.locks = [threading.Lock() for _ in range(sources)]
        self.faults, self.answers, self.purges = [], 0, 0
        self.origin = Origin(self.answer)

    def answer(self, path):
        source = int(path[1:-4])
        return 200, gif([source + 2, 2 + self.versions[source] % 60_000], 48, 48, noise(48, 48)), {}

    def target(self, source):
        return f"/mp4/{self.origin.url(f'/{source}.gif')}"

    def ask(self, port, source):
        floor = self.floors[source]
        answer = request(port, self.target(source), timeout=20)
        ceiling = self.versions[source]
        if answer.status in (502, 503, 504):
            return answer
        fault = f"status {answer.status}" if answer.status != 200 else answer.fault()
        if not fault:
            found, version = durations(answer.body)
            if found - 2 != source:
                fault = f"the rendition of source {found - 2}"
            elif not floor <= version - 2 <= ceiling:
                fault = f"version {version - 2}, not in {floor}…{ceiling}"
        if fault:
            self.faults.append(f"source {source}: {fault}")
        self.answers += 1
        return answer

    def run(self, server, stopping):
        rng = random.Random(self.random.random())
        while not stopping.is_set():
            source = rng.randrange(self.sources)
            try:
                if rng.random() < 0.8:
                    self.ask(server.port, source)
                    continue
                with self.locks[source]:
                    # The origin has a new version first, then the old one is purged.
                    self.versions[source] += 1
                    version = self.versions[source]
                    server.admin("PURGE", self.target(source))
                    self.floors[source] = version
                    self.purges += 1
            except (OSError, RuntimeError, ValueError, EOFError):
                pass  # It was killed.
            except Exception as error:  # http.client raises several errors for a broken connection.
                if type(error).__module__ != "http.client":
                    raise


def crash(options):
    load = CrashLoad(40, options.seed)
    rng = random.Random(options.seed)
    starts, cycles, hits = [], 0, 0
    end = time.monotonic() + options.seconds
    with temporary() as folder:
        server = Server(options.gifreel, folder, cache__max_bytes="4MiB")
        while cycles < options.cycles and time.monotonic() < end:
            stopping = threading.Event()
            clients = [threading.Thread(target=load.run, args=(server, stopping)) for _ in range(6)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.02, 0.35))
            server.kill()
            stopping.set()
            for client in clients:
                client.join()
            server = Server(options.gifreel, folder, cache__max_bytes="4MiB")
            starts.append(server.start_time)
            cycles += 1
            for source in range(load.sources):
                answer = load.ask(server.port, source)
                hits += answer.headers.get("cache-status") == "gifreel; hit"
        corrupt = server.statistics()["corrupt"]
        server.stop()
    for fault in load.faults[:10]:
        print("      " + fault)
    return report(
        not load.faults and corrupt == 0 and max(starts) < 2 and cycles == options.cycles,
        f"{cycles} kills, {load.answers} answers checked, {hits} of them hits right after a start, {load.purges} purges: "
        f"{len(load.faults)} wrong or short, {corrupt} damaged objects; start median {percentile(starts, 0.5) * 1000:.0f} ms, "
        f"largest {max(starts) * 1000:.0f} ms")


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
    body = gif([5, 6])
    origin = Origin(lambda path: (200, body, {}))
    good = True
    with temporary() as folder:
        server = Server(options.gifreel, folder)
        server.get(f"/mp4/{origin.url('/seed.gif')}")
        server.stop()

        def url(number):
            return origin.url(f"/{number}.gif")

        fabricate(folder, options.objects, url)
        rng = random.Random(options.seed)
        for name in ("after a stop", "after a kill -9"):
            server = Server(options.gifreel, folder)
            began = time.monotonic()
            # Answered at once, whether or not files and rows are compared.
            first = server.get(f"/mp4/{url(rng.randrange(options.objects))}")
            first_time = time.monotonic() - began
            while server.statistics()["objects"] < options.objects and time.monotonic() - began < options.seconds:
                time.sleep(0.05)
            known = time.monotonic() - began
            sample = [server.get(f"/mp4/{url(rng.randrange(options.objects))}") for _ in range(200)]
            hits = sum(a.headers.get("cache-status") == "gifreel; hit" and not a.fault() for a in sample)
            good &= report(
                server.start_time < 2 and first.status == 200 and not first.fault() and hits == len(sample),
                f"{options.objects} objects, {name}: ready after {server.start_time * 1000:.0f} ms, first answer "
                f"({first.headers.get('cache-status')}) {first_time * 1000:.0f} ms later, all known after {known:.1f} s; then "
                f"{hits} of {len(sample)} asked for at random are hits")
            server.kill()
    return good
