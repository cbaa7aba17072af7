"""Writes APNGs (PNG third edition) and animated WebPs (RFC 9649) without Pillow, piece by piece, so that a check can make any file.

`apng_samples` and `webp_samples` are small animations for checks in browsers. Each one uses one feature of the format.
"""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width, height, depth=8, kind=6):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))


def control(sequence, width, height, x=0, y=0, delay=(1, 10), operations=(0, 0)):
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", sequence, width, height, x, y, *delay, *operations))


def animation(frames):
    return chunk(b"acTL", struct.pack(">II", frames, 0))


def riff(body):
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def box(kind, data):
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def number(value, count):
    return struct.pack("<I", value)[:count]


def canvas(width, height):
    return box(b"VP8X", bytes([0x12, 0, 0, 0]) + number(width - 1, 3) + number(height - 1, 3))


def two_colors(width, height, pixels):
    """A picture without loss in VP8L. Each channel has at most two values, so that its code has one bit or none."""
    bits = [(0x2F, 8), (width - 1, 14), (height - 1, 14), (1, 1), (0, 3), (0, 1), (0, 1), (0, 1)]
    symbols = []
    for channel in (1, 0, 2, 3):
        values = sorted({pixel[channel] for pixel in pixels})
        assert len(values) <= 2, "a channel has more than two values"
        symbols.append((channel, values))
        bits += [(1, 1), (len(values) - 1, 1), (1, 1), *((value, 8) for value in values)]
    bits += [(1, 1), (0, 1), (0, 1), (0, 1)]
    bits += [(values.index(pixel[channel]), 1) for pixel in pixels for channel, values in symbols if len(values) > 1]
    # The lowest bit of each number comes first.
    text = "".join(format(value, f"0{count}b")[::-1] for value, count in bits)[::-1]
    return box(b"VP8L", int(text, 2).to_bytes((len(text) + 7) // 8, "little"))


def plain(width, height, color=(0, 255, 0, 255)):
    """A picture of one colour, whose pixels need no bits."""
    return two_colors(width, height, [color])


def frame(width, height, picture, x=0, y=0, delay=100, flags=0):
    head = number(x // 2, 3) + number(y // 2, 3) + number(width - 1, 3) + number(height - 1, 3) + number(delay, 3) + bytes([flags])
    return box(b"ANMF", head + picture)


LOOP = box(b"ANIM", b"\0\0\0\0\0\0")


def webp(width, height, *frames):
    return riff(canvas(width, height) + LOOP + b"".join(frames))


def apng_of(width, height, images, kind=6, depth=8, head=b"", apart=False):
    """An APNG. An image is `(x, y, width, height, rows, delay, operations)` with rows of coded bytes. With `apart`, the first one is only
    for viewers that know no animations, and not part of it."""
    shown = images[1:] if apart else images
    out = [SIGNATURE, header(width, height, depth, kind), head, animation(len(shown))]
    sequence = 0
    for index, (x, y, wide, high, rows, delay, operations) in enumerate(images):
        data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
        if index > 0 or not apart:
            out.append(control(sequence, wide, high, x, y, delay, operations))
            sequence += 1
        if index > 0:
            out.append(chunk(b"fdAT", struct.pack(">I", sequence) + data))
            sequence += 1
        else:
            out.append(chunk(b"IDAT", data))
    return b"".join(out) + chunk(b"IEND", b"")


def plain_rows(width, height, pixel):
    return [bytes(pixel) * width] * height


def picture_chunks(data):
    """The chunks of a still WebP that hold its picture, for a frame of an animation."""
    position, found = 12, b""
    while position < len(data):
        length = 8 + struct.unpack("<I", data[position + 4 : position + 8])[0]
        length += length & 1
        if data[position : position + 4] in (b"ALPH", b"VP8 ", b"VP8L"):
            found += data[position : position + length]
        position += length
    return found


def checks(width, height, first, second):
    """Squares of two colours, each of 16 pixels."""
    return [(first, second)[(at // width // 16 + at % width // 16) % 2] for at in range(width * height)]


YELLOW, RED, GREEN, BLUE = (240, 200, 20, 255), (220, 30, 30, 255), (30, 180, 60, 255), (40, 60, 220, 255)
COLORS = [RED, GREEN, BLUE, (128, 128, 128, 255), (255, 255, 255, 255), (200, 150, 120, 255)]
VEILS = [(220, 30, 30, 128), (30, 180, 60, 64), (40, 60, 220, 200), (128, 128, 128, 0)]
NONE, CLEAR, RESTORE = 0, 1, 2
REPLACE, OVER = 0, 1


def apng_samples():
    """Name → APNG. Fields of colour larger than a block of video, so that differences are due to composition and not to compression."""
    ground = (0, 0, 96, 64, plain_rows(96, 64, YELLOW), (1, 10), (NONE, REPLACE))

    def squares(disposal, blend):
        return [
            (16 * at, 8 * at, 32, 32, plain_rows(32, 32, veil), (12 + at, 100), (disposal, blend)) for at, veil in enumerate(VEILS)]

    palette = chunk(b"PLTE", bytes(part for color in (YELLOW, RED, BLUE) for part in color[:3])) + chunk(b"tRNS", b"\xff\x80\0")
    deep = [b"\x80\x00\xff\xff", b"\x20\x00\x80\x00", b"\xff\xff\x40\x00"]
    # Whole milliseconds, because Chromium cuts off the rest of a delay.
    odd = ((1, 8), (3, 40), (500, 2000), (0, 0), (10, 1000), (11, 1000), (123, 1000))
    return {
        "over": apng_of(96, 64, [ground, *squares(NONE, OVER)]),
        "clear": apng_of(96, 64, [ground, *squares(CLEAR, OVER)]),
        "restore": apng_of(96, 64, [ground, *squares(RESTORE, OVER)]),
        "replace": apng_of(96, 64, [ground, *squares(NONE, REPLACE)]),
        "apart": apng_of(96, 64, [ground, (0, 0, 96, 64, plain_rows(96, 64, BLUE), (1, 10), (NONE, REPLACE)), *squares(RESTORE, OVER)], apart=True),
        "palette": apng_of(
            96, 64, [(0, 0, 96, 64, plain_rows(96, 64, [0]), (1, 10), (NONE, REPLACE))] + [
                (16 * at, 8, 40, 40, plain_rows(40, 40, [1 + at % 2]), (1, 8), (at % 3, OVER)) for at in range(4)], 3, 8, palette),
        "grey-of-16-bits": apng_of(
            96, 64, [(0, 0, 96, 64, plain_rows(96, 64, grey), (1, 9), (NONE, OVER)) for grey in deep], 4, 16),
        "fractions": apng_of(
            97, 63, [(0, 0, 97, 63, plain_rows(97, 63, COLORS[at % 6]), delay, (NONE, REPLACE)) for at, delay in enumerate(odd)]),
    }


def webp_samples(lossy):
    """Name → WebP, as `apng_samples`. `lossy` makes the chunks of a picture with loss from a width, a height and two colours."""
    ground = frame(96, 64, two_colors(96, 64, checks(96, 64, YELLOW, BLUE)), delay=100, flags=2)

    def squares(flags, side=32):
        return [frame(side, side, plain(side, side, veil), 16 * at, 8 * at, 120 + 10 * at, flags) for at, veil in enumerate(VEILS)]

    delays = (0, 1, 10, 11, 16, 33, 500, 77)
    return {
        "over": webp(96, 64, ground, *squares(0)),
        "clear": webp(96, 64, ground, *squares(1)),
        "replace": webp(96, 64, ground, *squares(2)),
        "clear-and-replace": webp(97, 63, frame(97, 63, plain(97, 63, YELLOW)), *squares(3, 31)),
        "uneven-delays": webp(64, 64, *(frame(64, 64, plain(64, 64, COLORS[at % 6]), delay=delay) for at, delay in enumerate(delays))),
        "same-frames": webp(64, 64, *(frame(64, 64, plain(64, 64, COLORS[at // 3]), delay=60) for at in range(9))),
        "lossy": webp(96, 64, *(frame(96, 64, lossy(96, 64, COLORS[at], YELLOW), delay=90, flags=2) for at in range(5))),
        "lossy-and-not": webp(
            96, 64, ground, frame(64, 32, lossy(64, 32, RED, (0, 0, 0, 0)), 16, 16, 110), *squares(1)[:2],
            frame(48, 48, lossy(48, 48, GREEN, COLORS[4]), 32, 8, 130, 1), *squares(0)[2:]),
    }
