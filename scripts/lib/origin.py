"""An origin with a distinct GIF for every number, with sources that change, and with faults; and what an MP4 of it must be."""
import collections
import struct
import threading
import time

import gifs
import lab


class Origin:
    """Serves `/ok/N.gif`, `/changing/N.gif`, whose width is its version, and faults: `/missing/`, `/error/`, `/html/`, `/broken/`,
    `/cut/`, `/slow/`. Any other kind is as `/ok/`."""

    def __init__(self, make=gifs.bars):
        self.make = make
        self.gifs = {}
        self.counts = {}
        # Of `/changing/N.gif`, by its number.
        self.versions = collections.defaultdict(int)
        self.lock = threading.Lock()
        self.port = lab.start(self.answer).server_port

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def body(self, number):
        with self.lock:
            if number not in self.gifs:
                if len(self.gifs) > 2000:
                    self.gifs.clear()
                self.gifs[number] = self.make(number)
            return self.gifs[number]

    def answer(self, request):
        kind, name = request.path.strip("/").split("/")[:2]
        number = int(name.split(".")[0])
        with self.lock:
            self.counts[request.path] = self.counts.get(request.path, 0) + 1
        if kind in ("missing", "error"):
            return request.reply(b"no", 404 if kind == "missing" else 500)
        if kind == "html":
            return request.reply(b"<!doctype html><p>no")
        if kind == "changing":
            return request.reply(gifs.bars(number, 2, 16, width=width_of(self.versions[number])))
        body = self.body(number)
        if kind == "broken":
            return request.reply(body[:60])  # before its first picture
        if kind == "cut":
            request.close_connection = True
            return request.reply(body[: len(body) // 2], Content_Length=len(body))
        if kind == "slow":
            time.sleep(0.5)
        return request.reply(body)


def width_of(version):
    """The width of `/changing/N.gif`: even, so that its MP4 has it as well."""
    return 16 + 2 * version


def version_of(body):
    """The version of `/changing/N.gif` from which an MP4 was made: by the width in `tkhd`."""
    start = body.index(b"tkhd") + 4
    return (struct.unpack(">I", body[start + 76:start + 80])[0] // 65536 - 16) // 2


def is_whole_mp4(body):
    """Whether the top-level boxes are those of a finished file and fill it exactly."""
    names, position = [], 0
    while position + 8 <= len(body):
        size, name = struct.unpack(">I4s", body[position:position + 8])
        if size < 8:
            return False
        names.append(name)
        position += size
    return position == len(body) and names[:1] == [b"ftyp"] and b"moov" in names and b"mdat" in names
