"""Decodes one file with GStreamer and prints what its demuxer and decoder give, as JSON.

    /usr/bin/python3 scripts/lib/player_gstreamer.py FILE CASE

A program of its own, because GStreamer's module belongs to the Python of the system. `playbin` chooses the demuxer (`qtdemux`,
`matroskademux`) and the decoder, as it does for WebKitGTK. Times are stream times: positions in the file behind the segment.
"""

import json
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstApp, GstVideo  # noqa: E402, F401

import player_cases  # noqa: E402

TIMEOUT = 60 * Gst.SECOND
# Seconds of a file that is played in real time.
MOST = 12


class Failed(Exception):
    """The pipeline reported an error or stood still."""


class Player:
    """A pipeline that decodes as fast as it can."""

    def __init__(self, path):
        self._sink = Gst.ElementFactory.make("appsink")
        self._sink.set_property("sync", False)
        self._sink.set_property("max-buffers", 4)
        self._sink.set_property("caps", Gst.Caps.from_string("video/x-raw,format=GRAY8"))
        self._pipeline = Gst.ElementFactory.make("playbin")
        self._pipeline.set_property("uri", Gst.filename_to_uri(path))
        self._pipeline.set_property("video-sink", self._sink)
        # Video only, in software.
        self._pipeline.set_property("flags", 1)
        self._bus = self._pipeline.get_bus()
        self._pipeline.set_state(Gst.State.PAUSED)
        self._settle()

    def _settle(self):
        if self._pipeline.get_state(TIMEOUT)[0] != Gst.StateChangeReturn.SUCCESS:
            message = self._bus.pop_filtered(Gst.MessageType.ERROR)
            raise Failed(message.parse_error()[0].message if message else "the pipeline does not start")

    def close(self):
        self._pipeline.set_state(Gst.State.NULL)

    def play(self):
        self._pipeline.set_state(Gst.State.PLAYING)

    def duration(self):
        known, duration = self._pipeline.query_duration(Gst.Format.TIME)
        return duration / Gst.SECOND if known else None

    def rewind(self):
        """Seeks to the start, as a page in WebKitGTK repeats a video."""
        if not self._pipeline.seek_simple(Gst.Format.TIME, Gst.SeekFlags.FLUSH, 0):
            raise Failed("the pipeline cannot seek")
        self._settle()

    def elements(self):
        """The names of demuxer and decoder."""
        names = []
        iterator = self._pipeline.iterate_recurse()
        while True:
            result, element = iterator.next()
            if result != Gst.IteratorResult.OK:
                return sorted(names)
            factory = element.get_factory()
            kind = factory and factory.get_metadata("klass") or ""
            if "Demuxer" in kind or "Decoder" in kind and "Bin" not in kind:
                names.append(factory.get_name())

    def measure(self):
        """Plays a round in real time; returns the seconds from its first picture to its end."""
        self._sink.set_property("sync", True)
        self.rewind()
        begun = []
        self.round(lambda: begun.append(time.monotonic()))
        return time.monotonic() - begun[0]

    def round(self, shown=lambda: None):
        """The pictures up to the end of the file: stream time and number of each."""
        pictures = []
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            sample = self._sink.try_pull_sample(Gst.SECOND // 5)
            if sample:
                shown()
                pictures.append(self._picture(sample))
            elif self._sink.is_eos():
                return pictures
            else:
                message = self._bus.pop_filtered(Gst.MessageType.ERROR)
                if message:
                    raise Failed(message.parse_error()[0].message)
        raise Failed("the pipeline stands still")

    @staticmethod
    def _picture(sample):
        buffer, segment, caps = sample.get_buffer(), sample.get_segment(), sample.get_caps().get_structure(0)
        found, data = buffer.map(Gst.MapFlags.READ)
        assert found
        stride = (caps.get_value("width") + 3) // 4 * 4
        number = player_cases.plane_number(data.data, stride)
        buffer.unmap(data)
        return [segment.to_stream_time(Gst.Format.TIME, buffer.pts) / Gst.SECOND, number]


def watch(path, case):
    player = Player(path)
    try:
        player.play()
        found = {"duration": player.duration(), "elements": player.elements()}
        first = player.round()
        player.rewind()
        second = player.round()
        surplus = player.measure() - case.end if case.end <= MOST else None
    finally:
        player.close()
    numbers = [number for _, number in first + second]
    found["pictures"] = first
    found["seam"] = {
        "reads": len(numbers), "unreadable": numbers.count(None), "mayCut": True,
        "gaps": [{"to": second[0][0], "surplus": surplus or 0}],
    }
    return found


def main():
    Gst.init(None)
    version = "GStreamer " + ".".join(map(str, Gst.version()[:3]))
    try:
        found = {}
        if len(sys.argv) > 1:
            case = next(case for case in player_cases.cases() if case.name == sys.argv[2])
            found = watch(sys.argv[1], case)
        print(json.dumps({"version": version} | found))
    except Failed as failure:
        print(json.dumps({"version": version, "error": str(failure)}))


if __name__ == "__main__":
    main()
