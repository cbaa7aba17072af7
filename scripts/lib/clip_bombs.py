"""Hostile clips and image sequences: small files with false claims in their boxes, tables or elements. Each is a file that gifreel
wrote, with one claim changed."""
import os
import struct
import subprocess
import tempfile
import zlib

import gifs

CONTAINERS = (b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl")


def box(kind, body, size=None):
    """A box of an ISO base media file. `size`: what it claims instead of its length."""
    return struct.pack(">I", len(body) + 8 if size is None else size) + kind + body


def boxes(data):
    """Type and body of each box."""
    found, at = [], 0
    while at + 8 <= len(data):
        size = struct.unpack_from(">I", data, at)[0]
        found.append((data[at + 4:at + 8], data[at + 8:at + size]))
        at += size
    return found


def changed(data, path, change):
    """Replaces the box at a path by the bytes that `change` returns for its body. The tables of offsets stay as they are, so the
    media have to come first."""
    return b"".join(
        box(kind, body) if kind != path[0] else change(body) if len(path) == 1 else box(kind, changed(body, path[1:], change))
        for kind, body in boxes(data))


def body(data, *path):
    for kind in path:
        data = dict(boxes(data))[kind]
    return data


def media_first(data):
    """The same file with its media before its index, so that the index may change its length."""
    parts = dict(boxes(data))
    start = len(box(b"ftyp", parts[b"ftyp"])) + 8
    moved = start - (data.index(b"mdat") + 4)

    def shifted(table):
        offsets = struct.unpack(f">{(len(table) - 8) // 4}I", table[8:])
        return box(b"stco", table[:8] + b"".join(struct.pack(">I", offset + moved) for offset in offsets))

    whole = box(b"ftyp", parts[b"ftyp"]) + box(b"mdat", parts[b"mdat"]) + box(b"moov", parts[b"moov"])
    return changed(whole, (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stco"), shifted)


def table(kind, *numbers):
    """A table of 32-bit numbers: version and flags of 0, then the numbers."""
    return box(kind, b"\0\0\0\0" + b"".join(struct.pack(">I", number) for number in numbers))


def mp4_bombs(made, large):
    tiny, sample = media_first(made), (b"moov", b"trak", b"mdia", b"minf", b"stbl")
    stsd = sample + (b"stsd",)
    size = struct.pack(">HH", *struct.unpack_from(">HH", body(tiny, *stsd), 40))

    def tables(data, **replaced):
        """With tables in place of those of the same name; None removes one."""
        for name, new in replaced.items():
            data = changed(data, sample + (name.encode(),), lambda _: new or b"")
        return data

    def repeated(data, times, duration=1000):
        """The first picture, again and again: four bytes for each."""
        start = data.index(b"mdat") + 4
        one_size, _, *sizes = struct.unpack_from(f">{(len(body(data, *sample, b'stsz')) - 4) // 4}I", body(data, *sample, b"stsz"), 4)
        length = one_size or sizes[0]
        return tables(
            data, stsz=table(b"stsz", length, times), stts=table(b"stts", 1, times, duration), ctts=None, stss=None,
            stsc=table(b"stsc", 1, 1, 1, 1), stco=table(b"stco", times, *[start] * times))

    def with_track(data, track):
        return changed(data, (b"moov",), lambda old: box(b"moov", old + track))

    track = box(b"trak", body(tiny, b"moov", b"trak"))
    movie = box(b"moov", body(tiny, b"moov"))
    nested = b""
    for _ in range(50_000):
        nested = box(b"moov", nested) if len(nested) < 400_000 else nested
    packed = zlib.compress(b"\0" * (200 << 20), 9)
    cmov = box(b"cmov", box(b"dcom", b"zlib") + box(b"cmvd", struct.pack(">I", 200 << 20) + packed))
    outside = box(b"dref", struct.pack(">II", 0, 1) + box(b"alis", b"\0\0\0\0" + b"\0" * 142 + struct.pack(">hh", 2, 12) + b"/etc/hostname"))
    fragment = box(b"moof", table(b"mfhd", 1) + box(b"traf", box(b"tfhd", struct.pack(">II", 0x20000, 1))
               + box(b"trun", struct.pack(">II", 0, 0xFFFFFFFF))))
    runs = box(b"moof", table(b"mfhd", 1) + box(b"traf", box(b"tfhd", struct.pack(">IIII", 0x38, 1, 1, 1) + b"\0\0\0\0") + table(b"trun", 1)))
    extends = box(b"mvex", table(b"trex", 1, 1, 1, 1, 0))
    wide = changed(tiny, stsd, lambda old: box(b"stsd", old.replace(size, b"\xff\xff\xff\xff", 1)))
    profile = box(b"colr", b"prof" + b"\0" * 3_000_000)
    return [
        ("clip_plain", "ok", made),
        ("clip_media_first", "ok", tiny),
        ("clip_header_only", "reject", tiny[:24]),
        ("clip_index_missing", "reject", box(b"ftyp", body(tiny, b"ftyp")) + box(b"mdat", body(tiny, b"mdat"))),
        ("clip_index_cut", "reject", made[:200]),
        ("clip_media_cut", "either", made[:-20]),
        ("clip_media_missing", "reject", box(b"ftyp", body(tiny, b"ftyp")) + movie),
        ("clip_box_size_none", "reject", box(b"ftyp", body(tiny, b"ftyp")) + b"\0\0\0\0moov" * 1000),
        ("clip_box_size_small", "reject", box(b"ftyp", body(tiny, b"ftyp")) + box(b"moov", b"", 3) * 1000),
        ("clip_box_size_largest", "reject", box(b"ftyp", body(tiny, b"ftyp")) + b"\0\0\0\x01moov" + b"\x7f" + b"\xff" * 7),
        ("clip_boxes_nested", "reject", box(b"ftyp", body(tiny, b"ftyp")) + nested),
        ("clip_boxes_many", "ok", tiny + box(b"free", b"") * 300_000),
        ("clip_index_compressed", "reject", box(b"ftyp", body(tiny, b"ftyp")) + box(b"moov", cmov)),
        ("clip_index_twice", "either", tiny + movie * 2000),
        ("clip_tracks_many", "either", with_track(tiny, track * 3000)),
        ("clip_tracks_none", "reject", changed(tiny, (b"moov", b"trak"), lambda _: b"")),
        ("clip_data_outside", "either", changed(tiny, (b"moov", b"trak", b"mdia", b"minf", b"dinf"), lambda _: box(b"dinf", outside))),
        ("clip_side_longest", "either", wide),
        ("clip_picture_other_size", "either", changed(tiny, stsd, lambda old: box(b"stsd", old.replace(size, struct.pack(">HH", 2000, 2000), 1)))),
        ("clip_parameters_random", "either", changed(tiny, stsd, lambda old: box(b"stsd", old[:-40] + bytes(range(40))))),
        ("clip_parameters_long", "either", changed(tiny, stsd, lambda old: box(b"stsd", old[:8] + box(b"avc1", old[16:94] + box(
            b"avcC", b"\x01\x64\0\x28\xff\xff" + b"\xff\xff" + b"\x67" + b"\0" * 70_000)) ))),
        ("clip_profile_long", "either", changed(tiny, stsd, lambda old: box(b"stsd", old[:8] + box(b"avc1", old[16:] + profile)))),
        ("clip_codec_unknown", "reject", changed(tiny, stsd, lambda old: box(b"stsd", old.replace(b"avc1", b"zzzz")))),
        ("clip_codec_prores", "reject", changed(tiny, stsd, lambda old: box(b"stsd", old.replace(b"avc1", b"apch")))),
        ("clip_entries_many", "either", changed(tiny, stsd, lambda old: box(b"stsd", old[:4] + b"\0\0\xff\xff" + old[8:] * 1000))),
        ("clip_samples_claimed", "reject", tables(tiny, stsz=table(b"stsz", 1, 0xFFFFFFFF))),
        ("clip_samples_missing", "either", tables(tiny, stsz=table(b"stsz", 0, 0x0FFFFFFF, 20, 20))),
        ("clip_samples_largest", "either", tables(tiny, stsz=table(b"stsz", 0x7FFFFFFF, 3))),
        ("clip_samples_empty", "reject", tables(tiny, stsz=table(b"stsz", 0, 3, 0, 0, 0))),
        ("clip_times_claimed", "either", tables(tiny, stts=table(b"stts", 0xFFFFFFFF, 1, 1))),
        ("clip_times_many", "either", tables(tiny, stts=table(b"stts", 1, 0xFFFFFFFF, 1))),
        ("clip_times_longest", "either", tables(tiny, stts=table(b"stts", 1, 100, 0xFFFFFFFF))),
        ("clip_times_none", "either", tables(tiny, stts=table(b"stts", 1, 100, 0))),
        ("clip_times_negative", "either", tables(tiny, stts=table(b"stts", 2, 1, 0xFFFFFFF0, 99, 0x80000000))),
        ("clip_shifts_far", "either", tables(tiny, stts=table(b"stts", 1, 3, 10) + table(b"ctts", 3, 1, 0x7FFFFFFF, 1, 0x80000000, 1, 0))),
        ("clip_shifts_claimed", "either", tables(tiny, stts=table(b"stts", 1, 3, 10) + table(b"ctts", 0x1FFFFFFF, 0xFFFFFFFF, 1))),
        ("clip_offsets_far", "reject", tables(tiny, stco=table(b"stco", 1, 0xFFFFFFF0))),
        ("clip_offsets_claimed", "either", tables(tiny, stco=table(b"stco", 0x3FFFFFFF, 40))),
        ("clip_chunks_claimed", "either", tables(tiny, stsc=table(b"stsc", 1, 1, 0xFFFFFFFF, 1))),
        ("clip_chunks_backward", "either", tables(tiny, stsc=table(b"stsc", 3, 9, 1, 1, 5, 1, 1, 1, 1, 1))),
        ("clip_units_none", "either", changed(tiny, (b"moov", b"trak", b"mdia", b"mdhd"), lambda old: box(b"mdhd", old[:12] + b"\0\0\0\0" + old[16:]))),
        ("clip_units_most", "either", changed(tiny, (b"moov", b"trak", b"mdia", b"mdhd"), lambda old: box(b"mdhd", old[:12] + b"\xff\xff\xff\xff" + old[16:]))),
        ("clip_edits_many", "either", changed(tiny, (b"moov", b"trak", b"edts"), lambda _: box(
            b"edts", table(b"elst", 100_000, *[1, 0, 0x10000] * 100_000)))),
        ("clip_edits_claimed", "either", changed(tiny, (b"moov", b"trak", b"edts"), lambda _: box(b"edts", table(b"elst", 0xFFFFFFFF, 1, 0, 0x10000)))),
        ("clip_edits_far", "either", changed(tiny, (b"moov", b"trak", b"edts"), lambda _: box(
            b"edts", table(b"elst", 2, 0xFFFFFFFF, 0xFFFFFFFF, 0x10000, 0x7FFFFFFF, 0x7FFFFFFF, 0x10000)))),
        ("clip_turned_singular", "either", changed(tiny, (b"moov", b"trak", b"tkhd"), lambda old: box(b"tkhd", old[:40] + b"\0" * 36 + old[76:]))),
        ("clip_fragments_claimed", "either", with_track(tiny, extends) + fragment),
        ("clip_fragments_many", "either", with_track(tiny, extends) + runs * 50_000),
        ("clip_frames_many", "reject", repeated(tiny, 20_000)),
        ("clip_frames_fast", "either", repeated(tiny, 4000, 0)),
        ("clip_frames_long", "reject", repeated(tiny, 3000, 0x7FFFFFFF)),
        ("clip_blank_one", "ok", repeated(media_first(large), 1)),
        ("clip_blank_many", "reject", repeated(media_first(large), 5000, 1)),
    ]


def element(identity, data, size=None):
    """An EBML element (RFC 8794). `size`: the eight bytes of the claimed length."""
    return bytes.fromhex(identity) + (struct.pack(">Q", len(data) | 1 << 56) if size is None else size) + data


def webm_bombs(made):
    start = made.index(b"\x18\x53\x80\x67")
    head = made[:start]
    tracks = made.index(b"\x16\x54\xae\x6b")
    cluster = made.index(b"\x1f\x43\xb6\x75")
    unknown, longest = b"\x01" + b"\xff" * 7, b"\x01" + b"\xff" * 6 + b"\xfe"

    def segment(data, size=unknown):
        return head + element("18538067", data, size)

    entry = element("ae", element("d7", b"\x01") + element("73c5", b"\x01") + element("83", b"\x01") + element("86", b"V_VP9")
                    + element("e0", element("b0", b"\x20") + element("ba", b"\x20")))
    scale = element("1549a966", element("2ad7b1", struct.pack(">Q", 0xFFFFFFFFFFFFFFFF)))

    def compressed(data):
        return entry[:9] + b"" if not data else element("ae", entry[9:] + element("6d80", element("6240", element("5033", b"\x01")
            + element("5034", element("4254", b"\0")))))

    def blocks(data, times=1, stamp=0):
        block = element("a3", b"\x81" + struct.pack(">h", 0) + b"\x80" + data)
        return element("1f43b675", element("e7", struct.pack(">Q", stamp)) + block * times)

    nested = b""
    for _ in range(2000):
        nested = element("67c8", nested)
    wide = element("ae", entry[9:].replace(element("b0", b"\x20"), element("b0", b"\x7f\xff\xff\xff")))
    return [
        ("webm_plain", "ok", made),
        ("webm_header_only", "reject", head),
        ("webm_cut", "reject", made[:cluster]),
        ("webm_cut_in_picture", "either", made[:-30]),
        ("webm_size_longest", "either", made[:start] + b"\x18\x53\x80\x67" + longest + made[tracks:]),
        ("webm_tracks_none", "reject", segment(made[cluster:])),
        ("webm_tracks_many", "either", segment(element("1654ae6b", entry * 20_000) + made[cluster:])),
        ("webm_track_longest", "reject", segment(element("1654ae6b", entry, longest))),
        ("webm_side_longest", "reject", segment(element("1654ae6b", wide) + blocks(b"\x82\x49\x83\x42\0"))),
        ("webm_block_compressed", "reject", segment(element("1654ae6b", compressed(True)) + blocks(zlib.compress(b"\0" * (200 << 20), 9)))),
        ("webm_blocks_random", "reject", segment(element("1654ae6b", entry) + blocks(bytes(range(200)), 2000))),
        ("webm_blocks_laced", "either", segment(element("1654ae6b", entry) + element("1f43b675", element("e7", b"\0") + element(
            "a3", b"\x81\0\0\x86\xff" + b"\xff" * 300)))),
        ("webm_blocks_empty", "reject", segment(element("1654ae6b", entry) + element("1f43b675", element("a3", b"") * 100_000))),
        ("webm_clusters_many", "reject", segment(element("1654ae6b", entry) + element("1f43b675", b"") * 100_000)),
        ("webm_times_far", "either", segment(element("1654ae6b", entry) + blocks(b"\x82", 1, 0x7FFFFFFFFFFFFFFF) + blocks(b"\x82", 1, 0))),
        ("webm_units_most", "either", segment(scale + made[tracks:])),
        ("webm_tags_nested", "either", segment(element("1254c367", element("7373", nested)) + made[tracks:])),
        ("webm_attachment_long", "either", segment(element("1941a469", element("61a7", element("465c", b"\0" * 3_000_000))) + made[tracks:])),
        ("webm_index_cyclic", "either", segment(element("114d9b74", element("4dbb", element("53ab", bytes.fromhex("114d9b74"))
            + element("53ac", b"\0")) * 10_000) + made[tracks:])),
        ("webm_elements_unknown", "either", segment(element("ec", b"") * 300_000 + made[tracks:])),
        ("webm_doctype_other", "either", made.replace(b"webm", b"zzzz", 1)),
    ]


def avif_bombs(made):
    index = made.index(b"moov") - 4
    moov = struct.unpack_from(">I", made, index)[0]

    def put(old, new):
        return made.replace(old, new) if len(old) == len(new) else made

    def behind(kind, length, new):
        at = made.index(kind) + 4 + length
        return made[:at] + new + made[at + len(new):]

    return [
        ("avif_plain", "ok", made),
        ("avif_header_only", "reject", made[:index]),
        ("avif_index_cut", "reject", made[:index + moov // 2]),
        ("avif_media_cut", "either", made[:-10]),
        ("avif_item_only", "reject", box(b"ftyp", b"avif\0\0\0\0avifmif1miaf") + box(b"meta", b"\0\0\0\0" + box(b"iloc", b"\0" * 8))),
        ("avif_items_claimed", "reject", box(b"ftyp", b"avis\0\0\0\0avifavismif1") + box(b"meta", b"\x01\0\0\0" + box(
            b"iloc", b"\x02\0\0\0\x44\x40" + struct.pack(">I", 0xFFFFFFFF)) + box(b"iinf", b"\x01\0\0\0\xff\xff\xff\xff"))),
        ("avif_references_cyclic", "either", made[:index] + box(b"meta", b"\0\0\0\0" + box(b"iref", b"\0\0\0\0" + box(
            b"dimg", struct.pack(">HHH", 1, 1, 1)) * 5000)) + made[index:]),
        ("avif_side_longest", "either", behind(b"av01", 24, b"\xff\xff\xff\xff")),
        ("avif_parameters_random", "either", behind(b"av1C", 4, bytes(range(0x81, 0x91)))),
        ("avif_repeated_most", "either", behind(b"tkhd", 20, b"\xff" * 8)),
        ("avif_brand_other", "either", put(b"avis", b"msf1")),
    ]


def all_bombs(gifreel):
    """Name, expected result (reject, ok or either) and file.

    gifreel: the executable, which makes the files to start from.
    """
    def gif(side):
        pixels = [[(x + at) % 8 for _ in range(side) for x in range(side)] for at in range(3)] if side < 100 else [[0] * side * side]
        return gifs.head(side, side) + b"".join(gifs.image(0, 0, side, side, each) for each in pixels) + b";"

    with tempfile.TemporaryDirectory(prefix="gifreel-bombs-") as folder:
        def made(source, output):
            at = os.path.join(folder, "a.gif")
            with open(at, "wb") as file:
                file.write(source)
            result = os.path.join(folder, f"a.{output}")
            subprocess.run([gifreel, "convert", at, result], check=True, stdout=subprocess.DEVNULL)
            with open(result, "rb") as file:
                return file.read()

        small = gif(32)
        return mp4_bombs(made(small, "mp4"), made(gif(1600), "mp4")) + webm_bombs(made(small, "webm")) + avif_bombs(made(small, "avif"))
