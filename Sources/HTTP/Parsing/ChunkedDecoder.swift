/// Takes a chunked body apart (RFC 9112 section 7.1), strictly: hexadecimal sizes without sign, prefix or blanks, CRLF
/// everywhere. Extensions and trailers are read over, and bounded.
///
/// A pure value: it is fed pieces as they arrive and keeps only its place in the grammar.
struct ChunkedDecoder: Sendable, Equatable {
    /// The next thing in a body.
    enum Step: Equatable {
        /// Data, at this place of the piece.
        case data(Range<Int>)
        /// All of the piece is used; more is needed.
        case needsMore
        /// The body ended; what follows in the piece from here belongs to the next request.
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

    /// The most bytes that extensions and trailers may have in one body.
    static let overheadLimit = 4096

    private var state = State.size(digits: 0)
    private var remaining = 0
    private var overhead = 0

    init() {}

    /// Goes on at `position` of `piece`, and moves it past what was used.
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
                // Fifteen digits are 2^60: no overflow, and more than anybody sends.
                guard digits < 15 else { throw .malformedChunk }
                remaining = remaining << 4 | digit
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

    /// Counts a byte of an extension or a trailer, which is read over.
    private mutating func count(_ byte: UInt8) throws(HTTPProtocolError) {
        guard byte >= 0x20 && byte != 0x7F || byte == 9 else { throw .malformedChunk }
        overhead += 1
        guard overhead <= Self.overheadLimit else { throw .malformedChunk }
    }
}
