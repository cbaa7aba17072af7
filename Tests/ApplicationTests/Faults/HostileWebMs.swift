import TestSupport

/// WebMs that a server made, or with its header, with false claims of elements (RFC 8794, RFC 9559).
struct HostileWebMs {
    private let made: [UInt8]
    private let head: [UInt8]
    /// From the tracks on.
    private let tracks: [UInt8]
    /// From the first cluster on.
    private let clusters: [UInt8]

    private static let unknown: [UInt8] = [1, 255, 255, 255, 255, 255, 255, 255]
    private static let longest: [UInt8] = [1, 255, 255, 255, 255, 255, 255, 254]

    /// The error for a WebM without an element that all have.
    private struct NoSuchElement: Error {
        let identity: Int
    }

    init(_ made: [UInt8]) throws {
        func position(of identity: Int) throws -> Int {
            guard let position = made.position(of: .big(identity)) else { throw NoSuchElement(identity: identity) }
            return position
        }
        self.made = made
        head = Array(made[..<(try position(of: 0x1853_8067))])
        tracks = Array(made[(try position(of: 0x1654_ae6b))...])
        clusters = Array(made[(try position(of: 0x1f43_b675))...])
    }

    func all() -> [HostileFile] { files() + trackLists() + blocks() + metadata() }

    private func files() -> [HostileFile] {
        let type = made.position(of: .text("webm")) ?? 0
        return [
            HostileFile("webm_plain", .accepted, made),
            HostileFile("webm_header_only", .refused, head),
            HostileFile("webm_cut", .refused, Array(made.dropLast(clusters.count))),
            HostileFile("webm_cut_in_picture", .either, Array(made.dropLast(30))),
            HostileFile("webm_size_longest", .either, segment(tracks, size: Self.longest)),
            HostileFile("webm_doctype_other", .either, made.with(.text("zzzz"), at: type)),
        ]
    }

    private func trackLists() -> [HostileFile] {
        let wide = Self.entry(width: [0x7f, 255, 255, 255])
        return [
            HostileFile("webm_tracks_none", .refused, segment(clusters)),
            HostileFile("webm_tracks_many", .either, segment(trackList(.repeated(Self.entry(), 20_000)), clusters)),
            HostileFile("webm_track_longest", .refused, segment(trackList(Self.entry(), size: Self.longest))),
            HostileFile("webm_side_longest", .refused, segment(trackList(wide), cluster([0x82, 0x49, 0x83, 0x42, 0]))),
        ]
    }

    private func blocks() -> [HostileFile] {
        let sound = trackList(Self.entry())
        let unpacked = Self.element(
            0x6d80,
            Self.element(
                0x6240,
                .joined(
                    Self.element(0x5033, [1]), Self.element(0x5034, Self.element(0x4254, [0])))))
        let laced = Self.element(0xa3, .joined([0x81, 0, 0, 0x86, 255], Array(repeating: 255, count: 300)))
        return [
            HostileFile(
                "webm_block_compressed", .refused,
                segment(trackList(Self.entry(more: unpacked)), cluster(ZlibStream.zeros(200 << 20)))),
            HostileFile("webm_blocks_random", .refused, segment(sound, cluster(Array(0..<200), times: 2000))),
            HostileFile(
                "webm_blocks_laced", .either,
                segment(sound, Self.element(0x1f43_b675, .joined(Self.element(0xe7, [0]), laced)))),
            HostileFile(
                "webm_blocks_empty", .refused,
                segment(sound, Self.element(0x1f43_b675, .repeated(Self.element(0xa3, []), 100_000)))),
            HostileFile(
                "webm_clusters_many", .refused, segment(sound, .repeated(Self.element(0x1f43_b675, []), 100_000))),
            HostileFile(
                "webm_times_far", .either, segment(sound, .joined(cluster([0x82], stamp: Int.max), cluster([0x82])))),
        ]
    }

    private func metadata() -> [HostileFile] {
        let scale = Self.element(0x1549_a966, Self.element(0x2ad7b1, .big(-1, 8)))
        let nested = (0..<2000).reduce([UInt8]()) { inner, _ in Self.element(0x67c8, inner) }
        let attachment = Self.element(0x1941_a469, Self.element(0x61a7, Self.element(0x465c, .zeros(3_000_000))))
        // An index that points to itself.
        let index = Self.element(
            0x4dbb, .joined(Self.element(0x53ab, .big(0x114d_9b74)), Self.element(0x53ac, [0])))
        return [
            HostileFile("webm_units_most", .either, segment(scale, tracks)),
            HostileFile(
                "webm_tags_nested", .either, segment(Self.element(0x1254_c367, Self.element(0x7373, nested)), tracks)),
            HostileFile("webm_attachment_long", .either, segment(attachment, tracks)),
            HostileFile(
                "webm_index_cyclic", .either, segment(Self.element(0x114d_9b74, .repeated(index, 10_000)), tracks)),
            HostileFile(
                "webm_elements_unknown", .either, segment(.repeated(Self.element(0xec, []), 300_000), tracks)),
        ]
    }

    // MARK: Elements

    /// An element.
    ///
    /// - Parameter size: The eight bytes of the length that it claims; nil for its length.
    private static func element(_ identity: Int, _ data: [UInt8], size: [UInt8]? = nil) -> [UInt8] {
        let count = (Int.bitWidth - identity.leadingZeroBitCount + 7) / 8
        return .joined(.big(identity, count), size ?? .big(data.count | 1 << 56, 8), data)
    }

    /// A track of VP9 of 32 × 32 pixels.
    private static func entry(width: [UInt8] = [32], more: [UInt8] = []) -> [UInt8] {
        let numbers: [UInt8] = .joined(element(0xd7, [1]), element(0x73c5, [1]), element(0x83, [1]))
        let video = element(0xe0, .joined(element(0xb0, width), element(0xba, [32])))
        return element(0xae, .joined(numbers, element(0x86, .text("V_VP9")), video, more))
    }

    private func trackList(_ entries: [UInt8], size: [UInt8]? = nil) -> [UInt8] {
        Self.element(0x1654_ae6b, entries, size: size)
    }

    private func cluster(_ data: [UInt8], times: Int = 1, stamp: Int = 0) -> [UInt8] {
        let block = Self.element(0xa3, .joined([0x81, 0, 0, 0x80], data))
        return Self.element(0x1f43_b675, .joined(Self.element(0xe7, .big(stamp, 8)), .repeated(block, times)))
    }

    private func segment(_ first: [UInt8], _ second: [UInt8] = [], size: [UInt8] = Self.unknown) -> [UInt8] {
        .joined(head, Self.element(0x1853_8067, .joined(first, second), size: size))
    }
}
