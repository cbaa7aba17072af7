"""Clients that send a mix of requests to one server or cluster, and check every answer."""
import collections
import hashlib
import itertools
import json
import random
import threading
import time
import urllib.parse

import gifs
import lab
import origin

# Numbers of GIFs: those of hits, and from where on each is new.
HOT, FIRST_NEW = 24, 1000
# The number of sources that change.
CHANGING = 8
# By fault of the origin: the status of the answer.
FAULTS = {"missing": 404, "error": 502, "html": 415, "broken": 422, "cut": 502}
AUTHORIZATION = {"Authorization": f"Bearer {lab.TOKEN}"}


class Traffic:
    """Clients that run from `start` to `stop`, and the counts since the last `begin`.

    `kinds` has the weights of the requests, which are methods of `_Client`. With `may_refuse`, 429 and 503 are no failures. With
    `purge_interval`, that many seconds apart, a source changes and is purged. From the moment on at which a purge is answered with
    "complete", an answer with older bytes is a failure.
    """

    def __init__(self, port, source, kinds, clients, may_refuse=False, purge_interval=None):
        self.port, self.origin, self.kinds = port, source, kinds
        self.may_refuse, self.purge_interval = may_refuse, purge_interval
        self.lock = threading.Lock()
        # The tag of each hot rendition, and bytes by tag.
        self.tags, self.bodies = {}, {}
        self.fresh = itertools.count(FIRST_NEW)
        # By the number of a source that changes: its version at the latest complete purge.
        self.floors = [0] * CHANGING
        self.stopped = threading.Event()
        self.times = self.failures = self.counts = None
        self.begin()
        runs = [_Client(self, seed).run for seed in range(clients)]
        if purge_interval:
            runs.append(_Client(self, clients).change)
        self.threads = [threading.Thread(target=run, daemon=True) for run in runs]

    def begin(self):
        """Begins to count anew. Returns the requests by kind (their begin and seconds), the failures, and other counts."""
        with self.lock:
            found = self.times, self.failures, self.counts
            self.times = collections.defaultdict(list)
            self.failures = []
            # `refused` requests, answers of the `shared` store, purges that not all nodes `unacknowledged`; of the sources that change:
            # `complete` purges, `incomplete` ones, and answers with `old` bytes.
            self.counts = collections.Counter()
            return found

    def start(self):
        """Makes the renditions that hits ask for, and starts the clients."""
        client = _Client(self, 0)
        for number in range(HOT):
            answer = client.ask(self.target(number))
            if problem := client.fault(answer):
                raise SystemExit(f"The first request for a rendition failed: {problem}")
            self.tags[number] = answer.headers["etag"]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(120)

    def count(self, name, amount=1):
        with self.lock:
            self.counts[name] += amount

    def target(self, number, kind="ok"):
        return f"/mp4/{self.origin.url(f'/{kind}/{number}.gif')}"

    def holds(self, port):
        """What is wrong with the answers of one node for the sources that change, as sentences."""
        client = _Client(self, 0, port)
        return [problem for number in range(CHANGING) if (problem := client.look(number))]


