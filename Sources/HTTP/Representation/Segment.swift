internal import SystemIO

/// A part of a response that is still to be sent.
enum Segment {
    case bytes([UInt8], Range<Int>)
    case file(SharedDescriptor, Range<Int>)

    init(_ bytes: [UInt8]) {
        self = .bytes(bytes, 0..<bytes.count)
    }

    /// A part of a representation.
    init(_ content: HTTPResource.Content, _ range: Range<Int>) {
        self =
            switch content {
            case .file(let file): .file(file, range)
            case .bytes(let bytes): .bytes(bytes, range)
            }
    }

    var isInMemory: Bool {
        switch self {
        case .bytes: true
        case .file: false
        }
    }

    /// Bytes left to send.
    var count: Int {
        switch self {
        case .bytes(_, let range), .file(_, let range): range.count
        }
    }

    /// The segment without its first `count` bytes.
    func dropping(_ count: Int) -> Segment {
        switch self {
        case .bytes(let bytes, let range): .bytes(bytes, range.lowerBound + count..<range.upperBound)
        case .file(let file, let range): .file(file, range.lowerBound + count..<range.upperBound)
        }
    }
}
