/// Inspects a still WebP (RFC 9649): a RIFF that fills the file and holds one picture, lossy or lossless, with or without
/// an extended header and an alpha plane.
enum WebPInspection {
    /// What a still picture is made of; no animation, no metadata.
    private static let chunks: Set<String> = ["VP8 ", "VP8L", "VP8X", "ALPH"]

    static func size(of bytes: OutputBytes) throws(OutputFlaw) -> PictureSize {
        guard bytes.count >= 12 + 8 + 10 else { throw .wrongSignature }
        var head = try bytes.read(0..<12)
        guard head.skip("RIFF") else { throw .wrongSignature }
        guard try head.littleEndian(4) == bytes.count - 8 else { throw .malformed }
        guard head.skip("WEBP") else { throw .wrongSignature }
        var canvas: PictureSize?
        var picture: PictureSize?
        var position = 12
        while position < bytes.count {
            guard position + 8 <= bytes.count else { throw .malformed }
            var head = try bytes.read(position..<position + 8)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            let length = try head.littleEndian(4)
            // Chunks are padded to an even length (§2.3).
            let padded = length + length & 1
            guard chunks.contains(kind), padded <= bytes.count - position - 8 else { throw .malformed }
            var content = try bytes.read(position + 8..<position + 8 + min(length, 10))
            switch kind {
            case "VP8X":
                guard canvas == nil, picture == nil else { throw .malformed }
                try content.skip(4)
                canvas = PictureSize(width: try content.littleEndian(3) + 1, height: try content.littleEndian(3) + 1)
            case "VP8 ", "VP8L":
                guard picture == nil else { throw .malformed }
                picture = kind == "VP8L" ? try lossless(&content) : try lossy(&content)
            default: break
            }
            position += 8 + padded
        }
        guard let picture else { throw .missingPart }
        if let canvas, canvas != picture { throw .wrongSize }
        return picture
    }

    /// The head of a key frame (RFC 6386 §9.1).
    private static func lossy(_ content: inout ByteReader) throws(OutputFlaw) -> PictureSize {
        guard try content.number(1) & 1 == 0 else { throw .wrongCodec }
        try content.skip(2)
        guard try content.number(3) == 0x9d012a else { throw .wrongCodec }
        return PictureSize(width: try content.littleEndian(2) & 0x3fff, height: try content.littleEndian(2) & 0x3fff)
    }

    /// The head of a lossless picture (RFC 9649 §3.4): 14 bits each of width and height, less one.
    private static func lossless(_ content: inout ByteReader) throws(OutputFlaw) -> PictureSize {
        guard try content.number(1) == 0x2f else { throw .wrongCodec }
        let bits = try content.littleEndian(4)
        return PictureSize(width: bits & 0x3fff + 1, height: bits >> 14 & 0x3fff + 1)
    }
}
