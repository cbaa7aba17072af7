"""Plays files in Chromium and Firefox and reads which numbered picture they show when (players.js, player_cases.py).

A page runs a function of players.js and keeps its result in `window.result`, so that a slow function needs no long command. Standard
library only. Every wait has a deadline.
"""

import json
import time

import player_cases
import png

# Screenshots of an image: at least this many after its first round.
SHOTS = 12


class Failed(Exception):
    """A function of the page failed or did not end."""


def run(view, expression, timeout=240):
    """The value of a promise in a page of either browser."""
    view.evaluate(
        f"(window.result = null, Promise.resolve({expression}).then(value => {{ window.result = {{value}}; }},"
        " error => { window.result = {error: String(error && error.message || error)}; }), 0)")
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        result = view.evaluate("window.result")
        if result:
            if "error" in result:
                raise Failed(result["error"])
            return result["value"]
        time.sleep(0.1)
    raise Failed("the page does not end")


def watch_video(view, url, case):
    """What a video shows when it is sought, and at its seam."""
    link, starts = json.dumps(url), json.dumps(case.starts)
    found = run(view, f"watchVideo({link}, {starts})")
    found["seam"] = run(view, f"watchVideoSeam({link}, {starts}, {case.end})", 120)
    return found


def watch_image(view, url, page, case):
    """What the decoder for scripts gives, if the browser has one, and what screenshots show of the image on a page."""
    found = run(view, f"watchImage({json.dumps(url)})") or {"duration": None, "pictures": None}
    found["seam"] = None
    # An image cannot be sought: its seam is waited for.
    if case.end <= 12:
        found["seam"] = _watch_shots(view, page, case)
    return found


def _watch_shots(view, page, case):
    view.goto(page)
    begun = time.monotonic()
    numbers, late = [], []
    deadline = begun + case.end * 3 + 60
    while len(late) < SHOTS or (len(case.delays) > 1 and len(set(late)) < 2):
        if time.monotonic() > deadline:
            break
        numbers.append(_number(view.screenshot()))
        if time.monotonic() - begun > case.end:
            late.append(numbers[-1])
    return {
        "reads": len(numbers), "unreadable": numbers.count(None),
        "stands": len(case.delays) > 1 and len(set(late)) < 2, "gaps": [],
    }


def _number(picture):
    width, _, rows = png.read(picture)
    channels = len(rows[0]) // width
    return player_cases.number(lambda x, y: rows[y][x * channels + 1])
