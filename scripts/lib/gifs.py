"""Generates small GIFs for checks without Swift. Each one uses one feature of the format (GIF89a)."""

import struct

PALETTE = [(0, 0, 0), (255, 255, 255), (220, 30, 30), (30, 180, 60), (40, 60, 220), (240, 200, 20), (128, 128, 128), (200, 150, 120)]


def head(width, height):
    """The screen descriptor with its palette, and an endless loop."""
    palette = bytes(part for color in PALETTE for part in color)
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0x82, 0, 0) + palette
            + b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")


def image(x, y, width, height, pixels, delay=10, disposal=1, transparent=None):
    """A graphic control extension and an image of palette indices. Codes have a constant length, which every decoder reads."""
    flags = disposal << 2 | (transparent is not None)
    control = b"\x21\xf9\x04" + struct.pack("<BHBB", flags, delay, transparent or 0, 0)
    bits, count = 0, 0
    codes = bytearray()

    def put(code):
        nonlocal bits, count
        bits |= code << count
        count += 4
        while count >= 8:
            codes.append(bits & 255)
            bits >>= 8
            count -= 8

    for at, pixel in enumerate(pixels):
        # A clear code (8) before the codes would need a fifth bit.
        if at % 6 == 0:
            put(8)
        put(pixel)
    put(9)
    codes.append(bits & 255)
    blocks = b"".join(bytes([len(codes[at : at + 255])]) + codes[at : at + 255] for at in range(0, len(codes), 255))
    return control + b"\x2c" + struct.pack("<HHHHB", x, y, width, height, 0) + b"\x03" + blocks + b"\x00"


def fill(width, height, color):
    return [color] * (width * height)


def samples():
    """Name → GIF. Fields of colour larger than a block of video, so that differences are due to composition and not to compression."""
    gifs = {}

    def add(name, width, height, *images):
        gifs[name] = head(width, height) + b"".join(images) + b";"

    def squares(side, disposal, transparent=None, delay=12):
        return [image(16 * at, 8 * at, side, side, fill(side, side, 2 + at), delay + at, disposal, transparent) for at in range(4)]

    ground = image(0, 0, 96, 64, fill(96, 64, 5), 10)
    add("keep", 96, 64, ground, *squares(32, 1))
    add("clear", 96, 64, ground, *squares(32, 2))
    add("restore", 96, 64, ground, *squares(32, 3))
    add("restore-by-4", 96, 64, ground, *squares(32, 4))
    holes = [2 if (at // 16 + at // 96 // 16) % 2 else 7 for at in range(96 * 64)]
    add("transparent", 96, 64, *(image(0, 0, 96, 64, [(c + at) % 8 if c == 2 else 7 for c in holes], 15, 2, 7) for at in range(3)))
    add("transparent-over-ground", 96, 64, ground, *(image(0, 0, 96, 64, holes, 9, disposal, 7) for disposal in (3, 1, 2, 1)))
    add("odd-sides", 97, 63, *(image(0, 0, 97, 63, fill(97, 63, color), 10) for color in (2, 3, 4)))
    add("uneven-delays", 64, 64, *(image(0, 0, 64, 64, fill(64, 64, 1 + at % 6), delay) for at, delay in enumerate((0, 1, 2, 3, 50, 7, 133, 4))))
    add("same-frames", 64, 64, *(image(0, 0, 64, 64, fill(64, 64, 2 + at // 3), 6) for at in range(9)))
    add("outside", 64, 64, image(0, 0, 64, 64, fill(64, 64, 4)), *(image(x, y, 40, 40, fill(40, 40, 3), 11, 2) for x, y in ((40, 40), (200, 200), (0, 50))))
    return gifs
