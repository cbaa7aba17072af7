"""Draws numbers over time as SVG, on a card that is readable on light and dark pages."""
import html
import itertools

STEP = 10
WIDTH, PANEL, LEFT, RIGHT, TOP = 760, 120, 60, 20, 56
COLORS = ("#1170aa", "#c85200")


def steps(samples, summary):
    """Samples of (seconds, number) as one (seconds, number) for each ten seconds; `summary` makes a number of many."""
    groups = {}
    for second, number in samples:
        groups.setdefault(int(second // STEP), []).append(number)
    return [(step * STEP, summary(numbers)) for step, numbers in sorted(groups.items())]


def _ceiling(number):
    """The next number of the form 1, 2 or 5 times a power of ten, from 0.001 on."""
    return next(factor * 10**power for power in itertools.count(-3) for factor in (1, 2, 5) if factor * 10**power >= number)


def _text(x, y, words, size=12, color="#1f2933", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" {more}>{html.escape(words)}</text>'


def timelines(title, panels):
    """Numbers over the time of a run, one panel for each quantity. Each panel is a name and its lines; each line is a name, empty if it is
    the only one, and (seconds, number) pairs."""
    end = max(second for _, lines in panels for _, points in lines for second, _ in points) or 1
    height = TOP + PANEL * len(panels) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="DejaVu Sans, sans-serif">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10" fill="#fff" stroke="#c5ccd3"/>',
        _text(20, 30, title, 16, more='font-weight="bold"')]
    for number, (name, lines) in enumerate(panels):
        top, bottom = TOP + number * PANEL + 22, TOP + number * PANEL + PANEL - 14
        most = _ceiling(max((value for _, points in lines for _, value in points), default=1))
        parts.append(_text(LEFT, top - 8, name))
        for share in (0, 0.5, 1):
            y = bottom - share * (bottom - top)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e7eb"/>')
            parts.append(_text(LEFT - 8, y + 4, f"{most * share:g}", color="#52606d", more='text-anchor="end"'))
        for index, (label, points) in enumerate(lines):
            path = " ".join(
                f"{LEFT + second / end * (WIDTH - LEFT - RIGHT):.1f},{bottom - value / most * (bottom - top):.1f}"
                for second, value in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[index]}" stroke-width="1.5"/>')
            if label:
                parts.append(_text(WIDTH - RIGHT - 130 + index * 70, top - 8, label, color=COLORS[index]))
    for minute in range(0, int(end // 60) + 1, max(1, int(end // 60) // 6)):
        x = LEFT + minute * 60 / end * (WIDTH - LEFT - RIGHT)
        parts.append(_text(x, bottom + 14, f"{minute} min", color="#52606d", more='text-anchor="middle"'))
    return "\n".join([*parts, "</svg>", ""])
