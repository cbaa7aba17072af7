/// Inspects a JPEG (ITU-T T.81 §B): segments from SOI to the scan, one frame header, EOI at the end.
enum JPEGInspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        try claim.check(try size(of: bytes))
    }

    private enum Marker {
        static let startOfImage = 0xffd8
        static let endOfImage = 0xffd9
        static let startOfScan = 0xffda
        /// Baseline, extended and progressive frames with Huffman coding.
        static let frames = 0xffc0...0xffc2
        /// The markers allowed before the scan: tables, frame, restart interval, APP0 (JFIF), comment.
        static let allowed: Set<Int> = [0xffc0, 0xffc1, 0xffc2, 0xffc4, 0xffdb, 0xffdd, 0xffe0, 0xfffe]
    }

    /// The maximum number of segments before the scan. A JPEG has about a dozen.
    private static let mostSegments = 64

    static func size(of bytes: OutputBytes) throws(OutputFlaw) -> PictureSize {
        guard bytes.count >= 4 else { throw .wrongSignature }
        var start = try bytes.read(0..<2)
        guard try start.number(2) == Marker.startOfImage else { throw .wrongSignature }
        var end = try bytes.read(bytes.count - 2..<bytes.count)
        guard try end.number(2) == Marker.endOfImage else { throw .malformed }
        var size: PictureSize?
        var position = 2
        for _ in 0..<mostSegments {
            guard position + 4 <= bytes.count else { throw .malformed }
            var head = try bytes.read(position..<position + 4)
            let marker = try head.number(2)
            let length = try head.number(2)
            guard length >= 2, length <= bytes.count - position - 4 else { throw .malformed }
            if marker == Marker.startOfScan {
                guard let size else { throw .missingPart }
                return size
            }
            guard Marker.allowed.contains(marker) else { throw .malformed }
            if Marker.frames.contains(marker) {
                guard size == nil else { throw .malformed }
                var frame = try bytes.read(position + 4..<position + 2 + length)
                guard try frame.number(1) == 8 else { throw .wrongCodec }
                let height = try frame.number(2)
                size = PictureSize(width: try frame.number(2), height: height)
            }
            position += 2 + length
        }
        throw .malformed
    }
}

/// Inspects a PNG (W3C PNG, third edition): the signature, then chunks from IHDR to IEND that fill the file.
enum PNGInspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        try claim.check(try size(of: bytes))
    }

    /// The chunks of a still picture. A worker has no reason to write text, profiles or animations.
    private static let chunks: Set<String> = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "sRGB", "gAMA", "cHRM", "cICP", "pHYs"]
    private static let headerLength = 13

    /// The maximum number of chunks of a file. libpng writes data in chunks of 8 KiB.
    private static func mostChunks(_ bytes: OutputBytes) -> Int { 64 + bytes.count / 1024 }

    static func size(of bytes: OutputBytes) throws(OutputFlaw) -> PictureSize {
        guard bytes.count >= 8 + 25 + 12, try bytes.read(0..<8).rest.elementsEqual(PNGChunks.signature) else {
            throw .wrongSignature
        }
        var size: PictureSize?
        var hasData = false
        var position = 8
        var left = mostChunks(bytes)
        while position < bytes.count {
            guard position + 12 <= bytes.count, left > 0 else { throw .malformed }
            left -= 1
            var head = try bytes.read(position..<position + 8)
            let length = try head.number(4)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            guard chunks.contains(kind), length <= bytes.count - position - 12 else { throw .malformed }
            guard (kind == "IHDR") == (position == 8) else { throw .missingPart }
            switch kind {
            case "IHDR":
                guard length == headerLength else { throw .malformed }
                var header = try bytes.read(position + 8..<position + 8 + headerLength)
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

/// Inspects a still WebP (RFC 9649): a RIFF that fills the file and holds one picture, lossy or lossless, with or without
/// an extended header and an alpha plane.
enum WebPInspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        try claim.check(try size(of: bytes))
    }

    /// The chunks of a still picture; no animation, no metadata.
    private static let chunks: Set<String> = ["VP8 ", "VP8L", "VP8X", "ALPH"]
    /// The maximum number of chunks of a file. A still picture has at most three.
    private static let mostChunks = 16

    static func size(of bytes: OutputBytes) throws(OutputFlaw) -> PictureSize {
        guard bytes.count >= 12 + 8 + 10 else { throw .wrongSignature }
        var head = try bytes.read(0..<12)
        guard head.skip("RIFF") else { throw .wrongSignature }
        guard try head.littleEndian(4) == bytes.count - 8 else { throw .malformed }
        guard head.skip("WEBP") else { throw .wrongSignature }
        var canvas: PictureSize?
        var picture: PictureSize?
        var position = 12
        var left = mostChunks
        while position < bytes.count {
            guard position + 8 <= bytes.count, left > 0 else { throw .malformed }
            left -= 1
            var head = try bytes.read(position..<position + 8)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            let length = try head.littleEndian(4)
            // Chunks are padded to an even length (§2.3).
            let padded = length + (length & 1)
            guard chunks.contains(kind), padded <= bytes.count - position - 8 else { throw .malformed }
            var content = try bytes.read(position + 8..<position + 8 + min(length, 10))
            switch kind {
            case "VP8X":
                guard canvas == nil, picture == nil else { throw .malformed }
                try content.skip(4)
                canvas = PictureSize(width: try content.littleEndian(3) + 1, height: try content.littleEndian(3) + 1)
            case "VP8 ", "VP8L":
                guard picture == nil else { throw .malformed }
                picture = try size(ofPicture: kind, &content)
            default: break
            }
            position += 8 + padded
        }
        guard let picture else { throw .missingPart }
        if let canvas, canvas != picture { throw .wrongSize }
        return picture
    }

    /// Reads the size in the header of a chunk `VP8L` or `VP8 `.
    static func size(ofPicture kind: String, _ content: inout ByteReader) throws(OutputFlaw) -> PictureSize {
        switch kind {
        case "VP8L": try lossless(&content)
        case "VP8 ": try lossy(&content)
        default: throw .wrongCodec
        }
    }

    /// Reads the header of a keyframe (RFC 6386 §9.1).
    private static func lossy(_ content: inout ByteReader) throws(OutputFlaw) -> PictureSize {
        guard try content.number(1) & 1 == 0 else { throw .wrongCodec }
        try content.skip(2)
        guard try content.number(3) == 0x9d012a else { throw .wrongCodec }
        return PictureSize(width: try content.littleEndian(2) & 0x3fff, height: try content.littleEndian(2) & 0x3fff)
    }

    /// Reads the header of a lossless picture (RFC 9649 §3.4): width and height minus one, 14 bits each.
    private static func lossless(_ content: inout ByteReader) throws(OutputFlaw) -> PictureSize {
        guard try content.number(1) == 0x2f else { throw .wrongCodec }
        let bits = try content.littleEndian(4)
        return PictureSize(width: (bits & 0x3fff) + 1, height: (bits >> 14 & 0x3fff) + 1)
    }
}
