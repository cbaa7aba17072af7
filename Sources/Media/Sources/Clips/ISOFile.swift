/// The top level of an ISO base media file: its kind and its end.
enum ISOFile {
    /// Returns the format by the brands; without any, MP4 if a fragment comes first, or QuickTime; nil for other files.
    ///
    /// Given only the beginning of a file, the result is the most probable format.
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
            // A segment of a stream, without its header.
            case "styp", "moof":
                found = .mp4
                return false
            // Files of old QuickTime programs begin with these.
            case "mdat", "wide": found = .mov
            case let type where box.isCutOff && ISOBoxes.topLevel.contains(type): found = .mov
            default: break
            }
            return passed < mostBoxesInFront
        }
        return found
    }

    /// The maximum number of boxes to examine for a brand.
    private static let mostBoxesInFront = 1000

    private static func format(ofBrands brands: [String]) -> SourceFormat? {
        if brands.contains("avis") || brands.contains("avif") { return .avif }
        switch brands.first {
        case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "jxl ", "crx ", nil: return nil
        case "qt  ": return .mov
        default: return .mp4
        }
    }

    /// Returns the major brand and the compatible brands.
    private static func brands(_ body: UnsafeRawBufferPointer) -> [String] {
        stride(from: 0, to: body.count & ~3, by: 4).filter { $0 != 4 }.map { ISOBoxes.text(body, $0) }
    }

    /// Whether an AVIF is a sequence, or ends before that is known. The major brand `avif` selects the still picture.
    static func isSequence(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let type = ISOBoxes.first("ftyp", in: bytes), type.count >= 4 else { return true }
        let brands = brands(type)
        return brands.first != "avif" && brands.contains("avis")
    }

    struct End {
        /// Whether the file ends before its index or, if it has fragments, within one. Samples past the end are not checked.
        let isCutOff: Bool
        /// The number of bytes in whole boxes and in an `mdat` that is cut off.
        let count: Int
    }

    /// Finds the end. Bytes after the last box that do not form a box belong to no picture: tags, line ends, padding.
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
        // The index of a segment is in another file.
        guard hasIndex else { return End(isCutOff: !hasFragments, count: bytes.count) }
        switch cutOff {
        case "mdat": return End(isCutOff: hasFragments, count: bytes.count)
        case "moov", "moof", "styp", "sidx", "ssix", "prft", "emsg": return End(isCutOff: true, count: bytes.count - rest.count)
        default: return End(isCutOff: cutOff == nil && hasFragments && isBeginning(rest), count: bytes.count - rest.count)
        }
    }

    /// Whether bytes begin the header of a box.
    private static func isBeginning(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Only `mdat` boxes exceed 16 MiB, and the header of a fragment precedes them.
        guard bytes.count < 8, bytes.first == 0, bytes.contains(where: { $0 != 0 }) else { return false }
        let type = bytes.dropFirst(4)
        return ISOBoxes.topLevel.contains { $0.utf8.starts(with: type) }
    }
}
