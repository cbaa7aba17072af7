/// Reads the boxes of an MP4 (ISO/IEC 14496-12), independently of the code that wrote them.
package struct MP4Boxes: Sendable {
    package struct Malformed: Error {}

    /// A sample in presentation order, in units of the track's timescale.
    package struct Sample: Sendable, Equatable {
        package var time: Int
        package var duration: Int
        package var isSync: Bool
    }

    /// The types of the top-level boxes, in order.
    package private(set) var top: [String] = []
    package private(set) var trackCount = 0
    package private(set) var width = 0
    package private(set) var height = 0
    package private(set) var timescale = 0
    /// The media's duration in units of its timescale.
    package private(set) var duration = 0
    package private(set) var hasEditList = false
    /// `colr`: primaries, transfer, matrix and whether the range is full.
    package private(set) var color: [Int] = []
    /// The kind of the sample entry: `avc1` or `av01`.
    package private(set) var codec = ""
    /// The content of `av1C`, where there is one.
    package private(set) var av1Configuration: [UInt8] = []
    /// Whether there are composition offsets.
    package var hasOffsets: Bool { !offsets.isEmpty }
    /// The least composition offset: below 0 if a sample is decoded after it is shown.
    package var leastOffset: Int { offsets.min() ?? 0 }
    /// From `avcC`: profile and level.
    package private(set) var profile = 0
    package private(set) var level = 0
    /// The duration that the file names for the sample that is shown last: the distance to the one that is decoded next.
    package var durationOfLast: Int? {
        let times = deltas.indices.map { deltas[..<$0].reduce(0, +) + ($0 < offsets.count ? offsets[$0] : 0) }
        return times.indices.max { times[$0] < times[$1] }.map { deltas[$0] }
    }
    private var deltas: [Int] = []
    private var offsets: [Int] = []
    private var sync: Set<Int> = []
    private var sampleCount = 0

    package init(_ bytes: [UInt8]) throws {
        for box in try Self.boxes(bytes[...]) {
            top.append(box.kind)
            if box.kind == "moov" { try read(box.content) }
        }
    }

    /// The samples in presentation order. A duration is the distance to the next sample, or to the end.
    package var samples: [Sample] {
        var time = 0
        var samples: [(Int, Bool)] = []
        for index in 0..<min(sampleCount, deltas.count) {
            let offset = index < offsets.count ? offsets[index] : 0
            samples.append((time + offset, sync.isEmpty || sync.contains(index + 1)))
            time += deltas[index]
        }
        samples.sort { $0.0 < $1.0 }
        return samples.indices.map { index in
            let end = index + 1 < samples.count ? samples[index + 1].0 : time
            return Sample(time: samples[index].0, duration: end - samples[index].0, isSync: samples[index].1)
        }
    }

    /// Durations of the samples in presentation order.
    package var durations: [Int] { samples.map(\.duration) }

    private mutating func read(_ content: ArraySlice<UInt8>) throws {
        for box in try Self.boxes(content) {
            let data = Array(box.content)
            switch box.kind {
            case "trak":
                trackCount += 1
                try read(box.content)
            case "mdia", "minf", "stbl", "edts": try read(box.content)
            case "elst": hasEditList = true
            case "mdhd":
                timescale = Self.integer(data, data[0] == 1 ? 20 : 12, 4)
                duration = data[0] == 1 ? Self.integer(data, 24, 8) : Self.integer(data, 16, 4)
            case "stsd": try readSampleEntry(box.content.dropFirst(8))
            case "stts":
                for entry in Self.entries(data, 8) {
                    deltas += Array(repeating: Self.integer(data, entry + 4, 4), count: Self.integer(data, entry, 4))
                }
            case "ctts":
                for entry in Self.entries(data, 8) {
                    let offset = Int(Int32(truncatingIfNeeded: Self.integer(data, entry + 4, 4)))
                    offsets += Array(repeating: offset, count: Self.integer(data, entry, 4))
                }
            case "stss": sync = Set(Self.entries(data, 4).map { Self.integer(data, $0, 4) })
            case "stsz": sampleCount = Self.integer(data, 8, 4)
            default: break
            }
        }
    }

    private mutating func readSampleEntry(_ content: ArraySlice<UInt8>) throws {
        guard let entry = try Self.boxes(content).first, ["avc1", "av01"].contains(entry.kind), entry.content.count > 78 else {
            throw Malformed()
        }
        codec = entry.kind
        let data = Array(entry.content)
        width = Self.integer(data, 24, 2)
        height = Self.integer(data, 26, 2)
        for box in try Self.boxes(entry.content.dropFirst(78)) {
            let data = Array(box.content)
            if box.kind == "colr", data.starts(with: "nclx".utf8) {
                color = [Self.integer(data, 4, 2), Self.integer(data, 6, 2), Self.integer(data, 8, 2), Int(data[10] >> 7)]
            }
            if box.kind == "av1C" { av1Configuration = data }
            if box.kind == "avcC" { (profile, level) = (Int(data[1]), Int(data[3])) }
        }
    }

    private static func boxes(_ bytes: ArraySlice<UInt8>) throws -> [(kind: String, content: ArraySlice<UInt8>)] {
        var result: [(String, ArraySlice<UInt8>)] = []
        var rest = bytes
        while !rest.isEmpty {
            guard rest.count >= 8 else { throw Malformed() }
            let size = integer(Array(rest.prefix(4)), 0, 4)
            guard size >= 8, size <= rest.count else { throw Malformed() }
            let kind = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
            result.append((kind, rest.prefix(size).dropFirst(8)))
            rest = rest.dropFirst(size)
        }
        return result
    }

    /// The positions of a table's entries.
    private static func entries(_ data: [UInt8], _ size: Int) -> [Int] {
        (0..<integer(data, 4, 4)).map { 8 + $0 * size }.filter { $0 + size <= data.count }
    }

    private static func integer(_ data: [UInt8], _ offset: Int, _ count: Int) -> Int {
        data[offset..<min(offset + count, data.count)].reduce(0) { $0 << 8 | Int($1) }
    }
}
