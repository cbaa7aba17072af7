#if canImport(Media)
    @testable import Media
#endif

/// What must hold of reading and composing whatever bytes they are given. The fuzzer looks for bytes for which it does
/// not; the tests replay its corpus.
///
/// It is compiled into the fuzzer together with the decoder itself, and so imports nothing else.
enum GIFInvariants {
    /// Small, so that an input costs microseconds; still large enough for every limit to be met and for a table of codes
    /// to become full.
    static let limits = MediaLimits(
        side: 700, canvasPixels: 10_000, totalPixels: 40_000, pixelsPerByte: 800, frames: 16, duration: 100_000)

    /// The first invariant that does not hold, in words; nil where all do.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        if let violation = strings(bytes) { return violation }
        do throws(TranscodeError) {
            let summary = try AnimationSummary(scanning: bytes, by: GIFReader.self, limits: limits)
            if let violation = shape(summary) { return violation }
            // The canvas is composed twice: memory that nobody wrote to would hardly hold the same both times.
            var first = Composed()
            var second = Composed()
            if let violation = try compose(bytes, summary, .rgba, into: &first) { return violation }
            if let violation = try compose(bytes, summary, .rgba, into: &second) { return violation }
            if first != second { return "composed differently the second time" }
            var third = Composed()
            return try compose(bytes, summary, .yuv(background: .white), into: &third)
        } catch {
            if error == .outOfMemory { return "out of memory" }
            return error.description.hasSuffix(".") ? nil : "an error without a sentence"
        }
    }

    private static func shape(_ summary: AnimationSummary) -> String? {
        guard summary.width > 0, summary.height > 0, max(summary.width, summary.height) <= limits.side,
            summary.width * summary.height <= limits.canvasPixels
        else { return "a canvas of \(summary.width)×\(summary.height)" }
        guard !summary.delays.isEmpty, summary.delays.count <= limits.frames else { return "\(summary.delays.count) frames" }
        let duration = summary.delays.reduce(0) { $0 + FrameClock.shownDelay(Int($1)) }
        guard duration > 0, duration <= limits.duration else { return "a duration of \(duration)" }
        if let loopCount = summary.loopCount, !(0...65535).contains(loopCount) { return "\(loopCount) loops" }
        return nil
    }

    /// What composing came to: a number that changes with every pixel, and how many frames there were.
    private struct Composed: Equatable {
        var hash: UInt64 = 14_695_981_039_346_656_037
        var frames = 0
    }

    private static func compose(
        _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, _ format: PixelFormat, into result: inout Composed
    ) throws(TranscodeError) -> String? {
        var reader = try GIFReader(bytes, limits: limits)
        var canvas = try Canvas(width: summary.width, height: summary.height, format: format)
        var before = canvas.words
        while try reader.next() {
            let frame = reader.frame
            guard let indices = try reader.readPixels() else { break }
            guard indices.count <= frame.rectangle.width * frame.rectangle.height else { return "more pixels than a frame has" }
            guard result.frames < summary.delays.count, frame.delay == Int(summary.delays[result.frames]) else {
                return "frame \(result.frames) is not the one that was scanned"
            }
            let changed = try canvas.draw(reader, indices)
            let after = canvas.words
            if let violation = difference(before, after, outside: changed, in: summary) { return violation }
            if case .yuv = format, after.contains(where: { !(16...235).contains($0 & 255) }) { return "luma out of range" }
            for word in after { result.hash = (result.hash ^ UInt64(word)) &* 1_099_511_628_211 }
            result.frames += 1
            before = after
        }
        guard reader.ending != nil else { return "the records go on" }
        // Only the last image can be broken off, and only where the file is.
        let missing = summary.delays.count - result.frames
        guard missing == 0 || (missing == 1 && summary.isBrokenOff) else { return "\(missing) frames are missing" }
        return nil
    }

    /// A rectangle that lies on the canvas, outside of which nothing changed.
    private static func difference(
        _ before: [UInt32], _ after: [UInt32], outside changed: Rectangle, in summary: AnimationSummary
    ) -> String? {
        if changed.isEmpty { return before == after ? nil : "the canvas changed" }
        guard changed.x >= 0, changed.y >= 0, changed.maxX <= summary.width, changed.maxY <= summary.height else {
            return "\(changed) is not on the canvas"
        }
        for index in before.indices where before[index] != after[index] {
            let (y, x) = index.quotientAndRemainder(dividingBy: summary.width)
            guard (changed.x..<changed.maxX).contains(x), (changed.y..<changed.maxY).contains(y) else {
                return "\(x), \(y) changed outside of \(changed)"
            }
        }
        return nil
    }

    /// The bytes as LZW codes: the decoder gives what a plain one gives, however the codes are cut into blocks.
    private static func strings(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.count > 3 else { return nil }
        let codeSize = 1 + Int(bytes[0]) % 11
        let pixels = Int(bytes[1]) * 19
        let codes = Array(bytes[3...])
        let expected = PlainLZW.decode(codes, minimumCodeSize: codeSize, pixels: pixels)
        do throws(TranscodeError) {
            var decoder = try LZWDecoder()
            for step in [255, 1 + Int(bytes[2])] {
                let output = try HeapBuffer<UInt8>(count: pixels + LZWDecoder.slack)
                decoder.begin(minimumCodeSize: codeSize, output: output.base, pixels: pixels)
                for start in stride(from: 0, to: codes.count, by: step) {
                    codes[start..<min(start + step, codes.count)].withUnsafeBufferPointer { decoder.decode($0) }
                }
                guard UnsafeBufferPointer(start: output.base, count: decoder.count).elementsEqual(expected) else {
                    return "other pixels than a plain decoder's, in blocks of \(step)"
                }
            }
        } catch {
            return "\(error)"
        }
        return nil
    }
}

extension Canvas {
    /// A copy of the pixels.
    fileprivate var words: [UInt32] { withBytes { Array($0.bindMemory(to: UInt32.self)) } }
}
