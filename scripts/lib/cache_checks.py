"""The checks of scripts/check-cache. Each prints its figures and returns whether all that was promised held."""
import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time

from cache_lab import Origin, Server, at_once, durations, gif, noise, percentile, request, statuses, temporary


def report(good, what):
    print(("ok    " if good else "BROKEN") + " " + what, flush=True)
    return good


# --- many at once


def herd(options):
    body = gif([7, 8, 9] * 10, 320, 240, noise(320, 240))
    origin = Origin(lambda path: (200, body, {}), delay=0.5)
    with temporary() as folder:
        server = Server(options.gifreel, folder)
        good = True
        for name, paths in (("one URL", ["/a.gif"]), ("two URLs of one GIF", ["/b.gif", "/c.gif"])):
            if name != "one URL":
                server.admin("DELETE", "/cache?all=true")
            encodes = server.log_count("made a rendition")
            targets = [f"/mp4/{origin.url(paths[i % len(paths)])}" for i in range(options.clients)]
            began = time.monotonic()
            pairs = at_once(server.port, targets)
            seconds = time.monotonic() - began
            answers = [pair[0] for pair in pairs]
            encodes = server.log_count("made a rendition") - encodes
            fetches = sum(origin.counts.get(path, 0) for path in paths)
            bodies = {answer.body for answer in answers}
            objects = server.statistics()["objects"]
            good &= report(
                fetches == len(paths) and encodes <= len(paths) and objects == 1 and len(bodies) == 1
                and all(a.status == 200 and not a.fault() for a in answers),
                f"{options.clients} clients, {name}: {fetches} fetch(es), {encodes} encode(s), {objects} object(s), "
                f"{len(bodies)} different bodies, {seconds:.2f} s in all, statuses {statuses(answers)}")
        server.stop()
    return good


