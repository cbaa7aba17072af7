"""The parts of scripts/checks/pages and scripts/checks/script: GIFs, a server, tabs and the actions of a visitor."""
import base64
import contextlib
import io
import json
import random
import sys

import gifs
import lab

# scripts/setup --checks installs Pillow in .tools.
sys.path += map(str, lab.ROOT.glob(".tools/lib/python3*/site-packages"))
try:
    import PIL.Image
except ImportError:
    raise lab.Missing("Pillow is missing: scripts/setup --checks installs it") from None

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


def square(loops, frames=4, delay=10, width=320, height=180):
    """A GIF with a square that moves; `loops` is its count, None for none. Only its first frame has a red area."""
    colors = [2, *(3 + at % 2 for at in range(1, frames))]
    return gifs.head(width, height, loop=loops) + b"".join(
        gifs.image(0, 0, width, height, [color] * (width * height), delay) for color in colors) + b";"


def noise(frames, width, height):
    """A GIF that takes an encoder seconds: six pictures of noise, of which no frame follows from the ones before."""
    numbers = random.Random(1)
    pictures = [
        gifs.image(0, 0, width, height, [numbers.randrange(8) for _ in range(width * height)]) for _ in range(6)]
    return gifs.head(width, height) + b"".join(pictures[at % 6] for at in range(frames)) + b";"


@contextlib.contextmanager
def gifreel(path, **settings):
    """Starts a server with its own cache and yields its address."""
    with lab.started(path, log__level="error", **settings) as server:
        yield server.url()


class Tab:
    """A page with the preferences of its visitor, for the block."""

    def __init__(self, browser, url=None, size="desktop", scheme="light", still=False):
        self.page = browser.open()
        self.page.set_size(*SIZES[size])
        self.page.command("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})
        self.page.command("Page.addScriptToEvaluateOnNewDocument", {"source": """
            window.shifts = [];
            new PerformanceObserver((list) => shifts.push(...list.getEntries().map((entry) => entry.value)))
                .observe({ type: 'layout-shift', buffered: true });
            window.seen = [];
            for (const name of ['play', 'playing', 'pause', 'seeking', 'ended', 'loadeddata'])
                document.addEventListener(name, () => seen.push(name), true);"""})
        if url:
            self.page.goto(url)

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.page.close()


def press(page, key):
    name, code, text = {"Tab": ("Tab", 9, ""), "Space": (" ", 32, " "), "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, "")}[key]
    event = {"key": name, "code": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
    page.command("Input.dispatchKeyEvent", {"type": "keyDown" if text else "rawKeyDown", **event})
    page.command("Input.dispatchKeyEvent", {"type": "keyUp", **event})


def drop(page, data, name="dropped.gif", how="drop"):
    """Drops, pastes or chooses a file like a visitor."""
    text = base64.b64encode(data).decode()
    page.evaluate(f"""(() => {{
        const bytes = Uint8Array.from(atob('{text}'), (c) => c.charCodeAt(0));
        const file = new File([bytes], {json.dumps(name)}, {{ type: 'image/gif' }});
        const transfer = new DataTransfer();
        transfer.items.add(file);
        if ('{how}' === 'drop') document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: transfer, bubbles: true, cancelable: true }}));
        if ('{how}' === 'paste') document.body.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: transfer, bubbles: true }}));
        if ('{how}' === 'choose') {{
            document.getElementById('file').files = transfer.files;
            document.getElementById('file').dispatchEvent(new Event('change', {{ bubbles: true }}));
        }}
    }})()""")


def ask(page, url):
    page.evaluate(f"document.getElementById('url').value = {json.dumps(url)}; document.getElementById('link').requestSubmit()")


DONE = "!document.getElementById('result').hidden && document.getElementById('progress').hidden"
TEXT = "document.getElementById({}).textContent"


def text(page, name):
    return page.evaluate(TEXT.format(json.dumps(name)))


def wait_for_video(page):
    """Waits until a new result is shown and its video plays."""
    page.wait_for(DONE)
    page.wait_for("document.getElementById('mp4').currentTime > 0")


def box_of(page, element):
    """The box of an element on the page."""
    return page.evaluate(f"(({{ x, y, width, height }}) => ({{ x, y, width, height }}))({element}.getBoundingClientRect())")


def red(page):
    """The share of red, which only the first frame has, in the area of the video."""
    box = box_of(page, "video")
    image = PIL.Image.open(io.BytesIO(page.screenshot(box))).convert("RGB")
    return sum(r > 180 and g < 80 and b < 80 for r, g, b in image.getdata()) / (image.width * image.height)
