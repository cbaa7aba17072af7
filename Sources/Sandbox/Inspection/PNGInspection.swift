/// Inspects a PNG (W3C PNG, third edition): the signature, then chunks that fill the file, from IHDR to IEND.
enum PNGInspection {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    /// What a still picture is made of. No text, no profile, no animation: nothing a worker has to put there.
    private static let chunks: Set<String> = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "sRGB", "gAMA", "cHRM", "cICP", "pHYs"]

    static func size(of bytes: OutputBytes) throws(OutputFlaw) -> PictureSize {
        guard bytes.count >= 8 + 25 + 12, try bytes.read(0..<8).rest.elementsEqual(signature) else { throw .wrongSignature }
        var size: PictureSize?
        var hasData = false
        var position = 8
        while position < bytes.count {
            guard position + 12 <= bytes.count else { throw .malformed }
            var head = try bytes.read(position..<position + 8)
            let length = try head.number(4)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            guard chunks.contains(kind), length <= bytes.count - position - 12 else { throw .malformed }
            guard (kind == "IHDR") == (position == 8) else { throw .missingPart }
            switch kind {
            case "IHDR":
                var header = try bytes.read(position + 8..<position + 8 + length)
                size = PictureSize(width: try header.number(4), height: try header.number(4))
            case "IDAT": hasData = hasData || length > 0
            case "IEND":
                guard length == 0, position + 12 == bytes.count, hasData, let size else { throw .malformed }
                return size
            default: break
            }
            position += 12 + length
        }
        throw .missingPart
    }
}
