"""scripts/bench soak: all kinds of requests together for a long time."""
import collections
import pathlib
import signal
import statistics
import threading
import time

import lab
import processes
import charts
from origin import Origin
from traffic import Traffic

KINDS = {"hit": 850, "range": 50, "304": 50, "miss": 15, "fault": 20, "upload": 5, "leave": 5, "purge": 5}
# The largest growth over the measured time that noise can cause.
BOUNDS = {"resident MB": 8, "descriptors": 12, "children": 1, "cache MB": 0.5, "cached": 40}


class Soak:
    def __init__(self, server, seconds, clients):
        self.server = server
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.traffic = Traffic(server.port, Origin(), KINDS, clients, may_refuse=True)
        self.samples, self.wrong = [], []
        self.counts = collections.Counter()

    def prewarm(self):
        """Sends a list of twenty new sources from time to time."""
        while time.monotonic() < self.end - 10:
            urls = [self.traffic.origin.url(f"/ok/{next(self.traffic.fresh)}.gif") for _ in range(20)]
            status, answer = self.server.admin("POST", "/prewarm", "\n".join('{"url":"%s"}' % url for url in urls))
            if status != 202:
                self.wrong.append(f"prewarm: status {status}")
                return
            self.counts["list"] += 1
            for _ in range(120):
                if time.monotonic() >= self.end or self.server.admin("GET", "/prewarm/" + answer["id"])[1]["state"] == "done":
                    break
                time.sleep(0.5)

    def reload(self):
        """Has the server read its settings again from time to time."""
        while time.monotonic() < self.end - 10:
            time.sleep(min(20, self.end - time.monotonic()))
            self.server.process.send_signal(signal.SIGHUP)
            self.counts["reload"] += 1

    def sample(self):
        pid = self.server.pid
        while time.monotonic() < self.end:
            values = self.server.metrics()
            self.samples.append({
                "time": time.monotonic(),
                "resident MB": values["process_resident_memory_bytes"] / 1e6,
                "descriptors": processes.descriptors(pid) - values["gifreel_http_connections"],
                "children": len(processes.family(pid)) - 1,
                "cache MB": values["gifreel_cache_bytes"] / 1e6,
                "cached": values["gifreel_cache_objects"],
            })
            time.sleep(1)

    def run(self):
        self.traffic.start()
        threads = [threading.Thread(target=each) for each in (self.sample, self.prewarm, self.reload)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.traffic.stop()
        self.times, failures, counts = self.traffic.begin()
        self.wrong += failures
        self.counts.update(counts)
        self.counts.update({kind: len(times) for kind, times in self.times.items()})

    def chart(self, title):
        """Memory, descriptors and latency over the run, as SVG."""
        def sampled(name):
            return [("", charts.steps([(sample["time"] - self.began, sample[name]) for sample in self.samples], max))]

        def latency(kind):
            times = [(began - self.began, seconds * 1000) for began, seconds in self.times[kind]]
            return [
                (name, charts.steps(times, lambda values, share=share: lab.percentile(values, share)))
                for name, share in (("median", 0.5), ("99 %", 0.99))]

        return charts.timelines(title, [
            ("resident memory of the server, MB", sampled("resident MB")),
            ("descriptors without those of clients", sampled("descriptors")),
            ("latency of hits, ms", latency("hit")), ("latency of misses, ms", latency("miss")),
        ])


def growth(samples, name):
    """The growth over the samples, by linear regression."""
    times = [sample["time"] for sample in samples]
    if len(set(times)) < 2:
        return 0.0
    return statistics.linear_regression(times, [sample[name] for sample in samples]).slope * (times[-1] - times[0])


def soak(options):
    """Hits, misses, faults, ranges, uploads, purges, prewarm lists and reloads together: wrong answers, an orderly end, and the growth of
    resident memory, descriptors, child processes and the cache's size over the last three quarters."""
    what = f"{options.minutes:g} minutes, {options.clients} clients"
    # A cache that is small enough to fill up soon, so that objects are evicted.
    with lab.started(
            options.gifreel, cache__max_bytes="4MiB", transcode__workers=2, cache__fresh_for="20s", cache__stale_for="20s") as server:
        run = Soak(server, options.minutes * 60, options.clients)
        run.run()
        code = server.stop()
    if options.chart:
        pathlib.Path(options.chart).write_text(run.chart(what))
    print(what + ": " + ", ".join(f"{count} {name}" for name, count in sorted(run.counts.items()) if count))
    steady = run.samples[len(run.samples) // 4:]
    for name, bound in BOUNDS.items():
        rise = growth(steady, name)
        mean = statistics.fmean(sample[name] for sample in steady)
        lab.report(rise <= bound, f"{name}: mean {mean:.2f}, grew by {rise:+.2f} over the run (bound: {bound})")
    for sentence, count in collections.Counter(run.wrong).most_common(20):
        print(f"      {count} × {sentence[:200]}")
    lab.report(not run.wrong, f"wrong answers: {len(run.wrong)}")
    lab.report(code == 0, f"exit code after SIGTERM: {code}")
