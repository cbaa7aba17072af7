import TestSupport

/// MP4s that a server made, with one claim of a box changed.
struct HostileMP4s {
    private let made: [UInt8]
    private let large: [UInt8]
    /// With its media before its index.
    private let tiny: [UInt8]
    private let head: [UInt8]
    private let movie: [UInt8]

    private static let description = [UInt8].sampleTables + ["stsd"]

    /// - Parameters:
    ///   - made: A small MP4.
    ///   - large: One with many pixels in few bytes.
    init(_ made: [UInt8], large: [UInt8]) throws {
        self.made = made
        self.large = try large.withMediaFirst()
        tiny = try made.withMediaFirst()
        head = .box("ftyp", try tiny.body("ftyp"))
        movie = .box("moov", try tiny.body("moov"))
    }

    func all() throws -> [HostileFile] {
        try files() + boxes() + tracks() + descriptions() + parameters() + sizes() + times() + positions() + edits()
            + fragments()
            + floods()
    }

    // MARK: Boxes

    private func files() throws -> [HostileFile] {
        [
            HostileFile("clip_plain", .accepted, made),
            HostileFile("clip_media_first", .accepted, tiny),
            HostileFile("clip_header_only", .refused, Array(tiny.prefix(24))),
            HostileFile("clip_index_missing", .refused, .joined(head, .box("mdat", try tiny.body("mdat")))),
            HostileFile("clip_index_cut", .refused, Array(made.prefix(200))),
            HostileFile("clip_media_cut", .either, Array(made.dropLast(20))),
            HostileFile("clip_media_missing", .refused, .joined(head, movie)),
        ]
    }

    private func boxes() -> [HostileFile] {
        let depth = 50_000
        let nested = (0..<depth).flatMap { [UInt8].box("moov", [], size: 8 * (depth - $0)) }
        let unpacked = 200 << 20
        let packed: [UInt8] = .box("cmvd", .joined(.big(unpacked), ZlibStream.zeros(unpacked)))
        return [
            HostileFile("clip_box_size_none", .refused, .joined(head, .repeated(.box("moov", [], size: 0), 1000))),
            HostileFile("clip_box_size_small", .refused, .joined(head, .repeated(.box("moov", [], size: 3), 1000))),
            // A size of 64 bits follows a size of 1.
            HostileFile(
                "clip_box_size_largest", .refused, .joined(head, .box("moov", .big(Int.max, 8), size: 1))),
            HostileFile("clip_boxes_nested", .refused, .joined(head, nested)),
            HostileFile("clip_boxes_many", .accepted, .joined(tiny, .repeated(.box("free", []), 300_000))),
            HostileFile(
                "clip_index_compressed", .refused,
                .joined(head, .box("moov", .box("cmov", .joined(.box("dcom", .text("zlib")), packed))))),
            HostileFile("clip_index_twice", .either, .joined(tiny, .repeated(movie, 2000))),
        ]
    }

    private func tracks() throws -> [HostileFile] {
        let track: [UInt8] = .box("trak", try tiny.body("moov", "trak"))
        let alias: [UInt8] = .joined(.zeros(146), .big(2, 2), .big(12, 2), .text("/etc/hostname"))
        let outside: [UInt8] = .box("dref", .joined(.big(0), .big(1), .box("alis", alias)))
        return [
            HostileFile("clip_tracks_many", .either, try adding(.repeated(track, 3000))),
            HostileFile("clip_tracks_none", .refused, try tiny.replacing(["moov", "trak"]) { _ in [] }),
            HostileFile(
                "clip_data_outside", .either, try tiny.changing(["moov", "trak", "mdia", "minf", "dinf"]) { _ in outside }),
            HostileFile(
                "clip_units_none", .either, try tiny.changing(["moov", "trak", "mdia", "mdhd"]) { $0.with(.big(0), at: 12) }),
            HostileFile(
                "clip_units_most", .either,
                try tiny.changing(["moov", "trak", "mdia", "mdhd"]) { $0.with(.big(0xffff_ffff), at: 12) }),
            HostileFile(
                "clip_turned_singular", .either,
                try tiny.changing(["moov", "trak", "tkhd"]) { $0.with(.zeros(36), at: 40) }),
        ]
    }

