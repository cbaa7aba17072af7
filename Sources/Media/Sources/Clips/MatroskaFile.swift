/// The properties of a Matroska file that libavformat does not expose: its end, and the first video track (RFC 8794, RFC 9559).
struct MatroskaFile {
    /// Whether the file ends within its header, its segment, or an element of a segment without a size.
    private(set) var isCutOff = false
    private(set) var video: Video?
    /// The bytes of the segment's size if its clusters have none. RFC 8794 §6.2 allows this, libavformat only in a segment without a
    /// size.
    private(set) var hiddenSize: Range<Int>?
    private var hasOpenClusters = false

    /// The properties of a video track.
    struct Video {
        fileprivate(set) var hasAlpha = false
        fileprivate(set) var isEncrypted = false
        /// The hidden columns and rows at each side.
        fileprivate(set) var crop = CropMargins()
        fileprivate var size = (width: 0, height: 0)
        fileprivate var display = (width: 0, height: 0, unit: 0)
        fileprivate var stereoMode = 0

        /// Whether the margins leave nothing of the pictures.
        var isCutAway: Bool {
            size.width > 0 && size.height > 0
                && (crop.left + crop.right >= size.width || crop.top + crop.bottom >= size.height)
        }

        /// The width and height of a displayed pixel, in proportion; nil if they are not stated.
        var aspect: (Int, Int)? {
            let width = size.width - crop.left - crop.right
            let height = size.height - crop.top - crop.bottom
            // Display unit 4 means unknown.
            guard display.unit < 4, width > 0, height > 0, display.width > 0, display.height > 0 else { return nil }
            // The display size is that of one view, and a picture may contain two (RFC 9559 §18.10).
            let (columns, rows) = ([1, 8, 9, 11].contains(stereoMode) ? 2 : 1, [2, 3, 6, 7].contains(stereoMode) ? 2 : 1)
            return (columns * display.width * height, rows * display.height * width)
        }
    }

    private enum Identifier {
        static let segment: UInt32 = 0x1853_8067
        static let cluster: UInt32 = 0x1f43_b675
        static let tracks: UInt32 = 0x1654_ae6b
        static let entry: UInt32 = 0xae
        static let type: UInt32 = 0x83
        static let video: UInt32 = 0xe0
        static let encodings: UInt32 = 0x6d80
        static let encoding: UInt32 = 0x6240
        /// Elements of segments (head, tracks, cues and others) and clusters (times, blocks, padding, checksums).
        static let all: [UInt32] = [
            segment, cluster, tracks, 0x114d_9b74, 0x1549_a966, 0x1c53_bb6b, 0x1254_c367, 0x1043_a770, 0x1941_a469, 0x1a45_dfa3,
            0xe7, 0xa7, 0xab, 0xa3, 0xa0, 0xaf, 0xec, 0xbf, 0x5854,
        ]
    }

    private struct Element {
        let identifier: UInt32
        let start: Int
        /// The bytes that state the size.
        let place: Range<Int>
        /// The size of the data; nil if unknown.
        let size: Int?

        /// Returns the end of the element: `limit` if its size is unknown, past `limit` if it is cut off.
        func end(within limit: Int) -> Int { size.map { $0 > limit - start ? limit + 1 : start + $0 } ?? limit }
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        guard let header = Self.element(bytes, at: 0, end: bytes.count) else {
            isCutOff = bytes.count < 12
            return
        }
        let end = header.end(within: bytes.count)
        guard end < bytes.count, let segment = Self.element(bytes, at: end, end: bytes.count) else {
            isCutOff = true
            return
        }
        let isOpen = segment.size == nil
        if segment.end(within: bytes.count) > bytes.count { isCutOff = true }
        readSegment(bytes, segment.start..<min(bytes.count, segment.end(within: bytes.count)), isOpen: isOpen)
        if hasOpenClusters, !isOpen { hiddenSize = segment.place }
    }

