"""scripts/bench overload: more new renditions than a server can make."""
import collections
import concurrent.futures
import contextlib
import os
import time

import gifs
import lab
import processes

# An answer: seconds from the start of the load to its end, seconds that it took, and whether it says when to try again.
Answer = collections.namedtuple("Answer", "ended status took has_retry")
# What was measured beside a load: the 99th percentile of hits in milliseconds, and the largest memory in bytes.
Measured = collections.namedtuple("Measured", "answers p99 memory")


def serve_sources():
    """Serves a GIF with the path in a comment, so that no two are the same. Returns the port."""
    gif = gifs.bars(0, frames=24, side=240, width=320)[:-1]

    def answer(request):
        path = request.path.encode()
        request.reply(gif + b"\x21\xfe" + bytes([len(path)]) + path + b"\0;")

    return lab.start(answer).server_port


def ask(port, target, began):
    """One request on a new connection."""
    sent = time.perf_counter()
    with contextlib.closing(lab.Client(port)) as client:
        answer = client.ask(target)
    ended = time.perf_counter()
    return Answer(ended - began, answer.status, ended - sent, "retry-after" in answer.headers)


def closed(port, target, seconds, width):
    """Sends requests from a number of clients, each after the answer to the one before."""
    began = time.perf_counter()

    def ask_in_turn(client):
        answers = []
        while time.perf_counter() < began + seconds:
            answers.append(ask(port, f"{target}closed/{client}/{len(answers)}.gif", began))
        return answers

    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        return sum(pool.map(ask_in_turn, range(width)), [])


def opened(port, target, seconds, rate):
    """Sends a number of requests per second, without waiting for answers."""
    began, count = time.perf_counter(), int(seconds * rate)
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        asked = []
        for number in range(count):
            time.sleep(max(0, began + number / rate - time.perf_counter()))
            asked.append(pool.submit(ask, port, f"{target}opened/{number}.gif", began))
        return [each.result() for each in asked]


def measure(server, hot, work):
    """Asks for hits while `work` runs, which returns answers."""
    def memory():
        # Resident bytes of the process and its children, in which shared pages count once.
        return sum(processes.memory(each, "Pss", "smaps_rollup") for each in processes.family(server.pid))

    visitor = lab.Visitor(server, hot)
    with lab.meanwhile(memory, 0.25) as sizes:
        _, answers = visitor.during(work)
    assert not visitor.wrong
    return Measured(answers, visitor.p99, max(sizes))


def made(load, begin, end):
    """Renditions per second between two moments, in seconds from the start."""
    return sum(answer.status == 200 and begin <= answer.ended < end for answer in load.answers) / (end - begin)


def overload(options):
    """The renditions per second without overload (the peak), then several times as many requests, beside hits all the time."""
    # Sources and requests have a process of their own, because they would delay the hits of this one.
    with concurrent.futures.ProcessPoolExecutor(1) as other, lab.started(options.gifreel, log__level="error") as server:
        target = f"/mp4/http://127.0.0.1:{other.submit(serve_sources).result()}/"
        assert server.ask(target + "hot.gif").status == 200

        def under(act, *arguments):
            return measure(server, target + "hot.gif", lambda: other.submit(act, *arguments).result())

        idle = under(time.sleep, 5)
        busy = under(closed, server.port, target, 10, 2 * (os.cpu_count() or 1))
        peak = made(busy, 1, 10)
        load = under(opened, server.port, target, options.seconds, peak * options.times)
    # The first seconds fill the queue and are not comparable with the peak.
    reached = made(load, 2, options.seconds)
    refusals = [answer for answer in load.answers if answer.status == 503]
    others = [answer for answer in load.answers if answer.status not in (200, 503)]
    waits = [answer.took * 1000 for answer in refusals]
    lab.report(
        reached >= 0.9 * peak, f"made per second: peak {peak:.1f}, overloaded {reached:.1f} = {reached / peak:.0%} of it (goal: 90 %)")
    lab.report(not others, f"requests {len(load.answers)}, refused {len(refusals)}, neither made nor refused {len(others)}")
    lab.report(
        bool(waits) and lab.percentile(waits, 0.5) < 10, f"refusals: p50 {lab.percentile(waits, 0.5):.1f} ms (goal: 10), "
        f"p99 {lab.percentile(waits, 0.99):.1f} ms, longest {max(waits, default=0):.1f} ms")
    lab.report(all(answer.has_retry for answer in refusals), "refusals say when to try again")
    lab.report(
        load.p99 <= 2 * busy.p99,
        f"hits, p99: idle {idle.p99:.2f} ms, encoders busy {busy.p99:.2f} ms, overloaded {load.p99:.2f} ms (goal: twice)")
    lab.report(
        load.memory - busy.memory < 256e6,
        f"memory of all processes: peak {busy.memory / 1e6:.0f} MB, overloaded {load.memory / 1e6:.0f} MB (goal: 256 MB more)")
