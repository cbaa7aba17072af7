"""The checks of scripts/check-cache. Each prints its figures and returns whether the guarantees held."""
import threading
import time

import cache_crash_checks
import cache_disk_checks
import cache_size_checks
from cache_lab import Origin, Server, at_once, gif, noise, percentile, statuses, temporary, report


def herd(options):
    body = gif([7, 8, 9] * 10, 320, 240, noise(320, 240))
    origin = Origin(lambda path: (200, body, {}), delay=0.5)
    with temporary() as folder:
        server = Server(options.gifreel, folder)
        good = True
        for name, paths in (("one URL", ["/a.gif"]), ("two URLs of one GIF", ["/b.gif", "/c.gif"])):
            if name != "one URL":
                server.admin("DELETE", "/cache?all=true")
            encodes = server.log_count("produced a rendition")
            targets = [f"/mp4/{origin.url(paths[i % len(paths)])}" for i in range(options.clients)]
            began = time.monotonic()
            pairs = at_once(server.port, targets)
            seconds = time.monotonic() - began
            answers = [pair[0] for pair in pairs]
            encodes = server.log_count("produced a rendition") - encodes
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
        # Once, and once more for each time that the failure was forgotten meanwhile: after five seconds at the soonest.
        good = report(
            1 <= origin.counts["/a.gif"] <= 1 + int(seconds / 5) and all(a.status == 502 for a in answers),
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
        # Fills all slots; more requests are refused meanwhile.
        def hold(number):
            try:
                server.get(f"/mp4/{origin.url(f'/long{number}.gif')}")
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
            answer = server.get(f"/mp4/{origin.url(f'/new{len(times)}.gif')}")
            times.append(time.monotonic() - began)
            # A slot may have become free meanwhile.
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
            return report(False, f"only {len(times)} refusals occurred")
        good = report(
            wrong == 0 and percentile(times, 0.99) < 0.010 and fetched <= 1,
            f"{len(times)} refusals while 2 workers are busy and 4 wait: median {percentile(times, 0.5) * 1000:.1f} ms, "
            f"p99 {percentile(times, 0.99) * 1000:.1f} ms, largest {max(times) * 1000:.1f} ms (each on a new connection); "
            f"hits beside them p99 {percentile(hits, 0.99) * 1000:.1f} ms; fetched for them: {fetched}")
        server.kill()
    return good


CHECKS = {
    "herd": herd, "failing": failing, "refusals": refusals, "crash": cache_crash_checks.crash,
    "start": cache_crash_checks.start, "full-disk": cache_disk_checks.full_disk, "eviction": cache_disk_checks.eviction,
    "large": cache_size_checks.large,
}
