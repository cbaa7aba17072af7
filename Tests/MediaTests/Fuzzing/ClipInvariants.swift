internal import SystemIO

#if canImport(Media)
    @testable import Media
#endif

/// What must hold of reading, composing and copying a clip or an image sequence, whatever its bytes are.
///
/// It is compiled into the fuzzer together with the reader.
enum ClipInvariants {
    /// The first invariant that does not hold, in words; nil if all hold.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        Transcoder.prepareLibraries()
        return SourceInvariants.violation(bytes, by: ClipReader.self) ?? copyViolation(bytes)
    }

    /// The same for the container alone: no pixels are decoded, so that many times as many inputs are tried.
    static func containerViolation(_ bytes: UnsafeRawBufferPointer) -> String? {
        Transcoder.prepareLibraries()
        _ = SourceFormat(of: bytes)?.isAnimation(bytes)
        guard let format = ClipReader.format(of: bytes) else { return nil }
        let limits = Composition.limits
        do throws(TranscodeError) {
            let container = try ClipContainer(bytes, format)
            guard let track = container.color else { return nil }
            _ = container.alpha
            _ = ClipOrientation(track, in: container)
            if let loops = container.boxes(of: track)?.loopCount, !(0...65535).contains(loops) { return "\(loops) loops" }
            let index = try ClipIndex(container, track, limits: limits)
            return violation(index, limits)
        } catch {
            if error == .outOfMemory { return "out of memory" }
            return error.description.hasSuffix(".") ? nil : "an error without a sentence"
        }
    }

    private static func violation(_ index: ClipIndex, _ limits: MediaLimits) -> String? {
        guard index.frames.count <= limits.frames else { return "\(index.frames.count) frames" }
        guard zip(index.frames, index.frames.dropFirst()).allSatisfy({ $0.time < $1.time }) else {
            return "frames out of order"
        }
        guard index.frames.allSatisfy({ $0.delay >= 0 && $0.size > 0 }) else { return "a delay or size that is out of range" }
        guard FactRange.timescale.contains(index.timescale) else { return "\(index.timescale) units per second" }
        return (0...16).contains(index.reordering) ? nil : "\(index.reordering) frames of reordering"
    }

    /// A copy passes the inspection of the server, like every file of a worker.
    private static func copyViolation(_ bytes: UnsafeRawBufferPointer) -> String? {
        let transcoder = Transcoder(limits: Composition.limits)
        do {
            guard let copy = try ClipCopy(transcoder, bytes) else { return nil }
            let summary = try AnimationSummary(scanning: bytes, by: ClipReader.self, limits: transcoder.limits)
            let file = try MemoryFile(name: "copy")
            guard let result = try copy.write(summary, to: file.reader.number, FrameMeter(nil)) else { return nil }
            try OutputInspection.inspect(try file.seal(), as: OutputClaim(transcoder, result), limit: 1 << 30)
            return nil
        } catch let flaw as OutputFlaw {
            return "a copy with a flaw: \(flaw)"
        } catch {
            return nil
        }
    }
}
