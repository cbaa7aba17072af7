/// Finds a request's body in the bytes after its head, whichever way it is delimited. A pure value.
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

    /// Bytes still to come where they are known.
    var knownRemainder: Int? {
        if case .sized(let remaining) = kind { remaining } else { nil }
    }

    /// Goes on at `position` of `piece`, and moves it past what was used.
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
