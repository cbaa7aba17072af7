/// An element in a file: its kind and position.
struct EBMLSpan: Equatable {
    let element: EBMLElement
    /// The position of the element itself.
    let start: Int
    /// The range of its contents.
    let range: Range<Int>

    /// Reads the elements inside this one into memory. Callers must bound its length.
    func contents(of bytes: OutputWindow) throws(OutputFlaw) -> EBMLContents {
        try EBMLContents(bytes, range)
    }

    /// Reads the contents as an unsigned number.
    func number(in bytes: OutputWindow) throws(OutputFlaw) -> Int {
        var contents = try bytes.read(range)
        // Eight bytes with a nonzero first byte exceed every number here.
        guard (1...8).contains(contents.count) else { throw .malformed }
        if contents.count == 8 { guard try contents.number(1) == 0 else { throw .malformed } }
        return try contents.number(contents.count)
    }
}

/// Walks over the elements that fill a part of a file exactly. Reads only their headers.
///
/// An element that ``WebMWriter`` does not write is a flaw.
struct EBMLWalk {
    /// An identifier of up to four bytes and a size of up to eight (RFC 8794 §5, §6).
    private static let longestHead = 12

    private let bytes: OutputWindow
    private var position: Int
    private let end: Int

    init(_ bytes: OutputWindow, _ range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    /// Reads the next element; nil at the end.
    mutating func next() throws(OutputFlaw) -> EBMLSpan? {
        if position == end { return nil }
        var head = try bytes.read(position..<min(end, position + Self.longestHead))
        let available = head.count
        let identifier = try Self.variable(&head, longest: 4, keepsMarker: true)
        guard let element = EBMLElement(rawValue: UInt32(identifier)) else { throw .malformed }
        let size = try Self.variable(&head, longest: 8, keepsMarker: false)
        let start = position
        let begin = position + available - head.count
        guard size <= end - begin else { throw .malformed }
        position = begin + size
        return EBMLSpan(element: element, start: start, range: begin..<begin + size)
    }

    /// Reads a variable-size integer (RFC 8794 §4).
    private static func variable(_ head: inout ByteReader, longest: Int, keepsMarker: Bool) throws(OutputFlaw) -> Int {
        let first = try head.number(1)
        let length = UInt8(first).leadingZeroBitCount + 1
        guard length <= longest else { throw .malformed }
        let rest = try head.number(length - 1)
        let value = first << (8 * (length - 1)) | rest
        return keepsMarker ? value : value & (1 << (7 * length) - 1)
    }
}

/// The few elements inside a header element, by kind.
struct EBMLContents {
    private static let most = 16

    private let spans: [EBMLSpan]
    private let bytes: OutputWindow

    init(_ bytes: OutputWindow, _ range: Range<Int>) throws(OutputFlaw) {
        var walk = EBMLWalk(bytes, range)
        var spans: [EBMLSpan] = []
        while let span = try walk.next() {
            guard spans.count < Self.most else { throw .malformed }
            spans.append(span)
        }
        self.spans = spans
        self.bytes = bytes
    }

    var count: Int { spans.count }

    func has(_ element: EBMLElement) -> Bool { spans.contains { $0.element == element } }

    /// Returns the contents of the only element of a kind.
    func only(_ element: EBMLElement) throws(OutputFlaw) -> ByteReader { try bytes.read(try span(of: element).range) }

    func number(_ element: EBMLElement) throws(OutputFlaw) -> Int { try span(of: element).number(in: bytes) }

    func float(_ element: EBMLElement) throws(OutputFlaw) -> Double {
        let contents = try only(element)
        guard contents.count == 8 else { throw .malformed }
        return Double(bitPattern: contents.rest.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    /// Reads the elements inside the only element of a kind.
    func children(_ element: EBMLElement) throws(OutputFlaw) -> EBMLContents {
        try EBMLContents(bytes, try span(of: element).range)
    }

    /// Reads the elements inside the element at an index, which must be of a kind.
    func children(_ element: EBMLElement, at index: Int) throws(OutputFlaw) -> EBMLContents {
        guard spans.indices.contains(index), spans[index].element == element else { throw .missingPart }
        return try EBMLContents(bytes, spans[index].range)
    }

    private func span(of element: EBMLElement) throws(OutputFlaw) -> EBMLSpan {
        let found = spans.filter { $0.element == element }
        guard found.count == 1 else { throw .missingPart }
        return found[0]
    }
}

/// Reads short, mostly adjacent parts of a file through a window in memory. Not thread-safe.
final class OutputWindow {
    private static let size = 4096

    private let bytes: OutputBytes
    private var window = ByteReader([])
    private var range = 0..<0

    init(_ bytes: OutputBytes) {
        self.bytes = bytes
    }

    var count: Int { bytes.count }

    /// - Parameter part: Not longer than the window.
    func read(_ part: Range<Int>) throws(OutputFlaw) -> ByteReader {
        guard part.lowerBound >= 0, part.upperBound <= bytes.count, part.count <= Self.size else { throw .malformed }
        if part.lowerBound < range.lowerBound || part.upperBound > range.upperBound {
            let wanted = part.lowerBound..<min(bytes.count, part.lowerBound + Self.size)
            window = try bytes.read(wanted)
            range = wanted
        }
        var reader = window
        try reader.skip(part.lowerBound - range.lowerBound)
        return ByteReader(try reader.take(part.count))
    }
}
