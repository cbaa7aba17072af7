/// The encoded pictures of an animation: a stream of colours and, where there is transparency, one of alpha. Not thread-safe.
struct PictureStreams: ~Copyable {
    private static let headerLength = 256

    private let color: PlaneEncoder
    private let alpha: PlaneEncoder?
    /// The part of a packet that belongs into the file.
    private let payload: (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
    /// Pictures that were given to the encoders.
    private var times: [Int] = []
    /// The pictures whose packets have come out.
    private(set) var pictures: [EncodedPicture] = []
    /// The beginnings of the first packets: as much as has a codec's headers. Empty without such a stream.
    private(set) var firstColor: [UInt8] = []
    private(set) var firstAlpha: [UInt8] = []
    private var spool: PacketSpool
    /// Packets of one stream that wait for the other's: as many as the encoders look ahead, at most.
    private var colorQueue = PacketQueue()
    private var alphaQueue = PacketQueue()

    /// - Parameters:
    ///   - descriptor: An empty, seekable file open for reading and writing.
    ///   - payload: Selects the part of a packet that belongs into the file.
    init(
        color: PlaneEncoder, alpha: PlaneEncoder?, descriptor: Int32,
        payload: @escaping (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer = { $0 }
    ) {
        self.color = color
        self.alpha = alpha
        self.payload = payload
        spool = PacketSpool(descriptor: descriptor)
    }

    /// Encodes all samples of a source.
    ///
    /// - Parameter threads: Above 1, pictures are composed on a thread of their own.
    /// - Throws: ``TranscodeError``, also for a source without a sample.
    mutating func encode<Decoder: AnimationDecoder & ~Copyable>(
        _ source: SampleSource<Decoder>, start: Int, threads: Int
    ) throws(TranscodeError) {
        let thread = threads > 1 ? SampleThread(source) : nil
        defer { thread?.stop() }
        var meter = NoMeter()
        while true {
            let sample: Sample?
            if let thread {
                sample = try thread.next(into: planes())
            } else {
                sample = try source.next(&meter) { () throws(TranscodeError) in try planes() }
            }
            guard let sample else { break }
            times.append(sample.time)
            try color.encode { packet throws(TranscodeError) in try colorQueue.append(payload(packet.bytes), packet.isKey) }
            try alpha?.encode { packet throws(TranscodeError) in try alphaQueue.append(payload(packet.bytes), packet.isKey) }
            try store()
        }
        guard source.frames > 0 else { throw .incomplete(Decoder.format) }
        guard source.samples > 0 else { throw source.startPastEnd(start) }
        try color.finish { packet throws(TranscodeError) in try colorQueue.append(payload(packet.bytes), packet.isKey) }
        try alpha?.finish { packet throws(TranscodeError) in try alphaQueue.append(payload(packet.bytes), packet.isKey) }
        try store()
        guard pictures.count == times.count else { throw .failed(.encode, code: 0) }
    }

    private func planes() throws(TranscodeError) -> PixelConverter.Planes {
        var planes = try color.planes()
        planes.alpha = try alpha?.alphaPlane()
        return planes
    }

    /// Writes the packets of pictures that are complete.
    private mutating func store() throws(TranscodeError) {
        while colorQueue.count > 0, alpha == nil || alphaQueue.count > 0, pictures.count < times.count {
            let colors = colorQueue.removeFirst()
            if pictures.isEmpty { firstColor = Array(colors.bytes.prefix(Self.headerLength)) }
            var picture = EncodedPicture(
                time: times[pictures.count], isKey: colors.isKey, color: try Self.append(colors, to: &spool))
            if alpha != nil {
                let plane = alphaQueue.removeFirst()
                if pictures.isEmpty { firstAlpha = Array(plane.bytes.prefix(Self.headerLength)) }
                picture.alpha = try Self.append(plane, to: &spool)
                picture.isKey = picture.isKey && plane.isKey
            }
            pictures.append(picture)
        }
    }

    private static func append(_ packet: PacketQueue.Packet, to spool: inout PacketSpool) throws(TranscodeError) -> Range<Int> {
        try packet.bytes.withUnsafeBytes { bytes in
            Result { () throws(TranscodeError) in try spool.append(bytes) }
        }.get()
    }

    /// Writes the file; see ``PacketSpool/assemble(_:)``.
    consuming func assemble(_ layout: FileLayout) throws(TranscodeError) -> Int {
        try spool.assemble(layout)
    }
}

/// Packets in the order in which they came.
private struct PacketQueue {
    struct Packet {
        var bytes: [UInt8]
        var isKey: Bool
    }

    private var packets: [Packet] = []

    var count: Int { packets.count }

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ isKey: Bool) throws(TranscodeError) {
        // An array that cannot be allocated ends the process.
        _ = try HeapBuffer<UInt8>(count: bytes.count + 64)
        packets.append(Packet(bytes: Array(bytes), isKey: isKey))
    }

    mutating func removeFirst() -> Packet { packets.removeFirst() }
}
