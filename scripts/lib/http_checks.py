"""The checks of scripts/check-http, one per function. Each prints its measurements and returns whether they meet the goals."""

import statistics
import time
import urllib.request

import load
import service
from nginx import Nginx

# The header fields of Chromium's requests for videos.
BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept: */*", "Accept-Encoding: identity;q=1, *;q=0", "Accept-Language: en-GB,en;q=0.9",
    "Referer: http://127.0.0.1/a/page.html", "Sec-Fetch-Dest: video", "Sec-Fetch-Mode: no-cors",
    "Sec-Fetch-Site: same-origin", "Range: bytes=0-",
)
# Sizes of GIFs whose MP4s have about 2 KB, 20 KB, 200 KB and 2 MB.
SIZES = {"2k": (36, 36, 1), "20k": (64, 64, 10), "200k": (128, 128, 25), "2m": (320, 320, 40)}


def hits(path, arguments):
    """Processor time per hit and hits per second, against nginx with the same bytes: medians of paired rounds."""
    ok = True
    with service.Service(path) as gifreel:
        for name in arguments.sizes.split(","):
            target, body = gifreel.upload(service.noise_gif(*SIZES[name]))
            with urllib.request.urlopen(gifreel.url(target)) as answer:
                tag = answer.headers["ETag"]
            with Nginx(body) as nginx:
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
                        [_cost(gifreel, target, mine, arguments.seconds), _cost(nginx, "/file.mp4", other, arguments.seconds)]
                        for _ in range(arguments.rounds)
                    ]
                    cost = statistics.median(ours[0] / theirs[0] for ours, theirs in rounds)
                    rate = statistics.median(ours[1].rate / theirs[1].rate for ours, theirs in rounds)
                    micro = statistics.median(ours[0] for ours, _ in rounds) * 1e6
                    limit = 1.05 if scene == "close" else 0.85
                    failed = sum(ours[1].failed for ours, _ in rounds)
                    fits = cost <= limit and failed == 0
                    ok &= fits
                    print(
                        f"{len(body):8d} bytes  {scene:8s} processor time {cost:.2f} of nginx ({micro:.1f} µs), "
                        f"rate {rate:.2f}, failed {failed}{'' if fits else f'  over {limit}'}", flush=True)
    return ok


def _cost(server, path, headers, seconds):
    before = server.cpu()
    found = load.hits(server.url(path), seconds, headers=headers)
    time.sleep(0.2)
    return (server.cpu() - before) / max(found.count, 1), found


def log(path, arguments):
    """The cost of the access log at full load: processor time per hit with and without it."""
    ratios = []
    with open("/dev/null", "w") as nowhere, \
            service.Service(path, {"log.level": "info"}, log=nowhere) as with_log, \
            service.Service(path, {"log.level": "notice"}, log=nowhere) as without:
        gif = service.noise_gif(*SIZES["20k"])
        target, _ = with_log.upload(gif)
        without.upload(gif)
        for _ in range(arguments.rounds):
            costs = [_cost(server, target, BROWSER, arguments.seconds)[0] for server in (with_log, without)]
            ratios.append(costs[0] / costs[1])
    cost = statistics.median(ratios) - 1
    print(f"the access log costs {cost:.1%} of a hit's processor time (goal: under 10 %)")
    return cost < 0.10


def encodes(path, arguments):
    """The 99th percentile of hits while two encodes run, against that of an idle server."""
    ratios = []
    with service.Service(path, {"log.level": "notice"}) as gifreel:
        target, _ = gifreel.upload(service.noise_gif(*SIZES["20k"]))
        for _ in range(arguments.rounds):
            idle = load.hits(gifreel.url(target), arguments.seconds, connections=16, threads=1)
            busy = load.Encodes(gifreel)
            time.sleep(0.5)
            under = load.hits(gifreel.url(target), arguments.seconds, connections=16, threads=1)
            busy.close()
            ratios.append(under.p99 / idle.p99)
            print(f"p99 {idle.p99:.2f} ms idle, {under.p99:.2f} ms beside two encodes ({busy.done} done)", flush=True)
    ratio = statistics.median(ratios)
    print(f"p99 {ratio:.1f} times that of an idle server (goal: 3)")
    return ratio <= 3


def slow(path, arguments):
    """Hits while 2,000 slow clients of three kinds are held, against hits without them."""
    load.raise_descriptor_limit(arguments.clients + 500)
    settings = {"log.level": "notice", "server.head_timeout": "5m", "server.idle_timeout": "5m"}
    with service.Service(path, settings) as gifreel:
        target, _ = gifreel.upload(service.noise_gif(*SIZES["20k"]))
        large, _ = gifreel.upload(service.noise_gif(*SIZES["2m"]))
        before = [load.hits(gifreel.url(target), arguments.seconds, 16, 1) for _ in range(arguments.rounds)]
        crowd = load.SlowClients(gifreel.port, large, arguments.clients)
        time.sleep(2)
        during = [load.hits(gifreel.url(target), arguments.seconds, 16, 1) for _ in range(arguments.rounds)]
        held = crowd.held()
        crowd.close()
    ratio = statistics.median(one.p99 for one in during) / statistics.median(one.p99 for one in before)
    failed = sum(one.failed for one in during)
    print(f"{held} of {arguments.clients} slow clients held; hits' p99 {ratio:.2f} times (goal: 2), {failed} hits failed")
    return ratio <= 2 and held == arguments.clients and failed == 0


def idle(path, arguments):
    """The memory of 1,000 connections that are idle after one request."""
    load.raise_descriptor_limit(2000)
    with service.Service(path) as gifreel:
        target, _ = gifreel.upload(service.noise_gif(*SIZES["20k"]))
        load.hits(gifreel.url(target), 1)
        time.sleep(1)
        before = gifreel.resident()
        connections = [gifreel.connect() for _ in range(1000)]
        for one in connections:
            one.request("GET", target)
            one.getresponse().read()
        time.sleep(2)
        more = gifreel.resident() - before
        for one in connections:
            one.close()
    print(f"1,000 idle connections: {more:.1f} MB more resident (goal: under 10)")
    return more < 10