def failing(options):
    origin = Origin(lambda path: (500, b"no", {}))
    with temporary() as folder:
        server = Server(options.gifreel, folder)
        target = f"/mp4/{origin.url('/a.gif')}"
        began = time.monotonic()
        answers = []
        for second in range(5):
            answers += [pair[0] for pair in at_once(server.port, [target] * (options.clients // 5))]
            time.sleep(max(0, began + (second + 1) * 0.98 - time.monotonic()))
        seconds = time.monotonic() - began
        good = report(
            origin.counts["/a.gif"] == 1 and all(a.status == 502 for a in answers),
            f"{len(answers)} requests in {seconds:.1f} s to a source that fails: {origin.counts['/a.gif']} fetch(es)")
        server.stop()
    return good


def refusals(options):
    long = gif([5] * 60, 640, 480, noise(640, 480))
    small = gif([5, 6])
    origin = Origin(lambda path: (200, long if path.startswith("/long") else small, {}))
    with temporary() as folder:
        server = Server(options.gifreel, folder, transcode__workers=2, transcode__queue=4)
        hit = f"/mp4/{origin.url('/hit.gif')}"
        server.get(hit)
        # As many as there is room for; more are refused on the way.
        def hold(number):
            try:
                server.get(f"/mp4/{origin.url(f'/long{number}.gif')}")
            except OSError:
                pass  # The check ended before.

        for number in range(6):
            threading.Thread(target=hold, args=(number,), daemon=True).start()
        deadline = time.monotonic() + 20
        while server.statistics()["making"] < 6 and time.monotonic() < deadline:
            time.sleep(0.005)
        times, hits, wrong = [], [], 0
        while server.statistics()["making"] == 6 and len(times) < 1000 and time.monotonic() < deadline:
            began = time.monotonic()
            answer = server.get(f"/mp4/{origin.url(f'/new{len(times)}.gif')}")
            times.append(time.monotonic() - began)
            # A place may have come free just then.
            wrong += answer.status not in (200, 503) or (answer.status == 503 and "retry-after" not in answer.headers)
            if answer.status == 200:
                times.pop()
                break
            began = time.monotonic()
            wrong += server.get(hit).headers.get("cache-status") != "gifreel; hit"
            hits.append(time.monotonic() - began)
        fetched = sum(1 for path in origin.counts if path.startswith("/new"))
        if len(times) < 20:
            server.stop()
            return report(False, f"only {len(times)} refusals came about")
        good = report(
            wrong == 0 and percentile(times, 0.99) < 0.010 and fetched <= 1,
            f"{len(times)} refusals while 2 workers are busy and 4 wait: median {percentile(times, 0.5) * 1000:.1f} ms, "
            f"p99 {percentile(times, 0.99) * 1000:.1f} ms, largest {max(times) * 1000:.1f} ms (each on a new connection); "
            f"hits beside them p99 {percentile(hits, 0.99) * 1000:.1f} ms; fetched for them: {fetched}")
        server.kill()
    return good


# --- kill -9


class CrashLoad:
    """Clients that ask and purge until the server dies. The answers tell which source and version they were made of."""

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
            made_of, version = durations(answer.body)
            if made_of - 2 != source:
                fault = f"made of source {made_of - 2}"
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
            except Exception as error:  # http.client has several of its own for a connection that breaks off.
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
            # Now and then the index is lost, too.
            if cycles % 20 == 19:
                for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
                    path = os.path.join(folder, "cache", name)
                    if os.path.exists(path):
                        os.unlink(path)
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


# --- the start with many objects


def framed(*fields):
    """The SHA-256 over fields, each with its length before it."""
    return hashlib.sha256(b"".join(struct.pack(">Q", len(f)) + f for f in fields)).hexdigest()


def fabricate(folder, count, url):
    """Writes the files and the journal of a full cache without the encodes: all objects have the same bytes."""
    cache = os.path.join(folder, "cache")
    objects = os.path.join(cache, "objects")
    with open(os.path.join(cache, "journal"), "rb") as file:
        lines = file.read().split(b"\n")
    record = next(line for line in lines if b"\tO\t" in line).split(b"\t")
    name = record[3].decode()
    with open(os.path.join(objects, name[:2], name[2:] + ".mp4"), "rb") as file:
        body = file.read()
    base = int(lines[0].split(b"\t")[2])
    for number in range(256):
        os.makedirs(os.path.join(objects, f"{number:02x}"), exist_ok=True)
    now = b"%d" % time.time()
    with open(os.path.join(cache, "journal"), "ab") as journal:
        end = journal.tell()

        def append(kind, *fields):
            nonlocal end
            text = b"\t".join((kind, b"%d" % (base + end), *fields))
            line = hashlib.sha256(text).hexdigest()[:16].encode() + b"\t" + text + b"\n"
            journal.write(line)
            end += len(line)

        for number in range(count):
            source = url(number).encode()
            identifier = hashlib.sha256(source).hexdigest()
            with open(os.path.join(objects, identifier[:2], identifier[2:] + ".mp4"), "wb") as file:
                file.write(body)
            append(b"O", identifier.encode(), b"mp4", *record[5:8], record[8])
            key = framed(b"gifreel alias 1", source, b"mp4")
            append(b"A", key.encode(), identifier.encode(), now, b"", b"", b"", source)


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

        def remove_index():
            for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
                path = os.path.join(folder, "cache", name)
                if os.path.exists(path):
                    os.unlink(path)

        fabricate(folder, options.objects, url)
        remove_index()
        rng = random.Random(options.seed)
        for name, prepare in (("without an index", remove_index), ("after a kill -9", lambda: None)):
            prepare()
            server = Server(options.gifreel, folder)
            began = time.monotonic()
            # Answered at once, whatever the index knows by now.
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


# --- a full disk


def full_disk(options):
    if os.environ.get("CHECK_CACHE_MOUNTED") != "1":
        # A mount of our own that ends with the process.
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        environment = dict(os.environ, CHECK_CACHE_MOUNTED="1")
        return subprocess.run([*unshare, sys.executable, *sys.argv], env=environment).returncode == 0
    bodies = {}

    def answer(path):
        if path not in bodies:
            bodies[path] = gif([3 + len(bodies) % 50] * 2, 96, 96, noise(96, 96))
        return 200, bodies[path], {}

    origin = Origin(answer)
    good = True
    with temporary() as folder:
        cache = os.path.join(folder, "cache")
        os.mkdir(cache)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", cache]).returncode:
            sys.exit("A tmpfs cannot be mounted here.")
        try:
            good &= brim(options, folder, cache, origin)
        finally:
            subprocess.run(["umount", "-l", cache])
        # The server fills the disk itself: its limit is larger than the disk.
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", cache]).returncode:
            sys.exit("A tmpfs cannot be mounted here.")
        try:
            server = Server(options.gifreel, folder)
            answers, end = [], time.monotonic() + min(40, options.seconds / 3)
            while len(answers) < 600 and time.monotonic() < end:
                answers.append(server.get(f"/mp4/{origin.url(f'/self{len(answers)}.gif')}"))
            wrong = [a for a in answers if a.status != 200 or a.fault()]
            good &= report(
                not wrong,
                f"{len(answers)} new sources on a disk of 8 MiB that is smaller than the cache may be: "
                f"{len(wrong)} not answered, statuses {statuses(answers)}")
            server.kill()
        finally:
            subprocess.run(["umount", "-l", cache])
    return good


def brim(options, folder, cache, origin):
    server = Server(options.gifreel, folder)
    stored = {i: server.get(f"/mp4/{origin.url(f'/{i}.gif')}").body for i in range(20)}
    room = os.statvfs(cache)
    with open(os.path.join(cache, "filler"), "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, room.f_bavail * room.f_frsize)
    hits, misses, end, number = [], [], time.monotonic() + 10, 1000
    while time.monotonic() < end:
        for i in stored:
            answer = server.get(f"/mp4/{origin.url(f'/{i}.gif')}")
            hits.append(answer)
            if answer.body != stored[i]:
                answer.status = 599
        misses.append(server.get(f"/mp4/{origin.url(f'/{number}.gif')}"))
        number += 1
    free = os.statvfs(cache).f_bavail
    bad_hits = sum(a.status != 200 or bool(a.fault()) for a in hits)
    bad_misses = sum(a.status != 200 or bool(a.fault()) for a in misses)
    good = report(
        bad_hits == 0 and bad_misses == 0,
        f"tmpfs with {free} blocks free: {len(hits)} hits, {bad_hits} wrong; {len(misses)} misses, {bad_misses} not answered, "
        f"statuses {statuses(misses)}")
    purged = server.admin("PURGE", f"/mp4/{origin.url('/0.gif')}")["purged"]
    os.unlink(os.path.join(cache, "filler"))
    began = time.monotonic()
    while time.monotonic() - began < 20:
        answer = server.get(f"/mp4/{origin.url(f'/{number}.gif')}")
        number += 1
        if answer.headers.get("cache-status") == "gifreel; fwd=miss; stored":
            break
    recovered = time.monotonic() - began
    kept = sum(
        server.get(f"/mp4/{origin.url(f'/{i}.gif')}").headers.get("cache-status") == "gifreel; hit" for i in stored if i)
    good &= report(
        recovered < 20 and purged == 1 and kept == len(stored) - 1,
        f"purged on the full disk: {purged}; stored again {recovered * 1000:.0f} ms after there was room, without a restart; "
        f"{kept} of {len(stored) - 1} old objects still hits")
    server.kill()
    return good


# --- eviction


def eviction(options):
    limit = 24 << 20
    side = 224
    origin = Origin(lambda path: (200, gif([5, 6, 7], side, side, noise(side, side)), {"Cache-Control": "max-age=86400"}))
    with temporary() as folder:
        server = Server(options.gifreel, folder, cache__max_bytes=f"{limit}B", transcode__workers=2)
        state = {"made": 0, "bytes": 0, "wrong": 0, "streams": 0}
        urls, sizes, disk_sizes = [], [], []
        stopping = threading.Event()
        end = time.monotonic() + min(60, options.seconds)

        def produce(part):
            number = part
            while not stopping.is_set() and state["bytes"] < 4 * limit:
                url = origin.url(f"/{number}.gif")
                answer = request(server.port, f"/mp4,quality=100/{url}")
                state["wrong"] += answer.status != 200 or bool(answer.fault())
                state["made"] += 1
                state["bytes"] += len(answer.body)
                urls.append(url)
                number += 4

        def read(seed):
            import http.client
            rng = random.Random(seed)
            while not stopping.is_set():
                if len(urls) < 10:
                    time.sleep(0.05)
                    continue
                # An old object, slowly, so that it is likely to be evicted meanwhile.
                target = f"/mp4,quality=100/{rng.choice(urls[-60:])}"
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                connection.connect()
                connection.sock.setsockopt(1, 8, 16384)  # SO_RCVBUF
                connection.request("GET", target)
                answer = connection.getresponse()
                body = b""
                while piece := answer.read(16384):
                    body += piece
                    time.sleep(0.01)
                tag = '"' + hashlib.sha256(body).hexdigest()[:32] + '"'
                state["wrong"] += answer.status != 200 or answer.headers["ETag"] != tag
                state["streams"] += 1
                connection.close()

        threads = [threading.Thread(target=produce, args=(i,)) for i in range(4)]
        threads += [threading.Thread(target=read, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        while state["bytes"] < 4 * limit and time.monotonic() < end:
            sizes.append(server.statistics()["bytes"])
            total = 0
            for path, _, names in os.walk(os.path.join(folder, "cache", "objects")):
                for name in names:
                    try:
                        total += os.stat(os.path.join(path, name)).st_size
                    except FileNotFoundError:
                        pass
            disk_sizes.append(total)
            time.sleep(0.01)
        stopping.set()
        for thread in threads:
            thread.join()
        statistics = server.statistics()
        server.stop()
    over = max(max(sizes), max(disk_sizes)) / limit
    return report(
        over <= 1.02 and state["wrong"] == 0 and statistics["evictions"] > 0,
        f"limit {limit >> 20} MiB: {state['made']} objects of {state['bytes'] >> 20} MiB stored, {statistics['evictions']} "
        f"evicted, {state['streams']} slow readers; largest {max(sizes) / limit * 100:.1f} % by the cache's count, "
        f"{max(disk_sizes) / limit * 100:.1f} % on disk ({len(sizes)} samples); {state['wrong']} wrong answers")


CHECKS = {
    "herd": herd, "failing": failing, "refusals": refusals, "crash": crash, "start": start, "full-disk": full_disk,
    "eviction": eviction,
}