    // MARK: Sample descriptions

    private func descriptions() throws -> [HostileFile] {
        [
            HostileFile("clip_side_longest", .either, try describing { $0.with(.big(0xffff_ffff), at: 40) }),
            HostileFile(
                "clip_picture_other_size", .either,
                try describing { $0.with(.joined(.big(2000, 2), .big(2000, 2)), at: 40) }),
            HostileFile("clip_codec_unknown", .refused, try describing { $0.with(.text("zzzz"), at: 12) }),
            HostileFile("clip_codec_prores", .refused, try describing { $0.with(.text("apch"), at: 12) }),
            HostileFile(
                "clip_entries_many", .either,
                try describing {
                    .joined(Array($0.prefix(4)), .big(0xffff), .repeated(Array($0.dropFirst(8)), 1000))
                }),
        ]
    }

    private func parameters() throws -> [HostileFile] {
        let sets: [UInt8] = .joined([1, 0x64, 0, 0x28, 255, 255, 255, 255, 0x67], .zeros(70_000))
        let profile: [UInt8] = .box("colr", .joined(.text("prof"), .zeros(3_000_000)))
        return [
            HostileFile(
                "clip_parameters_random", .either, try describing { .joined(Array($0.dropLast(40)), Array(0..<40)) }),
            HostileFile(
                "clip_parameters_long", .either,
                try describing {
                    .joined(Array($0.prefix(8)), .box("avc1", .joined(Array($0[16..<94]), .box("avcC", sets))))
                }),
            HostileFile(
                "clip_profile_long", .either,
                try describing { .joined(Array($0.prefix(8)), .box("avc1", .joined(Array($0.dropFirst(16)), profile))) }),
        ]
    }

    private func describing(_ change: ([UInt8]) -> [UInt8]) throws -> [UInt8] {
        try tiny.changing(Self.description, change)
    }

    // MARK: Tables of samples

    private func sizes() throws -> [HostileFile] {
        [
            HostileFile("clip_samples_claimed", .refused, try tiny.with("stsz", .table("stsz", 1, 0xffff_ffff))),
            HostileFile("clip_samples_missing", .either, try tiny.with("stsz", .table("stsz", 0, 0x0fff_ffff, 20, 20))),
            HostileFile("clip_samples_largest", .either, try tiny.with("stsz", .table("stsz", 0x7fff_ffff, 3))),
            HostileFile("clip_samples_empty", .refused, try tiny.with("stsz", .table("stsz", 0, 3, 0, 0, 0))),
        ]
    }

    private func times() throws -> [HostileFile] {
        func timed(_ numbers: Int...) throws -> [UInt8] { try tiny.with("stts", .table("stts", numbers)) }
        func shifted(_ numbers: Int...) throws -> [UInt8] {
            try tiny.with("stts", .joined(.table("stts", 1, 3, 10), .table("ctts", numbers)))
        }
        return [
            HostileFile("clip_times_claimed", .either, try timed(0xffff_ffff, 1, 1)),
            HostileFile("clip_times_many", .either, try timed(1, 0xffff_ffff, 1)),
            HostileFile("clip_times_longest", .either, try timed(1, 100, 0xffff_ffff)),
            HostileFile("clip_times_none", .either, try timed(1, 100, 0)),
            HostileFile("clip_times_negative", .either, try timed(2, 1, 0xffff_fff0, 99, 0x8000_0000)),
            HostileFile("clip_shifts_far", .either, try shifted(3, 1, 0x7fff_ffff, 1, 0x8000_0000, 1, 0)),
            HostileFile("clip_shifts_claimed", .either, try shifted(0x1fff_ffff, 0xffff_ffff, 1)),
        ]
    }

