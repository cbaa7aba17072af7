/// Reads an AVIF's boxes (ISO/IEC 14496-12; ISO/IEC 23008-12), apart from the code that wrote them.
package struct AVIFBoxes: Sendable {
    package struct Malformed: Error {}

    package struct Track: Sendable {
        package var handler = ""
        package var width = 0
        package var height = 0
        package var timescale = 0
        /// Of the media, in its timescale.
        package var duration = 0
        /// How long the track is shown; nil for no end.
        package var shown: Int?
        package var repeats = false
        package var durations: [Int] = []
        /// The samples' data in order.
        package var samples: [[UInt8]] = []
        package var keys: [Int] = []

        package var chunkCount: Int { chunks.count }
        fileprivate var sizes: [Int] = []
        fileprivate var chunks: [Int] = []
        fileprivate var perChunk = 0
    }

    package private(set) var top: [String] = []
    package private(set) var brands: [String] = []
    /// Kinds of the properties of the still image, in order.
    package private(set) var properties: [String] = []
    /// `ispe` of the still image.
    package private(set) var size: (width: Int, height: Int) = (0, 0)
    /// The data of the still image's items.
    package private(set) var items: [[UInt8]] = []
    package private(set) var tracks: [Track] = []

    private let file: [UInt8]

    package init(_ bytes: [UInt8]) throws {
        file = bytes
        for (kind, content) in try boxes(bytes[...]) {
            top.append(kind)
            switch kind {
            case "ftyp":
                brands = stride(from: 0, to: content.count, by: 4).filter { $0 != 4 }.map { text(content.dropFirst($0)) }
            case "meta": try readMeta(content.dropFirst(4))
            case "moov":
                for (kind, content) in try boxes(content) where kind == "trak" {
                    var track = Track()
                    try read(content, into: &track)
                    var next = track.sizes[...]
                    for chunk in track.chunks {
                        var offset = chunk
                        for size in next.prefix(track.perChunk) {
                            track.samples.append(Array(try part(offset, size)))
                            offset += size
                        }
                        next = next.dropFirst(track.perChunk)
                    }
                    tracks.append(track)
                }
            default: break
            }
        }
    }

    private mutating func readMeta(_ content: ArraySlice<UInt8>) throws {
        for (kind, content) in try boxes(content) {
            switch kind {
            case "iloc":
                for item in 0..<number(content, 6, 2) {
                    let entry = 8 + 14 * item
                    items.append(Array(try part(number(content, entry + 6, 4), number(content, entry + 10, 4))))
                }
            case "iprp":
                for (kind, content) in try boxes(content) where kind == "ipco" {
                    for (kind, content) in try boxes(content) {
                        properties.append(kind)
                        if kind == "ispe" { size = (number(content, 4, 4), number(content, 8, 4)) }
                    }
                }
            default: break
            }
        }
    }

    private func read(_ content: ArraySlice<UInt8>, into track: inout Track) throws {
        for (kind, content) in try boxes(content) {
            switch kind {
            case "mdia", "minf", "stbl", "edts": try read(content, into: &track)
            case "tkhd":
                let isLong = content.first == 1
                let shown = content.dropFirst(isLong ? 28 : 20).prefix(isLong ? 8 : 4)
                track.shown = shown.allSatisfy { $0 == 0xff } ? nil : number(shown, 0, shown.count)
                let rest = isLong ? 36 : 24
                (track.width, track.height) = (number(content, rest + 52, 4) >> 16, number(content, rest + 56, 4) >> 16)
            case "elst": track.repeats = number(content, 0, 4) & 1 == 1
            case "mdhd":
                (track.timescale, track.duration) =
                    content.first == 1
                    ? (number(content, 20, 4), number(content, 24, 8)) : (number(content, 12, 4), number(content, 16, 4))
            case "hdlr": track.handler = text(content.dropFirst(8))
            case "stts":
                for entry in 0..<number(content, 4, 4) {
                    let run = Array(repeating: number(content, 12 + 8 * entry, 4), count: number(content, 8 + 8 * entry, 4))
                    track.durations += run
                }
            case "stss": track.keys = (0..<number(content, 4, 4)).map { number(content, 8 + 4 * $0, 4) }
            case "stsz": track.sizes = (0..<number(content, 8, 4)).map { number(content, 12 + 4 * $0, 4) }
            case "stco": track.chunks = (0..<number(content, 4, 4)).map { number(content, 8 + 4 * $0, 4) }
            case "stsc": track.perChunk = number(content, 12, 4)
            default: break
            }
        }
    }

    private func boxes(_ bytes: ArraySlice<UInt8>) throws -> [(kind: String, content: ArraySlice<UInt8>)] {
        var rest = bytes
        var boxes: [(String, ArraySlice<UInt8>)] = []
        while !rest.isEmpty {
            guard rest.count >= 8 else { throw Malformed() }
            let size = number(rest, 0, 4)
            guard size >= 8, size <= rest.count else { throw Malformed() }
            boxes.append((text(rest.dropFirst(4)), rest.prefix(size).dropFirst(8)))
            rest = rest.dropFirst(size)
        }
        return boxes
    }

    private func part(_ offset: Int, _ count: Int) throws -> ArraySlice<UInt8> {
        guard offset >= 0, count >= 0, offset + count <= file.count else { throw Malformed() }
        return file[offset..<offset + count]
    }

    private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes.prefix(4), as: UTF8.self) }

    private func number(_ bytes: ArraySlice<UInt8>, _ offset: Int, _ count: Int) -> Int {
        bytes.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }
}
