"""Generates small GIFs for checks (GIF89a). Codes have a constant length, which every decoder reads."""

import random
import struct

PALETTE = [(0, 0, 0), (255, 255, 255), (220, 30, 30), (30, 180, 60), (40, 60, 220), (240, 200, 20), (128, 128, 128), (200, 150, 120)]


def head(width, height, palette=PALETTE, loop=0):
    """The screen descriptor with its palette, whose length is a power of two, and the loop count: 0 is endless, None leaves it out."""
    size = len(palette).bit_length() - 2
    found = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80 | size, 0, 0) + bytes(part for color in palette for part in color)
    return found if loop is None else found + b"\x21\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", loop) + b"\x00"


def image(x, y, width, height, pixels, delay=10, disposal=1, transparent=None, bits=3):
    """A graphic control extension and an image of palette indices of a number of bits."""
    control = b"\x21\xf9\x04" + struct.pack("<BHBB", disposal << 2 | (transparent is not None), delay, transparent or 0, 0)
    codes = _codes(pixels, bits)
    blocks = b"".join(bytes([len(codes[at : at + 255])]) + codes[at : at + 255] for at in range(0, len(codes), 255))
    return control + b"\x2c" + struct.pack("<HHHHB", x, y, width, height, 0) + bytes([bits]) + blocks + b"\x00"


def _codes(pixels, bits):
    """LZW without a dictionary: a clear code precedes the point at which codes would become longer."""
    clear = 1 << bits
    codes = []
    for at in range(0, len(pixels), clear - 2):
        codes += [clear, *pixels[at : at + clear - 2]]
    words = [f"{code:0{bits + 1}b}" for code in range(clear + 2)]
    text = "".join(words[code] for code in reversed([*codes, clear + 1]))
    return int(text, 2).to_bytes((len(text) + 7) // 8, "little")


def bars(number, frames=6, side=64, width=None):
    """An animation of moving coloured bars, different for each number."""
    width = width or side
    chance = random.Random(number)
    palette = [chance.randbytes(3) for _ in range(8)]
    pictures = (
        [(x // 8 + y // 16 + frame + number) % 8 for y in range(side) for x in range(width)] for frame in range(frames))
    return head(width, side, palette) + b"".join(
        image(0, 0, width, side, pixels, 4 + chance.randrange(8)) for pixels in pictures) + b";"


def noise(width, height, frames, seed=1):
    """A GIF of random pixels, which hardly compress: its MP4 has about half a byte per pixel and frame."""
    chance = random.Random(seed)
    palette = [(index * 37 & 255, index * 91 & 255, index) for index in range(256)]
    return head(width, height, palette) + b"".join(
        image(0, 0, width, height, chance.randbytes(width * height), 5, bits=8) for _ in range(frames)) + b";"
