/// Inspects a JPEG (ITU-T T.81 §B): segments from SOI to the scan, one frame header, EOI at the end.
enum JPEGInspection {
    private enum Marker {
        static let startOfImage = 0xffd8
        static let endOfImage = 0xffd9
        static let startOfScan = 0xffda
        /// Baseline, extended and progressive frames with Huffman coding.
        static let frames = 0xffc0...0xffc2
        /// What may come before the scan: tables, frame, restart interval, APP0 (JFIF), comment.
        static let allowed: Set<Int> = [0xffc0, 0xffc1, 0xffc2, 0xffc4, 0xffdb, 0xffdd, 0xffe0, 0xfffe]
    }

    /// Segments before the scan; a JPEG has a dozen.
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
