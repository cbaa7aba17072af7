/// The top level of an ISO base media file: its kind and its end.
enum ISOFile {
    /// The format by the brands, wherever `ftyp` is; QuickTime if there is none but a `moov`. Nil for other files.
    ///
    /// Given the beginning of a file only, it is the most probable format.
    static func format(of bytes: UnsafeRawBufferPointer) -> SourceFormat? {
        var found: SourceFormat?
        var passed = 0
        ISOBoxes.forEach(in: bytes) { box in
            passed += 1
            switch box.type {
            case "ftyp":
                found = format(ofBrands: brands(box.body))
                return false
            case "moov":
                found = .mov
                return false
            // QuickTime files of old programs begin with these.
            case "mdat", "wide": found = .mov
            case let type where box.isCutOff && ISOBoxes.topLevel.contains(type): found = .mov
            default: break
            }
            return passed < mostBoxesInFront
        }
        return found
    }

    /// The boxes that are examined for a brand.
    private static let mostBoxesInFront = 1000

    private static func format(ofBrands brands: [String]) -> SourceFormat? {
        if brands.contains("avis") || brands.contains("avif") { return .avif }
        switch brands.first {
        case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "jxl ", "crx ", nil: return nil
        case "qt  ": return .mov
        default: return .mp4
        }
    }

    /// The major brand and the compatible ones.
    private static func brands(_ body: UnsafeRawBufferPointer) -> [String] {
        stride(from: 0, to: body.count & ~3, by: 4).filter { $0 != 4 }.map { ISOBoxes.text(body, $0) }
    }

    /// Whether an AVIF is a sequence, or ends before that is known. The major brand `avif` says that the still picture is meant.
    static func isSequence(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let type = ISOBoxes.first("ftyp", in: bytes), type.count >= 4 else { return true }
        let brands = brands(type)
        return brands.first != "avif" && brands.contains("avis")
    }

    /// The end of a file.
    struct End {
        /// Whether the file ends before its index or, if it has fragments, within one. Samples that lie past the end are not looked for.
        let isCutOff: Bool
        /// The bytes of its whole boxes, and of an `mdat` that is cut off.
        let count: Int
    }

    /// Finds the end. Bytes after the last box that are none belong to no picture: tags, line ends, padding.
    static func end(of bytes: UnsafeRawBufferPointer) -> End {
        var hasIndex = false
        var hasFragments = false
        var cutOff: String?
        let rest = ISOBoxes.forEach(in: bytes) { box in
            if box.isCutOff {
                cutOff = box.type
                return false
            }
            if box.type == "moov" { hasIndex = true }
            if box.type == "moof" { hasFragments = true }
            return true
        }
        guard hasIndex else { return End(isCutOff: true, count: bytes.count) }
        switch cutOff {
        case "mdat": return End(isCutOff: hasFragments, count: bytes.count)
        case "moov", "moof", "styp", "sidx", "ssix", "prft", "emsg": return End(isCutOff: true, count: bytes.count - rest.count)
        default: return End(isCutOff: cutOff == nil && hasFragments && isBeginning(rest), count: bytes.count - rest.count)
        }
    }

    /// Whether bytes are the beginning of the header of a box.
    private static func isBeginning(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Boxes of more than 16 MiB are `mdat`, before whose header there is that of a fragment.
        guard bytes.count < 8, bytes.first == 0, bytes.contains(where: { $0 != 0 }) else { return false }
        let type = bytes.dropFirst(4)
        return ISOBoxes.topLevel.contains { $0.utf8.starts(with: type) }
    }
}
