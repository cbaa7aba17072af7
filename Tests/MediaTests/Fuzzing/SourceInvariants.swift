#if canImport(Media)
    @testable import Media
#endif

/// What must hold of reading and composing whatever bytes a decoder is given. The fuzzer looks for bytes for which it does not.
///
/// It is compiled into the fuzzer together with the decoders, and so imports nothing else.
enum SourceInvariants {
    /// The first invariant that does not hold for an APNG, in words; nil if all hold. Most changes make checksums wrong, after which
    /// little is read, so the bytes are also tried with right ones.
    static func apng(_ bytes: UnsafeRawBufferPointer) -> String? {
        if let violation = violation(bytes, by: APNGReader.self) { return violation }
        let repaired = withRightChecksums(Array(bytes))
        return repaired.withUnsafeBytes { violation($0, by: APNGReader.self) }
    }

    /// The first invariant that does not hold for a WebP.
    static func webp(_ bytes: UnsafeRawBufferPointer) -> String? { violation(bytes, by: WebPReader.self) }

    /// The first invariant of reading and composing that does not hold.
    static func violation<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by decoder: Decoder.Type
    ) -> String? {
        _ = SourceFormat(of: bytes)?.isAnimation(bytes)
        _ = SourceFormat.canvasPixels(of: bytes)
        do throws(TranscodeError) {
            return try Composition.violation(bytes, by: decoder)
        } catch {
            if error == .outOfMemory { return "out of memory" }
            return error.description.hasSuffix(".") ? nil : "an error without a sentence"
        }
    }

    private static func withRightChecksums(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        var position = 8
        while position + 12 <= bytes.count {
            let length = bytes[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let end = position + 8 + length
            guard end + 4 <= bytes.count else { break }
            if bytes[position + 4..<position + 8].elementsEqual("iCCP".utf8) { repairProfile(&bytes, position + 8..<end) }
            let crc = bytes[position + 4..<end].reduce(UInt32.max) { crc, byte in
                (0..<8).reduce(crc ^ UInt32(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0xedb8_8320 : 0) }
            }
            for index in 0..<4 { bytes[end + index] = UInt8(truncatingIfNeeded: ~crc >> UInt32(24 - 8 * index)) }
            position = end + 4
        }
        return bytes
    }

    /// Puts the right Adler-32 at the end of a profile that is stored in one block, so that it is read.
    private static func repairProfile(_ bytes: inout [UInt8], _ chunk: Range<Int>) {
        guard let name = bytes[chunk].firstIndex(of: 0), chunk.upperBound - name > 13 else { return }
        var (low, high) = (1, 0)
        for byte in bytes[name + 9..<chunk.upperBound - 4] {
            low = (low + Int(byte)) % 65_521
            high = (high + low) % 65_521
        }
        for index in 0..<4 {
            bytes[chunk.upperBound - 4 + index] = UInt8(truncatingIfNeeded: (high << 16 | low) >> (24 - 8 * index))
        }
    }
}

/// Composes a file as the pipeline does, and checks what must hold of it.
enum Composition {
    /// Small, so that an input costs microseconds; still large enough for every limit to be met and for a table of codes
    /// to become full.
    static let limits = MediaLimits(
        side: 700, canvasPixels: 10_000, totalPixels: 40_000, pixelsPerByte: 800, frames: 16, duration: 100_000)

    /// The first invariant that does not hold, in words; nil if all hold.
    static func violation<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by decoder: Decoder.Type
    ) throws(TranscodeError) -> String? {
        let summary = try AnimationSummary(scanning: bytes, by: decoder, limits: limits)
        if let violation = shape(summary) { return violation }
        // The canvas is composed twice: memory that nobody wrote to would hardly hold the same both times.
        var first = Composed()
        var second = Composed()
        if let violation = try compose(bytes, by: decoder, summary, .rgba, into: &first) { return violation }
        if let violation = try compose(bytes, by: decoder, summary, .rgba, into: &second) { return violation }
        if first != second { return "composed differently the second time" }
        var third = Composed()
        return try compose(bytes, by: decoder, summary, .yuv(background: .white), into: &third)
    }

    private static func shape(_ summary: AnimationSummary) -> String? {
        guard summary.width > 0, summary.height > 0, max(summary.width, summary.height) <= limits.side,
            summary.width * summary.height <= limits.canvasPixels
        else { return "a canvas of \(summary.width)×\(summary.height)" }
        guard !summary.delays.isEmpty, summary.delays.count <= limits.frames else { return "\(summary.delays.count) frames" }
        let unit = summary.timescale / FrameClock.timescale
        guard unit * FrameClock.timescale == summary.timescale, FactRange.timescale.contains(summary.timescale) else {
            return "\(summary.timescale) units per second"
        }
        let duration = summary.delays.reduce(0) { $0 + FrameClock.shownDelay($1, timescale: summary.timescale) }
        guard duration > 0, duration <= limits.duration * unit else { return "a duration of \(duration)" }
        if let loopCount = summary.loopCount, !(0...65535).contains(loopCount) { return "\(loopCount) loops" }
        return nil
    }

    /// What composing came to: a number that changes with every pixel, and how many frames there were.
    private struct Composed: Equatable {
        var hash: UInt64 = 14_695_981_039_346_656_037
        var frames = 0
    }

    private static func compose<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, _ summary: AnimationSummary, _ format: PixelFormat,
        into result: inout Composed
    ) throws(TranscodeError) -> String? {
        var reader = try Decoder(bytes, limits: limits)
        var canvas = try Canvas(width: summary.width, height: summary.height, format: format)
        var before = canvas.words
        while try reader.next() {
            let frame = reader.frame
            guard let pixels = try reader.readPixels() else { break }
            guard pixels.count <= frame.rectangle.width * frame.rectangle.height else { return "more pixels than a frame has" }
            guard result.frames < summary.delays.count, frame.delay == summary.delays[result.frames] else {
                return "frame \(result.frames) is not the one that was scanned"
            }
            let changed = try canvas.draw(reader, pixels)
            let after = canvas.words
            if let violation = difference(before, after, outside: changed, in: summary) { return violation }
            if case .yuv = format, after.contains(where: { !(16...235).contains($0 & 255) }) { return "luma out of range" }
            for word in after { result.hash = (result.hash ^ UInt64(word)) &* 1_099_511_628_211 }
            result.frames += 1
            before = after
        }
        guard reader.ending != nil else { return "the records go on" }
        // The other formats have pictures whose data are whole and cannot be decoded.
        if Decoder.format != .gif { return nil }
        // Only the last image can be broken off, and only where the file is.
        let missing = summary.delays.count - result.frames
        guard missing == 0 || (missing == 1 && summary.ending == .brokenOff) else { return "\(missing) frames are missing" }
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
}

extension Canvas {
    /// A copy of the pixels.
    fileprivate var words: [UInt32] { withBytes { Array($0.bindMemory(to: UInt32.self)) } }
}
