internal import SystemIO

/// How a request body is delimited (RFC 9112 section 6).
enum BodyFraming: Equatable, Sendable {
    case none
    /// `Content-Length` bytes, at least one.
    case sized(Int)
    case chunked
}

/// Decodes a request body from the bytes after its head. A pure value.
struct BodyDecoder: Sendable, Equatable {
    typealias Step = ChunkedDecoder.Step

    private enum Kind: Equatable {
        case sized(remaining: Int)
        case chunked(ChunkedDecoder)
    }

    private var kind: Kind

    init(_ framing: BodyFraming) {
        kind =
            switch framing {
            case .none: .sized(remaining: 0)
            case .sized(let length): .sized(remaining: length)
            case .chunked: .chunked(ChunkedDecoder())
            }
    }

    /// The number of bytes still to come; nil for a chunked body.
    var knownRemainder: Int? {
        if case .sized(let remaining) = kind { remaining } else { nil }
    }

    /// Decodes `piece` from `position`, and advances `position` past the bytes consumed.
    mutating func next(
        _ piece: UnsafeRawBufferPointer, at position: inout Int
    ) throws(HTTPProtocolError) -> Step {
        switch kind {
        case .sized(let remaining):
            if remaining == 0 { return .end(position) }
            if position == piece.count { return .needsMore }
            let start = position
            position += min(remaining, piece.count - start)
            kind = .sized(remaining: remaining - (position - start))
            return .data(start..<position)
        case .chunked(var decoder):
            defer { kind = .chunked(decoder) }
            return try decoder.next(piece, at: &position)
        }
    }
}

/// Decodes a chunked body (RFC 9112 section 7.1) strictly: hexadecimal sizes without sign, prefix or blanks, and CRLF
/// everywhere. Skips extensions and trailers, whose length is bounded.
///
/// A pure value: it receives pieces as they arrive and stores only its state in the grammar.
struct ChunkedDecoder: Sendable, Equatable {
    enum Step: Equatable {
        /// Data, in this range of the piece.
        case data(Range<Int>)
        /// The whole piece is consumed, and the body continues.
        case needsMore
        /// The body has ended; the bytes from this position on belong to the next request.
        case end(Int)
    }

    private enum State: Equatable {
        case size(digits: Int)
        case fields
        case sizeLineFeed
        case data
        case dataReturn, dataLineFeed
        case trailerStart, trailer, trailerLineFeed, lastLineFeed
        case finished
    }

    /// The maximum total length of extensions and trailers in a body, in bytes.
    static let overheadLimit = 4096

    private var state = State.size(digits: 0)
    private var remaining = 0
    private var overhead = 0

    init() {}

    /// Decodes `piece` from `position`, and advances `position` past the bytes consumed.
    mutating func next(_ piece: UnsafeRawBufferPointer, at position: inout Int) throws(HTTPProtocolError) -> Step {
        if state == .finished { return .end(position) }
        while position < piece.count {
            if state == .data {
                let end = position + min(remaining, piece.count - position)
                defer { position = end }
                remaining -= end - position
                if remaining == 0 { state = .dataReturn }
                return .data(position..<end)
            }
            try take(piece[position])
            position += 1
            if state == .finished { return .end(position) }
        }
        return .needsMore
    }

    private mutating func take(_ byte: UInt8) throws(HTTPProtocolError) {
        switch state {
        case .size(let digits):
            if let digit = byte.hexDigit {
                // Fifteen digits stay below 2^60, so the sum of size and position cannot overflow.
                guard digits < 15 else { throw .malformedChunk }
                remaining = remaining << 4 | Int(digit)
                state = .size(digits: digits + 1)
            } else if digits > 0, byte == 13 {
                state = .sizeLineFeed
            } else if digits > 0, byte == UInt8(ascii: ";") {
                state = .fields
            } else {
                throw .malformedChunk
            }
        case .fields:
            if byte == 13 { state = .sizeLineFeed } else { try count(byte) }
        case .sizeLineFeed:
            try expect(byte, 10, then: remaining == 0 ? .trailerStart : .data)
        case .dataReturn: try expect(byte, 13, then: .dataLineFeed)
        case .dataLineFeed: try expect(byte, 10, then: .size(digits: 0))
        case .trailerStart:
            if byte == 13 {
                state = .lastLineFeed
            } else {
                try count(byte)
                state = .trailer
            }
        case .trailer:
            if byte == 13 { state = .trailerLineFeed } else { try count(byte) }
        case .trailerLineFeed: try expect(byte, 10, then: .trailerStart)
        case .lastLineFeed: try expect(byte, 10, then: .finished)
        case .data, .finished: break
        }
    }

    private mutating func expect(_ byte: UInt8, _ wanted: UInt8, then next: State) throws(HTTPProtocolError) {
        guard byte == wanted else { throw .malformedChunk }
        state = next
    }

    /// Checks and counts a byte of an extension or a trailer.
    private mutating func count(_ byte: UInt8) throws(HTTPProtocolError) {
        guard byte >= 0x20 && byte != 0x7F || byte == 9 else { throw .malformedChunk }
        overhead += 1
        guard overhead <= Self.overheadLimit else { throw .malformedChunk }
    }
}
