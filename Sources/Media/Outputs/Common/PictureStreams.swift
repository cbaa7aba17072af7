internal import CMedia

/// The encoded pictures of an animation: a colour stream and, if there is transparency, an alpha stream. Not thread-safe.
struct PictureStreams: ~Copyable {
    private static let headerLength = 256
    /// The most pixels for which both streams are encoded at once. Above, alpha comes first and then the colours: this reads
    /// the source again but needs the memory of only one encoder. The alpha packets wait at the front of the spool.
    private static let mostPixelsAtOnce = 2_500_000

    private let hasAlpha: Bool
    /// The part of a packet that goes into the file.
    private let payload: (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
    /// The times of the pictures that were sent to the encoders.
    private var times: [Int] = []
    /// The pictures whose packets have come out.
    private(set) var pictures: [EncodedPicture] = []
    /// The beginnings of the first packets, long enough for a codec's headers. Empty if there is no such stream.
    private(set) var firstColor: [UInt8] = []
    private(set) var firstAlpha: [UInt8] = []
    private var spool: PacketSpool
    /// The alpha packets that were encoded before the colours and wait at the front of the spool, and their length.
    private var waitingAlpha: [(range: Range<Int>, isKey: Bool)] = []
    private var waitingLength = 0
    /// Packets of one stream that wait for the other stream.
    private var colorQueue = PacketQueue()
    private var alphaQueue = PacketQueue()

    /// - Parameter descriptor: An empty, seekable file open for reading and writing.
    init(
        hasAlpha: Bool, descriptor: Int32,
        payload: @escaping (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer = { $0 }
    ) {
        self.hasAlpha = hasAlpha
        self.payload = payload
        spool = PacketSpool(descriptor: descriptor)
    }

    /// Encodes all samples of a source.
    ///
    /// - Parameters:
    ///   - threads: Above 1, pictures are composed on a separate thread.
    ///   - hasTwoPasses: Whether a first pass examines all frames before they are encoded.
    ///   - source: Opens the source at its beginning.
    ///   - encoder: Opens the encoder of colours or alpha for the source.
    /// - Returns: The source at its end.
    /// - Throws: ``TranscodeError``, including if the source has no sample.
    mutating func encode<Decoder: AnimationDecoder & ~Copyable, Settings: EncoderSettings>(
        frames: Int, threads: Int, _ meter: FrameMeter, hasTwoPasses: Bool,
        source: () throws(TranscodeError) -> SampleSource<Decoder>,
        encoder: (_ isAlpha: Bool, SampleSource<Decoder>, EncoderPass) throws(TranscodeError) -> VideoEncoder<Settings>
    ) throws(TranscodeError) -> SampleSource<Decoder> {
        var samples = try source()
        let isAtOnce = samples.width * samples.height <= Self.mostPixelsAtOnce
        let runs: [(color: Bool, alpha: Bool)] = hasAlpha && !isAtOnce ? [(false, true), (true, false)] : [(true, hasAlpha)]
        meter.begin(total: frames, passes: runs.count * (hasTwoPasses ? 2 : 1))
        for (number, run) in runs.enumerated() {
            if number > 0 {
                waitingLength = spool.length
                samples = try source()
                meter.beginNextPass()
            }
            var passes: (color: EncoderPass, alpha: EncoderPass) = (.only, .only)
            if hasTwoPasses {
                let color = run.color ? try encoder(false, samples, .first) : nil
                let alpha = run.alpha ? try encoder(true, samples, .first) : nil
                try feed(samples, color, alpha, isFirstPass: true, threads: threads, meter)
                if let color { passes.color = try color.finishFirstPass() }
                if let alpha { passes.alpha = try alpha.finishFirstPass() }
                samples = try source()
                meter.beginNextPass()
            }
            let color = run.color ? try encoder(false, samples, passes.color) : nil
            let alpha = run.alpha ? try encoder(true, samples, passes.alpha) : nil
            try feed(samples, color, alpha, isFirstPass: false, threads: threads, meter)
            try color?.finish { packet throws(TranscodeError) in try receiveColor(packet, meter) }
            try alpha?.finish { packet throws(TranscodeError) in try receiveAlpha(packet, isAlone: color == nil, meter) }
            try store()
        }
        guard pictures.count == times.count else { throw .failed(.encode, code: 0) }
        try removeWaitingAlpha()
        return samples
    }

    /// Passes all samples to one or both encoders. A first pass stores nothing.
    private mutating func feed<Decoder: AnimationDecoder & ~Copyable, Settings: EncoderSettings>(
        _ source: SampleSource<Decoder>, _ color: VideoEncoder<Settings>?, _ alpha: VideoEncoder<Settings>?, isFirstPass: Bool,
        threads: Int, _ progress: FrameMeter
    ) throws(TranscodeError) {
        // Both planes determine which pictures differ, so a plane that is not encoded is written nevertheless.
        let unused = try OwnedPlanes(
            width: source.width, height: source.height, source.chroma, hasColor: color == nil,
            hasAlpha: hasAlpha && alpha == nil)
        func planes() throws(TranscodeError) -> FramePlanes {
            var planes = try color?.planes() ?? unused.planes
            if hasAlpha { planes.alpha = try alpha?.alphaPlane() ?? unused.planes.alpha }
            return planes
        }
        let thread = threads > 1 ? SampleThread(source) : nil
        defer { thread?.stop() }
        while let sample = try source.nextSample(on: thread, into: planes) {
            if color != nil && !isFirstPass { try times.grow(by: sample.time) }
            progress.enter(frame: sample.frame)
            try color?.encode { packet throws(TranscodeError) in try receiveColor(packet, progress) }
            try alpha?.encode { packet throws(TranscodeError) in try receiveAlpha(packet, isAlone: color == nil, progress) }
            if isFirstPass { progress.leave() }
            try store()
        }
    }

    private mutating func receiveColor(
        _ packet: UnsafeMutablePointer<AVPacket>, _ progress: FrameMeter
    ) throws(TranscodeError) {
        try colorQueue.append(payload(packet.pointee.bytes), packet.pointee.isKey)
        progress.leave()
    }

    private mutating func receiveAlpha(
        _ packet: UnsafeMutablePointer<AVPacket>, isAlone: Bool, _ progress: FrameMeter
    ) throws(TranscodeError) {
        let (bytes, isKey) = (payload(packet.pointee.bytes), packet.pointee.isKey)
        if isAlone {
            try waitingAlpha.grow(by: (try spool.append(bytes), isKey))
            progress.leave()
        } else {
            try alphaQueue.append(bytes, isKey)
        }
    }

    /// Returns the alpha packet of the next picture. There must be one.
    private mutating func takeAlpha() throws(TranscodeError) -> PacketQueue.Packet {
        guard pictures.count < waitingAlpha.count else { return alphaQueue.removeFirst() }
        let packet = waitingAlpha[pictures.count]
        return PacketQueue.Packet(bytes: try spool.read(packet.range), isKey: packet.isKey)
    }

    /// Writes the packets of complete pictures.
    private mutating func store() throws(TranscodeError) {
        while colorQueue.count > 0, !hasAlpha || alphaQueue.count > 0 || pictures.count < waitingAlpha.count,
            pictures.count < times.count
        {
            let colors = colorQueue.removeFirst()
            if pictures.isEmpty { firstColor = Array(colors.bytes.prefix(Self.headerLength)) }
            var picture = EncodedPicture(
                time: times[pictures.count], isKey: colors.isKey, color: try Self.append(colors, to: &spool))
            if hasAlpha {
                let plane = try takeAlpha()
                if pictures.isEmpty { firstAlpha = Array(plane.bytes.prefix(Self.headerLength)) }
                picture.alpha = try Self.append(plane, to: &spool)
                picture.isKey = picture.isKey && plane.isKey
            }
            try pictures.grow(by: picture)
        }
    }

    private static func append(_ packet: PacketQueue.Packet, to spool: inout PacketSpool) throws(TranscodeError) -> Range<Int> {
        try packet.bytes.span.bytes.withUnsafeBytes { bytes throws(TranscodeError) in try spool.append(bytes) }
    }

    /// Removes the alpha packets that waited: the pictures have copies of them.
    private mutating func removeWaitingAlpha() throws(TranscodeError) {
        if waitingLength == 0 { return }
        try spool.removeFirst(waitingLength)
        for index in pictures.indices { pictures[index].move(by: -waitingLength) }
        (waitingAlpha, waitingLength) = ([], 0)
    }

    /// Returns the layout of the file, which contains the pictures `rounds` times.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    func layout(rounds: Int, _ layout: ([EncodedPicture]) -> FileLayout) throws(TranscodeError) -> FileLayout {
        try HeapBuffer.check(bytes: pictures.count * rounds * FileLayout.mostBytes)
        return layout(pictures)
    }

    /// Writes the file; see ``PacketSpool/assemble(_:)``.
    consuming func assemble(_ layout: FileLayout) throws(TranscodeError) -> Int {
        try spool.assemble(layout)
    }
}

/// A first-in, first-out queue of packets.
private struct PacketQueue {
    struct Packet {
        var bytes: [UInt8]
        var isKey: Bool
    }

    private var packets: [Packet?] = []
    /// The index of the oldest packet.
    private var first = 0

    var count: Int { packets.count - first }

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ isKey: Bool) throws(TranscodeError) {
        try HeapBuffer.check(bytes: bytes.count + 64)
        try packets.grow(by: Packet(bytes: Array(bytes), isKey: isKey))
    }

    /// Takes the oldest packet. There must be one.
    mutating func removeFirst() -> Packet {
        guard let packet = packets[first] else { preconditionFailure("a packet that is taken twice") }
        packets[first] = nil
        first += 1
        return packet
    }
}
