/// The positions of an MP4's samples: chunks, samples per chunk, and sizes (ISO/IEC 14496-12 §8.7).
struct MP4SampleTable {
    private let samples: Int
    private var sizes: ByteReader
    /// The size of every sample; 0 if `sizes` lists each size.
    private let uniformSize: Int
    private var chunks: ByteReader
    private let chunkCount: Int
    private let offsetLength: Int
    private var runs: ByteReader
    private let runCount: Int

    /// - Parameter samples: The claimed number of samples.
    init(_ boxes: [MP4Box], samples: Int) throws(OutputFlaw) {
        self.samples = samples
        sizes = try MP4Box.only("stsz", in: boxes).versioned().content
        uniformSize = try sizes.number(4)
        guard try sizes.number(4) == samples else { throw .wrongSampleCount }
        guard uniformSize != 0 || sizes.count == 4 * samples else { throw .malformed }
        let isLong = boxes.contains { $0.kind == "co64" }
        offsetLength = isLong ? 8 : 4
        chunks = try MP4Box.only(isLong ? "co64" : "stco", in: boxes).versioned().content
        chunkCount = try chunks.number(4)
        guard chunks.count == offsetLength * chunkCount else { throw .malformed }
        runs = try MP4Box.only("stsc", in: boxes).versioned().content
        runCount = try runs.number(4)
        guard runs.count == 12 * runCount else { throw .malformed }
    }

    /// Checks that every chunk lies in `data`, and that the chunks hold every sample.
    consuming func inspect(within data: Range<Int>) throws(OutputFlaw) {
        var left = samples
        var perChunk = 0
        var nextRun = runCount > 0 ? try runs.number(4) : 0
        guard nextRun == 1 else { throw .malformed }
        for chunk in 1...max(1, chunkCount) {
            guard chunk <= chunkCount else { throw .malformed }
            if chunk == nextRun {
                perChunk = try runs.number(4)
                guard perChunk > 0, try runs.number(4) == 1 else { throw .malformed }
                if !runs.isAtEnd {
                    nextRun = try runs.number(4)
                    guard nextRun > chunk else { throw .malformed }
                }
            }
            guard perChunk <= left else { throw .wrongSampleCount }
            left -= perChunk
            if offsetLength == 8 { guard try chunks.number(1) == 0 else { throw .strayingSamples } }
            let begin = try chunks.number(offsetLength == 8 ? 7 : 4)
            var end = begin
            for _ in 0..<perChunk {
                end += try size()
                guard begin >= data.lowerBound, end <= data.upperBound else { throw .strayingSamples }
            }
        }
        guard left == 0, runs.isAtEnd else { throw .wrongSampleCount }
    }

    private mutating func size() throws(OutputFlaw) -> Int {
        let size = uniformSize != 0 ? uniformSize : try sizes.number(4)
        guard size > 0 else { throw .malformed }
        return size
    }
}

/// A box of an MP4 that has been read: its kind and its content (ISO/IEC 14496-12 §4.2).
struct MP4Box {
    /// The maximum number of boxes inside another. A sample table has about eight.
    private static let most = 64

    let kind: String
    let content: ByteReader

    /// Reads the boxes that fill `bytes` exactly.
    static func all(in bytes: ByteReader) throws(OutputFlaw) -> [MP4Box] {
        var bytes = bytes
        var boxes: [MP4Box] = []
        while !bytes.isAtEnd {
            let size = try bytes.number(4)
            let kind = String(decoding: try bytes.take(4), as: UTF8.self)
            guard size >= 8, boxes.count < most else { throw .malformed }
            boxes.append(MP4Box(kind: kind, content: ByteReader(try bytes.take(size - 8))))
        }
        return boxes
    }

    /// Reads the boxes inside this one.
    func children() throws(OutputFlaw) -> [MP4Box] {
        try Self.all(in: content)
    }

    /// Returns the only box of a kind inside this one.
    func child(_ kind: String) throws(OutputFlaw) -> MP4Box {
        try Self.only(kind, in: try children())
    }

    static func only(_ kind: String, in boxes: [MP4Box]) throws(OutputFlaw) -> MP4Box {
        let found = boxes.filter { $0.kind == kind }
        guard found.count == 1 else { throw .missingPart }
        return found[0]
    }

    /// The content after version and flags (§4.2, `FullBox`).
    func versioned() throws(OutputFlaw) -> (version: Int, content: ByteReader) {
        var content = content
        let version = try content.number(1)
        try content.skip(3)
        return (version, content)
    }
}
