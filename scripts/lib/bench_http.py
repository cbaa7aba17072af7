"""scripts/bench hits, log, encodes and idle: the HTTP server under load by wrk."""
import collections
import itertools
import os
import re
import resource
import statistics
import subprocess
import time
import urllib.request

import gifs
import lab
import parts
import processes

# The header fields of Chromium's requests for videos.
BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept: */*", "Accept-Encoding: identity;q=1, *;q=0", "Accept-Language: en-GB,en;q=0.9",
    "Referer: http://127.0.0.1/a/page.html", "Sec-Fetch-Dest: video", "Sec-Fetch-Mode: no-cors",
    "Sec-Fetch-Site: same-origin", "Range: bytes=0-",
)
# Sizes of GIFs whose MP4s have about 2 KB, 20 KB, 200 KB and 2 MB.
SIZES = {"2k": (36, 36, 1), "20k": (64, 64, 10), "200k": (128, 128, 25), "2m": (320, 320, 40)}
Hits = collections.namedtuple("Hits", "count rate p99 failed")
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def wrk(url, seconds, connections=64, threads=2, headers=()):
    """Requests without pause on persistent connections. The 99th percentile is in milliseconds."""
    fields = [word for header in headers for word in ("-H", header)]
    program = lab.program("wrk", "apt-get install wrk")
    command = [program, f"-t{threads}", f"-c{connections}", f"-d{seconds}", "--timeout", "30", "--latency", *fields, url]
    text = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60).stdout
    count, took = re.search(r"(\d+) requests in ([\d.]+)s", text).groups()
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    bad = re.search(r"Non-2xx.*: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    failed = (int(bad[1]) if bad else 0) + (sum(map(int, errors.groups())) if errors else 0)
    return Hits(int(count), int(count) / float(took), float(value) * UNITS[unit], failed)


def hits(options):
    """Processor time per hit and hits per second, against nginx with the same bytes: medians of paired rounds, six minutes."""
    with lab.started(options.gifreel) as gifreel:
        os.chmod(gifreel.folder, 0o755)
        for name in options.sizes.split(","):
            target, body = gifreel.upload(gifs.noise(*SIZES[name]))
            tag = gifreel.ask(target).headers["etag"]
            with parts.StaticSite(f"nginx-{name}", gifreel.folder, body) as nginx:
                with urllib.request.urlopen(nginx.url()) as answer:
                    other_tag = answer.headers["ETag"]
                middle = len(body) // 2
                scenes = {
                    "plain": ((), ()), "browser": (BROWSER, BROWSER),
                    "range": ((f"Range: bytes={middle}-{middle + 4095}",),) * 2,
                    "304": ((f"If-None-Match: {tag}",), (f"If-None-Match: {other_tag}",)),
                    "close": (("Connection: close",),) * 2,
                }
                for scene, (mine, other) in scenes.items():
                    rounds = [
                        (cost_of(gifreel, target, mine, options.seconds), cost_of(nginx, "/file.mp4", other, options.seconds))
                        for _ in range(options.rounds)]
                    cost = statistics.median(ours[0] / theirs[0] for ours, theirs in rounds)
                    rate = statistics.median(ours[1].rate / theirs[1].rate for ours, theirs in rounds)
                    micro = statistics.median(ours[0] for ours, _ in rounds) * 1e6
                    failed = sum(ours[1].failed for ours, _ in rounds)
                    limit = 1.05 if scene == "close" else 0.85
                    lab.report(
                        cost <= limit and failed == 0,
                        f"{len(body):8d} bytes  {scene:8s} processor time {cost:.2f} of nginx ({micro:.1f} µs; goal: {limit}), "
                        f"rate {rate:.2f}, failed {failed}")


def cost_of(server, path, headers, seconds):
    """Seconds of processor time per hit, and the hits."""
    def cpu():
        return processes.cpu(*processes.family(server.process.pid))

    before = cpu()
    found = wrk(server.url(path), seconds, headers=headers)
    time.sleep(0.2)
    return (cpu() - before) / max(found.count, 1), found


def log(options):
    """The cost of the access log at full load: processor time per hit with and without it."""
    ratios = []
    with open("/dev/null", "w") as nowhere, \
            lab.started(options.gifreel, output=nowhere, log__level="info") as with_log, \
            lab.started(options.gifreel, output=nowhere, log__level="notice") as without:
        gif = gifs.noise(*SIZES["20k"])
        target, _ = with_log.upload(gif)
        without.upload(gif)
        for _ in range(options.rounds):
            costs = [cost_of(server, target, BROWSER, options.seconds)[0] for server in (with_log, without)]
            ratios.append(costs[0] / costs[1])
    cost = statistics.median(ratios) - 1
    lab.report(cost < 0.10, f"the access log costs {cost:.1%} of a hit's processor time (goal: under 10 %)")


def encodes(options):
    """The 99th percentile of hits while two encodes run, against that of an idle server."""
    ratios, large, numbers = [], gifs.noise(480, 360, 12), itertools.count()
    with lab.started(options.gifreel, log__level="notice") as gifreel:
        target, _ = gifreel.upload(gifs.noise(*SIZES["20k"]))

        def encode():
            # Other bytes in the palette make another GIF.
            gifreel.upload(large[:13] + next(numbers).to_bytes(3, "little") + large[16:])

        for _ in range(options.rounds):
            idle = wrk(gifreel.url(target), options.seconds, connections=16, threads=1)
            with lab.meanwhile(encode) as one, lab.meanwhile(encode) as other:
                time.sleep(0.5)
                busy = wrk(gifreel.url(target), options.seconds, connections=16, threads=1)
            ratios.append(busy.p99 / idle.p99)
            done = len(one) + len(other)
            print(f"      p99 {idle.p99:.2f} ms idle, {busy.p99:.2f} ms beside two encodes ({done} done)", flush=True)
    ratio = statistics.median(ratios)
    lab.report(ratio <= 3, f"p99 {ratio:.1f} times that of an idle server (goal: 3)")


def idle(options):
    """The memory of 1,000 connections that are idle after one request."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with lab.started(options.gifreel) as gifreel:
        target, _ = gifreel.upload(gifs.noise(*SIZES["20k"]))
        # The caches of the allocators are full before the measurement.
        for _ in range(64):
            gifreel.ask(target)
        time.sleep(1)
        before = processes.memory(gifreel.pid, "VmRSS")
        connections = [lab.Client(gifreel.port) for _ in range(1000)]
        for one in connections:
            one.ask(target)
        time.sleep(2)
        more = (processes.memory(gifreel.pid, "VmRSS") - before) / (1 << 20)
        for one in connections:
            one.close()
    lab.report(more < 10, f"1,000 idle connections: {more:.1f} MB more resident (goal: under 10)")
