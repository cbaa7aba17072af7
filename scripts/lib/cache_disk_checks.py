"""The checks of scripts/check-cache for full disks and for the limit on bytes."""
import hashlib
import os
import random
import subprocess
import sys
import threading
import time

from cache_lab import Origin, Server, gif, noise, request, statuses, temporary, report


def full_disk(options):
    if os.environ.get("CHECK_CACHE_MOUNTED") != "1":
        # In a mount namespace, the mount ends with the process.
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
    space = os.statvfs(cache)
    with open(os.path.join(cache, "filler"), "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, space.f_bavail * space.f_frsize)
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
        f"purged on the full disk: {purged}; stored again {recovered * 1000:.0f} ms after space became available, without a restart; "
        f"{kept} of {len(stored) - 1} old objects still hits")
    server.kill()
    return good


def eviction(options):
    limit = 24 << 20
    side = 224
    origin = Origin(lambda path: (200, gif([5, 6, 7], side, side, noise(side, side)), {"Cache-Control": "max-age=86400"}))
    with temporary() as folder:
        server = Server(options.gifreel, folder, cache__max_bytes=f"{limit}B", transcode__workers=2)
        state = {"stored": 0, "bytes": 0, "wrong": 0, "streams": 0}
        urls, sizes, disk_sizes = [], [], []
        stopping = threading.Event()
        end = time.monotonic() + min(60, options.seconds)

        def produce(part):
            number = part
            while not stopping.is_set() and state["bytes"] < 4 * limit:
                url = origin.url(f"/{number}.gif")
                answer = request(server.port, f"/mp4,quality=100/{url}")
                state["wrong"] += answer.status != 200 or bool(answer.fault())
                state["stored"] += 1
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
        f"limit {limit >> 20} MiB: {state['stored']} objects of {state['bytes'] >> 20} MiB stored, {statistics['evictions']} "
        f"evicted, {state['streams']} slow readers; largest {max(sizes) / limit * 100:.1f} % by the cache's count, "
        f"{max(disk_sizes) / limit * 100:.1f} % on disk ({len(sizes)} samples); {state['wrong']} wrong answers")