class _Client:
    """One connection. The methods of kinds return what is wrong, or None."""

    def __init__(self, traffic, seed, port=None):
        self.traffic, self.chance, self.port = traffic, random.Random(seed), port or traffic.port
        self.connection = lab.Client(self.port, 100)

    def attempt(self, kind, act):
        """Sends requests. Whatever is wrong with them is a failure of the kind."""
        began, self.missed = time.monotonic(), False
        try:
            problem = act()
        except Exception as error:  # Whatever it is, this request has no answer.
            problem = f"{type(error).__name__}: {error}"
            self.connection.close()
            self.connection = lab.Client(self.port, 100)
        with self.traffic.lock:
            self.traffic.times["miss" if kind == "hit" and self.missed else kind].append((began, time.monotonic() - began))
            if problem:
                self.traffic.failures.append(f"{kind}: {problem}")

    def run(self):
        names, weights = list(self.traffic.kinds), list(self.traffic.kinds.values())
        while not self.traffic.stopped.is_set():
            kind = self.chance.choices(names, weights)[0]
            self.attempt(kind, getattr(self, "_" + kind))

    def change(self):
        """Changes the sources in turn, each followed by a purge."""
        due = time.monotonic()
        for turn in itertools.count():
            if self.traffic.stopped.wait(max(0, due - time.monotonic())):
                return
            due = max(due + self.traffic.purge_interval, time.monotonic())
            self.attempt("change", lambda: self.purge_change(turn % CHANGING))

    def purge_change(self, number):
        self.traffic.origin.versions[number] += 1
        version = self.traffic.origin.versions[number]
        answer = self.ask(self.traffic.target(number, "changing"), "PURGE", AUTHORIZATION)
        if answer.status not in (200, 202):
            return f"{answer.status} {answer.body[:120]!r}"
        is_complete = answer.status == 200 and json.loads(answer.body)["complete"]
        if is_complete:
            self.traffic.floors[number] = version
        return self.traffic.count("complete" if is_complete else "incomplete")

    def ask(self, target, method="GET", headers=None, body=None):
        answer = self.connection.ask(target, method, headers, body)
        state = answer.headers.get("cache-status", "")
        self.missed = "fwd=" in state
        self.traffic.count("shared", "detail=shared" in state)
        return answer

    def status(self, answer, *wanted):
        """An unexpected status as a sentence; None for a wanted one, and for a refusal where refusals are allowed."""
        if answer.status in wanted:
            return None
        if self.traffic.may_refuse and answer.status in (429, 503):
            return self.traffic.count("refused")
        return f"{answer.status} {answer.body[:120]!r}"

    def fault(self, answer):
        """What is wrong with an answer that should be a whole rendition."""
        if answer.status != 200:
            return self.status(answer, 200)
        tag = answer.headers["etag"]
        if tag != f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"':
            return "bytes that do not fit the ETag"
        if not origin.is_whole_mp4(answer.body):
            return "not a whole MP4"
        if len(self.traffic.bodies) < 5000:
            self.traffic.bodies[tag] = answer.body
        return None

    def look(self, number):
        """What is wrong with the rendition of a source that changes, which must not be older than its latest complete purge."""
        floor = self.traffic.floors[number]
        answer = self.ask(self.traffic.target(number, "changing"))
        problem = self.fault(answer)
        if problem or answer.status != 200 or (version := origin.version_of(answer.body)) >= floor:
            return problem
        self.traffic.count("old")
        return f"version {version} after a complete purge of all before {floor}: {answer.headers['cache-status']}"

    # Kinds of requests

    def hot(self):
        return self.traffic.target(self.chance.randrange(HOT))

    def _changing(self):
        return self.look(self.chance.randrange(CHANGING))

    def _hit(self):
        return self.fault(self.ask(self.hot()))

    def _miss(self):
        return self.fault(self.ask(self.traffic.target(next(self.traffic.fresh))))

    def _upload(self):
        return self.fault(self.ask("/mp4", "POST", body=gifs.bars(next(self.traffic.fresh))))

    def _range(self):
        first = self.chance.randrange(100)
        answer = self.ask(self.hot(), headers={"Range": f"bytes={first}-{first + 99}"})
        if answer.status != 206:
            return self.status(answer, 206)
        whole = self.traffic.bodies.get(answer.headers["etag"])
        is_right = len(answer.body) == 100 and (whole is None or answer.body == whole[first:first + 100])
        return None if is_right else f"wrong {len(answer.body)} bytes in a range"

    def _304(self):
        number = self.chance.randrange(HOT)
        tag = self.traffic.tags[number]
        answer = self.ask(self.traffic.target(number), headers={"If-None-Match": tag})
        if answer.status == 304:
            return "a body with 304" if answer.body else None
        # After an eviction, or a purge without the store, the source is converted again. The bytes follow from the number of threads.
        problem = self.fault(answer)
        return problem or ("200 for the tag of the answer" if answer.headers.get("etag") == tag else None)

    def _facts(self):
        source = urllib.parse.quote(self.traffic.origin.url(f"/ok/{self.chance.randrange(HOT)}.gif"), safe="")
        answer = self.ask(f"/json?url={source}")
        if answer.status != 200:
            return self.status(answer, 200)
        return None if json.loads(answer.body)["source"]["frames"] == 6 else "wrong facts"

    def _purge(self):
        answer = self.ask(self.hot(), "PURGE", AUTHORIZATION)
        if answer.status not in (200, 202):
            return f"{answer.status} {answer.body[:120]!r}"
        counts = json.loads(answer.body)
        return self.traffic.count("unacknowledged", counts.get("acknowledged") != counts.get("nodes"))

    def _fault(self):
        kind, status = self.chance.choice(sorted(FAULTS.items()))
        return self.status(self.ask(self.traffic.target(self.chance.randrange(100_000), kind)), status)

    def _leave(self):
        """Requests a new rendition and disconnects without waiting."""
        client = lab.Client(self.port)
        client.connection.request("GET", self.traffic.target(self.chance.randrange(100_000), "slow"))
        time.sleep(0.05)
        client.close()
