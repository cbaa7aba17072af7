"""scripts/bench soak: all kinds of requests together for a long time."""
import collections
import signal
import statistics
import time

import lab
import processes
from origin import Origin
from traffic import Traffic

KINDS = {"hit": 850, "range": 50, "304": 50, "miss": 15, "fault": 20, "upload": 5, "leave": 5, "purge": 5}
# The largest growth over the measured time that noise can cause.
BOUNDS = {"resident MB": 8, "descriptors": 12, "children": 1, "cache MB": 0.5, "cached": 40}


def sample(server):
    """What must not grow."""
    values = server.metrics()
    return {
        "time": time.monotonic(),
        "resident MB": values["process_resident_memory_bytes"] / 1e6,
        "descriptors": processes.descriptors(server.pid) - values["gifreel_http_connections"],
        "children": len(processes.family(server.pid)) - 1,
        "cache MB": values["gifreel_cache_bytes"] / 1e6,
        "cached": values["gifreel_cache_objects"],
    }


def prewarm(server, traffic, limit):
    """Sends a list of twenty new sources, and waits until it is done or the limit is reached. Returns what is wrong."""
    urls = [traffic.origin.url(f"/ok/{next(traffic.fresh)}.gif") for _ in range(20)]
    status, answer = server.admin("POST", "/prewarm", "\n".join('{"url":"%s"}' % url for url in urls))
    if status != 202:
        return f"prewarm: status {status}"
    while time.monotonic() < limit and server.admin("GET", "/prewarm/" + answer["id"])[1]["state"] != "done":
        time.sleep(0.5)
    return None


def tell(began, end, samples, times):
    """Prints memory, descriptors and latency over the run, in ten parts."""
    part = (end - began) / 10
    print("      minute  resident MB  descriptors  hits p50, p99 ms  misses p50, p99 ms")
    for start in (began + number * part for number in range(10)):
        seen = [each for each in samples if start <= each["time"] < start + part]
        most = [max((each[name] for each in seen), default=0) for name in ("resident MB", "descriptors")]
        waits = []
        for kind in ("hit", "miss"):
            found = [seconds * 1000 for at, seconds in times[kind] if start <= at < start + part]
            waits += [lab.percentile(found, 0.5), lab.percentile(found, 0.99)]
        print("      {:6.1f}  {:11.1f}  {:11.0f}  {:8.1f} {:7.1f}  {:10.0f} {:7.0f}".format((start - began) / 60, *most, *waits))


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
        traffic = Traffic(server.port, Origin(), KINDS, options.clients, may_refuse=True)
        traffic.start()
        began = time.monotonic()
        end = began + options.minutes * 60
        with lab.meanwhile(lambda: sample(server), 1) as samples, \
                lab.meanwhile(lambda: prewarm(server, traffic, end), 1) as lists, \
                lab.meanwhile(lambda: server.process.send_signal(signal.SIGHUP), 20) as reloads:
            time.sleep(options.minutes * 60)
        traffic.stop()
        code = server.stop()
    times, failures, counts = traffic.begin()
    counts.update({kind: len(found) for kind, found in times.items()}, lists=len(lists), reloads=len(reloads))
    wrong = failures + [problem for problem in lists if problem]
    print(what + ": " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count))
    tell(began, end, samples, times)
    steady = samples[len(samples) // 4:]
    for name, bound in BOUNDS.items():
        rise = growth(steady, name)
        mean = statistics.fmean(sample[name] for sample in steady)
        lab.report(rise <= bound, f"{name}: mean {mean:.2f}, grew by {rise:+.2f} over the run (bound: {bound})")
    for sentence, count in collections.Counter(wrong).most_common(20):
        print(f"      {count} × {sentence[:200]}")
    lab.report(not wrong, f"wrong answers: {len(wrong)}")
    lab.report(code == 0, f"exit code after SIGTERM: {code}")
