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


def watch_video(view, url, case, page=None):
    """What a video shows when it is sought, at its seam, and over the colour of a page, if one is given."""
    link, starts = json.dumps(url), json.dumps(case.starts)
    found = run(view, f"watchVideo({link}, {starts})")
    found["seam"] = run(view, f"watchVideoSeam({link}, {starts}, {case.end})", 120)
    if page:
        found["over"] = _watch_shots(view, page, case)["over"]
    return found


def watch_image(view, url, page, case):
    """What the decoder for scripts gives, if the browser has one, and what screenshots show of the image on a page."""
    found = run(view, f"watchImage({json.dumps(url)})") or {"duration": None, "pictures": None}
    found["seam"] = None
    # An image cannot be sought: its seam is waited for.
    if case.end <= 12:
        found["seam"] = _watch_shots(view, page, case)
        found["over"] = found["seam"]["over"]
    return found


def _watch_shots(view, page, case):
    view.goto(page)
    begun = time.monotonic()
    numbers, late, over = [], [], 0.0
    plays = case.loop + 1
    deadline = begun + case.end * (plays + 2) + 60
    # A screenshot can take a second and meet the same picture again, so this counts screenshots and not seconds.
    while len(late) < SHOTS or (case.loop == 0 and len(case.delays) > 1 and len(set(late)) < 2):
        if time.monotonic() > deadline:
            break
        width, _, rows = png.read(view.screenshot())
        numbers.append(player_cases.number(lambda x, y: rows[y][x * 3 + 1]))
        over = max(over, player_cases.ground_error(lambda x, y: rows[y][x * 3 : x * 3 + 3]))
        if time.monotonic() - begun > plays * case.end + (1 if case.loop else 0):
            late.append(numbers[-1])
    last = len(case.delays) - 1
    return {
        "reads": len(numbers), "unreadable": numbers.count(None), "over": over if case.isTransparent else None, "gaps": [],
        "stands": case.loop == 0 and last > 0 and len(set(late)) < 2, "continues": case.loop > 0 and set(late) != {last},
    }
