"""Hostile APNGs and WebPs: small files whose headers, chunks or code streams make claims that a reader must not believe."""
import struct
import zlib

from animations import (
    LOOP, SIGNATURE, animation, apng, box, canvas, chunk, control, frame, header, pixels, plain, riff, webp)


def png_bombs():
    tiny = apng(4, 4, 2)
    bomb = b"x\0\0" + zlib.compress(b"\0" * (100 << 20), 9)
    still = SIGNATURE + header(4, 4) + chunk(b"IDAT", pixels(4, 4)) + chunk(b"IEND", b"")
    head = SIGNATURE + header(4, 4) + animation(2) + control(0, 4, 4) + chunk(b"IDAT", pixels(4, 4))
    palette = chunk(b"PLTE", b"\xff\0\0")
    return [
        ("apng_plain", "ok", tiny),
        ("apng_still", "reject", still),
        ("apng_signature_only", "reject", SIGNATURE),
        ("apng_cut", "reject", tiny[:90]),
        ("apng_cut_in_second", "ok", tiny[:-30]),
        ("apng_canvas_huge", "reject", SIGNATURE + header(0x7FFFFFFF, 0x7FFFFFFF) + animation(1) + chunk(b"IDAT", b"x")),
        ("apng_canvas_none", "reject", SIGNATURE + header(0, 4) + animation(1) + chunk(b"IDAT", b"x")),
        ("apng_side_long", "reject", apng(5000, 1, 1)),
        ("apng_chunk_beyond_end", "reject", SIGNATURE + header(4, 4) + animation(1) + b"\x7f\xff\xff\xffIDATx"),
        ("apng_chunk_longest", "reject", SIGNATURE + header(4, 4) + animation(1) + b"\xff\xff\xff\xffIDATx" * 9),
        ("apng_pixels_missing", "reject", SIGNATURE + header(4000, 2000) + animation(1) + control(0, 4000, 2000)
            + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")),
        ("apng_pixels_surplus", "ok", SIGNATURE + header(4, 4) + animation(1) + control(0, 4, 4)
            + chunk(b"IDAT", zlib.compress(b"\0" * (64 << 20), 9)) + chunk(b"IEND", b"")),
        ("apng_profile_bomb", "ok", apng(4, 4, 2, head=chunk(b"iCCP", bomb))),
        ("apng_text_bomb", "ok", apng(4, 4, 2, head=chunk(b"zTXt", bomb) * 3)),
        ("apng_blank_one", "either", apng(2000, 2000, 1, depth=1, kind=0)),
        ("apng_blank_many", "reject", apng(2800, 2800, 200, depth=1, kind=0)),
        ("apng_16_bits", "ok", apng(1000, 1000, 3, depth=16)),
        ("apng_frames_many", "reject", apng(16, 16, 6000, size=(1, 1))),
        ("apng_frames_claimed", "ok", apng(4, 4, 2, claimed=0x7FFFFFFF)),
        ("apng_chunks_tiny", "ok", head + control(1, 4, 4) + b"".join(
            chunk(b"fdAT", struct.pack(">I", 2 + index) + pixels(4, 4)[index:index + 1]) for index in range(len(pixels(4, 4))))
            + b"".join(chunk(b"fdAT", struct.pack(">I", 2 + len(pixels(4, 4)) + index)) for index in range(100_000)) + chunk(b"IEND", b"")),
        ("apng_texts_many", "ok", apng(4, 4, 2, head=chunk(b"tEXt", b"a\0b") * 200_000)),
        ("apng_frame_outside", "either", head + control(1, 4, 4, 1, 0) + chunk(b"fdAT", struct.pack(">I", 2) + pixels(4, 4))),
        ("apng_frame_far", "either", head + control(1, 4, 4, 0xFFFFFFFF, 0xFFFFFFFF) + chunk(b"fdAT", struct.pack(">I", 2))),
        ("apng_frame_empty", "either", head + control(1, 0, 0) + chunk(b"fdAT", struct.pack(">I", 2))),
        ("apng_sequence_wrong", "either", head + control(7, 4, 4) + chunk(b"fdAT", struct.pack(">I", 8) + pixels(4, 4))),
        ("apng_data_short", "either", head + control(1, 4, 4) + chunk(b"fdAT", b"\0")),
        ("apng_checksum_wrong", "ok", apng(4, 4, 3, flaw=1)),
        ("apng_first_checksum_wrong", "reject", SIGNATURE + header(4, 4) + animation(1) + control(0, 4, 4)
            + chunk(b"IDAT", pixels(4, 4), 1) + chunk(b"IEND", b"")),
        ("apng_palette_missing", "reject", apng(4, 4, 1, kind=3)),
        ("apng_palette_short", "either", SIGNATURE + header(4, 1, 8, 3) + palette + animation(1) + control(0, 4, 1)
            + chunk(b"IDAT", zlib.compress(b"\0\0\xff\x80\x01")) + chunk(b"IEND", b"")),
        ("apng_coding_wrong", "reject", apng(4, 4, 1).replace(header(4, 4), header(4, 4, 3, 6))),
        ("apng_delays_odd", "ok", SIGNATURE + header(4, 4) + animation(6) + b"".join(
            control(2 * index - (index > 0), 4, 4, delay=(65535 - index, (65521, 65519, 65497, 65479, 65449, 1)[index]))
            + (chunk(b"IDAT", pixels(4, 4)) if index == 0 else chunk(b"fdAT", struct.pack(">I", 2 * index) + pixels(4, 4)))
            for index in range(6)) + chunk(b"IEND", b"")),
        ("apng_in_apng", "either", head + tiny),
    ]


def webp_bombs():
    tiny = webp(4, 4, frame(4, 4, plain(4, 4)), frame(4, 4, plain(4, 4, (255, 0, 0, 128))))
    picture = plain(4, 4)
    return [
        ("webp_plain", "ok", tiny),
        ("webp_still", "reject", riff(plain(4, 4))),
        ("webp_header_only", "reject", tiny[:12]),
        ("webp_cut", "reject", tiny[:40]),
        ("webp_cut_in_second", "ok", tiny[:-5]),
        ("webp_canvas_huge", "reject", webp(1 << 24, 1 << 8, frame(4, 4, picture))),
        ("webp_canvas_wide", "reject", webp(4000, 4000, frame(4, 4, picture))),
        ("webp_blank_one", "either", webp(2000, 2000, frame(2000, 2000, plain(2000, 2000)))),
        ("webp_blank_many", "reject", webp(2800, 2800, *[frame(2800, 2800, plain(2800, 2800, (index, 0, 0, 255))) for index in range(200)])),
        ("webp_frames_many", "reject", webp(16, 16, *[frame(1, 1, plain(1, 1, (index % 256, 0, 0, 255))) for index in range(6000)])),
        ("webp_frames_none", "reject", webp(4, 4)),
        ("webp_frame_outside", "reject", webp(4, 4, frame(4, 4, picture, x=2))),
        ("webp_frame_far", "reject", webp(4, 4, frame(4, 4, picture, x=0x1FFFFFE, y=0x1FFFFFE))),
        ("webp_frame_other_size", "either", webp(8, 8, frame(8, 8, picture))),
        ("webp_frame_without_picture", "reject", webp(4, 4, frame(4, 4, b""))),
        ("webp_frame_in_frame", "either", webp(4, 4, frame(4, 4, frame(4, 4, picture)))),
        ("webp_picture_cut", "reject", webp(4, 4, frame(4, 4, picture[:12]))),
        ("webp_picture_random", "reject", webp(64, 64, frame(64, 64, box(b"VP8L", plain(64, 64)[8:13] + bytes(range(255)))))),
        ("webp_lossy_random", "reject", webp(64, 64, frame(64, 64, box(b"VP8 ", b"\x30\x01\0\x9d\x01\x2a\x40\0\x40\0" + bytes(range(255)))))),
        ("webp_alpha_random", "either", webp(64, 64, frame(64, 64, box(b"ALPH", b"\x01" + bytes(range(255))) + plain(64, 64)))),
        ("webp_length_wrong", "either", webp(4, 4, box(b"ANMF", b"\0" * 40, 0xFFFFFFF0))),
        ("webp_riff_length_wrong", "either", b"RIFF\xff\xff\xff\xffWEBP" + tiny[12:]),
        ("webp_riff_length_short", "reject", b"RIFF\x10\0\0\0WEBP" + tiny[12:]),
        ("webp_profile_long", "either", riff(canvas(4, 4, 0x32) + box(b"ICCP", b"\0" * 3_000_000) + LOOP + frame(4, 4, picture))),
        ("webp_chunks_many", "either", riff(canvas(4, 4) + LOOP + box(b"XXXX", b"") * 300_000 + frame(4, 4, picture))),
        ("webp_delays_long", "either", webp(4, 4, *[frame(4, 4, plain(4, 4, (index, 0, 0, 255)), delay=0xFFFFFF) for index in range(8)])),
        ("webp_delays_none", "ok", webp(4, 4, *[frame(4, 4, plain(4, 4, (index, 0, 0, 255)), delay=0) for index in range(8)])),
        ("webp_animation_flag_only", "reject", riff(canvas(4, 4) + plain(4, 4))),
    ]


def all_bombs():
    """Name, expected result (reject, ok or either) and file."""
    return png_bombs() + webp_bombs()
