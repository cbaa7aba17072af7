"""Draws numbers over the time of a run as SVG: one panel for each quantity, on a card that is readable on light and dark pages."""
import html

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
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * power >= number:
                return factor * power
        power *= 10


def svg(title, panels):
    """The chart. Each panel is a name and its lines; each line is a name, empty if it is the only one, and (seconds, number) pairs."""
    end = max(second for _, lines in panels for _, points in lines for second, _ in points) or 1
    height = TOP + PANEL * len(panels) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="DejaVu Sans, sans-serif" font-size="12">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10" fill="#fff" stroke="#c5ccd3"/>',
        f'<text x="20" y="30" font-size="16" font-weight="bold" fill="#1f2933">{html.escape(title)}</text>',
    ]
    for number, (name, lines) in enumerate(panels):
        top, bottom = TOP + number * PANEL + 22, TOP + number * PANEL + PANEL - 14
        most = _ceiling(max((value for _, points in lines for _, value in points), default=1))
        parts.append(f'<text x="{LEFT}" y="{top - 8}" fill="#1f2933">{html.escape(name)}</text>')
        for share in (0, 0.5, 1):
            y = bottom - share * (bottom - top)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e7eb"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#52606d">{most * share:g}</text>')
        for index, (label, points) in enumerate(lines):
            path = " ".join(
                f"{LEFT + second / end * (WIDTH - LEFT - RIGHT):.1f},{bottom - value / most * (bottom - top):.1f}"
                for second, value in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[index]}" stroke-width="1.5"/>')
            if label:
                parts.append(
                    f'<text x="{WIDTH - RIGHT - 130 + index * 70}" y="{top - 8}" fill="{COLORS[index]}">{html.escape(label)}</text>')
        if number == len(panels) - 1:
            for minute in range(0, int(end // 60) + 1, max(1, int(end // 60) // 6)):
                parts.append(
                    f'<text x="{LEFT + minute * 60 / end * (WIDTH - LEFT - RIGHT):.1f}" y="{bottom + 14}" text-anchor="middle"'
                    f' fill="#52606d">{minute} min</text>')
    return "\n".join(parts) + "\n</svg>\n"
