import TestSupport

/// AVIFs that a server made, with one claim of a box changed, and AVIFs without a sequence.
struct HostileAVIFs {
    private let made: [UInt8]
    /// Where the movie's box begins.
    private let index: Int

    init(_ made: [UInt8]) throws {
        self.made = made
        index = try Self.place(of: "moov", in: made) - 4
    }

    func all() throws -> [HostileFile] { try files() + items() + claims() }

    private func files() -> [HostileFile] {
        let middle = index + made.number(at: index) / 2
        return [
            HostileFile("avif_plain", .accepted, made),
            HostileFile("avif_header_only", .refused, Array(made.prefix(index))),
            HostileFile("avif_index_cut", .refused, Array(made.prefix(middle))),
            HostileFile("avif_media_cut", .either, Array(made.dropLast(10))),
        ]
    }

    private func items() -> [HostileFile] {
        let places: [UInt8] = .box("iloc", .joined([2, 0, 0, 0, 0x44, 0x40], .big(0xffff_ffff)))
        let descriptions: [UInt8] = .box("iinf", .joined([1, 0, 0, 0], .big(0xffff_ffff)))
        // An item that is derived from itself.
        let cycle: [UInt8] = .box("dimg", .joined(.big(1, 2), .big(1, 2), .big(1, 2)))
        let references: [UInt8] = .box("iref", .joined(.zeros(4), .repeated(cycle, 5000)))
        return [
            HostileFile(
                "avif_item_only", .refused,
                .joined(
                    .box("ftyp", .joined(.text("avif"), .zeros(4), .text("avifmif1miaf"))),
                    .box("meta", .joined(.zeros(4), .box("iloc", .zeros(8)))))),
            HostileFile(
                "avif_items_claimed", .refused,
                .joined(
                    .box("ftyp", .joined(.text("avis"), .zeros(4), .text("avifavismif1"))),
                    .box("meta", .joined([1, 0, 0, 0], places, descriptions)))),
            HostileFile(
                "avif_references_cyclic", .either,
                .joined(
                    Array(made.prefix(index)), .box("meta", .joined(.zeros(4), references)), Array(made.dropFirst(index)))),
        ]
    }

    private func claims() throws -> [HostileFile] {
        var renamed = made
        while let brand = renamed.position(of: .text("avis")) { renamed = renamed.with(.text("msf1"), at: brand) }
        return [
            HostileFile("avif_side_longest", .either, try changed("av01", 24, .big(0xffff_ffff))),
            HostileFile("avif_parameters_random", .either, try changed("av1C", 4, Array(0x81..<0x91))),
            HostileFile("avif_repeated_most", .either, try changed("tkhd", 20, Array(repeating: 255, count: 8))),
            HostileFile("avif_brand_other", .either, renamed),
        ]
    }

    /// The file with other bytes at a distance behind the first type of this name.
    private func changed(_ type: String, _ distance: Int, _ bytes: [UInt8]) throws -> [UInt8] {
        made.with(bytes, at: try Self.place(of: type, in: made) + 4 + distance)
    }

    private static func place(of type: String, in file: [UInt8]) throws -> Int {
        guard let place = file.position(of: .text(type)) else { throw [UInt8].NoSuchBox(path: [type]) }
        return place
    }
}
