internal import Glibc
internal import HTTP

/// Parses a `multipart/form-data` body as it arrives (RFC 7578; the delimiters are those of RFC 2046 section 5.1.1).
///
/// The parser stores only the head of the current part and the length of a partial delimiter, so parts of any size are
/// processed without a copy.
struct MultipartParser {
    enum Step: Equatable {
        case part(MultipartPart)
        /// Bytes of the part: a range of the input.
        case data(Range<Int>)
        /// Bytes of the part from an earlier input, which matched the beginning of a delimiter: the number of bytes of
        /// ``MultipartParser/delimiter`` that are content.
        case delimiterPrefix(Int)
        case partEnd
        /// The input is used up.
        case needsMore
        /// The last delimiter was read; anything that follows it is ignored.
        case end
    }

    /// The size limit of a part's head in bytes.
    static let maxHeadLength = 8 << 10

    /// The separator of parts: CRLF, two hyphens and the boundary.
    let delimiter: [UInt8]

    private enum State {
        /// Before the first delimiter, where RFC 2046 allows any text.
        case preamble
        case content
        case head
        case ended
    }

    private var state = State.preamble
    /// The number of bytes of the delimiter at the end of the input. The first delimiter has no CRLF, so the search begins
    /// after it.
    private var matched = 2
    private var head: [UInt8] = []

    private static let mediaType: StaticString = "multipart/form-data"

    static func isForm(_ contentType: UnsafeRawBufferPointer?) -> Bool {
        contentType.map { FieldElement($0).value.equalsIgnoringCase(mediaType) } ?? false
    }

    /// Returns nil if the body is not such a form.
    ///
    /// - Parameter contentType: The request's `Content-Type`.
    /// - Throws: ``Problem`` if the field has no boundary that RFC 2046 allows.
    init?(form contentType: UnsafeRawBufferPointer?) throws(Problem) {
        guard let contentType, Self.isForm(contentType) else { return nil }
        guard let boundary = FieldElement(contentType).parameter("boundary")?.unquoted, (1...70).contains(boundary.count),
            boundary.allSatisfy({ (0x20..<0x7f).contains($0) })
        else { throw .badRequest("The form's Content-Type has no boundary.") }
        delimiter = Array("\r\n--".utf8) + boundary
    }

    /// Whether the last delimiter was read.
    var isComplete: Bool { state == .ended }

    /// Returns the next step in the input, beginning at `position`, and advances `position`.
    mutating func next(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(Problem) -> Step {
        while true {
            switch state {
            case .ended:
                position = bytes.count
                return .end
            case .head:
                if let step = try readHead(bytes, &position) { return step }
            case .preamble:
                // The text before the first part is ignored.
                if search(bytes, &position) == .needsMore { return .needsMore }
            case .content:
                return search(bytes, &position)
            }
        }
    }

    /// Searches for the next delimiter. The boundary contains no CR, so a match begins at a CR, and no other match can begin
    /// within a failed one.
    private mutating func search(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> Step {
        if matched > 0 {
            while matched < delimiter.count, position < bytes.count, bytes[position] == delimiter[matched] {
                matched += 1
                position += 1
            }
            if matched == delimiter.count {
                matched = 0
                state = .head
                return .partEnd
            }
            if position == bytes.count { return .needsMore }
            defer { matched = 0 }
            return .delimiterPrefix(matched)
        }
        let start = position
        while let candidate = Self.carriageReturn(in: bytes, from: position) {
            var length = 1
            while length < delimiter.count, candidate + length < bytes.count, bytes[candidate + length] == delimiter[length] {
                length += 1
            }
            if length == delimiter.count || candidate + length == bytes.count {
                position = candidate
                if candidate > start { return .data(start..<candidate) }
                matched = length
                position += length
                return search(bytes, &position)
            }
            position = candidate + 1
        }
        position = bytes.count
        return start < bytes.count ? .data(start..<bytes.count) : .needsMore
    }

    private static func carriageReturn(in bytes: UnsafeRawBufferPointer, from position: Int) -> Int? {
        guard let base = bytes.baseAddress, position < bytes.count,
            let found = memchr(base + position, 13, bytes.count - position)
        else { return nil }
        return base.distance(to: UnsafeRawPointer(found))
    }

    /// Reads the text after a delimiter: two hyphens after the last part, otherwise the end of the line and a part's head.
    private mutating func readHead(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(Problem) -> Step? {
        while position < bytes.count {
            head.append(bytes[position])
            position += 1
            if head.count == 2, head.elementsEqual("--".utf8) {
                state = .ended
                position = bytes.count
                return .end
            }
            guard head.count <= Self.maxHeadLength else { throw .badRequest("The head of a part of the form is too long.") }
            guard head.count >= 4, head.last == 10, head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
            defer { head = [] }
            state = .content
            return .part(try Self.part(head))
        }
        return .needsMore
    }

    /// Parses the text between a delimiter and a part's content.
    private static func part(_ head: [UInt8]) throws(Problem) -> MultipartPart {
        try head.span.bytes.withUnsafeBytes { bytes throws(Problem) in
            var lines = bytes.slice(0..<bytes.count - 2)
            // Only blanks may follow the delimiter on its line.
            guard let rest = lines.takeLine(), rest.trimmed.isEmpty else {
                throw .badRequest("A part of the form has a malformed head.")
            }
            return try MultipartPart(head: lines)
        }
    }
}
