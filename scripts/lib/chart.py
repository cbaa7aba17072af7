"""Draws the picture of the page with 100 GIFs, with and without gifreel.js, in Chromium: one pair of bars per measure."""

import base64
import html

# The card has a background of its own, so that it is readable on light and dark pages.
STYLE = """
* { margin: 0; box-sizing: border-box }
body { background: transparent; font: 15px/1.3 "DejaVu Sans", "Noto Sans", sans-serif; color: #1f2933 }
#card { width: 760px; padding: 22px 26px 18px; background: #fff; border: 1px solid #c5ccd3; border-radius: 10px }
h1 { font-size: 18px }
p { color: #52606d; font-size: 13px }
h2 { font-size: 14px; margin-top: 14px }
.bar { display: grid; grid-template-columns: 92px 1fr; align-items: center; gap: 10px; margin-top: 5px; font-size: 13px }
.bar b { display: inline-block; height: 20px; border-radius: 3px; background: #9aa5b1; vertical-align: middle; min-width: 2px }
.bar.with b { background: #1170aa }
.bar span { margin-left: 8px; white-space: nowrap }
.bar em { font-style: normal; font-weight: bold; color: #0b5585; margin-left: 6px }
footer { margin-top: 14px; color: #52606d; font-size: 12px }
"""
# The longest bar, in pixels. It leaves room for its number.
LONGEST = 440


def page(title, subtitle, measures, footer):
    """The page of the chart. Each measure is a name, two numbers (without and with the script) and the text of a number."""
    rows = []
    for name, numbers, text in measures:
        rows.append(f"<h2>{html.escape(name)}</h2>")
        for label, number in zip(("GIFs", "gifreel.js"), numbers):
            width = round(LONGEST * number / max(numbers))
            share = f"<em>{number / numbers[0]:.0%}</em>" if label != "GIFs" else ""
            rows.append(
                f'<div class="bar{"" if label == "GIFs" else " with"}"><div>{label}</div>'
                f'<div><b style="width: {width}px"></b><span>{html.escape(text(number))}</span>{share}</div></div>')
    return (
        f"<!DOCTYPE html><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<div id=card><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p>{''.join(rows)}"
        f"<footer>{html.escape(footer)}</footer></div>").encode()


def draw(tab):
    """The picture of the chart that a tab shows, as the bytes of a PNG with two pixels per unit and a transparent surrounding."""
    tab.command("Emulation.setDefaultBackgroundColorOverride", {"color": {"r": 0, "g": 0, "b": 0, "a": 0}})
    box = tab.evaluate("(({ x, y, width, height }) => ({ x, y, width, height }))(document.getElementById('card').getBoundingClientRect())")
    answer = tab.command("Page.captureScreenshot", {"format": "png", "clip": {**box, "scale": 2}, "captureBeyondViewport": True})
    return base64.b64decode(answer["data"])
