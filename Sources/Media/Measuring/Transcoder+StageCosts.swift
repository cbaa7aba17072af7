internal import CAV
internal import Glibc

extension Transcoder {
    /// Converts the GIF as ``convert(_:to:)`` does, once and on one thread, and tells what each stage took.
    ///
    /// For measurements: it reads the thread's clock at every border between two stages, some hundred nanoseconds each.
    ///
    /// - Parameters:
    ///   - gif: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing.
    package func stageCosts(
        of gif: UnsafeRawBufferPointer, to descriptor: Int32
    ) throws(TranscodeError) -> StageCosts {
        var costs = StageCosts()
        var watch = ThreadWatch()
        let summary = try GIFSummary(scanning: gif, limits: limits)
        costs.scan += watch.lap()

        let width = (summary.width + 1) & ~1
        let height = (summary.height + 1) & ~1
        let shortest = summary.delays.map { FrameClock.shownDelay(Int($0)) }.min() ?? 1
        let settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: 1)
        var reader = try GIFReader(gif, limits: limits)
        costs.decode += watch.lap()
        var canvas = try Canvas(
            width: summary.width, height: summary.height, format: .yuv(background: options.background))
        costs.compose += watch.lap()
        var encoder = try H264Encoder(width: width, height: height, shortestFrame: shortest, settings: settings)
        costs.encode += watch.lap()
        var muxer = try MP4Muxer(descriptor: descriptor) { parameters throws(TranscodeError) in
            try encoder.describe(parameters)
        }
        costs.mux += watch.lap()

        var clock = FrameClock()
        var isFirst = true
        while try reader.next(), let indices = try reader.readPixels() {
            costs.decode += watch.lap()
            costs.codedPixels += reader.frame.rectangle.width * reader.frame.rectangle.height
            let drawn = try canvas.draw(reader, indices: indices)
            costs.compose += watch.lap()
            let time = clock.advance(by: reader.frame.delay)
            let area = isFirst ? Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height) : drawn
            let hasChanged = PixelConverter.convert(canvas, area, into: try encoder.planes())
            costs.convert += watch.lap()
            guard hasChanged || isFirst else { continue }
            isFirst = false
            costs.videoPixels += width * height
            muxer.expect(time: time.start)
            try encoder.encode(at: time.start) { packet throws(TranscodeError) in
                costs.encode += watch.lap()
                try muxer.append(packet)
                costs.mux += watch.lap()
            }
            costs.encode += watch.lap()
        }
        try encoder.finish { packet throws(TranscodeError) in
            costs.encode += watch.lap()
            try muxer.append(packet)
            costs.mux += watch.lap()
        }
        costs.encode += watch.lap()
        costs.bytes = try muxer.finish(end: clock.now)
        costs.mux += watch.lap()
        return costs
    }
}

/// Processor time of the calling thread.
private struct ThreadWatch {
    private var last = Self.now()

    /// Nanoseconds since the last lap.
    mutating func lap() -> Int {
        let now = Self.now()
        defer { last = now }
        return now - last
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
