/// Distinguishes still pictures from animations of the same file format.
enum StillPictures {
    private static let pngSignatureLength = 8
    /// Bytes of a chunk's length and type, and of its checksum.
    private static let pngChunkHead = 8
    private static let pngChecksum = 4

    /// Judges a PNG, which is an animation if the chunk `acTL` precedes the pixels (PNG third edition §11.3.6.1).
    ///
    /// - Parameter isWhole: Whether no more bytes follow. A PNG that cannot be judged by these bytes passes as a source, so
    ///   that the decoder decides.
    static func judgePNG(_ bytes: [UInt8], isWhole: Bool) -> ContentSniffer.Judgement {
        var position = pngSignatureLength
        while position + pngChunkHead <= bytes.count {
            let length = bytes[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: bytes[position + 4..<position + pngChunkHead], as: UTF8.self)
            if position == pngSignatureLength && type != "IHDR" || type == "IDAT" { return .notAnAnimation(.png) }
            if type == "acTL" { return .source }
            position += pngChunkHead + length + pngChecksum
        }
        if !isWhole { return .undecided }
        return position == pngSignatureLength ? .notAnAnimation(.png) : .source
    }

    private static let webpFormat = 12..<16
    private static let webpFlags = 20
    private static let webpAnimationFlag: UInt8 = 2

    /// Judges a WebP, whose extended header says whether it is an animation.
    static func judgeWebP(_ bytes: [UInt8], isWhole: Bool) -> ContentSniffer.Judgement {
        guard bytes.count >= webpFormat.upperBound else { return isWhole ? .notAnAnimation(.webp) : .undecided }
        guard bytes[webpFormat].elementsEqual("VP8X".utf8) else { return .notAnAnimation(.webp) }
        guard bytes.count > webpFlags else { return isWhole ? .notAnAnimation(.webp) : .undecided }
        return bytes[webpFlags] & webpAnimationFlag != 0 ? .source : .notAnAnimation(.webp)
    }

    /// Judges a file with a major brand of HEIF. It is an AVIF sequence if its brands include `avis` (ISO/IEC 14496-12 §4.3).
    ///
    /// - Parameter isWhole: Whether no more bytes follow.
    static func judgeHEIF(_ bytes: [UInt8], isWhole: Bool) -> ContentSniffer.Judgement {
        let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
        let brands = stride(from: 8, to: min(length, bytes.count) - 3, by: 4).map { bytes[$0..<$0 + 4] }
        if brands.contains(where: { $0.elementsEqual("avis".utf8) }) { return .source }
        if !isWhole, bytes.count < length { return .undecided }
        return .notAnAnimation(brands.contains { $0.elementsEqual("avif".utf8) } ? .avif : .heic)
    }
}
