"""Reads the PNGs that browsers make of their windows: 8 bits per channel, RGB or RGBA, not interlaced (W3C PNG §9, §11)."""

import struct
import zlib


def read(data):
    """Width, height and rows of pixels as bytes R, G, B."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, body = 8, b""
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", content)
            assert depth == 8 and colour in (2, 6) and interlace == 0
        elif kind == b"IDAT":
            body += content
        position += 12 + length
    size = 4 if colour == 6 else 3
    raw = zlib.decompress(body)
    rows, before = [], bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        row = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + width * size]), before, size)
        rows.append(b"".join(bytes(row[at : at + 3]) for at in range(0, len(row), size)) if size == 4 else bytes(row))
        before = row
    return width, height, rows


def _unfiltered(kind, row, before, size):
    for at in range(len(row)):
        left = row[at - size] if at >= size else 0
        above = before[at]
        if kind == 1:
            row[at] = row[at] + left & 255
        elif kind == 2:
            row[at] = row[at] + above & 255
        elif kind == 3:
            row[at] = row[at] + (left + above) // 2 & 255
        elif kind == 4:
            corner = before[at - size] if at >= size else 0
            guess = left + above - corner
            distances = (abs(guess - left), abs(guess - above), abs(guess - corner))
            row[at] = row[at] + (left, above, corner)[distances.index(min(distances))] & 255
    return row
