"""Hostile GIFs: small files whose headers, frames or code streams make claims that a reader must not believe."""
import struct


def header(width, height, palette=True):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80 if palette else 0, 0, 0) + (b"\0\0\0\xff\xff\xff" if palette else b"")


def image(width, height, data, x=0, y=0):
    return b"," + struct.pack("<HHHHB", x, y, width, height, 0) + data


def control(delay):
    return b"!\xf9\x04\0" + struct.pack("<H", delay) + b"\0\0"


def blocks(data):
    return b"".join(bytes([len(data[at:at + 255])]) + data[at:at + 255] for at in range(0, len(data), 255)) + b"\0"


def pack(codes):
    """Packs codes of given widths, least significant bit first."""
    bits = count = 0
    out = bytearray()
    for code, width in codes:
        bits |= code << count
        count += width
        while count >= 8:
            out.append(bits & 255)
            bits >>= 8
            count -= 8
    if count:
        out.append(bits & 255)
    return bytes(out)


def uniform(pixels):
    """Encodes `pixels` zeros in the fewest LZW codes: each code stands for a string one longer than the last."""
    codes, width, following, left, length = [(4, 3)], 3, 6, pixels, 0
    while left > 0:
        if length == 0:
            codes.append((0, width))
            left, length = left - 1, 1
            continue
        length += 1
        codes.append((following, width))
        left, following = left - length, following + 1
        if following == 1 << width and width < 12:
            width += 1
        if following >= 4095:
            codes.append((4, width))
            width, following, length = 3, 6, 0
    codes.append((5, width))
    return b"\x02" + blocks(pack(codes))


FOUR = b"\x02" + blocks(pack([(4, 3)] + [(value, 3) for index in range(8) for value in (index % 2, 4)] * 2 + [(5, 3)]))
NETSCAPE = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"


def plain():
    """A valid GIF with two frames."""
    return header(4, 4) + control(5) + image(4, 4, FOUR) + control(5) + image(4, 4, uniform(16)) + b";"


def all_bombs():
    """Name, expected result (reject, ok or either) and file."""
    return [
        ("plain", "ok", plain()),
        ("empty", "reject", b""),
        ("header_only", "reject", header(4, 4)),
        ("header_cut", "reject", header(4, 4)[:9]),
        ("html", "reject", b"<html><body>not found</body></html>"),
        ("canvas_huge", "reject", header(65535, 65535) + image(1, 1, uniform(1)) + b";"),
        ("frame_huge", "reject", header(4, 4) + image(65535, 65535, uniform(1)) + b";"),
        ("frame_flat", "reject", header(4, 4) + image(0, 4, FOUR) + b";"),
        ("frame_outside", "ok", header(4, 4) + image(4, 4, FOUR) + image(4, 4, FOUR, 60000, 60000) + b";"),
        ("nothing_to_show", "reject", header(0, 0) + image(0, 0, FOUR) + b";"),
        ("no_palette", "either", header(4, 4, palette=False) + image(4, 4, FOUR) + b";"),
        ("code_size_0", "either", header(4, 4) + image(4, 4, b"\x00" + blocks(b"\0" * 8)) + b";"),
        ("code_size_255", "either", header(4, 4) + image(4, 4, b"\xff" + blocks(b"\0" * 8)) + b";"),
        ("clear_storm", "either", header(64, 64) + image(64, 64, b"\x02" + blocks(b"\x24\x49\x92" * 40_000)) + b";"),
        ("codes_random", "either", header(64, 64) + image(64, 64, b"\x08" + blocks(bytes(index * 167 % 251 for index in range(9000)))) + b";"),
        ("ratio_one", "either", header(2000, 2000) + image(2000, 2000, uniform(4_000_000)) + b";"),
        ("ratio_many", "either", header(1000, 1000) + (control(2) + image(1000, 1000, uniform(1_000_000))) * 60 + b";"),
        ("frames_many", "either", header(16, 16) + NETSCAPE + (control(2) + image(1, 1, uniform(1))) * 6000 + b";"),
        ("delays_long", "either", header(4, 4) + (control(65535) + image(4, 4, FOUR)) * 3 + b";"),
        ("comments_many", "either", header(4, 4) + b"!\xfe" + blocks(b"A" * 150_000) + image(4, 4, FOUR) + b";"),
        ("cut_in_data", "either", (header(64, 64) + image(64, 64, uniform(4096)))[:48]),
        ("loops_many", "ok", header(4, 4) + NETSCAPE * 2000 + image(4, 4, FOUR) + b";"),
    ]