    /// - Parameter isOpen: Whether the segment has no size, so that its last element ends with the file.
    private mutating func readSegment(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, isOpen: Bool) {
        var position = range.lowerBound
        while position < range.upperBound {
            guard let element = Self.element(bytes, at: position, end: range.upperBound) else {
                if isOpen { isCutOff = Self.isBeginning(bytes[position..<range.upperBound]) }
                return
            }
            let end = element.end(within: range.upperBound)
            if element.identifier == Identifier.tracks, video == nil {
                readTracks(bytes, element.start..<min(end, range.upperBound))
            }
            if element.identifier == Identifier.cluster && element.size == nil {
                // The elements of the cluster follow, up to the first that cannot belong to it.
                hasOpenClusters = true
                position = element.start
                continue
            }
            if end > range.upperBound {
                // Bytes without a known identifier are not an element.
                if isOpen, Identifier.all.contains(element.identifier) { isCutOff = true }
                return
            }
            position = end
        }
    }

    private mutating func readTracks(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        Self.forEach(bytes, range) { entry, range in
            guard entry == Identifier.entry else { return true }
            var isVideo = false
            var found = Video()
            Self.forEach(bytes, range) { element, range in
                switch element {
                case Identifier.type: isVideo = Self.number(bytes[range]) == 1
                case Identifier.video: Self.read(bytes, range, into: &found)
                case Identifier.encodings:
                    Self.forEach(bytes, range) { encoding, range in
                        if encoding == Identifier.encoding { Self.read(bytes, range, into: &found) }
                        return true
                    }
                default: break
                }
                return true
            }
            if isVideo { video = found }
            return !isVideo
        }
    }

    /// Reads the numbers of a video or of one of its encodings, without the elements within those.
    private static func read(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, into video: inout Video) {
        forEach(bytes, range) { element, range in
            let number = number(bytes[range])
            switch element {
            case 0xb0: video.size.width = number
            case 0xba: video.size.height = number
            case 0x54b0: video.display.width = number
            case 0x54ba: video.display.height = number
            case 0x54b2: video.display.unit = number
            case 0x54cc: video.crop.left = number
            case 0x54dd: video.crop.right = number
            case 0x54bb: video.crop.top = number
            case 0x54aa: video.crop.bottom = number
            case 0x53b8: video.stereoMode = number
            case 0x53c0: video.hasAlpha = number == 1
            case 0x5033: video.isEncrypted = video.isEncrypted || number == 1
            default: break
            }
            return true
        }
    }

    /// Calls `body` with the identifier and the data of each whole element, until it returns false.
    private static func forEach(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ body: (UInt32, Range<Int>) -> Bool
    ) {
        var position = range.lowerBound
        while let element = element(bytes, at: position, end: range.upperBound) {
            let end = element.end(within: range.upperBound)
            guard end <= range.upperBound, body(element.identifier, element.start..<end) else { return }
            position = end
        }
    }

    /// Returns an unsigned number of up to eight bytes, clamped to 65,535: no side of a picture is longer.
    private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        guard bytes.count <= 8 else { return 0 }
        return Int(min(bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, 65_535))
    }

    /// Returns the element at a position (RFC 8794 §5, §6); nil if there is none, or if its head is cut off.
    private static func element(_ bytes: UnsafeRawBufferPointer, at position: Int, end: Int) -> Element? {
        guard position < end, bytes[position] >= 0x10 else { return nil }
        let at = position + bytes[position].leadingZeroBitCount + 1
        guard at < end, bytes[at] != 0 else { return nil }
        let identifier = bytes[position..<at].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let length = bytes[at].leadingZeroBitCount + 1
        guard at + length <= end else { return nil }
        let unknown = UInt64(1) << UInt64(7 * length) - 1
        let value = bytes[at..<at + length].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & unknown
        let place = at..<at + length
        return Element(identifier: identifier, start: place.upperBound, place: place, size: value == unknown ? nil : Int(value))
    }

    /// Whether bytes begin the head of an element of a segment or a cluster.
    private static func isBeginning(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        Identifier.all.contains { identifier in
            let code = withUnsafeBytes(of: identifier.bigEndian) { $0.drop { $0 == 0 }.map { $0 } }
            return zip(code, bytes).allSatisfy { $0 == $1 } && bytes.count < code.count + 8
        }
    }
}
