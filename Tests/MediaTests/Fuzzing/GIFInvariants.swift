#if canImport(Media)
    @testable import Media
#endif

/// What must hold of reading and composing whatever bytes they are given. The fuzzer looks for bytes for which it does
/// not; the tests replay its corpus.
///
/// It is compiled into the fuzzer together with the decoder itself, and so imports nothing else.
enum GIFInvariants {
    /// The first invariant that does not hold, in words; nil where all do.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        if let violation = strings(bytes) { return violation }
        do throws(TranscodeError) {
            return try Composition.violation(bytes, by: GIFReader.self)
        } catch {
            if error == .outOfMemory { return "out of memory" }
            return error.description.hasSuffix(".") ? nil : "an error without a sentence"
        }
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
