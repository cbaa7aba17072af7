"""scripts/bench overload: more new renditions than a server can make."""
import asyncio
import multiprocessing
import os
import threading
import time

import gifs
import lab
import processes


def serve_sources(port_pipe):
    """Serves a GIF with the path in a comment, so that no two are the same."""
    gif = gifs.bars(0, frames=24, side=240, width=320)[:-1]

    def answer(request):
        path = request.path.encode()
        request.reply(gif + b"\x21\xfe" + bytes([len(path)]) + path + b"\0;")

    port_pipe.send(lab.start(answer).server_port)
    threading.Event().wait()


def send_hits(port, target, stop, results):
    """Requests a hit every 5 ms over one connection; sends the times in milliseconds when it is stopped."""
    client, times = lab.Client(port), []
    while not stop.is_set():
        began = time.perf_counter()
        answer = client.ask(target, headers={"Range": "bytes=0-1023"})
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status == 206, answer.status
        time.sleep(0.005)
    results.send(times)


async def send_miss(port, target):
    """One request on a new connection: when it ended, status, milliseconds, and whether the answer has Retry-After."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    took = (time.perf_counter() - began) * 1000
    while await reader.read(65536):
        pass
    writer.close()
    return time.perf_counter(), int(head.split(b" ")[1]), took, b"\r\nRetry-After:" in head


class Phase:
    """Runs requests while hits and memory are measured."""

    def __init__(self, server, hot, load):
        stop, (receiver, sender) = multiprocessing.Event(), multiprocessing.Pipe(False)
        asking = multiprocessing.Process(target=send_hits, args=(server.port, hot, stop, sender))
        asking.start()
        self.peak, done = 0, threading.Event()

        def watch():
            # Resident bytes of the process and its children, in which shared pages count once.
            while not done.wait(0.25):
                family = processes.family(server.pid)
                self.peak = max(self.peak, sum(processes.memory(each, "Pss", "smaps_rollup") for each in family))

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.began = time.perf_counter()
        self.answers = asyncio.run(load)
        done.set()
        watcher.join()
        stop.set()
        self.p99 = lab.percentile(receiver.recv(), 0.99)
        asking.join()

    def rate(self, begin, end):
        """Renditions per second between two moments, in seconds from the start."""
        return sum(status == 200 and begin <= moment - self.began < end for moment, status, *_ in self.answers) / (end - begin)


async def closed(port, urls, seconds, width):
    """Sends requests from a number of clients, each after the answer to the one before."""
    answers, end = [], time.perf_counter() + seconds

    async def one():
        while time.perf_counter() < end:
            answers.append(await send_miss(port, next(urls)))

    await asyncio.gather(*(one() for _ in range(width)))
    return answers


async def opened(port, urls, seconds, rate):
    """Sends a number of requests per second, without waiting for answers."""
    began, tasks = time.perf_counter(), []
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0, began + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(send_miss(port, next(urls))))
    return await asyncio.gather(*tasks)


def overload(options):
    """The renditions per second without overload (the peak), then several times as many requests, beside hits all the time."""
    receiver, sender = multiprocessing.Pipe(False)
    multiprocessing.Process(target=serve_sources, args=(sender,), daemon=True).start()
    source = f"http://127.0.0.1:{receiver.recv()}"
    with lab.started(options.gifreel, log__level="error") as server:
        port, hot = server.port, f"/mp4/{source}/hot.gif"
        assert server.ask(hot).status == 200
        urls = (f"/mp4/{source}/{number}.gif" for number in range(10**9))
        idle = Phase(server, hot, asyncio.sleep(5))
        busy = Phase(server, hot, closed(port, urls, 10, 2 * (os.cpu_count() or 1)))
        peak = busy.rate(1, 10)
        load = Phase(server, hot, opened(port, urls, options.seconds, peak * options.times))
    # The first seconds fill the queue and are not comparable with the peak.
    reached = load.rate(2, options.seconds)
    refusals = [answer for answer in load.answers if answer[1] == 503]
    others = [answer for answer in load.answers if answer[1] not in (200, 503)]
    waits = [answer[2] for answer in refusals]
    lab.report(
        reached >= 0.9 * peak, f"made per second: peak {peak:.1f}, overloaded {reached:.1f} = {reached / peak:.0%} of it (goal: 90 %)")
    lab.report(not others, f"requests {len(load.answers)}, refused {len(refusals)}, neither made nor refused {len(others)}")
    lab.report(
        bool(waits) and lab.percentile(waits, 0.5) < 10, f"refusals: p50 {lab.percentile(waits, 0.5):.1f} ms (goal: 10), "
        f"p99 {lab.percentile(waits, 0.99):.1f} ms, longest {max(waits, default=0):.1f} ms")
    lab.report(all(answer[3] for answer in refusals), "refusals say when to try again")
    lab.report(
        load.p99 <= 2 * busy.p99,
        f"hits, p99: idle {idle.p99:.2f} ms, encoders busy {busy.p99:.2f} ms, overloaded {load.p99:.2f} ms (goal: twice)")
    lab.report(
        load.peak - busy.peak < 256e6,
        f"memory of all processes: peak {busy.peak / 1e6:.0f} MB, overloaded {load.peak / 1e6:.0f} MB (goal: 256 MB more)")