    private func positions() throws -> [HostileFile] {
        [
            HostileFile("clip_offsets_far", .refused, try tiny.with("stco", .table("stco", 1, 0xffff_fff0))),
            HostileFile("clip_offsets_claimed", .either, try tiny.with("stco", .table("stco", 0x3fff_ffff, 40))),
            HostileFile("clip_chunks_claimed", .either, try tiny.with("stsc", .table("stsc", 1, 1, 0xffff_ffff, 1))),
            HostileFile(
                "clip_chunks_backward", .either, try tiny.with("stsc", .table("stsc", 3, 9, 1, 1, 5, 1, 1, 1, 1, 1))),
        ]
    }

    private func edits() throws -> [HostileFile] {
        func edited(_ numbers: [Int]) throws -> [UInt8] {
            try tiny.replacing(["moov", "trak", "tkhd"]) {
                .joined(.box("tkhd", $0), .box("edts", .table("elst", numbers)))
            }
        }
        let many = (0..<100_000).flatMap { _ in [1, 0, 0x10000] }
        return [
            HostileFile("clip_edits_many", .either, try edited([100_000] + many)),
            HostileFile("clip_edits_claimed", .either, try edited([0xffff_ffff, 1, 0, 0x10000])),
            HostileFile(
                "clip_edits_far", .either,
                try edited([2, 0xffff_ffff, 0xffff_ffff, 0x10000, 0x7fff_ffff, 0x7fff_ffff, 0x10000])),
        ]
    }

    // MARK: Fragments and floods

    private func fragments() throws -> [HostileFile] {
        let extended = try adding(.box("mvex", .table("trex", 1, 1, 1, 1, 0)))
        func fragment(_ header: [UInt8], _ run: [UInt8]) -> [UInt8] {
            .box("moof", .joined(.table("mfhd", 1), .box("traf", .joined(.box("tfhd", header), run))))
        }
        let claimed = fragment(.joined(.big(0x20000), .big(1)), .table("trun", 0xffff_ffff))
        let sound = fragment(.joined(.big(0x38), .big(1), .big(1), .big(1), .zeros(4)), .table("trun", 1))
        return [
            HostileFile("clip_fragments_claimed", .either, .joined(extended, claimed)),
            HostileFile("clip_fragments_many", .either, .joined(extended, .repeated(sound, 50_000))),
        ]
    }

    private func floods() throws -> [HostileFile] {
        [
            HostileFile("clip_frames_many", .refused, try Self.repeating(tiny, 20_000)),
            HostileFile("clip_frames_fast", .either, try Self.repeating(tiny, 4000, duration: 0)),
            HostileFile("clip_frames_long", .refused, try Self.repeating(tiny, 3000, duration: 0x7fff_ffff)),
            HostileFile("clip_blank_one", .accepted, try Self.repeating(large, 1)),
            HostileFile("clip_blank_many", .refused, try Self.repeating(large, 5000, duration: 1)),
        ]
    }

    /// The first picture, again and again: four bytes for each.
    private static func repeating(_ clip: [UInt8], _ times: Int, duration: Int = 1000) throws -> [UInt8] {
        guard let media = clip.position(of: .text("mdat")) else { throw [UInt8].NoSuchBox(path: ["mdat"]) }
        let sizes = try clip.body([UInt8].sampleTables + ["stsz"])
        let common = sizes.number(at: 4)
        return try clip.with("stsz", .table("stsz", common > 0 ? common : sizes.number(at: 12), times))
            .with("stts", .table("stts", 1, times, duration))
            .without("ctts").without("stss")
            .with("stsc", .table("stsc", 1, 1, 1, 1))
            .with("stco", .table("stco", [times] + Array(repeating: media + 4, count: times)))
    }

    private func adding(_ box: [UInt8]) throws -> [UInt8] { try tiny.changing(["moov"]) { .joined($0, box) } }
}
