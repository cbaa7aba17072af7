/// Inspects an animated WebP (RFC 9649). The chunks that ``AnimatedWebPWriter`` writes, and no others, must fill the file.
/// Frames must lie on the canvas and have the size of their pictures. The duration and the number of plays must match the
/// claim.
enum AnimatedWebPInspection {
    /// RIFF header, `VP8X` and `ANIM`.
    private static let headLength = 12 + 18 + 14
    /// The beginning of `ANMF`.
    private static let frameHeadLength = 8 + 16

    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        guard claim.samples != 1 else {
            guard claim.duration == 0 else { throw .wrongDuration }
            return try WebPInspection.inspect(bytes, claim)
        }
        guard bytes.count >= headLength else { throw .wrongSignature }
        var head = try bytes.read(0..<headLength)
        guard head.skip("RIFF") else { throw .wrongSignature }
        guard try head.littleEndian(4) == bytes.count - 8 else { throw .malformed }
        guard head.skip("WEBPVP8X") else { throw .wrongSignature }
        guard try head.littleEndian(4) == 10, try head.littleEndian(1) & ~0x10 == 2, try head.littleEndian(3) == 0 else {
            throw .malformed
        }
        try claim.check(PictureSize(width: try head.littleEndian(3) + 1, height: try head.littleEndian(3) + 1))
        guard head.skip("ANIM"), try head.littleEndian(4) == 6, try head.littleEndian(4) == 0 else { throw .malformed }
        let plays = try head.littleEndian(2)
        // Several rounds in the file reduce the number of plays, down to one.
        guard claim.loopCount == 0 ? plays == 0 : (1...(claim.loopCount ?? 0) + 1).contains(plays) else { throw .wrongDuration }
        guard claim.timescale == AnimatedWebPWriter.timescale else { throw .wrongDuration }
        try inspectFrames(bytes, claim)
    }

    private static func inspectFrames(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        var position = headLength
        var (frames, duration) = (0, 0)
        while position < bytes.count {
            guard position + frameHeadLength <= bytes.count else { throw .malformed }
            var head = try bytes.read(position..<position + frameHeadLength)
            guard head.skip("ANMF") else { throw .malformed }
            let end = position + 8 + (try head.littleEndian(4))
            guard end >= position + frameHeadLength, end <= bytes.count else { throw .malformed }
            let (x, y) = (2 * (try head.littleEndian(3)), 2 * (try head.littleEndian(3)))
            let size = PictureSize(width: try head.littleEndian(3) + 1, height: try head.littleEndian(3) + 1)
            guard x + size.width <= claim.width, y + size.height <= claim.height else { throw .wrongSize }
            duration += try head.littleEndian(3)
            // No frame is disposed of.
            guard try head.littleEndian(1) & ~2 == 0 else { throw .malformed }
            frames += 1
            guard frames <= claim.samples else { throw .wrongSampleCount }
            try inspectPicture(bytes, position + frameHeadLength..<end, size)
            position = end
        }
        guard frames == claim.samples else { throw .wrongSampleCount }
        guard duration == claim.duration else { throw .wrongDuration }
    }

    /// Inspects one picture: lossless or lossy, the latter with or without alpha.
    private static func inspectPicture(_ bytes: OutputBytes, _ range: Range<Int>, _ size: PictureSize) throws(OutputFlaw) {
        var position = range.lowerBound
        var kinds: [String] = []
        while position < range.upperBound {
            guard position + 8 <= range.upperBound, kinds.count < 2 else { throw .malformed }
            var head = try bytes.read(position..<position + 8)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            let length = try head.littleEndian(4)
            let end = position + 8 + length + (length & 1)
            guard end <= range.upperBound else { throw .malformed }
            if kind != "ALPH" {
                var content = try bytes.read(position + 8..<position + 8 + min(length, 10))
                guard try WebPInspection.size(ofPicture: kind, &content) == size else { throw .wrongSize }
            }
            kinds.append(kind)
            position = end
        }
        guard kinds == ["VP8L"] || kinds == ["VP8 "] || kinds == ["ALPH", "VP8 "] else { throw .wrongCodec }
    }
}
