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
