"""Reads screenshots and makes animations by Pillow, which scripts/setup --checks installs in .tools."""
import io
import random
import sys

import lab

sys.path += map(str, lab.ROOT.glob(".tools/lib/python3*/site-packages"))
try:
    import PIL.Image
    import PIL.ImageDraw
except ImportError:
    raise lab.Missing("Pillow is missing: scripts/setup --checks installs it") from None

# Milliseconds. Browsers show delays of up to 10 ms for 100 ms.
DELAYS = {"gif": (0, 10, 20, 30, 70, 120, 500), "png": (8, 10, 11, 75, 123, 250), "webp": (0, 1, 10, 11, 16, 33, 77, 500)}


def read(png):
    """A screenshot as a picture of R, G and B."""
    return PIL.Image.open(io.BytesIO(png)).convert("RGB")


def animation(kind, seed):
    """A GIF, APNG or WebP: rectangles that come and go, opaque, translucent and transparent, with all kinds of disposal and blending, odd
    sides, uneven delays, with and without loss. They are larger than a block of video, so that differences are due to composition and not
    to compression."""
    chance = random.Random(f"{kind} {seed}")
    width, height = chance.choice([(96, 64), (97, 63), (64, 64), (128, 80)])
    frames, count = [], chance.randrange(3, 9)
    ground = PIL.Image.new("RGBA", (width, height), chance.choice([(240, 200, 20, 255), (40, 60, 220, 255), (0, 0, 0, 0)]))
    for _ in range(count):
        picture = chance.choice([ground, *frames[-1:]]).copy()
        for _ in range(chance.randrange(1, 4)):
            left, top = 8 * chance.randrange(width // 8 - 2), 8 * chance.randrange(height // 8 - 2)
            alpha = chance.choice([255, 255, 0] if kind == "gif" else [255, 255, 200, 128, 64, 0])
            PIL.ImageDraw.Draw(picture).rectangle(
                (left, top, left + chance.choice([24, 32, 48]), top + chance.choice([24, 32, 48])), (*chance.randbytes(3), alpha))
        frames.append(picture)
    options = {"duration": [chance.choice(DELAYS[kind]) for _ in frames], "loop": 0}
    if kind != "webp":
        options["disposal"] = [chance.randrange(3) for _ in frames]
    if kind == "png":
        options["blend"] = [chance.randrange(2) for _ in frames]
    if kind == "webp":
        options |= {"quality": 90, "lossless": chance.random() < 0.5, "allow_mixed": chance.random() < 0.5}
    file = io.BytesIO()
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], **options)
    return file.getvalue()
