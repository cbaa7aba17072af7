internal import Glibc

/// Takes a `multipart/form-data` body apart as it arrives (RFC 7578; the delimiters are RFC 2046 section 5.1.1).
///
/// A pure value over bytes. It keeps no more than a part's head and the length of what may be a delimiter's beginning,
/// so a part of any size passes through without being copied.
struct MultipartParser {
    enum Step: Equatable {
        /// A part begins.
        case part(MultipartPart)
        /// Bytes of the part: a range of the input.
        case data(Range<Int>)
        /// Bytes of the part from an earlier input, which looked like a delimiter's beginning and were none: so many
        /// bytes of ``MultipartParser/delimiter``.
        case withheld(Int)
        /// The part is whole.
        case partEnd
        /// The input is used up.
        case needsMore
        /// The last delimiter has come; what may follow it means nothing.
        case end
    }

    /// Bytes of a part's head.
    static let longestHead = 8 << 10

    /// What stands between parts: CRLF, two hyphens and the boundary.
    let delimiter: [UInt8]

    private enum State {
        /// Before the first delimiter; RFC 2046 lets anything stand there.
        case preamble
        case content
        case head
        case ended
    }

    private var state = State.preamble
    /// Bytes of the delimiter that the input ended with. The first delimiter does without its CRLF.
    private var matched = 2
    private var head: [UInt8] = []

    /// Nil where the body is no such form.
    ///
    /// - Parameter contentType: The request's `Content-Type`.
    /// - Throws: ``Problem`` where it has no boundary that RFC 2046 allows.
    init?(form contentType: String?) throws(Problem) {
        guard let field = contentType.map({ FieldParameters($0) }), field.value == "multipart/form-data" else { return nil }
        guard let boundary = field.parameters["boundary"], (1...70).contains(boundary.utf8.count),
            boundary.utf8.allSatisfy({ (0x20..<0x7f).contains($0) })
        else { throw .badRequest("The form's Content-Type has no boundary.") }
        delimiter = Array("\r\n--\(boundary)".utf8)
    }

    /// Whether the last delimiter has come.
    var isWhole: Bool { state == .ended }

    /// The next thing in the input, from `position` on, which moves past it.
    mutating func next(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(Problem) -> Step {
        while true {
            switch state {
            case .ended:
                position = bytes.count
                return .end
            case .head:
                if let step = try readHead(bytes, &position) { return step }
            case .preamble:
                // What stands before the first part is passed over.
                if search(bytes, &position) == .needsMore { return .needsMore }
            case .content:
                return search(bytes, &position)
            }
        }
    }

    /// Content up to the next delimiter. The boundary has no CR in it, so a match can only begin at one, and one that
    /// fails need not be looked into again.
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
            return .withheld(matched)
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

    /// What follows a delimiter: two hyphens after the last part, else the end of the line and a part's head.
    private mutating func readHead(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(Problem) -> Step? {
        while position < bytes.count {
            head.append(bytes[position])
            position += 1
            if head.count == 2, head.elementsEqual("--".utf8) {
                state = .ended
                position = bytes.count
                return .end
            }
            guard head.count <= Self.longestHead else { throw .badRequest("A part of the form has too long a head.") }
            guard head.count >= 4, head.last == 10, head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
            let lines = String(decoding: head.dropLast(4), as: UTF8.self)
            head = []
            state = .content
            // The delimiter's own line has nothing more on it but spaces.
            guard let lineEnd = lines.firstRange(of: "\r\n"),
                lines[..<lineEnd.lowerBound].allSatisfy({ $0 == " " || $0 == "\t" })
            else { throw .badRequest("A part of the form has a malformed head.") }
            return .part(try MultipartPart(head: String(lines[lineEnd.upperBound...])))
        }
        return .needsMore
    }
}
