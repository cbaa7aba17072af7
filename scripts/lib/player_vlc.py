"""Plays one file with libvlc and prints what it shows, as JSON.

    python3 scripts/lib/player_vlc.py FILE CASE

A program of its own, because libvlc calls back from its threads. VLC passes every picture to a function when it is to be shown, without
its time in the file. So times are those of the clock, relative to the first picture, and the file is played in real time, twice.
Standard library only.
"""

import ctypes
import ctypes.util
import json
import os
import sys
import threading
import time

import player_cases

PACKAGE = "vlc-bin vlc-plugin-base"
WIDTH, HEIGHT = player_cases.WIDTH, player_cases.HEIGHT
LATE = 20
# Seconds of a file that is played to its end.
MOST = 12
ENDED, ERROR = 6, 7

LOCK = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
UNLOCK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
DISPLAY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Failed(Exception):
    """VLC cannot play the file, or stands still."""


def find():
    """The name of the library, or None."""
    return ctypes.util.find_library("vlc")


def load():
    library = ctypes.CDLL(find())
    for name, result, *arguments in (
        ("libvlc_get_version", ctypes.c_char_p),
        ("libvlc_new", ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
        ("libvlc_release", None, ctypes.c_void_p),
        ("libvlc_media_new_path", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
        ("libvlc_media_add_option", None, ctypes.c_void_p, ctypes.c_char_p),
        ("libvlc_media_release", None, ctypes.c_void_p),
        ("libvlc_media_player_new_from_media", ctypes.c_void_p, ctypes.c_void_p),
        ("libvlc_media_player_play", ctypes.c_int, ctypes.c_void_p),
        ("libvlc_media_player_stop", None, ctypes.c_void_p),
        ("libvlc_media_player_release", None, ctypes.c_void_p),
        ("libvlc_media_player_get_state", ctypes.c_int, ctypes.c_void_p),
        ("libvlc_media_player_get_length", ctypes.c_int64, ctypes.c_void_p),
        ("libvlc_video_set_callbacks", None, ctypes.c_void_p, LOCK, UNLOCK, DISPLAY, ctypes.c_void_p),
        ("libvlc_video_set_format", None, ctypes.c_void_p, ctypes.c_char_p, *3 * [ctypes.c_uint]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Player:
    """A player of one file. `prepare` is called before it plays."""

    def __init__(self, library, path, *options, prepare=lambda _: None):
        self._library = library
        flags = (b"--no-audio", b"--quiet", b"--no-video-title-show", b"--no-sub-autodetect-file", b"--no-osd", b"--no-drop-late-frames",
                 b"--no-skip-frames", b"--avcodec-hw=none")
        self._instance = library.libvlc_new(len(flags), (ctypes.c_char_p * len(flags))(*flags))
        media = library.libvlc_media_new_path(self._instance, os.fsencode(path))
        for option in options:
            library.libvlc_media_add_option(media, option.encode())
        self.player = library.libvlc_media_player_new_from_media(media)
        library.libvlc_media_release(media)
        prepare(self.player)
        library.libvlc_media_player_play(self.player)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._library.libvlc_media_player_stop(self.player)
        self._library.libvlc_media_player_release(self.player)
        self._library.libvlc_release(self._instance)

    @property
    def length(self):
        """The duration in seconds."""
        return self._library.libvlc_media_player_get_length(self.player) / 1000

    def until(self, condition, timeout):
        """Waits for a condition or the end; returns whether the condition holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            state = self._library.libvlc_media_player_get_state(self.player)
            if state == ENDED:
                return condition()
            if state == ERROR or time.monotonic() > deadline:
                raise Failed("VLC cannot play the file" if state == ERROR else "VLC stands still")
            time.sleep(0.01)
        return True


def watch(library, path, case):
    """What VLC shows: the first round from its start, and the seam. A long file is not played."""
    buffer = ctypes.create_string_buffer(WIDTH * HEIGHT * 4)
    shown = []
    changed = threading.Lock()

    @LOCK
    def lock(_, planes):
        planes[0] = ctypes.addressof(buffer)
        return None

    @UNLOCK
    def unlock(*_):
        pass

    @DISPLAY
    def display(*_):
        number = player_cases.plane_number(buffer.raw[1:], WIDTH * 4, 4)
        with changed:
            if not shown or shown[-1][1] != number:
                shown.append((time.monotonic(), number))

    def prepare(player):
        library.libvlc_video_set_callbacks(player, lock, unlock, display, None)
        library.libvlc_video_set_format(player, b"RV32", WIDTH, HEIGHT, WIDTH * 4)

    def seam():
        """The index of the first picture of the second round, or None."""
        numbers = [-1 if number is None else number for _, number in shown]
        return next((at for at in range(1, len(numbers)) if 0 <= numbers[at] < numbers[at - 1]), None)

    with Player(library, path, ":input-repeat=1", prepare=prepare) as player:
        player.until(lambda: player.length > 0, LATE)
        found = {"duration": player.length, "pictures": None, "seam": None, "isShown": True}
        # VLC may end a video of one picture before it shows it.
        if case.end > MOST or len(case.delays) == 1:
            return found
        if not player.until(seam, case.end + LATE):
            raise Failed(f"VLC does not repeat the file; it shows {[number for _, number in shown][-3:]}")
    end = seam()
    return found | {
        "pictures": [[moment - shown[0][0], number] for moment, number in shown[:end]],
        "seam": {
            "reads": len(shown), "unreadable": sum(number is None for _, number in shown), "mayCut": True,
            "gaps": [{"to": 0, "surplus": shown[end][0] - shown[0][0] - case.end}],
        },
    }


def main():
    library = load()
    found = {"version": "VLC " + library.libvlc_get_version().decode().split()[0]}
    if len(sys.argv) > 1:
        case = next(case for case in player_cases.cases() if case.name == sys.argv[2])
        try:
            # On a busy machine VLC drops pictures at the start, so only what it does three times counts.
            for _ in range(3):
                shown = watch(library, sys.argv[1], case)
                if not shown["pictures"] or len(shown["pictures"]) >= len(case.delays) - 1:
                    break
            found |= shown
        except Failed as failure:
            found["error"] = str(failure)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
